//! Out of memory is raised at the call, whatever causes it, and memory that nothing uses any more goes back.

use super::scripts::{builder, run};
use tscript::Builder;

const MIB: usize = 1 << 20;

fn gpu(mib: usize) -> Builder {
    builder().simulate_gpus(1).simulate_memory(mib * MIB)
}

/// Of a block in which memory runs out: the last line that was done, the code, and that the session goes on.
fn runs_out(base: Builder, before: &str, lines: &[&str], done: usize) {
    let numbered: Vec<String> =
        lines.iter().enumerate().map(|(at, line)| format!("{line} done = {};", at + 1)).collect();
    let text = format!(
        "let mib = |n| zeros([n * 262144], #{{device: \"cuda\"}});
        let done = 0; {before}
        try {{ {} }} catch (e) {{ print(done, e.code); }}
        print(ones([2], #{{device: \"cuda\"}}).sum().item());
        synchronize();",
        numbered.join("\n")
    );
    let ran = run(base, "memory", &text);
    assert!(ran.result.is_ok(), "{:?}\n{}", ran.result.err().map(|error| error.diag().message.clone()), ran.printed);
    assert_eq!(ran.printed, format!("{done} E0304\n2.0\n"), "{text}");
}

#[test]
fn a_memory_fraction_is_enforced_at_the_call() {
    let before = "cuda::set_per_process_memory_fraction(0.5);";
    runs_out(gpu(64), before, &["let a = mib.call(20);", "let b = mib.call(20);", "let c = a + 1;"], 1);
    // Many small ones, none of which is too large.
    let many = "let all = []; for i in 0..40 { all.push(mib.call(1)); done = all.len(); }";
    let text = format!(
        "cuda::set_per_process_memory_fraction(0.5); let mib = |n| zeros([n * 262144], #{{device: \"cuda\"}}); let done = 0;
        try {{ {many} }} catch (e) {{ print(done, e.code); }} synchronize();"
    );
    let ran = run(gpu(64), "memory", &text);
    assert_eq!(ran.printed, "32 E0304\n", "{:?}", ran.result.err());
}

#[test]
fn fragmentation_is_reported_at_the_call() {
    // The one segment has a hole of 30 MiB, and 24 MiB can still be reserved.
    let before = "let whole = mib.call(40); synchronize(); whole = (); let part = mib.call(10); synchronize();";
    runs_out(gpu(64), before, &["let a = mib.call(5);", "let b = mib.call(45);", "let c = b + 1;"], 1);
    runs_out(gpu(64), before, &["let a = mib.call(24);", "let b = mib.call(24);", "let c = mib.call(20);"], 2);
}

#[test]
fn what_fits_is_not_refused() {
    let text = "let a = zeros([8 * 262144], #{device: \"cuda\"});
        for i in 0..50 { a = a * 1.5 + 1; a = a.relu(); }
        let parts = []; for i in 0..20 { parts.push(zeros([262144], #{device: \"cuda\"}) + i); }
        let total = 0.0; for part in parts { total += part[0].item(); }
        print(total, cuda::max_memory_reserved() <= 64 << 20);";
    let ran = run(gpu(64), "memory", text);
    assert_eq!(ran.printed, "190.0 true\n", "{:?}", ran.result.err().map(|error| error.diag().message.clone()));
}

#[test]
fn a_recorded_stream_keeps_memory_only_until_it_has_passed() {
    for before in
        ["", "with_stream(s) { cuda::sleep(5); }", "with_stream(s) { x.add_(1); }", "s.wait_stream(default_stream());"]
    {
        for wait in ["synchronize();", "s.synchronize(); default_stream().synchronize();"] {
            for seed in 0..3 {
                let text = format!(
                    "let s = stream(); let x = zeros([4 * 262144], #{{device: \"cuda\"}}); s.wait_stream(default_stream());
                    {before} x.record_stream(s); x = ();
                    {wait} print(cuda::memory_allocated()); cuda::empty_cache(); print(cuda::memory_reserved());"
                );
                let ran = run(gpu(64).simulate_seed(seed), "record", &text);
                assert_eq!(ran.printed, "0\n0\n", "{text} {:?}", ran.result.err());
            }
        }
    }
}

/// The results of a stream's work take memory of that stream, also where another one is the current one when it is queued: what
/// that one has freed may still be in use there.
#[test]
fn a_stream_takes_no_memory_that_another_has_freed() {
    let text = "let a = ones([1000], #{device: \"cuda\"}); let s = stream(); s.wait_stream(current_stream());
        let y = full([1000], 7.0).to(\"cuda\") * 2;
        let z = with_stream(s) { a * 3 };
        synchronize();
        print(y.mean().item(), z.mean().item());";
    for seed in 1..9 {
        let ran = run(gpu(64).simulate_seed(seed), "streams", text);
        assert_eq!(ran.printed, "14.0 3.0\n", "seed {seed}: {:?}", ran.result.err());
    }
}

/// A segment names the stream whose memory it is.
#[test]
fn segments_have_the_numbers_of_streams() {
    let text = "let s = stream(); let a = ones([3], #{device: \"cuda\"});
        let b = with_stream(s) { ones([3], #{device: \"cuda\"}) }; synchronize();
        print(sorted(cuda::memory_snapshot().map(|q| q.stream)) == [default_stream().id, s.id]);";
    let ran = run(builder().simulate_gpus(1), "memory", text);
    assert!(ran.result.is_ok() && ran.printed == "true\n", "{}", ran.printed);
}
