//! State that all native functions of a session share.

pub mod caller;
pub mod closures;
pub mod divided;
pub mod each_counted;
pub mod function_times;
pub mod limits;
pub mod lost;
pub mod methods;
pub mod stack;
pub mod uncalled;
pub mod unfilled;
pub mod writer;
use self::function_times::FunctionTimes;
use super::draw::raster::Raster;
use super::error::Error;
use super::error::Known;
use super::machine::captured;
use super::source::scope::{self, Function, Names, SCRIPT};
use super::source::{Assignment, Source, SourceKind, SourceMap};
use crate::base::diag::{Diag, Focus, Result};
use crate::base::print::PrintOptions;
use crate::base::span::{Origin, Site};
use crate::sched::runtime::Runtime;
use crate::script::manual::members;
use crate::script::source::pass::written_name;
use crate::script::source::tree::Earlier;
use crate::script::values::native_forms::LazyForms;
use crate::script::values::raise::{raise, site};
use crate::script::values::types::{Tensor, constants};
use crate::tensor::engine::Engine;
use parking_lot::{Mutex, RwLock};
use rhai::{EvalAltResult, NativeCallContext};
use std::borrow::Cow;
use std::collections::{BTreeSet, HashSet};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};

/// Where printed text goes.
pub type Output = Box<dyn Fn(&str) + Send + Sync>;

/// Where pictures of `show` and `plot` go that are not drawn as text: the picture, and the text in its place.
pub type Pictures = Box<dyn Fn(&Raster, &str) + Send + Sync>;

