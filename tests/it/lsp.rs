//! The language server as editors start it: messages over the standard input and output, one test for each feature.

use super::scripts::{folder, none, program};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// How long an answer may take, on a machine that is busy.
const PATIENCE: Duration = Duration::from_secs(120);

/// A client.
struct Client {
    child: Child,
    input: Option<ChildStdin>,
    messages: Receiver<Value>,
    /// Messages that nobody has waited for yet.
    waiting: VecDeque<Value>,
    next: i64,
    /// A folder of its own, where the server works.
    folder: tempfile::TempDir,
    answer: Value,
}

/// Reads messages until the end.
fn messages(out: impl Read + Send + 'static) -> Receiver<Value> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let mut out = BufReader::new(out);
        loop {
            let mut length = 0;
            loop {
                let mut line = String::new();
                if out.read_line(&mut line).unwrap_or(0) == 0 {
                    return;
                }
                match line.trim().split_once(": ") {
                    Some(("Content-Length", value)) => length = value.parse().expect("a length"),
                    Some(_) => {}
                    None => break,
                }
            }
            let mut text = vec![0; length];
            out.read_exact(&mut text).expect("a whole message");
            if sender.send(serde_json::from_slice(&text).expect("JSON")).is_err() {
                return;
            }
        }
    });
    receiver
}

impl Client {
    /// Starts a server and initializes it with capabilities of a client and options.
    fn with(capabilities: Value, options: Value) -> Client {
        let mut client = Client::started();
        let root = client.uri("");
        let params = json!({
            "processId": null,
            "capabilities": capabilities,
            "initializationOptions": options,
            "workspaceFolders": [{"uri": root.trim_end_matches('/'), "name": "folder"}],
        });
        client.answer = client.request("initialize", params);
        client.notify("initialized", json!({}));
        client
    }

    fn new() -> Client {
        Client::with(json!({}), Value::Null)
    }

    /// One that nobody has initialized.
    fn started() -> Client {
        let folder = tempfile::tempdir().expect("a folder");
        let mut child = Command::new(program())
            .args(["lsp", "--stdio"])
            .env("XDG_CACHE_HOME", folder.path().join(".cache"))
            .env_remove("TSCRIPT_SIMULATE_GPUS")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .expect("it starts");
        let messages = messages(child.stdout.take().expect("piped"));
        let input = child.stdin.take();
        Client { child, input, messages, waiting: VecDeque::new(), next: 0, folder, answer: Value::Null }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().expect("there").join(name)
    }

    fn uri(&self, name: &str) -> String {
        format!("file://{}", self.path(name).display())
    }

    fn write(&mut self, text: &str) {
        let input = self.input.as_mut().expect("open");
        write!(input, "Content-Length: {}\r\n\r\n{text}", text.len()).expect("written");
        input.flush().expect("written");
    }

    fn notify(&mut self, method: &str, params: Value) {
        self.write(&json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string());
    }

    /// Sends a request; its id.
    fn ask(&mut self, method: &str, params: Value) -> i64 {
        self.next += 1;
        let id = self.next;
        self.write(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string());
        id
    }

