"""Writes golden.safetensors: what PyTorch computes for every layer, loss and optimizer that `golden.rs` compares with ours.

    python generate.py        # needs torch and safetensors; the tests do not

All values are f64. A layer's case holds `input`, `param/…`, `buffer/…`, `output`, `cotangent`, the gradients of
Σ output·cotangent as `grad/input` and `grad/…`, and the buffers after a training step as `after/…`. A loss's case holds its
inputs, `output` and `grad/prediction`. An optimizer's case holds `start`, `grads` (one row a step) and `steps` (the parameter
after each).
"""

from collections.abc import Callable
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.nn import functional as F

torch.manual_seed(0)
torch.set_default_dtype(torch.float64)
golden: dict[str, Tensor] = {}


def put(case: str, **tensors: Tensor) -> None:
    for name, tensor in tensors.items():
        golden[f"{case}/{name}"] = tensor.detach().clone().contiguous()


def randomised(module: nn.Module) -> nn.Module:
    """Weights that no symmetry hides: the affine parameters of norms are not 1 and 0."""
    with torch.no_grad():
        for p in module.parameters():
            if p.dim() == 1:
                p.uniform_(-1.0, 1.0)
        for name, b in module.named_buffers():
            if name.endswith("running_mean"):
                b.normal_()
            elif name.endswith("running_var"):
                b.uniform_(0.5, 2.0)
    return module


def layer(case: str, module: nn.Module, *shape: int, training: bool = True, x: Tensor | None = None) -> None:
    module = randomised(module).train(training)
    x = torch.randn(shape) if x is None else x
    x = x.requires_grad_(x.is_floating_point())
    put(case, input=x, **{f"param/{n}": p for n, p in module.named_parameters()})
    put(case, **{f"buffer/{n}": b for n, b in module.named_buffers()})
    differentiate(case, module(x), x, dict(module.named_parameters()))
    put(case, **{f"after/{n}": b for n, b in module.named_buffers()})


def differentiate(case: str, y: Tensor, x: Tensor, params: dict[str, Tensor]) -> None:
    cotangent = torch.randn_like(y)
    put(case, output=y, cotangent=cotangent)
    (y * cotangent).sum().backward()
    if x.grad is not None:
        put(case, **{"grad/input": x.grad})
    put(case, **{f"grad/{n}": p.grad for n, p in params.items()})


def layers() -> None:
    layer("linear", nn.Linear(5, 3), 4, 5)
    layer("linear_axes", nn.Linear(5, 3, bias=False), 2, 3, 5)
    tokens = torch.tensor([[1, 0, 4], [4, 2, 1]])
    layer("embedding", nn.Embedding(5, 3), x=tokens)
    layer("embedding_padding", nn.Embedding(5, 3, padding_idx=1), x=tokens)

    layer("conv1d", nn.Conv1d(4, 6, 3, stride=2, padding=1, groups=2), 2, 4, 9)
    layer("conv2d", nn.Conv2d(2, 3, (3, 2), stride=(2, 1), padding=(1, 0), dilation=(1, 2)), 2, 2, 7, 6)
    layer("conv2d_depthwise", nn.Conv2d(3, 6, 3, padding=1, groups=3, bias=False), 2, 3, 5, 5)
    layer("conv3d", nn.Conv3d(2, 2, 2, padding=1), 1, 2, 3, 3, 4)

    layer("max_pool1d", nn.MaxPool1d(3, stride=2, padding=1), 2, 2, 9)
    layer("max_pool2d", nn.MaxPool2d(2), 2, 2, 5, 6)
    layer("max_pool2d_dilated", nn.MaxPool2d((3, 2), stride=(1, 2), padding=(1, 0), dilation=(2, 1)), 1, 2, 7, 6)
    layer("max_pool3d", nn.MaxPool3d(2), 1, 2, 4, 4, 2)
    layer("avg_pool1d", nn.AvgPool1d(3, stride=2, padding=1), 2, 2, 9)
    layer("avg_pool2d", nn.AvgPool2d(2), 2, 2, 5, 6)
    layer("avg_pool2d_uncounted", nn.AvgPool2d(3, stride=2, padding=1, count_include_pad=False), 1, 2, 5, 6)
    layer("avg_pool3d", nn.AvgPool3d(2), 1, 2, 4, 4, 2)
    layer("adaptive_avg_pool2d", nn.AdaptiveAvgPool2d((3, 4)), 1, 2, 7, 8)
    layer("adaptive_max_pool2d", nn.AdaptiveMaxPool2d((3, 2)), 1, 2, 7, 5)
    layer("adaptive_avg_pool1d", nn.AdaptiveAvgPool1d(4), 1, 2, 10)
    layer("global_avg_pool", nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten()), 2, 3, 4, 5)

    layer("batch_norm1d", nn.BatchNorm1d(3), 5, 3)
    layer("batch_norm1d_axis", nn.BatchNorm1d(3), 2, 3, 4)
    layer("batch_norm2d", nn.BatchNorm2d(3, eps=1e-3, momentum=0.3), 2, 3, 2, 4)
    layer("batch_norm2d_infer", nn.BatchNorm2d(3), 2, 3, 2, 4, training=False)
    layer("batch_norm3d", nn.BatchNorm3d(2, affine=False), 2, 2, 2, 2, 3)
    layer("layer_norm", nn.LayerNorm(6), 2, 3, 6)
    layer("layer_norm_axes", nn.LayerNorm((3, 4), eps=1e-2), 2, 3, 4)
    layer("group_norm", nn.GroupNorm(2, 6), 2, 6, 3, 2)
    layer("instance_norm", nn.InstanceNorm2d(3), 2, 3, 4, 3)
    layer("rms_norm", nn.RMSNorm(6), 2, 3, 6)
    layer("rms_norm_epsilon", nn.RMSNorm(6, eps=1e-2), 2, 3, 6)

    activations = {
        "relu": nn.ReLU(), "leaky_relu": nn.LeakyReLU(0.1), "elu": nn.ELU(0.7), "selu": nn.SELU(), "celu": nn.CELU(0.5),
        "gelu": nn.GELU(), "gelu_tanh": nn.GELU("tanh"), "silu": nn.SiLU(), "mish": nn.Mish(), "softplus": nn.Softplus(),
        "softsign": nn.Softsign(), "hard_swish": nn.Hardswish(), "hard_tanh": nn.Hardtanh(), "tanh": nn.Tanh(),
        "sigmoid": nn.Sigmoid(), "log_sigmoid": nn.LogSigmoid(), "glu": nn.GLU(), "softmax": nn.Softmax(-1),
        "log_softmax": nn.LogSoftmax(-1),
    }
    for name, module in activations.items():
        layer(name, module, x=torch.randn(3, 6) * 3)
    attention()


