//! CUDA launches of the kernels in `kernel/index/host`: one implementation for all kinds of index tensors.
//!
//! If several entries have the same index, floats are added in no fixed order and of writes any one stays, as in PyTorch.
//! Where results must be the same in each run, the last write stays.

use crate::base::attr::Attr;
use crate::base::dtype::{DType, Scalar};
use crate::base::layout::{Strides, contiguous_strides};
use crate::kernel::abi::{Call, RawView};
use crate::kernel::cuda::dense::{copy_view, fill, input, scratch};
use crate::kernel::cuda::rows::each;
use crate::kernel::cuda::specialize::{Value, source};
use crate::kernel::cuda::{Gpu, GpuError, Source};
use crate::kernel::fused::cuda::space::{Dim, Order, Space, division};
use crate::kernel::host::walk::{dim, flag, int, ints, scalar, shifted, word};
use crate::kernel::structs::structs;

type Done = Result<(), GpuError>;

structs! {
    // Bound: merged dims, and index tensors, of a launch.
    pub static ARGS = "index/args.cuh", MAX_DIMS = 8;
    struct Args {
        indexed: mut char,
        dense: mut char,
        winner: mut u64,
        fault: mut void,
        n: u64,
        dims: u64,
        count: u64,
        wrap_negative: u64,
        kind: u64,
        has_skipped: u64,
        skipped: u64,
        factor: f64,
        size: [u64; MAX_DIMS],
        /// What `ts_fast_div` divides by the sizes with.
        divide: [u64; MAX_DIMS],
        /// Strides over each dim: of the dense side, of the indexed tensor, of the position that a fault reports, of the
        /// winner's cell.
        dense_stride: [i64; MAX_DIMS],
        indexed_stride: [i64; MAX_DIMS],
        position_stride: [i64; MAX_DIMS],
        cell_stride: [i64; MAX_DIMS],
        index_stride: [[i64; MAX_DIMS]; MAX_DIMS],
        index: [const i64; MAX_DIMS],
        /// For each index: its bound, the strides by which its value moves the indexed offset and the cell, and the dim that
        /// a fault names.
        bound: [i64; MAX_DIMS],
        value_stride: [i64; MAX_DIMS],
        value_cell_stride: [i64; MAX_DIMS],
        dim: [i64; MAX_DIMS],
    }
}

/// Threads of a block, and elements of a thread (`ITEMS` in the text).
const LANES: usize = 256;
const ITEMS: usize = 4;

const INDEX: u64 = 1;
const LABEL: u64 = 2;

/// What is done with elements that are adjacent on both sides and have the same index.
#[derive(Clone, Copy, PartialEq)]
enum Width {
    One,
    /// Copied as one wider element.
    Copied,
    /// So many are added at once.
    Added(usize),
}

/// A launch: its arguments, and what its text is specialized for.
struct Prepared {
    args: Args,
    /// Adjacent elements that are one to the kernel.
    width: usize,
    is_wide: bool,
}

/// An index tensor expanded to the shape of the dense side, and the strides that its value is multiplied with.
struct Index {
    view: RawView,
    bound: usize,
    stride: isize,
    cell_stride: isize,
    dim: usize,
}

/// The dense side, the indexed side and the indices; strides are over the shape of the dense side.
struct AdvancedIndex {
    x: RawView,
    other: RawView,
    /// Strides of `x`, of the position in the index, and of the winner's cell, for each dim of `other`.
    x_strides: Strides,
    positions: Strides,
    cells: Strides,
    cell_count: usize,
    indices: Vec<Index>,
    wraps: bool,
    kind: u64,
    skips: Option<i64>,
}

fn at_least_1d(view: &RawView) -> RawView {
    let mut view = view.clone();
    if view.shape.is_empty() {
        view.shape.push(1);
        view.strides.push(1);
    }
    view
}

/// An index tensor as i64; itself if it is i64 already.
fn as_index(view: &RawView, gpu: &mut dyn Gpu) -> Result<RawView, GpuError> {
    if view.dtype == DType::I64 { Ok(view.clone()) } else { input(view, DType::I64, gpu) }
}

