//! From nodes to instructions.

use super::run::own;
use super::{Argument, Bytecode, DirectCall, Instruction, NONE, Opcode, Round, Side};
use crate::base::span::Site;
use crate::script::machine::intrinsics::Intrinsic;
use crate::script::machine::quick;
use crate::script::machine::tree::{
    Assign, AssignChain, Call, Chain, Code, Either, Node, Op, Operands, Root, Slot, StepKind,
};
use crate::script::machine::tree::{Binary, Body, First};
use crate::script::machine::unit::MOST_SLOTS;
use crate::script::machine::value::Value;
use rhai::Position;
use std::collections::VecDeque;
use std::ops::Range;

/// Bound: nodes of a body that becomes instructions, so that targets fit.
const MOST_NODES: usize = 6_000;

/// Bound: parts of a node that have registers each.
const MOST_PARTS: usize = 16;

/// Bound: numbers that have registers of their own.
const MOST_CONSTANTS: usize = 24;

/// Marks an operand as a constant until all registers are known.
const CONSTANT: u16 = 0x8000;

/// A target that is not known yet.
pub(super) type Label = usize;

/// Makes instructions of a body.
#[derive(Default)]
pub(super) struct Emitter {
    code: Vec<Instruction>,
    sides: Vec<Side>,
    nodes: Vec<Node>,
    assigns: Vec<Assign>,
    calls: Vec<DirectCall>,
    pub(super) rounds: Vec<Round>,
    constants: Vec<Value>,
    /// The next register on the way, and the most that were in use.
    next: u16,
    most: u16,
    /// Where labels stand, and the instructions whose `to` is one.
    labels: Vec<Option<u16>>,
    jumps: Vec<(usize, Label)>,
    /// Loops around, the innermost last.
    pub(super) open: Vec<super::flow::Open>,
    /// The variables of the blocks around.
    pub(super) blocks: Vec<Range<Slot>>,
    /// Loops inside nodes, which are made last.
    inner: VecDeque<Inner>,
}

struct Inner {
    label: Label,
    round: u32,
    node: Node,
    next: u16,
}

/// The body as instructions; as it was where it is too large, or may declare variables while it runs.
pub fn lower(mut code: Code) -> Code {
    let Body::Tree(body) = &mut code.body else { return code };
    let mut nodes = 0;
    if !is_plain(body, &mut nodes) || code.slots >= MOST_SLOTS / 4 {
        return code;
    }
    let body = std::mem::replace(body, Node::Continue);
    let bytecode = Emitter::body(body, code.slots);
    code.slots = bytecode.changing + bytecode.constants.len();
    code.body = Body::Code(Box::new(bytecode));
    code
}

fn is_plain(node: &mut Node, nodes: &mut usize) -> bool {
    *nodes += 1;
    let mut plain = *nodes < MOST_NODES && !matches!(node, Node::Evaluating(_) | Node::Rest(_));
    node.children(&mut |child| plain = plain && is_plain(child, nodes));
    plain
}

impl Emitter {
    fn body(node: Node, variables: usize) -> Bytecode {
        let mut emitter = Emitter { next: variables as u16, most: variables as u16, ..Emitter::default() };
        emitter.tail(node);
        while let Some(inner) = emitter.inner.pop_front() {
            emitter.next = inner.next;
            emitter.most = emitter.most.max(inner.next);
            emitter.place(inner.label);
            emitter.inner_loop(inner.node, inner.round);
        }
        emitter.finish(variables)
    }

    fn finish(mut self, variables: usize) -> Bytecode {
        let changing = self.most as usize;
        for (at, label) in &self.jumps {
            self.code[*at].to = self.labels[*label].unwrap_or(0);
        }
        let settle = |register: &mut u16| {
            if *register & CONSTANT != 0 {
                *register = (*register & !CONSTANT) + changing as u16;
            }
        };
        for i in &mut self.code {
            for register in [&mut i.to, &mut i.a, &mut i.b] {
                settle(register);
            }
        }
        for call in &mut self.calls {
            for argument in &mut call.arguments {
                if let Argument::Register(register) = argument {
                    settle(register);
                }
            }
        }
        for round in &mut self.rounds {
            let target = |label: u16| self.labels[label as usize].unwrap_or(0);
            (round.again, round.out) = (target(round.again), target(round.out));
        }
        for node in &mut self.nodes {
            place_loops(node, &self.labels);
        }
        for assign in &mut self.assigns {
            place_loops(&mut assign.value, &self.labels);
        }
        Bytecode {
            code: self.code.into(),
            sides: self.sides.into(),
            nodes: self.nodes.into(),
            assigns: self.assigns.into(),
            calls: self.calls.into(),
            rounds: self.rounds.into(),
            constants: self.constants.into(),
            variables,
            changing,
        }
    }

