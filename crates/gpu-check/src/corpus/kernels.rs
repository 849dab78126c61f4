//! Kernels that compilers wrote: the texts that the emulator's own tests run.

use backend_cuda::driver::Driver;
use half::{bf16, f16};
use tensor_core::Result;

use super::{Arg, Case, Count, Numbers};
use crate::device::Subject;
use crate::record::Record;

macro_rules! ptx {
    ($name:literal) => {
        include_str!(concat!("../../../ptx-emulator/tests/all/corpus/", $name, ".ptx"))
    };
}

const CLANG: &str = ptx!("clang");

/// How far a number may be from the emulator's, as a part of its size or of 1; 0 asks for its bits.
struct Judged {
    case: Case,
    size: usize,
    tolerance: f64,
}

fn kernel(compiler: &str, text: &str, entry: &'static str, launch: ([u32; 3], u32, u32), args: Vec<Arg>) -> Case {
    let (grid, threads, shared_bytes) = launch;
    let name = format!("{compiler}: {entry}");
    Case { name, text: text.into(), entry, target: 80, grid, block: [threads, 1, 1], shared_bytes, args }
}

fn input<T: bytemuck::NoUninit>(values: &[T]) -> Arg {
    Arg::Input(bytemuck::cast_slice(values).to_vec())
}

fn output(n_bytes: usize) -> Arg {
    Arg::Result(vec![0; n_bytes])
}

fn number<T: bytemuck::NoUninit>(x: T) -> Arg {
    Arg::Value(bytemuck::bytes_of(&x).to_vec())
}

/// Triton's kernels take two pointers more, for scratch memory that these do not use.
fn scratch(mut args: Vec<Arg>) -> Vec<Arg> {
    args.extend([0u64, 0].map(number));
    args
}

fn exact(case: Case) -> Judged {
    Judged { case, size: 4, tolerance: 0.0 }
}

fn near(case: Case, tolerance: f64) -> Judged {
    Judged { case, size: 4, tolerance }
}

/// What clang wrote.
fn clang() -> Vec<Judged> {
    let of = |entry, launch, args| kernel("clang", CLANG, entry, launch, args);
    let units = Numbers::units;
    let x = units(3, 5000);
    let integers: Vec<i32> = (0..200).map(|i| i * 7 % 13 - 6).collect();
    let bytes: Vec<u8> = (0..3000_u32).map(|i| (i * i % 251) as u8).collect();
    let y = Arg::Result(bytemuck::cast_slice(&units(2, 1000)).to_vec());
    let (rows, cols) = (3usize, 200usize);
    let (table, gain, bias) = (units(5, rows * cols), units(6, cols), units(7, cols));
    let (m, n, k) = (20, 36, 50);
    let (a, b) = (units(8, m * k), units(9, k * n));
    let doubles: Vec<f64> = (0..100).map(|i| f64::from(i) * 0.01 + 0.1).collect();
    let kind: Vec<i32> = (0..100).map(|i| i % 6).collect();
    let transpose =
        of("transpose", ([3, 2, 1], 32, 0), vec![input(&units(4, 3500)), output(14000), number(50), number(70)]);
    let product = vec![input(&a), input(&b), output(4 * m * n), number(m as i32), number(n as i32), number(k as i32)];
    let matmul = of("matmul", ([3, 2, 1], 16, 0), product);
    vec![
        near(of("saxpy", ([8, 1, 1], 128, 0), vec![number(1000), number(2.5f32), input(&units(1, 1000)), y]), 1e-6),
        near(of("block_sum", ([7, 1, 1], 256, 0), vec![input(&x), output(28), number(5000)]), 1e-5),
        near(of("grid_sum", ([9, 1, 1], 256, 0), vec![input(&x), output(36), output(4), number(5000)]), 1e-5),
        exact(of("block_scan", ([1; 3], 256, 0), vec![input(&integers), output(800), number(200)])),
        exact(Case { block: [32, 8, 1], ..transpose }),
        exact(of("histogram", ([4, 1, 1], 128, 0), vec![input(&bytes), output(1024), number(3000)])),
        near(
            of("softmax", ([3, 1, 1], 32, 0), vec![input(&table), output(4 * rows * cols), number(cols as i32)]),
            1e-5,
        ),
        near(
            of(
                "layer_norm",
                ([3, 1, 1], 32, 0),
                vec![input(&table), input(&gain), input(&bias), output(4 * rows * cols), number(cols as i32)],
            ),
            1e-4,
        ),
        near(Case { block: [16, 16, 1], ..matmul }, 1e-5),
        Judged {
            case: of("polynomial", ([2, 1, 1], 64, 0), vec![input(&doubles), output(800), input(&kind), number(100)]),
            size: 8,
            tolerance: 1e-13,
        },
    ]
}

