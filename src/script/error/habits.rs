//! Names from Python, and their equivalents here. Names of PyTorch that do not exist on purpose are in `absent.rs`.

/// A name without a receiver or call.
pub(super) fn variable(name: &str) -> Option<&'static str> {
    Some(match name {
        "None" | "null" | "nil" | "undefined" | "NULL" => "the empty value is `()`",
        "True" => "write `true`",
        "False" => "write `false`",
        "self" => "write `this`",
        "pass" => "an empty block is `{ }`",
        "sys" => "script arguments are `args`, `arg(\"lr\", 0.1)` and `flag(\"verbose\")`; `exit(1)` ends a script",
        "os" | "pathlib" | "Path" => {
            "paths are strings: `load(\"data/x.npy\")`, `save(path, x)`; a script sees no other part of the system"
        }
        "json" | "JSON" => "write `to_json(x)` and `parse_json(text)`",
        "Object" => "`m.keys()`, `m.values()` and `m.items()` list what a map has",
        "String" => "a text is written in quotes, `\"a\"`; `str(x)` makes one of a value",
        "Array" | "Vec" => "an array is written `[1, 2]`, the empty one `[]`",
        "HashMap" | "Map" => "a map is written `#{a: 1}`, the empty one `#{}`",
        "random" => "write `rand([2])`, `randint(0, 10, [2])`, `randperm(n)`, `manual_seed(0)`",
        "copy" => DEEPCOPY,
        "time" | "datetime" => "write `let start = timestamp(); .. start.elapsed`, in seconds",
        "pickle" => "write `save(\"model.safetensors\", model.state_dict())` and `load(path)`",
        "plt" | "matplotlib" | "pyplot" => "write `plot(xs, ys, #{file: \"loss.png\"})`, or `show(image)`",
        "pd" | "pandas" => {
            "write `load(\"table.csv\")`, which gives a tensor; `#{columns: true}` gives a map of columns"
        }
        "exit" | "quit" => "write `exit()`, or `exit(1)`",
        "inf" => "write `INF`",
        "nan" => "write `NAN`",
        "pi" => "write `PI`",
        "math" | "Math" | "cmath" => "these functions have no prefix: `sqrt(2.0)`, `PI`",
        "elif" => "write `else if`",
        "lambda" => "write a closure: `|x| x + 1`",
        "console" | "logging" | "logger" => "write `print(x, y)`",
        "transforms" | "torchvision" | "T" => {
            "images are tensors: `load(\"a.png\")` gives [H, W, C], `interpolate` resizes, `x.permute([2, 0, 1])` moves channels"
        }
        "datasets" => "datasets are read from files: `load(path)`, `data::tensors(x, y)`, `data::image_folder(path)`",
        "distributions" => DISTRIBUTIONS,
        "device" => "make it first: `let device = device(\"cuda\");`; a name in quotes does too: `x.to(\"cuda\")`",
        "torch" | "np" | "numpy" | "F" | "functional" | "linalg" | "special" => {
            "operations have no prefix: `randn([2, 3])`, `x.sum()`"
        }
        _ => return None,
    })
}

const DEEPCOPY: &str = "a module has `model.copy()`, a tensor `x.clone()`; arrays and maps are copied by `let`";
const DISTRIBUTIONS: &str =
    "distributions are in a module, in small letters: `import \"distributions\" as dist;`, `dist::normal(0.0, 1.0)`";
const EXCEPTIONS: &str = "what is thrown is any value: `throw \"what is wrong\"`; `catch (e)` has it as `e`";
const TRANSFORMS: &str = "transforms of functions are in the module `func`: `func::vmap(f)(x)`, `func::jacrev(f)(x)`";
const SPECTRA: &str = "Fourier transforms are in the module `fft`: `fft::fft(x)`, `fft::rfft(x)`, `fft::fftfreq(n)`";
const RANGES: &str = "write `0..n`, or `range(0, n, step)`";

