//! The table itself: every command, every flag, every variable of the environment.

use super::{Flag, Usage, Value, Variables, Word};

/// The program in one line.
pub const TITLE: &str = "tscript: Rhai with tensors";

/// How it is called without a command.
pub const CALLS: &[(&str, &str)] = &[
    ("tscript [flags]", "the REPL; `:help` there shows more"),
    ("tscript [flags] FILE [args]", "runs a script, as `run FILE -- args` does"),
    ("tscript [flags] -e CODE [args]", "runs a text"),
    ("tscript COMMAND ...", ""),
];

pub const EXIT_STATUS: &str = "0 done, 1 the script failed, 2 wrong usage, 3 a device was lost; `exit(n)` of a script leaves \
    with n";

/// Flags that stand alone.
pub const ALONE: &[Flag] = &[
    Flag { name: "help", value: None, text: "what the program takes, after a command what that takes; also `-h`" },
    Flag {
        name: "version",
        value: None,
        text: "version, commit, features, vector instructions and target; `-V` for the version alone",
    },
];

/// Topics of `tscript help` besides the commands.
pub const TOPICS: &[&str] = &["environment"];

/// Flags of what runs scripts.
const RUNNING: &[Flag] = &[
    Flag {
        name: "device",
        value: value("D", Word::OneOf(&["cpu", "cuda", "cuda:0", "cuda:1"])),
        text: "where tensors are made unless the script says otherwise; `cpu` is the default",
    },
    Flag { name: "seed", value: value("N", Word::Free), text: "seed of the random numbers; 0 unless given" },
    Flag { name: "blocking", value: None, text: "runs each operation to its end before the next" },
    Flag {
        name: "check",
        value: None,
        text: "stops at the first operation that makes NaN or infinity out of finite inputs",
    },
    Flag {
        name: "races",
        value: value("MODE", Word::OneOf(&["warn", "error", "off"])),
        text: "`warn`, `error` or `off`: accesses that nothing orders; with the CPU alone there are none",
    },
];

const PROFILE: &[Flag] = &[Flag {
    name: "profile",
    value: Some(Value { shown: "TRACE.json", word: Word::File, optional: true }),
    text: "ends with the slowest lines and those that made the script wait; writes a trace that Perfetto and \
           chrome://tracing open",
}];

const SIMULATION: &[Flag] = &[
    SIMULATE_GPUS,
    SIMULATE_MEMORY,
    Flag {
        name: "simulate-seed",
        value: value("N", Word::Free),
        text: "virtual time, with an order of completion drawn from the seed",
    },
    Flag {
        name: "simulate-fault",
        value: value("FAULT", Word::Free),
        text: "what goes wrong there, may be given several times: `alloc:3@cuda:1` (the third request for memory \
               fails), `launch:20@cuda:0` (the 20th launch fails), `lost:50@cuda:1` (the device is lost at the 50th \
               launch)",
    },
];

/// Flags of what installs a kernel.
const KERNELS: &[Flag] = &[
    Flag { name: "user", value: None, text: "in the user's folder, which it is unless given" },
    Flag { name: "sys-prefix", value: None, text: "in the active Python environment" },
    Flag { name: "prefix", value: value("DIR", Word::Folder), text: "in `DIR/share/jupyter`" },
    Flag {
        name: "name",
        value: value("NAME", Word::Free),
        text: "the kernel's name for programs; `tscript` unless given",
    },
    Flag {
        name: "display-name",
        value: value("TEXT", Word::Free),
        text: "its name for people; that for programs unless given",
    },
];

const SIMULATE_GPUS: Flag = Flag {
    name: "simulate-gpus",
    value: value("N", Word::Free),
    text: "gives cuda:0 to cuda:(N-1) on a machine with none",
};

const SIMULATE_MEMORY: Flag = Flag {
    name: "simulate-memory",
    value: value("SIZE", Word::Free),
    text: "memory of each of them, such as `16GiB`, which it is unless given",
};

const fn value(shown: &'static str, word: Word) -> Option<Value> {
    Some(Value { shown, word, optional: false })
}

/// A command with nothing but its name.
const PLAIN: Usage = Usage {
    name: "",
    short: "",
    words: "",
    operand: None,
    summary: "",
    about: &[],
    flags: &[],
    lists_flags: true,
    notes: &[],
};

/// Flags without a command: the REPL's.
pub const REPL: Usage = Usage { flags: &[RUNNING, SIMULATION], operand: Some(Word::Script), ..PLAIN };

