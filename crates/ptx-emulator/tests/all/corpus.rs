//! PTX that compilers wrote: results against f64, and not one finding.

use crate::support::Numbers;
use half::{bf16, f16};
use ptx_emulator::{Approximation, Arg, Buffer, Device, Launch, Loaded, MmaMode, Module, Options, Order};

macro_rules! ptx {
    ($name:literal) => {
        include_str!(concat!("corpus/", $name, ".ptx"))
    };
}

/// Every way to run a kernel that may not change whether it is right.
fn modes() -> Vec<Options> {
    let base = Options { eager: true, ..Options::default() };
    vec![
        base,
        Options { order: Order::Descending, ..base },
        Options { order: Order::Seeded(7), approximation: Approximation::Perturbed(3), ..base },
        Options { order: Order::Seeded(8), mma: MmaMode::Hopper, ..base },
    ]
}

fn loaded(text: &str, options: Options) -> (Device, Loaded) {
    let module = Module::parse(text).unwrap_or_else(|error| panic!("{error}"));
    let mut device = Device::new(options);
    let loaded = device.load(&module).unwrap();
    (device, loaded)
}

fn launch(device: &mut Device, loaded: &Loaded, kernel: &str, launch: Launch, args: &[Arg]) {
    if let Err(error) = device.launch(loaded, kernel, launch, args) {
        panic!("{error}");
    }
}

/// Triton's kernels take two pointers more, for scratch memory that these do not use.
fn scratch(mut args: Vec<Arg>) -> Vec<Arg> {
    args.extend([Arg::address(0), Arg::address(0)]);
    args
}

fn close(found: &[f32], expected: &[f64], tolerance: f64) {
    assert_eq!(found.len(), expected.len());
    for (i, (found, expected)) in found.iter().zip(expected).enumerate() {
        let error = (f64::from(*found) - expected).abs();
        assert!(error <= tolerance * expected.abs().max(1.0), "element {i}: {found} against {expected}");
    }
}

fn product(a: &[f64], b: &[f64], m: usize, n: usize, k: usize) -> Vec<f64> {
    (0..m * n).map(|i| (0..k).map(|l| a[i / n * k + l] * b[l * n + i % n]).sum()).collect()
}

fn wide(values: &[f32]) -> Vec<f64> {
    values.iter().map(|value| f64::from(*value)).collect()
}

const CLANG: &str = ptx!("clang");

#[test]
fn clang_saxpy() {
    for options in modes() {
        let (mut device, loaded) = loaded(CLANG, options);
        let (x, y) = (Numbers::new(1).units(1000), Numbers::new(2).units(1000));
        let (dx, dy) = (device.upload(&x).unwrap(), device.upload(&y).unwrap());
        let args = [Arg::value(1000_i32), Arg::value(2.5_f32), Arg::buffer(&dx), Arg::buffer(&dy)];
        launch(&mut device, &loaded, "saxpy", Launch::linear(8, 128), &args);
        let expected: Vec<f64> = (0..1000).map(|i| 2.5 * f64::from(x[i]) + f64::from(y[i])).collect();
        close(&device.download(&dy).unwrap(), &expected, 1e-6);
    }
}

#[test]
fn clang_sums() {
    for options in modes() {
        let (mut device, loaded) = loaded(CLANG, options);
        let x = Numbers::new(3).units(5000);
        let total: f64 = wide(&x).iter().sum();
        let dx = device.upload(&x).unwrap();
        let out: Buffer<f32> = device.alloc(7).unwrap();
        let args = [Arg::buffer(&dx), Arg::buffer(&out), Arg::value(5000_i32)];
        launch(&mut device, &loaded, "block_sum", Launch::linear(7, 256), &args);
        let sums = device.download(&out).unwrap();
        close(&[sums.iter().sum()], &[total], 1e-4);

        // The last block reads what the others wrote: in order because of the fence and the atomic. Twice, since it
        // resets its counter.
        for _ in 0..2 {
            let partial: Buffer<f32> = device.alloc(9).unwrap();
            let one: Buffer<f32> = device.alloc(1).unwrap();
            let args = [Arg::buffer(&dx), Arg::buffer(&partial), Arg::buffer(&one), Arg::value(5000_i32)];
            launch(&mut device, &loaded, "grid_sum", Launch::linear(9, 256), &args);
            close(&device.download(&one).unwrap(), &[total], 1e-4);
        }
    }
}

