//! Settings of a session before it starts.

use crate::base::code;
use crate::base::diag::Diag;
use crate::base::quiet;
use crate::device::host_memory::physical_bytes;
use crate::device::metered;
use crate::device::planned_fault::PlannedFault;
use crate::sched::options::{Options, Races, SIMULATED_BYTES, Simulation};
use crate::sched::runtime::Runtime;
use crate::script::embed::register;
use crate::script::embed::register::{Function, Object, Registration, Type};
use crate::script::error::Error;
use crate::script::host::limits::{Limits, Watch};
use crate::script::host::stack;
use crate::script::host::stack::Stack;
use crate::script::host::{Host, Output};
use crate::script::language::arguments;
use crate::script::session::handle::Session;
use crate::script::session::interpreter;
use crate::script::session::interpreter::Sizes;
use crate::script::session::lasting::Lasting;
use crate::script::session::modules::Modules;
use parking_lot::Mutex;
use rhai::Dynamic;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Tells a warning.
type Warn = Arc<dyn Fn(&Error) + Send + Sync>;

/// Settings of a session before it starts: [`Session::builder`].
///
/// A session that nothing was said about computes on the CPU, touches no file, prints to the standard output, and
/// has no limits but those that keep a script from crashing its host by accident.
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
    registrations: Vec<Registration>,
    /// A name that no script can write.
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
            registrations: Vec::new(),
            wrong_name: None,
        }
    }
}

/// How operations run.
impl Builder {
    /// Each operation runs to its end before the next.
    pub fn blocking(mut self, on: bool) -> Builder {
        self.options.blocking = on;
        self
    }

    /// Reports the first operation that turns finite inputs into NaN or infinity, as E0407.
    pub fn check(mut self, on: bool) -> Builder {
        self.options.check = on;
        self
    }

    /// Whether windows of NVIDIA GPUs that repeat may be replayed as graphs; they are unless given. Nothing but the time
    /// that they take depends on it.
    pub fn cuda_graphs(mut self, on: bool) -> Builder {
        self.options.graphs = on;
        self
    }

    /// Records what ran when, for the program's `--profile`.
    #[doc(hidden)]
    pub fn profile(mut self, on: bool) -> Builder {
        self.options.profile = on;
        self
    }

    /// Seed of the random generator; 0 unless given.
    pub fn seed(mut self, seed: u64) -> Builder {
        self.options.seed = seed;
        self
    }

    /// Operations that are put off before they run; 1 runs every operation by itself.
    #[doc(hidden)]
    pub fn window(mut self, nodes: usize) -> Builder {
        self.options.window_nodes = nodes.max(1);
        self
    }

    /// Where tensors are made unless the script says otherwise, such as `"cuda"`; `"cpu"` unless given. A device
    /// that does not exist is an error of [`build`](Builder::build).
    pub fn device(mut self, device: &str) -> Builder {
        self.device = Some(device.to_string());
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

    /// What becomes of accesses of two streams that nothing orders; told as warnings unless given.
    pub fn races(mut self, races: Races) -> Builder {
        self.options.races = races;
        self
    }
}

/// What scripts see of the host.
impl Builder {
    /// Whoever interrupts this session wants nothing more of it: queued work is left out.
    #[doc(hidden)]
    pub fn ends_when_interrupted(self) -> Builder {
        self.options.stop.make_final();
        self
    }

    /// Where each line that scripts `print` and `debug` goes; standard output unless given.
    pub fn output(mut self, write: impl Fn(&str) + Send + Sync + 'static) -> Builder {
        self.output = Some(Box::new(write));
        self
    }

    /// Where warnings go; nowhere unless given.
    pub fn on_warning(mut self, tell: impl Fn(&Error) + Send + Sync + 'static) -> Builder {
        self.warnings = Some(Arc::new(tell));
        self
    }

    /// Lets scripts draw bars of their `progress` on the error output; without this they are silent.
    pub fn show_progress(mut self, on: bool) -> Builder {
        self.shows_progress = on;
        self
    }

    /// A folder in which `import` looks for modules, also where scripts may use no files.
    pub fn module_root(mut self, folder: impl Into<PathBuf>) -> Builder {
        self.roots.push(folder.into());
        self
    }

    /// A module from memory: `import "name" as name;` finds it.
    pub fn module(mut self, name: &str, text: &str) -> Builder {
        self.modules.push((name.to_string(), text.to_string()));
        self
    }

