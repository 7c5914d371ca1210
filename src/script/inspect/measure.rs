//! How long a text takes, and what becomes of its operations: compiled once, run repeatedly, waiting for each run.
//! Every run sees the present values of variables; what it writes into tensors remains.

use crate::sched::profile::trace;
use crate::script::error::Error;
use crate::script::host::Host;
use crate::script::machine::Unit;
use crate::script::session::compiled::compiled;
use crate::script::session::handle::{Session, guarded};
use crate::script::source::SourceKind;
use rhai::{AST, Dynamic};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A text that is measured, and its unit.
type Text = (AST, Arc<Unit>);

/// Bound: runs of one measurement; more give no more information.
const RUNS: usize = 10_000;
/// Minimum number of runs, unless a single one exceeds the budget.
const AT_LEAST: usize = 3;

/// One pass over memory or one kernel, on one device.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pass {
    /// Counts windows, from 1.
    pub window: usize,
    pub device: String,
    /// The operations in it, in order.
    pub operations: Vec<&'static str>,
    /// The lines that requested them, without duplicates: `repl:3`, `model.rhai:7`.
    pub lines: Vec<String>,
    /// What it iterates over.
    pub shape: Vec<usize>,
    pub read_bytes: usize,
    pub written_bytes: usize,
    /// Results that got memory; the others were never stored.
    pub stored: usize,
    /// If known: on the host.
    pub time: Option<Duration>,
}

/// The result of several runs of one text.
pub struct Profile {
    pub runs: usize,
    /// Of all runs together.
    pub total: Duration,
    pub passes: Vec<Pass>,
}

#[doc(hidden)]
impl Session {
    /// The time of each run, without the first one, which plans and warms up, if there are others.
    pub fn time(&mut self, number: u32, text: &str, budget: Duration) -> Result<Vec<Duration>, Error> {
        let text = self.prepare(number, text)?;
        let began = Instant::now();
        let mut times = Vec::new();
        loop {
            times.push(self.once(&text)?);
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

    /// The passes of a text. Runs it once.
    pub fn plan(&mut self, number: u32, text: &str) -> Result<Vec<Pass>, Error> {
        let text = self.prepare(number, text)?;
        self.host.rt.trace.start();
        let done = self.once(&text);
        let passes = self.host.rt.trace.stop();
        done?;
        Ok(passes.into_iter().map(|pass| self.pass(pass)).collect())
    }

    /// The passes of several runs with their times, after one run that plans and warms up.
    pub fn profile(&mut self, number: u32, text: &str, budget: Duration) -> Result<Profile, Error> {
        let text = self.prepare(number, text)?;
        self.once(&text)?;
        self.host.rt.trace.start();
        let (mut runs, mut total) = (0, Duration::ZERO);
        let done = loop {
            match self.once(&text) {
                Ok(time) => total += time,
                Err(error) => break Err(error),
            }
            runs += 1;
            if total > budget || runs >= RUNS {
                break Ok(());
            }
        };
        let passes = self.host.rt.trace.stop();
        done?;
        Ok(Profile { runs, total, passes: passes.into_iter().map(|pass| self.pass(pass)).collect() })
    }

    fn prepare(&mut self, number: u32, text: &str) -> Result<Text, Error> {
        let _entered = Host::enter(&self.host);
        let source = self.add(SourceKind::Repl(number), &(self.entry_name)(number), text)?;
        let ast = self.compile(&source)?;
        self.synchronize()?;
        compiled(&self.engine, &self.host, &self.functions.merge(&ast)).map_err(|failure| self.failure(failure))
    }

    /// One run in a copy of the scope; waits for it.
    fn once(&mut self, (ast, unit): &Text) -> Result<Duration, Error> {
        let mut scope = self.scope.clone();
        let start = Instant::now();
        let (engine, persistent) = (&self.engine, &mut self.persistent);
        let result = guarded(|| persistent.evaluate(engine, &mut scope, ast, unit));
        let result = result.map_err(|diag| self.error(diag))?;
        // The value is kept until its work is done: unused results are not computed.
        let _value: Dynamic = result.map_err(|failure| self.failure(failure))?;
        self.synchronize()?;
        Ok(start.elapsed())
    }

    fn pass(&self, pass: trace::Pass) -> Pass {
        let mut lines: Vec<String> = Vec::new();
        for (_, origin) in &pass.operations {
            let line = self.line(*origin).unwrap_or_else(|| "the runtime".to_string());
            if !lines.contains(&line) {
                lines.push(line);
            }
        }
        Pass {
            window: pass.window,
            device: pass.device.to_string(),
            operations: pass.operations.iter().map(|(name, _)| *name).collect(),
            lines,
            shape: pass.shape,
            read_bytes: pass.read_bytes,
            written_bytes: pass.written_bytes,
            stored: pass.stored,
            time: pass.time,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: Duration = Duration::from_millis(5);

    #[test]
    fn runs_leave_no_variables_and_errors_are_reported() {
        let mut session = Session::builder().build().expect("a session");
        drop(session.enter(1, "let x = ones([4]); let n = 1;").expect("runs"));
        let times = session.time(2, "let x = 7; let y = x * 2; n += 1; y", SHORT).expect("runs");
        assert!(times.len() >= AT_LEAST);
        let names: Vec<String> = session.variables(1).into_iter().map(|variable| variable.name).collect();
        assert_eq!(names, ["x", "n"]);
        assert_eq!(session.get::<i64>("n").expect("still there"), 1);
        let error = session.time(3, "x + ones([3])", SHORT).expect_err("shapes");
        assert_eq!(error.code(), "E0201");
    }

    #[test]
    fn a_plan_shows_what_is_fused_and_what_is_stored() {
        let mut session = Session::builder().build().expect("a session");
        drop(session.enter(1, "let x = ones([100, 10]); let w = ones([10, 4]);").expect("runs"));
        drop(session.late_errors());
        let passes = session.plan(2, "(x * 2 + 1).relu()").expect("runs");
        let operations: Vec<&[&str]> = passes.iter().map(|pass| pass.operations.as_slice()).collect();
        assert_eq!(operations, [&["mul", "add", "relu"]]);
        let pass = &passes[0];
        assert_eq!((pass.read_bytes, pass.written_bytes, pass.stored), (4000, 4000, 1));
        assert_eq!((pass.shape.as_slice(), pass.lines.as_slice()), (&[100, 10][..], &["repl:2".to_string()][..]));
        let passes = session.plan(3, "(x @ w).sum()").expect("runs");
        assert_eq!(passes.len(), 2, "{passes:?}");
        session.plan(4, "x @ x").expect_err("shapes");
        // The trace ends after an error too.
        drop(session.enter(5, "x + 1").expect("runs"));
        assert!(session.host.rt.trace.stop().is_empty());
    }

    #[test]
    fn a_profile_counts_every_run() {
        let mut session = Session::builder().build().expect("a session");
        drop(session.enter(1, "let x = ones([100]);").expect("runs"));
        let profile = session.profile(2, "x.exp()", SHORT).expect("runs");
        assert!(profile.runs >= 1 && profile.passes.len() == profile.runs, "{}", profile.runs);
        let inside: Duration = profile.passes.iter().filter_map(|pass| pass.time).sum();
        assert!(inside > Duration::ZERO && inside <= profile.total);
    }
}
