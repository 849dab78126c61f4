//! Stable sort: a bitonic network over keys with their places (`order.rs`), of which no two are equal.
//!
//! Lanes are padded to a power of two with keys that come last. A ladder of two: steps within 512 keys go through shared
//! memory, many in one dispatch (`sort.wgsl`); steps over larger distances are a dispatch each.

use smallvec::SmallVec;
use tensor_core::op::Sort;
use tensor_core::plan::Plan;
use tensor_core::{Meta, Result, Storages, Tensor};

use super::context::window;
use super::moves::{Moving, row_major};
use super::{Context, order, storage};
use crate::args::Args;
use crate::batch::Window;
use crate::index;
use crate::memory::Block;
use crate::pipeline::Key;
use crate::shader::{Finished, Shader};

/// Keys of a group in shared memory.
const SHARED: usize = 512;

/// Values in order, and their positions before.
pub(crate) fn sort(cx: &Context, op: &Sort, x: &Tensor, outputs: &[Meta]) -> Result<Storages> {
    let blocks = [cx.output(&outputs[0])?, cx.output(&outputs[1])?];
    if !x.is_empty() {
        let padded = x.dims()[op.axis].next_power_of_two();
        let n = x.len() / x.dims()[op.axis] * padded;
        let words = x.dtype().size_bytes().div_ceil(4);
        let (keys, places) = (cx.pool.take(4 * words * n)?, cx.pool.take(4 * n)?);
        let lanes = Lanes { op, x, padded, n, words, keys: &keys, places: &places };
        lanes.fill(cx)?;
        lanes.network(cx)?;
        lanes.finish(cx, &blocks)?;
    }
    Ok(blocks.into_iter().map(storage).collect())
}

/// The keys of all lanes, one lane after the other.
struct Lanes<'a> {
    op: &'a Sort,
    x: &'a Tensor,
    /// Keys of a lane.
    padded: usize,
    /// Keys of all lanes.
    n: usize,
    /// Words of a key.
    words: usize,
    keys: &'a Block,
    places: &'a Block,
}

impl<'a> Lanes<'a> {
    fn windows(&self) -> [Window<'a>; 2] {
        [Window::all(self.keys.buffer()), Window::all(self.places.buffer())]
    }

    /// Writes the keys of the operand's elements, and of what pads them.
    fn fill(&self, cx: &Context) -> Result<()> {
        let (axis, dtype) = (self.op.axis, self.x.dtype());
        // The axis last, so that a lane's keys lie together.
        let turned = |of: &[isize]| -> SmallVec<[isize; 4]> {
            (0..of.len()).filter(|&a| a != axis).chain([axis]).map(|a| of[a]).collect()
        };
        let dims: SmallVec<[usize; 4]> =
            (0..self.x.rank()).filter(|&a| a != axis).map(|a| self.x.dims()[a]).chain([self.padded]).collect();
        let plan = Plan::of(&dims, SmallVec::from_iter([turned(self.x.layout().strides())]));
        let (rank, descending, words) = (plan.rank(), self.op.descending, self.words);
        let mut args = Args::new();
        args.push(self.n);
        index::push_places(&mut args, &plan, [self.x.layout().offset()]);
        args.push(self.padded - 1);
        args.push(self.x.dims()[axis]);
        let text = || {
            let mut shader = Shader::new();
            let count = shader.arg();
            keys(&mut shader, words);
            // NaN comes after all numbers, in either direction.
            order::read(&mut shader, "x", dtype, descending, u32::MAX);
            let places = index::places(&mut shader, rank, "first", &["at_x".to_string()]);
            let (mask, depth) = (shader.arg(), shader.arg());
            Ok(each(
                shader,
                &count,
                &format!(
                    "    let place = first & {mask};
    if place >= {depth} {{
        put(first, LAST);
        return;
    }}
{places}    put(first, vec3<u32>(key_x(at_x), place));
"
                ),
            ))
        };
        let [keys, places] = self.windows();
        let key = Key::new("sort_fill", [dtype as u64, rank as u64, descending.into()]);
        cx.run_elements("sort", key, text, &[keys, places, window(self.x)], &args, self.n, 1)
    }

    fn network(&self, cx: &Context) -> Result<()> {
        if self.padded > 1 {
            self.within(cx, 2, self.padded.min(SHARED))?;
        }
        let mut run = 2 * SHARED;
        while run <= self.padded {
            let mut distance = run / 2;
            while distance >= SHARED {
                self.step(cx, run, distance)?;
                distance /= 2;
            }
            self.within(cx, run, run)?;
            run *= 2;
        }
        Ok(())
    }

