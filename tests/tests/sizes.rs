//! Sizes whose products, sums or bytes overflow: an error that names them, never a panic, an abort or a wrong result.

use consort::nn::init::Init;
use consort::prelude::*;
use consort::{ConvTransposeOptions, Padding, data, device, einsum, nn};

/// Sizes that overflow when they are multiplied, added to, or counted in bytes.
const HUGE: [usize; 5] = [1 << 40, 1 << 61, 1 << 62, i64::MAX as usize, usize::MAX];

fn ones(shape: &[usize], device: &Device) -> Tensor {
    Tensor::ones(shape, device).expect("ones")
}

/// A tensor of one element, seen so many times.
fn seen(n: usize, device: &Device) -> Result<Tensor> {
    ones(&[1], device).expand([n])
}

type Attempt = fn(usize, &Device) -> Result<Tensor>;

#[test]
fn sizes_that_overflow_are_errors() {
    let attempts: &[(&str, Attempt)] = &[
        ("zeros", |n, d| Tensor::zeros([n], d)),
        ("zeros of f64", |n, d| Tensor::zeros([n, 8], (d, DType::F64))),
        ("rand", |n, d| Tensor::rand([n], d)),
        ("linspace", |n, d| Tensor::linspace(0.0, 1.0, n, d)),
        ("one_hot", |n, d| Tensor::zeros([2], (d, DType::I64))?.one_hot(n)),
        ("repeat", |n, d| ones(&[3, 3], d).repeat([n, n])?.add(1.0)),
        ("repeat once", |n, d| ones(&[3], d).repeat(n)?.add(1.0)),
        ("outer sum", |n, d| seen(n, d)?.unsqueeze(1)?.add(&seen(n, d)?)),
        ("outer product", |n, d| seen(n, d)?.unsqueeze(1)?.matmul(&seen(n, d)?.unsqueeze(0)?)),
        ("einsum", |n, d| einsum("i,j,k->ijk", &[&seen(n, d)?, &seen(n, d)?, &seen(n, d)?])),
        ("product of nothing", |n, d| {
            let row = Tensor::zeros([0], d)?.reshape([0, n])?;
            row.t()?.matmul(&row)
        }),
        ("pad", |n, d| ones(&[3], d).pad(&[(n, n)], 0.0)),
        ("cat", |n, d| Tensor::cat(&[seen(n, d)?, seen(n, d)?, seen(n, d)?], 0)),
        ("stack", |n, d| Tensor::stack(&[seen(n, d)?, seen(n, d)?, seen(n, d)?], 0)),
        ("diag", |n, d| ones(&[3], d).diag(n.min(i64::MAX as usize) as i64)),
        ("diag below", |n, d| ones(&[3], d).diag(-(n.min(i64::MAX as usize) as i64) - 1)),
        ("narrow", |n, d| ones(&[3], d).narrow(0, n, n)),
        ("reshape", |n, d| ones(&[1], d).reshape([n, n])),
        ("reshape of nothing", |n, d| Tensor::zeros([0], d)?.reshape([0, n, n])),
        ("split", |n, d| Ok(ones(&[4], d).split(&[n, n.wrapping_neg().wrapping_add(4)], 0)?.remove(0))),
        ("conv padding", |n, d| {
            ones(&[1, 1, 8], d).conv1d(&ones(&[1, 1, 3], d), None, &ConvOptions::default().padding(n))
        }),
        ("conv dilation", |n, d| {
            ones(&[1, 1, 8], d).conv1d(&ones(&[1, 1, 3], d), None, &ConvOptions::default().dilation(n))
        }),
        ("conv dilation of no span", |n, d| {
            let options = ConvOptions::default().dilation(n).padding(Padding::Same);
            ones(&[1, 1, 8], d).conv1d(&ones(&[1, 1, 4], d), None, &options)
        }),
        ("conv groups", |n, d| {
            ones(&[1, 8, 8], d).conv1d(&ones(&[1, 8, 3], d), None, &ConvOptions::default().groups(n))
        }),
        ("conv_transpose stride", |n, d| {
            let options = ConvTransposeOptions::default().stride(n);
            ones(&[1, 1, 8], d).conv_transpose1d(&ones(&[1, 1, 3], d), None, &options)
        }),
        ("conv_transpose dilation", |n, d| {
            let options = ConvTransposeOptions::default().dilation(n);
            ones(&[1, 1, 8], d).conv_transpose1d(&ones(&[1, 1, 3], d), None, &options)
        }),
        ("conv_transpose padding", |n, d| {
            let options = ConvTransposeOptions::default().padding(n);
            ones(&[1, 1, 8], d).conv_transpose1d(&ones(&[1, 1, 3], d), None, &options)
        }),
        ("max_pool padding", |n, d| ones(&[1, 1, 8], d).max_pool1d(&PoolOptions::new(2).padding(n))),
        ("max_pool kernel", |n, d| ones(&[1, 1, 8], d).max_pool1d(&PoolOptions::new(n))),
        ("avg_pool dilation", |n, d| ones(&[1, 1, 8], d).avg_pool1d(&PoolOptions::new(3).dilation(n))),
        ("linear", |n, d| Ok(nn::Linear::new(n, n, d)?.weight.value().clone())),
        ("embedding", |n, d| Ok(nn::Embedding::new(n, n, d)?.weight.value().clone())),
        ("identity", |n, d| Init::Identity.tensor([n, 8], d)),
        ("orthogonal", |n, d| Init::Orthogonal { gain: 1.0 }.tensor([n, 8], d)),
        ("conv2d layer's padding", |n, d| nn::Conv2d::new(1, 1, 3, d)?.padding(n).forward(&ones(&[1, 1, 4, 4], d))),
    ];
    let device = device::cpu();
    for (name, attempt) in attempts {
        for n in HUGE {
            let error = attempt(n, &device).err().unwrap_or_else(|| panic!("{name} of {n} must fail"));
            let text = error.to_string();
            assert!(text.contains(": ") && !text.contains("invariant"), "{name} of {n}: {text}");
        }
    }
}

