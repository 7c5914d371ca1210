//! CUDA launches of `kernel/resample/grid`.

use crate::base::dtype::DType;
use crate::kernel::abi::{Call, RawView};
use crate::kernel::cuda::dense::{Output, copy_view, input, scratch};
use crate::kernel::cuda::rows::{address, each};
use crate::kernel::cuda::specialize::{Value, source};
use crate::kernel::cuda::{Gpu, GpuError, Source};
use crate::kernel::fused::cuda::space::division;
use crate::kernel::host::attributes;
use crate::kernel::pool::cuda::planes;
use crate::kernel::resample::grid::{CUBIC, LINEAR, NEAREST, wanted};
use crate::kernel::structs::structs;

type Done = Result<(), GpuError>;

structs! {
    pub static ARGS = "resample/grid_args.cuh";
    struct Args {
        x: const T,
        grid: const T,
        y: mut T,
        dx: mut void,
        dgrid: mut void,
        /// Threads: a place and a group of channels for each.
        n: u64,
        channels: usize,
        places: usize,
        /// Groups of the channels of a sample, and channels of a group.
        groups: usize,
        each: usize,
        divide_places: u64,
        divide_groups: u64,
        input: [usize; 3],
        outside: u64,
        align: u64,
    }
}

/// Threads that keep a GPU busy: channels are divided into groups to get as many.
const ENOUGH_THREADS: usize = 1 << 18;

/// What the text is specialized for.
#[derive(Clone, Copy)]
struct Form {
    dtype: DType,
    dims: usize,
    between: i64,
    is_wide: bool,
    grads: [bool; 2],
}

/// A launch: its arguments, and its text.
struct Prepared {
    args: Args,
    form: Form,
}

impl Prepared {
    /// `grads`: whether the gradients of the image and of the places are made.
    fn of(call: &Call<'_>, x: &RawView, grid: &RawView, grads: [bool; 2]) -> Prepared {
        let dims = x.shape.len() - 2;
        let (samples, channels) = (x.shape[0], x.shape[1]);
        let places: usize = grid.shape[1..=dims].iter().product();
        let groups = ENOUGH_THREADS.div_ceil((samples * places).max(1)).clamp(1, channels.max(1));
        let each = channels.div_ceil(groups).max(1);
        let groups = channels.div_ceil(each).max(1);
        let args = Args {
            x: x.ptr,
            grid: grid.ptr,
            n: (samples * groups * places) as u64,
            channels,
            places,
            groups,
            each,
            divide_places: division(places as u64),
            divide_groups: division(groups as u64),
            input: planes(x, dims).1,
            outside: attributes::int(call, 1) as u64,
            align: attributes::flag(call, 2) as u64,
            ..Args::NONE
        };
        let largest = [x.numel(), grid.numel(), samples * channels * places].into_iter().max();
        let is_wide = largest > Some(i32::MAX as usize - 256);
        Prepared { args, form: Form { dtype: x.dtype, dims, between: attributes::int(call, 0), is_wide, grads } }
    }

    fn launch(&self, entry: &str, gpu: &mut dyn Gpu) -> Done {
        each(text(self.form), entry, self.args.n as usize, self.args.words(), gpu)
    }
}

fn text(form: Form) -> &'static Source {
    let number = |n: usize| Value::Number(n as u32);
    let names = [
        ("T", Value::Type(form.dtype)),
        ("DIMS", number(form.dims)),
        ("BETWEEN", number(form.between as usize)),
        ("WIDE", number(form.is_wide as usize)),
        ("GRAD_X", number(form.grads[0] as usize)),
        ("GRAD_GRID", number(form.grads[1] as usize)),
    ];
    source("resample/grid.cuh", &names)
}

pub fn grid_sample(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    let dtype = call.inputs[0].dtype;
    if call.outputs[0].numel() == 0 {
        return Ok(());
    }
    let x = input(&call.inputs[0], dtype, gpu)?;
    let grid = input(&call.inputs[1], dtype, gpu)?;
    let y = Output::new(&call.outputs[0], dtype, gpu)?;
    let mut prepared = Prepared::of(call, &x, &grid, [false; 2]);
    prepared.args.y = y.dense.ptr;
    prepared.launch("ts_grid_sample", gpu)?;
    y.finish(gpu)
}

/// Memory in the type that is computed in for a result: its own where that fits.
fn sums(view: &RawView, is_zero: bool, gpu: &mut dyn Gpu) -> Result<RawView, GpuError> {
    let dtype = view.dtype.compute();
    let direct = view.dtype == dtype && view.is_contiguous();
    let sums = if direct { view.clone() } else { scratch(dtype, &view.shape, gpu)? };
    if is_zero {
        gpu.fill_zero(sums.ptr, sums.numel() * dtype.size_bytes())?;
    }
    Ok(sums)
}

pub fn grid_sample_grad(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    // Places share pixels.
    gpu.may_add_in_any_order()?;
    let [dx, dgrid] = wanted(call);
    let Some(image) = dx.or(call.inputs.get(2)) else { return Ok(()) };
    let dtype = image.dtype;
    let g = input(&call.inputs[0], dtype, gpu)?;
    let grid = input(&call.inputs[1], dtype, gpu)?;
    let x = call.inputs.get(2).map(|x| input(x, dtype, gpu)).transpose()?;
    let mut prepared = Prepared::of(call, image, &grid, [dx.is_some(), dgrid.is_some()]);
    prepared.args.x = address(x.as_ref());
    prepared.args.y = g.ptr;
    let dx_sums = dx.map(|dx| sums(dx, true, gpu)).transpose()?;
    let is_added = prepared.args.groups > 1;
    let dgrid_sums = dgrid.map(|dgrid| sums(dgrid, is_added, gpu)).transpose()?;
    for (sums, to) in [(&dx_sums, &mut prepared.args.dx), (&dgrid_sums, &mut prepared.args.dgrid)] {
        sums.iter().for_each(|sums| *to = sums.ptr);
    }
    prepared.launch("ts_grid_sample_grad", gpu)?;
    for (sums, to) in [(dx_sums, dx), (dgrid_sums, dgrid)] {
        if let (Some(sums), Some(to)) = (sums, to)
            && sums.ptr != to.ptr
        {
            copy_view(&sums, to, gpu)?;
        }
    }
    Ok(())
}

/// Texts for the compile test.
pub fn texts() -> Vec<&'static Source> {
    let forms = [
        (2, LINEAR, false, [true, true]),
        (3, LINEAR, true, [true, true]),
        (2, NEAREST, false, [true, false]),
        (2, CUBIC, false, [false, true]),
        (3, NEAREST, false, [true, true]),
        (2, CUBIC, true, [true, true]),
        (3, LINEAR, false, [false, false]),
    ];
    let floats = [DType::F32, DType::F64, DType::F16, DType::BF16].into_iter().cycle();
    let form = |(dtype, (dims, between, is_wide, grads))| text(Form { dtype, dims, between, is_wide, grads });
    floats.zip(forms).map(form).collect()
}
