//! Fourier transforms beside their host twins: short lines, long ones as matrices, convolutions for primes; dims in the
//! middle, several dims, sizes that are cut or filled up, real and half spectra.

use super::HostGpu;
use super::fused::{Memory, wave};
use tscript::DType;
use tscript::internals::base::attr::Attr;
use tscript::internals::kernel::abi::{Call, Faults, Threads};
use tscript::internals::kernel::family::Kernel;
use tscript::internals::kernel::fft;

/// A transform of `lengths` along `dims`, from sizes to other sizes.
struct Case<'a> {
    kernel: &'static Kernel,
    pairs: [bool; 2],
    from: &'a [usize],
    to: &'a [usize],
    dims: &'a [i64],
    lengths: &'a [i64],
}

fn memory(dtype: DType, shape: &[usize], pairs: bool, value: impl Fn(usize) -> f64) -> Memory {
    let mut shape = shape.to_vec();
    if pairs {
        shape.push(2);
    }
    let mut strides: Vec<isize> = vec![1; shape.len()];
    for d in (1..shape.len()).rev() {
        strides[d - 1] = strides[d] * shape[d] as isize;
    }
    Memory::new(dtype, &shape, &strides, value)
}

#[track_caller]
fn same(dtype: DType, case: &Case<'_>) {
    if let Some(mut gpu) = HostGpu::open() {
        same_on(&mut gpu, dtype, case);
    }
}

#[track_caller]
fn same_on(gpu: &mut HostGpu, dtype: DType, case: &Case<'_>) {
    let x = memory(dtype, case.from, case.pairs[0], wave);
    let make = || memory(dtype, case.to, case.pairs[1], |_| 7.0);
    let (ours, theirs) = (make(), make());
    let (faults, threads, inputs) = (Faults::default(), &Threads::ONE, [x.view.clone()]);
    for flag in [false, true] {
        let list = |list: &[i64]| Attr::Ints(list.into());
        let attrs = [
            list(case.dims),
            list(case.lengths),
            Attr::Float(0.5),
            Attr::Bool(flag),
            Attr::Float(0.75),
            Attr::Bool(case.pairs[0]),
            Attr::Bool(case.pairs[1]),
        ];
        let call =
            |outputs| Call { inputs: &inputs, outputs, attrs: &attrs, threads, faults: &faults, seed: 0, offset: 0 };
        // SAFETY: the views are those of memories that outlive the kernel.
        unsafe { (case.kernel.host)(&call(std::slice::from_ref(&theirs.view))) };
        case.kernel.cuda.expect("a launch")(&call(std::slice::from_ref(&ours.view)), gpu).expect("it launches");
        let (found, expected) = (ours.values(), theirs.values());
        let most = expected.iter().fold(1.0, |most: f64, x| most.max(x.abs()));
        let bound = most * if dtype == DType::F64 { 1e-12 } else { 2e-5 };
        for (at, (a, b)) in found.into_iter().zip(expected).enumerate() {
            // Not: `>`, which NaN passes.
            let near = (a - b).abs() <= bound;
            let what = format!("{:?} {:?} of {:?} along {:?}", case.kernel, case.lengths, case.from, case.dims);
            assert!(near, "{what}, {dtype}, {flag}: place {at} is {a}, on the host {b}");
        }
    }
}

fn one(kernel: &'static Kernel, n: usize, inner: &[usize], pairs: [bool; 2]) {
    let half = |whole: bool| if whole { n } else { n / 2 + 1 };
    let shape = |n: usize| [&[3, n], inner].concat();
    let sizes = [half(kernel.name != "fft_from_half"), half(kernel.name != "fft_to_half")];
    for dtype in [DType::F32, DType::F64] {
        let (from, to) = (shape(sizes[0]), shape(sizes[1]));
        same(dtype, &Case { kernel, pairs, from: &from, to: &to, dims: &[1], lengths: &[n as i64] });
    }
}

