//! Gradients by a model's parameters: what reaches them, modes, ties, threads, errors.

use nn::{Forward, Gradients, Mode, Module, Param, chain, gradient, inference, training, with_gradient};
use tensor_core::{DType, Error, Result, Tensor, UpdateRule, expr};

use crate::support::{assert_values, device, tensor, values};

/// y = x·w + b.
#[derive(Module, Clone, Debug)]
struct Line {
    weight: Param,
    bias: Param,
}

impl Line {
    fn new() -> Self {
        Self { weight: Param::new(tensor(&[1.0, 2.0], [2, 1])), bias: Param::new(tensor(&[0.5], [1])) }
    }
}

impl Forward for Line {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        x.matmul(&self.weight)?.add(&self.bias)
    }
}

fn x() -> Tensor {
    tensor(&[1.0, 2.0, 3.0, 4.0], [2, 2])
}

fn loss(m: &Line) -> Result<Tensor> {
    m.forward(&x())?.square()?.mean(..)
}

fn paths(gradients: &Gradients) -> Vec<&str> {
    gradients.iter().map(|(path, _)| path).collect()
}

#[test]
fn a_loss_and_its_gradients() {
    let model = Line::new();
    let (loss, mut grads) = with_gradient(&model, loss).unwrap();
    // Residuals 5.5 and 11.5.
    assert_values("loss", &loss, &[(30.25 + 132.25) / 2.0]);
    assert_values("weight", grads.of(&model.weight).unwrap(), &[5.5 + 34.5, 11.0 + 46.0]);
    assert_values("bias", grads.of(&model.bias).unwrap(), &[17.0]);
    assert_eq!(*loss.place(), device());
    assert_eq!(paths(&grads), ["weight", "bias"]);
    assert_eq!(grads.len(), 2);
    for (_, g) in grads.iter_mut() {
        *g = g.mul(2.0).unwrap();
    }
    assert_values("changed", grads.of(&model.bias).unwrap(), &[34.0]);
    let halved = grads.map(|path, g| if path == "bias" { g.mul(0.5) } else { Ok(g.clone()) }).unwrap();
    assert_values("mapped", halved.of(&model.bias).unwrap(), &[17.0]);
    let mut sum = halved.clone();
    sum.add(&halved).unwrap();
    assert_values("added", sum.of(&model.bias).unwrap(), &[34.0]);
    assert_eq!(format!("{sum:?}"), r#"{"weight": "[2, 1] f64", "bias": "[1] f64"}"#);
}

#[test]
fn extra_outputs_are_handed_through() {
    let model = Line::new();
    let ((loss, y, n), _) = with_gradient(&model, |m| {
        let y = m.forward(&x())?;
        Ok((y.square()?.mean(..)?, y, 7))
    })
    .unwrap();
    assert_values("output", &y, &[5.5, 11.5]);
    assert_values("as a plain value", &y.sub(&x().narrow(1, 0, 1).unwrap()).unwrap(), &[4.5, 8.5]);
    assert_eq!(n, 7);
    let ((again, _), _) = with_gradient(&model, |m| Ok((m.forward(&x())?.square()?.mean(..)?, ()))).unwrap();
    assert_values("the loss", &again, &values(&loss));
}

#[test]
fn frozen_parameters_are_constants() {
    let mut model = Line::new();
    model.weight.set_trainable(false);
    let (_, grads) = with_gradient(&model, loss).unwrap();
    assert_eq!(paths(&grads), ["bias"]);
    assert!(grads.of(&model.weight).is_none());
    model.freeze();
    let error = with_gradient(&model, loss).unwrap_err();
    assert_eq!(error.to_string(), "with_gradient: the model has no trainable parameter; thaw it with .thaw()");
    model.thaw();
    assert_eq!(paths(&with_gradient(&model, loss).unwrap().1), ["weight", "bias"]);
}

#[test]
fn parameters_that_do_not_reach_the_loss_have_no_gradient() {
    let model = Line::new();
    let (_, grads) = with_gradient(&model, |m| m.bias.square()?.sum(..)).unwrap();
    assert_eq!(paths(&grads), ["bias"]);
}

#[test]
fn errors_name_what_is_wrong() {
    let model = Line::new();
    let check = |f: &dyn Fn(&Line) -> Result<Tensor>, kind: fn(&Error) -> bool, text: &str| {
        let error = with_gradient(&model, f).unwrap_err();
        assert!(kind(&error), "{error}");
        assert_eq!(error.to_string(), text);
    };
    let unreached = "with_gradient: no parameter reaches the loss: did the closure use the outer model, or stop the \
                     gradient? use the model that it receives";
    check(&|_| loss(&model), Error::is_gradient, unreached);
    check(&|m| loss(m)?.floor(), Error::is_gradient, unreached);
    check(
        &|m| m.forward(&x()),
        Error::is_shape,
        "with_gradient: the loss must be a single number: loss [2, 1]; reduce it with .mean(..) or .sum(..)",
    );
    check(
        &|m| m.forward(&x())?.sum(..)?.cast(DType::I64),
        Error::is_dtype,
        "with_gradient: loss must be of a float dtype: loss i64; cast it with .cast(..)",
    );
    check(
        &|m| m.forward(&x().t()?.narrow(1, 0, 1)?),
        Error::is_shape,
        "matmul: inner dimensions differ: lhs [2, 1] has K = 1, rhs [2, 1] has K = 2",
    );
}

#[test]
fn tied_parameters_are_lifted_once() {
    let line = Line::new();
    let model = (line.clone(), line);
    let f = |m: &(Line, Line)| m.0.forward(&x())?.add(&m.1.forward(&x())?)?.sum(..);
    let (_, grads) = with_gradient(&model, f).unwrap();
    assert_eq!(paths(&grads), ["0.weight", "0.bias"]);
    assert_values("both uses", grads.of(&model.1.weight).unwrap(), &[8.0, 12.0]);
    assert_eq!(model.n_parameters(), 3);

    let mut untied = model.clone();
    *untied.1.weight.value_mut() = tensor(&[3.0, 4.0], [2, 1]);
    let error = with_gradient(&untied, f).unwrap_err();
    assert!(error.is_gradient());
    assert_eq!(
        error.to_string(),
        "with_gradient: one parameter has two values: at 0.weight and at 1.weight; tie them by cloning one, or give one \
         an identity of its own with .fork()"
    );
    untied.1 = untied.1.fork();
    assert_eq!(paths(&with_gradient(&untied, f).unwrap().1), ["0.weight", "0.bias", "1.weight", "1.bias"]);
}

#[test]
fn parameters_on_two_devices_are_an_error() {
    let (other, _) = backend_cpu::test_device("other", 0);
    let model = (Line::new(), Line::new().to(&other).unwrap());
    let error = with_gradient(&model, |m| m.0.forward(&x())?.sum(..)).unwrap_err();
    assert!(error.is_device());
    assert_eq!(
        error.to_string(),
        "with_gradient: parameters are on different devices: 0.weight cpu, 1.weight other:0; move the model with \
         .to(&device)"
    );
}

/// A layer that doubles while it trains.
#[derive(Module, Clone, Debug)]
struct Doubling {
    scale: Param,
    mode: Mode,
}

impl Forward for Doubling {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let y = x.mul(&self.scale)?;
        if self.mode.is_training() { y.mul(2.0) } else { Ok(y) }
    }
}

