"""Single ops in PyTorch on a GPU, to set ours beside: one line of JSON per op, dtype and size.

    python torch_ops.py [--device cuda]

Names and sizes are those of the program `gpu-check`. TF32 is off, as it is there, but for the products named so. A time is the median of five rounds of
many calls between two waits.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable, Iterator

import torch
from torch import Tensor
from torch.nn import functional as F

DTYPES = {"f32": torch.float32, "f64": torch.float64, "bf16": torch.bfloat16, "f16": torch.float16}
ROUND_SECONDS = 0.02
N_ROUNDS = 5

Ops = Iterator[tuple[str, Callable[[], object]]]


def products(device: str) -> Ops:
    for n in (512, 1024, 2048, 4096, 8192):
        for name in ("f32", "bf16", "f16", "f64"):
            x, y = (torch.randn(n, n, device=device).to(DTYPES[name]) for _ in range(2))
            yield f"matmul {name} {n}", lambda x=x, y=y: x @ y
        x, y = (torch.randn(n, n, device=device) for _ in range(2))
        yield f"matmul tf32 {n}", lambda x=x, y=y: in_tf32(lambda: x @ y)


def in_tf32(call: Callable[[], Tensor]) -> Tensor:
    torch.backends.cuda.matmul.allow_tf32 = True
    result = call()
    torch.backends.cuda.matmul.allow_tf32 = False
    return result


def maps(device: str) -> Ops:
    for name in ("f32", "bf16"):
        x, y = (torch.randn(16384, 4096, device=device).to(DTYPES[name]) for _ in range(2))
        row = torch.randn(4096, device=device).to(DTYPES[name])
        yield f"add {name}", lambda x=x, y=y: x + y
        yield f"add a row {name}", lambda x=x, row=row: x + row
        yield f"mul by a number {name}", lambda x=x: x * 0.5
        yield f"relu {name}", lambda x=x: F.relu(x)
        yield f"exp {name}", lambda x=x: x.exp()
        yield f"gelu {name}", lambda x=x: F.gelu(x)
        yield f"sum of all {name}", lambda x=x: x.sum()
        yield f"sum of rows {name}", lambda x=x: x.sum(1)
        yield f"sum of columns {name}", lambda x=x: x.sum(0)
        yield f"softmax {name}", lambda x=x: x.softmax(1)
        yield f"layer norm {name}", lambda x=x: F.layer_norm(x, (4096,))
        yield f"transposed copy {name}", lambda x=x: x.t().contiguous()


def update(device: str) -> Ops:
    net = torch.nn.Linear(8192, 8192, device=device)
    net(torch.randn(1, 8192, device=device)).sum().backward()
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    yield "adam f32", optimizer.step


def attention(device: str) -> Ops:
    for name in ("bf16", "f32"):
        shape = (8, 16, 2048, 64)
        inputs = [torch.randn(shape, device=device).to(DTYPES[name]).requires_grad_() for _ in range(3)]

        def forward(inputs: list[Tensor] = inputs) -> Tensor:
            return F.scaled_dot_product_attention(*inputs, is_causal=True)

        def forward_only(forward: Callable[[], Tensor] = forward) -> None:
            with torch.no_grad():
                forward()

        def both(forward: Callable[[], Tensor] = forward, inputs: list[Tensor] = inputs) -> None:
            torch.autograd.grad(forward().sum(), inputs)

        yield f"attention {name} forward", forward_only
        yield f"attention {name} forward and backward", both


def convolutions(device: str) -> Ops:
    shapes = ((64, 1, 32, 28, 3), (32, 64, 64, 56, 3), (32, 128, 128, 28, 3), (32, 256, 512, 14, 1))
    for n, channels, filters, side, kernel in shapes:
        for name in ("f32", "bf16"):
            x = torch.randn(n, channels, side, side, device=device).to(DTYPES[name]).requires_grad_()
            w = torch.randn(filters, channels, kernel, kernel, device=device).to(DTYPES[name]).requires_grad_()

            def forward(x: Tensor = x, w: Tensor = w, kernel: int = kernel) -> Tensor:
                return F.conv2d(x, w, padding=kernel // 2)

            def forward_only(forward: Callable[..., Tensor] = forward) -> None:
                with torch.no_grad():
                    forward()

            def both(forward: Callable[..., Tensor] = forward, x: Tensor = x, w: Tensor = w) -> None:
                torch.autograd.grad(forward().sum(), (x, w))

            what = f"conv {n} {channels} {filters} {side} {kernel} {name}"
            yield f"{what} forward", forward_only
            yield f"{what} forward and backward", both


def microseconds(call: Callable[[], object], device: str) -> float:
    def round_of(n: int) -> float:
        start = time.perf_counter()
        for _ in range(n):
            call()
        if device == "cuda":
            torch.cuda.synchronize()
        return time.perf_counter() - start

    round_of(3)
    n, took = 1, round_of(1)
    while took < ROUND_SECONDS / 2 and n < 1 << 20:
        n *= 2
        took = round_of(n)
    n = max(1, round(ROUND_SECONDS / took * n))
    return statistics.median(round_of(n) / n for _ in range(N_ROUNDS)) * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cuda", choices=("cpu", "cuda"))
    device = parser.parse_args().device
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    for family in (products, maps, update, attention, convolutions):
        for name, call in family(device):
            result = {"impl": "torch", "workload": name, "us_per_step": round(microseconds(call, device), 2)}
            print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
