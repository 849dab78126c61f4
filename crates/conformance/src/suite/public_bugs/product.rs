//! Products of matrices.

use tensor_core::{DType, Tensor, expr};

use super::{Expect, Given, PublicBug};

pub(super) const BUGS: &[PublicBug] = &[
    PublicBug {
        name: "matmul-lone-batch",
        report: "burn#4907",
        inputs: || vec![Given::by(&[1, 8, 512, 512], lone_lhs), Given::by(&[1, 8, 512, 32], lone_rhs)],
        run: |x| Ok(vec![x[0].matmul(&x[1])?]),
        expect: Expect::Sums(512, lone_batch),
    },
    PublicBug {
        name: "empty-matmul",
        report: "candle#3756",
        inputs: || [[2, 0], [0, 3]].map(|dims| Given::by(&dims, |_| 1.0)).into(),
        run: |x| Ok(vec![x[0].matmul(&x[1])?]),
        expect: Expect::Values(&[&[0.0; 6]]),
    },
    PublicBug {
        name: "empty-matmul/rows",
        report: "candle#3756",
        inputs: || [[0, 2], [2, 3]].map(|dims| Given::by(&dims, |_| 1.0)).into(),
        run: |x| Ok(vec![x[0].matmul(&x[1])?]),
        expect: Expect::Values(&[&[]]),
    },
    PublicBug {
        name: "empty-matmul/batch",
        report: "candle#3756",
        inputs: || [[2, 3, 0], [2, 0, 4]].map(|dims| Given::by(&dims, |_| 1.0)).into(),
        run: |x| Ok(vec![x[0].matmul(&x[1])?]),
        expect: Expect::Values(&[&[0.0; 24]]),
    },
    PublicBug {
        name: "strided-matvec",
        report: "candle#1948",
        inputs: || vec![Given::by(&[2048, 1], strided_lhs), Given::by(&[2048, 3], strided_rhs)],
        run: |x| {
            let wide = Tensor::full([2048, 16_384], f64::NAN, (x[0].place(), x[0].dtype()))?;
            Ok(vec![wide.slice_assign(1, 5..6, &x[0])?.narrow(1, 5, 1)?.t()?.matmul(&x[1])?])
        },
        expect: Expect::Sums(2048, strided),
    },
    PublicBug {
        name: "head-tanh",
        report: "burn#5122",
        inputs: || {
            let (rows, column) = (Given::by(&[300, 7], |i| (0.37 * i).sin()), Given::by(&[7, 1], |i| 0.3 * i - 0.8));
            vec![rows, column, Given::new(&[1], DType::F32, [0.25])]
        },
        run: |x| {
            let head = |n| {
                let rows = x[0].narrow(0, 0, n)?;
                rows.matmul_with(&x[1], &expr::build(|[y, b]| y + b), &[&x[2]])?.tanh()
            };
            (1..=300).step_by(13).map(head).collect()
        },
        expect: Expect::Reference,
    },
];

fn lone_lhs(i: f64) -> f64 {
    f64::from((0.001 * i).sin() as f32)
}

fn lone_rhs(i: f64) -> f64 {
    f64::from((0.003 * i).sin() as f32)
}

/// Σₖ lhs(i·K + k)·rhs(k·N + j) and the terms' sizes, from offsets on.
fn product(
    (m, k, n): (usize, usize, usize),
    lhs: impl Fn(usize) -> f64,
    rhs: impl Fn(usize) -> f64,
) -> Vec<(f64, f64)> {
    let lhs: Vec<f64> = (0..m * k).map(lhs).collect();
    let rhs: Vec<f64> = (0..k * n).map(rhs).collect();
    let sum = |i: usize, j: usize| {
        (0..k).fold((0.0, 0.0), |(sum, size), p| {
            let term = lhs[i * k + p] * rhs[p * n + j];
            (sum + term, size + f64::abs(term))
        })
    };
    (0..m * n).map(|at| sum(at / n, at % n)).collect()
}

fn lone_batch() -> Vec<(f64, f64)> {
    let of = |b: usize| {
        let (lhs, rhs) = (move |i| lone_lhs((b * 512 * 512 + i) as f64), move |i| lone_rhs((b * 512 * 32 + i) as f64));
        product((512, 512, 32), lhs, rhs)
    };
    (0..8).flat_map(of).collect()
}

fn strided_lhs(i: f64) -> f64 {
    f64::from((0.01 * i).sin() as f32)
}

fn strided_rhs(i: f64) -> f64 {
    f64::from((0.02 * i).cos() as f32)
}

fn strided() -> Vec<(f64, f64)> {
    product((1, 2048, 3), |i| strided_lhs(i as f64), |i| strided_rhs(i as f64))
}
