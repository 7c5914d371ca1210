//! Code of the script in backward (hooks, functions with a backward of their own) for calls inside of `vmap`. The graph is that
//! of all samples, and the code is written for one: the levels of the call become active again while it runs.

use super::{hidden_at, levels, levels_of, samples, shown, spread};
use crate::base::diag::Result;
use crate::op::emit::Emit;
use crate::op::tensor::{GradCall, GradStep, Levels, Meta, Tensor};
use crate::sched::runtime::Runtime;
use crate::sched::samples::Level;
use crate::tensor::engine::Engine;
use crate::tensor::own_functions;
use smallvec::SmallVec;
use std::sync::Arc;

/// Levels that are active at least until this is dropped.
pub struct Entered {
    rt: Arc<Runtime>,
    /// Those that had ended.
    again: SmallVec<[u64; 2]>,
}

impl Entered {
    pub fn again(rt: &Arc<Runtime>, levels: &[Level]) -> Entered {
        let again = levels.iter().filter(|level| rt.samples.enter_again(**level)).map(|level| level.number).collect();
        Entered { rt: rt.clone(), again }
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        self.again.iter().for_each(|&number| self.rt.samples.leave_again(number));
    }
}

/// What a call of a function with a backward of its own had inside of `vmap`.
pub struct Around {
    levels: Levels,
    active: Vec<Level>,
    /// The levels of each argument, and what a sample sees of it.
    inputs: Vec<(Levels, Option<Meta>)>,
    /// What a sample sees of the results.
    outputs: Vec<Meta>,
}

impl Around {
    /// None where nothing of the call has samples.
    pub fn of(
        e: &mut Engine,
        inputs: &[Option<Tensor>],
        saved: &[Option<Tensor>],
        outputs: &[&mut Tensor],
    ) -> Result<Option<Around>> {
        if !e.rt.samples.were_used() {
            return Ok(None);
        }
        let given = inputs.iter().chain(saved).flatten();
        let all = levels_of(e, given.chain(outputs.iter().map(|output| &**output)))?;
        if all.is_empty() {
            return Ok(None);
        }
        let seen = |x: &Option<Tensor>| x.as_ref().map_or(Levels::new(), levels);
        Ok(Some(Around {
            active: all.iter().filter_map(|&level| e.rt.samples.level(level)).collect(),
            inputs: inputs.iter().map(|x| (seen(x), x.as_ref().map(Meta::of))).collect(),
            outputs: outputs.iter().map(|output| Meta::of(output)).collect(),
            levels: all,
        }))
    }

    /// A result in memory of its own for each sample: each has a gradient of its own.
    pub fn lifted(&self, e: &mut Engine, output: &Tensor) -> Result<Tensor> {
        e.without_recording(|e| spread(e, output, &self.levels))
    }

    /// The backward of all samples, from that of one; `saved`: the levels of the tensors that it reads.
    pub fn all_samples(self, e: &Engine, saved: Vec<Levels>, backward: Box<dyn GradCall>) -> Box<dyn GradCall> {
        Box::new(OfSamples { rt: e.rt.clone(), around: self, saved, backward })
    }
}

struct OfSamples {
    rt: Arc<Runtime>,
    around: Around,
    saved: Vec<Levels>,
    backward: Box<dyn GradCall>,
}

impl GradCall for OfSamples {
    fn call(&self, step: &GradStep) -> Result<Vec<Option<Tensor>>> {
        let around = &self.around;
        let _entered = Entered::again(&self.rt, &around.active);
        let mut e = Engine::new(self.rt.clone(), step.origin);
        let (mut grads, mut saved) = (Vec::new(), Vec::new());
        for g in step.grads {
            grads.push(g.as_ref().map(|g| hidden_at(&mut e, g, &around.levels)).transpose()?);
        }
        for (x, own) in step.saved.iter().zip(&self.saved) {
            saved.push(x.as_ref().map(|x| hidden_at(&mut e, x, own)).transpose()?);
        }
        let inputs: Vec<Option<Meta>> = around.inputs.iter().map(|(_, meta)| meta.clone()).collect();
        // Gradients that a table keeps by rows have no samples: they are added up here.
        let (outputs, accumulates) = (&around.outputs[..], false);
        let one = GradStep { grads: &grads, saved: &saved, inputs: &inputs, outputs, accumulates, ..*step };
        let mut found = self.backward.call(&one)?;
        for (slot, (g, (own, meta))) in found.iter_mut().zip(&around.inputs).enumerate() {
            if let (Some(one), Some(meta)) = (&*g, meta) {
                own_functions::check(slot, one, meta)?;
                *g = Some(self.summed(&mut e, one, own, meta)?);
            }
        }
        Ok(found)
    }

    fn is_over(&self) -> bool {
        self.backward.is_over()
    }
}

impl OfSamples {
    /// A gradient with the dims of an argument's levels in sight, summed over the levels that share the argument.
    fn summed(&self, e: &mut Engine, g: &Tensor, own: &Levels, meta: &Meta) -> Result<Tensor> {
        let g = (e as &mut dyn Emit).sum_to(g, &meta.shape)?;
        let mut order: Levels = self.around.levels.iter().copied().filter(|level| !own.contains(level)).collect();
        order.extend_from_slice(own);
        let all = shown(e, &g, &order)?;
        let sizes: Vec<usize> = own.iter().map(|&level| samples(e, level)).chain(meta.shape.iter().copied()).collect();
        (e as &mut dyn Emit).sum_to(&all, &sizes)
    }
}

/// A hook of a tensor with samples, which is called with the gradient that each sample has.
pub fn hook_of(e: &Engine, tensor: &Tensor, hook: Arc<dyn GradCall>) -> Arc<dyn GradCall> {
    let levels = levels(tensor);
    if levels.is_empty() {
        return hook;
    }
    let active = levels.iter().filter_map(|&level| e.rt.samples.level(level)).collect();
    Arc::new(HookOfSamples { rt: e.rt.clone(), levels, active, hook })
}

struct HookOfSamples {
    rt: Arc<Runtime>,
    levels: Levels,
    active: Vec<Level>,
    hook: Arc<dyn GradCall>,
}

impl GradCall for HookOfSamples {
    fn call(&self, step: &GradStep) -> Result<Vec<Option<Tensor>>> {
        let _entered = Entered::again(&self.rt, &self.active);
        let mut e = Engine::new(self.rt.clone(), step.origin);
        let Some(Some(g)) = step.grads.first() else { return self.hook.call(step) };
        let given = [Some(hidden_at(&mut e, g, &self.levels)?)];
        let mut found = self.hook.call(&GradStep { grads: &given, ..*step })?;
        for g in found.iter_mut().flatten() {
            *g = shown(&mut e, g, &self.levels)?;
        }
        Ok(found)
    }

    fn is_over(&self) -> bool {
        self.hook.is_over()
    }
}
