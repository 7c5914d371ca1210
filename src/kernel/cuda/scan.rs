//! Launches beside `kernel/cpu/scan`.
//!
//! Rows that fit are held in registers. Longer rows, and dims that are not the last, are cut into tiles, a block for
//! each, which are read once: a tile tells what it has, and joins what the tiles before it told (`kernels/ts_scan.cuh`).

use super::dense::{Output, around, input};
use super::family::{Value, source};
use super::rows::{launch, word};
use super::{Gpu, GpuError, Source};
use crate::base::dtype::DType;
use crate::kernel::abi::{Call, RawView};
use crate::kernel::cpu::walk::{dim, flag};

type Done = Result<(), GpuError>;

/// Bound: 32-bit registers of the states that a thread holds.
const HELD: usize = 32;
/// Threads of a tile.
const TILE: usize = 256;

/// What the text is specialised by, besides the dtype and the operation.
#[derive(Clone, Copy, Debug)]
struct Form {
    vector: usize,
    kept: usize,
    lanes: usize,
    edges: bool,
    reverse: bool,
}

fn text(header: &'static str, dtype: DType, op: u32, form: Form) -> &'static Source {
    let number = |n: usize| Value::Number(n as u32);
    source(
        header,
        &[
            ("T", Value::Type(dtype)),
            ("OP", Value::Number(op)),
            ("V", number(form.vector)),
            ("E", number(form.kept)),
            ("LANES", number(form.lanes)),
            ("EDGES", number(form.edges as usize)),
            ("REVERSE", number(form.reverse as usize)),
        ],
    )
}

/// 32-bit registers of a state: a value, and a place where the scan has one.
fn registers(dtype: DType, placed: bool) -> usize {
    let value = if matches!(dtype, DType::F32 | DType::F16 | DType::BF16) { 1 } else { 2 };
    value + placed as usize
}

/// Bytes of a state in memory.
fn state_bytes(dtype: DType, placed: bool) -> usize {
    [4, 8, 16][registers(dtype, placed) - 1]
}

/// An operation on dense operands of the shape `[outer, n, inner]`.
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
    fn placed(&self) -> bool {
        self.at.is_some()
    }

    fn registers(&self) -> usize {
        registers(self.dtype, self.placed())
    }

    /// Elements by which the operands are past a place where vectors of `n` begin; none if they differ.
    fn shift(&self, n: usize) -> Option<usize> {
        let of = |view: &RawView, bytes: usize| view.ptr as usize / bytes % n;
        let shift = of(self.x, self.dtype.size_bytes());
        let same = of(self.y, self.dtype.size_bytes()) == shift && self.at.is_none_or(|at| of(at, 8) == shift);
        same.then_some(shift)
    }

    /// Elements of a vector: the most of which `fits` holds.
    fn vector(&self, fits: impl Fn(usize) -> bool) -> usize {
        let wide = (16 / self.dtype.size_bytes()).min(8);
        [wide, wide / 2].into_iter().find(|&n| n > 1 && fits(n)).unwrap_or(1)
    }

    /// The argument words; `tiles` is how many tiles there are along a dim, across it, and in all.
    fn words(&self, tiles: [usize; 3], flags: *const u8, parts: *const u8) -> [u64; 11] {
        let [outer, n, inner] = self.sizes.map(|n| n as u64);
        let [chunks, across, all] = tiles.map(|n| n as u64);
        let places = word(self.at);
        [self.x.ptr as u64, self.y.ptr as u64, places, flags as u64, parts as u64, outer, n, inner, chunks, across, all]
    }

    /// Launches a block for each tile; `states` of a tile are told in `flags` parts.
    fn tiles(
        &self,
        (header, entry): (&'static str, &str),
        form: Form,
        tiles: [usize; 3],
        (flags, states): (usize, usize),
        gpu: &mut dyn Gpu,
    ) -> Done {
        let [chunks, _, all] = tiles;
        if all > i32::MAX as usize {
            return Err(GpuError::Unsupported("so many tiles"));
        }
        let (mut told, mut parts) = (std::ptr::null_mut(), std::ptr::null_mut());
        if chunks > 1 {
            told = gpu.scratch(2 * all * flags * 4)?;
            parts = gpu.scratch(2 * all * states * state_bytes(self.dtype, self.placed()))?;
            gpu.fill_zero(told, 2 * all * flags * 4)?;
        }
        let source = text(header, self.dtype, self.op, form);
        launch(source, entry, (all, 1), TILE, &self.words(tiles, told, parts), gpu)
    }

    fn columns(&self, gpu: &mut dyn Gpu) -> Done {
        let [outer, n, inner] = self.sizes;
        let vector = self.vector(|n| inner.is_multiple_of(n) && self.shift(n) == Some(0));
        let lanes = inner.div_ceil(vector).next_power_of_two().min(32);
        let kept = (HELD / (vector * self.registers())).clamp(1, 16);
        let (chunks, across) = (n.div_ceil(TILE / lanes * kept), inner.div_ceil(lanes * vector));
        let form = Form { vector, kept, lanes, edges: false, reverse: self.reverse };
        let tiles = [chunks, across, outer * chunks * across];
        self.tiles(("scan_columns.cuh", "ts_scan_columns"), form, tiles, (lanes, lanes * vector), gpu)
    }

    fn rows(&self, gpu: &mut dyn Gpu) -> Done {
        let [outer, n, _] = self.sizes;
        // Rows may begin and end within vectors, but have a whole one.
        let vector = self.vector(|v| n >= 2 * v && self.shift(v).is_some());
        let edges = vector > 1 && (!n.is_multiple_of(vector) || self.shift(vector) != Some(0));
        let vectors = (n + if edges { vector - 1 } else { 0 }).div_ceil(vector);
        let most = (HELD / (vector * self.registers())).max(1);
        let lanes = vectors.div_ceil(most).next_power_of_two().min(TILE);
        let kept = vectors.div_ceil(lanes);
        if kept <= most {
            let form = Form { vector, kept, lanes, edges, reverse: self.reverse };
            let source = text("scan.cuh", self.dtype, self.op, form);
            let words = self.words([1, 1, 0], std::ptr::null(), std::ptr::null());
            return launch(source, "ts_scan_rows", (outer.div_ceil(TILE / lanes), 1), TILE, &words, gpu);
        }
        let form = Form { vector, kept: most, lanes: TILE, edges, reverse: self.reverse };
        let chunks = vectors.div_ceil(TILE * most);
        self.tiles(("scan.cuh", "ts_scan_tiles"), form, [chunks, 1, outer * chunks], (1, 1), gpu)
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
    let places = at.as_ref().map(|at| &at.dense);
    let scan = Scan { op, reverse, dtype, sizes: [sizes.0, sizes.1, sizes.2], x: &x, y: &y.dense, at: places };
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
    run(call, 2, flag(call, 1), gpu)
}

pub fn cummax(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    run(call, 3, false, gpu)
}

pub fn cummin(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    run(call, 4, false, gpu)
}

/// Texts for the compile test.
pub fn sources() -> Vec<&'static Source> {
    let form = |vector, kept, lanes| Form { vector, kept, lanes, edges: false, reverse: false };
    let mut all: Vec<_> = DType::ALL
        .into_iter()
        .map(|t| text("scan.cuh", t, if t.is_signed() { 3 } else { 0 }, form(2, 2, 256)))
        .collect();
    for op in [0, 1, 2, 4] {
        all.push(text("scan.cuh", DType::F32, op, Form { edges: true, ..form(4, 4, 256) }));
        all.push(text("scan.cuh", DType::BF16, op, form(8, 2, 16)));
        all.push(text("scan_columns.cuh", DType::F32, op, form(4, 4, 32)));
    }
    all.push(text("scan.cuh", DType::F64, 0, Form { edges: true, reverse: true, ..form(2, 8, 256) }));
    all.push(text("scan_columns.cuh", DType::I64, 3, form(1, 8, 8)));
    all
}
