//! Shape rules, error texts and declared dtypes of the records, without a backend.

use smallvec::SmallVec;

use super::*;
use crate::expr::build;
use crate::{Dims, Expr, Number, random};

fn dims(d: &[usize]) -> Dims {
    Dims::from_slice(d)
}

fn meta(shape: &[usize], dtype: DType) -> Meta {
    Meta::new(Shape::new(shape), dtype)
}

fn window(stride: usize, padding: usize, dilation: usize, rank: usize) -> Window {
    let of = |n: usize| Dims::from_elem(n, rank);
    Window { stride: of(stride), before: of(padding), after: of(padding), dilation: of(dilation) }
}

fn conv(stride: usize, padding: usize, rank: usize, groups: usize) -> Conv {
    Conv { window: window(stride, padding, 1, rank), groups, epilogue: Expr::identity() }
}

fn pool(kind: PoolKind, kernel: usize, stride: usize, padding: usize) -> Pool {
    Pool { kind, kernel: dims(&[kernel; 2]), window: window(stride, padding, 1, 2) }
}

fn infer(op: &Op, inputs: &[(&[usize], DType)]) -> Result<Metas> {
    let metas: SmallVec<[Meta; 4]> = inputs.iter().map(|(shape, dtype)| meta(shape, *dtype)).collect();
    op.record().infer(&metas)
}

/// The outputs as text: `[2, 3] f32`, several joined by commas.
fn outcome(op: &Op, inputs: &[(&[usize], DType)]) -> String {
    match infer(op, inputs) {
        Ok(outputs) => outputs.iter().map(|m| format!("{} {}", m.shape, m.dtype)).collect::<Vec<_>>().join(", "),
        Err(error) => error.to_string(),
    }
}

const F: DType = DType::F32;
const I: DType = DType::I64;