#[test]
fn layers_train_inside_and_infer_outside() {
    let model = Doubling { scale: Param::new(tensor(&[3.0], ())), mode: Mode::default() };
    let one = tensor(&[1.0], ());
    let check = |name: &str, y: &Tensor, expected: f64| assert_values(name, y, &[expected]);
    check("outside", &model.forward(&one).unwrap(), 3.0);
    check("inside", &with_gradient(&model, |m| m.forward(&one)).unwrap().0, 6.0);
    check("inside, overridden", &inference(|| with_gradient(&model, |m| m.forward(&one))).unwrap().0, 3.0);
    check("overridden inside", &with_gradient(&model, |m| inference(|| m.forward(&one))).unwrap().0, 3.0);
    check("outside, overridden", &training(|| model.forward(&one)).unwrap(), 6.0);
    check("inside a plain gradient", &gradient(|x| model.forward(x), &one).unwrap(), 3.0);
    let in_thread =
        |m: &Doubling| std::thread::scope(|s| s.spawn(|| m.forward(&one)).join().expect("the thread returns"));
    check("in a thread", &with_gradient(&model, in_thread).unwrap().0, 6.0);
    check("afterwards", &model.forward(&one).unwrap(), 3.0);
}

#[test]
fn threads_share_the_lent_model() {
    let model = Line::new();
    let in_threads = |m: &Line| {
        let parts = std::thread::scope(|s| {
            let rows: Vec<_> = (0..2).map(|i| s.spawn(move || m.forward(&x().narrow(0, i, 1)?)?.square())).collect();
            rows.into_iter().map(|row| row.join().expect("the thread returns")).collect::<Result<Vec<_>>>()
        })?;
        Tensor::cat(&parts, 0)?.mean(..)
    };
    let (loss_there, grads_there) = with_gradient(&model, in_threads).unwrap();
    let (loss_here, grads_here) = with_gradient(&model, loss).unwrap();
    assert_values("loss", &loss_there, &values(&loss_here));
    for (path, g) in grads_here.iter() {
        let there = grads_there.iter().find(|(p, _)| *p == path).unwrap().1;
        assert_values(path, there, &values(g));
    }
}

