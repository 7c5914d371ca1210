//! Sockets of ZeroMQ: a listener whose peers send messages of several frames and get such messages. `omq_proto` reads and
//! writes the protocol ZMTP; here are the threads: of each peer one reads, one writes.
//!
//! Knows nothing of what the messages say.

use omq_proto::proto::command::Command;
use omq_proto::proto::connection::{Connection, ConnectionConfig, Event as Step, Role};
pub use omq_proto::{Message, SocketType};
use std::io::{Read, Result, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
#[cfg(unix)]
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Bound: bytes of a message, and of messages that wait for a peer which does not read; further ones are dropped, as
/// ZeroMQ does.
const MESSAGE_BYTES: usize = 256 << 20;
const WAITING_BYTES: usize = 256 << 20;
/// Bytes that are read at once.
const READ_BYTES: usize = 64 << 10;

/// Where a socket listens.
#[derive(Clone, Debug, PartialEq)]
pub enum Address {
    Tcp(String, u16),
    /// A socket file.
    Ipc(PathBuf),
}

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Address::Tcp(ip, port) => write!(f, "tcp://{ip}:{port}"),
            Address::Ipc(path) => write!(f, "ipc://{}", path.display()),
        }
    }
}

/// What a peer does.
pub enum Event {
    Joined,
    Left,
    Message(Message),
    Subscribed(Vec<u8>),
    Unsubscribed(Vec<u8>),
}

/// Is told what a peer does: on the peer's own thread, `Joined` first and `Left` last.
pub type Told = Box<dyn Fn(&Peer, Event) + Send + Sync>;

/// The other end of a connection.
#[derive(Clone)]
pub struct Peer {
    number: u64,
    queue: Sender<Option<Message>>,
    waiting: Arc<Waiting>,
}

/// Messages that are not written yet: bytes for one peer, and their number for all.
struct Waiting {
    bytes: AtomicUsize,
    all: Backlog,
}

/// The number of messages that are not written yet, of several sockets.
#[derive(Clone, Default)]
pub struct Backlog(Arc<AtomicUsize>);

