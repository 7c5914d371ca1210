//! Native functions at a place of the text: looked for by Rhai the first time, called without it afterwards.

use super::run::{Fault, Machine};
use crate::base::arithmetic;
use crate::script::values::ascii::text_of;
use rhai::{Caches, Dynamic, EvalAltResult, FnResolutionCacheEntry, NativeCallContext, Position, RhaiFunc};
use smallvec::SmallVec;
use std::any::TypeId;
use std::sync::OnceLock;

/// Bound: combinations of types that a place remembers; what comes after is asked of Rhai each time.
const REMEMBERED: usize = 4;

/// What a place remembers.
#[derive(Default)]
pub struct Site {
    known: [OnceLock<Box<Known>>; REMEMBERED],
}

struct Known {
    types: SmallVec<[TypeId; 4]>,
    entry: FnResolutionCacheEntry,
}

impl Site {
    /// The function for values of these types, if it was met.
    #[inline]
    pub fn find(&self, arguments: &[&mut Dynamic]) -> Option<&FnResolutionCacheEntry> {
        for known in &self.known {
            let known = known.get()?;
            if known.types.len() == arguments.len()
                && known.types.iter().zip(arguments).all(|(known, value)| *known == value.type_id())
            {
                return Some(&known.entry);
            }
        }
        None
    }

    /// Keeps what Rhai has found for a call whose arguments had these types.
    pub fn remember(&self, types: SmallVec<[TypeId; 4]>, caches: &mut Caches, is_property: bool) {
        let mut found = None;
        // Where Rhai looked for a property in vain and then asked an indexer, that is no getter.
        let looked_for = caches.fn_resolution_cache_mut().dict.len();
        if is_property && looked_for != 1 {
            return;
        }
        for entry in caches.fn_resolution_cache_mut().dict.values().flatten() {
            if !entry.func.is_native() || found.is_some() {
                return;
            }
            found = Some(entry.clone());
        }
        let Some(entry) = found else { return };
        let mut known = Box::new(Known { types, entry });
        for place in &self.known {
            match place.set(known) {
                Ok(()) => return,
                Err(back) => known = back,
            }
        }
    }
}

/// Caches that keep a function at its first call, where Rhai's own wait for the second.
pub fn keeping() -> Caches {
    let mut caches = Caches::new();
    let cache = caches.fn_resolution_cache_mut();
    for hash in 0..512 {
        cache.bloom_filter.mark(hash);
    }
    caches
}

/// Names that Rhai handles itself, or whose result it goes on working with.
pub fn is_keyword(name: &str) -> bool {
    matches!(
        name,
        "print" | "debug" | "type_of" | "eval" | "Fn" | "call" | "curry" | "is_shared" | "is_def_var" | "is_def_fn"
    )
}

impl Machine<'_> {
    /// Calls a native function as Rhai's `exec_native_fn_call` does: constants are not changed, a function that takes
    /// its first argument by value gets a copy where it is a variable, and an error without a place gets the call's.
    pub fn invoke(
        &mut self,
        entry: &FnResolutionCacheEntry,
        name: &str,
        arguments: &mut [&mut Dynamic],
        by_reference: bool,
        at: Position,
    ) -> Result<Dynamic, Fault> {
        self.step(at)?;
        let func = &entry.func;
        if !func.is_pure() && arguments.first().is_some_and(|first| first.is_read_only()) {
            return Err(Some(Box::new(EvalAltResult::ErrorNonPureMethodCallOnConstant(name.to_string(), at))));
        }
        self.global.level += 1;
        let result = if by_reference && !func.is_method() && !arguments.is_empty() {
            let mut copy = arguments[0].clone();
            let mut list: SmallVec<[&mut Dynamic; 6]> = SmallVec::new();
            list.push(&mut copy);
            list.extend(arguments[1..].iter_mut().map(|value| &mut **value));
            self.enter(entry, name, &mut list, at)
        } else {
            self.enter(entry, name, arguments, at)
        };
        self.global.level -= 1;
        result.map_err(|error| Some(placed(error, at)))
    }

    #[inline]
    fn enter(
        &self,
        entry: &FnResolutionCacheEntry,
        name: &str,
        arguments: &mut [&mut Dynamic],
        at: Position,
    ) -> Result<Dynamic, Box<EvalAltResult>> {
        let func = &entry.func;
        let context = func.has_context().then(|| {
            NativeCallContext::new_with_all_fields(self.engine, name, entry.source.as_deref(), self.global, at)
        });
        match func {
            RhaiFunc::Pure { func, .. } | RhaiFunc::Method { func, .. } => func(context, arguments),
            RhaiFunc::Plugin { func } => func.call(context, arguments),
            RhaiFunc::StaticPlugin { func } => func.call(context, arguments),
            _ => unreachable!("`Site::remember` keeps native functions"),
        }
    }
}

/// Whether a call found no function of its name for its values.
fn is_not_found<T>(result: &Result<T, Box<EvalAltResult>>, name: &str) -> bool {
    let Err(error) = result else { return false };
    let EvalAltResult::ErrorFunctionNotFound(signature, _) = &**error else { return false };
    signature.split(" (").next() == Some(name)
}

/// Makes a call that found no function for its values again with floats that are whole numbers as the integers that they
/// stand for: one of them after the other, then all. So a count becomes an integer and a value beside it stays what it is.
pub fn again_with_integers<T>(
    result: Result<T, Box<EvalAltResult>>,
    name: &str,
    values: &mut [&mut Dynamic],
    places: std::ops::Range<usize>,
    mut call: impl FnMut(&mut [&mut Dynamic]) -> Result<T, Box<EvalAltResult>>,
) -> Result<T, Box<EvalAltResult>> {
    if !is_not_found(&result, name) {
        return result;
    }
    let whole = |at: usize| Some((at, values[at].as_float().ok().and_then(arithmetic::whole)?));
    let found: SmallVec<[(usize, i64); 4]> = places.filter_map(whole).collect();
    let all = (found.len() > 1).then_some(&found[..]);
    for tried in found.chunks(1).chain(all) {
        for &(at, integer) in tried {
            *values[at] = integer.into();
        }
        let again = call(values);
        if !is_not_found(&again, name) {
            return again;
        }
        for &(at, integer) in tried {
            *values[at] = (integer as f64).into();
        }
    }
    result
}

/// Makes a call that found no function for its values again with the strings of characters: `text[0] * 3`.
pub fn again_with_texts<T>(
    result: Result<T, Box<EvalAltResult>>,
    name: &str,
    values: &mut [&mut Dynamic],
    mut call: impl FnMut(&mut [&mut Dynamic]) -> Result<T, Box<EvalAltResult>>,
) -> Result<T, Box<EvalAltResult>> {
    if !is_not_found(&result, name) {
        return result;
    }
    let letters = values.iter().enumerate().filter_map(|(at, value)| Some((at, value.as_char().ok()?)));
    let letters: SmallVec<[(usize, char); 2]> = letters.collect();
    if letters.is_empty() {
        return result;
    }
    for &(at, letter) in &letters {
        *values[at] = text_of(letter).into();
    }
    let again = call(values);
    for &(at, letter) in &letters {
        *values[at] = letter.into();
    }
    if is_not_found(&again, name) { result } else { again }
}

/// An error with the place of its call, unless it has one.
pub fn placed(mut error: Box<EvalAltResult>, at: Position) -> Box<EvalAltResult> {
    if error.position().is_none() {
        error.set_position(at);
    }
    error
}
