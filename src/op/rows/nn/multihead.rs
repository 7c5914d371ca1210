//! Attention of several heads with its projections: `multi_head_attention_forward`, as PyTorch's module calls it.

use crate::args;
use crate::base::diag::Result;
use crate::base::dtype::{DType, Scalar};
use crate::fail;
use crate::op::args::{Arg, Args};
use crate::op::emit::Emit;
use crate::op::row::{CallForm, Grad, Lower, Op, ex};
use crate::op::rows::linalg::matmul::{LINEAR, product};
use crate::op::rows::nn::dropout::DROPOUT;
use crate::op::rows::nn::padding::PAD_CONSTANT;
use crate::op::rows::nn::softmax::SOFTMAX;
use crate::op::rows::pointwise::compare::WHERE;
use crate::op::rows::reduction::moments::MEAN;
use crate::op::rows::shape::copies::REPEAT;
use crate::op::rows::shape::join::CAT;
use crate::op::rows::shape::rearrange::{TRANSPOSE, transposed};
use crate::op::rows::shape::view::{EXPAND, RESHAPE, SELECT, SLICE, UNSQUEEZE};
use crate::op::tensor::{Meta, Tensor};
use crate::signature;

signature!(mha(
    query: Tensor, key: Tensor, value: Tensor, embed_dim_to_check: Int, num_heads: Int,
    in_proj_weight: Tensor = None, in_proj_bias: Tensor = None, bias_k: Tensor = None, bias_v: Tensor = None,
    add_zero_attn: Bool = false, dropout_p: Float = 0.0, out_proj_weight: Tensor = None,
    out_proj_bias: Tensor = None, training: Bool = true, key_padding_mask: Tensor = None, need_weights: Bool = true,
    attn_mask: Tensor = None, use_separate_proj_weight: Bool = false, q_proj_weight: Tensor = None,
    k_proj_weight: Tensor = None, v_proj_weight: Tensor = None, static_k: Tensor = None, static_v: Tensor = None,
    average_attn_weights: Bool = true, is_causal: Bool = false,
));

pub static MULTI_HEAD_ATTENTION_FORWARD: Op = Op {
    name: "multi_head_attention_forward",
    params: mha::PARAMS,
    summary: "Attention of several heads with the projections in front of and behind them; the attention's weights too.",
    details: "`query` is [L, N, E], `key` and `value` [S, N, E] (or without N). Gives an array: the output [L, N, E] and the weights \
[N, L, S], the mean of the heads; without `need_weights` the output alone. Masks are bool (true: not attended) or added.",
    examples: &[
        ex(
            "multi_head_attention_forward(ones([1, 1, 2]), ones([3, 1, 2]), ones([3, 1, 2]), 2, 1, ones([6, 2]), (), (), (), false, 0.0, ones([2, 2]), ())[0]",
            "tensor([[[4., 4.]]])",
        ),
        ex(
            "multi_head_attention_forward(ones([1, 1, 2]), ones([1, 1, 2]), ones([1, 1, 2]), 2, 3, ones([6, 2]), (), (), (), false, 0.0, ones([2, 2]), ())",
            "E0206",
        ),
        ex(
            "multi_head_attention_forward(ones([2]), ones([2]), ones([2]), 2, 1, ones([6, 2]), (), (), (), false, 0.0, ones([2, 2]), ())",
            "E0201",
        ),
        ex(
            "multi_head_attention_forward(ones([1, 1, 2]), ones([1, 1, 2]), ones([1, 1, 2]), 2, 1, (), (), (), (), false, 0.0, ones([2, 2]), ())",
            "E0205",
        ),
    ],
    lower: Lower::Compose(attention),
    grad: Grad::Composed,
    call: CallForm::Function,
    ..Op::BASE
};

/// A mask that is added: a bool one becomes minus infinity where it is true.
fn added(e: &mut dyn Emit, mask: &Tensor, like: &Tensor) -> Result<Tensor> {
    match mask.dtype() {
        DType::Bool => {
            let zeros = e.zeros_like(&Meta { shape: mask.shape(), ..Meta::of(like) })?;
            e.call(&WHERE, args![mask, Scalar::Float(f64::NEG_INFINITY), &zeros])
        }
        dtype if dtype.is_float() => e.cast(mask, like.dtype()),
        dtype => fail!(DTYPE, "a mask is bool or floating-point, not {dtype}"),
    }
}

fn needed<'a>(a: &'a Args, at: usize, name: &str) -> Result<&'a Tensor> {
    match a.get(at) {
        Arg::Tensor(tensor) => Ok(tensor),
        _ => fail!(MISSING_ARGUMENT, "`{name}` is missing"),
    }
}

