//! Cases that gave wrong results in other frameworks; each comment names the report. Data first, one run per case.

mod convolution;
mod fused;

use consort::nn;
use consort::prelude::*;
use consort::{data, device};
use integration::{Grid, assert_close, assert_exact, values};

type Case = fn(&Device) -> Result<()>;

/// Runs every case and reports all that fail, not only the first.
#[test]
fn cases_from_public_reports_are_right() {
    let cases: &[(&str, Case)] = &[
        ("matmul_lone_batch", matmul_lone_batch),
        ("extremum_seed", extremum_seed),
        ("reduce_of_transposed", reduce_of_transposed),
        ("scan_of_transposed", scan_of_transposed),
        ("odd_permute", odd_permute),
        ("masked_softmax", masked_softmax),
        ("head_tanh", head_tanh),
        ("scatter_repeats", scatter_repeats),
        ("wide_scatter_grad", wide_scatter_grad),
        ("empty_reduce", empty_reduce),
        ("empty_matmul", empty_matmul),
        ("int_remainder", int_remainder),
        ("bool_reduce", bool_reduce),
        ("tanh_large", tanh_large),
        ("softplus_large", softplus_large),
        ("square_conv", convolution::square_conv),
        ("transposed_kernel_conv", convolution::transposed_kernel_conv),
        ("large_pointwise_conv", convolution::large_pointwise_conv),
        ("row_limit_sort", row_limit_sort),
        ("expand_grad", expand_grad),
        ("norm_huge", norm_huge),
        ("one_element_views", one_element_views),
        ("strided_matvec", strided_matvec),
        ("extremum_nan", extremum_nan),
        ("cut_graph", fused::cut_graph),
        ("pool_leak", pool_leak),
    ];
    let device = device::cpu();
    let failed: Vec<&str> = cases
        .iter()
        .filter(|(name, case)| {
            let outcome = std::panic::catch_unwind(|| case(&device));
            if let Ok(Err(error)) = &outcome {
                eprintln!("{name}: {error}");
            }
            !matches!(outcome, Ok(Ok(())))
        })
        .map(|&(name, _)| name)
        .collect();
    assert!(failed.is_empty(), "{} of {} cases failed: {failed:?}", failed.len(), cases.len());
}

fn f32s(values: &[f32], dims: &[usize], device: &Device) -> Result<Tensor> {
    Tensor::from_slice(values, dims, device)
}

/// burn#4907: all zeros on one GPU path.
fn matmul_lone_batch(device: &Device) -> Result<()> {
    let lhs: Vec<f32> = (0..8 * 512 * 512).map(|i| (0.001 * i as f32).sin()).collect();
    let rhs: Vec<f32> = (0..8 * 512 * 32).map(|i| (0.003 * i as f32).sin()).collect();
    let got = f32s(&lhs, &[1, 8, 512, 512], device)?.matmul(&f32s(&rhs, &[1, 8, 512, 32], device)?)?;
    let want = Grid::from_fn(&[1, 8, 512, 32], |i| {
        (0..512)
            .map(|k| f64::from(lhs[(i[1] * 512 + i[2]) * 512 + k]) * f64::from(rhs[(i[1] * 512 + k) * 32 + i[3]]))
            .sum()
    });
    assert_close("matmul", &got, &want, 512, 1.0);
    Ok(())
}

/// burn#1427: the fold started from a value inside the range.
fn extremum_seed(device: &Device) -> Result<()> {
    let high = f32s(&[32768.0, 32767.0], &[2], device)?;
    assert_exact("min", &high.min(..)?, &[], &[32767.0]);
    assert_exact("argmin", &high.argmin(0)?, &[], &[1.0]);
    let low = f32s(&[-32768.0, -32767.0], &[2], device)?;
    assert_exact("max", &low.max(..)?, &[], &[-32767.0]);
    assert_exact("argmax", &low.argmax(0)?, &[], &[1.0]);
    for dtype in [DType::I32, DType::I64] {
        assert_exact("int min", &high.cast(dtype)?.min(..)?, &[], &[32767.0]);
        assert_exact("int max", &low.cast(dtype)?.max(..)?, &[], &[-32767.0]);
    }
    Ok(())
}

