//! A row-major tensor seen around one axis.

/// [outer, n, inner]: lane (o, i) is the elements o·n·inner + k·inner + i, k from 0 to n.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lanes {
    pub(crate) outer: usize,
    pub(crate) n: usize,
    pub(crate) inner: usize,
}

impl Lanes {
    pub(crate) fn new(dims: &[usize], axis: usize) -> Self {
        let product = |dims: &[usize]| dims.iter().product();
        Self { outer: product(&dims[..axis]), n: dims[axis], inner: product(&dims[axis + 1..]) }
    }

    /// Elements of one outer slice.
    pub(crate) fn slice(&self) -> usize {
        self.n * self.inner
    }
}
