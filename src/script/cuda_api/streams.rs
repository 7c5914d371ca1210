//! Streams and events as values of the language.

use crate::base::code;
use crate::base::device_id::DeviceId;
use crate::base::diag::{Diag, Result};
use crate::sched::runtime::Runtime;
use crate::sched::streams::stream::{Event, StreamHandle};
use crate::script::bind::convert;
use crate::script::bind::native::{flag, given, native};
use crate::script::bind::rows::Natives;
use crate::script::host::Host;
use crate::script::values::panics::Place;
use crate::script::values::raise::Native;
use crate::script::values::type_names;
use crate::script::values::types::{DeviceValue, Tensor};
use crate::script::values::types::{EventValue, StreamValue};
use rhai::{Dynamic, FuncRegistration, NativeCallContext, RhaiFunc};
use std::any::TypeId;
use std::sync::Arc;

/// A native method of one of our types, by name.
pub fn typed<A, const N: usize, const X: bool, R: Clone + Send + Sync + 'static, const F: bool>(
    module: &mut Natives,
    name: &str,
    function: impl rhai::RhaiNativeFunc<A, N, X, R, F> + Send + Sync + 'static,
) where
    A: 'static,
{
    module.note(name.trim_start_matches("get$"));
    FuncRegistration::new(name).in_global_namespace().place_in(&mut module.module, function);
}

/// As `typed`, for methods that scripts call often: arguments are read in place, without copies and with one type
/// check.
fn direct<const N: usize>(
    module: &mut Natives,
    host: &Arc<Host>,
    name: &str,
    types: [TypeId; N],
    function: impl Fn(&Runtime, &[&mut Dynamic]) -> Result<()> + Send + Sync + 'static,
) {
    module.note(name);
    let host = host.clone();
    let call = move |context: Option<NativeCallContext>, values: &mut [&mut Dynamic]| -> Native {
        let context = context.expect("registered with a context");
        host.begin(&context);
        function(&host.rt, values).map(|()| Dynamic::UNIT).map_err(|diag| host.raise(&context, diag, ""))
    };
    let func = RhaiFunc::Method { func: Arc::new(call), has_context: true, is_pure: true, is_volatile: true };
    FuncRegistration::new(name).in_global_namespace().place_raw_in(&mut module.module, types, func);
}

type Raised<T> = std::result::Result<T, Box<rhai::EvalAltResult>>;

pub fn register(module: &mut Natives, host: &Arc<Host>) {
    making(module, host);
    stream_methods(module, host);
    event_methods(module, host);
    properties(module);
}

/// The device of a function about streams: the current CUDA device by default.
fn stream_device(host: &Host, value: &Dynamic) -> Result<DeviceId> {
    let Some(value) = given(value) else { return host.rt.current_cuda() };
    match convert::device(host, value)? {
        DeviceId::Cpu => Err(Diag::error(code::STREAM, "the CPU has no streams")
            .help("streams belong to CUDA devices, for example `stream(#{device: \"cuda:0\"})`")),
        device => Ok(device),
    }
}

/// Clamps a priority to the device's range, as CUDA does.
fn priority_of(value: &Dynamic) -> Result<i32> {
    let text = || format!("a priority is an integer, not {}", type_names::of_value(value));
    let number = value.as_int().map_err(|_| Diag::error(code::ARGUMENT_TYPE, text()))?;
    Ok(number.clamp(-5, 0) as i32)
}

