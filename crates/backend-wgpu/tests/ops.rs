//! What generated cases do not reach: long axes, wrong indices of several threads, kernels of a user's own.

mod adapter;

use std::sync::Arc;

use adapter::first;
use backend_wgpu::devices;
use tensor_core::op::{CustomKernel, Meta, Metas, WgslKernel};
use tensor_core::{CustomOp, DType, Device, Error, Kind, Result, Tensor, custom};

/// Numbers below 1000 without pattern, with many repetitions.
fn strewn(n: usize, device: &Device) -> Result<(Vec<i32>, Tensor)> {
    let values: Vec<i32> = (0..n as u64).map(|i| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as i32 % 1000).collect();
    let x = Tensor::from_slice(&values, [n], device)?;
    Ok((values, x))
}

#[test]
fn axes_of_seventy_thousand_are_sorted_scanned_searched_and_added_to() -> Result<()> {
    let Some(device) = first(devices()) else { return Ok(()) };
    let n = 70_000;
    let (values, x) = strewn(n, &device)?;

    let mut order: Vec<i64> = (0..n as i64).collect();
    order.sort_by_key(|&i| values[i as usize]);
    let (sorted, places) = x.sort(0, false)?;
    assert!(places.to_vec::<i64>()? == order, "stable order");
    assert!(
        sorted.to_vec::<i32>()? == order.iter().map(|&i| values[i as usize]).collect::<Vec<_>>(),
        "values in order"
    );

    let sums: Vec<i32> = values.iter().scan(0, |sum, &v| Some((*sum += v, *sum).1)).collect();
    assert!(x.cumsum(0)?.to_vec::<i32>()? == sums, "running sum");
    let columns = Tensor::stack(&[&x, &x], 1)?;
    assert!(columns.cumsum(0)?.narrow(1, 1, 1)?.flatten(..)?.to_vec::<i32>()? == sums, "of columns");

    let largest = values.iter().max().expect("values");
    let first = values.iter().position(|v| v == largest).expect("it is there") as i64;
    assert_eq!(x.argmax(0)?.item::<i64>()?, first);
    assert_eq!(columns.argmax(0)?.to_vec::<i64>()?, [first; 2]);

    let mut counts = vec![0; 1000];
    values.iter().for_each(|&v| counts[v as usize] += 1);
    let counted = Tensor::zeros([1000], (&device, DType::I32))?.scatter_add(0, &x, &x.ones_like()?)?;
    assert_eq!(counted.to_vec::<i32>()?, counts);
    Ok(())
}

#[test]
fn a_row_of_seventeen_million_has_its_extremum_found() -> Result<()> {
    let Some(device) = first(devices()) else { return Ok(()) };
    let n = 17_000_000;
    let x = Tensor::zeros([n - 3], (&device, DType::U8))?.pad(&[(0, 3)], 1)?;
    assert_eq!(x.argmax(0)?.item::<i64>()?, n as i64 - 3);
    assert_eq!(x.argmin(0)?.item::<i64>()?, 0);
    Ok(())
}

#[test]
fn a_wrong_index_is_reported_at_the_wait_of_the_thread_that_used_it() -> Result<()> {
    let Some(device) = first(devices()) else { return Ok(()) };
    let x = Tensor::arange(0, 12, 1, (&device, DType::F32))?.reshape([3, 4])?;
    let wrong = |value: i64| Tensor::from_slice(&[1, 0, 2, value, 7], [5], &device);
    let said = |error: Option<Error>| error.expect("an index is wrong").to_string();

    // Nothing is said until somebody waits.
    let picked = x.index_select(1, &wrong(-5_000_000_000)?)?;
    let error = said(picked.to_vec::<f32>().err());
    let rule = "gather: index is out of range";
    assert_eq!(error, format!("{rule}: index -5000000000 at [0, 3], axis 1 has 4; indices count from 0"));
    // It is said once, and the device goes on.
    assert_eq!(x.sum(..)?.item::<f32>()?, 66.0);

    // Another thread's wait does not take this thread's error, and the other way round.
    let _kept = x.index_select(1, &wrong(4)?)?;
    std::thread::scope(|scope| {
        let other = scope.spawn(|| {
            assert_eq!(x.sum(..)?.item::<f32>()?, 66.0);
            let index = Tensor::from_slice(&[3], [1, 1], &device)?;
            let _sum = x.scatter_add(0, &index, &Tensor::ones([1, 1], &device)?)?;
            device.synchronize()
        });
        let error = said(other.join().expect("no panic").err());
        assert_eq!(error, "scatter_add: index is out of range: index 3 at [0, 0], axis 0 has 3; indices count from 0");
    });
    let error = said(device.synchronize().err());
    assert_eq!(error, format!("{rule}: index 4 at [0, 3], axis 1 has 4; indices count from 0"));
    device.synchronize()
}

