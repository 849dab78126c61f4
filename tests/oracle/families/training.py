"""Whole training runs: what a few steps of PyTorch give from the same start, on the same data."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from generate import Input, floats, indices

STEPS = 12


class Block(nn.Module):
    """A transformer block with a token embedding and a head."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(11, 8)
        self.norm = nn.LayerNorm(8)
        self.attention = nn.ModuleDict({name: nn.Linear(8, 8) for name in ["query", "key", "value", "output"]})
        self.inner, self.outer, self.head = nn.Linear(8, 16), nn.Linear(16, 8), nn.Linear(8, 11)

    def forward(self, tokens):
        x = self.embedding(tokens)
        normed = self.norm(x)
        heads = [self.attention[name](normed).unflatten(-1, (2, 4)).transpose(1, 2) for name in ["query", "key", "value"]]
        seen = F.scaled_dot_product_attention(*heads, is_causal=True).transpose(1, 2).flatten(2)
        x = x + self.attention["output"](seen)
        return self.head(x + self.outer(F.gelu(self.inner(self.norm(x)))))


def train(name, model, data, loss, optimizer):
    model = model.double()
    for path, parameter in model.named_parameters():
        parameter.data = Input("f", parameter.shape, -64, 64).tensor(f"training/{name}#{path}") / 4
    data = [x.tensor(f"training/{name}#{i}") for i, x in enumerate(data)]
    optimizer = optimizer(model.parameters())
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        value = loss(model, *data)
        value.backward()
        optimizer.step()
        losses.append(value.item())
    return losses


def runs():
    mlp = nn.Sequential(nn.Linear(10, 16), nn.GELU(), nn.Linear(16, 1))
    cnn = nn.Sequential(
        nn.Conv2d(2, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(4, 6, 3, stride=2, padding=(1, 0), groups=2), nn.SiLU(), nn.Flatten(), nn.Linear(12, 3),
    )  # fmt: skip
    return {
        "mlp": train("mlp", mlp, [floats(24, 10), floats(24, 1)], lambda m, x, y: F.mse_loss(m(x), y),
                     lambda p: torch.optim.Adam(p, lr=1e-2)),
        "cnn": train("cnn", cnn, [floats(6, 2, 9, 8), indices(6, n=3)], lambda m, x, y: F.cross_entropy(m(x), y, label_smoothing=0.1),
                     lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, nesterov=True, weight_decay=1e-3)),
        "transformer": train("transformer", Block(), [indices(3, 7, n=11)],
                             lambda m, t: F.cross_entropy(m(t[:, :-1]).flatten(0, 1), t[:, 1:].flatten()),
                             lambda p: torch.optim.AdamW(p, lr=1e-2, weight_decay=0.1)),
    }  # fmt: skip
