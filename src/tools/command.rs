//! Parses the command line to a value. Reads words only: no file, no environment.

mod kernels;

use super::usage::{self, Usage, completions::Shell, table};
use super::{check, fmt, jupyter};
use crate::base::device_id::DeviceSpec;
use crate::base::limits::MAX_SIMULATED_GPUS;
use crate::base::suggest::nearest;
use crate::script::session::handle::{PlannedFault, Races};
use lexopt::{Arg, Parser, ValueExt};
use std::ffi::OsString;
use std::path::PathBuf;

/// The parsed command line.
#[derive(Debug, PartialEq)]
pub enum Command {
    /// No command.
    Repl {
        settings: Settings,
    },
    Run {
        file: PathBuf,
        words: Vec<String>,
        settings: Settings,
    },
    /// `-e CODE`.
    Code {
        text: String,
        words: Vec<String>,
        settings: Settings,
    },
    /// `run FILE -- --help`: the arguments of the script itself.
    Arguments {
        file: PathBuf,
    },
    Check(check::Options),
    Fmt(fmt::Options),
    Test {
        folder: PathBuf,
        settings: Settings,
    },
    /// Without a code: all of them.
    Explain {
        code: Option<String>,
    },
    Devices {
        settings: Settings,
    },
    /// A folder with a first script and its test.
    New {
        folder: PathBuf,
    },
    /// What the program finds of what it could use.
    Doctor {
        json: bool,
    },
    Completions {
        shell: Shell,
    },
    /// The manual page.
    Man,
    /// The language server.
    Lsp,
    /// A kernel for notebooks: told to Jupyter, or taken away.
    Install(jupyter::Options),
    Uninstall(jupyter::Options),
    /// The kernel, at the addresses of a connection file.
    Kernel {
        file: PathBuf,
        settings: Settings,
    },
    /// Of one command, or of the program.
    Help(Option<&'static str>),
    /// On one line, or with what the program is made of.
    Version {
        long: bool,
    },
}

/// Flags of the commands that run scripts.
#[derive(Debug, Default, PartialEq)]
pub struct Settings {
    pub device: Option<String>,
    pub seed: Option<u64>,
    pub blocking: bool,
    pub check: bool,
    /// `warn`, `error` or `off`.
    pub races: Option<Races>,
    /// Prints a table of times at the end; also writes a trace if a file is given.
    pub profile: bool,
    pub trace_file: Option<PathBuf>,
    pub simulate_gpus: Option<usize>,
    pub simulate_memory: Option<usize>,
    pub simulate_seed: Option<u64>,
    pub simulate_faults: Vec<PlannedFault>,
}

/// An invalid command line.
#[derive(Debug, PartialEq)]
pub struct UsageError {
    pub message: String,
    pub help: Option<String>,
}

impl UsageError {
    pub fn new(message: impl Into<String>, help: impl Into<String>) -> UsageError {
        UsageError { message: message.into(), help: Some(help.into()) }
    }
}

/// Names of the commands.
pub fn commands() -> impl Iterator<Item = &'static str> {
    table::COMMANDS.iter().map(|usage| usage.name)
}

const RUN: &Usage = usage::named("run");
const CHECK: &Usage = usage::named("check");
const FMT: &Usage = usage::named("fmt");

/// Whether a command has a flag of this name, written with its dashes.
fn has(usage: &Usage, flag: &str) -> bool {
    usage.flag_names().any(|known| flag.strip_prefix("--") == Some(known))
}

