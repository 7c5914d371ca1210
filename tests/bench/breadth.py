#!/usr/bin/env python3
"""Every operation beside PyTorch, in one run: times, ratios, and whether both give the same.

    tests/bench/breadth.py [--tscript target/release/tscript] [--device cpu|cuda] [--sizes small,ordinary,large]
                           [--dtypes f32,bf16] [--passes forward,gradient] [--layouts plain,transposed]
                           [--only TEXT,TEXT] [--chapters shape,loss] [--rounds 5] [--worst 20] [--out FILE]

The cases stand in `breadth/cases.py`. Each side makes the same inputs from the same integers, calls the case until its
caches are warm, and then times rounds of calls; the best round counts, on both sides alike. On a GPU a round is a dozen calls
whose results live until the end of the round, with one wait; on the CPU each call is waited for. What is printed: the
geometric mean of PyTorch's time over ours, the worst cases, and what the worst cost beside the memory traffic of their
inputs and outputs at the machine's measured copying speed (`of peak`). A case whose results differ is told and fails the run.
"""
import argparse, json, math, os, re, subprocess, sys, tempfile, time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(HERE, "breadth"))
from cases import CASES

SIZES = ["small", "ordinary", "large"]
TOLERANCE = {"f32": 2e-3, "bf16": 5e-2, "f16": 2e-2}

# ------------------------------------------------------------------------------------------------- texts of both sides


def filled(text, case, size):
    """`text` with the numbers of this size in the places of `{n}`."""
    for name, given in case.inputs.items():
        if given.kind == "n":
            text = text.replace("{" + name + "}", str(given.shapes[size]))
    return text


def in_tscript(text):
    named = lambda m: "#{" + re.sub(r"(\w+)=", r"\1: ", m[1]) + "})"
    text = re.sub(r"\b(\w+=(?!=)[^)]*)\)", named, text)
    text = re.sub(r"\b(fft|special|signal)\.(\w+)\(", lambda m: ("fft::" if m[1] == "fft" else "") + m[2] + "(", text)
    return text.replace("True", "true").replace("False", "false").replace("None", "()").replace("//", "/")


def runs(options):
    """What is to be measured: (key, case, size, dtype, pass, layout)."""
    for case in CASES:
        if options.chapters and case.chapter not in options.chapters:
            continue
        if options.only and not any(part in case.name for part in options.only):
            continue
        for size in range(3):
            if SIZES[size] not in options.sizes:
                continue
            for dtype in options.dtypes:
                for way in options.passes:
                    if way == "gradient" and not case.grad:
                        continue
                    for layout in options.layouts:
                        if layout == "transposed" and not case.layouts:
                            continue
                        key = "|".join([case.name, SIZES[size], dtype, way, layout])
                        yield key, case, size, dtype, way, layout


TSCRIPT_START = r"""
import "nn" as nn;
let calls = %(calls)d;
let rounds = %(rounds)d;
let gpu = %(gpu)s;
let event = if gpu { event() } else { () };
let hashed = |n, seed| {
    let h = (arange(n) * 2654435761 + seed * 40503) %% 4294967296;
    h = h.bitwise_xor(h.bitwise_right_shift(15));
    h = (h * 739982445) %% 4294967296;
    h.bitwise_xor(h.bitwise_right_shift(13))
};
let count = |shape| { let n = 1; for d in shape { n *= d; } n };
let made = |kind, shape, bound, seed, dtype, transposed| {
    if transposed && shape.len() > 1 { let last = shape.pop(); let before = shape.pop(); shape.push(last); shape.push(before); }
    let n = count.call(shape);
    let h = hashed.call(n, seed);
    let u = h.double() / 4294967296.0;
    let x = if kind == "f" { (u * 4 - 2).to(dtype) }
        else if kind == "p" { (u * 0.9 + 0.05).to(dtype) }
        else if kind == "q" { (u + 1.5).to(dtype) }
        else if kind == "o" { (arange(n).double() / n * 4 - 2).to(dtype) }
        else if kind == "e" { ((h %% 2) * 2 - 1).to(dtype) }
        else if kind == "i" { h %% bound }
        else if kind == "u" { arange(n) %% shape[shape.len() - 1] }
        else if kind == "u1" { (arange(n) * 3) }
        else if kind == "b" { h %% 2 == 0 }
        else { (u * 0.1).to(dtype) };
    let x = x.reshape(shape);
    if kind == "s" { let d = shape[shape.len() - 1]; x = (x + x.mT) * 0.5 + eye(d).to(dtype) * (d * 0.1 + 1.0); }
    if transposed && shape.len() > 1 { x = x.transpose(-1, -2); }
    x
};
let tensors = |v| {
    let found = [];
    if type_of(v) == "tensor" { found.push(v); }
    else if type_of(v) == "map" { for k in v.keys() { if type_of(v[k]) == "tensor" { found.push(v[k]); } } }
    else if type_of(v) == "array" { for w in v { if type_of(w) == "tensor" { found.push(w); } } }
    found
};
let total = |v, numbers| {
    if type_of(v) == "bool" { return if v { 1.0 } else { 0.0 }; }
    if type_of(v) == "float" || type_of(v) == "int" { return v.to_float(); }
    let sum = 0.0;
    for w in numbers.call(v) { sum += (if w.is_complex() { view_as_real(w) } else { w }).double().abs().nan_to_num(0.0, 0.0, 0.0).sum().item(); }
    sum
};
let measure = |key, f, checked| {
    try {
        let settle = || { synchronize(); };
        for i in 0..4 { let y = f.call(); settle.call(); }
        let t = timestamp();
        for i in 0..3 { let y = f.call(); settle.call(); }
        let one = t.elapsed / 3.0;
        let k = if gpu { calls } else { (0.002 / one).ceiling().to_int() };
        if k > 2000 { k = 2000; }
        if k < 1 { k = 1; }
        let best = 1e9;
        for r in 0..rounds {
            let t = timestamp();
            if gpu {
                let kept = [];
                for i in 0..k { kept.push(f.call()); event.record(); }
                synchronize();
                best = min(best, t.elapsed / k);
                kept.clear();
            } else {
                for i in 0..k { let y = f.call(); synchronize(); }
                best = min(best, t.elapsed / k);
            }
            if r > 1 && best * k > 0.5 { break; }
        }
        print("case\t" + key + "\t" + best + "\t" + checked.call(f.call()));
    } catch (error) {
        print("failed\t" + key + "\t" + error.to_string().split("\n")[0]);
    }
};
"""

