//! Numbers as little-endian bytes, in files and in copies to and from devices. The Rust type of each dtype for that
//! purpose is defined here only.

use super::dtype::{DType, Scalar};
use half::{bf16, f16};

/// A Rust type that is an element type.
pub trait Number: Copy {
    const DTYPE: DType;
    /// Appends the bytes.
    fn put(self, out: &mut Vec<u8>);
    /// Reads exactly as many bytes as the dtype has.
    fn get(bytes: &[u8]) -> Self;
    /// The value as a script's number.
    fn scalar(self) -> Scalar;
    /// Wraps as an integer, rounds as a float; as `bool`, whether it is not zero.
    fn of(value: Scalar) -> Self;
}

macro_rules! numbers {
    ($($type:ty = $dtype:ident, |$element:ident| $scalar:expr, |$value:ident| $of:expr;)*) => {
        $(impl Number for $type {
            const DTYPE: DType = DType::$dtype;

            fn put(self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }

            fn get(bytes: &[u8]) -> Self {
                let mut raw = [0; size_of::<$type>()];
                raw.copy_from_slice(bytes);
                <$type>::from_le_bytes(raw)
            }

            fn scalar(self) -> Scalar {
                let $element = self;
                $scalar
            }

            fn of($value: Scalar) -> Self {
                $of
            }
        })*
    };
}

numbers! {
    u8 = U8, |x| Scalar::Int(x as i64), |value| value.to_i64() as u8;
    i8 = I8, |x| Scalar::Int(x as i64), |value| value.to_i64() as i8;
    i16 = I16, |x| Scalar::Int(x as i64), |value| value.to_i64() as i16;
    i32 = I32, |x| Scalar::Int(x as i64), |value| value.to_i64() as i32;
    i64 = I64, |x| Scalar::Int(x), |value| value.to_i64();
    f16 = F16, |x| Scalar::Float(x.to_f64()), |value| f16::from_f64(value.to_f64());
    bf16 = BF16, |x| Scalar::Float(x.to_f64()), |value| bf16::from_f64(value.to_f64());
    f32 = F32, |x| Scalar::Float(x as f64), |value| value.to_f64() as f32;
    f64 = F64, |x| Scalar::Float(x), |value| value.to_f64();
}

impl Number for bool {
    const DTYPE: DType = DType::Bool;

    fn put(self, out: &mut Vec<u8>) {
        out.push(self as u8);
    }

    fn get(bytes: &[u8]) -> Self {
        bytes[0] != 0
    }

    fn scalar(self) -> Scalar {
        Scalar::Bool(self)
    }

    fn of(value: Scalar) -> Self {
        value.to_f64() != 0.0
    }
}

/// Runs the body with `$T` as the number type of a dtype.
macro_rules! by_number {
    ($dtype:expr, $T:ident => $body:expr, $complex:expr; $($variant:ident = $type:ty),*) => {
        match $dtype {
            DType::C64 | DType::C128 => $complex,
            $(DType::$variant => {
                type $T = $type;
                $body
            })*
        }
    };
    ($dtype:expr, $T:ident => $body:expr, $complex:expr) => {
        by_number!($dtype, $T => $body, $complex; Bool = bool, U8 = u8, I8 = i8, I16 = i16, I32 = i32, I64 = i64, F16 = f16,
            BF16 = bf16, F32 = f32, F64 = f64)
    };
}

/// One element from its bytes, of which there may be more. A complex number is no scalar: its readers look at its
/// parts, and get NaN here.
pub fn element(bytes: &[u8], dtype: DType) -> Scalar {
    let bytes = &bytes[..dtype.size_bytes()];
    by_number!(dtype, T => T::get(bytes).scalar(), Scalar::Float(f64::NAN))
}

/// Appends the bytes of one element; the imaginary part of a complex one is 0.
pub fn push_element(out: &mut Vec<u8>, value: Scalar, dtype: DType) {
    by_number!(dtype, T => T::of(value).put(out), {
        push_element(out, value, dtype.real_part());
        push_element(out, Scalar::Int(0), dtype.real_part());
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_come_back_from_their_bytes() {
        for dtype in DType::REAL {
            for value in [0.0, 1.0, 2.0, 100.0] {
                let mut bytes = Vec::new();
                push_element(&mut bytes, Scalar::Float(value), dtype);
                assert_eq!(bytes.len(), dtype.size_bytes(), "{dtype}");
                let back = element(&bytes, dtype);
                assert_eq!(back.category(), dtype.category(), "{dtype}");
                assert_eq!(back.to_f64(), if dtype == DType::Bool { value.min(1.0) } else { value }, "{dtype}");
            }
        }
    }

    #[test]
    fn what_does_not_fit_wraps_or_rounds() {
        let kept = |value: Scalar, dtype: DType| {
            let mut bytes = Vec::new();
            push_element(&mut bytes, value, dtype);
            element(&bytes, dtype)
        };
        assert_eq!(kept(Scalar::Int(300), DType::U8), Scalar::Int(44));
        assert_eq!(kept(Scalar::Int(-1), DType::U8), Scalar::Int(255));
        assert_eq!(kept(Scalar::Int(40_000), DType::I16), Scalar::Int(40_000 - 65_536));
        assert_eq!(kept(Scalar::Float(f64::NAN), DType::Bool), Scalar::Bool(true));
        assert_eq!(kept(Scalar::Float(0.1), DType::F32), Scalar::Float(0.1f32 as f64));
        assert_eq!(kept(Scalar::Int(i64::MAX), DType::I64), Scalar::Int(i64::MAX));
    }
}
