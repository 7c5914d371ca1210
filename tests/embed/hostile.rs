//! Scripts that mean harm, in sessions with limits: whatever they try, the host gets an error, keeps its memory and its
//! files, and goes on with the session.

use super::generator::{Choices, script};
use std::time::{Duration, Instant};
use tscript::{Builder, Session};

fn limited() -> Builder {
    Session::builder()
        .untrusted()
        .operation_limit(300_000)
        .time_limit(Duration::from_secs(20))
        .heap_limit(32 << 20)
        .memory_limit(128 << 20)
        .string_limit(1 << 20)
        .array_limit(100_000)
        .map_limit(10_000)
        .simulate_gpus(1)
        .simulate_memory(1 << 30)
        .device_memory_limit(128 << 20)
        .output(|_| {})
}

/// Bytes of memory that this process has now.
fn resident() -> usize {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    text.split(' ').nth(1).and_then(|pages| pages.parse::<usize>().ok()).unwrap_or(0) * 4096
}

/// What became of a text: the code of its error, or nothing.
fn survive(name: &str, text: &str) -> Option<String> {
    survive_in(limited(), name, text)
}

fn survive_in(builder: Builder, name: &str, text: &str) -> Option<String> {
    let begun = Instant::now();
    let mut session = builder.build().expect("a session starts");
    let failed = session.run_str(name, text).err();
    if let Some(error) = &failed {
        assert_ne!(error.code(), "E0806", "{name}: {error}\n{}", &text[..text.len().min(8000)]);
        // Whoever shows it must not stumble either.
        let _ =
            tscript::internals::tools::render::render_error(error, tscript::internals::tools::render::Coloring::Off);
    }
    let after = session.eval::<i64>("1 + 1");
    let full = failed.as_ref().is_some_and(|error| ["E0804", "E0105"].contains(&error.code().as_str()));
    // What is still held may be more than the limit.
    let full = full || after.as_ref().is_err_and(|error| error.code() == "E0804");
    assert!(full || after.as_ref().is_ok_and(|two| *two == 2), "{name}: the session is gone: {after:?}");
    drop(session);
    assert!(begun.elapsed() < Duration::from_secs(100), "{name} took {:?}", begun.elapsed());
    failed.map(|error| error.code())
}

#[track_caller]
fn ends(text: &str, codes: &[&str]) {
    let found = survive("hostile", text).unwrap_or_else(|| "no error".to_string());
    assert!(codes.contains(&found.as_str()), "{found} instead of {codes:?} for\n{}", &text[..text.len().min(300)]);
}

#[test]
fn recursion_ends() {
    ends("fn f(n) { f(n + 1) } f(0)", &["E0802"]);
    ends("let f = |n, g| g.call(n + 1, g); f.call(0, f)", &["E0802"]);
    ends("fn f(a) { a.map(|x| f([x])) } f([1])", &["E0802"]);
    ends("fn f(a) { a.sort(|x, y| f([2, 1])); 0 } f([2, 1])", &["E0802"]);
    ends("fn f() { eval(\"f()\") } f()", &["E0802", "E0105", "E0807"]);
    ends(
        "let t = \"1\"; for i in 0..100 { t = \"eval(\" + t.to_debug() + \")\"; } eval(t)",
        &["E0807", "E0101", "E0105"],
    );
    ends("let m = #{}; m.f = || this.f(); m.f()", &["E0802"]);
    ends("fn f(x) { no_grad(|| f(x)) } f(1)", &["E0802"]);
    ends("fn f(x) { with_device(\"cpu\", || f(x)) } f(1)", &["E0802"]);
    ends("fn f(x) { try { f(x) } catch (e) { f(x) } } f(1)", &["E0802", "E0801"]);
}

#[test]
fn loops_end() {
    for text in [
        "loop { }",
        "while true { }",
        "do { } while true",
        "for i in 0..9223372036854775807 { }",
        "let f = || { loop { } }; f.call()",
        "[1].map(|x| { loop { } })",
        "loop { try { loop { } } catch (e) { } }",
        "let x = ones([2]); loop { x = x + 1; }",
        "let x = ones([2], #{device: \"cuda\"}); loop { x = x + 1; }",
        "loop { try { throw 1 } catch { } }",
    ] {
        ends(text, &["E0801", "E0808", "E0105"]);
    }
    // Texts are kept for closures and late errors that point into them: memory may be the first to end.
    ends("loop { eval(\"1\") }", &["E0801", "E0804", "E0808", "E0105"]);
}

