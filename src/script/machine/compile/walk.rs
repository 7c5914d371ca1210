//! Visits the parts of Rhai's tree, also the values of `break`, which Rhai's own walk passes over.

use rhai::{ASTNode, Expr, Stmt};

/// Visits a statement and all parts of it until `visit` says no.
pub fn statement(statement: &Stmt, visit: &mut dyn FnMut(&ASTNode) -> bool) -> bool {
    statement.walk(&mut Vec::new(), &mut |path: &[ASTNode]| node(path, visit))
}

/// The same of an expression.
pub fn expr(expr: &Expr, visit: &mut dyn FnMut(&ASTNode) -> bool) -> bool {
    expr.walk(&mut Vec::new(), &mut |path: &[ASTNode]| node(path, visit))
}

fn node(path: &[ASTNode], visit: &mut dyn FnMut(&ASTNode) -> bool) -> bool {
    let Some(last) = path.last() else { return true };
    if !visit(last) {
        return false;
    }
    match last {
        ASTNode::Stmt(Stmt::BreakLoop(Some(value), ..)) => expr(value, visit),
        _ => true,
    }
}
