"""PyTorch's side of `bench.rhai`: the same cases, one JSON line each."""
import json
import statistics
import subprocess
import sys
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

dev = torch.device("cuda")


def emit(case, value, unit):
    print(json.dumps({"case": case, "value": value, "unit": unit}), flush=True)


def gpu_ms(f):
    for _ in range(5):
        f()
    torch.cuda.synchronize()
    times = []
    for _ in range(15):
        a, b = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        a.record()
        f()
        b.record()
        b.synchronize()
        times.append(a.elapsed_time(b))
    return statistics.median(times)


def wall_us(n, f):
    f(n // 10 + 1)
    torch.cuda.synchronize()
    times = []
    for _ in range(5):
        begin = time.perf_counter()
        f(n)
        torch.cuda.synchronize()
        times.append((time.perf_counter() - begin) * 1e6 / n)
    return statistics.median(times)


def rounds(f):
    def run(n):
        for _ in range(n):
            f()

    return run


def start():
    for where in ["cuda", "cpu"]:
        code = f"import torch; print((torch.ones(3, device='{where}') + 1).sum().item())"
        times = []
        for _ in range(3):
            begin = time.perf_counter()
            subprocess.run([sys.executable, "-c", code], stdout=subprocess.DEVNULL, check=True)
            times.append(time.perf_counter() - begin)
        emit(f"start.{where}", statistics.median(times), "s")


def dispatch():
    a, b, m = torch.randn(4, device=dev), torch.randn(4, device=dev), torch.randn(16, 16, device=dev)
    w = torch.randn(4, device=dev, requires_grad=True)
    with torch.no_grad():
        emit("dispatch.add", wall_us(20000, rounds(lambda: a + b)), "us")
        emit("dispatch.relu", wall_us(20000, rounds(lambda: torch.relu(a))), "us")
        emit("dispatch.matmul16", wall_us(5000, rounds(lambda: m @ m)), "us")
        emit("dispatch.sum", wall_us(20000, rounds(lambda: a.sum())), "us")
    emit("dispatch.mul_sum_backward", wall_us(2000, rounds(lambda: (w * b).sum().backward())), "us")
    s, e = torch.cuda.Stream(), torch.cuda.Event()

    def enter():
        with torch.cuda.stream(s):
            pass

    def order():
        e.record()
        s.wait_event(e)

    emit("dispatch.with_stream", wall_us(20000, rounds(enter)), "us")
    emit("dispatch.event_record_wait", wall_us(20000, rounds(order)), "us")


def chain():
    x, a, b = (torch.randn(1 << 28, device=dev) for _ in range(3))
    chains = {
        "relu_tanh": lambda: torch.relu(x * a + b) * 0.5 + torch.tanh(x),
        "gelu": lambda: 0.5 * x * (1 + torch.tanh(0.7978845608 * (x + 0.044715 * x * x * x))),
    }
    for name, f in chains.items():
        emit(f"chain.{name}", gpu_ms(f) * 1000, "us")
        emit(f"chain.{name}.compiled", gpu_ms(torch.compile(f)) * 1000, "us")


def rows():
    x = torch.randn(8192, 8192, device=dev)
    size = x.numel() * 4
    cases = {
        "softmax": (2, lambda: torch.softmax(x, -1)),
        "layer_norm": (2, lambda: F.layer_norm(x, (8192,))),
        "transpose": (2, lambda: x.T.contiguous()),
        "sum_all": (1, lambda: x.sum()),
        "sum_dim0": (1, lambda: x.sum(0)),
        "sum_dim1": (1, lambda: x.sum(1)),
        "cumsum": (2, lambda: x.cumsum(1)),
    }
    for name, (times, f) in cases.items():
        emit(f"rows.{name}", size * times / gpu_ms(f) / 1e9, "TB/s")


def matmul():
    for n in [4096, 8192]:
        a, b = torch.randn(n, n, device=dev), torch.randn(n, n, device=dev)
        emit(f"matmul.f32_{n}", 2 * n**3 / gpu_ms(lambda: a @ b) / 1e9, "TFLOP/s")
        a, b = a.bfloat16(), b.bfloat16()
        emit(f"matmul.bf16_{n}", 2 * n**3 / gpu_ms(lambda: a @ b) / 1e9, "TFLOP/s")
    torch.set_float32_matmul_precision("high")
    a = torch.randn(8192, 8192, device=dev)
    emit("matmul.tf32_8192", 2 * 8192**3 / gpu_ms(lambda: a @ a) / 1e9, "TFLOP/s")
    torch.set_float32_matmul_precision("highest")


def attention():
    q = torch.randn(16, 12, 1024, 64, device=dev, dtype=torch.bfloat16, requires_grad=True)
    flop = 4 * 16 * 12 * 1024 * 1024 * 64 / 2
    with torch.no_grad():
        seconds = gpu_ms(lambda: F.scaled_dot_product_attention(q, q, q, is_causal=True))
    emit("attention.forward", flop / seconds / 1e9, "TFLOP/s")

    def both():
        q.grad = None
        F.scaled_dot_product_attention(q, q, q, is_causal=True).sum().backward()

    emit("attention.and_back", gpu_ms(both) * 1000, "us")


def peer():
    if torch.cuda.device_count() > 1:
        a, b = torch.randn(1 << 28, device="cuda:0"), torch.empty(1 << 28, device="cuda:1")
        emit("peer.copy_1GiB", 1.073741824 / (wall_us(10, rounds(lambda: b.copy_(a, non_blocking=True))) / 1e6), "GB/s")


def encoder():
    layer = nn.TransformerEncoderLayer(384, 12, 1536, batch_first=True)
    model = nn.TransformerEncoder(layer, 6).to(dev).half().eval()
    many, one = (torch.randn(n, 128, 384, device=dev, dtype=torch.float16) for n in (32, 1))
    with torch.no_grad():
        emit("encoder.batch32", 32000 / gpu_ms(lambda: model(many)), "seq/s")
        emit("encoder.batch1", wall_us(100, rounds(lambda: model(one))), "us")


class Block(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(size), nn.LayerNorm(size)
        self.qkv, self.out = nn.Linear(size, 3 * size), nn.Linear(size, size)
        self.up, self.down = nn.Linear(size, 4 * size), nn.Linear(4 * size, size)

    def forward(self, x, kept, at):
        batch, length, size = x.shape
        q, k, v = (z.view(batch, length, 12, 64).transpose(1, 2) for z in self.qkv(self.norm1(x)).split(size, 2))
        if kept:
            kept[0][:, :, at : at + length] = k
            kept[1][:, :, at : at + length] = v
            k, v = (z[:, :, : at + length] for z in kept)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=not kept)
        x = x + self.out(y.transpose(1, 2).reshape(x.shape))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class Gpt(nn.Module):
    def __init__(self, size=768):
        super().__init__()
        self.token, self.place, self.norm = nn.Embedding(50304, size), nn.Embedding(1024, size), nn.LayerNorm(size)
        self.blocks = nn.ModuleList(Block(size) for _ in range(12))

    def forward(self, ids, kept=None, at=0):
        x = self.token(ids) + self.place.weight[at : at + ids.shape[1]]
        for i, block in enumerate(self.blocks):
            x = block(x, kept[i] if kept else None, at)
        return F.linear(self.norm(x), self.token.weight)


def gpt():
    torch.manual_seed(0)
    model = Gpt().to(dev).bfloat16()
    ids, wanted = torch.randint(0, 50257, (16, 1024), device=dev), torch.randint(0, 50257, (16 * 1024,), device=dev)
    for name, f in [("gpt.train_bf16", model), ("gpt.train_bf16.compiled", torch.compile(model))]:
        opt = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)

        def step():
            opt.zero_grad()
            F.cross_entropy(f(ids).view(16 * 1024, 50304).float(), wanted).backward()
            opt.step()

        emit(name, 16384e6 / wall_us(5, rounds(step)), "tokens/s")
    with torch.no_grad():
        kept = [[torch.zeros(1, 12, 1024, 64, device=dev, dtype=torch.bfloat16) for _ in range(2)] for _ in range(12)]

        def decode(n):
            token = torch.zeros(1, 1, dtype=torch.int64, device=dev)
            for at in range(n):
                token = model(token, kept, at).argmax(-1)

        emit("gpt.decode", 1e6 / wall_us(128, decode), "tokens/s")


