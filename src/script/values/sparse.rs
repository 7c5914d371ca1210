//! Sparse tensors as values: the places of elements and their values, which are ordinary tensors.

use crate::op::tensor::Tensor;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether there ever was a sparse tensor: until then calls do not look for one among their values.
static SEEN: AtomicBool = AtomicBool::new(false);

/// Whether any value may be a sparse tensor.
#[inline]
pub fn seen() -> bool {
    SEEN.load(Ordering::Relaxed)
}

/// What every sparse tensor has, so that none is made unnoticed.
#[derive(Clone, Copy)]
pub struct Noted(());

impl Noted {
    /// There is a sparse tensor from now on.
    pub fn new() -> Noted {
        SEEN.store(true, Ordering::Relaxed);
        Noted(())
    }
}

/// `sparse_coo_tensor(indices, values, size)`, or the same with compressed rows or columns.
#[derive(Clone)]
pub struct Sparse {
    /// `[dims, n]`, integers: where each of `n` values is. Of compressed tensors too.
    pub indices: Tensor,
    /// `[n, ..]`; further dims are dense.
    pub values: Tensor,
    pub size: Vec<usize>,
    /// Places are sorted, and each occurs once.
    pub is_coalesced: bool,
    /// Of a CSR tensor: where each row begins, `[rows + 1]`; of a CSC tensor, where each column does.
    pub crow: Option<Tensor>,
    /// Columns are compressed: values are sorted by column.
    pub by_columns: bool,
    pub _noted: Noted,
}

impl Sparse {
    pub fn sparse_dims(&self) -> usize {
        self.indices.shape()[0]
    }

    /// How many values there are.
    pub fn nnz(&self) -> usize {
        self.values.shape()[0]
    }

    pub fn layout(&self) -> &'static str {
        match (self.is_csr(), self.is_csc()) {
            (true, _) => "sparse_csr",
            (_, true) => "sparse_csc",
            _ => "sparse_coo",
        }
    }

    pub fn is_csr(&self) -> bool {
        self.crow.is_some() && !self.by_columns
    }

    pub fn is_csc(&self) -> bool {
        self.crow.is_some() && self.by_columns
    }

    /// Sizes of the dims that `indices` names.
    pub fn sparse_size(&self) -> &[usize] {
        &self.size[..self.sparse_dims()]
    }

    /// The same places with other values.
    pub fn with_values(&self, values: Tensor) -> Sparse {
        Sparse { values, ..self.clone() }
    }

    /// The gradient of a table's rows.
    pub fn of_rows(index: Tensor, values: Tensor, size: Vec<usize>) -> Sparse {
        Sparse {
            indices: index,
            values,
            size,
            is_coalesced: false,
            crow: None,
            by_columns: false,
            _noted: Noted::new(),
        }
    }
}
