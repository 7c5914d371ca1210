//! CUDA launches of the kernels in `kernel/index/host`: one implementation for all kinds of index tensors.
//!
//! If several entries have the same index, floats are added in no fixed order, as in PyTorch; of writes the last entry
//! is stored.

use crate::base::attr::Attr;
use crate::base::dtype::{DType, Scalar};
use crate::base::layout::{Strides, contiguous_strides};
use crate::kernel::abi::{Call, RawView};
use crate::kernel::cuda::dense::{copy_view, fill, input, scratch};
use crate::kernel::cuda::rows::each;
use crate::kernel::cuda::specialize::{Value, source};
use crate::kernel::cuda::{Gpu, GpuError, Source};
use crate::kernel::fused::cuda::space::{Order, Space};
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

const INDEX: u64 = 1;
const LABEL: u64 = 2;

/// Whether adjacent elements may be copied as one wider element.
#[derive(Clone, Copy, PartialEq)]
enum Width {
    One,
    Any,
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

    /// The arguments, and the number of adjacent elements that are copied as one.
    fn args(&self, allowed: Width, gpu: &mut dyn Gpu) -> Result<(Args, usize), GpuError> {
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
        // Elements that are adjacent on both sides and have the same index are copied as one.
        let size = self.other.dtype.size_bytes();
        let mut width = 1;
        if let Some((last, outer)) = dims.split_last() {
            let still = last.strides[0] == 1
                && last.strides[1] == 1
                && last.strides[2..4 + self.indices.len()].iter().all(|&s| s == 0);
            let fits = |w: usize| {
                let even = |n: i64| n.unsigned_abs().is_multiple_of(w as u64);
                (last.size as usize).is_multiple_of(w)
                    && outer.iter().all(|dim| even(dim.strides[0]) && even(dim.strides[1]))
                    && self.indices.iter().all(|index| even(index.stride as i64))
                    && [self.x.ptr, self.other.ptr].iter().all(|&p| (p as usize).is_multiple_of(w * size))
            };
            width = [16 / size, 8 / size, 1]
                .into_iter()
                .find(|&w| w > 0 && (w == 1 || allowed == Width::Any && still && fits(w)))
                .unwrap_or(1);
        }
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
            args.size[d] = dim.size;
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
        Ok((args, width))
    }

    /// `other = x[..]`.
    fn read(&self, gpu: &mut dyn Gpu) -> Done {
        let (args, width) = self.args(Width::Any, gpu)?;
        let bytes = width * self.x.dtype.size_bytes();
        each(copies(bytes), "ts_index_get", args.n as usize, args.words(), gpu)
    }

    /// `x[..] = other`, the last of duplicates staying.
    fn write(&self, gpu: &mut dyn Gpu) -> Done {
        let (mut args, width) = self.args(Width::Any, gpu)?;
        let winner = gpu.scratch(self.cell_count.max(1) * 8)?;
        gpu.fill_zero(winner, self.cell_count * 8)?;
        args.winner = winner;
        let source = copies(width * self.x.dtype.size_bytes());
        each(source, "ts_elect_last", args.n as usize, args.words(), gpu)?;
        each(source, "ts_index_put", args.n as usize, args.words(), gpu)
    }

    /// `x[..] += factor * other`, for types of `x` that have an atomic addition.
    fn add(&self, factor: f64, gpu: &mut dyn Gpu) -> Done {
        let (mut args, _) = self.args(Width::One, gpu)?;
        args.factor = factor;
        each(sums(self.x.dtype, self.other.dtype, 0), "ts_index_add", args.n as usize, args.words(), gpu)
    }

    /// `x[..]` combined with `other` by the operation of this number (`FOLD` in the text).
    fn fold(&self, way: u32, gpu: &mut dyn Gpu) -> Done {
        let (args, _) = self.args(Width::One, gpu)?;
        each(sums(self.x.dtype, self.other.dtype, way), "ts_scatter_reduce", args.n as usize, args.words(), gpu)
    }
}

/// The text of copies of elements of this many bytes.
fn copies(bytes: usize) -> &'static Source {
    let float = Value::Type(DType::F32);
    source(
        "index/index.cuh",
        &[("B", Value::Number(bytes as u32)), ("ADD", float), ("FROM", float), ("FOLD", Value::Number(0))],
    )
}

/// The text that combines `from` into `to`: a sum, or the operation `fold`.
fn sums(to: DType, from: DType, fold: u32) -> &'static Source {
    let (four, fold) = (Value::Number(4), Value::Number(fold));
    source("index/index.cuh", &[("B", four), ("ADD", Value::Type(to)), ("FROM", Value::Type(from)), ("FOLD", fold)])
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

