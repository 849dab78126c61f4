//! A module: parsed, checked and decoded.

use crate::error::{Error, Pos, Result};
use crate::lower::lower;
use crate::lower::operand::constant_bits;
use crate::lower::scope::size_of;
use crate::program::{Param, Program};
use crate::text::ast::{Ast, Init, Var, VarSpace};
use crate::text::parser::parse;
use crate::types::Space;
use std::sync::Arc;

/// PTX text that was read and checked: kernels that a [`Device`](crate::Device) can run.
///
/// ```
/// let module = ptx_emulator::Module::parse(
///     ".version 7.8 .target sm_80 .address_size 64
///      .visible .entry nothing() { ret; }",
/// )?;
/// assert_eq!(module.kernels().next().map(|kernel| kernel.name().to_string()), Some("nothing".into()));
///
/// let error = ptx_emulator::Module::parse(".version 7.8 .target sm_80 .entry f() { bogus.u32; }").err();
/// assert_eq!(error.map(|e| e.to_string()), Some("1:41: bogus: unknown instruction".into()));
/// # Ok::<(), ptx_emulator::Error>(())
/// ```
#[derive(Clone)]
pub struct Module(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) lines: Vec<String>,
    pub(crate) programs: Vec<Arc<Program>>,
    pub(crate) variables: Vec<Variable>,
    warnings: Vec<String>,
    target: String,
    version: (u32, u32),
}

/// A variable of the module in global or constant memory.
pub(crate) struct Variable {
    pub(crate) name: String,
    pub(crate) is_const: bool,
    /// What it begins with; zeros without an initialiser.
    pub(crate) bytes: Vec<u8>,
    /// Where addresses go in: at a byte, of so many bytes, of a variable, plus an offset.
    pub(crate) addresses: Vec<(usize, u32, usize, i64)>,
}

/// How a module is read.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct ParseOptions {
    /// Refuse floating add, sub and mul without a rounding, and instructions above the declared target or version.
    pub strict: bool,
}

impl ParseOptions {
    /// The defaults with [`strict`](Self::strict) as given.
    pub fn strict(strict: bool) -> Self {
        Self { strict }
    }
}

/// A kernel of a module.
#[derive(Clone, Copy)]
pub struct Kernel<'m>(&'m Program);

impl Kernel<'_> {
    /// The name.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// The parameters, in order.
    pub fn params(&self) -> &[Param] {
        &self.0.params
    }

    /// The size of all parameters together.
    pub fn param_bytes(&self) -> u32 {
        self.0.param_bytes
    }

    /// The static shared memory.
    pub fn shared_bytes(&self) -> u32 {
        self.0.shared_bytes
    }

    /// The local memory of one thread.
    pub fn local_bytes(&self) -> u32 {
        self.0.local.iter().map(|placed| placed.bytes).sum()
    }

    /// How many virtual registers it uses, predicates included.
    pub fn registers(&self) -> usize {
        let rows = self.0.narrow.iter().chain(&self.0.wide).chain(&self.0.preds);
        rows.filter(|row| matches!(row, crate::program::Init::Reg(_))).count()
    }

    /// How many instructions it has, with the functions that it calls.
    pub fn instructions(&self) -> usize {
        self.0.ops.len()
    }

    /// The most threads in a block, if it declares them: `.reqntid` or `.maxntid`.
    pub fn max_threads(&self) -> Option<[u32; 3]> {
        self.0.required_threads.or(self.0.max_threads)
    }
}

impl Module {
    /// Reads a module.
    ///
    /// # Errors
    ///
    /// If the text is no valid module: unknown instructions and modifiers, operands that do not fit, names that are not
    /// declared. The text of the error begins with line and column.
    pub fn parse(text: &str) -> Result<Self> {
        Self::parse_with(text, ParseOptions::default())
    }

    /// Reads a module in another way.
    ///
    /// # Errors
    ///
    /// As [`parse`](Self::parse), and what the options refuse.
    pub fn parse_with(text: &str, options: ParseOptions) -> Result<Self> {
        let ast = parse(text)?;
        check_names(&ast)?;
        let mut programs = Vec::new();
        for func in ast.funcs.iter().filter(|func| func.body.is_some()) {
            let program = lower(&ast, func, options.strict)?;
            if func.is_entry {
                programs.push(Arc::new(program));
            }
        }
        let variables = ast.vars.iter().map(|var| variable(&ast, var)).collect::<Result<_>>()?;
        Ok(Self(Arc::new(Inner {
            lines: text.lines().map(|line| line.trim().to_string()).collect(),
            programs,
            variables,
            warnings: ast.warnings,
            target: ast.target.join(", "),
            version: ast.version,
        })))
    }

