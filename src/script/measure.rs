//! How long a text takes: compiled once, run many times, each run waited for.

use super::error::Error;
use super::session::{Session, guarded};
use super::source::SourceKind;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Bound: runs of one measurement; more tell nothing new.
const RUNS: usize = 10_000;
/// Runs that are made however long they take, unless one alone is beyond the budget.
const AT_LEAST: usize = 3;

impl Session {
    /// The time of each run, the first one, which plans and warms up, left out when there are others. Every run sees
    /// the variables as they are now; what it writes into tensors stays written.
    pub fn time(&mut self, number: u32, text: &str, budget: Duration) -> Result<Vec<Duration>, Error> {
        self.host.interrupt.store(false, Ordering::Release);
        self.stack.enter();
        let source = self.add(SourceKind::Repl(number), &format!("repl:{number}"), text)?;
        let ast = self.compile(&source)?;
        let merged = self.functions.merge(&ast);
        self.synchronize()?;
        let began = Instant::now();
        let mut times = Vec::new();
        loop {
            let mut scope = self.scope.clone();
            let start = Instant::now();
            let (engine, lasting) = (&self.engine, &mut self.lasting);
            let result = guarded(|| lasting.evaluate(engine, &mut scope, &merged)).map_err(|diag| self.error(diag))?;
            drop(result.map_err(|failure| self.failure(failure))?);
            self.synchronize()?;
            times.push(start.elapsed());
            let over = began.elapsed() > budget && (times.len() > AT_LEAST || times.last() > Some(&budget));
            if over || times.len() > RUNS {
                break;
            }
        }
        if times.len() > 1 {
            times.remove(0);
        }
        Ok(times)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_leave_no_variables_and_errors_are_told() {
        let mut session = Session::builder().build().expect("a session");
        drop(session.enter(1, "let x = ones([4]); let n = 1;").expect("runs"));
        let times = session.time(2, "let x = 7; let y = x * 2; n += 1; y", Duration::from_millis(5)).expect("runs");
        assert!(times.len() >= AT_LEAST);
        let names: Vec<String> = session.variables(1).into_iter().map(|variable| variable.name).collect();
        assert_eq!(names, ["x", "n"]);
        assert_eq!(session.get::<i64>("n").expect("still there"), 1);
        let error = session.time(3, "x + ones([3])", Duration::from_millis(5)).expect_err("shapes");
        assert_eq!(error.code(), "E0201");
    }
}
