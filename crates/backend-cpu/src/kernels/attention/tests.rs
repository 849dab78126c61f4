use tensor_core::op::{Attention, AttentionGrad};
use tensor_core::{DType, Op, Tensor};

use crate::kernels::testing::{Array, Expected, check, indices, run, tensor, values};

/// One matrix' sizes and what it may attend to.
#[derive(Clone, Copy)]
struct Sizes {
    t: usize,
    s: usize,
    d: usize,
    e: usize,
    causal: bool,
}

const SCALE: f64 = 0.7;

impl Sizes {
    /// Query, key, value and a mask that is the same for all rows but hides no row's first key.
    fn inputs(&self, batch: &[usize], masked: bool) -> Vec<Array> {
        let of = |a: usize, b: usize, seed: usize| Array::noise(&[batch, &[a, b]].concat(), seed);
        let mut inputs = vec![of(self.t, self.d, 1), of(self.s, self.d, 2), of(self.s, self.e, 3)];
        if masked {
            let shown = (0..self.t * self.s).map(|i| f64::from(i % self.s == 0 || i * i % 7 < 4)).collect();
            inputs.push(Array::new(&[self.t, self.s], shown).of(DType::Bool));
        }
        inputs
    }

    fn may_attend(&self, row: usize, key: usize, mask: Option<&Array>) -> bool {
        let is_past = !self.causal || key + self.t <= row + self.s;
        is_past && mask.is_none_or(|mask| mask.get(&[row, key]) != 0.0)
    }

    /// The weights of every row, and ln Σ exp; `inputs` from query to mask.
    fn weights(&self, q: &Array, k: &Array, mask: Option<&Array>) -> (Vec<f64>, Vec<f64>) {
        let n = q.data.len() / (self.t * self.d);
        let (mut weights, mut lses) = (Vec::new(), Vec::new());
        for (i, row) in (0..n).flat_map(|i| (0..self.t).map(move |row| (i, row))) {
            let score = |key: usize| -> f64 {
                let of = |x: &Array, at: usize, r: usize| x.data[(i * x.data.len() / n) + at * self.d + r];
                SCALE * (0..self.d).map(|r| of(q, row, r) * of(k, key, r)).sum::<f64>()
            };
            let scores: Vec<f64> = (0..self.s)
                .map(|key| if self.may_attend(row, key, mask) { score(key) } else { f64::NEG_INFINITY })
                .collect();
            let sum: f64 = scores.iter().map(|s| s.exp()).sum();
            weights.extend(scores.iter().map(|s| s.exp() / sum));
            lses.push(sum.ln());
        }
        (weights, lses)
    }

    fn forward(&self, inputs: &[Array]) -> Vec<Expected> {
        let (q, k, v) = (&inputs[0], &inputs[1], &inputs[2]);
        let (weights, lses) = self.weights(q, k, inputs.get(3));
        let shape = [&q.shape[..q.shape.len() - 1], &[self.e]].concat();
        let mixed = indices(&shape).enumerate().map(|(at, index)| {
            let (row, column) = (at / self.e, index[index.len() - 1]);
            let first = row / self.t * self.s;
            let terms = (0..self.s).map(|key| weights[row * self.s + key] * v.data[(first + key) * self.e + column]);
            terms.fold((0.0, 0.0), |(sum, size), x| (sum + x, size + x.abs()))
        });
        let lses = lses.into_iter().map(|lse| (lse, 1.0 + lse.abs() + self.d as f64));
        vec![Expected::within(40.0 + self.d as f64, mixed.collect()), Expected::within(4.0, lses.collect())]
    }
}

#[test]
fn every_layout_at_the_edges_of_blocks() {
    for (t, s, d, e) in
        [(1, 1, 1, 1), (3, 5, 4, 2), (64, 64, 8, 8), (65, 63, 3, 17), (63, 129, 16, 5), (2, 257, 33, 16)]
    {
        for causal in [false, true].into_iter().filter(|causal| !causal || t <= s) {
            let sizes = Sizes { t, s, d, e, causal };
            let op = Op::Attention(Attention { scale: SCALE, causal });
            for masked in [false, true] {
                check(&op, &sizes.inputs(&[2], masked), &DType::FLOATS, |inputs| sizes.forward(inputs));
            }
        }
    }
}

