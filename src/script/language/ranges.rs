//! `range(n)`, `range(start, stop, step)`, and ranges as sequences.

use crate::base::code;
use crate::base::diag::Diag;
use crate::script::bind::rows::Natives;
use crate::script::host::Host;
use crate::script::language::arrays;
use crate::script::language::sequences::{elements_fit, plain};
use crate::script::machine::callback::Callback;
use crate::script::values::panics::{GuardedCall, Place, place_iterator};
use crate::script::values::raise::{Native, Outcome};
use crate::script::values::steps::Steps;
use crate::script::values::type_names;
use crate::script::values::types::Tensor;
use rhai::{Array, Dynamic, EvalAltResult, FnPtr, FuncRegistration, NativeCallContext, RhaiFunc};
use std::any::TypeId;
use std::ops::{Range, RangeInclusive};
use std::sync::Arc;

/// Bound: elements that are created between two checks whether the script must end.
const CHECK_ELEMENTS: usize = 1 << 16;

fn of(name: &str) -> FuncRegistration {
    FuncRegistration::new(name).in_global_namespace()
}

pub fn register(module: &mut Natives, host: &Arc<Host>) {
    module.note("range");
    of("range").place_in(&mut module.module, |end: i64| 0..end.max(0));
    of_tensors(module, host);
    let shared = host.clone();
    of("range").place_in(&mut module.module, move |context: NativeCallContext, start: i64, stop: i64, step: i64| {
        stepped(&shared, &context, start..stop, step)
    });
    let shared = host.clone();
    of("range").place_in(&mut module.module, move |context: NativeCallContext, range: Range<i64>, step: i64| {
        stepped(&shared, &context, range, step)
    });
    // Not `map` and `filter`: they call script code, and the call stack shows it.
    for name in ["len", "to_array"] {
        module.note(name);
    }
    range_of::<Range<i64>>(module, host, |range| Steps::of(inclusive(range)));
    range_of::<RangeInclusive<i64>>(module, host, Steps::of);
    range_of::<Steps>(module, host, |steps| steps);
    as_arrays(module, host);
    of("contains").place_in(&mut module.module, |steps: Steps, value: i64| steps.has(value));
    of("==").place_in(&mut module.module, |a: Steps, b: Steps| a == b);
    of("!=").place_in(&mut module.module, |a: Steps, b: Steps| a != b);
    of("is_empty").place_in(&mut module.module, |steps: Steps| steps.count() == 0);
    place_iterator(&mut module.module, TypeId::of::<Steps>(), |value| match value.try_cast::<Steps>() {
        Some(steps) => Box::new(steps.iter().map(|item| Ok(Dynamic::from_int(item)))),
        None => Box::new(std::iter::empty()),
    });
}

/// Methods of arrays that ranges have, too, with the numbers of their arguments behind the range.
const OF_ARRAYS: [(&str, RangeInclusive<usize>); 8] = [
    ("reduce", 1..=2),
    ("some", 1..=1),
    ("find", 1..=2),
    ("find_map", 1..=2),
    ("index_of", 1..=2),
    ("for_each", 1..=1),
    ("get", 1..=1),
    ("extract", 1..=2),
];

/// These methods, on an array of a range's integers. Not noted: they call script code, and the call stack shows it.
fn as_arrays(module: &mut Natives, host: &Arc<Host>) {
    for (name, arguments) in OF_ARRAYS {
        let host = host.clone();
        let call = GuardedCall::new(move |context: Option<NativeCallContext>, values: &mut [&mut Dynamic]| -> Native {
            let context = context.expect("registered with a context");
            let Some(steps) = steps(values[0]) else { return Ok(Dynamic::UNIT) };
            let mut array = Dynamic::from_array(integers(&host, &context, steps)?);
            let mut list: Vec<&mut Dynamic> = vec![&mut array];
            list.extend(values[1..].iter_mut().map(|value| &mut **value));
            context.call_fn_raw(name, true, false, &mut list)
        });
        for kind in [TypeId::of::<Range<i64>>(), TypeId::of::<RangeInclusive<i64>>(), TypeId::of::<Steps>()] {
            module.place_on(kind, name, arguments.start() + 1..=arguments.end() + 1, &call);
        }
    }
}

/// As in Python, an integer tensor without dimensions is accepted for each argument.
fn of_tensors(module: &mut Natives, host: &Arc<Host>) {
    let (tensor, any) = (TypeId::of::<Tensor>(), TypeId::of::<Dynamic>());
    let kinds: [&[TypeId]; 6] =
        [&[tensor], &[tensor, any], &[any, tensor], &[tensor, any, any], &[any, tensor, any], &[any, any, tensor]];
    for kinds in kinds {
        let shared = host.clone();
        let range = move |context: Option<NativeCallContext>, values: &mut [&mut Dynamic]| -> Native {
            let context = context.expect("registered with a context");
            let mut given = Vec::new();
            for value in values {
                given.push(bound(&shared, &context, value)?);
            }
            match given[..] {
                [stop] => stepped(&shared, &context, 0..stop.max(0), 1),
                [start, stop] => stepped(&shared, &context, start..stop, 1),
                _ => stepped(&shared, &context, given[0]..given[1], given[2]),
            }
        };
        let func = RhaiFunc::Method { func: Arc::new(range), has_context: true, is_pure: true, is_volatile: true };
        of("range").place_raw_in(&mut module.module, kinds, func);
    }
}

