//! PyTorch's `_copy` forms: the view of the same name, copied to new memory. And its `unsafe_` forms, whose pieces
//! share memory but count as independent tensors in the gradient graph.

use crate::args;
use crate::base::diag::Result;
use crate::op::args::Args;
use crate::op::emit::Emit;
use crate::op::row::{CallForm, Grad, Lower, Op, ex};
use crate::op::rows::shape::view::CLONE;
use crate::op::rows::shape::{rearrange, split, view};
use crate::op::tensor::Tensor;

fn copied(e: &mut dyn Emit, views: Vec<Tensor>) -> Result<Vec<Tensor>> {
    views.iter().map(|view| e.call(&CLONE, args![view])).collect()
}

fn copy_of(e: &mut dyn Emit, op: &'static Op, a: &Args) -> Result<Vec<Tensor>> {
    let views = e.apply(op, a.clone())?;
    copied(e, views)
}

/// `NAME "name" view, "code" => "result", "failing code" => "its error";`
macro_rules! copies {
    ($($NAME:ident $name:literal $view:path, $code:literal => $result:literal, $bad:literal => $error:literal;)*) => {
        $(pub static $NAME: Op = Op {
            name: $name,
            params: $view.params,
            summary: "What the view of the same name without `_copy` gives, as a copy.",
            examples: &[ex($code, $result), ex($bad, $error)],
            lower: Lower::Compose(|e, a| copy_of(e, &$view, a)),
            grad: Grad::Composed,
            results: $view.results,
            call: CallForm::Function,
            ..Op::BASE
        };)*
        /// Copies of views.
        pub static COPIES: &[&Op] = &[$(&$NAME),*];
    };
}

copies! {
    AS_STRIDED_COPY "as_strided_copy" view::AS_STRIDED_CALL, "as_strided_copy(tensor([1, 2, 3]), [2], [2])" => "tensor([1, 3])", "as_strided_copy(ones([2]), [2], [2])" => "E0206";
    DIAGONAL_COPY "diagonal_copy" rearrange::DIAGONAL, "diagonal_copy(tensor([[1, 2], [3, 4]]))" => "tensor([1, 4])", "diagonal_copy(ones([2]))" => "E0209";
    EXPAND_COPY "expand_copy" view::EXPAND, "expand_copy(tensor([1]), [2])" => "tensor([1, 1])", "expand_copy(ones([2]), [3])" => "E0201";
    NARROW_COPY "narrow_copy" rearrange::NARROW, "narrow_copy(tensor([1, 2, 3]), 0, 1, 2)" => "tensor([2, 3])", "narrow_copy(ones([3]), 0, 2, 2)" => "E0207";
    PERMUTE_COPY "permute_copy" rearrange::PERMUTE, "permute_copy(tensor([[1, 2]]), [1, 0])" => "tensor([[1],\n        [2]])", "permute_copy(ones([2]), [1])" => "E0209";
    SELECT_COPY "select_copy" view::SELECT, "select_copy(tensor([[1, 2], [3, 4]]), 0, 1)" => "tensor([3, 4])", "select_copy(ones([2]), 0, 2)" => "E0207";
    SQUEEZE_COPY "squeeze_copy" rearrange::SQUEEZE, "squeeze_copy(tensor([[1]]))" => "tensor(1)", "squeeze_copy(ones([2]), 1)" => "E0209";
    TRANSPOSE_COPY "transpose_copy" rearrange::TRANSPOSE, "transpose_copy(tensor([[1, 2]]), 0, 1)" => "tensor([[1],\n        [2]])", "transpose_copy(ones([2]), 0, 1)" => "E0209";
    T_COPY "t_copy" rearrange::T, "t_copy(tensor([[1, 2]]))" => "tensor([[1],\n        [2]])", "t_copy(ones([1, 1, 1]))" => "E0201";
    UNSQUEEZE_COPY "unsqueeze_copy" view::UNSQUEEZE, "unsqueeze_copy(tensor([1, 2]), 0)" => "tensor([[1, 2]])", "unsqueeze_copy(ones([2]), 3)" => "E0209";
    UNFOLD_COPY "unfold_copy" rearrange::UNFOLD, "unfold_copy(tensor([1, 2, 3]), 0, 2, 1)" => "tensor([[1, 2],\n        [2, 3]])", "unfold_copy(ones([3]), 0, 4, 1)" => "E0206";
    VIEW_COPY "view_copy" view::VIEW, "view_copy(tensor([1, 2]), [2, 1])" => "tensor([[1],\n        [2]])", "view_copy(ones([3]), [2])" => "E0201";
    SPLIT_COPY "split_copy" split::SPLIT, "split_copy(tensor([1, 2, 3]), 2)" => "[tensor([1, 2]), tensor([3])]", "split_copy(ones([3]), 1, 1)" => "E0209";
    SPLIT_WITH_SIZES_COPY "split_with_sizes_copy" split::SPLIT_WITH_SIZES, "split_with_sizes_copy(tensor([1, 2, 3]), [1, 2])" => "[tensor([1]), tensor([2, 3])]", "split_with_sizes_copy(ones([3]), [1, 1])" => "E0206";
    UNBIND_COPY "unbind_copy" split::UNBIND, "unbind_copy(tensor([1, 2]))" => "[tensor(1), tensor(2)]", "unbind_copy(ones([3]), 1)" => "E0209";
}

