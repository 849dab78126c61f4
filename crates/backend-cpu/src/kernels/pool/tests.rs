use tensor_core::op::{AvgPoolGrad, Pool, PoolKind, Window};
use tensor_core::{DType, Dims, Op};

use crate::kernels::testing::{Array, Expected, check, indices, run, tensor, values};

/// Input, kernel, stride, padding before and after, dilation.
type Geometry =
    (&'static [usize], &'static [usize], &'static [usize], &'static [usize], &'static [usize], &'static [usize]);

const GEOMETRIES: [Geometry; 9] = [
    (&[2, 3, 4, 6], &[2, 2], &[2, 2], &[0, 0], &[0, 0], &[1, 1]),
    (&[2, 3, 5, 7], &[2, 2], &[2, 2], &[0, 0], &[0, 0], &[1, 1]),
    (&[2, 2, 6, 6], &[3, 3], &[2, 2], &[1, 1], &[1, 1], &[1, 1]),
    (&[1, 2, 7, 5], &[3, 2], &[1, 3], &[1, 0], &[0, 1], &[2, 1]),
    (&[2, 3, 9], &[3], &[3], &[0], &[0], &[1]),
    (&[2, 2, 4, 4, 4], &[2, 2, 2], &[2, 2, 2], &[0, 0, 0], &[0, 0, 0], &[1, 1, 1]),
    (&[1, 1, 1, 1], &[1, 1], &[1, 1], &[0, 0], &[0, 0], &[1, 1]),
    (&[40, 6, 28, 28], &[2, 2], &[2, 2], &[0, 0], &[0, 0], &[1, 1]),
    (&[0, 3, 4, 4], &[2, 2], &[2, 2], &[0, 0], &[0, 0], &[1, 1]),
];

fn pool(kind: PoolKind, (_, kernel, stride, before, after, dilation): Geometry) -> Pool {
    let window =
        Window { stride: stride.into(), before: before.into(), after: after.into(), dilation: dilation.into() };
    Pool { kind, kernel: Dims::from_slice(kernel), window }
}

/// For every output its plane and the positions in the plane that its window covers.
fn windows(pool: &Pool, input: &[usize]) -> Vec<(usize, Vec<usize>)> {
    let output = pool.window.output("test", &input[2..], &pool.kernel).expect("a geometry");
    let output = [&input[..2], &output[..]].concat();
    indices(&output)
        .map(|out| {
            let taps = indices(&pool.kernel).filter_map(|tap| {
                (0..tap.len()).try_fold(0, |at, i| {
                    let padded = out[2 + i] * pool.window.stride[i] + tap[i] * pool.window.dilation[i];
                    let place = padded.checked_sub(pool.window.before[i]).filter(|&p| p < input[2 + i])?;
                    Some(at * input[2 + i] + place)
                })
            });
            (out[0] * input[1] + out[1], taps.collect())
        })
        .collect()
}

#[test]
fn maxima_with_the_first_position() {
    for geometry in GEOMETRIES {
        let op = pool(PoolKind::Max, geometry);
        let plane: usize = geometry.0[2..].iter().product();
        // Few values, so that there are ties; all negative, so that padding would win.
        let mut x = Array::sample(geometry.0, 1);
        x.data.iter_mut().for_each(|v| *v = -1.0 - v.rem_euclid(3.0));
        for (dtypes, shift) in
            [(&[DType::F32, DType::F64, DType::BF16, DType::F16, DType::I32][..], 0.0), (&[DType::U8], 9.0)]
        {
            let x = Array::new(&x.shape, x.data.iter().map(|v| v + shift).collect());
            check(&Op::Pool(op.clone()), &[x], dtypes, |x| {
                let best = windows(&op, &x[0].shape).into_iter().map(|(p, taps)| {
                    let x = &x[0].data[p * plane..];
                    let first = taps.iter().fold(taps[0], |best, &tap| if x[tap] > x[best] { tap } else { best });
                    (x[first], first as f64)
                });
                let (values, positions) = best.unzip();
                vec![Expected::exact(values), Expected::exact(positions)]
            });
        }
    }
}

#[test]
fn nan_is_the_maximum() {
    for (at, shape) in
        [(0, [1, 1, 4, 4]), (5, [1, 1, 4, 4]), (7, [1, 1, 5, 5]), (23, [1, 1, 4, 22]), (70, [1, 1, 4, 22])]
    {
        let n: usize = shape.iter().product();
        let mut x: Vec<f64> = (0..n).map(|i| i as f64).collect();
        x[at] = f64::NAN;
        let op = Op::Pool(pool(PoolKind::Max, GEOMETRIES[0]));
        let y = run(&op, &[&tensor(&Array::new(&shape, x), DType::F32, 0)]).expect("a pool");
        let (width, out_width) = (shape[3], shape[3] / 2);
        let window = at / width / 2 * out_width + at % width / 2;
        assert!(values(&y[0])[window].is_nan());
        assert_eq!(values(&y[1])[window], at as f64);
        assert_eq!(values(&y[0]).iter().filter(|v| v.is_nan()).count(), 1);
    }
}

#[test]
fn averages_and_their_adjoint() {
    for geometry in GEOMETRIES {
        for count_padding in [true, false] {
            let op = pool(PoolKind::Avg { count_padding }, geometry);
            let (input, plane) = (geometry.0, geometry.0[2..].iter().product::<usize>());
            let all = windows(&op, input);
            let divisor = |taps: &[usize]| if count_padding { op.kernel.iter().product() } else { taps.len() } as f64;
            check(&Op::Pool(op.clone()), &[Array::sample(input, 1)], &DType::FLOATS, |x| {
                let means = all.iter().map(|(p, taps)| {
                    let sum: f64 = taps.iter().map(|tap| x[0].data[p * plane + tap]).sum();
                    (sum / divisor(taps), 6.0)
                });
                vec![Expected::within(2.0, means.collect())]
            });
            let spatial = op.window.output("test", &input[2..], &op.kernel).expect("a geometry");
            let g = Array::sample(&[&input[..2], &spatial[..]].concat(), 2);
            let grad = AvgPoolGrad { pool: op.clone(), spatial: input[2..].into() };
            check(&Op::AvgPoolGrad(grad), &[g], &DType::FLOATS, |g| {
                let mut sums = vec![(0.0, 0.0); input.iter().product()];
                for ((p, taps), g) in all.iter().zip(&g[0].data) {
                    for tap in taps {
                        sums[p * plane + tap].0 += g / divisor(taps);
                        sums[p * plane + tap].1 += g.abs();
                    }
                }
                vec![Expected::within(2.0, sums)]
            });
        }
    }
}
