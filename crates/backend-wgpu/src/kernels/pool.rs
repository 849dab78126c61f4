//! Pooling: the largest element of windows and where it is, averages, and the adjoint of the average.

use std::fmt::Write;

use smallvec::{SmallVec, smallvec};
use tensor_core::op::{AvgPoolGrad, Pool, PoolKind, Reduce, ReduceKind};
use tensor_core::{Dims, Meta, Result, Shape, Storages, Tensor};

use super::context::{GROUP, window};
use super::moves::Moving;
use super::rows::{total, wide_tensor};
use super::{Context, order, reduce, storage};
use crate::args::Args;
use crate::batch::Window;
use crate::index;
use crate::memory::Block;
use crate::pipeline::Key;
use crate::shader::{Finished, Shader};

/// What is folded.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fold {
    /// The position of the largest, over a window.
    Largest,
    /// The same over the positions that segments found.
    LargestOfParts,
    Mean,
    /// The shares of the windows that an element is in.
    MeanGrad,
}

/// A kernel over windows.
struct Pooling<'a> {
    op: &'a Pool,
    fold: Fold,
    x: &'a Tensor,
    /// The result's sizes.
    shape: &'a [usize],
    /// The sizes that windows are cut from.
    spatial: &'a [usize],
}

/// Values, and for the maximum their positions in the plane.
pub(crate) fn pool(cx: &Context, op: &Pool, x: &Tensor, outputs: &[Meta]) -> Result<Storages> {
    let pooling = Pooling { op, fold: Fold::Largest, x, shape: &outputs[0].shape, spatial: &x.dims()[2..] };
    match op.kind {
        PoolKind::Max => pooling.largest(cx, outputs),
        PoolKind::Avg { .. } => Pooling { fold: Fold::Mean, ..pooling }.sums(cx, "avg_pool", &outputs[0]),
    }
}

/// Each gradient spread evenly over its window.
pub(crate) fn avg_grad(cx: &Context, op: &AvgPoolGrad, g: &Tensor, meta: &Meta) -> Result<Storages> {
    Pooling { op: &op.pool, fold: Fold::MeanGrad, x: g, shape: &meta.shape, spatial: &op.spatial }.sums(
        cx,
        "avg_pool_grad",
        meta,
    )
}

