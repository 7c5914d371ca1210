//! The order of work, by queue numbers (the order in which a session's work was queued), and what depends on it.

pub mod cause;
pub mod gate;
pub mod points;
