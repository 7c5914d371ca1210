//! Panics that somebody catches and turns into an error: the program's panic hook, which prints them, with backtraces where
//! asked for, does not hear of them.

use std::cell::Cell;
use std::panic;
use std::sync::Once;

thread_local! {
    static CAUGHT: Cell<bool> = const { Cell::new(false) };
}

/// From now on panics inside [`during`] are quiet. The hook that was there hears of all others.
pub fn install() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let outer = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !CAUGHT.try_with(Cell::get).unwrap_or(false) {
                outer(info);
            }
        }));
    });
}

struct Restore(bool);

impl Drop for Restore {
    fn drop(&mut self) {
        CAUGHT.set(self.0);
    }
}

/// Does what whoever calls catches the panics of. Cost: two stores.
#[inline(always)]
pub fn during<R>(work: impl FnOnce() -> R) -> R {
    let _restore = Restore(CAUGHT.replace(true));
    work()
}