TSCRIPT_CASE = r"""
if true {
%(inputs)s
    let f = || %(text)s;
    let gradient = %(gradient)s;
    let leaves = [%(leaves)s];
    let key = %(key)s;
    try {
        if gradient {
            for leaf in leaves { leaf.requires_grad_(true); }
            let outs = tensors.call(f.call());
            let y = outs[if outs.len() > 1 && !outs[0].is_floating_point() { 1 } else { 0 }];
            let g = made.call("p", y.shape, 0, 99, "f32", false).to(y.dtype);
            let which = if outs.len() > 1 && !outs[0].is_floating_point() { 1 } else { 0 };
            let whole = || {
                for leaf in leaves { leaf.grad = (); }
                let outs = tensors.call(f.call());
                outs[which].backward(g);
                let grads = [];
                for leaf in leaves { grads.push(leaf.grad); }
                grads
            };
            measure.call(key, whole, |v| total.call(v, tensors));
        } else {
            no_grad(|| measure.call(key, f, |v| total.call(v, tensors)));
        }
    } catch (error) {
        print("failed\t" + key + "\t" + error.to_string().split("\n")[0]);
    }
}
"""


def tscript_case(key, case, size, dtype, way, layout):
    lines, leaves = [], []
    for seed, (name, given) in enumerate(case.inputs.items()):
        if given.kind == "n":
            continue
        shape = list(given.shapes[size])
        bound = given.bounds[size] if given.bounds else 0
        lines.append(f'    let {name} = made.call("{given.kind}", {shape}, {bound}, {seed + 1}, "{dtype}", '
                     f'{"true" if layout == "transposed" else "false"});')
        if given.kind in "fps q".replace(" ", ""):
            leaves.append(name)
    if case.module:
        lines.append(f"    let m = {filled(case.module[0], case, size)};")
        lines.append('    let k = 100; for w in m.parameters() { k += 1; no_grad(|| w.copy_(made.call("f", w.shape, 0, k, "f32", false) * 0.05)); }')
    text = in_tscript(filled(case.text, case, size))
    if case.module:
        text = text.replace("[0]", ".output")
    return TSCRIPT_CASE % dict(inputs="\n".join(lines), text=text, gradient="true" if way == "gradient" else "false",
                               leaves=", ".join(leaves), key=json.dumps(key))


