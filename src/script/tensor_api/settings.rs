//! Settings of a session that PyTorch keeps for a process: how tensors are printed, and the state of the random
//! generator.

use crate::base::diag::Result;
use crate::base::dtype::{DType, Scalar};
use crate::base::print::PrintOptions;
use crate::base::rng::Generator;
use crate::fail;
use crate::script::bind::native::{given, named, native};
use crate::script::bind::rows::Natives;
use crate::script::bind::rows::raw;
use crate::script::host::Host;
use crate::script::tensor_api::literal;
use crate::script::values::raise::Native;
use crate::script::values::type_names;
use crate::script::values::types::Tensor;
use crate::tensor::engine::Engine;
use crate::tensor::observe;
use rhai::{Array, Dynamic};
use std::sync::Arc;

pub fn register(module: &mut Natives, host: &Arc<Host>) {
    native(module, host, "set_printoptions", |host, _, values| {
        let set = printing(*host.print.options.lock(), values).map_err(named("set_printoptions"))?;
        *host.print.options.lock() = set;
        Ok(Dynamic::UNIT)
    });
    random(module, host);
}

/// `()` leaves a setting unchanged; a profile is the base for the others.
fn printing(
    old: PrintOptions,
    [precision, threshold, edgeitems, linewidth, profile, sci_mode]: [&Dynamic; 6],
) -> Result<PrintOptions> {
    let default = PrintOptions::default();
    let base = match given(profile).map(Dynamic::to_string).as_deref() {
        None => old,
        Some("default") => default,
        Some("short") => PrintOptions { precision: 2, edgeitems: 2, ..default },
        Some("full") => PrintOptions { threshold: usize::MAX, ..default },
        Some(other) => fail!(VALUE, "`profile` is \"default\", \"short\" or \"full\", not \"{other}\""),
    };
    let count = |name: &str, value: &Dynamic, old: usize| match (given(value).is_some(), value.as_int()) {
        (false, _) => Ok(old),
        (_, Ok(n)) if n >= 0 => Ok(usize::try_from(n).unwrap_or(usize::MAX)),
        _ if value.as_float().is_ok_and(|x| x == f64::INFINITY) => Ok(usize::MAX),
        _ => fail!(VALUE, "`{name}` is a number of 0 or more, not {}", type_names::of_value(value)),
    };
    Ok(PrintOptions {
        // Bound: a float has no more digits than that.
        precision: count("precision", precision, base.precision)?.min(1100),
        threshold: count("threshold", threshold, base.threshold)?,
        edgeitems: count("edgeitems", edgeitems, base.edgeitems)?,
        linewidth: count("linewidth", linewidth, base.linewidth)?,
        sci_mode: match sci_mode.as_bool() {
            Ok(on) => Some(on),
            // As in PyTorch: chosen by the numbers unless it is given.
            Err(_) if sci_mode.is_unit() => None,
            Err(_) => fail!(ARGUMENT_TYPE, "`sci_mode` is true, false or `()`, not {}", type_names::of_value(sci_mode)),
        },
    })
}

fn random(module: &mut Natives, host: &Arc<Host>) {
    let shared = host.clone();
    raw(module, "initial_seed", 0, move |_, _| Ok(initial_seed(&shared)));
    let shared = host.clone();
    raw(module, "seed", 0, move |_, _| Ok(unknown_seed(&shared)));
    native(module, host, "get_rng_state", |host, engine, []| rng_state(host, engine));
    let shared = host.clone();
    raw(module, "set_rng_state", 1, move |context, values| -> Native {
        let context = context.expect("registered with a context");
        shared.call(&context, |_| set_rng_state(&shared, values[0]))
    });
}

pub fn initial_seed(host: &Host) -> Dynamic {
    Dynamic::from_int(host.rt.generator().seed as i64)
}

/// An unpredictable seed: from the clock and the address space.
pub fn unpredictable() -> u64 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    RandomState::new().build_hasher().finish() >> 1
}

pub fn unknown_seed(host: &Host) -> Dynamic {
    let seed = unpredictable();
    host.rt.seed(seed);
    Dynamic::from_int(seed as i64)
}

/// The session's generator as a tensor.
pub fn rng_state(host: &Host, engine: &mut Engine) -> Result<Dynamic> {
    as_tensor(host, engine, host.rt.generator())
}

/// A generator's seed and counter, as a tensor of the CPU.
pub fn as_tensor(host: &Host, engine: &mut Engine, state: Generator) -> Result<Dynamic> {
    let words: Array = [state.seed, state.offset].map(|word| Dynamic::from_int(word as i64)).into_iter().collect();
    let cpu = Some(crate::base::device_id::DeviceId::Cpu);
    literal::from_value(engine, host, &words.into(), Some(DType::I64), cpu).map(Dynamic::from)
}

/// Restores what `rng_state` returned.
pub fn set_rng_state(host: &Host, value: &Dynamic) -> Result<Dynamic> {
    host.rt.set_generator(of_tensor(host, value, "set_rng_state", "get_rng_state")?);
    Ok(Dynamic::UNIT)
}

/// The generator that `as_tensor` wrote down; `name` takes what `giver` gives.
pub fn of_tensor(host: &Host, value: &Dynamic, name: &str, giver: &str) -> Result<Generator> {
    let state = value.read_lock::<Tensor>().map(|state| state.clone());
    let words = state.map(|state| observe::scalars(&host.rt, &state)).transpose()?.unwrap_or_default();
    match words[..] {
        [Scalar::Int(seed), Scalar::Int(offset)] => Ok(Generator { seed: seed as u64, offset: offset as u64 }),
        _ => fail!(VALUE, "`{name}` expects what `{giver}` gave, not {}", type_names::of_value(value)),
    }
}
