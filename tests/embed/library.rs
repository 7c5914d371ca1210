//! The library in a host program: values of all kinds, calls, functions and types of the program, limits, files,
//! threads. The programs under `tests/embed/` show the same things as examples.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tscript::{Builder, Error, Object, Session, Tensor, Value};

/// What became of a script.
struct Ran {
    result: Result<(), Error>,
}

/// Runs a text in a session of its own.
fn run(builder: Builder, name: &str, text: &str) -> Ran {
    Ran { result: builder.output(|_| {}).build().and_then(|mut session| session.run_str(name, text)) }
}

fn builder() -> Builder {
    Session::builder()
}

fn session() -> Session {
    Session::builder().build().expect("a session starts")
}

/// The code of what a text ends with, or `no error`.
fn code(builder: Builder, text: &str) -> String {
    run(builder, "embed", text).result.err().map_or("no error".to_string(), |error| error.code())
}

#[test]
fn values_of_all_kinds_go_in_and_come_out() {
    fn back<T: tscript::FromScript>(value: impl tscript::IntoScript) -> Result<T, Error> {
        let mut session = session();
        session.set("x", value)?;
        session.eval("x")
    }
    assert_eq!(back::<i64>(7u8).unwrap(), 7);
    assert_eq!(back::<u16>(65_535).unwrap(), 65_535);
    assert_eq!(back::<f32>(0.5f32).unwrap(), 0.5);
    assert_eq!(back::<f64>(3).unwrap(), 3.0);
    assert!(back::<bool>(true).unwrap());
    assert_eq!(back::<String>("größer").unwrap(), "größer");
    assert_eq!(back::<Vec<f64>>([1.0, 2.5]).unwrap(), [1.0, 2.5]);
    assert_eq!(back::<Option<i64>>(None::<i64>).unwrap(), None);
    assert_eq!(back::<Option<i64>>(Some(1)).unwrap(), Some(1));
    let map = HashMap::from([("a".to_string(), vec![1i64, 2]), ("b".to_string(), vec![])]);
    assert_eq!(back::<HashMap<String, Vec<i64>>>(map.clone()).unwrap(), map);
    let nested = Value::Map(BTreeMap::from([
        ("list".to_string(), Value::Array(vec![Value::Unit, Value::Bool(false), Value::Float(f64::INFINITY)])),
        ("text".to_string(), Value::from("\u{0}\"")),
    ]));
    assert_eq!(back::<Value>(nested.clone()).unwrap(), nested);
    let tensor = Tensor::from_slice(&[true, false], &[2, 1]).unwrap();
    let tensor: Tensor = back(tensor).unwrap();
    assert_eq!((tensor.shape(), tensor.to_vec::<bool>().unwrap()), (vec![2, 1], vec![true, false]));
    back::<()>(vec![1]).unwrap();

    let wrong = [
        (back::<u8>(256).unwrap_err(), "E0206", "256 does not fit in u8, which goes from 0 to 255"),
        (back::<i64>(u64::MAX).unwrap_err(), "E0206", "18446744073709551615 is beyond the integers"),
        (back::<i64>(1.5).unwrap_err(), "E0215", "an integer is expected, not a float"),
        (back::<Tensor>(1).unwrap_err(), "E0215", "a tensor is expected, not an integer"),
        (back::<Vec<i64>>(Value::Array(vec![1.into(), "a".into()])).unwrap_err(), "E0215", "at [1]: an integer"),
    ];
    for (error, code, text) in wrong {
        assert!(error.code() == code && error.message().contains(text), "{error:#}");
    }
    assert_eq!(session().get::<i64>("nothing").unwrap_err().code(), "E0102");
}

#[test]
fn a_tensor_of_one_element_is_its_number() {
    let mut session = session();
    assert_eq!(session.eval::<f64>("tensor([0.5, 0.25]).sum()").unwrap(), 0.75);
    assert_eq!(session.eval::<usize>("arange(4).sum()").unwrap(), 6);
    assert!(session.eval::<bool>("tensor([1.0]) > 0").unwrap());
    assert_eq!(session.eval::<f64>("ones([2])").unwrap_err().code(), "E0201");
}

