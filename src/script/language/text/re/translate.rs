//! Patterns of Python's `re` as patterns of the crate `fancy_regex`, which has another syntax for classes and braces,
//! and other meanings of `\w`, `\s`, `$` and `\Z`. Source: "Regular Expression Syntax" of Python's library reference.

use std::iter::Peekable;
use std::str::Chars;

/// Flags with Python's numbers.
pub const IGNORECASE: i64 = 2;
pub const MULTILINE: i64 = 8;
pub const DOTALL: i64 = 16;
pub const UNICODE: i64 = 32;
pub const VERBOSE: i64 = 64;
pub const ASCII: i64 = 256;

/// A pattern in the other syntax.
pub struct Translated {
    /// For texts of ASCII that do not end in a line break, where boundaries and ends of the crate are Python's.
    pub plain: String,
    /// For all others.
    pub exact: String,
    pub flags: i64,
}

/// The pattern, or why it is none.
pub fn translate(pattern: &str, flags: i64) -> Result<Translated, String> {
    let (flags, rest) = leading_flags(pattern, flags)?;
    let mut out = Translator {
        chars: rest.chars().peekable(),
        plain: String::new(),
        exact: String::new(),
        flags,
        open: Vec::new(),
        groups: 0,
    };
    out.run()?;
    let mut prefix = String::from("(?");
    for (flag, letter) in [(IGNORECASE, 'i'), (MULTILINE, 'm'), (DOTALL, 's')] {
        if flags & flag != 0 {
            prefix.push(letter);
        }
    }
    let prefix = if prefix.len() > 2 { prefix + ")" } else { String::new() };
    Ok(Translated { plain: format!("{prefix}{}", out.plain), exact: format!("{prefix}{}", out.exact), flags })
}

/// `(?im)` at the start.
fn leading_flags(pattern: &str, mut flags: i64) -> Result<(i64, &str), String> {
    let mut rest = pattern;
    while let Some(inside) = rest.strip_prefix("(?") {
        let Some((letters, after)) = inside.split_once(')') else { break };
        if letters.is_empty() || !letters.chars().all(|c| c.is_ascii_lowercase()) || letters.starts_with('P') {
            break;
        }
        for letter in letters.chars() {
            flags |= flag(letter).ok_or_else(|| format!("there is no flag `{letter}`"))?;
        }
        rest = after;
    }
    Ok((flags, rest))
}

/// The number of a flag's letter.
pub fn flag(letter: char) -> Option<i64> {
    Some(match letter {
        'i' => IGNORECASE,
        'm' => MULTILINE,
        's' => DOTALL,
        'x' => VERBOSE,
        'a' => ASCII,
        'u' => UNICODE,
        _ => return None,
    })
}

struct Translator<'a> {
    chars: Peekable<Chars<'a>>,
    plain: String,
    exact: String,
    flags: i64,
    open: Vec<Group>,
    /// How many groups with a number began.
    groups: usize,
}

/// A group that is open.
struct Group {
    /// The flags behind it.
    flags: i64,
    /// Where it starts in both patterns.
    start: (usize, usize),
    is_lookaround: bool,
    number: Option<usize>,
}

/// What a quantifier stands behind.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Before {
    /// The start of a pattern, group or alternative.
    Nothing,
    Place,
    Item,
    Quantifier,
}

