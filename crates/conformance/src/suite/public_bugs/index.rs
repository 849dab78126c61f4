//! Adding by index.

use tensor_core::DType;

use super::{Expect, Given, PublicBug};

pub(super) const BUGS: &[PublicBug] = &[
    PublicBug {
        name: "scatter-repeats",
        report: "burn#5195",
        inputs: || {
            let index = Given::new(&[5], DType::I64, [1.0, 2.0, 4.0, 1.0, 4.0]);
            vec![Given::by(&[16], |_| 0.0), index, Given::new(&[5], DType::F32, [1.0, 2.0, 4.0, 1.0, 8.0])]
        },
        run: |x| Ok(vec![x[0].scatter_add(0, &x[1], &x[2])?.reshape([1, 2, 4, 2])?]),
        expect: Expect::Values(&[&[0.0, 2.0, 2.0, 0.0, 12.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]]),
    },
    PublicBug {
        name: "wide-scatter-grad",
        report: "burn#4063",
        inputs: || {
            let index = Given::new(&[2, 2], DType::I64, [3.0, 0.0, 3.0, 1.0]);
            let source = Given::new(&[2, 2], DType::F64, [1.0, 2.0, 3.0, 4.0]);
            vec![Given::new(&[4, 3], DType::F64, [0.0; 12]), index, source]
        },
        run: |x| {
            let weight = x[0].add(2.0)?.cumsum(0)?;
            let by_source = nn::gradient(|s| x[0].scatter_add(0, &x[1], s)?.mul(&weight)?.sum(..), &x[2])?;
            let by_x = nn::gradient(|x0| x0.scatter_add(0, &x[1], &x[2])?.mul(&weight)?.sum(..), &x[0])?;
            Ok(vec![x[0].scatter_add(0, &x[1], &x[2])?, by_source, by_x])
        },
        expect: Expect::Values(&[
            &[0.0, 2.0, 0.0, 0.0, 4.0, 0.0, 0.0, 0.0, 0.0, 4.0, 0.0, 0.0],
            &[8.0, 2.0, 8.0, 4.0],
            &[2.0, 2.0, 2.0, 4.0, 4.0, 4.0, 6.0, 6.0, 6.0, 8.0, 8.0, 8.0],
        ]),
    },
];
