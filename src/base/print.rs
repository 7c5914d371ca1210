//! Printing of tensors by PyTorch's rules, `torch/_tensor_str.py`.
//!
//! Knows neither memory nor devices: values come from a closure that is called once for each element that is shown, in
//! row-major order, so that only the shown elements of a huge tensor are read. Differences from PyTorch: `true` and
//! `false`, `dtype=f64`, `device=cuda:1`.

use super::device_id::DeviceId;
use super::dtype::{DType, Scalar};

/// Bound: elements between two calls of `grows`; about ten microseconds.
const LOOK_EVERY: usize = 256;

/// `torch.set_printoptions`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PrintOptions {
    /// Digits after the point.
    pub precision: usize,
    /// Tensors of more elements are summarized.
    pub threshold: usize,
    /// Elements shown at each end of a summarized dimension.
    pub edgeitems: usize,
    /// Characters of a line.
    pub linewidth: usize,
    /// Scientific notation: always, never, or where it is needed.
    pub sci_mode: Option<bool>,
}

impl Default for PrintOptions {
    fn default() -> PrintOptions {
        PrintOptions { precision: 4, threshold: 1000, edgeitems: 3, linewidth: 80, sci_mode: None }
    }
}

/// What is printed of a tensor beside its elements.
#[derive(Clone, Copy, Debug)]
pub struct Printed<'a> {
    pub shape: &'a [usize],
    pub dtype: DType,
    pub device: DeviceId,
    pub requires_grad: bool,
    /// The `grad_fn` of a tensor that requires a gradient: `ReluBackward0`.
    pub grad_fn: Option<&'a str>,
    /// The float type for which no `dtype=` is printed.
    pub default_dtype: DType,
}

