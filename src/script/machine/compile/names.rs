//! The names of a text, as the compiler finds them: those of no variable, and the calls of what is no function of the text.
//! So what `tscript check` tells of names is what a run would.

use super::{Compiler, walk};
use crate::script::machine::unit::{Unit, adopt};
use crate::script::source::Hooks;
use crate::script::source::tree::CallForm;
use rhai::{AST, ASTNode, Engine, EvalAltResult, Expr, ImmutableString, Position, Stmt};
use std::cell::RefCell;
use std::collections::HashSet;
use std::sync::Arc;

/// What a compiler met in one body.
#[derive(Default)]
pub struct Met {
    pub variables: Vec<Position>,
    pub calls: Vec<Called>,
}

/// A call of what is no function of the text.
pub struct Called {
    pub at: Position,
    pub form: CallForm,
    pub name: ImmutableString,
}

/// A name of no variable.
pub struct UnknownVariable {
    pub at: Position,
    /// It stands in a function, which sees no variables of the outside.
    pub in_function: bool,
}

/// The names of a text that are not its own.
#[derive(Default)]
pub struct Foreign {
    pub variables: Vec<UnknownVariable>,
    /// Calls of what is no function of the text: natives, functions of other texts, and what there is not.
    pub calls: Vec<Called>,
}

/// The names that no variable has where they stand, and the calls that are bound to no function of the text. What stands behind
/// an `eval` in its block is left out, and the variables of what is called with the variables of its caller.
///
/// # Errors
/// What Rhai says of the text.
pub fn foreign_names(engine: &Engine, text: &AST, hooks: &Arc<dyn Hooks>) -> Result<Foreign, Box<EvalAltResult>> {
    let (_, unit) = adopt(engine, text, hooks)?;
    let mut foreign = Foreign::default();
    foreign.add(of_statements(text.statements(), &unit), false);
    let mut open = capturing(text.statements());
    let functions: Vec<_> = unit.functions().collect();
    for function in &functions {
        open.extend(capturing(&function.statements()));
    }
    for function in functions {
        let mut met = of_body(Compiler::for_function(&function.def, Arc::downgrade(&unit)), |compiler| {
            let _ = compiler.statements(&function.statements());
        });
        if open.contains(&function.def.name) {
            met.variables.clear();
        }
        foreign.add(met, true);
    }
    Ok(foreign)
}

impl Foreign {
    fn add(&mut self, met: Met, in_function: bool) {
        self.variables.extend(met.variables.into_iter().map(|at| UnknownVariable { at, in_function }));
        self.calls.extend(met.calls);
    }
}

fn of_statements(statements: &[Stmt], unit: &Arc<Unit>) -> Met {
    // `export` declares nothing.
    let statements: Vec<Stmt> =
        statements.iter().filter(|statement| !matches!(statement, Stmt::Export(..))).cloned().collect();
    of_body(Compiler::new(Arc::downgrade(unit)), |compiler| {
        let _ = compiler.in_order(&statements);
    })
}

fn of_body(mut compiler: Compiler, compile: impl FnOnce(&mut Compiler)) -> Met {
    compiler.met = Some(RefCell::default());
    compile(&mut compiler);
    compiler.met.map(RefCell::into_inner).unwrap_or_default()
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
