//! cuDNN, if it is installed. Here convolutions: forward, dgrad and wgrad; recurrent layers are in
//! `recurrent`. The library is loaded for the first one. Knows no tensors: images are addresses, sizes and strides.
//!
//! Only engines whose precision the caller allows are used, and where it says so only deterministic ones. The library's
//! heuristic chooses one by the sizes; nothing is timed, so a script uses the same engine in every run.

use super::blas::{Element, Outcome, Precision, Workspace};
use super::context::Context;
use super::error::DriverError;
use super::stream::Stream;
use backend::{
    Address, DataType, Descriptor, Functions, Handle, HeuristicMode, Kind, Mode, Note, Raw, Value, attribute,
};
use std::collections::HashMap;
use std::ffi::c_void;

mod backend;
pub mod recurrent;

/// What to do where cuDNN is missing, in one line.
pub const REMEDY: &str =
    "pip install nvidia-cudnn-cu13, or NVIDIA's packages for your system; without it, slower kernels of our own run";

/// Plans in the cache. Bound: as for matrix products; a plan costs 1 to 100 ms, since some are compiled.
const PLANS_MAX: usize = 1024;
/// Engine configurations that are examined. Bound: the library has some hundred; those for tensor cores come first.
const CONFIGS_MAX: usize = 1024;
/// Scratch memory that an engine may use, beside twice the bytes of the images. Bound: copies in another layout need as
/// much as the images; engines that need more use im2col, and are slow.
const SCRATCH_BYTES: usize = 256 << 20;

/// Which of the three images is computed from the other two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// `y` from `x` and `w`.
    Forward,
    /// The gradient of `x`, from those of `y` and `w`.
    InputGradient,
    /// The gradient of `w`, from `x` and the gradient of `y`.
    WeightGradient,
}

/// Sizes and strides in elements: batch or filters, channels, then two or three spatial dims; the rest is unused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Image {
    pub sizes: [i64; 5],
    pub strides: [i64; 5],
}

impl Image {
    /// Row-major and contiguous.
    pub fn dense(sizes: [i64; 5], dims: usize) -> Image {
        let mut strides = [1; 5];
        for at in (0..dims + 1).rev() {
            strides[at] = strides[at + 1] * sizes[at + 1];
        }
        Image { sizes, strides }
    }

    /// Contiguous with the second dim innermost.
    pub fn channels_last(sizes: [i64; 5], dims: usize) -> Image {
        let mut strides = [1; 5];
        let mut inside = sizes[1];
        for at in (2..dims + 2).rev().chain([0]) {
            strides[at] = inside;
            inside *= sizes[at];
        }
        Image { sizes, strides }
    }
}

/// A cross-correlation, which neural networks call convolution. Its number of groups is the channels of `x` divided by
/// those of `w`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Convolution {
    pub direction: Direction,
    pub element: Element,
    pub precision: Precision,
    /// Whether the result must be the same in each run: some engines add with atomics.
    pub deterministic: bool,
    /// Spatial dims, 2 or 3; a convolution of one dim is one of two with a size of 1.
    pub dims: usize,
    pub x: Image,
    pub w: Image,
    pub y: Image,
    pub stride: [i64; 3],
    pub padding: [i64; 3],
    pub dilation: [i64; 3],
}

impl Convolution {
    /// The bytes of x and y.
    pub fn image_bytes(&self) -> usize {
        let elements = |image: &Image| image.sizes[..self.dims + 2].iter().map(|&n| n as usize).product::<usize>();
        (elements(&self.x) + elements(&self.y)) * self.element.bytes()
    }
}

/// Device addresses of the images.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Addresses {
    pub x: u64,
    pub w: u64,
    pub y: u64,
}

/// A convolution with all the memory that it uses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Run {
    pub convolution: Convolution,
    pub at: Addresses,
    /// As large as [`Dnn::scratch`] says.
    pub workspace: Workspace,
}

