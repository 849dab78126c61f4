//! Options of convolutions and pools: one number for all spatial axes, or one per axis.

use smallvec::SmallVec;

use crate::op::Window;
use crate::{Dims, Error, Result};

/// One value for all spatial axes, or one for each: from `2` or `[1, 2]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PerAxis {
    /// The same for every spatial axis.
    All(usize),
    /// One per spatial axis.
    Each(Dims),
}

impl From<usize> for PerAxis {
    fn from(n: usize) -> Self {
        Self::All(n)
    }
}

impl<const N: usize> From<[usize; N]> for PerAxis {
    fn from(each: [usize; N]) -> Self {
        Self::Each(Dims::from_slice(&each))
    }
}

impl From<&[usize]> for PerAxis {
    fn from(each: &[usize]) -> Self {
        Self::Each(Dims::from_slice(each))
    }
}

impl From<Vec<usize>> for PerAxis {
    fn from(each: Vec<usize>) -> Self {
        Self::Each(each.into())
    }
}

impl PerAxis {
    /// One value per axis.
    pub(super) fn resolve(&self, op: &'static str, what: &str, rank: usize) -> Result<Dims> {
        match self {
            Self::All(n) => Ok(Dims::from_elem(*n, rank)),
            Self::Each(each) if each.len() == rank => Ok(each.clone()),
            Self::Each(each) => {
                Err(Error::shape(op, format!("needs one value per spatial axis: {what} {each:?}, spatial axes {rank}")))
            }
        }
    }
}

/// What surrounds the spatial axes: from `1`, `[1, 2]` (per axis, both sides) or `[(0, 1), (2, 2)]` (before, after).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Padding {
    /// As much at both sides of every spatial axis.
    All(usize),
    /// (before, after) per spatial axis.
    Each(SmallVec<[(usize, usize); 3]>),
    /// As much as keeps the size where the stride is 1; the odd one after.
    Same,
}

impl From<usize> for Padding {
    fn from(n: usize) -> Self {
        Self::All(n)
    }
}

impl<const N: usize> From<[usize; N]> for Padding {
    fn from(each: [usize; N]) -> Self {
        Self::Each(each.iter().map(|&n| (n, n)).collect())
    }
}

impl<const N: usize> From<[(usize, usize); N]> for Padding {
    fn from(each: [(usize, usize); N]) -> Self {
        Self::Each(each.into_iter().collect())
    }
}

impl From<&[(usize, usize)]> for Padding {
    fn from(each: &[(usize, usize)]) -> Self {
        Self::Each(each.iter().copied().collect())
    }
}

/// The window that these options describe for a kernel of these sizes.
pub(super) fn window(
    op: &'static str,
    kernel: &[usize],
    stride: &PerAxis,
    padding: &Padding,
    dilation: &PerAxis,
) -> Result<Window> {
    let rank = kernel.len();
    let dilation = dilation.resolve(op, "dilation", rank)?;
    let (before, after) = match padding {
        Padding::All(n) => (Dims::from_elem(*n, rank), Dims::from_elem(*n, rank)),
        Padding::Each(each) if each.len() == rank => each.iter().copied().unzip(),
        Padding::Each(each) => {
            return Err(Error::shape(
                op,
                format!("needs one value per spatial axis: padding {each:?}, spatial axes {rank}"),
            ));
        }
        Padding::Same => {
            let total = |i: usize| dilation[i].saturating_mul(kernel[i].saturating_sub(1));
            ((0..rank).map(|i| total(i) / 2).collect(), (0..rank).map(|i| total(i).div_ceil(2)).collect())
        }
    };
    Ok(Window { stride: stride.resolve(op, "stride", rank)?, before, after, dilation })
}

/// Writes an options struct with its setters: `field(what the setter takes): type = default`.
macro_rules! options {
    ($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident($from:ty): $ty:ty = $default:expr,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct $name { $($(#[$field_doc])* pub $field: $ty,)* }

        impl Default for $name {
            fn default() -> Self {
                Self { $($field: $default.into(),)* }
            }
        }

        impl $name { $(
            $(#[$field_doc])*
            #[must_use]
            pub fn $field(mut self, $field: impl Into<$from>) -> Self {
                let value: $from = $field.into();
                self.$field = value.into();
                self
            }
        )* }
    };
}

options! {
    /// How a convolution's kernel moves: `ConvOptions::default().stride(2).padding([1, 0])`.
    ConvOptions {
        /// From one window to the next; 1 by default.
        stride(PerAxis): PerAxis = 1,
        /// Zeros around the input; none by default.
        padding(Padding): Padding = 0,
        /// From one tap of the kernel to the next; 1 by default.
        dilation(PerAxis): PerAxis = 1,
        /// Channels are split into this many independent groups; 1 by default.
        groups(usize): usize = 1usize,
    }
}

options! {
    /// How a transposed convolution's kernel moves: the options of the convolution that it is the adjoint of.
    ConvTransposeOptions {
        /// From one window of the output to the next; 1 by default.
        stride(PerAxis): PerAxis = 1,
        /// Rows cut off the output; none by default.
        padding(Padding): Padding = 0,
        /// Rows added to the end of the output, less than the stride; none by default.
        output_padding(PerAxis): PerAxis = 0,
        /// From one tap of the kernel to the next; 1 by default.
        dilation(PerAxis): PerAxis = 1,
        /// Channels are split into this many independent groups; 1 by default.
        groups(usize): usize = 1usize,
    }
}

options! {
    /// A pool's windows: `PoolOptions::new(3).stride(2).padding(1)`.
    PoolOptions {
        /// The window's size; 2 by default.
        kernel(PerAxis): PerAxis = 2,
        /// From one window to the next; the window's size by default.
        stride(PerAxis): Option<PerAxis> = None,
        /// Rows around the input, at most half the window; none by default. They never win a maximum.
        padding(Padding): Padding = 0,
        /// From one element of a window to the next; 1 by default.
        dilation(PerAxis): PerAxis = 1,
        /// Whether an average counts the zeros of the padding; true by default.
        count_padding(bool): bool = true,
    }
}

impl PoolOptions {
    /// Windows of this size, side by side.
    pub fn new(kernel: impl Into<PerAxis>) -> Self {
        Self::default().kernel(kernel)
    }
}

impl From<usize> for PoolOptions {
    fn from(kernel: usize) -> Self {
        Self::new(kernel)
    }
}
