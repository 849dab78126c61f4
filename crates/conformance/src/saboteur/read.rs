//! Faults in what a kernel reads: its op's parameters, its inputs and how they lie in memory.

use std::collections::HashMap;

use tensor_core::op::{Conv, Gather, MatMul, Pool, Random, Reduce, ReduceKind, Scan, ScanKind, ScatterAdd, Window};
use tensor_core::{DType, Expr, HostData, Layout, Op, Result, Tensor};

use super::Fault;
use super::host::{each, edited, get, set, to_tf32};

/// What is run instead of the op on its inputs.
pub(super) fn through(fault: Fault, op: &Op, inputs: &[Tensor]) -> Result<(Op, Vec<Tensor>)> {
    let mut op = op.clone();
    let mut inputs = inputs.to_vec();
    match fault {
        Fault::IgnoresAStride | Fault::IgnoresAnOffset | Fault::IgnoresASign => {
            inputs = inputs.iter().map(|x| x.with_layout(misread(fault, x.layout()))).collect();
        }
        Fault::SkipsATail => skip_a_tail(&op, &mut inputs)?,
        Fault::MishandlesNan => skip_nan(&op, &mut inputs)?,
        Fault::TakesTheLastTie => {
            if let Op::ArgReduce(reduce) = &op {
                inputs[0] = inputs[0].flip(reduce.axis as i64)?;
            }
        }
        Fault::SortsUnstably => {
            if let Op::Sort(sort) = &op {
                inputs[0] = inputs[0].flip(sort.axis as i64)?;
            }
        }
        Fault::ForgetsARepeatedIndex => {
            if let (Op::ScatterAdd(scatter), [_, index, source]) = (&op, &inputs[..]) {
                inputs[2] = last_sources(scatter.axis, index, source)?;
            }
        }
        Fault::WrapsIndices => wrap_indices(&op, &mut inputs)?,
        Fault::SwapsOperands => {
            if let (Op::Map(map), [a, b]) = (&op, &inputs[..])
                && map.name == "sub"
                && a.dtype() == b.dtype()
            {
                inputs.swap(0, 1);
            }
        }
        Fault::IgnoresGroups => {
            if let Op::Conv(Conv { groups, .. }) = &op {
                let first = inputs[0].narrow(1, 0, inputs[0].dims()[1] / groups)?;
                inputs[0] = Tensor::cat(&vec![&first; *groups], 1)?;
            }
        }
        Fault::SwapsPadding => {
            if let Op::Conv(Conv { window, .. }) | Op::Pool(Pool { window, .. }) = &mut op {
                let Window { before, after, .. } = window;
                std::mem::swap(before, after);
            }
        }
        Fault::SkipsAnEpilogue => {
            if let Op::MatMul(MatMul { epilogue }) | Op::Conv(Conv { epilogue, .. }) = &mut op {
                *epilogue = Expr::identity();
                inputs.truncate(2);
            }
        }
        Fault::MultipliesInTf32 => {
            if matches!(op, Op::MatMul(_) | Op::Conv(_)) {
                for x in inputs.iter_mut().take(2) {
                    let dtype = x.dtype();
                    *x = edited(x, |data| each(data, |v| to_tf32(v, dtype)))?;
                }
            }
        }
        Fault::DrawsOtherNumbers => {
            if let Op::Random(Random { key, .. }) = &mut op {
                key.seed = key.seed.wrapping_add(1);
            }
        }
        // In what is written.
        Fault::OffByTenTolerances
        | Fault::DropsTheLastElement
        | Fault::WrongPast65535Groups
        | Fault::WrongFoldSeed
        | Fault::FlushesSubnormals
        | Fault::SaturatesIntegers
        | Fault::OneGradientMissing
        | Fault::RoundsThroughF16
        | Fault::SumsInF16
        | Fault::FastExp
        | Fault::ReadsStaleMemory
        | Fault::ChangesAnInput
        | Fault::NotDeterministic => {}
    }
    Ok((op, inputs))
}

/// A layout as it is misread; it stays inside the storage.
fn misread(fault: Fault, layout: &Layout) -> Layout {
    let shape = layout.shape().clone();
    let strides = layout.strides();
    let is_ahead = strides.iter().all(|&s| s > 0);
    match fault {
        // Elements that do not overlap span at least as much as they do row-major.
        Fault::IgnoresAStride if is_ahead && !layout.is_empty() => {
            let row_major = Layout::contiguous(&shape);
            Layout::from_parts(shape, row_major.strides().into(), layout.offset())
        }
        Fault::IgnoresAnOffset if strides.iter().all(|&s| s >= 0) => Layout::from_parts(shape, strides.into(), 0),
        Fault::IgnoresASign if !layout.is_empty() => {
            let back = strides.iter().zip(shape.iter()).map(|(&s, &n)| s.min(0) * (n as isize - 1)).sum();
            let offset =
                layout.offset().checked_add_signed(back).expect("invariant: a layout stays inside its storage");
            Layout::from_parts(shape, strides.iter().map(|s| s.abs()).collect(), offset)
        }
        _ => layout.clone(),
    }
}

fn skip_a_tail(op: &Op, inputs: &mut [Tensor]) -> Result<()> {
    let Op::Reduce(Reduce { axes, producer, .. }) = op else { return Ok(()) };
    let (true, Some(&axis)) = (producer.is_identity(), axes.last()) else { return Ok(()) };
    let n = inputs[0].dims()[axis];
    if n > 32 {
        inputs[0] = inputs[0].narrow(axis as i64, 0, n / 32 * 32)?;
    }
    Ok(())
}

fn skip_nan(op: &Op, inputs: &mut [Tensor]) -> Result<()> {
    let neutral = match op {
        Op::Reduce(Reduce { kind: ReduceKind::Max, .. }) | Op::Scan(Scan { kind: ScanKind::Max, .. }) => {
            f64::NEG_INFINITY
        }
        Op::Reduce(Reduce { kind: ReduceKind::Min, .. }) => f64::INFINITY,
        Op::ArgReduce(reduce) if reduce.max => f64::NEG_INFINITY,
        Op::ArgReduce(_) => f64::INFINITY,
        _ => return Ok(()),
    };
    inputs[0] = edited(&inputs[0], |data| each(data, |v| if v.is_nan() { neutral } else { v }))?;
    Ok(())
}

/// The source with 0 wherever a later element goes to the same place.
fn last_sources(axis: usize, index: &Tensor, source: &Tensor) -> Result<Tensor> {
    let indices = index.device().backend().download(index)?.to_f64();
    let dims = index.dims();
    let inner: usize = dims[axis + 1..].iter().product();
    let mut last: HashMap<(usize, usize, u64), usize> = HashMap::new();
    edited(source, |data: &mut HostData| {
        for (i, at) in indices.iter().enumerate() {
            let place = (i / (inner * dims[axis]), i % inner, at.to_bits());
            if let Some(earlier) = last.insert(place, i) {
                set(data, earlier, 0.0);
            }
        }
    })
}

fn wrap_indices(op: &Op, inputs: &mut [Tensor]) -> Result<()> {
    let (Op::Gather(Gather { axis }) | Op::ScatterAdd(ScatterAdd { axis })) = op else { return Ok(()) };
    let n = inputs[0].dims()[*axis] as f64;
    debug_assert!(matches!(inputs[1].dtype(), DType::I64 | DType::I32), "an index");
    if n > 0.0 {
        inputs[1] = edited(&inputs[1], |data| {
            (0..data.len()).for_each(|i| set(data, i, get(data, i).rem_euclid(n)));
        })?;
    }
    Ok(())
}
