"""Writes the oracle: values and gradients that PyTorch computes in f64, for the tests to compare with.

    python3 tests/oracle/generate.py            # writes tests/oracle/*.json and *.safetensors
    python3 tests/oracle/generate.py --check    # compares with what is there, writes nothing

Needs PyTorch (these files: 2.15) and safetensors; the tests themselves need neither. The same build of PyTorch writes
the same bytes.

Each family is a table, `<family>.json`, one case a line, and the numbers, `<family>.safetensors`, one f64 vector a case:
its outputs, then the gradients by its float inputs, then the second-order gradients by them, all row-major, one after
another. `training.json` holds the losses of whole training runs. Inputs are not stored: they are drawn by `draw` from the case's name, and are few-bit numbers that every float
type holds exactly, so that one reference judges all of them.
"""

import argparse
import importlib
import json
import math
import pathlib
import sys

import torch
from safetensors.torch import load, save

HERE = pathlib.Path(__file__).parent
FAMILIES = ["activation", "algebra", "composite", "conv", "create", "elementwise", "index", "integer", "loss", "movement",
            "order", "pool", "reduce"]
FLOATS = ["f64", "f32", "f16", "bf16"]
# What a float input's drawn integer is divided by.
UNIT = 32
MASK = (1 << 64) - 1


def splitmix(key):
    """Steele, Lea and Flood's SplitMix64, seeded with the FNV-1a hash of a text."""
    state = 0xCBF29CE484222325
    for byte in key.encode():
        state = (state ^ byte) * 0x100000001B3 & MASK
    while True:
        state = (state + 0x9E3779B97F4A7C15) & MASK
        z = (state ^ state >> 30) * 0xBF58476D1CE4E5B9 & MASK
        z = (z ^ z >> 27) * 0x94D049BB133111EB & MASK
        yield z ^ z >> 31


def draw(key, n, low, high, distinct):
    """n integers of low..=high, all different if asked."""
    words = splitmix(key)
    if not distinct:
        return [low + next(words) % (high - low + 1) for _ in range(n)]
    pool = list(range(low, high + 1))
    for i in range(n):
        j = i + next(words) % (len(pool) - i)
        pool[i], pool[j] = pool[j], pool[i]
    return pool[:n]


class Input:
    """What a case is given. Kinds: f float, i index (i64), n integer of the run's type, b bool."""

    def __init__(self, kind, dims, low=None, high=None, distinct=False, values=None):
        self.kind, self.dims, self.low, self.high = kind, list(dims), low, high
        self.distinct, self.values = distinct, values

    def __str__(self):
        head = f"{self.kind}[{','.join(map(str, self.dims))}]"
        if self.values is not None:
            return f"{head} = {' '.join(repr(v) for v in self.values)}"
        return f"{head} {self.low}..{self.high}{' distinct' if self.distinct else ''}"

    def tensor(self, key):
        values = self.values
        if values is None:
            values = draw(key, math.prod(self.dims), self.low, self.high, self.distinct)
            if self.kind == "f":
                values = [v / UNIT for v in values]
        dtype = {"f": torch.float64, "i": torch.int64, "n": torch.int64, "b": torch.bool}[self.kind]
        return torch.tensor(values, dtype=dtype).reshape(self.dims)


def floats(*dims, low=-124, high=124, distinct=False):
    """Floats low/32 … high/32; none is 0 when the bounds have one sign."""
    return Input("f", dims, low, high, distinct)


def positive(*dims, low=1, high=124, distinct=False):
    return Input("f", dims, low, high, distinct)


def given(values, dims=None, kind="f"):
    values = [float(v) if kind == "f" else int(v) for v in values]
    return Input(kind, [len(values)] if dims is None else dims, values=values)


def indices(*dims, n):
    return Input("i", dims, 0, n - 1)


def integers(*dims, low=-9, high=9):
    return Input("n", dims, low, high)


def bools(*dims):
    return Input("b", dims, 0, 1)


def tuple_of(y):
    return tuple(y) if isinstance(y, (tuple, list)) else (y,)


def derived(f, inputs, cotangent, directions, order):
    """Outputs, gradients of <f, cotangent> by the float inputs, and gradients of <gradients, directions> by them."""
    leaves = [x.requires_grad_() for x in inputs if x.dtype == torch.float64]
    outputs = tuple_of(f(*inputs))
    if order == 0:
        return outputs, [], []
    zeros = [torch.zeros_like(x) for x in leaves]
    by = torch.autograd.grad((outputs[0] * cotangent).sum(), leaves, create_graph=order > 1, allow_unused=True)
    first = [z if g is None else g for g, z in zip(by, zeros)]
    if order == 1:
        return outputs, first, []
    slope = sum((g * v).sum() for g, v in zip(first, directions))
    by = torch.autograd.grad(slope, leaves, allow_unused=True) if slope.requires_grad else [None] * len(leaves)
    return outputs, first, [z if g is None else g for g, z in zip(by, zeros)]


def magnitude(tensors):
    """The largest finite magnitude of each."""
    sizes = []
    for t in tensors:
        t = t.detach().double().abs()
        t = t[torch.isfinite(t)]
        sizes.append(t.max().item() if t.numel() else 0.0)
    return sizes


