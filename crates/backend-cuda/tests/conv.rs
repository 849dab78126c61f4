//! Convolutions and their gradients by every kernel of the ladder of products, whatever the shape would choose.
#![cfg(feature = "emulator")]

use backend_cuda::{Choice, Emulated, Rung, emulated};
use conformance::suite;
use ptx_emulator::{MmaMode, Options, Order};
use tensor_core::expr::build;
use tensor_core::op::{Conv, ConvInputGrad, ConvWeightGrad, Window};
use tensor_core::{DType, Device, Dims, Expr, Op, Result, Tensor, execute};

const LADDER: [Rung; 3] = [Rung::Tile { is_small: false }, Rung::Tile { is_small: true }, Rung::Mma];

fn device(rung: Rung, parts: usize) -> Device {
    // CONV_TEXTS names a folder that takes the kernels' texts, for an assembler to look at.
    let texts = std::env::var_os("CONV_TEXTS").map(Into::into);
    let options = Options { mma: MmaMode::Hopper, order: Order::Seeded(5), ..Options::default() };
    // Small integers are exact in TF32.
    let tf32 = rung == Rung::Mma;
    emulated(&Emulated { matmul: Some(Choice { rung, parts }), tf32, options, texts, ..Emulated::default() })
}

#[test]
fn each_kernel_keeps_the_contract() -> std::result::Result<(), String> {
    for (rung, parts) in LADDER.into_iter().flat_map(|rung| [(rung, 1), (rung, 3)]) {
        let options = suite::Options { cases: 60, seed: 11, pattern: Some("conv*".into()), ..Default::default() };
        let report = suite::run(&device(rung, parts), &options, |_, _| {})?;
        assert!(report.failures.is_empty(), "{rung:?} in {parts}: {report}");
    }
    Ok(())
}

/// Sizes: images, groups, channels per group in and out, and per axis input, taps, stride, padding before and after, dilation.
struct Case {
    n: usize,
    groups: usize,
    channels: [usize; 2],
    axes: Vec<[usize; 6]>,
}

impl Case {
    fn conv(&self) -> Conv {
        let of = |i: usize| self.axes.iter().map(|axis| axis[i]).collect::<Dims>();
        let window = Window { stride: of(2), before: of(3), after: of(4), dilation: of(5) };
        Conv { window, groups: self.groups, epilogue: Expr::identity() }
    }

    fn shapes(&self) -> [Vec<usize>; 3] {
        let [c, o] = self.channels;
        let output = |[n, taps, stride, before, after, dilation]: [usize; 6]| {
            (n + before + after - (taps - 1) * dilation - 1) / stride + 1
        };
        let shape = |first: [usize; 2], f: &dyn Fn([usize; 6]) -> usize| {
            first.into_iter().chain(self.axes.iter().map(|&axis| f(axis))).collect()
        };
        [
            shape([self.n, self.groups * c], &|axis| axis[0]),
            shape([self.groups * o, c], &|axis| axis[1]),
            shape([self.n, self.groups * o], &output),
        ]
    }

    /// The convolution and both gradients, term by term.
    fn right(&self, x: &[f64], w: &[f64], g: &[f64]) -> [Vec<f64>; 3] {
        let [xs, ws, ys] = self.shapes();
        let mut found = [vec![0.0; g.len()], vec![0.0; x.len()], vec![0.0; w.len()]];
        let [c, o] = self.channels;
        for i in 0..g.len() {
            let y = coordinates(i, &ys);
            for j in 0..w.len() / (self.groups * o) {
                let tap = coordinates(j, &ws[1..]);
                let mut at = vec![y[0], y[1] / o * c + tap[0]];
                for (a, &[n, _, stride, before, _, dilation]) in self.axes.iter().enumerate() {
                    let u = (y[2 + a] * stride + tap[1 + a] * dilation).wrapping_sub(before);
                    at.extend((u < n).then_some(u));
                }
                if at.len() == xs.len() {
                    let (k, l) = (index(&at, &xs), y[1] * (w.len() / (self.groups * o)) + j);
                    found[0][i] += x[k] * w[l];
                    found[1][k] += g[i] * w[l];
                    found[2][l] += x[k] * g[i];
                }
            }
        }
        found
    }
}

