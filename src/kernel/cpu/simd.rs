//! simd