/// The session as native functions see it.
pub struct Host {
    pub rt: Arc<Runtime>,
    /// By global line, a bit: whether it belongs to `std/`.
    std_lines: Box<[AtomicU64]>,
    pub sources: Arc<RwLock<SourceMap>>,
    /// While a scaler of gradients takes a step: by device a number that is not 0 if the step is to be left out.
    pub found_inf: Mutex<Vec<Tensor>>,
    /// Functions of the running code, with the numbers of their parameters.
    pub written: RwLock<Vec<(String, usize)>>,
    /// Names of native functions, which never run script code.
    pub natives: RwLock<HashSet<Cow<'static, str>>>,
    /// Properties of tensors.
    pub properties: RwLock<Vec<&'static str>>,
    /// Functions of the host program.
    pub registered: RwLock<HashSet<String>>,
    /// Functions of the script with the name of a native function.
    pub own_functions: RwLock<BTreeSet<Function>>,
    /// Where a change that is lost was warned of.
    pub lost: parking_lot::Mutex<std::collections::HashSet<Site>>,
    /// What the modules are called that were made.
    pub kinds: Mutex<BTreeSet<String>>,
    /// What the texts of the session have declared so far.
    pub earlier: RwLock<Earlier>,
    /// Loaded modules, for the parameters of their closures.
    pub loaded: RwLock<Vec<rhai::Shared<rhai::Module>>>,
    /// What functions of `eval`'s texts refer to.
    pub evaluated: Mutex<Vec<Box<dyn std::any::Any + Send + Sync>>>,
    /// Modules that were loaded from texts.
    modules: AtomicU32,
    /// Ends a script that exceeds its limits or is interrupted.
    pub watch: Arc<crate::script::host::limits::Watch>,
    pub print: Printing,
    pub output: RwLock<Output>,
    /// The command line: `args`, `arg` and `flag`.
    pub arguments: Mutex<CommandLine>,
    /// The exit status of the last text, if it ended with `exit`.
    pub exit_status: Mutex<Option<u8>>,
    /// Whether something has asked where it was called, and may keep the place.
    pub placed: AtomicBool,
    /// Folders that scripts may read and write; none means everywhere.
    pub file_roots: Option<Vec<PathBuf>>,
    /// What `save` has left to be written.
    pub writer: writer::Writer,
    /// How long the script's functions ran, where that is recorded.
    pub function_times: Mutex<FunctionTimes>,
    /// Whether `progress` draws bars.
    pub shows_progress: bool,
    /// Where they are drawn, if that is not the standard error: text in which a carriage return begins the line anew.
    pub progress_output: RwLock<Option<Arc<Output>>>,
    /// The error of reading `x[i]` in `x[i] += v`, with its position: Rhai ignores it, and the setter raises it.
    pub read_error: Mutex<Option<(Site, Box<EvalAltResult>)>>,
    /// The forms of native functions; computed when a message first needs them.
    forms: Arc<LazyForms>,
    /// Calls closures outside of a native call.
    pub interpreter: crate::script::host::caller::Interpreter,
    /// An error of script code on its way through the floors below.
    thrown: Mutex<Option<Box<EvalAltResult>>>,
    /// The native functions, whose types compiled code goes over; the interpreter owns them.
    pub native_module: OnceLock<Weak<rhai::Module>>,
    /// Compiled closures of all texts.
    pub closures: closures::Closures,
    /// For methods that Rhai calls.
    pub methods: methods::Methods,
    /// Whether nothing runs after the present script: nobody sees its variables after an error.
    pub is_last_script: AtomicBool,
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
            found_inf: Mutex::default(),
            written: RwLock::default(),
            natives: RwLock::default(),
            properties: RwLock::default(),
            registered: RwLock::default(),
            own_functions: RwLock::default(),
            lost: Default::default(),
            kinds: Default::default(),
            earlier: RwLock::default(),
            loaded: RwLock::default(),
            evaluated: Mutex::default(),
            modules: AtomicU32::new(0),
            watch: Arc::new(watch),
            print: Printing::default(),
            output: RwLock::new(Box::new(|text| println!("{text}"))),
            arguments: Mutex::default(),
            exit_status: Mutex::default(),
            placed: AtomicBool::new(false),
            file_roots,
            writer: Default::default(),
            function_times: Mutex::default(),
            shows_progress,
            progress_output: RwLock::default(),
            read_error: Mutex::default(),
            forms: Arc::default(),
            interpreter: Default::default(),
            thrown: Mutex::default(),
            native_module: OnceLock::new(),
            closures: Default::default(),
            methods: Default::default(),
            is_last_script: AtomicBool::new(false),
        }
    }

    /// Names for suggestions that exist without a script.
    pub fn known(&self) -> Known {
        let natives = self.natives.read();
        let public = natives.iter().filter(|name| is_public(name));
        let mut functions: Vec<String> = public.map(|name| name.to_string()).collect();
        crate::base::order::by(&mut functions, Ord::cmp);
        let properties = self.properties.read().iter().map(|name| name.to_string()).collect();
        Known { functions, properties, ..Known::default() }
    }

    /// Names for suggestions, including those of the running script.
    pub fn known_now(&self) -> Known {
        let mut known = self.known();
        known.written = self.written.read().clone();
        known.functions.extend(known.written.iter().map(|(name, _)| name.clone()));
        known.captured = self.closures.captured(|closure| captured(closure));
        known.forms = self.forms();
        known.loaded = self.loaded.read().clone();
        known.modules.extend(crate::script::library::texts::STD.iter().map(|library| library.name.to_string()));
        known
    }

    /// The forms of all native functions.
    pub fn forms(&self) -> Arc<LazyForms> {
        self.forms.of(self.interpreter.lock().clone(), written_name);
        self.forms.clone()
    }

    /// The session's side of passing values to and from the host program.
    pub fn boundary(&self) -> Boundary {
        Boundary::new(&self.rt, &self.sources)
    }

    /// Notes which variables the next source sees, and which constants of the text around it.
    pub fn note_variables(&self, scope: &rhai::Scope, around: Vec<String>) {
        let named = |only: bool| scope.iter_raw().filter(move |(_, is_constant, _)| *is_constant || !only);
        let names = |only: bool| named(only).map(|(name, ..)| name.to_string()).collect();
        *self.earlier.write() = Earlier { variables: names(false), constants: names(true), around };
    }

    /// Registers and rewrites a script's source; a problem of its text is an error too.
    pub fn add_source(&self, kind: SourceKind, name: &str, text: &str) -> Result<Arc<Source>> {
        let (natives, own, earlier) = (self.natives.read(), self.own_functions.read(), self.earlier.read());
        let is_hidden = |constant: &&str| earlier.variables.iter().any(|name| name == constant);
        let constants: Vec<&str> = constants().filter(|constant| !is_hidden(constant)).collect();
        let is_taken = |name: &str| natives.contains(name) || members::is_member(name);
        self.register(
            kind,
            name,
            text,
            Names {
                suffix: SCRIPT,
                all: false,
                is_taken: &is_taken,
                elsewhere: &own,
                constants: &constants,
                earlier: &earlier,
            },
        )
    }

    /// Registers and rewrites the files of a module, whose functions see only each other.
    pub fn add_module(&self, kind: SourceKind, key: &str, files: &[(String, String)]) -> Result<Vec<Arc<Source>>> {
        let suffix = match key.strip_prefix("std:") {
            Some(name) => scope::suffix(&format!("_{name}")),
            None => scope::suffix(&(self.modules.fetch_add(1, Ordering::Relaxed) + 1).to_string()),
        };
        let elsewhere = files.iter().flat_map(|(_, text)| scope::definitions(text)).collect();
        let constants: Vec<&str> = constants().collect();
        let names = Names {
            suffix: &suffix,
            all: true,
            is_taken: &|_| true,
            elsewhere: &elsewhere,
            constants: &constants,
            earlier: &Earlier::NONE,
        };
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
            uncalled::warn(self, &added.source);
            divided::warn(self, &added.source);
            unfilled::warn(self, &added.source);
        }
        if kind == SourceKind::Std {
            let first = added.source.base + 1;
            for line in first..first + added.source.line_count() {
                self.std_lines[line as usize / 64].fetch_or(1 << (line % 64), Ordering::Relaxed);
            }
        }
        Ok(added.source)
    }

    /// Runs a text; its lines are given back if nothing can refer to them behind the run.
    pub fn passing<T, E>(
        &self,
        source: &Arc<Source>,
        run: impl FnOnce() -> std::result::Result<T, E>,
    ) -> std::result::Result<T, E> {
        let before = self.placed.swap(false, Ordering::Relaxed);
        let result = run();
        let placed = self.placed.fetch_or(before, Ordering::Relaxed);
        // Two holders: the map, and who runs it. A text that runs twice at the same time has more.
        let is_held = Arc::strong_count(source) > 2 || self.rt.profile_now().is_some();
        if result.is_ok() && !placed && !is_held && source.is_passing() {
            self.sources.write().release(source);
        }
        result
    }

    fn is_std(&self, line: u16) -> bool {
        self.std_lines[line as usize / 64].load(Ordering::Relaxed) & (1 << (line % 64)) != 0
    }

    /// The position of a native call for messages: the user's line, also if `std/` makes the call.
    pub fn origin(&self, context: &NativeCallContext) -> Origin {
        self.origin_at(site(context))
    }

    pub fn origin_at(&self, site: Site) -> Origin {
        self.placed.store(true, Ordering::Relaxed);
        if self.is_std(site.line()) {
            let user = self.rt.calls.place();
            return if user.is_none() { Origin::at(site) } else { Origin { user, inner: site } };
        }
        Origin::at(site)
    }

    /// How the text assigns to the indexer or property whose setter is called; `None` if Rhai only passes a value
    /// back that a method or a nested assignment may have changed, as after `x[i].add_(1)`.
    pub fn assignment(&self, context: &NativeCallContext) -> Option<Assignment> {
        self.sources.read().assignment(site(context))
    }

    /// Whether the text calls a native as a method; Rhai does not provide this.
    pub fn is_method(&self, context: &NativeCallContext) -> bool {
        self.sources.read().is_method(site(context))
    }

    pub fn engine(&self, context: &NativeCallContext) -> Engine {
        let origin = self.begin(context);
        Engine::new(self.rt.clone(), origin)
    }

    /// A native call that may queue work begins.
    pub fn begin(&self, context: &NativeCallContext) -> Origin {
        let origin = self.origin(context);
        // A native call has its own level, one above the code that calls it.
        self.rt.calls.native(context.call_level().saturating_sub(1));
        self.rt.note_call(origin);
        origin
    }

    /// Calls `work` for a native call; an error without a position gets the call's.
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
        if let Some(error) = self.thrown(&diag) {
            return error;
        }
        let here = self.origin(context);
        let mut diag = diag.or_at(here, if text.is_empty() { "here" } else { text });
        // Reported here if it was raised by work that was queued, since it has no other reader.
        let told_there = diag.labels.iter().any(|label| label.origin == here);
        if diag.is_late && !told_there {
            diag = diag.label(here, Focus::Call, "noticed here, when its result was needed");
        }
        // A row leaves a position open if the call itself is meant.
        for label in &mut diag.labels {
            if label.origin == Origin::NONE {
                label.origin = here;
            }
        }
        raise(diag, context.call_position())
    }
}

