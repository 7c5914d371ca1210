//! Hand-written kernels: the text of a header specialized by types and numbers, generated once for each combination.

use super::Source;
use crate::base::dtype::DType;
use crate::base::number_hash::ByNumber;
use crate::kernel::fused::cuda::memory_type;
use std::cell::RefCell;
use std::fmt::Write;

/// The value of a macro in a specialized text.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Value {
    /// The memory type of a dtype.
    Type(DType),
    Number(u32),
}

/// Bound: names of a text.
const NAMES: usize = 8;

type Key = (*const u8, [Option<Value>; NAMES]);

thread_local! {
    /// Cost: one look-up for each launch, without a lock; a text has a few dozen bytes and is never freed.
    static SOURCES: RefCell<ByNumber<Key, &'static Source>> = RefCell::default();
}

/// The text that defines names and includes `header`.
pub fn source(header: &'static str, names: &[(&'static str, Value)]) -> &'static Source {
    assert!(names.len() <= NAMES, "{header} has more names than a key holds");
    let mut values = [None; NAMES];
    for (to, (_, value)) in values.iter_mut().zip(names) {
        *to = Some(*value);
    }
    let make = || -> &'static Source {
        // Macros are defined after `base.cuh`, whose templates may have parameters of the same name.
        let mut text = "#include \"common/base.cuh\"\n".to_string();
        for (name, value) in names {
            let _ = match value {
                Value::Type(dtype) => writeln!(text, "typedef {} {name};", memory_type(*dtype)),
                Value::Number(n) => writeln!(text, "static const int {name} = {n};"),
            };
        }
        let _ = writeln!(text, "#include \"{header}\"");
        Box::leak(Box::new(Source::new(text)))
    };
    SOURCES.with(|sources| *sources.borrow_mut().entry((header.as_ptr(), values)).or_insert_with(make))
}
