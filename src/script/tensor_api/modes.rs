//! Functions of the session itself: gradient mode, defaults, seeds, waiting, cells.

use crate::base::code;
use crate::base::diag::Diag;
use crate::sched::options::MatmulPrecision;
use crate::script::bind::convert;
use crate::script::bind::rows::Natives;
use crate::script::bind::rows::raw;
use crate::script::host::Host;
use crate::script::values::panics::{GuardedCall, Place};
use crate::script::values::raise::Native;
use crate::script::values::type_names;
use crate::script::values::types::{Cell, DTypeValue, SliceValue, Tensor};
use rhai::{Dynamic, EvalAltResult, FuncRegistration, NativeCallContext, RhaiFunc};
use std::any::TypeId;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Bound: time until a sleeping script notices an interruption.
const NAP: Duration = Duration::from_millis(10);

pub fn register(module: &mut Natives, host: &Arc<Host>) {
    gradient_mode(module, host);
    defaults(module, host);
    values(module, host);
    sleep(module, host);
}

/// `sleep(seconds)`, in place of Rhai's own, which cannot be interrupted.
fn sleep(module: &mut Natives, host: &Arc<Host>) {
    fn nap(host: &Host, context: &NativeCallContext, seconds: f64) -> Native {
        if seconds.is_nan() || seconds <= 0.0 {
            return Ok(Dynamic::UNIT);
        }
        let wait = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
        let begun = Instant::now();
        loop {
            if let Some(diag) = host.watch.ended() {
                return Err(host.raise(context, diag, "while it slept"));
            }
            match wait.checked_sub(begun.elapsed()) {
                None | Some(Duration::ZERO) => return Ok(Dynamic::UNIT),
                Some(left) => std::thread::sleep(left.min(NAP)),
            }
        }
    }
    let shared = host.clone();
    let float = move |context: NativeCallContext, seconds: f64| nap(&shared, &context, seconds);
    rhai::FuncRegistration::new("sleep").in_global_namespace().place_in(&mut module.module, float);
    let shared = host.clone();
    let int = move |context: NativeCallContext, seconds: i64| nap(&shared, &context, seconds as f64);
    rhai::FuncRegistration::new("sleep").in_global_namespace().place_in(&mut module.module, int);
    let shared = host.clone();
    let other = GuardedCall::new(move |context: Option<NativeCallContext>, values: &mut [&mut Dynamic]| -> Native {
        let context = context.expect("registered with a context");
        let text = format!("`sleep`: `seconds` is a number, not {}", type_names::of_value(values[0]));
        Err(shared.raise(&context, Diag::error(code::ARGUMENT_TYPE, text), ""))
    });
    module.place("sleep", 1..=1, &other);
}

fn gradient_mode(module: &mut Natives, host: &Arc<Host>) {
    let shared = host.clone();
    raw(module, "is_grad_enabled", 0, move |_, _| Ok(Dynamic::from_bool(shared.rt.grad_enabled())));
}

fn defaults(module: &mut Natives, host: &Arc<Host>) {
    let shared = host.clone();
    raw(module, "manual_seed", 1, move |context, values| -> Native {
        let context = context.expect("registered with a context");
        match convert::integer(values[0]) {
            Some(seed) => shared.rt.seed(seed as u64),
            None => {
                let text = format!("a seed is an integer, not {}", type_names::of_value(values[0]));
                return Err(shared.raise(&context, Diag::error(code::ARGUMENT_TYPE, text), ""));
            }
        }
        Ok(Dynamic::UNIT)
    });
    let shared = host.clone();
    raw(module, "set_default_dtype", 1, move |context, values| -> Native {
        let context = context.expect("registered with a context");
        shared.call(&context, |_| {
            let dtype = convert::dtype(values[0])?;
            if !dtype.is_float() {
                crate::fail!(DTYPE, "the default dtype must be a floating-point one, not {dtype}");
            }
            shared.rt.set_default_float(dtype);
            Ok(Dynamic::UNIT)
        })
    });
    let shared = host.clone();
    raw(module, "set_float32_matmul_precision", 1, move |context, values| -> Native {
        let context = context.expect("registered with a context");
        shared.call(&context, |_| {
            let expected = values[0].clone().into_string().unwrap_or_default();
            let found = MatmulPrecision::ALL.into_iter().find(|precision| precision.name() == expected);
            let Some(precision) = found else {
                crate::fail!(VALUE, "a precision is \"highest\", \"high\" or \"medium\"");
            };
            shared.rt.set_matmul_precision(precision);
            Ok(Dynamic::UNIT)
        })
    });
    let shared = host.clone();
    raw(module, "get_float32_matmul_precision", 0, move |_, _| Ok(shared.rt.matmul_precision().name().into()));
    for arity in 1..=2 {
        let shared = host.clone();
        raw(module, "use_deterministic_algorithms", arity, move |context, values| -> Native {
            let context = context.expect("registered with a context");
            shared.call(&context, |_| match values[0].as_bool() {
                Ok(only) => {
                    shared.rt.set_deterministic(only);
                    Ok(Dynamic::UNIT)
                }
                Err(_) => crate::fail!(ARGUMENT_TYPE, "`use_deterministic_algorithms` takes `true` or `false`"),
            })
        });
    }
    let shared = host.clone();
    raw(module, "are_deterministic_algorithms_enabled", 0, move |_, _| Ok(shared.rt.deterministic().into()));
    let shared = host.clone();
    raw(module, "get_default_dtype", 0, move |_, _| Ok(Dynamic::from(DTypeValue(shared.rt.default_float()))));
}

