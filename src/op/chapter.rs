//! Chapters of the reference: what families of rows are about, as PyTorch's documentation divides them.

/// A chapter. The order is the reference's.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Chapter {
    Creation,
    Random,
    Pointwise,
    Reduction,
    Ordering,
    Shape,
    Indexing,
    LinearAlgebra,
    Spectral,
    Activation,
    Layer,
    Loss,
    Optimizer,
}

impl Chapter {
    /// All of them, in order.
    pub const ALL: &[Chapter] = &[
        Chapter::Creation,
        Chapter::Random,
        Chapter::Pointwise,
        Chapter::Reduction,
        Chapter::Ordering,
        Chapter::Shape,
        Chapter::Indexing,
        Chapter::LinearAlgebra,
        Chapter::Spectral,
        Chapter::Activation,
        Chapter::Layer,
        Chapter::Loss,
        Chapter::Optimizer,
    ];

    /// The name of its page.
    pub fn name(self) -> &'static str {
        match self {
            Chapter::Creation => "creation",
            Chapter::Random => "random",
            Chapter::Pointwise => "pointwise",
            Chapter::Reduction => "reduction",
            Chapter::Ordering => "ordering",
            Chapter::Shape => "shape",
            Chapter::Indexing => "indexing",
            Chapter::LinearAlgebra => "linear-algebra",
            Chapter::Spectral => "spectral",
            Chapter::Activation => "activation",
            Chapter::Layer => "layer",
            Chapter::Loss => "loss",
            Chapter::Optimizer => "optimizer",
        }
    }

    /// The heading.
    pub fn title(self) -> &'static str {
        match self {
            Chapter::Creation => "Creation and conversion",
            Chapter::Random => "Random numbers",
            Chapter::Pointwise => "Pointwise operations and comparison",
            Chapter::Reduction => "Reduction and accumulation",
            Chapter::Ordering => "Sorting and searching",
            Chapter::Shape => "Shapes, joining and splitting",
            Chapter::Indexing => "Indexing, gathering and scattering",
            Chapter::LinearAlgebra => "Linear algebra",
            Chapter::Spectral => "Spectra and windows",
            Chapter::Activation => "Activations and dropout",
            Chapter::Layer => "Layers as functions",
            Chapter::Loss => "Losses and distances",
            Chapter::Optimizer => "Optimizer steps",
        }
    }
}