/// burn#4861.
fn reduce_of_transposed(device: &Device) -> Result<()> {
    let x = f32s(&[1., 2., 3., 4., 5., 6.], &[2, 3], device)?.t()?;
    assert_exact("sum", &x.sum_keepdim(1)?, &[3, 1], &[5., 7., 9.]);
    assert_exact("prod", &x.prod_keepdim(1)?, &[3, 1], &[4., 10., 18.]);
    assert_exact("mean", &x.mean_keepdim(1)?, &[3, 1], &[2.5, 3.5, 4.5]);
    Ok(())
}

/// burn#3891.
fn scan_of_transposed(device: &Device) -> Result<()> {
    let x = f32s(&[1., 2., 3., 4.], &[2, 2], device)?.t()?;
    assert_exact("cumsum", &x.cumsum(1)?, &[2, 2], &[1., 4., 2., 6.]);
    Ok(())
}

/// burn#3894: the last element was lost.
fn odd_permute(device: &Device) -> Result<()> {
    let count = Grid::count(&[27, 31, 31]);
    let got = count.tensor(device, DType::F32)?.permute([1, 2, 0])?;
    let want = Grid::from_fn(&[31, 31, 27], |i| count.at(&[i[2], i[0], i[1]]));
    assert_exact("permute", &got, &want.dims, &want.values);
    Ok(())
}

/// burn#5268: wrong on a fused path.
fn masked_softmax(device: &Device) -> Result<()> {
    let dims = [6, 96, 96];
    let n = dims.iter().product::<usize>() as f64;
    let x = Grid::from_fn(&dims, |i| ((((i[0] * 96 + i[1]) * 96 + i[2]) as f64 / n) - 0.5) * 20.0);
    let future = Tensor::ones([96, 96], device)?.triu(1)?.gt(0.5)?;
    let masked = x.tensor(device, DType::F32)?.masked_fill(&future, -10000.0)?;
    let e = masked.sub(&masked.max_keepdim(-1)?)?.exp()?;
    let got = e.div(&e.sum_keepdim(-1)?)?;
    let want = Grid::from_fn(&dims, |i| {
        let row = |j: usize| if j > i[1] { -10000.0 } else { x.at(&[i[0], i[1], j]) };
        let max = (0..96).map(row).fold(f64::NEG_INFINITY, f64::max);
        (row(i[2]) - max).exp() / (0..96).map(|j| (row(j) - max).exp()).sum::<f64>()
    });
    assert_close("written out", &got, &want, 96, 1.0);
    assert_close("softmax", &masked.softmax(-1)?, &want, 96, 1.0);
    Ok(())
}

/// burn#5122: rows after the first were wrong.
fn head_tanh(device: &Device) -> Result<()> {
    let weight = Grid::from_fn(&[1, 7], |i| 0.3 * i[1] as f64 - 0.8);
    let mut layer = nn::Linear::new(7, 1, device)?;
    *layer.weight.value_mut() = weight.tensor(device, DType::F32)?;
    for n in 1..=300 {
        let x = Grid::from_fn(&[n, 7], |i| ((i[0] * 7 + i[1]) as f64 * 0.37).sin());
        let got = layer.forward(&x.tensor(device, DType::F32)?)?.tanh()?;
        let bias = match &layer.bias {
            Some(bias) => values(bias)[0],
            None => 0.0,
        };
        let want = Grid::from_fn(&[n, 1], |i| {
            ((0..7).map(|k| x.at(&[i[0], k]) * weight.at(&[0, k])).sum::<f64>() + bias).tanh()
        });
        assert_close(&format!("{n} rows"), &got, &want, 7, 1.0);
    }
    Ok(())
}

