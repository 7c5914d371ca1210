//! `xs.for_each(|x| ..)`: in Rhai the closure gets the number of the element, in other languages the element (E0112). A
//! warning, once a place, where the parameter does not look like a counter and `this`, the element, is not used.

use crate::base::code;
use crate::base::diag::{Diag, Focus};
use crate::base::span::Origin;
use crate::script::host::Host;
use crate::script::values::raise::site_of;
use rhai::NativeCallContext;

/// Warns once where the closure of the `for_each` that runs takes a number for the element.
pub fn warn(host: &Host, context: &NativeCallContext) {
    let found = host.sources.read().each_counted(site_of(context.call_position()));
    let Some((name, at)) = found else { return };
    if host.lost.lock().insert(at) {
        host.rt.warn(warning(&name, Origin::at(at)));
    }
}

/// The warning for a closure of `for_each`.
pub fn warning(name: &str, at: Origin) -> Box<Diag> {
    Diag::warning(code::COUNTED, format!("`{name}` counts: it is 0, 1, 2, .. in this closure"))
        .label(at, Focus::Call, "`for_each` gives a closure the number of the element, which is `this`")
        .help(format!("write `for {name} in xs {{ .. }}`"))
}