/// A function that is called without a receiver.
pub(super) fn function(name: &str) -> Option<&'static str> {
    if name.ends_with("Error") || name.ends_with("Exception") || name == "StopIteration" {
        return Some(EXCEPTIONS);
    }
    Some(match name {
        "vmap" | "jacrev" | "jacfwd" | "hessian" | "vjp" | "jvp" | "linearize" | "grad_and_value"
        | "functional_call" | "stack_module_state" => TRANSFORMS,
        "fft" | "ifft" | "rfft" | "irfft" | "hfft" | "ihfft" | "fft2" | "ifft2" | "rfft2" | "irfft2" | "fftn"
        | "ifftn" | "rfftn" | "irfftn" | "fftfreq" | "rfftfreq" | "fftshift" | "ifftshift" => SPECTRA,
        "xrange" | "irange" => RANGES,
        "length" | "lenght" | "count" => "write `len(xs)`, or `xs.len()`",
        "isinstance" | "type" => "write `type_of(x) == \"...\"`",
        "iter" | "next" => {
            "the first of an array is `xs[0]`, of a loader what `for batch in loader { .. break; }` begins with"
        }
        "deepcopy" => DEEPCOPY,
        "hasattr" => "write `\"name\" in m`",
        "getattr" => "write `m[\"name\"]`, or `m.get(\"name\")`, which gives `()` where it is not",
        "setattr" => "write `m[\"name\"] = value`",
        "callable" => "write `type_of(f) == \"Fn\"`",
        "map" => "write `xs.map(|x| 2 * x)`",
        "filter" => "write `xs.filter(|x| x > 0)`",
        "reduce" => "write `xs.reduce(|sum, x| sum + x, 0)`",
        "tuple" => "an array holds several values: `[1, 2]`",
        "frozenset" => "write `set(xs)`, whose copies are apart",
        "defaultdict" | "OrderedDict" | "Counter" | "namedtuple" | "dataclass" => {
            "a map is written `#{a: 1}`, the empty one `#{}`; `m[k] = m.get(k, 0) + 1` counts"
        }
        "require" | "include" | "__import__" => "write `import \"nn\" as nn;`",
        "parseInt" | "parseFloat" | "Number" => "write `int(text)`, `float(text)`",
        "String" => "write `str(x)`",
        "setTimeout" | "setInterval" | "sleep" => {
            "a script runs from its first line to its last: nothing is done later"
        }
        "Some" | "None" => "a value is used directly, and `()` means none",
        "Ok" | "Err" => "a value is used directly; an error is thrown: `throw \"what is wrong\"`",
        "panic" | "unreachable" | "abort" | "fatal" => "write `throw \"what is wrong\"`",
        "assert_eq" | "assert_equal" | "assertEqual" | "assert_ne" => {
            "write `assert(a == b, \"why\")`; tests have `test::assert_equal(a, b)` after `import \"test\" as test;`"
        }
        "random_split" => "write `data::random_split(dataset, [0.8, 0.2])` after `import \"data\" as data;`",
        "typeof" => "write `type_of(x)`",
        "dict" => "a map is written `#{a: 1}`, the empty one `#{}`",
        "input" => "a script reads no keyboard; its arguments are `args`, `arg(\"lr\", 0.1)` and `flag(\"verbose\")`",
        "open" => "files are read and written whole: `load(path)`, `save(path, x)`",
        "printf" | "println" | "echo" | "puts" | "log_info" => {
            "write `print(x)`; values are inserted in text as `loss ${x:.4f}` between backticks"
        }
        "dir" | "vars" => "`m.keys()` lists what a map has; `:help name` in the REPL shows what a name is",
        "help" => "write `:help sum` in the REPL; `tscript explain E0201` explains an error",
        "tqdm" | "trange" => "write `for batch in progress(loader) { .. }`",
        "array" | "ndarray" => "write `tensor([1, 2])`",
        "expand_dims" => "write `x.unsqueeze(dim)`",
        "choice" => "`randint(0, xs.len(), [n])` draws places with repetition, `randperm(xs.len())` without",
        "read_csv" | "load_csv" | "loadtxt" | "genfromtxt" => {
            "write `load(\"table.csv\")`, which gives a tensor; `#{columns: true}` gives a map of columns"
        }
        "to_categorical" | "get_dummies" => "write `one_hot(labels, classes)`",
        "GradientTape" => "what requires gradients is recorded by itself: `loss.backward()`, then `x.grad`",
        "mean_squared_error" => "write `mse_loss(x, y)`",
        "mean_absolute_error" => "write `l1_loss(x, y)`",
        "sparse_categorical_crossentropy" | "categorical_crossentropy" => {
            "write `cross_entropy(logits, labels)`, which takes values before `softmax`"
        }
        "Variable" => "tensors take part in gradients themselves: `tensor(1.0, #{requires_grad: true})`",
        "Parameter" => "write `tensor(values, #{requires_grad: true})`, or `nn::parameter(values)`",
        "set_seed" | "seed_everything" => "write `manual_seed(0)`",
        "mse" | "MSELoss" => "write `mse_loss(x, y)`, or `nn::mse_loss()`",
        "Normal"
        | "Beta"
        | "Categorical"
        | "Bernoulli"
        | "Uniform"
        | "Gamma"
        | "Dirichlet"
        | "Laplace"
        | "LogNormal"
        | "Exponential"
        | "Poisson"
        | "Binomial"
        | "Geometric"
        | "Cauchy"
        | "StudentT"
        | "Gumbel"
        | "HalfNormal"
        | "VonMises"
        | "MultivariateNormal"
        | "OneHotCategorical"
        | "Independent"
        | "MixtureSameFamily"
        | "TransformedDistribution"
        | "kl_divergence" => DISTRIBUTIONS,
        "random" => "write `rand([2])`",
        "super" => "there are no classes: a map calls what another one holds, `this.base.forward(x)`",
        "clip_grad_norm_" | "clip_grad_value_" => {
            "write `nn::clip_grad_norm_(model.parameters(), 1.0)` after `import \"nn\" as nn;`"
        }
        "Linear" | "Conv2d" | "Sequential" | "ModuleList" | "CrossEntropyLoss" | "BatchNorm2d" | "Dropout"
        | "Embedding" | "LSTM" | "GRU" | "LayerNorm" | "MaxPool2d" | "Flatten" => {
            "layers are in the module `nn`, in small letters: `import \"nn\" as nn;`, `nn::linear(2, 3)`"
        }
        "Adam" | "AdamW" | "SGD" | "RMSprop" | "Adagrad" => {
            "optimizers are in the module `optim`, in small letters: `import \"optim\" as optim;`, `optim::adam(model.parameters(), #{lr: 0.1})`"
        }
        _ => return None,
    })
}

