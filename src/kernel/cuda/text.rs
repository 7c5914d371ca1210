//! The CUDA texts that are part of the program.

macro_rules! headers {
    ($($name:literal)*) => {
        &[$(($name, include_str!(concat!("../../../kernels/", $name)))),*]
    };
}

/// What `#include "name"` means in a source: names and texts.
pub static HEADERS: &[(&str, &str)] = headers! { "common/base.cuh" "math/math.cuh" "math/special.cuh" "math/special_more.cuh" "math/polynomial.cuh" "random/philox.cuh" "common/reduce.cuh" "common/rows.cuh" "common/unravel.cuh" "matmul/matmul.cuh" "softmax/softmax.cuh" "norm/layer_norm.cuh" "norm/batch_norm.cuh" "loss/loss.cuh" "index/index.cuh" "conv/conv.cuh" "copy/transpose.cuh" "pool/pool.cuh" "attention/attention.cuh" "scan/tile.cuh" "scan/rows.cuh" "scan/columns.cuh" "sort/sort.cuh" "select/select.cuh" "search/search.cuh" "resample/resample.cuh" "random/multinomial.cuh" "copy/tril_triu.cuh" "common/mma.cuh" "attention/tile.cuh" "attention/mma.cuh" "attention/mma_grad.cuh" "common/wgmma.cuh" "attention/wgmma_tile.cuh" "attention/wgmma.cuh" "attention/wgmma_grad.cuh" "linalg/panel.cuh" "linalg/factor.cuh" "linalg/householder.cuh" "ctc/ctc.cuh" "sort/unique.cuh" "linalg/matrix_exp.cuh" "linalg/jacobi.cuh" "device/gate.cuh" };

/// What every source is compiled with, besides language (C++17, `-default-device`) and architecture. No fused
/// multiply-adds but those that are written: a fused chain gives bit for bit what single operations give.
pub static OPTIONS: &[&str] = &["--fmad=false"];
