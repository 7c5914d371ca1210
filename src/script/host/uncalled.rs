//! `opt.step;`: a statement that names a method without calling it has no effect; warns before the text runs.
//!
//! Uses names only. A tensor has no such property, which is an error at run time; a map has its closures.

use crate::base::code;
use crate::base::diag::{Diag, Focus};
use crate::base::span::Origin;
use crate::script::host::Host;
use crate::script::library::texts::files;
use crate::script::manual;
use crate::script::manual::members;
use crate::script::source::Source;

/// Whether a name after a dot is that of a method.
pub fn is_method(name: &str) -> bool {
    // `x.device;` reads a property, although there is also a function `device`.
    if members::of_tensor().iter().any(|known| known == name) {
        return false;
    }
    let [closure, callable] = [format!(" {name}: |"), format!(" {name}: _callable(")];
    members::of_module().iter().any(|known| known.strip_suffix('(') == Some(name))
        || manual::natives().any(|native| native.name == name && native.signature().is_some())
        || files().any(|(_, text)| text.contains(&closure) || text.contains(&callable))
}

/// The warning, with the message of `tscript check`.
pub fn warning(name: &str, at: Origin) -> Box<Diag> {
    Diag::warning(code::LOST, format!("the value of `.{name}` is thrown away"))
        .label(at, Focus::Call, "it is not used")
        .help(format!("a call has parentheses: `.{name}()`"))
}

/// Warns of methods that a new text names without calling them.
pub fn warn(host: &Host, source: &Source) {
    for bytes in source.unused_properties() {
        let name = &source.text[bytes.clone()];
        if is_method(name) {
            host.rt.warn(warning(name, Origin::at(source.site(bytes.start))));
        }
    }
}
