//! Launches as data, and the trait by which families of kernels use a device.

use crate::base::dtype::DType;
use crate::kernel::conv::geometry::Geometry;
use crate::kernel::recurrent::layer::Layer;
use std::borrow::Cow;
use std::fmt;

/// Complete CUDA text; `#include "name.cuh"` is resolved from `headers`.
#[derive(Clone, Debug)]
pub struct Source {
    pub text: Cow<'static, str>,
    /// Hash of the text: two sources with one key are the same. Headers are not in it; they are fixed for a build.
    pub key: u128,
}

impl Source {
    pub fn new(text: impl Into<Cow<'static, str>>) -> Source {
        let text = text.into();
        let key = fnv(text.as_bytes());
        Source { text, key }
    }
}

/// FNV-1a over 128 bits (Fowler, Noll, Vo; RFC 9923).
fn fnv(bytes: &[u8]) -> u128 {
    bytes.iter().fold(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d, |hash, &byte| {
        (hash ^ byte as u128).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b)
    })
}

/// One kernel parameter, passed by value.
#[derive(Clone, Copy, Debug)]
pub enum Param<'a> {
    Pointer(*const u8),
    U32(u32),
    U64(u64),
    I64(i64),
    F32(f32),
    F64(f64),
    /// A struct of 64-bit words.
    Words(&'a [u64]),
    /// The bytes of a value of another type.
    Bytes(&'a [u8]),
}

impl Param<'_> {
    /// Address of the parameter's bytes, for the driver's array of parameters.
    pub fn address(&self) -> *const u8 {
        match self {
            Param::Pointer(value) => (&raw const *value).cast(),
            Param::U32(value) => (&raw const *value).cast(),
            Param::U64(value) => (&raw const *value).cast(),
            Param::I64(value) => (&raw const *value).cast(),
            Param::F32(value) => (&raw const *value).cast(),
            Param::F64(value) => (&raw const *value).cast(),
            Param::Words(words) => words.as_ptr().cast(),
            Param::Bytes(bytes) => bytes.as_ptr(),
        }
    }

    /// The parameter's bytes.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: `address` points to `size_bytes` initialized bytes of this value, or of what it borrows.
        unsafe { std::slice::from_raw_parts(self.address(), self.size_bytes()) }
    }

    /// Size of the parameter in bytes.
    pub fn size_bytes(&self) -> usize {
        match self {
            Param::U32(_) | Param::F32(_) => 4,
            Param::Pointer(_) | Param::U64(_) | Param::I64(_) | Param::F64(_) => 8,
            Param::Words(words) => size_of_val(*words),
            Param::Bytes(bytes) => bytes.len(),
        }
    }
}

/// One kernel launch.
#[derive(Clone, Copy, Debug)]
pub struct Launch<'a> {
    pub source: &'a Source,
    /// Its `extern "C"` name in the text.
    pub entry: &'a str,
    pub grid: [u32; 3],
    pub block: [u32; 3],
    /// Dynamic shared memory.
    pub shared_bytes: u32,
    pub args: &'a [Param<'a>],
}

/// A matrix in device memory; strides count elements.
#[derive(Clone, Copy, Debug)]
pub struct Matrix {
    pub ptr: *mut u8,
    /// From one row to the next, from one column to the next, from one matrix of the batch to the next.
    pub row: i64,
    pub column: i64,
    pub batch: i64,
}

/// `c[m, n] = a[m, k] @ b[k, n] + beta c + bias`, `batch` times. 16-bit floats accumulate in f32.
#[derive(Clone, Copy, Debug)]
pub struct MatmulCall {
    pub m: usize,
    pub n: usize,
    pub k: usize,
    pub batch: usize,
    pub a: Matrix,
    pub b: Matrix,
    pub c: Matrix,
    /// Dtype of a and b.
    pub dtype: DType,
    /// Dtype of the result and the bias: the same, or f32 for 16-bit factors.
    pub result: DType,
    /// 0 or 1.
    pub beta: f32,
    /// `n` elements of the result's dtype, added to every row; null if there is none.
    pub bias: *const u8,
}

/// Which of the three operands of a convolution is computed from the other two.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ConvPart {
    /// `y` from `x` and `w`.
    Output,
    /// The gradient of `x` from those of `y` and `w`.
    InputGradient,
    /// The gradient of `w` from `x` and the gradient of `y`.
    WeightGradient,
}

/// The memory order of the three operands of a convolution, all contiguous.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ConvOrder {
    /// Row-major.
    ChannelsFirst,
    /// Channels are the innermost dim: what tensor cores read.
    ChannelsLast,
}

/// A convolution of which no size is 0. 16-bit floats accumulate in f32.
#[derive(Clone, Copy, Debug)]
pub struct ConvCall {
    pub part: ConvPart,
    pub dtype: DType,
    pub order: ConvOrder,
    pub x: *mut u8,
    pub w: *mut u8,
    pub y: *mut u8,
    pub geometry: Geometry,
}

