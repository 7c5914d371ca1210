//! Matrix products of every dtype but `bool`, batched, with operands in any layout.
//!
//! Transposed operands are never copied: their strides go to the product. 16-bit floats compute in `f32` and round
//! once. Batch dims are already expanded (stride 0) and vectors are already matrices: rows of the op table broadcast.

pub mod batch;
pub mod bf16;
pub mod bytes;
pub mod integer;
pub mod panels;
pub mod product;
mod tiles;

use crate::base::dtype::DType;
use crate::base::layout::{Shape, Strides, contiguous_strides};
use crate::kernel::abi::{Call, RawView, Threads};
use crate::kernel::host::element::by_integer;
use crate::kernel::host::real::{Real, real};
use crate::kernel::host::staging::{Scratch, Sink, read, read_in_memory_order};
use batch::{Batch, for_each_product};
use product::{Accum, product};

/// Batched product of views that are all of `T`.
///
/// # Safety
/// `a` is `[.., m, k]`, `b` `[.., k, n]`, `c` `[.., m, n]`, of the same leading dims; `c` overlaps nothing.
pub unsafe fn gemm_batched<T: Real>(threads: &Threads, a: &RawView, b: &RawView, c: &RawView, accum: Accum) {
    let batch = Batch::<T>::of(a, b, c);
    // SAFETY: shapes fit each other and `c` overlaps nothing (this function's contract), and so for each product of the
    // batch.
    unsafe { for_each_product(threads, &batch, |threads, s, a, b, c| product(threads, s, a, b, c, accum)) }
}

/// Matrix product. Inputs: `a` `[.., m, k]`, `b` `[.., k, n]` of one dtype (any but `bool`), any strides, with
/// the same (expanded) leading dims. Output: `[.., m, n]`, same dtype or f32 of 16-bit floats, contiguous. No attributes.
/// Integers wrap.
///
/// # Safety
/// As `HostFn`.
pub unsafe fn matmul(call: &Call<'_>) {
    let (a, b, c) = (&call.inputs[0], &call.inputs[1], &call.outputs[0]);
    let threads = call.threads;
    // SAFETY: `HostFn`: every view of `call` is valid for its dtype, shape and strides, and nobody else touches the
    // outputs.
    unsafe {
        match c.dtype {
            DType::F32 if a.dtype != DType::F32 => {
                let (a_data, a_strides) = read_in_memory_order::<f32>(a, threads);
                let (b_data, b_strides) = read_in_memory_order::<f32>(b, threads);
                let a = view_of(&a_data, a.shape.clone(), a_strides);
                let b = view_of(&b_data, b.shape.clone(), b_strides);
                gemm_batched::<f32>(threads, &a, &b, c, Accum::Replace);
            }
            DType::F32 => gemm_batched::<f32>(threads, a, b, c, Accum::Replace),
            DType::F64 => gemm_batched::<f64>(threads, a, b, c, Accum::Replace),
            DType::F16 | DType::BF16 => widened(threads, a, b, c, None),
            dtype => by_integer!(
                dtype,
                T => integer::matmul_wrapping::<T>(threads, a, b, c),
                else debug_assert!(false, "no matrix product of bool")
            ),
        }
    }
}

/// `x @ weight.T + bias`. Inputs: `x` `[.., in]`, `weight` `[out, in]`, and optionally `bias` `[out]`, floats
/// of one dtype, any strides. Output: `[.., out]`, same dtype, contiguous. No attributes.
///
/// # Safety
/// As `HostFn`.
pub unsafe fn linear(call: &Call<'_>) {
    let (x, weight, bias, c) = (&call.inputs[0], &call.inputs[1], call.inputs.get(2), &call.outputs[0]);
    let x = as_matrices(x);
    let c = as_matrices(c);
    let lead = c.shape.len() - 2;
    let zeros = || std::iter::repeat_n(0isize, lead);
    let b = RawView {
        ptr: weight.ptr,
        dtype: weight.dtype,
        shape: c.shape[..lead].iter().copied().chain([weight.shape[1], weight.shape[0]]).collect(),
        strides: zeros().chain([weight.strides[1], weight.strides[0]]).collect(),
    };
    if matches!(c.dtype, DType::F16 | DType::BF16) {
        // SAFETY: `HostFn`: every view of `call` is valid for its dtype, shape and strides, and nobody else touches the
        // outputs.
        return unsafe { widened(call.threads, &x, &b, &c, bias) };
    }
    real!(c.dtype, T => {
        // SAFETY: `HostFn`: every view of `call` is valid for its dtype, shape and strides, and nobody else touches the
        // outputs.
        unsafe {
            let accum = start_with_bias::<T>(call.threads, bias, c.slice_mut::<T>());
            gemm_batched::<T>(call.threads, &x, &b, &c, accum);
        }
    });
}

