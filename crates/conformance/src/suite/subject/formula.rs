//! Functions of elements that take numbers, and formulas of the user's own: written out, and built at random.

use tensor_core::{DType, Number, Operand, Result, Sym, Tensor, zip, zip_n};

use super::{MANY, is_rare, number, subject, with_argument};
use crate::suite::case::{Call, Subject};
use crate::suite::draw::Draw;
use crate::suite::input::Input;

type Parametrised = fn(&Tensor, f64) -> Result<Tensor>;
type One = fn(Sym) -> Sym;
type Two = fn(Sym, Sym) -> Sym;

const PARAMETRISED: &[(&str, Parametrised)] = methods_with!(leaky_relu, elu, celu);

/// Formulas of one input; integers have the first four.
const ONE: &[One] = &[
    |x| x * x - x,
    |x| (x + 3).max(x * 2).min(100),
    |x| x.lt(2).select(x + x, 7),
    |x| x % 3 + x / 2,
    |x| x * x.sigmoid(),
    |x| (x * 0.5).tanh() + x.sin() * x.cos(),
    |x| x.gt(0).select(x.ln_1p(), x.exp_m1()),
    |x| (x.square() + 1).sqrt().recip(),
    |x| (-x.abs()).exp().ln_1p() + x.max(0),
    |x| x.cast(DType::F16).cast(DType::F32),
];

/// Formulas of two inputs; integers have the first three.
const TWO: &[Two] = &[
    |x, y| x * y + x,
    |x, y| x.lt(y).select(y - x, x * 2),
    |x, y| x.max(y) % 5,
    |x, y| x * y.sigmoid(),
    |x, y| (x.square() + y.square() + 0.1).rsqrt(),
    |x, y| (x - y).tanh() * y.exp(),
    |x, y| x.erf() / (1.5 + y.cos()),
];

/// Some of the formulas that the dtype has.
fn formula<T: Copy>(draw: &mut Draw<'_>, all: &[T], n_for_integers: usize, dtype: DType) -> (usize, T) {
    let i = draw.below(if dtype.is_float() { all.len() } else { n_for_integers });
    (i, all[i])
}

/// A shape; once in a while with [`MANY`] elements.
fn shape(draw: &mut Draw<'_>) -> Vec<usize> {
    if is_rare(draw, 80) { vec![MANY] } else { draw.shape() }
}

/// One step of a random formula: which function, and which values before it.
type Step = (usize, usize, usize, usize);

/// Functions that any numbers have, smooth or with kinks that are marked by the reference; the last are for floats.
const STEPS: &[fn(Sym, Sym, Sym) -> Sym] = &[
    |a, b, _| a + b,
    |a, b, _| a * b,
    |a, b, _| a - b,
    |a, b, _| a.max(b),
    |a, b, _| a.min(b),
    |a, b, c| a.lt(b).select(b, c),
    |a, b, c| a.le(b).and(b.ne(c)).select(a, c),
    |a, _, _| a.abs(),
    |a, _, _| -a,
    |a, _, _| a.tanh(),
    |a, _, _| a.sin(),
    |a, _, _| a.cos(),
    |a, b, _| a.sigmoid() * b,
    |a, _, _| (a * 0.25).exp(),
    |a, b, _| a / (b.abs() + 1),
    |a, _, _| (a.abs() + 0.5).ln(),
    |a, _, _| (a.square() + 0.5).sqrt(),
    |a, _, _| a.erf(),
    |a, _, _| a.softplus(),
];
/// How many of them integers have; u8 lacks the last of these.
const N_INTEGER_STEPS: usize = 9;

/// A random formula over `n_inputs` inputs.
fn steps(draw: &mut Draw<'_>, n_inputs: usize, dtype: DType) -> Vec<Step> {
    let n_functions = if dtype.is_float() { STEPS.len() } else { N_INTEGER_STEPS - 1 };
    let value = |draw: &mut Draw<'_>, i: usize| draw.below(n_inputs + i);
    let n = draw.between(1, 5);
    (0..n).map(|i| (draw.below(n_functions), value(draw, i), value(draw, i), value(draw, i))).collect()
}

fn built(steps: &[Step], inputs: &[Sym]) -> Sym {
    let mut values = inputs.to_vec();
    for &(function, a, b, c) in steps {
        values.push(STEPS[function](values[a], values[b], values[c]));
    }
    values[values.len() - 1]
}

