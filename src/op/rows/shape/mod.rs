//! Views, and copies that only rearrange elements.

pub mod copies;
pub mod copy_forms;
pub mod expanded;
pub mod join;
pub mod rearrange;
pub mod split;
pub mod view;
