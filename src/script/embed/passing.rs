//! Values that pass between a host program and its scripts: which Rust types, and how they are converted.
//!
//! Tensors pass without a copy if possible (`exchange.rs`); everything else is converted.

use crate::base::code;
use crate::base::diag::{Diag, Result};
use crate::base::dtype::Scalar;
use crate::script::embed::exchange::Tensor;
use crate::script::host::Boundary;
use crate::script::values::type_names;
use crate::script::values::types;
use crate::tensor::observe;
use rhai::{Array, Dynamic, Map};
use std::collections::{BTreeMap, HashMap};
use std::fmt;

/// Bound: nesting of values that are converted, and so the depth of the recursion.
const NESTING: usize = 200;

/// Any value of a script, as data.
///
/// ```
/// use tscript::{Session, Value};
///
/// let mut session = Session::builder().build()?;
/// let value: Value = session.eval("#{name: \"bolt\", sizes: [6, 8.5]}")?;
/// let Value::Map(part) = &value else { panic!("a map") };
/// assert_eq!(part["name"], Value::Str("bolt".into()));
/// assert_eq!(part["sizes"], Value::Array(vec![Value::Int(6), Value::Float(8.5)]));
/// session.set("part", value)?;
/// assert_eq!(session.eval::<i64>("part.sizes.len()")?, 2);
/// # Ok::<(), tscript::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub enum Value {
    /// `()`, the value of a function without a result.
    #[default]
    Unit,
    /// `true` or `false`.
    Bool(bool),
    /// An integer of 64 bits.
    Int(i64),
    /// A float of 64 bits.
    Float(f64),
    /// A string, or a single character.
    Str(String),
    /// An array, its values in order.
    Array(Vec<Value>),
    /// An array with its values in order.
    Map(BTreeMap<String, Value>),
    /// A tensor, shared with the script.
    Tensor(Tensor),
    /// Any other value: a function, a device, an object of a registered type.
    Other(Opaque),
}

/// A value of a script without a Rust equivalent: it can be kept and passed back.
///
/// ```
/// use tscript::{Session, Value};
///
/// let mut session = Session::builder().build()?;
/// let Value::Other(double) = session.eval("|x| 2 * x")? else { panic!("a function") };
/// assert_eq!(double.type_name(), "Fn");
/// session.set("double", Value::Other(double))?;
/// assert_eq!(session.eval::<i64>("double.call(4)")?, 8);
/// # Ok::<(), tscript::Error>(())
/// ```
#[derive(Clone)]
pub struct Opaque(Dynamic);

impl Opaque {
    /// The scripts' name of its type.
    pub fn type_name(&self) -> &str {
        type_names::of(self.0.type_name())
    }
}

impl fmt::Debug for Opaque {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<{}>", self.type_name())
    }
}

/// Equal values of equal type. Tensors and opaque values are never equal: compare their elements.
impl PartialEq for Value {
    fn eq(&self, other: &Value) -> bool {
        match (self, other) {
            (Value::Unit, Value::Unit) => true,
            (Value::Bool(a), Value::Bool(b)) => a == b,
            (Value::Int(a), Value::Int(b)) => a == b,
            (Value::Float(a), Value::Float(b)) => a == b,
            (Value::Str(a), Value::Str(b)) => a == b,
            (Value::Array(a), Value::Array(b)) => a == b,
            (Value::Map(a), Value::Map(b)) => a == b,
            _ => false,
        }
    }
}

/// A Rust value that a script can be given: numbers, `bool`, strings, `()`, [`Tensor`], [`Value`], objects of
/// registered types ([`Object`](crate::Object)), and vectors, slices, arrays, maps and `Option`s of these
/// (`None` is `()`).
pub trait IntoScript {
    #[doc(hidden)]
    fn into_script(self, to: &Boundary) -> Result<Dynamic>;
}

/// A Rust type that a script's value can be converted to. Numbers are checked for their range; a tensor of one
/// element counts as its number, and reading it waits. A value of another type is an E0215.
pub trait FromScript: Sized {
    #[doc(hidden)]
    fn from_script(value: Dynamic, from: &Boundary) -> Result<Self>;
}

