//! Colors the text being typed, and the partner of the bracket at the cursor.

use crate::script::source::classes::{Class, brackets, classes};
use crate::tools::render::Coloring;

/// The text with color sequences; its width stays.
pub fn paint(text: &str, cursor: Option<usize>) -> String {
    if text.trim_start().starts_with(':') {
        let end = text.find(|c: char| c.is_whitespace()).unwrap_or(text.len());
        return format!("{}{}", Coloring::On.wrap("35", &text[..end]), &text[end..]);
    }
    let marked = cursor.and_then(|at| brackets(text, at));
    let mut out = String::with_capacity(2 * text.len());
    for (range, class) in classes(text) {
        let style = match class {
            _ if marked.as_ref().is_some_and(|pair| pair.contains(&range)) => "1;4",
            Class::Keyword => "35",
            Class::Constant | Class::Number => "36",
            Class::Call => "34",
            Class::Text => "32",
            Class::Comment => "2",
            Class::Name | Class::Symbol | Class::Nothing => "",
        };
        match style {
            "" => out += &text[range],
            style => out += &Coloring::On.wrap(style, &text[range]),
        }
    }
    out
}
