//! The texts of the standard library: its modules, and their files.

use crate::base::packed;
use crate::base::signature;
use crate::script::library::reach::File;
use crate::script::source::scope::{Function, definitions};
use std::collections::BTreeSet;
use std::sync::OnceLock;

/// A module of the library with its files, which are unpacked where the module is first used.
pub struct Library {
    pub name: &'static str,
    paths: &'static [&'static str],
    files: OnceLock<Vec<File>>,
}

impl Library {
    pub fn files(&self) -> &[File] {
        self.files.get_or_init(|| self.paths.iter().map(|path| (*path, packed::text(&format!("std/{path}")))).collect())
    }

    /// Texts of all files, one after the other.
    pub fn text(&self) -> String {
        self.files().iter().map(|(_, text)| *text).collect::<Vec<_>>().join("\n")
    }
}

macro_rules! libraries {
    ($($name:literal: [$($path:literal),* $(,)?],)*) => {
        /// The standard library, packed in the binary.
        pub static STD: &[&Library] = &[$({
            static LIBRARY: Library = Library {
                name: $name,
                paths: &[$($path),*],
                files: OnceLock::new(),
            };
            &LIBRARY
        }),*];
    };
}

libraries! {
    "nn": [
        "nn/module.rhai",
        "nn/linear.rhai",
        "nn/embedding.rhai",
        "nn/dropout.rhai",
        "nn/activations.rhai",
        "nn/convolution.rhai",
        "nn/pooling.rhai",
        "nn/padding.rhai",
        "nn/vision.rhai",
        "nn/unfold.rhai",
        "nn/norms.rhai",
        "nn/parallel.rhai",
        "nn/recurrent.rhai",
        "nn/packed.rhai",
        "nn/attention.rhai",
        "nn/parametrize.rhai",
        "nn/parametrizations.rhai",
        "nn/fusion.rhai",
        "nn/lazy.rhai",
        "nn/losses.rhai",
        "nn/adaptive_softmax.rhai",
        "gradients.rhai",
        "nn/init.rhai",
    ],
    "optim": [
        "optim/optimizers.rhai",
        "optim/hooks.rhai",
        "optim/rates.rhai",
        "optim/lbfgs.rhai",
        "optim/adafactor.rhai",
        "optim/sparse_adam.rhai",
        "optim/muon.rhai",
        "optim/finder.rhai",
        "optim/averaging.rhai",
        "gradients.rhai",
        "optim/schedules.rhai",
    ],
    "amp": ["amp.rhai"],
    "distributions": [
        "distributions/distribution.rhai",
        "distributions/constraints.rhai",
        "distributions/normal.rhai",
        "distributions/heavy_tails.rhai",
        "distributions/positive.rhai",
        "distributions/gamma.rhai",
        "distributions/beta.rhai",
        "distributions/von_mises.rhai",
        "distributions/discrete.rhai",
        "distributions/continuous_bernoulli.rhai",
        "distributions/categorical.rhai",
        "distributions/multivariate_normal.rhai",
        "distributions/low_rank_multivariate_normal.rhai",
        "distributions/matrices.rhai",
        "distributions/relaxed.rhai",
        "distributions/compound.rhai",
        "distributions/transforms.rhai",
        "distributions/shaped_transforms.rhai",
        "distributions/transformed.rhai",
        "distributions/kl.rhai",
    ],
    "data": ["data.rhai"],
    "metrics": [
        "metrics/metric.rhai",
        "metrics/classification.rhai",
        "metrics/curves.rhai",
        "metrics/regression.rhai",
    ],
    "prune": ["prune.rhai"],
    "quantization": ["quantization.rhai"],
    "tensorboard": ["tensorboard.rhai"],
    "test": ["test.rhai"],
}

/// The module of a name.
pub fn library(name: &str) -> Option<&'static Library> {
    STD.iter().copied().find(|library| library.name == name)
}

/// The files of all modules.
pub fn files() -> impl Iterator<Item = &'static File> {
    STD.iter().flat_map(|library| library.files())
}

/// The numbers of parameters of a library function's forms; functions with a signature check their calls themselves.
pub fn takes(module: &str, name: &str) -> Vec<usize> {
    let files = library(module).map_or(&[][..], Library::files);
    let signed = files.iter().any(|(_, text)| signature::read(text).any(|signature| signature.name == name));
    let all = files.iter().filter(|_| !signed).flat_map(|(_, text)| public(text));
    all.filter(|(known, _)| known == name).map(|(_, count)| count).collect()
}

/// The public functions of a text, with their numbers of parameters.
pub fn public(text: &str) -> impl Iterator<Item = Function> + use<> {
    let name = |line: &str| Some(line.trim_start().strip_prefix("private fn ")?.split('(').next()?.to_string());
    let private: BTreeSet<String> = crate::base::order::set(text.lines().filter_map(name));
    definitions(text).into_iter().filter(move |(name, _)| !private.contains(name))
}
