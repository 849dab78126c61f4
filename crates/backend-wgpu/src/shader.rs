//! The text of a kernel being written: operands, parameters and functions, then a skeleton from `shaders/` with its
//! placeholders filled in.
//!
//! Parameters are counted in the order in which they are pushed at the dispatch.

use std::fmt::Write;

use tensor_core::DType;
use tensor_core::expr::lower::LowType;

use crate::emit;

/// What a kernel does with an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    Write,
}

/// A kernel's text and what is bound to it.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) text: String,
    pub(crate) bindings: Vec<Access>,
    pub(crate) n_args: usize,
}

/// A kernel being written.
pub(crate) struct Shader {
    bindings: Vec<Access>,
    operands: String,
    functions: String,
    n_args: usize,
    /// Whether it computes in 64-bit integers, and in 64-bit floats.
    is_wide: bool,
    is_double: bool,
}

/// `{prefix}0`, `{prefix}1`, …
pub(crate) fn names(prefix: &str, n: usize) -> Vec<String> {
    (0..n).map(|k| format!("{prefix}{k}")).collect()
}

impl Shader {
    pub(crate) fn new() -> Self {
        // The first parameter is read by `keep`.
        let (operands, functions) = (String::new(), String::new());
        Self { bindings: Vec::new(), operands, functions, n_args: 1, is_wide: false, is_double: false }
    }

    /// Notes a type that is computed in.
    pub(crate) fn uses(&mut self, ty: LowType) {
        self.is_double |= ty == LowType::F64;
        self.is_wide |= matches!(ty, LowType::F64 | LowType::I64);
    }

    fn bind(&mut self, name: &str, element: &str, access: Access) {
        self.bindings.push(access);
        let mode = if access == Access::Read { "read" } else { "read_write" };
        let _ = writeln!(
            self.operands,
            "@group(0) @binding({}) var<storage, {mode}> {name}: array<{element}>;",
            self.bindings.len()
        );
    }

    /// An operand of which `load_{name}(i)` gives the i-th element, as the type that it is computed in.
    pub(crate) fn read(&mut self, name: &str, dtype: DType) {
        self.bind(name, emit::stored(dtype), Access::Read);
        self.loads(name, dtype);
    }

    fn loads(&mut self, name: &str, dtype: DType) {
        self.uses(LowType::of(dtype));
        let _ = writeln!(
            self.functions,
            "fn load_{name}(i: u32) -> {} {{ return {}; }}",
            emit::register_type(LowType::of(dtype)),
            emit::load(dtype, name, "i")
        );
    }

    /// An operand that is written, `{name}[i]`: words of four bytes or two 16-bit floats, else elements.
    pub(crate) fn write(&mut self, name: &str, dtype: DType) {
        self.uses(LowType::of(dtype));
        self.bind(name, emit::stored(dtype), Access::Write);
    }

    /// An operand that is read, then written.
    pub(crate) fn update(&mut self, name: &str, dtype: DType) {
        self.write(name, dtype);
        self.loads(name, dtype);
    }

    /// An operand of atomic words.
    pub(crate) fn atomic(&mut self, name: &str) {
        self.bind(name, "atomic<u32>", Access::Write);
    }

    /// An operand of plain words that is read: elements of 64 bits without the adapter's help.
    pub(crate) fn read_words(&mut self, name: &str) {
        self.bind(name, "u32", Access::Read);
    }

    /// An operand of elements of so many bytes of which `raw_{name}(i, half)` gives the i-th element's bits, of one of 8 bytes
    /// the lower (half 0) or upper word.
    pub(crate) fn raw(&mut self, name: &str, size: usize) {
        self.read_words(name);
        let bits = match size {
            8 => format!("{name}[i * 2u + half]"),
            4 => format!("{name}[i]"),
            2 => format!("({name}[i / 2u] >> (i % 2u * 16u)) & 0xffffu"),
            _ => format!("({name}[i / 4u] >> (i % 4u * 8u)) & 0xffu"),
        };
        let _ = writeln!(self.functions, "fn raw_{name}(i: u32, half: u32) -> u32 {{ return {bits}; }}");
    }

    /// An operand of plain words that is written.
    pub(crate) fn write_words(&mut self, name: &str) {
        self.bind(name, "u32", Access::Write);
    }

    /// The next parameter, a u32.
    pub(crate) fn arg(&mut self) -> String {
        let (vector, component) = (self.n_args / 4, ["x", "y", "z", "w"][self.n_args % 4]);
        self.n_args += 1;
        format!("args[{vector}].{component}")
    }

    /// The next parameters as a number of this type.
    pub(crate) fn number(&mut self, ty: LowType) -> String {
        self.uses(ty);
        let low = self.arg();
        match ty {
            LowType::I32 => format!("bitcast<i32>({low})"),
            LowType::F32 => format!("bitcast<f32>({low})"),
            LowType::Bool => format!("({low} != 0u)"),
            LowType::I64 => format!("bitcast<i64>({})", self.wide(&low)),
            LowType::F64 => format!("bitcast<f64>({})", self.wide(&low)),
        }
    }

