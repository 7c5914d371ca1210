//! The fields of a module as a script reads and writes them: `m.fc`, `m["fc"]`, `m[0]`, `m.get("fc")`, `"fc" in m`,
//! `m.keys()`. A property that a type does not have is asked of its indexer by Rhai, so that the indexers serve both.

use crate::base::code;
use crate::base::diag::{Diag, Result};
use crate::fail;
use crate::script::bind::apply::{Callee, apply, callee};
use crate::script::bind::rows::{Natives, raw};
use crate::script::host::Host;
use crate::script::host::methods::METHODS;
use crate::script::nn::module_methods::MemberKind;
use crate::script::values::calling;
use crate::script::values::module::{Computed, ModuleValue, holds_itself, is_computed, is_own, module};
use crate::script::values::panics::{GuardedCall, Place};
use crate::script::values::part;
use crate::script::values::raise::Native;
use crate::script::values::type_names;
use crate::script::values::types::Tensor;
use rhai::{Array, Dynamic, FnPtr, FuncRegistration, Identifier, ImmutableString, NativeCallContext, RhaiFunc};
use std::any::TypeId;
use std::sync::Arc;

pub fn register(natives: &mut Natives, host: &Arc<Host>) {
    indexers(natives, host);
    asked(natives, host);
    made(natives, host);
}

/// Fields by which the library knows a module.
const OWN: [&str; 8] = ["_buffers", "_flat", "_name", "_order", "_row", "_serial", "_steps", "_transient"];

/// Writes a field: all changes of fields that scripts make come here, or are made in place by the machine where the
/// value holds no module.
pub fn write(module: &ModuleValue, name: &str, value: Dynamic) -> Result<()> {
    if module.is_within(&value) {
        return Err(holds_itself());
    }
    if OWN.contains(&name) {
        fail!(VALUE, "the field `{name}` is the library's own");
    }
    if module.computed(name).is_some() {
        return Err(is_computed(name));
    }
    if name == "training" && !value.is_bool() {
        fail!(ARGUMENT_TYPE, "`training` is true or false, not {}", type_names::of_value(&value));
    }
    part::takes(&module.read(), name, &value)?;
    if !module.set(name, value) {
        fail!(VALUE, "the module is being read");
    }
    module.change(|fields| part::noted(fields, name));
    Ok(())
}

fn this(values: &[&mut Dynamic]) -> ModuleValue {
    module(values[0]).expect("registered for modules")
}

fn text(value: &Dynamic) -> ImmutableString {
    value.read_lock::<ImmutableString>().map(|name| name.clone()).unwrap_or_default()
}

fn indexers(natives: &mut Natives, host: &Arc<Host>) {
    let own = TypeId::of::<ModuleValue>();
    let get = GuardedCall::new(|context, values| -> Native {
        let context = context.expect("registered with a context");
        let (module, name) = (this(values), text(values[1]));
        let field = module.get(&name).ok_or_else(|| module.missing(&name, context.call_position()))?;
        valued(&context, &module, field)
    });
    let shared = host.clone();
    let set = GuardedCall::new(move |context, values| -> Native {
        let context = context.expect("registered with a context");
        let (module, name) = (this(values), text(values[1]));
        if let Some(setter) = module.setter(&name) {
            return calling::call(&context, &setter, Some(&mut Dynamic::from(module)), vec![values[2].flatten_clone()]);
        }
        let written = write(&module, &name, values[2].flatten_clone());
        written.map(|()| Dynamic::UNIT).map_err(|diag| shared.raise(&context, diag, ""))
    });
    let text_type = TypeId::of::<ImmutableString>();
    FuncRegistration::new_index_getter().place_shared_in(&mut natives.module, [own, text_type], &get);
    let types = [own, text_type, TypeId::of::<Dynamic>()];
    FuncRegistration::new_index_setter().place_shared_in(&mut natives.module, types, &set);

    let shared = host.clone();
    let layer = GuardedCall::new(move |context, values| -> Native {
        let context = context.expect("registered with a context");
        layer(&this(values), values[1].as_int().unwrap_or(0)).map_err(|diag| shared.raise(&context, diag, ""))
    });
    FuncRegistration::new_index_getter().place_shared_in(&mut natives.module, [own, TypeId::of::<i64>()], &layer);
    let shared = host.clone();
    let replace = GuardedCall::new(move |context, values| -> Native {
        let context = context.expect("registered with a context");
        let replaced = replace(&this(values), values[1].as_int().unwrap_or(0), values[2].flatten_clone());
        replaced.map(|()| Dynamic::UNIT).map_err(|diag| shared.raise(&context, diag, ""))
    });
    let types = [own, TypeId::of::<i64>(), TypeId::of::<Dynamic>()];
    FuncRegistration::new_index_setter().place_shared_in(&mut natives.module, types, &replace);
}

/// The value of a field: where it is computed, what the closure gives now.
fn valued(context: &NativeCallContext, module: &ModuleValue, field: Dynamic) -> Native {
    match field.read_lock::<Computed>().map(|computed| computed.get.clone()) {
        Some(closure) => calling::call(context, &closure, Some(&mut Dynamic::from(module.clone())), Vec::new()),
        None => Ok(field),
    }
}

