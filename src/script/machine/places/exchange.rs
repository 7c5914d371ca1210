//! Arrays and maps that stand in fields, elements or shared variables are taken out for the time of a call that only asks
//! them something, so that a question costs the same however large they are.

use super::{Values, cell_of, place, reach, text};
use crate::script::machine::calls::is_lent;
use crate::script::machine::chain::indices_at_hand;
use crate::script::machine::run::{Frame, Machine, R};
use crate::script::machine::tree::{Chain, Node, Root, Step, StepKind};
use crate::script::machine::value::Value;
use crate::script::values::module::{Computed, module};
use rhai::{Array, Dynamic, ImmutableString, Map};

/// Natives that ask their first value, keep nothing of it and call no closure.
pub fn only_asks(name: &str) -> bool {
    matches!(name, "len" | "is_empty" | "contains" | "type_of" | "keys" | "values" | "index_of" | "join" | "str")
}

/// Whether a node runs no code of a script, so that it changes no variable.
pub fn is_quiet(node: &Node) -> bool {
    match node {
        Node::Local(_) | Node::Literal(_) | Node::This(_) => true,
        Node::Binary(binary) => is_quiet(&binary.left) && is_quiet(&binary.right),
        Node::Unary(unary) => is_quiet(&unary.operand),
        Node::Text(text) => text.parts.iter().all(is_quiet),
        Node::Native(native) => &*native.name == "__text" && native.arguments.iter().all(is_quiet),
        Node::Chain(chain) => {
            let is_method = |step: &Step| matches!(step.kind, StepKind::Method { .. });
            !matches!(chain.root, Root::Value(_))
                && !chain.steps.iter().any(is_method)
                && chain.operands.iter().all(is_quiet)
        }
        _ => false,
    }
}

/// Whether a chain leads to a field or element without calling anything.
pub fn is_path(chain: &Chain) -> bool {
    matches!(chain.root, Root::Local(_) | Root::This(_))
        && chain.steps.iter().all(|step| !step.or_unit && !matches!(step.kind, StepKind::Method { .. }))
        && chain.operands.iter().all(|operand| matches!(operand, Node::Local(_) | Node::Literal(_)))
}

/// What a chain begins with, where that is a variable or `this` and no plain number.
pub fn root_of<'a>(frame: &'a mut Frame, chain: &Chain) -> Option<&'a mut Dynamic> {
    match &chain.root {
        Root::Local(slot) => match &mut frame.slots[*slot as usize] {
            Value::Other(root) => Some(root),
            _ => None,
        },
        Root::This(_) => frame.this.as_deref_mut(),
        _ => None,
    }
}

/// The same of what is only read.
#[inline]
pub fn root_read<'a>(frame: &'a Frame, chain: &Chain) -> Option<&'a Dynamic> {
    match &chain.root {
        Root::Local(slot) => match &frame.slots[*slot as usize] {
            Value::Other(root) => Some(root),
            _ => None,
        },
        Root::This(_) => frame.this.as_deref(),
        _ => None,
    }
}

/// Swaps what indices and names lead to with another value. `shared`: through what others hold, too. Nothing is swapped
/// where there is no such place.
pub fn exchange(
    target: &mut Dynamic,
    steps: &[Step],
    operands: &Values,
    with: &mut Dynamic,
    shared: bool,
) -> Option<()> {
    if target.is_shared() {
        return if shared {
            exchange(&mut *target.write_lock::<Dynamic>()?, steps, operands, with, shared)
        } else {
            None
        };
    }
    if target.is_read_only() {
        return None;
    }
    let Some((step, rest)) = steps.split_first() else {
        std::mem::swap(target, with);
        return Some(());
    };
    let key: ImmutableString;
    let name = match &step.kind {
        StepKind::Property { name, .. } => name,
        StepKind::Index { operand, .. } => match &operands[*operand] {
            Value::Int(index) => {
                let mut array = target.write_lock::<Array>()?;
                let at = place(*index, array.len())?;
                return exchange(&mut array[at], rest, operands, with, shared);
            }
            operand => {
                key = text(operand)?;
                &key
            }
        },
        StepKind::Method { .. } => return None,
    };
    if target.is_map() {
        let mut map = target.write_lock::<Map>()?;
        return exchange(map.get_mut(name.as_str())?, rest, operands, with, shared);
    }
    if !shared {
        return None;
    }
    if let Some(cell) = cell_of(target, name) {
        return cell.try_with(|inside| exchange(inside, rest, operands, with, shared));
    }
    module(target)?.change(|fields| match fields.get_mut(name.as_str()) {
        Some(field) if field.is::<Computed>() => None,
        Some(field) => exchange(field, rest, operands, with, shared),
        None => None,
    })?
}

