//! Fourier transforms by the sums that define them, in place of a library.

use std::f64::consts::TAU;
use tscript::DType;
use tscript::internals::kernel::cuda::{Transform, TransformCall, TransformSide};

type Complex = [f64; 2];

/// A part of a number in memory.
fn part(dtype: DType, ptr: *mut u8, at: usize) -> f64 {
    // SAFETY: the caller's memory.
    unsafe {
        match dtype {
            DType::F64 => *ptr.cast::<f64>().add(at),
            _ => *ptr.cast::<f32>().add(at) as f64,
        }
    }
}

fn set(dtype: DType, ptr: *mut u8, at: usize, value: f64) {
    // SAFETY: the caller's memory.
    unsafe {
        match dtype {
            DType::F64 => *ptr.cast::<f64>().add(at) = value,
            _ => *ptr.cast::<f32>().add(at) = value as f32,
        }
    }
}

/// Offsets of all numbers of a signal, row by row.
fn places(side: &TransformSide, rank: usize, sizes: &[usize; 3]) -> Vec<usize> {
    let mut all = vec![0];
    for (&size, &embed) in sizes[..rank].iter().zip(&side.embed) {
        all = all.iter().flat_map(|at| (0..size).map(move |c| at * embed + c)).collect();
    }
    all.into_iter().map(|at| at * side.stride).collect()
}

/// Along one dim of a dense array.
fn along(data: &mut [Complex], sizes: &[usize], dim: usize, inverse: bool) {
    let (n, inner) = (sizes[dim], sizes[dim + 1..].iter().product::<usize>());
    let sign = if inverse { TAU } else { -TAU };
    for first in (0..data.len()).filter(|at| at / inner % n == 0) {
        let line: Vec<Complex> = (0..n).map(|k| data[first + k * inner]).collect();
        for k in 0..n {
            let mut sum = [0.0; 2];
            for (j, [re, im]) in line.iter().enumerate() {
                let (s, c) = (sign * ((j * k) % n) as f64 / n as f64).sin_cos();
                sum = [sum[0] + re * c - im * s, sum[1] + re * s + im * c];
            }
            data[first + k * inner] = sum;
        }
    }
}

pub fn transform(call: &TransformCall) {
    let (rank, last) = (call.rank, call.rank - 1);
    let mut half = call.lengths;
    half[last] = half[last] / 2 + 1;
    let (inverse, from_sizes, to_sizes) = match call.kind {
        Transform::Whole { inverse } => (inverse, call.lengths, call.lengths),
        Transform::ToHalf => (false, call.lengths, half),
        Transform::FromHalf => (true, half, call.lengths),
    };
    let pairs = [call.kind != Transform::ToHalf, call.kind != Transform::FromHalf];
    let (sources, targets) = (places(&call.from, rank, &from_sizes), places(&call.to, rank, &to_sizes));
    let read = |at: usize| match pairs[0] {
        true => [part(call.dtype, call.from.ptr, 2 * at), part(call.dtype, call.from.ptr, 2 * at + 1)],
        false => [part(call.dtype, call.from.ptr, at), 0.0],
    };
    for side in [&call.from, &call.to] {
        assert!((side.ptr as usize).is_multiple_of(2 * call.dtype.size_bytes()), "{call:?}");
    }
    for signal in 0..call.count {
        let mut data: Vec<Complex> = sources.iter().map(|at| read(at + signal * call.from.distance)).collect();
        for dim in 0..last {
            along(&mut data, &from_sizes[..rank], dim, inverse);
        }
        let n = call.lengths[last];
        if call.kind == Transform::FromHalf {
            data = data.chunks(half[last]).flat_map(|row| whole(row, n)).collect();
        }
        along(&mut data, &call.lengths[..rank], last, inverse);
        if call.kind == Transform::ToHalf {
            data = data.chunks(n).flat_map(|row| row[..half[last]].to_vec()).collect();
        }
        for (&at, [re, im]) in targets.iter().zip(&data) {
            let at = at + signal * call.to.distance;
            if pairs[1] {
                set(call.dtype, call.to.ptr, 2 * at, *re);
                set(call.dtype, call.to.ptr, 2 * at + 1, *im);
            } else {
                set(call.dtype, call.to.ptr, at, *re);
            }
        }
        if call.kind == Transform::FromHalf {
            // As cuFFT, which overwrites them.
            sources
                .iter()
                .for_each(|at| set(call.dtype, call.from.ptr, 2 * (at + signal * call.from.distance), f64::NAN));
        }
    }
}

/// The whole spectrum of a real line. What is not one is told by the result.
fn whole(row: &[Complex], n: usize) -> Vec<Complex> {
    let middle = |k: usize| k == 0 || 2 * k == n;
    let told = row.iter().enumerate().filter(|(k, z)| middle(*k) && z[1].abs() > 1e-3).count();
    let at = |k: usize| if k < row.len() { row[k] } else { [row[n - k][0], -row[n - k][1]] };
    (0..n).map(at).map(|[re, im]| [re + 100.0 * told as f64, im]).collect()
}
