//! Datasets as values: tensors of equal length, closures, arrays, image folders, and subsets, concatenations and maps
//! of them. Returns single rows; batches are made in `loader.rs`, threads in `prefetch.rs`.

use crate::args;
use crate::base::code;
use crate::base::device_id::DeviceId;
use crate::base::diag::{Diag, Result};
use crate::base::span::Origin;
use crate::fail;
use crate::op::rows::shape::view::SELECT;
use crate::script::bind::convert;
use crate::script::bind::rows::{Natives, raw};
use crate::script::data::columns;
use crate::script::data::images::{Folder, Picture};
use crate::script::host::Host;
use crate::script::host::caller::Caller;
use crate::script::values::panics::{GuardedCall, Place};
use crate::script::values::raise::Native;
use crate::script::values::raise::at_iterator;
use crate::script::values::type_names;
use crate::script::values::types::Tensor;
use crate::tensor::engine::Engine;
use parking_lot::Mutex;
use rhai::{Array, Dynamic, FnPtr, FuncRegistration, Identifier, Map};
use std::any::TypeId;
use std::sync::Arc;

/// A dataset of a script.
#[derive(Clone)]
pub struct Dataset(pub Arc<Rows>);

/// The source of rows.
pub enum Rows {
    /// By name; a single tensor has the name "".
    Tensors(Vec<(Identifier, Tensor)>, usize),
    Values(Array),
    /// The map that holds the closure is its `this`.
    Function {
        count: usize,
        get: FnPtr,
        this: Option<Mutex<Dynamic>>,
        caller: Caller,
    },
    Folder(Arc<Folder>),
    Part(Dataset, Vec<usize>),
    Sum(Vec<Dataset>),
    Mapped(Dataset, FnPtr, Caller),
}

impl Dataset {
    pub fn row_count(&self) -> usize {
        match &*self.0 {
            Rows::Tensors(_, n) | Rows::Function { count: n, .. } => *n,
            Rows::Values(values) => values.len(),
            Rows::Folder(folder) => folder.row_count(),
            Rows::Part(_, index) => index.len(),
            Rows::Sum(parts) => parts.iter().map(Dataset::row_count).sum(),
            Rows::Mapped(of, ..) => of.row_count(),
        }
    }

    /// The tensors by name, of a dataset that is made of some.
    pub fn columns(&self) -> Option<Map> {
        let Rows::Tensors(fields, _) = &*self.0 else { return None };
        let columns = fields.iter().map(|(name, tensor)| (name.clone(), Dynamic::from(tensor.clone())));
        (!fields.iter().any(|(name, _)| name.is_empty())).then(|| crate::base::order::map(columns))
    }

    /// Row `at`, which must exist. Data read from a file is copied to `device`; `picture` is the row's picture if it
    /// was prefetched.
    pub fn row(
        &self,
        host: &Arc<Host>,
        origin: Origin,
        at: usize,
        device: DeviceId,
        picture: Option<Picture>,
    ) -> Native {
        let native = |result: Result<Dynamic>| result.map_err(|diag| at_iterator(diag, origin));
        match &*self.0 {
            Rows::Tensors(fields, _) => native(tensor_row(&mut Engine::new(host.rt.clone(), origin), fields, at)),
            Rows::Values(values) => Ok(values[at].flatten_clone()),
            Rows::Function { get, this, caller, .. } => {
                call_in(this.as_ref(), caller, get, vec![Dynamic::from_int(at as i64)])
            }
            Rows::Folder(folder) => native(picture.map_or_else(|| folder.read(at), Ok).and_then(|picture| {
                let mut engine = Engine::new(host.rt.clone(), origin);
                folder.row(&mut engine, at, picture, device)
            })),
            Rows::Part(of, index) => of.row(host, origin, index[at], device, picture),
            Rows::Sum(parts) => {
                let (part, at) = place(parts, at);
                parts[part].row(host, origin, at, device, picture)
            }
            Rows::Mapped(of, f, caller) => caller.call(f, vec![of.row(host, origin, at, device, picture)?]),
        }
    }

