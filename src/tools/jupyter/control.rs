//! Requests of the control socket, on a thread of their own: they reach a kernel whose cell runs. Also the signal that
//! stops a cell, and the end of the program that started the kernel.

use super::kernel::{Work, info};
use super::outlet::Outlet;
use super::sockets::Peer;
use super::wire::Message;
use crate::tools::complain;
use crate::tools::repl::interrupts::Interrupts;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender};
use std::time::Duration;

/// How long a cell may take to stop when the kernel is shut down.
const PATIENCE: Duration = Duration::from_secs(2);

/// What ends the kernel's loop.
#[derive(Clone)]
pub struct End {
    pub queue: Sender<Work>,
    pub leaving: Arc<AtomicBool>,
    pub interrupts: Arc<Interrupts>,
}

impl End {
    /// Ends the loop; a cell that does not stop ends with the process.
    fn come(&self) {
        self.leaving.store(true, Ordering::Release);
        let _ = self.queue.send(Work::Leave);
        self.interrupts.stop();
        std::thread::sleep(PATIENCE);
        std::process::exit(0);
    }

    /// Ends the kernel with the program that started it, which sets `JPY_PARENT_PID` where that is wanted.
    pub fn come_with_parent(self) {
        #[cfg(unix)]
        if std::env::var_os("JPY_PARENT_PID").is_some_and(|value| value != "0") {
            let parent = std::os::unix::process::parent_id();
            std::thread::spawn(move || {
                while std::os::unix::process::parent_id() == parent {
                    std::thread::sleep(Duration::from_secs(1));
                }
                self.come();
            });
        }
    }
}

/// Answers requests until one of them ends the kernel.
pub fn start(asked: Receiver<Work>, outlet: Arc<Outlet>, end: End) {
    end.interrupts.clone().follow_signals();
    std::thread::spawn(move || {
        for work in asked {
            let Work::Request(peer, request) = work else { continue };
            outlet.status(&request, "busy");
            let goes_on = answer(&outlet, &end.interrupts, &peer, &request);
            outlet.status(&request, "idle");
            if !goes_on {
                end.come();
            }
        }
    });
}

/// Answers one request; whether the kernel goes on.
fn answer(outlet: &Outlet, interrupts: &Interrupts, peer: &Peer, request: &Message) -> bool {
    match request.kind() {
        "interrupt_request" => {
            interrupts.stop();
            outlet.reply(peer, request, "interrupt_reply", json!({"status": "ok"}));
        }
        "kernel_info_request" => outlet.reply(peer, request, "kernel_info_reply", info()),
        "shutdown_request" => {
            tell_shutdown(outlet, peer, request);
            return false;
        }
        other => complain(&format!("tscript: the kernel's control knows no `{other}`\n")),
    }
    true
}

/// The reply to `shutdown_request`, to all that listen, too.
pub fn tell_shutdown(outlet: &Outlet, peer: &Peer, request: &Message) {
    let content = json!({"status": "ok", "restart": request.content["restart"] == true});
    outlet.broadcast(&request.header, "shutdown_reply", content.clone());
    outlet.reply(peer, request, "shutdown_reply", content);
}
