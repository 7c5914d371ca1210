//! Replays repeated work of a stream as a CUDA graph.
//!
//! A replay belongs to one place that queues the same commands each time. It receives each of them every time, and stores the
//! list of the last time. While the lists agree except for parameters of kernels, a graph of them is launched instead, with
//! the changed parameters written into it; where they differ, everything is queued as usual. So the device does the same work
//! with the same values either way, and no address has to stay the same: a graph whose addresses changed is only not worth
//! it. Does not know what the commands compute.
//!
//! Cost: a launch takes 2.4 µs of the host, a graph of any length 1.1 µs, and a kernel whose parameters changed 0.35 µs more
//! (H100). So a graph is worth it also where all parameters change.

use super::blas::{Outcome, Product};
use super::dnn::{Addresses, Convolution, Run};
use super::error::DriverError;
use super::graph::{Graph, Node};
use super::launch::Shape;
use super::module::Function;
use super::stream::Stream;
use std::sync::Arc;

/// Bound: commands below which starting a graph costs as much as queueing them.
const COMMANDS_MIN: usize = 3;
/// Bound: times that lists agree before a graph is made, which costs as much as some 100 launches. It doubles each time that
/// a graph was made in vain: was started less often than pays for it.
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

/// One thing that a stream does.
enum Command {
    Kernel {
        function: &'static Function,
        shape: Shape,
        /// All parameters, each at its offset.
        bytes: Vec<u8>,
        /// They are not those in the graph.
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
    /// A product that the library did not take.
    Declined(Product),
    Convolution(Box<Run>),
}

/// What is needed besides a stream: the vendor's libraries.
pub trait Products {
    /// Queues a product.
    fn queue(&mut self, product: &Product, stream: &Stream) -> Result<Outcome, DriverError>;
    /// Queues a convolution.
    fn convolve(&mut self, run: &Run, stream: &Stream) -> Result<Outcome, DriverError>;
}

/// The commands of one place, and their graph when there is one.
pub struct Replay {
    commands: Vec<Command>,
    /// Where they go this time.
    stream: Option<Arc<Stream>>,
    graph: Option<Made>,
    /// Commands that were queued this time.
    at: usize,
    /// Nothing is queued yet: all so far agrees with the graph.
    following: bool,
    /// This time's list is another than the last.
    differs: bool,
    /// Times in a row that lists agreed.
    agreed: u32,
    patience: u32,
    /// How often the graph was started.
    starts: u32,
}

/// A graph with the node of each kernel.
struct Made {
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
            following: false,
            differs: false,
            agreed: 0,
            patience: PATIENCE,
            starts: 0,
        }
    }
}

