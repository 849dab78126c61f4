//! Sizes that the suite leaves out: rows past every form's limit, segments, long lanes, many targets at odd addresses.
#![cfg(feature = "emulator")]

use backend_cuda::{Emulated, emulated};
use tensor_core::expr::build;
use tensor_core::{DType, Device, Result, Target, Tensor, UpdateRule};

fn device() -> Device {
    emulated(&Emulated::default())
}

/// Numbers between −2 and 2 without a pattern.
fn numbers(n: usize) -> Vec<f32> {
    (0..n as u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 8) as f32 / (1 << 22) as f32 - 2.0).collect()
}

fn check(got: &[f32], right: impl Fn(usize) -> f64, tolerance: f64) {
    for (i, &got) in got.iter().enumerate() {
        let right = right(i);
        assert!((f64::from(got) - right).abs() <= tolerance * right.abs().max(1.0), "{i}: {got} against {right}");
    }
}

/// Softmax and normalisation of [outer, depth, inner] along the middle.
fn check_rows(dims: [usize; 3], seen: usize) -> Result<()> {
    let [outer, depth, inner] = dims;
    let values = numbers(outer * depth * inner);
    let x = Tensor::from_vec(values.clone(), dims, &device())?;
    let at = |o: usize, d: usize, i: usize| f64::from(values[(o * depth + d) * inner + i]);
    let (y, z) = (x.softmax(1)?.to_vec::<f32>()?, x.normalize(1, 1e-5)?.to_vec::<f32>()?);
    for row in (0..outer * inner).step_by((outer * inner).div_ceil(seen)) {
        let (o, i) = (row / inner, row % inner);
        let of = |all: &[f32]| -> Vec<f32> { (0..depth).map(|d| all[(o * depth + d) * inner + i]).collect() };
        let sum: f64 = (0..depth).map(|d| at(o, d, i).exp()).sum();
        check(&of(&y), |d| at(o, d, i).exp() / sum, 1e-6);
        let mean = (0..depth).map(|d| at(o, d, i)).sum::<f64>() / depth as f64;
        let variance = (0..depth).map(|d| (at(o, d, i) - mean).powi(2)).sum::<f64>() / depth as f64;
        check(&of(&z), |d| (at(o, d, i) - mean) / (variance + 1e-5).sqrt(), 1e-5);
    }
    Ok(())
}

#[test]
fn rows_of_every_form() -> Result<()> {
    // A thread, a warp and a block per row, in registers and in rounds; columns; more rows than a grid axis has blocks.
    for dims in [
        [9, 5, 1],
        [5, 33, 1],
        [3, 800, 1],
        [3, 1500, 1],
        [2, 9000, 1],
        [2, 20, 7],
        [1, 70, 1100],
        [2, 1100, 3],
        [70_000, 3, 1],
    ] {
        check_rows(dims, 40)?;
    }
    Ok(())
}

#[test]
fn reductions_in_segments() -> Result<()> {
    for (dims, axis) in [([300, 200], 0), ([3, 20_001], 1), ([20_011, 1], 0), ([9000, 2], 0), ([70_000, 2], 1)] {
        let [rows, columns] = dims;
        let values: Vec<i64> = (0..(rows * columns) as i64).map(|i| i * 37 % 1001 - 500).collect();
        let x = Tensor::from_vec(values.clone(), dims, &device())?;
        let right: Vec<i64> = if axis == 0 {
            (0..columns).map(|c| (0..rows).map(|r| values[r * columns + c]).sum()).collect()
        } else {
            values.chunks(columns).map(|row| row.iter().sum()).collect()
        };
        assert_eq!(x.sum(axis)?.to_vec::<i64>()?, right, "{dims:?} axis {axis}");
        let half = x.cast(DType::F16)?.sum(axis)?.cast(DType::F64)?.to_vec::<f64>()?;
        for (got, &right) in half.iter().zip(&right).filter(|(_, right)| right.abs() < 60_000) {
            assert!((got - right as f64).abs() <= 1e-3 * (right.abs() as f64) + 1.0, "{got} against {right}");
        }
    }
    Ok(())
}

