//! Makes every row of the op table callable: as function, method, operator and in-place form. Does not treat any
//! operation specially.

use crate::base::attr::Attr;
use crate::base::code;
use crate::base::diag::{Diag, Focus, Result};
use crate::op::args::{Arg, Args};
use crate::op::emit::Emit;
use crate::op::row::{CallForm, Default, Kind, Lower, Op, Promote, Returns};
use crate::op::table;
use crate::op::tensor::Meta;
use crate::script::bind::convert;
use crate::script::host::Host;
use crate::script::values::generator::Drawing;
use crate::script::values::panics::{GuardedCall, Place};
use crate::script::values::raise::Native;
use crate::script::values::sparse::{self, Sparse};
use crate::script::values::type_names;
use crate::script::values::types::Tensor;
use crate::tensor::engine::{Engine, Results, describe};
use crate::tensor::history;
use crate::tensor::movement;
use rhai::{Dynamic, FuncRegistration, Identifier, Map, Module, NativeCallContext};
use std::any::TypeId;
use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::RangeInclusive;
use std::sync::Arc;

/// The native functions of a session while they are registered.
#[derive(Default)]
pub struct Natives {
    pub module: Module,
    pub names: HashSet<Cow<'static, str>>,
}

/// Which form of a row is called.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Plain,
    /// `x.add_(y)`.
    InPlace,
}

/// Bound: positional arguments of one call, keyword map included.
const MAX_ARITY: usize = 9;
/// The same for rows that have more parameters. Rhai searches for a function of `n` values in up to 2^n steps, the
/// first time.
pub const WIDE_ARITY: usize = 15;

/// The function of plain values that has the name of a row, if the values are some for it: `sum(loader)`. A name in `_`
/// is that of a row which writes to its first argument.
pub type Plain = fn(&Arc<Host>, &NativeCallContext, &str, &[&mut Dynamic]) -> Option<Native>;

/// Registers all rows. `plain` is asked where the first value is no tensor.
pub fn register(module: &mut Natives, host: &Arc<Host>, plain: Plain) {
    for op in table::all().filter(|op| module_of(op).is_none()) {
        if !op.operator.is_empty() {
            operators(module, host, op, plain);
        }
        if op.call == CallForm::Internal {
            continue;
        }
        // An alias such as `.T` is a property.
        for name in std::iter::once(&op.name).chain(op.aliases).filter(|name| !name.starts_with('.')) {
            if op.call != CallForm::InPlace {
                arities(module, host, op, Cow::Borrowed(name), Form::Plain, plain);
            }
            if op.inplace {
                arities(module, host, op, Cow::Owned(format!("{name}_")), Form::InPlace, plain);
            }
        }
    }
}

/// The module that a row is called with: `fft` of `fft::rfft`.
fn module_of(op: &Op) -> Option<&'static str> {
    op.name.rsplit_once("::").map(|(module, _)| module)
}

