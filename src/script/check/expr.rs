//! The values of expressions; and operators, properties and elements that a run would refuse.

use super::flow::Flow;
use super::guards;
use super::lints;
use super::seen::Seen;
use super::syntax::{Expr, Kind};
use super::value::Value;
use super::world::Unknown;
use crate::base::arithmetic;
use crate::base::code;
use crate::base::diag::Diag;
use crate::base::dtype::DType;
use crate::base::suggest::nearest;
use crate::op::args::{Arg, Args};
use crate::op::dry_run::{self, Outcome};
use crate::op::infer;
use crate::op::row::Op;
use crate::op::rows::pointwise::arith;
use crate::op::rows::shape::view;
use crate::op::table;
use crate::op::tensor::Tensor;
use crate::script::error::operator_help;
use crate::script::manual::members;
use crate::script::source::tree::is_keyword;
use smallvec::smallvec;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::OnceLock;

impl<'a> Flow<'a> {
    pub(super) fn expr(&mut self, expr: &'a Expr) -> Value {
        if !self.step() {
            return Value::Unknown;
        }
        let value = self.value(expr);
        if self.seen.is_some() {
            let seen = self.beyond_conditions(expr, &value);
            self.note(|noted, again| noted.note(expr.focus, &seen, again));
        }
        value
    }

    /// For editors: the value of a variable is what it held, whatever conditions ask about it.
    fn beyond_conditions(&self, expr: &Expr, value: &Value) -> Value {
        match &expr.kind {
            Kind::Name(name) => self.held(name).unwrap_or_else(|| value.clone()),
            _ => value.clone(),
        }
    }

    fn value(&mut self, expr: &'a Expr) -> Value {
        match &expr.kind {
            Kind::Unit => Value::Unit,
            Kind::Bool(value) => Value::Bool(Some(*value)),
            Kind::Int(value) => Value::Int(*value),
            Kind::Float(value) => Value::Float(*value),
            Kind::Str(text) => Value::Str(text.as_deref().map(Rc::from)),
            Kind::Char => Value::Char,
            Kind::Text(items) => {
                items.iter().for_each(|item| self.shown(item));
                Value::Str(None)
            }
            Kind::Array(items) => {
                // `[|| f(x), "E0203"]`: an expression next to an error code fails on purpose.
                let fails = items.iter().any(|item| matches!(&item.kind, Kind::Str(Some(text)) if is_code(text)));
                self.quiet += fails as usize;
                let items = items.iter().map(|item| self.expr(item)).collect();
                self.quiet -= fails as usize;
                Value::Array(Some(Rc::new(items)))
            }
            Kind::Map(entries) => {
                let mut map = BTreeMap::new();
                for entry in entries {
                    map.insert(entry.key.clone(), self.expr(&entry.value));
                }
                Value::Map(Some(Rc::new(map)))
            }
            Kind::Name(name) => self.name(name),
            Kind::Call { space, name, args, block } => {
                let value = match block {
                    Some(_) => self.block_word(expr.focus, name, args),
                    None => self.call(expr, space.as_deref(), name, args),
                };
                match block {
                    // `with_device(d) { .. }`: the value of the block is that of the whole.
                    Some(block) => self.block(block).value,
                    None => value,
                }
            }
            Kind::Method { of, name, args, may_be_unit } => {
                if self.is_module(of) {
                    args.iter().for_each(|arg| drop(self.expr(arg)));
                    return Value::Unknown;
                }
                let receiver = self.expr(of);
                self.note_receiver(expr.focus, of, &receiver);
                let receiver = if *may_be_unit { Value::Unknown } else { receiver };
                self.method(expr, of, receiver, name, args)
            }
            Kind::Apply { of, args } => {
                let of = self.expr(of);
                let values: Vec<Value> = args.iter().map(|arg| self.expr(arg)).collect();
                self.applied(expr.focus, &of, &values)
            }
            Kind::Property { of, name, may_be_unit } => {
                let holder = self.expr(of);
                self.note_receiver(expr.focus, of, &holder);
                if *may_be_unit { Value::Unknown } else { self.property(expr.focus, &holder, name) }
            }
            Kind::Index { of, items, may_be_unit } => {
                let of = self.expr(of);
                let values: Vec<Value> = items.iter().map(|item| self.expr(item)).collect();
                if *may_be_unit { Value::Unknown } else { self.element(expr.focus, &of, items, &values) }
            }
            Kind::Unary { op, of } => {
                let of = self.expr(of);
                self.sign(op, expr.focus, &of)
            }
            Kind::Binary { op, left, right } => {
                let first = left;
                let left = if op == "??" { self.asked(left) } else { self.expr(left) };
                let logical = matches!(&op[..], "&&" | "||");
                if logical {
                    self.truth(first, &left);
                }
                let operand = right;
                let right = match logical || op == "??" {
                    true => self.right(op, (first, &left), right),
                    false => self.expr(right),
                };
                if logical {
                    self.truth(operand, &right);
                }
                self.compared_type(op, expr.focus, first, &right);
                self.compared_type(op, expr.focus, operand, &left);
                self.operator(op, expr.focus, &left, &right)
            }
            Kind::Range { start, end, inclusive } => {
                let ends = [start, end].map(|end| end.as_deref().map(|end| self.expr(end)));
                self.range(expr.focus, ends, *inclusive)
            }
            Kind::Closure { params, body } => {
                self.closure(params, body);
                Value::Closure(Some(params.len()))
            }
            Kind::Path | Kind::Other => Value::Unknown,
            _ => {
                let kept = std::mem::replace(&mut self.kept, true);
                let value = self.flow(expr).value;
                self.kept = kept;
                value
            }
        }
    }

