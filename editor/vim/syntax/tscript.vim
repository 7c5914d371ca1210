" Colours for tscript: Rhai with tensors.
if exists("b:current_syntax")
  finish
endif

syntax match   tscriptCall        "\<[A-Za-z_][A-Za-z0-9_]*\ze\s*("
syntax match   tscriptModule      "\<[A-Za-z_][A-Za-z0-9_]*\ze\s*::"
syntax match   tscriptKey         "\%([{,]\|^\)\@<=\s*[A-Za-z_][A-Za-z0-9_]*\ze\s*:\%(:\)\@!"
syntax match   tscriptOperator    "[-+*/%@&|^!<>=?]\+\|\.\.=\?"
syntax match   tscriptNumber      "\<\d[0-9_]*\%(\.\d[0-9_]*\)\?\%([eE][+-]\?\d\+\)\?\>"
syntax match   tscriptNumber      "\<0[xX][0-9A-Fa-f_]\+\>\|\<0[oO][0-7_]\+\>\|\<0[bB][01_]\+\>"

syntax keyword tscriptConditional if else switch
syntax keyword tscriptRepeat      while until loop do for in
syntax keyword tscriptStatement   break continue return throw try catch
syntax keyword tscriptInclude     import export as
syntax keyword tscriptDefine      let const fn private
syntax keyword tscriptDevice      with_device with_stream
syntax keyword tscriptConstant    true false this global INF NAN PI E

