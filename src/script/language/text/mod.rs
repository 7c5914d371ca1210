//! Strings as in Python: formats, pieces, searches, cases, classes of characters, Unicode and regular expressions.
//! Rhai's own `trim`, `replace` and `split` change a string in place, or count otherwise, and stay as they are.

pub(in crate::script::language) mod call;
mod cases;
mod characters;
mod encoding;
pub mod formatted;
pub mod numerals;
mod pad;
pub mod re;
mod search;
mod split;
pub mod unicode;

use crate::script::bind::rows::Natives;
use crate::script::host::Host;
use std::sync::Arc;

pub fn register(natives: &mut Natives, host: &Arc<Host>) {
    formatted::register(natives, host);
    cases::register(natives, host);
    characters::register(natives, host);
    encoding::register(natives, host);
    numerals::register(natives, host);
    pad::register(natives, host);
    search::register(natives, host);
    split::register(natives, host);
    re::register(natives, host);
}
