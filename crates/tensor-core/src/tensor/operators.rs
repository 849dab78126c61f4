//! The operators `+ - * /` and unary `-`, between tensors, parameters and numbers, owned or borrowed.
//!
//! They panic with the error's text; the methods (`add`, `sub`, …) return it.

use std::ops::{Add, Div, Mul, Neg, Sub};

use super::Operand;
use crate::{Param, Result, Tensor};

/// What can stand on the right of an operator.
pub trait AsOperand {
    /// The operand, borrowed.
    fn operand(&self) -> Operand<'_>;
}

impl AsOperand for Tensor {
    fn operand(&self) -> Operand<'_> {
        Operand::Tensor(self)
    }
}

impl AsOperand for Param {
    fn operand(&self) -> Operand<'_> {
        Operand::Tensor(self)
    }
}

impl<T: AsOperand + ?Sized> AsOperand for &T {
    fn operand(&self) -> Operand<'_> {
        (**self).operand()
    }
}

macro_rules! numbers {
    ($($t:ty),*) => { $(impl AsOperand for $t {
        fn operand(&self) -> Operand<'_> { (*self).into() }
    })* };
}
numbers!(f64, f32, i64, i32, usize);

#[track_caller]
fn done(result: Result<Tensor>) -> Tensor {
    match result {
        Ok(tensor) => tensor,
        Err(error) => panic!("{error}"),
    }
}

macro_rules! operator {
    ($($trait:ident $name:ident;)*) => { $(
        operator!(@left $trait $name: Tensor, &Tensor, Param, &Param);
        operator!(@right $trait $name: f64, i32);
    )* };
    (@left $trait:ident $name:ident: $($left:ty),*) => { $(
        impl<R: AsOperand> $trait<R> for $left {
            type Output = Tensor;
            /// # Panics
            /// With the error's text, where the method of this name returns an error.
            #[track_caller]
            fn $name(self, rhs: R) -> Tensor {
                let lhs: &Tensor = &self;
                done(lhs.$name(rhs.operand()))
            }
        }
    )* };
    // One float and one integer type: with two, `1.0 - &x` leaves the literal's type open.
    (@right $trait:ident $name:ident: $($number:ty),*) => { $(
        operator!(@number $trait $name $number: Tensor, &Tensor, Param, &Param);
    )* };
    (@number $trait:ident $name:ident $number:ty: $($right:ty),*) => { $(
        impl $trait<$right> for $number {
            type Output = Tensor;
            /// # Panics
            /// With the error's text, where the method of this name returns an error.
            #[track_caller]
            fn $name(self, rhs: $right) -> Tensor {
                let rhs: &Tensor = &rhs;
                done(rhs.reversed(stringify!($name), self.into()))
            }
        }
    )* };
}
operator! { Add add; Sub sub; Mul mul; Div div; }

macro_rules! negation {
    ($($t:ty),*) => { $(impl Neg for $t {
        type Output = Tensor;
        /// # Panics
        /// With the error's text, where [`Tensor::neg`] returns an error.
        #[track_caller]
        fn neg(self) -> Tensor {
            let x: &Tensor = &self;
            done(Tensor::neg(x))
        }
    })* };
}
negation!(Tensor, &Tensor, Param, &Param);