/// burn#5195.
fn scatter_repeats(device: &Device) -> Result<()> {
    let index = [1i64, 2, 4, 1, 4];
    let source = [1f32, 2., 4., 1., 8.];
    let x = Tensor::zeros([16], device)?;
    let got = x.scatter_add(0, &Tensor::from_slice(&index, [5], device)?, &f32s(&source, &[5], device)?)?;
    let mut want = [0.0; 16];
    index.iter().zip(source).for_each(|(&i, s)| want[i as usize] += f64::from(s));
    assert_exact("scatter_add", &got.reshape([1, 2, 4, 2])?, &[1, 2, 4, 2], &want);
    Ok(())
}

/// burn#4063: the destination is wider than the index.
fn wide_scatter_grad(device: &Device) -> Result<()> {
    let x = Tensor::zeros([4, 5], (device, DType::F64))?;
    let index = Tensor::from_slice(&[3i64, 0, 3, 1], [2, 2], device)?;
    let source = Tensor::from_slice(&[1f64, 2., 3., 4.], [2, 2], device)?;
    let weight = Grid::from_fn(&[4, 5], |i| (i[0] * 5 + i[1] + 1) as f64);
    let w = weight.tensor(device, DType::F64)?;
    let got = x.scatter_add(0, &index, &source)?;
    let mut want = vec![0.0; 20];
    for (r, c, i, s) in [(0, 0, 3, 1.0), (0, 1, 0, 2.0), (1, 0, 3, 3.0), (1, 1, 1, 4.0)] {
        let _ = r;
        want[i * 5 + c] += s;
    }
    assert_exact("scatter_add", &got, &[4, 5], &want);
    let by_source = nn::gradient(|s| x.scatter_add(0, &index, s)?.mul(&w)?.sum(..), &source)?;
    assert_exact("by source", &by_source, &[2, 2], &[16., 2., 16., 7.]);
    let by_x = nn::gradient(|x| x.scatter_add(0, &index, &source)?.mul(&w)?.sum(..), &x)?;
    assert_exact("by input", &by_x, &[4, 5], &weight.values);
    Ok(())
}

/// burn#5310, #5333, #5335.
fn empty_reduce(device: &Device) -> Result<()> {
    let nothing = Tensor::zeros([0], device)?;
    assert_exact("sum", &nothing.sum(..)?, &[], &[0.0]);
    assert_exact("prod", &nothing.prod(..)?, &[], &[1.0]);
    assert_exact("mean", &nothing.mean(..)?, &[], &[f64::NAN]);
    assert!(nothing.max(..).is_err_and(|e| e.is_shape()));
    let rows = Tensor::zeros([3, 0], device)?;
    assert_exact("row sums", &rows.sum(1)?, &[3], &[0.0; 3]);
    assert_exact("row products", &rows.prod(1)?, &[3], &[1.0; 3]);
    assert_exact("row means", &rows.mean(1)?, &[3], &[f64::NAN; 3]);
    assert_exact("over the other axis", &rows.sum(0)?, &[0], &[]);
    let column = Tensor::ones([2, 1], device)?;
    assert_exact("broadcast", &Tensor::zeros([2, 0], device)?.add(&column)?, &[2, 0], &[]);
    assert_exact("with one", &nothing.add(&Tensor::ones([1], device)?)?, &[0], &[]);
    Ok(())
}

/// candle#3756.
fn empty_matmul(device: &Device) -> Result<()> {
    let shapes: [(&[usize], &[usize], &[usize]); 3] =
        [(&[2, 0], &[0, 3], &[2, 3]), (&[0, 2], &[2, 3], &[0, 3]), (&[2, 3, 0], &[2, 0, 4], &[2, 3, 4])];
    for (lhs, rhs, out) in shapes {
        let (a, b) = (Tensor::ones(lhs, device)?, Tensor::ones(rhs, device)?);
        let zeros = vec![0.0; out.iter().product()];
        assert_exact("matmul", &a.matmul(&b)?, out, &zeros);
        let by_a = nn::gradient(|a| a.matmul(&b)?.sum(..), &a)?;
        let by_b = nn::gradient(|b| a.matmul(b)?.sum(..), &b)?;
        assert_eq!((by_a.dims(), by_b.dims()), (lhs, rhs));
        assert!(values(&by_a).iter().chain(&values(&by_b)).all(|&g| g == 0.0));
    }
    Ok(())
}