#[test]
fn clang_scan_transpose_histogram() {
    for options in modes() {
        let (mut device, loaded) = loaded(CLANG, options);
        let x: Vec<i32> = (0..200).map(|i| i * 7 % 13 - 6).collect();
        let (dx, dy) = (device.upload(&x).unwrap(), device.alloc::<i32>(200).unwrap());
        let args = [Arg::buffer(&dx), Arg::buffer(&dy), Arg::value(200_i32)];
        launch(&mut device, &loaded, "block_scan", Launch::linear(1, 256), &args);
        let sums = x.iter().scan(0, |sum, x| {
            *sum += x;
            Some(*sum)
        });
        assert_eq!(device.download(&dy).unwrap(), sums.collect::<Vec<i32>>());

        let x = Numbers::new(4).units(50 * 70);
        let (dx, dy) = (device.upload(&x).unwrap(), device.alloc::<f32>(50 * 70).unwrap());
        let args = [Arg::buffer(&dx), Arg::buffer(&dy), Arg::value(50_i32), Arg::value(70_i32)];
        launch(&mut device, &loaded, "transpose", Launch::new([3, 2, 1], [32, 8, 1]), &args);
        let expected: Vec<f32> = (0..50 * 70).map(|i| x[i % 50 * 70 + i / 50]).collect();
        assert_eq!(device.download(&dy).unwrap(), expected);

        let bytes: Vec<u8> = (0..3000_u32).map(|i| (i * i % 251) as u8).collect();
        let mut expected = vec![0_u32; 256];
        bytes.iter().for_each(|byte| expected[usize::from(*byte)] += 1);
        let (dx, counts) = (device.upload(&bytes).unwrap(), device.zeros::<u32>(256).unwrap());
        let args = [Arg::buffer(&dx), Arg::buffer(&counts), Arg::value(3000_i32)];
        launch(&mut device, &loaded, "histogram", Launch::linear(4, 128), &args);
        assert_eq!(device.download(&counts).unwrap(), expected);
    }
}

fn softmax(x: &[f32], cols: usize) -> Vec<f64> {
    let row = |x: &[f32]| -> Vec<f64> {
        let most = x.iter().copied().fold(f32::MIN, f32::max);
        let e: Vec<f64> = x.iter().map(|x| f64::from(x - most).exp()).collect();
        let sum: f64 = e.iter().sum();
        e.iter().map(|e| e / sum).collect()
    };
    x.chunks(cols).flat_map(row).collect()
}

fn layer_norm(x: &[f32], gain: &[f32], bias: &[f32], eps: f64) -> Vec<f64> {
    let n = gain.len();
    let row = |x: &[f32]| -> Vec<f64> {
        let x = wide(x);
        let mean = x.iter().sum::<f64>() / n as f64;
        let variance = x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n as f64;
        let scale = 1.0 / (variance + eps).sqrt();
        (0..n).map(|i| (x[i] - mean) * scale * f64::from(gain[i]) + f64::from(bias[i])).collect()
    };
    x.chunks(n).flat_map(row).collect()
}

#[test]
fn clang_and_triton_norms() {
    for options in modes() {
        let (rows, cols) = (3, 200);
        let x = Numbers::new(5).units(rows * cols);
        let (gain, bias) = (Numbers::new(6).units(cols), Numbers::new(7).units(cols));
        let n = Arg::value(cols as i32);

        let texts = [(CLANG, 32, 0, false), (ptx!("triton_softmax"), 128, 16, true)];
        for (text, threads, shared, triton) in texts {
            let (mut device, loaded) = loaded(text, options);
            let (dx, dy) = (device.upload(&x).unwrap(), device.alloc::<f32>(rows * cols).unwrap());
            let args = vec![Arg::buffer(&dx), Arg::buffer(&dy), n.clone()];
            let args = if triton { scratch(args) } else { args };
            launch(&mut device, &loaded, "softmax", Launch::linear(rows as u32, threads).shared(shared), &args);
            close(&device.download(&dy).unwrap(), &softmax(&x, cols), 1e-5);
        }

        let texts = [(CLANG, 32, 0, false), (ptx!("triton_layer_norm"), 128, 16, true)];
        for (text, threads, shared, triton) in texts {
            let (mut device, loaded) = loaded(text, options);
            let [dx, dg, db] = [&x, &gain, &bias].map(|values| device.upload(values).unwrap());
            let dy = device.alloc::<f32>(rows * cols).unwrap();
            let mut args = vec![Arg::buffer(&dx), Arg::buffer(&dg), Arg::buffer(&db), Arg::buffer(&dy), n.clone()];
            if triton {
                args.push(Arg::value(1e-5_f32));
                args = scratch(args);
            }
            launch(&mut device, &loaded, "layer_norm", Launch::linear(rows as u32, threads).shared(shared), &args);
            close(&device.download(&dy).unwrap(), &layer_norm(&x, &gain, &bias, 1e-5), 1e-4);
        }
    }
}

