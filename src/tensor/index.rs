//! Indexing: PyTorch's rules for integers, ranges, masks, index tensors, `None` and `...`, to read and to write.

use super::engine::Engine;
use super::observe;
use crate::args;
use crate::base::code;
use crate::base::diag::{Diag, Result};
use crate::base::dtype::{DType, Scalar};
use crate::base::layout::Shape;
use crate::op::args::Arg;
use crate::op::emit::Emit;
use crate::op::infer;
use crate::op::rows::indexing::{index, masks};
use crate::op::rows::pointwise::arith::element_of;
use crate::op::rows::pointwise::{arith, blend, compare};
use crate::op::rows::shape::view;
use crate::op::tensor::Tensor;

/// One item of an index.
#[derive(Clone, Debug)]
pub enum Item {
    Int(i64),
    Slice { start: Option<i64>, stop: Option<i64>, step: i64 },
    NewAxis,
    Ellipsis,
    Bool(bool),
    Tensor(Tensor),
}

/// How many dimensions of the tensor an item consumes.
fn width(item: &Item) -> usize {
    match item {
        Item::Int(_) | Item::Slice { .. } => 1,
        Item::Tensor(mask) if mask.dtype() == DType::Bool => mask.ndim(),
        Item::Tensor(_) => 1,
        Item::NewAxis | Item::Ellipsis | Item::Bool(_) => 0,
    }
}

/// A tensor used with another: it is copied to that device, from the CPU, or from anywhere if it is assigned.
fn on_device_of(e: &mut Engine, tensor: Tensor, place: &Tensor) -> Result<Tensor> {
    if tensor.device() == place.device() {
        return Ok(tensor);
    }
    let dtype = tensor.dtype();
    e.call_row(&arith::MOVE, args![&tensor, place.device(), dtype])
}

/// An index tensor: one on the CPU may index a tensor of any device. The operation reports any other.
fn index_on_device_of(e: &mut Engine, index: Tensor, place: &Tensor) -> Result<Tensor> {
    if index.device().is_cuda() { Ok(index) } else { on_device_of(e, index, place) }
}

/// A view with the basic items applied, and the index tensors left for each of its dimensions.
struct Parts {
    view: Tensor,
    advanced: Vec<Option<Tensor>>,
}

fn split(e: &mut Engine, x: &Tensor, items: Vec<Item>) -> Result<Parts> {
    let mut items = items;
    items.iter_mut().try_for_each(|item| look_at(e, item))?;
    let used: usize = items.iter().map(width).sum();
    let ndim = x.ndim();
    if used > ndim {
        return Err(infer::too_many_indices(used, ndim));
    }
    if items.iter().filter(|item| matches!(item, Item::Ellipsis)).count() > 1 {
        return Err(Diag::error(code::VALUE, "an index may hold only one \"...\""));
    }
    let mut view = x.clone();
    // In the view, and in `x`, as messages name it.
    let (mut dim, mut own) = (0, 0);
    let mut advanced: Vec<Option<Tensor>> = Vec::new();
    for item in items {
        let own_dim = own;
        own += if matches!(item, Item::Ellipsis) { ndim - used } else { width(&item) };
        match item {
            Item::Int(i) => view = select(e, &view, dim, i, own_dim)?,
            Item::Slice { start, stop, step } => {
                let whole = start.unwrap_or(0) == 0 && stop.is_none() && step == 1;
                if !whole {
                    let (start, stop) = (start.map_or(Arg::None, Arg::from), stop.map_or(Arg::None, Arg::from));
                    view = e.call_row(&view::SLICE, args![&view, dim, start, stop, step])?;
                }
                dim += 1;
                advanced.push(None);
            }
            Item::NewAxis => {
                view = e.call_row(&view::UNSQUEEZE, args![&view, dim])?;
                dim += 1;
                advanced.push(None);
            }
            Item::Ellipsis => {
                for _ in 0..ndim - used {
                    dim += 1;
                    advanced.push(None);
                }
            }
            Item::Bool(keep) => {
                view = e.call_row(&view::UNSQUEEZE, args![&view, dim])?;
                let device = view.device();
                let n = keep as usize;
                let index = e.source(crate::op::row::Source::Fill(Scalar::Int(0)), &[n], DType::I64, device)?;
                dim += 1;
                advanced.push(Some(index));
            }
            Item::Tensor(mask) if mask.dtype() == DType::Bool => {
                check_mask(&mask.shape(), &view.shape()[dim..], dim)?;
                if mask.ndim() == 0 {
                    view = e.call_row(&view::UNSQUEEZE, args![&view, dim])?;
                    let mask = e.call_row(&view::UNSQUEEZE, args![&mask, 0])?;
                    let index = positions(e, &mask)?.swap_remove(0);
                    advanced.push(Some(index_on_device_of(e, index, &view)?));
                    dim += 1;
                    continue;
                }
                for index in positions(e, &mask)? {
                    advanced.push(Some(index_on_device_of(e, index, &view)?));
                    dim += 1;
                }
            }
            Item::Tensor(index) => {
                if !matches!(index.dtype(), DType::I64 | DType::I32) {
                    let text = format!("an index tensor holds i64, i32 or bool, not {}", index.dtype());
                    let diag = Diag::error(code::DTYPE, text);
                    let is_int = index.dtype().is_int();
                    return Err(if is_int { diag.help("convert it with `.long()`") } else { diag });
                }
                advanced.push(Some(index_on_device_of(e, index, &view)?));
                dim += 1;
            }
        }
    }
    Ok(Parts { view, advanced })
}

