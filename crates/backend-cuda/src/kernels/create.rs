//! Tensors from nothing: a number per element that follows from its index, then an expression over it.

use std::f64::consts::TAU;
use std::fmt::Write;

use tensor_core::expr::lower::{LowType, Param, lower};
use tensor_core::expr::{Expr, Sym, build};
use tensor_core::op::{Distribution, Fill, Iota, Random};
use tensor_core::{DType, Meta, Result, Storages, random};

use super::map::push_numbers;
use super::{Context, Text, storage};
use crate::args::Args;
use crate::emit::{self, Body};
use crate::module::Key;

/// One value everywhere.
pub(crate) fn fill(cx: &Context, op: &Fill, meta: &Meta) -> Result<Storages> {
    let block = cx.output(meta)?;
    let (n, dtype) = (meta.shape.len(), meta.dtype);
    if n > 0 {
        let function = cx.modules.get(Key::new("full", [dtype as u64]), || {
            let mut kernel = Text::of_elements();
            kernel.wide("%to");
            kernel.number(LowType::of(dtype), "%x");
            kernel.advance("%to", "%i", dtype.size_bytes());
            kernel.push(&emit::store(dtype, "%to", "%x"));
            Ok(kernel.element("full"))
        })?;
        let mut args = Args::default();
        args.push(n as u64);
        args.push(block.address());
        args.push(Param { number: 0, dtype }.bits(op.value));
        cx.launch("full", function, n, &args)?;
    }
    Ok(Storages::from_iter([storage(block)]))
}

/// start + i·step, in f64 or wrapping i64.
pub(crate) fn iota(cx: &Context, op: &Iota, meta: &Meta) -> Result<Storages> {
    let dtype = meta.dtype;
    let (wide, expr) = if dtype.is_int() {
        let (start, step) = (op.start.to_i64(), op.step.to_i64());
        (DType::I64, build(|[i]| (i * step + start).cast(dtype)))
    } else {
        let (start, step) = (op.start.to_f64(), op.step.to_f64());
        (DType::F64, build(|[i]| (i * step + start).cast(dtype)))
    };
    let prelude = |kernel: &mut Text| match wide {
        DType::I64 => kernel.line("cvt.s64.u32 %x0, %i;"),
        _ => kernel.line("cvt.rn.f64.u32 %x0, %i;"),
    };
    generate(cx, "arange", [wide as u64], &[wide], prelude, None, &expr, meta)
}

