//! Modules whose `forward(x)` is one row of the op table applied to `x` and tensors of their own. A list of such
//! modules runs without script code: for a small layer the interpreter costs several times the layer.
//!
//! A module of the library declares this with `_row: ["linear", "weight", "bias"]`, a row's name and names of its
//! fields. The row must be all that `forward` does; a module whose `forward` was replaced runs that. Does not treat
//! any row specially.

use crate::base::code::{LIMIT_MEMORY, OUT_OF_MEMORY};
use crate::base::diag::Result;
use crate::op::args::{Arg, Args};
use crate::op::row::Op;
use crate::op::table;
use crate::script::bind::rows::Natives;
use crate::script::host::Host;
use crate::script::values::module::fields;
use crate::script::values::panics::Place;
use crate::script::values::raise::Native;
use crate::script::values::types::Tensor;
use crate::tensor::engine::Engine;
use rhai::{Array, Dynamic, FnPtr, FuncRegistration, ImmutableString, Map, NativeCallContext, RhaiFunc};
use smallvec::SmallVec;
use std::any::TypeId;
use std::sync::Arc;

/// The content of a module's `_row`.
#[derive(Clone)]
pub struct RowModule {
    op: &'static Op,
    fields: Arc<[ImmutableString]>,
    /// The name of the closure that does the same.
    forward: ImmutableString,
}

/// Reads `_row` of a module that is being created.
pub fn note(map: &mut Map) {
    let made = map.get("_row").and_then(|row| of(row, map.get("forward")?));
    if let Some(made) = made {
        map.insert("_row".into(), Dynamic::from(made));
    }
}

fn of(row: &Dynamic, forward: &Dynamic) -> Option<RowModule> {
    let row = row.read_lock::<Array>()?;
    let words: Option<Vec<ImmutableString>> =
        row.iter().map(|word| word.clone().into_immutable_string().ok()).collect();
    let words = words?;
    let (name, fields) = words.split_first()?;
    let forward = forward.read_lock::<FnPtr>()?.fn_name().into();
    Some(RowModule { op: table::find(name)?, fields: fields.into(), forward })
}

/// The row of a module, if its `forward` was not replaced.
fn row_of(module: &Map) -> Option<RowModule> {
    let row_module = module.get("_row")?.read_lock::<RowModule>()?;
    let forward = module.get("forward")?.read_lock::<FnPtr>()?;
    (forward.fn_name() == row_module.forward.as_str() && !forward.is_curried()).then(|| row_module.clone())
}

/// `layers._run_rows(x)`: the output of the last layer; `()` if the layers must run as script code, also to report an
/// error with their own message.
pub fn register(module: &mut Natives, host: &Arc<Host>) {
    module.note("_run_rows");
    let host = host.clone();
    let call = move |context: Option<NativeCallContext>, values: &mut [&mut Dynamic]| -> Native {
        let context = context.expect("registered with a context");
        let (Some(layers), Some(x)) = (values[0].read_lock::<Array>(), values[1].read_lock::<Tensor>()) else {
            return Ok(Dynamic::UNIT);
        };
        let mut rows: SmallVec<[_; 8]> = SmallVec::new();
        for layer in layers.iter() {
            let Some(module) = fields(layer) else { return Ok(Dynamic::UNIT) };
            let Some(row) = row_of(&module) else { return Ok(Dynamic::UNIT) };
            rows.push((module, row));
        }
        if rows.is_empty() {
            return Ok(Dynamic::UNIT);
        }
        let mut engine = host.engine(&context);
        let mut x = x.clone();
        for (module, row) in &rows {
            match forward(&mut engine, module, row, &x) {
                Some(Ok(y)) => x = y,
                // These errors must not be retried: a second attempt might succeed.
                Some(Err(diag)) if diag.is_late || [OUT_OF_MEMORY, LIMIT_MEMORY].contains(&diag.code) => {
                    return Err(host.raise(&context, diag, ""));
                }
                _ => return Ok(Dynamic::UNIT),
            }
        }
        Ok(Dynamic::from(x))
    };
    let func = RhaiFunc::Method { func: Arc::new(call), has_context: true, is_pure: true, is_volatile: true };
    let types = [TypeId::of::<Array>(), TypeId::of::<Dynamic>()];
    FuncRegistration::new("_run_rows").in_global_namespace().place_raw_in(&mut module.module, types, func);
}

/// One layer; none if a field is neither a tensor nor `()`.
fn forward(engine: &mut Engine, module: &Map, row: &RowModule, x: &Tensor) -> Option<Result<Tensor>> {
    let RowModule { op, fields, .. } = row;
    let mut args = Args::default();
    args.0.push(Arg::Tensor(x.clone()));
    for name in fields.iter() {
        let field = module.get(name.as_str())?;
        args.0.push(match field.read_lock::<Tensor>() {
            Some(tensor) => Arg::Tensor(tensor.clone()),
            None if field.is_unit() => Arg::None,
            None => return None,
        });
    }
    args.complete(op);
    match engine.results(op, &args) {
        Ok(mut results) if results.len() == 1 => Some(Ok(results.swap_remove(0))),
        Ok(_) => None,
        Err(diag) => Some(Err(diag)),
    }
}