/// One element along a dim of a view, which is dim `own` of what the script indexes.
fn select(e: &mut Engine, view: &Tensor, dim: usize, i: i64, own: usize) -> Result<Tensor> {
    e.call_row(&view::SELECT, args![view, dim, i]).map_err(|mut diag| {
        if diag.code == code::INDEX && own != dim {
            diag.message = view::out_of_range(i, own, view.shape()[dim]);
        }
        diag
    })
}

/// A 0-dimensional integer tensor is its number, which is waited for; one of `u8` is a mask, as in PyTorch.
fn look_at(e: &mut Engine, item: &mut Item) -> Result<()> {
    let Item::Tensor(index) = item else { return Ok(()) };
    match index.dtype() {
        DType::U8 => *item = Item::Tensor((e as &mut dyn Emit).cast(index, DType::Bool)?),
        // Inside of `vmap` each sample has a number of its own: it stays an index tensor without dims.
        dtype if dtype.is_int() && index.ndim() == 0 && index.samples().is_none() => {
            if let Scalar::Int(i) = observe::item(&e.rt, index)? {
                *item = Item::Int(i);
            }
        }
        _ => {}
    }
    Ok(())
}

fn check_mask(mask: &[usize], sizes: &[usize], dim: usize) -> Result<()> {
    for (at, &n) in mask.iter().enumerate() {
        if sizes.get(at) != Some(&n) {
            let have = sizes.get(at).map_or("no such dimension".to_string(), |n| format!("size {n}"));
            return Err(Diag::error(
                code::SHAPE,
                format!("the mask has size {n} in its dimension {at}, the tensor's dimension {} has {have}", dim + at),
            ));
        }
    }
    Ok(())
}

/// A mask as one index tensor for each of its dimensions.
fn positions(e: &mut Engine, mask: &Tensor) -> Result<Vec<Tensor>> {
    let found = e.named("index", |e| e.call_row(&masks::NONZERO, args![mask]))?;
    (0..mask.ndim()).map(|dim| e.call_row(&view::SELECT, args![&found, 1, dim])).collect()
}

/// `x[items]`.
pub fn get(e: &mut Engine, x: &Tensor, items: Vec<Item>) -> Result<Tensor> {
    let unchanged = items.is_empty();
    let Parts { view, advanced } = split(e, x, items)?;
    if advanced.iter().any(Option::is_some) {
        return e.call_row(&index::INDEX, args![&view, advanced]);
    }
    if unchanged || view.same(x) {
        let shape: Shape = view.shape();
        return e.call_row(&view::EXPAND, args![&view, shape.as_slice()]);
    }
    Ok(view)
}

/// `x[i]`, the most frequent form.
pub fn element(e: &mut Engine, x: &Tensor, i: i64) -> Result<Tensor> {
    if x.ndim() == 0 {
        return get(e, x, vec![Item::Int(i)]);
    }
    e.call_row(&view::SELECT, args![x, 0, i])
}

