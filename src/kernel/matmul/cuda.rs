//! Matrix products: by cuBLASLt where it supports them, else by `kernels/matmul/matmul.cuh`.

use crate::base::dtype::DType;
use crate::kernel::abi::{Call, RawView};
use crate::kernel::cuda::dense;
use crate::kernel::cuda::dense::Output;
use crate::kernel::cuda::rows::launch;
use crate::kernel::cuda::specialize::{Value, source};
use crate::kernel::cuda::{Gpu, GpuError, Launch, MatmulCall, Matrix, Param, Source};
use crate::kernel::structs::structs;
use smallvec::SmallVec;

structs! {
    pub static ARGS = "matmul/args.cuh";
    struct Args {
        m: usize,
        n: usize,
        k: usize,
        a_row: i64,
        a_column: i64,
        a_batch: i64,
        b_row: i64,
        b_column: i64,
        b_batch: i64,
        c_row: i64,
        c_column: i64,
        c_batch: i64,
        a: const T,
        b: const T,
        bias: const T,
        c: mut T,
        /// 0 or 1.
        beta: u64,
        activation: u64,
    }
}

structs! {
    pub static INT_ARGS = "matmul/int_args.cuh";
    struct IntArgs {
        m: usize,
        n: usize,
        k: usize,
        a: const ts_i8,
        b: const ts_i8,
        c: mut ts_i32,
        /// 1 if all rows begin at a multiple of 16 bytes, otherwise 0.
        aligned: u64,
    }
}

/// For a product to which no bias is added.
pub const NO_BIAS: *const u8 = std::ptr::null();

/// Elements from which a product of two vectors is one pass over them.
const LONG_VECTOR: usize = 1024;

/// Bound: blocks along the grid's third dim.
const MAX_BATCH: usize = 65_535;

/// The product of two views into a third: `a` `[.., m, k]`, `b` `[.., k, n]`, `c` `[.., m, n]` of the same leading dims, any
/// strides, and one dtype; `c` may be f32 where the factors are 16-bit floats.
pub fn product(
    a: &RawView,
    b: &RawView,
    c: &RawView,
    beta: f32,
    bias: *const u8,
    gpu: &mut dyn Gpu,
) -> Result<(), GpuError> {
    if c.numel() == 0 {
        return Ok(());
    }
    let lead = c.shape.len() - 2;
    let matrix = |view: &RawView| Matrix {
        ptr: view.ptr,
        row: view.strides[lead] as i64,
        column: view.strides[lead + 1] as i64,
        batch: 0,
    };
    let mut call = MatmulCall {
        m: c.shape[lead],
        n: c.shape[lead + 1],
        k: a.shape[lead + 1],
        batch: 1,
        a: matrix(a),
        b: matrix(b),
        c: matrix(c),
        dtype: a.dtype,
        result: c.dtype,
        beta,
        bias,
    };
    // Leading dims, innermost first, with the strides of the three.
    let mut outer: SmallVec<[(usize, [i64; 3]); 4]> = SmallVec::new();
    for d in (0..lead).rev().filter(|&d| c.shape[d] != 1) {
        let strides = [a.strides[d] as i64, b.strides[d] as i64, c.strides[d] as i64];
        let m = call.m as i64;
        let one = call.m == 1;
        let follows = one || (strides[0] == m * call.a.row && strides[2] == m * call.c.row);
        if outer.is_empty() && call.batch == 1 && strides[1] == 0 && follows {
            if one {
                (call.a.row, call.c.row) = (strides[0], strides[2]);
            }
            call.m *= c.shape[d];
            continue;
        }
        let even = |have: i64, new: i64| new == have * call.batch as i64;
        if call.batch == 1 && outer.is_empty() {
            call.batch = c.shape[d];
            (call.a.batch, call.b.batch, call.c.batch) = (strides[0], strides[1], strides[2]);
        } else if outer.is_empty()
            && even(call.a.batch, strides[0])
            && even(call.b.batch, strides[1])
            && even(call.c.batch, strides[2])
        {
            call.batch *= c.shape[d];
        } else {
            outer.push((c.shape[d], strides));
        }
    }
    let times: usize = outer.iter().map(|(n, _)| n).product();
    let sizes = [a, b, c].map(|view| view.dtype.size_bytes() as isize);
    for index in 0..times {
        let (mut rest, mut now) = (index, call);
        for &(n, strides) in &outer {
            let i = (rest % n) as isize;
            rest /= n;
            for ((matrix, stride), size) in [&mut now.a, &mut now.b, &mut now.c].into_iter().zip(strides).zip(sizes) {
                matrix.ptr = matrix.ptr.wrapping_offset(i * stride as isize * size);
            }
        }
        if is_dot(&now) {
            dot(&now, gpu)?;
            continue;
        }
        if library(&now, gpu)? {
            continue;
        }
        if a.dtype != c.dtype {
            let (a, b) = (dense::input(a, c.dtype, gpu)?, dense::input(b, c.dtype, gpu)?);
            return product(&a, &b, c, beta, bias, gpu);
        }
        own(&now, gpu)?;
    }
    Ok(())
}

/// Whether these are products of long vectors: one pass over both, which libraries of matrix products do not make at the speed of
/// memory.
fn is_dot(call: &MatmulCall) -> bool {
    let plain = call.beta == 0.0 && call.bias.is_null() && call.dtype != DType::Bool;
    plain && call.m == 1 && call.n == 1 && call.k >= LONG_VECTOR
}

