//! Values that are accessed with a key instead of a lock: whoever holds the key exclusively has exclusive access,
//! without a locked instruction. A session stores its key with its state, under the one lock that it takes anyway.
//!
//! Knows nothing of what the values are.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicU64, Ordering};

/// Opens the values that belong to it. No two keys have the same number.
pub struct Key(u64);

impl Key {
    pub fn new() -> Key {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Key(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

impl Default for Key {
    fn default() -> Key {
        Key::new()
    }
}

/// A value that belongs to the first key that opens it.
#[derive(Default)]
pub struct Keyed<T> {
    /// The number of the key that it belongs to; 0 until one has opened it.
    key: AtomicU64,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached through `open` alone, which wants the one key that the value belongs to, exclusively
// and for as long as the reference lives; so no two threads have references at a time. A key that goes to another
// thread goes by means that order memory, as `&mut` does everywhere.
unsafe impl<T: Send> Sync for Keyed<T> {}

impl<T> Keyed<T> {
    /// The value; `None` if it belongs to another key.
    #[inline]
    pub fn open<'a>(&'a self, key: &'a mut Key) -> Option<&'a mut T> {
        let known = self.key.load(Ordering::Acquire);
        if known != key.0 && !(known == 0 && self.take(key)) {
            return None;
        }
        // SAFETY: the value belongs to this key, of which there is no second one and which is borrowed exclusively for
        // as long as the reference lives.
        Some(unsafe { &mut *self.value.get() })
    }

    /// Makes the value, which belonged to no key, belong to this one; false if another was faster.
    #[cold]
    fn take(&self, key: &Key) -> bool {
        self.key.compare_exchange(0, key.0, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_belongs_to_the_first_key() {
        let (mut a, mut b) = (Key::new(), Key::new());
        let value: Keyed<Vec<i32>> = Keyed::default();
        value.open(&mut a).expect("nobody's").push(1);
        assert!(value.open(&mut b).is_none());
        value.open(&mut a).expect("its own").push(2);
        assert_eq!(value.open(&mut a), Some(&mut vec![1, 2]));
    }

    #[test]
    fn of_many_threads_one_takes_a_value() {
        let values: Vec<Keyed<u32>> = (0..200).map(|_| Keyed::default()).collect();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let mut key = Key::new();
                    for value in &values {
                        if let Some(count) = value.open(&mut key) {
                            *count += 1;
                        }
                    }
                });
            }
        });
        let counts: Vec<u32> = values.into_iter().map(|value| value.value.into_inner()).collect();
        assert_eq!(counts, [1; 200]);
    }
}
