//! The gradient of every op and every differentiable method, first and second order, against differences.

use std::sync::Arc;

use nn::gradient;
use tensor_core::op::{CustomKernel, CustomOp, HostArray, Scan, ScanKind};
use tensor_core::{
    AttentionOptions, ConvOptions, ConvTransposeOptions, DType, HostData, Kind, Meta, Metas, Op, PoolOptions, Result,
    Tensor, custom, einsum, execute, expr, zip, zip_n,
};

use crate::support::{Case, assert_values, check, indices, spread, tensor};

/// A table of cases: name, input shapes with the interval they are drawn from, function.
macro_rules! cases {
    ($($name:literal: [$($shape:expr => $low:literal .. $high:literal),*], |$x:ident| $f:expr;)*) => {
        vec![$(Case {
            name: $name,
            inputs: {
                let mut seed = 0;
                vec![$({ seed += 1; spread(&$shape, $low, $high, seed) }),*]
            },
            f: Box::new(|$x| $f),
        }),*]
    };
}

fn check_all(cases: Vec<Case>) {
    cases.iter().for_each(check);
}

#[test]
fn elementwise_methods() {
    check_all(cases! {
        "neg": [[5] => -2.0..2.0], |x| x[0].neg();
        "abs": [[5] => -2.0..2.0], |x| x[0].abs();
        "sign": [[5] => -2.0..2.0], |x| x[0].sign()?.mul(&x[0]);
        "exp": [[5] => -2.0..2.0], |x| x[0].exp();
        "exp_m1": [[5] => -2.0..2.0], |x| x[0].exp_m1();
        "ln": [[5] => 0.5..3.0], |x| x[0].ln();
        "ln_1p": [[5] => -0.5..3.0], |x| x[0].ln_1p();
        "sqrt": [[5] => 0.5..3.0], |x| x[0].sqrt();
        "rsqrt": [[5] => 0.5..3.0], |x| x[0].rsqrt();
        "recip": [[5] => 0.5..3.0], |x| x[0].recip();
        "square": [[5] => -2.0..2.0], |x| x[0].square();
        "sin": [[5] => -2.0..2.0], |x| x[0].sin();
        "cos": [[5] => -2.0..2.0], |x| x[0].cos();
        "tan": [[5] => -1.2..1.2], |x| x[0].tan();
        "tanh": [[5] => -2.0..2.0], |x| x[0].tanh();
        "erf": [[5] => -2.0..2.0], |x| x[0].erf();
        "floor": [[5] => -2.0..2.0], |x| x[0].floor()?.mul(&x[0]);
        "ceil": [[5] => -2.0..2.0], |x| x[0].ceil()?.mul(&x[0]);
        "round": [[5] => -2.0..2.0], |x| x[0].round()?.mul(&x[0]);
        "clamp": [[9] => -2.0..2.0], |x| x[0].square()?.clamp(0.5, 2.0);
        "relu": [[9] => -2.0..2.0], |x| x[0].relu()?.square();
        "leaky_relu": [[9] => -2.0..2.0], |x| x[0].leaky_relu(0.1)?.square();
        "elu": [[9] => -2.0..2.0], |x| x[0].elu(1.3);
        "selu": [[9] => -2.0..2.0], |x| x[0].selu();
        "celu": [[9] => -2.0..2.0], |x| x[0].celu(0.7);
        "gelu": [[9] => -2.0..2.0], |x| x[0].gelu();
        "gelu_tanh": [[9] => -2.0..2.0], |x| x[0].gelu_tanh();
        "silu": [[9] => -2.0..2.0], |x| x[0].silu();
        "mish": [[9] => -2.0..2.0], |x| x[0].mish();
        "softplus": [[9] => -2.0..2.0], |x| x[0].softplus();
        "softsign": [[9] => -2.0..2.0], |x| x[0].softsign();
        "sigmoid": [[9] => -2.0..2.0], |x| x[0].sigmoid();
        "log_sigmoid": [[9] => -2.0..2.0], |x| x[0].log_sigmoid();
        "hard_swish": [[9] => -4.0..4.0], |x| x[0].hard_swish();
        "hard_tanh": [[9] => -2.0..2.0], |x| x[0].hard_tanh()?.square();
        "pow number": [[5] => 0.5..2.0], |x| x[0].pow(2.7);
        "pow integer": [[5] => -2.0..2.0], |x| x[0].pow(3);
        "map": [[5] => -2.0..2.0], |x| x[0].map(|x| x * x.sigmoid() + 0.3 * x.sin());
        "cast": [[5] => -2.0..2.0], |x| x[0].cast(DType::F64);
    });
}

