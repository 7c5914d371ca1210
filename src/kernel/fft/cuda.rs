//! CUDA launches of the kernels in `kernel/fft/host`: lines that fit into shared memory are transformed by one launch;
//! longer ones as matrices of two shorter transforms, whose columns are turned in between; lengths with a large prime factor
//! as convolutions (Bluestein). The vendor's library does it where there is one.

use super::host::lines::{Along, Kind};
use super::host::{Task, passes};
use crate::base::dtype::DType;
use crate::base::layout::Shape;
use crate::kernel::abi::{Call, RawView};
use crate::kernel::cuda::dense::{Output, around, input};
use crate::kernel::cuda::rows::each;
use crate::kernel::cuda::specialize::{Value, source};
use crate::kernel::cuda::{Gpu, GpuError, Launch, Param, Source};
use crate::kernel::structs::structs;

mod library;
pub mod moves;

type Done = Result<(), GpuError>;

const THREADS: u32 = 256;
/// Bound: bytes of the lines of a block, of which there are two copies in shared memory.
const BLOCK: usize = 24 * 1024;
/// Lines that a block has at least, if they fit: so many elements beside each other are read at once.
const BESIDE: usize = 8;
const RADICES: [usize; 7] = [4, 2, 3, 5, 7, 11, 13];
/// Bound: passes of a line that fits into a block.
const PASSES: usize = 12;

structs! {
    pub static ARGS = "fft/args.cuh";
    struct Args {
        from: const T,
        to: mut T,
        /// The n-th roots of one.
        roots: const Pair,
        work: const Pair,
        lines: usize,
        n: usize,
        from_size: usize,
        from_inner: usize,
        to_size: usize,
        to_inner: usize,
        kind: usize,
        from_pairs: usize,
        to_pairs: usize,
        swap_in: usize,
        swap_out: usize,
        conjugate: usize,
        lanes: usize,
        /// The length of the transform of which this one is a part, or 0.
        turn: usize,
        long_n: usize,
        passes: usize,
        radices: [i64; 12],
        scale: f64,
        middle: f64,
    }
}

impl Args {
    /// Of complex rows, without a factor.
    fn rows(from: *const u8, to: *mut u8, lines: usize, n: usize) -> Args {
        Args {
            from,
            to,
            lines,
            n,
            from_size: n,
            from_inner: 1,
            to_size: n,
            to_inner: 1,
            from_pairs: 1,
            to_pairs: 1,
            scale: 1.0,
            middle: 1.0,
            ..Args::NONE
        }
    }

    /// Whether the operand is rows of n pairs.
    fn reads_rows(&self) -> bool {
        self.kind != Kind::FromHalf as usize && self.from_pairs == 1 && self.from_inner == 1 && self.from_size == self.n
    }

    /// Whether the result is rows of n pairs.
    fn writes_rows(&self) -> bool {
        self.kind != Kind::ToHalf as usize && self.to_pairs == 1 && self.to_inner == 1 && self.to_size == self.n
    }
}

fn text(dtype: DType) -> &'static Source {
    source("fft/fft.cuh", &[("T", Value::Type(dtype))])
}

/// Bounds of lengths that have a text of their own, as powers of two.
const POWERS: std::ops::RangeInclusive<u32> = 4..=12;
/// Elements of a thread in such a text, and of its lines between two free places in shared memory.
const HELD: usize = 16;

/// Transforms of `1 << log_n` elements.
fn power_of_two(dtype: DType, log_n: u32) -> &'static Source {
    source("fft/power_of_two.cuh", &[("T", Value::Type(dtype)), ("LOG_N", Value::Number(log_n))])
}

/// The radices of a length, none if it has another prime factor.
fn radices(mut n: usize) -> Option<Vec<i64>> {
    let mut all = Vec::new();
    for radix in RADICES {
        while n.is_multiple_of(radix) {
            all.push(radix as i64);
            n /= radix;
        }
    }
    (n == 1).then_some(all)
}

/// The launches of one call.
struct Launches<'a> {
    source: &'static Source,
    dtype: DType,
    /// Bytes of a complex number.
    pair: usize,
    /// Tables of roots, by their lengths.
    roots: Vec<(usize, *mut u8)>,
    gpu: &'a mut dyn Gpu,
}

