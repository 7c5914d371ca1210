//! `tscript run`: a session, its errors on the standard error, Ctrl-C, panics.

use super::command::{Settings, UsageError};
use super::profile;
use super::races::Found;
use super::render::{Coloring, render, render_error};
use super::{FAILED, LOST, STACK_BYTES, complain, print_line, say};
use crate::base::code;
use crate::base::device_id::DeviceId;
use crate::base::diag::Diag;
use crate::script::error::Error;
use crate::script::language::arguments::unused_word;
use crate::script::session::builder::Builder;
use crate::script::session::handle::{InterruptHandle, PlannedFault, Races, Session};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// A builder with the settings of the command line and the environment.
pub fn builder(settings: &Settings) -> Builder {
    let mut builder = Session::builder()
        .blocking(is_blocking(settings))
        .check(settings.check)
        .profile(settings.profile)
        .cuda_graphs(std::env::var("TSCRIPT_CUDA_GRAPHS").map_or(true, |value| value != "0"))
        .races(settings.races.unwrap_or_default())
        .on_warning(|warning| complain(&render_error(warning, Coloring::of_stderr())))
        .seed(settings.seed.unwrap_or(0))
        .stack_bytes(STACK_BYTES)
        .all_files()
        .whole_machine()
        .show_progress(true)
        .output(print_line);
    if let Some(count) = simulated_gpus(settings) {
        builder = builder.simulate_gpus(visible(count));
        if let Some(bytes) = settings.simulate_memory {
            builder = builder.simulate_memory(bytes);
        }
        if let Some(seed) = settings.simulate_seed {
            builder = builder.simulate_seed(seed);
        }
        for &fault in &settings.simulate_faults {
            builder = builder.simulate_fault(fault);
        }
    }
    match &settings.device {
        Some(device) => builder.device(device),
        None => builder,
    }
}

fn is_blocking(settings: &Settings) -> bool {
    let asked = |name: &str| std::env::var(name).is_ok_and(|value| value == "1");
    settings.blocking || asked("TSCRIPT_LAUNCH_BLOCKING") || asked("CUDA_LAUNCH_BLOCKING")
}

/// How many GPUs to simulate, by flag or environment.
pub fn simulated_gpus(settings: &Settings) -> Option<usize> {
    let named = || std::env::var("TSCRIPT_SIMULATE_GPUS").ok()?.trim().parse().ok();
    settings.simulate_gpus.or_else(|| super::command::gpus(named()?).ok()).filter(|&count| count > 0)
}

/// Settings of the environment in place of flags; an invalid value would be ignored otherwise.
pub fn check_environment() -> Result<(), UsageError> {
    const NAME: &str = "TSCRIPT_SIMULATE_GPUS";
    let Ok(word) = std::env::var(NAME) else { return Ok(()) };
    let wrong = |why: String| Err(UsageError::new(why, format!("for example `{NAME}=4`")));
    match word.trim().parse() {
        _ if word.trim().is_empty() => Ok(()),
        Ok(count) => super::command::gpus(count).map(drop).or_else(wrong),
        Err(_) => wrong(format!("{NAME} expects an integer of at least 0, not `{word}`")),
    }
}

/// Flags for simulated GPUs need some, and a fault an existing one: they would be ignored otherwise.
pub fn check_simulation(settings: &Settings) -> Result<(), UsageError> {
    let Some(count) = simulated_gpus(settings).map(visible) else {
        let flag = match settings {
            Settings { simulate_memory: Some(_), .. } => "--simulate-memory",
            Settings { simulate_seed: Some(_), .. } => "--simulate-seed",
            Settings { simulate_faults, .. } if !simulate_faults.is_empty() => "--simulate-fault",
            _ => return Ok(()),
        };
        return Err(UsageError::new(
            format!("`{flag}` is for simulated GPUs, and there are none"),
            "add `--simulate-gpus 1`",
        ));
    };
    let beyond = |fault: &&PlannedFault| matches!(fault.device, DeviceId::Cuda(index) if index as usize >= count);
    match settings.simulate_faults.iter().find(beyond) {
        Some(fault) => {
            let are = if count == 1 {
                "there is 1 simulated GPU".into()
            } else {
                format!("there are {count} simulated GPUs")
            };
            let message = format!("`--simulate-fault` names {}, and {are}", fault.device);
            Err(UsageError::new(message, "they are counted from cuda:0"))
        }
        None => Ok(()),
    }
}

/// The number of them that `CUDA_VISIBLE_DEVICES` leaves.
pub fn visible(count: usize) -> usize {
    std::env::var("CUDA_VISIBLE_DEVICES").map_or(count, |list| listed(&list, count))
}

/// How many of `count` devices a list leaves, read as by CUDA and PyTorch: text after a number is ignored, the list
/// ends at the first index that is invalid or does not exist, and a duplicate index leaves no device at all.
fn listed(list: &str, count: usize) -> usize {
    let index = |word: &str| {
        let digits = word.trim().trim_start_matches('+');
        digits[..digits.bytes().take_while(u8::is_ascii_digit).count()].parse::<usize>().ok()
    };
    let numbers: Vec<usize> = list.split(',').map_while(index).collect();
    let twice = (1..numbers.len()).any(|i| numbers[..i].contains(&numbers[i]));
    if twice { 0 } else { numbers.into_iter().take_while(|&index| index < count).count() }
}

