//! What the oracle cannot judge: how values come and go, the forms that arguments take, operators, random numbers, and
//! the rules that are this library's own: ties, kinks, overflow, division by zero.

// Ranges of axes and elements count from the end: `1..=-1` is not empty.
#![allow(clippy::reversed_empty_ranges)]

use std::sync::Arc;

use consort::nn::gradient;
use consort::prelude::*;
use consort::{CustomOp, Element, HostData, HostSlice, Kind, device, random};
use half::{bf16, f16};
use integration::{assert_exact, values};
use tensor_core::op::CustomKernel;
use tensor_core::{Meta, Metas};

fn f32s(values: &[f32]) -> Result<Tensor> {
    Tensor::from_slice(values, values.len(), &device::cpu())
}

fn i64s(values: &[i64]) -> Result<Tensor> {
    Tensor::from_slice(values, values.len(), &device::cpu())
}

#[test]
fn values_come_and_go() -> Result<()> {
    fn round_trip<T: Element>(values: &[T]) -> Result<()> {
        let device = device::cpu();
        let shape = [values.len() / 2, 2];
        for x in [
            Tensor::from_slice(values, shape, &device)?,
            Tensor::from_vec(values.to_vec(), shape, &device)?,
            Tensor::from_host(T::host_slice(values), shape, &device)?,
        ] {
            assert_eq!((x.dtype(), x.dims(), x.to_vec::<T>()?), (T::DTYPE, &shape[..], values.to_vec()));
            assert_eq!(x.t()?.slice(0, .., -1)?.to_vec::<T>()?[..2], [values[1], values[3]], "a view, row-major");
            assert_eq!(x.narrow(0, 1, 1)?.narrow(1, 0, 1)?.item::<T>()?, values[2]);
            assert_eq!(T::from_host(x.to_host()?), Some(values.to_vec()));
        }
        Ok(())
    }
    round_trip(&[1.5f64, -2.0, f64::MAX, 1e-310])?;
    round_trip(&[1.5f32, -2.0, f32::MIN, 1e-40])?;
    round_trip(&[1.5f64, -2.0, 3.0, 4.0].map(f16::from_f64))?;
    round_trip(&[1.5f64, -2.0, 3.0, 4.0].map(bf16::from_f64))?;
    round_trip(&[i64::MIN, -1, i64::MAX, (1 << 53) + 1])?;
    round_trip(&[i32::MIN, -1, 2, i32::MAX])?;
    round_trip(&[0u8, 1, 254, 255])?;
    round_trip(&[true, false, false, true])?;
    let device = device::cpu();
    let cast = Tensor::from_slice(&[1i64, 2], [2], (&device, DType::BF16))?;
    assert_eq!((cast.dtype(), values(&cast)), (DType::BF16, vec![1.0, 2.0]));
    let array = ndarray::arr2(&[[1.0f32, 2.0, 3.0], [4.0, 5.0, 6.0]]);
    let x = Tensor::from_ndarray(&array.t(), &device)?;
    assert_exact("from_ndarray", &x, &[3, 2], &[1., 4., 2., 5., 3., 6.]);
    assert_eq!(x.t()?.to_ndarray::<f32>()?, array.into_dyn());
    assert!(Tensor::from_host(HostSlice::F32(&[]), [0, 3], &device)?.to_vec::<f32>()?.is_empty());
    Ok(())
}

