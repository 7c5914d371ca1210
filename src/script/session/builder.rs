//! Settings of a session before it starts.

use crate::base::code;
use crate::base::diag::Diag;
use crate::base::quiet;
use crate::device::host_memory::physical_bytes;
use crate::device::metered;
use crate::device::planned_fault::PlannedFault;
use crate::sched::options::{Options, Races, SIMULATED_BYTES, Simulation};
use crate::sched::runtime::Runtime;
use crate::script::draw::raster::Raster;
use crate::script::embed::register;
use crate::script::embed::register::{Function, Object, Registration, Type};
use crate::script::error::Error;
use crate::script::host::limits::{Limits, Watch};
use crate::script::host::stack;
use crate::script::host::stack::Stack;
use crate::script::host::{Host, Output, Pictures};
use crate::script::language::arguments;
use crate::script::session::handle::Session;
use crate::script::session::interpreter;
use crate::script::session::interpreter::Sizes;
use crate::script::session::modules::Modules;
use crate::script::session::persistent::Persistent;
use parking_lot::Mutex;
use rhai::Dynamic;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Handles a warning.
type Warn = Arc<dyn Fn(&Error) + Send + Sync>;

/// Settings of a session before it starts: [`Session::builder`].
///
/// By default a session computes on the CPU, uses no files, prints to the standard output, and has only the limits
/// that keep a script from crashing the host program by accident.
///
/// ```
/// use std::time::Duration;
/// use tscript::Session;
///
/// let mut session = Session::builder()
///     .seed(7)
///     .time_limit(Duration::from_secs(2))
///     .memory_limit(256 << 20)
///     .module("greetings", "fn hello(name) { `hello ${name}` }")
///     .function("shout", |text: String| text.to_uppercase())
///     .output(|line| eprintln!("script: {line}"))
///     .build()?;
/// let text: String = session.eval("import \"greetings\" as g; shout(g::hello(\"you\"))")?;
/// assert_eq!(text, "HELLO YOU");
/// # Ok::<(), tscript::Error>(())
/// ```
///
/// Simulated GPUs, what scripts see of the machine, and how they run:
///
/// ```
/// use tscript::{Races, Session};
///
/// let session = Session::builder()
///     .simulate_gpus(2)
///     .simulate_memory(1 << 30)
///     .simulate_seed(1)
///     .races(Races::Error)
///     .blocking(false)
///     .check(true)
///     .cuda_graphs(false)
///     .all_files()
///     .module_root(std::env::temp_dir())
///     .arguments(["--lr", "0.1"])
///     .show_progress(false)
///     .build()?;
/// # drop(session);
/// # Ok::<(), tscript::Error>(())
/// ```
///
/// Limits, each of which [`untrusted`](Builder::untrusted) sets to what suits scripts of unknown people:
///
/// ```
/// use tscript::Session;
///
/// let mut session = Session::builder()
///     .operation_limit(1_000_000)
///     .array_limit(10_000)
///     .map_limit(1_000)
///     .string_limit(1 << 20)
///     .module_limit(8)
///     .call_depth_limit(100)
///     .device_memory_limit(64 << 20)
///     .stack_bytes(8 << 20)
///     .build()?;
/// assert_eq!(session.run_str("endless", "loop { }").unwrap_err().code(), "E0801");
/// # Ok::<(), tscript::Error>(())
/// ```
pub struct Builder {
    options: Options,
    roots: Vec<PathBuf>,
    /// None: all files.
    files: Option<Vec<PathBuf>>,
    modules: Vec<(String, String)>,
    words: Vec<String>,
    limits: Limits,
    sizes: Sizes,
    output: Option<Output>,
    device: Option<String>,
    warnings: Option<Warn>,
    stack_bytes: Option<usize>,
    shows_progress: bool,
    progress_output: Option<Arc<Output>>,
    pictures: Option<Pictures>,
    entry_name: Option<fn(u32) -> String>,
    registrations: Vec<Registration>,
    /// The first registered name that is not a valid identifier.
    wrong_name: Option<String>,
}

