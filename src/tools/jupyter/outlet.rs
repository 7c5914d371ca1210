//! What the kernel sends: replies to the peer that asked, and broadcasts to all. Text that cells print is collected for a
//! moment, so that a cell which prints a line at a time does not send a message for each.

use super::sockets::{Message as Frames, Peer, Publisher};
use super::wire::{Key, Message};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

/// The version of the messaging protocol.
pub const PROTOCOL: &str = "5.4";

/// How long text is collected, and how many bytes of it.
const MOMENT: Duration = Duration::from_millis(40);
const TEXT_BYTES: usize = 16 << 10;

/// A stream of text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stream {
    Output,
    Errors,
}

pub struct Outlet {
    publisher: Publisher,
    key: Key,
    /// What all messages of this process have in common.
    session: String,
    next: AtomicU64,
    /// The header of the request under way, or of the last one.
    parent: Mutex<Value>,
    /// The request wants nothing shown.
    silent: AtomicBool,
    /// Text that is not sent yet.
    text: Mutex<(Stream, String)>,
    /// Wakes the thread that sends it.
    wake: SyncSender<()>,
}

impl Outlet {
    pub fn new(publisher: Publisher, key: Key) -> Arc<Outlet> {
        let (wake, woken) = sync_channel(1);
        let outlet = Arc::new(Outlet {
            publisher,
            key,
            session: session_name(),
            next: AtomicU64::new(0),
            parent: Mutex::new(json!({})),
            silent: AtomicBool::new(false),
            text: Mutex::new((Stream::Output, String::new())),
            wake,
        });
        let sends = Arc::downgrade(&outlet);
        std::thread::spawn(move || collect(&woken, &sends));
        outlet
    }

    /// A request begins: what follows belongs to it.
    pub fn begin(&self, request: &Message, silent: bool) {
        self.flush();
        *self.parent.lock().unwrap_or_else(PoisonError::into_inner) = request.header.clone();
        self.silent.store(silent, Ordering::Relaxed);
    }

    /// Whether the kernel is at work on a request: `busy` or `idle`.
    pub fn status(&self, request: &Message, state: &str) {
        self.flush();
        self.broadcast(&request.header, "status", json!({"execution_state": state}));
    }

    /// What a request shows, unless it wants nothing shown.
    pub fn show(&self, kind: &str, content: Value) {
        self.flush();
        if !self.silent.load(Ordering::Relaxed) {
            self.broadcast(&self.parent(), kind, content);
        }
    }

    /// Text of a stream.
    pub fn write(&self, stream: Stream, text: &str) {
        let mut pending = self.pending();
        if pending.0 != stream {
            self.send_text(&mut pending);
        }
        pending.0 = stream;
        pending.1.push_str(text);
        if pending.1.len() >= TEXT_BYTES {
            self.send_text(&mut pending);
        } else {
            // If it is full, the thread wakes anyway.
            let _ = self.wake.try_send(());
        }
    }

    /// Sends the text that was collected.
    pub fn flush(&self) {
        self.send_text(&mut self.pending());
    }

    fn pending(&self) -> MutexGuard<'_, (Stream, String)> {
        self.text.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn send_text(&self, pending: &mut (Stream, String)) {
        let text = std::mem::take(&mut pending.1);
        if !text.is_empty() && !self.silent.load(Ordering::Relaxed) {
            let name = if pending.0 == Stream::Output { "stdout" } else { "stderr" };
            self.broadcast(&self.parent(), "stream", json!({"name": name, "text": text}));
        }
    }

    fn parent(&self) -> Value {
        self.parent.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// To all that listen, on behalf of a request.
    pub fn broadcast(&self, parent: &Value, kind: &str, content: Value) {
        let topic = format!("kernel.{}.{kind}", self.session).into_bytes();
        let message = self.message(vec![topic.clone()], parent, kind, content);
        self.publisher.send(&topic, &Frames::multipart(message.encode(&self.key)));
    }

    /// To the peer that asked.
    pub fn reply(&self, peer: &Peer, request: &Message, kind: &str, content: Value) {
        let message = self.message(request.route.clone(), &request.header, kind, content);
        peer.send(Frames::multipart(message.encode(&self.key)));
    }

    fn message(&self, route: Vec<Vec<u8>>, parent: &Value, kind: &str, content: Value) -> Message {
        let header = json!({
            "msg_id": format!("{}_{}", self.session, self.next.fetch_add(1, Ordering::Relaxed)),
            "session": self.session,
            "username": "kernel",
            "date": date(SystemTime::now()),
            "msg_type": kind,
            "version": PROTOCOL,
        });
        Message { route, header, parent: parent.clone(), metadata: json!({}), content }
    }
}

/// Sends text a moment after it came.
fn collect(woken: &Receiver<()>, outlet: &std::sync::Weak<Outlet>) {
    while woken.recv().is_ok() {
        std::thread::sleep(MOMENT);
        let Some(outlet) = outlet.upgrade() else { return };
        outlet.flush();
    }
}

/// A name that no other process has: 128 bits at random.
fn session_name() -> String {
    use std::hash::{BuildHasher, RandomState};
    let random = || RandomState::new().hash_one(std::process::id());
    format!("{:016x}{:016x}", random(), random())
}

/// `2026-11-28T08:30:00.123456Z`.
fn date(time: SystemTime) -> String {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let (days, seconds) = ((since.as_secs() / 86_400) as i64, since.as_secs() % 86_400);
    // Days in the calendar that begins on the first of March of the year 0, whose years end with a leap day.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let (month, later) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    let year = era * 400 + year + later;
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:06}Z", since.subsec_micros())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (seconds, expected) in [
            (0, "1970-01-01T00:00:00.000000Z"),
            (951_782_399, "2000-02-28T23:59:59.000000Z"),
            (951_782_400, "2000-02-29T00:00:00.000000Z"),
            (1_709_251_199, "2024-02-29T23:59:59.000000Z"),
            (1_709_251_200, "2024-03-01T00:00:00.000000Z"),
            (1_798_761_599, "2026-12-31T23:59:59.000000Z"),
            (4_107_542_400, "2100-03-01T00:00:00.000000Z"),
        ] {
            assert_eq!(date(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)), expected);
        }
    }
}
