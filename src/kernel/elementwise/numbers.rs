//! Element-wise functions of plain numbers: one element of a tile.

use crate::base::dtype::Scalar;
use crate::kernel::host::simd;
use crate::kernel::program::{Class, Function};

/// The value of a function for numbers that are converted to these classes; `None` if it is not defined for them.
pub fn of_numbers(function: &Function, numbers: &[Scalar], classes: &[Class]) -> Option<Scalar> {
    let variant = &function.variants[function.variant(classes)?];
    let mut words = [0u64; 4];
    for ((word, number), class) in words.iter_mut().zip(numbers).zip(classes) {
        let mut bytes = [0u8; 8];
        match class {
            Class::Bool => bytes[0] = !number.is_zero() as u8,
            Class::I64 => bytes = number.to_i64().to_ne_bytes(),
            Class::F32 => bytes[..4].copy_from_slice(&(number.to_f64() as f32).to_ne_bytes()),
            Class::F64 => bytes = number.to_f64().to_ne_bytes(),
        }
        *word = u64::from_ne_bytes(bytes);
    }
    let args = words.each_ref().map(|word| std::ptr::from_ref(word).cast());
    let mut out = 0u64;
    // SAFETY: each pointer is to 8 aligned bytes, which hold one element of the class that the variant names.
    unsafe { variant.tiles[simd::level()](&args, (&raw mut out).cast(), 1) };
    let out = out.to_ne_bytes();
    Some(match variant.out {
        Class::Bool => Scalar::Bool(out[0] != 0),
        Class::I64 => Scalar::Int(i64::from_ne_bytes(out)),
        Class::F32 => Scalar::Float(f32::from_ne_bytes([out[0], out[1], out[2], out[3]]) as f64),
        Class::F64 => Scalar::Float(f64::from_ne_bytes(out)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::elementwise as f;

    #[test]
    fn numbers_have_the_values_of_elements() {
        let (two, half) = (Scalar::Int(2), Scalar::Float(0.5));
        assert_eq!(of_numbers(&f::ADD, &[two, two], &[Class::I64; 2]), Some(Scalar::Int(4)));
        assert_eq!(of_numbers(&f::ADD, &[two, half], &[Class::F64; 2]), Some(Scalar::Float(2.5)));
        assert_eq!(of_numbers(&f::LT, &[half, two], &[Class::F64; 2]), Some(Scalar::Bool(true)));
        assert_eq!(of_numbers(&f::WHERE, &[two, half, two], &[Class::Bool, Class::F64, Class::F64]), Some(half));
        assert_eq!(of_numbers(&f::ADD, &[two], &[Class::Bool]), None);
    }
}
