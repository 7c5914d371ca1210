//! Attention on tensor cores, and its gradient: which calls fit which kernel, and the launches. 16-bit floats by mma.sync, or
//! wgmma on Hopper; f32 by products in parts (`cuda_tf32`).
//!
//! Operands whose rows are contiguous and aligned are read with their strides: heads that were split from one matrix
//! are not copied.

use crate::base::dtype::DType;
use crate::kernel::abi::{Call, RawView};
use crate::kernel::attention::cuda::as_mask;
use crate::kernel::attention::cuda_tf32;
use crate::kernel::cuda::dense::{Output, input, scratch};
use crate::kernel::cuda::rows::address;
use crate::kernel::cuda::specialize::{Value, source};
use crate::kernel::cuda::{Gpu, GpuError, Launch, Param, Source};
use crate::kernel::host::attributes;
use crate::kernel::structs::structs;
use smallvec::SmallVec;

type Done = Result<(), GpuError>;
/// A launch: its entry, blocks, and bytes of shared memory of each.
pub type Work = (&'static str, usize, usize);

/// Bound: the head dim; a warp holds rows of it in registers.
const MAX_HEAD_DIM: usize = 128;
/// Leading dims that the kernels support.
const LEADING_DIMS: usize = 4;
/// Number of blocks from which on a warp processes two tiles of 16 queries instead of one: two such blocks for each of
/// the 132 multiprocessors of an H100.
const TWO_TILES_MIN_BLOCKS: usize = 264;
/// Bound: queries or keys that fit into 32 bits, with room for a tile.
const MAX_ROWS: usize = 1 << 30;
/// Bound: the row stride in elements, so that 16 rows in bytes fit into 32 bits.
const MAX_ROW_STRIDE: isize = 1 << 26;

/// A call that the kernels support: `[B.., L, W]`, `[B.., S, W]`, `[B.., S, W]`.
pub struct Problem<'a> {
    qkv: [&'a RawView; 3],
    mask: Option<&'a RawView>,
    dtype: DType,
    pub heads: usize,
    pub queries: usize,
    pub keys: usize,
    pub head_dim: usize,
    causal: bool,
    scale: f64,
}

impl<'a> Problem<'a> {
    /// `None` unless operands are f32 or 16-bit floats with a head dim that the kernels support, and the scale is positive:
    /// the online softmax takes the maximum of the unscaled scores, and only a positive factor preserves their order.
    pub fn of(call: &Call<'_>, qkv: [&'a RawView; 3], mask: Option<&'a RawView>) -> Option<Problem<'a>> {
        let [q, k, v] = qkv;
        let lead = q.shape.len() - 2;
        let head_dim = q.shape[lead + 1];
        let scale = attributes::float_or_none(call, 1).unwrap_or(1.0 / (head_dim as f64).sqrt());
        // Columns of one product.
        let step = match q.dtype {
            DType::F16 | DType::BF16 => 16,
            DType::F32 => 8,
            _ => return None,
        };
        let has_head_dim =
            head_dim == v.shape[lead + 1] && head_dim.is_multiple_of(step) && (step..=MAX_HEAD_DIM).contains(&head_dim);
        let is_supported = has_head_dim && lead <= LEADING_DIMS && (scale as f32) > 0.0;
        is_supported.then(|| Problem {
            qkv,
            mask,
            dtype: q.dtype,
            heads: q.shape[..lead].iter().product(),
            queries: q.shape[lead],
            keys: k.shape[lead],
            head_dim,
            causal: attributes::flag(call, 0),
            scale,
        })
    }

    /// Writes the output and the logsumexp of each query.
    pub fn forward(&self, call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
        let [out, lse] =
            [(0, self.dtype), (1, DType::F32)].map(|(i, dtype)| Output::aligned(&call.outputs[i], dtype, gpu));
        let (out, lse) = (out?, lse?);
        let [q, k, v] = self.qkv.map(Some);
        let to = [Some(&out.dense), None, None, None, Some(&lse.dense), None];
        let operands = Operands { rows: [q, k, v, None, None], to };
        if self.dtype == DType::F32 {
            let (text, work) = cuda_tf32::forward(self);
            self.launch(text, &[work], &operands, gpu)?;
        } else if self.supports_wgmma(None, gpu) {
            let text = self.text("attention/wgmma.cuh", &[]);
            let blocks = self.heads * self.queries.div_ceil(64);
            self.launch(text, &[("ts_attention_forward_wgmma", blocks, self.stage_bytes())], &operands, gpu)?;
        } else {
            let has_many_blocks =
                self.head_dim <= 64 && self.heads * self.queries.div_ceil(128) >= TWO_TILES_MIN_BLOCKS;
            let query_tiles = if has_many_blocks { 2 } else { 1 };
            let text = self.text("attention/mma.cuh", &[("Q", query_tiles)]);
            let blocks = self.heads * self.queries.div_ceil(64 * query_tiles);
            self.launch(text, &[("ts_attention_forward_mma", blocks, 4 * 64 * self.row_bytes())], &operands, gpu)?;
        }
        out.finish(gpu)?;
        lse.finish(gpu)
    }

    /// Writes the gradients of query, key and value.
    pub fn gradient(&self, call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
        let [grad_out, out, lse] = [0, 4, 5].map(|i| &call.inputs[i]);
        let lse = input(lse, DType::F32, gpu)?;
        let delta = scratch(DType::F32, &[self.heads * self.queries], gpu)?;
        let [dq, dk, dv] = [0, 1, 2].map(|i| Output::aligned(&call.outputs[i], self.dtype, gpu));
        let (dq, dk, dv) = (dq?, dk?, dv?);
        let [q, k, v] = self.qkv.map(Some);
        let to = [None, Some(&dq.dense), Some(&dk.dense), Some(&dv.dense), Some(&lse), Some(&delta)];
        let operands = Operands { rows: [q, k, v, Some(grad_out), Some(out)], to };
        let (text, work) =
            if self.dtype == DType::F32 { cuda_tf32::gradient(self) } else { self.half_gradient(grad_out, gpu) };
        self.launch(text, &work, &operands, gpu)?;
        [dq, dk, dv].into_iter().try_for_each(|grad| grad.finish(gpu))
    }

    /// The gradient of 16-bit floats.
    fn half_gradient(&self, grad_out: &RawView, gpu: &dyn Gpu) -> (&'static Source, [Work; 2]) {
        let blocks = [self.queries, self.keys].map(|rows| self.heads * rows.div_ceil(64));
        if self.supports_wgmma(Some(grad_out), gpu) {
            // Each of the three stages also has -lse and delta of its 64 queries.
            let shared = [self.stage_bytes(), self.stage_bytes() + 3 * 2 * 64 * size_of::<f32>()];
            let work =
                [("ts_attention_dq_wgmma", blocks[0], shared[0]), ("ts_attention_dk_dv_wgmma", blocks[1], shared[1])];
            return (self.text("attention/wgmma_grad.cuh", &[]), work);
        }
        let tile = if self.head_dim <= 64 { 64 } else { 32 };
        let shared = [4 * 64 * self.row_bytes(), 4 * tile * (self.row_bytes() + size_of::<f32>())];
        let work = [("ts_attention_dq_mma", blocks[0], shared[0]), ("ts_attention_dk_dv_mma", blocks[1], shared[1])];
        (self.text("attention/mma_grad.cuh", &[("N", tile)]), work)
    }

    /// Whether the wgmma kernels support the call: they need compute capability 9.0 and a head dim in multiples of 64,
    /// and compute offsets in 32 bits.
    fn supports_wgmma(&self, grad: Option<&RawView>, gpu: &dyn Gpu) -> bool {
        let has_small_rows = |view: &RawView| (0..=MAX_ROW_STRIDE).contains(&view.strides[view.shape.len() - 2]);
        gpu.capability() == (9, 0)
            && self.head_dim.is_multiple_of(64)
            && self.queries.max(self.keys) <= MAX_ROWS
            && self.qkv.into_iter().chain(grad).all(has_small_rows)
    }

    /// Shared memory of a warpgroup: three stages of 64 rows of two operands each.
    fn stage_bytes(&self) -> usize {
        3 * 2 * 64 * self.head_dim * self.dtype.size_bytes()
    }

    /// Bytes of a row in shared memory, padded by 8 elements against bank conflicts.
    fn row_bytes(&self) -> usize {
        (self.head_dim + 8) * self.dtype.size_bytes()
    }

    /// The type of the mask as the kernels take it.
    pub fn mask_type(&self) -> Option<DType> {
        self.mask.map(|mask| if mask.dtype == DType::Bool { DType::Bool } else { DType::F32 })
    }

    fn text(&self, header: &'static str, numbers: &[(&'static str, usize)]) -> &'static Source {
        text(header, self.dtype, self.head_dim, self.mask_type(), numbers)
    }

    fn launch(&self, source: &'static Source, work: &[Work], operands: &Operands<'_>, gpu: &mut dyn Gpu) -> Done {
        let args = self.args(operands, gpu)?;
        for &(entry, blocks, shared) in work.iter().filter(|(_, blocks, _)| *blocks > 0) {
            gpu.launch(&Launch {
                source,
                entry,
                grid: [blocks as u32, 1, 1],
                block: [128, 1, 1],
                shared_bytes: shared as u32,
                args: &[Param::Words(args.words())],
            })?;
        }
        Ok(())
    }

    fn args(&self, operands: &Operands<'_>, gpu: &mut dyn Gpu) -> Result<Args, GpuError> {
        let lead = self.qkv[0].shape.len() - 2;
        let mut rows = [TensorRef::NONE; 5];
        for (to, view) in rows.iter_mut().zip(operands.rows) {
            let Some(view) = view else { continue };
            let view = dense_rows(view, gpu)?;
            let stride = leading(view.strides[..lead].iter().copied(), 0);
            *to = TensorRef { ptr: view.ptr, row_stride: view.strides[lead], stride };
        }
        let [q, k, v, dout, o] = rows;
        let [out, dq, dk, dv, lse, delta] = operands.to.map(address);
        let mut args = Args { q, k, v, dout, o, out, dq, dk, dv, lse, delta, ..Args::NONE };
        if let Some(mask) = self.mask {
            let mask = as_mask(mask, DType::F32, gpu)?;
            (args.mask, args.mask_query, args.mask_key) = (mask.ptr, mask.strides[lead], mask.strides[lead + 1]);
            args.mask_stride = leading(mask.strides[..lead].iter().copied(), 0);
        }
        args.size = leading(self.qkv[0].shape[..lead].iter().map(|&n| n.max(1)), 1);
        (args.queries, args.keys, args.causal, args.scale) = (self.queries, self.keys, self.causal as u64, self.scale);
        Ok(args)
    }
}