    /// What stands before the dot of a member.
    fn note_receiver(&mut self, member: u32, of: &Expr, value: &Value) {
        if self.seen.is_some() {
            let value = self.beyond_conditions(of, value);
            self.note(|noted, again| noted.note_receiver(member, &value, again));
        }
    }

    fn note(&mut self, note: impl FnOnce(&mut Seen, bool)) {
        let again = self.replay > 0;
        if let Some(seen) = &mut self.seen {
            note(seen, again);
        }
    }

    /// The left side of `??`: `m[k] ?? 0` tests whether there is such an entry.
    fn asked(&mut self, expr: &'a Expr) -> Value {
        match &expr.kind {
            Kind::Property { .. } | Kind::Index { .. } => {
                self.quiet += 1;
                let value = self.expr(expr);
                self.quiet -= 1;
                value
            }
            Kind::Binary { op, left, right } if op == "??" => {
                let (left, right) = (self.asked(left), self.asked(right));
                self.operator(op, expr.focus, &left, &right)
            }
            _ => self.expr(expr),
        }
    }

    /// `nn`, `nn.functional`: modules in the syntax of other languages, which `names.rs` reports.
    fn is_module(&self, expr: &Expr) -> bool {
        match &expr.kind {
            Kind::Name(name) => self.world.modules.contains_key(name),
            Kind::Property { of, .. } => self.is_module(of),
            _ => false,
        }
    }

    fn name(&mut self, name: &str) -> Value {
        if let Some(value) = self.read(name) {
            return value;
        }
        if let Some(own) = self.functions.get(name) {
            let mut counts = own.keys();
            let first = counts.next().copied();
            return Value::Closure(first.filter(|_| counts.next().is_none()));
        }
        match DType::parse(name) {
            Some(dtype) if !is_keyword(name) => Value::DType(Some(dtype)),
            _ if name == "args" => Value::Array(None),
            _ => Value::Unknown,
        }
    }

    pub(super) fn property(&mut self, token: u32, of: &Value, name: &str) -> Value {
        let wrong = match of {
            Value::Tensor(tensor) => {
                // Nothing in this text computes gradients.
                if name == "grad" && !self.world.backward {
                    return Value::Unit;
                }
                if members_of_tensor().iter().any(|known| known == name) {
                    return tensor_property(tensor.as_ref(), name);
                }
                true
            }
            Value::Map(Some(map)) => match map.get(name) {
                Some(value) => return value.clone(),
                None => {
                    let mut diag = (self.world.words)(Unknown::Entry(name), token);
                    let is_general = diag.help.as_ref().is_none_or(|help| help.starts_with("`keys()`"));
                    if is_general && let Some(near) = nearest(name, map.keys().map(String::as_str)) {
                        diag.help = Some(format!("did you mean `{near}`?"));
                    }
                    self.report(token, diag);
                    false
                }
            },
            Value::Str(_) | Value::Array(_) if matches!(name, "len" | "is_empty") => {
                return guards::answer(name, std::slice::from_ref(of)).unwrap_or(Value::Unknown);
            }
            Value::Str(_) => !matches!(name, "bytes" | "chars" | "bits"),
            Value::Array(_) => true,
            Value::Int(_) => !matches!(name, "is_zero" | "is_odd" | "is_even" | "bits"),
            Value::Float(_) => {
                !matches!(name, "is_zero" | "floor" | "ceiling" | "round" | "int" | "fraction")
                    && !matches!(name, "is_nan" | "is_finite" | "is_infinite")
            }
            Value::Object(kind) => !has_property(kind, name),
            Value::Unit | Value::Bool(_) => true,
            // Rhai has a few properties of closures and characters.
            _ => false,
        };
        if wrong {
            let diag = (self.world.words)(Unknown::Property(name, of.type_name().unwrap_or("tensor")), token);
            self.report(token, diag);
        }
        Value::Unknown
    }