impl Default for Builder {
    fn default() -> Builder {
        Builder {
            options: Options::default(),
            roots: Vec::new(),
            files: Some(Vec::new()),
            modules: Vec::new(),
            words: Vec::new(),
            limits: Limits::default(),
            sizes: Sizes::default(),
            output: None,
            device: None,
            warnings: None,
            stack_bytes: None,
            shows_progress: false,
            progress_output: None,
            pictures: None,
            entry_name: None,
            registrations: Vec::new(),
            wrong_name: None,
        }
    }
}

/// How operations run.
impl Builder {
    /// Each operation ends before the next one starts.
    pub fn blocking(mut self, on: bool) -> Builder {
        self.options.blocking = on;
        self
    }

    /// Reports the first operation that turns finite inputs into NaN or infinity, as E0407.
    pub fn check(mut self, on: bool) -> Builder {
        self.options.check = on;
        self
    }

    /// Whether repeated windows on NVIDIA GPUs may be replayed as CUDA graphs; true by default. Affects time only.
    pub fn cuda_graphs(mut self, on: bool) -> Builder {
        self.options.graphs = on;
        self
    }

    /// Records when each operation ran, for the program's `--profile`.
    #[doc(hidden)]
    pub fn profile(mut self, on: bool) -> Builder {
        self.options.profile = on;
        self
    }

    /// Seed of the random generator; 0 by default.
    pub fn seed(mut self, seed: u64) -> Builder {
        self.options.seed = seed;
        self
    }

    /// Operations that a window may hold; 1 runs every operation by itself.
    #[doc(hidden)]
    pub fn window(mut self, nodes: usize) -> Builder {
        self.options.window_nodes = nodes.max(1);
        self
    }

    /// The device where tensors are created by default, such as `"cuda"`; `"cpu"` if this is not called.
    /// [`build`](Builder::build) fails for a device that does not exist.
    pub fn device(mut self, device: &str) -> Builder {
        self.device = Some(device.to_string());
        self
    }

    /// GPUs that the machine does not have: `cuda:0` and so on, with their own queues.
    pub fn simulate_gpus(mut self, count: usize) -> Builder {
        self.simulation().gpus = count;
        self
    }

    /// Bytes of memory of each simulated GPU; 16 GiB by default.
    pub fn simulate_memory(mut self, bytes: usize) -> Builder {
        self.simulation().memory_bytes = bytes;
        self
    }

    /// Simulated GPUs run in virtual time; the order of completion is random with this seed.
    pub fn simulate_seed(mut self, seed: u64) -> Builder {
        self.simulation().seed = Some(seed);
        self
    }

    /// A fault that a simulated GPU injects.
    #[doc(hidden)]
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

    /// What happens at accesses of two streams without an order between them; by default they are warnings.
    pub fn races(mut self, races: Races) -> Builder {
        self.options.races = races;
        self
    }
}

/// What scripts see of the host.
impl Builder {
    /// After an interrupt the session is not used any more: queued work is dropped.
    #[doc(hidden)]
    pub fn ends_when_interrupted(self) -> Builder {
        self.options.stop.make_final();
        self
    }

    /// Receives each line that scripts `print` and `debug`; by default the standard output.
    pub fn output(mut self, write: impl Fn(&str) + Send + Sync + 'static) -> Builder {
        self.output = Some(Box::new(write));
        self
    }

    /// Receives warnings; by default they are dropped.
    pub fn on_warning(mut self, warn: impl Fn(&Error) + Send + Sync + 'static) -> Builder {
        self.warnings = Some(Arc::new(warn));
        self
    }

    /// Lets scripts draw `progress` bars on the standard error; by default nothing is drawn.
    pub fn show_progress(mut self, on: bool) -> Builder {
        self.shows_progress = on;
        self
    }

    /// Receives the text of `progress` in place of the standard error; a carriage return begins the line anew.
    pub(crate) fn progress_output(mut self, write: impl Fn(&str) + Send + Sync + 'static) -> Builder {
        self.progress_output = Some(Arc::new(Box::new(write)));
        self
    }

