//! Gives what is left of a chain to Rhai, with operands in place of what is known.

use super::Goal;
use crate::script::machine::compile::operand;
use crate::script::machine::native::{Site, again_with_integers, again_with_texts, keeping};
use crate::script::machine::places::Values;
use crate::script::machine::run::{Machine, R};
use crate::script::machine::tree::{AssignChain, Chain, StepKind};
use crate::script::machine::value::Value;
use rhai::{ASTFlags, BinaryExpr, Caches, Dynamic, Expr, Stmt, StmtBlock};
use smallvec::SmallVec;

impl Machine<'_> {
    /// Gives the chain from a step on to Rhai.
    pub(in crate::script::machine) fn hand_over(
        &mut self,
        chain: &Chain,
        at: usize,
        target: &mut Dynamic,
        operands: &mut Values,
        goal: Goal,
    ) -> R {
        self.losing = None;
        match goal {
            Goal::Read | Goal::Ask => self.hand_over_noting(chain, at, target, operands, None),
            Goal::Write(assign, value) => {
                let rests =
                    assign.rests.get_or_init(|| chain.rests().iter().map(|rest| assigned(rest, assign)).collect());
                let mut values: SmallVec<[Dynamic; 6]> =
                    operands.iter_mut().map(|value| value.take().boxed()).collect();
                values.push(value.boxed());
                let mut list: SmallVec<[&mut Dynamic; 6]> = values.iter_mut().collect();
                list.push(target);
                let result = self.operate(&rests[at], &mut list, &mut Caches::new());
                result.map(Value::of).map_err(Some)
            }
        }
    }

    /// Gives one step of a chain that goes on to Rhai, and the place keeps the native function that Rhai finds.
    pub(super) fn one_step(
        &mut self,
        chain: &Chain,
        at: usize,
        target: &mut Dynamic,
        operands: &mut Values,
        site: (&Site, usize),
    ) -> R {
        let own = match &chain.steps[at].kind {
            StepKind::Method { first, count, .. } => *first..*first + *count,
            _ => 0..0,
        };
        // What later steps need stays.
        let take = |(at, value): (usize, &mut Value)| if own.contains(&at) { value.take() } else { Value::Unit };
        let mut operands: Values = operands.iter_mut().enumerate().map(take).collect();
        self.hand_over_expr(chain, &chain.singles()[at], at, target, &mut operands, Some(site))
    }

    /// As `hand_over`; a place keeps the native function that Rhai finds.
    pub(super) fn hand_over_noting(
        &mut self,
        chain: &Chain,
        at: usize,
        target: &mut Dynamic,
        operands: &mut Values,
        site: Option<(&Site, usize)>,
    ) -> R {
        self.hand_over_expr(chain, &chain.rests()[at], at, target, operands, site)
    }

    pub(super) fn hand_over_expr(
        &mut self,
        chain: &Chain,
        expr: &Expr,
        at: usize,
        target: &mut Dynamic,
        operands: &mut Values,
        site: Option<(&Site, usize)>,
    ) -> R {
        let mut values: SmallVec<[Dynamic; 6]> = operands.iter_mut().map(|value| value.take().boxed()).collect();
        // The expression counts operands from the end, with a place for what is assigned.
        values.push(Dynamic::UNIT);
        let mut types: SmallVec<[std::any::TypeId; 4]> = SmallVec::new();
        let step = &chain.steps[at];
        if site.is_some() {
            types.push((*target).type_id());
            match &step.kind {
                StepKind::Index { operand, .. } => types.push(values[*operand].type_id()),
                StepKind::Method { first, count, .. } => {
                    types.extend(values[*first..*first + *count].iter().map(Dynamic::type_id));
                }
                StepKind::Property { .. } => {}
            }
        }
        let mut list: SmallVec<[&mut Dynamic; 6]> = values.iter_mut().collect();
        list.push(target);
        match site {
            Some((site, count)) if types.len() == count => {
                let mut caches = keeping();
                let result = self.operate(expr, &mut list, &mut caches);
                if result.is_ok() {
                    site.remember(types, &mut caches, matches!(step.kind, StepKind::Property { .. }));
                }
                match &step.kind {
                    StepKind::Method { name, first, count, .. } => {
                        let call = |list: &mut [&mut Dynamic]| self.operate(expr, list, &mut Caches::new());
                        let result = again_with_integers(result, name, &mut list, *first..*first + *count, call);
                        let call = |list: &mut [&mut Dynamic]| self.operate(expr, list, &mut Caches::new());
                        again_with_texts(result, name, &mut list, call)
                    }
                    _ => result,
                }
            }
            _ => self.operate(expr, &mut list, &mut Caches::new()),
        }
        .map(Value::of)
        .map_err(Some)
    }
}

impl Chain {
    /// Each step alone, with the value before it as its root.
    pub(super) fn singles(&self) -> &[Expr] {
        self.singles.get_or_init(|| self.rests().iter().map(alone).collect())
    }

    /// The chain from each step on, with the value before it as its root.
    pub(super) fn rests(&self) -> &[Expr] {
        self.rests.get_or_init(|| {
            let mut rests = Vec::with_capacity(self.steps.len());
            let mut rest = self.expr.clone();
            for _ in 0..self.steps.len() {
                rests.push(rest.clone());
                rest = match shorter(&rest) {
                    Some(rest) => rest,
                    None => break,
                };
            }
            rests.into()
        })
    }
}

/// The chain without its first step: that of `$.b.c` is `$.c`.
fn shorter(expr: &Expr) -> Option<Expr> {
    let (Expr::Dot(pair, ..) | Expr::Index(pair, ..)) = expr else { return None };
    let root = pair.lhs.clone();
    Some(match pair.rhs.clone() {
        Expr::Dot(rest, flags, at) => Expr::Dot(Box::new(BinaryExpr { lhs: root, rhs: rest.rhs }), flags, at),
        Expr::Index(rest, flags, at) => Expr::Index(Box::new(BinaryExpr { lhs: root, rhs: rest.rhs }), flags, at),
        _ => return None,
    })
}

/// The first step of a chain: that of `$.b.c` is `$.b`.
fn alone(rest: &Expr) -> Expr {
    let mut first = rest.clone();
    let is_index = matches!(first, Expr::Index(..));
    if let Expr::Dot(pair, flags, _) | Expr::Index(pair, flags, _) = &mut first
        && let Expr::Dot(next, ..) | Expr::Index(next, ..) = &pair.rhs
        && !(is_index && flags.contains(ASTFlags::BREAK))
    {
        pair.rhs = next.lhs.clone();
    }
    first
}

/// `rest = value` as an expression.
fn assigned(rest: &Expr, assign: &AssignChain) -> Expr {
    let value = operand(2, assign.value_at);
    let pair = BinaryExpr { lhs: rest.clone(), rhs: value };
    let at = rest.position();
    Expr::Stmt(Box::new(StmtBlock::new([Stmt::Assignment(Box::new((assign.info.clone(), pair)))], at, at)))
}