def attention() -> None:
    """PyTorch joins the three input projections in one matrix; ours are three layers."""
    n, t, s, d, heads = 2, 3, 4, 6, 2
    module = randomised(nn.MultiheadAttention(d, heads, batch_first=True))
    parts = {"query": slice(0, d), "key": slice(d, 2 * d), "value": slice(2 * d, 3 * d)}
    visible = torch.tensor([[True, True, False, True], [True, False, True, True]])

    def ours(weight: Tensor, bias: Tensor, kind: str) -> dict[str, Tensor]:
        split = {f"{kind}/{part}.weight": weight[rows] for part, rows in parts.items()}
        return split | {f"{kind}/{part}.bias": bias[rows] for part, rows in parts.items()}

    def run(case: str, call: Callable[[Tensor, Tensor], Tensor]) -> None:
        module.zero_grad()
        x, memory = torch.randn(n, t, d, requires_grad=True), torch.randn(n, s, d)
        put(case, input=x, memory=memory, visible=visible, **ours(module.in_proj_weight, module.in_proj_bias, "param"))
        out = {"output.weight": module.out_proj.weight, "output.bias": module.out_proj.bias}
        put(case, **{f"param/{name}": p for name, p in out.items()})
        differentiate(case, call(x, memory), x, out)
        put(case, **ours(module.in_proj_weight.grad, module.in_proj_bias.grad, "grad"))

    future = torch.ones(t, t).triu(1).bool()
    run("attention", lambda x, memory: module(x, x, x)[0])
    run("attention_causal", lambda x, memory: module(x, x, x, attn_mask=future)[0])
    run("attention_keys", lambda x, memory: module(x, memory, memory, key_padding_mask=~visible)[0])


def loss(case: str, call: Callable[[Tensor, Tensor], Tensor], prediction: Tensor, target: Tensor, **further: Tensor) -> None:
    prediction = prediction.clone().requires_grad_()
    value = call(prediction, target)
    value.sum().backward()
    put(case, prediction=prediction, target=target, output=value, **{"grad/prediction": prediction.grad}, **further)


