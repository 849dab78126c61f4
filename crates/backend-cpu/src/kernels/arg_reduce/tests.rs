use tensor_core::op::ArgReduce;
use tensor_core::{DType, Op};

use crate::kernels::testing::{Array, Expected, check, indices};

const NUMBERS: [DType; 7] = [DType::F64, DType::F32, DType::F16, DType::BF16, DType::I64, DType::I32, DType::U8];

fn check_both(x: &Array, axis: usize, dtypes: &[DType]) {
    for max in [true, false] {
        check(&Op::ArgReduce(ArgReduce { max, axis, keepdim: false }), std::slice::from_ref(x), dtypes, |x| {
            let x = &x[0];
            let first = indices(&x.shape).filter(|index| index[axis] == 0);
            let best = first.map(|mut index| {
                let mut get = |i: usize| {
                    index[axis] = i;
                    x.get(&index)
                };
                (1..x.shape[axis]).fold(0, |best, i| {
                    let (v, top) = (get(i), get(best));
                    let wins = v.is_nan() && !top.is_nan() || if max { v > top } else { v < top };
                    if wins { i } else { best }
                }) as f64
            });
            vec![Expected::exact(best.collect())]
        });
    }
}

#[test]
fn the_first_of_equals_along_every_axis() {
    for shape in [&[1][..], &[50], &[7, 33], &[3, 4, 5], &[4, 1, 6], &[0, 3], &[100, 300]] {
        for axis in (0..shape.len()).filter(|&axis| shape[axis] > 0) {
            // Few values, so that there are ties.
            check_both(&Array::sample(shape, 1), axis, &NUMBERS);
            check_both(&Array::noise(shape, 1), axis, &NUMBERS[..4]);
        }
    }
}

#[test]
fn extremum_seed_and_nan() {
    check_both(&Array::new(&[2], vec![32768.0, 32767.0]), 0, &[DType::F32, DType::I32]);
    check_both(&Array::new(&[2], vec![-32768.0, -32767.0]), 0, &[DType::F32, DType::I32]);
    for at in [0, 1, 20, 69] {
        let mut x = Array::sample(&[70], 1);
        x.data[at] = f64::NAN;
        x.data[69] = f64::NAN;
        check_both(&x, 0, &DType::FLOATS);
    }
    check_both(&Array::new(&[3], vec![1.0, f64::NAN, 5.0]), 0, &DType::FLOATS);
}
