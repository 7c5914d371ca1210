//! Methods and properties of sparse tensors, and how dense ones become sparse.

use super::form;
use crate::args;
use crate::base::code;
use crate::base::diag::{Diag, Result};
use crate::base::dtype::Scalar;
use crate::op::rows::shape::view::SELECT;
use crate::script::bind::native::{binder_of, counts, given};
use crate::script::bind::properties;
use crate::script::bind::rows::Natives;
use crate::script::host::Host;
use crate::script::manual;
use crate::script::source::INDEX_MARK;
use crate::script::values::panics::{GuardedCall, Place};
use crate::script::values::raise::Native;
use crate::script::values::sparse::Sparse;
use crate::script::values::type_names;
use crate::script::values::types::{DTypeValue, DeviceValue, Tensor};
use crate::tensor::engine::Engine;
use crate::tensor::movement::{self, Target};
use rhai::{Array, Dynamic, EvalAltResult, FuncRegistration, NativeCallContext};
use std::any::TypeId;
use std::sync::Arc;

/// Methods that belong to the values: what they make of these, the sparse tensor becomes.
const OF_VALUES: &[&str] =
    &["to", "cuda", "cpu", "float", "double", "half", "bfloat16", "long", "int", "detach", "requires_grad_"];

pub fn register(natives: &mut Natives, host: &Arc<Host>) {
    forms(natives, host);
    parts(natives, host);
    properties(natives, host);
    indexed(natives, host);
    for name in OF_VALUES {
        of_values(natives, host, name);
    }
}

/// What a method does with a dense tensor.
type OfDense<const N: usize> = fn(&mut Engine, &Tensor, [&Dynamic; N]) -> Result<Dynamic>;

/// A method that the manual describes among those of sparse tensors; dense tensors have it too if `dense` says what it
/// does with them.
fn method<const N: usize>(
    natives: &mut Natives,
    host: &Arc<Host>,
    name: &'static str,
    call: impl Fn(&mut Engine, &Sparse, [&Dynamic; N]) -> Result<Dynamic> + Send + Sync + 'static,
    dense: Option<OfDense<N>>,
) {
    let binder = binder_of(manual::Form::Of("sparse"), name, N);
    let counts = counts(&binder, 1);
    let host = host.clone();
    let call = GuardedCall::new(move |context: Option<NativeCallContext>, values: &mut [&mut Dynamic]| -> Native {
        let context = context.expect("registered with a context");
        host.call(&context, |engine| {
            let keywords = binder.keywords(&values[1..]);
            let given = binder.borrow(&values[1..], keywords.as_ref())?;
            if let Some(sparse) = values[0].read_lock::<Sparse>().map(|sparse| sparse.clone()) {
                return call(engine, &sparse, given);
            }
            let tensor = values[0].read_lock::<Tensor>().map(|tensor| tensor.clone());
            match (tensor, dense) {
                (Some(tensor), Some(dense)) => dense(engine, &tensor, given),
                _ => Err(not_sparse(name, values[0])),
            }
        })
    });
    natives.note(name);
    natives.place(name, counts, &call);
}

#[cold]
fn not_sparse(name: &str, value: &Dynamic) -> Box<Diag> {
    let text = format!("`{name}` belongs to sparse tensors, not to {}", type_names::of_value(value));
    let diag = Diag::error(code::ARGUMENT_TYPE, text);
    if value.is::<Tensor>() { diag.help("`x.to_sparse()` makes one of a dense tensor") } else { diag }
}

fn dims_of(value: &Dynamic, all: usize) -> Result<usize> {
    let Some(value) = given(value) else { return Ok(all) };
    match value.as_int() {
        Ok(dims) if dims >= 0 => Ok(dims as usize),
        _ => crate::fail!(
            ARGUMENT_TYPE,
            "a number of sparse dimensions is expected, not {}",
            type_names::of_value(value)
        ),
    }
}

