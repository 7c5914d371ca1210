//! The visible variables. They are found by their names, and what a branch has changed is undone, in a time that does not depend
//! on how many there are.

use crate::script::check::guards::Asked;
use crate::script::check::value::Value;
use smallvec::SmallVec;
use std::collections::{BTreeMap, HashMap};

/// A visible variable.
pub struct Var {
    pub name: String,
    pub token: u32,
    pub value: Value,
    pub read: bool,
    /// A `let` of the user, to find out whether it is used.
    pub watched: bool,
    pub constant: bool,
    pub asked: Asked,
}

#[derive(Default)]
pub struct Vars {
    /// The latest last.
    all: Vec<Var>,
    /// Where each name stands among them, the latest last.
    places: HashMap<String, SmallVec<[usize; 1]>>,
    /// The values before the changes since the first mark.
    before: Vec<(usize, Value)>,
    marks: usize,
    /// What conditions asked for before each change of that.
    asked: Vec<(usize, Asked)>,
}

/// A state to which one can go back.
pub struct Mark {
    changes: usize,
    len: usize,
}

/// The values of variables that have changed.
pub type Changed = BTreeMap<usize, Value>;

impl Vars {
    pub fn len(&self) -> usize {
        self.all.len()
    }

    pub fn push(&mut self, var: Var) {
        match self.places.get_mut(&var.name) {
            Some(places) => places.push(self.all.len()),
            None => drop(self.places.insert(var.name.clone(), SmallVec::from_elem(self.all.len(), 1))),
        }
        self.all.push(var);
    }

    pub fn pop(&mut self) -> Option<Var> {
        let var = self.all.pop()?;
        self.places.get_mut(&var.name).map(SmallVec::pop);
        Some(var)
    }

    pub fn last_mut(&mut self) -> Option<&mut Var> {
        self.all.last_mut()
    }

    /// The places of all variables of a name, the latest last.
    pub fn places(&self, name: &str) -> SmallVec<[usize; 1]> {
        self.places.get(name).cloned().unwrap_or_default()
    }

    /// The place of the latest variable of a name.
    pub fn place(&self, name: &str) -> Option<usize> {
        self.places.get(name)?.last().copied()
    }

    pub fn at(&self, place: usize) -> &Var {
        &self.all[place]
    }

    pub fn find(&self, name: &str) -> Option<&Var> {
        self.place(name).map(|at| &self.all[at])
    }

    /// Not for its value: `set` changes that.
    pub fn find_mut(&mut self, name: &str) -> Option<&mut Var> {
        self.place(name).map(|at| &mut self.all[at])
    }

    pub fn ask(&mut self, place: usize, asked: Asked) {
        let before = std::mem::replace(&mut self.all[place].asked, asked);
        self.asked.push((place, before));
    }

    /// The state of what conditions ask for.
    pub fn asks(&self) -> Mark {
        Mark { changes: self.asked.len(), len: self.all.len() }
    }

    pub fn unask(&mut self, mark: &Mark) {
        while self.asked.len() > mark.changes
            && let Some((place, before)) = self.asked.pop()
        {
            if place < mark.len.min(self.all.len()) {
                self.all[place].asked = before;
            }
        }
    }

    pub fn set(&mut self, place: usize, value: Value) {
        let before = std::mem::replace(&mut self.all[place].value, value);
        if self.marks > 0 {
            self.before.push((place, before));
        }
    }

    /// Changes all values.
    pub fn set_all(&mut self, change: impl Fn(&Var) -> Value) {
        for place in 0..self.all.len() {
            let value = change(&self.all[place]);
            self.set(place, value);
        }
    }

    pub fn mark(&mut self) -> Mark {
        self.marks += 1;
        Mark { changes: self.before.len(), len: self.all.len() }
    }

    /// Undoes all changes of values since a mark; gives the values that they led to.
    pub fn back(&mut self, mark: Mark) -> Changed {
        self.marks -= 1;
        let mut changed = Changed::new();
        for (place, before) in self.before.drain(mark.changes..).rev() {
            if place < mark.len.min(self.all.len()) {
                let after = std::mem::replace(&mut self.all[place].value, before);
                changed.entry(place).or_insert(after);
            }
        }
        changed
    }

    /// What holds after one of two branches, which change these values.
    pub fn joined(&self, one: &Changed, other: &Changed) -> Changed {
        let value = |of: &Changed, place: usize| of.get(&place).unwrap_or(&self.all[place].value).clone();
        let places = one.keys().chain(other.keys());
        places.map(|&place| (place, value(one, place).join(&value(other, place)))).collect()
    }

    pub fn put(&mut self, changed: Changed) {
        changed.into_iter().for_each(|(place, value)| self.set(place, value));
    }
}
