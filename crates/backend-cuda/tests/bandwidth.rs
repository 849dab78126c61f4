//! Sizes that the suite leaves out: rows past every form's limit, segments, long lanes, many targets at odd addresses.
#![cfg(feature = "emulator")]

use backend_cuda::{Emulated, emulated};
use conformance::compare::{allowed, compare};
use conformance::reference;
use tensor_core::expr::{Accuracy, build};
use tensor_core::op::Softmax;
use tensor_core::{DType, Device, Op, Result, Target, Tensor, UpdateRule};

fn device() -> Device {
    emulated(&Emulated::default())
}

/// Numbers between −2 and 2 without a pattern.
fn numbers(n: usize) -> Vec<f32> {
    (0..n as u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 8) as f32 / (1 << 22) as f32 - 2.0).collect()
}

/// Holds what a function gives on the emulator to what the reference gives, within the ops' own bounds.
fn judge(what: &str, f: impl Fn(&Device) -> Result<Tensor>) -> Result<()> {
    let (got, want) = (f(&device())?, f(&reference::device(Accuracy::default()))?);
    hold(what, &got, &want)
}

fn hold(what: &str, got: &Tensor, want: &Tensor) -> Result<()> {
    let softmax = Op::Softmax(Softmax { axis: 0, log: false }).record().contract();
    let cells = allowed(&reference::cells(want), softmax.tolerance, want.dtype());
    if let Err(breach) = compare(&got.to_host()?, want.shape(), &cells, false) {
        panic!("{what}: {breach}");
    }
    Ok(())
}

/// Softmax and normalisation of [outer, depth, inner] along the middle.
fn check_rows(dims: [usize; 3]) -> Result<()> {
    let x = |device: &Device| Tensor::from_vec(numbers(dims.iter().product()), dims, device);
    judge(&format!("softmax {dims:?}"), |device| x(device)?.softmax(1))?;
    judge(&format!("normalize {dims:?}"), |device| x(device)?.normalize(1, 1e-5))
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
        // One row, which ends within a vector.
        [1, 803, 1],
        [1, 9003, 1],
        [2, 20, 7],
        [1, 70, 1100],
        [2, 1100, 3],
        [70_000, 3, 1],
        [66_000, 33, 1],
    ] {
        check_rows(dims)?;
    }
    Ok(())
}

/// A block per row, and more of them than a grid has along any axis but the first.
#[test]
fn blocks_for_more_rows_than_65_535() -> Result<()> {
    let rows = 65_540;
    // Every row is the same one in memory.
    let row: Vec<i32> = (0..1030).map(|i| i * 37 % 101 - 50).collect();
    let x = Tensor::from_vec(row.clone(), [1, 1030], &device())?.expand([rows, 1030])?;
    assert_eq!(x.sum(1)?.to_vec::<i32>()?, vec![row.iter().sum::<i32>(); rows]);
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
        judge(&format!("sum of f16 {dims:?} axis {axis}"), |device| {
            Tensor::from_vec(values.clone(), dims, device)?.cast(DType::F16)?.sum(axis)
        })?;
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
    // Momentum: two results, of which the second is read by the first.
    let rule = UpdateRule {
        outputs: [
            build(|[param, grad, velocity]| param - (velocity * 0.9 + grad) * 0.1),
            build(|[_, grad, velocity]| velocity * 0.9 + grad),
        ]
        .into_iter()
        .collect(),
    };
    let devices = [device(), reference::device(Accuracy::default())];
    for offset in [0, 1] {
        let sizes = [5, 1, 4096, 0, 4097, 10_000, 3];
        let updated = |device: &Device| -> Result<Vec<Tensor>> {
            let tensor = |n: usize, seed: usize| Tensor::from_vec(numbers(n + seed)[seed..].to_vec(), [n], device);
            let mut params = sizes.iter().map(|&n| tensor(n, 0)).collect::<Result<Vec<_>>>()?;
            // With an offset the gradients are views that begin in the middle of a vector.
            let grads =
                sizes.iter().map(|&n| tensor(n + offset, 7)?.narrow(0, offset, n)).collect::<Result<Vec<_>>>()?;
            let mut states = sizes.iter().map(|&n| Ok(vec![tensor(n, 13)?])).collect::<Result<Vec<_>>>()?;
            let mut targets: Vec<Target> = params
                .iter_mut()
                .zip(&grads)
                .zip(&mut states)
                .map(|((param, grad), state)| Target { param, grad, state })
                .collect();
            device.backend().update(&rule, &mut targets)?;
            Ok(params.into_iter().chain(states.into_iter().flatten()).collect())
        };
        let [got, want] = [updated(&devices[0])?, updated(&devices[1])?];
        for (k, (got, want)) in got.iter().zip(&want).enumerate() {
            hold(&format!("offset {offset}, tensor {k}"), got, want)?;
        }
    }
    Ok(())
}