fn coordinates(mut i: usize, shape: &[usize]) -> Vec<usize> {
    let mut at = vec![0; shape.len()];
    for axis in (0..shape.len()).rev() {
        (at[axis], i) = (i % shape[axis], i / shape[axis]);
    }
    at
}

fn index(at: &[usize], shape: &[usize]) -> usize {
    at.iter().zip(shape).fold(0, |i, (at, n)| i * n + at)
}

/// Integers from −2 to 2.
fn integers(dims: &[usize], seed: usize) -> Vec<f64> {
    let n: usize = dims.iter().product();
    (0..n).map(|i| ((i * 7919 + seed * 104_729) / 13 % 5) as f64 - 2.0).collect()
}

/// The three ops on operands whose axes lie in memory backwards where `is_turned`.
fn check(case: &Case, dtype: DType, is_turned: bool, device: &Device, what: &str) -> Result<()> {
    let shapes = case.shapes();
    let values: Vec<Vec<f64>> = shapes.iter().enumerate().map(|(i, dims)| integers(dims, i)).collect();
    let tensor = |i: usize| -> Result<Tensor> {
        let x = Tensor::from_vec(values[i].clone(), &shapes[i][..], device)?.cast(dtype)?;
        let axes: Vec<usize> = (0..x.rank()).rev().collect();
        if is_turned { x.permute(&axes[..])?.contiguous()?.permute(&axes[..]) } else { Ok(x) }
    };
    let (x, w, g) = (tensor(0)?, tensor(1)?, tensor(2)?);
    let conv = case.conv();
    let spatial = shapes[0][2..].iter().copied().collect();
    let kernel = shapes[1][2..].iter().copied().collect();
    let ops = [
        (Op::Conv(conv.clone()), [&x, &w]),
        (Op::ConvInputGrad(ConvInputGrad { conv: conv.clone(), spatial }), [&g, &w]),
        (Op::ConvWeightGrad(ConvWeightGrad { conv, kernel }), [&x, &g]),
    ];
    let right = case.right(&values[0], &values[1], &values[2]);
    for ((op, inputs), right) in ops.iter().zip(right) {
        let found = execute(op, inputs)?.remove(0).cast(DType::F64)?.to_vec::<f64>()?;
        // Sums are exact; a bf16 may not hold them.
        let n = right.len();
        let right = Tensor::from_vec(right, [n], device)?.cast(dtype)?.cast(DType::F64)?.to_vec::<f64>()?;
        assert_eq!(found.len(), right.len(), "{what} {op:?}");
        if let Some(i) = (0..right.len()).find(|&i| found[i] != right[i]) {
            panic!(
                "{what} {dtype} turned {is_turned} {op:?}: element {i} of {}: {} for {}",
                right.len(),
                found[i],
                right[i]
            );
        }
    }
    Ok(())
}

/// Just past tiles along every axis of the products; strides, dilations, padding that differ from axis to axis.
fn cases() -> Vec<Case> {
    let case = |n, groups, channels, axes: &[[usize; 6]]| Case { n, groups, channels, axes: axes.to_vec() };
    vec![
        case(2, 1, [3, 70], &[[9, 3, 1, 1, 1, 1], [8, 3, 1, 1, 1, 1]]),
        case(3, 2, [5, 6], &[[7, 3, 2, 1, 0, 1], [9, 2, 3, 0, 2, 2]]),
        case(1, 1, [33, 9], &[[131, 1, 1, 0, 0, 1]]),
        case(2, 1, [16, 65], &[[4, 1, 1, 0, 0, 1], [16, 1, 1, 0, 0, 1]]),
        case(2, 3, [4, 5], &[[40, 5, 2, 3, 3, 2]]),
        case(1, 1, [8, 8], &[[5, 3, 1, 2, 2, 1], [4, 2, 2, 1, 1, 1], [6, 3, 1, 1, 1, 2]]),
        case(2, 1, [17, 5], &[[8, 2, 4, 0, 0, 1], [9, 1, 3, 0, 0, 1]]),
        case(1, 4, [1, 1], &[[6, 3, 1, 1, 1, 1], [5, 3, 1, 1, 1, 1]]),
        case(2, 1, [5, 5], &[[12, 4, 6, 2, 3, 4]]),
        case(4, 1, [6, 7], &[[3, 3, 1, 0, 0, 1], [3, 3, 1, 0, 0, 1]]),
        case(3, 2, [8, 16], &[[16, 1, 1, 0, 0, 1], [9, 1, 1, 0, 0, 1]]),
    ]
}