/// The numbers of a key: its seed is a parameter, its offset is read from the device's counter.
pub(crate) fn random(cx: &Context, op: &Random, meta: &Meta) -> Result<Storages> {
    let dtype = meta.dtype;
    let per_block = random::per_block(op.distribution, dtype);
    let draw = |range| Some(Draw { key: op.key, range });
    // The types that uniform numbers come in.
    let wide = if dtype == DType::F64 { DType::F64 } else { DType::F32 };
    match op.distribution {
        Distribution::Uniform { low, high } => {
            let below = random::largest_below(low, high, dtype);
            let expr = build(|[u]| (u * (high - low) + low).min(below).cast(dtype));
            let prelude = |kernel: &mut Text| {
                words(kernel, per_block);
                uniform(kernel, wide, 0, "%x0");
            };
            generate(cx, "rand", [0, wide as u64], &[wide], prelude, draw(None), &expr, meta)
        }
        Distribution::Normal { mean, std } => {
            let expr = build(|[u, v, is_odd]| {
                let radius = (Sym::lit(-2.0) * (Sym::lit(1.0) - u).ln()).sqrt();
                let angle = v * Sym::lit(TAU);
                let z = radius * is_odd.select(angle.sin(), angle.cos());
                (z * std + mean).cast(dtype)
            });
            let prelude = |kernel: &mut Text| {
                // A pair of numbers shares its words.
                kernel.register("pred", "%is_odd");
                kernel.line("{ .reg .b32 %k; and.b32 %k, %i, 1; setp.ne.b32 %is_odd, %k, 0; }");
                words(kernel, per_block);
                if wide == DType::F64 {
                    // The block gives two numbers; both read all of its words.
                    kernel.line("mov.b32 %w0, %c0; mov.b32 %w1, %c1; mov.b32 %w2, %c2; mov.b32 %w3, %c3;");
                } else {
                    kernel.line(
                        "{ .reg .pred %k; .reg .b32 %b; and.b32 %b, %i, 2; setp.ne.b32 %k, %b, 0; \
                                 selp.b32 %w0, %c2, %c0, %k; selp.b32 %w2, %c3, %c1, %k; }",
                    );
                }
                uniform(kernel, wide, 0, "%x0");
                uniform(kernel, wide, 2, "%x1");
                kernel.line("mov.pred %x2, %is_odd;");
            };
            generate(cx, "randn", [1, wide as u64], &[wide, wide, DType::Bool], prelude, draw(None), &expr, meta)
        }
        Distribution::Integer { low, high } => {
            let expr = build(|[x]| (x + low).cast(dtype));
            let prelude = |kernel: &mut Text| {
                words(kernel, per_block);
                kernel.register("b64", "%range");
                let slot = kernel.slots.next();
                kernel.line(format!("ld.param.u64 %range, {slot};"));
                kernel.line("mov.b64 %x0, {%w1, %w0}; mul.hi.u64 %x0, %x0, %range;");
            };
            let range = high.wrapping_sub(low) as u64;
            generate(cx, "randint", [2], &[DType::I64], prelude, draw(Some(range)), &expr, meta)
        }
        Distribution::Bernoulli { p } => {
            let expr = build(|[u]| u.lt(p).cast(dtype));
            let prelude = |kernel: &mut Text| {
                words(kernel, per_block);
                uniform(kernel, DType::F32, 0, "%x0");
            };
            generate(cx, "bernoulli", [3], &[DType::F32], prelude, draw(None), &expr, meta)
        }
    }
}

/// Which random numbers are drawn, and how many integers there are to draw from.
struct Draw {
    key: random::Key,
    range: Option<u64>,
}

/// Runs an expression over registers `%x0`, `%x1`, … that `prelude` computes from the index `%i`, and from what is drawn.
fn generate(
    cx: &Context,
    name: &'static str,
    structure: impl IntoIterator<Item = u64>,
    inputs: &[DType],
    prelude: impl FnOnce(&mut Text),
    draw: Option<Draw>,
    expr: &Expr,
    meta: &Meta,
) -> Result<Storages> {
    let block = cx.output(meta)?;
    let (n, dtype) = (meta.shape.len(), meta.dtype);
    if n > 0 {
        let key = Key::new(name, structure.into_iter().chain([expr.code.id(), dtype as u64]));
        let function = cx.modules.get(key, || {
            let lowered = lower(name, std::slice::from_ref(expr), inputs)?;
            let mut kernel = Text::of_elements();
            kernel.wide("%to");
            let registers: Vec<String> = (0..inputs.len()).map(|k| format!("%x{k}")).collect();
            registers.iter().zip(inputs).for_each(|(register, &dtype)| kernel.value(dtype, register));
            prelude(&mut kernel);
            let numbers: Vec<String> = (0..lowered.params.len()).map(|k| format!("%number{k}")).collect();
            for (register, param) in numbers.iter().zip(&lowered.params) {
                kernel.number(LowType::of(param.dtype), register);
            }
            kernel.value(dtype, "%y");
            let outputs = ["%y".to_string()];
            kernel.push(&Body { lowered: &lowered, inputs: &registers, numbers: &numbers, outputs: &outputs }.text());
            kernel.advance("%to", "%i", dtype.size_bytes());
            kernel.push(&emit::store(dtype, "%to", "%y"));
            Ok(kernel.element(name))
        })?;
        let mut args = Args::default();
        args.push(n as u64);
        args.push(block.address());
        let launch = |mut args: Args| {
            push_numbers(&mut args, name, std::slice::from_ref(expr), inputs)?;
            cx.launch(name, function, n, &args)
        };
        match draw {
            None => launch(args)?,
            Some(Draw { key, range }) => cx.counter.draw(cx, key.offset, random::n_blocks(n), |offset| {
                [key.seed, offset].into_iter().chain(range).for_each(|v| args.push(v));
                launch(args)
            })?,
        }
    }
    Ok(Storages::from_iter([storage(block)]))
}