def run_tscript(options, chosen):
    start = TSCRIPT_START % dict(calls=options.calls, rounds=options.rounds, gpu="true" if options.device == "cuda" else "false")
    script = start + "".join(tscript_case(*one) for one in chosen)
    with tempfile.NamedTemporaryFile("w", suffix=".rhai", delete=False) as file:
        file.write(script)
    command = [options.tscript, "run", file.name]
    if options.device == "cuda":
        command[2:2] = ["--device", "cuda"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    times, failed = {}, {}
    for line in process.stdout:
        parts = line.rstrip("\n").split("\t")
        if parts[0] == "case":
            times[parts[1]] = (float(parts[2]), float(parts[3]))
        elif parts[0] == "failed":
            failed[parts[1]] = parts[2]
        else:
            print(line, end="")
    process.wait()
    if process.returncode:
        print(f"tscript ended with {process.returncode}; its script is {file.name}")
    else:
        os.unlink(file.name)
    return times, failed


# ------------------------------------------------------------------------------------------------------ PyTorch's side


class PyTorch:
    def __init__(self, options):
        import torch
        import torch.nn.functional as functional

        self.torch, self.options = torch, options
        self.names = {"fft": torch.fft, "nn": torch.nn, "special": torch.special, "torch": torch}
        for module in (torch, functional, torch.linalg):
            self.names.update({name: getattr(module, name) for name in dir(module) if not name.startswith("_")})
        self.names.update(cross=torch.cross, polar=torch.polar)
        self.dtypes = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}
        torch.set_default_device(options.device)
        # Whole f32 on both sides.
        torch.backends.cudnn.allow_tf32 = False

    def made(self, kind, shape, bound, seed, dtype, transposed):
        torch = self.torch
        shape = list(shape)
        if transposed and len(shape) > 1:
            shape[-1], shape[-2] = shape[-2], shape[-1]
        n = math.prod(shape)
        h = (torch.arange(n) * 2654435761 + seed * 40503) % 4294967296
        h = h ^ (h >> 15)
        h = (h * 739982445) % 4294967296
        h = h ^ (h >> 13)
        u = h.double() / 4294967296.0
        x = {"f": lambda: (u * 4 - 2).to(dtype), "p": lambda: (u * 0.9 + 0.05).to(dtype), "q": lambda: (u + 1.5).to(dtype),
             "o": lambda: (torch.arange(n).double() / n * 4 - 2).to(dtype), "e": lambda: ((h % 2) * 2 - 1).to(dtype),
             "i": lambda: h % bound, "u": lambda: torch.arange(n) % shape[-1], "u1": lambda: torch.arange(n) * 3,
             "b": lambda: h % 2 == 0, "s": lambda: (u * 0.1).to(dtype)}[kind]().reshape(shape)
        if kind == "s":
            x = (x + x.mT) * 0.5 + torch.eye(shape[-1]).to(dtype) * (shape[-1] * 0.1 + 1.0)
        return x.transpose(-1, -2) if transposed and len(shape) > 1 else x

    def wait(self):
        if self.options.device == "cuda":
            self.torch.cuda.synchronize()

    def tensors(self, value):
        if isinstance(value, self.torch.Tensor):
            return [value]
        return [w for w in value if isinstance(w, self.torch.Tensor)] if isinstance(value, (tuple, list)) else []

    def total(self, value):
        if isinstance(value, (bool, int, float)):
            return float(value)
        whole = 0.0
        for w in self.tensors(value):
            w = self.torch.view_as_real(w.resolve_conj()) if w.is_complex() else w
            whole += w.double().abs().nan_to_num(0.0, 0.0, 0.0).sum().item()
        return whole

    def closure(self, case, size, dtype, way, layout):
        torch, names, leaves = self.torch, dict(self.names), []
        for seed, (name, given) in enumerate(case.inputs.items()):
            if given.kind == "n":
                continue
            bound = given.bounds[size] if given.bounds else 0
            names[name] = self.made(given.kind, given.shapes[size], bound, seed + 1, self.dtypes[dtype], layout == "transposed")
            if given.kind in "fpsq":
                leaves.append(names[name])
        if case.module:
            names["m"] = eval(filled(case.module[1], case, size), names)
            with torch.no_grad():
                for k, w in enumerate(names["m"].parameters()):
                    w.copy_(self.made("f", w.shape, 0, 101 + k, torch.float32, False) * 0.05)
        f = eval("lambda: " + filled(case.text, case, size), names)
        traffic = sum(v.numel() * v.element_size() for k, v in names.items() if k in case.inputs and isinstance(v, torch.Tensor))
        if way == "forward":
            return f, traffic
        for leaf in leaves:
            leaf.requires_grad_(True)
        outs = self.tensors(f())
        which = 1 if len(outs) > 1 and not outs[0].is_floating_point() else 0
        g = self.made("p", outs[which].shape, 0, 99, outs[which].dtype, False)

        def whole():
            for leaf in leaves:
                leaf.grad = None
            self.tensors(f())[which].backward(g)
            return tuple(leaf.grad for leaf in leaves)

        return whole, 2 * traffic

    def measure(self, f):
        for _ in range(4):
            f()
            self.wait()
        t = time.perf_counter()
        for _ in range(3):
            f()
            self.wait()
        one = (time.perf_counter() - t) / 3
        gpu = self.options.device == "cuda"
        k = self.options.calls if gpu else min(2000, max(1, math.ceil(0.002 / one)))
        best = 1e9
        for r in range(self.options.rounds):
            t = time.perf_counter()
            kept = []
            for _ in range(k):
                y = f()
                if gpu:
                    kept.append(y)
            self.wait()
            best = min(best, (time.perf_counter() - t) / k)
            if r > 1 and best * k > 0.5:
                break
        return best

    def run(self, chosen):
        times, failed, traffic = {}, {}, {}
        for key, case, size, dtype, way, layout in chosen:
            try:
                f, inputs = self.closure(case, size, dtype, way, layout)
                with self.torch.set_grad_enabled(way == "gradient"):
                    best = self.measure(f)
                    value = f()
                    outputs = sum(w.numel() * w.element_size() for w in self.tensors(value))
                    times[key] = (best, self.total(value))
                    traffic[key] = inputs + outputs
                del f, value
            except Exception as error:
                failed[key] = str(error).split("\n")[0]
        return times, failed, traffic

    def copy_speed(self):
        """Bytes a second that a large copy reads and writes."""
        x = self.torch.ones(1 << 26)
        return 2 * 4 * (1 << 26) / self.measure(lambda: x.clone())


