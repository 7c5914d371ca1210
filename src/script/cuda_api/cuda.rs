//! The module `cuda`: `torch.cuda`'s functions about devices and memory.

use crate::base::code;
use crate::base::device_id::DeviceId;
use crate::base::diag::{Diag, Result};
use crate::base::suggest::unknown_keyword;
use crate::sched::memory::Memory;
use crate::script::bind::convert;
use crate::script::bind::rows::{Natives, raw};
use crate::script::cuda_api::devices::wait_for;
use crate::script::cuda_api::streams;
use crate::script::host::Host;
use crate::script::tensor_api::settings;
use crate::script::values::raise::Native;
use crate::script::values::type_names;
use crate::script::values::types::{EventValue, StreamValue};
use rhai::{Array, Dynamic, Map, NativeCallContext};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The module's functions; their names are `cuda::name` to the source pass.
pub fn module(host: &Arc<Host>) -> Natives {
    let mut module = Natives::default();
    devices(&mut module, host);
    random(&mut module, host);
    memory(&mut module, host);
    pinned_memory(&mut module, host);
    streams(&mut module, host);
    module
}

/// Registers `name(device?)` and, where asked for, further arguments.
fn function(
    module: &mut Natives,
    host: &Arc<Host>,
    name: &'static str,
    arities: std::ops::RangeInclusive<usize>,
    call: impl Fn(&Host, &mut [&mut Dynamic]) -> Result<Dynamic> + Send + Sync + Clone + 'static,
) {
    for arity in arities {
        let (shared, call) = (host.clone(), call.clone());
        raw(module, name, arity, move |context, values| -> Native {
            let context = context.expect("registered with a context");
            shared.call(&context, |_| call(&shared, values))
        });
    }
}

/// The device of an optional argument, also as `#{device: ..}`: the current CUDA device unless one is named.
fn device_of(host: &Host, value: Option<&&mut Dynamic>) -> Result<DeviceId> {
    let named = match value {
        Some(value) if value.is_map() => convert::device_keyword(value)?,
        value => value.map(|value| value.flatten_clone()).filter(|value| !value.is_unit()),
    };
    device_or_current(host, named)
}

fn device_or_current(host: &Host, named: Option<Dynamic>) -> Result<DeviceId> {
    let Some(named) = named else { return host.rt.current_cuda() };
    match convert::device(host, &named)? {
        DeviceId::Cpu => Err(Diag::error(code::UNKNOWN_DEVICE, "a CUDA device is wanted, not \"cpu\"")
            .help("for example 0 or \"cuda:0\"")),
        device => Ok(device),
    }
}

/// Arguments in the order of their names, or by name in a map at the end; `()` is none.
fn in_order<const N: usize>(values: &[&mut Dynamic], names: [&str; N]) -> Result<[Option<Dynamic>; N]> {
    let mut found = [const { None }; N];
    for (at, value) in values.iter().enumerate() {
        let keywords = value.read_lock::<Map>().filter(|_| at + 1 == values.len()).map(|map| map.clone());
        let Some(keywords) = keywords else {
            found[at] = Some((**value).clone()).filter(|value| !value.is_unit());
            continue;
        };
        for (name, value) in keywords {
            match names.iter().position(|known| *known == name) {
                Some(place) => found[place] = Some(value).filter(|value| !value.is_unit()),
                None => return Err(unknown_keyword(&name, &names)),
            }
        }
    }
    Ok(found)
}

fn index_of(device: DeviceId) -> i64 {
    match device {
        DeviceId::Cuda(index) => index as i64,
        DeviceId::Cpu => -1,
    }
}