/// A function that people expect in a module of the library.
pub(super) fn of_module(module: &str, name: &str) -> Option<&'static str> {
    Some(match (module, name) {
        ("nn", "dense" | "fc" | "fully_connected" | "affine") => "write `nn::linear(in_features, out_features)`",
        ("nn", "conv") => "write `nn::conv1d`, `nn::conv2d` or `nn::conv3d`",
        ("nn", "batch_norm" | "batch_normalization") => "write `nn::batch_norm1d(features)`, or `2d`, `3d`",
        ("nn", "global_average_pooling2d" | "global_avg_pool2d" | "gap") => "write `nn::adaptive_avg_pool2d(1)`",
        ("nn", "input" | "input_layer") => "a network needs none: its layers say how many features they take",
        ("nn", "mse") => "write `nn::mse_loss()`, or `mse_loss(x, y)`",
        ("nn", "embedding_layer") => "write `nn::embedding(n, dim)`",
        ("data", "mnist" | "cifar10" | "cifar100" | "fashion_mnist" | "imdb" | "iris") => {
            "datasets are read from files: `load(path)`, `data::tensors(x, y)`, `data::image_folder(path)`"
        }
        ("data", "from_array" | "from_tensors" | "from_numpy" | "dataset") => {
            "write `data::tensors(x, y)`, or a map of tensors"
        }
        _ => return None,
    })
}

