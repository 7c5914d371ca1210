//! Unique names for functions. Rhai looks a function up by its name alone, in everything that is loaded, and caches
//! the result: of two modules with a function `helper`, both would call the same one, and a function `relu` of a
//! script would be called by the library. So the functions of a module, and those of a script with the name of a
//! native function or of a variable that a closure takes along, are renamed at their definition and wherever their own
//! source calls them. Other sources use `module::f` by a second name, `f__x`.
//!
//! A call means the source's own function if one with that name and number of parameters is defined there; any other
//! call is unchanged. `written` converts a name back to the user's.

use super::lex::{Kind, Token, lex, script_start};
use super::tree::{CallForm, Earlier, Tree};
use std::collections::{BTreeSet, HashSet};

/// The module in which the language's constants stand for the pass.
pub const CONSTANTS: &str = "__c";

/// A function by its written name and number of parameters.
pub type Function = (String, usize);

/// How the functions of a source are named.
#[derive(Clone, Copy)]
pub struct Names<'a> {
    /// The suffix of its own functions.
    pub suffix: &'a str,
    /// Whether all functions of the source are renamed, as in a module.
    pub all: bool,
    /// Whether a native function has the name.
    pub is_taken: &'a dyn Fn(&str) -> bool,
    /// Functions that other texts of the same scope define.
    pub elsewhere: &'a BTreeSet<Function>,
    /// Constants of the language that are not hidden by a variable of an earlier text.
    pub constants: &'a [&'a str],
    /// What earlier texts of the same scope have declared.
    pub earlier: &'a Earlier,
}

impl Names<'_> {
    /// No function is renamed.
    pub const NONE: Names<'static> = Names {
        suffix: "",
        all: false,
        is_taken: &|_| false,
        elsewhere: &BTreeSet::new(),
        constants: &[],
        earlier: &Earlier::NONE,
    };
}

/// The suffix of a script's own functions.
pub const SCRIPT: &str = "__in0";
/// The suffix under which others call a module's function.
pub const EXPORTED: &str = "__x";

/// The suffix of a module: its number in the session, or its name in the library.
pub fn suffix(module: &str) -> String {
    format!("__in{module}")
}

/// The name that the user wrote for a function.
pub fn written(name: &str) -> &str {
    if let Some(plain) = name.strip_suffix(EXPORTED).filter(|plain| !plain.is_empty()) {
        return plain;
    }
    match name.rfind("__in").filter(|&at| at > 0) {
        Some(at) if is_module(&name[at + 4..]) => &name[..at],
        _ => name,
    }
}

fn is_module(word: &str) -> bool {
    let number = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
    number || word.strip_prefix('_').is_some_and(|name| name.bytes().all(|byte| byte.is_ascii_lowercase()))
}

/// The functions that a text defines; none if it is invalid, which is reported elsewhere.
pub fn definitions(src: &str) -> BTreeSet<Function> {
    let Ok(tokens) = lex(src, script_start(src)) else { return BTreeSet::new() };
    let text = |index: usize| tokens.get(index).map_or("", |token: &Token| &src[token.range()]);
    (0..tokens.len())
        .filter(|&at| text(at) == "fn" && text(at + 2) == "(" && tokens[at + 1].kind == Kind::Word)
        .map(|at| (text(at + 1).to_string(), parameters(&tokens, at + 2)))
        .collect()
}

/// The number of parameters between the parenthesis `open` and its partner.
pub fn parameters(tokens: &[Token], open: usize) -> usize {
    tokens[open..tokens[open].partner as usize].iter().filter(|token| token.kind == Kind::Word).count()
}

/// Uses of the language's constants: no variable of that name is visible. Otherwise a closure would try to capture a
/// variable.
pub fn constants(src: &str, tokens: &[Token], tree: &Tree, names: &Names) -> Vec<usize> {
    let text = |index: u32| &src[tokens[index as usize].range()];
    let mut found: Vec<u32> =
        tree.values.iter().copied().filter(|&name| names.constants.contains(&text(name))).collect();
    if !found.is_empty() {
        let variables: HashSet<&str> = tree.declared.iter().map(|&name| text(name)).collect();
        found.retain(|&name| !variables.contains(text(name)));
    }
    found.into_iter().map(|name| tokens[name as usize].start as usize).collect()
}

/// Bytes of the source after which the suffix is inserted.
pub fn places(src: &str, tokens: &[Token], tree: &Tree, names: &Names) -> Vec<usize> {
    let text = |index: u32| &src[tokens[index as usize].range()];
    let end = |index: u32| tokens[index as usize].end as usize;
    // Rhai takes no variable along that has the name of a function.
    let captured: HashSet<&str> = tree.captured.iter().map(|&name| text(name)).collect();
    let is_renamed = |name: &str| names.all || captured.contains(name) || (names.is_taken)(name);
    let own: Vec<_> = tree.definitions.iter().filter(|found| is_renamed(text(found.name))).collect();
    let mut functions: HashSet<(&str, usize)> =
        names.elsewhere.iter().map(|(name, count)| (name.as_str(), *count)).collect();
    functions.extend(own.iter().map(|found| (text(found.name), found.parameters)));
    let mut places: Vec<usize> = own.iter().map(|found| end(found.name)).collect();
    if functions.is_empty() {
        return places;
    }
    let methods: HashSet<(&str, usize)> =
        own.iter().filter(|found| found.uses_this).map(|found| (text(found.name), found.parameters)).collect();
    for call in &tree.calls {
        let expected = (text(call.name), call.arguments);
        let found = match call.form {
            CallForm::Plain => functions.contains(&expected),
            CallForm::Method => methods.contains(&expected),
            CallForm::Qualified => false,
        };
        if found {
            places.push(end(call.name));
        }
    }
    let any: HashSet<&str> = functions.iter().map(|(name, _)| *name).collect();
    // `Fn("f")` and `is_def_fn("f", 1)`: after the name, before the closing quote.
    let quoted = tree.quoted.iter().filter(|&&string| any.contains(text(string).trim_matches('"')));
    places.extend(quoted.map(|&string| end(string) - 1));
    // A function's name as a value.
    let values = tree.free.iter().filter(|&&name| any.contains(text(name)));
    places.extend(values.map(|&name| end(name)));
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_back() {
        for (name, expected) in [
            ("relu__in0", "relu"),
            ("relu__in_nn", "relu"),
            ("relu__x", "relu"),
            ("__new__in3", "__new"),
            ("f__inner", "f__inner"),
            ("__in0", "__in0"),
            ("__x", "__x"),
            ("f", "f"),
        ] {
            assert_eq!(written(name), expected);
        }
    }
}
