"""Training steps of six networks in PyTorch, to set ours beside: one line of JSON per workload.

    python torch_train.py [--device cpu] [--threads 2] [--fused-adam] [--compile] [WORKLOAD ...]

`benches/training` has the same six, with the same protocol: rows are reshuffled every epoch and an incomplete batch is
dropped; a step gathers its rows, then runs forward, loss, backward and Adam, and reads the loss. After ten steps of
warm-up, single steps are timed until there are 60 of them and 3 s have passed, or 20 s have.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

WARM_UP_STEPS = 10
MIN_STEPS = 60
MIN_SECONDS = 3.0
MAX_SECONDS = 20.0


@dataclass
class Workload:
    net: nn.Module
    inputs: Tensor
    targets: Tensor
    batch_size: int
    loss: Callable[[Tensor, Tensor], Tensor] = F.cross_entropy


def dense(*widths: int) -> nn.Sequential:
    """Linear layers with a ReLU between each two."""
    layers: list[nn.Module] = []
    for n_in, n_out in zip(widths, widths[1:]):
        layers += [nn.Linear(n_in, n_out), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def labels(n: int) -> Tensor:
    return torch.randint(0, 10, (n,))


def seed() -> Workload:
    return Workload(dense(10, 64, 1), torch.rand(1000, 10), torch.rand(1000, 1), 64, F.mse_loss)


def mlp256() -> Workload:
    return Workload(dense(784, 256, 128, 10), torch.rand(10_000, 784), labels(10_000), 128)


def mlp1024() -> Workload:
    return Workload(dense(784, 1024, 1024, 10), torch.rand(10_000, 784), labels(10_000), 256)


def lenet() -> Workload:
    net = nn.Sequential(
        nn.Conv2d(1, 6, kernel_size=5, padding=2),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(6, 16, kernel_size=5),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        dense(400, 120, 84, 10),
    )
    return Workload(net, torch.rand(4000, 1, 28, 28), labels(4000), 128)


def cnn() -> Workload:
    def block(n_in: int, n_out: int) -> nn.Sequential:
        convolution = nn.Conv2d(n_in, n_out, kernel_size=3, padding=1)
        return nn.Sequential(convolution, nn.BatchNorm2d(n_out), nn.ReLU(), nn.MaxPool2d(2))

    net = nn.Sequential(block(1, 32), block(32, 64), nn.Flatten(), dense(3136, 128, 10))
    return Workload(net, torch.rand(1024, 1, 28, 28), labels(1024), 64)


class TransformerBlock(nn.Module):
    def __init__(self, width: int, n_heads: int):
        super().__init__()
        self.n_heads = n_heads
        self.attention_norm = nn.LayerNorm(width)
        self.query_key_value = nn.Linear(width, 3 * width)
        self.attention_out = nn.Linear(width, width)
        self.feed_forward = nn.Sequential(
            nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def attention(self, x: Tensor) -> Tensor:
        heads = self.query_key_value(x).unflatten(-1, (3, self.n_heads, -1))
        query, key, value = heads.permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        return self.attention_out(mixed.transpose(1, 2).flatten(2))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.attention_norm(x))
        return x + self.feed_forward(x)


class Gpt(nn.Module):
    def __init__(self, vocabulary: int, n_positions: int, width: int, n_layers: int, n_heads: int):
        super().__init__()
        self.token = nn.Embedding(vocabulary, width)
        self.position = nn.Embedding(n_positions, width)
        blocks = [TransformerBlock(width, n_heads) for _ in range(n_layers)]
        self.head = nn.Sequential(*blocks, nn.LayerNorm(width), nn.Linear(width, vocabulary))

    def forward(self, tokens: Tensor) -> Tensor:
        return self.head(self.token(tokens) + self.position(torch.arange(tokens.shape[1], device=tokens.device)))


def gpt() -> Workload:
    def loss(logits: Tensor, targets: Tensor) -> Tensor:
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())

    net = Gpt(vocabulary=65, n_positions=64, width=128, n_layers=4, n_heads=4)
    tokens, targets = torch.randint(0, 65, (2, 240, 64))
    return Workload(net, tokens, targets, 12, loss)


def batches(n_rows: int, batch_size: int) -> Iterator[Tensor]:
    while True:
        yield from torch.randperm(n_rows)[: n_rows // batch_size * batch_size].split(batch_size)


def measure(workload: Workload, device: str, max_seconds: float, fused: bool, compiled: bool) -> list[float]:
    """The seconds that single steps took, after the warm-up."""
    workload.net.to(device)
    if compiled:
        workload.net, workload.loss = torch.compile(workload.net), torch.compile(workload.loss)
    workload.inputs, workload.targets = workload.inputs.to(device), workload.targets.to(device)
    optimizer = torch.optim.Adam(workload.net.parameters(), lr=1e-3, fused=fused or None)
    rows = batches(len(workload.inputs), workload.batch_size)

    def step(batch: Tensor) -> float:
        batch = batch.to(device)
        inputs, targets = workload.inputs[batch], workload.targets[batch]
        optimizer.zero_grad()
        loss = workload.loss(workload.net(inputs), targets)
        loss.backward()
        optimizer.step()
        return loss.item()

    for _ in range(WARM_UP_STEPS):
        step(next(rows))
    times: list[float] = []
    begin = time.perf_counter()
    while True:
        batch = next(rows)
        start = time.perf_counter()
        step(batch)
        stop = time.perf_counter()
        times.append(stop - start)
        elapsed = stop - begin
        if elapsed >= max_seconds or (elapsed >= min(MIN_SECONDS, max_seconds / 2) and len(times) >= MIN_STEPS):
            return times


def main() -> None:
    workloads = {make.__name__: make for make in (seed, mlp256, mlp1024, lenet, cnn, gpt)}
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--max-seconds", type=float, default=MAX_SECONDS)
    parser.add_argument("--fused-adam", action="store_true", help="Adam as one kernel")
    parser.add_argument("--compile", action="store_true", help="torch.compile the network and its loss")
    parser.add_argument("workloads", nargs="*", metavar="WORKLOAD", help=", ".join(workloads))
    args = parser.parse_args()
    if unknown := set(args.workloads) - set(workloads):
        parser.error(f"unknown workload: {', '.join(sorted(unknown))}")
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    for name in args.workloads or workloads:
        seconds = measure(workloads[name](), args.device, args.max_seconds, args.fused_adam, args.compile)
        microseconds = [round(t * 1e6, 1) for t in seconds]
        result = {
            "impl": "torch",
            "workload": name,
            "us_per_step": statistics.median(microseconds),
            "min": min(microseconds),
            "max": max(microseconds),
            "steps": len(microseconds),
        }
        print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