/// `_computed(closure)`, a value for a field of a module, `_computed(closure, setter)`, one that can be written; `_registered(module, name, tensor, buffer)`, which makes
/// a tensor the last parameter or buffer of a module; `_is_buffer(module, name)`; `_is_parameter(x)`; `_as_parameter(x)`, a
/// tensor that is a parameter from now on; `_become(module, other)`, which gives a
/// module all fields of another.
fn made(natives: &mut Natives, host: &Arc<Host>) {
    for arity in 1..=2 {
        raw(natives, "_computed", arity, |_, values| -> Native {
            let set = values.get(1).and_then(|set| set.flatten_clone().try_cast::<FnPtr>());
            match values[0].clone().try_cast::<FnPtr>() {
                Some(get) => Ok(Dynamic::from(Computed { get, set })),
                None => Ok(values[0].flatten_clone()),
            }
        });
    }
    let shared = host.clone();
    raw(natives, "_become", 2, move |context, values| -> Native {
        let context = context.expect("registered with a context");
        let mut new = this(&values[1..]).read().clone();
        let written = this(values).change(|fields| {
            // Who holds the mode keeps it.
            if let Some(mode) = fields.remove("training") {
                new.insert("training".into(), mode);
            }
            std::mem::replace(fields, new)
        });
        // What was there is dropped outside the lock.
        match written {
            Some(_) => Ok(Dynamic::UNIT),
            None => Err(shared.raise(&context, Diag::error(code::VALUE, "the module is being read"), "")),
        }
    });
    raw(natives, "_is_parameter", 1, |_, values| -> Native {
        Ok(values[0].read_lock::<Tensor>().is_some_and(|tensor| part::is_parameter(&tensor)).into())
    });
    raw(natives, "_as_parameter", 1, |_, values| -> Native {
        if let Some(tensor) = values[0].read_lock::<Tensor>() {
            part::mark(&tensor);
        }
        Ok(values[0].flatten_clone())
    });
    raw(natives, "_is_buffer", 2, |_, values| -> Native {
        Ok(part::is_listed(&this(values).read(), part::BUFFERS, &text(values[1])).into())
    });
    let shared = host.clone();
    raw(natives, "_registered", 4, move |context, values| -> Native {
        let context = context.expect("registered with a context");
        let (module, name) = (this(values), text(values[1]));
        let is_buffer = values[3].as_bool().unwrap_or(false);
        let kind = if is_buffer { MemberKind::Buffer } else { MemberKind::Parameter };
        registered(&module, &name, values[2].flatten_clone(), kind)
            .map(|()| Dynamic::UNIT)
            .map_err(|diag| shared.raise(&context, diag, ""))
    });
}

/// Writes a field that becomes the last part of its module.
pub fn registered(module: &ModuleValue, name: &str, value: Dynamic, kind: MemberKind) -> Result<()> {
    let tensor = value.read_lock::<Tensor>().map(|tensor| tensor.clone());
    write(module, name, value)?;
    let is_buffer = kind != MemberKind::Parameter;
    if let Some(tensor) = tensor.filter(|_| !is_buffer) {
        part::mark(&tensor);
    }
    module.change(|fields| {
        part::list(fields, part::ORDER, name, true);
        part::list(fields, part::BUFFERS, name, is_buffer);
        part::list(fields, part::TRANSIENT, name, kind == MemberKind::Transient);
    });
    Ok(())
}

/// The layers of a container, the name of their field, and which of them an index means.
fn place(module: &ModuleValue, index: i64) -> Result<(Array, ImmutableString, usize)> {
    let layers = module.layers().and_then(|name| Some((module.get(&name)?.try_cast::<Array>()?, name)));
    let Some((layers, name)) = layers else {
        let diag = Diag::error(code::TYPE, "this module is no list of layers, and has nothing at an index");
        return Err(diag.help("a field is read by its name: `m.fc` or `m[\"fc\"]`"));
    };
    let at = if index < 0 { index + layers.len() as i64 } else { index };
    match usize::try_from(at).ok().filter(|at| *at < layers.len()) {
        Some(at) => Ok((layers, name, at)),
        None => fail!(INDEX, "layer {index} of {}: the first is 0, the last -1", layers.len()),
    }
}

/// `model[0]`.
fn layer(module: &ModuleValue, index: i64) -> Result<Dynamic> {
    if let Some(layer) = module.step(index).and_then(|name| module.get(&name)) {
        return Ok(layer);
    }
    place(module, index).map(|(mut layers, _, at)| layers.swap_remove(at))
}

/// `model[0] = nn::linear(2, 3)`.
fn replace(module: &ModuleValue, index: i64, value: Dynamic) -> Result<()> {
    if let Some(name) = module.step(index) {
        return write(module, &name, value);
    }
    let (mut layers, name, at) = place(module, index)?;
    part::follows(&layers[at], &value, &format!("[{index}]"))?;
    layers[at] = value;
    write(module, &name, layers.into())
}