/// cuDNN on one device, with a cache of plans.
///
/// One handle serves all streams: the stream is set before each call, and the caller provides the workspace, so that
/// convolutions of two streams share nothing.
pub struct Dnn {
    context: &'static Context,
    functions: &'static Functions,
    handle: Handle,
    stream: *mut c_void,
    plans: HashMap<Key, Option<Plan>>,
    /// Recurrent layers.
    layers: HashMap<recurrent::Recurrent, Option<recurrent::Plan>>,
}

// SAFETY: the handle may be used from any thread, by one at a time, which `&mut` gives.
unsafe impl Send for Dnn {}

/// A convolution and the alignments of its addresses.
type Key = (Convolution, [i64; 3]);

/// An execution plan of one convolution.
struct Plan {
    plan: Descriptor,
    /// Scratch memory that it needs.
    bytes: usize,
    /// The plan refers to it.
    _config: Descriptor,
}

/// The unique ids of x, w and y in a plan.
const IDS: [i64; 3] = [1, 2, 3];

fn key(convolution: &Convolution, at: &Addresses) -> Key {
    let aligned = |address: u64| 1i64 << address.trailing_zeros().min(4);
    (*convolution, [at.x, at.w, at.y].map(aligned))
}

impl Dnn {
    /// The library for this device. `None`: it is not found, or is too old.
    pub fn open(context: &'static Context) -> Result<Option<Dnn>, DriverError> {
        let Some(functions) = Functions::load() else { return Ok(None) };
        context.make_current()?;
        let handle = functions.handle()?;
        let (plans, layers) = (HashMap::new(), HashMap::new());
        Ok(Some(Dnn { context, functions, handle, stream: std::ptr::null_mut(), plans, layers }))
    }

    /// Bytes of scratch memory that a convolution needs. `None`: the library has no suitable engine. Cost: 1 to 100 ms
    /// for a new shape, a look-up for a known one.
    pub fn scratch(&mut self, convolution: &Convolution, at: &Addresses) -> Result<Option<usize>, DriverError> {
        if !(2..=3).contains(&convolution.dims) {
            return Ok(None);
        }
        let key = key(convolution, at);
        if let Some(known) = self.plans.get(&key) {
            return Ok(known.as_ref().map(|plan| plan.bytes));
        }
        self.context.make_current()?;
        if self.plans.len() >= PLANS_MAX {
            self.plans.clear();
        }
        let plan = Plan::choose(self.functions, self.handle, &key);
        Ok(self.plans.entry(key).or_insert(plan).as_ref().map(|plan| plan.bytes))
    }

    /// Queues a convolution on a stream of this device. Cost: that of `scratch`, and some microseconds in addition to
    /// the launch.
    pub fn convolve(&mut self, run: &Run, stream: &Stream) -> Result<Outcome, DriverError> {
        let Run { convolution, at, workspace } = run;
        let key = key(convolution, at);
        if !self.plans.contains_key(&key) {
            self.scratch(convolution, at)?;
        }
        if self.plans.get(&key).is_none_or(|plan| plan.as_ref().is_none_or(|plan| plan.bytes > workspace.bytes)) {
            return Ok(Outcome::Unsupported);
        }
        self.context.make_current()?;
        self.use_stream(stream)?;
        let Some(Some(plan)) = self.plans.get(&key) else { return Ok(Outcome::Unsupported) };
        let pack = Descriptor::new(self.functions, Kind::VariantPack)?;
        pack.set(attribute::PACK_IDS, &IDS)?;
        pack.set(attribute::PACK_POINTERS, &[at.x, at.w, at.y].map(Address))?;
        pack.set(attribute::PACK_WORKSPACE, &[Address(workspace.address)])?;
        let pack = pack.finish()?;
        // SAFETY: handle, plan and pack are alive and finished; addresses are the device's.
        match unsafe { self.functions.execute(self.handle, &plan.plan, &pack) } {
            Ok(()) => Ok(Outcome::Queued),
            Err(error) if backend::is_unsupported(&error) => {
                self.plans.insert(key, None);
                Ok(Outcome::Unsupported)
            }
            Err(error) => Err(error),
        }
    }