/// Parses the words after the program's name.
pub fn parse(mut words: Vec<OsString>) -> Result<Command, UsageError> {
    if let Some(command) = without_command(&words)? {
        return Ok(command);
    }
    let script_words = match words.iter().position(|word| word == "--") {
        Some(at) => {
            let rest = words.split_off(at);
            Some(plain_words(rest.into_iter().skip(1)))
        }
        None => None,
    };
    let mut parser = Parser::from_args(words);
    let name = match parser.next().map_err(unreadable)? {
        None if script_words.is_none() => return Ok(Command::Repl { settings: Settings::default() }),
        None => return Err(UsageError::new("a script is missing", "`tscript run FILE -- ...` gives it arguments")),
        Some(Arg::Long("help") | Arg::Short('h')) => return Ok(Command::Help(None)),
        Some(Arg::Long("version")) => return Ok(Command::Version { long: true }),
        Some(Arg::Short('V')) => return Ok(Command::Version { long: false }),
        Some(Arg::Value(word)) => word.to_string_lossy().into_owned(),
        Some(other) => {
            let first = owned(other);
            return repl(&mut parser, first);
        }
    };
    let Some(usage) = usage::of(&name) else {
        return Err(unknown_command(&name));
    };
    let name = usage.name;
    if script_words.is_some() && !["run", "jupyter"].contains(&name) {
        return Err(UsageError::new(
            format!("`tscript {name}` takes nothing after `--`"),
            "only `tscript run FILE -- ...` does",
        ));
    }
    match name {
        "run" => run(&mut parser, script_words.unwrap_or_default()),
        "jupyter" => kernels::parse(&mut parser, script_words),
        "check" => check(&mut parser),
        "fmt" => formatting(&mut parser),
        "test" => test(&mut parser),
        "devices" => devices(&mut parser, usage),
        "doctor" => doctor(&mut parser, usage),
        "lsp" => Ok(if only_flags(&mut parser, usage, |_, _| Ok(()))? { help_of(usage) } else { Command::Lsp }),
        _ => {
            let (values, help) = plain(&mut parser)?;
            if help { Ok(help_of(usage)) } else { simple(usage, values) }
        }
    }
}

fn help_of(usage: &Usage) -> Command {
    Command::Help(Some(usage.name).filter(|name| *name != "help"))
}

/// `tscript FILE ..` and `tscript -e CODE ..`, with our flags before them: what follows belongs to the script, as
/// needed by a script's first line `#!/usr/bin/env tscript`.
fn without_command(words: &[OsString]) -> Result<Option<Command>, UsageError> {
    let mut parser = Parser::from_args(words);
    let mut settings = Settings::default();
    loop {
        let Some(arg) = parser.next().map_err(unreadable)? else { return Ok(None) };
        match arg {
            Arg::Value(word) if is_file(&word) => {
                let words = rest(&mut parser);
                return Ok(Some(match words.iter().any(|word| word == "--help") {
                    true => Command::Arguments { file: word.into() },
                    false => Command::Run { file: word.into(), words, settings },
                }));
            }
            Arg::Short('e') => {
                let text = text(&mut parser, "-e", "a script")?;
                let words = rest(&mut parser);
                return Ok(Some(Command::Code { text, words, settings }));
            }
            Arg::Long(name)
                if name != "help" && table::REPL.flag_names().chain(["profile"]).any(|known| known == name) =>
            {
                let name = format!("--{name}");
                flag(&mut parser, &mut settings, &name, RUN)?;
            }
            _ => return Ok(None),
        }
    }
}

/// Whether a word is the path of a script, and not a command.
fn is_file(word: &std::ffi::OsStr) -> bool {
    let word = word.to_string_lossy();
    usage::of(&word).is_none() && (word == "-" || word.ends_with(".rhai") || word.contains('/'))
}

/// The rest of the command line, for the script; a `--` at its beginning is dropped.
fn rest(parser: &mut Parser) -> Vec<String> {
    let words: Vec<OsString> = parser.raw_args().map_or(Vec::new(), |words| words.collect());
    let is_mark = words.first().is_some_and(|word| word == "--");
    plain_words(words.into_iter().skip(usize::from(is_mark)))
}

fn plain_words(words: impl Iterator<Item = OsString>) -> Vec<String> {
    words.map(|word| word.to_string_lossy().into_owned()).collect()
}

/// Commands that take no flag.
fn simple(usage: &Usage, values: Vec<OsString>) -> Result<Command, UsageError> {
    let most = usize::from(usage.operand.is_some());
    if let Some(extra) = values.get(most) {
        return Err(too_many(&extra.to_string_lossy(), usage));
    }
    let value = values.into_iter().next();
    let word = value.as_ref().map(|word| word.to_string_lossy().into_owned());
    match usage.name {
        "explain" => Ok(Command::Explain { code: word }),
        "help" => topic(word),
        "man" => Ok(Command::Man),
        "completions" => completions(word),
        "new" => match value {
            Some(folder) if !folder.is_empty() => Ok(Command::New { folder: folder.into() }),
            _ => Err(UsageError::new("`tscript new` expects the name of a folder", "for example `tscript new digits`")),
        },
        name => Err(unknown_command(name)),
    }
}

