//! Which dtypes operations compute in under autocast: PyTorch's lists for the CPU and for CUDA. An operation that is in
//! none takes its operands as they are.
//!
//! Where PyTorch's list has the parts of a function that is one row here, the row stands for what these parts give.

use crate::op::row::Op;
use crate::op::table;
use std::collections::HashMap;
use std::sync::OnceLock;

/// What happens to the operands that are f32 or have 16 bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Policy {
    /// They become the 16-bit dtype of the region.
    Low,
    /// They become f32, unless the call says the result's dtype.
    F32,
    /// They become f32, unless the call gives a parameter this text.
    F32Unless(&'static str, &'static str),
    /// They become f32 if one of them is, otherwise the 16-bit dtype.
    Widest,
    /// Nothing; the rows of which the operation is composed have their own.
    Parts,
    /// The call is an error.
    Refused,
}

/// A policy, and the rows that have it.
type List = (Policy, &'static [&'static str]);

const BOTH: &[List] = &[
    (
        Policy::Low,
        &[
            "conv1d",
            "conv2d",
            "conv3d",
            "conv_transpose1d",
            "conv_transpose2d",
            "conv_transpose3d",
            "prelu",
            "addmm",
            "matmul",
            "mm",
            "bmm",
            "linear",
            "addbmm",
            "baddbmm",
            "vecdot",
            "chain_matmul",
            "multi_dot",
            "scaled_dot_product_attention",
        ],
    ),
    (
        Policy::F32,
        &[
            "prod",
            "cdist",
            "local_response_norm",
            "cross_entropy",
            "nll_loss",
            "mse_loss",
            "l1_loss",
            "smooth_l1_loss",
            "huber_loss",
            "kl_div",
            "poisson_nll_loss",
            "cosine_embedding_loss",
            "hinge_embedding_loss",
            "margin_ranking_loss",
            "soft_margin_loss",
            "triplet_margin_loss",
            "multi_margin_loss",
            "multilabel_margin_loss",
            "binary_cross_entropy_with_logits",
            // Spectra have no 16-bit form.
            "fft::fft",
            "fft::ifft",
            "fft::rfft",
            "fft::irfft",
            "fft::hfft",
            "fft::ihfft",
            "fft::fft2",
            "fft::ifft2",
            "fft::rfft2",
            "fft::irfft2",
            "fft::hfft2",
            "fft::ihfft2",
            "fft::fftn",
            "fft::ifftn",
            "fft::rfftn",
            "fft::irfftn",
            "fft::hfftn",
            "fft::ihfftn",
            "stft",
            "polar",
            "view_as_complex",
        ],
    ),
    (Policy::Parts, &["linear_cross_entropy", "multi_head_attention_forward", "matrix_power"]),
];

const CPU: &[List] = &[
    (
        Policy::F32,
        &[
            "avg_pool3d",
            "max_pool3d",
            "adaptive_avg_pool3d",
            "adaptive_max_pool3d",
            "fractional_max_pool2d",
            "fractional_max_pool3d",
            "max_unpool2d",
            "max_unpool3d",
            "grid_sample",
            "grid_sampler",
            "grid_sampler_2d",
            "grid_sampler_3d",
            "binary_cross_entropy",
            "ctc_loss",
            "quantile",
            "nanquantile",
            "trace",
            "cholesky",
            "cholesky_ex",
            "cholesky_inverse",
            "cholesky_solve",
            "cond",
            "eigh",
            "eigvalsh",
            "geqrf",
            "householder_product",
            "inv",
            "inv_ex",
            "lstsq",
            "lu_solve",
            "matrix_rank",
            "ormqr",
            "pinverse",
            "qr",
            "solve",
            "svd",
            "svdvals",
            "tensorinv",
            "tensorsolve",
            "triangular_solve",
        ],
    ),
    (Policy::F32Unless("mode", "constant"), &["pad"]),
    (Policy::Widest, &["stack", "cat", "index_copy"]),
    (Policy::Parts, &["einsum", "tensordot", "inner"]),
];

const CUDA: &[List] = &[
    (Policy::Low, &["addmv", "addr", "mv", "einsum"]),
    (
        Policy::F32,
        &[
            "acos",
            "asin",
            "cosh",
            "erfinv",
            "exp",
            "expm1",
            "log",
            "log10",
            "log2",
            "log1p",
            "reciprocal",
            "rsqrt",
            "sinh",
            "tan",
            "pow",
            "square",
            "softplus",
            "softmax",
            "log_softmax",
            "softmin",
            "gumbel_softmax",
            "cumprod",
            "cumsum",
            "sum",
            "logsumexp",
            "layer_norm",
            "native_layer_norm",
            "rms_norm",
            "group_norm",
            "norm",
            "vector_norm",
            "matrix_norm",
            "normalize",
            "renorm",
            "dist",
            "pdist",
            "cosine_similarity",
            "pairwise_distance",
            "gaussian_nll_loss",
            "triplet_margin_with_distance_loss",
            "interpolate",
            "upsample_nearest",
            "upsample_bilinear",
            "lp_pool1d",
            "lp_pool2d",
            "lp_pool3d",
        ],
    ),
    (
        Policy::Widest,
        &[
            "addcdiv",
            "addcmul",
            "atan2",
            "bilinear",
            "cross",
            "dot",
            "vdot",
            "inner",
            "grid_sample",
            "grid_sampler",
            "grid_sampler_2d",
            "grid_sampler_3d",
            "index_put",
            "tensordot",
            "scatter_add",
        ],
    ),
    (Policy::Refused, &["binary_cross_entropy"]),
];

/// A row's policy; none if it is in no list.
pub fn policy(op: &'static Op, is_cuda: bool) -> Option<Policy> {
    type Policies = HashMap<usize, [Option<Policy>; 2]>;
    static POLICIES: OnceLock<Policies> = OnceLock::new();
    // Rows are statics: their addresses identify them.
    let all = POLICIES.get_or_init(|| {
        table::all()
            .map(|op| (std::ptr::from_ref(op).addr(), [listed(op.name, CPU), listed(op.name, CUDA)]))
            .filter(|(_, policies)| *policies != [None, None])
            .collect()
    });
    all.get(&std::ptr::from_ref(op).addr()).and_then(|policies| policies[is_cuda as usize])
}

fn listed(name: &str, own: &[List]) -> Option<Policy> {
    BOTH.iter().chain(own).find(|(_, names)| names.contains(&name)).map(|(policy, _)| *policy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_a_row_and_is_listed_once() {
        for own in [CPU, CUDA] {
            let names: Vec<&str> = BOTH.iter().chain(own).flat_map(|(_, names)| names.iter().copied()).collect();
            for (at, name) in names.iter().enumerate() {
                assert!(table::all().any(|op| op.name == *name), "there is no row `{name}`");
                assert!(!names[..at].contains(name), "`{name}` is listed twice");
            }
        }
    }
}
