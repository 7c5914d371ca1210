//! The loop: one message after another, and between them the diagnostics of texts that have changed.

use super::checks::{diagnostics, unreadable};
use super::documents::{Document, Documents};
use super::execute::{CHECK_FOLDER, RUN, TEST};
use super::protocol::transport::{
    Cancelled, Failure, INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, Incoming, METHOD_NOT_FOUND, Output,
    PARSE_ERROR, REQUEST_CANCELLED, SERVER_NOT_INITIALIZED, reading,
};
use super::protocol::uri;
use super::semantic::Sent;
use super::setup::{Client, Settings};
use super::view::{View, text_of};
use super::workspace::Workspace;
use super::{
    actions, completion, definition, execute, folding, formatting, hierarchy, hover, inlay, lenses, links, rename,
    semantic, setup, signature, symbols,
};
use crate::script::check::reading::Reading;
use crate::script::library::home::home;
use crate::script::session::handle::Session;
use crate::tools::run::builder_of_checks;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::rc::Rc;
use std::sync::mpsc::{RecvTimeoutError, TryRecvError};
use std::time::Duration;

/// How long nothing must come before diagnostics are made.
const QUIET: Duration = Duration::from_millis(3);

/// Where a session with a client stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    New,
    Ready,
    ShutDown,
}

struct Server {
    out: Output,
    cancelled: Cancelled,
    state: State,
    client: Client,
    settings: Settings,
    session: Option<Session>,
    documents: Documents,
    workspace: Workspace,
    /// Texts whose diagnostics are to be sent.
    stale: BTreeSet<String>,
    /// Files that are not open and whose diagnostics were sent. A client that asks for those of what is open would show
    /// them twice when it is opened.
    checked: BTreeSet<String>,
    /// The last semantic tokens by text.
    sent: BTreeMap<String, Sent>,
    sent_count: u64,
}

/// The program: until the client says `exit`, or its end of the connection closes. The exit status is 0 after `shutdown`.
pub fn serve() -> u8 {
    let input = std::io::BufReader::new(std::io::stdin());
    let (messages, cancelled) = reading(input);
    let mut server = Server::new(Output::new(std::io::stdout()), cancelled);
    loop {
        let message = match server.stale.is_empty() {
            true => messages.recv().map_err(|_| TryRecvError::Disconnected),
            // What comes with a keystroke goes first.
            false => messages.recv_timeout(QUIET).map_err(|error| match error {
                RecvTimeoutError::Timeout => TryRecvError::Empty,
                RecvTimeoutError::Disconnected => TryRecvError::Disconnected,
            }),
        };
        match message {
            Ok(Incoming::Message(message)) if message["method"] == "exit" => break,
            Ok(Incoming::Message(message)) => server.take(&message),
            Ok(Incoming::Malformed(why)) => {
                server.out.answer(&Value::Null, Err(Failure::new(PARSE_ERROR, format!("no JSON: {why}"))));
            }
            Err(TryRecvError::Empty) => server.publish_one(),
            Err(TryRecvError::Disconnected) => break,
        }
    }
    if server.state == State::ShutDown { 0 } else { super::super::FAILED }
}

impl Server {
    fn new(out: Output, cancelled: Cancelled) -> Server {
        Server {
            out,
            cancelled,
            state: State::New,
            client: Client::default(),
            settings: Settings::default(),
            session: None,
            documents: Documents::default(),
            workspace: Workspace::default(),
            stale: BTreeSet::new(),
            checked: BTreeSet::new(),
            sent: BTreeMap::new(),
            sent_count: 0,
        }
    }

