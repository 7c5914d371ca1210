//! `tscript check`: names of a text that stand for nothing, found without running it, and loops whose second name
//! counts where a pair is taken apart. Variables by where they are declared, functions by name, modules by looking
//! for them; what a value has after its dot only where nothing anywhere has that name.
//!
//! Lenient where a text alone cannot tell: it may miss a mistake, and tells none that is not one.

use super::convert;
use super::counted::{self, Counted};
use super::error::{self, Context, Error};
use super::literal;
use super::manual;
use super::modules::{Resolver, STD};
use super::session::Session;
use super::source::lex::{Kind, Token, lex, script_start};
use super::source::pass;
use super::source::scope::definitions;
use super::source::tree::{self, CallForm, CallSite, NodeKind, Run, Tree};
use super::source::{Source, SourceKind};
use crate::base::code;
use crate::base::diag::{Diag, Focus};
use crate::base::span::Origin;
use rhai::{EvalAltResult, Position};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ops::Range;
use std::path::Path;

/// Bound: errors told of one text, as many as of its syntax.
const ERRORS: usize = 8;

#[doc(hidden)]
impl Session {
    /// Parses the text of a file and resolves its names without running it.
    pub fn check_source(&mut self, path: &Path, text: &str) -> Result<(), Error> {
        self.imports_beside(path);
        let source = self.add(SourceKind::File, &path.display().to_string(), text)?;
        self.compile(&source)?;
        let tokens = lex(text, script_start(text)).unwrap_or_default();
        let tree = {
            let natives = self.host.natives.read();
            tree::read(text, &tokens, &|name| natives.contains(name))
        };
        let mut names = Names::new(self, &source, &tokens, &tree);
        names.imports();
        names.variables();
        names.calls();
        names.keywords();
        names.loops();
        let mut found = std::mem::take(&mut names.found);
        found.sort_by_key(|(at, _)| *at);
        let mut errors = found.into_iter().map(|(_, diag)| diag).take(ERRORS);
        match errors.next() {
            None => Ok(()),
            Some(first) => Err(Error::several(first, errors.collect(), &self.host.sources.read())),
        }
    }
}

/// A function of the text: its tokens, parameters included.
struct Function {
    run: Range<usize>,
}

/// Where a variable is declared, where its block ends, and in which function.
struct Declared {
    at: usize,
    end: usize,
    owner: Option<usize>,
}

struct Names<'a> {
    session: &'a Session,
    source: &'a Source,
    tokens: &'a [Token],
    tree: &'a Tree,
    functions: Vec<Function>,
    /// The functions of each imported module, by the name under which it was imported.
    modules: BTreeMap<String, BTreeSet<String>>,
    /// Whether a module of the user's own is imported: its maps may have any method.
    is_open: bool,
    found: Vec<(usize, Box<Diag>)>,
}

