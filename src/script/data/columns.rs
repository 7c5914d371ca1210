//! The tensors of a dataset by their names: `d.x`, `d["x"]`, `d.x = v`, `"x" in d`, `d.keys()`. Datasets of other rows have
//! none.

use crate::base::code;
use crate::base::diag::{Diag, Result};
use crate::script::bind::rows::{Natives, raw};
use crate::script::data::dataset::{Dataset, Rows, fields};
use crate::script::host::Host;
use crate::script::values::panics::{GuardedCall, Place};
use crate::script::values::raise::Native;
use crate::script::values::type_names;
use crate::script::values::types::Tensor;
use rhai::{Array, Dynamic, FuncRegistration, ImmutableString, Map};
use std::any::TypeId;
use std::sync::Arc;

pub fn register(natives: &mut Natives, host: &Arc<Host>) {
    tables(natives, host);
    by_name(natives, host);
    asked(natives);
}

/// `_table(map)`, the dataset of a map of tensors; `_columns(dataset)`, the map of a dataset of tensors, or `()`.
fn tables(natives: &mut Natives, host: &Arc<Host>) {
    let shared = host.clone();
    raw(natives, "_table", 1, move |context, values| -> Native {
        let context = context.expect("registered with a context");
        let map = values[0].read_lock::<Map>().map(|map| map.clone()).unwrap_or_default();
        table(map).map(Dynamic::from).map_err(|diag| shared.raise(&context, diag, ""))
    });
    raw(natives, "_columns", 1, |_, values| -> Native {
        let of_map = || {
            let map = values[0].read_lock::<Map>()?.clone();
            (!map.is_empty() && map.values().all(|column| column.is::<Tensor>())).then_some(map)
        };
        let found = values[0].read_lock::<Dataset>().and_then(|dataset| dataset.columns());
        Ok(found.or_else(of_map).map_or(Dynamic::UNIT, Dynamic::from))
    });
}

fn table(map: Map) -> Result<Dataset> {
    let (fields, size) = fields(map)?;
    Ok(Dataset(Arc::new(Rows::Tensors(fields, size))))
}

fn this(values: &[&mut Dynamic]) -> Dataset {
    values[0].read_lock::<Dataset>().expect("registered for datasets").clone()
}

fn text(value: &Dynamic) -> ImmutableString {
    value.read_lock::<ImmutableString>().map(|name| name.clone()).unwrap_or_default()
}

fn by_name(natives: &mut Natives, host: &Arc<Host>) {
    let (own, name) = (TypeId::of::<Dataset>(), TypeId::of::<ImmutableString>());
    let shared = host.clone();
    let get = GuardedCall::new(move |context, values| -> Native {
        let context = context.expect("registered with a context");
        column(&this(values), &text(values[1])).map_err(|diag| shared.raise(&context, diag, ""))
    });
    FuncRegistration::new_index_getter().place_shared_in(&mut natives.module, [own, name], &get);
    let shared = host.clone();
    let set = GuardedCall::new(move |context, values| -> Native {
        let context = context.expect("registered with a context");
        let (dataset, name) = (this(values), text(values[1]));
        let changed = replaced(&dataset, &name, values[2].flatten_clone());
        let changed = changed.map_err(|diag| shared.raise(&context, diag, ""))?;
        if let Some(mut dataset) = values[0].write_lock::<Dataset>() {
            *dataset = changed;
        }
        Ok(Dynamic::UNIT)
    });
    let types = [own, name, TypeId::of::<Dynamic>()];
    FuncRegistration::new_index_setter().place_shared_in(&mut natives.module, types, &set);
}

/// `d.x`; `d.classes`, the names of the classes of images.
fn column(dataset: &Dataset, name: &str) -> Result<Dynamic> {
    let columns = dataset.columns();
    match columns.as_ref().and_then(|columns| columns.get(name)) {
        Some(column) => Ok(column.clone()),
        None if name == "classes" => Ok(classes(dataset)),
        None => Err(absent(name, columns.as_ref())),
    }
}

fn classes(dataset: &Dataset) -> Dynamic {
    match &*dataset.0 {
        Rows::Folder(folder) => folder.classes().iter().map(|name| name.into()).collect::<Array>().into(),
        Rows::Part(of, _) | Rows::Mapped(of, ..) => classes(of),
        _ => Dynamic::UNIT,
    }
}

/// The dataset with another tensor of as many rows.
fn replaced(dataset: &Dataset, name: &str, value: Dynamic) -> Result<Dataset> {
    let Some(mut columns) = dataset.columns() else { return Err(absent(name, None)) };
    if !value.is::<Tensor>() {
        let text = format!("`{name}` of a dataset is a tensor, not {}", type_names::of_value(&value));
        return Err(Diag::error(code::ARGUMENT_TYPE, text));
    }
    columns.insert(name.into(), value);
    table(columns)
}

#[cold]
fn absent(name: &str, columns: Option<&Map>) -> Box<Diag> {
    let diag = Diag::error(code::UNKNOWN_PROPERTY, format!("the dataset has no tensor `{name}`"));
    if matches!(name, "len" | "keys") {
        return diag.help(format!("`{name}` is a method: call it, `.{name}()`"));
    }
    match columns {
        Some(columns) => {
            let known: Vec<&str> = columns.keys().map(|name| name.as_str()).collect();
            diag.help(format!("it has: {}; `d[i]` is a row, `len(d)` their number", known.join(", ")))
        }
        None => diag.help("its rows are no rows of tensors; `d[i]` is a row, `len(d)` their number"),
    }
}

fn asked(natives: &mut Natives) {
    let own = TypeId::of::<Dataset>();
    let keys = GuardedCall::new(|_, values| -> Native {
        let columns = this(values).columns().unwrap_or_default();
        Ok(columns.into_keys().map(|name| name.as_str().into()).collect::<Array>().into())
    });
    natives.place_on(own, "keys", 1..=1, &keys);
    let contains = GuardedCall::new(|_, values| -> Native {
        let columns = this(values).columns().unwrap_or_default();
        Ok(columns.contains_key(text(values[1]).as_str()).into())
    });
    natives.place_on(own, "contains", 2..=2, &contains);
}
