//! CUDA launches of attention for what `cuda_mma` does not support: f64, other head dims. Longer sequences of f32 and f64 go to
//! `cuda_scores`.

use crate::base::dtype::DType;
use crate::kernel::abi::{Call, RawView};
use crate::kernel::attention::cuda_mma as attention_mma;
use crate::kernel::attention::cuda_scores::{self, Scores};
use crate::kernel::cuda::dense::{Output, copy_view, input, scratch};
use crate::kernel::cuda::rows::address;
use crate::kernel::cuda::specialize::{Value, source};
use crate::kernel::cuda::{Gpu, GpuError, Launch, Param, Source};
use crate::kernel::host::attributes;
use crate::kernel::structs::structs;

pub type Done = Result<(), GpuError>;

/// Bound: shared memory that a block may have on every compute capability from 8.0 on.
const SHARED: usize = 99 << 10;
/// Bound: the head dim; a thread holds an element for each 32 of it.
const MAX_HEAD_DIM: usize = 256;

fn text(dtype: DType, mask: DType, columns: usize) -> &'static Source {
    let elements_per_lane = columns.div_ceil(32).next_power_of_two().max(1) as u32;
    source(
        "attention/attention.cuh",
        &[("T", Value::Type(dtype)), ("M", Value::Type(mask)), ("D", Value::Number(elements_per_lane))],
    )
}

structs! {
    pub static ARGS = "attention/args.cuh";
    pub struct Args {
        q: const T,
        k: const T,
        v: const T,
        dout: const T,
        o: const T,
        mask: const M,
        dq: mut T,
        dk: mut T,
        /// The forward pass writes its output here.
        dv: mut T,
        lse: mut C,
        delta: mut C,
        heads: usize,
        queries: usize,
        keys: usize,
        head_dim: usize,
        value_dim: usize,
        causal: u64,
        scale: f64,
        /// Sizes of the four leading dims, and strides of the mask over them and over queries and keys.
        size: [usize; 4],
        mask_stride: [isize; 4],
        mask_row_stride: isize,
        mask_column_stride: isize,
        /// A part of the matrix of scores (`attention/scores.cuh`), and the gradients of its probabilities.
        scores: mut C,
        score_grads: mut C,
        first_head: usize,
        first_query: usize,
        block_heads: usize,
        block_queries: usize,
        block_keys: usize,
    }
}

/// A call: sizes, the mask, and the text for its types.
pub struct Problem {
    source: &'static Source,
    pub heads: usize,
    pub queries: usize,
    pub keys: usize,
    head_dim: usize,
    value_dim: usize,
    class_bytes: usize,
    mask_type: DType,
    /// The mask, the sizes and all later fields.
    args: Args,
}

impl Problem {
    fn of(
        call: &Call<'_>,
        [q, k, v]: [&RawView; 3],
        mask: Option<&RawView>,
        gpu: &mut dyn Gpu,
    ) -> Result<Problem, GpuError> {
        let lead = q.shape.len() - 2;
        let (head_dim, value_dim) = (q.shape[lead + 1], v.shape[lead + 1]);
        let class = q.dtype.compute();
        let mut mask = mask.map(|mask| as_mask(mask, class, gpu)).transpose()?;
        let mut dims = leading(&q.shape[..lead], mask.as_ref());
        if dims.len() > 4 {
            // A dense mask has a single leading dim.
            mask = mask.map(|mask| whole(&mask, gpu)).transpose()?;
            dims = leading(&q.shape[..lead], mask.as_ref());
        }
        let scale = attributes::float_or_none(call, 1).unwrap_or(1.0 / (head_dim as f64).sqrt());
        let (mut size, mut mask_stride) = ([1; 4], [0; 4]);
        for ((size, stride), dim) in size.iter_mut().zip(&mut mask_stride).rev().zip(&dims) {
            (*size, *stride) = *dim;
        }
        let heads = q.shape[..lead].iter().product();
        let (queries, keys) = (q.shape[lead], k.shape[lead]);
        let of_mask = |d: usize| mask.as_ref().map_or(0, |mask| mask.strides[d]);
        let args = Args {
            mask: address(mask.as_ref()),
            heads,
            queries,
            keys,
            head_dim,
            value_dim,
            causal: attributes::flag(call, 0) as u64,
            scale,
            size,
            mask_stride,
            mask_row_stride: of_mask(lead),
            mask_column_stride: of_mask(lead + 1),
            ..Args::NONE
        };
        let mask_type = mask.as_ref().map_or(class, |mask| mask.dtype);
        Ok(Problem {
            source: text(q.dtype, mask_type, head_dim.max(value_dim)),
            heads,
            queries,
            keys,
            head_dim,
            value_dim,
            class_bytes: class.size_bytes(),
            mask_type,
            args,
        })
    }

