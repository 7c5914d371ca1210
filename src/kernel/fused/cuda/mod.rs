//! A fused step on a GPU: generated text, and the shape of its launches.
//!
//! A step is prepared once for its shapes and strides and then run with addresses and scalars only. Reductions are merged in
//! an order that depends on shapes only, so that results never depend on timing; f32 accumulates in f32, wider types in
//! themselves.

mod foreach;
mod kernels;
pub(crate) mod space;
mod text;

pub use foreach::{Each, Table};
pub use text::memory_type;

use crate::kernel::abi::RawView;
use crate::kernel::cuda::{Gpu, GpuError, Launch, Param, Source};
use crate::kernel::program::{Class, Function, Instr, Program};
use kernels::{BLOCK, Form};
use space::{Dim, Order, Space, Step, division, pairs, step, vector};
use text::{Parts, Task};

/// Bound: bytes of kernel arguments that every supported driver accepts.
const MAX_ARGUMENTS: usize = 4096;
/// Words of `Args` before the pointers: n, m, lanes, chunk, scratch, tail, count, hold, word, bound.
const HEAD: usize = 10;
/// Indices of the words that a run fills in.
const SCRATCH: usize = 4;
const COUNT: usize = 6;
const HOLD: usize = 7;
/// Functions with a branch for each element: their elements are computed one after another, so that more threads with fewer
/// elements are faster.
const BRANCHING: [&str; 5] = ["a / b", "ts_erfinv(a)", "ts_zeta(a, b)", "ts_poisson(a, b)", "ts_binomial(a, b, c)"];
/// Bound: elements of a thread that computes one of them.
const BRANCHING_ELEMENTS: u64 = 16;
/// Bound: bytes of shared memory that need no opt-in.
const SHARED: usize = 48 << 10;

/// A step for given shapes and strides.
pub struct Ready {
    /// The plans for addresses that are multiples of 16, and for others.
    aligned: Option<Plan>,
    others: Option<Plan>,
}

/// Launches, complete except for addresses and scalars.
struct Plan {
    source: Source,
    kind: Kind,
    words: Vec<u64>,
    views: usize,
    scalars: Vec<Option<Class>>,
    fallible: usize,
    fault_at: usize,
    /// The pairs of views that it was made for.
    pairs: Vec<(usize, usize)>,
}

#[derive(Clone, Copy)]
enum Kind {
    /// There are no elements.
    Empty,
    Map {
        entry: &'static str,
        blocks: u64,
    },
    Reduce {
        entry: &'static str,
        blocks: u64,
        parts: u64,
        /// Number of results, and the size of the largest accumulator in bytes.
        results: u64,
        accumulator: usize,
    },
}

/// Whether a function has a CUDA text. Steps with one that has none are `GpuError::Unsupported`.
pub fn knows(function: &Function) -> bool {
    text::is_known(function.cuda)
}

/// A step that is prepared in its first run.
pub fn prepare() -> Ready {
    Ready { aligned: None, others: None }
}

/// Prepares and runs; callers that run a step again keep a `Ready`.
pub fn fused(
    program: &Program,
    shape: &[usize],
    views: &[RawView],
    table: &[u64],
    gpu: &mut dyn Gpu,
) -> Result<(), GpuError> {
    prepare().run(program, shape, views, table, gpu)
}

impl Ready {
    /// Queues the step. Program, shape and the views' layouts must be the same at each run; addresses and the scalar
    /// table (raw bits of f64, i64, or 0/1) may differ. Node `i` of `Check` reports to `gpu.fault_slot(i)`.
    pub fn run(
        &mut self,
        program: &Program,
        shape: &[usize],
        views: &[RawView],
        table: &[u64],
        gpu: &mut dyn Gpu,
    ) -> Result<(), GpuError> {
        // A view of one element that is broadcast is loaded as a scalar and needs no alignment.
        let moves = |view: &RawView| view.strides.iter().any(|&stride| stride != 0);
        let pairs = pairs(views);
        let aligned = |at: usize, view: &RawView| {
            !moves(view) || (view.ptr as usize).is_multiple_of(16) || pairs.iter().any(|&(_, between)| between == at)
        };
        let aligned = views.iter().enumerate().all(|(at, view)| aligned(at, view));
        let slot = if aligned { &mut self.aligned } else { &mut self.others };
        let plan = match slot {
            Some(plan) if !aligned || plan.pairs == pairs => plan,
            _ => {
                let made = plan(program, shape, views, (table.len(), aligned, pairs), gpu.multiprocessors() as u64)?;
                slot.insert(made)
            }
        };
        plan.run(views, table, gpu)
    }
}

