//! `data::loader` as a value: goes over a dataset batch by batch, in order, shuffled or as a sampler says.
//! Everything random is drawn from the session's generator when a loop begins, on the script's own thread.

use crate::args;
use crate::base::code;
use crate::base::device_id::DeviceId;
use crate::base::diag::{Diag, Result};
use crate::base::dtype::DType;
use crate::base::span::Origin;
use crate::fail;
use crate::op::args::Arg;
use crate::op::emit::Emit;
use crate::op::rows::random::distributions::RANDPERM;
use crate::op::rows::shape::view::SELECT;
use crate::op::table;
use crate::sched::execute::ahead::{Pace, Wanted};
use crate::sched::runtime::Runtime;
use crate::script::bind::rows::{Natives, raw};
use crate::script::data::collate::collate;
use crate::script::data::dataset;
use crate::script::data::dataset::{Dataset, Rows};
use crate::script::data::images::Picture;
use crate::script::data::prefetch::{Ahead, Rows as AheadRows};
use crate::script::host::Host;
use crate::script::host::caller::Caller;
use crate::script::values::panics::Place;
use crate::script::values::raise::Native;
use crate::script::values::raise::at_iterator;
use crate::script::values::type_names;
use crate::script::values::types::Tensor;
use crate::tensor::engine::Engine;
use crate::tensor::{index, movement};
use rhai::{Array, Dynamic, FnPtr, Identifier, Map, NativeCallContext};
use std::ops::Range;
use std::sync::Arc;

/// Bound: row numbers of one loop that are listed in memory (2 GiB of them).
const MAX_ROWS: usize = 1 << 28;

/// A dataset and how to go over it.
#[derive(Clone)]
pub struct Loader(Arc<Plan>);

struct Plan {
    host: Arc<Host>,
    dataset: Dataset,
    order: Order,
    /// Rows of one loop.
    size: usize,
    cuts: Cuts,
    pin: bool,
    /// Batches that a thread holds ready.
    ready: usize,
    collate: Option<FnPtr>,
    transform: Option<FnPtr>,
    caller: Caller,
    /// Where the loader was made: iteration has no place of its own.
    origin: Origin,
}

/// Where one batch ends and the next begins, in the order of the rows.
enum Cuts {
    /// Batches of so many rows; a last one that is not full is left out or not.
    Every { rows: usize, drop_last: bool },
    /// No batches: the rows themselves.
    Singly,
    /// The first row of each batch, and the end.
    At(Vec<usize>),
}

impl Cuts {
    /// Batches of a loop over `size` rows.
    fn count(&self, size: usize) -> usize {
        match self {
            Cuts::Every { rows, drop_last: true } => size / rows,
            Cuts::Every { rows, drop_last: false } => size.div_ceil(*rows),
            Cuts::Singly => size,
            Cuts::At(starts) => starts.len().saturating_sub(1),
        }
    }

    /// Batch `number`, which is one of them.
    fn rows(&self, number: usize, size: usize) -> Range<usize> {
        match self {
            Cuts::Every { rows, .. } => number * rows..((number + 1) * rows).min(size),
            Cuts::Singly => number..number + 1,
            Cuts::At(starts) => starts[number]..starts[number + 1],
        }
    }
}

enum Order {
    Natural,
    Shuffled,
    /// A closure that gives row numbers anew for each loop.
    Drawn(FnPtr),
    Given(Vec<usize>),
}

impl Loader {
    /// How many batches one loop gives.
    pub fn batch_count(&self) -> usize {
        self.0.cuts.count(self.0.size)
    }
}

/// One loop over a loader.
pub struct Batches {
    loader: Loader,
    next: usize,
    begun: Option<Begun>,
}

/// What is fixed when a loop begins.
struct Begun {
    /// What a thread puts into pinned memory, where it can.
    rows_ahead: Option<AheadRows>,
    given: Given,
    /// The order as a tensor, for datasets of tensors; none for the natural order.
    picked: Option<Tensor>,
    /// The order as numbers, for all others.
    rows: Vec<usize>,
    ahead: Option<Ahead>,
}

impl Plan {
    fn engine(&self) -> Engine {
        Engine::new(self.host.rt.clone(), self.origin)
    }

