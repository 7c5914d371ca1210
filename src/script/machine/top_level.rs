//! The statements of a text: those that repeat something are compiled among the variables of the session, the others go to
//! Rhai one after the other.

use super::compile;
use super::run::{Jump, Machine};
use super::tree::Code;
use super::unit::{Unit, run_statement};
use rhai::{
    ASTNode, Caches, Dynamic, Engine, EvalAltResult, EvalContext, Expr, Expression, GlobalRuntimeState,
    ImmutableString, Position, Scope, Stmt, StmtBlock,
};
use std::sync::Arc;

/// Runs the statements as Rhai's `eval_statements_raw` does.
pub fn evaluate(
    engine: &Engine,
    global: &mut GlobalRuntimeState,
    scope: &mut Scope<'static>,
    statements: &[Stmt],
    unit: &Arc<Unit>,
) -> Result<Dynamic, Box<EvalAltResult>> {
    let mut caches = Caches::new();
    let mut first = 0;
    let mut last = Dynamic::UNIT;
    while first < statements.len() {
        let statement = &statements[first];
        if repeats(statement)
            && let Some(variables) = variables(scope)
            && let Some(code) = compile::statement(statement, &variables, Arc::downgrade(unit))
        {
            match run(engine, global, scope, &variables, &code, unit)? {
                Ok(value) => last = value,
                Err(value) => return Ok(value),
            }
            first += 1;
            continue;
        }
        // As far as the next statement that is worth compiling.
        let rest = &statements[first..];
        let count = 1 + rest[1..].iter().position(repeats).unwrap_or(rest.len() - 1);
        let block = StmtBlock::new(rest[..count].iter().cloned(), Position::NONE, Position::NONE);
        let expr = Expr::Stmt(Box::new(block));
        let mut context = EvalContext::new(engine, global, &mut caches, scope, None);
        // Deprecated means "may change" here; the version is pinned. The statements' variables stay.
        #[allow(deprecated)]
        match context.eval_expression_tree_raw(&Expression::from(&expr), false) {
            Ok(value) => last = value,
            Err(jump) => match *jump {
                EvalAltResult::Return(value, _) | EvalAltResult::Exit(value, _) => return Ok(value),
                error => return Err(Box::new(error)),
            },
        }
        first += count;
    }
    Ok(last)
}

/// `Err`: the text has returned.
fn run(
    engine: &Engine,
    global: &mut GlobalRuntimeState,
    scope: &mut Scope,
    variables: &[(ImmutableString, bool)],
    code: &Code,
    unit: &Arc<Unit>,
) -> Result<Result<Dynamic, Dynamic>, Box<EvalAltResult>> {
    let hooks = &*unit.hooks;
    let mut machine = Machine { engine, global, hooks, jump: None, looks: hooks.looks() };
    machine.global.scope_level += 1;
    let result = run_statement(&mut machine, code, scope, variables);
    machine.global.scope_level -= 1;
    match (result, machine.jump.take()) {
        (Ok(value), _) => Ok(Ok(value.boxed())),
        (Err(Some(error)), _) => match *error {
            EvalAltResult::Exit(value, _) => Ok(Err(value)),
            error => Err(Box::new(error)),
        },
        (Err(None), Some(Jump::Return(value))) => Ok(Err(value.boxed())),
        (Err(None), _) => Ok(Ok(Dynamic::UNIT)),
    }
}

/// The variables of a scope in order; none where one hides another, which cannot be reached by name.
fn variables(scope: &Scope) -> Option<Vec<(ImmutableString, bool)>> {
    let mut all: Vec<(ImmutableString, bool)> =
        scope.iter_raw().map(|(name, is_constant, _)| (name.into(), is_constant)).collect();
    // Rhai iterates from the latest to the earliest.
    all.reverse();
    let mut names: Vec<&str> = all.iter().map(|(name, _)| name.as_str()).collect();
    names.sort_unstable();
    names.windows(2).all(|pair| pair[0] != pair[1]).then_some(all)
}

/// Whether a statement has a loop in it.
fn repeats(statement: &Stmt) -> bool {
    any(statement, &|node| matches!(node, Stmt::While(..) | Stmt::Do(..) | Stmt::For(..)))
        && !matches!(statement, Stmt::Var(..))
        && !any(statement, &|node| matches!(node, Stmt::Import(..) | Stmt::Export(..)))
}

fn any(statement: &Stmt, test: &dyn Fn(&Stmt) -> bool) -> bool {
    let mut found = false;
    statement.walk(&mut Vec::new(), &mut |path: &[ASTNode]| {
        found |= matches!(path.last(), Some(ASTNode::Stmt(node)) if test(node));
        !found
    });
    found
}
