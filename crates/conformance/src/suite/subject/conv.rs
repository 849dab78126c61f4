//! Convolutions and transposed convolutions: grouped, depthwise, dilated, strided, padded unevenly.

use tensor_core::{ConvOptions, ConvTransposeOptions, Padding, Result, Tensor};

use super::product::epilogues;
use super::{is_rare, subject};
use crate::suite::case::{Call, Subject};
use crate::suite::draw::Draw;
use crate::suite::input::Input;

type Conv = fn(&Tensor, &Tensor, Option<&Tensor>, &ConvOptions) -> Result<Tensor>;
type ConvTranspose = fn(&Tensor, &Tensor, Option<&Tensor>, &ConvTransposeOptions) -> Result<Tensor>;

const CONVS: [(&str, usize, Conv); 3] =
    [("conv1d", 1, Tensor::conv1d), ("conv2d", 2, Tensor::conv2d), ("conv3d", 3, Tensor::conv3d)];

const TRANSPOSES: [(&str, usize, ConvTranspose); 3] = [
    ("conv_transpose1d", 1, Tensor::conv_transpose1d),
    ("conv_transpose2d", 2, Tensor::conv_transpose2d),
    ("conv_transpose3d", 3, Tensor::conv_transpose3d),
];

/// A window over so many spatial axes, and the sizes that it moves over.
struct Windows {
    kernel: Vec<usize>,
    stride: Vec<usize>,
    dilation: Vec<usize>,
    padding: Vec<(usize, usize)>,
    spatial: Vec<usize>,
}

impl Windows {
    /// At least one window fits, but for once in a while.
    fn new(draw: &mut Draw<'_>, rank: usize) -> Self {
        let (largest, further) = if rank == 3 { (2, 2) } else { (3, 5) };
        let misfit = usize::from(is_rare(draw, 32));
        let mut new = Self { kernel: vec![], stride: vec![], dilation: vec![], padding: vec![], spatial: vec![] };
        for _ in 0..rank {
            let (kernel, dilation) = (draw.between(1, largest), draw.pick(&[1, 1, 2]));
            let padding = (draw.pick(&[0, 1, 0, 2]), draw.pick(&[0, 1, 0, 2]));
            let reach = (kernel - 1) * dilation + 1;
            let least = reach.saturating_sub(padding.0 + padding.1).max(1);
            new.spatial.push((least + draw.below(further)).saturating_sub(misfit));
            new.stride.push(draw.pick(&[1, 2, 1, 3]));
            new.kernel.push(kernel);
            new.dilation.push(dilation);
            new.padding.push(padding);
        }
        new
    }

    fn options(&self, groups: usize) -> ConvOptions {
        ConvOptions::default()
            .stride(&self.stride[..])
            .dilation(&self.dilation[..])
            .padding(Padding::from(&self.padding[..]))
            .groups(groups)
    }
}

/// Batch, groups, channels per group in and out; once in a while past a vector or a block.
fn channels(draw: &mut Draw<'_>) -> (usize, usize, usize, usize) {
    let n = draw.pick(&[1, 2, 3, 0]);
    if is_rare(draw, 24) {
        return (1, 1, draw.pick(&[17, 33]), draw.pick(&[9, 17]));
    }
    (n, draw.pick(&[1, 2, 1, 3]), draw.pick(&[2, 1, 3]), draw.pick(&[1, 2, 3]))
}

/// Input, weight and, maybe, bias.
fn inputs(draw: &mut Draw<'_>, input: &[usize], weight: &[usize], c_out: usize) -> Vec<Input> {
    let mut inputs = vec![Input::data(input), Input::data(weight)];
    if draw.flag() {
        inputs.push(Input::data(&[if is_rare(draw, 24) { c_out + 1 } else { c_out }]));
    }
    inputs
}

/// A convolution's input and weight, and its options.
fn conv(draw: &mut Draw<'_>, rank: usize) -> (Vec<usize>, Vec<usize>, ConvOptions) {
    let ((n, groups, c, c_out), windows) = (channels(draw), Windows::new(draw, rank));
    let c_weight = if is_rare(draw, 40) { c + 1 } else { c };
    let input = [&[n, groups * c], &windows.spatial[..]].concat();
    let weight = [&[groups * c_out, c_weight], &windows.kernel[..]].concat();
    let mut options = windows.options(groups);
    if is_rare(draw, 12) {
        options.padding = Padding::Same;
    }
    (input, weight, options)
}

fn described(
    stride: &impl std::fmt::Debug,
    padding: &Padding,
    dilation: &impl std::fmt::Debug,
    groups: usize,
) -> String {
    format!("stride {stride:?}, padding {padding:?}, dilation {dilation:?}, groups {groups}")
}

pub(super) fn subjects() -> Vec<Subject> {
    let convs = CONVS.into_iter().map(|(name, rank, run)| {
        subject(name, format!("{name}(weight, bias, options)"), move |draw, _| {
            let (input, weight, options) = conv(draw, rank);
            let inputs = inputs(draw, &input, &weight, weight[0]);
            let text = described(&options.stride, &options.padding, &options.dilation, options.groups);
            Call::new(text, inputs, move |x| run(&x[0], &x[1], x.get(2), &options))
        })
    });
    let transposes = TRANSPOSES.into_iter().map(|(name, rank, run)| {
        subject(name, format!("{name}(weight, bias, options)"), move |draw, _| {
            let ((n, groups, c, c_out), windows) = (channels(draw), Windows::new(draw, rank));
            let spatial: Vec<usize> = (0..rank).map(|_| draw.between(1, if rank == 3 { 2 } else { 4 })).collect();
            let extra: Vec<usize> = windows.stride.iter().map(|&stride| draw.below(stride)).collect();
            let input = [&[n, groups * c], &spatial[..]].concat();
            let weight = [&[groups * c, c_out], &windows.kernel[..]].concat();
            let inputs = inputs(draw, &input, &weight, groups * c_out);
            let options = ConvTransposeOptions::default()
                .stride(&windows.stride[..])
                .dilation(&windows.dilation[..])
                .padding(Padding::from(&windows.padding[..]))
                .output_padding(&extra[..])
                .groups(groups);
            let text = described(&options.stride, &options.padding, &options.dilation, groups);
            Call::new(format!("{text}, output_padding {extra:?}"), inputs, move |x| {
                run(&x[0], &x[1], x.get(2), &options)
            })
        })
    });
    let with = subject("conv_with", "conv_with(weight, options, epilogue, extra)", |draw, _| {
        let rank = draw.pick(&[2, 1, 3]);
        let ((input, weight, options), i) = (conv(draw, rank), draw.below(epilogues().len()));
        let extra = [&[weight[0]][..], &vec![1; rank]].concat();
        let inputs = [&input, &weight, &extra].map(|dims| Input::data(dims)).to_vec();
        let text = described(&options.stride, &options.padding, &options.dilation, options.groups);
        Call::new(format!("{text}, epilogue {i}"), inputs, move |x| {
            x[0].conv_with(&x[1], &options, &epilogues()[i], &[&x[2]])
        })
    });
    convs.chain(transposes).chain([with]).collect()
}
