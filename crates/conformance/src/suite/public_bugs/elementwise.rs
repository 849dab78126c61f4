//! Functions of elements, and views of them.

use tensor_core::DType;

use super::{Expect, Given, PublicBug};

/// 43.6 to 44.4 in steps, and what is beyond any range, with both signs.
fn large() -> Vec<Given> {
    let ends = [89.0, 1e4, f64::INFINITY];
    let values: Vec<f64> = (0..=80).map(|i| 43.6 + 0.01 * f64::from(i)).chain(ends).flat_map(|x| [x, -x]).collect();
    vec![Given::new(&[values.len()], DType::F32, values)]
}

fn integers(dtype: DType) -> Vec<Given> {
    vec![
        Given::new(&[2], dtype, [-2.0, 2.0]),
        Given::new(&[2], dtype, [3.0, -3.0]),
        Given::new(&[1, 3], dtype, [10.0, 20.0, 30.0]),
        Given::new(&[1, 1], dtype, [7.0]),
    ]
}

pub(super) const BUGS: &[PublicBug] = &[
    PublicBug {
        name: "odd-permute",
        report: "burn#3894",
        inputs: || vec![Given::by(&[27, 31, 31], |i| i)],
        run: |x| Ok(vec![x[0].permute([1, 2, 0])?.contiguous()?]),
        expect: Expect::Reference,
    },
    PublicBug {
        name: "one-element-views",
        report: "candle#1914",
        inputs: || vec![Given::new(&[2, 1], DType::F32, [3.0, 4.0])],
        run: |x| Ok(vec![x[0].narrow(0, 0, 1)?.add(&x[0].narrow(0, 1, 1)?)?]),
        expect: Expect::Values(&[&[7.0]]),
    },
    PublicBug {
        name: "expand-grad",
        report: "candle#3873",
        inputs: || vec![Given::by(&[1, 1, 4, 2], |i| i)],
        run: |x| {
            let half_square =
                |x: &tensor_core::Tensor| x.unsqueeze(2)?.expand([1, 1, 3, 4, 2])?.square()?.sum(..)?.mul(0.5);
            Ok(vec![nn::gradient(half_square, &x[0])?])
        },
        expect: Expect::Values(&[&[0.0, 3.0, 6.0, 9.0, 12.0, 15.0, 18.0, 21.0]]),
    },
    PublicBug {
        name: "int-remainder/i32",
        report: "cubecl#1036",
        inputs: || integers(DType::I32),
        run: |x| Ok(vec![x[0].rem(&x[1])?, x[2].rem(&x[3])?]),
        expect: Expect::Values(&[&[1.0, -1.0], &[3.0, 6.0, 2.0]]),
    },
    PublicBug {
        name: "int-remainder/i64",
        report: "burn#5002",
        inputs: || integers(DType::I64),
        run: |x| Ok(vec![x[0].rem(&x[1])?, x[2].rem(&x[3])?]),
        expect: Expect::Values(&[&[1.0, -1.0], &[3.0, 6.0, 2.0]]),
    },
    PublicBug {
        name: "tanh-large",
        report: "burn#520, candle#2475",
        inputs: large,
        run: |x| Ok(vec![x[0].tanh()?]),
        expect: Expect::Reference,
    },
    PublicBug {
        name: "softplus-large",
        report: "burn#5373",
        inputs: || vec![Given::new(&[6], DType::F32, [20.0, 50.0, 100.0, -20.0, -100.0, 0.0])],
        run: |x| [1.0, 5.0].into_iter().map(|beta| x[0].map(|x| (x * beta).softplus() / beta)).collect(),
        expect: Expect::Reference,
    },
    PublicBug {
        name: "gone-denormal",
        report: "",
        inputs: || vec![Given::new(&[4], DType::F32, [1e-20, -3e-30, 1.5e-38, 1e-45]), Given::by(&[4], |i| 1e-19 * i)],
        run: |x| Ok(vec![x[0].mul(&x[1])?, x[0].mul(&x[0])?, x[0].sub(&x[0].mul(0.999)?)?, x[0].mul(1e-3)?.sum(..)?]),
        expect: Expect::Reference,
    },
];
