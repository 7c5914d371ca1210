//! CUDA launches of the kernels in `kernel/scan/host`.
//!
//! Short rows are held in registers. Longer rows, and dims that are not the last, are cut into tiles, with a block for
//! each, and are read once: decoupled look-back, in which a tile publishes its aggregate and combines those of the
//! tiles before it (`kernels/scan/tile.cuh`).

use crate::base::dtype::DType;
use crate::kernel::abi::{Call, RawView};
use crate::kernel::cuda::dense::{Output, around, input};
use crate::kernel::cuda::rows::{address, launch};
use crate::kernel::cuda::specialize::{Value, source};
use crate::kernel::cuda::{Gpu, GpuError, Source};
use crate::kernel::host::walk::{dim, flag};
use crate::kernel::structs::structs;
use smallvec::{SmallVec, smallvec};

type Done = Result<(), GpuError>;
type Name = (&'static str, Value);

/// Values of `OP` in the texts.
const LOG_SUM_EXP: u32 = 2;

/// Bound: 32-bit registers for the states of a thread.
const MAX_REGISTERS: usize = 32;
/// Threads of a tile.
const TILE: usize = 256;
/// Maximal number of threads of a row.
const LANES: usize = 1024;

/// Parameters of the text, beside the dtype and the operation.
#[derive(Clone, Copy, Debug)]
struct Form {
    /// Elements of a vector.
    vector: usize,
    /// Vectors that a thread holds in registers.
    cached: usize,
    lanes: usize,
    reverse: bool,
}

fn text(header: &'static str, dtype: DType, op: u32, form: Form, names: &[Name]) -> &'static Source {
    let number = |n: usize| Value::Number(n as u32);
    let mut all: SmallVec<[Name; 8]> = smallvec![
        ("T", Value::Type(dtype)),
        ("OP", Value::Number(op)),
        ("V", number(form.vector)),
        ("E", number(form.cached)),
        ("LANES", number(form.lanes)),
        ("REVERSE", number(form.reverse as usize)),
    ];
    all.extend_from_slice(names);
    source(header, &all)
}

/// `EDGES`: rows begin or end within a vector; `TILES`: rows are cut into tiles.
fn row_names(edges: bool, tiles: bool) -> [Name; 2] {
    [("EDGES", Value::Number(edges as u32)), ("TILES", Value::Number(tiles as u32))]
}

structs! {
    pub static ARGS = "scan/args.cuh";
    struct Args {
        x: const T,
        y: mut T,
        indices: mut i64,
        tile_states: mut u64,
        rows: usize,
        n: usize,
        inner: usize,
        /// Number of tiles along the dim, and number of strips.
        tiles: usize,
        column_tiles: usize,
    }
}

/// An operation on contiguous operands of shape `[outer, n, inner]`.
struct Scan<'a> {
    op: u32,
    reverse: bool,
    dtype: DType,
    sizes: [usize; 3],
    x: &'a RawView,
    y: &'a RawView,
    at: Option<&'a RawView>,
}

impl Scan<'_> {
    /// 32-bit registers of a state: a value, and for some operations an index or a second value.
    fn registers(&self) -> usize {
        let value = if matches!(self.dtype, DType::F32 | DType::F16 | DType::BF16) { 1 } else { 2 };
        match self.op {
            LOG_SUM_EXP => 2 * value,
            _ => value + self.at.is_some() as usize,
        }
    }

    /// Elements between the last vector boundary (of `n` elements) and the operands' start; `None` if it differs
    /// between operands.
    fn shift(&self, n: usize) -> Option<usize> {
        let of = |view: &RawView, bytes: usize| view.ptr as usize / bytes % n;
        let shift = of(self.x, self.dtype.size_bytes());
        let same = of(self.y, self.dtype.size_bytes()) == shift && self.at.is_none_or(|at| of(at, 8) == shift);
        same.then_some(shift)
    }

    /// Elements of a vector: `wide`, or half of that, if `fits`, or one.
    fn vector(&self, wide: usize, fits: impl Fn(usize) -> bool) -> usize {
        [wide, wide / 2].into_iter().find(|&n| n > 1 && fits(n)).unwrap_or(1)
    }

    fn args(&self, tiles: usize, column_tiles: usize, tile_states: *mut u8) -> Args {
        let [rows, n, inner] = self.sizes;
        let (x, y, indices) = (self.x.ptr, self.y.ptr, address(self.at));
        Args { x, y, indices, tile_states, rows, n, inner, tiles, column_tiles }
    }

    /// Launches a block for each of `tiles` tiles in each strip; `lanes` threads publish `states` states each.
    fn tiles(
        &self,
        (source, entry): (&Source, &str),
        [tiles, column_tiles]: [usize; 2],
        [lanes, states]: [usize; 2],
        gpu: &mut dyn Gpu,
    ) -> Done {
        let strips = self.sizes[0] * column_tiles;
        if tiles.saturating_mul(strips) > i32::MAX as usize {
            return Err(GpuError::Unsupported("so many tiles"));
        }
        let mut tile_states = std::ptr::null_mut();
        if tiles > 1 {
            // A value with an index is as large as two values.
            let words = self.registers().next_power_of_two() * lanes * states;
            let bytes = strips * (tiles + tiles.div_ceil(TILE / lanes)) * words * 8;
            tile_states = gpu.scratch(bytes)?;
            gpu.fill_zero(tile_states, bytes)?;
        }
        launch(source, entry, (tiles * strips, 1), TILE, self.args(tiles, column_tiles, tile_states).words(), gpu)
    }

    fn columns(&self, gpu: &mut dyn Gpu) -> Done {
        let [_, n, inner] = self.sizes;
        // With narrow vectors a thread can hold more elements along the dim; 8 or 16 were fastest (H200).
        let wide = if self.dtype.size_bytes() <= 4 { 2 } else { 1 };
        let vector = self.vector(wide, |v| inner.is_multiple_of(v) && self.shift(v) == Some(0));
        let lanes = inner.div_ceil(vector).next_power_of_two().min(32);
        let cached = (MAX_REGISTERS / (vector * self.registers())).min(8 * vector);
        let form = Form { vector, cached, lanes, reverse: self.reverse };
        let source = text("scan/columns.cuh", self.dtype, self.op, form, &[]);
        let tiles = [n.div_ceil(TILE / lanes * cached), inner.div_ceil(lanes * vector)];
        self.tiles((source, "ts_scan_columns"), tiles, [lanes, vector], gpu)
    }

    fn rows(&self, gpu: &mut dyn Gpu) -> Done {
        let [outer, n, _] = self.sizes;
        // Rows may begin and end within vectors, but must contain a whole one.
        let wide = (16 / self.dtype.size_bytes()).min(8);
        let vector = self.vector(wide, |v| n >= 2 * v && self.shift(v).is_some());
        let edges = vector > 1 && !(n.is_multiple_of(vector) && self.shift(vector) == Some(0));
        let vectors = (n + if edges { vector - 1 } else { 0 }).div_ceil(vector);
        let vectors_of_thread = (MAX_REGISTERS / (vector * self.registers())).max(1);
        // Two vectors for each thread for short rows, and more threads for long ones. With edges a row has one vector
        // more.
        let lanes =
            vectors.div_ceil(2).min(TILE).max(vectors.div_ceil(vectors_of_thread + edges as usize)).next_power_of_two();
        let form = |cached, lanes| Form { vector, cached, lanes, reverse: self.reverse };
        if lanes < LANES || vectors <= LANES * vectors_of_thread {
            let form = form(vectors.div_ceil(lanes), lanes);
            let source = text("scan/rows.cuh", self.dtype, self.op, form, &row_names(edges, false));
            let threads = lanes.max(TILE);
            let args = self.args(1, 1, std::ptr::null_mut());
            let wide = !matches!(self.dtype, DType::F32 | DType::F16 | DType::BF16) && self.op != LOG_SUM_EXP;
            let entry = if wide && lanes == 512 { "ts_scan_rows_two_blocks" } else { "ts_scan_rows" };
            return launch(source, entry, (outer.div_ceil(threads / lanes), 1), threads, args.words(), gpu);
        }
        let source = text("scan/rows.cuh", self.dtype, self.op, form(vectors_of_thread, TILE), &row_names(edges, true));
        self.tiles((source, "ts_scan_row_tiles"), [vectors.div_ceil(TILE * vectors_of_thread), 1], [1, 1], gpu)
    }
}

