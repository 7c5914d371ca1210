//! How the advice of a race names the script's streams and lines, so that it can be followed: a variable is named only
//! where the line that needs the call sees it.

use crate::base::span::{Origin, Site};
use crate::sched::streams::watch::Naming;
use crate::script::source::lex::{Token, lex_partial};
use crate::script::source::{Source, SourceKind, SourceMap};
use parking_lot::RwLock;
use std::sync::Arc;

/// The script's expressions for streams and lines.
pub struct Names(pub Arc<RwLock<SourceMap>>);

impl Naming for Names {
    /// From `let NAME = stream(..)`, where the line of `place` sees it.
    fn stream(&self, made: Origin, place: Origin) -> Option<String> {
        let sources = self.0.read();
        let column = sources.location(made.user)?.column;
        let line = sources.line_text(made.user)?;
        // Of several streams that one line makes, the one that is meant.
        let begins = line.char_indices().nth(column.saturating_sub(1)).map_or(0, |(at, _)| at);
        let before =
            if line[begins..].starts_with("stream(") { &line[..begins] } else { line.split("stream(").next()? };
        let name = before.trim_end().strip_suffix('=')?.trim_end();
        let name = name.rsplit(|c: char| !(c.is_alphanumeric() || c == '_')).next()?;
        let (of, at) = (sources.source(made.user)?, sources.source(place.user)?);
        let is_entry = |source: &Source| matches!(source.kind, SourceKind::Repl(_));
        let is_seen = match Arc::ptr_eq(of, at) {
            true => sees(&of.text, of.offset(place.user), of.offset(made.user), is_entry(of)),
            // Later entries of a REPL see the variables of earlier ones; files do not see each other's.
            false => is_entry(of) && is_entry(at),
        };
        (!name.is_empty() && is_seen).then(|| name.to_string())
    }

    /// None in the REPL, where each entry has a line 1.
    fn line(&self, place: Site) -> Option<usize> {
        let sources = self.0.read();
        let is_entry = matches!(sources.source(place)?.kind, SourceKind::Repl(_));
        sources.location(place).map(|location| location.line).filter(|_| !is_entry)
    }

    fn begins_behind_block(&self, place: Site) -> bool {
        let sources = self.0.read();
        let before = || {
            let column = sources.location(place)?.column;
            let line = sources.line_text(place)?;
            let end = line.char_indices().nth(column.saturating_sub(1)).map_or(line.len(), |(at, _)| at);
            Some(line[..end].contains("with_stream"))
        };
        before().unwrap_or(false)
    }
}

/// Whether the line of a byte sees the variable that is declared at another: the declaration comes before the line, in a
/// block around it, and no `fn` begins between the two.
fn sees(text: &str, at: usize, declared: usize, is_entry: bool) -> bool {
    let line = if is_entry { at } else { text[..at].rfind('\n').map_or(0, |end| end + 1) };
    if declared >= line {
        return false;
    }
    let (tokens, _) = lex_partial(text);
    let word = |at: usize| tokens.get(at).map_or("", |token: &Token| &text[token.range()]);
    let inside = |open: usize, place: usize| {
        let close = tokens[open].partner as usize;
        tokens[open].range().start < place && (close <= open || place < tokens[close].range().end)
    };
    let is_function = |open: usize| {
        let close = open.checked_sub(1).filter(|&close| word(close) == ")").map(|close| tokens[close].partner as usize);
        close.and_then(|open| open.checked_sub(2)).is_some_and(|at| word(at) == "fn")
    };
    let mut blocks = (0..tokens.len()).filter(|&open| matches!(word(open), "{" | "#{"));
    blocks.all(|open| match (inside(open, declared), inside(open, at)) {
        (true, false) => false,
        (false, true) => !is_function(open),
        _ => true,
    })
}

#[cfg(test)]
mod tests {
    use super::sees;

    #[test]
    fn a_line_sees_what_is_declared_before_it_in_blocks_around() {
        for (text, expected) in [
            ("let s = 1;\nuse()", true),
            ("use();\nlet s = 1;", false),
            ("let s = 1; use()", false),
            ("let s = 1;\nif x {\n use() }", true),
            ("if x { let s = 1; }\nuse()", false),
            ("for k in x {\nlet s = 1;\nuse()\n}", true),
            ("let s = 1;\nfn f(a) {\nuse()\n}", false),
            ("fn f(a) {\nlet s = 1;\nuse()\n}", true),
            ("let s = 1;\nlet f = |a| {\nuse()\n};", true),
            ("let f = |a| {\nuse()\n};\nlet s = 1;", false),
        ] {
            let place = |word: &str| text.find(word).expect("there");
            assert_eq!(sees(text, place("use"), place("s = 1"), false), expected, "{text}");
        }
    }
}