/// Philox's block of the element (`%c0` to `%c3`), and the element's own words from `%w0` on: one of four, or two.
fn words(kernel: &mut Text, per_block: usize) {
    for register in ["%c0", "%c1", "%c2", "%c3", "%w0", "%w1", "%w2", "%w3", "%key0", "%key1"] {
        kernel.register("b32", register);
    }
    let [seed, place] = [kernel.slots.next(), kernel.slots.next()];
    let mut text = String::new();
    let _ = write!(
        text,
        "    {{ .reg .b64 %seed, %counter, %own; ld.param.u64 %seed, {seed};
      ld.param.u64 %counter, {place}; ld.global.u64 %counter, [%counter];
      .reg .b32 %b; shr.u32 %b, %i, {}; cvt.u64.u32 %own, %b; add.s64 %counter, %counter, %own;
      mov.b64 {{%key0, %key1}}, %seed; mov.b64 {{%c0, %c1}}, %counter; mov.b32 %c2, 0; mov.b32 %c3, 0; }}
",
        per_block.ilog2()
    );
    for round in 0..10 {
        if round > 0 {
            text.push_str("    add.s32 %key0, %key0, 0x9E3779B9; add.s32 %key1, %key1, 0xBB67AE85;\n");
        }
        text.push_str(
            "    { .reg .b32 %h0, %l0, %h1, %l1; mul.hi.u32 %h0, %c0, 0xD2511F53; mul.lo.u32 %l0, %c0, 0xD2511F53;
      mul.hi.u32 %h1, %c2, 0xCD9E8D57; mul.lo.u32 %l1, %c2, 0xCD9E8D57;
      xor.b32 %c0, %h1, %c1; xor.b32 %c0, %c0, %key0; mov.b32 %c1, %l1;
      xor.b32 %c2, %h0, %c3; xor.b32 %c2, %c2, %key1; mov.b32 %c3, %l0; }\n",
        );
    }
    // The element's place in its block.
    text.push_str(if per_block == 2 {
        "    { .reg .pred %q; .reg .b32 %b; and.b32 %b, %i, 1; setp.ne.b32 %q, %b, 0;
      selp.b32 %w0, %c2, %c0, %q; selp.b32 %w1, %c3, %c1, %q; }\n"
    } else {
        "    { .reg .pred %q; .reg .b32 %b, %s, %t; and.b32 %b, %i, 1; setp.ne.b32 %q, %b, 0;
      selp.b32 %s, %c1, %c0, %q; selp.b32 %t, %c3, %c2, %q;
      and.b32 %b, %i, 2; setp.ne.b32 %q, %b, 0; selp.b32 %w0, %t, %s, %q; }\n"
    });
    kernel.push(&text);
}

/// A uniform number from the words `%w{k}` (and `%w{k+1}` for f64).
fn uniform(kernel: &mut Text, dtype: DType, k: usize, to: &str) {
    if dtype == DType::F64 {
        kernel.line(format!(
            "{{ .reg .b64 %b; mov.b64 %b, {{%w{}, %w{k}}}; shr.u64 %b, %b, 11; cvt.rn.f64.u64 {to}, %b; \
             mul.rn.f64 {to}, {to}, 0d3CA0000000000000; }}",
            k + 1
        ));
    } else {
        kernel.line(format!(
            "{{ .reg .b32 %b; shr.u32 %b, %w{k}, 8; cvt.rn.f32.u32 {to}, %b; mul.rn.f32 {to}, {to}, 0f33800000; }}"
        ));
    }
}
