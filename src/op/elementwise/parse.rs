//! Reads the text of an element-wise function: statements `name = expression;` with C's operators and precedence.

use super::functions;
use super::lex::{Kind, Token, tokens};
use super::params::{Declared, dtype};
use super::program::{Program, What};
use super::{Fault, fault};
use crate::base::dtype::Scalar;
use crate::base::suggest::nearest;
use crate::op::row::Op;
use crate::op::rows::pointwise::{arith, compare};
use smallvec::SmallVec;
use std::ops::Range;

/// Bound: brackets, calls and choices inside each other; each takes some frames of the stack.
const MOST_NESTED: usize = 100;

/// Words of C that begin what is no assignment.
const STATEMENTS: &[&str] =
    &["if", "else", "for", "while", "do", "switch", "return", "goto", "break", "continue", "struct"];

/// The names of a text.
pub struct Names<'a> {
    /// What it is given.
    pub given: &'a [String],
    /// What it assigns.
    pub results: &'a [String],
    /// What a result is called in messages.
    pub result: &'a str,
}

struct Variable {
    name: String,
    step: Option<usize>,
    /// Its range where it was assigned last, unless something has read it since.
    unread: Option<Range<usize>>,
    /// It is given, and cannot be assigned.
    is_given: bool,
    is_result: bool,
    was_read: bool,
    declared: Option<usize>,
}

struct Parser<'a> {
    tokens: Vec<Token<'a>>,
    at: usize,
    depth: usize,
    program: Program,
    variables: Vec<Variable>,
}

/// The program of a text, and for each given value whether the text reads it.
pub fn program(text: &str, names: &Names<'_>) -> Result<(Program, Vec<bool>), Fault> {
    let mut parser =
        Parser { tokens: tokens(text)?, at: 0, depth: 0, program: Program::default(), variables: Vec::new() };
    for (at, name) in names.given.iter().enumerate() {
        let step = Some(parser.program.push(What::Given(at), &[], 0..0)?);
        parser.variables.push(Variable { is_given: true, ..Variable::new(name, step) });
    }
    for name in names.results {
        parser.variables.push(Variable { is_result: true, ..Variable::new(name, None) });
    }
    while parser.token().kind != Kind::End {
        if !parser.take(";") {
            parser.statement()?;
        }
    }
    parser.finish(names)
}

impl Variable {
    fn new(name: &str, step: Option<usize>) -> Variable {
        let (name, unread, declared) = (name.to_string(), None, None);
        Variable { name, step, unread, is_given: false, is_result: false, was_read: false, declared }
    }
}