/// Adds to `y`, through a copy of another type if its own has no atomic addition.
fn accumulate(
    y: &RawView,
    factor: f64,
    indexed: impl FnOnce(&RawView, &mut dyn Gpu) -> Result<AdvancedIndex, GpuError>,
    gpu: &mut dyn Gpu,
) -> Done {
    let wide = addable(y.dtype);
    if wide == y.dtype {
        return indexed(y, gpu)?.add(factor, gpu);
    }
    let target = scratch(wide, &y.shape, gpu)?;
    copy_view(y, &target, gpu)?;
    indexed(&target, gpu)?.add(factor, gpu)?;
    copy_view(&target, y, gpu)
}

pub fn index_get(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    let [x, indices @ ..] = call.inputs else { return Ok(()) };
    AdvancedIndex::of(x, &call.outputs[0], indices, ints(call, 0), dim(call, 1), true, gpu)?.read(gpu)
}

pub fn index_put(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    let ([x, value, indices @ ..], y) = (call.inputs, &call.outputs[0]) else { return Ok(()) };
    copy_unless_in_place(x, y, gpu)?;
    let (dims, place) = (ints(call, 0), dim(call, 1));
    if flag(call, 2) {
        return accumulate(y, 1.0, |y, gpu| AdvancedIndex::of(y, value, indices, dims, place, true, gpu), gpu);
    }
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
        accumulate(&whole, 1.0, |y, gpu| AdvancedIndex::of(y, value, index, &[0], 0, true, gpu), gpu)?;
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
    copy_unless_in_place(&at_least_1d(&call.inputs[0]), &y, gpu)?;
    let alpha = scalar(call, 1).map_or(1.0, |alpha| alpha.to_f64());
    accumulate(&y, alpha, |y, gpu| AdvancedIndex::of(y, &src, &index, &[d], d as usize, false, gpu), gpu)
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
    AdvancedIndex::of(&y, &src, &index, &[d as i64], d, false, gpu)?.write(gpu)
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
        fill(Scalar::Int(0), gw, gpu)?;
        return accumulate(gw, 1.0, indexed, gpu);
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
    AdvancedIndex::along(x, y, index, dim(call, 0), gpu)?.read(gpu)
}

pub fn scatter(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    let (index, src, y) = (&call.inputs[1], &call.inputs[2], &call.outputs[0]);
    copy_unless_in_place(&call.inputs[0], y, gpu)?;
    AdvancedIndex::along(y, src, index, dim(call, 0), gpu)?.write(gpu)
}

pub fn scatter_add(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    let (index, src, y) = (&call.inputs[1], &call.inputs[2], &call.outputs[0]);
    copy_unless_in_place(&call.inputs[0], y, gpu)?;
    accumulate(y, 1.0, |y, gpu| AdvancedIndex::along(y, src, index, dim(call, 0), gpu), gpu)
}

/// Adds `src` to `y` at the positions that `index` gives along a dim.
pub fn add_along(y: &RawView, src: &RawView, index: &RawView, d: usize, gpu: &mut dyn Gpu) -> Done {
    accumulate(y, 1.0, |y, gpu| AdvancedIndex::along(y, src, index, d, gpu), gpu)
}

pub fn scatter_reduce(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    let (index, src, y, d) = (&call.inputs[1], &call.inputs[2], &call.outputs[0], dim(call, 0));
    let (reduce, include_self) = (word(call, 1), flag(call, 2));
    copy_unless_in_place(&call.inputs[0], y, gpu)?;
    if index.numel() == 0 {
        return Ok(());
    }
    let wide = addable(y.dtype);
    let target = scratch(wide, &y.shape, gpu)?;
    copy_view(y, &target, gpu)?;
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
        AdvancedIndex::along(&target, &value, index, d, gpu)?.write(gpu)?;
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
    copy_view(&target, y, gpu)
}

/// Divides contiguous sums by counts (i32). If there are fewer counts than sums, each count is for the same number of
/// adjacent sums.
fn divide_by_counts(sums_of: &RawView, counts: &RawView, gpu: &mut dyn Gpu) -> Done {
    let (n, wide) = (sums_of.numel(), sums_of.dtype);
    let count = (n / counts.numel().max(1)) as u64;
    let args = Args { indexed: sums_of.ptr, winner: counts.ptr, n: n as u64, count, ..Args::NONE };
    each(sums(wide, wide, 0), "ts_scatter_mean", n, args.words(), gpu)
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
    AdvancedIndex { kind: LABEL, ..indexed }.write(gpu)
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
    accumulate(y, 1.0, indexed, gpu)
}

/// Texts for the compile test.
pub fn texts() -> Vec<&'static Source> {
    let sums_of = DType::REAL.into_iter().zip(0..).map(|(dtype, way)| sums(addable(dtype), dtype, way % 4));
    [1, 2, 4, 8, 16].into_iter().map(copies).chain(sums_of).collect()
}
