//! The state of optimizers in `std/optim`: which parameters have a gradient, how many steps each has done, and the
//! state that belongs to it. Independent of any optimizer; the arithmetic is in rows of the op table.

use crate::base::code;
use crate::base::device_id::DeviceId;
use crate::base::diag::{Diag, Focus, Result};
use crate::base::dtype::{DType, Scalar};
use crate::base::span::Origin;
use crate::fail;
use crate::op::args::{Arg, Args};
use crate::op::emit::Emit;
use crate::op::row::{Kind, Op, Param, Source};
use crate::op::rows::optim::sgd_lion::STORED;
use crate::op::rows::optim::step::COUNTED;
use crate::op::rows::pointwise::arith::MOVE;
use crate::op::rows::pointwise::complex::COMPLEX;
use crate::op::rows::shape::view::CLONE;
use crate::op::table;
use crate::script::bind::rows::{Natives, raw};
use crate::script::host::Host;
use crate::script::nn::sparse_grads;
use crate::script::values::calling;
use crate::script::values::module::ModuleValue;
use crate::script::values::raise::Native;
use crate::script::values::type_names;
use crate::script::values::types::{Cell, Tensor};
use crate::tensor::engine::Engine;
use crate::tensor::observe;
use crate::tensor::row_grads;
use rhai::{Array, Dynamic, FnPtr, ImmutableString, Map};
use std::sync::Arc;

pub fn register(module: &mut Natives, host: &Arc<Host>) {
    seals(module, host);
    let shared = host.clone();
    raw(module, "_advance", 1, move |context, values| -> Native {
        let context = context.expect("registered with a context");
        let optimizer = values[0].read_lock::<Map>();
        let whole = check_whole(&shared, optimizer.as_deref());
        shared.call(&context, |engine| {
            whole?;
            engine.found_inf.clone_from(&shared.found_inf.lock());
            let entry = |name: &str| optimizer.as_ref().and_then(|map| map.get(name));
            let row = entry("row").and_then(|row| row.read_lock::<ImmutableString>());
            let fixed = entry("fixed").and_then(|fixed| fixed.read_lock::<Map>());
            let groups = entry("groups").and_then(|groups| groups.read_lock::<Cell>());
            let (Some(row), Some(fixed), Some(groups)) = (row, fixed, groups) else {
                fail!(INTERNAL, "an optimizer has a row, what is fixed, and groups")
            };
            groups.with(|groups| {
                let whole = optimizer.as_deref().expect("it has a row");
                let _filled = sparse_grads::for_the_step(engine, whole, groups)?;
                advance(engine, &row, &fixed, groups)
            })
        })
    });
    let shared = host.clone();
    raw(module, "_due", 2, move |context, values| -> Native {
        let context = context.expect("registered with a context");
        shared.call(&context, |engine| due(engine, values[0], values[1]))
    });
    let shared = host.clone();
    raw(module, "_store", 1, move |context, values| -> Native {
        let context = context.expect("registered with a context");
        shared.call(&context, |engine| {
            engine.found_inf.clone_from(&shared.found_inf.lock());
            store(engine, values[0])
        })
    });
    // `_same(a, b)`: whether two cells are one.
    raw(module, "_same", 2, |_, values| -> Native {
        let both = values[0].read_lock::<Cell>().zip(values[1].read_lock::<Cell>());
        Ok(Dynamic::from_bool(both.is_some_and(|(a, b)| a.same(&b))))
    });
    // `_unless(found, closure)`: the steps in the closure change nothing where one of `found`, tensors by device, is not 0.
    let shared = host.clone();
    raw(module, "_unless", 2, move |context, values| -> Native {
        let context = context.expect("registered with a context");
        let found = shared.call(&context, |_| tensors(values[0]))?;
        let Some(body) = values[1].read_lock::<FnPtr>().map(|body| body.clone()) else { return Ok(Dynamic::UNIT) };
        let _restore = Unless { host: &shared, before: std::mem::replace(&mut *shared.found_inf.lock(), found) };
        calling::call(&context, &body, None, Vec::new())
    });
    let shared = host.clone();
    raw(module, "_step_counts", 2, move |context, values| -> Native {
        let context = context.expect("registered with a context");
        shared.call(&context, |engine| step_counts(engine, values[0], values[1]))
    });
    let shared = host.clone();
    raw(module, "_check_params", 3, move |context, values| -> Native {
        let context = context.expect("registered with a context");
        let name = values[0].clone().into_string().unwrap_or_default();
        shared.call(&context, |_| check_params(&name, values[1], values[2]))
    });
    let shared = host.clone();
    raw(module, "_clear_grads", 1, move |context, values| -> Native {
        let context = context.expect("registered with a context");
        let optimizer = values[0].read_lock::<Map>();
        let whole = check_whole(&shared, optimizer.as_deref());
        shared.call(&context, |_| {
            whole?;
            let groups = optimizer.as_ref().and_then(|map| map.get("groups")?.read_lock::<Cell>());
            let Some(groups) = groups else { fail!(INTERNAL, "an optimizer has groups") };
            groups.with(|groups| {
                let groups = groups.read_lock::<Array>();
                for group in groups.iter().flat_map(|groups| groups.iter()) {
                    clear_grads(group);
                }
            });
            Ok(Dynamic::UNIT)
        })
    });
    let shared = host.clone();
    raw(module, "_grads", 1, move |context, values| -> Native {
        let context = context.expect("registered with a context");
        shared.call(&context, |engine| {
            let all = tensors(values[0])?;
            let mut found = Array::new();
            for p in &all {
                found.extend(p.0.auto.lock().grad.clone().map(Dynamic::from));
                if !p.row_grads().is_empty() {
                    found.push(Dynamic::from(row_grads::coalesced(engine, p)?.values));
                }
            }
            Ok(found.into())
        })
    });
}

