"""Everything that wants a GPU, in one go, on a machine with built binaries: scripts against their expected output,
the integration tests, sanitizers, and speeds beside PyTorch. Prints one table; its last column says what was correct.

usage: check.py TSCRIPT [--it TEST_BINARY] [--parts scripts,semantics,conformance,sanitize,bench] [--only PREFIX]
                [--tests PREFIX]
The part `sanitize-all` (some minutes on 32 cores) has all of OpInfo under the checkers too.
"""
import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import time

from conformance import conformance, sanitized

ROOT = pathlib.Path(__file__).resolve().parents[2]


def run(words, limit=300, folder=ROOT, more=None):
    begin = time.perf_counter()
    try:
        done = subprocess.run(
            words,
            capture_output=True,
            text=True,
            timeout=limit,
            cwd=folder,
            errors="replace",
            env={**os.environ, **(more or {})},
        )
        return done.returncode, done.stdout, done.stderr, time.perf_counter() - begin
    except subprocess.TimeoutExpired as late:
        text = lambda part: (part or b"").decode(errors="replace") if isinstance(part, bytes) else (part or "")
        return 124, text(late.stdout), text(late.stderr) + f"\nstopped after {limit} s", limit


def scripts(tscript):
    """Golden scripts print on a GPU what they print on the CPU, but for the device's name."""
    passed, failed = 0, []
    for script in sorted((ROOT / "tests/golden").glob("*.rhai")):
        wanted = script.with_suffix(".out").read_text()
        code, out, err, _ = run([tscript, "run", "--device", "cuda", str(script)])
        out = re.sub(r", device=cuda:0", "", out)
        if code == 0 and out == wanted:
            passed += 1
        else:
            first = next((f"{a!r} instead of {b!r}" for a, b in zip(out.splitlines(), wanted.splitlines()) if a != b), "")
            failed.append(f"{script.name}: exit {code} {first} {err[:600]}")
    for path in sorted((ROOT / "scripts").glob("*.rhai")):
        # One of minutes is run in its short form.
        words = ["--", "--quick"] if path.stem in ("char_gpt", "gpt2_train", "ddpm", "spectral_pde", "speech_commands") else []
        code, out, err, seconds = run([tscript, "run", "--device", "cuda", str(path), *words])
        print(f"{path.stem}: exit {code}, {seconds:.2f} s, {out.splitlines()[-1] if out.strip() else ''}")
        passed += code == 0
        failed += [f"{path.name}: exit {code}\n{err[-1500:]}"] if code else []
    return [("scripts", passed, len(failed))], failed


def semantics(tscript):
    """`scripts/semantics` says on GPUs what it says on simulated ones: on all that there are, and on the first alone."""
    _, out, _, _ = run([tscript, "devices"])
    gpus = len(re.findall(r"^  cuda:", out, re.M))
    rows, failed = [], []
    for count in dict.fromkeys([gpus, 1]):
        row, told = semantics_on(tscript, count, {"CUDA_VISIBLE_DEVICES": "0"} if count < gpus else {})
        rows.append(row)
        failed += told
    return rows, failed


def semantics_on(tscript, gpus, more):
    passed, left_out, failed = 0, 0, []
    folder = ROOT / "scripts/semantics"
    for script in sorted(folder.glob("*.rhai")):
        text = script.read_text()
        words = next((line[8:].split() for line in text.splitlines() if line.startswith("// run: ")), [])
        wanted = int(words[words.index("--simulate-gpus") + 1]) if "--simulate-gpus" in words else 0
        if wanted > gpus or (wanted == 0 and "no_gpu" in script.name) or "\n// sim only:" in "\n" + text:
            left_out += 1
            continue
        kept, words = [], iter(words)
        for word in words:
            if word.startswith("--simulate-"):
                next(words, None)
            else:
                kept.append(word)
        # In the root, as in `cargo test`: scripts name files from there; texts name the scripts alone.
        code, out, err, _ = run([tscript, "run", *kept, str(script.relative_to(ROOT))], 120, ROOT, more)
        told = (out + err).replace("scripts/semantics/", "")
        if told == script.with_suffix(".out").read_text():
            passed += 1
        else:
            pairs = zip(told.splitlines() + [""], script.with_suffix(".out").read_text().splitlines() + [""])
            first = next((f"{a!r} instead of {b!r}" for a, b in pairs if a != b), "lengths differ")
            failed.append(f"{script.name} on {gpus}: exit {code} {first}")
    print(f"semantics: {left_out} left out with {gpus} GPUs")
    return (f"semantics on {gpus}", passed, len(failed)), failed


