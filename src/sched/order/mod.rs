//! Who comes after whom, by places in the order of queueing, and what that decides.

pub mod gate;
