//! What a host program sets or does: limits, flags, interruption, folders, several sessions.

use super::scripts::{builder, run};
use tscript::{Dynamic, Session, Tensor};

fn code(builder: tscript::Builder, text: &str) -> String {
    run(builder, "limits", text).result.err().map_or("no error".to_string(), |error| error.code())
}

#[test]
fn a_limit_of_operations_ends_a_loop() {
    assert_eq!(code(builder().operation_limit(10_000), "loop { }"), "E0801");
    assert_eq!(code(builder().operation_limit(10_000), "let n = 0; for i in 0..10 { n += i; }"), "no error");
}

/// A statement moves the variables that it names, not all that the session has: with all of them a debug build takes a minute.
#[test]
fn statements_among_many_variables_end_in_time() {
    let line = |n: usize| format!("let v{n} = {n};\nv{n} += v{};\n", n.saturating_sub(1));
    let text: String = (0..2000).map(line).collect();
    assert_eq!(code(builder().time_limit(std::time::Duration::from_secs(15)), &text), "no error");
}

/// Reading a text takes a time in proportion to its size. Each of these took a debug build minutes, or a good part of one.
#[test]
fn large_texts_are_read_in_time() {
    let lines = |n: usize, line: &dyn Fn(usize) -> String| (0..n).map(line).collect::<String>();
    let entries = lines(60_000, &|n| format!("k{n}: {n},\n"));
    let cases = lines(10_000, &|n| format!("\"k{n}\" => {n},\n"));
    let loops = lines(2_000, &|n| format!("let a{n} = [t]; for x in a{n} {{ a{n}[0] = x + 1; }} t = a{n}[0];\n"));
    let texts = [
        format!("let m = #{{{entries}}}; if m.len() != 60_000 || m.k59999 != 59_999 {{ throw m.len(); }}"),
        format!("fn f(x) {{ switch x {{ {cases} _ => 0 }} }} if f(\"k9\") != 9 {{ throw 0; }}"),
        format!("fn main() {{ let t = 0; {loops} t }} if main() != 2000 {{ throw 0; }}"),
        lines(6_000, &|n| format!("fn f{n}(x) {{ if x > {n} {{ x }} else {{ -x }} }} f{n}({n});\n")),
        lines(6_000, &|n| format!("let f{n} = |x| x + {n};\n")),
    ];
    for text in texts {
        let start = std::time::Instant::now();
        assert_eq!(code(builder(), &text), "no error", "{}", &text[..40]);
        let mut session = builder().build().expect("a session");
        let found = session.check_source(std::path::Path::new("large.rhai"), &text);
        assert!(found.iter().all(|error| error.code() != "E0101"), "{}", &text[..40]);
        let took = start.elapsed();
        assert!(took.as_secs() < 30, "{took:?}: {}", &text[..40]);
    }
}

/// A literal of very many entries is read in parts, and is the same as if it were not.
#[test]
fn long_map_literals_are_whole() {
    let entries = |n: usize| (0..n).map(|n| format!("k{n}: {n},\n")).collect::<String>();
    for n in [511, 512, 513, 768, 1000] {
        let of_strings = entries(n).replace('k', "\"k \\u0041").replace(':', "\":");
        let text = format!(
            "let m = #{{{}}}; let s = #{{{of_strings}}}; \
             if m.len() != {n} || s.len() != {n} {{ throw \"length\"; }} \
             for i in 0..{n} {{ if m[`k${{i}}`] != i || s[`k A${{i}}`] != i {{ throw i; }} }}",
            entries(n)
        );
        assert_eq!(code(builder(), &text), "no error", "{n}");
    }
    let inner =
        format!("let m = #{{ a: [#{{{}}}], b: |x| x + this.a[0].k3 }}; if m.b(1) != 4 {{ throw 0; }}", entries(600));
    assert_eq!(code(builder(), &inner), "no error");
    // Errors are told at their places.
    let error = |text: &str| run(builder(), "long", text).result.expect_err("an error");
    let twice = error(&format!("let m = #{{\n{}k3: 1 }};", entries(600)));
    assert!(twice.to_string().contains("k3"), "{twice}");
    assert_eq!(twice.location().map(|at| at.line), Some(602), "{twice}");
    let wrong =
        error(&format!("let m = #{{\n{}x: 1 + no_such_name,\n{} }};", entries(600), entries(600).replace('k', "l")));
    assert_eq!(wrong.location().map(|at| at.line), Some(602), "{wrong}");
}

