//! The points where a value must be known: reading, printing, `item`.

use crate::base::code;
use crate::base::diag::{Diag, Result};
use crate::base::dtype::{DType, Scalar};
use crate::op::tensor::{Tensor, View};
use crate::sched::runtime::Runtime;
use half::{bf16, f16};
use std::sync::Arc;

/// Waits for everything that a tensor depends on; raises the fault that reached it.
pub fn settle(rt: &Runtime, tensor: &Tensor) -> Result<Arc<View>> {
    let view = tensor.view();
    rt.settle(&view)?;
    Ok(view)
}

/// All elements, row-major, as bytes of the tensor's dtype.
pub fn bytes(rt: &Runtime, tensor: &Tensor) -> Result<Vec<u8>> {
    let view = settle(rt, tensor)?;
    rt.host_room(view.layout.numel().saturating_mul(view.dtype.size_bytes()))?;
    rt.download(&view)
}

/// All elements, row-major.
pub fn scalars(rt: &Runtime, tensor: &Tensor) -> Result<Vec<Scalar>> {
    // The bytes, the values, and the script's own.
    rt.host_room(tensor.numel().saturating_mul(40))?;
    let bytes = bytes(rt, tensor)?;
    let dtype = tensor.dtype();
    Ok(bytes.chunks_exact(dtype.size_bytes()).map(|chunk| element(chunk, dtype)).collect())
}

/// One element from its bytes (little endian).
pub fn element(b: &[u8], dtype: DType) -> Scalar {
    fn arr<const N: usize>(b: &[u8]) -> [u8; N] {
        b[..N].try_into().expect("as long as the dtype")
    }
    match dtype {
        DType::Bool => Scalar::Bool(b[0] != 0),
        DType::U8 => Scalar::Int(b[0] as i64),
        DType::I8 => Scalar::Int(b[0] as i8 as i64),
        DType::I16 => Scalar::Int(i16::from_le_bytes(arr(b)) as i64),
        DType::I32 => Scalar::Int(i32::from_le_bytes(arr(b)) as i64),
        DType::I64 => Scalar::Int(i64::from_le_bytes(arr(b))),
        DType::F16 => Scalar::Float(f16::from_le_bytes(arr(b)).to_f64()),
        DType::BF16 => Scalar::Float(bf16::from_le_bytes(arr(b)).to_f64()),
        DType::F32 => Scalar::Float(f32::from_le_bytes(arr(b)) as f64),
        DType::F64 => Scalar::Float(f64::from_le_bytes(arr(b))),
    }
}

/// Bytes of one element.
pub fn push_element(out: &mut Vec<u8>, value: Scalar, dtype: DType) {
    match dtype {
        DType::Bool => out.push((value.to_f64() != 0.0) as u8),
        DType::U8 => out.push(value.to_i64() as u8),
        DType::I8 => out.push(value.to_i64() as u8),
        DType::I16 => out.extend((value.to_i64() as i16).to_le_bytes()),
        DType::I32 => out.extend((value.to_i64() as i32).to_le_bytes()),
        DType::I64 => out.extend(value.to_i64().to_le_bytes()),
        DType::F16 => out.extend(f16::from_f64(value.to_f64()).to_le_bytes()),
        DType::BF16 => out.extend(bf16::from_f64(value.to_f64()).to_le_bytes()),
        DType::F32 => out.extend((value.to_f64() as f32).to_le_bytes()),
        DType::F64 => out.extend(value.to_f64().to_le_bytes()),
    }
}

/// The one element of a tensor as a number.
pub fn item(rt: &Runtime, tensor: &Tensor) -> Result<Scalar> {
    let n = tensor.numel();
    if n != 1 {
        return Err(Diag::error(code::SHAPE, format!("a tensor of {n} elements is not one number"))
            .help("reduce it first, for example with `.sum()`, or index one element"));
    }
    let view = settle(rt, tensor)?;
    Ok(element(&rt.peek_bytes(&view, view.layout.offset), view.dtype))
}

/// Whether a condition on a tensor holds.
pub fn truth(rt: &Runtime, tensor: &Tensor) -> Result<bool> {
    let n = tensor.numel();
    if n != 1 {
        let diag = Diag::error(code::TRUTH, format!("the truth of a tensor with {n} elements is ambiguous"));
        return Err(diag.help("use `.any()` or `.all()`; masks combine element by element by `&`, `|` and `!`"));
    }
    item(rt, tensor).map(|value| !value.is_zero())
}
