#!/usr/bin/env python3
"""Whole models beside PyTorch, in one run: milliseconds a step, ratios, and whether both give the same.

    tests/bench/models.py [--tscript target/release/tscript] [--device cpu|cuda] [--only gpt2,lstm]
                          [--modes eager,compile] [--precision whole|tf32] [--small] [--timeout 300]
                          [--write FILE]

Each model stands twice in `models/`: as a script, and as PyTorch's users write it. Both make the same weights from the same
integers (`common.rhai`, `common.py`). `compile` is `torch.compile`, with graphs where nothing is trained. What counts is
the best of PyTorch's modes. What is f32 is so on both sides, or rounds its factors to TF32 on both: PyTorch alone rounds
those of convolutions and recurrent layers from the start. `--small` is for tests; `--write` keeps what PyTorch's small models give as their fixture.
"""
import argparse, json, math, os, subprocess, sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
MODELS = os.path.join(HERE, "models")


def lines(command, seconds):
    """The cases that a process prints."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, cwd=MODELS)
    except subprocess.TimeoutExpired:
        print(f"  took more than {seconds} s: {' '.join(command)}", flush=True)
        return {}
    if done.returncode != 0:
        print("  failed: " + " ".join(command), done.stderr[-2000:], sep="\n", flush=True)
    cases = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return {case["case"]: case for case in cases}


def is_close(got, want):
    """Steps of mixed precision differ in their last digits, and more with each step."""
    return len(got) == len(want) and all(abs(a - b) <= 0.02 * max(abs(b), 0.1) * (1 + i) for i, (a, b) in enumerate(zip(got, want)))


def main():
    parse = argparse.ArgumentParser()
    parse.add_argument("--tscript", default=os.path.join(ROOT, "target/release/tscript"))
    parse.add_argument("--device", default="cpu")
    parse.add_argument("--only", default="")
    parse.add_argument("--modes", default="eager,compile")
    parse.add_argument("--precision", choices=["whole", "tf32"], default="whole")
    parse.add_argument("--small", action="store_true")
    parse.add_argument("--timeout", type=int, default=300)
    parse.add_argument("--write", default="")
    options = parse.parse_args()
    wanted = [part for part in options.only.split(",") if part]
    names = sorted(name[:-5] for name in os.listdir(MODELS) if name.endswith(".rhai") and name != "common.rhai")
    ratios, wrong, kept = [], [], {}
    print(f"{'':18}{'tscript':>10}" + "".join(f"{mode:>10}" for mode in options.modes.split(",")) + f"{'times':>8}")
    for name in names:
        if wanted and not any(part in name for part in wanted):
            continue
        call = "import common, {0}; common.precision({4!r}); {0}.main({1}, {2!r}, {3!r})"
        torch = {
            mode: lines([sys.executable, "-c", call.format(name, options.small, mode, options.device, options.precision)], options.timeout)
            for mode in options.modes.split(",")
            if mode
        }
        command = [os.path.abspath(options.tscript), "run", "--device", options.device, f"{name}.rhai", "--"]
        flags = ["--small"] * options.small + ["--tf32"] * (options.precision == "tf32")
        ours = lines(command + flags, options.timeout)
        for case in next(iter(torch.values()), ours):
            theirs = {mode: found.get(case, {}).get("ms", math.nan) for mode, found in torch.items()}
            mine = ours.get(case, {}).get("ms", math.nan)
            best = min((ms for ms in theirs.values() if not math.isnan(ms)), default=math.nan)
            print(f"{case:18}{mine:10.3f}" + "".join(f"{ms:10.3f}" for ms in theirs.values()) + f"{best / mine:8.2f}", flush=True)
            kept[case] = next((found[case]["check"] for found in torch.values() if case in found), None)
            got = ours.get(case, {}).get("check", [])
            if kept[case] and not is_close(got, kept[case]):
                wrong.append(f"{case}: {got}, and PyTorch gives {kept[case]}")
            if best / mine > 0:
                ratios.append(best / mine)
    if ratios:
        print(f"geometric mean {math.exp(sum(map(math.log, ratios)) / len(ratios)):.2f}, least {min(ratios):.2f}")
    if options.write:
        with open(options.write, "w") as file:
            json.dump(kept, file, indent=1)
            file.write("\n")
    print("\n".join(wrong), end="\n" if wrong else "")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
