//! Sums of products over any two operands that can be placed: the planning and the text of `product.wgsl`.

use std::fmt::Write;
use std::ops::Range;

use smallvec::SmallVec;
use tensor_core::expr::lower::{LowType, lower};
use tensor_core::op::{Reduce, ReduceKind};
use tensor_core::plan::Plan;
use tensor_core::{DType, Expr, Meta, Result, Shape, Storages, Tensor};

use super::context::window;
use super::map::{expressions, push_numbers};
use super::rows::{total, wide_tensor};
use super::{Context, map, reduce, storage};
use crate::args::Args;
use crate::batch::Window;
use crate::index;
use crate::memory::Block;
use crate::pipeline::Key;
use crate::shader::{Finished, Shader, names};

/// So long is the sum of one invocation at most: that many iterations of the steps, and of the loop around them.
const MOST_DEPTH: usize = 16_384;
/// So many groups keep a GPU busy.
const BUSY_GROUPS: usize = 128;
/// Parts of a sum are so long at least.
const LEAST_DEPTH: usize = 256;

/// result(batch, m, n) = epilogue(Σ_k a(batch, m, k)·b(batch, k, n), extra…).
pub(super) struct Product<'a> {
    pub(super) name: &'static str,
    pub(super) a: &'a Tensor,
    pub(super) b: &'a Tensor,
    pub(super) extra: &'a [&'a Tensor],
    pub(super) epilogue: Expr,
    /// Strides of the result, the extra inputs, a and b.
    pub(super) batch: Plan,
    /// Strides of the result, the extra inputs and a.
    pub(super) rows: Plan,
    /// Strides of the result, the extra inputs and b.
    pub(super) columns: Plan,
    /// Strides of a and b.
    pub(super) depth: Plan,
    /// Whether a's and b's neighbours lie along k.
    pub(super) along: [bool; 2],
    /// The trailing axes of `columns` and `depth` along which b is a window over an axis of its own; none of a plain operand.
    pub(super) patches: SmallVec<[Patch; 3]>,
}

/// An axis of b whose coordinate is (column·by_column + k·by_depth − before) / divisor: where that is no integer, or
/// outside, b is zero.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patch {
    pub(super) by_column: isize,
    pub(super) by_depth: isize,
    pub(super) before: isize,
    pub(super) divisor: usize,
    pub(super) size: usize,
    pub(super) stride: isize,
}

/// The form of a kernel: what its text depends on besides types and ranks.
#[derive(Clone, Copy)]
struct Form {
    /// Elements of an invocation along each side.
    r: usize,
    /// Along k at once.
    step: usize,
}

impl Form {
    fn tile(self) -> usize {
        16 * self.r
    }

    fn pitch(self) -> usize {
        self.tile() + 1
    }
}