/// A recurrent layer for a library. The order of samples and steps is that of the addresses: dense, the steps first, in the
/// order in which they are computed.
#[derive(Clone, Copy, Debug)]
pub struct RecurrentCall {
    pub layer: Layer,
    pub dtype: DType,
    pub biased: bool,
    pub x: *mut u8,
    pub y: *mut u8,
    pub hx: *mut u8,
    /// Null without a cell, as all that belongs to cells.
    pub cx: *mut u8,
    /// As `RecurrentRoom` says.
    pub weights: *mut u8,
    /// What the gradient reads; null where nothing is trained.
    pub reserve: *mut u8,
    pub task: RecurrentTask,
}

/// What is computed.
#[derive(Clone, Copy, Debug)]
pub enum RecurrentTask {
    /// y, the last state and the last cell.
    Forward { hy: *mut u8, cy: *mut u8 },
    /// Gradients; those of the weights are added to what is there. What was kept is overwritten.
    Backward { dy: *mut u8, dx: *mut u8, dhy: *mut u8, dhx: *mut u8, dcy: *mut u8, dcx: *mut u8, dweights: *mut u8 },
}

/// What a library needs for a recurrent layer, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RecurrentRoom {
    /// Where the weights of the input, those of the state, and both biases begin among all weights.
    pub offsets: [usize; 4],
    pub weights: usize,
    /// What the gradient reads.
    pub reserve: usize,
}

/// A decomposition of matrices that have elements.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Decomposition {
    /// Eigenvalues, ascending, and where asked for eigenvectors, which replace A, from one triangle of a Hermitian A.
    Eigh { vectors: bool, upper: bool },
    /// Singular values, descending, and where asked for the thin U and V, of matrices with no fewer rows than columns.
    Svd { vectors: bool },
    /// Complex eigenvalues and eigenvectors of complex matrices.
    Eig,
    /// Reflectors in A and their factors, as LAPACK's geqrf.
    Reflectors,
    /// The first columns of Q, which replace `k` reflectors in A.
    Orthonormal { k: usize },
    /// Both triangles in A, and pivots in i64, as LAPACK's getrf.
    Lu,
    /// The solutions of systems with those triangles and pivots, `sides` columns in `left`, which they replace.
    LuSolve { sides: usize },
    /// The lower factor of Cholesky in the lower triangle of A.
    Cholesky,
}

/// Decompositions of a batch of matrices that lie one behind the other, each dense and column-major.
#[derive(Clone, Copy, Debug)]
pub struct DecomposeCall {
    pub task: Decomposition,
    /// F32 or F64; pairs of them if the matrices are complex.
    pub dtype: DType,
    pub complex: bool,
    pub m: usize,
    pub n: usize,
    pub count: usize,
    /// Overwritten.
    pub a: *mut u8,
    pub values: *mut u8,
    /// U, thin; m by m for complex matrices of at most 32 rows.
    pub left: *mut u8,
    /// V, or eigenvectors.
    pub right: *mut u8,
    /// An i32 for each matrix, not 0 where the iteration did not converge.
    pub info: *mut u8,
}

/// How right singular vectors lie in memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RightVectors {
    /// V.
    Plain,
    /// The conjugated transpose of V.
    Adjoint,
}

/// What a Fourier transform takes and gives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Transform {
    /// Complex numbers, and as many.
    Whole { inverse: bool },
    /// Real numbers, and the first half of their spectrum along the last dim; forward.
    ToHalf,
    /// The first half of a spectrum along the last dim, and real numbers; inverse. Imaginary parts of a signal's first and
    /// middle places are those of a real signal's spectrum. The operand is overwritten.
    FromHalf,
}

/// Where the signals of a transform lie, counted in numbers, complex or real.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TransformSide {
    /// Aligned as a complex number.
    pub ptr: *mut u8,
    /// Of each dim but the first the numbers from one place of the dim before it to the next, over `stride`; its size at
    /// least.
    pub embed: [usize; 3],
    /// From one number of the last dim to the next.
    pub stride: usize,
    /// From one signal to the next.
    pub distance: usize,
}

/// Transforms, without a factor, of signals of one to three dims.
#[derive(Clone, Copy, Debug)]
pub struct TransformCall {
    pub kind: Transform,
    /// F32 or F64.
    pub dtype: DType,
    pub rank: usize,
    /// Those of the transforms: of the real numbers, where one side is half.
    pub lengths: [usize; 3],
    pub count: usize,
    pub from: TransformSide,
    /// May be `from`, if numbers lie there alike.
    pub to: TransformSide,
}

