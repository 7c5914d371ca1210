//! The CUDA texts that are part of the program.

macro_rules! headers {
    ($($name:literal)*) => {
        &[$(($name, include_str!(concat!("../../../kernels/", $name)))),*]
    };
}

/// What `#include "name"` means in a source: names and texts.
pub static HEADERS: &[(&str, &str)] = headers! { "ts_base.cuh" "ts_math.cuh" "ts_special.cuh" "ts_special_more.cuh" "ts_polynomial.cuh" "ts_random.cuh" "ts_reduce.cuh" "ts_rows.cuh" "ts_volume.cuh" "matmul.cuh" "softmax.cuh" "norm.cuh" "batch_norm.cuh" "loss.cuh" "index.cuh" "conv.cuh" "turn.cuh" "pool.cuh" "attention.cuh" "ts_scan.cuh" "scan.cuh" "scan_columns.cuh" "sort.cuh" "select.cuh" "find.cuh" "resample.cuh" "sample.cuh" "triangle.cuh" "ts_mma.cuh" "ts_attention.cuh" "attention_mma.cuh" "attention_mma_grad.cuh" "ts_wgmma.cuh" "ts_attention_wgmma.cuh" "attention_wgmma.cuh" "attention_wgmma_grad.cuh" "ts_panel.cuh" "factor.cuh" "reflect.cuh" "ctc.cuh" "slices.cuh" "exponential.cuh" "jacobi.cuh" "gate.cuh" };

/// What every source is compiled with, besides language (C++17, `-default-device`) and architecture. No fused
/// multiply-adds but those that are written: a fused chain gives bit for bit what single operations give.
pub static OPTIONS: &[&str] = &["--fmad=false"];
