//! Scaled dot-product attention: one fused kernel, or a composition if dropout, a gradient of the mask or a
//! second-order gradient needs the matrix of scores.

use crate::args;
use crate::base::attr::Attr;
use crate::base::diag::Result;
use crate::base::dtype::{DType, Scalar};
use crate::base::layout::Shape;
use crate::fail;
use crate::kernel::attention;
use crate::kernel::copy;
use crate::op::args::Args;
use crate::op::emit::{Backward, Emit, KernelCall};
use crate::op::expr::{compute, derive};
use crate::op::infer;
use crate::op::row::{CallForm, Grad, Lower, Op, Save, ex};
use crate::op::rows::linalg::matmul::MATMUL;
use crate::op::rows::nn::dropout::DROPOUT;
use crate::op::rows::nn::softmax::SOFTMAX_FLOAT;
use crate::op::rows::pointwise::compare::NE;
use crate::op::rows::shape::view::{EXPAND, RESHAPE, UNSQUEEZE};
use crate::op::tensor::Tensor;
use crate::signature;

signature!(fused(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor = None, is_causal: Bool = false,
    scale: Float = None,
));

/// The kernel: leading dims equal, the mask expanded. Results: output, logsumexp of the scores.
static FUSED: Op = Op {
    name: "scaled_dot_product_attention",
    params: fused::PARAMS,
    summary: "Attention without a matrix of scores.",
    lower: Lower::Kernel(|_, a| {
        let (q, v) = (a.tensor(fused::query), a.tensor(fused::value));
        let (mut shape, dtype) = (q.shape(), q.dtype());
        let last = shape.len() - 1;
        shape[last] = v.shape()[last];
        let wide = if dtype == DType::F64 { DType::F64 } else { DType::F32 };
        let call =
            settings(KernelCall::new("attention", &attention::ATTENTION).inputs([q, a.tensor(fused::key), v]), a);
        let call = call.inputs(a.opt_tensor(fused::attn_mask));
        Ok(call.output(&shape, dtype).output(&shape[..last], wide))
    }),
    saves: &[
        Save::In(fused::query),
        Save::In(fused::key),
        Save::In(fused::value),
        Save::In(fused::attn_mask),
        Save::Out(0),
        Save::Out(1),
    ],
    grad: Grad::Rule(|e, v| {
        let Some(g) = &v.grads[0] else { return Ok(Vec::new()) };
        if e.grad_enabled() {
            return twice(e, v, g);
        }
        let (q, k, value) = (v.saved(fused::query), v.saved(fused::key), v.saved(fused::value));
        let call = KernelCall::new("attention_grad", &attention::ATTENTION_GRAD);
        let call = call.inputs([g, q, k, value, v.output(0), v.output(1)]).inputs(v.opt_input(fused::attn_mask));
        let call = settings(call, v.args);
        let call = [q, k, value].iter().fold(call, |call, x| call.output(&x.shape(), x.dtype()));
        Ok(e.kernel(call)?.into_iter().map(Some).collect())
    }),
    call: CallForm::Internal,
    ..Op::BASE
};

fn settings(call: KernelCall, a: &Args) -> KernelCall {
    call.flag(a.flag(fused::is_causal)).attr(a.opt_float(fused::scale).map_or(Attr::None, Attr::Float))
}

/// What scores are multiplied by: as given, or 1 over the root of the head's width.
fn scale(q: &Tensor, a: &Args) -> f64 {
    let width = q.shape()[q.ndim() - 1] as f64;
    a.opt_float(fused::scale).unwrap_or(1.0 / width.sqrt())
}

