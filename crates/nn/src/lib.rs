//! Gradients, modules, layers, losses and optimizers.
//!
//! A model is a plain struct whose leaves are [`Param`]s ([`module`]); [`with_gradient`] lends a traced copy of it to a
//! closure and differentiates what the closure returns ([`autodiff`] records, `gradient` walks). Deliberately absent:
//! global state, graphs that outlive a call, and derivative rules in backends.
#![forbid(unsafe_code)]

extern crate self as nn;

mod autodiff;
mod gradient;
mod leaf;
mod module;
mod sequential;

pub use autodiff::Autodiff;
pub use gradient::{Gradients, stop_gradient};
pub use leaf::{Buffer, Mode, inference, training};
pub use module::{Forward, Leaf, LeafMut, Module, Tree, Visitor, VisitorMut, tree, visit_item_name};
pub use nn_derive::Module;
pub use sequential::{Chain, Layer, Sequential};
pub use tensor_core::Param;
