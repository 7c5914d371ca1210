//! Floor 5: the only floor that knows Rhai.

pub mod bind;
pub mod convert;
pub mod host;
pub mod index;
pub mod properties;
pub mod raise;
pub mod session;
pub mod show;
pub mod source;
pub mod value;