/// The probabilities `softmax(scale q k' + mask)`; rows that see nothing are 0.
fn probabilities(e: &mut dyn Emit, [q, k]: [&Tensor; 2], mask: Option<&Tensor>, a: &Args) -> Result<Tensor> {
    let scale = scale(q, a);
    let seen = if a.flag(fused::is_causal) {
        Some(causal(e, q.shape()[q.ndim() - 2], k.shape()[k.ndim() - 2], q)?)
    } else {
        None
    };
    compute(e, |c| {
        let mut scores = c.of(q).matmul(c.of(k).mt()) * scale;
        if let Some(seen) = &seen {
            scores = c.of(seen).choose(scores, f64::NEG_INFINITY);
        }
        if let Some(mask) = mask {
            scores = match mask.dtype() {
                DType::Bool => c.of(mask).choose(scores, f64::NEG_INFINITY),
                _ => scores + mask,
            };
        }
        let p = scores.call(&SOFTMAX_FLOAT, args![-1]);
        if mask.is_none() {
            return p;
        }
        // A row of minus infinities has no softmax.
        let (plain, blank) = (p.detach(), scores.detach().equals(f64::NEG_INFINITY));
        p.zero_where(plain.with(&NE, plain).and(blank))
    })
}

/// `[l, s]`: query i sees keys up to i.
fn causal(e: &mut dyn Emit, l: usize, s: usize, like: &Tensor) -> Result<Tensor> {
    let ones = e.source(crate::op::row::Source::Fill(Scalar::Bool(true)), &[l, s], DType::Bool, like.device())?;
    let mut made = e.kernel(KernelCall::new("tril", &copy::TRIL).input(&ones).int(0).output(&[l, s], DType::Bool))?;
    Ok(made.swap_remove(0))
}

/// The gradients of `FUSED` as rows.
fn twice(e: &mut dyn Emit, v: &Backward<'_>, g: &Tensor) -> Result<Vec<Option<Tensor>>> {
    let (q, k) = (v.saved(fused::query), v.saved(fused::key));
    let p = probabilities(e, [q, k], v.opt_input(fused::attn_mask), v.args)?;
    let scale = scale(q, v.args);
    derive(e, v, |t| {
        let (q, k, value) = (t.arg(fused::query), t.arg(fused::key), t.arg(fused::value));
        let [p, g] = [&p, g].map(|x| t.make(|_| Ok(x.clone())));
        let to_p = g.matmul(value.mt());
        let scores = p * (to_p - (to_p * p).sum_keepdim(-1)) * scale;
        [Some(scores.matmul(k)), Some(scores.mt().matmul(q)), Some(p.mt().matmul(g))]
    })
}

/// Every head of `x` for `count` heads of queries in a row, as a dim of its own: nothing is copied.
fn shared_heads(e: &mut dyn Emit, x: &Tensor, count: usize) -> Result<Tensor> {
    let head = x.ndim() - 3;
    let wide = e.call(&UNSQUEEZE, args![x, head + 1])?;
    let mut repeated = wide.shape();
    repeated[head + 1] = count;
    e.call(&EXPAND, args![&wide, repeated.as_slice()])
}

/// The heads of `x` in groups of `count`, as two dims.
fn in_groups(e: &mut dyn Emit, x: &Tensor, count: usize) -> Result<Tensor> {
    let mut shape = x.shape();
    let head = shape.len() - 3;
    shape[head] /= count;
    shape.insert(head + 1, count);
    e.call(&RESHAPE, args![x, shape.as_slice()])
}

/// The heads of groups as one dim.
fn merged(e: &mut dyn Emit, x: &Tensor) -> Result<Tensor> {
    let mut shape = x.shape();
    let count = shape.remove(x.ndim() - 3);
    shape[x.ndim() - 4] *= count;
    e.call(&RESHAPE, args![x, shape.as_slice()])
}

/// `x` with these leading dims.
fn leading(e: &mut dyn Emit, x: &Tensor, lead: &[usize]) -> Result<Tensor> {
    let own = x.shape();
    let mut shape = Shape::from_slice(lead);
    shape.extend_from_slice(&own[own.len() - 2..]);
    if shape == own { Ok(x.clone()) } else { e.call(&EXPAND, args![x, shape.as_slice()]) }
}

