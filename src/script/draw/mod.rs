//! Pictures and charts as pixels, and both as text for a terminal. Knows neither values nor sessions.

pub mod chart;
pub mod font;
pub mod raster;
pub mod terminal;
