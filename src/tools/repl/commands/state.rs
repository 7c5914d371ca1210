//! Commands that show the session's state: variables, types, memory, devices, streams.

use super::super::{Go, Repl, answer};
use crate::script::error::Error;
use crate::script::inspect::look::{Placed, Variable};
use crate::script::session::handle::Session;
use crate::tools::{devices as machine, run::guarded};

/// Bound: lines of `:mem` about single lines of the script, and tensors of one variable that are looked at.
const LINES: usize = 10;
const TENSORS: usize = 1000;
/// Cells of a bar.
const BAR: usize = 30;

pub fn kind(repl: &mut Repl, text: &str) -> Go {
    let number = repl.take_number();
    let session = repl.session.clone();
    let work = || -> Result<String, Error> {
        let mut session = session.borrow_mut();
        let value = session.value_of(number, text)?;
        let kind = session.kind(&value);
        let tensors = session.tensors_in(&value, TENSORS);
        Ok(described(&kind, &tensors))
    };
    match guarded(work) {
        Ok(text) => repl.face.say(&text),
        Err(failure) => repl.fail(failure),
    }
    Go::On
}

/// What a variable of this name is.
pub fn variable(session: &Session, name: &str) -> Option<String> {
    let found = session.variables(TENSORS).into_iter().find(|variable| variable.name == name)?;
    Some(described(&found.kind, &found.tensors))
}

/// A type, and its tensors: in the same line, or one in each.
pub fn described(kind: &str, tensors: &[Placed]) -> String {
    match tensors {
        [] => kind.to_string(),
        [one] if one.path.is_empty() => format!("{kind} {}", answer::line(one)),
        tensors => {
            let lines: Vec<String> = tensors.iter().map(|t| format!("    {}", answer::line(t))).collect();
            format!("{kind}\n{}", lines.join("\n"))
        }
    }
}

pub fn variables(repl: &mut Repl, _: &str) -> Go {
    let variables = repl.session.borrow().variables(TENSORS);
    if variables.is_empty() {
        repl.face.say("no variables");
        return Go::On;
    }
    let rows: Vec<[String; 5]> = variables.iter().map(row).collect();
    let header = ["name", "shape", "dtype", "device", "bytes"].map(str::to_string);
    let widths: Vec<usize> =
        (0..5).map(|at| rows.iter().chain([&header]).map(|row| row[at].chars().count()).max().unwrap_or(0)).collect();
    let drawn = |row: &[String; 5]| {
        let [name, shape, dtype, device, bytes] = row;
        let [a, b, c, d, e] = [widths[0], widths[1], widths[2], widths[3], widths[4]];
        format!("{name:<a$}  {shape:<b$}  {dtype:<c$}  {device:<d$}  {bytes:>e$}").trim_end().to_string()
    };
    repl.face.say(&repl.color.dim(&drawn(&header)));
    rows.iter().for_each(|row| repl.face.say(&drawn(row)));
    Go::On
}

/// A tensor by its properties; a container of tensors by their number and size; anything else by its value.
fn row(variable: &Variable) -> [String; 5] {
    let name = if variable.constant { format!("{} (const)", variable.name) } else { variable.name.clone() };
    let tensors = &variable.tensors;
    let bytes: usize = tensors.iter().map(|tensor| tensor.bytes).sum();
    match tensors.as_slice() {
        [one] if one.path.is_empty() => {
            [name, format!("{:?}", one.shape), one.dtype.clone(), one.device.clone(), bytes.to_string()]
        }
        [] => [name, variable.brief.clone(), variable.kind.clone(), String::new(), String::new()],
        several => {
            let mut devices: Vec<&str> = several.iter().map(|tensor| tensor.device.as_str()).collect();
            devices.sort_unstable();
            devices.dedup();
            let count = format!("{} tensor{}", several.len(), if several.len() == 1 { "" } else { "s" });
            [name, count, variable.kind.clone(), devices.join(" "), bytes.to_string()]
        }
    }
}

pub fn memory(repl: &mut Repl, _: &str) -> Go {
    for memory in repl.session.borrow().memory_report() {
        let whole = memory.total.unwrap_or(memory.peak).max(1);
        repl.face.say(&format!("{}, of {}", memory.device, bytes(whole)));
        let line = |what: &str, amount: usize| {
            repl.face.say(&format!("  {what:<10} {} {}", bar(amount, whole), bytes(amount)));
        };
        line("allocated", memory.allocated);
        line("reserved", memory.reserved);
        line("peak", memory.peak);
        for held in memory.held.iter().take(LINES) {
            let blocks = if held.blocks == 1 { "1 block".to_string() } else { format!("{} blocks", held.blocks) };
            repl.face.say(&format!("  {:>10}  in {blocks}, made at {}", bytes(held.bytes), held.made));
        }
    }
    Go::On
}

fn bar(amount: usize, whole: usize) -> String {
    let filled = (amount as f64 / whole as f64 * BAR as f64).ceil().min(BAR as f64) as usize;
    format!("{}{}", "█".repeat(filled), "░".repeat(BAR - filled))
}

/// `1.50 MiB`, `12 B`.
fn bytes(count: usize) -> String {
    crate::sched::memory::bytes_text(count)
}

pub fn devices(repl: &mut Repl, _: &str) -> Go {
    repl.face.say(&machine::report(&repl.settings));
    Go::On
}

pub fn streams(repl: &mut Repl, _: &str) -> Go {
    for stream in repl.session.borrow().streams() {
        let pending = match stream.pending {
            0 if stream.is_busy => "at work".to_string(),
            0 => "nothing pending".to_string(),
            1 => "1 operation pending".to_string(),
            n => format!("{n} operations pending"),
        };
        repl.face.say(&format!("{} stream {}: {pending}", stream.device, stream.stream));
    }
    Go::On
}
