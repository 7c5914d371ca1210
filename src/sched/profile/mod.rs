//! Records when operations ran, and what windows became. Has no influence on execution.

pub mod timeline;
pub mod trace;
