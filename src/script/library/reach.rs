//! Which functions of the library a script can reach, from the words of its text alone (tree shaking). Compiling all
//! of `nn` takes longer than running most scripts that use five layers of it; of a module that one script imports,
//! only these functions are compiled.
//!
//! A function is reached if its name is a word of a user's text, or of a function that is reached; comments of the
//! library do not count, everything else does, including strings. That is more than is ever called. A text with
//! `eval` may name anything. Does not apply to modules of users: those are compiled whole.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// A file of the library: path below `std/`, text.
pub type File = (&'static str, &'static str);

/// Names of the functions that are compiled.
pub type Reached = BTreeSet<&'static str>;

/// A function of a file, with the comments above it: whole lines.
struct Item {
    name: &'static str,
    lines: Range<usize>,
}

/// `None`: everything.
pub fn reached<'a>(files: &[File], users: impl Iterator<Item = &'a str>) -> Option<Reached> {
    let mut bodies: BTreeMap<&str, Vec<&'static str>> = BTreeMap::new();
    for (_, text) in files {
        for item in items(text) {
            bodies.entry(item.name).or_default().push(&text[item.lines]);
        }
    }
    let mut found = Reached::new();
    let mut next: Vec<&'static str> = Vec::new();
    let note = |word: &str, found: &mut Reached, next: &mut Vec<&'static str>| {
        if let Some((&name, _)) = bodies.get_key_value(word)
            && found.insert(name)
        {
            next.push(name);
        }
    };
    for text in users {
        for word in words(text) {
            if word == "eval" {
                return None;
            }
            note(word, &mut found, &mut next);
        }
    }
    while let Some(name) = next.pop() {
        for line in bodies[name].iter().flat_map(|body| body.lines()).filter(|line| !is_comment(line)) {
            words(line).for_each(|word| note(word, &mut found, &mut next));
        }
    }
    Some(found)
}

/// The text with empty lines in place of unreached functions.
pub fn cut(text: &'static str, reached: &Reached) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut from = 0;
    for item in items(text).into_iter().filter(|item| !reached.contains(item.name)) {
        kept.push_str(&text[from..item.lines.start]);
        kept.extend(text[item.lines.clone()].bytes().filter(|&byte| byte == b'\n').map(char::from));
        from = item.lines.end;
    }
    kept.push_str(&text[from..]);
    kept
}

/// The functions of a file of the library, which begin in the first column, one after another.
fn items(text: &'static str) -> Vec<Item> {
    let mut items = Vec::new();
    let (mut at, mut start) = (0, None);
    // The function that has not ended yet.
    let mut open: Option<(&str, usize)> = None;
    for line in text.split_inclusive('\n') {
        let end = at + line.len();
        let trimmed = line.trim_end();
        if let Some((name, start)) = open {
            if trimmed == "}" {
                items.push(Item { name, lines: start..end });
                open = None;
            }
        } else if let Some(name) = defined(trimmed) {
            let start = start.unwrap_or(at);
            match trimmed.ends_with('}') {
                true => items.push(Item { name, lines: start..end }),
                false => open = Some((name, start)),
            }
        }
        start = if is_comment(line) && open.is_none() { start.or(Some(at)) } else { None };
        at = end;
    }
    items
}

/// The function that a line begins to define.
fn defined(line: &'static str) -> Option<&'static str> {
    words(line.strip_prefix("fn ").or_else(|| line.strip_prefix("private fn "))?).next()
}

fn is_comment(line: &str) -> bool {
    line.trim_start().starts_with("//")
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    let of_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let bytes = text.as_bytes();
    let mut at = 0;
    std::iter::from_fn(move || {
        let start = at + bytes[at..].iter().position(|&byte| of_name(byte))?;
        at = bytes[start..].iter().position(|&byte| !of_name(byte)).map_or(bytes.len(), |length| start + length);
        // Both ends are at ASCII characters, or at the end.
        text.get(start..at)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::library::texts::{STD, files};
    use crate::script::session::handle::Session;
    use crate::script::source::scope::definitions;

    /// Checks that all functions of the library have the expected layout.
    #[test]
    fn every_function_of_the_library_is_an_item() {
        for (path, text) in files() {
            let found: BTreeSet<String> = items(text).iter().map(|item| item.name.to_string()).collect();
            let expected: BTreeSet<String> = definitions(text).into_iter().map(|(name, _)| name).collect();
            assert_eq!(found, expected, "{path}");
            let rest = cut(text, &Reached::new());
            assert!(rest.lines().all(|line| line.is_empty() || is_comment(line)), "{path}: {rest}");
            assert_eq!(rest.lines().count(), text.lines().count(), "{path}");
        }
    }

    #[test]
    fn reached_functions_call_only_reached_functions() {
        for library in STD {
            let files = library.files();
            let all: BTreeSet<&str> = files.iter().flat_map(|(_, text)| items(text)).map(|item| item.name).collect();
            for &seed in &all {
                let found = reached(files, [seed].into_iter()).expect("no eval");
                assert!(found.contains(seed));
                for (_, text) in files {
                    let kept = cut(text, &found);
                    let code = kept.lines().filter(|line| !is_comment(line));
                    let lost: Vec<&str> =
                        code.flat_map(words).filter(|word| all.contains(word) && !found.contains(word)).collect();
                    assert!(lost.is_empty(), "{seed}: {lost:?}");
                }
            }
        }
        assert!(reached(STD[0].files(), ["eval(\"1\")"].into_iter()).is_none());
    }

    /// Scripts that import a module, and then one more through a file that needs other functions.
    #[test]
    fn unreached_functions_are_compiled_when_another_source_needs_them() {
        let mut session = Session::builder()
            .module("more", "import \"nn\" as nn; fn make() { import \"nn\" as nn; nn::layer_norm(4) }")
            .build()
            .expect("a session");
        session.runs_one_script();
        let shape: Vec<i64> = session
            .eval(
                "import \"nn\" as nn; let a = nn::linear(3, 4); import \"more\" as more; let b = more::make();
                 b.forward(a.forward(ones([2, 3]))).shape",
            )
            .expect("both are there");
        assert_eq!(shape, [2, 4]);
    }
}
