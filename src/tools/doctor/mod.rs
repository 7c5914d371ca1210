//! `tscript doctor`: what of what the program could use is there, what each absence costs, and what to do about it.
//! Changes nothing.

mod editors;
mod folders;
#[cfg(feature = "cuda")]
mod gpus;
mod jupyter;
mod program;
mod report;
mod terminal;

use super::{FAILED, say};
use std::path::PathBuf;

/// How something stands.
#[derive(Debug, Clone, Copy, PartialEq)]
enum State {
    Good,
    /// Not there; the program does without.
    Missing,
    /// There, and of no use as it is.
    Broken,
}

/// One thing that was looked at.
#[derive(Debug)]
struct Finding {
    name: String,
    state: State,
    value: String,
    path: Option<PathBuf>,
    /// What its state costs.
    cost: Option<String>,
    /// What to do.
    advice: Option<String>,
}

impl Finding {
    fn new(name: impl Into<String>, state: State, value: impl Into<String>) -> Finding {
        Finding { name: name.into(), state, value: value.into(), path: None, cost: None, advice: None }
    }

    fn good(name: impl Into<String>, value: impl Into<String>) -> Finding {
        Finding::new(name, State::Good, value)
    }

    fn at(self, path: Option<PathBuf>) -> Finding {
        Finding { path, ..self }
    }

    fn costs(self, cost: impl Into<String>) -> Finding {
        Finding { cost: Some(cost.into()), ..self }
    }

    fn advice(self, advice: impl Into<String>) -> Finding {
        Finding { advice: Some(advice.into()), ..self }
    }
}

/// Findings with a title.
struct Section {
    title: &'static str,
    findings: Vec<Finding>,
}

/// Looks, reports, and fails where something is broken.
pub fn doctor(json: bool) -> u8 {
    let sections = [
        Section { title: "program", findings: program::findings() },
        Section { title: "gpus", findings: gpus_findings() },
        Section { title: "folders", findings: folders::findings() },
        Section { title: "terminal", findings: terminal::findings() },
        Section { title: "editors", findings: editors::findings() },
        Section { title: "jupyter", findings: jupyter::findings() },
    ];
    let broken = sections.iter().flat_map(|section| &section.findings).any(|found| found.state == State::Broken);
    say(&if json { report::json(&sections, broken) } else { report::text(&sections) });
    if broken { FAILED } else { 0 }
}

#[cfg(feature = "cuda")]
fn gpus_findings() -> Vec<Finding> {
    gpus::findings(&crate::script::inspect::machine::inventory())
}

#[cfg(not(feature = "cuda"))]
fn gpus_findings() -> Vec<Finding> {
    let none = Finding::new("cuda", State::Missing, "this build has no CUDA").costs("scripts run on the CPU");
    vec![none.advice("build it with the feature `cuda`")]
}