/// The arguments of a call: a tuple of up to eight values, or a vector of [`Value`]s.
pub trait Arguments {
    #[doc(hidden)]
    fn pass(self, to: &Boundary, out: &mut smallvec::SmallVec<[Dynamic; 8]>) -> Result<()>;
}

#[cold]
pub(in crate::script) fn mismatch(expected: &str, value: &Dynamic) -> Box<Diag> {
    Diag::error(code::TYPE, format!("{expected} is expected, not {}", type_names::of_value(value)))
}

#[cold]
fn too_deep() -> Box<Diag> {
    Diag::error(code::LIMIT_SIZE, format!("values are nested more than {NESTING} deep"))
}

impl IntoScript for Dynamic {
    fn into_script(self, _: &Boundary) -> Result<Dynamic> {
        Ok(self)
    }
}

impl FromScript for Dynamic {
    fn from_script(value: Dynamic, _: &Boundary) -> Result<Dynamic> {
        Ok(value)
    }
}

impl IntoScript for Tensor {
    fn into_script(self, to: &Boundary) -> Result<Dynamic> {
        self.adopt(to).map(Dynamic::from)
    }
}

impl FromScript for Tensor {
    fn from_script(value: Dynamic, from: &Boundary) -> Result<Tensor> {
        match value.try_cast_result::<types::Tensor>() {
            Ok(tensor) => Ok(Tensor::of_session(tensor, from)),
            Err(value) => Err(mismatch("a tensor", &value)),
        }
    }
}

macro_rules! integers {
    ($($type:ty),*) => {$(
        impl IntoScript for $type {
            fn into_script(self, _: &Boundary) -> Result<Dynamic> {
                i64::try_from(self).map(Dynamic::from_int).map_err(|_| {
                    Diag::error(code::VALUE, format!("{self} is beyond the integers of scripts, which have 64 bits"))
                })
            }
        }

        impl FromScript for $type {
            fn from_script(value: Dynamic, from: &Boundary) -> Result<$type> {
                let Some(integer) = integer(&value, from)? else { return Err(mismatch("an integer", &value)) };
                <$type>::try_from(integer).map_err(|_| {
                    let text = format!("{integer} does not fit in {}, which goes from {} to {}",
                        stringify!($type), <$type>::MIN, <$type>::MAX);
                    Diag::error(code::VALUE, text)
                })
            }
        }
    )*};
}
integers!(i64, i32, i16, i8, isize, u64, u32, u16, u8, usize);

fn scalar(value: &Dynamic, from: &Boundary) -> Result<Option<Scalar>> {
    match value.read_lock::<types::Tensor>() {
        Some(tensor) => observe::item(&from.rt, &tensor).map(Some),
        None => Ok(None),
    }
}

fn integer(value: &Dynamic, from: &Boundary) -> Result<Option<i64>> {
    if let Ok(integer) = value.as_int() {
        return Ok(Some(integer));
    }
    Ok(match scalar(value, from)? {
        Some(Scalar::Int(integer)) => Some(integer),
        _ => None,
    })
}

macro_rules! floats {
    ($($type:ty),*) => {$(
        impl IntoScript for $type {
            fn into_script(self, _: &Boundary) -> Result<Dynamic> {
                Ok(Dynamic::from_float(f64::from(self)))
            }
        }

        /// From a float or an integer.
        impl FromScript for $type {
            fn from_script(value: Dynamic, from: &Boundary) -> Result<$type> {
                if let Ok(x) = value.as_float() {
                    return Ok(x as $type);
                }
                if let Ok(i) = value.as_int() {
                    return Ok(i as $type);
                }
                match scalar(&value, from)? {
                    Some(number) => Ok(number.to_f64() as $type),
                    None => Err(mismatch("a number", &value)),
                }
            }
        }
    )*};
}
floats!(f64, f32);

impl IntoScript for bool {
    fn into_script(self, _: &Boundary) -> Result<Dynamic> {
        Ok(Dynamic::from_bool(self))
    }
}

impl FromScript for bool {
    fn from_script(value: Dynamic, from: &Boundary) -> Result<bool> {
        match (value.as_bool(), scalar(&value, from)?) {
            (Ok(truth), _) | (_, Some(Scalar::Bool(truth))) => Ok(truth),
            _ => Err(mismatch("true or false", &value)),
        }
    }
}

