//! The REPL through a real terminal, and through a pipe.

use super::terminal::{Terminal, plain};
use std::io::Write;
use std::process::{Command, Stdio};

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a folder")
}

fn open(folder: &tempfile::TempDir) -> Terminal {
    let mut terminal = Terminal::start(folder.path(), &[]);
    terminal.prompt();
    terminal
}

#[test]
fn entries_are_evaluated_and_placed() {
    let folder = folder();
    let mut terminal = open(&folder);
    assert_eq!(terminal.enter("let x = tensor([1.0, 2.0])"), "");
    assert_eq!(terminal.enter("x + 1"), "tensor([2., 3.])\n    [2] f32 cpu");
    assert_eq!(
        terminal.enter("_.requires_grad_()"),
        "tensor([2., 3.], requires_grad=true)\n    [2] f32 cpu, needs gradients"
    );
    assert_eq!(terminal.enter("\"a\" + 1"), "\"a1\"");
    assert_eq!(terminal.enter("\"\\u0000\\x1b\""), "\"\\x00\\x1b\"");
    assert_eq!(terminal.enter("x.topk(1)").lines().last(), Some("    values  [1] f32 cpu"));
    assert_eq!(terminal.enter(":quiet").lines().last().map(str::trim), Some("= help: did you mean `:quit`?"));
    terminal.keys("\x04");
    assert_eq!(terminal.end(), 0);
}

#[test]
fn an_unfinished_entry_waits_for_more() {
    let folder = folder();
    let mut terminal = open(&folder);
    terminal.keys("fn twice(v) {\r");
    terminal.keys("v * 2\r");
    assert_eq!(terminal.enter("}"), "");
    assert_eq!(terminal.enter("twice(21)"), "42");
    terminal.keys("1 +\r");
    assert_eq!(terminal.enter("1"), "2");
    // What is typed is dropped by Ctrl-C, and the session goes on.
    assert_eq!(terminal.send("let y = [1,\r\x03"), "");
    assert_eq!(terminal.enter("twice(2)"), "4");
}

#[test]
fn a_refused_pattern_leaves_no_names() {
    let folder = folder();
    let mut terminal = open(&folder);
    for entry in ["let [m n] = [5]", "let [m, m] = [1, 2]", "let [m 5] = [1]"] {
        assert!(terminal.enter(entry).contains("E0101"), "{entry}");
        assert!(terminal.enter("m").contains("E0102"), "{entry}");
    }
    assert_eq!(terminal.enter("let [m, n] = [1, 2]; m + n"), "3");
}

#[test]
fn tab_completes_names_members_keywords_and_files() {
    let folder = folder();
    std::fs::write(folder.path().join("weights.npy"), "").expect("a file");
    std::fs::write(folder.path().join("geometry.rhai"), "fn area(a, b) { a * b }").expect("a file");
    std::fs::create_dir(folder.path().join("with blanks")).expect("a folder");
    std::fs::write(folder.path().join("with blanks/é 1.rhai"), "let loaded = 7;").expect("a file");
    let mut terminal = open(&folder);
    terminal.enter("let measured = ones([2, 3])");
    assert_eq!(terminal.enter("meas\t.numel"), "6");
    assert_eq!(terminal.enter("measured.flatt\t).nume\t"), "6");
    assert_eq!(terminal.enter("measured.sum(#{keepd\ttrue}).ndim"), "2");
    assert_eq!(terminal.enter("zeros([1], #{dtype: \"bf\t\"}).dtype"), "bf16");
    assert!(terminal.enter("load(\"wei\t\")").contains("weights.npy"));
    assert_eq!(terminal.enter("\"with\té\t\""), "\"with blanks/é 1.rhai\"");
    terminal.enter(":load with\té\t");
    assert_eq!(terminal.enter("loaded"), "7");
    assert_eq!(terminal.enter(":ty\tmeasur\t").trim(), "tensor [2, 3] f32 cpu");
    terminal.enter("import \"geom\t\" as shapes");
    assert_eq!(terminal.enter("shapes::ar\t2, 3)"), "6");
    // What fits a tensor is offered, and nothing else.
    terminal.keys("measured.su\t\t");
    let offered = terminal.wait("sum(");
    assert!(!offered.contains("sub_string"), "{offered}");
}

