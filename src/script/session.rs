//! The one handle of a host program: sources in, values out.

use super::bind::Natives;
use super::error::{self, Context, Error};
use super::hooks::SessionHooks;
use super::host::{Host, Native};
use super::lasting::Lasting;
use super::modules::{Modules, Resolver};
use super::source::scope::{SCRIPT, written};
use super::source::{Source, SourceKind};
use super::stack::{self, Stack};
use super::{arguments, bind, index, natives, progress, properties, show, storage};
use crate::base::code;
use crate::base::diag::Diag;
use crate::base::limits::{CALL_LEVELS, EXPR_DEPTH};
pub use crate::device::planned_fault::PlannedFault;
pub use crate::sched::options::Races;
use crate::sched::options::{Options, SIMULATED_BYTES, Simulation};
use crate::sched::runtime::Runtime;
use parking_lot::Mutex;
use rhai::{
    AST, Array, Dynamic, Engine, EvalAltResult, FuncArgs, FuncRegistration, Map, NativeCallContext, RhaiFunc, Scope,
};
use std::any::TypeId;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A script session: interpreter, runtime, variables. The only handle that a host program needs.
///
/// It is `Send`, not `Sync`; several sessions do not see each other.
pub struct Session {
    pub(super) engine: Arc<Engine>,
    pub(super) host: Arc<Host>,
    pub(super) modules: Arc<Mutex<Modules>>,
    pub(super) scope: Scope<'static>,
    /// Functions of everything that ran, for `call`.
    pub(super) functions: AST,
    /// Imports and constants of everything that ran.
    pub(super) lasting: Lasting,
    pub(super) stack: Arc<Stack>,
    /// Makes the session `!Sync`.
    _one_thread: std::marker::PhantomData<std::cell::Cell<()>>,
}

/// Tells a warning.
type Warn = Arc<dyn Fn(&Error) + Send + Sync>;

/// Settings of a session before it starts.
#[derive(Default)]
pub struct Builder {
    options: Options,
    roots: Vec<PathBuf>,
    file_roots: Option<Vec<PathBuf>>,
    modules: Vec<(String, String)>,
    words: Vec<String>,
    operations: u64,
    output: Option<super::host::Output>,
    device: Option<String>,
    warnings: Option<Warn>,
    stack_bytes: Option<usize>,
}

impl Builder {
    /// Each operation runs to its end before the next.
    pub fn blocking(mut self, on: bool) -> Builder {
        self.options.blocking = on;
        self
    }

    /// Reports the first operation that turns finite inputs into NaN or infinity.
    pub fn check(mut self, on: bool) -> Builder {
        self.options.check = on;
        self
    }

    /// Records what ran when, for [`Session::timeline`].
    pub fn profile(mut self, on: bool) -> Builder {
        self.options.profile = on;
        self
    }

    /// Seed of the random generator; 0 unless given.
    pub fn seed(mut self, seed: u64) -> Builder {
        self.options.seed = seed;
        self
    }

    /// Nodes that a window holds before it runs; 1 runs every operation by itself.
    pub fn window(mut self, nodes: usize) -> Builder {
        self.options.window_nodes = nodes.max(1);
        self
    }

    /// GPUs that the machine does not have: `cuda:0` and so on, with queues of their own.
    pub fn simulate_gpus(mut self, count: usize) -> Builder {
        self.simulation().gpus = count;
        self
    }

    /// Bytes of memory of each simulated GPU; 16 GiB unless given.
    pub fn simulate_memory(mut self, bytes: usize) -> Builder {
        self.simulation().memory_bytes = bytes;
        self
    }

    /// Simulated GPUs run in virtual time, with an order of completion drawn from this seed.
    pub fn simulate_seed(mut self, seed: u64) -> Builder {
        self.simulation().seed = Some(seed);
        self
    }

    /// A fault of a simulated GPU.
    pub fn simulate_fault(mut self, fault: PlannedFault) -> Builder {
        self.simulation().faults.push(fault);
        self
    }

