//! Macros that turn a formula over one lane into a function over rows.

use crate::program::{Fn32, Fn64};

/// A lane-wise function and the width it works in.
#[derive(Clone, Copy)]
pub(crate) enum Kernel {
    N(Fn32),
    W(Fn64),
}

/// A formula over 32-bit lanes: `n!(a, b => a.wrapping_add(b))`.
macro_rules! n {
    (@ $row:ty, $t:ty, $make:path, [$($x:ident $i:tt),*] $e:expr) => {{
        fn kernel(s: [&$row; 4], d: &mut $row) {
            for lane in 0..32 {
                $(let $x: $t = s[$i][lane];)*
                d[lane] = $e;
            }
        }
        $make(kernel)
    }};
    ($a:ident => $e:expr) => {
        $crate::value::kernel::n!(@ $crate::types::Row, u32, $crate::value::kernel::Kernel::N, [$a 0] $e)
    };
    ($a:ident, $b:ident => $e:expr) => {
        $crate::value::kernel::n!(@ $crate::types::Row, u32, $crate::value::kernel::Kernel::N, [$a 0, $b 1] $e)
    };
    ($a:ident, $b:ident, $c:ident => $e:expr) => {
        $crate::value::kernel::n!(@ $crate::types::Row, u32, $crate::value::kernel::Kernel::N, [$a 0, $b 1, $c 2] $e)
    };
    ($a:ident, $b:ident, $c:ident, $f:ident => $e:expr) => {
        $crate::value::kernel::n!(@ $crate::types::Row, u32, $crate::value::kernel::Kernel::N, [$a 0, $b 1, $c 2, $f 3] $e)
    };
}

/// A formula over 64-bit lanes; narrower sources are widened with zeros.
macro_rules! w {
    ($a:ident => $e:expr) => {
        $crate::value::kernel::n!(@ $crate::types::Row64, u64, $crate::value::kernel::Kernel::W, [$a 0] $e)
    };
    ($a:ident, $b:ident => $e:expr) => {
        $crate::value::kernel::n!(@ $crate::types::Row64, u64, $crate::value::kernel::Kernel::W, [$a 0, $b 1] $e)
    };
    ($a:ident, $b:ident, $c:ident => $e:expr) => {
        $crate::value::kernel::n!(@ $crate::types::Row64, u64, $crate::value::kernel::Kernel::W, [$a 0, $b 1, $c 2] $e)
    };
    ($a:ident, $b:ident, $c:ident, $f:ident => $e:expr) => {
        $crate::value::kernel::n!(@ $crate::types::Row64, u64, $crate::value::kernel::Kernel::W, [$a 0, $b 1, $c 2, $f 3] $e)
    };
}

/// A comparison of two rows: one bit per lane.
macro_rules! cmp {
    (n $a:ident, $b:ident => $e:expr) => {{
        fn compare(x: &$crate::types::Row, y: &$crate::types::Row) -> u32 {
            let mut mask = 0;
            for lane in 0..32 {
                let ($a, $b) = (x[lane], y[lane]);
                mask |= u32::from($e) << lane;
            }
            mask
        }
        $crate::program::Compare::N(compare)
    }};
    (w $a:ident, $b:ident => $e:expr) => {{
        fn compare(x: &$crate::types::Row64, y: &$crate::types::Row64) -> u32 {
            let mut mask = 0;
            for lane in 0..32 {
                let ($a, $b) = (x[lane], y[lane]);
                mask |= u32::from($e) << lane;
            }
            mask
        }
        $crate::program::Compare::W(compare)
    }};
}

pub(crate) use {cmp, n, w};
