//! Faults in what a kernel writes.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use tensor_core::expr::{Value, smallest_normal, ulp};
use tensor_core::op::{ArgReduce, Reduce, ReduceKind, Sort};
use tensor_core::{DType, HostData, Meta, Op, Result, Storage, Storages, Tensor, execute};

use super::Fault;
use super::host::{copy_last, each, get, set, through_f16, upload};
use super::kernel::Saboteur;
use crate::compare::allowed;
use crate::reference;

/// What the op, which read `inputs`, gives instead of `storages`.
pub(super) fn through(
    saboteur: &Saboteur,
    fault: Fault,
    (op, inputs): (&Op, &[Tensor]),
    outputs: &[Meta],
    mut storages: Storages,
) -> Result<Storages> {
    for (k, meta) in outputs.iter().enumerate() {
        if meta.shape.is_empty() || !is_touched(fault, op, meta, k) {
            continue;
        }
        if let Some(storage) = recomputed(fault, op, inputs, meta)? {
            storages[k] = storage;
            continue;
        }
        let inner = &saboteur.inner;
        let right = Tensor::from_storage(storages[k].clone(), meta.clone(), inner.clone());
        let mut data = inner.backend().download(&right)?;
        spoil(saboteur, fault, (op, inputs), &mut data)?;
        storages[k] = upload(inner, meta, &data)?;
    }
    Ok(storages)
}

/// Whether output `k` is not what it should be.
fn is_touched(fault: Fault, op: &Op, meta: &Meta, k: usize) -> bool {
    let n = meta.shape.len();
    let is_float = meta.dtype.is_float();
    match fault {
        Fault::OffByTenTolerances => is_float && matches!(op, Op::Map(_) | Op::Reduce(_) | Op::MatMul(_)),
        Fault::DropsTheLastElement => !n.is_multiple_of(4),
        Fault::WrongPast65535Groups => n > 65_535,
        Fault::WrongFoldSeed => matches!(op, Op::Reduce(Reduce { kind: ReduceKind::Max, .. })) && is_float,
        Fault::FlushesSubnormals => is_float,
        Fault::SaturatesIntegers => {
            meta.dtype == DType::I32 && matches!(op, Op::Map(map) if ["add", "sub", "mul"].contains(&map.name))
        }
        Fault::TakesTheLastTie => matches!(op, Op::ArgReduce(_)),
        Fault::SortsUnstably => matches!(op, Op::Sort(_)) && k == 1,
        Fault::OneGradientMissing => matches!(op, Op::Map(_)) && k == 1,
        Fault::RoundsThroughF16 => meta.dtype == DType::F32,
        Fault::SumsInF16 => {
            let is_sum = |r: &Reduce| r.kind == ReduceKind::Sum && r.producer.is_identity() && !r.axes.is_empty();
            meta.dtype == DType::F16 && matches!(op, Op::Reduce(reduce) if is_sum(reduce))
        }
        Fault::FastExp => matches!(op, Op::Map(map) if map.name == "exp"),
        Fault::ReadsStaleMemory => true,
        Fault::NotDeterministic => is_float,
        _ => false,
    }
}

/// The output by another road.
fn recomputed(fault: Fault, op: &Op, inputs: &[Tensor], meta: &Meta) -> Result<Option<Storage>> {
    let result = match (fault, op) {
        (Fault::SaturatesIntegers, _) => {
            let wide = inputs.iter().map(|x| x.cast(DType::I64)).collect::<Result<Vec<_>>>()?;
            let wide = execute(op, &wide.iter().collect::<Vec<_>>())?;
            wide[0].clamp(i64::from(i32::MIN), i64::from(i32::MAX))?.cast(DType::I32)?
        }
        (Fault::SumsInF16, Op::Reduce(reduce)) => {
            let mut sum = inputs[0].clone();
            for &axis in reduce.axes.iter().rev() {
                let n = sum.dims()[axis];
                let mut acc = sum.narrow(axis as i64, 0, 1.min(n))?;
                for i in 1..n {
                    acc = acc.add(&sum.narrow(axis as i64, i, 1)?)?;
                }
                sum = if n == 0 { return Ok(None) } else { acc };
            }
            sum.reshape(&meta.shape[..])?.contiguous()?
        }
        _ => return Ok(None),
    };
    Ok(Some(result.storage().clone()))
}

