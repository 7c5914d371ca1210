//! CUDA launches of the kernels in `kernel/norm/host/layer` and `kernel/norm/host/batch`.

use crate::base::dtype::{DType, Scalar};
use crate::kernel::abi::{Call, RawView};
use crate::kernel::cuda::dense::{Output, fill, input, scratch};
use crate::kernel::cuda::rows::{Names, Rows, address, each, launch, sample_shapes};
use crate::kernel::cuda::specialize::{Value, source};
use crate::kernel::cuda::{Gpu, GpuError, Source};
use crate::kernel::fused::cuda::space::division;
use crate::kernel::host::attributes;
use crate::kernel::structs::structs;

type Done = Result<(), GpuError>;

structs! {
    pub static LAYER_NORM_ARGS = "norm/layer_norm_args.cuh";
    struct LayerArgs {
        dy: const T,
        x: const T,
        weight: const W,
        bias: const W,
        y: mut T,
        mean: mut C,
        rstd: mut C,
        partials: mut C,
        rows: usize,
        n: usize,
        span: usize,
        period: usize,
        span_word: u64,
        parts: usize,
        center: u64,
        eps: f64,
    }
}

structs! {
    pub static BATCH_NORM_ARGS = "norm/batch_norm_args.cuh";
    struct BatchArgs {
        dy: const T,
        x: const T,
        weight: const W,
        bias: const W,
        y: mut T,
        mean: mut C,
        variance: mut C,
        partials: mut C,
        dw: mut C,
        db: mut C,
        batch: usize,
        channels: usize,
        span: usize,
        parts: usize,
        span_word: u64,
        channels_word: u64,
        training: u64,
        eps: f64,
    }
}

/// The rows of a launch: `span` adjacent elements share a weight, and the weights repeat after `period` rows.
#[derive(Clone, Copy)]
struct Shape {
    rows: usize,
    n: usize,
    span: usize,
    period: usize,
    center: bool,
}

impl Shape {
    fn trailing(x: &RawView, dims: usize, center: bool) -> Shape {
        let lead = x.shape.len().saturating_sub(dims);
        let (rows, n) = (x.shape[..lead].iter().product(), x.shape[lead..].iter().product());
        Shape { rows, n, span: 1, period: 1, center }
    }

    fn grouped(x: &RawView, groups: usize) -> Shape {
        let span: usize = x.shape[2..].iter().product();
        let (rows, n) = (x.shape[0] * groups, x.shape[1] / groups.max(1) * span);
        // Group norm with one position for each channel: the weights differ from row to row.
        Shape { rows, n, span, period: groups, center: true }
    }

    fn args(&self) -> LayerArgs {
        let Shape { rows, n, span, period, center } = *self;
        LayerArgs { rows, n, span, period, span_word: division(span as u64), center: center as u64, ..LayerArgs::NONE }
    }

    fn width(&self) -> usize {
        self.n / self.span.max(1) * self.period
    }
}

fn text(dtype: DType, weights: DType, kind: u32, shape: Names) -> &'static Source {
    let types = [("T", Value::Type(dtype)), ("W", Value::Type(weights))];
    source("norm/layer_norm.cuh", &[types[0], types[1], ("WEIGHTS", Value::Number(kind)), shape[0], shape[1], shape[2]])
}

pub fn layer_norm(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    let shape = Shape::trailing(&call.inputs[0], attributes::size(call, 0), true);
    forward(call, shape, attributes::float(call, 1), gpu)
}

pub fn group_norm(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    let shape = Shape::grouped(&call.inputs[0], attributes::size(call, 0));
    forward(call, shape, attributes::float(call, 1), gpu)
}

pub fn rms_norm(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    let x = &call.inputs[0];
    let eps = attributes::float_or_none(call, 1).unwrap_or(match x.dtype.compute() {
        DType::F64 => f64::EPSILON,
        _ => f32::EPSILON as f64,
    });
    forward(call, Shape::trailing(x, attributes::size(call, 0), false), eps, gpu)
}

pub fn layer_norm_grad(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    backward(call, Shape::trailing(&call.inputs[0], attributes::size(call, 0), true), gpu)
}

pub fn group_norm_grad(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    backward(call, Shape::grouped(&call.inputs[0], attributes::size(call, 0)), gpu)
}

pub fn rms_norm_grad(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    backward(call, Shape::trailing(&call.inputs[0], attributes::size(call, 0), false), gpu)
}