    fn wide(&mut self, low: &str) -> String {
        format!("(u64({low}) | (u64({}) << 32u))", self.arg())
    }

    /// The WGSL type that elements of a dtype are computed in.
    pub(crate) fn type_of(&mut self, dtype: DType) -> &'static str {
        self.uses(LowType::of(dtype));
        emit::register_type(LowType::of(dtype))
    }

    /// Functions, structures and shared variables.
    pub(crate) fn push(&mut self, text: &str) {
        self.functions.push_str(text);
    }

    /// The kernel around this entry point.
    pub(crate) fn finish(self, entry: &str) -> Finished {
        let mut text = String::new();
        let vectors = self.n_args.div_ceil(4);
        let _ = writeln!(text, "@group(0) @binding(0) var<uniform> args: array<vec4<u32>, {vectors}>;");
        text.push_str(&self.operands);
        text.push_str(include_str!("../shaders/prelude.wgsl"));
        if self.is_wide {
            text.push_str(include_str!("../shaders/wide.wgsl"));
        }
        if self.is_double {
            text.push_str(include_str!("../shaders/double.wgsl"));
        }
        text.push_str(&self.functions);
        text.push_str(entry);
        debug_assert!(!text.contains("{{"), "invariant: every placeholder is filled in:\n{text}");
        Finished { text, bindings: self.bindings, n_args: self.n_args }
    }

    /// The kernel with one invocation per word of the results (`element.wgsl`). Their number is its first parameter after
    /// `keep`'s; `body` computes `y0`, `y1`, … for the place `i`, which are stored to these operands.
    pub(crate) fn element(self, results: &[(String, DType)], count: &str, body: &str) -> Finished {
        let begins = vec!["0u".to_string(); results.len()];
        self.element_at(results, &begins, count, body)
    }

    /// The same with results that begin at these elements of their operands, first ones of a word.
    pub(crate) fn element_at(
        mut self,
        results: &[(String, DType)],
        begins: &[String],
        count: &str,
        body: &str,
    ) -> Finished {
        let per = per_invocation(results.iter().map(|&(_, dtype)| dtype));
        let fields: Vec<String> = results
            .iter()
            .enumerate()
            .map(|(k, &(_, dtype))| format!("y{k}: {}", emit::register_type(LowType::of(dtype))))
            .collect();
        let values = names("y", results.len()).join(", ");
        let _ = write!(
            self.functions,
            "struct Results {{ {} }}\nfn element(i: u32) -> Results {{\n{body}    return Results({values});\n}}\n",
            fields.join(", ")
        );
        let begun =
            format!("    let start = first;\n    let n = count;\n{}", stores(results, begins, per, "element(i)"));
        let entry = include_str!("../shaders/element.wgsl")
            .replace("{{PER}}", &per.to_string())
            .replace("{{COUNT}}", count)
            .replace("{{STORES}}", &begun);
        self.finish(&entry)
    }
}

/// The lines that store the elements `start` to `start + per` of `n`: `value` gives all results of the element `i`, which begin
/// at these elements of their operands.
pub(crate) fn stores(results: &[(String, DType)], begins: &[String], per: usize, value: &str) -> String {
    let mut text = String::new();
    if per == 1 {
        let _ = writeln!(text, "    let i = start;\n    let result = {value};");
        for (k, (name, _)) in results.iter().enumerate() {
            let _ = writeln!(text, "    {name}[{} + i] = result.y{k};", begins[k]);
        }
        return text;
    }
    let in_word = |dtype: DType| 4 / dtype.size_bytes().min(4);
    for (k, &(_, dtype)) in results.iter().enumerate().filter(|(_, (_, dtype))| in_word(*dtype) > 1) {
        let _ = writeln!(text, "    var word{k}: array<u32, {}>;", per / in_word(dtype));
    }
    let _ = writeln!(text, "    for (var e = 0u; e < {per}u; e++) {{\n        let i = start + e;\n        if i < n {{");
    let _ = writeln!(text, "            let result = {value};");
    for (k, (name, dtype)) in results.iter().enumerate() {
        let value = format!("result.y{k}");
        let line = match in_word(*dtype) {
            1 => format!("{name}[{} + i] = {value};", begins[k]),
            in_word => format!(
                "word{k}[e / {in_word}u] |= {} << (e % {in_word}u * {}u);",
                emit::bits(*dtype, &value),
                32 / in_word
            ),
        };
        let _ = writeln!(text, "            {line}");
    }
    text.push_str("        }\n    }\n");
    for (k, (name, dtype)) in results.iter().enumerate().filter(|(_, (_, dtype))| in_word(*dtype) > 1) {
        let in_word = in_word(*dtype);
        for w in 0..per / in_word {
            let _ = writeln!(text, "    {name}[({} + start) / {in_word}u + {w}u] = word{k}[{w}];", begins[k]);
        }
    }
    text
}

/// How many elements an invocation computes, so that it has words of the results for itself.
pub(crate) fn per_invocation(results: impl Iterator<Item = DType>) -> usize {
    results.map(|dtype| (4 / dtype.size_bytes()).max(1)).max().unwrap_or(1)
}