/// Restores on every exit what steps depend on.
struct Unless<'a> {
    host: &'a Host,
    before: Vec<Tensor>,
}

impl Drop for Unless<'_> {
    fn drop(&mut self) {
        *self.host.found_inf.lock() = std::mem::take(&mut self.before);
    }
}

/// The entries that an optimizer was created with, in the order of the map, and which of them are closures.
#[derive(Clone)]
struct Seal(Arc<[(Box<str>, bool)]>);

impl Seal {
    fn of(map: &Map) -> Seal {
        Seal(map.iter().map(|(name, value)| (name.as_str().into(), value.is_fnptr())).collect())
    }

    /// An entry that was added to the map, or that replaced one of its closures.
    fn changed_entry<'a>(&self, map: &'a Map) -> Option<&'a str> {
        let mut known = self.0.iter().peekable();
        let mut foreign = |name: &str, value: &Dynamic| {
            // A removed entry is noticed where it is used.
            while known.peek().is_some_and(|(own, _)| **own < *name) {
                known.next();
            }
            match known.next_if(|(own, _)| **own == *name) {
                Some((_, was_closure)) => *was_closure && !value.is_fnptr(),
                None => !value.is::<Seal>(),
            }
        };
        map.iter().find(|(name, value)| foreign(name, value)).map(|(name, _)| name.as_str())
    }
}

/// `opt.lr = 0.5` changes an entry of the map but not the optimizer: Rhai does not report it, so the next step does.
fn seals(module: &mut Natives, host: &Arc<Host>) {
    raw(module, "_is_same_cell", 2, |_, values| -> Native {
        let cell = |value: &Dynamic| value.read_lock::<Cell>().map(|cell| cell.clone());
        Ok(cell(values[0]).zip(cell(values[1])).is_some_and(|(a, b)| a.same(&b)).into())
    });
    raw(module, "_sealed", 1, |_, values| -> Native {
        let mut map = values[0].read_lock::<Map>().map(|map| map.clone()).unwrap_or_default();
        let seal = Seal::of(&map);
        map.insert("_own".into(), Dynamic::from(seal));
        Ok(map.into())
    });
    let host = host.clone();
    raw(module, "_whole", 1, move |context, values| -> Native {
        let context = context.expect("registered with a context");
        let whole = check_whole(&host, values[0].read_lock::<Map>().as_deref());
        whole.map(|()| Dynamic::UNIT).map_err(|diag| host.raise(&context, diag, ""))
    });
}

