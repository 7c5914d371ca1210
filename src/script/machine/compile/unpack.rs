//! `let [a, b] = f()` as one node. The source pass writes a call of `__unpack`, whose parts are then given to their names one
//! after the other; where the pattern is a plain one, the names take their parts from the value itself.

use crate::script::machine::tree::{Chain, Native, Node, Parts, Root, Slot, StepKind, Unpack};
use crate::script::machine::value::Value;
use rhai::ImmutableString;

/// Statements in which plain patterns are nodes.
pub fn folded(statements: Vec<Node>) -> Vec<Node> {
    if !statements.iter().any(|statement| unpacks(statement).is_some()) {
        return statements;
    }
    let mut folded = Vec::with_capacity(statements.len());
    let mut rest = statements.into_iter().peekable();
    while let Some(statement) = rest.next() {
        let Some((parts, first)) = unpacks(&statement) else {
            folded.push(statement);
            continue;
        };
        // The other names, and at last the first one.
        let mut slots = vec![first];
        let count = parts.names();
        let is_next = |node: &Node, number: usize| taken(node).filter(|&(root, at, _)| root == first && at == number);
        let mut following = Vec::new();
        for number in 1..count {
            let Some((.., slot)) = rest.peek().and_then(|node| is_next(node, number)) else { break };
            slots.push(slot);
            following.extend(rest.next());
        }
        let own = rest.peek().and_then(|node| is_next(node, 0)).is_some_and(|(.., slot)| slot == first);
        let are_apart = slots.iter().enumerate().all(|(at, slot)| !slots[..at].contains(slot));
        if slots.len() < count || !own || !are_apart {
            folded.push(statement);
            folded.extend(following);
            continue;
        }
        rest.next();
        folded.extend(unpacked(statement, parts, slots));
    }
    folded
}

/// The pattern of `let a = __unpack(v, "[a,b]")`, and the variable; none where it is no plain one.
fn unpacks(statement: &Node) -> Option<(Parts, Slot)> {
    let Node::Let(slot, value) = statement else { return None };
    let native = call(value)?;
    let [_, Node::Literal(Value::Other(text))] = &*native.arguments else { return None };
    let text = text.read_lock::<ImmutableString>()?;
    Some((Parts::of(&text)?, *slot))
}

fn call(value: &Node) -> Option<&Native> {
    match value {
        Node::Native(native) if &*native.name == "__unpack" => Some(native),
        _ => None,
    }
}

/// `b = a[1]`: the variables of `a` and `b`, and the number.
fn taken(node: &Node) -> Option<(Slot, usize, Slot)> {
    let of = |value: &Node, slot: Slot| match value {
        Node::Chain(chain) => match (&**chain, &*chain.operands) {
            (Chain { root: Root::Local(root), steps, .. }, [Node::Literal(Value::Int(number))]) => match &**steps {
                [step] if matches!(step.kind, StepKind::Index { .. }) && !step.or_unit => {
                    Some((*root, usize::try_from(*number).ok()?, slot))
                }
                _ => None,
            },
            _ => None,
        },
        _ => None,
    };
    match node {
        Node::Let(slot, value) => of(value, *slot),
        Node::Assign(assign) if assign.op.is_none() && !assign.is_constant => of(&assign.value, assign.slot),
        _ => None,
    }
}

fn unpacked(statement: Node, parts: Parts, slots: Vec<Slot>) -> Option<Node> {
    let Node::Let(_, value) = statement else { return None };
    let Node::Native(mut native) = *value else { return None };
    let mut arguments = Vec::from(std::mem::take(&mut native.arguments)).into_iter();
    let (value, Some(Node::Literal(pattern))) = (arguments.next()?, arguments.next()) else { return None };
    Some(Node::Unpack(Box::new(Unpack { value, native: *native, pattern, parts, slots: slots.into() })))
}

impl Parts {
    /// Of a pattern of names alone, without a rest: `[a,_,b]` or `#{x,y}`.
    fn of(text: &str) -> Option<Parts> {
        let (is_map, names) = match text.strip_prefix("#{").and_then(|rest| rest.strip_suffix('}')) {
            Some(names) => (true, names),
            None => (false, text.strip_prefix('[')?.strip_suffix(']')?),
        };
        let names: Vec<&str> = names.trim_end_matches(',').split(',').collect();
        let is_name = |name: &&str| !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_');
        if !names.iter().all(is_name) || names.iter().all(|name| *name == "_") {
            return None;
        }
        Some(if is_map {
            Parts::Fields(names.into_iter().map(ImmutableString::from).collect())
        } else {
            Parts::Elements(names.into_iter().map(|name| name != "_").collect())
        })
    }

    fn names(&self) -> usize {
        match self {
            Parts::Elements(named) => named.iter().filter(|named| **named).count(),
            Parts::Fields(keys) => keys.len(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_patterns_are_nodes() {
        let elements = |text| match Parts::of(text) {
            Some(Parts::Elements(named)) => Some(named.to_vec()),
            _ => None,
        };
        assert_eq!(elements("[a,_,b]"), Some(vec![true, false, true]));
        assert_eq!(elements("[a]"), Some(vec![true]));
        assert!(matches!(Parts::of("#{x,y}"), Some(Parts::Fields(keys)) if *keys == ["x", "y"]));
        for text in ["[a,[b,c]]", "[a,..]", "[a,..rest]", "#{x:y}", "#{x,..}", "[_]", "[]", "#{}"] {
            assert!(Parts::of(text).is_none(), "{text}");
        }
    }
}
