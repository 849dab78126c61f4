"""Activations: on a grid off their kinks, and far out, where naive formulas overflow."""

import torch
import torch.nn.functional as F
from generate import floats, given


def softplus(x):
    # The default threshold, from which it is the identity, is too low for f64.
    return F.softplus(x, threshold=40)


def celu(x):
    # F.celu divides by α in f32.
    return torch.where(x > 0, x, 0.7 * torch.expm1(x.clamp_max(0) / 0.7))


def sigmoid(x):
    # The derivative of torch.sigmoid, y(1 − y), cancels where y is close to 1.
    return torch.exp(F.logsigmoid(x))


# op, function, arguments, operations
ACTIVATIONS = [
    ("relu", F.relu, {}, 1),
    ("leaky_relu", lambda x: F.leaky_relu(x, 0.1), {"numbers": [0.1]}, 2),
    ("elu", lambda x: F.elu(x, 1.3), {"numbers": [1.3]}, 3),
    ("selu", F.selu, {}, 3),
    ("celu", celu, {"numbers": [0.7]}, 4),
    ("gelu", F.gelu, {}, 8),
    ("gelu_tanh", lambda x: F.gelu(x, approximate="tanh"), {}, 12),
    ("silu", F.silu, {}, 5),
    ("mish", F.mish, {}, 8),
    ("softplus", softplus, {}, 5),
    ("sigmoid", sigmoid, {}, 3),
    ("log_sigmoid", F.logsigmoid, {}, 5),
    ("hard_swish", F.hardswish, {}, 4),
    ("hard_tanh", F.hardtanh, {}, 2),
    ("softsign", F.softsign, {}, 3),
]
FAR = [-1.0e4, -100.0, -50.0, -20.0, -8.0, 8.0, 20.0, 50.0, 100.0, 1.0e4]


def add(case):
    for op, f, args, terms in ACTIVATIONS:
        # Odd 64ths would miss every kink; odd 32nds miss 0, 1 and 3 as well when none of these is drawn.
        case(op, "negative", f, [floats(2, 7, low=-31, high=-1)], args=args, terms=terms)
        case(op, "positive", f, [floats(2, 7, low=1, high=31)], args=args, terms=terms)
        case(op, "beyond one", f, [floats(2, 3, low=33, high=95)], args=args, terms=terms)
        case(op, "far out", f, [given(FAR)], args=args, terms=terms, order=1)
    for op in ["relu", "hard_tanh", "softplus", "sigmoid", "gelu", "softsign", "silu"]:
        f = next(row[1] for row in ACTIVATIONS if row[0] == op)
        case(op, "at zero", f, [given([0.0, -0.0])], terms=3, order=1)
