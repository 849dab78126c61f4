"""Folds over axes."""

import torch
from generate import FLOATS, bools, floats, given, positive

INF, NAN = float("inf"), float("nan")
# How the axes are written, which they are, and how many elements of [2, 3, 4] they hold.
AXES = [("all", "all", (0, 1, 2), 24), ("last", -1, (2,), 4), ("first", 0, (0,), 2), ("outer", [0, 2], (0, 2), 8)]


def norm(x, axes, keepdim=False):
    return torch.linalg.vector_norm(x, dim=axes, keepdim=keepdim)


def product(x, axes, keepdim=False):
    for axis in sorted(axes, reverse=True):
        x = x.prod(axis, keepdim=keepdim)
    return x


REDUCTIONS = {
    "sum": torch.sum,
    "mean": torch.mean,
    "prod": product,
    "max": torch.amax,
    "min": torch.amin,
    "norm": norm,
    "logsumexp": torch.logsumexp,
}


def scale_of(op):
    return "sum" if op in ("sum", "mean") else "norm"


def add(case):
    for op, f in REDUCTIONS.items():
        for name, written, axes, count in AXES:
            draw = floats(2, 3, 4, low=16, high=63) if op == "prod" else floats(2, 3, 4, distinct=True)
            case(op, name, lambda x: f(x, axes), [draw], args={"axes": written}, terms=count, scale=scale_of(op))
        keep = f"{op}_keepdim"
        case(keep, "middle", lambda x: f(x, (1,), keepdim=True), [floats(2, 3, 2, distinct=True)], args={"axes": [1]}, terms=3, scale=scale_of(op))
        case(op, "scalar", lambda x: f(x, ()), [positive()], args={"axes": "all"}, order=1)
        if op != "prod":
            wide = lambda x: f(x, (0, 2))
            case(op, "wide", wide, [floats(67, 2, 33)], args={"axes": [0, -1]}, terms=2211, order=0, scale=scale_of(op), dtypes=["f64", "f32"])
            case(op, "long", lambda x: f(x, (1,)), [floats(2, 4099)], args={"axes": 1}, terms=4099, order=0, scale=scale_of(op), dtypes=["f64", "f32"])
    for op, f in [("var", torch.var), ("std", torch.std)]:
        for name, written, axes, count in AXES:
            for correction in [0, 1]:
                case(op, f"{name} {correction}", lambda x: f(x, axes, correction=correction), [floats(2, 3, 4)],
                     args={"axes": written, "correction": correction}, terms=count, scale="norm")
        case(f"{op}_keepdim", "middle", lambda x: f(x, (1,), correction=1, keepdim=True), [floats(2, 3, 2, distinct=True)],
             args={"axes": [1], "correction": 1}, terms=3, scale="norm")
        case(op, "off centre", lambda x: f(x, (1,), correction=1), [floats(2, 100, low=3968, high=4032)],
             args={"axes": [1], "correction": 1}, terms=100, scale="norm", order=1, dtypes=["f64"])
    special(case)
    positions(case)


def special(case):
    for name, values in [("one zero", [2.0, 0.0, 3.0, -1.5]), ("two zeros", [2.0, 0.0, 0.0, -1.5]), ("signs", [-2.0, -1.0, -0.5, -3.0])]:
        case("prod", name, lambda x: x.prod(), [given(values)], args={"axes": "all"}, terms=4, scale="norm")
    case("prod", "a zero in a row", lambda x: x.prod(1), [given([1.0, 0.0, 2.0, 3.0, 2.0, 1.5, 0.0, 0.0, 4.0], [3, 3])], args={"axes": 1}, terms=3, scale="norm")
    case("prod", "zeros over two axes", lambda x: x.prod(), [given([1.5, 0.0, 2.0, 3.0, 2.0, 0.5], [2, 3])], args={"axes": [0, 1]}, terms=6, scale="norm")
    case("norm", "zeros", lambda x: norm(x, (1,)), [given([0.0, 0.0, 3.0, 4.0], [2, 2])], args={"axes": 1}, terms=2, scale="norm", order=1)
    case("std", "of equals", lambda x: x.std(1), [given([1.5, 1.5, 3.0, 4.0], [2, 2])], args={"axes": 1, "correction": 1}, terms=2, scale="norm", order=1)
    case("norm", "tiny and huge", lambda x: norm(x, (1,)), [given([2.0**-60, 2.0**-61, 2.0**60, 2.0**59], [2, 2])], args={"axes": 1}, terms=2, scale="map", order=1)
    # The derivative of torch.logsumexp, e^(x − y), has y's rounding error for a relative one.
    shifted = lambda x: 1e4 * torch.tensor([1.0, -1.0]) + (x - 1e4 * torch.tensor([[1.0], [-1.0]])).exp().sum(1).log()
    case("logsumexp", "far out", shifted, [given([1.0e4, 9999.0, -1.0e4, -9999.0], [2, 2])], args={"axes": 1}, terms=2, scale="norm", order=1)
    case("logsumexp", "infinities", lambda x: x.logsumexp(1), [given([-INF, -INF, INF, 1.0, -INF, 2.0], [3, 2])], args={"axes": 1}, terms=2, order=0, finite=False)
    for op in ["max", "min"]:
        case(op, "nan", lambda x: REDUCTIONS[op](x, (1,)), [given([1.0, NAN, 5.0, 2.0, 3.0, INF, NAN, -INF, 0.0], [3, 3])], args={"axes": 1}, order=0, finite=False)
    for op in ["any", "all"]:
        f = getattr(torch, op)
        case(op, "everything", f, [bools(2, 3, 4)], args={"axes": "all"})
        case(op, "last", lambda x: f(x, 2), [bools(2, 3, 2)], args={"axes": -1})
        case(op, "floats", lambda x: f(x, 1), [given([0.0, -0.0, NAN, 0.0, 1.0, 2.0], [3, 2])], args={"axes": 1}, order=0, dtypes=FLOATS)
        case(f"{op}_keepdim", "first", lambda x: f(x, 0, keepdim=True), [bools(3, 5)], args={"axes": 0})
    # Over no axes at all, and over an axis of size 1.
    case("sum", "no axes", lambda x: x + 0, [floats(2, 3)], args={"axes": []}, scale="sum")
    case("mean", "axis of one", lambda x: x.mean(1), [floats(3, 1)], args={"axes": 1}, scale="sum")


def positions(case):
    for op in ["argmax", "argmin"]:
        f = getattr(torch, op)
        for axis in [0, 1, -1]:
            case(op, f"axis {axis}", lambda x: f(x, axis), [floats(3, 4, 5, distinct=True)], args={"axis": axis}, order=0)
        case(f"{op}_keepdim", "middle", lambda x: f(x, 1, keepdim=True), [floats(3, 4, 5, distinct=True)], args={"axis": 1}, order=0)
        case(op, "nan", lambda x: f(x, 0), [given([1.0, NAN, 5.0, -INF])], args={"axis": 0}, order=0)
        case(op, "long", lambda x: f(x, 1), [floats(2, 4099, low=-100000, high=100000, distinct=True)], args={"axis": 1}, order=0, dtypes=["f64", "f32"])