/// The old value moves into the new one, whatever stands beside it.
#[test]
fn values_that_grow_around_themselves_are_not_copied() {
    // A value so deep takes much stack where it ends.
    let thread = std::thread::Builder::new().stack_size(1 << 30);
    thread.spawn(grow_around_themselves).expect("a thread starts").join().expect("no crash");
}

fn grow_around_themselves() {
    for value in ["#{n: a, v: [i]}", "[a, [i], i + 1]", "[a, one(i)]", "[[a], i]", "[i, #{n: a}]"] {
        let text = format!("fn one(i) {{ [i] }} let a = (); for i in 0..10000 {{ a = {value}; }}");
        let builder = builder().time_limit(std::time::Duration::from_secs(15));
        assert_eq!(code(builder, &text), "no error", "{value}");
    }
}

/// On this thread, of 2 MiB, and on one with little more than nothing.
#[test]
fn recursion_without_end_is_an_error_on_any_stack() {
    let text = "fn down(n) { down(n + 1) + 1 } down(0)";
    assert_eq!(code(builder(), text), "E0802");
    let closures = "let f = |n, g| g.call(n + 1, g); f.call(0, f)";
    assert_eq!(code(builder(), closures), "E0802");
    // No `try` catches it, whether the number of calls or the stack is used up first.
    for caught in [
        "fn down(n) { down(n + 1) } try { down(0) } catch {}",
        "fn down(n) { [n].map(|n| down(n + 1)) } try { down(0) } catch {}",
    ] {
        assert_eq!(code(builder().call_depth_limit(20), caught), "E0802", "{caught}");
        assert_eq!(code(builder(), caught), "E0802", "{caught}");
    }
    let evaluated = "let text = \"try { eval(text) } catch {}\"; eval(text);";
    assert_eq!(code(builder().call_depth_limit(20), evaluated), "E0802");
    assert_eq!(code(builder(), evaluated), "E0802");
    let thread = std::thread::Builder::new().stack_size(64 << 20);
    let deep = "fn down(n) { if n == 0 { 0 } else { down(n - 1) + 1 } } if down(300) != 300 { throw \"wrong\" }";
    let handle = thread.spawn(move || code(builder().stack_bytes(64 << 20), deep));
    assert_eq!(handle.expect("a thread starts").join().expect("no crash"), "no error");
}

#[test]
fn an_interrupted_script_says_where_it_was() {
    let (begun, waiting) = std::sync::mpsc::channel();
    let output = move |_: &str| begun.send(()).unwrap_or_default();
    let mut session = Session::builder().output(output).build().expect("a session starts");
    let handle = session.interrupt_handle();
    let stopper = std::thread::spawn(move || {
        // The script prints once before the loop; well after that it is inside.
        let _ = waiting.recv();
        std::thread::sleep(std::time::Duration::from_millis(100));
        handle.interrupt();
    });
    let text = "print(\"begun\");\nlet i = 0;\nloop {\n    i += 1;\n}";
    let error = session.run_str("endless", text).expect_err("it never ends by itself");
    assert_eq!(error.code(), "E0803");
    let line = error.location().expect("a place").line;
    assert!((3..=4).contains(&line), "line {line}");
    drop(stopper);
}

#[test]
fn memory_beyond_the_limit_can_be_caught() {
    let text = "try { let x = zeros([64, 1024, 1024]).sum().item(); print(\"fits\"); } catch (e) { print(e.code); }\nprint(ones([2]).sum().item());";
    let ran = run(builder().memory_limit(16 << 20), "limits", text);
    assert!(ran.result.is_ok(), "{:?}", ran.result.err());
    assert!(ran.printed.ends_with("2.0\n") || ran.printed.ends_with("2\n"), "{}", ran.printed);
    assert!(ran.printed.starts_with("E03") || ran.printed.starts_with("E08"), "{}", ran.printed);
}