/// Queries, keys and values after their projections.
fn projected(e: &mut dyn Emit, a: &Args, from: [&Tensor; 3], embed: usize) -> Result<[Tensor; 3]> {
    let bias = |e: &mut dyn Emit, i: usize| match a.get(mha::in_proj_bias) {
        Arg::Tensor(bias) if bias.shape()[..] != [3 * embed] => {
            fail!(SHAPE, "`in_proj_bias` must have shape {:?}, not {:?}", [3 * embed], bias.shape().as_slice())
        }
        Arg::Tensor(bias) => Ok(Arg::Tensor(e.call(&SLICE, args![bias, 0, i * embed, (i + 1) * embed, 1])?)),
        _ => Ok(Arg::None),
    };
    let mut found = Vec::new();
    for (i, x) in from.into_iter().enumerate() {
        let weight = if a.flag(mha::use_separate_proj_weight) {
            needed(a, mha::q_proj_weight + i, ["q_proj_weight", "k_proj_weight", "v_proj_weight"][i])?.clone()
        } else {
            let packed = needed(a, mha::in_proj_weight, "in_proj_weight")?;
            if packed.shape()[..] != [3 * embed, embed] {
                fail!(
                    SHAPE,
                    "`in_proj_weight` must have shape {:?}, not {:?}",
                    [3 * embed, embed],
                    packed.shape().as_slice()
                );
            }
            e.call(&SLICE, args![packed, 0, i * embed, (i + 1) * embed, 1])?
        };
        let bias = bias(e, i)?;
        found.push(e.call(&LINEAR, args![x, &weight, bias])?);
    }
    match <[Tensor; 3]>::try_from(found) {
        Ok(three) => Ok(three),
        Err(_) => fail!(INTERNAL, "three projections are made"),
    }
}

/// One more position at the end of the source.
fn padded(e: &mut dyn Emit, mask: Option<Tensor>) -> Result<Option<Tensor>> {
    mask.map(|mask| e.call(&PAD_CONSTANT, args![&mask, &[0i64, 1][..], 0])).transpose()
}

