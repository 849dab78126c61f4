//! Products and windows of sizes that no parity case has: tiles of both widths and their rims, sums longer than an invocation
//! may loop, and more groups than go along one axis.

mod adapter;

use adapter::first;
use backend_wgpu::{devices, modest};
use tensor_core::{ConvOptions, DType, Device, PoolOptions, Result, Tensor};

/// −1, 0 and 1 in an order of its own per row and column.
fn small(row: usize, column: usize) -> i32 {
    ((row * 7 + column * 5 + column / 11) % 3) as i32 - 1
}

fn matrix(rows: usize, columns: usize, device: &Device) -> Result<Tensor> {
    let values = (0..rows * columns).map(|i| small(i / columns, i % columns)).collect();
    Tensor::from_vec::<i32>(values, [rows, columns], device)
}

/// −1, 0 and 1 of any shape.
fn strewn(shape: &[usize], device: &Device) -> Result<Tensor> {
    let values = (0..shape.iter().product()).map(|i: usize| small(i / 89, i % 89)).collect();
    Tensor::from_vec::<i32>(values, shape, device)
}

/// Where few groups are many, and as on hardware: each chooses the width of a tile by how many groups there are.
fn both() -> Vec<Device> {
    [first(devices()), first(modest())].into_iter().flatten().collect()
}

/// How many groups an adapter has enough of: hardware, and a processor as it is.
const BUSY: [usize; 2] = [128, 4];

fn n_tiles(batch: usize, rows: usize, columns: usize) -> usize {
    batch * rows.div_ceil(64) * columns.div_ceil(64)
}

#[test]
fn matrices_are_multiplied_in_tiles_of_64_and_of_32() -> Result<()> {
    let cpu = backend_cpu::device();
    let (wide, narrow) = ([43, 65, 38, 70], [1, 33, 70, 50]);
    assert!(n_tiles(43, 65, 70) >= BUSY[0] && n_tiles(1, 33, 50) < BUSY[1]);
    for device in both() {
        for [batch, m, k, n] in [wide, narrow] {
            // Neighbours along the sum and across it, for each operand.
            for (turns_lhs, turns_rhs) in [(false, false), (false, true), (true, false), (true, true)] {
                let operand = |rows: usize, columns: usize, turns: bool, device: &Device, dtype| {
                    let x = strewn(&if turns { [batch, columns, rows] } else { [batch, rows, columns] }, device)?;
                    let x = x.cast(dtype)?;
                    if turns { x.transpose(1, 2) } else { Ok(x) }
                };
                let product = |device: &Device, dtype| -> Result<Vec<i32>> {
                    let (lhs, rhs) =
                        (operand(m, k, turns_lhs, device, dtype)?, operand(k, n, turns_rhs, device, dtype)?);
                    lhs.matmul(&rhs)?.cast(DType::I32)?.to_vec()
                };
                let expected = product(&cpu, DType::I32)?;
                for dtype in [DType::F32, DType::F16, DType::I32, DType::I64] {
                    let done = match product(&device, dtype) {
                        // What the adapter does not compute in.
                        Err(error) if dtype == DType::I64 && error.is_unsupported() => continue,
                        done => done?,
                    };
                    let wrong = done.iter().zip(&expected).position(|(y, expected)| y != expected);
                    assert_eq!(
                        wrong, None,
                        "{device}: {dtype} [{batch}, {m}, {k}] x [{k}, {n}] {turns_lhs} {turns_rhs}"
                    );
                }
            }
        }
    }
    Ok(())
}

/// Results and both gradients have tiles of 64 where there is one of the two sizes, else of 32.
#[test]
fn convolutions_and_their_gradients_run_in_tiles_of_64_and_of_32() -> Result<()> {
    let cpu = backend_cpu::device();
    let images = ([16, 66, 16, 16], [66, 66, 1, 3]);
    let filters = ([1, 300, 4, 4], [130, 300, 3, 3]);
    assert!(n_tiles(1, 66, 16 * 16 * 16) >= BUSY[0] && n_tiles(1, 130, 300 * 9) >= BUSY[0]);
    for device in both() {
        for (x, weight) in [images, filters] {
            for groups in [1, 2] {
                let options = ConvOptions::default().padding([weight[2] / 2, 1]).groups(groups);
                let weight = [weight[0], weight[1] / groups, weight[2], weight[3]];
                let run = |device: &Device| -> Result<[Vec<f32>; 3]> {
                    let input = |shape: &[usize]| strewn(shape, device)?.cast(DType::F32);
                    let scale = input(&[x[0], weight[0], x[2], x[3]])?;
                    let loss = |[x, w]: [&Tensor; 2]| x.conv2d(w, None, &options)?.mul(&scale)?.sum(..);
                    let (x, w) = (input(&x)?, input(&weight)?);
                    let [by_x, by_w] = nn::gradient_n(loss, [&x, &w])?;
                    Ok([x.conv2d(&w, None, &options)?.to_vec()?, by_x.to_vec()?, by_w.to_vec()?])
                };
                let (done, expected) = (run(&device)?, run(&cpu)?);
                for (what, (done, expected)) in ["result", "by x", "by weight"].iter().zip(done.iter().zip(&expected)) {
                    let wrong = done.iter().zip(expected).position(|(y, expected)| y != expected);
                    assert_eq!(wrong, None, "{device}: {what} of {x:?} by {weight:?}, groups {groups}");
                }
            }
        }
    }
    Ok(())
}

