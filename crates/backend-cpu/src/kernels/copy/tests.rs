use tensor_core::{DType, Op, Shape, Tensor, execute};

use crate::kernels::testing::{Array, Expected, check, run, tensor, values};

#[test]
fn every_layout_becomes_row_major() {
    let shapes: [&[usize]; 12] = [
        &[],
        &[0, 3],
        &[1],
        &[5],
        &[3, 1031],
        &[40, 50],
        &[64, 64],
        &[17, 3, 5],
        &[130, 70],
        &[4, 33, 65],
        &[16, 2, 3, 17],
        &[1, 19, 1, 18],
    ];
    for shape in shapes {
        let dtypes: &[DType] = if shape.len() < 3 { &DType::ALL[..7] } else { &[DType::F32, DType::F16] };
        check(&Op::Copy, &[Array::sample(shape, 3)], dtypes, |x| vec![Expected::exact(x[0].data.clone())]);
    }
    let truths = Array::new(&[3, 20], (0..60).map(|i| f64::from(i % 3 == 0)).collect());
    check(&Op::Copy, &[truths], &[DType::Bool], |x| vec![Expected::exact(x[0].data.clone())]);
}

#[test]
fn large_copies_are_cut_over_threads() {
    for shape in [&[700, 600][..], &[3, 500, 301], &[2, 3, 70_001]] {
        check(&Op::Copy, &[Array::sample(shape, 1)], &[DType::F32], |x| vec![Expected::exact(x[0].data.clone())]);
    }
}

#[test]
fn repeated_elements_are_written_out() {
    let x = Array::sample(&[3, 1, 50], 2);
    let from = tensor(&x, DType::F32, 0).expand([2, 3, 40, 50]).expect("broadcasts");
    let got = values(&run(&Op::Copy, &[&from]).expect("runs")[0]);
    for (i, got) in got.into_iter().enumerate() {
        assert_eq!(got, x.data[i / 2000 % 3 * 50 + i % 50]);
    }
    let column = tensor(&Array::sample(&[30, 1], 2), DType::F64, 1).expand([30, 70]).expect("broadcasts");
    let got = values(&run(&Op::Copy, &[&column]).expect("runs")[0]);
    assert!(got.chunks(70).zip(Array::sample(&[30, 1], 2).data).all(|(row, v)| row.iter().all(|&w| w == v)));
}

#[test]
fn a_download_follows_the_layout() {
    let x = Tensor::arange(0, 24, 1, (&crate::device(), DType::I64)).and_then(|x| x.reshape([4, 6])).expect("made");
    let view = x.t().and_then(|x| x.slice(0, 1.., 2)).and_then(|x| x.flip(1)).expect("a view");
    assert_eq!(view.to_vec::<i64>().expect("values"), [19, 13, 7, 1, 21, 15, 9, 3, 23, 17, 11, 5]);
    let same = execute(&Op::Copy, &[&view]).expect("runs")[0].clone();
    assert_eq!(same.shape(), &Shape::new(&[3, 4]));
    assert_eq!(same.to_vec::<i64>().expect("values"), view.to_vec::<i64>().expect("values"));
}
