//! A text in another language than the script's, which the script has as a string: formulas, CUDA sources. Faults in it
//! are shown inside the literal, or, where the string is no literal, below a quotation.

use super::diag::{Diag, Focus};
use super::span::Origin;
use std::ops::Range;

/// Where bytes of the text stand in the script, and how many characters they are there.
pub type Places = Box<dyn Fn(Range<usize>) -> Option<(Origin, u16)> + Send + Sync>;

/// The text, and where it stands.
pub struct Quoted {
    pub text: String,
    places: Option<Places>,
}

impl Quoted {
    pub fn new(text: String, places: Option<Places>) -> Quoted {
        Quoted { text, places }
    }

    /// A text without a place in a script.
    pub fn plain(text: &str) -> Quoted {
        Quoted::new(text.to_string(), None)
    }

    /// Whether faults are shown in the script itself.
    pub fn has_places(&self) -> bool {
        self.places.is_some()
    }

    /// Makes these bytes of the text the primary place of a diagnostic.
    #[cold]
    pub fn mark(&self, diag: Box<Diag>, range: Range<usize>, text: &str) -> Box<Diag> {
        match self.places.as_ref().and_then(|places| places(range.clone())) {
            Some((origin, characters)) => diag.label_first(origin, Focus::Characters(characters), text),
            None => diag.note(self.excerpt(range)),
        }
    }

    /// The line of these bytes, and a caret below them.
    fn excerpt(&self, range: Range<usize>) -> String {
        let start = self.text.floor_char_boundary(range.start);
        let line_start = self.text[..start].rfind('\n').map_or(0, |at| at + 1);
        let line = self.text[line_start..].lines().next().unwrap_or("");
        let before = &self.text[line_start..start];
        let end =
            self.text.floor_char_boundary(range.end).clamp(start, line_start + line.len().max(start - line_start));
        let count = self.text[start..end].chars().count().max(1);
        // Tabs stay what they are, so that the caret stands below its character.
        let indent: String = before.chars().map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
        format!("in the text\n  {line}\n  {indent}{}", "^".repeat(count))
    }

    /// The byte at a line and a column, both from 1, columns counted in bytes.
    pub fn offset(&self, line: usize, column: usize) -> usize {
        let start: usize = self.text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
        let length = self.text[start..].lines().next().map_or(0, str::len);
        self.text.floor_char_boundary(start + column.saturating_sub(1).min(length))
    }
}

impl std::fmt::Debug for Quoted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.text.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_without_a_place_are_quoted_with_a_caret() {
        let quoted = Quoted::plain("a = 1;\n\tb = é + wrong;\nc");
        let at = quoted.text.find("wrong").unwrap();
        assert_eq!(quoted.excerpt(at..at + 5), "in the text\n  \tb = é + wrong;\n  \t        ^^^^^");
        assert_eq!(quoted.excerpt(99..120), "in the text\n  c\n   ^");
        assert_eq!(Quoted::plain("").excerpt(0..0), "in the text\n  \n  ^");
        assert_eq!(
            (quoted.offset(2, 2), quoted.offset(3, 9), quoted.offset(9, 1)),
            (8, quoted.text.len(), quoted.text.len())
        );
    }
}