fn attention(e: &mut dyn Emit, a: &Args) -> Result<Vec<Tensor>> {
    let batched = match a.tensor(mha::query).ndim() {
        3 => true,
        2 => false,
        _ => fail!(
            SHAPE,
            "`query` must have 2 or 3 dimensions; it has shape {:?}",
            a.tensor(mha::query).shape().as_slice()
        ),
    };
    let mut from = Vec::new();
    for (at, name) in ["query", "key", "value"].into_iter().enumerate() {
        let x = a.tensor(at);
        if x.ndim() != a.tensor(mha::query).ndim() {
            fail!(SHAPE, "`{name}` has {} dimensions, `query` {}", x.ndim(), a.tensor(mha::query).ndim());
        }
        from.push(if batched { x.clone() } else { e.call(&UNSQUEEZE, args![x, 1])? });
    }
    let (s, k) = (from[0].shape(), from[1].shape());
    let (length, n, embed, heads) = (s[0], s[1], s[2], a.int(mha::num_heads));
    if embed as i64 != a.int(mha::embed_dim_to_check) {
        fail!(VALUE, "`query` has {embed} features, not {}", a.int(mha::embed_dim_to_check));
    }
    if heads < 1 || embed as i64 % heads != 0 {
        fail!(VALUE, "{embed} features do not fall into {heads} heads");
    }
    let same =
        if a.flag(mha::use_separate_proj_weight) { k[..2] == from[2].shape()[..2] } else { k == from[2].shape() };
    if !same || k[1] != n {
        fail!(
            SHAPE,
            "`key` of shape {:?} and `value` of shape {:?} do not go with `query` of shape {:?}",
            k.as_slice(),
            from[2].shape().as_slice(),
            s.as_slice()
        );
    }
    if a.flag(mha::is_causal) && a.is_none(mha::attn_mask) {
        fail!(MISSING_ARGUMENT, "`is_causal` is a hint about `attn_mask`, which is missing");
    }
    let (heads, rows) = (heads as usize, n * heads as usize);
    let head = embed / heads;
    let [q, mut k, mut v] = projected(e, a, [&from[0], &from[1], &from[2]], embed)?;
    let source = k.shape()[0];
    let mut mask = match a.get(mha::attn_mask) {
        Arg::Tensor(mask) => {
            let fits = mask.shape()[..] == [length, source] || mask.shape()[..] == [rows, length, source];
            if !fits {
                fail!(
                    SHAPE,
                    "`attn_mask` must have shape {:?} or {:?}, not {:?}",
                    [length, source],
                    [rows, length, source],
                    mask.shape().as_slice()
                );
            }
            Some(added(e, mask, &q)?)
        }
        _ => None,
    };
    let mut padding = match a.get(mha::key_padding_mask) {
        Arg::Tensor(mask) => {
            let mask = if batched { mask.clone() } else { e.call(&UNSQUEEZE, args![mask, 0])? };
            if mask.shape()[..] != [n, source] {
                fail!(SHAPE, "`key_padding_mask` must have shape {:?}, not {:?}", [n, source], mask.shape().as_slice());
            }
            Some(added(e, &mask, &q)?)
        }
        _ => None,
    };
    match (a.opt_tensor(mha::bias_k), a.opt_tensor(mha::bias_v)) {
        (Some(bias_k), Some(bias_v)) => {
            if !a.is_none(mha::static_k) || !a.is_none(mha::static_v) {
                fail!(VALUE, "`bias_k` and `bias_v` do not go with `static_k` and `static_v`");
            }
            let times = [1, n as i64, 1];
            let (more_k, more_v) =
                (e.call(&REPEAT, args![bias_k, &times[..]])?, e.call(&REPEAT, args![bias_v, &times[..]])?);
            k = e.call(&CAT, args![vec![k, more_k], 0])?;
            v = e.call(&CAT, args![vec![v, more_v], 0])?;
            (mask, padding) = (padded(e, mask)?, padded(e, padding)?);
        }
        (None, None) => {}
        _ => fail!(MISSING_ARGUMENT, "`bias_k` and `bias_v` go together"),
    }
    let split = |e: &mut dyn Emit, x: &Tensor| {
        let x = e.call(&RESHAPE, args![x, [x.shape()[0], rows, head].as_slice()])?;
        e.call(&TRANSPOSE, args![&x, 0, 1])
    };
    let q = split(e, &q)?;
    let mut ends = Vec::new();
    for (x, at) in [(k, 21), (v, 22)] {
        let x = match a.get(at) {
            Arg::Tensor(given) => {
                if given.ndim() != 3 || given.shape()[0] != rows || given.shape()[2] != head {
                    fail!(SHAPE, "given keys and values are [{rows}, S, {head}], not {:?}", given.shape().as_slice());
                }
                given.clone()
            }
            _ => split(e, &x)?,
        };
        ends.push(if a.flag(mha::add_zero_attn) {
            let zeros = Meta { shape: [rows, 1, head].as_slice().into(), ..Meta::of(&x) };
            let zeros = e.zeros_like(&zeros)?;
            e.call(&CAT, args![vec![x, zeros], 1])?
        } else {
            x
        });
    }
    if a.flag(mha::add_zero_attn) {
        (mask, padding) = (padded(e, mask)?, padded(e, padding)?);
    }
    let source = ends[0].shape()[1];
    if let Some(padding) = padding {
        let wide = e.call(&RESHAPE, args![&padding, [n, 1, 1, source].as_slice()])?;
        let wide = e.call(&EXPAND, args![&wide, [n, heads, 1, source].as_slice()])?;
        let wide = e.call(&RESHAPE, args![&wide, [rows, 1, source].as_slice()])?;
        mask = Some(match mask {
            None => wide,
            Some(mask) => e.add(&mask, &wide)?,
        });
    }
    let scaled = e.mul(&q, Scalar::Float((1.0 / head as f64).sqrt()))?;
    let keys = transposed(e, &ends[0])?;
    let mut scores = product(e, &scaled, &keys)?;
    if let Some(mask) = mask {
        scores = e.add(&scores, &mask)?;
    }
    let mut weights = e.call(&SOFTMAX, args![&scores, -1])?;
    if a.flag(mha::training) && a.float(mha::dropout_p) > 0.0 {
        weights = e.call(&DROPOUT, args![&weights, a.float(mha::dropout_p), true])?;
    }
    let y = product(e, &weights, &ends[1])?;
    let y = e.call(&TRANSPOSE, args![&y, 0, 1])?;
    let y = e.call(&RESHAPE, args![&y, [length * n, embed].as_slice()])?;
    let y = e.call(
        &LINEAR,
        args![&y, needed(a, mha::out_proj_weight, "out_proj_weight")?, a.opt_tensor(mha::out_proj_bias)],
    )?;
    let width = y.shape()[1];
    let y = e.call(&RESHAPE, args![&y, [length, n, width].as_slice()])?;
    let y = if batched { y } else { e.call(&SELECT, args![&y, 1, 0])? };
    if !a.flag(mha::need_weights) {
        return Ok(vec![y]);
    }
    let mut weights = e.call(&RESHAPE, args![&weights, [n, heads, length, source].as_slice()])?;
    if a.flag(mha::average_attn_weights) {
        weights = e.call(&MEAN, args![&weights, &[1i64][..]])?;
    }
    Ok(vec![y, if batched { weights } else { e.call(&SELECT, args![&weights, 0, 0])? }])
}

pub static ROWS: &[&Op] = &[&MULTI_HEAD_ATTENTION_FORWARD];