    /// Lets scripts read and write files below these folders; without this they may use none. Links and `..` are
    /// resolved first. Whoever reaches beyond gets an E0604.
    pub fn file_roots<P: Into<PathBuf>>(mut self, folders: impl IntoIterator<Item = P>) -> Builder {
        self.files = Some(folders.into_iter().map(Into::into).collect());
        self
    }

    /// Lets scripts read and write every file that the program can, as `tscript run` does.
    pub fn all_files(mut self) -> Builder {
        self.files = None;
        self
    }

    /// What scripts find in `args`, and what `arg` and `flag` read.
    pub fn arguments<S: Into<String>>(mut self, words: impl IntoIterator<Item = S>) -> Builder {
        self.words = words.into_iter().map(Into::into).collect();
        self
    }

    /// A Rust function that scripts call by this name. Its error, and its panic, is an E0809 at the script's call; the
    /// program's panic hook does not hear of it.
    /// A function of the library with the same name and number of arguments is hidden.
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

/// Limits. All of them hold for one run or call, but those of memory, which hold for the session.
impl Builder {
    /// Sets limits for scripts of people whom nobody knows: 100 million operations and 10 seconds for each run or
    /// call, 1 GiB of tensors on each device, calls 200 deep, strings of 16 MiB, arrays of a million elements, maps
    /// of 100,000 entries, 10,000 variables, 64 modules, values inside each other 64 deep. With
    /// [`Metered`](crate::Metered) installed, 64 MiB of a script's own values; without it, the whole of a list or map is
    /// counted at each call that changes it, which makes large ones slow to grow. What is set afterwards goes before.
    pub fn untrusted(mut self) -> Builder {
        self.limits.operations = 100_000_000;
        self.limits.time = Some(Duration::from_secs(10));
        self.limits.nests = true;
        self.limits.heap = metered::is_installed().then_some(64 << 20);
        self.options.host_limit = 1 << 30;
        self.options.device_limit = 1 << 30;
        self.sizes = Sizes {
            call_levels: 200,
            strict: true,
            string_bytes: 16 << 20,
            array_elements: 1_000_000,
            map_entries: 100_000,
            variables: 10_000,
            functions: 10_000,
            modules: 64,
        };
        self
    }

    /// Steps of the interpreter after which a script ends with E0801; 0, as unless given, means no limit. Inside
    /// tensor operations nothing is counted.
    pub fn operation_limit(mut self, operations: u64) -> Builder {
        self.limits.operations = operations;
        self
    }

    /// Time after which a script ends with E0808: noticed between two steps, in waits for devices, and within
    /// milliseconds inside an operation on the CPU, which is cut short; what is queued is left out. A decomposition cannot
    /// be cut: it is left out where it would clearly take longer than there is time, and otherwise nobody waits for it any
    /// more (a thread computes it to its end). Reading what was cut or left out is an E0808 too. A function of one string or
    /// array, such as `replace`, comes to its end, which takes as long as going over it.
    pub fn time_limit(mut self, time: Duration) -> Builder {
        self.limits.time = Some(time);
        self
    }

    /// Calls inside each other, above which E0802 is raised; 1000 unless given.
    pub fn call_depth_limit(mut self, levels: usize) -> Builder {
        self.sizes.call_levels = levels;
        self
    }

    /// Bytes of tensors that the host may hold, with what operations need beside them while they run; above, E0804 is
    /// raised. What the program lends without a copy is not counted, pinned memory by itself.
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
    /// E0804. Counted by [`Metered`](crate::Metered): without it as the program's allocator the session is not built.
    pub fn heap_limit(mut self, bytes: usize) -> Builder {
        self.limits.heap = Some(bytes);
        self.limits.nests = true;
        self
    }

    /// For a program that is one session and has `Heap` as its allocator: memory is the only limit of the script's own
    /// values, which end with E0804 before the machine's is gone. Rhai's limits of sizes cost a walk over the whole
    /// value at each `push`.
    pub(crate) fn whole_machine(mut self) -> Builder {
        // Between two looks a value can be doubled by way of a copy.
        self.limits.program = Some(physical_bytes() / 5);
        self.sizes = Sizes { string_bytes: 0, array_elements: 0, map_entries: 0, ..self.sizes };
        self
    }

