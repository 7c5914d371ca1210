//! The host's part of `nn::data_parallel`: splits inputs over several devices, replicates a module, and gathers
//! results. All of it consists of recorded operations, so that gradients flow back to the one module. Nothing here
//! waits: the devices' queues overlap the work.

use crate::args;
use crate::base::code;
use crate::base::device_id::DeviceId;
use crate::base::diag::{Diag, Result};
use crate::fail;
use crate::op::args::Arg;
use crate::op::emit::Emit;
use crate::op::rows::creation::spread;
use crate::op::rows::pointwise::arith;
use crate::op::rows::shape::{join, split, view};
use crate::op::tensor::View;
use crate::script::bind::convert;
use crate::script::bind::convert::integer;
use crate::script::bind::rows::{Natives, raw};
use crate::script::host::Host;
use crate::script::nn::module_methods::MAX_DEPTH;
use crate::script::nn::sparse_parts;
use crate::script::values::module::{ModuleValue, fields};
use crate::script::values::raise::Native;
use crate::script::values::sparse::Sparse;
use crate::script::values::type_names;
use crate::script::values::types::Tensor;
use crate::tensor::engine::Engine;
use crate::tensor::movement::Target;
use parking_lot::Mutex;
use rhai::{Array, Dynamic, Map};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Copies of a module's tensors on other devices, cached between forwards: a tensor is copied again only after it, or
/// its copy, was written. Clones share them.
#[derive(Clone, Default)]
pub struct SentTensors(Arc<Mutex<Vec<CachedCopy>>>);

struct CachedCopy {
    of: Arc<View>,
    version: u32,
    copy: Tensor,
    copy_version: u32,
    /// Used by the current forward.
    is_used: bool,
}

fn version(view: &View) -> u32 {
    view.buffer.version.load(Ordering::Acquire)
}

impl SentTensors {
    /// The tensor's values on another device, outside the gradient graph.
    fn copy(&self, e: &mut Engine, tensor: &Tensor, device: DeviceId) -> Result<Tensor> {
        let view = tensor.view();
        if view.buffer.device == device {
            return Ok(tensor.clone());
        }
        let is_it = |cached: &CachedCopy| {
            let same = Arc::ptr_eq(&cached.of.buffer, &view.buffer) && cached.of.layout == view.layout;
            same && cached.of.dtype == view.dtype && cached.copy.device() == device
        };
        let mut all = self.0.lock();
        let known = all.iter().position(is_it);
        if let Some(at) = known {
            let cached = &mut all[at];
            cached.is_used = true;
            if cached.version == version(&view) && cached.copy_version == version(&cached.copy.view()) {
                return Ok(cached.copy.clone());
            }
        }
        let copy = e.without_recording(|e| e.call_row(&arith::MOVE, args![tensor, device, tensor.dtype()]))?;
        let copy_version = version(&copy.view());
        let cached = CachedCopy { version: version(&view), of: view, copy: copy.clone(), copy_version, is_used: true };
        match known {
            Some(at) => all[at] = cached,
            None => all.push(cached),
        }
        Ok(copy)
    }

    /// Drops copies that the last forward did not use.
    fn forget_unused(&self) {
        self.0.lock().retain_mut(|cached| std::mem::take(&mut cached.is_used));
    }
}

/// `_scatter(x, devices, dim)`, `_sent()`, `_replicate(module, devices, sent)`, `_gather(results, device, dim)`.
pub fn register(module: &mut Natives, host: &Arc<Host>) {
    let shared = host.clone();
    raw(module, "_scatter", 3, move |context, values| -> Native {
        let context = context.expect("registered with a context");
        shared.call(&context, |e| {
            let devices = devices(&shared, values[1])?;
            let parts = scatter(e, values[0], &devices, dim(values[2])?, 0)?;
            Ok(parts.into_iter().collect::<Array>().into())
        })
    });
    let shared = host.clone();
    raw(module, "_replicate", 3, move |context, values| -> Native {
        let context = context.expect("registered with a context");
        shared.call(&context, |e| {
            let devices = devices(&shared, values[1])?;
            check_home(values[0], devices[0], 0)?;
            let sent = values[2].read_lock::<SentTensors>().map(|sent| sent.clone()).unwrap_or_default();
            let mut spread = Spread { devices: &devices, sent: &sent, done: Vec::new() };
            let all = (0..devices.len()).map(|at| spread.replica(e, values[0], at, 0)).collect::<Result<Array>>()?;
            sent.forget_unused();
            Ok(all.into())
        })
    });
    raw(module, "_sent", 0, |_, _| Ok(Dynamic::from(SentTensors::default())));
    let shared = host.clone();
    raw(module, "_gather", 3, move |context, values| -> Native {
        let context = context.expect("registered with a context");
        shared.call(&context, |e| {
            let device = convert::device(&shared, values[1])?;
            let Some(results) = values[0].read_lock::<Array>().map(|list| list.clone()) else {
                fail!(ARGUMENT_TYPE, "an array of results is expected, not {}", type_names::of_value(values[0]));
            };
            gather(e, results, device, dim(values[2])?, 0)
        })
    });
}

