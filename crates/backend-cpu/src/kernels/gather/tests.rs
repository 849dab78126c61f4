use tensor_core::op::{Gather, ScatterAdd};
use tensor_core::{DType, Op, Tensor, execute};

use crate::kernels::testing::{Array, Expected, N_LAYOUTS, check, indices, run, tensor, values};

const NUMBERS: [DType; 7] = [DType::F64, DType::F32, DType::F16, DType::BF16, DType::I64, DType::I32, DType::U8];

/// Shape of x, axis, shape of the index.
const CASES: [(&[usize], usize, &[usize]); 9] = [
    (&[10], 0, &[4]),
    (&[5, 4], 0, &[7, 4]),
    (&[5, 4], 1, &[5, 6]),
    (&[5, 4], 1, &[3, 2]),
    (&[3, 4, 5], 1, &[3, 2, 5]),
    (&[3, 4, 5], 1, &[2, 6, 3]),
    (&[3, 4, 5], 2, &[3, 4, 0]),
    (&[3, 0], 1, &[3, 0]),
    (&[60, 50, 9], 1, &[60, 70, 9]),
];

fn index(shape: &[usize], n: usize, dtype: DType) -> Array {
    let len: usize = shape.iter().product();
    Array::new(shape, (0..len).map(|i| ((i * 7 + i / 3) % n.max(1)) as f64).collect()).of(dtype)
}

/// The position in x of every element that the index names.
fn places(x: &Array, axis: usize, index: &Array) -> Vec<usize> {
    indices(&index.shape)
        .zip(&index.data)
        .map(|(mut at, &i)| {
            at[axis] = i as usize;
            x.at(&at)
        })
        .collect()
}

#[test]
fn elements_are_picked() {
    for (shape, axis, index_shape) in CASES {
        for dtype in [DType::I64, DType::I32] {
            let inputs = [Array::sample(shape, 1), index(index_shape, shape[axis], dtype)];
            let dtypes = [&NUMBERS[..], &[DType::Bool]].concat();
            check(&Op::Gather(Gather { axis }), &inputs, &dtypes, |inputs| {
                let picked = places(&inputs[0], axis, &inputs[1]).into_iter().map(|at| inputs[0].data[at]);
                vec![Expected::exact(picked.collect())]
            });
        }
    }
}

#[test]
fn elements_are_added() {
    for (shape, axis, index_shape) in CASES {
        for dtype in [DType::I64, DType::I32] {
            let source = Array::sample(index_shape, 2);
            let inputs = [Array::sample(shape, 1), index(index_shape, shape[axis], dtype), source];
            check(&Op::ScatterAdd(ScatterAdd { axis }), &inputs, &NUMBERS, added(axis));
        }
    }
}

fn added(axis: usize) -> impl Fn(&[Array]) -> Vec<Expected> {
    move |inputs| {
        let mut sums: Vec<(f64, f64)> = inputs[0].data.iter().map(|&v| (v, v.abs())).collect();
        for (at, v) in places(&inputs[0], axis, &inputs[1]).into_iter().zip(&inputs[2].data) {
            sums[at].0 += v;
            sums[at].1 += v.abs();
        }
        vec![Expected::within(4.0, sums)]
    }
}

/// An index that is the same along all axes but one.
fn expanded(index: &Array, axis: usize, shape: &[usize]) -> Tensor {
    let mut row = vec![1; shape.len()];
    row[axis] = index.data.len();
    let x = tensor(index, DType::I64, 0).reshape(row).expect("a shape");
    x.expand(shape.to_vec()).expect("an expansion")
}

#[test]
fn rows_are_copied_and_added_whole() {
    for (shape, axis, n) in [(&[10, 33][..], 0, 40), (&[3, 7, 20], 1, 9), (&[65, 128], 0, 768), (&[4, 5], 1, 8)] {
        let mut index_shape = shape.to_vec();
        index_shape[axis] = n;
        let list = index(&[n], shape[axis], DType::I64);
        let rows = expanded(&list, axis, &index_shape);
        let full = Array::new(&index_shape, indices(&index_shape).map(|at| list.data[at[axis]]).collect());
        for layout in 0..N_LAYOUTS {
            let (x, source) = (Array::sample(shape, 1), Array::sample(&index_shape, 2));
            let tensors = [tensor(&x, DType::F32, layout), tensor(&source, DType::F32, layout)];
            let picked = run(&Op::Gather(Gather { axis }), &[&tensors[0], &rows]).expect("a gather");
            let places = places(&x, axis, &full);
            assert_eq!(values(&picked[0]), places.iter().map(|&at| x.data[at]).collect::<Vec<_>>());
            let sums = run(&Op::ScatterAdd(ScatterAdd { axis }), &[&tensors[0], &rows, &tensors[1]]).expect("sums");
            let expected = added(axis)(&[x, full.clone(), source]);
            assert_eq!(values(&sums[0]), expected[0].data);
        }
    }
}

#[test]
fn one_value_is_where_sums_begin() {
    for (shape, axis, index_shape) in CASES {
        let one = Array::new(&vec![1; shape.len()], vec![3.0]);
        let x = tensor(&one, DType::F32, 0).expand(shape.to_vec()).expect("an expansion");
        let (indices, source) = (index(index_shape, shape[axis], DType::I32), Array::sample(index_shape, 2));
        let terms = [tensor(&indices, DType::I32, 0), tensor(&source, DType::F32, 0)];
        let sums = run(&Op::ScatterAdd(ScatterAdd { axis }), &[&x, &terms[0], &terms[1]]).expect("sums");
        let x = Array::new(shape, vec![3.0; shape.iter().product()]);
        assert_eq!(values(&sums[0]), added(axis)(&[x, indices, source])[0].data);
    }
}

#[test]
fn scatter_repeats() {
    let x = Array::new(&[16], vec![0.0; 16]);
    let index = Array::new(&[5], vec![1.0, 2.0, 4.0, 1.0, 4.0]).of(DType::I64);
    let source = Array::new(&[5], vec![1.0, 2.0, 4.0, 1.0, 4.0]);
    check(&Op::ScatterAdd(ScatterAdd { axis: 0 }), &[x, index, source], &NUMBERS, added(0));
}

#[test]
fn an_index_out_of_range_is_named() {
    let x = tensor(&Array::sample(&[2, 10], 1), DType::F32, 0);
    for (dtype, bad) in [(DType::I64, 10.0), (DType::I32, -1.0), (DType::I64, 12.0)] {
        let index = tensor(&Array::new(&[2, 2], vec![0.0, 9.0, bad, 3.0]).of(dtype), DType::F32, 0);
        let error = execute(&Op::Gather(Gather { axis: 1 }), &[&x, &index]).expect_err("an error");
        assert!(error.is_index());
        assert_eq!(
            error.to_string(),
            format!("gather: index is out of range: index {bad} at [1, 0], axis 1 has 10; indices count from 0")
        );
        let source = tensor(&Array::sample(&[2, 2], 1), DType::F32, 0);
        let error = execute(&Op::ScatterAdd(ScatterAdd { axis: 1 }), &[&x, &index, &source]).expect_err("an error");
        assert!(error.is_index());
    }
    let rows = expanded(&Array::new(&[3], vec![1.0, 5.0, 2.0]).of(DType::I64), 0, &[3, 10]);
    let error = execute(&Op::Gather(Gather { axis: 0 }), &[&x, &rows]).expect_err("an error");
    assert!(error.to_string().contains("index 5 at [1, 0], axis 0 has 2"), "{error}");
}
