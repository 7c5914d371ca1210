//! The handle of a host program: runs source texts and returns values.

use crate::base::code;
use crate::base::diag::Diag;
pub use crate::device::planned_fault::PlannedFault;
use crate::device::stop::Stop;
pub use crate::sched::options::Races;
use crate::script::embed::passing::{Arguments, FromScript, IntoScript};
use crate::script::error;
use crate::script::error::{Context, Error};
use crate::script::host::Host;
use crate::script::language::show;
use crate::script::session::builder::Builder;
use crate::script::session::calls::Calls;
use crate::script::session::compiled::compiled;
use crate::script::session::end::{End, take_apart};
use crate::script::session::leave::exit_as_value;
use crate::script::session::modules::Modules;
use crate::script::session::persistent::Persistent;
use crate::script::source::scope::{SCRIPT, written};
use crate::script::source::{Source, SourceKind};
use parking_lot::Mutex;
use rhai::{AST, Dynamic, Engine, EvalAltResult, Scope};
use smallvec::SmallVec;
use std::cell::LazyCell;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A script session: interpreter, runtime, variables. The only handle that a host program needs.
///
/// It is `Send`, not `Sync`: it may move between threads, and one thread uses it at a time. Sessions are independent
/// of each other; they share the CPU's thread pool and the driver's state.
///
/// ```
/// use tscript::{Session, Tensor};
///
/// let mut session = Session::builder().build()?;
/// session.set("scale", 2.0)?;
/// session.run_str("model", "const BIAS = 1; fn predict(x) { x * 10 + global::BIAS } let last = predict(scale);")?;
/// assert_eq!(session.get::<f64>("last")?, 21.0);
///
/// let x = Tensor::from_slice(&[1i64, 2], &[2])?;
/// let y: Tensor = session.call("predict", (x,))?;
/// assert_eq!(y.to_vec::<i64>()?, [11, 21]);
/// # Ok::<(), tscript::Error>(())
/// ```
///
/// A session per thread, for requests from several:
///
/// ```
/// use tscript::{Session, Tensor};
///
/// let sums: Vec<f32> = std::thread::scope(|scope| {
///     let work = |seed: u64| -> Result<f32, tscript::Error> {
///         let mut session = Session::builder().seed(seed).build()?;
///         session.run_str("model", "fn answer(n) { (ones([n]) * 2).sum() }")?;
///         session.call("answer", (10 + seed,))
///     };
///     let threads: Vec<_> = (0..2).map(|seed| scope.spawn(move || work(seed))).collect();
///     threads.into_iter().map(|thread| thread.join().unwrap().unwrap()).collect()
/// });
/// assert_eq!(sums, [20.0, 22.0]);
/// ```
pub struct Session {
    pub(in crate::script) engine: Arc<Engine>,
    pub(in crate::script) host: Arc<Host>,
    pub(in crate::script) modules: Arc<Mutex<Modules>>,
    pub(in crate::script) scope: Scope<'static>,
    /// Functions of every text that ran, for `call`.
    pub(in crate::script) functions: AST,
    /// The same, compiled, after the first text has run.
    callable: Option<AST>,
    /// Imports and constants of every text that ran.
    pub(in crate::script) persistent: Persistent,
    /// How errors name an entry, by its number.
    pub(in crate::script) entry_name: fn(u32) -> String,
    calls: Calls,
    /// Last field: the values of scripts are dropped before it.
    _end: End,
    /// Makes the session `!Sync`.
    _one_thread: std::marker::PhantomData<std::cell::Cell<()>>,
}

impl Drop for Session {
    fn drop(&mut self) {
        take_apart(&mut self.scope);
    }
}

/// Stops the running script of a session from another thread.
///
/// ```
/// use std::time::Duration;
/// use tscript::Session;
///
/// let mut session = Session::builder().build()?;
/// let handle = session.interrupt_handle();
/// std::thread::spawn(move || {
///     std::thread::sleep(Duration::from_millis(50));
///     handle.interrupt();
/// });
/// assert_eq!(session.run_str("endless", "loop { }").unwrap_err().code(), "E0803");
/// # Ok::<(), tscript::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct InterruptHandle(Arc<Stop>);

impl InterruptHandle {
    /// The script that is running ends with E0803 at its next step, or while it waits for a device. Has no effect
    /// between two runs.
    pub fn interrupt(&self) {
        self.0.request();
    }
}

impl Session {
    /// Settings for a new session.
    pub fn builder() -> Builder {
        Builder::default()
    }

    pub(in crate::script) fn new(
        engine: Arc<Engine>,
        host: Arc<Host>,
        modules: Arc<Mutex<Modules>>,
        persistent: Persistent,
    ) -> Session {
        Session {
            engine,
            _end: End(host.clone()),
            host,
            modules,
            scope: Scope::new(),
            functions: AST::empty(),
            callable: None,
            persistent,
            entry_name: |number| format!("repl:{number}"),
            calls: Calls::default(),
            _one_thread: std::marker::PhantomData,
        }
    }