/// cubecl#1036, burn#5002.
fn int_remainder(device: &Device) -> Result<()> {
    for dtype in [DType::I32, DType::I64] {
        let ints = |v: &[i64], dims: &[usize]| Tensor::from_slice(v, dims, device)?.cast(dtype);
        assert_exact("-2 rem 3", &ints(&[-2], &[1])?.rem(&ints(&[3], &[1])?)?, &[1], &[1.0]);
        assert_exact("2 rem -3", &ints(&[2], &[1])?.rem(&ints(&[-3], &[1])?)?, &[1], &[-1.0]);
        let row = ints(&[10, 20, 30], &[1, 3])?.rem(&ints(&[7], &[1, 1])?)?;
        assert_exact("row", &row, &[1, 3], &[3., 6., 2.]);
    }
    Ok(())
}

/// burn#3664.
fn bool_reduce(device: &Device) -> Result<()> {
    for value in [0.0, 1.0] {
        let x = Tensor::full([256], value, device)?.gt(0.5)?;
        assert_exact("any", &x.any(..)?, &[], &[value]);
        assert_exact("all", &x.all(..)?, &[], &[value]);
    }
    let lone = Tensor::arange(0, 1000, 1, (device, DType::I64))?.eq(777)?;
    assert_exact("any", &lone.any(..)?, &[], &[1.0]);
    assert_exact("all", &lone.all(..)?, &[], &[0.0]);
    Ok(())
}

/// burn#520, candle#2475: NaN.
fn tanh_large(device: &Device) -> Result<()> {
    let mut x: Vec<f32> = (0..=80).map(|i| 43.6 + 0.01 * i as f32).collect();
    x.extend([89.0, 1e4, f32::INFINITY]);
    x.extend(x.clone().iter().map(|v| -v));
    let got = f32s(&x, &[x.len()], device)?.tanh()?;
    let want = Grid { dims: vec![x.len()], values: x.iter().map(|v| f64::from(v.signum())).collect() };
    assert_close("tanh", &got, &want, 1, 1.0);
    Ok(())
}

/// burn#5373: infinity and NaN.
fn softplus_large(device: &Device) -> Result<()> {
    let x = Tensor::from_slice(&[20f64, 50., 100.], [3], device)?;
    for beta in [1.0, 5.0] {
        let softplus = |x: &Tensor| x.map(|x| (x * beta).softplus() / beta);
        assert_close(
            "value",
            &softplus(&x)?,
            &Grid { dims: vec![3], values: softplus_want(&[20., 50., 100.], beta) },
            1,
            100.0,
        );
        let slope = nn::gradient(|x| softplus(x)?.sum(..), &x)?;
        let want = [20f64, 50., 100.].iter().map(|x| 1.0 / (1.0 + (-x * beta).exp())).collect();
        assert_close("slope", &slope, &Grid { dims: vec![3], values: want }, 1, 1.0);
    }
    Ok(())
}

fn softplus_want(x: &[f64], beta: f64) -> Vec<f64> {
    x.iter().map(|x| x + (-x * beta).exp().ln_1p() / beta).collect()
}

/// candle#3050, #2361.
fn row_limit_sort(device: &Device) -> Result<()> {
    for (rows, columns) in [(65_600, 3), (2, 8_193), (2, 32_000)] {
        let x = Grid::from_fn(&[rows, columns], |i| (((i[0] * columns + i[1]) * 7919) % 10_007) as f64);
        let got = x.tensor(device, DType::F32)?.sort(1, false)?.0;
        let mut want = x.values.clone();
        want.chunks_mut(columns).for_each(|row| row.sort_by(f64::total_cmp));
        assert_exact("sort", &got, &[rows, columns], &want);
    }
    Ok(())
}

/// candle#3873.
fn expand_grad(device: &Device) -> Result<()> {
    let x = Grid::count(&[1, 1, 4, 6]);
    let got = nn::gradient(
        |x| x.unsqueeze(2)?.expand([1, 1, 3, 4, 6])?.square()?.sum(..)?.mul(0.5),
        &x.tensor(device, DType::F32)?,
    )?;
    assert_exact("gradient", &got, &x.dims, &x.values.iter().map(|v| 3.0 * v).collect::<Vec<_>>());
    Ok(())
}

