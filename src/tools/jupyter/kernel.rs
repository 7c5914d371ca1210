//! The kernel: sockets, threads, and the loop that answers requests.
//!
//! One thread has the session and answers the requests of the shell, one after another. Requests of the control socket
//! have a thread of their own, so that they reach a cell that runs; the heartbeat is answered where it arrives.

use super::control;
use super::execute::Executor;
use super::outlet::{Outlet, PROTOCOL};
use super::sockets::{Backlog, Event, Message as Frames, Peer, Publisher, SocketType, Told, serve};
use super::wire::{Key, Message};
use super::{connection, questions};
use crate::base::code;
use crate::base::diag::Diag;
use crate::files::input::os_reason;
use crate::tools::command::Settings;
use crate::tools::render::{Coloring, render};
use crate::tools::repl::offers::Offers;
use crate::tools::run::{Failure, guarded, text};
use crate::tools::{FAILED, complain};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

/// How long replies may take to leave at the end.
const LINGER: Duration = Duration::from_secs(1);
/// How long requests that were sent before the error of a cell may take to arrive, after the last one.
const STRAGGLERS: Duration = Duration::from_millis(20);
/// Bound: the same for all of them.
const ALL_STRAGGLERS: Duration = Duration::from_millis(500);

/// What the loop has to do.
pub enum Work {
    Request(Peer, Message),
    /// A cell that is not run, since one before it failed.
    Abort(Peer, Message),
    Leave,
}

/// `tscript jupyter run FILE`: a kernel at the addresses of a connection file, until it is shut down.
pub fn run(file: &Path, settings: Settings) -> u8 {
    match Kernel::start(file, settings) {
        Ok(mut kernel) => {
            kernel.answer();
            0
        }
        Err(failure) => {
            complain(&failure);
            FAILED
        }
    }
}

struct Kernel {
    outlet: Arc<Outlet>,
    executor: Executor,
    offers: Offers,
    queue: Receiver<Work>,
    /// Work that was taken from the queue already.
    taken: VecDeque<Work>,
    backlog: Backlog,
    /// Set before `Work::Leave` is sent, so that what stands before it in the queue is left.
    leaving: Arc<AtomicBool>,
}

impl Kernel {
    /// Starts a session and listens; or tells why not.
    fn start(file: &Path, settings: Settings) -> Result<Kernel, String> {
        let told = |diag: Box<Diag>| render(&diag, &Default::default(), Coloring::of_stderr());
        let connection = connection::read(file).map_err(told)?;
        let (publisher, backlog) = (Publisher::default(), Backlog::default());
        let outlet = Outlet::new(publisher.clone(), connection.key.clone());
        let executor = Executor::new(settings, outlet.clone()).map_err(|failure| text(&failure))?;
        let (sender, queue) = channel();
        let (asks, asked) = channel();
        let leaving = Arc::new(AtomicBool::new(false));
        let end = control::End { queue: sender.clone(), leaving: leaving.clone(), interrupts: executor.interrupts() };
        end.clone().come_with_parent();
        control::start(asked, outlet.clone(), end);
        let key = &connection.key;
        let listen = |address, kind, told: Told| {
            serve(address, kind, &backlog, told).map_err(|error| {
                let message = format!("the kernel cannot listen at {address}: {}", os_reason(&error));
                let diag = Diag::error(code::FILE, message);
                let help = format!("{} names the address; another program may listen there", file.display());
                render(&diag.help(help), &Default::default(), Coloring::of_stderr())
            })
        };
        listen(&connection.heartbeat, SocketType::Rep, Box::new(echo))?;
        listen(&connection.iopub, SocketType::Pub, Box::new(move |peer, event| publisher.note(peer, event)))?;
        // A script asks its user for nothing.
        listen(&connection.stdin, SocketType::Router, Box::new(|_, _| {}))?;
        listen(&connection.control, SocketType::Router, requests(asks, key))?;
        listen(&connection.shell, SocketType::Router, requests(sender, key))?;
        Ok(Kernel { outlet, executor, offers: Offers::new(), queue, taken: VecDeque::new(), backlog, leaving })
    }

    /// Answers requests until one of them, or the control thread, ends the kernel.
    fn answer(&mut self) {
        while let Some(work) = self.next() {
            match work {
                Work::Leave => break,
                Work::Abort(peer, request) => {
                    self.outlet.status(&request, "busy");
                    self.outlet.reply(&peer, &request, "execute_reply", json!({"status": "aborted"}));
                    self.outlet.status(&request, "idle");
                }
                Work::Request(peer, request) => {
                    if !self.around(&peer, &request) {
                        break;
                    }
                }
            }
        }
        self.backlog.drain(LINGER);
    }