    pub(super) fn label(&mut self) -> Label {
        self.labels.push(None);
        self.labels.len() - 1
    }

    pub(super) fn place(&mut self, label: Label) {
        self.labels[label] = Some(self.code.len() as u16);
    }

    /// A side without anything.
    pub(super) fn side(&self) -> Side {
        let round = self.open.last().map_or(NONE, |open| open.round);
        Side { node: NONE, assign: NONE, round, op: Op::Other, is_truth: false, at: Position::NONE }
    }

    pub(super) fn push(&mut self, opcode: Opcode, to: u16, a: u16, b: u16, side: Side) -> usize {
        self.code.push(Instruction { opcode, to, a, b });
        self.sides.push(side);
        self.code.len() - 1
    }

    /// An instruction that may go to a label.
    pub(super) fn jump(&mut self, opcode: Opcode, label: Label, a: u16, b: u16, side: Side) {
        let at = self.push(opcode, 0, a, b, side);
        self.jumps.push((at, label));
    }

    pub(super) fn goto(&mut self, label: Label) {
        let side = self.side();
        self.jump(Opcode::Jump, label, 0, 0, side);
    }

    pub(super) fn keep(&mut self, node: Node) -> u32 {
        self.nodes.push(node);
        self.nodes.len() as u32 - 1
    }

    /// A register for what is computed on the way.
    pub(super) fn temporary(&mut self) -> u16 {
        self.next += 1;
        self.most = self.most.max(self.next);
        self.next - 1
    }

    pub(super) fn mark(&self) -> u16 {
        self.next
    }

    pub(super) fn release(&mut self, mark: u16) {
        self.next = mark;
    }

    /// A node that is evaluated as one; loops in it are instructions.
    pub(super) fn whole(&mut self, mut node: Node) -> u32 {
        node.children(&mut |child| self.take_loops(child));
        self.keep(node)
    }

    pub(super) fn take_loops(&mut self, node: &mut Node) {
        if !matches!(node, Node::While(_) | Node::For(_)) {
            node.children(&mut |child| self.take_loops(child));
            return;
        }
        let (label, round) = (self.label(), self.rounds.len() as u32);
        self.rounds.push(Round::default());
        let node = std::mem::replace(node, Node::Loop(label as u32, round));
        self.inner.push_back(Inner { label, round, node, next: self.next });
    }

    fn inner_loop(&mut self, node: Node, round: u32) {
        let result = self.temporary();
        self.looped(node, Some(result), round);
        let side = self.side();
        self.push(Opcode::Finish, 0, result, 0, side);
    }

    /// The value of a body.
    pub(super) fn tail(&mut self, node: Node) {
        let mark = self.mark();
        match node {
            Node::If(branch) => {
                let otherwise = self.label();
                self.condition(branch.condition, branch.at, false, otherwise);
                self.tail(branch.yes);
                self.place(otherwise);
                self.tail(branch.no);
            }
            Node::Block(block) if !block.imports => {
                // The frame ends with the body: there is nothing to clear.
                let mut statements = Vec::from(block.statements);
                let last = statements.pop();
                statements.into_iter().for_each(|statement| self.statement(statement));
                self.tail(last.unwrap_or(Node::Literal(Value::Unit)));
            }
            Node::Take(slot) => {
                let to = self.temporary();
                let side = self.side();
                self.push(Opcode::Take, to, slot, 0, side);
                self.push(Opcode::Return, 0, to, 0, side);
            }
            Node::Return(value) => self.returned(value),
            Node::Switch(switch) => self.switched(switch, |emitter, body| emitter.tail(body)),
            node => {
                let a = self.operand(node, true);
                let side = self.side();
                self.push(Opcode::Return, 0, a, 0, side);
            }
        }
        self.release(mark);
    }

    pub(super) fn returned(&mut self, value: Option<Box<Node>>) {
        let mark = self.mark();
        let a = self.operand(value.map_or(Node::Literal(Value::Unit), |value| *value), true);
        let side = self.side();
        self.push(Opcode::Return, 0, a, 0, side);
        self.release(mark);
    }