    /// One message: a request is answered whatever happens.
    fn take(&mut self, message: &Value) {
        let (id, params) = (&message["id"], &message["params"]);
        let Some(method) = message["method"].as_str() else {
            // The answer to a request of ours needs none.
            if message.get("result").is_none() && message.get("error").is_none() {
                self.out.answer(id, Err(Failure::new(INVALID_REQUEST, "neither a request nor an answer")));
            }
            return;
        };
        if message.get("id").is_none() {
            if self.state == State::Ready {
                // A notification has no answer, not even an error.
                let _ = caught(|| {
                    self.notified(method, params);
                    Ok(())
                });
            }
            return;
        }
        let answer = match self.state {
            _ if self.cancelled.has(id) => Err(Failure::new(REQUEST_CANCELLED, "cancelled")),
            State::New if method != "initialize" => {
                Err(Failure::new(SERVER_NOT_INITIALIZED, "`initialize` comes first"))
            }
            State::ShutDown => Err(Failure::new(INVALID_REQUEST, "only `exit` follows `shutdown`")),
            State::Ready if method == "initialize" => Err(Failure::new(INVALID_REQUEST, "`initialize` comes once")),
            _ => caught(|| self.requested(id, method, params)),
        };
        // Work that was given up half-way has no answer.
        let answer = match self.cancelled.has(id) {
            true => Err(Failure::new(REQUEST_CANCELLED, "cancelled")),
            false => answer,
        };
        self.cancelled.forget(id);
        self.out.answer(id, answer);
    }

    fn requested(&mut self, id: &Value, method: &str, params: &Value) -> Result<Value, Failure> {
        match method {
            "initialize" => {
                self.state = State::Ready;
                self.client = Client::read(params);
                self.settings.read(&params["initializationOptions"]);
                self.workspace.folders = setup::folders(params);
                if let Some(client) = params["processId"].as_i64() {
                    client_ends_the_server(client);
                }
                Ok(setup::answer(&self.client))
            }
            "shutdown" => {
                self.state = State::ShutDown;
                Ok(Value::Null)
            }
            "completionItem/resolve" => Ok(completion::resolve(params)),
            "workspace/symbol" => {
                let cancelled = self.cancelled.clone();
                let query = params["query"].as_str().unwrap_or("");
                let like = self.blank();
                Ok(symbols::of_workspace(&self.workspace, &like, query, &|| !cancelled.has(id)))
            }
            "workspace/executeCommand" => self.execute(params),
            "workspace/diagnostic" => Ok(self.folder_report(id, params)),
            "callHierarchy/incomingCalls" | "callHierarchy/outgoingCalls" => {
                let item = &params["item"];
                let view = self.view_of_file(item["uri"].as_str().unwrap_or(""))?;
                let cancelled = self.cancelled.clone();
                Ok(match method {
                    "callHierarchy/incomingCalls" => {
                        hierarchy::incoming(&self.workspace, &view, item, &|| !cancelled.has(id))
                    }
                    _ => hierarchy::outgoing(&self.workspace, &view, item),
                })
            }
            _ if method.starts_with("textDocument/") => self.of_document(id, method, params),
            _ => Err(unknown(method)),
        }
    }

