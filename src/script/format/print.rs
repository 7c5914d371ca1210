//! From a document to lines of at most so many characters.

use super::align::Trailing;
use super::comments::Comment;
use super::doc::{Choice, Doc, Docs, Node};

const INDENT: u32 = 4;

/// A part that is still to be printed.
#[derive(Clone, Copy)]
struct Part {
    indent: u32,
    flat: bool,
    doc: Doc,
}

pub struct Printer<'a> {
    pub src: &'a str,
    pub docs: &'a Docs,
    pub comments: &'a [Comment],
    pub width: usize,
    pub line_end: &'static str,
    pub out: String,
    /// Comments behind code, for their alignment.
    pub trailing: Vec<Trailing>,
    /// Characters on the line so far.
    column: usize,
    line: usize,
    /// Characters before the next text of a new line.
    indent: usize,
    /// A comment came last behind which nothing may stand.
    must_end: bool,
    /// Where a comment came last that stands close to the bracket before it, as it does not where its line ends.
    close: Option<usize>,
    rest: Vec<Part>,
    tried: Vec<Part>,
}

impl<'a> Printer<'a> {
    pub fn new(src: &'a str, docs: &'a Docs, comments: &'a [Comment], width: usize, line_end: &'static str) -> Self {
        Printer {
            src,
            docs,
            comments,
            width,
            line_end,
            out: String::with_capacity(src.len() + src.len() / 4),
            trailing: Vec::new(),
            column: 0,
            line: 0,
            indent: 0,
            must_end: false,
            close: None,
            rest: Vec::new(),
            tried: Vec::new(),
        }
    }

    pub fn print(&mut self, doc: Doc) {
        self.rest.push(Part { indent: 0, flat: false, doc });
        while let Some(part) = self.rest.pop() {
            self.part(part);
        }
    }

    fn push(&mut self, part: Part, flat: bool, doc: Doc) {
        self.rest.push(Part { flat, doc, ..part });
    }

    fn part(&mut self, part: Part) {
        match self.docs.node(part.doc) {
            Node::Source { start, end } => self.text(&self.src[start as usize..end as usize], part.indent),
            Node::Words(words) => self.text(words, part.indent),
            Node::Concat { first, count } => {
                let docs = self.docs;
                let parts = docs.parts(first, count).iter().rev();
                self.rest.extend(parts.map(|&doc| Part { doc, ..part }));
            }
            Node::Indent(doc) => self.rest.push(Part { indent: part.indent + INDENT, doc, ..part }),
            Node::Line { flat, .. } if part.flat && !self.must_end => self.text(flat, part.indent),
            Node::Line { blank, .. } | Node::End { blank } => self.end_line(blank, part.indent),
            Node::Group(doc) => {
                let flat = part.flat || (!self.docs.is_forced(part.doc) && self.fits(&[(true, doc)], part));
                self.push(part, flat, doc);
            }
            Node::IfBroken(words) if !part.flat => self.text(words, part.indent),
            Node::IfBroken(_) => {}
            Node::Choice(choice) => self.choose(choice, part),
            Node::Comment(index) => self.comment(index as usize, part.indent),
        }
    }

    fn choose(&mut self, choice: Choice, part: Part) {
        let Choice { head, last, tail, .. } = choice;
        let is_flat = part.flat
            || (!self.docs.is_forced(part.doc) && self.fits(&[(true, head), (true, last), (true, tail)], part));
        if is_flat || self.alone(choice).is_some_and(|parts| self.fits(&parts, part)) {
            self.push(part, true, tail);
            self.push(part, is_flat, last);
            self.push(part, true, head);
        } else {
            self.push(part, false, choice.broken);
        }
    }

    /// The parts of a choice of which only the innermost last one is broken, if that is possible.
    fn alone(&self, choice: Choice) -> Option<[(bool, Doc); 5]> {
        let is_outside = |choice: Choice| [choice.head, choice.tail].iter().any(|&part| self.docs.is_forced(part));
        if !choice.hugs || is_outside(choice) {
            return None;
        }
        let Choice { head, last, tail, .. } = choice;
        match self.docs.node(last) {
            Node::Choice(inner) if choice.is_chain => {
                let is_possible = inner.hugs && !is_outside(inner);
                is_possible.then_some([
                    (true, head),
                    (true, inner.head),
                    (false, inner.last),
                    (true, inner.tail),
                    (true, tail),
                ])
            }
            _ => Some([(true, head), (true, Docs::NOTHING), (false, last), (true, Docs::NOTHING), (true, tail)]),
        }
    }

