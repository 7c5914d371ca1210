//! Floor 2: what each operation is. Rows, inference, gradient rules; knows neither devices nor Rhai.

pub mod args;
pub mod autocast;
pub mod batching;
pub mod chapter;
pub mod complex;
pub mod dry_run;
pub mod elementwise;
pub mod emit;
pub mod expr;
pub mod formula;
pub mod infer;
pub mod params;
pub mod row;
pub mod rows;
pub mod signature;
pub mod table;
pub mod tensor;
