//! Floor 0: the basic types that every other floor uses. No I/O, no `unsafe`, no clock.

pub mod arithmetic;
pub mod attr;
pub mod bytes;
pub mod code;
pub mod device_id;
pub mod diag;
pub mod dtype;

pub mod explain;
pub mod float_functions;
pub mod float_text;
pub mod layout;
pub mod limits;
pub mod number_hash;
pub mod order;
pub mod packed;
pub mod print;
pub mod quiet;
pub mod quoted;
pub mod rng;
pub mod signature;
pub mod size_text;
pub mod span;
pub mod suggest;
