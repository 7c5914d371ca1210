//! Mistakes that what is known of one value tells: a tensor of several elements where one is asked, what is written to a
//! copy, methods that give nothing, a module where parameters are wanted, the value of a `try`.

use super::flow::Flow;
use super::layers::Layer;
use super::lints;
use super::syntax::{Block, Expr, Kind, Stmt, StmtKind};
use super::value::Value;
use crate::base::code;
use crate::base::diag::Diag;

/// Methods of arrays that change the array and give nothing.
const OF_ARRAYS: &[&str] =
    &["push", "append", "extend", "insert", "sort", "reverse", "clear", "truncate", "dedup", "fill"];
/// Methods of strings that change the string and give nothing.
const OF_STRINGS: &[&str] = &["replace", "trim", "make_upper", "make_lower", "clear", "crop", "truncate", "pad"];
/// Methods of tensors that are no rows, and do nothing but give another tensor.
const OF_TENSORS: &[&str] = &["to", "detach", "cuda", "pin_memory"];

/// Whether a method changes what it is called on and gives nothing.
pub fn gives_nothing(receiver: &Value, name: &str) -> bool {
    match receiver {
        Value::Array(_) => OF_ARRAYS.contains(&name),
        Value::Str(_) => OF_STRINGS.contains(&name),
        _ => false,
    }
}

/// Whether a method of a tensor does nothing but give another tensor, although no row says so.
pub fn only_gives(name: &str) -> bool {
    OF_TENSORS.contains(&name)
}

impl<'a> Flow<'a> {
    /// A tensor whose truth is asked.
    pub(super) fn truth(&mut self, expr: &'a Expr, value: &Value) {
        let Value::Tensor(Some(tensor)) = value else { return };
        let n = tensor.numel();
        if n != 1 {
            let text = format!("the truth of a tensor with {n} elements is ambiguous");
            let help = "use `.any()` or `.all()`; masks combine element by element by `&`, `|` and `!`";
            self.report_at(expr.focus, Diag::error(code::TRUTH, text).help(help), "a truth is asked here");
        }
    }

    /// `x.item()` of a tensor that has not one element.
    pub(super) fn read_as_one(&mut self, token: u32, values: &[Value]) {
        let [Value::Tensor(Some(tensor))] = values else { return };
        let n = tensor.numel();
        if n != 1 {
            let diag = Diag::error(code::SHAPE, format!("a tensor of {n} elements is not one number"))
                .help("reduce it first, for example with `.sum()`, or index one element");
            self.report_at(token, diag, "read here");
        }
    }

    /// `let t = s.replace("a", "b");`: the method changes `s`.
    pub(super) fn value_of_nothing(&mut self, value: &'a Expr, given: &Value) {
        let (Kind::Method { name, .. }, Value::Unit) = (&value.kind, given) else { return };
        let help = match &name[..] {
            "sort" => "`sorted(xs)` gives a copy",
            "reverse" => "`reversed(xs)` gives a copy",
            "make_upper" | "make_lower" => "`text.upper()` and `text.lower()` give a copy",
            "trim" => "`text.strip()` gives a copy",
            name if OF_ARRAYS.contains(&name) || OF_STRINGS.contains(&name) => {
                "write it as a statement, on a copy if need be"
            }
            _ => return,
        };
        let origin = self.world.origin(value.focus);
        self.warn(value.focus, lints::value_of_nothing(name, help, origin));
    }

    /// `x.shape[0] = 5`: the array is made anew by each question.
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
        if takes_parameters && !matches!(**layer, Layer::Stepped | Layer::Opaque) {
            let text = format!("`{name}`: the parameters are an array, and this is a module");
            let diag = Diag::error(code::ARGUMENT_TYPE, text).help("write `model.parameters()`");
            self.report_at(token, diag, "in this call");
        }
    }

    /// A function that ends in a `try` gives nothing, whatever the blocks end in.
    pub(super) fn value_of_try(&mut self, body: &'a [Stmt]) {
        let Some(Stmt { kind: StmtKind::Expr(expr), ended: false, .. }) = body.last() else { return };
        let Kind::Try { body, caught, .. } = &expr.kind else { return };
        if let Some(last) = [body, caught].into_iter().find_map(plain_value) {
            let origin = self.world.origin(last.focus);
            self.warn(last.focus, lints::value_of_try(origin));
        }
    }
}

/// What a block ends in, where it is a value for certain and nothing is done to make it.
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
