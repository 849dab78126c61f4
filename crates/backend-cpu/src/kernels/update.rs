//! An optimizer's step over all parameters in one call.

use tensor_core::{Error, Result, Target, UpdateRule};

use crate::Context;

/// Applies `rule` to all targets.
pub(crate) fn run(rule: &UpdateRule, targets: &mut [Target<'_>], cx: &Context<'_>) -> Result<()> {
    let _ = (rule, targets, cx);
    Err(Error::unsupported("update", "has no kernel on cpu yet"))
}