impl Launches<'_> {
    /// The longest line of a block.
    fn longest(&self) -> usize {
        BLOCK / self.pair - 1
    }

    fn pairs(&mut self, count: usize) -> Result<*mut u8, GpuError> {
        self.gpu.scratch(count.max(1) * self.pair)
    }

    fn each(&mut self, entry: &str, count: usize, args: &Args) -> Done {
        each(self.source, entry, count, args.words(), self.gpu)
    }

    fn roots(&mut self, n: usize) -> Result<*mut u8, GpuError> {
        if let Some((_, known)) = self.roots.iter().find(|(length, _)| *length == n) {
            return Ok(*known);
        }
        let table = self.pairs(n)?;
        self.each("ts_fft_roots", n, &Args { to: table, n, ..Args::NONE })?;
        self.roots.push((n, table));
        Ok(table)
    }

    /// Threads of a block that transforms powers of two; the same number of bytes for f32 and f64.
    fn holders(&self) -> usize {
        2048 / self.pair
    }

    /// The exponent of a length that has a text of its own.
    fn exponent(&self, n: usize) -> Option<u32> {
        let log_n = n.is_power_of_two().then(|| n.ilog2())?;
        (POWERS.contains(&log_n) && n <= self.holders() * HELD).then_some(log_n)
    }

    /// Lines of a power of two, 16 elements in the registers of a thread.
    fn held(&mut self, mut args: Args, log_n: u32) -> Done {
        args.roots = self.roots(args.n)?;
        let threads = self.holders();
        let lanes = threads * HELD / args.n;
        self.gpu.launch(&Launch {
            source: power_of_two(self.dtype, log_n),
            entry: "ts_fft_power_of_two",
            grid: [args.lines.div_ceil(lanes) as u32, 1, 1],
            block: [threads as u32, 1, 1],
            shared_bytes: (threads * (HELD + 1) * self.pair) as u32,
            args: &[Param::Words(args.words())],
        })
    }

    /// Lines that fit into a block, of small factors.
    fn short(&mut self, mut args: Args, factors: &[i64]) -> Done {
        args.roots = self.roots(args.n)?;
        args.passes = factors.len();
        args.radices[..factors.len()].copy_from_slice(factors);
        let fitting = BLOCK / self.pair / (args.n + 1);
        let spread = args.lines.div_ceil(2 * self.gpu.multiprocessors() as usize);
        args.lanes = fitting.min(spread.max(BESIDE)).max(1);
        self.gpu.launch(&Launch {
            source: self.source,
            entry: "ts_fft_lines",
            grid: [args.lines.div_ceil(args.lanes) as u32, 1, 1],
            block: [THREADS, 1, 1],
            shared_bytes: (2 * args.lanes * (args.n + 1) * self.pair) as u32,
            args: &[Param::Words(args.words())],
        })
    }

    /// Two lengths whose product is a length of small factors, the first of them short: as equal as they can be.
    fn split(&self, n: usize) -> (usize, usize) {
        let divisors = (2..=self.longest()).filter(|&a| n.is_multiple_of(a));
        let first = divisors.min_by_key(|&a| a.max(n / a)).unwrap_or(n);
        (first, n / first)
    }

    /// Lines of a length of small factors.
    fn smooth(&mut self, args: Args, factors: &[i64]) -> Done {
        if let Some(log_n) = self.exponent(args.n) {
            return self.held(args, log_n);
        }
        if args.n <= self.longest() && factors.len() <= PASSES {
            return self.short(args, factors);
        }
        let (lines, n) = (args.lines, args.n);
        let (reads, writes) = (args.reads_rows(), args.writes_rows());
        let mut from = args.from;
        if !reads {
            let gathered = self.pairs(lines * n)?;
            self.each("ts_fft_gather", lines * n, &Args { to: gathered, ..args })?;
            from = gathered;
        }
        let (columns, rows) = self.split(n);
        let turned = self.pairs(lines * n)?;
        let first = Args {
            from_inner: rows,
            to_inner: rows,
            turn: n,
            swap_in: if reads { args.swap_in } else { 0 },
            ..Args::rows(from, turned, lines * rows, columns)
        };
        self.of_any(first)?;
        let to = if writes { args.to } else { self.pairs(lines * n)? };
        let (swap_out, scale) = if writes { (args.swap_out, args.scale) } else { (0, 1.0) };
        self.of_any(Args { to_inner: columns, swap_out, scale, ..Args::rows(turned, to, lines * columns, rows) })?;
        if writes { Ok(()) } else { self.each("ts_fft_store", lines * args.to_size, &Args { work: to, ..args }) }
    }

    /// A convolution with a chirp, of which a transform of another length is made.
    fn chirp(&mut self, args: Args) -> Done {
        let long_n = (2 * args.n - 1).next_power_of_two();
        let factors = radices(long_n).unwrap_or_default();
        let count = args.lines * long_n;
        let (response, spectrum) = (self.pairs(long_n)?, self.pairs(long_n)?);
        self.each("ts_fft_response", long_n, &Args { to: response, n: args.n, long_n, ..Args::NONE })?;
        self.smooth(Args::rows(response, spectrum, 1, long_n), &factors)?;
        let (work, other) = (self.pairs(count)?, self.pairs(count)?);
        self.each("ts_fft_chirp", count, &Args { to: work, long_n, ..args })?;
        self.smooth(Args::rows(work, other, args.lines, long_n), &factors)?;
        let convolved = Args { to: other, work: spectrum, lines: args.lines, long_n, ..Args::NONE };
        self.each("ts_fft_convolve", count, &convolved)?;
        self.smooth(Args::rows(other, work, args.lines, long_n), &factors)?;
        self.each("ts_fft_unchirp", args.lines * args.to_size, &Args { work, long_n, ..args })
    }

    fn of_any(&mut self, args: Args) -> Done {
        match radices(args.n) {
            Some(factors) => self.smooth(args, &factors),
            None => self.chirp(args),
        }
    }
}