#[test]
fn tensors_describe_themselves() -> Result<()> {
    let device = device::cpu();
    let x = Tensor::zeros([2, 3, 4], (&device, DType::F16))?;
    assert_eq!((x.dims(), x.rank(), x.len(), x.dtype(), x.is_empty()), (&[2, 3, 4][..], 3, 24, DType::F16, false));
    assert_eq!((x.shape().to_string(), x.shape().len()), ("[2, 3, 4]".to_string(), 24));
    assert!(x.device() == device && x.is_contiguous() && !x.transpose(0, 1)?.is_contiguous());
    assert_eq!(format!("{x:?}"), "Tensor([2, 3, 4] f16 cpu)");
    let scalar = Tensor::full((), 2.5, &device)?;
    assert_eq!(
        (scalar.dims(), scalar.rank(), scalar.len(), scalar.to_string()),
        (&[][..], 0, 1, "2.5\n[] f32 cpu".to_string())
    );
    for like in [x.zeros_like()?, x.ones_like()?] {
        assert_eq!((like.dims(), like.dtype()), (x.dims(), x.dtype()));
    }
    assert_eq!(values(&x.ones_like()?), [1.0; 24]);
    Ok(())
}

#[test]
fn shapes_and_axes_take_many_forms() -> Result<()> {
    let device = device::cpu();
    let x = Tensor::arange(0, 24, 1, &device)?;
    let n = 2usize;
    for y in [
        x.reshape([2, 3, 4])?,
        x.reshape([2i64, 3, -1])?,
        x.reshape((n, -1, 4))?,
        x.reshape((n, 3usize, 4))?,
        x.reshape(vec![2usize, 3, 4])?,
        x.reshape(&[2i32, 3, 4][..])?,
        x.reshape(Tensor::zeros((2, 3, 4), &device)?.shape())?,
        x.reshape(24)?.reshape([2, 3, 4])?,
    ] {
        assert_eq!(y.dims(), [2, 3, 4]);
    }
    assert_eq!((Tensor::ones(3, &device)?.dims(), Tensor::ones((), &device)?.dims()), (&[3][..], &[][..]));
    let x = x.reshape([2, 3, 4])?;
    let want = [66.0, 210.0];
    assert_exact("list", &x.sum([1, 2])?, &[2], &want);
    assert_exact("negative list", &x.sum([-1, -2])?, &[2], &want);
    assert_exact("slice", &x.sum(&[1usize, 2][..])?, &[2], &want);
    assert_exact("vector", &x.sum(vec![2, 1])?, &[2], &want);
    assert_exact("range from", &x.sum(1..)?, &[2], &want);
    assert_exact("range", &x.sum(1..3)?, &[2], &want);
    assert_exact("closed range", &x.sum(1..=-1)?, &[2], &want);
    assert_exact("all", &x.sum(..)?, &[], &[276.0]);
    assert_exact("one", &x.sum(-1)?.sum(1)?, &[2], &want);
    let rows = |y: Result<Tensor>| -> Result<Vec<f64>> { Ok(values(&y?.narrow(1, 0, 1)?.narrow(2, 0, 1)?)) };
    assert_eq!(rows(x.slice(0, 1.., 1))?, [12.0]);
    assert_eq!(rows(x.slice(0, ..-1, 1))?, [0.0]);
    assert_eq!(rows(x.slice(0, 0..=-1, 1))?, [0.0, 12.0]);
    assert_eq!(rows(x.slice(0, .., -1))?, [12.0, 0.0]);
    let image = Tensor::rand([1, 2, 5, 6], &device)?;
    let kernel = Tensor::rand([3, 2, 3, 3], &device)?;
    let conv = |options: ConvOptions| Ok::<_, Error>(values(&image.conv2d(&kernel, None, &options)?));
    let padded = conv(ConvOptions { padding: [(1, 1), (1, 1)].into(), ..ConvOptions::default() })?;
    assert_eq!(padded.len(), 3 * 5 * 6);
    assert_eq!(conv(ConvOptions::default().padding(1))?, padded);
    assert_eq!(conv(ConvOptions::default().padding([1, 1]))?, padded);
    assert_eq!(conv(ConvOptions { padding: consort::Padding::Same, ..ConvOptions::default() })?, padded);
    assert_eq!(conv(ConvOptions::default().stride(2))?, conv(ConvOptions::default().stride([2, 2]))?);
    assert_eq!(values(&image.max_pool2d(&2.into())?), values(&image.max_pool2d(&PoolOptions::new([2, 2]).stride(2))?));
    Ok(())
}

