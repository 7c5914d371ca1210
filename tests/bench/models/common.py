"""What the models share on PyTorch's side: weights from the same integers as `common.rhai`, and the clock."""
import json
import math
import time

import torch


def precision(kind):
    """Products of f32 as they are (`whole`), or with factors that are rounded to TF32."""
    torch.backends.cudnn.allow_tf32 = kind == "tf32"
    torch.set_float32_matmul_precision("high" if kind == "tf32" else "highest")


def spread(shape, name):
    """Values in [-1, 1) that depend on places and a name alone."""
    seed = sum(ord(c) * (i + 1) for i, c in enumerate(name))
    i = torch.arange(math.prod(shape))
    return ((i % 1013) * (i % 1297 + seed) % 2003).float().div(1001.5).sub(1.0).reshape(shape)


def fill(model):
    """Every parameter by its name: matrices by their inputs, scales near one, shifts near zero."""
    with torch.no_grad():
        for name, p in model.named_parameters():
            values = spread(p.shape, name)
            if p.ndim > 1:
                p.copy_(values * (1.0 / math.sqrt(p.numel() // p.shape[0])))
            elif name.endswith("weight"):
                p.copy_(values * 0.1 + 1.0)
            else:
                p.copy_(values * 0.1)
    return model


def synchronize():
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def timed(n, rounds, step):
    """Milliseconds of a call of `step`, the best of `rounds` rounds of `n` calls."""
    for _ in range(3):
        step()
    synchronize()
    best = math.inf
    for _ in range(rounds):
        begin = time.perf_counter()
        for _ in range(n):
            step()
        synchronize()
        best = min(best, (time.perf_counter() - begin) * 1e3 / n)
    return best


def emit(name, ms, check):
    print(json.dumps({"case": name, "ms": ms, "check": check}), flush=True)
