//! Convolutions.

use tensor_core::{ConvOptions, DType};

use super::{Expect, Given, PublicBug};

pub(super) const BUGS: &[PublicBug] = &[
    PublicBug {
        name: "square-conv",
        report: "candle#3404",
        inputs: || vec![Given::by(&[1, 4, 4, 4], |i| i), Given::by(&[2, 4, 3, 3], |_| 1.0)],
        run: |x| Ok(vec![x[0].conv2d(&x[1], None, &ConvOptions::default().padding(1))?]),
        expect: Expect::Reference,
    },
    PublicBug {
        name: "transposed-kernel-conv",
        report: "candle#3735, candle#3836",
        inputs: || {
            let count =
                |dims: &[usize]| Given::new(dims, DType::F64, (1..=dims.iter().product()).map(|i: usize| i as f64));
            vec![count(&[1, 2, 3, 3]), count(&[2, 2, 2, 2])]
        },
        run: |x| Ok(vec![x[0].conv2d(&x[1].transpose(0, 1)?, None, &ConvOptions::default())?.square()?.sum(..)?]),
        expect: Expect::Reference,
    },
    PublicBug {
        name: "large-pointwise-conv",
        report: "burn#5626",
        inputs: || pointwise(104, 208),
        run: |x| Ok(vec![x[0].conv2d(&x[1], None, &ConvOptions::default())?]),
        expect: Expect::Sums(104, || pointwise_sums(104, 208)),
    },
    PublicBug {
        name: "large-pointwise-conv/440",
        report: "burn#5626",
        inputs: || pointwise(440, 440),
        run: |x| Ok(vec![x[0].conv2d(&x[1], None, &ConvOptions::default())?]),
        expect: Expect::Sums(440, || pointwise_sums(440, 440)),
    },
];

fn pixel(i: f64) -> f64 {
    f64::from((0.01 * i).sin() as f32)
}

fn weight(i: f64) -> f64 {
    f64::from((0.03 * i).cos() as f32)
}

fn pointwise(c_in: usize, c_out: usize) -> Vec<Given> {
    vec![Given::by(&[1, c_in, 20, 20], pixel), Given::by(&[c_out, c_in, 1, 1], weight)]
}

/// Each output channel's plane: Σ weight · input plane, and the terms' sizes.
fn pointwise_sums(c_in: usize, c_out: usize) -> Vec<(f64, f64)> {
    let input: Vec<f64> = (0..c_in * 400).map(|i| pixel(i as f64)).collect();
    let mut planes = vec![(0.0, 0.0); c_out * 400];
    for (o, plane) in planes.chunks_mut(400).enumerate() {
        for (c, input) in input.chunks(400).enumerate() {
            let weight = weight((o * c_in + c) as f64);
            for ((sum, size), x) in plane.iter_mut().zip(input) {
                *sum += weight * x;
                *size += (weight * x).abs();
            }
        }
    }
    planes
}