def losses() -> None:
    a, b = torch.randn(4, 3), torch.randn(4, 3)
    pointwise = {"mse": F.mse_loss, "mae": F.l1_loss, "huber": F.huber_loss, "smooth_l1": F.smooth_l1_loss}
    for name, function in pointwise.items():
        for reduction in ("mean", "sum", "none"):
            loss(f"{name}_{reduction}", lambda p, t: function(p, t, reduction=reduction), a, b)
    loss("huber_delta", lambda p, t: F.huber_loss(p, t, delta=0.3), a, b)
    loss("smooth_l1_beta", lambda p, t: F.smooth_l1_loss(p, t, beta=0.3), a, b)

    logits, classes, weight = torch.randn(5, 4) * 2, torch.tensor([3, 0, 2, 0, 1]), torch.tensor([0.5, 1.0, 2.0, 0.0])
    plane, labels = torch.randn(2, 4, 2, 3), torch.randint(0, 4, (2, 2, 3))
    probabilities = torch.randn(5, 4).softmax(-1)
    for reduction in ("mean", "sum", "none"):
        cases = {
            "": {},
            "_weight": {"weight": weight},
            "_ignore": {"ignore_index": 0},
            "_smooth": {"label_smoothing": 0.2},
            "_all": {"weight": weight, "ignore_index": 0, "label_smoothing": 0.2},
        }
        for name, options in cases.items():
            call = lambda p, t: F.cross_entropy(p, t, reduction=reduction, **options)
            loss(f"cross_entropy{name}_{reduction}", call, logits, classes, weight=weight)
        for name, options in {"": {}, "_all": {"weight": weight, "label_smoothing": 0.2}}.items():
            call = lambda p, t: F.cross_entropy(p, t, reduction=reduction, **options)
            loss(f"cross_entropy_probabilities{name}_{reduction}", call, logits, probabilities, weight=weight)
        for name, options in {"": {}, "_all": {"weight": weight, "ignore_index": 0}}.items():
            call = lambda p, t: F.nll_loss(p, t, reduction=reduction, **options)
            loss(f"nll{name}_{reduction}", call, logits.log_softmax(-1), classes, weight=weight)
    loss("cross_entropy_plane", F.cross_entropy, plane, labels)
    call = lambda p, t: F.cross_entropy(p, t, weight=weight, label_smoothing=0.2, ignore_index=1)
    loss("cross_entropy_plane_all", call, plane, labels, weight=weight)

    chances, truths, positive = torch.rand(4, 3), torch.rand(4, 3), torch.tensor([0.5, 1.0, 3.0])
    for reduction in ("mean", "sum", "none"):
        loss(f"binary_{reduction}", lambda p, t: F.binary_cross_entropy(p, t, reduction=reduction), chances, truths)
        call = lambda p, t: F.binary_cross_entropy_with_logits(p, t, reduction=reduction)
        loss(f"binary_logits_{reduction}", call, a * 4, truths)
    call = lambda p, t: F.binary_cross_entropy_with_logits(p, t, pos_weight=positive)
    loss("binary_logits_positive", call, a * 4, truths, positive=positive)


def optimizers() -> None:
    optim = torch.optim
    cases: dict[str, Callable[[list[Tensor]], optim.Optimizer]] = {
        "sgd": lambda p: optim.SGD(p, 0.1),
        "sgd_momentum": lambda p: optim.SGD(p, 0.1, momentum=0.9),
        "sgd_dampening": lambda p: optim.SGD(p, 0.1, momentum=0.9, dampening=0.3),
        "sgd_nesterov": lambda p: optim.SGD(p, 0.1, momentum=0.9, nesterov=True, weight_decay=0.05),
        "adam": lambda p: optim.Adam(p, 0.1),
        "adam_all": lambda p: optim.Adam(p, 0.05, betas=(0.8, 0.95), eps=1e-3, weight_decay=0.1),
        "adamw": lambda p: optim.AdamW(p, 0.1),
        "adamw_all": lambda p: optim.AdamW(p, 0.05, betas=(0.8, 0.95), eps=1e-3, weight_decay=0.1),
    }
    start, grads = torch.randn(4), torch.randn(5, 4)
    for name, make in cases.items():
        trained(name, make, start, grads, lambda p: None)
    sgd = cases["sgd_momentum"]
    trained("clip_by_norm", sgd, start, grads, lambda p: nn.utils.clip_grad_norm_(p, 1.5))
    trained("clip_by_value", sgd, start, grads, lambda p: nn.utils.clip_grad_value_(p, 0.5))


def trained(
    case: str,
    make: Callable[[list[Tensor]], torch.optim.Optimizer],
    start: Tensor,
    grads: Tensor,
    clip: Callable[[Tensor], object],
) -> None:
    p = start.clone().requires_grad_()
    optimizer = make([p])
    steps = []
    for grad in grads:
        p.grad = grad.clone()
        clip(p)
        optimizer.step()
        steps.append(p.detach().clone())
    put(case, start=start, grads=grads, steps=torch.stack(steps))


layers()
losses()
optimizers()
path = Path(__file__).with_name("golden.safetensors")
save_file(golden, path, metadata={"format": "pt"})
print(f"{path.name}: {len(golden)} tensors, {path.stat().st_size} bytes, torch {torch.__version__}")
