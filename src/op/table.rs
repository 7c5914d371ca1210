//! The op table: every row, and look-up by name.

use super::row::Op;
use super::rows;
use crate::base::number_hash::ByNumber;
use std::collections::HashMap;
use std::sync::OnceLock;

/// Every row, family by family.
pub fn all() -> impl Iterator<Item = &'static Op> {
    rows::FAMILIES.iter().flat_map(|family| family.iter().copied())
}

/// What a script writes for the form of a row that changes its first operand: `add_`.
pub fn inplace_name(op: &'static Op) -> &'static str {
    static NAMES: OnceLock<ByNumber<usize, &'static str>> = OnceLock::new();
    // Rows are statics: their addresses tell them apart, and cost less to look up than their names.
    let number = |op: &'static Op| std::ptr::from_ref(op).addr();
    let names = NAMES.get_or_init(|| {
        // Bound: leaked once a row that has such a form, for the whole process.
        all()
            .filter(|op| op.inplace)
            .map(|op| (number(op), &*Box::leak(format!("{}_", op.name).into_boxed_str())))
            .collect()
    });
    names.get(&number(op)).copied().unwrap_or(op.name)
}

/// The row that a script means by `name` (aliases included).
pub fn find(name: &str) -> Option<&'static Op> {
    static INDEX: OnceLock<HashMap<&'static str, &'static Op>> = OnceLock::new();
    let index = INDEX.get_or_init(|| {
        let mut map = HashMap::new();
        for op in all().filter(|op| op.call != super::row::CallForm::Internal) {
            map.insert(op.name, op);
            for alias in op.aliases {
                map.insert(*alias, op);
            }
        }
        map
    });
    index.get(name).copied()
}