fn forms(natives: &mut Natives, host: &Arc<Host>) {
    method(
        natives,
        host,
        "to_dense",
        |e, s, []| form::dense(e, s).map(Dynamic::from),
        Some(|_, x, []| Ok(Dynamic::from(x.clone()))),
    );
    for name in ["to_sparse", "to_sparse_coo"] {
        let sparse = |_: &mut Engine, s: &Sparse, _: [&Dynamic; 1]| Ok(Dynamic::from(form::coo(s)));
        let dense = |e: &mut Engine, x: &Tensor, [dims]: [&Dynamic; 1]| {
            let dims = dims_of(dims, x.ndim())?;
            form::from_dense(e, x, dims).map(Dynamic::from)
        };
        method(natives, host, name, sparse, Some(dense));
    }
    method(
        natives,
        host,
        "to_sparse_csr",
        |e, s, []| form::csr(e, s).map(Dynamic::from),
        Some(|e, x, []| {
            let s = form::from_dense(e, x, x.ndim())?;
            form::csr(e, &s).map(Dynamic::from)
        }),
    );
    method(
        natives,
        host,
        "to_sparse_csc",
        |e, s, []| form::csc(e, s).map(Dynamic::from),
        Some(|e, x, []| {
            let s = form::from_dense(e, x, x.ndim())?;
            form::csc(e, &s).map(Dynamic::from)
        }),
    );
    method(natives, host, "coalesce", |e, s, []| form::coalesce(e, s).map(Dynamic::from), None);
    method(natives, host, "is_coalesced", |_, s, []| Ok(Dynamic::from_bool(s.is_coalesced)), None);
    method(
        natives,
        host,
        "sparse_mask",
        |e, s, [mask]| {
            let x = form::dense(e, s)?;
            masked(e, &x, mask)
        },
        Some(|e, x, [mask]| masked(e, x, mask)),
    );
}

/// The values of a dense tensor at the places of a sparse one.
fn masked(e: &mut Engine, x: &Tensor, mask: &Dynamic) -> Result<Dynamic> {
    let Some(mask) = mask.read_lock::<Sparse>().map(|mask| mask.clone()) else {
        return Err(not_sparse("mask", mask));
    };
    if x.shape().as_slice() != mask.size {
        crate::fail!(SHAPE, "the mask has size {:?}, the tensor shape {:?}", mask.size, x.shape().as_slice());
    }
    let values = form::values_at(e, x, &mask)?;
    Ok(Dynamic::from(mask.with_values(values)))
}

fn parts(natives: &mut Natives, host: &Arc<Host>) {
    for (name, of_indices) in [("indices", true), ("values", false)] {
        let part = move |_: &mut Engine, s: &Sparse, _: [&Dynamic; 0]| {
            if of_indices && s.crow.is_some() {
                crate::fail!(
                    VALUE,
                    "a CSR tensor has `crow_indices()` and `col_indices()`, a CSC tensor `ccol_indices()` and `row_indices()`"
                );
            }
            if !s.is_coalesced && s.crow.is_none() {
                return Err(Diag::error(code::VALUE, "some place may occur several times")
                    .help(format!("write `.coalesce().{name}()`, or `._{name}()` for what is stored")));
            }
            Ok(Dynamic::from(if of_indices { s.indices.clone() } else { s.values.clone() }))
        };
        method(natives, host, name, part, None);
    }
    method(natives, host, "_indices", |_, s, []| Ok(Dynamic::from(s.indices.clone())), None);
    method(natives, host, "_values", |_, s, []| Ok(Dynamic::from(s.values.clone())), None);
    method(natives, host, "_nnz", |_, s, []| Ok(Dynamic::from_int(s.nnz() as i64)), None);
    method(natives, host, "sparse_dim", |_, s, []| Ok(Dynamic::from_int(s.sparse_dims() as i64)), None);
    method(natives, host, "dense_dim", |_, s, []| Ok(Dynamic::from_int((s.size.len() - s.sparse_dims()) as i64)), None);
    fn compressed(s: &Sparse, by_columns: bool) -> Result<&Tensor> {
        let (kind, form) = if by_columns { ("CSC", "to_sparse_csc") } else { ("CSR", "to_sparse_csr") };
        match s.crow.as_ref().filter(|_| s.by_columns == by_columns) {
            Some(starts) => Ok(starts),
            None => {
                Err(Diag::error(code::VALUE, format!("it belongs to {kind} tensors, and this one is {}", s.layout()))
                    .help(format!("write `.{form}()` before")))
            }
        }
    }
    for (starts, places, by_columns) in [("crow_indices", "col_indices", false), ("ccol_indices", "row_indices", true)]
    {
        let of_starts =
            move |_: &mut Engine, s: &Sparse, _: [&Dynamic; 0]| Ok(Dynamic::from(compressed(s, by_columns)?.clone()));
        let of_places = move |e: &mut Engine, s: &Sparse, _: [&Dynamic; 0]| {
            compressed(s, by_columns)?;
            form::places(e, s, !by_columns as usize).map(Dynamic::from)
        };
        method(natives, host, starts, of_starts, None);
        method(natives, host, places, of_places, None);
    }
}