fn making(module: &mut Natives, host: &Arc<Host>) {
    native(module, host, "stream", |host, engine, [device, priority]| {
        let (device, priority) = (stream_device(host, device)?, priority_of(priority)?);
        let made = host.rt.new_stream(device, priority, engine.origin)?;
        Ok(Dynamic::from(StreamValue(made)))
    });
    // Blocking waits and sharing between processes have no effect here.
    native(module, host, "event", |_, engine, [timing, blocking, interprocess, external, enable_timing]| {
        for (name, value) in [("blocking", blocking), ("interprocess", interprocess), ("external", external)] {
            flag(name, value)?;
        }
        let timing = flag("timing", timing)? | flag("enable_timing", enable_timing)?;
        Ok(Dynamic::from(EventValue(Arc::new(Event::new(timing, engine.origin)))))
    });
    native(module, host, "current_stream", |host, _, [device]| {
        let found = host.rt.current_stream(stream_device(host, device)?)?;
        Ok(Dynamic::from(StreamValue(found)))
    });
    native(module, host, "default_stream", |host, _, [device]| {
        let found = host.rt.default_stream(stream_device(host, device)?)?;
        Ok(Dynamic::from(StreamValue(found)))
    });
    let shared = host.clone();
    crate::script::bind::rows::raw(module, "set_stream", 1, move |context, values| -> Native {
        let context = context.expect("registered with a context");
        shared.call(&context, |_| make_current(&shared, values[0]).map(|()| Dynamic::UNIT))
    });
    let shared = host.clone();
    crate::script::bind::rows::raw(module, "stream_barrier", 1, move |context, values| -> Native {
        let context = context.expect("registered with a context");
        shared.call(&context, |_| {
            let Some(list) = values[0].read_lock::<rhai::Array>() else {
                crate::fail!(ARGUMENT_TYPE, "an array of streams is expected, not {}", type_names::of_value(values[0]));
            };
            let streams: Vec<Arc<StreamHandle>> = list.iter().map(stream_of).collect::<Result<_>>()?;
            shared.rt.stream_barrier(&streams).map(|()| Dynamic::UNIT)
        })
    });
}

/// `set_stream(s)`: as in PyTorch, the stream's device becomes the current one, and `()` has no effect.
pub fn make_current(host: &Host, value: &Dynamic) -> Result<()> {
    if value.is_unit() {
        return Ok(());
    }
    let stream = stream_of(value)?;
    let before = host.rt.set_current_stream(&stream)?;
    drop(before);
    if let DeviceId::Cuda(index) = stream.name.device {
        host.rt.set_current_cuda(index);
    }
    Ok(())
}

/// A stream among the arguments.
pub fn stream_of(value: &Dynamic) -> Result<Arc<StreamHandle>> {
    match value.read_lock::<StreamValue>() {
        Some(stream) => Ok(stream.0.clone()),
        None => Err(no_stream(value)),
    }
}

/// Calls a function with the stream and the event among the arguments, by reference.
fn with_both(stream: &Dynamic, event: &Dynamic, work: impl FnOnce(&StreamHandle, &Event) -> Result<()>) -> Result<()> {
    match stream.read_lock::<StreamValue>() {
        Some(stream) => with_event(event, |event| work(&stream.0, event)),
        None => Err(no_stream(stream)),
    }
}

/// As `with_both`, with an event alone.
fn with_event(value: &Dynamic, work: impl FnOnce(&Event) -> Result<()>) -> Result<()> {
    match value.read_lock::<EventValue>() {
        Some(event) => work(&event.0),
        None => {
            Err(Diag::error(code::ARGUMENT_TYPE, format!("an event is expected, not {}", type_names::of_value(value))))
        }
    }
}

#[cold]
fn no_stream(value: &Dynamic) -> Box<Diag> {
    Diag::error(code::ARGUMENT_TYPE, format!("a stream is expected, not {}", type_names::of_value(value)))
}

