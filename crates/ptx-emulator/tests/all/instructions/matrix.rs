//! Matrix instructions: fragments as the manual draws them, products against f64.

use crate::support::{Numbers, REGISTERS, kernel};
use half::{bf16, f16};
use ptx_emulator::{Arg, Device, Launch, MmaMode, Module, Options};

/// One product: shape, types, the registers of A, B and C, and the bits of an element of A or B.
struct Shape {
    name: &'static str,
    types: &'static str,
    k: usize,
    regs: [usize; 3],
    bits: usize,
}

const SHAPES: &[Shape] = &[
    Shape { name: "m16n8k16", types: "f32.f16.f16.f32", k: 16, regs: [4, 2, 4], bits: 16 },
    Shape { name: "m16n8k8", types: "f32.f16.f16.f32", k: 8, regs: [2, 1, 4], bits: 16 },
    Shape { name: "m16n8k16", types: "f32.bf16.bf16.f32", k: 16, regs: [4, 2, 4], bits: 16 },
    Shape { name: "m16n8k8", types: "f32.bf16.bf16.f32", k: 8, regs: [2, 1, 4], bits: 16 },
    Shape { name: "m16n8k8", types: "f32.tf32.tf32.f32", k: 8, regs: [4, 2, 4], bits: 32 },
    Shape { name: "m16n8k4", types: "f32.tf32.tf32.f32", k: 4, regs: [2, 1, 4], bits: 32 },
    Shape { name: "m16n8k32", types: "s32.s8.s8.s32", k: 32, regs: [4, 2, 4], bits: 8 },
    Shape { name: "m16n8k16", types: "s32.u8.s8.s32", k: 16, regs: [2, 1, 4], bits: 8 },
];

impl Shape {
    fn encode(&self, x: i32) -> u64 {
        match self.types.split('.').nth(1) {
            Some("f16") => f16::from_f32(x as f32 / 4.0).to_bits().into(),
            Some("bf16") => bf16::from_f32(x as f32 / 4.0).to_bits().into(),
            Some("tf32") => (x as f32 / 4.0).to_bits().into(),
            _ => u64::from(x as u8),
        }
    }

    /// The value that an encoded element stands for.
    fn value(&self, x: i32) -> f64 {
        if self.types.starts_with("s32") { f64::from(x) } else { f64::from(x) / 4.0 }
    }

    /// The registers of a lane, from the manual: element i of A is in row g or g + 8 and column 2t + …; see there.
    fn fragment_a(&self, a: &dyn Fn(usize, usize) -> u64, lane: usize) -> Vec<u32> {
        let (group, thread) = (lane / 4, lane % 4);
        let per = 32 / self.bits;
        let element = |r: usize, i: usize| a(group + 8 * (r % 2), per * thread + i + 4 * per * (r / 2));
        self.pack(self.regs[0], &element)
    }

    fn fragment_b(&self, b: &dyn Fn(usize, usize) -> u64, lane: usize) -> Vec<u32> {
        let (group, thread) = (lane / 4, lane % 4);
        let per = 32 / self.bits;
        let element = |r: usize, i: usize| b(per * thread + i + 4 * per * r, group);
        self.pack(self.regs[1], &element)
    }

    fn pack(&self, n: usize, element: &dyn Fn(usize, usize) -> u64) -> Vec<u32> {
        let reg = |r| (0..32 / self.bits).fold(0, |reg, i| reg | (element(r, i) << (self.bits * i)) as u32);
        (0..n).map(reg).collect()
    }
}

fn registers(prefix: &str, n: usize) -> String {
    let list: Vec<_> = (0..n).map(|i| format!("%{prefix}{i}")).collect();
    format!("{{{}}}", list.join(", "))
}

