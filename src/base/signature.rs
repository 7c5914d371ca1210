//! Signatures: one type and one notation for operations, functions of the library and native functions. Binding,
//! `check`, messages, help, completion and the reference all read them.
//!
//! `conv2d(in_channels, out_channels, kernel_size, stride: 1, padding: 0, last_epoch = -1, *, bias: true)`
//!
//! | written | means |
//! |---|---|
//! | `name` | must be given |
//! | `name?` | may be left out |
//! | `name: value` | has a default |
//! | `name: "mean"\|"sum"` | can be no other text than these; the first is the default |
//! | `name = value` | can have no other value |
//! | `*` | what follows is given by name only |
//! | `*name` | takes all values of a call |
//! | `f(..) -> bool` | what kind of value it gives, where that is always one |
//!
//! If any parameter has a default, all parameters can also be given by name, in a map at the end of the call; otherwise
//! a map is an ordinary value. `signature!` (`op/signature.rs`) is the same for a row of the op table, with the types
//! of its values.

use std::fmt;

/// The prefix of a line with a signature in the text of the library.
pub const MARK: &str = "//: ";

/// A default value in a signature.
#[derive(Clone, Debug, PartialEq)]
pub enum Literal {
    Unit,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
    List(Vec<Literal>),
}

#[derive(Clone, Debug, PartialEq)]
pub enum Rule {
    Required,
    /// May be omitted, and has no default that a script could write.
    Optional,
    Default(Literal),
    /// No other value is possible.
    Only(Literal),
    /// All arguments of the call.
    Several,
}

/// The type of a parameter's value, as far as its name or its default determines it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Accepts {
    Any,
    Flag,
    Number,
    /// One of the parameter's strings.
    Word,
    DType,
    Device,
}

/// The type of a result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Gives {
    Int,
    Float,
    Number,
    Bool,
    String,
    Array,
    Map,
    Tensor,
    Device,
    DType,
    Stream,
    Event,
}

impl Gives {
    /// Its names in the notation.
    const NAMES: &[(&str, Gives)] = &[
        ("int", Gives::Int),
        ("float", Gives::Float),
        ("number", Gives::Number),
        ("bool", Gives::Bool),
        ("string", Gives::String),
        ("array", Gives::Array),
        ("map", Gives::Map),
        ("tensor", Gives::Tensor),
        ("device", Gives::Device),
        ("dtype", Gives::DType),
        ("stream", Gives::Stream),
        ("event", Gives::Event),
    ];

    /// Whether the interpreter's name of a type is this type.
    pub fn is_called(self, type_name: &str) -> bool {
        match self {
            Gives::Int => type_name == "i64",
            Gives::Float => type_name == "f64",
            Gives::Number => matches!(type_name, "i64" | "f64" | "bool"),
            other => Gives::NAMES.iter().any(|(name, gives)| *gives == other && *name == type_name),
        }
    }