impl<'a> Printed<'a> {
    /// A tensor on the CPU without a gradient.
    pub fn new(shape: &'a [usize], dtype: DType) -> Printed<'a> {
        Printed { shape, dtype, device: DeviceId::Cpu, requires_grad: false, grad_fn: None, default_dtype: DType::F32 }
    }
}

/// The indices that are shown of each dimension; `format` reads the elements of their product.
pub fn visible(shape: &[usize], options: &PrintOptions) -> Vec<Vec<usize>> {
    let summarize = summarized(shape, options);
    let edge = options.edgeitems;
    shape
        .iter()
        .map(|&size| match summarize && size > edge.saturating_mul(2) {
            true => (0..edge).chain(size - edge..size).collect(),
            false => (0..size).collect(),
        })
        .collect()
}

fn summarized(shape: &[usize], options: &PrintOptions) -> bool {
    // An overflowing product is certainly above the threshold; a size of 0 is not.
    super::layout::numel(shape).is_none_or(|n| n > options.threshold)
}

/// The whole text: `tensor([[1., 2.]], device=cuda:1, dtype=f64)`.
///
/// `at` is called once for each index of `visible`, in row-major order; of complex numbers with a last index of 0 for
/// the real parts, and then with 1 for the imaginary ones. 16-bit floats are passed as the
/// `f64` of the same value.
///
/// `grows` is called with the bytes of a list or text before it is allocated, and again after some hundred elements; an
/// error ends the formatting.
pub fn format<E>(
    printed: &Printed,
    options: &PrintOptions,
    mut at: impl FnMut(&[usize]) -> Scalar,
    grows: &mut dyn FnMut(usize) -> Result<(), E>,
) -> Result<String, E> {
    const PREFIX: &str = "tensor(";
    let mut text = String::from(PREFIX);
    if printed.shape.contains(&0) {
        text.push_str("[]");
    } else {
        let complex = printed.dtype.is_complex();
        let of_part = |index: &[usize], which: usize| [index, &[which]].concat();
        let mut first = |index: &[usize]| if complex { at(&of_part(index, 0)) } else { at(index) };
        let values = collect(printed.shape, options, &mut first, grows)?;
        let real = printed.dtype.real_part();
        let style = Style::of(&values, real, options, grows)?;
        let mut imaginary = Vec::new();
        if complex {
            imaginary = collect(printed.shape, options, &mut |index: &[usize]| at(&of_part(index, 1)), grows)?;
        }
        let imag = if complex { Some(Style::of(&imaginary, real, options, grows)?) } else { None };
        let summarize = summarized(printed.shape, options);
        let imag = imag.map(|style| (imaginary.iter(), style));
        let mut writer = Writer { values: values.iter(), style, imag, summarize, options, grows };
        writer.block(&mut text, printed.shape, PREFIX.len())?;
    }
    add_suffixes(&mut text, &suffixes(printed, options), PREFIX.len(), options.linewidth);
    Ok(text)
}

/// The elements that are shown, in row-major order, without the blanks that align them in a text.
pub fn elements<E>(
    shape: &[usize],
    dtype: DType,
    options: &PrintOptions,
    mut at: impl FnMut(&[usize]) -> Scalar,
    grows: &mut dyn FnMut(usize) -> Result<(), E>,
) -> Result<Vec<String>, E> {
    let mut part = |which: usize, grows: &mut dyn FnMut(usize) -> Result<(), E>| -> Result<Vec<String>, E> {
        let of_part = |index: &[usize]| [index, &[which]].concat();
        let mut one = |index: &[usize]| if dtype.is_complex() { at(&of_part(index)) } else { at(index) };
        let values = collect(shape, options, &mut one, grows)?;
        let style = Style::of(&values, dtype.real_part(), options, grows)?;
        Ok(values.into_iter().map(|value| style.element(value)).collect())
    };
    let real = part(0, grows)?;
    if !dtype.is_complex() {
        return Ok(real);
    }
    let join = |(real, imag): (String, String)| match imag.starts_with('-') {
        true => format!("{real}{imag}j"),
        false => format!("{real}+{imag}j"),
    };
    Ok(real.into_iter().zip(part(1, grows)?).map(join).collect())
}

fn collect<E>(
    shape: &[usize],
    options: &PrintOptions,
    at: &mut impl FnMut(&[usize]) -> Scalar,
    grows: &mut dyn FnMut(usize) -> Result<(), E>,
) -> Result<Vec<Scalar>, E> {
    // Without a threshold all elements are shown, each with at least one character.
    let edges =
        |&size: &usize| if summarized(shape, options) { size.min(options.edgeitems.saturating_mul(2)) } else { size };
    grows(shape.iter().map(edges).fold(1, usize::saturating_mul))?;
    let shown = visible(shape, options);
    let count = shown.iter().map(Vec::len).product();
    let mut values = Vec::new();
    let mut place = vec![0; shape.len()];
    let mut index: Vec<usize> = shown.iter().map(|dim| dim.first().copied().unwrap_or(0)).collect();
    for done in 0..count {
        if done.is_multiple_of(LOOK_EVERY) {
            grows((done + LOOK_EVERY) * size_of::<Scalar>())?;
        }
        values.push(at(&index));
        for dim in (0..shape.len()).rev() {
            place[dim] += 1;
            if place[dim] < shown[dim].len() {
                index[dim] = shown[dim][place[dim]];
                break;
            }
            place[dim] = 0;
            index[dim] = shown[dim][0];
        }
    }
    Ok(values)
}

/// PyTorch's `_Formatter`: one notation and one width for all elements that are shown.
struct Style {
    float: bool,
    integral: bool,
    scientific: bool,
    width: usize,
    precision: usize,
}

impl Style {
    fn of<E>(
        values: &[Scalar],
        dtype: DType,
        options: &PrintOptions,
        grows: &mut dyn FnMut(usize) -> Result<(), E>,
    ) -> Result<Style, E> {
        let float = dtype.is_float();
        let mut style = Style { float, integral: true, scientific: false, width: 1, precision: options.precision };
        if !float {
            style.width = style.widest(values.iter().copied(), grows)?;
            return Ok(style);
        }
        let numbers = || values.iter().map(|value| value.to_f64()).filter(|x| x.is_finite() && *x != 0.0);
        if numbers().next().is_none() {
            return Ok(style);
        }
        let low = numbers().fold(f64::INFINITY, |low, x| low.min(x.abs()));
        let high = numbers().fold(0.0f64, |high, x| high.max(x.abs()));
        style.integral = numbers().all(|x| x == x.ceil());
        style.scientific = options.sci_mode.unwrap_or(high / low > 1000.0 || high > 1.0e8 || low < 1.0e-4);
        // Zeros, infinities and NaN do not count for the width, as in PyTorch.
        style.width = style.widest(numbers().map(Scalar::Float), grows)?;
        Ok(style)
    }

