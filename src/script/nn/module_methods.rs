//! The methods of every module of `nn`: its fields are tensors, modules, arrays of them and closures; the methods here
//! walk them. Does not treat any layer specially.
//!
//! A tensor of a module is a parameter unless its name is in `_buffers`; in an array or a map, if it was made one. Names that begin with `_` are
//! skipped: `_order` lists names, `_flat` is one that adds nothing to the names below it. `training` holds a `cell`,
//! which a module shares with its replicas on other devices.

use crate::base::code;
use crate::base::device_id::DeviceId;
use crate::base::diag::{Diag, Result};
use crate::base::dtype::DType;
use crate::fail;
use crate::op::emit::Emit;
use crate::op::rows::pointwise::blend::ZERO;
use crate::script::bind::convert;
use crate::script::bind::native::{binder_of, counts, flag, text};
use crate::script::bind::properties;
use crate::script::bind::rows::Natives;
use crate::script::host::Host;
use crate::script::manual;
use crate::script::nn::assemble;
use crate::script::nn::sparse_parts;
use crate::script::values::module::{ModuleValue, fields};
use crate::script::values::panics::Place;
use crate::script::values::part;
use crate::script::values::raise::Native;
use crate::script::values::sparse::Sparse;
use crate::script::values::type_names;
use crate::script::values::types::{Cell, Tensor};
use crate::tensor::engine::Engine;
use crate::tensor::movement::{self, Target};
use rhai::{Array, Dynamic, FuncRegistration, ImmutableString, Map, NativeCallContext, RhaiFunc};
use std::any::TypeId;
use std::sync::Arc;

/// Bound: nesting of modules; also ends a map that contains itself through a shared variable.
pub const MAX_DEPTH: usize = 128;

