//! Layers one after another: [`Sequential`] when the length is known at run time, [`chain!`](crate::chain) when it is
//! known to the compiler.

use std::fmt;

use tensor_core::{Result, Tensor};

use crate::module::visit_item_name;
use crate::{Forward, Module, Visitor, VisitorMut, tree};

/// What a [`Sequential`] holds: any module of one tensor in and one out that can be cloned and printed.
///
/// Never implemented by hand: every type with these traits has it.
pub trait Layer: Forward + Module + fmt::Debug + Send + Sync {
    /// A boxed clone.
    fn clone_layer(&self) -> Box<dyn Layer>;
}

impl<T: Forward + Module + fmt::Debug + Clone + Send + Sync + 'static> Layer for T {
    fn clone_layer(&self) -> Box<dyn Layer> {
        Box::new(self.clone())
    }
}

impl Clone for Box<dyn Layer> {
    fn clone(&self) -> Self {
        (**self).clone_layer()
    }
}

impl<T: Forward + ?Sized> Forward for Box<T> {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        (**self).forward(x)
    }
}

/// Layers applied in order: y = l_n(… l_1(l_0(x))). Paths: `0.weight`, `1.weight`, ….
///
/// # Errors
/// A layer's error names the layer by its number.
#[derive(Clone, Debug, Default)]
pub struct Sequential {
    layers: Vec<Box<dyn Layer>>,
}

impl Sequential {
    /// The layers in order.
    pub fn new(layers: Vec<Box<dyn Layer>>) -> Self {
        Self { layers }
    }

    /// Adds a layer at the end.
    pub fn push(&mut self, layer: impl Layer + 'static) {
        self.layers.push(Box::new(layer));
    }

    /// The layers.
    pub fn layers(&self) -> &[Box<dyn Layer>] {
        &self.layers
    }

    /// The layers, to be changed.
    pub fn layers_mut(&mut self) -> &mut Vec<Box<dyn Layer>> {
        &mut self.layers
    }
}

impl Forward for Sequential {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let mut x = x.clone();
        for (i, layer) in self.layers.iter().enumerate() {
            x = layer.forward(&x).map_err(|e| e.at(i))?;
        }
        Ok(x)
    }
}

impl Module for Sequential {
    fn describe(&self) -> String {
        "Sequential".to_string()
    }

    fn visit<'a>(&'a self, visitor: &mut dyn Visitor<'a>) {
        for (i, layer) in self.layers.iter().enumerate() {
            visit_item_name(i, |name| layer.visit_as(name, visitor));
        }
    }

    fn visit_mut<'a>(&'a mut self, visitor: &mut dyn VisitorMut<'a>) {
        for (i, layer) in self.layers.iter_mut().enumerate() {
            visit_item_name(i, |name| layer.visit_as_mut(name, visitor));
        }
    }
}

impl fmt::Display for Sequential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        tree(self).fmt(f)
    }
}

/// A tuple of layers applied in order: y = l_n(… l_1(l_0(x))). Made by [`chain!`](crate::chain).
pub struct Chain<T>(pub T);

/// The layers, applied in order, as one static layer: `chain![Linear::new(10, 64, &device)?, Relu]`.
///
/// Up to 24 layers; a chain is itself a layer, so longer ones nest. The layers are the fields of a tuple:
/// `model.0.1` is the second. Paths: `0.weight`, `1.weight`, ….
///
/// ```
/// # fn main() -> tensor_core::Result<()> {
/// use nn::{Forward, Linear, Relu, chain};
/// use tensor_core::Tensor;
///
/// let device = backend_cpu::device();
/// let model = chain![Linear::new(4, 8, &device)?, Relu, Linear::new(8, 1, &device)?];
/// assert_eq!(model.forward(&Tensor::ones([2, 4], &device)?)?.shape(), &[2, 1]);
/// # Ok(())
/// # }
/// ```
#[macro_export]
macro_rules! chain {
    ($($layer:expr),+ $(,)?) => { $crate::Chain(($($layer,)+)) };
}

impl<T> fmt::Display for Chain<T>
where
    Self: Module,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        tree(self).fmt(f)
    }
}

macro_rules! chains {
    // Every prefix of the list is a chain.
    ([$($done:ident $i:tt)*] $next:ident $j:tt $($rest:tt)*) => {
        chains!(@one $($done $i)* $next $j);
        chains!([$($done $i)* $next $j] $($rest)*);
    };
    ([$($done:tt)*]) => {};
    (@one $($t:ident $i:tt)*) => {
        impl<$($t: Clone),*> Clone for Chain<($($t,)*)> {
            fn clone(&self) -> Self {
                Self(($(self.0.$i.clone(),)*))
            }
        }

        impl<$($t: fmt::Debug),*> fmt::Debug for Chain<($($t,)*)> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_tuple("Chain")$(.field(&self.0.$i))*.finish()
            }
        }

        impl<$($t: Forward),*> Forward for Chain<($($t,)*)> {
            fn forward(&self, x: &Tensor) -> Result<Tensor> {
                let x = x.clone();
                $(let x = self.0.$i.forward(&x).map_err(|e| e.at($i))?;)*
                Ok(x)
            }
        }

        impl<$($t: Module),*> Module for Chain<($($t,)*)> {
            fn describe(&self) -> String {
                "Chain".to_string()
            }

            fn visit<'a>(&'a self, visitor: &mut dyn Visitor<'a>) {
                $(self.0.$i.visit_as(stringify!($i), visitor);)*
            }

            fn visit_mut<'a>(&'a mut self, visitor: &mut dyn VisitorMut<'a>) {
                $(self.0.$i.visit_as_mut(stringify!($i), visitor);)*
            }
        }
    };
}

chains!([] A 0 B 1 C 2 D 3 E 4 F 5 G 6 H 7 I 8 J 9 K 10 L 11 M 12 N 13 O 14 P 15 Q 16 R 17 S 18 T 19 U 20 V 21 W 22 X 23);