    /// Receives the pictures of `show` and `plot`, each with the text that would be printed.
    pub(crate) fn pictures(mut self, take: impl Fn(&Raster, &str) + Send + Sync + 'static) -> Builder {
        self.pictures = Some(Box::new(take));
        self
    }

    /// How errors name the entries of the session, by their numbers: `repl:3`.
    pub(crate) fn entry_names(mut self, name: fn(u32) -> String) -> Builder {
        self.entry_name = Some(name);
        self
    }

    /// A folder in which `import` searches for modules, also where scripts may use no files.
    pub fn module_root(mut self, folder: impl Into<PathBuf>) -> Builder {
        self.roots.push(folder.into());
        self
    }

    /// A module from memory: `import "name" as name;` finds it.
    pub fn module(mut self, name: &str, text: &str) -> Builder {
        self.modules.push((name.to_string(), text.to_string()));
        self
    }

    /// Lets scripts read and write files below these folders; by default they may use none. Links and `..` are
    /// resolved first. Access outside of them is an E0604.
    pub fn file_roots<P: Into<PathBuf>>(mut self, folders: impl IntoIterator<Item = P>) -> Builder {
        self.files = Some(folders.into_iter().map(Into::into).collect());
        self
    }

    /// Lets scripts read and write every file that the program can, as `tscript run` does.
    pub fn all_files(mut self) -> Builder {
        self.files = None;
        self
    }

    /// The command line of scripts: `args`, `arg` and `flag` read it.
    pub fn arguments<S: Into<String>>(mut self, words: impl IntoIterator<Item = S>) -> Builder {
        self.words = words.into_iter().map(Into::into).collect();
        self
    }

    /// A Rust function that scripts call by this name. An error or a panic of it is an E0809 at the script's call;
    /// the program's panic hook is not called for it. A library function with the same name and number of arguments
    /// is hidden.
    ///
    /// ```
    /// use tscript::{Session, Tensor};
    ///
    /// let mut session = Session::builder()
    ///     .function("parts", |text: String, by: String| -> Vec<String> {
    ///         text.split(&by).map(str::to_string).collect()
    ///     })
    ///     .function("sensor", |channel: usize| match channel {
    ///         0..4 => Tensor::from_slice(&[0.5f32, 0.25], &[2]).map_err(|e| e.to_string()),
    ///         _ => Err(format!("there is no channel {channel}")),
    ///     })
    ///     .build()?;
    /// assert_eq!(session.eval::<String>("parts(\"a-b\", \"-\")[1]")?, "b");
    /// let error = session.eval::<Tensor>("sensor(9)").unwrap_err();
    /// assert_eq!((error.code().as_str(), error.message()), ("E0809", "there is no channel 9"));
    /// # Ok::<(), tscript::Error>(())
    /// ```
    pub fn function<A>(mut self, name: &str, function: impl Function<A>) -> Builder {
        self.check_name(name);
        self.registrations.push(register::function(name, function));
        self
    }

    /// A Rust type whose values scripts can hold, with its methods and properties: see [`Object`].
    pub fn object<T: Object>(mut self, describe: impl FnOnce(Type<T>) -> Type<T>) -> Builder {
        self.check_name(T::NAME);
        self.registrations.extend(describe(Type::new()).registrations());
        self
    }

    fn check_name(&mut self, name: &str) {
        if !register::is_name(name) {
            self.wrong_name.get_or_insert_with(|| name.to_string());
        }
    }
}

/// Limits. All hold for one run or call, except those of memory, which hold for the session.
impl Builder {
    /// Sets limits for scripts of unknown people: 100 million operations and 10 seconds for each run or call, 1 GiB
    /// of tensors on each device, calls 200 deep, strings of 16 MiB, arrays of a million elements, maps of 100,000
    /// entries, 10,000 variables, 64 modules, values nested 64 deep, and with
    /// [`Metered`](crate::Metered) installed 64 MiB of a script's own values. Settings made afterwards take
    /// precedence.
    pub fn untrusted(mut self) -> Builder {
        self.limits.operations = 100_000_000;
        self.limits.time = Some(Duration::from_secs(10));
        self.limits.nests = true;
        self.limits.heap = metered::is_installed().then_some(64 << 20);
        self.options.host_limit = 1 << 30;
        self.options.device_limit = 1 << 30;
        self.sizes = Sizes {
            call_levels: 200,
            string_bytes: 16 << 20,
            array_elements: 1_000_000,
            map_entries: 100_000,
            variables: 10_000,
            functions: 10_000,
            modules: 64,
        };
        self
    }

