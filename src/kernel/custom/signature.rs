//! The parameters of a kernel in a CUDA text: `__global__ void f(const float* x, int n)`. Reads declarations, not C++:
//! what it does not know is told, and can be said beside the text.

use crate::base::code;
use crate::base::diag::{Diag, Result};
use crate::base::dtype::DType;
use crate::base::quoted::Quoted;
use std::ops::Range;

/// A number's or an element's type.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A type that tensors have, too.
    Of(DType),
    U16,
    U32,
    U64,
    /// `void`, of pointers only: elements of any dtype.
    Any,
}

impl Kind {
    pub fn size_bytes(self) -> usize {
        match self {
            Kind::Of(dtype) => dtype.size_bytes(),
            Kind::U16 => 2,
            Kind::U32 => 4,
            Kind::U64 | Kind::Any => 8,
        }
    }

    /// Whether the elements of a tensor can be of this type. PyTorch's tensors of signed integers are those of the
    /// unsigned type of their size.
    pub fn holds(self, dtype: DType) -> bool {
        match self {
            Kind::Any => true,
            Kind::Of(own) => own == dtype,
            Kind::U16 => dtype == DType::I16,
            Kind::U32 => dtype == DType::I32,
            Kind::U64 => dtype == DType::I64,
        }
    }
}

/// One parameter.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Parameter {
    pub name: String,
    pub kind: Kind,
    pub is_pointer: bool,
    /// The kernel may write what the pointer points to.
    pub is_written: bool,
    /// As the text has it.
    pub written: String,
    pub range: Range<usize>,
}

impl Parameter {
    /// Bytes that a launch passes for it.
    pub fn size_bytes(&self) -> usize {
        if self.is_pointer { 8 } else { self.kind.size_bytes() }
    }
}

/// The parameters of the kernel `entry` in a text; `types` says them instead of the text.
pub fn read(text: &Quoted, entry: &str, types: Option<&[String]>) -> Result<Vec<Parameter>> {
    let source = without_comments(&text.text);
    let list = find(&source, entry).map_err(|(message, range, label, help)| {
        text.mark(Diag::error(code::KERNEL_TEXT, message).help(help), range, label)
    })?;
    let declared = split(&source, list.clone());
    if let Some(types) = types {
        return said(text, types, &declared, list);
    }
    declared
        .into_iter()
        .map(|range| parameter(&source[range.clone()], range.clone()).ok_or_else(|| unknown(text, range)))
        .collect()
}

/// Types that were said beside the text, one for each parameter.
fn said(text: &Quoted, types: &[String], declared: &[Range<usize>], list: Range<usize>) -> Result<Vec<Parameter>> {
    if types.len() != declared.len() {
        let message = format!("the kernel has {} parameters, and `types` has {}", declared.len(), types.len());
        return Err(text.mark(Diag::error(code::KERNEL_TEXT, message), list, "these parameters"));
    }
    let one = |(at, (said, range)): (usize, (&String, &Range<usize>))| {
        let name = last_name(&text.text[range.clone()]).unwrap_or_else(|| format!("argument {at}"));
        let found = parameter(&format!("{said} {name}"), range.clone());
        found.map(|found| Parameter { name, written: said.clone(), ..found }).ok_or_else(|| {
            Diag::error(code::VALUE, format!("`{said}` is no type of a parameter")).help(
                "a dtype or a type of C for numbers, such as \"i64\"; with `*` for tensors: \"f32*\", \"const f32*\"",
            )
        })
    };
    types.iter().zip(declared).enumerate().map(one).collect()
}

fn unknown(text: &Quoted, range: Range<usize>) -> Box<Diag> {
    let message = format!("the type of the parameter `{}` is not known", text.text[range.clone()].trim());
    let help = "say the types of all parameters with `types: [\"const f32*\", \"f32*\", \"i64\"]`";
    text.mark(Diag::error(code::KERNEL_TEXT, message).help(help), range, "this parameter")
}

/// The same text with blanks in place of comments and strings, so that places stay.
fn without_comments(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = bytes.to_vec();
    let mut at = 0;
    let mut blank = |from: usize, to: usize| {
        out[from..to].iter_mut().filter(|byte| **byte != b'\n').for_each(|byte| *byte = b' ');
    };
    while at < bytes.len() {
        let rest = &text.as_bytes()[at..];
        let end = if rest.starts_with(b"//") {
            at + rest.iter().position(|&b| b == b'\n').unwrap_or(rest.len())
        } else if rest.starts_with(b"/*") {
            at + rest.windows(2).skip(2).position(|pair| pair == b"*/").map_or(rest.len(), |found| found + 4)
        } else if rest.starts_with(b"\"C\"") {
            // The linkage is no text.
            at += 3;
            continue;
        } else if rest[0] == b'"' {
            let closing = rest.iter().enumerate().skip(1).find(|(i, b)| **b == b'"' && rest[i - 1] != b'\\');
            at + closing.map_or(rest.len(), |(i, _)| i + 1)
        } else {
            at += 1;
            continue;
        };
        blank(at, end);
        at = end;
    }
    String::from_utf8(out).unwrap_or_else(|_| text.to_string())
}

