use tensor_core::op::Sort;
use tensor_core::{DType, Op};

use crate::kernels::testing::{Array, Expected, check, indices};

fn reference(x: &Array, axis: usize, descending: bool) -> Vec<Expected> {
    let (mut values, mut positions) = (vec![0.0; x.data.len()], vec![0.0; x.data.len()]);
    for mut index in indices(&x.shape).filter(|index| index[axis] == 0) {
        let mut place = |i: usize| {
            index[axis] = i;
            x.at(&index)
        };
        let mut lane: Vec<(usize, f64)> = (0..x.shape[axis]).map(|i| (i, x.data[place(i)])).collect();
        lane.sort_by(|a, b| match (a.1.is_nan(), b.1.is_nan()) {
            (false, false) if descending => b.1.total_cmp(&(a.1 + 0.0)),
            (false, false) => (a.1 + 0.0).total_cmp(&b.1),
            (a, b) => a.cmp(&b),
        });
        for (i, (from, v)) in lane.into_iter().enumerate() {
            (values[place(i)], positions[place(i)]) = (v, from as f64);
        }
    }
    vec![Expected::exact(values), Expected::exact(positions)]
}

fn check_all(x: &Array, dtypes: &[DType]) {
    for axis in 0..x.shape.len() {
        for descending in [false, true] {
            check(&Op::Sort(Sort { axis, descending }), std::slice::from_ref(x), dtypes, |x| {
                reference(&x[0], axis, descending)
            });
        }
    }
}

#[test]
fn stable_along_every_axis() {
    for shape in [&[1][..], &[20], &[6, 9], &[4, 5, 6], &[0, 3], &[3, 0], &[200, 40]] {
        // Few values, so that there are ties.
        check_all(&Array::sample(shape, 1), &DType::ALL);
    }
}

#[test]
fn nan_is_last_in_either_direction() {
    let x = Array::new(
        &[2, 5],
        vec![3.0, f64::NAN, 1.0, f64::INFINITY, 2.0, f64::NAN, -1.0, f64::NAN, f64::NEG_INFINITY, 0.0],
    );
    check_all(&x, &DType::FLOATS);
}

#[test]
fn long_rows_and_many_rows() {
    for shape in [[2, 8193], [1, 32_000], [70_000, 2]] {
        for descending in [false, true] {
            let op = Op::Sort(Sort { axis: 1, descending });
            check(&op, &[Array::noise(&shape, 3)], &[DType::F32], |x| reference(&x[0], 1, descending));
        }
    }
}
