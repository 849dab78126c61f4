"""Losses. The first input is the prediction; targets are drawn where the loss is defined."""

import torch
import torch.nn.functional as F
from generate import FLOATS, floats, given, indices, positive

SHAPE = (4, 3)


def add(case):
    pairs = [
        ("mse", lambda r: lambda x, y: F.mse_loss(x, y, reduction=r), {}),
        ("mae", lambda r: lambda x, y: F.l1_loss(x, y, reduction=r), {}),
        ("huber", lambda r: lambda x, y: F.huber_loss(x, y, reduction=r, delta=0.8), {"number": 0.8}),
        ("smooth_l1", lambda r: lambda x, y: F.smooth_l1_loss(x, y, reduction=r, beta=0.8), {"number": 0.8}),
        ("binary_cross_entropy_with_logits", lambda r: lambda x, y: F.binary_cross_entropy_with_logits(x, y, reduction=r), {}),
    ]
    for name, loss, args in pairs:
        target = positive(*SHAPE, low=1, high=31) if "binary" in name else floats(*SHAPE, low=-40, high=-1, distinct=True)
        for reduction in ["mean", "sum", "none"]:
            prediction = floats(*SHAPE, low=1, distinct=True)
            case(f"loss::{name}", reduction, loss(reduction), [prediction, target], args=args | {"reduction": reduction}, terms=16, scale="norm")
    probability = positive(*SHAPE, low=1, high=31)
    for reduction in ["mean", "none"]:
        # The derivative of F.binary_cross_entropy keeps denominators above 1e-12.
        losses = lambda x, y: -(y * torch.log(x) + (1 - y) * torch.log1p(-x))
        f = lambda x, y: losses(x, y).mean() if reduction == "mean" else losses(x, y)
        case("loss::binary_cross_entropy", reduction, f, [probability, given([0, 1] * 6, SHAPE)], args={"reduction": reduction}, terms=16, scale="norm")
    far = given([1e4, -1e4, 100.0, -100.0])
    logits = lambda x, y: F.binary_cross_entropy_with_logits(x, y, reduction="none")
    case("loss::binary_cross_entropy_with_logits", "far out", logits, [far, given([1.0, 1.0, 0.0, 0.5])], args={"reduction": "none"}, terms=8, scale="norm", order=1)
    classes(case)


def classes(case):
    rows, targets = floats(5, 4), given([0, 3, 2, 2, 1], kind="i")
    for reduction in ["mean", "sum", "none"]:
        f = lambda x, t: F.cross_entropy(x, t, reduction=reduction)
        case("loss::cross_entropy", reduction, f, [rows, targets], args={"reduction": reduction}, terms=16, scale="norm")
        f = lambda x, t: F.nll_loss(x, t, reduction=reduction)
        case("loss::nll", reduction, f, [rows, targets], args={"reduction": reduction}, terms=8, scale="norm")
    f = lambda x, t: F.cross_entropy(x, t, label_smoothing=0.1)
    case("loss::cross_entropy", "smoothing", f, [rows, targets], args={"smoothing": 0.1}, terms=16, scale="norm")
    weights = [0.5, 2.0, 1.0, 3.0]
    f = lambda x, t: F.cross_entropy(x, t, weight=torch.tensor(weights, dtype=torch.float64))
    case("loss::cross_entropy", "weights", f, [rows, targets], args={"weights": weights}, terms=16, scale="norm")
    f = lambda x, t: F.cross_entropy(x, t, ignore_index=2)
    case("loss::cross_entropy", "ignored class", f, [rows, targets], args={"ignore": 2}, terms=16, scale="norm")
    f = lambda x, t: F.cross_entropy(x, t, weight=torch.tensor(weights, dtype=torch.float64), label_smoothing=0.2, ignore_index=3)
    case("loss::cross_entropy", "all at once", f, [rows, targets], args={"weights": weights, "smoothing": 0.2, "ignore": 3}, terms=24, scale="norm")
    shares = given([0.5, 0.25, 0.25, 0.0, 0.125, 0.125, 0.5, 0.25], [2, 4])
    case("loss::cross_entropy", "probabilities", lambda x, p: F.cross_entropy(x, p), [floats(2, 4), shares], args={"probabilities": True}, terms=16, scale="norm", dtypes=FLOATS)
