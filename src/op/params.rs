//! Binds the arguments of a call to the parameters of a row: by position, by keyword, sizes and tensors passed one by
//! one. Used by calls of a running script and by `tscript check`.
//!
//! Independent of values and the interpreter; the caller classifies values.

use super::row::{Default, Kind, Op, Param};
use crate::base::code;
use crate::base::device_id::DeviceSpec;
use crate::base::diag::{Diag, Result};
use crate::base::dtype::DType;
use crate::base::signature::{self, Literal, Rule, Signature};
use crate::base::span::Origin;
use crate::base::suggest::{keyword, nearest};

/// The kind of a value, as binding needs it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Look {
    Tensor,
    Int,
    /// A float that is a whole number.
    Whole,
    Other,
}

/// The parameter that a keyword names: by its own name, or by a PyTorch alias.
pub fn place(op: &Op, keyword: &str) -> Option<usize> {
    let named = |name: &str| op.params.iter().position(|param| param.name == name);
    named(keyword).or_else(|| named(signature::other_name(keyword)?))
}

/// Whether a row that creates a tensor accepts `pin_memory`, which is not one of its parameters.
pub fn makes(op: &Op) -> bool {
    op.params.iter().any(|param| param.name == "requires_grad")
}

/// The parameter at a position.
pub fn at(op: &'static Op, position: usize) -> Option<&'static Param> {
    op.params.get(position).filter(|param| !matches!(param.kind, Kind::Ignored))
}

/// The number of positional parameters.
pub fn positional(op: &Op) -> usize {
    op.params.iter().filter(|param| param.kind != Kind::Ignored).count()
}

/// The position at which sizes are passed as separate numbers: `x.view(2, 3)`, `zeros(2, 3)`.
pub fn spread(op: &Op, given: usize, look: impl Fn(usize) -> Look) -> Option<usize> {
    let at = op.params.iter().position(|param| matches!(param.kind, Kind::Sizes))?;
    // A float stands for a size unless the next parameter may be what it is for: `full(2, 1.0)`.
    let next = op.params.get(at + 1).map(|param| param.kind);
    let takes_floats = matches!(next, Some(Kind::Number | Kind::Operand | Kind::Float));
    let fits = |index: usize| match look(index) {
        Look::Int => true,
        Look::Whole => !takes_floats && given > at + 1,
        Look::Tensor | Look::Other => false,
    };
    (given > at && (at..given).all(fits)).then_some(at)
}

/// The position at which tensors are passed one by one: `block_diag(a, b)`, `einsum("ij,jk", a, b)`.
pub fn several(op: &Op, given: usize, look: impl Fn(usize) -> Look) -> Option<usize> {
    let at = op.params.iter().position(|param| matches!(param.kind, Kind::Tensors))?;
    let last = op.params[at + 1..].iter().all(|param| matches!(param.kind, Kind::Str(_) | Kind::Ignored));
    (last && given > at + 1 && (at..given).all(|index| look(index) == Look::Tensor)).then_some(at)
}

/// `sum(input, dim: (), keepdim: false)`: the signature of a row. Parameters without effect are omitted.
pub fn signature(op: &Op) -> Signature {
    let written = |param: &Param| {
        let rule = match param.default {
            Default::Required => Rule::Required,
            Default::None => Rule::Default(Literal::Unit),
            Default::Bool(b) => Rule::Default(Literal::Bool(b)),
            Default::Int(i) => Rule::Default(Literal::Int(i)),
            Default::Float(x) => Rule::Default(Literal::Float(x)),
            Default::Str(text) => Rule::Default(Literal::Text(text.to_string())),
        };
        let words: &[&str] = if let Kind::Str(words) | Kind::IntsOr(words) = param.kind { words } else { &[] };
        let words = words.iter().map(|word| word.to_string()).collect();
        signature::Param { name: param.name.to_string(), rule, words }
    };
    let params = op.params.iter().filter(|param| param.kind != Kind::Ignored).map(written).collect();
    Signature::new(op.name, params, positional(op))
}

#[cold]
pub fn too_many(op: &Op, given: usize) -> Box<Diag> {
    let most = positional(op);
    let are = if most == 1 { "is" } else { "are" };
    Diag::error(code::EXTRA_ARGUMENT, format!("{given} arguments given, at most {most} {are} taken"))
        .help(format!("call it as `{}`", signature(op).text))
}

#[cold]
pub fn missing(op: &Op, param: &Param) -> Box<Diag> {
    Diag::error(code::MISSING_ARGUMENT, format!("argument `{}` is missing", param.name))
        .help(format!("call it as `{}`", signature(op).text))
}

/// Help for a wrong value of a parameter.
#[cold]
pub fn of_parameter(mut diag: Box<Diag>, name: &str) -> Box<Diag> {
    // `x.mean(0, 1)` means two dims.
    if name == "keepdim" && diag.message.ends_with("an integer") {
        diag = diag.help("several dims are an array: `x.sum([0, 1])`");
    }
    diag.message = format!("argument `{name}`: {}", diag.message);
    diag
}

/// Help for a value of another kind in place of a tensor.
pub fn made_a_tensor(expected: &str, given: &str) -> Option<&'static str> {
    if expected.starts_with("a dimension") && given.starts_with("a tensor") {
        return Some("several tensors stand in an array: `cat([x, y])`, `stack([x, y])`");
    }
    (expected.starts_with("a tensor") && given == "an array").then_some("an array becomes one by `tensor(..)`")
}

