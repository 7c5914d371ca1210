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
    cases = [start, dispatch, chain, rows, matmul, conv, copy, mlp]
    for case in cases:
        if not sys.argv[1:] or case.__name__ in sys.argv[1:]:
            case()