    /// A request about one text.
    fn of_document(&mut self, id: &Value, method: &str, params: &Value) -> Result<Value, Failure> {
        let cancelled = self.cancelled.clone();
        let goes_on = || !cancelled.has(id);
        if !KNOWN.contains(&method) {
            return Err(unknown(method));
        }
        let name = params["textDocument"]["uri"].as_str().unwrap_or("");
        let view = if QUICK.contains(&method) { self.quick_view(name)? } else { self.view_of_file(name)? };
        let workspace = &self.workspace;
        Ok(match method {
            "textDocument/hover" => hover::hover(&view, params),
            "textDocument/completion" => {
                let shows = self.client.shows;
                completion::complete(&view, self.session()?, shows, params)
            }
            "textDocument/signatureHelp" => signature::help(&view, params),
            "textDocument/definition" => definition::definition(&view, params),
            "textDocument/references" => definition::references(workspace, &view, params, &goes_on),
            "textDocument/documentHighlight" => definition::highlights(&view, params),
            "textDocument/documentSymbol" => symbols::of_document(&view),
            "textDocument/prepareRename" => rename::prepare(workspace, &view, params)?,
            "textDocument/rename" => rename::rename(workspace, &view, params, &goes_on)?,
            "textDocument/formatting" | "textDocument/rangeFormatting" => {
                let width = self.settings.width;
                formatting::formatting(&view, self.session()?, width, params)
            }
            "textDocument/foldingRange" => folding::folds(&view),
            "textDocument/selectionRange" => folding::selections(&view, params),
            "textDocument/prepareCallHierarchy" => hierarchy::prepare(workspace, &view, params),
            "textDocument/documentLink" => links::links(&view),
            "textDocument/inlayHint" => inlay::hints(&view, &self.settings, params),
            "textDocument/codeAction" => actions::actions(&view, params),
            "textDocument/codeLens" => lenses::lenses(&view),
            "textDocument/diagnostic" => json!({"kind": "full", "items": diagnostics(&view)}),
            "textDocument/semanticTokens/range" => {
                let within = view.lines.bytes(view.text(), &params["range"]);
                json!({"data": semantic::tokens(&view, Some(within))})
            }
            _ => self.semantic(&view, params["previousResultId"].as_str()),
        })
    }

    /// Semantic tokens of a whole text, as a difference if the client has the last answer.
    fn semantic(&mut self, view: &View, before: Option<&str>) -> Value {
        let numbers = view.semantic.get_or_init(|| semantic::tokens(view, None)).clone();
        self.sent_count += 1;
        let sent = Sent { id: self.sent_count, numbers };
        let id = sent.id.to_string();
        let known = self.sent.insert(view.uri.clone(), sent.clone());
        match known.filter(|known| before == Some(&known.id.to_string())) {
            Some(known) => json!({"resultId": id, "edits": semantic::difference(&known.numbers, &sent.numbers)}),
            None => json!({"resultId": id, "data": sent.numbers}),
        }
    }

    fn notified(&mut self, method: &str, params: &Value) {
        let name = params["textDocument"]["uri"].as_str().unwrap_or("").to_string();
        match method {
            "initialized" => {
                self.watch_files();
                // The first text finds it built.
                let _ = self.session();
            }
            "textDocument/didOpen" => {
                if let Some(name) = self.documents.open(&params["textDocument"]) {
                    if self.checked.remove(&name) && self.client.pulls {
                        self.publish(&name, None, Vec::new());
                    }
                    self.changed(&name);
                }
            }
            "textDocument/didChange" => {
                let version = params["textDocument"]["version"].as_i64();
                let (changes, encoding) = (&params["contentChanges"], self.client.encoding);
                if self.documents.change(&name, version, changes, encoding) {
                    self.changed(&name);
                }
            }
            "textDocument/didClose" => {
                self.documents.close(&name);
                self.sent.remove(&name);
                self.stale.remove(&name);
                self.changed(&name);
                self.publish(&name, None, Vec::new());
            }
            "workspace/didChangeConfiguration" => self.configure(&params["settings"]),
            "workspace/didChangeWatchedFiles" | "textDocument/didSave" => {
                self.documents.forget_views();
                self.stale.extend(self.documents.0.keys().cloned());
                self.stale.extend(self.checked.iter().cloned());
            }
            "workspace/didChangeWorkspaceFolders" => self.change_folders(&params["event"]),
            // Those that the protocol allows to pass over.
            _ => {}
        }
    }

    /// Settings that change while texts are open.
    fn configure(&mut self, settings: &Value) {
        let before = self.settings;
        self.settings.read(settings);
        if self.settings != before && self.client.refreshes {
            self.out.request("refresh", "workspace/inlayHint/refresh", Value::Null);
        }
    }

    fn change_folders(&mut self, event: &Value) {
        let paths = |list: &Value| -> Vec<std::path::PathBuf> {
            let all = list.as_array().into_iter().flatten();
            all.filter_map(|folder| uri::path(folder["uri"].as_str()?)).collect()
        };
        let removed = paths(&event["removed"]);
        self.workspace.folders.retain(|folder| !removed.contains(folder));
        self.workspace.folders.extend(paths(&event["added"]));
    }