pub const COMMANDS: &[Usage] = &[
    Usage {
        name: "run",
        short: "FILE [flags] [-- args]",
        words: "FILE [flags] [-- args]",
        operand: Some(Word::Script),
        summary: "runs a script",
        flags: &[RUNNING, PROFILE, SIMULATION],
        notes: &[
            "FILE may be `-`, the standard input. What stands after `--` is the script's: `args`, `arg(\"lr\", 1e-3)`, \
             `flag(\"verbose\")`. `tscript run FILE -- --help` lists what a script asks for.",
            "TSCRIPT_LAUNCH_BLOCKING=1 does what `--blocking` does, TSCRIPT_SIMULATE_GPUS=N what `--simulate-gpus N` does, \
             CUDA_VISIBLE_DEVICES hides devices, simulated ones too. TSCRIPT_SIMD=avx512, avx2 or portable chooses the \
             vector instructions of the CPU's kernels, the machine's best unless given. Ctrl-C stops the script and shows \
             where it was.",
        ],
        ..PLAIN
    },
    Usage {
        name: "check",
        short: "PATH ...",
        words: "PATH ... [flags]",
        operand: Some(Word::Path),
        summary: "reads scripts and reports what is wrong without running",
        about: &[
            "Reads scripts without running them and reports what is wrong: names that stand for nothing, calls with \
             values or keywords that would be refused, shapes that do not fit, as far as the text alone tells. Warnings \
             are of what is odd: variables and values that nobody uses, statements that are never reached. A PATH is a \
             script, a folder, which stands for all its `*.rhai` files, or `-`, the standard input.",
        ],
        flags: &[&[
            Flag {
                name: "message-format",
                value: value("FORMAT", Word::OneOf(&["human", "short", "json"])),
                text: "`human` (the default, on the error output); on the standard output `short`, a line \
                       `file:line:column: error[E0101]: message` for each finding, or `json`, an object",
            },
            Flag { name: "deny-warnings", value: None, text: "a warning fails, too" },
        ]],
        notes: &["The exit status is 1 where there is an error."],
        ..PLAIN
    },
    Usage {
        name: "fmt",
        short: "PATH ...",
        words: "PATH ... [flags]",
        operand: Some(Word::Path),
        summary: "writes scripts in the one style",
        about: &[
            "Writes scripts in the one style: lines, blanks and the commas at the ends of lines; nothing else of a script \
             changes, and formatting twice is formatting once. A PATH is a script, a folder, which stands for all its \
             `*.rhai` files, or `-`, which formats the standard input to the standard output. A script with a mistake that \
             the parser finds is told and left alone. A file is written whole or not at all, and only where something \
             changes.",
        ],
        flags: &[&[
            Flag { name: "check", value: None, text: "writes nothing and names the scripts that would change" },
            Flag { name: "diff", value: None, text: "writes nothing and shows what would change" },
            Flag {
                name: "width",
                value: value("N", Word::Free),
                text: "characters of a line, where that is possible; 100 unless given",
            },
        ]],
        notes: &[
            "The exit status is 1 where there is an error, and with `--check` or `--diff` where a script would change.",
        ],
        ..PLAIN
    },
    Usage {
        name: "test",
        short: "[DIR]",
        words: "[DIR] [flags]",
        operand: Some(Word::Path),
        summary: "runs every function `test_*` of the `*_test.rhai` files",
        about: &[
            "Looks through DIR (the current folder unless given) for files named `*_test.rhai`. Each function without \
             parameters whose name starts with `test_` runs in a fresh session, after the file's own statements. It \
             fails when it raises an error or leaves by `exit`. DIR may also be one such file. Where there is no test, the \
             status is 1, too.",
            "The flags are those of `tscript run` but for `--profile`.",
        ],
        flags: &[RUNNING, SIMULATION],
        lists_flags: false,
        ..PLAIN
    },
    Usage {
        name: "explain",
        short: "[CODE]",
        words: "[CODE]",
        operand: Some(Word::Code),
        summary: "the long form of an error, such as E0201",
        about: &[
            "Tells what an error such as E0201 means, shows a script that gets it, and what to do about it. Without a \
             code, lists all of them.",
        ],
        ..PLAIN
    },
    Usage {
        name: "devices",
        short: "",
        words: "[flags]",
        summary: "what scripts can compute on",
        about: &[
            "Shows processor, memory and vector instructions, what was found of CUDA, and which GPUs are simulated.",
        ],
        flags: &[&[SIMULATE_GPUS, SIMULATE_MEMORY]],
        ..PLAIN
    },
    Usage {
        name: "doctor",
        short: "",
        words: "[--json]",
        summary: "what is found of drivers, libraries, terminal, editors, Jupyter and folders, and what to do",
        about: &[
            "Looks at what the program could use on this machine: vector instructions, memory, NVIDIA's driver and \
             libraries, the folders of compiled kernels and of the REPL's history, the terminal, editors with their \
             settings for tscript, and kernels for Jupyter. Of what is missing it tells what that costs and how it is got. It changes nothing.",
        ],
        flags: &[&[Flag { name: "json", value: None, text: "an object for other programs" }]],
        notes: &[
            "The exit status is 1 where something is there and broken, such as a folder that cannot be written. What \
             is merely missing is no failure.",
        ],
        ..PLAIN
    },
    Usage {
        name: "new",
        short: "NAME",
        words: "NAME",
        operand: Some(Word::Folder),
        summary: "makes a project: a folder with a script, a test and settings of editors",
        about: &[
            "Makes the folder NAME with a script that trains a small model, the model in a file of its own, a test of \
             it, a README, and settings for Visual Studio Code, Neovim and Helix. A folder or file that exists is refused, \
             and nothing is left behind where it fails.",
        ],
        ..PLAIN
    },
    Usage {
        name: "completions",
        short: "SHELL",
        words: "SHELL",
        operand: Some(Word::OneOf(&["bash", "zsh", "fish"])),
        summary: "completion for a shell: `bash`, `zsh` or `fish`",
        about: &[
            "Writes a text that teaches the shell to complete the program's commands, flags and files:",
            "bash: `tscript completions bash > ~/.local/share/bash-completion/completions/tscript`",
            "zsh: `tscript completions zsh > _tscript`, in a folder of `$fpath`",
            "fish: `tscript completions fish > ~/.config/fish/completions/tscript.fish`",
        ],
        ..PLAIN
    },
    Usage {
        name: "man",
        short: "",
        words: "",
        summary: "the manual page, for `man -l -`",
        about: &[
            "Writes the manual page: `tscript man | man -l -` shows it, `tscript man > ~/.local/share/man/man1/tscript.1` \
             installs it.",
        ],
        ..PLAIN
    },
    Usage {
        name: "lsp",
        short: "",
        words: "[--stdio]",
        summary: "the language server, for editors",
        about: &[
            "The language server: editors start it, and speak the Language Server Protocol with it over its standard \
             input and output. It runs no script unless one asks it to. The guide has a page on how editors are told to \
             start it.",
        ],
        flags: &[&[Flag { name: "stdio", value: None, text: "says what is so anyway; editors give it" }]],
        notes: &["The settings are `inlayHints.shapes` and `inlayHints.parameterNames`, both `true` unless given, as \
             options of the initialization or as the configuration `tscript`. Its commands are `tscript.run` and \
             `tscript.test`, which run a script or its tests as a program of their own, and `tscript.checkFolder`, which \
             checks all files."],
        ..PLAIN
    },
    Usage {
        name: "jupyter",
        short: "install|uninstall|run",
        words: "install|uninstall [flags] [-- flags of the kernel], run FILE [flags]",
        operand: Some(Word::OneOf(&["install", "uninstall", "run"])),
        summary: "a kernel for Jupyter's notebooks",
        about: &[
            "`install` tells Jupyter of the kernel: it writes a folder with `kernel.json` and logos, whole or not at all. \
             What stands after `--` are flags with which the kernel is started, such as `-- --device cuda`. `uninstall` \
             removes that folder. `run` is the kernel itself: Jupyter starts it with the FILE that says where it listens.",
        ],
        flags: &[KERNELS, RUNNING, SIMULATION],
        notes: &[
            "`install` and `uninstall` take the first five flags, `run` the others, which are those of `tscript run`. \
             JUPYTER_DATA_DIR is the user's folder of Jupyter; `--sys-prefix` reads VIRTUAL_ENV and CONDA_PREFIX.",
        ],
        ..PLAIN
    },
    Usage {
        name: "help",
        short: "[COMMAND]",
        words: "[COMMAND]",
        operand: Some(Word::Topic),
        summary: "what a command takes; `help environment` lists variables of the environment",
        ..PLAIN
    },
];

