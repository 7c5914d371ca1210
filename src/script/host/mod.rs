//! What every native function of a session shares.

pub mod caller;
pub mod limits;
pub mod stack;
pub mod uncalled;
use super::error::Error;
use super::error::Known;
use super::source::scope::{self, Function, Names, SCRIPT};
use super::source::{Assignment, Source, SourceKind, SourceMap};
use crate::base::diag::{Diag, Focus, Result};
use crate::base::print::PrintOptions;
use crate::base::span::{Origin, Site};
use crate::sched::runtime::Runtime;
use crate::script::manual::members;
use crate::script::values::forms::Listed;
use crate::script::values::raise::{raise, site};
use crate::script::values::types::constants;
use crate::tensor::engine::Engine;
use parking_lot::{Mutex, RwLock};
use rhai::{EvalAltResult, NativeCallContext};
use std::collections::{BTreeSet, HashSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Where printed text goes.
pub type Output = Box<dyn Fn(&str) + Send + Sync>;

/// The session as native functions see it.
pub struct Host {
    pub rt: Arc<Runtime>,
    /// One bit for each global line: does it belong to `std/`?
    std_lines: Box<[AtomicU64]>,
    pub sources: Arc<RwLock<SourceMap>>,
    /// Names for suggestions: what there is without a script.
    pub known: RwLock<Known>,
    /// Functions of what runs, with the numbers of their arguments.
    pub written: RwLock<Vec<(String, usize)>>,
    /// Names of native functions: what never runs script code.
    pub natives: RwLock<HashSet<String>>,
    /// Functions of the script's own that natives share their names with.
    pub own_functions: RwLock<BTreeSet<Function>>,
    /// Constants of the language that no variable of the script hides.
    constants: RwLock<Vec<&'static str>>,
    /// Modules that are loaded, for what their closures take.
    pub loaded: RwLock<Vec<rhai::Shared<rhai::Module>>>,
    /// Modules that were loaded from texts.
    modules: AtomicU32,
    /// What ends a script that goes too far, or that somebody stops.
    pub watch: Arc<crate::script::host::limits::Watch>,
    pub print: Printing,
    pub output: RwLock<Output>,
    /// What a script may ask for with `args`, `arg` and `flag`.
    pub arguments: Mutex<CommandLine>,
    /// The status of an `exit` that ended the text that ran last.
    pub left_with: Mutex<Option<u8>>,
    /// Folders that scripts may read and write; none means everywhere.
    pub file_roots: Option<Vec<PathBuf>>,
    /// Whether `progress` draws bars.
    pub shows_progress: bool,
    /// What `x[i]` raised in `x[i] += v`, at its place: Rhai goes on without it, and the setter raises it.
    pub unread: Mutex<Option<(Site, Box<EvalAltResult>)>>,
    /// What native functions take; nobody asks before something is wrong.
    forms: Arc<Listed>,
    /// For closures that are called outside of a native call.
    pub interpreter: crate::script::host::caller::Interpreter,
}

impl Host {
    pub fn new(
        rt: Arc<Runtime>,
        file_roots: Option<Vec<PathBuf>>,
        watch: crate::script::host::limits::Watch,
        shows_progress: bool,
    ) -> Host {
        Host {
            rt,
            std_lines: (0..1024).map(|_| AtomicU64::new(0)).collect(),
            sources: Arc::default(),
            known: RwLock::default(),
            written: RwLock::default(),
            natives: RwLock::default(),
            own_functions: RwLock::default(),
            constants: RwLock::new(constants().collect()),
            loaded: RwLock::default(),
            modules: AtomicU32::new(0),
            watch: Arc::new(watch),
            print: Printing::default(),
            output: RwLock::new(Box::new(|text| println!("{text}"))),
            arguments: Mutex::default(),
            left_with: Mutex::default(),
            file_roots,
            shows_progress,
            unread: Mutex::default(),
            forms: Arc::default(),
            interpreter: Default::default(),
        }
    }

    /// Names for suggestions, those of the script that runs among them.
    pub fn known_now(&self) -> Known {
        let mut known = self.known.read().clone();
        known.written = self.written.read().clone();
        known.functions.extend(known.written.iter().map(|(name, _)| name.clone()));
        known.forms = self.forms();
        known.loaded = self.loaded.read().clone();
        known.modules.extend(crate::script::library::texts::STD.iter().map(|(name, _)| name.to_string()));
        known
    }

    /// The forms of all native functions.
    pub fn forms(&self) -> Arc<Listed> {
        self.forms.of(self.interpreter.lock().clone());
        self.forms.clone()
    }

    /// Where values pass between the program and this session.
    pub fn shore(&self) -> Shore {
        Shore::new(&self.rt, &self.sources)
    }

    /// Notes which variables the next source sees.
    pub fn note_variables(&self, scope: &rhai::Scope) {
        *self.constants.write() = constants().filter(|name| !scope.contains(name)).collect();
    }

    /// Registers and rewrites a script's source; its own problem is an error too.
    pub fn add_source(&self, kind: SourceKind, name: &str, text: &str) -> Result<Arc<Source>> {
        let (natives, own, constants) = (self.natives.read(), self.own_functions.read(), self.constants.read());
        let is_taken = |name: &str| natives.contains(name) || members::is_member(name);
        self.register(
            kind,
            name,
            text,
            Names { suffix: SCRIPT, all: false, is_taken: &is_taken, elsewhere: &own, constants: &constants },
        )
    }

    /// Registers and rewrites the files of a module, whose functions see each other and nobody else's.
    pub fn add_module(&self, kind: SourceKind, key: &str, files: &[(String, String)]) -> Result<Vec<Arc<Source>>> {
        let suffix = match key.strip_prefix("std:") {
            Some(name) => scope::suffix(&format!("_{name}")),
            None => scope::suffix(&(self.modules.fetch_add(1, Ordering::Relaxed) + 1).to_string()),
        };
        let elsewhere = files.iter().flat_map(|(_, text)| scope::definitions(text)).collect();
        let constants: Vec<&str> = constants().collect();
        let names =
            Names { suffix: &suffix, all: true, is_taken: &|_| true, elsewhere: &elsewhere, constants: &constants };
        files.iter().map(|(name, text)| self.register(kind, name, text, names)).collect()
    }

    fn register(&self, kind: SourceKind, name: &str, text: &str, names: Names) -> Result<Arc<Source>> {
        let added = {
            let natives = self.natives.read();
            self.sources.write().add(kind, name, text, &|name| natives.contains(name), names)?
        };
        if let Some(problem) = added.problem {
            return Err(problem);
        }
        if kind != SourceKind::Std {
            crate::script::host::uncalled::warn(self, &added.source);
        }
        if kind == SourceKind::Std {
            let first = added.source.base + 1;
            for line in first..first + added.source.line_count() {
                self.std_lines[line as usize / 64].fetch_or(1 << (line % 64), Ordering::Relaxed);
            }
        }
        Ok(added.source)
    }

    fn is_std(&self, line: u16) -> bool {
        self.std_lines[line as usize / 64].load(Ordering::Relaxed) & (1 << (line % 64)) != 0
    }

    /// The place that a native call stands for: the user's line, also when `std/` makes the call.
    pub fn origin(&self, context: &NativeCallContext) -> Origin {
        self.origin_at(site(context))
    }

    pub fn origin_at(&self, site: Site) -> Origin {
        if self.is_std(site.line()) {
            let user = self.rt.calls.place();
            return if user.is_none() { Origin::at(site) } else { Origin { user, inner: site } };
        }
        Origin::at(site)
    }

    /// How the text assigns to the indexer or property whose setter is called; `None` where Rhai only hands back a
    /// value that a method or an assignment further on may have changed, as after `x[i].add_(1)`.
    pub fn assignment(&self, context: &NativeCallContext) -> Option<Assignment> {
        self.sources.read().assignment(site(context))
    }

    /// Whether the text calls a native as a method, which Rhai does not tell.
    pub fn is_method(&self, context: &NativeCallContext) -> bool {
        self.sources.read().is_method(site(context))
    }

    pub fn engine(&self, context: &NativeCallContext) -> Engine {
        let origin = self.begin(context);
        Engine::new(self.rt.clone(), origin)
    }

    /// A native call that may queue something begins.
    pub fn begin(&self, context: &NativeCallContext) -> Origin {
        let origin = self.origin(context);
        // A native call has a level of its own, one above the code that makes it.
        self.rt.calls.native(context.call_level().saturating_sub(1));
        self.rt.note_call(origin);
        origin
    }

    /// Runs `work` for a native call; an error that has no place yet gets the call's.
    pub fn call<R>(
        &self,
        context: &NativeCallContext,
        work: impl FnOnce(&mut Engine) -> Result<R>,
    ) -> std::result::Result<R, Box<EvalAltResult>> {
        let mut engine = self.engine(context);
        work(&mut engine).map_err(|diag| self.raise(context, diag, ""))
    }

    #[cold]
    pub fn raise(&self, context: &NativeCallContext, diag: Box<Diag>, text: &str) -> Box<EvalAltResult> {
        let here = self.origin(context);
        let mut diag = diag.or_at(here, if text.is_empty() { "here" } else { text });
        // Told where it was queued: nobody else noticed it.
        let told_there = diag.labels.iter().any(|label| label.origin == here);
        if diag.is_late && !told_there {
            diag = diag.label(here, Focus::Call, "noticed here, when its result was needed");
        }
        // A row leaves a place open when only the call is meant.
        for label in &mut diag.labels {
            if label.origin == Origin::NONE {
                label.origin = here;
            }
        }
        raise(diag, context.call_position())
    }
}

/// The session at work on this thread.
pub struct Entered {
    host: Arc<Host>,
}

impl Host {
    /// The session begins to run something on this thread.
    pub fn enter(host: &Arc<Host>) -> Entered {
        host.watch.enter();
        Entered { host: host.clone() }
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        if self.host.watch.stop.is_due() {
            // What was put off is left out now: the next run would have to wait for it.
            self.host.rt.leave_out();
        }
        self.host.watch.leave();
    }
}

/// The session's side of a passage.
#[derive(Clone)]
pub struct Shore {
    pub rt: Arc<Runtime>,
    sources: Arc<RwLock<SourceMap>>,
}

impl Shore {
    pub fn new(rt: &Arc<Runtime>, sources: &Arc<RwLock<SourceMap>>) -> Shore {
        Shore { rt: rt.clone(), sources: sources.clone() }
    }

    /// An error of the session's, with the texts that it points into.
    #[cold]
    pub fn error(&self, diag: Box<Diag>) -> Error {
        Error::new(diag, &self.sources.read())
    }
}

/// How tensors are printed, and where text goes.
#[derive(Default)]
pub struct Printing {
    pub options: Mutex<PrintOptions>,
    /// What `show` and `plot` draw for.
    pub terminal: Mutex<super::draw::terminal::Terminal>,
}

/// The words after `--`, and what the script asked for.
#[derive(Default)]
pub struct CommandLine {
    pub words: Vec<String>,
    /// Name, default as text (none for a flag): what `-- --help` lists.
    pub asked: Vec<(String, Option<String>)>,
}

impl CommandLine {
    /// The value of `--name value` or `--name=value`; of several the last, as command lines have it.
    pub fn value(&self, name: &str) -> Option<String> {
        let long = format!("--{name}");
        let (mut words, mut found) = (self.words.iter(), None);
        while let Some(word) = words.next() {
            if *word == long {
                found = Some(words.next().cloned().unwrap_or_default());
            } else if let Some(value) = word.strip_prefix(&long).and_then(|rest| rest.strip_prefix('=')) {
                found = Some(value.to_string());
            }
        }
        found
    }

    pub fn note(&mut self, name: &str, default: Option<String>) {
        if !self.asked.iter().any(|(known, _)| known == name) {
            self.asked.push((name.to_string(), default));
        }
    }
}
