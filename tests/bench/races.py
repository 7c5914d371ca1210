#!/usr/bin/env python3
"""What the race detector costs at each operation: one loop with `--races warn` and with `--races off`, on a simulated
GPU, alternately; processor time of both threads, medians, ratio. With `--instructions` valgrind counts them, of all
threads, for 2000 operations more: no noise, and other work on the machine does not matter. The last case hands every
operation over by itself, so that its difference to the second is what a submission costs: plan, queue, ledger.

    tests/bench/races.py [--tscript target/release/tscript] [--rounds 7] [--instructions]

What is meant to be reached: at most 5 % more with the detector.
"""
import argparse, os, re, resource, statistics, subprocess, tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
N = 1_000_000
CASES = {
    "a new tensor each": 'let a = ones([64], #{device: "cuda"}); let b = a; for i in 0..N { b = a + 1.0; } b.sum().item();',
    "in place": 'let a = ones([64], #{device: "cuda"}); for i in 0..N { a.add_(1.0); } a.sum().item();',
    "read by two streams": 'let s = stream(#{device: "cuda"}); let a = ones([64], #{device: "cuda"}); s.wait_stream(default_stream());'
    ' let b = a; with_stream(s) { b = a * 2.0; } for i in 0..N { b = a + 1.0; } b.sum().item();',
    "submitted one by one": 'let a = ones([64], #{device: "cuda"}); let e = event(); for i in 0..N { a.add_(1.0); e.record(); } a.sum().item();',
}


def seconds(program, script, mode):
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    subprocess.run([program, "run", "--simulate-gpus", "1", "--races", mode, script], check=True)
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


def instructions(program, text, mode):
    """Instructions for one operation."""
    counts = []
    for n in (1000, 3000):
        with tempfile.NamedTemporaryFile("w", suffix=".rhai") as script:
            script.write(text.replace("N", str(n)))
            script.flush()
            command = [program, "run", "--simulate-gpus", "1", "--races", mode, script.name]
            ran = subprocess.run(["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", *command], capture_output=True, text=True)
        counts.append(int(re.search(r"Collected : (\d+)", ran.stderr).group(1)))
    return (counts[1] - counts[0]) / 2000


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tscript", default=os.path.join(ROOT, "target/release/tscript"))
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--instructions", action="store_true")
    args = parser.parse_args()
    for name, text in CASES.items():
        if args.instructions:
            off, on = (instructions(args.tscript, text, mode) for mode in ("off", "warn"))
            print(f"{name:22} {off:7.0f} instructions off {on:7.0f} on   ratio {on / off:.3f}", flush=True)
            continue
        with tempfile.NamedTemporaryFile("w", suffix=".rhai") as script:
            script.write(text.replace("N", str(N)))
            script.flush()
            times = {"warn": [], "off": []}
            for _ in range(args.rounds):
                for mode, list_ in times.items():
                    list_.append(seconds(args.tscript, script.name, mode))
        on, off = (statistics.median(times[mode]) for mode in ("warn", "off"))
        print(f"{name:22} {off / N * 1e9:7.0f} ns off {on / N * 1e9:7.0f} ns on   ratio {on / off:.3f}")


if __name__ == "__main__":
    main()