#[test]
fn files_outside_the_permitted_folders_are_refused() {
    let inside = tempfile::tempdir().expect("a folder");
    let outside = tempfile::tempdir().expect("a folder");
    let path = |folder: &tempfile::TempDir, name: &str| folder.path().join(name).display().to_string();
    let permitted = || builder().file_roots(vec![inside.path().to_path_buf()]);
    let save = |path: String| format!("save({path:?}, ones([2]));");
    assert_eq!(code(permitted(), &save(path(&inside, "x.npy"))), "no error");
    assert_eq!(code(permitted(), &save(path(&outside, "x.npy"))), "E0604");
    let around = inside.path().join("..").join(outside.path().file_name().expect("a name")).join("x.npy");
    assert_eq!(code(permitted(), &save(around.display().to_string())), "E0604");
    assert!(!outside.path().join("x.npy").exists());
    assert_eq!(code(permitted(), &format!("load({:?})", path(&inside, "missing.npy"))), "E0601");
    #[cfg(unix)]
    {
        assert_eq!(code(builder(), &save(path(&outside, "y.npy"))), "no error");
        std::os::unix::fs::symlink(outside.path().join("y.npy"), inside.path().join("link.npy")).expect("a link");
        assert_eq!(code(permitted(), &format!("load({:?})", path(&inside, "link.npy"))), "E0604");
    }
}

#[test]
fn files_keep_names_dtypes_and_values() {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, extension) in [("a", "safetensors"), ("b", "npz")] {
        let path = folder.path().join(format!("{name}.{extension}")).display().to_string();
        let text = format!(
            "save({path:?}, #{{w: tensor([[1.5, -2.0]]), n: arange(3), t: tensor([[1, 2], [3, 4]]).t()}});
             let m = load({path:?});
             print(m.w); print(m.n); print(m.t); print(load({path:?}, #{{dtype: \"f64\"}}).w);"
        );
        let ran = run(builder(), "files", &text);
        assert!(ran.result.is_ok(), "{:?}", ran.result.err());
        let expected = "tensor([[ 1.5000, -2.0000]])\ntensor([0, 1, 2])\ntensor([[1, 3],\n        [2, 4]])\ntensor([[ 1.5000, -2.0000]], dtype=f64)\n";
        assert_eq!(ran.printed, expected);
    }
}

#[test]
fn a_tensor_of_another_session_is_refused() {
    let mut one = Session::builder().build().expect("a session starts");
    let mut two = Session::builder().build().expect("a session starts");
    one.run_str("one", "let x = ones([2]);").expect("it runs");
    let x: Tensor = one.get("x").expect("a tensor");
    assert_eq!(two.set("x", x.clone()).expect_err("foreign").code(), "E0805");
    let host = Tensor::from_slice(&x.to_vec::<f32>().expect("its elements"), &[2]).expect("a tensor");
    two.set("x", host).expect("a host tensor is nobody's");
    assert_eq!(two.eval::<Dynamic>("x.sum().item()").expect("a number").as_float(), Ok(2.0));
}

#[test]
fn a_function_of_a_script_takes_host_tensors() {
    let mut session = Session::builder().build().expect("a session starts");
    session.run_str("model", "fn twice(x) { x * 2 }").expect("it runs");
    let x = Tensor::from_slice(&[1i64, 2], &[2]).expect("a tensor");
    let y: Tensor = session.call("twice", (x,)).expect("a tensor");
    assert_eq!(y.to_vec::<i64>().expect("integers"), [2, 4]);
}

#[test]
fn progress_hands_on_what_it_goes_over() {
    let text = "let sum = 0; for i in progress(0..5, #{desc: \"epoch\"}) { if i == 3 { break; } sum += i; }
                for x in progress([10, 20]) { sum += x; } print(sum);";
    let ran = run(builder(), "progress", text);
    assert!(ran.result.is_ok(), "{:?}", ran.result.err());
    assert_eq!(ran.printed, "33\n");
    assert_eq!(code(builder(), "progress(3)"), "E0204");
    assert_eq!(code(builder(), "progress([1], #{dsc: \"x\"})"), "E0203");
}

/// The window's last node is made before anybody holds its result.
#[test]
fn results_do_not_depend_on_where_a_window_ends() {
    let text = "let x = ones([3]); for i in 0..40 { x = x + 1; } print(x); let y = (x * 2).relu(); print(y.sum());";
    let expected = "tensor([41., 41., 41.])\ntensor(246.)\n";
    for nodes in [1, 2, 3, 7, 40, 41, 512] {
        assert_eq!(run(builder().window(nodes), "windows", text).printed, expected, "windows of {nodes}");
    }
    assert_eq!(run(builder().blocking(true), "windows", text).printed, expected);
}

#[test]
fn what_no_machine_holds_is_an_error() {
    assert_eq!(code(builder(), "zeros([1000000000000])"), "E0304");
    assert_eq!(code(builder(), "try { zeros([1000000000000]) } catch (e) { }"), "no error");
}

#[test]
fn a_source_beyond_the_limit_is_refused() {
    assert_eq!(code(builder(), &" ".repeat((16 << 20) + 1)), "E0105");
}

/// A window may hold minutes of work that was queued in a moment.
#[test]
fn what_is_queued_when_the_time_is_over_is_left_out() {
    let limit = std::time::Duration::from_millis(200);
    let mut session = Session::builder().time_limit(limit).build().expect("a session");
    let error = session.run_str("late", "let y = ones([2]) + 1; loop { }").expect_err("it never ends");
    assert_eq!(error.code(), "E0808");
    let late: Tensor = session.get("y").expect("it is there");
    assert_eq!(late.to_vec::<f32>().expect_err("left out").code().as_str(), "E0808");
    // Nobody is told again at the end of another run.
    assert_eq!(session.eval::<i64>("1 + 1").expect("a new piece of work"), 2);
}

/// States, numbers and texts beside each other, as PyTorch's users keep them.
#[test]
fn a_checkpoint_comes_back_as_it_went() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut session = Session::builder().file_roots([folder.path()]).build().expect("a session");
    let path = folder.path().join("run.safetensors").display().to_string();
    session.set("path", path.clone()).expect("a string passes");
    session.run_str("checkpoint.rhai", include_str!("checkpoint.rhai")).unwrap_or_else(|e| panic!("{e}"));
    // Other readers see tensors with the names joined.
    let bytes = std::fs::read(path).expect("it is there");
    let others = safetensors::SafeTensors::deserialize(&bytes).expect("a well-formed file");
    assert_eq!(others.tensor("model.0.weight").expect("a tensor").shape(), [3, 2]);
}

