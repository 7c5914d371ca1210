//! kthvalue, median, nanmedian and mode: from sorted rows where these are short (`kernels/sort/picked.cuh`), else by
//! selection.

use super::select::{self, Rank};
use super::{Done, Table, Targets};
use crate::base::attr::Attr;
use crate::base::dtype::{DType, Scalar};
use crate::kernel::abi::{Call, RawView};
use crate::kernel::cuda::dense::{Output, fill, input, scratch};
use crate::kernel::cuda::rows::{address, each};
use crate::kernel::cuda::specialize::{Value, source};
use crate::kernel::cuda::{Gpu, Source};
use crate::kernel::host::walk::{dim, int};
use crate::kernel::structs::structs;

structs! {
    pub static ARGS = "sort/picked_args.cuh";
    struct PickedArgs {
        x: const T,
        sorted: const T,
        positions: const u32,
        values: mut T,
        indices: mut i64,
        entries: mut void,
        runs: mut u64,
        rows: usize,
        n: usize,
        k: usize,
        mode: usize,
    }
}

/// Bound: length of rows in which one thread reads all elements, to select among equal ones as the CPU does.
const MAX_CPU_ORDER: usize = 256;
/// Rows up to this length are sorted: a warp does that.
const MAX_SORTED: usize = 256;

/// What is picked of a row.
#[derive(Clone, Copy)]
enum Pick {
    Element(Rank),
    Mode,
}

fn text(dtype: DType) -> &'static Source {
    source("sort/picked.cuh", &[("T", Value::Type(dtype))])
}

/// Rows with the places of their results.
struct Picks<'a> {
    table: &'a Table,
    values: *mut u8,
    indices: *mut u8,
}

impl Picks<'_> {
    fn sorted(&self, gpu: &mut dyn Gpu) -> Result<PickedArgs, crate::kernel::cuda::GpuError> {
        let Table { x, rows, n } = self.table;
        let sorted = scratch(x.dtype, &[*rows, *n], gpu)?;
        let positions = gpu.scratch(rows * n * 4)?;
        self.table.sorted(Targets { values: sorted.ptr, indices: std::ptr::null_mut(), positions }, gpu)?;
        let (values, indices) = (self.values, self.indices);
        let (x, sorted) = (x.ptr.cast_const(), sorted.ptr.cast_const());
        Ok(PickedArgs { x, sorted, positions, values, indices, rows: *rows, n: *n, ..PickedArgs::NONE })
    }

    fn element(&self, rank: Rank, gpu: &mut dyn Gpu) -> Done {
        let Table { x, rows, n } = self.table;
        if *n > MAX_SORTED {
            return select::element(self.table, rank, [self.values, self.indices], gpu);
        }
        let mut args = self.sorted(gpu)?;
        (args.mode, args.k) = match rank {
            Rank::Kth(k) => (0, k),
            Rank::Median => (1, 0),
            Rank::NanMedian => (2, 0),
        };
        if matches!(rank, Rank::Kth(_)) && *n <= MAX_CPU_ORDER {
            let entry = if x.dtype.size_bytes() == 8 { 16 } else { 8 };
            args.entries = gpu.scratch(rows * n * entry)?;
        }
        each(text(x.dtype), "ts_select_kth", *rows, args.words(), gpu)
    }

    fn mode(&self, gpu: &mut dyn Gpu) -> Done {
        let Table { x, rows, n } = self.table;
        let mut args = self.sorted(gpu)?;
        args.runs = gpu.scratch(rows * 8)?;
        gpu.fill_zero(args.runs, rows * 8)?;
        each(text(x.dtype), "ts_longest_runs", rows * n, args.words(), gpu)?;
        each(text(x.dtype), "ts_mode", *rows, args.words(), gpu)
    }
}

fn pick(call: &Call<'_>, dim_attr: usize, pick: Pick, gpu: &mut dyn Gpu) -> Done {
    let mut x = call.inputs[0].clone();
    let whole = matches!(call.attrs.get(dim_attr), None | Some(Attr::None));
    if whole {
        let dense = input(&x, x.dtype, gpu)?;
        x = RawView::contiguous(dense.ptr, dense.dtype, &[dense.numel()]);
    }
    let d = if whole { 0 } else { dim(call, dim_attr) };
    let table = Table::new(&x, d, gpu)?;
    if table.rows == 0 {
        return Ok(());
    }
    if table.n == 0 {
        let fill_value = if x.dtype.is_float() { Scalar::Float(f64::NAN) } else { Scalar::Int(0) };
        fill(fill_value, &call.outputs[0], gpu)?;
        return call.outputs.get(1).map_or(Ok(()), |at| fill(Scalar::Int(0), at, gpu));
    }
    // Outputs without the dim or with size 1 in it have the same row-major memory.
    let values = Output::new(&call.outputs[0], x.dtype, gpu)?;
    let at = call.outputs.get(1).map(|at| Output::new(at, DType::I64, gpu)).transpose()?;
    let indices = address(at.as_ref().map(|at: &Output| &at.dense));
    let picks = Picks { table: &table, values: values.dense.ptr, indices };
    match pick {
        Pick::Element(rank) => picks.element(rank, gpu)?,
        Pick::Mode => picks.mode(gpu)?,
    }
    values.finish(gpu)?;
    at.map_or(Ok(()), |at| at.finish(gpu))
}

pub fn kthvalue(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    pick(call, 1, Pick::Element(Rank::Kth(int(call, 0).max(1) as usize - 1)), gpu)
}

pub fn median(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    pick(call, 0, Pick::Element(Rank::Median), gpu)
}

pub fn nanmedian(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    pick(call, 0, Pick::Element(Rank::NanMedian), gpu)
}

/// The last index of the most frequent element, as on the CPU for rows of up to 16 elements.
pub fn mode(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    pick(call, 0, Pick::Mode, gpu)
}

/// Texts for the compile test.
pub(super) fn texts() -> Vec<&'static Source> {
    DType::REAL.into_iter().map(text).collect()
}