    /// Files that others change may be modules of open texts.
    fn watch_files(&mut self) {
        if self.client.watches {
            let watchers = json!([{"globPattern": "**/*.rhai"}]);
            let registration = json!({"id": "files", "method": "workspace/didChangeWatchedFiles", "registerOptions": {"watchers": watchers}});
            self.out.request("watch", "client/registerCapability", json!({"registrations": [registration]}));
        }
    }

    /// A text is another now: so is what is known of those that may import it.
    fn changed(&mut self, name: &str) {
        let open = self.documents.0.values().map(|document| (document.path.clone(), document.text.clone()));
        self.workspace.open = Rc::new(open.collect());
        let stem = uri::path(name).and_then(|path| Some(path.file_stem()?.to_string_lossy().into_owned()));
        for (other, document) in &mut self.documents.0 {
            let imports = stem
                .as_ref()
                .is_some_and(|stem| document.text.contains("import") && document.text.contains(stem.as_str()));
            if other == name || imports {
                document.view = None;
                self.stale.insert(other.clone());
            }
        }
    }

    /// The session that reads texts; it runs none.
    fn session(&mut self) -> Result<&mut Session, Failure> {
        if self.session.is_none() {
            let built = builder_of_checks().on_warning(|_| {}).output(|_| {}).build();
            let session = built.map_err(|error| Failure::new(INTERNAL_ERROR, error.message()))?;
            self.session = Some(session);
        }
        self.session.as_mut().ok_or_else(|| Failure::new(INTERNAL_ERROR, "there is no session"))
    }

    /// A text as the session reads it, with its problems or quickly. A session in which something panicked is not used
    /// again.
    fn read(&mut self, path: &Path, text: &str, quick: bool) -> Reading {
        let home = home(path, text, &|path| self.workspace.open.get(path).cloned());
        let open = self.modules_from(path, &home);
        let read = self.session().ok().and_then(|session| {
            let work = AssertUnwindSafe(|| {
                session.set_open_modules(open);
                if quick { session.quick_reading(&home, text) } else { session.reading(path, &home, text) }
            });
            catch_unwind(work).ok()
        });
        read.unwrap_or_else(|| {
            self.session = None;
            Reading::of_text(text)
        })
    }

    /// Open texts that a script at a path can import from a folder, by the names of their modules.
    fn modules_from(&self, path: &Path, home: &Path) -> BTreeMap<String, String> {
        let named = |(other, text): (&std::path::PathBuf, &String)| {
            let module = other.strip_prefix(home).ok()?.with_extension("");
            (other != path).then(|| (module.to_string_lossy().into_owned(), text.clone()))
        };
        self.workspace.open.iter().filter_map(named).collect()
    }

    /// What is known of an open text, or of a file.
    fn view_of_file(&mut self, name: &str) -> Result<Rc<View>, Failure> {
        let wrong = || Failure::new(INVALID_PARAMS, format!("the text {name} is not open"));
        let (path, text) = match self.documents.0.get(name) {
            Some(document) => match &document.view {
                Some(view) => return Ok(view.clone()),
                None => (document.path.clone(), document.text.clone()),
            },
            None => {
                let path = uri::path(name).ok_or_else(wrong)?;
                let text = text_of(&path).ok_or_else(wrong)?;
                (path, text)
            }
        };
        let reading = self.read(&path, &text, false);
        let view = Rc::new(View::new(name, path, reading, self.client.encoding, self.workspace.open.clone()));
        if let Some(document) = self.documents.0.get_mut(name) {
            document.view = Some(view.clone());
        }
        Ok(view)
    }