    /// Bytes of a string; above, E0807 is raised. 256 MiB unless given.
    pub fn string_limit(mut self, bytes: usize) -> Builder {
        self.sizes.string_bytes = bytes;
        self
    }

    /// Elements of an array, those of arrays in it included; above, E0807 is raised when the array is used next, for
    /// what lies inside it soon after. 16 million unless given.
    pub fn array_limit(mut self, elements: usize) -> Builder {
        self.sizes.array_elements = elements;
        self
    }

    /// Entries of a map, those of maps in it included; above, E0807 is raised as for arrays. A million unless given.
    pub fn map_limit(mut self, entries: usize) -> Builder {
        self.sizes.map_entries = entries;
        self
    }

    /// Modules that a session may import; above, E0807 is raised.
    pub fn module_limit(mut self, modules: usize) -> Builder {
        self.sizes.modules = modules;
        self
    }

    /// Bytes of native stack that the thread which runs scripts has left; 2 MiB unless given. A script whose calls
    /// need more ends with E0802.
    pub fn stack_bytes(mut self, bytes: usize) -> Builder {
        self.stack_bytes = Some(bytes);
        self
    }
}

impl Builder {
    /// Starts the session. An error where the device does not exist, a registered name is no name, or a limit cannot
    /// be kept to.
    pub fn build(self) -> Result<Session, Error> {
        let early = |diag| Error::new(diag, &Default::default());
        if let Some(name) = self.wrong_name {
            let text = format!("scripts cannot write `{name}` as a name");
            let help = "a name has letters, digits and `_`, and begins with no digit";
            return Err(early(Diag::error(code::VALUE, text).help(help)));
        }
        if let Err(why) = crate::kernel::host::simd::choice() {
            let help = "leave the variable out: the best is taken then";
            return Err(early(Diag::error(code::VALUE, why.clone()).help(help)));
        }
        if self.limits.heap.is_some() && !metered::is_installed() {
            let text = "`heap_limit` wants `tscript::Metered` as the program's allocator";
            let help = "write `#[global_allocator] static MEMORY: tscript::Metered = tscript::Metered;`";
            return Err(early(Diag::error(code::LIMIT_MEMORY, text).help(help)));
        }
        quiet::install();
        let stack = Stack::new(self.stack_bytes.unwrap_or(stack::DEFAULT_BYTES));
        // With a limit of memory, values need not be gone over at each call.
        let sizes = Sizes { strict: self.sizes.strict && self.limits.heap.is_none(), ..self.sizes };
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
        let memory = self.modules.into_iter().collect();
        let modules = Arc::new(Mutex::new(Modules::new(self.roots, memory, sizes.modules)));
        let engine = Arc::new(interpreter::engine(&host, &modules, &sizes, self.registrations));
        *host.interpreter.lock() = Arc::downgrade(&engine);
        let lasting = Lasting::new(&engine);
        let mut session = Session::new(engine, host, modules, lasting);
        session.scope.push_constant("args", arguments::words(&session.host));
        if let Some(device) = self.device {
            let found = crate::script::bind::convert::device(&session.host, &Dynamic::from(device));
            session.host.rt.set_default_device(found.map_err(|diag| session.error(diag))?);
        }
        Ok(session)
    }
}

/// Warnings go to whoever listens; streams are called what the script calls them.
fn listen(host: &Arc<Host>, warnings: Option<Warn>) {
    if let Some(tell) = warnings {
        let sources = host.sources.clone();
        host.rt.on_warning(Box::new(move |diag| tell(&Error::new(diag, &sources.read()))));
    }
    host.rt.name_streams(Box::new(crate::script::cuda_api::devices::Names(host.sources.clone())));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rhai goes over the whole of a value at each call that may change it, once it has a limit of sizes.
    #[test]
    fn values_are_gone_over_at_each_call_only_where_nothing_else_holds_them() {
        let gone_over = |builder: Builder| {
            let session = builder.build().expect("a session starts");
            [session.engine.max_string_size(), session.engine.max_array_size(), session.engine.max_map_size()] != [0; 3]
        };
        assert!(!gone_over(Builder::default()));
        assert!(!gone_over(Builder::default().array_limit(1000).map_limit(10).string_limit(10)));
        assert!(gone_over(Builder::default().untrusted()));
    }
}
