use tensor_core::op::CrossEntropy;
use tensor_core::{DType, Op, execute};

use crate::kernels::testing::{Array, Expected, check, tensor};

fn reference(inputs: &[Array]) -> Vec<Expected> {
    let n = *inputs[0].shape.last().expect("classes");
    let losses = inputs[1].data.iter().enumerate().map(|(row, &target)| {
        let row = &inputs[0].data[row * n..][..n];
        let top = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = row.iter().map(|v| (v - top).exp()).sum();
        (sum.ln() - (row[target as usize] - top), sum.ln() + (row[target as usize] - top).abs() + 1.0)
    });
    vec![Expected::within(4.0, losses.collect())]
}

#[test]
fn losses_of_every_shape_and_index_type() {
    for (rows, n) in [(&[4][..], 3), (&[], 5), (&[3, 5], 10), (&[700], 65), (&[0], 4)] {
        let shape = [rows, &[n]].concat();
        let n_rows: usize = rows.iter().product();
        for index in [DType::I64, DType::I32] {
            let target = Array::new(rows, (0..n_rows).map(|i| (i * 7 % n) as f64).collect()).of(index);
            check(&Op::CrossEntropy(CrossEntropy), &[Array::noise(&shape, 1), target], &DType::FLOATS, reference);
        }
    }
    let far = Array::new(&[2, 3], vec![1e4, 0.0, -1e4, -1e4, 1e4, 1e4]);
    let target = Array::new(&[2], vec![2.0, 1.0]).of(DType::I64);
    check(&Op::CrossEntropy(CrossEntropy), &[far, target], &[DType::F32], reference);
}

#[test]
fn a_target_out_of_range_is_named() {
    let logits = tensor(&Array::noise(&[2, 3], 1), DType::F32, 0);
    for (target, text) in [(3.0, "target 3, classes 3"), (-1.0, "target -1, classes 3")] {
        let target = tensor(&Array::new(&[2], vec![0.0, target]), DType::I64, 0);
        let error = execute(&Op::CrossEntropy(CrossEntropy), &[&logits, &target]).expect_err("an error");
        assert!(error.is_index());
        assert_eq!(error.to_string(), format!("cross_entropy: target is out of range: {text}; classes count from 0"));
    }
}
