use tensor_core::op::{Normalize, NormalizeGrad};
use tensor_core::{DType, Dims, Op};

use crate::kernels::testing::{Array, Expected, check, indices, run, tensor, values};

const EPSILON: f64 = 1e-5;

/// For every element the number of its group, and how many groups there are.
fn groups(shape: &[usize], axes: &[usize]) -> (Vec<usize>, usize) {
    let kept: Vec<usize> = (0..shape.len()).filter(|a| !axes.contains(a)).collect();
    let group = |index: &Vec<usize>| kept.iter().fold(0, |at, &a| at * shape[a] + index[a]);
    (indices(shape).map(|index| group(&index)).collect(), kept.iter().map(|&a| shape[a]).product())
}

fn means(of: impl Iterator<Item = f64>, groups: &[usize], n_groups: usize) -> Vec<f64> {
    let mut sums = vec![(0.0, 0.0); n_groups];
    for (v, &group) in of.zip(groups) {
        sums[group].0 += v;
        sums[group].1 += 1.0;
    }
    sums.into_iter().map(|(sum, n)| sum / n).collect()
}

fn reference(x: &Array, axes: &[usize], center: bool) -> Vec<Expected> {
    let (group, n) = groups(&x.shape, axes);
    let mean = if center { means(x.data.iter().copied(), &group, n) } else { vec![0.0; n] };
    let squares = x.data.iter().zip(&group).map(|(v, &g)| (v - mean[g]).powi(2));
    let rstd: Vec<f64> = means(squares, &group, n).iter().map(|v| 1.0 / (v + EPSILON).sqrt()).collect();
    // The mean is off by roundings of the largest that was added up.
    let largest = x.data.iter().fold(0.0, |top: f64, v| top.max(v.abs()));
    let y = x.data.iter().zip(&group).map(|(v, &g)| ((v - mean[g]) * rstd[g], (v.abs() + largest) * rstd[g]));
    // f64 is added up in f64: a rounding per term.
    let slack = 4.0 + (x.data.len() / n.max(1)) as f64 / 64.0;
    let mut outputs = vec![Expected::within(slack, y.collect())];
    outputs.push(Expected::within(slack, rstd.iter().map(|&v| (v, v)).collect()));
    if center {
        outputs.push(Expected::within(slack, mean.iter().map(|&v| (v, largest)).collect()));
    }
    outputs
}

fn normalize(axes: &[usize], center: bool) -> Op {
    Op::Normalize(Normalize { axes: Dims::from_slice(axes), epsilon: EPSILON, center })
}

const CASES: [(&[usize], &[usize]); 11] = [
    (&[4, 10], &[1]),
    (&[4, 10], &[0]),
    (&[3, 4, 5], &[1, 2]),
    (&[3, 4, 5], &[0, 2]),
    (&[2, 3, 4, 5], &[0, 2, 3]),
    (&[2, 3, 4, 5], &[2, 3]),
    (&[2, 3, 4, 5], &[1, 3]),
    (&[7], &[0]),
    (&[30, 700], &[1]),
    (&[300, 70], &[0]),
    (&[5, 1], &[1]),
];

#[test]
fn layer_batch_and_other_norms() {
    for (shape, axes) in CASES {
        for center in [true, false] {
            let x = Array::noise(shape, 2);
            check(&normalize(axes, center), &[x], &DType::FLOATS, |x| reference(&x[0], axes, center));
        }
    }
}

#[test]
fn adjoints() {
    for (shape, axes) in CASES {
        let (group, n) = groups(shape, axes);
        let kept: Vec<usize> = shape.iter().enumerate().map(|(a, &n)| if axes.contains(&a) { 1 } else { n }).collect();
        let rstd = Array::new(&kept, (0..n).map(|i| 0.5 + (i % 4) as f64).collect());
        for center in [true, false] {
            let op = Op::NormalizeGrad(NormalizeGrad { axes: Dims::from_slice(axes), center });
            check(&op, &[Array::noise(shape, 1), Array::noise(shape, 2), rstd.clone()], &DType::FLOATS, |inputs| {
                let (g, y, rstd) = (&inputs[0].data, &inputs[1].data, &inputs[2].data);
                let mean = if center { means(g.iter().copied(), &group, n) } else { vec![0.0; n] };
                let slope = means(g.iter().zip(y).map(|(g, y)| g * y), &group, n);
                let values = (0..g.len()).map(|i| {
                    let k = group[i];
                    let dx = rstd[k] * (g[i] - mean[k] - y[i] * slope[k]);
                    (dx, rstd[k] * (g[i].abs() + mean[k].abs() + (y[i] * slope[k]).abs()))
                });
                vec![Expected::within(8.0, values.collect())]
            });
        }
    }
}

#[test]
fn huge_values_and_large_means() {
    let wave = |i: usize, size: f64| (i as f64 * 0.37).sin() * size;
    for size in [7e9, 1e25, 1e30] {
        let x = Array::new(&[4, 6912], (0..4 * 6912).map(|i| wave(i, size)).collect());
        for center in [true, false] {
            check(&normalize(&[1], center), std::slice::from_ref(&x), &[DType::F32], |x| {
                reference(&x[0], &[1], center)
            });
        }
    }
    // A mean 10,000 times the deviation, after an outlier.
    let mut x = Array::new(&[2, 3000], (0..6000).map(|i| 1e4 + wave(i, 1.0)).collect());
    x.data[0] = -5e5;
    check(&normalize(&[1], true), &[x], &[DType::F32], |x| reference(&x[0], &[1], true));
}

#[test]
fn a_mean_of_nothing_is_nan() {
    let x = tensor(&Array::new(&[2, 0], vec![]), DType::F32, 0);
    let outputs = run(&normalize(&[1], true), &[&x]).expect("a norm");
    assert!(outputs[1..].iter().all(|output| values(output).iter().all(|v| v.is_nan())));
}
