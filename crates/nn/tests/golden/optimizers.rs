//! Five steps of every optimizer.

use nn::optim::{Adam, AdamW, Optimizer, Sgd};
use nn::{Module, Param, with_gradient};
use tensor_core::Result;

use crate::Case;

#[derive(Module, Clone, Debug)]
struct Model {
    weight: Param,
}

fn check(name: &'static str, setup: impl Fn(&Model) -> Result<Optimizer>) {
    Case::each(name, |case| {
        let mut model = Model { weight: Param::new(case.get("start")?) };
        let mut optimizer = setup(&model)?;
        let mut steps = Vec::new();
        for grad in case.get("grads")?.chunk(5, 0)? {
            // A linear loss has this gradient.
            let grad = grad.squeeze(0)?;
            let (_, grads) = with_gradient(&model, |m| m.weight.mul(&grad)?.sum(..))?;
            optimizer.update(&mut model, &grads)?;
            steps.push(model.weight.copy_to(&case.device)?);
        }
        case.compare("steps", &tensor_core::Tensor::stack(&steps, 0)?)
    });
}

#[test]
fn sgd() {
    check("sgd", |m| Sgd::new(0.1).setup(m));
    check("sgd_momentum", |m| Sgd::new(0.1).momentum(0.9).setup(m));
    check("sgd_dampening", |m| Sgd { dampening: 0.3, ..Sgd::new(0.1).momentum(0.9) }.setup(m));
    check("sgd_nesterov", |m| Sgd::new(0.1).nesterov(0.9).weight_decay(0.05).setup(m));
}

#[test]
fn adam() {
    check("adam", |m| Adam::new(0.1).setup(m));
    check("adam_all", |m| Adam::new(0.05).betas(0.8, 0.95).epsilon(1e-3).weight_decay(0.1).setup(m));
    check("adamw", |m| AdamW::new(0.1).setup(m));
    check("adamw_all", |m| AdamW::new(0.05).betas(0.8, 0.95).epsilon(1e-3).weight_decay(0.1).setup(m));
}

#[test]
fn clipping() {
    check("clip_by_norm", |m| Ok(Sgd::new(0.1).momentum(0.9).setup(m)?.clip_by_norm(1.5)));
    check("clip_by_value", |m| Ok(Sgd::new(0.1).momentum(0.9).setup(m)?.clip_by_value(0.5)));
}