impl AdvancedIndex {
    /// `dims` of `x` are indexed; in `other` the dims of the index are inserted at `place` among the remaining dims.
    fn of(
        x: &RawView,
        other: &RawView,
        indices: &[RawView],
        dims: &[i64],
        place: usize,
        wraps: bool,
        gpu: &mut dyn Gpu,
    ) -> Result<AdvancedIndex, GpuError> {
        let index_ndim = indices.first().map_or(0, |index| index.shape.len());
        let unindexed: Vec<usize> = (0..x.shape.len()).filter(|&d| !dims.contains(&(d as i64))).collect();
        let inside = |d: usize| d >= place && d < place + index_ndim;
        let spread = |strides: &[isize]| -> Strides {
            (0..other.shape.len()).map(|d| if inside(d) { strides[d - place] } else { 0 }).collect()
        };
        let mut rest = unindexed.iter();
        let x_strides =
            (0..other.shape.len()).map(|d| if inside(d) { 0 } else { rest.next().map_or(0, |&k| x.strides[k]) });
        let x_strides: Strides = x_strides.collect();
        let shape: Vec<usize> = other.shape[place..place + index_ndim].to_vec();
        let bounds: Vec<usize> = dims.iter().map(|&d| x.shape[d as usize]).collect();
        let cells = contiguous_strides(&bounds);
        let mut list = Vec::new();
        for (k, index) in indices.iter().enumerate() {
            let dense = as_index(index, gpu)?;
            let strides = spread(&dense.strides);
            let view = RawView { shape: other.shape.clone(), strides, ..dense };
            let d = dims[k] as usize;
            list.push(Index { view, bound: bounds[k], stride: x.strides[d], cell_stride: cells[k], dim: d });
        }
        Ok(AdvancedIndex {
            x: x.clone(),
            other: other.clone(),
            x_strides,
            positions: spread(&contiguous_strides(&shape)),
            cells: std::iter::repeat_n(0, other.shape.len()).collect(),
            cell_count: bounds.iter().product(),
            indices: list,
            wraps,
            kind: INDEX,
            skips: None,
        })
    }

    /// One index tensor of the shape of `other` gives positions along dim `d` of `x`; the other dims of both
    /// correspond.
    fn along(
        x: &RawView,
        other: &RawView,
        index: &RawView,
        d: usize,
        gpu: &mut dyn Gpu,
    ) -> Result<AdvancedIndex, GpuError> {
        let (x, index) = (at_least_1d(x), at_least_1d(&as_index(index, gpu)?));
        let mut other = at_least_1d(other);
        other.shape = index.shape.clone();
        let without = |strides: &[isize]| -> Strides {
            let mut strides = Strides::from_slice(strides);
            strides[d] = 0;
            strides.resize(index.shape.len(), 0);
            strides
        };
        let cells = contiguous_strides(&x.shape);
        let positions = contiguous_strides(&index.shape);
        Ok(AdvancedIndex {
            x_strides: without(&x.strides),
            cells: without(&cells),
            cell_count: x.shape.iter().product(),
            positions,
            indices: vec![Index {
                bound: x.shape[d],
                stride: x.strides[d],
                cell_stride: cells[d],
                dim: d,
                view: index,
            }],
            x,
            other,
            wraps: false,
            kind: INDEX,
            skips: None,
        })
    }