#[test]
fn a_tab_at_the_beginning_of_a_line_indents() {
    let folder = folder();
    let mut terminal = open(&folder);
    // As a terminal pastes that brackets nothing.
    terminal.keys("if true {\r\tprint(40 +\r\t\t2);\r");
    assert_eq!(terminal.enter("}"), "42");
    assert_eq!(terminal.enter("\t1 + 2"), "3");
}

#[test]
fn hints_show_the_signature() {
    let folder = folder();
    let mut terminal = open(&folder);
    terminal.keys("softmax(");
    terminal.wait("softmax(input, dim");
}

#[test]
fn an_interrupt_keeps_the_session() {
    let folder = folder();
    let mut terminal = open(&folder);
    terminal.enter("let n = cell(0)");
    // Not what the entry itself shows: the terminal echoes it, several times.
    terminal.keys("loop { n.set(n.get() + 1); if n.get() == 5000 { print(\"under\" + \" way\") } }\r");
    terminal.wait("under way");
    terminal.keys("\x03");
    let reported = terminal.wait("cpu> ");
    assert!(reported.contains("E0803") && reported.contains("repl:2"), "{reported}");
    assert_eq!(terminal.enter("n.get() > 4999"), "true");
}

#[test]
fn errors_name_the_entry_and_the_session_goes_on() {
    let folder = folder();
    let mut terminal = open(&folder);
    terminal.enter("let x = arange(10)");
    let early = terminal.enter("x + ones([3])");
    assert!(early.contains("E0201") && early.contains("repl:2"), "{early}");
    let late = terminal.enter("let y = x[tensor([11])];");
    assert!(late.contains("E0401") && late.contains("repl:3"), "{late}");
    // Poison tells its origin again, three entries later.
    terminal.enter("1");
    let again = terminal.enter("y + 1");
    assert!(again.contains("E0401") && again.contains("repl:3"), "{again}");
    assert_eq!(terminal.enter("x.sum().item()"), "45");
    let wrong = terminal.enter("let = 3");
    assert!(wrong.contains("E0101"), "{wrong}");
}

#[test]
fn history_lasts_from_run_to_run_and_is_searched() {
    let folder = folder();
    let mut terminal = open(&folder);
    terminal.enter("1000 + 1");
    terminal.enter("[1,\r2].len()");
    terminal.keys("\x04");
    assert_eq!(terminal.end(), 0);
    let mut terminal = open(&folder);
    assert_eq!(terminal.enter("\x12000"), "1001");
    assert_eq!(terminal.enter("\x1b[A\x1b[A"), "2");
}

#[test]
fn commands_look_at_the_session() {
    let folder = folder();
    let mut terminal = open(&folder);
    terminal.enter("const LIMIT = 3; let big = zeros([256, 256]); let pair = #{a: big, b: ones([2])};");
    let variables = terminal.enter(":vars");
    assert!(variables.contains("LIMIT (const)") && variables.contains("[256, 256]"), "{variables}");
    assert!(variables.contains("262144") && variables.contains("2 tensors"), "{variables}");
    let memory = terminal.enter(":mem");
    assert!(memory.contains("256.50 KiB  in 2 blocks") && memory.contains("made at repl:1"), "{memory}");
    assert!(terminal.enter(":time big + 1").contains("the median of"));
    assert!(terminal.enter(":time big + nope").contains("E0102"));
    let plan = terminal.enter(":plan (big * 2 + 1).relu()");
    assert!(plan.starts_with("3 operations, 1 pass\n") && plan.contains("2 results never stored"), "{plan}");
    let profile = terminal.enter(":profile (big * 2 + 1).relu()");
    assert!(profile.contains("mul + add + relu") && profile.contains(" a run, over "), "{profile}");
    assert!(terminal.enter(":streams").starts_with("cpu stream 0"));
    assert!(terminal.enter(":devices").contains("cores"));
    assert!(terminal.enter(":help").contains(":time EXPR"));
    let page = terminal.enter(":help sum");
    assert!(page.contains("x.sum(dim") && page.contains("tensor(10.)"), "{page}");
    assert!(terminal.enter(":help sum 1").contains("tensor(10.)"));
    assert!(terminal.enter(":help sume").contains("did you mean `:help sum`?"));
    assert!(terminal.enter(":help vmap").starts_with("func::vmap(func, in_dims"));
    assert!(terminal.enter(":help memory_allocated").starts_with("cuda::memory_allocated("));
    assert!(terminal.enter(":help adamw").starts_with("optim::adamw("));
    assert!(terminal.enter(":help optim::SparseAdam").starts_with("optim::sparse_adam("));
    assert!(terminal.enter(":help torch.nn.LayerNorm").starts_with("nn::layer_norm("));
    assert!(terminal.enter(":help optim::LBFGSX").contains("nothing is known"));
    assert!(terminal.enter(":help nn").contains("linear"));
    assert!(terminal.enter(":help E0201").contains("E0201"));
    assert!(terminal.enter(":type").contains("`:type` expects something after it"));
    terminal.enter(":reset");
    assert_eq!(terminal.enter(":vars"), "no variables");
}

