//! A model is a plain struct or enum whose leaves can be walked.

use tensor_core::{Param, Result, Tensor};

use crate::{Buffer, Mode};

/// A leaf of a model, read.
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

/// Receives a model's leaves and the modules they lie in.
pub trait Visitor {
    /// A leaf of the module entered last.
    fn leaf(&mut self, name: &str, leaf: Leaf<'_>);
    /// A field that is a module: its leaves follow until [`Visitor::exit`].
    fn enter(&mut self, name: &str, module: &dyn Module);
    /// The end of the module entered last.
    fn exit(&mut self);
}

/// Receives a model's leaves for writing.
pub trait VisitorMut {
    /// A leaf of the module entered last.
    fn leaf(&mut self, name: &str, leaf: LeafMut<'_>);
    /// A field that is a module.
    fn enter(&mut self, name: &str);
    /// The end of the module entered last.
    fn exit(&mut self);
}

/// A model or a part of one. Derive it: `#[derive(Module, Clone, Debug)]`.
///
/// Fields are visited in order of declaration, each by [`Module::visit`] under its name; `Vec`s and tuples number
/// theirs. A path is the names joined by dots: `encoder.0.attention.query.weight`.
pub trait Module {
    /// The type's name and its settings, for printing: `Linear(784 => 10)`.
    fn describe(&self) -> String;

    /// Walks the fields: for a module, its leaves and modules; for a leaf type, see [`Module::visit_as`].
    fn visit(&self, visitor: &mut dyn Visitor);

    /// Walks the fields for writing, in the same order.
    fn visit_mut(&mut self, visitor: &mut dyn VisitorMut);

    /// How a field of this type is visited under its name: a module enters, walks and exits; a leaf reports itself;
    /// plain data (numbers, options) does nothing.
    fn visit_as(&self, name: &str, visitor: &mut dyn Visitor)
    where
        Self: Sized,
    {
        visitor.enter(name, self);
        self.visit(visitor);
        visitor.exit();
    }

    /// [`Module::visit_as`] for writing.
    fn visit_as_mut(&mut self, name: &str, visitor: &mut dyn VisitorMut) {
        visitor.enter(name);
        self.visit_mut(visitor);
        visitor.exit();
    }
}

/// A module of one tensor in and one tensor out.
pub trait Forward {
    /// The output for `x`.
    fn forward(&self, x: &Tensor) -> Result<Tensor>;
}
