//! Elements as they are, row-major.

use tensor_core::{Meta, Result, Storages, Tensor};

use super::{Context, Text, address, storage};
use crate::args::Args;
use crate::driver::Address;
use crate::index;
use crate::memory::Block;
use crate::module::Key;
use crate::plan::Plan;

/// The same elements, row-major.
pub(crate) fn copy(cx: &Context, x: &Tensor, meta: &Meta) -> Result<Storages> {
    let block = cx.output(meta)?;
    run(cx, x, block.address())?;
    Ok(Storages::from_iter([storage(block)]))
}

/// A row-major copy of a tensor, for kernels that read memory in order.
pub(crate) fn contiguous(cx: &Context, x: &Tensor) -> Result<Block> {
    let block = cx.output(&x.meta())?;
    run(cx, x, block.address())?;
    Ok(block)
}

/// Writes a tensor's elements row-major from an address on.
pub(crate) fn run(cx: &Context, x: &Tensor, to: Address) -> Result<()> {
    let (n, size) = (x.len(), x.dtype().size_bytes());
    if n == 0 {
        return Ok(());
    }
    if x.is_contiguous() {
        return cx.driver.copy(address(x), to, n * size);
    }
    let plan = Plan::new(x.dims(), &[x.layout()]);
    strided(cx, address(x), &plan, size, to)
}

fn strided(cx: &Context, from: Address, plan: &Plan, size: usize, to: Address) -> Result<()> {
    let key = Key::new("copy", [plan.rank() as u64, size as u64]);
    let function = cx.modules.get(key, || Ok(text(plan.rank(), size)))?;
    let mut args = Args::default();
    args.push(plan.len() as u64);
    args.push(to);
    args.push(from);
    index::push(&mut args, plan, |_| size);
    cx.launch("copy", function, plan.len(), &args)
}

fn text(rank: usize, size: usize) -> String {
    let mut kernel = Text::of_elements();
    kernel.wide("%to");
    kernel.wide("%from");
    let advance = index::advance(&mut kernel.slots, rank, "%i", &["%from".to_string()]);
    kernel.push(&advance);
    kernel.advance("%to", "%i", size);
    // A byte takes a register of 16 bits.
    let (ty, register) = [("u8", "b16"), ("b16", "b16"), ("b32", "b32"), ("b64", "b64")][size.ilog2() as usize];
    kernel.register(register, "%x");
    kernel.line(format!("ld.global.{ty} %x, [%from];"));
    kernel.line(format!("st.global.{ty} [%to], %x;"));
    kernel.element("copy")
}