/// A contiguous tensor between two passes.
#[derive(Clone)]
struct Side {
    at: *mut u8,
    pairs: bool,
    shape: Shape,
}

impl Side {
    fn of(dense: &RawView, pairs: bool) -> Side {
        let mut shape = dense.shape.clone();
        if pairs {
            shape.pop();
        }
        Side { at: dense.ptr, pairs, shape }
    }
}

/// The arguments of a pass over all lines along a dim.
fn pass(along: &Along, from: &Side, to: &Side) -> Args {
    let ((outer, from_size, inner), to_size) = (around(&from.shape, along.dim), to.shape[along.dim]);
    let swap = match along.kind {
        Kind::Whole => along.inverse,
        Kind::ToHalf => false,
        Kind::FromHalf => true,
    } as usize;
    Args {
        from: from.at,
        to: to.at,
        lines: outer * inner,
        n: along.n,
        from_size,
        from_inner: inner,
        to_size,
        to_inner: inner,
        kind: along.kind as usize,
        from_pairs: from.pairs as usize,
        to_pairs: to.pairs as usize,
        swap_in: swap,
        swap_out: swap,
        conjugate: along.conjugate as usize,
        scale: along.scale,
        middle: along.middle,
        ..Args::NONE
    }
}

fn run(kind: Kind, call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    let task = Task::of(call.attrs);
    let (x, y) = (&call.inputs[0], &call.outputs[0]);
    if y.numel() == 0 || library::run(kind, &task, [x, y], gpu)? {
        return Ok(());
    }
    let dense = input(x, x.dtype, gpu)?;
    let result = Output::new(y, y.dtype, gpu)?;
    let (mut from, to) = (Side::of(&dense, task.pairs[0]), Side::of(&result.dense, task.pairs[1]));
    let passes = passes(kind, &task);
    let mut launches =
        Launches { source: text(y.dtype), dtype: y.dtype, pair: 2 * y.dtype.size_bytes(), roots: Vec::new(), gpu };
    for (at, along) in passes.iter().enumerate() {
        let mut shape = from.shape.clone();
        shape[along.dim] = to.shape[along.dim];
        let fits = shape == to.shape && (to.pairs || at + 1 == passes.len());
        let target =
            if fits { to.clone() } else { Side { at: launches.pairs(shape.iter().product())?, pairs: true, shape } };
        launches.of_any(pass(along, &from, &target))?;
        from = target;
    }
    result.finish(gpu)
}

/// Complex or real numbers to complex ones, or to the real parts of these.
pub fn whole(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    run(Kind::Whole, call, gpu)
}

/// Real numbers to the half spectrum along the last of the dims.
pub fn to_half(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    run(Kind::ToHalf, call, gpu)
}

/// The half spectrum along the last of the dims to real numbers.
pub fn from_half(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    run(Kind::FromHalf, call, gpu)
}

/// Texts for the compile test.
pub fn texts() -> Vec<&'static Source> {
    let dtypes = [DType::F32, DType::F64];
    let powers = dtypes.into_iter().flat_map(|dtype| [4, 7, 11].map(|log_n| power_of_two(dtype, log_n)));
    dtypes.into_iter().flat_map(|dtype| [text(dtype), moves::text(dtype)]).chain(powers).collect()
}