/// A name that users may write: those that begin with `_` are the library's own.
fn is_public(name: &str) -> bool {
    !name.starts_with('_') && name.chars().all(|c| c.is_alphanumeric() || c == '_')
}

/// The session that runs on this thread.
pub struct Entered {
    host: Arc<Host>,
}

impl Host {
    /// The session starts to run code on this thread.
    pub fn enter(host: &Arc<Host>) -> Entered {
        host.watch.enter();
        Entered { host: host.clone() }
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        if self.host.watch.stop.is_due() {
            // Recorded work is dropped now: the next run would have to wait for it.
            self.host.rt.drop_recorded();
        }
        self.host.watch.leave();
    }
}

/// The session's side of passing values.
#[derive(Clone)]
pub struct Boundary {
    pub rt: Arc<Runtime>,
    sources: Arc<RwLock<SourceMap>>,
}

impl Boundary {
    pub fn new(rt: &Arc<Runtime>, sources: &Arc<RwLock<SourceMap>>) -> Boundary {
        Boundary { rt: rt.clone(), sources: sources.clone() }
    }

    /// A session's error, with the texts that it refers to.
    #[cold]
    pub fn error(&self, diag: Box<Diag>) -> Error {
        Error::new(diag, &self.sources.read())
    }
}

/// How tensors are printed, and where text goes.
#[derive(Default)]
pub struct Printing {
    pub options: Mutex<PrintOptions>,
    /// The terminal that `show` and `plot` draw for.
    pub terminal: Mutex<super::draw::terminal::Terminal>,
    /// What takes their pictures in place of a terminal.
    pub pictures: RwLock<Option<Pictures>>,
}

/// The words after `--`, and the arguments that the script read.
#[derive(Default)]
pub struct CommandLine {
    pub words: Vec<String>,
    /// Name, default as text (none for a flag): what `-- --help` lists.
    pub asked: Vec<(String, Option<String>)>,
}

impl CommandLine {
    /// The value of `--name value` or `--name=value`; the last one counts.
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
