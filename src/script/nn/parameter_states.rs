//! `opt.state`: what an optimizer keeps for each parameter, as in PyTorch, where `opt.state[p].exp_avg` is a tensor that the
//! next step goes on with. Does not treat any optimizer specially.

use crate::args;
use crate::base::code;
use crate::base::diag::{Diag, Result};
use crate::fail;
use crate::op::rows::shape::view::SELECT;
use crate::script::bind::rows::{Natives, raw};
use crate::script::host::Host;
use crate::script::nn::optimizer_state::steps_done;
use crate::script::values::panics::{GuardedCall, Place};
use crate::script::values::raise::Native;
use crate::script::values::type_names;
use crate::script::values::types::{Cell, Tensor};
use crate::tensor::engine::Engine;
use crate::tensor::observe;
use rhai::{Array, Dynamic, FuncRegistration, Map};
use std::any::TypeId;
use std::sync::Arc;

/// The states of an optimizer's parameters: the cell of its groups.
#[derive(Clone)]
pub struct States(Cell);

/// The entry of a state that says how many steps were done.
const STEP: &str = "step";

/// A parameter of a group, and the cells of what the group keeps: lists of steps, and by key of state.
struct Kept {
    parameter: Tensor,
    at: usize,
    steps: Cell,
    state: Cell,
}

impl Kept {
    fn count(&self) -> Option<Tensor> {
        self.steps
            .with(|steps| steps.read_lock::<Array>()?.get(self.at)?.read_lock::<Tensor>().map(|step| step.clone()))
    }

    /// The state as a map; empty before the first step.
    fn read(&self, engine: &mut Engine) -> Result<Map> {
        let mut found: Map = self.state.with(|state| {
            let state = state.read_lock::<Map>();
            let slots = state.iter().flat_map(|state| state.iter());
            let own = slots.filter_map(|(key, slot)| {
                let value = slot.read_lock::<Array>()?.get(self.at)?.clone();
                (!value.is_unit()).then(|| (key.clone(), value))
            });
            crate::base::order::map(own)
        });
        if let Some(count) = self.count() {
            let step = engine.without_recording(|e| e.call_row(&SELECT, args![&count, 0i64, 0i64]))?;
            found.insert(STEP.into(), Dynamic::from(step));
        }
        Ok(found)
    }

    /// Puts a map in the place of the state; an empty one forgets it.
    fn write(&self, engine: &mut Engine, new: &Map) -> Result<()> {
        let mut step = self.step(engine, new)?;
        for (key, value) in new.iter().filter(|(key, _)| key.as_str() != STEP) {
            if !value.is::<Tensor>() {
                fail!(ARGUMENT_TYPE, "`{key}` in a parameter's state is a tensor, not {}", type_names::of_value(value));
            }
        }
        let has_state = new.keys().any(|key| key.as_str() != STEP);
        if step.is_unit() && has_state {
            step = Dynamic::from(steps_done(engine, 0.0, self.parameter.device())?);
        }
        self.steps.with(|steps| put(steps, self.at, step));
        self.state.with(|state| {
            let Some(mut state) = state.write_lock::<Map>() else { return };
            for key in new.keys().filter(|key| key.as_str() != STEP) {
                state.entry(key.clone()).or_insert_with(|| Array::new().into());
            }
            for (key, slot) in state.iter_mut() {
                put(slot, self.at, new.get(key).cloned().unwrap_or_default());
            }
        });
        Ok(())
    }

    /// The count that a written state stands for; the one that is there, where it was not changed.
    fn step(&self, engine: &mut Engine, new: &Map) -> Result<Dynamic> {
        let Some(value) = new.get(STEP) else { return Ok(Dynamic::UNIT) };
        let known = self.count();
        let done = match value.read_lock::<Tensor>() {
            Some(step) => {
                let same = known.filter(|known| known.view().buffer.id == step.view().buffer.id);
                if let Some(known) = same {
                    return Ok(Dynamic::from(known));
                }
                observe::item(&engine.rt, &step)?.to_f64()
            }
            None => match (value.as_int(), value.as_float()) {
                (Ok(n), _) => n as f64,
                (_, Ok(x)) => x,
                _ => fail!(ARGUMENT_TYPE, "`step` is a number, not {}", type_names::of_value(value)),
            },
        };
        if done == 0.0 {
            Ok(Dynamic::UNIT)
        } else {
            steps_done(engine, done, self.parameter.device()).map(Dynamic::from)
        }
    }
}

fn put(list: &mut Dynamic, at: usize, value: Dynamic) {
    let Some(mut list) = list.write_lock::<Array>() else { return };
    if list.len() <= at {
        list.resize(at + 1, Dynamic::UNIT);
    }
    list[at] = value;
}

