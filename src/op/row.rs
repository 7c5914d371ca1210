//! The shape of a row of the op table.

use super::args::{Arg, Args};
use super::emit::{Backward, Emit, KernelCall};
use super::expr::Derivative;
use super::tensor::Tensor;
use crate::base::attr::Attr;
use crate::base::diag::Result;
use crate::base::dtype::Scalar;
use crate::base::layout::Layout;
use crate::kernel::program::{Draw, Function, ReduceKind};

/// One operation. From its row come the script function, method and operator, checks, gradient, execution,
/// help, completion and tests.
pub struct Op {
    pub name: &'static str,
    /// Other names of the same operation.
    pub aliases: &'static [&'static str],
    pub params: &'static [Param],
    pub summary: &'static str,
    /// Longer text: shapes, errors, source of the algorithm.
    pub details: &'static str,
    pub examples: &'static [Example],
    pub lower: Lower,
    /// What `grad` may read.
    pub saves: &'static [Save],
    pub grad: Grad,
    /// Its derivative along tangents of its operands.
    pub forward: Forward,
    /// Piecewise linear: in gradients of gradients the operands' share is zero. Without it a gradient that does not
    /// use an operand has no gradient itself, and requesting it is an error (as in PyTorch, by row).
    pub piecewise_linear: bool,
    /// Has a form `name_` that writes into its first operand.
    pub inplace: bool,
    /// How the in-place form writes a tensor with several elements at one location in memory (`expand`): of the
    /// values for one location any, or the last, remains. Without it such a tensor is refused.
    pub expanded: Option<ExpandedRule>,
    /// An optimizer's step, or an update of running statistics: changes nothing while a fault before it is unreported on its
    /// device, or an operand is poisoned. Results of its own would be unset then: it has none.
    pub guarded: bool,
    /// Its result shows its operand's memory in another dtype.
    pub reinterprets: bool,
    /// Its result is uninitialized memory.
    pub leaves_unset: bool,
    /// The operator that stands for it in scripts; unary when the row has one parameter.
    pub operator: &'static str,
    /// May be called as a function, as a method, or both.
    pub call: CallForm,
    /// The parameter that is the receiver if it is called as a method.
    pub receiver: usize,
    /// The script gets the single result, a `bool` of no dimensions, as a plain bool (which waits).
    pub truth: bool,
    /// Of complex numbers the result is a view in PyTorch, conjugated where it is read, and a copy here: the script cannot
    /// change it in place.
    pub conjugates: bool,
    /// What the script gets.
    pub results: Returns,
}

impl Op {
    /// The defaults that rows fill up with `..Op::BASE`.
    pub const BASE: Op = Op {
        name: "",
        aliases: &[],
        params: &[],
        summary: "",
        details: "",
        examples: &[],
        lower: Lower::Unset,
        saves: &[],
        grad: Grad::Unset,
        forward: Forward::Usual,
        piecewise_linear: false,
        inplace: false,
        expanded: None,
        guarded: false,
        reinterprets: false,
        leaves_unset: false,
        operator: "",
        call: CallForm::Both,
        receiver: 0,
        truth: false,
        conjugates: false,
        results: Returns::One,
    };

    pub fn is(&self, other: &'static Op) -> bool {
        std::ptr::eq(self, other)
    }
}

