import torch
import torch.nn as nn
from common import emit, fill, spread, timed


@torch.no_grad()
def main(small, mode, device):
    depth, heads, width, length = (2, 4, 32, 16) if small else (6, 12, 384, 128)
    layer = nn.TransformerEncoderLayer(width, heads, 4 * width, dropout=0.0, batch_first=True)
    model = fill(nn.TransformerEncoder(layer, depth)).to(device).half().eval()
    x = spread((32, length, width), "x").to(device).half()
    run = torch.compile(model, mode="reduce-overhead") if mode == "compile" else model
    for name, x in [("encoder_32", x), ("encoder_1", x[:1].contiguous())]:
        y = run(x).float()
        told = [y.abs().mean().item(), y.max().item()]
        emit(name, timed(2 if small else 50, 1 if small else 5, lambda: run(x)), told)
