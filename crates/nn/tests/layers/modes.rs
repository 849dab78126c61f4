//! Layers that train otherwise than they infer: dropout and batch norm.

use nn::{BatchNorm1d, Dropout, Forward, Module, MultiHeadAttention, MultiHeadAttentionOptions, Param, with_gradient};
use tensor_core::{Result, Tensor};

use crate::{device, seeded, values, vector};

#[derive(Module, Clone, Debug)]
struct Model<L> {
    input: Param,
    layer: L,
}

fn dropped(p: f64, x: &Tensor) -> Result<Tensor> {
    nn::training(|| Dropout::new(p).forward(x))
}

#[test]
fn dropout_infers_as_it_is() -> Result<()> {
    let x = vector(&[1.0, 2.0])?;
    assert!(Dropout::new(0.9).forward(&x)?.is_same(&x));
    assert!(dropped(0.0, &x)?.is_same(&x));
    Ok(())
}

#[test]
fn dropout_keeps_the_mean_by_scaling_what_it_keeps() -> Result<()> {
    let x = Tensor::ones(100_000, &device())?;
    for p in [0.1, 0.5, 0.9] {
        let y = values(&seeded(1, || dropped(p, &x))?)?;
        let scale = f64::from((1.0 / (1.0 - p)) as f32);
        assert!(y.iter().all(|&y| y == 0.0 || y == scale), "p {p}");
        let n_dropped = y.iter().filter(|&&y| y == 0.0).count() as f64;
        // Five standard deviations.
        assert!((n_dropped - 1e5 * p).abs() < 5.0 * (1e5 * p * (1.0 - p)).sqrt(), "p {p}: {n_dropped}");
    }
    assert_eq!(values(&dropped(1.0, &vector(&[1.0, f32::INFINITY])?)?)?, [0.0, 0.0]);
    Ok(())
}

#[test]
fn dropout_drops_the_same_for_a_seed_on_every_device_and_other_things_each_time() -> Result<()> {
    let (other, _) = backend_cpu::test_device("other", 1);
    let draw = |device: &tensor_core::Device| {
        seeded(2, || {
            let x = Tensor::ones(64, device)?;
            Ok::<_, tensor_core::Error>((values(&dropped(0.5, &x)?)?, values(&dropped(0.5, &x)?)?))
        })
    };
    let (first, second) = draw(&device())?;
    assert_eq!((first.clone(), second.clone()), draw(&other)?);
    assert_ne!(first, second);
    Ok(())
}

#[test]
fn dropout_has_the_gradient_of_what_it_kept() -> Result<()> {
    let model = Model { input: Param::new(Tensor::ones(32, &device())?), layer: Dropout::new(0.5) };
    let ((_, y), grads) = seeded(3, || {
        with_gradient(&model, |m| {
            let y = m.layer.forward(&m.input)?;
            Ok((y.sum(..)?, y))
        })
    })?;
    assert_eq!(values(grads.of(&model.input).expect("there is a gradient"))?, values(&y.stop_gradient())?);
    Ok(())
}

#[test]
fn batch_norm_tracks_while_it_trains_and_only_then() -> Result<()> {
    let norm = BatchNorm1d::new(1, &device())?;
    let model = Model { input: Param::new(Tensor::from_slice(&[1.0f32, 3.0], [2, 1], &device())?), layer: norm };
    let state = |model: &Model<BatchNorm1d>| -> Result<Vec<f64>> {
        let norm = &model.layer;
        [&norm.running_mean, &norm.running_var, &norm.num_batches_tracked]
            .iter()
            .map(|buffer| Ok(values(&buffer.get())?[0]))
            .collect()
    };
    model.layer.forward(&model.input)?;
    assert_eq!(state(&model)?, [0.0, 1.0, 0.0]);
    with_gradient(&model, |m| m.layer.forward(&m.input)?.sum(..))?;
    // Mean 2, variance 1, with correction 2; a tenth of the way.
    let expected = [0.2, 1.1, 1.0];
    let got = state(&model)?;
    assert!(got.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-6), "{got:?}");
    // A call that fails leaves them.
    let error: Result<_> = with_gradient(&model, |m| {
        m.layer.forward(&m.input)?;
        Err::<Tensor, _>(tensor_core::Error::other("test", "no loss"))
    });
    assert!(error.is_err());
    assert_eq!(state(&model)?, got);
    Ok(())
}

#[test]
fn batch_norm_infers_with_what_it_tracked() -> Result<()> {
    let mut norm = BatchNorm1d::new(1, &device())?;
    norm.running_mean.replace(vector(&[2.0])?);
    norm.running_var.replace(vector(&[4.0 - 1e-5])?);
    let y = values(&norm.forward(&Tensor::from_slice(&[2.0f32, 6.0], [2, 1], &device())?)?)?;
    assert!((y[0]).abs() < 1e-6 && (y[1] - 2.0).abs() < 1e-6, "{y:?}");
    Ok(())
}

#[test]
fn attention_with_dropout_is_attention_where_nothing_is_dropped() -> Result<()> {
    let x = seeded(4, || Tensor::randn([2, 3, 4], &device()))?;
    let keys = Tensor::from_slice(&[true, true, false, true, true, true], [2, 3], &device())?;
    let mask = nn::AttentionMask { causal: true, keys: Some(&keys), pairs: None };
    let mut layer = seeded(5, || MultiHeadAttention::new(4, 2, &device()))?;
    let plain = layer.attend(&x, &x, &x, mask)?;
    // So small that no weight is dropped and the scale rounds to 1.
    layer.dropout = Dropout::new(1e-12);
    let through = nn::training(|| seeded(6, || layer.attend(&x, &x, &x, mask)))?;
    assert!(plain.allclose(&through, 1e-5, 1e-6)?, "{:?} {:?}", values(&plain)?, values(&through)?);
    let dropping = MultiHeadAttentionOptions { dropout: 0.5, ..Default::default() };
    let layer = seeded(5, || MultiHeadAttention::with(4, 2, dropping, &device()))?;
    let infers = layer.attend(&x, &x, &x, mask)?;
    assert!(plain.allclose(&infers, 0.0, 0.0)?);
    let trains = nn::training(|| seeded(6, || layer.attend(&x, &x, &x, mask)))?;
    assert!(!plain.allclose(&trains, 1e-2, 1e-2)?);
    Ok(())
}

#[test]
fn pairs_that_may_not_attend_are_masked_beside_keys() -> Result<()> {
    let x = seeded(4, || Tensor::randn([2, 3, 4], &device()))?;
    let layer = seeded(5, || MultiHeadAttention::new(4, 2, &device()))?;
    // A lower triangle as pairs is the causal mask.
    let pairs = Tensor::ones([3, 3], &device())?.tril(0)?.gt(0.5)?;
    let keys = Tensor::from_slice(&[true, true, false, true, true, true], [2, 3], &device())?;
    for keys in [None, Some(&keys)] {
        let causal = layer.attend(&x, &x, &x, nn::AttentionMask { causal: true, keys, pairs: None })?;
        let masked = layer.attend(&x, &x, &x, nn::AttentionMask { causal: false, keys, pairs: Some(&pairs) })?;
        assert!(causal.allclose(&masked, 1e-5, 1e-6)?);
    }
    Ok(())
}