#[test]
fn binary_methods_and_broadcasting() {
    check_all(cases! {
        "add": [[2, 3] => -2.0..2.0, [3] => -2.0..2.0], |x| x[0].add(&x[1])?.square();
        "sub": [[2, 1] => -2.0..2.0, [2, 3] => -2.0..2.0], |x| x[0].sub(&x[1])?.square();
        "mul": [[2, 3] => -2.0..2.0, [] => 0.5..2.0], |x| x[0].mul(&x[1]);
        "div": [[2, 1, 3] => -2.0..2.0, [4, 1] => 0.5..2.0], |x| x[0].div(&x[1]);
        "rem": [[2, 3] => 0.5..9.0, [3] => 0.9..1.7], |x| x[0].rem(&x[1])?.mul(&x[0]);
        "pow": [[2, 3] => 0.5..2.0, [3] => -2.0..2.0], |x| x[0].pow(&x[1]);
        "maximum": [[2, 3] => -2.0..2.0, [3] => -2.0..2.0], |x| x[0].maximum(&x[1])?.square();
        "minimum": [[2, 3] => -2.0..2.0, [2, 3] => -2.0..2.0], |x| x[0].minimum(&x[1])?.square();
        "zip": [[2, 3] => -2.0..2.0, [3] => -2.0..2.0], |x| zip(&x[0], &x[1], |a, b| (a - b).sin() * a);
        "zip_n": [[2, 3] => -2.0..2.0, [3] => -2.0..2.0, [2, 1] => -2.0..2.0],
            |x| zip_n([&x[0], &x[1], &x[2]], |[a, b, c]| a * b + b * c * c);
        "select": [[2, 3] => -2.0..2.0, [3] => -2.0..2.0], |x| x[0].gt(&x[1])?.select(&x[0].square()?, &x[1].mul(&x[0])?);
        "masked_fill": [[2, 3] => -2.0..2.0], |x| x[0].square()?.masked_fill(&x[0].gt(0.0)?, 5.0);
        "the same tensor twice": [[3] => -2.0..2.0], |x| x[0].mul(&x[0])?.add(&x[0])?.mul(&x[0]);
        "operators": [[3] => 0.5..2.0, [3] => 0.5..2.0], |x| Ok((&x[0] * 2.0 + 1.0 / &x[1]) / (3.0 - &x[0] * &x[1] / 4.0) - &x[1]);
    });
}

