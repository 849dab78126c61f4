use smallvec::SmallVec;
use tensor_core::expr::build;
use tensor_core::op::{Conv, ConvInputGrad, ConvWeightGrad, Window};
use tensor_core::{DType, Dims, Expr, Op};

use crate::kernels::testing::{Array, Expected, check, indices, run, tensor, values};

/// One geometry.
#[derive(Clone, Debug)]
struct Case {
    /// N, C, spatial.
    input: Vec<usize>,
    /// C_out, C / groups, kernel.
    weight: Vec<usize>,
    groups: usize,
    window: Window,
}

impl Case {
    fn new(input: &[usize], weight: &[usize]) -> Self {
        let rank = input.len() - 2;
        let all = |n| Dims::from_elem(n, rank);
        let window = Window { stride: all(1), before: all(0), after: all(0), dilation: all(1) };
        Self { input: input.into(), weight: weight.into(), groups: 1, window }
    }

    fn groups(mut self, groups: usize) -> Self {
        self.groups = groups;
        self
    }

    fn stride(mut self, stride: &[usize]) -> Self {
        self.window.stride = stride.into();
        self
    }

    fn padding(mut self, before: &[usize], after: &[usize]) -> Self {
        (self.window.before, self.window.after) = (before.into(), after.into());
        self
    }

    fn dilation(mut self, dilation: &[usize]) -> Self {
        self.window.dilation = dilation.into();
        self
    }

    fn op(&self, epilogue: Expr) -> Conv {
        Conv { window: self.window.clone(), groups: self.groups, epilogue }
    }

    fn output(&self) -> Vec<usize> {
        let spatial = self.window.output("test", &self.input[2..], &self.weight[2..]).expect("a geometry");
        [self.input[0], self.weight[0]].into_iter().chain(spatial).collect()
    }

    /// Calls `f` with the positions in input, weight and output of every product.
    fn products(&self, mut f: impl FnMut(usize, usize, usize)) {
        let at = |shape: &[usize], index: &[usize]| index.iter().zip(shape).fold(0, |at, (i, n)| at * n + i);
        let (output, kernel) = (self.output(), &self.weight[2..]);
        let (n_out, n_in) = (self.weight[0] / self.groups, self.weight[1]);
        let taps: Vec<Vec<usize>> = indices(kernel).collect();
        for out in indices(&output) {
            let group = out[1] / n_out;
            for tap in &taps {
                let place = (0..kernel.len()).map(|i| {
                    let padded = out[2 + i] * self.window.stride[i] + tap[i] * self.window.dilation[i];
                    padded.checked_sub(self.window.before[i]).filter(|&p| p < self.input[2 + i])
                });
                let Some(place) = place.collect::<Option<Vec<usize>>>() else { continue };
                for c in 0..n_in {
                    let x = [&[out[0], group * n_in + c], &place[..]].concat();
                    let w = [&[out[1], c], &tap[..]].concat();
                    f(at(&self.input, &x), at(&self.weight, &w), at(&output, &out));
                }
            }
        }
    }

    /// All three ops against the sums of products.
    fn check(&self, dtypes: &[DType]) {
        let (x, w, g) =
            (Array::sample(&self.input, 1), Array::sample(&self.weight, 2), Array::sample(&self.output(), 3));
        let conv = self.op(Expr::identity());
        let expected = |n: usize, depth: usize, f: &mut dyn FnMut(&mut dyn FnMut(usize, f64))| {
            let mut sums = vec![(0.0, 0.0); n];
            f(&mut |at, product| {
                sums[at].0 += product;
                sums[at].1 += product.abs();
            });
            vec![Expected::within(depth as f64 / 2.0 + 1.0, sums)]
        };
        let depth: usize = self.weight[1..].iter().product();
        check(&Op::Conv(conv.clone()), &[x.clone(), w.clone()], dtypes, |inputs| {
            expected(g.data.len(), depth, &mut |add| {
                self.products(|x, w, y| add(y, inputs[0].data[x] * inputs[1].data[w]));
            })
        });
        let op = ConvInputGrad { conv: conv.clone(), spatial: self.input[2..].into() };
        check(&Op::ConvInputGrad(op), &[g.clone(), w.clone()], dtypes, |inputs| {
            expected(x.data.len(), depth, &mut |add| {
                self.products(|x, w, y| add(x, inputs[0].data[y] * inputs[1].data[w]));
            })
        });
        let op = ConvWeightGrad { conv, kernel: self.weight[2..].into() };
        let depth = g.data.len() / self.weight[0].max(1);
        check(&Op::ConvWeightGrad(op), &[x, g], dtypes, |inputs| {
            expected(w.data.len(), depth, &mut |add| {
                self.products(|x, w, y| add(w, inputs[0].data[x] * inputs[1].data[y]));
            })
        });
    }
}

