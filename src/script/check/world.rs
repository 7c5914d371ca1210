//! What surrounds a text that is checked: the native functions, the modules that it imports, names that it gives to
//! entries of maps.

use crate::base::diag::Diag;
use crate::base::span::Origin;
use crate::script::signature::Signature;
use crate::script::source::Source;
use crate::script::source::lex::Token;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// The types of the parameters of each form of a native function, as the interpreter writes them.
pub type Forms = HashMap<String, Vec<Vec<String>>>;

/// What a module has.
#[derive(Default)]
pub struct Module {
    /// Names with numbers of parameters.
    pub functions: BTreeSet<(String, usize)>,
    /// Of the functions that are called as PyTorch's are.
    pub signatures: BTreeMap<String, Signature>,
}

/// A name that stands for nothing.
#[derive(Clone, Copy)]
pub enum Unknown<'a> {
    /// A function, with the types of what it is called with as the interpreter writes them.
    Function(&'a str, &'a str),
    /// A property, and the type that has it not.
    Property(&'a str, &'a str),
    /// An entry of a map.
    Entry(&'a str),
}

pub struct World<'a> {
    pub source: &'a Source,
    pub tokens: &'a [Token],
    pub forms: &'a Forms,
    /// By the names under which they were imported.
    pub modules: &'a BTreeMap<String, Module>,
    /// Names of entries of maps: what is called so on an unknown value may be a closure of the user's.
    pub keys: HashSet<String>,
    /// Whether a module of the user's own is imported: its maps may have any method.
    pub is_open: bool,
    /// Whether the default dtype of floats may be another than f32.
    pub dtypes_change: bool,
    /// What a run says of an unknown name at a token.
    pub words: &'a dyn Fn(Unknown, u32) -> Box<Diag>,
}

impl World<'_> {
    pub fn origin(&self, token: u32) -> Origin {
        self.tokens.get(token as usize).map_or(Origin::NONE, |token| Origin::at(self.source.site(token.start as usize)))
    }

    /// Whether a native function of that name takes so many values, that of a method among them.
    pub fn takes(&self, name: &str, values: usize) -> bool {
        self.forms.get(name).is_some_and(|forms| forms.iter().any(|form| form.len() == values))
    }

    /// Whether a native function takes a value of a type first.
    pub fn takes_first(&self, name: &str, values: usize, of: &str) -> bool {
        let fits = |form: &Vec<String>| form.len() == values && form.first().is_some_and(|first| first == of);
        self.forms.get(name).is_some_and(|forms| forms.iter().any(fits))
    }
}

/// Reads what the interpreter lists: `push(array: &mut Array, item: ?)`.
pub fn forms(signatures: &[String]) -> Forms {
    let mut found = Forms::new();
    for signature in signatures {
        let Some((name, rest)) = signature.split_once('(') else { continue };
        let Some((inside, _)) = rest.rsplit_once(')') else { continue };
        found.entry(name.trim().to_string()).or_default().push(types(inside));
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
        let written = written.trim_start_matches("&mut ").trim_start_matches('&').trim();
        match written {
            "Array" => "array",
            "Map" => "map",
            "str" | "ImmutableString" | "String" => "string",
            "FnPtr" => "Fn",
            "INT" => "i64",
            "FLOAT" => "f64",
            "Dynamic" | "_" => "?",
            other => other,
        }
        .to_string()
    };
    parts.iter().filter(|part| !part.trim().is_empty()).map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interpreters_list_is_read() {
        let found = forms(&["push(array: &mut Array, item: ?)".into(), "f(a: i64) -> Range<i64>".into(), "g()".into()]);
        assert_eq!(found["push"], [["array", "?"]]);
        assert_eq!(found["f"], [["i64"]]);
        assert_eq!(found["g"], [[""; 0]]);
    }
}