    fn parse(name: &str) -> Option<Gives> {
        Gives::NAMES.iter().find(|(known, _)| *known == name).map(|(_, result)| *result)
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Param {
    pub name: String,
    pub rule: Rule,
    /// The only strings that are allowed; values of other types are not restricted.
    pub words: Vec<String>,
}

/// The parameters of a function.
#[derive(Clone, Debug, PartialEq)]
pub struct Signature {
    pub name: String,
    pub params: Vec<Param>,
    /// Number of parameters that may be given by position.
    pub positional: usize,
    /// The text of the signature without its result: `step_lr(optimizer, step_size, gamma: 0.1)`.
    pub text: String,
    pub result: Option<Gives>,
}

impl Param {
    pub fn accepts(&self) -> Accepts {
        match (&self.name[..], &self.rule) {
            _ if !self.words.is_empty() => Accepts::Word,
            ("dtype" | "type1" | "type2", _) => Accepts::DType,
            ("device", _) => Accepts::Device,
            (_, Rule::Default(Literal::Bool(_))) => Accepts::Flag,
            (_, Rule::Default(Literal::Int(_) | Literal::Float(_))) => Accepts::Number,
            _ => Accepts::Any,
        }
    }
}

impl Signature {
    pub fn new(name: &str, params: Vec<Param>, positional: usize) -> Signature {
        let mut signature = Signature { name: name.to_string(), params, positional, text: String::new(), result: None };
        signature.text = signature.to_string();
        signature
    }

    /// Parses `name(a, b: 1)`; `None` if the text has another form.
    pub fn parse(text: &str) -> Option<Signature> {
        let (text, result) = match text.trim().split_once(") -> ") {
            Some((call, result)) => (&text.trim()[..=call.len()], Some(Gives::parse(result)?)),
            None => (text.trim(), None),
        };
        let (name, inside) = text.strip_suffix(')')?.split_once('(')?;
        let mut params = Vec::new();
        let mut positional = None;
        for part in parts(inside) {
            match part.strip_prefix('*') {
                Some("") => positional = Some(params.len()),
                Some(name) => {
                    params.push(Param { name: name.to_string(), rule: Rule::Several, words: Vec::new() });
                    positional = Some(usize::MAX);
                }
                None => params.push(param(part)?),
            }
        }
        let positional = positional.unwrap_or(params.len());
        Some(Signature { name: name.to_string(), params, positional, text: text.to_string(), result })
    }

    /// Whether a map at the end of a call is read as keywords.
    pub fn takes_keywords(&self) -> bool {
        self.params.iter().any(|param| matches!(param.rule, Rule::Default(_) | Rule::Only(_)))
    }

    /// The indices of the parameters that may be given by name and have more than one possible value.
    pub fn keywords(&self) -> impl Iterator<Item = usize> {
        let by_name = |param: &Param| !matches!(param.rule, Rule::Only(_) | Rule::Several);
        let count = if self.takes_keywords() { self.params.len() } else { 0 };
        (0..count).filter(move |&at| by_name(&self.params[at]))
    }

    /// Whether one parameter takes all arguments of a call.
    pub fn takes_all(&self) -> bool {
        matches!(self.params[..], [Param { rule: Rule::Several, .. }])
    }

    pub fn names(&self) -> impl Iterator<Item = &str> + Clone {
        self.params.iter().map(|param| param.name.as_str())
    }

    /// The name of the first parameter.
    pub fn first(&self) -> Option<&str> {
        self.names().next()
    }

    /// The index of the parameter for a keyword: by its name, or by an alias that PyTorch accepts.
    pub fn place(&self, keyword: &str) -> Option<usize> {
        let named = |wanted: &str| self.names().position(|name| name == wanted);
        named(keyword).or_else(|| named(other_name(keyword)?))
    }

    /// The minimal and maximal number of positional arguments.
    pub fn counts(&self) -> (usize, usize) {
        let required = self.params.iter().filter(|param| param.rule == Rule::Required).count();
        (required, self.positional)
    }

    /// The signature as a method: without the first parameter, which is before the dot.
    pub fn as_method(&self) -> Signature {
        let rest = self.params.iter().skip(1).cloned().collect();
        Signature::new(&self.name, rest, self.positional.saturating_sub(1))
    }

    /// The same signature with another name.
    pub fn renamed(&self, name: &str) -> Signature {
        Signature::new(name, self.params.clone(), self.positional)
    }
}

/// Aliases of keywords: NumPy's names that PyTorch accepts, and one of older versions of PyTorch.
pub fn other_name(name: &str) -> Option<&'static str> {
    Some(match name {
        "axis" => "dim",
        "keepdims" => "keepdim",
        "async" => "non_blocking",
        "x" | "a" | "x1" => "input",
        "x2" => "other",
        _ => return None,
    })
}

/// The signatures in a text of the library.
pub fn read(text: &str) -> impl Iterator<Item = Signature> {
    text.lines().filter_map(|line| line.strip_prefix(MARK)).filter_map(Signature::parse)
}

/// Parses one parameter, except those with a star.
fn param(part: &str) -> Option<Param> {
    let is_name = |name: &str| !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_');
    let mut words = Vec::new();
    let (name, rule) = match (part.split_once(": "), part.split_once(" = ")) {
        (Some((name, value)), _) => {
            let mut values = value.split('|').map(literal);
            let default = values.next()??;
            if value.contains('|') {
                let text = |value: Literal| if let Literal::Text(text) = value { Some(text) } else { None };
                // `()` or one of these texts.
                words.extend(text(default.clone()));
                words.extend(values.map(|value| value.and_then(text)).collect::<Option<Vec<_>>>()?);
            }
            (name, Rule::Default(default))
        }
        (None, Some((name, value))) => (name, Rule::Only(literal(value)?)),
        (None, None) => match part.strip_suffix('?') {
            Some(name) => (name, Rule::Optional),
            None => (part, Rule::Required),
        },
    };
    is_name(name).then(|| Param { name: name.to_string(), rule, words })
}

/// Splits at commas outside of brackets of all kinds.
pub fn parts(text: &str) -> Vec<&str> {
    let (mut found, mut start, mut depth) = (Vec::new(), 0, 0);
    for (at, c) in text.char_indices() {
        match c {
            '[' | '(' | '{' => depth += 1,
            ']' | ')' | '}' => depth -= 1,
            ',' if depth == 0 => {
                found.push(text[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    found.push(text[start..].trim());
    found.retain(|part| !part.is_empty());
    found
}

fn literal(text: &str) -> Option<Literal> {
    let text = text.trim();
    Some(match text {
        "()" => Literal::Unit,
        "true" => Literal::Bool(true),
        "false" => Literal::Bool(false),
        _ => {
            let within = |open: char, close: char| text.strip_prefix(open).and_then(|rest| rest.strip_suffix(close));
            if let Some(inside) = within('[', ']') {
                return parts(inside).into_iter().map(literal).collect::<Option<_>>().map(Literal::List);
            }
            if let Some(inside) = within('"', '"') {
                return Some(Literal::Text(inside.to_string()));
            }
            match (text.parse(), text.parse()) {
                (Ok(i), _) => Literal::Int(i),
                (_, Ok(x)) => Literal::Float(x),
                _ => return None,
            }
        }
    })
}

impl fmt::Display for Literal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Literal::Unit => f.write_str("()"),
            Literal::Bool(b) => write!(f, "{b}"),
            Literal::Int(i) => write!(f, "{i}"),
            Literal::Float(x) => write!(f, "{x:?}"),
            Literal::Text(text) => write!(f, "\"{text}\""),
            Literal::List(list) => {
                let list: Vec<String> = list.iter().map(Literal::to_string).collect();
                write!(f, "[{}]", list.join(", "))
            }
        }
    }
}

impl fmt::Display for Param {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &self.name;
        match &self.rule {
            Rule::Required => f.write_str(name),
            Rule::Optional => write!(f, "{name}?"),
            Rule::Only(value) => write!(f, "{name} = {value}"),
            Rule::Several => write!(f, "*{name}"),
            Rule::Default(value) => {
                write!(f, "{name}: {value}")?;
                let is_default = |word: &&String| matches!(value, Literal::Text(text) if text == *word);
                self.words.iter().filter(|word| !is_default(word)).try_for_each(|word| write!(f, "|\"{word}\""))
            }
        }
    }
}

impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}(", self.name)?;
        for (at, param) in self.params.iter().enumerate() {
            let comma = if at > 0 { ", " } else { "" };
            let star = if at == self.positional { "*, " } else { "" };
            write!(f, "{comma}{star}{param}")?;
        }
        f.write_str(")")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_is_written_again() {
        for text in [
            "f()",
            "f(a, b?, c: 1, d: [1, -2.5, ()], e: \"mean\"|\"sum\", g = -1, *, h: true)",
            "f(mode: ()|\"a\"|\"b\")",
            "f(*values, sep: \" \")",
            "f(*, lr: 0.001)",
            "f(text: \"\")",
        ] {
            let read = Signature::parse(text).expect(text);
            assert_eq!(read.to_string(), text);
            assert_eq!(read.text, text);
        }
        for text in ["f", "f(a b)", "f(a: )", "f(a: x)", "f(a: \"b\"|1)", "f(a) -> b", "f(a) ->"] {
            assert_eq!(Signature::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_signature_says_how_a_function_is_called() {
        let read = |text| Signature::parse(text).expect("a signature");
        let f = read("f(input, dim?, *, keepdim: false, dtype: (), eps: 1e-5, how: \"a\"|\"b\")");
        assert_eq!((f.counts(), f.takes_keywords(), f.first()), ((1, 2), true, Some("input")));
        assert_eq!((f.place("axis"), f.place("keepdims"), f.place("axes")), (Some(1), Some(2), None));
        let accepts: Vec<Accepts> = f.params.iter().map(Param::accepts).collect();
        use Accepts::{Any, DType, Flag, Number, Word};
        assert_eq!(accepts, [Any, Any, Flag, DType, Number, Word]);
        assert_eq!(f.as_method().text, "f(dim?, *, keepdim: false, dtype: (), eps: 1e-5, how: \"a\"|\"b\")");
        assert!(!read("f(a, b?)").takes_keywords());
        assert!(read("f(*shapes)").takes_all() && read("f(*shapes)").counts() == (0, usize::MAX));
    }

    #[test]
    fn a_result_is_a_kind_of_value() {
        let read = Signature::parse("is_tensor(value) -> bool").expect("a signature");
        assert_eq!((read.text.as_str(), read.result), ("is_tensor(value)", Some(Gives::Bool)));
        assert_eq!(Signature::parse("f(a: ())").and_then(|read| read.result), None);
    }

    #[test]
    fn signatures_are_found_in_texts() {
        let names: Vec<String> = read("//: f(a)\nfn f(a) {}\n  //: g(a)\n// h(a)\n").map(|s| s.name).collect();
        assert_eq!(names, ["f"]);
    }
}
