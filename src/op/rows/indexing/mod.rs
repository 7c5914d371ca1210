//! Reading and writing where indices and masks say.

pub mod gather;
pub mod index;
pub mod index_select;
pub mod masks;
