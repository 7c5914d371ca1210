//! CUDA launches of the kernels in `kernel/recurrent/host`: by a library where there is one, else for each step a product and a launch for the units. The products
//! over all steps are those of the host.

use super::cuda_library;
use super::layer::{Layer, Mode};
use crate::base::dtype::DType;
use crate::kernel::abi::{Call, RawView};
use crate::kernel::cuda::dense::{Output, copy_view, input, scratch, sum_first};
use crate::kernel::cuda::rows::{address, each};
use crate::kernel::cuda::specialize::{Value, source};
use crate::kernel::cuda::{Gpu, GpuError, Source};
use crate::kernel::matmul::cuda::{NO_BIAS, product};
use crate::kernel::structs::structs;

type Done = Result<(), GpuError>;

structs! {
    pub static ARGS = "recurrent/args.cuh";
    /// What a launch of `kernels/recurrent/recurrent.cuh` passes, and from one sample to the next the elements of each.
    struct Args {
        gates: mut C,
        from_state: const C,
        bias_ih: const T,
        bias_hh: const T,
        before: const T,
        cell_before: const C,
        cell: mut C,
        out: mut T,
        grad_out: const T,
        grad_state: mut C,
        grad_cell: mut C,
        to: mut T,
        gates_row: usize,
        before_row: usize,
        cell_before_row: usize,
        cell_row: usize,
        out_row: usize,
        to_row: usize,
        batch: usize,
        hidden: usize,
        mode: usize,
        keeps: usize,
    }
}

fn text(dtype: DType) -> &'static Source {
    source("recurrent/recurrent.cuh", &[("T", Value::Type(dtype))])
}

/// Rows of one width in device memory.
#[derive(Clone, Copy)]
struct Rows {
    ptr: *mut u8,
    dtype: DType,
    /// Elements from one row to the next.
    row: usize,
}

impl Rows {
    fn of(view: &RawView) -> Rows {
        Rows { ptr: view.ptr, dtype: view.dtype, row: view.shape.last().copied().unwrap_or(1) }
    }

    fn scratch(dtype: DType, rows: usize, row: usize, gpu: &mut dyn Gpu) -> Result<Rows, GpuError> {
        Ok(Rows { ptr: scratch(dtype, &[rows, row], gpu)?.ptr, dtype, row })
    }

    fn shifted(self, elements: usize) -> Rows {
        Rows { ptr: self.ptr.wrapping_add(elements * self.dtype.size_bytes()), ..self }
    }

    /// From a column on.
    fn column(self, column: usize) -> Rows {
        self.shifted(column)
    }

    /// Those of a step, of rows for all samples and steps.
    fn at(self, layer: &Layer, step: usize) -> Rows {
        Rows { row: self.row * layer.apart(), ..self.shifted(layer.row(step, 0) * self.row) }
    }

    fn view(self, rows: usize, columns: usize) -> RawView {
        let strides = [self.row as isize, 1].into_iter().collect();
        RawView { ptr: self.ptr, dtype: self.dtype, shape: [rows, columns].as_slice().into(), strides }
    }

    fn transposed(self, rows: usize, columns: usize) -> RawView {
        let mut view = self.view(rows, columns);
        view.shape.swap(0, 1);
        view.strides.swap(0, 1);
        view
    }
}

