import torch
import torch.nn as nn
import torch.nn.functional as F
from common import emit, fill, timed


class Block(nn.Module):
    def __init__(self, heads, width):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x, kept, at, mask):
        b, t, width = x.shape
        q, k, v = (z.view(b, t, self.heads, -1).transpose(1, 2) for z in self.qkv(self.norm1(x)).split(width, 2))
        if mask is None:
            kept[0][:, :, at : at + t], kept[1][:, :, at : at + t] = k, v
            y = F.scaled_dot_product_attention(q, kept[0][:, :, : at + t], kept[1][:, :, : at + t])
        else:
            # One shape for all lengths, which a graph needs.
            kept[0].index_copy_(2, at, k)
            kept[1].index_copy_(2, at, v)
            y = F.scaled_dot_product_attention(q, kept[0], kept[1], attn_mask=mask)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, width))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class Model(nn.Module):
    def __init__(self, depth, heads, width, vocab, context):
        super().__init__()
        self.token, self.place = nn.Embedding(vocab, width), nn.Embedding(context, width)
        self.blocks = nn.ModuleList(Block(heads, width) for _ in range(depth))
        self.norm = nn.LayerNorm(width)

    def forward(self, ids, kept, at, mask=None):
        x = self.token(ids) + (self.place.weight[at : at + 1] if mask is None else self.place(at))
        for block, one in zip(self.blocks, kept):
            x = block(x, one, at, mask)
        return F.linear(self.norm(x), self.token.weight)


@torch.no_grad()
def main(small, mode, device):
    depth, heads, width, vocab, context = (2, 2, 32, 97, 64) if small else (12, 12, 768, 50304, 1024)
    model = fill(Model(depth, heads, width, vocab, context)).to(device).bfloat16().eval()
    shape = (1, heads, context, width // heads)
    kept = [[torch.zeros(shape, device=device, dtype=torch.bfloat16) for _ in range(2)] for _ in range(depth)]
    at, said, told = 0, 0, []
    lengths = torch.arange(context, device=device)

    def whole(ids, place):
        return model(ids, kept, place, (lengths <= place)[None, None, None, :])

    compiled = torch.compile(whole, mode="reduce-overhead") if mode == "compile" else None

    def step():
        nonlocal at, said, told
        ids = torch.tensor([[said]], device=device)
        logits = compiled(ids, torch.tensor([at], device=device)) if compiled else model(ids, kept, at)
        if at == 3:
            told = [logits.float().abs().mean().item(), logits.float().max().item()]
        said = logits.argmax(-1).item()
        at = 0 if at + 1 == context else at + 1

    for _ in range(8):
        step()
    emit("gpt2_decode", timed(4 if small else 128, 1 if small else 3, step), told)
