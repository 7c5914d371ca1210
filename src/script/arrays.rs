//! What arrays do with a closure that compares: `sort`, `sort_by` and `dedup`. Rhai's own take an error of the closure,
//! or a value that is no integer, for "equal", so that an array would stay unsorted without a word.

use super::bind::Natives;
use super::convert;
use super::host::Host;
use super::value::Tensor;
use crate::base::code;
use crate::base::diag::Diag;
use crate::tensor::observe;
use rhai::{Array, Dynamic, EvalAltResult, FnPtr, FuncRegistration, NativeCallContext};
use std::cmp::Ordering;
use std::sync::Arc;

type Outcome<T> = Result<T, Box<EvalAltResult>>;

pub fn register(module: &mut Natives, host: &Arc<Host>) {
    for name in ["sort", "sort_by"] {
        let shared = host.clone();
        let sort = move |context: NativeCallContext, array: &mut Array, compare: FnPtr| -> Outcome<()> {
            let mut order = |x: &Dynamic, y: &Dynamic| order(&shared, &context, &compare, x, y);
            *array = sorted(array, &mut order)?;
            Ok(())
        };
        FuncRegistration::new(name).in_global_namespace().set_into_module(&mut module.module, sort);
    }
    let shared = host.clone();
    let dedup = move |context: NativeCallContext, array: &mut Array, same: FnPtr| -> Outcome<()> {
        let mut kept: Array = Vec::with_capacity(array.len());
        for value in array.iter() {
            let again = match kept.last() {
                Some(last) => {
                    let told = same.call_raw(&context, None, [last.clone(), value.clone()])?;
                    let wrong =
                        || format!("whether two values are the same is a bool, not {}", convert::type_name(&told));
                    told.as_bool().map_err(|_| shared.raise(&context, Diag::error(code::ARGUMENT_TYPE, wrong()), ""))?
                }
                None => false,
            };
            if !again {
                kept.push(value.clone());
            }
        }
        *array = kept;
        Ok(())
    };
    FuncRegistration::new("dedup").in_global_namespace().set_into_module(&mut module.module, dedup);
}

/// What a closure says of two values: a number's sign, or true for "the first comes first".
fn order(host: &Host, context: &NativeCallContext, compare: &FnPtr, x: &Dynamic, y: &Dynamic) -> Outcome<Ordering> {
    let mut told = compare.call_raw(context, None, [x.clone(), y.clone()])?;
    if let Some(tensor) = told.clone().try_cast::<Tensor>() {
        let value = observe::item(&host.rt, &tensor).map_err(|diag| host.raise(context, diag, ""))?;
        told = super::properties::number(value);
    }
    if let Ok(first) = told.as_bool() {
        return Ok(if first { Ordering::Less } else { Ordering::Greater });
    }
    let number = told.as_int().map(|number| number as f64).or_else(|_| told.as_float()).ok();
    number.and_then(|number| number.partial_cmp(&0.0)).ok_or_else(|| {
        let what = number.map_or_else(|| convert::type_name(&told).to_string(), |number| number.to_string());
        let text = format!("the order of two values is a number or a bool, not {what}");
        host.raise(context, Diag::error(code::ARGUMENT_TYPE, text).help("for example `|a, b| a - b`"), "")
    })
}

/// A stable merge sort; not the standard library's, which panics at an order that contradicts itself.
fn sorted(values: &Array, order: &mut dyn FnMut(&Dynamic, &Dynamic) -> Outcome<Ordering>) -> Outcome<Array> {
    let mut from: Array = values.clone();
    let mut width = 1;
    while width < from.len() {
        let mut to = Vec::with_capacity(from.len());
        for part in from.chunks(2 * width) {
            let (left, right) = part.split_at(width.min(part.len()));
            let (mut i, mut j) = (0, 0);
            while i < left.len() && j < right.len() {
                let second = order(&left[i], &right[j])? == Ordering::Greater;
                to.push(if second { right[j].clone() } else { left[i].clone() });
                (i, j) = (i + !second as usize, j + second as usize);
            }
            to.extend_from_slice(&left[i..]);
            to.extend_from_slice(&right[j..]);
        }
        from = to;
        width *= 2;
    }
    Ok(from)
}