#[test]
fn sizes_at_the_edges_of_tiles() -> Result<()> {
    for (rung, parts) in LADDER.into_iter().flat_map(|rung| [(rung, 1), (rung, 2)]) {
        let device = device(rung, parts);
        for (i, case) in cases().iter().enumerate() {
            let dtypes = [DType::F16, DType::BF16, DType::F32, DType::F64];
            for &dtype in if rung == Rung::Mma { &dtypes[..3] } else { &dtypes[2..] } {
                let what = format!("case {i} by {rung:?} in {parts}");
                check(case, dtype, (i + parts) % 2 == 0, &device, &what)?;
            }
        }
    }
    Ok(())
}

/// What the shape chooses, up to tensor cores and sums in parts, gives what reductions give.
#[test]
fn the_shape_chooses() -> Result<()> {
    let case = Case { n: 3, groups: 1, channels: [32, 40], axes: vec![[12, 3, 1, 1, 1, 1], [12, 3, 1, 1, 1, 1]] };
    let [xs, ws, ys] = case.shapes();
    let conv = case.conv();
    let ops = [
        (Op::Conv(conv.clone()), [&xs, &ws]),
        (Op::ConvInputGrad(ConvInputGrad { conv: conv.clone(), spatial: Dims::from_slice(&xs[2..]) }), [&ys, &ws]),
        (Op::ConvWeightGrad(ConvWeightGrad { conv, kernel: Dims::from_slice(&ws[2..]) }), [&xs, &ys]),
    ];
    for (op, dims) in &ops {
        for dtype in [DType::F32, DType::F16] {
            let by = |device: &Device| -> Result<Vec<f64>> {
                let x = |i: usize| Tensor::from_vec(integers(dims[i], i), &dims[i][..], device)?.cast(dtype);
                execute(op, &[&x(0)?, &x(1)?])?.remove(0).cast(DType::F64)?.to_vec()
            };
            let found = by(&emulated(&Emulated::default()))?;
            assert_eq!(found, by(&device(Rung::Reduce, 1))?, "{dtype} {op:?}");
        }
    }
    Ok(())
}

#[test]
fn epilogues_run_on_the_tile() -> Result<()> {
    for (rung, parts) in LADDER.into_iter().flat_map(|rung| [(rung, 1), (rung, 3)]) {
        let device = device(rung, parts);
        for dtype in [DType::F32, DType::BF16] {
            let tensor = |dims: &[usize], seed| Tensor::from_vec(integers(dims, seed), dims, &device)?.cast(dtype);
            let (x, w) = (tensor(&[2, 8, 6, 7], 1)?, tensor(&[12, 4, 3, 3], 2)?);
            let (bias, scale) = (tensor(&[12], 3)?.reshape([12, 1, 1])?, tensor(&[2, 1, 1, 7], 4)?);
            let case = Case { n: 2, groups: 2, channels: [4, 6], axes: vec![[6, 3, 1, 1, 1, 1], [7, 3, 1, 1, 1, 1]] };
            let plain = execute(&Op::Conv(case.conv()), &[&x, &w])?.remove(0);
            let epilogue = build(|[y, bias, scale]| (y + bias).max(0.0) * scale);
            let op = Op::Conv(Conv { epilogue, ..case.conv() });
            let found = execute(&op, &[&x, &w, &bias, &scale])?.remove(0);
            let right = plain.add(&bias)?.relu()?.mul(&scale)?;
            assert_eq!(found.cast(DType::F64)?.to_vec::<f64>()?, right.cast(DType::F64)?.to_vec::<f64>()?);
        }
    }
    Ok(())
}
