//! A window of recorded nodes, and the plan that it becomes.

pub mod each;
pub mod fuse;
pub mod key;
pub mod known_steps;
pub mod node;
pub mod plan;
pub mod tile_program;