fn is_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

type Missing = (String, Range<usize>, &'static str, &'static str);

/// The bytes between the brackets of the kernel's parameters.
fn find(source: &str, entry: &str) -> std::result::Result<Range<usize>, Missing> {
    const C: &str = "write `extern \"C\" __global__ void name(..)`";
    let mut declared: Vec<&str> = Vec::new();
    for (at, _) in source.match_indices("__global__") {
        let Some(open) = parameters_open(source, at) else { continue };
        let before = source[..open].trim_end();
        let name = before.rsplit(|c: char| !is_name(c)).next().unwrap_or("");
        if name != entry {
            declared.push(name);
            continue;
        }
        let place = before.len() - name.len()..before.len();
        let begin = source[..at].rfind([';', '}']).map_or(0, |found| found + 1);
        if source[begin..at].contains("template") {
            return Err((
                format!("the kernel `{entry}` is a template"),
                place,
                "this template",
                "write one kernel for each type that is used: `extern \"C\" __global__ void name(..)`",
            ));
        }
        if !in_c(source, at, begin) {
            return Err((format!("the kernel `{entry}` is not `extern \"C\"`"), place, "this kernel", C));
        }
        let Some(close) = closing(source, open) else {
            return Err(("the list of parameters is never closed".into(), open..open + 1, "opened here", C));
        };
        return Ok(open + 1..close);
    }
    let message = match declared.is_empty() {
        true => format!("the text has no kernel `{entry}`"),
        false => format!("the text has no kernel `{entry}`; it has `{}`", declared.join("`, `")),
    };
    Err((message, 0..source.lines().next().map_or(0, str::len), "this text", C))
}

/// Whether a declaration is `extern "C"`, by itself or in a block of such.
fn in_c(source: &str, at: usize, begin: usize) -> bool {
    let blocks = source[..at].matches("extern \"C\" {").count() + source[..at].matches("extern \"C\"{").count();
    source[begin..at].contains("extern \"C\"") || blocks > 0
}

/// The bracket that opens the parameters of the kernel after `__global__`; attributes have brackets, too.
fn parameters_open(source: &str, at: usize) -> Option<usize> {
    let mut open = at + source[at..].find('(')?;
    while source[at..open].trim_end().ends_with("__launch_bounds__") {
        let close = closing(source, open)?;
        open = close + source[close..].find('(')?;
    }
    Some(open)
}

