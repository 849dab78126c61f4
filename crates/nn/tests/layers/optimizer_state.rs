//! An optimizer's state in files: training goes on as if it had not stopped.

use nn::optim::{Adam, Optimizer, Sgd};
use nn::{Forward, Linear, Module, Relu, chain, with_gradient};
use tensor_core::{Result, Tensor};

use crate::{device, fails, seeded, values};

type Net = nn::Chain<(Linear, Relu, Linear)>;

fn net() -> Result<Net> {
    seeded(1, || Ok(chain![Linear::new(3, 4, &device())?, Relu, Linear::new(4, 1, &device())?]))
}

fn train(net: &mut Net, optimizer: &mut Optimizer, n_steps: usize) -> Result<()> {
    let (x, y) = seeded(2, || {
        Ok::<_, tensor_core::Error>((Tensor::randn([8, 3], &device())?, Tensor::randn([8, 1], &device())?))
    })?;
    for _ in 0..n_steps {
        let (_, grads) = with_gradient(net, |m| nn::loss::mse(&m.forward(&x)?, &y))?;
        optimizer.update(net, &grads)?;
    }
    Ok(())
}

fn numbers(net: &Net) -> Result<Vec<f64>> {
    Ok(net.parameters().into_iter().map(|p| values(p)).collect::<Result<Vec<_>>>()?.concat())
}

#[test]
fn training_resumes_to_the_bit() -> Result<()> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (model_path, state_path) = (folder.path().join("model.safetensors"), folder.path().join("state.safetensors"));
    let mut whole = net()?;
    let mut optimizer = Adam::new(0.1).setup(&whole)?;
    train(&mut whole, &mut optimizer, 3)?;
    optimizer.set_learning_rate(0.05);
    nn::save(&whole, &model_path)?;
    optimizer.save(&state_path)?;
    train(&mut whole, &mut optimizer, 3)?;

    let mut resumed = net()?;
    let mut optimizer = Adam::new(0.1).setup(&resumed)?;
    nn::load(&mut resumed, &model_path)?;
    optimizer.load(&state_path)?;
    assert_eq!(optimizer.learning_rate(), 0.05);
    train(&mut resumed, &mut optimizer, 3)?;
    assert_eq!(numbers(&resumed)?, numbers(&whole)?);

    // The state matters: without it the run differs.
    let mut fresh = net()?;
    nn::load(&mut fresh, &model_path)?;
    train(&mut fresh, &mut Adam::new(0.05).setup(&net()?)?, 3)?;
    assert_ne!(numbers(&fresh)?, numbers(&whole)?);
    Ok(())
}

#[test]
fn a_state_of_another_rule_or_model_is_refused_and_changes_nothing() -> Result<()> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("state.safetensors");
    let mut model = net()?;
    let mut optimizer = Sgd::new(0.1).momentum(0.9).setup(&model)?;
    train(&mut model, &mut optimizer, 1)?;
    optimizer.save(&path)?;
    let mut adam = Adam::new(0.3).setup(&model)?;
    fails(
        adam.load(&path),
        &format!(
            "optimizer load: the file does not fit the optimizer: missing state.0.weight.exp_avg, state.0.weight.exp_avg_sq, \
             state.0.bias.exp_avg, state.0.bias.exp_avg_sq, state.2.weight.exp_avg, state.2.weight.exp_avg_sq, \
             state.2.bias.exp_avg, state.2.bias.exp_avg_sq; unexpected state.0.bias.momentum_buffer, \
             state.0.weight.momentum_buffer, state.2.bias.momentum_buffer, state.2.weight.momentum_buffer: path {}; set up \
             the same rule for the same model",
            path.display()
        ),
    );
    assert_eq!(adam.learning_rate(), 0.3);
    let other = chain![Linear::new(3, 4, &device())?];
    let error = Sgd::new(0.1).momentum(0.9).setup(&other)?.load(&path).expect_err("the model is smaller");
    assert!(error.is_format(), "{error}");
    nn::save(&model, &path)?;
    assert!(optimizer.load(&path).is_err());
    Ok(())
}