    /// The arguments of a launch.
    fn prepare(&self, allowed: Width, gpu: &mut dyn Gpu) -> Result<Prepared, GpuError> {
        let virtual_view = |strides: &Strides| RawView { strides: strides.clone(), ..self.other.clone() };
        let mut views = vec![
            self.other.clone(),
            virtual_view(&self.x_strides),
            virtual_view(&self.positions),
            virtual_view(&self.cells),
        ];
        views.extend(self.indices.iter().map(|index| index.view.clone()));
        let shape = &self.other.shape;
        let space = Space::new(shape, 0, &contiguous_strides(shape), &views, &[], Order::Fixed);
        let mut dims = space.output_dims;
        if dims.len() > MAX_DIMS || self.indices.len() > MAX_DIMS {
            return Err(GpuError::Unsupported("indexing with this many dims"));
        }
        let width = self.width(&dims, allowed);
        if let Some(last) = dims.last_mut() {
            last.size /= width as u64;
        }
        let n: u64 = dims.iter().map(|dim| dim.size).product();
        let mut args = Args {
            indexed: self.x.ptr,
            dense: self.other.ptr,
            fault: gpu.fault_slot(0)?,
            n,
            dims: dims.len() as u64,
            count: self.indices.len() as u64,
            wrap_negative: self.wraps as u64,
            kind: self.kind,
            has_skipped: self.skips.is_some() as u64,
            skipped: self.skips.unwrap_or(0) as u64,
            factor: 1.0,
            ..Args::NONE
        };
        let w = width as i64;
        let last = dims.len().wrapping_sub(1);
        for (d, dim) in dims.iter().enumerate() {
            // Strides count wide elements.
            let side = |c: usize| if d == last { dim.strides[c] } else { dim.strides[c] / w };
            (args.size[d], args.divide[d]) = (dim.size, division(dim.size));
            (args.dense_stride[d], args.indexed_stride[d]) = (side(0), side(1));
            (args.position_stride[d], args.cell_stride[d]) = (dim.strides[2], dim.strides[3]);
            for k in 0..self.indices.len() {
                args.index_stride[k][d] = dim.strides[4 + k];
            }
        }
        for (k, index) in self.indices.iter().enumerate() {
            (args.index[k], args.bound[k], args.dim[k]) = (index.view.ptr, index.bound as i64, index.dim as i64);
            (args.value_stride[k], args.value_cell_stride[k]) = (index.stride as i64 / w, index.cell_stride as i64);
        }
        let is_wide = self.is_wide(n);
        Ok(Prepared { args, width, is_wide })
    }

    /// How many adjacent elements of the innermost of `dims` can be taken as one.
    fn width(&self, dims: &[Dim], allowed: Width) -> usize {
        let size = self.other.dtype.size_bytes();
        let Some((last, outer)) = dims.split_last() else { return 1 };
        let still = last.strides[0] == 1 && last.strides[1] == 1;
        let still = still && last.strides[2..4 + self.indices.len()].iter().all(|&s| s == 0);
        let fits = |w: usize| {
            let even = |n: i64| n.unsigned_abs().is_multiple_of(w as u64);
            let aligned = |view: &RawView| (view.ptr as usize).is_multiple_of(w * view.dtype.size_bytes());
            (last.size as usize).is_multiple_of(w)
                && outer.iter().all(|dim| even(dim.strides[0]) && even(dim.strides[1]))
                && self.indices.iter().all(|index| even(index.stride as i64))
                && aligned(&self.x)
                && aligned(&self.other)
        };
        let widths = match allowed {
            Width::One => [1; 2],
            Width::Copied => [16 / size, 8 / size],
            Width::Added(width) => [width, 1],
        };
        widths.into_iter().find(|&w| w > 1 && still && fits(w)).unwrap_or(1)
    }

    /// Whether an offset, or the number of elements, may not fit into 31 bits.
    fn is_wide(&self, n: u64) -> bool {
        let shape = &self.other.shape;
        let span = |strides: &[isize]| -> u64 {
            let along =
                shape.iter().zip(strides).map(|(&size, &s)| size.saturating_sub(1) as u64 * s.unsigned_abs() as u64);
            along.sum()
        };
        let values = |stride: fn(&Index) -> isize| -> u64 {
            self.indices.iter().map(|index| index.bound as u64 * stride(index).unsigned_abs() as u64).sum()
        };
        let extents = [
            n + (LANES * ITEMS) as u64,
            span(&self.other.strides),
            span(&self.x_strides) + values(|index| index.stride),
            span(&self.positions) + 1,
            span(&self.cells) + values(|index| index.cell_stride),
        ];
        let limit = i32::MAX as u64;
        extents
            .into_iter()
            .chain(self.indices.iter().map(|index| span(&index.view.strides)))
            .any(|extent| extent > limit)
    }

