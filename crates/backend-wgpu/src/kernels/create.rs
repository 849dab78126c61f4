//! Tensors from nothing.

use std::f64::consts::TAU;

use smallvec::SmallVec;
use tensor_core::Element;
use tensor_core::expr::lower::{LowType, lower};
use tensor_core::expr::{Expr, Sym, build};
use tensor_core::op::{Distribution, Fill, Iota, Random};
use tensor_core::plan::Plan;
use tensor_core::{DType, HostData, Meta, Result, Storages, random};

use super::context::{Operand, pieces};
use super::map::{exactly, push_numbers};
use super::moves::{Moving, stored_bits};
use super::{Context, storage};
use crate::args::Args;
use crate::batch::Window;
use crate::host;
use crate::pipeline::Key;
use crate::shader::{Shader, per_invocation};

/// One value everywhere.
pub(crate) fn fill(cx: &Context, op: &Fill, meta: &Meta) -> Result<Storages> {
    let to = cx.output(meta)?;
    let (n, size) = (meta.shape.len(), meta.dtype.size_bytes());
    if n > 0 {
        let plan = Plan::of(&[n], SmallVec::from_iter([SmallVec::from_iter([1])]));
        let operand = Operand { buffer: to.buffer(), begin: 0, size_bytes: size };
        for piece in pieces(cx, "full", plan, &[operand])? {
            let n = piece.plan.len();
            let mut args = Moving::args(n, size, piece.begins[0]);
            args.push_bits(stored_bits(op.value, meta.dtype), true);
            let text = || {
                let mut moving = Moving::new(size);
                let (low, high) = (moving.shader.arg(), moving.shader.arg());
                Ok(moving.finish(&format!("    return select({high}, {low}, half == 0u);\n")))
            };
            let key = Key::new("full", [size as u64]);
            cx.run_elements("full", key, text, &piece.windows, &args, Moving::words(n, size), 1)?;
        }
    }
    Ok(Storages::from_iter([storage(to)]))
}

/// start + i·step in f64 or wrapping i64, which adapters need not have: computed here and uploaded.
pub(crate) fn iota(cx: &Context, op: &Iota, meta: &Meta) -> Result<Storages> {
    let n = meta.shape.len();
    let (start, step) = (op.start.to_i64(), op.step.to_i64());
    let int = move |i: usize| start.wrapping_add(step.wrapping_mul(i as i64));
    let (first, by) = (op.start.to_f64(), op.step.to_f64());
    let float = move |i: usize| first + i as f64 * by;
    let data = match op.dtype {
        DType::F64 => HostData::F64((0..n).map(float).collect()),
        DType::F32 => HostData::F32((0..n).map(|i| float(i) as f32).collect()),
        DType::F16 => HostData::F16((0..n).map(|i| <half::f16 as Element>::from_f64(float(i))).collect()),
        DType::BF16 => HostData::BF16((0..n).map(|i| <half::bf16 as Element>::from_f64(float(i))).collect()),
        DType::I64 => HostData::I64((0..n).map(int).collect()),
        DType::I32 => HostData::I32((0..n).map(|i| int(i) as i32).collect()),
        DType::U8 => HostData::U8((0..n).map(|i| int(i) as u8).collect()),
        DType::Bool => HostData::Bool(vec![false; n]),
    };
    let to = cx.output(meta)?;
    if n > 0 {
        cx.batch.upload(&host::bytes(data.as_slice()), to.buffer());
    }
    Ok(Storages::from_iter([storage(to)]))
}

/// The numbers of a key.
pub(crate) fn random(cx: &Context, op: &Random, meta: &Meta) -> Result<Storages> {
    let dtype = meta.dtype;
    let per_block = random::per_block(op.distribution, dtype);
    // The types that uniform numbers come in.
    let wide = if dtype == DType::F64 { DType::F64 } else { DType::F32 };
    let u = |k: usize| match wide {
        DType::F64 => format!("uniform_double(w[{k}], w[{}])", k + 1),
        _ => format!("uniform_single(w[{k}])"),
    };
    let own = format!("    let w = own_words(i, {per_block}u);\n");
    match op.distribution {
        Distribution::Uniform { low, high } => {
            let below = random::largest_below(low, high, dtype);
            let expr = build(|[u]| (u * (high - low) + low).min(below).cast(dtype));
            numbers(cx, "rand", op, &[wide], &own, &[u(0)], &expr, meta)
        }
        Distribution::Normal { mean, std } => {
            let expr = build(|[u, v, is_odd]| {
                let radius = (Sym::lit(-2.0) * (Sym::lit(1.0) - u).ln()).sqrt();
                let angle = v * Sym::lit(TAU);
                let z = radius * is_odd.select(angle.sin(), angle.cos());
                (z * std + mean).cast(dtype)
            });
            // A pair of numbers shares its words: of f64 the block, else its first half or its second.
            let own = match wide {
                DType::F64 => format!("    let w = block_words(i / {per_block}u);\n"),
                _ => format!(
                    "    let c = block_words(i / {per_block}u);\n    let w = select(c.xyyy, c.zwww, (i & 2u) != 0u);\n"
                ),
            };
            let inputs = match wide {
                DType::F64 => [u(0), u(2), "(i & 1u) != 0u".to_string()],
                _ => [u(0), u(1), "(i & 1u) != 0u".to_string()],
            };
            numbers(cx, "randn", op, &[wide, wide, DType::Bool], &own, &inputs, &expr, meta)
        }
        Distribution::Integer { low, high } => integers(cx, op, low, high, meta),
        Distribution::Bernoulli { p } => {
            let expr = build(|[u]| u.lt(p).cast(dtype));
            numbers(cx, "bernoulli", op, &[DType::F32], &own, &["uniform_single(w[0])".to_string()], &expr, meta)
        }
    }
}