/// `x[items] = value`.
pub fn set(e: &mut Engine, x: &Tensor, items: Vec<Item>, value: Arg) -> Result<()> {
    if fill(e, x, &items, &value)? {
        return Ok(());
    }
    let Parts { view, advanced } = match items[..] {
        // `x[i] = value`, which is asked for more often than everything else.
        [Item::Int(i)] if x.ndim() > 0 => Parts { view: element(e, x, i)?, advanced: Vec::new() },
        _ => split(e, x, items)?,
    };
    if advanced.iter().any(Option::is_some) {
        let value = match value {
            Arg::Tensor(value) if value.dtype() == view.dtype() => value,
            Arg::Tensor(value) => (e as &mut dyn Emit).cast(&value, view.dtype())?,
            other => {
                let value = element_of(other.scalar().unwrap_or(Scalar::Int(0)), view.dtype())?;
                e.source(crate::op::row::Source::Fill(value), &[], view.dtype(), view.device())?
            }
        };
        let value = on_device_of(e, value, &view)?;
        let value = without_leading_ones(e, value)?;
        e.call_row(&index::INDEX_PUT_INTO, args![&view, advanced, value, false])?;
        return Ok(());
    }
    // After `x[0] += y`, which has written into the view: assigning the identical view has no effect.
    if let Arg::Tensor(value) = &value {
        let (to, from) = (view.view(), value.view());
        if std::sync::Arc::ptr_eq(&to.buffer, &from.buffer) && to.layout == from.layout && to.dtype == from.dtype {
            return Ok(());
        }
    }
    let value = match value.scalar() {
        Some(number) => element_of(number, view.dtype())?.into(),
        None => drop_leading_ones(e, &view, value)?,
    };
    let one = !matches!(&value, Arg::Tensor(value) if value.ndim() > 0);
    // As in PyTorch one value for all elements is filled in, into an expanded tensor too.
    let op = if one && view.view().layout.repeated().next().is_some() { &blend::FILL } else { &arith::COPY };
    e.apply_inplace(op, args![&view, value])?;
    Ok(())
}

/// `x[mask] = number` needs no positions, and so does not wait. False if this is something else.
fn fill(e: &mut Engine, x: &Tensor, items: &[Item], value: &Arg) -> Result<bool> {
    let [Item::Tensor(mask)] = items else { return Ok(false) };
    if mask.dtype() != DType::Bool || mask.ndim() == 0 {
        return Ok(false);
    }
    let value = match value {
        Arg::Tensor(value) if value.ndim() == 0 => {
            let value = (e as &mut dyn Emit).cast(value, x.dtype())?;
            Arg::Tensor(on_device_of(e, value, x)?)
        }
        Arg::Tensor(_) => return Ok(false),
        number => number.clone(),
    };
    check_mask(&mask.shape(), &x.shape(), 0)?;
    let mut shape = mask.shape();
    shape.resize(x.ndim(), 1);
    let mask = index_on_device_of(e, mask.clone(), x)?;
    let mask = e.call_row(&view::RESHAPE, args![&mask, shape.as_slice()])?;
    e.apply_inplace(&compare::MASKED_FILL, args![x, &mask, value])?;
    Ok(true)
}

/// As in PyTorch: leading dimensions of size 1 are removed, and broadcasting restores them.
fn without_leading_ones(e: &mut Engine, value: Tensor) -> Result<Tensor> {
    let shape = value.shape();
    match shape.iter().take_while(|&&n| n == 1).count() {
        0 => Ok(value),
        ones => e.call_row(&view::RESHAPE, args![&value, &shape[ones..]]),
    }
}

/// A value with more leading dimensions of size 1 than its target.
fn drop_leading_ones(e: &mut Engine, place: &Tensor, value: Arg) -> Result<Arg> {
    let Arg::Tensor(value) = value else { return Ok(value) };
    let shape = value.shape();
    let extra = shape.len().saturating_sub(place.ndim());
    if extra > 0 && shape[..extra].iter().all(|&n| n == 1) {
        return Ok(Arg::Tensor(e.call_row(&view::RESHAPE, args![&value, &shape[extra..]])?));
    }
    Ok(Arg::Tensor(value))
}
