import torch
import torch.nn as nn
import torch.nn.functional as F
from common import emit, fill, spread, timed


def twice(inputs, outputs):
    first = nn.Conv2d(inputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU()
    return nn.Sequential(*first, nn.Conv2d(outputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU())


class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        sizes = [width << i for i in range(4)]
        self.down = nn.ModuleList(twice(3 if i == 0 else sizes[i - 1], sizes[i]) for i in range(4))
        self.up = nn.ModuleList(nn.ConvTranspose2d(sizes[i + 1], sizes[i], 2, stride=2) for i in range(3))
        self.join = nn.ModuleList(twice(2 * sizes[i], sizes[i]) for i in range(3))
        self.head = nn.Conv2d(width, 2, 1)

    def forward(self, x):
        kept = []
        for i, down in enumerate(self.down):
            x = down(x if i == 0 else F.max_pool2d(x, 2))
            kept.append(x)
        for i in [2, 1, 0]:
            x = self.join[i](torch.cat([kept[i], self.up[i](x)], 1))
        return self.head(x)


def main(small, mode, device):
    batch, side, width = (1, 16, 4) if small else (8, 256, 64)
    model = fill(Model(width)).to(device)
    run = torch.compile(model) if mode == "compile" else model
    x = spread((batch, 3, side, side), "x").to(device)
    y = (spread((batch, side, side), "y") > 0.0).long().to(device)
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)

    def step():
        opt.zero_grad()
        with torch.autocast(device, torch.bfloat16):
            loss = F.cross_entropy(run(x), y)
        loss.backward()
        opt.step()
        return loss

    told = [step().item(), step().item()]
    emit("unet_train", timed(1 if small else 5, 1 if small else 3, step), told)