/// The upper 53 bits of two words, the first one above.
const UNIFORM_DOUBLE: &str = "fn uniform_double(high: u32, low: u32) -> f64 {
    return f64(((u64(high) << 32u) | u64(low)) >> 11u) * bitcast<f64>(0x3ca0000000000000lu);
}
";

/// Adds the generator to a kernel; its parameters are the key's.
fn philox(shader: &mut Shader) {
    let [seed_low, seed_high, offset_low, offset_high] = std::array::from_fn(|_| shader.arg());
    let text = include_str!("../../shaders/philox.wgsl")
        .replace("{{SEED_LOW}}", &seed_low)
        .replace("{{SEED_HIGH}}", &seed_high)
        .replace("{{OFFSET_LOW}}", &offset_low)
        .replace("{{OFFSET_HIGH}}", &offset_high);
    shader.push(&text);
}

fn push_key(args: &mut Args, op: &Random) {
    args.push_bits(op.key.seed, true);
    args.push_bits(op.key.offset, true);
}

/// An expression over inputs that follow from the words `w` of the element `i`.
fn numbers(
    cx: &Context,
    name: &'static str,
    op: &Random,
    types: &[DType],
    own: &str,
    inputs: &[String],
    expr: &Expr,
    meta: &Meta,
) -> Result<Storages> {
    let to = cx.output(meta)?;
    let (n, dtype) = (meta.shape.len(), meta.dtype);
    if n > 0 {
        let key = Key::new(name, [expr.code.id(), dtype as u64]);
        let text = || {
            let lowered = lower(name, std::slice::from_ref(expr), types)?;
            let mut shader = Shader::new();
            let count = shader.arg();
            shader.write("to", dtype);
            philox(&mut shader);
            if types[0] == DType::F64 {
                shader.uses(LowType::F64);
                shader.push(UNIFORM_DOUBLE);
            }
            // Product and sum are rounded one by one: the same bits everywhere.
            let body = exactly(&mut shader, &lowered, inputs, &["y0".to_string()]);
            Ok(shader.element(&[("to".to_string(), dtype)], &count, &format!("{own}{body}")))
        };
        let mut args = Args::new();
        args.push(n);
        push_key(&mut args, op);
        push_numbers(&mut args, name, std::slice::from_ref(expr), types)?;
        let windows = [Window::all(to.buffer())];
        cx.run_elements(name, key, text, &windows, &args, n, per_invocation([dtype].into_iter()))?;
    }
    Ok(Storages::from_iter([storage(to)]))
}

/// low + ⌊w·(high − low)/2⁶⁴⌋ of the element's 64-bit word w, in words of 32 bits.
fn integers(cx: &Context, op: &Random, low: i64, high: i64, meta: &Meta) -> Result<Storages> {
    let to = cx.output(meta)?;
    let (n, size) = (meta.shape.len(), meta.dtype.size_bytes());
    if n > 0 {
        let text = || {
            let mut moving = Moving::new(size);
            philox(&mut moving.shader);
            let [range_low, range_high, low, high] = std::array::from_fn(|_| moving.shader.arg());
            let mask = if size == 1 { " & 0xffu" } else { "" };
            Ok(moving.finish(&format!(
                "    let w = own_words(i, 2u);
    // The four products of words; their sum's third and fourth word.
    let carry = mul_high(w.y, {range_low});
    let first = w.y * {range_high};
    let second = w.x * {range_low};
    let sum = carry + first;
    let middle = sum + second;
    let carries = select(0u, 1u, sum < first) + select(0u, 1u, middle < second);
    let a = mul_high(w.y, {range_high});
    let b = mul_high(w.x, {range_low});
    let c = w.x * {range_high};
    let ab = a + b;
    let abc = ab + c;
    let third = abc + carries;
    let fourth = mul_high(w.x, {range_high}) + select(0u, 1u, ab < b) + select(0u, 1u, abc < c) + select(0u, 1u, third < carries);
    let y = third + {low};
    let upper = fourth + {high} + select(0u, 1u, y < third);
    return select(upper, y{mask}, half == 0u);
"
            )))
        };
        let mut args = Moving::args(n, size, 0);
        push_key(&mut args, op);
        args.push_bits(high.wrapping_sub(low) as u64, true);
        args.push_bits(low as u64, true);
        let windows = [Window::all(to.buffer())];
        cx.run_elements(
            "randint",
            Key::new("randint", [size as u64]),
            text,
            &windows,
            &args,
            Moving::words(n, size),
            1,
        )?;
    }
    Ok(Storages::from_iter([storage(to)]))
}