impl std::fmt::Debug for Op {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// How a call's results are returned to the script.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Returns {
    /// The tensor.
    One,
    /// An array, even of one result.
    List,
    /// An array if this flag is set, otherwise the tensor.
    ListIf(&'static str),
    /// An array if this argument is missing, otherwise the tensor.
    ListWithout(&'static str),
    /// A map with these names; the tensor if there is one result, as for `max(x)`.
    Named(&'static [&'static str]),
    /// A map with the first result under the first name, and an array of the others under the second.
    NamedRest(&'static str, &'static str),
}

impl Returns {
    /// Whether there are several results.
    pub fn has_names(self) -> bool {
        matches!(self, Returns::Named(_) | Returns::NamedRest(..))
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CallForm {
    Both,
    /// `zeros([2])`, but not `x.zeros()`.
    Function,
    /// `x.view([2])`, but not `view(x, [2])`.
    Method,
    /// Only `x.copy_(y)`.
    InPlace,
    /// Only called by other rows (parts of gradients).
    Internal,
}

/// A parameter, in PyTorch's order and with PyTorch's name.
#[derive(Clone, Copy, Debug)]
pub struct Param {
    pub name: &'static str,
    pub kind: Kind,
    pub default: Default,
}

impl Param {
    /// A required parameter.
    pub const fn new(name: &'static str, kind: Kind) -> Param {
        Param { name, kind, default: Default::Required }
    }

    /// A parameter with a default.
    pub const fn opt(name: &'static str, kind: Kind, default: Default) -> Param {
        Param { name, kind, default }
    }
}

/// The type of a parameter.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Kind {
    Tensor,
    /// A tensor or a number.
    Operand,
    /// An array of tensors.
    Tensors,
    /// An array of tensors and `()`.
    OptTensors,
    Int,
    Float,
    /// A number that keeps its type (int, float, bool).
    Number,
    Bool,
    /// One dimension, possibly negative.
    Dim,
    /// One dimension or an array of them.
    Dims,
    /// An array of sizes; as the last positional parameter also given as separate numbers.
    Sizes,
    /// An integer or an array of integers.
    Ints,
    /// As `Ints`, but an integer stays one: the number of pieces, not a list with one position.
    IntOrInts,
    /// An integer, or two arrays of dims of one length, kept one after the other.
    Axes,
    /// As `Dims`, or `true` or `false`: `var(x, false)`.
    DimsOrFlag,
    /// A number or any text: the order of a norm.
    NumberOrText,
    /// A number or an array of numbers.
    Floats,
    /// A number, an array of numbers, or an array of tensors.
    FloatsOrTensors,
    /// An integer, an array of integers, or an array of tensors.
    IntsOrTensors,
    /// An integer, an array of integers, or one of these words (`padding: "same"`).
    IntsOr(&'static [&'static str]),
    /// An integer or an array of integers and `()`, which reads as `args::ABSENT`.
    OptInts,
    /// One of these words.
    Str(&'static [&'static str]),
    /// Any text.
    Text,
    DType,
    Device,
    /// Keyword only: accepted for compatibility with PyTorch, without effect.
    Ignored,
}

impl Kind {
    /// Whether it is a tensor, so that the call can be a method of one.
    pub fn takes_tensor(self) -> bool {
        matches!(self, Kind::Tensor | Kind::Operand)
    }
}

/// A parameter's default.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Default {
    Required,
    None,
    Bool(bool),
    Int(i64),
    Float(f64),
    Str(&'static str),
}

impl Default {
    pub fn arg(&self) -> Arg {
        match *self {
            Default::Required | Default::None => Arg::None,
            Default::Bool(b) => b.into(),
            Default::Int(i) => i.into(),
            Default::Float(x) => Arg::Attr(Attr::Scalar(Scalar::Float(x))),
            Default::Str(text) => text.into(),
        }
    }
}

/// A documented call with its result, run as a test.
#[derive(Clone, Copy, Debug)]
pub struct Example {
    pub code: &'static str,
    /// What `print` shows, or the code of the error.
    pub result: &'static str,
}

/// An example with what it prints (or `"E0201"`: it must fail so).
pub const fn ex(code: &'static str, result: &'static str) -> Example {
    Example { code, result }
}

/// How an op runs. A closed set.
pub enum Lower {
    Unset,
    /// Element-wise over broadcast operands: every `Tensor`, `Operand` and `Number` parameter in order.
    Map {
        function: &'static Function,
        promote: Promote,
    },
    /// Combines over dims: parameters `x, dim, keepdim, dtype` (missing ones absent), possibly after a function.
    Reduce {
        kind: ReduceKind,
        dtype: ReduceType,
    },
    /// Another layout over the same buffer.
    View(fn(&Args) -> Result<Layout>),
    /// One kernel; the rule checks the arguments, and gives its inputs and outputs.
    Kernel(fn(&mut dyn Emit, &Args) -> Result<KernelCall>),
    /// Several nodes with one gradient rule (nothing inside is differentiated).
    Steps(fn(&mut dyn Emit, &Args) -> Result<Vec<Tensor>>),
    /// Written in terms of other rows; gradients come with it.
    Compose(fn(&mut dyn Emit, &Args) -> Result<Vec<Tensor>>),
}

