//! The texts of what the surface itself rejects, none of it before a backend.

use super::Bench;
use crate::{ConvOptions, ConvTransposeOptions, DType, PoolOptions, Result, Tensor, einsum};

fn text<T>(result: Result<T>) -> String {
    result.err().map_or_else(|| "accepted".into(), |e| e.to_string())
}

#[test]
fn bad_input_is_named_before_a_backend_is_called() {
    let bench = Bench::new("silent");
    let device = &bench.device;
    let x = bench.f32(&[2, 3, 4]);
    let v = bench.f32(&[5]);
    let m = bench.f32(&[3, 4]);
    let i = bench.tensor(&[3], DType::I64);
    let image = bench.f32(&[1, 3, 8, 8]);
    let kernel = bench.f32(&[6, 3, 3, 3]);
    let plain = ConvOptions::default();
    let up = ConvTransposeOptions::default;
    let cases: Vec<(String, &str)> = vec![
        (text(Tensor::zeros([2, -1], device)), "zeros: a size is negative: shape [2, -1]"),
        (
            text(Tensor::ones([1usize << 40, 1 << 40], device)),
            "ones: the number of elements overflows: shape [1099511627776, 1099511627776]",
        ),
        (
            text(Tensor::from_vec(vec![1.0f32, 2.0], [3], device)),
            "from_vec: the shape must hold all values: shape [3] holds 3, values 2",
        ),
        (
            text(Tensor::arange(0, 10, 0, device)),
            "arange: the step must lead from start to stop: start 0, stop 10, step 0",
        ),
        (
            text(Tensor::arange(0.0, 10.0, -1.0, device)),
            "arange: the step must lead from start to stop: start 0.0, stop 10.0, step -1.0",
        ),
        (
            text(x.add(&v)),
            "add: shapes do not broadcast (sizes, from the last axis on, must be equal or 1): lhs [2, 3, 4], rhs [5]",
        ),
        (
            text(x.add(&i)),
            "add: shapes do not broadcast (sizes, from the last axis on, must be equal or 1): lhs [2, 3, 4], rhs [3]",
        ),
        (text(i.mul(0.5)), "mul: a float number needs a float tensor: tensor i64; cast it with .cast(..)"),
        (text(i.exp()), "exp: needs a float dtype: input i64; cast it with .cast(..)"),
        (text(x.logical_not()), "logical_not: not needs a bool dtype: input f32; cast it with .cast(..)"),
        (text(x.clamp(2.0, 1.0)), "clamp: low must not exceed high: low 2.0, high 1.0"),
        (text(x.select(1, 0)), "select: the condition must be bool: condition f32"),
        (text(i.mean(..)), "mean: needs a float dtype: input i64; cast it with .cast(..)"),
        (text(i.var(.., 1)), "var: needs a float dtype: input i64; cast it with .cast(..)"),
        (text(x.sum(3)), "sum: axis is out of range: axis 3, rank 3"),
        (text(x.sum([0, -3])), "sum: axis is named twice: axis 0, rank 3"),
        (text(x.sum(2..=3)), "sum: axis is out of range: axis 3, rank 3"),
        (text(x.argmax(-4)), "argmax: axis is out of range: axis -4, rank 3"),
        (text(x.cumsum(9)), "cumsum: axis is out of range: axis 9, rank 3"),
        (text(x.topk(5, -1)), "topk: k must not exceed the axis: k 5, size 4 on axis 2"),
        (text(v.matmul(&m)), "matmul: inner dimensions differ: lhs [5] has K = 5, rhs [3, 4] has K = 3"),
        (
            text(bench.f32(&[]).matmul(&m)),
            "matmul: operands need one axis or more: lhs [], rhs [3, 4]; use mul for a scalar",
        ),
        (
            text(x.reshape([5, -1])),
            "reshape: the elements do not divide into the sizes: input [2, 3, 4] with 24 elements, shape [5, -1]",
        ),
        (
            text(x.reshape([-1, -1])),
            "reshape: sizes must not be negative, but for one -1: input [2, 3, 4] with 24 elements, shape [-1, -1]",
        ),
        (text(x.reshape([7])), "reshape: the number of elements differs: input [2, 3, 4] with 24 elements, shape [7]"),
        (text(x.permute([0, 1])), "permute: every axis must be named once: axes [0, 1], rank 3"),
        (text(x.t()), "t: needs a matrix: input [2, 3, 4]; use transpose(a, b)"),
        (
            text(x.expand([2, 6, 4])),
            "expand: sizes must be equal or 1, from the last axis on: input [2, 3, 4], shape [2, 6, 4]",
        ),
        (text(x.squeeze(1)), "squeeze: the axis must have size 1: input [2, 3, 4], axis 1"),
        (text(x.unsqueeze(5)), "unsqueeze: axis is out of range: axis 5, rank 4"),
        (text(x.flatten(4..)), "flatten: axis is out of range: axis 4, rank 3"),
        (text(x.narrow(1, 2, 2)), "narrow: the range does not lie within the axis: start 2, len 2, size 3"),
        (text(x.slice(1, 2..5, 1)), "slice: the range does not lie within the axis: range 2..5, size 3"),
        (text(x.slice(1, .., 0)), "slice: the step must not be 0: step 0"),
        (text(x.chunk(0, 1)), "chunk: needs one part or more: n 0"),
        (text(x.split(&[1, 1], 1)), "split: the sizes must add up to the axis: sizes [1, 1], size 3 on axis 1"),
        (text(x.repeat([2, 2])), "repeat: needs a count for every axis: input [2, 3, 4], counts [2, 2]"),
        (text(Tensor::stack(&[&v, &bench.f32(&[6])], 0)), "stack: shapes differ: tensor 0 [5], tensor 1 [6]"),
        (text(Tensor::cat::<Tensor>(&[], 0)), "cat: needs at least one tensor: got none"),
        (text(x.pad(&[(1, 1)], 0)), "pad: needs one (before, after) pair per axis: input [2, 3, 4], pairs 1"),
        (
            text(x.index_select(0, &v)),
            "gather: indices must be i64 or i32: index f32; cast them with .cast(DType::I64)",
        ),
        (text(x.index_add(0, &m, &x)), "index_add: the index must be a vector: index [3, 4]"),
        (
            text(v.masked_fill(&bench.tensor(&[2, 5], DType::Bool), 0)),
            "masked_fill: the mask must broadcast to the input: input [5], mask [2, 5]",
        ),
        (text(v.one_hot(3)), "one_hot: needs an integer dtype: input f32; cast it with .cast(..)"),
        (text(v.tril(0)), "tril: needs two axes or more: input [5]"),
        (text(x.diag(0)), "diag: needs a vector or a matrix: input [2, 3, 4]"),
        (text(x.item::<f32>()), "item: needs exactly one element: input [2, 3, 4]"),
        (
            text(x.to_vec::<f64>()),
            "to_vec: the type asked for is not the tensor's: asked f64, input f32; cast it with .cast(..)",
        ),
        (
            text(image.conv2d(&kernel, Some(&v), &plain)),
            "conv2d: bias must have one value per output channel: bias [5], channels 6",
        ),
        (
            text(image.conv2d(&kernel, None, &ConvOptions::default().stride([1, 2, 3]))),
            "conv2d: needs one value per spatial axis: stride [1, 2, 3], spatial axes 2",
        ),
        (
            text(image.conv1d(&kernel, None, &plain)),
            "conv1d: input must be [N, C, spatial..] and weight [C_out, C / groups, kernel..], 3 axes each: input [1, 3, 8, 8], weight [6, 3, 3, 3]",
        ),
        (
            text(image.conv_transpose2d(&kernel, None, &up())),
            "conv_transpose2d: channels do not fit: input [1, 3, 8, 8] has C = 3, weight [6, 3, 3, 3] takes 6, and C must divide by groups 1",
        ),
        (
            text(image.conv_transpose2d(&bench.f32(&[3, 6, 3, 3]), None, &up().output_padding(1))),
            "conv_transpose2d: output_padding must be less than the stride: output_padding 1, stride 1 on spatial axis 0",
        ),
        (
            text(image.conv_transpose2d(&bench.f32(&[3, 6, 3, 3]), None, &up().padding(9))),
            "conv_transpose2d: the padding cuts off the whole output: input 8, output 10, padding 18 on spatial axis 0",
        ),
        (
            text(x.max_pool2d(&PoolOptions::new(2))),
            "max_pool2d: input must be [N, C, spatial..] with 2 spatial axes: input [2, 3, 4]",
        ),
        (
            text(image.adaptive_avg_pool2d([0, 2])),
            "adaptive_avg_pool2d: sizes must be 1 or more: input [1, 3, 8, 8], sizes [0, 2]",
        ),
        (text(einsum("ij,jk->ik", &[&m])), "einsum: needs one input per term: notation \"ij,jk->ik\", inputs 1"),
        (
            text(einsum("ij,jk->ik", &[&m, &m])),
            "einsum: sizes of j differ: notation \"ij,jk->ik\", input 0 has 4, input 1 has 3",
        ),
        (text(einsum("ijk->ik", &[&m])), "einsum: needs one letter per axis: term \"ijk\", input 0 [3, 4]"),
        (
            text(einsum("i1->i", &[&m])),
            "einsum: axes are letters, and at most one ellipsis: notation \"i1->i\", term \"i1\"",
        ),
        (
            text(einsum("ij->k", &[&m])),
            "einsum: an output letter must occur in an input, and once in the output: notation \"ij->k\"",
        ),
    ];
    for (got, expected) in &cases {
        assert_eq!(got, expected);
    }
    assert_eq!(bench.asked(), Vec::<String>::new(), "no backend was called");
}

#[test]
fn mixed_devices_name_both() {
    let (a, b) = (Bench::new("silent:0"), Bench::new("silent:1"));
    let (x, y) = (a.f32(&[2]), b.f32(&[2]));
    assert_eq!(
        text(x.add(&y)),
        "add: operands are on different devices: lhs silent:0, rhs silent:1; move one with .to(&device)"
    );
    assert_eq!(
        text(Tensor::cat(&[&x, &x, &y], 0)),
        "cat: operands are on different devices: silent:0 and silent:1; move one with .to(&device)"
    );
    assert!(text(x.add(&y.to(&a.device).expect("moves"))) == "accepted");
    assert!(a.asked().contains(&"upload [2] f32".to_string()) && b.asked() == ["download [2] f32"]);
}

#[test]
fn operators_panic_with_the_error_text() {
    let bench = Bench::new("silent");
    let (x, y) = (bench.f32(&[2]), bench.f32(&[3]));
    let payload = std::panic::catch_unwind(|| &x - &y).expect_err("the shapes do not fit");
    assert_eq!(payload.downcast_ref::<String>().map(String::as_str), x.sub(&y).err().map(|e| e.to_string()).as_deref());
}
