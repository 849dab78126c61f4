//! Gradients, modules, layers, losses and optimizers.
//!
//! A model is a plain struct whose leaves are [`Param`]s ([`Module`]); [`with_gradient`] lends a traced copy of it to a
//! closure and differentiates what the closure returns (`autodiff` records, `gradient` walks). Deliberately absent:
//! global state, graphs that outlive a call, and derivative rules in backends.
#![forbid(unsafe_code)]

extern crate self as nn;

mod autodiff;
mod gradient;
pub mod init;
mod layer;
mod leaf;
pub mod loss;
mod module;
pub mod optim;
mod save;
mod sequential;

pub use autodiff::checkpoint;
pub use gradient::{
    Gradients, Outcome, gradient, gradient_n, hessian_vector_product, jacobian, numerical_gradient, stop_gradient,
    value_and_gradient, value_and_gradient_n, with_gradient,
};
pub use layer::*;
pub use leaf::{Buffer, Mode, inference, training};
pub use module::{Forward, Leaf, LeafMut, Module, Tree, Visitor, VisitorMut, tree, visit_item_name};
pub use nn_derive::Module;
pub use save::{load, save};
pub use sequential::{Chain, Layer, Sequential};
pub use tensor_core::Param;