#[test]
fn clang_matmul() {
    for options in modes() {
        let (mut device, loaded) = loaded(CLANG, options);
        let (m, n, k) = (20, 36, 50);
        let (a, b) = (Numbers::new(8).units(m * k), Numbers::new(9).units(k * n));
        let (da, db) = (device.upload(&a).unwrap(), device.upload(&b).unwrap());
        let dc = device.alloc::<f32>(m * n).unwrap();
        let mut args = vec![Arg::buffer(&da), Arg::buffer(&db), Arg::buffer(&dc)];
        args.extend([m, n, k].map(|size| Arg::value(size as i32)));
        launch(&mut device, &loaded, "matmul", Launch::new([3, 2, 1], [16, 16, 1]), &args);
        close(&device.download(&dc).unwrap(), &product(&wide(&a), &wide(&b), m, n, k), 1e-5);
    }
}

#[test]
fn clang_matmul_on_tensor_cores() {
    for options in modes() {
        let (mut device, loaded) = loaded(CLANG, options);
        let (m, n, k) = (32, 48, 64);
        let half = |values: Vec<f32>| -> Vec<f16> { values.into_iter().map(f16::from_f32).collect() };
        let (a, b) = (half(Numbers::new(10).units(m * k)), half(Numbers::new(11).units(k * n)));
        let (da, db) = (device.upload(&a).unwrap(), device.upload(&b).unwrap());
        let dc = device.alloc::<f32>(m * n).unwrap();
        let mut args = vec![Arg::buffer(&da), Arg::buffer(&db), Arg::buffer(&dc)];
        args.extend([n, k].map(|size| Arg::value(size as i32)));
        launch(&mut device, &loaded, "matmul_wmma", Launch::new([3, 2, 1], [32, 1, 1]), &args);
        let [a, b] = [a, b].map(|values| values.iter().map(|value| value.to_f64()).collect::<Vec<f64>>());
        close(&device.download(&dc).unwrap(), &product(&a, &b, m, n, k), 1e-5);
    }
}

#[test]
fn clang_calls_and_doubles() {
    for options in modes() {
        let (mut device, loaded) = loaded(CLANG, options);
        let x: Vec<f64> = (0..100).map(|i| f64::from(i) * 0.01 + 0.1).collect();
        let kind: Vec<i32> = (0..100).map(|i| i % 6).collect();
        let (dx, dk) = (device.upload(&x).unwrap(), device.upload(&kind).unwrap());
        let dy = device.alloc::<f64>(100).unwrap();
        let args = [Arg::buffer(&dx), Arg::buffer(&dy), Arg::buffer(&dk), Arg::value(100_i32)];
        launch(&mut device, &loaded, "polynomial", Launch::linear(2, 64), &args);
        let y = device.download(&dy).unwrap();
        for i in 0..100 {
            let c: Vec<f64> = (0..6).map(|j| 1.0 / f64::from(j + 1 + kind[i])).collect();
            let horner = |n: usize, x: f64| c[..n].iter().rev().fold(0.0, |y, c| y * x + c);
            let expected = match kind[i] {
                0 => horner(6, x[i]),
                1 => horner(3, -x[i]),
                2 => horner(4, x[i] * x[i]).sqrt(),
                3 => x[i] / horner(2, x[i]),
                4 => (x[i] * 1e6).trunc(),
                _ => -1.0,
            };
            assert!((y[i] - expected).abs() <= 1e-12 * expected.abs(), "{i}: {} against {expected}", y[i]);
        }
    }
}

