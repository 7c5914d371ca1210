//! Messages of JSON-RPC over a pair of streams: a header with the length, an empty line, the text.
//!
//! A thread reads, so that a cancellation reaches a request that waits for its turn or is under way.

use serde_json::{Value, json};
use std::collections::HashSet;
use std::io::{BufRead, Read, Write};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError};

/// Bound: bytes of a message.
const MESSAGE_BYTES: usize = 256 << 20;

/// Bound: cancellations that are kept; those of requests that were answered already meet nothing.
const CANCELLED: usize = 1000;

/// Error codes of JSON-RPC and of the protocol.
pub const PARSE_ERROR: i64 = -32700;
pub const INVALID_REQUEST: i64 = -32600;
pub const METHOD_NOT_FOUND: i64 = -32601;
pub const INVALID_PARAMS: i64 = -32602;
pub const INTERNAL_ERROR: i64 = -32603;
pub const SERVER_NOT_INITIALIZED: i64 = -32002;
pub const REQUEST_FAILED: i64 = -32803;
pub const REQUEST_CANCELLED: i64 = -32800;

/// A request that is answered by an error.
#[derive(Debug)]
pub struct Failure {
    pub code: i64,
    pub message: String,
}

impl Failure {
    pub fn new(code: i64, message: impl Into<String>) -> Failure {
        Failure { code, message: message.into() }
    }

    /// Nothing is wrong with the request, and yet it cannot be carried out.
    pub fn refused(message: impl Into<String>) -> Failure {
        Failure::new(REQUEST_FAILED, message)
    }
}

/// What came from the client.
pub enum Incoming {
    Message(Value),
    /// A message that is no JSON.
    Malformed(String),
}

/// Ids of requests that the client does not wait for any more.
#[derive(Clone, Default)]
pub struct Cancelled(Arc<Mutex<HashSet<String>>>);

impl Cancelled {
    fn note(&self, id: &Value) {
        let mut ids = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if ids.len() >= CANCELLED {
            ids.clear();
        }
        ids.insert(id.to_string());
    }

    /// Whether a request was cancelled.
    pub fn has(&self, id: &Value) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains(&id.to_string())
    }

    /// The request is answered.
    pub fn forget(&self, id: &Value) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&id.to_string());
    }
}

/// Where messages to the client go; threads share it.
#[derive(Clone)]
pub struct Output(Arc<Mutex<Box<dyn Write + Send>>>);

impl Output {
    pub fn new(out: impl Write + Send + 'static) -> Output {
        Output(Arc::new(Mutex::new(Box::new(out))))
    }

    /// Sends a message. If nobody reads any more, the end of the input follows, which ends the server.
    pub fn send(&self, message: &Value) {
        let text = message.to_string();
        let mut out = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = write!(out, "Content-Length: {}\r\n\r\n{text}", text.len()).and_then(|()| out.flush());
    }

    pub fn notify(&self, method: &str, params: Value) {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    pub fn request(&self, id: &str, method: &str, params: Value) {
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
    }

    pub fn answer(&self, id: &Value, result: Result<Value, Failure>) {
        self.send(&match result {
            Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
            Err(Failure { code, message }) => {
                json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})
            }
        });
    }
}

/// Reads on a thread of its own until the input ends.
pub fn reading(mut input: impl BufRead + Send + 'static) -> (Receiver<Incoming>, Cancelled) {
    let (sender, receiver) = channel();
    let cancelled = Cancelled::default();
    let noted = cancelled.clone();
    std::thread::spawn(move || {
        while let Some(text) = message(&mut input) {
            let incoming = match serde_json::from_slice::<Value>(&text) {
                Ok(message) if message["method"] == "$/cancelRequest" => {
                    noted.note(&message["params"]["id"]);
                    continue;
                }
                Ok(message) => Incoming::Message(message),
                Err(error) => Incoming::Malformed(error.to_string()),
            };
            if sender.send(incoming).is_err() {
                return;
            }
        }
    });
    (receiver, cancelled)
}

/// The text of the next message; `None` at the end. Lines that are no header are passed over.
fn message(input: &mut impl BufRead) -> Option<Vec<u8>> {
    let mut length = None;
    loop {
        let mut line = Vec::new();
        if input.read_until(b'\n', &mut line).ok()? == 0 {
            return None;
        }
        let line = String::from_utf8_lossy(&line);
        let line = line.trim();
        match (line.split_once(':'), length) {
            (Some((name, value)), _) if name.eq_ignore_ascii_case("content-length") => {
                length = value.trim().parse::<usize>().ok();
            }
            (None, Some(length)) if line.is_empty() => return body(input, length),
            _ => {}
        }
    }
}

fn body(input: &mut impl BufRead, length: usize) -> Option<Vec<u8>> {
    if length > MESSAGE_BYTES {
        // No JSON, and answered as such.
        std::io::copy(&mut input.take(length as u64), &mut std::io::sink()).ok()?;
        return Some(Vec::new());
    }
    let mut text = vec![0; length];
    input.read_exact(&mut text).ok()?;
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_cut_by_their_length() {
        let mut input: &[u8] = b"noise\r\nContent-Length: 2\r\nContent-Type: x\r\n\r\n{}content-length: 1\n\n7";
        assert_eq!(message(&mut input).as_deref(), Some(&b"{}"[..]));
        assert_eq!(message(&mut input).as_deref(), Some(&b"7"[..]));
        assert_eq!(message(&mut input), None);
        let mut short: &[u8] = b"Content-Length: 9\r\n\r\n{}";
        assert_eq!(message(&mut short), None);
    }
}