#[test]
fn a_call_sees_what_the_top_level_has() {
    let mut session = Session::builder().module("units", "fn double(x) { x * 2 } export const K = 3;").build().unwrap();
    session.run_str("one", "import \"units\" as units; import \"nn\" as nn; const C = 10;").unwrap();
    session
        .run_str(
            "two",
            "fn f(x) { units::double(x) + units::K + global::C + g(x) } fn g(x) { -x } fn many(a, b, c) { [a, b, c] }",
        )
        .unwrap();
    assert_eq!(session.call::<i64>("f", (5,)).unwrap(), 18);
    assert_eq!(session.call::<Vec<i64>>("many", (1, 2, 3)).unwrap(), [1, 2, 3]);
    session.run_str("three", "fn g(x) { 100 }").unwrap();
    assert_eq!(session.call::<i64>("f", (5,)).unwrap(), 123);
    assert_eq!(session.call::<Value>("many", vec![Value::Unit; 3]).unwrap(), Value::Array(vec![Value::Unit; 3]));
    assert_eq!(session.call::<i64>("missing", ()).unwrap_err().code(), "E0103");
    let error = session.call::<i64>("f", (true,)).unwrap_err();
    assert_eq!((error.code().as_str(), error.location().unwrap().source.as_ref()), ("E0215", "units"));
    let x = Tensor::from_slice(&[4.0f32], &[1]).unwrap();
    assert_eq!(session.call::<f32>("relu", (x,)).unwrap(), 4.0, "a function of the library");
    // An array that is passed is the function's own.
    session.run_str("four", "fn grow(a) { a.push(1); a.len() }").unwrap();
    assert_eq!((0..3).map(|_| session.call::<i64>("grow", (vec![0i64],)).unwrap()).sum::<i64>(), 6);
}

#[test]
fn a_call_that_fails_leaves_the_next_one_alone() {
    let mut session = Session::builder().operation_limit(10_000).build().unwrap();
    session.run_str("f", "fn deep(n) { deep(n + 1) + 1 } fn throws() { throw \"no\" } fn fine() { import \"nn\" as nn; 1 } fn endless() { loop { } }").unwrap();
    for (name, code) in [("throws", "E0108"), ("endless", "E0801")] {
        assert_eq!(session.call::<i64>(name, ()).unwrap_err().code(), code);
        assert_eq!(session.call::<i64>("fine", ()).unwrap(), 1);
    }
    assert_eq!(session.call::<i64>("deep", (0,)).unwrap_err().code(), "E0802");
    assert_eq!(session.call::<i64>("fine", ()).unwrap(), 1);
}

#[test]
fn an_error_of_a_rust_function_is_reported_at_its_call() {
    let mut session = Session::builder()
        .function("half", |x: i64| if x % 2 == 0 { Ok(x / 2) } else { Err(format!("{x} is odd")) })
        .function("explode", || -> i64 { panic!("on purpose") })
        .function("scaled", |x: Tensor, by: f32| -> Result<Tensor, Error> {
            let scaled: Vec<f32> = x.to_vec::<f32>()?.iter().map(|x| x * by).collect();
            Tensor::from_slice(&scaled, &x.shape())
        })
        .function("config", std::fs::read_to_string::<String>)
        .build()
        .unwrap();
    assert_eq!(session.eval::<i64>("half(8)").unwrap(), 4);
    let text = "fn inner(n) {\n    half(n)\n}\nlet ok = half(2);\nlet y = inner(7);";
    let error = session.run_str("odd", text).unwrap_err();
    assert_eq!((error.code().as_str(), error.message()), ("E0809", "7 is odd"));
    let place = error.location().unwrap();
    assert_eq!((place.source.as_ref(), place.line, place.column), ("odd", 2, 5));
    assert_eq!(error.diag().stack.len(), 1, "the script's call stack");
    assert_eq!(
        session
            .eval::<String>("let told = \"\"; try { half(7) } catch (e) { told = e.code + e.message } told")
            .unwrap(),
        "E08097 is odd"
    );

    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let error = session.run_str("bang", "let x = 1;\nexplode();").unwrap_err();
    std::panic::set_hook(hook);
    assert_eq!((error.code().as_str(), error.location().unwrap().line), ("E0809", 2));
    assert!(error.message().contains("panicked: on purpose"), "{error:#}");
    assert_eq!(session.eval::<i64>("half(8)").unwrap(), 4, "the session lives");

    assert_eq!(session.eval::<f64>("scaled(tensor([1.0, 2.0]), 3).sum()").unwrap(), 9.0);
    // An error of ours keeps its code.
    assert_eq!(session.eval::<()>("scaled(arange(2), 3)").unwrap_err().code(), "E0202");
    assert_eq!(session.eval::<()>("config(\"/no/such/file\")").unwrap_err().code(), "E0809");
    let error = session.eval::<()>("half(\"7\")").unwrap_err();
    assert_eq!((error.code().as_str(), error.message()), ("E0204", "argument 1: an integer is expected, not a string"));
    assert_eq!(session.eval::<()>("half(1, 2)").unwrap_err().code(), "E0208");
    let named = Session::builder().function("not a name", || 1).build();
    assert_eq!(named.err().expect("no name").code(), "E0206");
}

