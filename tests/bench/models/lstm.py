import torch
import torch.nn as nn
import torch.nn.functional as F
from common import emit, fill, timed


class Model(nn.Module):
    def __init__(self, width, vocab):
        super().__init__()
        self.token = nn.Embedding(vocab, width)
        self.lstm = nn.LSTM(width, width, num_layers=2, batch_first=True)
        self.head = nn.Linear(width, vocab)

    def forward(self, x):
        y, _ = self.lstm(self.token(x))
        return self.head(y)


def main(small, mode, device):
    batch, length, width, vocab = (4, 8, 16, 97) if small else (32, 64, 650, 10000)
    model = fill(Model(width, vocab)).to(device)
    run = torch.compile(model) if mode == "compile" else model
    opt = torch.optim.SGD(model.parameters(), lr=1.0)
    every = (torch.arange(batch * (length + 1), device=device) * 7919 % vocab).reshape(batch, length + 1)
    x, y = every[:, :length].contiguous(), every[:, 1:].contiguous()

    def step():
        opt.zero_grad()
        loss = F.cross_entropy(run(x).flatten(0, 1), y.flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.25)
        opt.step()
        return loss

    told = [step().item(), step().item(), step().item()]
    emit("lstm_train", timed(2 if small else 10, 1 if small else 3, step), told)
