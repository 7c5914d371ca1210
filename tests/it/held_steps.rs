//! Steps of optimizers and updates of running statistics after faults: held or done by the rules of the language, in
//! every order in which devices may run.

use super::scripts::{builder, on_real_gpus, run, with_gpus};
use tscript::Builder;

/// With so many GPUs; none where there are fewer real ones.
fn modes(count: usize) -> Vec<(String, Builder)> {
    let gpus = || with_gpus(builder(), count);
    let mut all: Vec<(String, Option<Builder>)> =
        vec![("as ever".into(), gpus()), ("windows of one".into(), gpus().map(|base| base.window(1)))];
    for seed in (0..8).filter(|_| !on_real_gpus()) {
        all.push((format!("seed {seed}"), Some(builder().simulate_gpus(count).simulate_seed(seed))));
    }
    all.into_iter().filter_map(|(name, base)| Some((name, base?))).collect()
}

fn prints_in(modes: Vec<(String, Builder)>, text: &str, expected: &str) {
    for (name, base) in modes {
        let ran = run(base, "held", text);
        if let Err(error) = &ran.result {
            panic!("{name}: {}\n{}\n{text}", error.diag().message, ran.printed);
        }
        assert_eq!(ran.printed, expected, "{name}\n{text}");
    }
}

fn prints(text: &str, expected: &str) {
    prints_in(modes(if text.contains("cuda:1") { 2 } else { 1 }), text, expected);
}

