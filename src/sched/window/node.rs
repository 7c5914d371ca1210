//! A node: one use of an operation, recorded and not yet run.

use super::each::EachProgram;
use crate::base::attr::Attrs;
use crate::base::dtype::{DType, Scalar};
use crate::base::span::Origin;
use crate::kernel::family::Kernel;
use crate::kernel::program::{Check, Draw, Function, ReduceKind};
use crate::op::tensor::View;
use crate::sched::order::gate::Gate;
use smallvec::SmallVec;
use std::sync::Arc;

/// An operand of a node.
#[derive(Clone, Debug)]
pub enum Input {
    View(Arc<View>),
    Scalar(Scalar),
    /// Row-major position of the element.
    Position,
    Random(Box<Drawn>),
}

/// Random values.
#[derive(Clone, Copy, Debug)]
pub struct Drawn {
    pub draw: Draw,
    pub seed: u64,
    pub offset: u64,
    /// Of `Draw::Integer`: the values are those of [low, low + range).
    pub low: i64,
    pub range: u64,
}

impl Input {
    pub fn view(&self) -> Option<&Arc<View>> {
        match self {
            Input::View(view) => Some(view),
            _ => None,
        }
    }
}

/// What a node computes.
// Nodes are created at every call: the larger variant inline is cheaper than a box.
#[allow(clippy::large_enum_variant)]
#[derive(Clone, Debug)]
pub enum Work {
    /// Element-wise over the output's shape. Without a function the single operand is converted and stored.
    Map {
        function: Option<&'static Function>,
        /// dtype each operand is cast to before the function.
        args: SmallVec<[DType; 4]>,
        /// dtype of the function's value, before it is stored.
        result: DType,
        /// Operand whose values are checked.
        check: Option<(u8, Check)>,
    },
    Reduce {
        kind: ReduceKind,
        /// Bit mask of the reduced dims.
        dims: u32,
        keepdim: bool,
        /// dtype in which the operand is combined.
        compute: DType,
    },
    Kernel {
        kernel: &'static Kernel,
        attrs: Attrs,
        seed: u64,
        offset: u64,
    },
    /// A program for each member of several lists, in place.
    Each {
        each: Arc<EachProgram>,
        /// The program's scalar table, as raw bits.
        scalars: Box<[u64]>,
        /// Every view is contiguous, or a single element used for all.
        lines: bool,
    },
    /// A copy of bytes between devices. Never in a window.
    Transfer,
}

/// One recorded operation.
#[derive(Clone, Debug)]
pub struct Node {
    /// The operation as the script wrote it.
    pub name: &'static str,
    pub origin: Origin,
    /// The gate of a part of an optimizer's step, or of an update of running statistics.
    pub gate: Option<Arc<Gate>>,
    /// The first node after the end of a round: it is not fused with earlier ones.
    pub begins_round: bool,
    pub work: Work,
    pub inputs: SmallVec<[Input; 3]>,
    pub outputs: SmallVec<[Arc<View>; 1]>,
    /// Where the operands were created, for operations that can fail on their values; empty otherwise.
    pub made: SmallVec<[Origin; 3]>,
    /// Queue number; from 1.
    pub number: u64,
    /// The calls that led to it (`CallChains`).
    pub call_chain: u32,
}

impl Default for Node {
    /// A node that cannot run: for the fields that `record` fills in.
    fn default() -> Node {
        Node {
            name: "",
            origin: Origin::NONE,
            gate: None,
            begins_round: false,
            work: Work::Transfer,
            inputs: SmallVec::new(),
            outputs: SmallVec::new(),
            made: SmallVec::new(),
            number: 0,
            call_chain: 0,
        }
    }
}

impl Node {
    pub fn reads(&self) -> impl Iterator<Item = &Arc<View>> {
        self.inputs.iter().filter_map(Input::view)
    }

    /// Shape over which an element-wise node or a reduction iterates.
    pub fn iteration(&self) -> &[usize] {
        match (&self.work, self.inputs.first()) {
            (Work::Reduce { .. }, Some(Input::View(view))) => view.shape(),
            _ => self.outputs[0].shape(),
        }
    }

    /// Whether its gate holds it, when everything before it has run.
    pub fn is_held(&self) -> bool {
        self.gate.as_ref().is_some_and(|gate| gate.is_held())
    }

    pub fn is_kernel(&self) -> bool {
        matches!(self.work, Work::Kernel { .. } | Work::Each { .. })
    }
}
