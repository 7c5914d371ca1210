#!/usr/bin/env python3
"""Memory of the program while one script queues very many operations on very many streams of a simulated GPU: resident
and peak memory after 10 %, 50 % and 100 % of them, and the time for each.

    tests/bench/growth.py [--tscript target/release/tscript] [--operations 10000000] [--streams 1000]

What is meant to be reached: nothing grows between 10 % and 100 %.
"""
import argparse, os, subprocess, tempfile, time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# Ten operations on a stream, an event, a wait of the next stream; every hundredth round a new stream takes the place
# of an old one, and a value is read.
SCRIPT = """
let streams = [];
for i in 0..STREAMS { streams.push(stream()); }
let shared = ones([64], #{device: "cuda"});
let base = shared * 2.0;
stream_barrier(streams + [current_stream()]);
let rounds = OPERATIONS.floor_divide(10 * STREAMS);
let event = event();
for round in 0..rounds {
    for s in streams {
        s.wait_event(event);
        with_stream(s) {
            let x = base + shared;
            for i in 0..4 { x = x * 0.5 + 1.0; }
            x.add_(1.0);
        }
        event.record(s);
    }
    if round % 100 == 99 {
        streams[round % STREAMS] = stream();
        streams[round % STREAMS].wait_stream(current_stream());
        streams[(round + 1) % STREAMS].synchronize();
    }
    if round + 1 == rounds.floor_divide(10) { synchronize(); print("10 %"); }
    if round + 1 == rounds.floor_divide(2) { synchronize(); print("50 %"); }
}
synchronize();
print("100 %");
"""


def memory(pid):
    """Resident and peak memory in MiB."""
    with open(f"/proc/{pid}/status") as status:
        found = {line.split(":")[0]: line.split()[1] for line in status if line.startswith(("VmRSS", "VmHWM"))}
    return [int(found[name]) / 1024 for name in ("VmRSS", "VmHWM")]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tscript", default=os.path.join(ROOT, "target/release/tscript"))
    parser.add_argument("--operations", type=int, default=10_000_000)
    parser.add_argument("--streams", type=int, default=1000)
    args = parser.parse_args()
    text = SCRIPT.replace("OPERATIONS", str(args.operations)).replace("STREAMS", str(args.streams))
    with tempfile.NamedTemporaryFile("w", suffix=".rhai") as script:
        script.write(text)
        script.flush()
        begun = time.time()
        command = [args.tscript, "run", "--simulate-gpus", "1", script.name]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            for line in process.stdout:
                resident, peak = memory(process.pid)
                seconds = time.time() - begun
                print(f"{line.strip():>6} of {args.operations} operations: {resident:7.1f} MiB, peak {peak:7.1f} MiB, {seconds:6.1f} s", flush=True)
        if process.returncode:
            raise SystemExit(f"the script ended with status {process.returncode}")


if __name__ == "__main__":
    main()
