//! Optimizers: which parameters change, in place, in which group, and what is refused.

use std::sync::Arc;

use nn::optim::{Adam, AdamW, Numbers, Optimizer, Outputs, Rule, Sgd};
use nn::{Gradients, Module, Param, with_gradient};
use tensor_core::{DType, Device, Error, Result, Sym, Tensor};

use crate::{FLOATS, device, fails, values, vector};

#[derive(Module, Clone, Debug)]
struct Model {
    weight: Param,
    bias: Param,
    unused: Param,
}

fn model_on(device: &Device) -> Result<Model> {
    let ones = || Ok::<_, Error>(Param::new(Tensor::ones(2, device)?));
    Ok(Model { weight: ones()?, bias: ones()?, unused: ones()? })
}

/// Gradients [1, 2] for the weight and [3, 4] for the bias.
fn gradients(model: &Model) -> Result<Gradients> {
    let scaled = |p: &Tensor, by: [f32; 2]| p.mul(&Tensor::from_slice(&by, 2, &p.device())?.cast(p.dtype())?)?.sum(..);
    let (_, grads) = with_gradient(model, |m| scaled(&m.weight, [1.0, 2.0])?.add(&scaled(&m.bias, [3.0, 4.0])?))?;
    Ok(grads)
}

#[test]
fn parameters_without_gradient_and_frozen_ones_stay() -> Result<()> {
    let mut model = model_on(&device())?;
    let mut optimizer = Sgd::new(0.5).setup(&model)?;
    let grads = gradients(&model)?;
    model.bias.set_trainable(false);
    optimizer.update(&mut model, &grads)?;
    assert_eq!(values(&model.weight)?, [0.5, 0.0]);
    assert_eq!(values(&model.bias)?, [1.0, 1.0]);
    assert_eq!(values(&model.unused)?, [1.0, 1.0]);
    // Thawed, it goes on from its own first step.
    model.bias.set_trainable(true);
    optimizer.update(&mut model, &grads)?;
    assert_eq!(values(&model.bias)?, [-0.5, -1.0]);
    Ok(())
}

#[test]
fn gradients_of_another_model_are_refused() -> Result<()> {
    let (mut model, other) = (model_on(&device())?, model_on(&device())?);
    let mut optimizer = Sgd::new(0.5).setup(&model)?;
    let error = optimizer.update(&mut model, &gradients(&other)?).expect_err("they are of another model");
    assert_eq!(
        error.to_string(),
        "sgd: no gradient belongs to a trained parameter of the model: gradients 2; pass the model that they were taken of"
    );
    assert_eq!(values(&model.weight)?, [1.0, 1.0]);
    Ok(())
}

#[test]
fn a_parameter_that_was_skipped_counts_its_own_steps() -> Result<()> {
    // Adam's first step is the learning rate in the gradient's direction, whenever it comes.
    let mut model = model_on(&device())?;
    let mut optimizer = Adam::new(0.1).setup(&model)?;
    for _ in 0..3 {
        let (_, grads) = with_gradient(&model, |m| m.weight.sum(..))?;
        optimizer.update(&mut model, &grads)?;
    }
    let grads = gradients(&model)?;
    optimizer.update(&mut model, &grads)?;
    let bias = values(&model.bias)?;
    assert!(bias.iter().all(|b| (b - 0.9).abs() < 1e-6), "{bias:?}");
    Ok(())
}

#[derive(Module, Clone, Debug)]
struct Tied {
    a: Param,
    b: Param,
}

#[test]
fn tied_parameters_are_updated_once_and_stay_tied() -> Result<()> {
    let a = Param::new(Tensor::ones(2, &device())?);
    let mut model = Tied { b: a.clone(), a };
    let mut optimizer = Sgd::new(0.1).momentum(0.9).setup(&model)?;
    for _ in 0..2 {
        let (_, grads) = with_gradient(&model, |m| m.a.add(&m.b)?.sum(..))?;
        optimizer.update(&mut model, &grads)?;
    }
    // Gradient 2 each time: 1 − 0.1·2 − 0.1·(0.9·2 + 2).
    let got = values(&model.a)?;
    assert!(got.iter().all(|x| (x - 0.42).abs() < 1e-6), "{got:?}");
    assert!(model.a.is_same(&model.b) && model.a.id() == model.b.id());
    Ok(())
}

