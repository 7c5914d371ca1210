//! Calls by name and by method: which function is meant, how many arguments it takes, which keywords, and what it
//! returns.

use super::expr::members_of_tensor;
use super::flow::Flow;
use super::guards;
use super::judged::{changes_modules, gives_itself, is_reading, relays, returns_nothing};
use super::layers;
use super::syntax::{Expr, Kind};
use super::value::{Value, nested};
use super::world::Unknown;
use crate::base::arithmetic;
use crate::base::code;
use crate::base::diag::{Diag, Result};
use crate::base::dtype::DType;
use crate::base::signature::{Accepts, Param, Signature};
use crate::op::dry_run;
use crate::op::params;
use crate::op::table;
use crate::op::tensor::Tensor;
use crate::script::bind::signed::Last;
use crate::script::library::texts::files;
use crate::script::manual::{self, Form, Native};
use std::rc::Rc;

/// Methods that every value has.
const COMMON: &[&str] =
    &["type_of", "to_string", "to_debug", "is_shared", "print", "debug", "to_json", "format", "str"];

impl<'a> Flow<'a> {
    fn arguments(&mut self, args: &'a [Expr]) -> Vec<Value> {
        let kept = std::mem::replace(&mut self.kept, true);
        let values = args.iter().map(|arg| self.expr(arg)).collect();
        self.kept = kept;
        values
    }

    pub(super) fn call(&mut self, expr: &'a Expr, space: Option<&str>, name: &'a str, args: &'a [Expr]) -> Value {
        let token = expr.focus;
        // Functions that catch errors may get arguments that fail on purpose.
        let catches = space == Some("test") || (space.is_none() && self.catchers.contains(name));
        self.quiet += catches as usize;
        let values = self.arguments(args);
        self.quiet -= catches as usize;
        let held = if space.is_none() { self.read(name) } else { None };
        match space {
            None if held.as_ref().is_some_and(Value::may_be_called) => {
                self.applied(token, &held.unwrap_or(Value::Unknown), &values)
            }
            None if held.is_some() && !self.is_own(name) && !self.is_anywhere(name) => {
                let types: Vec<&str> = values.iter().map(known_type).collect();
                let diag = (self.world.words)(Unknown::Function(name, &types.join(", ")), token);
                self.report(token, diag);
                Value::Unknown
            }
            None if self.is_own(name) => self.own(token, name, values),
            None => self.native(token, name, &values, args),
            Some(space) if manual::MODULES.contains(&space) && !self.world.modules.contains_key(space) => {
                self.native(token, &format!("{space}::{name}"), &values, args)
            }
            Some(space) => {
                self.of_module(token, space, name, &values);
                if space == "optim" {
                    self.module_for_parameters(token, name, &values);
                }
                let signed = self.world.modules.get(space).is_some_and(|module| module.signatures.contains_key(name));
                if signed { Value::Layer(Rc::new(layers::made(space, name, &values))) } else { Value::Unknown }
            }
        }
    }

    /// `with_device(d) { .. }`
    pub(super) fn block_word(&mut self, token: u32, name: &'a str, args: &'a [Expr]) -> Value {
        let values = self.arguments(args);
        if let Err(diag) = texts(name, &values) {
            let place = args.first().map_or(token, |first| first.first);
            self.report_at(place, diag, "here");
        }
        Value::Unknown
    }

    /// The numbers of parameters of the script's functions of that name.
    fn own_counts(&self, name: &str) -> Vec<usize> {
        self.functions.get(name).map_or(Vec::new(), |own| own.keys().copied().collect())
    }

    /// A call of a function of the script.
    fn own(&mut self, token: u32, name: &'a str, values: Vec<Value>) -> Value {
        let counts = self.own_counts(name);
        if counts.contains(&values.len()) {
            return self.called(name, values);
        }
        if self.world.forms.contains_key(name) {
            return self.native(token, name, &values, &[]);
        }
        if let Some((code, text)) = crate::script::error::arity_message(name, &counts, values.len()) {
            self.report_at(token, Diag::error(code, text), "called here");
        }
        Value::Unknown
    }

    /// Whether anything besides the script has a function or a method of this name.
    fn is_anywhere(&self, name: &str) -> bool {
        let is_method = || members_of_tensor().iter().any(|known| known.strip_suffix('(') == Some(name));
        self.world.forms.contains_key(name) || table::called(name).is_some() || is_method()
    }