" generated: operations and native functions
syntax match   tscriptOperation   "\<\%(_adagrad_step\|_adam_step\|_clip_grad_norm\|_clip_grad_value\|_lion_step\|_rmsprop_step\|_sgd_step\|abs\|abs_\|absolute\|absolute_\|acos\|acos_\|acosh\|acosh_\|adaptive_avg_pool1d\|adaptive_avg_pool2d\|adaptive_avg_pool3d\|adaptive_max_pool1d\|adaptive_max_pool2d\|adaptive_max_pool3d\|add\|add_\|addbmm\|addbmm_\|addcdiv\|addcdiv_\|addcmul\|addcmul_\|addmm\|addmm_\|addmv\|addmv_\|addr\|addr_\|adjoint\|affine_grid\|airy_ai\|alias_copy\|all\|allclose\|alpha_dropout\|alpha_dropout_\|amax\|amin\|aminmax\|any\|arange\|arccos\|arccos_\|arccosh\|arccosh_\|arcsin\|arcsin_\|arcsinh\|arcsinh_\|arctan\|arctan2\|arctan2_\|arctan_\|arctanh\|arctanh_\|arg\|argmax\|argmin\|argsort\|argwhere\|as_strided\|as_strided_\|as_strided_copy\|as_strided_scatter\|asin\|asin_\|asinh\|asinh_\|atan\|atan2\|atan2_\|atan_\|atanh\|atanh_\|atleast_1d\|atleast_2d\|atleast_3d\|avg_pool1d\|avg_pool2d\|avg_pool3d\|backward\|baddbmm\|baddbmm_\|batch_norm\|bernoulli\|bernoulli_\|bessel_j0\|bessel_j1\|bessel_y0\|bessel_y1\|bfloat16\|bilinear\|binary_cross_entropy\|binary_cross_entropy_with_logits\|bincount\|bitwise_and\|bitwise_and_\|bitwise_left_shift\|bitwise_left_shift_\|bitwise_not\|bitwise_not_\|bitwise_or\|bitwise_or_\|bitwise_right_shift\|bitwise_right_shift_\|bitwise_xor\|bitwise_xor_\|block_diag\|bmm\|bool\|broadcast_tensors\|broadcast_to\|bucketize\|buffers\|byte\|can_device_access_peer\|cartesian_prod\|cat\|cauchy_\|cdist\|ceil\|ceil_\|cell\|celu\|celu_\|chain_matmul\|channel_shuffle\|char\|chebyshev_polynomial_t\|chebyshev_polynomial_u\|chebyshev_polynomial_v\|chebyshev_polynomial_w\|cholesky\|cholesky_ex\|cholesky_inverse\|cholesky_solve\|chunk\|clamp\|clamp_\|clamp_max\|clamp_max_\|clamp_min\|clamp_min_\|clip\|clip_\|clone\|column_stack\|combinations\|concat\|concatenate\|cond\|constant_pad_nd\|contiguous\|conv1d\|conv2d\|conv3d\|conv_transpose1d\|conv_transpose2d\|conv_transpose3d\|copy_\|copysign\|copysign_\|corrcoef\|cos\|cos_\|cosh\|cosh_\|cosine_embedding_loss\|cosine_similarity\|count_nonzero\|cov\|cpu\|cross\|cross_entropy\|ctc_loss\|cuda\|cummax\|cummin\|cumprod\|cumprod_\|cumsum\|cumsum_\|cumulative_trapezoid\|current_device\|current_stream\|data_ptr\|default_stream\|deg2rad\|deg2rad_\|det\|detach\|device\|device_count\|diag\|diag_embed\|diagflat\|diagonal\|diagonal_copy\|diagonal_scatter\|diff\|digamma\|digamma_\|dist\|div\|div_\|divide\|divide_\|dot\|double\|dropout\|dropout1d\|dropout1d_\|dropout2d\|dropout2d_\|dropout3d\|dropout3d_\|dropout_\|dsplit\|dstack\|eigh\|eigvalsh\|einsum\|elapsed_time\|element_size\|elu\|elu_\|embedding\|embedding_bag\|empty\|empty_cache\|empty_like\|enable_grad\|entr\|entr_\|eq\|eq_\|equal\|erf\|erf_\|erfc\|erfc_\|erfcx\|erfcx_\|erfinv\|erfinv_\|eval\|event\|exp\|exp2\|exp2_\|exp_\|expand\|expand_as\|expand_copy\|expit\|expit_\|expm1\|expm1_\|exponential_\|eye\|feature_dropout\|feature_dropout_\|fill\|fill_\|fill_diagonal_\|fix\|fix_\|flag\|flatten\|flip\|fliplr\|flipud\|float\|float_power\|float_power_\|floor\|floor_\|floor_divide\|floor_divide_\|fmax\|fmin\|fmod\|fmod_\|fold\|frac\|frac_\|frexp\|full\|full_like\|gammainc\|gammainc_\|gammaincc\|gammaincc_\|gammaln\|gammaln_\|gather\|gaussian_nll_loss\|gcd\|gcd_\|ge\|ge_\|gelu\|geometric_\|ger\|get\|get_default_dtype\|get_device_capability\|get_device_name\|get_device_properties\|glu\|grad\|greater\|greater_\|greater_equal\|greater_equal_\|grid_sample\|grid_sampler\|grid_sampler_2d\|grid_sampler_3d\|group_norm\|gt\|gt_\|gumbel_softmax\|half\|hardshrink\|hardsigmoid\|hardswish\|hardtanh\|hardtanh_\|heaviside\|heaviside_\|hermite_polynomial_h\|hermite_polynomial_he\|hinge_embedding_loss\|histc\|hsplit\|hstack\|huber_loss\|hypot\|hypot_\|i0\|i0_\|i0e\|i1\|i1_\|i1e\|igamma\|igamma_\|igammac\|igammac_\|index_add\|index_add_\|index_copy\|index_copy_\|index_fill\|index_fill_\|index_put\|index_put_\|index_reduce\|index_reduce_\|index_select\|inner\|instance_norm\|int\|interpolate\|inv\|inv_ex\|inverse\|is_available\|is_contiguous\|is_floating_point\|is_grad_enabled\|isclose\|isfinite\|isin\|isinf\|isnan\|isneginf\|isposinf\|isreal\|item\|kl_div\|kron\|kthvalue\|l1_loss\|laguerre_polynomial_l\|layer_norm\|lcm\|lcm_\|ldexp\|ldexp_\|le\|le_\|leaky_relu\|leaky_relu_\|legendre_polynomial_p\|len\|lerp\|lerp_\|less\|less_\|less_equal\|less_equal_\|lgamma\|lgamma_\|linear\|linspace\|load\|load_state_dict\|local_response_norm\|log\|log10\|log10_\|log1p\|log1p_\|log2\|log2_\|log_\|log_ndtr\|log_ndtr_\|log_normal_\|log_sigmoid\|log_softmax\|logaddexp\|logaddexp2\|logcumsumexp\|logdet\|logical_and\|logical_and_\|logical_not\|logical_not_\|logical_or\|logical_or_\|logical_xor\|logical_xor_\|logit\|logit_\|logsigmoid\|logspace\|logsumexp\|long\|lp_pool1d\|lp_pool2d\|lp_pool3d\|lstsq\|lt\|lt_\|lu\|lu_factor\|lu_factor_ex\|lu_solve\|lu_unpack\|manual_seed\|manual_seed_all\|margin_ranking_loss\|masked_fill\|masked_fill_\|masked_scatter\|masked_scatter_\|masked_select\|matmul\|matrix_exp\|matrix_norm\|matrix_power\|matrix_rank\|max\|max_memory_allocated\|max_memory_cached\|max_memory_reserved\|max_pool1d\|max_pool2d\|max_pool3d\|max_unpool1d\|max_unpool2d\|max_unpool3d\|maximum\|mean\|median\|mem_get_info\|memory_allocated\|memory_cached\|memory_reserved\|memory_snapshot\|memory_stats\|memory_summary\|meshgrid\|min\|minimum\|mish\|mm\|mode\|modified_bessel_i0\|modified_bessel_i1\|modified_bessel_k0\|modified_bessel_k1\|modules\|moveaxis\|movedim\|mse_loss\|msort\|mul\|mul_\|multi_dot\|multi_margin_loss\|multigammaln\|multigammaln_\|multilabel_margin_loss\|multilabel_soft_margin_loss\|multinomial\|multiply\|multiply_\|mv\|mvlgamma\|mvlgamma_\|named_buffers\|named_parameters\|nan_to_num\|nan_to_num_\|nanmean\|nanmedian\|nanquantile\|nansum\|narrow\|narrow_copy\|native_channel_shuffle\|ndtr\|ndtr_\|ndtri\|ndtri_\|ne\|ne_\|neg\|neg_\|negative\|negative_\|new_empty\|new_full\|new_ones\|new_tensor\|new_zeros\|nextafter\|nextafter_\|nll_loss\|nll_loss2d\|no_grad\|nonzero\|nonzero_static\|norm\|normal\|normal_\|normalize\|not_equal\|not_equal_\|one_hot\|ones\|ones_like\|outer\|pad\|pairwise_distance\|parameters\|permute\|permute_copy\|pinv\|pinverse\|pixel_shuffle\|pixel_unshuffle\|plot\|poisson_nll_loss\|polygamma\|positive\|pow\|pow_\|prelu\|print\|prod\|progress\|psi\|psi_\|put\|put_\|qr\|quantile\|query\|rad2deg\|rad2deg_\|rand\|rand_like\|randint\|randint_like\|randn\|randn_like\|random_\|randperm\|ravel\|reciprocal\|reciprocal_\|record\|record_event\|record_stream\|relu\|relu6\|relu_\|remainder\|remainder_\|renorm\|renorm_\|repeat\|repeat_interleave\|requires_grad_\|reset_accumulated_memory_stats\|reset_max_memory_allocated\|reset_max_memory_cached\|reset_peak_memory_stats\|reshape\|reshape_as\|retain_grad\|rms_norm\|roll\|rot90\|round\|round_\|row_stack\|rrelu\|rrelu_\|rsqrt\|rsqrt_\|rsub\|save\|scalar_tensor\|scaled_dot_product_attention\|scaled_modified_bessel_k0\|scaled_modified_bessel_k1\|scatter\|scatter_\|scatter_add\|scatter_add_\|scatter_reduce\|scatter_reduce_\|searchsorted\|select\|select_copy\|select_scatter\|selu\|selu_\|set\|set_default_device\|set_default_dtype\|set_device\|set_per_process_memory_fraction\|set_stream\|sgn\|sgn_\|shifted_chebyshev_polynomial_t\|shifted_chebyshev_polynomial_u\|shifted_chebyshev_polynomial_v\|shifted_chebyshev_polynomial_w\|short\|show\|sigmoid\|sigmoid_\|sign\|sign_\|signbit\|silu\|sin\|sin_\|sinc\|sinc_\|sinh\|sinh_\|sleep\|slice\|slice_scatter\|slogdet\|smooth_l1_loss\|soft_margin_loss\|softmax\|softmin\|softplus\|softshrink\|softsign\|solve\|solve_ex\|solve_triangular\|sort\|spherical_bessel_j0\|split\|split_copy\|split_with_sizes\|split_with_sizes_copy\|sqrt\|sqrt_\|square\|square_\|squeeze\|squeeze_\|squeeze_copy\|stack\|state_dict\|std\|std_mean\|storage_offset\|stream\|stream_barrier\|stride\|sub\|sub_\|subtract\|subtract_\|sum\|sum_to_size\|svd\|svdvals\|swapaxes\|swapaxes_\|swapdims\|swapdims_\|swish\|synchronize\|t\|t_\|t_copy\|take\|take_along_dim\|tan\|tan_\|tanh\|tanh_\|tanhshrink\|tensor\|tensor_split\|tensordot\|tensorinv\|tensorsolve\|threshold\|threshold_\|tile\|to\|to_array\|tolist\|topk\|trace\|train\|transpose\|transpose_\|transpose_copy\|trapezoid\|trapz\|triangular_solve\|tril\|tril_\|tril_indices\|triplet_margin_loss\|triu\|triu_\|triu_indices\|true_divide\|true_divide_\|trunc\|trunc_\|type\|type_as\|unbind\|unbind_copy\|unflatten\|unfold\|unfold_copy\|uniform_\|unique\|unique_consecutive\|unsafe_chunk\|unsafe_split\|unsafe_split_with_sizes\|unsqueeze\|unsqueeze_\|unsqueeze_copy\|upsample\|vander\|var\|var_mean\|vdot\|vecdot\|vector_norm\|view\|view_as\|view_copy\|vsplit\|vstack\|wait\|wait_event\|wait_stream\|where\|xlog1py\|xlogy\|xlogy_\|zero_\|zero_grad\|zeros\|zeros_like\|zeta\)\>\ze\s*("
" end
" generated: properties
syntax match   tscriptProperty    "\.\@<=\%(H\|T\|device\|dtype\|grad\|id\|is_cuda\|is_leaf\|is_pinned\|mH\|mT\|ndim\|numel\|priority\|requires_grad\|shape\|timing\)\>"
" end

