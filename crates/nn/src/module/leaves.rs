//! The leaf types as modules, and plain data as modules without leaves.

use std::marker::PhantomData;

use tensor_core::{DType, Param, Shape, Tensor};

use super::{Leaf, LeafMut, Module, Visitor, VisitorMut};
use crate::{Buffer, Mode};

macro_rules! leaves {
    ($($t:ident as $leaf:ident;)*) => { $(
        impl Module for $t {
            fn describe(&self) -> String {
                format!("{self:?}")
            }

            fn visit<'a>(&'a self, visitor: &mut dyn Visitor<'a>) {
                self.visit_as("", visitor);
            }

            fn visit_mut<'a>(&'a mut self, visitor: &mut dyn VisitorMut<'a>) {
                self.visit_as_mut("", visitor);
            }

            fn visit_as<'a>(&'a self, name: &str, visitor: &mut dyn Visitor<'a>) {
                visitor.leaf(name, Leaf::$leaf(self));
            }

            fn visit_as_mut<'a>(&'a mut self, name: &str, visitor: &mut dyn VisitorMut<'a>) {
                visitor.leaf(name, LeafMut::$leaf(self));
            }
        }
    )* };
}

leaves! {
    Param as Param;
    Buffer as Buffer;
    Tensor as Constant;
    Mode as Mode;
}

macro_rules! plain {
    ($($t:ty $(where $parameter:ident)?),*) => { $(
        impl$(<$parameter>)? Module for $t {
            fn describe(&self) -> String {
                format!("{self:?}")
            }

            fn visit<'a>(&'a self, _: &mut dyn Visitor<'a>) {}

            fn visit_mut<'a>(&'a mut self, _: &mut dyn VisitorMut<'a>) {}

            fn visit_as<'a>(&'a self, _: &str, _: &mut dyn Visitor<'a>) {}

            fn visit_as_mut<'a>(&'a mut self, _: &str, _: &mut dyn VisitorMut<'a>) {}
        }
    )* };
}

plain!(bool, char, String, &'static str, DType, Shape, PhantomData<T> where T);
plain!(usize, u8, u16, u32, u64, isize, i8, i16, i32, i64, f32, f64);
