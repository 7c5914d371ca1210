//! Devices that die under a script, and how exact products are: the program on real GPUs. Each run is a process of its
//! own, since a dead context stays dead.

use super::gpu;
use crate::scripts::real_gpus;

/// The program, with a launch that goes astray.
fn run(words: &[&str], stray: &str, script: &str) -> (String, String, i32) {
    super::run(words, &[("TSCRIPT_TEST_STRAY", stray)], script)
}

const SCRIPT: &str = "let x = ones([4], #{device: \"cuda:0\"});
let y = x + 1;
let z = y.cumsum(0);
let w = z @ z;
print(w.item());
";

#[test]
fn an_illegal_address_is_reported_once_with_the_work_in_flight() {
    if gpu().is_none() {
        return;
    }
    let (out, reported, status) = run(&[], "", SCRIPT);
    assert_eq!((out.as_str(), status), ("120.0\n", 0), "{reported}");
    // One at a time: the very operation.
    for (stray, line, name) in [("lost:2@cuda:0", 2, "add"), ("lost:3@cuda:0", 3, "cumsum")] {
        let (out, reported, status) = run(&["--blocking"], stray, SCRIPT);
        assert_eq!((out.as_str(), status), ("", 3), "{reported}");
        assert_eq!(reported.matches("E0408").count(), 1, "{reported}");
        assert!(reported.contains(&format!("cuda:0 was lost while it ran `{name}`")), "{reported}");
        assert!(reported.contains(&format!("script.rhai:{line}:")), "{reported}");
        assert!(reported.contains("CUDA_ERROR_"), "{reported}");
    }
    // Queued: the few that were under way.
    for stray in ["lost:1@cuda:0", "lost:2@cuda:0"] {
        let (out, reported, status) = run(&[], stray, SCRIPT);
        assert_eq!((out.as_str(), status), ("", 3), "{reported}");
        assert_eq!(reported.matches("E0408").count(), 1, "{reported}");
        assert!(reported.contains("cuda:0 was lost while it ran one of"), "{reported}");
        assert!(reported.contains("`add`, queued here") && reported.contains("`cumsum`, queued here"), "{reported}");
        assert!(reported.contains("--blocking"), "{reported}");
    }
}

#[test]
fn a_lost_device_can_be_caught_and_the_rest_goes_on() {
    if gpu().is_none() {
        return;
    }
    let script = "let x = ones([4], #{device: \"cuda:0\"});
for n in 0..3 { try { print((x + n).sum().item()); } catch (e) { print(e.code); } }
try { ones([2], #{device: \"cuda:0\"}); synchronize(); } catch (e) { print(e.code); }
print(ones([3]).sum().item());
";
    let (out, reported, status) = run(&[], "lost:1@cuda:0", script);
    assert_eq!((out.as_str(), status), ("E0408\nE0408\nE0408\nE0408\n3.0\n", 0), "{reported}");
    if real_gpus() < 2 {
        eprintln!("not tested: that another GPU goes on (there is one)");
        return;
    }
    // CUDA gives the process nothing new after that, on any GPU; it is told so.
    let script = format!("let other = ones([5], #{{device: \"cuda:1\"}});\n{script}print((other * 2).sum().item());\n");
    let (out, reported, status) = run(&[], "lost:1@cuda:0", &script);
    let lives = out.ends_with("3.0\n10.0\n") && status == 0;
    let says = status == 3 && reported.contains("cuda:0 was lost before");
    assert!(out.starts_with("E0408\nE0408\nE0408\nE0408\n3.0\n") && (lives || says), "{out}{reported}");
}

#[test]
fn products_are_as_exact_as_was_asked() {
    if gpu().is_none() {
        return;
    }
    let script = "manual_seed(1);
let a = randn([256, 256]);
let b = randn([256, 256]);
let exact = a.double() @ b.double();
let off = |p| {
    set_float32_matmul_precision(p);
    let y = a.cuda() @ b.cuda();
    ((y.cpu().double() - exact).abs().max() / exact.abs().max()).item()
};
for p in [\"highest\", \"high\", \"medium\", \"highest\"] {
    let e = off.call(p);
    print(if e < 3e-6 { \"f32\" } else if e > 2e-5 && e < 5e-3 { \"tf32\" } else { `${e}` });
}
";
    let (out, reported, status) = run(&[], "", script);
    assert_eq!((out.as_str(), status), ("f32\ntf32\ntf32\nf32\n", 0), "{reported}");
}