/// An error if an entry was added to an optimizer.
fn check_whole(host: &Host, optimizer: Option<&Map>) -> Result<()> {
    let changed_entry =
        optimizer.and_then(|map| map.get("_own")?.read_lock::<Seal>()?.changed_entry(map).map(str::to_string));
    let Some(name) = changed_entry else { return Ok(()) };
    let mut diag = Diag::error(code::UNKNOWN_PROPERTY, format!("an optimizer has no property `{name}` to assign"));
    if let Some(at) = host.sources.read().assigned(&name) {
        diag = diag.label(Origin::at(at), Focus::Call, "assigned here, which changes nothing");
    }
    Err(diag.help(ASSIGNED))
}

/// Clears the gradients of a group's parameters.
fn clear_grads(group: &Dynamic) {
    let group = group.read_lock::<Map>();
    let params = group.as_ref().and_then(|group| group.get("params")?.read_lock::<Array>());
    for p in params.iter().flat_map(|params| params.iter()).filter_map(|p| p.read_lock::<Tensor>()) {
        (*p).drop_grad();
    }
}

/// What to write instead of `opt.lr = 0.5`.
pub const ASSIGNED: &str = "the rate is `opt.set_lr(0.5)`; any setting is `opt.param_groups[0].momentum = 0.5`";

fn tensors(value: &Dynamic) -> Result<Vec<Tensor>> {
    if let Some(tensor) = value.read_lock::<Tensor>() {
        return Ok(vec![tensor.clone()]);
    }
    let Some(array) = value.read_lock::<Array>() else {
        let text = format!("an array of tensors is expected, not {}", type_names::of_value(value));
        let diag = Diag::error(code::ARGUMENT_TYPE, text);
        return Err(match value.is_map() || value.is::<ModuleValue>() {
            true => diag.help("of a module it is `model.parameters()`"),
            false => diag,
        });
    };
    let one = |item: &Dynamic| match item.read_lock::<Tensor>() {
        Some(tensor) => Ok(tensor.clone()),
        None => Err(Diag::error(
            code::ARGUMENT_TYPE,
            format!("an array of tensors is expected; it holds {}", type_names::of_value(item)),
        )),
    };
    array.iter().map(one).collect()
}

/// `_check_params(name, params, taken)`: leaves that require gradients, without duplicates and those of other groups.
fn check_params(name: &str, value: &Dynamic, taken: &Dynamic) -> Result<Dynamic> {
    if value.is::<ModuleValue>() {
        let text = format!("`{name}`: the parameters are an array, and this is a module");
        return Err(Diag::error(code::ARGUMENT_TYPE, text).help("write `model.parameters()`"));
    }
    let all = tensors(value).map_err(|mut diag| {
        diag.message = format!("`{name}`: {}", diag.message);
        diag
    })?;
    if all.is_empty() {
        fail!(VALUE, "`{name}`: there are no parameters");
    }
    let taken = tensors(taken)?;
    for (at, p) in all.iter().enumerate() {
        if !crate::tensor::history::is_leaf(p) {
            let text = format!("`{name}`: parameter {at} is the result of an operation");
            return Err(Diag::error(code::GRAD_LEAF, text).help("only leaves are optimized: use `.detach()` first"));
        }
        if !p.requires_grad() && !p.dtype().is_float() {
            fail!(DTYPE, "`{name}`: parameter {at} is {}, and only floating-point tensors are optimized", p.dtype());
        }
        if all[..at].iter().any(|other| other.same(p)) {
            fail!(VALUE, "`{name}`: parameter {at} is in the list twice");
        }
        if taken.iter().any(|other| other.same(p)) {
            fail!(VALUE, "`{name}`: parameter {at} is in another group, too");
        }
    }
    Ok(all.into_iter().map(Dynamic::from).collect::<Array>().into())
}

