//! CUDA launches of the kernels in `kernel/sort/host`: stable sorts along a dim and topk here, other selections and
//! `unique` beside them. Of equal elements the earlier is first, also in `topk`, where PyTorch makes no guarantee.

pub mod picked;
pub mod radix;
pub mod rows;
pub mod select;
pub mod slices;
pub mod unique;

use crate::base::dtype::DType;
use crate::kernel::abi::{Call, RawView};
use crate::kernel::cuda::dense::{Output, copy_view, input, scratch};
use crate::kernel::cuda::rows::address;
use crate::kernel::cuda::{Gpu, GpuError, Source};
use crate::kernel::host::walk::{dim, flag, narrow};

type Done = Result<(), GpuError>;

/// The view with one dim moved to the end; a 0-dimensional view as a row of one element.
fn moved(view: &RawView, d: usize) -> RawView {
    let mut view = view.clone();
    if view.shape.is_empty() {
        view.shape.push(1);
        view.strides.push(1);
        return view;
    }
    let (size, stride) = (view.shape.remove(d), view.strides.remove(d));
    view.shape.push(size);
    view.strides.push(stride);
    view
}

/// Contiguous rows, which are sorted or selected from.
pub(crate) struct Table {
    x: RawView,
    rows: usize,
    n: usize,
}

/// Where the sorted rows go; null where they are not asked for.
#[derive(Clone, Copy)]
pub(crate) struct Targets {
    pub values: *mut u8,
    /// Positions in the row, 64 and 32 bits each.
    pub indices: *mut u8,
    pub positions: *mut u8,
}

impl Table {
    fn new(x: &RawView, d: usize, gpu: &mut dyn Gpu) -> Result<Table, GpuError> {
        let x = input(&moved(x, d), x.dtype, gpu)?;
        let n = x.shape.last().copied().unwrap_or(1);
        let rows = x.shape.iter().rev().skip(1).product();
        if n >= u32::MAX as usize {
            return Err(GpuError::Unsupported("a sort of rows this long"));
        }
        Ok(Table { x, rows, n })
    }

    /// The elements of a contiguous tensor as one row.
    pub(crate) fn whole(x: &RawView) -> Table {
        let n = x.numel();
        Table { x: RawView::contiguous(x.ptr, x.dtype, &[n]), rows: 1, n }
    }

    /// The first `kept` elements of each sorted row.
    fn first(&self, kept: usize, descending: bool, to: Targets, gpu: &mut dyn Gpu) -> Done {
        if self.rows * self.n == 0 || kept == 0 {
            return Ok(());
        }
        if kept < self.n && kept <= select::MAX_WINNERS && !rows::is_short(self) {
            return select::topk(self, kept, descending, [to.values, to.indices], gpu);
        }
        if self.n <= rows::LONGEST {
            return rows::sort(self, kept, descending, to, gpu);
        }
        if kept == self.n {
            return radix::sort(self, descending, to, gpu);
        }
        let whole = |at: *mut u8, dtype, gpu: &mut dyn Gpu| -> Result<Option<RawView>, GpuError> {
            if at.is_null() { Ok(None) } else { scratch(dtype, &[self.rows, self.n], gpu).map(Some) }
        };
        let (values, indices) = (whole(to.values, self.x.dtype, gpu)?, whole(to.indices, DType::I64, gpu)?);
        let all = Targets {
            values: address(values.as_ref()),
            indices: address(indices.as_ref()),
            positions: std::ptr::null_mut(),
        };
        radix::sort(self, descending, all, gpu)?;
        for (all, at) in [(values, to.values), (indices, to.indices)] {
            let Some(all) = all else { continue };
            copy_view(&narrow(&all, 1, 0, kept), &RawView::contiguous(at, all.dtype, &[self.rows, kept]), gpu)?;
        }
        Ok(())
    }

    /// All elements of each row in order.
    pub(crate) fn sorted(&self, to: Targets, gpu: &mut dyn Gpu) -> Done {
        self.first(self.n, false, to, gpu)
    }
}

/// Sorts along `d` and writes the first elements of each row, as many as the outputs have.
fn run(
    x: &RawView,
    values: Option<&RawView>,
    at: Option<&RawView>,
    d: usize,
    descending: bool,
    gpu: &mut dyn Gpu,
) -> Done {
    let table = Table::new(x, d, gpu)?;
    let mut output =
        |view: Option<&RawView>, dtype: DType| view.map(|view| Output::new(&moved(view, d), dtype, gpu)).transpose();
    let (values, at) = (output(values, x.dtype)?, output(at, DType::I64)?);
    let kept =
        [&values, &at].into_iter().flatten().next().map_or(0, |out| out.dense.shape.last().copied().unwrap_or(1));
    let place = |out: &Option<Output>| address(out.as_ref().map(|out| &out.dense));
    let to = Targets { values: place(&values), indices: place(&at), positions: std::ptr::null_mut() };
    table.first(kept, descending, to, gpu)?;
    [values, at].into_iter().flatten().try_for_each(|out| out.finish(gpu))
}

pub fn sort(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    let outputs = call.outputs;
    run(&call.inputs[0], outputs.first(), outputs.get(1), dim(call, 0), flag(call, 1), gpu)
}

pub fn argsort(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    run(&call.inputs[0], None, call.outputs.first(), dim(call, 0), flag(call, 1), gpu)
}

pub fn topk(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    let outputs = call.outputs;
    run(&call.inputs[0], outputs.first(), outputs.get(1), dim(call, 1), flag(call, 2), gpu)
}

/// Indices of the smallest elements of each row of a contiguous matrix, in order.
pub fn smallest(x: &RawView, at: &RawView, gpu: &mut dyn Gpu) -> Done {
    run(x, None, Some(at), x.shape.len().saturating_sub(1), false, gpu)
}

/// Texts for the compile test.
pub fn texts() -> Vec<&'static Source> {
    let parts = [radix::texts, rows::texts, select::texts, picked::texts, unique::texts, slices::texts];
    parts.into_iter().flat_map(|texts| texts()).collect()
}