#[test]
fn lines_of_all_lengths() {
    for n in (1..=16).chain([17, 22, 26, 34, 77, 97, 169, 360, 1000, 1021, 1024, 2048, 3000]) {
        for inner in [&[][..], &[5]] {
            one(&fft::WHOLE, n, inner, [true, true]);
            one(&fft::TO_HALF, n, inner, [false, true]);
            one(&fft::FROM_HALF, n, inner, [true, false]);
        }
    }
}

/// Longer than a block of threads holds: matrices, and convolutions by matrices.
#[test]
fn long_lines_are_matrices() {
    for n in [4096, 6561, 5003] {
        one(&fft::WHOLE, n, &[], [true, true]);
        one(&fft::WHOLE, n, &[], [false, true]);
        one(&fft::WHOLE, n, &[2], [true, false]);
        one(&fft::TO_HALF, n, &[], [false, true]);
        one(&fft::FROM_HALF, n, &[], [true, false]);
    }
    // Both lengths of the matrix of this one are above what a block holds of f64.
    let n = 1 << 21;
    let case =
        Case { kernel: &fft::WHOLE, pairs: [true, true], from: &[1, n], to: &[1, n], dims: &[1], lengths: &[n as i64] };
    same(DType::F64, &case);
}

#[test]
fn sizes_are_cut_and_filled_up_along_several_dims() {
    for (kernel, pairs) in [
        (&fft::WHOLE, [true, true]),
        (&fft::WHOLE, [false, true]),
        (&fft::WHOLE, [true, false]),
        (&fft::TO_HALF, [false, true]),
        (&fft::FROM_HALF, [true, false]),
        (&fft::FROM_HALF, [false, false]),
    ] {
        for lengths in [[4, 6], [5, 7], [3, 1], [1, 2], [17, 12]] {
            for (from, to) in [([4, 2, 6], [4, 2, 6]), ([3, 2, 8], [6, 2, 4]), ([7, 2, 2], [2, 2, 9])] {
                same(DType::F64, &Case { kernel, pairs, from: &from, to: &to, dims: &[0, 2], lengths: &lengths });
                same(DType::F32, &Case { kernel, pairs, from: &from, to: &to, dims: &[2, 0], lengths: &lengths });
            }
        }
    }
}

/// With a library: what it transforms, and the passes before and after it.
#[track_caller]
fn by_library(case: &Case<'_>, calls: Option<usize>) {
    let Some(mut gpu) = HostGpu::open() else { return };
    gpu.transforms = true;
    same_on(&mut gpu, DType::F64, case);
    same_on(&mut gpu, DType::F32, case);
    let what = format!("{:?} {:?} of {:?} along {:?}", case.kernel, case.lengths, case.from, case.dims);
    match calls {
        Some(calls) => assert_eq!(gpu.transformed, 4 * calls, "{what}"),
        None => assert!(gpu.transformed > 0, "{what}"),
    }
}

const KINDS: [(&Kernel, [bool; 2]); 5] = [
    (&fft::WHOLE, [true, true]),
    (&fft::WHOLE, [false, true]),
    (&fft::WHOLE, [true, false]),
    (&fft::TO_HALF, [false, true]),
    (&fft::FROM_HALF, [true, false]),
];