fn bound(host: &Host, context: &NativeCallContext, value: &Dynamic) -> Outcome<i64> {
    let bound = plain(host, context, value)?;
    let whole = bound.as_float().ok().and_then(crate::base::arithmetic::whole).filter(|_| value.is_float());
    bound.as_int().ok().or(whole).ok_or_else(|| {
        let text = format!("`range`: a bound is an integer, not {}", type_names::of_value(&bound));
        host.raise(context, Diag::error(code::ARGUMENT_TYPE, text), "")
    })
}

/// `range(start, stop, step)`; of neighbors a range as `start..stop`.
fn stepped(host: &Host, context: &NativeCallContext, range: Range<i64>, step: i64) -> Native {
    if step == 1 {
        return Ok(range.into());
    }
    let none = || host.raise(context, Diag::error(code::VALUE, "`range`: the step is not 0"), "");
    Steps::new(range.start, range.end, step).map(Dynamic::from).ok_or_else(none)
}

/// A range with its last integer, which may be the largest of all.
fn inclusive(range: Range<i64>) -> RangeInclusive<i64> {
    if range.is_empty() { RangeInclusive::new(1, 0) } else { range.start..=range.end - 1 }
}

/// The integers of a range; none of another value.
pub fn steps(value: &Dynamic) -> Option<Steps> {
    if let Some(range) = value.read_lock::<Range<i64>>() {
        return Some(Steps::of(inclusive(range.clone())));
    }
    if let Some(range) = value.read_lock::<RangeInclusive<i64>>() {
        return Some(Steps::of(range.clone()));
    }
    value.read_lock::<Steps>().map(|steps| *steps)
}

/// The integers of a range as an array.
pub fn integers(host: &Host, context: &NativeCallContext, steps: Steps) -> Outcome<Array> {
    fits(host, context, steps)?;
    let mut all = Array::new();
    for item in steps.iter() {
        if all.len().is_multiple_of(CHECK_ELEMENTS) {
            host.rt.heed().map_err(|diag| host.raise(context, diag, ""))?;
        }
        all.push(Dynamic::from_int(item));
    }
    Ok(all)
}

fn fits(host: &Host, context: &NativeCallContext, steps: Steps) -> Outcome<()> {
    elements_fit(host, context, 0, usize::try_from(steps.count()).unwrap_or(usize::MAX))
}

fn range_of<T: Clone + Send + Sync + 'static>(module: &mut Natives, host: &Arc<Host>, steps: fn(T) -> Steps) {
    let shared = host.clone();
    let len = move |context: NativeCallContext, range: T| -> Outcome<i64> {
        let count = steps(range).count();
        i64::try_from(count).map_err(|_| {
            let text = format!("`len`: {count} elements are no integer of 64 bits");
            shared.raise(&context, Diag::error(code::ARITHMETIC, text), "")
        })
    };
    of("len").place_in(&mut module.module, len);
    of("bool").place_in(&mut module.module, move |range: T| steps(range).count() > 0);
    let item = move |context: NativeCallContext, range: T, at: i64| -> Native {
        let steps = steps(range);
        let bounds = || {
            let count = usize::try_from(steps.count()).unwrap_or(usize::MAX);
            Box::new(EvalAltResult::ErrorArrayBounds(count, at, context.call_position()))
        };
        steps.get(at).map(Dynamic::from_int).ok_or_else(bounds)
    };
    FuncRegistration::new_index_getter().in_global_namespace().place_in(&mut module.module, item);
    let shared = host.clone();
    let whole = move |context: NativeCallContext, range: T| integers(&shared, &context, steps(range));
    of("to_array").place_in(&mut module.module, whole);
    let shared = host.clone();
    let map = move |context: NativeCallContext, range: T, each: FnPtr| -> Outcome<Array> {
        let steps = steps(range);
        fits(&shared, &context, steps)?;
        let mut each = Callback::new(&context, &each);
        steps.iter().map(|item| each.call([Dynamic::from_int(item)])).collect()
    };
    of("map").place_in(&mut module.module, map);
    let shared = host.clone();
    let filter = move |context: NativeCallContext, range: T, keeps: FnPtr| -> Outcome<Array> {
        let (mut kept, steps) = (Array::new(), steps(range));
        fits(&shared, &context, steps)?;
        let mut keeps = Callback::new(&context, &keeps);
        for item in steps.iter().map(Dynamic::from_int) {
            let answer = keeps.call([item.clone()])?;
            if arrays::truth(&shared, &context, &answer)? {
                kept.push(item);
            }
        }
        Ok(kept)
    };
    of("filter").place_in(&mut module.module, filter);
}