/// Weight and bias, of one dtype, from input `fixed` on as the attributes from `first` on say.
struct Weights {
    dtype: DType,
    weight: Option<RawView>,
    bias: Option<RawView>,
}

impl Weights {
    fn of(call: &Call<'_>, fixed: usize, first: usize, x: DType, gpu: &mut dyn Gpu) -> Result<Weights, GpuError> {
        let given = |i: usize| i < call.attrs.len() && attributes::flag(call, i);
        let weight = given(first).then(|| &call.inputs[fixed]);
        let bias = given(first + 1).then(|| &call.inputs[fixed + given(first) as usize]);
        let same = [weight, bias].into_iter().flatten().all(|view| view.dtype == x);
        let dtype = if same { x } else { x.compute() };
        let mut dense = |view: Option<&RawView>| view.map(|view| input(view, dtype, gpu)).transpose();
        Ok(Weights { dtype, weight: dense(weight)?, bias: dense(bias)? })
    }

    /// `WEIGHTS` of the text. 0: there are none; 1: each element of a row has its own, and `vector` adjacent ones can
    /// be loaded at once; 2: any; 3: one for all elements of a vector.
    fn kind(&self, s: Shape, vector: usize) -> u32 {
        let bytes = (vector * self.dtype.size_bytes()).min(16);
        let both = [&self.weight, &self.bias].into_iter().flatten();
        let aligned = both.clone().all(|view| (view.ptr as usize).is_multiple_of(bytes));
        match both.count() {
            0 => 0,
            _ if s.span == 1 && s.period == 1 && aligned => 1,
            _ if s.span > 1 && s.span.is_multiple_of(vector) => 3,
            _ => 2,
        }
    }
}

fn forward(call: &Call<'_>, s: Shape, eps: f64, gpu: &mut dyn Gpu) -> Done {
    let dtype = call.inputs[0].dtype;
    if s.rows == 0 {
        return Ok(());
    }
    let x = input(&call.inputs[0], dtype, gpu)?;
    let weights = Weights::of(call, 1, 2, dtype, gpu)?;
    let y = Output::new(&call.outputs[0], dtype, gpu)?;
    let mean = s.center.then(|| Output::new(&call.outputs[1], dtype.compute(), gpu)).transpose()?;
    let rstd = Output::new(&call.outputs[call.outputs.len() - 1], dtype.compute(), gpu)?;
    let rows = Rows::of(s.rows, s.n, 1, &[&x, &y.dense]);
    let args = LayerArgs {
        x: x.ptr,
        weight: address(weights.weight.as_ref()),
        bias: address(weights.bias.as_ref()),
        y: y.dense.ptr,
        mean: address(mean.as_ref().map(|mean| &mean.dense)),
        rstd: rstd.dense.ptr,
        eps,
        ..s.args()
    };
    let source = text(dtype, weights.dtype, weights.kind(s, rows.vector), rows.names());
    launch(source, "ts_layer_norm", (rows.blocks, 1), rows.threads, args.words(), gpu)?;
    y.finish(gpu)?;
    rstd.finish(gpu)?;
    mean.map_or(Ok(()), |mean| mean.finish(gpu))
}