/// A method that Python's or PyTorch's values of a type have.
pub(super) fn method(owner: &str, name: &str) -> Option<&'static str> {
    Some(match (owner, name) {
        ("array", "length" | "size") | ("map" | "string", "length" | "size") => "write `xs.len()`",
        ("array" | "string", "first") => "write `xs[0]`",
        ("array" | "string", "last") => "write `xs[-1]`",
        ("array" | "string", "includes" | "include") => "write `x in xs`, or `xs.contains(x)`",
        ("array", "at" | "get_unchecked" | "nth") => "write `xs[-1]`; `xs.get(i)` gives `()` where there is none",
        ("array" | "map" | "string", "iter" | "into_iter" | "iter_mut") => {
            "leave it out: `for x in xs`, `xs.map(|x| 2 * x)` and `xs.filter(|x| x > 0)` take the value itself"
        }
        ("array", "collect" | "to_vec" | "toList" | "to_list") => "leave it out: it is an array already",
        ("array" | "map" | "string" | "i64" | "f64", "clone" | "to_owned" | "cloned") => {
            "leave it out: numbers, strings, arrays and maps are copied by `let`"
        }
        ("array" | "map" | "string" | "i64" | "f64", "unwrap" | "expect" | "ok" | "is_some" | "is_none") => {
            "a value is used directly, and `()` means none: `x == ()`, `x ?? 0`"
        }
        ("i64" | "f64", "toFixed" | "toPrecision") => "formats do it: `${x:.2f}`, or `round(x, 2)`",
        ("i64" | "f64", "powi" | "powf" | "pow") => "write `x ** 2`",
        ("array", "add") => "write `xs.push(x)`",
        ("set", "map" | "filter" | "reduce" | "for_each" | "sort" | "reverse" | "index_of" | "join") => {
            "a set becomes an array by `list(s)`, which has this method"
        }
        ("array", "slice") => "write `xs.extract(1..3)`",
        ("array", "concat") => "write `xs + ys`",
        ("array", "fold" | "inject") => "write `xs.reduce(|sum, x| sum + x, 0)`",
        ("array", "remove_at" | "delete" | "del") => "write `xs.remove(i)`, by its number",
        ("array", "mean" | "std" | "shape" | "view" | "reshape" | "to" | "cuda") => {
            "numbers in an array become a tensor by `tensor(xs)`"
        }
        ("module", "clone" | "deepcopy" | "deep_copy") => "write `model.copy()`",
        ("array" | "map", "deepcopy") => "arrays and maps are copied by `let`: `let b = a;`",
        ("map", "setdefault") => "write `if !(key in m) { m[key] = value; }`",
        ("map" | "module", "has_key" | "has" | "contains_key" | "containsKey" | "hasOwnProperty") => {
            "write `\"a\" in m`"
        }
        ("map" | "module", "__call__" | "__init__") => "a module is called by `model.forward(x)`",
        ("map" | "module", "inference") => "write `model.eval()`",
        ("map" | "module", "evaluate" | "score") => {
            "evaluation is a loop: `model.eval(); no_grad { for batch in loader { .. } }`"
        }
        ("map" | "module", "predict" | "predict_proba" | "transform") => "a module is called by `model.forward(x)`",
        ("map" | "module", "get_weights" | "set_weights") => {
            "write `model.state_dict()` and `model.load_state_dict(d)`"
        }
        ("map" | "module", "minimize" | "apply_gradients") => {
            "training is a loop: `opt.zero_grad(); loss.backward(); opt.step();`"
        }
        ("map", "register_buffer") => {
            "a tensor in a module that requires no gradient is one: `model.mean = zeros([3]);`"
        }
        ("map", "groupby" | "head" | "describe" | "merge" | "iterrows") => {
            "there are no data frames: columns are tensors in a map, rows are chosen by masks, `x[mask]`"
        }
        ("map" | "module", "get_lr") => "write `scheduler.get_last_lr()`, or `opt.lr()`",
        ("map" | "module", "freeze") => "write `model.requires_grad_(false)`",
        ("map" | "module", "summary" | "info") => {
            "`print(model)` shows its layers; `model.named_parameters()` lists the shapes"
        }
        ("map" | "module", "named_params") => "write `model.named_parameters()`",
        ("map" | "module", "get_parameters" | "params") => "write `model.parameters()`",
        ("map" | "module", "compile") => {
            "operations are fused without being asked, so there is nothing to compile; training is a loop: \
             `opt.zero_grad(); loss.backward(); opt.step();`"
        }
        ("map" | "module", "fit") => "training is a loop: `opt.zero_grad(); loss.backward(); opt.step();`",
        ("tensor", "map" | "apply") => {
            "write it with operations on the whole tensor, as `x * 2 + 1`, `where(x > 0, x, y)`"
        }
        ("tensor", "gpu") => "write `x.cuda()`",
        ("tensor", "astype") => "write `x.to(\"f32\")`, `x.to(\"i64\")`",
        ("tensor", "ptp") => "write `x.amax() - x.amin()`",
        ("tensor", "head") => "write `x[..5]`",
        ("tensor", "describe") => "write `x.mean()`, `x.std()`, `x.quantile(q)`; `print(x)` shows its elements",
        ("tensor", "to_numpy" | "asnumpy" | "eval") => {
            "`x.to_array()` gives numbers in arrays; `save(\"x.npy\", x)` a file"
        }
        ("tensor", "zero_grad") => {
            "`x.grad = ();` forgets the gradient of one tensor; `opt.zero_grad()` those of a model"
        }
        ("tensor", "zero") => "write `x.zero_()`",
        ("tensor", "save") => "write `save(\"x.npy\", x)`",
        ("tensor", "plot" | "show") => "write `plot(x)`, or `show(x)` for an image",
        ("tensor", "append" | "push" | "extend") => {
            "tensors do not grow: collect them in an array and write `cat(xs)` or `stack(xs)`"
        }
        ("tensor", "length") => "write `x.len()`",
        ("tensor", "requires_grad") => "`x.requires_grad` is a property; `x.requires_grad_()` switches it on",
        ("tensor", "print") => "write `print(x)`",
        ("tensor", "concat" | "cat") => "write `cat([x, y], dim)`",
        ("tensor", "is_cuda") => "`is_cuda` is a property: write it without `()`",
        ("string", "map" | "filter" | "reduce" | "for_each" | "some" | "every") => {
            "walk over its characters: `text.chars().map(|c| c.upper())`"
        }
        ("map", "map" | "filter" | "reduce" | "for_each" | "forEach") => {
            "walk over its keys, values or pairs: `m.values().map(|v| 2 * v)`, `for [key, value] in m.items()`"
        }
        ("string", "substr" | "substring") => "write `text[1..3]`",
        ("string", "reverse") => "write `\"\".join(reversed(text))`",
        ("string", "repeat") => "write `text * n`",
        ("string", "to_int" | "toInt") => "write `int(text)`",
        ("string", "to_float") => "write `float(text)`",
        ("string", "format_map") => "values are inserted in text between backticks: `loss ${x:.4f}`",
        ("()", _) => {
            "the value before the dot is `()`: a function without a value, a gradient that is not there yet, what `get` did not find, or a search that matched nothing"
        }
        ("Fn", "parameters" | "train" | "eval" | "state_dict") => {
            "a closure has none: modules are made by `nn::module(#{ .. })`"
        }
        _ => return None,
    })
}

