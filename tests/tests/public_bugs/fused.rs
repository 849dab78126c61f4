//! Paths that backends and interpreters run in one pass.

use consort::nn;
use consort::prelude::*;
use consort::{AttentionOptions, zip};
use integration::{Grid, assert_close, values};

/// candle#2168, #3568: fused paths that silently gave no gradient.
pub(crate) fn cut_graph(device: &Device) -> Result<()> {
    let x =
        Grid::from_fn(&[2, 4, 6], |i| ((i[0] * 24 + i[1] * 6 + i[2]) as f64 * 0.7).sin()).tensor(device, DType::F64)?;
    let weight =
        Grid::from_fn(&[2, 4, 6], |i| ((i[0] * 24 + i[1] * 6 + i[2]) as f64 * 0.3).cos()).tensor(device, DType::F64)?;
    let moment = |x: &Tensor, center: bool| {
        let x = if center { x.sub(&x.mean_keepdim(-1)?)? } else { x.clone() };
        let rstd = x.square()?.mean_keepdim(-1)?.map(|v| (v + 1e-5).rsqrt())?;
        x.mul(&rstd)
    };
    let softmax = |x: &Tensor| {
        let e = zip(x, &x.max_keepdim(-1)?, |x, m| (x - m).exp())?;
        e.div(&e.sum_keepdim(-1)?)
    };
    let mut layer_norm = nn::LayerNorm::new(6, device)?;
    layer_norm = layer_norm.cast(DType::F64)?;
    let rms_norm = nn::RmsNorm::new(6, device)?.cast(DType::F64)?;
    let rms_epsilon = DType::F64.epsilon();
    type Form<'a> = Box<dyn Fn(&Tensor) -> Result<Tensor> + 'a>;
    let pairs: Vec<(&str, Form<'_>, Form<'_>)> = vec![
        ("softmax", Box::new(|x| x.softmax(-1)), Box::new(softmax)),
        ("log_softmax", Box::new(|x| x.log_softmax(-1)), Box::new(|x| softmax(x)?.ln())),
        ("layer norm", Box::new(|x| layer_norm.forward(x)), Box::new(|x| moment(x, true))),
        (
            "rms norm",
            Box::new(|x| rms_norm.forward(x)),
            Box::new(|x| {
                let rstd = x.square()?.mean_keepdim(-1)?.map(|v| (v + rms_epsilon).rsqrt())?;
                x.mul(&rstd)
            }),
        ),
        (
            "attention",
            Box::new(|x| x.attention(x, x, &AttentionOptions { scale: Some(0.5), causal: true, mask: None })),
            Box::new(|x| {
                let future = Tensor::ones([4, 4], device)?.triu(1)?.gt(0.5)?;
                let scores = x.matmul(&x.transpose(-2, -1)?)?.mul(0.5)?.masked_fill(&future, f64::NEG_INFINITY)?;
                softmax(&scores)?.matmul(x)
            }),
        ),
    ];
    for (name, fast, written_out) in &pairs {
        let gradient = |f: &Form<'_>| nn::gradient(|x| f(x)?.mul(&weight)?.sum(..), &x);
        let (got, want) = (gradient(fast)?, gradient(written_out)?);
        assert!(values(&want).iter().any(|g| g.abs() > 1e-3), "{name}: the expected gradient is not trivial");
        assert_close(name, &got, &Grid { dims: want.dims().to_vec(), values: values(&want) }, 64, 4.0);
    }
    Ok(())
}
