//! The names of a text that stand for nothing, as the compiler finds them: what `tscript check` tells of variables is what a
//! run would.

use super::{Compiler, walk};
use crate::script::machine::unit::{Unit, adopt};
use crate::script::source::Hooks;
use rhai::{AST, ASTNode, Engine, EvalAltResult, Expr, ImmutableString, Position, Stmt};
use std::collections::HashSet;
use std::sync::Arc;

/// A name of no variable.
pub struct Unknown {
    pub at: Position,
    /// It stands in a function, which sees no variables of the outside.
    pub in_function: bool,
}

/// The names that no variable has where they stand. What stands behind an `eval` in its block is left out, and what a function
/// sees that is called with the variables of its caller.
///
/// # Errors
/// What Rhai says of the text.
pub fn unknown_names(engine: &Engine, text: &AST, hooks: &Arc<dyn Hooks>) -> Result<Vec<Unknown>, Box<EvalAltResult>> {
    let (_, unit) = adopt(engine, text, hooks)?;
    let mut found = of_statements(text.statements(), &unit);
    let mut open = capturing(text.statements());
    let functions: Vec<_> = unit.functions().collect();
    for function in &functions {
        open.extend(capturing(&function.statements()));
    }
    for function in functions.iter().filter(|function| !open.contains(&function.def.name)) {
        let mut compiler = Compiler::for_function(&function.def, Arc::downgrade(&unit));
        let _ = compiler.statements(&function.statements());
        found.extend(compiler.unknown.take().into_iter().map(|at| Unknown { at, in_function: true }));
    }
    Ok(found)
}

fn of_statements(statements: &[Stmt], unit: &Arc<Unit>) -> Vec<Unknown> {
    let mut compiler = Compiler::new(Arc::downgrade(unit));
    // `export` declares nothing.
    let statements: Vec<Stmt> =
        statements.iter().filter(|statement| !matches!(statement, Stmt::Export(..))).cloned().collect();
    let _ = compiler.in_order(&statements);
    compiler.unknown.take().into_iter().map(|at| Unknown { at, in_function: false }).collect()
}

/// The functions that statements call with their own variables: `f!(x)`.
fn capturing(statements: &[Stmt]) -> HashSet<ImmutableString> {
    let mut found = HashSet::new();
    for statement in statements {
        walk::statement(statement, &mut |node| {
            let call = match node {
                ASTNode::Stmt(Stmt::FnCall(call, _)) | ASTNode::Expr(Expr::FnCall(call, _)) => call,
                _ => return true,
            };
            if call.capture_parent_scope {
                found.insert(call.name.clone());
            }
            true
        });
    }
    found
}
