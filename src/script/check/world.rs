//! What surrounds a text that is checked: the native functions, the modules that it imports, names that it gives to
//! entries of maps.

use crate::base::diag::Diag;
use crate::base::signature::Signature;
use crate::base::span::Origin;
use crate::script::source::Source;
use crate::script::source::lex::Token;
use crate::script::values::forms::Forms;
use std::collections::{BTreeMap, BTreeSet, HashSet};

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
    /// A property that is assigned, and the type that has it not or lets nobody.
    Assigned(&'a str, &'a str),
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
    /// Whether anything in the text may require gradients.
    pub gradients: bool,
    /// Whether anything in the text may give a tensor a gradient.
    pub backward: bool,
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

    /// Whether a native function takes values of these types, `?` for what one cannot tell.
    pub fn fits(&self, name: &str, types: &[&str]) -> bool {
        let one = |(of, given): (&String, &&str)| of == given || of == "?" || *given == "?";
        let all = |form: &Vec<String>| form.len() == types.len() && form.iter().zip(types).all(one);
        self.forms.get(name).is_some_and(|forms| forms.iter().any(all))
    }

    /// Whether a native function takes a value of a type first.
    pub fn takes_first(&self, name: &str, values: usize, of: &str) -> bool {
        let fits = |form: &Vec<String>| form.len() == values && form.first().is_some_and(|first| first == of);
        self.forms.get(name).is_some_and(|forms| forms.iter().any(fits))
    }
}
