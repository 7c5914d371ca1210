//! Attention of 16-bit floats by matrix instructions, of warps or of Hopper's warpgroups, and its gradient: which calls suit
//! which kernel, and the launches.
//!
//! Operands keep their strides where rows are dense and aligned: heads that were split from one matrix are not copied.

use crate::base::dtype::DType;
use crate::kernel::abi::{Call, RawView};
use crate::kernel::attention::cuda::as_mask;
use crate::kernel::cuda::dense::{Output, input, scratch};
use crate::kernel::cuda::specialize::{Value, source};
use crate::kernel::cuda::{Gpu, GpuError, Launch, Param, Source};
use crate::kernel::host::attributes;
use smallvec::SmallVec;

type Done = Result<(), GpuError>;

/// Bound: columns of a head, which a warp keeps in registers.
const WIDEST: usize = 128;
/// Leading dims that the kernels count.
const LEADING: usize = 4;
/// Blocks of two sixteens of queries a warp from which on every multiprocessor has two of them.
const MANY_BLOCKS: usize = 264;
/// Bound: queries or keys that fit 32 bits, with room for a tile.
const MOST_ROWS: usize = 1 << 30;
/// Bound: elements from one row to the next of which 32 bits hold 16 rows' bytes.
const LONGEST_ROW: isize = 1 << 26;

/// A call of a kind that the kernels take: `[B.., L, W]`, `[B.., S, W]`, `[B.., S, W]`.
pub struct Problem<'a> {
    qkv: [&'a RawView; 3],
    mask: Option<&'a RawView>,
    dtype: DType,
    heads: usize,
    queries: usize,
    keys: usize,
    width: usize,
    causal: bool,
    scale: f64,
}

impl<'a> Problem<'a> {
    /// 16-bit floats, heads of one fitting width, scores that grow with the product.
    pub fn of(call: &Call<'_>, qkv: [&'a RawView; 3], mask: Option<&'a RawView>) -> Option<Problem<'a>> {
        let [q, k, v] = qkv;
        let lead = q.shape.len() - 2;
        let width = q.shape[lead + 1];
        let scale = attributes::float_or_none(call, 1).unwrap_or(1.0 / (width as f64).sqrt());
        let fits = width == v.shape[lead + 1] && width.is_multiple_of(16) && (16..=WIDEST).contains(&width);
        let suits = fits && matches!(q.dtype, DType::F16 | DType::BF16) && lead <= LEADING && (scale as f32) > 0.0;
        suits.then(|| Problem {
            qkv,
            mask,
            dtype: q.dtype,
            heads: q.shape[..lead].iter().product(),
            queries: q.shape[lead],
            keys: k.shape[lead],
            width,
            causal: attributes::flag(call, 0),
            scale,
        })
    }

    /// Writes the output and the logarithms of the sums of exponentials.
    pub fn forward(&self, call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
        let [out, lse] = [(0, self.dtype), (1, DType::F32)].map(|(i, dtype)| Output::new(&call.outputs[i], dtype, gpu));
        let (out, lse) = (out?, lse?);
        let [q, k, v] = self.qkv.map(Some);
        let to = [Some(&out.dense), None, None, None, Some(&lse.dense), None];
        let args = Args { rows: [q, k, v, None, None], to };
        if self.suits_warpgroups(None, gpu) {
            let text = self.text("attention/wgmma.cuh", None);
            let blocks = self.heads * self.queries.div_ceil(64);
            self.launch(text, &[("ts_attention_forward_wgmma", blocks, self.slots())], &args, gpu)?;
        } else {
            let many = self.width <= 64 && self.heads * self.queries.div_ceil(128) >= MANY_BLOCKS;
            let sixteens = if many { 2 } else { 1 };
            let text = self.text("attention/mma.cuh", Some(("Q", sixteens)));
            let blocks = self.heads * self.queries.div_ceil(64 * sixteens);
            self.launch(text, &[("ts_attention_forward_mma", blocks, 4 * 64 * self.row_bytes())], &args, gpu)?;
        }
        out.finish(gpu)?;
        lse.finish(gpu)
    }

