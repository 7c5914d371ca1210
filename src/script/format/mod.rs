//! `tscript fmt`: the one style of scripts. Tokens (`source/lex.rs`) and comments (`comments`) are read to a document
//! (`reader`, `doc`), which is printed at a width (`print`, `align`); then the result is compared with what was given
//! (`same`). Editors get the changes alone (`edits`), or those of a range (`range`). [The decision](../../../docs/decisions/0141-one-style.md) has the
//! style and its reasons.

mod align;
mod comments;
mod doc;
pub mod edits;
mod print;
pub mod range;
mod reader;
mod same;
#[cfg(test)]
mod tests;

use super::error::Error;
use super::session::handle::Session;
use super::source::lex::Token;
use super::source::{Source, SourceKind};
use crate::base::code;
use crate::base::diag::Diag;
use comments::Comment;
use print::Printer;
use reader::Reader;
use same::Cut;
use std::path::Path;
use std::sync::Arc;

/// Characters of a line, where no other width is asked for.
pub const WIDTH: usize = 100;

/// Bound: native stack of the thread that formats, for as many brackets inside each other as are formatted in a debug build.
const STACK_BYTES: usize = 64 << 20;

#[doc(hidden)]
impl Session {
    /// A text in the style of `tscript fmt`, with lines of at most `width` characters where that is possible.
    ///
    /// # Errors
    ///
    /// What a run of the text would begin with: it cannot be read.
    pub fn format_source(&mut self, path: &Path, text: &str, width: usize) -> Result<String, Error> {
        let source = self.add(SourceKind::File, &path.display().to_string(), text)?;
        // The parser says whether the text is one, and meanwhile it is formatted.
        let (read, formatted) = std::thread::scope(|scope| {
            let work = || format(text, width);
            let other = std::thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, work);
            let read = self.compile(&source);
            (read, other.ok().and_then(|other| other.join().ok().flatten()))
        });
        self.host.sources.write().release(&source);
        read?;
        formatted.ok_or_else(|| self.error(changed(&source)))
    }
}

fn changed(source: &Arc<Source>) -> Box<Diag> {
    Diag::error(code::INTERNAL, format!("formatting would change {}", source.name))
        .help("this is a mistake of tscript, not of the script: please report it, with the script")
}

/// Bound: how often a text is formatted again; the second time is mostly the last.
const AGAIN: usize = 3;

/// A text that can be read, formatted; none if that would change more than blanks and commas at the ends of lines.
pub fn format(text: &str, width: usize) -> Option<String> {
    let cut = Cut::of(text)?;
    let mut formatted = once(&cut, width)?;
    // A comment inside a line, or before a comma, may come to stand where it does not count for the width.
    let is_inside =
        |comment: &Comment| !comment.ends_line || text[comment.end as usize..].trim_start().starts_with(',');
    if cut.comments.iter().any(is_inside) {
        for _ in 0..AGAIN {
            let again = once(&Cut::of(&formatted)?, width)?;
            if again == formatted {
                break;
            }
            formatted = again;
        }
    }
    Some(formatted)
}

fn once(cut: &Cut, width: usize) -> Option<String> {
    let text = cut.src;
    let Cut { tokens, comments, .. } = cut;
    let line_end = line_end(text, tokens);
    let mut reader = Reader::new(text, tokens, comments);
    let doc = reader.text();
    if reader.is_too_deep {
        return None;
    }
    let mut printer = Printer::new(text, &reader.docs, comments, width, line_end);
    printer.print(doc);
    let body = align::align(text, printer.out, &printer.trailing, comments);
    let formatted = with_beginning(text, cut.from, line_end, &body);
    same::is_same(cut, &formatted).then_some(formatted)
}

/// The text behind a byte order mark and a `#!` line, which are kept, with at most one blank line between.
fn with_beginning(text: &str, prefix: usize, line_end: &str, body: &str) -> String {
    let beginning = text[..prefix].trim_end();
    if !beginning.contains("#!") {
        return format!("{beginning}{body}");
    }
    let rest = &text[prefix..];
    let blanks = &rest[..rest.len() - rest.trim_start().len()];
    let is_blank = !body.is_empty() && blanks.matches('\n').count() > 1;
    let gap = if is_blank { line_end } else { "" };
    format!("{}{line_end}{gap}{body}", &text[..prefix].trim_end_matches('\r'))
}

/// How the first line ends that does not end inside a string: those in strings stay as they are.
fn line_end(text: &str, tokens: &[Token]) -> &'static str {
    let starts = tokens.iter().map(|token| token.start as usize).chain([text.len()]);
    let ends = [0].into_iter().chain(tokens.iter().map(|token| token.end as usize));
    let between = ends.zip(starts).find_map(|(end, start)| text[end..start].find('\n').map(|at| end + at));
    match between {
        Some(at) if text[..at].ends_with('\r') => "\r\n",
        _ => "\n",
    }
}
