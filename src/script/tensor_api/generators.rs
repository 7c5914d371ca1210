//! `generator()` and its methods, as those of PyTorch's `Generator`.

use crate::base::code;
use crate::base::device_id::DeviceId;
use crate::base::diag::{Diag, Result};
use crate::base::rng::Generator;
use crate::script::bind::convert;
use crate::script::bind::native::{given, native};
use crate::script::bind::rows::Natives;
use crate::script::host::Host;
use crate::script::tensor_api::settings;
use crate::script::values::generator::GeneratorValue;
use crate::script::values::panics::{GuardedCall, Place};
use crate::script::values::raise::Native;
use crate::script::values::type_names;
use crate::script::values::types::DeviceValue;
use crate::tensor::engine::Engine;
use rhai::{Dynamic, FuncRegistration, NativeCallContext};
use std::any::TypeId;
use std::sync::Arc;

pub fn register(module: &mut Natives, host: &Arc<Host>) {
    native(module, host, "generator", |host, _, [device]| {
        let device = given(device).map_or(Ok(DeviceId::Cpu), |device| convert::device(host, device))?;
        Ok(Dynamic::from(GeneratorValue::new(device)))
    });
    module.note("device");
    FuncRegistration::new("get$device")
        .in_global_namespace()
        .place_in(&mut module.module, |generator: GeneratorValue| DeviceValue::from(generator.device()));
    method(module, host, "manual_seed", 1, |_, _, generator, values| {
        let Some(seed) = convert::integer(&values[0]) else {
            let text = format!("a seed is an integer, not {}", type_names::of_value(&values[0]));
            return Err(Diag::error(code::ARGUMENT_TYPE, text));
        };
        generator.set(Generator::new(seed as u64));
        Ok(Dynamic::from(generator.clone()))
    });
    method(module, host, "initial_seed", 0, |_, _, generator, _| Ok(Dynamic::from_int(generator.state().seed as i64)));
    method(module, host, "seed", 0, |_, _, generator, _| {
        let seed = settings::unpredictable();
        generator.set(Generator::new(seed));
        Ok(Dynamic::from_int(seed as i64))
    });
    method(module, host, "get_state", 0, |host, engine, generator, _| {
        settings::as_tensor(host, engine, generator.state())
    });
    method(module, host, "set_state", 1, |host, _, generator, values| {
        generator.set(settings::of_tensor(host, &values[0], "set_state", "get_state")?);
        Ok(Dynamic::from(generator.clone()))
    });
    method(module, host, "clone_state", 0, |_, _, generator, _| {
        Ok(Dynamic::from(GeneratorValue::at(generator.device(), generator.state())))
    });
}

/// A method of generators with so many arguments.
fn method(
    module: &mut Natives,
    host: &Arc<Host>,
    name: &'static str,
    arguments: usize,
    body: fn(&Host, &mut Engine, &GeneratorValue, &[Dynamic]) -> Result<Dynamic>,
) {
    let shared = host.clone();
    let call = move |context: Option<NativeCallContext>, values: &mut [&mut Dynamic]| -> Native {
        let context = context.expect("registered with a context");
        let generator = values[0].read_lock::<GeneratorValue>().map(|generator| generator.clone());
        let generator = generator.expect("registered of generators");
        let arguments: Vec<Dynamic> = values[1..].iter().map(|value| value.flatten_clone()).collect();
        shared.call(&context, |engine| body(&shared, engine, &generator, &arguments))
    };
    module.note(name);
    let own = TypeId::of::<GeneratorValue>();
    module.place_on(own, name, arguments + 1..=arguments + 1, &GuardedCall::new(call));
}
