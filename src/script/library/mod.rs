//! The standard library in `std/` as texts: its files, the signatures in them, and which functions a script can
//! reach; and where the modules of users are.

pub mod home;
pub mod reach;
pub mod texts;
