//! The program as others start it: exit statuses, scripts from the standard input, flags that do not fit together.

use std::io::Write;
use std::process::{Command, Stdio};

/// What the program prints, what it complains of, and its exit status.
pub fn tscript(words: &[&str], input: &str) -> (String, String, i32) {
    let mut command = Command::new(super::scripts::program());
    command.args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    for name in ["TSCRIPT_SIMULATE_GPUS", "CUDA_VISIBLE_DEVICES", "TSCRIPT_LAUNCH_BLOCKING", "CUDA_LAUNCH_BLOCKING"] {
        command.env_remove(name);
    }
    let mut child = command.spawn().expect("it starts");
    // It may end without reading.
    let _ = child.stdin.take().expect("piped").write_all(input.as_bytes());
    let out = child.wait_with_output().expect("it ends");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    (text(out.stdout), text(out.stderr), out.status.code().unwrap_or(-1))
}

/// Output and status of a script from the standard input.
fn run(script: &str) -> (String, i32) {
    let (out, _, status) = tscript(&["run", "-"], script);
    (out, status)
}

#[test]
fn a_script_chooses_its_exit_status() {
    let of = |script: &str| run(script).1;
    assert_eq!(of("exit(7);"), 7);
    assert_eq!(of("exit(0);"), 0);
    assert_eq!(of("exit(255);"), 255);
    assert_eq!(of("exit();"), 0);
    assert_eq!(of("7"), 0);
    assert_eq!(of("fn f() { exit(3); } [1].map(|x| f());"), 3);
    for wrong in ["exit(256);", "exit(-1);", "exit(\"no\");", "exit(1.0);"] {
        assert_eq!(of(wrong), 1, "{wrong}");
    }
    assert_eq!(run("print(1); exit(4); print(2);"), ("1\n".into(), 4));
    // It is no error that could be caught, also not out of a function that calls a closure.
    assert_eq!(run("try { [1].map(|x| exit(5)); } catch (e) { print(\"caught\"); }"), (String::new(), 5));
    // What was queued before is told all the same.
    assert_eq!(of("arange(3)[tensor([7])]; exit(0);"), 1);
}

/// `./train.rhai --lr 3` after a first line `#!/usr/bin/env tscript`, and texts of the command line.
#[test]
fn a_script_runs_by_itself() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("train.rhai");
    std::fs::write(&path, "#!/usr/bin/env tscript\nprint(arg(\"lr\", 1), args);\nnope").expect("it can be written");
    let path = path.to_str().expect("a name");
    let (out, complaint, status) = tscript(&[path, "--lr", "3", "more"], "");
    assert_eq!((&*out, status), ("3 [\"--lr\", \"3\", \"more\"]\n", 1), "{complaint}");
    assert!(complaint.contains("train.rhai:3:1"), "{complaint}");
    assert_eq!(
        tscript(&["--seed", "4", "-e", "print(1 + 1, args)", "a"], ""),
        ("2 [\"a\"]\n".into(), String::new(), 0)
    );
    let (_, complaint, status) = tscript(&["-e", "print(nope)"], "");
    assert!(complaint.contains("[ -e:1:7 ]") && status == 1, "{complaint}");
}

#[test]
fn an_exit_ends_the_repl_and_fails_a_test() {
    assert_eq!(tscript(&[], "1 + 1\nexit(3)\nprint(5)\n"), ("2\n".into(), String::new(), 3));
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a_test.rhai");
    std::fs::write(&path, "fn test_a() { exit(0); }").expect("it can be written");
    let (out, complaint, status) = tscript(&["test", path.to_str().expect("a name")], "");
    assert!(out.contains("0 passed, 1 failed") && complaint.contains("`exit(0)` ended it"), "{out}{complaint}");
    assert_eq!(status, 1);
    // Where nothing is tested nothing has passed.
    for text in ["fn other() {}", ""] {
        std::fs::write(&path, text).expect("it can be written");
        let (_, complaint, status) = tscript(&["test", path.to_str().expect("a name")], "");
        assert!(status == 1 && complaint.starts_with("error: there is no function named test_*"), "{complaint}");
    }
    std::fs::remove_file(&path).expect("it is there");
    let (_, complaint, status) = tscript(&["test", folder.path().to_str().expect("a name")], "");
    assert!(status == 1 && complaint.starts_with("error: there is no file named *_test.rhai"), "{complaint}");
}

#[test]
fn a_script_may_come_from_the_standard_input() {
    assert_eq!(run("print(1 + 1);"), ("2\n".into(), 0));
    let (_, complaint, status) = tscript(&["run", "-"], "print(1);\nx + 1;");
    assert!(complaint.contains("─[ stdin:2:1 ]"), "{complaint}");
    assert_eq!(status, 1);
    assert_eq!(tscript(&["-", "a", "b"], "print(args);").0, "[\"a\", \"b\"]\n");
    let (_, complaint, status) = tscript(&["check", "-"], "zeors([2]);");
    assert!(complaint.contains("did you mean `zeros`?"), "{complaint}");
    assert_eq!(status, 1);
}