fn properties(natives: &mut Natives, host: &Arc<Host>) {
    let mut property = |name: &str, get: fn(&Sparse) -> Dynamic| {
        FuncRegistration::new_getter(name).place_in(&mut natives.module, move |s: &mut Sparse| get(s));
    };
    property("shape", |s| s.size.iter().map(|&n| Dynamic::from_int(n as i64)).collect::<Array>().into());
    property("ndim", |s| Dynamic::from_int(s.size.len() as i64));
    property("numel", |s| Dynamic::from_int(s.size.iter().product::<usize>() as i64));
    property("nnz", |s| Dynamic::from_int(s.nnz() as i64));
    property("dtype", |s| Dynamic::from(DTypeValue(s.values.dtype())));
    property("device", |s| Dynamic::from(DeviceValue::from(s.values.device())));
    property("is_cuda", |s| Dynamic::from_bool(s.values.device().is_cuda()));
    property("is_sparse", |s| Dynamic::from_bool(s.crow.is_none()));
    property("is_sparse_csr", |s| Dynamic::from_bool(s.is_csr()));
    property("layout", |s| s.layout().into());
    property("requires_grad", |s| Dynamic::from_bool(s.values.requires_grad()));
    gradient(natives, host);
    gradient_of_dense(natives, host);
    let shared = host.clone();
    FuncRegistration::new_getter("T").place_in(
        &mut natives.module,
        move |context: NativeCallContext, s: &mut Sparse| -> Native {
            shared.call(&context, |e| form::transpose(e, s).map(Dynamic::from))
        },
    );
}

/// `s[1]`, and `s[0, 1]`, one dim after the other.
fn indexed(natives: &mut Natives, host: &Arc<Host>) {
    for of_list in [false, true] {
        let shared = host.clone();
        let get = GuardedCall::new(move |context: Option<NativeCallContext>, values: &mut [&mut Dynamic]| -> Native {
            let context = context.expect("registered with a context");
            shared.call(&context, |e| element(e, values[0], values[1]))
        });
        let index = if of_list { TypeId::of::<Array>() } else { TypeId::of::<i64>() };
        FuncRegistration::new_index_getter().place_shared_in(
            &mut natives.module,
            [TypeId::of::<Sparse>(), index],
            &get,
        );
    }
}

