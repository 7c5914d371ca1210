//! The protocol's own terms: messages, positions, URIs.

pub mod position;
pub mod transport;
pub mod uri;
