//! Late errors by the rules of the language, on the CPU and on GPUs, simulated or real (`TSCRIPT_TEST_DEVICES=cuda`),
//! with windows of many and of one, blocking and with `--check`: the same line is told in every mode.

use super::scripts::{Ran, builder, on_real_gpus, run, with_gpus};
use tscript::internals::base::span::Site;
use tscript::{Builder, Error};

/// A way to run a script: what it is called, the device, whether operations run to their end at once.
struct Mode {
    name: String,
    device: &'static str,
    at_once: bool,
    builder: Builder,
}

fn modes() -> Vec<Mode> {
    let mut all = Vec::new();
    let mut add = |name: &str, device, at_once, builder| {
        all.push(Mode { name: format!("{device} {name}"), device, at_once, builder });
    };
    for device in ["cpu", "cuda:0"] {
        let base = || if on_real_gpus() { builder() } else { builder().simulate_gpus(2) };
        add("by default", device, false, base());
        add("with windows of one", device, false, base().window(1));
        add("blocking", device, true, base().blocking(true));
        add("with checks", device, true, base().check(true));
    }
    for (seed, name) in ["seed 0", "seed 1", "seed 2"].into_iter().enumerate().filter(|_| !on_real_gpus()) {
        add(name, "cuda:0", false, builder().simulate_gpus(2).simulate_seed(seed as u64));
    }
    all
}

/// Two GPUs with a seed of virtual time; real ones have none and run once.
fn seeded(seed: Option<u64>) -> Option<Builder> {
    if on_real_gpus() && seed.is_some() {
        return None;
    }
    let base = with_gpus(builder(), 2)?;
    Some(if let Some(seed) = seed { base.simulate_seed(seed) } else { base })
}

fn on(mode: Mode, text: &str) -> Ran {
    run(mode.builder, "late", &text.replace("DEV", mode.device))
}

fn line(error: &Error, site: Site) -> usize {
    error.sources().location(site).map_or(0, |at| at.line)
}

/// Lines of the labels, with their texts.
fn labels(error: &Error) -> Vec<(usize, String)> {
    error.diag().labels.iter().map(|label| (line(error, label.origin.user), label.text.clone())).collect()
}

/// Runs in every mode that does not run operations at once; all print the same and end without an error.
fn prints(text: &str, expected: &str) {
    for mode in modes().into_iter().filter(|mode| !mode.at_once) {
        let name = mode.name.clone();
        let ran = on(mode, text);
        assert!(ran.result.is_ok(), "{name}: {:?}\n{}", ran.result.err(), ran.printed);
        assert_eq!(ran.printed, expected, "{name}");
    }
}

/// Code, what makes the bad operand (line 2), the operation (line 4).
const FAULTS: &[(&str, &str, &str)] = &[
    ("E0401", "tensor([3, 11], #{device: DEV})", "arange(10, #{device: DEV})[i]"),
    ("E0401", "tensor([3, -11], #{device: DEV})", "arange(10, #{device: DEV})[i]"),
    ("E0401", "tensor([0, 4], #{device: DEV})", "ones([10, 4], #{device: DEV})[[.., i]]"),
    ("E0401", "tensor([0, 4], #{device: DEV})", "ones([9, 4], #{device: DEV})[[tensor([8, 8], #{device: DEV}), i]]"),
    ("E0401", "tensor([3, 11], #{device: DEV})", "arange(10, #{device: DEV}).index_select(0, i)"),
    ("E0401", "tensor([3, 11], #{device: DEV})", "arange(10, #{device: DEV}).gather(0, i)"),
    ("E0401", "tensor([3, 11], #{device: DEV})", "arange(10, #{device: DEV}).take(i)"),
    ("E0401", "tensor([3, 11], #{device: DEV})", "arange(10, #{device: DEV}).take_along_dim(i, 0)"),
    ("E0401", "tensor([3, 11], #{device: DEV})", "embedding(i, ones([10, 3], #{device: DEV}))"),
    (
        "E0401",
        "tensor([3, 11], #{device: DEV})",
        "zeros([10], #{device: DEV}).scatter(0, i, ones([2], #{device: DEV}))",
    ),
    ("E0401", "tensor([3, 11], #{device: DEV})", "arange(10, #{device: DEV}).scatter(0, i, arange(2, #{device: DEV}))"),
    ("E0401", "tensor([3, 11], #{device: DEV})", "zeros([10], #{device: DEV}).scatter(0, i, 2.0)"),
    (
        "E0401",
        "tensor([3, 11], #{device: DEV})",
        "zeros([10], #{device: DEV}).scatter_add(0, i, ones([2], #{device: DEV}))",
    ),
    (
        "E0401",
        "tensor([3, 11], #{device: DEV})",
        "zeros([10], #{device: DEV}).scatter_add_(0, i, ones([2], #{device: DEV}))",
    ),
    (
        "E0401",
        "tensor([3, 11], #{device: DEV})",
        "zeros([10], #{device: DEV}).index_add(0, i, ones([2], #{device: DEV}))",
    ),
    (
        "E0401",
        "tensor([3, 11], #{device: DEV})",
        "zeros([10], #{device: DEV}).index_copy(0, i, ones([2], #{device: DEV}))",
    ),
    ("E0401", "tensor([3, 11], #{device: DEV})", "zeros([10], #{device: DEV}).index_fill(0, i, 1.0)"),
    ("E0401", "tensor([3, 11], #{device: DEV})", "{ let x = zeros([10], #{device: DEV}); x[i] = 5.0; x }"),
    (
        "E0401",
        "tensor([3, 11], #{device: DEV})",
        "{ let x = arange(10, #{device: DEV}); x[i] = arange(2, #{device: DEV}); x }",
    ),
    ("E0401", "tensor([3, 11], #{device: DEV})", "{ let x = zeros([10], #{device: DEV}); x[i] += 5.0; x }"),
    ("E0402", "tensor([0, -1, 2], #{device: DEV})", "cross_entropy(ones([3, 4], #{device: DEV}), i)"),
    ("E0402", "tensor([0, -1, 2], #{device: DEV})", "nll_loss(ones([3, 4], #{device: DEV}), i)"),
    ("E0402", "tensor([0, 5, 2], #{device: DEV})", "one_hot(i, 3)"),
    ("E0403", "tensor([0.5, -0.5], #{device: DEV})", "multinomial(i, 1)"),
    ("E0403", "tensor([0.5, 1.5], #{device: DEV})", "bernoulli(i)"),
    ("E0404", "tensor([1, 0], #{device: DEV})", "tensor([1, 2], #{device: DEV}) % i"),
    ("E0404", "tensor([1, 0], #{device: DEV})", "floor_divide(tensor([1, 2], #{device: DEV}), i)"),
    ("E0405", "tensor([[1.0, 2.0], [2.0, 1.0]], #{device: DEV})", "cholesky(i)"),
    ("E0406", "tensor([[1.0, 2.0], [2.0, 4.0]], #{device: DEV})", "solve(i, ones([2], #{device: DEV}))"),
    ("E0406", "tensor([[1.0, 2.0], [2.0, 4.0]], #{device: DEV})", "inv(i)"),
];

