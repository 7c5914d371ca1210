//! `sparse_coo_tensor`, `sparse_csr_tensor`, `sparse_csc_tensor`.

use super::form;
use crate::args;
use crate::base::diag::Result;
use crate::base::dtype::{DType, Scalar};
use crate::base::layout;
use crate::fail;
use crate::op::emit::Emit;
use crate::op::row::Source;
use crate::op::rows::reduction::reduce::{AMAX, AMIN};
use crate::op::rows::shape::join::STACK;
use crate::op::tensor::Tensor;
use crate::script::bind::convert;
use crate::script::bind::native::{flag, given, native};
use crate::script::bind::properties::set_requires_grad;
use crate::script::bind::rows::Natives;
use crate::script::host::Host;
use crate::script::tensor_api::literal;
use crate::script::values::sparse::{Noted, Sparse};
use crate::script::values::type_names;
use crate::tensor::engine::Engine;
use crate::tensor::movement::{self, Target};
use rhai::{Array, Dynamic};
use std::sync::Arc;

pub fn register(natives: &mut Natives, host: &Arc<Host>) {
    native(
        natives,
        host,
        "sparse_coo_tensor",
        |host, e, [indices, values, size, dtype, device, requires_grad, checked, is_coalesced]| {
            let options = Options { dtype, device, requires_grad, checked };
            let made = match (given(values), given(size)) {
                (None, None) => empty(host, e, indices, &options)?,
                _ => coo(host, e, [indices, values, size], &options)?,
            };
            let is_coalesced = given(is_coalesced).is_some_and(|on| on.as_bool().unwrap_or(false));
            Ok(Dynamic::from(Sparse { is_coalesced: made.is_coalesced || is_coalesced, ..made }))
        },
    );
    native(
        natives,
        host,
        "sparse_csr_tensor",
        |host, e, [crow, col, values, size, dtype, device, requires_grad, checked]| {
            let options = Options { dtype, device, requires_grad, checked };
            csr(host, e, [crow, col, values, size], &options, "crow_indices", "col_indices").map(Dynamic::from)
        },
    );
    native(
        natives,
        host,
        "sparse_csc_tensor",
        |host, e, [ccol, row, values, size, dtype, device, requires_grad, checked]| {
            let options = Options { dtype, device, requires_grad, checked };
            let turned = match given(size) {
                Some(size) => {
                    sizes("size", size)?.iter().rev().map(|&n| Dynamic::from_int(n as i64)).collect::<Array>().into()
                }
                None => Dynamic::UNIT,
            };
            let turned = csr(host, e, [ccol, row, values, &turned], &options, "ccol_indices", "row_indices")?;
            form::transpose(e, &turned).map(Dynamic::from)
        },
    );
}

struct Options<'a> {
    dtype: &'a Dynamic,
    device: &'a Dynamic,
    requires_grad: &'a Dynamic,
    checked: &'a Dynamic,
}

impl Options<'_> {
    /// The values as a tensor; one that is given keeps its place in the gradient graph.
    fn values(&self, host: &Host, e: &mut Engine, value: &Dynamic) -> Result<Tensor> {
        let dtype = given(self.dtype).map(convert::dtype).transpose()?;
        let device = given(self.device).map(|device| convert::device(host, device)).transpose()?;
        let values = match value.read_lock::<Tensor>() {
            Some(tensor) => movement::to(e, &tensor, Target { dtype, device, ..Target::default() })?,
            None => literal::from_value(e, host, value, dtype, device)?,
        };
        if !flag("requires_grad", self.requires_grad)? {
            return Ok(values);
        }
        let leaf = e.detach(&values);
        set_requires_grad(&leaf, true)?;
        Ok(leaf)
    }

    fn is_checked(&self) -> Result<bool> {
        given(self.checked).map_or(Ok(true), |on| flag("check_invariants", on))
    }
}

/// Integers on the device of the values.
fn index(host: &Host, e: &mut Engine, name: &str, value: &Dynamic, values: &Tensor) -> Result<Tensor> {
    let index = match value.read_lock::<Tensor>() {
        Some(tensor) => tensor.clone(),
        None => literal::from_value(e, host, value, None, Some(values.device()))?,
    };
    if index.dtype().is_float() && index.numel() > 0 {
        fail!(DTYPE, "`{name}` are integers, not {}", index.dtype());
    }
    let target = Target { dtype: Some(DType::I64), ..Target::on(values.device()) };
    movement::to(e, &index, target)
}

fn sizes(name: &str, value: &Dynamic) -> Result<Vec<usize>> {
    let list = value.read_lock::<Array>();
    let all = list.as_ref().and_then(|list| {
        list.iter().map(|size| size.as_int().ok().and_then(|size| usize::try_from(size).ok())).collect()
    });
    match all {
        Some(all) => addressable(all),
        None => fail!(ARGUMENT_TYPE, "`{name}` is an array of sizes, not {}", type_names::of_value(value)),
    }
}

/// Places are counted in 64 bits, also where there is no memory for them.
fn addressable(size: Vec<usize>) -> Result<Vec<usize>> {
    match layout::numel(&size) {
        Some(_) => Ok(size),
        None => fail!(TOO_LARGE, "the places of a sparse tensor of size {size:?} are too many to count"),
    }
}

