//! cuBLASLt's descriptors of one product, and the algorithm that its heuristic chose. In the library's column-major
//! order: A here is B in `mod.rs`. Knows no other shapes.

use super::super::error::{DriverError, constant};
use super::super::stream::Stream;
use super::{Element, Factor, Key, Precision, Product, Stored, Workspace};
use cudarc::cublaslt::sys::{self, cublasLtMatmulDescAttributes_t as Of, cublasLtMatrixLayoutAttribute_t as Shape};
use std::ffi::c_void;

/// The descriptors of a product, and the chosen algorithm, in the library's order.
pub(super) struct Plan {
    product: Description,
    factors: [Layout; 2],
    result: Layout,
    algorithm: sys::cublasLtMatmulAlgo_t,
}

impl Element {
    fn value(self) -> sys::cudaDataType {
        match self {
            Element::F16 => sys::cudaDataType_t::CUDA_R_16F,
            Element::Bf16 => sys::cudaDataType_t::CUDA_R_16BF,
            Element::F32 => sys::cudaDataType_t::CUDA_R_32F,
            Element::F64 => sys::cudaDataType_t::CUDA_R_64F,
        }
    }

    /// The compute type for this dtype, and the dtype of alpha and beta.
    fn compute(self, precision: Precision) -> (sys::cublasComputeType_t, sys::cudaDataType) {
        use sys::cublasComputeType_t as Compute;
        match (self, precision) {
            (Element::F64, _) => (Compute::CUBLAS_COMPUTE_64F, Element::F64.value()),
            (Element::F32, Precision::Tf32) => (Compute::CUBLAS_COMPUTE_32F_FAST_TF32, Element::F32.value()),
            _ => (Compute::CUBLAS_COMPUTE_32F, Element::F32.value()),
        }
    }
}

impl Plan {
    /// Asks the heuristic for the best algorithm; `None` if it has none.
    pub(super) fn choose(
        handle: sys::cublasLtHandle_t,
        product: &Product,
        key: &Key,
    ) -> Result<Option<Plan>, DriverError> {
        const NOT_SUPPORTED: u32 = sys::cublasStatus_t::CUBLAS_STATUS_NOT_SUPPORTED as u32;
        let Product { m, n, k, batch, a, b, c, .. } = *product;
        let description = Description::new(product)?;
        let factor = |factor: &Factor, rows: u64, columns: u64| {
            let (rows, columns) = if factor.stored == Stored::Plain { (rows, columns) } else { (columns, rows) };
            Layout::new(product.element, rows, columns, factor.row_stride, batch, factor.batch_stride)
        };
        let factors = [factor(&b, k, n)?, factor(&a, m, k)?];
        let result = Layout::new(product.result, m, n, c.row_stride, batch, c.batch_stride)?;
        let preference = Preference::new(key)?;
        // SAFETY: all zeros is a value of this plain struct; the call fills it.
        let mut found: sys::cublasLtMatmulHeuristicResult_t = unsafe { std::mem::zeroed() };
        let mut count = 0;
        // SAFETY: all descriptions are alive; the call writes at most one result and the count.
        let answer = check("cublasLtMatmulAlgoGetHeuristic", unsafe {
            sys::cublasLtMatmulAlgoGetHeuristic(
                handle,
                description.0,
                factors[0].0,
                factors[1].0,
                result.0,
                result.0,
                preference.0,
                1,
                &mut found,
                &mut count,
            )
        });
        match answer {
            Err(error) if error.code == NOT_SUPPORTED => return Ok(None),
            Err(error) => return Err(error),
            Ok(()) if count == 0 || found.state != sys::cublasStatus_t::CUBLAS_STATUS_SUCCESS => return Ok(None),
            Ok(()) => {}
        }
        Ok(Some(Plan { product: description, factors, result, algorithm: found.algo }))
    }

    pub(super) fn run(
        &self,
        handle: sys::cublasLtHandle_t,
        product: &Product,
        stream: &Stream,
        workspace: Workspace,
    ) -> Result<(), DriverError> {
        self.product.set_addresses(product)?;
        let single = [product.alpha as f32, product.beta as f32];
        let double = [product.alpha, product.beta];
        let scales: [*const c_void; 2] = match product.element {
            Element::F64 => [(&raw const double[0]).cast(), (&raw const double[1]).cast()],
            _ => [(&raw const single[0]).cast(), (&raw const single[1]).cast()],
        };
        let at = |address: u64| address as *mut c_void;
        // SAFETY: handle and descriptions are alive; alpha and beta have the dtype of the description and are read
        // before the call returns; addresses are the device's.
        check("cublasLtMatmul", unsafe {
            sys::cublasLtMatmul(
                handle,
                self.product.0,
                scales[0],
                at(product.b.address),
                self.factors[0].0,
                at(product.a.address),
                self.factors[1].0,
                scales[1],
                at(product.c.address),
                self.result.0,
                at(product.c.address),
                self.result.0,
                &self.algorithm,
                at(workspace.address),
                workspace.bytes,
                stream.raw().cast(),
            )
        })
    }
}

/// `cublasLtMatmulDesc_t`.
struct Description(sys::cublasLtMatmulDesc_t);

