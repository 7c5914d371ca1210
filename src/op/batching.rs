//! How operations take samples inside of `vmap`: all at once, in dims before their own. An element-wise operation, a
//! reduction and one that is composed of others needs no entry; what has none here runs sample by sample.

use super::row::{CallForm, Op};
use std::collections::HashMap;
use std::sync::OnceLock;

/// What becomes of the arguments.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Batching {
    /// The operation takes any dims before its own: all tensors get those of the samples.
    Leading,
    /// As `Leading`, and dims that the call names move behind those of the samples.
    Along,
    /// As `Along`, where the result has a dim more than the tensor.
    AlongNew,
    /// Sizes are those of each sample.
    Sizes,
    /// As `Sizes`, and -1 keeps a size.
    Expand,
    /// A list of all dims in another order.
    Permute,
    /// A layout over the memory of the tensor.
    Strided,
    /// A strided window of new memory.
    Window,
    /// A product of matrices and vectors.
    Product,
    /// Only the first tensor may have samples: the operation takes any dims before its own there.
    First,
    /// Only the first tensor may have samples, which become more of what its first dim counts.
    Fold,
}

type List = (Batching, &'static [&'static str]);

/// Rows that scripts call.
const PUBLIC: &[List] = &[
    (
        Batching::Leading,
        &[
            "clone",
            "cast",
            "to",
            "cholesky",
            "inv",
            "det",
            "slogdet",
            "svd",
            "eigh",
            "cholesky_inverse",
            "slice_scatter",
        ],
    ),
    (
        Batching::Along,
        &[
            "mean",
            "cummax",
            "cummin",
            "sort",
            "argsort",
            "topk",
            "kthvalue",
            "mode",
            "gather",
            "scatter",
            "scatter_add",
            "flip",
            "cat",
            "squeeze",
            "transpose",
            "narrow",
            "select",
            "slice",
            "diagonal",
            "any",
            "all",
            "count_nonzero",
            "sum",
            "amax",
            "amin",
            "prod",
        ],
    ),
    (Batching::AlongNew, &["unsqueeze", "diag_embed"]),
    (Batching::Sizes, &["view"]),
    (Batching::Expand, &["expand"]),
    (Batching::Permute, &["permute"]),
    (Batching::Product, &["matmul"]),
];

/// Rows that other rows are composed of.
const INTERNAL: &[List] = &[
    (Batching::Product, &["_wide_matmul"]),
    (
        Batching::Leading,
        &[
            "cast",
            "clone",
            "to",
            "cholesky_ex",
            "inv_ex",
            "solve_ex",
            "solve",
            "solve_triangular",
            "svdvals",
            "eigvalsh",
            "matrix_exp",
            "cholesky_solve",
            "view",
        ],
    ),
    (
        Batching::Along,
        &[
            "var",
            "std",
            "var_mean",
            "std_mean",
            "logsumexp",
            "softmax",
            "log_softmax",
            "cumsum",
            "cumprod",
            "logcumsumexp",
            "argmax",
            "argmin",
            "unfold",
            "any",
            "cat",
            "flip",
            "roll",
            "_fft_whole",
            "_fft_to_half",
            "_fft_from_half",
        ],
    ),
    (Batching::Sizes, &["_unsafe_view"]),
    (Batching::Strided, &["as_strided"]),
    (Batching::Window, &["strided_add"]),
    (Batching::First, &["linear"]),
    (Batching::Fold, &["conv", "conv_transpose"]),
];

/// How a row takes samples, if it is listed.
pub fn of(op: &'static Op) -> Option<Batching> {
    static TABLE: OnceLock<HashMap<(&'static str, bool), Batching>> = OnceLock::new();
    let table = TABLE.get_or_init(|| {
        let mut table = HashMap::new();
        for (lists, internal) in [(PUBLIC, false), (INTERNAL, true)] {
            for (batching, names) in lists {
                names.iter().for_each(|name| _ = table.insert((*name, internal), *batching));
            }
        }
        table
    });
    table.get(&(op.name, op.call == CallForm::Internal)).copied()
}

/// Rows that draw random numbers; those with a flag draw only where the call sets it.
const RANDOM: &[(&str, &str)] = &[
    ("rand", ""),
    ("randn", ""),
    ("rand_like", ""),
    ("randn_like", ""),
    ("randint", ""),
    ("randint_like", ""),
    ("randperm", ""),
    ("normal", ""),
    ("bernoulli", ""),
    ("poisson", ""),
    ("binomial", ""),
    ("multinomial", ""),
    ("gumbel_softmax", ""),
    ("fractional_max_pool2d", ""),
    ("fractional_max_pool3d", ""),
    ("dropout", "training"),
    ("dropout1d", "training"),
    ("dropout2d", "training"),
    ("dropout3d", "training"),
    ("alpha_dropout", "training"),
    ("feature_alpha_dropout", "training"),
    ("rrelu", "training"),
];

/// The flag of a row that draws random numbers: an empty one where it always does; none if it never does.
pub fn draws(op: &'static Op) -> Option<&'static str> {
    RANDOM.iter().find(|(name, _)| *name == op.name).map(|(_, flag)| *flag)
}
