//! `a.b[c].d(e)` of Rhai's tree, which nests to the right, as a root and a list of steps.

use super::lending::only_reads;
use super::{Compiler, operand};
use crate::script::machine::intrinsics::Intrinsic;
use crate::script::machine::native::{Site, is_keyword};
use crate::script::machine::numeric::Numeric;
use crate::script::machine::quick::{self, Luck};
use crate::script::machine::tree::{Chain, Node, Root, Step, StepKind};
use crate::script::source::tree::CallForm;
use rhai::{ASTFlags, Expr, Position};
use std::sync::{Arc, OnceLock, Weak};

/// Bound: steps of one chain. Longer ones are left to Rhai, whose parser has a limit of its own.
const MOST_STEPS: usize = 256;

pub fn chain(compiler: &mut Compiler, expr: &Expr) -> Option<Chain> {
    let (Expr::Dot(pair, ..) | Expr::Index(pair, ..)) = expr else { return None };
    let mut steps = Vec::new();
    let mut operands = Vec::new();
    let mut parent = expr;
    loop {
        let (is_index, pair, flags, at) = match parent {
            Expr::Dot(pair, flags, at) => (false, pair, flags, *at),
            Expr::Index(pair, flags, at) => (true, pair, flags, *at),
            _ => return None,
        };
        let goes_on =
            matches!(pair.rhs, Expr::Dot(..) | Expr::Index(..)) && !(is_index && flags.contains(ASTFlags::BREAK));
        let item = match (&pair.rhs, goes_on) {
            (Expr::Dot(next, ..) | Expr::Index(next, ..), true) => &next.lhs,
            (item, _) => item,
        };
        let kind = if is_index { index(compiler, item, &mut operands)? } else { dot(compiler, item, &mut operands)? };
        let at = if is_index { at } else { item.position() };
        steps.push(Step { kind, or_unit: flags.contains(ASTFlags::NEGATED), at });
        if !goes_on {
            break;
        }
        if steps.len() == MOST_STEPS {
            return None;
        }
        parent = &pair.rhs;
    }
    let root = root(compiler, &pair.lhs)?;
    if let Root::Local(slot) = root
        && steps.iter().any(may_change)
    {
        compiler.changed.note(slot);
    }
    let name = pair.lhs.start_position();
    let unit = compiler.unit.upgrade()?;
    let last = steps.last().filter(|step| matches!(step.kind, StepKind::Method { .. })).map(|step| step.at);
    let lost_result = last.filter(|at| unit.hooks.loses(*at));
    let lost_copy = Some(name).filter(|name| matches!(root, Root::Local(_)) && unit.hooks.loses(*name));
    let mut whole = expr.clone();
    replace(&mut whole, operands.len());
    let numeric = steps.last().and_then(|last| numeric(compiler, last));
    let is_quick = quick::is_quick_chain(&root, &steps, &operands, numeric);
    let is_path = steps.iter().all(|step| !step.or_unit && !matches!(step.kind, StepKind::Method { .. }));
    Some(Chain {
        root,
        steps: steps.into(),
        operands: operands.into(),
        expr: whole,
        rests: OnceLock::new(),
        singles: OnceLock::new(),
        lost: lost_result.or(lost_copy),
        loses_result: lost_result.is_some(),
        lost_by_call: lost_result.or(lost_copy).is_some_and(|name| unit.hooks.loses_by_call(name)),
        numeric,
        is_quick,
        is_path,
        moves: false,
        luck: Luck::default(),
    })
}

/// What a method does, if it is a function of numbers or letters.
fn numeric(compiler: &Compiler, step: &Step) -> Option<Numeric> {
    match &step.kind {
        StepKind::Method { name, count, function, is_word: false, .. }
            if !step.or_unit && function.strong_count() == 0 && compiler.is_library(name) =>
        {
            Numeric::of(name, count + 1)
                .filter(|numeric| !numeric.takes_letter())
                .or_else(|| Numeric::of_letter(name, *count))
        }
        _ => None,
    }
}

/// Whether a step may change what stands before it, or keep it.
fn may_change(step: &Step) -> bool {
    match &step.kind {
        StepKind::Method { name, function, .. } => function.strong_count() > 0 || !only_reads(name),
        _ => false,
    }
}

fn root(compiler: &mut Compiler, expr: &Expr) -> Option<Root> {
    if let Expr::ThisPtr(at) = expr {
        return Some(Root::This(*at));
    }
    if let Some(visible) = compiler.variable(expr) {
        let (slot, name) = (visible.slot, visible.name.clone());
        return Some(if visible.is_constant { Root::Constant(slot, name) } else { Root::Local(slot) });
    }
    Some(Root::Value(compiler.expr(expr)?))
}

fn index(compiler: &mut Compiler, item: &Expr, operands: &mut Vec<Node>) -> Option<StepKind> {
    operands.push(compiler.expr(item)?);
    Some(StepKind::Index { operand: operands.len() - 1, site: Site::default() })
}

fn dot(compiler: &mut Compiler, item: &Expr, operands: &mut Vec<Node>) -> Option<StepKind> {
    match item {
        Expr::Property(property, _) => {
            let ((getter, _), _, name) = &**property;
            Some(StepKind::Property { name: name.clone(), getter: getter.clone(), site: Site::default() })
        }
        Expr::MethodCall(call, at) => {
            let first = operands.len();
            for argument in &call.args {
                operands.push(compiler.expr(argument)?);
            }
            let unit = compiler.unit.upgrade()?;
            unit.hooks.method_noted(&call.name, call.args.len());
            let is_word = is_keyword(&call.name) || unit.has_typed(&call.name);
            let function = unit.find(&call.name, call.args.len());
            if function.is_none() {
                compiler.note_call(&call.name, CallForm::Method, *at);
            }
            Some(StepKind::Method {
                name: call.name.clone(),
                first,
                count: call.args.len(),
                function: function.as_ref().map_or(Weak::new(), Arc::downgrade),
                site: Site::default(),
                is_word,
                intrinsic: Intrinsic::of(&call.name, call.args.len()),
            })
        }
        _ => None,
    }
}

/// Puts operands in the place of indices and arguments, and the last one in the place of the root.
fn replace(expr: &mut Expr, count: usize) {
    // The operands, what is assigned, and the root stand in the scope.
    let mut next = 0;
    let mut take = |at: Position| {
        let made = operand(count + 2 - next, at);
        next += 1;
        made
    };
    let (Expr::Dot(pair, ..) | Expr::Index(pair, ..)) = expr else { return };
    pair.lhs = operand(1, pair.lhs.start_position());
    let mut parent = expr;
    loop {
        let is_index = matches!(parent, Expr::Index(..));
        let (Expr::Dot(pair, flags, _) | Expr::Index(pair, flags, _)) = parent else { return };
        let goes_on =
            matches!(pair.rhs, Expr::Dot(..) | Expr::Index(..)) && !(is_index && flags.contains(ASTFlags::BREAK));
        let item = match (&mut pair.rhs, goes_on) {
            (Expr::Dot(next, ..) | Expr::Index(next, ..), true) => &mut next.lhs,
            (item, _) => item,
        };
        if is_index {
            *item = take(item.start_position());
        } else if let Expr::MethodCall(call, _) = item {
            for argument in call.args.iter_mut() {
                *argument = take(argument.position());
            }
        }
        if !goes_on {
            return;
        }
        parent = &mut pair.rhs;
    }
}
