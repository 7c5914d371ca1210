//! Raw host memory.
