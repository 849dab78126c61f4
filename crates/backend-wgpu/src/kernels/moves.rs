//! Elements as they are, whatever their type: each word of the result is put together from the elements' bits, so that no
//! adapter's features matter. Copies between any two layouts, concatenation, padding.

use std::fmt::Write;

use smallvec::SmallVec;
use tensor_core::Element;
use tensor_core::expr::lower::Param;
use tensor_core::op::{Concat, Pad};
use tensor_core::plan::Plan;
use tensor_core::{DType, Meta, Result, Storages, Tensor};

use super::context::{Operand, pieces, window};
use super::{Context, block, storage};
use crate::args::Args;
use crate::batch::Window;
use crate::index;
use crate::memory::Block;
use crate::pipeline::Key;
use crate::shader::{Finished, Shader, names};

/// The same elements, row-major.
pub(crate) fn copy(cx: &Context, x: &Tensor) -> Result<Storages> {
    Ok(Storages::from_iter([storage(contiguous(cx, x)?)]))
}

/// A row-major copy of a tensor.
pub(crate) fn contiguous(cx: &Context, x: &Tensor) -> Result<Block> {
    let to = cx.output(&x.meta())?;
    if x.is_empty() {
        return Ok(to);
    }
    let size = x.dtype().size_bytes();
    let offset = (x.layout().offset() * size) as u64;
    if x.is_contiguous() && offset.is_multiple_of(4) {
        let len_bytes = ((x.len() * size) as u64).next_multiple_of(4);
        cx.batch.copy(block(x).buffer(), offset, to.buffer(), 0, len_bytes);
        return Ok(to);
    }
    let plan =
        Plan::of(x.dims(), SmallVec::from_iter([row_major(x.dims()), SmallVec::from_slice(x.layout().strides())]));
    let operands = [
        Operand { buffer: to.buffer(), begin: 0, size_bytes: size },
        Operand { buffer: block(x).buffer(), begin: x.layout().offset(), size_bytes: size },
    ];
    for piece in pieces(cx, "copy", plan, &operands)? {
        let (n, rank) = (piece.plan.len(), piece.plan.rank());
        let rest = Plan { dims: piece.plan.dims, strides: piece.plan.strides[1..].iter().cloned().collect() };
        let mut args = Moving::args(n, size, piece.begins[0]);
        index::push_places(&mut args, &rest, [piece.begins[1]]);
        let key = Key::new("copy", [size as u64, rank as u64]);
        let text = || {
            let mut moving = Moving::new(size);
            moving.shader.raw("x", size);
            let body = index::places(&mut moving.shader, rank, "i", &["at".to_string()]);
            Ok(moving.finish(&format!("{body}    return raw_x(at, half);\n")))
        };
        cx.run_elements("copy", key, text, &piece.windows, &args, Moving::words(n, size), 1)?;
    }
    Ok(to)
}

/// A kernel that moves elements: `raw(i, half)` gives the bits of the result's i-th element, of one of 64 bits the lower
/// (half 0) or upper word.
pub(crate) struct Moving {
    pub(crate) shader: Shader,
    size: usize,
    count: String,
    begin: String,
}

impl Moving {
    /// For elements of so many bytes.
    pub(crate) fn new(size: usize) -> Self {
        let mut shader = Shader::new();
        let (count, begin) = (shader.arg(), shader.arg());
        shader.write_words("to");
        Self { shader, size, count, begin }
    }

    /// The words of `n` elements.
    pub(crate) fn words(n: usize, size: usize) -> usize {
        (n * size).div_ceil(4)
    }

    /// The parameters, for `n` elements that go to the buffer's element `begin` and those after it.
    pub(crate) fn args(n: usize, size: usize, begin: usize) -> Args {
        let mut args = Args::new();
        args.push(n);
        args.push(begin * size / 4);
        args
    }

    /// The kernel around the body of `raw`.
    pub(crate) fn finish(mut self, body: &str) -> Finished {
        let per = 4 / self.size.min(4);
        let (count, begin) = (self.count, self.begin);
        self.shader.push(&format!("fn raw(i: u32, half: u32) -> u32 {{\n{body}}}\n"));
        let word = match self.size {
            8 => "    to[BEGIN + first] = raw(first / 2u, first % 2u);\n".to_string(),
            4 => "    to[BEGIN + first] = raw(first, 0u);\n".to_string(),
            size => format!(
                "    var word = 0u;
    for (var e = 0u; e < {per}u; e++) {{
        let i = first * {per}u + e;
        if i < {count} {{
            word |= raw(i, 0u) << (e * {}u);
        }}
    }}
    to[BEGIN + first] = word;
",
                8 * size
            ),
        };
        let words = match self.size {
            8 => format!("({count} * 2u)"),
            4 => count,
            _ => format!("(({count} + {}u) / {per}u)", per - 1),
        };
        let entry = include_str!("../../shaders/element.wgsl")
            .replace("{{PER}}", "1")
            .replace("{{COUNT}}", &words)
            .replace("{{STORES}}", &word.replace("BEGIN", &begin));
        self.shader.finish(&entry)
    }
}

/// The strides of row-major elements.
pub(crate) fn row_major(dims: &[usize]) -> SmallVec<[isize; 4]> {
    let mut strides: SmallVec<[isize; 4]> = dims.iter().map(|_| 1).collect();
    for axis in (1..dims.len()).rev() {
        strides[axis - 1] = strides[axis] * dims[axis] as isize;
    }
    strides
}

