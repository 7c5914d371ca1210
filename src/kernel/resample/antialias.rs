//! Weights of resampling with antialiasing: when an image shrinks, the filter widens, so that every input counts.
//!
//! PyTorch's `_compute_indices_min_size_weights_aa` in `UpSampleKernel.cpp`, which follows Pillow.

/// What one output reads: inputs from `first` on, with these weights.
struct Taps {
    first: usize,
    weights: Vec<f64>,
}

/// Half the width of a filter, and the filter.
fn filter(mode: &str) -> (f64, fn(f64) -> f64) {
    if mode == "bicubic" { (2.0, cubic) } else { (1.0, |x| (1.0 - x.abs()).max(0.0)) }
}

/// Keys' cubic convolution with A = -0.5, as Pillow has it.
fn cubic(x: f64) -> f64 {
    const A: f64 = -0.5;
    match x.abs() {
        x if x < 1.0 => ((A + 2.0) * x - (A + 3.0)) * x * x + 1.0,
        x if x < 2.0 => ((x - 5.0) * x + 8.0) * x * A - 4.0 * A,
        _ => 0.0,
    }
}

fn taps(mode: &str, size: usize, scale: f64, out: usize) -> Taps {
    let (half, filter) = filter(mode);
    let widening = scale.max(1.0);
    let (support, center) = (half * widening, scale * (out as f64 + 0.5));
    let first = (center - support + 0.5).max(0.0) as usize;
    let end = ((center + support + 0.5) as usize).min(size);
    let weight = |at: usize| filter((at as f64 - center + 0.5) / widening);
    let mut weights: Vec<f64> = (first..end).map(weight).collect();
    let total: f64 = weights.iter().sum();
    if total != 0.0 {
        weights.iter_mut().for_each(|weight| *weight /= total);
    }
    Taps { first, weights }
}

/// How far two outputs lie apart, in units of inputs.
fn scale(size: usize, out: usize, align_corners: bool, factor: Option<f64>) -> f64 {
    match factor {
        _ if align_corners => {
            (size.saturating_sub(1) as f64) / (out.saturating_sub(1).max(1) as f64) * f64::from(u8::from(out > 1))
        }
        Some(factor) if factor > 0.0 => 1.0 / factor,
        _ => size as f64 / out as f64,
    }
}

/// The resampling of one side as a matrix `[out, size]`, row-major, in the mode "bilinear" or "bicubic".
pub fn matrix(mode: &str, size: usize, out: usize, align_corners: bool, factor: Option<f64>) -> Vec<f64> {
    let scale = scale(size, out, align_corners, factor);
    let mut matrix = vec![0.0; out * size];
    for (row, out) in matrix.chunks_exact_mut(size.max(1)).zip(0..) {
        let taps = taps(mode, size, scale, out);
        row[taps.first..][..taps.weights.len()].copy_from_slice(&taps.weights);
    }
    matrix
}

/// PyTorch's weights for bytes: multiples of the smallest power of two for which the largest weight fits into 15 bits.
pub fn coarse(weights: &mut [f64]) {
    let largest = weights.iter().fold(0.0, |largest: f64, &weight| largest.max(weight));
    let fits = |bits: i32| 0.5 + largest * f64::from(bits + 1).exp2() < 32768.0;
    let unit = f64::from((0..22).find(|&bits| !fits(bits)).unwrap_or(22)).exp2();
    weights.iter_mut().for_each(|weight| *weight = (*weight * unit + 0.5f64.copysign(*weight)).trunc() / unit);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_add_up_to_one() {
        for (size, out, align) in [(8, 3, false), (3, 8, false), (8, 3, true), (5, 1, true), (1, 4, false)] {
            for mode in ["bilinear", "bicubic"] {
                for row in matrix(mode, size, out, align, None).chunks(size) {
                    assert!((row.iter().sum::<f64>() - 1.0).abs() < 1e-12, "{mode} {size} {out} {align}");
                }
            }
        }
    }
}
