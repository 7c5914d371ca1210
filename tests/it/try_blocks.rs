//! `try` behaves as if each operation in it had run at once: what leaving it waits for, which fault is told, which are
//! spent. On the CPU and on simulated GPUs in virtual time of many seeds, blocking too.

use super::scripts::{Ran, builder, on_real_gpus, run, with_gpus};
use tscript::Builder;

/// A GPU in every order that matters, and windows of many nodes and of one.
fn modes() -> Vec<(String, Builder)> {
    let gpus = || with_gpus(builder(), 1);
    let mut all: Vec<(String, Option<Builder>)> = vec![
        ("as ever".into(), gpus()),
        ("windows of one".into(), gpus().map(|base| base.window(1))),
        ("blocking".into(), gpus().map(|base| base.blocking(true))),
        ("with checks".into(), gpus().map(|base| base.check(true))),
    ];
    for seed in (0..6).filter(|_| !on_real_gpus()) {
        all.push((format!("seed {seed}"), Some(builder().simulate_gpus(2).simulate_seed(seed))));
    }
    all.into_iter().filter_map(|(name, base)| Some((name, base?))).collect()
}

fn ran(name: &str, base: Builder, text: &str) -> Ran {
    let ran = run(base, "try", text);
    if let Err(error) = &ran.result {
        panic!("{name}: {}\n{}", error.diag().message, ran.printed);
    }
    ran
}

/// What a script prints on the CPU and on a GPU, in every mode.
fn prints(text: &str, expected: &str) {
    for device in ["cpu", "cuda:0"] {
        for (name, base) in modes() {
            let printed = ran(&name, base, &text.replace("DEV", device)).printed;
            assert_eq!(printed, expected, "{device}, {name}\n{text}");
        }
    }
}