#[test]
fn scans_of_long_lanes() -> Result<()> {
    // The last one's totals are a long lane themselves.
    for (dims, axis) in [([3usize, 3000usize], 1), ([1500, 5], 0), ([1, 40_003], 1)] {
        let [rows, columns] = dims;
        let values: Vec<i64> = (0..(rows * columns) as i64).map(|i| i * 37 % 1001 - 500).collect();
        let x = Tensor::from_vec(values.clone(), dims, &device())?;
        let mut right = values.clone();
        for r in 0..rows {
            for c in 0..columns {
                let before =
                    if axis == 0 { r.checked_sub(1).map(|r| (r, c)) } else { c.checked_sub(1).map(|c| (r, c)) };
                right[r * columns + c] += before.map_or(0, |(r, c)| right[r * columns + c]);
            }
        }
        assert_eq!(x.cumsum(axis)?.to_vec::<i64>()?, right, "{dims:?} axis {axis}");
        let mut turned = x.flip(axis)?.cumsum(axis)?.flip(axis)?.to_vec::<i64>()?;
        // From the other end: everything less what came before.
        for r in 0..rows {
            for c in 0..columns {
                let total = if axis == 0 { right[(rows - 1) * columns + c] } else { right[(r + 1) * columns - 1] };
                turned[r * columns + c] += right[r * columns + c] - values[r * columns + c] - total;
            }
        }
        assert!(turned.iter().all(|&rest| rest == 0), "{dims:?} axis {axis}");
        let largest = x.cast(DType::F32)?.cummax(axis)?.to_vec::<f32>()?;
        assert_eq!(
            largest.last().map(|&v| v as i64),
            if axis == 1 {
                values[(rows - 1) * columns..].iter().max()
            } else {
                values[columns - 1..].iter().step_by(columns).max()
            }
            .copied()
        );
    }
    Ok(())
}

#[test]
fn an_update_of_many_targets() -> Result<()> {
    let device = device();
    // Momentum: two results, of which the second is read by the first.
    let rule = UpdateRule {
        outputs: [
            build(|[param, grad, velocity]| param - (velocity * 0.9 + grad) * 0.1),
            build(|[_, grad, velocity]| velocity * 0.9 + grad),
        ]
        .into_iter()
        .collect(),
    };
    for offset in [0, 1] {
        let sizes = [5, 1, 4096, 0, 4097, 10_000, 3];
        let tensor = |n: usize, seed: usize| Tensor::from_vec(numbers(n + seed)[seed..].to_vec(), [n], &device);
        let mut params = sizes.iter().map(|&n| tensor(n, 0)).collect::<Result<Vec<_>>>()?;
        // With an offset the gradients are views that begin in the middle of a vector.
        let grads = sizes.iter().map(|&n| tensor(n + offset, 7)?.narrow(0, offset, n)).collect::<Result<Vec<_>>>()?;
        let mut states = sizes.iter().map(|&n| Ok(vec![tensor(n, 13)?])).collect::<Result<Vec<_>>>()?;
        let mut targets: Vec<Target> = params
            .iter_mut()
            .zip(&grads)
            .zip(&mut states)
            .map(|((param, grad), state)| Target { param, grad, state })
            .collect();
        device.backend().update(&rule, &mut targets)?;
        for (k, &n) in sizes.iter().enumerate() {
            let all = numbers(n + 20);
            let velocity = |i: usize| f64::from(all[i + 13]) * 0.9 + f64::from(all[i + 7 + offset]);
            check(&states[k][0].to_vec::<f32>()?, velocity, 1e-6);
            check(&params[k].to_vec::<f32>()?, |i| f64::from(all[i]) - velocity(i) * 0.1, 1e-6);
        }
    }
    Ok(())
}