    fn simulation(&mut self) -> &mut Simulation {
        self.options.simulate.get_or_insert(Simulation {
            gpus: 0,
            memory_bytes: SIMULATED_BYTES,
            seed: None,
            faults: Vec::new(),
        })
    }

    /// What becomes of accesses that nothing orders: told (unless given), refused, or not looked for.
    pub fn races(mut self, races: Races) -> Builder {
        self.options.races = races;
        self
    }

    /// Where warnings go; nowhere unless given.
    pub fn on_warning(mut self, tell: impl Fn(&Error) + Send + Sync + 'static) -> Builder {
        self.warnings = Some(Arc::new(tell));
        self
    }

    /// Bytes of tensors that the host may hold.
    pub fn memory_limit(mut self, bytes: usize) -> Builder {
        self.options.host_limit = bytes;
        self
    }

    /// Interpreter operations after which a script is stopped; 0 means no limit.
    pub fn operation_limit(mut self, operations: u64) -> Builder {
        self.operations = operations;
        self
    }

    /// A folder in which `import` looks.
    pub fn module_root(mut self, folder: impl Into<PathBuf>) -> Builder {
        self.roots.push(folder.into());
        self
    }

    /// A module from memory.
    pub fn module(mut self, name: &str, text: &str) -> Builder {
        self.modules.push((name.to_string(), text.to_string()));
        self
    }

    /// Lets scripts read and write files in these folders only; without a call of this, everywhere.
    pub fn file_roots(mut self, folders: Vec<PathBuf>) -> Builder {
        self.file_roots = Some(folders);
        self
    }

    /// What stands after `--` on the command line.
    pub fn arguments(mut self, words: Vec<String>) -> Builder {
        self.words = words;
        self
    }

    /// Where tensors are made unless the script says otherwise; `cpu` unless given.
    pub fn device(mut self, device: &str) -> Builder {
        self.device = Some(device.to_string());
        self
    }

    /// Bytes of native stack that the thread which runs scripts has left; 2 MiB unless given. A script whose calls
    /// need more ends with E0802.
    pub fn stack_bytes(mut self, bytes: usize) -> Builder {
        self.stack_bytes = Some(bytes);
        self
    }

    /// Where `print` goes; standard output unless given.
    pub fn output(mut self, write: impl Fn(&str) + Send + Sync + 'static) -> Builder {
        self.output = Some(Box::new(write));
        self
    }

    /// Starts the session.
    pub fn build(self) -> Result<Session, Error> {
        let host = Arc::new(Host::new(Runtime::new(self.options), self.file_roots));
        listen(&host, self.warnings);
        host.arguments.lock().words = self.words;
        if let Some(output) = self.output {
            *host.output.write() = output;
        }
        let memory = self.modules.into_iter().collect();
        let modules = Arc::new(Mutex::new(Modules::new(self.roots, memory)));
        let stack = Arc::new(Stack::new(self.stack_bytes.unwrap_or(stack::DEFAULT_BYTES)));
        let mut engine = engine(&host, &modules, &stack);
        engine.set_max_operations(self.operations);
        let engine = Arc::new(engine);
        *host.interpreter.lock() = Arc::downgrade(&engine);
        let lasting = Lasting::new(&engine);
        let mut session = Session {
            engine,
            host,
            modules,
            scope: Scope::new(),
            functions: AST::empty(),
            lasting,
            stack,
            _one_thread: std::marker::PhantomData,
        };
        session.scope.push_constant("args", arguments::words(&session.host));
        if let Some(device) = self.device {
            let found = super::convert::device(&session.host, &Dynamic::from(device));
            session.host.rt.set_default_device(found.map_err(|diag| session.error(diag))?);
        }
        Ok(session)
    }
}

/// Stops a running script from another thread.
#[derive(Clone)]
pub struct InterruptHandle(Arc<AtomicBool>);