pub fn recurrent(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    let layer = Layer::of(call);
    if cuda_library::forward(&layer, call, gpu)? {
        return Ok(());
    }
    let (dtype, hidden, width) = (call.outputs[0].dtype, layer.hidden, layer.width());
    let wide = dtype.compute();
    let dense: Vec<RawView> = call.inputs.iter().map(|view| input(view, dtype, gpu)).collect::<Result<_, _>>()?;
    let out = Output::new(&call.outputs[0], dtype, gpu)?;
    let reserve = Output::new(&call.outputs[1], wide, gpu)?;
    let keeps = reserve.dense.numel() > 0;
    let biases = 4 + (layer.mode == Mode::Lstm) as usize;
    let gates = match keeps {
        true => Rows::of(&reserve.dense),
        false => Rows::scratch(wide, layer.rows(), width, gpu)?,
    };
    let (rows, inputs) = (layer.rows(), layer.inputs);
    let weight = Rows::of(&dense[1]).transposed(width, inputs);
    product(&Rows::of(&dense[0]).view(rows, inputs), &weight, &gates.view(rows, width), 0.0, NO_BIAS, gpu)?;
    let from_state = match layer.mode {
        Mode::Gru => Rows::scratch(wide, layer.batch, width, gpu)?,
        _ => gates,
    };
    let mut cells = (gates, gates);
    if layer.mode == Mode::Lstm {
        cells = (Rows::of(&input(&dense[4], wide, gpu)?), Rows::scratch(wide, layer.batch, hidden, gpu)?);
    }
    let mut steps = Steps {
        layer: &layer,
        weight: Rows::of(&dense[2]).transposed(width, hidden),
        biases: [address(dense.get(biases)), address(dense.get(biases + 1))],
        gates,
        from_state,
        out: Rows::of(&out.dense),
        keeps,
        before: Rows::of(&dense[3]),
        cell: cells.0,
        own_cell: cells.1,
    };
    for i in 0..layer.steps {
        steps.run(layer.step(i), gpu)?;
    }
    copy_view(&steps.before.view(layer.batch, hidden), &call.outputs[2], gpu)?;
    if layer.mode == Mode::Lstm {
        copy_view(&steps.cell.view(layer.batch, hidden), &call.outputs[3], gpu)?;
    }
    out.finish(gpu)?;
    reserve.finish(gpu)
}

/// The memory of a walk over the steps.
struct Steps<'a> {
    layer: &'a Layer,
    weight: RawView,
    biases: [*mut u8; 2],
    gates: Rows,
    from_state: Rows,
    out: Rows,
    keeps: bool,
    before: Rows,
    cell: Rows,
    own_cell: Rows,
}

impl Steps<'_> {
    fn run(&mut self, step: usize, gpu: &mut dyn Gpu) -> Done {
        let layer = self.layer;
        let (batch, hidden, width) = (layer.batch, layer.hidden, layer.width());
        let gates = self.gates.at(layer, step);
        let is_gru = layer.mode == Mode::Gru;
        let (to, beta) = if is_gru { (self.from_state, 0.0) } else { (gates, 1.0) };
        product(&self.before.view(batch, hidden), &self.weight, &to.view(batch, width), beta, NO_BIAS, gpu)?;
        let out = self.out.at(layer, step);
        let cell = if self.keeps { gates.column(width) } else { self.own_cell };
        let args = Args {
            gates: gates.ptr,
            from_state: self.from_state.ptr,
            bias_ih: self.biases[0],
            bias_hh: self.biases[1],
            before: self.before.ptr,
            cell_before: self.cell.ptr,
            cell: cell.ptr,
            out: out.ptr,
            gates_row: gates.row,
            before_row: self.before.row,
            cell_before_row: self.cell.row,
            cell_row: cell.row,
            out_row: out.row,
            batch,
            hidden,
            mode: layer.mode as usize,
            keeps: self.keeps as usize,
            ..Args::NONE
        };
        each(text(out.dtype), "ts_recurrent_step", batch * hidden, args.words(), gpu)?;
        (self.before, self.cell) = (out, cell);
        Ok(())
    }
}

