//! Replays repeated work of a stream as a CUDA graph.
//!
//! A replay belongs to one caller (a planned window) that queues the same commands each time. It receives all of them
//! every time, and stores the list of the last time. While the lists agree except for parameters of kernels, a graph of
//! them is launched instead, with the changed parameters written into it; if they differ, everything is queued as
//! usual. So the device does the same work with the same values either way, and addresses may change. Does not know
//! what the commands compute.
//!
//! Cost: a launch takes 2.4 µs of the host, a graph of any length 1.1 µs, and a kernel whose parameters changed 0.35 µs
//! more (H100). So a graph pays even if all parameters change.

use super::blas::{Outcome, Product};
use super::dnn::{Addresses, Convolution, Run};
use super::error::DriverError;
use super::fft;
use super::graph::{Graph, Node};
use super::launch::Shape;
use super::module::Function;
use super::stream::Stream;
use std::sync::Arc;

/// Bound: commands below which launching a graph costs as much as queueing them.
const COMMANDS_MIN: usize = 3;
/// Bound: times that lists agree before a graph is made, which costs as much as about 100 launches. It doubles each
/// time that a graph was discarded before it was launched often enough to pay for itself.
const PATIENCE: u32 = 3;
const STARTS_MIN: u32 = 8;
const PATIENCE_MAX: u32 = 1 << 12;

/// A kernel to be launched.
#[derive(Clone, Copy)]
pub struct Launch<'a> {
    pub function: &'static Function,
    pub shape: Shape,
    /// The bytes of each parameter.
    pub parameters: &'a [&'a [u8]],
}

/// One command of a stream.
enum Command {
    Kernel {
        function: &'static Function,
        shape: Shape,
        /// The values of all parameters, each at its offset.
        bytes: Vec<u8>,
        /// They differ from those in the graph.
        changed: bool,
    },
    Fill {
        at: u64,
        byte: u8,
        bytes: usize,
    },
    Copy {
        to: u64,
        from: u64,
        bytes: usize,
    },
    Product(Product),
    /// A product that the library does not support.
    Declined(Product),
    Convolution(Box<Run>),
    /// It holds the plan, whose tables a graph reads.
    Transform(Box<fft::Run>),
}

/// The vendor's libraries, which are needed beside the stream.
pub trait Products {
    /// Queues a product.
    fn queue(&mut self, product: &Product, stream: &Stream) -> Result<Outcome, DriverError>;
    /// Queues a convolution.
    fn convolve(&mut self, run: &Run, stream: &Stream) -> Result<Outcome, DriverError>;
    /// Queues a Fourier transform.
    fn transform(&mut self, run: &fft::Run, stream: &Stream) -> Result<(), DriverError>;
}

/// The commands of one caller, and their graph if there is one.
pub struct Replay {
    commands: Vec<Command>,
    /// The stream of this run.
    stream: Option<Arc<Stream>>,
    graph: Option<Instantiated>,
    /// Number of commands received in this run.
    at: usize,
    /// Nothing is queued yet in this run: all commands so far agree with the graph.
    is_deferred: bool,
    /// The list of this run differs from that of the last.
    differs: bool,
    /// Consecutive runs whose lists agreed.
    agreed: u32,
    patience: u32,
    /// How often the graph was launched.
    starts: u32,
}

/// A graph with the node of each kernel.
struct Instantiated {
    graph: Graph,
    nodes: Vec<Option<Node>>,
    /// Counts graphs.
    _token: Arc<()>,
}

/// How often commands were queued one by one, and how often as a graph.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub queued: u64,
    pub replayed: u64,
}

impl Default for Replay {
    fn default() -> Replay {
        Replay {
            commands: Vec::new(),
            stream: None,
            graph: None,
            at: 0,
            is_deferred: false,
            differs: false,
            agreed: 0,
            patience: PATIENCE,
            starts: 0,
        }
    }
}