/// Inputs that one kernel joins: adapters bind eight buffers at least.
const JOINED: usize = 7;

/// One input after another.
pub(crate) fn concat(cx: &Context, op: &Concat, inputs: &[&Tensor], meta: &Meta) -> Result<Storages> {
    if inputs.len() > JOINED {
        // Groups first, then the groups.
        let mut parts = Vec::new();
        for group in inputs.chunks(JOINED) {
            let mut part = meta.clone();
            let joined: usize = group.iter().map(|x| x.dims()[op.axis]).sum();
            part.shape = meta.shape.iter().enumerate().map(|(k, &n)| if k == op.axis { joined } else { n }).collect();
            let joined = concat(cx, op, group, &part)?.remove(0);
            parts.push(Tensor::from_storage(joined, part, inputs[0].place().clone()));
        }
        return concat(cx, op, &parts.iter().collect::<Vec<_>>(), meta);
    }
    let to = cx.output(meta)?;
    let (n, size, rank) = (meta.shape.len(), meta.dtype.size_bytes(), meta.shape.rank());
    if n > 0 {
        let text = || {
            let mut moving = Moving::new(size);
            let operands = names("x", inputs.len());
            operands.iter().for_each(|name| moving.shader.raw(name, size));
            let shader = &mut moving.shader;
            let mut body = index::coordinates(shader, "i", rank, "c");
            let _ = writeln!(body, "    var along = c{};", op.axis);
            for name in &operands {
                let length = shader.arg();
                let mut at = shader.arg();
                for axis in 0..rank {
                    let c = if axis == op.axis { "along".to_string() } else { format!("c{axis}") };
                    let _ = write!(at, " + {c} * {}", shader.arg());
                }
                let _ = writeln!(body, "    if along < {length} {{\n        return raw_{name}({at}, half);\n    }}");
                let _ = writeln!(body, "    along -= {length};");
            }
            body.push_str("    return 0u;\n");
            Ok(moving.finish(&body))
        };
        let mut args = Moving::args(n, size, 0);
        index::push_coordinates(&mut args, &meta.shape);
        for x in inputs {
            args.push(x.dims()[op.axis]);
            args.push(x.layout().offset());
            x.layout().strides().iter().for_each(|&stride| args.push_signed(stride));
        }
        let windows: SmallVec<[Window<'_>; 8]> =
            std::iter::once(Window::all(to.buffer())).chain(inputs.iter().map(|x| window(x))).collect();
        let key = Key::new("concat", [size, rank, op.axis, inputs.len()].map(|part| part as u64));
        cx.run_elements("concat", key, text, &windows, &args, Moving::words(n, size), 1)?;
    }
    Ok(Storages::from_iter([storage(to)]))
}

/// Surrounded by a value, and with it between the elements.
pub(crate) fn pad(cx: &Context, op: &Pad, x: &Tensor, meta: &Meta) -> Result<Storages> {
    let to = cx.output(meta)?;
    let (n, size, rank) = (meta.shape.len(), meta.dtype.size_bytes(), meta.shape.rank());
    if n > 0 {
        let text = || {
            let mut moving = Moving::new(size);
            let shader = &mut moving.shader;
            shader.raw("x", size);
            let (low, high) = (shader.arg(), shader.arg());
            let mut body = index::coordinates(shader, "i", rank, "c");
            let _ = writeln!(body, "    var at = {};\n    var is_inside = true;", shader.arg());
            for axis in 0..rank {
                let [before, step, length, stride] = std::array::from_fn(|_| shader.arg());
                // Ahead of the first one the difference wraps to a number that no size reaches.
                let _ = write!(
                    body,
                    "    let d{axis} = c{axis} - {before};
    let q{axis} = d{axis} / {step};
    is_inside = is_inside && c{axis} >= {before} && q{axis} < {length} && q{axis} * {step} == d{axis};
    at += q{axis} * {stride};
"
                );
            }
            let _ = write!(
                body,
                "    if is_inside {{\n        return raw_x(at, half);\n    }}\n    return select({high}, {low}, half == 0u);\n"
            );
            Ok(moving.finish(&body))
        };
        let mut args = Moving::args(n, size, 0);
        args.push_bits(stored_bits(op.value, meta.dtype), true);
        index::push_coordinates(&mut args, &meta.shape);
        args.push(x.layout().offset());
        for axis in 0..rank {
            args.push(op.before[axis]);
            args.push(op.interior[axis] + 1);
            args.push(x.dims()[axis]);
            args.push_signed(x.layout().strides()[axis]);
        }
        let windows = [Window::all(to.buffer()), window(x)];
        let key = Key::new("pad", [size as u64, rank as u64]);
        cx.run_elements("pad", key, text, &windows, &args, Moving::words(n, size), 1)?;
    }
    Ok(Storages::from_iter([storage(to)]))
}

/// The bits of a number as an element of this type.
pub(crate) fn stored_bits(value: tensor_core::Number, dtype: DType) -> u64 {
    match dtype {
        DType::F16 => <half::f16 as Element>::from_f64(value.to_f64()).to_bits().into(),
        DType::BF16 => <half::bf16 as Element>::from_f64(value.to_f64()).to_bits().into(),
        dtype => Param { number: 0, dtype }.bits(value),
    }
}
