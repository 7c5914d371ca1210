//! `for [k, v] in m.items()`, `for [i, x] in xs.enumerate()` and `for [a, b] in zip(xs, ys)`: the two names get their values
//! without an array for each pair.

use super::Rounds;
use crate::script::machine::bytecode::{Bytecode, Opcode};
use crate::script::machine::run::{Frame, Machine, R};
use crate::script::machine::tree::{Chain, For, Native, Node, Pairs, PairsOf, Parts, Unpack};
use crate::script::machine::value::Value;
use crate::script::source::Marked;
use rhai::{Array, Dynamic, ImmutableString, Map};
use smallvec::SmallVec;

type Operands = SmallVec<[Dynamic; 2]>;
type All = Vec<(Value, Value)>;

impl Machine<'_> {
    /// All rounds of such a loop; none where its body does not begin with the pattern.
    pub(super) fn over_pairs(
        &mut self,
        frame: &mut Frame,
        each: &For,
        pairs: &Pairs,
        body: Rounds,
    ) -> R<Option<Value>> {
        let Rounds::Code(bytecode, start) = body else { return Ok(None) };
        let Some(unpack) = pattern(bytecode, start, each) else { return Ok(None) };
        let rounds = Rounds::Code(bytecode, start + 1);
        if let Some(all) = self.items_there(frame, pairs) {
            return self.rounds_of_pairs(frame, each, unpack, rounds, all).map(Some);
        }
        let mut values = Operands::new();
        for node in &pairs.of {
            values.push(self.eval(frame, node)?.boxed());
        }
        match gathered(pairs.kind, values) {
            Ok(all) => self.rounds_of_pairs(frame, each, unpack, rounds, all).map(Some),
            Err(values) => {
                let values = self.by_native(frame, &each.values, values)?;
                self.over(frame, each, values, body).map(Some)
            }
        }
    }

    /// The entries of a map in a variable, which stays where it is.
    fn items_there(&self, frame: &Frame, pairs: &Pairs) -> Option<All> {
        let (PairsOf::Items, [Node::Local(slot)]) = (pairs.kind, &*pairs.of) else { return None };
        let Value::Other(value) = &frame.slots[*slot as usize] else { return None };
        if value.is_shared() {
            return None;
        }
        let map = value.read_lock::<Map>().filter(|map| !map.contains_key("items"))?;
        Some(map.iter().map(|(key, value)| (text(key), Value::copied(value))).collect())
    }

    /// The pairs of any other value.
    fn by_native(&mut self, frame: &mut Frame, values: &Node, mut operands: Operands) -> R {
        match values {
            Node::Mark(mark) => {
                let _marked = Marked::enter(self.hooks, mark.0, self.global.level);
                self.by_native(frame, &mark.1, operands)
            }
            Node::Native(native) => self.pairs_by_function(native, operands),
            Node::Chain(chain) => self.pairs_by_method(frame, chain, &mut operands[0]),
            _ => unreachable!("the compiler has looked"),
        }
    }

    fn pairs_by_function(&mut self, native: &Native, mut operands: Operands) -> R {
        let mut list: SmallVec<[&mut Dynamic; 6]> = operands.iter_mut().collect();
        self.call_native(native, &mut list, false)
    }

    fn pairs_by_method(&mut self, frame: &mut Frame, chain: &Chain, value: &mut Dynamic) -> R {
        self.last_step(frame.rest, chain, value)
    }

    fn rounds_of_pairs(&mut self, frame: &mut Frame, each: &For, unpack: &Unpack, body: Rounds, all: All) -> R {
        let Parts::Elements(named) = &unpack.parts else { unreachable!("`pattern` has looked") };
        let result = (|| {
            for (first, second) in all {
                self.next_round(each.weight + 1, each.depth, each.at)?;
                let parts = [first, second].into_iter().zip(named).filter(|(_, named)| **named);
                for ((part, _), slot) in parts.zip(&unpack.slots) {
                    frame.slots[*slot as usize] = part;
                }
                let done = self.round_of(frame, body);
                if let Some(end) = self.round(done) {
                    return end;
                }
            }
            Ok(Value::Unit)
        })();
        for slot in &unpack.slots {
            frame.slots[*slot as usize] = Value::Unit;
        }
        result
    }
}

/// The pattern of two names with which a loop's body begins.
fn pattern<'b>(bytecode: &'b Bytecode, start: usize, each: &For) -> Option<&'b Unpack> {
    if bytecode.code[start].opcode != Opcode::Execute {
        return None;
    }
    let Node::Unpack(unpack) = bytecode.node(start) else { return None };
    let is_of_round = matches!(unpack.value, Node::Local(slot) if slot == each.variable);
    let is_pair = matches!(&unpack.parts, Parts::Elements(named) if named.len() == 2);
    (is_of_round && is_pair).then_some(unpack)
}

fn text(key: &str) -> Value {
    Value::Other(ImmutableString::from(key).into())
}

/// The pairs of values that are at hand as arrays or maps; the values again where they are anything else.
fn gathered(kind: PairsOf, mut values: Operands) -> Result<All, Operands> {
    let is_plain =
        |value: &Dynamic| !value.is_shared() && if kind == PairsOf::Items { value.is_map() } else { value.is_array() };
    if !values.iter().all(is_plain) {
        return Err(values);
    }
    if kind == PairsOf::Items {
        if values[0].read_lock::<Map>().is_none_or(|map| map.contains_key("items")) {
            return Err(values);
        }
        let map = values.remove(0).try_cast::<Map>().unwrap_or_default();
        return Ok(map.into_iter().map(|(key, value)| (text(&key), Value::of(value))).collect());
    }
    let mut arrays =
        values.into_iter().map(|value| value.try_cast::<Array>().unwrap_or_default().into_iter().map(Value::of));
    let (first, second) = (arrays.next(), arrays.next());
    let first = first.into_iter().flatten();
    Ok(match second {
        Some(second) => first.zip(second).collect(),
        None => (0..).map(Value::Int).zip(first).collect(),
    })
}
