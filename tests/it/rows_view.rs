//! Views, products and factorizations as scripts see them, where one operation's samples do not reach: several
//! operations in one window, gradients of gradients, handles that change their layout.

use tscript::Session;

fn shown(code: &str) -> String {
    let mut session = Session::builder().output(|_| {}).build().expect("a session");
    let result = session.eval::<rhai::Dynamic>(code).and_then(|value| session.show(&value));
    result.unwrap_or_else(|error| error.code())
}

/// A reduction whose operands other operations of its window load too, or overwrite the places of.
#[test]
fn a_reduction_and_its_gradient_in_one_window() {
    let text = "let x = tensor([[1.0, -2.0], [3.0, 4.0]]); x.requires_grad_();
        let y = x.abs().sum(1); y.backward(tensor([10.0, 20.0])); [y.detach(), x.grad]";
    assert_eq!(shown(text), "[tensor([3., 7.]), tensor([[ 10., -10.],\n        [ 20.,  20.]])]");
    let text = "let x = tensor([[1.0, 2.0], [3.0, 4.0]]); let y = tensor([[1.0, 1.0], [2.0, 2.0]]);
        let g = tensor([10.0, 20.0]).unsqueeze(1).expand([2, 2]);
        let sum = (x * y).sum(1); let z = g * y; [sum, z]";
    assert_eq!(shown(text), "[tensor([ 3., 14.]), tensor([[10., 10.],\n        [40., 40.]])]");
}

#[test]
fn gradients_of_gradients_of_products() {
    // f = sum((a @ b)^2); its second derivative along a of the gradient's sum, by hand for 1 by 1 matrices.
    let text = "let a = tensor([[3.0]]); a.requires_grad_(); let b = tensor([[5.0]]);
        let f = ((a @ b) * (a @ b)).sum(); f.backward(#{create_graph: true});
        let g = a.grad; a.grad = (); g.sum().backward(); a.grad.item()";
    assert_eq!(shown(text), "50.0");
}

#[test]
fn layouts_change_in_place() {
    let text = "let x = tensor([[1, 2, 3]]); let y = x; x.t_(); y.squeeze_(); [x.shape, y.shape]";
    assert_eq!(shown(text), "[[3], [3]]");
    let text = "let x = ones([1, 2], #{requires_grad: true}); x.squeeze_()";
    assert_eq!(shown(text), "E0702");
    let text = "let x = ones([1, 2], #{requires_grad: true}); let y = x * 3; y.squeeze_(); y.sum().backward(); x.grad";
    assert_eq!(shown(text), "tensor([[3., 3.]])");
}

#[test]
fn views_write_through() {
    let text = "let x = zeros([2, 2]); x.diagonal().fill_(1.0); x.T[0].add_(5.0); x";
    assert_eq!(shown(text), "tensor([[6., 0.],\n        [5., 1.]])");
    let text = "let x = ones([4], #{requires_grad: true}); let y = x * 1; y.unfold(0, 2, 1)[0].mul_(3.0);
        y.sum().backward(); x.grad";
    assert_eq!(shown(text), "tensor([3., 3., 1., 1.])");
}

#[test]
fn overlapping_layouts_share_their_gradient() {
    // PyTorch 2.15: x.expand(3).as_strided((3,), (0,)) with weights.
    let text = "let x = tensor([2.0], #{requires_grad: true});
        let y = x.expand([3]).as_strided([3], [0]); (y * tensor([1.0, 2.0, 3.0])).sum().backward(); x.grad";
    assert_eq!(shown(text), "tensor([6.])");
}

/// Late faults name the line that queued them, and poison only what depends on them.
#[test]
fn singular_matrices_are_found_late() {
    assert_eq!(shown("let x = inv(zeros([2, 2])); x.sum().item()"), "E0406");
    let text = "let x = inv(zeros([2, 2])); let y = ones([1]); let code = \"\";
        try { print(x); } catch (e) { code = e.code; } [code, y]";
    assert_eq!(shown(text), "[\"E0406\", tensor([1.])]");
}
