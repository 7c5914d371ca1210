//! `workspace/executeCommand`: runs a script or its tests as a process of its own, and tells the client what it prints;
//! checks all files of the folder.

use super::protocol::transport::Output;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Command, Stdio};

pub const RUN: &str = "tscript.run";
pub const TEST: &str = "tscript.test";
pub const CHECK_FOLDER: &str = "tscript.checkFolder";

/// A type of message of the protocol.
const ERROR: u64 = 1;
const INFO: u64 = 3;
const LOG: u64 = 4;

/// Starts the program on a file, and returns at once. Of a test file, one test or all.
pub fn start(out: &Output, command: &str, path: PathBuf, test: Option<String>) -> std::io::Result<()> {
    let mut program = Command::new(std::env::current_exe()?);
    let word = if command == TEST { "test" } else { "run" };
    program.arg(word).arg(&path).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    if let Some(folder) = path.parent().filter(|folder| folder.is_dir()) {
        program.current_dir(folder);
    }
    let mut child = program.spawn()?;
    let out = out.clone();
    std::thread::spawn(move || {
        let streams: [Option<Box<dyn Read + Send>>; 2] = [
            child.stdout.take().map(|stream| Box::new(stream) as Box<dyn Read + Send>),
            child.stderr.take().map(|stream| Box::new(stream) as Box<dyn Read + Send>),
        ];
        let readers: Vec<_> = streams.into_iter().flatten().map(|stream| told(&out, stream)).collect();
        let lines: Vec<String> = readers.into_iter().flat_map(|reader| reader.join().unwrap_or_default()).collect();
        let ended = child.wait().is_ok_and(|status| status.success());
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let (good, text) = summary(&name, test.as_deref(), ended, &lines);
        message(&out, "window/showMessage", if good { INFO } else { ERROR }, &text);
    });
    Ok(())
}

/// What a run came to, in one line.
fn summary(name: &str, test: Option<&str>, ended: bool, lines: &[String]) -> (bool, String) {
    let Some(test) = test else {
        return (ended, format!("{name}: {}", if ended { "done" } else { "failed" }));
    };
    let of_test = format!("::{test} ... ");
    let good = lines.iter().any(|line| line.ends_with(&format!("{of_test}ok")));
    (good, format!("{name}: {test} {}", if good { "passed" } else { "failed" }))
}

/// Tells the client each line of a stream.
fn told(out: &Output, stream: Box<dyn Read + Send>) -> std::thread::JoinHandle<Vec<String>> {
    let out = out.clone();
    std::thread::spawn(move || {
        let mut lines = Vec::new();
        for line in BufReader::new(stream).split(b'\n').map_while(Result::ok) {
            let line = String::from_utf8_lossy(&line).into_owned();
            message(&out, "window/logMessage", LOG, &line);
            lines.push(line);
        }
        lines
    })
}

fn message(out: &Output, method: &str, kind: u64, text: &str) {
    out.notify(method, json!({"type": kind, "message": text}));
}

/// The name of a test in the arguments of a command.
pub fn test_of(arguments: &Value) -> Option<String> {
    arguments[1].as_str().map(str::to_string)
}
