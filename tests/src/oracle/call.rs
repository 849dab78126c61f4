//! From an op's name and arguments to the method of that name.

use consort::nn::loss;
use consort::{DType, Device, Result, Tensor, einsum, expr, zip, zip_n};
use tensor_core::{AttentionOptions, Number, Operand};

use super::{Args, Axes};

/// Runs the method called `op`.
///
/// # Errors
/// What the op reports.
///
/// # Panics
/// If no op has that name.
pub fn call(op: &str, a: &Args, x: &[&Tensor], place: (&Device, DType)) -> Result<Vec<Tensor>> {
    let mut outputs = several(op, a, x)
        .or_else(|| {
            let one = unary(op, a, x)
                .or_else(|| cast(op, a, x, place.1))
                .or_else(|| binary(op, a, x))
                .or_else(|| reduction(op, a, x))
                .or_else(|| movement(op, a, x))
                .or_else(|| index(op, a, x))
                .or_else(|| window(op, a, x))
                .or_else(|| product(op, a, x))
                .or_else(|| creation(op, a, place))
                .or_else(|| of_loss(op, a, x))?;
            Some(one.map(|y| vec![y]))
        })
        .unwrap_or_else(|| panic!("{op} is not an op that the oracle can call"))?;
    if a.has("every") {
        // Only every so many elements are in the table.
        for y in &mut outputs {
            *y = match a.axes("every") {
                Axes::One(step) => y.slice(-1, .., step as isize)?,
                Axes::List(steps) => {
                    steps.iter().enumerate().try_fold(y.clone(), |y, (axis, &step)| y.slice(axis, .., step as isize))?
                }
                Axes::All => y.clone(),
            };
        }
    }
    Ok(outputs)
}

/// The op of that name among these methods of the first input.
macro_rules! methods {
    ($op:expr, $x:expr; $($name:ident $(($($arg:expr),*))?),* $(,)?) => {
        match $op {
            $(stringify!($name) => Some($x[0].$name($($($arg),*)?)),)*
            _ => None,
        }
    };
}

fn several(op: &str, a: &Args, x: &[&Tensor]) -> Option<Result<Vec<Tensor>>> {
    let pair = |(y, z): (Tensor, Tensor)| vec![y, z];
    Some(match op {
        "sort" => x[0].sort(a.int("axis"), a.is("descending")).map(pair),
        "topk" => x[0].topk(a.size("k"), a.int("axis")).map(pair),
        "max_pool_with_positions" => x[0].max_pool_with_positions(&a.pool()).map(pair),
        "chunk" => x[0].chunk(a.size("n"), a.int("axis")),
        "split" => x[0].split(&a.sizes("sizes"), a.int("axis")),
        _ => return None,
    })
}

fn unary(op: &str, a: &Args, x: &[&Tensor]) -> Option<Result<Tensor>> {
    let n = |i: usize| a.numbers("numbers")[i];
    methods!(op, x; neg, abs, sign, exp, exp_m1, ln, ln_1p, sqrt, rsqrt, recip, square, sin, cos, tan, tanh, erf, floor, ceil,
        round, is_nan, is_finite, logical_not, relu, leaky_relu(n(0)), elu(n(0)), selu, celu(n(0)), gelu, gelu_tanh, silu,
        mish, softplus, sigmoid, log_sigmoid, hard_swish, hard_tanh, softsign, clamp(a.number("low"), a.number("high")))
    .or_else(|| {
        let is_swish = || a.text("formula") == "swish";
        (op == "map").then(|| x[0].map(|v| if is_swish() { v * v.sigmoid() } else { (v * v * -0.7).exp() }))
    })
}

fn cast(op: &str, a: &Args, x: &[&Tensor], dtype: DType) -> Option<Result<Tensor>> {
    if op != "cast" {
        return None;
    }
    Some(match () {
        () if a.has("through") => x[0].cast(super::args::dtype(a.text("through"))).and_then(|y| y.cast(dtype)),
        () if a.text("to") == "run" => x[0].cast(dtype),
        () => x[0].cast(super::args::dtype(a.text("to"))),
    })
}

