//! The batched matrix product: folds batches into rows where it can, spreads the rest over threads. 16-bit floats go
//! through f32.

use half::{bf16, f16};
use smallvec::SmallVec;
use tensor_core::op::MatMul;
use tensor_core::{DType, Layout, Meta, Result, Shape, Storages, Tensor};

use super::dense::widened;
use super::epilogue;
use super::gemm::{Compute, Gemm, Job, Matrix};
use crate::eval::{Bound, Input, Stored, narrow};
use crate::{Context, input, threads};

pub(crate) fn run(op: &MatMul, inputs: &[&Tensor], outputs: &[Meta], cx: &Context<'_>) -> Result<Storages> {
    let (lhs, rhs) = (inputs[0], inputs[1]);
    debug_assert_eq!(lhs.dtype(), outputs[0].dtype, "invariant: the backend declines other epilogues");
    let mut out = cx.output(&outputs[0])?;
    let product = match lhs.dtype().compute() == lhs.dtype() {
        true => Input::Old(0),
        false => Input::Given,
    };
    let evaluator = epilogue::evaluator("matmul", &op.epilogue, inputs)?;
    let bound = evaluator.as_ref().map(|e| epilogue::bind(e, &outputs[0].shape, product, inputs));
    let bound = bound.as_ref();
    match lhs.dtype() {
        DType::F64 => in_place::<f64>(lhs, rhs, out.slice_mut(), cx, bound)?,
        DType::F32 => in_place::<f32>(lhs, rhs, out.slice_mut(), cx, bound)?,
        DType::I64 => in_place::<i64>(lhs, rhs, out.slice_mut(), cx, bound)?,
        DType::I32 => in_place::<i32>(lhs, rhs, out.slice_mut(), cx, bound)?,
        DType::U8 | DType::Bool => in_place::<u8>(lhs, rhs, out.slice_mut(), cx, bound)?,
        DType::F16 => through_f32::<f16>(lhs, rhs, out.slice_mut(), cx, bound)?,
        DType::BF16 => through_f32::<bf16>(lhs, rhs, out.slice_mut(), cx, bound)?,
    }
    Ok(out.into_storages())
}

/// The product goes where it belongs; the epilogue overwrites it, rows at a time, while they are in the cache.
fn in_place<T: Gemm>(
    lhs: &Tensor,
    rhs: &Tensor,
    out: &mut [T],
    cx: &Context<'_>,
    epilogue: Option<&Bound<'_>>,
) -> Result<()> {
    let plan = Plan::new(lhs.layout(), rhs.layout());
    plan.run(input(lhs), input(rhs), out, cx, |first, rows, product| {
        product(rows)?;
        if let Some(epilogue) = epilogue {
            epilogue.worker().fill(first * plan.n, rows);
        }
        Ok(())
    })
}

/// The operands as f32, row-major; rows of the product go through the epilogue and are rounded as they come.
fn through_f32<T: Stored<Lane = f32>>(
    lhs: &Tensor,
    rhs: &Tensor,
    out: &mut [T],
    cx: &Context<'_>,
    epilogue: Option<&Bound<'_>>,
) -> Result<()> {
    let (a, b) = (widened::<T>(lhs, cx)?, widened::<T>(rhs, cx)?);
    let plan = Plan::new(&Layout::contiguous(lhs.shape()), &Layout::contiguous(rhs.shape()));
    plan.run::<f32, T>(a.slice(), b.slice(), out, cx, |first, out, product| {
        let mut rows = cx.take::<f32>(out.len())?;
        product(rows.slice_mut())?;
        match epilogue {
            Some(epilogue) => epilogue.worker().fill_from::<f32, T>(first * plan.n, rows.slice(), out),
            None => narrow(rows.slice(), out),
        }
        Ok(())
    })
}

/// One product, or many of the same sizes.
#[derive(Debug, PartialEq)]
struct Plan {
    m: usize,
    k: usize,
    n: usize,
    /// Row and column strides.
    lhs: (isize, isize),
    rhs: (isize, isize),
    /// Where the operands of each product begin, in order of the results.
    starts: Vec<(usize, usize)>,
}

