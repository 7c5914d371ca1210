//! What indices and names lead to in arrays, maps and modules, read and written where it stands. Nothing here runs script
//! code, so that modules may be locked meanwhile.

pub mod bytes;
pub mod exchange;
pub mod grow;
pub mod slices;

use super::numbers;
use super::tree::{AssignChain, Op, Step, StepKind};
use super::value::Value;
use crate::base::diag::{Diag, Result};
use crate::script::values::ascii::{self, text_of};
use crate::script::values::module::{Computed, ModuleValue, is_own, may_hold_modules, mode, module};
use crate::script::values::part;
use crate::script::values::types::Cell;
use rhai::{Array, Dynamic, ImmutableString, Map};
use smallvec::SmallVec;

/// The operands of a chain: indices and arguments, in their order.
pub type Values = SmallVec<[Value; 4]>;

/// A copy of what indices and names lead to in arrays and maps, read without moving anything; none where something else
/// is met, as what closures share is, unless `shared` says to go through it.
pub fn read(value: &Dynamic, steps: &[Step], operands: &Values, shared: bool) -> Option<Value> {
    reach(value, steps, operands, shared, Value::copied)
}

/// The same of what is asked of the value there.
pub fn reach<T>(
    value: &Dynamic,
    steps: &[Step],
    operands: &Values,
    shared: bool,
    ask: impl FnOnce(&Dynamic) -> T,
) -> Option<T> {
    let Some((step, rest)) = steps.split_first() else { return Some(ask(value)) };
    if value.is_shared() {
        return if shared { reach(&*value.read_lock::<Dynamic>()?, steps, operands, shared, ask) } else { None };
    }
    let key;
    let name = match &step.kind {
        StepKind::Property { name, .. } => name.as_str(),
        StepKind::Index { operand, .. } => match &operands[*operand] {
            Value::Int(index) => {
                let array = value.read_lock::<Array>()?;
                return reach(&array[place(*index, array.len())?], rest, operands, shared, ask);
            }
            operand => {
                key = text(operand)?;
                key.as_str()
            }
        },
        StepKind::Method { .. } => return None,
    };
    if let Some(cell) = cell_of(value, name) {
        return cell.try_with(|inside| reach(inside, rest, operands, shared, ask));
    }
    match value.read_lock::<Map>() {
        Some(map) => reach(map.get(name)?, rest, operands, shared, ask),
        None => match module(value)?.read().get(name)? {
            field if field.is::<Computed>() => None,
            field if rest.is_empty() => Some(match mode(name, field) {
                Some(mode) => ask(&mode),
                None => ask(field),
            }),
            field => reach(field, rest, operands, shared, ask),
        },
    }
}

/// The same of what is changed there, in modules if `through_modules`, but for the library's own. None for what closures
/// share, and where something else is met.
pub fn reach_mut<T>(
    target: &mut Dynamic,
    steps: &[Step],
    indices: &[Value],
    through_modules: bool,
    change: impl FnOnce(&mut Dynamic) -> T,
) -> Option<T> {
    if target.is_shared() || target.is_read_only() {
        return None;
    }
    let Some((step, rest)) = steps.split_first() else { return Some(change(target)) };
    let key;
    let name = match &step.kind {
        StepKind::Property { name, .. } => name.as_str(),
        StepKind::Index { operand, .. } => match &indices[*operand] {
            Value::Int(index) => {
                let mut array = target.write_lock::<Array>()?;
                let at = place(*index, array.len())?;
                return reach_mut(&mut array[at], rest, indices, through_modules, change);
            }
            operand => {
                key = text(operand)?;
                key.as_str()
            }
        },
        StepKind::Method { .. } => return None,
    };
    if target.is_map() {
        return reach_mut(target.write_lock::<Map>()?.get_mut(name)?, rest, indices, through_modules, change);
    }
    if let Some(cell) = cell_of(target, name) {
        return cell.try_with(|inside| reach_mut(inside, rest, indices, through_modules, change));
    }
    if !through_modules || is_own(name) {
        return None;
    }
    module(target)?.change(|fields| match fields.get_mut(name) {
        Some(field) if field.is::<Computed>() => None,
        Some(field) => reach_mut(field, rest, indices, through_modules, change),
        None => None,
    })?
}