    /// The next message of a kind.
    fn wait(&mut self, what: &str, is: impl Fn(&Value) -> bool) -> Value {
        if let Some(at) = self.waiting.iter().position(&is) {
            return self.waiting.remove(at).expect("there");
        }
        loop {
            let message = self.messages.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("{what} does not come"));
            if is(&message) {
                return message;
            }
            self.waiting.push_back(message);
        }
    }

    fn response(&mut self, id: i64) -> Value {
        self.wait("an answer", |message| message["id"] == id && message.get("method").is_none())
    }

    /// The result of a request.
    fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.ask(method, params);
        let answer = self.response(id);
        assert!(answer.get("error").is_none(), "{method}: {answer}");
        answer["result"].clone()
    }

    /// The error of a request: code and message.
    fn refusal(&mut self, method: &str, params: Value) -> (i64, String) {
        let id = self.ask(method, params);
        let answer = self.response(id);
        let error = &answer["error"];
        (
            error["code"].as_i64().unwrap_or_else(|| panic!("{answer}")),
            error["message"].as_str().expect("a message").to_string(),
        )
    }

    fn open(&mut self, name: &str, text: &str) {
        let item = json!({"uri": self.uri(name), "languageId": "tscript", "version": 1, "text": text});
        self.notify("textDocument/didOpen", json!({"textDocument": item}));
    }

    /// The next diagnostics of a text.
    fn diagnostics(&mut self, name: &str) -> Vec<Value> {
        let uri = self.uri(name);
        let of_it = |message: &Value| {
            message["method"] == "textDocument/publishDiagnostics" && message["params"]["uri"] == uri.as_str()
        };
        self.wait("diagnostics", of_it)["params"]["diagnostics"].as_array().expect("a list").clone()
    }

    /// Parameters for the place of a `|` in a text, which is opened without it.
    fn at(&mut self, name: &str, text: &str) -> Value {
        let offset = text.find('|').expect("a cursor");
        self.open(name, &text.replacen('|', "", 1));
        json!({"textDocument": {"uri": self.uri(name)}, "position": place(text, offset)})
    }

    fn document(&self, name: &str) -> Value {
        json!({"textDocument": {"uri": self.uri(name)}})
    }

    fn save(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).expect("written");
    }

    fn status(mut self) -> i32 {
        self.input = None;
        self.child.wait().expect("it ends").code().expect("a status")
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Line and column in UTF-16 of a byte.
fn place(text: &str, offset: usize) -> Value {
    let line = text[..offset].matches('\n').count();
    let start = text[..offset].rfind('\n').map_or(0, |at| at + 1);
    json!({"line": line, "character": text[start..offset].encode_utf16().count()})
}

fn range(line: u64, from: u64, to: u64) -> Value {
    json!({"start": {"line": line, "character": from}, "end": {"line": line, "character": to}})
}

fn labels(completions: &Value) -> Vec<String> {
    let items = completions["items"].as_array().expect("items");
    items.iter().map(|item| item["label"].as_str().expect("a label").to_string()).collect()
}

/// What is completed at the `|` of a text.
fn completed(client: &mut Client, text: &str) -> Vec<String> {
    let at = client.at("c.rhai", text);
    labels(&client.request("textDocument/completion", at))
}

fn hovered(client: &mut Client, text: &str) -> String {
    let at = client.at("h.rhai", text);
    client.request("textDocument/hover", at)["contents"]["value"].as_str().unwrap_or("").to_string()
}

#[test]
fn it_begins_and_ends_as_the_protocol_says() {
    let mut client = Client::with(json!({"general": {"positionEncodings": ["utf-16", "utf-8"]}}), Value::Null);
    assert_eq!(client.answer["capabilities"]["positionEncoding"], "utf-8");
    assert_eq!(client.answer["serverInfo"]["name"], "tscript");
    assert_eq!(client.refusal("initialize", json!({})).0, -32600);
    assert_eq!(client.refusal("textDocument/nonsense", json!({})).0, -32601);
    assert_eq!(client.refusal("nonsense", json!({})).0, -32601);
    client.notify("nonsense", json!({}));
    client.notify("$/nonsense", json!({}));
    assert_eq!(client.refusal("textDocument/hover", json!({"textDocument": {"uri": "untitled:x"}})).0, -32602);
    client.write("{no json");
    let answer = client.wait("an error", |message| message["id"].is_null() && message.get("error").is_some());
    assert_eq!(answer["error"]["code"], -32700);
    client.write("{\"jsonrpc\": \"2.0\", \"id\": 77}");
    assert_eq!(client.response(77)["error"]["code"], -32600);
    assert_eq!(client.request("shutdown", Value::Null), Value::Null);
    assert_eq!(client.refusal("textDocument/hover", json!({})).0, -32600);
    client.notify("exit", Value::Null);
    assert_eq!(client.status(), 0);

    let mut client = Client::new();
    assert_eq!(client.answer["capabilities"]["positionEncoding"], "utf-16");
    client.notify("exit", Value::Null);
    assert_eq!(client.status(), 1);

    // The connection ends.
    assert_eq!(Client::new().status(), 1);

    let mut client = Client::started();
    assert_eq!(client.refusal("textDocument/hover", json!({})).0, -32002);
}

#[test]
fn diagnostics_come_as_one_types_and_go_when_cured() {
    let mut client = Client::new();
    client.open("a.rhai", "let x = randn([2, 3]);\r\nprint(x.sum(#{keepdin: true}));\r\nlet y = 1;\r\n");
    let found = client.diagnostics("a.rhai");
    let codes: Vec<&str> = found.iter().map(|found| found["code"].as_str().expect("a code")).collect();
    assert_eq!(codes, ["E0203", "E0115"]);
    assert_eq!(found[0]["range"], range(1, 14, 27));
    assert_eq!((&found[0]["severity"], &found[1]["severity"]), (&json!(1), &json!(2)));
    assert!(found[0]["message"].as_str().expect("a message").contains("did you mean `keepdim`?"));
    assert_eq!(found[1]["tags"], json!([1]));
    // Two changes, the second one after the first.
    let changes = json!([
        {"range": range(1, 20, 21), "text": "m"},
        {"range": range(2, 4, 5), "text": "_y"},
    ]);
    let document = json!({"uri": client.uri("a.rhai"), "version": 2});
    client.notify("textDocument/didChange", json!({"textDocument": document, "contentChanges": changes}));
    assert_eq!(client.diagnostics("a.rhai"), [] as [Value; 0]);
    client.notify("textDocument/didClose", json!({"textDocument": {"uri": client.uri("a.rhai")}}));
    assert_eq!(client.diagnostics("a.rhai"), [] as [Value; 0]);
}

#[test]
fn second_labels_are_related_information() {
    let mut client = Client::new();
    client.open("a.rhai", "fn f(xs) {\n    xs.push(1);\n}\nf([]);\nlet a = [1);\n");
    let found = client.diagnostics("a.rhai");
    assert_eq!(found[0]["code"], "E0101");
    let related = &found[0]["relatedInformation"][0];
    assert!(related["message"].as_str().is_some() && related["location"]["range"]["start"]["line"] == 4, "{found:?}");
    client.open("a.rhai", "fn f(xs) {\n    xs.push(1);\n}\nf([]);\n");
    assert_eq!(client.diagnostics("a.rhai")[0]["code"], "E0114");
}

/// Wrong scripts: code and range of each finding are those of `tscript check`.
#[test]
fn diagnostics_are_those_of_check() {
    let mut check = Command::new(program());
    check.args(["check", "--message-format", "json"]).args([folder("errors"), folder("check/wrong")]);
    let out = check.output().expect("it runs");
    let mut client = Client::new();
    let mut expected: std::collections::BTreeMap<String, Vec<(String, Value)>> = Default::default();
    for line in String::from_utf8(out.stdout).expect("text").lines() {
        let found: Value = serde_json::from_str(line).expect("JSON");
        let number = |name: &str| found[name].as_u64().expect("a number") - 1;
        let place = json!([number("line"), number("column"), number("end_line"), number("end_column")]);
        let name = found["file"].as_str().expect("a file").to_string();
        expected.entry(name).or_default().push((found["code"].as_str().expect("a code").to_string(), place));
    }
    assert!(expected.len() > 80, "{}", expected.len());
    let mut problems = Vec::new();
    for (file, expected) in expected {
        let text = std::fs::read_to_string(&file).expect("a script");
        // Columns of `check` count characters.
        if text.chars().any(|c| c.len_utf16() > 1) {
            continue;
        }
        let uri = format!("file://{file}");
        let item = json!({"uri": uri, "languageId": "tscript", "version": 1, "text": text});
        client.notify("textDocument/didOpen", json!({"textDocument": item}));
        let of_it = |message: &Value| message["params"]["uri"] == uri.as_str();
        let message = client.wait("diagnostics", of_it);
        let found: Vec<(String, Value)> = message["params"]["diagnostics"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|found| {
                let at = |end: &str, part: &str| found["range"][end][part].clone();
                let place =
                    json!([at("start", "line"), at("start", "character"), at("end", "line"), at("end", "character")]);
                (found["code"].as_str().expect("a code").to_string(), place)
            })
            .collect();
        if found != expected {
            problems.push(format!("{file}: {found:?}, not {expected:?}"));
        }
        client.notify("textDocument/didClose", json!({"textDocument": {"uri": uri}}));
        client.wait("cleared diagnostics", of_it);
    }
    none(problems);
}

#[test]
fn members_are_those_of_the_value() {
    let mut client = Client::new();
    let has = |client: &mut Client, text: &str, wanted: &[&str], unwanted: &[&str]| {
        let found = completed(client, text);
        for word in wanted {
            assert!(found.iter().any(|label| label == word), "{text}: no {word} in {found:?}");
        }
        for word in unwanted {
            assert!(!found.iter().any(|label| label == word), "{text}: {word} is offered");
        }
    };
    has(&mut client, "let x = ones([2, 3]);\nx.|\nlet y = 1;", &["relu", "shape", "add_"], &["keys", "push"]);
    has(&mut client, "let x = ones([2, 3]);\nlet z = f(x.su|", &["sum"], &["relu"]);
    has(&mut client, "fn f(a) {\n let m = #{lr: 1, deep: \"a\"};\n m.|\n}\nfn g() {}", &["lr", "keys"], &["relu"]);
    has(&mut client, "\"abc\".|", &["upper", "split"], &["relu"]);
    has(&mut client, "import \"nn\" as n;\nlet m = n::linear(2, 3);\nm.|", &["forward", "parameters"], &["keys"]);
    has(&mut client, "import \"nn\" as n;\nlet m = n::lin|", &["linear"], &["relu"]);
    has(&mut client, "let e = fft::|", &["rfft"], &[]);
    has(&mut client, "zeros([2], #{dty|", &["dtype"], &["device"]);
    has(&mut client, "zeros([2], #{dtype: \"f32\", |", &["device"], &["dtype"]);
    has(&mut client, "zeros([2], #{dtype: \"f|", &["f16", "f32"], &["i64", "fn", "floor"]);
    has(&mut client, "ones([2]).to(\"|", &["cpu", "bf16"], &[]);
    has(&mut client, "ones([2], #{device: \"cu|", &["cuda", "cuda:0"], &["cpu"]);
    has(&mut client, "ones([2]).sum(#{dtype: \"|", &["f32"], &["cuda"]);
    has(&mut client, "import \"n|", &["nn"], &["optim"]);
    has(&mut client, "let alpha = 1;\nfn f(beta) {\n    let gamma = 2;\n    |\n}", &["beta", "gamma", "f"], &["alpha"]);
    has(&mut client, "let alpha = 1;\n{ let beta = 2; }\nal|", &["alpha"], &["beta"]);
    has(&mut client, "let m = #{alpha: 1, beta: ones([3])};\nm[\"|", &["alpha", "beta"], &["own.rhai"]);
    client.save("own.rhai", "private fn hidden(x) { x }\nfn seen(x) { hidden(x) }\n");
    has(&mut client, "import \"own\" as own;\nown::|", &["seen"], &["hidden"]);
    has(&mut client, "let x = whi|", &["while"], &[]);
    has(&mut client, "// x.|", &[], &["relu", "for"]);
    let found = completed(&mut client, "ones([2]).|");
    let mut once = found.clone();
    once.dedup();
    assert_eq!(found, once);
    client.save("data.csv", "1");
    has(&mut client, "load(\"da|", &["data.csv"], &[]);
    // A module of the user, as it is open and not as it is saved.
    client.save("own.rhai", "");
    client.open("own.rhai", "/// Doubles.\nfn twice(x) { x * 2 }");
    has(&mut client, "import \"own\" as own;\nown::|", &["twice"], &[]);
}

#[test]
fn items_are_resolved_and_snippets_are_for_those_who_can() {
    let mut client = Client::new();
    assert!(!completed(&mut client, "tr|").contains(&"training loop".to_string()));
    let can = json!({"textDocument": {"completion": {"completionItem": {"snippetSupport": true}}}});
    let mut client = Client::with(can, Value::Null);
    let at = client.at("c.rhai", "sof|");
    let items = client.request("textDocument/completion", at);
    let item = items["items"].as_array().expect("items").iter().find(|item| item["label"] == "softmax").expect("it");
    assert_eq!(item["textEdit"], json!({"range": range(0, 0, 3), "newText": "softmax"}));
    let resolved = client.request("completionItem/resolve", item.clone());
    assert!(resolved["documentation"]["value"].as_str().expect("text").contains("Example"), "{resolved}");
    assert!(resolved["detail"].as_str().expect("text").starts_with("softmax("));
    assert!(completed(&mut client, "tr|").contains(&"training loop".to_string()));
    // A statement is offered where one can stand.
    for text in ["print(|)", "switch 3 { 1 => f(|", "with_stream(|) { }", "ones([2]).sum(|", "let m = #{a: |"] {
        let found = completed(&mut client, text);
        assert!(!found.iter().any(|label| label == "training loop" || label == "for pairs"), "{text}: {found:?}");
    }
    assert!(completed(&mut client, "let x = |").contains(&"switch".to_string()));
}

/// What the text tells only nearly always is enough to complete a name, to choose a signature and a page.
#[test]
fn members_are_those_of_the_type_that_is_likely() {
    let mut client = Client::new();
    let nn = "import \"nn\" as nn;\n";
    for (text, wanted, unwanted) in [
        ("let c = cell(2);\nc.|", "value", "relu"),
        ("let r = (1..3);\nr.|", "contains", "relu"),
        ("let t = timestamp();\nt.|", "elapsed", "relu"),
        ("let x = randn([2], #{requires_grad: true}); x.grad.|", "relu", "push"),
        ("let s = set([2]);\ns.|", "add", "relu"),
        ("let m = re::search(\"a\", \"b\"); m.|", "span", "relu"),
        ("let m = nn::module(#{lin: nn::linear(2, 3), k: 4, forward: 5});\nm.|", "lin", "relu"),
        ("fn block(d) { nn::module(#{up: nn::linear(d, d)}) }\nlet b = block(3);\nb.|", "up", "relu"),
        ("let m = nn::sequential([nn::linear(2,3)]);\nm[0].|", "forward", "relu"),
        ("for x in [ones([2])] { x.| }", "relu", "push"),
        ("for (i, x) in enumerate([ones([2])]) { x.| }", "relu", "push"),
        ("let [a, b] = [ones([2]), 2];\na.|", "relu", "push"),
        ("let #{w} = #{w: ones([2])};\nw.|", "relu", "push"),
        ("let s = \"a\".upper();\ns.|", "lower", "relu"),
        ("let k = \"a,b\".split(\",\");\nk.|", "push", "relu"),
        ("let q = #{a: 1}.keys();\nq.|", "push", "relu"),
        ("nn::linear(2,3).state_dict().|", "keys", "relu"),
        ("nn::lstm(2, 3)(ones([1, 1, 2])).|", "output", "relu"),
    ] {
        let found = completed(&mut client, &format!("{nn}{text}"));
        assert!(found.iter().any(|label| label == wanted), "{text}: no {wanted} in {found:?}");
        assert!(!found.iter().any(|label| label == unwanted), "{text}: {unwanted} is offered");
    }
    let mut at_mark = |text: &str, method: &str| {
        let text = format!("{nn}{text}");
        let offset = text.find('§').expect("a cursor");
        client.open("t.rhai", &text.replacen('§', "", 1));
        let at = json!({"textDocument": {"uri": client.uri("t.rhai")}, "position": place(&text, offset)});
        client.request(method, at)
    };
    for (text, label) in [
        ("let s = \"a,b\";\ns.split(§", "split(sep: (), maxsplit: -1)"),
        ("let xs = [1, 2];\nxs.sort(§", "sort(closure?)"),
        ("let xs = [1, 2];\nxs.insert(§", "insert(index, value)"),
        ("let xs = [1, 2];\nxs.count(§", "count(value)"),
        ("let m = #{a: 1};\nm.get(§", "get(name, default?)"),
        ("let o = #{bump: |by, times| by * times};\no.bump(§", "bump(by, times)"),
    ] {
        let help = at_mark(text, "textDocument/signatureHelp");
        assert_eq!(help["signatures"][0]["label"].as_str().unwrap_or(""), label, "{text}");
    }
    let hover = at_mark("let xs = [1, 2];\nxs.ins§ert(0, 3);", "textDocument/hover");
    assert!(hover["contents"]["value"].as_str().is_some_and(|text| text.contains("before the element")), "{hover}");
    let items = at_mark("let m = nn::module(#{k: 4, forward: |x| this.§ });", "textDocument/completion");
    assert!(labels(&items).contains(&"k".to_string()), "{items}");
    let items = at_mark("[ones([2])].map(|x| x.§)", "textDocument/completion");
    assert!(labels(&items).contains(&"relu".to_string()) && !labels(&items).contains(&"push".to_string()));
}

#[test]
fn signatures_know_the_active_parameter() {
    let mut client = Client::new();
    let mut help = |text: &str| {
        let at = client.at("s.rhai", text);
        let help = client.request("textDocument/signatureHelp", at);
        let label = help["signatures"][0]["label"].as_str().unwrap_or("").to_string();
        let active = help["activeParameter"].as_u64();
        let parameter = active.map(|at| help["signatures"][0]["parameters"][at as usize]["label"].clone());
        (label, parameter.and_then(|label| label.as_str().map(str::to_string)).unwrap_or_default())
    };
    let (label, active) = help("import \"nn\" as nn;\nnn::linear(2, |");
    assert!(label.starts_with("linear(in_features, out_features"), "{label}");
    assert_eq!(active, "out_features");
    assert_eq!(help("ones([2]).sum(#{keepdim: |})").1, "keepdim: false");
    assert_eq!(help("ones([2]).sum(|").1, "dim: ()");
    assert_eq!(help("fn scale(v, by) { v * by }\nscale(1, |)"), ("scale(v, by)".into(), "by".into()));
    assert_eq!(help("let x = (1 + |2);").0, "");
}

#[test]
fn hovers_show_signatures_examples_and_shapes() {
    let mut client = Client::new();
    let text = hovered(&mut client, "let y = soft|max(ones([2, 3]), 1);");
    assert!(text.contains("softmax(") && text.contains("Example") && text.contains("tensor f32 [2, 3]"), "{text}");
    let text =
        hovered(&mut client, "let inputs = ones([4, 3]);\nlet weights = ones([3, 2]);\nlet y = inputs |@ weights;");
    assert!(text.contains("tensor f32 [4, 2]"), "{text}");
    let text = hovered(&mut client, "let a = ones([2], #{device: \"cuda:1\", dtype: \"f64\"});\nprint(|a + 1);");
    assert!(text.contains("let a: tensor f64 [2] on cuda:1"), "{text}");
    let text = hovered(&mut client, "/// Doubles its argument.\nfn twice(x) { x * 2 }\ntw|ice(ones([3]));");
    assert!(text.contains("fn twice(x)") && text.contains("Doubles its argument."), "{text}");
    let text = hovered(&mut client, "fn twice(x) { |x * 2 }\ntwice(ones([3]));");
    assert!(text.contains("tensor f32 [3]"), "{text}");
    let text = hovered(&mut client, "import \"nn\" as nn;\nlet m = nn::lin|ear(2, 3);");
    assert!(text.contains("nn::linear(in_features") && text.contains("Example"), "{text}");
    let text = hovered(&mut client, "ones([2]).sum(#{keep|dim: true});");
    assert!(text.contains("keepdim: false"), "{text}");
    // Broken text, and an emoji before the name.
    let text = hovered(&mut client, "let x = ones([2, 3]);\r\nlet s = \"\u{1f600}\"; print(|x.sum(\r\nlet z = ");
    assert!(text.contains("let x: tensor f32 [2, 3]"), "{text}");
    assert_eq!(hovered(&mut client, "// soft|max"), "");
}

#[test]
fn names_lead_to_their_declarations() {
    let mut client = Client::new();
    client.save("own.rhai", "const K = 1;\n\nfn twice(x) { x * 2 }\n");
    let mut at = |text: &str| {
        let at = client.at("d.rhai", text);
        let found = client.request("textDocument/definition", at);
        (found["uri"].as_str().unwrap_or("").to_string(), found["range"]["start"].clone())
    };
    let place = |line: u64, character: u64| json!({"line": line, "character": character});
    let (uri, start) = at("let \u{1f600} = 1; let x = 2;\nprint(|x);");
    assert!(uri.ends_with("d.rhai"));
    assert_eq!(start, place(0, 16));
    let (uri, start) = at("import \"own\" as own;\nown::tw|ice(2);");
    assert!(uri.ends_with("own.rhai"), "{uri}");
    assert_eq!(start, place(2, 3));
    let (uri, start) = at("import \"nn\" as nn;\nnn::lin|ear(2, 3);");
    assert!(uri.ends_with("nn/linear.rhai"), "{uri}");
    let text = std::fs::read_to_string(uri.strip_prefix("file://").expect("a file")).expect("a real file");
    let line = text.lines().nth(start["line"].as_u64().expect("a line") as usize).expect("there");
    assert!(line.starts_with("fn linear("), "{line}");
    assert!(at("import \"o|wn\" as own;").0.ends_with("own.rhai"));
    assert!(at("import \"own\" as own;\n|own::twice(1);").0.ends_with("own.rhai"));
    assert_eq!(at("so|ftmax(ones([2]), 0);").0, "");
}

#[test]
fn references_and_renames_go_through_all_files() {
    let mut client = Client::new();
    client.save("own.rhai", "fn twice(x) { x * 2 }\nfn more(x) { twice(x) + twice(1) }\n");
    client.save("user.rhai", "import \"own\" as o;\nlet a = o::twice(1);\nlet b = o::more(a);\nprint(b);\n");
    client.save("other.rhai", "fn twice(x) { x }\ntwice(1);\n");
    let mut at = client.at("own.rhai", "fn tw|ice(x) { x * 2 }\nfn more(x) { twice(x) + twice(1) }\n");
    at["context"] = json!({"includeDeclaration": false});
    let found = client.request("textDocument/references", at.clone());
    let lines: Vec<(String, u64)> = found
        .as_array()
        .expect("a list")
        .iter()
        .map(|found| {
            let uri = found["uri"].as_str().expect("a URI");
            (
                uri.rsplit('/').next().expect("a name").to_string(),
                found["range"]["start"]["line"].as_u64().expect("a line"),
            )
        })
        .collect();
    assert_eq!(lines, [("own.rhai".into(), 1), ("own.rhai".into(), 1), ("user.rhai".into(), 1)]);
    assert_eq!(client.request("textDocument/documentHighlight", at.clone()).as_array().expect("a list").len(), 3);
    let prepared = client.request("textDocument/prepareRename", at.clone());
    assert_eq!(prepared, json!({"range": range(0, 3, 8), "placeholder": "twice"}));
    at["newName"] = json!("double");
    let edit = client.request("textDocument/rename", at.clone());
    let (own, user) = (client.uri("own.rhai"), client.uri("user.rhai"));
    assert_eq!(edit["changes"].as_object().expect("changes").len(), 2);
    assert_eq!(edit["changes"][&own].as_array().expect("edits").len(), 3);
    assert_eq!(edit["changes"][&user], json!([{"range": range(1, 11, 16), "newText": "double"}]));
    for (name, code) in [("more", -32602), ("let", -32602), ("1x", -32602), ("", -32602)] {
        at["newName"] = json!(name);
        assert_eq!(client.refusal("textDocument/rename", at.clone()).0, code, "{name}");
    }
    for text in ["soft|max(x)", "let x = ones([2]); x.su|m()", "import \"nn\" as nn; nn::lin|ear(1, 2)", "l|et x = 1;"]
    {
        let at = client.at("r.rhai", text);
        assert_eq!(client.refusal("textDocument/prepareRename", at).0, -32803, "{text}");
    }
    // A name in a pattern is also a key.
    let mut at = client.at("r.rhai", "let #{a, b} = m();\nprint(|a + b);");
    at["newName"] = json!("first");
    let edit = client.request("textDocument/rename", at);
    let edits = &edit["changes"][client.uri("r.rhai")];
    assert_eq!(edits[0], json!({"range": range(0, 6, 7), "newText": "a: first"}));
    assert_eq!(edits[1], json!({"range": range(1, 6, 7), "newText": "first"}));
    // What remains of a map is no entry of it; a function goes before a variable that cannot be called.
    for (text, expected) in [
        ("let #{x, ..re|st} = #{x: 1, y: 2};\nprint(x, rest);", [(0, 11, 15), (1, 9, 13)]),
        ("let a|rea = 5; fn area(w) { w }\nprint(area, area(2));", [(0, 4, 8), (1, 6, 10)]),
    ] {
        let mut at = client.at("r.rhai", text);
        at["newName"] = json!("zone");
        let edit = client.request("textDocument/rename", at);
        let edits = expected.map(|(line, from, to)| json!({"range": range(line, from, to), "newText": "zone"}));
        assert_eq!(edit["changes"][client.uri("r.rhai")], json!(edits), "{text}");
    }
    // What the text calls of the language keeps its meaning.
    for (text, name) in [
        ("fn |f(x) { sum([x]) }\nprint(f(1));", "sum"),
        ("fn |f(x) { x }\nprint(f(1), ones([2]).abs());", "abs"),
        ("fn |f(x) { x }\nprint([1].map(Fn(\"abs\")));", "abs"),
        ("fn g(|x) { abs(x) }", "abs"),
    ] {
        let mut at = client.at("r.rhai", text);
        at["newName"] = json!(name);
        assert_eq!(client.refusal("textDocument/rename", at).0, -32602, "{text}");
    }
    // A file has one name, however it is imported.
    client.save("dotted.rhai", "import \"./own\" as o;\no::more(1);\n");
    let at = client.at("dotted.rhai", "import \"./own\" as o;\no::mo|re(1);\n");
    assert_eq!(client.request("textDocument/definition", at)["uri"], json!(own));
}

#[test]
fn symbols_folds_selections_and_links() {
    let mut client = Client::new();
    client.save("own.rhai", "fn train_step(x) { x }\n");
    let text = "// One\n// comment\nimport \"own\" as own;\nimport \"nn\" as nn;\nfn f(a) {\n    let b = [\n        1,\n    ];\n    b\n}\nlet shaped = ones([2, 3]);\nlet data = \"own.rhai\";\n";
    client.open("a.rhai", text);
    let document = client.document("a.rhai");
    let symbols = client.request("textDocument/documentSymbol", document.clone());
    let names: Vec<&str> =
        symbols.as_array().expect("a list").iter().map(|symbol| symbol["name"].as_str().expect("a name")).collect();
    assert_eq!(names, ["own", "nn", "f", "shaped", "data"]);
    assert_eq!(symbols[2]["children"][0]["name"], "b");
    assert_eq!(symbols[3]["detail"], "tensor f32 [2, 3]");
    let found = client.request("workspace/symbol", json!({"query": "trst"}));
    assert_eq!(found[0]["name"], "train_step");
    let folds = client.request("textDocument/foldingRange", document.clone());
    let has = |first: u64, last: u64, kind: Value| {
        let is = |fold: &&Value| fold["startLine"] == first && fold["endLine"] == last && fold["kind"] == kind;
        assert!(folds.as_array().expect("a list").iter().any(|fold| is(&fold)), "{first}..{last} in {folds}");
    };
    has(0, 1, json!("comment"));
    has(2, 3, json!("imports"));
    has(4, 8, Value::Null);
    has(5, 6, Value::Null);
    let mut params = document.clone();
    params["positions"] = json!([{"line": 6, "character": 8}]);
    let mut selection = &client.request("textDocument/selectionRange", params)[0];
    let mut starts = Vec::new();
    while !selection.is_null() {
        starts.push(selection["range"]["start"]["line"].as_u64().expect("a line"));
        selection = &selection["parent"];
    }
    assert!(starts.len() >= 6 && starts.is_sorted_by(|a, b| a >= b), "{starts:?}");
    assert_eq!((starts[0], starts.last()), (6, Some(&0)));
    let links = client.request("textDocument/documentLink", document);
    let targets: Vec<&str> =
        links.as_array().expect("a list").iter().map(|link| link["target"].as_str().expect("a URI")).collect();
    assert_eq!(targets.len(), 3, "{links}");
    assert!(targets[0].ends_with("own.rhai") && targets[1].ends_with("nn/module.rhai"), "{targets:?}");
    assert!(targets[2].ends_with("own.rhai") && Path::new(targets[2].trim_start_matches("file://")).is_file());
}

#[test]
fn calls_have_a_hierarchy() {
    let mut client = Client::new();
    client.save("own.rhai", "fn twice(x) { x * 2 }\n");
    client
        .save("user.rhai", "import \"own\" as own;\nfn g() { import \"own\" as own; own::twice(2) }\nown::twice(1);\n");
    let at = client.at("own.rhai", "fn tw|ice(x) { x * 2 }\nfn f() { twice(1) + twice(2) }\n");
    let item = client.request("textDocument/prepareCallHierarchy", at)[0].clone();
    assert_eq!(item["name"], "twice");
    let calls = client.request("callHierarchy/incomingCalls", json!({"item": item}));
    let mut callers: Vec<(String, usize)> = calls
        .as_array()
        .expect("a list")
        .iter()
        .map(|call| {
            let name = call["from"]["name"].as_str().expect("a name").to_string();
            (name, call["fromRanges"].as_array().expect("ranges").len())
        })
        .collect();
    callers.sort();
    assert_eq!(callers, [("f".into(), 2), ("g".into(), 1), ("user.rhai".into(), 1)]);
    let at = client.at("own2.rhai", "import \"nn\" as nn;\nfn a() { b(); nn::linear(1, 2) }\nfn |b() { 1 }\n");
    let item = client.request("textDocument/prepareCallHierarchy", at.clone())[0].clone();
    assert_eq!(client.request("callHierarchy/outgoingCalls", json!({"item": item})), json!([]));
    let mut first = at;
    first["position"] = json!({"line": 1, "character": 3});
    let item = client.request("textDocument/prepareCallHierarchy", first)[0].clone();
    let calls = client.request("callHierarchy/outgoingCalls", json!({"item": item}));
    assert_eq!((&calls[0]["to"]["name"], &calls[1]["to"]["name"]), (&json!("b"), &json!("linear")));
}

#[test]
fn hints_show_shapes_and_names_unless_turned_off() {
    let text = "fn scale(v, by) { v * by }\nlet x = ones([2, 3]);\nlet y = scale(x, 3);\nlet z = x @ x.T;\n";
    let hints = |options: Value| {
        let mut client = Client::with(json!({}), options);
        client.open("i.rhai", text);
        let mut params = client.document("i.rhai");
        params["range"] = json!({"start": {"line": 0, "character": 0}, "end": {"line": 9, "character": 0}});
        let hints = client.request("textDocument/inlayHint", params);
        let label = |hint: &Value| hint["label"].as_str().expect("a label").to_string();
        hints.as_array().expect("a list").iter().map(label).collect::<Vec<String>>()
    };
    assert_eq!(hints(Value::Null), [": f32 [2, 3]", ": f32 [2, 3]", "by:", ": f32 [2, 2]"]);
    assert_eq!(hints(json!({"inlayHints": {"shapes": false}})), ["by:"]);
    assert_eq!(hints(json!({"inlayHints": false})), [] as [String; 0]);
    // While a text is open.
    let mut client = Client::with(json!({"workspace": {"inlayHint": {"refreshSupport": true}}}), Value::Null);
    client.open("i.rhai", text);
    let off = json!({"settings": {"tscript": {"inlayHints": {"shapes": false}}}});
    client.notify("workspace/didChangeConfiguration", off);
    client.wait("a request for new hints", |message| message["method"] == "workspace/inlayHint/refresh");
    let mut params = client.document("i.rhai");
    params["range"] = json!({"start": {"line": 0, "character": 0}, "end": {"line": 9, "character": 0}});
    assert_eq!(client.request("textDocument/inlayHint", params).as_array().expect("a list").len(), 1);
}

#[test]
fn semantic_tokens_come_whole_in_part_and_as_differences() {
    let mut client = Client::new();
    let text = "const K = 1; // \u{1f600}\nfn f(a) { a.relu() + K }\n";
    client.open("t.rhai", text);
    let types = client.answer["capabilities"]["semanticTokensProvider"]["legend"]["tokenTypes"].clone();
    let document = client.document("t.rhai");
    let whole = client.request("textDocument/semanticTokens/full", document.clone());
    let numbers: Vec<u64> =
        whole["data"].as_array().expect("a list").iter().map(|n| n.as_u64().expect("a number")).collect();
    let named: Vec<&str> = numbers.chunks(5).map(|token| types[token[3] as usize].as_str().expect("a type")).collect();
    let expected = [
        "keyword",
        "variable",
        "operator",
        "number",
        "comment",
        "keyword",
        "function",
        "parameter",
        "parameter",
        "operator",
        "method",
        "operator",
        "variable",
    ];
    assert_eq!(named, expected);
    // `K`: a declaration that cannot be changed; the comment in UTF-16.
    assert_eq!((numbers[9], numbers[22]), (3, 5));
    // A lone `\r` ends a line, too.
    client.open("lines.rhai", "/* a\rb */ let x = 1;\n");
    let document_of_lines = client.document("lines.rhai");
    let of_lines = client.request("textDocument/semanticTokens/full", document_of_lines);
    let comment = types.as_array().expect("a list").iter().position(|name| name == "comment").expect("there");
    assert_eq!(
        of_lines["data"].as_array().expect("a list")[..10],
        [0, 0, 4, comment, 0, 1, 0, 4, comment, 0].map(|n| json!(n))
    );
    let mut params = document.clone();
    params["range"] = range(1, 0, 5);
    let part = client.request("textDocument/semanticTokens/range", params);
    assert_eq!(part["data"].as_array().expect("a list").len(), 10);
    let change = json!({"textDocument": {"uri": client.uri("t.rhai"), "version": 2}, "contentChanges": [{"range": range(1, 21, 22), "text": "2"}]});
    client.notify("textDocument/didChange", change);
    let mut params = document;
    params["previousResultId"] = whole["resultId"].clone();
    let delta = client.request("textDocument/semanticTokens/full/delta", params);
    let mut edited = numbers.clone();
    for edit in delta["edits"].as_array().expect("edits") {
        let number = |name: &str| edit[name].as_u64().expect("a number") as usize;
        let data = edit["data"].as_array().expect("data").iter().map(|n| n.as_u64().expect("a number"));
        edited.splice(number("start")..number("start") + number("deleteCount"), data);
    }
    assert_eq!(edited.len(), numbers.len());
    assert_eq!(types[edited[edited.len() - 2] as usize], "number");
}

/// A text after the first action whose title contains a word.
fn after(client: &mut Client, text: &str, title: &str) -> String {
    let offset = text.find('|').expect("a cursor");
    let plain = text.replacen('|', "", 1);
    let mut params = client.at("a.rhai", text);
    let position = place(text, offset);
    params["range"] = json!({"start": position, "end": position});
    params["context"] = json!({"diagnostics": []});
    let actions = client.request("textDocument/codeAction", params);
    let action = actions
        .as_array()
        .expect("a list")
        .iter()
        .find(|action| action["title"].as_str().expect("a title").contains(title));
    let action = action.unwrap_or_else(|| panic!("{text}: {actions}"));
    let edits = action["edit"]["changes"][client.uri("a.rhai")].as_array().expect("edits").clone();
    let byte = |place: &Value| {
        let line = place["line"].as_u64().expect("a line") as usize;
        let start: usize = plain.split_inclusive('\n').take(line).map(str::len).sum();
        start + place["character"].as_u64().expect("a column") as usize
    };
    let edit = &edits[0];
    let mut edited = plain.clone();
    edited.replace_range(
        byte(&edit["range"]["start"])..byte(&edit["range"]["end"]),
        edit["newText"].as_str().expect("text"),
    );
    edited
}

#[test]
fn actions_do_what_messages_advise() {
    let mut client = Client::new();
    let cases = [
        ("sof|tamx(ones([2]), 0);", "softmax", "softmax(ones([2]), 0);"),
        ("let total = 1;\nprint(to|tl);", "total", "let total = 1;\nprint(total);"),
        ("ones([2]).sum(#{kee|pdin: true});", "keepdim", "ones([2]).sum(#{keepdim: true});"),
        ("import \"nn\" as nn;\nnn::lin|aer(1, 2);", "linear", "import \"nn\" as nn;\nnn::linear(1, 2);"),
        ("import \"optm|\" as optim;\noptim::sgd([]);", "optim", "import \"optim\" as optim;\noptim::sgd([]);"),
        ("imp|ort \"nn\" as nn;\nprint(1);", "unused import", "print(1);"),
        ("print(1); imp|ort \"nn\" as nn;\nprint(2);", "unused import", "print(1);\nprint(2);"),
        ("imp|ort \"nn\" as nn; print(1);", "unused import", "print(1);"),
        ("let f = |x| x;\nf.ca§ll(1);", "Write `f(..)`", "let f = |x| x;\nf(1);"),
        ("{ let a| = 1; }", "_a", "{ let _a = 1; }"),
        ("let #{a, ..re|st} = #{a: 1};\nprint(a);", "_rest", "let #{a, .._rest} = #{a: 1};\nprint(a);"),
        ("print(zeros([2], #{dtype: \"f3|3\"}));", "f32", "print(zeros([2], #{dtype: \"f32\"}));"),
        ("print(ones([2]).s|um(#{dtype: \"flot32\"}));", "float32", "print(ones([2]).sum(#{dtype: \"float32\"}));"),
        (
            "print(ms|e_loss(ones([2]), ones([2]), #{reduction: \"men\"}));",
            "mean",
            "print(mse_loss(ones([2]), ones([2]), #{reduction: \"mean\"}));",
        ),
        (
            "import \"nn\" as nn; imp|ort \"optim\" as optim;\nprint(nn::relu());",
            "unused import",
            "import \"nn\" as nn;\nprint(nn::relu());",
        ),
        (
            "let a = ones([2], #{device: \"cuda:0\"});\nlet b = ones([2]).cpu();\nprint(a |+ b);",
            "Move `b`",
            "let a = ones([2], #{device: \"cuda:0\"});\nlet b = ones([2]).cpu();\nprint(a + b.to(\"cuda:0\"));",
        ),
    ];
    for (text, title, expected) in cases {
        if text.contains('§') {
            // Bars are part of this script.
            let (before, plain) = (text.find('§').expect("there"), text.replace('§', ""));
            client.open("a.rhai", &plain);
            let position = place(text, before);
            let mut params = client.document("a.rhai");
            params["range"] = json!({"start": position, "end": position});
            params["context"] = json!({"diagnostics": []});
            let actions = client.request("textDocument/codeAction", params);
            let action =
                actions.as_array().expect("a list").iter().find(|action| action["title"] == title).expect("it");
            let edit = &action["edit"]["changes"][client.uri("a.rhai")][0];
            assert_eq!((&edit["range"], &edit["newText"]), (&range(1, 1, 6), &json!("")));
            continue;
        }
        assert_eq!(after(&mut client, text, title), expected);
    }
    // What may cross devices, and what is changed in place, stays.
    let titles = |client: &mut Client, call: &str| {
        let made = "let a = ones([2], #{device: \"cuda:1\"});\nlet b = ones([2], #{device: \"cuda\"});\n";
        let mut params = client.at("a.rhai", &format!("{made}{call}"));
        let position = params["position"].clone();
        params["range"] = json!({"start": position, "end": position});
        params["context"] = json!({"diagnostics": []});
        let actions = client.request("textDocument/codeAction", params);
        let title = |action: &Value| action["title"].as_str().expect("a title").to_string();
        let titles: Vec<String> = actions.as_array().expect("a list").iter().map(title).collect();
        titles.into_iter().filter(|title| title.starts_with("Move")).collect::<Vec<_>>()
    };
    for call in ["b.cop|y_(a);", "print(a.t|o(b));"] {
        assert_eq!(titles(&mut client, call), [""; 0], "{call}");
    }
    assert_eq!(titles(&mut client, "b.ad|d_(a);"), ["Move `a` by `.to(\"cuda:0\")`"]);
    assert_eq!(titles(&mut client, "print(b.ad|d(a));").len(), 2);
}

#[test]
fn lenses_run_scripts_and_tests() {
    let mut client = Client::new();
    client.save("a.rhai", "print(\"hello from the script\");\n");
    client.save(
        "a_test.rhai",
        "fn test_good() { assert(true); }\nfn test_bad() { assert(false); }\nfn helper(x) { x }\n",
    );
    let document = client.document("a.rhai");
    let lens = client.request("textDocument/codeLens", document)[0]["command"].clone();
    assert_eq!(lens["command"], "tscript.run");
    client.request("workspace/executeCommand", json!({"command": lens["command"], "arguments": lens["arguments"]}));
    client.wait("what it prints", |message| message["params"]["message"] == "hello from the script");
    client.wait("its end", |message| message["params"]["message"] == "a.rhai: done");
    let document = client.document("a_test.rhai");
    let lenses = client.request("textDocument/codeLens", document);
    let titles: Vec<&str> = lenses
        .as_array()
        .expect("a list")
        .iter()
        .map(|lens| lens["command"]["title"].as_str().expect("a title"))
        .collect();
    assert_eq!(titles, ["Run all tests", "Run test", "Run test"]);
    for (lens, expected) in [(1, "a_test.rhai: test_good passed"), (2, "a_test.rhai: test_bad failed")] {
        let command = lenses[lens]["command"].clone();
        client.request(
            "workspace/executeCommand",
            json!({"command": command["command"], "arguments": command["arguments"]}),
        );
        client.wait("its end", |message| message["params"]["message"] == expected);
    }
    assert_eq!(client.refusal("workspace/executeCommand", json!({"command": "tscript.other"})).0, -32602);
}

#[test]
fn the_whole_folder_is_checked_on_demand() {
    let mut client =
        Client::with(json!({"textDocument": {"diagnostic": {}}, "window": {"workDoneProgress": true}}), Value::Null);
    client.save("good.rhai", "print(1);\n");
    client.save("bad.rhai", "print(nothing);\n");
    // What is open is checked as it is open; a client that asks gets nothing by itself.
    client.open("good.rhai", "print(other_thing);\n");
    let document = client.document("good.rhai");
    assert_eq!(client.request("textDocument/diagnostic", document)["items"][0]["code"], "E0102");
    let report = client.request("workspace/diagnostic", json!({"previousResultIds": [], "workDoneToken": "t"}));
    let codes = |name: &str| {
        let items = report["items"].as_array().expect("items");
        let of_it = items.iter().find(|item| item["uri"] == client.uri(name).as_str()).expect("the file");
        of_it["items"][0]["code"].clone()
    };
    assert_eq!((codes("bad.rhai"), codes("good.rhai")), (json!("E0102"), json!("E0102")));
    let of_progress = |kind: &'static str| {
        move |message: &Value| message["method"] == "$/progress" && message["params"]["value"]["kind"] == kind
    };
    client.wait("a beginning", of_progress("begin"));
    client.wait("an end", of_progress("end"));
    client.request("workspace/executeCommand", json!({"command": "tscript.checkFolder", "arguments": []}));
    assert_eq!(client.diagnostics("bad.rhai")[0]["code"], "E0102");
    // Of what is open the client asks itself; what it opens later is not told twice.
    let open = client.uri("good.rhai");
    let told = |message: &Value| {
        message["method"] == "textDocument/publishDiagnostics" && message["params"]["uri"] == open.as_str()
    };
    assert!(!client.waiting.iter().any(told));
    client.open("bad.rhai", "print(nothing);\n");
    assert_eq!(client.diagnostics("bad.rhai"), [] as [Value; 0]);
}

