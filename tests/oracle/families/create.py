"""Tensors from nothing."""

import torch
from generate import FLOATS

INTS = ["i64", "i32", "u8"]


def add(case):
    double = dict(dtype=torch.float64)
    case("zeros", "matrix", lambda: torch.zeros(2, 3, **double), [], args={"shape": [2, 3]}, dtypes=FLOATS)
    case("ones", "scalar", lambda: torch.ones((), **double), [], args={"shape": []}, dtypes=FLOATS)
    case("full", "matrix", lambda: torch.full((2, 2), -1.75, **double), [], args={"shape": [2, 2], "number": -1.75}, dtypes=FLOATS)
    case("full", "integers", lambda: torch.full((3,), 7), [], args={"shape": [3], "number": 7}, dtypes=INTS, out="n")
    case("eye", "three", lambda: torch.eye(3, **double), [], args={"n": 3}, dtypes=FLOATS)
    case("arange", "integers", lambda: torch.arange(3, 20, 4), [], args={"start": 3, "stop": 20, "step": 4}, dtypes=INTS, out="n")
    case("arange", "down", lambda: torch.arange(5, -6, -3), [], args={"start": 5, "stop": -6, "step": -3}, dtypes=["i64", "i32"], out="n")
    case("arange", "floats", lambda: torch.arange(-1.0, 2.0, 0.25, **double), [], args={"start": -1.0, "stop": 2.0, "step": 0.25}, dtypes=FLOATS)
    case("arange", "thirds", lambda: torch.arange(0.0, 4.0, 1 / 3, **double), [], args={"start": 0.0, "stop": 4.0, "step": 1 / 3}, dtypes=FLOATS, scale="norm")
    case("linspace", "sevenths", lambda: torch.linspace(-1.0, 2.0, 8, **double), [], args={"start": -1.0, "stop": 2.0, "n": 8}, dtypes=FLOATS, scale="norm")
    case("linspace", "one", lambda: torch.linspace(3.0, 5.0, 1, **double), [], args={"start": 3.0, "stop": 5.0, "n": 1}, dtypes=FLOATS)