    /// `x.shape = [4]`: a few properties of values other than maps can be assigned.
    pub(super) fn assigned(&mut self, token: u32, of: &Value, name: &str) {
        match (of, name) {
            (Value::Tensor(_), "grad" | "data" | "requires_grad" | "real" | "imag") => return,
            (Value::Object("cell"), "value") => return,
            _ => {}
        }
        let of = match of {
            Value::Tensor(_) => "tensor",
            Value::Device => "device",
            Value::DType(_) => "dtype",
            Value::Range(_) | Value::Number => return,
            other => other.type_name().unwrap_or("?"),
        };
        let diag = (self.world.words)(Unknown::Assigned(name, of), token);
        self.report(token, diag);
    }

    /// `x[i]`, `x[i, j]`.
    pub(super) fn element(&mut self, token: u32, of: &Value, items: &'a [Expr], values: &[Value]) -> Value {
        let wrong = |value: &&Value| value.text().is_some_and(|text| text != "...");
        match (of, values) {
            (Value::Tensor(_), _) if values.iter().any(|value| wrong(&value)) => {
                // As in a run: a single string finds no indexer, among other items it is an unsuitable one.
                let code = if values.len() == 1 { code::TYPE } else { code::ARGUMENT_TYPE };
                let text = "a tensor cannot be indexed by a string";
                let diag = Diag::error(code, text).help("`\"...\"` means the remaining dimensions: `x[\"...\", 0]`");
                self.report_at(token, diag, "indexed here");
                Value::Tensor(None)
            }
            (Value::Tensor(Some(tensor)), _) => self.part(token, tensor, items, values),
            (Value::Tensor(None), _) => Value::Tensor(None),
            (Value::Array(Some(array)), [Value::Int(Some(index))]) => {
                let n = array.len() as i64;
                let at = if *index < 0 { index + n } else { *index };
                if (0..n).contains(&at) {
                    return array[at as usize].clone();
                }
                let text = format!("index {index} is out of range for this array of {n} elements");
                self.report_at(token, Diag::error(code::INDEX, text), "no such element");
                Value::Unknown
            }
            (Value::Array(_), [Value::Range(_)]) => Value::Array(None),
            (Value::Str(_), [Value::Range(_)]) => Value::Str(None),
            (Value::Array(_) | Value::Str(_), [Value::Float(x)])
                if x.is_none_or(|x| arithmetic::whole(x).is_some()) =>
            {
                Value::Unknown
            }
            (Value::Array(_) | Value::Str(_), [part @ (Value::Str(_) | Value::Float(_) | Value::Unit)]) => {
                let diag = Diag::error(code::TYPE, format!("an integer is needed here, and this is {}", part.kind()));
                let diag = match part {
                    Value::Float(_) => diag.help("convert it by `.to_int()`, which rounds towards zero"),
                    _ => diag,
                };
                self.report_at(items.first().map_or(token, |item| item.first), diag, "this value");
                Value::Unknown
            }
            (Value::Map(Some(map)), [Value::Str(Some(key))]) => map.get(&**key).cloned().unwrap_or(Value::Unknown),
            (Value::Unit | Value::Bool(_) | Value::Float(_) | Value::Closure(_), [_]) => {
                let text = format!("{} has no elements", of.kind());
                self.report_at(token, Diag::error(code::TYPE, text), "indexed here");
                Value::Unknown
            }
            _ => Value::Unknown,
        }
    }

    /// Whether a value can be written to a part of a tensor.
    pub(super) fn fits(&mut self, token: u32, part: &Value, value: &Value) {
        if let (Value::Tensor(Some(part)), Value::Tensor(Some(value))) = (part, value)
            // Leading dimensions of size 1 are ignored.
            && value.ndim() <= part.ndim()
            && let Outcome::Refused(diag) =
                dry_run::inplace(&arith::COPY, Args(smallvec![Arg::Tensor(part.clone()), Arg::Tensor(value.clone())]))
        {
            self.report_at(token, diag, "assigned here");
        }
    }

