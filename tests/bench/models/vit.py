import torch
import torch.nn as nn
import torch.nn.functional as F
from common import emit, fill, spread, timed


class Block(nn.Module):
    def __init__(self, heads, width):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        b, t, width = x.shape
        q, k, v = self.qkv(self.norm1(x)).reshape(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4).unbind(0)
        y = F.scaled_dot_product_attention(q, k, v)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, width))
        return x + self.mlp(self.norm2(x))


class Model(nn.Module):
    def __init__(self, side, patch, depth, heads, width, classes):
        super().__init__()
        self.patches = nn.Conv2d(3, width, patch, stride=patch)
        self.first = nn.Parameter(torch.zeros(1, 1, width))
        self.places = nn.Parameter(torch.zeros(1, 1 + (side // patch) ** 2, width))
        self.blocks = nn.Sequential(*(Block(heads, width) for _ in range(depth)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, classes)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.first.expand(x.shape[0], 1, x.shape[2]), x], 1) + self.places
        return self.head(self.norm(self.blocks(x))[:, 0])


def main(small, mode, device):
    batch, side, patch, depth, heads, width, classes = (
        (2, 16, 4, 2, 2, 16, 10) if small else (32, 224, 16, 12, 12, 768, 1000)
    )
    model = fill(Model(side, patch, depth, heads, width, classes)).to(device)
    run = torch.compile(model) if mode == "compile" else model
    x = spread((batch, 3, side, side), "x").to(device)
    y = torch.arange(batch, device=device) % classes
    opt = torch.optim.AdamW(model.parameters(), lr=1e-4)

    def step():
        opt.zero_grad()
        with torch.autocast(device, torch.bfloat16):
            loss = F.cross_entropy(run(x), y)
        loss.backward()
        opt.step()
        return loss

    told = [step().item(), step().item()]
    emit("vit_train", timed(1 if small else 5, 1 if small else 3, step), told)
    model.eval().bfloat16()
    run = torch.compile(model, mode="reduce-overhead") if mode == "compile" else model
    x = x.bfloat16()
    with torch.no_grad():
        told = [run(x).float().abs().mean().item()]
        emit("vit_batch", timed(1 if small else 10, 1 if small else 3, lambda: run(x)), told)
