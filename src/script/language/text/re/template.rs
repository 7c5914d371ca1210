//! What a match is replaced by: `\1`, `\g<name>` and escapes of Python's `re.sub`.

use super::pattern::{Groups, Pattern};
use crate::base::diag::Result;
use crate::fail;

/// A text with places for groups.
pub struct Template(Vec<Piece>);

enum Piece {
    Text(String),
    Group(usize),
}

impl Template {
    pub fn parse(text: &str, pattern: &Pattern) -> Result<Template> {
        let (mut pieces, mut plain) = (Vec::new(), String::new());
        let mut chars = text.chars().peekable();
        while let Some(c) = chars.next() {
            if c != '\\' {
                plain.push(c);
                continue;
            }
            let group = match chars.next() {
                Some('g') => {
                    if chars.next() != Some('<') {
                        fail!(VALUE, "`\\g` in {text:?} goes on with the group in angle brackets: `\\g<1>`");
                    }
                    let name: String = chars.by_ref().take_while(|&c| c != '>').collect();
                    name.parse().ok().or_else(|| pattern.group(&name)).ok_or(name)
                }
                Some(digit @ '1'..='9') => {
                    let mut number = digit.to_string();
                    if let Some(&next @ '0'..='9') = chars.peek() {
                        number.push(next);
                        chars.next();
                    }
                    number.parse().map_err(|_| number)
                }
                Some(c @ ('0' | 'n' | 't' | 'r' | '\\')) => {
                    plain.push(match c {
                        '0' => '\0',
                        'n' => '\n',
                        't' => '\t',
                        'r' => '\r',
                        other => other,
                    });
                    continue;
                }
                Some(c) if c.is_ascii_alphabetic() => fail!(VALUE, "`\\{c}` in {text:?} is no escape"),
                Some(c) => {
                    plain.extend(['\\', c]);
                    continue;
                }
                None => fail!(VALUE, "a backslash stands at the end of {text:?}"),
            };
            match group {
                Ok(group) if group < pattern.names.len() => {
                    pieces.push(Piece::Text(std::mem::take(&mut plain)));
                    pieces.push(Piece::Group(group));
                }
                Ok(group) => {
                    fail!(VALUE, "{text:?} wants group {group}, and the pattern has {}", pattern.names.len() - 1)
                }
                Err(name) => fail!(VALUE, "{text:?} wants the group `{name}`, which the pattern has not"),
            }
        }
        pieces.push(Piece::Text(plain));
        Ok(Template(pieces))
    }

    /// The pieces of the text for one match.
    pub fn filled<'a>(&'a self, text: &'a str, groups: &'a Groups) -> impl Iterator<Item = &'a str> {
        self.0.iter().map(move |piece| match piece {
            Piece::Text(text) => text.as_str(),
            Piece::Group(at) => groups.get(*at).cloned().flatten().map_or("", |range| &text[range]),
        })
    }
}