fn check(a: &Args) -> Result<()> {
    let [q, k, v] = [a.tensor(sdpa::query), a.tensor(sdpa::key), a.tensor(sdpa::value)];
    let dtype = infer::same_dtype(&[("query", q), ("key", k), ("value", v)])?;
    crate::op::rows::nn::windows::float_only(q, "query")?;
    let (qs, ks, vs) = (q.shape(), k.shape(), v.shape());
    if qs.len() < 2 || ks.len() < 2 || vs.len() < 2 {
        fail!(SHAPE, "query, key and value must have at least 2 dimensions");
    }
    if qs[qs.len() - 1] != ks[ks.len() - 1] {
        fail!(SHAPE, "queries have {} elements, keys {}", qs[qs.len() - 1], ks[ks.len() - 1]);
    }
    if ks[ks.len() - 2] != vs[vs.len() - 2] {
        fail!(SHAPE, "there are {} keys, but {} values", ks[ks.len() - 2], vs[vs.len() - 2]);
    }
    if let Some(mask) = a.opt_tensor(sdpa::attn_mask) {
        if a.flag(sdpa::is_causal) {
            fail!(VALUE, "`attn_mask` and `is_causal` exclude each other");
        }
        if mask.dtype() != DType::Bool && mask.dtype() != dtype {
            fail!(DTYPE, "`attn_mask` must be bool or {dtype}, not {}", mask.dtype());
        }
    }
    let p = a.float(sdpa::dropout_p);
    if !(0.0..=1.0).contains(&p) {
        fail!(VALUE, "`dropout_p` must lie between 0 and 1, not {p}");
    }
    Ok(())
}

/// Arguments: query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa.
fn attention(e: &mut dyn Emit, a: &Args) -> Result<Tensor> {
    check(a)?;
    let (q, k, v) = (a.tensor(sdpa::query), a.tensor(sdpa::key), a.tensor(sdpa::value));
    let mask = a.opt_tensor(sdpa::attn_mask).cloned();
    if !a.flag(sdpa::enable_gqa) {
        return attend(e, a, [q, k, v], mask);
    }
    if q.ndim() < 3 || k.ndim() < 3 || v.ndim() < 3 {
        fail!(SHAPE, "`enable_gqa` needs heads: at least 3 dimensions");
    }
    let heads = |x: &Tensor| x.shape()[x.ndim() - 3];
    let (expected, [of_keys, of_values]) = (heads(q), [k, v].map(heads));
    for own in [of_keys, of_values] {
        if own == 0 || expected % own != 0 {
            fail!(SHAPE, "{expected} heads of queries are no multiple of {own} heads of keys or values");
        }
    }
    if of_keys == of_values && of_keys == expected {
        return attend(e, a, [q, k, v], mask);
    }
    // The groups of the fewer heads are those of all.
    let groups = of_keys.min(of_values);
    if of_keys != of_values && of_keys.max(of_values) != expected {
        let [k, v] = [(k, expected / of_keys), (v, expected / of_values)]
            .map(|(x, count)| shared_heads(e, x, count).and_then(|wide| merged(e, &wide)));
        return attend(e, a, [q, &k?, &v?], mask);
    }
    let count = expected / groups;
    let [k, v] = [(k, of_keys), (v, of_values)].map(|(x, own)| match own == groups {
        true => shared_heads(e, x, count),
        false => in_groups(e, x, count),
    });
    let q = in_groups(e, q, count)?;
    let mask = match mask {
        Some(mask) if mask.ndim() < 3 => Some(mask),
        Some(mask) if heads(&mask) == 1 => Some(e.call(&UNSQUEEZE, args![&mask, mask.ndim() - 3])?),
        Some(mask) if heads(&mask) == expected => Some(in_groups(e, &mask, count)?),
        Some(mask) => fail!(SHAPE, "`attn_mask` has {} heads, the queries {expected}", heads(&mask)),
        None => None,
    };
    let y = attend(e, a, [&q, &k?, &v?], mask)?;
    merged(e, &y)
}

