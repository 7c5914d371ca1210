#!/usr/bin/env python3
"""tscript beside PyTorch on the CPU, in one run: one table with a ratio for each case.

    tests/bench/cpu.py [--tscript target/release/tscript] [--groups memory,matmul] [--only softmax] [--rounds 3]

The groups of `cpu.rhai` and of `torch_group` below run alternately, in processes of their own (so neither side's
idle threads disturb the other), `rounds` times; of each case's medians the best counts, on both sides alike.
`target` is what tscript is meant to reach on two cores with AVX-512 (see the units in CASES).
"""
import argparse, os, statistics, subprocess, sys, time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))

# group -> [(case, what it is, unit, amount of work for rates, target)]; units: us, ms, GFLOP/s, GB/s, 1/s
CASES = {
    "small": [
        ("small_add", "add of 4 elements", "us", 1, 0.45),
        ("small_add_scalar", "add a number to 4 elements", "us", 1, 0.45),
        ("small_index", "x[2]", "us", 1, 0.35),
        ("small_matmul", "4x4 @ 4x4", "us", 1, 0.6),
        ("tape", "multiply with gradient, per op", "us", 1, 1.2),
    ],
    "chain": [
        ("chain_1e6", "relu(x*a+b)*0.5+tanh(x), 10^6", "ms", 1, 0.12),
        ("chain_1e7", "same, 10^7", "ms", 1, 1.5),
        ("chain_1e8", "same, 10^8", "ms", 1, 16),
    ],
    "memory": [
        ("softmax", "softmax of 4096^2", "ms", 1, 3.2),
        ("layer_norm", "layer norm of 4096^2", "ms", 1, 2.5),
        ("sum_all", "sum of 4096^2", "ms", 1, 0.7),
        ("sum_dim0", "sum of 4096^2 over dim 0", "ms", 1, 1.0),
        ("sum_dim1", "sum of 4096^2 over dim 1", "ms", 1, 0.7),
        ("transpose", "transpose 64 MB to contiguous", "ms", 1, 6),
        ("clone", "clone 64 MB", "ms", 1, 2.7),
    ],
    "elements": [
        ("randn", "randn 10^6", "ms", 1, 0.8),
        ("dropout", "dropout 10^6", "ms", 1, 0.8),
        ("where", "where 10^6", "ms", 1, 0.25),
        ("masked_select", "masked_select 10^6", "ms", 1, 0.5),
        ("nonzero", "nonzero 10^6", "ms", 1, 0.4),
        ("sort", "sort with indices 10^6", "ms", 1, 5),
        ("argmax", "argmax 10^6", "ms", 1, 0.06),
        ("cumsum", "cumsum 10^6", "ms", 1, 0.6),
        ("topk", "topk 100 of 10^6", "ms", 1, 0.8),
        ("gather", "gather 10^6", "ms", 1, 0.9),
    ],
    "matmul": [
        ("matmul_512", "matmul f32 512^3", "GFLOP/s", 2 * 512**3, 430),
        ("matmul_1024", "matmul f32 1024^3", "GFLOP/s", 2 * 1024**3, 440),
        ("matmul_2048", "matmul f32 2048^3", "GFLOP/s", 2 * 2048**3, 425),
        ("matmul_bf16", "matmul bf16 1024^3", "GFLOP/s", 2 * 1024**3, 600),
        ("matmul_f16", "matmul f16 1024^3", "GFLOP/s", 2 * 1024**3, 350),
        ("linear", "linear 128x784x512", "GFLOP/s", 2 * 128 * 784 * 512, 380),
        ("batched", "batched matmul 64x128^3", "GFLOP/s", 2 * 64 * 128**3, 300),
        ("matvec", "matrix-vector 4096^2", "GB/s", 4 * 4096**2, 48),
    ],
    "train": [
        ("mlp_sgd", "MLP 784-512-512-10 batch 128, SGD", "1/s", 1, 850),
        ("mlp_adam", "same, Adam", "1/s", 1, 600),
        ("tiny_sgd", "MLP 2-16-16-2 batch 64, SGD", "1/s", 1, 25000),
        ("lenet_sgd", "LeNet-5 batch 64, SGD", "1/s", 1, 330),
        ("cnn_adam", "MNIST CNN batch 64, Adam", "1/s", 1, 28),
        ("gpt_adamw", "GPT 4 layers d 128 T 128 batch 8, AdamW", "1/s", 1, 35),
    ],
    "infer": [
        ("infer_mlp", "MLP 784-512-512-10, batch 1", "us", 1, 32),
        ("infer_tiny", "MLP 2-16-16-2, batch 1", "us", 1, 3),
        ("infer_block", "transformer block d 256 T 64", "us", 1, 380),
    ],
    "conv": [
        ("conv", "conv 3x3 64->64 56^2 batch 8", "GFLOP/s", 16 * 64 * 64 * 9 * 56 * 56, 390),
        ("conv_backward", "same, forward and backward", "GFLOP/s", 48 * 64 * 64 * 9 * 56 * 56, 360),
    ],
}


