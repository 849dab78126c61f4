//! Sizes of slices in shared memory, and how their elements are moved.

use tensor_core::DType;
use tensor_core::expr::lower::LowType;

use super::super::SIDE;
use super::Form;
use crate::emit::register_type;
use crate::kernels::Text;

/// Sizes that follow from the type that is computed in.
pub(super) struct Sizes {
    pub(super) wide: DType,
    pub(super) ty: &'static str,
    pub(super) bytes: usize,
    /// Depth of a slice.
    pub(super) depth: usize,
    /// Elements from one depth to the next in shared memory: 16 bytes more than there are, against conflicts of banks.
    pub(super) pitch: usize,
    /// Where the columns' side and the weights begin, and where all ends.
    pub(super) columns: usize,
    pub(super) weights: usize,
    pub(super) shared: usize,
}

impl Sizes {
    pub(super) fn new(form: &Form) -> Self {
        let wide = form.dtype.compute();
        let bytes = wide.size_bytes();
        let (depth, pitch) = (64 / bytes, SIDE + 16 / bytes);
        let slice = depth * pitch * bytes;
        // Slices of what is mixed lie where those of the sides were.
        let weights = (2 * slice).max(depth * form.width * bytes);
        let shared = weights + SIDE * pitch * bytes;
        Self { wide, ty: register_type(LowType::of(wide)), bytes, depth, pitch, columns: slice, weights, shared }
    }

    /// Moves four neighbours between registers and shared memory.
    pub(super) fn four(&self, text: &mut Text, load: bool, registers: [String; 4], address: &str, at: usize) {
        let n = 16 / self.bytes;
        for (i, part) in registers.chunks(n.min(4)).enumerate() {
            let (list, at) = (part.join(", "), at + 16 * i);
            text.line(match load {
                true => format!("ld.shared.v{n}.{} {{{list}}}, [{address}+{at}];", self.ty),
                false => format!("st.shared.v{n}.{} [{address}+{at}], {{{list}}};", self.ty),
            });
        }
    }

    pub(super) fn constant(&self, value: f64) -> String {
        match self.wide {
            DType::F64 => format!("0d{:016X}", value.to_bits()),
            _ => format!("0f{:08X}", (value as f32).to_bits()),
        }
    }
}

/// Four registers of consecutive numbers.
pub(super) fn registers(prefix: &str, from: usize) -> [String; 4] {
    std::array::from_fn(|i| format!("%{prefix}{}", from + i))
}