/// Of as many heads of keys and values as of queries.
fn attend(e: &mut dyn Emit, a: &Args, [q, k, v]: [&Tensor; 3], mut mask: Option<Tensor>) -> Result<Tensor> {
    let shapes = [q.shape(), k.shape(), v.shape()];
    let mut lead = infer::broadcast_all(shapes.iter().map(|shape| &shape[..shape.len() - 2]))?;
    let rows = [q.shape()[q.ndim() - 2], k.shape()[k.ndim() - 2]];
    if let Some(given) = &mask {
        let own = given.shape();
        let before = own.len().saturating_sub(2);
        lead = infer::broadcast_all([lead.as_slice(), &own[..before]])?;
        let mut shape = lead.clone();
        shape.extend(rows);
        mask = Some(e.call(&EXPAND, args![given, shape.as_slice()])?);
    }
    let (q, k, v) = (leading(e, q, &lead)?, leading(e, k, &lead)?, leading(e, v, &lead)?);
    let dropout = a.float(sdpa::dropout_p);
    let settings = args![(), (), (), (), a.flag(sdpa::is_causal), a.attr(sdpa::scale).clone()];
    let mask_trains = e.grad_enabled() && mask.as_ref().is_some_and(Tensor::requires_grad);
    if dropout == 0.0 && !mask_trains && rows[1] > 0 {
        let call = args![&q, &k, &v, mask, a.flag(sdpa::is_causal), a.attr(sdpa::scale).clone()];
        return Ok(e.apply(&FUSED, call)?.swap_remove(0));
    }
    let mut p = probabilities(e, [&q, &k], mask.as_ref(), &settings)?;
    if dropout > 0.0 {
        p = e.call(&DROPOUT, args![&p, dropout, true])?;
    }
    e.call(&MATMUL, args![&p, &v])
}

signature!(sdpa(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor = None, dropout_p: Float = 0.0,
    is_causal: Bool = false, scale: Float = None, enable_gqa: Bool = false,
));

pub static SCALED_DOT_PRODUCT_ATTENTION: Op = Op {
    name: "scaled_dot_product_attention",
    params: sdpa::PARAMS,
    summary: "softmax(scale · query · keyᵀ + mask) · value, without ever holding the matrix of scores.",
    details: "`query` is [.., L, E], `key` [.., S, E], `value` [.., S, Ev]; the result [.., L, Ev]. `attn_mask` broadcasts to \
[.., L, S]: bool (false is not seen) or added to the scores. `is_causal` lets query i see keys up to i. `scale` is 1/sqrt(E) \
unless given. `enable_gqa` shares each head of keys and values among several of queries. A query that sees no key gives \
zeros. Source of the algorithm: Dao, \"FlashAttention-2\" (2023).",
    examples: &[
        ex("scaled_dot_product_attention(ones([1, 2]), ones([3, 2]), ones([3, 2]))", "tensor([[1., 1.]])"),
        ex("scaled_dot_product_attention(ones([1, 2]), ones([3, 4]), ones([3, 2]))", "E0201"),
        ex("scaled_dot_product_attention(ones([1, 2]), ones([3, 2]), ones([3, 2], #{dtype: \"f64\"}))", "E0202"),
        ex("scaled_dot_product_attention(ones([1, 2]), ones([3, 2]), ones([3, 2]), #{dropout_p: 2.0})", "E0206"),
    ],
    lower: Lower::Compose(|e, a| Ok(vec![attention(e, a)?])),
    grad: Grad::Composed,
    call: CallForm::Function,
    ..Op::BASE
};

pub static ROWS: &[&Op] = &[&FUSED, &SCALED_DOT_PRODUCT_ATTENTION];
