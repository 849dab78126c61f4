use tensor_core::op::Softmax;
use tensor_core::{DType, Op};

use crate::kernels::testing::{Array, Expected, check, indices, run, tensor, values};

fn reference(x: &Array, axis: usize, log: bool) -> Vec<Expected> {
    let n = x.shape[axis];
    let results = indices(&x.shape).map(|mut index| {
        let value = x.get(&index);
        let lane: Vec<f64> = (0..n)
            .map(|i| {
                index[axis] = i;
                x.get(&index)
            })
            .collect();
        let top = lane
            .iter()
            .fold(f64::NEG_INFINITY, |top, &v| if v.is_nan() || top.is_nan() { f64::NAN } else { top.max(v) });
        let sum: f64 = lane.iter().map(|v| (v - top).exp()).sum();
        match log {
            // Off by roundings of the distance to the maximum, and of the sum, which is 1 or more.
            true => (value - top - sum.ln(), (value - top).abs() + sum.ln() + 1.0),
            false => ((value - top).exp() / sum, (value - top).exp() / sum * (1.0 + (value - top).abs())),
        }
    });
    vec![Expected::within(4.0, results.collect())]
}

#[test]
fn every_axis_and_layout() {
    for shape in [&[5][..], &[3, 10], &[7, 65], &[2, 3, 40], &[4, 1, 5, 6], &[300, 33], &[0, 3], &[3, 0]] {
        for axis in 0..shape.len() {
            for log in [false, true] {
                let x = Array::noise(shape, axis);
                check(&Op::Softmax(Softmax { axis, log }), &[x], &DType::FLOATS, |x| reference(&x[0], axis, log));
            }
        }
    }
}

#[test]
fn large_and_infinite_values() {
    let inf = f64::INFINITY;
    for row in [[1e4, -1e4, 0.0, 9999.0], [-inf, 0.0, 1.0, -inf], [3.0, f64::NAN, 1.0, 2.0], [88.0, 89.0, 90.0, 120.0]]
    {
        for log in [false, true] {
            let x = Array::new(&[1, 4], row.to_vec());
            check(&Op::Softmax(Softmax { axis: 1, log }), &[x], &[DType::F64, DType::F32], |x| {
                reference(&x[0], 1, log)
            });
        }
    }
    // Nothing to choose from is NaN, as 0/0.
    let x = tensor(&Array::new(&[2], vec![-inf, -inf]), DType::F32, 0);
    assert!(values(&run(&Op::Softmax(Softmax { axis: 0, log: false }), &[&x]).expect("a softmax")[0])[0].is_nan());
}

#[test]
fn masked_softmax() {
    let n = 6 * 96 * 96;
    let masked = |i: usize| if i % 96 > i / 96 % 96 { -10000.0 } else { (i as f64 / n as f64 - 0.5) * 20.0 };
    let x = Array::new(&[6, 96, 96], (0..n).map(masked).collect());
    check(&Op::Softmax(Softmax { axis: 2, log: false }), &[x], &[DType::F32], |x| reference(&x[0], 2, false));
}