    /// A register that holds a node's value. `at_once`: nothing runs before it is read that may change a variable.
    pub(super) fn operand(&mut self, node: Node, at_once: bool) -> u16 {
        match node {
            Node::Local(slot) if at_once => slot,
            Node::Literal(value @ (Value::Int(_) | Value::Float(_) | Value::Bool(_) | Value::Unit)) => {
                match self.constant(&value) {
                    Some(register) => register,
                    None => self.computed(Node::Literal(value)),
                }
            }
            node => self.computed(node),
        }
    }

    fn computed(&mut self, node: Node) -> u16 {
        let to = self.temporary();
        self.into(node, to, NONE);
        to
    }

    fn constant(&mut self, value: &Value) -> Option<u16> {
        let is_same = |known: &Value| match (known, value) {
            (Value::Int(a), Value::Int(b)) => a == b,
            (Value::Float(a), Value::Float(b)) => a.to_bits() == b.to_bits(),
            (Value::Bool(a), Value::Bool(b)) => a == b,
            (Value::Unit, Value::Unit) => true,
            _ => false,
        };
        let at = match self.constants.iter().position(is_same) {
            Some(at) => at,
            None if self.constants.len() < MOST_CONSTANTS => {
                self.constants.push(value.clone());
                self.constants.len() - 1
            }
            None => return None,
        };
        Some(CONSTANT | at as u16)
    }

    /// Writes a node's value to a register, as an assignment says.
    pub(super) fn into(&mut self, node: Node, to: u16, assign: u32) {
        let mark = self.mark();
        let side = Side { assign, ..self.side() };
        match node {
            Node::Literal(Value::Int(_) | Value::Float(_) | Value::Bool(_) | Value::Unit) | Node::Local(_) => {
                let copied = match node {
                    Node::Local(slot) => Some(slot),
                    Node::Literal(ref value) => self.constant(value),
                    _ => None,
                };
                match copied {
                    Some(a) => self.push(Opcode::Copy, to, a, 0, side),
                    None => {
                        let node = self.keep(node);
                        self.push(Opcode::Literal, to, 0, 0, Side { node, ..side })
                    }
                };
            }
            Node::Literal(_) => {
                let node = self.keep(node);
                self.push(Opcode::Literal, to, 0, 0, Side { node, ..side });
            }
            Node::Take(slot) => _ = self.push(Opcode::Take, to, slot, 0, side),
            Node::Binary(binary) if binary.op != Op::Other => self.binary(*binary, to, side),
            Node::Unary(mut unary) => {
                let operand = std::mem::replace(&mut unary.operand, Node::Continue);
                let a = self.operand(operand, true);
                let opcode = if unary.is_not { Opcode::Not } else { Opcode::Negate };
                let node = self.keep(Node::Unary(unary));
                self.push(opcode, to, a, 0, Side { node, ..side });
            }
            Node::And(_) | Node::Or(_) | Node::Truth(_) => self.truth_value(node, to, assign),
            Node::If(branch) => {
                let (otherwise, end) = (self.label(), self.label());
                self.condition(branch.condition, branch.at, false, otherwise);
                self.into(branch.yes, to, assign);
                self.goto(end);
                self.place(otherwise);
                self.into(branch.no, to, assign);
                self.place(end);
            }
            Node::Block(block) if !block.imports => {
                let mut statements = Vec::from(block.statements);
                let last = statements.pop();
                let last = last.unwrap_or(Node::Literal(Value::Unit));
                self.blocks.push(block.declares.clone());
                statements.into_iter().for_each(|statement| self.statement(statement));
                // The variable that gets the value may have the register of one that ends here.
                if block.declares.contains(&to) {
                    let value = self.computed(last);
                    self.blocks.pop();
                    self.clear(block.declares);
                    self.push(Opcode::Copy, to, value, 0, side);
                } else {
                    self.into(last, to, assign);
                    self.blocks.pop();
                    self.clear(block.declares);
                }
            }
            Node::Switch(switch) => {
                // The value is read before the variable is written that may hold it.
                self.switched(switch, |emitter, body| emitter.into(body, to, assign));
            }
            Node::Call(call) => self.call(*call, None, to, side),
            Node::Mark(marked) if matches!(marked.1, Node::Call(_)) => {
                let (place, Node::Call(call)) = *marked else { unreachable!("it is a call") };
                self.call(*call, Some(place), to, side);
            }
            Node::Chain(chain) if pushed(&chain).is_none() => self.chain(chain, to, side),
            node @ (Node::Chain(_) | Node::Mark(_)) if is_push(&node) => self.pushes(node, to, side),
            Node::Either(either) if matches!(either.holder, Node::Local(_)) => self.applies(either, None, to, side),
            Node::Mark(marked) if matches!(&marked.1, Node::Either(either) if matches!(either.holder, Node::Local(_))) =>
            {
                let (place, Node::Either(either)) = *marked else { unreachable!("it is such a call") };
                self.applies(either, Some(place), to, side);
            }
            node @ (Node::Native(_) | Node::Mark(_)) if quick::is_quick(&node) => {
                let node = self.whole(node);
                self.push(Opcode::Number, to, 0, 0, Side { node, ..side });
            }
            Node::While(_) | Node::For(_) if assign == NONE => {
                let round = self.rounds.len() as u32;
                self.rounds.push(Round::default());
                let value = self.temporary();
                self.looped(node, Some(value), round);
                self.push(Opcode::Copy, to, value, 0, side);
            }
            Node::Return(_) | Node::Break(_) | Node::Continue => self.statement(node),
            Node::Let(..) | Node::Assign(_) | Node::AssignChain(_) | Node::Unpack(_) => {
                self.statement(node);
                self.into(Node::Literal(Value::Unit), to, assign);
            }
            mut node => {
                match &mut node {
                    Node::Array(items) => self.calls_first(items.iter_mut()),
                    Node::Map(map) => self.calls_first(map.entries.iter_mut().map(|entry| &mut entry.1)),
                    Node::Text(text) => self.calls_first(text.parts.iter_mut()),
                    Node::Native(native) if native.first == First::Value && !native.asks => {
                        self.calls_first(native.arguments.iter_mut());
                    }
                    _ => {}
                }
                let node = self.whole(node);
                self.push(Opcode::Evaluate, to, 0, 0, Side { node, ..side });
            }
        }
        self.release(mark);
    }

