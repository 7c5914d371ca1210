//! The twelve element types, PyTorch's promotion lattice and scalars.
//!
//! Knows nothing of tensors: promotion of operands of several kinds (tensor, 0-dimensional tensor, number) is computed
//! from dtypes and numbers of dims.

#![warn(missing_docs)]

use crate::base::float_text::float_text;
use std::fmt;

/// Element type of a tensor.
///
/// ```
/// use tscript::DType;
///
/// let dtype = DType::parse("torch.float16").unwrap();
/// assert_eq!((dtype, dtype.name(), dtype.size_bytes()), (DType::F16, "f16", 2));
/// assert_eq!((dtype.compute(), dtype.largest()), (DType::F32, 65504.0));
/// assert_eq!((dtype.epsilon(), dtype.resolution()), (0.5f64.powi(10), 1e-3));
/// assert_eq!(DType::F32.smallest_normal(), f64::from(f32::MIN_POSITIVE));
/// assert_eq!(DType::I64.spellings().collect::<Vec<_>>(), ["i64", "int64", "long"]);
/// assert!(dtype.is_float() && dtype.is_inexact() && dtype.is_differentiable() && dtype.is_signed());
/// assert!(DType::U8.is_int() && DType::Bool.is_integral() && DType::C64.is_complex());
/// assert_eq!((DType::U8.int_range(), DType::U8.wrap(257)), (Some((0, 255)), 1));
/// assert_eq!((DType::C64.real_part(), DType::F64.to_complex()), (DType::F32, DType::C128));
/// // Promotion is PyTorch's.
/// assert_eq!(DType::U8.promote(DType::I8), DType::I16);
/// assert!(DType::I64.can_cast(DType::F16) && !DType::F16.can_cast(DType::I64));
/// assert_eq!(DType::I8.category(), DType::I64.category());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum DType {
    /// Truth values.
    Bool,
    /// Unsigned, 8 bits.
    U8,
    /// Signed, 8 bits.
    I8,
    /// Signed, 16 bits.
    I16,
    /// Signed, 32 bits.
    I32,
    /// Signed, 64 bits; the default of whole numbers.
    I64,
    /// IEEE half precision.
    F16,
    /// The upper half of an `F32`.
    BF16,
    /// IEEE single precision; the default of fractions.
    F32,
    /// IEEE double precision.
    F64,
    /// A complex number of two `F32`, the real part first.
    C64,
    /// A complex number of two `F64`.
    C128,
}

use DType::*;

/// PyTorch's four promotion categories, in order of strength.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Category {
    /// Truth values.
    Bool,
    /// Whole numbers.
    Int,
    /// Fractions.
    Float,
    /// Pairs of a real and an imaginary part.
    Complex,
}

impl DType {
    /// All twelve.
    pub const ALL: [DType; 12] = [Bool, U8, I8, I16, I32, I64, F16, BF16, F32, F64, C64, C128];

    /// Those whose elements are one real number: what kernels compute.
    pub const REAL: [DType; 10] = [Bool, U8, I8, I16, I32, I64, F16, BF16, F32, F64];

