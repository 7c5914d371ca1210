//! Training that goes on from a checkpoint is training that was never interrupted, bit for bit; and what `save` leaves to
//! be written while the script goes on.

use super::scripts::none;
use std::path::Path;
use tscript::Session;

/// What one of the three sessions of `resume.rhai` tells.
fn told(folder: &Path, part: i64) -> Vec<String> {
    let mut session = Session::builder().file_roots([folder]).build().expect("a session");
    session.set("folder", folder.display().to_string()).expect("a string passes");
    session.set("part", part).expect("a number passes");
    session.run_str("resume.rhai", include_str!("resume.rhai")).unwrap_or_else(|e| panic!("part {part}: {e}"));
    session.get("told").expect("it is there")
}

#[test]
fn resumed_training_is_straight_training() {
    let folder = tempfile::tempdir().expect("a folder");
    let straight = told(folder.path(), 0);
    told(folder.path(), 1);
    let resumed = told(folder.path(), 2);
    assert_eq!(straight.len(), 54);
    let differ = |(a, b): (&String, &String)| (a != b).then(|| format!("straight: {a}\nresumed:  {b}"));
    none(straight.iter().zip(&resumed).filter_map(differ).collect());
}

/// The code that a text ends with, and the error's text.
fn code(text: &str) -> (String, String) {
    let error = Session::builder().all_files().build().expect("a session").run_str("save", text);
    error.map_or_else(|e| (e.code().to_string(), format!("{e:#}")), |()| ("none".into(), String::new()))
}

/// A disk that is full is `/dev/full` as a folder's limit cannot be had here: the temporary file is taken away instead, so
/// that renaming it fails after `save` has returned.
#[cfg(unix)]
#[test]
fn a_file_that_cannot_be_written_is_told_at_its_line() {
    // A second file that cannot be opened is told first, unless the first one has failed by then.
    let ends: [(&str, &[usize]); 4] = [
        ("", &[3]),
        ("\nload(\"FOLDER/a.npy\")", &[3]),
        ("\nsynchronize()", &[3]),
        ("\nsave(\"/nowhere/x.npy\", x)", &[3, 4]),
    ];
    for (end, lines) in ends {
        let text = format!("let x = zeros([64, 1024, 1024]);\nx += 1.0;\nsave(\"FOLDER/a.npy\", x);{end}");
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("gone");
        std::fs::create_dir(&path).expect("a folder");
        let text = text.replace("FOLDER", &path.display().to_string());
        // It goes while 256 MB are written and flushed.
        let gone = path.clone();
        let remover = std::thread::spawn(move || {
            while std::fs::read_dir(&gone).is_ok_and(|mut entries| entries.next().is_none()) {
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
            let _ = std::fs::remove_dir_all(&gone);
        });
        let (code, shown) = code(&text);
        remover.join().expect("it ends");
        assert_eq!(code, "E0601", "{shown}");
        assert!(lines.iter().any(|line| shown.contains(&format!("save:{line}:"))), "{shown}");
    }
}

/// When a text or a call has ended, its files are there, whatever it ended with.
#[test]
fn files_are_whole_when_a_run_has_ended() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("x.npy");
    let mut session = Session::builder().all_files().build().expect("a session");
    session.set("path", path.display().to_string()).expect("a string passes");
    session
        .run_str("save", "save(path, ones([1000, 1000])); fn keep(path, n) { save(path, ones([n])); }")
        .expect("it runs");
    let size = || std::fs::metadata(&path).expect("it is there").len();
    assert_eq!(size(), 4_000_128);
    session.call::<()>("keep", (path.display().to_string(), 10)).expect("it runs");
    assert_eq!(size(), 168);
    session.run_str("fails", "save(path, ones([20])); throw \"no\"").expect_err("it throws");
    assert_eq!(size(), 208);
    session.run_str("exits", "save(path, ones([30])); exit(3)").expect("an exit is no error");
    assert_eq!(size(), 248);
}