    /// The picture of a row: what a thread may prefetch.
    pub fn picture(&self, at: usize) -> Option<(Arc<Folder>, usize)> {
        match &*self.0 {
            Rows::Folder(folder) => Some((folder.clone(), at)),
            Rows::Part(of, index) => of.picture(index[at]),
            Rows::Sum(parts) => {
                let (part, at) = place(parts, at);
                parts[part].picture(at)
            }
            Rows::Mapped(of, ..) => of.picture(at),
            Rows::Tensors(..) | Rows::Values(_) | Rows::Function { .. } => None,
        }
    }
}

/// Calls a closure of a map with the map as its `this`; what it changes there, later calls see.
pub fn call_in(this: Option<&Mutex<Dynamic>>, caller: &Caller, closure: &FnPtr, values: Vec<Dynamic>) -> Native {
    let Some(held) = this else { return caller.call(closure, values) };
    let mut own = held.lock().clone();
    let result = caller.call_on(closure, Some(&mut own), values);
    *held.lock() = own;
    result
}

/// Which part of a concatenation contains a row, and the index there.
fn place(parts: &[Dataset], mut at: usize) -> (usize, usize) {
    let mut part = 0;
    while at >= parts[part].row_count() {
        at -= parts[part].row_count();
        part += 1;
    }
    (part, at)
}

fn tensor_row(engine: &mut Engine, fields: &[(Identifier, Tensor)], at: usize) -> Result<Dynamic> {
    let mut row = Map::new();
    for (name, tensor) in fields {
        let part = engine.call_row(&SELECT, args![tensor, 0i64, at as i64])?;
        row.insert(name.clone(), Dynamic::from(part));
    }
    Ok(batch_of(row))
}

/// Rows as the script gets them: a tensor for a single tensor, a map for several.
pub fn batch_of(mut fields: Map) -> Dynamic {
    match fields.remove("") {
        Some(alone) => alone,
        None => fields.into(),
    }
}

/// Any value that is a dataset: a map of tensors, an array of rows, a tensor, a map with `len` and `get`.
pub fn dataset(host: &Arc<Host>, context: &rhai::NativeCallContext, value: &Dynamic) -> Result<Dataset> {
    if let Some(dataset) = value.read_lock::<Dataset>() {
        return Ok(dataset.clone());
    }
    if let Some(array) = value.read_lock::<Array>() {
        return Ok(Dataset(Arc::new(Rows::Values(array.clone()))));
    }
    if let Some(tensor) = value.read_lock::<Tensor>() {
        let Some(&rows) = tensor.shape().first() else { fail!(SHAPE, "a tensor without dimensions has no rows") };
        return Ok(Dataset(Arc::new(Rows::Tensors(vec![("".into(), tensor.clone())], rows))));
    }
    let Some(map) = value.read_lock::<Map>().map(|map| map.clone()) else {
        fail!(
            ARGUMENT_TYPE,
            "a dataset is a map of tensors, an array of rows, or what `data::from_fn` gives, not {}",
            type_names::of_value(value)
        );
    };
    if let (Some(len), Some(get)) = (map.get("len"), map.get("get").and_then(|get| get.clone().try_cast::<FnPtr>())) {
        return function(host, context, len, get, Some(value.flatten_clone()));
    }
    let (fields, size) = fields(map)?;
    Ok(Dataset(Arc::new(Rows::Tensors(fields, size))))
}

/// A length argument.
fn length(value: &Dynamic) -> String {
    value.as_int().map_or_else(|_| type_names::of_value(value), |n| n.to_string())
}