fn devices(module: &mut Natives, host: &Arc<Host>) {
    function(module, host, "is_available", 0..=0, |host, _| Ok(Dynamic::from_bool(host.rt.gpu_count() > 0)));
    function(module, host, "device_count", 0..=0, |host, _| Ok(Dynamic::from_int(host.rt.gpu_count() as i64)));
    function(module, host, "current_device", 0..=0, |host, _| Ok(Dynamic::from_int(index_of(host.rt.current_cuda()?))));
    function(module, host, "set_device", 1..=1, |host, values| {
        // As in PyTorch, a negative index changes nothing.
        if values[0].as_int().is_ok_and(|index| index < 0) {
            return Ok(Dynamic::UNIT);
        }
        if let DeviceId::Cuda(index) = device_of(host, values.first())? {
            host.rt.set_current_cuda(index);
        }
        Ok(Dynamic::UNIT)
    });
    function(module, host, "synchronize", 0..=1, |host, values| {
        match values.first() {
            Some(value) if value.is::<StreamValue>() || value.is::<EventValue>() => wait_for(host, value)?,
            value => host.rt.synchronize_device(device_of(host, value)?)?,
        }
        Ok(Dynamic::UNIT)
    });
    function(module, host, "is_initialized", 0..=0, |host, _| Ok(Dynamic::from_bool(host.rt.cuda_is_open())));
    function(module, host, "init", 0..=0, |host, _| host.rt.current_cuda().map(|_| Dynamic::UNIT));
    function(module, host, "is_bf16_supported", 0..=0, |host, _| Ok(Dynamic::from_bool(host.rt.gpu_count() > 0)));
    // TensorFloat-32 came with Ampere.
    function(module, host, "is_tf32_supported", 0..=0, |host, _| {
        let facts = |device| host.rt.device_facts(device).is_ok_and(|facts| facts.capability.0 >= 8);
        Ok(Dynamic::from_bool(host.rt.current_cuda().is_ok_and(facts)))
    });
    function(module, host, "get_device_name", 0..=1, |host, values| {
        let facts = host.rt.device_facts(device_of(host, values.first())?)?;
        Ok(facts.name.into())
    });
    function(module, host, "get_device_capability", 0..=1, |host, values| {
        let facts = host.rt.device_facts(device_of(host, values.first())?)?;
        let (major, minor) = facts.capability;
        Ok(Dynamic::from(vec![Dynamic::from_int(major), Dynamic::from_int(minor)] as Array))
    });
    function(module, host, "get_device_properties", 0..=1, |host, values| {
        let facts = host.rt.device_facts(device_of(host, values.first())?)?;
        let mut map = Map::new();
        map.insert("name".into(), facts.name.into());
        map.insert("major".into(), Dynamic::from_int(facts.capability.0));
        map.insert("minor".into(), Dynamic::from_int(facts.capability.1));
        map.insert("total_memory".into(), Dynamic::from_int(facts.total_bytes as i64));
        map.insert("multi_processor_count".into(), Dynamic::from_int(facts.multiprocessors as i64));
        map.insert("warp_size".into(), Dynamic::from_int(32));
        map.insert("uuid".into(), facts.uuid.into());
        map.insert("is_simulated".into(), Dynamic::from_bool(facts.is_simulated));
        Ok(Dynamic::from(map))
    });
    function(module, host, "can_device_access_peer", 1..=2, |host, values| {
        let [a, b] = in_order(values, ["device", "peer_device"])?;
        let (a, b) = (device_or_current(host, a)?, device_or_current(host, b)?);
        Ok(Dynamic::from_bool(host.rt.can_access_peer(a, b)?))
    });
}