/// What says which names are maps is the file's word.
#[test]
fn maps_without_end_in_a_file_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let deep: Vec<String> = (1..40).map(|n| vec!["a"; n].join(".")).collect();
    let header = format!(r#"{{"__metadata__":{{"tscript.maps":"{}"}}}}"#, deep.join("\\n"));
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header.as_bytes());
    let path = folder.path().join("deep.safetensors");
    std::fs::write(&path, bytes).expect("it can be written");
    let mut session = Session::builder().file_roots([folder.path()]).build().expect("a session");
    let error = session.eval::<Dynamic>(&format!("load({:?})", path.display().to_string())).expect_err("refused");
    assert_eq!(error.code().as_str(), "E0602");
}

/// Each of these would take minutes or years. Generously: a machine that is busy is slow.
#[test]
fn a_single_operation_is_cut_at_the_limit_of_time() {
    for text in [
        "print(conv1d(ones([16, 64, 4000]), ones([64, 64, 301])).sum().item())",
        "let a = rand([20000]); loop { a.sort(); }",
        "let a = rand([100000]); loop { print(a.sort().values[0].item()); }",
        "let a = rand([4000, 4000]); print((a @ a @ a).sum().item())",
        "print(ones([1]).expand([1000000, 1000000]).max(1).values.sum().item())",
        "print(ones([1]).expand([1000000000000]).argmax().item())",
        "print(ones([1]).expand([1000000000000]).prod().item())",
        "print(svd(rand([1500, 1500])).S.sum().item())",
        "loop { print(svd(rand([400, 400])).S.sum().item()); }",
        "let a = (0..1000000).map(|x| (x * 7919) % 1000003); loop { a.sort(); }",
        "let a = (0..1000000).map(|x| x * 7919 % 1000003); a.sort(|x, y| x > y);",
        "let a = (0..300000).to_array(); loop { to_json(a); a.to_string(); a.join(\",\"); }",
        "let x = arange(300000); loop { x.to_array(); }",
        "set_printoptions(#{threshold: 1000000000}); print(ones([30000000]))",
        "ones([10]).tensor_split((0..1000000).to_array())",
        "ones([1]).expand([1000000]).unbind()",
    ] {
        let begun = std::time::Instant::now();
        let found = code(builder().time_limit(std::time::Duration::from_millis(300)), text);
        assert_eq!(found, "E0808", "{text}");
        assert!(begun.elapsed() < std::time::Duration::from_secs(6), "{:?} for {text}", begun.elapsed());
    }
}