impl Product<'_> {
    /// The result.
    pub(super) fn run(&self, cx: &Context, meta: &Meta) -> Result<Storages> {
        let dtype = self.a.dtype();
        let n = meta.shape.len();
        if n == 0 {
            return Ok(Storages::from_iter([storage(cx.output(meta)?)]));
        }
        let (form, parts) = self.form();
        if parts == 1 {
            let wide = total(meta.dtype);
            let to = cx.output(&Meta::new(meta.shape.clone(), wide))?;
            self.dispatch(cx, form, 1, self.extra, &self.epilogue, &to, n)?;
            return reduce::narrowed(cx, self.name, wide_tensor(to, meta, self.a), meta);
        }
        let sums = Meta::new(Shape::new(&[parts, n]), total(dtype));
        let to = cx.output(&sums)?;
        self.dispatch(cx, form, parts, &[], &Expr::identity(), &to, n)?;
        let to = Tensor::from_storage(storage(to), sums, self.a.place().clone());
        let flat = Meta::new(Shape::new(&[n]), dtype);
        let product = reduce::reduce(cx, &Reduce::new(self.name, ReduceKind::Sum, &[0], false), &[&to], &flat)?;
        with_epilogue(cx, self.name, &self.epilogue, product, self.a, self.extra, meta)
    }

    /// Tiles, and into how many parts sums are cut: by sizes alone, so that the order of a sum is fixed.
    fn form(&self) -> (Form, usize) {
        let step = if self.a.dtype().size_bytes() == 8 { 8 } else { 16 };
        let (rows, columns, depth) = (self.rows.len(), self.columns.len(), self.depth.len());
        let tiles = |tile: usize| self.batch.len() * rows.div_ceil(tile) * columns.div_ceil(tile);
        let r = if tiles(64) >= BUSY_GROUPS { 4 } else { 2 };
        let wanted = (BUSY_GROUPS / tiles(16 * r)).min(depth / LEAST_DEPTH).max(depth.div_ceil(MOST_DEPTH)).max(1);
        // Parts begin at a step, and none is empty.
        let parts = depth.div_ceil(segment(depth, wanted, step)).max(1);
        (Form { r, step }, parts)
    }

    fn dispatch(
        &self,
        cx: &Context,
        form: Form,
        parts: usize,
        extra: &[&Tensor],
        epilogue: &Expr,
        to: &Block,
        n: usize,
    ) -> Result<()> {
        let dtypes: SmallVec<[DType; 4]> =
            std::iter::once(self.a.dtype()).chain(extra.iter().map(|x| x.dtype())).collect();
        // Parts have no extra inputs: neither have the plans.
        let without = |plan: &Plan| {
            let is_left = |&k: &usize| k == 0 || k > self.extra.len() - extra.len();
            let strides = (0..plan.strides.len()).filter(is_left).map(|k| plan.strides[k].clone()).collect();
            Plan { dims: plan.dims.clone(), strides }
        };
        let (batch, rows, columns) = (without(&self.batch), without(&self.rows), without(&self.columns));
        let (across, down) = (columns.len().div_ceil(form.tile()), rows.len().div_ceil(form.tile()));
        let groups = across * down * batch.len() * parts;
        let depth = self.depth.len();
        let mut args = Args::new();
        for size in [groups, across, down, batch.len(), segment(depth, parts, form.step), depth] {
            args.push(size);
        }
        for size in [rows.len(), columns.len(), n] {
            args.push(size);
        }
        let begins = std::iter::once(0).chain(extra.iter().chain([&self.a, &self.b]).map(|x| x.layout().offset()));
        index::push_places(&mut args, &batch, begins);
        let outputs = 1 + extra.len();
        index::push_advance(&mut args, &some(&rows, 0..outputs));
        index::push_advance(&mut args, &some(&columns, 0..outputs));
        index::push_advance(&mut args, &some(&rows, outputs..outputs + 1));
        index::push_advance(&mut args, &some(&self.depth, 0..1));
        self.push_b(&mut args, &some(&columns, outputs..outputs + 1), &some(&self.depth, 1..2));
        push_numbers(&mut args, self.name, std::slice::from_ref(epilogue), &dtypes)?;
        let ranks = [batch.rank(), rows.rank(), columns.rank(), self.depth.rank()];
        let structure = dtypes.iter().map(|&dtype| dtype as u64).chain(ranks.iter().map(|&rank| rank as u64)).chain([
            epilogue.code.id(),
            form.r as u64,
            self.along[0].into(),
            self.along[1].into(),
            self.patches.len() as u64,
            self.is_spread().into(),
        ]);
        let operands = extra.iter().chain([&self.a, &self.b]).map(|x| window(x));
        let windows: SmallVec<[Window<'_>; 8]> = std::iter::once(Window::all(to.buffer())).chain(operands).collect();
        let text = || self.text(form, &dtypes, epilogue, ranks);
        cx.run(self.name, Key::new("product", structure), text, &windows, &args, groups)
    }

    /// Whether elements of b lie apart along an axis: between them are zeros.
    fn is_spread(&self) -> bool {
        self.patches.iter().any(|axis| axis.divisor != 1)
    }

    /// What [`Product::text_b`] reads.
    fn push_b(&self, args: &mut Args, columns: &Plan, depth: &Plan) {
        if self.patches.is_empty() {
            index::push_advance(args, columns);
            index::push_advance(args, depth);
            return;
        }
        let is_spread = self.is_spread();
        index::push_coordinates(args, &columns.dims);
        let plain = |plan: &Plan| plan.strides[0][..plan.rank() - self.patches.len()].to_vec();
        plain(columns).into_iter().for_each(|stride| args.push_signed(stride));
        for axis in &self.patches {
            args.push_signed(axis.by_column);
            args.push_signed(-axis.before);
        }
        index::push_coordinates(args, &depth.dims);
        plain(depth).into_iter().for_each(|stride| args.push_signed(stride));
        self.patches.iter().for_each(|axis| args.push_signed(axis.by_depth));
        for axis in &self.patches {
            if is_spread {
                args.push(axis.divisor);
            }
            args.push(axis.size * axis.divisor);
            args.push_signed(axis.stride);
        }
    }

    /// The functions that place and fetch b; gives whether a place is a structure.
    fn text_b(&self, shader: &mut Shader, t: &str, [columns, depth]: [usize; 2]) -> bool {
        let n = self.patches.len();
        if n == 0 {
            placed(shader, "columns_b", columns);
            placed(shader, "depth_b", depth);
            shader.push(&fetch("b", t));
            return false;
        }
        let fields: String = (0..n).map(|k| format!(" c{k}: u32,")).collect();
        shader.push(&format!("struct Patch {{ at: u32,{fields} }}\n"));
        for (name, rank, is_column) in [("columns_b", columns, true), ("depth_b", depth, false)] {
            let mut body = index::coordinates(shader, "i", rank, "c");
            body.push_str("    var patch: Patch;\n");
            for axis in 0..rank - n {
                let _ = writeln!(body, "    patch.at += c{axis} * {};", shader.arg());
            }
            for k in 0..n {
                let _ = write!(body, "    patch.c{k} = c{} * {}", rank - n + k, shader.arg());
                let _ = if is_column { writeln!(body, " + {};", shader.arg()) } else { writeln!(body, ";") };
            }
            shader.push(&format!("fn {name}(i: u32) -> Patch {{\n{body}    return patch;\n}}\n"));
        }
        let mut body = String::from("    var at = outer.at + inner.at;\n    var is_inside = true;\n");
        for k in 0..n {
            // Ahead of the first element the sum wraps to a number that no size reaches.
            let divisor = self.is_spread().then(|| shader.arg());
            let (limit, stride) = (shader.arg(), shader.arg());
            let _ = writeln!(body, "    let c{k} = outer.c{k} + inner.c{k};");
            let _ = writeln!(body, "    is_inside = is_inside && c{k} < {limit};");
            let _ = match divisor {
                Some(divisor) => writeln!(
                    body,
                    "    let q{k} = c{k} / {divisor};\n    is_inside = is_inside && q{k} * {divisor} == c{k};\n    at += q{k} * {stride};"
                ),
                None => writeln!(body, "    at += c{k} * {stride};"),
            };
        }
        let _ = writeln!(body, "    if is_inside {{\n        return load_b(at);\n    }}\n    return {t}();");
        shader.push(&format!("fn fetch_b(outer: Patch, inner: Patch) -> {t} {{\n{body}}}\n"));
        true
    }

    fn text(&self, form: Form, dtypes: &[DType], epilogue: &Expr, ranks: [usize; 4]) -> Result<Finished> {
        let [batch_rank, rows_rank, columns_rank, depth_rank] = ranks;
        let lowered = lower(self.name, std::slice::from_ref(epilogue), dtypes)?;
        let (register, result) = lowered.results[0];
        let mut shader = Shader::new();
        let [tasks, across, down, batches, segment, depth, rows, columns, n] = std::array::from_fn(|_| shader.arg());
        let t = shader.type_of(dtypes[0]);
        shader.write("to", total(result));
        let extra = names("x", dtypes.len() - 1);
        extra.iter().zip(&dtypes[1..]).for_each(|(name, &dtype)| shader.read(name, dtype));
        ["a", "b"].iter().for_each(|name| shader.read(name, dtypes[0]));
        let written = std::iter::once("to").chain(extra.iter().map(String::as_str));
        let outputs: Vec<String> = written.map(|name| format!("at_{name}")).collect();
        let all: Vec<String> = outputs.iter().cloned().chain(["at_a", "at_b"].map(String::from)).collect();
        let mut places = index::places(&mut shader, batch_rank, "batch", &all);
        let _ = writeln!(places, "    at_to += part * {n};");
        let fields: String = outputs.iter().map(|name| format!(" {name}: u32,")).collect();
        shader.push(&format!("struct Place {{{fields} }}\n"));
        for (name, rank) in [("rows_to", rows_rank), ("columns_to", columns_rank)] {
            let variables: Vec<String> = outputs.iter().map(|name| format!("place.{name}")).collect();
            let body = index::advance(&mut shader, rank, "i", &variables);
            shader
                .push(&format!("fn {name}(i: u32) -> Place {{\n    var place: Place;\n{body}    return place;\n}}\n"));
        }
        placed(&mut shader, "rows_a", rows_rank);
        placed(&mut shader, "depth_a", depth_rank);
        shader.push(&fetch("a", t));
        let is_patch = self.text_b(&mut shader, t, [columns_rank, depth_rank]);
        let a = Side { name: "a", place: "rows_a", first: "first_row", limit: &rows, is_patch: false };
        let b = Side { name: "b", place: "columns_b", first: "first_column", limit: &columns, is_patch };
        let [a, b] = [a.text(form, t, self.along[0]), b.text(form, t, self.along[1])];
        let (r, pitch) = (form.r, form.pitch());
        let read: Vec<String> = (0..r).map(|j| format!("shared_b[at + x + {}u]", 16 * j)).collect();
        let mut products = format!("            let b_row = vec{r}<{t}>({});\n", read.join(", "));
        for i in 0..r {
            let _ = writeln!(products, "            sums[{i}] += shared_a[at + y + {}u] * b_row;", 16 * i);
        }
        // Bytes are summed as i32: what an epilogue sees has wrapped.
        let sum = if dtypes[0] == DType::U8 { "(sums[i][j] & 0xff)" } else { "sums[i][j]" };
        let at = |name: &str| format!("at_{name} + row_at.at_{name} + column_at.at_{name}");
        let loads = extra.iter().map(|name| format!("load_{name}({})", at(name)));
        let inputs: Vec<String> = std::iter::once(sum.to_string()).chain(loads).collect();
        let mut store = expressions(&mut shader, &lowered, "v", &inputs, &["result".to_string()]);
        let is_truth = lowered.instrs[register as usize].ty == LowType::Bool;
        let value = if is_truth { "select(0, 1, result)" } else { "result" };
        let _ = write!(store, "    to[{}] = {value};", at("to"));
        let entry = include_str!("../../shaders/product.wgsl")
            .replace("{{T}}", t)
            .replace("{{SHARED}}", &(form.step * pitch).to_string())
            .replace("{{TASKS}}", &tasks)
            .replace("{{ACROSS}}", &across)
            .replace("{{DOWN}}", &down)
            .replace("{{BATCHES}}", &batches)
            .replace("{{TILE}}", &form.tile().to_string())
            .replace("{{SEGMENT}}", &segment)
            .replace("{{DEPTH}}", &depth)
            .replace("{{PLACES}}", &places)
            .replace("{{OWN}}", &format!("{}{}", a.0, b.0))
            .replace("{{R}}", &r.to_string())
            .replace("{{STEP}}", &form.step.to_string())
            .replace("{{PITCH}}", &pitch.to_string())
            .replace("{{LOADS}}", &format!("{}{}", a.1, b.1))
            .replace("{{PRODUCTS}}", &products)
            .replace("{{ROWS}}", &rows)
            .replace("{{COLUMNS}}", &columns)
            .replace("{{STORE}}", &store);
        Ok(shader.finish(&entry))
    }
}

