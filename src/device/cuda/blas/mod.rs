//! Matrix products by cuBLASLt, with fused epilogues. The library is loaded for the first product. Knows no tensors: matrices
//! are addresses and strides.
//!
//! Matrices are row-major here and column-major in cuBLASLt, where each is read as its transpose: C = A·B is computed as Cᵀ =
//! Bᵀ·Aᵀ, so A and B are exchanged, and so are m and n.

use super::context::Context;
use super::error::DriverError;
use super::library::Library;
use super::stream::Stream;
use cudarc::cublaslt::sys;
use plan::{Plan, check};
use std::collections::HashMap;

mod plan;

const FUNCTIONS: &[&str] = &[
    "cublasLtCreate",
    "cublasLtDestroy",
    "cublasLtGetStatusName",
    "cublasLtGetStatusString",
    "cublasLtMatmul",
    "cublasLtMatmulAlgoGetHeuristic",
    "cublasLtMatmulDescCreate",
    "cublasLtMatmulDescDestroy",
    "cublasLtMatmulDescSetAttribute",
    "cublasLtMatmulPreferenceCreate",
    "cublasLtMatmulPreferenceDestroy",
    "cublasLtMatmulPreferenceSetAttribute",
    "cublasLtMatrixLayoutCreate",
    "cublasLtMatrixLayoutDestroy",
    "cublasLtMatrixLayoutSetAttribute",
];

/// What to do where cuBLASLt is missing, in one line.
pub const REMEDY: &str = "pip install nvidia-cublas, or install NVIDIA's CUDA toolkit 13";

/// Workspace of a stream for its products. Bound: NVIDIA's recommendation for Hopper.
pub const WORKSPACE_BYTES: usize = 32 << 20;

/// Plans in the cache. Bound: a program with more shapes pays 10 to 100 µs for a new plan from time to time, which is
/// little compared to its other work.
const PLANS_MAX: usize = 4096;

/// The dtype of a matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Element {
    F16,
    Bf16,
    F32,
    F64,
}

impl Element {
    pub fn bytes(self) -> usize {
        match self {
            Element::F16 | Element::Bf16 => 2,
            Element::F32 => 4,
            Element::F64 => 8,
        }
    }
}

/// How f32 matrices are multiplied. All sums are in f32, for f64 in f64.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Precision {
    Full,
    /// Factors are rounded to TF32 (10 bits of mantissa), for the tensor cores.
    Tf32,
}

/// Whether a factor is stored as it is named, or transposed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stored {
    Plain,
    Transposed,
}

/// A factor of a product.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Factor {
    pub address: u64,
    pub stored: Stored,
    /// Elements from one row in memory to the next.
    pub row_stride: u64,
    /// Elements from one matrix of the batch to the next; 0 to use one matrix for all.
    pub batch_stride: u64,
}

impl Factor {
    /// The factor with these strides of rows, columns and batch, if the library can read it: one of rows and columns is
    /// contiguous, and rows do not overlap.
    pub fn of_strides(address: u64, (rows, columns): (u64, u64), [row, column, batch]: [i64; 3]) -> Option<Factor> {
        let batch_stride = u64::try_from(batch).ok()?;
        // The stride of a dim of size 1 is irrelevant.
        let with = |stored, down: u64, across: u64, stride: i64, step: i64| {
            let row_stride = if down == 1 { across } else { u64::try_from(stride).ok()? };
            let dense = across == 1 || step == 1;
            (dense && row_stride >= across).then_some(Factor { address, stored, row_stride, batch_stride })
        };
        with(Stored::Plain, rows, columns, row, column).or_else(|| with(Stored::Transposed, columns, rows, column, row))
    }
}

/// The result C; never transposed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Target {
    pub address: u64,
    pub row_stride: u64,
    pub batch_stride: u64,
}

/// C (m, n) = alpha · A (m, k) · B (k, n) + beta · C + bias, for each matrix of a batch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Product {
    pub m: u64,
    pub n: u64,
    pub k: u64,
    pub batch: u32,
    pub element: Element,
    /// The dtype of C and of the bias; that of the factors, or F32 for 16-bit factors.
    pub result: Element,
    pub precision: Precision,
    pub a: Factor,
    pub b: Factor,
    pub c: Target,
    pub alpha: f64,
    /// With 0, C is not read.
    pub beta: f64,
    /// Address of a vector (n) of the result's dtype, added to each row; 0 if there is none.
    pub bias: u64,
}

