//! The thread on which a session lives. Scripts get a stack of their own, which nested calls want, and the thread of the
//! caller is free to look for Ctrl-C.

use crate::failure::Failure;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::ThreadId;
use std::time::Duration;
use tscript::{Builder, InterruptHandle, Session};

type Job = Box<dyn FnOnce(&mut Session) + Send>;

/// Bound: native stack of scripts, as the program has; only touched pages take memory.
const STACK_BYTES: usize = 256 << 20;
/// How often Ctrl-C is looked for.
const SIGNALS: Duration = Duration::from_millis(50);

pub struct Worker {
    jobs: Sender<Job>,
    interrupt: InterruptHandle,
    thread: ThreadId,
}

impl Worker {
    /// Builds the session on its thread, which ends with the handle.
    pub fn start(builder: Builder) -> PyResult<Worker> {
        let (jobs, queue) = mpsc::channel::<Job>();
        let (tell, told) = mpsc::channel();
        let run = move || {
            let session = builder.stack_bytes(STACK_BYTES).build();
            let (mut session, handle) = match session.map(|session| (session.interrupt_handle(), session)) {
                Ok((handle, session)) => (session, Ok(handle)),
                Err(error) => {
                    let _ = tell.send(Err(Failure::from(error)));
                    return;
                }
            };
            let _ = tell.send(handle);
            queue.iter().for_each(|job| job(&mut session));
        };
        let thread = std::thread::Builder::new().name("tscript".into()).stack_size(STACK_BYTES).spawn(run)?;
        let interrupt = told.recv().map_err(|_| PyRuntimeError::new_err("the session did not start"))??;
        Ok(Worker { jobs, interrupt, thread: thread.thread().id() })
    }

    /// Carries out work with the session, without Python's lock. Ctrl-C stops the script.
    pub fn run<T: Send + 'static>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut Session) -> Result<T, tscript::Error> + Send + 'static,
    ) -> PyResult<T> {
        if std::thread::current().id() == self.thread {
            return Err(PyRuntimeError::new_err(
                "the session is running: it cannot be used from what its script calls",
            ));
        }
        let (tell, told) = mpsc::channel();
        let job = move |session: &mut Session| {
            let _ = tell.send(catch_unwind(AssertUnwindSafe(|| work(session))));
        };
        let gone = || PyRuntimeError::new_err("the session has ended");
        self.jobs.send(Box::new(job)).map_err(|_| gone())?;
        let mut told = told;
        let done = loop {
            let answer;
            (told, answer) = py.detach(move || {
                let answer = told.recv_timeout(SIGNALS);
                (told, answer)
            });
            match answer {
                Ok(done) => break done,
                Err(RecvTimeoutError::Disconnected) => return Err(gone()),
                Err(RecvTimeoutError::Timeout) => {
                    if let Err(stopped) = py.check_signals() {
                        self.interrupt.interrupt();
                        let _ = py.detach(move || told.recv());
                        return Err(stopped);
                    }
                }
            }
        };
        match done {
            Ok(result) => Ok(result.map_err(Failure::from)?),
            Err(_) => Err(PyRuntimeError::new_err("an internal error ended the script")),
        }
    }
}
