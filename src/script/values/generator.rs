//! `generator()`: a seed and a place of its own in the numbers that follow from it.

use crate::base::device_id::DeviceId;
use crate::base::rng::Generator;
use crate::sched::runtime::Runtime;
use parking_lot::Mutex;
use std::sync::Arc;

/// The seed of a new generator, as in PyTorch.
const FIRST_SEED: u64 = 67_280_421_310_721;

/// A generator; copies share its place. It draws for tensors of every device: the numbers are the same on all.
#[derive(Clone)]
pub struct GeneratorValue(Arc<Inside>);

struct Inside {
    device: DeviceId,
    state: Mutex<Generator>,
}

impl GeneratorValue {
    pub fn new(device: DeviceId) -> GeneratorValue {
        GeneratorValue::at(device, Generator::new(FIRST_SEED))
    }

    pub fn at(device: DeviceId, state: Generator) -> GeneratorValue {
        GeneratorValue(Arc::new(Inside { device, state: Mutex::new(state) }))
    }

    pub fn device(&self) -> DeviceId {
        self.0.device
    }

    pub fn state(&self) -> Generator {
        *self.0.state.lock()
    }

    pub fn set(&self, state: Generator) {
        *self.0.state.lock() = state;
    }

    pub fn text(&self) -> String {
        format!("generator({}, seed {})", self.device(), self.state().seed as i64)
    }
}

/// While it lives, the session draws from a generator of its own; afterwards from its former one, where that stands.
pub struct Drawing<'a> {
    rt: &'a Runtime,
    own: GeneratorValue,
    former: Generator,
}

impl<'a> Drawing<'a> {
    pub fn from(rt: &'a Runtime, own: GeneratorValue) -> Drawing<'a> {
        let former = rt.generator();
        rt.set_generator(own.state());
        Drawing { rt, own, former }
    }
}

impl Drop for Drawing<'_> {
    fn drop(&mut self) {
        self.own.set(self.rt.generator());
        self.rt.set_generator(self.former);
    }
}