/// The cell whose value a name leads to: `c.value.push(x)`.
pub fn cell_of(value: &Dynamic, name: &str) -> Option<Cell> {
    if name == "value" && !value.is_map() { value.read_lock::<Cell>().map(|cell| cell.clone()) } else { None }
}

/// Writes what indices and names lead to in arrays and maps, in place, and takes the value; none where something else is
/// met, before anything is changed.
pub fn write(
    target: &mut Dynamic,
    steps: &[Step],
    operands: &Values,
    assign: &AssignChain,
    value: &mut Value,
) -> Option<()> {
    let Some((step, rest)) = steps.split_first() else { return replace(target, assign, value) };
    if target.is_shared() || target.is_read_only() {
        return None;
    }
    let key;
    let name = match &step.kind {
        StepKind::Property { name, .. } => name,
        StepKind::Index { operand, .. } => match &operands[*operand] {
            Value::Int(index) => {
                if target.is_string() {
                    return if rest.is_empty() { write_letter(target, *index, assign, value) } else { None };
                }
                let mut array = target.write_lock::<Array>()?;
                let at = place(*index, array.len())?;
                return write(&mut array[at], rest, operands, assign, value);
            }
            operand => {
                key = text(operand)?;
                &key
            }
        },
        StepKind::Method { .. } => return None,
    };
    if let Some(cell) = cell_of(target, name) {
        return cell.try_with(|inside| write(inside, rest, operands, assign, value));
    }
    if !target.is_map() {
        return write_field(&module(target)?, name, rest, operands, assign, value);
    }
    let mut map = target.write_lock::<Map>()?;
    if let Some(element) = map.get_mut(name.as_str()) {
        return write(element, rest, operands, assign, value);
    }
    if rest.is_empty() && assign.op.is_none() && !assign.info.is_op_assignment() {
        map.insert(name.as_str().into(), value.take().boxed());
        return Some(());
    }
    None
}

/// `text[i] = c` of a character, or the string of one.
pub fn write_letter(target: &mut Dynamic, index: i64, assign: &AssignChain, value: &Value) -> Option<()> {
    let Value::Other(value) = value else { return None };
    if assign.op.is_some() || assign.info.is_op_assignment() || target.is_shared() || target.is_read_only() {
        return None;
    }
    let letter = if value.is_char() { value.as_char().ok()? } else { only_letter(value)? };
    let mut text = target.write_lock::<ImmutableString>()?;
    ascii::put(&mut text, index, letter).then_some(())
}

fn only_letter(value: &Dynamic) -> Option<char> {
    let text = value.read_lock::<ImmutableString>()?;
    let mut letters = text.chars();
    letters.next().filter(|_| letters.next().is_none())
}

/// The same of a field of a module. None for what could make the module a part of itself, or is the library's own.
pub fn write_field(
    module: &ModuleValue,
    name: &str,
    rest: &[Step],
    operands: &Values,
    assign: &AssignChain,
    value: &mut Value,
) -> Option<()> {
    let may_close_a_ring = matches!(&*value, Value::Other(value) if may_hold_modules(value));
    if may_close_a_ring { None } else { write_outside(module, name, rest, operands, assign, value) }
}

/// The same of a value that does not hold the module.
pub fn write_outside(
    module: &ModuleValue,
    name: &str,
    rest: &[Step],
    operands: &Values,
    assign: &AssignChain,
    value: &mut Value,
) -> Option<()> {
    if is_own(name) || refused(module, name, rest, operands, assign, value).is_some() {
        return None;
    }
    let written = module.change(|fields| match fields.get_mut(name) {
        Some(element) if element.is::<Computed>() => None,
        Some(element) => {
            let is_part = rest.is_empty() && matches!(&*value, Value::Other(_)) && !assign.info.is_op_assignment();
            write(element, rest, operands, assign, value)?;
            if is_part {
                part::noted(fields, name);
            }
            Some(())
        }
        None if rest.is_empty() && assign.op.is_none() && !assign.info.is_op_assignment() => {
            fields.insert(name.into(), value.take().boxed());
            part::noted(fields, name);
            Some(())
        }
        None => None,
    });
    written.flatten()
}

