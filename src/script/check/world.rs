//! The environment of a text that is checked: native functions, imported modules, names of map entries.

use crate::base::diag::Diag;
use crate::base::signature::{self, Signature};
use crate::base::span::Origin;
use crate::script::library::texts::{Library, STD, public};
use crate::script::source::Source;
use crate::script::source::lex::{Kind, Token, lex, script_start};
use crate::script::source::tree::CopyOf;
use crate::script::values::native_forms::Forms;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::{LazyLock, OnceLock};

/// The contents of a module.
#[derive(Default)]
pub struct Module {
    /// Names with numbers of parameters.
    pub functions: BTreeSet<(String, usize)>,
    /// Signatures, of the functions that have one.
    pub signatures: BTreeMap<String, Signature>,
    /// Variables that `export` names.
    pub exports: BTreeSet<String>,
}

impl Module {
    /// What a text of the module defines.
    pub fn add(&mut self, text: &str) {
        self.functions.extend(public(text));
        self.signatures.extend(signature::read(text).map(|signature| (signature.name.clone(), signature)));
        self.exports.extend(exports(text));
    }

    pub fn extend(&mut self, other: &Module) {
        self.functions.extend(other.functions.iter().cloned());
        self.signatures.extend(other.signatures.iter().map(|(name, signature)| (name.clone(), signature.clone())));
        self.exports.extend(other.exports.iter().cloned());
    }

    /// Of a module of the library, read once.
    pub fn of_library(library: &'static Library) -> &'static Module {
        static READ: LazyLock<BTreeMap<&str, OnceLock<Module>>> =
            LazyLock::new(|| STD.iter().map(|library| (library.name, OnceLock::new())).collect());
        READ[library.name].get_or_init(|| {
            let mut module = Module::default();
            library.files().iter().for_each(|(_, text)| module.add(text));
            module
        })
    }
}

/// `export x`, `export x as y`, `export let x = 1`, `export let [x, y] = f()`: all names behind the word, of which some may
/// be none.
fn exports(text: &str) -> impl Iterator<Item = String> {
    let tokens = match text.contains("export") {
        true => lex(text, script_start(text)).unwrap_or_default(),
        false => Vec::new(),
    };
    let word = |at: usize| tokens.get(at).map_or("", |token| &text[token.range()]);
    let mut found = Vec::new();
    for at in (0..tokens.len()).filter(|&at| tokens[at].kind == Kind::Word && word(at) == "export") {
        let ends = |word: &str| matches!(word, ";" | "=" | "" | "}");
        let names = (at + 1..tokens.len()).take_while(|&at| !ends(word(at)));
        found.extend(names.filter(|&at| tokens[at].kind == Kind::Word).map(|at| word(at).to_string()));
    }
    found.into_iter()
}

/// An undefined name.
#[derive(Clone, Copy)]
pub enum Unknown<'a> {
    /// A function, with the argument types in the interpreter's notation.
    Function(&'a str, &'a str),
    /// A property, and the type that does not have it.
    Property(&'a str, &'a str),
    /// A property that is assigned, and the type that does not have it or does not allow it.
    Assigned(&'a str, &'a str),
    /// An entry of a map.
    Entry(&'a str),
}

pub struct World<'a> {
    pub source: &'a Source,
    pub tokens: &'a [Token],
    pub forms: &'a Forms,
    /// By the name of the import.
    pub modules: &'a BTreeMap<String, Module>,
    /// Names of map entries: such a name on an unknown value may be a closure of the user.
    pub keys: HashSet<String>,
    /// Names at which changes begin that nobody sees, if the values are arrays or maps, and of what copies.
    pub lost: HashMap<u32, CopyOf>,
    /// Names of `for_each` with the parameters that count.
    pub each_counted: HashMap<u32, u32>,
    /// Whether a module of the user is imported: its maps may have any method.
    pub is_open: bool,
    /// Whether the default float dtype may be other than f32.
    pub dtypes_change: bool,
    /// Whether anything in the text may require gradients.
    pub gradients: bool,
    /// Whether anything in the text may give a tensor a gradient.
    pub backward: bool,
    /// The message of a run for an unknown name at a token.
    pub words: &'a dyn Fn(Unknown, u32) -> Box<Diag>,
}

impl World<'_> {
    pub fn origin(&self, token: u32) -> Origin {
        self.tokens.get(token as usize).map_or(Origin::NONE, |token| Origin::at(self.source.site(token.start as usize)))
    }

    /// The words of `a::b` that begin at a token.
    pub fn path(&self, first: u32) -> String {
        let word = |at: usize| self.tokens.get(at).map_or("", |token| &self.source.text[token.range()]);
        let mut at = first as usize;
        let mut path = word(at).to_string();
        while word(at + 1) == "::" {
            path += &format!("::{}", word(at + 2));
            at += 2;
        }
        path
    }

    /// Whether a native function of that name takes so many arguments, including the receiver of a method.
    pub fn takes(&self, name: &str, values: usize) -> bool {
        self.forms.get(name).is_some_and(|forms| forms.iter().any(|form| form.len() == values))
    }

    /// Whether a native function takes arguments of these types, `?` for unknown ones.
    pub fn fits(&self, name: &str, types: &[&str]) -> bool {
        let one = |(of, given): (&String, &&str)| of == given || of == "?" || *given == "?";
        let all = |form: &Vec<String>| form.len() == types.len() && form.iter().zip(types).all(one);
        self.forms.get(name).is_some_and(|forms| forms.iter().any(all))
    }

    /// Whether a native function takes a first argument of this type.
    pub fn takes_first(&self, name: &str, values: usize, of: &str) -> bool {
        let fits = |form: &Vec<String>| form.len() == values && form.first().is_some_and(|first| first == of);
        self.forms.get(name).is_some_and(|forms| forms.iter().any(fits))
    }
}
