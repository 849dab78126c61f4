//! What a loader can stack and move: a tensor, or a fixed structure of tensors.

use tensor_core::{Device, Error, Result, Tensor};

/// A tensor, or a fixed structure of tensors: tuples, arrays and lists of them, or a struct of one's own.
///
/// Two methods make a struct a batch: name its tensors, and build another one from as many.
pub trait Batch: Sized {
    /// Appends the tensors, always in the same order.
    fn tensors<'a>(&'a self, list: &mut Vec<&'a Tensor>);

    /// The same structure over other tensors: takes as many as [`Batch::tensors`] appends.
    fn rebuild(&self, tensors: &mut std::vec::IntoIter<Tensor>) -> Self;

    /// The structure with `f` applied to each tensor.
    fn try_map(&self, f: impl FnMut(&Tensor) -> Result<Tensor>) -> Result<Self> {
        let mapped = listed(self).into_iter().map(f).collect::<Result<Vec<_>>>()?;
        Ok(self.rebuild(&mut mapped.into_iter()))
    }

    /// The structure with each tensor on `device`.
    fn to(&self, device: &Device) -> Result<Self> {
        self.try_map(|x| x.to(device))
    }
}

/// The tensors of a batch.
pub(crate) fn listed<B: Batch>(batch: &B) -> Vec<&Tensor> {
    let mut list = Vec::new();
    batch.tensors(&mut list);
    list
}

/// One batch of several items: `join` makes a tensor of those at the same place in each.
pub(crate) fn gathered<B: Batch>(
    op: &'static str,
    items: &[B],
    join: impl Fn(&[&Tensor]) -> Result<Tensor>,
) -> Result<B> {
    let Some(first) = items.first() else {
        return Err(Error::shape(op, "a batch needs at least one observation: observations 0"));
    };
    let lists: Vec<_> = items.iter().map(listed).collect();
    if let Some(i) = lists.iter().position(|list| list.len() != lists[0].len()) {
        let (a, b) = (lists[0].len(), lists[i].len());
        return Err(Error::shape(op, format!("observations hold different numbers of tensors: first {a}, at {i} {b}")));
    }
    let joined = (0..lists[0].len())
        .map(|place| join(&lists.iter().map(|list| list[place]).collect::<Vec<_>>()))
        .collect::<Result<Vec<_>>>()?;
    Ok(first.rebuild(&mut joined.into_iter()))
}

impl Batch for Tensor {
    fn tensors<'a>(&'a self, list: &mut Vec<&'a Tensor>) {
        list.push(self);
    }

    fn rebuild(&self, tensors: &mut std::vec::IntoIter<Tensor>) -> Self {
        tensors.next().expect("invariant: rebuild gets as many tensors as were listed")
    }
}

impl<B: Batch> Batch for Vec<B> {
    fn tensors<'a>(&'a self, list: &mut Vec<&'a Tensor>) {
        self.iter().for_each(|part| part.tensors(list));
    }

    fn rebuild(&self, tensors: &mut std::vec::IntoIter<Tensor>) -> Self {
        self.iter().map(|part| part.rebuild(tensors)).collect()
    }
}

impl<B: Batch, const N: usize> Batch for [B; N] {
    fn tensors<'a>(&'a self, list: &mut Vec<&'a Tensor>) {
        self.iter().for_each(|part| part.tensors(list));
    }

    fn rebuild(&self, tensors: &mut std::vec::IntoIter<Tensor>) -> Self {
        std::array::from_fn(|i| self[i].rebuild(tensors))
    }
}

macro_rules! tuples {
    ($($($part:ident $i:tt)*;)*) => { $(
        impl<$($part: Batch),*> Batch for ($($part,)*) {
            fn tensors<'a>(&'a self, list: &mut Vec<&'a Tensor>) {
                $(self.$i.tensors(list);)*
            }

            fn rebuild(&self, tensors: &mut std::vec::IntoIter<Tensor>) -> Self {
                ($(self.$i.rebuild(tensors),)*)
            }
        }
    )* };
}
tuples! { A 0; A 0 B 1; A 0 B 1 C 2; A 0 B 1 C 2 D 3; }
