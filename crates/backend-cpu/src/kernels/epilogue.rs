//! The elementwise expression that a product carries over its result and further inputs.

use smallvec::SmallVec;
use tensor_core::{DType, Expr, Meta, Result, Shape, Support, Tensor};

use crate::eval::{Bound, Evaluator, Input};

/// Whether the kernels run it: those that keep the product's element type, whatever its inputs.
pub(crate) fn support(expr: &Expr, inputs: &[Meta]) -> Support {
    if expr.is_identity() {
        return Support::Native;
    }
    let dtypes: SmallVec<[DType; 4]> =
        std::iter::once(inputs[0].dtype).chain(inputs[2..].iter().map(|x| x.dtype)).collect();
    match expr.code.program("epilogue", &dtypes) {
        Ok(program) if program.dtype() == inputs[0].dtype => Support::Native,
        _ => Support::Decompose,
    }
}

/// The expression made ready; `inputs` are the op's, of which the first two are the product's own. None where there
/// is nothing to do.
pub(crate) fn evaluator(op: &'static str, expr: &Expr, inputs: &[&Tensor]) -> Result<Option<Evaluator>> {
    if expr.is_identity() {
        return Ok(None);
    }
    let dtypes: SmallVec<[DType; 4]> =
        std::iter::once(inputs[0].dtype()).chain(inputs[2..].iter().map(|x| x.dtype())).collect();
    Evaluator::new(op, std::slice::from_ref(expr), &dtypes).map(Some)
}

/// The expression over the result's shape; `product` says where the product's values are found.
pub(crate) fn bind<'a>(
    evaluator: &'a Evaluator,
    shape: &Shape,
    product: Input<'a>,
    inputs: &[&'a Tensor],
) -> Bound<'a> {
    let operands: SmallVec<[Input<'a>; 4]> =
        std::iter::once(product).chain(inputs[2..].iter().map(|&x| Input::Tensor(x))).collect();
    evaluator.bind(shape, &operands)
}
