//! Golden scripts: `tests/golden/NAME.rhai` prints what `NAME.out` says, with windows of one operation, of many,
//! blocking, and on a GPU (late and blocking), simulated or real (`TSCRIPT_TEST_DEVICES=cuda`). The expected texts were checked against PyTorch; `TSCRIPT_BLESS=1` rewrites them.

use super::scripts::{self, builder, compare, file_name, none, on_real_gpus, run, with_gpus};

#[test]
fn golden_scripts_print_what_they_printed() {
    let mut problems = Vec::new();
    for path in scripts::scripts("golden") {
        let text = std::fs::read_to_string(&path).expect("a script");
        let name = file_name(&path);
        let many = run(builder(), &name, &text);
        if let Err(error) = &many.result {
            problems.push(format!("{name}: {error:#}"));
            continue;
        }
        problems.extend(compare(&path.with_extension("out"), &many.printed));
        let on_gpu = || with_gpus(builder(), 1).expect("a GPU").device("cuda");
        let last = if on_real_gpus() {
            ("a GPU and a window of one", on_gpu().window(1))
        } else {
            ("a GPU with seed 1", on_gpu().simulate_seed(1))
        };
        let ways = [
            ("a window of one", builder().window(1)),
            ("blocking", builder().blocking(true)),
            ("a GPU", on_gpu()),
            ("a blocking GPU", on_gpu().blocking(true)),
            last,
        ];
        for (way, builder) in ways {
            let other = run(builder, &name, &text);
            if let Err(error) = other.result {
                problems.push(format!("{name}, {way}: {error:#}"));
            } else if without_device(&other.printed) != many.printed {
                problems.push(format!("{name}: {way} prints\n{}instead of\n{}", other.printed, many.printed));
            }
        }
    }
    none(problems);
}

/// The text that a tensor of the CPU would have.
pub fn without_device(text: &str) -> String {
    text.replace(",\n       device=cuda:0", "").replace(", device=cuda:0", "").replace("cuda:0", "cpu")
}
