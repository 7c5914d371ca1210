//! scratch driver
use std::time::{Duration, Instant};
use tscript::Session;
#[global_allocator]
static MEMORY: tscript::Metered = tscript::Metered;
fn main() {
    let args: Vec<String> = std::env::args().collect();
    // zzlimits FILE [k=v..]
    let text = if args[1] == "-e" { args[2].clone() } else { std::fs::read_to_string(&args[1]).unwrap() };
    let rest = if args[1] == "-e" { &args[3..] } else { &args[2..] };
    let get = |k: &str| rest.iter().find_map(|a| a.strip_prefix(&format!("{k}=")).map(|v| v.parse::<f64>().unwrap()));
    let mut b = Session::builder();
    if get("untrusted").is_some() {
        b = b.untrusted();
    }
    if let Some(t) = get("time") {
        b = b.time_limit(Duration::from_secs_f64(t));
    }
    if let Some(m) = get("mem") {
        b = b.memory_limit((m as usize) << 20);
    }
    if let Some(m) = get("heap") {
        b = b.heap_limit((m as usize) << 20);
    }
    if let Some(m) = get("dev") {
        b = b.device_memory_limit((m as usize) << 20);
    }
    if let Some(m) = get("ops") {
        b = b.operation_limit(m as u64);
    }
    if let Some(m) = get("gpus") {
        b = b.simulate_gpus(m as usize);
    }
    let quiet = get("quiet").is_some();
    if quiet {
        b = b.output(|_| {});
    }
    if get("allfiles").is_some() {
        b = b.all_files();
    }
    let mut s = b.build().unwrap();
    let h = s.interrupt_handle();
    let begun = Instant::now();
    if let Some(t) = get("int") {
        std::thread::spawn(move || {
            std::thread::sleep(Duration::from_secs_f64(t));
            h.interrupt();
        });
    }
    let r = s.run_str("x", &text);
    let ran = begun.elapsed();
    let told = match &r {
        Ok(_) => "ok".to_string(),
        Err(e) => format!("{} {}", e.code(), e.message()),
    };
    let b2 = Instant::now();
    let after = match s.eval::<i64>("1 + 1") {
        Ok(v) => v.to_string(),
        Err(e) => format!("{} {}", e.code(), e.message()),
    };
    let t2 = b2.elapsed();
    let b3 = Instant::now();
    drop(s);
    let t3 = b3.elapsed();
    let st = std::fs::read_to_string("/proc/self/status").unwrap();
    let hwm = st
        .lines()
        .find(|l| l.starts_with("VmHWM"))
        .unwrap()
        .split_whitespace()
        .nth(1)
        .unwrap()
        .parse::<usize>()
        .unwrap()
        >> 10;
    println!(
        "RESULT {told} | ran {:.2}s next {after} {:.2}s drop {:.2}s hwm {hwm}MiB",
        ran.as_secs_f64(),
        t2.as_secs_f64(),
        t3.as_secs_f64()
    );
}
