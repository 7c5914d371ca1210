//! What optimizers do with gradients that tables keep by rows (`tensor/row_grads.rs`). One that says so in `fixed.sparse`
//! steps by their sum, a dense gradient that is there for the step alone; the others refuse them, as PyTorch's do.

use crate::base::code;
use crate::base::diag::{Diag, Result};
use crate::fail;
use crate::op::tensor::Tensor;
use crate::script::bind::rows::{Natives, raw};
use crate::script::host::Host;
use crate::script::values::raise::Native;
use crate::script::values::types::Cell;
use crate::tensor::engine::Engine;
use crate::tensor::row_grads;
use rhai::{Array, Dynamic, ImmutableString, Map};
use std::sync::Arc;

pub fn register(module: &mut Natives, host: &Arc<Host>) {
    let host = host.clone();
    // `_refuse_sparse(name, params)`: for optimizers whose step no row says.
    raw(module, "_refuse_sparse", 2, move |context, values| -> Native {
        let context = context.expect("registered with a context");
        let params = values[1].read_lock::<Array>();
        let found = params.is_some_and(|params| {
            params.iter().any(|p| p.read_lock::<Tensor>().is_some_and(|p| !p.row_grads().is_empty()))
        });
        let name = values[0].clone().into_string().unwrap_or_default();
        if found { Err(host.raise(&context, refused(&name), "")) } else { Ok(Dynamic::UNIT) }
    });
}

#[cold]
fn refused(name: &str) -> Box<Diag> {
    Diag::error(code::VALUE, format!("{name}: sparse gradients are not taken"))
        .help("`optim::sparse_adam`, `sgd` and `adagrad` take them; `embedding` without `sparse` gives dense ones")
}

/// Dense gradients that are there until it is dropped.
#[derive(Default)]
pub struct ForTheStep(Vec<Tensor>);

impl Drop for ForTheStep {
    fn drop(&mut self) {
        self.0.iter().for_each(|p| p.0.auto.lock().grad = None);
    }
}

/// The sums of gradients by rows, for an optimizer that takes them.
pub fn for_the_step(e: &mut Engine, optimizer: &Map, groups: &Dynamic) -> Result<ForTheStep> {
    let mut filled = ForTheStep::default();
    let groups = groups.read_lock::<Array>();
    for group in groups.iter().flat_map(|groups| groups.iter()) {
        let Some(group) = group.read_lock::<Map>() else { continue };
        let params = group.get("params").and_then(|params| params.read_lock::<Array>());
        for p in params.iter().flat_map(|params| params.iter()).filter_map(|p| p.read_lock::<Tensor>()) {
            if p.row_grads().is_empty() {
                continue;
            }
            accepts(optimizer, &group)?;
            let old = p.0.auto.lock().grad.clone();
            let is_mixed = old.is_some();
            let sum = row_grads::dense(e, &p, old)?;
            p.0.auto.lock().grad = Some(sum);
            if is_mixed {
                p.set_row_grads(Vec::new());
            } else {
                filled.0.push(p.clone());
            }
        }
    }
    Ok(filled)
}

fn accepts(optimizer: &Map, group: &Map) -> Result<()> {
    let name = optimizer.get("name").and_then(|name| name.read_lock::<ImmutableString>());
    let name = name.as_ref().map_or("", |name| name.as_str());
    let fixed = optimizer.get("fixed").and_then(|fixed| fixed.read_lock::<Map>());
    if !fixed.is_some_and(|fixed| fixed.contains_key("sparse")) {
        return Err(refused(name));
    }
    let settings = group.get("settings").and_then(|settings| settings.read_lock::<Cell>().map(|cell| cell.get()));
    let decay = settings.and_then(|settings| settings.read_lock::<Map>()?.get("weight_decay")?.as_float().ok());
    if decay.is_some_and(|decay| decay != 0.0) {
        fail!(VALUE, "{name}: `weight_decay` does not go with sparse gradients");
    }
    Ok(())
}
