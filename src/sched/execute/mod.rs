//! Windows are carried out, copies made, and values read.

pub mod ahead;
pub mod host_access;
mod operands;
pub mod transfer;
pub mod window;
