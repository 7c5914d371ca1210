//! Changes of constants: a run refuses them for all values.

use super::flow::Flow;
use super::judged;
use super::syntax::{Expr, Kind};
use super::value::Value;
use crate::base::code;
use crate::base::diag::Diag;

const OF_MODULES: &str = "what a module exports is as it was when its text had run; `export const n = cell(0);` holds a value that can change: `m::n.set(1)`";
const HELP: &str = "declare it with `let` instead of `const`";

impl<'a> Flow<'a> {
    /// Whether an expression is a constant or a part of one: `XS`, `M.a[0]`.
    fn is_constant(&self, expr: &Expr) -> bool {
        match &expr.kind {
            Kind::Name(name) => self.vars.find(name).is_some_and(|var| var.constant),
            Kind::Property { of, .. } | Kind::Index { of, .. } => self.is_constant(of),
            _ => false,
        }
    }

    /// `XS[0] = 1`, `M.a = 1` of constants. A run accepts a new key of a map.
    pub(super) fn part_of_constant(&mut self, target: &'a Expr) -> bool {
        let (Kind::Property { of, .. } | Kind::Index { of, .. }) = &target.kind else { return false };
        if !self.is_constant(of) {
            return false;
        }
        let holder = self.expr(of);
        let refused = match (&holder, &target.kind) {
            (Value::Array(_), Kind::Index { .. }) => true,
            (Value::Map(Some(map)), Kind::Property { name, .. }) => map.contains_key(name),
            (Value::Tensor(_), Kind::Index { .. }) => true,
            (Value::Tensor(_), Kind::Property { name, .. }) => matches!(&name[..], "grad" | "data" | "requires_grad"),
            _ => false,
        };
        if refused {
            let (name, focus) = first(target);
            let text = format!("`{name}` cannot be changed: it is a constant");
            self.report_at(focus, Diag::error(code::CONSTANT, text).help(HELP), "changed here");
        }
        refused
    }

    /// `lib::x = 1`: what a module exports.
    pub(super) fn part_of_module(&mut self, target: &'a Expr) -> bool {
        let is_path = matches!(target.kind, Kind::Path);
        if is_path {
            let name = self.world.path(target.first);
            let text = format!("`{name}` cannot be changed outside of its module");
            self.report_at(target.first, Diag::error(code::CONSTANT, text).help(OF_MODULES), "changed here");
        }
        is_path
    }

    /// `XS.push(1)` of a constant.
    pub(super) fn changes_constant(
        &mut self,
        token: u32,
        of: &'a Expr,
        receiver: &Value,
        name: &str,
        count: usize,
    ) -> bool {
        let Some(kind) = receiver.type_name() else { return false };
        // An entry of a map may be a closure of that name.
        let entry = matches!(receiver, Value::Map(_)) && self.world.keys.contains(name);
        let refused = judged::changes(receiver, name)
            && !entry
            && self.is_constant(of)
            && (self.world.takes_first(name, count, kind) || name == "sort");
        if refused {
            let text = format!("`{name}` would change a constant");
            self.report_at(token, Diag::error(code::CONSTANT, text).help(HELP), "changed here");
        }
        refused
    }
}

/// The variable at the beginning of a target.
fn first(target: &Expr) -> (&str, u32) {
    match &target.kind {
        Kind::Property { of, .. } | Kind::Index { of, .. } => first(of),
        Kind::Name(name) => (name, target.focus),
        _ => ("", target.focus),
    }
}
