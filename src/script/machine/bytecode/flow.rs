//! Conditions and loops as instructions.

use super::emit::{Emitter, Label};
use super::{NONE, Opcode, Round, Side};
use crate::script::machine::tree::{Binary, For, Node, Op, Slot, Switch, While};
use crate::script::machine::value::Value;
use rhai::Position;
use std::ops::Range;

/// A loop around what is being made.
pub(super) struct Open {
    pub round: u32,
    again: Label,
    out: Label,
    result: Option<u16>,
    kind: Kind,
    /// How many blocks were around it.
    blocks: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    While,
    /// Over numbers; its state begins in this register.
    Count(u16),
    /// Round by round by the machine, which puts the loop's value into this register.
    Each(u16),
}

impl Emitter {
    /// Goes to a label if a condition comes to `sense`.
    pub(super) fn condition(&mut self, node: Node, at: Position, sense: bool, label: Label) {
        self.asked(node, at, false, sense, label);
    }

    fn asked(&mut self, node: Node, at: Position, is_truth: bool, sense: bool, label: Label) {
        match node {
            Node::Truth(inner) => self.asked(inner.0, inner.1, true, sense, label),
            Node::Literal(Value::Bool(truth)) => {
                if truth == sense {
                    self.goto(label);
                }
            }
            Node::And(parts) => self.parts(Vec::from(parts), true, sense, label),
            Node::Or(parts) => self.parts(Vec::from(parts), false, sense, label),
            Node::Binary(binary) if super::away::is_comparison(binary.op) => {
                self.compared(*binary, at, is_truth, sense, label);
            }
            node => {
                let mark = self.mark();
                let a = self.operand(node, true);
                let side = Side { at, is_truth, ..self.side() };
                self.jump(if sense { Opcode::When } else { Opcode::Unless }, label, a, 0, side);
                self.release(mark);
            }
        }
    }

    /// `all` of them, or any. A part that decides ends it.
    fn parts(&mut self, parts: Vec<(Node, Position)>, all: bool, sense: bool, label: Label) {
        if sense != all {
            for (part, at) in parts {
                self.condition(part, at, sense, label);
            }
            return;
        }
        let end = self.label();
        for (part, at) in parts {
            self.condition(part, at, !sense, end);
        }
        self.goto(label);
        self.place(end);
    }

    fn compared(&mut self, mut binary: Binary, at: Position, is_truth: bool, sense: bool, label: Label) {
        let mark = self.mark();
        let is_text = matches!(&binary.right, Node::Literal(Value::Other(text)) if text.is_string() || text.is_char());
        let (a, b) = match binary.op {
            Op::Equal | Op::NotEqual if is_text => {
                let left = std::mem::replace(&mut binary.left, Node::Continue);
                (self.operand(left, true), 0)
            }
            _ => self.operands(&mut binary),
        };
        let opcode = match binary.op {
            Op::Equal | Op::NotEqual if is_text => Opcode::UnlessText,
            Op::Less => Opcode::UnlessLess,
            Op::LessEqual => Opcode::UnlessLessEqual,
            Op::Greater => Opcode::UnlessGreater,
            Op::GreaterEqual => Opcode::UnlessGreaterEqual,
            Op::Equal => Opcode::UnlessEqual,
            _ => Opcode::UnlessNotEqual,
        };
        let op = binary.op;
        let node = self.keep(Node::Binary(Box::new(binary)));
        let side = Side { node, op, at, is_truth, ..self.side() };
        if sense {
            // The opposite of a comparison is not the opposite operator: NaN.
            let end = self.label();
            self.jump(opcode, end, a, b, side);
            self.goto(label);
            self.place(end);
        } else {
            self.jump(opcode, label, a, b, side);
        }
        self.release(mark);
    }

    /// A `switch` whose arms are made by `arm`, also the one of nothing where no case fits.
    pub(super) fn switched(&mut self, mut switch: Box<Switch>, mut arm: impl FnMut(&mut Emitter, Node)) {
        let mark = self.mark();
        let value = std::mem::replace(&mut switch.value, Node::Continue);
        let a = self.operand(value, true);
        let (mut bodies, otherwise, end) = (Vec::new(), self.label(), self.label());
        for arm in &mut switch.arms {
            bodies.push((self.label(), std::mem::replace(&mut arm.body, Node::Literal(Value::Unit))));
            if let Some((guard, _)) = &mut arm.guard {
                self.take_loops(guard);
            }
        }
        switch.targets = bodies.iter().map(|(label, _)| *label as u32).collect();
        let node = self.keep(Node::Switch(switch));
        let side = Side { node, ..self.side() };
        self.jump(Opcode::Switch, otherwise, a, 0, side);
        self.release(mark);
        for (label, body) in bodies {
            self.place(label);
            arm(self, body);
            self.goto(end);
        }
        self.place(otherwise);
        arm(self, Node::Literal(Value::Unit));
        self.place(end);
    }