/// A tensor of a module.
pub struct Member {
    pub name: String,
    /// Of a sparse one, its values.
    pub tensor: Tensor,
    pub kind: MemberKind,
    pub sparse: Option<Sparse>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum MemberKind {
    Parameter,
    Buffer,
    /// A buffer that no state holds.
    Transient,
}

/// All tensors of a module in order, including duplicates.
pub fn members(value: &Dynamic) -> Result<Vec<Member>> {
    let mut found = Vec::new();
    collect(value, "", MemberKind::Parameter, true, 0, &mut found)?;
    Ok(found)
}

/// The names of a module's parts: those in a known order, then later ones, by name.
pub fn names(map: &Map) -> Vec<ImmutableString> {
    let mut names: Vec<ImmutableString> = match map.get("_order").and_then(|names| names.read_lock::<Array>()) {
        Some(names) => names.iter().filter_map(|name| name.read_lock::<ImmutableString>().map(|n| n.clone())).collect(),
        None => Vec::new(),
    };
    names.retain(|name| map.contains_key(name.as_str()));
    let known = names.len();
    for name in map.keys().filter(|name| !name.starts_with('_')) {
        if !names[..known].iter().any(|listed| listed == name.as_str()) {
            names.push(name.as_str().into());
        }
    }
    names
}

/// Whether the parts below this name are named without it, as the layers of `sequential` are.
pub fn is_flat(map: &Map, name: &str) -> bool {
    map.get("_flat").and_then(|flat| flat.read_lock::<ImmutableString>().map(|flat| *flat == name)).unwrap_or(false)
}

/// What a tensor is that lies in a field of this name.
fn kind_of(map: &Map, name: &str, outside: MemberKind) -> MemberKind {
    match outside {
        MemberKind::Parameter if part::is_listed(map, part::TRANSIENT, name) => MemberKind::Transient,
        MemberKind::Parameter if part::is_listed(map, part::BUFFERS, name) => MemberKind::Buffer,
        outside => outside,
    }
}

/// A tensor, or a sparse one with its values.
fn tensor_of(value: &Dynamic) -> Option<(Tensor, Option<Sparse>)> {
    if let Some(tensor) = value.read_lock::<Tensor>() {
        return Some((tensor.clone(), None));
    }
    let sparse = value.read_lock::<Sparse>()?.clone();
    Some((sparse.values.clone(), Some(sparse)))
}

/// Sparse tensors are buffers.
fn member(name: String, tensor: Tensor, kind: MemberKind, sparse: Option<Sparse>) -> Result<Member> {
    let kind = match (&sparse, kind) {
        (Some(_), MemberKind::Parameter) => MemberKind::Buffer,
        _ => kind,
    };
    if sparse.is_some() && tensor.requires_grad() {
        return Err(part::sparse_parameter(&name));
    }
    Ok(Member { name, tensor, kind, sparse })
}

/// `recurse`: those of the modules inside, too.
fn collect(
    value: &Dynamic,
    name: &str,
    kind: MemberKind,
    recurse: bool,
    depth: usize,
    found: &mut Vec<Member>,
) -> Result<()> {
    if depth > MAX_DEPTH {
        fail!(VALUE, "modules are nested more than {MAX_DEPTH} deep");
    }
    if depth > 0 && !recurse && value.is::<ModuleValue>() {
        return Ok(());
    }
    let path = |part: &str| if name.is_empty() { part.to_string() } else { format!("{name}.{part}") };
    if let Some((tensor, sparse)) = tensor_of(value) {
        // In an array or a map, which may have grown since the module knows it.
        let kind = match kind {
            MemberKind::Parameter if sparse.is_none() && part::is_parameter(&tensor) => {
                part::mark(&tensor);
                kind
            }
            MemberKind::Parameter => MemberKind::Buffer,
            kind => kind,
        };
        found.push(member(name.to_string(), tensor, kind, sparse)?);
    } else if let Some(map) = fields(value) {
        // As in PyTorch: own parameters, own buffers, then child modules.
        let mut below = Vec::new();
        let mut own_buffers = Vec::new();
        for part in names(&map) {
            let Some(item) = map.get(part.as_str()) else { continue };
            let kind = kind_of(&map, &part, kind);
            match tensor_of(item) {
                None => below.push((part, kind)),
                Some((tensor, sparse)) => {
                    let new = member(path(&part), tensor, kind, sparse)?;
                    if new.is_buffer() { own_buffers.push(new) } else { found.push(new) }
                }
            }
        }
        found.append(&mut own_buffers);
        for (part, kind) in below {
            let path = if is_flat(&map, &part) { name.to_string() } else { path(&part) };
            collect(&map[part.as_str()], &path, kind, recurse, depth + 1, found)?;
        }
    } else if let Some(array) = value.read_lock::<Array>() {
        for (at, item) in array.iter().enumerate() {
            collect(item, &path(&at.to_string()), kind, recurse, depth + 1, found)?;
        }
    }
    Ok(())
}

/// The module and its descendants, each once.
fn inside(value: &Dynamic, depth: usize, found: &mut Array) -> Result<()> {
    if depth > MAX_DEPTH {
        fail!(VALUE, "modules are nested more than {MAX_DEPTH} deep");
    }
    if let Some(map) = fields(value) {
        if value.is::<ModuleValue>() {
            if found.iter().any(|known| is_same(known, value)) {
                return Ok(());
            }
            found.push(value.flatten_clone());
        }
        for name in names(&map) {
            inside(&map[name.as_str()], depth + 1, found)?;
        }
    } else if let Some(array) = value.read_lock::<Array>() {
        for item in array.iter() {
            inside(item, depth + 1, found)?;
        }
    }
    Ok(())
}

/// Whether two values are one module.
pub fn is_same(a: &Dynamic, b: &Dynamic) -> bool {
    a.read_lock::<ModuleValue>().zip(b.read_lock::<ModuleValue>()).is_some_and(|(a, b)| a.same(&b))
}

/// An error where a layer below has not seen an input yet, which will tell how large its tensors are.
pub fn check_known(value: &Dynamic, depth: usize) -> Result<()> {
    if depth > MAX_DEPTH {
        fail!(VALUE, "modules are nested more than {MAX_DEPTH} deep");
    }
    if let Some(map) = fields(value) {
        if map.contains_key("_lazy") {
            let kind = map.get("_name").map(|name| name.to_string()).unwrap_or_default();
            let diag = Diag::error(code::VALUE, format!("`{kind}` has no tensors before it has seen an input"));
            return Err(diag.help("call the module once with an input such as it will get: `model(x)`"));
        }
        map.values().try_for_each(|item| check_known(item, depth + 1))
    } else if let Some(array) = value.read_lock::<Array>() {
        array.iter().try_for_each(|item| check_known(item, depth + 1))
    } else {
        Ok(())
    }
}

/// The parameters or the buffers, without duplicate tensors.
fn distinct(value: &Dynamic, buffers: bool) -> Result<Vec<Member>> {
    Ok(once(members(value)?.into_iter().filter(|member| member.is_buffer() == buffers).collect()))
}

/// The members without duplicate tensors.
fn once(all: Vec<Member>) -> Vec<Member> {
    let mut kept: Vec<Member> = Vec::with_capacity(all.len());
    let mut seen = std::collections::HashSet::new();
    for member in all {
        // Sparse tensors of several forms may share their values.
        let form = member.sparse.as_ref().map(Sparse::layout);
        if seen.insert((Arc::as_ptr(&member.tensor.0), form)) {
            kept.push(member);
        }
    }
    kept
}

impl Member {
    pub fn is_buffer(&self) -> bool {
        self.kind != MemberKind::Parameter
    }

