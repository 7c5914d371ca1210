#!/usr/bin/env python3
"""The language beside CPython and Lua: sixteen small programs, one table with a ratio for each.

    tests/bench/language.py [--tscript target/release/tscript] [--only sieve,maps] [--rounds 5]

Every program is in `language/` once for each language, written as people of that language write it. All three must
print the same. Rounds alternate between the languages; of each the best counts, less the best start of an
empty program in the same run. What tscript is meant to reach: a geometric mean of at most 0.7 of CPython's time, and nowhere above 1.5.
Python with PyTorch for `small_tensors` is that of VIRTUAL_ENV, or `python3`; without it that line is left out.
Variables of the environment reach tscript.
"""
import argparse, glob, math, os, shutil, subprocess, sys, tempfile, time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))


def timed(command):
    begun = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True)
    seconds = time.perf_counter() - begun
    return seconds, done.stdout.strip() if done.returncode == 0 else None, done.stderr


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--tscript", default=os.path.join(ROOT, "target/release/tscript"))
    options.add_argument("--only", default="")
    options.add_argument("--rounds", type=int, default=5)
    options = options.parse_args()
    with_torch = os.path.join(os.environ.get("VIRTUAL_ENV", ""), "bin/python")
    runs = {
        "tscript": ([options.tscript, "run"], "rhai"),
        "python": ([sys.executable], "py"),
        "lua": ([shutil.which("lua5.4") or shutil.which("lua") or "lua"], "lua"),
    }
    folder = tempfile.mkdtemp()
    starts = {}
    for name, (command, ending) in runs.items():
        open(os.path.join(folder, "empty." + ending), "w").close()
        if shutil.which(command[0]):
            starts[name] = math.inf
        else:
            print(f"{name} is not installed")
    names = sorted(os.path.basename(path)[:-5] for path in glob.glob(os.path.join(HERE, "language", "*.rhai")))
    if options.only:
        names = [name for name in names if name in options.only.split(",")]
    ratios, wrong, found = {"python": [], "lua": []}, False, {}
    for name in names:
        best, printed, imports = {}, {}, math.inf
        for _ in range(options.rounds):
            for language, (command, ending) in runs.items():
                path = os.path.join(HERE, "language", f"{name}.{ending}")
                if language not in starts or not os.path.exists(path):
                    continue
                if name == "small_tensors" and language == "python" and os.path.exists(with_torch):
                    command = [with_torch]
                starts[language] = min(starts[language], timed(runs[language][0] + [os.path.join(folder, "empty." + ending)])[0])
                seconds, output, error = timed(command + [path])
                if output is None:
                    if language == "tscript" or "No module named 'torch'" not in error:
                        print(f"{name}.{ending} failed:\n{error}")
                        wrong = True
                    continue
                if name == "small_tensors" and language == "python":
                    imports = min(imports, timed(command + ["-c", "import torch"])[0])
                best[language] = min(best.get(language, math.inf), seconds)
                printed[language] = output
        found[name] = (best, printed, imports)
    shutil.rmtree(folder)
    print(f"{'':16}{'tscript ms':>12}{'python ms':>12}{'lua ms':>12}{'of python':>12}{'of lua':>10}")
    for name, (best, printed, imports) in found.items():
        begun = dict(starts, python=imports) if name == "small_tensors" else starts
        best = {language: max(seconds - begun[language], 1e-4) for language, seconds in best.items()}
        if len(set(printed.values())) > 1:
            print(f"{name}: they print different things: {printed}")
            wrong = True
        cells = "".join(f"{best[l] * 1e3:12.1f}" if l in best else f"{'':>12}" for l in runs)
        for other in ratios:
            if other in best and "tscript" in best:
                ratio = best["tscript"] / best[other]
                ratios[other].append(ratio)
                cells += f"{ratio:{12 if other == 'python' else 10}.2f}"
        print(f"{name:16}{cells}")
    for other, of in ratios.items():
        if of:
            mean = math.exp(sum(map(math.log, of)) / len(of))
            print(f"geometric mean of {other}'s time: {mean:.2f}, largest {max(of):.2f}")
    print(", ".join(f"{name} starts in {seconds * 1e3:.1f} ms" for name, seconds in starts.items()))
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
