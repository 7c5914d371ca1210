//! `autocast`: regions of mixed precision, and questions about them.

use crate::base::code;
use crate::base::device_id::DeviceSpec;
use crate::base::diag::{Diag, Result};
use crate::base::dtype::DType;
use crate::fail;
use crate::op::params;
use crate::sched::autocast::Modes;
use crate::script::bind::convert;
use crate::script::bind::native::{binder_of, counts, given, native};
use crate::script::bind::rows::Natives;
use crate::script::bind::signed::Binder;
use crate::script::cuda_api::devices;
use crate::script::host::Host;
use crate::script::manual::Form;
use crate::script::values::calling;
use crate::script::values::panics::GuardedCall;
use crate::script::values::raise::Native;
use crate::script::values::type_names;
use crate::script::values::types::DTypeValue;
use rhai::{Array, Dynamic, FnPtr, ImmutableString, NativeCallContext};
use std::sync::{Arc, OnceLock};

fn binder() -> &'static Binder {
    static BINDER: OnceLock<Binder> = OnceLock::new();
    BINDER.get_or_init(|| binder_of(Form::Block, "autocast", 4))
}

/// Begins a region with these arguments; gives the modes before it.
pub fn enter(host: &Host, values: &[Dynamic]) -> Result<Modes> {
    let mut values = values.to_vec();
    let values: Vec<&mut Dynamic> = values.iter_mut().collect();
    let keywords = binder().keywords(&values);
    let [first, dtype, enabled, keeps] = binder().borrow(&values, keywords.as_ref())?;
    let (device, own) = kind_or_dtype(first)?;
    let dtype = match given(dtype) {
        Some(_) if own.is_some() => fail!(ARGUMENT_TYPE, "`autocast`: the dtype is given twice"),
        Some(value) => Some(convert::dtype(value)?),
        None => own,
    };
    if let Some(dtype) = dtype.filter(|dtype| !matches!(dtype, DType::F16 | DType::BF16)) {
        let text = format!("`autocast`: the dtype is \"bf16\" or \"f16\", not {dtype}");
        return Err(Diag::error(code::DTYPE, text));
    }
    let enabled = flag("enabled", enabled)?;
    let keeps = given(keeps).map(|value| flag("cache_enabled", value)).transpose()?;
    Ok(host.rt.autocast.enter(|modes| {
        for is_cuda in [false, true].into_iter().filter(|is_cuda| device.is_none_or(|of| of == *is_cuda)) {
            let mode = modes.of(is_cuda);
            mode.enabled = enabled;
            mode.dtype = dtype.unwrap_or(mode.dtype);
        }
        modes.keeps_casts = keeps.unwrap_or(modes.keeps_casts);
    }))
}

fn flag(name: &str, value: &Dynamic) -> Result<bool> {
    value.as_bool().map_err(|_| {
        let text = format!("`autocast`: `{name}` is true or false, not {}", type_names::of_value(value));
        Diag::error(code::ARGUMENT_TYPE, text)
    })
}

/// Whether a kind of devices is CUDA, or a dtype.
fn kind_or_dtype(value: &Dynamic) -> Result<(Option<bool>, Option<DType>)> {
    if value.is_unit() {
        return Ok((None, None));
    }
    let is_dtype = match value.read_lock::<ImmutableString>() {
        Some(text) => params::dtype(&text).is_ok(),
        None => value.is::<DTypeValue>(),
    };
    if is_dtype {
        convert::dtype(value).map(|dtype| (None, Some(dtype)))
    } else {
        is_cuda(value).map(|is| (Some(is), None))
    }
}

fn is_cuda(value: &Dynamic) -> Result<bool> {
    match convert::spec(value) {
        Ok(spec) => Ok(spec != DeviceSpec::Cpu),
        Err(_) => {
            let shown = match value.read_lock::<ImmutableString>() {
                Some(text) => format!("{:?}", text.as_str()),
                None => type_names::of_value(value).to_string(),
            };
            fail!(VALUE, "autocast is of \"cpu\" or \"cuda\", or to \"bf16\" or \"f16\", not {shown}")
        }
    }
}