    /// What is queued next goes to this stream.
    fn use_stream(&mut self, stream: &Stream) -> Result<(), DriverError> {
        if self.stream != stream.raw() {
            // SAFETY: both are alive; the stream is set anew before each use of another.
            unsafe { self.functions.set_stream(self.handle, stream.raw()) }?;
            self.stream = stream.raw();
        }
        Ok(())
    }

    /// Number of shapes planned so far.
    pub fn plans(&self) -> usize {
        self.plans.len()
    }
}

impl Drop for Dnn {
    fn drop(&mut self) {
        self.plans.clear();
        self.layers.clear();
        if self.context.make_current().is_ok() {
            // SAFETY: the handle is alive, and nobody can use it after this.
            unsafe { self.functions.destroy(self.handle) };
        }
    }
}

impl Plan {
    /// The library's first choice among engines that are allowed and within the limit of scratch
    /// memory. `None` also if the library cannot describe or plan the convolution.
    fn choose(functions: &'static Functions, handle: Handle, key: &Key) -> Option<Plan> {
        let convolution = &key.0;
        let graph = Graph::new(functions, handle, key).ok()?;
        // CUDNN_HEUR_MODE_A, then CUDNN_HEUR_MODE_FALLBACK.
        for mode in [3, 2] {
            for config in graph.configs(functions, HeuristicMode(mode)).unwrap_or_default() {
                if !is_allowed(functions, &config, convolution) {
                    continue;
                }
                if let Ok((plan, bytes)) = plan(functions, handle, &config)
                    && bytes <= 2 * convolution.image_bytes() + SCRATCH_BYTES
                {
                    return Some(Plan { plan, bytes, _config: config });
                }
            }
        }
        None
    }
}

fn plan(
    functions: &'static Functions,
    handle: Handle,
    config: &Descriptor,
) -> Result<(Descriptor, usize), DriverError> {
    let plan = Descriptor::new(functions, Kind::Plan)?;
    plan.set(attribute::PLAN_HANDLE, &[handle])?;
    plan.set(attribute::PLAN_CONFIG, &[config.raw()])?;
    let plan = plan.finish()?;
    let mut bytes = [0i64];
    plan.get(attribute::PLAN_WORKSPACE_SIZE, &mut bytes)?;
    Ok((plan, bytes[0].max(0) as usize))
}

/// Whether an engine is as precise, and as deterministic, as required, by the numerical notes that the library gives on it.
fn is_allowed(functions: &'static Functions, config: &Descriptor, convolution: &Convolution) -> bool {
    const TENSOR_CORE: Note = Note(0);
    const DOWN_CONVERT_INPUTS: Note = Note(1);
    const REDUCED_PRECISION_REDUCTION: Note = Note(2);
    // An FFT spreads the rounding error of one element over the whole image.
    const FFT: Note = Note(3);
    const NONDETERMINISTIC: Note = Note(4);
    const WINOGRAD: Note = Note(5);
    const WINOGRAD_TILE_13X13: Note = Note(8);
    let notes = || {
        let engine = Descriptor::new(functions, Kind::Engine)?;
        config.get(attribute::CONFIG_ENGINE, &mut [engine.raw()])?;
        let mut notes = [Note(-1); 32];
        let count = engine.get(attribute::ENGINE_NUMERICAL_NOTE, &mut notes)?;
        Ok::<_, DriverError>(notes[..count.min(notes.len())].to_vec())
    };
    let Ok(notes) = notes() else { return false };
    let never = [DOWN_CONVERT_INPUTS, REDUCED_PRECISION_REDUCTION, FFT, WINOGRAD_TILE_13X13];
    // Winograd's transformed inputs would be rounded to 16 bits.
    let short = matches!(convolution.element, Element::F16 | Element::Bf16);
    let whole = convolution.element == Element::F32 && convolution.precision == Precision::Full;
    let forbidden = |note: &Note| {
        never.contains(note)
            || convolution.deterministic && *note == NONDETERMINISTIC
            || short && *note == WINOGRAD
            || whole && *note == TENSOR_CORE
    };
    !notes.iter().any(forbidden)
}

