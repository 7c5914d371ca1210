//! The long texts of `tscript explain`: what a code means, a script that gets it, and what to do.
//!
//! The first script of a text gets its code, the second runs: `tests/it/explain.rs` runs them all. What a script needs
//! beside itself stands in a comment on its first line: flags, or a setting of a host program.

use super::code::{self, Code};

/// The long text of a code, in Markdown. Every code of `code::ALL` has one.
pub fn explain(code: Code) -> &'static str {
    match code {
        code::SYNTAX => SYNTAX,
        code::UNKNOWN_VARIABLE => UNKNOWN_VARIABLE,
        code::UNKNOWN_FUNCTION => UNKNOWN_FUNCTION,
        code::UNKNOWN_PROPERTY => UNKNOWN_PROPERTY,
        code::SOURCE_TOO_LARGE => SOURCE_TOO_LARGE,
        code::MODULE_NOT_FOUND => MODULE_NOT_FOUND,
        code::CIRCULAR_IMPORT => CIRCULAR_IMPORT,
        code::THROWN => THROWN,
        code::ASSERTION => ASSERTION,
        code::CONSTANT => CONSTANT,
        code::BORROWED => BORROWED,
        code::COUNTED => COUNTED,
        code::UNUSED => UNUSED,
        code::LOST => LOST,
        code::UNREACHABLE => UNREACHABLE,
        code::NEVER_EQUAL => NEVER_EQUAL,
        code::SHAPE => SHAPE,
        code::DTYPE => DTYPE,
        code::UNKNOWN_KEYWORD => UNKNOWN_KEYWORD,
        code::ARGUMENT_TYPE => ARGUMENT_TYPE,
        code::MISSING_ARGUMENT => MISSING_ARGUMENT,
        code::VALUE => VALUE,
        code::INDEX => INDEX,
        code::EXTRA_ARGUMENT => EXTRA_ARGUMENT,
        code::DIM => DIM,
        code::TOO_LARGE => TOO_LARGE,
        code::TRUTH => TRUTH,
        code::AMBIGUOUS_INDEX => AMBIGUOUS_INDEX,
        code::UNKNOWN_DTYPE => UNKNOWN_DTYPE,
        code::ARITHMETIC => ARITHMETIC,
        code::TYPE => TYPE,
        code::DEVICE_MISMATCH => DEVICE_MISMATCH,
        code::UNKNOWN_DEVICE => UNKNOWN_DEVICE,
        code::NO_CUDA => NO_CUDA,
        code::OUT_OF_MEMORY => OUT_OF_MEMORY,
        code::EVENT => EVENT,
        code::STREAM => STREAM,
        code::KERNEL_INDEX => KERNEL_INDEX,
        code::KERNEL_LABEL => KERNEL_LABEL,
        code::KERNEL_PROBABILITY => KERNEL_PROBABILITY,
        code::KERNEL_VALUE => KERNEL_VALUE,
        code::KERNEL_DIVISION => KERNEL_DIVISION,
        code::KERNEL_NOT_POSITIVE => KERNEL_NOT_POSITIVE,
        code::KERNEL_SINGULAR => KERNEL_SINGULAR,
        code::CHECK_NOT_FINITE => CHECK_NOT_FINITE,
        code::DEVICE_LOST => DEVICE_LOST,
        code::KERNEL_CONVERGE => KERNEL_CONVERGE,
        code::LAUNCH_FAILED => LAUNCH_FAILED,
        code::RACE => RACE,
        code::FILE => FILE,
        code::FILE_FORMAT => FILE_FORMAT,
        code::FILE_KIND => FILE_KIND,
        code::FILE_ACCESS => FILE_ACCESS,
        code::GRAD_STALE => GRAD_STALE,
        code::GRAD_LEAF => GRAD_LEAF,
        code::GRAD_NONE => GRAD_NONE,
        code::GRAD_SHAPE => GRAD_SHAPE,
        code::GRAD_STOP => GRAD_STOP,
        code::GRAD_FREED => GRAD_FREED,
        code::GRAD_VIEW => GRAD_VIEW,
        code::LIMIT_OPERATIONS => LIMIT_OPERATIONS,
        code::LIMIT_DEPTH => LIMIT_DEPTH,
        code::INTERRUPTED => INTERRUPTED,
        code::LIMIT_MEMORY => LIMIT_MEMORY,
        code::FOREIGN_TENSOR => FOREIGN_TENSOR,
        code::INTERNAL => INTERNAL,
        code::LIMIT_SIZE => LIMIT_SIZE,
        code::LIMIT_TIME => LIMIT_TIME,
        code::HOST_FUNCTION => HOST_FUNCTION,
        _ => "This code is not known. `tscript explain` without an argument lists those that are.",
    }
}