fn topic(word: Option<String>) -> Result<Command, UsageError> {
    let Some(word) = word else { return Ok(Command::Help(None)) };
    match commands().chain(table::TOPICS.iter().copied()).find(|known| *known == word) {
        Some(known) => Ok(Command::Help(Some(known))),
        None => Err(unknown_command(&word)),
    }
}

fn completions(word: Option<String>) -> Result<Command, UsageError> {
    let example = "for example `tscript completions bash`";
    let Some(word) = word else {
        return Err(UsageError::new("`tscript completions` expects the name of a shell", example));
    };
    match Shell::of(&word) {
        Some(shell) => Ok(Command::Completions { shell }),
        None => {
            let message = format!("`tscript completions` knows `bash`, `zsh` and `fish`, not `{word}`");
            Err(UsageError::new(message, example))
        }
    }
}

/// Devices of the machine, and simulated GPUs.
fn devices(parser: &mut Parser, usage: &'static Usage) -> Result<Command, UsageError> {
    let mut settings = Settings::default();
    let help = only_flags(parser, usage, |parser, name| flag(parser, &mut settings, name, usage))?;
    Ok(if help { help_of(usage) } else { Command::Devices { settings } })
}

fn doctor(parser: &mut Parser, usage: &Usage) -> Result<Command, UsageError> {
    let mut json = false;
    let help = only_flags(parser, usage, |_, name| {
        json |= name == "--json";
        Ok(())
    })?;
    Ok(if help { help_of(usage) } else { Command::Doctor { json } })
}

/// The words of a command that takes flags and nothing else; whether `--help` was among them.
fn only_flags(
    parser: &mut Parser,
    usage: &Usage,
    mut take: impl FnMut(&mut Parser, &str) -> Result<(), UsageError>,
) -> Result<bool, UsageError> {
    while let Some(arg) = parser.next().map_err(unreadable)? {
        match owned(arg).as_str() {
            "--help" | "-h" => return Ok(true),
            name if has(usage, name) => take(parser, name)?,
            name if name.starts_with('-') => return Err(unknown(name, usage.flag_names())),
            extra => return Err(too_many(extra, usage)),
        }
    }
    Ok(false)
}

fn too_many(word: &str, usage: &Usage) -> UsageError {
    let help = match usage.name {
        "help" => "for example `tscript help run`".to_string(),
        name => format!("`tscript help {name}` shows what it takes"),
    };
    UsageError::new(format!("`{word}` is one argument too many"), help)
}

/// Values, and whether `--help` was among the words.
fn plain(parser: &mut Parser) -> Result<(Vec<OsString>, bool), UsageError> {
    let mut values = Vec::new();
    let mut help = false;
    while let Some(arg) = parser.next().map_err(unreadable)? {
        match arg {
            Arg::Value(value) => values.push(value),
            Arg::Long("help") | Arg::Short('h') => help = true,
            other => return Err(unknown(&owned(other), ["help"].into_iter())),
        }
    }
    Ok((values, help))
}

/// Flags without a command: the REPL's.
fn repl(parser: &mut Parser, first: String) -> Result<Command, UsageError> {
    let mut settings = Settings::default();
    let mut name = first;
    loop {
        flag(parser, &mut settings, &name, RUN)?;
        name = match parser.next().map_err(unreadable)? {
            None if settings.profile => return Err(only_run_profiles()),
            None => return Ok(Command::Repl { settings }),
            Some(Arg::Value(value)) => {
                let message = format!("`{}` stands after flags and is no command", value.to_string_lossy());
                return Err(UsageError::new(message, "a command comes first: `tscript run FILE --seed 1`"));
            }
            Some(other) => owned(other),
        };
    }
}

