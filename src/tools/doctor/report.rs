//! The report as text and as JSON.

use super::{Finding, Section, State};
use serde_json::{Value, json};
use std::fmt::Write;

pub fn text(sections: &[Section]) -> String {
    let names = sections.iter().flat_map(|section| &section.findings).map(|found| found.name.chars().count());
    let width = names.max().unwrap_or(0);
    let mut text = String::new();
    for section in sections {
        let _ = writeln!(text, "{}", section.title);
        section.findings.iter().for_each(|found| finding(&mut text, found, width));
    }
    let states = || sections.iter().flat_map(|section| &section.findings).map(|found| found.state);
    let count = |state: State| states().filter(|&other| other == state).count();
    let _ = write!(text, "\n{} missing, {} broken", count(State::Missing), count(State::Broken));
    text
}

fn finding(text: &mut String, found: &Finding, width: usize) {
    let mark = match found.state {
        State::Good => "ok",
        State::Missing => "--",
        State::Broken => "!!",
    };
    let path = found.path.as_ref().map(|path| format!(" ({})", path.display())).unwrap_or_default();
    let _ = writeln!(text, "  {mark}  {:width$}  {}{path}", found.name, found.value);
    let indent = width + 8;
    if let Some(cost) = &found.cost {
        let _ = writeln!(text, "{:indent$}so: {cost}", "");
    }
    if let Some(advice) = &found.advice {
        let _ = writeln!(text, "{:indent$}do: {advice}", "");
    }
}

pub fn json(sections: &[Section], broken: bool) -> String {
    let finding = |found: &Finding| {
        let state = match found.state {
            State::Good => "ok",
            State::Missing => "missing",
            State::Broken => "broken",
        };
        let path = found.path.as_ref().map(|path| path.to_string_lossy());
        json!({"name": found.name, "state": state, "value": found.value, "path": path, "cost": found.cost, "advice": found.advice})
    };
    let section = |section: &Section| {
        let findings: Vec<Value> = section.findings.iter().map(finding).collect();
        json!({"title": section.title, "findings": findings})
    };
    let sections: Vec<Value> = sections.iter().map(section).collect();
    let status = if broken { "broken" } else { "ok" };
    let all = json!({"version": env!("CARGO_PKG_VERSION"), "status": status, "sections": sections});
    format!("{all:#}")
}