    /// The truth of a condition as a value.
    pub(super) fn truth_value(&mut self, node: Node, to: u16, assign: u32) {
        let (otherwise, end) = (self.label(), self.label());
        self.condition(node, Position::NONE, false, otherwise);
        self.into(Node::Literal(Value::Bool(true)), to, assign);
        self.goto(end);
        self.place(otherwise);
        self.into(Node::Literal(Value::Bool(false)), to, assign);
        self.place(end);
    }

    /// A loop whose value goes to a register, if anybody reads it.
    pub(super) fn looped(&mut self, node: Node, result: Option<u16>, round: u32) {
        match node {
            Node::While(repeat) => self.repeat(*repeat, result, round),
            Node::For(each) => self.each(each, result, round),
            _ => {}
        }
    }

    fn repeat(&mut self, repeat: While, result: Option<u16>, round: u32) {
        let (top, again, ended, out) = (self.label(), self.label(), self.label(), self.label());
        let side = Side { round, ..self.side() };
        self.push(Opcode::Step, 0, 0, 0, side);
        self.place(top);
        // `break` and `continue` in a condition belong to the loop around.
        let (early, late) = if repeat.is_do { (None, repeat.condition) } else { (repeat.condition, None) };
        if let Some((node, at)) = early {
            self.condition(node, at, repeat.ends_at, ended);
        }
        self.open.push(Open { round, again, out, result, kind: Kind::While, blocks: self.blocks.len() });
        let (own, clears) = self.inside(repeat.body);
        self.open.pop();
        if let Some((node, at)) = late {
            self.clear(own.clone());
            self.condition(node, at, repeat.ends_at, ended);
        }
        self.place(again);
        self.clear(own);
        self.jump(Opcode::Again, top, 0, 0, side);
        self.place(ended);
        if let Some(result) = result {
            self.into(Node::Literal(Value::Unit), result, NONE);
        }
        self.place(out);
        self.clear(clears.clone());
        let (again, out) = (again as u16, out as u16);
        let (weight, depth, at) = (repeat.weight, repeat.depth, repeat.at);
        self.rounds[round as usize] = Round { weight, depth, at, again, out, clears, result, ..Round::default() };
    }

    /// The body of a loop: the variables that are cleared at the end of a round, and all that are declared in it.
    fn inside(&mut self, mut body: Node) -> (Range<Slot>, Range<Slot>) {
        let mut all = 0..0;
        declared(&mut body, &mut all);
        match body {
            Node::Block(block) if !block.imports => {
                Vec::from(block.statements).into_iter().for_each(|statement| self.statement(statement));
                (block.declares, all)
            }
            body => {
                self.statement(body);
                (0..0, all)
            }
        }
    }

    fn each(&mut self, mut each: Box<For>, result: Option<u16>, round: u32) {
        let (mark, side) = (self.mark(), Side { round, ..self.side() });
        let (start, again, out) = (self.label(), self.label(), self.label());
        let counts = matches!(&each.values, Node::Binary(range) if matches!(&*range.native.name, ".." | "..="))
            && !gives_value(&mut each.body);
        let body = std::mem::replace(&mut each.body, Node::Literal(Value::Unit));
        let (variable, counter) = (each.variable, each.counter);
        let mut known =
            Round { weight: each.weight, depth: each.depth, at: each.at, variable, counter, ..Round::default() };
        let kind = if counts { self.counted(each, &mut known, side, out) } else { self.gone_over(each, side, out) };
        self.place(start);
        self.open.push(Open { round, again, out, result: None, kind, blocks: self.blocks.len() });
        let (own, all) = self.inside(body);
        self.open.pop();
        self.place(again);
        self.clear(own);
        match kind {
            Kind::Count(state) => self.jump(Opcode::Next, start, state, variable, side),
            _ => _ = self.push(Opcode::EndRound, 0, 0, 0, side),
        }
        self.place(out);
        let first = counter.map_or(variable, |counter| counter.min(variable));
        self.clear(first..all.end.max(variable + 1));
        if let Some(result) = result {
            match kind {
                Kind::Each(value) => _ = self.push(Opcode::Copy, result, value, 0, side),
                _ => self.into(Node::Literal(Value::Unit), result, NONE),
            }
        }
        (known.again, known.out) = (again as u16, out as u16);
        (known.clears, known.is_each) = (all, matches!(kind, Kind::Each(_)));
        self.rounds[round as usize] = known;
        self.release(mark);
    }

