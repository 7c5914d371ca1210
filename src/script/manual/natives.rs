//! Entries of the native functions that are not rows of the op table, and of the properties of tensors. Those of
//! devices are in `devices.rs`.

use super::{Page, Sample};
use crate::base::signature::Signature;
use ::std::collections::HashMap;
use ::std::sync::{LazyLock, OnceLock};
use smallvec::SmallVec;

/// The syntactic form of a native.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    Function,
    /// Of a tensor: `x.item()`.
    Method,
    /// Of another type, with the name that its help pages use: `model.train()`, `s.wait_stream(t)`.
    Of(&'static str),
    /// Of a tensor.
    Property,
    PropertyOf(&'static str),
    /// A keyword of the language.
    Syntax,
    /// A keyword of the language that takes a block after its arguments.
    Block,
}

impl Form {
    /// How many values come before the parameters: one for a method.
    pub fn receivers(self) -> usize {
        matches!(self, Form::Method | Form::Of(_)) as usize
    }
}

/// A native function or property.
pub struct Native {
    pub name: &'static str,
    pub form: Form,
    /// Its signature (`base/signature.rs`), by which it is registered; for a property and for `import`, the syntax.
    pub call: &'static str,
    pub summary: &'static str,
    /// An example that runs, or an empty string.
    pub example: &'static str,
    pub result: &'static str,
}

impl Native {
    /// How it is called, with what precedes its name.
    pub fn written(&self) -> String {
        match self.signature() {
            Some(signature) if signature.name == self.name && self.name.contains("::") => signature.text.clone(),
            signature => self.with_owner(signature.map_or(self.call, |signature| &signature.text)),
        }
    }

    fn with_owner(&self, call: &str) -> String {
        match self.form {
            Form::Method | Form::Property => format!("x.{call}"),
            Form::Of(owner) | Form::PropertyOf(owner) => format!("{owner}.{call}"),
            Form::Block => format!("{call} {{ ... }}"),
            Form::Function | Form::Syntax => match self.name.split_once("::") {
                Some((module, _)) => format!("{module}::{call}"),
                None => call.to_string(),
            },
        }
    }

    /// Its parameters; none for a property.
    pub fn signature(&self) -> Option<&'static Signature> {
        let entry = BY_NAME.get(self.name)?.iter().find(|entry| entry.native.call == self.call)?;
        entry.signature.get_or_init(|| self.read_signature()).as_ref()
    }

    fn read_signature(&self) -> Option<Signature> {
        let mut signature = Signature::parse(self.call)?;
        if let Some((module, _)) = self.name.split_once("::") {
            signature.text = format!("{module}::{}", signature.text);
            signature.name = self.name.to_string();
        }
        Some(signature)
    }

    pub fn page(&self) -> Page {
        let call = self.with_owner(self.call);
        let sample = Sample { code: self.example.to_string(), result: self.result.to_string() };
        Page {
            name: self.name.to_string(),
            calls: vec![call],
            summary: self.summary.to_string(),
            details: String::new(),
            examples: if self.example.is_empty() { Vec::new() } else { vec![sample] },
        }
    }
}

pub const fn entry(
    form: Form,
    name: &'static str,
    call: &'static str,
    summary: &'static str,
    example: &'static str,
    result: &'static str,
) -> Native {
    Native { name, form, call, summary, example, result }
}

/// All entries, by the chapters of the reference: a short name, a title, the entries.
pub const CHAPTERS: &[(&str, &str, &[Native])] = &[
    ("tensors", "Tensors, files and the script", NATIVES),
    ("modules", "Modules, loaders, optimizers and generators", super::modules::MODULES),
    ("values", "Plain values", super::plain::PLAIN),
    ("methods", "Methods of plain values", super::methods::METHODS),
    ("devices", "Devices, streams and events", super::devices::DEVICES),
    ("cuda", "The module cuda", super::devices::CUDA),
    ("func", "The module func", super::transforms::FUNC),
    ("sparse", "Sparse tensors", super::sparse::SPARSE),
    ("re", "The module re", super::plain::RE),
    ("unicodedata", "The module unicodedata", super::plain::UNICODEDATA),
];

/// Modules of natives and operations, which need no import.
pub const MODULES: &[&str] =
    &["autograd", "cuda", "fft", "func", "re", "signal", "signal::windows", "sparse", "unicodedata"];

