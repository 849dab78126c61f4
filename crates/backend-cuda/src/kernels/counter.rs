//! The place in a random stream that the next draw of a device begins at: in device memory, so that launches that draw are
//! the same each time. Core numbers the draws; here is only known what the device will hold by then, and a draw with
//! another number sets it first, in the order of the lane.

use std::sync::{Mutex, PoisonError};

use tensor_core::Result;

use super::Context;
use crate::args::Args;
use crate::driver::Address;
use crate::memory::Block;
use crate::module::Key;
use crate::source::Source;

/// The counter of one device.
#[derive(Default)]
pub(crate) struct Counter(Mutex<State>);

#[derive(Default)]
struct State {
    block: Option<Block>,
    /// What it holds after all work so far; nothing where a launch may have failed.
    holds: Option<u64>,
}

impl Counter {
    /// Lets `launch` start a kernel that finds `offset` at the address, and moves on by `n_blocks`. Whoever else draws
    /// waits until all is in the lane.
    pub(crate) fn draw(
        &self,
        cx: &Context,
        offset: u64,
        n_blocks: u64,
        launch: impl FnOnce(Address) -> Result<()>,
    ) -> Result<()> {
        let state = &mut *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = match &state.block {
            Some(block) => block.address(),
            None => state.block.insert(cx.pool.take(size_of::<u64>())?).address(),
        };
        // Forgotten until all launches are made.
        if state.holds.take() != Some(offset) {
            change(cx, at, false, offset)?;
        }
        launch(at)?;
        change(cx, at, true, n_blocks)?;
        state.holds = Some(offset.wrapping_add(n_blocks));
        Ok(())
    }
}

/// What is there becomes `by`, plus what it was if that is kept.
fn change(cx: &Context, at: Address, is_kept: bool, by: u64) -> Result<()> {
    let text = || Ok(Source::new(include_str!("../../kernels/counter.ptx")).finish());
    let function = cx.modules.get(Key::new("counter", []), text)?;
    let mut args = Args::default();
    [at, is_kept.into(), by].into_iter().for_each(|v| args.push(v));
    cx.launch_blocks("random", function, 1, [1; 3], [1; 3], 0, &args)
}
