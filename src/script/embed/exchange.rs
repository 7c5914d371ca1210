//! Tensors between a host program and its scripts.

use crate::base::code;
use crate::base::device_id::DeviceId;
use crate::base::diag::{Diag, Result};
use crate::base::dtype::DType;
use crate::base::layout::{Layout, Shape};
use crate::base::span::Origin;
pub use crate::device::dlpack::Dlpack;
use crate::device::lent::Lent;
use crate::op::emit::Emit;
use crate::op::infer;
use crate::op::tensor::View;
use crate::script::error::Error;
use crate::script::host::Boundary;
use crate::script::values::types;
use crate::tensor::engine::Engine;
use crate::tensor::observe;
use half::{bf16, f16};
use std::sync::Arc;

/// Rust types that are elements of tensors: `f64 f32 i64 i32 i16 i8 u8 bool`, and `f16 bf16` of the crate `half`.
pub trait Element: Copy + Send + Sync + 'static {
    /// The dtype of such elements.
    const DTYPE: DType;
    /// Elements from their little-endian bytes.
    #[doc(hidden)]
    fn read(bytes: &[u8]) -> Vec<Self>;
}

macro_rules! elements {
    ($($type:ty => $dtype:ident),*) => {$(
        impl Element for $type {
            const DTYPE: DType = DType::$dtype;

            fn read(bytes: &[u8]) -> Vec<$type> {
                let (elements, _) = bytes.as_chunks();
                elements.iter().map(|&element| <$type>::from_le_bytes(element)).collect()
            }
        }
    )*};
}
elements!(f64 => F64, f32 => F32, f16 => F16, bf16 => BF16, i64 => I64, i32 => I32, i16 => I16, i8 => I8, u8 => U8);

impl Element for bool {
    const DTYPE: DType = DType::Bool;

    fn read(bytes: &[u8]) -> Vec<bool> {
        bytes.iter().map(|&byte| byte != 0).collect()
    }
}

/// A tensor as host programs hold it: memory of the program that a session adopts at first use, or a tensor of a
/// session, which it keeps alive. `Send + Sync`; clones share the elements.
///
/// ```
/// use tscript::{Session, Tensor};
///
/// let x = Tensor::from_slice(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], &[2, 3])?;
/// let mut session = Session::builder().build()?;
/// session.run_str("model", "fn columns(x) { x.sum(0) }")?;
/// let sums: Tensor = session.call("columns", (x,))?;
/// assert_eq!(sums.shape(), [3]);
/// assert_eq!(sums.to_vec::<f32>()?, [5.0, 7.0, 9.0]);
/// # Ok::<(), tscript::Error>(())
/// ```
///
/// Memory is moved if possible: a session that gets the only handle of a [`from_vec`](Tensor::from_vec) or
/// [`from_dlpack`](Tensor::from_dlpack) tensor works on that memory, and copies if there are other handles.
#[derive(Clone)]
pub struct Tensor(Inner);

#[derive(Clone)]
enum Inner {
    Host { dtype: DType, layout: Layout, memory: Arc<Lent> },
    Live { tensor: types::Tensor, boundary: Boundary },
}

fn failed(diag: Box<Diag>) -> Error {
    Error::new(diag, &Default::default())
}

impl Tensor {
    /// A tensor of `shape` from a copy of row-major elements.
    ///
    /// # Errors
    /// E0201 if the number of elements does not fit the shape.
    pub fn from_slice<T: Element>(elements: &[T], shape: &[usize]) -> std::result::Result<Tensor, Error> {
        Tensor::from_vec(elements.to_vec(), shape)
    }

    /// A tensor of `shape` over row-major elements, which are not copied.
    ///
    /// # Errors
    /// E0201 if the number of elements does not fit the shape.
    pub fn from_vec<T: Element>(elements: Vec<T>, shape: &[usize]) -> std::result::Result<Tensor, Error> {
        let found = elements.len();
        match infer::size_bytes(shape, T::DTYPE) {
            Ok(bytes) if bytes == size_of_val(&*elements) => {
                let (layout, memory) = (Layout::contiguous(shape), Arc::new(Lent::vec(elements)));
                Ok(Tensor(Inner::Host { dtype: T::DTYPE, layout, memory }))
            }
            Ok(bytes) => {
                let expected = bytes / T::DTYPE.size_bytes();
                let text = format!("{found} elements for a tensor of shape {shape:?}, which has {expected}");
                Err(failed(Diag::error(code::SHAPE, text)))
            }
            Err(diag) => Err(failed(diag)),
        }
    }

