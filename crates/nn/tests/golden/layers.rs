//! Output, gradients by input and parameters, and running statistics of every layer.

use nn::{
    AttentionMask, BatchNormOptions, ConvNdOptions, Embedding, EmbeddingOptions, Forward, GroupNorm, LayerNorm,
    LayerNormOptions, Linear, LinearOptions, Module, MultiHeadAttention, Param, RmsNorm, RmsNormOptions, with_gradient,
};
use tensor_core::{Place, Result, Tensor};

use crate::Case;

/// A layer and its input as a parameter, so that gradients are taken by both.
#[derive(Module, Clone, Debug)]
#[module(display = false)]
struct Probe<L> {
    layer: L,
    input: Param,
}

/// Sets the layer to the case's parameters and buffers.
fn loaded<L: Module>(case: &Case, mut layer: L) -> Result<L> {
    let names = case.names();
    let state: Result<Vec<_>> = layer
        .state_dict()
        .into_iter()
        .map(|(path, _)| {
            let kind = if names.contains(&format!("param/{path}")) { "param" } else { "buffer" };
            Ok((path.clone(), case.get(&format!("{kind}/{path}"))?))
        })
        .collect();
    layer.load_state_dict(&state?)?;
    Ok(layer)
}

fn check<L: Module + Clone>(
    name: &'static str,
    make: impl Fn(&Case) -> Result<L>,
    forward: impl Fn(&Case, &L, &Tensor) -> Result<Tensor>,
) {
    Case::each(name, |case| {
        let layer = loaded(case, make(case)?)?;
        let input = case.get("input")?;
        let mut probe = Probe { layer, input: Param::new(input) };
        let is_float = probe.input.dtype().is_float();
        probe.input.set_trainable(is_float);
        // A layer without parameters needs something to train where its input is not.
        let (outcome, grads) = with_gradient(&probe, |m| {
            let y = forward(case, &m.layer, &m.input)?;
            Ok((y.mul(&case.get("cotangent")?)?.sum(..)?, y))
        })?;
        case.compare("output", &outcome.1.stop_gradient())?;
        if is_float {
            case.compare("grad/input", grads.of(&probe.input).expect("the input reaches the loss"))?;
        }
        for (path, param) in probe.layer.named_parameters() {
            case.compare(&format!("grad/{path}"), grads.of(param).expect("every parameter reaches the loss"))?;
        }
        for name in case.names().iter().filter(|name| name.starts_with("after/")) {
            let path = name.trim_start_matches("after/");
            let (_, value) = probe.layer.state_dict().into_iter().find(|(p, _)| p == path).expect("the buffer exists");
            case.compare(name, &value)?;
        }
        Ok(())
    });
}

/// The layers of one tensor.
fn layer<L: Module + Forward + Clone>(name: &'static str, make: impl Fn(&Case) -> Result<L>) {
    check(name, make, |_, layer, x| layer.forward(x));
}

#[test]
fn linear() {
    layer("linear", |c| Linear::new(5, 3, c.place()));
    layer("linear_axes", |c| Linear::with(5, 3, LinearOptions { bias: false, ..Default::default() }, c.place()));
}

#[test]
fn embedding() {
    let padded = EmbeddingOptions { padding_index: Some(1), ..Default::default() };
    layer("embedding", |c| Embedding::new(5, 3, c.place()));
    layer("embedding_padding", |c| Embedding::with(5, 3, padded, c.place()));
}

#[test]
fn convolutions() {
    let grouped = ConvNdOptions { groups: 2, ..Default::default() };
    let depthwise = ConvNdOptions { groups: 3, bias: false, ..Default::default() };
    layer("conv1d", |c| Ok(nn::Conv1d::with(4, 6, 3, grouped, c.place())?.stride(2).padding(1)));
    layer("conv2d", |c| Ok(nn::Conv2d::new(2, 3, [3, 2], c.place())?.stride([2, 1]).padding([1, 0]).dilation([1, 2])));
    layer("conv2d_depthwise", |c| Ok(nn::Conv2d::with(3, 6, 3, depthwise, c.place())?.padding(1)));
    layer("conv3d", |c| Ok(nn::Conv3d::new(2, 2, 2, c.place())?.padding(1)));
}

