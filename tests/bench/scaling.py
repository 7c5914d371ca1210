#!/usr/bin/env python3
"""Idioms of scripts at one size and at four times that size: a step must cost the same however large its values are.

    tests/bench/scaling.py [--tscript target/release/tscript]

What is meant to be reached: no idiom takes more than six times as long for four times as many steps.
"""
import argparse, os, subprocess, sys, tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# Each runs N steps; what stands before `§` is not timed.
IDIOMS = {
    "a += [x]": "let a = []; § for i in 0..N { a += [i]; }",
    "m.a += [x]": "let m = #{a: []}; § for i in 0..N { m.a += [i]; }",
    "m += #{k: v}": "let m = #{}; § for i in 0..N { m += #{k: i}; }",
    "s |= set([x])": "let s = set([]); § for i in 0..N { s |= set([i]); }",
    "s.update([x])": "let s = set([]); § for i in 0..N { s.update([i]); }",
    "text += c": 'let t = ""; § for i in 0..N { t += "c"; }',
    "text[i]": 'let t = "abcdefghij" * (N / 10); let n = 0; § for i in 0..N { if t[i] == "a" { n += 1; } }',
    "text[i], not ASCII": 'let t = "aé→j" * (N / 4); let n = 0; § for i in 0..N { if t[i] == "a" { n += 1; } }',
    "k in m": "let m = #{}; for i in 0..N { m[`k${i}`] = i; } § for i in 0..N { `k${i}` in m; }",
    "k in o.m": "let o = #{m: #{}}; for i in 0..N { o.m[`k${i}`] = i; } § for i in 0..N { `k${i}` in o.m; }",
    "k !in m": "let m = #{}; for i in 0..N { m[`k${i}`] = i; } § for i in 0..N { `k${i}` !in m; }",
    "k in m, captured": "let m = #{}; for i in 0..N { m[`k${i}`] = i; } let f = |k| k in m; § for i in 0..N { f(`k${i}`); }",
    "len(o.a)": "let o = #{a: list(0..N)}; § for i in 0..N { len(o.a); }",
    "list of maps": "let l = (); § for i in 0..N { l = #{v: i, next: l}; }",
    "walk of a list": "let l = (); for i in 0..N { l = #{v: i, next: l}; } § while l != () { l = l.next; }",
    "f(a), a function": "fn f(a) { a.len() } let a = list(0..N); § for i in 0..N { f(a); }",
    "a == b": "let a = list(0..N); let b = [1]; § for i in 0..N { a == b; }",
    "a[i][j] = x": "let a = list(0..100).map(|i| list(0..N / 100)); § for i in 0..N { a[i % 100][i % 10] = i; }",
}


def seconds(program, idiom, steps):
    before, loop = idiom.split("§")
    text = f"{before} let begun = timestamp(); {loop} print(begun.elapsed);".replace("N", str(steps))
    with tempfile.NamedTemporaryFile("w", suffix=".rhai") as script:
        script.write(text)
        script.flush()
        done = subprocess.run([program, "run", script.name], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{idiom}\n{done.stderr}")
    return float(done.stdout)


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--tscript", default=os.path.join(ROOT, "target/release/tscript"))
    options = options.parse_args()
    steep = 0
    for name, idiom in IDIOMS.items():
        few, many = (min(seconds(options.tscript, idiom, steps) for _ in range(3)) for steps in (2000, 8000))
        steep += many > 6 * few
        print(f"{name:20} {few / 2000 * 1e9:8.0f} ns {many / 8000 * 1e9:8.0f} ns {'  steep' if many > 6 * few else ''}", flush=True)
    return 1 if steep else 0


if __name__ == "__main__":
    sys.exit(main())
