//! Calls of element-wise functions that a script wrote as text, and the gradients that such a function has of its own.

use super::engine::Engine;
use super::own_functions::{self, Call};
use crate::base::diag::{Diag, Focus, Result};
use crate::base::span::Origin;
use crate::op::elementwise::{Elementwise, Value};
use crate::op::emit::Emit;
use crate::op::tensor::{GradCall, GradStep, Tensor};
use crate::sched::runtime::Runtime;
use std::sync::Arc;

/// The name of these calls in messages and profiles.
const NAME: &str = "elementwise";

/// The results for some arguments, one for each input.
pub fn call(e: &mut Engine, function: &Arc<Elementwise>, given: &[Value]) -> Result<Vec<Value>> {
    let Some(reads) = function.saved_for_backward() else {
        return e.composed(NAME, |e| function.call(e, given));
    };
    let inputs: Vec<Option<Tensor>> = given.iter().map(|value| value.tensor().cloned()).collect();
    if !own_functions::is_recorded(e, &inputs) {
        return e.composed(NAME, |e| function.call(e, given));
    }
    let results = e.composed(NAME, |e| e.without_recording(|e| function.call(e, given)))?;
    let mut outputs: Vec<Tensor> = results.iter().filter_map(|value| value.tensor().cloned()).collect();
    let flows: Vec<bool> = outputs.iter().map(|x| x.dtype().is_float()).collect();
    let all = inputs.iter().cloned().chain(outputs.iter().cloned().map(Some));
    let saved: Vec<Option<Tensor>> = all.zip(reads).map(|(x, &read)| x.filter(|_| read)).collect();
    let rest = given.iter().map(|value| match value {
        Value::Number(number) => Some(Value::Number(*number)),
        Value::Tensor(_) => None,
    });
    let backward = Box::new(OwnGradient { rt: e.rt.clone(), function: function.clone(), numbers: rest.collect() });
    let call = Call { inputs: &inputs, saved: &saved, backward };
    let mut places: Vec<&mut Tensor> = outputs.iter_mut().collect();
    e.composed(NAME, |e| own_functions::record(e, call, &mut places, &flows))?;
    Ok(outputs.into_iter().map(Value::Tensor).collect())
}

/// The backward of one call.
struct OwnGradient {
    rt: Arc<Runtime>,
    function: Arc<Elementwise>,
    /// The arguments that are numbers.
    numbers: Vec<Option<Value>>,
}

impl GradCall for OwnGradient {
    fn call(&self, step: &GradStep) -> Result<Vec<Option<Tensor>>> {
        let mut engine = Engine::new(self.rt.clone(), step.origin);
        engine.composed(NAME, |e| self.gradients(e, step)).map_err(|diag| placed(diag, step.origin))
    }
}

impl OwnGradient {
    fn gradients(&self, e: &mut Engine, step: &GradStep) -> Result<Vec<Option<Tensor>>> {
        let e: &mut dyn Emit = e;
        let mut arrived = Vec::new();
        for (g, meta) in step.grads.iter().zip(step.outputs) {
            arrived.push(match g {
                Some(g) => g.clone(),
                None => e.zeros_like(meta)?,
            });
        }
        let mut given = Vec::new();
        for (at, number) in self.numbers.iter().enumerate() {
            given.push(match (number, &step.saved[at], &step.inputs[at]) {
                (Some(number), ..) => number.clone(),
                (None, Some(x), _) => Value::Tensor(x.clone()),
                // The text does not read it: its dtype and shape are all that matters.
                (None, None, Some(meta)) => Value::Tensor(e.zeros_like(meta)?),
                (None, None, None) => continue,
            });
        }
        self.function.gradients(e, &given, &step.saved[self.numbers.len()..], &arrived)
    }
}

#[cold]
fn placed(diag: Box<Diag>, origin: Origin) -> Box<Diag> {
    if diag.is_late {
        return diag;
    }
    let mut diag = diag;
    for label in &mut diag.labels {
        if label.origin == Origin::NONE {
            label.origin = origin;
            label.text = "in the gradient of this call".into();
            return diag;
        }
    }
    diag.label(origin, Focus::Call, "in the gradient of this call")
}