fn run(parser: &mut Parser, words: Vec<String>) -> Result<Command, UsageError> {
    let mut settings = Settings::default();
    let mut file: Option<PathBuf> = None;
    while let Some(arg) = parser.next().map_err(unreadable)? {
        match arg {
            Arg::Value(value) if file.is_none() => file = Some(value.into()),
            Arg::Value(value) => {
                let message = format!("`{}` stands after the script", value.to_string_lossy());
                return Err(UsageError::new(
                    message,
                    "arguments of the script stand after `--`: `tscript run FILE -- ...`",
                ));
            }
            Arg::Long("help") | Arg::Short('h') => return Ok(Command::Help(Some("run"))),
            other => {
                let name = owned(other);
                let is_ours = has(RUN, &name);
                match &file {
                    Some(file) if !is_ours && nearest(name.trim_start_matches('-'), RUN.flag_names()).is_none() => {
                        let after = rest(parser).join(" ");
                        let call = format!("tscript run {} -- {name} {after}", file.display());
                        let help = format!("what the script takes stands after `--`: `{}`", call.trim_end());
                        return Err(UsageError::new(format!("`{name}` is no flag of `tscript run`"), help));
                    }
                    _ => flag(parser, &mut settings, &name, RUN)?,
                }
            }
        }
    }
    let Some(file) = file else { return Err(no_file("run")) };
    if words.iter().any(|word| word == "--help") {
        return Ok(Command::Arguments { file });
    }
    Ok(Command::Run { file, words, settings })
}

fn check(parser: &mut Parser) -> Result<Command, UsageError> {
    let mut options = check::Options::default();
    while let Some(arg) = parser.next().map_err(unreadable)? {
        match arg {
            Arg::Value(value) => options.files.push(value.into()),
            other => match owned(other).as_str() {
                "--help" | "-h" => return Ok(Command::Help(Some("check"))),
                "--deny-warnings" => options.deny_warnings = true,
                "--message-format" => options.format = message_format(parser)?,
                name => return Err(unknown(name, CHECK.flag_names())),
            },
        }
    }
    if options.files.is_empty() { Err(no_file("check")) } else { Ok(Command::Check(options)) }
}

fn formatting(parser: &mut Parser) -> Result<Command, UsageError> {
    let mut options = fmt::Options::default();
    let mut modes = Vec::new();
    while let Some(arg) = parser.next().map_err(unreadable)? {
        match arg {
            Arg::Value(value) => options.files.push(value.into()),
            other => match owned(other).as_str() {
                "--help" | "-h" => return Ok(Command::Help(Some("fmt"))),
                "--check" => modes.push(fmt::Mode::Check),
                "--diff" => modes.push(fmt::Mode::Diff),
                "--width" => options.width = width(parser)?,
                name => return Err(unknown(name, FMT.flag_names())),
            },
        }
    }
    options.mode = match modes[..] {
        [] => fmt::Mode::Write,
        [mode] => mode,
        _ => return Err(UsageError::new("`--check` and `--diff` exclude each other", "both leave the files alone")),
    };
    if options.files.is_empty() { Err(no_file("fmt")) } else { Ok(Command::Fmt(options)) }
}

/// Characters of a line.
fn width(parser: &mut Parser) -> Result<usize, UsageError> {
    let example = "for example `--width 80`";
    match number(parser, "--width", example)? {
        0 => Err(UsageError::new("`--width` expects an integer of at least 1, not `0`", example)),
        width => Ok(usize::try_from(width).unwrap_or(usize::MAX)),
    }
}

fn message_format(parser: &mut Parser) -> Result<check::Format, UsageError> {
    match text(parser, "--message-format", "`human`, `short` or `json`")?.as_str() {
        "human" => Ok(check::Format::Human),
        "short" => Ok(check::Format::Short),
        "json" => Ok(check::Format::Json),
        word => {
            let message = format!("`--message-format` expects `human`, `short` or `json`, not `{word}`");
            Err(UsageError::new(message, "the default is `human`"))
        }
    }
}

fn test(parser: &mut Parser) -> Result<Command, UsageError> {
    let mut settings = Settings::default();
    let mut folder: Option<PathBuf> = None;
    while let Some(arg) = parser.next().map_err(unreadable)? {
        match arg {
            Arg::Value(value) if folder.is_none() => folder = Some(value.into()),
            Arg::Value(value) => {
                let message = format!("`{}` is a second folder", value.to_string_lossy());
                return Err(UsageError::new(message, "`tscript test` takes one folder or one file"));
            }
            Arg::Long("help") | Arg::Short('h') => return Ok(Command::Help(Some("test"))),
            other => {
                let name = owned(other);
                flag(parser, &mut settings, &name, RUN)?;
            }
        }
    }
    if settings.profile {
        return Err(only_run_profiles());
    }
    Ok(Command::Test { folder: folder.unwrap_or_else(|| PathBuf::from(".")), settings })
}

