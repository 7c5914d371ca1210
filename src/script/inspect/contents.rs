//! The contents of a script, without running it: its functions, and the arguments that it reads.

use crate::base::order;
use crate::script::error::Error;
use crate::script::session::handle::Session;
use crate::script::source::pass::written_name;
use rhai::{ASTNode, Expr, Stmt};
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
        let ast = self.compile_file(path.as_ref())?;
        let mut found: Vec<(String, Option<String>)> = Vec::new();
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
        Ok(found)
    }
}

fn asked(function: &str, args: &[Expr]) -> Option<(String, Option<String>)> {
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
