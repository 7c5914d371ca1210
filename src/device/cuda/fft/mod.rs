//! Fourier transforms by cuFFT, if it is installed. The library is loaded for the first one. Knows no tensors: signals are
//! addresses, sizes and strides.
//!
//! A plan has no memory of its own for intermediate values and no stream: both are set before each use, so that streams
//! share plans and nothing else. Queueing waits for nothing and can be captured in a graph; who keeps the graph keeps the
//! plan, whose tables the graph reads.

use super::blas::Workspace;
use super::context::Context;
use super::error::DriverError;
use super::stream::Stream;
use functions::{Functions, Handle, Place, check, is_refused};
use std::collections::HashMap;
use std::sync::Arc;

mod functions;

/// What to do where cuFFT is missing, in one line.
pub const REMEDY: &str = "pip install nvidia-cufft, or install NVIDIA's CUDA toolkit 13";

/// Bound: plans in the cache. Each holds tables in device memory that our allocator does not know of.
const PLANS_MAX: usize = 512;

/// What is transformed into what.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Complex numbers to as many.
    Whole,
    /// Real numbers to the first half of their spectrum along the last dim; forward.
    ToHalf,
    /// The first half of a spectrum along the last dim to real numbers; inverse. The operand is overwritten.
    FromHalf,
}

/// How signals lie in memory, counted in numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Side {
    /// Of each dim the numbers from one place of the dim before it to the next, over `stride`; of the first dim its size.
    pub embed: [i64; 3],
    /// From one number of the last dim to the next.
    pub stride: i64,
    /// From one signal to the next.
    pub distance: i64,
}

/// Signals of one to three dims.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Signals {
    pub kind: Kind,
    /// f64 instead of f32.
    pub double: bool,
    pub rank: usize,
    pub lengths: [i64; 3],
    pub count: i64,
    pub from: Side,
    pub to: Side,
}

impl Signals {
    /// `cufftType`.
    fn number(&self) -> u32 {
        let single = match self.kind {
            Kind::ToHalf => 0x2a,
            Kind::FromHalf => 0x2c,
            Kind::Whole => 0x29,
        };
        if self.double { single + 0x40 } else { single }
    }

    /// Whether the numbers of each side are contiguous, signal by signal, which the library knows without strides.
    fn is_dense(&self) -> bool {
        let halves = match self.kind {
            Kind::Whole => [false, false],
            Kind::ToHalf => [false, true],
            Kind::FromHalf => [true, false],
        };
        [&self.from, &self.to].into_iter().zip(halves).all(|(side, half)| {
            let mut sizes = self.lengths;
            let last = self.rank - 1;
            if half {
                sizes[last] = sizes[last] / 2 + 1;
            }
            let distance: i64 = sizes[..self.rank].iter().product();
            side.stride == 1
                && side.embed[1..self.rank] == sizes[1..self.rank]
                && (self.count == 1 || side.distance == distance)
        })
    }
}

/// A plan of the library, destroyed when nobody holds it.
pub struct Plan {
    context: &'static Context,
    functions: &'static Functions,
    handle: Handle,
    signals: Signals,
    bytes: usize,
}

