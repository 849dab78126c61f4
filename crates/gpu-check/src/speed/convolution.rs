//! Convolutions and their gradients.

use nn::gradient_n;
use tensor_core::{ConvOptions, DType, Result, Tensor};

use super::seconds;
use crate::device::Subject;
use crate::record::{Record, number};

/// Images, channels in and out, height and width, kernel.
const SHAPES: [[usize; 5]; 4] = [[64, 1, 32, 28, 3], [32, 64, 64, 56, 3], [32, 128, 128, 28, 3], [32, 256, 512, 14, 1]];

pub(crate) fn run(subject: &Subject, record: &mut Record) -> Result<()> {
    record.table(
        "Same padding, step 1",
        &[
            "images",
            "channels",
            "filters",
            "image",
            "kernel",
            "dtype",
            "pass",
            "µs",
            "TFLOP/s",
            "PyTorch (µs)",
            "ratio of times",
        ],
    );
    let shapes: &[[usize; 5]] = if subject.is_emulated { &[[1, 2, 3, 6, 3]] } else { &SHAPES };
    for &[n, channels, filters, side, kernel] in shapes {
        for dtype in [DType::F32, DType::BF16] {
            let x = &Tensor::randn([n, channels, side, side], &subject.device)?.cast(dtype)?;
            let w = &Tensor::randn([filters, channels, kernel, kernel], &subject.device)?.cast(dtype)?;
            let options = ConvOptions { padding: (kernel / 2).into(), ..Default::default() };
            type Work<'a> = Box<dyn FnMut() -> Result<()> + 'a>;
            let works: [(&str, f64, Work<'_>); 2] = [
                ("forward", 1.0, Box::new(|| x.conv2d(w, None, &options).map(drop))),
                (
                    "forward and backward",
                    3.0,
                    Box::new(|| gradient_n(|x| x[0].conv2d(x[1], None, &options)?.sum(..), [x, w]).map(drop)),
                ),
            ];
            for (pass, products, mut work) in works {
                let what = format!("conv {n} {channels} {filters} {side} {kernel} {dtype} {pass}");
                if !record.has_time_for(&what) {
                    continue;
                }
                let time = seconds(subject, &mut work)?;
                let terms = (n * filters * side * side * channels * kernel * kernel) as f64;
                let [torch, ratio] = record.beside_torch(&what, time);
                let sizes = [n, channels, filters, side, kernel].map(Into::into).to_vec();
                let numbers = [time * 1e6, 2.0 * products * terms / time / 1e12].map(number).to_vec();
                record.row([sizes, vec![dtype.name().into(), pass.into()], numbers, vec![torch, ratio]].concat());
            }
        }
    }
    Ok(())
}