impl Description {
    fn new(product: &Product) -> Result<Description, DriverError> {
        let (compute, scale) = product.element.compute(product.precision);
        let mut description = Description(std::ptr::null_mut());
        // SAFETY: the call writes one pointer, to `made.0`, and reads nothing of ours.
        check("cublasLtMatmulDescCreate", unsafe {
            sys::cublasLtMatmulDescCreate(&mut description.0, compute, scale)
        })?;
        // `cublasOperation_t`, which cudarc has with the older library only: CUBLAS_OP_N and CUBLAS_OP_T.
        let operation = |stored| match stored {
            Stored::Plain => 0i32,
            Stored::Transposed => 1,
        };
        description.set(Of::CUBLASLT_MATMUL_DESC_TRANSA, operation(product.b.stored))?;
        description.set(Of::CUBLASLT_MATMUL_DESC_TRANSB, operation(product.a.stored))?;
        if product.bias != 0 {
            description
                .set(Of::CUBLASLT_MATMUL_DESC_EPILOGUE, sys::cublasLtEpilogue_t::CUBLASLT_EPILOGUE_BIAS as u32)?;
            description.set(Of::CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, product.result.value() as i32)?;
        }
        description.set_addresses(product)?;
        Ok(description)
    }

    fn set_addresses(&self, product: &Product) -> Result<(), DriverError> {
        if product.bias != 0 {
            self.set(Of::CUBLASLT_MATMUL_DESC_BIAS_POINTER, product.bias)?;
        }
        Ok(())
    }

    fn set<T: Copy>(&self, attribute: Of, value: T) -> Result<(), DriverError> {
        let (at, bytes) = ((&raw const value).cast(), size_of::<T>());
        // SAFETY: the description is alive; the call reads `bytes` bytes, or refuses the number.
        let result = unsafe { sys::cublasLtMatmulDescSetAttribute(self.0, attribute, at, bytes) };
        check("cublasLtMatmulDescSetAttribute", result)
    }
}

impl Drop for Description {
    fn drop(&mut self) {
        // SAFETY: the description is alive or null, and nobody can use it after this.
        let _ = unsafe { sys::cublasLtMatmulDescDestroy(self.0) };
    }
}

/// `cublasLtMatrixLayout_t`.
struct Layout(sys::cublasLtMatrixLayout_t);

impl Layout {
    /// Describes a row-major matrix, which the library reads as its transpose.
    fn new(
        element: Element,
        rows: u64,
        columns: u64,
        row_stride: u64,
        batch: u32,
        batch_stride: u64,
    ) -> Result<Layout, DriverError> {
        let mut description = Layout(std::ptr::null_mut());
        let stride = row_stride as i64;
        // SAFETY: the call writes one pointer, to `made.0`, and reads nothing of ours.
        check("cublasLtMatrixLayoutCreate", unsafe {
            sys::cublasLtMatrixLayoutCreate(&mut description.0, element.value(), columns, rows, stride)
        })?;
        if batch > 1 {
            description.set(Shape::CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, batch as i32)?;
            description.set(Shape::CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, batch_stride as i64)?;
        }
        Ok(description)
    }

    fn set<T: Copy>(&self, attribute: Shape, value: T) -> Result<(), DriverError> {
        let (at, bytes) = ((&raw const value).cast(), size_of::<T>());
        // SAFETY: the description is alive; the call reads `bytes` bytes, or refuses the number.
        let result = unsafe { sys::cublasLtMatrixLayoutSetAttribute(self.0, attribute, at, bytes) };
        check("cublasLtMatrixLayoutSetAttribute", result)
    }
}

impl Drop for Layout {
    fn drop(&mut self) {
        // SAFETY: the description is alive or null, and nobody can use it after this.
        let _ = unsafe { sys::cublasLtMatrixLayoutDestroy(self.0) };
    }
}

/// `cublasLtMatmulPreference_t`.
struct Preference(sys::cublasLtMatmulPreference_t);

impl Preference {
    fn new(key: &Key) -> Result<Preference, DriverError> {
        use sys::cublasLtMatmulPreferenceAttributes_t as Prefer;
        let mut description = Preference(std::ptr::null_mut());
        // SAFETY: the call writes one pointer, to `made.0`, and reads nothing of ours.
        check("cublasLtMatmulPreferenceCreate", unsafe { sys::cublasLtMatmulPreferenceCreate(&mut description.0) })?;
        let [a, b, c] = key.alignments;
        description.set(Prefer::CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, key.workspace)?;
        description.set(Prefer::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, b)?;
        description.set(Prefer::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, a)?;
        description.set(Prefer::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, c)?;
        description.set(Prefer::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, c)?;
        Ok(description)
    }

    fn set<T: Copy>(&self, attribute: sys::cublasLtMatmulPreferenceAttributes_t, value: T) -> Result<(), DriverError> {
        let (at, bytes) = ((&raw const value).cast(), size_of::<T>());
        // SAFETY: the preference is alive; the call reads `bytes` bytes, or refuses the number.
        let result = unsafe { sys::cublasLtMatmulPreferenceSetAttribute(self.0, attribute, at, bytes) };
        check("cublasLtMatmulPreferenceSetAttribute", result)
    }
}

impl Drop for Preference {
    fn drop(&mut self) {
        // SAFETY: the preference is alive or null, and nobody can use it after this.
        let _ = unsafe { sys::cublasLtMatmulPreferenceDestroy(self.0) };
    }
}

pub(super) fn check(call: &'static str, status: sys::cublasStatus_t) -> Result<(), DriverError> {
    if status == sys::cublasStatus_t::CUBLAS_STATUS_SUCCESS {
        return Ok(());
    }
    // SAFETY: the library has both functions; they return constant texts.
    let (name, text) =
        unsafe { (constant(sys::cublasLtGetStatusName(status)), constant(sys::cublasLtGetStatusString(status))) };
    Err(DriverError {
        call,
        code: status as u32,
        name: name.unwrap_or("CUBLAS_STATUS, a code without a name"),
        text: text.unwrap_or("an error that this library has no words for"),
    })
}