#[test]
fn entries_are_saved_as_a_script_and_loaded() {
    let folder = folder();
    let mut terminal = open(&folder);
    terminal.enter("let a = 1 // one");
    terminal.enter("fn twice(v) { v * 2 }");
    terminal.enter("let b = twice(a)");
    terminal.enter("nope");
    assert!(terminal.enter(":save kept.rhai").contains("3 entries"));
    terminal.enter(":reset");
    assert_eq!(terminal.enter(":load kept.rhai"), "");
    assert_eq!(terminal.enter("b + twice(2)"), "6");
    assert!(terminal.enter(":load nothing.rhai").contains("E0601"));
    // What was loaded is saved, and what failed is told of.
    let told = terminal.enter(":save again.rhai");
    assert!(told.contains("2 entries") && told.contains("1 entry that ended in an error is left out"), "{told}");
    let text = std::fs::read_to_string(folder.path().join("again.rhai")).expect("text");
    assert!(text.contains("let b = twice(a)") && text.ends_with("b + twice(2);\n"), "{text}");
}

#[test]
fn the_prompt_names_device_and_stream() {
    let folder = folder();
    let mut terminal = Terminal::start(folder.path(), &[("TSCRIPT_SIMULATE_GPUS", "2")]);
    terminal.prompt();
    terminal.keys("set_default_device(\"cuda:1\")\r");
    terminal.wait("cuda:1> ");
    let made = terminal.enter("ones([2])");
    assert!(made.contains("    [2] f32 cuda:1"), "{made}");
    assert!(terminal.enter(":mem").contains("cuda:1, of"));
    terminal.enter("let s = stream(1); set_stream(s)");
    let streams = terminal.enter(":streams");
    assert!(terminal.raw().contains("cuda:1 s1> "), "{streams}");
    // A fault of a device is told when it is known, at the entry that queued it.
    let reported = terminal.enter("let x = arange(10)[tensor([11])]; x.sum().item()");
    assert!(reported.contains("E0401") && reported.contains("repl:4"), "{reported}");
    assert_eq!(terminal.enter("let t = ones([3]).sum(); t.item()"), "3.0");
}

#[test]
fn a_lost_device_leaves_the_session() {
    let folder = folder();
    let flags = ["--simulate-gpus", "2", "--simulate-fault", "lost:2@cuda:0"];
    let mut terminal = Terminal::with_arguments(folder.path(), &flags, &[]);
    terminal.prompt();
    terminal.enter("let kept = tensor([1.0, 2.0])");
    let reported = terminal.enter("let a = kept.cuda() + 1; let b = (a * 2).sum(); b.item()");
    assert!(reported.contains("cuda:0 was lost") && reported.contains("repl:2"), "{reported}");
    assert!(terminal.enter("kept + 1").contains("tensor([2., 3.])"));
    assert!(terminal.enter("kept.to(\"cuda:1\") + 1").contains("tensor([2., 3.], device=cuda:1)"));
}