/// Pieces whose changes gradients do not know of each other.
fn apart(e: &mut dyn Emit, pieces: Vec<Tensor>) -> Vec<Tensor> {
    e.made_apart(&pieces);
    pieces
}

/// `NAME "name" plain form, what it does, "code" => "result", "failing code" => "its error";`
macro_rules! plain {
    ($($NAME:ident $name:literal $plain:path, $pieces:path, $code:literal => $result:literal, $bad:literal => $error:literal;)*) => {
        $(pub static $NAME: Op = Op {
            name: $name,
            params: $plain.params,
            summary: "The same as without `unsafe_`, in pieces that can be changed in place where gradients are recorded: what is written into one is not seen by gradients of the others and of the whole.",
            examples: &[ex($code, $result), ex($bad, $error)],
            lower: Lower::Compose(|e, a| $pieces(e, a).map(|pieces| apart(e, pieces))),
            grad: Grad::Composed,
            results: $plain.results,
            ..Op::BASE
        };)*
        /// Forms whose pieces stand alone.
        pub static UNSAFE: &[&Op] = &[$(&$NAME),*];
    };
}

plain! {
    UNSAFE_CHUNK "unsafe_chunk" split::CHUNK, split::chunk, "unsafe_chunk(tensor([1, 2]), 2)" => "[tensor([1]), tensor([2])]", "unsafe_chunk(ones([3]), 0)" => "E0206";
    UNSAFE_SPLIT "unsafe_split" split::SPLIT, split::split, "unsafe_split(tensor([1, 2, 3]), 2)" => "[tensor([1, 2]), tensor([3])]", "unsafe_split(ones([3]), 1, 1)" => "E0209";
    UNSAFE_SPLIT_WITH_SIZES "unsafe_split_with_sizes" split::SPLIT_WITH_SIZES, split::split_with_sizes, "unsafe_split_with_sizes(tensor([1, 2, 3]), [1, 2])" => "[tensor([1]), tensor([2, 3])]", "unsafe_split_with_sizes(ones([3]), [1, 1])" => "E0206";
}

pub static ALIAS_COPY: Op = Op {
    name: "alias_copy",
    params: view::CLONE.params,
    summary: "A copy.",
    examples: &[ex("alias_copy(tensor([1]))", "tensor([1])")],
    lower: Lower::Compose(|e, a| Ok(vec![e.call(&CLONE, args![a.input()])?])),
    grad: Grad::Composed,
    call: CallForm::Function,
    ..Op::BASE
};

pub static ROWS: &[&Op] = &[&ALIAS_COPY];
