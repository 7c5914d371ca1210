//! Gradients of tables that are kept by rows: `embedding(.., sparse: true)`. A backward costs what was looked up, and not
//! the size of the table.

use super::engine::Engine;
use super::hooks;
use super::own_functions::{self, Call};
use crate::args;
use crate::base::diag::Result;
use crate::base::dtype::Scalar;
use crate::op::emit::Emit;
use crate::op::row::Source;
use crate::op::rows::indexing::index_select::{INDEX_ADD, INDEX_SELECT};
use crate::op::rows::indexing::masks::NONZERO;
use crate::op::rows::nn::embedding::ROWS_GRAD;
use crate::op::rows::ordering::distinct::UNIQUE;
use crate::op::rows::pointwise::compare::NE;
use crate::op::rows::shape::join::CAT;
use crate::op::rows::shape::view::{CLONE, RESHAPE};
use crate::op::tensor::{GradCall, GradStep, RowGrad, Tensor};
use crate::sched::runtime::Runtime;
use std::sync::Arc;

/// Gives `rows`, looked up outside the graph, their place in it.
pub fn record(
    e: &mut Engine,
    table: &Tensor,
    index: &Tensor,
    padding: Option<i64>,
    mut rows: Tensor,
) -> Result<Tensor> {
    let inputs = [Some(table.clone())];
    if own_functions::is_recorded(e, &inputs) {
        let backward = Box::new(RowBackward { rt: e.rt.clone(), table: table.clone(), padding });
        let call = Call { inputs: &inputs, saved: &[Some(index.clone())], backward };
        own_functions::record(e, call, &mut [&mut rows], &[true])?;
    }
    Ok(rows)
}

struct RowBackward {
    rt: Arc<Runtime>,
    table: Tensor,
    padding: Option<i64>,
}

impl GradCall for RowBackward {
    /// Adds to the rows of a leaf; elsewhere, where gradients are asked for by `grad`, and where hooks of the leaf get to
    /// know its gradient, it is dense.
    fn call(&self, step: &GradStep) -> Result<Vec<Option<Tensor>>> {
        let (Some(Some(g)), Some(Some(index))) = (step.grads.first(), step.saved.first()) else {
            return Ok(vec![None]);
        };
        let mut e = Engine::new(self.rt.clone(), step.origin);
        let table = &self.table;
        let is_leaf = super::history::is_leaf(table) && table.requires_grad() && !table.0.auto.lock().is_over;
        if !is_leaf || !step.accumulates || step.create_graph || hooks::has_any(table) {
            let padding = self.padding.map_or(crate::op::args::Arg::None, Into::into);
            return Ok(vec![Some(e.call_row(&ROWS_GRAD, args![g, index, table.shape()[0], padding])?)]);
        }
        let n = index.numel();
        let index = e.call_row(&RESHAPE, args![index, [n].as_slice()])?;
        let values = e.call_row(&RESHAPE, args![g, [n, table.shape()[1]].as_slice()])?;
        // In memory of its own: scripts may scale a gradient in place.
        let values = e.call_row(&CLONE, args![&values])?;
        let part = self.without_padding(&mut e, RowGrad { index, values })?;
        let mut rows = table.row_grads();
        rows.push(part);
        table.set_row_grads(rows);
        Ok(vec![None])
    }
}

impl RowBackward {
    fn without_padding(&self, e: &mut Engine, part: RowGrad) -> Result<RowGrad> {
        let Some(padding) = self.padding else { return Ok(part) };
        let kept = e.call_row(&NE, args![&part.index, padding])?;
        let kept = e.call_row(&NONZERO, args![&kept])?;
        let kept = e.call_row(&RESHAPE, args![&kept, [kept.shape()[0]].as_slice()])?;
        let index = e.call_row(&INDEX_SELECT, args![&part.index, 0, &kept])?;
        let values = e.call_row(&INDEX_SELECT, args![&part.values, 0, &kept])?;
        Ok(RowGrad { index, values })
    }
}

/// All parts as one dense gradient, added to `onto` if that is there.
pub fn dense(e: &mut Engine, table: &Tensor, onto: Option<Tensor>) -> Result<Tensor> {
    e.without_recording(|e| {
        let mut sum = match onto {
            Some(onto) => onto,
            None => e.source(Source::Fill(Scalar::Int(0)), &table.shape(), table.dtype(), table.device())?,
        };
        for RowGrad { index, values } in table.row_grads() {
            sum = e.call_row(&INDEX_ADD, args![&sum, 0, &index, &values])?;
        }
        Ok(sum)
    })
}

/// All parts as one, which the table keeps.
pub fn joined(e: &mut Engine, table: &Tensor) -> Result<RowGrad> {
    let rows = table.row_grads();
    if let [one] = &rows[..] {
        return Ok(one.clone());
    }
    let (index, values): (Vec<Tensor>, Vec<Tensor>) = rows.into_iter().map(|part| (part.index, part.values)).unzip();
    let index = e.without_recording(|e| e.call_row(&CAT, args![index, 0]))?;
    let values = e.without_recording(|e| e.call_row(&CAT, args![values, 0]))?;
    let part = RowGrad { index, values };
    table.set_row_grads(vec![part.clone()]);
    Ok(part)
}

/// The same with each row once; waits for their number.
pub fn coalesced(e: &mut Engine, table: &Tensor) -> Result<RowGrad> {
    let RowGrad { index, values } = joined(e, table)?;
    let part = e.without_recording(|e| -> Result<RowGrad> {
        let found = e.apply(&UNIQUE, args![&index, true, true])?;
        let shape = [found[0].shape()[0], values.shape()[1]];
        let zeros = e.source(Source::Fill(Scalar::Int(0)), &shape, values.dtype(), values.device())?;
        let values = e.call_row(&INDEX_ADD, args![&zeros, 0, &found[1], &values])?;
        Ok(RowGrad { index: found[0].clone(), values })
    })?;
    table.set_row_grads(vec![part.clone()]);
    Ok(part)
}