/// The script to run.
pub enum Script<'a> {
    File(&'a Path),
    /// Of the command line.
    Text(&'a str),
}

pub fn run(script: Script, words: Vec<String>, settings: &Settings) -> u8 {
    let work = || -> Result<u8, Error> {
        let races = Found::default();
        let noted = races.clone();
        let warned = move |warning: &Error| {
            noted.note(warning);
            complain(&render_error(warning, Coloring::of_stderr()));
        };
        let builder = builder(settings).on_warning(warned).ends_when_interrupted().arguments(words.clone());
        let mut session = builder.build()?;
        session.set_terminal(super::terminal::of_stdout());
        session.runs_one_script();
        interruptible(session.interrupt_handle());
        let (name, text) = match script {
            Script::File(file) => (named(file), source(&session, file)?),
            Script::Text(text) => (PathBuf::from("-e"), text.to_string()),
        };
        let judged = if words.is_empty() { Vec::new() } else { session.texts_of(&name, &text) };
        if let Some(wrong) = unused_word(&judged, &words) {
            return Ok(super::wrong(UsageError { message: wrong.message, help: Some(wrong.help) }));
        }
        let ran = session.run_source(&name, &text);
        ran.as_ref().err().into_iter().for_each(|error| races.note(error));
        // Who looked to the end and found none removes what was found before.
        let looked = ran.is_ok() && !is_blocking(settings) && settings.races != Some(Races::Off);
        races.write(&if looked { session.files() } else { Vec::new() });
        let told = if settings.profile { profile::finish(&session, settings.trace_file.as_deref()) } else { Ok(()) };
        let status = session.exit_status().unwrap_or(0);
        // The process ends: dropping the interpreter would take a third of the time of starting it.
        std::mem::forget(session);
        ran.and(told).map(|()| status)
    };
    match guarded(work) {
        Ok(status) => status,
        Err(failure) => report(Err(failure)),
    }
}

/// The name of a script in messages; `-` is the standard input.
pub fn named(file: &Path) -> PathBuf {
    if file == Path::new("-") { PathBuf::from("stdin") } else { file.to_path_buf() }
}

pub fn source(session: &Session, file: &Path) -> Result<String, Error> {
    session.read_source(if file == Path::new("-") { Path::new("/dev/stdin") } else { file })
}

/// A session that reads scripts and runs none.
pub fn builder_of_checks() -> Builder {
    Session::builder().stack_bytes(STACK_BYTES).all_files()
}

/// `tscript run FILE -- --help`.
pub fn list_arguments(file: &Path) -> u8 {
    let work = || builder_of_checks().build()?.arguments_of(file);
    match guarded(work) {
        Ok(asked) if asked.is_empty() => {
            say(&format!("{} asks for no arguments by name", file.display()));
            0
        }
        Ok(asked) => {
            let line = |(name, default): (String, Option<String>)| match default {
                Some(default) => format!("  --{name} VALUE   default {default}"),
                None => format!("  --{name}"),
            };
            let lines: Vec<String> = asked.into_iter().map(line).collect();
            say(&format!("arguments of {}:\n{}", file.display(), lines.join("\n")));
            0
        }
        Err(failure) => report(Err(failure)),
    }
}

/// Why a piece of work returned no value.
pub enum Failure {
    Script(Error),
    /// Already printed: a panic, or an error that is not the script's.
    Panic(String),
}

/// Runs a piece of work; a panic inside becomes E0806.
pub fn guarded<R>(work: impl FnOnce() -> Result<R, Error>) -> Result<R, Failure> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(result) => result.map_err(Failure::Script),
        Err(_) => Err(Failure::Panic(internal(Coloring::of_stderr()))),
    }
}

/// The text for a failure.
pub fn text(failure: &Failure) -> String {
    match failure {
        Failure::Script(error) => render_error(error, Coloring::of_stderr()),
        Failure::Panic(text) => text.clone(),
    }
}

fn report(result: Result<(), Failure>) -> u8 {
    let Err(failure) = result else { return 0 };
    complain(&text(&failure));
    match &failure {
        Failure::Script(error) if is_loss(error) => LOST,
        _ => FAILED,
    }
}

/// Whether a lost device was not caught, also with another error.
fn is_loss(error: &Error) -> bool {
    std::iter::once(error.diag()).chain(error.extra()).any(|diag| diag.code == code::DEVICE_LOST)
}

/// E0806, with the message of the panic.
pub fn internal(color: Coloring) -> String {
    let said = super::PANICKED.lock().ok().and_then(|mut last| last.take()).unwrap_or_default();
    let diag = Diag::error(code::INTERNAL, "an internal error")
        .note(said.replace('\n', " "))
        .help("this is a mistake of tscript, not of the script: please report it, with the script");
    render(&diag, &Default::default(), color)
}

/// The first Ctrl-C stops the script at its next step; the second ends the program at once.
fn interruptible(handle: InterruptHandle) {
    let asked = AtomicBool::new(false);
    // An error means that signals are not available; the system's own Ctrl-C works then.
    let _ = ctrlc::set_handler(move || {
        if asked.swap(true, Ordering::Relaxed) {
            std::process::exit(FAILED.into());
        }
        handle.interrupt();
    });
}

#[cfg(test)]
mod tests {
    use super::listed;

    /// PyTorch's `test_parse_visible_devices`, and indices beyond what there is.
    #[test]
    fn visible_devices_are_read_as_cuda_reads_them() {
        let counts = ["1gpu2,2ampere", "0, 1,2,-1,3", "0,1,2,1", "", "-1", "x", "+1", "3,9,1", "9", "GPU-9e8d35e3"];
        assert_eq!(counts.map(|list| listed(list, 8)), [2, 3, 0, 0, 0, 0, 1, 1, 0, 0]);
    }
}
