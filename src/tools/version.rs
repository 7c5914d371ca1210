//! `tscript --version`: which program this is.

use crate::script::inspect::machine::{vector_level, vector_levels};

/// `0.1.0 (8d614a03f1c2 2026-11-28)`; a build for development has no commit, since its sources change faster.
pub fn short() -> String {
    match option_env!("TSCRIPT_BUILD_COMMIT").filter(|commit| !commit.is_empty()) {
        Some(commit) => format!("{} ({commit})", env!("CARGO_PKG_VERSION")),
        None => env!("CARGO_PKG_VERSION").to_string(),
    }
}

/// With what the program is made of.
pub fn long() -> String {
    let features: Vec<&str> = FEATURES.iter().filter(|(_, built)| *built).map(|(name, _)| *name).collect();
    let levels = vector_levels().join(", ");
    format!(
        "tscript {}\nfeatures: {}\nvectors:  {levels}; here {}\ntarget:   {}, {}",
        short(),
        features.join(", "),
        vector_level(),
        env!("TSCRIPT_BUILD_TARGET"),
        if cfg!(debug_assertions) { "for development" } else { "optimized" },
    )
}

/// The features of `Cargo.toml`, and whether they are built.
pub const FEATURES: &[(&str, bool)] =
    &[("cli", cfg!(feature = "cli")), ("cuda", cfg!(feature = "cuda")), ("ndarray", cfg!(feature = "ndarray"))];
