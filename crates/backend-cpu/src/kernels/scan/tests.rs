use tensor_core::op::{Scan, ScanKind};
use tensor_core::{DType, Op};

use crate::kernels::testing::{Array, Expected, N_LAYOUTS, check, indices, run, tensor, values};

const NUMBERS: [DType; 7] = [DType::F64, DType::F32, DType::F16, DType::BF16, DType::I64, DType::I32, DType::U8];

fn reference(x: &Array, op: &Scan) -> Vec<Expected> {
    let n = x.shape[op.axis];
    let folds = indices(&x.shape).map(|index| {
        let at = index[op.axis];
        let range = if op.reverse { at..n } else { 0..at + 1 };
        let first = match op.kind {
            ScanKind::Sum => 0.0,
            ScanKind::Prod => 1.0,
            ScanKind::Max => f64::NEG_INFINITY,
        };
        range.fold((first, 0.0), |(fold, scale), i| {
            let mut index = index.clone();
            index[op.axis] = i;
            let v = x.get(&index);
            let fold = match op.kind {
                ScanKind::Sum => fold + v,
                ScanKind::Prod => fold * v,
                ScanKind::Max if fold.is_nan() || v.is_nan() => f64::NAN,
                ScanKind::Max => fold.max(v),
            };
            (fold, scale + v.abs())
        })
    });
    vec![Expected::within(2.0, folds.collect())]
}

#[test]
fn both_directions_along_every_axis() {
    for shape in [&[1][..], &[30], &[4, 7], &[3, 4, 5], &[0, 2], &[2, 0], &[90, 400]] {
        for axis in 0..shape.len() {
            for kind in [ScanKind::Sum, ScanKind::Prod, ScanKind::Max] {
                for reverse in [false, true] {
                    let mut x = Array::sample(shape, 1);
                    let is_product = kind == ScanKind::Prod;
                    if is_product {
                        x.data.iter_mut().enumerate().for_each(|(i, v)| *v = [1.0, -1.0, 2.0, 1.0, 0.5][i % 5]);
                    }
                    let op = Scan { kind, axis, reverse };
                    let dtypes = if is_product { &NUMBERS[..2] } else { &NUMBERS };
                    check(&Op::Scan(op.clone()), &[x], dtypes, |x| reference(&x[0], &op));
                }
            }
        }
    }
}

#[test]
fn integers_wrap() {
    let op = Op::Scan(Scan { kind: ScanKind::Sum, axis: 0, reverse: false });
    let y = run(&op, &[&tensor(&Array::new(&[3], vec![200.0, 100.0, 50.0]), DType::U8, 0)]).expect("sums");
    assert_eq!(values(&y[0]), [200.0, 44.0, 94.0]);
}

#[test]
fn scan_of_transposed() {
    let op = Op::Scan(Scan { kind: ScanKind::Sum, axis: 1, reverse: false });
    for layout in 0..N_LAYOUTS {
        let x = tensor(&Array::new(&[2, 2], vec![1.0, 2.0, 3.0, 4.0]), DType::F32, layout);
        let y = run(&op, &[&x.permute([1, 0]).expect("a view")]).expect("sums");
        assert_eq!(values(&y[0]), [1.0, 4.0, 2.0, 6.0]);
    }
}

#[test]
fn from_a_nan_on_the_maximum_is_nan() {
    let op = Op::Scan(Scan { kind: ScanKind::Max, axis: 0, reverse: false });
    let y = run(&op, &[&tensor(&Array::new(&[3], vec![1.0, f64::NAN, 5.0]), DType::F32, 0)]).expect("maxima");
    let y = values(&y[0]);
    assert!(y[0] == 1.0 && y[1].is_nan() && y[2].is_nan());
}