/// In a session that goes on: what is cut is no number, and what was there stays.
#[test]
fn an_interruption_cuts_what_is_queued() {
    let mut session = Session::builder().build().expect("a session starts");
    let handle = session.interrupt_handle();
    let stopper = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(300));
        handle.interrupt();
    });
    let begun = std::time::Instant::now();
    let text = "let a = rand([300, 300]); let b = a; while true { b = (b @ a) * 0.01; }";
    assert_eq!(session.run_str("products", text).expect_err("it never ends").code(), "E0803");
    stopper.join().expect("no panic");
    assert!(begun.elapsed() < std::time::Duration::from_secs(4), "{:?}", begun.elapsed());
    assert_eq!(session.eval::<i64>("1 + 1").expect("the session goes on"), 2);
    assert_eq!(session.eval::<i64>("a.numel()").expect("it is there"), 90_000);
    let cut = session.eval::<f64>("b.sum().item()").map_err(|error| error.code());
    assert!(cut.is_ok() || cut == Err("E0803".into()), "{cut:?}");
}

/// Libraries' kernels cannot be cut: they are left alone.
#[test]
fn an_interruption_does_not_wait_for_a_decomposition() {
    let mut session = Session::builder().simulate_gpus(1).build().expect("a session starts");
    for text in
        ["svd(rand([2500, 2500]))", "lu(rand([2500, 2500], #{device: \"cuda\"}))", "eigh(rand([2, 1500, 1500]))"]
    {
        let handle = session.interrupt_handle();
        let stopper = std::thread::spawn(move || {
            std::thread::sleep(std::time::Duration::from_millis(300));
            handle.interrupt();
        });
        let begun = std::time::Instant::now();
        let text = format!("let result = {text}; for all in result.values() {{ print(all.sum().item()); }}");
        let error = session.run_str("decomposes", &text).expect_err("it takes many seconds");
        assert_eq!(error.code(), "E0803", "{text}: {error}");
        assert_eq!(session.eval::<i64>("1 + 1").expect("the session goes on"), 2);
        assert!(begun.elapsed() < std::time::Duration::from_secs(3), "{:?} for {text}", begun.elapsed());
        stopper.join().expect("no panic");
    }
}

/// What a decomposition needs follows from rows and columns, not from the larger of them.
#[test]
fn tall_matrices_need_little() {
    for text in [
        "print(qr(rand([100000, 3])).R.shape)",
        "print(lstsq(rand([100000, 3]), rand([100000, 1])).solution.shape)",
        "print(svdvals(rand([3, 100000])).shape)",
        "print(pinv(rand([100000, 3])).shape)",
    ] {
        let limits = || builder().memory_limit(64 << 20).time_limit(std::time::Duration::from_secs(30));
        assert_eq!(code(limits(), text), "no error", "{text}");
    }
}

#[test]
fn counts_of_characters_are_checked_before_there_are_any() {
    for text in [
        "\"\\t\".expandtabs(100000000000)",
        "\"a\".center(100000000000)",
        "\"a\".ljust(9223372036854775807)",
        "\"-5\".zfill(100000000000)",
    ] {
        assert_eq!(code(Session::builder(), text), "E0807", "{text}");
        assert_eq!(code(Session::builder().string_limit(0).heap_limit(64 << 20), text), "E0804", "{text}");
    }
    assert_eq!(code(Session::builder(), "if [] * 9223372036854775807 != [] { throw 1 }"), "no error");
}

