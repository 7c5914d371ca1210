//! A session's recording as a trace for Perfetto and chrome://tracing, and as a short table.
//!
//! The format is Chrome's "Trace Event Format": complete events with times in microseconds, flows from the launch
//! of an operation to where it is carried out, counters.

use crate::base::order;
use crate::script::error::Error;
use crate::script::inspect::profile::{FunctionName, Part, Row, Slice, SliceKind, Timeline};
use crate::script::session::handle::Session;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

/// Bound: lines of each part of the table.
const TABLE_LINES: usize = 10;
/// Bound: names of operations shown for one line or one slice.
const NAMES: usize = 3;

/// Process and thread of a row: the script's process has its thread and the CPU's, each GPU is a process.
fn track(row: Row) -> (u32, u32) {
    match row {
        Row::Script => (1, 1),
        Row::Stream(name) => match name.device {
            crate::base::device_id::DeviceId::Cpu => (1, 2),
            crate::base::device_id::DeviceId::Cuda(index) => (10 + index as u32, name.number.wrapping_add(1)),
        },
    }
}

fn titles(row: Row) -> (String, String) {
    match row {
        Row::Script => ("script".to_string(), "script".to_string()),
        Row::Stream(name) if name.device.is_cuda() => {
            let device = name.device.to_string();
            let stream = name.to_string();
            (device.clone(), stream.trim_start_matches(&device).trim_start().to_string())
        }
        Row::Stream(_) => ("script".to_string(), "cpu".to_string()),
    }
}

pub fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if (c as u32) < 0x20 => {
                let _ = write!(out, "\\u{:04x}", c as u32);
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

fn micros(ns: u64) -> String {
    format!("{}.{:03}", ns / 1000, ns % 1000)
}

/// Names of the operations of a slice, each once.
fn names(parts: &[Part]) -> String {
    let mut seen: Vec<&str> = Vec::new();
    parts.iter().for_each(|part| {
        if !seen.contains(&part.name) {
            seen.push(part.name);
        }
    });
    let more = if seen.len() > NAMES { ", .." } else { "" };
    seen.truncate(NAMES);
    format!("{}{more}", seen.join(", "))
}

/// The script's lines of a slice, each once, in the order of its parts.
fn lines(profile: &Timeline, parts: &[Part]) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for part in parts {
        let line = line(profile, part);
        if !found.contains(&line) {
            found.push(line);
        }
    }
    found
}

fn line(profile: &Timeline, part: &Part) -> String {
    match profile.place(part.origin) {
        Some(at) => format!("{}:{}", at.source, at.line),
        None => "the end of the script".to_string(),
    }
}