/// Gradients in f64 from the formulas: P·(g·vᵀ − delta) and its products.
fn gradients(sizes: &Sizes, inputs: &[Array]) -> Vec<Expected> {
    let Sizes { t, s, d, e, .. } = *sizes;
    let [q, k, v, lse, g, delta] = [0, 1, 2, 3, 4, 5].map(|i| &inputs[i].data);
    let n = q.len() / (t * d);
    let zeros = |len: usize| vec![(0.0, 0.0); len];
    let (mut dq, mut dk, mut dv) = (zeros(n * t * d), zeros(n * s * d), zeros(n * s * e));
    let add = |to: &mut (f64, f64), x: f64, size: f64| *to = (to.0 + x, to.1 + size);
    for (i, row, key) in indices(&[n, t, s]).map(|index| (index[0], index[1], index[2])) {
        if !sizes.may_attend(row, key, inputs.get(6)) {
            continue;
        }
        let (r, c) = (i * t + row, i * s + key);
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        let score = SCALE * dot(&q[r * d..][..d], &k[c * d..][..d]);
        let weight = (score - lse[r]).exp();
        let by_weight = dot(&g[r * e..][..e], &v[c * e..][..e]);
        let (slope, size) = (weight * (by_weight - delta[r]), weight * (e as f64 + delta[r].abs()));
        for j in 0..d {
            add(&mut dq[r * d + j], SCALE * slope * k[c * d + j], size);
            add(&mut dk[c * d + j], SCALE * slope * q[r * d + j], size);
        }
        for j in 0..e {
            add(&mut dv[c * e + j], weight * g[r * e + j], weight);
        }
    }
    let slack = 40.0 + 2.0 * d as f64;
    [dq, dk, dv].into_iter().map(|values| Expected::within(slack, values)).collect()
}

#[test]
fn gradients_at_the_edges_of_blocks() {
    for (t, s, d, e) in [(1, 1, 1, 1), (3, 5, 4, 2), (65, 63, 3, 17), (63, 129, 16, 5)] {
        for (causal, masked) in [(false, false), (true, false), (false, true), (true, true)] {
            let sizes = Sizes { t, s, d, e, causal };
            let mut inputs = sizes.inputs(&[1], masked);
            let mask = inputs.split_off(3);
            // Any lse and delta will do: they are inputs of their own.
            let lse = Array::new(&[1, t], (0..t).map(|i| 2.0 + (i as f64).sin()).collect());
            inputs.extend([lse, Array::noise(&[1, t, e], 4), Array::noise(&[1, t], 5)]);
            inputs.extend(mask);
            let op = Op::AttentionGrad(AttentionGrad { scale: SCALE, causal });
            check(&op, &inputs, &[DType::F64, DType::F32], |inputs| gradients(&sizes, inputs));
        }
    }
}

/// With one thread a matrix is passed over once; with more threads than matrices, blocks are spread: [`run`] compares.
#[test]
fn spread_blocks_have_the_same_bits() {
    let sizes = Sizes { t: 200, s: 333, d: 32, e: 40, causal: true };
    let of = |array: &Array| tensor(array, DType::F32, 0);
    let mut inputs: Vec<Tensor> = sizes.inputs(&[1], false).iter().map(of).collect();
    let lse = Array::new(&[1, 200], vec![3.0; 200]);
    inputs.extend([lse, Array::noise(&[1, 200, 40], 4), Array::noise(&[1, 200], 5)].iter().map(of));
    let op = Op::AttentionGrad(AttentionGrad { scale: SCALE, causal: true });
    let outputs = run(&op, &inputs.iter().collect::<Vec<_>>()).expect("gradients");
    assert!(outputs.iter().all(|x| values(x).iter().any(|&v| v != 0.0)));
}

#[test]
fn a_row_that_may_attend_to_nothing() {
    let of = |shape: &[usize], seed: usize| tensor(&Array::noise(shape, seed), DType::F32, 0);
    let (q, k, v) = (of(&[3, 4], 1), of(&[2, 4], 2), of(&[2, 5], 3));
    // Of three rows and two keys, the first row comes before every key.
    let outputs = run(&Op::Attention(Attention { scale: 1.0, causal: true }), &[&q, &k, &v]).expect("attention");
    let (mixed, lse) = (values(&outputs[0]), values(&outputs[1]));
    assert!(mixed[..5].iter().all(|v| v.is_nan()) && mixed[5..].iter().all(|v| v.is_finite()));
    assert!(lse[0] == f64::NEG_INFINITY && lse[1..].iter().all(|v| v.is_finite()));
    // It has no part in gradients, though its delta is NaN.
    let (g, delta) = (of(&[3, 5], 4), tensor(&Array::new(&[3], vec![f64::NAN, 0.1, 0.2]), DType::F32, 0));
    let op = Op::AttentionGrad(AttentionGrad { scale: 1.0, causal: true });
    let gradients = run(&op, &[&q, &k, &v, &outputs[1], &g, &delta]).expect("gradients");
    assert!(gradients.iter().all(|x| values(x).iter().all(|v| v.is_finite())));
    assert!(values(&gradients[0])[..4].iter().all(|&v| v == 0.0));
}

#[test]
fn what_is_not_a_number_stays_so() {
    for at in 0..3 {
        let mut arrays = [Array::noise(&[2, 4], 1), Array::noise(&[70, 4], 2), Array::noise(&[70, 5], 3)];
        arrays[at].data[0] = f64::NAN;
        let inputs = arrays.map(|array| tensor(&array, DType::F32, 0));
        let outputs = run(&Op::Attention(Attention { scale: 1.0, causal: false }), &inputs.iter().collect::<Vec<_>>());
        let mixed = values(&outputs.expect("attention")[0]);
        assert!(mixed[0].is_nan(), "input {at}");
    }
}
