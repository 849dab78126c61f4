//! Loads, stores, atomics, asynchronous copies, calls and barriers.

use super::{Numbers, check};
use crate::support::{REGISTERS, kernel, run_lanes};
use ptx_emulator::{Arg, Device, Launch, Module, Options};

#[test]
fn loads_extend_and_stores_cut() {
    check_shared("st.shared.b32 [buffer], %r1; ld.shared.s8 %r0, [buffer+1];", 4, &[4], |x| {
        (x[0] >> 8) as i8 as i32 as u32 as u64
    });
    check_shared("st.shared.b32 [buffer], %r1; ld.shared.u16 %r0, [buffer+2];", 4, &[4], |x| x[0] >> 16);
    check_shared("st.shared.b64 [buffer], %rd1; ld.shared.s32 %rd0, [buffer];", 8, &[8], |x| x[0] as i32 as i64 as u64);
    check_shared(
        "st.shared.v2.b32 [buffer], {%r1, %r2}; mov.u64 %rd9, buffer; cvta.shared.u64 %rd8, %rd9; ld.b64 %rd0, [%rd8];",
        8,
        &[4, 4],
        |x| x[0] | x[1] << 32,
    );
    check(".local .b8 own[16]; st.local.b8 [own+3], %r1; ld.local.u8 %r0, [own+3];", 4, &[4], |x| x[0] & 0xff);
}

/// As `check`, with sixteen bytes of shared memory per thread that addresses call `buffer`.
fn check_shared(body: &str, output: usize, sizes: &[usize], f: impl Fn(&[u64]) -> u64) {
    let body = body.replace("[buffer", "[%r30").replace("mov.u64 %rd9, buffer", "cvt.u64.u32 %rd9, %r30");
    let buffer =
        ".shared .align 16 .b8 all[16384]; shl.b32 %r31, %r50, 4; mov.u32 %r30, all; add.u32 %r30, %r30, %r31;";
    check(&format!("{buffer} {body}"), output, sizes, f);
}

/// Runs an atomic in 96 threads on one cell of shared or global memory; gives the cell.
fn atomic(space: &str, op: &str, ty: &str, start: u64, operand: &str) -> u64 {
    let bits = if ty.ends_with("64") { 64 } else { 32 };
    let cell = if space == "global" { "%rd51" } else { "cell" };
    let body = format!(
        ".shared .align 8 .b8 cell[8]; ld.param.u64 %rd51, [p0]; mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, 0;
         cvt.u64.u32 %rd1, %r1; cvt.rn.f32.u32 %f1, %r1; mov.b32 %r2, %f1; mov.b32 %r10, 0x40003c00; mov.u32 %r9, {start}; mov.u64 %rd9, {start};
         @%p1 st.{space}.b{bits} [{cell}], {}; bar.sync 0;
         red.{space}.{op}.{ty} [{cell}], {operand}; bar.sync 0;
         @%p1 ld.{space}.b{bits} {}, [{cell}]; @%p1 st.global.b{bits} [%rd51], {};",
        if bits == 64 { "%rd9" } else { "%r9" },
        if bits == 64 { "%rd8" } else { "%r8" },
        if bits == 64 { "%rd8" } else { "%r8" },
    );
    let module = Module::parse(&kernel(1, REGISTERS, &body)).unwrap_or_else(|error| panic!("{error}\n{body}"));
    let mut device = Device::default();
    let loaded = device.load(&module).unwrap();
    let out = device.zeros::<u64>(1).unwrap();
    device.launch(&loaded, "k", Launch::linear(1, 96), &[Arg::buffer(&out)]).unwrap();
    let result = device.download(&out).unwrap_or_else(|error| panic!("{op}.{ty}: {error}"))[0];
    if bits == 32 { result & 0xffff_ffff } else { result }
}