    fn widest<E>(
        &self,
        values: impl Iterator<Item = Scalar>,
        grows: &mut dyn FnMut(usize) -> Result<(), E>,
    ) -> Result<usize, E> {
        let mut width = 1;
        for (done, value) in values.enumerate() {
            width = width.max(self.element(value).len());
            if done.is_multiple_of(LOOK_EVERY) {
                grows(done.saturating_mul(width))?;
            }
        }
        Ok(width)
    }

    fn element(&self, value: Scalar) -> String {
        if !self.float {
            return value.to_string();
        }
        let x = value.to_f64();
        if x.is_nan() {
            "nan".to_string()
        } else if x.is_infinite() {
            if x > 0.0 { "inf".to_string() } else { "-inf".to_string() }
        } else if self.scientific {
            scientific(x, self.precision)
        } else if self.integral {
            format!("{x:.0}.")
        } else {
            format!("{x:.*}", self.precision)
        }
    }

    fn push(&self, text: &mut String, value: Scalar) {
        let element = self.element(value);
        text.extend(std::iter::repeat_n(' ', self.width.saturating_sub(element.len())));
        text.push_str(&element);
    }
}

/// C's `%.4e`: a sign and at least two digits in the exponent, which Rust leaves out.
fn scientific(x: f64, precision: usize) -> String {
    let text = format!("{x:.precision$e}");
    let Some((mantissa, exponent)) = text.split_once('e') else { return text };
    let (sign, digits) = exponent.strip_prefix('-').map_or(('+', exponent), |digits| ('-', digits));
    format!("{mantissa}e{sign}{digits:0>2}")
}

struct Writer<'a, E> {
    values: std::slice::Iter<'a, Scalar>,
    style: Style,
    /// Of complex numbers: the imaginary parts, which have their own notation.
    imag: Option<(std::slice::Iter<'a, Scalar>, Style)>,
    summarize: bool,
    options: &'a PrintOptions,
    grows: &'a mut dyn FnMut(usize) -> Result<(), E>,
}

impl<E> Writer<'_, E> {
    /// A tensor of any number of dims, whose opening bracket is at column `indent`.
    fn block(&mut self, text: &mut String, shape: &[usize], indent: usize) -> Result<(), E> {
        match shape {
            [] => self.next(text)?,
            [size] => self.vector(text, *size, indent)?,
            [size, rest @ ..] => {
                text.push('[');
                let edge = self.options.edgeitems;
                let short = self.summarize && *size > edge.saturating_mul(2);
                let rows = if short { 2 * edge + 1 } else { *size };
                for row in 0..rows {
                    if row > 0 {
                        text.push(',');
                        text.extend(std::iter::repeat_n('\n', rest.len()));
                        text.extend(std::iter::repeat_n(' ', indent + 1));
                    }
                    match short && row == edge {
                        true => text.push_str("..."),
                        false => self.block(text, rest, indent + 1)?,
                    }
                }
                text.push(']');
            }
        }
        Ok(())
    }

    /// The last dim: as many elements on a line as fit.
    fn vector(&mut self, text: &mut String, size: usize, indent: usize) -> Result<(), E> {
        let width = self.style.width + 2 + self.imag.as_ref().map_or(0, |(_, style)| style.width + 1);
        let per_line = (self.options.linewidth.saturating_sub(indent) / width).max(1);
        let edge = self.options.edgeitems;
        let short = self.summarize && (size > edge.saturating_mul(2) || edge == 0);
        let items = if short { 2 * edge + 1 } else { size };
        text.push('[');
        for item in 0..items {
            if item > 0 && item % per_line == 0 {
                text.push_str(",\n");
                text.extend(std::iter::repeat_n(' ', indent + 1));
            } else if item > 0 {
                text.push_str(", ");
            }
            match short && item == edge {
                true if edge == 0 => text.push_str("..."),
                true => text.push_str(" ..."),
                false => self.next(text)?,
            }
        }
        text.push(']');
        Ok(())
    }