    /// `max(depth(t.l), depth(t.r))`: calls among what a node is made of are instructions of their own. So is what stands
    /// before one of them, which would be computed after it otherwise.
    fn calls_first<'n>(&mut self, parts: impl Iterator<Item = &'n mut Node>) {
        let mut parts: Vec<&mut Node> = parts.collect();
        if parts.len() > MOST_PARTS {
            return;
        }
        let calls = parts.iter_mut().rposition(|part| has_call(part)).map_or(0, |last| last + 1);
        for part in parts.into_iter().take(calls) {
            if !matches!(part, Node::Literal(_)) {
                *part = Node::Take(self.computed(std::mem::replace(part, Node::Continue)));
            }
        }
    }

    /// A statement, whose value nobody reads.
    pub(super) fn statement(&mut self, node: Node) {
        let mark = self.mark();
        match node {
            Node::Literal(_) => {}
            Node::Let(slot, value) => self.declare(slot, *value),
            Node::Assign(assign) => self.assign(*assign),
            Node::AssignChain(assign) => self.assign_chain(assign),
            Node::Block(block) if !block.imports => {
                self.blocks.push(block.declares.clone());
                Vec::from(block.statements).into_iter().for_each(|statement| self.statement(statement));
                self.blocks.pop();
                self.clear(block.declares);
            }
            Node::If(branch) => {
                let otherwise = self.label();
                self.condition(branch.condition, branch.at, false, otherwise);
                self.statement(branch.yes);
                if matches!(branch.no, Node::Literal(_)) {
                    self.place(otherwise);
                } else {
                    let end = self.label();
                    self.goto(end);
                    self.place(otherwise);
                    self.statement(branch.no);
                    self.place(end);
                }
            }
            Node::While(_) | Node::For(_) => {
                let round = self.rounds.len() as u32;
                self.rounds.push(Round::default());
                self.looped(node, None, round);
            }
            Node::Switch(switch) => self.switched(switch, |emitter, body| emitter.statement(body)),
            Node::Unpack(mut unpack) => {
                let value = std::mem::replace(&mut unpack.value, Node::Continue);
                unpack.value = match value {
                    Node::Local(slot) => Node::Local(slot),
                    value => Node::Take(self.computed(value)),
                };
                let (node, side) = (self.keep(Node::Unpack(unpack)), self.side());
                self.push(Opcode::Execute, 0, 0, 0, Side { node, ..side });
            }
            Node::Return(value) => self.returned(value),
            Node::Break(value) => self.broken(value.map(|value| *value)),
            Node::Continue => self.continued(),
            node if is_push(&node) => _ = self.computed(node),
            node if is_call(&node) || matches!(node, Node::Binary(_)) => {
                // A tensor that nobody reads is freed at once.
                let value = self.computed(node);
                self.clear(value..value + 1);
            }
            node => {
                let node = self.whole(node);
                let side = self.side();
                self.push(Opcode::Execute, 0, 0, 0, Side { node, ..side });
            }
        }
        self.release(mark);
    }

    /// The first value of a variable. Blocks in it may have had its register for a variable of their own, which ends with them.
    fn declare(&mut self, slot: Slot, mut value: Node) {
        let mut inside = 0..0;
        super::flow::declared(&mut value, &mut inside);
        if !inside.contains(&slot) {
            return self.into(value, slot, NONE);
        }
        let whole = self.computed(value);
        let side = self.side();
        self.push(Opcode::Take, slot, whole, 0, side);
    }

    /// Ends variables.
    pub(super) fn clear(&mut self, slots: Range<Slot>) {
        if !slots.is_empty() {
            let side = self.side();
            self.push(Opcode::Clear, 0, slots.start, slots.end, side);
        }
    }

    /// Operands in registers. The left one is read late where nothing on the right changes a variable.
    pub(super) fn operands(&mut self, binary: &mut Binary) -> (u16, u16) {
        let take = |node: &mut Node| std::mem::replace(node, Node::Continue);
        let (left, right) = (take(&mut binary.left), take(&mut binary.right));
        let at_once = is_calm(&right);
        let a = self.operand(left, at_once);
        (a, self.operand(right, true))
    }

    fn binary(&mut self, mut binary: Binary, to: u16, side: Side) {
        let (a, b) = self.operands(&mut binary);
        let op = binary.op;
        let node = self.keep(Node::Binary(Box::new(binary)));
        self.push(own(op), to, a, b, Side { node, op, ..side });
    }

    fn assign(&mut self, mut assign: Assign) {
        let has_own = assign.op.is_none_or(|op| op != Op::Other);
        if assign.is_constant || assign.is_lost || assign.is_part_of_itself || !has_own || assign.slot >= CONSTANT {
            let node = self.whole(Node::Assign(Box::new(assign)));
            let side = self.side();
            self.push(Opcode::Execute, 0, 0, 0, Side { node, ..side });
            return;
        }
        let value = std::mem::replace(&mut assign.value, Node::Continue);
        let (to, op) = (assign.slot, assign.op);
        let index = self.assigns.len() as u32;
        self.assigns.push(assign);
        match op {
            None => self.into(value, to, index),
            Some(op) => {
                let b = self.operand(value, true);
                let side = Side { assign: index, op, ..self.side() };
                self.push(own(op), to, to, b, side);
            }
        }
    }

    /// `xs[i] = v` of an array in a variable has an instruction of its own.
    fn assign_chain(&mut self, mut assign: Box<AssignChain>) {
        let is_plain = assign.op.is_none() && !assign.info.is_op_assignment() && assign.chain.lost.is_none();
        let Some((slot, index)) = is_plain.then(|| own_element(&mut assign.chain)).flatten() else {
            let node = self.whole(Node::AssignChain(assign));
            let side = self.side();
            self.push(Opcode::Execute, 0, 0, 0, Side { node, ..side });
            return;
        };
        let value = self.handed_on(&mut assign.value);
        let index = self.index(index, &mut assign.chain);
        let node = self.keep(Node::AssignChain(assign));
        let side = Side { node, ..self.side() };
        self.push(Opcode::StoreIndex, value, slot, index, side);
    }

    /// The register of a value that an array gets. What is computed there moves into the array, and what nobody reads
    /// afterwards; the node says so.
    fn handed_on(&mut self, node: &mut Node) -> u16 {
        match std::mem::replace(node, Node::Continue) {
            Node::Take(slot) => {
                *node = Node::Take(slot);
                slot
            }
            Node::Local(slot) => {
                *node = Node::Local(slot);
                slot
            }
            value @ Node::Literal(_) => self.operand(value, true),
            value => {
                let register = self.computed(value);
                *node = Node::Take(register);
                register
            }
        }
    }

    /// The register of an index. One that is computed there is read there by the chain, too.
    fn index(&mut self, index: Node, chain: &mut Chain) -> u16 {
        let is_computed = matches!(index, Node::Binary(_));
        let register = self.operand(index, true);
        if is_computed {
            chain.operands[0] = Node::Local(register);
        }
        register
    }

    fn chain(&mut self, mut chain: Box<Chain>, to: u16, side: Side) {
        if let Some((slot, index)) = own_element(&mut chain) {
            let index = self.index(index, &mut chain);
            let node = self.keep(Node::Chain(chain));
            self.push(Opcode::Index, to, slot, index, Side { node, ..side });
            return;
        }
        if let Some((slot, at)) = own_length(&chain) {
            let node = self.keep(Node::Chain(chain));
            self.push(Opcode::Length, to, slot, 0, Side { node, at, ..side });
            return;
        }
        let opcode = if chain.is_quick { Opcode::Element } else { Opcode::Evaluate };
        self.calls_first(chain.operands.iter_mut());
        let node = self.whole(Node::Chain(chain));
        self.push(opcode, to, 0, 0, Side { node, ..side });
    }

    /// `xs.push(x)` of a variable has an instruction of its own.
    fn pushes(&mut self, mut node: Node, to: u16, side: Side) {
        let chain = match &mut node {
            Node::Chain(chain) => chain,
            Node::Mark(mark) => match &mut mark.1 {
                Node::Chain(chain) => chain,
                _ => unreachable!("`is_push` has looked"),
            },
            _ => unreachable!("`is_push` has looked"),
        };
        let Some((slot, at)) = pushed(chain) else { unreachable!("`is_push` has looked") };
        let register = match &chain.operands[0] {
            Node::Literal(value) => {
                let value = value.clone();
                let register = self.computed(Node::Literal(value));
                chain.operands[0] = Node::Local(register);
                register
            }
            _ => self.handed_on(&mut chain.operands[0]),
        };
        let node = self.keep(node);
        self.push(Opcode::Push, to, slot, register, Side { node, at, ..side });
    }

    /// `f(x)` of what a variable holds.
    fn applies(&mut self, mut either: Box<Either>, mark: Option<Site>, to: u16, side: Side) {
        let Node::Local(holder) = either.holder else { unreachable!("the caller has looked") };
        let mut arguments = Vec::with_capacity(either.arguments.len());
        for at in 0..either.arguments.len() {
            let at_once = either.arguments[at + 1..].iter().all(is_calm);
            let node = std::mem::replace(&mut either.arguments[at], Node::Continue);
            let (register, kept) = match node {
                Node::Literal(value) => {
                    let copy = Node::Literal(value.clone());
                    (self.operand(Node::Literal(value), at_once), copy)
                }
                Node::Local(slot) if at_once => (slot, Node::Local(slot)),
                node => {
                    let register = self.computed(node);
                    (register, Node::Take(register))
                }
            };
            either.arguments[at] = kept;
            arguments.push(Argument::Register(register));
        }
        let at = either.at;
        let operands = Operands { expr: either.native.operands.expr.clone() };
        let function = either.function.clone();
        let kept = self.keep(Node::Either(either)) as u16;
        let node = self.calls.len() as u32;
        self.calls.push(DirectCall { function, arguments: arguments.into(), has_parts: false, operands, at, mark });
        self.push(Opcode::Apply, to, holder, kept, Side { node, at, ..side });
    }

    fn call(&mut self, call: Call, mark: Option<Site>, to: u16, side: Side) {
        let Call { function, arguments, first_is_variable, lendable, operands, at, .. } = call;
        let mut nodes: Vec<Option<Node>> = Vec::from(arguments).into_iter().map(Some).collect();
        let mut places = vec![Argument::Register(0); nodes.len()];
        let parts: Vec<bool> = (0..nodes.len()).map(|at| super::lent_parts::may_be_lent(&mut nodes, at)).collect();
        let late = first_is_variable as usize;
        for index in (late..nodes.len()).chain(0..late) {
            if parts[index]
                && let Some(node) = nodes[index].take()
            {
                places[index] = Argument::Part(self.keep(node));
                continue;
            }
            let is_last = (index + 1..nodes.len()).all(|later| nodes[later].as_ref().is_none_or(is_calm));
            let Some(node) = nodes[index].take() else { continue };
            let at_once = is_last || index < late;
            places[index] = match lendable.iter().find(|(argument, _)| *argument == index) {
                Some((_, slot)) if index < 64 && at_once => Argument::Lendable(*slot),
                Some((_, slot)) if index < 64 => {
                    let to = self.temporary();
                    self.push(Opcode::CopyUnlessLent, to, *slot, 0, side);
                    Argument::Early(*slot, to)
                }
                _ => Argument::Register(self.operand(node, at_once)),
            };
        }
        let node = self.calls.len() as u32;
        let (arguments, has_parts) = (places.into(), parts.contains(&true));
        self.calls.push(DirectCall { function, arguments, has_parts, operands: Operands { ..operands }, at, mark });
        self.push(Opcode::Call, to, 0, 0, Side { node, at, ..side });
    }
}