pub fn recurrent_grad(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    let layer = Layer::of(call);
    if cuda_library::gradient(&layer, call, gpu)? {
        return Ok(());
    }
    let (dtype, wide) = (call.outputs[1].dtype, call.outputs[1].dtype.compute());
    let (batch, hidden, rows) = (layer.batch, layer.hidden, layer.rows());
    let is_lstm = layer.mode == Mode::Lstm;
    let first = 4 + is_lstm as usize;
    let mut dense = Vec::with_capacity(call.inputs.len());
    for (at, view) in call.inputs.iter().enumerate() {
        dense.push(input(view, if at == first + 1 { wide } else { dtype }, gpu)?);
    }
    let row = layer.width() + if layer.mode == Mode::Gru { hidden } else { 0 };
    let own = |from: &RawView, gpu: &mut dyn Gpu| {
        let to = scratch(wide, &[batch, hidden], gpu)?;
        copy_view(from, &to, gpu)?;
        Ok::<Rows, GpuError>(Rows::of(&to))
    };
    let grad_state = own(&dense[first + 3], gpu)?;
    let grad_cell = if is_lstm { own(&dense[first + 4], gpu)? } else { grad_state };
    let first_cell = if is_lstm { Rows::of(&input(&dense[4], wide, gpu)?) } else { grad_state };
    let back = Back {
        layer: &layer,
        dense: &dense,
        kept: Rows::of(&dense[first + 1]),
        out: Rows::of(&dense[first]),
        grad_out: Rows::of(&dense[first + 2]),
        first_cell,
        grad_state,
        grad_cell,
        sums: Rows::scratch(dtype, rows, row, gpu)?,
    };
    for i in (0..layer.steps).rev() {
        back.run(i, gpu)?;
    }
    copy_view(&grad_state.view(batch, hidden), &call.outputs[3], gpu)?;
    if is_lstm {
        copy_view(&grad_cell.view(batch, hidden), &call.outputs[4], gpu)?;
    }
    back.products(call.outputs, first, gpu)
}

/// The memory of a walk back through the steps.
struct Back<'a> {
    layer: &'a Layer,
    dense: &'a [RawView],
    kept: Rows,
    out: Rows,
    grad_out: Rows,
    first_cell: Rows,
    grad_state: Rows,
    grad_cell: Rows,
    /// Gradients of the gates' sums. GRU: of n, r, z, and of what the state adds to n.
    sums: Rows,
}

