//! Runs a kernel on a detached thread: on copies of its operands, with workers of its own. The caller waits and checks
//! meanwhile whether it must stop; if so it abandons the thread, which ends by itself later.
//!
//! For kernels of libraries, which can neither be interrupted nor report progress. Not: unwinding out of them: their
//! workers wait for each other at barriers. Cost: copies of the operands and some hundred microseconds.

use super::abi::{Call, Faults, HostFn, RawView, Threads};
use super::guard::{self, End, Guard};
use crate::base::attr::Attr;
use crate::kernel::copy::host::copy_view;
use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// Bound: time between two checks of the waiting caller; the kernel's end wakes it at once.
const CHECK_PERIOD: Duration = Duration::from_millis(4);

/// Idle workers.
static IDLE: parking_lot::Mutex<Option<Threads>> = parking_lot::Mutex::new(None);

/// Everything that the detached thread reads and writes.
struct Task {
    /// Invariant: `inputs` and `outputs` point into it.
    _memory: Vec<Vec<u64>>,
    inputs: Vec<RawView>,
    outputs: Vec<RawView>,
    attrs: Vec<Attr>,
    faults: Faults,
    threads: Threads,
    seed: u64,
    offset: u64,
    /// Freed together with the memory.
    _lease: Box<dyn Any + Send>,
}

/// The guard of the detached thread: once the thread is abandoned, its kernel ends at its next check.
struct Abandoned(Arc<AtomicBool>);