#[test]
fn every_fault_names_the_same_lines_in_every_mode() {
    let mut problems = Vec::new();
    for (code, operand, operation) in FAULTS {
        let text = format!("let before = 1;\nlet i = {operand};\n\nlet y = {operation};\n\nprint(y.sum().item());\n")
            .replace("DEV", "\"DEV\"");
        for mode in modes() {
            let (name, at_once, device) = (mode.name.clone(), mode.at_once, mode.device);
            let Err(error) = on(mode, &text).result else {
                problems.push(format!("{operation}, {name}: no error"));
                continue;
            };
            let place = if device == "cpu" { "cpu" } else { "cuda:0 stream 0" };
            let mut expected = vec![(4, format!("queued here, on {place}"))];
            let made =
                ["index tensor was", "target was", "probabilities were", "divisor was", "matrix was", "matrix was"];
            let which = made[code[4..].parse::<usize>().expect("a digit") - 1];
            expected.push((2, format!("the {which} made here")));
            if !at_once {
                expected.push((6, "noticed here, when its result was needed".to_string()));
            }
            if error.code() != *code || labels(&error) != expected {
                problems.push(format!("{operation}, {name}: {error}, {:?}", labels(&error)));
            }
        }
    }
    assert!(problems.is_empty(), "{} problems:\n{}", problems.len(), problems.join("\n"));
}