#[test]
fn products() {
    for shape in SHAPES {
        for mma in [MmaMode::Ieee, MmaMode::Hopper] {
            let mut numbers = Numbers::new(shape.k as u64);
            let unsigned = shape.types.contains("u8");
            let mut small = |positive: bool| (numbers.bits() % 32) as i32 - if positive { 0 } else { 16 };
            let a: Vec<i32> = (0..16 * shape.k).map(|_| small(unsigned)).collect();
            let b: Vec<i32> = (0..shape.k * 8).map(|_| small(false)).collect();
            let integer = shape.types.starts_with("s32");
            let c: Vec<i32> = (0..16 * 8).map(|i| i - 60).collect();

            let mut words: Vec<u32> = Vec::new();
            for lane in 0..32 {
                words.extend(shape.fragment_a(&|r, k| shape.encode(a[r * shape.k + k]), lane));
                words.extend(shape.fragment_b(&|k, n| shape.encode(b[k * 8 + n]), lane));
                for i in 0..4 {
                    let x = c[(lane / 4 + 8 * (i / 2)) * 8 + 2 * (lane % 4) + i % 2];
                    words.push(if integer { x as u32 } else { (x as f32).to_bits() });
                }
            }
            let [ra, rb, rc] = shape.regs;
            let per_lane = ra + rb + rc;
            let mut body = format!(
                ".reg .b32 %a<8>; .reg .b32 %b<8>; .reg .b32 %c<8>; .reg .b32 %e<8>;
                 ld.param.u64 %rd1, [p0]; ld.param.u64 %rd2, [p1]; mov.u32 %r1, %tid.x;
                 mad.wide.u32 %rd3, %r1, 16, %rd1; mad.wide.u32 %rd4, %r1, {}, %rd2;\n",
                4 * per_lane
            );
            for (prefix, n, first) in [("a", ra, 0), ("b", rb, ra), ("c", rc, ra + rb)] {
                (0..n).for_each(|i| body += &format!("ld.global.b32 %{prefix}{i}, [%rd4+{}];\n", 4 * (first + i)));
            }
            let operands = [registers("e", 4), registers("a", ra), registers("b", rb), registers("c", 4)].join(", ");
            body += &format!("mma.sync.aligned.{}.row.col.{} {operands};\n", shape.name, shape.types);
            body += "st.global.v4.b32 [%rd3], {%e0, %e1, %e2, %e3};";
            let module = Module::parse(&kernel(2, REGISTERS, &body)).unwrap_or_else(|error| panic!("{error}\n{body}"));
            let mut device = Device::new(Options { mma, ..Options::default() });
            let loaded = device.load(&module).unwrap();
            let (out, input) = (device.alloc::<u32>(128).unwrap(), device.upload(&words).unwrap());
            device.launch(&loaded, "k", Launch::linear(1, 32), &[Arg::buffer(&out), Arg::buffer(&input)]).unwrap();
            let found = device.download(&out).unwrap_or_else(|error| panic!("{error}"));
            for (i, found) in found.into_iter().enumerate() {
                let (lane, element) = (i / 4, i % 4);
                let (row, col) = (lane / 4 + 8 * (element / 2), 2 * (lane % 4) + element % 2);
                let term = |k: usize| shape.value(a[row * shape.k + k]) * shape.value(b[k * 8 + col]);
                // Small multiples of powers of two: exact in every mode.
                let expected = (0..shape.k).map(term).sum::<f64>() + f64::from(c[row * 8 + col]);
                let found = if integer { f64::from(found as i32) } else { f32::from_bits(found).into() };
                assert_eq!(found, expected, "{} {} {mma:?} row {row} column {col}", shape.name, shape.types);
            }
        }
    }
}

