"""Functions of one, two or three elements."""

import torch
from generate import bools, floats, given, positive

INF, NAN = float("inf"), float("nan")
EDGES = [0.0, -0.0, 1.0, -1.0, INF, -INF, NAN]
FLOATS32 = ["f64", "f32"]

# op, function, low and high of the drawn 32nds, operations
UNARY = [
    ("neg", torch.neg, -124, 124, 1),
    ("exp", torch.exp, -124, 124, 1),
    ("exp_m1", torch.expm1, -124, 124, 1),
    ("ln", torch.log, 1, 124, 1),
    ("ln_1p", torch.log1p, -31, 124, 1),
    ("sqrt", torch.sqrt, 1, 124, 1),
    ("rsqrt", torch.rsqrt, 1, 124, 2),
    ("recip", torch.reciprocal, -124, -8, 1),
    ("square", torch.square, -124, 124, 1),
    ("sin", torch.sin, -124, 124, 1),
    ("cos", torch.cos, -124, 124, 1),
    ("tan", torch.tan, -45, 45, 2),
    ("tanh", torch.tanh, -124, 124, 1),
    ("erf", torch.erf, -124, 124, 1),
]
# Those that are flat or kinked: their gradients are checked off the kinks.
PIECEWISE = [
    ("abs", torch.abs, -124, -1),
    # PyTorch's sign of NaN is 0; ours stays NaN.
    ("sign", lambda x: torch.where(x.isnan(), x, x.sign()), 1, 124),
    ("floor", torch.floor, -124, 124),
    ("ceil", torch.ceil, -124, 124),
    ("round", torch.round, -124, 124),
]
LARGE = {
    "exp": [-80.0, -20.0, 20.0, 80.0],
    "exp_m1": [-80.0, -20.0, 20.0, 80.0],
    "ln": [2.0**100, 2.0**-100, 7.0e9],
    "sin": [-20.0, 50.0, 100.0, 1000.0],
    "cos": [-20.0, 50.0, 100.0, 1000.0],
    "tanh": [-20.0, 44.0, 89.0, -1.0e4],
    "erf": [-20.0, 5.0, 6.0, 1.0e4],
    "sqrt": [2.0**101, 2.0**-101],
}
TINY = [2.0**-20, -(2.0**-30), 3.0 * 2.0**-40, 2.0**-100]


def add(case):
    for op, f, low, high, terms in UNARY:
        case(op, "grid", f, [floats(2, 3, 5, low=low, high=high)], terms=terms)
        case(op, "scalar", f, [floats(low=low, high=high)], terms=terms, order=1)
        case(op, "edges", f, [given(EDGES)], terms=terms, order=0, finite=False)
        if op in LARGE:
            case(op, "large", f, [given(LARGE[op])], terms=terms, order=1)
    for op in ["exp_m1", "ln_1p", "sin", "tan", "tanh", "erf"]:
        f = next(row[1] for row in UNARY if row[0] == op)
        case(op, "tiny", f, [given(TINY)], terms=2)
    for op, f, low, high in PIECEWISE:
        case(op, "grid", f, [floats(3, 7, low=low, high=high)])
        case(op, "values", f, [given([0.0, 0.5, 1.5, 2.5, -0.5, -1.5, -2.25, 7.75, 1e4, INF, -INF, NAN])], order=0, finite=False)
    case("abs", "at zero", torch.abs, [given([0.0, -2.0, 3.0])])
    for op, f in [("is_nan", torch.isnan), ("is_finite", torch.isfinite)]:
        case(op, "edges", f, [given(EDGES + [2.5])], order=0)

    two(case)
    powers(case)
    selection(case)


def two(case):
    arithmetic = [("add", torch.add, 1), ("sub", torch.sub, 1), ("mul", torch.mul, 1), ("div", torch.div, 1)]
    for op, f, terms in [*arithmetic, ("rem", torch.remainder, 2)]:
        divisor = positive if op in ("div", "rem") else floats
        case(op, "same shape", f, [floats(3, 5), divisor(3, 5)], terms=terms)
        case(op, "broadcast", f, [floats(3, 1, 4), divisor(2, 1)], terms=terms + 3)
        case(op, "scalar", f, [floats(), divisor(2, 3)], terms=terms + 6)
        for number in [2.75, -3]:
            case(op, f"number {number}", lambda x: f(x, number), [floats(2, 5)], args={"number": number}, terms=terms)
    case("div", "by zero", torch.div, [given([1.0, -1.0, 0.0, INF]), given([0.0, 0.0, 0.0, INF])], order=0, finite=False)
    case("rem", "signs", torch.remainder, [given([5.0, -5.0, 5.0, -5.0, 6.0, -6.0, 0.25]), given([3.0, 3.0, -3.0, -3.0, 3.0, 3.0, 0.5])])
    case("rem", "by zero", torch.remainder, [given([1.0, -1.0, 0.0]), given([0.0, 0.0, 0.0])], order=0, finite=False)
    for op, f in [("maximum", torch.maximum), ("minimum", torch.minimum)]:
        case(op, "same shape", f, [floats(3, 5, low=1, distinct=True), floats(3, 5, high=0, distinct=True)])
        case(op, "mixed", f, [given([1.0, -2.0, 3.0, -4.0]), given([2.0, 1.5, -1.0, -3.0])])
        case(op, "broadcast", f, [floats(3, 1, distinct=True), given([0.015625, 1.515625, -1.734375])], terms=3, dtypes=FLOATS32)
        case(op, "number", lambda x: f(x, torch.tensor(0.25)), [given([0.0, 1.0, -1.0, 0.5])], args={"number": 0.25})
        case(op, "nan", f, [given([NAN, 1.0, NAN, INF]), given([1.0, NAN, NAN, -INF])], order=0, finite=False)
    x, y = [1.0, 2.0, 3.0, NAN, NAN, INF, -INF, 0.0], [1.0, 3.0, 2.0, 1.0, NAN, INF, INF, -0.0]
    for op in ["eq", "ne", "lt", "le", "gt", "ge"]:
        f = getattr(torch, op)
        case(op, "edges", f, [given(x), given(y)])
        case(op, "broadcast", f, [floats(3, 1, low=-3, high=3), floats(4, low=-3, high=3)])
        case(op, "number", lambda a: f(a, 0.5), [floats(9, low=12, high=20)], args={"number": 0.5})
    case("logical_and", "broadcast", torch.logical_and, [bools(3, 1), bools(4)])
    case("logical_or", "broadcast", torch.logical_or, [bools(3, 1), bools(4)])
    case("logical_not", "all", torch.logical_not, [bools(2, 3)])