/// Parameters of a group that have always stepped together, with their gradients and their states by key.
struct Part {
    /// Their step count: whether a step was held is known only on their device.
    step: Tensor,
    params: Vec<Tensor>,
    grads: Vec<Tensor>,
    states: Vec<Vec<Tensor>>,
}

/// A group that steps.
struct SteppingGroup {
    /// The row's arguments other than tensors.
    numbers: Vec<Arg>,
    keys: Vec<ImmutableString>,
    parts: Vec<Part>,
}

/// `_advance(optimizer)`: one step of every group by its row, whose parameters are filled by name: `params`, `grads`,
/// `step`, the state, `fixed` and the settings, with `beta1` and `beta2` from `betas`, and so on. State has the
/// parameter's shape, or is one number if `fixed.numbers` contains its name, and begins with zeros, or with the value
/// in `fixed.initial`: a number, or the name of a setting. All groups step, or none: see `Engine::held_as_one`.
fn advance(engine: &mut Engine, row: &str, fixed: &Map, groups: &Dynamic) -> Result<Dynamic> {
    let Some(op) = table::find(row) else { fail!(INTERNAL, "there is no row `{row}`") };
    let Some(groups) = groups.read_lock::<Array>() else { fail!(INTERNAL, "groups are an array") };
    let groups = groups.iter().map(|group| due_of(engine, op, fixed, group)).collect::<Result<Vec<SteppingGroup>>>()?;
    let parts = || groups.iter().flat_map(|group| &group.parts);
    if parts().next().is_none() {
        return Ok(Dynamic::UNIT);
    }
    let written = |visit: &mut dyn FnMut(&Tensor)| parts().flat_map(|part| &part.params).for_each(visit);
    let operands = |visit: &mut dyn FnMut(&Tensor)| {
        for part in parts() {
            let states = part.states.iter().flatten();
            part.params.iter().chain(&part.grads).chain([&part.step]).chain(states).for_each(&mut *visit);
        }
    };
    engine.held_as_one(&written, &operands, |engine| {
        for group in &groups {
            for part in &group.parts {
                let args =
                    op.params.iter().zip(&group.numbers).map(|(param, number)| argument(param, number, part, group));
                engine.apply(op, Args(args.collect()))?;
            }
        }
        Ok(())
    })?;
    // Every iteration of a training loop creates the same windows.
    engine.rt.flush();
    Ok(Dynamic::UNIT)
}

/// `_due(params, steps)`: the parameters of a group with a gradient, by their count of steps: maps of `members`, their
/// numbers, and `step`, the count. `steps` is the group's cell.
fn due(engine: &mut Engine, params: &Dynamic, steps: &Dynamic) -> Result<Dynamic> {
    let params = tensors(params)?;
    let Some(steps) = steps.read_lock::<Cell>().map(|steps| steps.clone()) else { fail!(INTERNAL, "steps are a cell") };
    steps.with(|steps| {
        let Some(mut steps) = steps.write_lock::<Array>() else { fail!(INTERNAL, "steps are an array") };
        steps.resize(params.len(), Dynamic::UNIT);
        let mut found = Array::new();
        for members in together(&params, &steps) {
            let step = count_of(engine, &params, &mut steps, &members)?;
            let members = members.into_iter().map(|at| Dynamic::from_int(at as i64)).collect::<Array>();
            found.push(Dynamic::from_map(crate::base::order::map([
                ("members".into(), members.into()),
                ("step".into(), Dynamic::from(step)),
            ])));
        }
        Ok(found.into())
    })
}