impl Plan {
    fn new(lhs: &Layout, rhs: &Layout) -> Self {
        let split = |layout: &Layout| {
            let (dims, last_two) = layout.shape().split_at(layout.shape().rank() - 2);
            let (strides, last_strides) = layout.strides().split_at(dims.len());
            let batch = Layout::from_parts(Shape::new(dims), strides.into(), layout.offset());
            (batch, (last_two[0], last_two[1]), (last_strides[0], last_strides[1]))
        };
        let ((lhs_batch, (m, k), lhs), (rhs_batch, (_, n), rhs)) = (split(lhs), split(rhs));
        let batch = lhs_batch.shape().broadcast(rhs_batch.shape()).expect("invariant: core has checked the batch axes");
        let spread = |layout: &Layout| layout.broadcast_to(&batch).expect("invariant: it broadcasts");
        let (lhs_batch, rhs_batch) = (spread(&lhs_batch), spread(&rhs_batch));
        let mut plan = Self { m, k, n, lhs, rhs, starts: Vec::new() };
        if !plan.fold(&lhs_batch, &rhs_batch) {
            let n_products = if m * n == 0 { 0 } else { batch.len() };
            plan.starts.reserve(n_products);
            let mut at = Odometer::new(&batch, [&lhs_batch, &rhs_batch]);
            plan.starts.extend((0..n_products).map(|_| at.next()));
        }
        plan
    }

    /// One right-hand side for all, and left-hand sides that follow each other evenly: one product of many rows.
    fn fold(&mut self, lhs: &Layout, rhs: &Layout) -> bool {
        let dims = lhs.shape();
        let (mut rows, mut stride) = (self.m, self.lhs.0);
        for axis in (0..dims.rank()).rev().filter(|&axis| dims[axis] != 1) {
            if rows == 1 {
                stride = lhs.strides()[axis];
            }
            if rhs.strides()[axis] != 0 || lhs.strides()[axis] != rows as isize * stride {
                return false;
            }
            rows *= dims[axis];
        }
        self.m = rows;
        self.lhs.0 = stride;
        self.starts.push((lhs.offset(), rhs.offset()));
        true
    }

    fn run<T: Gemm, O: Send>(
        &self,
        lhs: &[T],
        rhs: &[T],
        out: &mut [O],
        cx: &Context<'_>,
        write: impl Fn(usize, &mut [O], Compute<'_, T>) -> Result<()> + Sync,
    ) -> Result<()> {
        let &Self { m, k, n, .. } = self;
        if out.is_empty() {
            return Ok(());
        }
        let one = |i: usize, out: &mut [O]| {
            let (a, b) = self.starts[i];
            let lhs = Matrix { data: lhs, offset: a, row: self.lhs.0, col: self.lhs.1 };
            let rhs = Matrix { data: rhs, offset: b, row: self.rhs.0, col: self.rhs.1 };
            T::gemm(Job { m, k, n, lhs, rhs }, out, cx, |first, rows, product| write(i * m + first, rows, product))
        };
        let products = out.chunks_mut(m * n).enumerate();
        if self.starts.len() < threads::n_threads() {
            // Each is spread over threads by itself.
            return products.into_iter().try_for_each(|(i, out)| one(i, out));
        }
        // Small ones are taken several at a time.
        let work = T::work_ns(m, k, n) + 200;
        let per_piece = (20_000 / work).clamp(1, self.starts.len().div_ceil(threads::n_threads()));
        drop(products);
        let pieces = out.chunks_mut(per_piece * m * n).enumerate();
        threads::try_for_each(work * self.starts.len(), pieces, |(piece, out)| {
            out.chunks_mut(m * n).enumerate().try_for_each(|(i, out)| one(piece * per_piece + i, out))
        })
    }
}

/// Positions in two layouts of one shape, row-major.
struct Odometer<'a> {
    dims: &'a [usize],
    layouts: [&'a Layout; 2],
    index: SmallVec<[usize; 4]>,
    at: [isize; 2],
}

impl<'a> Odometer<'a> {
    fn new(shape: &'a Shape, layouts: [&'a Layout; 2]) -> Self {
        let at = layouts.map(|layout| layout.offset() as isize);
        Self { dims: shape, layouts, index: SmallVec::from_elem(0, shape.rank()), at }
    }