fn closing(source: &str, open: usize) -> Option<usize> {
    let mut depth = 0;
    for (at, c) in source[open..].char_indices() {
        match c {
            '(' => depth += 1,
            ')' if depth == 1 => return Some(open + at),
            ')' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// The declarations of a list, without the blanks around them.
fn split(source: &str, list: Range<usize>) -> Vec<Range<usize>> {
    let (mut found, mut start, mut depth) = (Vec::new(), list.start, 0);
    for (at, c) in source[list.clone()].char_indices() {
        match c {
            '<' | '(' | '[' => depth += 1,
            '>' | ')' | ']' => depth -= 1,
            ',' if depth == 0 => {
                found.push(start..list.start + at);
                start = list.start + at + 1;
            }
            _ => {}
        }
    }
    found.push(start..list.end);
    let trimmed = found.into_iter().map(|range| {
        let text = &source[range.clone()];
        let left = range.start + text.len() - text.trim_start().len();
        left..left + text.trim().len()
    });
    let all: Vec<Range<usize>> = trimmed.collect();
    if let [only] = &*all
        && matches!(&source[only.clone()], "" | "void")
    {
        return Vec::new();
    }
    all
}

fn last_name(declaration: &str) -> Option<String> {
    let name = declaration.trim_end().rsplit(|c: char| !is_name(c)).next().filter(|name| !name.is_empty());
    name.map(str::to_string)
}

/// `const float* __restrict__ x`.
fn parameter(declaration: &str, range: Range<usize>) -> Option<Parameter> {
    let stars = declaration.matches('*').count() + declaration.matches("[]").count();
    if stars > 1 || declaration.contains(['&', '=', '<', '(']) {
        return None;
    }
    let is_pointer = stars == 1;
    let spaced = declaration.replace('*', " * ").replace("[]", "");
    let ignored = |word: &&str| !matches!(*word, "__restrict__" | "__restrict" | "restrict" | "volatile");
    let mut words: Vec<&str> = spaced.split_whitespace().filter(ignored).collect();
    let name = words.pop().filter(|name| name.chars().all(is_name))?;
    let star = words.iter().position(|word| *word == "*").unwrap_or(words.len());
    // `const` behind the star is of the pointer, not of what it points to.
    let (types, behind) = words.split_at(star);
    if behind.iter().any(|word| !matches!(*word, "*" | "const")) {
        return None;
    }
    let is_const = types.contains(&"const");
    let types: Vec<&str> = types.iter().copied().filter(|word| !matches!(*word, "const" | "struct")).collect();
    let kind = kind(&types)?;
    if kind == Kind::Any && !is_pointer {
        return None;
    }
    let written = declaration.strip_suffix(name).unwrap_or(declaration).trim().to_string();
    Some(Parameter { name: name.to_string(), kind, is_pointer, is_written: is_pointer && !is_const, written, range })
}

fn kind(words: &[&str]) -> Option<Kind> {
    let joined = words.join(" ").replace("std::", "");
    Some(match &*joined {
        "void" => Kind::Any,
        "char" | "signed char" | "int8_t" => Kind::Of(DType::I8),
        "unsigned char" | "uint8_t" => Kind::Of(DType::U8),
        "short int" | "int16_t" | "signed short" => Kind::Of(DType::I16),
        "unsigned short" | "unsigned short int" | "uint16_t" | "ushort" => Kind::U16,
        "signed" | "signed int" | "int32_t" => Kind::Of(DType::I32),
        "unsigned" | "unsigned int" | "uint32_t" | "uint" => Kind::U32,
        "long long" | "long long int" | "long int" | "signed long long" | "int64_t" | "ptrdiff_t" | "ssize_t" => {
            Kind::Of(DType::I64)
        }
        "unsigned long" | "unsigned long long" | "unsigned long long int" | "uint64_t" | "size_t" | "ulong" => {
            Kind::U64
        }
        "__half" => Kind::Of(DType::F16),
        "__nv_bfloat16" => Kind::Of(DType::BF16),
        other => Kind::Of(DType::parse(other)?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> String {
        let params = match read(&Quoted::plain(text), "f", None) {
            Ok(params) => params,
            Err(diag) => return diag.message,
        };
        let one = |param: &Parameter| {
            let star = if param.is_pointer { "*" } else { "" };
            format!("{} {:?}{star}{}", param.name, param.kind, if param.is_written { "!" } else { "" })
        };
        params.iter().map(one).collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn parameters_are_read() {
        for (list, expected) in [
            ("const float* x, float *y, int n", "x Of(F32)*, y Of(F32)*!, n Of(I32)"),
            ("double const * __restrict__ a, long long n, bool on", "a Of(F64)*, n Of(I64), on Of(Bool)"),
            ("unsigned int n, size_t m, float* const y", "n U32, m U64, y Of(F32)*!"),
            ("void* any, __half h, float x[]", "any Any*!, h Of(F16), x Of(F32)*!"),
            ("", ""),
            ("void", ""),
            ("thing t", "the type of the parameter `thing t` is not known"),
            ("float** x", "the type of the parameter `float** x` is not known"),
        ] {
            assert_eq!(told(&format!("extern \"C\" __global__ void f({list}) {{ }}")), expected, "{list}");
        }
    }

    #[test]
    fn kernels_are_found_in_their_text() {
        let comment = "// __global__ void f(int a)\n/* f( */ extern \"C\" { __global__ void __launch_bounds__(256, 2) f(int b) {} }";
        assert_eq!(told(comment), "b Of(I32)");
        assert_eq!(told("__global__ void f(int a) {}"), "the kernel `f` is not `extern \"C\"`");
        assert_eq!(told("template <class T> __global__ void f(T a) {}"), "the kernel `f` is a template");
        assert_eq!(told("extern \"C\" __global__ void g(int a) {}"), "the text has no kernel `f`; it has `g`");
        assert_eq!(told("int f;"), "the text has no kernel `f`");
        assert_eq!(told("extern \"C\" __global__ void f(int a"), "the list of parameters is never closed");
    }

    #[test]
    fn types_may_be_said() {
        let text = Quoted::plain("extern \"C\" __global__ void f(const Pair* p, Count n) {}");
        let types = ["const f32*".to_string(), "i64".to_string()];
        let params = read(&text, "f", Some(&types)).unwrap();
        assert_eq!((params[0].kind, params[0].is_written, &*params[0].name), (Kind::Of(DType::F32), false, "p"));
        assert_eq!((params[1].kind, params[1].is_pointer, &*params[1].name), (Kind::Of(DType::I64), false, "n"));
        assert!(read(&text, "f", Some(&types[..1])).is_err());
    }
}
