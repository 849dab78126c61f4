//! Optimizers: what becomes of parameters in three steps.

use nn::optim::{Adam, AdamW, Optimizer, Sgd};
use nn::{Param, with_gradient};
use tensor_core::{Result, Tensor};

use super::subject;
use crate::suite::case::{Call, Subject};
use crate::suite::input::Input;

/// A rule by a number that picks its options, for a model of these parameters.
type Setup = fn(usize, &Vec<Param>) -> Result<Optimizer>;

const RULES: &[(&str, Setup)] = &[
    ("optim::Sgd", |options, model| {
        [Sgd::new(0.1), Sgd::new(0.1).momentum(0.9), Sgd::new(0.1).nesterov(0.9), Sgd::new(0.1).weight_decay(0.1)]
            [options % 4]
            .clone()
            .setup(model)
    }),
    ("optim::Adam", |options, model| {
        [Adam::new(0.01), Adam::new(0.01).betas(0.8, 0.99), Adam::new(0.01).weight_decay(0.1)][options % 3]
            .clone()
            .setup(model)
    }),
    ("optim::AdamW", |options, model| {
        [AdamW::new(0.01), AdamW::new(0.01).betas(0.8, 0.99), AdamW::new(0.01).weight_decay(0.1)][options % 3]
            .clone()
            .setup(model)
    }),
];

/// Three steps down Σ p·(p + g).
fn trained(mut model: Vec<Param>, slopes: &[Tensor], mut optimizer: Optimizer) -> Result<Vec<Tensor>> {
    for _ in 0..3 {
        let (_, gradients) = with_gradient(&model, |model| {
            let losses = model.iter().zip(slopes).map(|(p, g)| p.mul(&p.add(g)?)?.sum(..));
            losses.reduce(|sum, loss| sum?.add(&loss?)).unwrap_or_else(|| slopes[0].sum(..))
        })?;
        optimizer.update(&mut model, &gradients)?;
    }
    Ok(model.iter().map(|p| p.value().clone()).collect())
}

pub(super) fn subjects() -> Vec<Subject> {
    let rules = RULES.iter().map(|&(name, setup)| {
        subject(name, format!("{name}(..)"), move |draw, _| {
            let (options, clips) = (draw.below(12), draw.pick(&[0, 0, 1, 2]));
            let shapes = [draw.dims(1, 33), draw.dims(2, 64)];
            // Slopes away from 0, about which a step's direction is rounding.
            let slopes = shapes.iter().map(|dims| Input::within(dims, 6.0, 9.0));
            let inputs = shapes.iter().map(|dims| Input::within(dims, -2.0, 2.0)).chain(slopes).collect();
            Call::many(format!("options {options}, clipped {clips}"), inputs, move |_, x| {
                let model: Vec<Param> = x[..2].iter().map(|x| Param::new(x.clone())).collect();
                let optimizer = setup(options, &model)?;
                let optimizer = match clips {
                    0 => optimizer,
                    1 => optimizer.clip_by_value(1.0),
                    _ => optimizer.clip_by_norm(1.0),
                };
                trained(model, &x[2..], optimizer)
            })
            // An update changes values in place: nothing leads back from them.
            .without_gradient()
        })
    });
    rules.collect()
}
