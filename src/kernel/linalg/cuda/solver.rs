//! Decompositions by the vendor's library: column-major copies before it, faults after it (`kernels/linalg/solver.cuh`).

use super::panels::{copied_columns, text, transposed};
use crate::base::dtype::DType;
use crate::kernel::abi::RawView;
use crate::kernel::cuda::dense::{copy_view, scratch};
use crate::kernel::cuda::rows::{each, launch};
use crate::kernel::cuda::{DecomposeCall, Decomposition, Gpu, GpuError, RightVectors, Source};
use crate::kernel::structs::structs;
use std::ptr::null_mut;

type Done = Result<(), GpuError>;

pub const TEXT: &str = "linalg/solver.cuh";

structs! {
    pub static SOLVER_ARGS = "linalg/solver_args.cuh";
    struct Args {
        x: mut T,
        y: mut T,
        z: mut T,
        /// Numbers of each matrix in these.
        x_size: i64,
        y_size: i64,
        z_size: i64,
        info: mut i32,
        not_finite: mut i32,
        pivots: const i64,
        fault: mut void,
        rows: i64,
        columns: i64,
        relative: f64,
        flag: u64,
    }
}

const NONE: Args = Args {
    x: null_mut(),
    y: null_mut(),
    z: null_mut(),
    x_size: 0,
    y_size: 0,
    z_size: 0,
    info: null_mut(),
    not_finite: null_mut(),
    pivots: std::ptr::null(),
    fault: null_mut(),
    rows: 0,
    columns: 0,
    relative: 0.0,
    flag: 0,
};

/// A batch of matrices for the library: real ones `[count, m, n]`, or complex ones `[count, m, n, 2]`.
#[derive(Clone, Copy, Debug)]
pub struct Batch {
    pub dtype: DType,
    pub complex: bool,
    pub count: usize,
    pub m: usize,
    pub n: usize,
}

impl Batch {
    /// Numbers of a matrix element.
    fn words(&self) -> usize {
        1 + self.complex as usize
    }

    /// Matrices `[count, m, n]` of this kind, row-major, in scratch memory.
    pub fn scratch(&self, m: usize, n: usize, gpu: &mut dyn Gpu) -> Result<RawView, GpuError> {
        let shape: &[usize] = if self.complex { &[self.count, m, n, 2] } else { &[self.count, m, n] };
        scratch(self.dtype, shape, gpu)
    }

    /// Matrices of this kind, column-major, in scratch memory.
    pub fn columns(&self, m: usize, n: usize, gpu: &mut dyn Gpu) -> Result<RawView, GpuError> {
        Ok(self.turned(&self.scratch(n, m, gpu)?))
    }

    /// A column-major copy.
    pub fn copied(&self, view: &RawView, gpu: &mut dyn Gpu) -> Result<RawView, GpuError> {
        if !self.complex {
            return copied_columns(view, self.dtype, gpu);
        }
        let copy = self.columns(view.shape[1], view.shape[2], gpu)?;
        copy_view(view, &copy, gpu)?;
        Ok(copy)
    }

    /// The matrices with rows and columns exchanged.
    pub fn turned(&self, view: &RawView) -> RawView {
        if !self.complex {
            return transposed(view);
        }
        let mut view = view.clone();
        view.shape.swap(1, 2);
        view.strides.swap(1, 2);
        view
    }

    /// What the library is asked for.
    pub fn call(&self, task: Decomposition) -> DecomposeCall {
        let Batch { dtype, complex, count, m, n } = *self;
        let (a, values, left, right, info) = (null_mut(), null_mut(), null_mut(), null_mut(), null_mut());
        DecomposeCall { task, dtype, complex, m, n, count, a, values, left, right, info }
    }

    pub fn can(&self, task: Decomposition, gpu: &mut dyn Gpu) -> Done {
        if gpu.decomposes(&self.call(task))? { Ok(()) } else { Err(GpuError::Unsupported("this decomposition")) }
    }