    /// The tensor as the script has it.
    pub fn value(self) -> Dynamic {
        match self.sparse {
            Some(sparse) => Dynamic::from(sparse),
            None => Dynamic::from(self.tensor),
        }
    }
}

/// The error of `m.train(x)`.
#[cold]
fn no_mode(value: &Dynamic) -> Box<Diag> {
    Diag::error(code::ARGUMENT_TYPE, format!("true or false is expected, not {}", type_names::of_value(value)))
}

/// Sets every `training` cell below.
fn set_training(value: &Dynamic, on: bool, depth: usize) -> Result<()> {
    if depth > MAX_DEPTH {
        fail!(VALUE, "modules are nested more than {MAX_DEPTH} deep");
    }
    if let Some(map) = fields(value) {
        if let Some(cell) = map.get("training").and_then(|cell| cell.read_lock::<Cell>().map(|cell| cell.clone())) {
            cell.set(Dynamic::from_bool(on));
        }
        for (_, item) in map.iter().filter(|(part, _)| !part.starts_with('_')) {
            set_training(item, on, depth + 1)?;
        }
    } else if let Some(array) = value.read_lock::<Array>() {
        for item in array.iter() {
            set_training(item, on, depth + 1)?;
        }
    }
    Ok(())
}

/// Registers a method of modules.
pub fn method(
    module: &mut Natives,
    host: &Arc<Host>,
    name: &'static str,
    arity: usize,
    run: impl Fn(&Host, &NativeCallContext, &Dynamic, &mut [&mut Dynamic]) -> Result<Dynamic> + Send + Sync + 'static,
) {
    let shared = host.clone();
    raising(module, host, name, arity, move |context, this, rest| {
        run(&shared, context, this, rest).map_err(|diag| shared.raise(context, diag, ""))
    });
}

/// The same of one whose closures of the script may fail.
fn raising(
    module: &mut Natives,
    host: &Arc<Host>,
    name: &'static str,
    arity: usize,
    run: impl Fn(&NativeCallContext, &Dynamic, &mut [&mut Dynamic]) -> Native + Send + Sync + 'static,
) {
    let host = host.clone();
    module.note(name);
    let call = move |context: Option<NativeCallContext>, values: &mut [&mut Dynamic]| -> Native {
        let context = context.expect("registered with a context");
        let Some((first, rest)) = values.split_first_mut() else { return Ok(Dynamic::UNIT) };
        // A map is a value.
        if name == "copy" && first.is_map() {
            return Ok(first.flatten_clone());
        }
        if first.is::<ModuleValue>() {
            return run(&context, first, rest);
        }
        let diag = Diag::error(code::ARGUMENT_TYPE, format!("`{name}` belongs to modules; this map is none"))
            .help("make a module of a map with `nn::module(#{...})`");
        Err(host.raise(&context, diag, ""))
    };
    let mut types = vec![TypeId::of::<Dynamic>(); arity];
    let func = RhaiFunc::Method { func: Arc::new(call), has_context: true, is_pure: true, is_volatile: true };
    // Of maps for the message.
    for kind in [TypeId::of::<ModuleValue>(), TypeId::of::<Map>()] {
        types[0] = kind;
        let own = FuncRegistration::new(name).in_global_namespace();
        own.place_raw_in(&mut module.module, &types, func.clone());
    }
}

pub fn register(module: &mut Natives, host: &Arc<Host>) {
    listing(module, host);
    inner(module, host);
    moving(module, host);
    modes(module, host);
}

/// Registers a method of modules with keywords, as the manual describes it.
pub fn keyed<const N: usize>(
    natives: &mut Natives,
    host: &Arc<Host>,
    name: &'static str,
    run: impl Fn(&Arc<Host>, &NativeCallContext, &Dynamic, [&Dynamic; N]) -> Result<Dynamic> + Send + Sync + 'static,
) {
    in_context(natives, host, name, move |host, context, this, values| {
        run(host, context, this, values).map_err(|diag| host.raise(context, diag, ""))
    });
}

/// The same of one that calls closures of the script.
pub fn in_context<const N: usize>(
    natives: &mut Natives,
    host: &Arc<Host>,
    name: &'static str,
    run: impl Fn(&Arc<Host>, &NativeCallContext, &Dynamic, [&Dynamic; N]) -> Native + Send + Sync + 'static,
) {
    place_keyed(natives, host, name, Box::new(run));
}

type Keyed<const N: usize> = dyn Fn(&Arc<Host>, &NativeCallContext, &Dynamic, [&Dynamic; N]) -> Native + Send + Sync;

// Compiled once for each number of parameters.
fn place_keyed<const N: usize>(natives: &mut Natives, host: &Arc<Host>, name: &'static str, run: Box<Keyed<N>>) {
    let binder = binder_of(manual::Form::Of("model"), name, N);
    let (counts, shared) = (counts(&binder, 1), host.clone());
    let run = Arc::new(move |context: &NativeCallContext, this: &Dynamic, rest: &[&mut Dynamic]| -> Native {
        let keywords = binder.keywords(rest);
        match binder.borrow(rest, keywords.as_ref()) {
            Ok(values) => run(&shared, context, this, values),
            Err(diag) => Err(shared.raise(context, diag, "")),
        }
    });
    for arity in counts {
        let run = run.clone();
        raising(natives, host, name, arity, move |context, this, rest| run(context, this, rest));
    }
}

fn listing(module: &mut Natives, host: &Arc<Host>) {
    for (plain, named, buffers) in [("parameters", "named_parameters", false), ("buffers", "named_buffers", true)] {
        keyed(module, host, plain, move |_, _, this, [recurse]| {
            let own = own(this, "", buffers, flag("recurse", recurse)?)?;
            Ok(once(own).into_iter().map(Member::value).collect::<Array>().into())
        });
        keyed(module, host, named, move |_, _, this, [prefix, recurse, remove_duplicate]| {
            let all = own(this, &text("prefix", prefix)?, buffers, flag("recurse", recurse)?)?;
            let all = if flag("remove_duplicate", remove_duplicate)? { once(all) } else { all };
            let pair = |member: Member| Dynamic::from(vec![member.name.as_str().into(), member.value()] as Array);
            Ok(all.into_iter().map(pair).collect::<Array>().into())
        });
    }
}

/// The parameters or the buffers of a module, with those of the modules inside if `recurse`.
fn own(this: &Dynamic, prefix: &str, buffers: bool, recurse: bool) -> Result<Vec<Member>> {
    check_known(this, 0)?;
    let mut found = Vec::new();
    collect(this, prefix, MemberKind::Parameter, recurse, 0, &mut found)?;
    found.retain(|member| member.is_buffer() == buffers);
    Ok(found)
}

fn inner(module: &mut Natives, host: &Arc<Host>) {
    method(module, host, "modules", 1, |_, _, this, _| {
        let mut found = Array::new();
        inside(this, 0, &mut found)?;
        Ok(found.into())
    });
    method(module, host, "copy", 1, |host, context, this, _| assemble::copy(&mut host.engine(context), this));
}

fn moving(module: &mut Natives, host: &Arc<Host>) {
    for arity in 2..=4 {
        method(module, host, "to", arity, |host, context, this, rest| {
            let mut found = Target::default();
            for value in rest.iter() {
                match value.read_lock::<Map>() {
                    Some(map) => properties::to_keywords(host, &map, &mut found)?,
                    None => properties::to_argument(host, value, &mut found)?,
                }
            }
            relocate(&mut host.engine(context), this, found)
        });
    }
    // What a module's tensors hold afterwards is left open: that which they held is as good as anything.
    keyed(module, host, "to_empty", |host, context, this, [device, recurse]| {
        flag("recurse", recurse)?;
        let device = convert::device(host, device)?;
        relocate(&mut host.engine(context), this, Target { device: Some(device), ..Target::default() })
    });
    keyed(module, host, "type", |host, context, this, [dst_type]| {
        let dtype = convert::dtype(dst_type)?;
        relocate(&mut host.engine(context), this, Target { dtype: Some(dtype), ..Target::default() })
    });
    for arity in 1..=2 {
        method(module, host, "cuda", arity, |host, context, this, rest| {
            let device = match rest.first() {
                Some(value) => convert::device(host, value)?,
                None => host.rt.current_cuda()?,
            };
            relocate(&mut host.engine(context), this, Target { device: Some(device), ..Target::default() })
        });
    }
    method(module, host, "cpu", 1, |host, context, this, _| {
        let found = Target { device: Some(DeviceId::Cpu), ..Target::default() };
        relocate(&mut host.engine(context), this, found)
    });
    let casts = [("half", DType::F16), ("bfloat16", DType::BF16), ("float", DType::F32), ("double", DType::F64)];
    for (name, dtype) in casts {
        method(module, host, name, 1, move |host, context, this, _| {
            relocate(&mut host.engine(context), this, Target { dtype: Some(dtype), ..Target::default() })
        });
    }
}

/// Moves every tensor in place, including gradients; a dtype applies to floating-point tensors only. Returns the
/// module.
fn relocate(engine: &mut Engine, this: &Dynamic, target: Target) -> Result<Dynamic> {
    if target.dtype.is_some_and(|dtype| !dtype.is_inexact()) {
        fail!(DTYPE, "a module is moved to a floating-point or complex dtype only");
    }
    let all = distinct(this, false)?.into_iter().chain(distinct(this, true)?);
    for Member { tensor, .. } in all.filter(|member| member.sparse.is_none()) {
        // As in PyTorch an order of memory is for the tensors that have one.
        let format = target.format.filter(|_| matches!(tensor.ndim(), 4 | 5));
        let target = Target { dtype: target.dtype.filter(|_| tensor.dtype().is_float()), format, ..target };
        let grad = tensor.0.auto.lock().grad.clone();
        for slot in std::iter::once(tensor).chain(grad) {
            let plain = engine.tensor(slot.view());
            let moved = engine.without_recording(|engine| movement::to(engine, &plain, target))?;
            slot.exchange_view(moved.view(), moved.0.made);
        }
    }
    sparse_parts::change(this, &mut |_, s| sparse_parts::moved(engine, s, target).map(Some))?;
    Ok(this.clone())
}

/// `train()` and `eval()`; the source pass renames the second to `__evaluate`.
fn modes(module: &mut Natives, host: &Arc<Host>) {
    for (name, most) in [("train", 2), ("__evaluate", 1)] {
        for arity in 1..=most {
            method(module, host, name, arity, move |_, _, this, rest| {
                let on = match rest.first() {
                    Some(value) => value.as_bool().map_err(|_| no_mode(value))?,
                    None => name == "train",
                };
                set_training(this, on, 0)?;
                Ok(this.clone())
            });
        }
    }
    keyed(module, host, "zero_grad", |host, context, this, [set_to_none]| {
        let forgets = flag("set_to_none", set_to_none)?;
        let mut engine = host.engine(context);
        for member in members(this)? {
            let kept = member.tensor.0.auto.lock().grad.clone().filter(|_| !forgets);
            match kept {
                Some(g) => {
                    let g = engine.detach(&g);
                    engine.apply_inplace(&ZERO, crate::args![&g])?;
                }
                None => member.tensor.drop_grad(),
            }
        }
        Ok(Dynamic::UNIT)
    });
    for arity in 1..=2 {
        method(module, host, "requires_grad_", arity, |_, _, this, rest| {
            check_known(this, 0)?;
            let on = rest.first().is_none_or(|value| value.as_bool().unwrap_or(true));
            for member in distinct(this, false)? {
                properties::set_requires_grad(&member.tensor, on)?;
            }
            Ok(this.clone())
        });
    }
}

/// The parameters or the buffers of a module with their names, without duplicates.
pub fn named(value: &Dynamic, buffers: bool) -> Result<Vec<(String, Tensor)>> {
    check_known(value, 0)?;
    let all = distinct(value, buffers)?;
    if let Some(sparse) = all.iter().find(|member| member.sparse.is_some()) {
        fail!(ARGUMENT_TYPE, "`{}` is a sparse tensor, and dense ones are expected", sparse.name);
    }
    Ok(all.into_iter().map(|member| (member.name, member.tensor)).collect())
}