fn spoil(saboteur: &Saboteur, fault: Fault, (op, inputs): (&Op, &[Tensor]), data: &mut HostData) -> Result<()> {
    let n = data.len();
    let dtype = data.dtype();
    match fault {
        Fault::OffByTenTolerances => {
            if let Some(value) = ten_tolerances_off(saboteur, op, inputs)? {
                set(data, n - 1, value);
            }
        }
        Fault::DropsTheLastElement => set(data, n - 1, 0.0),
        Fault::WrongPast65535Groups => (65_535..n).for_each(|i| set(data, i, 0.0)),
        Fault::WrongFoldSeed => each(data, |v| if v < 0.0 { 0.0 } else { v }),
        Fault::FlushesSubnormals => each(data, |v| if v.abs() < smallest_normal(dtype) { 0.0 } else { v }),
        Fault::TakesTheLastTie | Fault::SortsUnstably => {
            // The input was read backwards.
            if let Op::ArgReduce(ArgReduce { axis, .. }) | Op::Sort(Sort { axis, .. }) = op {
                let last = inputs[0].dims()[*axis] as f64 - 1.0;
                (0..n).for_each(|i| set(data, i, last - get(data, i)));
            }
        }
        Fault::OneGradientMissing => (0..n).for_each(|i| set(data, i, 0.0)),
        Fault::RoundsThroughF16 => each(data, through_f16),
        Fault::FastExp => each(data, |v| v * (1.0 + 4e-6)),
        Fault::ReadsStaleMemory => {
            let right = data.clone();
            let mut stale = saboteur.stale.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(before) = stale.insert((n, dtype), right) {
                copy_last(data, &before);
            }
        }
        Fault::NotDeterministic if saboteur.n_results.fetch_add(1, Ordering::Relaxed) % 2 == 1 => {
            let v = get(data, n - 1);
            set(data, n - 1, if v.is_finite() { v + ulp(v, dtype) } else { v });
        }
        _ => {}
    }
    Ok(())
}

/// The last element of the result, ten tolerances above: the reference's value and bound for what it is computed from.
fn ten_tolerances_off(saboteur: &Saboteur, op: &Op, inputs: &[Tensor]) -> Result<Option<f64>> {
    let last = |x: &Tensor, whole: &dyn Fn(usize) -> bool| {
        let axes = (0..x.rank()).filter(|&axis| !whole(axis) && x.dims()[axis] > 1);
        axes.into_iter().try_fold(x.clone(), |x, axis| x.narrow(axis as i64, x.dims()[axis] - 1, 1))
    };
    let rank = inputs.iter().map(Tensor::rank).max().unwrap_or(0);
    let parts = inputs.iter().enumerate().map(|(i, x)| match op {
        Op::Reduce(reduce) => last(x, &|axis| reduce.axes.contains(&(axis + rank - x.rank()))),
        Op::MatMul(_) if i == 0 => last(x, &|axis| axis + 1 == x.rank()),
        Op::MatMul(_) if i == 1 => last(x, &|axis| axis + 2 == x.rank()),
        _ => last(x, &|_| false),
    });
    let arbiter = reference::device(saboteur.inner.info().accuracy);
    let parts = parts.map(|part| part?.to(&arbiter)).collect::<Result<Vec<_>>>()?;
    let result = execute(op, &parts.iter().collect::<Vec<_>>())?;
    let dtype = result[0].dtype();
    let cells = allowed(&reference::cells(&result[0]), op.record().contract().tolerance, dtype);
    Ok(match cells[..] {
        [Value::Real(cell)] if cell.value.is_finite() && cell.error.is_finite() => {
            Some(cell.value + 10.0 * cell.error.max(ulp(cell.value, dtype)))
        }
        _ => None,
    })
}