impl<'a> Names<'a> {
    fn new(session: &'a Session, source: &'a Source, tokens: &'a [Token], tree: &'a Tree) -> Names<'a> {
        let partner = |at: usize| tokens.get(at).map_or(at, |token| token.partner as usize);
        let functions = tree.definitions.iter().map(|function| {
            let name = function.name as usize;
            let body = partner(name + 1) + 1;
            Function { run: name..partner(body) + 1 }
        });
        let functions = functions.collect();
        let (modules, found) = (BTreeMap::new(), Vec::new());
        Names { session, source, tokens, tree, functions, modules, is_open: false, found }
    }

    fn word(&self, at: usize) -> &'a str {
        self.tokens.get(at).map_or("", |token| &self.source.text[token.range()])
    }

    fn origin(&self, token: usize) -> Origin {
        Origin::at(self.source.site(self.tokens[token].start as usize))
    }

    /// Tells what the interpreter would say at a token.
    fn tell(&mut self, token: usize, error: impl FnOnce(Position) -> EvalAltResult) {
        let site = self.source.site(self.tokens[token].start as usize);
        let at = Position::new(site.line(), site.column());
        let sources = self.session.host.sources.read().clone();
        let mut known = self.session.known();
        known.variables.extend(self.tree.declared.iter().map(|&name| self.word(name as usize).to_string()));
        known.functions.extend(self.tree.definitions.iter().map(|found| self.word(found.name as usize).to_string()));
        let context = Context { sources: &sources, known: &known };
        self.found.push((token, error::diagnose(Box::new(error(at)), &context)));
    }

    /// The innermost function around a token.
    fn owner(&self, token: usize) -> Option<usize> {
        let inside = |index: &usize| self.functions[*index].run.contains(&token);
        (0..self.functions.len()).filter(inside).max_by_key(|&index| self.functions[index].run.start)
    }

    /// Whether code may make or look for variables that are not written as such.
    fn has_hidden_variables(&self) -> bool {
        self.tree.calls.iter().any(|call| matches!(self.word(call.name as usize), "eval" | "is_def_var"))
    }

    /// Where each block ends, for every token.
    fn ends(&self) -> Vec<usize> {
        let mut ends = vec![self.tokens.len(); self.tokens.len()];
        let mut open: Vec<usize> = Vec::new();
        for (at, end) in ends.iter_mut().enumerate() {
            while open.last().is_some_and(|&end| end <= at) {
                open.pop();
            }
            *end = open.last().copied().unwrap_or(self.tokens.len());
            if self.word(at) == "{" {
                open.push(self.tokens[at].partner as usize);
            }
        }
        ends
    }

    fn variables(&mut self) {
        if self.has_hidden_variables() {
            return;
        }
        let ends = self.ends();
        let mut declared: HashMap<&str, Vec<Declared>> = HashMap::new();
        for &name in &self.tree.declared {
            let name = name as usize;
            declared.entry(self.word(name)).or_default().push(Declared {
                at: name,
                end: ends[name],
                owner: self.owner(name),
            });
        }
        let functions: HashSet<&str> =
            self.tree.definitions.iter().map(|found| self.word(found.name as usize)).collect();
        let mut told: HashSet<(&str, Option<usize>)> = HashSet::new();
        let formats = pass::specifications(&self.source.text, self.tokens);
        for value in self.tree.values.iter().map(|&value| value as usize) {
            let at = self.tokens[value].start as usize;
            if formats.iter().any(|format| format.contains(&at)) {
                continue;
            }
            let name = self.word(value);
            let is_language =
                matches!(name, "this" | "global" | "args" | "_") || literal::constants().any(|c| c == name);
            if is_language || functions.contains(name) || tree::is_keyword(name) {
                continue;
            }
            let owner = self.owner(value);
            let places = declared.get(name).map_or(&[][..], Vec::as_slice);
            let seen = places.iter().any(|place| place.at < value && value < place.end && place.owner == owner);
            if seen || !told.insert((name, owner)) {
                continue;
            }
            if places.iter().any(|place| place.owner.is_none()) && owner.is_some() {
                let text = format!("there is no variable `{name}`");
                let diag = Diag::error(code::UNKNOWN_VARIABLE, text)
                    .label(self.origin(value), Focus::Call, "not found")
                    .note("a function sees no variables of the outside, only its arguments")
                    .help(format!("pass it as an argument; a constant of the top level is `global::{name}`"));
                self.found.push((value, diag));
            } else {
                self.tell(value, |at| EvalAltResult::ErrorVariableNotFound(name.to_string(), at));
            }
        }
    }

    /// `import "name" as alias`: looks for the module, and notes what it has.
    fn imports(&mut self) {
        let resolver = Resolver { host: self.session.host.clone(), modules: self.session.modules.clone() };
        for at in 0..self.tokens.len() {
            let name = self.word(at + 1).strip_prefix('"').and_then(|name| name.strip_suffix('"'));
            let Some(name) = name.filter(|_| self.word(at) == "import" && self.tokens[at].kind == Kind::Word) else {
                continue;
            };
            let alias = if self.word(at + 2) == "as" { self.word(at + 3).to_string() } else { String::new() };
            self.is_open |= !STD.iter().any(|(known, _)| *known == name);
            match resolver.texts(name, self.origin(at + 1)) {
                Ok(texts) => {
                    let functions = texts.iter().flat_map(|text| definitions(text)).map(|(name, _)| name);
                    self.modules.entry(alias).or_default().extend(functions);
                }
                Err(diag) => self.found.push((at + 1, diag)),
            }
        }
    }

    fn calls(&mut self) {
        let known = self.functions_of_the_language();
        for call in &self.tree.calls {
            let at = call.name as usize;
            let name = self.word(at);
            match call.form {
                CallForm::Plain if !known.contains(name) => self.plain(call, name),
                CallForm::Method if !known.contains(name) => self.method(at, name),
                CallForm::Qualified => self.qualified(at, name),
                _ => {}
            }
        }
    }

    /// Every function that is there before a script says anything.
    fn functions_of_the_language(&self) -> HashSet<String> {
        let signatures = self.session.engine.gen_fn_signatures(true);
        let name = |text: &String| text.split(['(', '<']).next().unwrap_or("").trim().to_string();
        let mut known: HashSet<String> = signatures.iter().map(name).collect();
        known.extend(self.session.host.natives.read().iter().cloned());
        known.extend(["Fn", "call", "curry", "is_def_fn", "is_def_var", "is_shared", "type_of"].map(str::to_string));
        known
    }

    fn plain(&mut self, call: &CallSite, name: &'a str) {
        let at = call.name as usize;
        let own = self.tree.definitions.iter().filter(|found| self.word(found.name as usize) == name);
        let counts: Vec<usize> = own.map(|found| found.parameters).collect();
        if counts.is_empty() {
            return self.tell(at, |at| EvalAltResult::ErrorFunctionNotFound(format!("{name} ()"), at));
        }
        if let Some((code, text)) = error::wrong_number(name, &counts, call.arguments) {
            let diag = Diag::error(code, text).label(self.origin(at), Focus::Call, "called here");
            self.found.push((at, diag));
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
        let library = || STD.iter().flat_map(|(_, files)| files.iter()).any(|(_, text)| is_made(text));
        if !(self.is_open || own || self.is_key(name) || library()) {
            self.tell(at, |at| EvalAltResult::ErrorFunctionNotFound(format!("{name} (?)"), at));
        }
    }

    /// Keywords of operations, where they stand in the text.
    fn keywords(&mut self) {
        for node in self.tree.nodes.iter().filter(|node| node.kind == NodeKind::Call) {
            let name = self.word(node.focus as usize);
            let Some(&Run { first, last }) = node.args.last() else { continue };
            let (open, is_map) = (first as usize, self.tokens[first as usize].partner == last);
            let own = self.tree.definitions.iter().any(|found| self.word(found.name as usize) == name);
            let is_row = manual::native(name).is_none() && !manual::keywords(name).is_empty();
            let before = (node.focus as usize).checked_sub(1).map_or("", |at| self.word(at));
            if self.word(open) != "#{" || !is_map || !is_row || own || before == "::" || self.is_key(name) {
                continue;
            }
            for key in self.keys(open) {
                let known = matches!(key, "pin_memory" | "async") || manual::keyword_kind(name, key).is_some();
                if !known {
                    let names = manual::keywords(name);
                    let mut diag = convert::unknown_keyword(key, &names.iter().map(String::as_str).collect::<Vec<_>>());
                    diag.message = format!("`{name}`: {}", diag.message);
                    for label in &mut diag.labels {
                        label.origin = self.origin(node.focus as usize);
                    }
                    self.found.push((open, diag));
                }
            }
        }
    }

    /// The keys of a map in the text.
    fn keys(&self, open: usize) -> Vec<&'a str> {
        let (mut keys, mut at) = (Vec::new(), open + 1);
        while at < self.tokens[open].partner as usize {
            if self.word(at + 1) == ":" && matches!(self.word(at - 1), "#{" | ",") {
                keys.push(self.word(at).trim_matches('"'));
            }
            at = (self.tokens[at].partner as usize).max(at) + 1;
        }
        keys
    }

    /// Whether a name is that of an entry that the text gives a map.
    fn is_key(&self, name: &str) -> bool {
        (0..self.tokens.len()).any(|other| {
            let is_key = self.word(other + 1) == ":" || self.word(other + 1) == "=";
            self.word(other).trim_matches('"') == name && (is_key || self.word(other).starts_with('"'))
        })
    }

    fn qualified(&mut self, at: usize, name: &'a str) {
        let space = self.word(at.saturating_sub(2));
        // `a::b::c` and names of the language's own are left alone.
        if at < 2 || self.word(at.saturating_sub(3)) == "::" || matches!(space, "global" | "__c") {
            return;
        }
        let path = format!("{space}::{name}");
        let is_native = self.session.host.natives.read().contains(&path);
        match self.modules.get(space) {
            _ if is_native => {}
            Some(functions) if functions.contains(name) => {}
            None if space != "cuda" => {
                self.tell(at - 2, |at| EvalAltResult::ErrorModuleNotFound(space.to_string(), at));
            }
            _ => self.tell(at, |at| EvalAltResult::ErrorFunctionNotFound(format!("{path} ()"), at)),
        }
    }

    /// Loops over what are surely pairs.
    fn loops(&mut self) {
        for run in &self.tree.counted {
            let (first, last) = (run.first as usize, run.last as usize);
            let named = if first == last { self.declaration(self.word(first)) } else { None };
            let (first, last) = named.unwrap_or((first, last));
            let makes = self.tree.calls.iter().any(|call| {
                let close = self.tokens.get(call.name as usize + 1).map_or(0, |open| open.partner as usize);
                let name = self.word(call.name as usize);
                counted::gives_pairs(name) && close == last && call.form == CallForm::Method
            });
            let what = match (self.word(first), self.word(first + 1)) {
                _ if makes => Counted::Pairs,
                ("[", "[") if self.tokens[first].partner as usize == last && self.is_pair(first + 1) => Counted::Pairs,
                ("#{", _) if self.tokens[first].partner as usize == last => Counted::Map,
                _ => continue,
            };
            let bytes = self.tokens[run.first as usize].start as usize..self.tokens[run.last as usize].end as usize;
            self.session.host.rt.warn(counted::warning(what, self.source, bytes));
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

    /// Whether an array of the text has two elements.
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