pub fn register(module: &mut Natives, host: &Arc<Host>) {
    let shared = host.clone();
    let call = move |context: Option<NativeCallContext>, values: &mut [&mut Dynamic]| -> Native {
        let context = context.expect("registered with a context");
        let body = values.last().and_then(|last| last.read_lock::<FnPtr>().map(|body| body.clone()));
        let Some(body) = body else {
            let text = "a closure or a block is expected, as in `autocast(\"bf16\") { .. }`";
            return Err(shared.raise(&context, Diag::error(code::ARGUMENT_TYPE, text.to_string()), ""));
        };
        let values: Array = values[..values.len() - 1].iter().map(|value| (**value).clone()).collect();
        let entered = devices::enter(&shared, "autocast", Some(&values.into()));
        let _restore = entered.map_err(|diag| shared.raise(&context, diag, ""))?;
        calling::call(&context, &body, None, Vec::new())
    };
    module.note("autocast");
    module.place("autocast", counts(binder(), 1), &GuardedCall::new(call));
    native(module, host, "is_autocast_enabled", |host, _, [device]| {
        let mut modes = host.rt.autocast.modes();
        Ok(Dynamic::from_bool(match given(device) {
            Some(device) => modes.of(is_cuda(device)?).enabled,
            None => host.rt.autocast.is_on(),
        }))
    });
    native(module, host, "get_autocast_dtype", |host, _, [device]| {
        Ok(Dynamic::from(DTypeValue(host.rt.autocast.modes().of(is_cuda(device)?).dtype)))
    });
    native(module, host, "is_autocast_cache_enabled", |host, _, []| {
        Ok(Dynamic::from_bool(host.rt.autocast.modes().keeps_casts))
    });
    native(module, host, "clear_autocast_cache", |host, _, []| {
        host.rt.autocast.clear();
        Ok(Dynamic::UNIT)
    });
}

#[cfg(test)]
mod tests {
    use crate::script::session::handle::Session;
    use std::sync::atomic::Ordering;

    /// How many nodes three products with one weight take in a region that begins so.
    fn nodes(begin: &str, inside: &str) -> u64 {
        let mut session = Session::builder().build().expect("a session");
        let w = "let w = randn([4, 4], #{requires_grad: true}); let x = randn([2, 4]);";
        session.run_str("weights", w).expect("runs");
        let before = session.host.rt.recorded.load(Ordering::Relaxed);
        let text = format!("{begin} {{ for i in 0..3 {{ x @ w; {inside} }} }}");
        session.run_str("region", &text).expect("runs");
        session.host.rt.recorded.load(Ordering::Relaxed) - before
    }

    #[test]
    fn a_weight_is_cast_once_in_the_outermost_region() {
        // Three products, three casts of `x`, casts of `w`.
        assert_eq!(nodes("autocast(\"bf16\")", ""), 3 + 3 + 1);
        assert_eq!(nodes("autocast(\"bf16\", #{cache_enabled: false})", ""), 3 + 3 + 3);
        // The region inside keeps no casts of its own, and drops none.
        assert_eq!(nodes("autocast(\"bf16\")", "autocast(\"cpu\") { x @ w; }"), 6 + 6 + 1);
        assert_eq!(nodes("autocast(\"bf16\")", "autocast(\"f16\") { }"), 3 + 3 + 1);
        assert_eq!(nodes("autocast(\"bf16\")", "autocast(#{enabled: false}) { x @ w; }"), 6 + 3 + 1);
        assert_eq!(nodes("autocast(\"bf16\")", "clear_autocast_cache();"), 3 + 3 + 3);
        // A weight that was written is cast again, and so is one whose cast has no gradient where one is wanted.
        assert_eq!(nodes("autocast(\"bf16\")", "no_grad { w *= 2 }"), 3 + 3 + 3 + 3);
        assert_eq!(nodes("autocast(\"bf16\")", "if i == 0 { no_grad { w *= 2; x @ w; } }"), 3 + 3 + 1 + (1 + 3) + 1);
    }
}
