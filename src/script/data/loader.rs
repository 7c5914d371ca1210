//! `data::loader` as a value: iterates over a dataset batch by batch, in order, shuffled or by a sampler. Random
//! numbers are drawn from the session's or the loader's generator when a loop begins, on the script's own thread.

use crate::args;
use crate::base::code;
use crate::base::device_id::DeviceId;
use crate::base::diag::{Diag, Result};
use crate::base::dtype::DType;
use crate::base::rng::Generator;
use crate::base::span::Origin;
use crate::fail;
use crate::op::args::Arg;
use crate::op::emit::Emit;
use crate::op::rows::random::distributions::RANDPERM;
use crate::op::rows::shape::view::SELECT;
use crate::op::table;
use crate::sched::execute::device_prefetch::{BatchPace, LastTarget};
use crate::sched::runtime::Runtime;
use crate::script::bind::rows::{Natives, raw};
use crate::script::data::collate::collate;
use crate::script::data::dataset;
use crate::script::data::dataset::{Dataset, Rows};
use crate::script::data::images::Picture;
use crate::script::data::position::{Extent, Position, Source};
use crate::script::data::prefetch::{Prefetch, Rows as AheadRows};
use crate::script::host::Host;
use crate::script::host::caller::Caller;
use crate::script::values::generator::{Drawing, GeneratorValue};
use crate::script::values::panics::{GuardedCall, Place};
use crate::script::values::raise::Native;
use crate::script::values::raise::at_iterator;
use crate::script::values::type_names;
use crate::script::values::types::Tensor;
use crate::tensor::engine::Engine;
use crate::tensor::{index, movement};
use parking_lot::Mutex;
use rhai::{Array, Dynamic, FnPtr, Identifier, Map, NativeCallContext};
use std::ops::Range;
use std::sync::Arc;

/// Bound: row indices of one loop that are listed in memory (2 GiB of them).
const MAX_ROWS: usize = 1 << 28;

/// A dataset and how to iterate over it.
#[derive(Clone)]
pub struct Loader(Arc<Plan>);

struct Plan {
    host: Arc<Host>,
    dataset: Dataset,
    order: Order,
    /// Rows of one loop.
    size: usize,
    boundaries: Boundaries,
    pin: bool,
    /// Batches that a thread prefetches.
    ready: usize,
    collate: Option<FnPtr>,
    transform: Option<FnPtr>,
    /// What draws the order; the session's generator if none.
    generator: Option<GeneratorValue>,
    caller: Caller,
    position: Position,
    /// Where the loader was created: iteration has no source position of its own.
    origin: Origin,
}

/// Batch boundaries in the order of the rows.
enum Boundaries {
    /// Batches of equal size; an incomplete last one is dropped or not.
    Every { rows: usize, drop_last: bool },
    /// No batches: single rows.
    Singly,
    /// The first row of each batch, and the end.
    At(Vec<usize>),
}

impl Boundaries {
    /// The number of batches of a loop over `size` rows.
    fn count(&self, size: usize) -> usize {
        match self {
            Boundaries::Every { rows, drop_last: true } => size / rows,
            Boundaries::Every { rows, drop_last: false } => size.div_ceil(*rows),
            Boundaries::Singly => size,
            Boundaries::At(starts) => starts.len().saturating_sub(1),
        }
    }

    /// The rows of batch `number`.
    fn rows(&self, number: usize, size: usize) -> Range<usize> {
        match self {
            Boundaries::Every { rows, .. } => number * rows..((number + 1) * rows).min(size),
            Boundaries::Singly => number..number + 1,
            Boundaries::At(starts) => starts[number]..starts[number + 1],
        }
    }
}

enum Order {
    Natural,
    Shuffled,
    /// A closure that returns new row indices for each loop.
    /// The closure `draw` of a map, which is its `this`.
    Drawn(FnPtr, Mutex<Dynamic>),
    Rows(Vec<usize>),
}

impl Loader {
    /// The number of batches of one loop.
    pub fn batch_count(&self) -> usize {
        self.0.boundaries.count(self.0.size)
    }

    fn extent(&self) -> Extent {
        Extent {
            rows: self.0.dataset.row_count(),
            size: self.0.size,
            batches: self.batch_count(),
            is_shuffled: matches!(self.0.order, Order::Shuffled),
            is_sampled: matches!(self.0.order, Order::Drawn(..)),
        }
    }
}

/// One loop over a loader.
pub struct Batches {
    loader: Loader,
    /// The loop's number among those of its loader.
    number: u64,
    next: usize,
    /// What the order follows from, where it was loaded.
    loaded: Option<Source>,
    loop_state: Option<LoopState>,
}