    /// Writes the gradients of query, key and value.
    pub fn gradient(&self, call: &Call<'_>, gpu: &mut dyn Gpu) -> Done {
        let lse = input(&call.inputs[5], DType::F32, gpu)?;
        let dots = scratch(DType::F32, &[self.heads * self.queries], gpu)?;
        let [dq, dk, dv] = [0, 1, 2].map(|i| Output::new(&call.outputs[i], self.dtype, gpu));
        let (dq, dk, dv) = (dq?, dk?, dv?);
        let [q, k, v] = self.qkv.map(Some);
        let to = [None, Some(&dq.dense), Some(&dk.dense), Some(&dv.dense), Some(&lse), Some(&dots)];
        let args = Args { rows: [q, k, v, Some(&call.inputs[0]), Some(&call.inputs[4])], to };
        let blocks = [self.queries, self.keys].map(|rows| self.heads * rows.div_ceil(64));
        let (text, entries, shared) = if self.suits_warpgroups(Some(&call.inputs[0]), gpu) {
            // For each slot also two numbers of a query.
            let numbers = 3 * 2 * 64 * size_of::<f32>();
            let entries = ["ts_attention_dq_wgmma", "ts_attention_dk_dv_wgmma"];
            (self.text("attention/wgmma_grad.cuh", None), entries, [self.slots(), self.slots() + numbers])
        } else {
            let tile = if self.width <= 64 { 64 } else { 32 };
            let shared = [4 * 64 * self.row_bytes(), 4 * tile * (self.row_bytes() + size_of::<f32>())];
            let entries = ["ts_attention_dq_mma", "ts_attention_dk_dv_mma"];
            (self.text("attention/mma_grad.cuh", Some(("N", tile))), entries, shared)
        };
        let launches = [(entries[0], blocks[0], shared[0]), (entries[1], blocks[1], shared[1])];
        self.launch(text, &launches, &args, gpu)?;
        [dq, dk, dv].into_iter().try_for_each(|grad| grad.finish(gpu))
    }

    /// Hopper multiplies by whole warpgroups, in columns of 64; that kernel counts in 32 bits.
    fn suits_warpgroups(&self, grad: Option<&RawView>, gpu: &dyn Gpu) -> bool {
        let small = |view: &RawView| (0..=LONGEST_ROW).contains(&view.strides[view.shape.len() - 2]);
        gpu.capability() == (9, 0)
            && self.width.is_multiple_of(64)
            && self.queries.max(self.keys) <= MOST_ROWS
            && self.qkv.into_iter().chain(grad).all(small)
    }

    /// Bytes of a warpgroup's three slots, of 64 rows of two factors each.
    fn slots(&self) -> usize {
        3 * 2 * 64 * self.width * self.dtype.size_bytes()
    }

    /// Bytes of a row in shared memory.
    fn row_bytes(&self) -> usize {
        (self.width + 8) * self.dtype.size_bytes()
    }