#[test]
fn reductions() {
    check_all(cases! {
        "sum": [[2, 3, 4] => -2.0..2.0], |x| x[0].square()?.sum([0, 2]);
        "sum of all": [[2, 3] => -2.0..2.0], |x| x[0].square()?.sum(..);
        "sum_keepdim": [[2, 3] => -2.0..2.0], |x| x[0].square()?.sum_keepdim(1)?.mul(&x[0]);
        "mean": [[2, 3] => -2.0..2.0], |x| x[0].square()?.mean(0);
        "prod": [[2, 3] => 0.5..2.0], |x| x[0].prod(1);
        "prod of several axes": [[2, 3, 2] => 0.5..1.5], |x| x[0].prod([0, 2]);
        "prod of one": [[2, 1] => 0.5..1.5], |x| x[0].prod(1)?.square();
        "max": [[3, 4] => -2.0..2.0], |x| x[0].max(1)?.square();
        "max of several axes": [[2, 3, 2] => -2.0..2.0], |x| x[0].max([0, 2])?.square();
        "min": [[3, 4] => -2.0..2.0], |x| x[0].min(0)?.square();
        "min of all": [[3, 4] => -2.0..2.0], |x| x[0].min(..)?.square();
        "var": [[3, 4] => -2.0..2.0], |x| x[0].var(1, 1);
        "std": [[3, 4] => -2.0..2.0], |x| x[0].std([0, 1], 0);
        "norm": [[3, 4] => -2.0..2.0], |x| x[0].norm(1);
        "logsumexp": [[3, 4] => -2.0..2.0], |x| x[0].logsumexp(1);
        "cumsum": [[3, 4] => -2.0..2.0], |x| x[0].square()?.cumsum(1);
        "cumprod": [[2, 5] => 0.5..1.5], |x| x[0].cumprod(1);
        "cumprod along the first axis": [[3, 2] => 0.5..1.5], |x| x[0].cumprod(0);
        "cummax": [[2, 6] => -2.0..2.0], |x| x[0].cummax(1)?.square();
        "softmax": [[3, 4] => -2.0..2.0], |x| x[0].softmax(1);
        "softmax along the first axis": [[3, 4] => -2.0..2.0], |x| x[0].softmax(0);
        "log_softmax": [[3, 4] => -2.0..2.0], |x| x[0].log_softmax(-1);
        "normalize": [[3, 4] => -2.0..2.0], |x| x[0].normalize(1, 1e-3);
        "normalize over batch and space": [[2, 3, 2] => -2.0..2.0], |x| x[0].normalize([0, 2], 1e-3);
        "rms_normalize": [[3, 4] => -2.0..2.0], |x| x[0].rms_normalize(1, 1e-3);
        "cross_entropy": [[3, 4] => -2.0..2.0], |x| x[0].cross_entropy(&indices(&[1, 0, 3], [3]));
        "attention": [[2, 3, 4] => -1.0..1.0, [2, 5, 4] => -1.0..1.0, [2, 5, 3] => -1.0..1.0],
            |x| x[0].attention(&x[1], &x[2], &AttentionOptions::default());
        "causal attention": [[1, 3, 2] => -1.0..1.0, [1, 3, 2] => -1.0..1.0, [1, 3, 2] => -1.0..1.0],
            |x| x[0].attention(&x[1], &x[2], &AttentionOptions { causal: true, ..Default::default() });
    });
}

#[test]
fn reverse_scans() {
    let scan = |kind| {
        move |x: &[Tensor]| {
            let op = Op::Scan(Scan { kind, axis: 1, reverse: true });
            Ok(execute(&op, &[&x[0]])?.into_iter().next().unwrap())
        }
    };
    for (name, kind) in [("sum", ScanKind::Sum), ("product", ScanKind::Prod), ("maximum", ScanKind::Max)] {
        let f = scan(kind);
        check(&Case { name, inputs: vec![spread(&[2, 5], 0.5, 1.5, 3)], f: Box::new(move |x| f(x)?.square()) });
    }
}

/// The moments that normalisation gives besides its result are differentiable too.
#[test]
fn moments_of_normalize() {
    for center in [true, false] {
        for output in 0..if center { 3 } else { 2 } {
            let op =
                Op::Normalize(tensor_core::op::Normalize { axes: [1].into_iter().collect(), epsilon: 0.1, center });
            check(&Case {
                name: "normalize's moments",
                inputs: vec![spread(&[2, 4], -2.0, 2.0, 5)],
                f: Box::new(move |x| execute(&op, &[&x[0]])?[output].square()),
            });
        }
    }
}

/// So is the logarithm of the sum that attention's weights are divided by, alone and beside what is attended to.
#[test]
fn lse_of_attention() {
    for (causal, outputs) in [(false, 1..2), (true, 1..2), (true, 0..2)] {
        let op = Op::Attention(tensor_core::op::Attention { scale: 0.5, causal });
        let inputs = [[2, 3, 4], [2, 5, 4], [2, 5, 3]];
        check(&Case {
            name: "attention's lse",
            inputs: inputs.iter().zip(5..).map(|(dims, seed)| spread(dims, -1.0, 1.0, seed)).collect(),
            f: Box::new(move |x| {
                let all = execute(&op, &[&x[0], &x[1], &x[2]])?;
                let parts = all[outputs.clone()].iter().map(|y| y.square()?.sum(..)?.square());
                let parts = parts.collect::<Result<Vec<_>>>()?;
                parts[1..].iter().try_fold(parts[0].clone(), |sum, part| sum.add(part))
            }),
        });
    }
}