    /// Every accepted name: that of tscript first, then PyTorch's.
    pub const NAMES: &'static [(&'static str, DType)] = &[
        ("f64", F64),
        ("f32", F32),
        ("f16", F16),
        ("bf16", BF16),
        ("i64", I64),
        ("i32", I32),
        ("i16", I16),
        ("i8", I8),
        ("u8", U8),
        ("bool", Bool),
        ("c64", C64),
        ("c128", C128),
        ("float64", F64),
        ("double", F64),
        ("float32", F32),
        ("float", F32),
        ("float16", F16),
        ("half", F16),
        ("bfloat16", BF16),
        ("int64", I64),
        ("long", I64),
        ("int32", I32),
        ("int", I32),
        ("int16", I16),
        ("short", I16),
        ("int8", I8),
        ("uint8", U8),
        ("complex64", C64),
        ("cfloat", C64),
        ("complex128", C128),
        ("cdouble", C128),
    ];

    /// The name that scripts see.
    pub const fn name(self) -> &'static str {
        match self {
            Bool => "bool",
            U8 => "u8",
            I8 => "i8",
            I16 => "i16",
            I32 => "i32",
            I64 => "i64",
            F16 => "f16",
            BF16 => "bf16",
            F32 => "f32",
            F64 => "f64",
            C64 => "c64",
            C128 => "c128",
        }
    }

    /// `"f32"`, `"float32"`, `"torch.float32"` and so on; `None` when unknown.
    pub fn parse(text: &str) -> Option<DType> {
        let text = text.strip_prefix("torch.").unwrap_or(text);
        Self::NAMES.iter().find(|(name, _)| *name == text).map(|(_, dtype)| *dtype)
    }

    /// All names by which a script may call it.
    pub fn spellings(self) -> impl Iterator<Item = &'static str> {
        Self::NAMES.iter().filter(move |(_, dtype)| *dtype == self).map(|(name, _)| *name)
    }

    /// Bytes of one element.
    pub const fn size_bytes(self) -> usize {
        match self {
            Bool | U8 | I8 => 1,
            I16 | F16 | BF16 => 2,
            I32 | F32 => 4,
            I64 | F64 | C64 => 8,
            C128 => 16,
        }
    }

    /// Its category of promotion.
    pub const fn category(self) -> Category {
        match self {
            Bool => Category::Bool,
            U8 | I8 | I16 | I32 | I64 => Category::Int,
            F16 | BF16 | F32 | F64 => Category::Float,
            C64 | C128 => Category::Complex,
        }
    }

    /// Whether elements are real numbers that may have a fraction.
    pub const fn is_float(self) -> bool {
        matches!(self, F16 | BF16 | F32 | F64)
    }

    /// Whether elements are complex numbers.
    pub const fn is_complex(self) -> bool {
        matches!(self, C64 | C128)
    }

    /// Whether elements are floating-point or complex numbers.
    pub const fn is_inexact(self) -> bool {
        self.is_float() || self.is_complex()
    }

    /// Whether tensors of it can have gradients: floats and complex numbers.
    pub const fn is_differentiable(self) -> bool {
        self.is_float() || self.is_complex()
    }

    /// The type of the real part of a complex number; another type itself.
    pub const fn real_part(self) -> DType {
        match self {
            C64 => F32,
            C128 => F64,
            other => other,
        }
    }

    /// The complex type whose parts hold these values.
    pub const fn to_complex(self) -> DType {
        match self {
            F64 | C128 => C128,
            _ => C64,
        }
    }

    /// Whether elements are numbers without fractions.
    pub const fn is_int(self) -> bool {
        matches!(self, U8 | I8 | I16 | I32 | I64)
    }

    /// `is_int` or `bool`: what PyTorch calls an integral type, `bool` included.
    pub const fn is_integral(self) -> bool {
        !self.is_float() && !self.is_complex()
    }

    /// Whether elements may be negative.
    pub const fn is_signed(self) -> bool {
        !matches!(self, Bool | U8)
    }

    /// 16-bit floats compute in `f32` and round each result.
    pub const fn compute(self) -> DType {
        match self {
            F16 | BF16 => F32,
            other => other,
        }
    }

    /// The largest finite value of a floating-point type, or of a part.
    pub const fn largest(self) -> f64 {
        match self.real_part() {
            F16 => 65_504.0,
            BF16 => 3.389_531_389_251_535_5e38,
            F32 => f32::MAX as f64,
            _ => f64::MAX,
        }
    }

    /// Bits behind the first one of a floating-point type's numbers, or of a part.
    const fn fraction_bits(self) -> i32 {
        match self.real_part() {
            F16 => 10,
            BF16 => 7,
            F32 => 23,
            _ => 52,
        }
    }

    /// The distance from 1 to the next number of a floating-point type, or of a part.
    pub fn epsilon(self) -> f64 {
        2f64.powi(-self.fraction_bits())
    }

    /// The smallest positive number of a floating-point type, or of a part, that has all bits.
    pub const fn smallest_normal(self) -> f64 {
        match self.real_part() {
            F16 => 6.103_515_625e-5,
            F64 => f64::MIN_POSITIVE,
            _ => f32::MIN_POSITIVE as f64,
        }
    }

    /// `torch.finfo(..).resolution`: a power of ten, by how many decimal digits are sure.
    pub const fn resolution(self) -> f64 {
        match self.real_part() {
            F16 => 1e-3,
            BF16 => 1e-2,
            F32 => 1e-6,
            _ => 1e-15,
        }
    }

    /// `torch.promote_types`.
    pub fn promote(self, other: DType) -> DType {
        if self == other {
            return self;
        }
        let (low, high) = if self < other { (self, other) } else { (other, self) };
        match (low, high) {
            (U8, I8 | I16) => I16,
            (F16, BF16) => F32,
            (F64, C64) => C128,
            _ => high,
        }
    }

    /// `torch.can_cast(self, to)`: may a result of this type be stored in `to` (in-place forms, `out`)?
    pub fn can_cast(self, to: DType) -> bool {
        self.category() <= to.category()
    }

    /// A value wrapped to an integer type: its low bits, as a number of the type.
    pub const fn wrap(self, value: i64) -> i64 {
        let high = 64 - 8 * self.size_bytes() as u32;
        if self.is_signed() { value << high >> high } else { ((value as u64) << high >> high) as i64 }
    }

    /// Smallest and largest value of an integer type.
    pub const fn int_range(self) -> Option<(i64, i64)> {
        match self {
            U8 => Some((0, 255)),
            I8 => Some((i8::MIN as i64, i8::MAX as i64)),
            I16 => Some((i16::MIN as i64, i16::MAX as i64)),
            I32 => Some((i32::MIN as i64, i32::MAX as i64)),
            I64 => Some((i64::MIN, i64::MAX)),
            Bool => Some((0, 1)),
            _ => None,
        }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A number as the script wrote it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Scalar {
    /// A truth value.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A fraction.
    Float(f64),
}

impl Scalar {
    /// Its category of promotion.
    pub const fn category(self) -> Category {
        match self {
            Scalar::Bool(_) => Category::Bool,
            Scalar::Int(_) => Category::Int,
            Scalar::Float(_) => Category::Float,
        }
    }

    /// The value as an `f64`.
    pub fn to_f64(self) -> f64 {
        match self {
            Scalar::Bool(b) => b as u8 as f64,
            Scalar::Int(i) => i as f64,
            Scalar::Float(x) => x,
        }
    }

    /// Truncates towards zero, as PyTorch's conversion of a float to an integer does.
    pub fn to_i64(self) -> i64 {
        match self {
            Scalar::Bool(b) => b as i64,
            Scalar::Int(i) => i,
            Scalar::Float(x) => x as i64,
        }
    }

    /// Whether it is 0 or `false`.
    pub fn is_zero(self) -> bool {
        match self {
            Scalar::Bool(b) => !b,
            Scalar::Int(i) => i == 0,
            Scalar::Float(x) => x == 0.0,
        }
    }
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scalar::Bool(b) => write!(f, "{b}"),
            Scalar::Int(i) => write!(f, "{i}"),
            Scalar::Float(x) => f.write_str(&float_text(*x)),
        }
    }
}

