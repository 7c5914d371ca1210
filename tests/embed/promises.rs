//! What `builder.rs` promises of limits, each promise tried in the worst way: under limits of the system, by what the
//! process takes, by the clock, with threads counted.

#[cfg(target_os = "linux")]
use super::alone::alone;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tscript::{Builder, Session, Tensor};

/// A line of this process's status: `VmHWM` (the most memory it had) in MiB, `Threads`.
#[cfg(target_os = "linux")]
fn status(line: &str) -> usize {
    let text = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let found = text.lines().find_map(|l| l.strip_prefix(line)?.strip_prefix(':'));
    let number: usize = found.and_then(|l| l.split_whitespace().next()?.parse().ok()).expect("a number");
    if line.starts_with("Vm") { number >> 10 } else { number }
}

fn quiet() -> Builder {
    Session::builder().output(|_| {})
}

/// The code of what a script ends with, or nothing.
fn code(builder: Builder, text: &str) -> String {
    let mut session = builder.build().expect("a session starts");
    let code = session.run_str("promise", text).err().map_or(String::new(), |error| error.code());
    if code != "E0804" {
        assert_eq!(session.eval::<i64>("1 + 1").map_err(|error| error.code()), Ok(2), "after {text}");
    }
    code
}

/// With a megabyte for strings and room for arrays, so that the heap's limit is the one that is met.
#[test]
#[cfg(target_os = "linux")]
fn heap_limit_is_all_that_values_take() {
    alone("promises::heap_limit_is_all_that_values_take", Some(2000), || {
        let before = status("VmHWM");
        for text in [
            "let s = \"x\"; loop { s += s; }",
            "let a = [1]; loop { a += a; }",
            "let a = []; loop { a.push(\"some text\" + a.len()); }",
            "let m = #{}; loop { m[\"key\" + m.len()] = [1, 2, 3]; }",
            "let b = blob(1000, 1); loop { b += b; }",
            "let kept = []; loop { kept.push(cell(\"x\" * 100000 + kept.len())); }",
            "let all = []; loop { let s = \"x\" * 100000 + all.len(); all.push(|| s); }",
            "fn f(n) { let s = \"x\" * 1000000 + n; f(n + 1) } f(0)",
            "let all = []; for i in 0..1000000 { all.push(ones([1])); }",
            "let s = \"x\" * 1000000; let a = [s] * 1000; let b = []; loop { b.push(a.to_string()); }",
            "let s = \"a,\" * 1000000; let kept = []; loop { kept.push(s.split(\",\")); }",
            "let s = to_json((0..300000).to_array()); let kept = []; loop { kept.push(parse_json(s)); }",
            "zeros([20000000], #{dtype: \"u8\"}).to_array()",
            "zeros([20000000], #{dtype: \"u8\"}).nonzero().tolist(); ones([20000000]).tolist()",
            "ones([1]).expand([10000000]).unbind()",
            "ones([1]).expand([10000000]).split(1)",
            "ones([10]).tensor_split(10000000)",
            "ones([0]).chunk(10000000)",
            "combinations(arange(300), 3)",
            "let x = ones([1], #{requires_grad: true}); loop { x = x * 2; }",
            "set_printoptions(#{threshold: 1000000000}); print(ones([30000000]))",
        ] {
            let limits = quiet().heap_limit(32 << 20).memory_limit(256 << 20).time_limit(Duration::from_secs(20));
            assert_eq!(code(limits.string_limit(0).array_limit(0).map_limit(0), text), "E0804", "{text}");
        }
        // Tensors may have 256, and a value is there twice while it grows.
        let grown = status("VmHWM") - before;
        assert!(grown < 256 + 2 * 32 + 60, "{grown} MiB");
    });
}