def lines(text):
    found = {}
    for line in text.splitlines():
        if line.startswith("{"):
            one = json.loads(line)
            found[one["case"]] = (one["value"], one["unit"])
    return found


def bench(tscript, only):
    times = []
    for _ in range(3):
        times.append(run([tscript, "run", "tests/gpu/start.rhai"])[3])
    ours = {"start.cuda": (statistics.median(times), "s")}
    for part in only or ["dispatch", "chain", "rows", "matmul", "attention", "conv", "copy", "peer", "mlp", "encoder", "gpt"]:
        code, out, err, _ = run([tscript, "run", "tests/gpu/bench.rhai", "--", "--only", part])
        ours.update(lines(out))
        if code:
            print(f"bench {part}: exit {code}\n{err[-1500:]}")
    code, out, err, _ = run([sys.executable, "tests/gpu/peers.py", *(only or [])], 400)
    theirs = lines(out)
    if code:
        print(err[-1500:])
    rows = []
    for case in dict.fromkeys([*ours, *theirs]):
        a, b = ours.get(case), theirs.get(case)
        unit = (a or b)[1]
        faster = "-"
        if a and b and a[0] and b[0]:
            faster = f"{(b[0] / a[0] if unit in ('us', 's') else a[0] / b[0]):.2f}"
        show = lambda x: f"{x[0]:.3f}" if x else "-"
        rows.append((f"{case} {unit}", show(a), show(b), faster))
    return rows


def sanitize(tscript):
    """Some scripts under the checkers, where there is no test binary."""
    rows, failed = [], []
    for tool in ["memcheck", "racecheck"]:
        for script in ["control", "gradients", "values"]:
            words = ["compute-sanitizer", "--tool", tool, "--error-exitcode", "9", tscript, "run", "--device", "cuda"]
            code, out, err, _ = run([*words, f"tests/golden/{script}.rhai"], 200)
            rows.append((f"{tool} {script}", int(code == 0), int(code != 0)))
            failed += [f"{tool} {script}: exit {code}\n{(out + err)[-2000:]}"] if code else []
    return rows, failed


def table(verdicts, figures):
    line = "{:44} {:>12} {:>12} {:>8}  {}"
    print(line.format("case", "tscript", "PyTorch", "ratio", "correct"))
    for what, passed, failed in verdicts:
        print(line.format(what, "", "", "", f"{passed} passed, {failed} failed" if failed else f"{passed} passed"))
    for case, ours, theirs, ratio in figures:
        print(line.format(case, ours, theirs, ratio, ""))
    print("a ratio above 1: tscript is faster")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tscript")
    parser.add_argument("--it")
    parser.add_argument("--parts", default="scripts,semantics,conformance,sanitize,bench")
    parser.add_argument("--only", default="")
    parser.add_argument("--tests", default="")
    args = parser.parse_args()
    tscript, parts = str(pathlib.Path(args.tscript).resolve()), args.parts.split(",")
    verdicts, problems, figures = [], [], []
    checks = {
        "scripts": lambda: scripts(tscript),
        "semantics": lambda: semantics(tscript),
        "conformance": lambda: conformance(args.it, tscript, args.tests) if args.it else ([], []),
        "sanitize": lambda: sanitized(args.it, tscript) if args.it else sanitize(tscript),
        "sanitize-all": lambda: sanitized(args.it, tscript, 8, 200),
    }
    for part in parts:
        if part in checks:
            begin = time.perf_counter()
            rows, told = checks[part]()
            print(f"{part}: {time.perf_counter() - begin:.0f} s", flush=True)
            verdicts += rows
            problems += told
    if "bench" in parts:
        figures = bench(tscript, [part for part in args.only.split("+") if part])
    for text in problems:
        print("FAILED", text)
    table(verdicts, figures)
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
