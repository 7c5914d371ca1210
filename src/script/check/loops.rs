//! Loops over known bounds: the last iteration certainly runs if nothing leaves the loop, and with it code for its
//! index. And `switch`: duplicate cases.

use super::flow::Flow;
use super::lints;
use super::syntax::{Arm, Block, Expr, Kind, Param, Stmt, StmtKind};
use super::value::Value;
use super::visit::{Changes, Visit};
use std::collections::HashSet;

impl<'a> Flow<'a> {
    /// Analyzes a loop's body again for its last iteration: `for i in 0..4 { xs[i] }`.
    pub(super) fn last_iteration(&mut self, over: &Value, names: &'a [Param], body: &'a Block) {
        let (Value::Range(Some((start, end))), [name]) = (over, names) else { return };
        if start >= end || has_break(body) || leaves(body) || ends_script(body) || self.later > 0 || self.quiet > 0 {
            return;
        }
        let (depth, doubt, before) = (self.vars.len(), self.doubt, self.vars.mark());
        // Findings must be certain from here on; the loop itself runs if the surrounding code does.
        if self.replay == 0 {
            self.doubt = 0;
        }
        self.replay += 1;
        self.forget(&Changes::of(&body.body));
        self.declare(name, Value::Int(Some(end - 1)), false);
        self.block(body);
        self.leave(depth);
        self.vars.back(before);
        self.replay -= 1;
        self.doubt = doubt;
    }

    /// Duplicate cases of a `switch`.
    pub(super) fn cases_again(&mut self, arms: &'a [Arm]) {
        let mut seen: HashSet<String> = HashSet::new();
        for case in arms.iter().filter(|arm| arm.guard.is_none()).flat_map(|arm| &arm.cases) {
            let Some(text) = plain_case(case) else { continue };
            if seen.contains(&text) {
                self.warn(case.focus, lints::case_again(&text, self.world.origin(case.focus)));
            } else {
                seen.insert(text);
            }
        }
    }
}

/// The value of a case, if it is a single plain value.
fn plain_case(case: &Expr) -> Option<String> {
    match &case.kind {
        Kind::Int(Some(n)) => Some(n.to_string()),
        Kind::Bool(value) => Some(value.to_string()),
        Kind::Str(Some(text)) => Some(format!("{text:?}")),
        _ => None,
    }
}

/// Whether a body may end the script.
fn ends_script(body: &Block) -> bool {
    let mut found = false;
    let mut expr = |expr: &Expr| found |= matches!(&expr.kind, Kind::Call { space: None, name, .. } if name == "exit");
    Visit { stmt: &mut |_| {}, expr: &mut expr }.block(body);
    found
}

/// Whether a loop's body may leave the loop by `break`.
pub fn has_break(body: &Block) -> bool {
    let mut found = false;
    let mut stmt = |stmt: &Stmt| found |= matches!(stmt.kind, StmtKind::Break(_));
    Visit { stmt: &mut stmt, expr: &mut |_| {} }.block(body);
    found
}

/// Whether a body may leave its function.
pub fn leaves(body: &Block) -> bool {
    let mut found = false;
    let mut stmt = |stmt: &Stmt| found |= matches!(stmt.kind, StmtKind::Return(_) | StmtKind::Throw(_));
    Visit { stmt: &mut stmt, expr: &mut |_| {} }.block(body);
    found
}
