//! Products and windows of sizes that no parity case has: sums longer than an invocation may loop, and more groups than go
//! along one axis.

use tensor_core::{ConvOptions, DType, Device, PoolOptions, Result, Tensor};

/// The first adapter. Without one the test has not run, which continuous integration does not accept.
fn adapter() -> Option<Device> {
    match backend_wgpu::devices() {
        Ok(found) => Some(found[0].clone()),
        Err(reason) => {
            assert!(std::env::var_os("CI").is_none(), "{reason}");
            eprintln!("not run: {reason}");
            None
        }
    }
}

/// −1, 0 and 1 in an order of its own per row and column.
fn small(row: usize, column: usize) -> i32 {
    ((row * 7 + column * 5 + column / 11) % 3) as i32 - 1
}

fn matrix(rows: usize, columns: usize, device: &Device) -> Result<Tensor> {
    let values = (0..rows * columns).map(|i| small(i / columns, i % columns)).collect();
    Tensor::from_vec::<i32>(values, [rows, columns], device)
}

/// Exact in i32 and, as no partial sum reaches 2²⁴, in f32.
#[test]
fn sums_of_70_000_products_are_whole_in_every_form() -> Result<()> {
    let Some(device) = adapter() else { return Ok(()) };
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
    let Some(device) = adapter() else { return Ok(()) };
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
    let Some(device) = adapter() else { return Ok(()) };
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
    let Some(device) = adapter() else { return Ok(()) };
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