def torch_group(group, only):
    """The same cases in PyTorch; prints what `cpu.rhai` prints."""
    import torch, torch.nn as nn, torch.nn.functional as F

    torch.manual_seed(0)

    def measure(name, calls, f):
        if only and only != name:
            return
        for _ in range(3):
            f()
        start, times = time.perf_counter(), []
        while len(times) < 7 or (time.perf_counter() - start < 0.7 and len(times) < 200):
            t = time.perf_counter()
            f()
            times.append(time.perf_counter() - t)
        print(f"{name}\t{statistics.median(times) / calls}", flush=True)

    def repeat(n, y, f):
        for _ in range(n):
            y = f(y)
        return y

    def train(name, model, make, x, y):
        opt = make(model.parameters())

        def step():
            opt.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            opt.step()

        measure(name, 1, step)

    def mlp(*sizes):
        layers = []
        for i in range(1, len(sizes)):
            layers += ([nn.ReLU()] if i > 1 else []) + [nn.Linear(sizes[i - 1], sizes[i])]
        return nn.Sequential(*layers)

    class Block(nn.Module):
        def __init__(self, d, heads):
            super().__init__()
            self.heads = heads
            self.ln1, self.ln2 = nn.LayerNorm(d), nn.LayerNorm(d)
            self.qkv, self.proj = nn.Linear(d, 3 * d), nn.Linear(d, d)
            self.fc, self.fc2 = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)

        def forward(self, x):
            b, t, d = x.shape
            q, k, v = self.qkv(self.ln1(x)).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
            a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.proj(a.transpose(1, 2).reshape(b, t, d))
            return x + self.fc2(F.gelu(self.fc(self.ln2(x)), approximate="tanh"))

    class Gpt(nn.Module):
        def __init__(self):
            super().__init__()
            self.tok, self.pos = nn.Embedding(256, 128), nn.Embedding(128, 128)
            self.blocks = nn.Sequential(*[Block(128, 4) for _ in range(4)])
            self.ln, self.head = nn.LayerNorm(128), nn.Linear(128, 256, bias=False)

        def forward(self, i):
            return self.head(self.ln(self.blocks(self.tok(i) + self.pos.weight))).reshape(-1, 256)

    randn = torch.randn
    with torch.no_grad():
        if group == "small":
            n, a, b, m = 20000, torch.rand(4), torch.rand(4), torch.rand(4, 4)
            measure("small_add", n, lambda: repeat(n, a, lambda y: y + b))
            measure("small_add_scalar", n, lambda: repeat(n, a, lambda y: y + 1.5))
            measure("small_index", n, lambda: repeat(n, a, lambda y: a[2]))
            measure("small_matmul", n, lambda: repeat(n, m, lambda y: y @ m))
        if group == "chain":
            for case, n in (("1e6", 10**6), ("1e7", 10**7), ("1e8", 10**8)):
                x = randn(n)
                measure("chain_" + case, 1, lambda: torch.relu(x * 1.5 + 0.1) * 0.5 + torch.tanh(x))
        if group == "memory":
            x, w, b = randn(4096, 4096), randn(4096), randn(4096)
            measure("softmax", 1, lambda: x.softmax(1))
            measure("layer_norm", 1, lambda: F.layer_norm(x, (4096,), w, b))
            measure("sum_all", 1, lambda: x.sum())
            measure("sum_dim0", 1, lambda: x.sum(0))
            measure("sum_dim1", 1, lambda: x.sum(1))
            measure("transpose", 1, lambda: x.T.contiguous())
            measure("clone", 1, lambda: x.clone())
        if group == "elements":
            n = 10**6
            x, y, index = randn(n), randn(n), torch.randint(0, n, (n,))
            mask = x > 0
            measure("randn", 1, lambda: randn(n))
            measure("dropout", 1, lambda: F.dropout(x, 0.5))
            measure("where", 1, lambda: torch.where(mask, x, y))
            measure("masked_select", 1, lambda: x.masked_select(mask))
            measure("nonzero", 1, lambda: mask.nonzero())
            measure("sort", 1, lambda: x.sort())
            measure("argmax", 1, lambda: x.argmax())
            measure("cumsum", 1, lambda: x.cumsum(0))
            measure("topk", 1, lambda: x.topk(100))
            measure("gather", 1, lambda: x.gather(0, index))
        if group == "matmul":
            for n in (512, 1024, 2048):
                a, b = randn(n, n), randn(n, n)
                measure(f"matmul_{n}", 1, lambda: a @ b)
            a, b = randn(1024, 1024), randn(1024, 1024)
            a1, b1, a2, b2 = a.bfloat16(), b.bfloat16(), a.half(), b.half()
            measure("matmul_bf16", 1, lambda: a1 @ b1)
            if only in ("", "matmul_f16"):
                measure("matmul_f16", 1, lambda: a2 @ b2)
            x, w, c = randn(128, 784), randn(512, 784), randn(512)
            measure("linear", 1, lambda: F.linear(x, w, c))
            p, q = randn(64, 128, 128), randn(64, 128, 128)
            measure("batched", 1, lambda: p @ q)
            m, v = randn(4096, 4096), randn(4096)
            measure("matvec", 1, lambda: m @ v)
        if group == "infer":
            model, x, tiny, s = mlp(784, 512, 512, 10), randn(1, 784), mlp(2, 16, 16, 2), randn(1, 2)
            measure("infer_mlp", 1, lambda: model(x))
            measure("infer_tiny", 1, lambda: tiny(s))
            block, t = Block(256, 4), randn(1, 64, 256)
            measure("infer_block", 1, lambda: block(t))
        if group == "conv":
            x, w = randn(8, 64, 56, 56), randn(64, 64, 3, 3)
            measure("conv", 1, lambda: F.conv2d(x, w, padding=1))

    if group == "small":
        x, w = torch.rand(4, requires_grad=True), torch.rand(4, requires_grad=True)

        def tape():
            repeat(200, x, lambda y: y * w).sum().backward()
            x.grad = w.grad = None

        measure("tape", 200, tape)
    if group == "train":
        opt = torch.optim
        x, y = randn(128, 784), torch.randint(0, 10, (128,))
        train("mlp_sgd", mlp(784, 512, 512, 10), lambda p: opt.SGD(p, lr=0.01), x, y)
        train("mlp_adam", mlp(784, 512, 512, 10), lambda p: opt.Adam(p, lr=1e-3), x, y)
        xs, ys = randn(64, 2), torch.randint(0, 2, (64,))
        train("tiny_sgd", mlp(2, 16, 16, 2), lambda p: opt.SGD(p, lr=0.01), xs, ys)
        xi, yi = randn(64, 1, 28, 28), torch.randint(0, 10, (64,))
        lenet = nn.Sequential(
            nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2),
            nn.Flatten(), nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10))
        train("lenet_sgd", lenet, lambda p: opt.SGD(p, lr=0.01), xi, yi)
        cnn = nn.Sequential(
            nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
            nn.Linear(9216, 128), nn.ReLU(), nn.Linear(128, 10))
        train("cnn_adam", cnn, lambda p: opt.Adam(p, lr=1e-3), xi, yi)
        i, t = torch.randint(0, 256, (8, 128)), torch.randint(0, 256, (8 * 128,))
        train("gpt_adamw", Gpt(), lambda p: opt.AdamW(p, lr=3e-4), i, t)
    if group == "conv":
        x, w = randn(8, 64, 56, 56, requires_grad=True), randn(64, 64, 3, 3, requires_grad=True)

        def both():
            F.conv2d(x, w, padding=1).sum().backward()
            x.grad = w.grad = None

        measure("conv_backward", 1, both)


