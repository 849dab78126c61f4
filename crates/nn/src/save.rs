//! Models as safetensors files, which PyTorch opens and which it writes.
//!
//! A file is written beside its final place and then renamed, so that a save that is cut short leaves the previous file whole.
//! The same model gives the same bytes.

mod file;

use std::path::Path;

use tensor_core::{Error, Result, Tensor};

use crate::module::each_leaf;
use crate::{Leaf, Module};
pub(crate) use file::{Contents, Entry, Values, write};

/// Writes the model's parameters, buffers and constants to a safetensors file, each under its path.
///
/// The names and layouts are PyTorch's where a layer has a counterpart there:
/// `torch_model.load_state_dict(safetensors.torch.load_file("model.safetensors"))`.
///
/// # Errors
/// If the file cannot be written; then a file that was there before is unchanged.
pub fn save(model: &(impl Module + ?Sized), path: impl AsRef<Path>) -> Result<()> {
    let entries = model.state_dict().into_iter().map(|(name, tensor)| Entry { name, values: Values::Device(tensor) });
    write("save", path.as_ref(), entries.collect())
}

/// Sets the model's parameters, buffers and constants from a safetensors file. Values go to where the model is.
///
/// # Errors
/// If the file cannot be read or is damaged, or if its names, shapes and dtypes are not the model's: all that differ are named
/// at once. Then nothing is changed.
pub fn load(model: &mut (impl Module + ?Sized), path: impl AsRef<Path>) -> Result<()> {
    let contents = Contents::read("load", path.as_ref())?;
    let mut wanted = Vec::new();
    each_leaf(model, |path, name, leaf| {
        let value = match leaf {
            Leaf::Param(param) => param.value().clone(),
            Leaf::Buffer(buffer) => buffer.get(),
            Leaf::Constant(tensor) => tensor.clone(),
            Leaf::Mode(_) => return,
        };
        wanted.push((path.of(name), value));
    });
    let state = contents.take(&wanted, &[]).map_err(|problems| {
        let remedy = "build the model as it was saved, and cast it to the file's dtype with .cast(..)";
        Error::format(
            "load",
            format!("the file does not fit the model: {problems}: path {}; {remedy}", path.as_ref().display()),
        )
    })?;
    let uploaded = state.into_iter().zip(&wanted).map(|((name, values), (_, old))| {
        Ok((name, Tensor::from_host(values.as_slice(), old.shape(), &old.device())?))
    });
    model.load_state_dict(&uploaded.collect::<Result<Vec<_>>>()?)
}