    /// `other = x[..]`.
    fn read(&self, gpu: &mut dyn Gpu) -> Done {
        let prepared = self.prepare(Width::Copied, gpu)?;
        prepared.copy("ts_index_get", self.x.dtype.size_bytes(), gpu)
    }

    /// `x[..] = other`. Of several writes to one element any stays; the last, which costs twice the time, where results must be
    /// the same in each run.
    fn write(&self, gpu: &mut dyn Gpu) -> Done {
        if gpu.deterministic() { self.write_last(gpu) } else { self.write_any(gpu) }
    }

    fn write_last(&self, gpu: &mut dyn Gpu) -> Done {
        let mut prepared = self.prepare(Width::Copied, gpu)?;
        let bytes = if prepared.is_wide { 8 } else { 4 };
        let winner = gpu.scratch(self.cell_count.max(1) * bytes)?;
        gpu.fill_zero(winner, self.cell_count * bytes)?;
        prepared.args.winner = winner;
        let size = self.x.dtype.size_bytes();
        prepared.of_entries().copy("ts_elect_last", size, gpu)?;
        prepared.copy("ts_index_put", size, gpu)
    }

    fn write_any(&self, gpu: &mut dyn Gpu) -> Done {
        self.prepare(Width::Copied, gpu)?.copy("ts_index_put", self.x.dtype.size_bytes(), gpu)
    }

    /// `x[..] += factor * other`, for types of `x` that have an atomic addition. In a fixed order, where that is asked for, the
    /// host adds.
    fn add(&self, factor: f64, gpu: &mut dyn Gpu) -> Done {
        self.ordered(gpu)?;
        let allowed = if self.x.dtype == DType::F32 { Width::Added(4) } else { Width::One };
        let mut prepared = self.prepare(allowed, gpu)?;
        prepared.args.factor = factor;
        prepared.sum("ts_index_add", self.x.dtype, self.other.dtype, 0, gpu)
    }

    fn ordered(&self, gpu: &dyn Gpu) -> Done {
        if self.x.dtype.is_float() { gpu.may_add_in_any_order() } else { Ok(()) }
    }

    /// `x[..]` combined with `other` by the operation of this number (`FOLD` in the text).
    fn fold(&self, way: u32, gpu: &mut dyn Gpu) -> Done {
        self.ordered(gpu)?;
        let prepared = self.prepare(Width::One, gpu)?;
        prepared.sum("ts_scatter_reduce", self.x.dtype, self.other.dtype, way, gpu)
    }
}

impl Prepared {
    /// The same without the dims along which neither an index nor the cell changes.
    fn of_entries(&self) -> Prepared {
        let mut args = Args { dims: 0, n: 1, ..self.args };
        for d in 0..self.args.dims as usize {
            let (position, cell) = (self.args.position_stride[d], self.args.cell_stride[d]);
            let mut strides = self.args.index_stride[..self.args.count as usize].iter().map(|strides| strides[d]);
            if position == 0 && cell == 0 && strides.all(|stride| stride == 0) {
                continue;
            }
            let to = args.dims as usize;
            (args.size[to], args.divide[to]) = (self.args.size[d], self.args.divide[d]);
            (args.dense_stride[to], args.indexed_stride[to]) = (self.args.dense_stride[d], self.args.indexed_stride[d]);
            (args.position_stride[to], args.cell_stride[to]) = (position, cell);
            for k in 0..self.args.count as usize {
                args.index_stride[k][to] = self.args.index_stride[k][d];
            }
            args.n *= self.args.size[d];
            args.dims += 1;
        }
        args.n = if self.args.n == 0 { 0 } else { args.n };
        Prepared { args, width: self.width, is_wide: self.is_wide }
    }

    /// Launches a kernel that copies elements of this many bytes.
    fn copy(&self, entry: &str, bytes: usize, gpu: &mut dyn Gpu) -> Done {
        self.launch(copies(self.width * bytes, self.form()), entry, gpu)
    }