    /// Changes the interpreter itself, between scripts.
    #[cfg(test)]
    pub(in crate::script) fn change_engine(&mut self, change: impl FnOnce(&mut Engine)) {
        *self.host.interpreter.lock() = Default::default();
        Arc::get_mut(&mut self.engine).map(change);
        *self.host.interpreter.lock() = Arc::downgrade(&self.engine);
    }

    /// Runs a file to its end, then waits for what it queued. The program itself reads this file, whatever files
    /// scripts may use; modules are searched in its folder where scripts may use that folder
    /// ([`file_roots`](Builder::file_roots), [`all_files`](Builder::all_files)).
    ///
    /// # Errors
    /// E0601 for a file that cannot be read, and what the script raises.
    ///
    /// ```
    /// use tscript::Session;
    ///
    /// let path = std::env::temp_dir().join(format!("tscript-example-{}.rhai", std::process::id()));
    /// std::fs::write(&path, "let x = 1 + 1;").expect("a file");
    /// let mut session = Session::builder().build()?;
    /// session.run_file(&path)?;
    /// assert_eq!(session.get::<i64>("x")?, 2);
    /// # std::fs::remove_file(&path).expect("a file");
    /// # Ok::<(), tscript::Error>(())
    /// ```
    pub fn run_file(&mut self, path: impl AsRef<Path>) -> Result<(), Error> {
        let path = path.as_ref();
        let text = self.read_source(path)?;
        self.run_source(path, &text)
    }

    /// Runs the text of a file that was read already, as [`run_file`](Session::run_file) does.
    #[doc(hidden)]
    pub fn run_source(&mut self, path: &Path, text: &str) -> Result<(), Error> {
        self.imports_beside(path);
        self.run(SourceKind::File, &path.display().to_string(), text).map(drop)
    }

    /// Modules are searched beside a file, where scripts may use that folder.
    pub(in crate::script) fn imports_beside(&mut self, path: &Path) {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        self.imports_from(folder);
    }

    /// Modules are searched in a folder first, where scripts may use it.
    pub(in crate::script) fn imports_from(&mut self, folder: &Path) {
        if crate::script::tensor_api::storage::permitted(&self.host, &folder.join("."), false).is_ok() {
            let mut modules = self.modules.lock();
            modules.roots.retain(|root| root != folder);
            modules.roots.insert(0, folder.to_path_buf());
        }
    }

    /// Promises that nothing runs after the next script: only the library functions that it can reach are compiled.
    #[doc(hidden)]
    pub fn runs_one_script(&mut self) {
        self.modules.lock().one_script = true;
        self.host.is_last_script.store(true, Ordering::Relaxed);
    }

    /// Runs a text to its end, then waits for what it queued. Messages call it by `name`. Its functions, imports,
    /// constants and variables stay for later texts and calls.
    ///
    /// All texts of a session together have at most 65,535 lines, including `eval`s. Where they run out, those that left
    /// no function are given up; code that runs often belongs in a function, which is [called](Session::call).
    ///
    /// # Errors
    /// What the script raises, late errors included; E01xx for invalid syntax; E08xx at a limit. The session stays
    /// usable.
    pub fn run_str(&mut self, name: &str, text: &str) -> Result<(), Error> {
        self.run(SourceKind::File, name, text).map(drop)
    }

    /// Evaluates a text and returns the value of its last expression; runs it as [`run_str`](Session::run_str) does.
    pub fn eval<T: FromScript>(&mut self, text: &str) -> Result<T, Error> {
        let value = self.run(SourceKind::File, "eval", text)?;
        self.cast(value)
    }

    /// The text of a source file.
    #[doc(hidden)]
    pub fn read_source(&self, path: &Path) -> Result<String, Error> {
        crate::script::source::read::text(path).map_err(|diag| self.error(diag))
    }

    /// Writes a text file for the program itself.
    #[doc(hidden)]
    pub fn save_text(&self, path: &Path, text: &str) -> Result<(), Error> {
        std::fs::write(path, text).map_err(|e| {
            self.error(Diag::error(
                code::FILE,
                format!("cannot write {}: {}", path.display(), crate::files::input::os_reason(&e)),
            ))
        })
    }

    pub(in crate::script) fn compile_file(&mut self, path: &Path) -> Result<AST, Error> {
        let text = self.read_source(path)?;
        let source = self.add(SourceKind::File, &path.display().to_string(), &text)?;
        self.compile(&source)
    }

