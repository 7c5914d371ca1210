//! Windows are carried out, copies made, and values read.

pub mod ahead;
pub mod host;
pub mod host_access;
pub mod transfer;
