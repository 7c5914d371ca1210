//! `m.state_dict()` and `m.load_state_dict(d)`: tensors by their paths, what `get_extra_state` of a module gives, and the
//! hooks around both.

use crate::base::code;
use crate::base::diag::{Diag, Result};
use crate::fail;
use crate::op::args::Arg;
use crate::script::bind::native::{flag, text};
use crate::script::bind::rows::Natives;
use crate::script::host::Host;
use crate::script::nn::containers::named_modules;
use crate::script::nn::hook_list::HookList;
use crate::script::nn::module_methods::{Member, MemberKind, check_known, in_context, keyed, members};
use crate::script::nn::sparse_parts;
use crate::script::tensor_api::hooks::closure_of;
use crate::script::values::calling;
use crate::script::values::module::module as module_of;
use crate::script::values::raise::Native;
use crate::script::values::sparse::Sparse;
use crate::script::values::type_names;
use crate::script::values::types::Tensor;
use crate::tensor::engine::Engine;
use crate::tensor::movement::{self, Target};
use rhai::{Array, Dynamic, FnPtr, Map, NativeCallContext};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The hooks, by the methods that register them, and what a closure is called with. Changed states are given back: maps
/// are values.
const HOOKS: [(&str, &str); 4] = [
    ("register_state_dict_pre_hook", "m.register_state_dict_pre_hook(|m, prefix, keep_vars| ..)"),
    ("register_state_dict_post_hook", "m.register_state_dict_post_hook(|m, state, prefix, local_metadata| ..)"),
    (
        "register_load_state_dict_pre_hook",
        "m.register_load_state_dict_pre_hook(|m, state, prefix, local_metadata, strict, missing, unexpected, errors| ..)",
    ),
    ("register_load_state_dict_post_hook", "m.register_load_state_dict_post_hook(|m, incompatible_keys| ..)"),
];

/// The field of a module that has its hooks.
const FIELD: &str = "_state_hooks";
/// The name of what a module adds to its state.
const EXTRA: &str = "_extra_state";

pub fn register(natives: &mut Natives, host: &Arc<Host>) {
    for (name, form) in HOOKS {
        keyed(natives, host, name, move |_, _, this, [hook]| {
            let module = module_of(this).expect("a module");
            let closure = closure_of(hook, form)?;
            let known = module.get(FIELD).and_then(|hooks| hooks.try_cast::<HookList>());
            let hooks = known.unwrap_or_default();
            module.set(FIELD, Dynamic::from(hooks.clone()));
            Ok(hooks.add(name, closure, false))
        });
    }
    in_context(natives, host, "state_dict", |host, context, this, [prefix, keep_vars]| {
        let (prefix, keep) = told(host, context, || Ok((text("prefix", prefix)?, flag("keep_vars", keep_vars)?)))?;
        state(host, context, this, &prefix, keep)
    });
    in_context(natives, host, "load_state_dict", |host, context, this, [state_dict, strict, assign]| {
        let (strict, assign) = told(host, context, || Ok((flag("strict", strict)?, flag("assign", assign)?)))?;
        load(host, context, this, state_dict, Way { strict, assign })
    });
}

type Raised<T> = std::result::Result<T, Box<rhai::EvalAltResult>>;

fn told<T>(host: &Host, context: &NativeCallContext, work: impl FnOnce() -> Result<T>) -> Raised<T> {
    work().map_err(|diag| host.raise(context, diag, ""))
}

/// A module with its path, a dot at its end unless it is the outermost one.
struct Part {
    prefix: String,
    module: Dynamic,
}

impl Part {
    fn hooks(&self, kind: &str) -> Vec<FnPtr> {
        let hooks = module_of(&self.module).and_then(|module| module.get(FIELD)?.try_cast::<HookList>());
        hooks.map_or_else(Vec::new, |hooks| hooks.of(kind))
    }

    fn closure(&self, name: &str) -> Option<FnPtr> {
        module_of(&self.module)?.get(name)?.try_cast::<FnPtr>()
    }

    fn extra(&self) -> String {
        format!("{}{EXTRA}", self.prefix)
    }
}

/// The modules that have a say in their state, outer ones first.
fn parts(this: &Dynamic, prefix: &str) -> Result<Vec<Part>> {
    let has = |module: &Dynamic| {
        let module = module_of(module).expect("a module");
        let fields = module.read();
        [FIELD, "get_extra_state", "set_extra_state"].iter().any(|name| fields.contains_key(*name))
    };
    let mut found = Vec::new();
    for (path, module) in named_modules(this, true)?.into_iter().filter(|(_, module)| has(module)) {
        let prefix = if path.is_empty() { prefix.to_string() } else { format!("{prefix}{path}.") };
        found.push(Part { prefix, module });
    }
    Ok(found)
}

