//! Commands that measure: `:time`, `:plan`, `:profile`.

use super::super::{Go, Repl};
use crate::base::order;
use crate::sched::memory::bytes_text;
use crate::script::inspect::measure::{Pass, Profile};
use crate::tools::run::guarded;
use std::time::Duration;

/// Bound: time of a command; a person waits for it.
const BUDGET: Duration = Duration::from_secs(1);
/// Bound: lines of a plan, and of a profile.
const PASSES: usize = 40;
const ROWS: usize = 15;

pub fn time(repl: &mut Repl, text: &str) -> Go {
    let number = repl.take_number();
    let session = repl.session.clone();
    match guarded(|| session.borrow_mut().time(number, text, BUDGET)) {
        Ok(mut runs) => {
            crate::base::order::by(&mut runs, Ord::cmp);
            let [fastest, median, slowest] = [0, runs.len() / 2, runs.len() - 1].map(|at| duration(runs[at]));
            let count = if runs.len() == 1 { "1 run".to_string() } else { format!("{} runs", runs.len()) };
            repl.face.say(&format!("{median}, the median of {count} (fastest {fastest}, slowest {slowest})"));
        }
        Err(failure) => repl.fail(failure),
    }
    Go::On
}

pub fn plan(repl: &mut Repl, text: &str) -> Go {
    let number = repl.take_number();
    let session = repl.session.clone();
    match guarded(|| session.borrow_mut().plan(number, text)) {
        Ok(passes) => repl.face.say(&planned(&passes)),
        Err(failure) => repl.fail(failure),
    }
    Go::On
}

/// A line for each pass; a heading for each window when there are several.
fn planned(passes: &[Pass]) -> String {
    let operations: usize = passes.iter().map(|pass| pass.operations.len()).sum();
    let windows = passes.iter().map(|pass| pass.window).max().unwrap_or(0);
    let mut text = format!("{}, {}", counted(operations, "operation", "s"), counted(passes.len(), "pass", "es"));
    if windows > 1 {
        text += &format!(", {windows} windows");
    }
    let mut window = 0;
    for (index, pass) in passes.iter().enumerate().take(PASSES) {
        if windows > 1 && pass.window != window {
            window = pass.window;
            text += &format!("\nwindow {window}");
        }
        let unstored = match pass.operations.len().saturating_sub(pass.stored) {
            0 => String::new(),
            n => format!(", {} never stored", counted(n, "result", "s")),
        };
        text += &format!(
            "\n  {:>2}  {}\n      over {:?} on {}, reads {}, writes {}{unstored}   {}",
            index + 1,
            pass.operations.join(" + "),
            pass.shape,
            pass.device,
            bytes_text(pass.read_bytes),
            bytes_text(pass.written_bytes),
            pass.lines.join(", ")
        );
    }
    if passes.len() > PASSES {
        text += &format!("\n  and {} more", passes.len() - PASSES);
    }
    text
}

fn counted(count: usize, word: &str, plural: &str) -> String {
    format!("{count} {word}{}", if count == 1 { "" } else { plural })
}

pub fn profile(repl: &mut Repl, text: &str) -> Go {
    let number = repl.take_number();
    let session = repl.session.clone();
    match guarded(|| session.borrow_mut().profile(number, text, BUDGET)) {
        Ok(profile) => repl.face.say(&profiled(&profile)),
        Err(failure) => repl.fail(failure),
    }
    Go::On
}

/// Passes of the same operations from the same lines, together.
struct Row {
    operations: String,
    lines: String,
    device: String,
    time: Option<Duration>,
    count: usize,
}

fn profiled(profile: &Profile) -> String {
    let mut rows: Vec<Row> = Vec::new();
    for pass in &profile.passes {
        let (operations, lines) = (pass.operations.join(" + "), pass.lines.join(", "));
        let same = |row: &&mut Row| row.operations == operations && row.lines == lines && row.device == pass.device;
        match rows.iter_mut().find(same) {
            Some(row) => {
                row.count += 1;
                row.time = row.time.zip(pass.time).map(|(a, b)| a + b);
            }
            None => rows.push(Row { operations, lines, device: pass.device.clone(), time: pass.time, count: 1 }),
        }
    }
    order::by_key(&mut rows, |row| std::cmp::Reverse(row.time));
    let runs = profile.runs.max(1) as u32;
    let share = |time: Duration| 100.0 * time.as_secs_f64() / profile.total.as_secs_f64().max(1e-12);
    let mut text = format!("{} a run, over {}", duration(profile.total / runs), counted(profile.runs, "run", "s"));
    for row in rows.iter().take(ROWS) {
        let (time, part) = match row.time {
            Some(time) => (duration(time / runs), format!("{:>5.1} %", share(time))),
            None => (format!("on {}", row.device), "      -".to_string()),
        };
        let each = row.count as f64 / runs as f64;
        text += &format!("\n  {part}  {time:>10}  {each:>4.0} ×  {}   {}", shortened(&row.operations), row.lines);
    }
    if rows.len() > ROWS {
        text += &format!("\n  and {} more", rows.len() - ROWS);
    }
    let inside: Duration = profile.passes.iter().filter_map(|pass| pass.time).sum();
    if rows.iter().all(|row| row.time.is_some()) {
        let rest = profile.total.saturating_sub(inside);
        text += &format!(
            "\n  {:>5.1} %  {:>10}          the script, recording and planning",
            share(rest),
            duration(rest / runs)
        );
    }
    text
}

/// Bound: a fused pass may hold dozens of operations.
fn shortened(text: &str) -> String {
    match text.char_indices().nth(60) {
        Some((at, _)) => format!("{}...", &text[..at]),
        None => text.to_string(),
    }
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