const SYNTAX: &str = r##"The text cannot be read as a script: a bracket without its partner, a missing `;`, a word from
another language. The label stands where reading stopped; the mistake is there or shortly before.
Several mistakes in different functions or statements are told together.

```rhai
let x = randn([2, 3]
print(x);
```

Close what is open and end each statement with `;`. Variables are declared with `let`, functions
with `fn`, and blocks stand in braces.

```rhai
let x = randn([2, 3]);
print(x);
```
"##;

const UNKNOWN_VARIABLE: &str = r##"A name is used that no `let` or `const` has made. A function sees only its arguments, not the
variables around it; a closure does see them.

```rhai
let scale = 2.0;
fn scaled(x) { x * scale }
scaled(ones([2]));
```

Check the spelling. In a function, pass the value as an argument, or make it a constant of the top
level and write `global::NAME`.

```rhai
let scale = 2.0;
fn scaled(x, scale) { x * scale }
scaled(ones([2]), scale);
```
"##;

const UNKNOWN_FUNCTION: &str = r##"No function or method has this name. A closure held in a variable is called by `f.call(x)`, not by
`f(x)`; functions of a module need its name before them.

```rhai
let x = randn([4]);
let y = x.softamx(0);
```

Check the spelling. What exists is listed in the reference manual, and by `:help` in the REPL.

```rhai
let x = randn([4]);
let y = x.softmax(0);
```
"##;

const UNKNOWN_PROPERTY: &str = r##"The value has no property of this name. Properties of tensors are `shape`, `ndim`, `dtype`,
`device`, `is_cuda`, `is_pinned`, `requires_grad`, `grad`, `T`, `mT` and `numel`; everything else is
a method and takes parentheses.

```rhai
let x = randn([2, 3]);
print(x.sum);
```

Call methods with parentheses; check the spelling of properties.

```rhai
let x = randn([2, 3]);
print(x.sum());
```
"##;

const SOURCE_TOO_LARGE: &str = r##"A source has too many bytes, too many lines, or a line with too many characters. Places are kept in
16 bits for the line and 16 for the column, over all sources of a session.

```rhai
let table = "[0" + ", 1" * 30000 + "]";
eval(table);
```

Keep data in files and read them with `load`.

```rhai
let table = load("table.npy");
```
"##;

const MODULE_NOT_FOUND: &str = r##"`import` found no module of this name: neither in the standard library (`nn`, `optim`, `data`,
`test`) nor as a file beside the script. Inside functions, only modules imported at the top level
before them are known.

```rhai
import "nnn" as nn;
```

Check the name; a file is imported by its path without `.rhai`.

```rhai
import "nn" as nn;
```
"##;

const CIRCULAR_IMPORT: &str = r##"A module imports itself, directly or through others, so that none of them can be finished first.

```rhai
// this file is called a.rhai
import "a" as a;
```

Move what both need into a third module that imports neither.
"##;

const THROWN: &str = r##"The script threw this error itself, with `throw`, and nothing caught it.

```rhai
fn check(n) { if n < 0 { throw "n must not be negative"; } n }
check(-1);
```

Catch it where something sensible can be done, or remove its cause.

```rhai
fn check(n) { if n < 0 { throw "n must not be negative"; } n }
try { check(-1); } catch (e) { print(`skipped: ${e}`); }
```
"##;