impl States {
    /// All parameters, in the order of the groups.
    fn all(&self) -> Vec<Kept> {
        self.0.with(|groups| {
            let mut found = Vec::new();
            let groups = groups.read_lock::<Array>();
            for group in groups.iter().flat_map(|groups| groups.iter()) {
                let Some(group) = group.read_lock::<Map>() else { continue };
                let cell = |name: &str| group.get(name)?.read_lock::<Cell>().map(|cell| cell.clone());
                let params = group.get("params").and_then(|params| params.read_lock::<Array>());
                let (Some(steps), Some(state), Some(params)) = (cell("steps"), cell("state"), params) else { continue };
                for (at, parameter) in params.iter().enumerate() {
                    let parameter = parameter.read_lock::<Tensor>().map(|parameter| parameter.clone());
                    let (steps, state) = (steps.clone(), state.clone());
                    found.extend(parameter.map(|parameter| Kept { parameter, at, steps, state }));
                }
            }
            found
        })
    }

    /// The parameters that have a state, with it.
    fn begun(&self, engine: &mut Engine) -> Result<Vec<(Tensor, Map)>> {
        let mut found = Vec::new();
        for kept in self.all() {
            let state = kept.read(engine)?;
            if !state.is_empty() {
                found.push((kept.parameter, state));
            }
        }
        Ok(found)
    }

    fn of(&self, value: &Dynamic) -> Result<Kept> {
        let Some(tensor) = value.read_lock::<Tensor>().map(|tensor| tensor.clone()) else {
            let text = format!("a state belongs to a parameter, not to {}", type_names::of_value(value));
            return Err(Diag::error(code::ARGUMENT_TYPE, text).help("write `opt.state[model.weight]`"));
        };
        match self.all().into_iter().find(|kept| kept.parameter.same(&tensor)) {
            Some(kept) => Ok(kept),
            None => fail!(INDEX, "this tensor is no parameter of the optimizer"),
        }
    }
}

type Method = fn(&mut Engine, &States, &[&mut Dynamic]) -> Result<Dynamic>;

/// `_states(groups)`, and what the value can do.
pub fn register(natives: &mut Natives, host: &Arc<Host>) {
    raw(natives, "_states", 1, |_, values| -> Native {
        Ok(values[0].read_lock::<Cell>().map_or(Dynamic::UNIT, |groups| Dynamic::from(States(groups.clone()))))
    });
    let methods: [(&'static str, usize, Method); 7] = [
        ("keys", 1, |e, states, _| {
            Ok(states.begun(e)?.into_iter().map(|(parameter, _)| Dynamic::from(parameter)).collect::<Array>().into())
        }),
        ("values", 1, |e, states, _| {
            Ok(states.begun(e)?.into_iter().map(|(_, state)| Dynamic::from_map(state)).collect::<Array>().into())
        }),
        ("items", 1, |e, states, _| {
            let pair = |(parameter, state)| vec![Dynamic::from::<Tensor>(parameter), Dynamic::from_map(state)].into();
            Ok(states.begun(e)?.into_iter().map(pair).collect::<Array>().into())
        }),
        ("len", 1, |e, states, _| Ok(Dynamic::from_int(states.begun(e)?.len() as i64))),
        ("contains", 2, |e, states, values| match states.of(values[1]) {
            Ok(kept) => kept.read(e).map(|state| (!state.is_empty()).into()),
            Err(_) => Ok(false.into()),
        }),
        ("clear", 1, |e, states, _| {
            states.all().iter().try_for_each(|kept| kept.write(e, &Map::new()))?;
            Ok(Dynamic::UNIT)
        }),
        ("get", 2, |e, states, values| Ok(states.of(values[1])?.read(e)?.into())),
    ];
    let own = TypeId::of::<States>();
    for (name, arity, method) in methods {
        natives.note(name);
        natives.place_on(own, name, arity..=arity, &called(host, method));
    }
    let or_default: Method = |e, states, values| match states.of(values[1]) {
        Ok(kept) => match kept.read(e)? {
            state if state.is_empty() => Ok(values[2].flatten_clone()),
            state => Ok(state.into()),
        },
        Err(_) => Ok(values[2].flatten_clone()),
    };
    natives.place_on(own, "get", 3..=3, &called(host, or_default));
    let read: Method = |e, states, values| Ok(states.of(values[1])?.read(e)?.into());
    let write: Method = |e, states, values| {
        let new = values[2].read_lock::<Map>().map(|new| new.clone());
        match new {
            Some(new) => states.of(values[1])?.write(e, &new).map(|()| Dynamic::UNIT),
            None => {
                fail!(ARGUMENT_TYPE, "a parameter's state is a map of tensors, not {}", type_names::of_value(values[2]))
            }
        }
    };
    let (any, tensor) = (TypeId::of::<Dynamic>(), TypeId::of::<Tensor>());
    FuncRegistration::new_index_getter().place_shared_in(&mut natives.module, [own, tensor], &called(host, read));
    FuncRegistration::new_index_setter().place_shared_in(&mut natives.module, [own, tensor, any], &called(host, write));
}

fn called(host: &Arc<Host>, method: Method) -> GuardedCall {
    let host = host.clone();
    GuardedCall::new(move |context, values| -> Native {
        let context = context.expect("registered with a context");
        let states = values[0].read_lock::<States>().map(|states| states.clone()).expect("registered for states");
        host.call(&context, |engine| method(engine, &states, values))
    })
}