fn flag(parser: &mut Parser, settings: &mut Settings, name: &str, usage: &Usage) -> Result<(), UsageError> {
    match name {
        "--device" => settings.device = Some(device(parser)?),
        "--seed" => {
            settings.seed = Some(number(parser, "--seed", "for example `--seed 42`")?);
        }
        "--blocking" => settings.blocking = true,
        "--check" => settings.check = true,
        "--profile" => {
            settings.profile = true;
            settings.trace_file = trace_file(parser);
        }
        "--races" => settings.races = Some(races(parser)?),
        "--simulate-gpus" => {
            let count = number(parser, name, "for example `--simulate-gpus 4`")?;
            settings.simulate_gpus =
                Some(gpus(count).map_err(|text| UsageError::new(text, "for example `--simulate-gpus 4`"))?);
        }
        "--simulate-seed" => {
            settings.simulate_seed = Some(number(parser, name, "for example `--simulate-seed 7`")?);
        }
        "--simulate-memory" => {
            let word = text(parser, name, "a size such as `16GiB`")?;
            let bytes = crate::base::size_text::parse(&word).ok_or_else(|| {
                UsageError::new(
                    format!("`--simulate-memory` expects a size, not `{word}`"),
                    "for example `16GiB` or `512MiB`",
                )
            })?;
            settings.simulate_memory = Some(bytes);
        }
        "--simulate-fault" => {
            let word = text(parser, name, "a fault such as `alloc:3@cuda:1`")?;
            let fault = PlannedFault::parse(&word);
            let fault = fault.map_err(|text| UsageError::new(text, "`tscript help run` shows what can go wrong"))?;
            settings.simulate_faults.push(fault);
        }
        _ => return Err(unknown(name, usage.flag_names())),
    }
    Ok(())
}

/// `--profile=FILE`, or a next word that ends in `.json`.
fn trace_file(parser: &mut Parser) -> Option<PathBuf> {
    let named = parser.optional_value();
    let is_trace = |word: &std::ffi::OsStr| word.to_string_lossy().ends_with(".json");
    named.or_else(|| parser.try_raw_args()?.next_if(is_trace)).map(PathBuf::from)
}

fn only_run_profiles() -> UsageError {
    UsageError::new("`--profile` belongs to `tscript run`", "for example `tscript run model.rhai --profile trace.json`")
}

/// A flag's number of at least 0.
fn number(parser: &mut Parser, flag: &str, example: &str) -> Result<u64, UsageError> {
    let word = text(parser, flag, "an integer of at least 0")?;
    word.parse()
        .map_err(|_| UsageError::new(format!("`{flag}` expects an integer of at least 0, not `{word}`"), example))
}

/// The name of a device; the session checks whether the machine has it.
fn device(parser: &mut Parser) -> Result<String, UsageError> {
    let word = text(parser, "--device", "a device such as `cpu`")?;
    match DeviceSpec::parse(&word) {
        Some(_) => Ok(word),
        None => Err(UsageError::new(
            format!("`--device` expects a device, not `{word}`"),
            "devices are `cpu`, `cuda`, and `cuda:0`, `cuda:1`, ..",
        )),
    }
}

/// A number of simulated GPUs.
pub fn gpus(count: u64) -> Result<usize, String> {
    match usize::try_from(count) {
        Ok(count) if count <= MAX_SIMULATED_GPUS => Ok(count),
        _ => Err(format!("{count} simulated GPUs are too many; at most {MAX_SIMULATED_GPUS} are possible")),
    }
}

fn races(parser: &mut Parser) -> Result<Races, UsageError> {
    let word = text(parser, "--races", "`warn`, `error` or `off`")?;
    match word.as_str() {
        "warn" => Ok(Races::Warn),
        "error" => Ok(Races::Error),
        "off" => Ok(Races::Off),
        _ => Err(UsageError::new(
            format!("`--races` expects `warn`, `error` or `off`, not `{word}`"),
            "the default is `warn`",
        )),
    }
}

fn text(parser: &mut Parser, flag: &str, what: &str) -> Result<String, UsageError> {
    let missing =
        || UsageError::new(format!("`{flag}` expects {what} after it"), "`tscript help run` shows every flag");
    parser.value().map_err(|_| missing())?.string().map_err(|_| missing())
}

