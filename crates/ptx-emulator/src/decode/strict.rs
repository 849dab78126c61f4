//! What strict decoding refuses on top: floating arithmetic that the assembler may fuse, and instructions above the
//! declared target or version.

use crate::error::{Error, Result};
use crate::text::ast::{Ast, Stmt};

/// Opcode, a modifier that it has, and the first target and version with it.
const NEEDS: &[(&str, &[&str], u32, (u32, u32))] = &[
    ("cp", &["bulk"], 90, (8, 0)),
    ("cp", &["async"], 80, (7, 0)),
    ("ldmatrix", &[], 75, (6, 5)),
    ("stmatrix", &[], 90, (7, 8)),
    ("movmatrix", &[], 75, (7, 8)),
    ("mma", &["e4m3"], 89, (8, 4)),
    ("mma", &["e5m2"], 89, (8, 4)),
    ("mma", &["bf16"], 80, (7, 0)),
    ("mma", &["tf32"], 80, (7, 0)),
    ("mma", &["f64"], 80, (7, 0)),
    ("mma", &["m16n8k16", "f16"], 80, (7, 0)),
    ("mma", &["m16n8k16"], 80, (7, 0)),
    ("mma", &["m16n8k32"], 80, (7, 0)),
    ("mma", &["m16n8k64"], 80, (7, 0)),
    ("mma", &[], 75, (6, 5)),
    ("wmma", &["bf16"], 80, (7, 0)),
    ("wmma", &["tf32"], 80, (7, 0)),
    ("wmma", &["s8"], 72, (6, 3)),
    ("wmma", &[], 70, (6, 0)),
    ("mbarrier", &["try_wait"], 90, (7, 8)),
    ("mbarrier", &["expect_tx"], 90, (8, 0)),
    ("mbarrier", &[], 80, (7, 0)),
    ("redux", &[], 80, (7, 0)),
    ("elect", &[], 90, (8, 0)),
    ("match", &[], 70, (6, 0)),
    ("activemask", &[], 30, (6, 2)),
    ("tanh", &["bf16"], 90, (7, 8)),
    ("tanh", &["bf16x2"], 90, (7, 8)),
    ("tanh", &[], 75, (7, 0)),
    ("ex2", &["bf16"], 90, (7, 8)),
    ("ex2", &["bf16x2"], 90, (7, 8)),
    ("ex2", &["f16"], 75, (7, 0)),
    ("ex2", &["f16x2"], 75, (7, 0)),
    ("add", &["bf16"], 90, (7, 8)),
    ("add", &["bf16x2"], 90, (7, 8)),
    ("sub", &["bf16"], 90, (7, 8)),
    ("sub", &["bf16x2"], 90, (7, 8)),
    ("mul", &["bf16"], 90, (7, 8)),
    ("mul", &["bf16x2"], 90, (7, 8)),
    ("fma", &["bf16"], 80, (7, 0)),
    ("fma", &["bf16x2"], 80, (7, 0)),
    ("min", &["NaN"], 80, (7, 0)),
    ("max", &["NaN"], 80, (7, 0)),
    ("min", &["f16"], 80, (7, 0)),
    ("max", &["f16"], 80, (7, 0)),
    ("min", &["f16x2"], 80, (7, 0)),
    ("max", &["f16x2"], 80, (7, 0)),
    ("min", &["bf16"], 80, (7, 0)),
    ("max", &["bf16"], 80, (7, 0)),
    ("min", &["bf16x2"], 80, (7, 0)),
    ("max", &["bf16x2"], 80, (7, 0)),
    ("cvt", &["e4m3x2"], 89, (8, 1)),
    ("cvt", &["e5m2x2"], 89, (8, 1)),
    ("cvt", &["tf32", "rna"], 80, (7, 0)),
    ("cvt", &["tf32"], 90, (7, 8)),
    ("cvt", &["bf16x2"], 80, (7, 0)),
    ("cvt", &["f16x2"], 80, (7, 0)),
    ("cvt", &["bf16", "rn", "f32"], 80, (7, 0)),
    ("cvt", &["f32", "bf16"], 80, (7, 1)),
    ("cvt", &["bf16"], 90, (7, 8)),
    ("atom", &["bf16"], 90, (7, 8)),
    ("atom", &["bf16x2"], 90, (7, 8)),
    ("atom", &["v2"], 90, (8, 1)),
    ("atom", &["v4"], 90, (8, 1)),
    ("atom", &["f16"], 70, (6, 3)),
    ("red", &["bf16"], 90, (7, 8)),
    ("red", &["bf16x2"], 90, (7, 8)),
    ("red", &["v2"], 90, (8, 1)),
    ("red", &["v4"], 90, (8, 1)),
    ("red", &["f16"], 70, (6, 3)),
    ("setmaxnreg", &[], 90, (8, 0)),
    ("nanosleep", &[], 70, (6, 3)),
];

/// The compute capability that the module is for, as in sm_80.
fn target(ast: &Ast<'_>) -> u32 {
    let number = |name: &str| {
        let digits: String = name.strip_prefix("sm_")?.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().ok()
    };
    ast.target.iter().find_map(|name| number(name)).unwrap_or(0)
}

pub(super) fn check(ast: &Ast<'_>, stmt: &Stmt<'_>) -> Result<()> {
    let error = |message: String| Err(Error::parse(stmt.pos, message));
    let has = |modifier: &&str| stmt.mods.contains(modifier);
    let opcode = stmt.opcode;
    let floating =
        stmt.mods.iter().any(|modifier| matches!(*modifier, "f32" | "f64" | "f16" | "f16x2" | "bf16" | "bf16x2"));
    let rounded = stmt.mods.iter().any(|modifier| matches!(*modifier, "rn" | "rz" | "rm" | "rp"));
    if matches!(opcode, "add" | "sub" | "mul") && floating && !rounded {
        return error(format!("{opcode}: strict mode wants a rounding such as .rn: without one it may be fused"));
    }
    let need = NEEDS.iter().find(|(name, mods, ..)| *name == opcode && mods.iter().all(&has));
    if let Some((_, mods, sm, version)) = need {
        let what: String = mods.iter().map(|modifier| format!(".{modifier}")).collect();
        if target(ast) < *sm {
            return error(format!("{opcode}{what} needs sm_{sm}: the target is sm_{}", target(ast)));
        }
        if ast.version < *version {
            let (major, minor) = ast.version;
            return error(format!(
                "{opcode}{what} needs version {}.{}: the module's is {major}.{minor}",
                version.0, version.1
            ));
        }
    }
    Ok(())
}