fn binary(op: &str, a: &Args, x: &[&Tensor]) -> Option<Result<Tensor>> {
    let number: Option<Number> = a.has("number").then(|| a.number("number"));
    let rhs = || number.map_or_else(|| Operand::from(x[1]), Operand::from);
    methods!(op, x; add(rhs()), sub(rhs()), mul(rhs()), div(rhs()), rem(rhs()), pow(rhs()), maximum(rhs()), minimum(rhs()),
        eq(rhs()), ne(rhs()), lt(rhs()), le(rhs()), gt(rhs()), ge(rhs()), logical_and(rhs()), logical_or(rhs()))
    .or_else(|| {
        Some(match op {
            "select" if a.has("left") => x[0].select(a.number("left"), x[1]),
            "select" if a.has("right") => x[0].select(x[1], a.number("right")),
            "select" => x[0].select(x[1], x[2]),
            "masked_fill" => x[0].masked_fill(x[1], a.number("number")),
            "zip" => zip(x[0], x[1], |a, b| (a - b).abs().max(0.5)),
            "zip_n" => zip_n([x[0], x[1], x[2]], |[a, b, c]| a * b + c),
            _ => return None,
        })
    })
}

fn reduction(op: &str, a: &Args, x: &[&Tensor]) -> Option<Result<Tensor>> {
    let axes = || a.axes("axes");
    let axis = || a.int("axis");
    let spread = || a.size("correction");
    methods!(op, x; sum(axes()), sum_keepdim(axes()), mean(axes()), mean_keepdim(axes()), prod(axes()), prod_keepdim(axes()),
        max(axes()), max_keepdim(axes()), min(axes()), min_keepdim(axes()), any(axes()), any_keepdim(axes()), all(axes()),
        all_keepdim(axes()), var(axes(), spread()), var_keepdim(axes(), spread()), std(axes(), spread()),
        std_keepdim(axes(), spread()), norm(axes()), norm_keepdim(axes()), logsumexp(axes()), logsumexp_keepdim(axes()),
        argmax(axis()), argmax_keepdim(axis()), argmin(axis()), argmin_keepdim(axis()), cumsum(axis()), cumprod(axis()),
        cummax(axis()), argsort(axis(), a.is("descending")), softmax(axis()), log_softmax(axis()), cross_entropy(x[1]),
        normalize(axes(), a.float("epsilon")), rms_normalize(axes(), a.float("epsilon")))
}

fn movement(op: &str, a: &Args, x: &[&Tensor]) -> Option<Result<Tensor>> {
    let axis = || a.int("axis");
    methods!(op, x; reshape(a.ints("shape")), permute(a.ints("axes")), transpose(a.int("a"), a.int("b")), t, contiguous,
        expand(a.ints("shape")), expand_as(x[1]), squeeze(a.axes("axes")), unsqueeze(axis()), flatten(a.int("from")..),
        narrow(axis(), a.size("start"), a.size("len")), flip(a.axes("axes")), repeat(a.ints("counts")),
        roll(a.int("shift") as isize, axis()), pad(&a.pairs("pairs"), a.number("number")), tril(a.int("k")), triu(a.int("k")),
        diag(a.int("k")))
    .or_else(|| {
        Some(match op {
            "slice" if a.has("stop") => x[0].slice(axis(), a.int("start")..a.int("stop"), a.int("step") as isize),
            "slice" => x[0].slice(axis(), a.int("start").., a.int("step") as isize),
            "cat" => Tensor::cat(x, axis()),
            "stack" => Tensor::stack(x, axis()),
            _ => return None,
        })
    })
}

fn index(op: &str, a: &Args, x: &[&Tensor]) -> Option<Result<Tensor>> {
    let axis = || a.int("axis");
    methods!(op, x; index_select(axis(), x[1]), gather(axis(), x[1]), scatter_add(axis(), x[1], x[2]),
        index_add(axis(), x[1], x[2]), one_hot(a.size("n")), nonzero)
    .or_else(|| {
        let range = || a.int("start")..a.int("stop");
        Some(match op {
            "slice_assign" if a.has("number") => x[0].slice_assign(axis(), range(), a.number("number")),
            "slice_assign" => x[0].slice_assign(axis(), range(), x[1]),
            _ => return None,
        })
    })
}