    fn begin(&self, count: usize) -> std::result::Result<Begun, Box<rhai::EvalAltResult>> {
        let told = |diag| at_iterator(diag, self.origin);
        let drawn: Option<Dynamic> = match &self.order {
            Order::Natural => None,
            Order::Shuffled => Some(Dynamic::from(self.shuffled().map_err(told)?)),
            Order::Drawn(draw) => Some(self.caller.call(draw, Vec::new())?),
            Order::Given(rows) => Some(rows.iter().map(|&at| Dynamic::from_int(at as i64)).collect::<Array>().into()),
        };
        if self.by_tensors() && matches!(self.order, Order::Natural | Order::Shuffled) {
            let picked = drawn.and_then(|drawn| drawn.try_cast::<Tensor>());
            let rows_ahead = if self.pin { self.rows_ahead(picked.as_ref(), count).map_err(told)? } else { None };
            return Ok(Begun { picked, rows: Vec::new(), ahead: None, rows_ahead, given: Given::default() });
        }
        if self.size > MAX_ROWS {
            let text = format!("a loop has at most {MAX_ROWS} rows, and this one has {}", self.size);
            return Err(told(Diag::error(code::LIMIT_SIZE, text)));
        }
        let rows = match drawn {
            None => (0..self.size).collect(),
            Some(drawn) => dataset::positions(&self.host, &drawn, self.dataset.row_count()).map_err(told)?,
        };
        if rows.len() != self.size {
            let text = format!("the sampler was to give {} row numbers, and gave {}", self.size, rows.len());
            return Err(told(Diag::error(code::VALUE, text)));
        }
        let plan: Option<Vec<_>> = (0..count)
            .map(|number| {
                rows[self.cuts.rows(number, self.size)]
                    .iter()
                    .map(|&at| self.dataset.picture(at))
                    .collect::<Option<Vec<_>>>()
            })
            .collect();
        let ahead = plan.filter(|_| self.ready > 0).and_then(|plan| Ahead::start(plan, self.ready));
        let tensors = self.by_tensors() && self.pin;
        let rows_ahead = if tensors { self.gather(rows.clone(), count).map_err(told)? } else { None };
        Ok(Begun { picked: None, rows, ahead, rows_ahead, given: Given::default() })
    }

    /// Row numbers in a random order, on the CPU wherever new tensors go by default.
    fn shuffled(&self) -> Result<Tensor> {
        self.engine().call_row(&RANDPERM, args![self.dataset.row_count() as i64, Arg::None, DeviceId::Cpu])
    }

    /// A thread that puts the rows of the next batches into pinned memory; none for more rows than can be listed.
    fn rows_ahead(&self, picked: Option<&Tensor>, count: usize) -> Result<Option<AheadRows>> {
        if self.size > MAX_ROWS {
            return Ok(None);
        }
        let rows = match picked {
            None => (0..self.size).collect(),
            Some(picked) => dataset::positions(&self.host, &Dynamic::from(picked.clone()), self.dataset.row_count())?,
        };
        self.gather(rows, count)
    }

    fn gather(&self, rows: Vec<usize>, count: usize) -> Result<Option<AheadRows>> {
        let Rows::Tensors(fields, _) = &*self.dataset.0 else { return Ok(None) };
        if self.ready == 0 || matches!(self.cuts, Cuts::Singly) || self.host.rt.gpu_count() == 0 {
            return Ok(None);
        }
        let batches = (0..count).map(|number| rows[self.cuts.rows(number, self.size)].to_vec()).collect();
        Ok(AheadRows::start(&self.host.rt, fields, batches, self.ready, self.origin))
    }

    /// Are batches cut out of whole tensors?
    fn by_tensors(&self) -> bool {
        matches!(&*self.dataset.0, Rows::Tensors(..)) && self.collate.is_none()
    }