/// The record as JSON.
pub fn chrome_trace(profile: &Timeline) -> String {
    let mut events: Vec<String> = Vec::new();
    let mut rows: Vec<Row> = profile.recording.slices.iter().map(|slice| slice.row).collect();
    order::by(&mut rows, Ord::cmp);
    rows.dedup();
    for row in rows {
        let ((process, thread), (outer, inner)) = (track(row), titles(row));
        for (kind, title) in [("process_name", outer), ("thread_name", inner)] {
            events.push(format!(
                r#"{{"ph":"M","name":"{kind}","pid":{process},"tid":{thread},"args":{{"name":{}}}}}"#,
                quoted(&title)
            ));
        }
    }
    add_calls(&mut events, profile);
    profile.recording.slices.iter().for_each(|slice| add_slice(&mut events, profile, slice));
    for sample in &profile.recording.samples {
        events.push(format!(
            r#"{{"ph":"C","name":"memory of {}","pid":1,"ts":{},"args":{{"bytes":{}}}}}"#,
            sample.device,
            micros(sample.at_ns),
            sample.bytes
        ));
    }
    let left_out = profile.recording.left_out;
    let other = if left_out > 0 { format!(r#","otherData":{{"slices left out":{left_out}}}"#) } else { String::new() };
    format!("{{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n{}\n]{other}}}\n", events.join(",\n"))
}

/// The calls of the script's functions, on the script's row, around what they launch.
fn add_calls(events: &mut Vec<String>, profile: &Timeline) {
    let (process, thread) = track(Row::Script);
    let named: Vec<(String, String)> = profile
        .functions
        .functions
        .iter()
        .map(|(function, _)| {
            let (name, place) = profile.function(function);
            (quoted(&name), quoted(&place.map_or("the script".into(), |at| format!("{}:{}", at.source, at.line))))
        })
        .collect();
    for call in &profile.functions.slices {
        let (name, line) = &named[call.function];
        let (begin, took) = (micros(call.begin_ns), micros(call.end_ns.saturating_sub(call.begin_ns)));
        events.push(format!(
            r#"{{"ph":"X","cat":"function","name":{name},"pid":{process},"tid":{thread},"ts":{begin},"dur":{took},"args":{{"lines":[{line}]}}}}"#
        ));
    }
}

fn add_slice(events: &mut Vec<String>, profile: &Timeline, slice: &Slice) {
    let (process, thread) = track(slice.row);
    let (begin, took) = (micros(slice.begin_ns), micros(slice.end_ns.saturating_sub(slice.begin_ns)));
    let category = match slice.what {
        SliceKind::Launch => "launch",
        SliceKind::Work => "work",
        SliceKind::Wait => "wait",
    };
    let lines: Vec<String> = lines(profile, &slice.parts).iter().map(|line| quoted(line)).collect();
    events.push(format!(
        r#"{{"ph":"X","cat":"{category}","name":{},"pid":{process},"tid":{thread},"ts":{begin},"dur":{took},"args":{{"lines":[{}]}}}}"#,
        quoted(&names(&slice.parts)),
        lines.join(",")
    ));
    let (phase, binding) = match slice.what {
        SliceKind::Launch => ("s", ""),
        SliceKind::Work => ("f", r#","bp":"e""#),
        SliceKind::Wait => return,
    };
    for part in &slice.parts {
        events.push(format!(
            r#"{{"ph":"{phase}","cat":"launch","name":"launch","id":{},"pid":{process},"tid":{thread},"ts":{begin}{binding}}}"#,
            part.number
        ));
    }
}

#[derive(Default)]
struct Sum {
    ns: u64,
    times: u64,
    parts: Vec<Part>,
}

/// Times by line, the longest first.
fn sums<'a>(profile: &Timeline, slices: impl Iterator<Item = &'a Slice>) -> Vec<(String, Sum)> {
    let mut by_line: BTreeMap<String, Sum> = BTreeMap::new();
    for slice in slices {
        // A pass over memory that serves several operations counts fully for each of them.
        let share = (slice.end_ns - slice.begin_ns.min(slice.end_ns)) / slice.parts.len().max(1) as u64;
        for part in &slice.parts {
            let sum = by_line.entry(line(profile, part)).or_default();
            (sum.ns, sum.times) = (sum.ns + share, sum.times + 1);
            if !sum.parts.iter().any(|known| known.name == part.name) {
                sum.parts.push(*part);
            }
        }
    }
    let mut all: Vec<(String, Sum)> = by_line.into_iter().collect();
    order::by_key(&mut all, |one| std::cmp::Reverse(one.1.ns));
    all
}

/// The slowest lines, and the lines that made the script wait.
pub fn table(profile: &Timeline) -> String {
    let of = |what: SliceKind| profile.recording.slices.iter().filter(move |slice| slice.what == what);
    let mut out = String::new();
    for (title, what) in [("slowest lines", SliceKind::Work), ("lines that made the script wait", SliceKind::Wait)] {
        let sums = sums(profile, of(what));
        let total: u64 = sums.iter().map(|(_, sum)| sum.ns).sum();
        let _ = writeln!(out, "{title}: {} in all", time(total));
        let width = sums.iter().take(TABLE_LINES).map(|(line, _)| line.chars().count()).max().unwrap_or(0);
        for (line, sum) in sums.iter().take(TABLE_LINES) {
            let share = 100.0 * sum.ns as f64 / total.max(1) as f64;
            let (took, times, names) = (time(sum.ns), sum.times, names(&sum.parts));
            let _ = writeln!(out, "  {line:<width$}  {took:>10}  {share:>3.0} %  {times:>8} times  {names}");
        }
        if sums.len() > TABLE_LINES {
            let _ = writeln!(out, "  and {} more lines", sums.len() - TABLE_LINES);
        }
    }
    out.push_str(&functions(profile));
    if profile.recording.left_out > 0 {
        let _ = writeln!(out, "{} later entries were left out", profile.recording.left_out);
    }
    out
}

/// The functions of the script by the time of their own lines: what of it passed in operations and waits, and what in
/// the interpreter.
fn functions(profile: &Timeline) -> String {
    let mut all: Vec<_> = profile.functions.functions.iter().filter(|(_, time)| time.calls > 0).collect();
    order::by_key(&mut all, |(_, time)| std::cmp::Reverse(time.own_ns));
    let own: u64 = all.iter().map(|(_, time)| time.own_ns).sum();
    let busy: u64 = all.iter().map(|(_, time)| time.busy_ns).sum();
    let mut out = String::new();
    let (inside, between) = (time(busy), time(own.saturating_sub(busy)));
    let _ = writeln!(
        out,
        "functions of the script: {} in all, {inside} in operations and waits, {between} between them",
        time(own)
    );
    let named = |(function, _): &&&(FunctionName, _)| {
        let (name, place) = profile.function(function);
        place.map_or(name.clone(), |at| format!("{}:{} {name}", at.source, at.line))
    };
    let names: Vec<String> = all.iter().take(TABLE_LINES).map(|one| named(&one)).collect();
    let width = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
    for (name, (_, took)) in names.iter().zip(&all) {
        let share = 100.0 * took.own_ns as f64 / own.max(1) as f64;
        let (in_operations, between) = (time(took.busy_ns), time(took.own_ns.saturating_sub(took.busy_ns)));
        let (own, total, calls) = (time(took.own_ns), time(took.total_ns), took.calls);
        let _ = writeln!(
            out,
            "  {name:<width$}  {own:>10}  {share:>3.0} %  {calls:>8} times  {in_operations} in operations, {between} between, {total} with what it calls"
        );
    }
    if all.len() > TABLE_LINES {
        let _ = writeln!(out, "  and {} more functions", all.len() - TABLE_LINES);
    }
    out
}

fn time(ns: u64) -> String {
    match ns {
        0..10_000 => format!("{ns} ns"),
        10_000..10_000_000 => format!("{:.1} µs", ns as f64 / 1e3),
        10_000_000..10_000_000_000 => format!("{:.1} ms", ns as f64 / 1e6),
        _ => format!("{:.2} s", ns as f64 / 1e9),
    }
}

/// The end of `run --profile`: writes the trace if requested, and the table to the standard error.
pub fn finish(session: &Session, file: Option<&Path>) -> Result<(), Error> {
    let Some(profile) = session.timeline() else { return Ok(()) };
    if let Some(file) = file {
        session.save_text(file, &chrome_trace(&profile))?;
    }
    super::complain(&table(&profile));
    Ok(())
}
