//! Makes one batch of rows: tensors are stacked, numbers become tensors, maps and arrays are collated recursively,
//! other values become an array.

use crate::args;
use crate::base::device_id::DeviceId;
use crate::base::diag::Result;
use crate::base::dtype::{DType, Scalar};
use crate::fail;
use crate::op::emit::Emit;
use crate::op::rows::shape::join::STACK;
use crate::script::bind::convert;
use crate::script::bind::native::named;
use crate::script::bind::rows::{Natives, raw};
use crate::script::host::Host;
use crate::script::values::raise::Native;
use crate::script::values::type_names;
use crate::script::values::types::Tensor;
use crate::tensor::engine::Engine;
use crate::tensor::movement::{self, Target};
use rhai::{Array, Dynamic, Map};
use std::sync::Arc;

/// Bound: maps inside maps of a row.
const MAX_DEPTH: usize = 32;

/// `_collate(rows)`.
pub fn register(module: &mut Natives, host: &Arc<Host>) {
    let shared = host.clone();
    raw(module, "_collate", 1, move |context, values| -> Native {
        let context = context.expect("registered with a context");
        shared.call(&context, |engine| {
            let Some(rows) = values[0].read_lock::<Array>().map(|rows| rows.to_vec()) else {
                fail!(
                    ARGUMENT_TYPE,
                    "`default_collate`: an array of rows is expected, not {}",
                    type_names::of_value(values[0])
                );
            };
            if rows.is_empty() {
                fail!(VALUE, "`default_collate`: a batch has one row or more");
            }
            collate(engine, rows, shared.rt.default_device()).map_err(named("default_collate"))
        })
    });
}

/// Numbers become tensors on the device of the rows' tensors, or on `device` if there are none.
pub fn collate(engine: &mut Engine, rows: Vec<Dynamic>, device: DeviceId) -> Result<Dynamic> {
    let device = rows.first().and_then(|row| place(row, 0)).unwrap_or(device);
    values(engine, rows, device, "", 0)
}

/// The device of the first tensor in a row.
fn place(row: &Dynamic, depth: usize) -> Option<DeviceId> {
    if depth > MAX_DEPTH {
        return None;
    }
    if let Some(tensor) = row.read_lock::<Tensor>() {
        return Some(tensor.device());
    }
    if let Some(map) = row.read_lock::<Map>() {
        return map.values().find_map(|value| place(value, depth + 1));
    }
    row.read_lock::<Array>().and_then(|list| list.iter().find_map(|value| place(value, depth + 1)))
}

fn values(engine: &mut Engine, rows: Vec<Dynamic>, device: DeviceId, what: &str, depth: usize) -> Result<Dynamic> {
    if depth > MAX_DEPTH {
        fail!(VALUE, "rows are nested more than {MAX_DEPTH} deep");
    }
    let Some(first) = rows.first() else { return Ok(Array::new().into()) };
    if first.is::<Tensor>() {
        return tensors(engine, &rows, what);
    }
    if let Some(map) = first.read_lock::<Map>().map(|map| map.clone()) {
        let mut batch = Map::new();
        for name in map.keys() {
            let mut column = Vec::with_capacity(rows.len());
            for (at, row) in rows.iter().enumerate() {
                match row.read_lock::<Map>().and_then(|row| row.get(name).map(Dynamic::flatten_clone)) {
                    Some(value) => column.push(value),
                    None => fail!(VALUE, "row {at} of the batch has no `{name}`, which the first has"),
                }
            }
            batch.insert(name.clone(), values(engine, column, device, &format!("`{name}`"), depth + 1)?);
        }
        return Ok(batch.into());
    }
    if let Some(array) = first.read_lock::<Array>().map(|array| array.clone()) {
        let mut batch = Array::new();
        for place in 0..array.len() {
            let mut column = Vec::with_capacity(rows.len());
            for (at, row) in rows.iter().enumerate() {
                match row
                    .read_lock::<Array>()
                    .filter(|row| row.len() == array.len())
                    .map(|row| row[place].flatten_clone())
                {
                    Some(value) => column.push(value),
                    None => {
                        fail!(VALUE, "row {at} of the batch is no array of {} values, as the first is", array.len())
                    }
                }
            }
            batch.push(values(engine, column, device, &format!("value {place}"), depth + 1)?);
        }
        return Ok(batch.into());
    }
    let numbers: Option<Vec<Scalar>> = rows.iter().map(convert::scalar).collect();
    match numbers {
        Some(numbers) => scalars(engine, &numbers, device),
        None => Ok(rows.into_iter().collect::<Array>().into()),
    }
}

fn tensors(engine: &mut Engine, rows: &[Dynamic], what: &str) -> Result<Dynamic> {
    let what = if what.is_empty() { String::new() } else { format!("{what} of ") };
    let mut list = Vec::with_capacity(rows.len());
    for (at, row) in rows.iter().enumerate() {
        let Some(tensor) = row.read_lock::<Tensor>().map(|tensor| tensor.clone()) else {
            fail!(ARGUMENT_TYPE, "{what}row {at} of the batch is no tensor but {}", type_names::of_value(row));
        };
        let first: &Tensor = list.first().unwrap_or(&tensor);
        if first.shape() != tensor.shape() {
            let (a, b) = (first.shape(), tensor.shape());
            fail!(SHAPE, "{what}row {at} of the batch has shape {:?}, and row 0 {:?}", b.as_slice(), a.as_slice());
        }
        list.push(tensor);
    }
    engine.call_row(&STACK, args![crate::op::args::Arg::Tensors(list), 0i64]).map(Dynamic::from)
}

/// Booleans, integers, or floats of the default dtype if there is a float among them.
fn scalars(engine: &mut Engine, numbers: &[Scalar], device: DeviceId) -> Result<Dynamic> {
    let any = |test: fn(&Scalar) -> bool| numbers.iter().any(test);
    let wide = if any(|n| matches!(n, Scalar::Float(_))) {
        DType::F64
    } else if any(|n| matches!(n, Scalar::Int(_))) {
        DType::I64
    } else {
        DType::Bool
    };
    let bytes: Vec<u8> = match wide {
        DType::F64 => numbers.iter().flat_map(|n| n.to_f64().to_ne_bytes()).collect(),
        DType::I64 => numbers.iter().flat_map(|n| n.to_i64().to_ne_bytes()).collect(),
        _ => numbers.iter().map(|n| (n.to_i64() != 0) as u8).collect(),
    };
    let tensor = engine.upload(&bytes, &[numbers.len()], wide, DeviceId::Cpu)?;
    let tensor = movement::to(engine, &tensor, Target::on(device))?;
    if wide != DType::F64 {
        return Ok(Dynamic::from(tensor));
    }
    let emit: &mut dyn Emit = engine;
    let dtype = emit.default_float();
    emit.cast(&tensor, dtype).map(Dynamic::from)
}