fn element(e: &mut Engine, value: &Dynamic, index: &Dynamic) -> Result<Dynamic> {
    let whole = |at: &Dynamic| {
        at.as_int().map_err(|_| {
            Diag::error(
                code::TYPE,
                format!("a sparse tensor is indexed by integers, not by {}", type_names::of_value(at)),
            )
            .help("`s.index_select(dim, index)` picks places; `s.to_dense()[..]` takes every index")
        })
    };
    let indices: Vec<i64> = match index.read_lock::<Array>() {
        // Of `s[0, 1]` the source pass makes a list that begins with its mark.
        Some(list) if list.first().is_some_and(|first| first.as_char() == Ok(INDEX_MARK)) => {
            list[1..].iter().map(whole).collect::<Result<_>>()?
        }
        _ => vec![whole(index)?],
    };
    let mut found = value.clone();
    for at in indices {
        let part = found.read_lock::<Sparse>().map(|s| s.clone());
        found = match (part, found.read_lock::<Tensor>().map(|x| x.clone())) {
            (Some(s), _) => super::places::select(e, &s, 0, at)?,
            (_, Some(x)) => e.call_row(&SELECT, args![&x, 0, at]).map(Dynamic::from)?,
            _ => crate::fail!(INTERNAL, "a part of a sparse tensor is a tensor"),
        };
    }
    Ok(found)
}

/// `s.grad`, and `s.grad = g`. The gradient is kept by the values.
fn gradient(natives: &mut Natives, host: &Arc<Host>) {
    let shared = host.clone();
    FuncRegistration::new_getter("grad").place_in(
        &mut natives.module,
        move |context: NativeCallContext, s: &mut Sparse| -> Native {
            let Some(g) = s.values.0.auto.lock().grad.clone() else { return Ok(Dynamic::UNIT) };
            shared.call(&context, |e| form::each_once(e, &s.with_values(g)).map(Dynamic::from))
        },
    );
    let shared = host.clone();
    FuncRegistration::new_setter("grad").place_in(
        &mut natives.module,
        move |context: NativeCallContext, s: &mut Sparse, value: Dynamic| -> Result<(), Box<EvalAltResult>> {
            match shared.assignment(&context) {
                Some(_) => shared.call(&context, |e| set_grad(e, s, &value)),
                None => Ok(()),
            }
        },
    );
}

/// `w.grad = g` of a dense tensor and a sparse gradient.
fn gradient_of_dense(natives: &mut Natives, host: &Arc<Host>) {
    let shared = host.clone();
    FuncRegistration::new_setter("grad").place_in(
        &mut natives.module,
        move |context: NativeCallContext, x: &mut Tensor, g: Sparse| -> Result<(), Box<EvalAltResult>> {
            match shared.assignment(&context) {
                Some(_) => shared.call(&context, |e| super::set_grad_of_dense(e, x, &g)),
                None => Ok(()),
            }
        },
    );
}

/// The gradient of each value is that at its place.
fn set_grad(e: &mut Engine, s: &Sparse, value: &Dynamic) -> Result<()> {
    if value.is_unit() {
        s.values.drop_grad();
        return Ok(());
    }
    let dense = match (value.read_lock::<Sparse>(), value.read_lock::<Tensor>()) {
        (Some(g), _) => form::dense(e, &g)?,
        (_, Some(g)) => g.clone(),
        _ => {
            let kind = type_names::of_value(value);
            crate::fail!(ARGUMENT_TYPE, "a gradient is a tensor, sparse or dense, or `()`, not {kind}");
        }
    };
    if dense.shape().as_slice() != s.size || dense.dtype() != s.values.dtype() || dense.device() != s.values.device() {
        crate::fail!(
            GRAD_SHAPE,
            "a gradient of shape {:?}, {} on {} does not belong to a sparse tensor of size {:?}, {} on {}",
            dense.shape().as_slice(),
            dense.dtype(),
            dense.device(),
            s.size,
            s.values.dtype(),
            s.values.device()
        );
    }
    let values = e.without_recording(|e| form::values_at(e, &dense, s))?;
    properties::set_grad(&s.values, &Dynamic::from(values))
}