/// Why a value may not be written over a part of a module: a parameter, a buffer, a layer, or an item of a list of them.
pub fn refused(
    module: &ModuleValue,
    name: &str,
    rest: &[Step],
    operands: &Values,
    assign: &AssignChain,
    value: &Value,
) -> Option<Box<Diag>> {
    if assign.info.is_op_assignment() {
        return None;
    }
    let fields = module.read();
    let with = |work: &dyn Fn(&Dynamic) -> Result<()>| match value {
        Value::Other(value) => work(value).err(),
        plain => work(&plain.clone().boxed()).err(),
    };
    match rest {
        [] => with(&|value| part::takes(&fields, name, value)),
        [Step { kind: StepKind::Index { operand, .. }, .. }] => {
            let Value::Int(index) = operands[*operand] else { return None };
            let items = fields.get(name)?.read_lock::<Array>()?;
            let old = items.get(place(index, items.len())?)?;
            with(&|value| part::follows(old, value, &format!("{name}[{index}]")))
        }
        _ => None,
    }
}

/// Gives what indices and names lead to its new value, if it is still there.
pub fn put_back(target: &mut Dynamic, steps: &[Step], operands: &Values, value: Dynamic) {
    if target.is_shared() {
        if let Some(mut inside) = target.write_lock::<Dynamic>() {
            put_back(&mut inside, steps, operands, value);
        }
        return;
    }
    let Some((step, rest)) = steps.split_first() else {
        *target = value;
        return;
    };
    let key = match &step.kind {
        StepKind::Property { name, .. } => Some(name.clone()),
        StepKind::Index { operand, .. } => match &operands[*operand] {
            Value::Int(index) => {
                if let Some(mut array) = target.write_lock::<Array>()
                    && let Some(at) = place(*index, array.len())
                {
                    put_back(&mut array[at], rest, operands, value);
                }
                return;
            }
            key => text(key),
        },
        StepKind::Method { .. } => None,
    };
    let Some(key) = key else { return };
    if let Some(module) = module(target) {
        module.change(|fields| fields.get_mut(key.as_str()).map(|field| put_back(field, rest, operands, value)));
    } else if let Some(mut map) = target.write_lock::<Map>()
        && let Some(entry) = map.get_mut(key.as_str())
    {
        put_back(entry, rest, operands, value);
    }
}

/// Gives an element its new value, which is taken; none where Rhai must do it.
#[inline]
pub fn replace(element: &mut Dynamic, assign: &AssignChain, value: &mut Value) -> Option<()> {
    if element.is_read_only() || (element.is_shared() && element.is_locked()) {
        return None;
    }
    if element.is_shared() {
        return replace(&mut *element.write_lock::<Dynamic>()?, assign, value);
    }
    *element = match assign.op {
        None if assign.info.is_op_assignment() => return None,
        None => value.take().boxed(),
        Some(Op::Add) if grow::can_grow(element) => {
            return grow::grow(element, value.take()).map_err(|back| *value = back).ok();
        }
        Some(op) => numbers::apply(op, &Value::copied(element), value)?.boxed(),
    };
    Some(())
}

/// An index from the start or, negative, from the end.
#[inline]
pub fn place(index: i64, len: usize) -> Option<usize> {
    if index >= 0 {
        usize::try_from(index).ok().filter(|index| *index < len)
    } else {
        len.checked_sub(usize::try_from(index.unsigned_abs()).ok()?)
    }
}

/// The key of an entry: a string, or a character, which stands for its string.
pub fn text(value: &Value) -> Option<ImmutableString> {
    match value {
        Value::Other(value) if value.is_char() => value.as_char().ok().map(text_of),
        Value::Other(value) => value.read_lock::<ImmutableString>().map(|text| text.clone()),
        _ => None,
    }
}
