//! `heap = rest;`, `rows[i] = row;`, `grid.push(row);` and `heap = pair[1];`: where a variable of a block is named for the last
//! time, its value or that part of it moves. So a value costs the same to hand on however large it is.

use super::ahead::Block;
use super::lending;
use super::walk;
use crate::script::machine::intrinsics::Intrinsic;
use crate::script::machine::places::exchange::is_path;
use crate::script::machine::tree::{Node, Root, Slot, StepKind};
use rhai::{ASTNode, Expr, Stmt};

/// Moves the value of a statement, if it is a variable that `is_own` says the block has declared and that nothing behind it
/// names.
pub fn move_last(node: &mut Node, (block, at): (&Block, usize), statement: &Stmt, is_own: &dyn Fn(Slot, &str) -> bool) {
    let Some(name) = moved_name(statement) else { return };
    let Some(value) = handed_on(node) else { return };
    let slot = match value {
        Node::Local(slot) => *slot,
        Node::Chain(chain) if chain.lost.is_none() && is_path(chain) => match chain.root {
            Root::Local(slot) => slot,
            _ => return,
        },
        _ => return,
    };
    if !is_own(slot, name) || !block.is_last(at, name) {
        return;
    }
    match value {
        Node::Chain(chain) => chain.moves = true,
        value => *value = Node::Take(slot),
    }
}

/// The variable that is handed on, or of which a part is, which nothing else in the statement names.
fn moved_name(statement: &Stmt) -> Option<&str> {
    let (value, others) = match statement {
        Stmt::Var(declared, ..) => (&declared.1, None),
        Stmt::Assignment(assignment) if !assignment.0.is_op_assignment() => {
            (&assignment.1.rhs, Some(&assignment.1.lhs))
        }
        Stmt::Expr(expr) => pushed(expr)?,
        _ => return None,
    };
    let root = match value {
        Expr::Dot(pair, ..) | Expr::Index(pair, ..) => &pair.lhs,
        value => value,
    };
    let Expr::Variable(variable, ..) = root else { return None };
    let is_alone = variable.2.path.is_empty()
        && lending::count_in(value, &variable.1) == 1
        && others.is_none_or(|other| !lending::mentions_in(other, &variable.1));
    is_alone.then_some(&*variable.1)
}

/// The value and the array of `xs.push(x)`.
fn pushed(expr: &Expr) -> Option<(&Expr, Option<&Expr>)> {
    let expr = match expr {
        Expr::Custom(custom, _) => custom.inputs.last()?,
        expr => expr,
    };
    let Expr::Dot(pair, ..) = expr else { return None };
    match (&pair.lhs, &pair.rhs) {
        (Expr::Variable(..), Expr::MethodCall(call, _)) if call.name == "push" => {
            Some((call.args.first()?, Some(&pair.lhs)))
        }
        _ => None,
    }
}

/// Where a statement's node has the value that it hands on.
fn handed_on(node: &mut Node) -> Option<&mut Node> {
    match node {
        Node::Mark(marked) => handed_on(&mut marked.1),
        Node::Let(_, value) => Some(value),
        Node::Assign(assign) => Some(&mut assign.value),
        Node::AssignChain(assign) => Some(&mut assign.value),
        Node::Chain(chain) => match (&*chain.steps, &mut *chain.operands) {
            ([step], [value]) if is_push(&step.kind) => Some(value),
            _ => None,
        },
        _ => None,
    }
}

fn is_push(step: &StepKind) -> bool {
    matches!(step, StepKind::Method { intrinsic: Some(Intrinsic::Push), function, .. } if function.strong_count() == 0)
}

/// Whether something in a statement may name a variable without its name in the text.
pub fn sees_all(statement: &Stmt) -> bool {
    !walk::statement(statement, &mut |node| match node {
        ASTNode::Expr(Expr::FnCall(call, _)) | ASTNode::Stmt(Stmt::FnCall(call, _)) => {
            !call.capture_parent_scope && !matches!(&*call.name, "eval" | "is_def_var")
        }
        ASTNode::Expr(Expr::Custom(custom, _)) => !crate::script::machine::rest::declares(custom),
        _ => true,
    })
}