    /// Sets a variable of the top level; creates it if needed.
    ///
    /// # Errors
    /// E0805 for a tensor of another session, E0206 for an integer that does not fit in 64 bits.
    pub fn set(&mut self, name: &str, value: impl IntoScript) -> Result<(), Error> {
        // Values created here are counted as the session's.
        let _entered = Host::enter(&self.host);
        let value = value.into_script(&self.host.boundary()).map_err(|diag| self.error(diag))?;
        self.scope.set_or_push(name, value);
        Ok(())
    }

    /// The value of a variable of the top level. A tensor is shared with the script, everything else is copied.
    ///
    /// # Errors
    /// E0102 where there is no such variable, E0215 where the value has another type.
    pub fn get<T: FromScript>(&self, name: &str) -> Result<T, Error> {
        match self.scope.get(name) {
            Some(value) => self.cast(value.flatten_clone()),
            None => Err(self.error(Diag::error(code::UNKNOWN_VARIABLE, format!("there is no variable `{name}`")))),
        }
    }

    /// Calls a function of a script or of the library. It sees functions, imports and constants (`global::NAME`) of
    /// every text that ran. Tensors that it returns may still be computed; reading them waits. What it saved is written.
    ///
    /// # Errors
    /// E0103 where there is no such function, what it raises, and E0215 where its result has another type.
    pub fn call<T: FromScript>(&mut self, name: &str, args: impl Arguments) -> Result<T, Error> {
        let _entered = Host::enter(&self.host);
        let mut values: SmallVec<[Dynamic; 8]> = SmallVec::new();
        args.pass(&self.host.boundary(), &mut values).map_err(|diag| self.error(diag))?;
        // A function that has the name of a native one, or of a variable that closures take along, is renamed.
        let own = {
            let own = self.host.own_functions.read();
            !own.is_empty() && own.contains(&(name.to_string(), values.len()))
        };
        let renamed = own.then(|| format!("{name}{SCRIPT}"));
        let name = renamed.as_deref().unwrap_or(name);
        let functions = self.callable.as_ref().unwrap_or(&self.functions);
        let (engine, persistent, calls) = (&*self.engine, &self.persistent, &mut self.calls);
        let result = guarded(|| calls.call(engine, persistent, functions, name, &mut values));
        self.host.writer.wait(&self.host.rt);
        let value = exit_as_value(result.map_err(|diag| self.error(diag))?).map_err(|failure| self.failure(failure))?;
        self.saved()?;
        self.cast(value)
    }

    /// A handle with which another thread stops the running script.
    pub fn interrupt_handle(&self) -> InterruptHandle {
        InterruptHandle(self.host.watch.stop.clone())
    }

    /// Waits for all queued work, and for what is being saved; raises the earliest fault that was not reported yet.
    ///
    /// ```
    /// use tscript::Session;
    ///
    /// let mut session = Session::builder().build()?;
    /// let late = session.run_str("late", "let x = arange(3)[tensor([7])];").and_then(|()| session.synchronize());
    /// assert_eq!(late.unwrap_err().code(), "E0401");
    /// # Ok::<(), tscript::Error>(())
    /// ```
    pub fn synchronize(&self) -> Result<(), Error> {
        self.host.writer.synchronize(&self.host.rt).map_err(|diag| self.error(diag))
    }

    /// The arguments that the script read with `arg` and `flag`: name and default.
    #[doc(hidden)]
    pub fn asked_arguments(&self) -> Vec<(String, Option<String>)> {
        self.host.arguments.lock().asked.clone()
    }

    /// The files whose texts this session has read: scripts and modules of the user.
    #[doc(hidden)]
    pub fn files(&self) -> Vec<std::path::PathBuf> {
        let sources = self.host.sources.read();
        let files = sources.sources().iter().filter(|source| source.kind == SourceKind::File);
        files.map(|source| std::path::PathBuf::from(&*source.name)).collect()
    }

    /// Any value as `print` shows it.
    #[doc(hidden)]
    pub fn show(&self, value: &Dynamic) -> Result<String, Error> {
        show::value(&self.host, value).map_err(|diag| self.error(diag))
    }

    /// Whether `ulimit` bounds the address space or the data of this program.
    #[doc(hidden)]
    pub fn has_little_space() -> bool {
        crate::device::host_memory::is_limited()
    }

    /// Any value as it is shown inside of an array.
    #[doc(hidden)]
    pub fn literal(&self, value: &Dynamic) -> Result<String, Error> {
        show::quoted(&self.host, value).map_err(|diag| self.error(diag))
    }

    fn cast<T: FromScript>(&self, value: Dynamic) -> Result<T, Error> {
        T::from_script(value, &self.host.boundary()).map_err(|diag| self.error(diag))
    }

    pub(in crate::script) fn add(&self, kind: SourceKind, name: &str, text: &str) -> Result<Arc<Source>, Error> {
        self.host.note_variables(&self.scope, Vec::new());
        self.host.add_source(kind, name, text).map_err(|diag| self.error(diag))
    }

