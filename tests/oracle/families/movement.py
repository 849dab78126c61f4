"""The same elements in another place, and what joins and surrounds them."""

import torch
import torch.nn.functional as F
from generate import bools, floats, given, positive


def strided(x, axis, start, stop, step):
    """x along `axis` over start..stop by `step`; a negative step walks from the end."""
    x = x.narrow(axis, start, stop - start)
    x = x.flip(axis) if step < 0 else x
    return x.index_select(axis, torch.arange(0, stop - start, abs(step)))


def add(case):
    # Rounding only where elements repeat.
    cases = [
        ("reshape", "with a rest", lambda x: x.reshape(4, -1), (2, 3, 4), {"shape": [4, -1]}),
        ("reshape", "to a vector", lambda x: x.reshape(-1), (2, 3), {"shape": [-1]}),
        ("permute", "axes", lambda x: x.permute(2, 0, 1), (2, 3, 4), {"axes": [2, 0, -2]}),
        ("transpose", "ends", lambda x: x.transpose(0, 2), (2, 3, 4), {"a": 0, "b": -1}),
        ("t", "matrix", lambda x: x.t(), (3, 4), {}),
        ("expand", "axis and lead", lambda x: x.expand(2, 3, 4), (3, 1), {"shape": [2, -1, 4]}),
        ("expand", "scalar", lambda x: x.expand(2, 3), (), {"shape": [2, 3]}),
        ("squeeze", "one", lambda x: x.squeeze(1), (3, 1, 4), {"axes": 1}),
        ("squeeze", "two", lambda x: x.squeeze((0, 2)), (1, 3, 1), {"axes": [0, -1]}),
        ("unsqueeze", "last", lambda x: x.unsqueeze(-1), (3, 4), {"axis": -1}),
        ("unsqueeze", "first", lambda x: x.unsqueeze(0), (3, 4), {"axis": 0}),
        ("flatten", "from one", lambda x: x.flatten(1), (2, 3, 4), {"from": 1}),
        ("narrow", "middle", lambda x: x.narrow(1, 1, 2), (3, 4), {"axis": 1, "start": 1, "len": 2}),
        ("slice", "step", lambda x: strided(x, 1, 1, 6, 2), (2, 7), {"axis": 1, "start": 1, "stop": 6, "step": 2}),
        ("slice", "backwards", lambda x: strided(x, 0, 1, 6, -2), (7, 2), {"axis": 0, "start": 1, "stop": 6, "step": -2}),
        ("slice", "from the end", lambda x: strided(x, -1, 4, 7, 1), (2, 7), {"axis": -1, "start": -3, "step": 1}),
        ("flip", "two", lambda x: x.flip((0, 2)), (2, 3, 4), {"axes": [0, -1]}),
        ("repeat", "axes and lead", lambda x: x.repeat(2, 1, 3), (3, 2), {"counts": [2, 1, 3]}),
        ("roll", "forwards", lambda x: x.roll(2, 1), (2, 5), {"shift": 2, "axis": 1}),
        ("roll", "backwards", lambda x: x.roll(-7, 0), (5, 2), {"shift": -7, "axis": 0}),
        ("pad", "value", lambda x: F.pad(x, (0, 2, 1, 0), value=1.5), (2, 3), {"pairs": [[1, 0], [0, 2]], "number": 1.5}),
        ("contiguous", "copy", lambda x: x.clone(), (2, 3, 4), {}),
        ("tril", "above", lambda x: x.tril(1), (2, 3, 4), {"k": 1}),
        ("tril", "below", lambda x: x.tril(-1), (4, 3), {"k": -1}),
        ("triu", "main", lambda x: x.triu(), (3, 4), {"k": 0}),
        ("triu", "below", lambda x: x.triu(-2), (2, 4, 3), {"k": -2}),
        ("diag", "of a matrix", lambda x: x.diag(), (3, 4), {"k": 0}),
        ("diag", "above, of a matrix", lambda x: x.diag(1), (3, 4), {"k": 1}),
        ("diag", "below, of a matrix", lambda x: x.diag(-1), (3, 4), {"k": -1}),
        ("diag", "of a vector", lambda x: x.diag(), (3,), {"k": 0}),
        ("diag", "above, of a vector", lambda x: x.diag(2), (3,), {"k": 2}),
        ("diag", "below, of a vector", lambda x: x.diag(-1), (3,), {"k": -1}),
    ]
    for op, name, f, shape, args in cases:
        case(op, name, f, [floats(*shape)], args=args, terms=8)
    for op, f in [("chunk", lambda x: x.chunk(3, 1)), ("split", lambda x: x.split([1, 4, 2], 1))]:
        args = {"n": 3, "axis": 1} if op == "chunk" else {"sizes": [1, 4, 2], "axis": 1}
        case(op, "uneven", f, [floats(2, 7)], args=args)
    case("cat", "rows", lambda a, b, c: torch.cat([a, b, c], 0), [floats(2, 3), floats(1, 3), floats(3, 3)], args={"axis": 0})
    case("cat", "last", lambda a, b: torch.cat([a, b], -1), [floats(2, 2, 3), floats(2, 2, 1)], args={"axis": -1})
    case("stack", "middle", lambda a, b: torch.stack([a, b], 1), [floats(2, 3), floats(2, 3)], args={"axis": 1})
    case("expand_as", "matrix", lambda a, b: a.expand_as(b), [floats(1, 4), floats(3, 4)], terms=3)
    case("cat", "with an empty one", lambda a, b: torch.cat([a, b], 0), [floats(0, 3), floats(2, 3)], args={"axis": 0})
    casts(case)


def casts(case):
    inside = given([0.0, 0.75, -0.75, 1.5, -2.5, 100.9, 7.0])
    for name, dtype, kind in [("i64", torch.int64, "i"), ("i32", torch.int32, "j"), ("u8", torch.uint8, "u")]:
        values = given([0.0, 0.75, 1.5, 100.5, 7.0, 255.0]) if name == "u8" else inside
        case("cast", f"floats to {name}", lambda x: x.to(dtype).long(), [values], args={"to": name}, order=0, out=kind)
    case("cast", "floats to bool", lambda x: x.bool(), [given([0.0, -0.0, 0.5, -3.0, float("nan"), float("inf")])], args={"to": "bool"}, order=0)
    case("cast", "bool to floats", lambda b: b.double(), [bools(2, 3)], args={"to": "run"}, dtypes=["f64", "f32", "f16", "bf16"])
    odd = [1.0 + 2.0**-11, 1.0 + 3 * 2.0**-11, 1.0 + 2.0**-8, 1.0 + 3 * 2.0**-8, 65519.0, 65520.0, 2.0**-24, 2.0**-25, 1.5 * 2.0**-25, -3.14159]
    for name, dtype in [("f16", torch.float16), ("bf16", torch.bfloat16), ("f32", torch.float32)]:
        wide = odd + ([1.0 + 2.0**-24, 1.0 + 3 * 2.0**-24, 1.0e39, 2.0**-149, 2.0**-150] if name == "f32" else [])
        case("cast", f"to {name} and back", lambda x: x.to(dtype).double(), [given(wide)], args={"through": name}, order=0, dtypes=["f64"], finite=False)
        case("cast", f"gradient through {name}", lambda x: x.to(dtype).double(), [positive(5)], args={"through": name}, dtypes=["f64"])
