//! Picking, adding and writing by index; indices repeat, and once in a while one is out of range.

use tensor_core::DType;

use super::{MANY, axis, is_rare, number, small, subject, with_argument};
use crate::suite::case::{Call, Subject};
use crate::suite::draw::Draw;
use crate::suite::input::Input;

/// A shape of so many elements, an axis of it as written and as counted, and how many slices are picked.
struct Along {
    dims: Vec<usize>,
    at: i64,
    along: usize,
    /// The index's dtype, and below what its values are.
    index: DType,
    below: usize,
}

impl Along {
    fn new(draw: &mut Draw<'_>) -> Self {
        let rank = draw.pick(&[2, 1, 3]);
        let (mut dims, at) = (small(draw, rank), axis(draw, rank));
        let along = at.rem_euclid(rank as i64) as usize;
        dims[along] = dims[along].max(1);
        let below = dims[along] + if is_rare(draw, 24) { 2 } else { 0 };
        Self { dims, at, along, index: draw.pick(&[DType::I64, DType::I32]), below }
    }

    /// [`MANY`] rows, of which as many are picked.
    fn many() -> Self {
        Self { dims: vec![MANY, 1], at: 0, along: 0, index: DType::I64, below: MANY }
    }

    /// The shape with another size along the axis, and maybe smaller ones elsewhere.
    fn picked(&self, draw: &mut Draw<'_>) -> Vec<usize> {
        let own = |(axis, &n): (usize, &usize)| match (axis == self.along, self.below == MANY) {
            (true, true) => n,
            (true, false) => draw.size(9),
            (false, _) => n - draw.below(n + 1) / 2,
        };
        self.dims.iter().enumerate().map(own).collect()
    }

    fn index(&self, dims: &[usize]) -> Input {
        Input::index(dims, self.below, self.index)
    }
}

fn along(draw: &mut Draw<'_>) -> Along {
    if is_rare(draw, 80) { Along::many() } else { Along::new(draw) }
}

fn gather(draw: &mut Draw<'_>, _: DType) -> Call {
    let a = along(draw);
    let picked = a.picked(draw);
    let inputs = vec![Input::data(&a.dims), a.index(&picked)];
    Call::new(format!("axis {}", a.at), inputs, move |x| x[0].gather(a.at, &x[1]))
}

fn scatter_add(draw: &mut Draw<'_>, _: DType) -> Call {
    let a = along(draw);
    let picked = a.picked(draw);
    let mut source = picked.clone();
    source[0] += usize::from(is_rare(draw, 24));
    let inputs = vec![Input::data(&a.dims), a.index(&picked), Input::data(&source)];
    Call::new(format!("axis {}", a.at), inputs, move |x| x[0].scatter_add(a.at, &x[1], &x[2]))
}

fn index_select(draw: &mut Draw<'_>, _: DType) -> Call {
    let a = along(draw);
    let rank = draw.pick(&[1, 2, 0]);
    let inputs = vec![Input::data(&a.dims), a.index(&draw.dims(rank, 12))];
    Call::new(format!("axis {}", a.at), inputs, move |x| x[0].index_select(a.at, &x[1]))
}

fn index_add(draw: &mut Draw<'_>, _: DType) -> Call {
    let a = along(draw);
    let n = draw.size(9);
    let mut source = a.dims.clone();
    source[a.along] = n;
    let inputs = vec![Input::data(&a.dims), a.index(&[n]), Input::data(&source)];
    Call::new(format!("axis {}", a.at), inputs, move |x| x[0].index_add(a.at, &x[1], &x[2]))
}

/// A range of an axis replaced by a tensor that broadcasts to it, or by a number.
fn slice_assign(draw: &mut Draw<'_>, dtype: DType) -> Call {
    let a = Along::new(draw);
    let n = a.dims[a.along];
    let start = draw.below(n + 1);
    let stop = start + draw.below(n - start + 1) + usize::from(is_rare(draw, 24));
    let (range, text) = (start as i64..stop as i64, format!("axis {}, {start}..{stop}", a.at));
    if draw.below(4) == 3 {
        let value = number(draw, dtype);
        return Call::new(format!("{text}, {value}"), vec![Input::data(&a.dims)], move |x| {
            x[0].slice_assign(a.at, range.clone(), value)
        });
    }
    let mut part = a.dims.clone();
    part[a.along] = stop - start;
    let inputs = vec![Input::data(&a.dims), Input::data(&draw.broadcast(&part))];
    Call::new(text, inputs, move |x| x[0].slice_assign(a.at, range.clone(), &x[1]))
}

/// A shape and a diagonal of it.
fn diagonal(draw: &mut Draw<'_>) -> (Vec<usize>, i64, String) {
    let rank = draw.pick(&[2, 3, 4, 1]);
    let (dims, k) = (small(draw, rank), draw.pick(&[0, 1, -1, 2, -3, 100]));
    (dims, k, format!("k {k}"))
}

pub(super) fn subjects() -> Vec<Subject> {
    let vector_or_matrix = |draw: &mut Draw<'_>| {
        let (rank, k) = (draw.pick(&[2, 1, 2, 1, 3]), draw.pick(&[0, 1, -1, 2, -3, 7]));
        (draw.dims(rank, if rank == 1 { 17 } else { 384 }), k, format!("k {k}"))
    };
    vec![
        subject("gather", "gather(axis, index)", gather),
        subject("scatter_add", "scatter_add(axis, index, source)", scatter_add),
        subject("index_select", "index_select(axis, index)", index_select),
        subject("index_add", "index_add(axis, index, source)", index_add),
        subject("slice_assign", "slice_assign(axis, range, source)", slice_assign),
        with_argument("tril", "k", diagonal, |x, k| x.tril(k)),
        with_argument("triu", "k", diagonal, |x, k| x.triu(k)),
        with_argument("diag", "k", vector_or_matrix, |x, k| x.diag(k)),
        subject("one_hot", "one_hot(n)", |draw, _| {
            let rank = draw.pick(&[1, 2, 0]);
            let (dims, n) = (draw.dims(rank, 64), draw.size(9));
            Call::new(format!("n {n}"), vec![Input::within(&dims, 0.0, n as f64)], move |x| x[0].one_hot(n))
        }),
        subject("nonzero", "nonzero()", |draw, _| {
            Call::new("", vec![Input::within(&draw.shape(), 0.0, 1.0)], |x| x[0].nonzero())
        }),
    ]
}
