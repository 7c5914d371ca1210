//! The long texts of `tscript explain`: what a code means, a script that gets it, and what to do. They are in
//! `docs/errors/`, one file for each code, which is also a page of the book.
//!
//! The first script of a text gets its code, the second runs without error: `tests/it/explain.rs` runs them all. Flags
//! or settings of a host program that a script needs are in a comment on its first line.

use super::code::{ALL, Code};
use super::packed;

/// The long text of a code, in Markdown, without its heading. Every code of `code::ALL` has one.
pub fn explain(code: Code) -> &'static str {
    let is_known = ALL.iter().any(|(known, _)| *known == code);
    match is_known.then(|| page(code)).and_then(|page| page.split_once('\n')) {
        Some((_, text)) => text.trim(),
        None => "This code is not known. `tscript explain` without an argument lists those that are.",
    }
}

/// The page of the book: a heading with code and title, then the text.
fn page(code: Code) -> &'static str {
    packed::text(&format!("docs/errors/{code}.md"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_explained_with_a_script() {
        for (code, title) in ALL {
            let text = explain(*code);
            assert_eq!(
                page(*code).lines().next(),
                Some(&*format!("# {code}: {title}")),
                "the heading of docs/errors/{code}.md"
            );
            assert!(text.contains("```tscript\n"), "{code}, {title}, is not explained");
            assert_eq!(text.matches("```").count() % 2, 0, "{code} has an open fence");
            let prose = text.split("```").step_by(2).map(str::trim).filter(|prose| !prose.is_empty());
            assert!(prose.count() >= 2, "{code} lacks what it means or what to do");
        }
        assert!(!explain(Code(999)).contains("```"));
    }
}