impl InterruptHandle {
    /// The script ends with E0803 at its next operation.
    pub fn interrupt(&self) {
        self.0.store(true, Ordering::Release);
    }
}

impl Session {
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Changes the interpreter itself, between scripts.
    #[cfg(test)]
    pub(super) fn change_engine(&mut self, change: impl FnOnce(&mut Engine)) {
        *self.host.interpreter.lock() = Default::default();
        Arc::get_mut(&mut self.engine).map(change);
        *self.host.interpreter.lock() = Arc::downgrade(&self.engine);
    }

    /// Runs a file to its end, then waits for what it queued. Modules are looked for beside it.
    pub fn run_file(&mut self, path: impl AsRef<Path>) -> Result<(), Error> {
        let path = path.as_ref();
        let text = self.read_source(path)?;
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        self.modules.lock().roots.insert(0, folder.to_path_buf());
        self.run(SourceKind::File, &path.display().to_string(), &text).map(drop)
    }

    /// Runs a text under a name to its end, then waits for what it queued. Its functions and variables stay.
    pub fn run_str(&mut self, name: &str, text: &str) -> Result<(), Error> {
        self.run(SourceKind::File, name, text).map(drop)
    }

    /// Evaluates a text and gives the value of its last expression.
    pub fn eval<T: Clone + Send + Sync + 'static>(&mut self, text: &str) -> Result<T, Error> {
        let value = self.run(SourceKind::File, "eval", text)?;
        self.cast(value)
    }

    /// Parses and resolves without running.
    pub fn check_file(&mut self, path: impl AsRef<Path>) -> Result<(), Error> {
        self.compile_file(path.as_ref()).map(drop)
    }

    /// The text of a source file.
    pub fn read_source(&self, path: &Path) -> Result<String, Error> {
        let text = std::fs::read(path).map_err(|e| {
            self.error(Diag::error(code::FILE, format!("cannot read {}: {}", path.display(), plain_reason(&e))))
        })?;
        String::from_utf8(text).map_err(|e| {
            let at = e.utf8_error().valid_up_to();
            self.error(Diag::error(code::SYNTAX, format!("{} is not UTF-8 text: bad byte at {at}", path.display())))
        })
    }

    /// Writes a text file of the program's own.
    pub fn save_text(&self, path: &Path, text: &str) -> Result<(), Error> {
        std::fs::write(path, text).map_err(|e| {
            self.error(Diag::error(code::FILE, format!("cannot write {}: {}", path.display(), plain_reason(&e))))
        })
    }

    pub(super) fn compile_file(&mut self, path: &Path) -> Result<AST, Error> {
        let text = self.read_source(path)?;
        let source = self.add(SourceKind::File, &path.display().to_string(), &text)?;
        self.compile(&source)
    }

    /// Sets a variable of the top level.
    pub fn set(&mut self, name: &str, value: impl Into<crate::script::exchange::Value>) -> Result<(), Error> {
        let value = value.into().into_dynamic(&self.host.rt).map_err(|diag| self.error(diag))?;
        self.scope.set_or_push(name, value);
        Ok(())
    }

    /// A variable of the top level.
    pub fn get<T: Clone + Send + Sync + 'static>(&self, name: &str) -> Result<T, Error> {
        match self.scope.get(name) {
            Some(value) => self.cast(value.flatten_clone()),
            None => Err(self.error(Diag::error(code::UNKNOWN_VARIABLE, format!("there is no variable `{name}`")))),
        }
    }

    /// Calls a function that a script has defined.
    pub fn call<T: Clone + Send + Sync + 'static>(&mut self, name: &str, args: impl FuncArgs) -> Result<T, Error> {
        self.host.interrupt.store(false, Ordering::Release);
        self.stack.enter();
        let options = rhai::CallFnOptions::new().eval_ast(false).rewind_scope(true);
        let mut values: Vec<Dynamic> = Vec::new();
        args.parse(&mut values);
        for value in &mut values {
            if let Some(tensor) = value.clone().try_cast::<super::exchange::Tensor>() {
                let adopted = super::exchange::Value::from(tensor).into_dynamic(&self.host.rt);
                *value = adopted.map_err(|diag| self.error(diag))?;
            }
        }
        // A function that a native one shares its name with has a name of its own.
        let own = self.host.own_functions.read().contains(&(name.to_string(), values.len()));
        let name = if own { format!("{name}{SCRIPT}") } else { name.to_string() };
        let (engine, scope, functions) = (&self.engine, &mut self.scope, &self.functions);
        let result = guarded(|| engine.call_fn_with_options::<Dynamic>(options, scope, functions, &name, values));
        let value = result.map_err(|diag| self.error(diag))?.map_err(|failure| self.failure(failure))?;
        self.cast(value)
    }

    /// A handle with which another thread stops the running script.
    pub fn interrupt_handle(&self) -> InterruptHandle {
        InterruptHandle(self.host.interrupt.clone())
    }

    /// Waits for everything that was queued; raises the earliest fault that was not told yet.
    pub fn synchronize(&self) -> Result<(), Error> {
        self.host.rt.synchronize().map_err(|diag| self.error(diag))
    }

    /// What the script asked for with `arg` and `flag`: name and default.
    pub fn asked_arguments(&self) -> Vec<(String, Option<String>)> {
        self.host.arguments.lock().asked.clone()
    }

    /// Any value as `print` shows it.
    pub fn show(&self, value: &Dynamic) -> Result<String, Error> {
        show::value(&self.host, value).map_err(|diag| self.error(diag))
    }

    fn cast<T: Clone + Send + Sync + 'static>(&self, value: Dynamic) -> Result<T, Error> {
        super::exchange::from_dynamic(&self.host.rt, value).map_err(|diag| self.error(diag))
    }

    pub(super) fn add(&self, kind: SourceKind, name: &str, text: &str) -> Result<Arc<Source>, Error> {
        self.host.note_variables(&self.scope);
        self.host.add_source(kind, name, text).map_err(|diag| self.error(diag))
    }

    pub(super) fn compile(&self, source: &Source) -> Result<AST, Error> {
        let sources = self.host.sources.read().clone();
        let known = self.known(None);
        let context = Context { sources: &sources, known: &known };
        error::compile(&self.engine, &self.scope, source, &context).map_err(|mut errors| {
            let first = errors.remove(0);
            Error::several(first, errors, &sources)
        })
    }

    pub(super) fn run(&mut self, kind: SourceKind, name: &str, text: &str) -> Result<Dynamic, Error> {
        self.host.interrupt.store(false, Ordering::Release);
        self.stack.enter();
        let source = self.add(kind, name, text)?;
        let ast = self.compile(&source)?;
        let value = self.evaluate(&ast)?;
        self.host.rt.note_call(crate::base::span::Origin::NONE);
        self.host.rt.synchronize().map_err(|diag| self.error(diag))?;
        Ok(value)
    }

    /// Runs what is compiled. Functions, imports and constants of earlier texts are there for it.
    pub(super) fn evaluate(&mut self, ast: &AST) -> Result<Dynamic, Error> {
        let merged = self.functions.merge(ast);
        self.functions = merged.clone_functions_only();
        let own = self.functions.iter_functions().filter(|function| function.name.ends_with(SCRIPT));
        let own = own.map(|function| (written(function.name).to_string(), function.params.len()));
        *self.host.own_functions.write() = own.collect();
        let (engine, scope, lasting) = (&self.engine, &mut self.scope, &mut self.lasting);
        let result = guarded(|| lasting.evaluate(engine, scope, &merged));
        match result.map_err(|diag| self.error(diag))? {
            Ok(value) => Ok(value),
            Err(failure) => {
                let first = self.diagnose(failure);
                // A fault that nobody was told comes along.
                let extra: Vec<Box<Diag>> =
                    self.host.rt.synchronize().err().into_iter().filter(|d| **d != *first).collect();
                Err(Error::several(first, extra, &self.host.sources.read()))
            }
        }
    }

    pub(super) fn known(&self, ast: Option<&AST>) -> error::Known {
        let mut known = self.host.known.read().clone();
        known.variables.extend(self.scope.iter().map(|(name, ..)| name.to_string()));
        let functions = ast.unwrap_or(&self.functions);
        known.functions.extend(functions.iter_functions().map(|f| written(f.name).to_string()));
        known.modules.extend(super::modules::STD.iter().map(|(name, _)| name.to_string()));
        known
    }

    pub(super) fn diagnose(&self, failure: Box<EvalAltResult>) -> Box<Diag> {
        let sources = self.host.sources.read().clone();
        let known = self.known(None);
        error::diagnose(failure, &Context { sources: &sources, known: &known })
    }

    pub(super) fn failure(&self, failure: Box<EvalAltResult>) -> Error {
        let diag = self.diagnose(failure);
        self.error(diag)
    }

    pub(super) fn error(&self, diag: Box<Diag>) -> Error {
        Error::new(diag, &self.host.sources.read())
    }
}