    fn batch(&self, begun: &mut Begun, number: usize) -> Native {
        let Range { start, end } = self.cuts.rows(number, self.size);
        let count = end - start;
        if self.pin {
            let paced = self.host.rt.keep_pace(&mut begun.given.pace);
            paced.map_err(|diag| at_iterator(diag, self.origin))?;
        }
        let ready = begun.rows_ahead.as_mut().and_then(|ahead| ahead.take(number));
        let batch = match &*self.dataset.0 {
            _ if ready.is_some() => dataset::batch_of(ready.expect("it was asked for")),
            Rows::Tensors(fields, _) if self.collate.is_none() => {
                self.slices(fields, begun, start, count).map_err(|diag| at_iterator(diag, self.origin))?
            }
            _ => self.rows(begun, start, count)?,
        };
        let batch = if self.pin {
            pinned(&mut self.engine(), batch).map_err(|diag| at_iterator(diag, self.origin))?
        } else {
            batch
        };
        if self.pin {
            begun.given.next(self, &batch);
            if let Some(next) = begun.rows_ahead.as_mut().and_then(|ahead| ahead.peek(number + 1)) {
                begun.given.copy_ahead(self, &next.clone().into());
            }
        }
        match &self.transform {
            Some(f) => self.caller.call(f, vec![batch]),
            None => Ok(batch),
        }
    }

    fn slices(&self, fields: &[(Identifier, Tensor)], begun: &Begun, start: usize, count: usize) -> Result<Dynamic> {
        let mut engine = self.engine();
        let picked = match &begun.picked {
            Some(order) => Some(call(&mut engine, "narrow", args![order, 0i64, start as i64, count as i64])?),
            None if begun.rows.is_empty() => None,
            None => {
                let bytes: Vec<u8> =
                    begun.rows[start..start + count].iter().flat_map(|&at| (at as i64).to_le_bytes()).collect();
                Some(engine.upload(&bytes, &[count], DType::I64, DeviceId::Cpu)?)
            }
        };
        let mut batch = Map::new();
        for (name, tensor) in fields {
            let rows = match &picked {
                Some(picked) => index::get(&mut engine, tensor, vec![index::Item::Tensor(picked.clone())])?,
                None => call(&mut engine, "narrow", args![tensor, 0i64, start as i64, count as i64])?,
            };
            let rows = if matches!(self.cuts, Cuts::Singly) {
                engine.call_row(&SELECT, args![&rows, 0i64, 0i64])?
            } else {
                rows
            };
            batch.insert(name.clone(), Dynamic::from(rows));
        }
        Ok(dataset::batch_of(batch))
    }

    fn rows(&self, begun: &mut Begun, start: usize, count: usize) -> Native {
        let mut pictures: Vec<Option<Picture>> = match begun.ahead.as_mut().and_then(Ahead::take) {
            Some(read) => read.map_err(|diag| at_iterator(diag, self.origin))?.into_iter().map(Some).collect(),
            None => Vec::new(),
        };
        pictures.resize_with(count, || None);
        let numbers = begun.rows[start..start + count].iter().zip(pictures);
        // What is to be pinned is made on the host.
        let device = if self.pin { DeviceId::Cpu } else { self.host.rt.default_device() };
        let row = |(&at, picture)| self.dataset.row(&self.host, self.origin, at, device, picture);
        let mut rows = numbers.map(row).collect::<std::result::Result<Vec<Dynamic>, _>>()?;
        if matches!(self.cuts, Cuts::Singly) {
            let row = rows.pop().unwrap_or_default();
            return self.collate.as_ref().map_or(Ok(row.clone()), |f| self.caller.call(f, vec![row]));
        }
        match &self.collate {
            Some(f) => self.caller.call(f, vec![rows.into_iter().collect::<Array>().into()]),
            None => collate(&mut self.engine(), rows, device).map_err(|diag| at_iterator(diag, self.origin)),
        }
    }
}

/// Pinned batches whose copies go over a stream of their own: the one that the script has, and the next.
#[derive(Default)]
struct Given {
    /// By the place of a tensor in its batch.
    wanted: Vec<Arc<Wanted>>,
    offered: Vec<Tensor>,
    ahead: Vec<Tensor>,
    pace: Pace,
    /// Known once something is on offer.
    rt: Option<Arc<Runtime>>,
}

