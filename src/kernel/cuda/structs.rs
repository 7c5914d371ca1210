//! Structs that a launch passes by value: one text makes the Rust struct and the CUDA struct.

/// The CUDA side of some structs.
pub struct Structs {
    /// As `#include` names it.
    pub header: &'static str,
    pub text: &'static str,
    pub layouts: &'static [Layout],
}

/// How Rust lays out a struct, for the test that compares it with the C++ compiler's.
pub struct Layout {
    pub name: &'static str,
    pub bytes: usize,
    /// Names and offsets in bytes.
    pub fields: &'static [(&'static str, usize)],
}
