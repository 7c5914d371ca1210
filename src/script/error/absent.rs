//! Names of PyTorch that tscript does not have, with the reason in one sentence. Checked before suggestions: such a
//! name is not a misspelling of another.

const COMPLEX: &str = "of complex numbers there are c64 and c128, no halves";
pub(super) const SPARSE: &str = "sparse tensors are COO, CSR or CSC, without blocks: `sparse_coo_tensor`, `x.to_sparse()`, `x.to_sparse_csr()`, `x.to_sparse_csc()`, and products are `s @ x`";
const QUANTIZED: &str = "there are no quantized tensors; `x.to(\"i8\")` and a scale of your own are plain tensors";
const STORAGE: &str =
    "a tensor's memory belongs to the session; `view`, `as_strided`, `copy_` and `clone` say what is meant";
const HOOKS: &str = "hooks belong to one tensor or module: `x.register_hook(|g| ..)`, `m.register_forward_hook(|m, args, out| ..)`, \
    `m.register_forward_pre_hook(|m, args| ..)`, `m.register_full_backward_hook(|m, gi, go| ..)`";
const SAVED_HOOKS: &str =
    "what operations save has no hooks; `checkpoint(f, x)` computes it again instead of keeping it";
const RESULT_OF_FORWARD: &str = "`forward: |ctx, x| ..` does both: it computes, and keeps what backward needs by \
    `ctx.save_for_backward(x)` or as `ctx.k = 3`";
const COPIES: &str = "a copy of a view is the view with `.clone()` behind it: `x.detach().clone()`, `x[1..].clone()`";
const SUPPORT: &str =
    "a value outside of the support is an error of `log_prob`; `dist::biject_to(constraint)` leads into a set";
const CONTEXT: &str = "`ctx` has `save_for_backward`, `saved_tensors`, `needs_input_grad`, `mark_non_differentiable`, \
    `set_materialize_grads` and fields of your own: `ctx.k = 3`; results are new tensors, not changed arguments";
const COMPILED: &str = "operations are queued and fused without being asked; there is nothing to compile";
const CONTROL: &str =
    "`if`, `while` and `for` of the language work on values of tensors: `if loss.item() < 0.1 { .. }`";
const AUTOCAST: &str = "mixed precision is a block, which ends as it began: `autocast(\"cuda\", \"bf16\") { .. }`, and \
    `autocast(#{enabled: false}) { .. }` inside it";
pub(super) const SCALER: &str =
    "a scaler of gradients is `amp::grad_scaler()`, after `import \"amp\" as amp;`, on every device";
const DETERMINISM: &str =
    "`use_deterministic_algorithms(true)` is the switch; the same seed gives the same numbers on every device";
const THREADS: &str = "the pool of threads has one for each core of the machine";
const DEVICES: &str = "devices are the CPU and CUDA GPUs: `x.to(\"cuda:0\")`";
const ELEMENTWISE: &str =
    "a function of the script for each element would be slow; write it with operations on whole tensors";
const FUNCTIONAL_RNN: &str = "recurrent layers are modules: `nn::lstm`, `nn::gru`, `nn::rnn`, and their `_cell` forms";
const BACKENDS: &str = "operations have one name, whatever library runs them";
const NAMED: &str = "dimensions have numbers, not names";
const DERIVATIVES: &str =
    "`test::assert_gradients(f, [x])` compares gradients with differences, after `import \"test\" as test;`";
const LDL: &str = "indefinite matrices are solved by `solve`, or by `lu_factor` and `lu_solve`";

const TYPED: &str =
    "write `tensor(values)`, or `empty(size)`; `#{dtype: \"i64\", device: \"cuda\"}` says which dtype and where";
/// Those of `torch`, which are those of `torch.cuda` too.
pub(super) const TYPES: &[&str] = &[
    "FloatTensor",
    "DoubleTensor",
    "HalfTensor",
    "BFloat16Tensor",
    "IntTensor",
    "LongTensor",
    "ShortTensor",
    "CharTensor",
    "ByteTensor",
    "BoolTensor",
];

/// Names by reason.
pub(super) type Reasons = &'static [(&'static str, &'static [&'static str])];

/// The reason for a name in a table.
pub(super) fn find(table: Reasons, name: &str) -> Option<&'static str> {
    table.iter().find(|(_, names)| names.contains(&name)).map(|(reason, _)| *reason)
}