#[test]
fn products() {
    check_all(cases! {
        "matmul": [[2, 3] => -1.0..1.0, [3, 4] => -1.0..1.0], |x| x[0].matmul(&x[1])?.square();
        "batched": [[2, 2, 3] => -1.0..1.0, [2, 3, 2] => -1.0..1.0], |x| x[0].matmul(&x[1])?.square();
        "batch times matrix": [[2, 2, 3] => -1.0..1.0, [3, 2] => -1.0..1.0], |x| x[0].matmul(&x[1])?.square();
        "matrix times batch": [[2, 3] => -1.0..1.0, [2, 3, 2] => -1.0..1.0], |x| x[0].matmul(&x[1])?.square();
        "broadcast batches": [[2, 1, 2, 3] => -1.0..1.0, [3, 3, 2] => -1.0..1.0], |x| x[0].matmul(&x[1])?.square();
        "batch of one": [[1, 2, 3] => -1.0..1.0, [2, 3, 2] => -1.0..1.0], |x| x[0].matmul(&x[1])?.square();
        "transposed operands": [[3, 2] => -1.0..1.0, [4, 3] => -1.0..1.0], |x| x[0].t()?.matmul(&x[1].t()?)?.square();
        "vector times matrix": [[3] => -1.0..1.0, [3, 2] => -1.0..1.0], |x| x[0].matmul(&x[1])?.square();
        "matrix times vector": [[2, 3] => -1.0..1.0, [3] => -1.0..1.0], |x| x[0].matmul(&x[1])?.square();
        "dot product": [[3] => -1.0..1.0, [3] => -1.0..1.0], |x| x[0].matmul(&x[1])?.square();
        "bias in the epilogue": [[2, 3] => -1.0..1.0, [3, 4] => -1.0..1.0, [4] => -1.0..1.0],
            |x| x[0].matmul_with(&x[1], &expr::build(|[y, b]| y + b), &[&x[2]])?.square();
        "scaled bias in the epilogue": [[2, 3] => -1.0..1.0, [3, 2] => -1.0..1.0, [2] => -1.0..1.0, [2, 1] => -1.0..1.0],
            |x| x[0].matmul_with(&x[1], &expr::build(|[y, b, c]| 0.5 * y + b * c), &[&x[2], &x[3]])?.square();
        "activation in the epilogue": [[2, 3] => -1.0..1.0, [3, 2] => -1.0..1.0, [2] => -1.0..1.0],
            |x| x[0].matmul_with(&x[1], &expr::build(|[y, b]| (y + b).tanh()), &[&x[2]]);
        "einsum": [[2, 3, 2] => -1.0..1.0, [2, 4, 2] => -1.0..1.0], |x| einsum("bij,jkb->ik", &[&x[0], &x[1]])?.square();
    });
}

#[test]
fn a_weights_gradient_lies_as_the_weight() {
    let (x, w) = (spread(&[5, 2, 3], -1.0, 1.0, 1), spread(&[4, 3], -1.0, 1.0, 2));
    let stored_transposed = gradient(|w| x.matmul(&w.t()?)?.sum(..), &w).unwrap();
    assert!(stored_transposed.is_contiguous());
    let stored_as_used = gradient(|w| x.matmul(w)?.sum(..), &w.t().unwrap()).unwrap();
    let sums = x.sum([0, 1]).unwrap().to_vec::<f64>().unwrap();
    assert_values("transposed", &stored_transposed, &sums.repeat(4));
    assert_values("as used", &stored_as_used.t().unwrap(), &sums.repeat(4));
}