/// dtypes of a `Map`: what operands are cast to, and the result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Promote {
    /// PyTorch's result type, computed and returned (`add`); `bool` too.
    Same,
    /// As `Same`, but a result of `bool` is refused (`neg`).
    NoBool,
    /// As `Same`, but any operand of `bool` is refused (`sub`).
    Difference,
    /// As `Same`, but integers become the default float type (`exp`).
    Float,
    /// As `Same`, `NoBool` and `Float`, for products and quotients: a wider 0-dimensional operand is not rounded to
    /// the 16-bit float dtype of the others, as numbers are not. `half / tensor(65536.0)` would divide by infinity.
    Scaled,
    ScaledNoBool,
    ScaledFloat,
    /// Result type for the operands, `bool` out (`lt`).
    Compare,
    /// Operands to `bool`, `bool` out (`logical_and`).
    Logical,
    /// Integers and `bool` only (`bitwise_and`).
    Bits,
    /// Integers only (`bitwise_left_shift`).
    IntsOnly,
    /// Floats only, integers refused (`gelu`).
    FloatOnly,
    /// Integers pass unchanged (rounding functions): the function is not applied to them.
    RoundLike,
    /// First operand is a condition; the others as `Same` (`where`).
    Where,
    /// Any dtype to `bool`, computed in its own dtype (`isnan`).
    Predicate,
    /// Only the second operand is read, cast to the first's dtype (`copy_`).
    Copy,
}

/// dtype of a reduction's result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReduceType {
    /// Integers and `bool` become `i64` (`sum`).
    Sum,
    /// The operand's own (`amax`).
    Same,
    /// `i64` positions.
    Index,
    /// `bool`.
    Bool,
}

/// What a gradient rule may read: the argument at a position, or the n-th result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Save {
    In(usize),
    Out(usize),
    /// The argument at the first position, saved only if the gradient of the second is needed: `x * y` saves `x` for
    /// `y` only.
    For(usize, usize),
}

impl Save {
    /// The first argument.
    pub const INPUT: Save = Save::In(0);
    /// The one result.
    pub const RESULT: Save = Save::Out(0);
}

/// Writes into an expanded tensor, argument 0.
pub type ExpandedRule = fn(&mut dyn Emit, &Args) -> Result<()>;

/// One gradient for each parameter that takes a tensor or a number in its place (one for each element of a tensor
/// list), in order; trailing ones may be missing. The engine sums over broadcast dims and casts.
pub type GradRule = fn(&mut dyn Emit, &Backward<'_>) -> Result<Vec<Option<Tensor>>>;

pub enum Grad {
    /// One expression for each slot: `|t| -t.g * t.result * t.result`.
    Of(&'static [Derivative]),
    Rule(GradRule),
    /// For a view that shows each element of its tensor at most once: zeros with the gradient at the view's position.
    /// The function maps the tensor's layout to the view's. Gradients of other views of the tensor are added in the
    /// same buffer.
    Window(fn(&Layout, &Args) -> Result<Layout>),
    /// Follows from the composition.
    Composed,
    /// There is no gradient, for this reason, which is reported when a gradient is requested.
    Stop(&'static str),
    Unset,
}

/// The tangent of a row's first result. `grads` are the tangents of its operands, one for each slot.
pub type ForwardRule = fn(&mut dyn Emit, &Backward<'_>) -> Result<Option<Tensor>>;

/// The derivative of a row's first result along tangents of its operands. The other results have none, unless it is
/// `Transposed`.
pub enum Forward {
    /// Of an element-wise row the gradient's rule with a tangent in place of the gradient; of views and sums the row itself;
    /// otherwise `Transposed`.
    Usual,
    /// The row itself, linear in the arguments at these positions together.
    Linear(&'static [usize]),
    /// The row itself, linear in each of two arguments, and with a bias.
    Product(usize, usize, Option<usize>),
    /// The gradient's rule: the matrix of derivatives is symmetric.
    Symmetric,
    Rule(ForwardRule),
    /// The gradient of the gradient's rule, which is linear in what arrives.
    Transposed,
}

/// Special operands of element-wise nodes.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Source {
    Fill(Scalar),
    Position,
    Random {
        draw: Draw,
        seed: u64,
        offset: u64,
    },
    /// Integers of [low, low + range).
    Integers {
        seed: u64,
        offset: u64,
        low: i64,
        range: u64,
    },
}