impl Replay {
    /// The kernel of a text that comes next, if it came here the last time: nobody need look for it.
    pub fn expected(&self, key: u128, entry: &str) -> Option<&'static Function> {
        match self.commands.get(self.at) {
            Some(Command::Kernel { function, .. }) if function.is(key, entry) => Some(function),
            _ => None,
        }
    }

    /// The scratch memory of the convolution that comes next, if it came here the last time: nobody need ask for it.
    pub fn expected_scratch(&self, convolution: &Convolution, at: &Addresses) -> Option<usize> {
        match self.commands.get(self.at) {
            Some(Command::Convolution(run)) if run.at == *at && run.convolution == *convolution => {
                Some(run.workspace.bytes)
            }
            _ => None,
        }
    }

    /// The commands come again, from the first.
    pub fn begin(&mut self, stream: &Arc<Stream>) {
        self.stream = Some(stream.clone());
        (self.at, self.differs) = (0, false);
        self.following = self.graph.is_some();
    }

    /// Gives the graph up; it is made again when it is worth it.
    pub fn forget(&mut self) {
        (self.graph, self.agreed) = (None, 0);
    }

    /// What is not recorded here comes next on the stream: everything so far is queued now, and nothing more is replayed
    /// this time.
    pub fn step_aside(&mut self, products: &mut dyn Products) -> Result<(), DriverError> {
        self.differs = true;
        self.catch_up(products)
    }

    fn stream(&self) -> Result<Arc<Stream>, DriverError> {
        self.stream.clone().ok_or(DriverError::refused("cuLaunchKernel", "there is no stream"))
    }

    /// Queues what was held back.
    fn catch_up(&mut self, products: &mut dyn Products) -> Result<(), DriverError> {
        if !std::mem::take(&mut self.following) {
            return Ok(());
        }
        let stream = self.stream()?;
        self.commands[..self.at].iter().try_for_each(|command| command.queue(&stream, products))
    }

    /// The list of the last time ends here: another command comes than then.
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

    /// A kernel comes next.
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
                if other.is_some() || self.following {
                    self.diverge(products)?;
                }
                let mut bytes = vec![0; launch.function.parameter_bytes()];
                given().for_each(|(range, now)| bytes[range].copy_from_slice(now));
                self.add(Command::Kernel { function: launch.function, shape: launch.shape, bytes, changed: true });
            }
        }
        self.pass(products)
    }

    /// A fill comes next.
    pub fn fill(
        &mut self,
        (at, byte, bytes): (u64, u8, usize),
        products: &mut dyn Products,
    ) -> Result<(), DriverError> {
        self.exactly(Command::Fill { at, byte, bytes }, products)
    }

    /// A copy within the device comes next.
    pub fn copy(
        &mut self,
        (to, from, bytes): (u64, u64, usize),
        products: &mut dyn Products,
    ) -> Result<(), DriverError> {
        self.exactly(Command::Copy { to, from, bytes }, products)
    }

    /// A product comes next, if the library takes it.
    pub fn product(&mut self, product: &Product, products: &mut dyn Products) -> Result<Outcome, DriverError> {
        match self.commands.get(self.at) {
            Some(Command::Declined(known)) if known == product => {
                self.at += 1;
                return Ok(Outcome::Unsupported);
            }
            Some(Command::Product(known)) if known == product => {
                return self.pass(products).map(|()| Outcome::Queued);
            }
            None if !self.following => {}
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

    /// A convolution comes next, for which the library has a way. Told only if it is taken.
    pub fn convolution(&mut self, run: &Run, products: &mut dyn Products) -> Result<Outcome, DriverError> {
        match self.commands.get(self.at) {
            Some(Command::Convolution(known)) if **known == *run => {
                return self.pass(products).map(|()| Outcome::Queued);
            }
            None if !self.following => {}
            _ => self.diverge(products)?,
        }
        let outcome = products.convolve(run, &*self.stream()?)?;
        if outcome == Outcome::Queued {
            self.add(Command::Convolution(Box::new(*run)));
            self.at += 1;
        }
        Ok(outcome)
    }

    /// A command without parameters that a graph could be given.
    fn exactly(&mut self, command: Command, products: &mut dyn Products) -> Result<(), DriverError> {
        match self.commands.get(self.at) {
            Some(known) if known.is(&command) => {}
            known => {
                if known.is_some() || self.following {
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

    /// The command at hand is done, or held back.
    fn pass(&mut self, products: &mut dyn Products) -> Result<(), DriverError> {
        self.at += 1;
        if self.following { Ok(()) } else { self.commands[self.at - 1].queue(&*self.stream()?, products) }
    }

    /// All commands were recorded. Where they agree with the graph it is started now; where they have agreed for a while, a
    /// graph is made for the times to come with the help of `recorder`: a stream that does nothing else, of the priority of
    /// this one, and what counts graphs; none where there is to be no further graph.
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
        if self.following {
            self.following = false;
            if self.start().is_ok() {
                self.starts = self.starts.saturating_add(1);
                return Ok(Counts { queued: 0, replayed: commands });
            }
            // What a graph refuses is queued one by one, for good.
            self.forget();
            self.patience = PATIENCE_MAX;
            self.following = true;
        }
        self.catch_up(products)?;
        let wanted = self.graph.is_none() && self.agreed >= self.patience && self.commands.len() >= COMMANDS_MIN;
        if wanted && let Some((recorder, token)) = recorder() {
            if self.make(&recorder, products, token).is_err() {
                self.patience = PATIENCE_MAX;
            }
            self.agreed = 0;
        }
        Ok(Counts { queued: commands, replayed: 0 })
    }

    /// Writes changed parameters into the graph and starts it.
    fn start(&mut self) -> Result<(), DriverError> {
        let stream = self.stream()?;
        let Some(Made { graph, nodes, .. }) = &mut self.graph else {
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

    /// Records the commands once more, on a stream that does nothing else, and makes a graph of them.
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
        self.graph = Some(Made { graph: recording.instantiate()?, nodes, _token: token });
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
            Command::Convolution(run) => match products.convolve(run, stream)? {
                Outcome::Queued => Ok(()),
                Outcome::Unsupported => {
                    Err(DriverError::refused("cudnnBackendExecute", "a convolution that was taken before"))
                }
            },
        }
    }
}