    /// A call of a native function by name.
    fn native(&mut self, token: u32, name: &str, values: &[Value], written: &'a [Expr]) -> Value {
        if let Err(mut diag) = texts(name, values) {
            if matches!(name, "tensor" | "as_tensor" | "asarray") {
                diag.message = format!("`{name}`: {}", diag.message);
            }
            // A run names the device, not the call.
            let place = written.first().filter(|_| name == "with_device").map_or(token, |first| first.first);
            self.report_at(place, diag, "here");
            return Value::Unknown;
        }
        if relays(name) {
            self.relaid();
        }
        if name == "format" {
            self.format_call(token, values);
        }
        if let Some(answer) = guards::answer(name, values) {
            return answer;
        }
        if let Some(native) = manual::native(name) {
            self.described(token, native, name, values);
            return self.made(token, name, values);
        }
        // `max(1, 2, 3)`
        if matches!(name, "min" | "max") && values.len() > 2 && values.iter().all(Value::is_number) {
            self.count(token, name, values);
            return Value::Number;
        }
        match table::called(name) {
            Some((op, inplace)) if !self.means_another(name, values, ends_in_map(written)) => {
                self.row(token, op, inplace, values)
            }
            Some(_) => result_of(name),
            None => {
                self.count(token, name, values);
                result_of(name)
            }
        }
    }

    /// Whether a call of an operation's name may mean a function for plain values.
    fn means_another(&self, name: &str, values: &[Value], keywords: bool) -> bool {
        let Some(forms) = self.world.forms.get(name) else { return false };
        // A row has one form for each number of arguments, without types.
        let fits = forms.iter().filter(|form| form.len() == values.len());
        match values.first() {
            Some(Value::Tensor(_)) | None => false,
            Some(Value::Unknown | Value::Number) if keywords => false,
            Some(_) => fits.count() > 1,
        }
    }

    /// Reports a number of arguments that no form takes, with the message of a run.
    fn count(&mut self, token: u32, name: &str, values: &[Value]) {
        let Some(forms) = self.world.forms.get(name) else { return };
        if forms.iter().any(|form| form.len() == values.len()) || self.world.keys.contains(name) {
            return;
        }
        let types: Vec<&str> = values.iter().map(known_type).collect();
        let diag = (self.world.words)(Unknown::Function(name, &types.join(", ")), token);
        self.report(token, diag);
    }

    /// The arguments of a native function: by its signature if it takes keywords, otherwise by its forms.
    fn described(&mut self, token: u32, native: &'static Native, name: &str, values: &[Value]) {
        let receiver = native.form.receivers();
        match native.signature().filter(|signature| signature.takes_keywords() && native.form != Form::Syntax) {
            Some(signature) => {
                if let Err(diag) = signed(signature, &values[receiver.min(values.len())..]) {
                    self.report_at(token, diag, "in this call");
                }
            }
            None => self.count(token, name, values),
        }
    }

    /// The result of a native function.
    fn made(&mut self, token: u32, name: &str, values: &[Value]) -> Value {
        match name {
            "manual_seed" if matches!(values, [Value::Str(_) | Value::Array(_) | Value::Map(_)]) => {
                let text = format!("a seed is an integer, not {}", values[0].kind());
                self.report_at(token, Diag::error(code::ARGUMENT_TYPE, text), "in this call");
                Value::Unknown
            }
            "tensor" | "as_tensor" | "asarray" => self.literal(token, values),
            "load" | "show" | "plot" => Value::Unknown,
            _ => result_of(name),
        }
    }

    /// `tensor([[1, 2], [3, 4]], dtype)`.
    fn literal(&mut self, token: u32, values: &[Value]) -> Value {
        let asked = values.iter().skip(1).find_map(dtype_of);
        let open = values.len() > 1 && asked.is_none() && !matches!(values.last(), Some(Value::Map(Some(_))));
        match values.first() {
            Some(Value::Tensor(tensor)) => Value::Tensor(tensor.clone().filter(|_| values.len() == 1)),
            Some(Value::Str(_) | Value::Closure(_)) => {
                let text = format!("`tensor`: numbers, arrays or tensors are expected, not {}", values[0].kind());
                self.report_at(token, Diag::error(code::ARGUMENT_TYPE, text), "in this call");
                Value::Tensor(None)
            }
            Some(value) => match nested(value) {
                Some(Err(text)) => {
                    let diag = Diag::error(code::SHAPE, format!("`tensor`: {text}"));
                    self.report_at(token, diag, "in this call");
                    Value::Tensor(None)
                }
                Some(Ok((shape, dtype))) if !open => {
                    let made = dry_run::tensor(&shape, asked.unwrap_or(dtype)).ok();
                    let wants = |map: &Value| match map {
                        Value::Map(Some(map)) => matches!(map.get("requires_grad"), Some(Value::Bool(Some(true)))),
                        _ => false,
                    };
                    if values.iter().skip(1).any(wants) {
                        self.wants_gradients(token, made.as_ref());
                    }
                    Value::Tensor(made)
                }
                _ => Value::Tensor(None),
            },
            None => Value::Tensor(None),
        }
    }