/// A session has one generator, which draws the same numbers on every device: a device that is named must exist, and
/// makes no difference.
fn random(module: &mut Natives, host: &Arc<Host>) {
    function(module, host, "manual_seed", 1..=1, seed);
    function(module, host, "manual_seed_all", 1..=1, seed);
    function(module, host, "initial_seed", 0..=0, |host, _| Ok(settings::initial_seed(host)));
    for name in ["seed", "seed_all"] {
        function(module, host, name, 0..=0, |host, _| Ok(settings::unknown_seed(host)));
    }
    let shared = host.clone();
    let get = move |context: &NativeCallContext, copies: usize| {
        let state = settings::rng_state(&shared, context)?;
        Ok(vec![state; copies])
    };
    for arity in 0..=1 {
        let (shared, get) = (host.clone(), get.clone());
        raw(module, "get_rng_state", arity, move |context, values| -> Native {
            let context = context.expect("registered with a context");
            shared.call(&context, |_| device_of(&shared, values.first()))?;
            get(&context, 1).map(|mut states| states.remove(0))
        });
    }
    let shared = host.clone();
    raw(module, "get_rng_state_all", 0, move |context, _| -> Native {
        let context = context.expect("registered with a context");
        get(&context, shared.rt.gpu_count()).map(Dynamic::from)
    });
    function(module, host, "set_rng_state", 1..=2, |host, values| {
        device_of(host, values.get(1))?;
        settings::set_rng_state(host, values[0])
    });
    function(module, host, "set_rng_state_all", 1..=1, |host, values| {
        let states = values[0].read_lock::<Array>().map(|states| states.clone());
        match states.as_deref() {
            Some([.., last]) => settings::set_rng_state(host, last),
            _ => crate::fail!(
                ARGUMENT_TYPE,
                "what `cuda::get_rng_state_all()` gave is wanted, not {}",
                type_names::of_value(values[0])
            ),
        }
    });
}

/// One generator a session: the same as `manual_seed`.
fn seed(host: &Host, values: &mut [&mut Dynamic]) -> Result<Dynamic> {
    match values[0].as_int() {
        Ok(seed) => host.rt.seed(seed as u64),
        Err(_) => {
            crate::fail!(ARGUMENT_TYPE, "a seed is an integer, not {}", type_names::of_value(values[0]))
        }
    }
    Ok(Dynamic::UNIT)
}

/// A function that reads one number of a device's allocator.
fn number(module: &mut Natives, host: &Arc<Host>, name: &'static str, read: fn(&mut Memory) -> u64) {
    function(module, host, name, 0..=1, move |host, values| {
        let device = device_of(host, values.first())?;
        host.rt.with_memory(device, |memory| Dynamic::from_int(read(memory) as i64))
    });
}

