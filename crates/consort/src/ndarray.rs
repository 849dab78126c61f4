//! Tensors from and to `ndarray` arrays.

use ndarray::{ArrayBase, ArrayD, Data, Dimension, IxDyn};
use tensor_core::{Device, Element, Error, Result, Tensor};

/// `Tensor::from_ndarray` and `tensor.to_ndarray()`; in the prelude.
pub trait NdarrayTensor: Sized {
    /// A tensor with the array's values, of any layout, on `device`.
    ///
    /// # Errors
    /// What the device reports.
    fn from_ndarray<T: Element, S: Data<Elem = T>, D: Dimension>(
        array: &ArrayBase<S, D>,
        device: &Device,
    ) -> Result<Self>;

    /// The values as an array. Waits for the device.
    ///
    /// # Errors
    /// If the tensor's dtype is not `T`'s.
    fn to_ndarray<T: Element>(&self) -> Result<ArrayD<T>>;
}

impl NdarrayTensor for Tensor {
    fn from_ndarray<T: Element, S: Data<Elem = T>, D: Dimension>(
        array: &ArrayBase<S, D>,
        device: &Device,
    ) -> Result<Self> {
        let values: Vec<T> = array.iter().copied().collect();
        Tensor::from_vec(values, array.shape(), device)
    }

    fn to_ndarray<T: Element>(&self) -> Result<ArrayD<T>> {
        ArrayD::from_shape_vec(IxDyn(self.dims()), self.to_vec::<T>()?).map_err(|e| {
            Error::shape("to_ndarray", format!("does not fit an array: tensor {}", self.shape())).with_source(e)
        })
    }
}
