//! What a module is: `m.class_name()`, `m.is_a("conv2d")` as Python's `isinstance`, and `m.extra_repr()`, its settings as
//! they are printed.

use crate::base::code;
use crate::base::diag::{Diag, Result};
use crate::base::suggest::nearest;
use crate::fail;
use crate::script::bind::rows::Natives;
use crate::script::host::Host;
use crate::script::nn::module_methods::{keyed, method};
use crate::script::nn::outline;
use crate::script::values::module::module as module_of;
use crate::script::values::type_names;
use rhai::{Array, Dynamic, ImmutableString};
use std::sync::Arc;

pub fn register(natives: &mut Natives, host: &Arc<Host>) {
    method(natives, host, "class_name", 1, |_, _, this, _| Ok(own_kind(this).into()));
    method(natives, host, "extra_repr", 1, |_, _, this, _| {
        Ok(outline::settings(&module_of(this).expect("a module").read()).into())
    });
    keyed(natives, host, "is_a", |host, _, this, [kind]| {
        let own = own_kind(this);
        if let Some(kinds) = kind.read_lock::<Array>() {
            let mut found = false;
            for kind in kinds.iter() {
                found |= is_a(host, &own, kind)?;
            }
            return Ok(found.into());
        }
        Ok(is_a(host, &own, kind)?.into())
    });
}

fn own_kind(this: &Dynamic) -> String {
    outline::kind(&module_of(this).expect("a module").read())
}

fn is_a(host: &Host, own: &str, kind: &Dynamic) -> Result<bool> {
    let Some(kind) = kind.read_lock::<ImmutableString>().map(|kind| kind.clone()) else {
        fail!(
            ARGUMENT_TYPE,
            "the name of a class is a string, or several are an array, not {}",
            type_names::of_value(kind)
        );
    };
    let asked = plain(&kind);
    let own = plain(own);
    if asked == own || asked == "module" || ancestors(&own).contains(&asked) {
        return Ok(true);
    }
    let is_made = host.kinds.lock().iter().any(|known| plain(known) == asked);
    let is_known = is_made || LAYERS.iter().chain(BASES).any(|known| plain(known) == asked);
    if !is_known && let Some(near) = nearest(&kind, LAYERS.iter().copied()) {
        let diag = Diag::error(code::VALUE, format!("no module is called \"{kind}\""));
        return Err(diag.help(format!("did you mean \"{near}\"?")));
    }
    Ok(false)
}

/// A name without what differs between the languages: `nn.BatchNorm2d` and `batch_norm2d`.
fn plain(name: &str) -> String {
    let last = name.rsplit(['.', ':']).next().unwrap_or(name);
    last.chars().filter(|c| *c != '_').flat_map(char::to_lowercase).collect()
}

/// PyTorch's classes above one, all names plain.
fn ancestors(own: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut own = own;
    if let Some(rest) = own.strip_prefix("lazy") {
        found.push(rest.to_string());
        own = rest;
    }
    let direct = match own {
        "relu6" => "hardtanh",
        "zeropad1d" => "constantpad1d",
        "zeropad2d" => "constantpad2d",
        "zeropad3d" => "constantpad3d",
        "upsamplingnearest2d" | "upsamplingbilinear2d" => "upsample",
        "alphadropout" | "featurealphadropout" => "dropoutnd",
        "rnn" | "lstm" | "gru" => "rnnbase",
        "rnncell" | "lstmcell" | "grucell" => "rnncellbase",
        _ => "",
    };
    if !direct.is_empty() {
        found.push(direct.to_string());
    }
    for (prefix, bases) in FAMILIES {
        let is_sized =
            |name: &str| name.strip_prefix(prefix).is_some_and(|rest| matches!(rest, "" | "1d" | "2d" | "3d"));
        if is_sized(own) || is_sized(direct) {
            found.extend(bases.iter().map(|base| base.to_string()));
        }
    }
    if own.ends_with("loss") && own != "adaptivelogsoftmaxwithloss" {
        found.push("loss".to_string());
        if WEIGHTED.contains(&own) {
            found.push("weightedloss".to_string());
        }
    }
    found
}

/// Layers by their names without the number of dimensions, with the classes that they share.
const FAMILIES: &[(&str, &[&str])] = &[
    ("conv", &["convnd"]),
    ("convtranspose", &["convtransposend", "convnd"]),
    ("batchnorm", &["batchnorm", "normbase"]),
    ("instancenorm", &["instancenorm", "normbase"]),
    ("dropout", &["dropoutnd"]),
    ("maxpool", &["maxpoolnd"]),
    ("maxunpool", &["maxunpoolnd"]),
    ("avgpool", &["avgpoolnd"]),
    ("lppool", &["lppoolnd"]),
    ("adaptivemaxpool", &["adaptivemaxpoolnd"]),
    ("adaptiveavgpool", &["adaptiveavgpoolnd"]),
    ("constantpad", &["constantpadnd"]),
    ("reflectionpad", &["reflectionpadnd"]),
    ("replicationpad", &["replicationpadnd"]),
    ("circularpad", &["circularpadnd"]),
];

