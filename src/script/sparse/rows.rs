//! Operations of the op table that have a form for sparse tensors. Every other one gives an error that leads to
//! `to_dense`.

use super::{form, product};
use crate::args;
use crate::base::code;
use crate::base::diag::{Diag, Result};
use crate::base::dtype::Scalar;
use crate::fail;
use crate::op::args::Arg;
use crate::op::emit::Emit;
use crate::op::rows::pointwise::arith::{ADD, DIV, MUL, NEG};
use crate::op::rows::reduction::reduce::SUM;
use crate::op::rows::shape::join::CAT;
use crate::op::table;
use crate::op::tensor::Tensor;
use crate::script::bind::convert;
use crate::script::host::Host;
use crate::script::values::raise::Native;
use crate::script::values::sparse::{Noted, Sparse};
use crate::script::values::type_names;
use crate::tensor::engine::Engine;
use rhai::{Array, Dynamic, NativeCallContext};
use std::sync::Arc;

/// What keeps zeros, and sums.
const LINEAR: &[&str] = &["neg", "-", "deg2rad", "rad2deg", "positive", "clone"];
/// What keeps zeros, of places that occur once.
const KEEPS_ZEROS: &[&str] = &[
    "abs", "sign", "sgn", "sqrt", "square", "relu", "sin", "sinh", "asin", "asinh", "tan", "tanh", "atan", "atanh",
    "erf", "erfinv", "expm1", "log1p", "ceil", "floor", "round", "trunc", "isnan", "isinf",
];

/// Asked by every row of which some argument is sparse.
pub fn call(host: &Arc<Host>, context: &NativeCallContext, name: &str, values: &[&mut Dynamic]) -> Option<Native> {
    if !values.iter().any(|value| value.is::<Sparse>()) {
        return None;
    }
    let operands: Vec<Operand> = values.iter().map(|value| Operand::of(value)).collect();
    Some(host.call(context, |e| apply(e, name, &operands)))
}

enum Operand {
    Sparse(Sparse),
    Tensor(Tensor),
    Number(Scalar),
    List(Vec<i64>),
    Other(String),
}

impl Operand {
    fn of(value: &Dynamic) -> Operand {
        if let Some(sparse) = value.read_lock::<Sparse>() {
            return Operand::Sparse(sparse.clone());
        }
        if let Some(tensor) = value.read_lock::<Tensor>() {
            return Operand::Tensor(tensor.clone());
        }
        if let Some(number) = convert::scalar(value) {
            return Operand::Number(number);
        }
        let list = value.read_lock::<Array>();
        match list.and_then(|list| list.iter().map(|at| at.as_int().ok()).collect()) {
            Some(list) => Operand::List(list),
            None => Operand::Other(type_names::of_value(value)),
        }
    }
}

fn apply(e: &mut Engine, name: &str, operands: &[Operand]) -> Result<Dynamic> {
    use Operand::{List, Number, Sparse as S, Tensor as T};
    match (name, operands) {
        ("add" | "+", [S(a), S(b)]) => sum(e, a, b).map(Dynamic::from),
        ("sub" | "-", [S(a), S(b)]) => {
            let values = e.call_row(&NEG, args![&b.values])?;
            sum(e, a, &b.with_values(values)).map(Dynamic::from)
        }
        ("add" | "+", [T(x), S(s)]) => onto(e, x, s).map(Dynamic::from),
        ("sub" | "-", [T(x), S(s)]) => {
            let values = e.call_row(&NEG, args![&s.values])?;
            onto(e, x, &s.with_values(values)).map(Dynamic::from)
        }
        ("add" | "+" | "sub" | "-", [S(_), _]) => {
            Err(Diag::error(code::TYPE, "a dense tensor cannot be added to a sparse one")
                .help("write `dense + sparse`, or `sparse.to_dense() + dense`"))
        }
        ("mul" | "*", [S(a), S(b)]) => product::elementwise(e, a, b).map(Dynamic::from),
        ("mul" | "*", [S(s), T(x)] | [T(x), S(s)]) => times(e, s, x).map(Dynamic::from),
        ("mul" | "*", [S(s), Number(x)] | [Number(x), S(s)]) => each(e, &MUL, s, (*x).into()),
        ("div" | "/", [S(s), Number(x)]) => each(e, &DIV, s, (*x).into()),
        ("div" | "/", [S(s), T(x)]) if x.ndim() == 0 => each(e, &DIV, s, x.into()),
        ("pow" | "**", [S(s), Number(x)]) if x.to_f64() > 0.0 => {
            let s = form::unique(e, s)?;
            each(e, &crate::op::rows::pointwise::arith::POW, &s, (*x).into())
        }
        ("matmul" | "@" | "mm" | "mv", [S(s), T(x)]) => product::left(e, s, x).map(Dynamic::from),
        ("matmul" | "@" | "mm", [S(a), S(b)]) => product::both(e, a, b).map(Dynamic::from),
        ("matmul" | "@" | "mm", [T(x), S(s)]) => product::right(e, x, s).map(Dynamic::from),
        ("addmm", [T(m), S(s), T(x)]) => {
            let product = product::left(e, s, x)?;
            (e as &mut dyn Emit).add(m, &product).map(Dynamic::from)
        }
        ("t", [S(s)]) => form::transpose(e, s).map(Dynamic::from),
        ("transpose" | "swapaxes" | "swapdims", [S(s), Number(a), Number(b)]) => {
            let [a, b] = [a, b].map(|dim| crate::op::infer::dim(dim.to_i64(), s.size.len()));
            let mut dims: Vec<i64> = (0..s.size.len() as i64).collect();
            dims.swap(a?, b?);
            form::permute(e, s, &dims).map(Dynamic::from)
        }
        ("permute", [S(s), List(dims)]) => form::permute(e, s, dims).map(Dynamic::from),
        ("sum", [S(s)]) => e.call_row(&SUM, args![&s.values]).map(Dynamic::from),
        ("sum", [S(s), Number(dim)]) => summed(e, s, &[dim.to_i64()]),
        ("sum", [S(s), List(dims)]) => summed(e, s, dims),
        ("norm", [S(s)]) => {
            let s = form::unique(e, s)?;
            by_row(e, name, &s.values).map(Dynamic::from)
        }
        (_, [S(s)]) if LINEAR.contains(&name) => {
            let values = by_row(e, if name == "-" { "neg" } else { name }, &s.values)?;
            Ok(Dynamic::from(s.with_values(values)))
        }
        (_, [S(s)]) if KEEPS_ZEROS.contains(&name) => {
            let s = form::unique(e, s)?;
            let values = by_row(e, name, &s.values)?;
            Ok(Dynamic::from(s.with_values(values)))
        }
        _ => Err(no_form(name, operands)),
    }
}

