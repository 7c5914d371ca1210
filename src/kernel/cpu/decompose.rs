//! decompose