#[test]
fn a_library_transforms_up_to_three_dims_at_once() {
    for (kernel, pairs) in KINDS {
        for (shape, dims, calls) in [
            (&[6, 5][..], &[1][..], 1),
            (&[7], &[0], 1),
            (&[6, 5], &[0], 1),
            (&[3, 4, 6], &[1], 3),
            (&[3, 4, 6], &[1, 2], 1),
            (&[3, 4, 6], &[0, 1, 2], 1),
            (&[3, 4, 6], &[1, 0, 2], 1),
            (&[20, 4, 11], &[1], 1),
            (&[2, 1, 4, 3, 5], &[0, 2, 3, 4], 2),
        ] {
            let (last, halves) =
                (dims[dims.len() - 1] as usize, [kernel.name == "fft_from_half", kernel.name == "fft_to_half"]);
            let [from, to] = halves.map(|half| {
                let mut shape = shape.to_vec();
                if half {
                    shape[last] = shape[last] / 2 + 1;
                }
                shape
            });
            let lengths: Vec<i64> = dims.iter().map(|&dim| shape[dim as usize] as i64).collect();
            by_library(
                &Case { kernel, pairs, from: &from, to: &to, dims, lengths: &lengths },
                (shape.len() < 4).then_some(calls),
            );
        }
    }
}

#[test]
fn a_library_transforms_sizes_that_are_cut_and_filled_up() {
    for (kernel, pairs) in KINDS.into_iter().chain([(&fft::FROM_HALF, [false, false]), (&fft::TO_HALF, [false, false])])
    {
        for lengths in [[4, 6], [5, 7], [1, 2], [7, 3]] {
            for (from, to) in
                [([4, 2, 6], [4, 2, 6]), ([3, 2, 8], [6, 2, 4]), ([7, 2, 2], [2, 2, 9]), ([9, 12, 9], [4, 12, 4])]
            {
                for dims in [[0, 2], [2, 0]] {
                    by_library(&Case { kernel, pairs, from: &from, to: &to, dims: &dims, lengths: &lengths }, None);
                }
            }
        }
    }
}

/// Views whose numbers lie apart are told to the library, or copied.
#[test]
fn a_library_reads_strides() {
    let Some(mut gpu) = HostGpu::open() else { return };
    gpu.transforms = true;
    let (faults, threads) = (Faults::default(), &Threads::ONE);
    for order in [[0, 1, 2], [1, 0, 2], [2, 1, 0], [0, 2, 1]] {
        for (dims, reversed) in [(&[1i64][..], false), (&[1, 2], false), (&[2], false), (&[0, 2], false), (&[2], true)]
        {
            let sizes = [4, 6, 10];
            let dense = memory(DType::F32, &sizes, true, wave);
            let mut view = dense.view.clone();
            for (at, &from) in order.iter().enumerate() {
                (view.shape[at], view.strides[at]) = (dense.view.shape[from], dense.view.strides[from]);
            }
            if reversed {
                // The real part is the second of each pair.
                view.ptr = view.ptr.wrapping_add(4);
                view.strides[3] = -1;
            }
            let shape: Vec<usize> = view.shape[..3].to_vec();
            let (ours, theirs) = (memory(DType::F32, &shape, true, |_| 7.0), memory(DType::F32, &shape, true, |_| 7.0));
            let list = |list: Vec<i64>| Attr::Ints(list.as_slice().into());
            let lengths = dims.iter().map(|&dim| shape[dim as usize] as i64).collect();
            let (yes, one) = (Attr::Bool(true), Attr::Float(1.0));
            let attrs = [list(dims.to_vec()), list(lengths), one.clone(), Attr::Bool(false), one, yes.clone(), yes];
            let inputs = [view];
            let call = |outputs| Call {
                inputs: &inputs,
                outputs,
                attrs: &attrs,
                threads,
                faults: &faults,
                seed: 0,
                offset: 0,
            };
            // SAFETY: the views are those of memories that outlive the kernel.
            unsafe { (fft::WHOLE.host)(&call(std::slice::from_ref(&theirs.view))) };
            let before = gpu.transformed;
            fft::WHOLE.cuda.expect("a launch")(&call(std::slice::from_ref(&ours.view)), &mut gpu).expect("it launches");
            assert!(gpu.transformed > before);
            for (a, b) in ours.values().into_iter().zip(theirs.values()) {
                assert!((a - b).abs() < 1e-4, "{order:?} {dims:?}: {a}, on the host {b}");
            }
        }
    }
}
