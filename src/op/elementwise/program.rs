//! What a text computes: a list of steps, each with the numbers of earlier ones. Running it needs no recursion, however
//! deep the text was nested.

use super::Fault;
use super::numbers;
use super::params::Declared;
use crate::base::dtype::Scalar;
use crate::op::row::Op;
use smallvec::SmallVec;
use std::ops::Range;

/// Bound: steps of a text; a call records a node for nearly each.
pub const MOST_STEPS: usize = 4096;

#[derive(Clone, Copy, Debug)]
pub enum What {
    /// One of the values that the program is given.
    Given(usize),
    Number(Scalar),
    Row(&'static Op),
    /// To a dtype, the program's n-th.
    Cast(usize),
    /// `condition ? a : b`.
    Choose,
}

#[derive(Clone, Debug)]
pub struct Step {
    pub what: What,
    pub args: SmallVec<[usize; 3]>,
    /// Its bytes in the text.
    pub range: Range<usize>,
}

/// The steps, and which of them are the results; none for a result that the text does not assign.
#[derive(Debug, Default)]
pub struct Program {
    pub steps: Vec<Step>,
    pub dtypes: Vec<Declared>,
    pub results: Vec<Option<usize>>,
}

impl Program {
    /// Adds a step, computed at once where all its arguments are numbers.
    pub fn push(&mut self, what: What, args: &[usize], range: Range<usize>) -> Result<usize, Fault> {
        if self.steps.len() >= MOST_STEPS {
            let text = format!("the text has more than {MOST_STEPS} operations");
            return Err(super::fault(range, text, "one too many").with_help("split it into several functions"));
        }
        let mut step = Step { what, args: SmallVec::from_slice(args), range };
        if let What::Row(op) = what
            && let Some(known) = self.numbers(args)
        {
            match numbers::value(op, &known) {
                Some(Ok(number)) => {
                    step = Step { what: What::Number(number), args: SmallVec::new(), range: step.range }
                }
                Some(Err(diag)) => return Err(Fault { diag, range: step.range, label: "in this operation" }),
                None => {}
            }
        }
        self.steps.push(step);
        Ok(self.steps.len() - 1)
    }

    fn numbers(&self, args: &[usize]) -> Option<SmallVec<[Scalar; 4]>> {
        args.iter()
            .map(|&at| match self.steps[at].what {
                What::Number(number) => Some(number),
                _ => None,
            })
            .collect()
    }

    /// For each step the last one that uses it; results are used at the end.
    pub fn last_uses(&self) -> Vec<usize> {
        let mut last: Vec<usize> = (0..self.steps.len()).collect();
        for (at, step) in self.steps.iter().enumerate() {
            step.args.iter().for_each(|&used| last[used] = at);
        }
        self.results.iter().flatten().for_each(|&result| last[result] = usize::MAX);
        last
    }
}
