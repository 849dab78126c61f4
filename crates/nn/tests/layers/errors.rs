//! What layers say about input that does not fit.

use nn::{AttentionMask, Dropout, Forward, MultiHeadAttention};
use tensor_core::{DType, Result, Tensor};

use crate::{device, fails};

fn zeros(shape: &[usize]) -> Result<Tensor> {
    Tensor::zeros(shape, &device())
}

#[test]
fn inputs_that_do_not_fit_name_the_layer_and_both_sizes() -> Result<()> {
    let d = &device();
    let check = |layer: &dyn Forward, shape: &[usize], text: &str| {
        fails(zeros(shape).and_then(|x| layer.forward(&x)), text);
    };
    let linear = nn::Linear::new(784, 10, d)?;
    check(
        &linear,
        &[32, 28, 28],
        "linear(784 => 10): last axis must be 784: input [32, 28, 28]; flatten the image first",
    );
    check(&linear, &[32, 20], "linear(784 => 10): last axis must be 784: input [32, 20]");
    check(&linear, &[], "linear(784 => 10): last axis must be 784: input []");
    let conv = nn::Conv2d::new(1, 6, 5, d)?;
    check(&conv, &[2, 3, 8, 8], "conv2d(1 => 6): input must be [N, 1, H, W]: input [2, 3, 8, 8]");
    check(
        &conv,
        &[28, 28],
        "conv2d(1 => 6): input must be [N, 1, H, W]: input [28, 28]; add the missing axes with .unsqueeze(0)",
    );
    check(
        &conv,
        &[2, 1, 4, 8],
        "conv2d: the kernel is larger than the padded input: kernel spans 5, input 4 on spatial axis 0",
    );
    check(
        &nn::MaxPool2d::new(2).padding(2),
        &[1, 1, 4, 4],
        "max_pool: padding must be at most half the kernel: padding (2, 2), kernel 2 on spatial axis 0",
    );
    check(
        &nn::AdaptiveAvgPool2d::new(2),
        &[1, 1, 4],
        "adaptive_avg_pool2d: input must be [N, C, spatial..] with 2 spatial axes: input [1, 1, 4]",
    );
    check(&nn::GlobalMaxPool, &[2, 3], "global_max_pool: input must be [N, C, spatial..]: input [2, 3]");
    let norm = nn::BatchNorm1d::new(3, d)?;
    check(&norm, &[2, 4], "batch_norm1d(3): input must be [N, C] or [N, C, L] with C = 3: input [2, 4]");
    nn::training(|| {
        check(
            &norm,
            &[1, 3],
            "batch_norm1d(3): training needs more than one value per channel: input [1, 3]; use a larger batch",
        );
    });
    let norm = nn::BatchNorm2d::new(3, d)?;
    check(&norm, &[2, 4, 1, 1], "batch_norm2d(3): input must be [N, C, H, W] with C = 3: input [2, 4, 1, 1]");
    check(&nn::LayerNorm::new([3, 4], d)?, &[2, 4], "layer_norm(3×4): last axes must be [3, 4]: input [2, 4]");
    check(&nn::RmsNorm::new(3, d)?, &[2, 4], "rms_norm(3): last axes must be [3]: input [2, 4]");
    check(&nn::GroupNorm::new(2, 4, d)?, &[2, 6], "group_norm(2 of 4): input must be [N, 4, ..]: input [2, 6]");
    check(&nn::Glu::default(), &[2, 3], "glu: the axis must have an even size: input [2, 3], axis 1");
    check(
        &nn::Embedding::new(5, 3, d)?,
        &[2],
        "embedding(5 => 3): indices must be i64 or i32: input f32; cast them with .cast(DType::I64)",
    );
    let attention = MultiHeadAttention::new(6, 2, d)?;
    check(
        &attention,
        &[2, 3, 4],
        "multi_head_attention(6, 2 heads): query must be [N, T, 6], key and value [N, S, 6]: query [2, 3, 4], key [2, 3, 4], \
         value [2, 3, 4]",
    );
    let (x, memory) = (zeros(&[2, 3, 6])?, zeros(&[1, 4, 6])?);
    fails(
        attention.attend(&x, &memory, &memory, AttentionMask::default()),
        "multi_head_attention(6, 2 heads): query must be [N, T, 6], key and value [N, S, 6]: query [2, 3, 6], key [1, 4, 6], \
         value [1, 4, 6]",
    );
    nn::training(|| check(&Dropout::new(1.5), &[2], "dropout: the probability must be in [0, 1]: p 1.5"));
    Ok(())
}

#[test]
fn settings_that_make_no_sense_are_errors_when_the_layer_is_made() {
    let d = &device();
    let grouped = nn::ConvNdOptions { groups: 2, ..Default::default() };
    fails(
        nn::Conv2d::with(3, 4, 3, grouped, d),
        "conv2d: groups must divide both numbers of channels: in 3, out 4, groups 2",
    );
    fails(nn::GroupNorm::new(0, 4, d), "group_norm: groups must divide the channels: channels 4, groups 0");
    fails(MultiHeadAttention::new(6, 4, d), "multi_head_attention: heads must divide the width: width 6, heads 4");
    let padded = nn::EmbeddingOptions { padding_index: Some(5), ..Default::default() };
    fails(nn::Embedding::with(5, 3, padded, d), "embedding: padding index must be below 5: index 5");
    fails(nn::Linear::new(3, 2, (d, DType::I64)), "linear: parameters need a float dtype: dtype i64; use DType::F32");
}

#[test]
fn an_index_out_of_range_is_an_error() -> Result<()> {
    let table = nn::Embedding::new(5, 3, &device())?;
    let error = table.forward(&Tensor::from_slice(&[0i64, 5], 2, &device())?).expect_err("there is no row 5");
    assert!(error.is_index(), "{error}");
    Ok(())
}

#[test]
fn empty_batches_pass_through() -> Result<()> {
    let d = &device();
    let check = |layer: &dyn Forward, shape: &[usize], expected: &[usize]| -> Result<()> {
        assert_eq!(layer.forward(&zeros(shape)?)?.dims(), expected);
        Ok(())
    };
    check(&nn::Linear::new(3, 2, d)?, &[0, 3], &[0, 2])?;
    check(&nn::Linear::new(3, 2, d)?, &[4, 0, 3], &[4, 0, 2])?;
    check(&nn::Conv2d::new(1, 2, 3, d)?, &[0, 1, 5, 5], &[0, 2, 3, 3])?;
    check(&nn::MaxPool2d::new(2), &[0, 1, 4, 4], &[0, 1, 2, 2])?;
    check(&nn::LayerNorm::new(3, d)?, &[0, 3], &[0, 3])?;
    check(&nn::GroupNorm::new(1, 2, d)?, &[0, 2, 3], &[0, 2, 3])?;
    check(&nn::BatchNorm1d::new(3, d)?, &[0, 3], &[0, 3])?;
    check(&nn::Flatten, &[0, 2, 3], &[0, 6])
}
