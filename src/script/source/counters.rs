//! Loops with two names, `for (a, b) in values`: whether the second name looks like a counter.

/// Whether a name is a usual one for a counter: then the loop does what it says.
pub fn is_counter(name: &str) -> bool {
    let last = name.rsplit('_').next().unwrap_or(name);
    let is_short = name.len() == 1 && matches!(name, "i" | "j" | "k" | "n" | "t" | "s");
    let word = matches!(
        last,
        "" | "i" | "j" | "n" | "idx" | "index" | "count" | "counter" | "step" | "iter" | "iteration" | "it" | "epoch"
    ) || matches!(
        last,
        "at" | "pos" | "position" | "row" | "col" | "column" | "line" | "no" | "num" | "number"
    );
    is_short || word || name.starts_with('_')
}

/// Whether a name is one of an index alone: `for (pair, i) in m.items()`. Another name, such as `count`, may be that of what the
/// pairs hold.
pub fn is_index(name: &str) -> bool {
    let last = name.rsplit('_').next().unwrap_or(name);
    matches!(last, "" | "i" | "j" | "idx" | "index" | "step" | "iter" | "iteration" | "it" | "epoch")
        || name.starts_with('_')
}

/// Whether a method returns pairs of a name and a value.
pub fn gives_pairs(method: &str) -> bool {
    matches!(method, "items" | "named_parameters" | "named_buffers" | "named_modules" | "named_children")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_known_by_name() {
        for name in ["i", "idx", "batch_idx", "step", "_", "_b", "row_index", "n"] {
            assert!(is_counter(name), "{name}");
        }
        for name in ["b", "v", "value", "label", "y", "target", "indices"] {
            assert!(!is_counter(name), "{name}");
        }
        assert!(["i", "_", "batch_idx"].into_iter().all(is_index) && !["n", "count", "v"].into_iter().any(is_index));
    }
}
