//! `tscript check`: what a text alone tells of its mistakes. Names that stand for nothing (`names`); and, from the text's
//! syntax (`syntax`, `parse`), what is known of values on the way (`flow`, `expr`, `value`): calls that no run would
//! take (`calls`, `operations`), and what is odd (`lints`).
//!
//! The same walk gives editors the values it came by (`reading`, `seen`), also of a text that is being typed.
//!
//! Runs no script code and computes nothing: the rows themselves work out shapes, without memory. Lenient if the text
//! alone is not conclusive: it may miss a mistake, but reports no false ones.

mod calls;
mod constants;
mod expr;
mod flow;
mod formats;
mod functions;
mod guards;
pub(in crate::script) mod imported;
mod judged;
pub mod layers;
mod lints;
mod literals;
mod loops;
mod names;
mod operations;
mod parse;
mod plain;
pub mod reading;
mod seen;
mod strangers;
pub mod syntax;
pub mod value;
pub mod visit;
mod world;

use super::error::Error;
use super::library::home::home;
use super::source::lex::{Kind, Token, lex, script_start};
use super::source::tree::{self, Tree};
use super::source::{Source, SourceKind};
use crate::base::code;
use crate::base::diag::{Diag, Severity};
use crate::base::order;
use crate::base::span::Origin;
use crate::script::host::{divided, unfilled};
use crate::script::session::handle::Session;
use names::Names;
use rhai::AST;
use seen::Seen;
use std::collections::{HashMap, HashSet};
use std::path::Path;
use syntax::Stmt;
use world::World;

/// Bound: findings reported for one text; where there are more, errors go before warnings.
const FINDINGS: usize = 10_000;

#[doc(hidden)]
impl Session {
    /// All mistakes and warnings of a file's text, in its order, found without running it.
    pub fn check_source(&mut self, path: &Path, text: &str) -> Vec<Error> {
        let mut found = self.findings(path, text);
        if found.len() > FINDINGS {
            order::by_key(&mut found, |diag| diag.severity != Severity::Error);
        }
        let sources = self.host.sources.read();
        found.into_iter().take(FINDINGS).map(|diag| Error::new(diag, &sources)).collect()
    }

    // Diagnostics are boxed, since results contain them.
    #[allow(clippy::vec_box)]
    fn findings(&mut self, path: &Path, text: &str) -> Vec<Box<Diag>> {
        self.imports_from(&home(path, text, &|_| None));
        let source = match self.add(SourceKind::File, &path.display().to_string(), text) {
            Ok(source) => source,
            Err(error) => return parts(&error),
        };
        match self.compile(&source) {
            Ok(compiled) => {
                let tokens = lex(text, script_start(text)).unwrap_or_default();
                self.survey(&source, text, &tokens, Some(&compiled), None).found
            }
            Err(error) => parts(&error),
        }
    }