/// `_store(parts)`: writes what a script computed for a step: each part is a map of `step`, the count, and the lists `to`
/// and `from`. All of it is written and counted, or nothing.
fn store(engine: &mut Engine, parts: &Dynamic) -> Result<Dynamic> {
    let Some(parts) = parts.read_lock::<Array>() else { fail!(INTERNAL, "the parts of a step are an array") };
    let mut all: Vec<(Tensor, Vec<Tensor>, Vec<Tensor>)> = Vec::new();
    for part in parts.iter() {
        let Some(part) = part.read_lock::<Map>() else { fail!(INTERNAL, "a part of a step is a map") };
        let list = |name: &str| part.get(name).map_or_else(|| Ok(Vec::new()), tensors);
        let step = part.get("step").and_then(|step| step.read_lock::<Tensor>().map(|step| step.clone()));
        let Some(step) = step else { fail!(INTERNAL, "a part of a step has a count") };
        all.push((step, list("to")?, list("from")?));
    }
    if all.is_empty() {
        return Ok(Dynamic::UNIT);
    }
    let written = |visit: &mut dyn FnMut(&Tensor)| all.iter().flat_map(|(_, to, _)| to).for_each(visit);
    let operands = |visit: &mut dyn FnMut(&Tensor)| {
        all.iter().for_each(|(step, to, from)| to.iter().chain(from).chain([step]).for_each(&mut *visit));
    };
    engine.held_as_one(&written, &operands, |engine| {
        for (step, to, from) in &all {
            engine.apply(&STORED, crate::args![to.as_slice(), from.as_slice(), step])?;
        }
        Ok(())
    })?;
    engine.rt.flush();
    Ok(Dynamic::UNIT)
}

fn due_of(engine: &mut Engine, op: &'static Op, fixed: &Map, group: &Dynamic) -> Result<SteppingGroup> {
    let Some(group) = group.read_lock::<Map>() else { fail!(INTERNAL, "a group is a map") };
    let cell = |name: &str| group.get(name).and_then(|cell| cell.read_lock::<Cell>().map(|cell| cell.clone()));
    let (Some(params), Some(settings), Some(keys), Some(state), Some(steps)) =
        (group.get("params"), cell("settings"), cell("keys"), cell("state"), cell("steps"))
    else {
        fail!(INTERNAL, "a group has parameters, settings and a state")
    };
    let params = tensors(params)?;
    let keys = keys.with(|keys| {
        let keys = keys.read_lock::<Array>();
        let all = keys.iter().flat_map(|keys| keys.iter());
        all.filter_map(|key| key.clone().into_immutable_string().ok()).collect::<Vec<_>>()
    });
    settings.with(|settings| {
        let Some(own) = settings.read_lock::<Map>() else { fail!(INTERNAL, "settings are a map") };
        let with_rate = with_rate(engine, &own)?;
        let settings = Settings { own: with_rate.as_ref().unwrap_or(&own), fixed };
        let numbers = op.params.iter().map(|param| settings.argument(param)).collect();
        let begin = |key: &str| (settings.is_number(key), settings.initial(key));
        let parts = steps.with(|steps| state.with(|state| parts(engine, &params, steps, state, &keys, &begin)))?;
        Ok(SteppingGroup { numbers, keys, parts })
    })
}

/// Settings with the rate as a number, if it is a tensor, which is read now.
fn with_rate(engine: &Engine, own: &Map) -> Result<Option<Map>> {
    let Some(rate) = own.get("lr").and_then(|rate| rate.read_lock::<Tensor>()) else { return Ok(None) };
    let mut settings = own.clone();
    settings.insert("lr".into(), Dynamic::from_float(observe::item(&engine.rt, &rate)?.to_f64()));
    Ok(Some(settings))
}

/// The settings of a group.
struct Settings<'a> {
    own: &'a Map,
    fixed: &'a Map,
}

