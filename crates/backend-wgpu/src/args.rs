//! A kernel's parameters: words of 32 bits, written in the order in which the kernel's text counts them.

use smallvec::{SmallVec, smallvec};

/// Parameters being filled in. The first is 0: kernels use it where a driver must not know a value.
#[derive(Clone, Debug)]
pub(crate) struct Args(SmallVec<[u32; 64]>);

impl Args {
    pub(crate) fn new() -> Self {
        Self(smallvec![0])
    }

    /// A size or an index; core and the batch keep them below 2³².
    pub(crate) fn push(&mut self, value: usize) {
        self.0.push(value as u32);
    }

    pub(crate) fn push_signed(&mut self, value: isize) {
        self.0.push(value as i32 as u32);
    }

    /// A number's bits, of 32 or 64.
    pub(crate) fn push_bits(&mut self, bits: u64, is_wide: bool) {
        self.0.push(bits as u32);
        if is_wide {
            self.0.push((bits >> 32) as u32);
        }
    }

    pub(crate) fn words(&self) -> &[u32] {
        &self.0
    }
}