/// State that is fixed when a loop begins.
struct LoopState {
    source: Source,
    /// The thread that copies rows into pinned memory, if possible.
    rows_ahead: Option<AheadRows>,
    offered_batches: OfferedBatches,
    /// The order as a tensor, for datasets of tensors; none for the natural order.
    picked: Option<Tensor>,
    /// The order as numbers, for other datasets.
    rows: Vec<usize>,
    device_prefetch: Option<Prefetch>,
}

impl Plan {
    fn engine(&self) -> Engine {
        Engine::new(self.host.rt.clone(), self.origin)
    }

    /// The state of a loop that gives the batches from `first` on.
    fn begin(
        &self,
        first: usize,
        count: usize,
        loaded: Option<Source>,
    ) -> std::result::Result<LoopState, Box<rhai::EvalAltResult>> {
        let told = |diag| at_iterator(diag, self.origin);
        let listed = |rows: &[usize]| rows.iter().map(|&at| Dynamic::from_int(at as i64)).collect::<Array>().into();
        let mut source = Source::Fixed;
        let drawn: Option<Dynamic> = match (&self.order, loaded) {
            (Order::Natural, _) => None,
            (Order::Shuffled, loaded) => {
                let (order, generator) = self.shuffled(loaded).map_err(told)?;
                source = Source::Generator(generator);
                Some(Dynamic::from(order))
            }
            (Order::Drawn(..), Some(Source::Rows(rows))) => Some(listed(&rows)),
            (Order::Drawn(draw, this), _) => Some(dataset::call_in(Some(this), &self.caller, draw, Vec::new())?),
            (Order::Rows(rows), _) => Some(listed(rows)),
        };
        if self.by_tensors() && matches!(self.order, Order::Natural | Order::Shuffled) {
            let picked = drawn.and_then(|drawn| drawn.try_cast::<Tensor>());
            let rows_ahead =
                if self.pin { self.rows_ahead(picked.as_ref(), first, count).map_err(told)? } else { None };
            return Ok(LoopState {
                source,
                picked,
                rows: Vec::new(),
                device_prefetch: None,
                rows_ahead,
                offered_batches: OfferedBatches::default(),
            });
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
        if matches!(self.order, Order::Drawn(..)) {
            source = Source::Rows(rows.as_slice().into());
        }
        let plan: Option<Vec<_>> = (first..count)
            .map(|number| {
                rows[self.boundaries.rows(number, self.size)]
                    .iter()
                    .map(|&at| self.dataset.picture(at))
                    .collect::<Option<Vec<_>>>()
            })
            .collect();
        let device_prefetch = plan.filter(|_| self.ready > 0).and_then(|plan| Prefetch::start(plan, self.ready));
        let tensors = self.by_tensors() && self.pin;
        let rows_ahead = if tensors { self.gather(rows.clone(), first, count).map_err(told)? } else { None };
        let offered_batches = OfferedBatches::default();
        Ok(LoopState { source, picked: None, rows, device_prefetch, rows_ahead, offered_batches })
    }

    /// Row indices in random order, on the CPU for every default device, and the generator that they follow from: the
    /// loader's, the session's, or that of a loop that goes on, which leaves both where they are.
    fn shuffled(&self, loaded: Option<Source>) -> Result<(Tensor, Generator)> {
        let from = match loaded {
            Some(Source::Generator(then)) => Some(GeneratorValue::at(DeviceId::Cpu, then)),
            _ => self.generator.clone(),
        };
        let _drawing = from.map(|from| Drawing::from(&self.host.rt, from));
        let first = self.host.rt.generator();
        let order = self.engine().call_row(&RANDPERM, args![self.dataset.row_count() as i64, Arg::None, DeviceId::Cpu]);
        Ok((order?, first))
    }

    /// A thread that copies the rows of the next batches into pinned memory; none for more rows than can be listed.
    fn rows_ahead(&self, picked: Option<&Tensor>, first: usize, count: usize) -> Result<Option<AheadRows>> {
        if self.size > MAX_ROWS {
            return Ok(None);
        }
        let rows = match picked {
            None => (0..self.size).collect(),
            Some(picked) => dataset::positions(&self.host, &Dynamic::from(picked.clone()), self.dataset.row_count())?,
        };
        self.gather(rows, first, count)
    }

    fn gather(&self, rows: Vec<usize>, first: usize, count: usize) -> Result<Option<AheadRows>> {
        let Rows::Tensors(fields, _) = &*self.dataset.0 else { return Ok(None) };
        if self.ready == 0 || matches!(self.boundaries, Boundaries::Singly) || self.host.rt.gpu_count() == 0 {
            return Ok(None);
        }
        let batches = (first..count).map(|number| rows[self.boundaries.rows(number, self.size)].to_vec()).collect();
        Ok(AheadRows::start(&self.host.rt, fields, batches, first, self.ready, self.origin))
    }

    /// Whether batches are slices of tensors.
    fn by_tensors(&self) -> bool {
        matches!(&*self.dataset.0, Rows::Tensors(..)) && self.collate.is_none()
    }

    fn batch(&self, loop_state: &mut LoopState, number: usize) -> Native {
        let Range { start, end } = self.boundaries.rows(number, self.size);
        let count = end - start;
        if self.pin {
            let paced = self.host.rt.limit_batches_in_flight(&mut loop_state.offered_batches.pace);
            paced.map_err(|diag| at_iterator(diag, self.origin))?;
        }
        let ready = loop_state.rows_ahead.as_mut().and_then(|device_prefetch| device_prefetch.take(number));
        let batch = match &*self.dataset.0 {
            _ if ready.is_some() => dataset::batch_of(ready.expect("it was asked for")),
            Rows::Tensors(fields, _) if self.collate.is_none() => {
                self.slices(fields, loop_state, start, count).map_err(|diag| at_iterator(diag, self.origin))?
            }
            _ => self.rows(loop_state, start, count)?,
        };
        let batch = if self.pin {
            pinned(&mut self.engine(), batch).map_err(|diag| at_iterator(diag, self.origin))?
        } else {
            batch
        };
        if self.pin {
            loop_state.offered_batches.next(self, &batch);
            if let Some(next) =
                loop_state.rows_ahead.as_mut().and_then(|device_prefetch| device_prefetch.peek(number + 1))
            {
                loop_state.offered_batches.copy_ahead(self, &next.clone().into());
            }
        }
        match &self.transform {
            Some(f) => self.caller.call(f, vec![batch]),
            None => Ok(batch),
        }
    }

    fn slices(
        &self,
        fields: &[(Identifier, Tensor)],
        loop_state: &LoopState,
        start: usize,
        count: usize,
    ) -> Result<Dynamic> {
        let mut engine = self.engine();
        let picked = match &loop_state.picked {
            Some(order) => Some(call(&mut engine, "narrow", args![order, 0i64, start as i64, count as i64])?),
            None if loop_state.rows.is_empty() => None,
            None => {
                let bytes: Vec<u8> =
                    loop_state.rows[start..start + count].iter().flat_map(|&at| (at as i64).to_le_bytes()).collect();
                Some(engine.upload(&bytes, &[count], DType::I64, DeviceId::Cpu)?)
            }
        };
        let mut batch = Map::new();
        for (name, tensor) in fields {
            let rows = match &picked {
                Some(picked) => index::get(&mut engine, tensor, vec![index::Item::Tensor(picked.clone())])?,
                None => call(&mut engine, "narrow", args![tensor, 0i64, start as i64, count as i64])?,
            };
            let rows = if matches!(self.boundaries, Boundaries::Singly) {
                engine.call_row(&SELECT, args![&rows, 0i64, 0i64])?
            } else {
                rows
            };
            batch.insert(name.clone(), Dynamic::from(rows));
        }
        Ok(dataset::batch_of(batch))
    }

    fn rows(&self, loop_state: &mut LoopState, start: usize, count: usize) -> Native {
        let mut pictures: Vec<Option<Picture>> = match loop_state.device_prefetch.as_mut().and_then(Prefetch::take) {
            Some(read) => read.map_err(|diag| at_iterator(diag, self.origin))?.into_iter().map(Some).collect(),
            None => Vec::new(),
        };
        pictures.resize_with(count, || None);
        let numbers = loop_state.rows[start..start + count].iter().zip(pictures);
        // Rows to be pinned are created on the host.
        let device = if self.pin { DeviceId::Cpu } else { self.host.rt.default_device() };
        let row = |(&at, picture)| self.dataset.row(&self.host, self.origin, at, device, picture);
        let mut rows = numbers.map(row).collect::<std::result::Result<Vec<Dynamic>, _>>()?;
        if matches!(self.boundaries, Boundaries::Singly) {
            let row = rows.pop().unwrap_or_default();
            return self.collate.as_ref().map_or(Ok(row.clone()), |f| self.caller.call(f, vec![row]));
        }
        match &self.collate {
            Some(f) => self.caller.call(f, vec![rows.into_iter().collect::<Array>().into()]),
            None => collate(&mut self.engine(), rows, device).map_err(|diag| at_iterator(diag, self.origin)),
        }
    }
}

/// Pinned batches whose copies use a separate stream: the one that the script has, and the next.
#[derive(Default)]
struct OfferedBatches {
    /// By the index of a tensor in its batch.
    last_targets: Vec<Arc<LastTarget>>,
    offered: Vec<Tensor>,
    device_prefetch: Vec<Tensor>,
    pace: BatchPace,
    /// Known once a batch was offered.
    rt: Option<Arc<Runtime>>,
}

impl OfferedBatches {
    /// The script gets this batch: the previous one is not offered any more.
    fn next(&mut self, plan: &Plan, batch: &Dynamic) {
        let rt = self.rt.get_or_insert_with(|| plan.host.rt.clone());
        let tensors = tensors(batch);
        let is_new = |old: &&Tensor| !tensors.iter().any(|new| new.view().buffer.id == old.view().buffer.id);
        self.offered.iter().filter(is_new).for_each(|old| rt.withdraw(&old.view()));
        let known: Vec<u64> = self.device_prefetch.drain(..).map(|tensor| tensor.view().buffer.id).collect();
        self.last_targets.resize_with(tensors.len().max(self.last_targets.len()), Arc::default);
        for (tensor, last_targets) in tensors.iter().zip(&self.last_targets) {
            if !known.contains(&tensor.view().buffer.id) {
                rt.offer(&tensor.view(), last_targets);
            }
        }
        self.offered = tensors;
    }