#[test]
fn atomics() {
    for space in ["shared", "global"] {
        assert_eq!(atomic(space, "add", "u32", 5, "%r1"), 5 + 95 * 96 / 2);
        assert_eq!(atomic(space, "add", "u64", 1 << 40, "%rd1"), (1 << 40) + 95 * 96 / 2);
        assert_eq!(atomic(space, "min", "s32", 0xffff_fff0, "%r1"), 0xffff_fff0);
        assert_eq!(atomic(space, "max", "u32", 17, "%r1"), 95);
        assert_eq!(atomic(space, "and", "b32", 0xff, "0xffffffee"), 0xee);
        assert_eq!(atomic(space, "or", "b32", 0, "%r1"), 127);
        assert_eq!(atomic(space, "xor", "b32", 3, "%r1"), (0..96).fold(3, |all, x| all ^ x));
        assert_eq!(atomic(space, "inc", "u32", 0, "9"), 96 % 10);
        assert_eq!(atomic(space, "dec", "u32", 5, "9"), (5 + 10 * 96 - 96) % 10);
        let sum = f32::from_bits(atomic(space, "add", "f32", 0, "%f1") as u32);
        assert_eq!(sum, (95 * 96 / 2) as f32);
        assert_eq!(atomic(space, "add.noftz", "f16x2", 0, "%r10"), 0x5a005600);
    }
    // Only global addition flushes subnormal numbers.
    assert_eq!(atomic("shared", "add", "f32", 1, "0f00000000"), 1);
    assert_eq!(atomic("global", "add", "f32", 1, "0f00000000"), 0);
    let found = run_lanes(
        ".shared .b32 cell; setp.eq.u32 %p1, %r50, 0; @%p1 st.shared.u32 [cell], 7; bar.warp.sync -1;
         atom.shared.cas.b32 %r0, [cell], 7, %r1;",
        4,
        &[(0..32).map(|lane| lane + 50).collect()],
        &[4],
        Options::default(),
    );
    assert_eq!(found, [vec![7], vec![50; 31]].concat());
}

#[test]
fn asynchronous_copies() {
    let mut numbers = Numbers::new(1);
    let input: Vec<u64> = (0..64).map(|_| numbers.bits()).collect();
    let body = |bytes: &str| {
        format!(
        ".shared .align 16 .b8 all[1024]; shl.b32 %r2, %r50, 4; mov.u32 %r3, all; add.u32 %r3, %r3, %r2; st.shared.u64 [%r3], 0;
         cp.async.ca.shared.global [%r3], [%rd41], 8{bytes}; cp.async.commit_group; cp.async.wait_group 0; ld.shared.b64 %rd0, [%r3];"
    )
    };
    assert_eq!(run_lanes(&body(""), 8, std::slice::from_ref(&input), &[8], Options::default()), input);
    // A shorter source is filled up with zeros.
    let found = run_lanes(&body(", 5"), 8, std::slice::from_ref(&input), &[8], Options::default());
    assert_eq!(found, input.iter().map(|x| x & 0xff_ffff_ffff).collect::<Vec<u64>>());
}

#[test]
fn barriers_in_memory_order_a_pipeline() {
    // Warp 0 fills, warp 1 empties; two barriers, four rounds, phases by parity.
    let body = "
        .shared .align 8 .b8 full[8]; .shared .align 8 .b8 empty[8]; .shared .align 4 .b8 data[128];
        ld.param.u64 %rd51, [p0]; mov.u32 %r1, %tid.x; and.b32 %r2, %r1, 31; shl.b32 %r3, %r2, 2; mov.u32 %r4, data; add.u32 %r4, %r4, %r3;
        setp.eq.u32 %p1, %r1, 0;
        @%p1 mbarrier.init.shared.b64 [full], 32;
        @%p1 mbarrier.init.shared.b64 [empty], 32;
        bar.sync 0;
        mov.u32 %r5, 0; mov.u32 %r6, 0;
        setp.ge.u32 %p2, %r1, 32; @%p2 bra CONSUMER;
        PRODUCER:
        and.b32 %r7, %r5, 1; xor.b32 %r8, %r7, 1;
        WAIT0: mbarrier.try_wait.parity.shared.b64 %p3, [empty], %r8; @!%p3 bra WAIT0;
        mad.lo.u32 %r9, %r5, 1000, %r2; st.shared.u32 [%r4], %r9;
        mbarrier.arrive.shared.b64 _, [full];
        add.u32 %r5, %r5, 1; setp.lt.u32 %p4, %r5, 4; @%p4 bra PRODUCER;
        bra DONE;
        CONSUMER:
        and.b32 %r7, %r5, 1;
        WAIT1: mbarrier.try_wait.parity.shared.b64 %p3, [full], %r7; @!%p3 bra WAIT1;
        ld.shared.u32 %r9, [%r4]; add.u32 %r6, %r6, %r9;
        mbarrier.arrive.shared.b64 _, [empty];
        add.u32 %r5, %r5, 1; setp.lt.u32 %p4, %r5, 4; @%p4 bra CONSUMER;
        mul.wide.u32 %rd1, %r2, 4; add.s64 %rd1, %rd1, %rd51; st.global.u32 [%rd1], %r6;
        DONE:";
    for order in [ptx_emulator::Order::Ascending, ptx_emulator::Order::Descending, ptx_emulator::Order::Seeded(5)] {
        let module = Module::parse(&kernel(1, REGISTERS, body)).unwrap();
        let mut device = Device::new(Options { order, ..Options::default() });
        let loaded = device.load(&module).unwrap();
        let out = device.alloc::<u32>(32).unwrap();
        device.launch(&loaded, "k", Launch::linear(1, 64), &[Arg::buffer(&out)]).unwrap();
        let found = device.download(&out).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(found, (0..32).map(|lane| 6000 + 4 * lane).collect::<Vec<u32>>());
    }
}