impl Settings<'_> {
    fn get(&self, name: &str) -> Option<&Dynamic> {
        self.fixed.get(name).or_else(|| self.own.get(name))
    }

    /// Whether a state is one number for a parameter, whatever its shape.
    fn is_number(&self, key: &str) -> bool {
        let numbers = self.fixed.get("numbers").and_then(|names| names.read_lock::<Array>());
        numbers
            .is_some_and(|names| names.iter().any(|name| name.clone().into_immutable_string().is_ok_and(|n| n == key)))
    }

    /// The initial value of a state.
    fn initial(&self, key: &str) -> f64 {
        let initial = self.fixed.get("initial").and_then(|initial| initial.read_lock::<Map>()?.get(key).cloned());
        let Some(initial) = initial else { return 0.0 };
        let named = || number(self.get(&initial.clone().into_immutable_string().ok()?)?);
        number(&initial).or_else(named).unwrap_or(0.0)
    }

    /// The argument for a row's parameter, unless it is tensors.
    fn argument(&self, param: &Param) -> Arg {
        let of_pair = |name: &str, at: usize| {
            let pair = self.get(name)?.read_lock::<Array>()?;
            number(pair.get(at)?).map(Arg::from)
        };
        let given = match (param.name, param.kind) {
            (_, Kind::Tensors | Kind::Tensor) => None,
            ("beta1", _) => of_pair("betas", 0),
            ("beta2", _) => of_pair("betas", 1),
            ("eta_minus", _) => of_pair("etas", 0),
            ("eta_plus", _) => of_pair("etas", 1),
            ("step_size_min", _) => of_pair("step_sizes", 0),
            ("step_size_max", _) => of_pair("step_sizes", 1),
            (name, _) => self
                .get(name)
                .and_then(|value| number(value).map(Arg::from).or_else(|| value.as_bool().map(Arg::from).ok())),
        };
        given.unwrap_or_default()
    }
}

fn number(value: &Dynamic) -> Option<f64> {
    value.as_float().or_else(|_| value.as_int().map(|n| n as f64)).ok()
}

/// The argument for a row's parameter.
fn argument(param: &Param, number: &Arg, part: &Part, group: &SteppingGroup) -> Arg {
    match (param.name, param.kind) {
        ("params", _) => Arg::Tensors(part.params.clone()),
        ("grads", _) => Arg::Tensors(part.grads.clone()),
        ("step", _) => Arg::Tensor(part.step.clone()),
        (name, Kind::Tensors) => {
            let at = group.keys.iter().position(|key| key == name);
            at.map(|at| Arg::Tensors(part.states[at].clone())).unwrap_or_default()
        }
        _ => number.clone(),
    }
}

/// The parts of a group that step now. `steps` has the step count of each parameter, which parameters share that have
/// always stepped together; missing state is created: `begin` says of a key whether it is one number for a parameter,
/// and its initial value. Parameters without a gradient are skipped and keep their count.
fn parts(
    engine: &mut Engine,
    params: &[Tensor],
    steps: &mut Dynamic,
    state: &mut Dynamic,
    keys: &[ImmutableString],
    begin: &dyn Fn(&str) -> (bool, f64),
) -> Result<Vec<Part>> {
    let (Some(mut steps), Some(mut state)) = (steps.write_lock::<Array>(), state.write_lock::<Map>()) else {
        fail!(INTERNAL, "steps are an array, and a state is a map")
    };
    steps.resize(params.len(), Dynamic::UNIT);
    let mut parts: Vec<Part> = Vec::new();
    for members in together(params, &steps) {
        let step = count_of(engine, params, &mut steps, &members)?;
        let part = |at: &usize| params[*at].0.auto.lock().grad.clone();
        let grads = members.iter().filter_map(part).collect();
        let own = members.iter().map(|&at| params[at].clone()).collect();
        let mut states = Vec::with_capacity(keys.len());
        for key in keys {
            if !state.contains_key(key.as_str()) {
                state.insert(key.as_str().into(), Array::new().into());
            }
            let slot = state.get_mut(key.as_str()).and_then(|slot| slot.write_lock::<Array>());
            let Some(mut slot) = slot else { fail!(INTERNAL, "a state is a map of arrays") };
            slot.resize(params.len(), Dynamic::UNIT);
            let one = |&at: &usize| -> Result<Tensor> {
                if let Some(known) = slot[at].read_lock::<Tensor>() {
                    return Ok(known.clone());
                }
                let (is_number, initial) = begin(key);
                let (p, value) = (&params[at], Source::Fill(Scalar::Float(initial)));
                let made = engine.without_recording(|e| {
                    if is_number {
                        return e.source(value, &[], DType::F64, p.device());
                    }
                    let made = e.source(value, &p.shape(), p.dtype().real_part(), p.device())?;
                    // Both parts of a complex parameter begin with it.
                    let is_complex = p.dtype().is_complex();
                    if is_complex { e.call_row(&COMPLEX, crate::args![&made, &made]) } else { Ok(made) }
                })?;
                slot[at] = Dynamic::from(made.clone());
                Ok(made)
            };
            states.push(members.iter().map(one).collect::<Result<Vec<Tensor>>>()?);
        }
        parts.push(Part { step, params: own, grads, states });
    }
    Ok(parts)
}