#[test]
fn values_do_not_fill_memory() {
    let before = resident();
    for text in [
        "let s = \"x\"; loop { s += s; }",
        "let s = \"x\"; loop { s = `${s}${s}`; }",
        "let a = [1]; loop { a += a; }",
        "let a = []; loop { a.push(a); }",
        "let a = []; loop { a = [a, a]; }",
        "let a = []; a.pad(1000000000000, 0);",
        "let s = \"\"; s.pad(1000000000000, 'x');",
        "blob(1000000000000)",
        "let b = blob(1000, 1); loop { b += b; }",
        "let m = #{}; let i = 0; loop { m[`k${i}`] = [i, \"text\"]; i += 1; }",
        "let kept = cell([]); loop { let s = \"\"; s.pad(100000, 'x'); kept = cell([kept, s]); }",
        "let f = || 1; loop { let old = f; let s = \"\"; s.pad(100000, 'x'); f = || [old, s]; }",
        "fn f(n) { let s = \"\"; s.pad(1000000, 'x'); f(n + 1) } f(0)",
        "let a = []; loop { a.push(|| a); }",
        "let all = []; loop { all.push(stream(\"cuda\")); }",
        "let all = []; loop { all.push(event()); }",
        "let all = []; for i in 0..200000 { all.push(ones([1])); }",
        "let x = ones([1], #{requires_grad: true}); loop { x = x * 2; }",
        "let s = \"x\"; s.pad(1000000, 'x'); loop { s = s.replace(\"x\", \"xxxxxxxxxx\"); }",
        "let s = \"a,\"; s.pad(1000000, ','); let kept = []; loop { kept.push(s.split(\",\")); }",
        "let s = \"x\"; s.pad(1000000, 'x'); let a = []; for i in 0..100 { a.push(s); } loop { a = a + [a.to_string()]; }",
    ] {
        let code = survive_in(limited().operation_limit(100_000), "memory", text);
        assert!(code.is_some(), "it ended by itself: {text}");
        let now = resident();
        assert!(now < before + (700 << 20), "{} MiB after {text}", (now - before) >> 20);
    }
}

#[test]
fn shapes_do_not_fill_memory() {
    for text in [
        "zeros([1000000000, 1000000000])",
        "zeros([9223372036854775807, 2])",
        "randn([1000000000000])",
        "ones([1]).expand([9223372036854775807]).clone()",
        "ones([1]).expand([1000000, 1000000]) + 1",
        "arange(1000000000000)",
        "eye(10000000)",
        "let kept = []; loop { kept.push(ones([100000])); }",
        "let x = ones([1000, 1000]); loop { x = cat([x, x]); }",
        "ones([2]).repeat([1000000000000])",
        "one_hot(tensor([9000000000000000000]))",
        "tensor([1]).bincount(#{minlength: 1000000000000})",
        "ones([4000, 4000]) @ ones([4000, 4000])",
        "pad(ones([2]), [1000000000000, 1000000000000])",
        "combinations(arange(10000), 5)",
        "import \"nn\" as nn; nn::linear(1000000000, 1000000000)",
        "import \"nn\" as nn; nn::lstm(2, 2, #{num_layers: 1000000000})",
        "import \"nn\" as nn; nn::embedding(9223372036854775807, 9223372036854775807)",
        "ones([2]).view([2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1])",
    ] {
        let code = survive("shapes", text);
        assert!(code.is_some(), "it ended by itself: {text}");
    }
}