def conv():
    cases = {
        "3x3": ((64, 64, 56, 56), (64, 64, 3, 3), dict(padding=1)),
        "deep": ((64, 256, 14, 14), (256, 256, 3, 3), dict(padding=1)),
        "1x1": ((64, 256, 56, 56), (64, 256, 1, 1), {}),
        "7x7": ((64, 3, 224, 224), (64, 3, 7, 7), dict(stride=2, padding=3)),
        "depthwise": ((64, 64, 56, 56), (64, 1, 3, 3), dict(padding=1, groups=64)),
    }
    for kind in ["f32", "tf32", "bf16"]:
        torch.backends.cudnn.allow_tf32 = kind == "tf32"
        dtype = torch.bfloat16 if kind == "bf16" else torch.float32
        for name, (of_x, of_w, options) in cases.items():
            x, w = torch.randn(of_x, device=dev, dtype=dtype), torch.randn(of_w, device=dev, dtype=dtype)
            b = torch.randn(of_w[0], device=dev, dtype=dtype)
            name = f"conv.{name}_{kind}"
            emit(name, gpu_ms(lambda: F.conv2d(x, w, **options)) * 1000, "us")
            if "3x3" in name:
                emit(f"{name}_bias", gpu_ms(lambda: F.conv2d(x, w, b, **options)) * 1000, "us")
            x.requires_grad_()
            w.requires_grad_()
            g = torch.ones_like(F.conv2d(x, w, **options).detach())
            emit(f"{name}_and_back", gpu_ms(lambda: torch.autograd.grad(F.conv2d(x, w, **options), (x, w), g)) * 1000, "us")


def copy():
    host = torch.ones(1 << 26)
    pinned, there = host.pin_memory(), torch.empty(1 << 26, device=dev)
    size = there.numel() * 4 / 1e9
    emit("copy.h2d_pinned", size / (wall_us(10, rounds(lambda: there.copy_(pinned, non_blocking=True))) / 1e6), "GB/s")
    emit("copy.h2d_pageable", size / (wall_us(10, rounds(lambda: there.copy_(host))) / 1e6), "GB/s")


def mlp():
    for kind in ["sgd", "adam"]:
        torch.manual_seed(0)
        layers = [nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10)]
        model = nn.Sequential(*layers).to(dev)
        opt = (
            torch.optim.SGD(model.parameters(), lr=0.01) if kind == "sgd" else torch.optim.Adam(model.parameters(), lr=1e-3)
        )
        x, y = torch.randn(128, 784, device=dev), torch.randint(0, 10, (128,), device=dev)

        def step():
            opt.zero_grad()
            F.cross_entropy(model(x), y).backward()
            opt.step()

        emit(f"mlp.{kind}", 1e6 / wall_us(500, rounds(step)), "steps/s")


if __name__ == "__main__":
    cases = [start, dispatch, chain, rows, matmul, attention, conv, copy, peer, mlp, encoder, gpt]
    for case in cases:
        if not sys.argv[1:] or case.__name__ in sys.argv[1:]:
            case()