impl Guard for Abandoned {
    fn must_stop(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
    fn admit(&self, _: usize) -> bool {
        true
    }
    fn release(&self, _: usize) {}
    fn time_left(&self) -> Option<Duration> {
        None
    }
    fn may_detach(&self) -> bool {
        false
    }
}

/// Bytes of the copies.
pub fn bytes(call: &Call<'_>) -> usize {
    call.inputs.iter().chain(call.outputs).map(|view| view.numel().saturating_mul(view.dtype.size_bytes())).sum()
}

/// Runs a kernel on a detached thread. `lease` lives as long as the copies.
///
/// # Safety
/// As [`HostFn`].
pub unsafe fn run(host: HostFn, call: &Call<'_>, guard: &dyn Guard, lease: Box<dyn Any + Send>) -> Result<(), End> {
    let mut memory = Vec::new();
    let mut copy_of = |view: &RawView| -> Result<RawView, End> {
        let bytes = view.numel() * view.dtype.size_bytes();
        let mut block: Vec<u64> = Vec::new();
        block.try_reserve_exact(bytes.div_ceil(8)).map_err(|_| End::NoMemory(bytes))?;
        block.resize(bytes.div_ceil(8), 0);
        let copy = RawView::contiguous(block.as_mut_ptr().cast(), view.dtype, &view.shape);
        memory.push(block);
        Ok(copy)
    };
    let inputs = call.inputs.iter().map(&mut copy_of).collect::<Result<Vec<_>, End>>()?;
    let outputs = call.outputs.iter().map(&mut copy_of).collect::<Result<Vec<_>, End>>()?;
    for (from, to) in call.inputs.iter().zip(&inputs) {
        // SAFETY: `call` is one of `HostFn`, whose views are valid and not shared; the copy is ours.
        unsafe { copy_view(from, to, call.threads) };
    }
    let task = Task {
        _memory: memory,
        inputs,
        outputs,
        attrs: call.attrs.to_vec(),
        faults: Faults::default(),
        threads: IDLE.lock().take().unwrap_or_else(|| Threads::new(call.threads.count())),
        seed: call.seed,
        offset: call.offset,
        _lease: lease,
    };
    let abandoned = Arc::new(AtomicBool::new(false));
    let (sender, receiver) = channel();
    let flag = Abandoned(abandoned.clone());
    let thread = std::thread::Builder::new().name("tscript-kernel".into());
    if thread.spawn(move || work(host, task, &flag, &sender)).is_err() {
        // SAFETY: `call` is one that `host` may be called with (this function's contract). Without a thread it is done
        // here, however long it takes.
        return guard::under(&Abandoned(abandoned), || unsafe { host(call) });
    }
    let task = loop {
        match receiver.recv_timeout(CHECK_PERIOD) {
            Ok((task, done)) => {
                done?;
                break task;
            }
            Err(RecvTimeoutError::Timeout) if guard.must_stop() => {
                abandoned.store(true, Ordering::Relaxed);
                return Err(End::Interrupted);
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Err(End::Panic("its thread is gone".into())),
        }
    };
    if let Some(fault) = task.faults.take() {
        call.faults.report(fault);
    }
    for (from, to) in task.outputs.iter().zip(call.outputs) {
        // SAFETY: `call` is one of `HostFn`, whose views are valid and not shared; the thread is done with the copy.
        unsafe { copy_view(from, to, call.threads) };
    }
    *IDLE.lock() = Some(task.threads);
    Ok(())
}

fn work(host: HostFn, task: Task, guard: &Abandoned, sender: &Sender<(Task, Result<(), End>)>) {
    let call = Call {
        inputs: &task.inputs,
        outputs: &task.outputs,
        attrs: &task.attrs,
        threads: &task.threads,
        faults: &task.faults,
        seed: task.seed,
        offset: task.offset,
    };
    // SAFETY: the views are those of the caller's call in `task`, of which this thread is the owner.
    let done = guard::under(guard, || unsafe { host(&call) });
    // Fails if the thread was abandoned: the receiver no longer exists.
    let _ = sender.send((task, done));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::dtype::DType;
    use crate::kernel::abi::{Fault, FaultKind};
    use std::time::Instant;

    struct Asked(AtomicBool);

    impl Guard for Asked {
        fn must_stop(&self) -> bool {
            self.0.load(Ordering::Relaxed)
        }
        fn admit(&self, _: usize) -> bool {
            true
        }
        fn release(&self, _: usize) {}
        fn time_left(&self) -> Option<Duration> {
            None
        }
        fn may_detach(&self) -> bool {
            true
        }
    }

    /// The first input selects: double, panic or sleep.
    unsafe fn kernel(call: &Call<'_>) {
        // SAFETY: `outcome` makes both views over arrays of four `f64`.
        let (from, to) = unsafe { (call.inputs[0].slice::<f64>(), call.outputs[0].slice_mut::<f64>()) };
        match from[0] {
            7.0 => panic!("on purpose"),
            9.0 => std::thread::sleep(Duration::from_secs(30)),
            _ => to.iter_mut().zip(from).for_each(|(to, from)| *to = from * 2.0),
        }
        call.faults.report(Fault { kind: FaultKind::Singular, position: 3, value: 0, bound: 0 });
    }

    fn outcome(first: f64, guard: &dyn Guard) -> (Result<(), End>, [f64; 4], Option<Fault>) {
        // A column of a wider matrix.
        let mut from = [first, 0.0, 2.0, 0.0, 3.0, 0.0, 4.0, 0.0];
        let mut to = [0.0; 4];
        let input = RawView {
            strides: smallvec::SmallVec::from_slice(&[2]),
            ..RawView::contiguous(from.as_mut_ptr().cast(), DType::F64, &[4])
        };
        let output = RawView::contiguous(to.as_mut_ptr().cast(), DType::F64, &[4]);
        let faults = Faults::default();
        let call = Call {
            inputs: &[input],
            outputs: &[output],
            attrs: &[],
            threads: &Threads::ONE,
            faults: &faults,
            seed: 0,
            offset: 0,
        };
        // SAFETY: the views lie in arrays of ours.
        let done = unsafe { run(kernel, &call, guard, Box::new(())) };
        (done, to, faults.take())
    }

    #[test]
    fn results_faults_and_panics_come_back() {
        let guard = Asked(AtomicBool::new(false));
        let (done, to, fault) = outcome(1.0, &guard);
        assert_eq!((done, to, fault.map(|f| f.position)), (Ok(()), [2.0, 4.0, 6.0, 8.0], Some(3)));
        let (done, to, _) = outcome(7.0, &guard);
        assert_eq!((done, to), (Err(End::Panic("on purpose".into())), [0.0; 4]));
    }

    #[test]
    fn an_interrupted_caller_abandons_the_thread() {
        let begun = Instant::now();
        let (done, to, fault) = outcome(9.0, &Asked(AtomicBool::new(true)));
        assert_eq!((done, to, fault), (Err(End::Interrupted), [0.0; 4], None));
        assert!(begun.elapsed() < Duration::from_secs(5));
    }
}