#[derive(Clone)]
struct Counter {
    count: i64,
    log: Arc<Mutex<Vec<String>>>,
}

impl Object for Counter {
    const NAME: &'static str = "counter";
}

#[test]
fn a_rust_type_has_methods_and_properties() {
    let mut session = Session::builder()
        .object::<Counter>(|counter| {
            counter
                .getter("count", |counter: &mut Counter| counter.count)
                .setter("count", |counter: &mut Counter, to: i64| counter.count = to)
                .method("add", |counter: &mut Counter, by: i64, why: String| {
                    counter.count += by;
                    counter.log.lock().unwrap().push(why);
                })
        })
        .function("counter", || Counter { count: 0, log: Arc::default() })
        .function("value_of", |counter: Counter| counter.count)
        .build()
        .unwrap();
    let log = Arc::new(Mutex::new(Vec::new()));
    session.set("c", Counter { count: 1, log: log.clone() }).unwrap();
    let text = "c.add(2, \"more\"); let d = c; d.add(10, \"copy\"); c.count += 1; [c.count, d.count, type_of(c) == \"counter\", value_of(d)]";
    let found: Vec<Value> = session.eval(text).unwrap();
    assert_eq!(found, [4.into(), 13.into(), true.into(), 13.into()]);
    assert_eq!(*log.lock().unwrap(), ["more", "copy"], "what is shared is shared");
    assert_eq!(session.get::<Counter>("c").unwrap().count, 4);
    assert_eq!(session.eval::<i64>("const K = counter(); K.count").unwrap(), 0);
    assert_eq!(session.eval::<()>("K.add(1, \"\")").unwrap_err().code(), "E0110");
    assert_eq!(session.eval::<()>("c.vanish(1)").unwrap_err().code(), "E0103");
    assert_eq!(session.eval::<()>("c.total").unwrap_err().code(), "E0104");
    assert_eq!(session.eval::<i64>("c").unwrap_err().code(), "E0215");
}

#[derive(Clone)]
struct Holder {
    counter: Counter,
    written: Arc<Mutex<i64>>,
}

impl Object for Holder {
    const NAME: &'static str = "holder";
}

/// Of values that are copies Rhai hands a changed one back, and types of a program keep that rule.
#[test]
fn what_is_changed_inside_a_rust_type_is_handed_back() {
    let mut session = Session::builder()
        .object::<Counter>(|counter| {
            counter
                .getter("count", |counter: &mut Counter| counter.count)
                .setter("count", |counter: &mut Counter, to: i64| counter.count = to)
                .method("add", |counter: &mut Counter, by: i64| counter.count += by)
        })
        .object::<Holder>(|holder| {
            holder.getter("counter", |holder: &mut Holder| holder.counter.clone()).setter(
                "counter",
                |holder: &mut Holder, to: Counter| {
                    *holder.written.lock().unwrap() += 1;
                    holder.counter = to;
                },
            )
        })
        .build()
        .unwrap();
    let counter = Counter { count: 1, log: Arc::default() };
    let written = Arc::new(Mutex::new(0));
    session.set("h", Holder { counter, written: written.clone() }).unwrap();
    let text = "h.counter.count = 5; h.counter.count += 2; h.counter.add(10); let list = [h.counter]; list[0].add(1); [h.counter.count, list[0].count]";
    let found: Vec<Value> = session.eval(text).unwrap();
    assert_eq!(found, [17.into(), 18.into()]);
    assert_eq!(*written.lock().unwrap(), 3);
}

#[test]
fn the_time_limit_ends_loops_sleeps_and_waits() {
    let limited = || builder().time_limit(Duration::from_millis(60));
    let begun = Instant::now();
    assert_eq!(code(limited(), "loop { }"), "E0808");
    assert_eq!(code(limited(), "loop { try { loop { } } catch (e) { } }"), "E0808");
    assert_eq!(code(limited(), "let a = [3, 2, 1]; loop { a.sort(|x, y| x - y); }"), "E0808");
    assert_eq!(code(limited(), "sleep(3600)"), "E0808");
    assert_eq!(code(limited(), "sleep(1e300)"), "E0808");
    let device = limited().simulate_gpus(1);
    assert_eq!(
        code(device, "let x = ones([2], #{device: \"cuda\"}); cuda::sleep(3600000.0); print((x + 1).sum().item());"),
        "E0808"
    );
    assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
    let mut session = limited().build().unwrap();
    assert_eq!(session.eval::<()>("loop { }").unwrap_err().code(), "E0808");
    assert_eq!(session.eval::<i64>("1 + 1").unwrap(), 2, "each run has its own time");
}

