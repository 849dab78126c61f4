//! Expressions element by element, and custom ops through their CPU kernel.

use std::sync::Arc;

use tensor_core::Element;
use tensor_core::expr::{Bounds, Program, Value};
use tensor_core::op::{CustomKernel, HostArray, Map};
use tensor_core::{CustomOp, DType, Error, Expr, HostData, Kind, Meta, Result, Shape};

use super::array::{Array, Cell, from_host};

/// An expression's program and numbers, ready to be evaluated over arrays that broadcast.
pub(super) struct Formula<'a> {
    program: Arc<Program>,
    expr: &'a Expr,
}

impl<'a> Formula<'a> {
    /// The program for these input types.
    pub(super) fn new(name: &'static str, expr: &'a Expr, dtypes: &[DType]) -> Result<Self> {
        Ok(Self { program: expr.code.program(name, dtypes)?, expr })
    }

    /// The value for one cell of each input.
    pub(super) fn value(&self, bounds: &Bounds, inputs: &[Cell]) -> Cell {
        self.program.eval(bounds, inputs, &self.expr.args)
    }
}

/// Every expression at every index.
pub(super) fn map(bounds: &Bounds, op: &Map, inputs: &[Array], outputs: &[Meta]) -> Result<Vec<Array>> {
    let dtypes: Vec<DType> = inputs.iter().map(|x| x.dtype).collect();
    op.exprs
        .iter()
        .zip(outputs)
        .map(|(expr, meta)| {
            let formula = Formula::new(op.name, expr, &dtypes)?;
            Ok(Array::from_fn(&meta.shape, meta.dtype, |index| {
                let operands: Vec<Cell> = inputs.iter().map(|x| x.broadcast_at(&index)).collect();
                formula.value(bounds, &operands)
            }))
        })
        .collect()
}

/// `epilogue(result, extra…)` at every index.
pub(super) fn epilogue(
    bounds: &Bounds,
    name: &'static str,
    expr: &Expr,
    result: Array,
    extra: &[Array],
    meta: &Meta,
) -> Result<Array> {
    if expr.is_identity() {
        return Ok(result);
    }
    let dtypes: Vec<DType> = std::iter::once(result.dtype).chain(extra.iter().map(|x| x.dtype)).collect();
    let formula = Formula::new(name, expr, &dtypes)?;
    Ok(Array::from_fn(&meta.shape, meta.dtype, |index| {
        let own = perhaps_stored(bounds, result.at(&index), result.dtype, expr);
        let operands: Vec<Cell> = std::iter::once(own).chain(extra.iter().map(|x| x.broadcast_at(&index))).collect();
        formula.value(bounds, &operands)
    }))
}

/// What passes between an op and the expression that is fused with it.
pub(super) fn perhaps_stored(bounds: &Bounds, cell: Cell, dtype: DType, fused: &Expr) -> Cell {
    match cell {
        Value::Real(x) if !fused.is_identity() => Value::Real(bounds.perhaps_stored(x, dtype)),
        exact => exact,
    }
}

/// A user's op: its CPU kernel is its own reference.
pub(super) fn custom(op: &Arc<dyn CustomOp>, inputs: &[Array], outputs: &[Meta]) -> Result<Vec<Array>> {
    let Some(CustomKernel::Rust(kernel)) = op.kernel(Kind::Cpu) else {
        return Err(Error::unsupported(op.name().to_string(), "has no CPU kernel to serve as its reference"));
    };
    let hosts: Vec<HostArray> = inputs.iter().map(host).collect();
    let results = kernel(&hosts, outputs)?;
    Ok(results
        .iter()
        .zip(outputs)
        .map(|(data, meta)| Array { dims: meta.shape.to_vec(), dtype: meta.dtype, cells: from_host(data.as_slice()) })
        .collect())
}

fn host(x: &Array) -> HostArray {
    fn of<T: tensor_core::Element>(x: &Array, from_int: impl Fn(i64) -> T) -> HostData {
        let value = |cell: &Cell| match *cell {
            Value::Real(v) => T::from_f64(v.value),
            Value::Int(v) => from_int(v),
        };
        T::into_host(x.cells.iter().map(value).collect())
    }
    let data = match x.dtype {
        DType::F64 => of::<f64>(x, |v| v as f64),
        DType::F32 => of::<f32>(x, |v| v as f32),
        DType::F16 => of::<half::f16>(x, |v| <half::f16 as Element>::from_f64(v as f64)),
        DType::BF16 => of::<half::bf16>(x, |v| <half::bf16 as Element>::from_f64(v as f64)),
        DType::I64 => of::<i64>(x, |v| v),
        DType::I32 => of::<i32>(x, |v| v as i32),
        DType::U8 => of::<u8>(x, |v| v as u8),
        DType::Bool => of::<bool>(x, |v| v != 0),
    };
    HostArray { shape: Shape::new(&x.dims), data }
}
