//! The tensor: a layout over a shared cell that holds its storage and its device.

use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::{Arc, OnceLock};

use crate::defer::Pending;
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

/// What clones and views of a tensor share: its value, or the elementwise work that will give it.
pub(crate) struct Cell {
    device: Device,
    pub(crate) value: OnceLock<Storage>,
    pub(crate) pending: Option<Pending>,
}

impl Cell {
    pub(crate) fn pending(device: Device, pending: Pending) -> Self {
        Self { device, value: OnceLock::new(), pending: Some(pending) }
    }
}

// A panic leaves tensors whole: their cell is written once, and storage belongs to the device.
impl UnwindSafe for Tensor {}
impl RefUnwindSafe for Tensor {}

impl Tensor {
    /// A row-major tensor over a storage that `device` made.
    pub fn from_storage(storage: Storage, meta: Meta, device: Device) -> Self {
        Self::from_cell(Cell { device, value: OnceLock::from(storage), pending: None }, &meta)
    }

    /// A row-major tensor of this cell.
    pub(crate) fn from_cell(cell: Cell, meta: &Meta) -> Self {
        Self { layout: Layout::contiguous(&meta.shape), dtype: meta.dtype, cell: Arc::new(cell) }
    }

    pub(crate) fn cell(&self) -> &Cell {
        &self.cell
    }

    /// Whether no clone, view or pending work holds the cell.
    pub(crate) fn is_held_once(&self) -> bool {
        Arc::strong_count(&self.cell) == 1
    }

    /// The same storage under another layout, which must stay inside it.
    pub fn with_layout(&self, layout: Layout) -> Self {
        Self { layout, dtype: self.dtype, cell: self.cell.clone() }
    }

    /// The storage, for the backend that made it: core has forced the tensors that it hands to one.
    ///
    /// # Panics
    /// If the value is still to be computed: see [`Tensor::force`].
    pub fn storage(&self) -> &Storage {
        self.cell.value.get().expect("invariant: a backend's inputs have been forced")
    }

    /// The storage, if no clone or view shares it: for in-place updates.
    pub fn unique_storage(&mut self) -> Option<&mut Storage> {
        Arc::get_mut(&mut self.cell)?.value.get_mut()
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