#[test]
fn values_inside_values_end() {
    for text in [
        "let a = []; loop { a = [a]; }",
        "let a = #{}; loop { a = #{a: a}; }",
        "let x = 0; loop { let y = x; let f = || y; x = f; }",
        "let c = cell(0); loop { c = cell(c); }",
        "let c = cell(0); loop { c.set([c.get()]); }",
        "(0..100000).reduce(|all, x| [all], [])",
        "let f = |x| x; loop { f = f.curry(f); }",
        "fn wrap(x) { [x] } let a = 1; loop { a = wrap(a); }",
        "let m = #{}; loop { let old = m; m = #{f: || old}; }",
        "let a = [0]; loop { try { throw a } catch (e) { a = [e]; } }",
        "let a = []; loop { let b = [[], [], [], [], [], [], []]; b.push(a); a = b; }",
    ] {
        let code = survive("nesting", text);
        assert!(code.is_some(), "it ended by itself: {text}");
    }
    // What holds itself can be shown and let go.
    for text in [
        "let c = cell(0); c.set(c); print(c); c.to_string()",
        "let c = cell(0); c.set([c]); print([c]); `${c}`",
        "let x = 0; let f = || x; x = f; print(f); print([x]); `${x}`",
        "let m = #{}; let f = || m; m.f = f; print(m); m.to_string()",
        "let m = #{}; let f = || m; m.f = f; m == m",
        "let a = []; let f = || a; a.push(f); a.contains(f); a.index_of(f); a == a",
    ] {
        let _ = survive("itself", text);
    }
}

#[test]
fn texts_do_not_overflow_the_parser() {
    let deep = 100_000;
    let mut texts = vec![];
    for open in [
        "(",
        "[",
        "{",
        "#{a:",
        "-",
        "!",
        "|x|",
        "||",
        "if true {",
        "f(",
        "a[",
        "`${",
        "/*",
        "try {",
        "fn f() {",
        "switch x { 1 => ",
        "loop {",
        "while x {",
        "for i in ",
        "with_device(",
        "no_grad(||",
        "eval(",
        "x.",
        "x[x[",
        "1+(",
        "1**",
        "a?.",
        "a??",
        "return ",
        "throw ",
        "let x = ",
        "if x {} else ",
        "\"",
        "'",
        "#",
        "0x",
        "1e",
        "import ",
        "@",
        "..",
        "x=",
        "try { } catch (e) {",
        "||{",
        "|a|[",
        "-(-",
        "x ** -",
        "!(",
    ] {
        texts.push(open.repeat(deep));
        texts.push(format!("let x = {}", open.repeat(300)));
    }
    for (open, inside, close) in [
        ("(", "1", ")"),
        ("[", "", "]"),
        ("{", "", "}"),
        ("`${", "1", "}`"),
        ("f(", "1", ")"),
        ("#{a:", "1", "}"),
        ("if true {", "", "}"),
    ] {
        for deep in [60, 250, 400, 5000, 100_000] {
            texts.push(format!("{}{inside}{}", open.repeat(deep), close.repeat(deep)));
        }
    }
    texts.push("1 + ".repeat(deep) + "1");
    texts.push("x.".repeat(deep) + "x");
    texts.push(format!("f(){}", ".g()".repeat(deep)));
    texts.push("a".repeat(10 << 20));
    texts.push(format!("let x = {};", "9".repeat(1 << 20)));
    texts.push(format!("let x = \"{}\";", "x".repeat(3 << 20)));
    texts.push(format!("let x = [{}];", "1,".repeat(200_000)));
    texts.push("let x = 1;\n".repeat(70_000));
    texts.push("\n".repeat(10 << 20));
    texts.push("x".repeat(100 << 20));
    texts.push("// comment\n".repeat(65_000));
    texts.push(" ".repeat(70_000) + "1");
    texts.push("\u{feff}#!\u{0}\u{1}\u{7f}\u{202e}\u{1f600}".to_string());
    texts.push(format!("fn f({}b) {{ }}", "a,".repeat(10_000)));
    texts.push((0..20_000).map(|i| format!("fn f{i}() {{ }} ")).collect());
    // One session for all: none may break it, and starting one for each would take longer than the rest.
    let mut session = limited().build().expect("a session starts");
    for text in &texts {
        let begun = Instant::now();
        let code = session.run_str("text", text).err().map(|error| error.code());
        let shown = text.chars().take(60).collect::<String>();
        assert!(!["E0806", "E0801"].map(Some).contains(&code.as_deref()), "{code:?} for {shown}");
        assert!(begun.elapsed() < Duration::from_secs(60), "{:?} for {shown}", begun.elapsed());
        if session.eval::<i64>("1 + 1").ok() != Some(2) {
            // Its lines are used up.
            assert!(code.is_none() || code.as_deref() == Some("E0105"), "{code:?} for {shown}");
            session = limited().build().expect("a session starts");
        }
    }
}

