//! Convolutions.

use consort::nn;
use consort::prelude::*;
use integration::{Grid, assert_close, assert_exact};

/// The definition of a convolution with stride 1 and equal zero padding on all sides.
fn conv_reference(x: &Grid, w: &Grid, padding: usize) -> Grid {
    let (h, v) = (x.dims[2] + 2 * padding + 1 - w.dims[2], x.dims[3] + 2 * padding + 1 - w.dims[3]);
    Grid::from_fn(&[x.dims[0], w.dims[0], h, v], |i| {
        let mut sum = 0.0;
        for c in 0..w.dims[1] {
            for (a, b) in (0..w.dims[2]).flat_map(|a| (0..w.dims[3]).map(move |b| (a, b))) {
                let (r, s) = ((i[2] + a).wrapping_sub(padding), (i[3] + b).wrapping_sub(padding));
                if r < x.dims[2] && s < x.dims[3] {
                    sum += x.at(&[i[0], c, r, s]) * w.at(&[i[1], c, a, b]);
                }
            }
        }
        sum
    })
}

fn conv(x: &Tensor, w: &Tensor, padding: usize) -> Result<Tensor> {
    x.conv2d(w, None, &ConvOptions { padding: padding.into(), ..Default::default() })
}

/// candle#3404: the layout was mistaken where C = H = W.
pub(crate) fn square_conv(device: &Device) -> Result<()> {
    let (x, w) = (Grid::count(&[1, 4, 4, 4]), Grid::from_fn(&[2, 4, 3, 3], |_| 1.0));
    let got = conv(&x.tensor(device, DType::F32)?, &w.tensor(device, DType::F32)?, 1)?;
    let want = conv_reference(&x, &w, 1);
    assert_exact("conv2d", &got, &want.dims, &want.values);
    Ok(())
}

/// candle#3735, #3836.
pub(crate) fn transposed_kernel_conv(device: &Device) -> Result<()> {
    let x = Grid::from_fn(&[1, 2, 3, 3], |i| ((i[1] * 3 + i[2]) * 3 + i[3] + 1) as f64);
    let kernel = Grid::from_fn(&[2, 2, 2, 2], |i| (((i[0] * 2 + i[1]) * 2 + i[2]) * 2 + i[3] + 1) as f64);
    let swapped = Grid::from_fn(&[2, 2, 2, 2], |i| kernel.at(&[i[1], i[0], i[2], i[3]]));
    let xt = x.tensor(device, DType::F64)?;
    let wt = kernel.tensor(device, DType::F64)?.transpose(0, 1)?;
    let want = conv_reference(&x, &swapped, 0);
    assert_exact("conv2d", &conv(&xt, &wt, 0)?, &want.dims, &want.values);
    let loss = |x: &Tensor, w: &Tensor| conv(x, w, 0)?.square()?.sum(..);
    let by_x = nn::gradient(|x| loss(x, &wt), &xt)?;
    let by_w = nn::gradient(|w| loss(&xt, w), &wt)?;
    // dL/dy = 2y: spread back through each tap.
    let (mut gx, mut gw) = (Grid::from_fn(&x.dims, |_| 0.0), Grid::from_fn(&swapped.dims, |_| 0.0));
    for (o, c, r, s, a, b) in taps() {
        let g = 2.0 * want.at(&[0, o, r, s]);
        gx.values[(c * 3 + r + a) * 3 + s + b] += g * swapped.at(&[o, c, a, b]);
        gw.values[((o * 2 + c) * 2 + a) * 2 + b] += g * x.at(&[0, c, r + a, s + b]);
    }
    assert_exact("by input", &by_x, &gx.dims, &gx.values);
    assert_exact("by weight", &by_w, &gw.dims, &gw.values);
    Ok(())
}

/// Every (output channel, input channel, row, column, tap row, tap column) of a 2×2 kernel over 3×3.
fn taps() -> impl Iterator<Item = (usize, usize, usize, usize, usize, usize)> {
    (0..64).map(|i| (i >> 5 & 1, i >> 4 & 1, i >> 3 & 1, i >> 2 & 1, i >> 1 & 1, i & 1))
}

/// burn#5626.
pub(crate) fn large_pointwise_conv(device: &Device) -> Result<()> {
    for (c_in, c_out) in [(104, 208), (440, 440)] {
        let x = Grid::from_fn(&[1, c_in, 20, 20], |i| ((i[1] * 400 + i[2] * 20 + i[3]) as f64 * 0.01).sin());
        let w = Grid::from_fn(&[c_out, c_in, 1, 1], |i| ((i[0] * c_in + i[1]) as f64 * 0.03).cos());
        let got = conv(&x.tensor(device, DType::F32)?, &w.tensor(device, DType::F32)?, 0)?;
        let mut want = Grid::from_fn(&[1, c_out, 20, 20], |_| 0.0);
        for (plane, weights) in want.values.chunks_mut(400).zip(w.values.chunks(c_in)) {
            for (&weight, input) in weights.iter().zip(x.values.chunks(400)) {
                plane.iter_mut().zip(input).for_each(|(y, x)| *y += weight * x);
            }
        }
        assert_close("conv2d", &got, &want, c_in, 1.0);
    }
    Ok(())
}