/// Strings in arrays are shared, so that the text of an array can be larger than all there is.
#[test]
fn texts_are_no_longer_than_they_may_be() {
    for text in [
        "print(a)",
        "print(a, a)",
        "a.to_string()",
        "to_json(a)",
        "a.join(\",\")",
        "\"a\" + a",
        "`${a}`",
        "\"{}\".format(a)",
    ] {
        let text = format!("let s = \"x\" * 1000000; let a = [s] * 1000000; {text};");
        assert_eq!(code(Session::builder(), &text), "E0807", "{text}");
    }
    for text in ["int(\"9\" * 10000000)", "assert(false, \"x\" * 1000000 + zeros([2, 3]).reshape([7]))"] {
        let reported = Session::builder().build().expect("a session").run_str("long", text).expect_err("wrong");
        assert!(reported.message().len() < 5000, "{}", reported.message().len());
    }
}

#[test]
fn nothing_waits_for_queued_work_of_a_script_that_had_to_end() {
    let begun = std::time::Instant::now();
    let limit = std::time::Duration::from_millis(300);
    let mut session = Session::builder().simulate_gpus(1).time_limit(limit).build().expect("a session starts");
    let text = "let x = ones([2], #{device: \"cuda\"}); cuda::sleep(60000); x += 1; x.sum().item()";
    assert_eq!(session.run_str("sleeps", text).expect_err("a minute").code(), "E0808");
    assert_eq!(session.eval::<i64>("1 + 1").expect("the session goes on"), 2);
    assert_eq!(session.eval::<f64>("x.sum().item()").expect_err("left out").code(), "E0808");
    session.run_str("again", "cuda::sleep(60000)").expect_err("a minute");
    drop(session);
    assert!(begun.elapsed() < std::time::Duration::from_secs(5), "{:?}", begun.elapsed());
}

/// Under `ulimit -v`: an error, not an abort.
#[test]
#[cfg(target_os = "linux")]
fn the_systems_memory_limits_are_respected() {
    for text in [
        "let t = \"x\"; loop { t += t; }",
        "parse_json(\"[\" + \"1,\" * 20000000 + \"1]\")",
        "let a = []; loop { a.push(\"some text of its own\" + a.len()); }",
        "let a = []; loop { a.push(zeros([1000000]) + 1.0); a[a.len() - 1].sum().item(); }",
        // So that little else is left when the next value wants a few bytes.
        "let a = []; loop { a.push(ones([5000]) + 1.0); }",
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("x.rhai");
        std::fs::write(&path, text).expect("written");
        let line = format!("ulimit -v 1500000; exec {} run {}", super::scripts::program().display(), path.display());
        let out = std::process::Command::new("sh").args(["-c", &line]).output().expect("a shell");
        let reported = String::from_utf8_lossy(&out.stderr).into_owned();
        assert_eq!(out.status.code(), Some(1), "{reported}");
        assert!(["E0804", "E0304"].iter().any(|code| reported.contains(code)), "{text}: {reported}");
    }
}

/// Lines are counted in 16 bits: a session that reads text after text gives those back that left nothing.
#[test]
fn a_session_outlives_its_lines() {
    let mut session = tscript::Session::builder().build().expect("a session");
    let blank = "\n".repeat(2000);
    session.run_str("kept", "fn twice(x) { x * 2 } let total = 0;").expect("it runs");
    for at in 0..80 {
        // One that asks for its place, and one that does not.
        session.run_str("text", &format!("{blank}total += twice({at}); tensor({at}).item();")).expect("it runs");
        session.run_str("text", &format!("{blank}eval(`${{total}} + 1`);")).expect("it runs");
    }
    assert_eq!(session.get::<i64>("total").expect("a number"), 6320);
    let error = session.run_str("last", "let x = 1;\nx.nothing();").expect_err("no method");
    assert_eq!(error.location().expect("a place").line, 2);
    let many: i64 = session.eval("let n = 0; for i in 0..300 { n += eval(`${i} + 1`); } n").expect("it runs");
    assert_eq!(many, 45150);
}

/// Values inside each other are dropped one inside the other.
#[test]
fn long_chains_of_maps_end() {
    let text =
        "let a = (); for i in 0..500000 { a = #{next: a, v: i}; } print(a.v); let b = a; b.v = 1; a = 2; print(b.v);";
    let (out, error, status) = super::command_line::tscript(&["-e", text], "");
    assert_eq!((out.as_str(), error.as_str(), status), ("499999\n1\n", "", 0));
}