/// What a checkpoint may hold besides tensors, exactly.
#[test]
fn a_checkpoint_holds_arrays_numbers_texts_and_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("x.safetensors").display().to_string();
    let text = r#"
        let value = #{a: [], b: [1, 2], c: [0.1, -0.0, 1e300], d: [1, 2.0, true, (), "x", [[]]], e: (), f: [true, false],
            g: [#{x: 1, y: [(), ()]}, #{}], h: 9007199254740993, i: "line\nline", j: [["a", "b"], ["c"]], k: [1 << 62],
            l: #{"1": "one", "0": [#{}]}};
        save(path, value);
        let back = load(path);
        assert(back.c.map(|x| 1.0 / x)[1] == -1.0 / 0.0, back.c);
        assert(back == value, back);
        save(path, #{t: [tensor([1, 2]), ones([2, 2], #{dtype: "bf16"})], nan: [0.0 / 0.0]});
        let back = load(path);
        assert(equal(back.t[0], tensor([1, 2])) && back.t[1].dtype == "bf16" && isnan(back.nan[0]), back);
        for wrong in [#{a: 'c'}, #{a: [|x| x]}, #{a: [1], "a.b": 2}, #{"": 1}, #{a: 0..3}] {
            let told = "";
            try { save(path, wrong); } catch (e) { told = e.code; }
            assert(told in ["E0204", "E0206"], `${wrong}: ${told}`);
        }
        let deep = [];
        for i in 0..16 { deep = [deep, "x"]; }
        let told = "";
        try { save(path, #{deep: deep}); } catch (e) { told = e.code; }
        assert(told == "E0206", told);
        save(path, #{deep: deep[0]});
        assert(load(path).deep == deep[0], "as deep as it may be");
    "#;
    let mut session = Session::builder().all_files().build().expect("a session");
    session.set("path", path).expect("a string passes");
    session.run_str("holds", text).unwrap_or_else(|e| panic!("{e:#}"));
}

/// A loader's state is that of a loader like it.
#[test]
fn states_of_other_loaders_are_refused() {
    let text = r#"
        import "data" as data;
        let d = data::tensors(arange(10));
        let make = |o| data::loader(d, o);
        let a = make.call(#{batch_size: 2, shuffle: true});
        assert(a.state_dict() == #{position: (), generator: (), order: (), rows: 10, batches: 5}, a.state_dict());
        for batch in a { break; }
        let state = a.state_dict();
        assert(state.position == 1 && state.generator.len() == 2 && state.order == (), state);
        let b = make.call(#{batch_size: 2, shuffle: true});
        b.load_state_dict(state);
        assert(b.state_dict() == state, b.state_dict());
        let n = 0;
        for batch in b { n += 1; }
        assert(n == 4 && b.state_dict().position == (), n);
        for batch in b { n += 1; }
        assert(n == 9, n);
        let wrong = [[#{batch_size: 3, shuffle: true}, state], [#{batch_size: 2, shuffle: true}, #{}],
            [#{batch_size: 2, shuffle: true}, 3], [#{batch_size: 2, shuffle: true}, state + #{position: 6}],
            [#{batch_size: 2, shuffle: true}, state + #{position: -1}], [#{batch_size: 2, shuffle: true}, state + #{generator: ()}],
            [#{batch_size: 2, shuffle: true}, state + #{generator: [1]}],
            [#{batch_size: 2, sampler: data::subset_sampler([1, 2, 3, 4, 5, 6, 7, 8, 9, 0])}, state]];
        for [o, state] in wrong {
            let told = "none";
            try { make.call(o).load_state_dict(state); } catch (e) { told = e.code; }
            assert(told in ["E0204", "E0206"], `${o} ${state}: ${told}`);
        }
    "#;
    let mut session = Session::builder().build().expect("a session");
    session.run_str("loaders", text).unwrap_or_else(|e| panic!("{e:#}"));
}