    /// `nn::linear(..)`.
    fn of_module(&mut self, token: u32, space: &str, name: &str, values: &[Value]) {
        let Some(module) = self.world.modules.get(space) else { return };
        if let Some(signature) = module.signatures.get(name) {
            if let Err(diag) = signed(signature, values) {
                self.report_at(token, diag, "called here");
            }
            return;
        }
        let counts: Vec<usize> = module.functions.iter().filter(|(known, _)| known == name).map(|(_, n)| *n).collect();
        if !counts.is_empty() && !counts.contains(&values.len()) {
            let takes: Vec<String> = counts.iter().map(usize::to_string).collect();
            let plural = if takes == ["1"] { "" } else { "s" };
            let text = format!("`{space}::{name}` takes {} argument{plural}, not {}", takes.join(" or "), values.len());
            self.report_at(token, Diag::error(count_code(values.len(), &counts), text), "called here");
        }
    }

    pub(super) fn method(
        &mut self,
        expr: &'a Expr,
        of: &'a Expr,
        receiver: Value,
        name: &'a str,
        args: &'a [Expr],
    ) -> Value {
        let token = expr.focus;
        self.changes(of, &receiver);
        self.changes_result(name, token, of, &receiver);
        self.counts_each(token, &receiver);
        let catches = matches!(&of.kind, Kind::Name(variable) if self.catchers.contains(variable));
        self.quiet += catches as usize;
        let values = self.arguments(args);
        self.quiet -= catches as usize;
        let all: Vec<Value> = std::iter::once(receiver.clone()).chain(values.iter().cloned()).collect();
        if changes_modules(name) && matches!(receiver, Value::Layer(_) | Value::Unknown) {
            self.rebuilt();
        }
        if relays(name) {
            self.relaid();
        } else if !matches!(receiver, Value::Tensor(_)) && !is_reading(name) {
            self.touch(of);
        }
        let own = self.own_counts(name);
        if own.contains(&values.len()) {
            return Value::Unknown;
        }
        if !own.is_empty() && is_plain(&receiver) && !self.is_anywhere(name) {
            if let Some((code, text)) = crate::script::error::arity_message(name, &own, values.len()) {
                self.report_at(token, Diag::error(code, text), "called here");
            }
            return Value::Unknown;
        }
        if self.changes_constant(token, of, &receiver, name, all.len()) {
            return Value::Unknown;
        }
        if name == "format" && matches!(receiver, Value::Str(_)) {
            self.count(token, name, &all);
            self.format_call(token, &all);
        }
        if let Value::Map(Some(map)) = &receiver
            && self.entry_is_no_method(map, name, all.len())
        {
            let types: Vec<&str> = all.iter().map(known_type).collect();
            let diag = (self.world.words)(Unknown::Function(name, &types.join(", ")), token);
            self.report(token, diag);
            return Value::Unknown;
        }
        match &receiver {
            Value::Tensor(tensor) => self.of_tensor(token, tensor.as_ref(), name, &all),
            Value::Map(Some(map)) if map.contains_key(name) => {
                if let Some(Value::Closure(Some(params))) = map.get(name)
                    && *params != values.len()
                {
                    self.closure_count(token, *params, values.len());
                }
                Value::Unknown
            }
            Value::Closure(params) if name == "call" => {
                if let Some(params) = params.filter(|params| *params != values.len()) {
                    self.closure_count(token, params, values.len());
                }
                Value::Unknown
            }
            Value::Layer(layer) if name == "forward" && values.len() == 1 => {
                self.forward(token, &layer.clone(), values[0].clone())
            }
            Value::Layer(_) if matches!(name, "to" | "cuda" | "cpu" | "train" | "eval") => receiver.clone(),
            Value::Map(None) | Value::Closure(_) => Value::Unknown,
            Value::Layer(_)
            | Value::Unknown
            | Value::Number
            | Value::Range(_)
            | Value::Object(_)
            | Value::Device
            | Value::DType(_)
            | Value::Char => self.of_unknown(token, name, &all, args),
            // The message of a run says that a native of tensors belongs to tensors.
            Value::Unit if name == "is_empty" || manual::native(name).is_some() => Value::Unknown,
            Value::Unit if table::called(name).is_some() => {
                let diag = Diag::error(code::ARGUMENT_TYPE, format!("`()` has no method `{name}`"))
                    .help("where this comes from a function, its last statement is a `let`, an assignment or a loop, which have no value");
                self.report_at(token, diag, "called on nothing");
                Value::Unknown
            }
            known => self.of_plain(token, known, name, &all),
        }
    }

