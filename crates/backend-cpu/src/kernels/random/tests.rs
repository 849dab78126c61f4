use tensor_core::op::{Distribution, Random};
use tensor_core::random::{self, Key};
use tensor_core::{DType, Meta, Op, Shape, execute_on};

use crate::device;
use crate::kernels::testing::values;

fn draw(distribution: Distribution, dtype: DType, n: usize, key: Key) -> Vec<f64> {
    let op = Op::Random(Random { distribution, key, meta: Meta::new(Shape::new(&[n]), dtype) });
    let draw = |n_threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().expect("threads start");
        values(&pool.install(|| execute_on(&device(), &op, &[])).expect("runs")[0])
    };
    let (one, two) = (draw(1), draw(2));
    assert!(one == two, "{distribution:?} {dtype} depends on the number of threads");
    one
}

/// Element `i`, straight from the specification.
fn specified(distribution: Distribution, dtype: DType, key: Key, i: usize) -> f64 {
    let per_block = random::per_block(distribution, dtype);
    let block = random::philox(key, (i / per_block) as u64);
    let k = i % per_block;
    let round = |v: f32| match dtype {
        DType::F16 => half::f16::from_f32(v).to_f64(),
        DType::BF16 => half::bf16::from_f32(v).to_f64(),
        _ => v.into(),
    };
    match distribution {
        Distribution::Uniform { low, high } => {
            let below = random::largest_below(low, high, dtype);
            match dtype {
                DType::F64 => (random::uniform_f64([block[2 * k], block[2 * k + 1]]) * (high - low) + low).min(below),
                _ => round((random::uniform_f32(block[k]) * (high - low) as f32 + low as f32).min(below as f32)),
            }
        }
        Distribution::Normal { mean, std } => match dtype {
            DType::F64 => random::normal_f64(block)[k] * std + mean,
            _ => round(random::normal_f32([block[k / 2 * 2], block[k / 2 * 2 + 1]])[k % 2] * std as f32 + mean as f32),
        },
        Distribution::Integer { low, high } => {
            let v = random::integer([block[2 * k], block[2 * k + 1]], low, high);
            match dtype {
                DType::I64 => v as f64,
                DType::I32 => f64::from(v as i32),
                _ => f64::from(v as u8),
            }
        }
        Distribution::Bernoulli { p } => f64::from(u8::from(random::bernoulli(block[k], p))),
    }
}

#[test]
fn numbers_are_those_of_the_specification() {
    let key = Key { seed: 0x1234_5678_9abc_def0, offset: u64::MAX - 100 };
    let integer = Distribution::Integer { low: -3, high: 250 };
    let mut cases =
        vec![(integer, DType::I64), (integer, DType::I32), (Distribution::Integer { low: 0, high: 250 }, DType::U8)];
    for dtype in DType::FLOATS {
        cases.push((Distribution::Uniform { low: -1.5, high: 2.0 }, dtype));
        cases.push((Distribution::Normal { mean: 1.0, std: 3.0 }, dtype));
    }
    cases.extend(DType::ALL.map(|dtype| (Distribution::Bernoulli { p: 0.3 }, dtype)));
    for (distribution, dtype) in cases {
        for n in [0, 1, 7, 515, 20_001] {
            let got = draw(distribution, dtype, n, key);
            let want: Vec<f64> = (0..n).map(|i| specified(distribution, dtype, key, i)).collect();
            assert!(got == want, "{distribution:?} {dtype}, {n} elements");
        }
    }
}

#[test]
fn uniform_numbers_never_reach_their_upper_end() {
    for dtype in DType::FLOATS {
        let got = draw(Distribution::Uniform { low: 1000.0, high: 1001.0 }, dtype, 40_000, Key { seed: 5, offset: 0 });
        assert!(got.iter().all(|v| (1000.0..1001.0).contains(v)), "{dtype}");
    }
}
