"""Matrix products and index notation."""

import torch
from generate import floats

# name, lhs, rhs
PRODUCTS = [
    ("matrices", (3, 4), (4, 5)),
    ("row by column", (1, 7), (7, 1)),
    ("outer", (3, 1), (1, 4)),
    ("batches", (2, 3, 4), (2, 4, 2)),
    ("broadcast left", (3, 4), (2, 4, 2)),
    ("broadcast right", (2, 3, 4), (4, 2)),
    ("broadcast both", (2, 1, 2, 3), (3, 3, 2)),
    ("vectors", (5,), (5,)),
    ("vector by matrix", (4,), (4, 3)),
    ("matrix by vector", (3, 4), (4,)),
    ("vector by batches", (4,), (2, 4, 3)),
    ("batches by vector", (2, 3, 4), (4,)),
]
NOTATIONS = [
    ("ij,jk->ik", [(3, 4), (4, 2)]),
    ("bij,bjk->bik", [(2, 3, 4), (2, 4, 2)]),
    ("ij,jk", [(3, 4), (4, 2)]),
    ("ij->ji", [(3, 4)]),
    ("ij->", [(3, 4)]),
    ("ij->j", [(3, 4)]),
    ("ii->", [(4, 4)]),
    ("ii->i", [(4, 4)]),
    ("iji->j", [(3, 2, 3)]),
    ("i,j->ij", [(3,), (4,)]),
    ("i,i->", [(5,), (5,)]),
    ("ij,ij->ij", [(2, 3), (2, 3)]),
    ("bhtd,bhsd->bhts", [(2, 2, 3, 4), (2, 2, 2, 4)]),
    ("...ij,...jk->...ik", [(2, 2, 3), (2, 3, 2)]),
    ("b...,b...->...", [(3, 2, 2), (3, 2, 2)]),
    ("ij,jk,kl->il", [(2, 3), (3, 4), (4, 2)]),
    ("i,ij,j->", [(3,), (3, 4), (4,)]),
    ("ijk,jl,kl->il", [(2, 3, 4), (3, 2), (4, 2)]),
    ("ab,cb->ca", [(2, 3), (4, 3)]),
]


def add(case):
    for name, lhs, rhs in PRODUCTS:
        case("matmul", name, torch.matmul, [floats(*lhs), floats(*rhs)], terms=8, scale="sum")
    for name, m, k, n in [("long inner", 3, 1031, 2), ("tall", 131, 5, 3), ("wide", 2, 9, 257), ("square", 67, 65, 66)]:
        pick = lambda a, b: (a @ b)[::11, ::13] if m * n > 300 else a @ b
        step = {"every": [11, 13]} if m * n > 300 else {}
        case("matmul", name, pick, [floats(m, k), floats(k, n)], args=step, terms=k, order=0, scale="sum")
    bias = lambda a, b, c: torch.relu(a @ b + c)
    case("matmul_with", "bias and relu", bias, [floats(3, 4), floats(4, 5), floats(5)], terms=6, scale="sum")
    for notation, shapes in NOTATIONS:
        f = lambda *x: torch.einsum(notation, *x)
        case("einsum", notation, f, [floats(*s) for s in shapes], args={"notation": notation}, terms=16, scale="sum")
