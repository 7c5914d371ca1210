//! The forms of native functions: for each name the parameter types of each form, as the interpreter lists them.
//! `check` and error messages use the same list.

use parking_lot::Mutex;
use rhai::Engine;
use std::collections::HashMap;
use std::fmt;
use std::sync::{OnceLock, Weak};

/// By the function's name.
pub type Forms = HashMap<String, Vec<Vec<String>>>;

pub type Written = fn(&str) -> &str;

/// The forms of a session's functions, computed at the first use.
#[derive(Default)]
pub struct LazyForms {
    engine: Mutex<Option<(Weak<Engine>, Written)>>,
    read: OnceLock<Forms>,
}

impl LazyForms {
    /// The session's functions.
    pub fn of(&self, engine: Weak<Engine>, written: Written) {
        *self.engine.lock() = Some((engine, written));
    }

    /// Cost: some milliseconds, the first time.
    pub fn get(&self) -> &Forms {
        self.read.get_or_init(|| {
            let known = self.engine.lock().clone();
            let known = known.and_then(|(engine, written)| Some((engine.upgrade()?, written)));
            known.map(|(engine, written)| forms(&engine.gen_fn_signatures(true), written)).unwrap_or_default()
        })
    }
}

impl fmt::Debug for LazyForms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Listed")
    }
}

/// Parses a line of the interpreter's list: `push(array: &mut Array, item: ?)`.
/// `written` gives the name that scripts use for one of the interpreter's.
pub fn forms(signatures: &[String], written: Written) -> Forms {
    let mut found = Forms::new();
    for signature in signatures {
        let Some((name, rest)) = signature.split_once('(') else { continue };
        let Some((inside, _)) = rest.rsplit_once(')') else { continue };
        // As scripts write it: the source pass has other names for some functions of modules.
        let name = match name.trim().rsplit_once("::") {
            Some((module, name)) => format!("{module}::{}", written(name)),
            None => name.trim().to_string(),
        };
        found.entry(name).or_default().push(types(inside));
    }
    found
}

fn types(inside: &str) -> Vec<String> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 0usize, 0);
    for (at, c) in inside.char_indices() {
        match c {
            '<' | '(' | '[' => depth += 1,
            '>' | ')' | ']' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.push(&inside[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&inside[start..]);
    let one = |part: &&str| {
        let written = part.rsplit_once(": ").map_or(*part, |(_, of)| of).trim();
        plain(written).to_string()
    };
    parts.iter().filter(|part| !part.trim().is_empty()).map(one).collect()
}

/// The name of a type, of several that the interpreter has for it.
pub fn plain(written: &str) -> &str {
    match written.trim().trim_start_matches("&mut ").trim_start_matches('&').trim() {
        "Array" => "array",
        "Map" => "map",
        "str" | "ImmutableString" | "String" | "str | ImmutableString | String" => "string",
        "FnPtr" => "Fn",
        "INT" => "i64",
        "FLOAT" => "f64",
        "Dynamic" | "_" => "?",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interpreters_list_is_parsed() {
        let found = forms(
            &["push(array: &mut Array, item: ?)".into(), "f(a: i64) -> Range<i64>".into(), "g()".into()],
            |name| name,
        );
        assert_eq!(found["push"], [["array", "?"]]);
        assert_eq!(found["f"], [["i64"]]);
        assert_eq!(found["g"], [[""; 0]]);
    }
}