impl Replay {
    /// The kernel that is expected next, if it is this one: saves the look-up.
    pub fn expected(&self, key: u128, entry: &str) -> Option<&'static Function> {
        match self.commands.get(self.at) {
            Some(Command::Kernel { function, .. }) if function.is(key, entry) => Some(function),
            _ => None,
        }
    }

    /// The scratch memory of the convolution that is expected next, if it is this one: saves the query.
    pub fn expected_scratch(&self, convolution: &Convolution, at: &Addresses) -> Option<usize> {
        match self.commands.get(self.at) {
            Some(Command::Convolution(run)) if run.at == *at && run.convolution == *convolution => {
                Some(run.workspace.bytes)
            }
            _ => None,
        }
    }

    /// Begins a run.
    pub fn begin(&mut self, stream: &Arc<Stream>) {
        self.stream = Some(stream.clone());
        (self.at, self.differs) = (0, false);
        self.is_deferred = self.graph.is_some();
    }

    /// Discards the graph; a new one is made later if it pays.
    pub fn forget(&mut self) {
        (self.graph, self.agreed) = (None, 0);
    }

    /// Called before work that is not recorded here is queued on the stream: queues all commands so far, and replays
    /// nothing more in this run.
    pub fn stop_replay(&mut self, products: &mut dyn Products) -> Result<(), DriverError> {
        self.differs = true;
        self.catch_up(products)
    }

    fn stream(&self) -> Result<Arc<Stream>, DriverError> {
        self.stream.clone().ok_or(DriverError::refused("cuLaunchKernel", "there is no stream"))
    }

    /// Queues the commands that were deferred.
    fn catch_up(&mut self, products: &mut dyn Products) -> Result<(), DriverError> {
        if !std::mem::take(&mut self.is_deferred) {
            return Ok(());
        }
        let stream = self.stream()?;
        self.commands[..self.at].iter().try_for_each(|command| command.queue(&stream, products))
    }

    /// Truncates the list of the last run here: the next command differs.
    fn diverge(&mut self, products: &mut dyn Products) -> Result<(), DriverError> {
        let done = self.catch_up(products);
        self.commands.truncate(self.at);
        self.differs = true;
        if self.graph.take().is_some() {
            let in_vain = self.starts < STARTS_MIN;
            self.patience = if in_vain { (self.patience * 2).min(PATIENCE_MAX) } else { PATIENCE };
        }
        done
    }

    /// The next command is a kernel.
    pub fn kernel(&mut self, launch: &Launch<'_>, products: &mut dyn Products) -> Result<(), DriverError> {
        let offsets = launch.function.parameters();
        let fits = |((_, size), given): (&(usize, usize), &&[u8])| *size == given.len();
        if offsets.len() != launch.parameters.len() || !offsets.iter().zip(launch.parameters).all(fits) {
            return Err(DriverError::refused("cuLaunchKernel", "the kernel has other parameters"));
        }
        let given = || offsets.iter().map(|(offset, size)| *offset..offset + size).zip(launch.parameters);
        match self.commands.get_mut(self.at) {
            Some(Command::Kernel { function, shape, bytes, changed })
                if std::ptr::eq(*function, launch.function) && *shape == launch.shape =>
            {
                if given().any(|(range, now)| bytes[range] != **now) {
                    given().for_each(|(range, now)| bytes[range].copy_from_slice(now));
                    *changed = true;
                }
            }
            other => {
                if other.is_some() || self.is_deferred {
                    self.diverge(products)?;
                }
                let mut bytes = vec![0; launch.function.parameter_bytes()];
                given().for_each(|(range, now)| bytes[range].copy_from_slice(now));
                self.add(Command::Kernel { function: launch.function, shape: launch.shape, bytes, changed: true });
            }
        }
        self.pass(products)
    }

    /// The next command is a fill.
    pub fn fill(
        &mut self,
        (at, byte, bytes): (u64, u8, usize),
        products: &mut dyn Products,
    ) -> Result<(), DriverError> {
        self.exactly(Command::Fill { at, byte, bytes }, products)
    }

    /// The next command is a copy within the device.
    pub fn copy(
        &mut self,
        (to, from, bytes): (u64, u64, usize),
        products: &mut dyn Products,
    ) -> Result<(), DriverError> {
        self.exactly(Command::Copy { to, from, bytes }, products)
    }

    /// The next command is a product, if the library supports it.
    pub fn product(&mut self, product: &Product, products: &mut dyn Products) -> Result<Outcome, DriverError> {
        match self.commands.get(self.at) {
            Some(Command::Declined(known)) if known == product => {
                self.at += 1;
                return Ok(Outcome::Unsupported);
            }
            Some(Command::Product(known)) if known == product => {
                return self.pass(products).map(|()| Outcome::Queued);
            }
            None if !self.is_deferred => {}
            _ => self.diverge(products)?,
        }
        let outcome = products.queue(product, &*self.stream()?)?;
        self.add(match outcome {
            Outcome::Queued => Command::Product(*product),
            Outcome::Unsupported => Command::Declined(*product),
        });
        self.at += 1;
        Ok(outcome)
    }

    /// The next command is a convolution with a workspace that `scratch` returned. The outcome says whether the library
    /// supports it.
    pub fn convolution(&mut self, run: &Run, products: &mut dyn Products) -> Result<Outcome, DriverError> {
        match self.commands.get(self.at) {
            Some(Command::Convolution(known)) if **known == *run => {
                return self.pass(products).map(|()| Outcome::Queued);
            }
            None if !self.is_deferred => {}
            _ => self.diverge(products)?,
        }
        let outcome = products.convolve(run, &*self.stream()?)?;
        if outcome == Outcome::Queued {
            self.add(Command::Convolution(Box::new(*run)));
            self.at += 1;
        }
        Ok(outcome)
    }

    /// The next command is a Fourier transform.
    pub fn transform(&mut self, run: &fft::Run, products: &mut dyn Products) -> Result<(), DriverError> {
        match self.commands.get(self.at) {
            Some(Command::Transform(known)) if **known == *run => {}
            known => {
                if known.is_some() || self.is_deferred {
                    self.diverge(products)?;
                }
                self.add(Command::Transform(Box::new(run.clone())));
            }
        }
        self.pass(products)
    }

    /// A command without parameters that can change in a graph.
    fn exactly(&mut self, command: Command, products: &mut dyn Products) -> Result<(), DriverError> {
        match self.commands.get(self.at) {
            Some(known) if known.is(&command) => {}
            known => {
                if known.is_some() || self.is_deferred {
                    self.diverge(products)?;
                }
                self.add(command);
            }
        }
        self.pass(products)
    }

    fn add(&mut self, command: Command) {
        self.differs = true;
        self.commands.push(command);
    }

    /// Advances past the current command, which is queued or deferred.
    fn pass(&mut self, products: &mut dyn Products) -> Result<(), DriverError> {
        self.at += 1;
        if self.is_deferred { Ok(()) } else { self.commands[self.at - 1].queue(&*self.stream()?, products) }
    }

    /// Ends a run. If its commands agree with the graph, the graph is launched now; if they have agreed for `patience`
    /// runs, a graph is made for later runs. `recorder`: an idle stream of the same priority for the capture, and the
    /// token that counts graphs; `None` if no further graph may be made.
    pub fn end(
        &mut self,
        products: &mut dyn Products,
        recorder: &dyn Fn() -> Option<(Arc<Stream>, Arc<()>)>,
    ) -> Result<Counts, DriverError> {
        let commands = self.at as u64;
        let whole = self.at == self.commands.len();
        if !whole {
            self.diverge(products)?;
        }
        self.agreed = if self.differs { 0 } else { self.agreed.saturating_add(1) };
        if self.is_deferred {
            self.is_deferred = false;
            if self.start().is_ok() {
                self.starts = self.starts.saturating_add(1);
                return Ok(Counts { queued: 0, replayed: commands });
            }
            // Commands that cannot be captured are queued one by one from now on.
            self.forget();
            self.patience = PATIENCE_MAX;
            self.is_deferred = true;
        }
        self.catch_up(products)?;
        let makes_graph = self.graph.is_none() && self.agreed >= self.patience && self.commands.len() >= COMMANDS_MIN;
        if makes_graph && let Some((recorder, token)) = recorder() {
            if self.make(&recorder, products, token).is_err() {
                self.patience = PATIENCE_MAX;
            }
            self.agreed = 0;
        }
        Ok(Counts { queued: commands, replayed: 0 })
    }

    /// Writes changed parameters into the graph and launches it.
    fn start(&mut self) -> Result<(), DriverError> {
        let stream = self.stream()?;
        let Some(Instantiated { graph, nodes, .. }) = &mut self.graph else {
            return Err(DriverError::refused("cuGraphLaunch", "there is no graph"));
        };
        if self.commands.iter().any(Command::is_changed) {
            for (command, node) in self.commands.iter_mut().zip(nodes) {
                if let (Command::Kernel { function, shape, bytes, changed: changed @ true }, Some(node)) =
                    (command, node)
                {
                    graph.set_kernel(node, function, shape, bytes)?;
                    *changed = false;
                }
            }
        }
        graph.launch(&stream)
    }

    /// Captures the commands on an idle stream and instantiates a graph of them.
    fn make(&mut self, recorder: &Stream, products: &mut dyn Products, token: Arc<()>) -> Result<(), DriverError> {
        recorder.begin_recording()?;
        let mut nodes = Vec::with_capacity(self.commands.len());
        let mut recorded = Ok(());
        for command in &mut self.commands {
            recorded = command.queue(recorder, products);
            let node = match command {
                Command::Kernel { changed, .. } if recorded.is_ok() => {
                    *changed = false;
                    recorder.last_recorded().ok()
                }
                _ => None,
            };
            nodes.push(node);
            if recorded.is_err() {
                break;
            }
        }
        let recording = recorder.end_recording()?;
        recorded?;
        let complete = self.commands.iter().zip(&nodes).all(|(command, node)| !command.is_kernel() || node.is_some());
        if !complete {
            return Err(DriverError::refused("cuStreamGetCaptureInfo", "a kernel has no node"));
        }
        self.starts = 0;
        self.graph = Some(Instantiated { graph: recording.instantiate()?, nodes, _token: token });
        Ok(())
    }
}

