//! The variables in scope. They are found by their names, in a time that does not depend on how many there are.

use smallvec::SmallVec;
use std::collections::HashMap;

#[derive(Default)]
pub(super) struct Visible<'a> {
    /// The latest last.
    names: Vec<&'a str>,
    /// Where each name stands among them, the latest last.
    places: HashMap<&'a str, SmallVec<[usize; 1]>>,
}

impl<'a> Visible<'a> {
    pub(super) fn len(&self) -> usize {
        self.names.len()
    }

    pub(super) fn push(&mut self, name: &'a str) {
        self.places.entry(name).or_default().push(self.names.len());
        self.names.push(name);
    }

    /// The place of the latest variable of a name.
    pub(super) fn place(&self, name: &str) -> Option<usize> {
        self.places.get(name)?.last().copied()
    }

    pub(super) fn contains(&self, name: &str) -> bool {
        self.place(name).is_some()
    }

    /// Takes away all but the first `len`.
    pub(super) fn truncate(&mut self, len: usize) {
        self.split_off(len);
    }

    /// Takes away all but the first `len`, and gives them.
    pub(super) fn split_off(&mut self, len: usize) -> Vec<&'a str> {
        let gone = self.names.split_off(len.min(self.names.len()));
        for name in &gone {
            self.places.get_mut(name).map(SmallVec::pop);
        }
        gone
    }
}

impl<'a> Extend<&'a str> for Visible<'a> {
    fn extend<I: IntoIterator<Item = &'a str>>(&mut self, names: I) {
        names.into_iter().for_each(|name| self.push(name));
    }
}

impl<'a> FromIterator<&'a str> for Visible<'a> {
    fn from_iter<I: IntoIterator<Item = &'a str>>(names: I) -> Visible<'a> {
        let mut visible = Visible::default();
        visible.extend(names);
        visible
    }
}
