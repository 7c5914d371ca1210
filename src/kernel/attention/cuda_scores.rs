//! Attention of f64, and of f32 where no kernel on tensor cores serves (head dims above 128 or in no multiples of 8, values of
//! another width, a scale that is not positive), by matrix products of the library: the matrix of scores is made part by part
//! in scratch memory, whose parts stay in the cache; the gradient makes it again from what the forward pass kept of each row.

use super::cuda::{Args, Done, Problem};
use crate::base::dtype::DType;
use crate::kernel::abi::RawView;
use crate::kernel::cuda::rows::launch;
use crate::kernel::cuda::specialize::{Value, source};
use crate::kernel::cuda::{Gpu, GpuError, Source};
use crate::kernel::matmul::cuda::{NO_BIAS, product};
use std::ops::Range;

/// Bytes of a part of the matrix of scores.
const PART: usize = 32 << 20;
/// Queries of a part when attention is causal: keys behind its last query are left out.
const CAUSAL_QUERIES: usize = 256;
/// Fewer queries or keys are served by one kernel.
const MIN_SIDE: usize = 64;
/// Scores of a row that a lane keeps in registers.
const MAX_KEPT: usize = 32;

/// Whether products of the library are the better way.
pub fn serves(p: &Problem, dtype: DType) -> bool {
    matches!(dtype, DType::F32 | DType::F64) && p.queries.min(p.keys) >= MIN_SIDE
}

fn text(dtype: DType, mask: DType, kept: usize) -> &'static Source {
    let names = [
        ("T", Value::Type(dtype)),
        ("M", Value::Type(mask)),
        ("D", Value::Number(1)),
        ("E", Value::Number(kept as u32)),
    ];
    source("attention/scores.cuh", &names)
}

/// A part of the matrix of scores.
struct Part {
    heads: Range<usize>,
    queries: Range<usize>,
    keys: usize,
}

impl Part {
    /// Rows of a contiguous tensor `[heads, rows, width]`.
    fn rows(&self, whole: &RawView, rows: Range<usize>, all_rows: usize) -> RawView {
        let width = whole.shape[whole.shape.len() - 1];
        let first = (self.heads.start * all_rows + rows.start) * width * whole.dtype.size_bytes();
        let mut view =
            RawView::contiguous(whole.ptr.wrapping_add(first), whole.dtype, &[self.heads.len(), rows.len(), width]);
        view.strides[0] = (all_rows * width) as isize;
        view
    }

    fn scores(&self, at: *mut u8, dtype: DType) -> RawView {
        RawView::contiguous(at, dtype, &[self.heads.len(), self.queries.len(), self.keys])
    }
}

fn transposed(view: &RawView) -> RawView {
    let mut view = view.clone();
    view.shape.swap(1, 2);
    view.strides.swap(1, 2);
    view
}

/// The work on one problem: its operands are contiguous.
pub struct Scores<'a> {
    pub problem: &'a Problem,
    pub dtype: DType,
    pub mask: DType,
    pub args: Args,
}

impl Scores<'_> {
    /// The parts, from the first queries of the first heads on.
    fn parts(&self) -> Vec<Part> {
        let (p, is_causal) = (self.problem, self.args.causal == 1);
        let fits = (PART / self.dtype.size_bytes() / p.keys).max(MIN_SIDE);
        let wanted = if is_causal { CAUSAL_QUERIES.min(p.queries) } else { p.queries };
        let queries = wanted.min(fits);
        let heads = (fits / queries).max(1);
        let starts =
            (0..p.heads).step_by(heads).flat_map(|head| (0..p.queries).step_by(queries).map(move |q| (head, q)));
        let part = |(head, query): (usize, usize)| {
            let queries = query..(query + queries).min(p.queries);
            let keys = if is_causal { queries.end.min(p.keys) } else { p.keys };
            Part { heads: head..(head + heads).min(p.heads), queries, keys }
        };
        starts.map(part).collect()
    }

    fn scratch(&self, parts: &[Part], gpu: &mut dyn Gpu) -> Result<*mut u8, GpuError> {
        let largest = parts.iter().map(|part| part.heads.len() * part.queries.len() * part.keys).max().unwrap_or(0);
        gpu.scratch(largest * self.dtype.size_bytes())
    }

    fn over_rows(&self, entry: &str, part: &Part, args: &Args, gpu: &mut dyn Gpu) -> Done {
        let kept = part.keys.div_ceil(32).next_power_of_two();
        let args = Args {
            first_head: part.heads.start,
            first_query: part.queries.start,
            block_heads: part.heads.len(),
            block_queries: part.queries.len(),
            block_keys: part.keys,
            ..*args
        };
        let source = text(self.dtype, self.mask, if kept <= MAX_KEPT { kept } else { 0 });
        let rows = part.heads.len() * part.queries.len();
        launch(source, entry, (rows.div_ceil(8), 1), 256, args.words(), gpu)
    }

    pub fn forward(&self, [q, k, v, out]: [&RawView; 4], gpu: &mut dyn Gpu) -> Done {
        let p = self.problem;
        let parts = self.parts();
        let at = self.scratch(&parts, gpu)?;
        for part in &parts {
            let scores = part.scores(at, self.dtype);
            let keys = part.rows(k, 0..part.keys, p.keys);
            product(&part.rows(q, part.queries.clone(), p.queries), &transposed(&keys), &scores, 0.0, NO_BIAS, gpu)?;
            self.over_rows("ts_scores_softmax", part, &Args { scores: at, ..self.args }, gpu)?;
            let out = part.rows(out, part.queries.clone(), p.queries);
            product(&scores, &part.rows(v, 0..part.keys, p.keys), &out, 0.0, NO_BIAS, gpu)?;
        }
        Ok(())
    }

    pub fn gradient(&self, [g, q, k, v]: [&RawView; 4], [dq, dk, dv]: [&RawView; 3], gpu: &mut dyn Gpu) -> Done {
        let p = self.problem;
        let parts = self.parts();
        let (at, grads_at) = (self.scratch(&parts, gpu)?, self.scratch(&parts, gpu)?);
        for sum in [dk, dv] {
            gpu.fill_zero(sum.ptr, sum.numel() * sum.dtype.size_bytes())?;
        }
        for part in &parts {
            let (scores, grads) = (part.scores(at, self.dtype), part.scores(grads_at, self.dtype));
            let of_queries = |x: &RawView| part.rows(x, part.queries.clone(), p.queries);
            let of_keys = |x: &RawView| part.rows(x, 0..part.keys, p.keys);
            product(&of_queries(q), &transposed(&of_keys(k)), &scores, 0.0, NO_BIAS, gpu)?;
            product(&of_queries(g), &transposed(&of_keys(v)), &grads, 0.0, NO_BIAS, gpu)?;
            self.over_rows("ts_scores_grad", part, &Args { scores: at, score_grads: grads_at, ..self.args }, gpu)?;
            product(&transposed(&scores), &of_queries(g), &of_keys(dv), 1.0, NO_BIAS, gpu)?;
            product(&grads, &of_keys(k), &of_queries(dq), 0.0, NO_BIAS, gpu)?;
            product(&transposed(&grads), &of_queries(q), &of_keys(dk), 1.0, NO_BIAS, gpu)?;
        }
        Ok(())
    }
}

/// Texts for the compile test.
pub fn texts() -> impl Iterator<Item = &'static Source> {
    [(DType::F32, DType::F32, 32), (DType::F32, DType::Bool, 0), (DType::F64, DType::F64, 4)]
        .into_iter()
        .map(|(dtype, mask, kept)| text(dtype, mask, kept))
}