    /// The batch after that is ready: starts the copies that the script requested for the last one.
    fn copy_ahead(&mut self, plan: &Plan, batch: &Dynamic) {
        self.device_prefetch = tensors(batch);
        for (tensor, last_targets) in self.device_prefetch.iter().zip(&self.last_targets) {
            plan.host.rt.offer(&tensor.view(), last_targets);
            plan.host.rt.copy_ahead(&tensor.view(), plan.origin);
        }
    }
}

impl Drop for OfferedBatches {
    fn drop(&mut self) {
        // The copies of a loop that was left early are dropped with it.
        if let Some(rt) = &self.rt {
            self.offered.iter().chain(&self.device_prefetch).for_each(|tensor| rt.withdraw(&tensor.view()));
        }
    }
}

/// The tensors of a batch, in an order that depends only on its structure.
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

/// Pinned copies of the tensors of a batch, if the runtime has pinned memory.
fn pinned(engine: &mut Engine, batch: Dynamic) -> Result<Dynamic> {
    if let Some(map) = batch.read_lock::<Map>().map(|map| map.clone()) {
        let pin = |(name, value)| -> Result<_> { Ok((name, pinned(engine, value)?)) };
        return Ok(Dynamic::from_map(crate::base::order::try_map(map.into_iter().map(pin))?));
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

fn call(engine: &mut Engine, name: &str, mut args: crate::op::args::Args) -> Result<Tensor> {
    let Some(op) = table::find(name) else { fail!(INTERNAL, "there is no operation `{name}`") };
    args.0.resize(op.params.len(), crate::op::args::Arg::None);
    engine.call_row(op, args)
}

impl Iterator for Batches {
    type Item = Native;

    fn next(&mut self) -> Option<Native> {
        let count = self.loader.batch_count();
        let plan = self.loader.0.clone();
        if self.next >= count {
            plan.position.ended(self.number);
            return None;
        }
        let number = self.next;
        self.next += 1;
        let begun = match self.loop_state.take() {
            Some(loop_state) => Ok(loop_state),
            None => plan.begin(number, count, self.loaded.take()),
        };
        let result = begun.and_then(|loop_state| {
            let loop_state = self.loop_state.insert(loop_state);
            // What the batch's closures see is that it was given.
            plan.position.gave(self.number, self.next, &loop_state.source);
            plan.batch(loop_state, number)
        });
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
        let (number, begun) = self.0.position.enter();
        let next = begun.as_ref().map_or(0, |begun| begun.given);
        Batches { loader: self, number, next, loaded: begun.map(|begun| begun.source), loop_state: None }
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
    let (boundaries, order, size) = match options.get("batch_sampler").filter(|batches| !batches.is_unit()) {
        Some(batches) => listed(host, batches, dataset.row_count())?,
        None if flag("singly") => (Boundaries::Singly, order, size),
        None => (Boundaries::Every { rows: count("batch_size", 1)?, drop_last: flag("drop_last") }, order, size),
    };
    Ok(Loader(Arc::new(Plan {
        host: host.clone(),
        dataset,
        order,
        size,
        boundaries,
        pin: flag("pin_memory"),
        ready: count("prefetch", 0)?,
        collate: closure("collate")?,
        transform: closure("transform")?,
        generator: generator(options.get("generator"))?,
        caller: Caller::new(host, context),
        position: Position::default(),
        origin: host.origin(context),
    })))
}

/// The option `generator`.
fn generator(given: Option<&Dynamic>) -> Result<Option<GeneratorValue>> {
    let Some(given) = given.filter(|given| !given.is_unit()) else { return Ok(None) };
    match given.read_lock::<GeneratorValue>() {
        Some(generator) => Ok(Some(generator.clone())),
        None => fail!(
            ARGUMENT_TYPE,
            "`loader`: `generator` is what `generator()` made, not {}",
            type_names::of_value(given)
        ),
    }
}

/// `batch_sampler`: an array with the row indices of each batch.
fn listed(host: &Arc<Host>, batches: &Dynamic, rows: usize) -> Result<(Boundaries, Order, usize)> {
    let Some(batches) = batches.read_lock::<Array>().map(|batches| batches.clone()) else {
        let found = type_names::of_value(batches);
        fail!(ARGUMENT_TYPE, "`loader`: `batch_sampler` is an array with the row numbers of each batch, not {found}");
    };
    let (mut starts, mut indices) = (vec![0], Vec::new());
    for batch in &batches {
        let batch = dataset::positions(host, batch, rows)?;
        if batch.is_empty() {
            fail!(VALUE, "`loader`: batch {} of `batch_sampler` has no rows", starts.len() - 1);
        }
        indices.extend(batch);
        starts.push(indices.len());
    }
    let size = indices.len();
    Ok((Boundaries::At(starts), Order::Rows(indices), size))
}

/// A sampler: row indices, or a map with `size` and the closure `draw`.
fn sampled(host: &Arc<Host>, sampler: &Dynamic, rows: usize) -> Result<(Order, usize)> {
    let Some(map) = sampler.read_lock::<Map>().map(|map| map.clone()) else {
        let indices = dataset::positions(host, sampler, rows)?;
        let size = indices.len();
        return Ok((Order::Rows(indices), size));
    };
    let draw = map.get("draw").and_then(|draw| draw.clone().try_cast::<FnPtr>());
    let size = map.get("size").and_then(|size| size.as_int().ok()).and_then(|size| usize::try_from(size).ok());
    match (draw, size) {
        (Some(draw), Some(size)) => Ok((Order::Drawn(draw, Mutex::new(sampler.flatten_clone())), size)),
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
    properties(module);
    states(module, host);
    crate::script::values::panics::place_iterator(&mut module.module, std::any::TypeId::of::<Loader>(), |value| {
        match value.try_cast::<Loader>() {
            Some(loader) => Box::new(loader.into_iter()),
            None => Box::new(std::iter::empty()),
        }
    });
}

fn properties(module: &mut Natives) {
    type Field = fn(&Plan) -> Dynamic;
    let all: [(&str, Field); 3] = [
        ("dataset", |plan| Dynamic::from(plan.dataset.clone())),
        ("batch_size", |plan| match &plan.boundaries {
            Boundaries::Every { rows, .. } => Dynamic::from_int(*rows as i64),
            Boundaries::Singly | Boundaries::At(_) => Dynamic::UNIT,
        }),
        ("drop_last", |plan| matches!(&plan.boundaries, Boundaries::Every { drop_last: true, .. }).into()),
    ];
    for (name, get) in all {
        module.note(name);
        rhai::FuncRegistration::new(format!("get${name}"))
            .in_global_namespace()
            .place_in(&mut module.module, move |loader: Loader| get(&loader.0));
    }
}

/// `state_dict()` and `load_state_dict(d)`.
fn states(module: &mut Natives, host: &Arc<Host>) {
    let of = |value: &Dynamic| value.read_lock::<Loader>().map(|loader| loader.clone());
    let state = move |_: Option<NativeCallContext>, values: &mut [&mut Dynamic]| -> Native {
        let loader = of(values[0]).expect("registered of loaders");
        Ok(loader.0.position.state(&loader.extent()).into())
    };
    let shared = host.clone();
    let load = move |context: Option<NativeCallContext>, values: &mut [&mut Dynamic]| -> Native {
        let context = context.expect("registered with a context");
        let loader = of(values[0]).expect("registered of loaders");
        let loaded = |_: &mut Engine| loader.0.position.load(&loader.extent(), values[1]).map(|()| Dynamic::UNIT);
        shared.call(&context, loaded)
    };
    let own = std::any::TypeId::of::<Loader>();
    module.place_on(own, "state_dict", 1..=1, &GuardedCall::new(state));
    module.place_on(own, "load_state_dict", 2..=2, &GuardedCall::new(load));
}