#[test]
fn triton_scan_transpose_histogram() {
    for options in modes() {
        let (mut device, l) = loaded(ptx!("triton_scan"), options);
        let x: Vec<i32> = (0..200).map(|i| i * 5 % 17 - 8).collect();
        let (dx, dy) = (device.upload(&x).unwrap(), device.alloc::<i32>(200).unwrap());
        let args = scratch(vec![Arg::buffer(&dx), Arg::buffer(&dy), Arg::value(200_i32)]);
        launch(&mut device, &l, "scan", Launch::linear(1, 128).shared(16), &args);
        let expected: Vec<i32> = (0..200).map(|i| x[..=i].iter().sum()).collect();
        assert_eq!(device.download(&dy).unwrap(), expected);

        let (mut device, l) = loaded(ptx!("triton_transpose"), options);
        let (rows, cols) = (48, 80);
        let x = Numbers::new(12).units(rows * cols);
        let (dx, dy) = (device.upload(&x).unwrap(), device.alloc::<f32>(rows * cols).unwrap());
        let sizes = [rows, cols].map(|size| Arg::value(size as i32));
        let args = scratch([vec![Arg::buffer(&dx), Arg::buffer(&dy)], sizes.to_vec()].concat());
        launch(&mut device, &l, "transpose", Launch::new([2, 3, 1], [128, 1, 1]).shared(4096), &args);
        let expected: Vec<f32> = (0..rows * cols).map(|i| x[i % rows * cols + i / rows]).collect();
        assert_eq!(device.download(&dy).unwrap(), expected);

        let (mut device, l) = loaded(ptx!("triton_histogram"), options);
        let x: Vec<i32> = (0..1000).map(|i| i * i % 61).collect();
        let mut expected = vec![0_i32; 64];
        x.iter().for_each(|x| expected[*x as usize] += 1);
        let (dx, counts) = (device.upload(&x).unwrap(), device.zeros::<i32>(64).unwrap());
        let args = scratch(vec![Arg::buffer(&dx), Arg::buffer(&counts), Arg::value(1000_i32)]);
        launch(&mut device, &l, "histogram", Launch::linear(4, 128).shared(2048), &args);
        assert_eq!(device.download(&counts).unwrap(), expected);
    }
}

#[test]
fn triton_matmuls() {
    let (m, n, k) = (48, 64, 80);
    let (a, b) = (Numbers::new(13).units(m * k), Numbers::new(14).units(k * n));
    for options in modes() {
        let check =
            |text: &str, shared: u32, convert: &dyn Fn(&mut Device, &[f32]) -> (Arg, Vec<f64>), tolerance: f64| {
                let (mut device, loaded) = loaded(text, options);
                let (da, wide_a) = convert(&mut device, &a);
                let (db, wide_b) = convert(&mut device, &b);
                let dc = device.alloc::<f32>(m * n).unwrap();
                let sizes = [m, n, k].map(|size| Arg::value(size as i32));
                let args = scratch([vec![da, db, Arg::buffer(&dc)], sizes.to_vec()].concat());
                launch(&mut device, &loaded, "matmul", Launch::new([2, 2, 1], [128, 1, 1]).shared(shared), &args);
                close(&device.download(&dc).unwrap(), &product(&wide_a, &wide_b, m, n, k), tolerance);
            };
        check(
            ptx!("triton_matmul_f16"),
            8192,
            &|device, values| {
                let halves: Vec<f16> = values.iter().map(|value| f16::from_f32(*value)).collect();
                (Arg::buffer(&device.upload(&halves).unwrap()), halves.iter().map(|half| half.to_f64()).collect())
            },
            1e-5,
        );
        check(
            ptx!("triton_matmul_bf16"),
            8192,
            &|device, values| {
                let halves: Vec<bf16> = values.iter().map(|value| bf16::from_f32(*value)).collect();
                (Arg::buffer(&device.upload(&halves).unwrap()), halves.iter().map(|half| half.to_f64()).collect())
            },
            1e-5,
        );
        check(
            ptx!("triton_matmul_tf32"),
            16384,
            &|device, values| (Arg::buffer(&device.upload(values).unwrap()), wide(values)),
            2e-3 * 8.0,
        );
    }
}

#[test]
fn triton_attention() {
    let (length, d) = (48, 32);
    let half = |seed| -> Vec<f16> { Numbers::new(seed).units(length * d).into_iter().map(f16::from_f32).collect() };
    let (q, k, v) = (half(15), half(16), half(17));
    let scale = 0.3_f32;
    let mut expected = Vec::new();
    for i in 0..length {
        let dot = |j: usize| (0..d).map(|c| q[i * d + c].to_f64() * k[j * d + c].to_f64()).sum::<f64>();
        let scores: Vec<f64> = (0..length).map(|j| (dot(j) * f64::from(scale)).exp()).collect();
        let sum: f64 = scores.iter().sum();
        expected.extend((0..d).map(|c| (0..length).map(|j| scores[j] / sum * v[j * d + c].to_f64()).sum::<f64>()));
    }
    for options in modes() {
        let (mut device, loaded) = loaded(ptx!("triton_attention"), options);
        let [dq, dk, dv] = [&q, &k, &v].map(|values| device.upload(values).unwrap());
        let out = device.alloc::<f32>(length * d).unwrap();
        let args = vec![Arg::buffer(&dq), Arg::buffer(&dk), Arg::buffer(&dv), Arg::buffer(&out)];
        let args = scratch([args, vec![Arg::value(length as i32), Arg::value(scale)]].concat());
        launch(&mut device, &loaded, "attention", Launch::linear(2, 128).shared(10240), &args);
        close(&device.download(&out).unwrap(), &expected, 2e-3);
    }
}
