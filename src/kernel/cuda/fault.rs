//! The fault slot of a node, in memory that host and device share: kernels record the fault of the lowest position there
//! (`ts_fault` in `kernels/common/base.cuh`) and continue without reading or writing out of bounds.

use crate::kernel::abi::{Fault, FaultKind};

/// Invariant: the layout is that of `TsFaultSlot` in the CUDA text.
#[repr(C, align(64))]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FaultSlot {
    /// `u64::MAX` if there is none.
    pub position: u64,
    pub value: i64,
    pub bound: i64,
    pub kind: u32,
    pub dim: u32,
    /// Spin lock for writing the other fields.
    pub lock: u32,
    pub unused: u32,
    /// Address of a word that has the lowest node number for which a fault is recorded; 0 if there is no such word.
    pub first: u64,
    /// The number of this node.
    pub number: u64,
}

impl FaultSlot {
    /// The content of a slot before a launch.
    pub const EMPTY: FaultSlot =
        FaultSlot { position: u64::MAX, value: 0, bound: 0, kind: 0, dim: 0, lock: 0, unused: 0, first: 0, number: 0 };

    /// The fault, once the launches that use the slot have finished.
    pub fn read(&self) -> Option<Fault> {
        if self.position == u64::MAX {
            return None;
        }
        let kind = match self.kind {
            1 => FaultKind::Index { dim: self.dim as u8 },
            2 => FaultKind::Label,
            3 => FaultKind::Probability,
            4 => FaultKind::DivisionByZero,
            5 => FaultKind::NotPositiveDefinite,
            6 => FaultKind::Singular,
            7 => FaultKind::NoConvergence,
            8 => FaultKind::Deviation,
            9 => FaultKind::Range,
            _ => FaultKind::NotFinite,
        };
        Some(Fault { kind, position: self.position, value: self.value, bound: self.bound })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_slot_has_no_fault() {
        assert_eq!(FaultSlot::EMPTY.read(), None);
        let slot = FaultSlot { position: 3, value: 11, bound: 10, kind: 1, dim: 2, ..FaultSlot::EMPTY };
        let fault = Fault { kind: FaultKind::Index { dim: 2 }, position: 3, value: 11, bound: 10 };
        assert_eq!(slot.read(), Some(fault));
        assert_eq!(size_of::<FaultSlot>(), 64);
    }
}