    /// Steps of the interpreter after which a script ends with E0801; 0, the default, means no limit. Work inside
    /// tensor operations is not counted.
    pub fn operation_limit(mut self, operations: u64) -> Builder {
        self.limits.operations = operations;
        self
    }

    /// Time after which a script ends with E0808. It is checked between steps, while waiting for devices, and within
    /// milliseconds inside an operation on the CPU, which is aborted; queued work is dropped. A matrix decomposition
    /// cannot be aborted: it is not started where it would clearly take too long, and otherwise the session stops
    /// waiting for it (a thread computes it to its end). Reading a result that was aborted or dropped is an E0808 as
    /// well. A function of one string or array, such as `replace`, runs to its end.
    pub fn time_limit(mut self, time: Duration) -> Builder {
        self.limits.time = Some(time);
        self
    }

    /// Depth of nested calls, above which E0802 is raised; 1000 by default.
    pub fn call_depth_limit(mut self, levels: usize) -> Builder {
        self.sizes.call_levels = levels;
        self
    }

    /// Bytes of tensors that the host may hold, including temporary memory of running operations; above, E0804 is
    /// raised. Memory that the program shares without a copy is not counted; pinned memory is counted separately.
    pub fn memory_limit(mut self, bytes: usize) -> Builder {
        self.options.host_limit = bytes;
        self
    }

    /// Bytes of tensors that each GPU may hold for this session; above, E0804 is raised.
    pub fn device_memory_limit(mut self, bytes: usize) -> Builder {
        self.options.device_limit = bytes;
        self
    }

    /// Bytes that a script's own values (strings, arrays, maps, functions) may hold; above, the script ends with
    /// E0804. Needs [`Metered`](crate::Metered) as the program's allocator, otherwise the session is not built.
    pub fn heap_limit(mut self, bytes: usize) -> Builder {
        self.limits.heap = Some(bytes);
        self.limits.nests = true;
        self
    }

    /// For a program that is one session and has `Heap` as its allocator: memory is the only limit of the script's
    /// own values, which end with E0804 before the machine's memory is used up. Rhai's size limits cost a walk over
    /// the whole value at each `push`.
    pub(crate) fn whole_machine(mut self) -> Builder {
        // Between two checks a value can be doubled by a copy.
        self.limits.program = Some(physical_bytes() / 5);
        self.sizes = Sizes { string_bytes: 0, array_elements: 0, map_entries: 0, ..self.sizes };
        self
    }

    /// Bytes of a string; above, E0807 is raised. 256 MiB by default.
    pub fn string_limit(mut self, bytes: usize) -> Builder {
        self.sizes.string_bytes = bytes;
        self
    }

    /// Elements of an array, including those of nested arrays; above, E0807 is raised when the array is next used, or
    /// soon after for nested arrays. 16 million by default.
    pub fn array_limit(mut self, elements: usize) -> Builder {
        self.sizes.array_elements = elements;
        self
    }

    /// Entries of a map, including those of nested maps; above, E0807 is raised as for arrays. A million by default.
    pub fn map_limit(mut self, entries: usize) -> Builder {
        self.sizes.map_entries = entries;
        self
    }

    /// Modules that a session may import; above, E0807 is raised.
    pub fn module_limit(mut self, modules: usize) -> Builder {
        self.sizes.modules = modules;
        self
    }