/// Exact in i32 and, as no partial sum reaches 2²⁴, in f32.
#[test]
fn sums_of_70_000_products_are_whole_in_every_form() -> Result<()> {
    let Some(device) = first(devices()) else { return Ok(()) };
    let k = 70_000;
    // By folds along k, by an invocation per element, by tiles.
    for (m, n, is_along) in [(2, 3, true), (3, 5, false), (17, 17, true)] {
        let (a, b) = (matrix(m, k, &device)?, matrix(n, k, &device)?);
        let expected: Vec<i32> = (0..m * n).map(|i| (0..k).map(|k| small(i / n, k) * small(i % n, k)).sum()).collect();
        let b = b.transpose(0, 1)?;
        let b = if is_along { b } else { b.contiguous()? };
        assert_eq!(a.matmul(&b)?.to_vec::<i32>()?, expected, "[{m}, {k}] x [{k}, {n}] of i32");
        let product = a.cast(DType::F32)?.matmul(&b.cast(DType::F32)?)?;
        assert_eq!(product.cast(DType::I32)?.to_vec::<i32>()?, expected, "[{m}, {k}] x [{k}, {n}] of f32");
    }
    Ok(())
}

#[test]
fn a_tile_each_of_66_000_matrices_takes_a_second_row_of_groups() -> Result<()> {
    let Some(device) = first(devices()) else { return Ok(()) };
    let (batch, n) = (66_000, 17);
    let column: Vec<i32> = (0..batch * n).map(|i| i as i32).collect();
    let row: Vec<i32> = (0..n as i32).map(|i| i + 1).collect();
    let lhs = Tensor::from_vec::<i32>(column, [batch, n, 1], &device)?;
    let rhs = Tensor::from_vec::<i32>(row, [1, n], &device)?;
    let product = lhs.matmul(&rhs)?.to_vec::<i32>()?;
    let wrong = product.iter().enumerate().find(|&(i, &y)| y != (i / n) as i32 * ((i % n) as i32 + 1));
    assert_eq!(wrong, None);
    Ok(())
}

/// Each weight's gradient is a sum over 70,000 positions: of ones, a count of those where the weight is inside.
#[test]
fn a_gradient_over_70_000_positions_is_whole() -> Result<()> {
    let Some(device) = first(devices()) else { return Ok(()) };
    let x = Tensor::ones([2, 4, 350, 100], &device)?;
    for groups in [1usize, 4] {
        let weight = Tensor::ones([4, 4 / groups, 3, 3], &device)?;
        let options = ConvOptions::default().padding(1).groups(groups);
        let gradient = nn::gradient(|weight| x.conv2d(weight, None, &options)?.sum(..), &weight)?;
        let inside = |taps: usize, size: usize| if taps == 1 { size } else { size - 1 };
        let expected: Vec<f32> =
            (0..weight.len()).map(|i| (2 * inside(i / 3 % 3, 350) * inside(i % 3, 100)) as f32).collect();
        assert_eq!(gradient.to_vec::<f32>()?, expected, "groups {groups}");
    }
    Ok(())
}

#[test]
fn windows_of_many_elements_are_seen_to_their_end() -> Result<()> {
    let Some(device) = first(devices()) else { return Ok(()) };
    let (window, n_windows) = (70_000, 3);
    let n = window + n_windows - 1;
    let options = PoolOptions::new(window).stride(1);
    let mut values = vec![0.0f32; n];
    (values[0], values[1], values[n - 1]) = (3.0, 2.0, 5.0);
    for dtype in [DType::F32, DType::F16] {
        let x = Tensor::from_slice(&values, [1, 1, n], (&device, dtype))?;
        let (largest, places) = x.max_pool_with_positions(&options)?;
        assert_eq!(largest.cast(DType::F32)?.to_vec::<f32>()?, [3.0, 2.0, 5.0], "{dtype}");
        assert_eq!(places.to_vec::<i32>()?, [0, 1, n as i32 - 1], "{dtype}");
    }
    // A power of two, so that shares are exact.
    let window = 1 << 16;
    let n = window + n_windows - 1;
    let options = PoolOptions::new(window).stride(1);
    let x = Tensor::ones([1, 1, n], &device)?;
    assert_eq!(x.avg_pool1d(&options)?.to_vec::<f32>()?, [1.0; 3]);
    let gradient = nn::gradient(|x| x.avg_pool1d(&options)?.sum(..), &x)?.to_vec::<f32>()?;
    for (i, by) in [(0, 1.0), (1, 2.0), (n / 2, 3.0), (n - 2, 2.0), (n - 1, 1.0)] {
        assert_eq!(gradient[i], by / window as f32, "{i}");
    }
    Ok(())
}
