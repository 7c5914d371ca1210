//! Decompositions of dense matrices by cuSOLVER, if it is installed. The library is loaded for the first one. Knows no
//! tensors: matrices are addresses and sizes, column-major and dense, those of a batch one behind the other.
//!
//! Some of the library's algorithms copy between device and host and wait for it, so nothing here can be captured in a
//! graph. All of them expect finite numbers.

use super::blas::Workspace;
use super::context::Context;
use super::error::DriverError;
use super::stream::Stream;
use functions::{DataType, Functions, Object, Place, Status, check, is_refused};
use std::ffi::c_void;
use std::ptr::null_mut;

mod functions;

/// What to do where cuSOLVER is missing, in one line.
pub const REMEDY: &str =
    "pip install nvidia-cusolver, or install NVIDIA's CUDA toolkit 13; without it, the host decomposes large matrices";

/// Scratch memory of eigenvalues in batches, which needs about a megabyte for each matrix. Bound: more memory is no
/// faster, since a batch of this size fills the device.
const BATCH_BYTES: usize = 1 << 30;
/// Rows and columns from which matrices are decomposed one by one. Bound: as fast as a batch of eight on an H200.
const ALONE: i64 = 256;
/// Bound: rows and columns of the library's batched Jacobi method.
const JACOBI: i64 = 32;
/// Columns from which the polar decomposition is used. Bound: it answers wrongly for a single one.
const POLAR: i64 = 3;

/// A decomposition; A is overwritten in all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    /// A = V diag(w) Vᴴ from one triangle of a Hermitian A. Values: w, ascending. A: V.
    Eigh { vectors: bool, upper: bool },
    /// A = U diag(s) Vᴴ, thin, with no fewer rows than columns. Values: s, descending. Left: U. Right: V.
    Svd { vectors: bool },
    /// A v = w v. Values: w, complex. Right: v, of length 1. Complex only.
    Eig,
    /// LAPACK's geqrf. Values: tau.
    Reflectors,
    /// The first n columns of Q of `k` reflectors in A, of which the values are tau. A: Q. Not for complex f32.
    Orthonormal { k: usize },
    /// LAPACK's getrf. Values: the pivots, i64, counted from 1.
    Lu,
    /// LAPACK's getrs with those in A and values, for `sides` columns. Left: B, then X.
    LuSolve { sides: usize },
    /// LAPACK's potrf, of the lower triangle.
    Cholesky,
}

/// The elements of a matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Number {
    F32,
    F64,
    C64,
    C128,
}

impl Number {
    fn bytes(self) -> usize {
        match self {
            Number::F32 => 4,
            Number::F64 | Number::C64 => 8,
            Number::C128 => 16,
        }
    }

    fn data_type(self) -> DataType {
        match self {
            Number::F32 => 0,
            Number::F64 => 1,
            Number::C64 => 4,
            Number::C128 => 5,
        }
    }

    fn real(self) -> Number {
        match self {
            Number::F32 | Number::C64 => Number::F32,
            Number::F64 | Number::C128 => Number::F64,
        }
    }
}

/// Matrices to decompose; no size is 0.
#[derive(Clone, Copy, Debug)]
pub struct Problem {
    pub task: Task,
    pub number: Number,
    pub m: usize,
    pub n: usize,
    pub count: usize,
    pub at: Places,
}

/// Device addresses; 0 where the task has none.
#[derive(Clone, Copy, Debug, Default)]
pub struct Places {
    pub a: u64,
    pub values: u64,
    pub left: u64,
    pub right: u64,
    /// An i32 for each matrix, not 0 where the iteration did not converge.
    pub info: u64,
}

/// How the right singular vectors lie in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Right {
    /// V.
    Plain,
    /// Vᴴ.
    Adjoint,
}

/// cuSOLVER on one device. One handle serves all streams: the stream is set before each call.
pub struct Solver {
    context: &'static Context,
    functions: &'static Functions,
    handle: Object,
    params: Object,
    jacobi: Object,
    stream: *mut c_void,
    host: Vec<u8>,
}

// SAFETY: the objects may be used from any thread, by one at a time, which `&mut` gives.
unsafe impl Send for Solver {}