fn memory(module: &mut Natives, host: &Arc<Host>) {
    number(module, host, "memory_allocated", |m| m.cache().statistics().allocated_bytes[0].current);
    number(module, host, "max_memory_allocated", |m| m.cache().statistics().allocated_bytes[0].peak);
    for name in ["memory_reserved", "memory_cached"] {
        number(module, host, name, |m| m.cache().statistics().reserved_bytes[0].current);
    }
    for name in ["max_memory_reserved", "max_memory_cached"] {
        number(module, host, name, |m| m.cache().statistics().reserved_bytes[0].peak);
    }
    for name in ["reset_peak_memory_stats", "reset_max_memory_allocated", "reset_max_memory_cached"] {
        function(module, host, name, 0..=1, |host, values| {
            let device = device_of(host, values.first())?;
            host.rt.with_memory(device, |memory| memory.cache().reset_peaks())?;
            Ok(Dynamic::UNIT)
        });
    }
    function(module, host, "reset_accumulated_memory_stats", 0..=1, |host, values| {
        let device = device_of(host, values.first())?;
        host.rt.with_memory(device, |memory| memory.cache().reset_accumulated())?;
        Ok(Dynamic::UNIT)
    });
    function(module, host, "empty_cache", 0..=0, |host, _| {
        host.rt.empty_caches()?;
        Ok(Dynamic::UNIT)
    });
    function(module, host, "memory_stats", 0..=1, |host, values| {
        let device = device_of(host, values.first())?;
        let entries = host.rt.with_memory(device, |memory| memory.cache().statistics().entries())?;
        let map: Map = entries.into_iter().map(|(name, value)| (name.into(), Dynamic::from_int(value))).collect();
        Ok(Dynamic::from(map))
    });
    function(module, host, "memory_stats_as_nested_dict", 0..=1, |host, values| {
        let device = device_of(host, values.first())?;
        Ok(nested(host.rt.with_memory(device, |memory| memory.cache().statistics().entries())?))
    });
    function(module, host, "get_per_process_memory_fraction", 0..=1, |host, values| {
        let device = device_of(host, values.first())?;
        host.rt.with_memory(device, |memory| Dynamic::from_float(memory.cache().memory_fraction()))
    });
    function(module, host, "get_allocator_backend", 0..=0, |_, _| Ok("native".into()));
    function(module, host, "memory_summary", 0..=2, |host, values| {
        let [device, brief] = in_order(values, ["device", "abbreviated"])?;
        let device = device_or_current(host, device)?;
        let Ok(brief) = brief.map_or(Ok(false), |brief| brief.as_bool()) else {
            crate::fail!(ARGUMENT_TYPE, "`abbreviated` is true or false");
        };
        let text = host.rt.with_memory(device, |memory| memory.cache().summary(&device.to_string()))?;
        // In short, without the parts of each number.
        let lines = text.lines().filter(|line| !brief || !line.contains(" pool "));
        Ok(lines.map(|line| format!("{line}\n")).collect::<String>().into())
    });
    function(module, host, "memory_snapshot", 0..=1, |host, values| {
        let named: Vec<DeviceId> = match values.first() {
            Some(_) => vec![device_of(host, values.first())?],
            None => (0..host.rt.gpu_count() as u16).map(DeviceId::Cuda).collect(),
        };
        let mut all = Array::new();
        for device in named {
            all.extend(host.rt.with_memory(device, |memory| segments(memory, device))?);
        }
        Ok(Dynamic::from(all))
    });
    function(module, host, "mem_get_info", 0..=1, |host, values| {
        let device = device_of(host, values.first())?;
        let (free, total) = host.rt.memory_info(device)?;
        Ok(Dynamic::from(vec![Dynamic::from_int(free as i64), Dynamic::from_int(total as i64)] as Array))
    });
    function(module, host, "set_per_process_memory_fraction", 1..=2, |host, values| {
        let [fraction, device] = in_order(values, ["fraction", "device"])?;
        let fraction = fraction.unwrap_or(Dynamic::UNIT);
        let fraction = match fraction.as_float().ok().or(fraction.as_int().ok().map(|n| n as f64)) {
            Some(fraction) if (0.0..=1.0).contains(&fraction) => fraction,
            Some(fraction) => crate::fail!(VALUE, "a fraction is from 0 to 1, not {fraction}"),
            None => crate::fail!(ARGUMENT_TYPE, "a fraction is a number, not {}", type_names::of_value(&fraction)),
        };
        let device = device_or_current(host, device)?;
        host.rt.with_memory(device, |memory| memory.cache().set_memory_fraction(Some(fraction)))?;
        host.rt.look_at_room(device)?;
        Ok(Dynamic::UNIT)
    });
}

/// `allocation.all.current` as a map in a map in a map.
fn nested(entries: impl IntoIterator<Item = (String, i64)>) -> Dynamic {
    let mut groups: BTreeMap<String, Vec<(String, i64)>> = BTreeMap::new();
    let mut map = Map::new();
    for (name, value) in entries {
        match name.split_once('.') {
            Some((group, rest)) => groups.entry(group.to_string()).or_default().push((rest.to_string(), value)),
            None => _ = map.insert(name.into(), Dynamic::from_int(value)),
        }
    }
    for (group, entries) in groups {
        map.insert(group.into(), nested(entries));
    }
    map.into()
}