/// How long parts of a sum are: whole steps.
fn segment(depth: usize, parts: usize, step: usize) -> usize {
    depth.div_ceil(parts).next_multiple_of(step).max(step)
}

/// fn {name}(i): how far from the beginning of an operand its i-th place is.
fn placed(shader: &mut Shader, name: &str, rank: usize) {
    let body = index::advance(shader, rank, "i", &["at".to_string()]);
    shader.push(&format!("fn {name}(i: u32) -> u32 {{\n    var at = 0u;\n{body}    return at;\n}}\n"));
}

/// fn fetch_{name}(outer, inner): the element of a plain operand.
fn fetch(name: &str, t: &str) -> String {
    format!("fn fetch_{name}(outer: u32, inner: u32) -> {t} {{\n    return load_{name}(outer + inner);\n}}\n")
}

/// How one operand's tiles come into shared memory.
struct Side<'a> {
    name: &'a str,
    /// The function that places rows or columns.
    place: &'a str,
    first: &'a str,
    limit: &'a str,
    is_patch: bool,
}

impl Side<'_> {
    /// What an invocation finds out once, and what it does at each step.
    fn text(&self, form: Form, t: &str, is_along: bool) -> (String, String) {
        let Self { name, place, first, limit, is_patch } = self;
        let (step, tile, pitch) = (form.step, form.tile(), form.pitch());
        let n_loads = tile * step / 256;
        // Which element of the tile is the invocation's first, and how far the next one is.
        let (k, outer, apart) = if is_along {
            (format!("lane % {step}u"), format!("lane / {step}u"), 256 / step)
        } else {
            (format!("lane / {tile}u"), format!("lane % {tile}u"), 256 / tile)
        };
        let mut own = format!("    let k_{name} = {k};\n    let outer_{name} = {outer};\n");
        let at = if *is_patch { ".at" } else { "" };
        for j in 0..if is_along { n_loads } else { 1 } {
            let _ = write!(
                own,
                "    let place_{name}{j} = {first} + outer_{name} + {}u;
    var own_{name}{j} = {place}(place_{name}{j});
    own_{name}{j}{at} += at_{name};
",
                j * apart
            );
        }
        let mut loads = String::new();
        for j in 0..n_loads {
            let (own, further_k, further) = if is_along { (j, 0, j * apart) } else { (0, j * apart, 0) };
            let _ = writeln!(
                loads,
                "        {{
            let k = k_{name} + {further_k}u;
            var value: {t};
            if step + k < end && place_{name}{own} < {limit} {{
                value = fetch_{name}(own_{name}{own}, depth_{name}(step + k));
            }}
            shared_{name}[k * {pitch}u + outer_{name} + {further}u] = value;
        }}"
            );
        }
        (own, loads)
    }
}

