//! Mistakes that a single value shows: a tensor of several elements as a condition, a write to a copy, the value of a
//! method that returns nothing, a module in place of parameters, the value of a `try`.

use super::flow::Flow;
use super::layers::Layer;
use super::lints;
use super::syntax::{Block, Expr, Kind, Stmt, StmtKind};
use super::value::Value;
use crate::base::code;
use crate::base::diag::Diag;
use crate::op::tensor::Tensor;

/// Methods of arrays that change the array and return nothing.
const OF_ARRAYS: &[&str] = &[
    "push",
    "append",
    "extend",
    "insert",
    "sort",
    "sort_by",
    "sort_desc",
    "reverse",
    "clear",
    "truncate",
    "chop",
    "dedup",
    "pad",
    "set",
    "splice",
];
/// Methods of strings that change the string and return nothing.
const OF_STRINGS: &[&str] = &["clear", "crop", "truncate", "pad", "set", "append", "remove"];
/// Methods of strings that change the string and give it.
const GIVEN: &[&str] = &["replace", "trim", "make_upper", "make_lower"];
/// Methods of maps that change the map and return nothing.
const OF_MAPS: &[&str] = &["clear", "set", "mixin", "fill_with", "update"];
/// Methods of plain values that remove something and return it.
const TAKE_OUT: &[(&str, &[&str])] = &[
    ("array", &["pop", "shift", "remove", "retain", "drain", "split"]),
    ("map", &["pop", "remove", "retain", "drain"]),
    ("string", &["pop"]),
];
/// Pure functions and methods of plain values.
const OF_PLAIN: &[&str] = &[
    "sorted",
    "reversed",
    "enumerate",
    "zip",
    "len",
    "str",
    "int",
    "float",
    "to_string",
    "to_int",
    "to_float",
    "parse_int",
    "parse_float",
    "type_of",
    "is_empty",
    "contains",
    "index_of",
    "sub_string",
    "upper",
    "lower",
    "to_upper",
    "to_lower",
    "strip",
    "join",
    "starts_with",
    "ends_with",
    "extract",
    "keys",
    "values",
    "items",
    "to_json",
    "to_chars",
    "to_blob",
];
/// Pure methods of tensors that are not rows.
const OF_TENSORS: &[&str] = &["to", "detach", "cuda", "pin_memory"];

/// Methods that do not change an array or map.
const READS: &[&str] = &[
    "len",
    "is_empty",
    "contains",
    "keys",
    "values",
    "get",
    "map",
    "filter",
    "index_of",
    "join",
    "items",
    "find",
    "some",
    "all",
    "any",
    "sum",
    "max",
    "min",
    "sorted",
    "reversed",
    "zip",
    "to_string",
    "to_json",
    "reduce",
    "for_each",
    "type_of",
];

/// Methods that change the shape of the tensor itself.
const RELAYOUTS: &[&str] = &["t_", "transpose_", "swapaxes_", "swapdims_", "squeeze_", "unsqueeze_", "as_strided_"];
/// Methods that give a module of the library other parts.
const OF_MODULES: &[&str] = &[
    "append",
    "extend",
    "insert",
    "pop",
    "remove",
    "set",
    "add_module",
    "register_module",
    "register_parameter",
    "register_buffer",
    "set_submodule",
];

/// Whether a method changes the shape of the tensor itself.
pub fn relays(name: &str) -> bool {
    RELAYOUTS.contains(&name)
}

/// Whether a method may give a module other parts.
pub fn changes_modules(name: &str) -> bool {
    OF_MODULES.contains(&name)
}

/// Whether a method changes its receiver and returns nothing.
pub fn returns_nothing(receiver: &Value, name: &str) -> bool {
    match receiver {
        Value::Array(_) => OF_ARRAYS.contains(&name),
        Value::Str(_) => OF_STRINGS.contains(&name),
        Value::Map(_) => OF_MAPS.contains(&name),
        _ => false,
    }
}

/// Whether a method changes its receiver and gives it, too.
pub fn gives_itself(receiver: &Value, name: &str) -> bool {
    matches!(receiver, Value::Str(_)) && GIVEN.contains(&name)
}

/// Whether a method changes its receiver: a run refuses it for constants.
pub fn changes(receiver: &Value, name: &str) -> bool {
    let kind = receiver.type_name();
    returns_nothing(receiver, name)
        || gives_itself(receiver, name)
        || TAKE_OUT.iter().any(|(of, names)| kind == Some(of) && names.contains(&name))
}

/// Whether a function or method of plain values is pure.
pub fn is_pure_plain(name: &str) -> bool {
    OF_PLAIN.contains(&name)
}

/// Whether a method of a tensor is pure, although it is not a row.
pub fn is_pure(name: &str) -> bool {
    OF_TENSORS.contains(&name)
}

/// Whether a method leaves an array, a map or a string unchanged, unless the script defines a function of that name.
pub fn is_reading(name: &str) -> bool {
    READS.contains(&name) || is_pure_plain(name)
}

