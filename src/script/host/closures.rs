//! The compiled closures of a session by their names, so that a text calls those of another without a detour.

use parking_lot::RwLock;
use rhai::ImmutableString;
use std::any::Any;
use std::collections::HashMap;
use std::sync::{Arc, Weak};

/// Closures as what compiles them knows them. They end with their texts.
#[derive(Default)]
pub struct Closures(RwLock<HashMap<ImmutableString, Weak<dyn Any + Send + Sync>>>);

/// Bound: names that are kept before those of texts that have ended are looked for.
const KEPT: usize = 4096;

impl Closures {
    pub fn keep(&self, name: ImmutableString, closure: Weak<dyn Any + Send + Sync>) {
        let mut all = self.0.write();
        if all.len() >= KEPT && all.len() == all.capacity() {
            all.retain(|_, closure| closure.strong_count() > 0);
        }
        all.insert(name, closure);
    }

    /// Those that take variables along, and how many; `captured` knows the number.
    pub fn captured(&self, captured: impl Fn(&(dyn Any + Send + Sync)) -> usize) -> HashMap<String, usize> {
        let all = self.0.read();
        let counted = all.iter().filter_map(|(name, closure)| Some((name.to_string(), captured(&*closure.upgrade()?))));
        counted.filter(|(_, count)| *count > 0).collect()
    }

    pub fn get(&self, name: &str) -> Option<Arc<dyn Any + Send + Sync>> {
        self.0.read().get(name)?.upgrade()
    }
}