    /// Bytes of native stack that are left on the thread which runs scripts; 2 MiB by default. A script whose calls
    /// need more ends with E0802. A call of a script's function takes about 1 KiB, and 8 KiB in a build without
    /// optimization.
    pub fn stack_bytes(mut self, bytes: usize) -> Builder {
        self.stack_bytes = Some(bytes);
        self
    }
}

impl Builder {
    /// Starts the session. Fails where the device does not exist, a registered name is not an identifier, or a limit
    /// cannot be enforced.
    pub fn build(self) -> Result<Session, Error> {
        let early = |diag| Error::new(diag, &Default::default());
        if let Some(name) = self.wrong_name {
            let text = format!("scripts cannot write `{name}` as a name");
            let help = "a name has letters, digits and `_`, and begins with no digit";
            return Err(early(Diag::error(code::VALUE, text).help(help)));
        }
        if let Err(why) = crate::kernel::host::simd::choice() {
            let help = "leave the variable unset to use the best one";
            return Err(early(Diag::error(code::VALUE, why.clone()).help(help)));
        }
        if self.limits.heap.is_some() && !metered::is_installed() {
            let text = "`heap_limit` needs `tscript::Metered` as the program's allocator";
            let help = "write `#[global_allocator] static MEMORY: tscript::Metered = tscript::Metered;`";
            return Err(early(Diag::error(code::LIMIT_MEMORY, text).help(help)));
        }
        quiet::install();
        let stack = Stack::new(self.stack_bytes.unwrap_or(stack::DEFAULT_BYTES));
        let sizes = self.sizes;
        let limits = Limits {
            string_bytes: sizes.string_bytes,
            array_elements: sizes.array_elements,
            map_entries: sizes.map_entries,
            ..self.limits
        };
        if limits.time.is_some() {
            self.options.stop.set_alarm();
        }
        let watch = Watch::new(limits, self.options.stop.clone(), stack);
        let host = Arc::new(Host::new(Runtime::new(self.options), self.files, watch, self.shows_progress));
        listen(&host, self.warnings);
        let watch = host.watch.clone();
        let _ = host.rt.values.set(Box::new(move |bytes| watch.room(bytes)));
        host.arguments.lock().words = self.words;
        if let Some(output) = self.output {
            *host.output.write() = output;
        }
        *host.progress_output.write() = self.progress_output;
        *host.print.pictures.write() = self.pictures;
        let memory = self.modules.into_iter().collect();
        let modules = Arc::new(Mutex::new(Modules::new(self.roots, memory, sizes.modules)));
        let engine = Arc::new(interpreter::engine(&host, &modules, &sizes, self.registrations));
        *host.interpreter.lock() = Arc::downgrade(&engine);
        let persistent = Persistent::new(&engine);
        let mut session = Session::new(engine, host, modules, persistent);
        session.entry_name = self.entry_name.unwrap_or(session.entry_name);
        session.scope.push_constant("args", arguments::words(&session.host));
        if let Some(device) = self.device {
            let found = crate::script::bind::convert::device(&session.host, &Dynamic::from(device));
            session.host.rt.set_default_device(found.map_err(|diag| session.error(diag))?);
        }
        Ok(session)
    }
}

/// Passes warnings to the listener; streams get the names that the script gives them.
fn listen(host: &Arc<Host>, warnings: Option<Warn>) {
    if let Some(warn) = warnings {
        let sources = host.sources.clone();
        host.rt.on_warning(Box::new(move |diag| warn(&Error::new(diag, &sources.read()))));
    }
    host.rt.name_streams(Box::new(crate::script::cuda_api::naming::Names(host.sources.clone())));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With a size limit of its own, Rhai would walk the whole value at each call that may change it.
    #[test]
    fn values_are_not_walked_at_each_call() {
        let walked = |builder: Builder| {
            let session = builder.build().expect("a session starts");
            [session.engine.max_string_size(), session.engine.max_array_size(), session.engine.max_map_size()] != [0; 3]
        };
        assert!(!walked(Builder::default()));
        assert!(!walked(Builder::default().array_limit(1000).map_limit(10).string_limit(10)));
        assert!(!walked(Builder::default().untrusted()));
    }
}