impl Plan {
    fn run(&mut self, views: &[RawView], table: &[u64], gpu: &mut dyn Gpu) -> Result<(), GpuError> {
        if matches!(self.kind, Kind::Empty) {
            return Ok(());
        }
        for (word, view) in self.words[HEAD..].iter_mut().zip(views) {
            *word = view.ptr as u64;
        }
        // A step of one block is the only kernel of this launch: it may decide whether later launches of the step are
        // skipped.
        let blocks = if let Kind::Map { blocks, .. } = self.kind { blocks } else { u64::MAX };
        self.words[HOLD..HEAD].copy_from_slice(&gpu.hold(blocks)?.words());
        let scalars = HEAD + self.views.max(1);
        for ((word, &bits), class) in self.words[scalars..].iter_mut().zip(table).zip(&self.scalars) {
            *word = match class {
                Some(Class::F32) => (f64::from_bits(bits) as f32).to_bits() as u64,
                _ => bits,
            };
        }
        for node in 0..self.fallible {
            self.words[self.fault_at + node] = gpu.fault_slot(node)? as u64;
        }
        match self.kind {
            Kind::Empty => Ok(()),
            Kind::Map { entry, blocks } => self.launch(entry, [blocks as u32, 1, 1], gpu),
            Kind::Reduce { entry, blocks, parts, results, accumulator } => {
                (self.words[SCRATCH], self.words[COUNT]) = (0, 0);
                if parts > 1 {
                    self.words[SCRATCH] = gpu.scratch((results * parts) as usize * accumulator)? as u64;
                    // Blocks that are skipped would not increment the counter.
                    let counts = self.words[HOLD] == 0;
                    self.words[COUNT] = if counts { gpu.counters(blocks as usize) as u64 } else { 0 };
                }
                self.launch(entry, [blocks as u32, parts as u32, 1], gpu)?;
                if parts > 1 && self.words[COUNT] == 0 {
                    let n = std::mem::replace(&mut self.words[0], parts);
                    let done = self.launch("ts_reduce_finish", [blocks as u32, 1, 1], gpu);
                    self.words[0] = n;
                    done?;
                }
                Ok(())
            }
        }
    }

    fn launch(&self, entry: &str, grid: [u32; 3], gpu: &mut dyn Gpu) -> Result<(), GpuError> {
        let args = [Param::Words(&self.words)];
        gpu.launch(&Launch {
            source: &self.source,
            entry,
            grid,
            block: [BLOCK as u32, 1, 1],
            shared_bytes: 0,
            args: &args,
        })
    }
}

/// The argument words, with addresses and scalars still zero.
fn words(
    parts: &Parts,
    views: usize,
    form: &Form,
    output_dims: &[Dim],
    reduced: &[Dim],
    head: [u64; COUNT],
) -> Vec<u64> {
    let mut words = head.to_vec();
    words.resize(HEAD + views.max(1) + parts.scalars.len().max(1) + parts.fallible.max(1), 0);
    let (k, r) = (form.output_dims.max(1), form.reduced.max(1));
    let sizes = |dims: &[Dim], count: usize, words: &mut Vec<u64>| {
        let size = |d: usize| dims.get(d).map_or(1, |dim| dim.size);
        words.extend((0..count).map(size));
        words.extend((0..count).map(|d| if size(d) < 1 << 31 { division(size(d)) } else { 0 }));
    };
    sizes(output_dims, k, &mut words);
    sizes(reduced, r, &mut words);
    for (dims, count) in [(output_dims, k), (reduced, r)] {
        for column in 0..=views {
            words.extend((0..count).map(|d| dims.get(d).map_or(0, |dim| dim.strides[column] as u64)));
        }
    }
    words
}