    /// Shared memory for tiles of these widths and `squares` square tiles of scores.
    fn shared(&self, tiles: &[usize], squares: usize) -> Result<u32, GpuError> {
        let elements: usize = tiles.iter().map(|head_dim| 32 * (head_dim + 1)).sum::<usize>() + squares * 32 * 33;
        let bytes = elements * self.class_bytes;
        if bytes > SHARED || self.head_dim.max(self.value_dim) > MAX_HEAD_DIM {
            Err(GpuError::Unsupported("attention with heads this wide"))
        } else {
            Ok(bytes as u32)
        }
    }

    fn launch(&self, entry: &str, blocks: usize, shared: u32, args: &Args, gpu: &mut dyn Gpu) -> Done {
        if blocks == 0 {
            return Ok(());
        }
        gpu.launch(&Launch {
            source: self.source,
            entry,
            grid: [blocks as u32, 1, 1],
            block: [256, 1, 1],
            shared_bytes: shared,
            args: &[Param::Words(args.words())],
        })
    }
}

/// The mask as bools, or as floats of the dtype that is computed in; expanded dims stay expanded.
pub fn as_mask(mask: &RawView, class: DType, gpu: &mut dyn Gpu) -> Result<RawView, GpuError> {
    if mask.dtype == DType::Bool || mask.dtype == class {
        return Ok(mask.clone());
    }
    let mut small = mask.clone();
    for d in 0..mask.shape.len() {
        if mask.strides[d] == 0 {
            small.shape[d] = small.shape[d].min(1);
        }
    }
    let mut converted = input(&small, class, gpu)?;
    for d in 0..mask.shape.len() {
        if mask.strides[d] == 0 {
            converted.strides[d] = 0;
        }
    }
    converted.shape = mask.shape.clone();
    Ok(converted)
}

/// Leading dims and the mask's strides over them, innermost first; adjacent dims are merged where the mask allows it.
fn leading(shape: &[usize], mask: Option<&RawView>) -> Vec<(usize, isize)> {
    let mut dims: Vec<(usize, isize)> = Vec::new();
    for (d, &size) in shape.iter().enumerate().rev().filter(|&(_, &size)| size > 1) {
        let step = mask.map_or(0, |mask| mask.strides[d]);
        match dims.last_mut() {
            Some(inner) if step == inner.1 * inner.0 as isize => inner.0 *= size,
            _ => dims.push((size, step)),
        }
    }
    dims
}

/// A copy of a mask without expanded dims.
fn whole(mask: &RawView, gpu: &mut dyn Gpu) -> Result<RawView, GpuError> {
    let copy = scratch(mask.dtype, &mask.shape, gpu)?;
    copy_view(mask, &copy, gpu)?;
    Ok(copy)
}