#[test]
fn convolutions() {
    fn plain() -> ConvOptions {
        ConvOptions::default()
    }
    check_all(cases! {
        "conv1d": [[2, 2, 5] => -1.0..1.0, [3, 2, 2] => -1.0..1.0], |x| x[0].conv1d(&x[1], None, &plain())?.square();
        "conv2d": [[1, 2, 4, 3] => -1.0..1.0, [2, 2, 2, 2] => -1.0..1.0, [2] => -1.0..1.0],
            |x| x[0].conv2d(&x[1], Some(&x[2]), &plain())?.square();
        "conv2d with everything": [[1, 4, 5, 5] => -1.0..1.0, [2, 2, 2, 2] => -1.0..1.0],
            |x| x[0].conv2d(&x[1], None, &plain().stride(2).padding(1).dilation(2).groups(2usize))?.square();
        "conv2d whose stride leaves a rest": [[1, 1, 6, 5] => -1.0..1.0, [1, 1, 3, 2] => -1.0..1.0],
            |x| x[0].conv2d(&x[1], None, &plain().stride(2))?.square();
        "conv3d": [[1, 1, 3, 3, 2] => -1.0..1.0, [2, 1, 2, 2, 1] => -1.0..1.0], |x| x[0].conv3d(&x[1], None, &plain())?.square();
        "conv_transpose1d": [[1, 2, 3] => -1.0..1.0, [2, 2, 3] => -1.0..1.0, [2] => -1.0..1.0],
            |x| x[0].conv_transpose1d(&x[1], Some(&x[2]), &ConvTransposeOptions::default().stride(2))?.square();
        "conv_transpose2d": [[1, 2, 2, 3] => -1.0..1.0, [2, 1, 2, 2] => -1.0..1.0],
            |x| x[0].conv_transpose2d(&x[1], None, &ConvTransposeOptions::default().groups(2usize))?.square();
        "activation in the epilogue": [[1, 1, 4] => -1.0..1.0, [2, 1, 2] => -1.0..1.0, [2, 1] => -1.0..1.0],
            |x| x[0].conv_with(&x[1], &plain(), &expr::build(|[y, b]| (y + b).sigmoid()), &[&x[2]]);
    });
}

#[test]
fn pools() {
    let options =
        |kernel: usize, stride: usize, padding: usize| PoolOptions::new(kernel).stride(stride).padding(padding);
    check_all(vec![
        Case {
            name: "max_pool2d",
            inputs: vec![spread(&[1, 2, 5, 4], -2.0, 2.0, 1)],
            f: Box::new(move |x| x[0].max_pool2d(&options(2, 2, 0))?.square()),
        },
        Case {
            name: "max_pool1d with overlap and padding",
            inputs: vec![spread(&[2, 1, 6], -2.0, 2.0, 2)],
            f: Box::new(move |x| x[0].max_pool1d(&options(3, 1, 1))?.square()),
        },
        Case {
            name: "avg_pool2d",
            inputs: vec![spread(&[1, 2, 5, 4], -2.0, 2.0, 3)],
            f: Box::new(move |x| x[0].avg_pool2d(&options(2, 2, 1))?.square()),
        },
        Case {
            name: "avg_pool3d",
            inputs: vec![spread(&[1, 1, 3, 3, 3], -2.0, 2.0, 4)],
            f: Box::new(move |x| x[0].avg_pool3d(&options(2, 1, 0))?.square()),
        },
        Case {
            name: "adaptive_avg_pool1d",
            inputs: vec![spread(&[1, 2, 5], -2.0, 2.0, 5)],
            f: Box::new(move |x| x[0].adaptive_avg_pool1d(3)?.square()),
        },
        Case {
            name: "adaptive_max_pool1d",
            inputs: vec![spread(&[1, 2, 5], -2.0, 2.0, 6)],
            f: Box::new(move |x| x[0].adaptive_max_pool1d(2)?.square()),
        },
    ]);
}