fn stream_methods(module: &mut Natives, host: &Arc<Host>) {
    let (stream, event) = (TypeId::of::<StreamValue>(), TypeId::of::<EventValue>());
    direct(module, host, "wait_stream", [stream, stream], |rt, values| {
        rt.wait_stream(&*stream_of(values[0])?, &*stream_of(values[1])?)
    });
    direct(module, host, "wait_event", [stream, event], |rt, values| {
        with_both(values[0], values[1], |stream, event| rt.wait_event(stream, event))
    });
    let h = host.clone();
    typed(module, "record_event", move |context: NativeCallContext, s: StreamValue| -> Raised<EventValue> {
        h.call(&context, |engine| {
            let event = Arc::new(Event::new(false, engine.origin));
            h.rt.record_event(&event, &s.0)?;
            Ok(EventValue(event))
        })
    });
    let h = host.clone();
    typed(
        module,
        "record_event",
        move |context: NativeCallContext, s: StreamValue, e: EventValue| -> Raised<EventValue> {
            h.call(&context, |_| h.rt.record_event(&e.0, &s.0))?;
            Ok(e)
        },
    );
    let h = host.clone();
    typed(module, "synchronize", move |context: NativeCallContext, s: StreamValue| -> Raised<()> {
        h.call(&context, |_| h.rt.synchronize_stream(&s.0))
    });
    let h = host.clone();
    typed(module, "query", move |context: NativeCallContext, s: StreamValue| -> Raised<bool> {
        h.call(&context, |_| h.rt.query_stream(&s.0))
    });
    let h = host.clone();
    typed(module, "record_stream", move |context: NativeCallContext, x: Tensor, s: StreamValue| -> Raised<()> {
        h.call(&context, |_| h.rt.record_stream(&x.view(), &s.0))
    });
}

fn event_methods(module: &mut Natives, host: &Arc<Host>) {
    let (stream, event) = (TypeId::of::<StreamValue>(), TypeId::of::<EventValue>());
    direct(module, host, "record", [event], |rt, values| {
        with_event(values[0], |event| rt.record_event(event, &*rt.stream_now()?))
    });
    direct(module, host, "record", [event, stream], |rt, values| {
        with_both(values[1], values[0], |stream, event| rt.record_event(event, stream))
    });
    direct(module, host, "wait", [event], |rt, values| {
        with_event(values[0], |event| rt.wait_event(&*rt.stream_now()?, event))
    });
    direct(module, host, "wait", [event, stream], |rt, values| {
        with_both(values[1], values[0], |stream, event| rt.wait_event(stream, event))
    });
    let h = host.clone();
    typed(module, "synchronize", move |context: NativeCallContext, e: EventValue| -> Raised<()> {
        h.call(&context, |_| h.rt.synchronize_event(&e.0))
    });
    let h = host.clone();
    typed(module, "query", move |context: NativeCallContext, e: EventValue| -> Raised<bool> {
        h.call(&context, |_| h.rt.query_event(&e.0))
    });
    let h = host.clone();
    typed(
        module,
        "elapsed_time",
        move |context: NativeCallContext, start: EventValue, stop: EventValue| -> Raised<f64> {
            h.call(&context, |_| h.rt.elapsed_ms(&start.0, &stop.0))
        },
    );
}

fn properties(module: &mut Natives) {
    typed(module, "get$type", |d: DeviceValue| d.0.kind());
    // Not by `typed`: tensors have no such property (`error/absent.rs`).
    FuncRegistration::new("get$index").in_global_namespace().place_in(&mut module.module, |d: DeviceValue| {
        d.0.index().map_or(Dynamic::UNIT, |index| Dynamic::from_int(index as i64))
    });
    typed(module, "get$device", |s: StreamValue| DeviceValue::from(s.0.name.device));
    typed(module, "get$priority", |s: StreamValue| s.0.priority as i64);
    for name in ["get$id", "get$stream_id"] {
        typed(module, name, |s: StreamValue| s.0.name.number as i64);
    }
    typed(module, "get$device_index", |s: StreamValue| match s.0.name.device {
        DeviceId::Cuda(index) => index as i64,
        DeviceId::Cpu => 0,
    });
    typed(module, "get$device", |e: EventValue| match e.0.moment() {
        Some(moment) => Dynamic::from(DeviceValue::from(moment.name.device)),
        None => Dynamic::UNIT,
    });
    typed(module, "get$timing", |e: EventValue| e.0.timing);
}