    /// A tensor over elements with strides, none of which is negative.
    #[cfg(feature = "ndarray")]
    pub(in crate::script) fn from_strided<T: Element>(
        elements: Vec<T>,
        shape: &[usize],
        strides: &[isize],
    ) -> std::result::Result<Tensor, Error> {
        infer::size_bytes(shape, T::DTYPE).map_err(failed)?;
        let layout = Layout { shape: Shape::from_slice(shape), strides: strides.iter().copied().collect(), offset: 0 };
        let last: usize =
            shape.iter().zip(strides).map(|(&size, &stride)| size.saturating_sub(1) * stride as usize).sum();
        if last >= elements.len() {
            return Err(failed(Diag::error(code::SHAPE, "the strides reach beyond the elements")));
        }
        Ok(Tensor(Inner::Host { dtype: T::DTYPE, layout, memory: Arc::new(Lent::vec(elements)) }))
    }

    /// A tensor of `shape` from row-major little-endian bytes.
    ///
    /// # Errors
    /// E0201 if the number of bytes does not fit shape and dtype.
    ///
    /// ```
    /// use tscript::{DType, Tensor};
    ///
    /// let x = Tensor::from_bytes(DType::I16, &[2], vec![1, 0, 255, 255])?;
    /// assert_eq!(x.to_vec::<i16>()?, [1, -1]);
    /// assert_eq!(x.to_bytes()?, [1, 0, 255, 255]);
    /// # Ok::<(), tscript::Error>(())
    /// ```
    pub fn from_bytes(dtype: DType, shape: &[usize], bytes: Vec<u8>) -> std::result::Result<Tensor, Error> {
        let expected = infer::size_bytes(shape, dtype).map_err(failed)?;
        if expected != bytes.len() {
            let text = format!(
                "{} bytes for a tensor of shape {shape:?} and dtype {dtype}, which has {expected}",
                bytes.len()
            );
            return Err(failed(Diag::error(code::SHAPE, text)));
        }
        // Elements must be aligned, and these bytes may not be.
        let memory = match dtype.size_bytes() {
            1 => Lent::vec(bytes),
            2 => Lent::vec(u16::gathered(&bytes)),
            4 => Lent::vec(u32::gathered(&bytes)),
            _ => Lent::vec(u64::gathered(&bytes)),
        };
        Ok(Tensor(Inner::Host { dtype, layout: Layout::contiguous(shape), memory: Arc::new(memory) }))
    }

    /// Sizes of the dimensions.
    pub fn shape(&self) -> Vec<usize> {
        match &self.0 {
            Inner::Host { layout, .. } => layout.shape.to_vec(),
            Inner::Live { tensor, .. } => tensor.shape().to_vec(),
        }
    }

    /// Type of the elements.
    pub fn dtype(&self) -> DType {
        match &self.0 {
            Inner::Host { dtype, .. } => *dtype,
            Inner::Live { tensor, .. } => tensor.dtype(),
        }
    }

    /// Where the elements are: `cpu`, or `cuda:0` and so on.
    pub fn device(&self) -> String {
        match &self.0 {
            Inner::Host { .. } => "cpu".to_string(),
            Inner::Live { tensor, .. } => tensor.device().to_string(),
        }
    }

    /// All elements, row-major, as little-endian bytes. Waits until they are computed.
    ///
    /// # Errors
    /// The late error of the work that was to compute them.
    pub fn to_bytes(&self) -> std::result::Result<Vec<u8>, Error> {
        match &self.0 {
            Inner::Host { dtype, layout, memory } => Ok(dense(memory.bytes(), layout, dtype.size_bytes())),
            Inner::Live { tensor, boundary } => {
                observe::bytes(&boundary.rt, tensor).map_err(|diag| boundary.error(diag))
            }
        }
    }

    /// All elements, row-major. Waits until they are computed.
    ///
    /// # Errors
    /// E0202 if the elements have another type, and as [`to_bytes`](Tensor::to_bytes).
    pub fn to_vec<T: Element>(&self) -> std::result::Result<Vec<T>, Error> {
        if self.dtype() != T::DTYPE {
            let text = format!("the tensor is {}, not {}", self.dtype(), T::DTYPE);
            return Err(failed(Diag::error(code::DTYPE, text)));
        }
        self.to_bytes().map(|bytes| T::read(&bytes))
    }