fn metadata() -> Dynamic {
    Dynamic::from_map(crate::base::order::map([("version".into(), Dynamic::from_int(1))]))
}

fn state(host: &Arc<Host>, context: &NativeCallContext, this: &Dynamic, prefix: &str, keep: bool) -> Native {
    let parts = told(host, context, || check_known(this, 0).and_then(|()| parts(this, prefix)))?;
    for part in &parts {
        for hook in part.hooks("register_state_dict_pre_hook") {
            let _: Dynamic = calling::call(
                context,
                &hook,
                None,
                vec![part.module.clone(), part.prefix.clone().into(), keep.into()],
            )?;
        }
    }
    let members = told(host, context, || members(this))?;
    let engine = host.engine(context);
    let value = |tensor: &Tensor| if keep { tensor.clone() } else { engine.tensor(tensor.view()) };
    let entry = |member: &Member| {
        let held = match &member.sparse {
            Some(sparse) => Dynamic::from(sparse.clone()),
            None => Dynamic::from(value(&member.tensor)),
        };
        (format!("{prefix}{}", member.name).into(), held)
    };
    let stays = members.iter().filter(|member| member.kind != MemberKind::Transient);
    let mut state: Map = crate::base::order::map(stays.map(entry));
    for part in &parts {
        if let Some(closure) = part.closure("get_extra_state") {
            let extra = calling::call(context, &closure, Some(&mut part.module.clone()), vec![])?;
            state.insert(part.extra().into(), extra);
        }
    }
    let mut state = Dynamic::from_map(state);
    for part in parts.iter().rev() {
        for hook in part.hooks("register_state_dict_post_hook") {
            let given = [part.module.clone(), state.clone(), part.prefix.clone().into(), metadata()];
            let new: Dynamic = calling::call(context, &hook, None, given.into())?;
            if !new.is_unit() {
                state = new;
            }
        }
    }
    Ok(state)
}

/// How a state is loaded.
#[derive(Clone, Copy)]
struct Way {
    /// Names must be the same.
    strict: bool,
    /// The module gets the tensors of the state, instead of what they hold.
    assign: bool,
}

/// Names that the state lacks, and such that the module does not know.
struct Difference {
    missing: Vec<String>,
    unexpected: Vec<String>,
}

fn list(names: &[String]) -> Dynamic {
    names.iter().map(|name| name.clone().into()).collect::<Array>().into()
}

/// Loads a state, all or nothing.
fn load(host: &Arc<Host>, context: &NativeCallContext, this: &Dynamic, state: &Dynamic, way: Way) -> Native {
    let parts = told(host, context, || check_known(this, 0).and_then(|()| parts(this, "")))?;
    let mut state = state.flatten_clone();
    let mut errors = Array::new();
    for part in &parts {
        for hook in part.hooks("register_load_state_dict_pre_hook") {
            let empty = || Dynamic::from_array(Array::new());
            let prefix = part.prefix.clone().into();
            let given =
                [part.module.clone(), state.clone(), prefix, metadata(), way.strict.into(), empty(), empty(), empty()];
            let new: Dynamic = calling::call(context, &hook, None, given.into())?;
            if new.is_array() {
                errors.extend(new.into_array().unwrap_or_default());
            } else if !new.is_unit() {
                state = new;
            }
        }
    }
    let difference = told(host, context, || take(&mut host.engine(context), this, &state, &parts, &errors, way))?;
    for part in &parts {
        if let Some(closure) = part.closure("set_extra_state") {
            let extra = state.read_lock::<Map>().and_then(|state| state.get(part.extra().as_str()).cloned());
            if let Some(extra) = extra {
                let _: Dynamic = calling::call(context, &closure, Some(&mut part.module.clone()), vec![extra])?;
            }
        }
    }
    let mut keys = Dynamic::from_map(crate::base::order::map([
        ("missing_keys".into(), list(&difference.missing)),
        ("unexpected_keys".into(), list(&difference.unexpected)),
    ]));
    for part in parts.iter().rev() {
        for hook in part.hooks("register_load_state_dict_post_hook") {
            let new: Dynamic = calling::call(context, &hook, None, vec![part.module.clone(), keys.clone()])?;
            if !new.is_unit() {
                keys = new;
            }
        }
    }
    Ok(keys)
}

