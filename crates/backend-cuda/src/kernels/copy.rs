//! Elements as they are: copies between any two layouts, concatenation, padding.

use smallvec::SmallVec;
use tensor_core::Element;
use tensor_core::expr::lower::Param;
use tensor_core::op::{Concat, Pad};
use tensor_core::{DType, Meta, Record, Result, Storages, Tensor};

use super::{Context, Text, address, names, storage};
use crate::args::Args;
use crate::driver::Address;
use crate::index;
use crate::memory::Block;
use crate::module::Key;
use tensor_core::plan::{Plan, divisor};

/// The same elements, row-major.
pub(crate) fn copy(cx: &Context, x: &Tensor, meta: &Meta) -> Result<Storages> {
    let block = cx.output(meta)?;
    run(cx, "copy", x, block.address())?;
    Ok(Storages::from_iter([storage(block)]))
}

/// A row-major copy of a tensor, for kernels that read memory in order; `op` is named in errors, here and below.
pub(crate) fn contiguous(cx: &Context, op: &str, x: &Tensor) -> Result<Block> {
    let block = cx.output(&x.meta())?;
    run(cx, op, x, block.address())?;
    Ok(block)
}

/// Writes a tensor's elements row-major from an address on.
pub(crate) fn run(cx: &Context, op: &str, x: &Tensor, to: Address) -> Result<()> {
    let size = x.dtype().size_bytes();
    if x.is_contiguous() && !x.is_empty() {
        return cx.driver.copy(address(x), to, x.len() * size);
    }
    strided(cx, op, x, to, &row_major(x.dims()))
}

/// One input after another.
pub(crate) fn concat(cx: &Context, op: &Concat, inputs: &[&Tensor], meta: &Meta) -> Result<Storages> {
    let block = cx.output(meta)?;
    let strides = row_major(&meta.shape);
    let mut to = block.address();
    for x in inputs {
        strided(cx, op.name(), x, to, &strides)?;
        to += (x.dims()[op.axis] * strides[op.axis] as usize * meta.dtype.size_bytes()) as u64;
    }
    Ok(Storages::from_iter([storage(block)]))
}

/// The strides of row-major elements.
pub(crate) fn row_major(dims: &[usize]) -> SmallVec<[isize; 4]> {
    let mut strides: SmallVec<[isize; 4]> = dims.iter().map(|_| 1).collect();
    for axis in (1..dims.len()).rev() {
        strides[axis - 1] = strides[axis] * dims[axis] as isize;
    }
    strides
}

/// Writes a tensor's elements with these strides from an address on.
pub(crate) fn strided(cx: &Context, op: &str, x: &Tensor, to: Address, strides: &[isize]) -> Result<()> {
    let size = x.dtype().size_bytes();
    let of = SmallVec::from_slice;
    let plan = Plan::of(x.dims(), SmallVec::from_iter([of(strides), of(x.layout().strides())]));
    if plan.is_empty() {
        return Ok(());
    }
    let key = Key::new("copy", [plan.rank() as u64, size as u64]);
    let function = cx.modules.get(key, || {
        let mut text = Text::of_elements();
        let places = ["%to".to_string(), "%from".to_string()];
        places.iter().for_each(|place| text.wide(place));
        let advance = index::advance(&mut text.slots, plan.rank(), "%i", &places);
        text.push(&advance);
        text.register(register(size), "%x");
        text.line(load(size, "%x", "%from"));
        text.line(store(size, "%to", "%x"));
        Ok(text.element("copy"))
    })?;
    let mut args = Args::default();
    args.push(plan.len() as u64);
    args.push(to);
    args.push(address(x));
    index::push(&mut args, &plan, |_| size);
    cx.launch(op, function, plan.len(), &args)
}

