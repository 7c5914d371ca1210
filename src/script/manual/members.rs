//! Names after a dot, by the type of the value before it, for completion. Those of tensors come from the op table;
//! useful ones of Rhai's own types are listed here.

use crate::op::row::CallForm;
use crate::op::table;
use crate::script::manual::{Form, members_of, natives};

pub const TEXT: &[&str] = &[
    "append",
    "bytes",
    "chars",
    "format",
    "clear",
    "contains",
    "crop",
    "ends_with",
    "index_of",
    "is_empty",
    "len",
    "make_lower",
    "make_upper",
    "pad",
    "parse_float",
    "parse_int",
    "pop",
    "remove",
    "replace",
    "split",
    "split_rev",
    "starts_with",
    "sub_string",
    "to_lower",
    "to_upper",
    "trim",
    "truncate",
];
pub const ARRAY: &[&str] = &[
    "count",
    "index",
    "all",
    "any",
    "extend",
    "join",
    "max",
    "min",
    "reversed",
    "sorted",
    "sum",
    "append",
    "chop",
    "clear",
    "contains",
    "dedup",
    "drain",
    "extract",
    "filter",
    "find",
    "find_map",
    "for_each",
    "index_of",
    "insert",
    "is_empty",
    "len",
    "map",
    "pad",
    "pop",
    "push",
    "reduce",
    "reduce_rev",
    "remove",
    "retain",
    "reverse",
    "shift",
    "some",
    "sort",
    "splice",
    "split",
    "truncate",
    "zip",
];
pub const MAP: &[&str] = &[
    "clear",
    "contains",
    "drain",
    "fill_with",
    "filter",
    "get",
    "is_empty",
    "items",
    "keys",
    "len",
    "mixin",
    "pop",
    "update",
    "remove",
    "retain",
    "set",
    "values",
];
pub const INT: &[&str] = &[
    "abs",
    "floor_divide",
    "is_even",
    "is_odd",
    "is_zero",
    "max",
    "min",
    "pow",
    "sign",
    "sqrt",
    "to_float",
    "to_string",
];
pub const FLOAT: &[&str] = &[
    "abs",
    "ceiling",
    "cos",
    "exp",
    "floor",
    "is_infinite",
    "is_nan",
    "ln",
    "max",
    "min",
    "pow",
    "round",
    "sin",
    "sqrt",
    "tan",
    "to_int",
    "to_string",
];
pub const CLOSURE: &[&str] = &["call", "curry"];

/// Methods and properties of tensors; methods end with a parenthesis, to distinguish them.
pub fn of_tensor() -> Vec<String> {
    let mut names = Vec::new();
    for op in table::all() {
        let first = op.params.first().is_some_and(|param| param.kind.takes_tensor());
        for name in std::iter::once(&op.name).chain(op.aliases) {
            match name.strip_prefix('.') {
                Some(property) => names.push(property.to_string()),
                None if matches!(op.call, CallForm::Both | CallForm::Method) && first => names.push(format!("{name}(")),
                None => {}
            }
            if op.inplace && op.call != CallForm::Internal && !name.starts_with('.') {
                names.push(format!("{name}_("));
            }
        }
    }
    for native in natives() {
        match native.form {
            Form::Method => names.push(format!("{}(", native.name)),
            Form::Property => names.push(native.name.to_string()),
            _ => {}
        }
    }
    names.sort_unstable();
    names.dedup();
    names
}

/// Methods and properties of streams and events.
pub fn of_stream() -> Vec<String> {
    let mut names = members_of("s");
    names.extend(["synchronize(", "device"].map(str::to_string));
    names
}

pub fn of_event() -> Vec<String> {
    let mut names = members_of("e");
    names.extend(["synchronize(", "query(", "device"].map(str::to_string));
    names
}

/// Methods of modules and optimizers.
pub fn of_module() -> Vec<String> {
    let more = ["forward", "to", "cuda", "cpu", "half", "float", "double", "bfloat16", "eval", "requires_grad_"];
    members_of("model").into_iter().chain(more.map(|name| format!("{name}("))).collect()
}

/// Methods of strings.
pub fn of_text() -> Vec<String> {
    let mut names: Vec<String> = TEXT.iter().map(|name| format!("{name}(")).chain(members_of("text")).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// Methods of sets.
pub fn of_set() -> Vec<String> {
    let more = ["len", "is_empty", "contains", "pop", "update", "to_array"];
    members_of("set").into_iter().chain(more.map(|name| format!("{name}("))).collect()
}

/// Whether a value of one of Rhai's own types has a method of that name.
pub fn is_member(name: &str) -> bool {
    [ARRAY, MAP, TEXT, INT, FLOAT, CLOSURE].iter().any(|names| names.contains(&name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::session::handle::Session;

    #[test]
    fn every_member_exists() {
        let session = Session::builder().build().expect("a session");
        let known = session.engine.gen_fn_signatures(true);
        for name in [TEXT, ARRAY, MAP, INT, FLOAT, CLOSURE].concat() {
            let there = known.iter().any(|signature| signature.starts_with(&format!("{name}(")));
            assert!(there || name == "call" || name == "curry", "{name}");
        }
    }

    #[test]
    fn tensors_have_methods_forms_and_properties() {
        let names = of_tensor();
        for name in ["relu(", "add_(", "shape", "item(", "T", "sum("] {
            assert!(names.iter().any(|known| known == name), "{name}");
        }
        assert!(!names.iter().any(|name| name == "zeros(" || name == "get("), "{names:?}");
    }
}
