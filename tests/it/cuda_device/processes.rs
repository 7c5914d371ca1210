//! What needs a process of its own: a context that dies, a program that starts again.

use super::*;

/// Runs one test of this binary in a process of its own, with the mark that lets it do its part.
fn child(test: &str, settings: &[(&str, &str)]) -> String {
    let mut command = std::process::Command::new(std::env::current_exe().expect("this binary"));
    command.args(["--exact", test, "--nocapture", "--test-threads=1"]).env(MARK, test);
    let output = command.envs(settings.iter().copied()).output().expect("a process");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stdout));
    said
}

const MARK: &str = "TSCRIPT_TEST_CHILD";

fn is_child(test: &str) -> bool {
    std::env::var(MARK).is_ok_and(|mark| mark == test)
}

#[test]
fn a_dead_context_is_recognized() {
    const NAME: &str = "cuda_device::processes::a_dead_context_is_recognized";
    let Some((_alone, context)) = gpu() else { return };
    if !is_child(NAME) {
        eprintln!("{}", child(NAME, &[]));
        return;
    }
    let stream = Stream::new(context, 0).expect("a stream");
    let kept = Buffer::new(context, 1 << 20);
    let broken = context.kernels().function(&text(), "broken").expect("a kernel");
    stream.launch_packed(broken, &Shape::line(1, 1), &kept.address.to_ne_bytes()).expect("a launch");
    let error = stream.wait().expect_err("an address that is nobody's");
    assert!(error.is_dead(), "{error}");
    assert_eq!(context.death(), Some(&error));
    let later =
        [stream.wait().err(), stream.is_idle().err(), context.memory_info().err(), Stream::new(context, 0).err()];
    assert_eq!(later, [Some(error); 4], "all calls tell the first error");
    assert!(DeviceMemory::new(context).reserve(1024).is_none());
    eprintln!("it died of: {error}");
}

#[test]
fn a_second_start_compiles_nothing() {
    const NAME: &str = "cuda_device::processes::a_second_start_compiles_nothing";
    if !is_child(NAME) {
        let Some((_alone, _)) = gpu() else { return };
        let folder = tempfile::tempdir().expect("a folder");
        let home = folder.path().to_str().expect("a path");
        for (start, said) in [("first", "compiled: 1,"), ("second", "compiled: 0,"), ("third", "compiled: 0,")] {
            let reported = child(NAME, &[("XDG_CACHE_HOME", home)]);
            assert!(reported.contains(said), "{reported}");
            eprintln!("{start} start: {reported}");
        }
        return;
    }
    let start = Instant::now();
    let ms = || start.elapsed().as_secs_f64() * 1e3;
    let driver = open().expect("a driver");
    let opened = ms();
    let context = driver.devices()[0].context();
    let (made, stream) = (ms(), Stream::new(context, 0).expect("a stream"));
    let function = context.kernels().function(&text(), "nothing").expect("a kernel");
    let loaded = ms();
    stream.launch_packed(function, &Shape::line(1, 1), &[]).expect("a launch");
    stream.wait().expect("its end");
    eprintln!(
        "driver {opened:.0} ms, context {made:.0} ms, kernel {loaded:.0} ms, done {:.0} ms, {:?}",
        ms(),
        context.kernels().counts()
    );
}
