//! Datasets and loaders.

pub mod collate;
pub mod columns;
pub mod dataset;
pub mod events;
pub mod images;
pub mod loader;
pub mod position;
pub mod prefetch;
pub mod progress;