def powers(case):
    case("pow", "positive base", torch.pow, [positive(3, 5, low=4), floats(3, 5, low=-64, high=64)], terms=6, dtypes=FLOATS32)
    case("pow", "broadcast", torch.pow, [positive(3, 1, low=4), floats(4, low=-64, high=64)], terms=12, dtypes=FLOATS32)
    # Half floats hold the base's power, not its gradient's terms.
    for number in [2, 3, 2.0, 3.0, -1, 4, 0]:
        case("pow", f"number {number}", lambda x: torch.pow(x, number), [floats(2, 5, low=-64, high=-16)], args={"number": number}, terms=4)
    for number in [0.5, -1.5, 2.5]:
        case("pow", f"number {number}", lambda x: torch.pow(x, number), [positive(2, 5, low=16, high=64)], args={"number": number}, terms=4)
    case("pow", "number 2 at zero", lambda x: torch.pow(x, 2), [given([0.0, -0.0, 1.0])], args={"number": 2})
    case("pow", "number 1.5 at zero", lambda x: torch.pow(x, 1.5), [given([0.0, 1.0])], args={"number": 1.5}, order=1)
    base = [0.0, 0.0, 0.0, 0.0, -2.0, -2.0, -2.0, 1.0, 1.0, -1.0, INF, INF, -INF, -INF, 2.0, 0.5, NAN, NAN, 2.0]
    exponent = [0.0, 2.0, -1.0, -2.0, 3.0, -2.0, 0.5, NAN, INF, INF, 2.0, -1.0, 3.0, 2.0, INF, -INF, 0.0, 1.0, NAN]
    case("pow", "edges", torch.pow, [given(base), given(exponent)], order=0, finite=False)
    case("pow", "gradient at zero", torch.pow, [given([0.0, 0.0, 0.0]), given([1.0, 2.0, 3.0])], order=1)


def selection(case):
    case("select", "tensors", torch.where, [bools(3, 4), floats(3, 4), floats(4)], terms=3)
    case("select", "number left", lambda c, b: torch.where(c, 1.5, b), [bools(3, 4), floats(3, 4)], args={"left": 1.5})
    case("select", "number right", lambda c, a: torch.where(c, a, -2.0), [bools(3, 1), floats(3, 4)], args={"right": -2.0})
    case("masked_fill", "broadcast", lambda x, m: x.masked_fill(m, -2.5), [floats(2, 3, 4), bools(3, 1)], args={"number": -2.5})
    bounds = {"low": -1.0, "high": 1.5}
    case("clamp", "inside and out", lambda x: x.clamp(-1.0, 1.5), [floats(3, 7, distinct=True)], args=bounds)
    case("clamp", "at the bounds", lambda x: x.clamp(-1.0, 1.5), [given([-1.0, 1.5, 0.0, -7.0, 9.0])], args=bounds, order=0)
    case("clamp", "integer bounds", lambda x: x.clamp(-1, 2), [given([-3.5, -1.25, 0.0, 1.75, 2.25])], args={"low": -1, "high": 2})
    case("clamp", "edges", lambda x: x.clamp(-1.0, 1.5), [given([INF, -INF, NAN])], args=bounds, order=0, finite=False)
    case("map", "swish", lambda x: x * torch.sigmoid(x), [floats(3, 4)], args={"formula": "swish"}, terms=4)
    case("map", "gaussian", lambda x: torch.exp(x * x * -0.7), [floats(3, 4, low=-64, high=64)], args={"formula": "gaussian"}, terms=4)
    case("zip", "distance", lambda a, b: (a - b).abs().clamp_min(0.5), [floats(3, 4, low=1), floats(4, high=-32)], terms=4)
    case("zip_n", "fused", lambda a, b, c: a * b + c, [floats(3, 4), floats(4), floats(3, 1)], terms=6)
