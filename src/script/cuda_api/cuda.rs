//! The module `cuda`: `torch.cuda`'s functions about devices and memory.

use crate::base::code;
use crate::base::device_id::DeviceId;
use crate::base::diag::{Diag, Result};
use crate::device::cache::{BlockInfo, SegmentInfo};
use crate::sched::memory::Memory;
use crate::script::bind::convert;
use crate::script::bind::native::{flag, given, native};
use crate::script::bind::rows::Natives;
use crate::script::cuda_api::devices::wait_for;
use crate::script::cuda_api::{kernel, streams};
use crate::script::host::Host;
use crate::script::tensor_api::settings;
use crate::script::values::type_names;
use crate::script::values::types::{EventValue, StreamValue};
use rhai::{Array, Dynamic, Map};
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
    kernel::register(&mut module, host);
    module
}

/// Registers the function that the manual describes as `cuda::name`.
fn function<const N: usize>(
    module: &mut Natives,
    host: &Arc<Host>,
    name: &str,
    call: impl Fn(&Host, [&Dynamic; N]) -> Result<Dynamic> + Send + Sync + 'static,
) {
    native(module, host, &format!("cuda::{name}"), move |host, _, values| call(host, values));
}

/// A device; `()` is the current CUDA device.
fn device_of(host: &Host, value: &Dynamic) -> Result<DeviceId> {
    let Some(value) = given(value) else { return host.rt.current_cuda() };
    match convert::device(host, value)? {
        DeviceId::Cpu => Err(Diag::error(code::UNKNOWN_DEVICE, "a CUDA device is expected, not \"cpu\"")
            .help("for example 0 or \"cuda:0\"")),
        device => Ok(device),
    }
}

fn index_of(device: DeviceId) -> i64 {
    match device {
        DeviceId::Cuda(index) => index as i64,
        DeviceId::Cpu => -1,
    }
}