/// Calls the method of the values, and takes the places where they went.
fn of_values(natives: &mut Natives, host: &Arc<Host>, name: &'static str) {
    let host = host.clone();
    let call = GuardedCall::new(move |context: Option<NativeCallContext>, values: &mut [&mut Dynamic]| -> Native {
        let context = context.expect("registered with a context");
        let sparse = values[0].read_lock::<Sparse>().expect("registered for sparse tensors").clone();
        let mut first = Dynamic::from(sparse.values.clone());
        let mut given = vec![&mut first];
        given.extend(values[1..].iter_mut().map(|value| &mut **value));
        let made = context.call_native_fn_raw(name, true, &mut given)?;
        let Some(made) = made.try_cast::<Tensor>() else { return Ok(values[0].clone()) };
        host.call(&context, |e| {
            let target = Target::on(made.device());
            let indices = movement::to(e, &sparse.indices, target)?;
            let crow = sparse.crow.as_ref().map(|crow| movement::to(e, crow, target)).transpose()?;
            Ok(Dynamic::from(Sparse { indices, values: made, crow, ..sparse }))
        })
    });
    natives.place_on(TypeId::of::<Sparse>(), name, 1..=4, &call);
}

/// The functions of the module `sparse`.
pub fn module_functions(natives: &mut Natives, host: &Arc<Host>) {
    use crate::script::bind::native::native;
    native(natives, host, "sparse::mm", |_, e, [a, b]| {
        let operands = (a.read_lock::<Sparse>().map(|s| s.clone()), b.read_lock::<Tensor>().map(|x| x.clone()));
        match operands {
            (Some(s), Some(x)) => super::product::left(e, &s, &x).map(Dynamic::from),
            (Some(s), None) if b.is::<Sparse>() => {
                let other = b.read_lock::<Sparse>().expect("it is one").clone();
                super::product::both(e, &s, &other).map(Dynamic::from)
            }
            (None, _) => Err(not_sparse("sparse::mm", a)),
            _ => Err(Diag::error(code::ARGUMENT_TYPE, "the second operand is a matrix, sparse or dense")),
        }
    });
    native(natives, host, "sparse::addmm", |_, e, [mat, a, b, beta, alpha]| {
        let tensor = |value: &Dynamic| value.read_lock::<Tensor>().map(|x| x.clone());
        let (Some(mat), Some(s), Some(x)) = (tensor(mat), a.read_lock::<Sparse>().map(|s| s.clone()), tensor(b)) else {
            return Err(not_sparse("sparse::addmm", a));
        };
        let scale = |value: &Dynamic| crate::script::bind::convert::scalar(value).unwrap_or(Scalar::Int(1));
        super::product::added(e, &mat, &s, &x, scale(beta), scale(alpha))
    });
    for (name, log) in [("sparse::softmax", false), ("sparse::log_softmax", true)] {
        native(natives, host, name, move |_, e, [input, dim, dtype]| {
            let Some(s) = input.read_lock::<Sparse>().map(|s| s.clone()) else {
                return Err(not_sparse(name, input));
            };
            let Some(dim) = crate::script::bind::convert::integer(dim) else {
                crate::fail!(ARGUMENT_TYPE, "`dim` is an integer, not {}", type_names::of_value(dim));
            };
            let s = match given(dtype) {
                Some(dtype) => {
                    let dtype = crate::script::bind::convert::dtype(dtype)?;
                    let values = (e as &mut dyn crate::op::emit::Emit).cast(&s.values, dtype)?;
                    s.with_values(values)
                }
                None => s,
            };
            super::softmax::softmax(e, &s, dim, log).map(Dynamic::from)
        });
    }
    native(natives, host, "sparse::sum", |_, e, [input, dim]| {
        let Some(s) = input.read_lock::<Sparse>().map(|s| s.clone()) else {
            return Err(not_sparse("sparse::sum", input));
        };
        let dims: Vec<i64> = match (dim.as_int(), dim.read_lock::<Array>()) {
            (Ok(dim), _) => vec![dim],
            (_, Some(dims)) => dims.iter().filter_map(|dim| dim.as_int().ok()).collect(),
            _ => (0..s.size.len() as i64).collect(),
        };
        super::rows::summed(e, &s, &dims)
    });
}
