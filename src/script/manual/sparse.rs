//! Sparse tensors: how they are made, their methods, and the module `sparse`.

use super::natives::Form::{Function, Of, PropertyOf};
use super::natives::{Native, entry};

#[rustfmt::skip]
pub const SPARSE: &[Native] = &[
    entry(Function, "sparse_coo_tensor", "sparse_coo_tensor(indices, values: (), size: (), *, dtype: (), device: (), requires_grad: false, check_invariants: (), is_coalesced: ())",
        "A sparse tensor: `values` `[n, ..]` at the places that the columns of `indices` `[dims, n]` name, zeros elsewhere. Values of one place add up. Without `size` it is as large as the largest indices ask for; with a size alone it is all zeros. Indices are checked, which waits, unless `check_invariants` is false.",
        "sparse_coo_tensor([[0, 1], [2, 0]], [3.0, 4.0], [2, 3]).to_dense()", "tensor([[0., 0., 3.],\n        [4., 0., 0.]])"),
    entry(Function, "sparse_csr_tensor", "sparse_csr_tensor(crow_indices, col_indices, values, size: (), *, dtype: (), device: (), requires_grad: false, check_invariants: ())",
        "A sparse matrix with compressed rows: the values of row `i` are those from `crow_indices[i]` to `crow_indices[i + 1]`, in the columns that `col_indices` names.",
        "sparse_csr_tensor([0, 1, 2], [2, 0], [3.0, 4.0], [2, 3]).to_dense()", "tensor([[0., 0., 3.],\n        [4., 0., 0.]])"),
    entry(Of("sparse"), "to_dense", "to_dense()", "An ordinary tensor of the same elements; a tensor that is one gives itself.",
        "sparse_coo_tensor([[1]], [2.0], [3]).to_dense()", "tensor([0., 2., 0.])"),
    entry(Of("sparse"), "to_sparse", "to_sparse(sparse_dim: ())", "The elements of a tensor that are not 0, over its first `sparse_dim` dimensions, or all. Waits for their number.",
        "tensor([0.0, 2.0]).to_sparse().values()", "tensor([2.])"),
    entry(Of("sparse"), "to_sparse_coo", "to_sparse_coo(sparse_dim: ())", "As `to_sparse`.", "tensor([0.0, 2.0]).to_sparse_coo().nnz", "1"),
    entry(Of("sparse"), "to_sparse_csr", "to_sparse_csr()", "A matrix with compressed rows.", "eye(2).to_sparse_csr().crow_indices()", "tensor([0, 1, 2])"),
    entry(Of("sparse"), "coalesce", "coalesce()", "Sorted places, each once: values of one place are added up. Waits for their number.",
        "sparse_coo_tensor([[1, 1]], [2.0, 3.0], [3]).coalesce().values()", "tensor([5.])"),
    entry(Of("sparse"), "is_coalesced", "is_coalesced()", "Whether places are sorted and occur once.", "sparse_coo_tensor([[1, 1]], [2.0, 3.0], [3]).is_coalesced()", "false"),
    entry(Of("sparse"), "sparse_mask", "sparse_mask(mask)", "The values of a tensor at the places of a sparse one.",
        "ones([3]).sparse_mask(sparse_coo_tensor([[1]], [2.0], [3])).to_dense()", "tensor([0., 1., 0.])"),
    entry(Of("sparse"), "indices", "indices()", "The places of a coalesced tensor, `[dims, n]`.", "eye(2).to_sparse().indices()", "tensor([[0, 1],\n        [0, 1]])"),
    entry(Of("sparse"), "values", "values()", "The values of a coalesced tensor, `[n, ..]`.", "eye(2).to_sparse().values()", "tensor([1., 1.])"),
    entry(Of("sparse"), "_indices", "_indices()", "The places as they are stored.", "sparse_coo_tensor([[1, 1]], [2.0, 3.0], [3])._indices()", "tensor([[1, 1]])"),
    entry(Of("sparse"), "_values", "_values()", "The values as they are stored.", "sparse_coo_tensor([[1, 1]], [2.0, 3.0], [3])._values()", "tensor([2., 3.])"),
    entry(Of("sparse"), "_nnz", "_nnz()", "How many values are stored.", "eye(2).to_sparse()._nnz()", "2"),
    entry(Of("sparse"), "sparse_dim", "sparse_dim()", "How many dimensions the places have.", "eye(2).to_sparse().sparse_dim()", "2"),
    entry(Of("sparse"), "dense_dim", "dense_dim()", "How many dimensions each value has.", "eye(2).to_sparse(1).dense_dim()", "1"),
    entry(Of("sparse"), "crow_indices", "crow_indices()", "Where each row of a CSR tensor begins.", "eye(2).to_sparse_csr().crow_indices()", "tensor([0, 1, 2])"),
    entry(Of("sparse"), "col_indices", "col_indices()", "The column of each value of a CSR tensor.", "eye(2).to_sparse_csr().col_indices()", "tensor([0, 1])"),
    entry(PropertyOf("sparse"), "nnz", "nnz", "How many values are stored.", "eye(2).to_sparse().nnz", "2"),
    entry(PropertyOf("sparse"), "is_sparse_csr", "is_sparse_csr", "Whether rows are compressed.", "eye(2).to_sparse_csr().is_sparse_csr", "true"),
    entry(Function, "sparse::mm", "mm(mat1, mat2)", "The product of a sparse matrix and a dense one, as `mat1 @ mat2`.",
        "sparse::mm(eye(2).to_sparse(), ones([2, 1]))", "tensor([[1.],\n        [1.]])"),
    entry(Function, "sparse::addmm", "addmm(mat, mat1, mat2, *, beta: 1, alpha: 1)", "`beta * mat + alpha * (mat1 @ mat2)`, where `mat1` is sparse.",
        "sparse::addmm(ones([2, 1]), eye(2).to_sparse(), ones([2, 1]))", "tensor([[2.],\n        [2.]])"),
    entry(Function, "sparse::sum", "sum(input, dim: ())", "The sum of a sparse tensor, of all elements or over some dimensions: sparse, unless no sparse dimension is left.",
        "sparse::sum(eye(2).to_sparse(), 0).to_dense()", "tensor([1., 1.])"),
];
