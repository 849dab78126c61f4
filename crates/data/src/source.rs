//! Files as tensors. Each format is one file; sizes that a file claims are never allocated before they are there.

pub(crate) mod bytes;
pub(crate) mod csv;
pub(crate) mod idx;
pub(crate) mod npy;
pub(crate) mod npz;
