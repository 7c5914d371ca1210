//! What `--help` shows.

/// The text for a command, or for the program.
pub fn text(command: Option<&str>) -> &'static str {
    match command {
        Some("run") => RUN,
        Some("check") => CHECK,
        Some("test") => TEST,
        Some("explain") => EXPLAIN,
        Some("devices") => DEVICES,
        _ => PROGRAM,
    }
}

const PROGRAM: &str = "\
tscript: Rhai with tensors

usage: tscript [flags]        the REPL; `:help` there tells more
       tscript COMMAND ...

  run FILE [flags] [-- args]   runs a script
  check FILE ...               parses scripts and reports without running
  test [DIR]                   runs every function `test_*` of the `*_test.rhai` files
  explain [CODE]               the long form of an error, such as E0201
  devices                      what scripts can compute on
  help [COMMAND]               what a command takes

  --help, --version

exit status: 0 done, 1 the script failed, 2 wrong usage, 3 a device was lost";

const RUN: &str = "\
usage: tscript run FILE [flags] [-- args]

  --device D     where tensors are made unless the script says otherwise; `cpu` is the default
  --seed N       seed of the random numbers; 0 unless given
  --blocking     runs each operation to its end before the next
  --check        stops at the first operation that makes NaN or infinity out of finite inputs
  --races MODE   `warn`, `error` or `off`: accesses that nothing orders; with the CPU alone there are none
  --profile [TRACE.json]
                 ends with the slowest lines and those that made the script wait; writes a trace that
                 Perfetto and chrome://tracing open

What stands after `--` is the script's: `args`, `arg(\"lr\", 1e-3)`, `flag(\"verbose\")`.
`tscript run FILE -- --help` lists what a script asks for.
TSCRIPT_LAUNCH_BLOCKING=1 does what `--blocking` does. Ctrl-C stops the script and tells where it was.";

const CHECK: &str = "\
usage: tscript check FILE ...

Parses each script, resolves names as far as that goes without running, and reports every error.";

const TEST: &str = "\
usage: tscript test [DIR] [--device D] [--seed N] [--blocking]

Looks through DIR (the current folder unless given) for files named `*_test.rhai`.
Each function without parameters whose name starts with `test_` runs in a fresh session, after the
file's own statements. It fails when it raises an error. DIR may also be one such file.";

const EXPLAIN: &str = "\
usage: tscript explain [CODE]

Tells what an error such as E0201 means, shows a script that gets it, and what to do about it.
Without a code, lists all of them.";

const DEVICES: &str = "\
usage: tscript devices

Shows processor, memory and vector instructions, and what was found of CUDA.";