#[test]
fn colors_are_for_terminals_that_want_them() {
    let folder = folder();
    let mut terminal = open(&folder);
    terminal.enter("let x = 1");
    assert!(terminal.raw().contains("\x1b[35mlet\x1b[0m"), "{}", terminal.raw());
    terminal.enter("plot([1, 2])");
    assert!(terminal.raw().contains("\x1b[38;5;"));
    let mut terminal = Terminal::start(folder.path(), &[("NO_COLOR", "1")]);
    terminal.prompt();
    terminal.enter("let x = nope");
    terminal.enter("show(rand([4, 4]))");
    let raw = terminal.raw();
    let styled = raw.split('\x1b').skip(1).filter(|piece| {
        piece
            .split_once(|c: char| c.is_ascii_alphabetic())
            .is_some_and(|(head, _)| piece[head.len()..].starts_with('m'))
    });
    assert_eq!(styled.count(), 0, "{raw:?}");
}

#[test]
fn a_terminal_with_pictures_gets_them() {
    let folder = folder();
    let mut terminal = Terminal::start(folder.path(), &[("TERM", "xterm-kitty")]);
    terminal.prompt();
    terminal.keys("show(rand([4, 4]))\r");
    terminal.wait("\x1b_Ga=T,f=100".trim_start_matches('\x1b'));
    let mut terminal = Terminal::start(folder.path(), &[("TSCRIPT_GRAPHICS", "sixel")]);
    terminal.prompt();
    terminal.keys("plot([1, 2])\r");
    terminal.wait("q\"1;1;800;500");
}

/// What the program prints, what it complains of, and its exit status.
fn piped(input: &str) -> (String, String, i32) {
    piped_with(&[], input)
}

fn piped_with(flags: &[&str], input: &str) -> (String, String, i32) {
    let folder = folder();
    let mut child = Command::new(super::scripts::program())
        .args(flags)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .env("TSCRIPT_HISTORY", folder.path().join("history"))
        .spawn()
        .expect("the program starts");
    child.stdin.take().expect("a pipe").write_all(input.as_bytes()).expect("it reads");
    let out = child.wait_with_output().expect("it ends");
    assert!(!folder.path().join("history").exists(), "a pipe is no history");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&out.stdout), text(&out.stderr), out.status.code().unwrap_or(-1))
}

#[test]
fn a_pipe_is_read_entry_by_entry() {
    let (out, complaints, status) = piped("fn f(x) {\n  x * 2\n}\nf(4)\n\n// nothing\n:type 1.5\n[1,\n 2]");
    assert_eq!((out.as_str(), complaints.as_str(), status), ("8\nf64\n[1, 2]\n", "", 0));
    let (out, complaints, status) = piped("nope\n1 + 1\n");
    assert_eq!((out.as_str(), status), ("2\n", 1));
    assert!(complaints.contains("E0102") && !complaints.contains('\x1b'), "{complaints}");
    let (out, complaints, status) = piped("let x = [1,");
    assert!(out.is_empty() && complaints.contains("E0101") && status == 1, "{complaints}");
    assert_eq!(piped("1\n:quit\n2\n").0, "1\n");
    assert_eq!(piped("").2, 0);
}

/// The first line of each entry is line 1, which says nothing of where a call is missing.
#[test]
fn a_race_between_entries_names_no_line() {
    let entries = "let s = stream()\nlet a = randn([100], #{device: \"cuda\"})\nlet b = with_stream(s) { a.sum() }\n";
    let (_, complaints, status) = piped_with(&["--simulate-gpus", "1"], entries);
    assert!(complaints.contains("E0501") && complaints.contains("repl:3:1:28"), "{complaints}");
    assert!(complaints.contains("help: before it, write `s.wait_stream(default_stream());`"), "{complaints}");
    assert_eq!(status, 0);
}