impl Back<'_> {
    /// The `i`th step.
    fn run(&self, i: usize, gpu: &mut dyn Gpu) -> Done {
        let layer = self.layer;
        let (batch, hidden, width) = (layer.batch, layer.hidden, layer.width());
        let step = layer.step(i);
        let kept = self.kept.at(layer, step);
        let (out, grad_out) = (self.out.at(layer, step), self.grad_out.at(layer, step));
        let (before, cell_before) = match i {
            0 => (Rows::of(&self.dense[3]), self.first_cell),
            _ => {
                let last = layer.step(i - 1);
                (self.out.at(layer, last), self.kept.at(layer, last).column(width))
            }
        };
        let sums = self.sums.at(layer, step);
        let args = Args {
            gates: kept.ptr,
            before: before.ptr,
            cell_before: cell_before.ptr,
            cell: kept.column(width).ptr,
            out: out.ptr,
            grad_out: grad_out.ptr,
            grad_state: self.grad_state.ptr,
            grad_cell: self.grad_cell.ptr,
            to: sums.ptr,
            gates_row: kept.row,
            before_row: before.row,
            cell_before_row: cell_before.row,
            cell_row: kept.row,
            out_row: out.row,
            to_row: sums.row,
            batch,
            hidden,
            mode: layer.mode as usize,
            ..Args::NONE
        };
        each(text(sums.dtype), "ts_recurrent_step_grad", batch * hidden, args.words(), gpu)?;
        let is_gru = layer.mode == Mode::Gru;
        let of_state = sums.column(if is_gru { hidden } else { 0 }).view(batch, width);
        let weight = Rows::of(&self.dense[2]).view(width, hidden);
        let beta = if is_gru { 1.0 } else { 0.0 };
        product(&of_state, &weight, &self.grad_state.view(batch, hidden), beta, NO_BIAS, gpu)
    }

    /// The gradients that sum over steps, and that of the input.
    fn products(&self, outputs: &[RawView], first: usize, gpu: &mut dyn Gpu) -> Done {
        let layer = self.layer;
        let (rows, inputs, hidden, width) = (layer.rows(), layer.inputs, layer.hidden, layer.width());
        // Columns of the sums, the rows of a weight that they belong to, and how many.
        let all = [(0, 0, width)];
        let (of_input, of_state) = match layer.mode {
            Mode::Gru => (&[(hidden, 0, 2 * hidden), (0, 2 * hidden, hidden)][..], &[(hidden, 0, width)][..]),
            _ => (&all[..], &all[..]),
        };
        if outputs[0].numel() > 0 {
            let to = Output::new(&outputs[0], self.sums.dtype, gpu)?;
            let flat = Rows::of(&to.dense).view(rows, inputs);
            for (i, &(column, row, count)) in of_input.iter().enumerate() {
                let weight = Rows::of(&self.dense[1]).shifted(row * inputs).view(count, inputs);
                let sums = self.sums.column(column).view(rows, count);
                product(&sums, &weight, &flat, if i == 0 { 0.0 } else { 1.0 }, NO_BIAS, gpu)?;
            }
            to.finish(gpu)?;
        }
        let states = self.states_before(gpu)?;
        for (at, spans, with, n) in [(1, of_input, Rows::of(&self.dense[0]), inputs), (2, of_state, states, hidden)] {
            let to = Output::new(&outputs[at], self.sums.dtype, gpu)?;
            for &(column, row, count) in spans {
                let sums = self.sums.column(column).transposed(rows, count);
                let part = Rows::of(&to.dense).shifted(row * n).view(count, n);
                product(&sums, &with.view(rows, n), &part, 0.0, NO_BIAS, gpu)?;
            }
            to.finish(gpu)?;
        }
        if outputs.len() > first {
            let each = self.sums.row;
            let total = scratch(self.sums.dtype.compute(), &[each], gpu)?;
            sum_first(&self.sums.view(rows, each), &total, gpu)?;
            for (to, spans) in outputs[first..].iter().zip([of_input, of_state]) {
                for &(column, row, count) in spans {
                    let part = |view: &RawView, from: usize| RawView {
                        ptr: view
                            .ptr
                            .wrapping_offset(from as isize * view.strides[0] * view.dtype.size_bytes() as isize),
                        shape: [count].as_slice().into(),
                        ..view.clone()
                    };
                    copy_view(&part(&total, column), &part(to, row), gpu)?;
                }
            }
        }
        Ok(())
    }

    /// The state before each step, in the order of the output.
    fn states_before(&self, gpu: &mut dyn Gpu) -> Result<Rows, GpuError> {
        let layer = self.layer;
        let (batch, hidden, steps) = (layer.batch, layer.hidden, layer.steps);
        let to = Rows::scratch(self.out.dtype, layer.rows(), hidden, gpu)?;
        let start = to.at(layer, layer.step(0)).view(batch, hidden);
        copy_view(&Rows::of(&self.dense[3]).view(batch, hidden), &start, gpu)?;
        if steps > 1 {
            let [from_step, to_step] = if layer.reverse { [1, 0] } else { [0, 1] };
            let along = |rows: Rows, step: usize| {
                let one = rows.at(layer, step).view(batch, hidden);
                let next = (layer.row(1, 0) * rows.row) as isize;
                RawView {
                    shape: [steps - 1, batch, hidden].as_slice().into(),
                    strides: [next, one.strides[0], 1].into_iter().collect(),
                    ..one
                }
            };
            copy_view(&along(self.out, from_step), &along(to, to_step), gpu)?;
        }
        Ok(to)
    }
}

/// Texts for the compile test.
pub fn texts() -> Vec<&'static Source> {
    DType::REAL.into_iter().filter(|dtype| dtype.is_float()).map(text).collect()
}