    pub(in crate::script) fn compile(&self, source: &Source) -> Result<AST, Error> {
        let sources = self.host.sources.read().clone();
        let known = LazyCell::new(|| self.known());
        let context = Context { sources: &sources, known: &known };
        error::compile(&self.engine, &self.scope, source, &context).map_err(|mut errors| {
            let first = errors.remove(0);
            Error::with_related(first, errors, &sources)
        })
    }

    pub(in crate::script) fn run(&mut self, kind: SourceKind, name: &str, text: &str) -> Result<Dynamic, Error> {
        let _entered = Host::enter(&self.host);
        let source = self.add(kind, name, text)?;
        let ast = self.compile(&source)?;
        let host = self.host.clone();
        host.passing(&source, || {
            let value = self.evaluate(&ast)?;
            self.host.rt.note_call(crate::base::span::Origin::NONE);
            self.host.rt.synchronize().map_err(|diag| self.error(diag))?;
            Ok(value)
        })
    }

    /// Runs a compiled text. Functions, imports and constants of earlier texts are available to it.
    pub(in crate::script) fn evaluate(&mut self, ast: &AST) -> Result<Dynamic, Error> {
        self.calls.forget();
        *self.host.exit_status.lock() = None;
        let merged = self.functions.merge(ast);
        self.functions = merged.clone_functions_only();
        let all = self.functions.iter_functions();
        *self.host.written.write() = all.map(|f| (written(f.name).to_string(), f.params.len())).collect();
        let own = self.functions.iter_functions().filter(|function| function.name.ends_with(SCRIPT));
        let own = own.map(|function| (written(function.name).to_string(), function.params.len()));
        *self.host.own_functions.write() = own.collect();
        let (merged, unit) = compiled(&self.engine, &self.host, &merged).map_err(|failure| self.failure(failure))?;
        self.callable = Some(merged.clone_functions_only());
        let (engine, scope, persistent) = (&self.engine, &mut self.scope, &mut self.persistent);
        let result = guarded(|| persistent.evaluate(engine, scope, &merged, &unit));
        self.host.writer.wait(&self.host.rt);
        match exit_as_value(result.map_err(|diag| self.error(diag))?) {
            Ok(value) => self.saved().map(|()| value),
            Err(failure) => {
                let first = self.diagnose(failure);
                // A fault that was not reported is added.
                let faults = self.host.rt.synchronize().err().into_iter().filter(|d| !is_repeated(d, &first));
                let extra: Vec<Box<Diag>> = faults.chain(self.host.writer.take_all(&self.host.rt)).collect();
                Err(Error::with_related(first, extra, &self.host.sources.read()))
            }
        }
    }

    /// The errors of files that could not be written, as one; with them a fault of queued work.
    fn saved(&self) -> Result<(), Error> {
        let mut failed = self.host.writer.take_all(&self.host.rt);
        if failed.is_empty() {
            return Ok(());
        }
        failed.extend(self.host.rt.synchronize().err());
        failed.sort_by_key(|diag| diag.queued);
        let first = failed.remove(0);
        Err(Error::with_related(first, failed, &self.host.sources.read()))
    }

    pub(in crate::script) fn known(&self) -> error::Known {
        let mut known = self.host.known_now();
        known.variables.extend(self.scope.iter_raw().map(|(name, ..)| name.to_string()));
        known
    }

    pub(in crate::script) fn diagnose(&self, failure: Box<EvalAltResult>) -> Box<Diag> {
        let sources = self.host.sources.read().clone();
        let known = LazyCell::new(|| self.known());
        error::diagnose(failure, &Context { sources: &sources, known: &known })
    }

    pub(in crate::script) fn failure(&self, failure: Box<EvalAltResult>) -> Error {
        let diag = self.diagnose(failure);
        self.error(diag)
    }

    pub(in crate::script) fn error(&self, diag: Box<Diag>) -> Error {
        Error::new(diag, &self.host.sources.read())
    }
}

/// A panic of the interpreter itself is an E0806, and the session stays usable. Panics of natives are errors of their
/// calls (`panics.rs`), those of kernels are faults (`sched/memory/kernel_context.rs`).
pub(in crate::script) fn guarded<R>(work: impl FnOnce() -> R) -> Result<R, Box<Diag>> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| crate::base::quiet::during(work)))
        .map_err(|payload| crate::script::values::panics::internal(&*payload))
}

/// Whether an unreported fault repeats an error: the same one, or the same limit reached in two places.
fn is_repeated(fault: &Diag, first: &Diag) -> bool {
    let ends = matches!(first.code, code::INTERRUPTED | code::LIMIT_TIME);
    *fault == *first || (ends && fault.code == first.code)
}