/// Tensors, what kernels need beside them, lists of positions.
#[test]
#[cfg(target_os = "linux")]
fn memory_limit_is_all_that_tensors_take() {
    alone("promises::memory_limit_is_all_that_tensors_take", Some(2000), || {
        let before = status("VmHWM");
        for text in [
            "let x = ones([1000]); loop { x = cat([x, x]) + 1; x[0].item(); }",
            "let kept = []; loop { kept.push(ones([100000]) + 1); kept[kept.len() - 1].sum().item(); }",
            "let x = ones([1000, 1000], #{requires_grad: true}); loop { x = (x @ x).relu(); x[0].sum().item(); }",
            "ctc_loss(zeros([1]).expand([20000, 1, 2000]), ones([1, 10000], #{dtype: \"i64\"}), tensor([20000]), tensor([10000])).item()",
            "ones([1]).expand([100000000]).nonzero()",
            "ones([1]).expand([100000000]).sort().values[0].item()",
            "ones([1]).expand([100000000]).cumsum(0)[0].item()",
            "ones([1]).expand([100000000]).median().item()",
            "unique(ones([1]).expand([100000000]))",
            "topk(ones([1]).expand([100000000]), 50000000).values[0].item()",
            "histc(ones([3]), #{bins: 100000000})",
            "one_hot(tensor([100000000]))",
            "unfold(ones([1, 64, 300, 300]), [31, 31])[0, 0, 0].item()",
            "svd(ones([4000, 4000])).S[0].item()",
            "svd(ones([1000000, 2])).U[0, 0].item()",
            "inv(rand([4000, 4000]))[0, 0].item()",
            "randperm(10000000)[0].item()",
            "cdist(ones([20000, 3]), ones([20000, 3]))[0, 0].item()",
            "interpolate(ones([1, 1, 10, 10]), #{size: [10000, 10000], mode: \"bilinear\"})[0, 0, 0, 0].item()",
            "adaptive_avg_pool1d(ones([1, 3]), 100000000)[0, 0].item()",
            "ones([100000]).vander(10000)[0, 0].item()",
            "(ones([1]).expand([10000, 10000]).half() @ ones([1]).expand([10000, 10000]).half())[0, 0].item()",
            "ones([1]).expand([1000000000, 1]).index_select(1, tensor([0])).sum().item()",
        ] {
            let limits = quiet().heap_limit(64 << 20).memory_limit(128 << 20).time_limit(Duration::from_secs(20));
            let ended = code(limits, text);
            assert!(["E0804", "E0808"].contains(&ended.as_str()), "{ended} for {text}");
        }
        // Which fits where the machine's vectors are wide enough to need no columns, and is refused or too slow elsewhere.
        let limits = quiet().memory_limit(128 << 20).time_limit(Duration::from_secs(20));
        let ended = code(limits, "conv2d(ones([1, 64, 400, 400]), ones([64, 64, 7, 7]))[0, 0, 0, 0].item()");
        assert!(["", "E0804", "E0808"].contains(&ended.as_str()), "{ended} for a convolution");
        let grown = status("VmHWM") - before;
        assert!(grown < 128 + 64 + 100, "{grown} MiB");
    });
}

/// A script that ends with an error still has what it has: nobody makes a copy of that to look at it.
#[test]
#[cfg(target_os = "linux")]
fn what_a_script_holds_is_not_copied_when_it_ends() {
    alone("promises::what_a_script_holds_is_not_copied_when_it_ends", None, || {
        let mut session = quiet().build().expect("a session");
        session.run_str("holds", "let a = (0..1000000).map(|i| [i]);").expect("some 70 MiB");
        let before = status("VmHWM");
        for text in ["throw 1", "no_such_name", "1 / ", "let x = 1; x.no_such_method()", "ones([2]) + ones([3])"] {
            session.run_str("ends", text).expect_err("an error");
        }
        let grown = status("VmHWM") - before;
        assert!(grown < 40, "{grown} MiB");
    });
}