/// Surrounded by a value, and with it between the elements.
pub(crate) fn pad(cx: &Context, op: &Pad, x: &Tensor, meta: &Meta) -> Result<Storages> {
    let block = cx.output(meta)?;
    let (rank, size, n) = (meta.shape.rank(), meta.dtype.size_bytes(), meta.shape.len());
    if n > 0 {
        let function = cx.modules.get(Key::new("pad", [rank as u64, size as u64]), || Ok(pad_text(rank, size)))?;
        let mut args = Args::default();
        args.push(n as u64);
        args.push(block.address());
        args.push(address(x));
        args.push(stored_bits(op, meta.dtype));
        index::push_coordinates(&mut args, &meta.shape);
        for axis in 0..rank {
            let step = op.interior[axis] + 1;
            let (multiplier, shift) = divisor(step);
            args.push(op.before[axis] as u64);
            args.push(step as u64);
            args.push(multiplier.into());
            args.push(shift.into());
            args.push(x.dims()[axis] as u64);
            args.push_signed(x.layout().strides()[axis] as i64 * size as i64);
        }
        cx.launch("pad", function, n, &args)?;
    }
    Ok(Storages::from_iter([storage(block)]))
}

/// The bits of the value as it is stored.
fn stored_bits(op: &Pad, dtype: DType) -> u64 {
    match dtype {
        DType::F16 => <half::f16 as Element>::from_f64(op.value.to_f64()).to_bits().into(),
        DType::BF16 => <half::bf16 as Element>::from_f64(op.value.to_f64()).to_bits().into(),
        dtype => Param { number: 0, dtype }.bits(op.value),
    }
}

fn pad_text(rank: usize, size: usize) -> String {
    let mut text = Text::of_elements();
    text.wide("%to");
    text.wide("%from");
    text.wide("%value");
    let coordinates = names("c", rank);
    coordinates.iter().for_each(|c| text.register("b32", c));
    let apart = index::coordinates(&mut text.slots, "%i", &coordinates);
    text.push(&apart);
    for register in ["%before", "%step", "%multiplier", "%shift", "%size", "%q", "%rest"] {
        text.register("b32", register);
    }
    text.register("b64", "%stride");
    ["%is_inside", "%is_one", "%fits"].iter().for_each(|register| text.register("pred", register));
    text.line("setp.eq.u32 %is_inside, %i, %i;");
    for c in &coordinates {
        let slots: Vec<String> = (0..6).map(|_| text.slots.next()).collect();
        for (name, slot) in ["%before", "%step", "%multiplier", "%shift", "%size"].iter().zip(&slots) {
            text.line(format!("ld.param.u32 {name}, {slot};"));
        }
        text.line(format!("ld.param.u64 %stride, {};", slots[5]));
        // Below the first one the difference wraps to a number that no size reaches.
        text.line(format!("sub.u32 %rest, {c}, %before;"));
        text.line("mul.hi.u32 %q, %rest, %multiplier;");
        text.line("shr.u32 %q, %q, %shift;");
        text.line("setp.eq.u32 %is_one, %step, 1;");
        text.line("selp.b32 %q, %rest, %q, %is_one;");
        text.line(format!("setp.ge.and.u32 %is_inside, {c}, %before, %is_inside;"));
        text.line("setp.lt.and.u32 %is_inside, %q, %size, %is_inside;");
        text.line("mul.lo.u32 %step, %q, %step;");
        text.line("setp.eq.and.u32 %is_inside, %step, %rest, %is_inside;");
        text.line("{ .reg .b64 %t_w; cvt.u64.u32 %t_w, %q; mad.lo.s64 %from, %t_w, %stride, %from; }");
    }
    text.register(register(size), "%x");
    text.line(match size {
        1 => "{ .reg .b32 %t_w; cvt.u32.u64 %t_w, %value; cvt.u16.u32 %x, %t_w; }".to_string(),
        2 => "cvt.u16.u64 %x, %value;".to_string(),
        4 => "cvt.u32.u64 %x, %value;".to_string(),
        _ => "mov.b64 %x, %value;".to_string(),
    });
    text.line(format!("@%is_inside {}", load(size, "%x", "%from")));
    text.advance("%to", "%i", size);
    text.line(store(size, "%to", "%x"));
    text.element("pad")
}

/// The register for an element of so many bytes; a byte takes one of 16 bits.
pub(super) fn register(size: usize) -> &'static str {
    ["b16", "b16", "b32", "b64"][size.ilog2() as usize]
}

fn width(size: usize) -> &'static str {
    ["u8", "b16", "b32", "b64"][size.ilog2() as usize]
}

pub(super) fn load(size: usize, x: &str, from: &str) -> String {
    format!("ld.global.{} {x}, [{from}];", width(size))
}

pub(super) fn store(size: usize, to: &str, x: &str) -> String {
    format!("st.global.{} [{to}], {x};", width(size))
}
