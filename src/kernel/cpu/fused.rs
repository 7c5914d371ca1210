//! fused
