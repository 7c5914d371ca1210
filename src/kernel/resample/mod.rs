pub mod cuda;
pub mod host;
pub mod pad;
