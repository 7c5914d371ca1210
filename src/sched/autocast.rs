//! The mode of mixed precision: which kinds of devices compute in 16 bits, and casts of weights that are kept.

use crate::base::dtype::DType;
use crate::op::tensor::{Cell, Tensor};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

/// One kind of devices.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mode {
    pub enabled: bool,
    pub dtype: DType,
}

/// All that a region sets, and restores at its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Modes {
    pub cpu: Mode,
    pub cuda: Mode,
    /// Whether casts of weights are kept.
    pub keeps_casts: bool,
}

impl Modes {
    pub fn of(&mut self, is_cuda: bool) -> &mut Mode {
        if is_cuda { &mut self.cuda } else { &mut self.cpu }
    }
}

impl Default for Modes {
    fn default() -> Modes {
        let off = |dtype| Mode { enabled: false, dtype };
        Modes { cpu: off(DType::BF16), cuda: off(DType::F16), keeps_casts: true }
    }
}

/// A weight's cast.
struct Kept {
    weight: Weak<Cell>,
    version: u32,
    slot: u32,
    cast: Tensor,
}

#[derive(Default)]
struct State {
    modes: Modes,
    /// Regions around the current call, also those that switch it off.
    depth: usize,
    casts: HashMap<usize, Kept>,
}

#[derive(Default)]
pub struct Autocast {
    on: AtomicBool,
    state: Mutex<State>,
}

impl Autocast {
    /// Whether calls on any kind of devices are cast.
    #[inline(always)]
    pub fn is_on(&self) -> bool {
        self.on.load(Ordering::Relaxed)
    }

    pub fn modes(&self) -> Modes {
        self.state.lock().modes
    }

    /// Begins a region; gives what `leave` restores.
    pub fn enter(&self, change: impl FnOnce(&mut Modes)) -> Modes {
        let mut state = self.state.lock();
        let before = state.modes;
        change(&mut state.modes);
        state.depth += 1;
        self.on.store(state.modes.cpu.enabled || state.modes.cuda.enabled, Ordering::Relaxed);
        before
    }

    pub fn leave(&self, before: Modes) {
        let mut state = self.state.lock();
        state.modes = before;
        state.depth -= 1;
        self.on.store(before.cpu.enabled || before.cuda.enabled, Ordering::Relaxed);
        // Memory is given back without the lock.
        let dropped = if state.depth == 0 { std::mem::take(&mut state.casts) } else { HashMap::new() };
        drop(state);
        drop(dropped);
    }

    /// The kept cast of a weight, unless the weight was written since, another stream is current (nothing would order the
    /// cast before its use there), or the cast has no gradient and one is wanted.
    pub fn kept(&self, weight: &Tensor, dtype: DType, slot: u32, recorded: bool) -> Option<Tensor> {
        let state = self.state.lock();
        let kept = state.casts.get(&Arc::as_ptr(&weight.0).addr())?;
        let fits = kept.version == weight.version() && kept.slot == slot && kept.cast.dtype() == dtype;
        (fits && (!recorded || kept.cast.requires_grad())).then(|| kept.cast.clone())
    }

    /// Keeps a cast. The weak handle keeps another weight from getting the address.
    pub fn keep(&self, weight: &Tensor, slot: u32, cast: &Tensor) {
        let kept = Kept { weight: Arc::downgrade(&weight.0), version: weight.version(), slot, cast: cast.clone() };
        self.state.lock().casts.insert(kept.weight.as_ptr().addr(), kept);
    }

    /// Drops the casts of this region.
    pub fn clear(&self) {
        let dropped = std::mem::take(&mut self.state.lock().casts);
        drop(dropped);
    }
}
