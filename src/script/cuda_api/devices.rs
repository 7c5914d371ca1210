//! The current device and stream: `with_device`, `with_stream`, `set_default_device`, `synchronize`.

use crate::base::code;
use crate::base::device_id::DeviceSpec;
use crate::base::diag::{Diag, Result};
use crate::sched::autocast::Modes;
use crate::sched::streams::placement::Previous;
use crate::script::bind::convert;
use crate::script::bind::rows::{Natives, raw};
use crate::script::cuda_api::autocast;
use crate::script::host::Host;
use crate::script::source::hooks::{BLOCK_WORDS, compiled_word, is_bare_word, takes_list};
use crate::script::values::calling;
use crate::script::values::raise::Native;
use crate::script::values::type_names;
use crate::script::values::types::DeviceValue;
use crate::script::values::types::{EventValue, StreamValue};
use rhai::{Dynamic, Engine, FnPtr};
use std::sync::Arc;

/// Whether a value means "no device" for `with_device`: `()` or a negative number.
pub fn means_none(value: &Dynamic) -> bool {
    value.is_unit() || value.as_int().is_ok_and(|index| index < 0)
}

/// Restores the previous device, stream or mode on every exit.
pub struct Restore {
    host: Arc<Host>,
    placement: Option<Previous>,
    grad: Option<bool>,
    autocast: Option<Modes>,
    inference: Option<bool>,
    anomaly: Option<bool>,
}

impl Drop for Restore {
    fn drop(&mut self) {
        if let Some(placement) = self.placement.take() {
            self.host.rt.restore(placement);
        }
        if let Some(on) = self.grad {
            self.host.rt.set_grad_enabled(on);
        }
        if let Some(modes) = self.autocast.take() {
            self.host.rt.autocast.leave(modes);
        }
        if let Some(on) = self.inference {
            self.host.rt.set_inference(on);
        }
        if let Some(on) = self.anomaly {
            self.host.rt.set_detect_anomalies(on);
        }
    }
}

/// Enters `with_device(value)` and the like; dropping the result leaves it.
pub fn enter(host: &Arc<Host>, word: &str, value: Option<&Dynamic>) -> Result<Restore> {
    let nothing = Dynamic::UNIT;
    let value = value.unwrap_or(&nothing);
    let mut restore =
        Restore { host: host.clone(), placement: None, grad: None, autocast: None, inference: None, anomaly: None };
    match word {
        "with_device" => {
            // As in PyTorch, no device and a negative index have no effect.
            if !means_none(value) {
                let device = convert::device(host, value)?;
                restore.placement = Some(host.rt.enter_device(device));
            }
        }
        "with_stream" => {
            // As in PyTorch, no stream has no effect.
            if !value.is_unit() {
                restore.placement = Some(host.rt.enter_stream(crate::script::cuda_api::streams::stream_of(value)?)?);
            }
        }
        "autocast" => {
            let values = value.read_lock::<rhai::Array>().map(|values| values.clone()).unwrap_or_default();
            restore.autocast = Some(autocast::enter(host, &values)?);
        }
        // As in PyTorch, forward mode goes on.
        "no_grad" => restore.grad = Some(host.rt.set_grad_enabled(host.rt.is_forward_mode())),
        "inference_mode" => {
            restore.inference = Some(host.rt.set_inference(true));
            restore.grad = Some(host.rt.set_grad_enabled(false));
        }
        "detect_anomaly" => restore.anomaly = Some(host.rt.set_detect_anomalies(true)),
        "set_grad_enabled" => restore.grad = Some(host.rt.set_grad_enabled(switch(host, value)?)),
        // As in PyTorch, nothing is recorded in `inference_mode`.
        _ => restore.grad = Some(host.rt.set_grad_enabled(!host.rt.is_inference())),
    }
    Ok(restore)
}

/// The argument of `set_grad_enabled`.
fn switch(host: &Host, value: &Dynamic) -> Result<bool> {
    match value.as_bool() {
        Ok(on) => Ok((on || host.rt.is_forward_mode()) && !host.rt.is_inference()),
        Err(_) => {
            let text = format!("`set_grad_enabled` expects true or false, not {}", type_names::of_value(value));
            Err(Diag::error(code::ARGUMENT_TYPE, text))
        }
    }
}

/// The block forms, `with_device(d) { .. }`, and closures that are written as arguments, whose bodies run in place:
/// nothing is captured, and there is no call.
pub fn install(engine: &mut Engine) {
    for word in BLOCK_WORDS {
        let (block_word, closure_word) = (format!("__{word}"), format!("__written_{word}"));
        if takes_list(word) {
            compiled_word(engine, &[&block_word, "(", "$expr$", ")", "$block$"]);
        } else if is_bare_word(word) {
            compiled_word(engine, &[&block_word, "$block$"]);
            compiled_word(engine, &[&closure_word, "(", "$block$", ")"]);
        } else {
            compiled_word(engine, &[&block_word, "(", "$expr$", ")", "$block$"]);
            compiled_word(engine, &[&closure_word, "(", "$expr$", ",", "$block$", ")"]);
        }
    }
}

