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

/// Resampling of a side: what outputs read.
#[derive(Clone, Copy)]
pub struct Side<'a> {
    /// "bilinear" or "bicubic".
    pub mode: &'a str,
    pub size: usize,
    pub out: usize,
    pub align_corners: bool,
    pub factor: Option<f64>,
    /// With PyTorch's weights for bytes.
    pub is_coarse: bool,
}

/// Windows of equal length: what each of `first.len()` results reads first, and the weights, by tap and then by result.
pub struct Windows {
    pub first: Vec<i64>,
    pub taps: usize,
    pub weights: Vec<f64>,
}

impl Side<'_> {
    fn taps(&self) -> Vec<Taps> {
        let scale = scale(self.size, self.out, self.align_corners, self.factor);
        let mut taps: Vec<Taps> = (0..self.out).map(|out| taps(self.mode, self.size, scale, out)).collect();
        if self.is_coarse {
            let mut all: Vec<f64> = taps.iter().flat_map(|taps| &taps.weights).copied().collect();
            coarse(&mut all);
            taps.iter_mut().flat_map(|taps| &mut taps.weights).zip(all).for_each(|(weight, coarse)| *weight = coarse);
        }
        taps
    }

    /// What outputs read.
    pub fn windows(&self) -> Windows {
        windows(self.taps(), self.size)
    }

    /// What inputs read of the outputs' gradients.
    pub fn transposed(&self) -> Windows {
        let mut readers: Vec<Taps> = (0..self.size).map(|_| Taps { first: self.out, weights: Vec::new() }).collect();
        for (out, taps) in self.taps().iter().enumerate() {
            for (reader, &weight) in readers[taps.first..].iter_mut().zip(&taps.weights) {
                reader.first = reader.first.min(out);
                // Outputs between that do not read it.
                reader.weights.resize(out - reader.first, 0.0);
                reader.weights.push(weight);
            }
        }
        windows(readers, self.out)
    }
}

fn windows(all: Vec<Taps>, size: usize) -> Windows {
    let taps = all.iter().map(|taps| taps.weights.len()).max().unwrap_or(0);
    let mut weights = vec![0.0; taps * all.len()];
    for (at, one) in all.iter().enumerate() {
        one.weights.iter().enumerate().for_each(|(k, &weight)| weights[k * all.len() + at] = weight);
    }
    let first = all.iter().map(|one| one.first.min(size.saturating_sub(1)) as i64).collect();
    Windows { first, taps, weights }
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
    fn weights_add_up_to_one_and_are_transposed() {
        for (size, out, align_corners) in [(8, 3, false), (3, 8, false), (8, 3, true), (5, 1, true), (1, 4, false)] {
            for mode in ["bilinear", "bicubic"] {
                let side = Side { mode, size, out, align_corners, factor: None, is_coarse: false };
                let (there, back) = (side.windows(), side.transposed());
                let mut matrix = vec![0.0; size * out];
                for o in 0..out {
                    let weights = || (0..there.taps).map(|k| there.weights[k * out + o]);
                    assert!((weights().sum::<f64>() - 1.0).abs() < 1e-12, "{mode} {size} {out} {align_corners}");
                    weights().enumerate().filter(|(_, w)| *w != 0.0).for_each(|(k, w)| {
                        matrix[o * size + there.first[o] as usize + k] = w;
                    });
                }
                for i in 0..size {
                    for k in (0..back.taps).filter(|k| back.weights[k * size + i] != 0.0) {
                        let weight = std::mem::take(&mut matrix[(back.first[i] as usize + k) * size + i]);
                        assert_eq!(weight, back.weights[k * size + i]);
                    }
                }
                assert!(matrix.iter().all(|&weight| weight == 0.0));
            }
        }
    }
}