/// What a module of natives or operations has, without the module's name.
pub fn of_module(module: &str) -> impl Iterator<Item = &'static str> {
    let rows = crate::op::table::all().filter(|op| op.call != crate::op::row::CallForm::Internal);
    let names = natives().map(|native| native.name).chain(rows.map(|op| op.name));
    names.filter_map(move |name| {
        let (space, name) = name.rsplit_once("::")?;
        (space == module).then_some(name)
    })
}

/// All entries.
pub fn natives() -> impl Iterator<Item = &'static Native> {
    CHAPTERS.iter().flat_map(|(_, _, natives)| natives.iter())
}

/// A native, and what it takes once somebody has asked.
struct Entry {
    native: &'static Native,
    signature: OnceLock<Option<Signature>>,
}

/// In the order of the chapters: several natives may have one name.
static BY_NAME: LazyLock<HashMap<&'static str, SmallVec<[Entry; 1]>>> = LazyLock::new(|| {
    let mut by_name: HashMap<&'static str, SmallVec<[Entry; 1]>> = HashMap::new();
    for native in natives() {
        by_name.entry(native.name).or_default().push(Entry { native, signature: OnceLock::new() });
    }
    by_name
});

/// The first entry of a name that can be called, or the first entry: `synchronize` is a function before it is a method,
/// `device` a function before it is a property. None where an operation has the name, and another type a method:
/// `split`.
pub fn native(name: &str) -> Option<&'static Native> {
    let named = BY_NAME.get(name)?;
    if named.iter().all(|entry| matches!(entry.native.form, Of(_) | PropertyOf(_))) && super::find(name).is_some() {
        return None;
    }
    let callable = || named.iter().filter(|entry| entry.native.signature().is_some());
    let function = callable().find(|entry| entry.native.form == Function);
    let found = function.or_else(|| callable().next()).or(named.first());
    found.map(|entry| entry.native)
}

/// The entry of a method or property of a type, by the name that pages give its values: `x` for a tensor, `xs` for an
/// array.
pub fn member(owner: &str, name: &str) -> Option<&'static Native> {
    let is = |form: Form| match form {
        Of(of) | PropertyOf(of) => of == owner,
        Method | Property => owner == "x",
        Function | Syntax | Block => false,
    };
    BY_NAME.get(name)?.iter().map(|entry| entry.native).find(|native| is(native.form))
}

/// Methods and properties of a type other than tensors; methods end with a parenthesis.
pub fn members_of(owner: &str) -> Vec<String> {
    let own = natives().filter_map(|native| match native.form {
        Of(known) if known == owner => Some(format!("{}(", native.name)),
        PropertyOf(known) if known == owner => Some(native.name.to_string()),
        _ => None,
    });
    own.collect()
}

use Form::{Block, Function, Method, Of, Property, PropertyOf, Syntax};