impl Plan {
    fn new(
        context: &'static Context,
        functions: &'static Functions,
        signals: &Signals,
    ) -> Result<Option<Plan>, DriverError> {
        context.make_current()?;
        let mut handle = -1;
        // SAFETY: the context is current; the call writes one number.
        check("cufftCreate", unsafe { (functions.create)(&mut handle) })?;
        let mut plan = Plan { context, functions, handle, signals: *signals, bytes: 0 };
        match plan.make() {
            Ok(()) => Ok(Some(plan)),
            Err(error) if is_refused(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn make(&mut self) -> Result<(), DriverError> {
        let Signals { rank, mut lengths, count, mut from, mut to, .. } = self.signals;
        let number = self.signals.number();
        let is_dense = self.signals.is_dense();
        let embed = |list: &mut [i64; 3]| if is_dense { std::ptr::null_mut() } else { list.as_mut_ptr() };
        // SAFETY: the plan is alive; the three lists have `rank` elements; the size that is written is one word.
        unsafe {
            check("cufftSetAutoAllocation", (self.functions.set_auto_allocation)(self.handle, 0))?;
            check(
                "cufftMakePlanMany64",
                (self.functions.make_plan)(
                    self.handle,
                    rank as i32,
                    lengths.as_mut_ptr(),
                    embed(&mut from.embed),
                    from.stride,
                    from.distance,
                    embed(&mut to.embed),
                    to.stride,
                    to.distance,
                    number,
                    count,
                    &mut self.bytes,
                ),
            )
        }
    }

    /// Bytes of scratch memory that a transform needs.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Plan {
    fn drop(&mut self) {
        if self.context.make_current().is_ok() {
            // SAFETY: nobody uses the plan any more, and the library waits for the device before it frees the plan's
            // tables. There is nothing to do about an error.
            unsafe { (self.functions.destroy)(self.handle) };
        }
    }
}

/// A transform with all the memory that it uses.
#[derive(Clone)]
pub struct Run {
    pub plan: Arc<Plan>,
    /// Of complex numbers: the direction.
    pub inverse: bool,
    pub from: u64,
    pub to: u64,
    /// As large as the plan says.
    pub workspace: Workspace,
}

impl PartialEq for Run {
    fn eq(&self, other: &Run) -> bool {
        Arc::ptr_eq(&self.plan, &other.plan)
            && (self.inverse, self.from, self.to) == (other.inverse, other.from, other.to)
            && self.workspace == other.workspace
    }
}

/// cuFFT on one device, with a cache of plans.
pub struct Fft {
    context: &'static Context,
    functions: &'static Functions,
    /// With the time of their last use; `None`: the library does not make it.
    plans: HashMap<Signals, (Option<Arc<Plan>>, u64)>,
    uses: u64,
}

impl Fft {
    /// The library for this device. `None`: it is not found, or is too old.
    pub fn open(context: &'static Context) -> Option<Fft> {
        let functions = Functions::load()?;
        Some(Fft { context, functions, plans: HashMap::new(), uses: 0 })
    }

    /// The plan for signals. `None`: the library does not take them.
    pub fn plan(&mut self, signals: &Signals) -> Result<Option<Arc<Plan>>, DriverError> {
        self.uses += 1;
        if let Some((plan, last)) = self.plans.get_mut(signals) {
            *last = self.uses;
            return Ok(plan.clone());
        }
        if self.plans.len() >= PLANS_MAX {
            let oldest = self.plans.iter().min_by_key(|(_, (_, last))| *last).map(|(signals, _)| *signals);
            oldest.and_then(|signals| self.plans.remove(&signals));
        }
        let plan = Plan::new(self.context, self.functions, signals)?.map(Arc::new);
        self.plans.insert(*signals, (plan.clone(), self.uses));
        Ok(plan)
    }

    /// Queues a transform on a stream of this device.
    pub fn run(&mut self, run: &Run, stream: &Stream) -> Result<(), DriverError> {
        self.context.make_current()?;
        let (f, plan, Plan { signals, handle, .. }) = (self.functions, &*run.plan, &*run.plan);
        if plan.bytes > run.workspace.bytes {
            return Err(DriverError::refused("cufft", "too little scratch memory"));
        }
        let place = |address: u64| address as Place;
        let (from, to, direction) = (place(run.from), place(run.to), if run.inverse { 1 } else { -1 });
        // SAFETY: plan and stream are alive, and `&mut self` keeps others from the plan between the calls; the signals lie
        // where the caller says.
        unsafe {
            check("cufftSetStream", (f.set_stream)(*handle, stream.raw()))?;
            if plan.bytes > 0 {
                check("cufftSetWorkArea", (f.set_work_area)(*handle, place(run.workspace.address)))?;
            }
            match (signals.kind, signals.double) {
                (Kind::Whole, false) => check("cufftExecC2C", (f.c2c)(*handle, from, to, direction)),
                (Kind::Whole, true) => check("cufftExecZ2Z", (f.z2z)(*handle, from, to, direction)),
                (Kind::ToHalf, false) => check("cufftExecR2C", (f.r2c)(*handle, from, to)),
                (Kind::ToHalf, true) => check("cufftExecD2Z", (f.d2z)(*handle, from, to)),
                (Kind::FromHalf, false) => check("cufftExecC2R", (f.c2r)(*handle, from, to)),
                (Kind::FromHalf, true) => check("cufftExecZ2D", (f.z2d)(*handle, from, to)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The names are those of the library, where it is installed.
    #[test]
    fn the_library_has_all_functions_or_is_missing() {
        use super::super::library::Library;
        assert_eq!(Functions::load().is_some(), Library::Fft.load().is_some());
    }

    #[test]
    fn dense_signals_need_no_strides() {
        let side = |embed, distance| Side { embed, stride: 1, distance };
        let dense = Signals {
            kind: Kind::ToHalf,
            double: false,
            rank: 2,
            lengths: [6, 8, 1],
            count: 3,
            from: side([6, 8, 1], 48),
            to: side([6, 5, 1], 30),
        };
        assert!(
            dense.is_dense() && Signals { kind: Kind::FromHalf, from: dense.to, to: dense.from, ..dense }.is_dense()
        );
        for to in [side([6, 8, 1], 48), side([6, 5, 1], 32), Side { stride: 2, ..dense.to }] {
            assert!(!Signals { to, ..dense }.is_dense());
        }
        assert!(!Signals { kind: Kind::Whole, ..dense }.is_dense());
        assert_eq!(Signals { double: true, ..dense }.number(), 0x6a);
    }

    #[test]
    fn plans_that_are_refused_are_told_from_errors() {
        let error = |status| check("cufftMakePlanMany64", status).expect_err("an error");
        assert!(check("cufftCreate", 0).is_ok());
        assert!(is_refused(&error(0x8)) && is_refused(&error(0x2)) && !is_refused(&error(0x5)));
        assert!(!is_refused(&DriverError { call: "cuMemAlloc", code: 2, name: "CUDA_ERROR_OUT_OF_MEMORY", text: "" }));
    }
}
