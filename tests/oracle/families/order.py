"""Running folds and sorting. Inputs of sorts have no ties: PyTorch's order of equals is its own."""

import torch
from generate import floats, given

NAN = float("nan")


def add(case):
    for axis in [0, 1, -1]:
        args = {"axis": axis}
        case("cumsum", f"axis {axis}", lambda x: x.cumsum(axis), [floats(3, 4, 2)], args=args, terms=4, scale="sum")
        case("cumprod", f"axis {axis}", lambda x: x.cumprod(axis), [floats(3, 4, 2, low=16, high=64)], args=args, terms=4, scale="norm")
        case("cummax", f"axis {axis}", lambda x: x.cummax(axis)[0], [floats(3, 4, 2, distinct=True)], args=args, terms=4)
        case("sort", f"axis {axis}", lambda x: x.sort(axis), [floats(3, 4, 2, distinct=True)], args=args | {"descending": False})
        case("argsort", f"axis {axis}", lambda x: x.argsort(axis), [floats(3, 4, 2, distinct=True)], args=args | {"descending": False}, order=0)
    zeros = [("one zero", [2.0, 0.5, 0.0, 3.0, -1.5]), ("two zeros", [2.0, 0.0, 3.0, 0.0, -1.5]), ("zero first", [0.0, 2.0, 3.0]), ("zero last", [2.0, 3.0, 0.0])]
    for name, values in zeros:
        case("cumprod", name, lambda x: x.cumprod(0), [given(values)], args={"axis": 0}, terms=5, scale="norm")
    case("cumsum", "long", lambda x: x.cumsum(1)[:, ::500], [floats(2, 4099)], args={"axis": 1, "every": 500}, terms=4099, order=0, scale="sum", dtypes=["f64", "f32"])
    case("cummax", "nan", lambda x: x.cummax(0)[0], [given([1.0, NAN, 5.0])], args={"axis": 0}, order=0, finite=False)
    for descending in [False, True]:
        args = {"axis": 1, "descending": descending}
        word = "descending" if descending else "ascending"
        case("sort", word, lambda x: x.sort(1, descending=descending), [floats(2, 9, distinct=True)], args=args)
        case("argsort", word, lambda x: x.argsort(1, descending=descending), [floats(2, 9, distinct=True)], args=args, order=0)
        case("sort", f"long {word}", lambda x: [y[:, ::97] for y in x.sort(1, descending=descending)],
             [floats(2, 1031, low=-30000, high=30000, distinct=True)], args=args | {"every": 97}, order=0, dtypes=["f64", "f32"])
    for k in [1, 3, 5]:
        case("topk", f"{k} of 5", lambda x: x.topk(k, 1), [floats(3, 5, 2, distinct=True)], args={"k": k, "axis": 1})