    fn next(&mut self) -> (usize, usize) {
        let now = (self.at[0] as usize, self.at[1] as usize);
        for axis in (0..self.dims.len()).rev() {
            self.index[axis] += 1;
            let turned = self.index[axis] == self.dims[axis];
            let steps = if turned { 1 - self.dims[axis] as isize } else { 1 };
            for (at, layout) in self.at.iter_mut().zip(self.layouts) {
                *at += steps * layout.strides()[axis];
            }
            if !turned {
                break;
            }
            self.index[axis] = 0;
        }
        now
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Array, Expected, check, indices, run, tensor, values};
    use super::*;
    use tensor_core::Op;
    use tensor_core::expr::build;

    const NUMBERS: [DType; 7] = [DType::F64, DType::F32, DType::F16, DType::BF16, DType::I64, DType::I32, DType::U8];

    fn reference(inputs: &[Array]) -> Vec<Expected> {
        let [a, b] = inputs else { panic!("two operands") };
        let rank = a.shape.len().max(b.shape.len());
        let padded = |x: &Array| [vec![1; rank - x.shape.len()], x.shape.clone()].concat();
        let (sa, sb) = (padded(a), padded(b));
        let k = sa[rank - 1];
        let mut shape: Vec<usize> = sa.iter().zip(&sb).map(|(&x, &y)| if x == 1 { y } else { x }).collect();
        (shape[rank - 2], shape[rank - 1]) = (sa[rank - 2], sb[rank - 1]);
        let start = |x: &Array, padded: &[usize], index: &[usize]| {
            let index: Vec<usize> = index.iter().zip(padded).map(|(&i, &n)| if n == 1 { 0 } else { i }).collect();
            x.at(&index[rank - x.shape.len()..])
        };
        let values = indices(&shape).map(|index| {
            let (mut left, mut right) = (index.clone(), index);
            (left[rank - 1], right[rank - 2]) = (0, 0);
            let (left, right, n) = (start(a, &sa, &left), start(b, &sb, &right), sb[rank - 1]);
            (0..k).fold((0.0, 0.0), |(sum, scale), r| {
                let product = a.data[left + r] * b.data[right + r * n];
                (sum + product, scale + product.abs())
            })
        });
        vec![Expected::within(k as f64 / 2.0 + 1.0, values.collect())]
    }

    fn matmul() -> Op {
        Op::MatMul(MatMul::default())
    }

    #[test]
    fn products_of_all_sizes_and_layouts() {
        for (a, b) in [
            (&[1, 1][..], &[1, 1][..]),
            (&[2, 3], &[3, 4]),
            (&[7, 1], &[1, 9]),
            (&[1, 100], &[100, 1]),
            (&[1, 130], &[130, 70]),
            (&[33, 130], &[130, 1]),
            (&[9, 17], &[17, 49]),
            (&[31, 29], &[29, 97]),
            (&[8, 64], &[64, 48]),
            (&[2, 0], &[0, 3]),
            (&[0, 2], &[2, 3]),
            (&[2, 2], &[2, 0]),
            (&[5, 3, 4], &[4, 6]),
            (&[5, 3, 4], &[5, 4, 6]),
            (&[5, 1, 4], &[5, 4, 1]),
            (&[2, 1, 3, 4], &[3, 4, 5]),
            (&[3, 4], &[2, 2, 4, 3]),
            (&[1, 3, 1, 4], &[1, 1, 4, 2]),
            (&[2, 3, 0], &[2, 0, 4]),
            (&[0, 2, 3], &[3, 2]),
        ] {
            check(&matmul(), &[Array::sample(a, 1), Array::sample(b, 2)], &NUMBERS, reference);
        }
    }

    #[test]
    fn products_that_are_blocked_packed_and_spread() {
        for (a, b) in [
            (&[150, 300], &[300, 260]),
            (&[3, 600], &[600, 700]),
            (&[1, 900], &[900, 800]),
            (&[700, 500], &[500, 1]),
            (&[40, 2100], &[2100, 50]),
            (&[17, 300], &[300, 2200]),
        ] {
            check(&matmul(), &[Array::noise(a, 1), Array::noise(b, 2)], &[DType::F32, DType::F64], reference);
        }
        let (a, b) = (Array::noise(&[40, 13, 30], 1), Array::noise(&[40, 30, 21], 2));
        check(&matmul(), &[a, b], &[DType::F32, DType::BF16], reference);
    }

