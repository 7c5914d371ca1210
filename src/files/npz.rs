//! npz
