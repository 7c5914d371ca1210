//! Files that a text imports, and those that these import: whether they can be compiled, and whether they import each
//! other in a circle. What a run says of them is said here.

use crate::base::diag::Diag;
use crate::base::span::Origin;
use crate::script::error::{self, Context};
use crate::script::library::home::imports;
use crate::script::library::texts;
use crate::script::session::handle::Session;
use crate::script::session::modules::{Resolver, circle};
use crate::script::source::SourceKind;
use rhai::Scope;
use std::collections::HashSet;

/// A module that is no module of the library.
pub struct File {
    pub key: String,
    pub texts: Vec<String>,
}

pub struct Imports<'s> {
    session: &'s Session,
    /// Where the text that is checked imports the first one.
    origin: Origin,
    /// Those that import each other, the outermost first.
    chain: Vec<String>,
    seen: HashSet<String>,
}

impl<'s> Imports<'s> {
    pub fn new(session: &'s Session, origin: Origin) -> Imports<'s> {
        Imports { session, origin, chain: Vec::new(), seen: HashSet::new() }
    }

    /// Looks at a file and at what it imports when it runs.
    ///
    /// # Errors
    /// What a run would say.
    pub fn follow(&mut self, resolver: &Resolver, file: File) -> Result<(), Box<Diag>> {
        if let Some(start) = self.chain.iter().position(|key| *key == file.key) {
            return Err(circle(&self.chain[start..], &file.key, self.origin));
        }
        if !self.seen.insert(file.key.clone()) {
            return Ok(());
        }
        self.chain.push(file.key.clone());
        for text in &file.texts {
            self.compile(&file.key, text)?;
            for name in imports(text).filter(|name| texts::library(name).is_none()) {
                let found = resolver.found(&name, self.origin, Some(&file.key));
                let (key, texts) = found.map_err(|diag| diag.note(format!("imported by {}", file.key)))?;
                self.follow(resolver, File { key, texts })?;
            }
        }
        self.chain.pop();
        Ok(())
    }

    fn compile(&self, name: &str, text: &str) -> Result<(), Box<Diag>> {
        let host = &self.session.host;
        let before = host.sources.read().count();
        let source = host.add_source(SourceKind::File, name, text)?;
        let sources = host.sources.read().clone();
        let is_new = sources.count() > before;
        let known = self.session.known();
        let context = Context { sources: &sources, known: &&known };
        let compiled = error::compile(&self.session.engine, &Scope::new(), &source, &context);
        match compiled {
            Ok(_) if is_new => host.sources.write().release(&source),
            Ok(_) => {}
            Err(mut errors) => return Err(errors.remove(0)),
        }
        Ok(())
    }
}