    fn next(&mut self, text: &mut String) -> Result<(), E> {
        if let Some(value) = self.values.next() {
            self.style.push(text, *value);
        }
        if let Some((values, style)) = &mut self.imag
            && let Some(value) = values.next()
        {
            let mut part = String::new();
            style.push(&mut part, *value);
            let part = part.trim_start();
            text.push_str(if part.starts_with('-') { "" } else { "+" });
            text.push_str(part);
            text.push('j');
        }
        if self.values.len().is_multiple_of(LOOK_EVERY) {
            (self.grows)(text.len())?;
        }
        Ok(())
    }
}

fn suffixes(printed: &Printed, options: &PrintOptions) -> Vec<String> {
    let Printed { shape, dtype, .. } = *printed;
    let mut out = Vec::new();
    if printed.device.is_cuda() {
        out.push(format!("device={}", printed.device));
    }
    let empty = shape.contains(&0);
    if (empty && shape.len() != 1) || (!empty && options.edgeitems == 0) {
        out.push(format!("size={}", tuple(shape)));
    }
    // An empty tensor has no elements that show whether its dtype is an integer type.
    let usual = if dtype.is_complex() && !empty { printed.default_dtype.to_complex() } else { printed.default_dtype };
    let plain = dtype == usual || (!empty && matches!(dtype, DType::I64 | DType::Bool));
    if !plain {
        out.push(format!("dtype={dtype}"));
    }
    if let Some(name) = printed.grad_fn {
        out.push(format!("grad_fn=<{name}>"));
    } else if printed.requires_grad {
        out.push("requires_grad=true".to_string());
    }
    out
}

/// Python's tuple: `(2, 3)`, `(2,)`, `()`.
fn tuple(shape: &[usize]) -> String {
    let sizes: Vec<String> = shape.iter().map(usize::to_string).collect();
    format!("({}{})", sizes.join(", "), if sizes.len() == 1 { "," } else { "" })
}

fn add_suffixes(text: &mut String, suffixes: &[String], indent: usize, linewidth: usize) {
    // PyTorch counts `len - rfind + 1`, where `rfind` is -1 without a newline and the newline itself counts.
    let mut length = text.rfind('\n').map_or(text.len() + 2, |newline| text.len() - newline + 1);
    for suffix in suffixes {
        if length + suffix.len() + 2 > linewidth {
            text.push_str(",\n");
            text.extend(std::iter::repeat_n(' ', indent));
            length = indent + suffix.len();
        } else {
            text.push_str(", ");
            length += suffix.len() + 2;
        }
        text.push_str(suffix);
    }
    text.push(')');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(printed: &Printed, at: impl FnMut(&[usize]) -> Scalar) -> String {
        format(printed, &PrintOptions::default(), at, &mut |_| Ok::<(), ()>(())).expect("nobody refuses")
    }

    #[test]
    fn what_grows_without_end_is_refused() {
        let all = PrintOptions { threshold: usize::MAX, ..PrintOptions::default() };
        let edges = PrintOptions { edgeitems: usize::MAX, ..PrintOptions::default() };
        for options in [all, edges] {
            let mut asked = 0;
            let told = format(
                &Printed::new(&[1 << 40, 1 << 20], DType::F32),
                &options,
                |_| Scalar::Float(0.5),
                &mut |bytes| {
                    asked += 1;
                    if bytes > 1 << 20 { Err("too large") } else { Ok(()) }
                },
            );
            assert_eq!((told, asked), (Err("too large"), 1));
        }
    }

    #[test]
    fn a_huge_tensor_is_asked_for_its_corners_only() {
        let shape = [1 << 20, 1 << 20, 4];
        let mut asked = 0;
        let element = |index: &[usize]| {
            asked += 1;
            Scalar::Float((index[0] % 7) as f64)
        };
        let text = whole(&Printed::new(&shape, DType::F32), element);
        assert_eq!(asked, 6 * 6 * 4);
        assert!(text.starts_with("tensor([[[0., 0., 0., 0.],\n") && text.contains("...,\n"));
    }

    #[test]
    fn suffixes_in_our_words() {
        let shape = [1];
        let printed = Printed { device: DeviceId::Cuda(1), requires_grad: true, ..Printed::new(&shape, DType::F64) };
        let text = whole(&printed, |_| Scalar::Float(-0.5));
        assert_eq!(text, "tensor([-0.5000], device=cuda:1, dtype=f64, requires_grad=true)");
    }
}