    /// Whether parts, each flat or broken, fit on the line up to its first end, with what follows them.
    fn fits(&mut self, parts: &[(bool, Doc)], of: Part) -> bool {
        let mut left = self.width.saturating_sub(if self.column == 0 { self.indent } else { self.column }) as isize;
        let mut tried = std::mem::take(&mut self.tried);
        tried.clear();
        tried.extend(parts.iter().rev().map(|&(flat, doc)| Part { flat, doc, ..of }));
        let mut rest = self.rest.len();
        // What was left before the comments that came last: they may stand beyond the width where the line ends behind
        // them, for nothing is gained by breaking what is before.
        let mut before = None;
        let fits = loop {
            let part = match tried.pop() {
                Some(part) => part,
                None if rest == 0 => break true,
                None => {
                    rest -= 1;
                    self.rest[rest]
                }
            };
            match self.docs.node(part.doc) {
                Node::Source { start, end } => {
                    let text = &self.src[start as usize..end as usize];
                    match text.split_once('\n') {
                        None => left -= width(text),
                        Some((first, _)) if left < width(first) => break false,
                        Some(_) => left = self.width as isize - width(last_line(text)),
                    }
                }
                Node::Words(words) => left -= words.len() as isize,
                Node::IfBroken(words) if !part.flat => left -= words.len() as isize,
                Node::IfBroken(_) => {}
                Node::Line { flat, .. } if part.flat => left -= flat.len() as isize,
                Node::Line { .. } | Node::End { .. } => break true,
                Node::Concat { first, count } => {
                    let parts = self.docs.parts(first, count).iter().rev();
                    tried.extend(parts.map(|&doc| Part { doc, ..part }));
                }
                Node::Indent(doc) => tried.push(Part { doc, ..part }),
                Node::Group(doc) => tried.push(Part { doc, flat: part.flat && !self.docs.is_forced(part.doc), ..part }),
                Node::Choice(Choice { head, last, tail, .. }) if part.flat => {
                    tried.extend([tail, last, head].map(|doc| Part { doc, ..part }));
                }
                // Where the last arguments of a chain alone may be broken, its calls are not put on lines of their own.
                Node::Choice(choice) if choice.is_chain && choice.hugs => match self.alone(choice) {
                    Some(parts) => tried.extend(parts.iter().rev().map(|&(flat, doc)| Part { flat, doc, ..part })),
                    None => break false,
                },
                Node::Choice(choice) => tried.push(Part { doc: choice.broken, ..part }),
                Node::Comment(index) if self.comments[index as usize].ends_line => break true,
                Node::Comment(index) => {
                    before.get_or_insert(left);
                    left -= self.comments[index as usize].range().len() as isize + 1;
                    continue;
                }
            }
            match self.docs.node(part.doc) {
                Node::Source { .. } => before = None,
                Node::Words(words) if words != " " => before = None,
                Node::IfBroken(_) if !part.flat => before = None,
                _ => {}
            }
            if before.unwrap_or(left) < 0 {
                break false;
            }
        };
        self.tried = tried;
        fits
    }

    fn text(&mut self, text: &str, indent: u32) {
        if text.is_empty() || (text == " " && self.column == 0) {
            return;
        }
        if self.must_end {
            self.end_line(false, indent);
            if text == " " {
                return;
            }
        }
        self.close = None;
        self.begin_line();
        if merges(self.out.as_bytes(), text.as_bytes()) {
            self.out.push(' ');
            self.column += 1;
        }
        self.out.push_str(text);
        self.moved(text);
    }

    fn begin_line(&mut self) {
        if self.column == 0 {
            self.out.extend(std::iter::repeat_n(' ', self.indent));
            self.column = self.indent;
        }
    }

    fn moved(&mut self, text: &str) {
        match text.contains('\n') {
            true => {
                self.line += text.matches('\n').count();
                self.column = width(last_line(text)) as usize;
            }
            false => self.column += width(text) as usize,
        }
    }

    fn end_line(&mut self, blank: bool, indent: u32) {
        self.must_end = false;
        self.indent = indent as usize;
        if self.out.is_empty() {
            return;
        }
        if let Some(at) = self.close.take() {
            self.out.insert(at, ' ');
        }
        self.trim();
        self.out.push_str(self.line_end);
        if blank {
            self.out.push_str(self.line_end);
        }
        self.line += 1 + blank as usize;
        self.column = 0;
    }

    fn trim(&mut self) {
        self.out.truncate(self.out.trim_end_matches(' ').len());
    }

    fn comment(&mut self, index: usize, indent: u32) {
        let comment = self.comments[index];
        if self.must_end {
            self.end_line(false, indent);
        }
        if self.column > 0 && comment.ends_line && !comment.trails {
            self.end_line(false, indent);
        }
        let has_code = self.column > 0;
        if has_code {
            let before = self.out.len();
            self.trim();
            self.column -= before - self.out.len();
            let opened = self.out.ends_with(['(', '[', '.', '|', '-', '!']) && !comment.ends_line;
            self.close = opened.then_some(self.out.len());
            if !opened {
                self.out.push(' ');
                self.column += 1;
            }
        }
        self.begin_line();
        if has_code && comment.is_line {
            self.trailing.push(Trailing { at: self.out.len(), line: self.line, column: self.column, comment: index });
        }
        let text = &self.src[comment.range()];
        if text.contains('\n') {
            let text = block(text, self.line_end, self.column);
            self.out.push_str(&text);
            self.moved(&text);
        } else {
            self.out.push_str(text);
            self.moved(text);
        }
        self.must_end = comment.ends_line;
    }
}

/// A comment of several lines. If each begins with a star, the stars stand below each other.
fn block(text: &str, line_end: &str, column: usize) -> String {
    let starred = text.lines().skip(1).all(|line| line.trim_start().starts_with('*'));
    let mut lines = text.lines();
    let mut written = lines.next().unwrap_or_default().trim_end().to_string();
    for line in lines {
        written.push_str(line_end);
        if starred {
            written.extend(std::iter::repeat_n(' ', column + 1));
            written.push_str(line.trim());
        } else {
            written.push_str(line.trim_end());
        }
    }
    written
}

fn last_line(text: &str) -> &str {
    text.rsplit('\n').next().unwrap_or(text)
}

fn width(text: &str) -> isize {
    (if text.is_ascii() { text.len() } else { text.chars().count() }) as isize
}

/// Whether two texts that stand side by side would be read as other tokens.
fn merges(before: &[u8], after: &[u8]) -> bool {
    let (Some(&last), Some(&first)) = (before.last(), after.first()) else { return false };
    let word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    match (last, first) {
        (b'-' | b'+' | b'|' | b'&' | b'.' | b'*' | b'<' | b'=' | b':' | b'?', _) if last == first => true,
        (b'!' | b'-' | b'+' | b'*' | b'/' | b'%' | b'&' | b'|' | b'^' | b'<' | b'>' | b'=', b'=') => true,
        _ => word(last) && word(first),
    }
}