    /// Launches a kernel that combines elements of the type `from` into those of `to`.
    fn sum(&self, entry: &str, to: DType, from: DType, fold: u32, gpu: &mut dyn Gpu) -> Done {
        self.launch(sums(to, from, fold, self.width, self.form()), entry, gpu)
    }

    fn form(&self) -> Form {
        Form { dims: self.args.dims as u32, count: self.args.count as u32, is_wide: self.is_wide }
    }

    fn launch(&self, source: &Source, entry: &str, gpu: &mut dyn Gpu) -> Done {
        each(source, entry, (self.args.n as usize).div_ceil(LANES * ITEMS) * LANES, self.args.words(), gpu)
    }
}

/// What every text is specialized for.
#[derive(Clone, Copy)]
struct Form {
    dims: u32,
    count: u32,
    is_wide: bool,
}

impl Form {
    const ONE: Form = Form { dims: 1, count: 1, is_wide: false };
}

/// The text of copies of elements of this many bytes.
fn copies(bytes: usize, form: Form) -> &'static Source {
    text([Value::Number(bytes as u32), Value::Number(1)], [DType::F32; 2], 0, form)
}

/// The text that combines `width` elements of the type `from` into `to`: a sum, or the operation `fold`.
fn sums(to: DType, from: DType, fold: u32, width: usize, form: Form) -> &'static Source {
    text([Value::Number(4), Value::Number(width as u32)], [to, from], fold, form)
}

fn text([bytes, width]: [Value; 2], [to, from]: [DType; 2], fold: u32, form: Form) -> &'static Source {
    let number = Value::Number;
    source(
        "index/index.cuh",
        &[
            ("B", bytes),
            ("V", width),
            ("ADD", Value::Type(to)),
            ("FROM", Value::Type(from)),
            ("FOLD", number(fold)),
            ("DIMS", number(form.dims)),
            ("COUNT", number(form.count)),
            ("WIDE", number(form.is_wide as u32)),
        ],
    )
}

/// The type in which many threads add to an element atomically.
fn addable(dtype: DType) -> DType {
    match dtype {
        DType::F32 | DType::F64 | DType::I64 | DType::I32 => dtype,
        DType::F16 | DType::BF16 => DType::F32,
        _ => DType::I64,
    }
}

/// `y = x` unless they are the same memory, as in the in-place forms.
fn copy_unless_in_place(x: &RawView, y: &RawView, gpu: &mut dyn Gpu) -> Done {
    if x.ptr == y.ptr && x.strides == y.strides { Ok(()) } else { copy_view(x, y, gpu) }
}

/// `y` is `x` and what is added to it, through a copy of another type if its own has no atomic addition. `x` may be `y`.
fn accumulate(
    x: &RawView,
    y: &RawView,
    factor: f64,
    indexed: impl FnOnce(&RawView, &mut dyn Gpu) -> Result<AdvancedIndex, GpuError>,
    gpu: &mut dyn Gpu,
) -> Done {
    let wide = addable(y.dtype);
    if wide == y.dtype {
        copy_unless_in_place(x, y, gpu)?;
        return indexed(y, gpu)?.add(factor, gpu);
    }
    let target = scratch(wide, &y.shape, gpu)?;
    copy_view(x, &target, gpu)?;
    indexed(&target, gpu)?.add(factor, gpu)?;
    copy_view(&target, y, gpu)
}

pub fn index_get(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    let [x, indices @ ..] = call.inputs else { return Ok(()) };
    AdvancedIndex::of(x, &call.outputs[0], indices, ints(call, 0), dim(call, 1), true, gpu)?.read(gpu)
}

pub fn index_put(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    let ([x, value, indices @ ..], y) = (call.inputs, &call.outputs[0]) else { return Ok(()) };
    let (dims, place) = (ints(call, 0), dim(call, 1));
    if flag(call, 2) {
        return accumulate(x, y, 1.0, |y, gpu| AdvancedIndex::of(y, value, indices, dims, place, true, gpu), gpu);
    }
    copy_unless_in_place(x, y, gpu)?;
    AdvancedIndex::of(y, value, indices, dims, place, true, gpu)?.write(gpu)
}