#[test]
fn modules_are_checked_as_they_are_open() {
    let mut client = Client::new();
    client.save("own.rhai", "fn one(x) { x }\n");
    client.open("user.rhai", "import \"own\" as own;\nown::two(1);\n");
    assert_eq!(client.diagnostics("user.rhai")[0]["code"], "E0103");
    client.open("own.rhai", "fn one(x) { x }\nfn two(x) { x }\n");
    assert_eq!(client.diagnostics("user.rhai"), [] as [Value; 0]);
    // Closed, it is what is saved; and somebody else may save it.
    client.notify("textDocument/didClose", json!({"textDocument": {"uri": client.uri("own.rhai")}}));
    assert_eq!(client.diagnostics("user.rhai")[0]["code"], "E0103");
    client.save("own.rhai", "fn two(x) { x }\n");
    client.notify("workspace/didChangeWatchedFiles", json!({"changes": []}));
    assert_eq!(client.diagnostics("user.rhai"), [] as [Value; 0]);
}

/// UTF-8 where it is agreed on: columns are bytes, in what comes and in what goes.
#[test]
fn columns_are_what_was_agreed_on() {
    let text = "let s = \"\u{1f600}\"; let x = 1;\nprint(s);\n";
    for (encoding, column) in [("utf-8", 20), ("utf-16", 18), ("utf-32", 17)] {
        let mut client = Client::with(json!({"general": {"positionEncodings": [encoding]}}), Value::Null);
        client.open("a.rhai", text);
        let found = client.diagnostics("a.rhai");
        assert_eq!(found[0]["range"], range(0, column, column + 1), "{encoding}");
        let mut params = client.document("a.rhai");
        params["position"] = json!({"line": 0, "character": column});
        let hover = client.request("textDocument/hover", params);
        assert!(hover["contents"]["value"].as_str().expect("text").contains("let x: int"), "{hover}");
    }
}