const ASSERTION: &str = r##"An assertion does not hold: `assert(condition, message)`, which tells the message, or one of the module
`test`, which shows both sides, and for tensors where they differ most.

```rhai
import "test" as test;
test::assert_equal(1 + 1, 3);
```

Correct the code, or the expectation.
"##;

const CONSTANT: &str = r##"A value declared with `const` is changed: assigned, or changed in place by a method.

```rhai
const LIMIT = [1, 2];
LIMIT.push(3);
```

Declare it with `let`, or make a new value.

```rhai
let limit = [1, 2];
limit.push(3);
```
"##;

const BORROWED: &str = r##"A method is at work on a value, and the closure that it calls uses the same value. Arrays and maps
do not allow this; tensors do. A closure that calls itself through the variable that holds it is at work in the same
way: what calls itself is a function, `fn f(n) { .. f(n - 1) .. }`.

```rhai
let a = [1, 2, 3];
let b = a.map(|x| x + a.len());
```

Take what the closure needs out of the value first.

```rhai
let a = [1, 2, 3];
let n = a.len();
let b = a.map(|x| x + n);
```
"##;

const COUNTED: &str = r##"`for (x, i) in values` goes over the values with a count: `x` is the value, `i` is 0, 1, 2 and so on.
Where the values are pairs, the names of a map, or a loader's batches, and the second name is not that of
a counter (`i`, `idx`, `step`, `n_rows` and the like), the loop was probably meant to take pairs apart.
This is a warning; the script goes on.

```rhai
let pairs = [["a", 1], ["b", 2]];
for (name, value) in pairs { print(name); }
```

Take the pair apart inside, or call the second name what it is.

```rhai
let pairs = [["a", 1], ["b", 2]];
for pair in pairs { let name = pair[0]; let value = pair[1]; print(name); }
for (pair, i) in pairs { print(i); }
```
"##;

const UNUSED: &str = r##"A variable is declared, and nothing ever reads it: often its name is misspelt where it should be read, or
what should become of it was forgotten. `tscript check` warns of it; a run does not.

```rhai
// tscript check
let x = ones([2]);
let y = x.relu();
print(x);
```

Use it, leave it out, or begin its name with `_` if it is meant so.

```rhai
let x = ones([2]);
let y = x.relu();
print(y);
```
"##;

const LOST: &str = r##"A statement computes something, and nobody takes the value: `x.relu();` leaves `x` as it is, `x == 1;` compares
and goes on, `loss.item;` calls nothing. `tscript check` warns of it; a run does not.

```rhai
// tscript check
let x = ones([2]);
x.relu();
print(x);
```

Give the value a name, or write the form that changes the tensor in place, which ends in `_`.

```rhai
let x = ones([2]);
x.relu_();
print(x);
```
"##;

const UNREACHABLE: &str = r##"What stands before this statement always leaves the block: `return`, `throw`, `break`, `continue`, `exit()`, or a
`loop` that nothing ends. `tscript check` warns of it; a run never comes to it.

```rhai
// tscript check
fn f(x) {
    return x;
    print("done");
}
print(f(1));
```

Put it before the way out.

```rhai
fn f(x) {
    print("done");
    return x;
}
print(f(1));
```
"##;

const NEVER_EQUAL: &str = r##"Values of two types are compared with `==` or `!=`, which are never equal: `"1" == 1` is false. `tscript check` warns
of it; a run does not.

```rhai
// tscript check
let answer = "42";
if answer == 42 { print("right"); }
```

Convert one of them first.

```rhai
let answer = "42";
if answer.parse_int() == 42 { print("right"); }
```
"##;

const SHAPE: &str = r##"The shapes of the operands do not fit together. Element-wise operations broadcast: shapes are
compared from the last dimension, and sizes must be equal or one of them 1. A matrix product needs
the last size of the left to equal the second last of the right.

```rhai
let a = randn([2, 3]);
let b = randn([4]);
a + b;
```

Print the shapes (`x.shape`), then `reshape`, `unsqueeze`, `transpose` or slice one operand.

```rhai
let a = randn([2, 3]);
let b = randn([3]);
a + b;
```
"##;

