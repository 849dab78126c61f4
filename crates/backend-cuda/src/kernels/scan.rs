//! Running folds: one thread per lane, one element after the other.

use smallvec::SmallVec;
use tensor_core::expr::lower::lower;
use tensor_core::op::{ReduceKind, Scan, ScanKind};
use tensor_core::{DType, Meta, Result, Storages, Tensor};

use super::context::THREADS;
use super::copy::row_major;
use super::{Context, Text, address, reduce, storage};
use crate::args::Args;
use crate::emit::{self, Body};
use crate::index;
use crate::module::Key;
use tensor_core::plan::Plan;

/// The fold of everything up to each position.
pub(crate) fn scan(cx: &Context, op: &Scan, x: &Tensor, meta: &Meta) -> Result<Storages> {
    let block = cx.output(meta)?;
    let (n, dtype, axis) = (meta.shape.len(), meta.dtype, op.axis);
    if n > 0 {
        let kind = match op.kind {
            ScanKind::Sum => ReduceKind::Sum,
            ScanKind::Prod => ReduceKind::Prod,
            ScanKind::Max => ReduceKind::Max,
        };
        let mut dims: SmallVec<[usize; 4]> = SmallVec::from_slice(x.dims());
        let depth = std::mem::replace(&mut dims[axis], 1);
        let (to, from) = (row_major(&meta.shape), x.layout().strides());
        let plan = Plan::of(&dims, SmallVec::from_iter([to.clone(), SmallVec::from_slice(from)]));
        let key = Key::new("scan", [kind as u64, dtype as u64, plan.rank() as u64]);
        let function = cx.modules.get(key, || text(kind, dtype, plan.rank()))?;
        let size = dtype.size_bytes() as i64;
        let (sign, last) = if op.reverse { (-1, depth as i64 - 1) } else { (1, 0) };
        let start = |address: u64, stride: isize| address.wrapping_add_signed(last * stride as i64 * size);
        let mut args = Args::default();
        args.push(plan.len() as u64);
        args.push(start(block.address(), to[axis]));
        args.push(start(address(x), from[axis]));
        index::push(&mut args, &plan, |_| size as usize);
        args.push(depth as u64);
        args.push_signed(sign * to[axis] as i64 * size);
        args.push_signed(sign * from[axis] as i64 * size);
        let blocks = plan.len().div_ceil(THREADS as usize) as u32;
        cx.launch_blocks("scan", function, n, [blocks, 1, 1], [THREADS, 1, 1], 0, &args)?;
    }
    Ok(Storages::from_iter([storage(block)]))
}

fn text(kind: ReduceKind, dtype: DType, rank: usize) -> Result<String> {
    let wide = dtype.compute();
    let fold = lower("scan", &[reduce::fold(kind)], &[wide, wide])?;
    let mut text = Text::of_elements();
    let places = ["%to".to_string(), "%from".to_string()];
    places.iter().for_each(|place| text.wide(place));
    let advance = index::advance(&mut text.slots, rank, "%i", &places);
    text.push(&advance);
    text.word("%depth");
    text.wide("%to_step");
    text.wide("%from_step");
    ["%total", "%term"].iter().for_each(|register| text.value(wide, register));
    text.register("b32", "%k");
    text.register("pred", "%goes_on");
    text.line(reduce::neutral(kind, wide, "%total"));
    text.line("mov.b32 %k, 0;");
    text.push("$next:\n");
    text.push(&emit::load(dtype, "%term", "%from"));
    let (operands, total) = (["%total".to_string(), "%term".to_string()], ["%total".to_string()]);
    text.push(&Body { lowered: &fold, inputs: &operands, numbers: &[], outputs: &total }.text());
    text.push(&emit::store(dtype, "%to", "%total"));
    text.line("add.s64 %to, %to, %to_step;");
    text.line("add.s64 %from, %from, %from_step;");
    text.line("add.s32 %k, %k, 1;");
    text.line("setp.lt.u32 %goes_on, %k, %depth;");
    text.line("@%goes_on bra $next;");
    Ok(text.element("scan"))
}