#[test]
fn a_cancelled_request_is_answered_so() {
    let mut client = Client::new();
    // Something that takes a while, and a request behind it that nobody wants any more.
    let text: String = (0..400).map(|n| format!("let v{n} = ones([{n}, 2]).sum();\nprint(v{n});\n")).collect();
    client.open("a.rhai", &text);
    let document = client.document("a.rhai");
    let first = client.ask("textDocument/semanticTokens/full", document.clone());
    let second = client.ask("textDocument/documentSymbol", document.clone());
    client.notify("$/cancelRequest", json!({"id": second}));
    let third = client.ask("textDocument/foldingRange", document);
    assert!(client.response(first).get("error").is_none());
    assert_eq!(client.response(second)["error"]["code"], -32800);
    assert!(client.response(third).get("error").is_none());
}

/// Every request at every third place of texts that are cut off anywhere: an answer each time, and a living server.
#[test]
fn broken_texts_are_survived() {
    let text = "import \"nn\" as nn;\nfn f(x, y) { `a${x.sum(#{dim: 1}):.2f}b` + y[0] }\nlet m = nn::linear(2, 3);\nfor (i, x) in [1, 2] { f(x, |z| z.call(i)); }\n";
    let mut client = Client::new();
    let methods = [
        "hover",
        "completion",
        "signatureHelp",
        "definition",
        "references",
        "documentHighlight",
        "documentSymbol",
        "foldingRange",
        "codeAction",
        "inlayHint",
        "semanticTokens/full",
        "documentLink",
        "codeLens",
    ];
    for end in (0..=text.len()).step_by(7) {
        for part in [&text[..end], &text[end..]] {
            client.open("b.rhai", part);
            let position = place(part, part.len() - part.len() / 3);
            let params = json!({
                "textDocument": {"uri": client.uri("b.rhai")},
                "position": position,
                "range": {"start": {"line": 0, "character": 0}, "end": position},
                "context": {"diagnostics": []},
            });
            for method in methods {
                client.request(&format!("textDocument/{method}"), params.clone());
            }
        }
    }
    client.request("shutdown", Value::Null);
    client.notify("exit", Value::Null);
    assert_eq!(client.status(), 0);
}