const DTYPE: &str = r##"The operation does not take tensors of this dtype: a mean of integers, an index that is a float, a
matrix product of `bool`.

```rhai
arange(4).mean();
```

Convert first: `x.float()`, `x.long()`, `x.to("f64")`.

```rhai
arange(4).float().mean();
```
"##;

const UNKNOWN_KEYWORD: &str = r##"The trailing map names an argument that the operation does not have. Keywords are checked, so that a
typing mistake is never silently a default.

```rhai
randn([2, 3]).sum(#{dims: 1});
```

Use the name from the message or the manual.

```rhai
randn([2, 3]).sum(#{dim: 1});
```
"##;

const ARGUMENT_TYPE: &str = r##"An argument has a type that the function does not take there.

```rhai
randn([2, 3]).sum("rows");
```

Give the type that the message asks for; the manual lists every parameter.

```rhai
randn([2, 3]).sum(0);
```
"##;

const MISSING_ARGUMENT: &str = r##"An argument without a default was not given, to an operation, a function or a closure.

```rhai
randn([2, 3]).reshape();
```

Give it, by position or by keyword.

```rhai
randn([2, 3]).reshape([3, 2]);
```
"##;

const VALUE: &str = r##"An argument has the right type and a value that makes no sense: a negative size, a probability above
1, an unknown name of a mode.

```rhai
dropout(randn([4]), 1.5);
```

Choose a value inside the bounds that the message gives.

```rhai
dropout(randn([4]), 0.5);
```
"##;

const INDEX: &str = r##"An index lies outside its dimension, array or string, and this is known at the call. A dimension of
size n takes indices from -n to n - 1.

```rhai
let x = randn([2, 3]);
x[5];
```

Use an index inside the bounds; for a whole range, `x[0..2]` is cut to the size.

```rhai
let x = randn([2, 3]);
x[1];
```
"##;

const EXTRA_ARGUMENT: &str = r##"More arguments were given than the function or closure takes. One value for several dimensions is an
array.

```rhai
randn([2, 3]).relu(0, true);
```

Leave out what is too much; collect several sizes or dims in an array.

```rhai
randn([2, 3]).sum([0, 1]);
```
"##;

const DIM: &str = r##"The tensor has no such dimension. With n dimensions they are 0 to n - 1, or -n to -1 from the end.

```rhai
randn([2, 3]).sum(2);
```

Name a dimension that exists; `x.ndim` counts them.

```rhai
randn([2, 3]).sum(1);
```
"##;

const TOO_LARGE: &str = r##"The number of elements or bytes does not fit into a 64-bit count. No memory was asked for.

```rhai
zeros([1000000000, 1000000000, 1000000000]);
```

Check the sizes; they may come from data that was read wrongly.
"##;

const TRUTH: &str = r##"`if`, `while`, `&&` and `||` need one truth, and the tensor has several elements, or none.

```rhai
let x = tensor([1.0, -1.0]);
if x > 0 { print("positive"); }
```

Say what is meant: `.any()` or `.all()`. For a choice element by element use `where`; for element-
wise logic `&`, `|` and `!`.

```rhai
let x = tensor([1.0, -1.0]);
if (x > 0).all() { print("positive"); }
```
"##;

const AMBIGUOUS_INDEX: &str = r##"An array of integers as an index can mean two things: one index a dimension, or several rows of the
first dimension. Nothing is guessed.

```rhai
let x = randn([4, 5]);
x[[0, 2]];
```

Write `x[0, 2]` for one element and `x[tensor([0, 2])]` for rows 0 and 2.

```rhai
let x = randn([4, 5]);
x[tensor([0, 2])];
```
"##;

const UNKNOWN_DTYPE: &str = r##"No dtype has this name. They are `f64 f32 f16 bf16 i64 i32 i16 i8 u8 bool`, and PyTorch's spellings
of these.

```rhai
zeros([2], #{dtype: "float31"});
```

Use one of the names.

```rhai
zeros([2], #{dtype: "f32"});
```
"##;

