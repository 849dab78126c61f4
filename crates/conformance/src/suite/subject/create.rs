//! Tensors from nothing: constants, sequences, and random numbers, whose bits agree on every device.

use tensor_core::random::{Stream, with_stream};
use tensor_core::{Result, Tensor};

use super::{number, subject};
use crate::suite::case::{Call, Place, Subject};
use crate::suite::draw::Draw;
use crate::suite::input::Input;

type Shaped = fn(&[usize], Place<'_>) -> Result<Tensor>;

const SHAPED: &[(&str, Shaped)] = &[
    ("zeros", |dims, place| Tensor::zeros(dims, place)),
    ("ones", |dims, place| Tensor::ones(dims, place)),
    ("rand", |dims, place| Tensor::rand(dims, place)),
    ("randn", |dims, place| Tensor::randn(dims, place)),
];

type Like = fn(&Tensor) -> Result<Tensor>;
const LIKE: &[(&str, Like)] = methods!(zeros_like, ones_like);

/// Random tensors by two numbers.
type Random = fn((f64, f64), &[usize], Place<'_>) -> Result<Tensor>;
const RANDOM: &[(&str, &str, Random)] = &[
    ("uniform", "low, high", |(a, b), dims, place| Tensor::uniform(a, b, dims, place)),
    ("normal", "mean, std", |(a, b), dims, place| Tensor::normal(a, b, dims, place)),
    ("randint", "low, high", |(a, b), dims, place| Tensor::randint(10 * a as i64, 100 * b as i64, dims, place)),
    ("bernoulli", "p", |(a, _), dims, place| Tensor::bernoulli((0.3 * a).abs(), dims, place)),
];

/// A call without inputs that draws from a stream of its own.
fn made(text: String, seed: u64, run: impl Fn(Place<'_>) -> Result<Tensor> + Send + Sync + 'static) -> Call {
    Call::many(text, Vec::new(), move |place, _| Ok(vec![with_stream(Stream::new(seed), || run((place.0, place.1)))?]))
}

pub(super) fn subjects() -> Vec<Subject> {
    let shaped = SHAPED.iter().map(|&(name, run)| {
        subject(name, format!("{name}(shape, place)"), move |draw, _| {
            let (dims, seed) = (draw.shape(), draw.below(1000) as u64);
            made(format!("{dims:?}, seed {seed}"), seed, move |place| run(&dims, place))
        })
    });
    let random = RANDOM.iter().map(|&(name, arguments, run)| {
        subject(name, format!("{name}({arguments}, shape, place)"), move |draw, _| {
            let numbers = draw.pick(&[(0.0, 1.0), (-1.0, 2.0), (0.5, 0.75), (-3.0, 0.0), (2.0, 1.0)]);
            let (dims, seed) = (draw.shape(), draw.below(1000) as u64);
            made(format!("{numbers:?}, {dims:?}, seed {seed}"), seed, move |place| run(numbers, &dims, place))
        })
    });
    let like = LIKE.iter().map(|&(name, run)| {
        subject(name, format!("{name}()"), move |draw, _| {
            Call::new("", vec![Input::data(&draw.shape())], move |x| run(&x[0]))
        })
    });
    let others = [
        subject("full", "full(shape, value, place)", |draw, dtype| {
            let (dims, value) = (draw.shape(), number(draw, dtype));
            made(format!("{dims:?} of {value}"), 0, move |place| Tensor::full(&dims[..], value, place))
        }),
        subject("arange", "arange(start, stop, step, place)", |draw, dtype| {
            let step = if draw.flag() { number(draw, dtype) } else { 1.into() };
            let (start, stop) = (draw.pick(&[0i64, 1, -3, 5]), draw.pick(&[5i64, 0, 17, 129, 1025]));
            let text = format!("{start} to {stop} by {step}");
            made(text, 0, move |place| Tensor::arange(start, stop, step, place))
        }),
        subject("linspace", "linspace(start, stop, n, place)", |draw, _| {
            let (start, stop) = draw.pick(&[(0.0, 1.0), (-1.0, 1.0), (3.0, -2.0), (0.1, 0.1)]);
            let n = draw.size(1025);
            made(format!("{start} to {stop}, n {n}"), 0, move |place| Tensor::linspace(start, stop, n, place))
        }),
        subject("eye", "eye(n, place)", |draw: &mut Draw<'_>, _| {
            let n = draw.size(33);
            made(format!("n {n}"), 0, move |place| Tensor::eye(n, place))
        }),
    ];
    shaped.chain(random).chain(like).chain(others).collect()
}
