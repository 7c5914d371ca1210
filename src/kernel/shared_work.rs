//! Numbered jobs shared between the calling thread and a pool's workers.
//!
//! The caller starts at once, workers join when they wake up, and the caller waits only for those that have started: a
//! worker that wakes too late finds the work closed. On a busy machine that may be milliseconds later, which is longer
//! than most work takes.

use super::guard;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::Thread;

/// How often the caller polls the workers before it sleeps: about a microsecond.
const SPINS: usize = 64;

type Job<'a> = dyn Fn(usize) + Sync + 'a;

struct Work {
    /// Invariant: dereferenced only while the caller waits in `run`.
    job: *const Job<'static>,
    jobs: usize,
    /// The next job that no thread has taken.
    next: AtomicUsize,
    /// Workers that are running jobs.
    active: AtomicUsize,
    closed: AtomicBool,
    panic: parking_lot::Mutex<Option<Box<dyn Any + Send>>>,
    caller: Thread,
    guard: guard::Current,
}

// SAFETY: the job is `Sync`, and its address is used only while the caller waits.
unsafe impl Send for Work {}
// SAFETY: the job is `Sync`; everything else is atomic or behind a lock.
unsafe impl Sync for Work {}

impl Work {
    /// Runs jobs until none is left.
    fn run_jobs(&self) {
        // SAFETY: the caller's frame, which owns the job, stays until nobody is active.
        let job = unsafe { &*self.job };
        loop {
            let i = self.next.fetch_add(1, Ordering::Relaxed);
            if i >= self.jobs {
                return;
            }
            job(i);
        }
    }

    /// Called by a worker.
    fn help(&self) {
        // Either the caller sees that this worker has entered, or the worker sees that the work is closed.
        self.active.fetch_add(1, Ordering::SeqCst);
        if !self.closed.load(Ordering::SeqCst) {
            self.guard.with(|| self.run_jobs_catching());
        }
        if self.active.fetch_sub(1, Ordering::SeqCst) == 1 && self.closed.load(Ordering::SeqCst) {
            self.caller.unpark();
        }
    }

    /// As `run_jobs`, storing a panic for the caller to raise.
    fn run_jobs_catching(&self) {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| self.run_jobs())) {
            self.next.store(self.jobs, Ordering::Relaxed);
            *self.panic.lock() = Some(panic);
        }
    }
}

/// Calls `job` for each number below `jobs`, on this thread and the pool's workers; all have returned at the end.
pub(super) fn run(pool: &rayon::ThreadPool, jobs: usize, job: &Job<'_>) {
    // SAFETY: only the lifetime changes; nobody follows the address after this function, as `Work` says.
    let job = unsafe { std::mem::transmute::<*const Job<'_>, *const Job<'static>>(job) };
    let work = Arc::new(Work {
        job,
        jobs,
        next: AtomicUsize::new(0),
        active: AtomicUsize::new(0),
        closed: AtomicBool::new(false),
        panic: parking_lot::Mutex::new(None),
        caller: std::thread::current(),
        guard: guard::current(),
    });
    for _ in 1..jobs.min(pool.current_num_threads()) {
        let work = work.clone();
        pool.spawn(move || work.help());
    }
    work.run_jobs_catching();
    work.closed.store(true, Ordering::SeqCst);
    let mut spins = 0;
    while work.active.load(Ordering::SeqCst) > 0 {
        if spins < SPINS {
            spins += 1;
            std::hint::spin_loop();
        } else {
            std::thread::park();
        }
    }
    if let Some(panic) = work.panic.lock().take() {
        resume_unwind(panic);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU32;

    fn pool() -> rayon::ThreadPool {
        rayon::ThreadPoolBuilder::new().num_threads(3).build().expect("three threads")
    }

    #[test]
    fn every_job_is_done_once_before_the_end() {
        let pool = pool();
        for round in 0..2000 {
            let counts: Vec<AtomicU32> = (0..round % 17).map(|_| AtomicU32::new(0)).collect();
            run(&pool, counts.len(), &|i| {
                counts[i].fetch_add(1, Ordering::Relaxed);
            });
            assert!(counts.iter().all(|count| count.load(Ordering::Relaxed) == 1), "{round}");
        }
    }

    #[test]
    fn work_inside_work() {
        let (outer, sum) = (pool(), AtomicUsize::new(0));
        let inner = &outer;
        run(&outer, 8, &|i| {
            run(inner, 8, &|j| {
                sum.fetch_add(i * 8 + j, Ordering::Relaxed);
            });
        });
        assert_eq!(sum.load(Ordering::Relaxed), 64 * 63 / 2);
    }

    #[test]
    fn a_panic_reaches_the_caller() {
        let pool = pool();
        for bad in 0..6 {
            let run = || run(&pool, 6, &|i| assert!(i != bad, "job {i}"));
            assert!(catch_unwind(AssertUnwindSafe(run)).is_err());
        }
    }
}
