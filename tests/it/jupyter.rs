//! The kernel for notebooks, through Jupyter's own client: `tests/jupyter/test_kernel.py`. It needs the packages of
//! `tests/jupyter/requirements.txt` in the environment that `TSCRIPT_JUPYTER` names; without them it says so and passes,
//! unless `TSCRIPT_REQUIRE_JUPYTER=1`.

use super::scripts::{program, root};
use std::path::PathBuf;
use std::process::Command;

/// The Python that has the packages.
fn python() -> Option<PathBuf> {
    let folder = std::env::var_os("TSCRIPT_JUPYTER").map(PathBuf::from);
    let python = folder.map_or("python3".into(), |folder| folder.join("bin").join("python"));
    let has = Command::new(&python).args(["-c", "import jupyter_kernel_test, nbclient"]).output();
    has.is_ok_and(|done| done.status.success()).then_some(python)
}

#[test]
fn notebooks_run() {
    let Some(python) = python() else {
        assert!(std::env::var_os("TSCRIPT_REQUIRE_JUPYTER").is_none(), "Jupyter's client is not there");
        return println!("left out: no Python with jupyter_client");
    };
    let script = root().join("tests").join("jupyter").join("test_kernel.py");
    let done = Command::new(python).arg(script).env("TSCRIPT", program()).output().expect("Python starts");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

#[test]
fn a_kernel_is_installed_found_and_removed() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = |words: &[&str]| {
        let run =
            Command::new(program()).args(words).env("JUPYTER_DATA_DIR", folder.path()).env("JUPYTER_PATH", "").output();
        let done = run.expect("the program starts");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (done.status.code(), text(&done.stdout), text(&done.stderr))
    };
    let kernel = folder.path().join("kernels").join("gpu");
    let words = ["jupyter", "install", "--name", "gpu", "--display-name", "a GPU", "--", "--simulate-gpus", "1"];
    let (status, told, _) = run(&words);
    assert!(status == Some(0) && told.contains(&kernel.display().to_string()), "{told}");
    let text = std::fs::read_to_string(kernel.join("kernel.json")).expect("a file");
    let spec: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let words: Vec<&str> = spec["argv"].as_array().expect("words").iter().filter_map(|word| word.as_str()).collect();
    assert_eq!(words[1..], ["jupyter", "run", "{connection_file}", "--simulate-gpus", "1"]);
    assert_eq!((&spec["display_name"], &spec["interrupt_mode"]), (&"a GPU".into(), &"message".into()));
    let (_, doctor, _) = run(&["doctor"]);
    assert!(doctor.contains("gpu") && doctor.contains("this program"), "{doctor}");
    assert_eq!(run(&["jupyter", "uninstall", "--name", "gpu"]).0, Some(0));
    assert!(!kernel.exists());
    let (status, _, told) = run(&["jupyter", "uninstall", "--name", "gpu"]);
    assert!(status == Some(1) && told.contains("E0601"), "{told}");
}