#[test]
fn pools() {
    layer("max_pool1d", |_| Ok(nn::MaxPool1d::new(3).stride(2).padding(1)));
    layer("max_pool2d", |_| Ok(nn::MaxPool2d::new(2)));
    layer("max_pool2d_dilated", |_| Ok(nn::MaxPool2d::new([3, 2]).stride([1, 2]).padding([1, 0]).dilation([2, 1])));
    layer("max_pool3d", |_| Ok(nn::MaxPool3d::new(2)));
    layer("avg_pool1d", |_| Ok(nn::AvgPool1d::new(3).stride(2).padding(1)));
    layer("avg_pool2d", |_| Ok(nn::AvgPool2d::new(2)));
    layer("avg_pool2d_uncounted", |_| Ok(nn::AvgPool2d::new(3).stride(2).padding(1).count_padding(false)));
    layer("avg_pool3d", |_| Ok(nn::AvgPool3d::new(2)));
    layer("adaptive_avg_pool1d", |_| Ok(nn::AdaptiveAvgPool1d::new(4)));
    layer("adaptive_avg_pool2d", |_| Ok(nn::AdaptiveAvgPool2d::new([3, 4])));
    layer("adaptive_max_pool2d", |_| Ok(nn::AdaptiveMaxPool2d::new([3, 2])));
    layer("global_avg_pool", |_| Ok(nn::GlobalAvgPool));
}

#[test]
fn batch_norms() {
    let quick = BatchNormOptions { epsilon: 1e-3, momentum: 0.3, ..Default::default() };
    let plain = BatchNormOptions { affine: false, ..Default::default() };
    layer("batch_norm1d", |c| nn::BatchNorm1d::new(3, c.place()));
    layer("batch_norm1d_axis", |c| nn::BatchNorm1d::new(3, c.place()));
    layer("batch_norm2d", |c| nn::BatchNorm2d::with(3, quick, c.place()));
    layer("batch_norm3d", |c| nn::BatchNorm3d::with(2, plain, c.place()));
    nn::inference(|| layer("batch_norm2d_infer", |c| nn::BatchNorm2d::new(3, c.place())));
}

#[test]
fn other_norms() {
    layer("layer_norm", |c| LayerNorm::new(6, c.place()));
    layer("layer_norm_axes", |c| {
        LayerNorm::with([3, 4], LayerNormOptions { epsilon: 1e-2, ..Default::default() }, c.place())
    });
    layer("group_norm", |c| GroupNorm::new(2, 6, c.place()));
    layer("instance_norm", |c| GroupNorm::instance(3, c.place()));
    // Its default ε is the dtype's, and the file's is f64's.
    let exact = RmsNormOptions { epsilon: Some(f64::EPSILON), ..Default::default() };
    layer("rms_norm", |c| RmsNorm::with(6, exact, c.place()));
    layer("rms_norm_epsilon", |c| {
        RmsNorm::with(6, RmsNormOptions { epsilon: Some(1e-2), ..Default::default() }, c.place())
    });
}

#[test]
fn activations() {
    layer("relu", |_| Ok(nn::Relu));
    layer("leaky_relu", |_| Ok(nn::LeakyRelu(0.1)));
    layer("elu", |_| Ok(nn::Elu(0.7)));
    layer("selu", |_| Ok(nn::Selu));
    layer("celu", |_| Ok(nn::Celu(0.5)));
    layer("gelu", |_| Ok(nn::Gelu));
    layer("gelu_tanh", |_| Ok(nn::GeluTanh));
    layer("silu", |_| Ok(nn::Silu));
    layer("mish", |_| Ok(nn::Mish));
    layer("softplus", |_| Ok(nn::Softplus));
    layer("softsign", |_| Ok(nn::Softsign));
    layer("hard_swish", |_| Ok(nn::HardSwish));
    layer("hard_tanh", |_| Ok(nn::HardTanh));
    layer("tanh", |_| Ok(nn::Tanh));
    layer("sigmoid", |_| Ok(nn::Sigmoid));
    layer("log_sigmoid", |_| Ok(nn::LogSigmoid));
    layer("glu", |_| Ok(nn::Glu::default()));
    layer("softmax", |_| Ok(nn::Softmax::default()));
    layer("log_softmax", |_| Ok(nn::LogSoftmax::default()));
}

fn attention_of(place: impl Place) -> Result<MultiHeadAttention> {
    MultiHeadAttention::new(6, 2, place)
}

#[test]
fn attention() {
    layer("attention", |c| attention_of(c.place()));
    check(
        "attention_causal",
        |c| attention_of(c.place()),
        |_, layer, x| layer.attend(x, x, x, AttentionMask { causal: true, ..Default::default() }),
    );
    check(
        "attention_keys",
        |c| attention_of(c.place()),
        |case, layer, x| {
            let (memory, visible) = (case.get("memory")?, case.get("visible")?);
            layer.attend(x, &memory, &memory, AttentionMask { keys: Some(&visible), ..Default::default() })
        },
    );
}