/// A parameter of 1 whose gradient is 1, a step that subtracts it, and what makes a fault.
const ONE: &str = "import \"optim\" as optim;
    let p = ones([1], #{device: \"cuda:0\", requires_grad: true});
    let opt = optim::sgd([p], #{lr: 1.0});
    let x = arange(3.0, #{device: \"cuda:0\"});
    let bad = tensor([9], #{device: \"cuda:0\"});
    let s = stream(#{device: \"cuda:0\"});
    synchronize();
    let tell = || { try { synchronize(); print(\"nothing\"); } catch (e) { print(e.code); } };
    let go = || { opt.zero_grad(); p.sum().backward(); opt.step(); };
    ";

/// What makes a fault on another device.
const FAR: &str = "let far = arange(3.0, #{device: \"cuda:1\"}); let far_bad = tensor([9], #{device: \"cuda:1\"});
    ";

const MAKERS: &[&str] = &[
    "optim::sgd(ps, #{lr: 0.1})",
    "optim::sgd(ps, #{lr: 0.1, momentum: 0.9, dampening: 0.5})",
    "optim::sgd(ps, #{lr: 0.1, momentum: 0.9, nesterov: true})",
    "optim::adam(ps, #{lr: 0.1})",
    "optim::adam(ps, #{lr: 0.1, amsgrad: true, weight_decay: 0.1})",
    "optim::adamw(ps, #{lr: 0.1})",
    "optim::adagrad(ps, #{lr: 0.1, lr_decay: 0.1, initial_accumulator_value: 0.5})",
    "optim::adadelta(ps)",
    "optim::adamax(ps)",
    "optim::rmsprop(ps, #{momentum: 0.5, centered: true})",
    "optim::nadam(ps)",
    "optim::radam(ps, #{lr: 0.1})",
    "optim::asgd(ps, #{lr: 0.1, t0: 1.0})",
    "optim::rprop(ps, 0.1)",
    "optim::lion(ps, #{lr: 0.1})",
];

/// The model, the state and the counts are those of a run without the bad batches, which come first, second and last.
#[test]
fn a_bad_batch_that_is_skipped_leaves_every_optimizer_whole() {
    for device in ["cpu", "cuda:0"] {
        for maker in MAKERS {
            let text = format!(
                "import \"optim\" as optim;
                fn trained(batches) {{
                    let a = tensor([1.0, -2.0], #{{device: \"DEV\", requires_grad: true}});
                    let b = tensor([[0.5]], #{{device: \"DEV\", requires_grad: true}});
                    let ps = [a, b];
                    let opt = {maker};
                    let x = arange(3.0, #{{device: \"DEV\"}});
                    for bad in batches {{
                        try {{
                            let w = x[tensor([if bad {{ 9 }} else {{ 2 }}], #{{device: \"DEV\"}})];
                            opt.zero_grad();
                            ((a * a * w).sum() + (b * w * 3).sum()).backward();
                            opt.step();
                        }} catch (e) {{ print(e.code); }}
                    }}
                    let all = opt.state_dict();
                    all.a = a.detach();
                    all.b = b.detach();
                    all
                }}
                let seen = trained([true, false, true, false, false, false, false, false, false, true]);
                let wanted = trained([false, false, false, false, false, false, false]);
                print(seen.keys() == wanted.keys());
                for key in wanted.keys() {{ if !equal(seen[key], wanted[key]) {{ print(key, seen[key], wanted[key]); }} }}"
            );
            let few = modes(1).into_iter().take(4).collect();
            prints_in(few, &text.replace("DEV", device), "E0401\nE0401\nE0401\ntrue\n");
        }
    }
}

#[test]
fn a_fault_holds_steps_by_order_and_not_by_time() {
    let on_s = |before: &str, inside: &str, after: &str| {
        format!("{ONE}{before}\nwith_stream(s) {{ {inside} }}\n{after}\ngo.call();\nprint(p.item());\ntell.call();")
    };
    let done = "0.0\nE0401\n";
    let held = "1.0\nE0401\n";
    // Nothing orders the fault before the step, however long either takes.
    prints(&on_s("", "x[bad];", ""), done);
    prints(&on_s("", "cuda::sleep(5); x[bad];", ""), done);
    prints(&on_s("cuda::sleep(5);", "x[bad];", ""), done);
    prints(&on_s("", "x[bad];", "while !s.query() { }"), done);
    // A stream, an event, a wait of the host for what came after it.
    prints(&on_s("", "cuda::sleep(5); x[bad];", "default_stream(0).wait_stream(s);"), held);
    prints(&on_s("", "cuda::sleep(5); x[bad];", "let e = s.record_event(); e.wait();"), held);
    prints(&on_s("let e = s.record_event();", "x[bad];", "e.wait();"), done);
    prints(&on_s("let y = ();", "x[bad]; y = x + 1;", "y.sum().item();").replace("y.sum()", "y[0]"), held);
    prints(&on_s("let y = ();", "y = x + 1; x[bad];", "y[0].item();"), done);
    // Over another stream, and only up to the moment.
    let through = "let t = stream(#{device: \"cuda:0\"}); t.wait_stream(s); default_stream(0).wait_stream(t);";
    prints(&on_s("", "x[bad];", through), held);
    let before = "let t = stream(#{device: \"cuda:0\"}); t.wait_stream(s);";
    prints(&on_s(before, "x[bad];", "default_stream(0).wait_stream(t);"), done);
    // A fault of another device holds nothing here.
    prints(&format!("{ONE}{FAR}far[far_bad];\nsynchronize(0);\ngo.call();\nprint(p.item());\ntell.call();"), done);
    // Once told, steps go on.
    prints(&format!("{ONE}x[bad];\ngo.call();\ntell.call();\ngo.call();\nprint(p.item());"), "E0401\n0.0\n");
}

#[test]
fn poison_in_a_gradient_holds_the_step_wherever_it_comes_from() {
    let poisoned = "let w = far[far_bad].to(\"cuda:0\"); opt.zero_grad(); (p * w).sum().backward(); opt.step();";
    let text = format!(
        "{ONE}{FAR}{poisoned}\ngo.call();\nprint(p.item());\ntell.call();\nprint(opt.state_dict()[\"state.0.step\"].item());"
    );
    prints(&text, "0.0\nE0401\n1\n");
    // Of a part of a buffer that the gradient does not read: nothing.
    let apart =
        "let w = arange(3.0, #{device: \"cuda:1\"}); w[0..1].copy_(far[far_bad]); let w = w[2..3].to(\"cuda:0\");
        opt.zero_grad(); (p * w).sum().backward(); opt.step();";
    prints(&format!("{ONE}{FAR}{apart}\nprint(p.item());\ntell.call();"), "-1.0\nE0401\n");
    // Told already, and still poisoned: on its way, and after it was read.
    let reported = "let w = x[bad]; let e = default_stream(0).record_event(); try { e.synchronize(); } catch (e) { print(e.code); }
        opt.zero_grad(); (p * w).sum().backward(); opt.step();";
    prints(&format!("{ONE}{reported}\ngo.call();\nprint(p.item());\ntell.call();"), "E0401\n0.0\nnothing\n");
    let late = "let e = (); let w = x[bad]; e = default_stream(0).record_event(); cuda::sleep(5); let v = w * 1; opt.zero_grad(); (p * v).sum().backward();
        try { e.synchronize(); } catch (e) { print(e.code); } opt.step();";
    prints(&format!("{ONE}{late}\nprint(p.item());\ntell.call();"), "E0401\n1.0\nnothing\n");
    // Of the host, and overwritten before the step.
    let host = "let w = arange(3.0)[tensor([9])].cuda(); opt.zero_grad(); (p * w).sum().backward(); opt.step();";
    prints(&format!("{ONE}{host}\nprint(p.item());\ntell.call();"), "1.0\nE0401\n");
    let cured =
        "let w = far[far_bad].to(\"cuda:0\"); w.fill_(2); opt.zero_grad(); (p * w).sum().backward(); opt.step();";
    prints(&format!("{ONE}{FAR}{cured}\nprint(p.item());\ntell.call();"), "-1.0\nE0401\n");
}

#[test]
fn a_step_over_several_devices_is_held_or_done_as_one() {
    for (devices, fault, expected) in [
        (["cuda:0", "cuda:1"], "far[far_bad];", "1.0 1.0\nE0401\n0.0 0.0\n"),
        (["cuda:0", "cuda:1"], "x[bad];", "1.0 1.0\nE0401\n0.0 0.0\n"),
        (["cpu", "cuda:0"], "x[bad];", "1.0 1.0\nE0401\n0.0 0.0\n"),
        (["cpu", "cuda:0"], "arange(3)[tensor([9])];", "1.0 1.0\nE0401\n0.0 0.0\n"),
        (["cpu", "cuda:0"], "far[far_bad];", "0.0 0.0\nE0401\n-1.0 -1.0\n"),
        (["cpu", "cuda:1"], "x[bad];", "0.0 0.0\nE0401\n-1.0 -1.0\n"),
    ] {
        let [one, two] = devices;
        for momentum in [0.0, 0.5] {
            let text = format!(
                "{ONE}{FAR}let a = ones([1], #{{device: \"{one}\", requires_grad: true}});
                let b = ones([1], #{{device: \"{two}\", requires_grad: true}});
                let both = optim::sgd([#{{params: [a]}}, #{{params: [b]}}], #{{lr: 1.0, momentum: {momentum:?}}});
                let step = || {{ both.zero_grad(); a.sum().backward(); b.sum().backward(); both.step(); }};
                {fault}
                step.call();
                print(a.item(), b.item());
                tell.call();
                step.call();
                print(a.item(), b.item());"
            );
            let expected = if momentum > 0.0 { expected.replace("-1.0", "-1.5") } else { expected.to_string() };
            prints(&text, &expected);
        }
    }
}

#[test]
fn running_statistics_are_held_with_their_count() {
    for device in ["cpu", "cuda:0"] {
        for momentum in ["0.1", "()"] {
            let text = format!(
                "import \"nn\" as nn;
                fn seen(batches) {{
                    let norm = nn::batch_norm1d(2, #{{momentum: {momentum}}}).to(\"DEV\");
                    let x = arange(12.0, #{{device: \"DEV\"}}).reshape([6, 2]);
                    for bad in batches {{
                        try {{
                            let i = tensor([0, 1, if bad {{ 9 }} else {{ 5 }}], #{{device: \"DEV\"}});
                            norm.forward(x[i]);
                        }} catch (e) {{ print(e.code); }}
                    }}
                    norm.state_dict()
                }}
                let got = seen([false, true, false]);
                let wanted = seen([false, false]);
                for key in wanted.keys() {{ if !equal(got[key], wanted[key]) {{ print(key, got[key], wanted[key]); }} }}"
            );
            prints(&text.replace("DEV", device), "E0401\n");
        }
    }
}