fn dim(value: &Dynamic) -> Result<i64> {
    let not = |_| Diag::error(code::ARGUMENT_TYPE, format!("`dim` is an integer, not {}", type_names::of_value(value)));
    integer(value).ok_or(()).map_err(not)
}

/// At least one device, without duplicates.
fn devices(host: &Host, value: &Dynamic) -> Result<Vec<DeviceId>> {
    let Some(list) = value.read_lock::<Array>() else {
        fail!(ARGUMENT_TYPE, "`device_ids` is an array of devices, not {}", type_names::of_value(value));
    };
    let devices = list.iter().map(|device| convert::device(host, device)).collect::<Result<Vec<_>>>()?;
    if devices.is_empty() {
        fail!(VALUE, "`device_ids` names no device");
    }
    if let Some(twice) = devices.iter().enumerate().find(|(at, device)| devices[..*at].contains(device)) {
        fail!(VALUE, "`device_ids` names {} twice", twice.1);
    }
    Ok(devices)
}

fn moved(e: &mut Engine, x: &Tensor, device: DeviceId) -> Result<Tensor> {
    if x.device() == device { Ok(x.clone()) } else { e.call_row(&arith::MOVE, args![x, device, x.dtype()]) }
}

fn too_deep<T>() -> Result<T> {
    fail!(VALUE, "values are nested more than {MAX_DEPTH} deep")
}

/// One value for each device that gets a part: tensors are split along `dim`, also inside arrays and maps; other
/// values are passed unchanged.
fn scatter(e: &mut Engine, value: &Dynamic, devices: &[DeviceId], dim: i64, depth: usize) -> Result<Vec<Dynamic>> {
    if depth > MAX_DEPTH {
        return too_deep();
    }
    if value.is::<Sparse>() {
        fail!(ARGUMENT_TYPE, "a sparse tensor cannot be split over devices; a module may hold it as a buffer");
    }
    if let Some(x) = value.read_lock::<Tensor>().map(|x| x.clone()) {
        let pieces = Emit::apply(e, &split::CHUNK, args![&x, devices.len() as i64, dim])?;
        let placed = pieces.iter().zip(devices).map(|(piece, &device)| moved(e, piece, device).map(Dynamic::from));
        return placed.collect();
    }
    let of = |e: &mut Engine, item: &Dynamic| scatter(e, item, devices, dim, depth + 1);
    if let Some(map) = value.read_lock::<Map>().map(|map| map.clone()) {
        let mut parts: Vec<Map> = vec![Map::new(); devices.len()];
        let mut count = devices.len();
        for (name, item) in &map {
            let pieces = of(e, item)?;
            count = count.min(pieces.len());
            parts.iter_mut().zip(pieces).for_each(|(part, piece)| _ = part.insert(name.clone(), piece));
        }
        return Ok(parts.into_iter().take(count).map(Dynamic::from).collect());
    }
    if let Some(list) = value.read_lock::<Array>().map(|list| list.clone()) {
        let mut parts: Vec<Array> = vec![Array::new(); devices.len()];
        let mut count = devices.len();
        for item in &list {
            let pieces = of(e, item)?;
            count = count.min(pieces.len());
            parts.iter_mut().zip(pieces).for_each(|(part, piece)| part.push(piece));
        }
        return Ok(parts.into_iter().take(count).map(Dynamic::from).collect());
    }
    Ok(vec![value.flatten_clone(); devices.len()])
}

/// The module's tensors must be on the device of the first replica, which is the module itself.
fn check_home(value: &Dynamic, home: DeviceId, depth: usize) -> Result<()> {
    if depth > MAX_DEPTH {
        return too_deep();
    }
    let tensor = value.read_lock::<Tensor>().map(|tensor| tensor.clone());
    if let Some(tensor) = tensor.or_else(|| value.read_lock::<Sparse>().map(|s| s.values.clone())) {
        if tensor.device() != home {
            let text = format!("a tensor of the module is on {}, the first device is {home}", tensor.device());
            return Err(Diag::error(code::DEVICE_MISMATCH, text).help(format!("move the module: `.to(\"{home}\")`")));
        }
    } else if let Some(map) = fields(value) {
        map.values().try_for_each(|item| check_home(item, home, depth + 1))?;
    } else if let Some(list) = value.read_lock::<Array>() {
        list.iter().try_for_each(|item| check_home(item, home, depth + 1))?;
    }
    Ok(())
}

/// A module on several devices.
struct Spread<'a> {
    devices: &'a [DeviceId],
    sent: &'a SentTensors,
    /// Tensors of the module with their copies on each device: a tensor that occurs twice stays one.
    done: Vec<(Tensor, Vec<Tensor>)>,
}

