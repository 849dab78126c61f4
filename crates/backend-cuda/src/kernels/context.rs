//! What every kernel needs: memory, loaded modules, the driver.

use std::sync::Arc;

use tensor_core::{Error, Meta, Result, Storage, Tensor};

use super::counter::Counter;
use super::matmul::Choice;
use crate::args::Args;
use crate::driver::{Address, Driver, Function, Launch};
use crate::memory::{Block, Pool};
use crate::module::Modules;
use crate::staging::Staging;
use crate::status::Status;

/// Threads of a block in kernels with one thread per element.
pub(crate) const THREADS: u32 = 256;

/// A device, as kernels see it.
pub(crate) struct Context {
    pub(crate) driver: Arc<dyn Driver>,
    pub(crate) pool: Arc<Pool>,
    pub(crate) staging: Staging,
    pub(crate) modules: Modules,
    pub(crate) status: Status,
    pub(crate) counter: Counter,
    /// How matrix products are made, where it is not left to the shape.
    pub(crate) matmul: Option<Choice>,
    /// Whether factors of f32 products may be rounded to TF32; only where there are tensor cores.
    pub(crate) tf32: bool,
}

impl Context {
    /// A block for an output, its content unspecified.
    pub(crate) fn output(&self, meta: &Meta) -> Result<Block> {
        self.pool.take(meta.shape.len().saturating_mul(meta.dtype.size_bytes()))
    }

    /// Starts a kernel with one thread per element, in blocks along x.
    ///
    /// # Errors
    /// If there are more elements than an index of 31 bits reaches.
    pub(crate) fn launch(&self, op: &str, function: Function, n: usize, args: &Args) -> Result<()> {
        let blocks = n.div_ceil(THREADS as usize) as u32;
        self.launch_blocks(op, function, n, [blocks, 1, 1], [THREADS, 1, 1], 0, args)
    }

    /// Starts a kernel on a grid of its own; `n` is the largest index that it forms.
    ///
    /// # Errors
    /// As [`Context::launch`].
    pub(crate) fn launch_blocks(
        &self,
        op: &str,
        function: Function,
        n: usize,
        grid: [u32; 3],
        block: [u32; 3],
        shared_bytes: u32,
        args: &Args,
    ) -> Result<()> {
        if n > i32::MAX as usize {
            return Err(Error::unsupported(
                op.to_string(),
                format!("has too many elements for one kernel: elements {n}, limit {}; split the tensor", i32::MAX),
            ));
        }
        if grid.contains(&0) {
            return Ok(());
        }
        self.driver.launch(Launch { function, grid, block, shared_bytes, args: args.bytes() })
    }
}

/// The block behind a tensor of this device.
pub(crate) fn block(x: &Tensor) -> &Block {
    x.storage().downcast_ref::<Block>().expect("invariant: a tensor of this device")
}

/// Where a tensor's first element is.
pub(crate) fn address(x: &Tensor) -> Address {
    block(x).address() + (x.layout().offset() * x.dtype().size_bytes()) as u64
}

/// A block as a tensor's storage.
pub(crate) fn storage(block: Block) -> Storage {
    Arc::new(block)
}