/// Either asks for the sizes of scratch memory on device and host, or runs with it.
enum Work<'a> {
    Size(&'a mut [usize; 2]),
    Run { device: Workspace, host: &'a mut [u8] },
}

impl Solver {
    /// The library for this device. `None`: it is not found, or is too old.
    pub fn open(context: &'static Context) -> Result<Option<Solver>, DriverError> {
        let Some(functions) = Functions::load() else { return Ok(None) };
        context.make_current()?;
        let stream = null_mut();
        let mut solver = Solver {
            context,
            functions,
            handle: null_mut(),
            params: null_mut(),
            jacobi: null_mut(),
            stream,
            host: Vec::new(),
        };
        // SAFETY: the context is current; each call writes one pointer.
        unsafe {
            check("cusolverDnCreate", (functions.create)(&mut solver.handle))?;
            check("cusolverDnCreateParams", (functions.create_params)(&mut solver.params))?;
            check("cusolverDnCreateGesvdjInfo", (functions.create_jacobi)(&mut solver.jacobi))?;
        }
        Ok(Some(solver))
    }

    /// Bytes of device memory that `run` needs as its workspace. `None`: the library does not take this problem.
    pub fn scratch(&mut self, problem: &Problem) -> Result<Option<usize>, DriverError> {
        self.context.make_current()?;
        if [problem.m, problem.n, problem.count].iter().any(|&size| size > i32::MAX as usize) {
            return Ok(None);
        }
        match self.sizes(problem) {
            Ok([device, _]) => Ok(Some(device)),
            Err(error) if is_refused(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Queues a decomposition on a stream of this device; may wait for it. Matrices whose right singular vectors lie as
    /// `Right::Adjoint` are those of the answer's list.
    pub fn run(&mut self, problem: &Problem, workspace: Workspace, stream: &Stream) -> Result<Vec<Right>, DriverError> {
        self.context.make_current()?;
        if self.stream != stream.raw() {
            // SAFETY: both are alive; the stream is set anew before each use of another.
            check("cusolverDnSetStream", unsafe { (self.functions.set_stream)(self.handle, stream.raw()) })?;
            self.stream = stream.raw();
        }
        let [device, host] = self.sizes(problem)?;
        if device > workspace.bytes {
            return Err(DriverError::refused("cusolver", "too little scratch memory"));
        }
        let mut memory = std::mem::take(&mut self.host);
        memory.resize(host.max(memory.len()), 0);
        let each = problem.together(self)?;
        let mut answer = Vec::new();
        for first in (0..problem.count).step_by(each) {
            let part = problem.part(first, each);
            answer.push(self.part(&part, workspace, &mut memory[..host], stream)?);
        }
        self.host = memory;
        Ok(answer)
    }

    /// One call of the library. Singular values whose matrix is nearly singular come from a second one: the polar
    /// decomposition has then computed those of a matrix that differs by a measured error.
    fn part(
        &self,
        problem: &Problem,
        workspace: Workspace,
        host: &mut [u8],
        stream: &Stream,
    ) -> Result<Right, DriverError> {
        let Task::Svd { .. } = problem.task else {
            self.call(problem, Work::Run { device: workspace, host })?;
            return Ok(Right::Plain);
        };
        if problem.is_small() {
            self.jacobi(problem, Work::Run { device: workspace, host })?;
            return Ok(Right::Plain);
        }
        let kept = problem.kept();
        let device = Workspace { address: workspace.address + kept as u64, bytes: workspace.bytes - kept };
        if problem.n as i64 >= POLAR {
            stream.copy(workspace.address, problem.at.a, problem.bytes())?;
            let error = self.polar(problem, Work::Run { device, host })?;
            if error == 0.0 || error <= problem.rounding() * largest(problem, stream)? {
                return Ok(Right::Plain);
            }
            stream.copy(problem.at.a, workspace.address, problem.bytes())?;
        }
        self.by_qr(problem, Work::Run { device, host })?;
        Ok(Right::Adjoint)
    }

    /// Scratch memory on device and host.
    fn sizes(&self, problem: &Problem) -> Result<[usize; 2], DriverError> {
        let mut sizes = [0; 2];
        let part = problem.part(0, problem.together(self)?);
        match part.task {
            Task::Svd { .. } if part.is_small() => self.jacobi(&part, Work::Size(&mut sizes))?,
            Task::Svd { .. } => {
                self.by_qr(&part, Work::Size(&mut sizes))?;
                if part.n as i64 >= POLAR {
                    let mut polar = [0; 2];
                    self.polar(&part, Work::Size(&mut polar))?;
                    sizes = std::array::from_fn(|at| sizes[at].max(polar[at]));
                }
                sizes[0] += part.kept();
            }
            _ => self.call(&part, Work::Size(&mut sizes))?,
        }
        Ok(sizes)
    }

    fn call(&self, problem: &Problem, work: Work<'_>) -> Result<(), DriverError> {
        match problem.task {
            Task::Eigh { vectors, upper } if problem.count > 1 => self.eigh_batched(problem, vectors, upper, work),
            Task::Eigh { vectors, upper } => self.eigh(problem, vectors, upper, work),
            Task::Svd { .. } => self.by_qr(problem, work),
            Task::Eig => self.eig(problem, work),
            Task::Reflectors => self.reflectors(problem, work),
            Task::Orthonormal { k } => self.orthonormal(problem, k, work),
            Task::Lu => self.lu(problem, work),
            Task::LuSolve { sides } => self.lu_solve(problem, sides, work),
            Task::Cholesky => self.cholesky(problem, work),
        }
    }

    fn eigh_batched(&self, p: &Problem, vectors: bool, upper: bool, work: Work<'_>) -> Result<(), DriverError> {
        let (f, h, q) = (self.functions, self.handle, self.params);
        let (n, count, t, r) = (p.n as i64, p.count as i64, p.number.data_type(), p.number.real().data_type());
        let (a, w, info) = (place(p.at.a), place(p.at.values), place(p.at.info).cast());
        let (vectors, upper) = (vectors as u32, upper as u32);
        // SAFETY: handle and parameters are alive; the places have the sizes that `Problem` states; the sizes that are
        // written are two words.
        unsafe {
            match work {
                Work::Size([d, o]) => check(
                    "cusolverDnXsyevBatched_bufferSize",
                    (f.syev_batched_size)(h, q, vectors, upper, n, t, a, n, r, w, t, d, o, count),
                ),
                Work::Run { device: Workspace { address: d, bytes }, host: o } => check(
                    "cusolverDnXsyevBatched",
                    (f.syev_batched)(
                        h,
                        q,
                        vectors,
                        upper,
                        n,
                        t,
                        a,
                        n,
                        r,
                        w,
                        t,
                        place(d),
                        bytes,
                        start(o),
                        o.len(),
                        info,
                        count,
                    ),
                ),
            }
        }
    }

    fn eigh(&self, p: &Problem, vectors: bool, upper: bool, work: Work<'_>) -> Result<(), DriverError> {
        let (f, h, q) = (self.functions, self.handle, self.params);
        let (n, t, r) = (p.n as i64, p.number.data_type(), p.number.real().data_type());
        let (a, w, info) = (place(p.at.a), place(p.at.values), place(p.at.info).cast());
        let (vectors, upper) = (vectors as u32, upper as u32);
        // SAFETY: as for `eigh_batched`.
        unsafe {
            match work {
                Work::Size([d, o]) => check(
                    "cusolverDnXsyevd_bufferSize",
                    (f.syevd_size)(h, q, vectors, upper, n, t, a, n, r, w, t, d, o),
                ),
                Work::Run { device: Workspace { address: d, bytes }, host: o } => check(
                    "cusolverDnXsyevd",
                    (f.syevd)(h, q, vectors, upper, n, t, a, n, r, w, t, place(d), bytes, start(o), o.len(), info),
                ),
            }
        }
    }

    /// Polar decomposition, then the eigenvalues of its Hermitian factor (Higham and Papadimitriou, 1994). The answer is
    /// the error that was made to keep a singular matrix from failing.
    fn polar(&self, p: &Problem, work: Work<'_>) -> Result<f64, DriverError> {
        let (f, h, q) = (self.functions, self.handle, self.params);
        let (m, n, t, r) = (p.m as i64, p.n as i64, p.number.data_type(), p.number.real().data_type());
        let (a, s, u, v) = (place(p.at.a), place(p.at.values), place(p.at.left), place(p.at.right));
        let (vectors, info) = (p.has_vectors() as u32, place(p.at.info).cast());
        let mut error = 0.0;
        // SAFETY: as for `eigh_batched`; the error is one number.
        unsafe {
            match work {
                Work::Size([d, o]) => check(
                    "cusolverDnXgesvdp_bufferSize",
                    (f.gesvdp_size)(h, q, vectors, 1, m, n, t, a, m, r, s, t, u, m, t, v, n, t, d, o),
                ),
                Work::Run { device: Workspace { address: d, bytes }, host: o } => check(
                    "cusolverDnXgesvdp",
                    (f.gesvdp)(
                        h,
                        q,
                        vectors,
                        1,
                        m,
                        n,
                        t,
                        a,
                        m,
                        r,
                        s,
                        t,
                        u,
                        m,
                        t,
                        v,
                        n,
                        t,
                        place(d),
                        bytes,
                        start(o),
                        o.len(),
                        info,
                        &mut error,
                    ),
                ),
            }?;
        }
        Ok(error)
    }

    /// Singular values by the QR iteration, which is slower, and right for every matrix. Right: Vᴴ.
    fn by_qr(&self, p: &Problem, work: Work<'_>) -> Result<(), DriverError> {
        let (f, h, q) = (self.functions, self.handle, self.params);
        let (m, n, t, r) = (p.m as i64, p.n as i64, p.number.data_type(), p.number.real().data_type());
        let (a, s, u, v) = (place(p.at.a), place(p.at.values), place(p.at.left), place(p.at.right));
        let (job, info) = (if p.has_vectors() { b'S' } else { b'N' } as i8, place(p.at.info).cast());
        // SAFETY: as for `eigh_batched`.
        unsafe {
            match work {
                Work::Size([d, o]) => check(
                    "cusolverDnXgesvd_bufferSize",
                    (f.gesvd_size)(h, q, job, job, m, n, t, a, m, r, s, t, u, m, t, v, n, t, d, o),
                ),
                Work::Run { device: Workspace { address: d, bytes }, host: o } => check(
                    "cusolverDnXgesvd",
                    (f.gesvd)(
                        h,
                        q,
                        job,
                        job,
                        m,
                        n,
                        t,
                        a,
                        m,
                        r,
                        s,
                        t,
                        u,
                        m,
                        t,
                        v,
                        n,
                        t,
                        place(d),
                        bytes,
                        start(o),
                        o.len(),
                        info,
                    ),
                ),
            }
        }
    }

    /// Singular values of small matrices together, by Jacobi's method. Left is then m by m.
    fn jacobi(&self, p: &Problem, work: Work<'_>) -> Result<(), DriverError> {
        let (f, h, j) = (self.functions, self.handle, self.jacobi);
        let (m, n, count, vectors) = (p.m as i32, p.n as i32, p.count as i32, p.has_vectors() as u32);
        let (a, s, u, v, info) =
            (place(p.at.a), place(p.at.values), place(p.at.left), place(p.at.right), place(p.at.info).cast());
        let mut words = 0;
        // SAFETY: as for `eigh_batched`; a size is one integer, and counts elements.
        unsafe {
            let size = (f.gesvdj_batched_size)(h, vectors, m, n, a, m, s, u, m, v, n, &mut words, j, count);
            check("cusolverDnZgesvdjBatched_bufferSize", size)?;
            match work {
                Work::Size(sizes) => {
                    *sizes = [words.max(1) as usize * p.number.bytes(), 0];
                    Ok(())
                }
                Work::Run { device, .. } => check(
                    "cusolverDnZgesvdjBatched",
                    (f.gesvdj_batched)(
                        h,
                        vectors,
                        m,
                        n,
                        a,
                        m,
                        s,
                        u,
                        m,
                        v,
                        n,
                        place(device.address),
                        words,
                        info,
                        j,
                        count,
                    ),
                ),
            }
        }
    }

    fn eig(&self, p: &Problem, work: Work<'_>) -> Result<(), DriverError> {
        let (f, h, q) = (self.functions, self.handle, self.params);
        let (n, t) = (p.n as i64, p.number.data_type());
        let (a, w, v, info) = (place(p.at.a), place(p.at.values), place(p.at.right), place(p.at.info).cast());
        // SAFETY: as for `eigh_batched`; there are no left vectors.
        unsafe {
            match work {
                Work::Size([d, o]) => check(
                    "cusolverDnXgeev_bufferSize",
                    (f.geev_size)(h, q, 0, 1, n, t, a, n, t, w, t, null_mut(), n, t, v, n, t, d, o),
                ),
                Work::Run { device: Workspace { address: d, bytes }, host: o } => check(
                    "cusolverDnXgeev",
                    (f.geev)(
                        h,
                        q,
                        0,
                        1,
                        n,
                        t,
                        a,
                        n,
                        t,
                        w,
                        t,
                        null_mut(),
                        n,
                        t,
                        v,
                        n,
                        t,
                        place(d),
                        bytes,
                        start(o),
                        o.len(),
                        info,
                    ),
                ),
            }
        }
    }

    fn reflectors(&self, p: &Problem, work: Work<'_>) -> Result<(), DriverError> {
        let (f, h, q) = (self.functions, self.handle, self.params);
        let (m, n, t) = (p.m as i64, p.n as i64, p.number.data_type());
        let (a, tau, info) = (place(p.at.a), place(p.at.values), place(p.at.info).cast());
        // SAFETY: as for `eigh_batched`.
        unsafe {
            match work {
                Work::Size([d, o]) => {
                    check("cusolverDnXgeqrf_bufferSize", (f.geqrf_size)(h, q, m, n, t, a, m, t, tau, t, d, o))
                }
                Work::Run { device: Workspace { address: d, bytes }, host: o } => check(
                    "cusolverDnXgeqrf",
                    (f.geqrf)(h, q, m, n, t, a, m, t, tau, t, place(d), bytes, start(o), o.len(), info),
                ),
            }
        }
    }

    fn orthonormal(&self, p: &Problem, k: usize, work: Work<'_>) -> Result<(), DriverError> {
        let (f, h, m, n, k) = (self.functions, self.handle, p.m as i32, p.n as i32, k as i32);
        let (a, tau, info) = (place(p.at.a), place(p.at.values), place(p.at.info).cast());
        let (names, size, run) = match p.number {
            Number::F32 => (["cusolverDnSorgqr_bufferSize", "cusolverDnSorgqr"], f.sorgqr_size, f.sorgqr),
            Number::F64 => (["cusolverDnDorgqr_bufferSize", "cusolverDnDorgqr"], f.dorgqr_size, f.dorgqr),
            Number::C64 => return Err(DriverError::refused("cusolver", "columns of Q in complex f32")),
            Number::C128 => (["cusolverDnZungqr_bufferSize", "cusolverDnZungqr"], f.ungqr_size, f.ungqr),
        };
        let mut words = 0;
        // SAFETY: as for `eigh_batched`; a size is one integer, and counts elements.
        unsafe {
            check(names[0], size(h, m, n, k, a, m, tau, &mut words))?;
            match work {
                Work::Size(sizes) => {
                    *sizes = [words.max(1) as usize * p.number.bytes(), 0];
                    Ok(())
                }
                Work::Run { device, .. } => {
                    check(names[1], run(h, m, n, k, a, m, tau, place(device.address), words, info))
                }
            }
        }
    }

    fn lu(&self, p: &Problem, work: Work<'_>) -> Result<(), DriverError> {
        let (f, h, q) = (self.functions, self.handle, self.params);
        let (m, n, t) = (p.m as i64, p.n as i64, p.number.data_type());
        let (a, pivots, info) = (place(p.at.a), place(p.at.values).cast(), place(p.at.info).cast());
        // SAFETY: as for `eigh_batched`.
        unsafe {
            match work {
                Work::Size([d, o]) => {
                    check("cusolverDnXgetrf_bufferSize", (f.getrf_size)(h, q, m, n, t, a, m, t, d, o))
                }
                Work::Run { device: Workspace { address: d, bytes }, host: o } => check(
                    "cusolverDnXgetrf",
                    (f.getrf)(h, q, m, n, t, a, m, pivots, t, place(d), bytes, start(o), o.len(), info),
                ),
            }
        }
    }
}

impl Solver {
    fn lu_solve(&self, p: &Problem, sides: usize, work: Work<'_>) -> Result<(), DriverError> {
        let (f, h, q) = (self.functions, self.handle, self.params);
        let (n, t) = (p.n as i64, p.number.data_type());
        let (a, pivots, b, info) =
            (place(p.at.a), place(p.at.values).cast_const().cast(), place(p.at.left), place(p.at.info).cast());
        let Work::Run { .. } = work else { return Ok(()) };
        // SAFETY: as for `eigh_batched`.
        let status = unsafe { (f.getrs)(h, q, 0, n, sides as i64, t, a, n, pivots, t, b, n, info) };
        check("cusolverDnXgetrs", status)
    }

    fn cholesky(&self, p: &Problem, work: Work<'_>) -> Result<(), DriverError> {
        let (f, h, q) = (self.functions, self.handle, self.params);
        let (n, t, lower) = (p.n as i64, p.number.data_type(), 0);
        let (a, info) = (place(p.at.a), place(p.at.info).cast());
        // SAFETY: as for `eigh_batched`.
        unsafe {
            match work {
                Work::Size([d, o]) => {
                    check("cusolverDnXpotrf_bufferSize", (f.potrf_size)(h, q, lower, n, t, a, n, t, d, o))
                }
                Work::Run { device: Workspace { address: d, bytes }, host: o } => check(
                    "cusolverDnXpotrf",
                    (f.potrf)(h, q, lower, n, t, a, n, t, place(d), bytes, start(o), o.len(), info),
                ),
            }
        }
    }
}

impl Drop for Solver {
    fn drop(&mut self) {
        if self.context.make_current().is_err() {
            return;
        }
        let destroy = |object: Object, with: unsafe extern "C" fn(Object) -> Status| {
            if !object.is_null() {
                // SAFETY: the object is alive, and nobody can use it after this.
                unsafe { with(object) };
            }
        };
        destroy(self.jacobi, self.functions.destroy_jacobi);
        destroy(self.params, self.functions.destroy_params);
        destroy(self.handle, self.functions.destroy);
    }
}

impl Problem {
    fn has_vectors(&self) -> bool {
        matches!(self.task, Task::Svd { vectors: true } | Task::Eigh { vectors: true, .. })
    }

    /// Bytes of one matrix.
    fn bytes(&self) -> usize {
        self.m * self.n * self.number.bytes()
    }

    /// What rounding makes of the largest singular value in a backward stable method.
    fn rounding(&self) -> f64 {
        let epsilon = if self.number.real() == Number::F32 { f32::EPSILON as f64 } else { f64::EPSILON };
        epsilon * (self.m.max(self.n) as f64).sqrt()
    }

    /// Bytes of a copy of the matrix, with what follows it aligned.
    fn kept(&self) -> usize {
        self.bytes().next_multiple_of(256)
    }

    /// Matrices that the library's batched Jacobi method takes; left is then m by m.
    fn is_small(&self) -> bool {
        self.number == Number::C128 && (self.m.max(self.n) as i64) <= JACOBI
    }

    /// How many matrices one call takes.
    fn together(&self, solver: &Solver) -> Result<usize, DriverError> {
        match self.task {
            Task::Svd { .. } if self.is_small() => Ok(self.count),
            Task::Eigh { vectors, upper } if (self.n as i64) < ALONE && self.count > 1 => {
                let (mut sizes, two) = ([0; 2], Problem { count: 2, ..*self });
                solver.eigh_batched(&two, vectors, upper, Work::Size(&mut sizes))?;
                Ok((BATCH_BYTES / (sizes[0] / 2).max(1)).clamp(1, self.count))
            }
            _ => Ok(1),
        }
    }

    /// The matrices from `first` on, at most `most`.
    fn part(&self, first: usize, most: usize) -> Problem {
        let (m, n, number) = (self.m, self.n, self.number);
        let values = match self.task {
            Task::Eigh { .. } | Task::Svd { .. } => n * number.real().bytes(),
            Task::Lu | Task::LuSolve { .. } => m.min(n) * 8,
            Task::Cholesky => 0,
            Task::Orthonormal { k } => k * number.bytes(),
            Task::Eig | Task::Reflectors => m.min(n) * number.bytes(),
        };
        let left = match self.task {
            Task::LuSolve { sides } => n * sides,
            _ if self.is_small() => m * m,
            _ => m * n,
        };
        let on = |place: u64, bytes: usize| if place == 0 { 0 } else { place + (first * bytes) as u64 };
        let Places { a, values: v, left: l, right, info } = self.at;
        let at = Places {
            a: on(a, self.bytes()),
            values: on(v, values),
            left: on(l, left * number.bytes()),
            right: on(right, n * n * number.bytes()),
            info: on(info, 4),
        };
        Problem { count: most.min(self.count - first), at, ..*self }
    }
}

/// The first singular value. Waits.
fn largest(problem: &Problem, stream: &Stream) -> Result<f64, DriverError> {
    let (mut bytes, size) = ([0; 8], problem.number.real().bytes());
    // SAFETY: there is room for one number, and the stream has passed the copy before this function ends.
    unsafe { stream.copy_to_host(bytes.as_mut_ptr(), problem.at.values, size) }?;
    stream.wait()?;
    let [a, b, c, d, ..] = bytes;
    Ok(if size == 4 { f32::from_ne_bytes([a, b, c, d]) as f64 } else { f64::from_ne_bytes(bytes) })
}

fn place(address: u64) -> Place {
    address as usize as Place
}

fn start(host: &mut [u8]) -> *mut c_void {
    host.as_mut_ptr().cast()
}