const TABLE: Reasons = &[
    (COMPLEX, &["chalf"]),
    (
        "eigenvalues of symmetric matrices come from `eigh(x)`, all at once; few of a large one from `svd_lowrank(x, q)`",
        &["symeig", "lobpcg"],
    ),
    (
        SPARSE,
        &[
            "sparse_bsr_tensor",
            "sparse_bsc_tensor",
            "sparse_compressed_tensor",
            "to_sparse_bsr",
            "to_sparse_bsc",
            "sparse_resize_",
            "smm",
            "sspaddmm",
            "hspmm",
            "spmm",
        ],
    ),
    (
        "batches of unequal length are padded: `nn::pad_sequence`, `nn::pack_padded_sequence`",
        &["to_padded_tensor", "is_nested", "nested", "nested_tensor", "as_nested_tensor", "nested_tensor_from_jagged"],
    ),
    (BACKENDS, &["to_mkldnn", "is_mkldnn"]),
    (
        QUANTIZED,
        &[
            "quantize_per_tensor",
            "quantize_per_channel",
            "quantize_per_tensor_dynamic",
            "dequantize",
            "int_repr",
            "q_scale",
            "q_zero_point",
            "q_per_channel_scales",
            "q_per_channel_zero_points",
            "q_per_channel_axis",
            "qscheme",
            "is_quantized",
            "fake_quantize_per_tensor_affine",
            "empty_quantized",
            "fake_quantize_per_channel_affine",
        ],
    ),
    (
        STORAGE,
        &[
            "storage",
            "untyped_storage",
            "storage_type",
            "set_",
            "resize",
            "resize_",
            "resize_as",
            "resize_as_",
            "share_memory_",
            "is_set_to",
            "empty_strided",
            "new_empty_strided",
            "empty_permuted",
            "dim_order",
            "const_data_ptr",
            "is_shared",
            "is_storage",
            "from_file",
            "frombuffer",
            "from_dlpack",
            "to_dlpack",
            "as_subclass",
        ],
    ),
    (
        HOOKS,
        &[
            "register_backward_hook",
            "register_module_forward_hook",
            "register_module_forward_pre_hook",
            "register_module_full_backward_hook",
            "register_multi_grad_hook",
            "register_prehook",
        ],
    ),
    ("a step of a policy is a loss of your own: `(-log_prob * reward).sum().backward()`", &["reinforce"]),
    (SAVED_HOOKS, &["saved_tensors_hooks", "save_on_cpu", "disable_saved_tensors_hooks", "GradientEdge"]),
    (CONTEXT, &["mark_dirty", "save_for_forward", "set_materialize_grad"]),
    (RESULT_OF_FORWARD, &["setup_context"]),
    (COPIES, &["slice_copy", "detach_copy", "view_as_real_copy", "view_as_complex_copy"]),
    (
        "the numbers that the session draws are put back by `let s = get_rng_state(); ..; set_rng_state(s);`, or drawn by a `generator()`",
        &["fork_rng"],
    ),
    (
        "constraints are those of what has them: `d.support`, `t.domain`, `t.codomain`; `dist::biject_to(d.support)` leads into one",
        &[
            "greater_than",
            "greater_than_eq",
            "less_than",
            "interval",
            "half_open_interval",
            "unit_interval",
            "real_vector",
            "simplex",
        ],
    ),
    (SUPPORT, &["arg_constraints", "set_default_validate_args"]),
    (
        "write `autograd::function(#{forward: |ctx, x| .., backward: |ctx, g| .., once_differentiable: true})`",
        &["once_differentiable"],
    ),
    ("write `generator()`, or `generator().manual_seed(42)`", &["Generator"]),
    ("write `data::random_sampler(dataset)`", &["RandomSampler"]),
    ("there are no worker processes: closures and modules of a script share the model as it is", &["share_memory"]),
    (
        "a mask is a tensor of `bool`: `x.masked_fill(mask, v)`, `x[mask]`, `where(mask, x, y)`",
        &["masked", "masked_tensor", "as_masked_tensor", "is_masked_tensor"],
    ),
    (
        "one script drives all GPUs of a machine: `nn::data_parallel(model)`, `x.to(\"cuda:1\")`; there are no processes to join",
        &[
            "distributed",
            "init_process_group",
            "all_reduce",
            "all_gather",
            "DistributedDataParallel",
            "multiprocessing",
        ],
    ),
    (
        "`tscript run --profile trace.json script.rhai` writes what ran when, for chrome://tracing or Perfetto",
        &["profiler", "record_function", "emit_nvtx", "emit_itt"],
    ),
    ("`save(\"model.safetensors\", model.state_dict())` writes what others read", &["onnx"]),
    ("weights are files of your own: `model.load_state_dict(load(\"model.safetensors\"))`", &["hub", "model_zoo"]),
    ("write `tensorboard::summary_writer(folder)`, after `import \"tensorboard\" as tensorboard;`", &["SummaryWriter"]),
    (
        "a tensor in a field of a module that is no parameter is a buffer: `nn::module(#{mean: zeros([3])})`, \
         `m.register_buffer(\"mean\", zeros([3]), #{persistent: false})`",
        &["Buffer"],
    ),
    (
        "layers that wait for their first input are `nn::lazy_linear(n)` and its kin",
        &["UninitializedParameter", "UninitializedBuffer"],
    ),
    (
        "write `scaled_dot_product_attention(q, k, v, mask)`, with a mask or bias of your own",
        &["flex_attention", "create_block_mask", "BlockMask"],
    ),
    ("write `type_of(x)`, or `x.dtype`", &["typename"]),
    ("numbers below the normal ones are kept, on every device", &["set_flush_denormal"]),
    ("call `checkpoint(f, x)` around each part of the layers", &["checkpoint_sequential"]),
    (
        "write `detect_anomaly { .. }` around the backward that is looked into",
        &["set_detect_anomaly", "set_anomaly_enabled", "is_anomaly_enabled"],
    ),
    ("write `max_pool1d(x, size, #{return_indices: true})`", &["max_pool1d_with_indices"]),
    ("write `max_pool2d(x, size, #{return_indices: true})`", &["max_pool2d_with_indices"]),
    ("write `max_pool3d(x, size, #{return_indices: true})`", &["max_pool3d_with_indices"]),
    (
        "write `adaptive_max_pool2d(x, size, #{return_indices: true})`, or the same of one or three dimensions",
        &["adaptive_max_pool1d_with_indices", "adaptive_max_pool2d_with_indices", "adaptive_max_pool3d_with_indices"],
    ),
    ("`embedding(x, weight, #{max_norm: 1.0})` scales the rows that it reads", &["embedding_renorm_"]),
    ("write `vector_norm(v, 2, dims, true)`, with all dims but one", &["norm_except_dim"]),
    ("there is no hash of a tensor; `equal(a, b)` compares two", &["hash_tensor"]),
    ("transforms take functions that change tensors in place as they are", &["functionalize"]),
    (
        "make the layers without running statistics: `nn::batch_norm2d(n, #{track_running_stats: false})`",
        &["replace_all_batch_norm_modules_"],
    ),
    (
        "a derivative along a tangent is `func::jvp(f, [x], [tangent])`: there are no dual tensors",
        &["forward_ad", "dual_level", "make_dual", "unpack_dual"],
    ),
    ("all derivatives of a function: `func::jacrev(f)(x)`, or `func::jacfwd(f)(x)`", &["jacobian"]),
    (
        "a product with the Hessian is `func::jvp(func::grad(f), [x], [v])`, an array of the gradient and of the product",
        &["hvp", "vhp"],
    ),
    (DERIVATIVES, &["gradcheck", "gradgradcheck"]),
    (COMPILED, &["compile", "jit", "script", "fork"]),
    (CONTROL, &["while_loop"]),
    (
        AUTOCAST,
        &[
            "set_autocast_enabled",
            "set_autocast_dtype",
            "set_autocast_cpu_enabled",
            "set_autocast_cpu_dtype",
            "set_autocast_gpu_dtype",
            "set_autocast_cache_enabled",
            "autocast_increment_nesting",
            "autocast_decrement_nesting",
        ],
    ),
    (
        "the driver's handles are not handed out; `s.id` numbers the streams of a device",
        &["cuda_stream", "cuda_event", "ipc_handle", "event_id"],
    ),
    (SCALER, &["GradScaler"]),
    (
        "`autograd::function` keeps the dtypes that it is given; `autocast(#{enabled: false}) { .. }` inside of `forward` \
         computes a part as it is written",
        &["custom_fwd", "custom_bwd"],
    ),
    (
        "write `is_autocast_enabled(\"cpu\")`, `get_autocast_dtype(\"cuda\")`",
        &["is_autocast_cpu_enabled", "get_autocast_cpu_dtype", "get_autocast_gpu_dtype"],
    ),
    ("autocast is there for \"cpu\" and \"cuda\", with \"bf16\" and \"f16\"", &["is_autocast_available"]),
    (
        DETERMINISM,
        &[
            "set_deterministic_debug_mode",
            "get_deterministic_debug_mode",
            "is_deterministic_algorithms_warn_only_enabled",
        ],
    ),
    (THREADS, &["set_num_threads", "get_num_threads", "set_num_interop_threads", "get_num_interop_threads"]),
    (
        DEVICES,
        &[
            "mps",
            "xpu",
            "ipu",
            "hpu",
            "mtia",
            "is_mps",
            "is_xpu",
            "is_ipu",
            "is_mtia",
            "is_meta",
            "is_vulkan",
            "is_xla",
            "is_maia",
        ],
    ),
    (ELEMENTWISE, &["apply_", "map_", "map2_"]),
    (
        FUNCTIONAL_RNN,
        &["lstm", "gru", "rnn_tanh", "rnn_relu", "lstm_cell", "gru_cell", "rnn_tanh_cell", "rnn_relu_cell"],
    ),
    (
        BACKENDS,
        &[
            "convolution",
            "conv_tbc",
            "cudnn_convolution",
            "cudnn_batch_norm",
            "cudnn_is_acceptable",
            "mkldnn_convolution",
            "native_dropout",
            "native_norm",
            "batch_norm_stats",
            "scaled_mm",
            "grouped_mm",
        ],
    ),
    (NAMED, &["names", "rename", "rename_", "refine_names", "align_to", "align_as", "has_names", "name"]),
    (LDL, &["ldl_factor", "ldl_factor_ex", "ldl_solve"]),
    ("write `norm(x, \"nuc\")`", &["nuclear_norm"]),
    ("write `norm(x, \"fro\")`", &["frobenius_norm"]),
    ("write `x.to_array()` for nested arrays, or `save(\"x.npy\", x)`", &["numpy", "from_numpy"]),
    ("write `x.new_tensor(values)`, or `x.new_empty(size)`", &["new"]),
    (TYPED, &["Tensor"]),
    (TYPED, TYPES),
    ("write `x[..]` with tensors inside, or `x.index_select(dim, index)`", &["index"]),
    ("write `data::loader(dataset, batch_size, shuffle)`", &["DataLoader"]),
    ("write `data::tensors(x, y)`, or a map of tensors", &["TensorDataset"]),
    ("a dataset is `data::from_fn(n, |i| ...)`, or a map with `len` and `get`", &["Dataset"]),
    ("write `data::concat([a, b])`", &["ConcatDataset", "ChainDataset"]),
    ("write `data::from_fn(n, |i| ...)`: rows have numbers, so that they can be shuffled", &["IterableDataset"]),
    ("write an array or a map of tensors, whose batches have the same names", &["StackDataset"]),
    (
        "write `shuffle: true`, `sampler: data::random_sampler(dataset)` or `data::subset_sampler(rows)`",
        &["SubsetRandomSampler"],
    ),
    ("rows come in their order unless `shuffle` or `sampler` says otherwise", &["SequentialSampler"]),
    ("write `batch_sampler: [[0, 1], [2]]`, an array with the row numbers of each batch", &["BatchSampler"]),
    ("one script drives all GPUs: `nn::data_parallel(model)` splits the batches", &["DistributedSampler"]),
    ("a loader's thread runs no script code: there is no worker to ask about", &["get_worker_info"]),
    ("write `data::weighted_sampler(weights, n)`", &["WeightedRandomSampler"]),
    ("write `data::image_folder(path)`", &["ImageFolder"]),
    ("write `nn::module(#{layer: nn::linear(2, 3), forward: |x| this.layer.forward(x)})`", &["Module", "Container"]),
    ("write `nn::local_response_norm(size)`", &["CrossMapLRN2d"]),
    ("write `nn::nll_loss()`, which takes images too", &["NLLLoss2d"]),
    ("write `nn::batch_norm2d(n)`; `nn::data_parallel` keeps the statistics of each device apart", &["SyncBatchNorm"]),
    ("write `nn::lstm`, `nn::gru` or `nn::rnn`", &["RNNBase", "RNNCellBase"]),
    (
        "there are no classes to inherit from: an optimizer of your own is a loop over `model.parameters()`",
        &["Optimizer"],
    ),
    ("there are no classes to inherit from: write `optim::lambda_lr(opt, |step| ...)`", &["LRScheduler"]),
    (
        "`nn::weight_norm` and `nn::spectral_norm` are parametrizations: write `nn::remove_parametrizations(m, \"weight\")`",
        &["remove_weight_norm", "remove_spectral_norm"],
    ),
    ("write `nn::clip_grad_norm_(parameters, max_norm)`", &["clip_grad_norm"]),
    (
        "write `nn::fuse_conv_bn_eval(conv, bn)` or `nn::fuse_linear_bn_eval(linear, bn)`",
        &["fuse_conv_bn_weights", "fuse_linear_bn_weights"],
    ),
    (
        "kernels choose the order of memory themselves",
        &["convert_conv2d_weight_memory_format", "convert_conv3d_weight_memory_format"],
    ),
    ("parameters are drawn when a module is made; functions such as `nn::zeros_(w)` write others", &["skip_init"]),
    (
        "`m.parametrizations.weight` is the list; a weight that is read several times is kept by `let w = m.weight;`",
        &["ParametrizationList", "cached"],
    ),
    ("`m.copy()` is a module with the same parametrizations", &["transfer_parametrizations_and_params"]),
    ("a parametrized module stays of its type", &["type_before_parametrizations"]),
    (
        "there are no classes to inherit from: `prune::custom_from_mask(m, \"weight\", mask)` prunes by any rule",
        &["BasePruningMethod", "PruningContainer"],
    ),
    (
        "there are no classes to inherit from: a distribution of your own is a map or module with closures `sample` and \
         `log_prob`",
        &["Distribution", "ExponentialFamily", "Transform"],
    ),
    ("a formula of your own is a function; `dist::kl_divergence` knows PyTorch's pairs", &["register_kl"]),
    ("write `dist::compose_transform([])`", &["identity_transform"]),
    ("write `grad_fn`, or look at `requires_grad`", &["output_nr", "grad_dtype", "volatile"]),
    ("write `set_default_dtype(\"f64\")`", &["set_default_tensor_type"]),
    ("write `current_device()`", &["get_default_device"]),
    ("modules run without being traced, so there is no graph to write", &["add_graph"]),
    ("write `scatter_reduce`, or `index_reduce` with the segment of each row", &["segment_reduce"]),
];