/// Takes the tensors of a state; what did not fit.
fn take(
    engine: &mut Engine,
    this: &Dynamic,
    state: &Dynamic,
    parts: &[Part],
    errors: &Array,
    way: Way,
) -> Result<Difference> {
    let Some(state) = state.read_lock::<Map>() else {
        fail!(ARGUMENT_TYPE, "a state is a map of tensors, not {}", type_names::of_value(state));
    };
    let own: Vec<Member> = members(this)?.into_iter().filter(|member| member.kind != MemberKind::Transient).collect();
    let named: BTreeMap<&str, &Member> =
        crate::base::order::map(own.iter().map(|member| (member.name.as_str(), member)));
    let difference = difference(&named, &state, parts);
    check(&difference, errors, way)?;
    let (mut taken, mut sparse) = (Vec::new(), BTreeMap::new());
    for (name, Member { tensor, sparse: old, .. }) in &named {
        let Some(value) = state.get(*name) else { continue };
        if let Some(old) = old {
            sparse.insert(name.to_string(), taken_sparse(name, old, value)?);
            continue;
        }
        let Some(given) = value.read_lock::<Tensor>().map(|given| given.clone()) else {
            fail!(ARGUMENT_TYPE, "`{name}` in the state is no tensor but {}", type_names::of_value(value));
        };
        if given.shape() != tensor.shape() {
            let (a, b) = (tensor.shape(), given.shape());
            fail!(SHAPE, "`{name}` has shape {:?} in the module and {:?} in the state", a.as_slice(), b.as_slice());
        }
        taken.push((tensor.clone(), given));
    }
    for (tensor, given) in taken {
        if way.assign {
            tensor.exchange_view(given.view(), given.0.made);
            continue;
        }
        let target = Target { device: Some(tensor.device()), ..Target::default() };
        let given = movement::to(engine, &given, target)?;
        engine.copy_into(&tensor.view(), &Arg::Tensor(engine.tensor(given.view())))?;
    }
    sparse_parts::change(this, &mut |name, old| {
        let Some(new) = sparse.get(name).filter(|_| !way.assign) else { return Ok(sparse.get(name).cloned()) };
        let (device, dtype) = (Some(old.values.device()), Some(old.values.dtype()));
        sparse_parts::moved(engine, new, Target { device, dtype, copy: true, ..Target::default() }).map(Some)
    })?;
    Ok(difference)
}

/// What a state has for a sparse tensor.
fn taken_sparse(name: &str, old: &Sparse, value: &Dynamic) -> Result<Sparse> {
    let Some(new) = value.read_lock::<Sparse>().map(|new| new.clone()) else {
        fail!(ARGUMENT_TYPE, "`{name}` is sparse in the module, and {} in the state", type_names::of_value(value));
    };
    if new.size != old.size || new.layout() != old.layout() {
        let (a, b) = (old.layout(), new.layout());
        fail!(SHAPE, "`{name}` has size {:?} ({a}) in the module and {:?} ({b}) in the state", old.size, new.size);
    }
    Ok(new)
}

fn difference(named: &BTreeMap<&str, &Member>, state: &Map, parts: &[Part]) -> Difference {
    let extras = |closure: &str| -> Vec<String> {
        parts.iter().filter(|part| part.closure(closure).is_some()).map(Part::extra).collect()
    };
    let (given, taken) = (extras("get_extra_state"), extras("set_extra_state"));
    let own = named.keys().map(|name| name.to_string());
    let missing = own.chain(given).filter(|name| !state.contains_key(name.as_str())).collect();
    let is_known = |name: &str| named.contains_key(name) || taken.iter().any(|extra| extra == name);
    let unexpected = state.keys().filter(|name| !is_known(name)).map(|name| name.to_string()).collect();
    Difference { missing, unexpected }
}

fn check(difference: &Difference, errors: &Array, way: Way) -> Result<()> {
    let Difference { missing, unexpected } = difference;
    let fits = missing.is_empty() && unexpected.is_empty();
    if errors.is_empty() && (fits || !way.strict) {
        return Ok(());
    }
    let mut diag = Diag::error(code::VALUE, "the state does not fit the module");
    if way.strict && !missing.is_empty() {
        diag = diag.note(format!("missing in the state: {}", missing.join(", ")));
    }
    if way.strict && !unexpected.is_empty() {
        diag = diag.note(format!("unknown to the module: {}", unexpected.join(", ")));
    }
    for error in errors {
        diag = diag.note(format!("a hook: {error}"));
    }
    Err(if way.strict && !fits { diag.help("`#{strict: false}` takes what fits") } else { diag })
}