/// A tensor of zeros.
fn empty(host: &Host, e: &mut Engine, size: &Dynamic, options: &Options) -> Result<Sparse> {
    let size = sizes("size", size)?;
    let values = options.values(host, e, &Dynamic::from(Array::new()))?;
    let indices = e.source(Source::Fill(Scalar::Int(0)), &[size.len(), 0], DType::I64, values.device())?;
    Ok(Sparse { indices, values, size, is_coalesced: true, crow: None, by_columns: false, _noted: Noted::new() })
}

fn coo(host: &Host, e: &mut Engine, [places, values, size]: [&Dynamic; 3], options: &Options) -> Result<Sparse> {
    let values = options.values(host, e, values)?;
    let indices = index(host, e, "indices", places, &values)?;
    let (shape, of_values) = (indices.shape(), values.shape());
    if shape.len() != 2 || of_values.is_empty() || shape[1] != of_values[0] {
        let (places, values) = (shape.as_slice(), of_values.as_slice());
        fail!(
            SHAPE,
            "`indices` are [dims, n] and `values` [n, ..] for the same n; they have the shapes {places:?} and {values:?}"
        );
    }
    let size = given(size).map(|size| sizes("size", size)).transpose()?;
    if let Some(size) = &size {
        let dims = shape[0] + of_values.len() - 1;
        if size.len() != dims || size[shape[0]..] != of_values[1..] {
            fail!(
                SHAPE,
                "`size` {size:?} does not fit {} sparse dims and values of the shape {:?}",
                shape[0],
                of_values.as_slice()
            );
        }
    }
    let size = addressable(within(e, &indices, size, &of_values[1..], options.is_checked()?)?)?;
    Ok(Sparse {
        is_coalesced: values.shape()[0] == 0,
        indices,
        values,
        size,
        crow: None,
        by_columns: false,
        _noted: Noted::new(),
    })
}

/// The size, which without one is that of the largest indices; an error if some index is not in it. Waits.
fn within(
    e: &mut Engine,
    indices: &Tensor,
    size: Option<Vec<usize>>,
    dense: &[usize],
    is_checked: bool,
) -> Result<Vec<usize>> {
    let shape = indices.shape();
    let (dims, n) = (shape[0], shape[1]);
    if n == 0 || (size.is_some() && !is_checked) {
        let none = || vec![0; dims].into_iter().chain(dense.iter().copied()).collect();
        return Ok(size.unwrap_or_else(none));
    }
    let ends = [&AMIN, &AMAX].map(|op| e.call_row(op, args![indices, [1i64].as_slice()]));
    let [least, most] = ends.map(|end| end.and_then(|end| e.read(&end)));
    let size = match (size, &most) {
        (None, Ok(most)) => {
            most.iter().map(|most| most.to_i64().max(-1) as usize + 1).chain(dense.iter().copied()).collect()
        }
        (size, _) => size.unwrap_or_default(),
    };
    for (dim, (least, most)) in least?.iter().zip(&most?).enumerate() {
        let (least, most, size) = (least.to_i64(), most.to_i64(), size[dim]);
        if least < 0 || most >= size as i64 {
            let bad = if least < 0 { least } else { most };
            fail!(INDEX, "index {bad} is out of range for dimension {dim} of size {size}");
        }
    }
    Ok(size)
}

fn csr(
    host: &Host,
    e: &mut Engine,
    [crow, col, values, size]: [&Dynamic; 4],
    options: &Options,
    starts_are: &str,
    places_are: &str,
) -> Result<Sparse> {
    let values = options.values(host, e, values)?;
    let crow = index(host, e, starts_are, crow, &values)?;
    let col = index(host, e, places_are, col, &values)?;
    let shapes = [&crow, &col, &values].map(|x| x.shape());
    if shapes.iter().any(|shape| shape.len() != 1) || shapes[0][0] == 0 || shapes[1] != shapes[2] {
        let [crow, col, values] = [&shapes[0], &shapes[1], &shapes[2]].map(|shape| shape.as_slice());
        fail!(
            SHAPE,
            "`{starts_are}` [one more], `{places_are}` [n] and `values` [n] have the shapes {crow:?}, {col:?} and {values:?}"
        );
    }
    let n = col.numel();
    if options.is_checked()? {
        let starts = e.read(&crow)?;
        let starts: Vec<i64> = starts.iter().map(|start| start.to_i64()).collect();
        if starts[0] != 0 || starts[starts.len() - 1] != n as i64 || starts.windows(2).any(|pair| pair[0] > pair[1]) {
            fail!(VALUE, "`{starts_are}` begin with 0, grow, and end with {n}, the number of values");
        }
    }
    let rows = form::rows_of(e, &crow, n)?;
    let indices = e.call_row(&STACK, args![vec![rows, col], 0])?;
    let size = match given(size) {
        Some(size) => sizes("size", size)?,
        None => {
            let all = within(e, &indices, None, &[], true)?;
            addressable(vec![crow.numel() - 1, all[1]])?
        }
    };
    if size.len() != 2 || size[0] + 1 != crow.numel() {
        fail!(SHAPE, "`size` does not fit `{starts_are}` of {}", crow.numel() - 1);
    }
    let size = within(e, &indices, Some(size), &[], options.is_checked()?)?;
    Ok(Sparse { indices, values, size, is_coalesced: true, crow: Some(crow), by_columns: false, _noted: Noted::new() })
}