#[test]
fn every_op_has_its_shape_rule_and_its_error_texts() {
    let reduce = |kind, axes: &[usize], keepdim| Op::Reduce(Reduce::new("fold", kind, axes, keepdim));
    let sum = |axes: &[usize], keepdim| reduce(ReduceKind::Sum, axes, keepdim);
    let map2 = Op::Map(Map::new("add", build(|[a, b]| a + b)));
    let matmul = || Op::MatMul(MatMul::default());
    let biased = || Op::MatMul(MatMul { epilogue: build(|[y, b]| (y + b).relu()) });
    let grad = |spatial: &[usize]| Op::ConvInputGrad(ConvInputGrad { conv: conv(2, 1, 2, 1), spatial: dims(spatial) });
    let wgrad = |kernel: &[usize]| Op::ConvWeightGrad(ConvWeightGrad { conv: conv(2, 1, 2, 1), kernel: dims(kernel) });
    let avg = PoolKind::Avg { count_padding: true };
    let pad = |before: &[usize], value: Number| {
        Op::Pad(Pad {
            before: dims(before),
            after: dims(&vec![1; before.len()]),
            interior: dims(&vec![2; before.len()]),
            value,
        })
    };
    let normalize = |axes: &[usize], center| Op::Normalize(Normalize { axes: dims(axes), epsilon: 1e-5, center });
    let attention = || Op::Attention(Attention { scale: 1.0, causal: true });
    let attention_grad = || Op::AttentionGrad(AttentionGrad { scale: 1.0, causal: true });
    let b = DType::Bool;
    let cases: Vec<(Op, Vec<(&[usize], DType)>, &str)> = vec![
        (map2.clone(), vec![(&[2, 3], F), (&[3], F)], "[2, 3] f32"),
        (map2.clone(), vec![(&[2, 0], F), (&[2, 1], F)], "[2, 0] f32"),
        (map2.clone(), vec![(&[0], F), (&[1], F)], "[0] f32"),
        (map2.clone(), vec![(&[4, 1, 3], F), (&[5, 1], F)], "[4, 5, 3] f32"),
        (
            map2.clone(),
            vec![(&[2, 3], F), (&[4], F)],
            "add: shapes do not broadcast (sizes, from the last axis on, must be equal or 1): lhs [2, 3], rhs [4]",
        ),
        (
            map2,
            vec![(&[2], F), (&[2], I)],
            "add: operands have different dtypes: lhs f32, rhs i64; cast one with .cast(..)",
        ),
        (
            Op::Map(Map::new("zip", build(|[a, b, c]| a + b + c))),
            vec![(&[2], F), (&[2], F), (&[3], F)],
            "zip: shapes do not broadcast (sizes, from the last axis on, must be equal or 1): input 2 [3], those before it [2]",
        ),
        (sum(&[1], false), vec![(&[2, 3, 4], F)], "[2, 4] f32"),
        (sum(&[0, 2], true), vec![(&[2, 3, 4], DType::U8)], "[1, 3, 1] u8"),
        (sum(&[0, 1], false), vec![(&[2, 3], F)], "[] f32"),
        (sum(&[1], false), vec![(&[3, 0], F)], "[3] f32"),
        (sum(&[0], false), vec![(&[3], b)], "fold: is not defined for bool: input bool; cast it with .cast(..)"),
        (sum(&[2], false), vec![(&[2, 3], F)], "fold: axis is out of range: axis 2, rank 2"),
        (reduce(ReduceKind::Max, &[0], false), vec![(&[3], b)], "[] bool"),
        (reduce(ReduceKind::Max, &[0], false), vec![(&[0], b)], "[] bool"),
        (
            reduce(ReduceKind::Min, &[0], false),
            vec![(&[0, 4], F)],
            "fold: has no value over no elements: input [0, 4], axes [0]",
        ),
        (reduce(ReduceKind::Min, &[1], false), vec![(&[0, 4], F)], "[0] f32"),
        (Op::ArgReduce(ArgReduce { max: true, axis: 1, keepdim: false }), vec![(&[2, 3], F)], "[2] i64"),
        (
            Op::ArgReduce(ArgReduce { max: false, axis: 0, keepdim: true }),
            vec![(&[0], F)],
            "argmin: has no value over no elements: input [0], axis 0",
        ),
        (Op::Scan(Scan { kind: ScanKind::Sum, axis: 0, reverse: true }), vec![(&[5], I)], "[5] i64"),
        (
            Op::Scan(Scan { kind: ScanKind::Prod, axis: 1, reverse: false }),
            vec![(&[5], I)],
            "cumprod: axis is out of range: axis 1, rank 1",
        ),
        (matmul(), vec![(&[2, 3], F), (&[3, 4], F)], "[2, 4] f32"),
        (matmul(), vec![(&[2, 0], F), (&[0, 3], F)], "[2, 3] f32"),
        (matmul(), vec![(&[5, 1, 2, 3], F), (&[7, 3, 4], F)], "[5, 7, 2, 4] f32"),
        (
            matmul(),
            vec![(&[2, 3], F), (&[4, 5], F)],
            "matmul: inner dimensions differ: lhs [2, 3] has K = 3, rhs [4, 5] has K = 4",
        ),
        (
            matmul(),
            vec![(&[2, 2, 3], F), (&[3, 3, 4], F)],
            "matmul: batch axes do not broadcast: lhs [2, 2, 3], rhs [3, 3, 4]",
        ),
        (matmul(), vec![(&[3], F), (&[3, 4], F)], "matmul: operands need two axes or more: lhs [3], rhs [3, 4]"),
        (
            matmul(),
            vec![(&[2, 3], F), (&[3, 4], DType::F64)],
            "matmul: operands have different dtypes: lhs f32, rhs f64; cast one with .cast(..)",
        ),
        (
            matmul(),
            vec![(&[1, 1], b), (&[1, 1], b)],
            "matmul: is not defined for bool: lhs bool; cast it with .cast(..)",
        ),
        (biased(), vec![(&[2, 3], F), (&[3, 4], F), (&[4], F)], "[2, 4] f32"),
        (
            biased(),
            vec![(&[2, 3], F), (&[3, 4], F), (&[5, 1, 4], F)],
            "matmul: an epilogue input must broadcast to the result: input [5, 1, 4], result [2, 4]",
        ),
        (Op::Conv(conv(2, 1, 2, 1)), vec![(&[5, 3, 7, 8], F), (&[6, 3, 3, 3], F)], "[5, 6, 4, 4] f32"),
        (Op::Conv(conv(1, 0, 1, 3)), vec![(&[5, 3, 7], F), (&[6, 1, 7], F)], "[5, 6, 1] f32"),
        (
            Op::Conv(conv(1, 0, 2, 2)),
            vec![(&[5, 3, 7, 8], F), (&[6, 3, 3, 3], F)],
            "conv2d: channels do not fit: input [5, 3, 7, 8] has C = 3, weight [6, 3, 3, 3] takes 3 × groups 2, and C_out must divide by groups",
        ),
        (
            Op::Conv(conv(1, 0, 2, 1)),
            vec![(&[5, 3, 2, 8], F), (&[6, 3, 3, 3], F)],
            "conv2d: the kernel is larger than the padded input: kernel spans 3, input 2 on spatial axis 0",
        ),
        (
            Op::Conv(conv(0, 0, 1, 1)),
            vec![(&[5, 3, 2], F), (&[6, 3, 2], F)],
            "conv1d: stride, dilation and kernel must be 1 or more: stride [0], dilation [1], kernel [2]",
        ),
        (
            Op::Conv(conv(1, 0, 2, 1)),
            vec![(&[3, 2, 8], F), (&[6, 3, 3, 3], F)],
            "conv2d: input must be [N, C, spatial..] and weight [C_out, C / groups, kernel..], 4 axes each: input [3, 2, 8], weight [6, 3, 3, 3]",
        ),
        (
            Op::Conv(conv(1, 0, 1, 1)),
            vec![(&[1, 1, 2], I), (&[1, 1, 2], I)],
            "conv1d: needs a float dtype: input i64; cast it with .cast(..)",
        ),
        (grad(&[7, 8]), vec![(&[5, 6, 4, 4], F), (&[6, 3, 3, 3], F)], "[5, 3, 7, 8] f32"),
        (
            grad(&[9, 8]),
            vec![(&[5, 6, 4, 4], F), (&[6, 3, 3, 3], F)],
            "conv_input_grad: grad must be [5, 6, 5, 4]: grad [5, 6, 4, 4]",
        ),
        (wgrad(&[3, 3]), vec![(&[5, 3, 7, 8], F), (&[5, 6, 4, 4], F)], "[6, 3, 3, 3] f32"),
        (Op::Pool(pool(PoolKind::Max, 2, 2, 0)), vec![(&[1, 3, 5, 4], F)], "[1, 3, 2, 2] f32, [1, 3, 2, 2] i32"),
        (Op::Pool(pool(avg, 3, 1, 1)), vec![(&[1, 3, 5, 4], F)], "[1, 3, 5, 4] f32"),
        (
            Op::Pool(pool(avg, 3, 1, 2)),
            vec![(&[1, 3, 5, 4], F)],
            "avg_pool: padding must be at most half the kernel: padding (2, 2), kernel 3 on spatial axis 0",
        ),
        (
            Op::Pool(pool(PoolKind::Max, 2, 2, 0)),
            vec![(&[3, 5, 4], F)],
            "max_pool: input must be [N, C, spatial..] with 2 spatial axes: input [3, 5, 4]",
        ),
        (
            Op::AvgPoolGrad(AvgPoolGrad { pool: pool(avg, 2, 2, 0), spatial: dims(&[5, 4]) }),
            vec![(&[1, 3, 2, 2], F)],
            "[1, 3, 5, 4] f32",
        ),
        (Op::Gather(Gather { axis: 1 }), vec![(&[2, 3], b), (&[1, 7], I)], "[1, 7] bool"),
        (
            Op::Gather(Gather { axis: 1 }),
            vec![(&[2, 3], F), (&[3, 7], I)],
            "gather: index must have the input's rank and be no larger along the other axes: input [2, 3], index [3, 7], axis 1",
        ),
        (
            Op::Gather(Gather { axis: 0 }),
            vec![(&[2], F), (&[2], F)],
            "gather: indices must be i64 or i32: index f32; cast them with .cast(DType::I64)",
        ),
        (Op::ScatterAdd(ScatterAdd { axis: 0 }), vec![(&[4, 3], F), (&[9, 2], I), (&[9, 2], F)], "[4, 3] f32"),
        (
            Op::ScatterAdd(ScatterAdd { axis: 0 }),
            vec![(&[4, 3], F), (&[9, 2], I), (&[9, 3], F)],
            "scatter_add: source must have the index's shape: source [9, 3], index [9, 2]",
        ),
        (Op::Sort(Sort { axis: 0, descending: true }), vec![(&[4, 3], b)], "[4, 3] bool, [4, 3] i64"),
        (Op::Concat(Concat { axis: 1 }), vec![(&[2, 3], F), (&[2, 0], F), (&[2, 1], F)], "[2, 4] f32"),
        (
            Op::Concat(Concat { axis: 1 }),
            vec![(&[2, 3], F), (&[1, 3], F)],
            "cat: sizes differ off axis 1: tensor 0 [2, 3], tensor 1 [1, 3]",
        ),
        (Op::Concat(Concat { axis: 0 }), vec![], "cat: needs at least one tensor: got none"),
        (pad(&[1, 2], Number::Float(0.5)), vec![(&[2, 3], F)], "[6, 10] f32"),
        (pad(&[1], Number::Int(0)), vec![(&[0], F)], "[2] f32"),
        (
            pad(&[1], Number::Int(0)),
            vec![(&[2, 3], F)],
            "pad: needs one (before, after) pair per axis: input [2, 3], pairs 1",
        ),
        (
            pad(&[1], Number::Float(0.5)),
            vec![(&[2], I)],
            "pad: a float number needs a float tensor: number 0.5, tensor i64; cast it with .cast(..)",
        ),
        (
            Op::Softmax(Softmax { axis: 0, log: true }),
            vec![(&[3], I)],
            "log_softmax: needs a float dtype: input i64; cast it with .cast(..)",
        ),
        (normalize(&[1], true), vec![(&[2, 3], F)], "[2, 3] f32, [2, 1] f32, [2, 1] f32"),
        (normalize(&[0, 1], false), vec![(&[2, 3], F)], "[2, 3] f32, [1, 1] f32"),
        (
            Op::NormalizeGrad(NormalizeGrad { axes: dims(&[1]), center: true }),
            vec![(&[2, 3], F), (&[2, 3], F), (&[2, 1], F)],
            "[2, 3] f32",
        ),
        (Op::CrossEntropy(CrossEntropy), vec![(&[4, 3], F), (&[4], I)], "[4] f32"),
        (
            Op::CrossEntropy(CrossEntropy),
            vec![(&[4, 3], F), (&[4, 3], I)],
            "cross_entropy: target must have the logits' shape without its last axis: logits [4, 3], target [4, 3]",
        ),
        (
            attention(),
            vec![(&[2, 5, 8], F), (&[2, 7, 8], F), (&[2, 7, 4], F), (&[5, 7], b)],
            "[2, 5, 4] f32, [2, 5] f32",
        ),
        (attention(), vec![(&[5, 8], DType::F16), (&[7, 8], DType::F16), (&[7, 4], DType::F16)], "[5, 4] f16, [5] f32"),
        (
            attention(),
            vec![(&[2, 5, 8], F), (&[2, 7, 9], F), (&[2, 7, 4], F)],
            "attention: query must be [.., T, D], key [.., S, D], value [.., S, E] with equal leading axes: query [2, 5, 8], key [2, 7, 9], value [2, 7, 4]",
        ),
        (
            attention(),
            vec![(&[2, 5, 8], F), (&[2, 7, 8], F), (&[2, 7, 4], F), (&[5, 6], b)],
            "attention: mask must be bool and broadcast to [2, 5, 7]: mask bool [5, 6]",
        ),
        (
            attention_grad(),
            vec![(&[2, 5, 8], F), (&[2, 7, 8], F), (&[2, 7, 4], F), (&[2, 5], F), (&[2, 5, 4], F), (&[2, 5], F)],
            "[2, 5, 8] f32, [2, 7, 8] f32, [2, 7, 4] f32",
        ),
        (
            attention_grad(),
            vec![(&[5, 8], F), (&[7, 8], F), (&[7, 4], F), (&[5], F), (&[5, 8], F), (&[5, 1], F)],
            "attention_grad: grad must be [5, 4], lse and delta [5]: grad [5, 8], lse [5], delta [5, 1]",
        ),
        (
            attention_grad(),
            vec![(&[5, 8], F), (&[7, 8], F), (&[7, 4], F), (&[5], DType::F64), (&[5, 4], F), (&[5], F)],
            "attention_grad: lse and delta must be f32: lse f64, delta f32",
        ),
        (Op::Copy, vec![(&[2, 3], b)], "[2, 3] bool"),
        (Op::Copy, vec![], "copy: takes 1 inputs: got 0"),
    ];
    for (op, inputs, expected) in &cases {
        assert_eq!(outcome(op, inputs), *expected, "{} of {inputs:?}", op.name());
    }
}