impl Given {
    /// The script gets this batch: the one before is no longer on offer.
    fn next(&mut self, plan: &Plan, batch: &Dynamic) {
        let rt = self.rt.get_or_insert_with(|| plan.host.rt.clone());
        let tensors = tensors(batch);
        let is_new = |old: &&Tensor| !tensors.iter().any(|new| new.view().buffer.id == old.view().buffer.id);
        self.offered.iter().filter(is_new).for_each(|old| rt.withdraw(&old.view()));
        let known: Vec<u64> = self.ahead.drain(..).map(|tensor| tensor.view().buffer.id).collect();
        self.wanted.resize_with(tensors.len().max(self.wanted.len()), Arc::default);
        for (tensor, wanted) in tensors.iter().zip(&self.wanted) {
            if !known.contains(&tensor.view().buffer.id) {
                rt.offer(&tensor.view(), wanted);
            }
        }
        self.offered = tensors;
    }

    /// The batch after that is ready: what was asked for of the last one is copied now.
    fn copy_ahead(&mut self, plan: &Plan, batch: &Dynamic) {
        self.ahead = tensors(batch);
        for (tensor, wanted) in self.ahead.iter().zip(&self.wanted) {
            plan.host.rt.offer(&tensor.view(), wanted);
            plan.host.rt.copy_ahead(&tensor.view(), plan.origin);
        }
    }
}

impl Drop for Given {
    fn drop(&mut self) {
        // Of a loop that was left early the copies go with it.
        if let Some(rt) = &self.rt {
            self.offered.iter().chain(&self.ahead).for_each(|tensor| rt.withdraw(&tensor.view()));
        }
    }
}

/// The tensors of a batch, in an order that depends on its structure alone.
fn tensors(batch: &Dynamic) -> Vec<Tensor> {
    if let Some(tensor) = batch.read_lock::<Tensor>() {
        return vec![tensor.clone()];
    }
    if let Some(map) = batch.read_lock::<Map>() {
        return map.values().flat_map(tensors).collect();
    }
    match batch.read_lock::<Array>() {
        Some(list) => list.iter().flat_map(tensors).collect(),
        None => Vec::new(),
    }
}

/// Page-locked copies of the tensors of a batch, where the runtime has such memory.
fn pinned(engine: &mut Engine, batch: Dynamic) -> Result<Dynamic> {
    if let Some(map) = batch.read_lock::<Map>().map(|map| map.clone()) {
        let pin = |(name, value)| Ok((name, pinned(engine, value)?));
        return Ok(map.into_iter().map(pin).collect::<Result<Map>>()?.into());
    }
    if let Some(list) = batch.read_lock::<Array>().map(|list| list.clone()) {
        return Ok(list.into_iter().map(|value| pinned(engine, value)).collect::<Result<Array>>()?.into());
    }
    let tensor = batch.read_lock::<Tensor>().map(|tensor| tensor.clone());
    match tensor.filter(|tensor| !tensor.device().is_cuda() && engine.rt.gpu_count() > 0) {
        Some(tensor) => movement::pin(engine, &tensor).map(Dynamic::from),
        None => Ok(batch),
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
        let count = self.loader.batch_count();
        if self.next >= count {
            return None;
        }
        let number = self.next;
        self.next += 1;
        let plan = self.loader.0.clone();
        let result = match &mut self.begun {
            Some(begun) => plan.batch(begun, number),
            None => plan.begin(count).and_then(|begun| plan.batch(self.begun.insert(begun), number)),
        };
        if result.is_err() {
            // The loop has ended: nothing comes after an error.
            self.next = count;
        }
        Some(result)
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
        Batches { loader: self, next: 0, begun: None }
    }
}

