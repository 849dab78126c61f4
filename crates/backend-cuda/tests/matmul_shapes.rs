//! Matrix products of chosen shapes and layouts by every kernel of the ladder, against sums of small integers: exact.
#![cfg(feature = "emulator")]

use backend_cuda::{Choice, Emulated, Rung, emulated};
use ptx_emulator::{MmaMode, Options, Order};
use tensor_core::expr::build;
use tensor_core::{DType, Device, Result, Tensor};

const LADDER: [Rung; 4] = [Rung::Reduce, Rung::Tile { is_small: false }, Rung::Tile { is_small: true }, Rung::Mma];

/// How an operand's elements lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lie {
    Rows,
    Columns,
    Reversed,
    /// One element in, so that rows begin at odd places.
    Inside,
    /// Every second row and column.
    Spread,
    /// One row, again and again.
    Repeated,
}

const LIES: [Lie; 6] = [Lie::Rows, Lie::Columns, Lie::Reversed, Lie::Inside, Lie::Spread, Lie::Repeated];

fn device(rung: Rung, parts: usize, texts: Option<&str>) -> Device {
    // MATMUL_TEXTS names a folder that takes the kernels' texts, for an assembler to look at.
    let texts = std::env::var_os("MATMUL_TEXTS").filter(|_| texts.is_some()).map(Into::into);
    let options = Options { mma: MmaMode::Hopper, order: Order::Seeded(1), ..Options::default() };
    // Small integers are exact in TF32.
    let tf32 = rung == Rung::Mma;
    emulated(&Emulated { matmul: Some(Choice { rung, parts }), tf32, options, texts, ..Emulated::default() })
}

/// Integers from −2 to 2.
fn integers(dims: &[usize], seed: usize, dtype: DType, device: &Device) -> Result<Tensor> {
    let n: usize = dims.iter().product();
    let values: Vec<f32> = (0..n).map(|i| ((i * 7919 + seed * 104_729) / 13 % 5) as f32 - 2.0).collect();
    let values = if dtype == DType::U8 { values.iter().map(|v| v.abs()).collect() } else { values };
    Tensor::from_vec(values, dims, device)?.cast(dtype)
}

fn operand(
    batch: &[usize],
    [rows, columns]: [usize; 2],
    lie: Lie,
    seed: usize,
    dtype: DType,
    on: &Device,
) -> Result<Tensor> {
    let of = |matrix: [usize; 2]| integers(&[batch, &matrix].concat(), seed, dtype, on);
    match lie {
        Lie::Rows => of([rows, columns]),
        Lie::Columns => of([columns, rows])?.transpose(-1, -2),
        Lie::Reversed => of([rows, columns])?.flip([-1, -2]),
        Lie::Inside => of([rows + 1, columns + 1])?.slice(-1, 1.., 1)?.slice(-2, 1.., 1),
        Lie::Spread => of([2 * rows, 2 * columns])?.slice(-1, .., 2)?.slice(-2, .., 2),
        Lie::Repeated => of([1, columns])?.expand([batch, &[rows, columns]].concat()),
    }
}

fn numbers(x: &Tensor) -> Result<Vec<f64>> {
    x.cast(DType::F64)?.to_vec()
}

/// The product and what it must be.
fn check(lhs: &Tensor, rhs: &Tensor, what: &str) -> Result<()> {
    let found = lhs.matmul(rhs)?;
    let rank = found.rank();
    let (m, n, k) = (found.dims()[rank - 2], found.dims()[rank - 1], lhs.dims()[lhs.rank() - 1]);
    let batch = &found.dims()[..rank - 2];
    let (a, b) = (numbers(&lhs.expand([batch, &[m, k]].concat())?)?, numbers(&rhs.expand([batch, &[k, n]].concat())?)?);
    let found = numbers(&found)?;
    for (i, &found) in found.iter().enumerate() {
        let (matrix, row, column) = (i / (m * n), i / n % m, i % n);
        let term = |r: usize| a[(matrix * m + row) * k + r] * b[(matrix * k + r) * n + column];
        let expected: f64 = (0..k).map(term).sum();
        let expected = if lhs.dtype() == DType::U8 { expected % 256.0 } else { expected };
        assert_eq!(found, expected, "{what}: matrix {matrix} row {row} column {column}");
    }
    Ok(())
}

#[test]
fn sizes_just_past_a_tile() -> Result<()> {
    for rung in LADDER {
        let device = device(rung, 1, Some("sizes"));
        for dtype in [DType::F32, DType::F16, DType::BF16, DType::F64, DType::I32, DType::I64, DType::U8] {
            for [m, n, k] in [[129, 65, 33], [64, 130, 16], [1, 1, 1], [3, 5, 0], [130, 1, 17], [7, 129, 40]] {
                let lhs = operand(&[], [m, k], Lie::Rows, 1, dtype, &device)?;
                let rhs = operand(&[], [k, n], Lie::Rows, 2, dtype, &device)?;
                check(&lhs, &rhs, &format!("{rung:?} {dtype} {m}×{k} · {k}×{n}"))?;
            }
        }
    }
    Ok(())
}

