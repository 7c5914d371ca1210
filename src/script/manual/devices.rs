//! Native functions, methods and properties that have to do with devices, streams and events: one line for each.

use super::natives::Form::{Function, Method, Of, PropertyOf, Syntax};
use super::natives::{Native, entry};

#[rustfmt::skip]
pub const DEVICES: &[Native] = &[
    entry(Function, "device", "device(name)", "A device from its name.", "device(\"cpu\")", "cpu"),
    entry(Function, "current_device", "current_device()", "Where new tensors are made.", "current_device()", "cpu"),
    entry(Function, "set_default_device", "set_default_device(device)", "Where new tensors are made from now on.", "set_default_device(\"cpu\"); current_device()", "cpu"),
    entry(Syntax, "with_device", "with_device(device) { ... }", "Makes a device current inside the block, which has a value; also as `with_device(device, || ...)`.", "with_device(\"cpu\") { ones([1]).device }", "cpu"),
    entry(Syntax, "with_stream", "with_stream(stream) { ... }", "Makes a stream and its device current inside the block; also as `with_stream(stream, || ...)`.", "", ""),
    entry(Function, "synchronize", "synchronize(what)", "Waits for a device, a stream or an event, or for everything without an argument; raises the earliest fault of it that was not told.", "", ""),
    entry(Function, "stream", "stream(device: (), priority: 0)", "A new stream, on the current CUDA device unless one is named.", "", ""),
    entry(Function, "current_stream", "current_stream(device)", "The stream that work is queued on.", "", ""),
    entry(Function, "default_stream", "default_stream(device)", "The stream that is current unless a script says otherwise.", "", ""),
    entry(Function, "set_stream", "set_stream(stream)", "Makes a stream current, until further notice.", "", ""),
    entry(Function, "stream_barrier", "stream_barrier(streams)", "Each stream waits for all the others.", "", ""),
    entry(Function, "event", "event(timing: false)", "An event: a place in a stream's work that others can wait for.", "", ""),
    entry(Function, "set_float32_matmul_precision", "set_float32_matmul_precision(precision)",
        "How products of f32 matrices are computed on GPUs from now on: \"highest\" in f32 throughout, \"high\" and \"medium\" with factors that may be rounded to TF32 (10 bits of fraction), several times faster.",
        "set_float32_matmul_precision(\"high\"); get_float32_matmul_precision()", "high"),
    entry(Function, "get_float32_matmul_precision", "get_float32_matmul_precision()", "What `set_float32_matmul_precision` chose; \"highest\" at first.", "get_float32_matmul_precision()", "highest"),
    entry(Of("s"), "wait_stream", "wait_stream(other)", "Later work of `s` waits for all that `other` has now.", "", ""),
    entry(Of("s"), "wait_event", "wait_event(event)", "Later work of `s` waits for the event.", "", ""),
    entry(Of("s"), "record_event", "record_event(event)", "Records the event, or a new one, behind what `s` has now; gives it.", "", ""),
    entry(Of("s"), "query", "query()", "Whether all work of the stream, or what an event stands for, is done. Never raises.", "", ""),
    entry(Of("e"), "record", "record(stream)", "Records the event behind what a stream has now; the current stream without an argument.", "", ""),
    entry(Of("e"), "wait", "wait(stream)", "Later work of a stream waits for the event; the current stream without an argument.", "", ""),
    entry(Of("e"), "elapsed_time", "elapsed_time(stop)", "Milliseconds between two events made with `timing`.", "", ""),
    entry(Method, "record_stream", "record_stream(stream)", "Keeps the memory of `x` until what the stream has now is done.", "", ""),
    entry(PropertyOf("s"), "id", "id", "The stream's number on its device; 0 is the default one.", "", ""),
    entry(PropertyOf("s"), "priority", "priority", "0, or less for more urgent.", "", ""),
    entry(PropertyOf("e"), "timing", "timing", "Whether the event takes the time.", "", ""),
];

