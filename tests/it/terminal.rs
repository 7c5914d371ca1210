//! The program at the far end of a pseudo-terminal: types keys, and reads what a person would see.
//!
//! The screen is kept as characters in rows, with the few sequences understood that the program uses.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Bound: how long a test waits for what must come; only a failure waits that long.
const PATIENCE: Duration = Duration::from_secs(60);

/// The program in a terminal of its own, with a history file of its own.
pub struct Terminal {
    keys: File,
    child: Child,
    seen: Arc<Mutex<Vec<u8>>>,
    /// Bytes of `seen` that `wait` has passed.
    read: usize,
}

/// Both ends of a new pseudo-terminal.
fn pair() -> (OwnedFd, OwnedFd) {
    let (mut near, mut far) = (0, 0);
    let size = libc::winsize { ws_row: 40, ws_col: 120, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: all pointers are to live values or null, as openpty wants them; both descriptors are ours afterwards.
    unsafe {
        let result = libc::openpty(&mut near, &mut far, std::ptr::null_mut(), std::ptr::null(), &size);
        assert_eq!(result, 0, "a pseudo-terminal: {}", std::io::Error::last_os_error());
        (OwnedFd::from_raw_fd(near), OwnedFd::from_raw_fd(far))
    }
}

impl Terminal {
    pub fn start(folder: &Path, environment: &[(&str, &str)]) -> Terminal {
        Terminal::with_arguments(folder, &[], environment)
    }

    pub fn with_arguments(folder: &Path, arguments: &[&str], environment: &[(&str, &str)]) -> Terminal {
        let (near, far) = pair();
        let stdio = || Stdio::from(far.try_clone().expect("a descriptor"));
        let mut command = Command::new(super::scripts::program());
        command.args(arguments).stdin(stdio()).stdout(stdio()).stderr(stdio()).current_dir(folder);
        for name in ["NO_COLOR", "COLORTERM", "TMUX", "TERM_PROGRAM", "KITTY_WINDOW_ID", "TSCRIPT_GRAPHICS"] {
            command.env_remove(name);
        }
        command.env("TERM", "xterm-256color").env("TSCRIPT_HISTORY", folder.join("history"));
        command.envs(environment.iter().copied());
        // SAFETY: the two calls are allowed between fork and exec; descriptor 0 is the terminal by then.
        unsafe {
            command.pre_exec(|| {
                if libc::setsid() < 0 || libc::ioctl(0, libc::TIOCSCTTY as _, 0) < 0 {
                    return Err(std::io::Error::last_os_error());
                }
                Ok(())
            });
        }
        let child = command.spawn().expect("the program starts");
        let keys = File::from(near);
        let mut screen = keys.try_clone().expect("a descriptor");
        let seen = Arc::new(Mutex::new(Vec::new()));
        let sink = seen.clone();
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = screen.read(&mut buffer) {
                sink.lock().expect("no panic").extend_from_slice(&buffer[..count]);
            }
        });
        Terminal { keys, child, seen, read: 0 }
    }

    /// Types a text.
    pub fn keys(&mut self, text: &str) {
        self.keys.write_all(text.as_bytes()).expect("the terminal takes keys");
    }

    /// What came since the last wait.
    fn fresh(&self) -> String {
        String::from_utf8_lossy(&self.seen.lock().expect("no panic")[self.read..]).into_owned()
    }

    /// Waits until a text has come, without colors and other sequences; gives all that came up to now.
    pub fn wait(&mut self, expected: &str) -> String {
        let began = Instant::now();
        loop {
            let raw = self.fresh();
            let shown = plain(&raw);
            if shown.contains(expected) {
                self.read += raw.len();
                return shown;
            }
            assert!(began.elapsed() < PATIENCE, "waited for {expected:?}; there is:\n{shown}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Waits for a prompt that is ready for keys.
    pub fn prompt(&mut self) -> String {
        self.wait("cpu> ")
    }

    /// Types an entry and gives what was shown up to the next prompt, the echo left out.
    pub fn enter(&mut self, text: &str) -> String {
        self.send(&format!("{text}\r"))
    }

    /// The same with keys that end the entry themselves.
    pub fn send(&mut self, keys: &str) -> String {
        self.keys(keys);
        // The editor turns off pasting marks when an entry is over, and on when it is ready again.
        let began = Instant::now();
        loop {
            let raw = self.fresh();
            if let Some((_, rest)) = raw.split_once("\x1b[?2004l")
                && rest.contains("\x1b[?2004h")
            {
                self.read += raw.len();
                let answer = rest.split("\x1b[?2004h").next().unwrap_or("");
                return plain(answer).trim().to_string();
            }
            assert!(began.elapsed() < PATIENCE, "no answer to {keys:?}; there is:\n{}", plain(&raw));
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// All that ever came, with every sequence.
    pub fn raw(&self) -> String {
        String::from_utf8_lossy(&self.seen.lock().expect("no panic")).into_owned()
    }

    /// Waits for the program's end; its exit status.
    pub fn end(mut self) -> i32 {
        let began = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("a child") {
                return status.code().unwrap_or(-1);
            }
            assert!(began.elapsed() < PATIENCE, "the program does not end; there is:\n{}", plain(&self.fresh()));
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A text without escape sequences and carriage returns.
pub fn plain(text: &str) -> String {
    let mut out = String::new();
    let mut characters = text.chars().peekable();
    while let Some(c) = characters.next() {
        match c {
            '\x1b' if characters.peek() == Some(&'[') => {
                characters.next();
                while characters.next_if(|c| !c.is_ascii_alphabetic()).is_some() {}
                characters.next();
            }
            '\r' => {}
            c => out.push(c),
        }
    }
    out
}
