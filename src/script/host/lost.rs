//! Changes of parameters that nobody sees (E0114): a warning, once a place.

use crate::base::code;
use crate::base::diag::{Diag, Focus};
use crate::base::span::{Origin, Site};
use crate::script::host::Host;

/// The warning, with the message of `tscript check`.
pub fn warning(name: &str, at: Origin) -> Box<Diag> {
    Diag::warning(code::LOST_CHANGE, format!("this change of `{name}` is lost"))
        .label(at, Focus::Call, format!("`{name}` is a copy of what the caller gave, and nothing reads it afterwards"))
        .help(format!("return `{name}` and assign the result: `xs = f(xs)`; what functions share is a `cell(v)`"))
}

/// A change at a name has been made.
pub fn warn(host: &Host, at: Site) {
    if !host.lost.lock().insert(at) {
        return;
    }
    let name = host.sources.read().name(at);
    host.rt.warn(warning(&name, host.origin_at(at)));
}