/// Scratch memory of one stream. Two products that may run at the same time need two.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Workspace {
    pub address: u64,
    pub bytes: usize,
}

/// The outcome of a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Queued,
    /// The library does not support it; nothing was queued.
    Unsupported,
}

/// cuBLASLt on one device, with a cache of plans.
pub struct Blas {
    context: &'static Context,
    handle: sys::cublasLtHandle_t,
    plans: HashMap<Key, Option<Plan>>,
}

// SAFETY: the handle may be used from any thread, and `&mut` keeps the descriptors to one at a time.
unsafe impl Send for Blas {}

/// All that a plan depends on: everything but addresses, alpha and beta.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    sizes: [u64; 4],
    elements: (Element, Element, Precision),
    stored: (Stored, Stored),
    strides: [u64; 6],
    has_bias: bool,
    /// Alignments of the addresses of A, B, C.
    alignments: [u32; 3],
    workspace: usize,
}

impl Blas {
    /// The library for this device. `None`: it is not found, or is too old.
    /// Cost: 60 to 150 ms, most of it to load the library.
    pub fn open(context: &'static Context) -> Result<Option<Blas>, DriverError> {
        let Some(library) = Library::BlasLt.load() else { return Ok(None) };
        if library.lacks(FUNCTIONS).is_some() {
            return Ok(None);
        }
        context.make_current()?;
        let mut handle = std::ptr::null_mut();
        // SAFETY: the library has the function and the context is current; the call writes one pointer.
        check("cublasLtCreate", unsafe { sys::cublasLtCreate(&mut handle) })?;
        Ok(Some(Blas { context, handle, plans: HashMap::new() }))
    }

    /// Queues a product on a stream of this device.
    /// Cost: 10 to 100 µs for a new shape, a launch for a known one.
    pub fn matmul(&mut self, product: &Product, stream: &Stream, workspace: Workspace) -> Result<Outcome, DriverError> {
        const NOT_SUPPORTED: u32 = sys::cublasStatus_t::CUBLAS_STATUS_NOT_SUPPORTED as u32;
        if !product.is_describable() {
            return Ok(Outcome::Unsupported);
        }
        self.context.make_current()?;
        let key = product.key(workspace);
        if !self.plans.contains_key(&key) {
            if self.plans.len() >= PLANS_MAX {
                self.plans.clear();
            }
            let plan = Plan::choose(self.handle, product, &key)?;
            self.plans.insert(key, plan);
        }
        let Some(Some(plan)) = self.plans.get(&key) else { return Ok(Outcome::Unsupported) };
        match plan.run(self.handle, product, stream, workspace) {
            Ok(()) => Ok(Outcome::Queued),
            Err(error) if error.code == NOT_SUPPORTED => {
                self.plans.insert(key, None);
                Ok(Outcome::Unsupported)
            }
            Err(error) => Err(error),
        }
    }

    /// Number of shapes planned so far.
    pub fn plans(&self) -> usize {
        self.plans.len()
    }
}

impl Drop for Blas {
    fn drop(&mut self) {
        self.plans.clear();
        if self.context.make_current().is_ok() {
            // SAFETY: the handle is alive, and nobody can use it after this.
            let _ = unsafe { sys::cublasLtDestroy(self.handle) };
        }
    }
}

impl Product {
    /// Whether the library accepts sizes and strides, and the result is as precise as its dtype.
    fn is_describable(&self) -> bool {
        let fits = |factor: &Factor, rows: u64, columns: u64| {
            let across = if factor.stored == Stored::Plain { columns } else { rows };
            factor.row_stride >= across
        };
        let sizes = [self.m, self.n, self.k, u64::from(self.batch)];
        // The library's batch count is a signed 32-bit integer.
        sizes.iter().all(|&size| size > 0 && size <= i32::MAX as u64)
            && fits(&self.a, self.m, self.k)
            && fits(&self.b, self.k, self.n)
            && self.c.row_stride >= self.n
            && (self.element == self.result
                || self.result == Element::F32 && matches!(self.element, Element::F16 | Element::Bf16))
    }