/// Questions about fields. What begins with `_`, and the mode, is not listed.
fn asked(natives: &mut Natives, host: &Arc<Host>) {
    type List = fn((&str, &Dynamic)) -> Dynamic;
    let lists: [(&'static str, List); 3] = [
        ("keys", |(name, _)| name.into()),
        ("values", |(_, value)| value.flatten_clone()),
        ("items", |(name, value)| vec![name.into(), value.flatten_clone()].into()),
    ];
    for (name, one) in lists {
        let list = GuardedCall::new(move |context, values| -> Native {
            let context = context.expect("registered with a context");
            let module = this(values);
            let fields: Vec<(Identifier, Dynamic)> =
                module.read().iter().map(|(name, value)| (name.clone(), value.flatten_clone())).collect();
            let mut shown = Array::new();
            for (name, value) in fields.into_iter().filter(|(name, _)| !is_own(name)) {
                shown.push(one((name.as_str(), &valued(&context, &module, value)?)));
            }
            Ok(shown.into())
        });
        natives.place_on(TypeId::of::<ModuleValue>(), name, 1..=1, &list);
    }
    of_modules(natives, host, "contains", 2, |values| {
        let name = named(values[1], "in")?;
        Ok(this(values).read().contains_key(name.as_str()).into())
    });
    let shared = host.clone();
    let get = GuardedCall::new(move |context, values| -> Native {
        let context = context.expect("registered with a context");
        let name = named(values[1], "get").map_err(|diag| shared.raise(&context, diag, ""))?;
        let module = this(values);
        match module.get(&name) {
            Some(field) => valued(&context, &module, field),
            None => Ok(values.get(2).map_or(Dynamic::UNIT, |value| value.flatten_clone())),
        }
    });
    natives.place_on(TypeId::of::<ModuleValue>(), "get", 2..=3, &get);
    for name in ["remove", "pop"] {
        of_modules(natives, host, name, 2, move |values| {
            let module = this(values);
            if let (Some(at), "pop") = (crate::script::bind::convert::integer(values[1]), name) {
                let (mut layers, list, at) = place(&module, at)?;
                let taken = layers.remove(at);
                write(&module, &list, layers.into())?;
                return Ok(taken);
            }
            let field = named(values[1], name)?;
            let taken =
                if is_own(&field) { None } else { module.change(|fields| fields.remove(field.as_str())).flatten() };
            match taken {
                Some(value) => Ok(value),
                None => fail!(UNKNOWN_PROPERTY, "`{name}`: the module has no field `{field}`"),
            }
        });
    }
}

/// What Rhai calls for `m.name(..)` of a module: the closure or module in the field of that name, or else the
/// native that is found without this function.
pub fn called(name: &str) -> RhaiFunc {
    let name: ImmutableString = name.into();
    let call = move |context: Option<NativeCallContext>, values: &mut [&mut Dynamic]| -> Native {
        let context = context.expect("registered with a context");
        let field = module(values[0]).and_then(|module| module.get(&name));
        let Some(mut field) = field.filter(|field| callee(field).is_some()) else {
            let mut global = context.global_runtime_state().clone();
            global.lib.retain(|library| library.id() != Some(METHODS));
            let (engine, source, at) = (context.engine(), context.fn_source(), context.call_position());
            let plain = NativeCallContext::new_with_all_fields(engine, &name, source, &global, at);
            return plain.call_native_fn_raw(&name, true, values);
        };
        let Some((this, arguments)) = values.split_first_mut() else { return Ok(Dynamic::UNIT) };
        let arguments: Vec<Dynamic> = arguments.iter_mut().map(|value| value.take()).collect();
        match callee(&field) {
            Some(Callee::Closure(closure)) => calling::call(&context, &closure, Some(this), arguments),
            _ => apply(&context, &mut field, arguments).unwrap_or(Ok(Dynamic::UNIT)),
        }
    };
    RhaiFunc::Method { func: Arc::new(call), has_context: true, is_pure: true, is_volatile: true }
}

/// The name of a field, as a method gets it.
fn named(value: &Dynamic, method: &str) -> Result<ImmutableString> {
    match value.read_lock::<ImmutableString>() {
        Some(name) => Ok(name.clone()),
        None => fail!(ARGUMENT_TYPE, "`{method}`: a field's name is a string, not {}", type_names::of_value(value)),
    }
}

/// A method of modules alone: maps have their own of this name.
fn of_modules(
    natives: &mut Natives,
    host: &Arc<Host>,
    name: &'static str,
    count: usize,
    run: impl Fn(&[&mut Dynamic]) -> Result<Dynamic> + Send + Sync + 'static,
) {
    let shared = host.clone();
    let call = GuardedCall::new(move |context, values| -> Native {
        let context = context.expect("registered with a context");
        run(values).map_err(|diag| shared.raise(&context, diag, ""))
    });
    natives.place_on(TypeId::of::<ModuleValue>(), name, count..=count, &call);
}