/// A row-major tensor as one dim.
fn flat(view: &RawView) -> RawView {
    RawView::contiguous(view.ptr, view.dtype, &[view.numel()])
}

pub fn take(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    let x = flat(&input(&call.inputs[0], call.inputs[0].dtype, gpu)?);
    AdvancedIndex::of(&x, &call.outputs[0], &call.inputs[1..2], &[0], 0, true, gpu)?.read(gpu)
}

pub fn put(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    let (x, value, index, y) = (&call.inputs[0], &call.inputs[1], &call.inputs[2], &call.outputs[0]);
    copy_unless_in_place(x, y, gpu)?;
    let dense = input(y, y.dtype, gpu)?;
    let whole = flat(&dense);
    let index = std::slice::from_ref(index);
    if flag(call, 0) {
        accumulate(&whole, &whole, 1.0, |y, gpu| AdvancedIndex::of(y, value, index, &[0], 0, true, gpu), gpu)?;
    } else {
        AdvancedIndex::of(&whole, value, index, &[0], 0, true, gpu)?.write(gpu)?;
    }
    copy_unless_in_place(&dense, y, gpu)
}

/// Operands of the kernels that index one dim.
fn one_dim(call: &Call<'_>, src: Option<&RawView>) -> (RawView, [RawView; 1], RawView, i64) {
    let (x, index) = (at_least_1d(&call.outputs[0]), at_least_1d(&call.inputs[1]));
    let other = at_least_1d(src.unwrap_or(&call.outputs[0]));
    (x, [index], other, int(call, 0).max(0))
}

pub fn index_select(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    let (_, index, y, d) = one_dim(call, None);
    AdvancedIndex::of(&at_least_1d(&call.inputs[0]), &y, &index, &[d], d as usize, false, gpu)?.read(gpu)
}

pub fn index_add(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    let (y, index, src, d) = one_dim(call, Some(&call.inputs[2]));
    let alpha = scalar(call, 1).map_or(1.0, |alpha| alpha.to_f64());
    accumulate(
        &at_least_1d(&call.inputs[0]),
        &y,
        alpha,
        |y, gpu| AdvancedIndex::of(y, &src, &index, &[d], d as usize, false, gpu),
        gpu,
    )
}

pub fn index_copy(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    let (y, index, src, d) = one_dim(call, Some(&call.inputs[2]));
    copy_unless_in_place(&at_least_1d(&call.inputs[0]), &y, gpu)?;
    AdvancedIndex::of(&y, &src, &index, &[d], d as usize, false, gpu)?.write(gpu)
}

pub fn index_fill(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    let (y, index, ..) = one_dim(call, None);
    let d = dim(call, 0);
    copy_unless_in_place(&at_least_1d(&call.inputs[0]), &y, gpu)?;
    let value = match call.inputs.get(2) {
        Some(value) => value.clone(),
        None => {
            let value = scratch(y.dtype, &[], gpu)?;
            fill(scalar(call, 1).unwrap_or(Scalar::Int(0)), &value, gpu)?;
            value
        }
    };
    let mut shape = y.shape.clone();
    shape[d] = index[0].numel();
    let src = RawView { strides: shape.iter().map(|_| 0).collect(), shape, ..value };
    AdvancedIndex::of(&y, &src, &index, &[d as i64], d, false, gpu)?.write_any(gpu)
}

pub fn embedding(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    AdvancedIndex::of(&call.inputs[0], &call.outputs[0], &call.inputs[1..2], &[0], 0, false, gpu)?.read(gpu)
}

