//! `xs[1..3]` of arrays, strings and lists of layers, as Python slices: a new value, with bounds from the end where they are
//! negative, and clamped.

use crate::script::values::ascii::{self, character};
use crate::script::values::module::ModuleValue;
use crate::script::values::types::SliceValue;
use rhai::Dynamic;
use std::ops::{Range, RangeInclusive};

/// The part of an array or string that a range names; none where there is no such part to be had.
pub fn part(target: &Dynamic, range: &Dynamic) -> Option<Dynamic> {
    if let Some(slice) = range.read_lock::<SliceValue>() {
        return stepped(target, *slice);
    }
    let (start, end, ends_within) = bounds(range)?;
    between(target, start, end, ends_within)
}

/// The part between two places.
pub fn between(target: &Dynamic, start: i64, end: i64, ends_within: bool) -> Option<Dynamic> {
    if target.is_array() {
        let array = target.as_array_ref().ok()?;
        return Some(array[clamped(start, end, ends_within, array.len())].to_vec().into());
    }
    if target.is_string() {
        let text = target.as_immutable_string_ref().ok()?;
        return Some(ascii::part(&text, clamped(start, end, ends_within, ascii::length(&text))).into());
    }
    None
}

/// `model[1..3]`: a container with some of the layers, which both share; none where there is no such part.
pub fn layers(module: &ModuleValue, range: &Dynamic) -> Option<Dynamic> {
    let names = module.read().get("_steps").cloned();
    if let Some(names) = names {
        let kept = part(&names, range)?.into_array().ok()?;
        return Some(Dynamic::from(module.with_steps(kept)));
    }
    let name = module.layers()?;
    let some = part(&module.get(&name)?, range)?;
    Some(Dynamic::from(module.with_layers(&name, some)))
}

/// `xs[slice(start, stop, step)]`.
fn stepped(target: &Dynamic, slice: SliceValue) -> Option<Dynamic> {
    if target.is_array() {
        let array = target.as_array_ref().ok()?;
        return Some(places(slice, array.len())?.map(|at| array[at].clone()).collect::<rhai::Array>().into());
    }
    if target.is_string() {
        let letters: Vec<char> = target.as_immutable_string_ref().ok()?.chars().collect();
        return Some(places(slice, letters.len())?.map(|at| letters[at]).collect::<String>().into());
    }
    None
}

/// The places that a slice names; none for a step of 0.
fn places(slice: SliceValue, len: usize) -> Option<impl Iterator<Item = usize>> {
    let SliceValue { start, stop, step } = slice;
    let last = len as i64 - 1;
    // Towards the beginning, the ends are those before the first and at the last element.
    let (low, high) = if step > 0 { (0, len as i64) } else { (-1, last) };
    let bound = |bound: i64| (if bound < 0 { bound.saturating_add(len as i64) } else { bound }).clamp(low, high);
    let first = start.map_or(if step > 0 { low } else { high }, bound);
    let end = stop.map_or(if step > 0 { high } else { low }, bound);
    let is_within = move |at: &i64| if step > 0 { *at < end } else { *at > end };
    let all = std::iter::successors(Some(first), move |at| at.checked_add(step)).take_while(is_within);
    (step != 0).then(|| all.map(|at| at as usize))
}

/// The character of a string with a number; none where there is no such character.
pub fn letter(target: &Dynamic, number: i64) -> Option<Dynamic> {
    Some(character(&*target.as_immutable_string_ref().ok()?, number)?.into())
}

/// The bounds of a range, and whether its end is part of it.
fn bounds(range: &Dynamic) -> Option<(i64, i64, bool)> {
    if let Some(range) = range.read_lock::<Range<i64>>() {
        return Some((range.start, range.end, false));
    }
    let range = range.read_lock::<RangeInclusive<i64>>()?;
    Some((*range.start(), *range.end(), true))
}

/// Bounds within a length.
pub fn clamped(start: i64, end: i64, ends_within: bool, len: usize) -> Range<usize> {
    let len = len as i64;
    let from_end = |bound: i64| if bound < 0 { bound.saturating_add(len) } else { bound };
    let start = from_end(start).clamp(0, len);
    let end = from_end(end).saturating_add(ends_within as i64).clamp(0, len);
    start as usize..end.max(start) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_those_of_python() {
        for (start, stop, step, expected) in [
            (None, None, 2, vec![0, 2, 4]),
            (None, None, -1, vec![4, 3, 2, 1, 0]),
            (Some(1), Some(4), 2, vec![1, 3]),
            (Some(-1), Some(0), -2, vec![4, 2]),
            (Some(-2), None, -1, vec![3, 2, 1, 0]),
            (Some(9), Some(-9), -3, vec![4, 1]),
            (Some(3), Some(1), 1, vec![]),
            (Some(i64::MIN), Some(i64::MAX), i64::MAX, vec![0]),
        ] {
            let found: Vec<usize> = places(SliceValue { start, stop, step }, 5).expect("a step").collect();
            assert_eq!(found, expected, "{start:?} {stop:?} {step}");
        }
        assert!(places(SliceValue { start: None, stop: None, step: 0 }, 5).is_none());
    }

    #[test]
    fn bounds_are_those_of_python() {
        for (start, end, within, expected) in [
            (1, 3, false, 1..3),
            (-2, i64::MAX, false, 3..5),
            (0, -1, false, 0..4),
            (-9, 2, false, 0..2),
            (3, 1, false, 3..3),
            (9, 12, false, 5..5),
            (1, 3, true, 1..4),
            (0, -1, true, 0..5),
            (i64::MIN, i64::MAX, true, 0..5),
        ] {
            assert_eq!(clamped(start, end, within, 5), expected, "{start} {end} {within}");
        }
    }
}
