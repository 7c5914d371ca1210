"""Everything that wants a GPU, in one go, on a machine with built binaries: scripts against their expected output,
the integration tests, sanitizers, and speeds beside PyTorch. Prints one table.

usage: check.py TSCRIPT [--it TEST_BINARY] [--parts scripts,semantics,bench,sanitize] [--only PREFIX]
"""
import argparse
import json
import pathlib
import re
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]


def run(words, limit=300, folder=ROOT):
    begin = time.perf_counter()
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=limit, cwd=folder, errors="replace")
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
    for script, words in [("digits", []), ("cnn_digits", []), ("autograd_tour", [])]:
        code, out, err, seconds = run([tscript, "run", "--device", "cuda", f"scripts/{script}.rhai", "--", *words])
        print(f"{script}: exit {code}, {seconds:.2f} s, {out.splitlines()[-1] if out.strip() else ''} {err[-600:]}")
        passed += code == 0
        failed += [script] if code else []
    print(f"scripts: {passed} passed, {len(failed)} failed")
    for text in failed:
        print("  ", text)
    return not failed


def semantics(tscript):
    """`scripts/semantics` says on GPUs what it says on simulated ones."""
    _, out, _, _ = run([tscript, "devices"])
    gpus = len(re.findall(r"^  cuda:", out, re.M))
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
        code, out, err, _ = run([tscript, "run", *kept, script.name], 120, folder)
        told = out + err
        if told == script.with_suffix(".out").read_text():
            passed += 1
        else:
            pairs = zip(told.splitlines() + [""], script.with_suffix(".out").read_text().splitlines() + [""])
            first = next((f"{a!r} instead of {b!r}" for a, b in pairs if a != b), "lengths differ")
            failed.append(f"{script.name}: exit {code} {first}")
    print(f"semantics on {gpus} GPUs: {passed} passed, {left_out} left out, {len(failed)} failed")
    for text in failed:
        print("  ", text)
    return not failed


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
    for part in only or ["dispatch", "chain", "rows", "matmul", "copy", "mlp"]:
        code, out, err, _ = run([tscript, "run", "tests/gpu/bench.rhai", "--", "--only", part])
        ours.update(lines(out))
        if code:
            print(f"bench {part}: exit {code}\n{err[-1500:]}")
    code, out, err, _ = run([sys.executable, "tests/gpu/peers.py", *(only or [])], 400)
    theirs = lines(out)
    if code:
        print(err[-1500:])
    print(f"{'case':32} {'tscript':>12} {'PyTorch':>12} {'ratio':>8}  (above 1: tscript is faster)")
    for case in dict.fromkeys([*ours, *theirs]):
        a, b = ours.get(case), theirs.get(case)
        unit = (a or b)[1]
        faster = "-"
        if a and b and a[0] and b[0]:
            faster = f"{(b[0] / a[0] if unit in ('us', 's') else a[0] / b[0]):.2f}"
        show = lambda x: f"{x[0]:.3f}" if x else "-"
        print(f"{case + ' ' + unit:32} {show(a):>12} {show(b):>12} {faster:>8}")


def sanitize(tscript):
    clean = True
    for tool in ["memcheck", "racecheck"]:
        for script in ["control", "gradients", "values"]:
            words = ["compute-sanitizer", "--tool", tool, "--error-exitcode", "9", tscript, "run", "--device", "cuda"]
            code, out, err, _ = run([*words, f"tests/golden/{script}.rhai"], 200)
            print(f"{tool} {script}: exit {code} {(out + err).splitlines()[-1] if out + err else ''}")
            clean &= code == 0
    return clean


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tscript")
    parser.add_argument("--it")
    parser.add_argument("--parts", default="scripts,semantics,sanitize,bench")
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    tscript, parts = str(pathlib.Path(args.tscript).resolve()), args.parts.split(",")
    good = True
    if "scripts" in parts:
        good &= scripts(tscript)
    if "semantics" in parts:
        good &= semantics(tscript)
    if args.it:
        code, out, err, _ = run(["env", "TSCRIPT_TEST_DEVICES=cpu,sim,cuda", str(pathlib.Path(args.it).resolve())], 500)
        print(f"integration tests: exit {code}\n{out[-3000:]}\n{err[-1000:]}")
        good &= code == 0
    if "sanitize" in parts:
        good &= sanitize(tscript)
    if "bench" in parts:
        bench(tscript, [part for part in args.only.split("+") if part])
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
