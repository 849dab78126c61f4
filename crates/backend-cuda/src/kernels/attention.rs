//! Attention and its gradients: the launches of `attention.ptx`.

use smallvec::SmallVec;
use tensor_core::op::{Attention, AttentionGrad};
use tensor_core::plan::Plan;
use tensor_core::{DType, Meta, Result, Shape, Storages, Support, Tensor};

use self::text::{Form, Kind};
use super::{Context, address, copy, storage};
use crate::args::Args;
use crate::driver::Address;
use crate::index;
use crate::memory::Block;
use crate::module::Key;

mod text;

/// Rows of a block, and places along the other axis that it takes at a time.
const SIDE: usize = 64;
/// Added to a row, more than any place along the other axis.
const NO_LIMIT: i64 = 1 << 30;

/// Whether there is something to attend with, and elements fit in registers: query [.., T, D], key [.., S, D], value
/// [.., S, E].
pub(crate) fn support(inputs: &[Meta]) -> Support {
    let most = if inputs[0].dtype == DType::F64 { 128 } else { 256 };
    let fits = |x: &Meta| {
        let [.., rows, depth] = x.shape[..] else { return false };
        (1..=most).contains(&depth) && (1..NO_LIMIT as usize / 2).contains(&rows) && !x.shape.is_empty()
    };
    if inputs[..3].iter().all(fits) { Support::Native } else { Support::Decompose }
}

/// What is attended to, and each row's ln of the sum of weights.
pub(crate) fn attention(cx: &Context, op: &Attention, inputs: &[&Tensor], outputs: &[Meta]) -> Result<Storages> {
    let [q, k, v, mask @ ..] = inputs else { unreachable!("invariant: attention takes three or four") };
    let (out, lse) = (cx.output(&outputs[0])?, cx.output(&outputs[1])?);
    let problem = Problem { op: "attention", q, k, mask: mask.first().copied(), scale: op.scale, causal: op.causal };
    problem.launch(cx, Kind::Forward, [(q, k), (q, k)], v, [lse.address(), 0], out.address())?;
    Ok([out, lse].into_iter().map(storage).collect())
}

/// The gradients by query, key and value.
pub(crate) fn grad(cx: &Context, op: &AttentionGrad, inputs: &[&Tensor], outputs: &[Meta]) -> Result<Storages> {
    let [q, k, v, lse, g, delta, mask @ ..] = inputs else {
        unreachable!("invariant: attention_grad takes six or seven")
    };
    let (lse, delta) = (Dense::new(cx, lse)?, Dense::new(cx, delta)?);
    let rows = [lse.address, delta.address];
    let (dq, dk, dv) = (cx.output(&outputs[0])?, cx.output(&outputs[1])?, cx.output(&outputs[2])?);
    let mask = mask.first().copied();
    let problem = Problem { op: "attention_grad", q, k, mask, scale: op.scale, causal: op.causal };
    problem.launch(cx, Kind::Query, [(q, k), (g, v)], k, rows, dq.address())?;
    problem.launch(cx, Kind::Key, [(k, q), (v, g)], q, rows, dk.address())?;
    problem.launch(cx, Kind::Value, [(k, q), (v, g)], g, rows, dv.address())?;
    Ok([dq, dk, dv].into_iter().map(storage).collect())
}

/// Elements that lie together: where they are, or in a copy.
struct Dense {
    address: Address,
    _copy: Option<Block>,
}

impl Dense {
    fn new(cx: &Context, x: &Tensor) -> Result<Self> {
        let copied = if x.is_contiguous() { None } else { Some(copy::contiguous(cx, "attention_grad", x)?) };
        Ok(Self { address: copied.as_ref().map_or_else(|| address(x), Block::address), _copy: copied })
    }
}

/// What all launches of an op have in common.
struct Problem<'a> {
    op: &'static str,
    q: &'a Tensor,
    k: &'a Tensor,
    mask: Option<&'a Tensor>,
    scale: f64,
    causal: bool,
}

impl Problem<'_> {
    /// Sums over the columns of each pair of `sides` (rows', columns'): scores from the first pair, slopes from the second,
    /// which weigh `mixed`; `rows` are lse and delta.
    fn launch(
        &self,
        cx: &Context,
        kind: Kind,
        sides: [(&Tensor, &Tensor); 2],
        mixed: &Tensor,
        rows: [Address; 2],
        to: Address,
    ) -> Result<()> {
        let rank = self.q.rank();
        let batch = &self.q.dims()[..rank - 2];
        let last = |x: &Tensor| (x.dims()[rank - 2], x.dims()[rank - 1]);
        let ((n_rows, depth), (n_columns, _), (_, width)) = (last(sides[0].0), last(sides[0].1), last(mixed));
        let operands = [sides[0].0, sides[0].1, sides[1].0, sides[1].1, mixed];
        let mut strides: SmallVec<[SmallVec<[isize; 4]>; 4]> =
            operands.iter().map(|x| SmallVec::from_slice(x.layout().strides())).collect();
        let mut addresses: SmallVec<[Address; 6]> = operands.iter().map(|x| address(x)).collect();
        let mut mask_strides = [0, 0];
        if let Some(mask) = self.mask {
            let pairs: Shape = batch.iter().copied().chain([last(self.q).0, last(self.k).0]).collect();
            let layout = mask.layout().broadcast_to(&pairs).expect("invariant: core has checked the mask");
            mask_strides = [layout.strides()[rank - 2], layout.strides()[rank - 1]];
            if kind.has_keys_in_rows() {
                mask_strides.reverse();
            }
            strides.push(SmallVec::from_slice(layout.strides()));
            addresses.push(address(mask));
        }
        let matrices = Plan::of(batch, strides.iter().map(|all| SmallVec::from_slice(&all[..rank - 2])).collect());
        let dtype = self.q.dtype();
        let form = Form {
            kind,
            dtype,
            width: [64, 128, 256]
                .into_iter()
                .find(|&most| most >= width)
                .expect("invariant: supports() declines others"),
            has_mask: self.mask.is_some(),
            rank: matrices.rank(),
        };
        let tiles = n_rows.div_ceil(SIDE);
        let limit = if self.causal { last(self.k).0 as i64 - last(self.q).0 as i64 } else { NO_LIMIT };
        let bytes = dtype.size_bytes() as i64;
        let mut args = Args::default();
        [tiles, n_rows, n_columns, depth, last(sides[1].0).1, width].iter().for_each(|&n| args.push(n as u64));
        args.push_signed(limit);
        strides[..5].iter().flat_map(|all| &all[rank - 2..]).for_each(|&s| args.push_signed(s as i64 * bytes));
        mask_strides.iter().for_each(|&s| args.push_signed(s as i64));
        let number = |x: f64| if dtype == DType::F64 { x.to_bits() } else { (x as f32).to_bits().into() };
        args.push(number(self.scale));
        args.push(number(if kind == Kind::Value { 1.0 } else { self.scale }));
        rows.iter().chain(&[to]).chain(&addresses).for_each(|&address| args.push(address));
        index::push(&mut args, &matrices, |i| if i < 5 { dtype.size_bytes() } else { 1 });

        let structure = [kind as u64, dtype as u64, form.width as u64, form.has_mask.into(), form.rank as u64];
        let function = cx.modules.get(Key::new(kind.entry(), structure), || text::text(&form))?;
        let blocks = tiles.saturating_mul(matrices.len());
        let largest = [n_rows, n_columns].into_iter().fold(blocks, usize::max);
        cx.launch_blocks(self.op, function, largest, [blocks as u32, 1, 1], [256, 1, 1], 0, &args)
    }
}