#[cold]
fn no_form(name: &str, operands: &[Operand]) -> Box<Diag> {
    let other = operands.iter().find_map(|operand| if let Operand::Other(kind) = operand { Some(kind) } else { None });
    let beside = other.map_or(String::new(), |kind| format!(" with {kind}"));
    Diag::error(code::TYPE, format!("`{name}` has no form for sparse tensors{beside}"))
        .help("`s.to_dense()` is a tensor that every operation takes")
}

/// The row of this name, of the values.
fn by_row(e: &mut Engine, name: &str, values: &Tensor) -> Result<Tensor> {
    match table::find(name) {
        Some(op) => e.call_row(op, args![values]),
        None => fail!(INTERNAL, "there is no operation `{name}`"),
    }
}

fn each(e: &mut Engine, op: &'static crate::op::row::Op, s: &Sparse, by: Arg) -> Result<Dynamic> {
    let values = e.call_row(op, args![&s.values, by])?;
    Ok(Dynamic::from(s.with_values(values)))
}

/// The values beside each other; where both are coalesced, so is the sum.
fn sum(e: &mut Engine, a: &Sparse, b: &Sparse) -> Result<Sparse> {
    if a.size != b.size || a.sparse_dims() != b.sparse_dims() {
        fail!(SHAPE, "sparse tensors of sizes {:?} and {:?} cannot be added", a.size, b.size);
    }
    product::one_kind(a, &b.values)?;
    let indices = e.call_row(&CAT, args![vec![a.indices.clone(), b.indices.clone()], 1])?;
    let values = e.call_row(&CAT, args![vec![a.values.clone(), b.values.clone()], 0])?;
    let beside = Sparse {
        indices,
        values,
        size: a.size.clone(),
        is_coalesced: false,
        crow: None,
        by_columns: false,
        _noted: Noted::new(),
    };
    match (a.is_csr() && b.is_csr(), a.is_csc() && b.is_csc()) {
        (true, _) => return form::csr(e, &beside),
        (_, true) => return form::csc(e, &beside),
        _ => {}
    }
    if a.is_coalesced && b.is_coalesced { form::coalesce(e, &beside) } else { Ok(beside) }
}

/// `dense + sparse`.
fn onto(e: &mut Engine, x: &Tensor, s: &Sparse) -> Result<Tensor> {
    if x.shape().as_slice() != s.size {
        fail!(SHAPE, "a sparse tensor of size {:?} cannot be added to shape {:?}", s.size, x.shape().as_slice());
    }
    let dense = form::dense(e, s)?;
    e.call_row(&ADD, args![x, &dense])
}

/// `sparse * dense`, at the places of the sparse one.
fn times(e: &mut Engine, s: &Sparse, x: &Tensor) -> Result<Sparse> {
    let by = if x.ndim() == 0 {
        x.clone()
    } else if x.shape().as_slice() == s.size {
        form::values_at(e, x, s)?
    } else {
        fail!(SHAPE, "a sparse tensor of size {:?} and shape {:?} are not multiplied", s.size, x.shape().as_slice())
    };
    let values = e.call_row(&MUL, args![&s.values, &by])?;
    Ok(s.with_values(values))
}

/// The sum over some dims: sparse, unless no sparse dim is left.
pub fn summed(e: &mut Engine, s: &Sparse, dims: &[i64]) -> Result<Dynamic> {
    let given: Vec<usize> = dims.iter().map(|&dim| crate::op::infer::dim(dim, s.size.len())).collect::<Result<_>>()?;
    let sparse = s.sparse_dims();
    let dense: Vec<i64> = given.iter().filter(|&&dim| dim >= sparse).map(|&dim| (dim - sparse + 1) as i64).collect();
    let mut values = s.values.clone();
    if !dense.is_empty() {
        values = e.call_row(&SUM, args![&values, dense.as_slice()])?;
    }
    let left: Vec<usize> = (0..sparse).filter(|dim| !given.contains(dim)).collect();
    if left.is_empty() {
        return e.call_row(&SUM, args![&values, [0i64].as_slice()]).map(Dynamic::from);
    }
    let rows = left.iter().map(|&dim| form::places(e, s, dim)).collect::<Result<Vec<_>>>()?;
    let indices = e.call_row(&crate::op::rows::shape::join::STACK, args![rows, 0])?;
    let size = (0..s.size.len()).filter(|dim| !given.contains(dim)).map(|dim| s.size[dim]).collect();
    let is_coalesced = left.len() == sparse && s.is_coalesced;
    let summed = Sparse { indices, values, size, is_coalesced, crow: None, by_columns: false, _noted: Noted::new() };
    form::coalesce(e, &summed).map(Dynamic::from)
}