#[test]
fn geometries_in_one_two_and_three_dimensions() {
    let cases = [
        Case::new(&[2, 3, 7], &[4, 3, 3]),
        Case::new(&[3, 2, 11], &[5, 2, 4]).stride(&[3]).padding(&[2], &[1]).dilation(&[2]),
        Case::new(&[2, 3, 6, 5], &[4, 3, 3, 2]),
        Case::new(&[1, 4, 4, 4], &[2, 4, 3, 3]).padding(&[1, 1], &[1, 1]),
        Case::new(&[2, 3, 9, 8], &[4, 3, 3, 3]).stride(&[2, 2]).padding(&[1, 1], &[1, 1]),
        Case::new(&[2, 3, 9, 8], &[4, 3, 2, 2]).stride(&[3, 3]),
        Case::new(&[2, 2, 10, 9], &[3, 2, 3, 2]).stride(&[2, 1]).padding(&[2, 0], &[1, 3]).dilation(&[1, 3]),
        Case::new(&[2, 4, 5, 5], &[6, 2, 3, 3]).groups(2).padding(&[1, 1], &[1, 1]),
        Case::new(&[2, 5, 6, 6], &[5, 1, 3, 3]).groups(5).stride(&[2, 2]).padding(&[1, 1], &[1, 1]),
        Case::new(&[2, 3, 6, 6], &[6, 1, 3, 3]).groups(3),
        Case::new(&[2, 3, 4, 4], &[5, 3, 1, 1]),
        Case::new(&[2, 3, 4, 5], &[5, 3, 1, 1]).stride(&[2, 3]),
        Case::new(&[2, 2, 4, 5, 4], &[3, 2, 2, 3, 2]).stride(&[1, 2, 1]).padding(&[1, 0, 1], &[0, 1, 1]),
        Case::new(&[2, 3, 1, 1], &[4, 3, 1, 1]),
        Case::new(&[2, 3, 2, 2], &[4, 3, 3, 3]).padding(&[1, 1], &[1, 1]),
        Case::new(&[2, 3, 5, 6], &[4, 3, 2, 2]).padding(&[3, 4], &[2, 5]),
        Case::new(&[2, 3, 5, 6], &[4, 3, 2, 3]).padding(&[3, 4], &[2, 5]).stride(&[2, 3]),
        Case::new(&[0, 3, 5, 5], &[4, 3, 3, 3]),
        Case::new(&[2, 0, 5, 5], &[4, 0, 3, 3]),
        Case::new(&[2, 3, 5, 5], &[0, 3, 3, 3]),
    ];
    for case in cases {
        case.check(&DType::FLOATS);
    }
}

#[test]
fn channels_and_planes_of_many_tiles() {
    let f32 = [DType::F32];
    Case::new(&[5, 20, 12, 12], &[17, 20, 3, 3]).padding(&[1, 1], &[1, 1]).check(&f32);
    Case::new(&[3, 33, 9, 9], &[18, 33, 3, 3]).stride(&[2, 2]).padding(&[1, 1], &[1, 1]).check(&f32);
    Case::new(&[40, 16, 3, 3], &[9, 16, 2, 2]).check(&f32);
    Case::new(&[17, 4, 9, 8], &[16, 2, 4, 3]).groups(2).dilation(&[1, 2]).check(&DType::FLOATS);
    Case::new(&[16, 9, 4, 5, 4], &[10, 9, 2, 3, 3]).check(&f32);
    Case::new(&[2, 1, 30, 40], &[6, 1, 5, 5]).padding(&[2, 2], &[2, 2]).check(&f32);
    Case::new(&[3, 3, 9, 20], &[7, 3, 3, 3]).padding(&[1, 0], &[0, 1]).check(&f32);
    Case::new(&[9, 4, 11, 10], &[8, 2, 3, 3]).groups(2).stride(&[2, 1]).check(&f32);
    Case::new(&[3, 2, 14, 14], &[9, 2, 3, 3]).padding(&[1, 1], &[1, 1]).check(&f32);
    Case::new(&[2, 3, 4, 9, 16], &[10, 3, 3, 3, 3]).padding(&[1, 1, 0], &[1, 1, 0]).check(&f32);
    Case::new(&[1, 34, 8, 8], &[34, 17, 1, 1]).groups(2).check(&f32);
    Case::new(&[1, 2, 900], &[3, 2, 31]).padding(&[15], &[15]).check(&f32);
}