/// A product's storages through an epilogue, as a kernel of its own.
pub(super) fn with_epilogue(
    cx: &Context,
    name: &'static str,
    epilogue: &Expr,
    product: Storages,
    like: &Tensor,
    extra: &[&Tensor],
    meta: &Meta,
) -> Result<Storages> {
    if epilogue.is_identity() && extra.is_empty() {
        return Ok(product);
    }
    let product = product.into_iter().next().expect("invariant: a product has one output");
    let plain = Meta::new(meta.shape.clone(), like.dtype());
    let product = Tensor::from_storage(product, plain, like.place().clone());
    let inputs: SmallVec<[&Tensor; 4]> = std::iter::once(&product).chain(extra.iter().copied()).collect();
    let to = cx.output(meta)?;
    map::run(cx, name, std::slice::from_ref(epilogue), &inputs, &meta.shape, &[to.buffer()])?;
    Ok(Storages::from_iter([storage(to)]))
}

/// A plan of some axes of operands with these strides.
pub(super) fn plan(dims: &[usize], strides: &[SmallVec<[isize; 4]>], axes: Range<usize>) -> Plan {
    let strides = strides.iter().map(|all| SmallVec::from_slice(&all[axes.clone()])).collect();
    Plan::of(&dims[axes], strides)
}

/// The plan of some of its operands.
fn some(plan: &Plan, operands: Range<usize>) -> Plan {
    Plan { dims: plan.dims.clone(), strides: plan.strides[operands].iter().cloned().collect() }
}
