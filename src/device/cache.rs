//! The caching allocator.