/// The parameters with a gradient, by their step count, or by device if they have none.
fn together(params: &[Tensor], steps: &[Dynamic]) -> Vec<Vec<usize>> {
    let count = |at: usize| steps[at].read_lock::<Tensor>();
    let same = |a: usize, b: usize| {
        let counts = match (count(a), count(b)) {
            (Some(a), Some(b)) => a.same(&b),
            (None, None) => true,
            _ => false,
        };
        counts && params[a].device() == params[b].device()
    };
    let mut all: Vec<Vec<usize>> = Vec::new();
    for at in (0..params.len()).filter(|&at| params[at].has_grad()) {
        match all.iter_mut().find(|members| same(members[0], at)) {
            Some(members) => members.push(at),
            None => all.push(vec![at]),
        }
    }
    all
}

/// The step count of these parameters, not shared with others, on their device.
fn count_of(engine: &mut Engine, params: &[Tensor], steps: &mut Array, members: &[usize]) -> Result<Tensor> {
    let device = params[members[0]].device();
    let known = steps[members[0]].read_lock::<Tensor>().map(|count| count.clone());
    let holders = |known: &Tensor| {
        let holds = |count: &&Dynamic| count.read_lock::<Tensor>().is_some_and(|count| count.same(known));
        steps.iter().filter(holds).count()
    };
    let count = match known {
        Some(known) if known.device() == device && holders(&known) == members.len() => return Ok(known),
        Some(known) if known.device() == device => {
            engine.without_recording(|e| e.call_row(&CLONE, Args([Arg::Tensor(known)].into_iter().collect())))?
        }
        Some(known) => {
            let moved = crate::args![&known, device, DType::F64];
            engine.without_recording(|e| e.call_row(&MOVE, moved))?
        }
        None => steps_done(engine, 0.0, device)?,
    };
    members.iter().for_each(|&at| steps[at] = Dynamic::from(count.clone()));
    Ok(count)
}

pub fn steps_done(engine: &mut Engine, done: f64, device: DeviceId) -> Result<Tensor> {
    engine.without_recording(|e| e.source(Source::Fill(Scalar::Float(done)), &[COUNTED], DType::F64, device))
}

/// `_step_counts(params, done)`: the step count of each parameter, from a loaded state.
fn step_counts(engine: &mut Engine, params: &Dynamic, done: &Dynamic) -> Result<Dynamic> {
    let (params, Some(done)) = (tensors(params)?, done.read_lock::<Array>()) else {
        fail!(INTERNAL, "counts are an array")
    };
    let mut made: Vec<(f64, Tensor)> = Vec::new();
    let mut counts = Array::new();
    for (p, done) in params.iter().zip(done.iter().map(|done| number(done).unwrap_or(0.0))) {
        let known = made.iter().find(|(count, tensor)| *count == done && tensor.device() == p.device());
        let count = match known {
            _ if done == 0.0 => {
                counts.push(Dynamic::UNIT);
                continue;
            }
            Some((_, known)) => known.clone(),
            None => {
                let count = steps_done(engine, done, p.device())?;
                made.push((done, count.clone()));
                count
            }
        };
        counts.push(Dynamic::from(count));
    }
    Ok(counts.into())
}
