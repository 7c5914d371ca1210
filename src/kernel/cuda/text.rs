//! The CUDA texts that are part of the program.

/// What `#include "name"` means in a source: names and texts.
pub static HEADERS: &[(&str, &str)] = &[];