fn run(call: &Call<'_>, op: u32, reverse: bool, gpu: &mut dyn Gpu) -> Done {
    let to = &call.outputs[0];
    let dtype = to.dtype;
    let sizes = around(&to.shape, dim(call, 0));
    if to.numel() == 0 {
        return Ok(());
    }
    if call.outputs.len() > 1 && sizes.1 > i32::MAX as usize {
        return Err(GpuError::Unsupported("maxima along so long a dim"));
    }
    let x = input(&call.inputs[0], dtype, gpu)?;
    let y = Output::new(to, dtype, gpu)?;
    let at = call.outputs.get(1).map(|at| Output::new(at, DType::I64, gpu)).transpose()?;
    let indices = at.as_ref().map(|at| &at.dense);
    let scan = Scan { op, reverse, dtype, sizes: [sizes.0, sizes.1, sizes.2], x: &x, y: &y.dense, at: indices };
    if sizes.2 > 1 {
        scan.columns(gpu)?
    } else {
        scan.rows(gpu)?
    }
    y.finish(gpu)?;
    at.map_or(Ok(()), |at| at.finish(gpu))
}

pub fn cumsum(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    run(call, 0, flag(call, 1), gpu)
}

pub fn cumprod(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    run(call, 1, flag(call, 1), gpu)
}

pub fn logcumsumexp(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    run(call, LOG_SUM_EXP, flag(call, 1), gpu)
}

pub fn cummax(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    run(call, 3, false, gpu)
}

pub fn cummin(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    run(call, 4, false, gpu)
}

/// Texts for the compile test.
pub fn texts() -> Vec<&'static Source> {
    let form = |vector, cached, lanes| Form { vector, cached, lanes, reverse: false };
    let rows = |dtype, op, form, edges, tiles| text("scan/rows.cuh", dtype, op, form, &row_names(edges, tiles));
    let op = |dtype: DType| if dtype.is_signed() { 3 } else { 0 };
    let mut all: Vec<_> = DType::REAL.into_iter().map(|t| rows(t, op(t), form(2, 2, 128), false, false)).collect();
    for op in [0, 1, 2, 4] {
        all.push(rows(DType::F32, op, form(4, 4, 256), true, true));
        all.push(rows(DType::BF16, op, form(8, 2, 16), false, false));
        all.push(text("scan/columns.cuh", DType::F32, op, form(2, 4, 32), &[]));
    }
    all.push(rows(DType::F64, 0, Form { reverse: true, ..form(2, 9, 512) }, true, false));
    all.push(text("scan/columns.cuh", DType::I64, 3, form(1, 8, 8), &[]));
    all
}
