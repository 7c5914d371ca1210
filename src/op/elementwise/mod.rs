//! Element-wise functions that a script writes as text, as CuPy's `ElementwiseKernel` and PyTorch's `jiterator`:
//! `"x, y -> z"` with `"z = x * y + 1"`. The text becomes a list of rows of the op table, so that promotion, gradients and
//! fusion are those of separate operations. Knows nothing of scripts.

mod functions;
mod lex;
mod numbers;
mod params;
mod parse;
mod program;
mod run;

use self::params::Params;
use self::parse::Names;
use self::program::Program;
use crate::base::code;
use crate::base::diag::{Diag, Result};
use crate::base::quoted::Quoted;
use std::ops::Range;

pub use self::params::Declared;
pub use self::run::Value;

/// A fault at some bytes of a text.
pub struct Fault {
    diag: Box<Diag>,
    range: Range<usize>,
    label: &'static str,
}

impl Fault {
    fn with_help(mut self, help: &str) -> Fault {
        self.diag = self.diag.help(help);
        self
    }

    /// The diagnostic, with the place in the text.
    fn at(self, text: &Quoted) -> Box<Diag> {
        text.mark(self.diag, self.range, self.label)
    }
}

fn fault(range: Range<usize>, message: String, label: &'static str) -> Fault {
    Fault { diag: Diag::error(code::KERNEL_TEXT, message), range, label }
}

/// A compiled function.
#[derive(Debug)]
pub struct Elementwise {
    params: Params,
    params_text: Quoted,
    forward: Program,
    text: Quoted,
    backward: Option<Backward>,
}

/// The gradient that a function has of its own.
#[derive(Debug)]
struct Backward {
    /// Given inputs, results and their gradients; a result for each input.
    program: Program,
    text: Quoted,
    /// Which inputs and results it reads.
    reads: Vec<bool>,
}

impl Elementwise {
    pub fn new(params: Quoted, text: Quoted, backward: Option<Quoted>) -> Result<Elementwise> {
        let read = Params::read(&params.text).map_err(|fault| fault.at(&params))?;
        let names = |list: &[params::Param]| -> Vec<String> { list.iter().map(|param| param.name.clone()).collect() };
        let (inputs, results) = (names(&read.inputs), names(&read.results));
        let names = Names { given: &inputs, results: &results, result: "result" };
        let (forward, used) = parse::program(&text.text, &names).map_err(|fault| fault.at(&text))?;
        if let Some(at) = forward.results.iter().position(Option::is_none) {
            let end = text.text.len();
            let message = format!("nothing is assigned to the result `{}`", results[at]);
            return Err(fault(end..end, message, "the text ends here").at(&text));
        }
        check_dtypes(&forward, &read, &text)?;
        let backward = match backward {
            Some(text) => Some(Backward::new(&inputs, &results, &read, text)?),
            None => None,
        };
        let is_used = |at: usize| used[at] || backward.as_ref().is_some_and(|backward| backward.reads[at]);
        if let Some(at) = (0..inputs.len()).find(|&at| !is_used(at)) {
            let message = format!("the input `{}` is never used", inputs[at]);
            let unused = fault(read.inputs[at].range.clone(), message, "this input");
            return Err(unused.with_help("use it, or leave it out").at(&params));
        }
        Ok(Elementwise { params: read, params_text: params, forward, text, backward })
    }

    /// The names of the inputs.
    pub fn inputs(&self) -> impl ExactSizeIterator<Item = &str> {
        self.params.inputs.iter().map(|param| &*param.name)
    }

    /// The names of the results.
    pub fn results(&self) -> impl ExactSizeIterator<Item = &str> {
        self.params.results.iter().map(|param| &*param.name)
    }

    /// Which inputs and then results the gradient of its own reads; none if it has no such gradient.
    pub fn saved_for_backward(&self) -> Option<&[bool]> {
        self.backward.as_ref().map(|backward| &*backward.reads)
    }
}

impl Backward {
    fn new(inputs: &[String], results: &[String], params: &Params, text: Quoted) -> Result<Backward> {
        let gradient = |name: &String| format!("g{name}");
        let mut given: Vec<String> = inputs.iter().chain(results).cloned().collect();
        given.extend(results.iter().map(gradient));
        // The gradient of the only result has a short name, too.
        let short = results.len() == 1 && !given.iter().any(|name| name == "g");
        if short {
            given.push("g".into());
        }
        let wanted: Vec<String> = inputs.iter().map(gradient).collect();
        if let Some(both) = wanted.iter().find(|name| given.contains(name)) {
            let message = format!("`{both}` would be the gradient of an input, and is another name of this function");
            return Err(fault(0..0, message, "in this text").with_help("rename the inputs or results").at(&text));
        }
        let names = Names { given: &given, results: &wanted, result: "gradient" };
        let (program, reads) = parse::program(&text.text, &names).map_err(|fault| fault.at(&text))?;
        check_dtypes(&program, params, &text)?;
        let reads = reads[..inputs.len() + results.len()].to_vec();
        Ok(Backward { program, text, reads })
    }
}

/// Letters that stand for a dtype are those of inputs.
fn check_dtypes(program: &Program, params: &Params, text: &Quoted) -> Result<()> {
    for step in &program.steps {
        if let program::What::Cast(at) = step.what
            && let Declared::Same(letter) = &program.dtypes[at]
            && !params.inputs.iter().any(|input| input.declared == program.dtypes[at])
        {
            let message = format!("no input has the dtype `{letter}`");
            return Err(fault(step.range.clone(), message, "converted to it here").at(text));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
