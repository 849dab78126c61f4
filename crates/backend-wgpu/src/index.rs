//! From a place to places in operands: the text that takes it apart into coordinates, and the parameters that it reads.

use std::fmt::Write;

use tensor_core::plan::Plan;

use crate::args::Args;
use crate::shader::Shader;

/// Declares for every operand of a plan the variable that holds its element's place, for the place `index`.
///
/// Reads per operand where it begins; then, from the innermost axis on, its size (but the outermost's), and per operand the
/// elements from one to the next, modulo 2³².
pub(crate) fn places(shader: &mut Shader, rank: usize, index: &str, operands: &[String]) -> String {
    let mut text = String::new();
    for operand in operands {
        let _ = writeln!(text, "    var {operand} = {};", shader.arg());
    }
    text.push_str(&advance(shader, rank, index, operands));
    text
}

/// The same for variables that there are: advances them to the place `index` of a plan.
pub(crate) fn advance(shader: &mut Shader, rank: usize, index: &str, operands: &[String]) -> String {
    let mut text = format!("    {{\n        var rest = {index};\n");
    for axis in (0..rank).rev() {
        let _ = if axis > 0 {
            let size = shader.arg();
            writeln!(
                text,
                "        let outer{axis} = rest / {size};\n        let c{axis} = rest - outer{axis} * {size};\n        rest = outer{axis};"
            )
        } else {
            writeln!(text, "        let c0 = rest;")
        };
        for operand in operands {
            let _ = writeln!(text, "        {operand} += c{axis} * {};", shader.arg());
        }
    }
    text.push_str("    }\n");
    text
}

/// The parameters that [`places`] reads, for operands that begin at these elements.
pub(crate) fn push_places(args: &mut Args, plan: &Plan, begins: impl IntoIterator<Item = usize>) {
    begins.into_iter().for_each(|begin| args.push(begin));
    push_advance(args, plan);
}

/// The parameters that [`advance`] reads.
pub(crate) fn push_advance(args: &mut Args, plan: &Plan) {
    for axis in (0..plan.rank()).rev() {
        if axis > 0 {
            args.push(plan.dims[axis]);
        }
        plan.strides.iter().for_each(|strides| args.push_signed(strides[axis]));
    }
}

/// Declares `{prefix}0`, …: the coordinates of the place `index` in a shape. Reads, from the innermost axis on, the sizes
/// but the outermost's.
pub(crate) fn coordinates(shader: &mut Shader, index: &str, rank: usize, prefix: &str) -> String {
    let mut text = format!("    var {prefix}_rest = {index};\n");
    for axis in (1..rank).rev() {
        let size = shader.arg();
        let _ = writeln!(
            text,
            "    let {prefix}{axis} = {prefix}_rest % {size};\n    {prefix}_rest = {prefix}_rest / {size};"
        );
    }
    if rank > 0 {
        let _ = writeln!(text, "    let {prefix}0 = {prefix}_rest;");
    }
    text
}

/// The parameters that [`coordinates`] reads.
pub(crate) fn push_coordinates(args: &mut Args, shape: &[usize]) {
    (1..shape.len()).rev().for_each(|axis| args.push(shape[axis]));
}