/// Whether a node is a call of a function of the same text, whose place may be known while it runs.
fn is_call(node: &Node) -> bool {
    matches!(node, Node::Call(_)) || matches!(node, Node::Mark(marked) if matches!(marked.1, Node::Call(_)))
}

/// Whether a call of a function of the same text is a part of a node.
fn has_call(node: &mut Node) -> bool {
    let mut found = is_call(node);
    node.children(&mut |child| found = found || has_call(child));
    found
}

/// Whether a node changes no variable while it is evaluated.
fn is_calm(node: &Node) -> bool {
    match node {
        Node::Literal(_) | Node::Local(_) => true,
        Node::Binary(binary) => is_calm(&binary.left) && is_calm(&binary.right),
        Node::Unary(unary) => is_calm(&unary.operand),
        Node::Chain(chain) => chain.is_quick && chain.operands.iter().all(is_calm),
        Node::Native(native) => native.numeric.is_some() && native.arguments.iter().all(is_calm),
        Node::Mark(mark) => is_calm(&mark.1),
        _ => false,
    }
}

/// The variable and the index of `xs[i]`, if the index is a number at hand or computed of such; then it is taken out.
fn own_element(chain: &mut Chain) -> Option<(Slot, Node)> {
    let (Root::Local(slot), [step]) = (&chain.root, &*chain.steps) else { return None };
    let index = match (&step.kind, &mut *chain.operands) {
        (StepKind::Index { .. }, [index]) if !step.or_unit => index,
        _ => return None,
    };
    match index {
        Node::Binary(binary) if binary.op.computes() && is_calm(index) => {
            Some((*slot, std::mem::replace(index, Node::Continue)))
        }
        Node::Local(index) => Some((*slot, Node::Local(*index))),
        Node::Literal(Value::Int(index)) => Some((*slot, Node::Literal(Value::Int(*index)))),
        _ => None,
    }
}

