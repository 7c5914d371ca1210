//! Floor 5: the only floor that knows Rhai.

pub mod bind;
pub mod check;
pub mod cuda_api;
pub mod data;
pub mod draw;
pub mod edit;
pub mod embed;
pub mod error;
pub mod format;
pub mod func;
pub mod host;
pub mod inspect;
pub mod language;
pub mod library;
pub mod machine;
#[allow(missing_docs)]
pub mod manual;
pub mod nn;
pub mod session;
pub mod source;
pub mod sparse;
pub mod tensor_api;
pub mod values;

pub use rhai::Dynamic;
