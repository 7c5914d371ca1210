//! `checkpoint(f, x)`: what the nodes of a part of the graph save is computed again in backward, as PyTorch's
//! `torch.utils.checkpoint` with `use_reentrant=False`. The part runs a second time when backward first needs something of
//! it; its nodes, recorded in the same order, give the first run's what these had saved.

use crate::base::code;
use crate::base::diag::{Diag, Result};
use crate::op::tensor::{Keeper, SavedList};
use crate::sched::runtime::Runtime;
use parking_lot::Mutex;
use std::sync::{Arc, OnceLock};

/// Runs the part once more, recording.
pub type Compute = Box<dyn Fn() -> Result<()> + Send + Sync>;

/// One call of a part.
#[derive(Default)]
pub struct Part {
    state: Mutex<State>,
    compute: OnceLock<Compute>,
}

#[derive(Default)]
struct State {
    /// Nodes of the first run.
    count: usize,
    is_again: bool,
    /// Of the second run: what each node saves, until backward has it.
    lists: Vec<Option<SavedList>>,
}

/// Nodes that are recorded give what they save to a keeper, until this is dropped.
pub struct Keeping(Arc<Runtime>, Option<Arc<dyn Keeper>>);

impl Keeping {
    pub fn enter(rt: &Arc<Runtime>, keeper: Option<Arc<dyn Keeper>>) -> Keeping {
        Keeping(rt.clone(), rt.set_keeper(keeper))
    }
}

impl Drop for Keeping {
    fn drop(&mut self) {
        self.0.set_keeper(self.1.take());
    }
}

impl Part {
    /// The first run has ended; `compute` repeats it with this part as the keeper.
    pub fn ended(&self, compute: Compute) {
        self.state.lock().is_again = true;
        let _ = self.compute.set(compute);
    }

    fn again(&self) -> Result<()> {
        let Some(compute) = self.compute.get() else {
            return Err(Diag::error(
                code::GRAD_OWN,
                "backward goes through a `checkpoint` whose function is still running",
            ));
        };
        self.state.lock().lists.clear();
        compute()?;
        let state = self.state.lock();
        let (first, second) = (state.count, state.lists.len());
        if first == second {
            return Ok(());
        }
        let text = format!(
            "the function of `checkpoint` recorded {first} operations the first time and {second} when backward ran it again"
        );
        Err(Diag::error(code::GRAD_OWN, text)
            .help("it must do the same each time: values that change between belong outside"))
    }
}

impl Keeper for Part {
    fn put(&self, saved: &SavedList) -> Option<usize> {
        let mut state = self.state.lock();
        if state.is_again {
            state.lists.push(Some(saved.clone()));
            return None;
        }
        state.count += 1;
        Some(state.count - 1)
    }

    fn take(&self, number: usize) -> Result<SavedList> {
        let taken = |part: &Part| part.state.lock().lists.get_mut(number).and_then(Option::take);
        if let Some(list) = taken(self) {
            return Ok(list);
        }
        self.again()?;
        taken(self).ok_or_else(|| Diag::error(code::INTERNAL, "a checkpoint gave nothing"))
    }
}
