//! The functions that the suite calls: each named, with a way to draw calls of it. A family is a file.

use std::sync::OnceLock;

use tensor_core::{DType, Number, Result, Tensor};

use super::case::{Call, Subject};
use super::draw::Draw;
use super::input::Input;

/// Pairs of a name and a call of the method of that name.
macro_rules! methods {
    ($($name:ident),* $(,)?) => { &[$((stringify!($name), |x| x.$name())),*] };
}

/// The same for methods with one argument.
macro_rules! methods_with {
    ($($name:ident),* $(,)?) => { &[$((stringify!($name), |x, argument| x.$name(argument))),*] };
}

mod composite;
mod conv;
mod create;
mod custom;
mod elementwise;
mod formula;
mod index;
mod join;
mod loss;
mod movement;
mod optimizer;
mod order;
mod pool;
mod product;
mod reduce;

/// Every subject.
pub fn all() -> &'static [Subject] {
    static ALL: OnceLock<Vec<Subject>> = OnceLock::new();
    ALL.get_or_init(|| {
        let families = [
            elementwise::subjects(),
            formula::subjects(),
            reduce::subjects(),
            order::subjects(),
            composite::subjects(),
            product::subjects(),
            conv::subjects(),
            pool::subjects(),
            movement::subjects(),
            join::subjects(),
            index::subjects(),
            create::subjects(),
            loss::subjects(),
            custom::subjects(),
            optimizer::subjects(),
        ];
        families.into_iter().flatten().collect()
    })
}

/// The subject of that name.
pub fn named(name: &str) -> Option<&'static Subject> {
    all().iter().find(|subject| subject.name == name)
}

/// A subject by its name, its signature and how it is called.
fn subject(
    name: &'static str,
    signature: impl Into<String>,
    draw: impl Fn(&mut Draw<'_>, DType) -> Call + Send + Sync + 'static,
) -> Subject {
    Subject { name, signature: signature.into(), draw: Box::new(draw) }
}

/// A subject of one input and one argument, which are drawn together.
fn with_argument<A: Copy + Send + Sync + 'static>(
    name: &'static str,
    arguments: &str,
    draw: impl Fn(&mut Draw<'_>) -> (Vec<usize>, A, String) + Send + Sync + 'static,
    run: impl Fn(&Tensor, A) -> Result<Tensor> + Copy + Send + Sync + 'static,
) -> Subject {
    subject(name, format!("{name}({arguments})"), move |source, _| {
        let (dims, argument, text) = draw(source);
        Call::new(text, vec![Input::data(&dims)], move |x| run(&x[0], argument))
    })
}

/// More groups than the 65,535 blocks that some devices launch along an axis.
const MANY: usize = 65_537;

/// Whether something is drawn that costs a lot, or is wrong.
fn is_rare(draw: &mut Draw<'_>, one_in: usize) -> bool {
    draw.below(one_in) == one_in - 1
}

/// Sizes of a case that stays small.
fn small(draw: &mut Draw<'_>, rank: usize) -> Vec<usize> {
    draw.dims(rank, 384)
}

/// An axis, counted from either end; once in a while one that there is not.
fn axis(draw: &mut Draw<'_>, rank: usize) -> i64 {
    let axis = draw.below(rank.max(1)) as i64;
    match draw.below(24) {
        23 => rank as i64,
        choice if choice % 2 == 1 => axis - rank as i64,
        _ => axis,
    }
}

/// A shape and one of its axes; once in a while with [`MANY`] groups of one or two elements along it.
fn shape_and_axis(draw: &mut Draw<'_>) -> (Vec<usize>, i64) {
    if is_rare(draw, 80) {
        let (n, axis) = (draw.between(1, 2), draw.below(2));
        return (if axis == 0 { vec![n, MANY] } else { vec![MANY, n] }, axis as i64);
    }
    let rank = draw.pick(&[2, 1, 3, 4, 0]);
    let dims = small(draw, rank);
    let axis = axis(draw, rank);
    (dims, axis)
}

/// A number that elements of the dtype may meet; for integers it is a float once in a while, which is an error.
fn number(draw: &mut Draw<'_>, dtype: DType) -> Number {
    if dtype.is_float() || is_rare(draw, 16) {
        Number::Float(draw.pick(&[2.0, 0.5, -1.0, 3.0, 0.0, 0.1, -2.5]))
    } else {
        Number::Int(draw.pick(&[2, 1, 3, 0, 7, 100]))
    }
}
