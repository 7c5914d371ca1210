//! Windows that repeat are replayed as graphs, and the device is asked for the same work either way. The program runs
//! on a driver without a device (`cuda_host/driver.cpp`), which writes down all that would run.
//!
//! Wants g++ and NVRTC, as the other tests of CUDA text do; says so and passes where one is missing.

use super::cuda_host::HostGpu;
use super::cuda_text;
use super::scripts::{folder, program};
use std::path::{Path, PathBuf};
use std::process::Command;

/// What cuDNN is made of: without one of them it is not used.
const PARTS: &[&str] = &["libcudnn_graph.so.9", "libcudnn_heuristic.so.9", "libcudnn_engines_precompiled.so.9"];

/// A folder with the driver, under the names that the program looks for.
fn driver(name: &str) -> Option<PathBuf> {
    HostGpu::open()?;
    cuda_text::open()?;
    let made = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("driver-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&made).expect("a folder for the driver");
    let library = made.join("libcuda.so");
    let done = Command::new("g++")
        .args(["-std=c++17", "-O1", "-shared", "-fPIC", "-o"])
        .args([&library, &folder("it/cuda_host/driver.cpp")])
        .output()
        .expect("g++ runs");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    for other in ["libcublasLt.so", "libcudnn.so.9"].iter().chain(PARTS) {
        std::os::unix::fs::symlink("libcuda.so", made.join(other)).expect("a second name");
    }
    Some(made)
}

/// What the devices were asked for, line by line, and what the script printed.
fn ask(driver: &Path, script: &str, environment: &[(&str, &str)]) -> (Vec<String>, String) {
    let (file, log) = (driver.join("script.rhai"), driver.join("log"));
    std::fs::write(&file, script).expect("a script");
    let done = Command::new(program())
        .args([Path::new("run"), &file])
        .envs(environment.iter().copied())
        .env("LD_LIBRARY_PATH", driver)
        .env("XDG_CACHE_HOME", driver.parent().expect("it has one"))
        .env("DRIVER_LOG", &log)
        .output()
        .expect("the program runs");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let log = std::fs::read_to_string(log).expect("the driver's log");
    (log.lines().map(str::to_string).collect(), String::from_utf8_lossy(&done.stdout).into_owned())
}

/// The numbers of a log's last line: commands queued, graphs started, parameters changed, contexts.
fn counts(log: &[String]) -> Vec<u64> {
    let last = log.last().expect("a line at the end");
    assert!(last.starts_with("calls:"), "{last}");
    last.split(|c: char| !c.is_ascii_digit()).filter_map(|word| word.parse().ok()).collect()
}

/// Loops with dropout (other random numbers each time), Adam (other rates), an index that may be bad (an error slot),
/// reductions, a result that outlives its round (other addresses), other shapes in between, and an emptied cache.
const LOOPS: &str = r#"
import "nn" as nn;
import "optim" as optim;
set_default_device("cuda");
manual_seed(0);
let model = nn::sequential([nn::linear(8, 16), nn::relu(), nn::dropout(0.5), nn::linear(16, 4)]).cuda();
for kind in ["sgd", "adam"] {
    let opt = if kind == "sgd" { optim::sgd(model.parameters(), #{lr: 0.01}) } else { optim::adam(model.parameters()) };
    let x = randn([12, 8]);
    let y = randint(0, 4, [12]);
    let kept = ();
    for i in 0..40 {
        opt.zero_grad();
        let loss = cross_entropy(model.forward(x), y);
        loss.backward();
        opt.step();
        if i % 10 == 0 { print(loss.item()); }
        if i == 9 { kept = loss; }
        if i == 22 { cuda::empty_cache(); x = randn([10, 8]); y = randint(0, 4, [10]); }
    }
}
let table = randn([9, 4]);
for i in 0..12 {
    let picked = table.index_select(0, tensor([i % 9, 1]));
    let sums = (picked.cumsum(0) @ table.T).softmax(-1).sum(0);
    if i == 11 { print(sums.shape); }
}
synchronize();
"#;

#[test]
fn repeated_windows_are_graphs_that_do_the_same_work() {
    let Some(driver) = driver("graphs") else { return };
    let (with, said) = ask(&driver, LOOPS, &[]);
    let (without, also) = ask(&driver, LOOPS, &[("TSCRIPT_CUDA_GRAPHS", "0")]);
    assert_eq!(said, also);
    let (one, other) = (&with[..with.len() - 1], &without[..without.len() - 1]);
    let differs = one.iter().zip(other).position(|(a, b)| a != b);
    assert_eq!(differs, None, "{:?} {:?}", differs.map(|at| &one[at]), differs.map(|at| &other[at]));
    assert_eq!(one.len(), other.len());
    let ([queued, started, changed, _], [all, none, ..]) = (&counts(&with)[..], &counts(&without)[..]) else {
        panic!("four numbers")
    };
    assert!(*none == 0 && *all == other.len() as u64);
    assert!(*started > 30 && queued * 3 < all * 2, "{started} graphs, {queued} of {all} commands one by one");
    // Dropout's counter and the error slot, for each graph; not every kernel's parameters.
    assert!(*changed > *started / 2 && *changed < all - queued, "{changed} changed for {started} graphs");
    std::fs::remove_dir_all(driver).expect("the folder is ours");
}

/// A round is too small to be worth a window.
const ROUNDS: &str = r#"
set_default_device("cuda");
let w = randn([4], #{requires_grad: true});
let b = randn([4]);
for i in 0..400 { (w * b).sum().backward(); }
synchronize();
print(w.grad.shape);
"#;

#[test]
fn small_rounds_share_a_graph_and_stay_apart_in_it() {
    let Some(driver) = driver("rounds") else { return };
    let (with, said) = ask(&driver, ROUNDS, &[]);
    let (without, also) = ask(&driver, ROUNDS, &[("TSCRIPT_CUDA_GRAPHS", "0")]);
    assert_eq!((&said, &with[..with.len() - 1]), (&also, &without[..without.len() - 1]));
    let started = counts(&with)[1];
    assert!(started > 10 && started < 400 / 8, "{started} graphs for 400 rounds");
    // Merged over rounds, a window would be a handful of kernels, of other texts with each number of rounds.
    assert!(with.len() > 2 * 400, "{} commands for 400 rounds", with.len() - 1);
    std::fs::remove_dir_all(driver).expect("the folder is ours");
}

/// A cache that grows by one each time, as in decoding; and kernels of two shapes that alternate.
const GROWING: &str = r#"
set_default_device("cuda");
let kept = zeros([1, 2, 64, 16]);
let x = randn([1, 2, 1, 16]);
for at in 0..60 {
    kept.narrow(2, at, 1).copy_(x);
    let seen = kept.narrow(2, 0, at + 1);
    let y = scaled_dot_product_attention(x + 1, seen, seen).relu();
    x = (y.transpose(1, 2).reshape([2, 16]).cumsum(1) * 0.5).reshape([1, 2, 1, 16]);
    synchronize();
}
let both = [randn([32, 8]), randn([48, 8])];
for i in 0..60 {
    let y = both[i % 2].cumsum(0).flip([0]).cumsum(0).flip([0]);
    synchronize();
}
"#;

#[test]
fn windows_whose_kernels_sizes_change_stay_graphs() {
    let Some(driver) = driver("growing") else { return };
    let (with, said) = ask(&driver, GROWING, &[]);
    let (without, also) = ask(&driver, GROWING, &[("TSCRIPT_CUDA_GRAPHS", "0")]);
    assert_eq!((&said, &with[..with.len() - 1]), (&also, &without[..without.len() - 1]));
    let started = counts(&with)[1];
    assert!(started > 80, "{started} graphs for 120 rounds");
    std::fs::remove_dir_all(driver).expect("the folder is ours");
}

/// A model that runs in a loop, whose results nobody reads meanwhile: layers in a loop of their own, and a head.
const CALLED: &str = r#"
import "nn" as nn;
set_default_device("cuda");
manual_seed(0);
let layers = (0..4).map(|i| nn::transformer_encoder_layer(32, 4, #{dim_feedforward: 64, batch_first: true, dropout: 0.0}));
let head = nn::linear(32, 8);
for m in layers { m.cuda().eval(); }
head.cuda();
let x = randn([2, 8, 32]);
let y = ();
no_grad {
    for i in 0..60 {
        let h = x;
        for layer in layers { h = layer(h); }
        y = head(h).softmax(-1);
    }
    print(y.shape);
}
"#;

#[test]
fn models_that_run_in_a_loop_are_a_graph_a_round() {
    let Some(driver) = driver("called") else { return };
    let (with, said) = ask(&driver, CALLED, &[]);
    let (without, also) = ask(&driver, CALLED, &[("TSCRIPT_CUDA_GRAPHS", "0")]);
    assert_eq!((&said, &with[..with.len() - 1]), (&also, &without[..without.len() - 1]));
    let started = counts(&with)[1];
    assert!((50..=60).contains(&started), "{started} graphs for 60 rounds");
    std::fs::remove_dir_all(driver).expect("the folder is ours");
}

#[test]
fn further_gpus_are_left_alone_until_something_is_put_there() {
    let Some(driver) = driver("two") else { return };
    let two = [("DRIVER_DEVICES", "2")];
    let opened = |script: &str| counts(&ask(&driver, script, &two).0)[3];
    assert_eq!(opened("print(cuda::device_count()); let x = ones([4], #{device: \"cuda\"}); synchronize();"), 1);
    assert_eq!(opened("let x = ones([4], #{device: \"cuda:1\"}); synchronize();"), 1);
    assert_eq!(
        opened("let x = ones([4], #{device: \"cuda:0\"}).to(\"cuda:1\"); synchronize(); cuda::empty_cache();"),
        2
    );
    std::fs::remove_dir_all(driver).expect("the folder is ours");
}

/// Labels may be bad, so that each step may be held.
const STEPS: &str = r#"
import "nn" as nn;
import "optim" as optim;
set_default_device("cuda");
let model = nn::sequential([nn::linear(8, 64), nn::relu(), nn::linear(64, 4)]).cuda();
let opt = optim::OPTIMIZER(model.parameters(), #{lr: 0.01});
let x = randn([12, 8]);
let y = randint(0, 4, [12]);
for i in 0..10 {
    opt.zero_grad();
    cross_entropy(model.forward(x), y).backward();
    opt.step();
}
synchronize();
"#;

/// One counts, makes the numbers of the step, and decides whether it is held; the other steps all parameters.
#[test]
fn a_step_of_an_optimizer_is_two_kernels() {
    let Some(driver) = driver("steps") else { return };
    for optimizer in ["sgd", "adam", "adamw", "adagrad", "lion"] {
        let (log, _) = ask(&driver, &STEPS.replace("OPTIMIZER", optimizer), &[("TSCRIPT_CUDA_GRAPHS", "0")]);
        let kernels = |name: &str| log.iter().filter(|line| line.starts_with(name)).count();
        assert_eq!((kernels("ts_foreach "), kernels("ts_gate ")), (20, 0), "{optimizer}");
    }
    std::fs::remove_dir_all(driver).expect("the folder is ours");
}

/// A convolution before others, of one tap, in groups, transposed, and of a shape that the library has no way for.
const CONVOLUTIONS: &str = r#"
import "nn" as nn;
import "optim" as optim;
set_default_device("cuda");
manual_seed(0);
let model = nn::sequential([nn::conv2d(3, 8, 3), nn::relu(), nn::conv2d(8, 8, 3, #{groups: 4}), nn::conv2d(8, 4, 1),
    nn::conv_transpose2d(4, 2, 2, #{stride: 2})]).cuda();
let opt = optim::sgd(model.parameters(), #{lr: 0.01});
let x = randn([2, 3, 9, 9]);
for i in 0..30 {
    opt.zero_grad();
    model.forward(x).sum().backward();
    opt.step();
}
synchronize();
print(cuda::memory_allocated());
"#;

#[test]
fn convolutions_go_to_the_library_where_it_has_a_way() {
    let Some(driver) = driver("convolutions") else { return };
    let kinds = |log: &[String]| {
        let of = |kind: &str| log.iter().filter(|line| line.starts_with(kind)).count();
        [of("convolution "), of("ts_im2col "), of("ts_conv")]
    };
    let no_graphs = ("TSCRIPT_CUDA_GRAPHS", "0");
    let (with, said) = ask(&driver, CONVOLUTIONS, &[]);
    let (one_by_one, also) = ask(&driver, CONVOLUTIONS, &[no_graphs]);
    assert_eq!((&said, &with[..with.len() - 1]), (&also, &one_by_one[..one_by_one.len() - 1]));
    assert!(counts(&with)[1] > 10, "graphs with convolutions in them: {:?}", counts(&with));
    // One tap is a product each time, and so is the transposed convolution, by phases of one tap each; for the rest: forward,
    // the gradients by weight, by input of all but the first.
    assert_eq!(kinds(&with), [30 * (2 + 3 + 2), 0, 0]);
    // The image of the first layer has rows of 9.
    let (some, also) = ask(&driver, CONVOLUTIONS, &[("DRIVER_REFUSES", "9")]);
    assert_eq!((kinds(&some), &said), ([30 * (1 + 2 + 2), 30 * 2, 0], &also));
    let (plain, also) = ask(&driver, CONVOLUTIONS, &[("DRIVER_REFUSES", "9"), no_graphs]);
    assert_eq!((&said, &some[..some.len() - 1]), (&also, &plain[..plain.len() - 1]));
    let (hidden, also) = ask(&driver, CONVOLUTIONS, &[("TSCRIPT_TEST_HIDE", "Dnn")]);
    assert!(kinds(&hidden)[0] == 0 && kinds(&hidden)[1] > 0 && said == also);
    // Half of the library is none.
    std::fs::remove_file(driver.join(PARTS[1])).expect("a name");
    assert_eq!(kinds(&ask(&driver, CONVOLUTIONS, &[]).0), kinds(&hidden));
    std::fs::remove_dir_all(driver).expect("the folder is ours");
}
