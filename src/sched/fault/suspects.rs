//! Which faults of work in flight would reach which parts of which buffers: the future poison. Maintained only once a
//! fault was found, or a non-blocking copy goes from one device to another; until then an unreported fault of the
//! same device answers the question.

use super::ledger::Entry;
use super::poison;
use crate::base::layout::Layout;
use crate::device::race::Region;
use crate::op::tensor::{Buffer, View};
use crate::sched::order::cause::{Cause, Causes, Own};
use crate::sched::window::each;
use crate::sched::window::node::{Input, Node};
use smallvec::SmallVec;
use std::collections::HashMap;
use std::sync::{Arc, Weak};

/// Bound: causes that a result takes over from its operands one by one; more are merged.
const FEW: usize = 4;

struct Part {
    layout: Layout,
    elem_bytes: usize,
    cause: Arc<Cause>,
}

/// A buffer's suspected parts, as long as there is the buffer.
struct Parts {
    of: Weak<Buffer>,
    list: Vec<Part>,
}

/// By buffer: its suspected parts.
#[derive(Default)]
pub struct Suspects {
    on: bool,
    parts: HashMap<u64, Parts>,
    /// Number of buffers at which entries are cleaned up.
    look_at: usize,
}

impl Suspects {
    pub fn is_on(&self) -> bool {
        self.on
    }

    /// Starts to follow work, including what is in flight.
    pub fn turn_on<'a>(&mut self, under_way: impl Iterator<Item = &'a mut Entry>) {
        if !self.on {
            self.on = true;
            under_way.for_each(|entry| self.enter(entry));
        }
    }

    /// The causes that may reach any of these views.
    pub fn of_all(&self, views: &dyn Fn() -> Vec<Arc<View>>) -> Vec<Arc<Cause>> {
        let mut found = Causes::new();
        if !self.parts.is_empty() {
            views().iter().for_each(|view| self.collect(view, &mut found));
        }
        found.into_vec()
    }

    fn collect(&self, view: &View, found: &mut Causes) {
        let Some(parts) = self.parts.get(&view.buffer.id) else { return };
        let own = Region::of(&view.layout, view.dtype.size_bytes());
        for part in parts.list.iter().filter(|part| !part.cause.is_clean()) {
            let known = found.iter().any(|known| Arc::ptr_eq(known, &part.cause));
            if !known && Region::of(&part.layout, part.elem_bytes).overlaps(&own) {
                found.push(part.cause.clone());
            }
        }
    }

    /// The view now contains only what these causes may reach.
    pub fn write(&mut self, view: &View, causes: &[Arc<Cause>]) {
        if causes.is_empty() && !self.parts.contains_key(&view.buffer.id) {
            return;
        }
        if self.parts.len() > self.look_at {
            self.clean_up();
        }
        let new = || Parts { of: Arc::downgrade(&view.buffer), list: Vec::new() };
        let parts = &mut self.parts.entry(view.buffer.id).or_insert_with(new).list;
        let (own, elem_bytes) = (Region::of(&view.layout, view.dtype.size_bytes()), view.dtype.size_bytes());
        for old in std::mem::take(parts) {
            if !old.cause.is_clean() && !view.covers_buffer() {
                let left = poison::without(&old.layout, old.elem_bytes, &own, elem_bytes);
                parts.extend(left.into_iter().map(|layout| Part { layout, cause: old.cause.clone(), ..old }));
            }
        }
        let part = |cause: &Arc<Cause>| Part { layout: view.layout.clone(), elem_bytes, cause: cause.clone() };
        parts.extend(causes.iter().map(part));
        if parts.is_empty() {
            self.parts.remove(&view.buffer.id);
        }
    }

    /// Work was submitted.
    pub fn enter(&mut self, entry: &mut Entry) {
        let mut slots: HashMap<usize, SmallVec<[usize; 1]>> = HashMap::new();
        entry.owners.iter().enumerate().for_each(|(slot, &owner)| slots.entry(owner).or_default().push(slot));
        let nodes = std::mem::take(&mut entry.nodes);
        for (at, node) in nodes.iter().enumerate().filter(|(_, node)| node.gate.is_none()) {
            let own = match (slots.remove(&at), &entry.ran) {
                (Some(slots), _) => Own::Slots(entry.faults.clone(), slots),
                (None, Some(ran)) if crosses(node) => Own::Runs(ran.clone()),
                _ => match entry.slots.iter().find(|(_, _, owner)| *owner == at) {
                    Some((_, address, _)) => Own::Device(*address),
                    None => Own::Nothing,
                },
            };
            let known = entry.known.iter().any(|(owner, _)| *owner == at);
            let mut own = (!matches!(own, Own::Nothing)).then_some(own);
            let (members, inputs, outputs) = each::shape_of(node);
            for member in 0..members {
                let mut reached = Causes::new();
                let reads = node.inputs[member * inputs..(member + 1) * inputs].iter().filter_map(Input::view);
                reads.for_each(|view| self.collect(view, &mut reached));
                if known {
                    reached = Causes::from_iter([Cause::known_bad()]);
                } else if own.is_some() || reached.len() > FEW {
                    let cause = Cause::new(own.take().unwrap_or_default(), reached);
                    entry.causes.push((at, cause.clone()));
                    reached = Causes::from_iter([cause]);
                }
                let outputs = &node.outputs[member * outputs..(member + 1) * outputs];
                outputs.iter().for_each(|view| self.write(view, &reached));
            }
        }
        entry.nodes = nodes;
    }

    /// Forgets what turned out clean, and buffers that are gone.
    fn clean_up(&mut self) {
        self.parts.retain(|_, parts| {
            parts.list.retain(|part| !part.cause.is_clean());
            !parts.list.is_empty() && parts.of.strong_count() > 0
        });
        self.look_at = 2 * self.parts.len() + 64;
    }
}

/// Whether a node copies data from a GPU to another device or pinned memory without blocking the host.
pub fn crosses(node: &Node) -> bool {
    let Some(to) = node.outputs.first().map(|view| &view.buffer) else { return false };
    let from_gpu = |view: &Arc<View>| view.buffer.device.is_cuda() && view.buffer.device != to.device;
    (to.device.is_cuda() || to.pinned) && node.reads().any(from_gpu)
}

/// An entry has ended: its causes are known. `bad` says of a node whether its own work failed.
pub fn settle(entry: &Entry, bad: impl Fn(usize) -> bool) {
    for (at, cause) in &entry.causes {
        let bad = bad(*at) || cause.is_bad();
        cause.settle(bad);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::device_id::DeviceId;
    use crate::base::dtype::DType;
    use crate::op::tensor::Home;

    struct Nowhere;

    impl Home for Nowhere {
        fn release(&self, _: &Buffer) {}
    }

    #[test]
    fn buffers_that_are_gone_are_forgotten() {
        let view = |id: u64| {
            let buffer = Arc::new(Buffer::new(id, Arc::new(Nowhere), DeviceId::Cpu, 4, false));
            View::new(buffer, Layout::contiguous(&[1]), DType::F32)
        };
        let mut suspects = Suspects::default();
        let kept = view(0);
        suspects.write(&kept, &[Cause::known_bad()]);
        (1..1000).for_each(|id| suspects.write(&view(id), &[Cause::known_bad()]));
        assert!(suspects.parts.len() < 200, "{}", suspects.parts.len());
        let kept = Arc::new(kept);
        assert_eq!(suspects.of_all(&|| vec![kept.clone()]).len(), 1);
    }
}