#[test]
fn more_launches_than_slots_lose_no_finding() -> Result<()> {
    let Some(device) = first(devices()) else { return Ok(()) };
    let x = Tensor::ones([4], &device)?;
    let (right, wrong) = (Tensor::from_slice(&[3], [1], &device)?, Tensor::from_slice(&[9], [1], &device)?);
    let _first = x.gather(0, &wrong)?;
    for _ in 0..1500 {
        x.gather(0, &right)?;
    }
    let error = device.synchronize().expect_err("the first one was wrong").to_string();
    assert_eq!(error, "gather: index is out of range: index 9 at [0], axis 0 has 4; indices count from 0");
    Ok(())
}

/// Kernels of a user's own.
#[derive(Debug)]
struct Own {
    text: &'static str,
    groups: [u32; 3],
}

impl CustomOp for Own {
    fn name(&self) -> &str {
        "own"
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Metas> {
        Ok(inputs.iter().cloned().collect())
    }

    fn kernel(&self, kind: Kind) -> Option<CustomKernel> {
        let (text, groups) = (self.text, self.groups);
        let kernel = move |inputs: &[Meta], _: &[Meta]| {
            let numbers = vec![inputs[0].shape.len() as u32, 2.5f32.to_bits()];
            Ok(WgslKernel { text, entry: "own", groups, numbers })
        };
        (kind == Kind::Wgpu).then(|| CustomKernel::Wgsl(Arc::new(kernel)))
    }

    fn derivative(&self, _: &[&Tensor], _: &[Tensor], _: &[Tensor]) -> Result<Vec<Option<Tensor>>> {
        Err(Error::other("own", "has no derivative"))
    }
}

/// y_k = 2.5·x_k of two operands.
const SCALED: &str = "
struct Numbers { n: u32, scale: f32 }
@group(0) @binding(0) var<storage, read_write> y0: array<f32>;
@group(0) @binding(1) var<storage, read_write> y1: array<f32>;
@group(0) @binding(2) var<storage, read> x0: array<f32>;
@group(0) @binding(3) var<storage, read> x1: array<f32>;
@group(0) @binding(4) var<storage, read> numbers: Numbers;
@compute @workgroup_size(64)
fn own(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x < numbers.n {
        y0[id.x] = numbers.scale * x0[id.x];
        y1[id.x] = numbers.scale * x1[id.x];
    }
}
";

#[test]
fn a_kernel_of_ones_own_has_outputs_inputs_and_numbers_in_that_order() -> Result<()> {
    let Some(device) = first(devices()) else { return Ok(()) };
    let x = Tensor::arange(0, 6, 1, (&device, DType::F32))?.reshape([2, 3])?;
    let (turned, row) = (x.t()?, x.narrow(0, 1, 1)?);
    let y = custom(Arc::new(Own { text: SCALED, groups: [1; 3] }), &[&turned, &turned])?;
    assert_eq!(y[1].to_vec::<f32>()?, [0.0, 7.5, 2.5, 10.0, 5.0, 12.5]);
    let y = custom(Arc::new(Own { text: SCALED, groups: [1; 3] }), &[&row, &row])?;
    assert_eq!(y[0].to_vec::<f32>()?, [7.5, 10.0, 12.5]);
    Ok(())
}

#[test]
fn a_kernel_that_is_refused_says_why_and_the_device_goes_on() -> Result<()> {
    let Some(device) = first(devices()) else { return Ok(()) };
    let x = Tensor::ones([3], &device)?;
    let said = |text: &'static str, groups| {
        custom(Arc::new(Own { text, groups }), &[&x]).expect_err("it is refused").to_string()
    };
    let error = said("@compute @workgroup_size(1) fn own() { let a = undeclared; }", [1; 3]);
    assert!(error.starts_with("own: wgpu:0 refuses the kernel own: ") && error.contains("undeclared"), "{error}");
    let error = said("@compute @workgroup_size(1) fn other() {}", [1; 3]);
    assert!(error.starts_with("own: wgpu:0 refuses the kernel own: "), "{error}");
    let read_only = "@group(0) @binding(1) var<storage, read_write> x: array<f32>;
        @compute @workgroup_size(1) fn own() { x[0] = 1.0; }";
    let error = said(read_only, [1; 3]);
    assert!(error.starts_with("own: wgpu:0 refuses the kernel own: "), "{error}");
    let error = said("@compute @workgroup_size(1) fn own() {}", [1, 1 << 30, 1]);
    assert!(
        error.starts_with(
            "own: has more groups along an axis than the adapter starts: groups [1, 1073741824, 1], limit "
        )
    );
    assert_eq!(x.sum(..)?.item::<f32>()?, 3.0);
    Ok(())
}