    fn source(&self) -> &'static Source {
        text(TEXT, self.dtype)
    }

    fn run(&self, entry: &str, args: &Args, gpu: &mut dyn Gpu) -> Done {
        launch(self.source(), entry, (self.count, 1), 256, args.words(), gpu)
    }

    /// A kernel over `n` elements of each matrix.
    fn over(&self, entry: &str, n: usize, args: &Args, gpu: &mut dyn Gpu) -> Done {
        launch(self.source(), entry, (self.count, n.div_ceil(256).clamp(1, 1024)), 256, args.words(), gpu)
    }

    /// Decomposes `a`, a column-major copy, which is overwritten. Results of matrices that do not converge are zeros, with
    /// a fault for node 0. `results`: the numbers of each matrix in values, left and right.
    pub fn decompose(
        &self,
        mut call: DecomposeCall,
        a: &RawView,
        results: [usize; 3],
        gpu: &mut dyn Gpu,
    ) -> Result<Vec<RightVectors>, GpuError> {
        call.a = a.ptr;
        call.info = scratch(DType::I32, &[self.count], gpu)?.ptr;
        let not_finite = scratch(DType::I32, &[self.count], gpu)?.ptr;
        let a_size = (self.m * self.n * self.words()) as i64;
        let before = Args { x: a.ptr, x_size: a_size, info: call.info, not_finite, ..NONE };
        self.run("ts_take_finite", &before, gpu)?;
        let right = gpu.decompose(&call)?;
        let fault = gpu.fault_slot(0)?;
        // Where there is no place for vectors they have replaced A.
        let [values, left, vectors] = results.map(|size| size as i64);
        let (z, z_size) = if call.right.is_null() { (a.ptr, a_size) } else { (call.right, vectors) };
        let after = Args { x: call.values, y: call.left, z, x_size: values, y_size: left, z_size, fault, ..before };
        self.run("ts_report", &after, gpu)?;
        Ok(right)
    }

    /// Factorizes `a`, a column-major copy, which is overwritten; what is not finite passes through, as elsewhere.
    pub fn factorize(&self, mut call: DecomposeCall, a: &RawView, gpu: &mut dyn Gpu) -> Done {
        call.a = a.ptr;
        call.info = scratch(DType::I32, &[self.count], gpu)?.ptr;
        gpu.decompose(&call).map(|_| ())
    }

    /// Conjugates contiguous complex numbers.
    pub fn conjugate(&self, view: &RawView, gpu: &mut dyn Gpu) -> Done {
        let n = view.numel() / 2;
        each(self.source(), "ts_conjugate", n, Args { x: view.ptr, x_size: n as i64, ..NONE }.words(), gpu)
    }

    /// Divides row j of each `[k, columns]` of real numbers by singular value j; by infinity up to `relative` times the
    /// largest.
    pub fn divide_by_values(&self, x: &RawView, values: &RawView, relative: f64, gpu: &mut dyn Gpu) -> Done {
        let (k, columns) = (x.shape[1], x.shape[2]);
        let size = (k * columns) as i64;
        let (x, y, columns) = (x.ptr, values.ptr, columns as i64);
        let args = Args { x, y, x_size: size, y_size: k as i64, columns, relative, ..NONE };
        self.over("ts_divide_by_values", size as usize, &args, gpu)
    }

    /// The unit lower or the upper triangle of complex column-major `packed`, into row-major `[count, r, c, 2]`.
    pub fn triangle(&self, packed: &RawView, upper: bool, to: &RawView, gpu: &mut dyn Gpu) -> Done {
        let (rows, columns) = (packed.shape[1] as i64, to.shape[2] as i64);
        let sizes = [packed, to].map(|view| (view.shape[1] * view.shape[2] * 2) as i64);
        let (x, y, flag) = (packed.ptr, to.ptr, upper as u64);
        let args = Args { x, y, x_size: sizes[0], y_size: sizes[1], rows, columns, flag, ..NONE };
        self.over("ts_complex_triangle", to.shape[1] * to.shape[2], &args, gpu)
    }

    /// The permutations of getrf's pivots, into row-major `[count, m, m, 2]`.
    pub fn permutations(&self, pivots: *mut u8, to: &RawView, gpu: &mut dyn Gpu) -> Done {
        gpu.fill_zero(to.ptr, to.numel() * self.dtype.size_bytes())?;
        let (rows, columns) = (self.m as i64, self.m.min(self.n) as i64);
        let info = scratch(DType::I32, &[self.count, self.m], gpu)?.ptr;
        let args =
            Args { y: to.ptr, y_size: rows * rows * 2, info, pivots: pivots.cast_const(), rows, columns, ..NONE };
        launch(self.source(), "ts_permutation", (self.count, 1), 32, args.words(), gpu)
    }
}