#[test]
fn an_overflow_names_its_operands() {
    let device = device::cpu();
    let n = 1usize << 40;
    let texts = [
        (
            seen(n, &device).and_then(|x| x.unsqueeze(1)?.add(&x)),
            "add: the number of elements overflows: shape [1099511627776, 1099511627776]",
        ),
        (
            ones(&[3], &device).repeat(usize::MAX),
            "repeat: the number of elements overflows: input [3], counts [9223372036854775807]",
        ),
        (
            ones(&[3], &device).diag(i64::MIN),
            "diag: the number of elements overflows: input [3], k -9223372036854775808",
        ),
        (
            ones(&[3], &device).pad(&[(usize::MAX, 1)], 0.0),
            "pad: the sizes overflow: input [3], pairs [(18446744073709551615, 1)]",
        ),
        (
            ones(&[1, 1, 8], &device).conv1d(
                &ones(&[1, 1, 3], &device),
                None,
                &ConvOptions::default().padding(usize::MAX),
            ),
            "conv1d: the sizes overflow: input 8, kernel 3, padding (18446744073709551615, 18446744073709551615), dilation 1 on spatial axis 0",
        ),
    ];
    for (result, want) in texts {
        assert_eq!(result.err().map(|error| error.to_string()).as_deref(), Some(want));
    }
}

#[test]
fn steps_past_the_end_pick_one_element() -> Result<()> {
    let x = Tensor::arange(0.0, 6.0, 1.0, &device::cpu())?.reshape([2, 3])?;
    for step in [3, isize::MAX] {
        assert_eq!(x.slice(1, .., step)?.to_vec::<f32>()?, [0.0, 3.0], "step {step}");
        assert_eq!(x.slice(1, .., -step)?.to_vec::<f32>()?, [2.0, 5.0], "step -{step}");
    }
    assert_eq!(x.slice(1, .., isize::MIN)?.to_vec::<f32>()?, [2.0, 5.0]);
    assert_eq!(x.slice(1, 1..1, isize::MIN)?.dims(), [2, 0]);
    assert_eq!(x.chunk(usize::MAX, 1)?.len(), 3);
    Ok(())
}

#[test]
fn strides_past_the_end_leave_one_window() -> Result<()> {
    let device = device::cpu();
    let (x, w) = (Tensor::arange(0.0, 6.0, 1.0, &device)?.reshape([1, 1, 6])?, ones(&[1, 1, 3], &device));
    for stride in [4, 1 << 40, usize::MAX] {
        assert_eq!(x.conv1d(&w, None, &ConvOptions::default().stride(stride))?.to_vec::<f32>()?, [3.0]);
        assert_eq!(x.max_pool1d(&PoolOptions::new(3).stride(stride))?.to_vec::<f32>()?, [2.0]);
    }
    Ok(())
}

/// A loader takes what there is, however much it is told to take or to make ahead.
#[test]
fn loaders_of_any_size_give_every_batch() -> Result<()> {
    let x = ones(&[5, 2], &device::cpu());
    let set = data::TensorDataset::new((x,))?;
    let loader = || data::DataLoader::new(set.clone());
    for n in HUGE {
        for (name, loader, batches) in [
            ("batch_size", loader().batch_size(n), 1),
            ("workers", loader().batch_size(2).workers(n), 3),
            ("prefetch", loader().batch_size(2).workers(2).prefetch(n), 3),
        ] {
            let n_rows = loader.iter().map(|batch| Ok(batch?.0.dims()[0])).collect::<Result<Vec<_>>>()?;
            assert_eq!((n_rows.len(), n_rows.iter().sum::<usize>()), (batches, 5), "{name} {n}");
        }
    }
    Ok(())
}