/// Why a launch did not happen.
#[derive(Debug)]
pub enum GpuError {
    /// This form has no CUDA kernel; nothing was launched.
    Unsupported(&'static str),
    /// Scratch memory could not be allocated.
    OutOfMemory { bytes: usize },
    /// The error of the driver or the compiler.
    Device(Box<dyn std::error::Error + Send + Sync>),
}

impl fmt::Display for GpuError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GpuError::Unsupported(what) => write!(f, "no CUDA kernel for {what}"),
            GpuError::OutOfMemory { bytes } => write!(f, "no {bytes} bytes of device memory for intermediate values"),
            GpuError::Device(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for GpuError {}

/// Tells a kernel whether its step must be skipped; `ts_held` in CUDA texts.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Hold {
    /// Device address of a 32-bit word that is not 0 if the step must be skipped; 0 for a step that is never skipped.
    pub held: u64,
    /// Device address and bound of a 64-bit word that decides this: the step is skipped if the word is not above the
    /// bound. Set for the first kernel of the step, which has one block and writes `held`; 0 for later kernels.
    pub word: u64,
    pub bound: u64,
}

impl Hold {
    /// As arguments of a kernel.
    pub fn words(&self) -> [u64; 3] {
        [self.held, self.word, self.bound]
    }
}

/// What kernels use of a device. Everything is queued in order on the stream of the current node.
pub trait Gpu {
    fn launch(&mut self, launch: &Launch<'_>) -> Result<(), GpuError>;
    /// Device memory aligned to 256 bytes, valid for the work that this node queues. Its contents are undefined.
    fn scratch(&mut self, bytes: usize) -> Result<*mut u8, GpuError>;
    /// Device address of this many 32-bit words that are 0; the kernel that counts in them resets them. Null if there are
    /// none. Kernels of one stream share them.
    fn counters(&mut self, _count: usize) -> *mut u8 {
        std::ptr::null_mut()
    }
    fn fill_zero(&mut self, at: *mut u8, bytes: usize) -> Result<(), GpuError>;
    /// Copies device memory to device memory; the ranges do not overlap.
    fn copy(&mut self, to: *mut u8, from: *const u8, bytes: usize) -> Result<(), GpuError>;
    /// Computes a product by cuBLASLt or another library; false if there is none or it does not support this.
    fn matmul(&mut self, product: &MatmulCall) -> Result<bool, GpuError>;
    /// Computes a convolution by cuDNN or another library; false as for `matmul`.
    fn convolve(&mut self, convolution: &ConvCall) -> Result<bool, GpuError>;
    /// Whether `convolve` would transpose the operands of a row-major convolution to channels-last order itself, so that
    /// transposing them before and after it saves time.
    fn convolves_transposed(&mut self, convolution: &ConvCall) -> Result<bool, GpuError>;
    /// What cuDNN or another library needs for a recurrent layer; none if there is none or it does not support this.
    fn recurrent_room(
        &mut self,
        _layer: &Layer,
        _dtype: DType,
        _biased: bool,
    ) -> Result<Option<RecurrentRoom>, GpuError> {
        Ok(None)
    }
    /// Computes a recurrent layer by that library; only what has a `recurrent_room`.
    fn recurrent(&mut self, _call: &RecurrentCall) -> Result<(), GpuError> {
        Err(GpuError::Unsupported("recurrent layers by a library"))
    }
    /// Whether `decompose` can do this, by cuSOLVER or another library; addresses do not matter.
    fn decomposes(&mut self, _decomposition: &DecomposeCall) -> Result<bool, GpuError> {
        Ok(false)
    }
    /// Computes decompositions by a library; only what `decomposes`. The elements are finite. May wait. The answer has an
    /// entry for each matrix, or one for all.
    fn decompose(&mut self, _decomposition: &DecomposeCall) -> Result<Vec<RightVectors>, GpuError> {
        Err(GpuError::Unsupported("decompositions by a library"))
    }
    /// Whether `transform` can do this, by cuFFT or another library; addresses do not matter.
    fn transforms(&mut self, _transform: &TransformCall) -> Result<bool, GpuError> {
        Ok(false)
    }
    /// Computes Fourier transforms by a library; only what `transforms`.
    fn transform(&mut self, _transform: &TransformCall) -> Result<(), GpuError> {
        Err(GpuError::Unsupported("transforms by a library"))
    }
    /// Whether results must be the same in each run (`use_deterministic_algorithms`).
    fn deterministic(&self) -> bool {
        false
    }
    /// Asked before a kernel that adds floats in no fixed order: where sums must be the same in each run, the host adds.
    fn may_add_in_any_order(&self) -> Result<(), GpuError> {
        match self.deterministic() {
            true => Err(GpuError::Unsupported("sums of floats in a fixed order")),
            false => Ok(()),
        }
    }
    fn multiprocessors(&self) -> u32;
    /// Compute capability, major and minor.
    fn capability(&self) -> (u32, u32);
    /// The `Hold` argument for a kernel of this many blocks, which is launched next.
    fn hold(&mut self, _blocks: u64) -> Result<Hold, GpuError> {
        Ok(Hold::default())
    }
    /// Device address of a `FaultSlot`, cleared for this run, of node `node` of a fused step, or 0 for a kernel. Called
    /// only where data can be invalid.
    fn fault_slot(&mut self, node: usize) -> Result<*mut u8, GpuError>;
}