/// In the order of the reference; `Form` says how each is written.
#[rustfmt::skip]
const NATIVES: &[Native] = &[
    entry(Function, "tensor", "tensor(data, *, dtype: (), device: (), requires_grad: false, pin_memory: false) -> tensor",
        "A tensor of numbers, nested arrays, or tensors.", "tensor([[1, 2], [3, 4]])", "tensor([[1, 2],\n        [3, 4]])"),
    entry(Method, "new_tensor", "new_tensor(data, *, dtype: (), device: (), requires_grad: false, pin_memory: false) -> tensor",
        "A tensor of `data` with the dtype and device of `x`.", "ones([1]).new_tensor([1, 2])", "tensor([1., 2.])"),
    entry(Function, "load", "load(path, device: (), *, dtype: (), columns: false, map_location: ())",
        "A tensor or a map of tensors from a .safetensors, .npy, .npz, .csv, .png or .jpg file, on the default device; a string from a .txt file. `map_location` is PyTorch's name of `device`. The numbers of a table are read as what they become: `#{dtype: \"f64\"}`; its first line is a header if none of its cells is a number, and with `columns` if not all of them are.", "", ""),
    entry(Function, "save", "save(path, value)",
        "Writes a tensor, a map of tensors or a string; the file extension selects the format, and `.safetensors` holds nested maps and arrays, numbers, strings and `()`, too. The file is whole or as it was. Waits for the tensors; the file is written while the script goes on, and an error is told at the next `save`, `load` or `synchronize()`, or at the end.", "", ""),
    entry(Function, "show", "show(image, *, file: ())",
        "Draws an image tensor in the terminal or notebook: [H, W], [H, W, 3 or 4], or [3, H, W]; `file` saves it as png instead.", "", ""),
    entry(Function, "plot", "plot(x, y?, *, file: (), points: false, title: \"\")",
        "Draws the curve of `y` over `x` (over its index when there is one argument) in the terminal or notebook; `file` saves it as png instead.", "", ""),
    entry(Function, "set_default_dtype", "set_default_dtype(dtype)", "The dtype of float literals and factories from now on.", "set_default_dtype(\"f64\"); ones([1]).dtype", "f64"),
    entry(Function, "get_default_dtype", "get_default_dtype() -> dtype", "The dtype of float literals and factories.", "get_default_dtype()", "f32"),
    entry(Function, "manual_seed", "manual_seed(seed)", "Starts the random generator anew.", "manual_seed(1); let a = rand([2]); manual_seed(1); equal(a, rand([2]))", "true"),
    entry(Function, "no_grad", "no_grad(closure)", "Calls the closure without recording for gradients; gives its value.", "no_grad(|| ones([1], #{requires_grad: true}) * 2).requires_grad", "false"),
    entry(Function, "enable_grad", "enable_grad(closure)", "Calls the closure with recording for gradients, inside `no_grad` too.", "no_grad(|| enable_grad(|| is_grad_enabled()))", "true"),
    entry(Function, "is_autocast_enabled", "is_autocast_enabled(device_type: ()) -> bool", "Whether calls are cast here: on one kind of devices, or on any.", "is_autocast_enabled()", "false"),
    entry(Function, "get_autocast_dtype", "get_autocast_dtype(device_type) -> dtype", "The 16-bit dtype of `autocast` for a kind of devices.", "get_autocast_dtype(\"cuda\")", "f16"),
    entry(Function, "is_autocast_cache_enabled", "is_autocast_cache_enabled() -> bool", "Whether `autocast` keeps the casts of weights.", "is_autocast_cache_enabled()", "true"),
    entry(Function, "clear_autocast_cache", "clear_autocast_cache()", "Drops the casts of weights that `autocast` keeps; the end of the outermost block does, too.", "", ""),
    entry(Function, "set_grad_enabled", "set_grad_enabled(on, closure?)", "Whether operations are recorded for gradients from now on; with a closure or a block only there.", "set_grad_enabled(false) { ones([1], #{requires_grad: true}) * 2 }.requires_grad", "false"),
    entry(Function, "inference_mode", "inference_mode(closure)", "As `no_grad`; tensors that are made inside stay out of the gradient graph for good.", "inference_mode(|| ones([1])).is_inference()", "true"),
    entry(Function, "is_inference_mode_enabled", "is_inference_mode_enabled() -> bool", "Whether this is inside `inference_mode`.", "is_inference_mode_enabled()", "false"),
    entry(Function, "detect_anomaly", "detect_anomaly(closure)", "Calls the closure; a backward inside that computes NaN is an error at the operation whose gradient it is. Waits for each step.", "", ""),
    entry(Function, "checkpoint", "checkpoint(function, *args)", "Calls a function or module without keeping what its gradient needs: backward runs it again, with the same random numbers unless `preserve_rng_state: false`.", "let x = tensor(3.0, #{requires_grad: true}); checkpoint(|x| (x * x).exp(), x * 0).backward(); x.grad", "tensor(0.)"),
    entry(Function, "is_grad_enabled", "is_grad_enabled() -> bool", "Whether operations are recorded for gradients.", "is_grad_enabled()", "true"),
    entry(Function, "grad", "grad(outputs, inputs, grad_outputs: (), *, retain_graph: (), create_graph: false, only_inputs = true, allow_unused: (), is_grads_batched: false, materialize_grads: false)",
        "The gradients of the outputs' sum with respect to each input, as an array. With `is_grads_batched` those for each of many `grad_outputs`, which lie along a first dim, as `vmap` does.", "let x = tensor(3.0, #{requires_grad: true}); grad(x * x, [x])[0]", "tensor(6.)"),
    entry(Function, "elementwise", "elementwise(params, operation, backward: ())",
        "A function that computes each element by a text: `params` names inputs and results, `operation` assigns the results with C's operators. It is fused like single operations and has their gradients, or those that `backward` assigns: `gx` for an input `x`, from `g` (`gz` for a result `z`).",
        "let f = elementwise(\"x, y -> z\", \"z = x > 0 ? x * y + 1 : y\"); f(tensor([1.0, -2.0]), 3)", "tensor([4., 3.])"),
    entry(Function, "autograd::grad", "grad(outputs, inputs, grad_outputs: (), *, retain_graph: (), create_graph: false, only_inputs = true, allow_unused: (), is_grads_batched: false, materialize_grads: false)",
        "As `grad`.", "let x = tensor([1.0, 2.0], #{requires_grad: true}); autograd::grad(x * x, x, eye(2), #{is_grads_batched: true})[0]", "tensor([[2., 0.],\n        [0., 4.]])"),
    entry(Function, "autograd::backward", "backward(tensors, grad_tensors: (), retain_graph: (), create_graph: false, inputs: ())",
        "Adds the gradients of all tensors to `.grad` of every leaf that they were made of, or of `inputs` alone; `grad_tensors` has a factor for each, `()` for 1.", "let x = tensor(3.0, #{requires_grad: true}); autograd::backward([x * x, x * 2]); x.grad", "tensor(8.)"),
    entry(Function, "autograd::function", "function(parts)",
        "An operation with a gradient of its own, from `#{forward: |ctx, x| .., backward: |ctx, g| ..}`; called as `f(x)`. `ctx` carries `save_for_backward(..)` to `saved_tensors`, and any field; backward gives a gradient for each argument, `()` for none.",
        "let f = autograd::function(#{forward: |ctx, x| { ctx.save_for_backward(x); x * x }, backward: |ctx, g| ctx.saved_tensors[0] * g * 2}); let x = tensor(3.0, #{requires_grad: true}); f(x).backward(); x.grad", "tensor(6.)"),
    entry(Of("ctx"), "save_for_backward", "save_for_backward(*tensors)", "Keeps tensors for backward, where they are `ctx.saved_tensors`; in `forward` of `autograd::function`.", "", ""),
    entry(Of("ctx"), "mark_non_differentiable", "mark_non_differentiable(*tensors)", "No gradient flows to these results of `forward` of `autograd::function`.", "", ""),
    entry(Of("ctx"), "set_materialize_grads", "set_materialize_grads(on)", "Whether backward of `autograd::function` gets zeros (as at first) or `()` for results that got no gradient.", "", ""),
    entry(Function, "slice", "slice(start?, stop?, step?)", "An index with a step; `()` is an open end.", "arange(6)[slice((), (), 2)]", "tensor([0, 2, 4])"),
    entry(Function, "cell", "cell(value)", "A value behind a handle that all copies share.", "let c = cell(1); c.set(2); c.get()", "2"),
    entry(Of("c"), "get", "get()", "The value in a cell.", "cell(5).get()", "5"),
    entry(PropertyOf("c"), "value", "value", "The value in a cell, as a place: what it leads to is read and changed where it stands.", "let c = cell([1]); c.value.push(2); c.value[0] = 5; c.value", "[5, 2]"),
    entry(Of("c"), "set", "set(value)", "Puts a value into a cell.", "let c = cell(1); c.set(2); c.get()", "2"),
    entry(Function, "exit", "exit(status?)", "Ends the script; its exit status is from 0 to 255. `catch` does not see it.", "", ""),
    entry(Function, "arg", "arg(name, default)", "The value after `--name` on the command line, with the type of the default.", "arg(\"lr\", 0.1)", "0.1"),
    entry(Function, "flag", "flag(name) -> bool", "Whether `--name` is on the command line.", "flag(\"verbose\")", "false"),
    entry(Function, "progress", "progress(iterable, desc: \"\")", "The same values one by one, with a bar on the error output.", "let s = 0; for i in progress(0..3) { s += i } s", "3"),
    entry(Block, "autocast", "autocast(device_type: (), dtype: (), enabled: true, cache_enabled: ())",
        "Mixed precision inside the block, which has a value; also as `autocast(\"bf16\", || ...)`. Products and convolutions compute in `dtype`, \"bf16\" or \"f16\", what needs the range or the digits in f32: PyTorch's lists. The first argument is a kind of devices, \"cpu\" or \"cuda\", or a dtype for both.",
        "let w = ones([2, 2]); autocast(\"bf16\") { (w @ w).dtype }", "bf16"),
    entry(Syntax, "eval", "eval(text)", "Runs a text as if it stood here; gives its last value.", "eval(\"1 + 2\")", "3"),
    entry(Method, "item", "item()", "The one element as a number. Waits.", "tensor([2.5]).item()", "2.5"),
    entry(Method, "to_array", "to_array()", "The elements as nested arrays. Waits.", "arange(3).to_array()", "[0, 1, 2]"),
    entry(Method, "tolist", "tolist()", "The elements as nested arrays. Waits.", "eye(2).tolist()", "[[1.0, 0.0], [0.0, 1.0]]"),
    entry(Method, "backward", "backward(gradient: (), retain_graph: (), create_graph: false, inputs: ())",
        "Adds the gradients of `x` to `.grad` of every leaf that it was made of, or of `inputs` alone.", "let x = tensor(3.0, #{requires_grad: true}); (x * x).backward(); x.grad", "tensor(6.)"),
    entry(Method, "detach", "detach() -> tensor", "The same memory without a history.", "ones([1], #{requires_grad: true}).detach().requires_grad", "false"),
    entry(Method, "detach_", "detach_() -> tensor", "Takes the tensor itself, which is no view, out of the gradient graph.", "let x = ones([1], #{requires_grad: true}); x.detach_(); x.requires_grad", "false"),
    entry(Method, "requires_grad_", "requires_grad_(on?) -> tensor", "Makes a leaf require gradients, or no longer.", "zeros([1]).requires_grad_().requires_grad", "true"),
    entry(Method, "retain_grad", "retain_grad()", "Keeps the gradient of a tensor that is no leaf, also when it is changed in place afterwards.", "", ""),
    entry(Method, "register_hook", "register_hook(closure)",
        "Calls the closure with the gradient of `x` in each backward, once all of it is there; what it gives, unless `()`, is the gradient from then on. Gives a handle: `h.remove()`.",
        "let x = tensor(3.0, #{requires_grad: true}); x.register_hook(|g| g * 10); (x * x).backward(); x.grad", "tensor(60.)"),
    entry(Method, "register_post_accumulate_grad_hook", "register_post_accumulate_grad_hook(closure)",
        "Calls the closure with a leaf after a backward has added to its `.grad`. Gives a handle: `h.remove()`.",
        "let x = tensor(3.0, #{requires_grad: true}); x.register_post_accumulate_grad_hook(|p| { p.grad *= 2; }); (x * x).backward(); x.grad", "tensor(12.)"),
    entry(Of("h"), "remove", "remove()", "Takes a hook away, of a tensor or of a module.",
        "let x = tensor(3.0, #{requires_grad: true}); let h = x.register_hook(|g| g * 10); h.remove(); (x * x).backward(); x.grad", "tensor(6.)"),
    entry(Method, "to", "to(target?, dtype: (), non_blocking: false, copy: false, *, device: (), memory_format: ())",
        "A tensor of another dtype, on another device or in another order of memory (`memory_format: \"channels_last\"`, \"channels_last_3d\" or \"contiguous_format\"), or `x` itself when it is that already.", "arange(2).to(\"f32\")", "tensor([0., 1.])"),
    entry(Method, "cpu", "cpu() -> tensor", "A copy on the CPU, or `x` itself when it is there.", "ones([1]).cpu().device", "cpu"),
    entry(Method, "cuda", "cuda(device: (), non_blocking: false) -> tensor", "A copy on a CUDA device, on the current one unless another is named; `x` itself when it is there.", "", ""),
    entry(Method, "pin_memory", "pin_memory() -> tensor",
        "A copy in page-locked host memory, from which devices copy while the host goes on; `x` itself when it is there.", "", ""),
    entry(Method, "is_contiguous", "is_contiguous(memory_format: \"contiguous_format\") -> bool", "Whether the elements lie in order without gaps; the order may be \"channels_last\" or \"channels_last_3d\".", "ones([2, 3]).T.is_contiguous()", "false"),
    entry(Method, "is_floating_point", "is_floating_point() -> bool", "Whether the dtype is a float type.", "arange(3).is_floating_point()", "false"),
    entry(Method, "size", "size(dim: ())", "The shape, as `x.shape`, or the size of one dimension.", "ones([2, 3]).size(-1)", "3"),
    entry(Method, "dim", "dim() -> int", "The number of dimensions, as `x.ndim`.", "ones([2, 3]).dim()", "2"),
    entry(Method, "ndimension", "ndimension() -> int", "The number of dimensions, as `x.ndim`.", "ones([2, 3]).ndimension()", "2"),
    entry(Method, "nelement", "nelement() -> int", "The number of elements, as `x.numel`.", "ones([2, 3]).nelement()", "6"),
    entry(Property, "itemsize", "itemsize", "Bytes of one element.", "ones([2]).itemsize", "4"),
    entry(Property, "nbytes", "nbytes", "Bytes of all elements.", "ones([2]).nbytes", "8"),
    entry(Method, "get_device", "get_device() -> int", "The index of the GPU that holds the tensor; -1 for the CPU.", "ones([2]).get_device()", "-1"),
    entry(Property, "is_cpu", "is_cpu", "Whether the tensor is in host memory.", "ones([2]).is_cpu", "true"),
    entry(Property, "is_sparse", "is_sparse", "Whether a tensor is a sparse one of places and values (COO).", "ones([2]).is_sparse", "false"),
    entry(Property, "layout", "layout", "`\"strided\"`; of sparse tensors `\"sparse_coo\"` or `\"sparse_csr\"`.", "ones([2]).layout", "strided"),
    entry(Method, "is_complex", "is_complex() -> bool", "Whether the dtype is complex.", "ones([2]).is_complex()", "false"),
    entry(Method, "is_conj", "is_conj() -> bool", "false: `conj()` computes at once, no view is conjugated when it is read.", "ones([2]).is_conj()", "false"),
    entry(Method, "is_neg", "is_neg() -> bool", "false: no view is negated when it is read.", "ones([2]).is_neg()", "false"),
    entry(Method, "is_inference", "is_inference() -> bool", "Whether the tensor was made in `inference_mode`, and stays out of the gradient graph.", "ones([2]).is_inference()", "false"),
    entry(Function, "ln", "ln(x)", "The natural logarithm of a number, as `log`.", "ln(1)", "0.0"),
    entry(Function, "is_tensor", "is_tensor(value) -> bool", "Whether a value is a tensor.", "is_tensor(3)", "false"),
    entry(Property, "data", "data", "The same elements outside the gradient graph, whose writes it does not see; assigning a tensor gives `x` that one's memory.", "let w = ones([2], #{requires_grad: true}); w.data -= 0.5; w.detach()", "tensor([0.5000, 0.5000])"),
    entry(Property, "retains_grad", "retains_grad", "Whether a tensor that is no leaf keeps its gradient.", "ones([2]).retains_grad", "false"),
    entry(Property, "_version", "_version", "How often the tensor's memory was written in place, through any view of it.", "let x = zeros([2]); x[0] = 1.0; x._version", "1"),
    entry(Property, "grad_fn", "grad_fn", "The name of the operation through which gradients flow back, or `()`.", "(ones([2], #{requires_grad: true}) * 2).grad_fn", "MulBackward0"),
    entry(Function, "promote_types", "promote_types(type1, type2) -> dtype", "The dtype that holds values of both.", "promote_types(\"i64\", \"f16\")", "f16"),
    entry(Function, "result_type", "result_type(tensor1, tensor2) -> dtype", "The dtype of an operation's result on two tensors or numbers.", "result_type(tensor([1, 2]), 1.5)", "f32"),
    entry(Function, "can_cast", "can_cast(from, to) -> bool", "Whether an in-place form may store values of one dtype in another.", "can_cast(\"f32\", \"i64\")", "false"),
    entry(Function, "finfo", "finfo(type: ()) -> map", "What numbers a floating-point dtype has: `bits dtype eps max min resolution smallest_normal tiny`.", "finfo(\"f16\").max", "65504.0"),
    entry(Function, "iinfo", "iinfo(type) -> map", "What numbers a dtype of integers has: `bits dtype max min`.", "iinfo(\"i8\").min", "-128"),
    entry(Function, "broadcast_shapes", "broadcast_shapes(*shapes) -> array", "The shape of an operation's result on tensors of these shapes.", "broadcast_shapes([2, 1], [3])", "[2, 3]"),
    entry(Function, "as_tensor", "as_tensor(data, dtype: (), device: (), *, copy: false) -> tensor", "A tensor as it is if it may stay so; anything else as by `tensor`.", "as_tensor([1, 2])", "tensor([1, 2])"),
    entry(Function, "asarray", "asarray(data, dtype: (), device: (), *, copy: false) -> tensor", "As `as_tensor`.", "asarray([1.5])", "tensor([1.5000])"),
    entry(Function, "set_printoptions", "set_printoptions(precision: (), threshold: (), edgeitems: (), linewidth: (), profile: (), sci_mode: ())",
        "How tensors are printed from now on, where a value is given (at first 4, 1000, 3 and 80); `profile` is \"default\", \"short\" or \"full\".", "set_printoptions(#{precision: 2}); tensor([0.125])", "tensor([0.12])"),
    entry(Function, "initial_seed", "initial_seed() -> int", "The seed of the random generator.", "manual_seed(7); initial_seed()", "7"),
    entry(Function, "seed", "seed() -> int", "Starts the random generator with an unpredictable seed; returns that seed.", "type_of(seed())", "i64"),
    entry(Function, "get_rng_state", "get_rng_state() -> tensor", "The state of the random generator, as a tensor.", "let s = get_rng_state(); let a = rand([2]); set_rng_state(s); equal(a, rand([2]))", "true"),
    entry(Function, "set_rng_state", "set_rng_state(state)", "Puts the random generator where `get_rng_state` found it.", "set_rng_state(get_rng_state())", "()"),
    entry(Method, "element_size", "element_size() -> int", "Bytes of one element.", "ones([2]).element_size()", "4"),
    entry(Method, "storage_offset", "storage_offset() -> int", "Elements before the first one in its buffer.", "arange(5)[2..4].storage_offset()", "2"),
    entry(Method, "stride", "stride(dim: ())", "Elements to skip for one step along each dimension, or along one.", "ones([2, 3]).stride()", "[3, 1]"),
    entry(Method, "data_ptr", "data_ptr() -> int", "The address of the first element. Waits.", "", ""),
    entry(Method, "len", "len() -> int", "Size of the first dimension.", "ones([4, 2]).len()", "4"),
    entry(Property, "shape", "shape", "Sizes of the dimensions.", "ones([2, 3]).shape", "[2, 3]"),
    entry(Property, "ndim", "ndim", "Number of dimensions.", "ones([2, 3]).ndim", "2"),
    entry(Property, "numel", "numel", "Number of elements.", "ones([2, 3]).numel", "6"),
    entry(Property, "dtype", "dtype", "The type of the elements.", "arange(3).dtype", "i64"),
    entry(Property, "device", "device", "Where the tensor is.", "", ""),
    entry(Property, "is_cuda", "is_cuda", "Whether it is on a CUDA device.", "ones([1]).is_cuda", "false"),
    entry(Property, "is_pinned", "is_pinned", "Whether its memory is page-locked.", "ones([1]).is_pinned", "false"),
    entry(Property, "requires_grad", "requires_grad", "Whether operations on it are recorded for gradients; can be set on a leaf.", "ones([1]).requires_grad", "false"),
    entry(Property, "is_leaf", "is_leaf", "Whether it was made by no recorded operation.", "ones([1]).is_leaf", "true"),
    entry(Property, "grad", "grad", "The gradient that `backward` added up, or `()`; can be set.", "ones([1]).grad", "()"),
    entry(Syntax, "print", "print(*values, sep: \" \")", "Prints values, a space between them. Waits.", "", ""),
    entry(Syntax, "import", "import \"nn\" as nn;", "Loads a module: of the standard library (`nn`, `optim`, `amp`, `data`, `distributions`, `metrics`, `prune`, `quantization`, `tensorboard`, `test`), or a file beside the script.", "", ""),
];
