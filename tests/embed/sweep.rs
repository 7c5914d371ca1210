//! Every operation with hostile arguments, on the CPU and on simulated GPUs, under limits: no call ends the process,
//! is a panic, or goes on after its time, and the session goes on.
//!
//! `TSCRIPT_SWEEP=from..to` chooses the rounds (each goes over all rows; one round unless given), `TSCRIPT_SWEEP_OP`
//! one operation, `TSCRIPT_SWEEP_SHOW=1` prints each call before it is made.

use super::alone::alone;
use super::arguments::{PRELUDE, call};
use super::random::Random;
use std::time::{Duration, Instant};
use tscript::internals::op::row::{CallForm, Op};
use tscript::{Builder, Session};

/// Time that a call has, and that it may take on a machine which is busy.
const TIME: Duration = Duration::from_millis(400);
const PATIENCE: Duration = Duration::from_secs(5);

/// Results are read, and differentiated where they can be.
const READS: &str = "
    fn __read(r) {
        if type_of(r) == \"array\" { for one in r { __read(one); } }
        else if type_of(r) == \"map\" { for one in r.values() { __read(one); } }
        else if type_of(r) == \"tensor\" && r.requires_grad && r.numel > 0 { print(r); r.sum().backward(); }
        else { print(r); }
    }";

fn limited(device: &str) -> Builder {
    Session::builder()
        .untrusted()
        .time_limit(TIME)
        .heap_limit(32 << 20)
        .memory_limit(64 << 20)
        .simulate_gpus(2)
        .device_memory_limit(64 << 20)
        .device(device)
        .output(|_| {})
}

struct Sweep {
    device: &'static str,
    session: Session,
    problems: Vec<String>,
    calls: usize,
}

impl Sweep {
    fn new(device: &'static str) -> Sweep {
        Sweep { device, session: Sweep::session(device), problems: Vec::new(), calls: 0 }
    }

    fn session(device: &str) -> Session {
        let mut session = limited(device).build().expect("a session starts");
        let other = if device == "cpu" { "cuda:0" } else { "cuda:1" };
        session.set("other", other).expect("a text passes");
        session.run_str("prelude", PRELUDE).unwrap_or_else(|error| panic!("{error}"));
        session
    }

    fn renew(&mut self) {
        self.session = Sweep::session(self.device);
    }

    fn made(&mut self, text: &str, shows: bool) {
        self.calls += 1;
        if shows {
            eprintln!("{}: {text}", self.device);
        }
        let begun = Instant::now();
        let script = format!("{READS}\nlet r = {{ {text} }}; __read(r);");
        let failed = self.session.run_str("call", &script).err();
        let took = begun.elapsed();
        let code = failed.as_ref().map(|error| error.code()).unwrap_or_default();
        if code == "E0806" {
            self.problems.push(format!("{}: {text}\n  {}", self.device, failed.expect("an error").message()));
        }
        if took > PATIENCE {
            self.problems.push(format!("{}: {text}\n  took {took:.1?}", self.device));
        }
        let after = self.session.eval::<i64>("1 + 1").map_err(|error| error.code());
        if after != Ok(2) && after != Err("E0804".into()) {
            self.problems.push(format!("{}: {text}\n  the session is gone: {after:?}", self.device));
        }
        // What it holds stays held.
        if after != Ok(2) || code == "E0804" || code == "E0304" || self.calls.is_multiple_of(50) {
            self.renew();
        }
        if begun.elapsed() > PATIENCE * 2 {
            self.problems.push(format!("{}: {text}\n  let go after {:.1?}", self.device, begun.elapsed()));
        }
    }
}

fn rounds() -> std::ops::Range<u64> {
    let range = std::env::var("TSCRIPT_SWEEP").unwrap_or("0..1".into());
    let (from, to) = range.split_once("..").expect("from..to");
    from.parse().expect("a number")..to.parse().expect("a number")
}

/// What rounds of the sweep have found, once each.
const FOUND: &[&str] = &[
    "_sgd_step([v], [v], #{lr: 0.1, step: rows0})",
    "_lion_step([v], [v], [v], #{lr: 0.1, step: zeros([2]).double()})",
    "_adam_step([v], [v], #{exp_avg: [v], exp_avg_sq: [v], step: ones([]).double(), lr: 0.1})",
    "_asgd_step([v], [v], #{ax: [v], eta: [zero], mu: [zero], step: none.double(), lr: 0.1})",
    "_clip_grad_value([tensor(true)], 1e38)",
    "_unscale_grads([vol[0], vol, v], gq)",
];

/// Numbers and sizes whose products no number holds: answers or errors, and no panic.
const GIANTS: &[&str] = &[
    "polygamma(9223372036854775807, nan)",
    "rows0.diag_embed(1000000000000, #{dim1: 1, dim2: 2})",
    "let x = zeros([0, 1000000000003, 1000000000003]); x @ x",
    "let x = zeros([0, 1000000000003, 1000000000003]); complex(x, x).conj()",
    "let x = zeros([1000000000003, 1000000000003, 0]); x + x",
    "let x = zeros([1000000000003, 1000000000003, 0]); x.sum(2)",
    "sparse_coo_tensor([[0], [0]], [1.0], [1000000000000, 1000000000000]).to_dense()",
    "sparse_coo_tensor([[4000000000], [4000000000]], [1.0]).to_dense()",
    "fft::fft(zeros([0, 1000000000003]))",
];

#[test]
fn what_was_found_is_an_error() {
    for device in ["cpu", "cuda"] {
        let mut sweep = Sweep::new(device);
        for text in FOUND {
            let ended = sweep.session.run_str("found", text).err().map(|error| error.code());
            assert!(
                ended.is_some_and(|code| ["E0201", "E0202", "E0206", "E0205", "E0203"].contains(&code.as_str())),
                "{device}: {text}"
            );
        }
        FOUND.iter().for_each(|text| sweep.made(text, false));
        for text in GIANTS {
            sweep.made(text, false);
        }
        assert!(sweep.problems.is_empty(), "{:?}", sweep.problems);
    }
}

#[test]
#[cfg(target_os = "linux")]
fn hostile_arguments_are_errors_of_their_calls() {
    let reported = alone("sweep::hostile_arguments_are_errors_of_their_calls", Some(4000), || {
        let only = std::env::var("TSCRIPT_SWEEP_OP").ok();
        let shows = std::env::var("TSCRIPT_SWEEP_SHOW").is_ok();
        let rows: Vec<&'static Op> = tscript::internals::op::table::all()
            .filter(|op| op.call != CallForm::Internal && only.as_deref().is_none_or(|only| op.name == only))
            .collect();
        let mut problems = Vec::new();
        for device in ["cpu", "cuda"] {
            let mut sweep = Sweep::new(device);
            for round in rounds() {
                for (at, op) in rows.iter().enumerate() {
                    let mut random = Random::new(round << 16 | at as u64);
                    (0..2).for_each(|_| sweep.made(&call(op, &mut random), shows));
                }
            }
            println!("{device}: {} calls, {} problems", sweep.calls, sweep.problems.len());
            problems.append(&mut sweep.problems);
        }
        assert!(problems.is_empty(), "{} problems\n{}", problems.len(), problems.join("\n"));
    });
    assert!(std::env::var("TSCRIPT_SWEEP_SHOW").is_ok() || !reported.contains("panicked"), "{reported}");
}
