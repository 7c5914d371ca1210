//! The tests of the standard library, written in the language: every `test_*` function of `tests/std/*_test.rhai`, each
//! in a session of its own, as `tscript test` runs them.

use super::scripts::{builder, file_name, none, run, scripts};

#[test]
fn the_librarys_own_tests_hold() {
    let mut problems = Vec::new();
    let mut count = 0;
    for path in scripts("std") {
        let text = std::fs::read_to_string(&path).expect("a script");
        let names = text.lines().filter_map(|line| line.strip_prefix("fn test_"));
        for name in names.filter_map(|rest| rest.split('(').next()) {
            count += 1;
            let ran = run(builder(), &file_name(&path), &format!("{text}\n;test_{name}();\n"));
            if let Err(error) = ran.result {
                problems.push(format!("{}::test_{name}: {error:#}", path.display()));
            }
        }
    }
    assert!(count > 30, "only {count} tests");
    none(problems);
}

/// What PIL makes of the same files: color in another size, and gray.
#[test]
fn images_are_as_pil_reads_them() {
    let text = std::fs::read_to_string("tests/fixtures/images/images.json").expect("the fixtures");
    let rows: Vec<serde_json::Value> = serde_json::from_str(&text).expect("JSON");
    let mut script = "import \"data\" as data; import \"test\" as test;\n\
        let color = data::image_folder(\"tests/fixtures/images\", #{size: [5, 4]});\n\
        let gray = data::image_folder(\"tests/fixtures/images\", #{channels: 1});\n"
        .to_string();
    for (at, row) in rows.iter().enumerate() {
        // A resized pixel may round to the other side.
        script += &format!(
            "test::assert_close(data::get(color, {at}).x * 255.0, tensor({}, #{{dtype: \"f64\"}}), 0.0, 1.01);\n\
             test::assert_close(data::get(gray, {at}).x[0] * 255.0, tensor({}, #{{dtype: \"f64\"}}), 0.0, 0.01);\n",
            row["color"], row["gray"]
        );
    }
    if let Err(error) = run(builder(), "images", &script).result {
        panic!("{error:#}");
    }
}

/// Folders of images obey the host program as files do.
#[test]
fn image_folders_stay_inside_the_permitted_folders() {
    let text = "import \"data\" as data; data::image_folder(\"tests/fixtures/images\");";
    let inside = builder().file_roots(["tests/fixtures"]);
    assert!(run(inside, "images", text).result.is_ok());
    let outside = builder().file_roots(["tests/std"]);
    assert_eq!(run(outside, "images", text).result.err().map(|error| error.code()), Some("E0604".to_string()));
}
