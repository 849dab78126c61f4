//! Choices from which a case is made: a finite stream of numbers, the simplest choice always 0.
//!
//! proptest draws and shrinks the stream; whatever reads it needs no strategies of its own, and a case is written down
//! as its stream.

/// Reads a stream of choices; beyond its end everything is 0.
#[derive(Clone, Debug)]
pub struct Draw<'a> {
    choices: &'a [u16],
    next: usize,
}

/// Sizes of axes, the simplest first: small, empty, prime, and one past a vector or a block of some kernel.
const SIZES: [usize; 20] = [2, 3, 1, 4, 5, 7, 0, 8, 9, 13, 16, 17, 31, 33, 64, 65, 127, 129, 257, 1025];

impl<'a> Draw<'a> {
    /// From the first choice on.
    pub fn new(choices: &'a [u16]) -> Self {
        Self { choices, next: 0 }
    }

    /// A number below `n`, which is not 0.
    pub fn below(&mut self, n: usize) -> usize {
        let choice = self.choices.get(self.next).copied().unwrap_or(0);
        self.next += 1;
        usize::from(choice) % n
    }

    /// A number from `low` to `high`, the lowest being the simplest.
    pub fn between(&mut self, low: usize, high: usize) -> usize {
        low + self.below(high - low + 1)
    }

    /// How many choices have been read.
    pub fn used(&self) -> usize {
        self.next
    }

    /// True or false.
    pub fn flag(&mut self) -> bool {
        self.below(2) == 1
    }

    /// One of these, the first being the simplest.
    pub fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }

    /// One size, at most `largest`; one in seven times or so it is 0 or 1.
    pub fn size(&mut self, largest: usize) -> usize {
        let sizes: Vec<usize> = SIZES.iter().copied().filter(|&size| size <= largest.max(2)).collect();
        self.pick(&sizes)
    }

    /// One size that is not 0.
    pub fn positive_size(&mut self, largest: usize) -> usize {
        self.size(largest).max(1)
    }

    /// The sizes of `rank` axes, together at most about `limit` elements.
    pub fn dims(&mut self, rank: usize, limit: usize) -> Vec<usize> {
        let mut left = limit;
        (0..rank)
            .map(|_| {
                let n = self.size(left);
                left /= n.max(1);
                n
            })
            .collect()
    }

    /// A shape of rank 0 to 4.
    pub fn shape(&mut self) -> Vec<usize> {
        let rank = self.pick(&[1, 2, 3, 0, 4]);
        self.dims(rank, 2048)
    }

    /// A shape of rank 1 to 4, and one of its axes.
    pub fn shape_and_axis(&mut self) -> (Vec<usize>, usize) {
        let rank = self.pick(&[1, 2, 3, 4]);
        let dims = self.dims(rank, 2048);
        let axis = self.below(rank);
        (dims, axis)
    }

    /// Any subset of `rank` axes, ascending; all of them being the simplest.
    pub fn axes(&mut self, rank: usize) -> Vec<usize> {
        let left_out = self.below(1 << rank);
        (0..rank).filter(|axis| left_out >> axis & 1 == 0).collect()
    }

    /// A shape that broadcasts to `dims`: some axes of size 1, some of the first ones missing.
    pub fn broadcast(&mut self, dims: &[usize]) -> Vec<usize> {
        let ones = self.below(1 << dims.len());
        let missing = self.below(dims.len() + 1);
        let own = |(axis, &n): (usize, &usize)| if ones >> axis & 1 == 1 { 1 } else { n };
        let missing = if self.flag() { missing } else { 0 };
        dims.iter().enumerate().map(own).skip(missing).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_stream_is_the_simplest_of_everything() {
        let mut draw = Draw::new(&[]);
        assert_eq!((draw.below(7), draw.flag(), draw.size(100), draw.shape()), (0, false, 2, vec![2]));
        assert_eq!(draw.axes(3), [0, 1, 2]);
    }

    #[test]
    fn shapes_broadcast_and_keep_their_limit() {
        for seed in 0..2000u32 {
            let choices: Vec<u16> =
                (0..16).map(|i| ((seed + 1).wrapping_mul((2 * i + 77) * 26544) >> 8) as u16).collect();
            let mut draw = Draw::new(&choices);
            let dims = draw.shape();
            assert!(dims.iter().map(|n| n.max(&1)).product::<usize>() <= 8 * 2048, "{dims:?}");
            let small = draw.broadcast(&dims);
            let lead = dims.len() - small.len();
            assert!(small.iter().zip(&dims[lead..]).all(|(a, b)| a == b || *a == 1), "{small:?} {dims:?}");
        }
    }
}