impl<'a> Parser<'a> {
    fn token(&self) -> &Token<'a> {
        &self.tokens[self.at.min(self.tokens.len() - 1)]
    }

    fn next_kind(&self) -> Kind<'a> {
        self.tokens[(self.at + 1).min(self.tokens.len() - 1)].kind
    }

    fn range(&self) -> Range<usize> {
        self.token().range.clone()
    }

    fn take(&mut self, symbol: &str) -> bool {
        let found = matches!(self.token().kind, Kind::Symbol(other) if other == symbol);
        self.at += found as usize;
        found
    }

    fn expect(&mut self, symbol: &'static str, text: &str) -> Result<(), Fault> {
        if self.take(symbol) {
            return Ok(());
        }
        Err(fault(self.range(), text.to_string(), "expected before this"))
    }

    /// The bytes from a token to the last one that was taken.
    fn since(&self, start: usize) -> Range<usize> {
        self.tokens[start].range.start..self.tokens[self.at.max(1) - 1].range.end.max(self.tokens[start].range.end)
    }

    fn statement(&mut self) -> Result<(), Fault> {
        let start = self.at;
        let Kind::Name(first) = self.token().kind else {
            return Err(fault(self.range(), "a statement begins with a name: `z = x * y`".into(), "no name"));
        };
        if STATEMENTS.contains(&first) {
            let fault = fault(self.range(), format!("`{first}` is no statement of an element-wise function"), "here");
            return Err(fault.with_help("statements are assignments; a choice is an expression, `condition ? a : b`"));
        }
        let declared = self.declaration(first)?;
        let Kind::Name(name) = self.token().kind else {
            return Err(fault(self.range(), "the name of a variable is missing".into(), "expected here"));
        };
        let (name, at) = (name.to_string(), self.range());
        self.at += 1;
        let Kind::Symbol(operator) = self.token().kind else {
            let text = format!("`{name}` is not assigned: a statement is `{name} = expression`");
            return Err(fault(self.range(), text, "`=` was expected here"));
        };
        let compound = match operator {
            "=" => None,
            "++" | "--" => Some(operator),
            _ => match operator.strip_suffix('=').filter(|op| *op == "**" || functions::binary(op).is_some()) {
                Some(op) => Some(op),
                None => {
                    let text = format!("`{name}` is not assigned: a statement is `{name} = expression`");
                    return Err(fault(self.range(), text, "`=` was expected here"));
                }
            },
        };
        self.at += 1;
        let slot = self.target(&name, at.clone(), declared, compound.is_some())?;
        let step = self.assigned(slot, compound, at.clone())?;
        if self.token().kind != Kind::End && !self.take(";") {
            return Err(fault(self.range(), "a `;` is missing between two statements".into(), "expected before this"));
        }
        let step = match self.variables[slot].declared {
            Some(to) => self.program.push(What::Cast(to), &[step], self.since(start))?,
            None => step,
        };
        self.variables[slot].step = Some(step);
        self.variables[slot].unread = Some(at);
        Ok(())
    }

    /// `float t = ..`, `const f32 t = ..`, `auto t = ..`: the place of the dtype among the program's.
    fn declaration(&mut self, first: &str) -> Result<Option<usize>, Fault> {
        if first == "const" {
            self.at += 1;
        }
        let (Kind::Name(word), Kind::Name(_)) = (self.token().kind, self.next_kind()) else { return Ok(None) };
        if word == "auto" {
            self.at += 1;
            return Ok(None);
        }
        match dtype(word) {
            Some(declared) => {
                self.at += 1;
                self.program.dtypes.push(declared);
                Ok(Some(self.program.dtypes.len() - 1))
            }
            None => {
                let fault = fault(self.range(), format!("unknown dtype `{word}`"), "this dtype");
                Err(fault.with_help("a dtype, such as f32, `auto`, or a letter of the parameters"))
            }
        }
    }

    /// The variable that a statement assigns.
    fn target(
        &mut self,
        name: &str,
        at: Range<usize>,
        declared: Option<usize>,
        is_compound: bool,
    ) -> Result<usize, Fault> {
        let slot = match self.variables.iter().position(|variable| variable.name == name) {
            Some(slot) if self.variables[slot].is_given => {
                let text = format!("`{name}` is an input, which keeps its value");
                return Err(
                    fault(at, text, "assigned here").with_help("take another name for what is computed from it")
                );
            }
            Some(_) if declared.is_some() => {
                return Err(fault(at, format!("`{name}` exists already"), "declared again"));
            }
            Some(slot) => slot,
            None if is_compound => {
                return Err(fault(at, format!("`{name}` has no value yet"), "changed here"));
            }
            None => {
                if dtype(name).is_some_and(|declared| matches!(declared, Declared::Of(_))) || constant(name).is_some() {
                    let text = format!("`{name}` has a meaning of its own and cannot be a variable");
                    return Err(fault(at, text, "assigned here"));
                }
                self.variables.push(Variable { declared, ..Variable::new(name, None) });
                self.variables.len() - 1
            }
        };
        Ok(slot)
    }

    fn assigned(&mut self, slot: usize, compound: Option<&str>, at: Range<usize>) -> Result<usize, Fault> {
        let old = match compound {
            Some(_) => Some(self.read(slot, at.clone())?),
            None => None,
        };
        if let Some(step @ ("++" | "--")) = compound {
            let one = self.program.push(What::Number(Scalar::Int(1)), &[], at.clone())?;
            let op: &'static Op = if step == "++" { &arith::ADD } else { &arith::SUB };
            return self.program.push(What::Row(op), &[old.unwrap_or(one), one], at);
        }
        let start = self.at;
        let value = self.expression()?;
        let range = self.since(start);
        match (compound, old) {
            (Some(op), Some(old)) => self.operate(row_of(op), old, value, range),
            _ => Ok(value),
        }
    }

    fn read(&mut self, slot: usize, at: Range<usize>) -> Result<usize, Fault> {
        let variable = &mut self.variables[slot];
        variable.was_read = true;
        variable.unread = None;
        let name = variable.name.clone();
        variable.step.ok_or_else(|| fault(at, format!("`{name}` has no value yet"), "read here"))
    }

    fn deeper(&mut self) -> Result<(), Fault> {
        self.depth += 1;
        if self.depth > MOST_NESTED {
            let text = format!("more than {MOST_NESTED} expressions inside each other");
            return Err(fault(self.range(), text, "one too deep").with_help("give parts of it a name"));
        }
        Ok(())
    }

    /// `condition ? a : b`, from the right.
    fn expression(&mut self) -> Result<usize, Fault> {
        self.deeper()?;
        let start = self.at;
        let mut value = self.binary(1)?;
        if self.take("?") {
            let yes = self.expression()?;
            self.expect(":", "the `:` of a choice is missing: `condition ? a : b`")?;
            let no = self.expression()?;
            value = self.program.push(What::Choose, &[value, yes, no], self.since(start))?;
        }
        self.depth -= 1;
        Ok(value)
    }

    /// Operators that bind at least so tightly, from the left.
    fn binary(&mut self, least: u8) -> Result<usize, Fault> {
        let start = self.at;
        let mut left = self.unary()?;
        loop {
            let Kind::Symbol(symbol) = self.token().kind else { return Ok(left) };
            let Some((binds, op)) = functions::binary(symbol).filter(|(binds, _)| *binds >= least) else {
                return Ok(left);
            };
            self.at += 1;
            let right = self.binary(binds + 1)?;
            left = self.operate(op, left, right, self.since(start))?;
        }
    }

    fn operate(&mut self, op: &'static Op, left: usize, right: usize, range: Range<usize>) -> Result<usize, Fault> {
        let is_number = |at: usize| matches!(self.program.steps[at].what, What::Number(_));
        match functions::mirrored(op).filter(|_| is_number(left) && !is_number(right)) {
            Some(mirrored) => self.program.push(What::Row(mirrored), &[right, left], range),
            None => self.program.push(What::Row(op), &[left, right], range),
        }
    }

    fn unary(&mut self) -> Result<usize, Fault> {
        let start = self.at;
        let op: Option<&'static Op> = match self.token().kind {
            Kind::Symbol("-") => Some(&arith::NEG),
            Kind::Symbol("!") => Some(&compare::LOGICAL_NOT),
            Kind::Symbol("~") => Some(&compare::BITWISE_NOT),
            Kind::Symbol("+") => None,
            _ => return self.power(),
        };
        self.at += 1;
        self.deeper()?;
        let value = self.unary()?;
        self.depth -= 1;
        match op {
            Some(op) => self.program.push(What::Row(op), &[value], self.since(start)),
            None => Ok(value),
        }
    }

    /// `a ** b`, which binds tighter than a sign before it, as in the language.
    fn power(&mut self) -> Result<usize, Fault> {
        let start = self.at;
        let base = self.primary()?;
        if !self.take("**") {
            return Ok(base);
        }
        self.deeper()?;
        let exponent = self.unary()?;
        self.depth -= 1;
        self.program.push(What::Row(&arith::POW), &[base, exponent], self.since(start))
    }

    fn primary(&mut self) -> Result<usize, Fault> {
        let range = self.range();
        match self.token().kind {
            Kind::Number(number) => {
                self.at += 1;
                self.program.push(What::Number(number), &[], range)
            }
            Kind::Symbol("(") => self.bracket(),
            Kind::Name(name) if self.next_kind() == Kind::Symbol("(") => self.call(name),
            Kind::Name(name) => {
                self.at += 1;
                self.variable(name, range)
            }
            Kind::Symbol(symbol @ ("[" | ".")) => {
                let fault = fault(range, format!("`{symbol}` has no meaning in an element-wise function"), "here");
                Err(fault.with_help("each name is one element; neighbors of an element are not at hand"))
            }
            Kind::Symbol(symbol) => {
                Err(fault(range, format!("a value was expected before `{symbol}`"), "a value is missing before this"))
            }
            Kind::End => Err(fault(range, "the text ends where a value is missing".into(), "a value is missing here")),
        }
    }

    /// `(expression)`, or C's cast `(float) x`.
    fn bracket(&mut self) -> Result<usize, Fault> {
        let start = self.at;
        self.at += 1;
        if let (Kind::Name(name), Kind::Symbol(")")) = (self.token().kind, self.next_kind())
            && !self.variables.iter().any(|variable| variable.name == name)
            && let Some(declared) = dtype(name)
        {
            self.at += 2;
            self.deeper()?;
            let value = self.unary()?;
            self.depth -= 1;
            return self.cast(declared, value, start);
        }
        let value = self.expression()?;
        self.expect(")", "a `)` is missing")?;
        Ok(value)
    }

    fn cast(&mut self, declared: Declared, value: usize, start: usize) -> Result<usize, Fault> {
        self.program.dtypes.push(declared);
        let to = self.program.dtypes.len() - 1;
        self.program.push(What::Cast(to), &[value], self.since(start))
    }

    fn call(&mut self, name: &str) -> Result<usize, Fault> {
        let (start, range) = (self.at, self.range());
        self.at += 2;
        let mut args: SmallVec<[usize; 4]> = SmallVec::new();
        if !self.take(")") {
            loop {
                args.push(self.expression()?);
                if self.take(")") {
                    break;
                }
                self.expect(",", "a `,` or the `)` of a call is missing")?;
            }
        }
        if let Some(declared) = dtype(name)
            && let [value] = *args
        {
            return self.cast(declared, value, start);
        }
        let Some(op) = functions::named(name) else { return Err(unknown_function(name, range)) };
        let (least, most) = functions::counts(op);
        if args.len() < least || args.len() > most {
            let takes = if least == most { most.to_string() } else { format!("{least} to {most}") };
            let text = format!("`{name}` takes {takes} values, not {}", args.len());
            return Err(fault(self.since(start), text, "this call"));
        }
        if op.is(&compare::CHOOSE) {
            return self.program.push(What::Choose, &args, self.since(start));
        }
        self.program.push(What::Row(op), &args, self.since(start))
    }

    fn variable(&mut self, name: &str, range: Range<usize>) -> Result<usize, Fault> {
        if let Some(slot) = self.variables.iter().position(|variable| variable.name == name) {
            return self.read(slot, range);
        }
        if let Some(number) = constant(name) {
            return self.program.push(What::Number(number), &[], range);
        }
        let near = nearest(name, self.variables.iter().map(|variable| variable.name.as_str()));
        let help = match near {
            Some(near) => format!("did you mean `{near}`?"),
            None if functions::named(name).is_some() => format!("`{name}` is a function: `{name}(x)`"),
            None => "names are the inputs, the results and what the text assigned before".to_string(),
        };
        Err(fault(range, format!("`{name}` is not known here"), "this name").with_help(&help))
    }

    fn finish(mut self, names: &Names<'_>) -> Result<(Program, Vec<bool>), Fault> {
        let end = self.tokens.last().map_or(0, |token| token.range.start);
        for result in self.variables.iter().filter(|variable| variable.is_result) {
            self.program.results.push(result.step);
        }
        let unused =
            self.variables.iter().find(|variable| !variable.is_given && !variable.is_result && !variable.was_read);
        if let Some(Variable { name, unread: Some(at), .. }) = unused {
            let mut fault = fault(at.clone(), format!("`{name}` is computed and never used"), "assigned here");
            if let Some(near) = nearest(name, names.results.iter().map(String::as_str)) {
                fault = fault.with_help(&format!("did you mean the {} `{near}`?", names.result));
            }
            return Err(fault);
        }
        if self.program.results.iter().all(Option::is_none) {
            let names = names.results.join("`, `");
            return Err(fault(end..end, format!("nothing is assigned to `{names}`"), "the text ends here"));
        }
        let read = self.variables.iter().filter(|variable| variable.is_given).map(|variable| variable.was_read);
        Ok((self.program, read.collect()))
    }
}

fn row_of(operator: &str) -> &'static Op {
    functions::binary(operator).map_or(&arith::POW, |(_, op)| op)
}

fn constant(name: &str) -> Option<Scalar> {
    Some(match name {
        "true" => Scalar::Bool(true),
        "false" => Scalar::Bool(false),
        "pi" | "PI" | "M_PI" => Scalar::Float(std::f64::consts::PI),
        "inf" | "INF" | "INFINITY" => Scalar::Float(f64::INFINITY),
        "nan" | "NAN" => Scalar::Float(f64::NAN),
        _ => return None,
    })
}

fn unknown_function(name: &str, range: Range<usize>) -> Fault {
    let exists = crate::op::table::find(name).is_some();
    if exists {
        let fault = fault(range, format!("`{name}` does not compute element by element"), "this function");
        return fault.with_help("call it before or after the element-wise function");
    }
    let help = match functions::similar(name) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "functions are the element-wise operations of tensors, such as `exp`, `max`, `where`".to_string(),
    };
    fault(range, format!("unknown function `{name}`"), "this function").with_help(&help)
}