    fn text(&self, header: &'static str, number: Option<(&'static str, usize)>) -> &'static Source {
        let mask = self.mask.map(|mask| if mask.dtype == DType::Bool { DType::Bool } else { DType::F32 });
        text(header, self.dtype, self.width, mask, number)
    }

    fn launch(
        &self,
        source: &'static Source,
        launches: &[(&str, usize, usize)],
        args: &Args<'_>,
        gpu: &mut dyn Gpu,
    ) -> Done {
        let words = self.words(args, gpu)?;
        for &(entry, blocks, shared) in launches.iter().filter(|(_, blocks, _)| *blocks > 0) {
            gpu.launch(&Launch {
                source,
                entry,
                grid: [blocks as u32, 1, 1],
                block: [128, 1, 1],
                shared_bytes: shared as u32,
                args: &[Param::Words(&words)],
            })?;
        }
        Ok(())
    }

    /// `Args` of `attention/tile.cuh`.
    fn words(&self, args: &Args<'_>, gpu: &mut dyn Gpu) -> Result<SmallVec<[u64; 64]>, GpuError> {
        let lead = self.qkv[0].shape.len() - 2;
        let mut words = SmallVec::new();
        for view in args.rows {
            let Some(view) = view else {
                words.extend([0; 2 + LEADING]);
                continue;
            };
            let rows = dense_rows(view, gpu)?;
            words.extend([rows.ptr as u64, rows.strides[lead] as u64]);
            words.extend(leading(rows.strides[..lead].iter().map(|&n| n as u64), 0));
        }
        words.extend(args.to.map(|view| view.map_or(0, |view| view.ptr as u64)));
        match self.mask {
            Some(mask) => {
                let mask = as_mask(mask, DType::F32, gpu)?;
                words.extend([mask.ptr as u64, mask.strides[lead] as u64, mask.strides[lead + 1] as u64]);
                words.extend(leading(mask.strides[..lead].iter().map(|&n| n as u64), 0));
            }
            None => words.extend([0; 3 + LEADING]),
        }
        words.extend(leading(self.qkv[0].shape[..lead].iter().map(|&n| n.max(1) as u64), 1));
        words.extend([self.queries as u64, self.keys as u64, self.causal as u64, self.scale.to_bits()]);
        Ok(words)
    }
}

/// What the kernels read and write. Rows: q, k, v, gradient and output; then out, dq, dk, dv, lse, dots.
struct Args<'a> {
    rows: [Option<&'a RawView>; 5],
    to: [Option<&'a RawView>; 6],
}

/// Numbers of the leading dims, filled up in front.
fn leading(of: impl ExactSizeIterator<Item = u64>, other: u64) -> [u64; LEADING] {
    let mut all = [other; LEADING];
    for (to, n) in all[LEADING - of.len()..].iter_mut().zip(of) {
        *to = n;
    }
    all
}

/// The view itself where its rows are dense and each begins at a multiple of 16 bytes; else a copy.
fn dense_rows(view: &RawView, gpu: &mut dyn Gpu) -> Result<RawView, GpuError> {
    let last = view.shape.len() - 1;
    let step = 16 / view.dtype.size_bytes() as isize;
    let aligned =
        view.strides[..last].iter().all(|stride| stride % step == 0) && (view.ptr as usize).is_multiple_of(16);
    if aligned && view.strides[last] == 1 { Ok(view.clone()) } else { input(view, view.dtype, gpu) }
}

fn text(
    header: &'static str,
    dtype: DType,
    width: usize,
    mask: Option<DType>,
    number: Option<(&'static str, usize)>,
) -> &'static Source {
    let mut names: SmallVec<[(&'static str, Value); 5]> = SmallVec::from_slice(&[
        ("T", Value::Type(dtype)),
        ("W", Value::Number(width as u32)),
        ("M", Value::Type(mask.unwrap_or(DType::Bool))),
        ("MASKED", Value::Number(mask.is_some() as u32)),
    ]);
    names.extend(number.map(|(name, number)| (name, Value::Number(number as u32))));
    source(header, &names)
}

/// Texts for the compile test.
pub fn sources() -> Vec<&'static Source> {
    let kinds = [
        (DType::BF16, 64, None, 2, 64),
        (DType::F16, 64, Some(DType::F32), 1, 64),
        (DType::BF16, 128, Some(DType::Bool), 1, 32),
    ];
    let of = |(dtype, width, mask, sixteens, tile)| {
        let forward = text("attention/mma.cuh", dtype, width, mask, Some(("Q", sixteens)));
        let gradient = text("attention/mma_grad.cuh", dtype, width, mask, Some(("N", tile)));
        let [forward_hopper, gradient_hopper] =
            ["attention/wgmma.cuh", "attention/wgmma_grad.cuh"].map(|header| text(header, dtype, width, mask, None));
        [forward, gradient, forward_hopper, gradient_hopper]
    };
    kinds.into_iter().flat_map(of).collect()
}