/// On simulated devices, whose memory is the host's; what one session has is no other's.
#[test]
fn device_memory_limit_is_each_gpus() {
    let limits = || quiet().simulate_gpus(2).device_memory_limit(64 << 20);
    let grows = |device: &str| {
        format!("let kept = []; loop {{ kept.push(ones([1000000], #{{device: \"{device}\"}})); synchronize(); }}")
    };
    assert_eq!(code(limits(), &grows("cuda:1")), "E0804");
    let text = format!(
        "try {{ {} }} catch (e) {{ if e.code != \"E0804\" {{ throw e; }} }}
         ones([10000000], #{{device: \"cuda:0\"}}).sum().item()",
        grows("cuda:1")
    );
    assert_eq!(code(limits(), &text), "", "the other has its own");
}

/// Each single operation of a kind, and natives in loops; generously, since a busy machine is slow.
#[test]
fn time_limit_ends_whatever_runs() {
    let texts = [
        "loop { }",
        "let f = |x| x + 1; let y = 0; loop { y = f.call(y); }",
        "(0..16000000).map(|x| x).sort(|a, b| a < b)",
        "fn f(n) { if n > 0 { f(n - 1) + f(n - 1) } else { 0 } } f(60)",
        "let a = (0..200000).to_array(); loop { a.reversed(); a.contains(-1); a == a; a.sorted(); zip(a, a); }",
        "let s = \"ab\" * 500000; loop { s.replace(\"a\", \"b\"); s.split(\"b\"); s.to_upper(); s.find(\"zz\"); }",
        "let s = to_json((0..100000).to_array()); loop { parse_json(s); }",
        "loop { try { loop { } } catch (e) { } }",
        "let x = ones([1]); loop { x = x + 1; }",
        "let x = ones([1], #{requires_grad: true}); loop { (x * 2).sum().backward(); }",
        "ones([1]).expand([1000000000000]).prod().item()",
        "ones([1]).expand([100000000]).sort().values[0].item()",
        "(ones([1]).expand([1000000, 1000000]) @ ones([1]).expand([1000000])).sum().item()",
        "ones([1]).expand([1000000000000]).argmax().item()",
        "ones([3]).index_add_(0, zeros([1], #{dtype: \"i64\"}).expand([10000000000]), ones([1]).expand([10000000000])).sum().item()",
        "scatter(ones([3]), 0, zeros([1], #{dtype: \"i64\"}).expand([1000000000]), ones([1]).expand([1000000000])).sum().item()",
        "searchsorted(arange(1000), ones([1], #{dtype: \"i64\"}).expand([1000000000])).sum().item()",
        "max_pool2d(ones([1, 1, 1000, 1000]), 500, #{stride: 1}).sum().item()",
        "avg_pool2d(ones([1, 1, 1000, 1000]), 500, #{stride: 1}).sum().item()",
        "conv3d(ones([1, 16, 60, 60, 60]), ones([16, 16, 9, 9, 9])).sum().item()",
        "scaled_dot_product_attention(ones([1]).expand([1, 1, 100000, 64]), ones([1]).expand([1, 1, 100000, 64]), ones([1]).expand([1, 1, 100000, 64])).sum().item()",
        "svd(rand([1200, 1200])).S.sum().item()",
        "matrix_power(rand([700, 700]), 1000000).sum().item()",
        "kthvalue(rand([80000000]), 100).values.item()",
        "rand([1500000, 4]).unique(#{dim: 0}).sum().item()",
        "randperm(50000000).sum().item()",
        "cuda::sleep(60000); ones([2], #{device: \"cuda\"}).sum().item()",
        "print(ones([1]).expand([1000000000000]).prod().cuda().item())",
        "let s = stream(\"cuda\"); with_stream(s, || cuda::sleep(60000)); s.synchronize()",
    ];
    for text in texts {
        let begun = Instant::now();
        let ended = code(quiet().simulate_gpus(1).time_limit(Duration::from_millis(300)), text);
        assert_eq!(ended, "E0808", "{text}");
        assert!(begun.elapsed() < Duration::from_secs(5), "{:?} for {text}", begun.elapsed());
    }
}

/// On a thread with room for 200 calls of the unoptimized interpreter, each of which takes 8 KiB.
#[test]
fn untrusted_sets_what_it_says() {
    let thread = std::thread::Builder::new().stack_size(16 << 20).spawn(untrusted_limits).expect("a thread");
    thread.join().expect("the limits are as promised");
}

fn untrusted_limits() {
    let quiet = || quiet().stack_bytes(8 << 20);
    let code = |text: &str| code(quiet().untrusted(), text);
    let both = |inside: &str, beyond: &str, expected: &str| {
        assert_eq!(code(inside), "", "{inside}");
        assert_eq!(code(beyond), expected, "{beyond}");
    };
    let down = |levels: usize| format!("fn down(n) {{ if n == 0 {{ 0 }} else {{ down(n - 1) }} }} down({levels})");
    both(&down(190), &down(200), "E0802");
    both("let s = \"x\" * 16777216; s.len()", "let s = \"x\" * 16777217; s.len()", "E0807");
    both("let a = [0] * 1000000; a.len()", "let a = [0] * 1000001; a.len()", "E0807");
    let map = |n: usize| {
        let entries: Vec<String> = (0..n).map(|i| format!("\"k{i}\": {i}")).collect();
        let lines: Vec<String> = entries.chunks(50).map(|entries| entries.join(",")).collect();
        format!("let m = parse_json(`{{{}}}`); m.len()", lines.join(",\n"))
    };
    both(&map(100_000), &map(100_001), "E0807");
    let variables = |n: usize| (0..n).map(|i| format!("let v{i} = {i};\n")).collect::<String>();
    both(&variables(9_900), &variables(10_001), "E0807");
    let nested = |n: usize| format!("let a = []; for i in 0..{n} {{ a = [a]; }} for i in 0..1000 {{ a.len(); }}");
    both(&nested(60), &nested(70), "E0807");
    both("let x = ones([128, 1024, 1024]); x.sum().item()", "let x = ones([300, 1024, 1024]); x.sum().item()", "E0804");
    assert_eq!(code("let all = []; for i in 0..1000 { all.push(cell(\"x\" * 100000 + i)); }"), "E0804");
    let modules = |n: usize| {
        let builder = (0..n).fold(quiet().untrusted(), |builder, i| builder.module(&format!("m{i}"), "fn f() { 1 }"));
        let text: String = (0..n).map(|i| format!("import \"m{i}\" as m{i};")).collect();
        self::code(builder, &text)
    };
    assert_eq!((modules(64).as_str(), modules(65).as_str()), ("", "E0807"));
    let begun = Instant::now();
    let endless = code("loop { }");
    assert!(["E0801", "E0808"].contains(&endless.as_str()), "{endless}");
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    for path in ["\"/etc/passwd\"", "\"x.csv\""] {
        assert_eq!(code(&format!("load({path})")), "E0604");
    }
    // What is set afterwards goes before.
    let other = || quiet().untrusted().call_depth_limit(100).array_limit(2_000_000);
    assert_eq!(self::code(other(), &format!("{}; let a = [0] * 1500000; a.len()", down(90))), "");
    assert_eq!(self::code(other(), &down(150)), "E0802");
}

#[test]
fn limits_hold_for_one_run_but_memory_for_the_session() {
    let limits = quiet().operation_limit(200_000).time_limit(Duration::from_secs(2)).heap_limit(16 << 20);
    let mut session = limits.memory_limit(64 << 20).build().expect("a session");
    session.run_str("functions", "fn spin(n) { for i in 0..n { } n }").expect("it runs");
    for _ in 0..5 {
        assert_eq!(session.call::<i64>("spin", (50_000,)).expect("each call has its own"), 50_000);
        assert_eq!(session.run_str("loop", "loop { }").expect_err("it never ends").code(), "E0801");
    }
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_millis(2500) {
        session.eval::<i64>("1 + 1").expect("time is that of one run");
        // Each text is kept for the places of errors, among the session's own values: not thousands of them.
        std::thread::sleep(Duration::from_millis(20));
    }
    session.run_str("keeps", "let kept = \"x\" * 9000000;").expect("half of what there is");
    assert_eq!(session.run_str("more", "let more = \"x\" * 9000000;").expect_err("too much").code(), "E0804");
    session.run_str("lets go", "kept = (); let more = \"x\" * 9000000;").expect("it was given back");
    session.run_str("tensor", "let x = ones([10000000]); x.sum().item();").expect("40 MB");
    assert_eq!(session.run_str("two", "let y = ones([10000000]); y.sum().item();").expect_err("80").code(), "E0804");
    session.run_str("one", "x = (); let y = ones([10000000]); y.sum().item();").expect("it was given back");
}

/// Values inside values count, also where few are large among many that are not.
#[test]
fn array_limit_counts_what_lies_inside() {
    for text in [
        "let a = [0] * 90000; let b = [0] * 90000; for i in 0..100 { a.push(b); }",
        "let a = [0] * 90000; let b = [0] * 90000; for i in 0..100 { a.append(b); }",
        "let a = [0] * 90000; let b = #{x: [0] * 90000}; for i in 0..100 { a.push(b); }",
        "let a = []; let b = [0] * 1000; for i in 0..1000 { a.push(b); }",
        "let a = []; for i in 0..1000 { a.push([0] * 1000); a[0].push(1); }",
        "let a = [[]]; for i in 0..200000 { a[0].push(1); }",
        "let a = []; for i in 0..200000 { a.push(i); }",
    ] {
        assert_eq!(code(quiet().array_limit(100_000), text), "E0807", "{text}");
    }
    // A list of many small ones grows in linear time.
    let begun = Instant::now();
    let text = "let a = []; for i in 0..200000 { a.push([i]); } a.len()";
    assert_eq!(code(quiet(), text), "");
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
}

/// Whatever is queued, and whoever holds results.
#[test]
#[cfg(target_os = "linux")]
fn drop_returns_within_a_second_and_frees_queues() {
    alone("promises::drop_returns_within_a_second_and_frees_queues", None, || {
        // What belongs to the process is started first.
        code(quiet().time_limit(Duration::from_secs(100)), "(rand([300, 300]) @ rand([300, 300])).sum().item()");
        let threads = status("Threads");
        for text in [
            "let y = ones([2], #{device: \"cuda\"}); cuda::sleep(3000); y += 1;",
            "let y = ones([2]); let x = rand([700, 700], #{device: \"cuda\"}); for i in 0..200 { x = x @ x; }",
            "let y = ones([1]).expand([1000000000000]).sum();",
            "let y = svd(rand([2000, 2000], #{device: \"cuda\"})).S;",
            "let all = []; for i in 0..200 { all.push(stream()); } let y = ones([2], #{device: \"cuda\"});",
        ] {
            for holds in [false, true] {
                let limit = Duration::from_millis(300);
                let mut session = quiet().simulate_gpus(1).time_limit(limit).build().expect("a session");
                session.run_str("queues", &format!("{text} loop {{ }}")).expect_err("it never ends");
                let held = holds.then(|| session.get::<Tensor>("y").expect("a tensor"));
                let begun = Instant::now();
                drop(session);
                assert!(begun.elapsed() < Duration::from_secs(1), "{:?} for {text}", begun.elapsed());
                drop(held);
                assert!(begun.elapsed() < Duration::from_secs(2), "{:?} for {text}", begun.elapsed());
            }
        }
        let begun = Instant::now();
        while status("Threads") > threads && begun.elapsed() < Duration::from_secs(60) {
            std::thread::sleep(Duration::from_millis(100));
        }
        assert!(status("Threads") <= threads + 3, "{} threads, {threads} before", status("Threads"));
    });
}

/// Modules that were imported go with the session, and so do variables that hold themselves.
#[test]
#[cfg(target_os = "linux")]
fn sessions_that_end_leave_no_memory_behind() {
    alone("promises::sessions_that_end_leave_no_memory_behind", None, || {
        for text in [
            "import \"nn\" as nn; import \"optim\" as optim; import \"data\" as data;
            let model = nn::sequential([nn::linear(8, 8), nn::relu(), nn::linear(8, 1)]);
            let opt = optim::adam(model.parameters());
            for batch in data::loader(data::tensors(randn([8, 8]), randn([8, 1])), #{batch_size: 4}) {
                opt.zero_grad(); mse_loss(model.forward(batch.x), batch.y).backward(); opt.step();
            }",
            "import \"mine\" as mine; mine::add(1)",
            "let a = #{x: rand([100000])}; a.f = || a.x;",
            "let c = cell(()); c.set(#{c: c, x: rand([100000])});",
            "let f = (); let x = rand([100000]); f = |n| if n < 1 { x } else { f };",
        ] {
            let session = || {
                let text = text.to_string();
                let module = "const K = 2; fn add(x) { x + global::K } let kept = rand([100000]); export kept;";
                let builder = quiet().module("mine", module).simulate_gpus(1);
                builder.build().expect("a session").run_str("ends", &text).expect("it runs");
            };
            (0..5).for_each(|_| session());
            let before = status("VmRSS");
            (0..40).for_each(|_| session());
            // A tensor of 400 KB, or the library in memory, forty times, is more.
            assert!(status("VmRSS") <= before + 8, "{} MiB more, for {text}", status("VmRSS") - before);
        }
    });
}

/// A panic that becomes an error says nothing on the error output, also with `RUST_BACKTRACE=1`.
#[test]
#[cfg(target_os = "linux")]
fn panics_of_the_host_are_errors_of_calls() {
    let reported = alone("promises::panics_of_the_host_are_errors_of_calls", None, || {
        let mut session = quiet()
            .function("explode", || -> i64 { panic!("on purpose") })
            .function("each", |x: i64| -> i64 {
                if x == 3 { panic!("at three") } else { x }
            })
            .build()
            .expect("a session");
        for (text, expected) in [
            ("explode()", "E0809"),
            ("[1, 2, 3].map(|x| each(x))", "E0809"),
            ("let a = [3, 1, 2]; a.sort(|x, y| each(x) - each(y)); a", "E0809"),
            ("no_grad(|| explode())", "E0809"),
            ("for x in [1, 2, 3].map(|x| x) { each(x); }", "E0809"),
        ] {
            assert_eq!(session.run_str("panics", text).expect_err("a panic").code(), expected, "{text}");
            let caught = format!("let code = \"\"; try {{ {text}; }} catch (e) {{ code = e.code; }} code");
            assert_eq!(session.eval::<String>(&caught).expect("caught"), expected, "{text}");
        }
        let mut session = Session::builder().output(|_| panic!("no output")).build().expect("a session");
        assert!(session.run_str("prints", "print(1)").is_err());
        assert_eq!(session.eval::<i64>("1 + 1").expect("it goes on"), 2);
    });
    assert!(!reported.contains("panicked") && !reported.contains("backtrace"), "{reported}");
}

/// Also where scripts may use no files; and nothing else is read through it.
#[test]
fn module_root_opens_modules_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let path: PathBuf = folder.path().into();
    std::fs::write(path.join("m.rhai"), "fn f() { 7 }").expect("written");
    std::fs::write(path.join("data.csv"), "1,2\n").expect("written");
    let mut session = quiet().module_root(&path).build().expect("a session");
    assert_eq!(session.eval::<i64>("import \"m\" as m; m::f()").expect("a module"), 7);
    for text in ["load(\"data.csv\")", "load(\"m.rhai\")", "save(\"new.npy\", ones([2]))", "import \"data.csv\" as d;"]
    {
        let text = text.replace("(\"", &format!("(\"{}/", path.display()));
        assert!(session.run_str("reads", &text).is_err(), "{text}");
    }
    assert!(!path.join("new.npy").exists());
}