pub const ENVIRONMENT: &[Variables] = &[
    Variables {
        title: "Variables that say what flags say; a flag goes first",
        entries: &[
            ("TSCRIPT_SIMULATE_GPUS=N", "`--simulate-gpus N`"),
            ("TSCRIPT_LAUNCH_BLOCKING=1", "`--blocking`; CUDA_LAUNCH_BLOCKING=1 too"),
        ],
    },
    Variables {
        title: "Devices and kernels",
        entries: &[
            ("CUDA_VISIBLE_DEVICES=LIST", "the GPUs that scripts see, by index, in this order; empty for none"),
            ("CUDA_HOME, CUDA_PATH", "a CUDA toolkit, where its libraries are looked for"),
            ("VIRTUAL_ENV, CONDA_PREFIX", "Python environments, whose NVIDIA packages are looked through first"),
            ("TSCRIPT_SIMD=LEVEL", "vector instructions of the CPU's kernels: `avx512`, `avx2` or `portable`"),
            ("TSCRIPT_CUDA_GRAPHS=0", "repeated work on NVIDIA GPUs is launched each time, not replayed as a graph"),
        ],
    },
    Variables {
        title: "Folders and the terminal",
        entries: &[
            (
                "XDG_CACHE_HOME",
                "compiled kernels are kept in its `tscript/kernels`, and texts of the library that editors show in its \
                 `tscript/std`; `~/.cache` unless set",
            ),
            ("XDG_DATA_HOME", "the REPL's history is in its `tscript/history`; `~/.local/share` unless set"),
            ("JUPYTER_DATA_DIR", "where `jupyter install` puts the kernel; the `jupyter` of XDG_DATA_HOME unless set"),
            ("XDG_CONFIG_HOME", "where `doctor` looks for settings of editors; `~/.config` unless set"),
            ("TSCRIPT_HISTORY=FILE", "the REPL's history; empty for none"),
            (
                "TSCRIPT_GRAPHICS=KIND",
                "how `show` and `plot` draw: `kitty`, `sixel`, `full` (24-bit color), `indexed`, `plain`",
            ),
            ("NO_COLOR=1", "no color; TERM=dumb too"),
        ],
    },
];
