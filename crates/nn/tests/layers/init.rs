//! Initialisers: spread and bounds, orthogonality, the same numbers for a seed, each layer's default.

use nn::init::{Fan, Init, fans};
use nn::{Linear, Module};
use tensor_core::{DType, Result, Shape, Tensor};

use crate::{FLOATS, device, fails, seeded, values};

/// Standard deviation and largest magnitude of 50,000 numbers; the mean must be near 0.
fn spread(init: Init) -> Result<(f64, f64)> {
    let x = values(&seeded(1, || init.tensor([200, 250], (&device(), DType::F64)))?)?;
    let n = x.len() as f64;
    let (mean, square) = (x.iter().sum::<f64>() / n, x.iter().map(|x| x * x).sum::<f64>() / n);
    let std = square.sqrt();
    assert!(mean.abs() < 5.0 * std / n.sqrt(), "{init:?}: mean {mean}");
    Ok((std, x.iter().fold(0.0, |a, b| a.max(b.abs()))))
}

#[test]
fn random_weights_have_the_spread_and_bounds_of_their_formula() -> Result<()> {
    // [out, in] = [200, 250]: fan_in 250, fan_out 200, mean 225.
    let check = |init: Init, std: f64, bound: f64| -> Result<()> {
        let (got, largest) = spread(init)?;
        // Five standard deviations of the estimate.
        assert!((got / std - 1.0).abs() < 5.0 / 100_000f64.sqrt(), "{init:?}: std {got}, wanted {std}");
        assert!(largest <= bound, "{init:?}: largest {largest}, bound {bound}");
        assert!(bound.is_infinite() || largest > 0.99 * bound, "{init:?}: largest {largest}, bound {bound}");
        Ok(())
    };
    let no_bound = f64::INFINITY;
    check(Init::glorot_uniform(), (2.0f64 / 450.0).sqrt(), (6.0f64 / 450.0).sqrt())?;
    check(Init::glorot_normal(), (2.0f64 / 450.0).sqrt(), no_bound)?;
    check(Init::kaiming_uniform(), (2.0f64 / 250.0).sqrt(), (6.0f64 / 250.0).sqrt())?;
    check(Init::kaiming_normal(), (2.0f64 / 250.0).sqrt(), no_bound)?;
    check(Init::lecun_uniform(), (1.0f64 / 250.0).sqrt(), (3.0f64 / 250.0).sqrt())?;
    check(Init::lecun_normal(), (1.0f64 / 250.0).sqrt(), no_bound)?;
    check(Init::ScaledNormal { fan: Fan::Out, gain: 2.0 }, 2.0 / 200f64.sqrt(), no_bound)?;
    check(Init::torch_weight(), (1.0f64 / 750.0).sqrt(), (1.0f64 / 250.0).sqrt())?;
    check(Init::Uniform { low: -0.5, high: 0.5 }, (1.0f64 / 12.0).sqrt(), 0.5)?;
    check(Init::Normal { mean: 0.0, std: 0.02 }, 0.02, no_bound)?;
    // The standard deviation of a normal cut at ±2: √(1 − 4φ(2)/(2Φ(2) − 1)).
    check(Init::truncated_normal(0.02), 0.02 * 0.879_625_661_034_234, 0.04)
}

#[test]
fn a_normal_cut_far_from_its_mean_stays_in_its_interval() -> Result<()> {
    let init = Init::TruncatedNormal { mean: 1.0, std: 0.5, low: 2.5, high: 4.0 };
    let x = values(&seeded(2, || init.tensor([1000], (&device(), DType::F64)))?)?;
    assert!(x.iter().all(|x| (2.5..=4.0).contains(x)));
    // Beyond 3σ: 3σ + σ·(φ(3)/(1 − Φ(3)) − 3) = 3.2831σ above the mean.
    let mean = x.iter().sum::<f64>() / 1000.0;
    assert!((mean - (1.0 + 0.5 * 3.2831)).abs() < 0.02, "mean {mean}");
    Ok(())
}

#[test]
fn orthogonal_rows_or_columns_are_orthonormal() -> Result<()> {
    let check = |shape: &[usize]| -> Result<()> {
        let init = Init::Orthogonal { gain: 2.0 };
        let w = seeded(3, || init.tensor(shape, (&device(), DType::F64)))?.reshape([shape[0] as i64, -1])?;
        let w = if w.dims()[0] <= w.dims()[1] { w } else { w.t()? };
        let product = w.matmul(&w.t()?)?;
        let n = w.dims()[0];
        let expected = Tensor::eye(n, (&device(), DType::F64))?.mul(4.0)?;
        assert!(product.allclose(&expected, 0.0, 1e-12)?, "{shape:?}: {:?}", values(&product)?);
        Ok(())
    };
    check(&[5, 5])?;
    check(&[3, 8])?;
    check(&[8, 3])?;
    check(&[4, 2, 3, 3])
}

#[test]
fn constants_and_identities_are_exact() -> Result<()> {
    let check = |init: Init, shape: &[usize], expected: &[f64]| -> Result<()> {
        assert_eq!(values(&init.tensor(shape, &device())?)?, expected, "{init:?}");
        Ok(())
    };
    check(Init::ZEROS, &[2], &[0.0, 0.0])?;
    check(Init::ONES, &[2], &[1.0, 1.0])?;
    check(Init::Constant(0.25), &[1], &[0.25])?;
    check(Init::Identity, &[2, 3], &[1.0, 0.0, 0.0, 0.0, 1.0, 0.0])?;
    // Two channels, three taps: the middle one.
    check(Init::Identity, &[2, 2, 3], &[0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0])?;
    check(Init::TruncatedNormal { mean: 3.0, std: 0.0, low: 0.0, high: 2.0 }, &[2], &[2.0, 2.0])
}

