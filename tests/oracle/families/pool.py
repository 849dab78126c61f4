"""Pools. Inputs of maxima have no ties."""

import torch
import torch.nn.functional as F
from generate import floats

from .conv import padded

MAX = [None, F.max_pool1d, F.max_pool2d, F.max_pool3d]
AVG = [None, F.avg_pool1d, F.avg_pool2d, F.avg_pool3d]
ADAPTIVE_MAX = [None, F.adaptive_max_pool1d, F.adaptive_max_pool2d, F.adaptive_max_pool3d]
ADAPTIVE_AVG = [None, F.adaptive_avg_pool1d, F.adaptive_avg_pool2d, F.adaptive_avg_pool3d]


def max_pool(rank, kernel, stride, padding, dilation):
    return lambda x: MAX[rank](padded(x, padding, float("-inf")), kernel, stride, 0, dilation)


def avg_pool(rank, kernel, stride, padding, count_padding):
    def f(x):
        # The padding as numbers of their own: PyTorch pads both sides alike.
        y = AVG[rank](padded(x, padding), kernel, stride)
        return y if count_padding else y / AVG[rank](padded(torch.ones_like(x), padding), kernel, stride)

    return f


# name, input, kernel, stride, padding, dilation
WINDOWS = [
    ("side by side", (2, 2, 7), [2], [2], [(0, 0)], [1]),
    ("overlapping", (1, 2, 7), [3], [2], [(1, 1)], [1]),
    ("side by side", (1, 2, 4, 6), [2, 3], [2, 3], [(0, 0), (0, 0)], [1, 1]),
    ("overlapping", (1, 2, 5, 6), [3, 2], [1, 2], [(1, 1), (0, 1)], [1, 1]),
    ("dilation", (1, 1, 6, 7), [2, 3], [2, 1], [(1, 0), (0, 0)], [3, 2]),
    ("gaps", (1, 1, 7, 7), [2, 1], [3, 2], [(0, 0), (0, 0)], [1, 1]),
    ("overlapping", (1, 2, 4, 3, 4), [2, 2, 3], [2, 1, 1], [(1, 0), (0, 0), (1, 1)], [1, 1, 1]),
]
# input, sizes
ADAPTIVE = [((1, 2, 7), [3]), ((1, 2, 5), [5]), ((2, 2, 6, 4), [3, 2]), ((1, 1, 7, 5), [3, 2]), ((1, 2, 3, 5), [1, 1]), ((1, 1, 5, 4, 3), [2, 2, 2])]


def add(case):
    for name, shape, kernel, stride, padding, dilation in WINDOWS:
        rank = len(kernel)
        args = {"kernel": kernel, "stride": stride, "padding": padding, "dilation": dilation}
        f = max_pool(rank, kernel, stride, padding, dilation)
        case(f"max_pool{rank}d", name, f, [floats(*shape, distinct=True)], args=args, terms=6)
        for count in [True, False] if dilation == [1] * rank else []:
            f = avg_pool(rank, kernel, stride, padding, count)
            word = name if count else f"{name}, padding not counted"
            case(f"avg_pool{rank}d", word, f, [floats(*shape)], args=args | {"count_padding": count}, terms=18, scale="sum")
    positions = lambda x: [y if i == 0 else y.int() for i, y in enumerate(F.max_pool2d(x, (3, 2), 2, 1, return_indices=True))]
    case("max_pool_with_positions", "padded", positions, [floats(1, 2, 5, 6, distinct=True)],
         args={"kernel": [3, 2], "stride": [2, 2], "padding": [[1, 1], [1, 1]], "dilation": [1, 1]}, terms=6)
    for shape, sizes in ADAPTIVE:
        rank = len(sizes)
        name, args = f"{'x'.join(map(str, shape[2:]))} to {'x'.join(map(str, sizes))}", {"sizes": sizes}
        case(f"adaptive_max_pool{rank}d", name, lambda x: ADAPTIVE_MAX[rank](x, sizes), [floats(*shape, distinct=True)], args=args, terms=6)
        case(f"adaptive_avg_pool{rank}d", name, lambda x: ADAPTIVE_AVG[rank](x, sizes), [floats(*shape)], args=args, terms=18, scale="sum")
