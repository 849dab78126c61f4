"""Ops that a backend may run in one pass: softmax, cross-entropy, normalisation, attention."""

import torch
import torch.nn.functional as F
from generate import bools, floats, given, indices
from torch.nn.attention import SDPBackend, sdpa_kernel

EPSILON = 1e-5


def attention(causal=False, scale=None):
    def f(q, k, v, mask=None):
        with sdpa_kernel(SDPBackend.MATH):
            return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=causal, scale=scale)

    return f


def add(case):
    for op, f in [("softmax", torch.softmax), ("log_softmax", torch.log_softmax)]:
        for axis in [0, 1, -1]:
            case(op, f"axis {axis}", lambda x: f(x, axis), [floats(3, 4, 2)], args={"axis": axis}, terms=12, scale="norm")
        case(op, "far out", lambda x: f(x, 1), [given([1e4, 9999.0, -1e4, 100.0, 0.0, -100.0, 5.0, 5.0, 5.0], [3, 3])], args={"axis": 1}, terms=12, scale="norm", order=1)
        case(op, "masked", lambda x: f(x, 1), [given([1.0, float("-inf"), 2.0, float("-inf"), 3.0, float("-inf")], [2, 3])], args={"axis": 1}, terms=12, order=0, finite=False)
        case(op, "long", lambda x: f(x, 1)[:, ::101], [floats(2, 1031)], args={"axis": 1, "every": 101}, terms=12, order=0, scale="norm")
    picked = lambda x, t: -torch.log_softmax(x, -1).gather(-1, t.unsqueeze(-1)).squeeze(-1)
    case("cross_entropy", "rows", picked, [floats(5, 4), indices(5, n=4)], terms=12, scale="norm")
    case("cross_entropy", "two axes of rows", picked, [floats(2, 3, 4), indices(2, 3, n=4)], terms=12, scale="norm")
    case("cross_entropy", "one row", picked, [floats(4), indices(n=4)], terms=12, scale="norm")
    case("cross_entropy", "far out", picked, [given([1e4, -1e4, 0.0, 50.0, -50.0, 0.0], [2, 3]), given([1, 0], kind="i")], terms=12, scale="norm", order=1)
    normalisation(case)
    query, key, value = floats(2, 3, 4), floats(2, 5, 4), floats(2, 5, 2)
    case("attention", "plain", attention(), [query, key, value], terms=40, scale="norm")
    case("attention", "scale", attention(scale=0.3), [query, key, value], args={"scale": 0.3}, terms=40, scale="norm")
    case("attention", "causal", attention(causal=True), [floats(2, 4, 3), floats(2, 4, 3), floats(2, 4, 3)], args={"causal": True}, terms=40, scale="norm")
    case("attention", "heads", attention(), [floats(1, 2, 3, 4), floats(1, 2, 3, 4), floats(1, 2, 3, 4)], terms=40, scale="norm")
    mask = given([1, 0, 1, 1, 0, 0, 1, 1, 0, 1, 1, 1, 0, 0, 1], [3, 5], kind="b")
    case("attention", "mask", attention(), [query, key, value, mask], terms=40, scale="norm")
    # The last query sees all keys: causal where there are more keys than queries.
    shifted = torch.ones(3, 5, dtype=torch.bool).tril(2)
    late = lambda q, k, v: attention()(q, k, v, shifted)
    case("attention", "causal, more keys", late, [query, key, value], args={"causal": True}, terms=40, scale="norm")
    both = lambda q, k, v, m: attention()(q, k, v, shifted & m)
    case("attention", "causal and masked", both, [query, key, value, given([1, 1, 0, 1, 1], [1, 5], kind="b")], args={"causal": True}, terms=40, scale="norm")


def normalisation(case):
    def rms(axes):
        return lambda x: x / torch.sqrt(x.square().mean(axes, keepdim=True) + EPSILON)

    args = lambda axes: {"axes": axes, "epsilon": EPSILON}
    layer = lambda x: F.layer_norm(x, x.shape[1:], eps=EPSILON)
    case("normalize", "layer", layer, [floats(3, 2, 4)], args=args([1, 2]), terms=24, scale="norm")
    case("normalize", "last", lambda x: F.layer_norm(x, x.shape[-1:], eps=EPSILON), [floats(2, 3, 5)], args=args(-1), terms=24, scale="norm")
    batch = lambda x: F.batch_norm(x, None, None, training=True, eps=EPSILON)
    case("normalize", "batch", batch, [floats(3, 2, 2, 2)], args=args([0, 2, 3]), terms=36, scale="norm")
    case("normalize", "instance", lambda x: F.instance_norm(x, eps=EPSILON), [floats(2, 2, 2, 3)], args=args([2, 3]), terms=24, scale="norm")
    case("normalize", "constant rows", lambda x: F.layer_norm(x, [3], eps=EPSILON), [given([2.0, 2.0, 2.0, 0.0, 0.0, 0.0], [2, 3])], args=args(1), terms=24, scale="norm", order=1, dtypes=["f64"])
    case("rms_normalize", "last", lambda x: F.rms_norm(x, [5], eps=EPSILON), [floats(2, 3, 5)], args=args(-1), terms=24, scale="norm")
    case("rms_normalize", "two axes", rms((0, 2)), [floats(2, 3, 4)], args=args([0, 2]), terms=24, scale="norm")
