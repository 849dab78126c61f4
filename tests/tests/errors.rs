//! The texts that bad input gets: which op, which rule, which operand with which value, and what to do.

use consort::prelude::*;
use consort::{device, nn, zip};

type Attempt = fn(&Device) -> Result<()>;

fn drop_value<T>(result: Result<T>) -> Result<()> {
    result.map(drop)
}

fn check(cases: &[(&str, Attempt)]) {
    let device = device::cpu();
    let mut wrong = Vec::new();
    for (want, attempt) in cases {
        let got = attempt(&device).map_or_else(|e| e.to_string(), |()| "no error".to_string());
        if got != *want {
            wrong.push(format!("want: {want}\n got: {got}"));
        }
    }
    assert!(wrong.is_empty(), "{} of {} texts differ:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

fn ones(shape: &[usize], device: &Device) -> Tensor {
    Tensor::ones(shape, device).expect("a small tensor can be made")
}

#[test]
fn shapes() {
    check(&[
        ("matmul: inner dimensions differ: lhs [2, 3] has K = 3, rhs [4, 5] has K = 4", |d| {
            drop_value(ones(&[2, 3], d).matmul(&ones(&[4, 5], d)))
        }),
        ("matmul: batch axes do not broadcast: lhs [2, 1, 3], rhs [3, 3, 1]", |d| {
            drop_value(ones(&[2, 1, 3], d).matmul(&ones(&[3, 3, 1], d)))
        }),
        ("add: shapes do not broadcast (sizes, from the last axis on, must be equal or 1): lhs [2, 3], rhs [2]", |d| {
            drop_value(ones(&[2, 3], d).add(&ones(&[2], d)))
        }),
        ("zeros: a size is negative: shape [2, -3]", |d| drop_value(Tensor::zeros([2, -3], d))),
        ("zeros: the number of elements overflows: shape [4294967296, 4294967296]", |d| {
            drop_value(Tensor::zeros([1usize << 32, 1 << 32], d))
        }),
        ("max: has no value over no elements: input [0, 3], axes [0]", |d| drop_value(ones(&[0, 3], d).max(0))),
        ("cat: sizes differ off axis 0: tensor 0 [2, 3], tensor 1 [2, 4]", |d| {
            drop_value(Tensor::cat(&[&ones(&[2, 3], d), &ones(&[2, 4], d)], 0))
        }),
        ("cat: needs at least one tensor: got none", |_| drop_value(Tensor::cat::<Tensor>(&[], 0))),
        (
            "conv2d: channels do not fit: input [1, 3, 8, 8] has C = 3, weight [4, 2, 3, 3] takes 2 × groups 1, and C_out must divide by groups",
            |d| drop_value(ones(&[1, 3, 8, 8], d).conv2d(&ones(&[4, 2, 3, 3], d), None, &ConvOptions::default())),
        ),
        ("linear(784 => 10): last axis must be 784: input [32, 28, 28]; flatten the image first", |d| {
            drop_value(nn::Linear::new(784, 10, d)?.forward(&ones(&[32, 28, 28], d)))
        }),
    ]);
}

#[test]
fn axes_and_indices() {
    check(&[
        ("sum: axis is out of range: axis 2, rank 2", |d| drop_value(ones(&[2, 3], d).sum(2))),
        ("sum: axis is out of range: axis -3, rank 2", |d| drop_value(ones(&[2, 3], d).sum(-3))),
        ("mean: axis is named twice: axis 1, rank 2", |d| drop_value(ones(&[2, 3], d).mean([1, -1]))),
        ("softmax: axis is out of range: axis 0, rank 0", |d| drop_value(ones(&[], d).softmax(0))),
    ]);
}

#[test]
fn dtypes() {
    check(&[
        ("add: operands have different dtypes: lhs f32, rhs f64; cast one with .cast(..)", |d| {
            drop_value(ones(&[2], d).add(&Tensor::ones([2], (d, DType::F64))?))
        }),
        ("add: a float number needs a float tensor: tensor i64; cast it with .cast(..)", |d| {
            drop_value(Tensor::ones([2], (d, DType::I64))?.add(0.5))
        }),
        ("exp: needs a float dtype: input i64; cast it with .cast(..)", |d| {
            drop_value(Tensor::ones([2], (d, DType::I64))?.exp())
        }),
        ("softmax: needs a float dtype: input i64; cast it with .cast(..)", |d| {
            drop_value(Tensor::ones([2], (d, DType::I64))?.softmax(0))
        }),
        ("matmul: operands have different dtypes: lhs f32, rhs f64; cast one with .cast(..)", |d| {
            drop_value(ones(&[2, 2], d).matmul(&Tensor::ones([2, 2], (d, DType::F64))?))
        }),
        ("gather: indices must be i64 or i32: index f32; cast them with .cast(DType::I64)", |d| {
            drop_value(ones(&[2], d).gather(0, &ones(&[2], d)))
        }),
        ("full: a float number needs a float dtype: number 0.5, dtype i32", |d| {
            drop_value(Tensor::full([2], 0.5, (d, DType::I32)))
        }),
        ("zip: operands have different dtypes: lhs f32, rhs i64; cast one with .cast(..)", |d| {
            drop_value(zip(&ones(&[2], d), &Tensor::ones([2], (d, DType::I64))?, |a, b| a + b))
        }),
    ]);
}

#[test]
fn values() {
    check(&[
        ("rand: low must not exceed high: low 1.0, high 0.0", |d| drop_value(Tensor::uniform(1.0, 0.0, [2], d))),
        ("randint: low must be less than high: low 3, high 3", |d| drop_value(Tensor::randint(3, 3, [2], d))),
        ("bernoulli: the probability must be in [0, 1]: p 1.5", |d| drop_value(Tensor::bernoulli(1.5, [2], d))),
    ]);
}

#[test]
fn operators_panic_with_the_text_of_the_error() {
    let device = device::cpu();
    let (a, b) = (ones(&[2, 3], &device), ones(&[2], &device));
    let error = a.add(&b).expect_err("shapes do not broadcast").to_string();
    let panic = std::panic::catch_unwind(|| &a + &b).expect_err("the operator panics");
    let text = panic.downcast_ref::<String>().expect("a text");
    assert!(text.contains(&error), "{text}");
}
