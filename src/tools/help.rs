//! The texts of `--help`.

/// The text for a command, or for the program.
pub fn text(command: Option<&str>) -> &'static str {
    match command {
        Some("run") => RUN,
        Some("check") => CHECK,
        Some("fmt") => FMT,
        Some("test") => TEST,
        Some("explain") => EXPLAIN,
        Some("devices") => DEVICES,
        Some("lsp") => LSP,
        Some("environment") => ENVIRONMENT,
        _ => PROGRAM,
    }
}

const PROGRAM: &str = "\
tscript: Rhai with tensors

usage: tscript [flags]        the REPL; `:help` there shows more
       tscript [flags] FILE [args]      runs a script, as `run FILE -- args` does
       tscript [flags] -e CODE [args]   runs a text
       tscript COMMAND ...

  run FILE [flags] [-- args]   runs a script
  check PATH ...               reads scripts and reports what is wrong without running
  fmt PATH ...                 writes scripts in the one style
  test [DIR]                   runs every function `test_*` of the `*_test.rhai` files
  explain [CODE]               the long form of an error, such as E0201
  devices                      what scripts can compute on
  lsp                          the language server, for editors
  help [COMMAND]               what a command takes; `help environment` lists variables of the environment

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
vector instructions of the CPU's kernels, the machine's best unless given. Ctrl-C stops the script and shows where it was.";

const CHECK: &str = "\
usage: tscript check PATH ... [flags]

Reads scripts without running them and reports what is wrong: names that stand for nothing, calls with values or
keywords that would be refused, shapes that do not fit, as far as the text alone tells. Warnings are of what is odd:
variables and values that nobody uses, statements that are never reached. A PATH is a script, a folder, which stands
for all its `*.rhai` files, or `-`, the standard input.

  --message-format FORMAT   `human` (the default, on the error output); on the standard output `short`, a line
                            `file:line:column: error[E0101]: message` for each finding, or `json`, an object
  --deny-warnings           a warning fails, too

The exit status is 1 where there is an error.";

const FMT: &str = "\
usage: tscript fmt PATH ... [flags]

Writes scripts in the one style: lines, blanks and the commas at the ends of lines; nothing else of a script changes,
and formatting twice is formatting once. A PATH is a script, a folder, which stands for all its `*.rhai` files, or `-`,
which formats the standard input to the standard output. A script with a mistake that the parser finds is told and left
alone. A file is written whole or not at all, and only where something changes.

  --check     writes nothing and names the scripts that would change
  --diff      writes nothing and shows what would change
  --width N   characters of a line, where that is possible; 100 unless given

The exit status is 1 where there is an error, and with `--check` or `--diff` where a script would change.";

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

const LSP: &str = "\
usage: tscript lsp [--stdio]

The language server: editors start it, and speak the Language Server Protocol with it over its standard input and
output. It runs no script unless one asks it to. The guide has a page on how editors are told to start it.

The settings are `inlayHints.shapes` and `inlayHints.parameterNames`, both `true` unless given, as options of the
initialization or as the configuration `tscript`. Its commands are `tscript.run` and `tscript.test`, which run a script or
its tests as a program of their own, and `tscript.checkFolder`, which checks all files.";

const ENVIRONMENT: &str = "\
Variables that say what flags say; a flag goes first:

  TSCRIPT_SIMULATE_GPUS=N       `--simulate-gpus N`
  TSCRIPT_LAUNCH_BLOCKING=1     `--blocking`; CUDA_LAUNCH_BLOCKING=1 too

Devices and kernels:

  CUDA_VISIBLE_DEVICES=LIST     the GPUs that scripts see, by index, in this order; empty for none
  CUDA_HOME, CUDA_PATH          a CUDA toolkit, where its libraries are looked for
  VIRTUAL_ENV, CONDA_PREFIX     Python environments, whose NVIDIA packages are looked through first
  TSCRIPT_SIMD=LEVEL            vector instructions of the CPU's kernels: `avx512`, `avx2` or `portable`
  TSCRIPT_CUDA_GRAPHS=0         repeated work on NVIDIA GPUs is launched each time, not replayed as a graph

Folders and the terminal:

  XDG_CACHE_HOME                compiled kernels are kept in its `tscript/kernels`, and texts of the library that
                                editors show in its `tscript/std`; `~/.cache` unless set
  XDG_DATA_HOME                 the REPL's history is in its `tscript/history`; `~/.local/share` unless set
  TSCRIPT_HISTORY=FILE          the REPL's history; empty for none
  TSCRIPT_GRAPHICS=KIND         how `show` and `plot` draw: `kitty`, `sixel`, `full` (24-bit color), `indexed`, `plain`
  NO_COLOR=1                    no color; TERM=dumb too";

#[cfg(test)]
mod tests {
    use super::ENVIRONMENT;
    use std::path::Path;

    /// Text of the program's sources, below a folder.
    fn sources(folder: &Path, all: &mut String) {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                sources(&path, all);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                *all += &std::fs::read_to_string(&path).expect("a source");
            }
        }
    }

    /// Every environment variable that is read is documented. Those for tests, and those that terminals set, are not
    /// settings.
    #[test]
    fn every_variable_that_is_read_is_documented() {
        let mut all = String::new();
        sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut all);
        let words = all.split('"').skip(1).filter(|word| word.len() > 5 && !word.contains("_ERROR"));
        let variable = |word: &&str| {
            let begins = ["TSCRIPT_", "CUDA_", "XDG_"].iter().any(|prefix| word.starts_with(prefix));
            begins && word.chars().all(|c| c.is_ascii_uppercase() || c == '_') && !word.ends_with('_')
        };
        let missing: Vec<&str> = words
            .filter(variable)
            .filter(|word| !word.starts_with("TSCRIPT_TEST_") && !ENVIRONMENT.contains(word))
            .collect();
        assert!(missing.is_empty(), "`tscript help environment` does not tell {missing:?}");
    }
}
