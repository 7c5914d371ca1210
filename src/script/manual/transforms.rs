//! The functions of the module `func`: one entry each.

use super::natives::Form::Function;
use super::natives::{Native, entry};

#[rustfmt::skip]
pub const FUNC: &[Native] = &[
    entry(Function, "func::grad", "grad(func, argnums: 0, has_aux: false)",
        "A function that gives the gradient of `func` for the argument `argnums`, or an array of gradients for an array of them. `func` gives a tensor without dimensions; with `has_aux` an array of it and of anything else, which comes along.",
        "func::grad(|x| (x ** 3).sum())(tensor([1.0, 2.0]))", "tensor([ 3., 12.])"),
    entry(Function, "func::grad_and_value", "grad_and_value(func, argnums: 0, has_aux: false)",
        "As `func::grad`; the function gives an array of the gradient and of the value, with `has_aux` of the gradient and `[value, aux]`.",
        "func::grad_and_value(|x| x * x)(tensor(3.0))", "[tensor(6.), tensor(9.)]"),
    entry(Function, "func::vjp", "vjp(func, *primals)",
        "Calls `func` with the primals; an array of its output and of a function that takes a cotangent, in the structure of the output, to an array of its products with the Jacobians. A map `#{has_aux: true}` may follow the primals.",
        "let [y, pull] = func::vjp(|x| x.sin(), tensor([0.0])); pull(ones([1]))", "[tensor([1.])]"),
    entry(Function, "func::jvp", "jvp(func, primals, tangents, *, strict: false, has_aux: false)",
        "Calls `func` with the primals, an array; an array of its output and of the derivative along the tangents. `strict` refuses an output that does not depend on the primals.",
        "func::jvp(|x| x * x, [tensor(3.0)], [tensor(1.0)])", "[tensor(9.), tensor(6.)]"),
    entry(Function, "func::linearize", "linearize(func, *primals)",
        "Calls `func` with the primals; an array of its output and of a function of tangents that gives the derivative along them without calling `func` again.",
        "let [y, push] = func::linearize(|x| x * x, tensor(3.0)); push(tensor(2.0))", "tensor(12.)"),
    entry(Function, "func::jacrev", "jacrev(func, argnums: 0, *, has_aux: false, chunk_size: ())",
        "A function that gives the Jacobian of `func`, by a cotangent for each element of its output; `chunk_size` of them at once, or all. Its shape is that of the output followed by that of the argument.",
        "func::jacrev(|x| x * x)(tensor([1.0, 2.0]))", "tensor([[2., 0.],\n        [0., 4.]])"),
    entry(Function, "func::jacfwd", "jacfwd(func, argnums: 0, has_aux: false, *, randomness: \"error\")",
        "As `func::jacrev`, by a tangent for each element of the argument: for functions whose output has more elements than the argument.",
        "func::jacfwd(|x| stack([x, x * x]))(tensor(3.0))", "tensor([1., 6.])"),
    entry(Function, "func::hessian", "hessian(func, argnums: 0)",
        "A function that gives the second derivatives of `func`: `jacfwd` of `jacrev`.",
        "func::hessian(|x| (x ** 3).sum())(tensor([1.0, 2.0]))", "tensor([[ 6.,  0.],\n        [ 0., 12.]])"),
    entry(Function, "func::vmap", "vmap(func, in_dims: 0, out_dims: 0, randomness: \"error\", *, chunk_size: ())",
        "A function that applies `func` to each sample of its arguments at once. `in_dims` says in which dim the samples of each argument are, nested as the arguments, `()` for what all samples share; `out_dims` where they are in the results. `randomness` is what operations that draw random numbers do: \"error\", \"same\" or \"different\". `chunk_size` maps over so many samples at a time.",
        "func::vmap(|a, b| a.dot(b))(tensor([[1.0, 2.0], [3.0, 4.0]]), ones([2, 2]))", "tensor([3., 7.])"),
    entry(Function, "func::functional_call", "functional_call(module, parameter_and_buffer_dicts, args: (), kwargs: (), *, tie_weights: true, strict: false)",
        "Calls a module with other tensors in place of its own, by name, from a map or an array of maps; the module is as before afterwards. `strict`: all of its tensors must be given.",
        "import \"nn\" as nn; let m = nn::linear(2, 1); func::functional_call(m, #{weight: ones([1, 2]), bias: zeros([1])}, [tensor([1.0, 2.0])])", "tensor([3.])"),
    entry(Function, "func::stack_module_state", "stack_module_state(models)",
        "The parameters and the buffers of modules of one kind, an array of two maps, each tensor stacked: for an ensemble by `func::vmap` over `func::functional_call`.",
        "import \"nn\" as nn; let [params, buffers] = func::stack_module_state([nn::linear(2, 1), nn::linear(2, 1)]); params[\"weight\"].shape", "[2, 1, 2]"),
];
