//! Panics that are caught and become errors: the program's panic hook, which would print them, is not called.

use std::cell::Cell;
use std::panic;
use std::sync::Once;

thread_local! {
    static CAUGHT: Cell<bool> = const { Cell::new(false) };
}

/// From now on panics inside [`during`] are quiet. The previous hook is called for all others.
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

/// Runs `work`, whose panics the caller catches. Cost: two stores.
#[inline(always)]
pub fn during<R>(work: impl FnOnce() -> R) -> R {
    let _restore = Restore(CAUGHT.replace(true));
    work()
}
