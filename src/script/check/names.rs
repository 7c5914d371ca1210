//! Undefined names of a text, and loops whose second name counts where pairs were meant. Variables are checked by
//! their declarations, functions by name, modules by searching for them; names after a dot only if nothing anywhere
//! has that name.
//!
//! Lenient if the text alone is not conclusive: it may miss a mistake, but reports no false ones.

use super::flow::Finding;
use super::imported;
use super::lints;
use super::world::{Module, Unknown};
use crate::base::code;
use crate::base::diag::{Diag, Focus};
use crate::base::span::Origin;
use crate::script::error::{self, Context};
use crate::script::library::texts::{self, STD};
use crate::script::machine::{Called, Foreign, UnknownVariable, foreign_names};
use crate::script::manual;
use crate::script::session::counted;
use crate::script::session::counted::Counted;
use crate::script::session::handle::Session;
use crate::script::session::hooks::SessionHooks;
use crate::script::session::modules::Resolver;
use crate::script::source::counters::gives_pairs;
use crate::script::source::lex::{Kind, Token};
use crate::script::source::scope::{definitions, written};
use crate::script::source::tree::{CallForm, Tree};
use crate::script::source::{Hooks, Source};
use crate::script::values::raise::site_of;
use crate::script::values::types;
use rhai::{AST, EvalAltResult, Position};
use std::cell::OnceCell;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

/// A function of the text: its tokens, parameters included.
struct Function {
    run: Range<usize>,
}

pub struct Names<'a> {
    session: &'a Session,
    source: &'a Source,
    text: &'a str,
    tokens: &'a [Token],
    tree: &'a Tree,
    functions: Vec<Function>,
    /// The functions of each imported module, by the name of the import.
    pub modules: BTreeMap<String, Module>,
    /// The names of imports whose modules are computed.
    computed: HashSet<String>,
    /// Whether a module of the user is imported: its maps may have any method.
    pub is_open: bool,
    pub found: Vec<Finding>,
    /// Names of map entries, once somebody has asked.
    keys: OnceCell<HashSet<String>>,
    /// Whether the library makes methods of these names.
    made: HashMap<&'a str, bool>,
}

