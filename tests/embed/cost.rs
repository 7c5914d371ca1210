//! What calls cost, printed and not judged: `cargo test --release --test embed -- --ignored --nocapture costs`.

use std::time::{Duration, Instant};
use tscript::{Session, Tensor};

const TEXT: &str = "fn empty() { } fn plus(x) { x + 1 } fn relu_of(x) { relu(x) }
    fn busy(n) { let sum = 0; for i in 0..n { sum += i; } sum }";

fn session() -> Session {
    let mut session = Session::builder().build().expect("a session starts");
    session.run_str("cost", TEXT).expect("it runs");
    session
}

/// The least time of one call, over rounds.
fn each(calls: u32, mut work: impl FnMut()) -> Duration {
    let round = |_| {
        let begun = Instant::now();
        (0..calls).for_each(|_| work());
        begun.elapsed() / calls
    };
    (0..20).map(round).min().unwrap_or_default()
}

#[test]
#[ignore = "prints costs"]
fn costs_of_calls() {
    let mut session = session();
    println!("empty()      {:?}", each(10_000, || session.call::<()>("empty", ()).expect("a call")));
    println!("plus(1)      {:?}", each(10_000, || assert_eq!(session.call::<i64>("plus", (1,)).expect("a call"), 2)));
    let x = Tensor::from_slice(&[1.0f32], &[1]).expect("a tensor");
    session.set("x", x).expect("set");
    let x: Tensor = session.get("x").expect("a tensor");
    println!("relu_of(x)   {:?}", each(500, || drop(session.call::<Tensor>("relu_of", (x.clone(),)).expect("a call"))));
    println!("a session    {:?}", each(3, || drop(self::session())));
}

#[test]
#[ignore = "prints costs"]
fn costs_of_threads() {
    for threads in [1, 2, 4, 8] {
        let begun = Instant::now();
        let work = || {
            let mut session = session();
            let begun = Instant::now();
            (0..200).for_each(|_| _ = session.call::<i64>("busy", (2000,)).expect("a call"));
            begun.elapsed()
        };
        let each: Vec<Duration> = std::thread::scope(|scope| {
            let running: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
            running.into_iter().map(|thread| thread.join().expect("no panic")).collect()
        });
        let longest = each.into_iter().max().unwrap_or_default();
        let rate = f64::from(threads * 200) / longest.as_secs_f64();
        println!("{threads} threads: {rate:.0} calls a second, {:?} in all", begun.elapsed());
    }
}