/// A text after the edits of an answer, from the last one on.
fn edited(text: &str, edits: &Value) -> String {
    let offset = |at: &Value| {
        let line = at["line"].as_u64().expect("a line") as usize;
        let start: usize = text.split_inclusive('\n').take(line).map(str::len).sum();
        let mut left = at["character"].as_u64().expect("a column") as usize;
        let mut end = start;
        for c in text[start..].chars() {
            if left == 0 {
                break;
            }
            left -= c.len_utf16();
            end += c.len_utf8();
        }
        end
    };
    let mut changed = text.to_string();
    for edit in edits.as_array().expect("edits").iter().rev() {
        let range = offset(&edit["range"]["start"])..offset(&edit["range"]["end"]);
        changed.replace_range(range, edit["newText"].as_str().expect("a text"));
    }
    changed
}

#[test]
fn texts_are_formatted_whole_and_in_part() {
    let mut client = Client::with(json!({}), json!({"format": {"width": 40}}));
    assert_eq!(client.answer["capabilities"]["documentFormattingProvider"], true);
    assert_eq!(client.answer["capabilities"]["documentRangeFormattingProvider"], true);
    let text = "let a=\"é𝄞\"; let b =2;\nfn f( ) {\n  let c=3;\n  c\n}\nlet d = g(first_argument, second_argument);\n ";
    client.open("f.rhai", text);
    let mut params = client.document("f.rhai");
    params["options"] = json!({"tabSize": 2, "insertSpaces": true});
    let edits = client.request("textDocument/formatting", params.clone());
    let expected = "let a = \"é𝄞\";\nlet b = 2;\nfn f() {\n    let c = 3;\n    c\n}\nlet d = g(\n    first_argument,\n    second_argument,\n);\n";
    assert_eq!(edited(text, &edits), expected);
    // Lines that stay are not touched.
    assert!(
        edits.as_array().expect("edits").iter().all(|edit| edit["newText"].as_str().expect("text").len() < 12),
        "{edits}"
    );
    params["range"] = json!({"start": {"line": 2, "character": 0}, "end": {"line": 3, "character": 0}});
    let edits = client.request("textDocument/rangeFormatting", params.clone());
    assert_eq!(edited(text, &edits), text.replace("  let c=3", "    let c = 3"));

    client.open("same.rhai", expected);
    assert_eq!(client.request("textDocument/formatting", client.document("same.rhai")), json!([]));
    client.open("broken.rhai", "let a=(1;");
    assert_eq!(client.request("textDocument/formatting", client.document("broken.rhai")), Value::Null);
}

