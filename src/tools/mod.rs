//! Floor 6: the program. Uses `Session`; independent of kernels and devices.

mod cache;
mod check;
pub mod command;
mod devices;
mod doctor;
mod explain;
mod fmt;
mod jupyter;
mod long_lines;
mod lsp;
mod new;
pub mod profile;
mod races;
pub mod render;
mod repl;
pub mod run;
mod terminal;
mod test;
pub mod usage;
mod version;

use crate::script::session::handle::Session;
use command::{Command, UsageError};
use std::io::Write;
use std::process::ExitCode;
use std::sync::Mutex;

/// Bound: native stack of the thread that runs scripts: 1000 nested calls of at most 13.5 kB each in a release
/// build, several times that in a debug build. Only touched pages take memory.
const STACK_BYTES: usize = 256 << 20;

/// Bound: what that thread's stack has besides: values inside each other, a list of maps that hold the next one, are dropped
/// one inside the other, with up to 400 bytes for each level. Virtual memory, where the machine gives so much.
const VALUES_BYTES: usize = 4 << 30;

/// Exit statuses.
const FAILED: u8 = 1;
const USAGE: u8 = 2;
const LOST: u8 = 3;

/// Where the last panic occurred, for the message of E0806.
static PANICKED: Mutex<Option<String>> = Mutex::new(None);

/// The program: parses the command line, runs the command, returns the exit status.
pub fn main() -> ExitCode {
    std::panic::set_hook(Box::new(|info| {
        if let Ok(mut last) = PANICKED.lock() {
            *last = Some(info.to_string());
        }
    }));
    let words: Vec<std::ffi::OsString> = std::env::args_os().skip(1).collect();
    let spawn = |bytes| {
        let (script, words) = (std::thread::Builder::new().name("script".into()).stack_size(bytes), words.clone());
        script.spawn(move || dispatch(words))
    };
    // Under a limit of address space it would be missing elsewhere.
    let more = if Session::has_little_space() { 0 } else { VALUES_BYTES };
    let script = spawn(STACK_BYTES + more).or_else(|_| spawn(STACK_BYTES));
    let status = match script.map(std::thread::JoinHandle::join) {
        Ok(Ok(status)) => status,
        Ok(Err(_)) => {
            complain(&run::internal(render::Coloring::of_stderr()));
            FAILED
        }
        Err(error) => {
            complain(&format!("error: the thread for scripts cannot be started: {error}\n"));
            FAILED
        }
    };
    ExitCode::from(status)
}

fn dispatch(words: Vec<std::ffi::OsString>) -> u8 {
    match run::check_environment().and_then(|()| command::parse(words)) {
        Ok(Command::Repl { settings }) => simulated(&settings).unwrap_or_else(|| repl::repl(settings)),
        Ok(Command::Run { file, words, settings }) => {
            simulated(&settings).unwrap_or_else(|| run::run(run::Script::File(&file), words, &settings))
        }
        Ok(Command::Code { text, words, settings }) => {
            simulated(&settings).unwrap_or_else(|| run::run(run::Script::Text(&text), words, &settings))
        }
        Ok(Command::Arguments { file }) => run::list_arguments(&file),
        Ok(Command::Check(options)) => check::check(&options),
        Ok(Command::Fmt(options)) => fmt::fmt(&options),
        Ok(Command::Test { folder, settings }) => {
            simulated(&settings).unwrap_or_else(|| test::test(&folder, &settings))
        }
        Ok(Command::Explain { code }) => explain::explain(code.as_deref()).unwrap_or_else(wrong),
        Ok(Command::Devices { settings }) => simulated(&settings).unwrap_or_else(|| {
            say(&devices::report(&settings));
            0
        }),
        Ok(Command::New { folder }) => new::new(&folder),
        Ok(Command::Doctor { json }) => doctor::doctor(json),
        Ok(Command::Completions { shell }) => {
            say(&usage::completions::text(shell));
            0
        }
        Ok(Command::Man) => {
            say(&usage::man::text());
            0
        }
        Ok(Command::Lsp) => lsp::serve(),
        Ok(Command::Install(options)) => jupyter::install(&options),
        Ok(Command::Uninstall(options)) => jupyter::uninstall(&options),
        Ok(Command::Kernel { file, settings }) => simulated(&settings).unwrap_or_else(|| jupyter::run(&file, settings)),
        Ok(Command::Help(command)) => {
            say(&usage::help::text(command));
            0
        }
        Ok(Command::Version { long }) => {
            say(&if long { version::long() } else { format!("tscript {}", version::short()) });
            0
        }
        Err(usage) => wrong(usage),
    }
}

/// The status of a command whose simulated devices are inconsistent.
fn simulated(settings: &command::Settings) -> Option<u8> {
    run::check_simulation(settings).err().map(wrong)
}

fn wrong(usage: UsageError) -> u8 {
    let help = usage.help.map(|help| format!("  help: {help}\n")).unwrap_or_default();
    complain(&format!("error: {}\n{help}", usage.message));
    USAGE
}

/// A text of the program's own on the standard output, with one line feed at its end.
fn say(text: &str) {
    print_line(text.trim_end_matches('\n'));
}

/// A text and a line feed on the standard output. Not: `println`, which panics if the reader has gone.
fn print_line(text: &str) {
    print_all(&[text, "\n"]);
}

fn print_all(texts: &[&str]) {
    let mut out = std::io::stdout().lock();
    let done = texts.iter().try_for_each(|text| out.write_all(text.as_bytes())).and_then(|()| out.flush());
    if let Err(error) = done {
        if error.kind() != std::io::ErrorKind::BrokenPipe {
            let reason = crate::files::input::os_reason(&error);
            complain(&format!("error: the standard output cannot be written: {reason}\n"));
        }
        // The reader has gone, as in `tscript run x.rhai | head`.
        std::process::exit(FAILED.into());
    }
}

/// Text on the standard error; an error of writing it cannot be reported.
fn complain(text: &str) {
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}