    /// The tensor for another library, without a copy. Waits until its elements are computed. Later writes of a
    /// script become visible to the other library at an unspecified time.
    ///
    /// # Errors
    /// E0301 for a tensor on a GPU: move it by `.cpu()` first. The late error of the work that was to compute it.
    pub fn to_dlpack(&self) -> std::result::Result<Dlpack, Error> {
        let (layout, memory) = match &self.0 {
            Inner::Host { layout, memory, .. } => (layout.clone(), Lent::shared(memory)),
            Inner::Live { tensor, boundary } => {
                let view = observe::settle(&boundary.rt, tensor).map_err(|diag| boundary.error(diag))?;
                if view.buffer.device.is_cuda() {
                    let text = format!("a tensor on {} has no memory on the host", view.buffer.device);
                    let diag = Diag::error(code::DEVICE_MISMATCH, text);
                    return Err(failed(diag.help("move it first: `x.cpu()`")));
                }
                (view.layout.clone(), boundary.rt.lend_out(&view, self.clone()))
            }
        };
        let strides = layout.strides.iter().map(|&stride| stride.unsigned_abs()).collect();
        Ok(Dlpack::new(memory, self.dtype(), layout.shape.to_vec(), strides))
    }

    /// A tensor of another library, without a copy unless it is read-only.
    ///
    /// # Errors
    /// E0201 for a layout that tensors do not support.
    pub fn from_dlpack(tensor: Dlpack) -> std::result::Result<Tensor, Error> {
        let (memory, dtype, shape, strides, read_only) = tensor.into_parts();
        infer::size_bytes(&shape, dtype).map_err(failed)?;
        let strides = strides.iter().map(|&stride| stride as isize).collect();
        let layout = Layout { shape: Shape::from_slice(&shape), strides, offset: 0 };
        // Bools of other libraries may be any byte, and a script could write to read-only memory.
        if read_only || dtype == DType::Bool {
            let mut bytes = dense(memory.bytes(), &layout, dtype.size_bytes());
            if dtype == DType::Bool {
                bytes.iter_mut().for_each(|byte| *byte = u8::from(*byte != 0));
            }
            return Tensor::from_bytes(dtype, &shape, bytes);
        }
        Ok(Tensor(Inner::Host { dtype, layout, memory: Arc::new(memory) }))
    }

    pub(in crate::script) fn of_session(tensor: types::Tensor, boundary: &Boundary) -> Tensor {
        Tensor(Inner::Live { tensor, boundary: boundary.clone() })
    }

    pub(in crate::script) fn adopt(self, to: &Boundary) -> Result<types::Tensor> {
        let rt = &to.rt;
        match self.0 {
            Inner::Live { tensor, boundary } if Arc::ptr_eq(rt, &boundary.rt) => Ok(tensor),
            Inner::Live { .. } => Err(Diag::error(code::FOREIGN_TENSOR, "this tensor belongs to another session")
                .help("pass its elements instead: `to_vec()` there, `Tensor::from_slice` here")),
            Inner::Host { dtype, layout, memory } => match Arc::try_unwrap(memory) {
                Ok(memory) => {
                    let view = Arc::new(View::new(rt.lend(memory), layout, dtype));
                    Ok(types::Tensor::new(view, Origin::NONE))
                }
                Err(memory) => {
                    let bytes = dense(memory.bytes(), &layout, dtype.size_bytes());
                    Engine::new(rt.clone(), Origin::NONE).upload(&bytes, &layout.shape, dtype, DeviceId::Cpu)
                }
            },
        }
    }
}

/// Bytes of all elements, row-major.
fn dense(bytes: &[u8], layout: &Layout, element: usize) -> Vec<u8> {
    if layout.is_contiguous() {
        return bytes[..layout.numel() * element].to_vec();
    }
    let mut out = Vec::with_capacity(layout.numel() * element);
    let mut index = vec![0usize; layout.ndim()];
    for _ in 0..layout.numel() {
        let at: usize = index.iter().zip(&layout.strides).map(|(&i, &s)| i * s.unsigned_abs() * element).sum();
        out.extend_from_slice(&bytes[at..at + element]);
        for dim in (0..index.len()).rev() {
            index[dim] += 1;
            if index[dim] < layout.shape[dim] {
                break;
            }
            index[dim] = 0;
        }
    }
    out
}

/// Machine words from bytes that may be unaligned.
trait Gathered: Sized {
    fn gathered(bytes: &[u8]) -> Vec<Self>;
}

macro_rules! gathered {
    ($($word:ty),*) => {$(
        impl Gathered for $word {
            fn gathered(bytes: &[u8]) -> Vec<$word> {
                bytes.as_chunks().0.iter().map(|&word| <$word>::from_ne_bytes(word)).collect()
            }
        }
    )*};
}
gathered!(u16, u32, u64);

impl std::fmt::Debug for Tensor {
    /// Shape and dtype; the elements may not be computed yet.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Tensor({} {:?})", self.dtype(), self.shape())
    }
}