#[cold]
pub fn given_twice(name: &str) -> Box<Diag> {
    Diag::error(code::EXTRA_ARGUMENT, format!("argument `{name}` is given both by position and by keyword"))
}

/// Whether a row draws from a generator that a call may name.
pub fn takes_generator(op: &Op) -> bool {
    op.params.last().is_some_and(|param| param.kind == Kind::Ignored && param.name == "generator")
}

/// A keyword that is taken for PyTorch's sake alone; an error if leaving it out would give something else. `truth` is its
/// value if that is true or false.
pub fn taken(name: &str, is_unit: bool, truth: Option<bool>) -> Result<()> {
    match name {
        _ if is_unit => Ok(()),
        "generator" => Err(Diag::error(code::ARGUMENT_TYPE, "`generator` is what `generator()` made, or `()`")
            .help("`let g = generator().manual_seed(42);`, then `#{generator: g}`")),
        "inplace" | "sparse" | "sparse_grad" if truth.is_none() => {
            Err(Diag::error(code::ARGUMENT_TYPE, format!("`{name}` is true or false")))
        }
        "sparse" | "sparse_grad" if truth == Some(true) => {
            Err(Diag::error(code::VALUE, format!("`{name}` cannot be other than false here: its gradients are dense"))
                .help("`embedding(index, weight, #{sparse: true})` has a sparse gradient"))
        }
        _ => Ok(()),
    }
}

#[cold]
pub fn unknown_keyword(op: &Op, name: &str) -> Box<Diag> {
    let known = || op.params.iter().map(|param| param.name);
    let diag = Diag::error(code::UNKNOWN_KEYWORD, format!("unknown keyword `{name}`")).keyword(
        Origin::NONE,
        name,
        "not a keyword of this operation",
    );
    match keyword(name, known()) {
        None if name == "out" => {
            diag.help(format!("write `out.copy_({}(..))`, which keeps the memory of `out`", op.name))
        }
        Some(found) => diag.help(format!("did you mean `{found}`?")),
        None => diag.help(format!("the keywords are: {}", known().collect::<Vec<_>>().join(", "))),
    }
}

/// One of a parameter's choices.
pub fn word(text: &str, choices: &'static [&'static str]) -> Result<&'static str> {
    if let Some(&choice) = choices.iter().find(|choice| **choice == text) {
        return Ok(choice);
    }
    let list = choices.iter().map(|c| format!("\"{c}\"")).collect::<Vec<_>>().join(", ");
    let diag = Diag::error(code::VALUE, format!("unknown value \"{text}\""));
    Err(match nearest(text, choices.iter().copied()) {
        Some(found) => diag.help(format!("did you mean \"{found}\"?")),
        None => diag.help(format!("the choices are: {list}")),
    })
}

/// The dtype with this name.
pub fn dtype(text: &str) -> Result<DType> {
    DType::parse(text).ok_or_else(|| {
        if matches!(text.split(':').next(), Some("mps" | "xpu" | "meta" | "gpu" | "tpu" | "xla" | "hip" | "rocm")) {
            let diag = Diag::error(code::UNKNOWN_DEVICE, format!("unknown device \"{text}\""));
            return diag.help("devices are \"cpu\", \"cuda\" and \"cuda:0\", \"cuda:1\", ...");
        }
        let diag = Diag::error(code::UNKNOWN_DTYPE, format!("unknown dtype \"{text}\""));
        match nearest(text, DType::NAMES.iter().map(|(name, _)| *name)) {
            Some(found) => diag.help(format!("did you mean \"{found}\"?")),
            None => diag.help("the dtypes are: f64 f32 f16 bf16 i64 i32 i16 i8 u8 bool c64 c128"),
        }
    })
}

/// The device with this name; does not check that it exists.
pub fn device(text: &str) -> Result<DeviceSpec> {
    if let Some(spec) = DeviceSpec::parse(text) {
        return Ok(spec);
    }
    let diag = Diag::error(code::UNKNOWN_DEVICE, format!("unknown device \"{text}\""));
    if text.to_lowercase().starts_with("gpu") {
        return Err(diag.help("GPUs are \"cuda\", the current one, and \"cuda:0\", \"cuda:1\", ..."));
    }
    Err(match nearest(text, ["cpu", "cuda", "cuda:0", "cuda:1"]) {
        Some(found) => diag.help(format!("did you mean \"{found}\"?")),
        None => diag.help("devices are \"cpu\", \"cuda\" and \"cuda:0\", \"cuda:1\", ..."),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::op::rows::creation::create;
    use crate::op::rows::reduction::reduce;
    use crate::op::rows::shape::view;

    #[test]
    fn keywords_have_pytorchs_other_names() {
        for (keyword, expected) in [("dim", Some("dim")), ("axis", Some("dim")), ("keepdims", Some("keepdim"))] {
            assert_eq!(place(&reduce::SUM, keyword).map(|at| reduce::SUM.params[at].name), expected);
        }
        assert_eq!(place(&reduce::SUM, "axes"), None);
        assert_eq!(place(&create::ZEROS, "axis"), None, "a row without the parameter has no other name for it");
    }

    #[test]
    fn sizes_may_be_given_one_by_one() {
        assert_eq!(spread(&view::RESHAPE, 3, |at| if at == 0 { Look::Tensor } else { Look::Int }), Some(1));
        assert_eq!(spread(&view::RESHAPE, 2, |at| if at == 0 { Look::Tensor } else { Look::Other }), None);
    }
}