#[test]
fn movements_and_joins() {
    check_all(cases! {
        "reshape": [[2, 6] => -2.0..2.0], |x| x[0].reshape([3, -1])?.square();
        "reshape of a transposed view": [[2, 3] => -2.0..2.0], |x| x[0].t()?.reshape(6)?.square();
        "permute": [[2, 3, 2] => -2.0..2.0], |x| x[0].permute([2, 0, 1])?.square();
        "expand": [[3, 1] => -2.0..2.0], |x| x[0].expand([2, 3, 4])?.square();
        "squeeze and unsqueeze": [[3, 1] => -2.0..2.0], |x| x[0].squeeze(1)?.unsqueeze(0)?.square();
        "flatten": [[2, 3, 2] => -2.0..2.0], |x| x[0].flatten(1..)?.square();
        "narrow": [[5, 2] => -2.0..2.0], |x| x[0].narrow(0, 1, 3)?.square();
        "slice with a step": [[7] => -2.0..2.0], |x| x[0].slice(0, 1..7, 3)?.square();
        "slice backwards": [[8] => -2.0..2.0], |x| x[0].slice(0, 1..7, -2)?.square();
        "flip": [[2, 3] => -2.0..2.0], |x| x[0].flip([0, 1])?.cumsum(1)?.square();
        "chunk": [[5] => -2.0..2.0], |x| { let parts = x[0].chunk(2, 0)?; parts[1].square() };
        "split": [[5] => -2.0..2.0], |x| { let parts = x[0].split(&[2, 3], 0)?; Tensor::cat(&[&parts[1], &parts[0]], 0)?.cumsum(0)?.square() };
        "cat": [[2, 2] => -2.0..2.0, [2, 3] => -2.0..2.0], |x| Tensor::cat(&[&x[0], &x[1], &x[0]], 1)?.square();
        "stack": [[3] => -2.0..2.0, [3] => -2.0..2.0], |x| Tensor::stack(&[&x[0], &x[1]], 1)?.square();
        "pad": [[2, 3] => -2.0..2.0], |x| x[0].pad(&[(1, 0), (0, 2)], 0.5)?.square();
        "repeat": [[2, 3] => -2.0..2.0], |x| x[0].repeat([2, 1, 2])?.square();
        "roll": [[5] => -2.0..2.0], |x| x[0].roll(2, 0)?.cumsum(0)?.square();
        "tril": [[3, 3] => -2.0..2.0], |x| x[0].tril(0)?.square();
        "triu": [[3, 3] => -2.0..2.0], |x| x[0].triu(1)?.square();
        "diag of a vector": [[3] => -2.0..2.0], |x| x[0].diag(1)?.square();
        "diag of a matrix": [[3, 4] => -2.0..2.0], |x| x[0].diag(-1)?.square();
        "contiguous": [[2, 3] => -2.0..2.0], |x| x[0].t()?.contiguous()?.square();
        "copy_to": [[2, 3] => -2.0..2.0], |x| x[0].copy_to(&x[0].device())?.square();
        "to the same device": [[2, 3] => -2.0..2.0], |x| x[0].to(&x[0].device())?.square();
    });
}

#[test]
fn indexing() {
    check_all(cases! {
        "index_select": [[4, 2] => -2.0..2.0], |x| x[0].index_select(0, &indices(&[3, 0, 3], [3]))?.square();
        "index_select by a matrix": [[4, 2] => -2.0..2.0], |x| x[0].index_select(0, &indices(&[3, 0, 3, 1], [2, 2]))?.square();
        "gather": [[3, 3] => -2.0..2.0], |x| x[0].gather(1, &indices(&[0, 0, 2, 1], [2, 2]))?.square();
        "scatter_add": [[3, 3] => -2.0..2.0, [2, 2] => -2.0..2.0],
            |x| x[0].scatter_add(1, &indices(&[0, 0, 2, 1], [2, 2]), &x[1])?.square();
        "index_add": [[3, 2] => -2.0..2.0, [4, 2] => -2.0..2.0],
            |x| x[0].index_add(0, &indices(&[2, 0, 2, 2], [4]), &x[1])?.square();
        "slice_assign": [[4, 2] => -2.0..2.0, [2] => -2.0..2.0], |x| x[0].slice_assign(0, 1..3, &x[1])?.square();
        "sort": [[2, 4] => -2.0..2.0], |x| x[0].sort(1, true)?.0.cumsum(1)?.square();
        "topk": [[2, 4] => -2.0..2.0], |x| x[0].topk(2, 1)?.0.square();
    });
}