/// Why a name of PyTorch does not exist, or what to write instead. Capitalized names also match in lower case, as the
/// library's names are: `optim::optimizer`.
pub fn reason(name: &str) -> Option<&'static str> {
    let plain = |name: &str| name.replace('_', "").to_lowercase();
    let in_small = |known: &&str| known.starts_with(char::is_uppercase) && plain(known) == plain(name);
    find(TABLE, name).or_else(|| TABLE.iter().find(|(_, names)| names.iter().any(in_small)).map(|(reason, _)| *reason))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::manual;
    use crate::script::session::handle::Session;

    /// Existing names must not be in the table.
    #[test]
    fn no_listed_name_exists() {
        let session = Session::builder().build().expect("a session");
        let natives = session.host.natives.read();
        let known = &session.host.known().properties;
        // `index` is a method of strings and arrays, and none of tensors.
        for name in TABLE.iter().flat_map(|(_, names)| *names).filter(|name| **name != "index") {
            assert!(!natives.contains(*name), "the function `{name}` exists");
            assert!(!known.iter().any(|property| property == name), "the property `{name}` exists");
        }
    }

    #[test]
    fn every_name_is_listed_once() {
        let mut names: Vec<&str> = TABLE.iter().flat_map(|(_, names)| *names).copied().collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    /// Every name of PyTorch exists, or its absence is explained. The list: `tests/fixtures/names`.
    #[test]
    fn names_of_torch_are_known_or_explained() {
        let text = include_str!("../../../tests/fixtures/names/names.json");
        let all: serde_json::Value = serde_json::from_str(text).expect("JSON");
        let session = Session::builder().build().expect("a session");
        let natives = session.host.natives.read();
        let properties = &session.host.known().properties;
        let plain = |name: &str| name.replace('_', "").to_lowercase();
        let in_library = |module: &str, name: &str| {
            manual::functions(module).iter().any(|function| plain(&function.name) == plain(name))
        };
        let mut missing = Vec::new();
        for (kind, names) in all.as_object().expect("a map") {
            for name in names.as_array().expect("a list").iter().filter_map(|name| name.as_str()) {
                let there = match kind.as_str() {
                    // Advice leads from `vmap` to `func::vmap`.
                    "functions" => natives.contains(name) || manual::native(&format!("func::{name}")).is_some(),
                    "members" => natives.contains(name) || properties.iter().any(|known| known == name),
                    "modules" | "initializers" | "utilities" => in_library("nn", name),
                    "pruning" => in_library("prune", name),
                    "amp" => natives.contains(name) || in_library("amp", name),
                    "distributions" => in_library("distributions", name),
                    // `absent_cuda.rs` handles these.
                    "cuda" => true,
                    _ => in_library("optim", name),
                };
                if !there && reason(name).is_none() {
                    missing.push(format!("{kind} {name}"));
                }
            }
        }
        assert!(missing.is_empty(), "neither there nor explained: {missing:?}");
    }
}