pub fn attention(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    let views = [&call.inputs[0], &call.inputs[1], &call.inputs[2]];
    if let Some(problem) = attention_mma::Problem::of(call, views, call.inputs.get(3)) {
        return problem.forward(call, gpu);
    }
    let dtype = views[0].dtype;
    let p = Problem::of(call, views, call.inputs.get(3), gpu)?;
    let [q, k, v] = [input(views[0], dtype, gpu)?, input(views[1], dtype, gpu)?, input(views[2], dtype, gpu)?];
    let out = Output::new(&call.outputs[0], dtype, gpu)?;
    let lse = Output::new(&call.outputs[1], dtype.compute(), gpu)?;
    let args = Args { q: q.ptr, k: k.ptr, v: v.ptr, dv: out.dense.ptr, lse: lse.dense.ptr, ..p.args };
    if cuda_scores::serves(&p, dtype) {
        let scores = Scores { problem: &p, dtype, mask: p.mask_type, args };
        scores.forward([&q, &k, &v, &out.dense], gpu)?;
    } else {
        let shared = p.shared(&[p.head_dim, p.head_dim, p.value_dim], 1)?;
        p.launch("ts_attention_forward", p.heads * p.queries.div_ceil(32), shared, &args, gpu)?;
    }
    out.finish(gpu)?;
    lse.finish(gpu)
}

pub fn attention_grad(call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
    let views = [&call.inputs[1], &call.inputs[2], &call.inputs[3]];
    if let Some(problem) = attention_mma::Problem::of(call, views, call.inputs.get(6)) {
        return problem.gradient(call, gpu);
    }
    let dtype = views[0].dtype;
    let p = Problem::of(call, views, call.inputs.get(6), gpu)?;
    let [q, k, v] = [input(views[0], dtype, gpu)?, input(views[1], dtype, gpu)?, input(views[2], dtype, gpu)?];
    let (g, out) = (input(&call.inputs[0], dtype, gpu)?, input(&call.inputs[4], dtype, gpu)?);
    let lse = input(&call.inputs[5], dtype.compute(), gpu)?;
    let delta = scratch(dtype.compute(), &[p.heads * p.queries], gpu)?;
    let [dq, dk, dv] = [
        Output::new(&call.outputs[0], dtype, gpu)?,
        Output::new(&call.outputs[1], dtype, gpu)?,
        Output::new(&call.outputs[2], dtype, gpu)?,
    ];
    let args = Args {
        q: q.ptr,
        k: k.ptr,
        v: v.ptr,
        dout: g.ptr,
        o: out.ptr,
        dq: dq.dense.ptr,
        dk: dk.dense.ptr,
        dv: dv.dense.ptr,
        lse: lse.ptr,
        delta: delta.ptr,
        ..p.args
    };
    p.launch("ts_attention_dot_do_o", (p.heads * p.queries).div_ceil(8), 0, &args, gpu)?;
    if cuda_scores::serves(&p, dtype) {
        let scores = Scores { problem: &p, dtype, mask: p.mask_type, args };
        scores.gradient([&g, &q, &k, &v], [&dq.dense, &dk.dense, &dv.dense], gpu)?;
        return [dq, dk, dv].into_iter().try_for_each(|grad| grad.finish(gpu));
    }
    let shared = p.shared(&[p.head_dim, p.head_dim, p.value_dim, p.value_dim], 2)?;
    p.launch("ts_attention_dq", p.heads * p.queries.div_ceil(32), shared, &args, gpu)?;
    p.launch("ts_attention_dk_dv", p.heads * p.keys.div_ceil(32), shared, &args, gpu)?;
    [dq, dk, dv].into_iter().try_for_each(|grad| grad.finish(gpu))
}

/// Texts for the compile test.
pub fn texts() -> Vec<&'static Source> {
    let dtypes = DType::REAL.into_iter().filter(|dtype| dtype.is_float());
    let all = dtypes.flat_map(|dtype| [(DType::Bool, 64), (dtype.compute(), 128)].map(|(m, n)| text(dtype, m, n)));
    all.chain(cuda_scores::texts()).chain(attention_mma::texts()).collect()
}
