//! How operations take samples inside of `vmap`: all at once, in dims before their own. An element-wise operation, a
//! reduction and one that is composed of others needs no entry; what has none here runs sample by sample.

use super::row::{CallForm, Lower, Op};
use std::collections::HashMap;
use std::sync::OnceLock;

/// What becomes of the arguments.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Batching {
    /// The operation takes any dims before its own: all tensors get those of the samples.
    Leading,
    /// As `Leading`, for operands that are broadcast against each other: their dims are aligned first.
    Ranked,
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
    /// The tensors at these positions may have samples, which become more of what their first dims count.
    Fold(&'static [usize]),
    /// Repetitions of each dim.
    Repeat,
    /// One value in all places.
    Filled,
    /// A convolution, or a gradient of one: where weights have samples, these become groups.
    Convolution,
    /// A normalization whose weight and bias are applied apart where they have samples.
    Normalized,
    /// As `Normalized`, over a batch: samples become channels.
    BatchNormalized,
    /// Losses of labels, and the weight that each sample's labels add up to.
    Labels,
    /// Slices along a dim at a list of positions, read or written.
    Positions,
    /// Index tensors of one shape, read or written.
    Indices,
    /// Positions in the flattened tensor, read or written.
    Flat,
    /// Rows of a table, and its gradient.
    Table,
    /// Places in sorted numbers.
    Search,
    /// A new tensor like another: each sample gets its own.
    Made,
}

type List = (Batching, &'static [&'static str]);

/// Rows that scripts call.
const PUBLIC: &[List] = &[
    (
        Batching::Leading,
        &[
            "clone",
            "cholesky",
            "inv",
            "det",
            "slogdet",
            "svd",
            "eigh",
            "cholesky_inverse",
            "constant_pad_nd",
            "eig",
            "geqrf",
            "lu",
            "tril",
            "triu",
            "view_as_real",
            "view_as_complex",
            "angle",
        ],
    ),
    (Batching::Ranked, &["complex", "isclose"]),
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
            "scatter_reduce",
            "select_scatter",
            "slice_scatter",
            "diagonal_scatter",
            "flip",
            "cat",
            "squeeze",
            "transpose",
            "narrow",
            "select",
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
    (Batching::Repeat, &["repeat"]),
    (Batching::Filled, &["fill"]),
    (Batching::Positions, &["index_select", "index_add", "index_copy", "index_fill"]),
    (Batching::Flat, &["take", "put"]),
    (Batching::Search, &["searchsorted", "bucketize"]),
    (
        Batching::Made,
        &["zeros_like", "ones_like", "empty_like", "full_like", "new_zeros", "new_ones", "new_empty", "new_full"],
    ),
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
            "real",
            "qr",
            "lstsq",
            "pinv",
            "max_pool",
            "max_unpool",
            "avg_pool",
            "adaptive_avg_pool",
            "adaptive_max_pool",
            "gaussian_nll_loss",
            "one_hot",
        ],
    ),
    (Batching::Ranked, &["scaled_dot_product_attention", "cdist", "dropout", "binary_cross_entropy", "pow"]),
    (
        Batching::Along,
        &[
            "slice",
            "vector_norm",
            "repeat_interleave",
            "cross",
            "max",
            "min",
            "median",
            "nanmedian",
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
    (Batching::Fold(&[0]), &["interpolate", "pad"]),
    (Batching::Fold(&[0, 1]), &["grid_sample", "label_scores"]),
    (Batching::Convolution, &["conv", "conv_transpose", "conv_weight"]),
    (Batching::Normalized, &["layer_norm", "rms_norm", "group_norm"]),
    (Batching::BatchNormalized, &["batch_norm"]),
    (Batching::Labels, &["cross_entropy", "nll_loss"]),
    (Batching::Indices, &["index", "index_put"]),
    (Batching::Table, &["embedding"]),
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
    // The composition `index` has the name of the row that it leads to.
    let is_composed = matches!(op.lower, Lower::Compose(_));
    let batching = table.get(&(op.name, op.call == CallForm::Internal)).copied();
    batching.filter(|batching| !(is_composed && matches!(batching, Batching::Indices)))
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
    ("uniform", ""),
    ("exponential", ""),
    ("geometric", ""),
    ("cauchy", ""),
    ("log_normal", ""),
    ("random", ""),
    ("svd_lowrank", ""),
    ("pca_lowrank", ""),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::op::row::Grad;
    use crate::op::table;

    /// Rows that run for each sample alone, and why.
    const ALONE: &[(&str, &str)] = &[
        ("masked_select", "how many elements are chosen differs"),
        ("masked_scatter", "how many elements are read differs"),
        ("as_strided_scatter", "the layout is that of each sample's memory"),
        ("fill_diagonal", "a diagonal that wraps around is counted in all of the tensor"),
        ("ctc_loss", "lengths are numbers of the call"),
        ("embedding_bag", "bags are counted in all of the index"),
        ("histc", "the bounds are those of each sample's elements"),
        ("_recurrent", "libraries take one layer at a time"),
        ("_int_mm", "a product of two matrices"),
        ("spread", "parts on other devices"),
    ];

    fn runs_at_once(op: &'static Op) -> bool {
        let follows = match op.lower {
            Lower::Map { .. } | Lower::Reduce { .. } | Lower::Compose(_) | Lower::Unset => true,
            Lower::Steps(_) => matches!(op.grad, Grad::Stop(_) | Grad::Unset),
            Lower::View(_) | Lower::Kernel(_) => false,
        };
        follows || of(op).is_some() || draws(op).is_some()
    }

    #[test]
    fn every_row_takes_samples_at_once_or_says_why_not() {
        let listed = |op: &Op| ALONE.iter().any(|(name, _)| *name == op.name);
        let alone: Vec<&str> = table::all().filter(|op| !runs_at_once(op)).map(|op| op.name).collect();
        let missing: Vec<&&str> = alone.iter().filter(|name| !ALONE.iter().any(|(other, _)| other == *name)).collect();
        assert!(missing.is_empty(), "neither at once nor explained: {missing:?}");
        let wrong: Vec<&str> = ALONE.iter().map(|(name, _)| *name).filter(|name| !alone.contains(name)).collect();
        assert!(wrong.is_empty(), "run at once: {wrong:?}");
        assert!(table::all().any(listed));
    }

    #[test]
    fn every_listed_name_is_a_row() {
        for (lists, internal) in [(PUBLIC, false), (INTERNAL, true)] {
            for name in lists.iter().flat_map(|(_, names)| *names) {
                let known = table::all().any(|op| op.name == *name && (op.call == CallForm::Internal) == internal);
                assert!(known, "no row is called `{name}`");
            }
        }
    }
}