/// Functions of the module `cuda`, which needs no import. A `device` is an index, a name or a device; the current CUDA
/// device unless it is given.
#[rustfmt::skip]
pub const CUDA: &[Native] = &[
    entry(Function, "cuda::is_available", "is_available()", "Whether there is a CUDA device, real or simulated.", "cuda::is_available()", "false"),
    entry(Function, "cuda::device_count", "device_count()", "How many CUDA devices there are.", "cuda::device_count()", "0"),
    entry(Function, "cuda::current_device", "current_device()", "The index of the current CUDA device.", "", ""),
    entry(Function, "cuda::set_device", "set_device(device)", "Makes a CUDA device current, and leaves the default device as it is.", "", ""),
    entry(Function, "cuda::synchronize", "synchronize(device)", "Waits for all work of a device.", "", ""),
    entry(Function, "cuda::get_device_name", "get_device_name(device)", "What a device is called.", "", ""),
    entry(Function, "cuda::get_device_capability", "get_device_capability(device)", "The two numbers of its compute capability.", "", ""),
    entry(Function, "cuda::get_device_properties", "get_device_properties(device)", "A map of facts about a device.", "", ""),
    entry(Function, "cuda::can_device_access_peer", "can_device_access_peer(a, b)", "Whether device `a` can read the memory of `b`.", "", ""),
    entry(Function, "cuda::manual_seed", "manual_seed(seed)", "The same as `manual_seed`: a session has one generator.", "", ""),
    entry(Function, "cuda::manual_seed_all", "manual_seed_all(seed)", "The same as `manual_seed`.", "", ""),
    entry(Function, "cuda::mem_get_info", "mem_get_info(device)", "Free and total bytes of a device.", "", ""),
    entry(Function, "cuda::memory_allocated", "memory_allocated(device)", "Bytes that tensors hold.", "", ""),
    entry(Function, "cuda::max_memory_allocated", "max_memory_allocated(device)", "The most bytes that tensors held.", "", ""),
    entry(Function, "cuda::memory_reserved", "memory_reserved(device)", "Bytes that the session's cache holds.", "", ""),
    entry(Function, "cuda::max_memory_reserved", "max_memory_reserved(device)", "The most bytes that the session's cache held.", "", ""),
    entry(Function, "cuda::memory_cached", "memory_cached(device)", "The old name of `memory_reserved`.", "", ""),
    entry(Function, "cuda::max_memory_cached", "max_memory_cached(device)", "The old name of `max_memory_reserved`.", "", ""),
    entry(Function, "cuda::reset_peak_memory_stats", "reset_peak_memory_stats(device)", "Peaks start anew from what is held now.", "", ""),
    entry(Function, "cuda::reset_max_memory_allocated", "reset_max_memory_allocated(device)", "The same as `reset_peak_memory_stats`.", "", ""),
    entry(Function, "cuda::reset_max_memory_cached", "reset_max_memory_cached(device)", "The same as `reset_peak_memory_stats`.", "", ""),
    entry(Function, "cuda::reset_accumulated_memory_stats", "reset_accumulated_memory_stats(device)", "Sums over time start anew.", "", ""),
    entry(Function, "cuda::memory_stats", "memory_stats(device)", "Every number of the allocator, by PyTorch's names.", "", ""),
    entry(Function, "cuda::memory_summary", "memory_summary(device)", "The numbers of the allocator as a table.", "", ""),
    entry(Function, "cuda::memory_snapshot", "memory_snapshot(device)", "Every segment with its blocks.", "", ""),
    entry(Function, "cuda::empty_cache", "empty_cache()", "Gives cached memory that nothing uses back to the devices.", "", ""),
    entry(Function, "cuda::set_per_process_memory_fraction", "set_per_process_memory_fraction(fraction, device)", "The part of a device's memory that the session may take.", "", ""),
    entry(Function, "cuda::current_stream", "current_stream(device)", "The current stream of a device.", "", ""),
    entry(Function, "cuda::default_stream", "default_stream(device)", "The default stream of a device.", "", ""),
    entry(Function, "cuda::sleep", "sleep(ms)", "Keeps the current stream busy for so many milliseconds.", "", ""),
];
