//! A model is a plain struct or enum whose leaves can be walked; everything done to a whole model is such a walk.

use tensor_core::{DType, Device, Param, Result, Tensor};

use crate::{Buffer, Mode};

mod containers;
mod leaves;
mod operations;
mod state;
mod tree;

pub use containers::visit_item_name;
pub(crate) use operations::{Path, each_leaf, each_leaf_mut};
pub use tree::{Tree, tree};

/// A leaf of a model, read.
#[derive(Debug)]
pub enum Leaf<'a> {
    /// Trained.
    Param(&'a Param),
    /// Written by the forward pass, saved with the model: running statistics.
    Buffer(&'a Buffer),
    /// A constant, saved with the model.
    Constant(&'a Tensor),
    /// Training or inference, for layers that behave differently.
    Mode(&'a Mode),
}

/// A leaf of a model, written.
#[derive(Debug)]
pub enum LeafMut<'a> {
    /// Trained.
    Param(&'a mut Param),
    /// Written by the forward pass.
    Buffer(&'a mut Buffer),
    /// A constant.
    Constant(&'a mut Tensor),
    /// Training or inference.
    Mode(&'a mut Mode),
}

/// Receives a model's leaves and the modules they lie in. Leaves may be kept for as long as the model is borrowed.
pub trait Visitor<'a> {
    /// A leaf of the module entered last.
    fn leaf(&mut self, name: &str, leaf: Leaf<'a>);

    /// A field that is a module: its leaves follow until [`Visitor::exit`]. `describe` gives [`Module::describe`].
    fn enter(&mut self, name: &str, describe: &dyn Fn() -> String) {
        let _ = (name, describe);
    }

    /// The end of the module entered last.
    fn exit(&mut self) {}
}

/// Receives a model's leaves for writing.
pub trait VisitorMut<'a> {
    /// A leaf of the module entered last.
    fn leaf(&mut self, name: &str, leaf: LeafMut<'a>);

    /// A field that is a module.
    fn enter(&mut self, name: &str) {
        let _ = name;
    }

    /// The end of the module entered last.
    fn exit(&mut self) {}
}

/// A model or a part of one: a struct or enum that derives this trait.
///
/// ```
/// # fn main() -> tensor_core::Result<()> {
/// use nn::{Forward, Linear, Module};
/// use tensor_core::{Result, Tensor};
///
/// #[derive(Module, Clone, Debug)]
/// struct Mlp {
///     hidden: Linear,
///     output: Linear,
/// }
///
/// impl Forward for Mlp {
///     fn forward(&self, x: &Tensor) -> Result<Tensor> {
///         self.output.forward(&self.hidden.forward(x)?.relu()?)
///     }
/// }
///
/// let device = backend_cpu::device();
/// let model = Mlp { hidden: Linear::new(4, 8, &device)?, output: Linear::new(8, 1, &device)? };
/// assert_eq!(model.n_parameters(), 4 * 8 + 8 + 8 + 1);
/// assert_eq!(model.named_parameters()[2].0, "output.weight");
/// println!("{model}");
/// # Ok(())
/// # }
/// ```
///
/// Fields are visited in order of declaration, each by [`Module::visit_as`] under its name; `Vec`s and tuples number
/// theirs. A path is the names joined by dots: `encoder.0.attention.query.weight`. Plain data (numbers, strings,
/// dtypes) has no leaves. A field that is neither is left out, or it does not compile:
///
/// ```compile_fail,E0277
/// struct Settings;
///
/// #[derive(nn::Module)]
/// struct Model {
///     weight: nn::Param,
///     settings: Settings, // write #[module(skip)] above it
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a module",
    label = "not a module: it has no leaves to walk",
    note = "a model's own type: write `#[derive(Module, Clone, Debug)]` above it",
    note = "plain data inside a model: write `#[module(skip)]` above the field"
)]
pub trait Module {
    /// The type's name and its settings, for printing: `Linear(784 => 10)`.
    fn describe(&self) -> String;

    /// Walks the fields: each by [`Module::visit_as`].
    fn visit<'a>(&'a self, visitor: &mut dyn Visitor<'a>);

    /// Walks the fields for writing, in the same order: each by [`Module::visit_as_mut`].
    fn visit_mut<'a>(&'a mut self, visitor: &mut dyn VisitorMut<'a>);

    /// How a field of this type is visited under its name: a module enters, walks and exits; a leaf reports itself;
    /// plain data does nothing.
    fn visit_as<'a>(&'a self, name: &str, visitor: &mut dyn Visitor<'a>) {
        visitor.enter(name, &|| self.describe());
        self.visit(visitor);
        visitor.exit();
    }

    /// [`Module::visit_as`] for writing.
    fn visit_as_mut<'a>(&'a mut self, name: &str, visitor: &mut dyn VisitorMut<'a>) {
        visitor.enter(name);
        self.visit_mut(visitor);
        visitor.exit();
    }

    /// This model on `device`: the same leaves where they are there already, copies elsewhere. Tied parameters stay
    /// tied, identities are kept.
    ///
    /// # Errors
    /// What a transfer reports.
    fn to(&self, device: &Device) -> Result<Self>
    where
        Self: Clone,
    {
        operations::to(self, device)
    }

    /// This model with its float leaves in another float type. Tied parameters stay tied, identities are kept.
    ///
    /// # Errors
    /// If `dtype` is not a float type, or the device does not have it.
    fn cast(&self, dtype: DType) -> Result<Self>
    where
        Self: Clone,
    {
        operations::cast(self, dtype)
    }

    /// A copy with parameters of its own: new identities, the values shared until one is trained. Parameters that
    /// were tied to each other still are.
    fn fork(&self) -> Self
    where
        Self: Clone,
    {
        operations::fork(self)
    }

    /// The number of trained and frozen numbers in its parameters; a tied parameter counts once.
    fn n_parameters(&self) -> usize {
        operations::n_parameters(self)
    }

    /// Its parameters in order, a tied one once.
    fn parameters(&self) -> Vec<&Param> {
        operations::parameters(self)
    }

    /// Its parameters in order with their paths, a tied one under each of its paths.
    fn named_parameters(&self) -> Vec<(String, &Param)> {
        operations::named_parameters(self)
    }

    /// Takes its parameters out of training: gradients are not taken by them.
    fn freeze(&mut self) {
        operations::set_trainable(self, false);
    }

    /// Puts its parameters back into training.
    fn thaw(&mut self) {
        operations::set_trainable(self, true);
    }

    /// The values of its parameters, buffers and constants in order, with their paths.
    fn state_dict(&self) -> Vec<(String, Tensor)> {
        state::state_dict(self)
    }

    /// Sets parameters, buffers and constants from what [`Module::state_dict`] gave; values move to where the
    /// leaves are. Nothing is changed when it fails.
    ///
    /// # Errors
    /// A path that is missing or that the model does not have, a shape or dtype that differs.
    fn load_state_dict(&mut self, state: &[(String, Tensor)]) -> Result<()> {
        state::load_state_dict(self, state)
    }
}

/// A module of one tensor in and one tensor out.
pub trait Forward {
    /// The output for `x`.
    fn forward(&self, x: &Tensor) -> Result<Tensor>;
}