fn dot(call: &MatmulCall, gpu: &mut dyn Gpu) -> Result<(), GpuError> {
    let rows = |at: &Matrix, step: i64| RawView {
        ptr: at.ptr,
        dtype: call.dtype,
        shape: [call.batch, call.k].into_iter().collect(),
        strides: [at.batch as isize, step as isize].into_iter().collect(),
    };
    let to = RawView {
        ptr: call.c.ptr,
        dtype: call.result,
        shape: [call.batch].into_iter().collect(),
        strides: [call.c.batch as isize].into_iter().collect(),
    };
    dense::dot(&rows(&call.a, call.a.column), &rows(&call.b, call.b.row), &to, gpu)
}

fn library(call: &MatmulCall, gpu: &mut dyn Gpu) -> Result<bool, GpuError> {
    Ok(call.dtype.is_float() && call.k > 0 && gpu.matmul(call)?)
}

fn own(call: &MatmulCall, gpu: &mut dyn Gpu) -> Result<(), GpuError> {
    let source = source("matmul/matmul.cuh", &[("T", Value::Type(call.dtype))]);
    let size = call.dtype.size_bytes() as isize;
    for first in (0..call.batch).step_by(MAX_BATCH) {
        let count = (call.batch - first).min(MAX_BATCH);
        let at = |m: &Matrix| m.ptr.wrapping_offset(first as isize * m.batch as isize * size);
        let args = Args {
            m: call.m,
            n: call.n,
            k: call.k,
            a_row: call.a.row,
            a_column: call.a.column,
            a_batch: call.a.batch,
            b_row: call.b.row,
            b_column: call.b.column,
            b_batch: call.b.batch,
            c_row: call.c.row,
            c_column: call.c.column,
            c_batch: call.c.batch,
            a: at(&call.a),
            b: at(&call.b),
            bias: call.bias,
            c: at(&call.c),
            beta: (call.beta != 0.0) as u64,
            activation: 0,
        };
        gpu.launch(&Launch {
            source,
            entry: "ts_matmul",
            grid: [call.m.div_ceil(64) as u32, call.n.div_ceil(64) as u32, count as u32],
            block: [256, 1, 1],
            shared_bytes: 0,
            args: &[Param::Words(args.words())],
        })?;
    }
    Ok(())
}

/// CUDA launch of the kernel of this name in `kernel/matmul/host`.
pub fn matmul(call: &Call<'_>, gpu: &mut dyn Gpu) -> Result<(), GpuError> {
    product(&call.inputs[0], &call.inputs[1], &call.outputs[0], 0.0, NO_BIAS, gpu)
}

/// CUDA launch of the kernel of this name in `kernel/matmul/host`.
pub fn linear(call: &Call<'_>, gpu: &mut dyn Gpu) -> Result<(), GpuError> {
    let (x, weight, out) = (&call.inputs[0], &call.inputs[1], &call.outputs[0]);
    let bias = match call.inputs.get(2) {
        Some(bias) => dense::input(bias, out.dtype, gpu)?.ptr.cast_const(),
        None => NO_BIAS,
    };
    let c = Output::new(out, out.dtype, gpu)?;
    let (x, y) = (as_matrices(x), as_matrices(&c.dense));
    let lead = y.shape.len() - 2;
    let b = RawView {
        ptr: weight.ptr,
        dtype: weight.dtype,
        shape: y.shape[..lead].iter().copied().chain([weight.shape[1], weight.shape[0]]).collect(),
        strides: std::iter::repeat_n(0, lead).chain([weight.strides[1], weight.strides[0]]).collect(),
    };
    product(&x, &b, &y, 0.0, bias, gpu)?;
    c.finish(gpu)
}

/// CUDA launch of the kernel of this name in `kernel/matmul/host`.
pub fn int_mm(call: &Call<'_>, gpu: &mut dyn Gpu) -> Result<(), GpuError> {
    let (a, b, c) = (&call.inputs[0], &call.inputs[1], &call.outputs[0]);
    if c.numel() == 0 {
        return Ok(());
    }
    let (m, n, k) = (a.shape[0], b.shape[0], a.shape[1]);
    let aligned = [a.ptr as usize, b.ptr as usize, k].iter().all(|bytes| bytes.is_multiple_of(16));
    let args = IntArgs { m, n, k, a: a.ptr, b: b.ptr, c: c.ptr, aligned: aligned.into() };
    // Tensor cores multiply bytes with sign from 8.0 on.
    let (entry, tile) = if gpu.capability() >= (8, 0) { ("ts_int_mm_tiles", 128) } else { ("ts_int_mm", 16) };
    let blocks = (m.div_ceil(tile), n.div_ceil(tile));
    launch(source("matmul/int_mm.cuh", &[]), entry, blocks, 256, args.words(), gpu)
}

/// A view of one dim as a matrix of one row; other views unchanged.
fn as_matrices(view: &RawView) -> RawView {
    let mut view = view.clone();
    if view.shape.len() == 1 {
        view.shape.insert(0, 1);
        view.strides.insert(0, view.shape[1] as isize * view.strides[0]);
    }
    view
}

/// All texts, for the compile test.
pub fn texts() -> Vec<&'static Source> {
    let dtypes = DType::REAL.into_iter().filter(|&dtype| dtype != DType::Bool);
    let products = dtypes.map(|dtype| source("matmul/matmul.cuh", &[("T", Value::Type(dtype))]));
    products.chain([source("matmul/int_mm.cuh", &[])]).collect()
}
