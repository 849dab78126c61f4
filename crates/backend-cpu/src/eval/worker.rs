//! One thread's evaluation: walks a range part by part, loads what cannot be read in place, and runs the steps.

use std::cell::RefCell;

use bytemuck::{Zeroable, cast_slice, cast_slice_mut};
use smallvec::SmallVec;
use tensor_core::DType;

use super::CHUNK;
use super::bound::{Bound, Pattern, Source, Strided, slot};
use super::convert::widen;
use super::lane::{Lane, LaneType, Stored};
use super::plan::{From, Step, To};
use super::space::{Part, Space};
use super::vector::Operand;
use crate::storage::{LINE_BYTES, Line};
use crate::{Elem, for_dtype};

/// Lanes of a chunk, of any type. Empty until it is first needed.
type Register = Box<[Line]>;

/// Lines of a register.
const REGISTER_LINES: usize = CHUNK * 8 / LINE_BYTES;

thread_local! {
    /// Registers of this thread that no worker has now.
    static SPARE: RefCell<Vec<Register>> = const { RefCell::new(Vec::new()) };
}

/// Computes ranges of a [`Bound`] on one thread.
pub(crate) struct Worker<'b, 'a> {
    bound: &'b Bound<'a>,
    registers: SmallVec<[Register; 8]>,
    /// Per input, where it cannot be read in place.
    loads: SmallVec<[Register; 4]>,
    /// Bit i: input i repeats in every piece and is loaded.
    repeated: u64,
}

/// Where an input's lanes of the current part are.
#[derive(Clone, Copy)]
enum Now<'a> {
    /// Lanes in memory.
    Memory(&'a [u8]),
    /// From this byte on in the input's own register.
    Loaded(usize),
    Scalar(u64),
}

impl<'b, 'a> Worker<'b, 'a> {
    pub(super) fn new(bound: &'b Bound<'a>) -> Self {
        Self { bound, registers: SmallVec::new(), loads: SmallVec::new(), repeated: 0 }
    }

    /// Computes elements `start..start + out.len()` of the only output, counted row-major over the bound shape.
    pub(crate) fn fill<T: Elem>(&mut self, start: usize, out: &mut [T]) {
        self.run(start, out.len(), &[], &mut [cast_slice_mut(out)]);
    }

    /// [`fill`](Self::fill) where [`Input::Given`](super::Input::Given) stands for these values.
    pub(crate) fn fill_from<L: Lane, T: Elem>(&mut self, start: usize, given: &[L], out: &mut [T]) {
        self.run(start, out.len(), cast_slice(given), &mut [cast_slice_mut(out)]);
    }

    /// Computes `len` elements from `start` on of all outputs, each handed over as the bytes of its range.
    pub(crate) fn run(&mut self, start: usize, len: usize, given: &[u8], outputs: &mut [&mut [u8]]) {
        let bound = self.bound;
        let plan = &bound.evaluator.plan;
        let mut done = 0;
        while done < len {
            let part = bound.space.part(start + done, start + len);
            let mut parts: SmallVec<[&mut [u8]; 4]> = SmallVec::new();
            for (out, dtype) in outputs.iter_mut().zip(&plan.outputs) {
                let size = dtype.size_bytes();
                parts.push(&mut out[done * size..(done + part.len) * size]);
            }
            let mut now: SmallVec<[Now<'_>; 8]> = SmallVec::new();
            for i in 0..bound.sources.len() {
                now.push(self.load(i, start + done, done, part, given, &parts));
            }
            for step in &plan.steps {
                self.step(step, part.len, &now, &mut parts);
            }
            done += part.len;
        }
    }

    /// Makes an input's lanes of a part readable.
    fn load<'n>(
        &mut self,
        i: usize,
        position: usize,
        done: usize,
        part: Part,
        given: &'n [u8],
        outputs: &[&mut [u8]],
    ) -> Now<'n>
    where
        'a: 'n,
    {
        let bound = self.bound;
        let n = part.len;
        match &bound.sources[i] {
            Source::Unread => Now::Scalar(0),
            &Source::Scalar(slot) => Now::Scalar(slot),
            &Source::Flat(bytes) => {
                let size = bound.evaluator.plan.inputs[i].size_bytes();
                Now::Memory(&bytes[position * size..][..n * size])
            }
            &Source::FlatHalf(bytes, dtype) => {
                load_consecutive(dtype, &bytes[2 * position..], n, self.register(i));
                Now::Loaded(0)
            }
            Source::Given => {
                let size = LaneType::of(bound.evaluator.plan.inputs[i]).size_bytes();
                Now::Memory(&given[done * size..][..n * size])
            }
            &Source::Old(k) => {
                load_consecutive(bound.evaluator.plan.inputs[i], outputs[k], n, self.register(i));
                Now::Loaded(0)
            }
            Source::Strided(x) => self.load_strided(i, x, part),
        }
    }