    fn key(&self, workspace: Workspace) -> Key {
        let Product { a, b, c, .. } = self;
        let aligned = |address: u64| 1 << address.trailing_zeros().min(8);
        Key {
            sizes: [self.m, self.n, self.k, u64::from(self.batch)],
            elements: (self.element, self.result, self.precision),
            stored: (a.stored, b.stored),
            strides: [a.row_stride, a.batch_stride, b.row_stride, b.batch_stride, c.row_stride, c.batch_stride],
            has_bias: self.bias != 0,
            alignments: [aligned(a.address), aligned(b.address), aligned(c.address)],
            workspace: workspace.bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Product = Product {
        m: 2,
        n: 3,
        k: 4,
        batch: 1,
        element: Element::F32,
        result: Element::F32,
        precision: Precision::Full,
        a: Factor { address: 256, stored: Stored::Plain, row_stride: 4, batch_stride: 0 },
        b: Factor { address: 512, stored: Stored::Plain, row_stride: 3, batch_stride: 0 },
        c: Target { address: 1024, row_stride: 3, batch_stride: 0 },
        alpha: 1.0,
        beta: 0.0,
        bias: 0,
    };

    #[test]
    fn every_function_that_is_called_is_asked_for() {
        assert_eq!(super::super::library::functions_named("cublasLt"), FUNCTIONS);
    }

    #[test]
    fn strides_shorter_than_a_row_are_not_for_the_library() {
        assert!(PLAIN.is_describable());
        let short = Factor { row_stride: 3, ..PLAIN.a };
        assert!(!Product { a: short, ..PLAIN }.is_describable());
        // Transposed, A is stored as (4, 2).
        let transposed = Factor { stored: Stored::Transposed, row_stride: 2, ..PLAIN.a };
        assert!(Product { a: transposed, ..PLAIN }.is_describable());
        assert!(!Product { k: 0, ..PLAIN }.is_describable());
        assert!(!Product { result: Element::F16, ..PLAIN }.is_describable());
        assert!(Product { element: Element::Bf16, ..PLAIN }.is_describable());
        let double = Product { element: Element::F64, result: Element::F64, ..PLAIN };
        assert!(double.is_describable());
    }

    #[test]
    fn strides_tell_how_a_factor_lies() {
        let lies = |sizes, strides| {
            Factor::of_strides(0, sizes, strides).map(|factor| (factor.stored == Stored::Plain, factor.row_stride))
        };
        assert_eq!(lies((3, 4), [4, 1, 0]), Some((true, 4)));
        assert_eq!(lies((3, 4), [9, 1, 12]), Some((true, 9)));
        assert_eq!(lies((3, 4), [1, 3, 0]), Some((false, 3)));
        assert_eq!(lies((3, 4), [1, 2, 0]), None, "columns lie over each other");
        assert_eq!(lies((3, 4), [0, 1, 0]), None, "one row for all");
        assert_eq!(lies((3, 4), [8, 2, 0]), None, "gaps both ways");
        assert_eq!(lies((3, 4), [-4, 1, 0]), None);
        assert_eq!(lies((3, 4), [4, 1, -12]), None);
        assert_eq!(lies((1, 4), [-7, 1, 0]), Some((true, 4)), "a single row has no next");
        assert_eq!(lies((1, 4), [0, 5, 0]), Some((false, 5)), "a column of a larger matrix, transposed");
        assert_eq!(lies((4, 1), [5, 0, 0]), Some((true, 5)));
        assert_eq!(lies((4, 1), [1, 77, 0]), Some((true, 1)));
        assert_eq!(lies((1, 1), [0, 0, 0]), Some((true, 1)));
    }

    #[test]
    fn a_choice_depends_on_alignment_and_not_on_addresses() {
        let workspace = Workspace { address: 0, bytes: WORKSPACE_BYTES };
        let at = |address| Product { a: Factor { address, ..PLAIN.a }, ..PLAIN }.key(workspace);
        assert!(at(256) == at(0x7f00_0000_1100));
        assert!(at(256) != at(260));
        assert!(at(256) == Product { alpha: 2.0, ..PLAIN }.key(workspace));
        let biased = |bias| Product { bias, ..PLAIN }.key(workspace);
        assert!(at(256) != biased(7) && biased(7) == biased(8));
    }
}