fn plan(
    program: &Program,
    shape: &[usize],
    views: &[RawView],
    (scalars, aligned, pairs): (usize, bool, Vec<(usize, usize)>),
    multiprocessors: u64,
) -> Result<Plan, GpuError> {
    if let Some(unknown) = text::undefined_function(program) {
        return Err(GpuError::Unsupported(unknown));
    }
    let parts = text::parts(program, views, scalars);
    let functions = || {
        let function =
            |instr: &Instr| if let Instr::Apply { function, .. } = instr { Some(function.cuda) } else { None };
        program.instrs.iter().filter_map(function)
    };
    let (applies, branches) = (functions().count(), functions().any(|text| BRANCHING.contains(&text)));
    let make = Make { parts: &parts, views, aligned, pairs: &pairs, multiprocessors, applies, branches };
    let positions = program.position_strides(shape);
    let (form, kind, words, kernels) = if parts.tasks.is_empty() {
        let lead: Vec<usize> = parts.stores.iter().chain(&parts.loads).copied().collect();
        make.map(Space::new(shape, 0, &positions, views, &lead, Order::Free))
    } else {
        let order = if parts.tasks.iter().any(Task::is_position) { Order::Fixed } else { Order::Free };
        make.reduce(Space::new(shape, program.reduced, &positions, views, &parts.loads, order))
    };
    if words.len() * 8 > MAX_ARGUMENTS {
        return Err(GpuError::Unsupported("a fused step with this many operands"));
    }
    let text = format!("{}{}{}{kernels}", parts.includes, kernels::args(&parts, views.len(), &form), parts.element);
    let fault_at = HEAD + views.len().max(1) + parts.scalars.len().max(1);
    Ok(Plan {
        source: Source::new(text),
        kind,
        words,
        views: views.len(),
        fallible: parts.fallible,
        scalars: parts.scalars,
        fault_at,
        pairs,
    })
}

/// Whether a column reaches 2^31 elements from its first one, to either side.
fn is_far(output_dims: &[Dim], reduced: &[Dim]) -> bool {
    let columns = output_dims.iter().chain(reduced).map(|dim| dim.strides.len()).max().unwrap_or(0);
    let reach = |column: usize| -> u128 {
        let dims = output_dims.iter().chain(reduced);
        dims.map(|dim| dim.size as u128 * dim.strides[column].unsigned_abs() as u128).sum()
    };
    (0..columns).any(|column| reach(column) >= 1 << 31)
}

struct Make<'a> {
    parts: &'a Parts,
    views: &'a [RawView],
    aligned: bool,
    pairs: &'a [(usize, usize)],
    multiprocessors: u64,
    applies: usize,
    branches: bool,
}

type Prepared = (Form, Kind, Vec<u64>, String);