    /// A call of a value: of a closure, or of a module, whose `forward` runs.
    pub(super) fn applied(&mut self, token: u32, of: &Value, values: &[Value]) -> Value {
        match of {
            Value::Closure(Some(params)) if *params != values.len() => {
                self.closure_count(token, *params, values.len());
                Value::Unknown
            }
            Value::Layer(layer) if values.len() == 1 => self.forward(token, &layer.clone(), values[0].clone()),
            of if of.may_be_called() => Value::Unknown,
            of => {
                let diag = Diag::error(code::TYPE, format!("{} cannot be called", of.kind()))
                    .help("closures, functions (`Fn(\"name\")`) and modules with a `forward` can be called");
                self.report_at(token, diag, "called here");
                Value::Unknown
            }
        }
    }

    fn closure_count(&mut self, token: u32, takes: usize, given: usize) {
        let plural = if takes == 1 { "" } else { "s" };
        let text = format!("this closure takes {takes} argument{plural}, not {given}");
        self.report_at(token, Diag::error(count_code(given, &[takes]), text), "called here");
    }

    /// A method of a value that has a known type and is not a tensor.
    fn of_plain(&mut self, token: u32, receiver: &Value, name: &str, all: &[Value]) -> Value {
        let Some(of) = receiver.type_name() else { return Value::Unknown };
        // The interpreter lists `sort` with a first parameter of any type.
        let is_its_own = self.world.takes_first(name, all.len(), of) || (name == "sort" && all.len() == 1);
        let types: Vec<&str> = all.iter().map(known_type).collect();
        if returns_nothing(receiver, name) && is_its_own && (name == "sort" || self.world.fits(name, &types)) {
            return Value::Unit;
        }
        if gives_itself(receiver, name) && is_its_own && self.world.fits(name, &types) {
            return Value::Str(None);
        }
        if let Some(answer) = guards::answer(name, all) {
            return answer;
        }
        if COMMON.contains(&name)
            || (self.world.takes_first(name, all.len(), of)
                && (!(returns_nothing(receiver, name) || gives_itself(receiver, name))
                    || self.world.fits(name, &types)))
        {
            return match (receiver, name) {
                (Value::Array(_), "map" | "filter") => Value::Array(None),
                _ => result_of(name),
            };
        }
        if name == "call" {
            let text = format!("a function is needed here, and this is {}", receiver.kind());
            self.report_at(token, Diag::error(code::TYPE, text), "called here");
            return Value::Unknown;
        }
        if let Some((op, inplace)) = table::called(name).filter(|_| manual::native(name).is_none()) {
            if !self.means_another(name, all, false) {
                self.row(token, op, inplace, all);
            }
            return Value::Unknown;
        }
        if self.is_of_others(name, of) {
            let diag = (self.world.words)(Unknown::Function(name, &types.join(", ")), token);
            self.report(token, diag);
            return Value::Unknown;
        }
        if self.world.takes_first(name, all.len(), "?") {
            return Value::Unknown;
        }
        // An unknown name may be a function of another file of the user; maps hold closures.
        let may_be_another = self.world.is_open || self.is_own(name) || matches!(receiver, Value::Map(_));
        if !self.world.forms.contains_key(name) && may_be_another {
            return Value::Unknown;
        }
        if types.contains(&"?") && self.world.takes(name, all.len()) {
            // The value has the method for other numbers of arguments, perhaps for these.
            let some = |form: &Vec<String>| form.first().is_some_and(|first| first == of);
            if self.world.forms.get(name).is_some_and(|forms| forms.iter().any(some)) {
                return Value::Unknown;
            }
        }
        let diag = (self.world.words)(Unknown::Function(name, &types.join(", ")), token);
        self.report(token, diag);
        Value::Unknown
    }