fn owned(arg: Arg<'_>) -> String {
    match arg {
        Arg::Long(name) => format!("--{name}"),
        Arg::Short(letter) => format!("-{letter}"),
        Arg::Value(value) => value.to_string_lossy().into_owned(),
    }
}

fn unknown(flag: &str, known: impl Iterator<Item = &'static str> + Clone) -> UsageError {
    let help = match nearest(flag.trim_start_matches('-'), known.clone()) {
        Some(found) => format!("did you mean `--{found}`?"),
        None => format!("the flags are: {}", known.map(|name| format!("--{name}")).collect::<Vec<_>>().join(" ")),
    };
    UsageError::new(format!("unknown flag `{flag}`"), help)
}

fn unknown_command(word: &str) -> UsageError {
    let help = match nearest(word, commands()) {
        Some(found) => format!("did you mean `tscript {found}`?"),
        None => format!("the commands are: {}", commands().collect::<Vec<_>>().join(" ")),
    };
    UsageError::new(format!("unknown command `{word}`"), help)
}

fn no_file(name: &str) -> UsageError {
    UsageError::new(format!("`tscript {name}` expects a script"), format!("for example `tscript {name} model.rhai`"))
}

fn unreadable(error: lexopt::Error) -> UsageError {
    UsageError::new(error.to_string(), "`tscript --help` shows every command")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Command, UsageError> {
        parse(line.split_whitespace().map(OsString::from).collect())
    }

    fn help(line: &str) -> String {
        read(line).expect_err(line).help.unwrap_or_default()
    }

    #[test]
    fn device_names_are_checked() {
        assert!(read("run --device cud m.rhai").is_err());
        assert!(read("run --device cuda:x m.rhai").is_err());
        assert!(read("run --device cuda:7 m.rhai").is_ok());
    }

    #[test]
    fn flags_may_stand_on_both_sides_of_the_script() {
        let expected = Command::Run {
            file: "m.rhai".into(),
            words: vec!["--lr".into(), "0.1".into()],
            settings: Settings { device: Some("cpu".into()), seed: Some(7), blocking: true, ..Settings::default() },
        };
        assert_eq!(read("run --device cpu --blocking m.rhai --seed=7 -- --lr 0.1"), Ok(expected));
    }

    #[test]
    fn what_is_unknown_gets_a_suggestion() {
        assert_eq!(help("rum x.rhai"), "did you mean `tscript run`?");
        assert_eq!(help("run --bloking x.rhai"), "did you mean `--blocking`?");
        assert_eq!(
            help("run x.rhai --lr 3 --epochs 2"),
            "what the script takes stands after `--`: `tscript run x.rhai -- --lr 3 --epochs 2`"
        );
        assert_eq!(help("run x.rhai --bloking"), "did you mean `--blocking`?");
        assert!(help("run x.rhai 3").contains("after `--`"));
        for line in [
            "-- x",
            "--seed 1 run x.rhai",
            "run",
            "check",
            "run x.rhai --seed -1",
            "run x.rhai --seed",
            "run x.rhai --races maybe",
            "devices now",
            "test a b",
            "check x.rhai -- y",
            "explain E0101 E0102",
            "help run check",
            "devices --seed 1",
            "fmt",
            "fmt x.rhai --check --diff",
            "fmt x.rhai --width 0",
            "fmt x.rhai --indent 2",
            "new",
            "new a b",
            "completions",
            "completions tcsh",
            "man x",
            "doctor x",
            "doctor --jsn",
        ] {
            read(line).expect_err(line);
        }
    }

    #[test]
    fn a_script_runs_without_a_command() {
        let settings = Settings { seed: Some(1), ..Settings::default() };
        let words = |line: &str| line.split_whitespace().map(str::to_string).collect();
        for (line, given) in [("", ""), (" -- a", "a"), (" --lr 3 a -- b", "--lr 3 a -- b"), (" --seed 2", "--seed 2")]
        {
            let expected = Command::Run { file: "./m".into(), words: words(given), settings: Settings::default() };
            assert_eq!(read(&format!("./m{line}")), Ok(expected), "{line}");
        }
        let expected = Command::Run { file: "m.rhai".into(), words: Vec::new(), settings };
        assert_eq!(read("--seed 1 m.rhai"), Ok(expected));
        assert_eq!(read("m.rhai --help"), Ok(Command::Arguments { file: "m.rhai".into() }));
        let expected = Command::Code { text: "print(1)".into(), words: words("--lr 3"), settings: Settings::default() };
        assert_eq!(read("-e print(1) --lr 3"), Ok(expected));
        assert!(read("-e").is_err() && read("model").is_err());
    }

    #[test]
    fn a_profile_may_name_a_trace() {
        let expected = |trace: Option<&str>| {
            let settings = Settings { profile: true, trace_file: trace.map(PathBuf::from), ..Settings::default() };
            Ok(Command::Run { file: "m.rhai".into(), words: Vec::new(), settings })
        };
        assert_eq!(read("run --profile m.rhai"), expected(None));
        assert_eq!(read("run m.rhai --profile"), expected(None));
        assert_eq!(read("run m.rhai --profile t.json"), expected(Some("t.json")));
        assert_eq!(read("run --profile=t m.rhai"), expected(Some("t")));
        read("--profile").expect_err("the REPL");
        read("test --profile").expect_err("tests");
    }

    #[test]
    fn without_a_command_there_is_the_repl() {
        assert_eq!(read(""), Ok(Command::Repl { settings: Settings::default() }));
        let settings = Settings {
            device: Some("cpu".into()),
            seed: Some(3),
            blocking: true,
            races: Some(Races::Warn),
            ..Settings::default()
        };
        assert_eq!(read("--device cpu --seed 3 --blocking --races warn"), Ok(Command::Repl { settings }));
    }

    /// What help, completions and the manual page list is what the parser takes, with a value where they show one.
    #[test]
    fn the_parser_takes_every_flag_of_the_table() {
        for usage in table::COMMANDS {
            for flag in usage.all_flags() {
                let value = flag.value.as_ref().filter(|value| !value.optional).map(|value| match value.word {
                    usage::Word::OneOf(words) => words[0],
                    _ => {
                        if flag.name == "simulate-fault" {
                            "alloc:3@cuda:1"
                        } else {
                            "16"
                        }
                    }
                });
                let operands: &[&str] = match usage.operand {
                    None => &[""],
                    Some(usage::Word::OneOf(_)) => &["install", "run x.json"],
                    Some(_) => &["x.rhai"],
                };
                let given = format!("--{} {}", flag.name, value.unwrap_or_default());
                let line = |operand: &str| format!("{} {operand} {given}", usage.name);
                let taken =
                    |operand: &&str| read(&line(operand)).is_ok_and(|command| !matches!(command, Command::Help(_)));
                assert_eq!(operands.iter().filter(|operand| taken(operand)).count(), 1, "{}", line(operands[0]));
                for operand in operands.iter().filter(|_| value.is_some()) {
                    read(&format!("{} {operand} --{}", usage.name, flag.name)).expect_err(&line(operand));
                }
            }
            assert_eq!(read(&format!("{} --help", usage.name)), Ok(help_of(usage)));
        }
    }

    #[test]
    fn devices_may_be_simulated() {
        let settings = Settings { simulate_gpus: Some(2), simulate_memory: Some(1 << 30), ..Settings::default() };
        assert_eq!(read("devices --simulate-gpus 2 --simulate-memory 1GiB"), Ok(Command::Devices { settings }));
    }

    #[test]
    fn scripts_are_formatted() {
        let expected =
            |mode, width| Ok(Command::Fmt(fmt::Options { files: vec!["m.rhai".into(), "-".into()], mode, width }));
        assert_eq!(read("fmt m.rhai -"), expected(fmt::Mode::Write, 100));
        assert_eq!(read("fmt --check m.rhai - --width 80"), expected(fmt::Mode::Check, 80));
        assert_eq!(read("fmt m.rhai - --diff"), expected(fmt::Mode::Diff, 100));
    }

    #[test]
    fn help_after_the_dashes_belongs_to_the_script() {
        assert_eq!(read("run x.rhai -- --help"), Ok(Command::Arguments { file: "x.rhai".into() }));
        assert_eq!(read("run x.rhai --help"), Ok(Command::Help(Some("run"))));
        assert_eq!(read("help check"), Ok(Command::Help(Some("check"))));
    }
}