#[test]
fn operators_take_tensors_and_numbers_on_both_sides() -> Result<()> {
    let (a, b) = (f32s(&[1.0, 2.0, 4.0])?, f32s(&[3.0, 5.0, 8.0])?);
    let p = consort::Param::new(a.clone());
    for y in [
        &a + &b,
        a.clone() + b.clone(),
        &a + b.clone(),
        a.clone() + &b,
        &p + &b,
        &b + &p,
        p.clone() + &p + 0.0 + &b - &a,
    ] {
        assert_eq!(values(&y), [4.0, 7.0, 12.0]);
    }
    for (y, want) in [
        (&a - &b, [-2.0, -3.0, -4.0]),
        (&a * &b, [3.0, 10.0, 32.0]),
        (&b / &a, [3.0, 2.5, 2.0]),
        (-&a, [-1.0, -2.0, -4.0]),
        (-a.clone(), [-1.0, -2.0, -4.0]),
        (&a * 2.0 + 1.0, [3.0, 5.0, 9.0]),
        (2 * &a - 1, [1.0, 3.0, 7.0]),
        (1.0 - &a, [0.0, -1.0, -3.0]),
        (8 - a.clone(), [7.0, 6.0, 4.0]),
        (8.0 / &a, [8.0, 4.0, 2.0]),
        (&a / 2, [0.5, 1.0, 2.0]),
        (1.0 + &p, [2.0, 3.0, 5.0]),
    ] {
        assert_eq!(values(&y), want);
    }
    let ints = i64s(&[7, -7])?;
    assert_exact("integers", &(&ints * 2 + 1), &[2], &[15.0, -13.0]);
    assert_exact("integer division floors", &(&ints / 2), &[2], &[3.0, -4.0]);
    assert_exact("numbers on the left", &(1 - &ints), &[2], &[-6.0, 8.0]);
    Ok(())
}

#[test]
fn closeness_is_relative_and_absolute() -> Result<()> {
    let x = f32s(&[1.0, 100.0, f32::INFINITY])?;
    assert!(x.allclose(&f32s(&[1.0, 100.5, f32::INFINITY])?, 1e-2, 0.0)?);
    assert!(!x.allclose(&f32s(&[1.0, 102.0, f32::INFINITY])?, 1e-2, 0.0)?);
    assert!(
        f32s(&[0.0])?.allclose(&f32s(&[1e-6])?, 0.0, 1e-5)? && !f32s(&[0.0])?.allclose(&f32s(&[1e-6])?, 1e-2, 0.0)?
    );
    assert!(!x.allclose(&f32s(&[1.0, 100.0, f32::MAX])?, 1.0, 1.0)?);
    assert!(!f32s(&[f32::NAN])?.allclose(&f32s(&[f32::NAN])?, 1.0, 1.0)?, "NaN is close to nothing");
    assert!(
        i64s(&[1, 2])?.allclose(&i64s(&[1, 2])?, 0.0, 0.0)? && !i64s(&[1, 2])?.allclose(&i64s(&[1, 3])?, 0.0, 0.0)?
    );
    assert!(x.allclose(&i64s(&[1])?, 0.0, 0.0).is_err_and(|e| e.is_dtype()));
    Ok(())
}

/// Mean and standard deviation.
fn moments(x: &Tensor) -> (f64, f64) {
    let v = values(x);
    let n = v.len() as f64;
    let mean = v.iter().sum::<f64>() / n;
    (mean, (v.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n).sqrt())
}