impl Pooling<'_> {
    fn rank(&self) -> usize {
        self.spatial.len()
    }

    /// Along each axis, how many elements a fold looks at.
    fn depths(&self) -> Dims {
        let op = self.op;
        let windows = |axis: usize| {
            // Those that an element can be in.
            let reach = (op.kernel[axis] - 1) * op.window.dilation[axis];
            self.x.dims()[2 + axis].min(reach / op.window.stride[axis] + 1)
        };
        (0..self.rank()).map(|axis| if self.fold == Fold::MeanGrad { windows(axis) } else { op.kernel[axis] }).collect()
    }

    /// Whether means are over what is inside the input alone.
    fn counts(&self) -> bool {
        let window = &self.op.window;
        self.op.kind == PoolKind::Avg { count_padding: false }
            && window.before.iter().chain(&window.after).any(|&n| n > 0)
    }

    fn sums(&self, cx: &Context, name: &'static str, meta: &Meta) -> Result<Storages> {
        let (n, depth) = (meta.shape.len(), self.depths().iter().product());
        let wide = total(meta.dtype);
        let segments = reduce::segments(n.max(1), depth, 1);
        let to = cx.pool.take(segments * n * wide.size_bytes())?;
        self.run(cx, name, &[&to], None, depth, segments)?;
        if segments == 1 {
            return reduce::narrowed(cx, name, wide_tensor(to, meta, self.x), meta);
        }
        let parts = Meta::new(Shape::new(&[segments, n]), wide);
        let parts = Tensor::from_storage(storage(to), parts, self.x.place().clone());
        let flat = Meta::new(Shape::new(&[n]), meta.dtype);
        reduce::reduce(cx, &Reduce::new(name, ReduceKind::Sum, &[0], false), &[&parts], &flat)
    }

    fn largest(&self, cx: &Context, outputs: &[Meta]) -> Result<Storages> {
        let (n, depth) = (outputs[0].shape.len(), self.op.kernel.iter().product());
        let [values, places] = [cx.output(&outputs[0])?, cx.output(&outputs[1])?];
        let segments = reduce::segments(n.max(1), depth, 1);
        // Elements of less than a word are picked by a kernel of their own.
        let is_word = self.x.dtype().size_bytes() >= 4;
        let to: SmallVec<[&Block; 2]> = if is_word { smallvec![&places, &values] } else { smallvec![&places] };
        if segments == 1 {
            self.run(cx, "max_pool", &to, None, depth, 1)?;
        } else {
            let parts = cx.pool.take(4 * n * segments)?;
            self.run(cx, "max_pool", &[&parts], None, depth, segments)?;
            let last = Self { fold: Fold::LargestOfParts, ..*self };
            last.run(cx, "max_pool", &to, Some(&parts), segments, 1)?;
        }
        drop(to);
        if !is_word && n > 0 {
            self.pick(cx, &values, &places, n)?;
        }
        Ok(Storages::from_iter([storage(values), storage(places)]))
    }

    fn run(
        &self,
        cx: &Context,
        name: &'static str,
        to: &[&Block],
        parts: Option<&Block>,
        depth: usize,
        segments: usize,
    ) -> Result<()> {
        let n: usize = self.shape.iter().product();
        let mut args = Args::new();
        for size in [n * segments, n, depth.div_ceil(segments), depth] {
            args.push(size);
        }
        self.push_row(&mut args);
        let (moves, counts) = (&self.op.window, self.counts());
        let own = &self.x.layout().strides()[2..];
        match self.fold {
            Fold::LargestOfParts => self.push_place(&mut args),
            Fold::Largest | Fold::Mean => {
                index::push_coordinates(&mut args, &self.depths());
                for axis in 0..self.rank() {
                    for size in [moves.stride[axis], moves.before[axis], moves.dilation[axis], self.spatial[axis]] {
                        args.push(size);
                    }
                    args.push_signed(own[axis]);
                }
            }
            Fold::MeanGrad => {
                index::push_coordinates(&mut args, &self.depths());
                for axis in 0..self.rank() {
                    let reach = (self.op.kernel[axis] - 1) * moves.dilation[axis];
                    let (stride, before, dilation) = (moves.stride[axis], moves.before[axis], moves.dilation[axis]);
                    for size in [before, reach, stride, dilation, self.x.dims()[2 + axis]] {
                        args.push(size);
                    }
                    args.push_signed(own[axis]);
                }
            }
        }
        if matches!(self.fold, Fold::Mean | Fold::MeanGrad) {
            if counts {
                for axis in 0..self.rank() {
                    let (stride, before, dilation) = (moves.stride[axis], moves.before[axis], moves.dilation[axis]);
                    for size in [stride, before, dilation, self.op.kernel[axis], self.spatial[axis]] {
                        args.push(size);
                    }
                }
            } else {
                args.push(self.op.kernel.iter().product());
            }
        }
        let operands = std::iter::once(window(self.x)).chain(parts.map(|parts| Window::all(parts.buffer())));
        let windows: SmallVec<[Window<'_>; 4]> =
            to.iter().map(|block| Window::all(block.buffer())).chain(operands).collect();
        let structure = [self.fold as u64, self.x.dtype() as u64, self.rank() as u64, counts.into(), to.len() as u64];
        let groups = (n * segments).div_ceil(GROUP);
        cx.run(name, Key::new("pool", structure), || Ok(self.text(to.len() > 1)), &windows, &args, groups)
    }

    fn text(&self, has_values: bool) -> Finished {
        let mut shader = Shader::new();
        let [tasks, count, segment, depth] = std::array::from_fn(|_| shader.arg());
        let is_mean = matches!(self.fold, Fold::Mean | Fold::MeanGrad);
        let dtype = self.x.dtype();
        if is_mean {
            shader.write("to", total(dtype));
            shader.read("x", dtype);
        } else {
            shader.write_words("to");
            if has_values {
                shader.write_words("values");
            }
            // The earliest key wins: NaN's is 0.
            order::read(&mut shader, "x", dtype, true, 0);
            order::compare(&mut shader);
        }
        if self.fold == Fold::LargestOfParts {
            shader.read_words("parts");
        }
        let mut places = self.row(&mut shader);
        let window = match self.fold {
            Fold::LargestOfParts => format!(
                "        let place = parts[r * {count} + i];\n        is_inside = place != 0xffffffffu;\n{}",
                self.place(&mut shader)
            ),
            Fold::Largest | Fold::Mean => self.window(&mut shader),
            Fold::MeanGrad => self.windows(&mut shader),
        };
        let (take, store) = if is_mean {
            let t = shader.type_of(dtype);
            let prefix = if self.fold == Fold::Mean { "c" } else { "p" };
            let n = self.count(&mut shader, prefix);
            let _ = writeln!(places, "    var sum: {t};");
            if self.fold == Fold::Mean {
                ("            sum += load_x(at);".to_string(), format!("    to[task] = sum / {t}({n});"))
            } else {
                (format!("            sum += load_x(at) / {t}({n});"), "    to[task] = sum;".to_string())
            }
        } else {
            places.push_str("    var best = LAST;\n    var best_at = row;\n");
            let take = "            let next = vec3<u32>(key_x(at), place);
            if precedes(next, best) {
                best = next;
                best_at = at;
            }";
            let store = match (has_values, dtype.size_bytes()) {
                (false, _) => "",
                (true, 8) => {
                    "    values[task * 2u] = raw_x(best_at, 0u);\n    values[task * 2u + 1u] = raw_x(best_at, 1u);\n"
                }
                (true, _) => "    values[task] = raw_x(best_at, 0u);\n",
            };
            (take.to_string(), format!("    to[task] = best.z;\n{store}"))
        };
        let entry = include_str!("../../shaders/pool.wgsl")
            .replace("{{TASKS}}", &tasks)
            .replace("{{COUNT}}", &count)
            .replace("{{SEGMENT}}", &segment)
            .replace("{{DEPTH}}", &depth)
            .replace("{{PLACES}}", &places)
            .replace("{{WINDOW}}", &window)
            .replace("{{TAKE}}", &take)
            .replace("{{STORE}}", &store);
        shader.finish(&entry)
    }

    /// The coordinates `c0`, … of the result's element i, and where its channel begins.
    fn row(&self, shader: &mut Shader) -> String {
        let mut text = index::coordinates(shader, "i", 2 + self.rank(), "c");
        let [begin, outer, channel] = std::array::from_fn(|_| shader.arg());
        let _ = writeln!(text, "    let row = {begin} + c0 * {outer} + c1 * {channel};");
        text
    }

    fn push_row(&self, args: &mut Args) {
        index::push_coordinates(args, self.shape);
        args.push(self.x.layout().offset());
        self.x.layout().strides()[..2].iter().for_each(|&stride| args.push_signed(stride));
    }

    /// Advances `at` to the element at `place` in the plane.
    fn place(&self, shader: &mut Shader) -> String {
        let mut text = index::coordinates(shader, "place", self.rank(), "q");
        for axis in 0..self.rank() {
            let _ = writeln!(text, "    at += q{axis} * {};", shader.arg());
        }
        text
    }

    fn push_place(&self, args: &mut Args) {
        index::push_coordinates(args, self.spatial);
        self.x.layout().strides()[2..].iter().for_each(|&stride| args.push_signed(stride));
    }

    /// The r-th element of a window: `at`, `place`, and whether it is inside.
    fn window(&self, shader: &mut Shader) -> String {
        let mut text = index::coordinates(shader, "r", self.rank(), "k");
        text.push_str("        var place = 0u;\n");
        for axis in 0..self.rank() {
            let [stride, before, dilation, size, step] = std::array::from_fn(|_| shader.arg());
            let c = axis + 2;
            // Ahead of the first element the difference wraps to a number that no size reaches.
            let _ = write!(
                text,
                "        let u{axis} = c{c} * {stride} - {before} + k{axis} * {dilation};
        is_inside = is_inside && u{axis} < {size};
        place = place * {size} + u{axis};
        at += u{axis} * {step};
"
            );
        }
        text
    }

    /// The r-th window that an element can be in: `at`, its coordinates `p2`, …, and whether the element is in it.
    fn windows(&self, shader: &mut Shader) -> String {
        let mut text = index::coordinates(shader, "r", self.rank(), "k");
        for axis in 0..self.rank() {
            let [before, reach, stride, dilation, size, step] = std::array::from_fn(|_| shader.arg());
            let c = axis + 2;
            let _ = write!(
                text,
                "        let end{axis} = c{c} + {before};
        let least{axis} = select(0u, (end{axis} - {reach} + {stride} - 1u) / {stride}, end{axis} > {reach});
        let p{c} = least{axis} + k{axis};
        let reach{axis} = end{axis} - p{c} * {stride};
        is_inside = is_inside && p{c} < {size} && reach{axis} <= {reach} && reach{axis} % {dilation} == 0u;
        at += p{c} * {step};
"
            );
        }
        text
    }

    /// By how many elements the sum of a window is divided: of the one at the coordinates `{prefix}2`, ….
    fn count(&self, shader: &mut Shader, prefix: &str) -> String {
        if !self.counts() {
            return shader.arg();
        }
        let mut counts = Vec::new();
        for axis in 0..self.rank() {
            let [stride, before, dilation, taps, size] = std::array::from_fn(|_| shader.arg());
            shader.push(&format!(
                "fn count{axis}(p: u32) -> u32 {{
    let first = i32(p * {stride}) - i32({before});
    let step = i32({dilation});
    let low = (max(-first, 0) + step - 1) / step;
    let high = min(i32({taps}) - 1, (i32({size}) - 1 - first) / step);
    return u32(high - low + 1);
}}
"
            ));
            counts.push(format!("count{axis}({prefix}{})", axis + 2));
        }
        counts.join(" * ")
    }

    /// The elements at positions.
    fn pick(&self, cx: &Context, values: &Block, places: &Block, n: usize) -> Result<()> {
        let size = self.x.dtype().size_bytes();
        let text = || {
            let mut moving = Moving::new(size);
            moving.shader.raw("x", size);
            moving.shader.read_words("places");
            let row = self.row(&mut moving.shader);
            let place = self.place(&mut moving.shader);
            Ok(moving.finish(&format!(
                "{row}    var at = row;\n    let place = places[i];\n{place}    return raw_x(at, half);\n"
            )))
        };
        let mut args = Moving::args(n, size, 0);
        self.push_row(&mut args);
        self.push_place(&mut args);
        let windows = [Window::all(values.buffer()), window(self.x), Window::all(places.buffer())];
        let key = Key::new("pool_values", [size as u64, self.rank() as u64]);
        cx.run_elements("max_pool", key, text, &windows, &args, Moving::words(n, size), 1)
    }
}
