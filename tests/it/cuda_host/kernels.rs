//! Hand-written kernels beside their host twins.
