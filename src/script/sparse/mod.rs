//! Sparse tensors: values of the script made of ordinary tensors, the places and the values
//! ([0136](../../../docs/decisions/0136-sparse-tensors.md)). The floors below know nothing of them.

mod form;
mod making;
mod methods;
mod places;
mod product;
pub mod rows;
mod softmax;

use crate::base::diag::Result;
use crate::op::emit::Emit;
use crate::op::tensor::{RowGrad, Tensor};
use crate::script::bind::properties;
use crate::script::bind::rows::Natives;
use crate::script::host::Host;
use crate::script::values::sparse::Sparse;
use crate::tensor::engine::Engine;
use rhai::Dynamic;
use std::sync::Arc;

pub fn register(natives: &mut Natives, host: &Arc<Host>) {
    making::register(natives, host);
    methods::register(natives, host);
}

/// The functions of the module `sparse`, which needs no import.
pub fn module(host: &Arc<Host>) -> Natives {
    let mut natives = Natives::default();
    methods::module_functions(&mut natives, host);
    natives
}

/// `w.grad = g` of a sparse gradient: a table keeps its rows, any other tensor gets a dense one.
pub fn set_grad_of_dense(e: &mut Engine, x: &Tensor, g: &Sparse) -> Result<()> {
    let fits = x.shape().as_slice() == g.size && x.dtype() == g.values.dtype() && x.device() == g.values.device();
    if !fits || x.ndim() != 2 || g.sparse_dims() != 1 {
        let dense = form::dense(e, g)?;
        return properties::set_grad(x, &Dynamic::from(dense));
    }
    let index = form::places(e, g, 0)?;
    x.drop_grad();
    x.set_row_grads(vec![RowGrad { index, values: e.detach(&g.values) }]);
    Ok(())
}
