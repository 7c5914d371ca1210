//! Floor 5: the only floor that knows Rhai.

pub mod arguments;
pub mod assemble;
pub mod bind;
pub mod checks;
pub mod compare;
pub mod convert;
pub mod entry;
pub mod error;
pub mod exchange;
pub mod hooks;
pub mod host;
pub mod index;
pub mod inspect;
pub mod lasting;
pub mod layers;
pub mod literal;
pub mod loader;
pub mod look;
pub mod machine;
pub mod modules;
pub mod natives;
pub mod optimise;
pub mod outline;
pub mod progress;
pub mod properties;
pub mod raise;
pub mod session;
pub mod show;
pub mod source;
pub mod stack;
pub mod storage;
pub mod value;

pub use rhai::Dynamic;
