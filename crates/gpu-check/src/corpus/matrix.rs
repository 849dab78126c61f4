//! Products of matrix units, for every lane's own fragments.

use backend_cuda::driver::Driver;
use half::{bf16, f16};
use tensor_core::Result;

use super::{Arg, Case, Count, Numbers};
use crate::device::Subject;
use crate::record::Record;

/// Shape and types, registers of A and B, terms of a sum, and how an element is encoded.
const SHAPES: [(&str, usize, usize, f32, fn(&mut Numbers) -> u32); 6] = [
    ("m16n8k16.row.col.f32.f16.f16.f32", 4, 2, 16.0, halves),
    ("m16n8k8.row.col.f32.f16.f16.f32", 2, 1, 8.0, halves),
    ("m16n8k16.row.col.f32.bf16.bf16.f32", 4, 2, 16.0, brains),
    ("m16n8k8.row.col.f32.bf16.bf16.f32", 2, 1, 8.0, brains),
    ("m16n8k8.row.col.f32.tf32.tf32.f32", 4, 2, 8.0, tf32),
    ("m16n8k4.row.col.f32.tf32.tf32.f32", 2, 1, 4.0, tf32),
];

fn halves(numbers: &mut Numbers) -> u32 {
    let [low, high] = [(); 2].map(|()| u32::from(f16::from_f32(numbers.unit()).to_bits()));
    low | high << 16
}

fn brains(numbers: &mut Numbers) -> u32 {
    let [low, high] = [(); 2].map(|()| u32::from(bf16::from_f32(numbers.unit()).to_bits()));
    low | high << 16
}

fn tf32(numbers: &mut Numbers) -> u32 {
    numbers.unit().to_bits() & !0x1fff
}

fn case(types: &str, a: usize, b: usize, draw: fn(&mut Numbers) -> u32) -> Case {
    let per_lane = a + b + 4;
    let list = |prefix: &str, n: usize| (0..n).map(|i| format!("%{prefix}{i}")).collect::<Vec<_>>().join(", ");
    let mut body = format!(
        ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 p0, .param .u64 p1)\n{{\n\
         .reg .b32 %t, %a<4>, %b<2>, %c<4>;\n.reg .b64 %to, %from;\n\
         ld.param.u64 %to, [p0]; ld.param.u64 %from, [p1]; mov.u32 %t, %tid.x;\n\
         mad.wide.u32 %to, %t, 16, %to; mad.wide.u32 %from, %t, {}, %from;\n",
        4 * per_lane
    );
    for (prefix, n, first) in [("a", a, 0), ("b", b, a), ("c", 4, a + b)] {
        (0..n).for_each(|i| body += &format!("ld.global.b32 %{prefix}{i}, [%from+{}];\n", 4 * (first + i)));
    }
    let (sums, lhs, rhs) = (list("c", 4), list("a", a), list("b", b));
    body += &format!("mma.sync.aligned.{types} {{{sums}}}, {{{lhs}}}, {{{rhs}}}, {{{sums}}};\n");
    body += "st.global.v4.b32 [%to], {%c0, %c1, %c2, %c3};\nret;\n}\n";
    let mut numbers = Numbers(17);
    let words = (0..32).flat_map(|_| {
        let factors: Vec<u32> = (0..a + b).map(|_| draw(&mut numbers)).collect();
        let sums: Vec<u32> = (0..4).map(|_| numbers.unit().to_bits()).collect();
        [factors, sums].concat()
    });
    let input = words.flat_map(u32::to_le_bytes).collect();
    let args = vec![Arg::Result(vec![0; 32 * 16]), Arg::Input(input)];
    let name = format!("mma.sync.aligned.{types}");
    Case { name, text: body, entry: "k", target: 80, grid: [1; 3], block: [32, 1, 1], shared_bytes: 0, args }
}

pub(super) fn run(subject: &Subject, reference: &dyn Driver, record: &mut Record) -> Result<()> {
    let mut count = Count::default();
    for (types, a, b, terms, draw) in SHAPES {
        // Factors and the number added to are at most 1; units may cut each product.
        let room = (terms + 1.0) * 2f32.powi(-22);
        let float = |bytes: &[u8]| f32::from_bits(super::bits(bytes) as u32);
        let judge = |_: usize, found: &[u8], expected: &[u8]| {
            let off = (float(found) - float(expected)).abs();
            (!(off <= room)).then(|| format!("off by {off:e}, allowed {room:e}"))
        };
        count.compare(subject, reference, record, &case(types, a, b, draw), 4, judge)?;
    }
    count.row("matrix products (other bits: another way of adding up)", record);
    Ok(())
}
