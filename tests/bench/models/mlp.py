import torch
import torch.nn as nn
import torch.nn.functional as F
from common import emit, fill, spread, timed


def made(hidden, device):
    return fill(
        nn.Sequential(
            nn.Linear(784, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, 10)
        )
    ).to(device)


def main(small, mode, device):
    hidden = 16 if small else 512
    n, rounds = (2, 1) if small else (200, 5)
    with torch.no_grad():
        model, x = made(hidden, device), spread((1, 784), "x").to(device)
        run = torch.compile(model, mode="reduce-overhead") if mode == "compile" else model
        told = [run(x).abs().mean().item(), run(x).max().item()]
        emit("mlp_1", timed(n, rounds, lambda: run(x)), told)
    x, y = spread((128, 784), "x").to(device), torch.arange(128, device=device) % 10
    for name in ["sgd", "adam"]:
        model = made(hidden, device)
        run = torch.compile(model) if mode == "compile" else model
        make = torch.optim.SGD if name == "sgd" else torch.optim.Adam
        opt = make(model.parameters(), lr=0.01 if name == "sgd" else 0.001)

        def step():
            opt.zero_grad()
            loss = F.cross_entropy(run(x), y)
            loss.backward()
            opt.step()
            return loss

        told = [step().item(), step().item()]
        emit("mlp_" + name, timed(n, rounds, step), told)
