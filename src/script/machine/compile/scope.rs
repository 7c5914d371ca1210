//! The variables that are visible where code stands. They are found by their names and slots, in a time that does not depend
//! on how many there are.

use crate::script::machine::tree::{Slot, Visible};
use rhai::ImmutableString;
use smallvec::SmallVec;
use std::collections::HashMap;

#[derive(Default)]
pub struct Scope {
    /// In the order in which they were declared, which is also that of their slots.
    all: Vec<Visible>,
    /// Where each name stands among them, the latest last.
    places: HashMap<ImmutableString, SmallVec<[u32; 1]>>,
}

impl Scope {
    pub fn of(all: &[Visible]) -> Scope {
        let mut scope = Scope::default();
        all.iter().for_each(|visible| scope.push(visible.clone()));
        scope
    }

    pub fn all(&self) -> &[Visible] {
        &self.all
    }

    pub fn len(&self) -> usize {
        self.all.len()
    }

    pub fn push(&mut self, visible: Visible) {
        self.places.entry(visible.name.clone()).or_default().push(self.all.len() as u32);
        self.all.push(visible);
    }

    pub fn truncate(&mut self, len: usize) {
        for gone in self.all.drain(len.min(self.all.len())..) {
            self.places.get_mut(&gone.name).map(SmallVec::pop);
        }
    }

    /// The place of the latest variable of a name.
    pub fn place(&self, name: &str) -> Option<usize> {
        self.places.get(name)?.last().map(|at| *at as usize)
    }

    pub fn at(&self, place: usize) -> &Visible {
        &self.all[place]
    }

    pub fn make_constant(&mut self, place: usize, is_constant: bool) {
        self.all[place].is_constant = is_constant;
    }

    pub fn of_slot(&self, slot: Slot) -> Option<&Visible> {
        self.all.binary_search_by_key(&slot, |visible| visible.slot).ok().map(|at| &self.all[at])
    }
}
