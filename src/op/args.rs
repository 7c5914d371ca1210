//! Arguments of a call, aligned with the row's parameters.

use super::row::Op;
use super::tensor::Tensor;
use crate::base::attr::{Attr, Ints};
use crate::base::device_id::DeviceId;
use crate::base::dtype::{DType, Scalar};
use smallvec::SmallVec;

/// The integer that stands for `()` in a list of integers (`Kind::OptInts`).
pub const ABSENT: i64 = i64::MIN;

/// One argument.
#[derive(Clone, Debug, Default)]
pub enum Arg {
    /// Not given: the row's default, or PyTorch's `None`.
    #[default]
    None,
    Tensor(Tensor),
    Tensors(Vec<Tensor>),
    /// A list in which some are missing: indices of `x[i, None, j]`.
    OptTensors(Vec<Option<Tensor>>),
    Attr(Attr),
    /// A tensor argument that has been taken out (gradient nodes).
    Taken,
}

impl Arg {
    #[inline]
    pub fn for_each_tensor(&self, mut visit: impl FnMut(&Tensor)) {
        match self {
            Arg::Tensor(tensor) => visit(tensor),
            Arg::Tensors(list) => list.iter().for_each(visit),
            Arg::OptTensors(list) => list.iter().flatten().for_each(visit),
            _ => {}
        }
    }

    /// A plain number.
    /// The tensor, if it is one.
    pub fn as_tensor(&self) -> Option<&Tensor> {
        match self {
            Arg::Tensor(tensor) => Some(tensor),
            _ => None,
        }
    }

    pub fn scalar(&self) -> Option<Scalar> {
        match self {
            Arg::Attr(Attr::Scalar(s)) => Some(*s),
            Arg::Attr(Attr::Float(x)) => Some(Scalar::Float(*x)),
            Arg::Attr(Attr::Int(i)) => Some(Scalar::Int(*i)),
            Arg::Attr(Attr::Bool(b)) => Some(Scalar::Bool(*b)),
            _ => None,
        }
    }
}

/// All arguments of one call, one per parameter.
#[derive(Clone, Debug, Default)]
pub struct Args(pub SmallVec<[Arg; 6]>);

impl Args {
    /// Fills up missing trailing arguments with the row's defaults.
    pub fn complete(&mut self, op: &'static Op) {
        let given = self.0.len();
        for (arg, param) in self.0.iter_mut().zip(op.params) {
            if matches!(arg, Arg::None) {
                *arg = param.default.arg();
            }
        }
        for param in op.params.iter().skip(given) {
            self.0.push(param.default.arg());
        }
    }

    pub fn get(&self, at: usize) -> &Arg {
        const NONE: &Arg = &Arg::None;
        self.0.get(at).unwrap_or(NONE)
    }

    /// The tensor at `at`. Panics when it is none: the binder has checked the kind.
    pub fn tensor(&self, at: usize) -> &Tensor {
        match self.get(at) {
            Arg::Tensor(tensor) => tensor,
            other => panic!("argument {at} is no tensor: {other:?}"),
        }
    }

    /// The first argument, which most rows call `input`.
    pub fn input(&self) -> &Tensor {
        self.tensor(0)
    }

    pub fn opt_tensor(&self, at: usize) -> Option<&Tensor> {
        match self.get(at) {
            Arg::Tensor(tensor) => Some(tensor),
            _ => None,
        }
    }

    pub fn tensor_list(&self, at: usize) -> &[Tensor] {
        match self.get(at) {
            Arg::Tensors(list) => list,
            Arg::Tensor(one) => std::slice::from_ref(one),
            _ => &[],
        }
    }

    pub fn attr(&self, at: usize) -> &Attr {
        const NONE: &Attr = &Attr::None;
        match self.get(at) {
            Arg::Attr(attr) => attr,
            _ => NONE,
        }
    }

    pub fn is_none(&self, at: usize) -> bool {
        matches!(self.get(at), Arg::None | Arg::Attr(Attr::None))
    }

    /// The integer at `at`, 0 when absent; use `opt_int` where absence matters.
    pub fn int(&self, at: usize) -> i64 {
        self.opt_int(at).unwrap_or(0)
    }

    pub fn opt_int(&self, at: usize) -> Option<i64> {
        match self.attr(at) {
            Attr::Int(i) => Some(*i),
            Attr::Bool(b) => Some(*b as i64),
            Attr::Scalar(s) => Some(s.to_i64()),
            Attr::Ints(list) if list.len() == 1 => Some(list[0]),
            _ => None,
        }
    }

