import torch
import torch.nn as nn
import torch.nn.functional as F
from common import emit, fill, spread, timed


class Bottleneck(nn.Module):
    def __init__(self, inputs, width, stride):
        super().__init__()
        outputs = 4 * width
        self.conv1, self.bn1 = nn.Conv2d(inputs, width, 1, bias=False), nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride=stride, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3, self.bn3 = nn.Conv2d(width, outputs, 1, bias=False), nn.BatchNorm2d(outputs)
        self.shortcut = (
            nn.Identity()
            if stride == 1 and inputs == outputs
            else nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride=stride, bias=False), nn.BatchNorm2d(outputs))
        )

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)))
        y = F.relu(self.bn2(self.conv2(y)))
        return F.relu(self.bn3(self.conv3(y)) + self.shortcut(x))


def resnet(blocks, classes):
    layers = [nn.Conv2d(3, 64, 7, stride=2, padding=3, bias=False), nn.BatchNorm2d(64), nn.ReLU()]
    layers.append(nn.MaxPool2d(3, stride=2, padding=1))
    inputs = 64
    for stage, count in enumerate(blocks):
        for i in range(count):
            layers.append(Bottleneck(inputs, 64 << stage, 2 if stage > 0 and i == 0 else 1))
            inputs = 4 * (64 << stage)
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, classes)]
    return nn.Sequential(*layers)


def main(small, mode, device):
    batch, side, classes, blocks = (4, 32, 10, [1, 1, 1, 1]) if small else (64, 224, 1000, [3, 4, 6, 3])
    model = fill(resnet(blocks, classes)).to(device)
    run = torch.compile(model) if mode == "compile" else model
    x = spread((batch, 3, side, side), "x").to(device)
    y = torch.arange(batch, device=device) % classes
    opt = torch.optim.SGD(model.parameters(), lr=0.0001, momentum=0.9)

    def step():
        opt.zero_grad()
        with torch.autocast(device, torch.bfloat16):
            loss = F.cross_entropy(run(x), y)
        loss.backward()
        opt.step()
        return loss

    told = [step().item(), step().item()]
    emit("resnet50_train", timed(1 if small else 5, 1 if small else 3, step), told)
    model = fill(resnet(blocks, classes)).to(device).bfloat16().eval()
    run = torch.compile(model, mode="reduce-overhead") if mode == "compile" else model
    x = x.bfloat16()
    with torch.no_grad():
        for name, x in [("resnet50_batch", x), ("resnet50_1", x[:1].contiguous())]:
            y = run(x).float()
            told = [y.abs().mean().item(), y.max().item()]
            emit(name, timed(1 if small else 10, 1 if small else 3, lambda: run(x)), told)
