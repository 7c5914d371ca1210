//! What the terminal at the standard output can show, according to the environment. Does not query it: an answer
//! would arrive between typed characters.

use super::render::Coloring;
use crate::script::draw::terminal::{Graphics, Terminal};

/// `TSCRIPT_GRAPHICS` takes precedence: `kitty`, `sixel`, `full`, `indexed`, `plain`.
pub fn of_stdout() -> Terminal {
    let read = |name: &str| std::env::var(name).unwrap_or_default();
    let color = Coloring::of_stdout() == Coloring::On;
    Terminal { graphics: graphics(read, color), ..Terminal::default() }
}

fn graphics(read: impl Fn(&str) -> String, color: bool) -> Graphics {
    match read("TSCRIPT_GRAPHICS").as_str() {
        "kitty" => return Graphics::Kitty,
        "sixel" => return Graphics::Sixel,
        "full" => return Graphics::Full,
        "indexed" => return Graphics::Indexed,
        "plain" => return Graphics::Plain,
        _ => {}
    }
    if !color {
        return Graphics::Plain;
    }
    let (kind, program) = (read("TERM"), read("TERM_PROGRAM"));
    // tmux and screen pass neither protocol on by default.
    let direct = read("TMUX").is_empty() && !kind.starts_with("screen") && !kind.starts_with("tmux");
    let kitty = !read("KITTY_WINDOW_ID").is_empty() || kind.contains("kitty") || kind.contains("ghostty");
    if direct && (kitty || ["WezTerm", "ghostty"].contains(&program.as_str())) {
        return Graphics::Kitty;
    }
    let sixel = ["foot", "mlterm", "contour", "yaft"].iter().any(|name| kind.starts_with(name));
    if direct && (sixel || program == "iTerm.app") {
        return Graphics::Sixel;
    }
    match read("COLORTERM").as_str() {
        "truecolor" | "24bit" => Graphics::Full,
        _ => Graphics::Indexed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(pairs: &[(&str, &str)], color: bool) -> Graphics {
        graphics(|name| pairs.iter().find(|pair| pair.0 == name).map_or(String::new(), |pair| pair.1.into()), color)
    }

    #[test]
    fn the_environment_selects_graphics() {
        assert_eq!(with(&[("TERM", "xterm-kitty")], true), Graphics::Kitty);
        assert_eq!(with(&[("TERM", "xterm-kitty")], false), Graphics::Plain);
        assert_eq!(with(&[("TERM", "foot")], true), Graphics::Sixel);
        assert_eq!(with(&[("TERM", "xterm-256color"), ("COLORTERM", "truecolor")], true), Graphics::Full);
        assert_eq!(with(&[("TERM", "xterm-256color")], true), Graphics::Indexed);
        assert_eq!(
            with(&[("TERM", "tmux-256color"), ("TMUX", "x"), ("KITTY_WINDOW_ID", "1")], true),
            Graphics::Indexed
        );
        assert_eq!(with(&[("TSCRIPT_GRAPHICS", "sixel")], false), Graphics::Sixel);
    }
}