const ARITHMETIC: &str = r##"Arithmetic on plain numbers has no result: an integer divided by zero, or a result beyond 64 bits.
Tensors of integers wrap instead, as in PyTorch.

```rhai
let n = 0;
print(10 / n);
```

Test the divisor, or compute in floats.

```rhai
let n = 0.0;
print(10.0 / n);
```
"##;

const TYPE: &str = r##"An operator, condition or loop got a value that it does not work on.

```rhai
if "yes" { print(1); }
```

Convert or compare the value.

```rhai
if "yes" == "yes" { print(1); }
```
"##;

const DEVICE_MISMATCH: &str = r##"The operands are on different devices, and nothing is moved silently: copies cost time that one
should see. A 0-dimensional CPU tensor may take part in anything, and `copy_` copies from anywhere.

```rhai
let a = randn([3], #{device: "cuda"});
let b = randn([3]);
a + b;
```

Move one operand with `to`; the labels show where both were made.

```rhai
let a = randn([3], #{device: "cuda"});
let b = randn([3]);
a + b.to(a.device);
```
"##;

const UNKNOWN_DEVICE: &str = r##"The text names no device, or a CUDA device with an index that this machine does not have. Devices
are `cpu`, `cuda` (the current one) and `cuda:0`, `cuda:1`, ...

```rhai
zeros([2], #{device: "gpu"});
```

Use one of these names; `tscript devices` lists what there is.

```rhai
zeros([2], #{device: "cuda"});
```
"##;

const NO_CUDA: &str = r##"The script asks for a CUDA device, and there is none: no GPU, no driver, or `CUDA_VISIBLE_DEVICES`
hides them. `tscript devices` says which.

```rhai
zeros([2]).cuda();
```

Ask `cuda::is_available()` first, or run with `--simulate-gpus 1`, which gives simulated GPUs with
the same rules.

```rhai
let device = if cuda::is_available() { "cuda" } else { "cpu" };
zeros([2]).to(device);
```
"##;

const OUT_OF_MEMORY: &str = r##"The device has not enough memory, also after everything cached was given back. The notes show the
request, the total, what is reserved, the largest free block, and the live tensors that hold most,
by the lines that made them. The script can catch this and go on.

```rhai
let a = zeros([100000, 100000], #{device: "cuda"});
```

Make batches smaller, drop tensors that are no longer needed (`x = ();`), compute without gradients
where none are wanted (`no_grad`), or use `f16` or `bf16`.
"##;

const EVENT: &str = r##"The event cannot answer: it was not recorded, not made with `timing`, or is not finished.

```rhai
let a = event();
let b = event();
a.elapsed_time(b);
```

Make both with `timing`, record them, and synchronize before asking.

```rhai
let a = event(#{timing: true});
let b = event(#{timing: true});
a.record();
b.record();
b.synchronize();
a.elapsed_time(b);
```
"##;

const STREAM: &str = r##"The stream cannot be used so: it belongs to another device, is closed, or there is no CUDA device
that it could belong to.

```rhai
let s = stream(#{device: "cpu"});
```

Make streams on CUDA devices, real or simulated (`--simulate-gpus`).

```rhai
let s = stream(#{device: "cuda:0"});
```
"##;

const KERNEL_INDEX: &str = r##"While the operation ran, it met an index outside the dimension. The operation was queued, so this is
told late: the first label is the line that queued it, another where the result was needed. The
device and other tensors are unharmed; what was computed from the result reports the same error when
it is read.

```rhai
let idx = tensor([3, 11]);
let x = randn([10]);
let y = x[idx];
print(y);
```

Correct the indices. `--blocking` runs each operation at once, so that the call itself fails; a
`try` around the operation catches it as well.

```rhai
let idx = tensor([3, 9]);
let x = randn([10]);
print(x[idx]);
```
"##;

const KERNEL_LABEL: &str = r##"A loss met a class label that is negative or not below the number of classes. It was found while
computing, so that it is told late.

```rhai
cross_entropy(randn([2, 3]), tensor([0, 3])).item();
```

Labels go from 0 to the number of classes minus 1; `ignore_index` names one that is skipped.