impl Translator<'_> {
    fn has(&self, flag: i64) -> bool {
        self.flags & flag != 0
    }

    fn push(&mut self, text: &str) {
        self.plain.push_str(text);
        self.exact.push_str(text);
    }

    fn run(&mut self) -> Result<(), String> {
        let mut before = Before::Nothing;
        while let Some(c) = self.chars.next() {
            before = match c {
                '*' | '+' | '?' => self.quantifier(&c.to_string(), before)?,
                '{' => match self.counts() {
                    Some(counts) => self.quantifier(&counts, before)?,
                    None => self.item("\\{"),
                },
                '}' => self.item("\\}"),
                '[' => self.class()?,
                '\\' => self.escape()?,
                '(' => self.group()?,
                ')' => self.close()?,
                '|' => {
                    self.push("|");
                    Before::Nothing
                }
                '^' => self.place("^", "^"),
                '$' if self.has(MULTILINE) => self.place("$", "$"),
                '$' => self.place("$", r"(?=\n?\z)"),
                '#' if self.has(VERBOSE) => {
                    while self.chars.next().is_some_and(|c| c != '\n') {}
                    before
                }
                c if self.has(VERBOSE) && c.is_ascii_whitespace() => before,
                // The crate would take a tab or blank for nothing, were a flag `x` inside the pattern.
                c => self.item(c.encode_utf8(&mut [0; 4])),
            };
        }
        if self.open.is_empty() { Ok(()) } else { Err("a `(` is never closed".into()) }
    }

    fn item(&mut self, text: &str) -> Before {
        self.push(text);
        Before::Item
    }

    /// What matches a place, not characters.
    fn place(&mut self, plain: &str, exact: &str) -> Before {
        self.plain.push_str(plain);
        self.exact.push_str(exact);
        Before::Place
    }

    fn quantifier(&mut self, text: &str, before: Before) -> Result<Before, String> {
        match before {
            Before::Nothing | Before::Place => return Err(format!("nothing stands before `{text}` to repeat")),
            Before::Quantifier => return Err(format!("`{text}` repeats a repetition; put it in `(?:..)`")),
            Before::Item => self.push(text),
        }
        if let Some(mark @ ('?' | '+')) = self.chars.peek().copied() {
            self.chars.next();
            self.push(mark.encode_utf8(&mut [0; 4]));
        }
        Ok(Before::Quantifier)
    }

    /// `{2}`, `{2,}`, `{,3}`, `{2,3}`; none where the brace is a character like others.
    fn counts(&mut self) -> Option<String> {
        let rest: String = self.chars.clone().take_while(|&c| c != '}').collect();
        let (least, most) = rest.split_once(',').unwrap_or((&rest, &rest));
        let is_count = |text: &str| text.chars().all(|c| c.is_ascii_digit());
        let is_closed = self.chars.clone().nth(rest.chars().count()) == Some('}');
        if !is_closed || !is_count(least) || !is_count(most) || (least.is_empty() && most.is_empty() && rest != ",") {
            return None;
        }
        // With the brace behind them.
        self.chars.nth(rest.len());
        let least = if least.is_empty() { "0" } else { least };
        Some(if rest.contains(',') { format!("{{{least},{most}}}") } else { format!("{{{least}}}") })
    }

    fn numbered(&mut self) {
        self.groups += 1;
        if let Some(group) = self.open.last_mut() {
            group.number = Some(self.groups);
        }
    }

    fn looks_around(&mut self) {
        if let Some(group) = self.open.last_mut() {
            group.is_lookaround = true;
        }
    }

    fn close(&mut self) -> Result<Before, String> {
        let Group { flags, start, is_lookaround, .. } = self.open.pop().ok_or("a `)` closes nothing")?;
        self.flags = flags;
        self.push(")");
        let repeated = is_lookaround.then(|| self.least()).flatten();
        Ok(match repeated {
            // The crate repeats no lookaround; what matches no characters is there once or not at all.
            Some((0, is_lazy)) => {
                let [open, close] = if is_lazy { ["(?:|", ")"] } else { ["(?:", "|)"] };
                self.plain.insert_str(start.0, open);
                self.exact.insert_str(start.1, open);
                self.push(close);
                Before::Quantifier
            }
            Some(_) => Before::Quantifier,
            None => Before::Item,
        })
    }

    /// Takes the quantifier that stands here: how often it repeats at least, and whether it prefers fewer.
    fn least(&mut self) -> Option<(u32, bool)> {
        let least = match self.chars.peek()? {
            '*' | '?' => {
                self.chars.next();
                0
            }
            '+' => {
                self.chars.next();
                1
            }
            '{' => {
                let before = self.chars.clone();
                self.chars.next();
                let Some(counts) = self.counts() else {
                    self.chars = before;
                    return None;
                };
                counts.trim_matches(['{', '}']).split(',').next()?.parse().ok()?
            }
            _ => return None,
        };
        let mark = self.chars.next_if(|c| matches!(c, '?' | '+'));
        Some((least, mark == Some('?')))
    }

    fn group(&mut self) -> Result<Before, String> {
        let start = (self.plain.len(), self.exact.len());
        self.open.push(Group { flags: self.flags, start, is_lookaround: false, number: None });
        if self.chars.peek() != Some(&'?') {
            self.push("(");
            self.numbered();
            return Ok(Before::Nothing);
        }
        self.chars.next();
        match self.chars.next() {
            Some('#') => {
                if !self.chars.any(|c| c == ')') {
                    return Err("a `(?#` is never closed".into());
                }
                self.open.pop();
                return Ok(Before::Item);
            }
            Some('P') => match self.chars.next() {
                Some('<') => self.named("(?P<")?,
                Some('=') => {
                    let name: String = self.chars.by_ref().take_while(|&c| c != ')').collect();
                    self.open.pop();
                    return Ok(self.item(&format!("(?P={name})")));
                }
                _ => return Err("`(?P` goes on with `<name>` or `=name`".into()),
            },
            Some('<') if matches!(self.chars.peek(), Some('=' | '!')) => {
                let kind = self.chars.next().unwrap_or('=');
                self.looks_around();
                self.push(&format!("(?<{kind}"));
            }
            Some('<') => return Err("a group with a name is written `(?P<name>..)`".into()),
            Some(c @ ('=' | '!')) => {
                self.looks_around();
                self.push(&format!("(?{c}"));
            }
            Some(c @ (':' | '>')) => self.push(&format!("(?{c}")),
            Some('(') => {
                let name: String = self.chars.by_ref().take_while(|&c| c != ')').collect();
                let is_number = name.chars().all(|c| c.is_ascii_digit());
                self.push(&if is_number { format!("(?({name})") } else { format!("(?(<{name}>)") });
            }
            Some(c) => self.flag_group(c)?,
            None => return Err("a `(?` is never closed".into()),
        }
        Ok(Before::Nothing)
    }

    fn named(&mut self, start: &str) -> Result<(), String> {
        let name: String = self.chars.by_ref().take_while(|&c| c != '>').collect();
        let mut chars = name.chars();
        let is_name = chars.next().is_some_and(|c| c.is_alphabetic() || c == '_')
            && chars.all(|c| c.is_alphanumeric() || c == '_');
        if !is_name {
            return Err(format!("`{name}` is no name for a group"));
        }
        self.push(&format!("{start}{name}>"));
        self.numbered();
        Ok(())
    }

    /// `(?i:..)`, `(?-i:..)`.
    fn flag_group(&mut self, first: char) -> Result<(), String> {
        let (mut letters, mut on, mut flags) = (String::new(), true, self.flags);
        let mut next = Some(first);
        loop {
            match next {
                Some('-') => {
                    on = false;
                    letters.push('-');
                }
                Some(':') => break,
                Some(')') => return Err("flags for the whole pattern stand at its start".into()),
                Some(letter) => {
                    let flag = flag(letter).ok_or_else(|| format!("there is no flag `{letter}`"))?;
                    flags = if on { flags | flag } else { flags & !flag };
                    // The others are translated here.
                    if matches!(letter, 'i' | 'm' | 's') {
                        letters.push(letter);
                    }
                }
                None => return Err("a `(?` is never closed".into()),
            }
            next = self.chars.next();
        }
        self.flags = flags;
        let letters = letters.strip_suffix('-').unwrap_or(&letters);
        self.push(&format!("(?{letters}:"));
        Ok(())
    }

    /// Behind a backslash, outside of classes.
    fn escape(&mut self) -> Result<Before, String> {
        let c = self.chars.next().ok_or("a backslash stands at the end")?;
        let ascii = self.has(ASCII);
        Ok(match c {
            'A' => self.place(r"\A", r"\A"),
            'Z' => self.place(r"\z", r"\z"),
            'b' => {
                let w = format!("[{}]", set('w', ascii));
                self.place(r"\b", &format!("(?:(?<={w})(?!{w})|(?<!{w})(?={w}))"))
            }
            'B' => {
                let w = format!("[{}]", set('w', ascii));
                self.place(r"\B", &format!("(?:(?<={w})(?={w})|(?<!{w})(?!{w}))"))
            }
            'd' | 'D' | 'w' | 'W' | 's' | 'S' => {
                let inside = set(c.to_ascii_lowercase(), ascii);
                self.item(&format!("[{}{inside}]", if c.is_uppercase() { "^" } else { "" }))
            }
            '1'..='9' => {
                let mut number = c.to_string();
                if let Some(&digit @ '0'..='9') = self.chars.peek() {
                    number.push(digit);
                    self.chars.next();
                }
                let group: usize = number.parse().unwrap_or(usize::MAX);
                if group > self.groups {
                    return Err(format!("no group {group} stands before `\\{number}`"));
                }
                if self.open.iter().any(|open| open.number == Some(group)) {
                    return Err(format!("`\\{number}` stands inside its own group"));
                }
                // In a group, so that digits behind it are not taken for more of the number.
                self.item(&format!("(?:\\{number})"))
            }
            c => {
                let literal = self.literal(c)?;
                self.item(&literal)
            }
        })
    }

    /// An escape that stands for one character, or for a property of Unicode.
    fn literal(&mut self, c: char) -> Result<String, String> {
        let code = |chars: &mut Peekable<Chars<'_>>, count: usize| -> Result<String, String> {
            let digits: String = chars.by_ref().take(count).collect();
            let is_code = digits.len() == count && digits.chars().all(|c| c.is_ascii_hexdigit());
            let code = u32::from_str_radix(&digits, 16).ok().filter(|_| is_code).and_then(char::from_u32);
            code.map(escaped).ok_or_else(|| format!("`\\{c}{digits}` is the number of no character"))
        };
        match c {
            'a' => Ok(escaped('\x07')),
            'f' => Ok(escaped('\x0c')),
            'n' => Ok(escaped('\n')),
            'r' => Ok(escaped('\r')),
            't' => Ok(escaped('\t')),
            'v' => Ok(escaped('\x0b')),
            '0' => {
                let mut code = 0;
                for _ in 0..2 {
                    let Some(digit) = self.chars.peek().and_then(|c| c.to_digit(8)) else { break };
                    code = code * 8 + digit;
                    self.chars.next();
                }
                Ok(escaped(char::from_u32(code).unwrap_or('\0')))
            }
            'x' => code(&mut self.chars, 2),
            'u' => code(&mut self.chars, 4),
            'U' => code(&mut self.chars, 8),
            // As in the package `regex`, whose patterns tokenizers use.
            'p' | 'P' => match self.chars.next() {
                Some('{') => {
                    let name: String = self.chars.by_ref().take_while(|&c| c != '}').collect();
                    Ok(format!("\\{c}{{{name}}}"))
                }
                Some(letter) if letter.is_ascii_uppercase() => Ok(format!("\\{c}{letter}")),
                _ => Err(format!("`\\{c}` goes on with a property, as in `\\{c}{{L}}`")),
            },
            c if c.is_ascii_alphabetic() => Err(format!("`\\{c}` is no escape")),
            c => Ok(escaped(c)),
        }
    }

    /// Behind a `[`.
    fn class(&mut self) -> Result<Before, String> {
        let mut out = String::from("[");
        if self.chars.peek() == Some(&'^') {
            self.chars.next();
            out.push('^');
        }
        let mut last = Last::Start;
        loop {
            let c = self.chars.next().ok_or("a `[` is never closed")?;
            let inside = match c {
                ']' if last != Last::Start => break,
                '-' if last == Last::Character && self.continues_range() => {
                    out.push('-');
                    last = Last::Dash;
                    continue;
                }
                '\\' => self.escape_in_class()?,
                c => Inside::Character(escaped(c)),
            };
            last = match inside {
                Inside::Set(_) if last == Last::Dash => return Err("a range ends in a set of characters".into()),
                Inside::Set(set) => {
                    out.push_str(&set);
                    Last::Closed
                }
                Inside::Character(c) => {
                    out.push_str(&c);
                    if last == Last::Dash { Last::Closed } else { Last::Character }
                }
            };
        }
        out.push(']');
        Ok(self.item(&out))
    }

    /// Whether a `-` makes a range: not before the end of the class.
    fn continues_range(&self) -> bool {
        self.chars.clone().next() != Some(']')
    }

    fn escape_in_class(&mut self) -> Result<Inside, String> {
        let c = self.chars.next().ok_or("a backslash stands at the end")?;
        let ascii = self.has(ASCII);
        Ok(match c {
            'b' => Inside::Character(escaped('\x08')),
            'd' | 'w' | 's' => Inside::Set(set(c, ascii).into()),
            'D' | 'W' | 'S' => Inside::Set(format!("[^{}]", set(c.to_ascii_lowercase(), ascii))),
            '1'..='7' => {
                let mut code = c.to_digit(8).unwrap_or(0);
                while let Some(digit) = self.chars.peek().and_then(|c| c.to_digit(8)).filter(|_| code < 64) {
                    code = code * 8 + digit;
                    self.chars.next();
                }
                Inside::Character(escaped(char::from_u32(code).unwrap_or('\0')))
            }
            'p' | 'P' => Inside::Set(self.literal(c)?),
            c => Inside::Character(self.literal(c)?),
        })
    }
}

/// An item of a class.
enum Inside {
    Character(String),
    Set(String),
}

/// What stands before the next item of a class.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Last {
    Start,
    Character,
    /// That of a range.
    Dash,
    /// A range or a set.
    Closed,
}

/// The inside of a class with Python's meaning of `\d`, `\w` or `\s`.
fn set(letter: char, ascii: bool) -> &'static str {
    match (letter, ascii) {
        ('d', false) => r"\p{Nd}",
        ('w', false) => r"\p{L}\p{N}_",
        ('s', false) => r"\s\x1c-\x1f",
        ('d', true) => "0-9",
        ('w', true) => "0-9A-Za-z_",
        _ => r"\x20\t\n\r\x0b\x0c",
    }
}

/// A character as itself, in classes and outside.
fn escaped(c: char) -> String {
    match c {
        c if c.is_ascii_alphanumeric() || !c.is_ascii() || c == '_' => c.to_string(),
        c => format!("\\x{:02x}", c as u32),
    }
}