/// What Triton wrote.
fn triton() -> Vec<Judged> {
    let of = |text, entry, launch, args| kernel("triton", text, entry, launch, scratch(args));
    let units = Numbers::units;
    let integers: Vec<i32> = (0..200).map(|i| i * 5 % 17 - 8).collect();
    let counted: Vec<i32> = (0..1000).map(|i| i * i % 61).collect();
    let (rows, cols) = (3usize, 200usize);
    let (table, gain, bias) = (units(5, rows * cols), units(6, cols), units(7, cols));
    let norm = vec![input(&table), input(&gain), input(&bias), output(2400), number(cols as i32), number(1e-5f32)];
    let (m, n, k) = (48usize, 64usize, 80usize);
    let (a, b) = (units(13, m * k), units(14, k * n));
    let product = |text, shared, a: Arg, b: Arg| {
        let args = vec![a, b, output(4 * m * n), number(m as i32), number(n as i32), number(k as i32)];
        of(text, "matmul", ([2, 2, 1], 128, shared), args)
    };
    let half = |x: &[f32]| input(&x.iter().map(|&x| f16::from_f32(x)).collect::<Vec<_>>());
    let brain = |x: &[f32]| input(&x.iter().map(|&x| bf16::from_f32(x)).collect::<Vec<_>>());
    let (length, width) = (48usize, 32usize);
    let attend = [15, 16, 17].map(|seed| half(&units(seed, length * width)));
    let attend =
        attend.into_iter().chain([output(4 * length * width), number(length as i32), number(0.3f32)]).collect();
    vec![
        exact(of(ptx!("triton_scan"), "scan", ([1; 3], 128, 16), vec![input(&integers), output(800), number(200)])),
        exact(of(
            ptx!("triton_transpose"),
            "transpose",
            ([2, 3, 1], 128, 4096),
            vec![input(&units(12, 48 * 80)), output(4 * 48 * 80), number(48), number(80)],
        )),
        exact(of(
            ptx!("triton_histogram"),
            "histogram",
            ([4, 1, 1], 128, 2048),
            vec![input(&counted), output(256), number(1000)],
        )),
        near(
            of(
                ptx!("triton_softmax"),
                "softmax",
                ([3, 1, 1], 128, 16),
                vec![input(&table), output(2400), number(cols as i32)],
            ),
            1e-5,
        ),
        near(of(ptx!("triton_layer_norm"), "layer_norm", ([3, 1, 1], 128, 16), norm), 1e-4),
        near(product(ptx!("triton_matmul_f16"), 8192, half(&a), half(&b)), 1e-4),
        near(product(ptx!("triton_matmul_bf16"), 8192, brain(&a), brain(&b)), 1e-4),
        near(product(ptx!("triton_matmul_tf32"), 16384, input(&a), input(&b)), 2e-2),
        near(of(ptx!("triton_attention"), "attention", ([2, 1, 1], 128, 10240), attend), 2e-3),
    ]
}

pub(super) fn run(subject: &Subject, reference: &dyn Driver, record: &mut Record) -> Result<()> {
    for (name, cases) in [("kernels by clang", clang()), ("kernels by Triton", triton())] {
        let mut count = Count::default();
        for Judged { case, size, tolerance } in cases {
            let float = |bytes: &[u8]| match bytes.len() {
                8 => f64::from_bits(super::bits(bytes)),
                _ => f64::from(f32::from_bits(super::bits(bytes) as u32)),
            };
            let judge = |_: usize, found: &[u8], expected: &[u8]| {
                let (found, expected) = (float(found), float(expected));
                let is_near = (found - expected).abs() <= tolerance * expected.abs().max(1.0);
                (tolerance == 0.0 || !is_near).then(|| format!("{found} and {expected}, tolerance {tolerance}"))
            };
            count.compare(subject, reference, record, &case, size, judge)?;
        }
        count.row(name, record);
    }
    Ok(())
}