/// A module of a folder above is found, and what modules ask for is listed.
#[test]
fn modules_of_other_folders_belong_to_a_script() {
    let folder = tempfile::tempdir().expect("a folder");
    let scripts = folder.path().join("scripts");
    std::fs::create_dir(&scripts).expect("a folder");
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).expect("written");
    write("lib.rhai", "import \"../inner\" as inner; fn one() { [arg(\"lr\", 0.5), inner::words()] }");
    write("inner.rhai", "fn words() { args }");
    write("scripts/a.rhai", "import \"../lib\" as lib; fn all() { args } print(lib::one(), all(), flag(\"x\"));");
    let file = scripts.join("a.rhai").display().to_string();
    let (out, complaint, status) = tscript(&["run", &file, "--", "--lr", "2"], "");
    assert_eq!((&*out, status), ("[2.0, [\"--lr\", \"2\"]] [\"--lr\", \"2\"] false\n", 0), "{complaint}");
    assert_eq!(tscript(&["check", &file], "").2, 0);
    let (out, complaint, _) = tscript(&["run", &file, "--", "--help"], "");
    let lines: Vec<&str> = out.lines().skip(1).collect();
    assert_eq!(lines, ["  --x", "  --lr VALUE   default 0.5"], "{complaint}");
}

#[test]
fn words_that_a_script_does_not_ask_for_are_wrong_usage() {
    let script = "print(arg(\"lr\", 0.1), flag(\"fast\"));";
    let with = |words: &[&str]| {
        let mut all = vec!["run", "-", "--"];
        all.extend(words);
        let (out, complaint, status) = tscript(&all, script);
        (format!("{out}{complaint}"), status)
    };
    assert_eq!(with(&["--lr", "2", "--fast"]), ("2.0 true\n".into(), 0));
    let (text, status) = with(&["--lrr", "2"]);
    assert_eq!(
        (text.as_str(), status),
        ("error: the script asks for no argument `--lrr`\n  help: did you mean `--lr`?\n", 2)
    );
    assert_eq!(with(&["--fast=1"]).1, 2);
    // Those that its modules ask for are its own, and others are wrong there, too.
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str| folder.path().join(name).display().to_string();
    std::fs::write(file("settings.rhai"), "fn rate() { arg(\"lr\", 0.1) }").expect("written");
    std::fs::write(file("s.rhai"), "import \"settings\" as s; print(s::rate(), flag(\"fast\"));").expect("written");
    assert_eq!(tscript(&["run", &file("s.rhai"), "--", "--lr", "3"], "").0, "3.0 false\n");
    let (_, complaint, status) = tscript(&["run", &file("s.rhai"), "--", "--lrr", "3"], "");
    assert!(status == 2 && complaint.contains("did you mean `--lr`?"), "{complaint}");
    assert_eq!(tscript(&["run", "-", "--", "--lr", "3"], "print(args);").0, "[\"--lr\", \"3\"]\n");
}

#[test]
fn flags_of_simulated_gpus_want_some() {
    let wrong = |flags: &[&str]| {
        let mut words = vec!["run", "-"];
        words.extend(flags);
        let (_, complaint, status) = tscript(&words, "print(1);");
        assert_eq!(status, 2, "{complaint}");
        complaint
    };
    assert!(wrong(&["--simulate-seed", "1"]).contains("`--simulate-seed` is for simulated GPUs"));
    assert!(wrong(&["--simulate-memory", "1GiB"]).contains("`--simulate-memory` is for"));
    assert!(wrong(&["--simulate-fault", "lost:1@cuda:0"]).contains("`--simulate-fault` is for"));
    let beyond = wrong(&["--simulate-gpus", "2", "--simulate-fault", "lost:1@cuda:2"]);
    assert!(beyond.contains("names cuda:2, and there are 2 simulated GPUs"), "{beyond}");
    let (out, _, status) = tscript(&["devices", "--simulate-gpus", "2", "--simulate-memory", "1GiB"], "");
    assert!(out.ends_with("simulated, in place of all GPUs\n  cuda:0   1.0 GiB\n  cuda:1   1.0 GiB\n"), "{out}");
    assert_eq!(status, 0);
    // Each flag has its line.
    let (help, ..) = tscript(&["help", "run"], "");
    for flag in ["device", "seed", "blocking", "check", "races", "profile"] {
        assert!(help.contains(&format!("--{flag}")), "{flag}");
    }
    for flag in ["gpus", "memory", "seed", "fault"] {
        assert!(help.contains(&format!("--simulate-{flag}")), "{flag}");
    }
}