    /// A method of an unknown value: reports only what every operation of that name would refuse.
    fn of_unknown(&mut self, token: u32, name: &str, all: &[Value], written: &'a [Expr]) -> Value {
        let another = self.world.is_open || self.world.keys.contains(name) || self.is_own(name);
        if another || manual::native(name).is_some() || self.is_entry_of_library(name) {
            return Value::Unknown;
        }
        match table::called(name) {
            Some((op, inplace)) if !self.means_another(name, all, ends_in_map(written)) => {
                self.row(token, op, inplace, all)
            }
            _ => Value::Unknown,
        }
    }

    /// Whether maps that the library makes may have an entry of this name.
    fn is_entry_of_library(&mut self, name: &str) -> bool {
        if let Some(known) = self.entries_of_library.get(name) {
            return *known;
        }
        let key = format!("{name}:");
        let found = files().any(|(_, text)| text.contains(&key));
        self.entries_of_library.insert(name.to_string(), found);
        found
    }

    fn of_tensor(&mut self, token: u32, tensor: Option<&Tensor>, name: &str, all: &[Value]) -> Value {
        let is_method = members_of_tensor().iter().any(|known| known.strip_suffix('(') == Some(name));
        if !is_method && !COMMON.contains(&name) {
            let generic = manual::natives().any(|native| native.name == name && native.form == Form::Function);
            let is_row = table::called(name).is_some();
            if !generic && !is_row && !self.world.forms.contains_key(name) {
                let diag = (self.world.words)(Unknown::Function(name, "tensor"), token);
                self.report(token, diag);
                return Value::Unknown;
            }
        }
        if let Err(diag) = if name == "to" { moved(&all[1..]) } else { texts(name, all) } {
            self.report_at(token, diag, "in this call");
            return Value::Tensor(None);
        }
        if manual::native(name).is_none()
            && let Some((op, inplace)) = table::called(name)
        {
            let given = self.row(token, op, inplace, all);
            return if relays(name) { Value::Tensor(None) } else { given };
        }
        match manual::native(name) {
            Some(native) => self.described(token, native, name, all),
            None => self.count(token, name, all),
        }
        match name {
            "item" => self.read_as_one(token, all),
            "backward" => self.backward(token, all),
            "requires_grad_" if !matches!(all.get(1), Some(Value::Bool(Some(false)) | Value::Unknown)) => {
                self.wants_gradients(token, tensor);
            }
            _ => {}
        }
        let int = |n: Option<usize>| Value::Int(n.map(|n| n as i64));
        match name {
            "item" => Value::Number,
            "to_array" | "tolist" => Value::Array(None),
            "backward" => Value::Unit,
            "detach" | "requires_grad_" | "cpu" | "cuda" | "pin_memory" => Value::Tensor(tensor.cloned()),
            "to" => match all.iter().skip(1).find_map(dtype_of) {
                Some(dtype) => Value::Tensor(tensor.and_then(|tensor| dry_run::tensor(&tensor.shape(), dtype).ok())),
                None if all[1..].iter().all(|value| value.text().is_some() || matches!(value, Value::Device)) => {
                    Value::Tensor(tensor.cloned())
                }
                None => Value::Tensor(None),
            },
            "dim" | "ndimension" => int(tensor.map(Tensor::ndim)),
            "numel" | "nelement" => int(tensor.map(Tensor::numel)),
            "size" if all.len() == 1 => match tensor {
                Some(tensor) => {
                    let sizes = tensor.shape().iter().map(|&n| Value::Int(Some(n as i64))).collect();
                    Value::Array(Some(Rc::new(sizes)))
                }
                None => Value::Array(None),
            },
            "len" => int(tensor.and_then(|tensor| tensor.shape().first().copied())),
            "size" => Value::Int(None),
            _ => result_of(name),
        }
    }
}

/// A value of a known type without fields of the user's, so that a name after its dot is a method.
fn is_plain(value: &Value) -> bool {
    known_type(value) != "?" && !matches!(value, Value::Map(_) | Value::Layer(_) | Value::Closure(_))
}

fn ends_in_map(written: &[Expr]) -> bool {
    written.last().is_some_and(|last| matches!(last.kind, Kind::Map(_)))
}

/// The name of a value's type in the interpreter; `?` if unknown.
fn known_type(value: &Value) -> &'static str {
    match value {
        // It may stand for an integer.
        Value::Number | Value::Float(None) => "?",
        Value::Float(Some(x)) if arithmetic::whole(*x).is_some() => "?",
        Value::Tensor(_) => "tensor",
        other => other.type_name().unwrap_or("?"),
    }
}