/// The library's operation graph of a convolution, and the descriptors that it refers to.
struct Graph {
    graph: Descriptor,
    _parts: Vec<Descriptor>,
}

impl Graph {
    fn new(functions: &'static Functions, handle: Handle, key: &Key) -> Result<Graph, DriverError> {
        let (convolution, alignments) = key;
        let images = [&convolution.x, &convolution.w, &convolution.y];
        let mut parts = Vec::new();
        for ((image, id), alignment) in images.into_iter().zip(IDS).zip(alignments) {
            parts.push(tensor(functions, convolution, image, id, *alignment)?);
        }
        parts.push(description(functions, convolution)?);
        let [x, w, y, described] = [0, 1, 2, 3].map(|at: usize| parts[at].raw());
        let operation = match convolution.element {
            Element::F64 => operation(functions, convolution.direction, described, [w, x, y], 1.0f64, 0.0)?,
            _ => operation(functions, convolution.direction, described, [w, x, y], 1.0f32, 0.0)?,
        };
        let graph = Descriptor::new(functions, Kind::Graph)?;
        graph.set(attribute::GRAPH_HANDLE, &[handle])?;
        graph.set(attribute::GRAPH_OPERATIONS, &[operation.raw()])?;
        parts.push(operation);
        Ok(Graph { graph: graph.finish()?, _parts: parts })
    }

    /// The library's engine configurations, best first.
    fn configs(&self, functions: &'static Functions, mode: HeuristicMode) -> Result<Vec<Descriptor>, DriverError> {
        let heuristic = Descriptor::new(functions, Kind::Heuristic)?;
        heuristic.set(attribute::HEURISTIC_GRAPH, &[self.graph.raw()])?;
        heuristic.set(attribute::HEURISTIC_MODE, &[mode])?;
        let heuristic = heuristic.finish()?;
        let count = heuristic.get::<Raw>(attribute::HEURISTIC_RESULTS, &mut [])?.min(CONFIGS_MAX);
        let descriptor = (0..count).map(|_| Descriptor::new(functions, Kind::EngineConfig));
        let mut configs = descriptor.collect::<Result<Vec<_>, _>>()?;
        let mut raw: Vec<Raw> = configs.iter().map(Descriptor::raw).collect();
        let count = heuristic.get(attribute::HEURISTIC_RESULTS, &mut raw)?;
        configs.truncate(count);
        Ok(configs)
    }
}

fn data_type(element: Element) -> DataType {
    DataType(match element {
        Element::F32 => 0,
        Element::F64 => 1,
        Element::F16 => 2,
        Element::Bf16 => 9,
    })
}

fn tensor(
    functions: &'static Functions,
    convolution: &Convolution,
    image: &Image,
    id: i64,
    alignment: i64,
) -> Result<Descriptor, DriverError> {
    let dims = convolution.dims + 2;
    let tensor = Descriptor::new(functions, Kind::Tensor)?;
    tensor.set(attribute::TENSOR_DATA_TYPE, &[data_type(convolution.element)])?;
    tensor.set(attribute::TENSOR_DIMENSIONS, &image.sizes[..dims])?;
    tensor.set(attribute::TENSOR_STRIDES, &image.strides[..dims])?;
    tensor.set(attribute::TENSOR_ID, &[id])?;
    tensor.set(attribute::TENSOR_ALIGNMENT, &[alignment])?;
    tensor.finish()
}

