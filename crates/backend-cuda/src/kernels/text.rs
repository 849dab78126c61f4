//! The text of a kernel being written: registers are declared at the top, slots of parameters are counted in the order in
//! which they are pushed at the launch.

use std::fmt::Write;

use tensor_core::DType;
use tensor_core::expr::lower::LowType;

use crate::args::Slots;
use crate::emit;
use crate::source::Source;

/// Declarations and lines.
#[derive(Default)]
pub(crate) struct Text {
    pub(crate) slots: Slots,
    registers: String,
    body: String,
}

/// `%{prefix}0`, `%{prefix}1`, …
pub(crate) fn names(prefix: &str, n: usize) -> Vec<String> {
    (0..n).map(|k| format!("%{prefix}{k}")).collect()
}

impl Text {
    /// Declares a register.
    pub(crate) fn register(&mut self, ty: &str, name: &str) {
        let _ = writeln!(self.registers, "    .reg .{ty} {name};");
    }

    /// A declaration of any kind.
    pub(crate) fn declare(&mut self, line: &str) {
        let _ = writeln!(self.registers, "{line}");
    }

    /// Declares the register that an element of a dtype is computed in.
    pub(crate) fn value(&mut self, dtype: DType, name: &str) {
        self.register(emit::register_type(LowType::of(dtype)), name);
    }

    /// Declares a register of 64 bits and loads the next slot into it.
    pub(crate) fn wide(&mut self, name: &str) {
        self.register("b64", name);
        let slot = self.slots.next();
        self.line(format!("ld.param.u64 {name}, {slot};"));
    }

    /// Declares a register of 32 bits and loads the next slot into it.
    pub(crate) fn word(&mut self, name: &str) {
        self.register("b32", name);
        let slot = self.slots.next();
        self.line(format!("ld.param.u32 {name}, {slot};"));
    }

    /// Declares a register for a number of this type and loads the next slot into it.
    pub(crate) fn number(&mut self, ty: LowType, name: &str) {
        let slot = self.slots.next();
        self.number_from(ty, name, "param", &slot);
    }

    /// Declares a register for a number of this type and loads it from there.
    pub(crate) fn number_from(&mut self, ty: LowType, name: &str, space: &str, from: &str) {
        self.register(emit::register_type(ty), name);
        match ty {
            LowType::Bool => {
                self.line(format!("{{ .reg .b32 %t_w; ld.{space}.u32 %t_w, {from}; setp.ne.b32 {name}, %t_w, 0; }}"));
            }
            LowType::F32 | LowType::F64 | LowType::I32 | LowType::I64 => {
                self.line(format!("ld.{space}.{} {name}, {from};", emit::register_type(ty)));
            }
        }
    }

    /// Advances an address by an index of elements.
    pub(crate) fn advance(&mut self, address: &str, index: &str, element_bytes: usize) {
        self.line(format!(
            "{{ .reg .b64 %t_w; mul.wide.u32 %t_w, {index}, {element_bytes}; add.s64 {address}, {address}, %t_w; }}"
        ));
    }

    /// A line of the body.
    pub(crate) fn line(&mut self, line: impl AsRef<str>) {
        let _ = writeln!(self.body, "    {}", line.as_ref());
    }

    /// Lines of the body.
    pub(crate) fn push(&mut self, text: &str) {
        self.body.push_str(text);
    }

    /// The body so far, which then is empty: a piece for a placeholder.
    pub(crate) fn take(&mut self) -> String {
        std::mem::take(&mut self.body)
    }

    /// A skeleton with name, parameters and registers filled in.
    pub(crate) fn skeleton(self, skeleton: &str, name: &str) -> Source {
        Source::new(skeleton)
            .put("NAME", name)
            .put("BYTES", self.slots.len_bytes().to_string())
            .put("REGISTERS", self.registers)
    }

    /// The module of a kernel with one thread per element of the result, `%i` of `%count` (`element.ptx`).
    pub(crate) fn element(mut self, name: &str) -> String {
        let body = self.take();
        self.skeleton(include_str!("../../kernels/element.ptx"), name).put("BODY", body).finish()
    }

    /// The text of such a kernel: its first slot is the number of elements.
    pub(crate) fn of_elements() -> Self {
        let mut text = Self::default();
        // Read by the skeleton.
        let _ = text.slots.next();
        text
    }
}