/// candle#3477: NaN.
fn norm_huge(device: &Device) -> Result<()> {
    let x = Grid::from_fn(&[4, 6912], |i| f64::from((7e9 * ((i[0] * 6912 + i[1]) as f64).sin()) as f32));
    let norm = nn::RmsNorm::new(6912, device)?;
    let got = norm.forward(&x.tensor(device, DType::F32)?)?;
    let size = |row: &[f64]| (row.iter().map(|v| v * v).sum::<f64>() / 6912.0).sqrt();
    let sizes: Vec<f64> = x.values.chunks(6912).map(size).collect();
    let want = Grid::from_fn(&[4, 6912], |i| x.at(i) / sizes[i[0]]);
    assert_close("rms norm", &got, &want, 4, 2.0);
    Ok(())
}

/// candle#1914.
fn one_element_views(device: &Device) -> Result<()> {
    let x = f32s(&[3.0, 4.0], &[2, 1], device)?;
    let got = x.narrow(0, 0, 1)?.add(&x.narrow(0, 1, 1)?)?;
    assert_exact("add", &got, &[1, 1], &[7.0]);
    Ok(())
}

/// candle#1948.
fn strided_matvec(device: &Device) -> Result<()> {
    let column = Grid::from_fn(&[2048, 1], |i| (i[0] as f64 * 0.01).sin());
    let wide = Tensor::full([2048, 16_384], f64::NAN, device)?;
    let row = wide.slice_assign(1, 5..6, &column.tensor(device, DType::F32)?)?.narrow(1, 5, 1)?.t()?;
    assert_eq!(row.layout().strides()[1], 16_384);
    let matrix = Grid::from_fn(&[2048, 3], |i| ((i[0] * 3 + i[1]) as f64 * 0.02).cos());
    let got = row.matmul(&matrix.tensor(device, DType::F32)?)?;
    let want = Grid::from_fn(&[1, 3], |i| (0..2048).map(|k| column.values[k] * matrix.at(&[k, i[1]])).sum());
    assert_close("matmul", &got, &want, 2048, 1.0);
    Ok(())
}

/// burn#4814, #5155.
fn extremum_nan(device: &Device) -> Result<()> {
    let x = f32s(&[1.0, f32::NAN, 5.0], &[3], device)?;
    assert_exact("max", &x.max(..)?, &[], &[f64::NAN]);
    assert_exact("min", &x.min(..)?, &[], &[f64::NAN]);
    assert_exact("argmax", &x.argmax(0)?, &[], &[1.0]);
    assert_exact("argmin", &x.argmin(0)?, &[], &[1.0]);
    assert_exact("cummax", &x.cummax(0)?, &[3], &[1.0, f64::NAN, f64::NAN]);
    Ok(())
}

/// burn#4792: memory grew with every epoch that a loader's workers fed.
fn pool_leak(_: &Device) -> Result<()> {
    let (there, _) = backend_cpu::test_device("there", 0);
    let here = device::cpu();
    let set = data::TensorDataset::new((Tensor::rand([200, 6], &here)?, Tensor::rand([200, 1], &here)?))?;
    let loader = data::DataLoader::new(set).batch_size(16).shuffle(3).workers(2).prefetch(2).device(&there);
    let mut model = chain![nn::Linear::new(6, 16, &there)?, nn::Relu, nn::Linear::new(16, 1, &there)?];
    let mut optimizer = nn::optim::Adam::new(1e-3).setup(&model)?;
    let mut used = Vec::new();
    for _ in 0..50 {
        for batch in loader.iter() {
            let (x, y) = batch?;
            let (_, gradients) = with_gradient(&model, |m| nn::loss::mse(&m.forward(&x)?, &y))?;
            optimizer.update(&mut model, &gradients)?;
        }
        used.push(there.memory()?.used_bytes);
    }
    assert!(used[49] == used[1] && used[1] > 0, "memory after each epoch: {used:?}");
    Ok(())
}