#[test]
fn random_numbers_have_their_distribution() -> Result<()> {
    random::with_stream(random::Stream::new(2024), || {
        let device = device::cpu();
        let n = 40_000;
        let bound = 5.0 / (n as f64).sqrt();
        for dtype in DType::FLOATS {
            let place = (&device, dtype);
            let (mean, std) = moments(&Tensor::rand(n, place)?);
            assert!(
                (mean - 0.5).abs() < bound && (std - 12f64.sqrt().recip()).abs() < bound,
                "rand {dtype}: {mean} {std}"
            );
            let (mean, std) = moments(&Tensor::randn(n, place)?);
            assert!(mean.abs() < bound && (std - 1.0).abs() < bound, "randn {dtype}: {mean} {std}");
            let (mean, std) = moments(&Tensor::normal(3.0, 0.5, n, place)?);
            assert!((mean - 3.0).abs() < bound && (std - 0.5).abs() < bound, "normal {dtype}: {mean} {std}");
            let drawn = values(&Tensor::uniform(-2.0, 6.0, n, place)?);
            assert!(drawn.iter().all(|v| (-2.0..=6.0).contains(v)), "uniform {dtype}");
            let is_open = matches!(dtype, DType::F32 | DType::F64);
            assert!(!is_open || drawn.iter().all(|&v| v < 6.0), "uniform {dtype}");
        }
        let (mean, _) = moments(&Tensor::bernoulli(0.3, n, &device)?);
        assert!((mean - 0.3).abs() < bound, "bernoulli: {mean}");
        assert_eq!(moments(&Tensor::bernoulli(1.0, 9, &device)?), (1.0, 0.0));
        assert_eq!(moments(&Tensor::bernoulli(0.0, 9, &device)?), (0.0, 0.0));
        let drawn = Tensor::randint(-3, 4, n, &device)?;
        assert_eq!(drawn.dtype(), DType::I64);
        for face in -3..4 {
            let share = values(&drawn).iter().filter(|&&v| v == f64::from(face)).count() as f64 / n as f64;
            assert!((share - 1.0 / 7.0).abs() < bound, "{face}: {share}");
        }
        let extreme = Tensor::randint(i64::MIN, i64::MAX, 64, &device)?.to_vec::<i64>()?;
        assert!(extreme.iter().any(|&v| v < 0) && extreme.iter().any(|&v| v > 0));
        let bytes = Tensor::randint(0, 256, n, (&device, DType::U8))?.to_vec::<u8>()?;
        assert!(bytes.contains(&0) && bytes.contains(&255));
        Ok(())
    })
}

#[test]
fn a_stream_gives_the_same_numbers_however_they_are_cut() -> Result<()> {
    let device = device::cpu();
    let draw = |n: usize| random::with_stream(random::Stream::new(9), || Tensor::randn(n, &device)?.to_vec::<f32>());
    assert_eq!(draw(5)?, draw(1000)?[..5]);
    let (one, two) = random::with_stream(random::Stream::new(9), || {
        Ok::<_, Error>((Tensor::randn(5, &device)?.to_vec::<f32>()?, Tensor::randn(5, &device)?.to_vec::<f32>()?))
    })?;
    assert!(one == draw(5)? && one != two);
    Ok(())
}