    #[test]
    fn epilogues_run_on_rows_of_every_batch() {
        let op = Op::MatMul(MatMul { epilogue: build(|[y, bias, scale]| (y + bias).relu() * scale) });
        for (a, b) in
            [(&[2, 9, 3][..], &[3, 20][..]), (&[3, 4, 5], &[3, 5, 2]), (&[7, 64], &[64, 1]), (&[4, 0], &[0, 3])]
        {
            let n = b[b.len() - 1];
            let m = a[a.len() - 2];
            let inputs = [Array::sample(a, 1), Array::sample(b, 2), Array::sample(&[n], 3), Array::sample(&[m, 1], 4)];
            check(&op, &inputs, &DType::FLOATS, |inputs| {
                let mut expected = reference(&inputs[..2]);
                let Expected { data, scale, .. } = &mut expected[0];
                for (i, (y, scale)) in data.iter_mut().zip(scale).enumerate() {
                    let by = inputs[3].data[i / n % m];
                    *y = (*y + inputs[2].data[i % n]).max(0.0) * by;
                    *scale = (*scale + 6.0) * by.abs();
                }
                expected
            });
        }
    }

    #[test]
    fn integers_wrap() {
        let a = Array::new(&[1, 2], vec![2_000_000_000.0, 2_000_000_000.0]);
        let b = Array::new(&[2, 1], vec![1.0, 1.0]);
        let product = run(&matmul(), &[&tensor(&a, DType::I32, 0), &tensor(&b, DType::I32, 0)]).expect("a product");
        assert_eq!(values(&product[0]), [f64::from(2_000_000_000i32.wrapping_add(2_000_000_000))]);
    }

    #[test]
    fn lone_batch() {
        let wave = |shape: &[usize], step: f64| {
            Array::new(shape, (0..shape.iter().product()).map(|i| (i as f64 * step).sin()).collect())
        };
        let (a, b) = (wave(&[1, 8, 512, 512], 0.001), wave(&[1, 8, 512, 32], 0.003));
        let expected = &reference(&[a.clone(), b.clone()])[0];
        let y = run(&matmul(), &[&tensor(&a, DType::F32, 0), &tensor(&b, DType::F32, 0)]).expect("a product");
        let worst = values(&y[0]).iter().zip(&expected.data).map(|(x, y)| (x - y).abs()).fold(0.0, f64::max);
        assert!(worst < 2e-4, "off by {worst}");
    }

    #[test]
    fn strided_matvec() {
        let whole = tensor(&Array::noise(&[1, 16_384], 1), DType::F32, 0);
        let row = whole.with_layout(Layout::from_parts(Shape::new(&[1, 2048]), [16_384, 1].into_iter().collect(), 64));
        let b = Array::noise(&[2048, 5], 2);
        let a = Array::new(&[1, 2048], values(&row));
        let expected = &reference(&[a, b.clone()])[0].data;
        for layout in [0, 1, 3] {
            let y = run(&matmul(), &[&row, &tensor(&b, DType::F32, layout)]).expect("a product");
            assert!(values(&y[0]).iter().zip(expected).all(|(x, y)| (x - y).abs() < 1e-4));
        }
    }

    #[test]
    fn batches_fold_into_rows_where_strides_allow() {
        let plan = |a: &[usize], strides: &[isize], b: &[usize]| {
            let a = Layout::from_parts(Shape::new(a), strides.into(), 0);
            Plan::new(&a, &Layout::contiguous(&Shape::new(b)))
        };
        assert_eq!((plan(&[5, 3, 4], &[12, 4, 1], &[4, 6]).m, plan(&[5, 1, 4], &[8, 1, 1], &[4, 6]).lhs.0), (15, 8));
        assert_eq!(plan(&[5, 3, 4], &[16, 4, 1], &[4, 6]).starts.len(), 5);
        assert_eq!(plan(&[5, 3, 4], &[12, 4, 1], &[5, 4, 6]).starts.len(), 5);
    }
}
