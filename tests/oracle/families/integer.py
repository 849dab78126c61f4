"""Integers: exact in every type that holds the inputs and the results. (Overflow and division by zero, which PyTorch
leaves to the platform, have tests of their own.)"""

import torch
from generate import given, indices, integers

ALL = ["i64", "i32"]
WITH_U8 = ["i64", "i32", "u8"]


def add(case):
    pairs = [given([7, -7, 7, -7, 6, -6, 0, 1], kind="n"), given([3, 3, -3, -3, 3, 3, 5, -1], kind="n")]
    case("div", "integers floor", lambda a, b: torch.div(a, b, rounding_mode="floor"), pairs, dtypes=ALL, out="n")
    case("rem", "integers", torch.remainder, pairs, dtypes=ALL, out="n")
    case("div", "integer number", lambda a: torch.div(a, -2, rounding_mode="floor"), [integers(9)], args={"number": -2}, dtypes=ALL, out="n")
    case("rem", "integer number", lambda a: torch.remainder(a, 4), [integers(9)], args={"number": 4}, dtypes=ALL, out="n")
    small = integers(3, 4, low=0, high=15)
    for op, f in [("add", torch.add), ("mul", torch.mul), ("maximum", torch.maximum), ("minimum", torch.minimum)]:
        case(op, "integers", f, [integers(3, 1), integers(4)], dtypes=ALL, out="n")
        case(op, "small integers", f, [small, integers(4, low=0, high=15)], dtypes=WITH_U8, out="n")
    case("sub", "integers", torch.sub, [integers(3, 4), integers(3, 4)], dtypes=ALL, out="n")
    case("pow", "integers", torch.pow, [integers(3, 4), integers(4, low=0, high=5)], dtypes=ALL, out="n")
    case("pow", "integer number 2", lambda x: x**2, [integers(9)], args={"number": 2}, dtypes=ALL, out="n")
    case("square", "integers", torch.square, [integers(9)], dtypes=ALL, out="n")
    for op, f in [("neg", torch.neg), ("abs", torch.abs), ("sign", torch.sign)]:
        case(op, "integers", f, [integers(9)], dtypes=ALL, out="n")
    case("clamp", "integers", lambda x: x.clamp(-2, 5), [integers(9)], args={"low": -2, "high": 5}, dtypes=ALL, out="n")
    for op in ["eq", "ne", "lt", "le", "gt", "ge"]:
        case(op, "integers", getattr(torch, op), [integers(3, 1, low=-2, high=2), integers(5, low=-2, high=2)], dtypes=ALL)
        case(op, "small integers", getattr(torch, op), [integers(3, 1, low=0, high=3), integers(5, low=0, high=3)], dtypes=WITH_U8)
    folds(case)
    moves(case)


def folds(case):
    x = integers(2, 3, 4)
    case("sum", "integers", lambda x: x.sum((0, 2)), [x], args={"axes": [0, 2]}, dtypes=ALL, out="n")
    case("prod", "integers", lambda x: x.prod(1), [x], args={"axes": 1}, dtypes=ALL, out="n")
    case("max", "integers", lambda x: x.amax((0, 1)), [x], args={"axes": [0, 1]}, dtypes=ALL, out="n")
    case("min", "integers", lambda x: x.amin(), [x], args={"axes": "all"}, dtypes=ALL, out="n")
    case("max", "small integers", lambda x: x.amax(0), [integers(3, 5, low=0, high=200)], args={"axes": 0}, dtypes=WITH_U8, out="n")
    case("any", "integers", lambda x: x.any(1), [integers(5, 2, low=0, high=1)], args={"axes": 1}, dtypes=WITH_U8)
    case("argmax", "integers", lambda x: x.argmax(0), [given([3, 7, -2], kind="n")], args={"axis": 0}, dtypes=ALL)
    case("cumsum", "integers", lambda x: x.cumsum(1), [x], args={"axis": 1}, dtypes=ALL, out="n")
    case("cumprod", "integers", lambda x: x.cumprod(-1), [x], args={"axis": -1}, dtypes=ALL, out="n")
    case("cummax", "integers", lambda x: x.cummax(0)[0], [x], args={"axis": 0}, dtypes=ALL, out="n")
    case("sort", "integers with ties", lambda x: x.sort(dim=1, stable=True), [integers(2, 9, low=0, high=4)], args={"axis": 1, "descending": False}, dtypes=WITH_U8, out="ni")
    case("sort", "descending with ties", lambda x: x.sort(dim=1, descending=True, stable=True), [integers(2, 9, low=0, high=4)], args={"axis": 1, "descending": True}, dtypes=WITH_U8, out="ni")
    case("matmul", "integers", torch.matmul, [integers(2, 3, 5), integers(5, 4)], dtypes=ALL, out="n")


def moves(case):
    case("gather", "integers", lambda x, i: x.gather(1, i), [integers(3, 4), indices(3, 2, n=4)], args={"axis": 1}, dtypes=ALL, out="n")
    case("scatter_add", "integers", lambda x, i, s: x.scatter_add(0, i, s), [integers(3, 2), indices(5, 2, n=3), integers(5, 2)], args={"axis": 0}, dtypes=ALL, out="n")
    case("cat", "integers", lambda a, b: torch.cat([a, b], 1), [integers(2, 3, low=0), integers(2, 2, low=0)], args={"axis": 1}, dtypes=WITH_U8, out="n")
    case("pad", "integers", lambda x: torch.nn.functional.pad(x, (1, 2), value=7), [integers(4, low=0)], args={"pairs": [[1, 2]], "number": 7}, dtypes=WITH_U8, out="n")
    case("flip", "integers", lambda x: x.flip(0), [integers(4, 2, low=0)], args={"axes": 0}, dtypes=WITH_U8, out="n")
    case("tril", "integers", lambda x: x.tril(), [integers(3, 3, low=0)], args={"k": 0}, dtypes=WITH_U8, out="n")
    case("cast", "integers to floats", lambda x: x.double(), [integers(7)], args={"to": "f32"}, dtypes=ALL, out="s")
    case("cast", "integers to bool", lambda x: x.bool(), [integers(7, low=-1, high=1)], args={"to": "bool"}, dtypes=ALL)
    case("cast", "bool to integers", lambda b: b.long(), [given([1, 0, 1], kind="b")], args={"to": "run"}, dtypes=WITH_U8, out="n")