/// Numbers and tensors that `select` takes.
fn operand<'a>(number: Option<Number>, tensor: Option<&'a Tensor>) -> Operand<'a> {
    number.map_or_else(|| tensor.map_or(Operand::Number(Number::Int(0)), Operand::from), Operand::from)
}

pub(super) fn subjects() -> Vec<Subject> {
    let parameter = |draw: &mut Draw<'_>| {
        let (dims, number) = (draw.shape(), draw.pick(&[1.0, 0.01, 0.5, 2.0]));
        (dims, number, format!("{number}"))
    };
    let parametrised = PARAMETRISED.iter().map(|&(name, run)| with_argument(name, "number", parameter, run));
    let others = [
        subject("clamp", "clamp(low, high)", |draw, dtype| {
            let (dims, low, high) = (draw.shape(), number(draw, dtype), number(draw, dtype));
            let ordered = low.to_f64() <= high.to_f64() || is_rare(draw, 8);
            let (low, high) = if ordered { (low, high) } else { (high, low) };
            Call::new(format!("{low} to {high}"), vec![Input::data(&dims)], move |x| x[0].clamp(low, high))
        }),
        subject("cast", "cast(dtype)", |draw, _| {
            let (dims, to) = (shape(draw), draw.pick(&DType::ALL));
            Call::new(format!("to {to}"), vec![Input::data(&dims)], move |x| x[0].cast(to))
        }),
        subject("map", "map(|x| ..)", |draw, dtype| {
            let dims = shape(draw);
            if draw.flag() {
                let steps = steps(draw, 1, dtype);
                let text = format!("steps {steps:?}");
                return Call::new(text, vec![Input::data(&dims)], move |x| x[0].map(|x| built(&steps, &[x])));
            }
            let (i, f) = formula(draw, ONE, 4, dtype);
            Call::new(format!("formula {i}"), vec![Input::data(&dims)], move |x| x[0].map(f))
        }),
        subject("zip", "zip(a, b, |a, b| ..)", |draw, dtype| {
            let dims = shape(draw);
            let inputs = [draw.broadcast(&dims), draw.broadcast(&dims)].map(|dims| Input::data(&dims)).to_vec();
            if draw.flag() {
                let steps = steps(draw, 2, dtype);
                let text = format!("steps {steps:?}");
                return Call::new(text, inputs, move |x| zip(&x[0], &x[1], |a, b| built(&steps, &[a, b])));
            }
            let (i, f) = formula(draw, TWO, 3, dtype);
            Call::new(format!("formula {i}"), inputs, move |x| zip(&x[0], &x[1], f))
        }),
        subject("zip_n", "zip_n([a, b, ..], |[a, b, ..]| ..)", |draw, dtype| {
            let dims = draw.shape();
            let inputs = (0..4).map(|_| Input::data(&draw.broadcast(&dims))).collect();
            let steps = steps(draw, 4, dtype);
            Call::new(format!("steps {steps:?}"), inputs, move |x| {
                zip_n([&x[0], &x[1], &x[2], &x[3]], |inputs| built(&steps, &inputs))
            })
        }),
        subject("select", "select(a, b)", |draw, dtype| {
            let dims = draw.shape();
            let mut inputs = vec![Input::mask(&draw.broadcast(&dims))];
            let mut branch = |draw: &mut Draw<'_>| {
                let number = (draw.below(4) == 3).then(|| number(draw, dtype));
                let place = inputs.len();
                if number.is_none() {
                    inputs.push(Input::data(&draw.broadcast(&dims)));
                }
                (number, place)
            };
            let (a, b) = (branch(draw), branch(draw));
            let text = format!("a {:?}, b {:?}", a.0, b.0);
            Call::new(text, inputs, move |x| x[0].select(operand(a.0, x.get(a.1)), operand(b.0, x.get(b.1))))
        }),
        subject("masked_fill", "masked_fill(mask, value)", |draw, dtype| {
            let (dims, value) = (draw.shape(), number(draw, dtype));
            let mask = if is_rare(draw, 24) { vec![3; 5] } else { draw.broadcast(&dims) };
            let inputs = vec![Input::data(&dims), Input::mask(&mask)];
            Call::new(format!("{value}"), inputs, move |x| x[0].masked_fill(&x[1], value))
        }),
    ];
    parametrised.chain(others).collect()
}
