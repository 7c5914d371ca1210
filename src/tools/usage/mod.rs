//! What the command line takes, in one table: the parser's lists of names, the texts of `--help`, completions of shells and
//! the man page are all made from it.

pub mod completions;
pub mod help;
pub mod man;
pub mod table;

/// What a word of the command line may be: what shells complete.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Word {
    /// A script: a file `*.rhai`.
    Script,
    /// A script or a folder.
    Path,
    Folder,
    File,
    OneOf(&'static [&'static str]),
    /// An error code.
    Code,
    /// A command, or another topic of `tscript help`.
    Topic,
    /// Anything else.
    Free,
}

/// A flag `--name`.
#[derive(Debug)]
pub struct Flag {
    pub name: &'static str,
    pub value: Option<Value>,
    /// What it does; a line that is too long for the terminal's width is broken where it is shown.
    pub text: &'static str,
}

/// What follows a flag.
#[derive(Debug)]
pub struct Value {
    /// As help shows it.
    pub shown: &'static str,
    pub word: Word,
    /// The flag may stand without it; a value is then attached, `--profile=FILE`.
    pub optional: bool,
}

/// A command of the program.
#[derive(Debug)]
pub struct Usage {
    pub name: &'static str,
    /// What follows the name in the program's help.
    pub short: &'static str,
    /// What follows the name in its own help.
    pub words: &'static str,
    /// What its arguments are.
    pub operand: Option<Word>,
    /// One line.
    pub summary: &'static str,
    /// Paragraphs before the flags.
    pub about: &'static [&'static str],
    /// Groups of flags.
    pub flags: &'static [&'static [Flag]],
    /// Whether its help lists the flags, or says in words which they are.
    pub lists_flags: bool,
    /// Paragraphs after the flags.
    pub notes: &'static [&'static str],
}

impl Usage {
    pub fn all_flags(&self) -> impl Iterator<Item = &'static Flag> + Clone + use<> {
        self.flags.iter().copied().flatten()
    }

    /// Names of the flags, `help` among them.
    pub fn flag_names(&self) -> impl Iterator<Item = &'static str> + Clone + use<> {
        self.all_flags().map(|flag| flag.name).chain(["help"])
    }
}

/// A titled list of the variables of the environment.
pub struct Variables {
    pub title: &'static str,
    /// Name with value, and what it is.
    pub entries: &'static [(&'static str, &'static str)],
}

/// The entry of a command that there is.
pub const fn named(name: &str) -> &'static Usage {
    let mut at = 0;
    while !same(table::COMMANDS[at].name, name) {
        at += 1;
    }
    &table::COMMANDS[at]
}

const fn same(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut at = 0;
    while at < a.len() && at < b.len() && a[at] == b[at] {
        at += 1;
    }
    at == a.len() && at == b.len()
}

/// The entry of a command.
pub fn of(name: &str) -> Option<&'static Usage> {
    table::COMMANDS.iter().find(|usage| usage.name == name)
}