fn function(
    host: &Arc<Host>,
    context: &rhai::NativeCallContext,
    len: &Dynamic,
    get: FnPtr,
    this: Option<Dynamic>,
) -> Result<Dataset> {
    match len.as_int().map(usize::try_from) {
        Ok(Ok(count)) => {
            let (this, caller) = (this.map(Mutex::new), Caller::new(host, context));
            Ok(Dataset(Arc::new(Rows::Function { count, get, this, caller })))
        }
        _ => fail!(ARGUMENT_TYPE, "the length of a dataset is an integer of 0 or more, not {}", length(len)),
    }
}

/// The tensors of a dataset by name, all of one length.
pub fn fields(map: Map) -> Result<(Vec<(Identifier, Tensor)>, usize)> {
    let mut fields: Vec<(Identifier, Tensor)> = Vec::new();
    let mut size = None;
    for (name, value) in map {
        let Some(tensor) = value.read_lock::<Tensor>().map(|tensor| tensor.clone()) else {
            let text = format!("`{name}` of a dataset is a tensor, not {}", type_names::of_value(&value));
            let diag = Diag::error(code::ARGUMENT_TYPE, text);
            return Err(match (value.is_map(), value.is_array()) {
                (true, _) => diag.help("a map of tensors is a dataset by itself: `data::loader(#{x: x, y: y})`"),
                (_, true) => diag.help("an array becomes one by `tensor(..)`"),
                _ => diag,
            });
        };
        let Some(&rows) = tensor.shape().first() else { fail!(SHAPE, "`{name}` of the dataset has no rows") };
        if let Some((first, expected)) = size.as_ref().map(|n| (&fields[0].0, *n)).filter(|(_, n)| *n != rows) {
            fail!(SHAPE, "`{name}` of the dataset has {rows} rows, `{first}` has {expected}");
        }
        size = Some(rows);
        fields.push((name, tensor));
    }
    match size {
        Some(size) => Ok((fields, size)),
        None => fail!(VALUE, "the dataset has no tensors"),
    }
}

/// Row indices of a script; negative ones count from the end.
pub fn positions(host: &Arc<Host>, value: &Dynamic, size: usize) -> Result<Vec<usize>> {
    let numbers: Vec<i64> = match value.read_lock::<Tensor>() {
        Some(tensor) if tensor.dtype().is_float() || tensor.ndim() != 1 => fail!(
            ARGUMENT_TYPE,
            "row numbers are integers in one dimension, not {} of shape {:?}",
            tensor.dtype(),
            tensor.shape().as_slice()
        ),
        Some(tensor) => crate::tensor::observe::scalars(&host.rt, &tensor)?.into_iter().map(|n| n.to_i64()).collect(),
        None => convert::ints(host, value)?.into_iter().collect(),
    };
    let one = |n: i64| match usize::try_from(if n < 0 { n.saturating_add(size as i64) } else { n }) {
        Ok(at) if at < size => Ok(at),
        _ => fail!(VALUE, "there is no row {n} in a dataset of {size}"),
    };
    numbers.into_iter().map(one).collect()
}

/// `d[i]`: the row as a loader gets it, before it becomes part of a batch.
fn indexed(module: &mut Natives, host: &Arc<Host>) {
    let shared = host.clone();
    let get = GuardedCall::new(move |context, values| -> Native {
        let context = context.expect("registered with a context");
        let of = values[0].read_lock::<Dataset>().expect("registered for datasets").clone();
        let (asked, size) = (values[1].as_int().unwrap_or(0), of.row_count());
        let at = if asked < 0 { asked.saturating_add(size as i64) } else { asked };
        match usize::try_from(at).ok().filter(|&at| at < size) {
            Some(at) => of.row(&shared, shared.origin(&context), at, shared.rt.default_device(), None),
            None => {
                let text = format!("index {asked} is out of range for this dataset of {size} rows");
                Err(shared.raise(&context, Diag::error(code::INDEX, text), "indexed here"))
            }
        }
    });
    let types = [TypeId::of::<Dataset>(), TypeId::of::<i64>()];
    FuncRegistration::new_index_getter().place_shared_in(&mut module.module, types, &get);
}

