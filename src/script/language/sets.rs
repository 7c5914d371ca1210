//! The functions of sets, as Python's: `set([1, 2])`, `s.add(x)`, `x in s`, `a | b`.

use crate::base::code;
use crate::base::diag::Diag;
use crate::script::bind::native::named;
use crate::script::bind::rows::{Natives, raw};
use crate::script::host::Host;
use crate::script::language::walk;
use crate::script::values::panics::{GuardedCall, Place, place_iterator};
use crate::script::values::raise::{Native, Outcome};
use crate::script::values::set::{Combine, Key, Set};
use rhai::{Array, Dynamic, FuncRegistration, NativeCallContext};
use std::any::TypeId;
use std::sync::Arc;

/// A set of whatever can be walked.
fn made(host: &Arc<Host>, context: &NativeCallContext, value: &Dynamic) -> Outcome<Set> {
    if let Some(set) = value.read_lock::<Set>() {
        return Ok(set.clone());
    }
    let told = |diag| host.raise(context, named("set")(diag), "");
    let mut set = Set::default();
    for value in walk::elements(host, context, value)? {
        set.add(value).map_err(told)?;
    }
    Ok(set)
}

pub fn register(natives: &mut Natives, host: &Arc<Host>) {
    for arity in 0..=1 {
        let shared = host.clone();
        raw(natives, "set", arity, move |context, values| {
            let context = context.expect("registered with a context");
            let set = values.first().map_or_else(|| Ok(Set::default()), |value| made(&shared, &context, value))?;
            Ok(Dynamic::from(set))
        });
    }
    changes(natives, host);
    combinations(natives, host);
    questions(natives, host);
    place_iterator(&mut natives.module, TypeId::of::<Set>(), |value| match value.try_cast::<Set>() {
        Some(set) => Box::new(set.iter().cloned().collect::<Array>().into_iter().map(Ok)),
        None => Box::new(std::iter::empty()),
    });
}

/// A method that changes a set; refused for constants.
fn changing<const N: usize>(
    natives: &mut Natives,
    host: &Arc<Host>,
    name: &'static str,
    change: impl Fn(&Arc<Host>, &NativeCallContext, &mut Set, [&Dynamic; N]) -> Native + Send + Sync + 'static,
) {
    natives.note(name);
    let host = host.clone();
    let call = GuardedCall::new(move |context: Option<NativeCallContext>, values: &mut [&mut Dynamic]| -> Native {
        let context = context.expect("registered with a context");
        let (this, rest) = values.split_first_mut().expect("registered with a receiver");
        let given: [&Dynamic; N] = std::array::from_fn(|at| &*rest[at]);
        let Some(mut set) = this.write_lock::<Set>() else { return Ok(Dynamic::UNIT) };
        change(&host, &context, &mut set, given)
    });
    natives.place_on(TypeId::of::<Set>(), name, N + 1..=N + 1, &call.changing());
}

fn changes(natives: &mut Natives, host: &Arc<Host>) {
    fn key(host: &Host, context: &NativeCallContext, name: &str, value: &Dynamic) -> Outcome<Key> {
        Key::of(value).map_err(|diag| host.raise(context, named(name)(diag), ""))
    }
    changing(natives, host, "add", |host, context, set, [value]| {
        let key = key(host, context, "add", value)?;
        let told = |diag| host.raise(context, diag, "");
        if set.len().is_power_of_two() {
            host.watch.array_fits(set.len() + 1).map_err(told)?;
        }
        set.put(key, value.clone());
        Ok(Dynamic::UNIT)
    });
    changing(natives, host, "discard", |host, context, set, [value]| {
        set.take(&key(host, context, "discard", value)?);
        Ok(Dynamic::UNIT)
    });
    changing(natives, host, "remove", |host, context, set, [value]| {
        match set.take(&key(host, context, "remove", value)?) {
            Some(_) => Ok(Dynamic::UNIT),
            None => {
                let diag = Diag::error(code::INDEX, "`remove`: the set has no such element");
                Err(host.raise(context, diag.help("`s.discard(x)` takes out what may be missing"), ""))
            }
        }
    });
    changing(natives, host, "pop", |host, context, set, []| {
        let none = || host.raise(context, Diag::error(code::INDEX, "`pop`: the set has no elements"), "");
        set.take_first().ok_or_else(none)
    });
    changing(natives, host, "clear", |_, _, set, []| {
        *set = Set::default();
        Ok(Dynamic::UNIT)
    });
    changing(natives, host, "update", |host, context, set, [other]| {
        let other = made(host, context, other)?;
        set.unite(&other);
        Ok(Dynamic::UNIT)
    });
}

fn combinations(natives: &mut Natives, host: &Arc<Host>) {
    for (name, symbol, how) in [
        ("union", "|", Combine::Union),
        ("intersection", "&", Combine::Intersection),
        ("difference", "-", Combine::Difference),
        ("symmetric_difference", "^", Combine::Symmetric),
    ] {
        if matches!(how, Combine::Union) {
            let united = |set: &mut Set, other: Set| set.unite(&other);
            FuncRegistration::new("|=").with_purity(false).in_global_namespace().place_in(&mut natives.module, united);
        }
        let shared = host.clone();
        natives.note(name);
        let combined = move |context: NativeCallContext, set: Set, other: Dynamic| -> Outcome<Set> {
            Ok(set.combined(how, &made(&shared, &context, &other)?))
        };
        FuncRegistration::new(name).in_global_namespace().place_in(&mut natives.module, combined);
        let own = FuncRegistration::new(symbol).in_global_namespace();
        own.place_in(&mut natives.module, move |a: Set, b: Set| a.combined(how, &b));
    }
}

fn questions(natives: &mut Natives, host: &Arc<Host>) {
    type Ask = fn(&Set, &Set) -> bool;
    let within: Ask = |a, b| a.is_within(b);
    for (name, ask) in [
        ("issubset", within),
        ("issuperset", |a: &Set, b: &Set| b.is_within(a)),
        ("isdisjoint", |a: &Set, b: &Set| a.is_disjoint(b)),
    ] {
        let shared = host.clone();
        natives.note(name);
        let asked = move |context: NativeCallContext, set: Set, other: Dynamic| -> Outcome<bool> {
            Ok(ask(&set, &made(&shared, &context, &other)?))
        };
        FuncRegistration::new(name).in_global_namespace().place_in(&mut natives.module, asked);
    }
    for (symbol, ask) in [
        ("<=", within),
        (">=", |a: &Set, b: &Set| b.is_within(a)),
        ("<", |a: &Set, b: &Set| a.len() < b.len() && a.is_within(b)),
        (">", |a: &Set, b: &Set| b.len() < a.len() && b.is_within(a)),
        ("==", |a: &Set, b: &Set| a == b),
        ("!=", |a: &Set, b: &Set| a != b),
    ] {
        let own = FuncRegistration::new(symbol).in_global_namespace();
        own.place_in(&mut natives.module, move |a: Set, b: Set| ask(&a, &b));
    }
    let module = &mut natives.module;
    let of = |name: &str| FuncRegistration::new(name).in_global_namespace();
    of("len").place_in(module, |set: &mut Set| set.len() as i64);
    of("is_empty").place_in(module, |set: &mut Set| set.len() == 0);
    of("bool").place_in(module, |set: &mut Set| set.len() > 0);
    of("to_array").place_in(module, |set: &mut Set| -> Array { set.iter().cloned().collect() });
    of("contains").place_in(module, |set: &mut Set, value: Dynamic| Key::of(&value).is_ok_and(|key| set.has(&key)));
}