impl IntoScript for () {
    fn into_script(self, _: &Boundary) -> Result<Dynamic> {
        Ok(Dynamic::UNIT)
    }
}

/// Accepts any value: for calls whose result is not used.
impl FromScript for () {
    fn from_script(_: Dynamic, _: &Boundary) -> Result<()> {
        Ok(())
    }
}

impl IntoScript for String {
    fn into_script(self, _: &Boundary) -> Result<Dynamic> {
        Ok(self.into())
    }
}

impl IntoScript for &str {
    fn into_script(self, _: &Boundary) -> Result<Dynamic> {
        Ok(self.into())
    }
}

impl FromScript for String {
    fn from_script(value: Dynamic, _: &Boundary) -> Result<String> {
        if let Ok(letter) = value.as_char() {
            return Ok(letter.to_string());
        }
        match value.as_immutable_string_ref() {
            Ok(text) => Ok(text.to_string()),
            Err(_) => Err(mismatch("a string", &value)),
        }
    }
}

impl<T: IntoScript> IntoScript for Option<T> {
    fn into_script(self, to: &Boundary) -> Result<Dynamic> {
        self.map_or(Ok(Dynamic::UNIT), |value| value.into_script(to))
    }
}

impl<T: FromScript> FromScript for Option<T> {
    fn from_script(value: Dynamic, from: &Boundary) -> Result<Option<T>> {
        if value.is_unit() { Ok(None) } else { T::from_script(value, from).map(Some) }
    }
}

fn array_of(items: impl IntoIterator<Item = impl IntoScript>, to: &Boundary) -> Result<Dynamic> {
    let items: Result<Array> = items.into_iter().map(|item| item.into_script(to)).collect();
    Ok(Dynamic::from_array(items?))
}

impl<T: IntoScript> IntoScript for Vec<T> {
    fn into_script(self, to: &Boundary) -> Result<Dynamic> {
        array_of(self, to)
    }
}

impl<T: IntoScript + Clone> IntoScript for &[T] {
    fn into_script(self, to: &Boundary) -> Result<Dynamic> {
        array_of(self.iter().cloned(), to)
    }
}

impl<T: IntoScript, const N: usize> IntoScript for [T; N] {
    fn into_script(self, to: &Boundary) -> Result<Dynamic> {
        array_of(self, to)
    }
}

impl<T: FromScript> FromScript for Vec<T> {
    fn from_script(value: Dynamic, from: &Boundary) -> Result<Vec<T>> {
        let items = value.try_cast_result::<Array>().map_err(|value| mismatch("an array", &value))?;
        let one = |(at, item)| T::from_script(item, from).map_err(|diag| inside(diag, &format!("[{at}]")));
        items.into_iter().enumerate().map(one).collect()
    }
}

/// Where in a value the error is.
#[cold]
fn inside(mut diag: Box<Diag>, place: &str) -> Box<Diag> {
    diag.message = format!("at {place}: {}", diag.message);
    diag
}

macro_rules! maps {
    ($($map:ident),*) => {$(
        impl<T: IntoScript> IntoScript for $map<String, T> {
            fn into_script(self, to: &Boundary) -> Result<Dynamic> {
                let entries = self.into_iter().map(|(name, item)| -> Result<_> { Ok((name.into(), item.into_script(to)?)) });
                Ok(Dynamic::from_map(crate::base::order::try_map(entries)?))
            }
        }

        impl<T: FromScript> FromScript for $map<String, T> {
            fn from_script(value: Dynamic, from: &Boundary) -> Result<$map<String, T>> {
                let entries = value.try_cast_result::<Map>().map_err(|value| mismatch("a map", &value))?;
                let one = |(name, item): (rhai::Identifier, Dynamic)| {
                    let item = T::from_script(item, from).map_err(|diag| inside(diag, &format!("`{name}`")))?;
                    Ok((name.to_string(), item))
                };
                entries.into_iter().map(one).collect()
            }
        }
    )*};
}
maps!(BTreeMap, HashMap);

