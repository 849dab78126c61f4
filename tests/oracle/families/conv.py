"""Convolutions and their transposes of one, two and three axes."""

import torch
import torch.nn.functional as F
from generate import floats

CONV = [None, F.conv1d, F.conv2d, F.conv3d]
TRANSPOSED = [None, F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d]


def padded(x, padding, value=0.0):
    """(before, after) per spatial axis; PyTorch counts from the last axis."""
    return F.pad(x, [n for pair in reversed(padding) for n in pair], value=value)


def conv(rank, stride, padding, dilation, groups):
    return lambda x, w, b=None: CONV[rank](padded(x, padding), w, b, stride, 0, dilation, groups)


def conv_transpose(rank, stride, padding, dilation, groups, output_padding):
    def f(x, w, b=None):
        y = TRANSPOSED[rank](x, w, b, stride, 0, output_padding, groups, dilation)
        for axis, (before, after) in enumerate(padding):
            y = y.narrow(axis + 2, before, y.shape[axis + 2] - before - after)
        return y

    return f


# name, input [N, C, ..], weight [C_out, C / groups, ..], bias, stride, padding, dilation, groups
CONVOLUTIONS = [
    ("plain", (2, 2, 5), (3, 2, 3), False, [1], [(0, 0)], [1], 1),
    ("all at once", (1, 4, 9), (2, 2, 2), True, [2], [(2, 1)], [3], 2),
    ("pointwise", (2, 3, 4), (2, 3, 1), True, [1], [(0, 0)], [1], 1),
    ("stride over kernel", (1, 2, 8), (2, 2, 2), False, [3], [(0, 0)], [1], 1),
    ("even kernel, padding over kernel", (1, 1, 4), (1, 1, 2), False, [1], [(3, 2)], [1], 1),
    ("plain", (2, 2, 4, 5), (3, 2, 2, 3), False, [1, 1], [(0, 0), (0, 0)], [1, 1], 1),
    ("bias, padding", (1, 2, 3, 4), (3, 2, 3, 3), True, [1, 1], [(1, 1), (1, 1)], [1, 1], 1),
    ("stride", (1, 2, 6, 5), (2, 2, 3, 2), False, [2, 3], [(1, 0), (0, 2)], [1, 1], 1),
    ("dilation", (1, 2, 6, 7), (2, 2, 3, 2), False, [1, 1], [(0, 1), (2, 0)], [2, 3], 1),
    ("groups", (2, 4, 4, 3), (6, 2, 2, 2), True, [1, 1], [(0, 0), (1, 1)], [1, 1], 2),
    ("depthwise", (1, 3, 4, 4), (6, 1, 3, 3), False, [2, 1], [(1, 1), (1, 1)], [1, 1], 3),
    ("all at once", (1, 4, 7, 6), (2, 2, 2, 3), True, [2, 2], [(2, 1), (0, 3)], [3, 2], 2),
    ("pointwise", (1, 3, 3, 3), (4, 3, 1, 1), False, [1, 1], [(0, 0), (0, 0)], [1, 1], 1),
    ("pointwise, stride", (1, 3, 5, 4), (2, 3, 1, 1), False, [2, 2], [(0, 0), (0, 0)], [1, 1], 1),
    ("as large as the input", (2, 2, 3, 4), (2, 2, 3, 4), False, [1, 1], [(0, 0), (0, 0)], [1, 1], 1),
    ("plain", (1, 2, 3, 4, 3), (2, 2, 2, 2, 2), False, [1, 1, 1], [(0, 0)] * 3, [1, 1, 1], 1),
    ("all at once", (1, 4, 4, 5, 3), (2, 2, 2, 2, 1), True, [2, 1, 2], [(1, 0), (0, 2), (1, 1)], [1, 2, 1], 2),
]
# name, input [N, C, ..], weight [C, C_out / groups, ..], bias, stride, padding, dilation, groups, output padding
TRANSPOSES = [
    ("plain", (2, 2, 4), (2, 3, 3), False, [1], [(0, 0)], [1], 1, [0]),
    ("all at once", (1, 4, 4), (4, 1, 3), True, [3], [(1, 2)], [2], 2, [2]),
    ("plain", (1, 2, 3, 3), (2, 3, 2, 3), True, [1, 1], [(0, 0), (0, 0)], [1, 1], 1, [0, 0]),
    ("stride", (1, 2, 3, 2), (2, 2, 3, 2), False, [2, 3], [(1, 1), (0, 0)], [1, 1], 1, [1, 2]),
    ("groups", (1, 4, 2, 3), (4, 2, 2, 2), False, [2, 2], [(0, 0), (0, 0)], [1, 1], 2, [0, 0]),
    ("all at once", (1, 4, 3, 2), (4, 1, 2, 3), True, [2, 3], [(1, 0), (2, 1)], [2, 1], 2, [1, 0]),
    ("plain", (1, 2, 2, 2, 3), (2, 1, 2, 2, 2), False, [1, 1, 1], [(0, 0)] * 3, [1, 1, 1], 1, [0, 0, 0]),
    ("all at once", (1, 2, 2, 2, 2), (2, 1, 2, 1, 2), True, [2, 1, 2], [(0, 1), (0, 0), (1, 0)], [1, 1, 2], 2, [1, 0, 0]),
]


def add(case):
    for name, x, w, bias, stride, padding, dilation, groups in CONVOLUTIONS:
        rank = len(stride)
        inputs = [floats(*x), floats(*w)] + ([floats(w[0])] if bias else [])
        args = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
        f = conv(rank, stride, padding, dilation, groups)
        case(f"conv{rank}d", name, f, inputs, args=args, terms=max(w[1] * w[2] * 4, x[0] * 8), scale="sum")
    for name, x, w, bias, stride, padding, dilation, groups, extra in TRANSPOSES:
        rank = len(stride)
        inputs = [floats(*x), floats(*w)] + ([floats(w[1] * groups)] if bias else [])
        args = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups, "output_padding": extra}
        f = conv_transpose(rank, stride, padding, dilation, groups, extra)
        case(f"conv_transpose{rank}d", name, f, inputs, args=args, terms=24, scale="sum")
    fused = lambda x, w, b: torch.relu(F.conv2d(x, w) + b[:, None, None])
    case("conv_with", "bias and relu", fused, [floats(1, 2, 4, 4), floats(3, 2, 2, 3), floats(3)], terms=16, scale="sum")
    larger = lambda x, w: F.conv2d(x, w, padding=1)[:, ::3, ::5, ::4]
    args = {"stride": [1, 1], "padding": [[1, 1], [1, 1]], "dilation": [1, 1], "groups": 1, "every": [1, 3, 5, 4]}
    case("conv2d", "larger", larger, [floats(2, 9, 17, 19), floats(13, 9, 3, 3)], args=args, terms=81, order=0, scale="sum")