    /// A part of a tensor by integers and ranges; of other indices only the number is checked.
    fn part(&mut self, token: u32, tensor: &Tensor, items: &'a [Expr], values: &[Value]) -> Value {
        let ndim = tensor.ndim();
        let plain = values.iter().all(|value| matches!(value, Value::Int(_) | Value::Range(_)));
        if plain && values.len() > ndim {
            self.report_at(token, infer::too_many_indices(values.len(), ndim), "too many");
            return Value::Tensor(None);
        }
        let (mut part, mut dim) = (tensor.clone(), 0i64);
        for (own, (item, value)) in items.iter().zip(values).enumerate() {
            match (value, &item.kind) {
                (Value::Int(Some(index)), _) => {
                    let size = tensor.shape().get(own).copied().unwrap_or_default();
                    let args = Args(smallvec![Arg::Tensor(part), dim.into(), (*index).into()]);
                    match dry_run::results(&view::SELECT, args) {
                        Outcome::Results(mut results) => part = results.swap_remove(0),
                        Outcome::Refused(mut diag) => {
                            if diag.code == code::INDEX {
                                diag.message = view::out_of_range(*index, own, size);
                            }
                            self.report_at(token, diag, "in this index");
                            return Value::Tensor(None);
                        }
                        Outcome::Unknown => return Value::Tensor(None),
                    }
                }
                (Value::Range(_), Kind::Range { start: None, end: None, .. }) => dim += 1,
                _ => return Value::Tensor(None),
            }
        }
        Value::Tensor(Some(part))
    }

    fn sign(&mut self, op: &str, token: u32, of: &Value) -> Value {
        match (op, of) {
            ("!", Value::Bool(value)) => Value::Bool(value.map(|value| !value)),
            ("-" | "+" | "!", Value::Int(_)) => Value::Int(None),
            ("-" | "+", Value::Float(_) | Value::Number) => of.clone(),
            (_, Value::Tensor(_)) => match operator_row(op, 1) {
                Some(row) => self.row(token, row, false, std::slice::from_ref(of)),
                None => Value::Unknown,
            },
            ("-", Value::Str(_) | Value::Unit | Value::Array(_) | Value::Map(_) | Value::Bool(_))
            | ("!", Value::Float(_) | Value::Str(_) | Value::Unit | Value::Array(_) | Value::Map(_)) => {
                self.no_operator(
                    token,
                    op,
                    &[of.type_name().unwrap_or("?")],
                    format!("`{op}` does not work on {}", of.kind()),
                );
                Value::Unknown
            }
            _ => Value::Unknown,
        }
    }

    pub(super) fn no_operator(&mut self, token: u32, op: &str, types: &[&str], text: String) {
        let mut diag = Diag::error(code::TYPE, text);
        diag.help = operator_help(op, types).map(str::to_string);
        self.report_at(token, diag, "this operator");
    }

    fn with_tensor(&mut self, token: u32, op: &str, other: &Value) {
        let types = [other.type_name().unwrap_or("?")];
        self.no_operator(token, op, &types, format!("`{op}` does not work between a tensor and {}", other.kind()));
    }

    pub(super) fn operator(&mut self, op: &str, token: u32, left: &Value, right: &Value) -> Value {
        if matches!(op, "&&" | "||") {
            return guards::logical(op, left, right);
        }
        if matches!(op, "in" | "!in") {
            self.contains_refused(token, left, right);
            return Value::Bool(guards::contained(left, right).map(|found| found == (op == "in")));
        }
        if op == "??" {
            return if matches!(left, Value::Unit) { right.clone() } else { left.join(right) };
        }
        if matches!(left, Value::Tensor(_)) || matches!(right, Value::Tensor(_)) {
            return self.tensor_operator(op, token, left, right);
        }
        self.plain_operator(op, token, left, right)
    }

