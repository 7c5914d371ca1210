//! Patterns of `let`, `const` and `for`: the value is unpacked (`language/unpack.rs`) into the first name, and the other names
//! take their parts from it.

use super::edit::Edit;
use super::lex::Token;
use super::pass::IGNORED;
use super::tree::{Destructured, Pattern, Tree};

/// The patterns of a text with the texts that stand in their places.
pub struct Patterns<'t> {
    all: Vec<(&'t Pattern, Texts)>,
}

struct Texts {
    /// In the place of the pattern, with the blanks that part it from words around it.
    name: String,
    /// Behind the value.
    close: String,
    /// Behind that, or at the beginning of the loop's body; with the names' tokens where each is declared or given its part.
    parts: Vec<(String, Option<u32>)>,
}

impl<'t> Patterns<'t> {
    pub fn new(src: &str, tokens: &[Token], tree: &'t Tree) -> Patterns<'t> {
        Patterns { all: tree.patterns.iter().map(|pattern| (pattern, texts(src, tokens, pattern))).collect() }
    }

    pub fn edit<'a>(&'a self, edits: &mut Vec<Edit<'a>>, tokens: &[Token]) {
        for (pattern, texts) in &self.all {
            let range = |token: u32| tokens[token as usize].range();
            let whole = range(pattern.run.first).start..range(pattern.run.last).end;
            let of_pattern = |edit: Edit<'a>| edit.standing_for(whole.clone());
            edits.push(of_pattern(Edit::before(whole.start, &texts.name).outermost()));
            for token in (pattern.run.first..=pattern.run.last).map(range) {
                edits.push(Edit::before(token.start, "").removing(token.len()));
            }
            let at = match pattern.of {
                Destructured::Let(value) | Destructured::Const(value) => {
                    let (start, end) = (range(value.first).start, range(value.last).end);
                    edits.push(of_pattern(Edit::before(start, "__unpack(").outermost()));
                    edits.push(of_pattern(Edit::behind(end, &texts.close).outermost()));
                    Edit::behind(end, "").outermost()
                }
                Destructured::Each(brace) => Edit::behind(range(brace).end, ""),
            };
            edits.extend(texts.parts.iter().map(|(text, name)| {
                let stands_for = name.map_or(whole.clone(), range);
                Edit { text, is_moved: name.is_some(), ..at.clone() }.standing_for(stands_for)
            }));
        }
    }
}

fn texts(src: &str, tokens: &[Token], pattern: &Pattern) -> Texts {
    let text = |token: u32| &src[tokens[token as usize].range()];
    let spec: String = (pattern.run.first..=pattern.run.last).map(text).collect();
    let close = format!(",\"{}\")", spec.replace(['"', '\\', '\n', '\r'], "'"));
    let names: Vec<&str> = pattern.names.iter().map(|&name| text(name)).collect();
    let is_constant = matches!(pattern.of, Destructured::Const(_));
    // A constant cannot hold all parts first and then its own.
    let (name, rest) = match names.split_first() {
        Some((first, rest)) if !is_constant => (*first, rest),
        _ => (IGNORED[0], &names[..]),
    };
    let word = if is_constant { "const" } else { "let" };
    let from = names.len() - rest.len();
    let mut parts = vec![match pattern.of {
        Destructured::Each(_) => (format!("let {name}=__unpack({name}{close};"), None),
        _ => (";".to_string(), None),
    }];
    for (at, (part, token)) in rest.iter().zip(&pattern.names[from..]).enumerate() {
        parts.extend([(format!("{word} "), None), (part.to_string(), Some(*token))]);
        parts.push((format!("={name}[{}];", at + from), None));
    }
    if from == 1 {
        parts.extend([(name.to_string(), Some(pattern.names[0])), (format!("={name}[0]"), None)]);
    }
    if matches!(pattern.of, Destructured::Each(_)) {
        parts.push((";".to_string(), None));
    }
    // `for[i, x]in xs`: brackets need no blanks around them, and a name does.
    let touches = |c: Option<char>| if c.is_some_and(|c| c.is_alphanumeric() || c == '_') { " " } else { "" };
    let range = |token: u32| tokens[token as usize].range();
    let before = touches(src[..range(pattern.run.first).start].chars().next_back());
    let after = touches(src[range(pattern.run.last).end..].chars().next());
    Texts { name: format!("{before}{name}{after}"), close, parts }
}