/// The variable of `xs.len()`, and the place of the call.
fn own_length(chain: &Chain) -> Option<(Slot, Position)> {
    let (Root::Local(slot), [step]) = (&chain.root, &*chain.steps) else { return None };
    match &step.kind {
        StepKind::Method { intrinsic: Some(Intrinsic::Len), function, is_word: false, .. }
            if !step.or_unit && function.strong_count() == 0 =>
        {
            Some((*slot, step.at))
        }
        _ => None,
    }
}

/// The variable of `xs.push(x)`, and the place of the call.
fn pushed(chain: &Chain) -> Option<(Slot, Position)> {
    let (Root::Local(slot), [step], None) = (&chain.root, &*chain.steps, chain.lost) else { return None };
    match &step.kind {
        StepKind::Method { intrinsic: Some(Intrinsic::Push), function, is_word: false, .. }
            if !step.or_unit && function.strong_count() == 0 =>
        {
            Some((*slot, step.at))
        }
        _ => None,
    }
}

fn is_push(node: &Node) -> bool {
    match node {
        Node::Chain(chain) => pushed(chain).is_some(),
        Node::Mark(mark) => matches!(&mark.1, Node::Chain(chain) if pushed(chain).is_some()),
        _ => false,
    }
}

/// Gives loops inside nodes the places of their labels.
fn place_loops(node: &mut Node, labels: &[Option<u16>]) {
    let placed = |label: &mut u32| *label = u32::from(labels[*label as usize].unwrap_or(0));
    match node {
        Node::Loop(label, _) => placed(label),
        Node::Switch(switch) => switch.targets.iter_mut().for_each(placed),
        _ => {}
    }
    node.children(&mut |child| place_loops(child, labels));
}