#[test]
fn calls_and_function_pointers() {
    let text = ".version 8.0 .target sm_90 .address_size 64
        .func (.param .b32 out) twice(.param .b32 x) { .reg .b32 %r<3>; ld.param.b32 %r1, [x]; shl.b32 %r2, %r1, 1; st.param.b32 [out], %r2; ret; }
        .func (.reg .b32 out) plus(.reg .b32 x, .reg .b32 y) { .reg .b32 %t; add.u32 %t, x, y; mov.u32 out, %t; ret; }
        .func (.param .b32 out) third(.param .b32 x) { .reg .b32 %r<4>; ld.param.b32 %r1, [x];
            { .param .b32 a; .param .b32 b; st.param.b32 [a], %r1; call.uni (b), twice, (a); ld.param.b32 %r2, [b]; }
            add.u32 %r3, %r1, %r2; st.param.b32 [out], %r3; ret; }
        .visible .entry k(.param .u64 p0) { .reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .pred %p;
            mov.u32 %r1, %tid.x; ld.param.u64 %rd1, [p0]; mad.wide.u32 %rd2, %r1, 4, %rd1;
            setp.lt.u32 %p, %r1, 20;
            mov.u64 %rd3, twice; mov.u64 %rd4, third; selp.b64 %rd5, %rd3, %rd4, %p;
            P: .callprototype (.param .b32 _) _ (.param .b32 _);
            { .param .b32 a; .param .b32 b; st.param.b32 [a], %r1; call (b), %rd5, (a), P; ld.param.b32 %r2, [b]; }
            call (%r3), plus, (%r2, 7);
            st.global.u32 [%rd2], %r3; ret; }";
    let module = Module::parse(text).unwrap();
    let mut device = Device::default();
    let loaded = device.load(&module).unwrap();
    let out = device.alloc::<u32>(32).unwrap();
    device.launch(&loaded, "k", Launch::linear(1, 32), &[Arg::buffer(&out)]).unwrap();
    let expected: Vec<u32> = (0..32).map(|x| if x < 20 { 2 * x + 7 } else { 3 * x + 7 }).collect();
    assert_eq!(device.download(&out).unwrap_or_else(|error| panic!("{error}")), expected);
}

#[test]
fn variables_of_the_module() {
    let text = ".version 8.0 .target sm_90 .address_size 64
        .const .align 4 .u32 table[2][3] = {{1, 2, 3}, {4, 5}};
        .global .align 8 .u64 where = table;
        .global .align 4 .f32 half[2] = {0f3F000000, 2.5};
        .visible .entry k(.param .u64 p0) { .reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .f32 %f<4>;
            ld.param.u64 %rd1, [p0]; ld.global.u64 %rd2, [where]; ld.u32 %r1, [%rd2+16]; ld.const.u32 %r2, [table+8];
            ld.global.f32 %f1, [half+4]; cvt.rzi.u32.f32 %r3, %f1; mad.lo.u32 %r4, %r1, 100, %r2; mad.lo.u32 %r4, %r4, 100, %r3;
            st.global.u32 [%rd1], %r4; ret; }";
    let module = Module::parse(text).unwrap();
    let mut device = Device::default();
    let loaded = device.load(&module).unwrap();
    let out = device.alloc::<u32>(1).unwrap();
    device.launch(&loaded, "k", Launch::linear(1, 1), &[Arg::buffer(&out)]).unwrap();
    assert_eq!(device.download(&out).unwrap_or_else(|error| panic!("{error}")), [50302]);
    assert!(loaded.variable("half").is_some());
}

#[test]
fn reductions_at_a_barrier() {
    let found = run_lanes(
        "setp.lt.u32 %p1, %r50, 40; bar.red.popc.u32 %r2, 0, %p1; bar.red.and.pred %p2, 0, %p1; bar.red.or.pred %p3, 0, %p1;
         selp.b32 %r3, 1000, 0, %p2; selp.b32 %r4, 2000, 0, %p3; add.u32 %r0, %r2, %r3; add.u32 %r0, %r0, %r4;",
        4,
        &[vec![0; 96]],
        &[4],
        Options::default(),
    );
    assert_eq!(found, vec![2040; 96]);
}
