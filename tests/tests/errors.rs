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
fn indices_ranges_and_layers() {
    fn ints(values: &[i64], d: &Device) -> Tensor {
        Tensor::from_slice(values, values.len(), d).expect("a small tensor can be made")
    }
    check(&[
        ("gather: index is out of range: index 3 at [1, 0], axis 0 has 3; indices count from 0", |d| {
            drop_value(ones(&[3, 2], d).index_select(0, &ints(&[0, 3], d)))
        }),
        ("gather: index is out of range: index -1 at [0], axis 0 has 3; indices count from 0", |d| {
            drop_value(ones(&[3], d).gather(0, &ints(&[-1], d)))
        }),
        (
            "gather: index must have the input's rank and be no larger along the other axes: input [3, 2], index [4, 1], axis 1",
            |d| drop_value(ones(&[3, 2], d).gather(1, &ints(&[0, 1, 0, 1], d).reshape([4, 1])?)),
        ),
        ("scatter_add: index is out of range: index 7 at [0], axis 0 has 3; indices count from 0", |d| {
            drop_value(ones(&[3], d).scatter_add(0, &ints(&[7], d), &ones(&[1], d)))
        }),
        ("scatter_add: source must have the index's shape: source [2], index [1]", |d| {
            drop_value(ones(&[3], d).scatter_add(0, &ints(&[1], d), &ones(&[2], d)))
        }),
        ("index_add: the index must be a vector: index [1, 1]", |d| {
            drop_value(ones(&[3], d).index_add(0, &ints(&[1], d).reshape([1, 1])?, &ones(&[1], d)))
        }),
        ("cross_entropy: target is out of range: target 3, classes 3; classes count from 0", |d| {
            drop_value(ones(&[2, 3], d).cross_entropy(&ints(&[0, 3], d)))
        }),
        ("cross_entropy: target is out of range: target -100, classes 3; classes count from 0", |d| {
            drop_value(nn::loss::cross_entropy(&ones(&[2, 3], d), &ints(&[0, -100], d)))
        }),
        ("gather: index is out of range: index 5 at [0, 0], axis 0 has 5; indices count from 0", |d| {
            drop_value(nn::Embedding::new(5, 2, d)?.forward(&ints(&[5], d)))
        }),
        ("narrow: the range does not lie within the axis: start 2, len 2, size 3", |d| {
            drop_value(ones(&[3], d).narrow(0, 2, 2))
        }),
        ("slice: the range does not lie within the axis: range 1..5, size 3", |d| {
            drop_value(ones(&[3], d).slice(0, 1..5, 1))
        }),
        ("slice: the step must not be 0: step 0", |d| drop_value(ones(&[3], d).slice(0, .., 0))),
        ("topk: k must not exceed the axis: k 4, size 3 on axis 0", |d| drop_value(ones(&[3], d).topk(4, 0))),
        ("expand: sizes must be equal or 1, from the last axis on: input [3], shape [2]", |d| {
            drop_value(ones(&[3], d).slice_assign(0, 0..2, &ones(&[3], d)))
        }),
        ("item: needs exactly one element: input [3]", |d| drop_value(ones(&[3], d).item::<f32>())),
        ("to_vec: the type asked for is not the tensor's: asked f64, input f32; cast it with .cast(..)", |d| {
            drop_value(ones(&[3], d).to_vec::<f64>())
        }),
        ("from_slice: the shape must hold all values: shape [3] holds 3, values 2", |d| {
            drop_value(Tensor::from_slice(&[1.0f32, 2.0], [3], d))
        }),
        ("reshape: the elements do not divide into the sizes: input [6] with 6 elements, shape [4, -1]", |d| {
            drop_value(ones(&[6], d).reshape([4, -1]))
        }),
        ("reshape: the number of elements differs: input [6] with 6 elements, shape [2, 4]", |d| {
            drop_value(ones(&[6], d).reshape([2, 4]))
        }),
        ("expand: sizes must be equal or 1, from the last axis on: input [2, 3], shape [3, 3]", |d| {
            drop_value(ones(&[2, 3], d).expand([3, 3]))
        }),
        ("squeeze: the axis must have size 1: input [2, 3], axis 0", |d| drop_value(ones(&[2, 3], d).squeeze(0))),
        ("permute: axis is named twice: axis 0, rank 2", |d| drop_value(ones(&[2, 3], d).permute([0, 0]))),
        ("permute: every axis must be named once: axes [0], rank 2", |d| drop_value(ones(&[2, 3], d).permute([0]))),
        ("einsum: sizes of j differ: notation \"ij,jk->ik\", input 0 has 3, input 1 has 4", |d| {
            drop_value(consort::einsum("ij,jk->ik", &[&ones(&[2, 3], d), &ones(&[4, 5], d)]))
        }),
        ("einsum: an output letter must occur in an input, and once in the output: notation \"ij->ijk\"", |d| {
            drop_value(consort::einsum("ij->ijk", &[&ones(&[2, 3], d)]))
        }),
        ("max_pool: the kernel is larger than the padded input: kernel spans 3, input 2 on spatial axis 0", |d| {
            drop_value(ones(&[1, 1, 2, 2], d).max_pool2d(&3.into()))
        }),
        ("max_pool2d: input must be [N, C, spatial..] with 2 spatial axes: input [2, 2]", |d| {
            drop_value(ones(&[2, 2], d).max_pool2d(&2.into()))
        }),
        ("conv1d: bias must have one value per output channel: bias [3], channels 1", |d| {
            drop_value(ones(&[1, 1, 4], d).conv1d(&ones(&[1, 1, 2], d), Some(&ones(&[3], d)), &ConvOptions::default()))
        }),
        ("conv1d: stride, dilation and kernel must be 1 or more: stride [0], dilation [1], kernel [2]", |d| {
            drop_value(ones(&[1, 1, 4], d).conv1d(&ones(&[1, 1, 2], d), None, &ConvOptions::default().stride(0)))
        }),
        (
            "attention: query must be [.., T, D], key [.., S, D], value [.., S, E] with equal leading axes: query [2, 3], key [4, 5], value [4, 3]",
            |d| drop_value(ones(&[2, 3], d).attention(&ones(&[4, 5], d), &ones(&[4, 3], d), &Default::default())),
        ),
        (
            "mse: prediction and target must have the same shape: prediction [4, 1], target [4]; reshape one to the other's shape",
            |d| drop_value(nn::loss::mse(&ones(&[4, 1], d), &ones(&[4], d))),
        ),
        ("mse: the mean needs at least one element: prediction [0, 1]; skip empty batches", |d| {
            drop_value(nn::loss::mse(&ones(&[0, 1], d), &ones(&[0, 1], d)))
        }),
        ("gradient: the loss must be a single number: loss [2]; reduce it with .mean(..) or .sum(..)", |d| {
            drop_value(nn::gradient(|x| x.square(), &ones(&[2], d)))
        }),
        ("gradient: loss must be of a float dtype: loss i64; cast it with .cast(..)", |d| {
            drop_value(nn::gradient(|x| x.sum(..)?.cast(DType::I64), &ones(&[2], d)))
        }),
        (
            "with_gradient: no parameter reaches the loss: did the closure use the outer model, or stop the gradient? use the model that it receives",
            |d| {
                let model = nn::Linear::new(2, 1, d)?;
                drop_value(with_gradient(&model, |_| model.forward(&ones(&[3, 2], d))?.mean(..)))
            },
        ),
        ("multi_head_attention: heads must divide the width: width 6, heads 4", |d| {
            drop_value(nn::MultiHeadAttention::new(6, 4, d))
        }),
        ("batch_norm2d(3): input must be [N, C, H, W] with C = 3: input [2, 4, 5, 5]", |d| {
            drop_value(nn::BatchNorm2d::new(3, d)?.forward(&ones(&[2, 4, 5, 5], d)))
        }),
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