    /// The steps of runs within groups.
    fn within(&self, cx: &Context, first: usize, last: usize) -> Result<()> {
        let mut args = Args::new();
        [self.n, first, last, self.padded].into_iter().for_each(|v| args.push(v));
        let text = || {
            let mut shader = Shader::new();
            let [count, first, last, padded] = std::array::from_fn(|_| shader.arg());
            keys(&mut shader, self.words);
            let entry = include_str!("../../shaders/sort.wgsl")
                .replace("{{COUNT}}", &count)
                .replace("{{FIRST}}", &first)
                .replace("{{LAST}}", &last)
                .replace("{{PADDED}}", &padded);
            Ok(shader.finish(&entry))
        };
        let key = Key::new("sort_within", [self.words as u64]);
        cx.run("sort", key, text, &self.windows(), &args, self.n.div_ceil(SHARED))
    }

    /// One step of a run: an invocation per pair.
    fn step(&self, cx: &Context, run: usize, distance: usize) -> Result<()> {
        let mut args = Args::new();
        // The last run is the whole lane, upwards.
        let turn = if run == self.padded { 0 } else { run };
        [self.n / 2, turn, distance].into_iter().for_each(|v| args.push(v));
        let text = || {
            let mut shader = Shader::new();
            let [count, turn, distance] = std::array::from_fn(|_| shader.arg());
            keys(&mut shader, self.words);
            Ok(each(
                shader,
                &count,
                &format!(
                    "    let low = first / {distance} * {distance} * 2u + first % {distance};
    let high = low + {distance};
    let a = key(low);
    let b = key(high);
    if precedes(b, a) == ((low & {turn}) == 0u) {{
        put(low, b);
        put(high, a);
    }}
"
                ),
            ))
        };
        let key = Key::new("sort_step", [self.words as u64]);
        cx.run_elements("sort", key, text, &self.windows(), &args, self.n / 2, 1)
    }

    /// Writes the positions, and the elements that are at them.
    fn finish(&self, cx: &Context, to: &[Block; 2]) -> Result<()> {
        let (axis, dims) = (self.op.axis, self.x.dims());
        let mut beside: SmallVec<[isize; 4]> = SmallVec::from_slice(self.x.layout().strides());
        let along = std::mem::replace(&mut beside[axis], 0);
        // A lane's keys lie together, lanes in the order of the other axes.
        let mut lanes = SmallVec::<[usize; 4]>::from_slice(dims);
        lanes[axis] = 1;
        let mut at: SmallVec<[isize; 4]> =
            row_major(&lanes).iter().map(|stride| stride * self.padded as isize).collect();
        at[axis] = 1;
        let plan = Plan::of(dims, SmallVec::from_iter([at, beside]));
        let (n, rank) = (self.x.len(), plan.rank());
        for (is_value, meta) in [(true, self.x.dtype()), (false, tensor_core::DType::I64)] {
            let size = meta.size_bytes();
            let mut args = Moving::args(n, size, 0);
            index::push_places(&mut args, &plan, [0, self.x.layout().offset()]);
            args.push_signed(along);
            let text = || {
                let mut moving = Moving::new(size);
                moving.shader.read_words("places");
                let names = ["at", "at_x"].map(String::from);
                let places = index::places(&mut moving.shader, rank, "i", &names);
                let along = moving.shader.arg();
                let value = if is_value {
                    moving.shader.raw("x", size);
                    format!("raw_x(at_x + places[at] * {along}, half)")
                } else {
                    "select(0u, places[at], half == 0u)".to_string()
                };
                Ok(moving.finish(&format!("{places}    return {value};\n")))
            };
            let mut windows = vec![Window::all(to[usize::from(!is_value)].buffer()), self.windows()[1]];
            windows.extend(is_value.then(|| window(self.x)));
            let key = Key::new("sort_finish", [is_value.into(), size as u64, rank as u64]);
            cx.run_elements("sort", key, text, &windows, &args, Moving::words(n, size), 1)?;
        }
        Ok(())
    }
}

/// Adds the keys of so many words with their places: `key(i)` reads one, `put(i, key)` writes it.
fn keys(shader: &mut Shader, words: usize) {
    shader.write_words("keys");
    shader.write_words("places");
    order::compare(shader);
    shader.push(match words {
        1 => {
            "fn key(i: u32) -> vec3<u32> {
    return vec3<u32>(keys[i], 0u, places[i]);
}
fn put(i: u32, key: vec3<u32>) {
    keys[i] = key.x;
    places[i] = key.z;
}
"
        }
        _ => {
            "fn key(i: u32) -> vec3<u32> {
    return vec3<u32>(keys[i * 2u], keys[i * 2u + 1u], places[i]);
}
fn put(i: u32, key: vec3<u32>) {
    keys[i * 2u] = key.x;
    keys[i * 2u + 1u] = key.y;
    places[i] = key.z;
}
"
        }
    });
}

/// A kernel with an invocation for each of `count`, of the number `first`.
fn each(shader: Shader, count: &str, body: &str) -> Finished {
    let entry = include_str!("../../shaders/element.wgsl")
        .replace("{{PER}}", "1")
        .replace("{{COUNT}}", count)
        .replace("{{STORES}}", body);
    shader.finish(&entry)
}