fn backward(call: &Call<'_>, s: Shape, gpu: &mut dyn Gpu) -> Done {
    let dtype = call.inputs[0].dtype;
    let fixed = if s.center { 4 } else { 3 };
    if s.rows == 0 || s.n == 0 {
        return call.outputs[1..].iter().try_for_each(|view| fill(Scalar::Int(0), view, gpu));
    }
    let g = input(&call.inputs[0], dtype, gpu)?;
    let x = input(&call.inputs[1], dtype, gpu)?;
    let compute = dtype.compute();
    let mean = s.center.then(|| input(&call.inputs[2], compute, gpu)).transpose()?;
    let rstd = input(&call.inputs[fixed - 1], compute, gpu)?;
    let weights = Weights::of(call, fixed, 1, dtype, gpu)?;
    let dx = Output::new(&call.outputs[0], dtype, gpu)?;
    let rows = Rows::of(s.rows, s.n, 2, &[&g, &x, &dx.dense]);
    let mut args = LayerArgs {
        dy: g.ptr,
        x: x.ptr,
        weight: address(weights.weight.as_ref()),
        y: dx.dense.ptr,
        mean: address(mean.as_ref()),
        rstd: rstd.ptr,
        ..s.args()
    };
    let source = text(dtype, weights.dtype, weights.kind(s, rows.vector), rows.names());
    launch(source, "ts_layer_norm_grad", (rows.blocks, 1), rows.threads, args.words(), gpu)?;
    dx.finish(gpu)?;
    if call.outputs.len() == 1 {
        return Ok(());
    }
    let width = s.width();
    let by_element = s.span == 1 && s.period == 1;
    // Blocks of one part, and the parts that their elements allow.
    let (blocks, most) = match by_element {
        true => (s.n.div_ceil(32), s.rows / 64),
        false => (width, s.rows / s.period * s.span / rows.vector / 1024),
    };
    let parts = (gpu.multiprocessors() as usize * 8 / blocks).min(most).clamp(1, 128);
    let sums = scratch(compute, &[parts, 2, width], gpu)?;
    args.partials = sums.ptr;
    args.parts = parts;
    let entry = if by_element { "ts_layer_norm_weight_grad" } else { "ts_group_norm_weight_grad" };
    launch(source, entry, (blocks, parts), 256, args.words(), gpu)?;
    if parts > 1 {
        args.n = 2 * width;
        each(source, "ts_norm_merge_partials", 2 * width, args.words(), gpu)?;
    }
    let size = compute.size_bytes();
    for (n, view) in call.outputs[1..].iter().enumerate() {
        let row = RawView::contiguous(sums.ptr.wrapping_add(n * width * size), compute, &view.shape);
        crate::kernel::cuda::dense::copy_view(&row, view, gpu)?;
    }
    Ok(())
}

/// `[batch, channels, span]`, and how the statistics of a channel are divided among blocks.
struct Planes {
    batch: usize,
    channels: usize,
    span: usize,
    wide: bool,
    /// Elements of a vector: along the span if that is wide, else channels.
    vector: usize,
    blocks: usize,
    parts: usize,
}

impl Planes {
    /// `operands`: all that are loaded and stored by vectors.
    fn of(shape: &[usize], operands: &[&RawView], gpu: &dyn Gpu) -> Planes {
        let (batch, channels, span) = (shape[0], shape[1], shape[2..].iter().product::<usize>());
        let wide = span >= 16;
        let along = if wide { span } else { channels };
        let size = operands.iter().map(|view| view.dtype.size_bytes()).max().unwrap_or(4);
        let fits = |&v: &usize| {
            along.is_multiple_of(v) && operands.iter().all(|view| (view.ptr as usize).is_multiple_of(v * size))
        };
        // Eight channels of a thread need more registers than they save.
        let widest = if wide { 16 / size } else { (16 / size).min(4) };
        let vector = if wide || span == 1 { [widest, 2].into_iter().find(fits).unwrap_or(1) } else { 1 };
        let (blocks, vectors) =
            if wide { (channels, batch * (span / vector)) } else { (channels.div_ceil(32 * vector), batch * span) };
        let rounds = vectors / if wide { 256 * 4 } else { 8 * 8 };
        let parts = (gpu.multiprocessors() as usize * 8 / blocks.max(1)).min(rounds).clamp(1, 128);
        Planes { batch, channels, span, wide, vector, blocks, parts }
    }

    fn source(&self, dtype: DType, weights: DType) -> &'static Source {
        batch_text(dtype, weights, self.wide, self.vector, self.elements() >= 1 << 31)
    }

    fn args(&self) -> BatchArgs {
        let Planes { batch, channels, span, parts, vector, wide, .. } = *self;
        let (along, across) = if wide { (vector, 1) } else { (1, vector) };
        let word = |n: usize| if n < 1 << 31 { division(n as u64) } else { 0 };
        BatchArgs {
            batch,
            channels,
            span,
            parts,
            span_word: word(span / along),
            channels_word: word(channels / across),
            ..BatchArgs::NONE
        }
    }

    fn elements(&self) -> usize {
        self.batch * self.channels * self.span
    }
}

fn batch_text(dtype: DType, weights: DType, wide: bool, vector: usize, big: bool) -> &'static Source {
    let number = |n: usize| Value::Number(n as u32);
    let numbers = [("WIDE", number(wide as usize)), ("V", number(vector)), ("BIG", number(big as usize))];
    let types = [("T", Value::Type(dtype)), ("W", Value::Type(weights))];
    source("norm/batch_norm.cuh", &[types[0], types[1], numbers[0], numbers[1], numbers[2]])
}

fn apply(p: &Planes, source: &Source, entry: &str, words: &[u64], gpu: &mut dyn Gpu) -> Done {
    if p.elements() == 0 {
        return Ok(());
    }
    let blocks = (p.elements() / p.vector).div_ceil(256).min(gpu.multiprocessors() as usize * 32);
    launch(source, entry, (blocks, 1), 256, words, gpu)
}

