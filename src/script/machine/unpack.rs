//! Takes arrays and maps apart into variables. What does not fit is told by the native.

use super::chain::indices_at_hand;
use super::places::exchange::root_read;
use super::places::reach;
use super::run::{Frame, Machine, R};
use super::tree::{Chain, Node, Parts, Slot, Unpack};
use super::value::Value;
use rhai::{Array, Dynamic, Map};
use smallvec::SmallVec;

impl Machine<'_> {
    pub fn unpack(&mut self, frame: &mut Frame, unpack: &Unpack) -> R<()> {
        let value = match &unpack.value {
            Node::Local(slot) if !self.looks => match &frame.slots[*slot as usize] {
                Value::Other(value) => match parts(value, &unpack.parts) {
                    Some(parts) => {
                        self.step(unpack.native.at)?;
                        put_all(&unpack.slots, parts, frame.slots);
                        return Ok(());
                    }
                    None => self.load(&frame.slots[*slot as usize])?,
                },
                plain => plain.clone(),
            },
            Node::Chain(chain) if !self.looks && chain.is_path && !chain.moves => {
                match parts_there(frame, chain, &unpack.parts) {
                    Some(parts) => {
                        self.step(unpack.native.at)?;
                        put_all(&unpack.slots, parts, frame.slots);
                        return Ok(());
                    }
                    None => self.eval(frame, &unpack.value)?,
                }
            }
            other => self.eval(frame, other)?,
        };
        let value = match value {
            Value::Other(value) if !self.looks => match moved(value, unpack, frame.slots) {
                Ok(()) => return self.step(unpack.native.at),
                Err(value) => value,
            },
            value => value.boxed(),
        };
        self.unpack_by_native(frame, unpack, value)
    }

    #[inline(never)]
    fn unpack_by_native(&mut self, frame: &mut Frame, unpack: &Unpack, mut value: Dynamic) -> R<()> {
        let mut pattern = unpack.pattern.clone().boxed();
        let parts = self.call_native(&unpack.native, &mut [&mut value, &mut pattern], false)?.boxed();
        let parts = parts.try_cast::<Array>().unwrap_or_default();
        for (slot, part) in unpack.slots.iter().zip(parts) {
            frame.slots[*slot as usize] = Value::of(part);
        }
        Ok(())
    }
}

type Found = SmallVec<[Value; 4]>;

/// Copies of the parts of what stands in an element or field, where the indices are at hand.
fn parts_there(frame: &Frame, chain: &Chain, named: &Parts) -> Option<Found> {
    let (root, indices) = (root_read(frame, chain)?, indices_at_hand(frame, chain)?);
    reach(root, &chain.steps, &indices, true, |value| parts(value, named)).flatten()
}

/// Copies of the parts of a value that stays where it is.
fn parts(value: &Dynamic, parts: &Parts) -> Option<Found> {
    match parts {
        Parts::Elements(named) => {
            let array = value.read_lock::<Array>().filter(|array| array.len() == named.len())?;
            let mut found = Found::new();
            for (part, is_named) in array.iter().zip(named) {
                if *is_named {
                    found.push(Value::copied(part));
                }
            }
            Some(found)
        }
        Parts::Fields(keys) => {
            let map = value.read_lock::<Map>()?;
            keys.iter().map(|key| map.get(key.as_str()).map(Value::copied)).collect()
        }
    }
}

/// Moves the parts of a value that nobody else has to the variables.
fn moved(value: Dynamic, unpack: &Unpack, slots: &mut [Value]) -> Result<(), Dynamic> {
    let Parts::Elements(named) = &unpack.parts else {
        let Some(found) = parts(&value, &unpack.parts) else { return Err(value) };
        put_all(&unpack.slots, found, slots);
        return Ok(());
    };
    if value.is_shared() || value.read_lock::<Array>().is_none_or(|array| array.len() != named.len()) {
        return Err(value);
    }
    let array = value.try_cast_result::<Array>()?;
    let parts = array.into_iter().zip(named).filter(|(_, named)| **named).map(|(part, _)| Value::of(part));
    put_all(&unpack.slots, parts, slots);
    Ok(())
}

fn put_all(to: &[Slot], parts: impl IntoIterator<Item = Value>, slots: &mut [Value]) {
    to.iter().zip(parts).for_each(|(slot, part)| slots[*slot as usize] = part);
}