structs! {
    pub static TILE_ARGS = "attention/tile_args.cuh";
    /// A tensor of shape [4 leading dims, rows, W] whose last dim is contiguous.
    struct TensorRef {
        ptr: const T,
        row_stride: isize,
        stride: [isize; 4],
    }
    struct Args {
        q: TensorRef,
        k: TensorRef,
        v: TensorRef,
        dout: TensorRef,
        o: TensorRef,
        out: mut T,
        dq: mut T,
        dk: mut T,
        dv: mut T,
        lse: mut f32,
        delta: mut f32,
        mask: const M,
        mask_query: isize,
        mask_key: isize,
        mask_stride: [isize; 4],
        size: [usize; 4],
        queries: usize,
        keys: usize,
        causal: u64,
        scale: f64,
    }
}

/// What the kernels read and write. Rows: q, k, v, dO and O; then the output, dQ, dK, dV, lse, delta.
struct Operands<'a> {
    rows: [Option<&'a RawView>; 5],
    to: [Option<&'a RawView>; 6],
}

/// Values of the leading dims, padded in front with `other`.
fn leading<T: Copy>(of: impl ExactSizeIterator<Item = T>, other: T) -> [T; LEADING_DIMS] {
    let mut all = [other; LEADING_DIMS];
    for (to, n) in all[LEADING_DIMS - of.len()..].iter_mut().zip(of) {
        *to = n;
    }
    all
}

/// The view itself if its rows are contiguous and aligned to 16 bytes; else a copy.
fn dense_rows(view: &RawView, gpu: &mut dyn Gpu) -> Result<RawView, GpuError> {
    let last = view.shape.len() - 1;
    let step = 16 / view.dtype.size_bytes() as isize;
    let aligned =
        view.strides[..last].iter().all(|stride| stride % step == 0) && (view.ptr as usize).is_multiple_of(16);
    if aligned && view.strides[last] == 1 { Ok(view.clone()) } else { input(view, view.dtype, gpu) }
}

pub fn text(
    header: &'static str,
    dtype: DType,
    head_dim: usize,
    mask: Option<DType>,
    numbers: &[(&'static str, usize)],
) -> &'static Source {
    let mut names: SmallVec<[(&'static str, Value); 8]> = SmallVec::from_iter([
        ("T", Value::Type(dtype)),
        ("W", Value::Number(head_dim as u32)),
        ("M", Value::Type(mask.unwrap_or(DType::Bool))),
        ("MASKED", Value::Number(mask.is_some() as u32)),
    ]);
    names.extend(numbers.iter().map(|&(name, number)| (name, Value::Number(number as u32))));
    source(header, &names)
}

/// Texts for the compile test.
pub fn texts() -> Vec<&'static Source> {
    let kinds = [
        (DType::BF16, 64, None, 2, 64),
        (DType::F16, 64, Some(DType::F32), 1, 64),
        (DType::BF16, 128, Some(DType::Bool), 1, 32),
    ];
    let of = |(dtype, head_dim, mask, query_tiles, tile)| {
        let forward = text("attention/mma.cuh", dtype, head_dim, mask, &[("Q", query_tiles)]);
        let gradient = text("attention/mma_grad.cuh", dtype, head_dim, mask, &[("N", tile)]);
        let [forward_hopper, gradient_hopper] =
            ["attention/wgmma.cuh", "attention/wgmma_grad.cuh"].map(|header| text(header, dtype, head_dim, mask, &[]));
        [forward, gradient, forward_hopper, gradient_hopper]
    };
    kinds.into_iter().flat_map(of).chain(cuda_tf32::texts()).collect()
}