```rhai
cross_entropy(randn([2, 3]), tensor([0, 2])).item();
```
"##;

const KERNEL_VALUE: &str = r##"An operation met an element that it does not take: a standard deviation that is negative, or NaN or
infinity where the range of all elements is wanted. It was found while computing, so that it is told late.

```rhai
print(normal(zeros([2]), tensor([1.0, -1.0])));
```

Look at how the elements were made; `--check` finds the first operation that made a NaN.

```rhai
print(normal(zeros([2]), tensor([1.0, 0.0])).shape);
```
"##;

const KERNEL_PROBABILITY: &str = r##"An operation met a probability that is not from 0 to 1, or sampling met weights that are negative, infinite
or NaN, or a row of them that sums to zero. It was found while computing, so that it is told late.

```rhai
print(multinomial(tensor([0.5, -0.5]), 1));
```

Make the weights non-negative, for instance by `softmax`. `--check` finds the first operation that
made a NaN.

```rhai
print(multinomial(tensor([0.5, 0.5]), 1));
```
"##;

const KERNEL_DIVISION: &str = r##"An integer tensor was divided by an element that is zero. It was found while computing, so that it
is told late. Floats give infinity or NaN instead.

```rhai
print(tensor([4, 2]) % tensor([2, 0]));
```

Replace the zeros, or compute in floats.

```rhai
print(tensor([4, 2]) % tensor([2, 1]));
```
"##;

const KERNEL_NOT_POSITIVE: &str = r##"The Cholesky decomposition met a matrix that is not positive-definite. It was found while computing,
so that it is told late.

```rhai
print(cholesky(tensor([[1.0, 2.0], [2.0, 1.0]])));
```

Check that the matrix is symmetric; a small multiple of `eye(n)` added to a covariance matrix helps
against rounding.

```rhai
print(cholesky(tensor([[2.0, 1.0], [1.0, 2.0]])));
```
"##;

const KERNEL_SINGULAR: &str = r##"The matrix has no inverse, or the system no single solution. It was found while computing, so that
it is told late.

```rhai
print(inv(tensor([[1.0, 2.0], [2.0, 4.0]])));
```

Use `lstsq`, which gives the solution of smallest error, or repair the matrix.
"##;

const CHECK_NOT_FINITE: &str = r##"`--check` was on, and this is the first operation that made NaN or infinity out of finite inputs.

```rhai
// tscript run --check script.rhai
let x = tensor([1.0, 0.0]);
print(x.log());
```

Look at the inputs of this operation: a logarithm or division of zero, an `exp` of a large number, a
learning rate that is too high.

```rhai
let x = tensor([1.0, 0.0]);
print((x + 1e-8).log());
```
"##;

const DEVICE_LOST: &str = r##"The device stopped answering or reported a fault from which it does not recover. Other devices and
the session go on; tensors on the lost one are gone. The label is the operation that was running, or
the notes name the few that were.

```rhai
// tscript run --simulate-gpus 2 --simulate-fault lost:2@cuda:1 script.rhai
let x = randn([1000, 1000], #{device: "cuda:1"});
print((x @ x).sum());
```

Save from other devices what matters and start again. The system log says more about the hardware; a
launch that ran too long on a GPU with a display is one cause.
"##;

const KERNEL_CONVERGE: &str = r##"An iterative decomposition did not converge, usually because the matrix holds NaN or infinity. It
was found while computing, so that it is told late.

```rhai
print(svd(tensor([[0.0 / 0.0, 1.0], [1.0, 1.0]])));
```

Look for NaN in the input, for instance with `--check`.
"##;

const LAUNCH_FAILED: &str = r##"A device refused to run one piece of work. Its results are unknown, and so is what was computed from
them; everything else is unharmed.

```rhai
// tscript run --simulate-gpus 1 --simulate-fault launch:1@cuda:0 script.rhai
let x = ones([3], #{device: "cuda"});
print(x);
```

Try the work again, or run it on another device.
"##;

const RACE: &str = r##"Two streams use the same memory, at least one of them writes, and nothing orders them. The result
would depend on timing. The labels show both lines, the help the missing call.