#[test]
fn one_call_updates_all_parameters_in_place() -> Result<()> {
    let (device, control) = backend_cpu::test_device("counted", 0);
    let mut model = model_on(&device)?;
    let mut optimizer = Adam::new(0.1).setup(&model)?.clip_by_value(10.0);
    let address = |p: &Param| Arc::as_ptr(p.storage()).addr();
    for _ in 0..3 {
        let grads = gradients(&model)?;
        let (before, places) = (control.n_ops(), [address(&model.weight), address(&model.bias)]);
        optimizer.update(&mut model, &grads)?;
        assert_eq!(control.n_ops() - before, 1);
        assert_eq!([address(&model.weight), address(&model.bias)], places);
    }
    Ok(())
}

#[test]
fn a_clone_of_the_model_keeps_its_values() -> Result<()> {
    let mut model = model_on(&device())?;
    let (before, view) = (model.clone(), model.weight.narrow(0, 1, 1)?);
    let grads = gradients(&model)?;
    Sgd::new(0.5).setup(&model)?.update(&mut model, &grads)?;
    assert_eq!(values(&before.weight)?, [1.0, 1.0]);
    assert_eq!(values(&view)?, [1.0]);
    assert_eq!(values(&model.weight)?, [0.5, 0.0]);
    Ok(())
}

#[test]
fn groups_have_rules_of_their_own_and_keep_their_ratio() -> Result<()> {
    let mut model = model_on(&device())?;
    let rule = Sgd::new(0.1).weight_decay(1.0);
    let rule = rule.group(
        |path| path.ends_with("bias"),
        |rule| {
            rule.weight_decay = 0.0;
            rule.learning_rate = 0.2;
        },
    );
    let mut optimizer = rule.group(|_| true, |rule| rule.learning_rate = 0.4).setup(&model)?;
    assert_eq!(optimizer.learning_rate(), 0.1);
    optimizer.set_learning_rate(1.0);
    let grads = gradients(&model)?;
    optimizer.update(&mut model, &grads)?;
    // 1 − 4·(g + 1) in the group of all others, 1 − 2·g for the bias.
    assert_eq!(values(&model.weight)?, [-7.0, -11.0]);
    assert_eq!(values(&model.bias)?, [-5.0, -7.0]);
    Ok(())
}

#[test]
fn parameters_that_join_later_start_with_their_first_gradient() -> Result<()> {
    let mut model = model_on(&device())?;
    model.weight.set_trainable(false);
    model.unused.set_trainable(false);
    let mut optimizer = Adam::new(0.1).group(|path| path == "weight", |rule| rule.learning_rate = 0.2).setup(&model)?;
    model.thaw();
    let grads = gradients(&model)?;
    optimizer.update(&mut model, &grads)?;
    let got = [values(&model.weight)?, values(&model.bias)?].concat();
    assert!(got.iter().zip([0.8, 0.8, 0.9, 0.9]).all(|(a, b)| (a - b).abs() < 1e-6), "{got:?}");
    Ok(())
}

#[test]
fn gradients_clipped_by_norm_have_that_length_together() -> Result<()> {
    // √(1 + 4 + 9 + 16) = √30.
    for (limit, scale) in [(1.0, 1.0 / 30f64.sqrt()), (100.0, 1.0)] {
        let mut model = model_on(&device())?;
        let grads = gradients(&model)?;
        Sgd::new(1.0).setup(&model)?.clip_by_norm(limit).update(&mut model, &grads)?;
        let got = [values(&model.weight)?, values(&model.bias)?].concat();
        let close = got.iter().zip([1.0, 2.0, 3.0, 4.0]).all(|(p, g)| (p - (1.0 - scale * g)).abs() < 1e-5);
        assert!(close, "limit {limit}: {got:?}");
    }
    Ok(())
}

#[test]
fn huge_gradients_are_clipped_though_their_squares_overflow() -> Result<()> {
    for dtype in FLOATS {
        let huge = if dtype == DType::F16 { 3e4 } else { 1e30 };
        let mut model = model_on(&device())?.cast(dtype)?;
        let mut grads = gradients(&model)?;
        let big = Tensor::from_slice(&[3.0 * huge, 4.0 * huge].map(|v: f64| v / 4.0), 2, (&device(), dtype))?;
        *grads.of_mut(&model.weight).expect("there is a gradient") = big;
        *grads.of_mut(&model.bias).expect("there is a gradient") = Tensor::zeros(2, (&device(), dtype))?;
        Sgd::new(1.0).setup(&model)?.clip_by_norm(0.5).update(&mut model, &grads)?;
        let got = values(&model.weight)?;
        assert!((got[0] - 0.7).abs() < 0.01 && (got[1] - 0.6).abs() < 0.01, "{dtype}: {got:?}");
    }
    Ok(())
}