#[test]
fn ops_without_inputs_check_their_numbers() {
    let random = |distribution, dtype| {
        Op::Random(Random { distribution, key: random::Key { seed: 0, offset: 0 }, meta: meta(&[3], dtype) })
    };
    let fill = |value, dtype| Op::Fill(Fill { value, meta: meta(&[2], dtype) });
    let iota = |dtype| Op::Iota(Iota { start: Number::Int(0), step: Number::Int(1), len: 3, dtype });
    let cases = [
        (fill(Number::Int(1), DType::Bool), "[2] bool"),
        (fill(Number::Float(1.5), I), "full: a float number needs a float dtype: number 1.5, dtype i64"),
        (iota(DType::U8), "[3] u8"),
        (iota(DType::Bool), "arange: is not defined for bool: result bool; cast it with .cast(..)"),
        (random(Distribution::Uniform { low: 0.0, high: 1.0 }, I), "rand: needs a float dtype: dtype i64"),
        (random(Distribution::Uniform { low: 1.0, high: 0.0 }, F), "rand: low must not exceed high: low 1.0, high 0.0"),
        (
            random(Distribution::Normal { mean: 0.0, std: -1.0 }, F),
            "randn: the standard deviation must not be negative: std -1.0",
        ),
        (random(Distribution::Integer { low: 3, high: 3 }, I), "randint: low must be less than high: low 3, high 3"),
        (random(Distribution::Integer { low: 0, high: 3 }, F), "randint: needs an integer dtype: dtype f32"),
        (random(Distribution::Bernoulli { p: 1.5 }, F), "bernoulli: the probability must be in [0, 1]: p 1.5"),
        (random(Distribution::Bernoulli { p: 0.5 }, DType::Bool), "[3] bool"),
    ];
    for (op, expected) in &cases {
        assert_eq!(outcome(op, &[]), *expected);
    }
}

