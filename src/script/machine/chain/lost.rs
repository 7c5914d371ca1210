//! What tells whether a change would be seen by nobody: of constants, and of what a call gives.

use super::Goal;
use crate::script::machine::places::exchange::{exchange, only_asks};
use crate::script::machine::places::{Values, place, text};
use crate::script::machine::run::R;
use crate::script::machine::tree::{AssignChain, Chain, Node, StepKind};
use crate::script::machine::value::Value;
use crate::script::source::scope::CONSTANTS;
use crate::script::values::set::Set;
use crate::script::values::types::Tensor;
use rhai::{Array, Dynamic, EvalAltResult, Expr, ImmutableString, Map};

/// The name of a constant or variable that the code does not hold itself: of a module, or of the text around a function.
pub(super) fn outer_name(node: &Node) -> Option<String> {
    let expr = match node {
        Node::Global(global) => return Some(global.name.to_string()),
        Node::Constant(constant) => &constant.fragment.expr,
        Node::Fragment(fragment) => &fragment.expr,
        _ => return None,
    };
    let Expr::Variable(variable, ..) = expr else { return None };
    let spaces = variable.2.path.iter().map(|space| space.name.as_str()).filter(|space| *space != CONSTANTS);
    Some(spaces.chain([variable.1.as_str()]).collect::<Vec<_>>().join("::"))
}

/// Refuses a change of an array, map, set or string in what is a constant, or a copy of what another text holds: nobody
/// would see it. What handles lead to can be changed.
pub(super) fn keep(chain: &Chain, root: &mut Dynamic, operands: &Values, goal: &Goal, name: &str) -> R<()> {
    let Some((last, before)) = chain.steps.split_last() else { return Ok(()) };
    let writes = matches!(goal, Goal::Write(..));
    let may_change = match &last.kind {
        StepKind::Method { name, .. } => !only_asks(name),
        _ => writes,
    };
    let was_constant = root.is_read_only();
    if !may_change || (was_constant && !writes) {
        return Ok(());
    }
    if was_constant {
        *root = std::mem::take(root).clone();
    }
    let mut holder = Dynamic::UNIT;
    let found = exchange(root, before, operands, &mut holder, false);
    let is_plain = holder.is_array() || holder.is_map() || holder.is_string() || holder.is::<Set>();
    if is_plain && writes && (was_constant || !changes_tensor(&holder, &last.kind, operands, goal)) {
        let at = chain.rests().first().map_or(last.at, Expr::start_position);
        return Err(Some(Box::new(EvalAltResult::ErrorAssignmentToConstant(name.to_string(), at))));
    }
    if found.is_some() {
        let mut holder = if is_plain && !writes { holder.into_read_only() } else { holder };
        exchange(root, before, operands, &mut holder, false);
    }
    if was_constant {
        *root = std::mem::take(root).into_read_only();
    }
    Ok(())
}

/// A method of the map itself, such as `update` of an object that the library made: what it changes lies behind cells.
/// `m.w *= 2` of a tensor changes what all its names see.
pub(super) fn changes_tensor(target: &Dynamic, step: &StepKind, operands: &Values, goal: &Goal) -> bool {
    let Goal::Write(AssignChain { op: Some(_), .. }, _) = goal else { return false };
    let entry = |key: &str| target.read_lock::<Map>().is_some_and(|map| map.get(key).is_some_and(|x| x.is::<Tensor>()));
    match step {
        StepKind::Property { name, .. } => entry(name),
        StepKind::Index { operand, .. } => match &operands[*operand] {
            Value::Int(index) => target
                .read_lock::<Array>()
                .is_some_and(|array| place(*index, array.len()).is_some_and(|index| array[index].is::<Tensor>())),
            key => text(key).is_some_and(|key| entry(&key)),
        },
        _ => false,
    }
}

/// Whether plain values, also those inside, are others than before.
pub(super) fn differ(before: &Dynamic, now: &Dynamic) -> bool {
    if let (Some(a), Some(b)) = (before.read_lock::<Map>(), now.read_lock::<Map>()) {
        return a.len() != b.len() || a.iter().zip(b.iter()).any(|(x, y)| x.0 != y.0 || differ(x.1, y.1));
    }
    if let (Some(a), Some(b)) = (before.read_lock::<Array>(), now.read_lock::<Array>()) {
        return a.len() != b.len() || a.iter().zip(b.iter()).any(|(x, y)| differ(x, y));
    }
    if let (Some(a), Some(b)) = (text_of(before), text_of(now)) {
        return a != b;
    }
    let number = |value: &Dynamic| (value.as_int().ok(), value.as_float().ok(), value.as_bool().ok());
    before.type_id() != now.type_id() || number(before) != number(now)
}

fn text_of(value: &Dynamic) -> Option<ImmutableString> {
    value.read_lock::<ImmutableString>().map(|text| text.clone())
}

pub(super) fn is_own_closure(target: &Dynamic, step: &StepKind) -> bool {
    let StepKind::Method { name, .. } = step else { return false };
    target.read_lock::<Map>().is_some_and(|map| map.get(&**name).is_some_and(Dynamic::is_fnptr))
}