    pub fn float(&self, at: usize) -> f64 {
        self.opt_float(at).unwrap_or(0.0)
    }

    pub fn opt_float(&self, at: usize) -> Option<f64> {
        match self.attr(at) {
            Attr::Float(x) => Some(*x),
            Attr::Int(i) => Some(*i as f64),
            Attr::Bool(b) => Some(*b as u8 as f64),
            Attr::Scalar(s) => Some(s.to_f64()),
            _ => None,
        }
    }

    pub fn scalar(&self, at: usize) -> Option<Scalar> {
        self.get(at).scalar()
    }

    pub fn flag(&self, at: usize) -> bool {
        match self.attr(at) {
            Attr::Bool(b) => *b,
            Attr::Int(i) => *i != 0,
            _ => false,
        }
    }

    pub fn ints(&self, at: usize) -> Option<Ints> {
        match self.attr(at) {
            Attr::Ints(list) => Some(list.clone()),
            Attr::Int(i) => Some(Ints::from_slice(&[*i])),
            _ => None,
        }
    }

    pub fn text(&self, at: usize) -> &str {
        match self.attr(at) {
            Attr::Str(text) => text,
            _ => "",
        }
    }

    pub fn dtype(&self, at: usize) -> Option<DType> {
        match self.attr(at) {
            Attr::DType(dtype) => Some(*dtype),
            _ => None,
        }
    }

    pub fn device(&self, at: usize) -> Option<DeviceId> {
        match self.attr(at) {
            Attr::Device(device) => Some(*device),
            _ => None,
        }
    }

    /// Every tensor, in order of the parameters; lists are flattened.
    #[inline]
    pub fn for_each_tensor(&self, mut visit: impl FnMut(&Tensor)) {
        self.0.iter().for_each(|arg| arg.for_each_tensor(&mut visit));
    }

    pub fn tensors(&self) -> SmallVec<[Tensor; 4]> {
        let mut all = SmallVec::new();
        self.for_each_tensor(|tensor| all.push(tensor.clone()));
        all
    }

    /// The same arguments without their tensors.
    pub fn without_tensors(&self) -> Args {
        let mut rest = Args::default();
        for arg in &self.0 {
            rest.0.push(match arg {
                Arg::Tensor(_) | Arg::Tensors(_) | Arg::OptTensors(_) => Arg::Taken,
                other => other.clone(),
            });
        }
        rest
    }
}

macro_rules! from {
    ($($type:ty => |$x:ident| $make:expr;)*) => {
        $(impl From<$type> for Arg { fn from($x: $type) -> Arg { $make } })*
    };
}

from! {
    Tensor => |x| Arg::Tensor(x);
    &Tensor => |x| Arg::Tensor(x.clone());
    Option<Tensor> => |x| x.map_or(Arg::None, Arg::Tensor);
    Option<&Tensor> => |x| x.map_or(Arg::None, |t| Arg::Tensor(t.clone()));
    Vec<Tensor> => |x| Arg::Tensors(x);
    &[Tensor] => |x| Arg::Tensors(x.to_vec());
    Vec<Option<Tensor>> => |x| Arg::OptTensors(x);
    Attr => |x| Arg::Attr(x);
    bool => |x| Arg::Attr(Attr::Bool(x));
    i64 => |x| Arg::Attr(Attr::Int(x));
    i32 => |x| Arg::Attr(Attr::Int(x as i64));
    usize => |x| Arg::Attr(Attr::Int(x as i64));
    f64 => |x| Arg::Attr(Attr::Scalar(Scalar::Float(x)));
    Scalar => |x| Arg::Attr(Attr::Scalar(x));
    DType => |x| Arg::Attr(Attr::DType(x));
    DeviceId => |x| Arg::Attr(Attr::Device(x));
    &[i64] => |x| Arg::Attr(Attr::Ints(Ints::from_slice(x)));
    &[usize] => |x| Arg::Attr(Attr::Ints(x.iter().map(|&n| n as i64).collect()));
    Ints => |x| Arg::Attr(Attr::Ints(x));
    &'static str => |x| Arg::Attr(Attr::Str(x.into()));
    () => |_x| Arg::None;
}

/// `args![x, 1, "mean"]`: arguments from tensors and plain values, by position.
#[macro_export]
macro_rules! args {
    ($($arg:expr),* $(,)?) => { $crate::op::args::Args(smallvec::smallvec![$(::std::convert::Into::<$crate::op::args::Arg>::into($arg)),*]) };
}