/// One well-formed use of every op: the data inputs take the dtype asked for.
fn samples(dtype: DType) -> Vec<(Op, Vec<(&'static [usize], DType)>)> {
    let avg = PoolKind::Avg { count_padding: true };
    let key = random::Key { seed: 0, offset: 0 };
    let random = |distribution| Op::Random(Random { distribution, key, meta: meta(&[3], dtype) });
    let (d, wide) = (dtype, dtype.compute());
    vec![
        (Op::Map(Map::new("map", Expr::identity())), vec![(&[2], d)]),
        (Op::Reduce(Reduce::new("sum", ReduceKind::Sum, &[0], false)), vec![(&[2], d)]),
        (Op::Reduce(Reduce::new("prod", ReduceKind::Prod, &[0], false)), vec![(&[2], d)]),
        (Op::Reduce(Reduce::new("max", ReduceKind::Max, &[0], false)), vec![(&[2], d)]),
        (Op::Reduce(Reduce::new("min", ReduceKind::Min, &[0], false)), vec![(&[2], d)]),
        (Op::ArgReduce(ArgReduce { max: true, axis: 0, keepdim: false }), vec![(&[2], d)]),
        (Op::Scan(Scan { kind: ScanKind::Sum, axis: 0, reverse: false }), vec![(&[2], d)]),
        (Op::Scan(Scan { kind: ScanKind::Prod, axis: 0, reverse: false }), vec![(&[2], d)]),
        (Op::Scan(Scan { kind: ScanKind::Max, axis: 0, reverse: false }), vec![(&[2], d)]),
        (Op::MatMul(MatMul::default()), vec![(&[2, 3], d), (&[3, 2], d)]),
        (Op::Conv(conv(1, 0, 2, 1)), vec![(&[1, 1, 3, 3], d), (&[1, 1, 2, 2], d)]),
        (
            Op::ConvInputGrad(ConvInputGrad { conv: conv(1, 0, 2, 1), spatial: dims(&[3, 3]) }),
            vec![(&[1, 1, 2, 2], d), (&[1, 1, 2, 2], d)],
        ),
        (
            Op::ConvWeightGrad(ConvWeightGrad { conv: conv(1, 0, 2, 1), kernel: dims(&[2, 2]) }),
            vec![(&[1, 1, 3, 3], d), (&[1, 1, 2, 2], d)],
        ),
        (Op::Pool(pool(PoolKind::Max, 2, 1, 0)), vec![(&[1, 1, 3, 3], d)]),
        (Op::Pool(pool(avg, 2, 1, 0)), vec![(&[1, 1, 3, 3], d)]),
        (Op::AvgPoolGrad(AvgPoolGrad { pool: pool(avg, 2, 1, 0), spatial: dims(&[3, 3]) }), vec![(&[1, 1, 2, 2], d)]),
        (Op::Gather(Gather { axis: 0 }), vec![(&[2], d), (&[3], I)]),
        (Op::ScatterAdd(ScatterAdd { axis: 0 }), vec![(&[2], d), (&[3], I), (&[3], d)]),
        (Op::Sort(Sort { axis: 0, descending: false }), vec![(&[2], d)]),
        (Op::Concat(Concat { axis: 0 }), vec![(&[2], d), (&[2], d)]),
        (
            Op::Pad(Pad { before: dims(&[1]), after: dims(&[1]), interior: dims(&[0]), value: Number::Int(0) }),
            vec![(&[2], d)],
        ),
        (Op::Copy, vec![(&[2], d)]),
        (random(Distribution::Uniform { low: 0.0, high: 1.0 }), vec![]),
        (random(Distribution::Normal { mean: 0.0, std: 1.0 }), vec![]),
        (random(Distribution::Integer { low: 0, high: 2 }), vec![]),
        (random(Distribution::Bernoulli { p: 0.5 }), vec![]),
        (Op::Iota(Iota { start: Number::Int(0), step: Number::Int(1), len: 3, dtype }), vec![]),
        (Op::Fill(Fill { value: Number::Int(1), meta: meta(&[2], dtype) }), vec![]),
        (Op::Softmax(Softmax { axis: 0, log: false }), vec![(&[2], d)]),
        (Op::Normalize(Normalize { axes: dims(&[0]), epsilon: 1e-5, center: true }), vec![(&[2], d)]),
        (Op::NormalizeGrad(NormalizeGrad { axes: dims(&[0]), center: true }), vec![(&[2], d), (&[2], d), (&[1], d)]),
        (Op::CrossEntropy(CrossEntropy), vec![(&[2, 3], d), (&[2], I)]),
        (
            Op::Attention(Attention { scale: 1.0, causal: false }),
            vec![(&[2, 3], d), (&[2, 3], d), (&[2, 3], d), (&[2, 2], DType::Bool)],
        ),
        (
            Op::AttentionGrad(AttentionGrad { scale: 1.0, causal: false }),
            vec![(&[2, 3], d), (&[2, 3], d), (&[2, 3], d), (&[2], wide), (&[2, 3], d), (&[2], wide)],
        ),
    ]
}

#[test]
fn an_op_takes_the_dtypes_that_its_contract_declares() {
    for dtype in DType::ALL {
        for (op, inputs) in samples(dtype) {
            let contract = op.record().contract();
            let declared = contract.dtypes.contains(&dtype);
            assert_eq!(infer(&op, &inputs).is_ok(), declared, "{} over {dtype}: {}", op.name(), outcome(&op, &inputs));
            for (i, (_, of)) in inputs.iter().enumerate() {
                let role = contract.inputs[i.min(contract.inputs.len() - 1)];
                let fits = match role {
                    Role::Data => *of == dtype,
                    Role::Wide => *of == dtype.compute(),
                    Role::Index => *of == I,
                    Role::Mask => *of == DType::Bool,
                };
                assert!(fits, "{}: input {i} is declared as {role:?}", op.name());
            }
        }
    }
}

#[test]
fn what_the_tape_keeps_is_what_derivatives_read() {
    let keeps = |op: Op| op.record().keeps();
    assert_eq!(keeps(Op::Map(Map::new("add", build(|[a, b]| a + b)))), Keeps::NOTHING);
    assert_eq!(keeps(Op::Map(Map::new("mul", build(|[a, b]| a * b)))).inputs, 0b11);
    let square = Reduce { producer: build(|[x]| x.square()), ..Reduce::new("sum", ReduceKind::Sum, &[0], false) };
    assert_eq!(keeps(Op::Reduce(square)).inputs, 0b1);
    assert_eq!(keeps(Op::Reduce(Reduce::new("sum", ReduceKind::Sum, &[0], false))), Keeps::NOTHING);
    let scaled = MatMul { epilogue: build(|[y, b, s]| y * s + b) };
    assert_eq!(keeps(Op::MatMul(scaled)).inputs & 0b1111, 0b1011, "both operands, and the scale, not the bias");
    assert_eq!(keeps(Op::Copy), Keeps::NOTHING);
}