/// A property of a type that Python's values have.
pub(super) fn property(owner: &str, name: &str) -> Option<&'static str> {
    Some(match (owner, name) {
        ("array" | "string" | "map", "length" | "size") | ("array" | "string", "count") => "write `xs.len()`",
        ("map", "index") => "operations that give places call them `indices`: `x.max(1).indices`",
        ("array" | "string", "first") => "write `xs[0]`",
        ("array" | "string", "last") => "write `xs[-1]`",
        ("array", "shape" | "dtype" | "T" | "device" | "grad" | "ndim") => {
            "numbers in an array become a tensor by `tensor(xs)`"
        }
        ("i64" | "f64", "shape" | "dtype" | "device" | "grad" | "T") => "a number becomes a tensor by `tensor(x)`",
        ("tensor", "length" | "len") => "write `x.len()`, or `x.shape[0]`",
        ("tensor", "ndims" | "rank") => "write `x.ndim`",
        ("tensor", "size") => "write `x.shape`, or `x.size(0)`",
        ("tensor", "loc" | "iloc" | "at" | "iat") => "a tensor is indexed itself: `x[0]`, `x[0, 1..3]`",
        ("device", "name") => "write `cuda::get_device_name(0)`, or `str(x.device)`",
        ("tensor", "memory_format") => "tensors have strides: `x.stride()`, `x.is_contiguous()`",
        ("array", _) if is_argument(name) => {
            "script arguments by name are `arg(\"lr\", 0.1)` and `flag(\"verbose\")`; `args` is the array of all words"
        }
        ("()", _) => {
            "the value before the dot is `()`: a function without a value, a gradient that is not there yet, what `get` did not find, or a search that matched nothing"
        }
        _ => return None,
    })
}

/// Names that people use for their script's arguments.
fn is_argument(name: &str) -> bool {
    matches!(name, "lr" | "epochs" | "batch_size" | "seed" | "device" | "data" | "model" | "path" | "learning_rate")
}
