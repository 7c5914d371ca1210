//! A program over a list of tensors in one launch (foreach): each block finds its tensor in a table of sizes and
//! addresses among the arguments. A table that is too long for the arguments takes several launches.

use super::kernels::{self, BLOCK, EACH_HEAD, EachShape};
use super::space::Step;
use super::{MAX_ARGUMENTS, text};
use crate::kernel::abi::RawView;
use crate::kernel::cuda::{Gpu, GpuError, Launch, Param, Source};
use crate::kernel::program::{Class, Program};

/// Vectors of a thread. Bound: seven vectors of 16 bytes in registers, and enough blocks for small models.
const UNROLL: u64 = 1;

/// The tensors: for each its size in elements and the address of each column.
#[derive(Clone, Copy, Debug)]
pub struct Table<'a> {
    /// The column of each slot of the program.
    pub columns: &'a [usize],
    /// Number of columns.
    pub width: usize,
    /// The addresses of one tensor after the other, `width` each.
    pub addresses: &'a [u64],
    pub sizes: &'a [u64],
}

impl Table<'_> {
    /// Whether the addresses of all tensors are aligned for vectors. Operands of one element need no alignment: they
    /// are loaded as scalars.
    fn is_aligned(&self, views: &[RawView]) -> bool {
        let mut lines = 0u64;
        for (&column, view) in self.columns.iter().zip(views) {
            lines |= u64::from(step_of(view) == Step::Unit) << column;
        }
        let is_line = |column: usize| lines >> column & 1 == 1;
        let rows = self.addresses.chunks_exact(self.width.max(1));
        let mut addresses = rows.flat_map(|row| row.iter().enumerate());
        addresses.all(|(column, address)| !is_line(column) || address.is_multiple_of(16))
    }
}

/// The step of a slot along a tensor.
fn step_of(view: &RawView) -> Step {
    if view.strides.iter().all(|&stride| stride == 0) { Step::Zero } else { Step::Unit }
}

/// A step over many tensors that is prepared in its first run. The program, the views' dtypes and the number of tensors are
/// the same in each run.
#[derive(Default)]
pub struct Each {
    /// The plans for addresses that are multiples of 16, and for others.
    aligned: Option<Plan>,
    others: Option<Plan>,
}

struct Plan {
    source: Source,
    shape: EachShape,
    scalars: Vec<Option<Class>>,
    words: Vec<u64>,
}

impl Each {
    /// Queues the step. `views` are those of the largest tensor, by slot: contiguous, or scalars with stride 0. For a
    /// tensor of one element both are allowed.
    pub fn run(
        &mut self,
        program: &Program,
        views: &[RawView],
        table: &Table<'_>,
        scalars: &[u64],
        gpu: &mut dyn Gpu,
    ) -> Result<(), GpuError> {
        let aligned = table.is_aligned(views);
        let slot = if aligned { &mut self.aligned } else { &mut self.others };
        let plan = match slot {
            Some(plan) => plan,
            None => slot.insert(Plan::new(program, views, table, scalars.len(), aligned)?),
        };
        let parts =
            table.sizes.chunks(plan.shape.capacity).zip(table.addresses.chunks(plan.shape.capacity * table.width));
        for (sizes, addresses) in parts {
            plan.launch(sizes, addresses, scalars, gpu)?;
        }
        Ok(())
    }
}

impl Plan {
    fn new(
        program: &Program,
        views: &[RawView],
        table: &Table<'_>,
        scalars: usize,
        aligned: bool,
    ) -> Result<Plan, GpuError> {
        if let Some(unknown) = text::undefined_function(program) {
            return Err(GpuError::Unsupported(unknown));
        }
        let parts = text::parts(program, views, scalars);
        let steps: Vec<Step> = views.iter().map(step_of).collect();
        let smallest = views.iter().map(|view| view.dtype.size_bytes()).min().unwrap_or(4);
        let vector = if aligned { (16 / smallest as u64).clamp(2, 8) } else { 1 };
        let columns = table.width;
        let shape = |capacity| EachShape { vector, unroll: UNROLL, capacity, columns, scalars: scalars.max(1) };
        let mut capacity = table.sizes.len().next_power_of_two();
        while capacity > 1 && shape(capacity).words() * 8 > MAX_ARGUMENTS {
            capacity /= 2;
        }
        let shape = shape(capacity);
        if shape.words() * 8 > MAX_ARGUMENTS {
            return Err(GpuError::Unsupported("a step with this many operands"));
        }
        let kernel = kernels::each(&parts, views, &shape, table.columns, &steps);
        let source = Source::new(format!("{}{}{}{kernel}", parts.includes, shape.args(), parts.element));
        Ok(Plan { source, shape, scalars: parts.scalars, words: vec![0; shape.words()] })
    }

    fn launch(&mut self, sizes: &[u64], addresses: &[u64], scalars: &[u64], gpu: &mut dyn Gpu) -> Result<(), GpuError> {
        let EachShape { vector, unroll, capacity, scalars: numbers, .. } = self.shape;
        let (head, rest) = self.words.split_at_mut(EACH_HEAD);
        let (s, rest) = rest.split_at_mut(numbers);
        for ((word, &bits), class) in s.iter_mut().zip(scalars).zip(&self.scalars) {
            *word = match class {
                Some(Class::F32) => (f64::from_bits(bits) as f32).to_bits() as u64,
                _ => bits,
            };
        }
        let (n, rest) = rest.split_at_mut(capacity);
        let (first, p) = rest.split_at_mut(capacity);
        n[..sizes.len()].copy_from_slice(sizes);
        p[..addresses.len()].copy_from_slice(addresses);
        let mut blocks = 0;
        for (first, &size) in first.iter_mut().zip(sizes) {
            *first = blocks;
            blocks += (size / vector).div_ceil(BLOCK * unroll).max(1);
        }
        if blocks >= 1 << 31 {
            return Err(GpuError::Unsupported("a step over this many elements"));
        }
        head[0] = sizes.len() as u64;
        head[1..].copy_from_slice(&gpu.hold(blocks)?.words());
        let args = [Param::Words(&self.words)];
        gpu.launch(&Launch {
            source: &self.source,
            entry: "ts_foreach",
            grid: [blocks as u32, 1, 1],
            block: [BLOCK as u32, 1, 1],
            shared_bytes: 0,
            args: &args,
        })
    }
}