fn devices(module: &mut Natives, host: &Arc<Host>) {
    function(module, host, "is_available", |host, []| Ok(Dynamic::from_bool(host.rt.gpu_count() > 0)));
    function(module, host, "device_count", |host, []| Ok(Dynamic::from_int(host.rt.gpu_count() as i64)));
    function(module, host, "current_device", |host, []| Ok(Dynamic::from_int(index_of(host.rt.current_cuda()?))));
    function(module, host, "set_device", |host, [device]| {
        // As in PyTorch, a negative index has no effect.
        if device.as_int().is_ok_and(|index| index < 0) {
            return Ok(Dynamic::UNIT);
        }
        if let DeviceId::Cuda(index) = device_of(host, device)? {
            host.rt.set_current_cuda(index);
        }
        Ok(Dynamic::UNIT)
    });
    function(module, host, "synchronize", |host, [device]| {
        match device {
            value if value.is::<StreamValue>() || value.is::<EventValue>() => wait_for(host, value)?,
            value => host.rt.synchronize_device(device_of(host, value)?)?,
        }
        Ok(Dynamic::UNIT)
    });
    function(module, host, "is_initialized", |host, []| Ok(Dynamic::from_bool(host.rt.cuda_is_open())));
    function(module, host, "init", |host, []| host.rt.current_cuda().map(|_| Dynamic::UNIT));
    function(module, host, "is_bf16_supported", |host, []| Ok(Dynamic::from_bool(host.rt.gpu_count() > 0)));
    // TensorFloat-32 came with Ampere.
    function(module, host, "is_tf32_supported", |host, []| {
        let facts = |device| host.rt.device_facts(device).is_ok_and(|facts| facts.capability.0 >= 8);
        Ok(Dynamic::from_bool(host.rt.current_cuda().is_ok_and(facts)))
    });
    function(module, host, "get_device_name", |host, [device]| {
        let facts = host.rt.device_facts(device_of(host, device)?)?;
        Ok(facts.name.into())
    });
    function(module, host, "get_device_capability", |host, [device]| {
        let facts = host.rt.device_facts(device_of(host, device)?)?;
        let (major, minor) = facts.capability;
        Ok(Dynamic::from(vec![Dynamic::from_int(major), Dynamic::from_int(minor)] as Array))
    });
    function(module, host, "get_device_properties", |host, [device]| {
        let facts = host.rt.device_facts(device_of(host, device)?)?;
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
    function(module, host, "can_device_access_peer", |host, [a, b]| {
        let (a, b) = (device_of(host, a)?, device_of(host, b)?);
        Ok(Dynamic::from_bool(host.rt.can_access_peer(a, b)?))
    });
}

/// A session has one generator for all devices: a named device must exist, and has no other effect.
fn random(module: &mut Natives, host: &Arc<Host>) {
    function(module, host, "manual_seed", seed);
    function(module, host, "manual_seed_all", seed);
    function(module, host, "initial_seed", |host, []| Ok(settings::initial_seed(host)));
    for name in ["seed", "seed_all"] {
        function(module, host, name, |host, []| Ok(settings::unknown_seed(host)));
    }
    native(module, host, "cuda::get_rng_state", |host, engine, [device]| {
        device_of(host, device)?;
        settings::rng_state(host, engine)
    });
    native(module, host, "cuda::get_rng_state_all", |host, engine, []| {
        let state = settings::rng_state(host, engine)?;
        Ok(Dynamic::from(vec![state; host.rt.gpu_count()] as Array))
    });
    function(module, host, "set_rng_state", |host, [state, device]| {
        device_of(host, device)?;
        settings::set_rng_state(host, state)
    });
    function(module, host, "set_rng_state_all", |host, [states]| {
        let all = states.read_lock::<Array>().map(|states| states.clone());
        match all.as_deref() {
            Some([.., last]) => settings::set_rng_state(host, last),
            _ => crate::fail!(
                ARGUMENT_TYPE,
                "what `cuda::get_rng_state_all()` gave is expected, not {}",
                type_names::of_value(states)
            ),
        }
    });
}

/// One generator for a session: the same as `manual_seed`.
fn seed(host: &Host, [seed]: [&Dynamic; 1]) -> Result<Dynamic> {
    match seed.as_int() {
        Ok(seed) => host.rt.seed(seed as u64),
        Err(_) => {
            crate::fail!(ARGUMENT_TYPE, "a seed is an integer, not {}", type_names::of_value(seed))
        }
    }
    Ok(Dynamic::UNIT)
}

/// A function that reads one number of a device's allocator.
fn number(module: &mut Natives, host: &Arc<Host>, name: &'static str, read: fn(&mut Memory) -> u64) {
    function(module, host, name, move |host, [device]| {
        let device = device_of(host, device)?;
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
        function(module, host, name, |host, [device]| {
            let device = device_of(host, device)?;
            host.rt.with_memory(device, |memory| memory.cache().reset_peaks())?;
            Ok(Dynamic::UNIT)
        });
    }
    function(module, host, "reset_accumulated_memory_stats", |host, [device]| {
        let device = device_of(host, device)?;
        host.rt.with_memory(device, |memory| memory.cache().reset_accumulated())?;
        Ok(Dynamic::UNIT)
    });
    function(module, host, "empty_cache", |host, []| {
        host.rt.empty_caches()?;
        Ok(Dynamic::UNIT)
    });
    function(module, host, "memory_stats", |host, [device]| {
        let device = device_of(host, device)?;
        let entries = host.rt.with_memory(device, |memory| memory.cache().statistics().entries())?;
        let map: Map =
            crate::base::order::map(entries.into_iter().map(|(name, value)| (name.into(), Dynamic::from_int(value))));
        Ok(Dynamic::from(map))
    });
    function(module, host, "memory_stats_as_nested_dict", |host, [device]| {
        let device = device_of(host, device)?;
        Ok(nested(host.rt.with_memory(device, |memory| memory.cache().statistics().entries())?))
    });
    function(module, host, "get_per_process_memory_fraction", |host, [device]| {
        let device = device_of(host, device)?;
        host.rt.with_memory(device, |memory| Dynamic::from_float(memory.cache().memory_fraction()))
    });
    function(module, host, "get_allocator_backend", |_, []| Ok("native".into()));
    function(module, host, "memory_summary", |host, [device, brief]| {
        let device = device_of(host, device)?;
        let brief = given(brief).map_or(Ok(false), |brief| flag("abbreviated", brief))?;
        let text = host.rt.with_memory(device, |memory| memory.cache().summary(&device.to_string()))?;
        // The short form, without the parts of each number.
        let lines = text.lines().filter(|line| !brief || !line.contains(" pool "));
        Ok(lines.map(|line| format!("{line}\n")).collect::<String>().into())
    });
    function(module, host, "memory_snapshot", |host, [device]| {
        let named: Vec<DeviceId> = match given(device) {
            Some(_) => vec![device_of(host, device)?],
            None => (0..host.rt.gpu_count() as u16).map(DeviceId::Cuda).collect(),
        };
        let mut all = Array::new();
        for device in named {
            let found = host.rt.with_memory(device, |memory| memory.cache().snapshot())?;
            all.extend(segments(host, found, device));
        }
        Ok(Dynamic::from(all))
    });
    function(module, host, "mem_get_info", |host, [device]| {
        let device = device_of(host, device)?;
        let (free, total) = host.rt.memory_info(device)?;
        Ok(Dynamic::from(vec![Dynamic::from_int(free as i64), Dynamic::from_int(total as i64)] as Array))
    });
    function(module, host, "set_per_process_memory_fraction", |host, [fraction, device]| {
        let fraction = match fraction.as_float().ok().or(fraction.as_int().ok().map(|n| n as f64)) {
            Some(fraction) if (0.0..=1.0).contains(&fraction) => fraction,
            Some(fraction) => crate::fail!(VALUE, "a fraction is from 0 to 1, not {fraction}"),
            None => crate::fail!(ARGUMENT_TYPE, "a fraction is a number, not {}", type_names::of_value(fraction)),
        };
        let device = device_of(host, device)?;
        host.rt.with_memory(device, |memory| memory.cache().set_memory_fraction(Some(fraction)))?;
        host.rt.update_room(device)?;
        Ok(Dynamic::UNIT)
    });
}

/// `allocation.all.current` as nested maps.
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

/// Statistics of pinned host memory, by PyTorch's names: requests of tensors are `active_requests`, memory allocated
/// from the driver for them is `allocations`.
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
    function(module, host, "host_memory_stats", |host, []| {
        let map: Map =
            crate::base::order::map(entries(host)?.into_iter().map(|(name, n)| (name.into(), Dynamic::from_int(n))));
        Ok(map.into())
    });
    function(module, host, "host_memory_stats_as_nested_dict", |host, []| entries(host).map(nested));
    function(module, host, "reset_peak_host_memory_stats", |host, []| {
        host.rt.with_pinned(|memory| memory.cache().reset_peaks()).map(|()| Dynamic::UNIT)
    });
    function(module, host, "reset_accumulated_host_memory_stats", |host, []| {
        host.rt.with_pinned(|memory| memory.cache().reset_accumulated()).map(|()| Dynamic::UNIT)
    });
}

/// A device's segments with PyTorch's names.
fn segments(host: &Host, found: Vec<SegmentInfo>, device: DeviceId) -> Array {
    let number = |n: usize| Dynamic::from_int(n as i64);
    let segment = |segment: SegmentInfo| {
        let mut map = Map::new();
        map.insert("device".into(), Dynamic::from_int(index_of(device)));
        map.insert("address".into(), Dynamic::from_int(segment.address as i64));
        map.insert("total_size".into(), number(segment.total_size));
        map.insert("allocated_size".into(), number(segment.allocated_size));
        map.insert("active_size".into(), number(segment.active_size));
        map.insert("requested_size".into(), number(segment.requested_size));
        map.insert("stream".into(), Dynamic::from_int(host.rt.stream_number(segment.stream)));
        map.insert("segment_type".into(), segment.type_name().into());
        map.insert("is_expandable".into(), Dynamic::FALSE);
        let block = |block: &BlockInfo| {
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
    found.into_iter().map(segment).collect()
}

fn streams(module: &mut Natives, host: &Arc<Host>) {
    for (name, default) in [("current_stream", false), ("default_stream", true)] {
        function(module, host, name, move |host, [device]| {
            let device = device_of(host, device)?;
            let stream = if default { host.rt.default_stream(device)? } else { host.rt.current_stream(device)? };
            Ok(Dynamic::from(StreamValue(stream)))
        });
    }
    function(module, host, "set_stream", |host, [stream]| {
        streams::make_current(host, stream)?;
        Ok(Dynamic::UNIT)
    });
    function(module, host, "sleep", |host, [ms]| {
        let ms = ms.as_float().ok().or(ms.as_int().ok().map(|n| n as f64));
        let Some(ms) = ms.filter(|ms| *ms >= 0.0 && ms.is_finite()) else {
            crate::fail!(VALUE, "`sleep` expects a number of milliseconds of at least 0");
        };
        let stream = host.rt.current_stream(host.rt.current_cuda()?)?;
        host.rt.sleep(&stream, ms)?;
        Ok(Dynamic::UNIT)
    });
}
