//! Rows of the op table as functions, methods, operators, properties and `x[...]`: from Rhai's values to arguments and back.

pub mod apply;
pub mod array_order;
pub mod callable;
pub mod compare;
pub mod convert;
pub mod index;
pub mod iterate;
pub mod native;
pub mod properties;
pub mod rows;
pub mod signed;
