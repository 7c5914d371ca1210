//! The parameters of an element-wise function: `"f32 x, T y -> T z"`.

use super::lex::{Kind, Token, tokens};
use super::{Fault, fault};
use crate::base::dtype::DType;
use std::ops::Range;

/// Bound: inputs and results of a function; a call has no more arguments.
const MOST: usize = 15;

/// What a parameter says of its dtype.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Declared {
    /// Nothing: promotion decides.
    Any,
    Of(DType),
    /// A capital letter: the same dtype wherever it stands.
    Same(String),
}

#[derive(Clone, Debug)]
pub struct Param {
    pub name: String,
    pub declared: Declared,
    pub range: Range<usize>,
}

#[derive(Debug)]
pub struct Params {
    pub inputs: Vec<Param>,
    pub results: Vec<Param>,
}

impl Params {
    pub fn read(text: &str) -> Result<Params, Fault> {
        let tokens = tokens(text)?;
        let mut at = 0;
        let inputs = list(&tokens, &mut at)?;
        let token = &tokens[at];
        if token.kind != Kind::Symbol("->") {
            let text = "an arrow is missing between the inputs and the results: `x, y -> z`";
            return Err(fault(token.range.clone(), text.into(), "`->` was expected here"));
        }
        at += 1;
        let results = list(&tokens, &mut at)?;
        let token = &tokens[at];
        if token.kind != Kind::End {
            return Err(fault(token.range.clone(), "something follows the results".into(), "not expected here"));
        }
        let params = Params { inputs, results };
        params.check()?;
        Ok(params)
    }

    fn check(&self) -> Result<(), Fault> {
        let all: Vec<&Param> = self.inputs.iter().chain(&self.results).collect();
        for (at, param) in all.iter().enumerate() {
            if all[..at].iter().any(|other| other.name == param.name) {
                let text = format!("two parameters are called `{}`", param.name);
                return Err(fault(param.range.clone(), text, "the second one"));
            }
        }
        for result in &self.results {
            let is_known =
                |letter: &String| self.inputs.iter().any(|input| input.declared == Declared::Same(letter.clone()));
            if let Declared::Same(letter) = &result.declared
                && !is_known(letter)
            {
                let text = format!("no input has the dtype `{letter}`, which the result `{}` shall have", result.name);
                return Err(fault(result.range.clone(), text, "this result"));
            }
        }
        Ok(())
    }
}

fn list(tokens: &[Token<'_>], at: &mut usize) -> Result<Vec<Param>, Fault> {
    let mut params = Vec::new();
    loop {
        let token = &tokens[*at];
        let Kind::Name(mut name) = token.kind else {
            return Err(fault(token.range.clone(), "the name of a parameter is missing".into(), "expected here"));
        };
        let mut range = token.range.clone();
        let mut declared = Declared::Any;
        *at += 1;
        if let Kind::Name(second) = tokens[*at].kind {
            declared = dtype(name).ok_or_else(|| unknown(name, range.clone()))?;
            (name, range) = (second, tokens[*at].range.clone());
            *at += 1;
        }
        if DType::parse(name).is_some() {
            let text = format!("`{name}` is a dtype; the parameter's name is missing");
            return Err(fault(range, text, "the name belongs after this"));
        }
        params.push(Param { name: name.to_string(), declared, range: range.clone() });
        if params.len() > MOST {
            return Err(fault(range, format!("more than {MOST} inputs or results"), "one too many"));
        }
        if tokens[*at].kind != Kind::Symbol(",") {
            return Ok(params);
        }
        *at += 1;
    }
}

/// A dtype or a letter for one.
pub fn dtype(name: &str) -> Option<Declared> {
    if let Some(dtype) = DType::parse(name) {
        return Some(Declared::Of(dtype));
    }
    let is_letter = name.len() == 1 && name.starts_with(|c: char| c.is_ascii_uppercase());
    is_letter.then(|| Declared::Same(name.to_string()))
}

fn unknown(name: &str, range: Range<usize>) -> Fault {
    let mut fault = fault(range, format!("unknown dtype `{name}`"), "this dtype");
    let help = "a dtype, such as f32, or a capital letter that stands for the dtype of an argument: `T x, T y -> T z`";
    fault.diag = fault.diag.help(help);
    fault
}
