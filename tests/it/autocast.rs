//! Mixed precision: the dtypes that PyTorch's autocast gives (`tests/fixtures/training/amp.py`), and what no script of
//! the fixtures says.

use super::scripts::{folder, none};
use serde_json::Value;
use tscript::Session;

/// Results whose dtype is another one, with the reason.
const OTHERS: &[(&str, &str)] =
    &[("cuda index_copy_f32", "a tensor without values takes another dtype; a real one is refused, as here")];

fn session() -> Session {
    Session::builder().simulate_gpus(1).build().expect("a session starts")
}

/// The variables of the cases.
fn variables(device: &str, dtype: &str) -> String {
    format!(
        "set_default_device(\"{device}\");
         let make = |size| {{ let n = 1; for s in size {{ n *= s; }} (arange(n).float().reshape(size) % 7 - 3) }};
         let x = make.call([4, 4]).to(\"{dtype}\"); let y = x + 1; let v = make.call([4]).to(\"{dtype}\");
         let b = make.call([2, 4, 4]).to(\"{dtype}\").abs() + 1; let e = eye(4, #{{dtype: \"{dtype}\"}});
         let c1 = make.call([1, 2, 8]).to(\"{dtype}\"); let c2 = make.call([1, 2, 8, 8]).to(\"{dtype}\");
         let c3 = make.call([1, 2, 4, 4, 4]).to(\"{dtype}\"); let k1 = make.call([2, 2, 3]).to(\"{dtype}\");
         let k2 = make.call([2, 2, 3, 3]).to(\"{dtype}\"); let k3 = make.call([2, 2, 3, 3, 3]).to(\"{dtype}\");
         let g = make.call([1, 2, 2, 2]).to(\"{dtype}\"); let p = (x + 4) / 16; let w = make.call([4]);
         let i = arange(4); let j = arange(16).reshape([4, 4]) % 4;"
    )
}

#[test]
fn dtypes_are_those_of_pytorch() {
    let text = std::fs::read_to_string(folder("fixtures/training").join("amp_dtypes.json")).expect("the fixtures");
    let all: Value = serde_json::from_str(&text).expect("JSON");
    let mut problems = Vec::new();
    let mut compared = 0;
    for case in all["cases"].as_array().expect("a list") {
        let word = |name: &str| case[name].as_str().expect("a word");
        let (device, low, dtype) = (word("device"), word("low"), word("dtype"));
        let mut session = session();
        session.run_str("variables", &variables(device, dtype)).expect("variables");
        for (name, gives) in case["gives"].as_object().expect("a map") {
            let script = all["scripts"][name].as_str().expect("a script");
            let text = format!(
                "let got = \"\";
                 try {{ got = autocast(\"{device}\", \"{low}\") {{ ({script}).dtype.to_string() }}; }} catch (e) {{ got = e.code; }}
                 got"
            );
            let got = session.eval::<String>(&text).unwrap_or_else(|error| format!("{error:#}"));
            let wanted = if gives == "banned" { "E0202" } else { gives.as_str().expect("a dtype") };
            let other = OTHERS.iter().any(|(known, _)| *known == format!("{device} {name}"));
            compared += 1;
            if !got.starts_with(wanted) && !other {
                problems.push(format!("{device} {low} {dtype}: {name} gives {got}, PyTorch {gives}"));
            }
        }
    }
    assert!(compared > 900, "only {compared} cases");
    none(problems);
}