fn count_code(given: usize, counts: &[usize]) -> crate::base::code::Code {
    match counts.iter().any(|&count| count > given) {
        true => code::MISSING_ARGUMENT,
        false => code::EXTRA_ARGUMENT,
    }
}

/// The result of a function, for any arguments: from its signature, or known of the interpreter's own.
fn result_of(name: &str) -> Value {
    match manual::native(name).and_then(Native::signature).and_then(|signature| signature.result) {
        Some(result) => Value::given_as(result),
        None => match name {
            "parse_int" | "to_int" => Value::Int(None),
            "to_float" | "parse_float" => Value::Float(None),
            "type_of" | "to_string" | "to_upper" | "to_lower" => Value::Str(None),
            "print" => Value::Unit,
            "is_empty" | "starts_with" | "ends_with" => Value::Bool(None),
            "timestamp" => Value::Object("timestamp"),
            "cell" => Value::Object("cell"),
            _ => Value::Unknown,
        },
    }
}

/// The dtype in a value, or in a map of keywords.
fn dtype_of(value: &Value) -> Option<DType> {
    match value {
        Value::DType(dtype) => *dtype,
        Value::Str(Some(text)) => DType::parse(text),
        Value::Map(Some(map)) => map.get("dtype").and_then(dtype_of),
        _ => None,
    }
}

/// Strings that name dtypes or devices, among the arguments of a native function.
fn texts(name: &str, values: &[Value]) -> Result<()> {
    let Some(native) = manual::native(name) else { return Ok(()) };
    let Some(signature) = native.signature() else { return Ok(()) };
    let receiver = native.form.receivers();
    values.iter().skip(receiver).zip(&signature.params).try_for_each(|(value, param)| named_by(param, value))
}

/// Reports a string that names no dtype or device.
fn named_by(param: &Param, value: &Value) -> Result<()> {
    match (param.accepts(), value.text()) {
        (Accepts::DType, Some(text)) => params::dtype(text).map(drop),
        (Accepts::Device, Some(text)) => params::device(text).map(drop),
        _ => Ok(()),
    }
}

/// The arguments of `x.to(..)`: strings are dtypes unless they look like devices.
fn moved(values: &[Value]) -> Result<()> {
    for value in values {
        match value {
            Value::Str(Some(text)) if DType::parse(text).is_some() => {}
            Value::Str(Some(text)) if text.starts_with("cu") || text.starts_with("cp") || text.contains(':') => {
                params::device(text)?;
            }
            Value::Str(Some(text)) => drop(params::dtype(text)?),
            Value::Map(Some(map)) => {
                if let Some(text) = map.get("dtype").and_then(Value::text) {
                    params::dtype(text)?;
                }
                if let Some(text) = map.get("device").and_then(Value::text) {
                    params::device(text)?;
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// The arguments of a function with a signature.
fn signed(signature: &Signature, values: &[Value]) -> Result<()> {
    let last = match values.last() {
        Some(Value::Map(Some(map))) => {
            let keys: Vec<&str> = map.keys().map(String::as_str).collect();
            let has_closures = map.values().any(|value| matches!(value, Value::Closure(_)));
            // An unknown value may be a closure.
            let open = map.values().any(|value| !value.is_known());
            let last = Last { keys: &keys, has_closures };
            if signature.takes_value(values.len(), &last, 0)
                || (open && signature.takes_value(values.len(), &Last { has_closures: true, ..last }, 0))
            {
                None
            } else {
                Some(map.clone())
            }
        }
        // Perhaps keywords, perhaps a value.
        Some(Value::Unknown | Value::Map(None)) => return signature.check_count(values.len().saturating_sub(1)),
        _ => None,
    };
    let given = values.len() - last.is_some() as usize;
    let keys: Vec<&str> = last.iter().flat_map(|map| map.keys()).map(String::as_str).collect();
    signature.check_names(given, &keys)?;
    let by_name = last.iter().flat_map(|map| map.iter()).map(|(key, value)| (signature.place(key), value));
    let by_position = values[..given].iter().enumerate().map(|(at, value)| (Some(at), value));
    for (at, value) in by_position.chain(by_name) {
        let Some((at, param)) = at.and_then(|at| Some((at, signature.params.get(at)?))) else { continue };
        signature.check_text(at, value.text(), matches!(value, Value::Str(_)))?;
        named_by(param, value)?;
    }
    Ok(())
}