/// Also with what can no longer fail, as `query` knows.
#[test]
fn a_stream_that_is_at_work_says_so() {
    let entries =
        "let s = stream();\nwith_stream(s) { cuda::sleep(1500); }\n:streams\ns.query()\nsynchronize();\n:streams\n";
    let (out, complaints, _) = piped_with(&["--simulate-gpus", "1"], entries);
    let of_stream: Vec<&str> = out.lines().filter(|line| line.starts_with("cuda:0 stream 1")).collect();
    assert_eq!(complaints, "", "{out}");
    assert!(!of_stream[0].ends_with("nothing pending"), "{out}");
    assert!(of_stream[1].ends_with("nothing pending"), "{out}");
}

#[test]
fn sequences_are_left_out() {
    assert_eq!(plain("\x1b[1;34mcpu> \x1b[0m\x1b[?2004hx\r\n"), "cpu> x\n");
}

/// Without marks around what is pasted: all lines run, in their order.
#[test]
fn lines_that_arrive_in_one_piece_all_run() {
    let folder = folder();
    let mut terminal = open(&folder);
    terminal.keys("let a = 20\rfn inc(x) {\r  x + 1\r}\ra + inc(1) + 20000\r");
    terminal.wait("20022");
    terminal.keys("\x04");
    assert_eq!(terminal.end(), 0);
}

/// While an entry runs the terminal, not the line editor, receives keys; Ctrl-D is kept like the others.
#[test]
fn keys_typed_while_an_entry_runs_are_kept() {
    let folder = folder();
    let mut terminal = open(&folder);
    terminal.keys("print(\"begins\"); let n = 0; while n < 400000 { n += 1 }\r");
    terminal.wait("\nbegins");
    terminal.keys("n + 7\r");
    terminal.keys("\x04");
    terminal.wait("400007");
    assert_eq!(terminal.end(), 0);
}

#[test]
fn an_unfinished_entry_says_that_it_goes_on() {
    let folder = folder();
    let mut terminal = open(&folder);
    terminal.keys("[1,\r");
    terminal.wait("the entry goes on");
    assert_eq!(terminal.enter("2].len()"), "2");
}

/// What people type because others take it.
#[test]
fn habits_from_elsewhere_are_understood() {
    let folder = folder();
    let mut terminal = open(&folder);
    assert!(terminal.enter("help").contains("goes on in further lines"));
    assert!(terminal.enter("?softmax").contains("softmax(input, dim"));
    assert!(terminal.enter("softmax?").contains("softmax(input, dim"));
    assert!(terminal.enter("help(softmax)").contains("softmax(input, dim"));
    assert!(terminal.enter("help softmax").contains("softmax(input, dim"));
    assert!(terminal.enter("x.softmax?").contains("softmax(input, dim"));
    terminal.enter("let known = ones([2, 3])");
    assert!(terminal.enter("?known").contains("[2, 3]"), "what a variable is");
    assert!(terminal.enter("known??").contains("[2, 3]"));
    assert!(terminal.enter("%time 1 + 1").contains("the median of"));
    assert!(terminal.enter("!ls").contains("commands of the shell"));
    assert_eq!(terminal.enter(">>> 20 + 2"), "22");
    assert_eq!(terminal.enter("let help = 5"), "");
    assert_eq!(terminal.enter("help"), "5");
    assert_eq!(terminal.enter("// a note"), "");
    terminal.keys("quit()\r");
    assert_eq!(terminal.end(), 0);
}

#[test]
fn a_saved_session_tells_of_functions_that_were_defined_again() {
    let folder = folder();
    let mut terminal = open(&folder);
    for entry in ["fn f(a) { a + 1 }", "let a = f(2)", "fn f(a) { a + 100 }", "fn g() { 1 }", "fn g() { 2 }"] {
        assert_eq!(terminal.enter(entry), "");
    }
    let told = terminal.enter(":save s.rhai");
    assert!(told.contains("the last definition of `f` is written") && !told.contains("`g`"), "{told}");
}

#[test]
fn help_tells_of_modules_that_need_no_import() {
    let folder = folder();
    let mut terminal = open(&folder);
    let told = terminal.enter(":help fft");
    assert!(told.contains("`fft` needs no import") && told.contains("fft::rfft"), "{told}");
}
