//! What ran when, and what windows became: for who asks. Changes nothing of what runs.

pub mod timeline;
pub mod trace;
