//! Pooling to a fixed size, whatever the input's.

use tensor_core::{Result, Tensor};

use super::sizes::Sizes;
use crate::{Forward, Module};

macro_rules! adaptive {
    ($($name:ident, $what:literal, $one:ident = $pool1:ident, $two:ident = $pool2:ident, $three:ident = $pool3:ident;)*) => { $(
        #[doc = concat!("[`", stringify!($name), "`] over one spatial axis.")]
        pub type $one = $name<1>;
        #[doc = concat!("[`", stringify!($name), "`] over two spatial axes.")]
        pub type $two = $name<2>;
        #[doc = concat!("[`", stringify!($name), "`] over three spatial axes.")]
        pub type $three = $name<3>;

        #[doc = concat!("y_i = the ", $what, " of the input from ⌊i·L/L′⌋ to ⌈(i + 1)·L/L′⌉ along each spatial axis.")]
        ///
        /// # Shapes
        /// | | shape |
        /// |---|---|
        /// | input | [N, C, L…] |
        /// | output | [N, C, L′…] |
        ///
        /// # Errors
        /// If the input has another number of axes, or one of size 0.
        #[derive(Module, Clone, Copy, Debug)]
        #[module(describe = Self::settings)]
        pub struct $name<const D: usize>(#[module(skip)] pub Sizes<D>);

        impl<const D: usize> $name<D> {
            /// Pools to these sizes.
            pub fn new(sizes: impl Into<Sizes<D>>) -> Self {
                Self(sizes.into())
            }

            fn settings(&self) -> String {
                format!("{}{D}d({})", stringify!($name).trim_end_matches("Nd"), self.0)
            }
        }

        impl<const D: usize> Forward for $name<D> {
            fn forward(&self, x: &Tensor) -> Result<Tensor> {
                let sizes = self.0.0;
                match D {
                    1 => x.$pool1(sizes),
                    2 => x.$pool2(sizes),
                    _ => x.$pool3(sizes),
                }
            }
        }
    )* };
}

adaptive! {
    AdaptiveAvgPoolNd, "mean",
        AdaptiveAvgPool1d = adaptive_avg_pool1d,
        AdaptiveAvgPool2d = adaptive_avg_pool2d,
        AdaptiveAvgPool3d = adaptive_avg_pool3d;
    AdaptiveMaxPoolNd, "maximum",
        AdaptiveMaxPool1d = adaptive_max_pool1d,
        AdaptiveMaxPool2d = adaptive_max_pool2d,
        AdaptiveMaxPool3d = adaptive_max_pool3d;
}
