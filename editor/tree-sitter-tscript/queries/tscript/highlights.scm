; Colors, by the names of Neovim. Editors differ in whether the first or the last pattern of a node holds: of two patterns that
; match one node, either is right.

; Names

((identifier) @variable.builtin
  (#any-of? @variable.builtin "this" "global"))

((identifier) @constant.builtin
  (#any-of? @constant.builtin "INF" "NAN" "PI" "E"))

((identifier) @constant
  (#match? @constant "^[A-Z][A-Z0-9_]+$"))

(const_declaration name: (identifier) @constant)

(parameters (identifier) @variable.parameter)
(closure_parameters (identifier) @variable.parameter)

(wildcard) @character.special

; Members, keys and modules

(member name: (identifier) @variable.member)
(entry key: (identifier) @property)
(field_pattern key: (identifier) @property)

; generated: properties
((member name: (identifier) @variable.member.builtin)
  (#any-of? @variable.member.builtin
    "H" "T" "_version" "batch_size" "data" "dataset" "device" "device_index" "drop_last" "dtype" "elapsed"
    "flags" "grad" "grad_fn" "groupindex" "groups" "id" "imag" "is_cpu" "is_cuda" "is_leaf" "is_pinned"
    "is_sparse" "is_sparse_csr" "itemsize" "layout" "mH" "mT" "nbytes" "ndim" "nnz" "numel" "pattern" "priority"
    "re" "real" "requires_grad" "retains_grad" "shape" "stream_id" "string" "timing" "type" "value"))
; end

(scoped_identifier path: (identifier) @module)
(import_statement alias: (identifier) @module)

; Functions

(function_definition receiver: (identifier) @type)
(function_definition name: (identifier) @function)
(let_declaration name: (identifier) @function value: (closure))

(call function: (identifier) @function.call)
(call function: (scoped_identifier name: (identifier) @function.call))
(method_call name: (identifier) @function.method.call)

; generated: operations and native functions
([
  (call function: (identifier) @function.builtin)
  (call function: (scoped_identifier name: (identifier) @function.builtin))
  (method_call name: (identifier) @function.builtin)]
  (#any-of? @function.builtin
    "_adadelta_step" "_adagrad_step" "_adam_step" "_adamax_step" "_asgd_step" "_clip_grad_norm"
    "_clip_grad_value" "_count_batch" "_dirichlet_sample" "_gamma_sample" "_indices" "_int_mm" "_lion_step"
    "_move_average" "_nadam_step" "_nnz" "_radam_step" "_recurrent" "_rmsprop_step" "_rprop_step" "_sgd_step"
    "_stored_step" "_unscale_grads" "_values" "abs" "abs_" "absolute" "absolute_" "acos" "acos_" "acosh" "acosh_"
    "adaptive_avg_pool1d" "adaptive_avg_pool2d" "adaptive_avg_pool3d" "adaptive_max_pool1d" "adaptive_max_pool2d"
    "adaptive_max_pool3d" "add" "add_" "add_module" "addbmm" "addbmm_" "addcdiv" "addcdiv_" "addcmul" "addcmul_"
    "addmm" "addmm_" "addmv" "addmv_" "addr" "addr_" "adjoint" "affine_grid" "airy_ai" "alias_copy" "all"
    "allclose" "alpha_dropout" "alpha_dropout_" "amax" "amin" "aminmax" "angle" "any" "append" "apply" "arange"
    "arccos" "arccos_" "arccosh" "arccosh_" "arcsin" "arcsin_" "arcsinh" "arcsinh_" "arctan" "arctan2" "arctan2_"
    "arctan_" "arctanh" "arctanh_" "are_deterministic_algorithms_enabled" "arg" "argmax" "argmin" "argsort"
    "argwhere" "as_strided" "as_strided_" "as_strided_copy" "as_strided_scatter" "as_tensor" "asarray" "asin"
    "asin_" "asinh" "asinh_" "assert" "atan" "atan2" "atan2_" "atan_" "atanh" "atanh_" "atleast_1d" "atleast_2d"
    "atleast_3d" "autocast" "avg_pool1d" "avg_pool2d" "avg_pool3d" "backward" "baddbmm" "baddbmm_" "bartlett"
    "bartlett_window" "batch_norm" "bernoulli" "bernoulli_" "bessel_j0" "bessel_j1" "bessel_y0" "bessel_y1"
    "bfloat16" "bilinear" "bin" "binary_cross_entropy" "binary_cross_entropy_with_logits" "bincount" "binomial"
    "bitwise_and" "bitwise_and_" "bitwise_left_shift" "bitwise_left_shift_" "bitwise_not" "bitwise_not_"
    "bitwise_or" "bitwise_or_" "bitwise_right_shift" "bitwise_right_shift_" "bitwise_xor" "bitwise_xor_"
    "blackman" "blackman_window" "blob" "block_diag" "bmm" "bool" "broadcast_shapes" "broadcast_tensors"
    "broadcast_to" "bucketize" "buffers" "byte" "can_cast" "can_device_access_peer" "capitalize" "cartesian_prod"
    "casefold" "cat" "category" "cauchy_" "ccol_indices" "cdist" "cdouble" "ceil" "ceil_" "cell" "celu" "celu_"
    "center" "cfloat" "chain_matmul" "channel_shuffle" "char" "chars" "chebyshev_polynomial_t"
    "chebyshev_polynomial_u" "chebyshev_polynomial_v" "chebyshev_polynomial_w" "checkpoint" "children" "cholesky"
    "cholesky_ex" "cholesky_inverse" "cholesky_solve" "chop" "chr" "chunk" "clamp" "clamp_" "clamp_max"
    "clamp_max_" "clamp_min" "clamp_min_" "class_name" "clear" "clear_autocast_cache" "clip" "clip_" "clone"
    "clone_state" "coalesce" "col_indices" "column_stack" "combinations" "combining" "compile" "complex" "concat"
    "concatenate" "cond" "conj" "conj_physical" "conj_physical_" "constant_pad_nd" "contains" "contiguous"
    "conv1d" "conv2d" "conv3d" "conv_transpose1d" "conv_transpose2d" "conv_transpose3d" "copy" "copy_" "copysign"
    "copysign_" "corrcoef" "cos" "cos_" "cosh" "cosh_" "cosine" "cosine_embedding_loss" "cosine_similarity"
    "count" "count_nonzero" "cov" "cpu" "crop" "cross" "cross_entropy" "crow_indices" "ctc_loss" "cuda" "cummax"
    "cummin" "cumprod" "cumprod_" "cumsum" "cumsum_" "cumulative_trapezoid" "current_device" "current_stream"
    "data_ptr" "decode" "dedup" "default_stream" "deg2rad" "deg2rad_" "dense_dim" "det" "detach" "detach_"
    "detect_anomaly" "device" "device_count" "diag" "diag_embed" "diagflat" "diagonal" "diagonal_copy"
    "diagonal_scatter" "diff" "difference" "digamma" "digamma_" "dim" "discard" "dist" "div" "div_" "divide"
    "divide_" "divmod" "dot" "double" "drain" "dropout" "dropout1d" "dropout1d_" "dropout2d" "dropout2d_"
    "dropout3d" "dropout3d_" "dropout_" "dsplit" "dstack" "eig" "eigh" "eigvals" "eigvalsh" "einsum"
    "elapsed_time" "element_size" "elementwise" "elu" "elu_" "embedding" "embedding_bag" "empty" "empty_cache"
    "empty_like" "enable_grad" "encode" "end" "ends_with" "endswith" "entr" "entr_" "enumerate" "eq" "eq_"
    "equal" "erf" "erf_" "erfc" "erfc_" "erfcx" "erfcx_" "erfinv" "erfinv_" "escape" "eval" "event" "exit" "exp"
    "exp2" "exp2_" "exp_" "expand" "expand_as" "expand_copy" "expandtabs" "expit" "expit_" "expm1" "expm1_"
    "exponential" "exponential_" "extend" "extra_repr" "extract" "eye" "feature_alpha_dropout"
    "feature_alpha_dropout_" "feature_dropout" "feature_dropout_" "fft" "fft2" "fftfreq" "fftn" "fftshift" "fill"
    "fill_" "fill_diagonal_" "fill_with" "filter" "find" "find_map" "findall" "finditer" "finfo" "fix" "fix_"
    "flag" "flatten" "flip" "fliplr" "flipud" "float" "float_power" "float_power_" "floor" "floor_"
    "floor_divide" "floor_divide_" "fmax" "fmin" "fmod" "fmod_" "fold" "for_each" "format" "frac" "frac_"
    "fractional_max_pool2d" "fractional_max_pool3d" "frexp" "full" "full_like" "fullmatch" "function"
    "functional_call" "gammainc" "gammainc_" "gammaincc" "gammaincc_" "gammaln" "gammaln_" "gather" "gaussian"
    "gaussian_nll_loss" "gcd" "gcd_" "ge" "ge_" "gelu" "general_cosine" "general_hamming" "generator"
    "geometric_" "geqrf" "ger" "get" "get_allocator_backend" "get_autocast_dtype" "get_buffer"
    "get_default_dtype" "get_device" "get_device_capability" "get_device_name" "get_device_properties"
    "get_float32_matmul_precision" "get_parameter" "get_per_process_memory_fraction" "get_rng_state"
    "get_rng_state_all" "get_state" "get_submodule" "glu" "grad" "grad_and_value" "gradient" "greater" "greater_"
    "greater_equal" "greater_equal_" "grid_sample" "grid_sampler" "grid_sampler_2d" "grid_sampler_3d" "group"
    "group_norm" "groupdict" "groups" "gt" "gt_" "gumbel_softmax" "half" "hamming" "hamming_window" "hann"
    "hann_window" "hardshrink" "hardsigmoid" "hardswish" "hardtanh" "hardtanh_" "heaviside" "heaviside_"
    "hermite_polynomial_h" "hermite_polynomial_he" "hessian" "hex" "hfft" "hfft2" "hfftn" "hinge_embedding_loss"
    "histc" "histogram" "histogramdd" "host_memory_stats" "host_memory_stats_as_nested_dict"
    "householder_product" "hsplit" "hstack" "huber_loss" "hypot" "hypot_" "i0" "i0_" "i0e" "i1" "i1_" "i1e"
    "ifft" "ifft2" "ifftn" "ifftshift" "igamma" "igamma_" "igammac" "igammac_" "ihfft" "ihfft2" "ihfftn" "iinfo"
    "imag" "index" "index_add" "index_add_" "index_copy" "index_copy_" "index_fill" "index_fill_" "index_of"
    "index_put" "index_put_" "index_reduce" "index_reduce_" "index_select" "indices" "inference_mode" "init"
    "initial_seed" "inner" "insert" "instance_norm" "int" "interpolate" "intersection" "inv" "inv_ex" "inverse"
    "irfft" "irfft2" "irfftn" "is_a" "is_autocast_cache_enabled" "is_autocast_enabled" "is_available"
    "is_bf16_supported" "is_coalesced" "is_complex" "is_conj" "is_contiguous" "is_empty" "is_even"
    "is_floating_point" "is_grad_enabled" "is_inference" "is_inference_mode_enabled" "is_initialized" "is_neg"
    "is_nonzero" "is_normalized" "is_odd" "is_same_size" "is_signed" "is_tensor" "is_tf32_supported" "is_zero"
    "isalnum" "isalpha" "isascii" "isclose" "isdecimal" "isdigit" "isdisjoint" "isfinite" "isidentifier" "isin"
    "isinf" "islower" "isnan" "isneginf" "isnumeric" "isposinf" "isprintable" "isreal" "isspace" "issubset"
    "issuperset" "istft" "istitle" "isupper" "item" "items" "jacfwd" "jacrev" "join" "jvp" "kaiser"
    "kaiser_window" "kernel" "keys" "kl_div" "kron" "kthvalue" "l1_loss" "laguerre_polynomial_l" "layer_norm"
    "lcm" "lcm_" "ldexp" "ldexp_" "le" "le_" "leaky_relu" "leaky_relu_" "legendre_polynomial_p" "len" "lerp"
    "lerp_" "less" "less_" "less_equal" "less_equal_" "lgamma" "lgamma_" "linear" "linear_cross_entropy"
    "linearize" "linspace" "list" "ljust" "ln" "load" "load_state_dict" "local_response_norm" "log" "log10"
    "log10_" "log1p" "log1p_" "log2" "log2_" "log_" "log_ndtr" "log_ndtr_" "log_normal_" "log_sigmoid"
    "log_softmax" "logaddexp" "logaddexp2" "logcumsumexp" "logdet" "logical_and" "logical_and_" "logical_not"
    "logical_not_" "logical_or" "logical_or_" "logical_xor" "logical_xor_" "logit" "logit_" "logsigmoid"
    "logspace" "logsumexp" "long" "lower" "lp_pool1d" "lp_pool2d" "lp_pool3d" "lstrip" "lstsq" "lt" "lt_" "lu"
    "lu_factor" "lu_factor_ex" "lu_solve" "lu_unpack" "make_lower" "make_upper" "manual_seed" "manual_seed_all"
    "map" "margin_ranking_loss" "mark_non_differentiable" "masked_fill" "masked_fill_" "masked_scatter"
    "masked_scatter_" "masked_select" "match" "matmul" "matrix_exp" "matrix_norm" "matrix_power" "matrix_rank"
    "matrix_sqrth" "max" "max_memory_allocated" "max_memory_cached" "max_memory_reserved" "max_pool1d"
    "max_pool2d" "max_pool3d" "max_unpool1d" "max_unpool2d" "max_unpool3d" "maximum" "mean" "median"
    "mem_get_info" "memory_allocated" "memory_cached" "memory_reserved" "memory_snapshot" "memory_stats"
    "memory_stats_as_nested_dict" "memory_summary" "meshgrid" "min" "minimum" "mish" "mixin" "mm" "mode"
    "modified_bessel_i0" "modified_bessel_i1" "modified_bessel_k0" "modified_bessel_k1" "modules" "moveaxis"
    "movedim" "mse_loss" "msort" "mul" "mul_" "multi_dot" "multi_head_attention_forward" "multi_margin_loss"
    "multigammaln" "multigammaln_" "multilabel_margin_loss" "multilabel_soft_margin_loss" "multinomial"
    "multiply" "multiply_" "mv" "mvlgamma" "mvlgamma_" "named_buffers" "named_children" "named_modules"
    "named_parameters" "nan_to_num" "nan_to_num_" "nanmean" "nanmedian" "nanquantile" "nansum" "narrow"
    "narrow_copy" "native_batch_norm" "native_channel_shuffle" "native_group_norm" "native_layer_norm"
    "ndimension" "ndtr" "ndtr_" "ndtri" "ndtri_" "ne" "ne_" "neg" "neg_" "negative" "negative_" "nelement"
    "new_empty" "new_full" "new_ones" "new_tensor" "new_zeros" "nextafter" "nextafter_" "nll_loss" "nll_loss2d"
    "no_grad" "nonzero" "nonzero_static" "norm" "normal" "normal_" "normalize" "not_equal" "not_equal_" "nuttall"
    "oct" "one_hot" "ones" "ones_like" "ord" "orgqr" "ormqr" "outer" "pad" "pairwise_distance" "parameters"
    "parse_float" "parse_int" "parse_json" "partition" "pca_lowrank" "pdist" "permute" "permute_copy"
    "pin_memory" "pinv" "pinverse" "pixel_shuffle" "pixel_unshuffle" "plot" "poisson" "poisson_nll_loss" "polar"
    "polygamma" "polygamma_" "pop" "positive" "pow" "pow_" "prelu" "print" "prod" "progress" "promote_types"
    "psi" "psi_" "push" "put" "put_" "qr" "quantile" "query" "rad2deg" "rad2deg_" "rand" "rand_like" "randint"
    "randint_like" "randn" "randn_like" "random_" "randperm" "range" "ravel" "real" "reciprocal" "reciprocal_"
    "record" "record_event" "record_stream" "reduce" "reduce_rev" "register_buffer" "register_forward_hook"
    "register_forward_pre_hook" "register_full_backward_hook" "register_full_backward_pre_hook" "register_hook"
    "register_load_state_dict_post_hook" "register_load_state_dict_pre_hook" "register_module"
    "register_parameter" "register_post_accumulate_grad_hook" "register_state_dict_post_hook"
    "register_state_dict_pre_hook" "relu" "relu6" "relu_" "remainder" "remainder_" "remove" "removeprefix"
    "removesuffix" "renorm" "renorm_" "repeat" "repeat_interleave" "replace" "repr" "requires_grad_"
    "reset_accumulated_host_memory_stats" "reset_accumulated_memory_stats" "reset_max_memory_allocated"
    "reset_max_memory_cached" "reset_peak_host_memory_stats" "reset_peak_memory_stats" "reshape" "reshape_as"
    "resolve_conj" "resolve_neg" "result_type" "retain" "retain_grad" "reverse" "reversed" "rfft" "rfft2"
    "rfftfreq" "rfftn" "rfind" "rindex" "rjust" "rms_norm" "roll" "rot90" "round" "round_" "row_indices"
    "row_stack" "rpartition" "rrelu" "rrelu_" "rsplit" "rsqrt" "rsqrt_" "rstrip" "rsub" "save"
    "save_for_backward" "scalar_tensor" "scaled_dot_product_attention" "scaled_modified_bessel_k0"
    "scaled_modified_bessel_k1" "scatter" "scatter_" "scatter_add" "scatter_add_" "scatter_reduce"
    "scatter_reduce_" "search" "searchsorted" "seed" "seed_all" "select" "select_copy" "select_scatter" "selu"
    "selu_" "set" "set_default_device" "set_default_dtype" "set_device" "set_float32_matmul_precision"
    "set_grad_enabled" "set_materialize_grads" "set_per_process_memory_fraction" "set_printoptions"
    "set_rng_state" "set_rng_state_all" "set_state" "set_stream" "set_submodule" "sgn" "sgn_" "shift"
    "shifted_chebyshev_polynomial_t" "shifted_chebyshev_polynomial_u" "shifted_chebyshev_polynomial_v"
    "shifted_chebyshev_polynomial_w" "short" "show" "sigmoid" "sigmoid_" "sign" "sign_" "signbit" "silu" "sin"
    "sin_" "sinc" "sinc_" "sinh" "sinh_" "size" "sleep" "slice" "slice_scatter" "slogdet" "smooth_l1_loss"
    "soft_margin_loss" "softmax" "softmin" "softplus" "softshrink" "softsign" "solve" "solve_ex"
    "solve_triangular" "some" "sort" "sorted" "span" "sparse_coo_tensor" "sparse_csc_tensor" "sparse_csr_tensor"
    "sparse_dim" "sparse_mask" "spherical_bessel_j0" "splice" "split" "split_copy" "split_rev" "split_with_sizes"
    "split_with_sizes_copy" "splitlines" "sqrt" "sqrt_" "square" "square_" "squeeze" "squeeze_" "squeeze_copy"
    "stack" "stack_module_state" "start" "starts_with" "startswith" "state_dict" "std" "std_mean" "stft"
    "storage_offset" "str" "stream" "stream_barrier" "stride" "strip" "sub" "sub_" "sub_string" "subn" "subtract"
    "subtract_" "sum" "sum_to_size" "svd" "svd_lowrank" "svdvals" "swapaxes" "swapaxes_" "swapcase" "swapdims"
    "swapdims_" "swish" "symmetric_difference" "synchronize" "t" "t_" "t_copy" "take" "take_along_dim" "tan"
    "tan_" "tanh" "tanh_" "tanhshrink" "tensor" "tensor_split" "tensordot" "tensorinv" "tensorsolve" "threshold"
    "threshold_" "tile" "timestamp" "title" "to" "to_array" "to_chars" "to_dense" "to_empty" "to_float" "to_int"
    "to_json" "to_lower" "to_sparse" "to_sparse_coo" "to_sparse_csc" "to_sparse_csr" "to_upper" "tolist" "topk"
    "trace" "train" "translate" "transpose" "transpose_" "transpose_copy" "trapezoid" "trapz" "triangular_solve"
    "tril" "tril_" "tril_indices" "trim" "triplet_margin_loss" "triplet_margin_with_distance_loss" "triu" "triu_"
    "triu_indices" "true_divide" "true_divide_" "trunc" "trunc_" "truncate" "type" "type_as" "type_of" "unbind"
    "unbind_copy" "unflatten" "unfold" "unfold_copy" "uniform_" "union" "unique" "unique_consecutive"
    "unravel_index" "unsafe_chunk" "unsafe_split" "unsafe_split_with_sizes" "unsqueeze" "unsqueeze_"
    "unsqueeze_copy" "update" "upper" "upsample" "upsample_bilinear" "upsample_nearest"
    "use_deterministic_algorithms" "values" "vander" "var" "var_mean" "vdot" "vecdot" "vector_norm" "view"
    "view_as" "view_as_complex" "view_as_real" "view_copy" "vjp" "vmap" "vsplit" "vstack" "wait" "wait_event"
    "wait_stream" "where" "xlog1py" "xlogy" "xlogy_" "zero_" "zero_grad" "zeros" "zeros_like" "zeta" "zfill"
    "zip"))
; end

(with_expression context: (identifier) @keyword)
(with_expression context: (call function: (identifier) @keyword))

; Literals

(string) @string
(raw_string) @string
(template) @string
(import_statement path: (string) @string.special.path)
(escape_sequence) @string.escape
(character) @character
(integer) @number
(float) @number.float
(boolean) @boolean
(format_spec) @string.special
(interpolation ["${" "}"] @punctuation.special)

; Comments

(line_comment) @comment @spell
(block_comment) @comment @spell
(doc_comment) @comment.documentation @spell
(shebang) @keyword.directive

; Words

["let" "const"] @keyword
"fn" @keyword.function
["private" "export"] @keyword.modifier
["import" "as"] @keyword.import
["if" "else" "switch"] @keyword.conditional
["for" "while" "loop" "do" "until" "break"] @keyword.repeat
(continue_statement) @keyword.repeat
"return" @keyword.return
["try" "catch" "throw"] @keyword.exception
["in" "!in"] @keyword.operator

; Operators and marks

(unary_expression operator: _ @operator)
(binary_expression operator: ["||" "&&" "==" "!=" "<" "<=" ">" ">=" "??" "|" "^" "&" "+" "-" "*" "/" "%" "@" "<<" ">>" "**"] @operator)
["=" "+=" "-=" "*=" "/=" "%=" "**=" "<<=" ">>=" "&=" "|=" "^=" ".." "..=" "=>"] @operator
(call "!" @operator)
(case_patterns "|" @operator)

["(" ")" "[" "]" "{" "}" "#{" "?["] @punctuation.bracket
(closure_parameters ["|" "||"] @punctuation.bracket)
["," ";" "::" ":" "." "?."] @punctuation.delimiter