pub fn register(module: &mut Natives, host: &Arc<Host>) {
    for word in BLOCK_WORDS.into_iter().filter(|word| !takes_list(word)) {
        let arity = if is_bare_word(word) { 1 } else { 2 };
        let shared = host.clone();
        raw(module, word, arity, move |context, values| -> Native {
            let context = context.expect("registered with a context");
            let Some(body) = values[arity - 1].clone().try_cast::<FnPtr>() else {
                let before = if arity == 2 { "value, " } else { "" };
                let text = format!(
                    "a closure is expected, as in `{word}({before}|| ...)`, not {}",
                    type_names::of_value(values[arity - 1])
                );
                return Err(shared.raise(&context, Diag::error(code::ARGUMENT_TYPE, text), ""));
            };
            let value = (arity == 2).then(|| values[0].clone());
            let entered = enter(&shared, word, value.as_ref());
            let _restore = entered.map_err(|diag| shared.raise(&context, diag, ""))?;
            calling::call(&context, &body, None, Vec::new())
        });
    }
    let shared = host.clone();
    raw(module, "set_grad_enabled", 1, move |context, values| -> Native {
        let context = context.expect("registered with a context");
        let on = switch(&shared, values[0]).map_err(|diag| shared.raise(&context, diag, ""))?;
        shared.rt.set_grad_enabled(on);
        Ok(Dynamic::UNIT)
    });
    let shared = host.clone();
    raw(module, "set_default_device", 1, move |context, values| -> Native {
        let context = context.expect("registered with a context");
        shared.call(&context, |_| {
            let device = convert::device(&shared, values[0])?;
            shared.rt.set_default_device(device);
            Ok(Dynamic::UNIT)
        })
    });
    let shared = host.clone();
    raw(module, "current_device", 0, move |_, _| Ok(Dynamic::from(DeviceValue::from(shared.rt.default_device()))));
    let shared = host.clone();
    raw(module, "device", 1, move |context, values| -> Native {
        let context = context.expect("registered with a context");
        shared.call(&context, |_| {
            // Checks here whether the device exists; `"cuda"` means the current device when it is used.
            convert::device(&shared, values[0])?;
            Ok(Dynamic::from(DeviceValue(convert::spec(values[0])?)))
        })
    });
    let shared = host.clone();
    raw(module, "device", 2, move |context, values| -> Native {
        let context = context.expect("registered with a context");
        shared.call(&context, |_| numbered(&shared, values[0], values[1]))
    });
    let shared = host.clone();
    raw(module, "synchronize", 0, move |context, _| -> Native {
        let context = context.expect("registered with a context");
        shared.call(&context, |_| shared.writer.synchronize(&shared.rt)).map(|()| Dynamic::UNIT)
    });
    let shared = host.clone();
    raw(module, "synchronize", 1, move |context, values| -> Native {
        let context = context.expect("registered with a context");
        shared.call(&context, |_| wait_for(&shared, values[0])).map(|()| Dynamic::UNIT)
    });
}

/// `device("cuda", 1)`; with `()` as the index, no index.
fn numbered(host: &Host, kind: &Dynamic, index: &Dynamic) -> Result<Dynamic> {
    let (DeviceSpec::Cpu | DeviceSpec::CurrentCuda) = convert::spec(kind)? else {
        crate::fail!(VALUE, "`{}` has its index already", kind);
    };
    let spec = match (convert::spec(kind)?, index.as_int()) {
        (spec, _) if index.is_unit() => spec,
        (DeviceSpec::Cpu, Ok(0)) => DeviceSpec::Cpu,
        (DeviceSpec::Cpu, _) => {
            crate::fail!(UNKNOWN_DEVICE, "there is one device \"cpu\", with the index 0, not {index}")
        }
        _ => convert::spec(index)?,
    };
    let value = Dynamic::from(DeviceValue(spec));
    convert::device(host, &value)?;
    Ok(value)
}

/// `synchronize(x)`: a device, a stream or an event.
pub fn wait_for(host: &Host, value: &Dynamic) -> Result<()> {
    if let Some(stream) = value.read_lock::<StreamValue>() {
        return host.rt.synchronize_stream(&stream.0);
    }
    if let Some(event) = value.read_lock::<EventValue>() {
        return host.rt.synchronize_event(&event.0);
    }
    host.rt.synchronize_device(convert::device(host, value)?)
}