impl<'a> Flow<'a> {
    /// A condition.
    pub(super) fn truth(&mut self, expr: &'a Expr, value: &Value) {
        use Value::{Array, Char, Closure, Float, Int, Map, Range, Str, Unit};
        if matches!(value, Unit | Int(_) | Float(_) | Str(_) | Char | Array(_) | Map(_) | Closure(_) | Range(_)) {
            self.report(expr.first, lints::no_truth(value, self.world.origin(expr.focus)));
        }
        let Value::Tensor(Some(tensor)) = value else { return };
        let n = tensor.numel();
        if n != 1 {
            let text = format!("the truth of a tensor with {n} elements is ambiguous");
            let help = "use `.any()` or `.all()`; masks combine element by element by `&`, `|` and `!`";
            self.report_at(expr.focus, Diag::error(code::TRUTH, text).help(help), "a truth is asked here");
        }
    }

    /// `x.item()` of a tensor that does not have one element.
    pub(super) fn read_as_one(&mut self, token: u32, values: &[Value]) {
        let [Value::Tensor(Some(tensor))] = values else { return };
        let n = tensor.numel();
        if n != 1 {
            let diag = Diag::error(code::SHAPE, format!("a tensor of {n} elements is not one number"))
                .help("reduce it first, for example with `.sum()`, or index one element");
            self.report_at(token, diag, "read here");
        }
    }

    /// `x.backward()` of a tensor that does not have one element.
    pub(super) fn backward(&mut self, token: u32, values: &[Value]) {
        let (Some(Value::Tensor(Some(tensor))), n) = (values.first(), values.len()) else { return };
        if let Some(given @ (Value::Int(_) | Value::Float(_) | Value::Bool(_) | Value::Str(_))) = values.get(1) {
            let diag = Diag::error(code::ARGUMENT_TYPE, format!("a gradient is a tensor, not {}", given.kind()));
            self.report_at(token, diag, "in this call");
            return;
        }
        let without = match &values[1..] {
            [] | [Value::Unit] => true,
            [Value::Map(Some(map))] => !map.contains_key("gradient") && map.values().all(Value::is_known),
            _ => false,
        };
        if !self.world.gradients {
            let text = "this tensor does not require gradients and was not computed from one that does";
            let help = "make a leaf with `requires_grad: true`; was it computed inside `no_grad`, or detached?";
            self.report_at(token, Diag::error(code::GRAD_NONE, text).help(help), "here");
            return;
        }
        if tensor.numel() != 1 && without && n <= 2 {
            let text = format!("a tensor of shape {:?} needs an explicit gradient", tensor.shape().as_slice());
            let help = "reduce it to one number, for example with `.sum()`, or pass a gradient of its shape";
            self.report_at(token, Diag::error(code::GRAD_SHAPE, text).help(help), "here");
        }
    }

    /// `requires_grad` of a tensor that cannot have a gradient.
    pub(super) fn wants_gradients(&mut self, token: u32, tensor: Option<&Tensor>) {
        if let Some(tensor) = tensor.filter(|tensor| !tensor.dtype().is_differentiable()) {
            let dtype = tensor.dtype();
            let text = format!("only tensors of floating-point or complex numbers can require gradients, not {dtype}");
            self.report_at(token, Diag::error(code::DTYPE, text), "in this call");
        }
    }

    /// `let t = s.replace("a", "b");`: the method changes `s`, too. `xs = xs.sort();`: it gives nothing.
    pub(super) fn value_of_change(&mut self, value: &'a Expr, given: &Value, into: &str) {
        let Kind::Method { of, name, .. } = &value.kind else { return };
        if let (Kind::Name(variable), true, true) =
            (&of.kind, GIVEN.contains(&&name[..]), matches!(given, Value::Str(_)))
        {
            if &variable[..] == into {
                return;
            }
            let help = match &name[..] {
                "make_upper" | "make_lower" => "`text.upper()` and `text.lower()` give a copy",
                "trim" => "`text.strip()` gives a copy",
                _ => "take a copy first: `let t = s; t.replace(..);`",
            };
            let origin = self.world.origin(value.focus);
            return self.warn(value.focus, lints::changes_too(name, variable, help, origin));
        }
        let Value::Unit = given else { return };
        let is_own = matches!(&of.kind, Kind::Name(variable) if &variable[..] == into);
        let help = match &name[..] {
            name if is_own && [OF_ARRAYS, OF_STRINGS, OF_MAPS].iter().any(|all| all.contains(&name)) => {
                "write it as a statement, without the assignment"
            }
            "sort" => "`sorted(xs)` gives a copy",
            "reverse" => "`reversed(xs)` gives a copy",
            name if OF_ARRAYS.contains(&name) || OF_STRINGS.contains(&name) => {
                "write it as a statement, on a copy if need be"
            }
            _ => return,
        };
        let origin = self.world.origin(value.focus);
        self.warn(value.focus, lints::value_of_nothing(name, help, origin));
    }

