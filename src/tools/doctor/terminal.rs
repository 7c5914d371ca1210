//! What the terminal shows.

use super::{Finding, State};
use crate::script::draw::terminal::Graphics;
use crate::tools::render::Coloring;
use crate::tools::terminal::of_stdout;
use std::io::IsTerminal;

pub fn findings() -> Vec<Finding> {
    let read = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let mut all = Vec::new();
    if std::io::stdout().is_terminal() {
        let kind = read("TERM").unwrap_or_else(|| "of unknown kind".to_string());
        all.push(Finding::good("terminal", kind));
    } else {
        all.push(Finding::good("terminal", "none: the standard output is a file or a pipe"));
    }
    let color = match Coloring::of_stdout() {
        Coloring::On => Finding::good("color", "on"),
        Coloring::Off => Finding::good("color", format!("off: {}", why_no_color(&read))),
    };
    all.push(color);
    all.push(Finding::good("graphics", graphics(of_stdout().graphics)));
    if let Ok(size) = rustix::termios::tcgetwinsize(rustix::stdio::stdout()) {
        all.push(Finding::good("size", format!("{} columns, {} rows", size.ws_col, size.ws_row)));
    }
    all.push(unicode(read("LC_ALL").or_else(|| read("LC_CTYPE")).or_else(|| read("LANG"))));
    all
}

fn why_no_color(read: &impl Fn(&str) -> Option<String>) -> &'static str {
    match (read("NO_COLOR"), read("TERM")) {
        (Some(_), _) => "NO_COLOR is set",
        (_, Some(kind)) if kind == "dumb" => "TERM is dumb",
        _ => "no terminal",
    }
}

fn graphics(graphics: Graphics) -> &'static str {
    match graphics {
        Graphics::Kitty => "pictures, by kitty's protocol",
        Graphics::Sixel => "pictures, by sixels",
        Graphics::Full => "blocks in 24-bit color",
        Graphics::Indexed => "blocks in 256 colors",
        Graphics::Plain => "letters",
    }
}

/// The locale decides what the terminal takes text for; the program always writes UTF-8.
fn unicode(locale: Option<String>) -> Finding {
    let utf8 = |locale: &str| locale.to_uppercase().replace('-', "").contains("UTF8");
    match locale {
        Some(locale) if utf8(&locale) => Finding::good("Unicode", locale),
        other => {
            let value = other.map_or("no locale is set".to_string(), |locale| format!("the locale is {locale}"));
            let missing = Finding::new("Unicode", State::Missing, value);
            missing.costs("frames around messages may come out as other letters").advice("export LANG=C.UTF-8")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_locale_says_whether_there_is_unicode() {
        for (locale, state) in [("C.UTF-8", State::Good), ("de_DE.utf8", State::Good), ("POSIX", State::Missing)] {
            assert_eq!(unicode(Some(locale.to_string())).state, state, "{locale}");
        }
        assert_eq!(unicode(None).state, State::Missing);
    }
}
