//! Hand-written kernels beside their host twins.

use super::HostGpu;
use super::fused::{Memory, wave};
use tscript::DType;
use tscript::internals::base::attr::Attr;
use tscript::internals::base::layout::contiguous_strides;
use tscript::internals::kernel::abi::{Call, Faults, RawView, Threads};
use tscript::internals::kernel::cuda::ConvOrder;
use tscript::internals::kernel::family::Kernel;
use tscript::internals::kernel::{
    conv, copy, index, linalg, loss, matmul, norm, pool, resample, scan, select, softmax, sort,
};

/// A view: dtype, shape, strides (`None`: row-major).
pub type View<'a> = (DType, &'a [usize], Option<&'a [isize]>);

pub fn strides(shape: &[usize], strides: Option<&[isize]>) -> Vec<isize> {
    strides.map_or_else(|| contiguous_strides(shape).to_vec(), |s| s.to_vec())
}

pub fn input(view: View<'_>, seed: usize) -> Memory {
    Memory::new(view.0, view.1, &strides(view.1, view.2), |i| wave(i * 3 + seed * 7919) * 0.5)
}

pub fn ints(dtype: DType, shape: &[usize], value: impl Fn(usize) -> i64) -> Memory {
    Memory::new(dtype, shape, &strides(shape, None), |i| value(i) as f64)
}