    fn tensor_operator(&mut self, op: &str, token: u32, left: &Value, right: &Value) -> Value {
        let Some(row) = operator_row(op, 2) else { return Value::Unknown };
        let other = if matches!(left, Value::Tensor(_)) { right } else { left };
        match other {
            Value::Str(_) if op == "+" => return Value::Str(None),
            Value::Unit | Value::Str(_) | Value::Array(_) | Value::Map(_) | Value::Closure(_) | Value::Char => {
                if matches!(op, "==" | "!=") {
                    // `x == ()` tests whether there is a tensor.
                    if !matches!(other, Value::Unit) {
                        self.warn(token, lints::never_equal(op, left, right, self.world.origin(token)));
                        return Value::Bool(None);
                    }
                    return Value::Bool(Some(op == "!="));
                }
                self.with_tensor(token, op, other);
                return Value::Tensor(None);
            }
            Value::Tensor(_) => {}
            other if other.is_number() && op == "@" => {
                self.with_tensor(token, op, other);
                return Value::Tensor(None);
            }
            // Another type may define operators with tensors.
            other if !other.is_known() => return Value::Unknown,
            _ => {}
        }
        // A run reverses `0 < x`.
        let compares = matches!(op, "==" | "!=" | "<" | ">" | "<=" | ">=");
        let operands = if compares && left.is_number() { [right, left] } else { [left, right] };
        self.row(token, row, false, &operands.map(Value::clone))
    }

    /// `x += y`.
    pub(super) fn in_place(&mut self, op: &str, token: u32, tensor: &Tensor, value: &Value) {
        let Some(row) = operator_row(op.trim_end_matches('='), 2) else { return };
        match value {
            Value::Tensor(_) => {
                self.row(token, row, true, &[Value::Tensor(Some(tensor.clone())), value.clone()]);
            }
            Value::Str(_) | Value::Unit | Value::Array(_) | Value::Map(_) => {
                self.with_tensor(token, op, value);
            }
            Value::Int(_) | Value::Float(_) => {
                self.row(token, row, true, &[Value::Tensor(Some(tensor.clone())), value.clone()]);
            }
            _ => {}
        }
    }
}

/// `E0203`
fn is_code(text: &str) -> bool {
    text.len() == 5 && text.starts_with('E') && text[1..].bytes().all(|byte| byte.is_ascii_digit())
}

/// The row of an operator.
fn operator_row(symbol: &str, params: usize) -> Option<&'static Op> {
    table::all()
        .find(|op| op.operator == symbol && op.params.len() >= params && (op.params.len() == 1) == (params == 1))
}

/// Whether a value of a registered type has a property.
fn has_property(kind: &str, name: &str) -> bool {
    match kind {
        "timestamp" => name == "elapsed",
        "cell" => name == "value",
        "stream" => members::of_stream().iter().any(|known| known == name),
        "event" => members::of_event().iter().any(|known| known == name),
        _ => false,
    }
}

/// Methods, with a parenthesis, and properties of tensors.
pub fn members_of_tensor() -> &'static [String] {
    static READ: OnceLock<Vec<String>> = OnceLock::new();
    READ.get_or_init(members::of_tensor)
}

fn tensor_property(tensor: Option<&Tensor>, name: &str) -> Value {
    match (name, tensor) {
        ("shape", Some(tensor)) => {
            let sizes = tensor.shape().iter().map(|&n| Value::Int(Some(n as i64))).collect();
            Value::Array(Some(Rc::new(sizes)))
        }
        ("shape", None) => Value::Array(None),
        ("ndim", _) => Value::Int(tensor.map(|tensor| tensor.ndim() as i64)),
        ("numel", _) => Value::Int(tensor.map(|tensor| tensor.numel() as i64)),
        ("dtype", _) => Value::DType(tensor.map(Tensor::dtype)),
        ("device", _) => Value::Device,
        (
            "requires_grad" | "is_cuda" | "is_leaf" | "is_cpu" | "is_pinned" | "is_sparse" | "is_sparse_csr"
            | "retains_grad",
            _,
        ) => Value::Bool(None),
        ("itemsize" | "nbytes", _) => Value::Int(None),
        ("data", tensor) => Value::Tensor(tensor.cloned()),
        ("grad" | "grad_fn" | "layout", _) => Value::Unknown,
        (_, Some(tensor)) => match crate::script::manual::property_row(name) {
            Some(row) => match dry_run::results(row, Args(smallvec![Arg::Tensor(tensor.clone())])) {
                Outcome::Results(results) if results.len() == 1 => Value::Tensor(results.into_iter().next()),
                _ => Value::Tensor(None),
            },
            None => Value::Unknown,
        },
        (_, None) if crate::script::manual::property_row(name).is_some() => Value::Tensor(None),
        _ => Value::Unknown,
    }
}