#[test]
fn ties_go_to_the_first() -> Result<()> {
    let x = f32s(&[1.0, 3.0, 3.0, -2.0, 3.0, -2.0])?;
    let slope = |f: &dyn Fn(&Tensor) -> Result<Tensor>| -> Result<Vec<f64>> { Ok(values(&gradient(|x| f(x), &x)?)) };
    assert_eq!(slope(&|x| x.max(..))?, [0., 1., 0., 0., 0., 0.]);
    assert_eq!(slope(&|x| x.min(..))?, [0., 0., 0., 1., 0., 0.]);
    assert_eq!(slope(&|x| x.reshape([2, 3])?.max(1)?.sum(..))?, [0., 1., 0., 0., 1., 0.]);
    assert_eq!(slope(&|x| x.cummax(0)?.sum(..))?, [1., 5., 0., 0., 0., 0.]);
    assert_eq!(slope(&|x| x.topk(1, 0)?.0.sum(..))?, [0., 1., 0., 0., 0., 0.]);
    assert_eq!(slope(&|x| x.clamp(-2.0, 3.0)?.sum(..))?, [1.; 6], "the bounds are within");
    assert_eq!(slope(&|x| x.maximum(&f32s(&[1.0, 3.0, 4.0, -2.0, 3.0, -2.0])?)?.sum(..))?, [1., 1., 0., 1., 1., 1.]);
    assert_eq!(slope(&|x| x.reshape([1, 1, 6])?.max_pool1d(&3.into())?.sum(..))?, [0., 1., 0., 0., 1., 0.]);
    let same = gradient(|x| x.maximum(x)?.sum(..), &x)?;
    assert_exact("maximum of itself", &same, &[6], &[1.0; 6]);
    assert_eq!((x.argmax(0)?.item::<i64>()?, x.argmin(0)?.item::<i64>()?), (1, 3));
    assert_exact("stable", &x.argsort(0, false)?, &[6], &[3., 5., 0., 1., 2., 4.]);
    assert_exact("stable backwards", &x.argsort(0, true)?, &[6], &[1., 2., 4., 0., 3., 5.]);
    let nan = f32s(&[2.0, f32::NAN, 1.0])?;
    assert_exact("NaN last", &nan.sort(0, false)?.0, &[3], &[1.0, 2.0, f64::NAN]);
    assert_exact("NaN last backwards", &nan.sort(0, true)?.0, &[3], &[2.0, 1.0, f64::NAN]);
    Ok(())
}

#[test]
fn a_branch_that_is_not_taken_adds_nothing() -> Result<()> {
    let x = f32s(&[-1.0, 0.0, 4.0])?;
    let slope = gradient(
        |x| {
            let positive = x.gt(0.0)?;
            positive.select(&x.sqrt()?, 0.0)?.add(&positive.select(&x.ln()?, &x.recip()?)?)?.sum(..)
        },
        &x,
    )?;
    assert_exact("composed", &slope.narrow(0, 2, 1)?, &[1], &[0.5]);
    let fused = gradient(|x| x.map(|x| x.gt(0.0).select(x.sqrt(), 0.0))?.sum(..), &x)?;
    assert_exact("fused", &fused, &[3], &[0.0, 0.0, 0.25]);
    let masked = gradient(|x| x.gt(0.0)?.select(&x.sqrt()?, 0.0)?.sum(..), &x.narrow(0, 2, 1)?)?;
    assert_exact("taken", &masked, &[1], &[0.25]);
    Ok(())
}

#[test]
fn integers_wrap_and_divide_by_zero_to_zero() -> Result<()> {
    let (max, min) = (i64::MAX, i64::MIN);
    let x = i64s(&[max, min, min, 7, -7])?;
    let y = i64s(&[1, -1, -1, 0, 0])?;
    assert_eq!(x.add(&y)?.to_vec::<i64>()?, [min, max, max, 7, -7]);
    assert_eq!(x.mul(&x)?.to_vec::<i64>()?, [1, 0, 0, 49, 49]);
    assert_eq!(x.div(&y)?.to_vec::<i64>()?, [max, min, min, 0, 0]);
    assert_eq!(x.rem(&y)?.to_vec::<i64>()?, [0, 0, 0, 0, 0]);
    assert_eq!(x.neg()?.to_vec::<i64>()?, [-max, min, min, -7, 7]);
    assert_eq!(x.abs()?.to_vec::<i64>()?, [max, min, min, 7, 7]);
    assert_eq!(i64s(&[max, 1])?.sum(..)?.item::<i64>()?, min);
    assert_eq!(i64s(&[max, 3])?.prod(..)?.item::<i64>()?, max.wrapping_mul(3));
    let bytes = Tensor::from_slice(&[250u8, 3, 0], 3, &device::cpu())?;
    assert_eq!(bytes.add(10)?.to_vec::<u8>()?, [4, 13, 10]);
    assert_eq!(bytes.sub(4)?.to_vec::<u8>()?, [246, 255, 252]);
    let powers = i64s(&[2, -1, 1, -2, 0, 10])?.pow(&i64s(&[-1, -3, -2, -1, 0, 19])?)?;
    assert_eq!(powers.to_vec::<i64>()?, [0, -1, 1, 0, 1, 10i64.wrapping_pow(19)]);
    Ok(())
}