/// Hopper's units cut what falls below the aligned sum and round toward zero; an IEEE chain does not.
#[test]
fn hopper_cuts_small_products() {
    let run = |mma: MmaMode, a: [f32; 2], b: [f32; 2], c: f32| -> f32 {
        let half =
            |x: [f32; 2]| u32::from(f16::from_f32(x[0]).to_bits()) | u32::from(f16::from_f32(x[1]).to_bits()) << 16;
        let (a, b, c) = (half(a), half(b), c.to_bits());
        let body = format!(
            ".reg .b32 %z; mov.u32 %z, 0; mov.u32 %r1, {a}; mov.u32 %r2, {b}; mov.u32 %r3, {c}; mov.u32 %r9, %tid.x;
             setp.eq.u32 %p1, %r9, 0; selp.b32 %r1, %r1, 0, %p1; selp.b32 %r2, %r2, 0, %p1;
             mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {{%r4, %r5, %r6, %r7}}, {{%r1, %z}}, {{%r2}}, {{%r3, %z, %z, %z}};
             ld.param.u64 %rd1, [p0]; @%p1 st.global.b32 [%rd1], %r4;"
        );
        let module = Module::parse(&kernel(1, REGISTERS, &body)).unwrap();
        let mut device = Device::new(Options { mma, ..Options::default() });
        let loaded = device.load(&module).unwrap();
        let out = device.alloc::<f32>(1).unwrap();
        device.launch(&loaded, "k", Launch::linear(1, 32), &[Arg::buffer(&out)]).unwrap();
        device.download(&out).unwrap_or_else(|error| panic!("{error}"))[0]
    };
    // 2^15 · 2^15 + 2^-10 · 1: 40 bits apart, gone in either mode.
    assert_eq!(run(MmaMode::Ieee, [32768.0, 0.0009765625], [32768.0, 1.0], 0.0), 1073741824.0);
    assert_eq!(run(MmaMode::Hopper, [32768.0, 0.0009765625], [32768.0, 1.0], 0.0), 1073741824.0);
    // 1 + 1.5 · 2^-24: to nearest that is the next number above 1, cut it is 1.
    let small = 1.5 * 2.0_f32.powi(-12);
    assert_eq!(run(MmaMode::Ieee, [small, 0.0], [2.0_f32.powi(-12), 0.0], 1.0), 1.0_f32.next_up());
    assert_eq!(run(MmaMode::Hopper, [small, 0.0], [2.0_f32.powi(-12), 0.0], 1.0), 1.0);
}

/// `ldmatrix`, `stmatrix` and `movmatrix` move rows of eight numbers as drawn.
#[test]
fn matrices_move() {
    let body = "
        .shared .align 16 .b8 tiles[512]; .shared .align 16 .b8 back[512];
        ld.param.u64 %rd1, [p0]; mov.u32 %r1, %tid.x;
        // Each lane writes one row of eight: number 8 lane + column.
        shl.b32 %r2, %r1, 4; mov.u32 %r3, tiles; add.u32 %r3, %r3, %r2; mov.u32 %r30, back; add.u32 %r30, %r30, %r2;
        shl.b32 %r4, %r1, 3; add.u32 %r5, %r4, 1; shl.b32 %r5, %r5, 16; or.b32 %r6, %r4, %r5;
        add.u32 %r7, %r6, 0x20002; add.u32 %r8, %r7, 0x20002; add.u32 %r9, %r8, 0x20002;
        st.shared.v4.b32 [%r3], {%r6, %r7, %r8, %r9};
        bar.warp.sync -1;
        ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r10, %r11, %r12, %r13}, [%r3];
        ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%r14, %r15, %r16, %r17}, [%r3];
        movmatrix.sync.aligned.m8n8.trans.b16 %r18, %r11;
        stmatrix.sync.aligned.m8n8.x4.shared.b16 [%r30], {%r10, %r11, %r12, %r13};
        bar.warp.sync -1;
        ld.shared.v4.b32 {%r20, %r21, %r22, %r23}, [%r30];
        sub.u32 %r20, %r20, %r6; sub.u32 %r21, %r21, %r7; or.b32 %r20, %r20, %r21; sub.u32 %r23, %r23, %r9; or.b32 %r20, %r20, %r23;
        mad.wide.u32 %rd2, %r1, 32, %rd1;
        st.global.v4.b32 [%rd2], {%r10, %r13, %r14, %r17}; st.global.v2.b32 [%rd2+16], {%r18, %r20};";
    let module = Module::parse(&kernel(1, REGISTERS, body)).unwrap();
    let mut device = Device::default();
    let loaded = device.load(&module).unwrap();
    let out = device.zeros::<u32>(256).unwrap();
    device.launch(&loaded, "k", Launch::linear(1, 32), &[Arg::buffer(&out)]).unwrap();
    let found = device.download(&out).unwrap_or_else(|error| panic!("{error}"));
    for (lane, words) in found.chunks(8).enumerate() {
        let (row, col) = (lane / 4, 2 * (lane % 4));
        let element = |matrix: usize, r: usize, c: usize| ((8 * matrix + r) * 8 + c) as u32;
        let plain = |m: usize| element(m, row, col) | element(m, row, col + 1) << 16;
        let turned = |m: usize| element(m, col, row) | element(m, col + 1, row) << 16;
        assert_eq!(words[..6], [plain(0), plain(3), turned(0), turned(3), turned(1), 0], "lane {lane}");
    }
}
