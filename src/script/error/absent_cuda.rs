//! Names of `torch.cuda` that the module `cuda` does not have, with the reason or a replacement: as `absent.rs`, for
//! one module whose names mean other things elsewhere.

use super::absent::{Reasons, SCALER, SPARSE, TYPES, find};

const STORAGE: &str = "a tensor's memory belongs to the session; `x.data_ptr()` returns its address";
const TYPED: &str = "write `tensor(values, #{device: \"cuda\"})`, or `empty(size, #{device: \"cuda\"})`, with `dtype:` for other dtypes";
const GRAPHS: &str = "what repeats is replayed as a graph without being asked; there is nothing to capture";
const ALLOCATOR: &str =
    "there is one caching allocator; `cuda::empty_cache()` and `cuda::set_per_process_memory_fraction(f)` steer it";
const TRACE: &str = "`tscript run --profile trace.json` writes a trace with a row for each stream, and names lines";
const METERS: &str = "`nvidia-smi` shows such figures; `cuda::mem_get_info()` returns the free memory";
const LIBRARIES: &str = "libraries and kernels are chosen by the session; `tscript devices` says what was found";
const ERRORS: &str =
    "errors of a device are raised where their result is needed, with the line that queued it; `try` catches them";
const HANDLES: &str = "streams, events and blocks of other programs cannot be taken over by a script";
const WAITS: &str = "`tscript run --profile` lists each line that made the host wait, and how long";

const TABLE: Reasons = &[
    ("write `stream()`, or `stream(#{device: 1, priority: -1})`", &["Stream"]),
    ("a new stream is `stream()`; `with_stream(s) { .. }` makes one current", &["stream", "StreamContext", "streams"]),
    ("write `event()`, or `event(#{timing: true})`", &["Event"]),
    ("write `with_device(1) { .. }`", &["device"]),
    ("write `with_device(x.device) { .. }`", &["device_of"]),
    (
        "the session's generator is that of every device: `cuda::initial_seed()` is its seed; others are `generator()`",
        &["default_generators", "random"],
    ),
    ("streams have the priorities 0 to -5; lower is served first", &["priority_range"]),
    ("write `devices.map(|d| x.to(d))`", &["broadcast", "broadcast_coalesced"]),
    ("write `a + b.to(a.device)`", &["reduce_add", "reduce_add_coalesced"]),
    ("it is `nn::scatter(x, devices)`", &["scatter"]),
    ("it is `nn::gather(tensors, device)`", &["gather"]),
    ("functions of `torch.cuda` that tscript has are in `cuda` itself", &["comm", "memory"]),
    (TYPED, TYPES),
    (
        STORAGE,
        &[
            "FloatStorage",
            "DoubleStorage",
            "HalfStorage",
            "BFloat16Storage",
            "IntStorage",
            "LongStorage",
            "ShortStorage",
            "CharStorage",
            "ByteStorage",
            "BoolStorage",
            "ComplexFloatStorage",
            "ComplexDoubleStorage",
        ],
    ),
    (
        GRAPHS,
        &[
            "CUDAGraph",
            "graph",
            "graphs",
            "graph_pool_handle",
            "graph_annotations",
            "make_graphed_callables",
            "is_current_stream_capturing",
            "export_dot",
            "export_graph_data",
        ],
    ),
    (
        ALLOCATOR,
        &[
            "MemPool",
            "use_mem_pool",
            "CUDAPluggableAllocator",
            "change_current_allocator",
            "caching_allocator_alloc",
            "caching_allocator_delete",
            "caching_allocator_enable",
            "caching_allocator_disabled",
        ],
    ),
    (TRACE, &["nvtx", "profiler", "range_push", "range_pop", "mark", "range_start", "range_end"]),
    (
        METERS,
        &[
            "memory_usage",
            "device_memory_used",
            "utilization",
            "temperature",
            "power_draw",
            "clock_rate",
            "list_gpu_processes",
        ],
    ),
    (
        LIBRARIES,
        &[
            "current_blas_handle",
            "current_solver_handle",
            "get_arch_list",
            "get_gencode_flags",
            "cudart",
            "has_magma",
            "has_half",
            "tunable",
            "nccl",
            "cudaStatus",
            "GreenContext",
        ],
    ),
    (ERRORS, &["check_error", "CudaError", "DeferredCudaCallError", "OutOfMemoryError", "AcceleratorError"]),
    ("`elementwise(\"x, y -> z\", \"z = x * y + 1\")` makes element-wise functions for every device", &["jiterator"]),
    ("`autocast(\"cuda\") { .. }` is a block of the language", &["amp", "autocast"]),
    (SCALER, &["GradScaler"]),
    (HANDLES, &["ExternalStream", "get_stream_from_external", "ipc_collect"]),
    (WAITS, &["set_sync_debug_mode", "get_sync_debug_mode"]),
    (SPARSE, &["sparse"]),
];

/// Why a name of `torch.cuda`, or of one of its submodules, does not exist in `cuda`, or what to write instead.
pub fn reason(name: &str) -> Option<&'static str> {
    find(TABLE, name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::session::handle::Session;

    /// The public names of `torch.cuda` (PyTorch 2.15) exist, or their absence is explained; not both.
    #[test]
    fn names_of_torch_cuda_are_known_or_explained() {
        let text = include_str!("../../../tests/fixtures/names/names.json");
        let all: serde_json::Value = serde_json::from_str(text).expect("JSON");
        let session = Session::builder().build().expect("a session");
        let natives = session.host.natives.read();
        let mut wrong = Vec::new();
        for name in all["cuda"].as_array().expect("a list").iter().filter_map(|name| name.as_str()) {
            let there = natives.contains(format!("cuda::{name}").as_str());
            if there == reason(name).is_some() {
                wrong.push(name);
            }
        }
        assert!(wrong.is_empty(), "neither there nor explained, or both: {wrong:?}");
    }

    #[test]
    fn every_name_is_listed_once() {
        let mut names: Vec<&str> = TABLE.iter().flat_map(|(_, names)| *names).copied().collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
