//! Operations of the op table that have a form for sparse tensors. Every other one gives an error that leads to
//! `to_dense`.

use super::{form, places, product};
use crate::args;
use crate::base::code;
use crate::base::diag::{Diag, Result};
use crate::base::dtype::Scalar;
use crate::fail;
use crate::op::args::Arg;
use crate::op::emit::Emit;
use crate::op::rows::indexing::index_select::INDEX_ADD;
use crate::op::rows::pointwise::arith::{ADD, COPY, DIV, MUL, NEG};
use crate::op::rows::pointwise::blend::ZERO;
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
use rhai::{Array, Dynamic, Map, NativeCallContext};
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
    let is_list = |value: &Dynamic| {
        value.read_lock::<Array>().is_some_and(|items| items.first().is_some_and(|item| item.is::<Sparse>()))
    };
    if !values.iter().any(|value| value.is::<Sparse>() || is_list(value)) {
        return None;
    }
    let operands: Vec<Operand> = values.iter().map(|value| Operand::of(value)).collect();
    Some(match name.strip_suffix('_') {
        Some(name) => host.call(context, |e| written(e, name, &operands)).map(|()| values[0].flatten_clone()),
        None => host.call(context, |e| apply(e, name, &operands)),
    })
}

/// What an operation gives, into the memory of its first operand: a dense tensor, or the values of a sparse one whose
/// places stay.
fn written(e: &mut Engine, name: &str, operands: &[Operand]) -> Result<()> {
    if let ("add" | "sub", [Operand::Tensor(x), Operand::Sparse(s), rest @ ..]) = (name, operands)
        && s.sparse_dims() == 1
        && x.shape().as_slice() == s.size
        && x.dtype() == s.values.dtype()
    {
        let sign = |alpha: Scalar| match alpha {
            _ if name == "add" => alpha,
            Scalar::Float(x) => Scalar::Float(-x),
            other => Scalar::Int(-other.to_i64()),
        };
        let factor = match rest {
            [] => Some(sign(Scalar::Int(1))),
            [Operand::Keywords(map)] => factors(map, ["alpha"]).map(|[alpha]| sign(alpha)),
            _ => None,
        };
        if let Some(factor) = factor {
            let places = form::places(e, s, 0)?;
            e.apply_inplace(&INDEX_ADD, args![x, 0, &places, &s.values, factor])?;
            return Ok(());
        }
    }
    if let ("zero", [Operand::Sparse(s)]) = (name, operands) {
        return e.apply_inplace(&ZERO, args![&s.values]).map(drop);
    }
    let made = apply(e, name, operands).map_err(|mut diag| {
        diag.message = diag.message.replacen(&format!("`{name}`"), &format!("`{name}_`"), 1);
        diag
    })?;
    let dense = match (made.read_lock::<Sparse>(), made.read_lock::<Tensor>()) {
        (Some(new), _) => match &operands[0] {
            Operand::Sparse(old) if new.indices.same(&old.indices) => return into(e, name, &old.values, &new.values),
            Operand::Sparse(_) => return Err(moved(name)),
            _ => form::dense(e, &new)?,
        },
        (_, Some(new)) => new.clone(),
        _ => fail!(INTERNAL, "an operation gives a tensor"),
    };
    match &operands[0] {
        Operand::Tensor(old) => into(e, name, old, &dense),
        _ => Err(moved(name)),
    }
}

fn into(e: &mut Engine, name: &str, old: &Tensor, new: &Tensor) -> Result<()> {
    if old.shape() != new.shape() || old.dtype() != new.dtype() {
        fail!(
            DTYPE,
            "`{name}_` gives {} of shape {:?}, which is not written into {} of shape {:?}",
            new.dtype(),
            new.shape().as_slice(),
            old.dtype(),
            old.shape().as_slice()
        );
    }
    e.apply_inplace(&COPY, args![old, new]).map(drop)
}

