//! Event files of `tensorboard::summary_writer`, byte for byte as PyTorch and TensorBoard write their records. Fixtures and
//! their generator: `tests/fixtures/events.py`.

use super::scripts::folder;
use serde_json::Value;
use std::path::{Path, PathBuf};
use tscript::Session;

/// The event files of a folder, in order.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    let mut found: Vec<PathBuf> = entries.filter(|path| path.is_file()).collect();
    found.sort();
    found
}

/// The records of a file, with lengths and checksums.
fn records(path: &Path) -> Vec<Vec<u8>> {
    let bytes = std::fs::read(path).expect("it is there");
    let (mut at, mut found) = (0, Vec::new());
    while at < bytes.len() {
        let length = u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes")) as usize;
        found.push(bytes[at..at + length + 16].to_vec());
        at += length + 16;
    }
    found
}

fn run(root: &Path, text: &str) -> Result<(), tscript::Error> {
    let mut session = Session::builder().file_roots([root]).build().expect("a session");
    session.set("root", root.display().to_string()).expect("a string passes");
    session.run_str("events", &format!("import \"tensorboard\" as tb;\n{text}"))
}

#[test]
fn records_are_those_of_pytorch() {
    let text = std::fs::read_to_string(folder("fixtures").join("events.json")).expect("the fixtures");
    let cases: Value = serde_json::from_str(&text).expect("JSON");
    let cases: Vec<&Value> =
        cases.as_array().expect("a list").iter().filter(|case| case.get("record").is_some()).collect();
    assert!(cases.len() >= 8);
    let root = tempfile::tempdir().expect("a folder");
    let scripts: Vec<&str> = cases.iter().map(|case| case["script"].as_str().expect("a script")).collect();
    let text = format!("let w = tb::summary_writer(root + \"/runs/a\");\n{};", scripts.join(";\n"));
    run(root.path(), &text).unwrap_or_else(|e| panic!("{e:#}"));
    let found = files(&root.path().join("runs/a"));
    assert_eq!(found.len(), 1);
    let name = found[0].file_name().expect("a name").to_string_lossy().into_owned();
    assert!(name.starts_with("events.out.tfevents."), "{name}");
    let records = records(&found[0]);
    assert!(records[0].windows(13).any(|part| part == b"brain.Event:2"));
    for (case, record) in cases.iter().zip(&records[1..]) {
        let hex: String = record.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, case["record"].as_str().expect("hexadecimal digits"), "{}", case["script"]);
    }
    assert_eq!(records.len(), cases.len() + 1);
}

/// All but the time, which is that of the call.
#[test]
fn settings_of_runs_are_those_of_pytorch() {
    let text = std::fs::read_to_string(folder("fixtures").join("events.json")).expect("the fixtures");
    let cases: Value = serde_json::from_str(&text).expect("JSON");
    let cases: Vec<&Value> =
        cases.as_array().expect("a list").iter().filter(|case| case.get("hparams").is_some()).collect();
    let root = tempfile::tempdir().expect("a folder");
    let scripts: Vec<&str> = cases.iter().map(|case| case["script"].as_str().expect("a script")).collect();
    let text = format!("let w = tb::summary_writer(root + \"/runs\");\n{};", scripts.join(";\n"));
    run(root.path(), &text).unwrap_or_else(|e| panic!("{e:#}"));
    for (case, name) in cases.iter().zip(["a", "b"]) {
        let records = records(&files(&root.path().join("runs").join(name))[0]);
        let expected = case["hparams"].as_array().expect("a list");
        assert_eq!(records.len(), expected.len() + 1);
        for (record, expected) in records[1..].iter().zip(expected) {
            let hex: String = record[12 + 9..record.len() - 4].iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(hex, expected.as_str().expect("hexadecimal digits"), "{}", case["script"]);
        }
    }
    assert_eq!(cases.len(), 2);
}

#[test]
fn images_and_several_curves_are_written() {
    let root = tempfile::tempdir().expect("a folder");
    let text = r#"
        let w = tb::summary_writer(root + "/b", #{filename_suffix: ".x"});
        w.add_image("gray", rand([1, 4, 6]), 1);
        w.add_image("color", zeros([5, 7, 3], #{dtype: "u8"}), #{dataformats: "HWC"});
        w.add_images("grid", rand([10, 3, 4, 5]), 3);
        w.add_scalars("loss/all", #{train: 0.5, test: tensor(0.75)}, 2);
        w.add_scalars("loss/all", #{train: 0.25}, 3);
        w.flush();
        w.close();
    "#;
    run(root.path(), text).unwrap_or_else(|e| panic!("{e:#}"));
    let images = records(&files(&root.path().join("b"))[0]);
    for (record, [height, width]) in images[1..].iter().zip([[4, 6], [5, 7], [8, 40]]) {
        let sizes = [8, height, 16, width, 24, 3];
        assert!(record.windows(6).any(|part| part == sizes), "{record:?}");
        let png = record.windows(4).position(|part| part == b"\x89PNG").expect("a picture");
        assert_eq!(record[png + 16..png + 24], [0, 0, 0, width, 0, 0, 0, height]);
    }
    assert_eq!(images.len(), 4);
    assert_eq!(records(&files(&root.path().join("b/loss_all_train"))[0]).len(), 3);
    assert_eq!(records(&files(&root.path().join("b/loss_all_test"))[0]).len(), 2);
}

#[test]
fn what_is_wrong_is_told() {
    let root = tempfile::tempdir().expect("a folder");
    let cases = [
        ("tb::summary_writer(\"/nowhere/runs\")", "E0604"),
        ("tb::summary_writer(root + \"/new/../../x\")", "E0206"),
        ("tb::summary_writer(3)", "E0204"),
        ("w.add_scalar(3, 1.0)", "E0204"),
        ("w.add_scalar(\"x\", \"y\")", "E0204"),
        ("w.add_scalar(\"x\", ones([2]))", "E0201"),
        ("w.add_scalar(\"x\", 1.0, 0.5)", "E0204"),
        ("w.add_scalars(\"x\", [1])", "E0204"),
        ("w.add_histogram(\"x\", ones([0]))", "E0206"),
        ("w.add_histogram(\"x\", tensor([0.0 / 0.0]))", "E0206"),
        ("w.add_image(\"x\", ones([2, 2]))", "E0201"),
        ("w.add_image(\"x\", ones([2, 2, 2]))", "E0201"),
        ("w.add_image(\"x\", ones([2, 2]), #{dataformats: \"WH\"})", "E0206"),
        ("w.add_text(\"x\", 1)", "E0204"),
    ];
    for (text, code) in cases {
        let error = run(root.path(), &format!("let w = tb::summary_writer(root + \"/c\");\n{text}")).expect_err(text);
        assert_eq!(error.code().to_string(), code, "{text}: {error:#}");
        assert_eq!(error.location().map(|at| at.line), Some(3), "{text}: {error:#}");
    }
}