    /// Walks over a text, whose tokens are given. Positions are those of the source. Without the compiled text, which
    /// there is not of a broken one, it finds no undefined names.
    fn survey(
        &self,
        source: &Source,
        text: &str,
        tokens: &[Token],
        compiled: Option<&AST>,
        seen: Option<Seen>,
    ) -> Survey {
        let tree = match compiled {
            Some(_) => {
                let natives = self.host.natives.read();
                tree::read(text, tokens, &|name| natives.contains(name), &self.host.earlier.read())
            }
            None => Tree::default(),
        };
        let mut names = Names::new(self, source, text, tokens, &tree);
        names.imports();
        if let Some(compiled) = compiled {
            let foreign = names.foreign(compiled);
            names.variables(&foreign.variables);
            names.calls(&foreign.calls);
            names.paths();
            names.loops();
            if !names.has_hidden_variables() {
                names.unused_imports();
            }
        }
        let mut found = std::mem::take(&mut names.found);
        let body = parse::parse(text, tokens);
        let forms = self.host.forms();
        let world = World {
            source,
            tokens,
            forms: forms.get(),
            modules: &names.modules,
            keys: names.keys().clone(),
            lost: tree.lost.iter().filter(|lost| lost.by.is_none()).map(|lost| (lost.token, lost.of)).collect(),
            each_counted: tree.each_counted.iter().copied().collect(),
            is_open: names.is_open,
            backward: ["backward", "grad =", "grad=", "import", "load", "eval"].iter().any(|word| text.contains(word)),
            gradients: ["requires_grad", "import", "load", "eval"].iter().any(|word| text.contains(word)),
            dtypes_change: text.contains("set_default_dtype") || text.contains("autocast"),
            words: &|unknown, token| names.words(unknown, token),
        };
        if compiled.is_some() {
            found.extend(of_text(text, tokens, source));
        }
        let (values, seen) = flow::findings(&world, &body, names.has_hidden_variables(), seen);
        // If the value before the dot is known, its message for a missing method is better.
        let named: HashMap<u32, &Box<Diag>> = values
            .iter()
            .filter(|(_, diag)| diag.code == code::UNKNOWN_FUNCTION)
            .map(|(at, diag)| (*at, diag))
            .collect();
        for (token, diag) in found.iter_mut().filter(|(_, diag)| diag.code == code::UNKNOWN_FUNCTION) {
            if let Some(better) = named.get(token) {
                *diag = (*better).clone();
            }
        }
        // Of several findings at one position the most serious one is reported: an undefined name, an error, a
        // warning.
        let unnamed: HashSet<u32> = found.iter().map(|(token, _)| *token).collect();
        let wrong = |diag: &Diag| diag.severity == Severity::Error;
        let wrongs: HashSet<u32> = values.iter().filter(|(_, diag)| wrong(diag)).map(|(token, _)| *token).collect();
        let of_unknown = |token: u32| unnamed.contains(&root(text, tokens, token));
        found.extend(
            values
                .into_iter()
                .filter(|(token, _)| !of_unknown(*token))
                .filter(|(token, diag)| !unnamed.contains(token) && (wrong(diag) || !wrongs.contains(token))),
        );
        order::by_key(&mut found, |(token, _)| *token);
        let found = found.into_iter().map(|(_, diag)| diag).collect();
        Survey { found, body, seen }
    }
}

/// What the words of a text alone make odd, by the tokens before or at it.
#[allow(clippy::vec_box)]
fn of_text(text: &str, tokens: &[Token], source: &Source) -> Vec<(u32, Box<Diag>)> {
    let at = |byte: usize| (tokens.partition_point(|token| (token.start as usize) <= byte).max(1) - 1) as u32;
    let origin = |byte: usize| Origin::at(source.site(byte));
    let divided = divided::places(text, Some(tokens)).into_iter();
    let divided = divided.map(|place| (at(place.start), divided::warning(&text[place.clone()], origin(place.start))));
    let unfilled = unfilled::places(text, Some(tokens)).into_iter();
    let unfilled =
        unfilled.map(|place| (at(place.start), unfilled::warning(&text[place.clone()], origin(place.start))));
    divided.chain(unfilled).collect()
}

/// The first name of the path that a token ends: that of `F` for `relu` in `F.relu`.
fn root(text: &str, tokens: &[Token], token: u32) -> u32 {
    let word = |at: u32| tokens.get(at as usize).map_or("", |token| &text[token.range()]);
    let mut at = token;
    while at >= 2 && matches!(word(at - 1), "." | "?.") && tokens[at as usize - 2].kind == Kind::Word {
        at -= 2;
    }
    at
}

/// What a walk over a text gives.
struct Survey {
    #[allow(clippy::vec_box)]
    found: Vec<Box<Diag>>,
    body: Vec<Stmt>,
    seen: Option<Seen>,
}

/// The diagnostics of an error one by one.
#[allow(clippy::vec_box)]
fn parts(error: &Error) -> Vec<Box<Diag>> {
    std::iter::once(error.diag()).chain(error.extra()).map(|diag| Box::new(diag.clone())).collect()
}
