//! Where a loop over a loader stands: `state_dict()` and `load_state_dict(d)` of loaders. A loop that goes on gives the
//! batches that are left, in the order that was drawn when it began.

use crate::base::code;
use crate::base::diag::{Diag, Result};
use crate::base::rng::Generator;
use crate::fail;
use crate::script::values::type_names;
use parking_lot::Mutex;
use rhai::{Array, Dynamic, Map};
use std::sync::Arc;

/// What the order of a loop follows from.
#[derive(Clone, Debug, PartialEq)]
pub enum Source {
    /// It is the same in each loop.
    Fixed,
    /// The generator when the loop began.
    Generator(Generator),
    /// What a sampler drew.
    Rows(Arc<[usize]>),
}

/// A loop of which some batches were given.
#[derive(Clone, Debug)]
pub struct Begun {
    pub given: usize,
    pub source: Source,
}

/// The latest loop of a loader.
#[derive(Default)]
pub struct Position(Mutex<Place>);

#[derive(Default)]
struct Place {
    /// How many loops were begun: the number of the latest one.
    loops: u64,
    under_way: Option<Begun>,
    /// What the next loop goes on with.
    loaded: Option<Begun>,
}

/// What a loader has, which a state must fit.
pub struct Extent {
    /// Rows of the dataset, and those of a loop.
    pub rows: usize,
    pub size: usize,
    pub batches: usize,
    pub is_shuffled: bool,
    pub is_sampled: bool,
}

impl Position {
    /// A loop begins; what it goes on with, if a state was loaded.
    pub fn enter(&self) -> (u64, Option<Begun>) {
        let mut place = self.0.lock();
        place.loops += 1;
        place.under_way = place.loaded.take();
        (place.loops, place.under_way.clone())
    }

    /// Loop `number` has given so many batches.
    pub fn gave(&self, number: u64, given: usize, source: &Source) {
        let mut place = self.0.lock();
        if place.loops == number && place.loaded.is_none() {
            place.under_way = Some(Begun { given, source: source.clone() });
        }
    }

    /// Loop `number` is at its end.
    pub fn ended(&self, number: u64) {
        let mut place = self.0.lock();
        if place.loops == number {
            place.under_way = None;
        }
    }

    pub fn state(&self, extent: &Extent) -> Map {
        let place = self.0.lock();
        let begun = place.loaded.as_ref().or(place.under_way.as_ref());
        let int = |n: usize| Dynamic::from_int(n as i64);
        let (mut generator, mut order) = (Dynamic::UNIT, Dynamic::UNIT);
        match begun.map(|begun| &begun.source) {
            Some(Source::Generator(at)) => {
                generator = [at.seed, at.offset].map(|word| Dynamic::from_int(word as i64)).to_vec().into();
            }
            Some(Source::Rows(rows)) => order = rows.iter().map(|&row| int(row)).collect::<Array>().into(),
            Some(Source::Fixed) | None => {}
        }
        let position = begun.map_or(Dynamic::UNIT, |begun| int(begun.given));
        let entries = [
            ("position", position),
            ("generator", generator),
            ("order", order),
            ("rows", int(extent.rows)),
            ("batches", int(extent.batches)),
        ];
        entries.into_iter().map(|(name, value)| (name.into(), value)).collect()
    }

    pub fn load(&self, extent: &Extent, state: &Dynamic) -> Result<()> {
        let Some(state) = state.read_lock::<Map>() else {
            fail!(ARGUMENT_TYPE, "the state of a loader is a map, not {}", type_names::of_value(state));
        };
        for (name, here) in [("rows", extent.rows), ("batches", extent.batches)] {
            let there = count(&state, name)?;
            if there != here {
                let text = format!("the state is that of a loader of {there} {name}, and this one has {here}");
                return Err(Diag::error(code::VALUE, text).help("make the loader as it was when the state was saved"));
            }
        }
        let loaded = match entry(&state, "position")? {
            position if position.is_unit() => None,
            _ => {
                let given = count(&state, "position")?;
                if given > extent.batches {
                    fail!(VALUE, "the position is {given}, and a loop has {} batches", extent.batches);
                }
                Some(Begun { given, source: source(&state, extent)? })
            }
        };
        let mut place = self.0.lock();
        place.under_way = None;
        place.loaded = loaded;
        Ok(())
    }
}

fn entry<'a>(state: &'a Map, name: &str) -> Result<&'a Dynamic> {
    match state.get(name) {
        Some(value) => Ok(value),
        None => fail!(VALUE, "the state of a loader has an entry `{name}`, and this map has none"),
    }
}

fn count(state: &Map, name: &str) -> Result<usize> {
    let value = entry(state, name)?;
    match value.as_int().ok().and_then(|n| usize::try_from(n).ok()) {
        Some(n) => Ok(n),
        None => fail!(VALUE, "the entry `{name}` of a loader's state is a count, not {}", type_names::of_value(value)),
    }
}

fn integers(state: &Map, name: &str) -> Result<Vec<i64>> {
    let value = entry(state, name)?;
    let all = value.read_lock::<Array>().and_then(|all| all.iter().map(|n| n.as_int().ok()).collect());
    match all {
        Some(all) => Ok(all),
        None => fail!(
            VALUE,
            "the entry `{name}` of this loader's state is an array of integers, not {}",
            type_names::of_value(value)
        ),
    }
}

fn source(state: &Map, extent: &Extent) -> Result<Source> {
    if extent.is_shuffled {
        let [seed, offset] = integers(state, "generator")?[..] else {
            fail!(VALUE, "the entry `generator` of a loader's state has two numbers");
        };
        return Ok(Source::Generator(Generator { seed: seed as u64, offset: offset as u64 }));
    }
    if extent.is_sampled {
        let rows = integers(state, "order")?.into_iter().map(|row| usize::try_from(row).ok());
        let rows: Option<Vec<usize>> = rows.map(|row| row.filter(|&row| row < extent.rows)).collect();
        return match rows.filter(|rows| rows.len() == extent.size) {
            Some(rows) => Ok(Source::Rows(rows.into())),
            None => fail!(
                VALUE,
                "the entry `order` of a loader's state has {} row numbers below {}",
                extent.size,
                extent.rows
            ),
        };
    }
    Ok(Source::Fixed)
}