impl Spread<'_> {
    /// The module with its tensors on device `at`. Mode and settings are shared.
    fn replica(&mut self, e: &mut Engine, value: &Dynamic, at: usize, depth: usize) -> Result<Dynamic> {
        if depth > MAX_DEPTH {
            return too_deep();
        }
        if let Some(tensor) = value.read_lock::<Tensor>().map(|tensor| tensor.clone()) {
            return Ok(Dynamic::from(self.tensor(e, &tensor, at)?));
        }
        if let Some(s) = value.read_lock::<Sparse>().map(|s| s.clone()) {
            let target = Target { device: Some(self.devices[at]), ..Target::default() };
            return sparse_parts::moved(e, &s, target).map(Dynamic::from);
        }
        if let Some(map) = fields(value).map(|map| map.clone()) {
            let item = |(name, item)| -> Result<_> { Ok((name, self.replica(e, &item, at, depth + 1)?)) };
            let new = crate::base::order::try_map(map.into_iter().map(item))?;
            return Ok(match value.is::<ModuleValue>() {
                true => Dynamic::from(ModuleValue::new(new)),
                false => new.into(),
            });
        }
        if let Some(list) = value.read_lock::<Array>().map(|list| list.clone()) {
            let new: Result<Array> = list.iter().map(|item| self.replica(e, item, at, depth + 1)).collect();
            return Ok(new?.into());
        }
        Ok(value.flatten_clone())
    }

    fn tensor(&mut self, e: &mut Engine, tensor: &Tensor, at: usize) -> Result<Tensor> {
        if let Some((_, all)) = self.done.iter().find(|(of, _)| of.same(tensor)) {
            return Ok(all[at].clone());
        }
        let copies: Vec<Tensor> =
            self.devices[1..].iter().map(|&device| self.sent.copy(e, tensor, device)).collect::<Result<_>>()?;
        let all = if tensor.requires_grad() && e.rt.grad_enabled() && !copies.is_empty() {
            Emit::apply(e, &spread::SPREAD, args![tensor, Arg::Tensors(copies)])?
        } else {
            std::iter::once(tensor.clone()).chain(copies).collect()
        };
        self.done.push((tensor.clone(), all));
        Ok(self.done[self.done.len() - 1].1[at].clone())
    }
}

/// Gathers results on one device: tensors are joined along `dim` (numbers become a vector, as in PyTorch), also
/// inside arrays and maps.
fn gather(e: &mut Engine, results: Array, device: DeviceId, dim: i64, depth: usize) -> Result<Dynamic> {
    if depth > MAX_DEPTH {
        return too_deep();
    }
    let Some(first) = results.first() else { return Ok(Dynamic::UNIT) };
    if first.read_lock::<Tensor>().is_some() {
        let mut parts = Vec::new();
        for result in &results {
            let Some(part) = result.read_lock::<Tensor>().map(|part| part.clone()) else { return Err(unlike()) };
            let part = moved(e, &part, device)?;
            parts.push(if part.ndim() == 0 { e.call_row(&view::UNSQUEEZE, args![&part, 0])? } else { part });
        }
        let joined = e.call_row(&join::CAT, args![Arg::Tensors(parts), dim])?;
        return Ok(Dynamic::from(joined));
    }
    if let Some(map) = first.read_lock::<Map>().map(|map| map.clone()) {
        let size = |result: &Dynamic| result.read_lock::<Map>().map(|map| map.len());
        if results.iter().any(|result| size(result) != Some(map.len())) {
            return Err(unlike());
        }
        let mut all = Map::new();
        for name in map.keys() {
            let of = |result: &Dynamic| result.read_lock::<Map>().and_then(|map| map.get(name.as_str()).cloned());
            let items: Option<Array> = results.iter().map(of).collect();
            let items = items.ok_or_else(unlike)?;
            all.insert(name.clone(), gather(e, items, device, dim, depth + 1)?);
        }
        return Ok(all.into());
    }
    if let Some(list) = first.read_lock::<Array>().map(|list| list.clone()) {
        let size = |result: &Dynamic| result.read_lock::<Array>().map(|list| list.len());
        if results.iter().any(|result| size(result) != Some(list.len())) {
            return Err(unlike());
        }
        let mut all = Array::new();
        for at in 0..list.len() {
            let of = |result: &Dynamic| result.read_lock::<Array>().and_then(|list| list.get(at).cloned());
            let items: Option<Array> = results.iter().map(of).collect();
            all.push(gather(e, items.ok_or_else(unlike)?, device, dim, depth + 1)?);
        }
        return Ok(all.into());
    }
    Ok(first.clone())
}

#[cold]
fn unlike() -> Box<Diag> {
    Diag::error(code::TYPE, "the replicas gave results of different kinds, which cannot be joined")
}