#[test]
fn floats_become_integers_by_truncation_and_saturation() -> Result<()> {
    let x = f32s(&[1.9, -1.9, 1e20, -1e20, f32::NAN, f32::INFINITY, 300.0, -1.0])?;
    let max = [i64::MAX, i64::MIN];
    assert_eq!(x.cast(DType::I64)?.to_vec::<i64>()?, [1, -1, max[0], max[1], 0, max[0], 300, -1]);
    assert_eq!(x.cast(DType::I32)?.to_vec::<i32>()?, [1, -1, i32::MAX, i32::MIN, 0, i32::MAX, 300, -1]);
    assert_eq!(x.cast(DType::U8)?.to_vec::<u8>()?, [1, 0, 255, 0, 0, 255, 255, 0]);
    let big = i64s(&[(1 << 53) + 1, -1, 256])?;
    assert_eq!(big.cast(DType::F64)?.to_vec::<f64>()?[0], (1i64 << 53) as f64);
    assert_eq!(big.cast(DType::I32)?.to_vec::<i32>()?, [1, -1, 256]);
    assert_eq!(big.cast(DType::U8)?.to_vec::<u8>()?, [1, 255, 0]);
    Ok(())
}

#[test]
fn constants_have_no_gradient() -> Result<()> {
    let x = f32s(&[2.0, 3.0])?;
    assert_exact("stop", &gradient(|x| x.stop_gradient().mul(x)?.sum(..), &x)?, &[2], &[2.0, 3.0]);
    assert_exact("no use", &gradient(|_| Tensor::ones((), &device::cpu()), &x)?, &[2], &[0.0, 0.0]);
    assert_exact(
        "through integers",
        &gradient(|x| x.cast(DType::I64)?.cast(DType::F32)?.sum(..), &x)?,
        &[2],
        &[0.0, 0.0],
    );
    Ok(())
}

/// x³ in Rust, with a derivative in ops.
#[derive(Debug)]
struct Cube;

impl CustomOp for Cube {
    fn name(&self) -> &str {
        "cube"
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Metas> {
        Ok(inputs.iter().cloned().collect())
    }

    fn kernel(&self, kind: Kind) -> Option<CustomKernel> {
        (kind == Kind::Cpu).then(|| {
            CustomKernel::Rust(Arc::new(|inputs, _| {
                Ok(vec![HostData::F64(inputs[0].data.to_f64().iter().map(|x| x * x * x).collect())])
            }))
        })
    }

    fn derivative(&self, inputs: &[&Tensor], _: &[Tensor], grads: &[Tensor]) -> Result<Vec<Option<Tensor>>> {
        Ok(vec![Some(inputs[0].square()?.mul(3.0)?.mul(&grads[0])?)])
    }
}

#[test]
fn a_custom_op_runs_and_is_differentiated() -> Result<()> {
    let x = Tensor::from_slice(&[1.0f64, -2.0, 3.0, 0.5], [2, 2], &device::cpu())?;
    let cube = |x: &Tensor| Ok::<_, Error>(consort::custom(Arc::new(Cube), &[x])?.remove(0));
    assert_exact("values of a view", &cube(&x.t()?)?, &[2, 2], &[1.0, 27.0, -8.0, 0.125]);
    assert_exact("gradient", &gradient(|x| cube(x)?.sum(..), &x)?, &[2, 2], &[3.0, 12.0, 27.0, 0.75]);
    let second = gradient(|x| gradient(|x| cube(x)?.sum(..), x)?.sum(..), &x)?;
    assert_exact("second order", &second, &[2, 2], &[6.0, -12.0, 18.0, 3.0]);
    let (there, _) = backend_cpu::test_device("there", 9);
    assert!(cube(&x.to(&there)?)?.device() == there, "a test device is a CPU underneath");
    Ok(())
}