#[test]
fn scripts_cannot_leave_their_folder() {
    let inside = tempfile::tempdir().expect("a folder");
    let outside = tempfile::tempdir().expect("a folder");
    std::fs::write(outside.path().join("secret.csv"), "a\n1\n").expect("written");
    std::fs::write(outside.path().join("secret.txt"), "secret").expect("written");
    std::fs::write(outside.path().join("module.rhai"), "fn f() { 1 }").expect("written");
    std::fs::create_dir(inside.path().join("sub")).expect("a folder");
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(outside.path(), inside.path().join("link")).expect("a link");
        std::os::unix::fs::symlink(outside.path().join("secret.csv"), inside.path().join("file.csv")).expect("a link");
        std::os::unix::fs::symlink(outside.path().join("new.npy"), inside.path().join("new.npy")).expect("a link");
        std::os::unix::fs::symlink(outside.path().join("secret.txt"), inside.path().join("text.txt")).expect("a link");
        std::os::unix::fs::symlink(outside.path().join("module.rhai"), inside.path().join("module.rhai"))
            .expect("a link");
    }
    let name = outside.path().file_name().expect("a name").to_string_lossy().into_owned();
    let (root, out) = (inside.path().display(), outside.path().display());
    let ways = [
        format!("{out}"),
        format!("{root}/../{name}"),
        format!("{root}/sub/../../{name}"),
        format!("{root}/link"),
        format!("{root}/sub/../link"),
        format!("{root}/./link/."),
        format!("{root}//..//{name}"),
        format!("{root}/none/../../{name}"),
    ];
    let session = || limited().file_roots([inside.path()]).module_root(inside.path());
    for way in &ways {
        for text in [
            format!("load(\"{way}/secret.csv\")"),
            format!("load(\"{way}/secret.txt\")"),
            format!("save(\"{way}/made.npy\", ones([2]))"),
            format!("save(\"{way}/secret.txt\", \"overwritten\")"),
            format!("plot([1.0], #{{file: \"{way}/made.png\"}})"),
            format!("import \"data\" as data; data::image_folder(\"{way}\")"),
            format!("import \"{way}/module\" as m; m::f()"),
        ] {
            let code = survive_in(session(), "escape", &text);
            assert!(["E0604", "E0106", "E0601"].map(Some).contains(&code.as_deref()), "{code:?} for {text}");
        }
    }
    for text in
        ["load(\"file.csv\")", "load(\"new.npy\")", "import \"module\" as m; m::f()", "import \"link/module\" as m;"]
    {
        let text = text.replace("load(\"", &format!("load(\"{root}/"));
        let code = survive_in(session(), "escape", &text);
        assert!(["E0604", "E0106", "E0601"].map(Some).contains(&code.as_deref()), "{code:?} for {text}");
    }
    for text in [format!("save(\"{root}/new.npy\", ones([2]))"), format!("save(\"{root}/text.txt\", \"overwritten\")")]
    {
        assert_eq!(survive_in(session(), "escape", &text).as_deref(), Some("E0604"), "{text}");
    }
    let mut left: Vec<String> = std::fs::read_dir(&outside)
        .expect("a folder")
        .flatten()
        .map(|e| e.file_name().to_string_lossy().into_owned())
        .collect();
    left.sort();
    assert_eq!(left, ["module.rhai", "secret.csv", "secret.txt"], "nothing was written outside");
    assert_eq!(std::fs::read_to_string(outside.path().join("secret.txt")).expect("there"), "secret");
}

#[test]
fn modules_cannot_do_more() {
    let builder = || {
        limited()
            .module("a", "import \"b\" as b;")
            .module("b", "import \"a\" as a;")
            .module("self", "import \"self\" as me;")
    };
    assert_eq!(survive_in(builder(), "circle", "import \"a\" as a;").as_deref(), Some("E0107"));
    assert_eq!(survive_in(builder(), "circle", "import \"self\" as a;").as_deref(), Some("E0107"));
    assert_eq!(
        survive_in(limited().module("m", "loop { }"), "endless", "import \"m\" as m;").as_deref(),
        Some("E0801")
    );
    assert_eq!(
        survive_in(limited().module("m", "fn f() { f() } f();"), "deep", "import \"m\" as m;").as_deref(),
        Some("E0802")
    );
    let _ = survive("names", &format!("import \"{}\" as m;", "x/../".repeat(100_000)));
}

