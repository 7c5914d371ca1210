//! The statements of a text, each compiled among the variables of the session when its turn comes. `export` and
//! constants are declared by Rhai, with the value at hand.

use super::callback::Running;
use super::compile;
use super::compile::walk;
use super::compile::{Left, Outer};
use super::rest;
use super::run::{Jump, Machine};
use super::tree::Code;
use super::unit::{Unit, run_statement, too_large};
use rhai::{
    ASTFlags, ASTNode, Caches, Dynamic, Engine, EvalAltResult, EvalContext, Expr, Expression, GlobalRuntimeState,
    ImmutableString, Position, Scope, Stmt, StmtBlock,
};
use std::collections::HashSet;
use std::num::NonZeroUsize;
use std::sync::Arc;

/// What a statement of the top level comes to: a value, or the value with which the text returns.
type Ended = Result<Result<Dynamic, Dynamic>, Box<EvalAltResult>>;

/// Compiles and runs a text, in tests of its parts.
#[cfg(test)]
pub fn run_text(
    engine: &Engine,
    scope: &mut Scope,
    text: &rhai::AST,
    hooks: Arc<dyn crate::script::source::Hooks>,
) -> Result<Dynamic, Box<EvalAltResult>> {
    let (text, unit) = super::unit::adopt(engine, text, &hooks)?;
    let mut global = engine.new_global_runtime_state();
    global.lib.push(text.shared_lib().clone());
    evaluate(engine, &mut global, scope, text.statements(), &unit)
}

/// Runs the statements as Rhai's `eval_statements_raw` does.
pub fn evaluate(
    engine: &Engine,
    global: &mut GlobalRuntimeState,
    scope: &mut Scope,
    statements: &[Stmt],
    unit: &Arc<Unit>,
) -> Result<Dynamic, Box<EvalAltResult>> {
    let mut caches = Caches::new();
    let hooks = &*unit.hooks;
    let profiles = hooks.profiles();
    if profiles {
        hooks.function_begins("", statements.first().map_or(Position::NONE, Stmt::position));
    }
    let mut last = Ok(Dynamic::UNIT);
    for statement in statements {
        // The value before ends: it may hold a tensor.
        drop(std::mem::replace(&mut last, Ok(Dynamic::UNIT)));
        match one(engine, global, scope, &mut caches, statement, unit) {
            Ok(Ok(value)) => last = Ok(value),
            Ok(Err(value)) => {
                last = Ok(value);
                break;
            }
            Err(error) => {
                last = Err(error);
                break;
            }
        }
    }
    unit.environment.note(global);
    if profiles {
        hooks.function_ends();
    }
    last
}

fn one(
    engine: &Engine,
    global: &mut GlobalRuntimeState,
    scope: &mut Scope,
    caches: &mut Caches,
    statement: &Stmt,
    unit: &Arc<Unit>,
) -> Ended {
    let Stmt::Var(declared, flags, at) = statement else {
        if matches!(statement, Stmt::Export(..)) {
            return by_rhai(engine, global, scope, caches, statement.clone());
        }
        let (code, variables) = compiled(statement, scope, unit)?;
        let own = rest::own_name(statement);
        return run(engine, global, scope, &variables, (&code, own), unit, statement.position());
    };
    if scope.len() >= engine.max_variables() {
        return Err(Box::new(EvalAltResult::ErrorTooManyVariables(*at)));
    }
    let (name, expr, reused) = &**declared;
    let of_value = Stmt::Expr(Box::new(expr.clone()));
    let (code, variables) = compiled(&of_value, scope, unit)?;
    let value = match run(engine, global, scope, &variables, (&code, None), unit, expr.position())? {
        Ok(value) => value,
        returned => return Ok(returned),
    };
    if *flags == ASTFlags::empty() && reused.is_none() {
        scope.push_dynamic(name.name.clone(), value);
        return Ok(Ok(Dynamic::UNIT));
    }
    let mut declared = declared.clone();
    // What the value declared stands between.
    let from_end = || scope.iter_raw().position(|(known, ..)| known == name.name.as_str()).map_or(0, |at| at + 1);
    declared.2 = declared.2.and_then(|_| NonZeroUsize::new(from_end()));
    declared.1 = Expr::DynamicConstant(Box::new(value), expr.position());
    by_rhai(engine, global, scope, caches, Stmt::Var(declared, *flags, *at))
}

/// A statement's code and the variables that it is run among.
///
/// Cost: only the variables that it names are moved into slots and back, so that a statement costs the same however many
/// there are.
fn compiled(statement: &Stmt, scope: &Scope, unit: &Arc<Unit>) -> Result<(Code, Vec<Outer>), Box<EvalAltResult>> {
    let named = named(statement, scope);
    match compile::statement(statement, &named, false, Arc::downgrade(unit)) {
        Ok(code) => return Ok((code, named)),
        Err(Left::TooLarge) => return Err(too_large(statement.position())),
        Err(Left::NeedsAll) => {}
    }
    let mut all: Vec<Outer> = scope.iter_raw().map(|(name, is_constant, _)| (name.into(), is_constant)).collect();
    // Rhai iterates from the latest to the earliest.
    all.reverse();
    match compile::statement(statement, &all, true, Arc::downgrade(unit)) {
        Ok(code) => Ok((code, all)),
        Err(_) => Err(too_large(statement.position())),
    }
}

/// The variables of the session that a statement names, each once.
fn named(statement: &Stmt, scope: &Scope) -> Vec<Outer> {
    let (mut found, mut met): (Vec<Outer>, HashSet<ImmutableString>) = Default::default();
    let mut note = |name: &ImmutableString| {
        if met.insert(name.clone()) {
            found.extend(scope.is_constant(name).map(|is_constant| (name.clone(), is_constant)));
        }
    };
    walk::statement(statement, &mut |node| {
        match node {
            ASTNode::Expr(Expr::Variable(variable, ..)) if variable.2.path.is_empty() => note(&variable.1),
            ASTNode::Stmt(Stmt::Share(shared)) => shared.iter().for_each(|(name, _)| note(&name.name)),
            _ => {}
        }
        true
    });
    found
}

fn by_rhai(
    engine: &Engine,
    global: &mut GlobalRuntimeState,
    scope: &mut Scope,
    caches: &mut Caches,
    statement: Stmt,
) -> Ended {
    let expr = Expr::Stmt(Box::new(StmtBlock::new([statement], Position::NONE, Position::NONE)));
    let mut context = EvalContext::new(engine, global, caches, scope, None);
    // Deprecated means "may change" here; the version is pinned. The statement's variables stay.
    #[allow(deprecated)]
    let result = context.eval_expression_tree_raw(&Expression::from(&expr), false);
    match result {
        Ok(value) => Ok(Ok(value)),
        Err(jump) => match *jump {
            EvalAltResult::Return(value, _) | EvalAltResult::Exit(value, _) => Ok(Err(value)),
            error => Err(Box::new(error)),
        },
    }
}

/// `Err`: the text has returned.
fn run(
    engine: &Engine,
    global: &mut GlobalRuntimeState,
    scope: &mut Scope,
    variables: &[Outer],
    (code, own): (&Code, Option<&ImmutableString>),
    unit: &Arc<Unit>,
    at: Position,
) -> Ended {
    let hooks = &*unit.hooks;
    unit.environment.note(global);
    let _running = Running::enter(unit);
    let mut machine = Machine::new(engine, global, hooks);
    machine.global.scope_level += 1;
    // Limits are looked at once a statement, besides what loops and calls do.
    let result = machine.step(at).and_then(|()| run_statement(&mut machine, (code, own), scope, variables, None));
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
