//! Reductions, running folds and sorting.

use tensor_core::{DType, Result, Tensor};

use super::{Expect, Given, PublicBug};

const NAN: f64 = f64::NAN;

fn extrema(x: &Tensor) -> Result<Vec<Tensor>> {
    Ok(vec![x.max(..)?, x.min(..)?, x.argmax(0)?, x.argmin(0)?])
}

fn folds(x: &Tensor, axis: usize) -> Result<Vec<Tensor>> {
    Ok(vec![x.sum_keepdim(axis)?, x.prod_keepdim(axis)?, x.mean_keepdim(axis)?])
}

fn sorted(x: &[Tensor]) -> Result<Vec<Tensor>> {
    x[0].sort(1, false).map(|(values, positions)| vec![values, positions])
}

fn jumbled(dims: &[usize]) -> Vec<Given> {
    vec![Given::by(dims, |i| (i * 7919.0) % 10_007.0)]
}

pub(super) const BUGS: &[PublicBug] = &[
    PublicBug {
        name: "extremum-seed/min",
        report: "burn#1427",
        inputs: || [DType::F32, DType::I32, DType::I64].map(|dtype| Given::new(&[2], dtype, [32768.0, 32767.0])).into(),
        run: |x| x.iter().map(|x| x.min(..)).chain(x.iter().map(|x| x.argmin(0))).collect(),
        expect: Expect::Values(&[&[32767.0], &[32767.0], &[32767.0], &[1.0], &[1.0], &[1.0]]),
    },
    PublicBug {
        name: "extremum-seed/max",
        report: "burn#1427",
        inputs: || {
            [DType::F32, DType::I32, DType::I64].map(|dtype| Given::new(&[2], dtype, [-32768.0, -32767.0])).into()
        },
        run: |x| x.iter().map(|x| x.max(..)).chain(x.iter().map(|x| x.argmax(0))).collect(),
        expect: Expect::Values(&[&[-32767.0], &[-32767.0], &[-32767.0], &[1.0], &[1.0], &[1.0]]),
    },
    PublicBug {
        name: "extremum-nan",
        report: "burn#4814, burn#5155",
        inputs: || vec![Given::new(&[3], DType::F32, [1.0, NAN, 5.0])],
        run: |x| Ok([extrema(&x[0])?, vec![x[0].cummax(0)?]].concat()),
        expect: Expect::Values(&[&[NAN], &[NAN], &[1.0], &[1.0], &[1.0, NAN, NAN]]),
    },
    PublicBug {
        name: "sum-of-transposed",
        report: "burn#4861",
        inputs: || vec![Given::by(&[2, 3], |i| i + 1.0)],
        run: |x| folds(&x[0].t()?, 1),
        expect: Expect::Values(&[&[5.0, 7.0, 9.0], &[4.0, 10.0, 18.0], &[2.5, 3.5, 4.5]]),
    },
    PublicBug {
        name: "scan-of-transposed",
        report: "burn#3891",
        inputs: || vec![Given::by(&[2, 2], |i| i + 1.0)],
        run: |x| Ok(vec![x[0].t()?.cumsum(1)?]),
        expect: Expect::Values(&[&[1.0, 4.0, 2.0, 6.0]]),
    },
    PublicBug {
        name: "empty-reduce",
        report: "burn#5310",
        inputs: || vec![Given::by(&[0], |_| 0.0)],
        run: |x| Ok(vec![x[0].sum(..)?, x[0].prod(..)?, x[0].mean(..)?]),
        expect: Expect::Values(&[&[0.0], &[1.0], &[NAN]]),
    },
    PublicBug {
        name: "empty-reduce/rows",
        report: "burn#5333",
        inputs: || vec![Given::by(&[3, 0], |_| 0.0)],
        run: |x| Ok([folds(&x[0], 1)?, vec![x[0].sum(0)?]].concat()),
        expect: Expect::Values(&[&[0.0; 3], &[1.0; 3], &[NAN; 3], &[]]),
    },
    PublicBug {
        name: "empty-reduce/broadcast",
        report: "burn#5335",
        inputs: || [vec![2, 0], vec![2, 1], vec![0], vec![1]].map(|dims| Given::by(&dims, |_| 1.0)).into(),
        run: |x| Ok(vec![x[0].add(&x[1])?, x[2].add(&x[3])?]),
        expect: Expect::Values(&[&[], &[]]),
    },
    PublicBug {
        name: "bool-reduce",
        report: "burn#3664",
        inputs: || {
            let lone = Given::new(&[1000], DType::Bool, (0..1000).map(|i| f64::from(i == 777)));
            let same = [0.0, 1.0].map(|truth| Given::new(&[256], DType::Bool, [truth; 256]));
            same.into_iter().chain([lone]).collect()
        },
        run: |x| x.iter().flat_map(|x| [x.any(..), x.all(..)]).collect(),
        expect: Expect::Values(&[&[0.0], &[0.0], &[1.0], &[1.0], &[1.0], &[0.0]]),
    },
    PublicBug {
        name: "row-limit-sort",
        report: "candle#3050",
        inputs: || jumbled(&[65_600, 3]),
        run: sorted,
        expect: Expect::Reference,
    },
    PublicBug {
        name: "row-limit-sort/past-a-block",
        report: "candle#2361",
        inputs: || jumbled(&[2, 8193]),
        run: sorted,
        expect: Expect::Reference,
    },
    PublicBug {
        name: "row-limit-sort/long",
        report: "candle#2361",
        inputs: || jumbled(&[2, 32_000]),
        run: sorted,
        expect: Expect::Reference,
    },
];
