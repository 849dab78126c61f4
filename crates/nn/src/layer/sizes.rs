//! One size per spatial axis, written as one number or one per axis.

use std::fmt;

use tensor_core::op::Window;

/// A kernel, stride, padding or dilation over `D` spatial axes: `3` for all axes, or `[3, 5]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes<const D: usize>(pub [usize; D]);

impl<const D: usize> From<usize> for Sizes<D> {
    fn from(size: usize) -> Self {
        Self([size; D])
    }
}

impl<const D: usize> From<[usize; D]> for Sizes<D> {
    fn from(sizes: [usize; D]) -> Self {
        Self(sizes)
    }
}

impl<const D: usize> fmt::Display for Sizes<D> {
    /// `3×5`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, size) in self.0.iter().enumerate() {
            write!(f, "{}{size}", if i == 0 { "" } else { "×" })?;
        }
        Ok(())
    }
}

/// The window of these sizes, padded by the same on both sides.
pub(super) fn window<const D: usize>(stride: Sizes<D>, padding: Sizes<D>, dilation: Sizes<D>) -> Window {
    Window {
        stride: stride.0.as_slice().into(),
        before: padding.0.as_slice().into(),
        after: padding.0.as_slice().into(),
        dilation: dilation.0.as_slice().into(),
    }
}

/// `, stride 2×2` where a setting is not what it is by default.
pub(super) fn unless_default<const D: usize>(name: &str, value: &[usize], default: Sizes<D>) -> String {
    if *value == default.0 {
        return String::new();
    }
    let sizes: Vec<String> = value.iter().map(usize::to_string).collect();
    format!(", {name} {}", sizes.join("×"))
}
