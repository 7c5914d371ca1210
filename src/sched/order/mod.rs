//! Who comes after whom, by places in the order of queueing, and what that decides.

pub mod cause;
pub mod gate;
pub mod points;