/// Names of imports begin at the folder of the script that is run, in the server and in `check` as in a run.
#[test]
fn imports_are_found_where_a_run_finds_them() {
    let mut client = Client::new();
    std::fs::create_dir_all(client.path("a")).expect("a folder");
    std::fs::create_dir_all(client.path("b")).expect("a folder");
    client.save("main.rhai", "import \"b/two\" as t;\nprint(t::f(1));\n");
    client.save("a/one.rhai", "fn g(x) { x + 1 }\n");
    let good = "import \"a/one\" as o;\nfn f(x) { o::g(x) }\n";
    client.save("b/two.rhai", good);
    let check = |client: &Client| {
        let mut command = Command::new(program());
        command.args(["check", "--message-format", "short", "b/two.rhai"]).current_dir(client.folder.path());
        let done = command.output().expect("it runs");
        String::from_utf8_lossy(&done.stdout).into_owned()
    };
    client.open("b/two.rhai", good);
    assert_eq!(client.diagnostics("b/two.rhai"), [] as [Value; 0]);
    assert_eq!(check(&client), "");
    let at = json!({"textDocument": {"uri": client.uri("b/two.rhai")}, "position": {"line": 1, "character": 13}});
    let found = client.request("textDocument/definition", at);
    assert_eq!(found["uri"], client.uri("a/one.rhai").as_str(), "{found}");
    // As a run has it, no name climbs from the module's own folder.
    let wrong = good.replace("a/one", "../a/one");
    client.save("b/two.rhai", &wrong);
    client.open("b/two.rhai", &wrong);
    let found = client.diagnostics("b/two.rhai");
    let message = found[0]["message"].as_str().expect("a message");
    assert!(found[0]["code"] == "E0106" && message.contains("write `import \"a/one\"`"), "{message}");
    assert!(check(&client).contains("b/two.rhai:1:8: error[E0106]"), "{}", check(&client));
    let ran = Command::new(program()).args(["run", "main.rhai"]).current_dir(client.folder.path()).output();
    let errors = String::from_utf8_lossy(&ran.expect("it runs").stderr).into_owned();
    assert!(errors.contains("write `import \"a/one\"`"), "{errors}");
    // What nobody above imports is a script of its own.
    client.save("b/alone.rhai", "import \"../a/one\" as o;\nprint(o::g(1));\n");
    client.open("b/alone.rhai", "import \"../a/one\" as o;\nprint(o::g(1));\n");
    assert_eq!(client.diagnostics("b/alone.rhai"), [] as [Value; 0]);
}