impl<'a> Names<'a> {
    /// The source gives positions; its text is `text`, unless nobody wants findings.
    pub fn new(
        session: &'a Session,
        source: &'a Source,
        text: &'a str,
        tokens: &'a [Token],
        tree: &'a Tree,
    ) -> Names<'a> {
        let partner = |at: usize| tokens.get(at).map_or(at, |token| token.partner as usize);
        let functions = tree.definitions.iter().map(|function| {
            let name = function.name as usize;
            let body = partner(name + 1) + 1;
            Function { run: name..partner(body) + 1 }
        });
        let functions = functions.collect();
        let (modules, found) = (BTreeMap::new(), Vec::new());
        Names {
            session,
            source,
            text,
            tokens,
            tree,
            functions,
            modules,
            computed: HashSet::new(),
            is_open: false,
            found,
            keys: OnceCell::new(),
            made: HashMap::new(),
        }
    }

    fn word(&self, at: usize) -> &'a str {
        self.tokens.get(at).map_or("", |token| &self.text[token.range()])
    }

    fn origin(&self, token: usize) -> Origin {
        Origin::at(self.source.site(self.tokens[token].start as usize))
    }

    /// The interpreter's message for a name at a token.
    fn interpreter_message(&self, token: usize, error: impl FnOnce(Position) -> EvalAltResult) -> Box<Diag> {
        let site = self.source.site(self.tokens[token].start as usize);
        let at = Position::new(site.line(), site.column());
        let sources = self.session.host.sources.read().clone();
        let mut known = self.session.known();
        known.variables.extend(self.tree.declared.iter().map(|&name| self.word(name as usize).to_string()));
        known.functions.extend(self.tree.definitions.iter().map(|found| self.word(found.name as usize).to_string()));
        let context = Context { sources: &sources, known: &&known };
        error::diagnose(Box::new(error(at)), &context)
    }

    fn report(&mut self, token: usize, error: impl FnOnce(Position) -> EvalAltResult) {
        let diag = self.interpreter_message(token, error);
        self.found.push((token as u32, diag));
    }

    /// The message of a run for an undefined name.
    pub fn words(&self, unknown: Unknown, token: u32) -> Box<Diag> {
        self.interpreter_message(token as usize, |at| match unknown {
            Unknown::Function(name, types) => EvalAltResult::ErrorFunctionNotFound(format!("{name} ({types})"), at),
            Unknown::Entry(name) => EvalAltResult::ErrorPropertyNotFound(name.to_string(), at),
            Unknown::Assigned(name, of) => {
                let text = format!("Unknown property '{name}' - a setter is not registered for type '{of}'");
                EvalAltResult::ErrorDotExpr(text, at)
            }
            Unknown::Property(name, of) => {
                let text = format!("Unknown property '{name}' - a getter is not registered for type '{of}'");
                EvalAltResult::ErrorDotExpr(text, at)
            }
        })
    }

    /// Names of map entries in the text, and strings.
    pub fn keys(&self) -> &HashSet<String> {
        self.keys.get_or_init(|| self.read_keys())
    }

    fn read_keys(&self) -> HashSet<String> {
        let is_key = |at: &usize| {
            let sets = self.word(at + 1) == "=" && *at > 0 && self.word(at - 1) == ".";
            self.word(at + 1) == ":" || sets || self.word(*at).starts_with('"')
        };
        (0..self.tokens.len()).filter(is_key).map(|at| self.word(at).trim_matches('"').to_string()).collect()
    }

    /// Whether entries of maps get names that the text does not show: `m[key] = |x| x;`.
    fn has_computed_keys(&self) -> bool {
        let sets = |at: usize| self.word(at) == "]" && self.word(at + 1) == "=";
        let holds = |at: usize| matches!(self.word(at + 2), "|" | "||" | "Fn");
        (0..self.tokens.len()).any(|at| sets(at) && holds(at) && !self.word(at - 1).starts_with('"'))
    }

    /// The innermost function around a token.
    fn owner(&self, token: usize) -> Option<usize> {
        // They stand one behind the other.
        let index = self.functions.partition_point(|function| function.run.start <= token).checked_sub(1)?;
        self.functions[index].run.contains(&token).then_some(index)
    }

    /// Whether code may create or look up variables that are not visible in the text.
    pub fn has_hidden_variables(&self) -> bool {
        self.tree.calls.iter().any(|call| matches!(self.word(call.name as usize), "eval" | "is_def_var"))
    }

    /// The names that are not the text's own, as the compiler of scripts finds them.
    pub fn foreign(&self, text: &AST) -> Foreign {
        let hooks: Arc<dyn Hooks> = Arc::new(SessionHooks(self.session.host.clone()));
        foreign_names(&self.session.engine, text, &hooks).unwrap_or_default()
    }

    /// Names of no variable.
    pub fn variables(&mut self, unknown: &[UnknownVariable]) {
        let functions: HashSet<&str> =
            self.tree.definitions.iter().map(|found| self.word(found.name as usize)).collect();
        let mut found: Vec<(usize, bool)> =
            unknown.iter().filter_map(|unknown| Some((self.token_at(unknown.at)?, unknown.in_function))).collect();
        crate::base::order::by(&mut found, Ord::cmp);
        let mut reported: HashSet<(&str, Option<usize>)> = HashSet::new();
        for (value, in_function) in found {
            let name = self.word(value);
            let is_language = matches!(name, "this" | "global" | "args" | "_") || types::constants().any(|c| c == name);
            if is_language || functions.contains(name) || !reported.insert((name, self.owner(value))) {
                continue;
            }
            if in_function && self.is_declared_outside(name) {
                let text = format!("there is no variable `{name}`");
                let diag = Diag::error(code::UNKNOWN_VARIABLE, text)
                    .label(self.origin(value), Focus::Call, "not found")
                    .note("a function sees no variables of the outside, only its arguments and constants")
                    .help(format!("pass it as an argument; what never changes can be a constant, `const {name} = ..`, which functions see"));
                self.found.push((value as u32, diag));
            } else {
                self.report(value, |at| EvalAltResult::ErrorVariableNotFound(name.to_string(), at));
            }
        }
    }

    /// The token that begins at a position of the interpreter.
    fn token_at(&self, at: Position) -> Option<usize> {
        let start = self.source.offset(site_of(at)) as u32;
        self.tokens.binary_search_by_key(&start, |token| token.start).ok()
    }

    /// Whether a variable of the top level has this name.
    fn is_declared_outside(&self, name: &str) -> bool {
        let mut all = self.tree.declared.iter().map(|&at| at as usize);
        all.any(|at| self.word(at) == name && self.owner(at).is_none())
    }

    /// `import "name" as alias`: finds the module and its functions.
    pub fn imports(&mut self) {
        let resolver = Resolver { host: self.session.host.clone(), modules: self.session.modules.clone() };
        for at in 0..self.tokens.len() {
            if self.word(at) != "import" || self.tokens[at].kind != Kind::Word {
                continue;
            }
            let Some(name) = self.word(at + 1).strip_prefix('"').and_then(|name| name.strip_suffix('"')) else {
                // Which module it is, is known when it runs.
                let ends = (at..self.tokens.len()).find(|&at| matches!(self.word(at), ";" | "as"));
                if let Some(alias) = ends.filter(|&end| self.word(end) == "as") {
                    self.computed.insert(self.word(alias + 1).to_string());
                }
                self.is_open = true;
                continue;
            };
            let alias = if self.word(at + 2) == "as" { self.word(at + 3).to_string() } else { String::new() };
            if let Some(library) = texts::library(name) {
                self.modules.entry(alias).or_default().extend(Module::of_library(library));
                continue;
            }
            self.is_open = true;
            match resolver.found(name, self.origin(at + 1), Some(&*self.source.name)) {
                Ok((key, texts)) => {
                    let module = self.modules.entry(alias).or_default();
                    texts.iter().for_each(|text| module.add(text));
                    let file = imported::File { key, texts };
                    let mut imports = imported::Imports::new(self.session, self.origin(at + 1));
                    if let Err(diag) = imports.follow(&resolver, file) {
                        // Its names are not known.
                        self.computed.insert(self.word(at + 3).to_string());
                        self.found.push((at as u32 + 1, diag));
                    }
                }
                Err(diag) => self.found.push((at as u32 + 1, diag)),
            }
        }
    }

    /// Imports under names that nothing uses.
    pub fn unused_imports(&mut self) {
        // `nn.linear` is told of anyway.
        let is_used = |alias: &str| {
            let names = |at: usize| self.word(at) == alias && matches!(self.word(at + 1), "::" | "." | "?.");
            let named = format!("\"{alias}::");
            (0..self.tokens.len()).any(|at| names(at) || self.word(at).starts_with(&named))
        };
        let imports =
            |at: &usize| self.word(*at) == "import" && self.tokens[*at].kind == Kind::Word && self.word(at + 2) == "as";
        let aliases = (0..self.tokens.len()).filter(imports).map(|at| at + 3);
        // Not: what is not found.
        let is_judged = |name: &str| !name.starts_with('_') && self.modules.contains_key(name);
        let unused = aliases.filter(|&at| is_judged(self.word(at)) && !is_used(self.word(at)));
        let found: Vec<Finding> = unused
            .filter(|&at| at < self.tokens.len())
            .map(|at| (at as u32, lints::unused_import(self.word(at), self.origin(at))))
            .collect();
        self.found.extend(found);
    }

    /// Calls of functions that there are not.
    pub fn calls(&mut self, foreign: &[Called]) {
        let known = self.functions_of_the_language();
        // What the source pass inserts has other names than the text where it stands.
        let place = |call: &Called| {
            let mut at = self.token_at(call.at)?;
            while call.form == CallForm::Qualified && self.word(at + 1) == "::" {
                at += 2;
            }
            (self.word(at) == written(&call.name)).then_some(at)
        };
        let mut calls: Vec<(usize, CallForm)> =
            foreign.iter().filter_map(|call| Some((place(call)?, call.form))).collect();
        crate::base::order::by(&mut calls, Ord::cmp);
        calls.dedup();
        for (at, form) in calls {
            let name = self.word(at);
            match form {
                CallForm::Plain if !known.contains(name) => self.plain(at, name),
                CallForm::Method if !known.contains(name) => self.method(at, name),
                CallForm::Qualified => self.qualified(at, name),
                _ => {}
            }
        }
    }

    /// `nn::relu` without a call: the library's modules contain only functions, others what they export, too.
    pub fn paths(&mut self) {
        for at in 2..self.tokens.len() {
            let (space, name) = (self.word(at - 2), self.word(at));
            let ends = !matches!(self.word(at + 1), "(" | "::") && self.word(at.wrapping_sub(3)) != "::";
            let is_unknown = || match self.modules.get(space) {
                Some(module) => !self.computed.contains(space) && !module.exports.contains(name),
                None => false,
            };
            if self.word(at - 1) == "::" && self.tokens[at].kind == Kind::Word && ends && is_unknown() {
                self.report(at - 2, |at| EvalAltResult::ErrorVariableNotFound(format!("{space}::{name}"), at));
            }
        }
    }

    /// Functions of the other files of the library module, if the text is one of them.
    pub fn siblings(&self) -> &'static [(&'static str, &'static str)] {
        let text = self.text;
        let mut all = STD.iter().map(|library| library.files());
        all.find(|files| files.iter().any(|(_, file)| *file == text)).unwrap_or(&[])
    }

    /// All functions that exist without a script.
    fn functions_of_the_language(&self) -> HashSet<String> {
        let mut known: HashSet<String> = self.session.host.forms().get().keys().cloned().collect();
        known.extend(self.session.host.natives.read().iter().map(|name| name.to_string()));
        known.extend(self.siblings().iter().flat_map(|(_, text)| definitions(text)).map(|(name, _)| name));
        known.extend(["Fn", "call", "curry", "is_def_fn", "is_def_var", "is_shared", "type_of"].map(str::to_string));
        known
    }

    /// A function of the script is checked with its arguments.
    fn plain(&mut self, at: usize, name: &'a str) {
        if !self.tree.definitions.iter().any(|found| self.word(found.name as usize) == name) {
            self.report(at, |at| EvalAltResult::ErrorFunctionNotFound(format!("{name} ()"), at));
        }
    }

    /// A method is a native, a function of the script, or a closure in a map.
    fn method(&mut self, at: usize, name: &'a str) {
        let is_made = |text: &str| {
            let inside = |c: char| c.is_alphanumeric() || c == '_';
            text.match_indices(name)
                .any(|(at, _)| !text[..at].ends_with(inside) && text[at + name.len()..].starts_with(['(', ':']))
        };
        let own = self.tree.definitions.iter().any(|found| self.word(found.name as usize) == name);
        let library = |made: &mut HashMap<&'a str, bool>| {
            *made.entry(name).or_insert_with(|| texts::files().any(|(_, text)| is_made(text)))
        };
        let of_module = at >= 2 && self.modules.contains_key(self.word(at - 2)) && self.word(at.wrapping_sub(3)) != ".";
        if of_module
            || self.is_open
            || own
            || self.has_computed_keys()
            || self.keys().contains(name)
            || library(&mut self.made)
        {
            return;
        }
        let diag = self.interpreter_message(at, |at| EvalAltResult::ErrorFunctionNotFound(format!("{name} (?)"), at));
        // An argument of a function may be a map of another file, with closures of any name.
        if diag.help.is_some() || !self.is_parameter(at.saturating_sub(2)) {
            self.found.push((at as u32, diag));
        }
    }

    /// Whether a name is a parameter of the function around it.
    fn is_parameter(&self, at: usize) -> bool {
        let Some(function) = self.owner(at) else { return false };
        let open = self.functions[function].run.start + 1;
        let end = self.tokens.get(open).map_or(open, |token| token.partner as usize);
        (open..end).any(|index| self.word(index) == self.word(at))
    }

    fn qualified(&mut self, at: usize, name: &'a str) {
        let space = self.word(at.saturating_sub(2));
        // Names of the language's own are ignored.
        if at < 2 || matches!(space, "global" | "__c") {
            return;
        }
        // `nn::functional::relu(x)`: the library's modules have no submodules.
        if self.word(at.saturating_sub(3)) == "::" {
            let outer = self.word(at.saturating_sub(4));
            if texts::library(outer).is_some() && self.modules.contains_key(outer) {
                let path = format!("{outer}::{space}::{name}");
                self.report(at, |at| EvalAltResult::ErrorFunctionNotFound(format!("{path} ()"), at));
            }
            // `signal::windows::hann`: modules of operations have some.
            let inner = format!("{outer}::{space}");
            if manual::MODULES.contains(&&*inner) && manual::of_module(&inner).all(|known| known != name) {
                let path = format!("{inner}::{name}");
                self.report(at, |at| EvalAltResult::ErrorFunctionNotFound(format!("{path} ()"), at));
            }
            return;
        }
        if self.computed.contains(space) {
            return;
        }
        let path = format!("{space}::{name}");
        let imported = self.modules.get(space);
        let is_native = imported.is_none() && manual::of_module(space).any(|known| known == name);
        match imported {
            _ if is_native => {}
            Some(module) if module.functions.iter().any(|(known, _)| known == name) => {}
            None if !manual::MODULES.contains(&space) => {
                self.report(at - 2, |at| EvalAltResult::ErrorModuleNotFound(space.to_string(), at));
            }
            _ => self.report(at, |at| EvalAltResult::ErrorFunctionNotFound(format!("{path} ()"), at)),
        }
    }

    /// Loops over what are certainly pairs.
    pub fn loops(&mut self) {
        for run in &self.tree.counted {
            let (first, last) = (run.first as usize, run.last as usize);
            let named = if first == last { self.declaration(self.word(first)) } else { None };
            let (first, last) = named.unwrap_or((first, last));
            let makes = self.tree.calls.iter().any(|call| {
                let close = self.tokens.get(call.name as usize + 1).map_or(0, |open| open.partner as usize);
                let name = self.word(call.name as usize);
                gives_pairs(name) && close == last && call.form == CallForm::Method
            });
            let what = match (self.word(first), self.word(first + 1)) {
                _ if makes || self.tree.counted_pairs.contains(run) => Counted::Pairs,
                ("[", "[") if self.tokens[first].partner as usize == last && self.is_pair(first + 1) => Counted::Pairs,
                ("#{", _) if self.tokens[first].partner as usize == last => Counted::Map,
                _ => continue,
            };
            let bytes = self.tokens[run.first as usize].start as usize..self.tokens[run.last as usize].end as usize;
            self.found.push((run.first, counted::warning(what, self.source, bytes)));
        }
    }

    /// The value of the only `let name = ...;` of a name.
    fn declaration(&self, name: &str) -> Option<(usize, usize)> {
        let lets = |at: &usize| self.word(*at) == "let" && self.word(at + 1) == name && self.word(at + 2) == "=";
        let mut places = (0..self.tokens.len()).filter(lets);
        let first = places.next()? + 3;
        let mut last = first;
        while !matches!(self.word(last + 1), ";" | "") {
            last = (self.tokens[last + 1].partner as usize).max(last + 1);
        }
        let last = (self.tokens.get(first)?.partner as usize).max(last);
        places.next().is_none().then_some((first, last))
    }

    /// Whether an array in the text has two elements.
    fn is_pair(&self, open: usize) -> bool {
        let close = self.tokens[open].partner as usize;
        let (mut at, mut commas) = (open + 1, 0);
        while at < close {
            commas += (self.word(at) == ",") as usize;
            at = (self.tokens[at].partner as usize).max(at) + 1;
        }
        commas == 1 && self.word(close - 1) != ","
    }
}
