//! A kernel's parameters: one array of 8-byte slots, written in the order in which the kernel's text counts them.

use smallvec::SmallVec;

/// Parameters being filled in.
#[derive(Clone, Debug, Default)]
pub(crate) struct Args(SmallVec<[u64; 32]>);

impl Args {
    pub(crate) fn push(&mut self, value: u64) {
        self.0.push(value);
    }

    pub(crate) fn push_signed(&mut self, value: i64) {
        self.0.push(value as u64);
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        bytemuck::cast_slice(&self.0)
    }
}

/// Slots being counted, for the text of a kernel.
#[derive(Clone, Debug, Default)]
pub(crate) struct Slots(usize);

impl Slots {
    /// The address of the next slot.
    pub(crate) fn next(&mut self) -> String {
        let address = format!("[args+{}]", 8 * self.0);
        self.0 += 1;
        address
    }

    /// Bytes of all slots so far.
    pub(crate) fn len_bytes(&self) -> usize {
        8 * self.0
    }
}