pub fn register(module: &mut Natives, host: &Arc<Host>) {
    constructors(module, host);
    indexed(module, host);
    columns::register(module, host);
    let shared = host.clone();
    raw(module, "_rows", 1, move |context, values| -> Native {
        let context = context.expect("registered with a context");
        shared.call(&context, |_| Ok(Dynamic::from_int(dataset(&shared, &context, values[0])?.row_count() as i64)))
    });
    // `_get(dataset, i)`.
    let shared = host.clone();
    raw(module, "_get", 2, move |context, values| -> Native {
        let context = context.expect("registered with a context");
        let (of, at) = shared.call(&context, |_| {
            let of = dataset(&shared, &context, values[0])?;
            let at = positions(&shared, values[1], of.row_count())?;
            Ok((of, at))
        })?;
        of.row(&shared, shared.origin(&context), at[0], shared.rt.default_device(), None)
    });
    FuncRegistration::new("len")
        .in_global_namespace()
        .place_in(&mut module.module, |dataset: Dataset| dataset.row_count() as i64);
    let shared = host.clone();
    crate::script::values::panics::place_iterator(&mut module.module, TypeId::of::<Dataset>(), move |value| {
        let Some(dataset) = value.try_cast::<Dataset>() else { return Box::new(std::iter::empty()) };
        Box::new(iterate(&shared, dataset))
    });
}

/// Row by row.
pub fn iterate(host: &Arc<Host>, dataset: Dataset) -> impl Iterator<Item = Native> + use<> {
    let host = host.clone();
    (0..dataset.row_count()).map(move |at| dataset.row(&host, Origin::NONE, at, host.rt.default_device(), None))
}

fn closure(value: &Dynamic) -> Result<FnPtr> {
    let wrong =
        || Diag::error(code::ARGUMENT_TYPE, format!("a closure is expected, not {}", type_names::of_value(value)));
    value.clone().try_cast::<FnPtr>().ok_or_else(wrong)
}

fn constructors(module: &mut Natives, host: &Arc<Host>) {
    // `_function(len, get)`, `_mapped(dataset, f)`, `_part(dataset, rows)`, `_sum([datasets])`.
    type Make = fn(&Arc<Host>, &rhai::NativeCallContext, &[&mut Dynamic]) -> Result<Dataset>;
    let makes: [(&str, usize, Make); 4] = [
        ("_function", 2, |host, context, values| function(host, context, values[0], closure(values[1])?, None)),
        ("_mapped", 2, |host, context, values| {
            let (of, f) = (dataset(host, context, values[0])?, closure(values[1])?);
            Ok(Dataset(Arc::new(Rows::Mapped(of, f, Caller::new(host, context)))))
        }),
        ("_part", 2, |host, context, values| {
            let of = dataset(host, context, values[0])?;
            let index = positions(host, values[1], of.row_count())?;
            Ok(Dataset(Arc::new(Rows::Part(of, index))))
        }),
        ("_sum", 1, |host, context, values| {
            let Some(parts) = values[0].read_lock::<Array>().map(|parts| parts.clone()) else {
                fail!(ARGUMENT_TYPE, "an array of datasets is expected, not {}", type_names::of_value(values[0]));
            };
            let parts: Result<Vec<Dataset>> = parts.iter().map(|part| dataset(host, context, part)).collect();
            Ok(Dataset(Arc::new(Rows::Sum(parts?))))
        }),
    ];
    for (name, arity, make) in makes {
        let shared = host.clone();
        raw(module, name, arity, move |context, values| -> Native {
            let context = context.expect("registered with a context");
            shared.call(&context, |_| make(&shared, &context, values).map(Dynamic::from))
        });
    }
    let shared = host.clone();
    raw(module, "_folder", 2, move |context, values| -> Native {
        let context = context.expect("registered with a context");
        shared.call(&context, |_| {
            let folder = Folder::open(&shared, values[0], values[1])?;
            Ok(Dynamic::from(Dataset(Arc::new(Rows::Folder(Arc::new(folder))))))
        })
    });
}