fn values(module: &mut Natives, host: &Arc<Host>) {
    for arity in 0..=3 {
        let shared = host.clone();
        raw(module, "slice", arity, move |context, values| -> Native {
            let context = context.expect("registered with a context");
            let mut ends = [None; 3];
            for (end, value) in ends.iter_mut().zip(values.iter()) {
                if !value.is_unit() {
                    *end = Some(end_of(&shared, &context, "a slice is an integer or `()`", value)?);
                }
            }
            Ok(Dynamic::from(SliceValue { start: ends[0], stop: ends[1], step: ends[2].unwrap_or(1) }))
        });
    }
    ranges(module, host);
    rhai::FuncRegistration::new("!")
        .in_global_namespace()
        .place_in(&mut module.module, |cell: Cell| cell.get().as_bool().map_or(Dynamic::UNIT, |on| (!on).into()));
    raw(module, "cell", 1, |_, values| Ok(Dynamic::from(Cell::new(values[0].clone()))));
    rhai::FuncRegistration::new("get").in_global_namespace().place_in(&mut module.module, |cell: Cell| cell.get());
    rhai::FuncRegistration::new("set")
        .in_global_namespace()
        .place_in(&mut module.module, |cell: Cell, value: Dynamic| cell.set(value));
    rhai::FuncRegistration::new_getter("value").place_in(&mut module.module, |cell: &mut Cell| cell.get());
    rhai::FuncRegistration::new_setter("value")
        .place_in(&mut module.module, |cell: &mut Cell, value: Dynamic| cell.set(value));
}

/// An integer, or a tensor that stands for one.
fn end_of(host: &Host, context: &NativeCallContext, of: &str, value: &Dynamic) -> Result<i64, Box<EvalAltResult>> {
    convert::int(host, value).map_err(|mut diag| {
        if !diag.is_late && diag.code != code::VMAP {
            diag.message = format!("an end of {of}, not {}", type_names::of_value(value));
        }
        host.raise(context, diag, "")
    })
}

/// `a..b` and `a..=b` where one of the two is a tensor without dimensions. `a..` has `()` for its end, and none.
fn ranges(module: &mut Natives, host: &Arc<Host>) {
    let tensor = TypeId::of::<Tensor>();
    let other = TypeId::of::<Dynamic>();
    for (name, inclusive) in [("..", false), ("..=", true)] {
        for kinds in [[tensor, tensor], [tensor, other], [other, tensor]] {
            let shared = host.clone();
            let range = move |context: Option<NativeCallContext>, values: &mut [&mut Dynamic]| -> Native {
                let context = context.expect("registered with a context");
                let end = |value: &Dynamic| end_of(&shared, &context, "a range is an integer", value);
                let first = end(values[0])?;
                let last = if values[1].is_unit() { i64::MAX } else { end(values[1])? };
                Ok(if inclusive { Dynamic::from(first..=last) } else { Dynamic::from(first..last) })
            };
            let func = RhaiFunc::Method { func: Arc::new(range), has_context: true, is_pure: true, is_volatile: true };
            let own = FuncRegistration::new(name).in_global_namespace();
            own.place_raw_in(&mut module.module, kinds, func);
        }
    }
}