/// `torch.result_type` over any number of operands: tensors with dimensions decide, then 0-dimensional
/// tensors, then numbers; a weaker class only counts when its category is higher.
#[derive(Clone, Copy, Default, Debug)]
pub struct ResultType {
    dim: Option<DType>,
    zero: Option<DType>,
    number: Option<Category>,
}

impl ResultType {
    /// Adds a tensor.
    pub fn tensor(&mut self, dtype: DType, ndim: usize) {
        let slot = if ndim > 0 { &mut self.dim } else { &mut self.zero };
        *slot = Some(slot.map_or(dtype, |old| old.promote(dtype)));
    }

    /// Adds a number.
    pub fn number(&mut self, scalar: Scalar) {
        let category = scalar.category();
        self.number = Some(self.number.map_or(category, |old| old.max(category)));
    }

    /// `default` is the session's default float type.
    pub fn get(self, default: DType) -> DType {
        let number = self.number.map(|category| match category {
            Category::Bool => Bool,
            Category::Int => I64,
            Category::Float | Category::Complex => default,
        });
        let combine = |strong: Option<DType>, weak: Option<DType>| match (strong, weak) {
            // The precision is that of the stronger class.
            (Some(strong), Some(weak)) if strong.is_float() && weak.is_complex() => Some(strong.to_complex()),
            (Some(strong), Some(weak)) if weak.category() > strong.category() => Some(strong.promote(weak)),
            (Some(strong), _) => Some(strong),
            (None, weak) => weak,
        };
        combine(self.dim, combine(self.zero, number)).unwrap_or(default)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn promotion_is_pytorchs() {
        assert_eq!(U8.promote(I8), I16);
        assert_eq!(F16.promote(BF16), F32);
        assert_eq!(I64.promote(F16), F16);
        assert_eq!(Bool.promote(U8), U8);
        assert_eq!(U8.promote(I32), I32);
        assert_eq!([F16.promote(C64), I64.promote(C64), F64.promote(C64), C64.promote(C128)], [C64, C64, C128, C128]);
    }

    #[test]
    fn integers_wrap_to_their_low_bits() {
        assert_eq!([U8.wrap(300), U8.wrap(-1), I8.wrap(200), I8.wrap(-1)], [44, 255, -56, -1]);
        assert_eq!([I16.wrap(40_000), I32.wrap(1 << 31), I64.wrap(i64::MIN)], [-25_536, -(1 << 31), i64::MIN]);
        for dtype in DType::ALL.into_iter().filter(|dtype| dtype.is_int()) {
            let (low, high) = dtype.int_range().expect("of an integer");
            assert_eq!([dtype.wrap(low), dtype.wrap(high)], [low, high], "{dtype}");
        }
    }

    #[test]
    fn a_complex_number_without_dims_does_not_widen_a_tensor() {
        let of = |dim: DType, zero: DType| {
            let mut result = ResultType::default();
            result.tensor(dim, 1);
            result.tensor(zero, 0);
            result.get(F32)
        };
        assert_eq!([of(F32, C128), of(F64, C64), of(I64, C128), of(C64, C128)], [C64, C128, C128, C64]);
    }

    #[test]
    fn a_float_number_does_not_widen_a_half_tensor() {
        let mut result = ResultType::default();
        result.tensor(F16, 1);
        result.number(Scalar::Float(1.5));
        assert_eq!(result.get(F32), F16);
        let mut result = ResultType::default();
        result.tensor(I32, 1);
        result.number(Scalar::Float(1.5));
        assert_eq!(result.get(F32), F32);
    }
}
