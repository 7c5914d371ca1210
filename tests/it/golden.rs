//! Golden scripts: `tests/golden/NAME.rhai` prints what `NAME.out` says, with windows of one operation, of many,
//! and blocking. The expected texts were checked against PyTorch; `TSCRIPT_BLESS=1` rewrites them.

use super::scripts::{self, builder, compare, file_name, none, run};

#[test]
fn golden_scripts_print_what_they_printed() {
    let mut problems = Vec::new();
    for path in scripts::scripts("golden") {
        let text = std::fs::read_to_string(&path).expect("a script");
        let name = file_name(&path);
        let many = run(builder(), &name, &text);
        if let Err(error) = &many.result {
            problems.push(format!("{name}: {error}"));
            continue;
        }
        problems.extend(compare(&path.with_extension("out"), &many.printed));
        for (way, builder) in [("a window of one", builder().window(1)), ("blocking", builder().blocking(true))] {
            let other = run(builder, &name, &text);
            if let Err(error) = other.result {
                problems.push(format!("{name}, {way}: {error}"));
            } else if other.printed != many.printed {
                problems.push(format!("{name}: {way} prints\n{}instead of\n{}", other.printed, many.printed));
            }
        }
    }
    none(problems);
}