impl IntoScript for Value {
    fn into_script(self, to: &Boundary) -> Result<Dynamic> {
        self.nested(to, NESTING)
    }
}

impl FromScript for Value {
    fn from_script(value: Dynamic, from: &Boundary) -> Result<Value> {
        Value::of(value, from, NESTING)
    }
}

impl Value {
    fn nested(self, to: &Boundary, left: usize) -> Result<Dynamic> {
        let Some(left) = left.checked_sub(1) else { return Err(too_deep()) };
        match self {
            Value::Unit => Ok(Dynamic::UNIT),
            Value::Bool(truth) => truth.into_script(to),
            Value::Int(integer) => integer.into_script(to),
            Value::Float(float) => float.into_script(to),
            Value::Str(text) => text.into_script(to),
            Value::Tensor(tensor) => tensor.into_script(to),
            Value::Other(other) => Ok(other.0),
            Value::Array(items) => {
                let items: Result<Array> = items.into_iter().map(|item| item.nested(to, left)).collect();
                Ok(Dynamic::from_array(items?))
            }
            Value::Map(items) => {
                let items =
                    items.into_iter().map(|(name, item)| -> Result<_> { Ok((name.into(), item.nested(to, left)?)) });
                Ok(Dynamic::from_map(crate::base::order::try_map(items)?))
            }
        }
    }

    fn of(value: Dynamic, from: &Boundary, left: usize) -> Result<Value> {
        let Some(left) = left.checked_sub(1) else { return Err(too_deep()) };
        let value = value.flatten();
        if value.is_unit() {
            return Ok(Value::Unit);
        }
        if let Ok(truth) = value.as_bool() {
            return Ok(Value::Bool(truth));
        }
        if let Ok(integer) = value.as_int() {
            return Ok(Value::Int(integer));
        }
        if let Ok(float) = value.as_float() {
            return Ok(Value::Float(float));
        }
        if value.is_string() || value.is_char() {
            return String::from_script(value, from).map(Value::Str);
        }
        let value = match value.try_cast_result::<Array>() {
            Ok(items) => {
                let items: Result<Vec<Value>> = items.into_iter().map(|item| Value::of(item, from, left)).collect();
                return items.map(Value::Array);
            }
            Err(value) => value,
        };
        let value = match value.try_cast_result::<Map>() {
            Ok(items) => {
                let items = items.into_iter().map(|(name, item)| Ok((name.into(), Value::of(item, from, left)?)));
                return items.collect::<Result<_>>().map(Value::Map);
            }
            Err(value) => value,
        };
        match value.try_cast_result::<types::Tensor>() {
            Ok(tensor) => Ok(Value::Tensor(Tensor::of_session(tensor, from))),
            Err(value) => Ok(Value::Other(Opaque(value))),
        }
    }
}

macro_rules! from {
    ($($type:ty => $kind:ident),*) => {$(
        impl From<$type> for Value {
            fn from(value: $type) -> Value {
                Value::$kind(value.into())
            }
        }
    )*};
}
from!(bool => Bool, i64 => Int, f64 => Float, String => Str, &str => Str, Vec<Value> => Array,
    BTreeMap<String, Value> => Map, Tensor => Tensor);

impl Arguments for Vec<Value> {
    fn pass(self, to: &Boundary, out: &mut smallvec::SmallVec<[Dynamic; 8]>) -> Result<()> {
        self.into_iter().try_for_each(|value| {
            out.push(value.into_script(to)?);
            Ok(())
        })
    }
}

macro_rules! arguments {
    ($($name:ident)*) => {
        impl<$($name: IntoScript),*> Arguments for ($($name,)*) {
            #[allow(non_snake_case, unused_variables)]
            fn pass(self, to: &Boundary, out: &mut smallvec::SmallVec<[Dynamic; 8]>) -> Result<()> {
                let ($($name,)*) = self;
                $(out.push($name.into_script(to)?);)*
                Ok(())
            }
        }
    };
}
arguments!();
arguments!(A);
arguments!(A B);
arguments!(A B C);
arguments!(A B C D);
arguments!(A B C D E);
arguments!(A B C D E F);
arguments!(A B C D E F G);
arguments!(A B C D E F G H);
