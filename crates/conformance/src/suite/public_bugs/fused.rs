//! Paths that backends and interpreters run in one pass, against the same written out.

use tensor_core::{AttentionOptions, DType, Result, Tensor, zip};

use super::{Expect, Given, PublicBug, slope};

/// A row's softmax, written out.
fn softmax(x: &Tensor) -> Result<Tensor> {
    let e = zip(x, &x.max_keepdim(-1)?, |x, max| (x - max).exp())?;
    e.div(&e.sum_keepdim(-1)?)
}

fn masked(x: &Tensor) -> Result<Tensor> {
    let future = Tensor::ones(&x.dims()[1..], (x.place(), DType::I32))?.triu(1)?.gt(0)?;
    x.masked_fill(&future, -10000.0)
}

/// x over its root mean square along the last axis, or over its deviation.
fn normal(x: &Tensor, center: bool) -> Result<Tensor> {
    let x = if center { x.sub(&x.mean_keepdim(-1)?)? } else { x.clone() };
    x.mul(&x.square()?.mean_keepdim(-1)?.map(|v| (v + 1e-5).rsqrt())?)
}

fn attention(x: &Tensor) -> Result<Tensor> {
    let future = Tensor::ones([4, 4], (x.place(), DType::I32))?.triu(1)?.gt(0)?;
    let scores = x.matmul(&x.transpose(-2, -1)?)?.mul(0.5)?.masked_fill(&future, f64::NEG_INFINITY)?;
    softmax(&scores)?.matmul(x)
}

/// Halves of the last axis turned by an angle that grows with the position.
fn rotary(x: &Tensor) -> Result<Tensor> {
    let angle = Tensor::arange(0, 4, 1, (x.place(), x.dtype()))?.unsqueeze(-1)?;
    let (a, b) = (x.narrow(-1, 0, 3)?, x.narrow(-1, 3, 3)?);
    let (cos, sin) = (angle.cos()?, angle.sin()?);
    Tensor::cat(&[a.mul(&cos)?.sub(&b.mul(&sin)?)?, b.mul(&cos)?.add(&a.mul(&sin)?)?], -1)
}

/// An input, and weights of the sum that is differentiated.
fn waves() -> Vec<Given> {
    let wave = |step: f64| Given::new(&[2, 4, 6], DType::F64, (0..48).map(|i| (step * f64::from(i)).sin()));
    vec![wave(0.7), wave(0.3)]
}

pub(super) const BUGS: &[PublicBug] = &[
    PublicBug {
        name: "masked-softmax",
        report: "burn#5268",
        inputs: || vec![Given::by(&[6, 96, 96], |i| (i / 55_296.0 - 0.5) * 20.0)],
        run: |x| Ok(vec![masked(&x[0])?.softmax(-1)?, softmax(&masked(&x[0])?)?]),
        expect: Expect::Definition(|x| {
            let written_out = softmax(&masked(&x[0])?)?;
            Ok(vec![written_out.clone(), written_out])
        }),
    },
    PublicBug {
        name: "norm-huge",
        report: "candle#3477",
        inputs: || vec![Given::by(&[4, 6912], |i| 7e9 * i.sin())],
        run: |x| Ok(vec![x[0].rms_normalize(-1, 1e-6)?]),
        expect: Expect::Reference,
    },
    PublicBug {
        name: "cut-graph/softmax",
        report: "candle#2168, candle#3568",
        inputs: waves,
        run: |x| Ok(vec![slope(x, |x| x.softmax(-1))?]),
        expect: Expect::Definition(|x| Ok(vec![slope(x, softmax)?])),
    },
    PublicBug {
        name: "cut-graph/log-softmax",
        report: "candle#2168, candle#3568",
        inputs: waves,
        run: |x| Ok(vec![slope(x, |x| x.log_softmax(-1))?]),
        expect: Expect::Definition(|x| Ok(vec![slope(x, |x| softmax(x)?.ln())?])),
    },
    PublicBug {
        name: "cut-graph/layer-norm",
        report: "candle#2168, candle#3568",
        inputs: waves,
        run: |x| Ok(vec![slope(x, |x| x.normalize(-1, 1e-5))?]),
        expect: Expect::Definition(|x| Ok(vec![slope(x, |x| normal(x, true))?])),
    },
    PublicBug {
        name: "cut-graph/rms-norm",
        report: "candle#2168, candle#3568",
        inputs: waves,
        run: |x| Ok(vec![slope(x, |x| x.rms_normalize(-1, 1e-5))?]),
        expect: Expect::Definition(|x| Ok(vec![slope(x, |x| normal(x, false))?])),
    },
    PublicBug {
        name: "cut-graph/rotary",
        report: "candle#2168, candle#3568",
        inputs: waves,
        run: |x| Ok(vec![slope(x, rotary)?]),
        expect: Expect::Reference,
    },
    PublicBug {
        name: "cut-graph/attention",
        report: "candle#2168, candle#3568",
        inputs: waves,
        run: |x| {
            let options = AttentionOptions { scale: Some(0.5), causal: true, mask: None };
            Ok(vec![slope(x, |x| x.attention(x, x, &options))?])
        },
        expect: Expect::Definition(|x| Ok(vec![slope(x, attention)?])),
    },
];