#[test]
fn gradients_that_are_not_finite_are_named_and_change_nothing() -> Result<()> {
    let mut model = model_on(&device())?;
    let mut grads = gradients(&model)?;
    *grads.of_mut(&model.bias).expect("there is a gradient") = vector(&[1.0, f32::NAN])?;
    let mut optimizer = Sgd::new(0.1).setup(&model)?.clip_by_norm(1.0);
    fails(
        optimizer.update(&mut model, &grads),
        "clip_by_norm: gradients must be finite: bias has NaN; lower the learning rate or look for such values in the data",
    );
    *grads.of_mut(&model.weight).expect("there is a gradient") = vector(&[f32::INFINITY, 0.0])?;
    fails(
        optimizer.update(&mut model, &grads),
        "clip_by_norm: gradients must be finite: weight has an infinity, bias has NaN; lower the learning rate or look for \
         such values in the data",
    );
    assert_eq!(values(&model.weight)?, [1.0, 1.0]);
    Ok(())
}

#[test]
fn sixteen_bit_parameters_train_with_tiny_gradients() -> Result<()> {
    // The square of 1e-5 is 0 in f16; Adam's first step is the learning rate all the same.
    for dtype in FLOATS {
        let mut model = model_on(&device())?.cast(dtype)?;
        let mut grads = gradients(&model)?;
        let tiny = Tensor::full(2, 1e-5, (&device(), dtype))?;
        *grads.of_mut(&model.weight).expect("there is a gradient") = tiny;
        let mut optimizer = Adam::new(0.25).setup(&model)?;
        optimizer.update(&mut model, &grads)?;
        assert_eq!(model.weight.dtype(), dtype);
        let got = values(&model.weight)?;
        assert!(got.iter().all(|x| (x - 0.75).abs() < 0.005), "{dtype}: {got:?}");
    }
    Ok(())
}

#[test]
fn gradients_and_states_that_do_not_fit_are_refused() -> Result<()> {
    let mut model = model_on(&device())?;
    let mut optimizer = Adam::new(0.1).setup(&model)?;
    let replaced = |model: &Model, gradient: Tensor| -> Result<Gradients> {
        let mut grads = gradients(model)?;
        *grads.of_mut(&model.bias).expect("there is a gradient") = gradient;
        Ok(grads)
    };
    let grads = replaced(&model, vector(&[1.0])?)?;
    fails(
        optimizer.update(&mut model, &grads),
        "adam: a gradient must be like its parameter: bias [2] f32 on cpu, gradient [1] f32 on cpu",
    );
    let grads = replaced(&model, Tensor::ones(2, (&device(), DType::F64))?)?;
    fails(
        optimizer.update(&mut model, &grads),
        "adam: a gradient must be like its parameter: bias [2] f32 on cpu, gradient [2] f64 on cpu",
    );
    let (other, _) = backend_cpu::test_device("other", 2);
    let grads = replaced(&model, Tensor::ones(2, &other)?)?;
    fails(
        optimizer.update(&mut model, &grads),
        "adam: a gradient must be like its parameter: bias [2] f32 on cpu, gradient [2] f32 on other:2",
    );
    assert_eq!(values(&model.weight)?, [1.0, 1.0]);

    let mut moved = model.to(&other)?;
    let grads = gradients(&moved)?;
    fails(
        optimizer.update(&mut moved, &grads),
        "adam: what is kept for a parameter must be like it: weight [2] f32 on other:2, kept [2] f32 on cpu; move it with \
         optimizer.to(&device), or set up a new optimizer",
    );
    optimizer.to(&other)?;
    optimizer.update(&mut moved, &grads)
}

