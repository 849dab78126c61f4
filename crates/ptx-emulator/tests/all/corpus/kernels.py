"""Kernels that Triton compiles to PTX for the emulator's tests. See README.md for the command."""

import pathlib
import re
import sys

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource, compile


@triton.jit
def softmax(x, y, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    v = tl.load(x + row * cols + i, mask=i < cols, other=-float("inf"))
    e = tl.exp(v - tl.max(v, axis=0))
    tl.store(y + row * cols + i, e / tl.sum(e, axis=0), mask=i < cols)


@triton.jit
def layer_norm(x, gain, bias, y, cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    m = i < cols
    v = tl.load(x + row * cols + i, mask=m, other=0.0)
    mean = tl.sum(v, axis=0) / cols
    d = tl.where(m, v - mean, 0.0)
    scale = tl.rsqrt(tl.sum(d * d, axis=0) / cols + eps)
    out = d * scale * tl.load(gain + i, mask=m) + tl.load(bias + i, mask=m)
    tl.store(y + row * cols + i, out, mask=m)


@triton.jit
def scan(x, y, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n, other=0)
    tl.store(y + i, tl.cumsum(v, axis=0), mask=i < n)


@triton.jit
def transpose(x, y, rows, cols, B: tl.constexpr):
    r = tl.program_id(0) * B + tl.arange(0, B)
    c = tl.program_id(1) * B + tl.arange(0, B)
    v = tl.load(x + r[:, None] * cols + c[None, :], mask=(r[:, None] < rows) & (c[None, :] < cols))
    tl.store(y + c[:, None] * rows + r[None, :], tl.trans(v), mask=(c[:, None] < cols) & (r[None, :] < rows))


@triton.jit
def histogram(x, counts, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n, other=0)
    tl.atomic_add(counts + v, 1, mask=i < n)


@triton.jit
def matmul(a, b, c, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    rk = tl.arange(0, BK)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for at in range(0, k, BK):
        x = tl.load(a + rm[:, None] * k + (at + rk)[None, :], mask=(rm[:, None] < m) & ((at + rk)[None, :] < k), other=0.0)
        y = tl.load(b + (at + rk)[:, None] * n + rn[None, :], mask=((at + rk)[:, None] < k) & (rn[None, :] < n), other=0.0)
        acc = tl.dot(x, y, acc)
    tl.store(c + rm[:, None] * n + rn[None, :], acc, mask=(rm[:, None] < m) & (rn[None, :] < n))


@triton.jit
def attention(q, k, v, o, length, scale, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr):
    """One head; row-major [length, D]."""
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rd = tl.arange(0, D)
    x = tl.load(q + rm[:, None] * D + rd[None, :], mask=rm[:, None] < length, other=0.0)
    most = tl.full((BM,), -1e30, tl.float32)
    total = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    for at in range(0, length, BN):
        rn = at + tl.arange(0, BN)
        y = tl.load(k + rn[None, :] * D + rd[:, None], mask=rn[None, :] < length, other=0.0)
        s = tl.where(rn[None, :] < length, tl.dot(x, y) * scale, -1e30)
        new = tl.maximum(most, tl.max(s, axis=1))
        p = tl.exp(s - new[:, None])
        rescale = tl.exp(most - new)
        total = total * rescale + tl.sum(p, axis=1)
        z = tl.load(v + rn[:, None] * D + rd[None, :], mask=rn[:, None] < length, other=0.0)
        acc = tl.dot(p.to(z.dtype), z, acc * rescale[:, None])
        most = new
    tl.store(o + rm[:, None] * D + rd[None, :], acc / total[:, None], mask=rm[:, None] < length)


# Name, function, types, constants, warps.
KERNELS = [
    ("softmax", softmax, "*fp32 *fp32 i32", dict(BLOCK=256), 4),
    ("layer_norm", layer_norm, "*fp32 *fp32 *fp32 *fp32 i32 fp32", dict(BLOCK=256), 4),
    ("scan", scan, "*i32 *i32 i32", dict(BLOCK=256), 4),
    ("transpose", transpose, "*fp32 *fp32 i32 i32", dict(B=32), 4),
    ("histogram", histogram, "*i32 *i32 i32", dict(BLOCK=256), 4),
    ("matmul_f16", matmul, "*fp16 *fp16 *fp32 i32 i32 i32", dict(BM=32, BN=32, BK=32), 4),
    ("matmul_bf16", matmul, "*bf16 *bf16 *fp32 i32 i32 i32", dict(BM=32, BN=32, BK=32), 4),
    ("matmul_tf32", matmul, "*fp32 *fp32 *fp32 i32 i32 i32", dict(BM=32, BN=32, BK=32), 4),
    ("attention", attention, "*fp16 *fp16 *fp16 *fp32 i32 fp32", dict(BM=32, BN=32, D=32), 4),
]


def main(folder):
    for name, function, types, constants, warps in KERNELS:
        names = [p for p in function.arg_names if p not in constants]
        source = ASTSource(
            function,
            signature=dict(zip(names, types.split())) | {c: "constexpr" for c in constants},
            constexprs=constants,
            # Pointers and sizes are multiples of 16, as a launch with such arguments would find.
            attrs={(i,): [["tt.divisibility", 16]] for i, t in enumerate(types.split()) if t[0] == "*" or t == "i32"},
        )
        made = compile(source, target=GPUTarget("cuda", 80, 32), options=dict(num_warps=warps, num_stages=3))
        text = made.asm["ptx"]
        text = re.sub(r"(?ms)^\s*\.section.*\Z", "", text)
        text = "\n".join(line for line in text.splitlines() if not re.match(r"\s*\.(loc|file)|\s*//|\s*$", line))
        (folder / f"triton_{name}.ptx").write_text(f"// dynamic shared memory: {made.metadata.shared}\n{text}\n")


main(pathlib.Path(sys.argv[1]))
