//! Tensors between a host program and its scripts.

use super::value;
use crate::base::code;
use crate::base::diag::{Diag, Result};
use crate::base::dtype::DType;
use crate::op::emit::Emit;
use crate::sched::runtime::Runtime;
use crate::tensor::engine::Engine;
use crate::tensor::observe;
use half::{bf16, f16};
use std::sync::Arc;

/// Rust types that are elements of tensors: `f64 f32 i64 i32 i16 i8 u8 bool`, and `f16 bf16` of the crate `half`.
pub trait Element: Copy + Send + Sync + 'static {
    /// The dtype of such elements.
    const DTYPE: DType;
}

macro_rules! elements {
    ($($type:ty => $dtype:ident),*) => { $(impl Element for $type { const DTYPE: DType = DType::$dtype; })* };
}
elements!(f64 => F64, f32 => F32, f16 => F16, bf16 => BF16, i64 => I64, i32 => I32, i16 => I16, i8 => I8, u8 => U8, bool => Bool);

/// A tensor as host programs hold it: a host array that a session adopts at first use, or a tensor of a
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
#[derive(Clone)]
pub struct Tensor(Inner);

#[derive(Clone)]
enum Inner {
    Host { dtype: DType, shape: Vec<usize>, bytes: Arc<Vec<u8>> },
    Live { tensor: value::Tensor, rt: Arc<Runtime> },
}

impl Tensor {
    /// A host tensor of `shape` from row-major elements.
    pub fn from_slice<T: Element>(elements: &[T], shape: &[usize]) -> Result<Tensor, super::error::Error> {
        let mut bytes = Vec::with_capacity(std::mem::size_of_val(elements));
        for element in elements {
            push_bytes(&mut bytes, element);
        }
        Tensor::from_bytes(T::DTYPE, shape, bytes)
    }

    /// A host tensor of `shape` from row-major little-endian bytes.
    pub fn from_bytes(dtype: DType, shape: &[usize], bytes: Vec<u8>) -> Result<Tensor, super::error::Error> {
        let wanted = crate::op::infer::size_bytes(shape, dtype);
        match wanted {
            Ok(n) if n == bytes.len() => {
                Ok(Tensor(Inner::Host { dtype, shape: shape.to_vec(), bytes: Arc::new(bytes) }))
            }
            Ok(n) => {
                let text =
                    format!("{} bytes for a tensor of shape {shape:?} and dtype {dtype}, which has {n}", bytes.len());
                Err(super::error::Error::new(Diag::error(code::SHAPE, text), &Default::default()))
            }
            Err(diag) => Err(super::error::Error::new(diag, &Default::default())),
        }
    }

    /// Sizes of the dimensions.
    pub fn shape(&self) -> Vec<usize> {
        match &self.0 {
            Inner::Host { shape, .. } => shape.clone(),
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

    /// All elements, row-major, as little-endian bytes. Waits.
    pub fn to_bytes(&self) -> Result<Vec<u8>, super::error::Error> {
        match &self.0 {
            Inner::Host { bytes, .. } => Ok(bytes.to_vec()),
            Inner::Live { tensor, rt } => {
                observe::bytes(rt, tensor).map_err(|diag| super::error::Error::new(diag, &Default::default()))
            }
        }
    }

    /// All elements, row-major. Waits; an error when the dtype is another.
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>, super::error::Error> {
        if self.dtype() != T::DTYPE {
            let text = format!("the tensor is {}, not {}", self.dtype(), T::DTYPE);
            return Err(super::error::Error::new(Diag::error(code::DTYPE, text), &Default::default()));
        }
        let bytes = self.to_bytes()?;
        Ok(bytes.chunks_exact(size_of::<T>()).map(|chunk| element(chunk)).collect())
    }

    pub(super) fn of_session(tensor: value::Tensor, rt: &Arc<Runtime>) -> Tensor {
        Tensor(Inner::Live { tensor, rt: rt.clone() })
    }

    pub(super) fn adopt(self, rt: &Arc<Runtime>) -> Result<value::Tensor> {
        match self.0 {
            Inner::Live { tensor, rt: other } if Arc::ptr_eq(rt, &other) => Ok(tensor),
            Inner::Live { .. } => Err(Diag::error(code::FOREIGN_TENSOR, "this tensor belongs to another session")
                .help("pass its elements instead: `to_vec()` there, `Tensor::from_slice` here")),
            Inner::Host { dtype, shape, bytes } => {
                let mut engine = Engine::new(rt.clone(), crate::base::span::Origin::NONE);
                engine.upload(&bytes, &shape, dtype, crate::base::device_id::DeviceId::Cpu)
            }
        }
    }
}

fn push_bytes<T: Element>(out: &mut Vec<u8>, value: &T) {
    let any: &dyn std::any::Any = value;
    macro_rules! numbers {
        ($($type:ty),*) => {$(
            if let Some(x) = any.downcast_ref::<$type>() {
                out.extend(x.to_le_bytes());
                return;
            }
        )*};
    }
    numbers!(f64, f32, f16, bf16, i64, i32, i16, i8, u8);
    if let Some(b) = any.downcast_ref::<bool>() {
        out.push(*b as u8);
    }
}

fn element<T: Element>(bytes: &[u8]) -> T {
    let any: Box<dyn std::any::Any> = match observe::element(bytes, T::DTYPE) {
        crate::base::dtype::Scalar::Bool(b) => Box::new(b),
        crate::base::dtype::Scalar::Int(i) => match T::DTYPE {
            DType::I64 => Box::new(i),
            DType::I32 => Box::new(i as i32),
            DType::I16 => Box::new(i as i16),
            DType::I8 => Box::new(i as i8),
            _ => Box::new(i as u8),
        },
        crate::base::dtype::Scalar::Float(x) => match T::DTYPE {
            DType::F64 => Box::new(x),
            DType::F32 => Box::new(x as f32),
            DType::F16 => Box::new(f16::from_f64(x)),
            _ => Box::new(bf16::from_f64(x)),
        },
    };
    *any.downcast().expect("the type of its dtype")
}

impl std::fmt::Debug for Tensor {
    /// Shape and dtype; the elements may not be computed yet.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Tensor({} {:?})", self.dtype(), self.shape())
    }
}
