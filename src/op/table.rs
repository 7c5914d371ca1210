//! The op table: every row, and look-up by name.

use super::row::{CallForm, Op};
use super::rows;
use crate::base::number_hash::ByNumber;
use std::collections::HashMap;
use std::sync::OnceLock;

/// Every row, family by family.
pub fn all() -> impl Iterator<Item = &'static Op> {
    rows::FAMILIES.iter().flat_map(|(_, family)| family.iter().copied())
}

/// The name of a row's in-place form in scripts: `add_`.
pub fn inplace_name(op: &'static Op) -> &'static str {
    static NAMES: OnceLock<ByNumber<usize, &'static str>> = OnceLock::new();
    // Rows are statics: their addresses identify them, and are faster to look up than their names.
    let number = |op: &'static Op| std::ptr::from_ref(op).addr();
    let names = NAMES.get_or_init(|| {
        // Bound: leaked once for each row that has such a form, for the whole process.
        all()
            .filter(|op| op.inplace)
            .map(|op| (number(op), &*Box::leak(format!("{}_", op.name).into_boxed_str())))
            .collect()
    });
    names.get(&number(op)).copied().unwrap_or(op.name)
}

/// The row that a call by `name` or of the method `name` means, and whether it is the in-place form `name_`. Two rows
/// may share a name, one of them for that form only.
pub fn called(name: &str) -> Option<(&'static Op, bool)> {
    type Index = HashMap<&'static str, &'static Op>;
    static INDEX: OnceLock<(Index, Index)> = OnceLock::new();
    let (plain, inplace) = INDEX.get_or_init(|| {
        let (mut plain, mut inplace) = (Index::new(), Index::new());
        for op in all().filter(|op| op.call != CallForm::Internal) {
            for name in std::iter::once(op.name).chain(op.aliases.iter().copied()) {
                if op.call != CallForm::InPlace {
                    plain.insert(name, op);
                }
                if op.inplace {
                    inplace.insert(name, op);
                }
            }
        }
        (plain, inplace)
    });
    let written = || inplace.get(name.strip_suffix('_')?).map(|&op| (op, true));
    plain.get(name).map(|&op| (op, false)).or_else(written)
}

/// The row with this name in scripts (aliases included).
pub fn find(name: &str) -> Option<&'static Op> {
    static INDEX: OnceLock<HashMap<&'static str, &'static Op>> = OnceLock::new();
    let index = INDEX.get_or_init(|| {
        let mut map = HashMap::new();
        for op in all().filter(|op| op.call != CallForm::Internal) {
            map.insert(op.name, op);
            for alias in op.aliases {
                map.insert(*alias, op);
            }
        }
        map
    });
    index.get(name).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::program::ReduceKind;
    use crate::op::row::{Forward, Grad, Lower};

    /// Rows whose derivative along tangents is the transpose of their gradient: no shorter way is written down.
    const TRANSPOSED: &[&str] = &[
        "_recurrent",
        "amax",
        "amin",
        "as_strided",
        "batch_norm",
        "cdist",
        "cholesky",
        "cholesky_ex",
        "cholesky_inverse",
        "cholesky_solve",
        "cross_entropy",
        "ctc_loss",
        "cumprod",
        "det",
        "eig",
        "eigh",
        "fill",
        "fill_diagonal",
        "grid_sample",
        "group_norm",
        "layer_norm",
        "log_softmax",
        "logsumexp",
        "lstsq",
        "lu",
        "matrix_exp",
        "max",
        "median",
        "min",
        "nanmedian",
        "pinv",
        "prod",
        "qr",
        "rms_norm",
        "scaled_dot_product_attention",
        "scatter_reduce",
        "slogdet",
        "softmax",
        "solve",
        "solve_ex",
        "solve_triangular",
        "spread",
        "std",
        "std_mean",
        "svd",
        "var",
        "var_mean",
        "vector_norm",
    ];

    /// Rows whose gradient is zero: positions, random numbers.
    const ZERO: &[&str] = &[
        "angle",
        "bernoulli",
        "binomial",
        "cauchy",
        "exponential",
        "geometric",
        "isclose",
        "log_normal",
        "normal",
        "poisson",
        "random",
        "uniform",
    ];

    fn has_forward_rule(op: &'static Op) -> bool {
        match (&op.forward, &op.lower) {
            (Forward::Usual, Lower::Map { .. } | Lower::View(_) | Lower::Compose(_) | Lower::Unset) => true,
            (Forward::Usual, Lower::Reduce { kind: ReduceKind::Sum, .. }) => true,
            (Forward::Usual | Forward::Transposed, _) => false,
            _ => true,
        }
    }

    #[test]
    fn every_derivative_along_tangents_has_a_rule_or_is_listed() {
        let has_gradient = |op: &Op| matches!(op.grad, Grad::Rule(_) | Grad::Of(_) | Grad::Window(_));
        let without: Vec<&str> =
            all().filter(|op| has_gradient(op) && !has_forward_rule(op)).map(|op| op.name).collect();
        let listed = || TRANSPOSED.iter().chain(ZERO);
        let missing: Vec<&&str> = without.iter().filter(|name| !listed().any(|other| other == *name)).collect();
        assert!(missing.is_empty(), "neither a rule nor listed: {missing:?}");
        let wrong: Vec<&&str> = listed().filter(|name| !without.contains(name)).collect();
        assert!(wrong.is_empty(), "have a rule: {wrong:?}");
    }
}