```rhai
let s = stream();
let a = empty([100], #{device: "cuda"}).normal_();
with_stream(s, || a.sum());
```

Let the second stream wait for the first. `--races error` makes it an error, `--races off` silent.

```rhai
let s = stream();
let a = empty([100], #{device: "cuda"}).normal_();
s.wait_stream(current_stream());
with_stream(s, || a.sum());
```
"##;

const FILE: &str = r##"The operating system refused to read or write the file: it does not exist, a folder is missing, or
permissions do not allow it. A file that was to be written is as it was before.

```rhai
let x = load("missing.npy");
```

Check the path; it is relative to the folder in which the program was started.
"##;

const FILE_FORMAT: &str = r##"The file is damaged, cut short, or uses a part of its format that is not supported. The message says
at which byte or entry.

```rhai
// half-downloaded.safetensors has the first half of its bytes
let x = load("half-downloaded.safetensors");
```

Fetch or write the file again.
"##;

const FILE_KIND: &str = r##"The extension tells the format, and this one stands for none. Known are `.safetensors`, `.npy`,
`.npz`, `.csv`, `.png`, `.jpg` and `.jpeg`.

```rhai
save("weights.bin", #{w: zeros([2])});
```

Use one of these extensions.

```rhai
save("weights.safetensors", #{w: zeros([2])});
```
"##;

const FILE_ACCESS: &str = r##"The program that runs the script permits only certain folders, and this file is outside of them.

```rhai
// in a host program without `Session::builder().all_files()`
let x = load("/etc/secrets.csv");
```

Move the file, or have the host program permit its folder.
"##;

const GRAD_STALE: &str = r##"Backward needs a tensor as it was in forward, and it was changed in place since. The labels show the
operation that saved it and the change.

```rhai
let x = randn([3], #{requires_grad: true});
let y = x.exp();
y.add_(1.0);
y.sum().backward();
```

Use the form that makes a new tensor (`y + 1.0`), or change a clone.

```rhai
let x = randn([3], #{requires_grad: true});
let y = x.exp() + 1.0;
y.sum().backward();
```
"##;

const GRAD_LEAF: &str = r##"A leaf that requires gradients, or a view of one, is changed in place while operations are recorded:
its gradient would mean nothing.

```rhai
let w = randn([3], #{requires_grad: true});
w.add_(1.0);
```

Change it inside `no_grad`, as optimizers do.

```rhai
let w = randn([3], #{requires_grad: true});
no_grad(|| w.add_(1.0));
```
"##;

const GRAD_NONE: &str = r##"Backward was asked of a tensor that depends on nothing with `requires_grad`, or a gradient of
something that took no part.

```rhai
let x = randn([3]);
x.sum().backward();
```

Make the inputs with `requires_grad: true`, and check for `detach`, `no_grad` or `item` on the way.

```rhai
let x = randn([3], #{requires_grad: true});
x.sum().backward();
```
"##;

const GRAD_SHAPE: &str = r##"Backward starts from one number, and the tensor has several elements; or the gradient that was given
has another shape.

```rhai
let x = randn([3], #{requires_grad: true});
(x * 2).backward();
```

Reduce it first, or give the gradient to start from.

```rhai
let x = randn([3], #{requires_grad: true});
(x * 2).sum().backward();
```
"##;

const GRAD_STOP: &str = r##"The operation has no gradient: its result changes in steps, or depends on the choice of data. The
message says why.

```rhai
let x = randn([3], #{requires_grad: true});
airy_ai(x).sum().backward();
```

Use a differentiable operation, or `detach` where no gradient is meant.
"##;

const GRAD_FREED: &str = r##"A second `backward` through the same operations: what they had saved was freed by the first.

```rhai
let x = randn([3], #{requires_grad: true});
let y = (x * x).sum();
y.backward();
y.backward();
```

Compute forward again, or keep the graph: `y.backward(#{retain_graph: true})`.

```rhai
let x = randn([3], #{requires_grad: true});
let y = (x * x).sum();
y.backward(#{retain_graph: true});
y.backward();
```
"##;