#[test]
fn a_seed_gives_the_same_numbers_and_another_seed_others() -> Result<()> {
    for init in
        [Init::glorot_uniform(), Init::glorot_normal(), Init::truncated_normal(1.0), Init::Orthogonal { gain: 1.0 }]
    {
        let draw = |seed| seeded(seed, || values(&init.tensor([4, 4], &device())?));
        assert_eq!(draw(7)?, draw(7)?, "{init:?}");
        assert_ne!(draw(7)?, draw(8)?, "{init:?}");
        let twice = seeded(7, || {
            Ok::<_, tensor_core::Error>((init.tensor([4, 4], &device())?, init.tensor([4, 4], &device())?))
        })?;
        assert_ne!(values(&twice.0)?, values(&twice.1)?, "{init:?}");
    }
    Ok(())
}

#[test]
fn another_device_gets_the_same_model() -> Result<()> {
    let (other, _) = backend_cpu::test_device("other", 0);
    let make = |device: &tensor_core::Device| {
        seeded(5, || {
            let model = nn::chain![
                Linear::new(6, 4, device)?,
                nn::Conv1d::new(2, 4, 3, device)?,
                nn::Embedding::new(5, 3, device)?
            ];
            model.parameters().iter().map(|p| values(p)).collect::<Result<Vec<_>>>()
        })
    };
    assert_eq!(make(&device())?, make(&other)?);
    Ok(())
}

#[test]
fn layers_start_as_their_docs_say() -> Result<()> {
    let d = &device();
    let within = |x: &Tensor, bound: f64| -> Result<()> {
        let x = values(x)?;
        assert!(x.iter().all(|x| x.abs() <= bound) && x.iter().any(|x| x.abs() > 0.5 * bound), "{bound}: {x:?}");
        Ok(())
    };
    seeded(6, || {
        let linear = Linear::new(16, 32, d)?;
        within(&linear.weight, 0.25)?;
        within(linear.bias.as_deref().expect("there is a bias"), 0.25)?;
        let conv = nn::Conv2d::new(4, 32, 2, d)?;
        within(&conv.weight, 0.25)?;
        within(conv.bias.as_deref().expect("there is a bias"), 0.25)?;
        let padded = nn::EmbeddingOptions { padding_index: Some(1), ..Default::default() };
        let table = values(&nn::Embedding::with(3, 2, padded, d)?.weight)?;
        assert!(table[2..4] == [0.0, 0.0] && table[..2].iter().chain(&table[4..]).all(|x| *x != 0.0));
        let attention = nn::MultiHeadAttention::new(16, 2, d)?;
        within(&attention.query.weight, (6.0f64 / 32.0).sqrt())?;
        within(&attention.output.weight, 0.25)?;
        for linear in [&attention.query, &attention.key, &attention.value, &attention.output] {
            assert!(values(linear.bias.as_deref().expect("there is a bias"))?.iter().all(|x| *x == 0.0));
        }
        let norm = nn::BatchNorm2d::new(2, d)?;
        let state: Vec<_> =
            norm.state_dict().into_iter().map(|(name, x)| Ok((name, values(&x)?))).collect::<Result<_>>()?;
        let named = |name: &str, values: &[f64]| (name.to_string(), values.to_vec());
        let expected = [
            named("weight", &[1.0, 1.0]),
            named("bias", &[0.0, 0.0]),
            named("running_mean", &[0.0, 0.0]),
            named("running_var", &[1.0, 1.0]),
            named("num_batches_tracked", &[0.0]),
        ];
        assert_eq!(state, expected);
        Ok(())
    })
}

#[test]
fn every_float_dtype_can_start() -> Result<()> {
    for dtype in FLOATS {
        for init in [
            Init::ONES,
            Init::Identity,
            Init::glorot_normal(),
            Init::Orthogonal { gain: 1.0 },
            Init::truncated_normal(0.1),
        ] {
            assert_eq!(init.tensor([3, 3], (&device(), dtype))?.dtype(), dtype);
        }
    }
    Ok(())
}

#[test]
fn fans_count_connections() -> Result<()> {
    assert_eq!(fans(&Shape::new(&[64, 32]))?, (32, 64));
    assert_eq!(fans(&Shape::new(&[8, 4, 3, 3]))?, (36, 72));
    fails(fans(&Shape::new(&[5])), "fans: needs a weight [out, in, ..] of two axes or more: shape [5]");
    Ok(())
}

#[test]
fn rules_that_make_no_sense_are_errors() {
    let check = |init: Init, text: &str| fails(init.tensor([4], &device()), text);
    check(Init::glorot_uniform(), "fans: needs a weight [out, in, ..] of two axes or more: shape [4]");
    check(Init::Identity, "identity: needs a weight [out, in, ..] of two axes or more: shape [4]");
    check(Init::Orthogonal { gain: 1.0 }, "orthogonal: needs a weight [out, in, ..] of two axes or more: shape [4]");
    check(Init::Uniform { low: 1.0, high: 0.0 }, "rand: low must not exceed high: low 1.0, high 0.0");
    check(Init::Normal { mean: 0.0, std: -1.0 }, "randn: the standard deviation must not be negative: std -1.0");
    check(
        Init::TruncatedNormal { mean: 0.0, std: 1.0, low: 1.0, high: 0.0 },
        "truncated_normal: std must not be negative and low must not exceed high: mean 0.0, std 1.0, low 1.0, high 0.0",
    );
    check(
        Init::TruncatedNormal { mean: 0.0, std: 1.0, low: 50.0, high: 60.0 },
        "truncated_normal: the interval lies too far from the mean: mean 0.0, std 1.0, low 50.0, high 60.0",
    );
}