/// As `prints`, for a script that leaves an unreported fault behind nowhere: what is before it makes one.
const SETUP: &str = "let x = arange(3, #{device: \"DEV\"});
    let bad = |n| x[tensor([n], #{device: \"DEV\"})];
    ";

#[test]
fn the_earliest_fault_of_a_block_replaces_whatever_leaves_it() {
    let ways = [
        ("fn f(bad) { try { bad.call(7); 1 } catch (e) { return e.message; } }", ""),
        ("fn f(bad) { try { bad.call(7); return 1; } catch (e) { return e.message; } }", "`return`"),
        ("fn f(bad) { loop { try { bad.call(7); break; } catch (e) { return e.message; } } 1 }", "`break`"),
        (
            "fn f(bad) { for i in 0..2 { try { bad.call(7); continue; } catch (e) { return e.message; } } 1 }",
            "`continue`",
        ),
        ("fn f(bad) { try { bad.call(7); throw \"up\"; } catch (e) { return e.message; } }", "`throw \\\"up\\\"`"),
        ("fn f(bad) { try { bad.call(7); exit(3); } catch (e) { return e.message; } }", "`exit`"),
        ("fn f(bad) { try { bad.call(7); ones([2]) + ones([3]) } catch (e) { return e.message; } }", "E0201"),
    ];
    for (text, note) in ways {
        // With operations that run at once nothing was on its way out yet.
        let reported = "index 7 is out of range for dimension 0 of size 3\n";
        let text = format!("{SETUP}{text}\nprint(f(bad));");
        prints(&text, &reported.replace("\\n", "\n"));
        if note.is_empty() {
            continue;
        }
        let text = text.replace("e.message", "e.notes[-1]").replace("DEV", "cpu");
        let printed = ran("notes", builder(), &text).printed;
        let expected = format!("the `try` was being left by {}", note.replace("\\\"", "\""));
        assert!(printed.starts_with(&expected), "{printed}");
    }
}

#[test]
fn later_faults_of_a_block_are_spent_and_earlier_ones_of_others_are_not() {
    prints(
        &format!(
            "{SETUP}import \"optim\" as optim;
            let p = ones([1], #{{device: \"DEV\", requires_grad: true}});
            let opt = optim::sgd([p], #{{lr: 1.0}});
            try {{ let z = bad.call(5); let w = z + bad.call(6); bad.call(7); }} catch (e) {{ print(e.message.sub_string(0, 7)); }}
            (p * 2).sum().backward();
            opt.step();
            print(p.item());
            synchronize();
            try {{ let z = x[tensor([5])]; let w = x + zeros([4]); }} catch (e) {{ print(e.code); }}
            synchronize();"
        )
        .replace("tensor([5])", "tensor([5], #{device: \"DEV\"})")
        .replace("zeros([4])", "zeros([4], #{device: \"DEV\"})"),
        "index 5\n-1.0\nE0401\n",
    );
}

#[test]
fn nested_blocks_report_their_own_faults() {
    prints(
        &format!(
            "{SETUP}
            try {{
                try {{ bad.call(5); bad.call(6); }} catch (e) {{ print(\"in\", e.message.sub_string(0, 7)); throw e; }}
            }} catch (e) {{ print(\"out\", e.message.sub_string(0, 7)); }}
            try {{ try {{ print(\"nothing\"); }} catch (e) {{ print(\"no\"); }} bad.call(7); }} catch (e) {{ print(e.message.sub_string(0, 7)); }}
            let got = [1, 2].map(|n| {{ try {{ bad.call(n * 10); n }} catch (e) {{ return e.message.sub_string(0, 8); }} }});
            print(got);
            for n in 0..3 {{ try {{ if n == 1 {{ bad.call(8); }} }} catch (e) {{ print(n, e.code); }} }}
            try {{ }} catch (e) {{ print(\"no\"); }}
            synchronize();"
        ),
        "in index 5\nout index 5\nnothing\nindex 7\n[\"index 10\", \"index 20\"]\n1 E0401\n",
    );
}

/// Only where operations are put off: what stands before a block, and what is seen in it.
#[test]
fn a_fault_of_the_block_comes_before_an_earlier_one() {
    for device in ["cpu", "cuda:0"] {
        for (name, base) in modes().into_iter().filter(|(name, _)| name != "blocking" && name != "with checks") {
            let text = format!(
                "{SETUP}let early = bad.call(4);
                try {{ print(1); }} catch (e) {{ print(\"not of the block\"); }}
                try {{ bad.call(5); early.item(); }} catch (e) {{ print(e.message.sub_string(0, 7), e.notes[-1].contains(\"index 4\")); }}
                try {{ early.item(); }} catch (e) {{ print(e.message.sub_string(0, 7)); }}
                let late = ();
                try {{ late = bad.call(6); bad.call(7); late.item(); }} catch (e) {{ print(e.message.sub_string(0, 7)); }}
                try {{ late.item(); }} catch (e) {{ print(e.message.sub_string(0, 7)); }}
                synchronize();"
            );
            let printed = ran(&name, base, &text.replace("DEV", device)).printed;
            assert_eq!(printed, "1\nindex 5 true\nindex 4\nindex 6\nindex 6\n", "{device}, {name}");
        }
    }
}

#[test]
fn a_block_waits_for_what_was_queued_inside_and_for_nothing_else() {
    let text = "let s = stream(); let t = stream();
        let a = zeros([2], #{device: \"cuda\"});
        synchronize();
        with_stream(s) { cuda::sleep(400); }
        with_device(1) { cuda::sleep(400); }
        try { } catch (e) { }
        try { let n = 1 + 1; } catch (e) { }
        try { with_stream(t) { cuda::sleep(20); a.add_(1); } } catch (e) { }
        print(t.query(), s.query(), default_stream(1).query());
        try { t.wait_stream(s); } catch (e) { }
        print(s.query());
        try { with_stream(s) { a.add_(1); } } catch (e) { }
        print(s.query(), default_stream(1).query());";
    // Not in virtual time: a question lets it go on.
    let Some(base) = with_gpus(builder(), 2) else { return };
    let printed = ran("waits", base, text).printed;
    let lines: Vec<&str> = printed.lines().collect();
    assert_eq!(lines[..2], ["true false false", "false"]);
    // Both slept equally long.
    assert!(lines[2].starts_with("true"), "{printed}");
}

#[test]
fn what_was_queued_inside_comes_before_what_follows_for_races_too() {
    let text = |inside: &str| {
        format!(
            "let s = stream(); let a = zeros([100], #{{device: \"cuda\"}}); let b = zeros([100], #{{device: \"cuda\"}});
            s.wait_stream(default_stream());
            {inside}
            print(a.sum().item());"
        )
    };
    let quiet = text("try { with_stream(s) { a.add_(1); } } catch (e) { }");
    // The race is with what was queued before the block; waits without work order nothing.
    let racing =
        text("with_stream(s) { a.add_(1); } try { b.add_(1); s.wait_stream(default_stream()); } catch (e) { }");
    for seed in 0..4 {
        let base = |seed| builder().simulate_gpus(1).simulate_seed(seed).races(tscript::Races::Error);
        assert_eq!(ran("ordered", base(seed), &quiet).printed, "100.0\n");
        let reported = run(base(seed), "racing", &racing).result.expect_err("a race");
        assert_eq!(reported.diag().code.to_string(), "E0501");
    }
}
