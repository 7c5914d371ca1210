//! Map literals that the source pass has cut into parts: `__entries([#{a: 1, ..},#{b: 2, ..}])` is one literal.

use super::Compiler;
use crate::script::machine::tree::{MapLiteral, Node};
use rhai::{Expr, FnCallExpr};

/// The function that stands around the parts.
pub const ENTRIES: &str = "__entries";

/// The parts of a literal, where a call is one.
pub fn parts(call: &FnCallExpr) -> Option<&[Expr]> {
    match &*call.args {
        [Expr::Array(parts, _)] if call.name == ENTRIES && parts.iter().all(|part| matches!(part, Expr::Map(..))) => {
            Some(parts)
        }
        _ => None,
    }
}

impl Compiler {
    /// A literal of parts.
    pub(super) fn entries(&mut self, parts: &[Expr]) -> Option<Node> {
        let (mut template, mut entries) = (rhai::Map::new(), Vec::new());
        for part in parts {
            let Expr::Map(map, _) = part else { return None };
            template.extend(map.1.iter().map(|(name, value)| (name.clone(), value.clone())));
            for (name, value) in &map.0 {
                entries.push((name.name.clone(), self.expr(value)?));
            }
        }
        Some(Node::Map(Box::new(MapLiteral { template, entries: entries.into() })))
    }
}