const WEIGHTED: &[&str] = &[
    "nllloss",
    "crossentropyloss",
    "linearcrossentropyloss",
    "bceloss",
    "multilabelsoftmarginloss",
    "multimarginloss",
];

/// PyTorch's classes that no layer is made of alone.
const BASES: &[&str] = &[
    "_conv_nd",
    "_conv_transpose_nd",
    "_batch_norm",
    "_instance_norm",
    "_norm_base",
    "_dropout_nd",
    "_max_pool_nd",
    "_max_unpool_nd",
    "_avg_pool_nd",
    "_lp_pool_nd",
    "_adaptive_max_pool_nd",
    "_adaptive_avg_pool_nd",
    "_constant_pad_nd",
    "_reflection_pad_nd",
    "_replication_pad_nd",
    "_circular_pad_nd",
    "rnn_base",
    "rnn_cell_base",
    "_loss",
    "_weighted_loss",
    "sync_batch_norm",
];

/// The layers, which an error may suggest.
#[rustfmt::skip]
const LAYERS: &[&str] = &[
    "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_log_softmax_with_loss",
    "adaptive_max_pool1d", "adaptive_max_pool2d", "adaptive_max_pool3d", "alpha_dropout", "avg_pool1d",
    "avg_pool2d", "avg_pool3d", "batch_norm1d", "batch_norm2d", "batch_norm3d", "bce_loss", "bce_with_logits_loss",
    "bilinear", "celu", "channel_shuffle", "circular_pad1d", "circular_pad2d", "circular_pad3d", "constant_pad1d",
    "constant_pad2d", "constant_pad3d", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d",
    "conv_transpose3d", "cosine_embedding_loss", "cosine_similarity", "cross_entropy_loss", "ctc_loss",
    "data_parallel", "dropout", "dropout1d", "dropout2d", "dropout3d", "elu", "embedding", "embedding_bag",
    "feature_alpha_dropout", "flatten", "fold", "fractional_max_pool2d", "fractional_max_pool3d",
    "gaussian_nll_loss", "gelu", "glu", "group_norm", "gru", "gru_cell", "hardshrink", "hardsigmoid", "hardswish",
    "hardtanh", "hinge_embedding_loss", "huber_loss", "identity", "instance_norm1d", "instance_norm2d",
    "instance_norm3d", "kl_div_loss", "l1_loss", "layer_norm", "lazy_batch_norm1d", "lazy_batch_norm2d",
    "lazy_batch_norm3d", "lazy_conv1d", "lazy_conv2d", "lazy_conv3d", "lazy_conv_transpose1d",
    "lazy_conv_transpose2d", "lazy_conv_transpose3d", "lazy_instance_norm1d", "lazy_instance_norm2d",
    "lazy_instance_norm3d", "lazy_linear", "leaky_relu", "linear", "linear_cross_entropy_loss",
    "local_response_norm", "log_softmax", "logsigmoid", "lp_pool1d", "lp_pool2d", "lp_pool3d", "lstm", "lstm_cell",
    "margin_ranking_loss", "max_pool1d", "max_pool2d", "max_pool3d", "max_unpool1d", "max_unpool2d", "max_unpool3d",
    "mish", "module", "module_dict", "module_list", "mse_loss", "multi_margin_loss", "multihead_attention",
    "multilabel_margin_loss", "multilabel_soft_margin_loss", "nll_loss", "pairwise_distance", "parameter_dict",
    "parameter_list", "pixel_shuffle", "pixel_unshuffle", "poisson_nll_loss", "prelu", "reflection_pad1d",
    "reflection_pad2d", "reflection_pad3d", "relu", "relu6", "replication_pad1d", "replication_pad2d",
    "replication_pad3d", "rms_norm", "rnn", "rnn_cell", "rrelu", "selu", "sequential", "sigmoid", "silu",
    "smooth_l1_loss", "soft_margin_loss", "softmax", "softmax2d", "softmin", "softplus", "softshrink", "softsign",
    "tanh", "tanhshrink", "threshold", "transformer", "transformer_decoder", "transformer_decoder_layer",
    "transformer_encoder", "transformer_encoder_layer", "triplet_margin_loss", "triplet_margin_with_distance_loss",
    "unflatten", "unfold", "upsample", "upsampling_bilinear2d", "upsampling_nearest2d", "zero_pad1d", "zero_pad2d",
    "zero_pad3d",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_those_of_pytorch() {
        for (own, above) in [
            ("batch_norm2d", vec!["batchnorm", "normbase"]),
            ("lazy_conv_transpose2d", vec!["convtranspose2d", "convtransposend", "convnd"]),
            ("conv1d", vec!["convnd"]),
            ("zero_pad2d", vec!["constantpad2d", "constantpadnd"]),
            ("relu6", vec!["hardtanh"]),
            ("nll_loss", vec!["loss", "weightedloss"]),
            ("adaptive_log_softmax_with_loss", vec![]),
            ("linear", vec![]),
        ] {
            assert_eq!(ancestors(&plain(own)), above, "{own}");
        }
        assert_eq!(plain("torch.nn.BatchNorm2d"), plain("nn::batch_norm2d"));
    }
}