pub fn batch_norm_train(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    let dtype = call.inputs[0].dtype;
    if call.inputs[0].shape[1] == 0 {
        return Ok(());
    }
    let x = input(&call.inputs[0], dtype, gpu)?;
    let weights = Weights::of(call, 1, 1, dtype, gpu)?;
    let compute = dtype.compute();
    let y = Output::new(&call.outputs[0], dtype, gpu)?;
    let p = Planes::of(&call.inputs[0].shape, &[&x, &y.dense], gpu);
    let mean = Output::new(&call.outputs[1], compute, gpu)?;
    let variance = Output::new(&call.outputs[2], compute, gpu)?;
    let sums = scratch(compute, &[p.parts, p.channels, 3], gpu)?;
    let args = BatchArgs {
        x: x.ptr,
        weight: address(weights.weight.as_ref()),
        bias: address(weights.bias.as_ref()),
        y: y.dense.ptr,
        mean: mean.dense.ptr,
        variance: variance.dense.ptr,
        partials: sums.ptr,
        eps: attributes::float(call, 0),
        ..p.args()
    };
    let source = p.source(dtype, weights.dtype);
    launch(source, "ts_batch_norm_stats", (p.blocks, p.parts), 256, args.words(), gpu)?;
    each(source, "ts_batch_norm_stats_merge", p.channels, args.words(), gpu)?;
    apply(&p, source, "ts_batch_norm_apply", args.words(), gpu)?;
    y.finish(gpu)?;
    mean.finish(gpu)?;
    variance.finish(gpu)
}

pub fn batch_norm_grad(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    let dtype = call.inputs[0].dtype;
    if call.inputs[1].shape[1] == 0 {
        return Ok(());
    }
    let compute = dtype.compute();
    let (g, x) = (input(&call.inputs[0], dtype, gpu)?, input(&call.inputs[1], dtype, gpu)?);
    let (mean, variance) = (input(&call.inputs[2], compute, gpu)?, input(&call.inputs[3], compute, gpu)?);
    let weights = Weights::of(call, 4, 2, dtype, gpu)?;
    let dx = Output::new(&call.outputs[0], dtype, gpu)?;
    let p = Planes::of(&call.inputs[1].shape, &[&g, &x, &dx.dense], gpu);
    let mut sums_of = |i: usize| call.outputs.get(i).map(|view| Output::new(view, compute, gpu)).transpose();
    let (dw, db) = (sums_of(1)?, sums_of(2)?);
    let sums = scratch(compute, &[p.parts, p.channels, 2], gpu)?;
    let args = BatchArgs {
        dy: g.ptr,
        x: x.ptr,
        weight: address(weights.weight.as_ref()),
        y: dx.dense.ptr,
        mean: mean.ptr,
        variance: variance.ptr,
        partials: sums.ptr,
        dw: address(dw.as_ref().map(|dw| &dw.dense)),
        db: address(db.as_ref().map(|db| &db.dense)),
        training: attributes::flag(call, 1) as u64,
        eps: attributes::float(call, 0),
        ..p.args()
    };
    let source = p.source(dtype, weights.dtype);
    launch(source, "ts_batch_norm_grad_sums", (p.blocks, p.parts), 256, args.words(), gpu)?;
    each(source, "ts_batch_norm_grad_sums_merge", p.channels, args.words(), gpu)?;
    apply(&p, source, "ts_batch_norm_apply_grad", args.words(), gpu)?;
    dx.finish(gpu)?;
    [dw, db].into_iter().flatten().try_for_each(|sum| sum.finish(gpu))
}

/// Texts for the compile test.
pub fn texts() -> Vec<&'static Source> {
    let dtypes = || DType::REAL.into_iter().filter(|dtype| dtype.is_float());
    let kind = |dtype| match dtype {
        DType::F32 => 1,
        DType::F64 => 2,
        DType::F16 => 3,
        _ => 0,
    };
    let rows = dtypes().flat_map(|dtype| sample_shapes().map(|shape| text(dtype, dtype.compute(), kind(dtype), shape)));
    let batch = dtypes().flat_map(|dtype| {
        [(true, 1, true), (true, 2, false), (false, 2, false)]
            .map(|(wide, v, big)| batch_text(dtype, dtype, wide, v, big))
    });
    rows.chain(batch).collect()
}
