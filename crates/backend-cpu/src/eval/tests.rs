use half::f16;
use tensor_core::expr::build;
use tensor_core::{DType, Shape, Tensor};

use super::convert::{bf16_to_f32, f16_to_f32, f32_to_bf16, f32_to_f16};
use super::{Evaluator, Input};
use crate::device;
use crate::kernels::testing::{Array, tensor};

#[test]
fn any_range_is_part_of_the_whole() {
    let exprs = [build(|[x, y, z]| x * y - z)];
    let shape = Shape::new(&[6, 7, 300]);
    for layout in 0..6 {
        let x = tensor(&Array::noise(&[6, 7, 300], 1), DType::F32, layout);
        let y = tensor(&Array::noise(&[7, 1], 2), DType::F32, 0);
        let z = tensor(&Array::noise(&[300], 3), DType::F32, layout);
        let evaluator = Evaluator::new("test", &exprs, &[DType::F32; 3]).expect("typed");
        let bound = evaluator.bind(&shape, &[Input::Tensor(&x), Input::Tensor(&y), Input::Tensor(&z)]);
        let mut whole = vec![0f32; shape.len()];
        bound.worker().fill(0, &mut whole);
        let mut worker = bound.worker();
        for (start, len) in
            [(0, 1), (299, 2), (301, 1800), (1023, 1025), (2099, 2101), (12_599, 1), (5000, 0), (17, 7000)]
        {
            let mut part = vec![0f32; len];
            worker.fill(start, &mut part);
            assert!(part == whole[start..start + len], "layout {layout}, {len} from {start}");
        }
    }
}

#[test]
fn another_layout_gives_another_order() {
    let x = tensor(&Array::sample(&[40, 30], 1), DType::F32, 0);
    let turned = x.t().expect("a matrix");
    let exprs = [build(|[x]| x + 1)];
    let evaluator = Evaluator::new("test", &exprs, &[DType::F32]).expect("typed");
    let bound = evaluator.bind(turned.shape(), &[Input::View(&x, turned.layout())]);
    let mut got = vec![0f32; 1200];
    bound.worker().fill(0, &mut got);
    assert_eq!(got, turned.add(1).and_then(|y| y.to_vec::<f32>()).expect("runs"));
}

#[test]
fn given_values_take_the_place_of_an_input() {
    // An epilogue: f32 sums become f16 outputs, with a bias per column.
    let bias = Tensor::arange(0, 50, 1, (&device(), DType::F16)).expect("made");
    let exprs = [build(|[sum, bias]| (sum + bias).relu())];
    let evaluator = Evaluator::new("test", &exprs, &[DType::F16; 2]).expect("typed");
    let bound = evaluator.bind(&Shape::new(&[70, 50]), &[Input::Given, Input::Tensor(&bias)]);
    let sums: Vec<f32> = (0..3500).map(|i| (i % 97) as f32 * -0.5).collect();
    let mut out = vec![f16::ZERO; 3500];
    let mut worker = bound.worker();
    for start in (0..3500).step_by(700) {
        worker.fill_from(start, &sums[start..start + 700], &mut out[start..start + 700]);
    }
    for (i, &got) in out.iter().enumerate() {
        assert_eq!(got, f16::from_f32((sums[i] + (i % 50) as f32).max(0.0)));
    }
}

#[test]
fn conversions_of_sixteen_bits_are_exact_and_round_to_even() {
    for bits in 0..=u16::MAX {
        let (h, b) = (f16::from_bits(bits), half::bf16::from_bits(bits));
        assert!(f16_to_f32(bits) == h.to_f32() || h.is_nan() && f16_to_f32(bits).is_nan(), "{bits:x}");
        assert!(bf16_to_f32(bits) == b.to_f32() || b.is_nan() && bf16_to_f32(bits).is_nan(), "{bits:x}");
        // Back, and from both sides of the middle to the next number.
        if h.is_finite() && b.is_finite() {
            assert_eq!((f32_to_f16(h.to_f32()), f32_to_bf16(b.to_f32())), (bits, bits));
        }
    }
    let step = if cfg!(debug_assertions) { 9973 } else { 101 };
    for bits in (0..=u32::MAX).step_by(step).chain((0..=u16::MAX).flat_map(|b| [-1, 0, 1].map(|d| middle(b, d)))) {
        let v = f32::from_bits(bits);
        // `half` through its reference arithmetic, which rounds f32 correctly.
        let (h, b) = (f16::from_f32_const(v), half::bf16::from_f32_const(v));
        assert!(f32_to_f16(v) == h.to_bits() || h.is_nan() && f16::from_bits(f32_to_f16(v)).is_nan(), "{bits:x}");
        assert!(
            f32_to_bf16(v) == b.to_bits() || b.is_nan() && half::bf16::from_bits(f32_to_bf16(v)).is_nan(),
            "{bits:x}"
        );
    }
}

/// Near the middle between two neighbouring f16.
fn middle(bits: u16, off_by: i32) -> u32 {
    let v = f16::from_bits(bits & 0x7bfe).to_f32();
    let next = f16::from_bits((bits & 0x7bfe) + 1).to_f32();
    ((v + next) / 2.0).to_bits().wrapping_add_signed(off_by)
}
