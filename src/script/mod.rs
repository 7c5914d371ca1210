//! Floor 5: the only floor that knows Rhai.

pub mod source;
