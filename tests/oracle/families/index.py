"""Picking, adding and writing by index."""

import torch
from generate import floats, given, indices, bools


def add(case):
    for axis in [0, 1, -1]:
        n = [3, 4, 2][axis]
        pick = lambda x, i: x.index_select(axis, i)
        case("index_select", f"axis {axis}", pick, [floats(3, 4, 2), indices(5, n=n)], args={"axis": axis}, terms=5)
        added = lambda x, i, s: x.index_add(axis, i, s)
        shape = [3, 4, 2]
        shape[axis] = 5
        case("index_add", f"axis {axis}", added, [floats(3, 4, 2), indices(5, n=n), floats(*shape)], args={"axis": axis}, terms=6, scale="sum")
    case("index_select", "embedding", lambda x, i: x[i], [floats(7, 3), indices(2, 4, n=7)], args={"axis": 0}, terms=8)
    # (table, index, axis): the index is narrower than the table off the axis.
    for name, table, index, axis in [("rows", (4, 3), (6, 2), 0), ("columns", (3, 5), (2, 7), 1), ("middle", (2, 4, 3), (2, 6, 2), 1)]:
        n = table[axis]
        case("gather", name, lambda x, i: x.gather(axis, i), [floats(*table), indices(*index, n=n)], args={"axis": axis}, terms=7)
        add_at = lambda x, i, s: x.scatter_add(axis, i, s)
        case("scatter_add", name, add_at, [floats(*table), indices(*index, n=n), floats(*index)], args={"axis": axis}, terms=8, scale="sum")
    case("gather", "picks one", lambda x, i: x.gather(1, i), [floats(4, 3), indices(4, 1, n=3)], args={"axis": 1})
    repeats = given([1, 2, 4, 1, 4, 1, 1, 4], kind="i")
    case("scatter_add", "all repeats", lambda x, i, s: x.scatter_add(0, i, s), [floats(6), repeats, floats(8)], args={"axis": 0}, terms=8, scale="sum")

    def assign(x, s):
        y = x.clone()
        y[:, 1:3] = s
        return y

    args = {"axis": 1, "start": 1, "stop": 3}
    case("slice_assign", "same shape", assign, [floats(3, 4), floats(3, 2)], args=args)
    case("slice_assign", "broadcast", assign, [floats(3, 4), floats(3, 1)], args=args, terms=2)
    case("slice_assign", "number", lambda x: assign(x, 2.5), [floats(3, 4)], args=args | {"number": 2.5})
    case("one_hot", "vector", lambda i: torch.nn.functional.one_hot(i, 5).double(), [indices(4, n=5)], args={"n": 5}, dtypes=["f32"], out="s")
    case("one_hot", "matrix", lambda i: torch.nn.functional.one_hot(i, 3).double(), [indices(2, 3, n=3)], args={"n": 3}, dtypes=["f32"], out="s")
    case("nonzero", "floats", torch.nonzero, [given([0.0, 1.0, -2.0, 0.0, 0.5, 0.0], [2, 3])], order=0)
    case("nonzero", "bools", torch.nonzero, [bools(2, 3, 2)], dtypes=["f32"])