    fn load_strided(&mut self, i: usize, x: &'b Strided<'a>, part: Part) -> Now<'a> {
        let space = &self.bound.space;
        let base = x.offset as isize + space.run_position(part.run, &x.strides);
        match x.pattern {
            Pattern::Constant => Now::Scalar(slot(x.bytes, x.dtype, base as usize)),
            Pattern::Consecutive => {
                let size = x.dtype.size_bytes();
                let first = base as usize + part.piece_start + part.skip;
                Now::Memory(&x.bytes[first * size..][..part.len * size])
            }
            Pattern::Repeated => {
                if self.repeated >> i & 1 == 0 {
                    self.repeated |= 1 << i;
                    load_any(x, space, base, 0, space.piece, self.register(i));
                }
                Now::Loaded(part.skip * LaneType::of(x.dtype).size_bytes())
            }
            Pattern::Any => {
                load_any(x, space, base, part.piece_start + part.skip, part.len, self.register(i));
                Now::Loaded(0)
            }
        }
    }

    /// The register that input `i` is loaded to.
    fn register(&mut self, i: usize) -> &mut [u8] {
        if self.loads.len() <= i {
            self.loads.resize_with(i + 1, Register::default);
        }
        ready(&mut self.loads[i])
    }

    #[inline]
    fn step(&mut self, step: &Step, n: usize, now: &[Now<'_>], outputs: &mut [&mut [u8]]) {
        match step.to {
            To::Output(k) => {
                let (registers, loads) = (&self.registers, &self.loads);
                let scalars = &self.bound.evaluator.scalars;
                step.run(|k| operand(step.from[k], now, registers, loads, scalars), outputs[k as usize]);
            }
            To::Register(r) => {
                let r = r as usize;
                if self.registers.len() <= r {
                    self.registers.resize_with(r + 1, Register::default);
                }
                let mut target = std::mem::take(&mut self.registers[r]);
                let (registers, loads) = (&self.registers, &self.loads);
                let scalars = &self.bound.evaluator.scalars;
                let out = &mut ready(&mut target)[..n * step.out_bytes];
                step.run(|k| operand(step.from[k], now, registers, loads, scalars), out);
                self.registers[r] = target;
            }
            To::Scalar(_) => unreachable!("invariant: scalars are computed before"),
        }
    }
}

#[inline(always)]
fn operand<'n>(
    from: From,
    now: &[Now<'n>],
    registers: &'n [Register],
    loads: &'n [Register],
    scalars: &[u64],
) -> Operand<'n> {
    match from {
        From::Register(r) => Operand::Vector(cast_slice(&registers[r as usize])),
        From::Scalar(s) => Operand::Scalar(scalars[s as usize]),
        From::Input(i) => match now[i as usize] {
            Now::Memory(bytes) => Operand::Vector(bytes),
            Now::Loaded(skip) => Operand::Vector(&cast_slice(&loads[i as usize])[skip..]),
            Now::Scalar(slot) => Operand::Scalar(slot),
        },
    }
}

/// The bytes of a register, made if it was not yet.
fn ready(register: &mut Register) -> &mut [u8] {
    if register.is_empty() {
        let spare = SPARE.with_borrow_mut(Vec::pop);
        *register = spare.unwrap_or_else(|| vec![Line::zeroed(); REGISTER_LINES].into());
    }
    cast_slice_mut(register)
}

impl Drop for Worker<'_, '_> {
    fn drop(&mut self) {
        if self.registers.is_empty() && self.loads.is_empty() {
            return;
        }
        let all = self.registers.drain(..).chain(self.loads.drain(..)).filter(|r| !r.is_empty());
        SPARE.with_borrow_mut(|spare| spare.extend(all));
    }
}

/// Loads `n` consecutive elements.
fn load_consecutive(dtype: DType, bytes: &[u8], n: usize, register: &mut [u8]) {
    for_dtype!(dtype, T => {
        let lanes = cast_slice_mut::<u8, <T as Stored>::Lane>(register);
        widen(cast_slice::<u8, T>(&bytes[..n * size_of::<T>()]), &mut lanes[..n]);
    });
}

/// Loads `n` elements of the run at `base`, from its element `first` on.
fn load_any(x: &Strided<'_>, space: &Space, base: isize, first: usize, n: usize, register: &mut [u8]) {
    for_dtype!(x.dtype, T => {
        let lanes = cast_slice_mut::<u8, <T as Stored>::Lane>(register);
        let (dims, strides) = (&space.dims[space.split..], &x.strides[space.split..]);
        gather(cast_slice::<u8, T>(x.bytes), base, dims, strides, first, &mut lanes[..n]);
    });
}

/// Reads elements `first..` in row-major order of the axes `dims`, row by row of the innermost one.
fn gather<T: Stored>(source: &[T], base: isize, dims: &[usize], strides: &[isize], first: usize, out: &mut [T::Lane]) {
    let last = dims.len() - 1;
    let mut index: SmallVec<[usize; 4]> = SmallVec::from_elem(0, dims.len());
    let mut rest = first;
    let mut position = base;
    for axis in (0..dims.len()).rev() {
        index[axis] = rest % dims[axis];
        rest /= dims[axis];
        position += index[axis] as isize * strides[axis];
    }
    let mut out = out;
    while !out.is_empty() {
        let n = (dims[last] - index[last]).min(out.len());
        let (row, after) = out.split_at_mut(n);
        match strides[last] {
            0 => row.fill(source[position as usize].load()),
            1 => widen(&source[position as usize..][..n], row),
            stride => {
                let mut p = position;
                for lane in row {
                    *lane = source[p as usize].load();
                    p += stride;
                }
            }
        }
        out = after;
        // The next row.
        position -= index[last] as isize * strides[last];
        index[last] = 0;
        for axis in (0..last).rev() {
            index[axis] += 1;
            position += strides[axis];
            if index[axis] < dims[axis] {
                break;
            }
            position -= dims[axis] as isize * strides[axis];
            index[axis] = 0;
        }
    }
}