/// Whether it is an array or map that nobody else has.
pub fn is_own(part: &Dynamic) -> bool {
    !part.is_shared() && !part.is_read_only() && (part.is_array() || part.is_map())
}

/// An array or map moves out of a place of a variable that nobody reads afterwards; none where something else is met.
// Not: inlined, which would take stack in every call of a script.
#[inline(never)]
pub fn moved_part(frame: &mut Frame, chain: &Chain) -> Option<Value> {
    let Root::Local(slot) = chain.root else { return None };
    let indices = indices_at_hand(frame, chain)?;
    let Value::Other(root) = &mut frame.slots[slot as usize] else { return None };
    if !reach(root, &chain.steps, &indices, false, is_own)? {
        return None;
    }
    let mut part = Dynamic::UNIT;
    exchange(root, &chain.steps, &indices, &mut part, false)?;
    Some(Value::Other(part))
}

impl Machine<'_> {
    /// The indices of a path.
    fn indices(&mut self, frame: &Frame, chain: &Chain) -> R<Values> {
        let mut indices = Values::new();
        for operand in &chain.operands {
            indices.push(match operand {
                Node::Local(slot) => self.load(&frame.slots[*slot as usize])?,
                Node::Literal(value) => value.clone(),
                _ => Value::Unit,
            });
        }
        Ok(indices)
    }

    /// Asks a native something about what a path leads to. `None`: it is nothing that costs to copy, or is not there.
    pub(in crate::script::machine) fn asked_there(
        &mut self,
        frame: &mut Frame,
        chain: &Chain,
        ask: impl FnOnce(&mut Self, &mut Dynamic) -> R,
    ) -> R<Option<Value>> {
        if self.looks {
            return Ok(None);
        }
        let indices = self.indices(frame, chain)?;
        let Some(root) = root_of(frame, chain) else { return Ok(None) };
        self.asked_at(root, &chain.steps, &indices, ask)
    }

    /// The same of what a variable holds that closures share.
    pub(in crate::script::machine) fn asked_at(
        &mut self,
        root: &mut Dynamic,
        steps: &[Step],
        indices: &Values,
        ask: impl FnOnce(&mut Self, &mut Dynamic) -> R,
    ) -> R<Option<Value>> {
        let mut taken = Dynamic::UNIT;
        if exchange(root, steps, indices, &mut taken, true).is_none() {
            return Ok(None);
        }
        let mut value = Value::Other(taken);
        if !is_lent(&value) {
            let Value::Other(taken) = &mut value else { unreachable!("it is one of Rhai's") };
            exchange(root, steps, indices, taken, true);
            return Ok(None);
        }
        let Value::Other(taken) = &mut value else { unreachable!("it is one of Rhai's") };
        let result = ask(self, taken);
        exchange(root, steps, indices, taken, true);
        result.map(Some)
    }

    /// `p = p.next`: the part moves out of the variable whose value it replaces.
    pub(in crate::script::machine) fn part_of_itself(
        &mut self,
        frame: &mut Frame,
        slot: u16,
        chain: &Chain,
    ) -> R<Option<Value>> {
        if self.looks {
            return Ok(None);
        }
        let indices = self.indices(frame, chain)?;
        let Value::Other(root) = &mut frame.slots[slot as usize] else { return Ok(None) };
        let mut taken = Dynamic::UNIT;
        if exchange(root, &chain.steps, &indices, &mut taken, false).is_none() {
            return Ok(None);
        }
        if taken.is_shared() || taken.is_read_only() {
            exchange(root, &chain.steps, &indices, &mut taken, false);
            return Ok(None);
        }
        Ok(Some(Value::unboxed(taken)))
    }
}