/// The rows that are called with the name of a module, by module; they need no import.
pub fn modules(host: &Arc<Host>) -> Vec<(&'static str, Natives)> {
    let mut modules: Vec<(&'static str, Natives)> = Vec::new();
    for op in table::all().filter(|op| op.call != CallForm::Internal) {
        let Some((space, name)) = op.name.rsplit_once("::") else { continue };
        let at = modules.iter().position(|(known, _)| *known == space).unwrap_or_else(|| {
            modules.push((space, Natives::default()));
            modules.len() - 1
        });
        let natives = &mut modules[at].1;
        let host = host.clone();
        let call = GuardedCall::new(move |context, values| {
            let context = context.expect("registered with a context");
            call(&host, &context, op, Form::Plain, values)
        });
        let params = op.params.iter().filter(|param| param.kind != Kind::Ignored).count();
        natives.place_qualified(name, 0..=params + 2, &call);
        natives.note(name);
    }
    modules
}

fn arities(module: &mut Natives, host: &Arc<Host>, op: &'static Op, name: Cow<'static, str>, form: Form, plain: Plain) {
    let params = op.params.iter().filter(|param| param.kind != Kind::Ignored).count();
    let spread = op.params.iter().any(|param| matches!(param.kind, Kind::Sizes | Kind::Tensors));
    let wide = if params > MAX_ARITY { WIDE_ARITY } else { MAX_ARITY };
    let most = if spread { MAX_ARITY } else { (params + 2).min(wide) };
    let host = host.clone();
    let call = GuardedCall::new(move |context, values| {
        let context = context.expect("registered with a context");
        let means_plain = form == Form::Plain && values.first().is_some_and(|first| !first.is::<Tensor>());
        let done = match form {
            Form::InPlace if has_sparse(values) => plain(&host, &context, &format!("{}_", op.name), values),
            _ if means_plain || has_sparse(values) => plain(&host, &context, op.name, values),
            _ => None,
        };
        done.unwrap_or_else(|| call(&host, &context, op, form, values))
    });
    // Cost: most of the time that a session takes to start; one closure serves every arity.
    module.place(&name, 0..=most, &call);
    module.names.insert(name);
}

/// Whether a value is a sparse tensor.
#[inline]
fn has_sparse(values: &[&mut Dynamic]) -> bool {
    sparse::seen() && values.iter().any(|value| value.is::<Sparse>())
}

impl Natives {
    /// One function for several numbers of values.
    pub(in crate::script) fn place(&mut self, name: &str, arities: RangeInclusive<usize>, call: &GuardedCall) {
        self.place_as(name, arities, call, None, FuncRegistration::in_global_namespace);
    }

    /// The same of a method of one type; the numbers of values include that before the dot.
    pub(in crate::script) fn place_on(
        &mut self,
        receiver: TypeId,
        name: &str,
        arities: RangeInclusive<usize>,
        call: &GuardedCall,
    ) {
        self.place_as(name, arities, call, Some(receiver), FuncRegistration::in_global_namespace);
    }

    /// The same of a function that is called with the name of its module alone: `cuda::synchronize()`.
    pub(in crate::script) fn place_qualified(
        &mut self,
        name: &str,
        arities: RangeInclusive<usize>,
        call: &GuardedCall,
    ) {
        self.place_as(name, arities, call, None, FuncRegistration::in_internal_namespace);
    }

    fn place_as(
        &mut self,
        name: &str,
        arities: RangeInclusive<usize>,
        call: &GuardedCall,
        receiver: Option<TypeId>,
        space: fn(FuncRegistration) -> FuncRegistration,
    ) {
        let mut types = [TypeId::of::<Dynamic>(); WIDE_ARITY];
        types[0] = receiver.unwrap_or(types[0]);
        let name = Identifier::from(name);
        for arity in arities {
            let of = space(FuncRegistration::new(name.clone()));
            of.place_shared_in(&mut self.module, &types[..arity], call);
        }
    }

    /// Notes the name of a function, which is registered otherwise.
    pub fn note(&mut self, name: &str) {
        if !self.names.contains(name) {
            self.names.insert(Cow::Owned(name.to_string()));
        }
    }
}

/// Registers a native function whose parameters are all dynamic.
pub fn raw(
    module: &mut Natives,
    name: &str,
    arity: usize,
    call: impl Fn(Option<NativeCallContext>, &mut [&mut Dynamic]) -> Native + Send + Sync + 'static,
) {
    module.note(name);
    module.place(name, arity..=arity, &GuardedCall::new(call));
}

/// The row of a name, with all arguments as keywords: `sum(#{input: x, dim: 0})`. None where no tensor is given so.
pub fn by_keywords(
    host: &Host,
    context: &NativeCallContext,
    name: &str,
    values: &mut [&mut Dynamic],
) -> Option<Native> {
    let [keywords] = values else { return None };
    let has_tensor = keywords.read_lock::<Map>()?.get("input")?.is::<Tensor>();
    let op = table::find(name).filter(|_| has_tensor)?;
    Some(call(host, context, op, Form::Plain, values))
}

fn call(host: &Host, context: &NativeCallContext, op: &'static Op, form: Form, values: &mut [&mut Dynamic]) -> Native {
    let wrong = |diag| host.raise(context, name_operation(op.name, form, diag, None), "");
    // `x.where(condition, other)` is `where(condition, x, other)`.
    if op.receiver > 0 && values.len() > op.receiver && !values[op.receiver].is_map() && host.is_method(context) {
        values[..=op.receiver].rotate_left(1);
    }
    let _drawing = convert::generator(op, values).map(|own| Drawing::from(&host.rt, own));
    match convert::without_pinned(op, values).map_err(wrong)? {
        None => bound_call(host, context, op, form, values, false),
        Some((mut rest, pin)) => bound_call(host, context, op, form, &mut rest.iter_mut().collect::<Vec<_>>(), pin),
    }
}

fn bound_call(
    host: &Host,
    context: &NativeCallContext,
    op: &'static Op,
    form: Form,
    values: &mut [&mut Dynamic],
    pin: bool,
) -> Native {
    let wrong = |diag| host.raise(context, name_operation(op.name, form, diag, None), "");
    let mut args = Args::default();
    convert::bind(host, op, values, &mut args).map_err(wrong)?;
    some_tensor(op, &args).map_err(wrong)?;
    if form == Form::InPlace && !matches!(args.0.first(), Some(Arg::Tensor(_))) {
        let text = format!("a tensor is changed in place, and not {}", type_names::of_value(values[0]));
        return Err(wrong(Diag::error(crate::base::code::ARGUMENT_TYPE, text)));
    }
    if !pin {
        return run(host, context, op, form, &mut args);
    }
    let made = movement::pinned(&mut host.engine(context), |e| e.call_row(op, args));
    made.map(Dynamic::from).map_err(wrong)
}

/// `where(true, 1, 2)`: a row that takes a tensor or a number first needs at least one tensor.
fn some_tensor(op: &Op, args: &Args) -> Result<()> {
    let first = op.params.first().is_some_and(|p| p.kind == Kind::Operand && p.default == Default::Required);
    // `complex(1, 2)` makes a tensor of numbers, as other rows that are no methods do.
    let first = first && op.call != crate::op::row::CallForm::Function;
    if first && !args.0.iter().any(|arg| matches!(arg, Arg::Tensor(_))) && args.tensors().is_empty() {
        crate::fail!(ARGUMENT_TYPE, "at least one argument must be a tensor");
    }
    Ok(())
}

fn run(host: &Host, context: &NativeCallContext, op: &'static Op, form: Form, args: &mut Args) -> Native {
    let mut engine = host.engine(context);
    match apply(&mut engine, op, form, args) {
        Ok(value) => Ok(value),
        Err(diag) => Err(host.raise(context, name_operation(op.name, form, diag, Some(args)), "")),
    }
}

/// `relu(x, #{inplace: true})` is `relu_(x)`.
#[inline]
fn is_told_in_place(op: &Op, args: &mut Args) -> Result<bool> {
    let Some(last) = op.params.last().filter(|param| param.kind == Kind::Ignored) else { return Ok(false) };
    if args.0.len() < op.params.len() || !matches!(args.0.last(), Some(Arg::Attr(Attr::Bool(true)))) {
        return Ok(false);
    }
    args.0.pop();
    let name = op.name;
    if !op.inplace {
        let diag = Diag::error(code::VALUE, format!("`{name}` does not change its argument"));
        return Err(diag.help(format!("leave `{}` out: `x = {name}(x, ..);`", last.name)));
    }
    Ok(true)
}

fn apply(engine: &mut Engine, op: &'static Op, form: Form, args: &mut Args) -> Result<Dynamic> {
    if form == Form::InPlace || is_told_in_place(op, args)? {
        return engine.apply_inplace(op, args.clone()).map(Dynamic::from);
    }
    let is_list = is_list(op, args);
    args.complete(op);
    let mut results = engine.results(op, args)?;
    if op.conjugates {
        results.iter().for_each(history::note_conjugate);
    }
    if op.truth {
        return crate::tensor::observe::truth(&engine.rt, &results[0]).map(Dynamic::from_bool);
    }
    Ok(match op.results {
        _ if is_list => array(results),
        // `histogramdd` of points without coordinates: a list of no edges.
        Returns::NamedRest(first, rest) => {
            let others = array(results.drain(1..).collect());
            let first = (first.into(), Dynamic::from(results.swap_remove(0)));
            Dynamic::from_map(crate::base::order::map([first, (rest.into(), others)]))
        }
        _ if results.len() == 1 => results.into_iter().next().map_or(Dynamic::UNIT, Dynamic::from),
        Returns::Named(names) => {
            let named = names.iter().zip(results);
            Dynamic::from_map(crate::base::order::map(
                named.map(|(&name, tensor)| (name.into(), Dynamic::from(tensor))),
            ))
        }
        _ => array(results),
    })
}

fn array(results: Results) -> Dynamic {
    Dynamic::from(results.into_iter().map(Dynamic::from).collect::<rhai::Array>())
}

/// Whether the script gets an array even for one result.
fn is_list(op: &Op, args: &Args) -> bool {
    let place = |name: &str| op.params.iter().position(|param| param.name == name);
    match op.results {
        Returns::List => true,
        Returns::ListIf(flag) => place(flag).is_some_and(|at| args.flag(at)),
        Returns::ListWithout(name) => place(name).is_some_and(|at| args.is_none(at)),
        Returns::One | Returns::Named(_) | Returns::NamedRest(..) => false,
    }
}

/// Names the operation in an error, and shows where its operands come from.
#[cold]
fn name_operation(name: &str, form: Form, mut diag: Box<Diag>, args: Option<&Args>) -> Box<Diag> {
    // A late error names itself; only an error of this call gets the call's name.
    let late = (400..500).contains(&diag.code.0)
        || [crate::base::code::OUT_OF_MEMORY, crate::base::code::LIMIT_MEMORY].contains(&diag.code);
    if late {
        return diag;
    }
    let underscore = if form == Form::InPlace { "_" } else { "" };
    // Names that begin with `_` are the library's own.
    if !diag.message.starts_with('`') && !name.starts_with('_') {
        diag.message = format!("`{name}{underscore}`: {}", diag.message);
    }
    if diag.labels.is_empty() {
        diag = diag.label(crate::base::span::Origin::NONE, Focus::Call, "in this call");
        if let Some(args) = args {
            let mut created = Vec::new();
            args.for_each_tensor(|tensor| {
                let made = tensor.0.made;
                if !made.user.is_none() && !created.contains(&made) && created.len() < 4 {
                    created.push(made);
                }
            });
            args.for_each_tensor(|tensor| {
                if let Some(at) = created.iter().position(|made| *made == tensor.0.made) {
                    let text = format!("made here, {}", describe(&Meta::of(tensor)));
                    let mut taken = std::mem::take(&mut diag.labels);
                    taken.push(crate::base::diag::Label {
                        origin: created.swap_remove(at),
                        focus: Focus::Expression,
                        keyword: None,
                        text,
                    });
                    diag.labels = taken;
                }
            });
        }
    }
    diag
}

/// An operator on tensors, and its compound assignment.
fn operators(module: &mut Natives, host: &Arc<Host>, op: &'static Op, plain: Plain) {
    let unary = op.params.len() == 1;
    let shared = host.clone();
    let symbol = op.operator;
    raw(module, symbol, if unary { 1 } else { 2 }, move |context, values| {
        let context = context.expect("registered with a context");
        operator(&shared, &context, op, Form::Plain, values, plain)
    });
    // `<` and `=` would become `<=`.
    let compares = matches!(op.lower, Lower::Map { promote: Promote::Compare, .. });
    if unary || compares || !op.inplace {
        return;
    }
    let shared = host.clone();
    raw(module, &format!("{symbol}="), 2, move |context, values| {
        let context = context.expect("registered with a context");
        let is_tensor = values[0].read_lock::<Tensor>().is_some();
        let is_row = is_tensor || values.iter().any(|value| value.is::<Sparse>() || value.is::<Tensor>());
        if !is_row {
            // `x = x op y` of what has the plain operator.
            *values[0] = context.call_fn_raw(symbol, true, false, values)?;
            return Ok(Dynamic::UNIT);
        }
        let form = if is_tensor { Form::InPlace } else { Form::Plain };
        let value = operator(&shared, &context, op, form, values, plain)?;
        if !is_tensor {
            *values[0] = value;
        }
        Ok(Dynamic::UNIT)
    });
}

fn operator(
    host: &Arc<Host>,
    context: &NativeCallContext,
    op: &'static Op,
    form: Form,
    values: &mut [&mut Dynamic],
    plain: Plain,
) -> Native {
    if has_sparse(values) {
        let in_place = (form == Form::InPlace).then(|| format!("{}_", op.name));
        if let Some(done) = plain(host, context, in_place.as_deref().unwrap_or(op.operator), values) {
            return done;
        }
    }
    let mut args = Args::default();
    for at in 0..values.len() {
        if let Some(tensor) = values[at].read_lock::<Tensor>() {
            args.0.push(Arg::Tensor(tensor.clone()));
            continue;
        }
        if !values.iter().any(|value| value.read_lock::<Tensor>().is_some()) {
            return crate::script::bind::properties::plain_operator(host, context, op.operator, values);
        }
        // A matrix product takes tensors only.
        let takes_numbers = op.params[at].kind != Kind::Tensor || matches!(op.lower, Lower::Map { .. });
        match convert::scalar(values[at]).filter(|_| takes_numbers) {
            Some(scalar) => args.0.push(scalar.into()),
            None if matches!(op.operator, "==" | "!=") => return Ok(Dynamic::from_bool(op.operator == "!=")),
            None => {
                let other = type_names::of_value(values[at]);
                let text = format!("`{}` does not work between a tensor and {other}", op.operator);
                let mut diag = Diag::error(crate::base::code::TYPE, text);
                diag.help =
                    crate::script::error::operator_help(op.operator, &[values[at].type_name()]).map(str::to_string);
                return Err(host.raise(context, diag, ""));
            }
        }
    }
    run(host, context, op, form, &mut args)
}
