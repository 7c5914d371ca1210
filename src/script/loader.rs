//! `data::loader` as a value: goes over a map of tensors of one length, batch by batch, in order or shuffled.
//! The permutation is drawn from the session's generator when a loop begins.

use super::bind::{Natives, raw};
use super::convert;
use super::host::{Host, Native};
use super::value::Tensor;
use crate::args;
use crate::base::code;
use crate::base::diag::{Diag, Result};
use crate::base::span::Origin;
use crate::fail;
use crate::op::table;
use crate::tensor::engine::Engine;
use crate::tensor::index;
use rhai::{Dynamic, Map};
use std::sync::Arc;

/// A dataset and how to go over it.
#[derive(Clone)]
pub struct Loader(Arc<Plan>);

struct Plan {
    host: Arc<Host>,
    fields: Vec<(rhai::Identifier, Tensor)>,
    size: usize,
    batch: usize,
    shuffle: bool,
    drop_last: bool,
    /// Where the loader was made: iteration has no place of its own.
    origin: Origin,
}

impl Loader {
    /// How many batches one loop gives.
    pub fn batch_count(&self) -> usize {
        if self.0.drop_last { self.0.size / self.0.batch } else { self.0.size.div_ceil(self.0.batch) }
    }
}

/// One loop over a loader.
pub struct Batches {
    loader: Loader,
    next: usize,
    /// The order of this loop, drawn at its first batch.
    order: Option<Tensor>,
}

impl Batches {
    fn batch(&mut self) -> Result<Dynamic> {
        let plan = &self.loader.0;
        let mut engine = Engine::new(plan.host.rt.clone(), plan.origin);
        let start = self.next * plan.batch;
        let count = plan.batch.min(plan.size - start);
        self.next += 1;
        if plan.shuffle && self.order.is_none() {
            self.order = Some(call(&mut engine, "randperm", args![plan.size as i64])?);
        }
        let picked = match &self.order {
            Some(order) => Some(call(&mut engine, "narrow", args![order, 0i64, start as i64, count as i64])?),
            None => None,
        };
        let mut batch = Map::new();
        for (name, tensor) in &plan.fields {
            let rows = match &picked {
                Some(picked) => index::get(&mut engine, tensor, vec![index::Item::Tensor(picked.clone())])?,
                None => call(&mut engine, "narrow", args![tensor, 0i64, start as i64, count as i64])?,
            };
            batch.insert(name.clone(), Dynamic::from(rows));
        }
        Ok(batch.into())
    }
}

fn call(engine: &mut Engine, name: &str, mut given: crate::op::args::Args) -> Result<Tensor> {
    let Some(op) = table::find(name) else { fail!(INTERNAL, "there is no operation `{name}`") };
    given.0.resize(op.params.len(), crate::op::args::Arg::None);
    engine.call_row(op, given)
}

impl Iterator for Batches {
    type Item = Native;

    fn next(&mut self) -> Option<Native> {
        if self.next >= self.loader.batch_count() {
            return None;
        }
        let result = self.batch();
        if result.is_err() {
            self.next = usize::MAX / self.loader.0.batch;
        }
        Some(result.map_err(|diag| super::raise::raise(diag.or_at(self.loader.0.origin, ""), rhai::Position::NONE)))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.loader.batch_count().saturating_sub(self.next);
        (left, Some(left))
    }
}

impl IntoIterator for Loader {
    type Item = Native;
    type IntoIter = Batches;

    fn into_iter(self) -> Batches {
        Batches { loader: self, next: 0, order: None }
    }
}

/// The tensors of a dataset by name, all of one length.
fn fields(data: &Dynamic) -> Result<(Vec<(rhai::Identifier, Tensor)>, usize)> {
    let Some(map) = data.read_lock::<Map>().map(|map| map.clone()) else {
        fail!(ARGUMENT_TYPE, "a dataset is a map of tensors, not {}", convert::type_name(data));
    };
    let mut fields: Vec<(rhai::Identifier, Tensor)> = Vec::new();
    let mut size = None;
    for (name, value) in map {
        let Some(tensor) = value.read_lock::<Tensor>().map(|tensor| tensor.clone()) else {
            fail!(ARGUMENT_TYPE, "`{name}` of a dataset is a tensor, not {}", convert::type_name(&value));
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

/// `_loader(data, batch_size, shuffle, drop_last)`, `_rows(data)` and the loader's own methods.
pub fn register(module: &mut Natives, host: &Arc<Host>) {
    let shared = host.clone();
    raw(module, "_loader", 4, move |context, values| -> Native {
        let context = context.expect("registered with a context");
        let origin = shared.origin(&context);
        shared.call(&context, |_| {
            let (fields, size) = fields(values[0])?;
            let batch = values[1].as_int().ok().and_then(|n| usize::try_from(n).ok()).filter(|&n| n > 0);
            let Some(batch) = batch else {
                return Err(Diag::error(code::VALUE, "`batch_size` must be a positive integer"));
            };
            let [shuffle, drop_last] = [2, 3].map(|at: usize| values[at].as_bool().unwrap_or(false));
            Ok(Dynamic::from(Loader(Arc::new(Plan {
                host: shared.clone(),
                fields,
                size,
                batch,
                shuffle,
                drop_last,
                origin,
            }))))
        })
    });
    let shared = host.clone();
    raw(module, "_rows", 1, move |context, values| -> Native {
        let context = context.expect("registered with a context");
        shared.call(&context, |_| Ok(Dynamic::from_int(fields(values[0])?.1 as i64)))
    });
    rhai::FuncRegistration::new("len")
        .in_global_namespace()
        .set_into_module(&mut module.module, |loader: Loader| loader.batch_count() as i64);
    module.module.set_iterable_result::<Loader, Dynamic>();
}
