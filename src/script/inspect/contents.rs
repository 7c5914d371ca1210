//! The contents of a script, without running it: its functions, and the arguments that it reads.

use crate::base::order;
use crate::base::span::Origin;
use crate::script::error::Error;
use crate::script::library::home::imports;
use crate::script::library::texts;
use crate::script::session::handle::Session;
use crate::script::session::modules::Resolver;
use crate::script::source::SourceKind;
use crate::script::source::pass::written_name;
use rhai::{ASTNode, Expr, Stmt};
use std::collections::HashSet;
use std::path::Path;

#[doc(hidden)]
impl Session {
    /// The functions that a file defines, in order of their lines, with their numbers of parameters.
    pub fn functions_of(&mut self, path: impl AsRef<Path>) -> Result<Vec<(String, usize)>, Error> {
        let text = self.read_source(path.as_ref())?;
        let ast = self.compile_file(path.as_ref())?;
        let mut found: Vec<(String, usize)> = ast
            .iter_functions()
            .map(|function| (written_name(function.name).to_string(), function.params.len()))
            .collect();
        found.retain(|(name, _)| !name.starts_with("anon$"));
        // Cost: one search a function; the interpreter keeps them by hash.
        order::by_key(&mut found, |(name, _)| (text.find(&format!("fn {name}(")), name.clone()));
        Ok(found)
    }

    /// The arguments that a file reads with `arg("name", default)` and `flag("name")`, in order: the name, and the
    /// default as it is written if it is a plain value.
    pub fn arguments_of(&mut self, path: impl AsRef<Path>) -> Result<Vec<(String, Option<String>)>, Error> {
        let path = path.as_ref();
        let text = self.read_source(path)?;
        self.imports_beside(path);
        let mut found = Vec::new();
        self.arguments_in(path.display().to_string(), text, &mut HashSet::new(), &mut found)?;
        Ok(found)
    }

    /// The texts of a script and of the files that it imports.
    pub fn texts_of(&mut self, path: &Path, text: &str) -> Vec<String> {
        self.imports_beside(path);
        let resolver = Resolver { host: self.host.clone(), modules: self.modules.clone() };
        let (mut seen, mut all, mut at) = (HashSet::new(), vec![text.to_string()], 0);
        while let Some(text) = all.get(at).cloned() {
            for import in imports(&text).filter(|name| texts::library(name).is_none()) {
                // A run says what is wrong with an import.
                if let Ok((key, parts)) = resolver.found(&import, Origin::NONE, None)
                    && seen.insert(key)
                {
                    all.extend(parts);
                }
            }
            at += 1;
        }
        all
    }

    /// The same of a text, and of the files that it imports.
    fn arguments_in(
        &self,
        name: String,
        text: String,
        seen: &mut HashSet<String>,
        found: &mut Vec<Asked>,
    ) -> Result<(), Error> {
        let source = self.add(SourceKind::File, &name, &text)?;
        let ast = self.compile(&source)?;
        ast.walk(&mut |nodes: &[ASTNode]| {
            let call = match nodes.last() {
                Some(ASTNode::Expr(Expr::FnCall(call, _)) | ASTNode::Stmt(Stmt::FnCall(call, _))) => call,
                _ => return true,
            };
            if let Some(asked) = asked(&call.name, &call.args)
                && !found.iter().any(|(name, _)| *name == asked.0)
            {
                found.push(asked);
            }
            true
        });
        let resolver = Resolver { host: self.host.clone(), modules: self.modules.clone() };
        for import in imports(&text).filter(|name| texts::library(name).is_none()) {
            let by = Some(name.as_str()).filter(|_| !seen.is_empty());
            // A run says what is wrong with an import.
            let Ok((key, parts)) = resolver.found(&import, Origin::NONE, by) else { continue };
            if seen.insert(key.clone()) {
                for part in parts {
                    self.arguments_in(key.clone(), part, seen, found)?;
                }
            }
        }
        Ok(())
    }
}

/// The name of an argument, and its default.
type Asked = (String, Option<String>);

fn asked(function: &str, args: &[Expr]) -> Option<Asked> {
    let name = args.first()?.get_literal_value(None)?.into_string().ok()?;
    match (function, args) {
        ("flag", [_]) => Some((name, None)),
        ("arg", [_, default]) => {
            let text = default.get_literal_value(None).map_or("computed by the script".to_string(), |v| v.to_string());
            Some((name, Some(text)))
        }
        _ => None,
    }
}
