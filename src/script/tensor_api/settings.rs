//! Settings of a session that PyTorch keeps for a process: how tensors are printed, and where the random generator
//! stands.

use crate::base::diag::Result;
use crate::base::dtype::{DType, Scalar};
use crate::base::print::PrintOptions;
use crate::base::rng::Generator;
use crate::base::suggest::unknown_keyword;
use crate::fail;
use crate::script::bind::rows::Natives;
use crate::script::bind::rows::raw;
use crate::script::host::Host;
use crate::script::tensor_api::literal;
use crate::script::values::raise::Native;
use crate::script::values::type_names;
use crate::script::values::types::Tensor;
use crate::tensor::observe;
use rhai::{Array, Dynamic, Map, NativeCallContext};
use std::sync::Arc;

/// The parameters of `set_printoptions`, in PyTorch's order.
const PRINTING: &[&str] = &["precision", "threshold", "edgeitems", "linewidth", "profile", "sci_mode"];

pub fn register(module: &mut Natives, host: &Arc<Host>) {
    for arity in 0..=PRINTING.len() {
        let shared = host.clone();
        raw(module, "set_printoptions", arity, move |context, values| -> Native {
            let context = context.expect("registered with a context");
            let mut options = *shared.print.options.lock();
            let set = printing(&mut options, values);
            set.map_err(|mut diag| {
                diag.message = format!("`set_printoptions`: {}", diag.message);
                shared.raise(&context, diag, "")
            })?;
            *shared.print.options.lock() = options;
            Ok(Dynamic::UNIT)
        });
    }
    random(module, host);
}

fn printing(options: &mut PrintOptions, values: &[&mut Dynamic]) -> Result<()> {
    for (name, value) in PRINTING.iter().zip(values) {
        let Some(map) = value.read_lock::<Map>() else {
            set(options, name, value)?;
            continue;
        };
        // A profile is the ground for the others.
        let (profile, rest): (Vec<_>, Vec<_>) = map.iter().partition(|(name, _)| name.as_str() == "profile");
        for (name, value) in profile.into_iter().chain(rest) {
            set(options, name, value)?;
        }
    }
    Ok(())
}

fn set(options: &mut PrintOptions, name: &str, value: &Dynamic) -> Result<()> {
    if value.is_unit() {
        if name == "sci_mode" {
            options.sci_mode = None;
        }
        return Ok(());
    }
    let count = || match value.as_int() {
        Ok(n) if n >= 0 => Ok(usize::try_from(n).unwrap_or(usize::MAX)),
        _ if value.as_float().is_ok_and(|x| x == f64::INFINITY) => Ok(usize::MAX),
        _ => fail!(VALUE, "`{name}` is a number of 0 or more, not {}", type_names::of_value(value)),
    };
    match name {
        // Bound: a float has no more digits than that.
        "precision" => options.precision = count()?.min(1100),
        "threshold" => options.threshold = count()?,
        "edgeitems" => options.edgeitems = count()?,
        "linewidth" => options.linewidth = count()?,
        "sci_mode" => match value.as_bool() {
            Ok(on) => options.sci_mode = Some(on),
            Err(_) => fail!(ARGUMENT_TYPE, "`sci_mode` is true, false or `()`, not {}", type_names::of_value(value)),
        },
        "profile" => {
            let default = PrintOptions::default();
            *options = match value.to_string().as_str() {
                "default" => default,
                "short" => PrintOptions { precision: 2, edgeitems: 2, ..default },
                "full" => PrintOptions { threshold: usize::MAX, ..default },
                other => fail!(VALUE, "`profile` is \"default\", \"short\" or \"full\", not \"{other}\""),
            };
        }
        _ => return Err(unknown_keyword(name, PRINTING)),
    }
    Ok(())
}

fn random(module: &mut Natives, host: &Arc<Host>) {
    let shared = host.clone();
    raw(module, "initial_seed", 0, move |_, _| Ok(initial_seed(&shared)));
    let shared = host.clone();
    raw(module, "seed", 0, move |_, _| Ok(unknown_seed(&shared)));
    let shared = host.clone();
    raw(module, "get_rng_state", 0, move |context, _| -> Native {
        rng_state(&shared, &context.expect("registered with a context"))
    });
    let shared = host.clone();
    raw(module, "set_rng_state", 1, move |context, values| -> Native {
        let context = context.expect("registered with a context");
        shared.call(&context, |_| set_rng_state(&shared, values[0]))
    });
}

pub fn initial_seed(host: &Host) -> Dynamic {
    Dynamic::from_int(host.rt.generator().seed as i64)
}

/// A seed that nobody knows: the clock's and the address space's.
pub fn unknown_seed(host: &Host) -> Dynamic {
    use std::hash::{BuildHasher, Hasher, RandomState};
    let seed = RandomState::new().build_hasher().finish() >> 1;
    host.rt.seed(seed);
    Dynamic::from_int(seed as i64)
}

/// The generator's seed and place, as a tensor of the CPU.
pub fn rng_state(host: &Arc<Host>, context: &NativeCallContext) -> Native {
    let state = host.rt.generator();
    let words: Array = [state.seed, state.offset].map(|word| Dynamic::from_int(word as i64)).into_iter().collect();
    let cpu = Some(crate::base::device_id::DeviceId::Cpu);
    host.call(context, |engine| {
        literal::from_value(engine, host, &words.into(), Some(DType::I64), cpu).map(Dynamic::from)
    })
}

/// Takes what `rng_state` gave.
pub fn set_rng_state(host: &Host, value: &Dynamic) -> Result<Dynamic> {
    let state = value.read_lock::<Tensor>().map(|state| state.clone());
    let words = state.map(|state| observe::scalars(&host.rt, &state)).transpose()?.unwrap_or_default();
    match words[..] {
        [Scalar::Int(seed), Scalar::Int(offset)] => {
            host.rt.set_generator(Generator { seed: seed as u64, offset: offset as u64 });
            Ok(Dynamic::UNIT)
        }
        _ => fail!(VALUE, "`set_rng_state` wants what `get_rng_state` gave, not {}", type_names::of_value(value)),
    }
}