#[cold]
fn moved(name: &str) -> Box<Diag> {
    Diag::error(code::TYPE, format!("`{name}_` would give the sparse tensor other places than it has"))
        .help(format!("a new tensor takes them: `s = s.{name}(..);`; of `s.coalesce()` values are changed in place"))
}

#[derive(Clone)]
enum Operand {
    Sparse(Sparse),
    Tensor(Tensor),
    Number(Scalar),
    List(Vec<i64>),
    Several(Vec<Sparse>),
    Keywords(Map),
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
        if let Some(list) = list {
            if let Some(list) = list.iter().map(|at| at.as_int().ok()).collect() {
                return Operand::List(list);
            }
            if let Some(all) = list.iter().map(|item| item.read_lock::<Sparse>().map(|s| s.clone())).collect() {
                return Operand::Several(all);
            }
        }
        match value.read_lock::<Map>() {
            Some(keywords) => Operand::Keywords(keywords.clone()),
            None => Operand::Other(type_names::of_value(value)),
        }
    }
}

fn apply(e: &mut Engine, name: &str, operands: &[Operand]) -> Result<Dynamic> {
    use Operand::{Keywords, List, Number, Several, Sparse as S, Tensor as T};
    match (name, operands) {
        ("add" | "sub", [a, S(b), Keywords(map)]) if let Some([alpha]) = factors(map, ["alpha"]) => {
            let values = e.call_row(&MUL, args![&b.values, alpha])?;
            apply(e, name, &[a.clone(), S(b.with_values(values))])
        }
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
        ("addmm", [T(m), S(s), T(x)]) => product::added(e, m, s, x, Scalar::Int(1), Scalar::Int(1)),
        ("addmm", [T(m), S(s), T(x), Keywords(map)]) if let Some([beta, alpha]) = factors(map, ["beta", "alpha"]) => {
            product::added(e, m, s, x, beta, alpha)
        }
        ("select", [S(s), Number(dim), Number(at)]) => places::select(e, s, dim.to_i64(), at.to_i64()),
        ("index_select", [S(s), Number(dim), T(index)]) => {
            places::index_select(e, s, dim.to_i64(), index).map(Dynamic::from)
        }
        ("unsqueeze", [S(s), Number(dim)]) => places::unsqueeze(e, s, dim.to_i64()).map(Dynamic::from),
        ("cat" | "concat" | "concatenate", [Several(all)]) => places::cat(e, all, 0).map(Dynamic::from),
        ("cat" | "concat" | "concatenate", [Several(all), Number(dim)]) => {
            places::cat(e, all, dim.to_i64()).map(Dynamic::from)
        }
        ("stack", [Several(all)]) => places::stack(e, all, 0).map(Dynamic::from),
        ("stack", [Several(all), Number(dim)]) => places::stack(e, all, dim.to_i64()).map(Dynamic::from),
        ("zeros_like", [S(s)]) => places::zeros_like(e, s).map(Dynamic::from),
        ("any", [S(s)]) => {
            let s = form::unique(e, s)?;
            by_row(e, name, &s.values).map(Dynamic::from)
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

/// The numbers of keywords, 1 for one that is not given; none where there are others.
fn factors<const N: usize>(map: &Map, names: [&str; N]) -> Option<[Scalar; N]> {
    let known = map.keys().all(|key| names.contains(&key.as_str()));
    let numbers = names.map(|name| map.get(name).map_or(Some(Scalar::Int(1)), convert::scalar));
    (known && numbers.iter().all(Option::is_some)).then(|| numbers.map(|number| number.expect("all are there")))
}

#[cold]
fn no_form(name: &str, operands: &[Operand]) -> Box<Diag> {
    let other = operands.iter().find_map(|operand| match operand {
        Operand::Other(kind) => Some(kind.as_str()),
        Operand::Keywords(_) => Some("keywords"),
        _ => None,
    });
    let beside = other.map_or(String::new(), |kind| format!(" with {kind}"));
    let diag = Diag::error(code::TYPE, format!("`{name}` has no form for sparse tensors{beside}"));
    diag.help("`s.to_dense()` is a tensor that every operation takes")
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
