//! Whole training runs: nothing is changed, gradients and optimizer steps are judged, memory stays.

use nn::optim::AdamW;
use nn::{Conv2d, Forward, Linear, Module, chain, with_gradient};

use super::*;

#[derive(Module, Clone, Debug)]
struct Net {
    conv: Conv2d,
    hidden: Linear,
    output: Linear,
}

impl Net {
    fn new(device: &Device) -> Result<Self> {
        let stream = tensor_core::random::Stream::new(3);
        tensor_core::random::with_stream(stream, || {
            Ok(Self {
                conv: Conv2d::new(1, 2, 3, device)?,
                hidden: Linear::new(8, 5, device)?,
                output: Linear::new(5, 3, device)?,
            })
        })
    }
}

impl Forward for Net {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let x = self.conv.forward(x)?.relu()?.flatten(1..)?;
        self.output.forward(&self.hidden.forward(&x)?.relu()?)
    }
}

/// The losses of some steps, and the parameters after them.
fn train(device: &Device, n_steps: usize, mut each: impl FnMut(&Net)) -> Result<(Vec<f32>, Vec<Vec<f32>>)> {
    let mut net = Net::new(device)?;
    let mut optimizer = AdamW::new(1e-2).setup(&net)?;
    let x = ramp(&[6, 1, 4, 4], device)?;
    let labels = Tensor::from_vec(vec![0i64, 1, 2, 0, 1, 2], [6], device)?;
    let mut losses = Vec::new();
    for _ in 0..n_steps {
        let (loss, gradients) = with_gradient(&net, |m| nn::loss::cross_entropy(&m.forward(&x)?, &labels))?;
        optimizer.update(&mut net, &gradients)?;
        losses.push(loss.item::<f32>()?);
        each(&net);
    }
    let values = net.named_parameters().iter().map(|(_, p)| p.to_vec::<f32>()).collect::<Result<_>>()?;
    Ok((losses, values))
}

#[test]
fn training_in_lockstep_gives_the_same_bytes() -> Result<()> {
    let (device, log, _folder) = watched(&cpu(), false);
    assert_eq!(train(&device, 5, |_| {})?, train(&cpu(), 5, |_| {})?);
    let total = log.total();
    assert_eq!((total.n_breaches, total.n_unjudged), (0, 0), "{log}");
    assert_eq!(log.ops()["update"].n, 5 * 6, "each of six parameters in each of five steps");
    Ok(())
}

#[test]
fn memory_does_not_grow_and_parameters_stay_in_place() -> Result<()> {
    let (sim, _) = backend_cpu::test_device::test_device("sim", 0);
    let (device, log, _folder) = watched(&sim, true);
    let (mut used, mut places) = (Vec::new(), Vec::new());
    train(&device, 12, |net| {
        if used.is_empty() {
            net.named_parameters().into_iter().for_each(|(path, p)| log.name(path, p));
        }
        used.push(sim.memory().expect("known").used_bytes);
        places.push(Arc::as_ptr(net.hidden.weight.storage()).cast::<()>() as usize);
    })?;
    assert!(used[1..].iter().all(|&u| u == used[1]), "{used:?}");
    assert!(places.iter().all(|&p| p == places[0]), "an update wrote elsewhere: {places:?}");
    Ok(())
}

#[test]
fn gradients_are_judged() -> Result<()> {
    let op = "conv_weight_grad";
    let (device, log, _folder) = watched(&spoilt_op(op), false);
    let error = train(&device, 1, |_| {}).expect_err("a breach");
    assert!(
        error.to_string().starts_with("conv_weight_grad: sim:0 breaks the contract: element [1, 0, 2, 2]"),
        "{error}"
    );
    assert_eq!(log.ops()[op].n, 1);
    Ok(())
}

#[test]
fn updates_are_judged_named_and_taken_back() -> Result<()> {
    let (device, log, _folder) = watched(&spoilt_op("update"), false);
    let mut net = chain![Linear::new(2, 1, &device)?];
    net.named_parameters().into_iter().for_each(|(path, p)| log.name(path, p));
    let values = |net: &dyn Module| -> Result<Vec<Vec<f32>>> {
        net.named_parameters().iter().map(|(_, p)| p.to_vec::<f32>()).collect()
    };
    let before = values(&net)?;
    let mut optimizer = AdamW::new(1e-2).setup(&net)?;
    let x = ramp(&[4, 2], &device)?;
    let (_, gradients) = with_gradient(&net, |m| m.forward(&x)?.sum(..))?;
    let error = optimizer.update(&mut net, &gradients).expect_err("a breach").to_string();
    assert!(error.starts_with("update: sim:0 breaks the contract: output 0: element [0, 1] is "), "{error}");
    assert!(error.contains("; input 0 [1, 2] f32 (0.weight), "), "{error}");
    assert_eq!(values(&net)?, before, "a failed update changes nothing");
    Ok(())
}

#[test]
fn a_recorded_update_flows_on() -> Result<()> {
    let (device, log, _folder) = watched(&spoilt_op("update"), true);
    let (_, wrong) = train(&device, 2, |_| {})?;
    assert_ne!(wrong, train(&cpu(), 2, |_| {})?.1);
    assert_eq!(log.ops()["update"].n_breaches, 12);
    let others = log.ops().into_iter().filter(|(op, _)| op != "update").map(|(_, t)| t.n_breaches).sum::<u64>();
    assert_eq!(others, 0, "what follows from a wrong parameter is judged from it: {log}");
    Ok(())
}

#[test]
fn a_shared_parameter_keeps_its_clone() -> Result<()> {
    let (device, _, _folder) = watched(&cpu(), false);
    let mut net = chain![Linear::new(2, 1, &device)?];
    let kept = net.named_parameters()[0].1.value().clone();
    let before = kept.to_vec::<f32>()?;
    let mut optimizer = AdamW::new(1e-1).setup(&net)?;
    let x = ramp(&[4, 2], &device)?;
    let (_, gradients) = with_gradient(&net, |m| m.forward(&x)?.sum(..))?;
    optimizer.update(&mut net, &gradients)?;
    assert_eq!(kept.to_vec::<f32>()?, before);
    assert_ne!(net.named_parameters()[0].1.to_vec::<f32>()?, before);
    Ok(())
}

#[test]
fn a_breach_in_a_chain_names_the_layer() -> Result<()> {
    let (device, _, _folder) = watched(&spoilt_op("matmul"), false);
    let net = chain![nn::Relu, Linear::new(3, 2, &device)?];
    let error = net.forward(&ramp(&[4, 3], &device)?).expect_err("a breach").to_string();
    assert!(error.starts_with("1: matmul: sim:0 breaks the contract: "), "{error}");
    Ok(())
}