/// x·y³ as a user's own op with a Rust kernel.
#[derive(Debug)]
struct CubedBy;

impl CustomOp for CubedBy {
    fn name(&self) -> &str {
        "cubed_by"
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Metas> {
        Ok(Metas::from_iter([inputs[0].clone()]))
    }

    fn kernel(&self, kind: Kind) -> Option<CustomKernel> {
        (kind == Kind::Cpu).then(|| {
            CustomKernel::Rust(Arc::new(|inputs: &[HostArray], _: &[Meta]| {
                let (x, y) = (inputs[0].data.to_f64(), inputs[1].data.to_f64());
                Ok(vec![HostData::F64(x.iter().zip(&y).map(|(x, y)| x * y.powi(3)).collect())])
            }))
        })
    }

    fn derivative(&self, inputs: &[&Tensor], _: &[Tensor], grads: &[Tensor]) -> Result<Vec<Option<Tensor>>> {
        let &[x, y] = inputs else { unreachable!("two inputs") };
        Ok(vec![Some(grads[0].mul(&y.pow(3)?)?), Some(grads[0].mul(x)?.mul(&y.square()?)?.mul(3.0)?)])
    }
}

#[test]
fn custom_ops() {
    check(&Case {
        name: "custom",
        inputs: vec![spread(&[3], -2.0, 2.0, 1), spread(&[3], -2.0, 2.0, 2)],
        f: Box::new(|x| Ok(custom(Arc::new(CubedBy), &[&x[0], &x[1]])?.remove(0))),
    });
}

/// The identity, with a derivative of the wrong shape.
#[derive(Debug)]
struct Wrong;

impl CustomOp for Wrong {
    fn name(&self) -> &str {
        "wrong"
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Metas> {
        Ok(inputs.iter().cloned().collect())
    }

    fn kernel(&self, _: Kind) -> Option<CustomKernel> {
        Some(CustomKernel::Rust(Arc::new(|inputs: &[HostArray], _: &[Meta]| Ok(vec![inputs[0].data.clone()]))))
    }

    fn derivative(&self, _: &[&Tensor], _: &[Tensor], grads: &[Tensor]) -> Result<Vec<Option<Tensor>>> {
        Ok(vec![Some(grads[0].sum(..)?)])
    }
}

#[test]
fn a_custom_derivative_of_the_wrong_shape_is_an_error() {
    let f = |x: &Tensor| custom(Arc::new(Wrong), &[x])?.remove(0).sum(..);
    let error = gradient(f, &spread(&[3], 0.0, 1.0, 1)).unwrap_err();
    assert!(error.is_gradient());
    assert_eq!(
        error.to_string(),
        "wrong: a derivative must have its input's shape and dtype: input [3] f64, derivative [] f64"
    );
}

/// Products are differentiated without division: at zeros too, to second order.
#[test]
fn products_at_zero() {
    for (name, at) in [
        ("one zero", vec![2.0, 0.0, 3.0, 5.0]),
        ("two zeros", vec![2.0, 0.0, 3.0, 0.0]),
        ("all zeros", vec![0.0, 0.0, 0.0, 0.0]),
    ] {
        check(&Case { name, inputs: vec![tensor(&at, [4])], f: Box::new(|x| x[0].prod(0)) });
        check(&Case { name, inputs: vec![tensor(&at, [4])], f: Box::new(|x| x[0].cumprod(0)) });
        check(&Case { name, inputs: vec![tensor(&at, [2, 2])], f: Box::new(|x| x[0].prod(..)) });
    }
    let g = gradient(|x| x.prod(0), &tensor(&[2.0, 0.0, 3.0], [3])).unwrap();
    assert_values("a zero's own derivative", &g, &[0.0, 6.0, 0.0]);
}

/// Of equals the first has the gradient, as argmax finds it; a NaN counts as the extremum.
#[test]
fn extrema_of_equals_and_nan() {
    let nan = f64::NAN;
    let check = |name: &str, f: fn(&Tensor) -> Result<Tensor>, at: &[f64], expected: &[f64]| {
        let n = at.len();
        assert_values(name, &gradient(|x| f(x)?.sum(..), &tensor(at, [n])).unwrap(), expected);
    };
    check("max", |x| x.max(0), &[1.0, 3.0, 3.0], &[0.0, 1.0, 0.0]);
    check("min", |x| x.min(0), &[1.0, 3.0, 1.0], &[1.0, 0.0, 0.0]);
    check("max with NaN", |x| x.max(0), &[1.0, nan, 3.0, nan], &[0.0, 1.0, 0.0, 0.0]);
    check("min with NaN", |x| x.min(0), &[1.0, nan, 3.0], &[0.0, 1.0, 0.0]);
    check("cummax", |x| x.cummax(0), &[1.0, 3.0, 3.0, 2.0, 4.0], &[1.0, 3.0, 0.0, 0.0, 1.0]);
    check("cummax with NaN", |x| x.cummax(0), &[1.0, nan, 3.0, nan], &[1.0, 3.0, 0.0, 0.0]);
    check("maximum", |x| x.maximum(x), &[2.0], &[1.0]);
    check("sort", |x| x.sort(0, false)?.0.mul(&tensor(&[1.0, 2.0, 3.0], [3])), &[5.0, 5.0, 1.0], &[2.0, 3.0, 1.0]);
    check("max pool", |x| x.reshape([1, 1, -1])?.max_pool1d(&PoolOptions::new(3)), &[7.0, 7.0, 7.0], &[1.0, 0.0, 0.0]);
    check("relu", |x| x.relu(), &[-1.0, 0.0, 1.0], &[0.0, 0.0, 1.0]);
    check("abs", |x| x.abs(), &[-1.0, 0.0, 1.0], &[-1.0, 0.0, 1.0]);
}

/// A branch that is not taken adds nothing, however infinite.
#[test]
fn branches_not_taken() {
    let safe_sqrt = |x: &Tensor| x.gt(0.0)?.select(&x.sqrt()?, 0.0)?.sum(..);
    let as_formula = |x: &Tensor| x.map(|x| x.gt(0).select(x.sqrt(), 0))?.sum(..);
    let at = tensor(&[-1.0, 0.0, 4.0], [3]);
    assert_values("formula", &gradient(as_formula, &at).unwrap(), &[0.0, 0.0, 0.25]);
    // Written as separate ops the square root's own slope is NaN or infinite before the mask comes: known, as everywhere.
    assert!(gradient(safe_sqrt, &at).unwrap().to_vec::<f64>().unwrap()[0].is_nan());
}

#[test]
fn empty_tensors() {
    let check = |name: &str, f: fn(&Tensor) -> Result<Tensor>, shape: [usize; 2]| {
        let g = gradient(|x| f(x)?.sum(..), &spread(&shape, 0.0, 1.0, 1)).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(g.shape(), &shape, "{name}");
    };
    check("sum", |x| x.sum(1), [3, 0]);
    check("prod", |x| x.prod(1), [3, 0]);
    check("mean", |x| x.mean(0), [3, 0]);
    check("max", |x| x.max(1), [0, 3]);
    check("cumsum", |x| x.cumsum(0), [0, 3]);
    check("cumprod", |x| x.cumprod(0), [0, 3]);
    check("cummax", |x| x.cummax(1), [3, 0]);
    check("softmax", |x| x.softmax(1), [0, 3]);
    check("matmul", |x| x.matmul(&x.t()?), [3, 0]);
    check("empty slice", |x| x.narrow(0, 1, 0), [3, 2]);
    check("gather", |x| x.index_select(0, &indices(&[], [0])), [3, 2]);
    check("sort", |x| Ok(x.sort(1, false)?.0), [3, 0]);
    check("cat", |x| Tensor::cat(&[x, x], 0), [0, 3]);
}