    /// `x.shape[0] = 5`: the property returns a new array each time.
    pub(super) fn written_to_a_copy(&mut self, target: &'a Expr) {
        let Kind::Index { of, .. } = &target.kind else { return };
        let Kind::Property { of: holder, name, .. } = &of.kind else { return };
        if name == "shape" && matches!(self.peek_value(holder), Value::Tensor(_)) {
            let diag = Diag::error(code::UNKNOWN_PROPERTY, "`shape` is a copy, and its change would be lost")
                .help("`x.reshape(sizes)` gives a tensor of another shape; `let s = x.shape;` an array to work with");
            self.report_at(of.focus, diag, "changed here");
        }
    }

    /// `optim::sgd(model)`.
    pub(super) fn module_for_parameters(&mut self, token: u32, name: &str, values: &[Value]) {
        let Some(Value::Layer(layer)) = values.first() else { return };
        let takes_parameters = self.world.modules.get("optim").and_then(|module| module.signatures.get(name));
        let takes_parameters = takes_parameters.is_some_and(|signature| signature.first() == Some("params"));
        if takes_parameters && !matches!(**layer, Layer::Stepped(_) | Layer::Opaque) {
            let text = format!("`{name}`: the parameters are an array, and this is a module");
            let diag = Diag::error(code::ARGUMENT_TYPE, text).help("write `model.parameters()`");
            self.report_at(token, diag, "in this call");
        }
    }

    /// A function that ends in a `try` returns nothing, whatever the blocks end in.
    pub(super) fn value_of_try(&mut self, body: &'a [Stmt]) {
        let Some(Stmt { kind: StmtKind::Expr(expr), ended: false, .. }) = body.last() else { return };
        let Kind::Try { body, caught, .. } = &expr.kind else { return };
        if let Some(last) = [body, caught].into_iter().find_map(plain_value) {
            let origin = self.world.origin(last.focus);
            self.warn(last.focus, lints::value_of_try(origin));
        }
    }
}

/// The last expression of a block, if it is certainly a value without side effects.
fn plain_value(block: &Block) -> Option<&Expr> {
    match block.body.last()? {
        Stmt { kind: StmtKind::Expr(expr), ended: false, .. } => match &expr.kind {
            Kind::Bool(_) | Kind::Int(_) | Kind::Float(_) | Kind::Str(_) | Kind::Text(_) | Kind::Array(_) => Some(expr),
            Kind::Map(_) | Kind::Name(_) | Kind::Property { .. } | Kind::Index { .. } => Some(expr),
            Kind::Unary { .. } => Some(expr),
            Kind::Binary { op, .. } if !matches!(&op[..], "&&" | "||" | "??") => Some(expr),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::session::handle::Session;

    /// Arguments for the methods that need some.
    fn arguments(kind: &str, name: &str) -> &'static str {
        match (kind, name) {
            ("array", "push") => "1",
            ("array", "append" | "extend") => "[1]",
            ("array", "insert" | "set") => "0, 1",
            ("array", "sort_by") => "|a, b| a - b",
            ("array", "chop" | "truncate" | "remove" | "split") | ("string", "crop" | "truncate") => "1",
            ("array", "pad") => "5, 0",
            ("array", "splice") => "0, 1, [2]",
            ("array", "retain" | "drain") => "|x| x > 1",
            ("map", "set") => "\"a\", 2",
            ("map", "mixin" | "fill_with" | "update") => "#{b: 2}",
            ("map", "pop" | "remove") | ("string", "append" | "remove") => "\"a\"",
            ("map", "retain" | "drain") => "|k, v| true",
            ("string", "replace") => "\"a\", \"b\"",
            ("string", "pad") => "5, \"x\"",
            ("string", "set") => "0, 'x'",
            (_, "join" | "contains" | "index_of" | "starts_with" | "ends_with") => "\"a\"",
            (_, "sub_string" | "extract") => "1",
            ("array", "zip") => "[1, 2]",
            _ => "",
        }
    }

    fn refused(kind: &str, name: &str) -> bool {
        let value = match kind {
            "array" => "[1, 2]",
            "map" => "#{a: 1}",
            _ => "\"ab\"",
        };
        let text = format!("const X = {value}; X.{name}({});", arguments(kind, name));
        let ran = Session::builder().build().expect("a session").run_str("a.rhai", &text);
        ran.is_err_and(|error| error.code() == "E0110")
    }

    #[test]
    fn what_changes_a_value_is_refused_for_constants_and_nothing_else() {
        let own = [("array", OF_ARRAYS), ("string", OF_STRINGS), ("string", GIVEN), ("map", OF_MAPS)];
        for (kind, names) in own.into_iter().chain(TAKE_OUT.iter().copied()) {
            for name in names {
                assert!(refused(kind, name), "{name} of {kind}");
            }
        }
        for kind in ["array", "string", "map"] {
            for name in OF_PLAIN.iter().chain(&["get", "len"]) {
                assert!(!refused(kind, name), "{name} of {kind}");
            }
        }
    }
}