    /// The same for what is asked while one types, when nothing is known of the text yet.
    fn quick_view(&mut self, name: &str) -> Result<Rc<View>, Failure> {
        match self.documents.0.get(name) {
            Some(Document { view: None, path, text, .. }) => {
                let (path, text) = (path.clone(), text.clone());
                let reading = self.read(&path, &text, true);
                let open = self.workspace.open.clone();
                Ok(Rc::new(View::new(name, path, reading, self.client.encoding, open)))
            }
            _ => self.view_of_file(name),
        }
    }

    /// A text without anything, as a pattern for others.
    fn blank(&self) -> View {
        View::new("", "".into(), Reading::of_text(""), self.client.encoding, self.workspace.open.clone())
    }

    /// Sends the diagnostics of one text that has changed.
    fn publish_one(&mut self) {
        let Some(name) = self.stale.pop_first() else { return };
        if self.checked.contains(&name) {
            let found = self.problems(&name).unwrap_or_default();
            self.publish_closed(&name, found);
        } else if !self.client.pulls {
            let version = self.documents.0.get(&name).and_then(|document| document.version);
            if let Ok(found) = self.problems(&name) {
                self.publish(&name, version, found);
            }
        }
    }

    /// The diagnostics of a text, or why a file cannot be read; none of a file that is gone.
    fn problems(&mut self, name: &str) -> Result<Vec<Value>, Failure> {
        let path = uri::path(name).filter(|_| !self.documents.0.contains_key(name));
        if let Some(path) = path {
            let is_script = path.metadata().map_or_else(|_| path.is_symlink(), |about| about.is_file());
            let read = if is_script { self.session()?.read_source(&path) } else { return Ok(Vec::new()) };
            if let Err(error) = read {
                return Ok(vec![unreadable(error.diag())]);
            }
        }
        caught(|| Ok(diagnostics(&*self.view_of_file(name)?)))
    }

    /// Diagnostics of a file that is not open; the client is told, too, that there are none any more.
    fn publish_closed(&mut self, name: &str, found: Vec<Value>) {
        let had = self.checked.remove(name);
        if !found.is_empty() {
            self.checked.insert(name.to_string());
        }
        if had || !found.is_empty() {
            self.publish(name, None, found);
        }
    }

    fn publish(&self, name: &str, version: Option<i64>, found: Vec<Value>) {
        let mut params = json!({"uri": name, "diagnostics": found});
        if let Some(version) = version {
            params["version"] = json!(version);
        }
        self.out.notify("textDocument/publishDiagnostics", params);
    }

    /// The diagnostics of all files, with what the client is told on the way. Ends early if the request is cancelled.
    fn check_all(&mut self, id: &Value, token: Option<Value>) -> Vec<(String, Option<i64>, Vec<Value>)> {
        let files = self.workspace.files();
        let mut found = Vec::new();
        let tell = |out: &Output, value: Value| {
            if let Some(token) = &token {
                out.notify("$/progress", json!({"token": token, "value": value}));
            }
        };
        tell(&self.out, json!({"kind": "begin", "title": "Checking", "percentage": 0}));
        for (at, file) in files.iter().enumerate() {
            if self.cancelled.has(id) {
                break;
            }
            let name = self.documents.0.iter().find(|(_, open)| open.path == *file).map(|(name, _)| name.clone());
            let name = name.unwrap_or_else(|| uri::of(file));
            let version = self.documents.0.get(&name).and_then(|document| document.version);
            if let Ok(items) = self.problems(&name) {
                found.push((name, version, items));
            }
            let message = file.file_name().map(|name| name.to_string_lossy().into_owned());
            tell(&self.out, json!({"kind": "report", "message": message, "percentage": (at + 1) * 100 / files.len()}));
        }
        tell(&self.out, json!({"kind": "end"}));
        found
    }

    /// `workspace/diagnostic`
    fn folder_report(&mut self, id: &Value, params: &Value) -> Value {
        let token = params.get("workDoneToken").cloned();
        let all = self.check_all(id, token).into_iter();
        let items: Vec<Value> = all
            .map(|(uri, version, items)| json!({"kind": "full", "uri": uri, "version": version, "items": items}))
            .collect();
        json!({"items": items})
    }