#[test]
fn layouts_of_both_operands() -> Result<()> {
    for rung in LADDER {
        let device = device(rung, 1, Some("layouts"));
        for dtype in [DType::F32, DType::BF16] {
            for (lie_a, lie_b) in LIES.into_iter().flat_map(|a| LIES.map(|b| (a, b))) {
                let lhs = operand(&[], [24, 40], lie_a, 1, dtype, &device)?;
                let rhs = operand(&[], [40, 72], lie_b, 2, dtype, &device)?;
                check(&lhs, &rhs, &format!("{rung:?} {dtype} {lie_a:?} {lie_b:?}"))?;
            }
        }
    }
    Ok(())
}

#[test]
fn matrices_of_a_batch_broadcast() -> Result<()> {
    for (rung, parts) in LADDER.into_iter().flat_map(|rung| [(rung, 1), (rung, 2)]) {
        let device = device(rung, parts, None);
        for dtype in [DType::F32, DType::F16] {
            for (a, b) in [(&[3][..], &[][..]), (&[2, 1], &[1, 3]), (&[], &[2]), (&[2, 3], &[3])] {
                for lie in [Lie::Rows, Lie::Columns] {
                    let lhs = operand(a, [17, 64], lie, 1, dtype, &device)?;
                    let rhs = operand(b, [64, 24], lie, 2, dtype, &device)?;
                    check(&lhs, &rhs, &format!("{rung:?} in {parts} {dtype} batches {a:?} {b:?} {lie:?}"))?;
                }
            }
        }
    }
    Ok(())
}

#[test]
fn sums_in_parts() -> Result<()> {
    for rung in &LADDER[1..] {
        for parts in [2, 7] {
            let device = device(*rung, parts, Some("parts"));
            for dtype in [DType::F32, DType::F16, DType::I32, DType::F64, DType::U8] {
                for k in [1, 33, 96, 200] {
                    let lhs = operand(&[], [20, k], Lie::Rows, 1, dtype, &device)?;
                    let rhs = operand(&[], [k, 10], Lie::Rows, 2, dtype, &device)?;
                    check(&lhs, &rhs, &format!("{rung:?} in {parts} {dtype} K = {k}"))?;
                }
            }
        }
    }
    Ok(())
}

#[test]
fn epilogues_read_their_operands_in_place() -> Result<()> {
    let affine = build(|[y, bias, scale]| (y + bias) * scale);
    let is_more = build(|[y, bias, scale]| y.gt(bias * scale));
    for (rung, parts) in LADDER.into_iter().flat_map(|rung| [(rung, 1), (rung, 3)]) {
        let device = device(rung, parts, Some("epilogues"));
        for dtype in [DType::F32, DType::BF16, DType::F64] {
            let lhs = operand(&[2], [70, 96], Lie::Rows, 1, dtype, &device)?;
            let rhs = operand(&[], [96, 34], Lie::Columns, 2, dtype, &device)?;
            let bias = integers(&[34], 3, dtype, &device)?;
            let scale = integers(&[34, 2, 70], 4, dtype, &device)?.slice(0, ..1, 1)?.permute([1, 2, 0])?;
            let product = lhs.matmul(&rhs)?;
            for epilogue in [&affine, &is_more] {
                let found = lhs.matmul_with(&rhs, epilogue, &[&bias, &scale])?;
                let expected = if std::ptr::eq(epilogue, &affine) {
                    (&product + &bias) * &scale
                } else {
                    product.gt(&(&bias * &scale))?
                };
                assert_eq!(found.dtype(), expected.dtype());
                assert_eq!(numbers(&found)?, numbers(&expected)?, "{rung:?} in {parts} {dtype}");
            }
        }
    }
    Ok(())
}

/// What the shape chooses, up to several tiles and parts.
#[test]
fn the_shape_chooses() -> Result<()> {
    for capability in [(7, 5), (8, 0)] {
        let device = emulated(&Emulated { capability, ..Emulated::default() });
        for (dtype, [m, n, k]) in [
            (DType::F32, [200, 150, 96]),
            (DType::F16, [160, 136, 200]),
            (DType::F32, [32, 10, 1100]),
            (DType::F32, [1, 300, 520]),
        ] {
            let lhs = operand(&[], [m, k], Lie::Rows, 1, dtype, &device)?;
            let rhs = operand(&[], [k, n], Lie::Columns, 2, dtype, &device)?;
            check(&lhs, &rhs, &format!("{capability:?} {dtype} {m}×{k} · {k}×{n}"))?;
        }
    }
    Ok(())
}