/// Statistics of pinned host memory, by PyTorch's names: requests of tensors are `active_requests`, what was taken from
/// the driver for them is `allocations`.
fn pinned_memory(module: &mut Natives, host: &Arc<Host>) {
    fn entries(host: &Host) -> Result<Vec<(String, i64)>> {
        host.rt.with_pinned(|memory| {
            let stats = memory.cache().statistics();
            let groups = [
                ("active_requests", &stats.allocation[0]),
                ("active_bytes", &stats.allocated_bytes[0]),
                ("allocations", &stats.segment[0]),
                ("allocated_bytes", &stats.reserved_bytes[0]),
            ];
            let mut all: Vec<(String, i64)> = groups.into_iter().flat_map(|(name, stat)| stat.entries(name)).collect();
            all.push(("num_host_alloc".into(), stats.num_device_alloc as i64));
            all.push(("num_host_free".into(), stats.num_device_free as i64));
            all
        })
    }
    function(module, host, "host_memory_stats", 0..=0, |host, _| {
        let map: Map = entries(host)?.into_iter().map(|(name, n)| (name.into(), Dynamic::from_int(n))).collect();
        Ok(map.into())
    });
    function(module, host, "host_memory_stats_as_nested_dict", 0..=0, |host, _| entries(host).map(nested));
    function(module, host, "reset_peak_host_memory_stats", 0..=0, |host, _| {
        host.rt.with_pinned(|memory| memory.cache().reset_peaks()).map(|()| Dynamic::UNIT)
    });
    function(module, host, "reset_accumulated_host_memory_stats", 0..=0, |host, _| {
        host.rt.with_pinned(|memory| memory.cache().reset_accumulated()).map(|()| Dynamic::UNIT)
    });
}

/// A device's segments with PyTorch's names.
fn segments(memory: &mut Memory, device: DeviceId) -> Array {
    let number = |n: usize| Dynamic::from_int(n as i64);
    let segment = |segment: crate::device::cache::SegmentInfo| {
        let mut map = Map::new();
        map.insert("device".into(), Dynamic::from_int(index_of(device)));
        map.insert("address".into(), Dynamic::from_int(segment.address as i64));
        map.insert("total_size".into(), number(segment.total_size));
        map.insert("allocated_size".into(), number(segment.allocated_size));
        map.insert("active_size".into(), number(segment.active_size));
        map.insert("requested_size".into(), number(segment.requested_size));
        map.insert("stream".into(), Dynamic::from_int(segment.stream as i64));
        map.insert("segment_type".into(), segment.type_name().into());
        map.insert("is_expandable".into(), Dynamic::FALSE);
        let block = |block: &crate::device::cache::BlockInfo| {
            let mut map = Map::new();
            map.insert("address".into(), Dynamic::from_int(block.address as i64));
            map.insert("size".into(), number(block.size));
            map.insert("requested_size".into(), number(block.requested_size));
            map.insert("state".into(), block.state.name().into());
            map.insert("line".into(), Dynamic::from_int(crate::sched::memory::unpack(block.owner).user.line() as i64));
            Dynamic::from(map)
        };
        map.insert("blocks".into(), Dynamic::from(segment.blocks.iter().map(block).collect::<Array>()));
        Dynamic::from(map)
    };
    memory.cache().snapshot().into_iter().map(segment).collect()
}

fn streams(module: &mut Natives, host: &Arc<Host>) {
    for (name, default) in [("current_stream", false), ("default_stream", true)] {
        function(module, host, name, 0..=1, move |host, values| {
            let device = device_of(host, values.first())?;
            let stream = if default { host.rt.default_stream(device)? } else { host.rt.current_stream(device)? };
            Ok(Dynamic::from(StreamValue(stream)))
        });
    }
    function(module, host, "set_stream", 1..=1, |host, values| {
        streams::make_current(host, values[0])?;
        Ok(Dynamic::UNIT)
    });
    function(module, host, "sleep", 1..=1, |host, values| {
        let ms = values[0].as_float().ok().or(values[0].as_int().ok().map(|n| n as f64));
        let Some(ms) = ms.filter(|ms| *ms >= 0.0 && ms.is_finite()) else {
            crate::fail!(VALUE, "`sleep` wants a number of milliseconds of at least 0");
        };
        let stream = host.rt.current_stream(host.rt.current_cuda()?)?;
        host.rt.sleep(&stream, ms)?;
        Ok(Dynamic::UNIT)
    });
}