    fn execute(&mut self, params: &Value) -> Result<Value, Failure> {
        let arguments = &params["arguments"];
        match params["command"].as_str().unwrap_or("") {
            command @ (RUN | TEST) => {
                let path = arguments[0].as_str().and_then(uri::path);
                let path = path.ok_or_else(|| Failure::new(INVALID_PARAMS, "the command needs the URI of a file"))?;
                execute::start(&self.out, command, path, execute::test_of(arguments))
                    .map_err(|error| Failure::refused(format!("the program cannot be started: {error}")))?;
                Ok(Value::Null)
            }
            CHECK_FOLDER => {
                let token = params.get("workDoneToken").cloned().or_else(|| {
                    let token = json!("tscript/check");
                    self.client.progress.then(|| {
                        self.out.request("progress", "window/workDoneProgress/create", json!({"token": token}));
                        token
                    })
                });
                // Those of files that are gone by now go, too.
                self.stale.extend(self.checked.iter().cloned());
                for (name, version, found) in self.check_all(&Value::Null, token) {
                    self.stale.remove(&name);
                    match self.documents.0.contains_key(&name) {
                        true if self.client.pulls => {}
                        true => self.publish(&name, version, found),
                        false => self.publish_closed(&name, found),
                    }
                }
                Ok(Value::Null)
            }
            other => Err(Failure::new(INVALID_PARAMS, format!("there is no command `{other}`"))),
        }
    }
}

/// The requests about a text.
const KNOWN: &[&str] = &[
    "textDocument/hover",
    "textDocument/completion",
    "textDocument/signatureHelp",
    "textDocument/definition",
    "textDocument/references",
    "textDocument/documentHighlight",
    "textDocument/documentSymbol",
    "textDocument/prepareRename",
    "textDocument/rename",
    "textDocument/foldingRange",
    "textDocument/selectionRange",
    "textDocument/prepareCallHierarchy",
    "textDocument/formatting",
    "textDocument/rangeFormatting",
    "textDocument/documentLink",
    "textDocument/inlayHint",
    "textDocument/codeAction",
    "textDocument/codeLens",
    "textDocument/diagnostic",
    "textDocument/semanticTokens/range",
    "textDocument/semanticTokens/full",
    "textDocument/semanticTokens/full/delta",
];

/// Those of them that come with the keystroke, or before saving, and want no problems.
const QUICK: &[&str] = &[
    "textDocument/completion",
    "textDocument/signatureHelp",
    "textDocument/formatting",
    "textDocument/rangeFormatting",
];

/// How often it is looked for whether the client is there.
#[cfg(unix)]
const WATCH: Duration = Duration::from_secs(2);

/// The server ends with its client, also where something else holds the connection open.
#[cfg(unix)]
fn client_ends_the_server(id: i64) {
    let id = i32::try_from(id).ok().and_then(rustix::process::Pid::from_raw);
    let Some(client) = id.filter(|id| rustix::process::test_kill_process(*id).is_ok()) else { return };
    std::thread::spawn(move || {
        // Not: any error, since a process of somebody else may be asked for nothing.
        while rustix::process::test_kill_process(client) != Err(rustix::io::Errno::SRCH) {
            std::thread::sleep(WATCH);
        }
        std::process::exit(super::super::FAILED.into());
    });
}

#[cfg(not(unix))]
fn client_ends_the_server(_: i64) {}

fn unknown(method: &str) -> Failure {
    Failure::new(METHOD_NOT_FOUND, format!("there is no method `{method}`"))
}

/// A panic becomes an error: the next message finds the server as it was.
fn caught<T>(work: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| {
        Err(Failure::new(INTERNAL_ERROR, "an internal error: this is a mistake of tscript, please report it"))
    })
}
