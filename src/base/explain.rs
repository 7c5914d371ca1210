//! The long texts of `tscript explain`.