def output_of(command, env=None):
    """Case -> seconds from a process that prints `case <tab> seconds` lines."""
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=env)
    if done.returncode:
        print(f"{command[0]} ended with status {done.returncode}", file=sys.stderr)
    pairs = (line.split("\t") for line in done.stdout.splitlines() if "\t" in line)
    return {case: float(seconds) for case, seconds in pairs}


def start_times(tscript, rounds):
    """Seconds from nothing to a first printed result, as a process."""
    ours = os.path.join(HERE, "start.rhai")
    best = {}
    for _ in range(rounds):
        for name, command in (("t", [tscript, "run", ours]),
                              ("p", [sys.executable, "-c", "import torch; print(torch.ones(3) + 1)"])):
            t = time.perf_counter()
            subprocess.run(command, stdout=subprocess.DEVNULL, cwd=ROOT)
            best[name] = min(best.get(name, 1e9), time.perf_counter() - t)
    return best["t"], best["p"]


def in_unit(seconds, unit, work):
    return {"us": 1e6 * seconds, "ms": 1e3 * seconds, "GFLOP/s": work / seconds / 1e9, "GB/s": work / seconds / 1e9,
            "1/s": 1 / seconds}[unit]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tscript", default=os.path.join(ROOT, "target/release/tscript"))
    parser.add_argument("--groups", default="start," + ",".join(CASES))
    parser.add_argument("--only", default="")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--no-torch", action="store_true", help="leave PyTorch out")
    parser.add_argument("--torch", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.torch:
        return torch_group(args.torch, args.only)
    print(f"{'case':42} {'unit':>8} {'tscript':>9} {'PyTorch':>9} {'faster':>7} {'target':>8} {'of it':>6}")
    if "start" in args.groups.split(",") and not args.only:
        ours, theirs = start_times(args.tscript, args.rounds + 2)
        print(f"{'process start to first result':42} {'ms':>8} {1e3 * ours:9.3g} {1e3 * theirs:9.3g} "
              f"{theirs / ours:6.2f}x {15:8} {0.015 / ours:6.2f}", flush=True)
    for group in (g for g in args.groups.split(",") if g in CASES):
        best = [{}, {}]
        for _ in range(args.rounds):
            sides = [[args.tscript, "run", os.path.join(HERE, "cpu.rhai"), "--", "--group", group, "--only", args.only]]
            if not args.no_torch:
                sides.append([sys.executable, __file__, "--torch", group, "--only", args.only])
            for side, command in enumerate(sides):
                for case, seconds in output_of(command).items():
                    best[side][case] = min(best[side].get(case, 1e9), seconds)
        for case, text, unit, work, target in CASES[group]:
            if case not in best[0]:
                continue
            ours, theirs = best[0][case], best[1].get(case, float("nan"))
            rate = unit in ("GFLOP/s", "GB/s", "1/s")
            value = in_unit(ours, unit, work)
            reached = value / target if rate else target / value
            print(f"{text:42} {unit:>8} {value:9.4g} {in_unit(theirs, unit, work):9.4g} {theirs / ours:6.2f}x "
                  f"{target:8g} {reached:6.2f}", flush=True)


if __name__ == "__main__":
    main()