#[test]
fn hyper_parameters_outside_their_domain_are_refused() -> Result<()> {
    let model = &model_on(&device())?;
    fails(Sgd::new(-0.1).setup(model), "sgd: the learning rate must be finite and not negative: learning_rate -0.1");
    fails(Sgd::new(0.1).momentum(-1.0).setup(model), "sgd: momentum must be in [0, inf): momentum -1.0");
    fails(
        Sgd::new(0.1).nesterov(0.0).setup(model),
        "sgd: nesterov needs momentum and no dampening: momentum 0.0, dampening 0.0",
    );
    fails(Adam::new(0.1).betas(1.0, 0.9).setup(model), "adam: beta1 must be in [0, 1): beta1 1.0");
    fails(Adam::new(0.1).epsilon(f64::NAN).setup(model), "adam: epsilon must be in [0, inf): epsilon NaN");
    fails(
        AdamW::new(0.1).weight_decay(-0.1).setup(model),
        "adamw: weight_decay must be in [0, inf): weight_decay -0.1",
    );
    let mut model = model_on(&device())?;
    let grads = gradients(&model)?;
    fails(
        Sgd::new(0.1).setup(&model)?.clip_by_norm(0.0).update(&mut model, &grads),
        "clip_by_norm: the limit must be positive: limit 0.0",
    );
    let mut optimizer = Sgd::new(0.1).setup(&model)?;
    optimizer.set_learning_rate(f64::NAN);
    fails(
        optimizer.update(&mut model, &grads),
        "sgd: the learning rate must be finite and not negative: learning_rate NaN",
    );
    Ok(())
}

#[test]
fn a_parameter_of_integers_cannot_be_trained() -> Result<()> {
    let mut model = model_on(&device())?;
    *model.bias.value_mut() = Tensor::zeros(2, (&device(), DType::I64))?;
    fails(
        Sgd::new(0.1).setup(&model),
        "sgd: a trained parameter must be of a float dtype: bias i64; freeze it or make it a plain tensor",
    );
    Ok(())
}

#[test]
fn an_update_that_fails_on_the_device_changes_nothing() -> Result<()> {
    let (device, control) = backend_cpu::test_device("failing", 0);
    let mut model = model_on(&device)?;
    let mut optimizer = Adam::new(0.1).setup(&model)?;
    let grads = gradients(&model)?;
    control.set_lost(true);
    assert!(optimizer.update(&mut model, &grads).expect_err("the device is lost").is_device_lost());
    control.set_lost(false);
    assert_eq!(values(&model.weight)?, [1.0, 1.0]);
    // The step that failed was not counted.
    optimizer.update(&mut model, &grads)?;
    let got = values(&model.weight)?;
    assert!(got.iter().all(|x| (x - 0.9).abs() < 1e-6), "{got:?}");
    Ok(())
}

/// p ← p − η·g³, by a rule from outside.
#[derive(Debug)]
struct Cubic(f64);

impl Rule for Cubic {
    fn name(&self) -> &'static str {
        "cubic"
    }

    fn learning_rate(&mut self) -> &mut f64 {
        &mut self.0
    }

    fn numbers(&self, _: u64) -> Numbers {
        Numbers::from_slice(&[self.0])
    }

    fn formula(&self, numbers: &[Sym], p: Sym, g: Sym, _: &[Sym]) -> Outputs {
        Outputs::from_slice(&[p - numbers[0] * g * g * g])
    }
}

#[test]
fn rules_can_come_from_outside() -> Result<()> {
    let mut model = model_on(&device())?;
    let grads = gradients(&model)?;
    Optimizer::new(Cubic(1.0), &model)?.update(&mut model, &grads)?;
    assert_eq!(values(&model.weight)?, [0.0, -7.0]);
    Ok(())
}

#[test]
fn a_step_inside_a_gradient_can_be_differentiated() -> Result<()> {
    // w′ = w − η·∂(c·w)/∂w = w − η·c, so d(Σ w′)/dc = −η·n.
    #[derive(Module, Clone, Debug)]
    struct Outer {
        c: Param,
    }
    let outer = Outer { c: Param::new(vector(&[3.0])?) };
    let (_, grads) = with_gradient(&outer, |outer| {
        let mut inner = Model { ..model_on(&device())? };
        let (_, inner_grads) = with_gradient(&inner, |m| m.weight.mul(&outer.c)?.sum(..))?;
        Sgd::new(0.5).setup(&inner)?.update(&mut inner, &inner_grads)?;
        inner.weight.sum(..)
    })?;
    assert_eq!(values(grads.of(&outer.c).expect("the step depends on it"))?, [-1.0]);
    Ok(())
}

#[test]
fn optimizers_and_layers_can_cross_threads() -> Result<()> {
    fn shared<T: Send + Sync + 'static>(_: &T) {}
    let model = model_on(&device())?;
    shared(&model);
    shared(&Adam::new(0.1).group(|path| path.is_empty(), |_| ()).setup(&model)?);
    shared(&nn::MultiHeadAttention::new(4, 2, &device())?);
    shared(&nn::BatchNorm2d::new(4, &device())?);
    Ok(())
}
