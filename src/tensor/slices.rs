//! Gradients of parts of tensors: of views, and of what was written into a part of a base.

use super::grad::{EdgeGrads, Walk, is_alone};
use super::{batch, history};
use crate::args;
use crate::base::diag::Result;
use crate::base::layout::Layout;
use crate::op::args::Args;
use crate::op::emit::Emit;
use crate::op::rows::pointwise::arith;
use crate::op::rows::pointwise::complex::{VIEW_AS_COMPLEX, VIEW_AS_REAL};
use crate::op::rows::shape::view;
use crate::op::tensor::{Edge, GradNode, SliceOf, Tensor};
use std::sync::Arc;

impl Walk<'_> {
    /// The gradient of a view: zeros with `g` at its position, or, if a gradient has already arrived for the tensor
    /// and nothing else holds it, that gradient with `g` added to a part. Otherwise fifty slices of a tensor would
    /// cost fifty times all of it.
    pub(super) fn window(
        &mut self,
        node: &Arc<GradNode>,
        window: fn(&Layout, &Args) -> Result<Layout>,
        g: Option<Tensor>,
    ) -> Result<EdgeGrads> {
        let (Some(g), Some(edge), Some(meta)) = (g, node.edges[0].clone(), node.inputs[0].as_ref()) else {
            return Ok(EdgeGrads::new());
        };
        let dense = Layout::contiguous(&meta.shape);
        let part = window(&dense, &node.args)?;
        if !self.mode.create_graph {
            let here = self.e.rt.slot_of(g.device());
            let old = match &edge {
                Edge::Node(to, output) => {
                    let arrived = self.arrived.get(to.sequence).filter(|arrived| arrived.from.as_slice() == [here]);
                    arrived.and_then(|arrived| arrived.grads[*output].as_ref())
                }
                Edge::Leaf(leaf) => {
                    let since = leaf.0.auto.lock().since;
                    self.due.get(since).filter(|due| due.from.as_slice() == [here]).map(|due| &due.sum)
                }
            };
            let old = old.filter(|old| {
                is_alone(old)
                    && old.dtype() == g.dtype()
                    && old.device() == g.device()
                    && old.shape().as_slice() == meta.shape.as_slice()
            });
            // A second handle of the same cell: it is only used for reading.
            if let Some(old) = old.map(|old| Tensor(old.0.clone())) {
                let place = self.view_of(&old, part)?;
                self.e.apply_inplace(&arith::ADD, args![&place, &g])?;
                return Ok(EdgeGrads::new());
            }
        }
        let whole = view::spread(self.e, &g, &dense.shape, &part)?;
        let whole = self.sum_to_operand(whole, Some(meta))?;
        Ok(EdgeGrads::from_iter([(edge, whole)]))
    }

    /// A copy of the base's gradient with the base's geometry, and the part of it; both of real numbers where only one of base
    /// and part is complex.
    pub(super) fn gather_part(&mut self, slice: &SliceOf, g: &Tensor) -> Result<(Tensor, Tensor)> {
        let (n, layout, base_layout) = history::flat(slice);
        let (is_mixed, dtype) = (is_mixed(slice), slice.base.dtype);
        let of_memory = if is_mixed { dtype.real_part() } else { dtype };
        let flat = batch::zeros_for(self.e, g, &[n], of_memory, slice.base.device)?;
        let whole = self.view_of(&flat, base_layout)?;
        let g = if is_mixed && dtype.is_complex() { self.e.call_row(&VIEW_AS_REAL, args![g])? } else { g.clone() };
        self.e.apply_inplace(&arith::COPY, args![&whole, &g])?;
        let part = self.view_of(&flat, layout)?;
        Ok((flat, part))
    }

    /// The gradient of what was written into the part.
    pub(super) fn of_part(&mut self, slice: &SliceOf, part: &Tensor) -> Result<Tensor> {
        let own = self.e.call_row(&view::CLONE, args![part])?;
        match is_mixed(slice) && slice.is_complex {
            true => self.e.call_row(&VIEW_AS_COMPLEX, args![&own]),
            false => Ok(own),
        }
    }

    /// A gradient of the part as it lies in the flat buffer.
    pub(super) fn as_in_base(&mut self, slice: &SliceOf, g: Tensor) -> Result<Tensor> {
        match is_mixed(slice) && slice.is_complex {
            true => self.e.call_row(&VIEW_AS_REAL, args![&g]),
            false => Ok(g),
        }
    }

    /// The gradient of the base, from the flat buffer.
    pub(super) fn of_base(&mut self, slice: &SliceOf, flat: &Tensor) -> Result<Tensor> {
        let (_, _, base_layout) = history::flat(slice);
        let whole = self.view_of(flat, base_layout)?;
        match is_mixed(slice) && slice.base.dtype.is_complex() {
            true => self.e.call_row(&VIEW_AS_COMPLEX, args![&whole]),
            false => Ok(whole),
        }
    }

    pub(super) fn view_of(&mut self, flat: &Tensor, layout: Layout) -> Result<Tensor> {
        let sizes: Vec<i64> = layout.shape.iter().map(|&n| n as i64).collect();
        let strides: Vec<i64> = layout.strides.iter().map(|&n| n as i64).collect();
        self.e.call_row(&view::AS_STRIDED, args![flat, sizes.as_slice(), strides.as_slice(), layout.offset])
    }
}

/// Whether only one of a base and its part is complex.
fn is_mixed(slice: &SliceOf) -> bool {
    slice.is_complex != slice.base.dtype.is_complex()
}