impl Backlog {
    /// Waits until all messages are written, for a time.
    pub fn drain(&self, patience: Duration) {
        let start = Instant::now();
        while self.0.load(Ordering::Acquire) > 0 && start.elapsed() < patience {
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

impl Peer {
    /// Queues a message; one for a peer that has left, or that has too many waiting, is dropped.
    pub fn send(&self, message: Message) {
        let bytes = message.byte_len();
        if self.waiting.bytes.load(Ordering::Relaxed) > WAITING_BYTES {
            return;
        }
        self.waiting.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.waiting.all.0.fetch_add(1, Ordering::AcqRel);
        if self.queue.send(Some(message)).is_err() {
            self.waiting.all.0.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

impl PartialEq for Peer {
    fn eq(&self, other: &Peer) -> bool {
        self.number == other.number
    }
}

enum Listener {
    Tcp(TcpListener),
    #[cfg(unix)]
    Unix(UnixListener),
}

enum Stream {
    Tcp(TcpStream),
    #[cfg(unix)]
    Unix(UnixStream),
}

/// Listens at an address, and tells what each peer does.
pub fn serve(address: &Address, kind: SocketType, backlog: &Backlog, told: Told) -> Result<()> {
    let listener = match address {
        Address::Tcp(ip, port) => Listener::Tcp(TcpListener::bind((ip.as_str(), *port))?),
        #[cfg(unix)]
        Address::Ipc(path) => {
            // Left behind by a kernel that was killed.
            let _ = std::fs::remove_file(path);
            Listener::Unix(UnixListener::bind(path)?)
        }
        #[cfg(not(unix))]
        Address::Ipc(_) => return Err(std::io::ErrorKind::Unsupported.into()),
    };
    let (told, backlog) = (Arc::new(told), backlog.clone());
    std::thread::spawn(move || {
        loop {
            let Ok(stream) = accept(&listener) else {
                // No more files can be open, for now.
                std::thread::sleep(Duration::from_millis(50));
                continue;
            };
            let (told, backlog) = (told.clone(), backlog.clone());
            // A thread that cannot be started drops the stream, which tells the peer.
            let _ = std::thread::Builder::new().spawn(move || converse(stream, kind, backlog, &*told));
        }
    });
    Ok(())
}

fn accept(listener: &Listener) -> Result<Stream> {
    match listener {
        Listener::Tcp(listener) => {
            let (stream, _) = listener.accept()?;
            stream.set_nodelay(true)?;
            Ok(Stream::Tcp(stream))
        }
        #[cfg(unix)]
        Listener::Unix(listener) => Ok(Stream::Unix(listener.accept()?.0)),
    }
}

impl Stream {
    fn reader(&self) -> Result<Box<dyn Read + Send>> {
        Ok(match self {
            Stream::Tcp(stream) => Box::new(stream.try_clone()?),
            #[cfg(unix)]
            Stream::Unix(stream) => Box::new(stream.try_clone()?),
        })
    }

    fn writer(&self) -> Result<Box<dyn Write + Send>> {
        Ok(match self {
            Stream::Tcp(stream) => Box::new(stream.try_clone()?),
            #[cfg(unix)]
            Stream::Unix(stream) => Box::new(stream.try_clone()?),
        })
    }

    fn close(&self) {
        let _ = match self {
            Stream::Tcp(stream) => stream.shutdown(Shutdown::Both),
            #[cfg(unix)]
            Stream::Unix(stream) => stream.shutdown(Shutdown::Both),
        };
    }
}

fn lock(connection: &Mutex<Connection>) -> MutexGuard<'_, Connection> {
    connection.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One peer, from its greeting to its end.
fn converse(stream: Stream, kind: SocketType, all: Backlog, told: &dyn Fn(&Peer, Event)) {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let (Ok(mut reader), Ok(writer)) = (stream.reader(), stream.writer()) else { return };
    let config = ConnectionConfig::new(Role::Server, kind).max_message_size(MESSAGE_BYTES);
    let connection = Arc::new(Mutex::new(Connection::new(config)));
    let (queue, messages) = channel();
    let waiting = Arc::new(Waiting { bytes: AtomicUsize::new(0), all });
    let shared = (connection.clone(), waiting.clone());
    let writes = std::thread::Builder::new().spawn(move || write(writer, &messages, &shared.0, &shared.1));
    if writes.is_err() {
        return;
    }
    let peer = Peer { number: NUMBER.fetch_add(1, Ordering::Relaxed), queue, waiting };
    let mut joined = false;
    let mut tell = |event: Event| {
        joined |= matches!(event, Event::Joined);
        told(&peer, event);
    };
    let mut buffer = vec![0; READ_BYTES];
    loop {
        // A greeting, or an answer of the protocol's own.
        if lock(&connection).has_pending_transmit() && peer.queue.send(None).is_err() {
            break;
        }
        let count = match reader.read(&mut buffer) {
            Ok(0) | Err(_) => break,
            Ok(count) => count,
        };
        let (steps, right) = advance(&mut lock(&connection), &buffer[..count]);
        steps.into_iter().for_each(|step| event(step).into_iter().for_each(&mut tell));
        if !right {
            crate::tools::complain("tscript: what a peer sent is not of ZeroMQ's protocol; it was sent away\n");
            break;
        }
    }
    stream.close();
    if joined {
        told(&peer, Event::Left);
    }
}

/// Takes bytes of the peer; whether they are of the protocol.
fn advance(connection: &mut Connection, bytes: &[u8]) -> (Vec<Step>, bool) {
    let right = connection.handle_input(bytes.to_vec().into()).is_ok();
    let mut steps: Vec<Step> = std::iter::from_fn(|| connection.poll_event()).collect();
    steps.extend(std::iter::from_fn(|| connection.poll_message()).map(Step::Message));
    (steps, right)
}

fn event(step: Step) -> Option<Event> {
    match step {
        Step::HandshakeSucceeded { .. } => Some(Event::Joined),
        Step::Message(message) => Some(Event::Message(message)),
        Step::Command(Command::Subscribe(prefix)) => Some(Event::Subscribed(prefix.to_vec())),
        Step::Command(Command::Cancel(prefix)) => Some(Event::Unsubscribed(prefix.to_vec())),
        Step::Command(_) => None,
    }
}

/// Writes messages, and what the protocol itself has to say, until nobody can send any more.
fn write(
    mut writer: Box<dyn Write + Send>,
    messages: &Receiver<Option<Message>>,
    connection: &Mutex<Connection>,
    waiting: &Waiting,
) {
    let mut open = true;
    for message in messages {
        let bytes = {
            let mut connection = lock(connection);
            if let Some(message) = &message {
                open = open && connection.send_message(message).is_ok();
            }
            let chunks = connection.clone_transmit_chunks();
            connection.advance_transmit(chunks.iter().map(|chunk| chunk.len()).sum());
            chunks
        };
        open = open && bytes.iter().all(|chunk| writer.write_all(chunk).is_ok());
        if let Some(message) = message {
            waiting.bytes.fetch_sub(message.byte_len(), Ordering::Relaxed);
            waiting.all.0.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

/// A peer, and the beginnings of the topics that it wants.
type Subscriber = (Peer, Vec<Vec<u8>>);

/// A socket of kind `PUB`: each message goes to all peers that want its topic.
#[derive(Clone, Default)]
pub struct Publisher {
    subscribers: Arc<Mutex<Vec<Subscriber>>>,
}

impl Publisher {
    /// Takes note of what a peer does.
    pub fn note(&self, peer: &Peer, event: Event) {
        let mut all = self.subscribers.lock().unwrap_or_else(PoisonError::into_inner);
        let known = all.iter_mut().find(|(other, _)| other == peer).map(|(_, topics)| topics);
        match (event, known) {
            (Event::Joined, None) => all.push((peer.clone(), Vec::new())),
            (Event::Left, _) => all.retain(|(other, _)| other != peer),
            (Event::Subscribed(topic), Some(topics)) => topics.push(topic),
            (Event::Unsubscribed(topic), Some(topics)) => {
                if let Some(at) = topics.iter().position(|known| *known == topic) {
                    topics.swap_remove(at);
                }
            }
            // The older form of both: a message with the topic after a byte.
            (Event::Message(message), Some(topics)) => match message.get(0).and_then(|frame| frame.split_first()) {
                Some((1, topic)) => topics.push(topic.to_vec()),
                Some((0, topic)) => topics.retain(|known| known != topic),
                _ => {}
            },
            _ => {}
        }
    }

    pub fn send(&self, topic: &[u8], message: &Message) {
        let all = self.subscribers.lock().unwrap_or_else(PoisonError::into_inner);
        for (peer, topics) in all.iter() {
            if topics.iter().any(|wanted| topic.starts_with(wanted)) {
                peer.send(message.clone());
            }
        }
    }
}
