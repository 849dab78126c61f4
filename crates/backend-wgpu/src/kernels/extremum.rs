//! Positions of extrema along an axis.

use tensor_core::op::ArgReduce;
use tensor_core::plan::Plan;
use tensor_core::{Meta, Result, Storages, Tensor};

use super::context::{GROUP, window};
use super::{Context, order, reduce, rows, storage};
use crate::args::Args;
use crate::batch::Window;
use crate::index;
use crate::memory::Block;
use crate::pipeline::Key;
use crate::shader::{Finished, Shader};

/// The first position of the extremum; NaN is one. Long rows are cut into segments, whose positions are compared again.
pub(crate) fn arg_reduce(cx: &Context, op: &ArgReduce, x: &Tensor, meta: &Meta) -> Result<Storages> {
    let to = cx.output(meta)?;
    let n = meta.shape.len();
    if n > 0 {
        let (kept, folded) = reduce::plans(&[x], &[op.axis]);
        let depth = folded.len();
        let threads = rows::threads(&kept, &folded, 0, 1);
        let segments = reduce::segments(n, depth, threads);
        let rows = Rows { max: op.max, x, kept, folded };
        if segments == 1 {
            rows.run(cx, threads, depth, 1, None, &to)?;
        } else {
            let parts = cx.pool.take(4 * n * segments)?;
            rows.run(cx, threads, depth, segments, None, &parts)?;
            let threads = if segments < GROUP { 1 } else { GROUP };
            rows.run(cx, threads, segments, 1, Some(&parts), &to)?;
        }
    }
    Ok(Storages::from_iter([storage(to)]))
}

struct Rows<'a> {
    max: bool,
    x: &'a Tensor,
    kept: Plan,
    folded: Plan,
}

impl Rows<'_> {
    /// Compares `depth` elements per row, in so many segments; with `parts` those at the positions that they hold. Positions
    /// of segments go to words, those of whole rows to i64.
    fn run(
        &self,
        cx: &Context,
        threads: usize,
        depth: usize,
        segments: usize,
        parts: Option<&Block>,
        to: &Block,
    ) -> Result<()> {
        let (n, dtype) = (self.kept.len(), self.x.dtype());
        let mut args = Args::new();
        args.push(n);
        args.push(depth);
        args.push(depth.div_ceil(segments));
        args.push(n * segments);
        index::push_places(&mut args, &self.kept, [self.x.layout().offset()]);
        index::push_advance(&mut args, &self.folded);
        let mut windows = vec![Window::all(to.buffer()), window(self.x)];
        windows.extend(parts.map(|parts| Window::all(parts.buffer())));
        let is_whole = segments == 1;
        let flags = [threads as u64, self.max.into(), is_whole.into(), parts.is_some().into()];
        let structure = [dtype as u64, self.kept.rank() as u64, self.folded.rank() as u64];
        let key = Key::new("arg_reduce", flags.into_iter().chain(structure));
        let groups = (n * segments).div_ceil(GROUP / threads);
        cx.run(
            if self.max { "argmax" } else { "argmin" },
            key,
            || Ok(self.text(threads, is_whole, parts.is_some())),
            &windows,
            &args,
            groups,
        )
    }

    fn text(&self, threads: usize, is_whole: bool, has_parts: bool) -> Finished {
        let mut shader = Shader::new();
        let [rows, depth, segment, tasks] = std::array::from_fn(|_| shader.arg());
        shader.write_words("to");
        // The earliest key wins: NaN's is 0.
        order::read(&mut shader, "x", self.x.dtype(), self.max, 0);
        order::compare(&mut shader);
        if has_parts {
            shader.read_words("parts");
        }
        let places = index::places(&mut shader, self.kept.rank(), "row", &["row_x".to_string()]);
        let advance = index::advance(&mut shader, self.folded.rank(), "place", &["at".to_string()]);
        let place = if has_parts { format!("parts[r * {rows} + row]") } else { "r".to_string() };
        let mut folds = format!(
            "    var best = LAST;
    for (var r = base + own; r < end; r += {threads}u) {{
        let place = {place};
        var at = row_x;
{advance}        let next = vec3<u32>(key_x(at), place);
        if precedes(next, best) {{
            best = next;
        }}
    }}
"
        );
        let (number, own) = if threads == 1 { ("number * 256u + lane", "0u") } else { ("number", "lane") };
        if threads > 1 {
            folds.push_str(
                "    shared_best[lane] = best;
    for (var half = 128u; half > 0u; half /= 2u) {
        workgroupBarrier();
        if lane < half && precedes(shared_best[lane + half], shared_best[lane]) {
            shared_best[lane] = shared_best[lane + half];
        }
    }
    best = shared_best[lane];
",
            );
        }
        let write = if is_whole {
            "        to[task * 2u] = best.z;\n        to[task * 2u + 1u] = 0u;\n"
        } else {
            "        to[task] = best.z;\n"
        };
        let shared = if threads > 1 { "var<workgroup> shared_best: array<vec3<u32>, 256>;" } else { "" };
        let entry = include_str!("../../shaders/rows.wgsl")
            .replace("{{SUBGROUP}}", "")
            .replace("{{SHARED}}", shared)
            .replace(
                "{{ROW}}",
                &format!(
                    "    let task = {number};\n    if task >= {tasks} {{\n        return;\n    }}\n    let own = {own};"
                ),
            )
            .replace("{{ROWS}}", &rows)
            .replace("{{SEGMENT}}", &segment)
            .replace("{{DEPTH}}", &depth)
            .replace("{{PLACES}}", &places)
            .replace("{{FOLDS}}", &folds)
            .replace("{{RESULT}}", "")
            .replace("{{TOTALS}}", &format!("    if own == 0u {{\n{write}    }}"));
        shader.finish(&entry)
    }
}