/// A view of one dim as a matrix of one row; other views unchanged.
fn as_matrices(view: &RawView) -> RawView {
    let mut view = view.clone();
    if view.shape.len() == 1 {
        view.shape.insert(0, 1);
        view.strides.insert(0, 0);
        // The row stride of a matrix of one row is never used; this value lets batches be merged.
        view.strides[0] = view.shape[1] as isize * view.strides[1];
    }
    view
}

/// Fills rows with the bias, so that the product is accumulated onto it.
unsafe fn start_with_bias<T: Real>(threads: &Threads, bias: Option<&RawView>, out: &mut [T]) -> Accum {
    let Some(bias) = bias else { return Accum::Replace };
    // SAFETY: `bias` is a view of the call of a `HostFn`, valid for reading.
    let bias = unsafe { read::<T>(bias, &Threads::ONE) };
    if bias.is_empty() {
        return Accum::Replace;
    }
    let rows = out.len() / bias.len();
    let shared = crate::kernel::host::staging::Shared::new(out);
    let n = bias.len();
    threads.split(rows, (128 * 1024 / n).max(1), |range| {
        // SAFETY: each thread has a range of rows of its own.
        let rows = unsafe { shared.range(range.start * n..range.end * n) };
        rows.chunks_exact_mut(n).for_each(|row| row.copy_from_slice(&bias));
    });
    Accum::Add
}

/// A product of 16-bit floats: with AVX-512 BF16 if the machine has it, else through `f32`.
unsafe fn widened(threads: &Threads, a: &RawView, b: &RawView, c: &RawView, bias: Option<&RawView>) {
    // SAFETY: shapes fit each other and `c` overlaps nothing, as for the product that this is a form of.
    unsafe {
        if c.dtype == DType::BF16 && bf16::applies() {
            let bias = bias.map(|bias| read::<f32>(bias, &Threads::ONE));
            let batch = Batch::<half::bf16>::of(a, b, c);
            return for_each_product(threads, &batch, |threads, s, a, b, c| {
                bf16::product_bf16(threads, s, a, b, c, bias.as_deref());
            });
        }
        let (a_data, a_strides) = read_in_memory_order::<f32>(a, threads);
        let (b_data, b_strides) = read_in_memory_order::<f32>(b, threads);
        let mut sink = Sink::<f32>::new(c);
        let accum = start_with_bias(threads, bias, sink.slice());
        let a = view_of(&a_data, a.shape.clone(), a_strides);
        let b = view_of(&b_data, b.shape.clone(), b_strides);
        let wide = RawView {
            ptr: sink.slice().as_mut_ptr().cast(),
            dtype: DType::F32,
            shape: c.shape.clone(),
            strides: contiguous_strides(&c.shape),
        };
        gemm_batched::<f32>(threads, &a, &b, &wide, accum);
        sink.finish(threads);
    }
}