syntax match   tscriptEscape      "\\\%(x\x\{2}\|u\x\{4}\|U\x\{8}\|.\)" contained
syntax region  tscriptString      start=+"+ skip=+\\.+ end=+"+ end=+$+ contains=tscriptEscape
syntax region  tscriptString      start=+\z(#\+\)"+ end=+"\z1+
syntax region  tscriptString      start=+`+ end=+`+ contains=tscriptInside
syntax region  tscriptInside      start=+\${+ end=+}+ contained contains=TOP
syntax match   tscriptString      "'\%(\\.[0-9A-Fa-f]*\|[^'\\]\)'"
syntax keyword tscriptTodo        TODO FIXME XXX contained
syntax match   tscriptComment     "//.*$" contains=tscriptTodo,@Spell
syntax region  tscriptComment     start="/\*" end="\*/" contains=tscriptComment,tscriptTodo,@Spell
syntax match   tscriptDoc         "//[/!].*$" contains=@Spell
syntax match   tscriptShebang     "\%^#!.*"

highlight default link tscriptCall        Function
highlight default link tscriptOperation   Identifier
highlight default link tscriptProperty    Type
highlight default link tscriptModule      Structure
highlight default link tscriptKey         Label
highlight default link tscriptOperator    Operator
highlight default link tscriptNumber      Number
highlight default link tscriptConditional Conditional
highlight default link tscriptRepeat      Repeat
highlight default link tscriptStatement   Statement
highlight default link tscriptInclude     Include
highlight default link tscriptDefine      Keyword
highlight default link tscriptDevice      Statement
highlight default link tscriptConstant    Constant
highlight default link tscriptString      String
highlight default link tscriptEscape      SpecialChar
highlight default link tscriptComment     Comment
highlight default link tscriptDoc         SpecialComment
highlight default link tscriptShebang     PreProc
highlight default link tscriptTodo        Todo

let b:current_syntax = "tscript"
