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
       tscript [flags] FILE [args]      runs a script, as `run FILE -- args` does
       tscript [flags] -e CODE [args]   runs a text
       tscript COMMAND ...

  run FILE [flags] [-- args]   runs a script
  check PATH ...               reads scripts and tells what is wrong without running
  test [DIR]                   runs every function `test_*` of the `*_test.rhai` files
  explain [CODE]               the long form of an error, such as E0201
  devices                      what scripts can compute on
  help [COMMAND]               what a command takes

  --help, --version

exit status: 0 done, 1 the script failed, 2 wrong usage, 3 a device was lost; `exit(n)` of a script leaves with n";

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

  --simulate-gpus N         gives cuda:0 to cuda:(N-1) on a machine with none
  --simulate-memory SIZE    memory of each of them, such as `16GiB`, which it is unless given
  --simulate-seed N         virtual time, with an order of completion drawn from the seed
  --simulate-fault FAULT    what goes wrong there, may be given several times: `alloc:3@cuda:1` (the third
                            request for memory fails), `launch:20@cuda:0` (the 20th launch fails),
                            `lost:50@cuda:1` (the device is lost at the 50th launch)

FILE may be `-`, the standard input. What stands after `--` is the script's: `args`, `arg(\"lr\", 1e-3)`, `flag(\"verbose\")`.
`tscript run FILE -- --help` lists what a script asks for.
TSCRIPT_LAUNCH_BLOCKING=1 does what `--blocking` does, TSCRIPT_SIMULATE_GPUS=N what `--simulate-gpus N`
does, CUDA_VISIBLE_DEVICES hides devices, simulated ones too. TSCRIPT_SIMD=avx512, avx2 or portable chooses the
vector instructions of the CPU's kernels, the machine's best unless given. Ctrl-C stops the script and tells where it was.";

const CHECK: &str = "\
usage: tscript check PATH ... [flags]

Reads scripts without running them and tells what is wrong: names that stand for nothing, calls with values or
keywords that would be refused, shapes that do not fit, as far as the text alone tells. Warnings are of what is odd:
variables and values that nobody uses, statements that are never reached. A PATH is a script, a folder, which stands
for all its `*.rhai` files, or `-`, the standard input.

  --message-format FORMAT   `human` (the default, on the error output); on the standard output `short`, a line
                            `file:line:column: error[E0101]: message` for each finding, or `json`, an object
  --deny-warnings           a warning fails, too

The exit status is 1 where there is an error.";

const TEST: &str = "\
usage: tscript test [DIR] [flags]

Looks through DIR (the current folder unless given) for files named `*_test.rhai`.
Each function without parameters whose name starts with `test_` runs in a fresh session, after the
file's own statements. It fails when it raises an error or leaves by `exit`. DIR may also be one such file.
The flags are those of `tscript run` but for `--profile`.";

const EXPLAIN: &str = "\
usage: tscript explain [CODE]

Tells what an error such as E0201 means, shows a script that gets it, and what to do about it.
Without a code, lists all of them.";

const DEVICES: &str = "\
usage: tscript devices [--simulate-gpus N] [--simulate-memory SIZE]

Shows processor, memory and vector instructions, what was found of CUDA, and which GPUs are simulated.";