class Family:
    def __init__(self):
        self.rows, self.data = [], {}

    def case(self, op, name, f, inputs, *, args=None, terms=1, order=2, scale="map", dtypes=None, out=None, finite=True):
        """One case of an op.

        f       what PyTorch computes from the inputs; the gradient is that of its first output
        args    the op's further arguments, as the test reads them
        terms   how many operations make one element of the result: a sum's length
        order   of the highest gradient to check: 0, 1, 2
        scale   what rounding errors are relative to. "sum": Σ|a||b|, for sums of products of the inputs. "norm": the
                largest element. "map": the element itself, or 1 where it is smaller (the largest, where that is)
        out     the outputs' kinds: an input's, or j for i32, u for u8, s for f32, whatever the run's type
        """
        key = f"{op}/{name}"
        assert key not in self.data, key
        if not any(x.kind == "f" for x in inputs):
            order = 0
        make = lambda: [x.tensor(f"{key}#{i}") for i, x in enumerate(inputs)]
        with torch.no_grad():
            y = tuple_of(f(*make()))[0]
        order = order if y.dtype == torch.float64 else 0
        cotangent = Input("f", y.shape, -64, 64).tensor(f"{key}#cotangent")
        floats_of = [x for x in inputs if x.kind == "f"]
        directions = [Input("f", x.dims, -64, 64).tensor(f"{key}#direction{i}") for i, x in enumerate(floats_of)]
        outputs, first, second = derived(f, make(), cotangent, directions, order)
        if order == 2 and not any(t.any() for t in second):
            order, second = 1, []
        results = [t.detach() for t in (*outputs, *first, *second)]
        kinds = {torch.float64: "f", torch.int64: "i", torch.int32: "j", torch.bool: "b"}
        out = out or "".join(kinds[t.dtype] for t in outputs)
        if finite:
            assert all(torch.isfinite(t.double()).all() for t in results), f"{key} is not finite"
        if scale == "sum":
            positive_inputs = [x.abs() if x.dtype == torch.float64 else x for x in make()]
            parts = derived(f, positive_inputs, cotangent.abs(), [v.abs() for v in directions], order)
            scales = magnitude([*parts[0], *parts[1], *parts[2]])
        else:
            # Gradients are sums of terms that may cancel: as large as the cotangent, or the gradient before.
            sizes = [magnitude(part) for part in (outputs, first, second)]
            limit = (lambda m: max(m, 1.0)) if scale == "norm" else (lambda m: min(m, 1.0))
            scales = [m if scale == "norm" else min(m, 1.0) for m in sizes[0]] + [limit(m) for m in sizes[1]]
            scales += [limit(max(m, *sizes[1])) for m in sizes[2]]
        row = {"op": op, "case": name, "inputs": [str(x) for x in inputs]}
        row |= {"args": args} if args else {}
        row |= {"out": [f"{k}[{','.join(map(str, t.shape))}]" for k, t in zip(out, outputs)], "order": order, "terms": terms}
        row["scales"] = [float(f"{m:.3g}") for m in scales]
        row |= {"dtypes": dtypes} if dtypes else {}
        self.rows.append(row)
        self.data[key] = torch.cat([t.double().reshape(-1) for t in results])

    def files(self):
        rows = ",\n".join(json.dumps(row, separators=(",", ":"), ensure_ascii=False) for row in self.rows)
        return f"[\n{rows}\n]\n".encode(), save(dict(sorted(self.data.items())))


def differs(name, new, old):
    """How a file differs from what is there, in words; numbers may differ by rounding with another PyTorch."""
    if name == "training.json":
        new, old = json.loads(new), json.loads(old)
        same = new.keys() == old.keys() and all(torch.allclose(*map(torch.tensor, (new[k], old[k]))) for k in new)
        return None if same else "the losses differ"
    if name.endswith(".json"):
        return None if new == old else "the cases differ"
    new, old = load(new), load(old)
    if new.keys() != old.keys():
        return "the cases differ"
    for key, value in new.items():
        if not torch.allclose(value, old[key], rtol=1e-12, atol=1e-13, equal_nan=True):
            return f"{key} differs"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--check", action="store_true", help="compare with the files that are there")
    check = parser.parse_args().check
    torch.set_num_threads(1)
    sys.path.insert(0, str(HERE))
    sys.dont_write_bytecode = True
    contents = {}
    for name in FAMILIES:
        family = Family()
        importlib.import_module(f"families.{name}").add(family.case)
        table, numbers = family.files()
        contents[f"{name}.json"], contents[f"{name}.safetensors"] = table, numbers
        print(f"{name}: {len(family.rows)} cases, {len(table)} + {len(numbers)} bytes")
    rows = [f"{json.dumps(name)}: {json.dumps(losses)}" for name, losses in importlib.import_module("families.training").runs().items()]
    contents["training.json"] = ("{\n" + ",\n".join(rows) + "\n}\n").encode()
    failed = False
    for file, content in contents.items():
        path = HERE / file
        if not check:
            path.write_bytes(content)
        elif why := "is missing" if not path.exists() else differs(file, content, path.read_bytes()):
            failed = True
            print(f"{file}: {why}")
    print(f"{sum(map(len, contents.values()))} bytes in all")
    sys.exit(failed)


if __name__ == "__main__":
    # The families import this file under its own name.
    sys.modules["generate"] = sys.modules["__main__"]
    main()
