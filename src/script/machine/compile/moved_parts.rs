//! `tree.left = insert(tree.left, key)`: the part that the call's value replaces moves into the call, where nobody sees the
//! variable if the call fails. So a function that changes a part costs the same however large the part is.

use crate::script::machine::places::exchange::{is_path, is_quiet};
use crate::script::machine::tree::{Chain, Node, Root, Slot, Step, StepKind};
use crate::script::machine::value::Value;

/// Moves what a chain leads to into the call that gives it its new value, if the other arguments name nothing of it.
pub fn move_part_to_call(value: &mut Node, target: &Chain) {
    let call = match value {
        Node::Mark(marked) => return move_part_to_call(&mut marked.1, target),
        Node::Call(call) => call,
        _ => return,
    };
    let Root::Local(root) = target.root else { return };
    if !is_path(target) || target.lost.is_some() {
        return;
    }
    let Some(at) = call.arguments.iter().position(|argument| is_same(argument, target)) else { return };
    let mut others = call.arguments.iter().enumerate().filter(|(other, _)| *other != at);
    if !others.all(|(_, other)| is_quiet(other) && !names_part(other, root, target)) {
        return;
    }
    if let Node::Chain(chain) = &mut call.arguments[at] {
        chain.moves = true;
    }
}

/// Whether a node reads what a chain leads to.
fn is_same(node: &Node, target: &Chain) -> bool {
    let Node::Chain(chain) = node else { return false };
    let is_root = matches!((&chain.root, &target.root), (Root::Local(a), Root::Local(b)) if a == b);
    is_root
        && chain.lost.is_none()
        && is_path(chain)
        && chain.steps.len() == target.steps.len()
        && chain.steps.iter().zip(&target.steps).all(|(step, other)| is_same_step((step, chain), (other, target)))
}

fn is_same_step((step, chain): (&Step, &Chain), (other, target): (&Step, &Chain)) -> bool {
    match (&step.kind, &other.kind) {
        (StepKind::Property { name, .. }, StepKind::Property { name: other, .. }) => name == other,
        (StepKind::Index { operand, .. }, StepKind::Index { operand: other, .. }) => {
            match (&chain.operands[*operand], &target.operands[*other]) {
                (Node::Local(a), Node::Local(b)) => a == b,
                (Node::Literal(Value::Int(a)), Node::Literal(Value::Int(b))) => a == b,
                _ => false,
            }
        }
        _ => false,
    }
}

/// Whether a node that runs no code names a variable otherwise than by a field of another name.
fn names_part(node: &Node, root: Slot, target: &Chain) -> bool {
    let named = |node: &Node| names_part(node, root, target);
    match node {
        Node::Local(slot) => *slot == root,
        Node::Binary(binary) => named(&binary.left) || named(&binary.right),
        Node::Unary(unary) => named(&unary.operand),
        Node::Text(text) => text.parts.iter().any(named),
        Node::Native(native) => native.arguments.iter().any(named),
        Node::Chain(chain) => {
            let is_of_root = matches!(&chain.root, Root::Local(slot) | Root::Constant(slot, _) if *slot == root);
            chain.operands.iter().any(named) || (is_of_root && !leads_elsewhere(chain, target))
        }
        Node::Literal(_) | Node::This(_) => false,
        _ => true,
    }
}

/// Whether two chains from one variable begin with fields of different names.
fn leads_elsewhere(chain: &Chain, target: &Chain) -> bool {
    match (chain.steps.first().map(|step| &step.kind), target.steps.first().map(|step| &step.kind)) {
        (Some(StepKind::Property { name, .. }), Some(StepKind::Property { name: other, .. })) => name != other,
        _ => false,
    }
}