#[test]
fn the_lowest_bad_element_is_reported() {
    prints(
        "let i = tensor([1, 70, 3, 80, -90], #{device: \"DEV\"});
         try { arange(10, #{device: \"DEV\"})[i]; } catch (e) { print(e.message); print(e.notes[0].sub_string(0, 9)); }",
        "index 70 is out of range for dimension 0 of size 10\nelement 1\n",
    );
}

#[test]
fn poison_is_of_a_part_and_overwriting_cures_it() {
    prints(
        "let base = zeros([4, 3], #{device: \"DEV\"});
         let source = ones([3], #{device: \"DEV\"});
         base[0].copy_(source[tensor([7, 0, 1], #{device: \"DEV\"})]);
         print(base[1].sum().item());
         for part in [base[0], base, base[[.., 1]]] {
             for again in 0..2 { try { part.sum().item(); } catch (e) { print(e.code); } }
         }
         base[0].fill_(2.0);
         print(base.sum().item());
         print(source.sum().item());",
        "0.0\nE0401\nE0401\nE0401\nE0401\nE0401\nE0401\n6.0\n3.0\n",
    );
}

#[test]
fn poison_goes_along_with_copies_and_devices() {
    if with_gpus(builder(), 2).is_none() {
        return;
    }
    prints(
        "let y = arange(3, #{device: \"DEV\"})[tensor([7], #{device: \"DEV\"})];
         let there = y.to(\"cuda:1\") * 2;
         let home = there.cpu() + 1;
         let copy = zeros([1], #{dtype: \"i64\"});
         copy.copy_(there);
         for x in [there, home, copy, home.to(\"cuda:0\"), y.clone()] {
             try { print(x.item()); } catch (e) { print(`${e.code} ${e.line}`); }
         }
         print(arange(3, #{device: \"cuda:1\"}).sum().item());",
        "E0401 1\nE0401 1\nE0401 1\nE0401 1\nE0401 1\n3\n",
    );
}

#[test]
fn unread_faults_are_reported_at_the_end_and_with_another_error() {
    for mode in modes() {
        let (name, at_once) = (mode.name.clone(), mode.at_once);
        let text = "let x = arange(3, #{device: \"DEV\"});\nx[tensor([7], #{device: \"DEV\"})];\nlet n = 1;\nthrow n;";
        let error = on(mode, text).result.expect_err("it throws");
        let extra: Vec<String> = error.extra().iter().map(|diag| diag.code.to_string()).collect();
        if at_once {
            assert_eq!((error.code().as_str(), extra.len()), ("E0401", 0), "{name}");
        } else {
            assert_eq!(
                (line(&error, error.diag().labels[0].origin.user), extra),
                (4, vec!["E0401".to_string()]),
                "{name}"
            );
        }
    }
    for mode in modes() {
        let name = mode.name.clone();
        let text = "let x = arange(3, #{device: \"DEV\"});\nx[tensor([7], #{device: \"DEV\"})];\nlet n = 1;";
        let error = on(mode, text).result.expect_err("the end tells it");
        assert_eq!((error.code().as_str(), error.location().map(|at| at.line)), ("E0401", Some(2)), "{name}");
        assert!(error.extra().is_empty(), "{name}");
    }
}

#[test]
fn a_try_block_catches_what_it_surrounds_and_nothing_else() {
    for mode in modes() {
        let (name, device) = (mode.name.clone(), mode.device);
        let text = "let x = arange(3, #{device: \"DEV\"});
             let i = tensor([7], #{device: \"DEV\"});
             fn quits(x, i) { try { x[i]; return 1; } catch (e) { print(`${e.code} ${e.line}`); } 2 }
             print(quits(x, i));
             for n in 0..3 { try { if n == 1 { x[i]; continue; } print(n); } catch (e) { print(e.line); } }
             try { try { x[i]; } catch (e) { print(e.line); throw e; } } catch (e) { print(e.code); }
             print(x.sum().item());";
        let ran = on(mode, text);
        assert!(ran.result.is_ok(), "{name} on {device}: {:?}", ran.result.err());
        assert_eq!(ran.printed, "E0401 3\n2\n0\n5\n2\n6\nE0401\n3\n", "{name}");
    }
    prints(
        "let x = arange(3, #{device: \"DEV\"});
         let before = x[tensor([7], #{device: \"DEV\"})];
         try { print(x.sum().item()); } catch (e) { print(\"not the block's\"); }
         try { before.item(); } catch (e) { print(e.line); }",
        "3\n2\n",
    );
}

#[test]
fn synchronize_reports_each_fault_once_the_earliest_first() {
    prints(
        "let x = arange(3, #{device: \"DEV\"});
         let a = x[tensor([7], #{device: \"DEV\"})];
         let b = x[tensor([8], #{device: \"DEV\"})];
         for n in 0..3 {
             try { synchronize(); print(\"nothing\"); } catch (e) { print(e.message.sub_string(0, 7)); }
         }
         for y in [a, b, a] { try { y.item(); } catch (e) { print(e.message.sub_string(0, 7)); } }
         try { synchronize(); print(\"still nothing\"); } catch (e) { print(\"again\"); }",
        "index 7\nindex 8\nnothing\nindex 7\nindex 8\nindex 7\nstill nothing\n",
    );
}

/// What streams are concerned by, by order and not by time; only on devices with streams.
#[test]
fn synchronize_concerns_what_is_ordered_before() {
    let text = "let s = stream(#{device: \"cuda:0\"});
         let t = stream(#{device: \"cuda:0\"});
         let x = arange(3, #{device: \"cuda:0\"});
         let i = tensor([7], #{device: \"cuda:0\"});
         s.wait_stream(default_stream(0));
         with_stream(s) { x[i]; }
         while !s.query() { }
         t.synchronize(); default_stream(0).synchronize(); synchronize(\"cuda:1\");
         print(\"nobody was told\");
         let e = s.record_event();
         t.wait_event(e);
         try { t.synchronize(); print(\"nothing\"); } catch (error) { print(`${error.code} ${error.line}`); }
         s.synchronize();
         with_stream(s) { x[i]; }
         let e = s.record_event();
         while !e.query() { }
         try { e.synchronize(); print(\"nothing\"); } catch (error) { print(error.line); }
         with_stream(s) { x[i]; }
         try { synchronize(\"cuda:0\"); print(\"nothing\"); } catch (error) { print(error.line); }
         synchronize();
         print(\"all told\");";
    for seed in [None, Some(1), Some(2), Some(3), Some(4)] {
        let Some(base) = seeded(seed) else { return };
        let ran = run(base, "streams", text);
        assert!(ran.result.is_ok(), "{seed:?}: {:?}", ran.result.err());
        assert_eq!(ran.printed, "nobody was told\nE0401 6\n14\n18\nall told\n", "{seed:?}");
    }
}

/// A copy or a wait brings faults to another device, to the host, and from there.
#[test]
fn synchronize_of_a_device_concerns_what_its_work_came_after() {
    let text = "let x = arange(3, #{device: \"cuda:0\"});
         fn told(work, device) {
             try { synchronize(device); print(\"nothing\"); } catch (e) { print(e.code, e.line); }
             try { synchronize(); } catch (e) { print(\"left\"); }
         }
         let bad = x[tensor([7])];
         told(bad.to(\"cuda:1\") + 1, \"cuda:1\");
         let bad = x[tensor([7])];
         told(default_stream(\"cuda:1\").wait_stream(default_stream(\"cuda:0\")), 1);
         let bad = x[tensor([7])];
         told(bad.cpu(), \"cpu\");
         let bad = arange(3)[tensor([7])];
         told(bad.to(\"cuda:1\"), \"cuda:1\");
         let bad = x[tensor([7])];
         told(bad.cpu().to(\"cuda:1\"), default_stream(1));
         let bad = x[tensor([7])];
         told(x.cpu(), \"cuda:1\");
         let bad = arange(3)[tensor([7])];
         told(ones([1]).to(\"cuda:1\"), 1);";
    for seed in [None, Some(1), Some(2), Some(3)] {
        let Some(base) = seeded(seed) else { return };
        let ran = run(base, "devices", text);
        assert!(ran.result.is_ok(), "{seed:?}: {:?}", ran.result.err());
        let concerned = [6, 8, 10, 12, 14].map(|line| format!("E0401 {line}\n")).concat();
        assert_eq!(ran.printed, concerned + "nothing\nleft\nnothing\nleft\n", "{seed:?}");
    }
}

#[test]
fn a_tensor_reached_by_several_faults_reports_the_one_queued_first() {
    let text = "let s = stream(#{device: \"cuda:0\"});
         let x = arange(3, #{device: \"cuda:0\"});
         let i = tensor([7], #{device: \"cuda:0\"});
         let j = tensor([8], #{device: \"cuda:1\"});
         cuda::sleep(20);
         let a = x[i];
         let b = arange(3, #{device: \"cuda:1\"})[j];
         let sum = b.to(\"cuda:0\") + a;
         try { sum.item(); } catch (e) { print(e.message.sub_string(0, 7)); }
         try { synchronize(); } catch (e) { print(e.message.sub_string(0, 7)); }";
    for seed in [None, Some(1), Some(2), Some(3), Some(4), Some(5)] {
        let Some(base) = seeded(seed) else { return };
        let ran = run(base, "several", text);
        assert!(ran.result.is_ok(), "{seed:?}: {:?}", ran.result.err());
        assert_eq!(ran.printed, "index 7\nindex 8\n", "{seed:?}");
    }
}

/// A gradient meets the bad index that its operation met, on a stream that may come to it before the fault is told or
/// after.
#[test]
fn a_fault_that_a_gradient_repeats_is_reported_once() {
    let text = "let t = tensor([0.25, -0.75, 1.75]);
         let p = tensor([[0.2, -0.4, 0.6], [0.8, 1.0, -1.2]], #{requires_grad: true});
         let s = stream();
         s.wait_stream(current_stream());
         with_stream(s) { t = p.index_select(0, tensor([0, 6])).sum() * t; }
         current_stream().wait_stream(s);
         let l = (t.relu() * 2).sum();
         with_stream(s) { cuda::sleep(30); }
         l.backward();
         try { t.to_array(); } catch (e) { print(e.code); }
         print(\"told\");";
    for seed in [None, Some(1), Some(2), Some(3), Some(4), Some(5)] {
        let Some(base) = seeded(seed) else { return };
        let ran = run(base.device("cuda:0"), "repeated", text);
        assert!(ran.result.is_ok(), "{seed:?}: {:?}", ran.result.err());
        assert_eq!(ran.printed, "E0401\ntold\n", "{seed:?}");
    }
}

#[test]
fn an_optimizer_changes_nothing_while_a_fault_is_unreported() {
    prints(
        "import \"optim\" as optim;
         let p = ones([2], #{device: \"DEV\", requires_grad: true});
         let opt = optim::sgd([p], #{lr: 1.0});
         let x = arange(3, #{device: \"DEV\"});
         for bad in [false, true, false] {
             try {
                 let w = if bad { x[tensor([9], #{device: \"DEV\"})] } else { x[tensor([1], #{device: \"DEV\"})] };
                 opt.zero_grad();
                 (p * w).sum().backward();
                 opt.step();
             } catch (e) { print(e.code); }
             print(p.detach().cpu());
         }",
        "tensor([0., 0.])\nE0401\ntensor([0., 0.])\ntensor([-1., -1.])\n",
    );
}

#[test]
fn a_fault_shows_the_calls_of_the_time_when_it_was_queued() {
    let text = "fn look(x, i) {\n    x[i]\n}\nfn outer(x, i) {\n    let y = look(x, i);\n    y\n}\nfn show(y) {\n    print(y);\n}
let m = #{go: |x, i| outer(x, i)};\nlet x = arange(10, #{device: \"DEV\"});\nlet i = tensor([11], #{device: \"DEV\"});\nlet y = m.go(x, i);\nshow(y);";
    for mode in modes() {
        let name = mode.name.clone();
        let error = on(mode, text).result.expect_err("a bad index");
        let frames: Vec<(String, usize)> =
            error.diag().stack.iter().map(|frame| (frame.function.clone(), line(&error, frame.call))).collect();
        let all = [("look", 5), ("outer", 11), ("go", 14)].map(|(name, line)| (name.to_string(), line));
        assert_eq!(frames, all, "{name}");
    }
    for mode in modes() {
        let name = mode.name.clone();
        let text = "let y = arange(10, #{device: \"DEV\"})[tensor([11], #{device: \"DEV\"})];\nfn show(y) { print(y); }\nshow(y);";
        let error = on(mode, text).result.expect_err("a bad index");
        assert!(error.diag().stack.is_empty(), "{name}: the call that noticed has no part in it");
    }
}

#[test]
fn an_operation_inside_the_library_is_labeled_at_the_users_line() {
    for mode in modes() {
        let name = mode.name.clone();
        let text = "import \"nn\" as nn;\nlet e = nn::embedding(10, 3).to(\"DEV\");\nlet i = tensor([11], #{device: \"DEV\"});\nlet y = e.forward(i);\nprint(y);";
        let error = on(mode, text).result.expect_err("a bad index");
        let first = &error.diag().labels[0].origin;
        assert_eq!(line(&error, first.user), 4, "{name}");
        assert!(error.sources().is_std(first.inner), "{name}: the library's line is known too");
    }
}

#[test]
fn a_lost_device_that_was_caught_is_no_failure_and_others_go_on() {
    let text = "let x = ones([4], #{device: \"cuda:1\"});
         let here = ones([4], #{device: \"cuda:0\"});
         let y = x + 1;
         let z = y * 2;
         let moved = z.to(\"cuda:0\");
         for t in [y, z, moved, x] { try { t.sum().item(); print(\"a value\"); } catch (e) { print(e.code); } }
         try { x + 1; } catch (e) { print(e.code); }
         print(here.sum().item());";
    for (nth, seed) in [(1, None), (2, None), (1, Some(1)), (2, Some(2))] {
        let fault = tscript::internals::script::session::handle::PlannedFault::parse(&format!("lost:{nth}@cuda:1"))
            .expect("a fault");
        let base = builder().simulate_gpus(2).simulate_fault(fault);
        let base = if let Some(seed) = seed { base.simulate_seed(seed) } else { base };
        let ran = run(base, "lost", text);
        assert!(ran.result.is_ok(), "{nth} {seed:?}: {:?}", ran.result.err());
        assert_eq!(ran.printed, "E0408\nE0408\nE0408\nE0408\nE0408\n4.0\n", "{nth} {seed:?}");
    }
}

/// Whichever call meets the loss first tells which operation was under way, and nothing tells it again.
#[test]
fn a_lost_device_is_reported_once_with_its_operation() {
    let text = "let x = ones([4], #{device: \"cuda:0\"});
         let y = x + 1;
         synchronize(\"cpu\");
         try { default_stream(0).query(); LATER } catch (e) { print(e.code, e.line, e.message); }
         synchronize();";
    let later = [
        "for i in 0..3 { y.sum(); }",
        "y.to_array();",
        "y.cpu();",
        "ones([2]).to(\"cuda:0\");",
        "tensor([1, 2], #{device: \"cuda:0\"});",
        "synchronize();",
    ];
    for later in later {
        for seed in [None, Some(1), Some(2)] {
            let fault = tscript::internals::script::session::handle::PlannedFault::parse("lost:2@cuda:0");
            let base = builder().simulate_gpus(1).window(1).simulate_fault(fault.expect("a fault"));
            let base = if let Some(seed) = seed { base.simulate_seed(seed) } else { base };
            let ran = run(base, "loss", &text.replace("LATER", later));
            assert!(ran.result.is_ok(), "{later} {seed:?}: {:?}", ran.result.err());
            assert_eq!(ran.printed, "E0408 2 cuda:0 was lost while it ran `add`\n", "{later} {seed:?}");
        }
    }
}

/// Where operands are on different devices, the labels name what brought each to its device.
#[test]
fn a_tensor_that_was_moved_is_labeled_where_it_was_moved() {
    let Some(base) = with_gpus(builder(), 1) else { return };
    let text = "import \"nn\" as nn;
let m = nn::linear(2, 2);
let x = ones([1, 2]);
m.to(\"cuda:0\");
m.half();
m.forward(x.half());";
    let error = run(base, "moved", text).result.expect_err("two devices");
    let moved = (4, "moved here, to cuda:0".to_string());
    assert!(labels(&error).contains(&moved) && labels(&error).contains(&(6, "made here, on cpu".into())), "{error}");
    let Some(base) = with_gpus(builder(), 1) else { return };
    let text = "let x = ones([2]);\nlet w = ones([2]);\nx.data = x.to(\"cuda:0\");\nx + w;";
    let error = run(base, "given", text).result.expect_err("two devices");
    let expected = [(4, "in this call"), (3, "moved here, to cuda:0"), (2, "made here, on cpu")];
    assert_eq!(labels(&error), expected.map(|(line, text)| (line, text.to_string())));
}

/// Line of the E0407 of a script, in every mode with checks; none when there is no error.
fn check(text: &str) -> Vec<Option<(usize, String)>> {
    ["cpu", "cuda:0"]
        .map(|device| {
            let ran = run(with_gpus(builder(), 1).expect("a GPU").check(true), "check", &text.replace("DEV", device));
            ran.result.err().map(|error| {
                assert_eq!(error.code(), "E0407", "{error}");
                (error.location().map_or(0, |at| at.line), error.message().to_string())
            })
        })
        .into()
}

#[test]
fn checks_find_the_first_operation_that_makes_what_is_not_finite() {
    let found = |text: &str, line: usize, name: &str| {
        for found in check(text) {
            let (at, message) = found.unwrap_or_else(|| panic!("{text}: nothing found"));
            assert_eq!(at, line, "{text}: {message}");
            assert!(message.contains(&format!("`{name}`")), "{text}: {message}");
        }
    };
    found("let x = tensor([1.0, 0.0], #{device: \"DEV\"});\nlet y = x.log();\nlet z = y + 1;", 2, "log");
    found("let x = tensor([1.0, 0.0], #{device: \"DEV\"});\nlet y = x / 0.0;", 2, "div");
    found("let x = tensor([1.0, 0.0], #{device: \"DEV\"});\nx.log_();", 2, "log_");
    found("let x = ones([2], #{device: \"DEV\"}) * 300.0;\nlet y = x.softmax(0);\nlet z = x.exp();", 3, "exp");
    found("let x = tensor([1e30, -1e30], #{device: \"DEV\"});\nlet y = x.std() + x.var();", 2, "var");
    found("let x = ones([2], #{device: \"DEV\"}) * 1e9;\nlet y = x.half();", 2, "half");
    found(
        "let x = zeros([2], #{device: \"DEV\", requires_grad: true});\nlet y = x.sqrt();\nlet z = y.sum();\nz.backward();",
        2,
        "sqrt",
    );
}

#[test]
fn checks_pass_over_what_was_not_finite_before() {
    for text in [
        "let x = tensor([1.0, 0.0], #{device: \"DEV\"}) * 1.0;\nlet y = x.softmax(0);",
        "let x = tensor([1.0, INF], #{device: \"DEV\"});\nlet y = x.log() - x;",
        "let x = ones([2], #{device: \"DEV\"}) * INF;",
        "let x = ones([2], #{device: \"DEV\"}).masked_fill(tensor([true, false], #{device: \"DEV\"}), -INF);\nlet y = x.softmax(0);",
        "let x = full([3], NAN, #{device: \"DEV\"});",
        "for n in 0..20 { let x = full([64], INF, #{device: \"DEV\"}); let y = empty([64], #{device: \"DEV\"}); let z = y.new_empty([64]); }",
        "let x = arange(3, #{device: \"DEV\"}) * 2;\nprint(x);",
    ] {
        assert!(check(text).iter().all(Option::is_none), "{text}: {:?}", check(text));
    }
}

#[test]
fn checks_label_a_gradient_at_its_forward_and_can_be_caught() {
    let text = "let x = zeros([2], #{device: \"DEV\", requires_grad: true});\nlet y = x.sqrt();\nlet z = y.sum();\nz.backward();";
    for device in ["cpu", "cuda:0"] {
        let ran = run(with_gpus(builder(), 1).expect("a GPU").check(true), "check", &text.replace("DEV", device));
        let error = ran.result.expect_err("an infinite gradient");
        let lines: Vec<usize> = labels(&error).iter().map(|label| label.0).collect();
        assert_eq!(lines, [2, 4], "{:?}", labels(&error));
        let text = "let x = tensor([1.0, 0.0], #{device: \"DEV\"});
             let keep = x.clone();
             try { x.log_(); } catch (e) { print(`${e.code} ${e.line}`); }
             try { print(x); } catch (e) { print(`${e.code} ${e.line}`); }
             try { print((x + 1).sum()); } catch (e) { print(`${e.code} ${e.line}`); }
             x.copy_(keep);
             print(x.sum().item());";
        let ran = run(with_gpus(builder(), 1).expect("a GPU").check(true), "check", &text.replace("DEV", device));
        assert!(ran.result.is_ok(), "{:?}", ran.result.err());
        assert_eq!(ran.printed, "E0407 3\nE0407 3\nE0407 3\n1.0\n");
    }
}

/// The frames that a script's error shows, the innermost first, the same in every mode.
fn frames(text: &str) -> Vec<(String, usize)> {
    let mut all = modes().into_iter().map(|mode| {
        let name = mode.name.clone();
        let error = on(mode, text).result.expect_err("a late error");
        let stack = error.diag().stack.iter();
        (name, stack.map(|frame| (frame.function.clone(), line(&error, frame.call))).collect::<Vec<_>>())
    });
    let (_, first) = all.next().expect("a mode");
    for (name, frames) in all {
        assert_eq!(frames, first, "{name}: {text}");
    }
    first
}

#[test]
fn call_stacks_hold_what_was_entered_and_nothing_else() {
    let shown = |text: &str, expected: &[(&str, usize)]| {
        let expected: Vec<(String, usize)> = expected.iter().map(|(name, line)| (name.to_string(), *line)).collect();
        assert_eq!(frames(text), expected, "{text}");
    };
    let head = "let x = arange(9, #{device: \"DEV\"});\nlet i = tensor([11], #{device: \"DEV\"});\n";
    let after = |text: &str| format!("{head}{text}");
    // Arguments are worked out before the call is entered.
    shown(&after("fn f(a, b) { a + b }\nfn g(x, i) {\n    x[i]\n}\nf(g(x, i), 1);"), &[("g", 7)]);
    shown(&after("fn f(a) { a }\nf(x[i]);"), &[]);
    shown(&after("fn f(a) { a }\nlet m = #{h: |a| a};\nm.h(f(x)[i]);"), &[]);
    shown(&after("fn f(a, b, x, i) {\n    x[i]\n}\nf(f(1, 2, x, x),\n  3, x, i);"), &[("f", 6)]);
    // Methods, chains, loops, recursion, closures that the library or a native function calls.
    shown(&after("fn pick(i) {\n    this[i]\n}\nx.pick(i);"), &[("pick", 6)]);
    shown(
        &after("fn at(x, i, n) {\n    if n == 0 { return x[i]; }\n    at(x, i, n - 1)\n}\nat(x, i, 2);"),
        &[("at", 5), ("at", 5), ("at", 7)],
    );
    shown(
        &after("fn one(x, i) { x[i] }\nfor n in 0..3 {\n    let ok = one(x, x);\n    if n == 2 { one(x, i); }\n}"),
        &[("one", 6)],
    );
    shown(&after("fn one(x, i) { x[i] }\n[1].map(|n|\n    one(x, i)\n);"), &[("one", 5), ("map", 4)]);
    shown(&after("let f = |i| x[i];\nfn go(f, i) { f.call(i) }\ngo(f, i);"), &[("a closure", 4), ("go", 5)]);
    // A call that ended, by an error too, is no part of it.
    shown(&after("fn bad() { throw 1; }\nfn one(x, i) { x[i] }\ntry { bad(); } catch { }\none(x, i);"), &[("one", 6)]);
    shown(
        &after(
            "import \"nn\" as nn;\nfn go(l, x) {\n    l.forward(x)\n}\nlet l = nn::lambda(|x| x[tensor([99], #{device: \"DEV\"})]);\ngo(l, x);",
        ),
        &[("forward", 5), ("go", 8)],
    );
    // Calls on the way to `backward()` are its own; the forward's stack is that of the gradient's fault.
    shown(
        &after(
            "fn half(w, i) {\n    embedding(i, w)\n}\nlet w = ones([4, 2], #{device: \"DEV\", requires_grad: true});\nlet y = half(w, i).sum();\nfn back(y) { y.backward(); }\nback(y);",
        ),
        &[("half", 7)],
    );
}

/// Runs a script with the program, where a file may have no more than some KiB: what is printed, and the errors.
#[cfg(unix)]
fn with_small_files(folder: &std::path::Path, flags: &str, text: &str) -> (String, String) {
    std::fs::write(folder.join("s.rhai"), text).expect("written");
    let limited = format!("ulimit -f 16; exec \"$0\" run {flags} s.rhai");
    let mut command = std::process::Command::new("sh");
    let done = command.args(["-c", &limited]).arg(super::scripts::program()).current_dir(folder).output();
    let done = done.expect("it starts");
    assert!(done.status.code().is_some(), "ended by a signal: {:?}", done.status);
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    (text(done.stdout), text(done.stderr))
}

/// A file that cannot be written is an error of the `try` around its save, and of no other save.
#[cfg(unix)]
#[test]
fn a_failed_save_is_raised_where_its_try_ends() {
    let text = "let x = randn([100, 100]);
let small = ones([2]);
for name in [\"a.safetensors\", \"b.npz\", \"c.csv\", \"d.npy\"] {
    try { save(name, #{x: x}); } catch (e) { print(name, e.code, e.line); }
    if name != \"b.npz\" { continue; }
    try {
        save(\"small.npy\", small);
        try { save(\"e.npy\", x); save(\"later.npy\", small); } catch (e) { print(`inner ${e.line}`); throw e; }
    } catch (e) { print(`outer ${e.line}`); }
}
fn leaves() { try { save(\"f.npy\", randn([100, 100])); return 1; } catch (e) { return e.notes[-1]; } }
print(leaves());
save(\"good.npy\", small);
print(equal(load(\"good.npy\"), small), equal(load(\"later.npy\"), small), equal(load(\"small.npy\"), small));";
    let text = text.replace("save(name, #{x: x})", "save(name, if name.ends_with(\"npy\") { x } else { #{x: x} })");
    let text = text.replace("#{x: x} }); }", "#{x: x.flatten()} }); }");
    let expected = "a.safetensors E0601 4
b.npz E0601 4
inner 8
outer 8
c.csv E0601 4
d.npy E0601 4
the `try` was being left by `return`
true true true
";
    for flags in ["", "--blocking", "--check", "--simulate-gpus 1 --device cuda"] {
        let folder = tempfile::tempdir().expect("a folder");
        let (printed, errors) = with_small_files(folder.path(), flags, &text);
        let at_once = matches!(flags, "--blocking" | "--check");
        // With operations that run at once nothing was on its way out yet, and what follows the error is not reached.
        let expected = match at_once {
            true => expected.replace("the `try` was being left by `return`", "the path is looked for from"),
            false => expected.to_string(),
        };
        let same = printed.lines().zip(expected.lines()).all(|(printed, expected)| printed.starts_with(expected));
        let whole = same && printed.lines().count() == expected.lines().count();
        assert!(at_once || whole, "{flags}:\n{printed}\n{errors}");
        if at_once {
            assert!(
                printed.contains("inner 8\nouter 8\nc.csv E0601 4\nd.npy E0601 4\n"),
                "{flags}:\n{printed}\n{errors}"
            );
        } else {
            assert_eq!(errors, "", "{flags}");
        }
        let left = std::fs::read_dir(folder.path()).expect("there").flatten();
        let left: Vec<String> = left.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        assert!(!left.iter().any(|name| name.starts_with(".tscript-")), "{left:?}");
    }
}

/// Outside of a `try` it is told at the next `synchronize()` or the end, the earliest first, and all at the end.
#[cfg(unix)]
#[test]
fn a_failed_save_outside_of_a_try_is_told_at_the_next_wait() {
    let folder = tempfile::tempdir().expect("a folder");
    let begins = "let x = randn([100, 100]);\nsave(\"a.npy\", x);\ntry { save(\"ok.npy\", ones([2])); } catch (e) { print(\"no\"); }
save(\"b.npy\", x);\n";
    let (printed, errors) = with_small_files(folder.path(), "", &format!("{begins}print(\"end\");"));
    assert_eq!(printed, "end\n", "{errors}");
    let at = |place: &str| errors.find(place).unwrap_or_else(|| panic!("{place}: {errors}"));
    assert!(at("s.rhai:2:") < at("s.rhai:4:"), "{errors}");
    assert!(folder.path().join("ok.npy").is_file());
    let waits =
        "try { synchronize(); } catch (e) { print(e.line); }\ntry { synchronize(); } catch (e) { print(e.line); }
synchronize(); print(\"end\");";
    let (printed, errors) = with_small_files(folder.path(), "", &format!("{begins}{waits}"));
    assert_eq!((printed.as_str(), errors.as_str()), ("2\n4\nend\n", ""));
    // Reading the file asks for it.
    let reads = "try { load(\"a.npy\"); } catch (e) { print(e.line); }\nsynchronize();";
    let (printed, errors) = with_small_files(folder.path(), "", &format!("{begins}{reads}"));
    assert!(printed == "2\n" && errors.contains("s.rhai:4:"), "{printed}{errors}");
    // The earliest of all late errors is the first.
    let mixed = format!("let bad = arange(3)[tensor([7])];\n{begins}synchronize();");
    let (_, errors) = with_small_files(folder.path(), "", &mixed);
    assert!(errors.starts_with("error[E0401]"), "{errors}");
}

/// The calls are those of the save.
#[cfg(unix)]
#[test]
fn a_failed_save_shows_the_calls_of_its_time() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = "fn keep() { save(\"a.npy\", randn([100, 100])); }\nkeep();\nprint(1);";
    let (printed, errors) = with_small_files(folder.path(), "", text);
    assert!(printed == "1\n" && errors.contains("s.rhai:1:18"), "{printed}{errors}");
    assert!(errors.contains("s.rhai:2"), "{errors}");
}