/// Warnings go to whoever listens; streams are called what the script calls them.
fn listen(host: &Arc<Host>, warnings: Option<Warn>) {
    if let Some(tell) = warnings {
        let sources = host.sources.clone();
        host.rt.on_warning(Box::new(move |diag| tell(&Error::new(diag, &sources.read()))));
    }
    host.rt.name_streams(Box::new(super::devices::Names(host.sources.clone())));
}

/// A panic inside a native function is an E0806, and the session lives: its locks do not stay held, and
/// the window that was at work is gone.
pub(super) fn guarded<R>(work: impl FnOnce() -> R) -> Result<R, Box<Diag>> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).map_err(|payload| {
        let text = payload.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("unknown");
        Diag::error(code::INTERNAL, format!("an operation failed inside: {text}")).help("this is a mistake in tscript")
    })
}

/// `No such file or directory`, without the number that the system adds.
pub fn plain_reason(error: &std::io::Error) -> String {
    let text = error.to_string();
    match text.find(" (os error") {
        Some(at) => text[..at].to_string(),
        None => text,
    }
}

fn engine(host: &Arc<Host>, modules: &Arc<Mutex<Modules>>, stack: &Arc<Stack>) -> Engine {
    let mut engine = Engine::new();
    engine.set_max_expr_depths(EXPR_DEPTH, EXPR_DEPTH);
    engine.set_max_call_levels(CALL_LEVELS);
    // Not: Rhai's optimiser. It folds constants into places where they are written to, and panics.
    engine.set_optimization_level(rhai::OptimizationLevel::None);
    // Bound: `pad(10^12, 0)` and the like abort on allocation without these (FACTS, "Limits").
    engine.set_max_string_size(256 << 20);
    engine.set_max_array_size(16 << 20);
    engine.set_max_map_size(1 << 20);
    engine.register_type_with_name::<super::value::Tensor>("tensor");
    engine.register_type_with_name::<super::value::DTypeValue>("dtype");
    engine.register_type_with_name::<super::value::DeviceValue>("device");
    engine.register_type_with_name::<super::value::SliceValue>("slice");
    engine.register_type_with_name::<super::value::Cell>("cell");
    engine.register_type_with_name::<super::loader::Loader>("loader");
    engine.register_type_with_name::<super::streams::StreamValue>("stream");
    engine.register_type_with_name::<super::streams::EventValue>("event");
    engine.register_type_with_name::<super::dataset::Dataset>("dataset");
    // The matrix product binds as `*` does.
    let _ = engine.register_custom_operator("@", 180);
    super::compare::install(&mut engine);
    super::source::install(&mut engine, Arc::new(SessionHooks(host.clone())));
    error::register(&mut engine, host.sources.clone());
    natives::register_eval(&mut engine, host);
    super::devices::install(&mut engine, host);
    super::literal::install(&mut engine);
    let mut module = Natives::default();
    bind::register(&mut module, host);
    properties::register(&mut module, host);
    super::literal::register(&mut module, host);
    index::register(&mut module, host);
    natives::register(&mut module, host);
    super::arrays::register(&mut module, host);
    arguments::register(&mut module, host);
    storage::register(&mut module, host);
    super::draw::register(&mut module, host);
    super::layers::register(&mut module, host);
    super::assemble::register(&mut module, host);
    super::parallel::register(&mut module, host);
    super::checks::register(&mut module, host);
    super::signature::register(&mut module, host);
    super::containers::register(&mut module, host);
    super::questions::register(&mut module, host);
    super::settings::register(&mut module, host);
    super::optimise::register(&mut module, host);
    super::loader::register(&mut module, host);
    super::dataset::register(&mut module, host);
    super::iterate::register(&mut module, host);
    progress::register(&mut module, host);
    super::devices::register(&mut module, host);
    super::streams::register(&mut module, host);
    let cuda = super::cuda::module(host);
    module.names.extend(cuda.names.iter().map(|name| format!("cuda::{name}")));
    engine.register_static_module("cuda", cuda.module.into());
    printing(&mut module, host);
    note_names(&mut module, host);
    engine.register_global_module(module.module.into());
    let shared = host.clone();
    engine.on_print(move |text| (shared.output.read())(text));
    let shared = host.clone();
    engine.on_debug(move |text, _, _| (shared.output.read())(text));
    let (interrupt, stack) = (host.interrupt.clone(), stack.clone());
    engine.on_progress(move |_| {
        if stack.is_spent() {
            return Some(stack::spent());
        }
        interrupt.load(Ordering::Relaxed).then(|| Dynamic::from("interrupted"))
    });
    engine.set_module_resolver(Resolver { host: host.clone(), modules: modules.clone() });
    engine
}