/// A loader from a dataset and its checked options.
fn make(host: &Arc<Host>, context: &NativeCallContext, values: &[&mut Dynamic]) -> Result<Loader> {
    let dataset = dataset::dataset(host, context, values[0])?;
    let options = values[1].read_lock::<Map>().map(|map| map.clone()).unwrap_or_default();
    let flag = |name: &str| options.get(name).is_some_and(|value| value.as_bool().unwrap_or(false));
    let count = |name: &str, least: i64| match options.get(name).and_then(|value| value.as_int().ok()) {
        Some(n) if n >= least => Ok(n as usize),
        _ => fail!(VALUE, "`loader`: `{name}` must be at least {least}, and an integer"),
    };
    let closure = |name: &str| match options.get(name).filter(|value| !value.is_unit()) {
        None => Ok(None),
        Some(value) => match value.clone().try_cast::<FnPtr>() {
            Some(f) => Ok(Some(f)),
            None => fail!(ARGUMENT_TYPE, "`loader`: `{name}` is a closure, not {}", type_names::of_value(value)),
        },
    };
    let (order, size) = match options.get("sampler").filter(|sampler| !sampler.is_unit()) {
        None if flag("shuffle") => (Order::Shuffled, dataset.row_count()),
        None => (Order::Natural, dataset.row_count()),
        Some(_) if flag("shuffle") => {
            fail!(VALUE, "`loader`: a sampler decides the order, so `shuffle` cannot be true")
        }
        Some(sampler) => sampled(host, sampler, dataset.row_count())?,
    };
    let (cuts, order, size) = match options.get("batch_sampler").filter(|batches| !batches.is_unit()) {
        Some(batches) => listed(host, batches, dataset.row_count())?,
        None if flag("singly") => (Cuts::Singly, order, size),
        None => (Cuts::Every { rows: count("batch_size", 1)?, drop_last: flag("drop_last") }, order, size),
    };
    Ok(Loader(Arc::new(Plan {
        host: host.clone(),
        dataset,
        order,
        size,
        cuts,
        pin: flag("pin_memory"),
        ready: count("prefetch", 0)?,
        collate: closure("collate")?,
        transform: closure("transform")?,
        caller: Caller::new(host, context),
        origin: host.origin(context),
    })))
}

/// `batch_sampler`: an array with the row numbers of each batch.
fn listed(host: &Arc<Host>, batches: &Dynamic, rows: usize) -> Result<(Cuts, Order, usize)> {
    let Some(batches) = batches.read_lock::<Array>().map(|batches| batches.clone()) else {
        let found = type_names::of_value(batches);
        fail!(ARGUMENT_TYPE, "`loader`: `batch_sampler` is an array with the row numbers of each batch, not {found}");
    };
    let (mut starts, mut given) = (vec![0], Vec::new());
    for batch in &batches {
        let batch = dataset::positions(host, batch, rows)?;
        if batch.is_empty() {
            fail!(VALUE, "`loader`: batch {} of `batch_sampler` has no rows", starts.len() - 1);
        }
        given.extend(batch);
        starts.push(given.len());
    }
    let size = given.len();
    Ok((Cuts::At(starts), Order::Given(given), size))
}

/// A sampler: row numbers, or a map with `size` and the closure `draw`.
fn sampled(host: &Arc<Host>, sampler: &Dynamic, rows: usize) -> Result<(Order, usize)> {
    let Some(map) = sampler.read_lock::<Map>().map(|map| map.clone()) else {
        let given = dataset::positions(host, sampler, rows)?;
        let size = given.len();
        return Ok((Order::Given(given), size));
    };
    let draw = map.get("draw").and_then(|draw| draw.clone().try_cast::<FnPtr>());
    let size = map.get("size").and_then(|size| size.as_int().ok()).and_then(|size| usize::try_from(size).ok());
    match (draw, size) {
        (Some(draw), Some(size)) => Ok((Order::Drawn(draw), size)),
        _ => fail!(ARGUMENT_TYPE, "a sampler is row numbers, or a map of `size` and a closure `draw` that gives them"),
    }
}

/// `_loader(dataset, options)` and the loader's own methods.
pub fn register(module: &mut Natives, host: &Arc<Host>) {
    let shared = host.clone();
    raw(module, "_loader", 2, move |context, values| -> Native {
        let context = context.expect("registered with a context");
        shared.call(&context, |_| make(&shared, &context, values).map(Dynamic::from))
    });
    rhai::FuncRegistration::new("len")
        .in_global_namespace()
        .place_in(&mut module.module, |loader: Loader| loader.batch_count() as i64);
    crate::script::values::panics::place_iterator(&mut module.module, std::any::TypeId::of::<Loader>(), |value| {
        match value.try_cast::<Loader>() {
            Some(loader) => Box::new(loader.into_iter()),
            None => Box::new(std::iter::empty()),
        }
    });
}