#[test]
fn what_is_gone_over_may_change() {
    for text in [
        "let a = [3, 1, 2]; a.sort(|x, y| throw \"no\");",
        "let a = []; for i in 0..500 { a.push(i * 7919 % 500); } a.sort(|x, y| 1); a.sort(|x, y| -1); a.sort(|x, y| y - x * y);",
        "let a = [3, 1, 2]; a.sort(|x, y| { a.clear(); x - y });",
        "let a = [1, 2, 3]; for x in a { a.clear(); a.push(x); }",
        "let a = [1, 2, 3]; a.map(|x| { a = 1; x });",
        "let a = [1, 2, 3]; a.retain(|x| { a.push(1); true });",
        "let m = #{a: 1, b: 2}; for k in m.keys() { m.clear(); m[k + \"x\"] = 1; }",
        "let x = arange(3); for r in x { x = arange(0); }",
        "import \"data\" as data; let d = data::tensors(arange(4)); for b in data::loader(d, #{batch_size: 2}) { d = 1; }",
        "let c = cell([1]); for x in c.get() { c.set(c); }",
    ] {
        let _ = survive("change", text);
    }
}

/// Numbers that look random and are the same every time.
fn random(seed: u64, count: usize) -> Vec<u8> {
    let mut x = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let next = |x: &mut u64| {
        *x ^= *x << 13;
        *x ^= *x >> 7;
        *x ^= *x << 17;
        (*x >> 24) as u8
    };
    (0..count).map(|_| next(&mut x)).collect()
}

/// `TSCRIPT_HOSTILE=from..to` chooses the seeds.
#[test]
fn whatever_is_made_up_is_survived() {
    let names: Vec<&str> = tscript::internals::op::table::all().map(|op| op.name).collect();
    let range = std::env::var("TSCRIPT_HOSTILE").unwrap_or("0..60".into());
    let (from, to) = range.split_once("..").expect("from..to");
    for seed in from.parse::<u64>().expect("a number")..to.parse().expect("a number") {
        let bytes = random(seed + 1, 240);
        let text = script(&names, &mut Choices::of(&bytes));
        let _ = survive(&format!("seed {seed}"), &text);
    }
}

#[test]
fn texts_do_not_outgrow_their_limit() {
    let long = "let s = ``; s.pad(1000000, 'x'); ";
    for text in [
        "s = s.replace(`x`, s);",
        "s = s.replace('x', s);",
        "s = s.replace(``, s);",
        "s.split(``)",
        "s.split('x')",
        "s.split(`x`, 900000)",
        "s.split_rev('x')",
        "s.to_chars()",
        "s = s.replace(`x`, ` y`); s = s.split(); s",
    ] {
        ends(&format!("{long}{text}"), &["E0807"]);
    }
    assert_eq!(survive("few", &format!("{long}s.split(`x`, 3); s.split_rev('x', 90); s.replace('x', ``)")), None);
}

/// Lists and scratch memory that are asked for by a number in the script.
#[test]
fn memory_beside_tensors_is_limited_too() {
    let before = resident();
    for text in [
        "zeros([1000000000000, 0]).to_array()",
        "zeros([2]).tensor_split(1000000000)",
        "zeros([0]).chunk(1000000000)",
        "ones([1]).expand([100000000]).split(1)",
        "ones([1]).expand([100000000]).unbind()",
        "ones([1], #{dtype: u8}).expand([120000000]).tolist()",
        "ctc_loss(ones([1, 1, 1]).expand([200000, 1, 5]), ones([1], #{dtype: i64}).expand([1, 20000]), [200000], [20000]).item()",
        "combinations(arange(1000), 3)",
    ] {
        ends(text, &["E0804", "E0304", "E0807", "E0210"]);
    }
    assert_eq!(survive("empty", "adaptive_max_pool1d(zeros([0, 3]), 4294967296)"), None);
    assert!(resident() < before + (600 << 20), "{} MiB more", (resident() - before) >> 20);
}

/// A session that goes leaves nothing behind, whatever was under way.
#[test]
fn streams_cost_little_and_go_with_the_session() {
    let before = resident();
    for _ in 0..3 {
        let text = "let all = []; for i in 0..5000 { let s = stream(\"cuda\"); with_stream(s) { ones([2], #{device: \"cuda\"}) + 1; } all.push(s); }";
        survive("streams", text);
    }
    assert!(resident() < before + (300 << 20), "{} MiB more", (resident() - before) >> 20);
}
