//! Arguments of kernels.

use super::{Buffer, Element};
use crate::error::{Error, Result};
use crate::program::Program;

/// An argument of a kernel: the bytes of one parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arg(Vec<u8>);

impl Arg {
    /// The address of a buffer.
    pub fn buffer<T: Element>(buffer: &Buffer<T>) -> Self {
        Self::address(buffer.address())
    }

    /// An address; 0 for none.
    pub fn address(address: u64) -> Self {
        Self(address.to_le_bytes().into())
    }

    /// A number.
    pub fn value<T: Element>(value: T) -> Self {
        let mut bytes = vec![0; T::TY.bytes() as usize];
        value.put(&mut bytes);
        Self(bytes)
    }

    /// A structure or an array, as its bytes.
    pub fn bytes(bytes: &[u8]) -> Self {
        Self(bytes.into())
    }
}

/// The arguments at the offsets of the parameters.
pub(super) fn pack(program: &Program, args: &[Arg]) -> Result<Vec<u8>> {
    let name = &program.name;
    if args.len() != program.params.len() {
        let message = format!("{name}: takes {} arguments: found {}", program.params.len(), args.len());
        return Err(Error::usage(message));
    }
    let mut blob = vec![0; program.param_bytes as usize];
    for (i, (param, arg)) in program.params.iter().zip(args).enumerate() {
        if arg.0.len() != param.bytes as usize {
            let (expected, found) = (param.bytes, arg.0.len());
            return Err(Error::usage(format!(
                "{name}: argument {i} ({}) has {expected} bytes: found {found}",
                param.name
            )));
        }
        let at = param.offset as usize;
        blob[at..at + arg.0.len()].copy_from_slice(&arg.0);
    }
    Ok(blob)
}