fn window(op: &str, a: &Args, x: &[&Tensor]) -> Option<Result<Tensor>> {
    let bias = x.get(2).copied();
    methods!(op, x; conv1d(x[1], bias, &a.conv()), conv2d(x[1], bias, &a.conv()), conv3d(x[1], bias, &a.conv()),
        conv_transpose1d(x[1], bias, &a.conv_transpose()), conv_transpose2d(x[1], bias, &a.conv_transpose()),
        conv_transpose3d(x[1], bias, &a.conv_transpose()), max_pool1d(&a.pool()), max_pool2d(&a.pool()), max_pool3d(&a.pool()),
        avg_pool1d(&a.pool()), avg_pool2d(&a.pool()), avg_pool3d(&a.pool()), adaptive_max_pool1d(a.sizes("sizes")),
        adaptive_max_pool2d(a.sizes("sizes")), adaptive_max_pool3d(a.sizes("sizes")), adaptive_avg_pool1d(a.sizes("sizes")),
        adaptive_avg_pool2d(a.sizes("sizes")), adaptive_avg_pool3d(a.sizes("sizes")))
    .or_else(|| {
        let channels = || x[2].unsqueeze(-1)?.unsqueeze(-1);
        let epilogue = expr::build(|[y, b]| (y + b).relu());
        (op == "conv_with").then(|| x[0].conv_with(x[1], &a.conv(), &epilogue, &[&channels()?]))
    })
}

fn product(op: &str, a: &Args, x: &[&Tensor]) -> Option<Result<Tensor>> {
    Some(match op {
        "matmul" => x[0].matmul(x[1]),
        "matmul_with" => x[0].matmul_with(x[1], &expr::build(|[y, b]| (y + b).relu()), &[x[2]]),
        "einsum" => einsum(a.text("notation"), x),
        "attention" => {
            let scale = a.has("scale").then(|| a.float("scale"));
            let mask = x.get(3).copied();
            x[0].attention(x[1], x[2], &AttentionOptions { scale, causal: a.is("causal"), mask })
        }
        _ => return None,
    })
}

fn creation(op: &str, a: &Args, place: (&Device, DType)) -> Option<Result<Tensor>> {
    Some(match op {
        "zeros" => Tensor::zeros(a.sizes("shape"), place),
        "ones" => Tensor::ones(a.sizes("shape"), place),
        "full" => Tensor::full(a.sizes("shape"), a.number("number"), place),
        "eye" => Tensor::eye(a.size("n"), place),
        "arange" => Tensor::arange(a.number("start"), a.number("stop"), a.number("step"), place),
        "linspace" => Tensor::linspace(a.float("start"), a.float("stop"), a.size("n"), place),
        _ => return None,
    })
}

fn of_loss(op: &str, a: &Args, x: &[&Tensor]) -> Option<Result<Tensor>> {
    let reduction = match if a.has("reduction") { a.text("reduction") } else { "mean" } {
        "sum" => loss::Reduction::Sum,
        "none" => loss::Reduction::None,
        _ => loss::Reduction::Mean,
    };
    let [prediction, target] = x else { return None };
    let weight = || {
        let weights = a.has("weights").then(|| a.numbers("weights").iter().map(|v| v.to_f64()).collect::<Vec<_>>());
        weights.map(|w| Tensor::from_vec(w, 4, (&prediction.device(), prediction.dtype()))).transpose()
    };
    let ignore_index = a.has("ignore").then(|| a.int("ignore"));
    Some(match op {
        "loss::mse" => loss::Mse { reduction }.loss(prediction, target),
        "loss::mae" => loss::Mae { reduction }.loss(prediction, target),
        "loss::huber" => loss::Huber { delta: a.float("number"), reduction }.loss(prediction, target),
        "loss::smooth_l1" => loss::SmoothL1 { beta: a.float("number"), reduction }.loss(prediction, target),
        "loss::binary_cross_entropy" => loss::BinaryCrossEntropy { reduction }.loss(prediction, target),
        "loss::binary_cross_entropy_with_logits" => {
            loss::BinaryCrossEntropyWithLogits { reduction, positive_weight: None }.loss(prediction, target)
        }
        "loss::nll" => loss::Nll { reduction, weight: None, ignore_index }.loss(prediction, target),
        "loss::cross_entropy" => weight().and_then(|weight| {
            let label_smoothing = if a.has("smoothing") { a.float("smoothing") } else { 0.0 };
            loss::CrossEntropy { reduction, weight: weight.as_ref(), ignore_index, label_smoothing }
                .loss(prediction, target)
        }),
        _ => return None,
    })
}
