//! The tensor: a layout over a shared cell that holds its storage and its device.

use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::Arc;

use crate::{DType, Device, Layout, Meta, Movement, Op, Result, Shape, Storage, execute};

mod algebra;
mod composite;
mod conv;
mod create;
mod display;
mod einsum;
mod elementwise;
mod index;
mod join;
mod map;
mod movement;
mod operators;
mod order;
mod pool;
mod reduce;
#[cfg(test)]
mod tests;
mod transfer;
mod window;

pub use composite::AttentionOptions;
pub use einsum::einsum;
pub use elementwise::Operand;
pub use map::{custom, zip, zip_n};
pub use movement::IntoRange;
pub use operators::AsOperand;
pub use window::{ConvOptions, ConvTransposeOptions, Padding, PerAxis, PoolOptions};

/// An n-dimensional array of one element type on one device.
///
/// Cheap to clone: clones and views share the storage. `Send + Sync`. There is no `PartialEq`: [`Tensor::eq`] is
/// elementwise.
#[derive(Clone)]
pub struct Tensor {
    layout: Layout,
    dtype: DType,
    cell: Arc<Cell>,
}

/// What clones and views of a tensor share. A later step may let it hold elementwise work
/// that is still to be done.
struct Cell {
    device: Device,
    value: Storage,
}

// A panic leaves tensors whole: their cell is written once, and storage belongs to the device.
impl UnwindSafe for Tensor {}
impl RefUnwindSafe for Tensor {}

impl Tensor {
    /// A row-major tensor over a storage that `device` made.
    pub fn from_storage(storage: Storage, meta: Meta, device: Device) -> Self {
        let layout = Layout::contiguous(&meta.shape);
        Self { layout, dtype: meta.dtype, cell: Arc::new(Cell { device, value: storage }) }
    }

    /// The same storage under another layout, which must stay inside it.
    pub fn with_layout(&self, layout: Layout) -> Self {
        Self { layout, dtype: self.dtype, cell: self.cell.clone() }
    }

    /// The storage, for the backend that made it.
    pub fn storage(&self) -> &Storage {
        &self.cell.value
    }

    /// The storage, if no clone or view shares it: for in-place updates.
    pub fn unique_storage(&mut self) -> Option<&mut Storage> {
        Some(&mut Arc::get_mut(&mut self.cell)?.value)
    }

    /// Where the elements lie in the storage.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The device or interpreter that runs ops on this tensor; [`Tensor::device`] is the physical one.
    pub fn place(&self) -> &Device {
        &self.cell.device
    }

    /// The physical device that holds the elements.
    pub fn device(&self) -> Device {
        self.cell.device.physical().clone()
    }

    /// The sizes.
    pub fn shape(&self) -> &Shape {
        self.layout.shape()
    }

    /// The sizes as a slice.
    pub fn dims(&self) -> &[usize] {
        self.layout.shape()
    }

    /// The number of axes.
    pub fn rank(&self) -> usize {
        self.dims().len()
    }

    /// The number of elements.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.layout.len()
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.layout.is_empty()
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Shape and dtype.
    pub fn meta(&self) -> Meta {
        Meta::new(self.shape().clone(), self.dtype)
    }

    /// Whether the elements lie row-major without gaps.
    pub fn is_contiguous(&self) -> bool {
        self.layout.is_contiguous()
    }

    /// Whether both are the same view of the same storage.
    pub fn is_same(&self, other: &Tensor) -> bool {
        Arc::ptr_eq(&self.cell, &other.cell) && self.layout == other.layout
    }

    /// This tensor row-major: itself, or a copy.
    pub fn contiguous(&self) -> Result<Tensor> {
        if self.is_contiguous() { Ok(self.clone()) } else { self.run(&Op::Copy) }
    }

    /// A movement whose sizes and axes have been checked; copies first where a reshape needs it.
    pub fn view(&self, movement: &Movement) -> Result<Tensor> {
        match self.layout.apply(movement) {
            Some(layout) => self.place().backend().view(movement, self, layout),
            None => self.run(&Op::Copy)?.view(movement),
        }
    }

    /// Runs an op of one input and one output.
    pub(crate) fn run(&self, op: &Op) -> Result<Tensor> {
        first(execute(op, &[self]))
    }
}

/// The only, or the first, output.
pub(crate) fn first(outputs: Result<crate::Tensors>) -> Result<Tensor> {
    Ok(outputs?.into_iter().next().expect("invariant: an op has an output"))
}