impl Command {
    fn is_kernel(&self) -> bool {
        matches!(self, Command::Kernel { .. })
    }

    fn is_changed(&self) -> bool {
        matches!(self, Command::Kernel { changed: true, .. })
    }

    /// The same fill or copy.
    fn is(&self, other: &Command) -> bool {
        match (self, other) {
            (Command::Fill { at, byte, bytes }, Command::Fill { at: a, byte: b, bytes: n }) => {
                (at, byte, bytes) == (a, b, n)
            }
            (Command::Copy { to, from, bytes }, Command::Copy { to: t, from: f, bytes: n }) => {
                (to, from, bytes) == (t, f, n)
            }
            _ => false,
        }
    }

    fn queue(&self, stream: &Stream, products: &mut dyn Products) -> Result<(), DriverError> {
        match self {
            Command::Kernel { function, shape, bytes, .. } => stream.launch_packed(function, shape, bytes),
            Command::Fill { at, byte, bytes } => stream.fill(*at, *byte, *bytes),
            Command::Copy { to, from, bytes } => stream.copy(*to, *from, *bytes),
            Command::Product(product) => match products.queue(product, stream)? {
                Outcome::Queued => Ok(()),
                Outcome::Unsupported => Err(DriverError::refused("cublasLtMatmul", "a product that was taken before")),
            },
            Command::Declined(_) => Ok(()),
            Command::Transform(run) => products.transform(run, stream),
            Command::Convolution(run) => match products.convolve(run, stream)? {
                Outcome::Queued => Ok(()),
                Outcome::Unsupported => {
                    Err(DriverError::refused("cudnnBackendExecute", "a convolution that was taken before"))
                }
            },
        }
    }
}