impl Make<'_> {
    /// Columns whose vectors are loaded and stored with one instruction.
    fn units(&self, steps: &[Step]) -> Vec<usize> {
        let all = self.parts.loads.iter().chain(&self.parts.stores).copied();
        all.filter(|&column| steps[column] == Step::Unit).collect()
    }

    /// Columns whose vectors begin at multiples of their length: those, and the position of random numbers.
    fn aligned_columns(&self, steps: &[Step]) -> Vec<usize> {
        let mut columns = self.units(steps);
        if self.parts.random && steps[self.views.len()] == Step::Unit {
            columns.push(self.views.len());
        }
        columns
    }

    /// As many elements as 16 bytes of the smallest type, at most 8; 1 where vectors cannot be stored or do not help. Random
    /// words are made four at a time.
    fn limit(&self, steps: &[Step]) -> u64 {
        let units = self.units(steps);
        let size = |column: usize| self.views[column].dtype.size_bytes() as u64;
        let paired = |column: usize| matches!(steps[column], Step::Pair(_) | Step::Between);
        let dense = |&column: &usize| steps[column] == Step::Unit || paired(column);
        if !self.aligned || !self.parts.stores.iter().all(dense) {
            return 1;
        }
        // Two parts of 8 bytes are 16 already.
        if let Some(widest) = (0..self.views.len()).filter(|&column| paired(column)).map(size).max() {
            return 8 / widest.max(1);
        }
        let Some(smallest) = units.iter().map(|&column| size(column)).min() else { return 1 };
        // Stores of 16 bytes lie side by side in a warp.
        let most = if self.parts.stores.iter().any(|&column| size(column) == 8) { 2 } else { 8 };
        (16 / smallest).clamp(2, most).max(if self.parts.random { 4 } else { 2 })
    }

    /// Marks the columns that are loaded and stored as pairs.
    fn mark_pairs(&self, dims: &[Dim], steps: &mut [Step]) {
        let Some((last, outer)) = dims.split_last().filter(|_| self.aligned) else { return };
        for &(first, between) in self.pairs {
            let together = |slots: &[usize]| slots.contains(&first) == slots.contains(&between);
            let even = outer.iter().all(|dim| dim.strides[first] % 2 == 0);
            if last.strides[first] == 2 && even && together(&self.parts.loads) && together(&self.parts.stores) {
                (steps[first], steps[between]) = (Step::Pair(between), Step::Between);
            }
        }
    }

    /// Vectors in flight: enough to hide the latency of memory, few enough for registers and code size. A column that stands
    /// still, where `steps` tells, is one element of each vector.
    fn unroll(&self, vector: u64, max: u64, steps: &[Step]) -> u64 {
        let bytes = |slot: usize| {
            let count = if steps.get(slot) == Some(&Step::Zero) { 1 } else { vector };
            self.views[slot].dtype.size_bytes() as u64 * count
        };
        let bytes: u64 = self.parts.loads.iter().map(|&slot| bytes(slot)).sum();
        let by_registers = 128 / bytes.max(16);
        let by_code = if self.applies > 16 { 1 } else { 64 / (vector * self.applies.max(1) as u64) };
        let by_branches = if self.branches { BRANCHING_ELEMENTS / vector } else { max };
        let unroll = by_registers.min(by_code).min(by_branches).clamp(1, max);
        1 << unroll.ilog2()
    }

    fn steps(&self, dims: &[Dim]) -> Vec<Step> {
        (0..=self.views.len()).map(|column| step(dims, column)).collect()
    }

    fn map(&self, space: Space) -> Prepared {
        let mut dims = space.output_dims;
        let n: u64 = dims.iter().map(|dim| dim.size).product();
        let mut form = Form {
            vector: 1,
            unroll: 1,
            steps: self.steps(&dims),
            output_dims: dims.len(),
            reduced: 0,
            wide: n >= 1 << 31,
            far: is_far(&dims, &[]),
        };
        let empty = n == 0;
        if !empty && let Some((crossing, tile)) = self.crossing(&mut dims) {
            let last = dims.len() - 1;
            let tiles = dims[last].size.div_ceil(tile[0]) * dims[last - 1].size.div_ceil(tile[1]);
            let blocks = tiles * dims[..last - 1].iter().map(|dim| dim.size).product::<u64>();
            if blocks < 1 << 31 {
                form.steps = self.steps(&dims);
                let words = words(self.parts, self.views.len(), &form, &dims, &[], [n, 0, 0, 0, 0, 0]);
                let text = kernels::tiles(self.parts, self.views, &form, &crossing, tile);
                return (form, Kind::Map { entry: "ts_map_tiled", blocks }, words, text);
            }
        }
        self.mark_pairs(&dims, &mut form.steps);
        let limit = self.limit(&form.steps);
        let mut v = if dims.len() == 1 { limit } else { vector(&dims, &[], &self.aligned_columns(&form.steps), limit) };
        let misfits = |v: u64| {
            let outer = &dims[..dims.len().saturating_sub(1)];
            let of_pair = |column: &usize| matches!(form.steps[*column], Step::Pair(_));
            let strides = |column: usize| outer.iter().map(move |dim| dim.strides[column].unsigned_abs());
            (0..self.views.len()).filter(of_pair).flat_map(strides).any(|stride| !stride.is_multiple_of(2 * v))
        };
        while v > 1 && misfits(v) {
            v /= 2;
        }
        form.vector = v;
        form.unroll = self.unroll(v, 4, &form.steps);
        let (whole, tail) = (n / v, n % v);
        if v > 1
            && let Some(last) = dims.last_mut()
        {
            last.size /= v;
        }
        let blocks = whole.div_ceil(BLOCK * form.unroll).max(1);
        let kind = if empty { Kind::Empty } else { Kind::Map { entry: "ts_map", blocks } };
        let words = words(self.parts, self.views.len(), &form, &dims, &[], [whole, 0, 0, 0, 0, tail]);
        let text = kernels::map(self.parts, self.views, &form);
        (form, kind, words, text)
    }

    /// Loads that are contiguous along another dim than the stores (a transpose), and the size of their tiles in shared
    /// memory: elements along the last dim, and along that other dim, which is moved to the last but one.
    fn crossing(&self, dims: &mut [Dim]) -> Option<(Vec<usize>, [u64; 2])> {
        let last = dims.len().checked_sub(1)?;
        let stores_dense = self.parts.stores.iter().all(|&slot| dims[last].strides[slot] == 1);
        let crosses = |dims: &[Dim], slot: usize, dim: usize| {
            dims[dim].strides[slot] == 1 && dims[last].strides[slot] > 1 && dims[dim].size >= 8
        };
        if !stores_dense || dims[last].size < 8 {
            return None;
        }
        let dim = (0..last).find(|&dim| self.parts.loads.iter().any(|&slot| crosses(dims, slot, dim)))?;
        let slots: Vec<usize> = self.parts.loads.iter().copied().filter(|&slot| crosses(dims, slot, dim)).collect();
        let bytes = |[across, down]: [u64; 2]| -> u64 {
            slots.iter().map(|&slot| self.views[slot].dtype.size_bytes() as u64 * down * (across + 1)).sum()
        };
        // Elements of 4 bytes: 3.71 TB/s with these tiles, 3.55 with tiles of 64 by 64 (H200).
        let small = slots.iter().all(|&slot| self.views[slot].dtype.size_bytes() < 4);
        let tile = if small { [64, 64] } else { [32, 64] };
        let tile = [tile, [32, 32]].into_iter().find(|&tile| bytes(tile) <= SHARED as u64)?;
        dims[dim..last].rotate_left(1);
        Some((slots, tile))
    }

    fn reduce(&self, space: Space) -> Prepared {
        let (output_dims, reduced) = (space.output_dims.clone(), space.reduced.clone());
        let (m, n) = (space.kept_count(), space.reduced_count());
        let accumulator: usize = self.parts.tasks.iter().map(|task| task.size_bytes.next_multiple_of(8)).sum();
        let across = self.parts.loads.iter().copied().find(|&slot| {
            let moves = |dims: &[Dim]| dims.iter().any(|dim| dim.strides[slot] != 0);
            moves(&output_dims) && moves(&reduced)
        });
        let columns = across.is_some_and(|slot| {
            step(&output_dims, slot) == Step::Unit && step(&reduced, slot) != Step::Unit && accumulator * 256 <= SHARED
        });
        let inner = if columns { &output_dims } else { &reduced };
        let outer = if columns { &reduced } else { &output_dims };
        let steps = self.steps(inner);
        let v = vector(inner, outer, &self.aligned_columns(&steps), self.limit(&steps));
        let form = Form {
            vector: v,
            unroll: if v == 1 { self.unroll(1, 8, &[]) } else { self.unroll(v, 8, &[]).max(2) },
            steps,
            output_dims: output_dims.len(),
            reduced: reduced.len(),
            wide: m >= 1 << 31 || n >= 1 << 31,
            far: is_far(&output_dims, &reduced),
        };
        let (mut output_dims, mut reduced) = (output_dims, reduced);
        let inner = if columns { &mut output_dims } else { &mut reduced };
        if let Some(last) = inner.last_mut() {
            last.size /= v;
        }
        if columns {
            self.columns(form, m, n, &output_dims, &reduced, accumulator)
        } else {
            self.rows(form, m, n, &output_dims, &reduced, accumulator)
        }
    }

    fn rows(&self, form: Form, m: u64, n: u64, output_dims: &[Dim], reduced: &[Dim], accumulator: usize) -> Prepared {
        let vectors = n / form.vector;
        let mut lanes = vectors.div_ceil(4).next_power_of_two().clamp(1, BLOCK);
        while lanes < BLOCK && lanes < vectors && m * lanes < self.multiprocessors * 512 {
            lanes *= 2;
        }
        let blocks = m.div_ceil(BLOCK / lanes).max(1);
        let (parts, chunk) = self.split(blocks, vectors, lanes * form.unroll);
        let kind = self.kind("ts_reduce_rows", m, blocks, parts, m, accumulator);
        let words = words(self.parts, self.views.len(), &form, output_dims, reduced, [vectors, m, lanes, chunk, 0, 0]);
        let text = kernels::rows(self.parts, self.views, &form);
        (form, kind, words, text)
    }

    fn columns(
        &self,
        form: Form,
        m: u64,
        n: u64,
        output_dims: &[Dim],
        reduced: &[Dim],
        accumulator: usize,
    ) -> Prepared {
        let vectors = m / form.vector;
        let blocks = vectors.div_ceil(32).max(1);
        let (parts, chunk) = self.split(blocks, n, 8 * form.unroll);
        let kind = self.kind("ts_reduce_columns", m, blocks, parts, m, accumulator);
        let words = words(self.parts, self.views.len(), &form, output_dims, reduced, [n, vectors, 0, chunk, 0, 0]);
        let text = kernels::columns_kernel(self.parts, self.views, &form);
        (form, kind, words, text)
    }

    fn kind(&self, entry: &'static str, m: u64, blocks: u64, parts: u64, results: u64, accumulator: usize) -> Kind {
        if m == 0 { Kind::Empty } else { Kind::Reduce { entry, blocks, parts, results, accumulator } }
    }

    /// The parts of a long reduction, and the units of each: a few blocks for each multiprocessor, and several iterations for
    /// each thread.
    fn split(&self, blocks: u64, units: u64, round: u64) -> (u64, u64) {
        let wanted = (self.multiprocessors * 8).div_ceil(blocks);
        let parts = wanted.min(units / (2 * round)).clamp(1, 1024);
        let chunk = units.div_ceil(parts).next_multiple_of(round).max(1);
        (units.div_ceil(chunk).max(1), chunk)
    }
}