#[test]
fn epilogues_run_on_every_image() {
    let case = Case::new(&[9, 3, 6, 6], &[5, 3, 3, 3]).padding(&[1, 1], &[1, 1]);
    let op = Op::Conv(case.op(build(|[y, bias]| (y + bias).relu())));
    let inputs = [Array::sample(&case.input, 1), Array::sample(&case.weight, 2), Array::sample(&[5, 1, 1], 3)];
    check(&op, &inputs, &DType::FLOATS, |inputs| {
        let mut sums = vec![(0.0, 0.0); case.output().iter().product()];
        case.products(|x, w, y| {
            let product = inputs[0].data[x] * inputs[1].data[w];
            sums[y].0 += product;
            sums[y].1 += product.abs();
        });
        for (i, (y, scale)) in sums.iter_mut().enumerate() {
            *y = (*y + inputs[2].data[i / 36 % 5]).max(0.0);
            *scale += 6.0;
        }
        // 16-bit results are rounded before the epilogue too.
        vec![Expected::within(8192.0, sums)]
    });
}

#[test]
fn a_channel_that_is_not_a_number_leaves_the_others_alone() {
    for n_out in [3, 20] {
        let (mut x, g) = (Array::noise(&[2, 3, 6, 7], 1), Array::noise(&[2, n_out, 4, 5], 2));
        x.data[42..84].fill(f64::NAN);
        let case = Case::new(&x.shape, &[n_out, 3, 3, 3]);
        let op = ConvWeightGrad { conv: case.op(Expr::identity()), kernel: SmallVec::from_slice(&[3, 3]) };
        let w = run(&Op::ConvWeightGrad(op), &[&tensor(&x, DType::F32, 0), &tensor(&g, DType::F32, 0)]);
        for (i, v) in values(&w.expect("a gradient")[0]).into_iter().enumerate() {
            assert_eq!(v.is_nan(), i / 9 % 3 == 1, "{n_out} output channels: element {i} is {v}");
        }
    }
}

#[test]
fn transposed_kernel() {
    // Input 1 to 18, kernel 1 to 16 with its channel axes exchanged as a view.
    let x = tensor(&Array::new(&[1, 2, 3, 3], (1..=18).map(f64::from).collect()), DType::F32, 0);
    let w = tensor(&Array::new(&[2, 2, 2, 2], (1..=16).map(f64::from).collect()), DType::F32, 0);
    let w = w.permute([1, 0, 2, 3]).expect("a view");
    let case = Case::new(&[1, 2, 3, 3], &[2, 2, 2, 2]);
    let conv = case.op(Expr::identity());
    let y = run(&Op::Conv(conv.clone()), &[&x, &w]).expect("a convolution");
    let (xs, ws) = (values(&x), values(&w));
    let mut expected = [vec![0.0; 8], vec![0.0; 18], vec![0.0; 16]];
    case.products(|x, w, y| expected[0][y] += xs[x] * ws[w]);
    assert_eq!(values(&y[0]), expected[0]);
    // The gradients of Σy².
    let g: Vec<f64> = expected[0].iter().map(|y| 2.0 * y).collect();
    case.products(|x, w, y| {
        expected[1][x] += g[y] * ws[w];
        expected[2][w] += g[y] * xs[x];
    });
    let g = tensor(&Array::new(&[1, 2, 2, 2], g), DType::F32, 0);
    let op = ConvInputGrad { conv: conv.clone(), spatial: SmallVec::from_slice(&[3, 3]) };
    assert_eq!(values(&run(&Op::ConvInputGrad(op), &[&g, &w]).expect("a gradient")[0]), expected[1]);
    let op = ConvWeightGrad { conv, kernel: SmallVec::from_slice(&[2, 2]) };
    assert_eq!(values(&run(&Op::ConvWeightGrad(op), &[&x, &g]).expect("a gradient")[0]), expected[2]);
}

#[test]
fn large_pointwise() {
    for (n_in, n_out) in [(104, 208), (440, 440)] {
        let (x, w) = (Array::noise(&[1, n_in, 20, 20], 1), Array::noise(&[n_out, n_in, 1, 1], 2));
        let case = Case::new(&x.shape, &w.shape);
        let y = run(&Op::Conv(case.op(Expr::identity())), &[&tensor(&x, DType::F32, 0), &tensor(&w, DType::F32, 0)]);
        let y = values(&y.expect("a convolution")[0]);
        for i in (0..y.len()).step_by(97) {
            let (o, at) = (i / 400, i % 400);
            let expected: f64 = (0..n_in).map(|c| x.data[c * 400 + at] * w.data[o * n_in + c]).sum();
            assert!((y[i] - expected).abs() < 1e-4, "{n_in}: element {i} is {}, not {expected}", y[i]);
        }
    }
}