/// What a run has written down of a race becomes an action, until a run has none.
#[test]
fn the_missing_wait_of_a_race_is_an_action() {
    let mut client = Client::new();
    let text = "let a = empty([100], #{device: \"cuda\"}).normal_();\nlet s = stream();\nwith_stream(s) {\n    print(a.sum().item() < 1e9);\n}\n";
    client.save("race.rhai", text);
    let run = |client: &Client| {
        let mut command = Command::new(program());
        command.args(["run", "--simulate-gpus", "1", "race.rhai"]).current_dir(client.folder.path());
        let done = command.env("XDG_CACHE_HOME", client.path(".cache")).output().expect("it runs");
        String::from_utf8_lossy(&done.stderr).into_owned()
    };
    let titles = |client: &mut Client, text: &str, line: u64| {
        client.open("race.rhai", text);
        let mut params = client.document("race.rhai");
        params["range"] = range(line, 0, 5);
        params["context"] = json!({"diagnostics": []});
        client.request("textDocument/codeAction", params)
    };
    assert_eq!(titles(&mut client, text, 3), json!([]));
    let warned = run(&client);
    assert!(warned.contains("E0501") && warned.contains("s.wait_stream(default_stream());"), "{warned}");
    let actions = titles(&mut client, text, 3);
    let title = "Insert `s.wait_stream(default_stream())`, for the race that the last run found";
    assert_eq!(actions[0]["title"], title, "{actions}");
    let edit = &actions[0]["edit"]["changes"][client.uri("race.rhai")];
    let mended = edited(text, edit);
    assert!(mended.contains("{\n    s.wait_stream(default_stream());\n    print("), "{mended}");
    // Where it is written already, and where the line has changed, there is nothing to offer; the line may have moved.
    assert_eq!(titles(&mut client, &mended, 4), json!([]));
    assert_eq!(titles(&mut client, &text.replace("1e9", "1e8"), 3), json!([]));
    assert_eq!(titles(&mut client, &format!("// first\n{text}"), 4)[0]["title"], title);
    client.save("race.rhai", &mended.replace("print(", "throw \"early\"; print("));
    assert!(run(&client).contains("early"));
    assert_eq!(titles(&mut client, text, 3)[0]["title"], title);
    client.save("race.rhai", &mended);
    assert_eq!(run(&client), "");
    assert_eq!(titles(&mut client, text, 3), json!([]));
}

/// Diagnostics of files that are not open go when they are cured, and when the file is gone.
#[test]
fn diagnostics_of_closed_files_are_cleared() {
    let mut client = Client::new();
    for name in ["cured.rhai", "gone.rhai"] {
        client.save(name, "print(nothing);\n");
    }
    std::fs::write(client.path("bytes.rhai"), b"let x = \"\xff\";").expect("written");
    #[cfg(unix)]
    std::os::unix::fs::symlink("nowhere.rhai", client.path("link.rhai")).expect("a link");
    #[cfg(unix)]
    {
        let made = Command::new("mkfifo").arg(client.path("pipe.rhai")).status().expect("it runs");
        assert!(made.success());
    }
    client.request("workspace/executeCommand", json!({"command": "tscript.checkFolder", "arguments": []}));
    for name in ["cured.rhai", "gone.rhai"] {
        assert_eq!(client.diagnostics(name)[0]["code"], "E0102", "{name}");
    }
    // What cannot be read is reported, too, as by `check`.
    assert_eq!(client.diagnostics("bytes.rhai")[0]["code"], "E0101");
    #[cfg(unix)]
    assert_eq!(client.diagnostics("link.rhai")[0]["code"], "E0601");
    client.save("cured.rhai", "print(1);\n");
    std::fs::remove_file(client.path("gone.rhai")).expect("it is there");
    let changes = json!([{"uri": client.uri("cured.rhai"), "type": 2}, {"uri": client.uri("gone.rhai"), "type": 3}]);
    client.notify("workspace/didChangeWatchedFiles", json!({"changes": changes}));
    for name in ["cured.rhai", "gone.rhai"] {
        assert_eq!(client.diagnostics(name), [] as [Value; 0], "{name}");
    }
}