pub fn embedding_grad(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    let (g, gw) = (&call.inputs[0], &call.outputs[0]);
    let skips = if let Some(Attr::Int(padding)) = call.attrs.first() { Some(*padding) } else { None };
    let indexed = |gw: &RawView, gpu: &mut dyn Gpu| {
        let indexed = AdvancedIndex::of(gw, g, &call.inputs[1..2], &[0], 0, false, gpu)?;
        Ok(AdvancedIndex { skips, ..indexed })
    };
    if !flag(call, 1) {
        if addable(gw.dtype) == gw.dtype {
            fill(Scalar::Int(0), gw, gpu)?;
            return accumulate(gw, gw, 1.0, indexed, gpu);
        }
        let zeros = broadcast(Scalar::Int(0), gw.dtype, gw, gpu)?;
        return accumulate(&zeros, gw, 1.0, indexed, gpu);
    }
    // The sum of each row is divided by the number of times that its index occurs.
    let target = scratch(addable(gw.dtype), &gw.shape, gpu)?;
    let counts = scratch(DType::I32, &gw.shape[..1], gpu)?;
    fill(Scalar::Int(0), &target, gpu)?;
    fill(Scalar::Int(0), &counts, gpu)?;
    indexed(&target, gpu)?.add(1.0, gpu)?;
    let one = broadcast(Scalar::Int(1), DType::I32, &call.inputs[1], gpu)?;
    AdvancedIndex::of(&counts, &one, &call.inputs[1..2], &[0], 0, false, gpu)?.add(1.0, gpu)?;
    divide_by_counts(&target, &counts, gpu)?;
    copy_view(&target, gw, gpu)
}

pub fn gather(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    let (x, index, y) = (&call.inputs[0], &call.inputs[1], &call.outputs[0]);
    let indexed = AdvancedIndex::along(x, y, index, dim(call, 0), gpu)?;
    AdvancedIndex { kind: if flag(call, 1) { LABEL } else { INDEX }, ..indexed }.read(gpu)
}

pub fn scatter(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    let (index, src, y) = (&call.inputs[1], &call.inputs[2], &call.outputs[0]);
    copy_unless_in_place(&call.inputs[0], y, gpu)?;
    AdvancedIndex::along(y, src, index, dim(call, 0), gpu)?.write(gpu)
}

pub fn scatter_add(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    let (index, src, y) = (&call.inputs[1], &call.inputs[2], &call.outputs[0]);
    accumulate(&call.inputs[0], y, 1.0, |y, gpu| AdvancedIndex::along(y, src, index, dim(call, 0), gpu), gpu)
}

/// Adds `src` to `y` at the positions that `index` gives along a dim.
pub fn add_along(y: &RawView, src: &RawView, index: &RawView, d: usize, gpu: &mut dyn Gpu) -> Done {
    accumulate(y, y, 1.0, |y, gpu| AdvancedIndex::along(y, src, index, d, gpu), gpu)
}

pub fn scatter_reduce(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    let (index, src, y, d) = (&call.inputs[1], &call.inputs[2], &call.outputs[0], dim(call, 0));
    let (reduce, include_self) = (word(call, 1), flag(call, 2));
    let wide = addable(y.dtype);
    let direct = (wide == y.dtype && y.is_contiguous()) || index.numel() == 0;
    let target = if direct { y.clone() } else { scratch(wide, &y.shape, gpu)? };
    copy_unless_in_place(&call.inputs[0], &target, gpu)?;
    if index.numel() == 0 {
        return Ok(());
    }
    let (way, neutral) = match (reduce, wide) {
        ("prod", _) => (1, Scalar::Int(1)),
        ("amin", DType::F32 | DType::F64) => (2, Scalar::Float(f64::INFINITY)),
        ("amax", DType::F32 | DType::F64) => (3, Scalar::Float(f64::NEG_INFINITY)),
        ("amin", DType::I32) => (2, Scalar::Int(i32::MAX.into())),
        ("amax", DType::I32) => (3, Scalar::Int(i32::MIN.into())),
        ("amin", _) => (2, Scalar::Int(i64::MAX)),
        ("amax", _) => (3, Scalar::Int(i64::MIN)),
        _ => (0, Scalar::Int(0)),
    };
    if !include_self {
        let value = broadcast(neutral, wide, index, gpu)?;
        AdvancedIndex::along(&target, &value, index, d, gpu)?.write_any(gpu)?;
    }
    let indexed = AdvancedIndex::along(&target, src, index, d, gpu)?;
    if way == 0 {
        indexed.add(1.0, gpu)?
    } else {
        indexed.fold(way, gpu)?
    }
    if reduce == "mean" {
        if !wide.is_float() && wide != y.dtype {
            // The sum wraps as in the elements' own type.
            copy_view(&target, y, gpu)?;
            copy_view(y, &target, gpu)?;
        }
        let counts = scratch(DType::I32, &y.shape, gpu)?;
        fill(Scalar::Int(include_self.into()), &counts, gpu)?;
        let one = broadcast(Scalar::Int(1), DType::I32, index, gpu)?;
        AdvancedIndex::along(&counts, &one, index, d, gpu)?.add(1.0, gpu)?;
        divide_by_counts(&target, &counts, gpu)?;
    }
    copy_unless_in_place(&target, y, gpu)
}