fn description(functions: &'static Functions, convolution: &Convolution) -> Result<Descriptor, DriverError> {
    const CROSS_CORRELATION: Mode = Mode(1);
    let dims = convolution.dims;
    let sums = if convolution.element == Element::F64 { Element::F64 } else { Element::F32 };
    let described = Descriptor::new(functions, Kind::Convolution)?;
    described.set(attribute::CONVOLUTION_COMP_TYPE, &[data_type(sums)])?;
    described.set(attribute::CONVOLUTION_CONV_MODE, &[CROSS_CORRELATION])?;
    described.set(attribute::CONVOLUTION_SPATIAL_DIMS, &[dims as i64])?;
    described.set(attribute::CONVOLUTION_DILATIONS, &convolution.dilation[..dims])?;
    described.set(attribute::CONVOLUTION_FILTER_STRIDES, &convolution.stride[..dims])?;
    described.set(attribute::CONVOLUTION_PRE_PADDINGS, &convolution.padding[..dims])?;
    described.set(attribute::CONVOLUTION_POST_PADDINGS, &convolution.padding[..dims])?;
    described.finish()
}

/// `wxy`: the descriptors of weights, input and output.
fn operation<T: Value>(
    functions: &'static Functions,
    direction: Direction,
    described: Raw,
    wxy: [Raw; 3],
    alpha: T,
    beta: T,
) -> Result<Descriptor, DriverError> {
    let (kind, names) = match direction {
        Direction::Forward => (Kind::Forward, attribute::FORWARD),
        Direction::InputGradient => (Kind::BackwardData, attribute::BACKWARD_DATA),
        Direction::WeightGradient => (Kind::BackwardFilter, attribute::BACKWARD_FILTER),
    };
    let operation = Descriptor::new(functions, kind)?;
    operation.set(names[0], &[alpha])?;
    operation.set(names[1], &[beta])?;
    operation.set(names[2], &[described])?;
    for (name, image) in names[3..].iter().zip(wxy) {
        operation.set(*name, &[image])?;
    }
    operation.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image([n, c, h, w]: [i64; 4]) -> Image {
        Image::dense([n, c, h, w, 1], 2)
    }

    /// Descriptors need only the library, no GPU: it checks every attribute, and that the sizes match.
    #[test]
    fn the_library_takes_our_descriptions() {
        let Some(functions) = Functions::load() else { return eprintln!("cuDNN is not installed: nothing was tested") };
        let convolution = Convolution {
            direction: Direction::Forward,
            element: Element::F32,
            precision: Precision::Full,
            deterministic: true,
            dims: 2,
            x: image([2, 4, 9, 7]),
            w: image([6, 4, 3, 3]),
            y: image([2, 6, 9, 7]),
            stride: [1; 3],
            padding: [1, 1, 0],
            dilation: [1; 3],
        };
        for direction in [Direction::Forward, Direction::InputGradient, Direction::WeightGradient] {
            let images = [&convolution.w, &convolution.x, &convolution.y].into_iter().zip([2, 1, 3]);
            let descriptor =
                images.map(|(image, id)| tensor(functions, &convolution, image, id, 16).expect("a tensor"));
            let descriptor: Vec<Descriptor> = descriptor.collect();
            let described = description(functions, &convolution).expect("a convolution");
            let wxy = [descriptor[0].raw(), descriptor[1].raw(), descriptor[2].raw()];
            operation(functions, direction, described.raw(), wxy, 1.0f32, 0.0).expect("an operation");
            if direction == Direction::Forward {
                let wrong = [descriptor[0].raw(), descriptor[1].raw(), descriptor[0].raw()];
                let refused = operation(functions, direction, described.raw(), wrong, 1.0f32, 0.0);
                assert!(refused.is_err_and(|error| error.name.starts_with("CUDNN_STATUS")));
            }
        }
    }
}