/// The gradient of a gradient's size: a penalty that needs second derivatives by the parameters.
#[test]
fn models_nest() {
    let model = Line::new();
    // mean (x·w + b)² over one row x = (1, 2): its gradient by x is 2(x·w + b)·w.
    let row = x().narrow(0, 0, 1).unwrap();
    let penalty = |m: &Line| gradient(|x| m.forward(x)?.square()?.sum(..), &row)?.square()?.sum(..);
    let (value, grads) = with_gradient(&model, penalty).unwrap();
    // r = 5.5, w = (1, 2): |2·r·w|² = 4·r²·5.
    assert_values("penalty", &value, &[4.0 * 30.25 * 5.0]);
    // ∂/∂b = 8·r·5; ∂/∂w = 8·r·5·x + 8·r²·w.
    assert_values("bias", grads.of(&model.bias).unwrap(), &[220.0]);
    assert_values("weight", grads.of(&model.weight).unwrap(), &[220.0 + 242.0, 440.0 + 484.0]);

    let inner = |m: &Line| {
        let (_, grads) = with_gradient(m, loss)?;
        grads.of(&m.bias).expect("the bias reaches the loss").square()?.sum(..)
    };
    let (_, grads) = with_gradient(&model, inner).unwrap();
    // ∂(17²)/∂b with ∂17/∂b = 2.
    assert_values("gradient of a gradient", grads.of(&model.bias).unwrap(), &[68.0]);
}

/// One step of descent inside a gradient can be differentiated through.
#[test]
fn updates_are_differentiable() {
    let model = Line::new();
    let rule = UpdateRule { outputs: [expr::build(|[p, g]| p - 0.1 * g)].into_iter().collect() };
    let after_a_step = |m: &Line| {
        let (_, grads) = with_gradient(m, |m| m.bias.square()?.sum(..))?;
        let mut bias = m.bias.value().clone();
        let grad = grads.of(&m.bias).expect("the bias reaches the loss");
        let mut targets = [tensor_core::Target { param: &mut bias, grad, state: &mut [] }];
        grad.place().update(&rule, &mut targets)?;
        bias.square()?.sum(..)
    };
    let (value, grads) = with_gradient(&model, after_a_step).unwrap();
    // b ← b − 0.1·2b = 0.8·b; the loss 0.64·b².
    assert_values("value", &value, &[0.16]);
    assert_values("gradient", grads.of(&model.bias).unwrap(), &[0.64]);
}

#[test]
fn chains_and_sequences_are_models() {
    let model = chain![Line::new(), Doubling { scale: Param::new(tensor(&[3.0], ())), mode: Mode::default() }];
    let (_, grads) = with_gradient(&model, |m| m.forward(&x())?.sum(..)).unwrap();
    assert_eq!(paths(&grads), ["0.weight", "0.bias", "1.scale"]);
    let boxed = nn::Sequential::new(vec![Box::new(model.0.0.clone()), Box::new(model.0.1.clone())]);
    let (_, same) = with_gradient(&boxed, |m| m.forward(&x())?.sum(..)).unwrap();
    assert_values("the same", same.of(&model.0.1.scale).unwrap(), &values(grads.of(&model.0.1.scale).unwrap()));
    let error = boxed.forward(&tensor(&[1.0], [1, 1])).unwrap_err();
    assert_eq!(error.to_string(), "0: matmul: inner dimensions differ: lhs [1, 1] has K = 1, rhs [2, 1] has K = 2");
}
