//! Changes of copies that nobody sees (E0114): a warning, once a place.

use crate::base::code;
use crate::base::diag::{Diag, Focus};
use crate::base::span::{Origin, Site};
use crate::script::host::Host;
use crate::script::source::tree::CopyOf;

/// The warning, with the message of `tscript check`.
pub fn warning(name: &str, of: CopyOf, at: Origin) -> Box<Diag> {
    let (copied, help) = match of {
        CopyOf::Argument => (
            "what the caller gave",
            format!(
                "return `{name}` and assign the result: `xs = f(xs)`; what functions share is a `cell(v)`, changed by `c.value.push(..)`"
            ),
        ),
        CopyOf::Element => (
            "the element",
            format!("assign the changed `{name}` to the element: `for i in 0..xs.len() {{ xs[i] = .. }}`"),
        ),
        CopyOf::Part => (
            "what stands elsewhere",
            format!("change it where it stands, or assign the changed `{name}` to that place: `xs[i] = {name};`"),
        ),
        CopyOf::Result => return of_result(name, at),
    };
    Diag::warning(code::LOST_CHANGE, format!("this change of `{name}` is lost"))
        .label(at, Focus::Call, format!("`{name}` is a copy of {copied}, and nothing reads it afterwards"))
        .help(help)
}

/// The change by a method of what no variable holds.
fn of_result(method: &str, at: Origin) -> Box<Diag> {
    Diag::warning(code::LOST_CHANGE, format!("what `{method}` changes is lost"))
        .label(at, Focus::Call, "it is called on a value that no variable holds")
        .help(format!("change the value where it stands, `m[k].{method}(..)`, or give it a name first: `let xs = ..;`"))
}

/// A change at a name has been made.
pub fn warn(host: &Host, at: Site) {
    if !host.lost.lock().insert(at) {
        return;
    }
    let sources = host.sources.read();
    let (name, of) = (sources.name(at), sources.lost(at).map_or(CopyOf::Argument, |lost| lost.of));
    drop(sources);
    host.rt.warn(warning(&name, of, host.origin_at(at)));
}