#[test]
fn memory_has_limits_everywhere() {
    // What is not met by its limit is met by this one.
    let builder = || builder().operation_limit(1_000_000);
    let gpu = || builder().simulate_gpus(1).device_memory_limit(64 << 20);
    assert_eq!(code(gpu(), "let x = ones([1024, 1024], #{device: \"cuda\"}); x.sum().item()"), "no error");
    assert_eq!(code(gpu(), "let x = ones([32, 1024, 1024], #{device: \"cuda\"}); x.sum().item()"), "E0804");
    let more = "cuda::set_per_process_memory_fraction(1.0); let x = ones([32, 1024, 1024], #{device: \"cuda\"}); x.sum().item()";
    assert_eq!(code(gpu(), more), "E0804");
    assert_eq!(code(builder().memory_limit(8 << 20), "zeros([4096, 4096]).sum().item()"), "E0804");
    assert_eq!(code(builder().string_limit(1000), "let s = \"x\"; loop { s += s; }"), "E0807");
    assert_eq!(code(builder().array_limit(1000), "let a = []; loop { a.push(1); }"), "E0807");
    assert_eq!(code(builder().map_limit(100), "let m = #{}; let i = 0; loop { m[`k${i}`] = i; i += 1; }"), "E0807");
    assert_eq!(code(builder().call_depth_limit(10), "fn f(n) { if n > 0 { f(n - 1) } } f(5)"), "no error");
    assert_eq!(code(builder().call_depth_limit(10), "fn f(n) { if n > 0 { f(n - 1) } } f(15)"), "E0802");
    let modules = builder().module("a", "").module("b", "").module_limit(1);
    assert_eq!(code(modules, "import \"a\" as a; import \"b\" as b;"), "E0807");
    let heap = || builder().heap_limit(5 << 20);
    assert_eq!(code(heap(), "let kept = []; for i in 0..1000 { kept.push(`text ${i}`); }"), "no error");
    assert_eq!(
        code(heap(), "let c = cell([]); loop { let s = \"\"; s.pad(1000000, 'x'); c = cell([c, s]); }"),
        "E0804"
    );
    let mut session = heap().build().unwrap();
    session.run_str("half", "let half = \"\"; half.pad(3000000, 'x');").unwrap();
    assert_eq!(
        session.run_str("more", "let more = half; more += \"y\"; for i in 0..3 { i; }").unwrap_err().code(),
        "E0804",
        "kept values count"
    );
    assert_eq!(session.run_str("less", "half = ();").unwrap_err().code(), "E0804", "what is too much stays too much");
    session.set("more", ()).unwrap();
    session.run_str("less", "half = ();").unwrap();
    session.run_str("again", "let more = \"\"; more.pad(3000000, 'x');").unwrap();
}

#[test]
fn a_session_touches_no_file_unless_it_may() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    std::fs::write(path("helper.rhai"), "fn one() { 1 }").unwrap();
    std::fs::write(path("main.rhai"), "import \"helper\" as h; print(h::one());").unwrap();
    std::fs::write(path("data.csv"), "a,b\n1,2\n").unwrap();
    std::fs::create_dir_all(path("images/cat")).unwrap();
    run(
        builder().all_files(),
        "setup",
        &format!("save({:?}, zeros([2, 2, 3], #{{dtype: \"u8\"}}))", path("images/cat/1.png")),
    )
    .result
    .unwrap();
    let texts = [
        format!("load({:?})", path("data.csv")),
        format!("load({:?}, #{{columns: true}})", path("data.csv")),
        format!("save({:?}, ones([2]))", path("new.npy")),
        format!("save({:?}, \"text\")", path("new.txt")),
        format!("load({:?})", path("helper.txt")),
        format!("import \"data\" as data; data::image_folder({:?})", path("images")),
        format!("plot([1.0, 2.0], #{{file: {:?}}})", path("curve.png")),
        format!("show(zeros([2, 2, 3]), #{{file: {:?}}})", path("picture.png")),
    ];
    for text in &texts {
        let error = run(Session::builder(), "files", text).result.expect_err(text);
        assert_eq!(error.code(), "E0604", "{text}: {error:#}");
        assert!(error.diag().help.as_deref().unwrap_or("").contains("no folder"), "{text}: {:?}", error.diag());
    }
    for import in ["helper", "./helper", "../helper", &path("helper"), &path("helper.rhai"), "/etc/passwd"] {
        assert_eq!(code(Session::builder(), &format!("import {import:?} as h;")), "E0106", "{import}");
    }
    assert!(!std::path::Path::new(&path("new.npy")).exists());
    let mut session = Session::builder().output(|_| {}).build().unwrap();
    assert_eq!(session.run_file(path("main.rhai")).unwrap_err().code(), "E0106");
    for may in [
        Session::builder().file_roots([folder.path()]),
        Session::builder().module_root(folder.path()),
        Session::builder().all_files(),
    ] {
        may.output(|_| {}).build().unwrap().run_file(path("main.rhai")).unwrap();
    }
    for text in &texts[..4] {
        assert_eq!(code(Session::builder().file_roots([folder.path()]), text), "no error", "{text}");
    }
}

