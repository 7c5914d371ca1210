//! The texts of the standard library: its modules, and their files.

use crate::base::signature;
use crate::script::library::reach::File;
use crate::script::source::scope::{Function, definitions};
use std::collections::BTreeSet;

/// The standard library, embedded in the binary: each module with its files. Not `const`: each use would have its own
/// copy.
pub static STD: &[(&str, &[File])] = &[
    (
        "nn",
        &[
            ("nn/module.rhai", include_str!("../../../std/nn/module.rhai")),
            ("nn/linear.rhai", include_str!("../../../std/nn/linear.rhai")),
            ("nn/embedding.rhai", include_str!("../../../std/nn/embedding.rhai")),
            ("nn/dropout.rhai", include_str!("../../../std/nn/dropout.rhai")),
            ("nn/activations.rhai", include_str!("../../../std/nn/activations.rhai")),
            ("nn/convolution.rhai", include_str!("../../../std/nn/convolution.rhai")),
            ("nn/pooling.rhai", include_str!("../../../std/nn/pooling.rhai")),
            ("nn/padding.rhai", include_str!("../../../std/nn/padding.rhai")),
            ("nn/vision.rhai", include_str!("../../../std/nn/vision.rhai")),
            ("nn/unfold.rhai", include_str!("../../../std/nn/unfold.rhai")),
            ("nn/norms.rhai", include_str!("../../../std/nn/norms.rhai")),
            ("nn/parallel.rhai", include_str!("../../../std/nn/parallel.rhai")),
            ("nn/recurrent.rhai", include_str!("../../../std/nn/recurrent.rhai")),
            ("nn/packed.rhai", include_str!("../../../std/nn/packed.rhai")),
            ("nn/attention.rhai", include_str!("../../../std/nn/attention.rhai")),
            ("nn/parametrize.rhai", include_str!("../../../std/nn/parametrize.rhai")),
            ("nn/parametrizations.rhai", include_str!("../../../std/nn/parametrizations.rhai")),
            ("nn/fusion.rhai", include_str!("../../../std/nn/fusion.rhai")),
            ("nn/lazy.rhai", include_str!("../../../std/nn/lazy.rhai")),
            ("nn/losses.rhai", include_str!("../../../std/nn/losses.rhai")),
            ("gradients.rhai", include_str!("../../../std/gradients.rhai")),
            ("nn/init.rhai", include_str!("../../../std/nn/init.rhai")),
        ],
    ),
    (
        "optim",
        &[
            ("optim/optimizers.rhai", include_str!("../../../std/optim/optimizers.rhai")),
            ("optim/lbfgs.rhai", include_str!("../../../std/optim/lbfgs.rhai")),
            ("optim/adafactor.rhai", include_str!("../../../std/optim/adafactor.rhai")),
            ("optim/muon.rhai", include_str!("../../../std/optim/muon.rhai")),
            ("optim/finder.rhai", include_str!("../../../std/optim/finder.rhai")),
            ("optim/averaging.rhai", include_str!("../../../std/optim/averaging.rhai")),
            ("gradients.rhai", include_str!("../../../std/gradients.rhai")),
            ("optim/schedules.rhai", include_str!("../../../std/optim/schedules.rhai")),
        ],
    ),
    (
        "distributions",
        &[
            ("distributions/distribution.rhai", include_str!("../../../std/distributions/distribution.rhai")),
            ("distributions/constraints.rhai", include_str!("../../../std/distributions/constraints.rhai")),
            ("distributions/normal.rhai", include_str!("../../../std/distributions/normal.rhai")),
            ("distributions/heavy_tails.rhai", include_str!("../../../std/distributions/heavy_tails.rhai")),
            ("distributions/positive.rhai", include_str!("../../../std/distributions/positive.rhai")),
            ("distributions/gamma.rhai", include_str!("../../../std/distributions/gamma.rhai")),
            ("distributions/beta.rhai", include_str!("../../../std/distributions/beta.rhai")),
            ("distributions/von_mises.rhai", include_str!("../../../std/distributions/von_mises.rhai")),
            ("distributions/discrete.rhai", include_str!("../../../std/distributions/discrete.rhai")),
            ("distributions/categorical.rhai", include_str!("../../../std/distributions/categorical.rhai")),
            (
                "distributions/multivariate_normal.rhai",
                include_str!("../../../std/distributions/multivariate_normal.rhai"),
            ),
            ("distributions/relaxed.rhai", include_str!("../../../std/distributions/relaxed.rhai")),
            ("distributions/compound.rhai", include_str!("../../../std/distributions/compound.rhai")),
            ("distributions/transforms.rhai", include_str!("../../../std/distributions/transforms.rhai")),
            ("distributions/transformed.rhai", include_str!("../../../std/distributions/transformed.rhai")),
            ("distributions/kl.rhai", include_str!("../../../std/distributions/kl.rhai")),
        ],
    ),
    ("data", &[("data.rhai", include_str!("../../../std/data.rhai"))]),
    (
        "metrics",
        &[
            ("metrics/metric.rhai", include_str!("../../../std/metrics/metric.rhai")),
            ("metrics/classification.rhai", include_str!("../../../std/metrics/classification.rhai")),
            ("metrics/curves.rhai", include_str!("../../../std/metrics/curves.rhai")),
            ("metrics/regression.rhai", include_str!("../../../std/metrics/regression.rhai")),
        ],
    ),
    ("prune", &[("prune.rhai", include_str!("../../../std/prune.rhai"))]),
    ("test", &[("test.rhai", include_str!("../../../std/test.rhai"))]),
];

/// The numbers of parameters of a library function's forms; functions with a signature check their calls themselves.
pub fn takes(module: &str, name: &str) -> Vec<usize> {
    let files = STD.iter().find(|(known, _)| *known == module).map_or(&[][..], |(_, files)| *files);
    let signed = files.iter().any(|(_, text)| signature::read(text).any(|signature| signature.name == name));
    let all = files.iter().filter(|_| !signed).flat_map(|(_, text)| public(text));
    all.filter(|(known, _)| known == name).map(|(_, count)| count).collect()
}

/// The public functions of a text, with their numbers of parameters.
pub fn public(text: &str) -> impl Iterator<Item = Function> + use<> {
    let name = |line: &str| Some(line.trim_start().strip_prefix("private fn ")?.split('(').next()?.to_string());
    let private: BTreeSet<String> = text.lines().filter_map(name).collect();
    definitions(text).into_iter().filter(move |(name, _)| !private.contains(name))
}