fn view_of(data: &Scratch<f32>, shape: Shape, strides: Strides) -> RawView {
    RawView { ptr: data.as_ptr().cast_mut().cast(), dtype: DType::F32, shape, strides }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::host::staging::testing::*;

    /// The definition, in `f64`, on contiguous copies of both factors.
    fn naive(a: &Array, b: &Array, batch: usize, (m, k, n): (usize, usize, usize)) -> Vec<f64> {
        let (a, b) = (a.get(), b.get());
        let mut c = Vec::new();
        for p in 0..batch {
            for i in 0..m {
                for j in 0..n {
                    c.push((0..k).map(|l| a[(p * m + i) * k + l] * b[(p * k + l) * n + j]).sum());
                }
            }
        }
        c
    }

    const SIZES: &[(usize, usize, usize)] = &[
        (1, 1, 1),
        (4, 4, 4),
        (8, 8, 8),
        (9, 15, 11),
        (16, 16, 16),
        (3, 0, 2),
        (0, 3, 2),
        (17, 33, 9),
        (65, 1, 40),
        (1, 200, 31),
        (200, 31, 1),
        (1, 5000, 1),
        (40, 70, 129),
        (300, 130, 100),
        (20, 900, 60),
        (30, 9, 700),
    ];

    fn check(dtype: DType, batch: usize, tolerance: f64) {
        for &(m, k, n) in SIZES {
            for layout in 0..4 {
                let a = if layout & 1 == 0 {
                    Array::wave(dtype, &[batch, m, k], 1.0)
                } else {
                    Array::wave(dtype, &[batch, k, m], 1.0).permute(&[0, 2, 1])
                };
                let b = if layout & 2 == 0 {
                    Array::wave(dtype, &[batch, k, n], 2.0)
                } else {
                    Array::wave(dtype, &[batch, n, k], 2.0).permute(&[0, 2, 1])
                };
                let c = Array::empty(dtype, &[batch, m, n]);
                assert_eq!(call(matmul, &[&a, &b], &[&c], &[]), None);
                close(&c.get(), &naive(&a, &b, batch, (m, k, n)), tolerance * (k.max(1) as f64).sqrt());
            }
        }
    }

    #[test]
    fn floats_of_every_layout_and_shape() {
        check(DType::F64, 3, 1e-13);
        check(DType::F32, 1, 1e-5);
        check(DType::F32, 4, 1e-5);
        check(DType::F16, 2, 2e-3);
        check(DType::BF16, 2, 1e-2);
    }

    #[test]
    fn a_repeated_operand_has_stride_zero() {
        let a = Array::wave(DType::F32, &[5, 7, 20], 1.0);
        let b = Array::wave(DType::F32, &[20, 30], 2.0);
        let mut wide = b;
        wide.view.shape.insert(0, 5);
        wide.view.strides.insert(0, 0);
        let c = Array::empty(DType::F32, &[5, 7, 30]);
        call(matmul, &[&a, &wide], &[&c], &[]);
        close(&c.get(), &naive(&a, &wide, 5, (7, 20, 30)), 1e-5);
        // A matrix that is one broadcast number.
        let mut one = Array::of(DType::F32, &[1, 1], &[2.0]);
        one.view.shape = Shape::from_slice(&[40, 50]);
        one.view.strides = Strides::from_slice(&[0, 0]);
        let right = Array::wave(DType::F32, &[50, 60], 3.0);
        let c = Array::empty(DType::F32, &[40, 60]);
        call(matmul, &[&one, &right], &[&c], &[]);
        close(&c.get(), &naive(&one, &right, 1, (40, 50, 60)), 1e-5);
    }

    #[test]
    fn integers_wrap() {
        let a = Array::of(DType::U8, &[2, 3], &[200., 100., 7., 1., 2., 3.]);
        let b = Array::of(DType::U8, &[3, 2], &[3., 1., 5., 2., 9., 4.]);
        let c = Array::empty(DType::U8, &[2, 2]);
        call(matmul, &[&a, &b], &[&c], &[]);
        assert_eq!(c.get(), [(600 + 500 + 63) % 256, (200 + 200 + 28) % 256, 40, 17].map(|x| x as f64));
        let a = Array::of(DType::I64, &[3, 2], &[1., 2., 3., 4., 5., 6.]).permute(&[1, 0]);
        let c = Array::empty(DType::I64, &[2, 2]);
        call(matmul, &[&a, &Array::of(DType::I64, &[2, 3], &[1., 0., 2., 0., 1., 3.]).permute(&[1, 0])], &[&c], &[]);
        assert_eq!(c.get(), [11., 18., 14., 22.]);
    }

    #[test]
    fn linear_adds_its_bias_to_every_row() {
        for dtype in [DType::F32, DType::F64, DType::BF16] {
            let x = Array::wave(dtype, &[2, 5, 33], 1.0);
            let w = Array::wave(dtype, &[18, 33], 2.0);
            let bias = Array::wave(dtype, &[18], 3.0);
            let y = Array::empty(dtype, &[2, 5, 18]);
            call(linear, &[&x, &w, &bias], &[&y], &[]);
            let (xs, ws, bs) = (x.get(), w.get(), bias.get());
            let expected: Vec<f64> = (0..180)
                .map(|i| bs[i % 18] + (0..33).map(|k| xs[i / 18 * 33 + k] * ws[i % 18 * 33 + k]).sum::<f64>())
                .collect();
            close(&y.get(), &expected, if dtype == DType::BF16 { 1e-2 } else { 1e-5 });
            let flat = Array::wave(dtype, &[33], 1.0);
            let y = Array::empty(dtype, &[18]);
            call(linear, &[&flat, &w], &[&y], &[]);
            let expected: Vec<f64> = (0..18).map(|i| (0..33).map(|k| xs[k] * ws[i * 33 + k]).sum::<f64>()).collect();
            close(&y.get(), &expected, if dtype == DType::BF16 { 1e-2 } else { 1e-5 });
        }
    }
}