const GRAD_VIEW: &str = r##"A view is changed in place, and the gradients could not follow: it is one of several views that one
operation made (`unbind`, `split`, `chunk`, `for row in x`), or it was made inside `no_grad` and is changed outside.
The same holds where such a view is used after its base was changed.

```rhai
let x = randn([2, 3], #{requires_grad: true}) * 2;
let rows = x.unbind();
rows[0].mul_(2);
```

Write the change out of place, or take the view by an index.

```rhai
let x = randn([2, 3], #{requires_grad: true}) * 2;
x[0].mul_(2);
```
"##;

const LIMIT_OPERATIONS: &str = r##"The program that runs the script limits how many steps it may take, and this is the limit. It
protects a host from scripts without end.

```rhai
// in a host program with `Session::builder().operation_limit(1000)`
loop { }
```

Give the loop an end, do the work in tensor operations, or raise the limit in the host program.
"##;

const LIMIT_DEPTH: &str = r##"Functions call each other more deeply than the limit, or the stack is used up. Mostly it is a
recursion without an end.

```rhai
fn f(n) { f(n + 1) }
f(0);
```

Add the case in which the function does not call itself, or use a loop.

```rhai
fn f(n) { if n > 100 { n } else { f(n + 1) } }
f(0);
```
"##;

const INTERRUPTED: &str = r##"The script was stopped from outside: by Ctrl-C, or by the program that runs it. The label shows
where it had come to.

```rhai
loop { randn([10]).sum().item(); }
```

Nothing needs fixing. Long trainings should save a checkpoint from time to time.
"##;

const LIMIT_MEMORY: &str = r##"The program that runs the script limits the bytes of tensors on a device, or the memory of the
script's own values (strings, arrays, maps), and the request goes beyond.

```rhai
// in a host program with `Session::builder().memory_limit(1 << 20)`
let x = zeros([1000000000]);
```

Use less memory at a time, or raise the limit in the host program.
"##;

const FOREIGN_TENSOR: &str = r##"A tensor belongs to another session. Sessions share no memory and no order of work.

```rhai
// session_a.set("x", tensor_of_session_b)
print(x.sum());
```

Copy the numbers in the host program: `Tensor::from_slice(&other.to_vec()?, &shape)`.
"##;

const INTERNAL: &str = r##"Something went wrong inside tscript that no script can be blamed for. The session stays usable where
that is possible.

```rhai
// any script may meet it; none should
```

Please report it with the script and the message.
"##;

const LIMIT_SIZE: &str = r##"A string, array, map or list of variables is larger than the limit. The limits keep a script from
using up the memory of its host outside of tensors.

```rhai
// in a host program; `tscript` itself has no limit but the machine's memory
let s = "x";
loop { s += s; }
```

Keep numbers in tensors, which have no such limit; build long text piece by piece and write it out.
"##;

const LIMIT_TIME: &str = r##"The program that runs the script limits how long it may take, and the time is over. The label shows
where it had come to. A single operation is not cut short: the limit is noticed at the next step.

```rhai
loop { randn([10]).sum().item(); }
```

Do less in one call, do the work in tensor operations, or raise the limit in the host program.
"##;

const HOST_FUNCTION: &str = r##"A function that the host program gave to its scripts failed, or panicked. The message is the
program's own; the label shows the call. A script can catch it as any other error.

```rhai
// `order` is a function of the host program
try { order("bolts", -1) } catch (e) { print(e.message); }
```

What is wrong is told by the message; the program's documentation says what the function takes.
"##;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_explained_with_a_script() {
        for (code, title) in code::ALL {
            let text = explain(*code);
            assert!(text.contains("```rhai\n"), "{code}, {title}, is not explained");
            assert_eq!(text.matches("```").count() % 2, 0, "{code} has an open fence");
            let prose = text.split("```").step_by(2).map(str::trim).filter(|prose| !prose.is_empty());
            assert!(prose.count() >= 2, "{code} lacks what it means or what to do");
        }
        assert!(!explain(Code(999)).contains("```"));
    }
}