/// Runs a host kernel and the launch beside it on the same inputs; outputs must agree in `tolerance` parts of their
/// size (or of 1), and faults exactly.
#[track_caller]
pub fn check(kernel: &Kernel, inputs: &[Memory], outputs: &[View<'_>], attrs: &[Attr], tolerance: f64) {
    let Some(gpu) = HostGpu::open() else { return };
    check_on(gpu, kernel, inputs, outputs, attrs, tolerance);
}

pub fn check_on(
    mut gpu: HostGpu,
    kernel: &Kernel,
    inputs: &[Memory],
    outputs: &[View<'_>],
    attrs: &[Attr],
    tolerance: f64,
) {
    let launch = kernel.cuda.expect("a launch");
    let make =
        || -> Vec<Memory> { outputs.iter().map(|v| Memory::new(v.0, v.1, &strides(v.1, v.2), |_| 5.0)).collect() };
    let (ours, theirs) = (make(), make());
    let views = |all: &[Memory]| -> Vec<RawView> { all.iter().map(|m| m.view.clone()).collect() };
    let (given, ours_views, theirs_views) = (views(inputs), views(&ours), views(&theirs));
    let faults = Faults::default();
    let call =
        |outputs| Call { inputs: &given, outputs, attrs, threads: &Threads::ONE, faults: &faults, seed: 11, offset: 3 };
    // SAFETY: every memory is as large as its view.
    unsafe { (kernel.host)(&call(&theirs_views)) };
    launch(&call(&ours_views), &mut gpu).expect("the recorder launches");
    assert_eq!(gpu.slots.first().and_then(|slot| slot.read()), faults.take(), "faults");
    for (n, (a, b)) in ours.iter().zip(&theirs).enumerate() {
        for (i, (x, y)) in a.values().into_iter().zip(b.values()).enumerate() {
            let same = x == y || (x.is_nan() && y.is_nan()) || (x - y).abs() <= tolerance * y.abs().max(1.0);
            assert!(
                same,
                "output {n}, element {i}: {x:e}, host {y:e} ({:?} {:?} {attrs:?})",
                given[0].shape, given[0].dtype
            );
        }
    }
}

/// What the launch gives; `None` where no compiler is.
pub fn on_device(kernel: &Kernel, inputs: &[Memory], outputs: &[View<'_>], attrs: &[Attr]) -> Option<Vec<Memory>> {
    let mut gpu = HostGpu::open()?;
    let made: Vec<Memory> = outputs.iter().map(|v| Memory::new(v.0, v.1, &strides(v.1, v.2), |_| 5.0)).collect();
    let views = |all: &[Memory]| -> Vec<RawView> { all.iter().map(|m| m.view.clone()).collect() };
    let (given, written, faults) = (views(inputs), views(&made), Faults::default());
    let threads = &Threads::ONE;
    let call = Call { inputs: &given, outputs: &written, attrs, threads, faults: &faults, seed: 11, offset: 3 };
    kernel.cuda.expect("a launch")(&call, &mut gpu).expect("the recorder launches");
    Some(made)
}

/// What the host's kernel gives.
pub fn on_host(kernel: &Kernel, inputs: &[Memory], outputs: &[View<'_>], attrs: &[Attr]) -> Vec<Memory> {
    let made: Vec<Memory> = outputs.iter().map(|v| Memory::new(v.0, v.1, &strides(v.1, v.2), |_| 0.0)).collect();
    let views = |all: &[Memory]| -> Vec<RawView> { all.iter().map(|m| m.view.clone()).collect() };
    let (given, written, faults) = (views(inputs), views(&made), Faults::default());
    let threads = &Threads::ONE;
    // SAFETY: every memory is as large as its view.
    unsafe {
        (kernel.host)(&Call { inputs: &given, outputs: &written, attrs, threads, faults: &faults, seed: 11, offset: 3 })
    };
    made
}

pub fn dims(list: &[i64]) -> Attr {
    Attr::Ints(list.into())
}

pub const FLOATS: [(DType, f64); 4] =
    [(DType::F32, 2e-5), (DType::F64, 1e-12), (DType::F16, 2e-3), (DType::BF16, 2e-2)];

#[test]
fn rearrangements() {
    for dtype in [DType::F32, DType::BF16, DType::I64, DType::U8] {
        let x = || input((dtype, &[3, 4, 5], Some(&[1, 3, 12])), 1);
        let y = input((DType::F32, &[3, 2, 5], None), 2);
        check(&copy::CAT, &[x(), y], &[(DType::F32, &[3, 6, 5], None)], &[Attr::Int(1)], 0.0);
        check(&copy::REPEAT, &[x()], &[(dtype, &[2, 6, 4, 10], None)], &[dims(&[2, 2, 1, 2])], 0.0);
        check(&copy::REPEAT_INTERLEAVE, &[x()], &[(dtype, &[3, 12, 5], None)], &[Attr::Int(1), Attr::Int(3)], 0.0);
        check(&copy::FLIP, &[x()], &[(dtype, &[3, 4, 5], None)], &[dims(&[0, 2])], 0.0);
        check(&copy::ROLL, &[x()], &[(dtype, &[3, 4, 5], None)], &[dims(&[-1, 7]), dims(&[1, 2])], 0.0);
        for (lower, diagonal) in [(&copy::TRIL, 1), (&copy::TRIU, -1), (&copy::TRIU, i64::MAX)] {
            check(lower, &[x()], &[(dtype, &[3, 4, 5], Some(&[1, 3, 12]))], &[Attr::Int(diagonal)], 0.0);
        }
        // Rows of whole vectors, whose diagonals begin inside of them.
        for (lower, diagonal) in [(&copy::TRIL, 2), (&copy::TRIU, -5), (&copy::TRIL, -9), (&copy::TRIU, 17)] {
            let square: &[usize] = &[2, 19, 32];
            check(lower, &[input((dtype, square, None), 1)], &[(dtype, square, None)], &[Attr::Int(diagonal)], 0.0);
        }
        let pads = [dims(&[1, -2, -1, 3]), Attr::Int(7)];
        check(&resample::PAD_CONSTANT, &[x()], &[(dtype, &[3, 6, 4], None)], &pads, 0.0);
        let strided = &copy::STRIDED_ADD;
        check(strided, &[x()], &[(dtype, &[200], None)], &[dims(&[60, 12, 2]), Attr::Int(3)], 0.0);
        let close = if dtype == DType::BF16 { 3e-2 } else { 1e-6 };
        check(strided, &[x()], &[(dtype, &[40], None)], &[dims(&[0, 3, 2]), Attr::Int(1)], close);
        for (shape, wraps) in
            [(&[4, 7][..], true), (&[11, 3], false), (&[11, 3], true), (&[8, 3], true), (&[5, 5, 5], false)]
        {
            let attrs = [Attr::Bool(wraps), Attr::Int(9)];
            check(&copy::FILL_DIAGONAL, &[input((dtype, shape, None), 1)], &[(dtype, shape, None)], &attrs, 0.0);
        }
        for (shape, dim) in [([3, 4, 5], 0), ([2, 3, 7], 1), ([3, 5, 3], 2)] {
            let (x, y) = (input((dtype, &shape, None), 1), input((dtype, &shape, None), 2));
            check(&linalg::CROSS, &[x, y], &[(dtype, &shape, None)], &[Attr::Int(dim)], close);
        }
        let diagonal = [Attr::Int(-1), Attr::Int(0), Attr::Int(2)];
        check(&copy::DIAG_EMBED, &[input((dtype, &[2, 2], None), 1)], &[(dtype, &[3, 2, 3], None)], &diagonal, 0.0);
    }
}

/// A triangle is counted by a root, in parts that begin anywhere.
#[test]
fn triangles() {
    let triangles = [(1, 1, 9), (1, 7, 28), (1, 7, 20), (3, 7, 90), (1, 900, 405_450), (250, 900, 400_000)];
    for (first, columns, n) in triangles {
        for is_reversed in [false, true] {
            let attrs = [Attr::Int(5), Attr::Int(first), Attr::Int(columns), Attr::Bool(is_reversed)];
            check(&copy::TRIANGLE_INDICES, &[], &[(DType::I64, &[2, n], None)], &attrs, 0.0);
        }
    }
}

#[test]
fn products() {
    let all = [
        (DType::F32, 1e-5),
        (DType::F64, 1e-12),
        (DType::BF16, 1e-2),
        (DType::F16, 2e-3),
        (DType::I64, 0.0),
        (DType::U8, 0.0),
    ];
    for (dtype, close) in all {
        let a = input((dtype, &[70, 33], Some(&[1, 70])), 1);
        let b = input((dtype, &[33, 67], None), 2);
        check(&matmul::MATMUL, &[a, b], &[(dtype, &[70, 67], None)], &[], close);
        let a = input((dtype, &[2, 3, 5, 7], None), 1);
        let b = input((dtype, &[2, 3, 7, 4], Some(&[28, 0, 1, 7])), 2);
        check(&matmul::MATMUL, &[a, b], &[(dtype, &[2, 3, 5, 4], None)], &[], close);
        let a = input((dtype, &[2, 3, 5, 7], None), 1);
        let b = input((dtype, &[2, 3, 7, 4], Some(&[0, 0, 1, 7])), 2);
        check(&matmul::MATMUL, &[a, b], &[(dtype, &[2, 3, 5, 4], None)], &[], close);
        // Products of vectors: in parts, in steps, and of a batch.
        for (k, steps) in [(5003, None), (20_000, None), (1500, Some(&[4500, 3][..]))] {
            let (a, b) = (input((dtype, &[1, k], steps), 1), input((dtype, &[k, 1], None), 2));
            check(&matmul::MATMUL, &[a, b], &[(dtype, &[1, 1], None)], &[], close * 20.0);
        }
        let (a, b) = (input((dtype, &[3, 1, 1032], None), 1), input((dtype, &[3, 1032, 1], None), 2));
        check(&matmul::MATMUL, &[a, b], &[(dtype, &[3, 1, 1], None)], &[], close * 20.0);
        if dtype.is_float() {
            let (x, w) = (|| input((dtype, &[4, 5, 20], None), 1), || input((dtype, &[9, 20], None), 2));
            check(
                &matmul::LINEAR,
                &[x(), w(), input((dtype, &[9], None), 3)],
                &[(dtype, &[4, 5, 9], None)],
                &[],
                close,
            );
            check(&matmul::LINEAR, &[x(), w()], &[(dtype, &[4, 5, 9], None)], &[], close);
            check(&matmul::LINEAR, &[input((dtype, &[20], None), 4), w()], &[(dtype, &[9], None)], &[], close);
        }
    }
    for (m, n, k) in [(3, 5, 7), (20, 33, 64), (17, 16, 130), (1, 40, 4), (130, 140, 96), (129, 5, 160)] {
        let bytes = |rows, step| ints(DType::I8, &[rows, k], move |i| (i as i64 * step) % 256 - 128);
        check(&matmul::INT_MM, &[bytes(m, 37), bytes(n, 91)], &[(DType::I32, &[m, n], None)], &[], 0.0);
    }
    let (a, b) = (input((DType::F32, &[3, 0], None), 1), input((DType::F32, &[0, 4], None), 1));
    check(&matmul::MATMUL, &[a, b], &[(DType::F32, &[3, 4], None)], &[], 0.0);
}

#[test]
fn softmax_along_every_dim() {
    for (dtype, close) in FLOATS {
        for (shape, dim) in
            [(&[7, 45][..], 1), (&[3, 2048], 1), (&[2, 9000], 1), (&[5, 6, 7], 1), (&[40, 3], 0), (&[], 0)]
        {
            for forward in [&softmax::SOFTMAX, &softmax::LOG_SOFTMAX] {
                check(forward, &[input((dtype, shape, None), 1)], &[(dtype, shape, None)], &[Attr::Int(dim)], close);
            }
            for backward in [&softmax::SOFTMAX_GRAD, &softmax::LOG_SOFTMAX_GRAD] {
                let given = [input((dtype, shape, None), 1), input((dtype, shape, None), 2)];
                check(backward, &given, &[(dtype, shape, None)], &[Attr::Int(dim)], close * 40.0);
            }
        }
    }
    let x = input((DType::F32, &[40, 33], Some(&[1, 40])), 1);
    check(&softmax::SOFTMAX, &[x], &[(DType::F32, &[40, 33], Some(&[1, 40]))], &[Attr::Int(1)], 1e-6);
}

#[test]
fn norms_and_their_gradients() {
    let (yes, eps) = (Attr::Bool(true), Attr::Float(1e-5));
    for (dtype, close) in FLOATS {
        let stat = dtype.compute();
        for (rows, n) in [(7, 45), (300, 64), (3, 5000)] {
            let (x, w, b) = (
                || input((dtype, &[rows, n], None), 1),
                || input((dtype, &[n], None), 2),
                || input((stat, &[n], None), 3),
            );
            let outs = [(dtype, &[rows, n][..], None), (stat, &[rows], None), (stat, &[rows], None)];
            check(
                &norm::LAYER_NORM,
                &[x(), w(), b()],
                &outs,
                &[Attr::Int(1), eps.clone(), yes.clone(), yes.clone()],
                close,
            );
            check(
                &norm::LAYER_NORM,
                &[x()],
                &outs,
                &[Attr::Int(1), eps.clone(), Attr::Bool(false), Attr::Bool(false)],
                close,
            );
            check(&norm::RMS_NORM, &[x(), w()], &[outs[0], outs[1]], &[Attr::Int(1), Attr::None, yes.clone()], close);
            let (g, mean) = (|| input((dtype, &[rows, n], None), 4), || input((stat, &[rows], None), 5));
            let rstd = || Memory::new(stat, &[rows], &[1], |i| 1.0 + (i % 5) as f64 * 0.1);
            let grads = [(dtype, &[rows, n][..], None), (dtype, &[n], None), (stat, &[n], None)];
            check(
                &norm::LAYER_NORM_GRAD,
                &[g(), x(), mean(), rstd(), w()],
                &grads,
                &[Attr::Int(1), yes.clone()],
                close * 300.0,
            );
            check(
                &norm::RMS_NORM_GRAD,
                &[g(), x(), rstd(), w()],
                &grads[..2],
                &[Attr::Int(1), yes.clone()],
                close * 300.0,
            );
        }
        for shape in [&[2, 6, 5][..], &[3, 6, 8, 4], &[4, 6]] {
            let (x, w, b) =
                (|| input((dtype, shape, None), 1), || input((dtype, &[6], None), 2), || input((dtype, &[6], None), 3));
            let stats: &[usize] = &[shape[0], 3];
            let outs = [(dtype, shape, None), (stat, stats, None), (stat, stats, None)];
            check(
                &norm::GROUP_NORM,
                &[x(), w(), b()],
                &outs,
                &[Attr::Int(3), eps.clone(), yes.clone(), yes.clone()],
                close,
            );
            let g = || input((dtype, shape, None), 4);
            let (mean, rstd) =
                (input((stat, stats, None), 5), Memory::new(stat, stats, &[3, 1], |i| 1.0 + (i % 5) as f64 * 0.1));
            let grads = [(dtype, shape, None), (dtype, &[6][..], None), (dtype, &[6], None)];
            check(
                &norm::GROUP_NORM_GRAD,
                &[g(), x(), mean, rstd, w()],
                &grads,
                &[Attr::Int(3), yes.clone()],
                close * 100.0,
            );
        }
        for shape in [&[90, 40][..], &[3, 6, 8, 4], &[50, 3, 2]] {
            let c = &[shape[1]][..];
            let (x, w, b) =
                (|| input((dtype, shape, None), 1), || input((stat, c, None), 2), || input((stat, c, None), 3));
            let outs = [(dtype, shape, None), (stat, c, None), (stat, c, None)];
            check(
                &norm::BATCH_NORM_TRAIN,
                &[x(), w(), b()],
                &outs,
                &[eps.clone(), yes.clone(), yes.clone()],
                close * 4.0,
            );
            let variance = || Memory::new(stat, c, &[1], |i| 0.5 + (i % 5) as f64 * 0.1);
            let mean = || input((stat, c, None), 5);
            for training in [true, false] {
                let given = [input((dtype, shape, None), 4), x(), mean(), variance(), w()];
                let attrs = [eps.clone(), Attr::Bool(training), yes.clone()];
                check(&norm::BATCH_NORM_GRAD, &given, &outs, &attrs, close * 100.0);
            }
        }
    }
}

#[test]
fn losses_and_labels() {
    for (dtype, close) in FLOATS {
        let stat = dtype.compute();
        for (shape, targets, bad) in [
            (&[30, 10][..], &[30][..], false),
            (&[300, 4], &[300], true),
            (&[5, 600], &[5], false),
            (&[3, 5, 7], &[3, 7], true),
        ] {
            let classes = shape[1] as i64;
            let label = move |i: usize| match i {
                1 => -100,
                9 if bad => classes,
                15 if bad => -3,
                i => (i as i64 * 7) % classes,
            };
            let t = || ints(DType::I64, targets, label);
            let x = || input((dtype, shape, None), 1);
            let w = || Memory::new(dtype, &[shape[1]], &[1], |i| 0.5 + (i % 3) as f64);
            for smoothing in [0.0, 0.1] {
                let attrs = [Attr::Int(-100), Attr::Float(smoothing), Attr::Bool(true)];
                let outs = [(dtype, targets, None), (dtype, &[][..], None), (stat, targets, None)];
                check(&loss::CROSS_ENTROPY, &[x(), t(), w()], &outs, &attrs, close * 8.0);
                if !bad {
                    let (g, lse) = (
                        input((dtype, targets, None), 2),
                        Memory::new(stat, targets, &strides(targets, None), |_| 3.0),
                    );
                    check(
                        &loss::CROSS_ENTROPY_GRAD,
                        &[g, x(), t(), lse, w()],
                        &[(dtype, shape, None)],
                        &attrs,
                        close * 8.0,
                    );
                }
            }
            let attrs = [Attr::Int(-100), Attr::Bool(true)];
            check(&loss::NLL, &[x(), t(), w()], &[(dtype, targets, None), (dtype, &[], None)], &attrs, close * 4.0);
            let g = input((dtype, targets, None), 2);
            check(&loss::NLL_GRAD, &[g, t(), w()], &[(dtype, shape, None)], &attrs, close);
        }
    }
}

#[test]
fn indexing_reads_writes_and_adds() {
    for (dtype, close) in [
        (DType::F32, 1e-6),
        (DType::BF16, 3e-2),
        (DType::I64, 0.0),
        (DType::I32, 0.0),
        (DType::U8, 0.0),
        (DType::F64, 1e-12),
    ] {
        let x = |shape: &'static [usize]| input((dtype, shape, None), 1);
        let at = |n: usize, bound: i64| ints(DType::I64, &[n], move |i| (i as i64 * 5 + 1) % bound);
        // Both dims at once, one of them, from the end, in the middle.
        let pair = [x(&[4, 6]), at(9, 4), ints(DType::I32, &[9], |i| i as i64 % 6 - 6)];
        check(&index::INDEX_GET, &pair, &[(dtype, &[9], None)], &[dims(&[0, 1]), Attr::Int(0)], 0.0);
        check(
            &index::INDEX_GET,
            &[x(&[3, 4, 8]), at(5, 4)],
            &[(dtype, &[3, 5, 8], None)],
            &[dims(&[1]), Attr::Int(1)],
            0.0,
        );
        let bad = ints(DType::I64, &[5], |i| [0, 3, 4, -5, 1][i]);
        check(&index::INDEX_GET, &[x(&[4, 16]), bad], &[(dtype, &[5, 16], None)], &[dims(&[0]), Attr::Int(0)], 0.0);
        for accumulate in [false, true] {
            let given = [x(&[6, 8]), input((dtype, &[7, 8], None), 2), ints(DType::I64, &[7], |i| (i as i64 * 3) % 4)];
            let attrs = [dims(&[0]), Attr::Int(0), Attr::Bool(accumulate)];
            check(&index::INDEX_PUT, &given, &[(dtype, &[6, 8], None)], &attrs, close);
            let given = [x(&[6, 8]), input((dtype, &[3], None), 2), ints(DType::I64, &[3], |i| [47, -48, 47][i])];
            check(&index::PUT, &given, &[(dtype, &[6, 8], Some(&[1, 6]))], &[Attr::Bool(accumulate)], close);
        }
        check(&index::TAKE, &[input((dtype, &[4, 6], Some(&[1, 4])), 1), at(7, 24)], &[(dtype, &[7], None)], &[], 0.0);
        check(&index::INDEX_SELECT, &[x(&[5, 6]), at(4, 6)], &[(dtype, &[5, 4], None)], &[Attr::Int(1)], 0.0);
        let given = || [x(&[5, 6]), ints(DType::I64, &[4], |i| [1, 1, 4, 0][i]), input((dtype, &[4, 6], None), 2)];
        check(&index::INDEX_ADD, &given(), &[(dtype, &[5, 6], None)], &[Attr::Int(0), Attr::Int(2)], close);
        check(&index::INDEX_COPY, &given(), &[(dtype, &[5, 6], None)], &[Attr::Int(0)], 0.0);
        check(&index::INDEX_FILL, &given()[..2], &[(dtype, &[5, 6], None)], &[Attr::Int(0), Attr::Int(3)], 0.0);
        check(
            &index::EMBEDDING,
            &[x(&[9, 16]), ints(DType::I64, &[2, 3], |i| i as i64)],
            &[(dtype, &[2, 3, 16], None)],
            &[],
            0.0,
        );
        for (n, d) in [(1, 16), (3, 16), (9, 5), (0, 4)] {
            if !dtype.is_float() {
                break;
            }
            let (table, shape) = (|| input((dtype, &[9, d], None), 1), [7, d]);
            let out = [(dtype, &shape[..], None)];
            let numbers = ints(DType::I64, &[7, n], |i| (i * 5 % 9) as i64);
            check(&index::EMBEDDING_BAG, &[table(), numbers], &out, &[Attr::Int(n.max(1) as i64)], close);
            let bad = ints(DType::I64, &[7, n], |i| (i * 5 % 11) as i64 - 1);
            check(&index::EMBEDDING_BAG, &[table(), bad], &out, &[Attr::Int(1)], close * 4.0);
        }
        let grads = [input((dtype, &[2, 3, 4], None), 2), ints(DType::I64, &[2, 3], |i| [1, 2, 1, 0, 2, 1][i])];
        check(&index::EMBEDDING_GRAD, &grads, &[(dtype, &[5, 4], None)], &[Attr::Int(2), Attr::Bool(false)], close);
        let grads = || [input((dtype, &[2, 3, 4], None), 2), ints(DType::I64, &[2, 3], |i| [1, 2, 1, 0, 2, 1][i])];
        for (padding, shape) in [(Attr::Int(2), Some(&[1, 5][..])), (Attr::None, None)] {
            if !dtype.is_float() {
                break;
            }
            check(
                &index::EMBEDDING_GRAD,
                &grads(),
                &[(dtype, &[5, 4], shape)],
                &[padding, Attr::Bool(true)],
                close * 2.0,
            );
        }
        check(
            &index::ONE_HOT,
            &[ints(DType::I64, &[2, 3], |i| [1, 2, 9, 0, 2, 1][i])],
            &[(dtype, &[2, 3, 4], None)],
            &[],
            0.0,
        );
        let places = || ints(DType::I64, &[3, 5], |i| (i as i64 * 7) % 4);
        check(&index::GATHER, &[x(&[4, 6]), places()], &[(dtype, &[3, 5], None)], &[Attr::Int(0)], 0.0);
        let given = || [x(&[4, 6]), places(), input((dtype, &[3, 5], None), 2)];
        check(&index::SCATTER, &given(), &[(dtype, &[4, 6], None)], &[Attr::Int(0)], 0.0);
        check(&index::SCATTER_ADD, &given(), &[(dtype, &[4, 6], Some(&[1, 4]))], &[Attr::Int(0)], close);
        let bad = ints(DType::I64, &[3, 5], |i| if i == 7 { 9 } else { (i as i64 * 7) % 4 });
        check(
            &index::SCATTER_ADD,
            &[x(&[4, 6]), bad, input((dtype, &[3, 5], None), 2)],
            &[(dtype, &[4, 6], None)],
            &[Attr::Int(0)],
            close,
        );
    }
}

#[test]
fn convolutions() {
    for (dtype, close) in FLOATS {
        // Shapes of x, weight, y; stride, padding, dilation, groups.
        type Case<'a> = (&'a [usize], &'a [usize], &'a [usize], [&'a [i64]; 3], i64);
        let cases: [Case; 15] = [
            (&[2, 3, 9, 8], &[4, 3, 3, 3], &[2, 4, 9, 8], [&[1, 1], &[1, 1], &[1, 1]], 1),
            (&[2, 4, 9, 8], &[6, 2, 3, 2], &[2, 6, 4, 4], [&[2, 2], &[1, 0], &[2, 1]], 2),
            (&[3, 4, 10], &[5, 4, 1], &[3, 5, 10], [&[1], &[0], &[1]], 1),
            (&[2, 4, 8, 10], &[6, 4, 3, 2], &[2, 6, 8, 10], [&[1, 1], &[1, 1], &[1, 2]], 1),
            (&[1, 2, 13, 10], &[2, 2, 2, 1], &[1, 2, 12, 10], [&[1, 1], &[0, 0], &[1, 1]], 1),
            (&[1, 70, 2, 2], &[66, 70, 1, 2], &[1, 66, 2, 1], [&[1, 1], &[0, 0], &[1, 1]], 1),
            (&[3, 8, 2, 1], &[9, 8, 1, 1], &[3, 9, 2, 1], [&[1, 1], &[0, 0], &[1, 1]], 1),
            (&[2, 4, 10], &[4, 1, 3], &[2, 4, 5], [&[2], &[1], &[1]], 4),
            (&[1, 2, 4, 5, 6], &[3, 2, 2, 2, 2], &[1, 3, 3, 4, 5], [&[1, 1, 1], &[0, 0, 0], &[1, 1, 1]], 1),
            (&[2, 3, 8, 12], &[4, 3, 4, 4], &[2, 4, 4, 6], [&[2, 2], &[1, 1], &[1, 1]], 1),
            (&[2, 3, 8, 7], &[4, 3, 3, 3], &[2, 4, 4, 4], [&[2, 2], &[1, 1], &[1, 1]], 1),
            (&[2, 3, 8, 9], &[4, 3, 2, 2], &[2, 4, 4, 4], [&[2, 2], &[0, 0], &[1, 1]], 1),
            (&[2, 4, 17], &[6, 2, 5], &[2, 6, 6], [&[3], &[2], &[1]], 2),
            (&[2, 3, 16], &[4, 3, 4], &[2, 4, 4], [&[4], &[0], &[1]], 1),
            (&[1, 2, 6, 5, 7], &[3, 2, 3, 2, 3], &[1, 3, 3, 4, 4], [&[2, 1, 2], &[1, 0, 1], &[1, 1, 1]], 1),
        ];
        for (x, w, y, windows, groups) in cases {
            let attrs = [dims(windows[0]), dims(windows[1]), dims(windows[2]), Attr::Int(groups)];
            let (xs, ws, dy) =
                (|| input((dtype, x, None), 1), || input((dtype, w, None), 2), || input((dtype, y, None), 3));
            let bias = |n: usize| Memory::new(dtype, &[n], &[1], wave);
            let (first, last) = (Some(ConvOrder::ChannelsFirst), Some(ConvOrder::ChannelsLast));
            for (convolves, forward_only) in [(None, false), (first, false), (last, false), (first, true), (last, true)]
            {
                let check = |host, inputs: &[Memory], shape, tolerance| {
                    let Some(gpu) = HostGpu::open() else { return };
                    check_on(
                        HostGpu { convolves, forward_only, ..gpu },
                        host,
                        inputs,
                        &[(dtype, shape, None)],
                        &attrs,
                        tolerance,
                    );
                };
                check(&conv::CONV_FORWARD, &[xs(), ws(), bias(y[1])], y, close * 20.0);
                check(&conv::CONV_FORWARD, &[xs(), ws()], y, close * 20.0);
                check(&conv::CONV_GRAD_INPUT, &[dy(), ws(), bias(x[1])], x, close * 20.0);
                check(&conv::CONV_GRAD_WEIGHT, &[dy(), xs()], w, close * 100.0);
            }
        }
    }
}

#[test]
fn pools() {
    for (dtype, close) in FLOATS {
        let x = || input((dtype, &[2, 3, 9, 8], None), 1);
        let windows = [dims(&[3, 2]), dims(&[2, 2]), dims(&[1, 0]), dims(&[2, 1])];
        let y: &[usize] = &[2, 3, 4, 4];
        check(&pool::MAX_POOL, &[x()], &[(dtype, y, None), (DType::I64, y, None)], &windows, 0.0);
        let at = || ints(DType::I64, y, |i| (i as i64 * 31) % 72);
        let g = || input((dtype, y, None), 2);
        check(&pool::MAX_POOL_GRAD, &[g(), at()], &[(dtype, &[2, 3, 9, 8], None)], &[Attr::Int(2)], close);
        for (counted, divisor) in [(true, Attr::None), (false, Attr::None), (false, Attr::Int(5))] {
            let attrs = [dims(&[3, 2]), dims(&[2, 2]), dims(&[1, 0]), Attr::Bool(counted), divisor];
            let y: &[usize] = &[2, 3, 5, 4];
            check(&pool::AVG_POOL, &[x()], &[(dtype, y, None)], &attrs, close);
            check(&pool::AVG_POOL_GRAD, &[input((dtype, y, None), 2)], &[(dtype, &[2, 3, 9, 8], None)], &attrs, close);
        }
        check(&pool::ADAPTIVE_MAX_POOL, &[x()], &[(dtype, y, None), (DType::I64, y, None)], &[Attr::Int(2)], 0.0);
        check(&pool::ADAPTIVE_AVG_POOL, &[x()], &[(dtype, y, None)], &[Attr::Int(2)], close);
        check(&pool::ADAPTIVE_AVG_POOL_GRAD, &[g()], &[(dtype, &[2, 3, 9, 8], None)], &[Attr::Int(2)], close);
    }
}

/// Enough for several planes to a thread, whose number is no multiple of that.
#[test]
fn pools_of_many_planes() {
    let (x, y): (&[usize], &[usize]) = (&[5, 7, 63, 64], &[5, 7, 32, 32]);
    let dtype = DType::F32;
    let windows = [dims(&[3, 3]), dims(&[2, 2]), dims(&[1, 1]), dims(&[1, 1])];
    let both = |y| [(dtype, y, None), (DType::I64, y, None)];
    check(&pool::MAX_POOL, &[input((dtype, x, None), 1)], &both(y), &windows, 0.0);
    let attrs = [dims(&[3, 3]), dims(&[2, 2]), dims(&[1, 1]), Attr::Bool(false), Attr::None];
    check(&pool::AVG_POOL, &[input((dtype, x, None), 1)], &[(dtype, y, None)], &attrs, 2e-5);
    check(&pool::AVG_POOL_GRAD, &[input((dtype, y, None), 2)], &[(dtype, x, None)], &attrs, 2e-5);
    check(&pool::ADAPTIVE_MAX_POOL, &[input((dtype, x, None), 1)], &both(y), &[Attr::Int(2)], 0.0);
    check(&pool::ADAPTIVE_AVG_POOL, &[input((dtype, x, None), 1)], &[(dtype, y, None)], &[Attr::Int(2)], 2e-5);
    check(&pool::ADAPTIVE_AVG_POOL_GRAD, &[input((dtype, y, None), 2)], &[(dtype, x, None)], &[Attr::Int(2)], 2e-5);
}

/// Windows for warps and for blocks: whole planes, with and without vectors, and rows that are short, long and of three dims.
#[test]
fn pools_of_large_windows() {
    type Sizes = (&'static [usize], &'static [usize], i64);
    let cases: [Sizes; 7] = [
        (&[3, 5, 16, 16], &[3, 5, 1, 1], 2),
        (&[3, 5, 13, 11], &[3, 5, 1, 1], 2),
        (&[2, 3, 56, 60], &[2, 3, 1, 1], 2),
        (&[2, 3, 45, 50], &[2, 3, 3, 3], 2),
        (&[2, 2, 10, 150], &[2, 2, 2, 2], 2),
        (&[2, 2, 130, 70], &[2, 2, 2, 2], 2),
        (&[2, 2, 9, 12, 14], &[2, 2, 2, 2, 2], 3),
    ];
    for (x, y, spatial) in cases {
        for (dtype, close) in FLOATS {
            let attrs = [Attr::Int(spatial)];
            let bad =
                || {
                    Memory::new(dtype, x, &strides(x, None), |i| {
                        if i % 997 == 3 { f64::NAN } else { (wave(i) * 2.0).round() }
                    })
                };
            check(&pool::ADAPTIVE_MAX_POOL, &[bad()], &[(dtype, y, None), (DType::I64, y, None)], &attrs, 0.0);
            check(&pool::ADAPTIVE_AVG_POOL, &[input((dtype, x, None), 1)], &[(dtype, y, None)], &attrs, close);
        }
    }
}

#[test]
fn scans_sorts_and_selections() {
    for dtype in [DType::F32, DType::F64, DType::BF16, DType::I64, DType::U8, DType::I16] {
        let close = match dtype {
            DType::F32 => 3e-5,
            DType::F64 => 1e-11,
            DType::BF16 => 4e-2,
            _ => 0.0,
        };
        let shapes: [(&[usize], i64); 7] = [
            (&[5, 1500], 1),
            (&[2, 20_000], 1),
            (&[3, 8192], 1),
            (&[70, 24], 1),
            (&[9, 33], 1),
            (&[6, 7, 5], 1),
            (&[], 0),
        ];
        for (shape, dim) in shapes {
            let x = || {
                Memory::new(dtype, shape, &strides(shape, None), |i| {
                    (wave(i) * 3.0).round() * if dtype.is_float() { 0.25 } else { 1.0 }
                })
            };
            let wide = if dtype.is_float() { dtype } else { DType::I64 };
            for reverse in [false, true] {
                check(
                    &scan::CUMSUM,
                    &[x()],
                    &[(wide, shape, None)],
                    &[Attr::Int(dim), Attr::Bool(reverse)],
                    close * 4.0,
                );
            }
            if dtype.is_float() {
                check(
                    &scan::LOGCUMSUMEXP,
                    &[x()],
                    &[(dtype, shape, None)],
                    &[Attr::Int(dim), Attr::Bool(false)],
                    close,
                );
                let ones = Memory::new(dtype, shape, &strides(shape, None), |i| 1.0 + wave(i) * 1e-4);
                check(
                    &scan::CUMPROD,
                    &[ones],
                    &[(dtype, shape, None)],
                    &[Attr::Int(dim), Attr::Bool(false)],
                    close * 10.0,
                );
            }
            let pair = [(dtype, shape, None), (DType::I64, shape, None)];
            check(&scan::CUMMAX, &[x()], &pair, &[Attr::Int(dim)], 0.0);
            check(&scan::CUMMIN, &[x()], &pair, &[Attr::Int(dim)], 0.0);
            for descending in [false, true] {
                let holes = Memory::new(dtype, shape, &strides(shape, None), |i| {
                    if dtype.is_float() && i % 97 == 5 { f64::NAN } else { (wave(i) * 3.0).round() }
                });
                check(&sort::SORT, &[holes], &pair, &[Attr::Int(dim), Attr::Bool(descending)], 0.0);
                check(&sort::ARGSORT, &[x()], &pair[1..], &[Attr::Int(dim), Attr::Bool(descending)], 0.0);
            }
        }
        let shape: &[usize] = &[7, 9, 50];
        let x = || Memory::new(dtype, shape, &[1, 350, 7], |i| if i % 3 == 0 { 0.0 } else { wave(i) * 3.0 });
        check(&select::COUNT, &[x()], &[(DType::I64, &[1], None)], &[], 0.0);
        let set = ints(dtype, &[7, 9, 50], |i| (i % 5 == 2) as i64);
        check(&select::NONZERO, &[set], &[(DType::I64, &[630, 3], None)], &[], 0.0);
        let deep = ints(dtype, &[1, 2, 1, 3, 1, 2, 1, 2, 3, 1, 2, 1, 1, 2, 1, 3], |i| (i % 5 == 2) as i64);
        check(&select::NONZERO, &[deep], &[(DType::I64, &[173, 16], None)], &[], 0.0);
        let mask = Memory::new(DType::Bool, shape, &[450, 50, 1], |i| (i % 5 == 2) as u8 as f64);
        check(&select::MASKED_SELECT, &[x(), mask], &[(dtype, &[630], None)], &[], 0.0);
    }
    let distinct = || Memory::new(DType::F32, &[3, 3000], &[3000, 1], |i| ((i * 7919) % 9001) as f64);
    let best = [(DType::F32, &[3, 10][..], None), (DType::I64, &[3, 10], None)];
    for largest in [true, false] {
        check(&sort::TOPK, &[distinct()], &best, &[Attr::Int(10), Attr::Int(1), Attr::Bool(largest)], 0.0);
    }
}