/// Divides contiguous sums by counts (i32). If there are fewer counts than sums, each count is for the same number of
/// adjacent sums.
fn divide_by_counts(sums_of: &RawView, counts: &RawView, gpu: &mut dyn Gpu) -> Done {
    let (n, wide) = (sums_of.numel(), sums_of.dtype);
    let count = (n / counts.numel().max(1)) as u64;
    let args = Args { indexed: sums_of.ptr, winner: counts.ptr, n: n as u64, count, ..Args::NONE };
    each(sums(wide, wide, 0, 1, Form::ONE), "ts_scatter_mean", n, args.words(), gpu)
}

/// A number expanded to the shape of `like`.
fn broadcast(value: Scalar, dtype: DType, like: &RawView, gpu: &mut dyn Gpu) -> Result<RawView, GpuError> {
    let one = scratch(dtype, &[], gpu)?;
    fill(value, &one, gpu)?;
    Ok(RawView { strides: like.shape.iter().map(|_| 0).collect(), shape: like.shape.clone(), ..one })
}

pub fn one_hot(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    let (labels, y) = (&call.inputs[0], &call.outputs[0]);
    fill(Scalar::Int(0), y, gpu)?;
    // Each label gives one position in its row.
    let last = y.shape.len() - 1;
    let mut index = labels.clone();
    index.shape.push(1);
    index.strides.push(0);
    let one = broadcast(Scalar::Int(1), y.dtype, &index, gpu)?;
    let indexed = AdvancedIndex::along(y, &one, &index, last, gpu)?;
    AdvancedIndex { kind: LABEL, ..indexed }.write_any(gpu)
}

/// `y[start..] += g` with a strided layout that may overlap itself.
pub fn add_strided(g: &RawView, y: &RawView, start: isize, strides: &Strides, gpu: &mut dyn Gpu) -> Done {
    let indexed = |y: &RawView, _: &mut dyn Gpu| {
        let none: Strides = strides.iter().map(|_| 0).collect();
        Ok(AdvancedIndex {
            x: shifted(y, start, y.shape.clone(), y.strides.clone()),
            other: g.clone(),
            x_strides: strides.clone(),
            positions: none.clone(),
            cells: none,
            cell_count: 0,
            indices: Vec::new(),
            wraps: false,
            kind: INDEX,
            skips: None,
        })
    };
    accumulate(y, y, 1.0, indexed, gpu)
}

/// Texts for the compile test.
pub fn texts() -> Vec<&'static Source> {
    let forms = [Form::ONE, Form { dims: 3, count: 2, is_wide: true }, Form { dims: 2, count: 0, is_wide: false }];
    let sums_of = DType::REAL.into_iter().zip(0..).zip(forms.into_iter().cycle());
    let sums_of = sums_of.map(|((dtype, way), form)| sums(addable(dtype), dtype, way % 4, 1, form));
    let four = sums(DType::F32, DType::F32, 0, 4, Form::ONE);
    let copied = [1, 2, 4, 8, 16].into_iter().zip(forms.into_iter().cycle()).map(|(bytes, form)| copies(bytes, form));
    copied.chain(sums_of).chain([four]).chain(super::cuda_bag::texts()).collect()
}
