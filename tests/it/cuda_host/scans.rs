//! Running sums and their like beside their host twins, where sizes and places in memory decide how they are cut.

use super::HostGpu;
use super::fused::{Memory, wave};
use tscript::DType;
use tscript::internals::base::attr::Attr;
use tscript::internals::kernel::abi::{Call, Faults, RawView, Threads};
use tscript::internals::kernel::family::Kernel;
use tscript::internals::kernel::scan;

/// A view of a shape, so many elements into a larger memory.
fn inside(memory: &Memory, shape: &[usize], shift: usize) -> RawView {
    let dtype = memory.view.dtype;
    RawView::contiguous(memory.view.ptr.wrapping_add(shift * dtype.size_bytes()), dtype, shape)
}

/// Scans a shape with the input `shifts[0]` and the outputs `shifts[1]` elements past an aligned place. What is around the
/// outputs must stay.
#[track_caller]
fn same(kernel: &Kernel, x: DType, outputs: &[DType], shape: &[usize], dim: i64, shifts: [usize; 2], close: f64) {
    let Some(mut gpu) = HostGpu::open() else { return };
    let room = shape.iter().product::<usize>() + 24;
    let value = |i: usize| (wave(i) * 3.0).round() * if x.is_float() { 0.25 } else { 1.0 };
    let given = Memory::new(x, &[room], &[1], value);
    let make = || -> Vec<Memory> { outputs.iter().map(|&dtype| Memory::new(dtype, &[room], &[1], |_| 5.0)).collect() };
    let (ours, theirs) = (make(), make());
    let inputs = [inside(&given, shape, shifts[0])];
    let views = |all: &[Memory]| -> Vec<RawView> { all.iter().map(|m| inside(m, shape, shifts[1])).collect() };
    let (ours_views, theirs_views) = (views(&ours), views(&theirs));
    let (faults, threads) = (Faults::default(), &Threads::ONE);
    for reverse in [false, true] {
        let attrs = [Attr::Int(dim), Attr::Bool(reverse)];
        let call =
            |outputs| Call { inputs: &inputs, outputs, attrs: &attrs, threads, faults: &faults, seed: 0, offset: 0 };
        // SAFETY: the views are inside their memories.
        unsafe { (kernel.host)(&call(&theirs_views)) };
        kernel.cuda.expect("a launch")(&call(&ours_views), &mut gpu).expect("the recorder launches");
        for (n, (a, b)) in ours.iter().zip(&theirs).enumerate() {
            for (i, (x, y)) in a.values().into_iter().zip(b.values()).enumerate() {
                let near = x == y || (x - y).abs() <= close * y.abs().max(1.0);
                let what = format!("{x:e}, host {y:e} ({shape:?} dim {dim}, {shifts:?}, reverse {reverse})");
                assert!(near, "output {n}, place {i}: {what}");
            }
        }
    }
}

/// Rows of odd lengths begin and end within vectors; those that are longer than a block's registers are cut into tiles.
#[test]
fn rows_of_all_lengths_at_all_places() {
    let shapes: [(&[usize], i64); 5] =
        [(&[7, 1001], 1), (&[300, 5], 1), (&[3, 40_001], 1), (&[90_000], 0), (&[3, 1, 4], 1)];
    for (shape, dim) in shapes {
        for shifts in [[0, 0], [1, 1], [3, 3], [0, 1]] {
            same(&scan::CUMSUM, DType::F32, &[DType::F32], shape, dim, shifts, 2e-4);
        }
        same(&scan::CUMSUM, DType::I64, &[DType::I64], shape, dim, [1, 1], 0.0);
        same(&scan::LOGCUMSUMEXP, DType::F64, &[DType::F64], shape, dim, [0, 0], 1e-11);
        same(&scan::LOGCUMSUMEXP, DType::F32, &[DType::F32], shape, dim, [1, 1], 2e-5);
        same(&scan::CUMMAX, DType::I16, &[DType::I16, DType::I64], shape, dim, [0, 0], 0.0);
        same(&scan::CUMMIN, DType::F32, &[DType::F32, DType::I64], shape, dim, [1, 1], 0.0);
    }
}

/// Columns are cut into tiles along the dim; tiles are told of in groups.
#[test]
fn columns_of_all_lengths() {
    let shapes: [(&[usize], i64); 4] = [(&[600, 130], 0), (&[2, 1000, 3], 1), (&[70, 1, 5], 1), (&[200_000, 2], 0)];
    for (shape, dim) in shapes {
        for shifts in [[0, 0], [1, 1]] {
            same(&scan::CUMSUM, DType::F64, &[DType::F64], shape, dim, shifts, 1e-10);
        }
        if shape[0] > 10_000 {
            continue;
        }
        same(&scan::CUMSUM, DType::BF16, &[DType::BF16], shape, dim, [0, 0], 4e-2);
        same(&scan::LOGCUMSUMEXP, DType::F32, &[DType::F32], shape, dim, [0, 0], 2e-5);
        same(&scan::CUMMAX, DType::F64, &[DType::F64, DType::I64], shape, dim, [0, 0], 0.0);
        same(&scan::CUMMIN, DType::U8, &[DType::U8, DType::I64], shape, dim, [3, 3], 0.0);
    }
}

/// Infinities are sums of infinities, and nothing before an element is minus infinity.
#[test]
fn log_sums_of_infinities() {
    let Some(mut gpu) = HostGpu::open() else { return };
    let low = f64::NEG_INFINITY;
    let x = Memory::new(DType::F32, &[3, 5], &[5, 1], |i| {
        [low, low, 1.0, low, 2.0, 0.5, f64::INFINITY, f64::INFINITY, low, 1.0, 1.0, 2.0, f64::NAN, 3.0, low][i]
    });
    let y = Memory::new(DType::F32, &[3, 5], &[5, 1], |_| 7.0);
    let (inputs, outputs) = ([x.view.clone()], [y.view.clone()]);
    let (faults, threads) = (Faults::default(), &Threads::ONE);
    let attrs = [Attr::Int(1), Attr::Bool(false)];
    let call = Call { inputs: &inputs, outputs: &outputs, attrs: &attrs, threads, faults: &faults, seed: 0, offset: 0 };
    scan::LOGCUMSUMEXP.cuda.expect("a launch")(&call, &mut gpu).unwrap();
    let close = |got: f64, expected: f64| {
        got == expected || (got.is_nan() && expected.is_nan()) || (got - expected).abs() < 1e-6
    };
    let inf = f64::INFINITY;
    // logaddexp.accumulate of NumPy.
    let expected =
        [low, low, 1.0, 1.0, 2.3132617, 0.5, inf, inf, inf, inf, 1.0, 2.3132617, f64::NAN, f64::NAN, f64::NAN];
    for (i, (got, expected)) in y.values().into_iter().zip(expected).enumerate() {
        assert!(close(got, expected), "element {i}: {got} instead of {expected}");
    }
}