# ---------------------------------------------------------------------------------------------------------- the report

RANDOM = re.compile(r"rand|binomial|bernoulli|poisson|dropout|multinomial|uniform_|exponential_|cauchy_|normal_|geometric_|empty")


def same(case_name, dtype, ours, theirs):
    if RANDOM.search(case_name):
        return True
    return abs(ours - theirs) <= TOLERANCE[dtype] * max(abs(theirs), 1e-3)


def report(options, chosen, ours, theirs, failed_here, failed_there, traffic, speed):
    rows, wrong = [], []
    for key, case, *_ in chosen:
        if key in ours and key in theirs:
            ratio = theirs[key][0] / ours[key][0]
            peak = traffic[key] / speed / ours[key][0]
            rows.append((ratio, key, ours[key][0], theirs[key][0], peak))
            if not same(case.name, key.split("|")[2], ours[key][1], theirs[key][1]):
                wrong.append((key, ours[key][1], theirs[key][1]))
    rows.sort()
    for key, text in sorted(failed_here.items()):
        print(f"failed here: {key}: {text}")
    for key, text in sorted(failed_there.items()):
        print(f"failed in PyTorch: {key}: {text}")
    for key, mine, other in wrong:
        print(f"differs: {key}: {mine} and {other}")
    if not rows:
        return 1
    mean = math.exp(sum(math.log(row[0]) for row in rows) / len(rows))
    print(f"\n{len(rows)} cases, geometric mean {mean:.2f}, below 0.9: {sum(r[0] < 0.9 for r in rows)}, "
          f"below 0.5: {sum(r[0] < 0.5 for r in rows)}; a copy moves {speed / 1e9:.0f} GB/s")
    print(f"{'ratio':>7} {'tscript us':>11} {'PyTorch us':>11} {'of peak':>8}  case")
    for ratio, key, mine, other, peak in rows[: options.worst]:
        print(f"{ratio:7.2f} {mine * 1e6:11.1f} {other * 1e6:11.1f} {peak:8.2f}  {key}")
    if options.out:
        with open(options.out, "w") as file:
            json.dump([dict(ratio=r, case=k, tscript=a, pytorch=b, peak=p) for r, k, a, b, p in rows], file, indent=0)
    return 1 if wrong or failed_here else 0


def main():
    parse = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    listed = lambda text: [part for part in text.split(",") if part]
    parse.add_argument("--tscript", default=os.path.join(ROOT, "target/release/tscript"))
    parse.add_argument("--device", default="cpu")
    parse.add_argument("--sizes", type=listed, default=SIZES)
    parse.add_argument("--dtypes", type=listed, default=["f32"])
    parse.add_argument("--passes", type=listed, default=["forward", "gradient"])
    parse.add_argument("--layouts", type=listed, default=["plain"])
    parse.add_argument("--only", type=listed, default=[])
    parse.add_argument("--chapters", type=listed, default=[])
    parse.add_argument("--rounds", type=int, default=5)
    parse.add_argument("--calls", type=int, default=12, help="calls of a round on a GPU")
    parse.add_argument("--worst", type=int, default=20)
    parse.add_argument("--out")
    options = parse.parse_args()
    chosen = list(runs(options))
    ours, failed_here = run_tscript(options, chosen)
    pytorch = PyTorch(options)
    theirs, failed_there, traffic = pytorch.run(chosen)
    sys.exit(report(options, chosen, ours, theirs, failed_here, failed_there, traffic, pytorch.copy_speed()))


if __name__ == "__main__":
    main()
