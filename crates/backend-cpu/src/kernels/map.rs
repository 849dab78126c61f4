//! Elementwise expressions over whole tensors.

use smallvec::SmallVec;
use tensor_core::op::Map;
use tensor_core::{DType, Meta, Result, Storages, Tensor};

use super::copy;
use crate::eval::{CHUNK, Evaluator, Input};
use crate::{Buffer, Context, threads};

/// Aimed at per piece of work that a thread takes.
const PIECE_NS: usize = 30_000;

/// Elements from which a transposed input is made row-major first: going through tiles saves more than the pass costs.
const WORTH_TURNING: usize = 4096;

/// y_k = e_k(x_0, x_1, …).
pub(crate) fn run(op: &Map, inputs: &[&Tensor], outputs: &[Meta], cx: &Context<'_>) -> Result<Storages> {
    let mut dtypes: SmallVec<[DType; 4]> = SmallVec::new();
    let mut row_major: SmallVec<[Option<Tensor>; 4]> = SmallVec::new();
    for x in inputs {
        dtypes.push(x.dtype());
        row_major.push(if x.len() >= WORTH_TURNING { turned(x, cx)? } else { None });
    }
    let mut operands: SmallVec<[Input<'_>; 4]> = SmallVec::new();
    for (x, row_major) in inputs.iter().zip(&row_major) {
        operands.push(Input::Tensor(row_major.as_ref().unwrap_or(x)));
    }
    let evaluator = Evaluator::new(op.name, &op.exprs, &dtypes)?;
    let mut buffers: SmallVec<[Buffer; 1]> = SmallVec::new();
    for meta in outputs {
        buffers.push(cx.output(meta)?);
    }
    let shape = &outputs[0].shape;
    let bound = evaluator.bind(shape, &operands);
    let n = shape.len();
    let work_ns = evaluator.work_ns(n);
    if !threads::is_worthwhile(work_ns) {
        let mut outs: SmallVec<[&mut [u8]; 4]> = SmallVec::new();
        for buffer in &mut buffers {
            outs.push(buffer.bytes_mut());
        }
        bound.worker().run(0, n, &[], &mut outs);
    } else {
        let len = (n / work_ns.div_ceil(PIECE_NS)).next_multiple_of(CHUNK);
        let mut rest: SmallVec<[(&mut [u8], usize); 4]> =
            buffers.iter_mut().zip(outputs).map(|(b, meta)| (b.bytes_mut(), meta.dtype.size_bytes())).collect();
        let pieces = (0..n).step_by(len).map(|start| {
            let n = len.min(n - start);
            let mut piece: SmallVec<[&mut [u8]; 4]> = SmallVec::new();
            for (bytes, size) in &mut rest {
                let (head, tail) = std::mem::take(bytes).split_at_mut(n * *size);
                piece.push(head);
                *bytes = tail;
            }
            (start, n, piece)
        });
        threads::for_each(work_ns, pieces, |(start, n, mut piece)| bound.worker().run(start, n, &[], &mut piece));
    }
    Ok(buffers.into_iter().map(Buffer::into_storage).collect())
}

/// A row-major copy of a transposed input.
fn turned(x: &Tensor, cx: &Context<'_>) -> Result<Option<Tensor>> {
    if !copy::is_tiled(x.layout()) {
        return Ok(None);
    }
    let meta = x.meta();
    let mut buffer = cx.output(&meta)?;
    copy::to_bytes(x, buffer.bytes_mut());
    Ok(Some(Tensor::from_storage(buffer.into_storage(), meta, x.place().clone())))
}

#[cfg(test)]
mod tests;