/// Names of native functions: for suggestions, and for the pass, which marks only calls of script code.
fn note_names(module: &mut Natives, host: &Host) {
    let mut natives = std::mem::take(&mut module.names);
    natives.extend(["print", "debug", "eval", "get", "set"].map(str::to_string));
    let mut known = host.known.write();
    known.functions = natives.iter().filter(|name| is_public(name)).cloned().collect();
    let computed = crate::op::table::all().flat_map(|op| op.aliases.iter().filter_map(|alias| alias.strip_prefix('.')));
    known.properties =
        properties::NAMES.iter().chain(super::questions::NAMES).copied().chain(computed).map(str::to_string).collect();
    *host.natives.write() = natives;
}

/// A name that users may write: those with `_` in front are the library's own.
fn is_public(name: &str) -> bool {
    !name.starts_with('_') && name.chars().all(|c| c.is_alphanumeric() || c == '_')
}

fn printing(module: &mut Natives, host: &Arc<Host>) {
    // Rhai hands what `print` and `debug` return to its callback.
    for name in ["to_string", "to_debug", "print", "debug"] {
        let shared = host.clone();
        let print = move |context: Option<NativeCallContext>, values: &mut [&mut Dynamic]| -> Native {
            let context = context.expect("registered with a context");
            shared.rt.note_call(shared.origin(&context));
            match show::value(&shared, values[0]) {
                Ok(text) => Ok(text.into()),
                Err(diag) => Err(shared.raise(&context, diag, "")),
            }
        };
        bind::raw(module, name, 1, print.clone());
        // Rhai has its own for these, which would go before one for any type.
        for kind in [TypeId::of::<Map>(), TypeId::of::<Array>()] {
            let func =
                RhaiFunc::Method { func: Arc::new(print.clone()), has_context: true, is_pure: true, is_volatile: true };
            FuncRegistration::new(name).in_global_namespace().set_into_module_raw(&mut module.module, [kind], func);
        }
    }
}
