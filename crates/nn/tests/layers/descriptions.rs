//! How layers print.

use nn::{ConvNdOptions, LinearOptions, Module, MultiHeadAttentionOptions, chain};
use tensor_core::Result;

use crate::device;

#[test]
fn layers_state_their_settings() -> Result<()> {
    let d = &device();
    let check = |layer: &dyn Module, text: &str| assert_eq!(layer.describe(), text);
    check(&nn::Linear::new(784, 10, d)?, "Linear(784 => 10)");
    check(&nn::Linear::with(3, 2, LinearOptions { bias: false, ..Default::default() }, d)?, "Linear(3 => 2, no bias)");
    check(&nn::Embedding::new(65, 8, d)?, "Embedding(65 => 8)");
    check(&nn::Conv2d::new(1, 6, 5, d)?, "Conv2d(1 => 6, kernel 5×5)");
    let grouped = ConvNdOptions { groups: 2, bias: false, ..Default::default() };
    check(
        &nn::Conv1d::with(4, 6, 3, grouped, d)?.stride(2).padding(1).dilation(3),
        "Conv1d(4 => 6, kernel 3, stride 2, padding 1, dilation 3, groups 2, no bias)",
    );
    check(&nn::MaxPool2d::new(2), "MaxPool2d(2×2)");
    check(&nn::MaxPool1d::new(3).stride(2).padding(1).dilation(2), "MaxPool1d(3, stride 2, padding 1, dilation 2)");
    check(&nn::AvgPool3d::new([1, 2, 2]).count_padding(false), "AvgPool3d(1×2×2, padding not counted)");
    check(&nn::AdaptiveAvgPool2d::new(1), "AdaptiveAvgPool2d(1×1)");
    check(&nn::AdaptiveMaxPool1d::new(4), "AdaptiveMaxPool1d(4)");
    check(&nn::GlobalAvgPool, "GlobalAvgPool");
    check(&nn::BatchNorm2d::new(6, d)?, "BatchNorm2d(6)");
    check(&nn::LayerNorm::new([3, 4], d)?, "LayerNorm(3×4)");
    check(&nn::RmsNorm::new(8, d)?, "RmsNorm(8)");
    check(&nn::GroupNorm::new(2, 6, d)?, "GroupNorm(2 of 6)");
    check(&nn::Dropout::new(0.5), "Dropout(0.5)");
    check(&nn::Flatten, "Flatten");
    check(&nn::Relu, "Relu");
    check(&nn::LeakyRelu::default(), "LeakyRelu(0.01)");
    check(&nn::Softmax(-1), "Softmax(-1)");
    let causal = MultiHeadAttentionOptions { causal: true, ..Default::default() };
    check(&nn::MultiHeadAttention::with(8, 2, causal, d)?, "MultiHeadAttention(8, 2 heads, causal)");
    Ok(())
}

#[test]
fn a_chain_prints_its_layers_with_their_parameters() -> Result<()> {
    let model = chain![nn::Conv2d::new(1, 4, 3, &device())?, nn::BatchNorm2d::new(4, &device())?, nn::Relu];
    let text = model.to_string();
    for part in ["0: Conv2d(1 => 4, kernel 3×3)", "weight [4, 1, 3, 3]", "running_var [4]", "2: Relu", "48 parameters"]
    {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
    Ok(())
}
