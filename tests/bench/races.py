#!/usr/bin/env python3
"""What the race detector costs at each operation: one loop with `--races warn` and with `--races off`, on a simulated
GPU, alternately; processor time of both threads, medians, ratio.

    tests/bench/races.py [--tscript target/release/tscript] [--rounds 7]

What is meant to be reached: at most 5 % more with the detector.
"""
import argparse, os, resource, statistics, subprocess, tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
N = 1_000_000
CASES = {
    "a new tensor each": f'let a = ones([64], #{{device: "cuda"}}); let b = a; for i in 0..{N} {{ b = a + 1.0; }} b.sum().item();',
    "in place": f'let a = ones([64], #{{device: "cuda"}}); for i in 0..{N} {{ a.add_(1.0); }} a.sum().item();',
    "read by two streams": f'let s = stream(#{{device: "cuda"}}); let a = ones([64], #{{device: "cuda"}}); s.wait_stream(default_stream());'
    f' let b = a; with_stream(s) {{ b = a * 2.0; }} for i in 0..{N} {{ b = a + 1.0; }} b.sum().item();',
}


def seconds(program, script, mode):
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    subprocess.run([program, "run", "--simulate-gpus", "1", "--races", mode, script], check=True)
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tscript", default=os.path.join(ROOT, "target/release/tscript"))
    parser.add_argument("--rounds", type=int, default=7)
    args = parser.parse_args()
    for name, text in CASES.items():
        with tempfile.NamedTemporaryFile("w", suffix=".rhai") as script:
            script.write(text)
            script.flush()
            times = {"warn": [], "off": []}
            for _ in range(args.rounds):
                for mode, list_ in times.items():
                    list_.append(seconds(args.tscript, script.name, mode))
        on, off = (statistics.median(times[mode]) for mode in ("warn", "off"))
        print(f"{name:22} {off / N * 1e9:7.0f} ns off {on / N * 1e9:7.0f} ns on   ratio {on / off:.3f}")


if __name__ == "__main__":
    main()