/// Singular values with the thin U `[count, m, k]` and Vᴴ `[count, k, n]`.
pub struct Thin {
    pub u: RawView,
    pub s: RawView,
    pub vh: RawView,
}

/// The thin singular value decomposition of `a`, `[count, m, n]`, by the library.
pub fn thin(batch: &Batch, a: &RawView, gpu: &mut dyn Gpu) -> Result<Thin, GpuError> {
    if batch.m < batch.n {
        // That of the transpose, whose left vectors are the conjugated right ones.
        let turned = Batch { m: batch.n, n: batch.m, ..*batch };
        let Thin { u, s, vh } = thin(&turned, &batch.turned(a), gpu)?;
        return Ok(Thin { u: batch.turned(&vh), s, vh: batch.turned(&u) });
    }
    let Batch { m, n, count, .. } = *batch;
    batch.can(Decomposition::Svd { vectors: true }, gpu)?;
    let small = batch.complex && m <= 32;
    let s = scratch(batch.dtype, &[count, n], gpu)?;
    let left = batch.columns(m, if small { m } else { n }, gpu)?;
    let right = batch.scratch(n, n, gpu)?;
    let call = DecomposeCall {
        values: s.ptr,
        left: left.ptr,
        right: right.ptr,
        ..batch.call(Decomposition::Svd { vectors: true })
    };
    let words = batch.words();
    let results = [n, left.shape[1] * left.shape[2] * words, n * n * words];
    let lies = batch.decompose(call, &batch.copied(a, gpu)?, results, gpu)?;
    let mut u = left;
    u.shape[2] = n;
    Ok(Thin { u, s, vh: adjoint(batch, right, &lies, gpu)? })
}

/// Vᴴ by rows, where the library has left V by columns, or Vᴴ by columns.
fn adjoint(batch: &Batch, right: RawView, lies: &[RightVectors], gpu: &mut dyn Gpu) -> Result<RawView, GpuError> {
    let single = |view: &RawView, i: usize| {
        let mut one = view.clone();
        one.shape[0] = 1;
        one.ptr = view.ptr.wrapping_offset(i as isize * view.strides[0] * view.dtype.size_bytes() as isize);
        one
    };
    if lies.iter().all(|&lie| lie == RightVectors::Plain) {
        if batch.complex {
            batch.conjugate(&right, gpu)?;
        }
        return Ok(right);
    }
    let vh = batch.scratch(batch.n, batch.n, gpu)?;
    for (i, lie) in lies.iter().enumerate() {
        let (from, to) = (single(&right, i), single(&vh, i));
        match lie {
            RightVectors::Adjoint => copy_view(&batch.turned(&from), &to, gpu)?,
            RightVectors::Plain => {
                if batch.complex {
                    batch.conjugate(&from, gpu)?;
                }
                copy_view(&from, &to, gpu)?;
            }
        }
    }
    Ok(vh)
}
