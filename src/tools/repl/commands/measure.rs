//! Commands that measure: `:time`.

use super::super::{Go, Repl};
use crate::tools::{run::guarded, say};
use std::time::Duration;

/// Bound: time that `:time` takes, and runs; a person waits for it.
const BUDGET: Duration = Duration::from_secs(1);

pub fn time(repl: &mut Repl, text: &str) -> Go {
    let number = repl.take_number();
    let session = repl.session.clone();
    match guarded(|| session.borrow_mut().time(number, text, BUDGET)) {
        Ok(mut runs) => {
            runs.sort_unstable();
            let [fastest, median, slowest] = [0, runs.len() / 2, runs.len() - 1].map(|at| duration(runs[at]));
            let count = if runs.len() == 1 { "1 run".to_string() } else { format!("{} runs", runs.len()) };
            say(&format!("{median}, the median of {count} (fastest {fastest}, slowest {slowest})"));
        }
        Err(failure) => repl.fail(failure),
    }
    Go::On
}

/// `1.234 ms`, with four digits or so.
pub fn duration(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    match seconds {
        s if s >= 1.0 => format!("{s:.3} s"),
        s if s >= 1e-3 => format!("{:.3} ms", s * 1e3),
        s if s >= 1e-6 => format!("{:.2} µs", s * 1e6),
        s => format!("{:.0} ns", s * 1e9),
    }
}