    /// The beginning of a loop over numbers.
    fn counted(&mut self, mut each: Box<For>, known: &mut Round, side: Side, out: Label) -> Kind {
        let (state, last) = (self.temporary(), self.temporary());
        if known.counter.is_some() {
            self.temporary();
        }
        if let Node::Binary(range) = &mut each.values {
            known.is_inclusive = &*range.native.name == "..=";
            known.count = Some(state);
            let left = std::mem::replace(&mut range.left, Node::Continue);
            let right = std::mem::replace(&mut range.right, Node::Continue);
            self.into(left, state, NONE);
            self.into(right, last, NONE);
        }
        let node = self.keep(Node::For(each));
        self.jump(Opcode::Count, out, state, 0, Side { node, ..side });
        Kind::Count(state)
    }

    /// The beginning of a loop over anything else.
    fn gone_over(&mut self, each: Box<For>, side: Side, out: Label) -> Kind {
        let value = self.temporary();
        let node = self.whole(Node::For(each));
        self.jump(Opcode::Each, out, value, 0, Side { node, ..side });
        Kind::Each(value)
    }

    /// `break`
    pub(super) fn broken(&mut self, value: Option<Node>) {
        let (kind, out, result, blocks) = match self.open.last() {
            Some(Open { kind: Kind::Each(_), .. }) | None => return self.left(Node::Break(value.map(Box::new))),
            Some(open) => (open.kind, open.out, open.result, open.blocks),
        };
        match (value, result) {
            (value, Some(result)) => self.into(value.unwrap_or(Node::Literal(Value::Unit)), result, NONE),
            (Some(value), None) => {
                let mark = self.mark();
                self.operand(value, true);
                self.release(mark);
            }
            (None, None) => {}
        }
        self.clear_from(blocks);
        match kind {
            Kind::Count(state) => {
                let side = self.side();
                self.jump(Opcode::LeaveCount, out, state, 0, side);
            }
            _ => self.goto(out),
        }
    }

    /// `continue`
    pub(super) fn continued(&mut self) {
        let Some(open) = self.open.last() else { return self.left(Node::Continue) };
        let (again, blocks) = (open.again, open.blocks);
        self.clear_from(blocks);
        self.goto(again);
    }

    /// The variables of the blocks inside a loop end with them.
    fn clear_from(&mut self, blocks: usize) {
        let inside = self.blocks[blocks..].iter().filter(|block| !block.is_empty());
        let slots = inside.fold(None, |all: Option<(Slot, Slot)>, block| {
            let (start, end) = all.unwrap_or((block.start, block.end));
            Some((start.min(block.start), end.max(block.end)))
        });
        if let Some((start, end)) = slots {
            self.clear(start..end);
        }
    }

    /// A jump that the machine takes.
    fn left(&mut self, jump: Node) {
        let node = self.whole(jump);
        let side = Side { node, round: NONE, ..self.side() };
        self.push(Opcode::Evaluate, 0, 0, 0, side);
    }
}

/// The slots of all variables that are declared in a node.
pub(super) fn declared(node: &mut Node, all: &mut Range<Slot>) {
    let own = match node {
        Node::Block(block) | Node::Evaluating(block) => block.declares.clone(),
        Node::For(each) => {
            let counter = each.counter.unwrap_or(each.variable);
            counter.min(each.variable)..counter.max(each.variable) + 1
        }
        Node::Try(attempt) => attempt.variable.map_or(0..0, |slot| slot..slot + 1),
        _ => 0..0,
    };
    if !own.is_empty() {
        *all = if all.start == all.end { own } else { all.start.min(own.start)..all.end.max(own.end) };
    }
    node.children(&mut |child| declared(child, all));
}

/// Whether a `break` gives the loop a value.
fn gives_value(body: &mut Node) -> bool {
    if let Node::Break(value) = body {
        return value.is_some();
    }
    if matches!(body, Node::While(_) | Node::For(_)) {
        return false;
    }
    let mut gives = false;
    body.children(&mut |child| gives = gives || gives_value(child));
    gives
}