    /// Work in its order, unless the kernel is to end.
    fn next(&mut self) -> Option<Work> {
        let next = self.taken.pop_front().or_else(|| self.queue.recv().ok());
        next.filter(|_| !self.leaving.load(Ordering::Acquire))
    }

    /// Answers one request, between `busy` and `idle`; whether the kernel goes on. A panic becomes a reply.
    fn around(&mut self, peer: &Peer, request: &Message) -> bool {
        self.outlet.status(request, "busy");
        let done = guarded(|| Ok(self.one(peer, request)));
        if let Err(Failure::Panic(text)) = &done {
            complain(text);
            let mut content = super::notebook::panicked();
            content["status"] = json!("error");
            self.outlet.reply(peer, request, &request.kind().replace("_request", "_reply"), content);
        }
        self.outlet.status(request, "idle");
        done.unwrap_or(true)
    }

    /// Answers one request; whether the kernel goes on.
    fn one(&mut self, peer: &Peer, request: &Message) -> bool {
        let content = &request.content;
        let session = self.executor.session();
        let (kind, reply) = match request.kind() {
            "execute_request" => {
                drop(session);
                self.execute(peer, request);
                return true;
            }
            "complete_request" => ("complete_reply", questions::complete(&session.borrow(), &self.offers, content)),
            "inspect_request" => ("inspect_reply", questions::inspect(&session.borrow(), content)),
            "is_complete_request" => ("is_complete_reply", questions::is_complete(&session.borrow(), content)),
            "history_request" => ("history_reply", self.executor.history.reply(content)),
            "kernel_info_request" => ("kernel_info_reply", info()),
            "comm_info_request" => ("comm_info_reply", json!({"status": "ok", "comms": {}})),
            "comm_open" => {
                // There is nobody here to talk to.
                let close = json!({"comm_id": content["comm_id"], "data": {}});
                self.outlet.broadcast(&request.header, "comm_close", close);
                return true;
            }
            "comm_msg" | "comm_close" => return true,
            "shutdown_request" => {
                control::tell_shutdown(&self.outlet, peer, request);
                return false;
            }
            other => {
                complain(&format!("tscript: the kernel knows no `{other}`\n"));
                return true;
            }
        };
        self.outlet.reply(peer, request, kind, reply);
        true
    }

    /// Runs a cell. If it fails, the cells that were sent after it are not run, unless the request says otherwise.
    fn execute(&mut self, peer: &Peer, request: &Message) {
        let reply = self.executor.execute(request);
        if reply["status"] == "error" && request.content["stop_on_error"] != false {
            // Before the reply: who has read it may mean what is sent next.
            let start = Instant::now();
            while start.elapsed() < ALL_STRAGGLERS
                && let Ok(work) = self.queue.recv_timeout(STRAGGLERS)
            {
                self.taken.push_back(work);
            }
            let aborted = |work| match work {
                Work::Request(peer, request) if request.kind() == "execute_request" => Work::Abort(peer, request),
                other => other,
            };
            self.taken = std::mem::take(&mut self.taken).into_iter().map(aborted).collect();
        }
        self.outlet.reply(peer, request, "execute_reply", reply);
    }
}

/// Gives what arrives at a socket to a queue. What is no message is dropped.
fn requests(queue: Sender<Work>, key: &Key) -> Told {
    let key = key.clone();
    Box::new(move |peer, event| {
        let Event::Message(message) = event else { return };
        let frames: Vec<Vec<u8>> = message.iter().map(|frame| frame.to_vec()).collect();
        match Message::decode(&frames, &key) {
            Ok(message) => {
                let _ = queue.send(Work::Request(peer.clone(), message));
            }
            Err(why) => complain(&format!("tscript: a message was dropped: {why}\n")),
        }
    })
}

/// The heartbeat: the same message back.
fn echo(peer: &Peer, event: Event) {
    if let Event::Message(message) = event {
        peer.send(Frames::multipart(message.iter().map(|frame| frame.to_vec())));
    }
}

/// The reply to `kernel_info_request`. Editors color cells as Rust, whose words and signs are nearly those of a script.
pub fn info() -> Value {
    let version = env!("CARGO_PKG_VERSION");
    json!({
        "status": "ok",
        "protocol_version": PROTOCOL,
        "implementation": "tscript",
        "implementation_version": version,
        "language_info": {
            "name": "tscript",
            "version": version,
            "mimetype": "text/x-tscript",
            "file_extension": ".rhai",
            "pygments_lexer": "rust",
            "codemirror_mode": "rust",
            "nbconvert_exporter": "script",
        },
        "banner": format!("tscript {version}   :help tells more"),
        "help_links": [],
        "debugger": false,
        "supported_features": [],
    })
}