/// `--device` says what `set_default_device` says: a CUDA device becomes the current one too.
#[test]
fn a_device_of_the_command_line_is_the_current_one() {
    let script = "print(current_device(), cuda::current_device(), zeros([1]).cuda().device);";
    let (out, ..) = tscript(&["run", "-", "--simulate-gpus", "2", "--device", "cuda:1"], script);
    assert_eq!(out, "cuda:1 1 cuda:1\n");
    let (out, ..) = tscript(&["run", "-", "--simulate-gpus", "2", "--device", "cpu"], script);
    assert_eq!(out, "cpu 0 cuda:0\n");
}

/// At run too, once for each loop, and only where the values are pairs.
#[test]
fn a_loop_that_counts_where_pairs_are_meant_is_reported() {
    let script = "let pairs = [[1, 2], [3, 4]];\nfor n in 0..2 { for (a, b) in pairs.filter(|p| true) { print(b); } }\n\
                  for (row, i) in pairs { }\nfor (a, b) in [1, 2] { }\nfor (k, v) in #{x: 1} { }\n\
                  import \"data\" as data;\nfor (x, y) in data::loader(zeros([4, 2]), 2) { }";
    let (out, complaint, status) = tscript(&["run", "-"], script);
    assert_eq!((out.as_str(), status), ("0\n1\n0\n1\n", 0));
    let places: Vec<&str> = complaint.lines().filter(|line| line.contains("─[ stdin:")).map(str::trim).collect();
    assert_eq!(places, ["╭─[ stdin:2:31 ]", "╭─[ stdin:5:15 ]", "╭─[ stdin:7:15 ]"], "{complaint}");
    assert!(complaint.contains("warning[E0112]: `b` counts"), "{complaint}");
    assert!(complaint.contains("write `for [a, b] in ..`"), "{complaint}");
}

/// Folders and several files; for people, and line by line for other programs.
#[test]
fn check_reports_folders_in_three_formats() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(folder.path().join("inner")).expect("a folder");
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).expect("it can be written");
    write("a.rhai", "let x = 1;\nprint(2);\n");
    write("inner/b.rhai", "print(\"é\", nope);\n");
    write("inner/c.txt", "nothing (");
    let path = folder.path().display().to_string();
    let (out, _, status) = tscript(&["check", "--message-format", "short", &path], "");
    let lines: Vec<String> = out.lines().map(|line| line.replace(&path, "F")).collect();
    assert_eq!(lines[0], "F/a.rhai:1:5: warning[E0115]: the variable `x` is never used");
    assert_eq!(lines[1], "F/inner/b.rhai:1:12: error[E0102]: there is no variable `nope`");
    assert_eq!((lines.len(), status), (2, 1));
    let (out, ..) = tscript(&["check", "--message-format=json", &format!("{path}/inner")], "");
    let found: serde_json::Value = serde_json::from_str(out.trim()).expect("one object a line");
    assert_eq!(found["code"], "E0102");
    assert_eq!(found["severity"], "error");
    let place = ["line", "column", "end_line", "end_column"].map(|key| found[key].as_u64().expect("a number"));
    assert_eq!(place, [1, 12, 1, 16]);
    assert_eq!(found["labels"][0]["text"], "not found");
    let only_odd = format!("{path}/a.rhai");
    assert_eq!(tscript(&["check", &only_odd], "").2, 0);
    assert_eq!(tscript(&["check", "--deny-warnings", &only_odd], "").2, 1);
    assert_eq!(tscript(&["check", "--message-format", "xml", &only_odd], "").2, 2);
}

/// Words part words, and brackets do that as well.
#[test]
fn brackets_of_patterns_need_no_blanks() {
    let text =
        "for [i, v]in [[1, 2]] { print(i, v); } for[i,v]in [[3, 4]] { print(i, v); } for #{x}in [#{x: 5}] { print(x); }
        let[a, b]=[6, 7]; const[c, d]= [8, 9]; print(a, b, c, d);";
    assert_eq!(tscript(&["-e", text], ""), ("1 2\n3 4\n5\n6 7 8 9\n".into(), String::new(), 0));
}

/// Nothing is written below a folder that everybody may write.
#[cfg(unix)]
#[test]
fn without_a_folder_of_the_user_there_is_none() {
    let mut command = Command::new(super::scripts::program());
    let done = command.args(["doctor", "--json"]).env_remove("HOME").env_remove("XDG_CACHE_HOME").output();
    let text = String::from_utf8(done.expect("it runs").stdout).expect("UTF-8");
    let shared = std::env::temp_dir().join("tscript");
    assert!(text.contains("\"library\"") && !text.contains(&shared.display().to_string()), "{text}");
}
