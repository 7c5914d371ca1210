import torch
import torch.nn as nn
import torch.nn.functional as F
from common import emit, fill, timed


def turned(x, cos, sin):
    a, b = x.chunk(2, -1)
    return x * cos + torch.cat([-b, a], -1) * sin


class Block(nn.Module):
    def __init__(self, heads, groups, width, hidden):
        super().__init__()
        self.heads, self.groups, self.size = heads, groups, width // heads
        self.norm1, self.norm2 = nn.RMSNorm(width, eps=1e-5), nn.RMSNorm(width, eps=1e-5)
        self.q = nn.Linear(width, width, bias=False)
        self.k = nn.Linear(width, groups * self.size, bias=False)
        self.v = nn.Linear(width, groups * self.size, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.gate = nn.Linear(width, hidden, bias=False)
        self.up = nn.Linear(width, hidden, bias=False)
        self.down = nn.Linear(hidden, width, bias=False)

    def forward(self, x, kept, at, cos, sin, mask):
        b, t, width = x.shape
        y = self.norm1(x)
        q = turned(self.q(y).view(b, t, self.heads, self.size).transpose(1, 2), cos, sin)
        k = turned(self.k(y).view(b, t, self.groups, self.size).transpose(1, 2), cos, sin)
        v = self.v(y).view(b, t, self.groups, self.size).transpose(1, 2)
        if mask is None:
            kept[0][:, :, at : at + t], kept[1][:, :, at : at + t] = k, v
            y = F.scaled_dot_product_attention(q, kept[0][:, :, : at + t], kept[1][:, :, : at + t], enable_gqa=True)
        else:
            # One shape for all lengths, which a graph needs.
            kept[0].index_copy_(2, at, k)
            kept[1].index_copy_(2, at, v)
            y = F.scaled_dot_product_attention(q, kept[0], kept[1], attn_mask=mask, enable_gqa=True)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, width))
        y = self.norm2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Model(nn.Module):
    def __init__(self, depth, heads, groups, width, hidden, vocab):
        super().__init__()
        self.token = nn.Embedding(vocab, width)
        self.blocks = nn.ModuleList(Block(heads, groups, width, hidden) for _ in range(depth))
        self.norm = nn.RMSNorm(width, eps=1e-5)

    def forward(self, ids, kept, at, cos, sin, mask=None):
        x = self.token(ids)
        for block, one in zip(self.blocks, kept):
            x = block(x, one, at, cos, sin, mask)
        return F.linear(self.norm(x), self.token.weight)


@torch.no_grad()
def main(small, mode, device):
    depth, heads, groups, width, hidden, vocab, context = (
        (2, 4, 2, 32, 64, 97, 64) if small else (16, 32, 8, 2048, 8192, 128256, 1024)
    )
    size = width // heads
    model = fill(Model(depth, heads, groups, width, hidden, vocab)).to(device).bfloat16().eval()
    angles = torch.outer(torch.arange(context).float(), 1.0 / 500000.0 ** (torch.arange(0, size, 2).float() / size))
    angles = torch.cat([angles, angles], -1).to(device)
    cos, sin = angles.cos().bfloat16(), angles.sin().bfloat16()
    shape = (1, groups, context, size)
    kept = [[torch.zeros(shape, device=device, dtype=torch.bfloat16) for _ in range(2)] for _ in range(depth)]
    at, said, told = 0, 0, []
    lengths = torch.arange(context, device=device)

    def whole(ids, place):
        return model(ids, kept, place, cos[place], sin[place], (lengths <= place)[None, None, None, :])

    compiled = torch.compile(whole, mode="reduce-overhead") if mode == "compile" else None

    def step():
        nonlocal at, said, told
        ids = torch.tensor([[said]], device=device)
        if compiled:
            logits = compiled(ids, torch.tensor([at], device=device))
        else:
            logits = model(ids, kept, at, cos[at : at + 1], sin[at : at + 1])
        if at == 3:
            told = [logits.float().abs().mean().item(), logits.float().max().item()]
        said = logits.argmax(-1).item()
        at = 0 if at + 1 == context else at + 1

    for _ in range(8):
        step()
    emit("llama_decode", timed(4 if small else 64, 1 if small else 3, step), told)
