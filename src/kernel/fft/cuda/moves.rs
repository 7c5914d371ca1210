//! Launches of `kernels/fft/moves.cuh`: what stands before and behind a transform by a library. Each is one pass over memory.

use crate::base::dtype::DType;
use crate::base::layout::{Shape, Strides, contiguous_strides};
use crate::kernel::abi::RawView;
use crate::kernel::cuda::rows::each;
use crate::kernel::cuda::specialize::{Value, source};
use crate::kernel::cuda::{Gpu, GpuError, Source};
use crate::kernel::structs::structs;

/// Bound: dims after those that lie behind each other are joined.
const DIMS: usize = 8;

structs! {
    pub static MOVE_ARGS = "fft/move_args.cuh";
    struct Move {
        from: const T,
        to: mut T,
        count: usize,
        rank: usize,
        /// The dim that is half a spectrum, or -1.
        half: isize,
        conjugate: usize,
        from_pairs: usize,
        from_whole: usize,
        from_second: isize,
        to_pairs: usize,
        to_whole: usize,
        to_second: isize,
        /// Of the places that are visited.
        sizes: [i64; 8],
        /// Of the operand.
        given: [i64; 8],
        /// Lengths of transforms, 0 where there is none.
        lengths: [i64; 8],
        from_strides: [i64; 8],
        to_strides: [i64; 8],
        scale: f64,
        middle: f64,
    }
}

pub(super) fn text(dtype: DType) -> &'static Source {
    source("fft/moves.cuh", &[("T", Value::Type(dtype))])
}

/// Numbers in memory; strides count their parts.
#[derive(Clone)]
pub(super) struct Numbers {
    pub at: *mut u8,
    pub dtype: DType,
    pub shape: Shape,
    pub strides: Strides,
    /// From a real part to its imaginary part, of complex numbers.
    pub second: Option<isize>,
}

impl Numbers {
    pub fn of(view: &RawView, pairs: bool) -> Numbers {
        let mut view = view.clone();
        let second = if pairs { view.strides.pop() } else { None };
        if pairs {
            view.shape.pop();
        }
        Numbers { at: view.ptr, dtype: view.dtype, shape: view.shape, strides: view.strides, second }
    }

    /// Numbers whose signals along `dims`, in this order, are contiguous, one behind the other. Without memory.
    pub fn dense(dtype: DType, shape: &Shape, dims: &[usize], pairs: bool) -> Numbers {
        let mut order: Vec<usize> = (0..shape.len()).filter(|d| !dims.contains(d)).collect();
        order.extend(dims);
        let sizes: Shape = order.iter().map(|&d| shape[d]).collect();
        let mut strides: Strides = shape.iter().map(|_| 0).collect();
        let parts = 1 + pairs as isize;
        order.iter().zip(contiguous_strides(&sizes)).for_each(|(&d, stride)| strides[d] = stride * parts);
        let at = std::ptr::null_mut();
        Numbers { at, dtype, shape: shape.clone(), strides, second: pairs.then_some(1) }
    }

    /// Gives them scratch memory.
    pub fn place(&mut self, gpu: &mut dyn Gpu) -> Result<(), GpuError> {
        let parts = 1 + self.second.is_some() as usize;
        self.at = gpu.scratch(self.shape.iter().product::<usize>().max(1) * parts * self.dtype.size_bytes())?;
        Ok(())
    }

    /// Whether each number is one word in memory, which real ones are where complex ones could be.
    pub fn is_aligned(&self) -> bool {
        let parts = 1 + self.second.is_some() as isize;
        self.second.is_none_or(|second| second == 1)
            && (self.at as usize).is_multiple_of(2 * self.dtype.size_bytes())
            && self.strides.iter().all(|stride| stride % parts == 0)
    }
}

/// The three kernels.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// Copies; what is cut or filled up.
    Plain,
    /// Half spectra that are to become real signals.
    Halves,
    /// The other half of a spectrum, in place.
    Mirror,
}

/// What is done to the numbers.
#[derive(Clone, Copy)]
pub(super) struct Change<'a> {
    pub way: Way,
    /// The dims of the transform and their lengths.
    pub dims: &'a [usize],
    pub lengths: &'a [usize],
    /// The one of them that is half a spectrum.
    pub half: Option<usize>,
    pub conjugate: bool,
    pub scale: f64,
    /// A factor of those numbers of a half spectrum that have a mirror image.
    pub middle: f64,
}

impl Change<'_> {
    pub const COPY: Change<'static> =
        Change { way: Way::Plain, dims: &[], lengths: &[], half: None, conjugate: false, scale: 1.0, middle: 1.0 };

    /// From numbers to numbers of another place or other sizes.
    pub fn run(&self, from: &Numbers, to: &Numbers, gpu: &mut dyn Gpu) -> Result<(), GpuError> {
        let mut args = Move {
            from: from.at,
            to: to.at,
            half: -1,
            conjugate: self.conjugate as usize,
            from_pairs: from.second.is_some() as usize,
            from_whole: (from.second.is_some() && from.is_aligned()) as usize,
            from_second: from.second.unwrap_or(0),
            to_pairs: to.second.is_some() as usize,
            to_whole: (to.second.is_some() && to.is_aligned()) as usize,
            to_second: to.second.unwrap_or(0),
            scale: self.scale,
            middle: self.middle,
            ..Move::NONE
        };
        // From the last dim on; a dim lies behind the one before it where nothing tells their places apart.
        let mut joins = false;
        let mut rank = 0;
        for d in (0..to.shape.len()).rev() {
            let length = self.dims.iter().position(|&dim| dim == d).map_or(0, |at| self.lengths[at]);
            let is_half = self.half == Some(d);
            let size = if is_half { to.shape[d].min(length / 2 + 1) } else { to.shape[d] };
            let visited = if self.way == Way::Plain { to.shape[d] } else { size };
            let plain = match self.way {
                Way::Plain => from.shape[d] >= visited && !(is_half && self.middle != 1.0),
                Way::Halves | Way::Mirror => length == 0,
            };
            if visited == 1 && plain {
                continue;
            }
            let strides = [from.strides[d] as i64, to.strides[d] as i64];
            if joins && plain {
                let size = args.sizes[rank - 1];
                if strides == [args.from_strides[rank - 1] * size, args.to_strides[rank - 1] * size] {
                    args.sizes[rank - 1] *= visited as i64;
                    args.given[rank - 1] = args.sizes[rank - 1];
                    continue;
                }
            }
            if rank == DIMS {
                return Err(GpuError::Unsupported("transforms of so many dims"));
            }
            args.sizes[rank] = visited as i64;
            args.given[rank] = from.shape[d] as i64;
            args.lengths[rank] = length as i64;
            if is_half && !plain {
                args.half = rank as isize;
            }
            [args.from_strides[rank], args.to_strides[rank]] = strides;
            (joins, rank) = (plain, rank + 1);
        }
        // The first is the outermost in the text.
        for list in [&mut args.sizes, &mut args.given, &mut args.lengths, &mut args.from_strides, &mut args.to_strides]
        {
            list[..rank].reverse();
        }
        if args.half >= 0 {
            args.half = rank as isize - 1 - args.half;
        }
        args.rank = rank;
        args.count = args.sizes[..rank].iter().product::<i64>() as usize;
        let entry = match self.way {
            Way::Plain => "ts_fft_move",
            Way::Halves => "ts_fft_halves",
            Way::Mirror => "ts_fft_mirror",
        };
        each(text(to.dtype), entry, args.count, args.words(), gpu)
    }
}