#[cfg(unix)]
#[test]
fn pipes_in_a_folder_are_passed_over() {
    let folder = tempfile::tempdir().expect("a folder");
    let made = Command::new("mkfifo").arg(folder.path().join("pipe.rhai")).status().expect("it runs");
    assert!(made.success());
    std::fs::write(folder.path().join("good.rhai"), "print(1);\n").expect("written");
    for command in ["check", "fmt"] {
        let mut child = Command::new(program()).arg(command).arg(folder.path()).spawn().expect("it starts");
        let begun = std::time::Instant::now();
        while child.try_wait().expect("it runs").is_none() {
            assert!(begun.elapsed() < PATIENCE, "`{command}` waits for a pipe");
            std::thread::sleep(Duration::from_millis(20));
        }
        assert!(child.wait().expect("it ends").success(), "{command}");
    }
}

/// The server ends with the process that started it, also where its input stays open.
#[cfg(unix)]
#[test]
fn the_server_ends_with_its_client() {
    let mut client = Client::started();
    let mut parent = Command::new("sleep").arg("1000").spawn().expect("it starts");
    client.request("initialize", json!({"processId": parent.id(), "capabilities": {}}));
    parent.kill().expect("it runs");
    parent.wait().expect("it ends");
    let begun = std::time::Instant::now();
    while client.child.try_wait().expect("it runs").is_none() {
        assert!(begun.elapsed() < PATIENCE, "it lives on");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn members_of_what_the_library_gives_are_its_own() {
    let mut client = Client::new();
    let optimizer =
        "import \"nn\" as nn;\nimport \"optim\" as optim;\nlet o = optim::adam(nn::linear(2, 3).parameters());\n";
    let has = |client: &mut Client, text: &str, wanted: &[&str], others: &[&str]| {
        let found = completed(client, text);
        for name in wanted {
            assert!(found.iter().any(|label| label == name), "{text}: no {name} in {found:?}");
        }
        for name in others {
            assert!(!found.iter().any(|label| label == name), "{text}: {name} is offered");
        }
    };
    has(
        &mut client,
        &format!("{optimizer}o.|"),
        &["step", "param_groups", "add_param_group"],
        &["forward", "add_module"],
    );
    let schedule = format!("{optimizer}let s = optim::step_lr(o, 2);\ns.|");
    has(&mut client, &schedule, &["step", "get_last_lr"], &["param_groups", "forward"]);
    has(&mut client, "try { f(); } catch (e) { e.| }", &["code", "message", "line", "notes"], &["relu"]);
    let loader = "import \"data\" as data;\nlet l = data::loader(data::tensors(ones([4]), ones([4])));\n";
    has(&mut client, &format!("{loader}for b in l {{ b.| }}"), &["x", "y"], &["relu"]);
    has(&mut client, &format!("{loader}for (i, b) in enumerate(l) {{ b.| }}"), &["x", "y"], &["relu"]);
    has(&mut client, &format!("{loader}l.|"), &["state_dict", "batch_size"], &["forward"]);
    // Before a word is begun there is more to ask for.
    let mut is_incomplete = |text: &str| {
        let at = client.at("i.rhai", text);
        client.request("textDocument/completion", at)["isIncomplete"].as_bool().expect("a truth value")
    };
    assert!(is_incomplete("no_grad(|| {|}") || is_incomplete("let x = |"));
    assert!(is_incomplete("let x = |") && !is_incomplete("let x = ran|") && !is_incomplete("ones([2]).|"));
    // Folders of modules.
    std::fs::create_dir_all(client.path("sub dir")).expect("a folder");
    client.save("sub dir/deep.rhai", "fn f() { 1 }\n");
    client.save("beside.rhai", "fn f() { 1 }\n");
    has(&mut client, "import \"sub dir/|\" as d;", &["sub dir/deep"], &[]);
    has(&mut client, "import \"./|\" as d;", &["./beside", "./sub dir/"], &[]);
    has(&mut client, "import \"|\" as d;", &["nn", "beside", "sub dir/"], &[]);
}

#[test]
fn signatures_of_closures_and_modules_are_shown() {
    let mut client = Client::new();
    // Bars are part of these scripts.
    let mut help = |text: &str| {
        let offset = text.find('§').expect("a cursor");
        client.open("s.rhai", &text.replacen('§', "", 1));
        let at = json!({"textDocument": {"uri": client.uri("s.rhai")}, "position": place(text, offset)});
        let help = client.request("textDocument/signatureHelp", at);
        let label = help["signatures"][0]["label"].as_str().unwrap_or("").to_string();
        (label, help["activeParameter"].as_u64())
    };
    assert_eq!(help("let f = |a, b| a + b;\nf(1, §)"), ("f(a, b)".into(), Some(1)));
    assert_eq!(help("let f = |a, b| a + b;\nf.call(1, §)"), ("f(a, b)".into(), Some(1)));
    assert_eq!(help("import \"nn\" as nn;\nlet m = nn::linear(2, 3);\nm(§)"), ("m(x)".into(), Some(0)));
    // Between keywords it is the next one, since a client would show the first parameter otherwise.
    let (label, active) = help("ones([2]).sum(#{§})");
    assert!(label.starts_with("sum(dim") && active == Some(0), "{label} {active:?}");
    let (label, active) = help("full([2], 1.0, #{§})");
    assert!(label.starts_with("full(size") && active >= Some(2), "{label} {active:?}");
}

/// The comment of a file is not that of its first function; constants and variables of modules have hovers, too.
#[test]
fn hovers_over_names_of_modules_show_what_they_are() {
    let mut client = Client::new();
    let module = "//! The module.\n/// Adds.\nfn helper(a, b) { a + b }\n/// How many.\nconst K = 3;\nexport K;\n";
    client.save("lib.rhai", module);
    let text = hovered(&mut client, "import \"lib\" as lib;\nprint(lib::hel|per(1, 2));");
    assert!(text.contains("Adds.") && !text.contains("The module"), "{text}");
    let text = hovered(&mut client, "import \"lib\" as lib;\nprint(lib::|K);");
    assert!(text.contains("const K") && text.contains("How many."), "{text}");
}

#[test]
fn references_of_the_language_are_those_in_the_users_files() {
    let mut client = Client::new();
    client.save("other.rhai", "import \"nn\" as n;\nprint(n::linear(1, 2), relu(ones([2])));\n");
    let mut count = |text: &str| {
        let mut at = client.at("r.rhai", text);
        at["context"] = json!({"includeDeclaration": true});
        let found = client.request("textDocument/references", at);
        found.as_array().map(Vec::len)
    };
    assert_eq!(count("import \"nn\" as nn;\nlet a = nn::lin|ear(1, 2);\nlet b = nn::linear(1, 2);"), Some(3));
    assert_eq!(count("print(ones([2]).re|lu());"), Some(2));
    assert_eq!(count("print(nothing_of_this_n|ame);"), None);
}

#[test]
fn actions_put_in_what_is_missing() {
    let mut client = Client::new();
    let import = "import \"nn\" as nn;";
    let cases = [
        (
            "//! A script.\nlet a = n|n::linear(1, 2);\n",
            format!("//! A script.\n{import}\nlet a = nn::linear(1, 2);\n"),
        ),
        (
            "import \"optim\" as optim;\nprint(optim::sgd(n|n::linear(1, 2).parameters()));\n",
            format!("import \"optim\" as optim;\n{import}\nprint(optim::sgd(nn::linear(1, 2).parameters()));\n"),
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(after(&mut client, text, import), expected);
    }
    let title = "Write the missing `;`";
    assert_eq!(after(&mut client, "let a = 1|\nprint(a);\n", title), "let a = 1;\nprint(a);\n");
    assert_eq!(after(&mut client, "let a = 1 l|et b = 2;\n", title), "let a = 1; let b = 2;\n");
    // Devices that methods name.
    let text = "let a = ones([2]).cpu();\nlet b = a.to(\"cuda:1\");\nprint(a |+ b);";
    assert!(after(&mut client, text, "Move `a`").ends_with("print(a.to(\"cuda:1\") + b);"));
    let text = "let a = ones([2]).cpu();\nlet b = a.cuda(1);\nprint(a |+ b);";
    assert!(after(&mut client, text, "Move `b`").ends_with("print(a + b.to(\"cpu\"));"));
    // What nothing uses is told of, too.
    client.open("u.rhai", "import \"nn\" as nn;\nprint(1);\n");
    let found = client.diagnostics("u.rhai");
    assert_eq!((&found[0]["code"], &found[0]["tags"]), (&json!("E0115"), &json!([1])));
    client.open("v.rhai", "import \"nn\" as _nn;\nimport \"optim\" as optim;\nfn f(p) { optim::sgd(p) }\n");
    assert_eq!(client.diagnostics("v.rhai"), [] as [Value; 0]);
}