#[test]
fn output_goes_where_the_program_says() {
    let lines = Arc::new(Mutex::new(Vec::new()));
    let sink = lines.clone();
    let mut session =
        Session::builder().output(move |line| sink.lock().unwrap().push(line.to_string())).build().unwrap();
    session.run_str("talk", "print(1 + 1); debug(\"two\"); for i in progress(0..2) { print(`${i}`); }").unwrap();
    assert_eq!(*lines.lock().unwrap(), ["2", "\"two\"", "0", "1"]);
}

#[test]
fn sessions_move_between_threads_and_do_not_see_each_other() {
    fn is_send<T: Send>() {}
    fn is_sync<T: Send + Sync>() {}
    is_send::<Session>();
    is_sync::<Tensor>();
    is_sync::<Error>();
    is_sync::<tscript::InterruptHandle>();
    let counted = Arc::new(AtomicUsize::new(0));
    let mut sessions: Vec<Session> = (0..4)
        .map(|seed| {
            let counted = counted.clone();
            let count = move || counted.fetch_add(1, Ordering::Relaxed);
            let mut session = Session::builder().seed(seed).function("count", count).build().unwrap();
            session.run_str("own", "manual_seed(1); fn next(k) { count(); randn([3]) * k } let mine = 1;").unwrap();
            session
        })
        .collect();
    for _ in 0..3 {
        let threads: Vec<_> = std::mem::take(&mut sessions)
            .into_iter()
            .map(|mut session| {
                std::thread::spawn(move || {
                    let drawn: Tensor = session.call("next", (2,)).unwrap();
                    (drawn.to_vec::<f32>().unwrap(), drawn, session)
                })
            })
            .collect();
        let mut drawn = Vec::new();
        for thread in threads {
            let (values, tensor, session) = thread.join().unwrap();
            assert_eq!(tensor.to_vec::<f32>().unwrap(), values, "a tensor can be read on any thread");
            drawn.push(values);
            sessions.push(session);
        }
        assert!(drawn.iter().all(|values| *values == drawn[0]), "each has a generator of its own: {drawn:?}");
    }
    assert_eq!(counted.load(Ordering::Relaxed), 12);
    let tensor = sessions[0].eval::<Tensor>("ones([1000, 10])").unwrap();
    drop(sessions);
    assert_eq!(tensor.to_vec::<f32>().unwrap().len(), 10_000, "a tensor keeps its runtime alive");
}

#[test]
fn no_method_changes_a_constant() {
    let mut session = Session::builder().build().expect("a session starts");
    for (value, calls) in [
        (
            "[2, 1]",
            "push(1) pad(3, 0) sort() sort(|a, b| a - b) sort_by(|a, b| a - b) append([3]) append(3) extend([3]) pop() \
             pop(0) retain(|x| x > 1) drain(|x| x > 1) dedup(|a, b| true) insert(0, 1) remove(0) clear() reverse()",
        ),
        ("\"text\"", "replace(\"t\", \"s\") replace('t', \"s\") pad(9, \"x\") pad(9, 'x') clear() make_upper()"),
        ("#{a: 1}", "update(#{b: 2}) pop(\"a\") pop(\"a\", 1) remove(\"a\") clear() set(\"a\", 2)"),
        ("blob(2)", "pad(3, 1) push(1) clear() reverse()"),
    ] {
        // A call ends where a space is followed by the next name.
        for call in calls.split_inclusive(") ").map(str::trim) {
            let text = format!(
                "const FIXED = {value}; let caught = `none`; try {{ FIXED.{call}; }} catch (e) {{ caught = e.code; }} caught"
            );
            let caught: String = session.eval(&text).expect("the error is caught");
            assert_eq!(caught, "E0110", "{value}.{call}");
        }
    }
}
