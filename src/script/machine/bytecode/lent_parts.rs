//! `f(tree.left)` and `dot(rows[i], x)`: the part of a variable's array or map is out of its place while a function has it that
//! leaves it alone. So a call costs the same however large the part is.

use super::{Argument, Bytecode, DirectCall};
use crate::script::machine::chain::indices_at_hand;
use crate::script::machine::places::exchange::{exchange, is_own, root_of};
use crate::script::machine::places::{Values, reach};
use crate::script::machine::run::{Frame, Machine, R};
use crate::script::machine::tree::{Chain, Code, Node, Root, Slot};
use crate::script::machine::value::Value;
use rhai::Dynamic;
use smallvec::SmallVec;

/// What is out of its place: for an argument the chain that leads to it, with its indices.
pub(super) type Out = SmallVec<[(usize, u32, Values); 1]>;

/// Whether an argument may be lent, which no other argument names.
pub(super) fn may_be_lent(arguments: &mut [Option<Node>], at: usize) -> bool {
    let root = match &arguments[at] {
        Some(Node::Chain(chain)) if chain.is_path && chain.lost.is_none() => match &chain.root {
            Root::Local(slot) => Some(*slot),
            Root::This(_) => None,
            _ => return false,
        },
        _ => return false,
    };
    let is_at_hand = |node: &Option<Node>| matches!(node, None | Some(Node::Local(_) | Node::Literal(_)));
    let is_plain = |chain: &Chain| chain.operands.iter().all(|node| matches!(node, Node::Local(_) | Node::Literal(_)));
    let is_simple = matches!(&arguments[at], Some(Node::Chain(chain)) if is_plain(chain));
    if !is_simple || !arguments[at + 1..].iter().all(is_at_hand) {
        return false;
    }
    arguments.iter_mut().enumerate().all(|(other, node)| match node {
        Some(node) if other != at => !names(node, root),
        _ => true,
    })
}

/// Whether a node names a variable, or `this`. What captures variables may name any.
fn names(node: &mut Node, root: Option<Slot>) -> bool {
    let own = match node {
        Node::Local(slot) | Node::Take(slot) => Some(*slot) == root,
        Node::This(_) | Node::Lend(_) => root.is_none(),
        Node::Share(_) | Node::Curry(_) | Node::Fragment(_) | Node::Rest(_) | Node::Running(..) => true,
        Node::Native(native) => native.first != crate::script::machine::tree::First::Value,
        Node::Chain(chain) => match &chain.root {
            Root::Local(slot) | Root::Constant(slot, _) => Some(*slot) == root,
            Root::This(_) => root.is_none(),
            Root::Value(_) => false,
        },
        _ => false,
    };
    let mut named = own;
    node.children(&mut |child| named = named || names(child, root));
    named
}

impl Machine<'_> {
    /// Parts come first: to find one, code may run, which uses the registers of the function that is called.
    #[inline(never)]
    pub(super) fn place_parts(
        &mut self,
        frame: &mut Frame,
        bytecode: &Bytecode,
        call: &DirectCall,
        code: &Code,
        out: &mut Out,
    ) -> R<()> {
        let mut found: SmallVec<[(usize, Value); 2]> = SmallVec::new();
        let mut result = Ok(());
        for (at, argument) in call.arguments.iter().enumerate() {
            let Argument::Part(node) = *argument else { continue };
            match self.take_part(frame, bytecode, code, (at, node), out) {
                Ok(part) => found.push((at, part)),
                Err(fault) => {
                    result = Err(fault);
                    break;
                }
            }
        }
        found.into_iter().for_each(|(at, part)| frame.rest[at] = part);
        result
    }

    /// The part as an argument: out of its place if it is worth that, otherwise a copy.
    fn take_part(
        &mut self,
        frame: &mut Frame,
        bytecode: &Bytecode,
        code: &Code,
        (at, node): (usize, u32),
        out: &mut Out,
    ) -> R<Value> {
        let Node::Chain(chain) = &bytecode.nodes[node as usize] else { unreachable!("a part is a chain") };
        if code.lends(at)
            && !self.looks
            && let Some(indices) = indices_at_hand(frame, chain)
            && let Some(root) = own_root(frame, chain)
            && reach(root, &chain.steps, &indices, false, is_own) == Some(true)
        {
            let mut part = Dynamic::UNIT;
            if exchange(root, &chain.steps, &indices, &mut part, false).is_some() {
                out.push((at, node, indices));
                return Ok(Value::Other(part));
            }
        }
        self.chain(frame, chain)
    }
}

/// Puts what was lent back.
pub(super) fn put_back(frame: &mut Frame, bytecode: &Bytecode, out: Out) {
    for (at, node, indices) in out {
        let mut part = frame.rest[at].take().boxed();
        let Node::Chain(chain) = &bytecode.nodes[node as usize] else { continue };
        if let Some(root) = own_root(frame, chain) {
            exchange(root, &chain.steps, &indices, &mut part, false);
        }
    }
}

fn own_root<'a>(frame: &'a mut Frame, chain: &Chain) -> Option<&'a mut Dynamic> {
    root_of(frame, chain).filter(|root| !root.is_shared())
}