    /// The kernels, in the order of the text.
    pub fn kernels(&self) -> impl Iterator<Item = Kernel<'_>> {
        self.0.programs.iter().map(|program| Kernel(program))
    }

    /// The kernel of that name.
    pub fn kernel(&self, name: &str) -> Option<Kernel<'_>> {
        self.kernels().find(|kernel| kernel.name() == name)
    }

    /// What is odd about the module but no error.
    pub fn warnings(&self) -> &[String] {
        &self.0.warnings
    }

    /// What it is for, as in `sm_80`.
    pub fn target(&self) -> &str {
        &self.0.target
    }

    /// The version of PTX that it declares.
    pub fn version(&self) -> (u32, u32) {
        self.0.version
    }
}

impl std::fmt::Debug for Module {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<_> = self.kernels().map(|kernel| kernel.name().to_string()).collect();
        f.debug_struct("Module").field("target", &self.0.target).field("kernels", &names).finish()
    }
}

fn check_names(ast: &Ast<'_>) -> Result<()> {
    let mut seen = std::collections::HashSet::new();
    let vars = ast.vars.iter().map(|var| (var.name, var.pos, var.is_extern));
    let funcs = ast.funcs.iter().map(|func| (func.name, func.pos, func.body.is_none()));
    for (name, pos, _) in vars.chain(funcs).filter(|(.., is_declaration)| !is_declaration) {
        if !seen.insert(name) {
            return Err(Error::parse(pos, format!("`{name}` is already declared")));
        }
    }
    for var in &ast.vars {
        if var.is_extern && var.space != VarSpace::Memory(Space::Shared) && !seen.contains(var.name) {
            return Err(Error::parse(var.pos, format!("`{}` is external: modules are not linked", var.name)));
        }
    }
    Ok(())
}

fn variable(ast: &Ast<'_>, var: &Var<'_>) -> Result<Variable> {
    let is_const = var.space == VarSpace::Memory(Space::Const);
    let mut variable = Variable { name: var.name.into(), is_const, bytes: Vec::new(), addresses: Vec::new() };
    if var.space == VarSpace::Memory(Space::Shared) {
        return Ok(variable);
    }
    let (bytes, _) = size_of(var)?;
    variable.bytes = vec![0; bytes as usize];
    if let Some(init) = &var.init {
        let inner: Vec<usize> = var.dims.iter().skip(1).map(|dim| dim.unwrap_or(0) as usize).collect();
        fill(ast, var, init, &inner, 0, &mut variable)?;
    }
    Ok(variable)
}

/// Writes an initialiser at the element; `inner` are the sizes of the dimensions below.
fn fill(ast: &Ast<'_>, var: &Var<'_>, init: &Init<'_>, inner: &[usize], at: usize, to: &mut Variable) -> Result<()> {
    let size = var.ty.bytes() as usize;
    let error = |pos: Pos, message: String| Err(Error::parse(pos, format!("{}: {message}", var.name)));
    let start = at * size;
    if !matches!(init, Init::List(_)) && start + size > to.bytes.len() {
        return error(var.pos, "initialiser has more elements than the variable".into());
    }
    match init {
        Init::List(list) => {
            let step = inner.iter().product::<usize>();
            for (i, item) in list.iter().enumerate() {
                let nested = matches!(item, Init::List(_));
                let step = if nested { step.max(1) } else { 1 };
                fill(ast, var, item, inner.get(1..).unwrap_or(&[]), at + i * step, to)?;
            }
        }
        Init::Const(value) => {
            let bits = constant_bits(*value, var.ty, var.pos)?;
            to.bytes[start..start + size].copy_from_slice(&bits.to_le_bytes()[..size]);
        }
        Init::Symbol(name, offset, pos) => {
            let Some(index) = ast.vars.iter().position(|other| other.name == *name) else {
                return error(*pos, format!("unknown variable `{name}` in an initialiser"));
            };
            if ast.vars[index].space == VarSpace::Memory(Space::Shared) || size < 4 {
                return error(*pos, format!("the address of `{name}` cannot be stored here"));
            }
            to.addresses.push((start, size as u32, index, *offset));
        }
    }
    Ok(())
}
