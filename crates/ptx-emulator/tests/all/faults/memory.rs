//! Faults of addresses, of what was never written, and of order.

use super::{Case, case};
use ptx_emulator::Finding::*;

pub(super) const CASES: &[Case] = &[
    case(
        "one past the end",
        OutOfBounds,
        4,
        256,
        "
        -mad.lo.u32 %r1, %r51, 257, %r50;
        +mad.lo.u32 %r1, %r51, 256, %r50;
        mul.wide.u32 %rd1, %r1, 4; add.s64 %rd2, %rd51, %rd1;
        ld.global.u32 %r2, [%rd2]; // here",
    ),
    case(
        "null pointer",
        OutOfBounds,
        1,
        32,
        "
        -mov.u64 %rd1, 0;
        +mov.u64 %rd1, %rd51;
        ld.u32 %r2, [%rd1]; // here",
    ),
    case(
        "end of a shared array",
        OutOfBounds,
        1,
        32,
        "
        .shared .align 4 .b8 small[64];
        mov.u32 %r1, small;
        -add.u32 %r1, %r1, 64;
        +add.u32 %r1, %r1, 60;
        st.shared.u32 [%r1], 7; // here",
    ),
    case(
        "vector over the end",
        OutOfBounds,
        1,
        1,
        "
        -add.s64 %rd1, %rd51, 4096;
        +add.s64 %rd1, %rd51, 4080;
        ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%rd1]; // here",
    ),
    case(
        "local array",
        OutOfBounds,
        1,
        32,
        "
        .local .align 4 .b8 own[16];
        mov.u64 %rd1, own; cvta.local.u64 %rd2, %rd1;
        st.u32 [%rd2], 1;
        -ld.u32 %r1, [%rd2+16]; // here
        +ld.u32 %r1, [%rd2];",
    ),
    case(
        "vector at half its size",
        Misaligned,
        1,
        1,
        "
        -add.s64 %rd1, %rd51, 8;
        +add.s64 %rd1, %rd51, 16;
        ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%rd1]; // here",
    ),
    case(
        "odd address",
        Misaligned,
        1,
        1,
        "
        mov.b16 %h1, 3;
        -add.s64 %rd1, %rd51, 1;
        +add.s64 %rd1, %rd51, 2;
        st.global.u16 [%rd1], %h1; // here",
    ),
    case(
        "shared double at four",
        Misaligned,
        1,
        1,
        "
        mov.f64 %d1, 0d0000000000000000;
        -st.shared.f64 [%r52+4], %d1; // here
        +st.shared.f64 [%r52+8], %d1;",
    ),
    case(
        "register of an untaken path",
        UninitialisedRegister,
        1,
        32,
        "
        setp.lt.u32 %p1, %r50, 16;
        @%p1 mov.u32 %r1, 5;
        add.u32 %r2, %r1, 1;
        -st.global.u32 [%rd40], %r2; // here
        +@%p1 st.global.u32 [%rd40], %r2;",
    ),
    case(
        "address never computed",
        UninitialisedRegister,
        1,
        32,
        "
        -ld.global.u32 %r1, [%rd7]; // here
        +ld.global.u32 %r1, [%rd51];",
    ),
    case(
        "guard never set",
        UninitialisedRegister,
        1,
        32,
        "
        +setp.eq.u32 %p3, %r50, 0;
        @%p3 mov.u32 %r1, 5; // here",
    ),
    case(
        "accumulator never zeroed",
        UninitialisedRegister,
        1,
        32,
        "
        +mov.f32 %f1, 0f00000000;
        mov.f32 %f2, 0f3F800000;
        fma.rn.f32 %f1, %f2, %f2, %f1;
        setp.gt.f32 %p1, %f1, %f2;
        @%p1 bra DONE; // here
        DONE:",
    ),
    case(
        "fresh global memory",
        UninitialisedMemory,
        1,
        32,
        "
        mul.wide.u32 %rd1, %r50, 4; add.s64 %rd2, %rd52, %rd1;
        +st.global.u32 [%rd2], %r50;
        ld.global.u32 %r1, [%rd2]; // here",
    ),
    case(
        "shared memory of another block",
        UninitialisedMemory,
        2,
        32,
        "
        setp.eq.u32 %p1, %r51, 0;
        -@%p1 st.shared.u32 [%r54], %r50;
        +st.shared.u32 [%r54], %r50;
        ld.shared.u32 %r1, [%r54]; // here",
    ),
    case(
        "half of a word",
        UninitialisedMemory,
        1,
        1,
        "
        mov.b16 %h1, 1;
        st.shared.b16 [%r52], %h1;
        +st.shared.b16 [%r52+2], %h1;
        ld.shared.u32 %r1, [%r52]; // here",
    ),
    case(
        "local memory",
        UninitialisedMemory,
        1,
        32,
        "
        .local .align 8 .b8 own[16];
        mov.u64 %rd1, own;
        +st.local.u64 [%rd1+8], %rd51;
        ld.local.u64 %rd2, [%rd1+8]; // here",
    ),
    case(
        "neighbour without a barrier",
        SharedRace,
        1,
        128,
        "
        st.shared.u32 [%r54], 1000;
        bar.sync 0;
        st.shared.u32 [%r54], %r50; // here
        +bar.sync 0;
        xor.b32 %r1, %r50, 64; shl.b32 %r1, %r1, 2; add.u32 %r1, %r1, %r52;
        ld.shared.u32 %r2, [%r1]; // here",
    ),
    case(
        "reduction without the last barrier",
        SharedRace,
        1,
        64,
        "
        st.shared.u32 [%r54], %r50;
        bar.sync 0;
        setp.lt.u32 %p1, %r50, 32;
        ld.shared.u32 %r1, [%r54];
        ld.shared.u32 %r2, [%r52+128]; // here
        +bar.sync 0;
        @%p1 st.shared.u32 [%r54+128], %r1; // here",
    ),
    case(
        "warp without a warp barrier",
        SharedRace,
        1,
        32,
        "
        st.shared.u32 [%r54], %r50; // other
        +bar.warp.sync 0xffffffff;
        xor.b32 %r1, %r53, 4; add.u32 %r1, %r1, %r52;
        ld.shared.u32 %r2, [%r1]; // here",
    ),
    case(
        "two lanes, two values, one place",
        SharedRace,
        1,
        32,
        "
        -shr.u32 %r1, %r50, 1; mov.u32 %r2, %r50;
        +shr.u32 %r1, %r50, 1; mov.u32 %r2, 3;
        shl.b32 %r1, %r1, 2; add.u32 %r1, %r1, %r52;
        st.shared.u32 [%r1], %r2; // here",
    ),
    case(
        "named barrier of one warp only",
        SharedRace,
        1,
        64,
        "
        st.shared.u32 [%r54], %r50;
        bar.sync 0;
        st.shared.u32 [%r54], %r50; // here
        -mov.u32 %r3, %warpid; add.u32 %r3, %r3, 1; bar.sync %r3, 32;
        +bar.sync 1, 64;
        xor.b32 %r1, %r53, 128; add.u32 %r1, %r1, %r52;
        ld.shared.u32 %r2, [%r1]; // here",
    ),
    case(
        "two blocks write one place",
        GlobalRace,
        2,
        1,
        "
        -st.global.u32 [%rd51], %r51; // here
        +mul.wide.u32 %rd1, %r51, 4; add.s64 %rd1, %rd1, %rd51; st.global.u32 [%rd1], %r51;",
    ),
    case(
        "a block reads what another writes",
        GlobalRace,
        2,
        1,
        "
        mul.wide.u32 %rd1, %r51, 4; add.s64 %rd1, %rd1, %rd51;
        xor.b32 %r1, %r51, 1; mul.wide.u32 %rd2, %r1, 4; add.s64 %rd2, %rd2, %rd51;
        st.global.u32 [%rd1], %r51; // here
        -ld.global.u32 %r2, [%rd2]; // here
        +ld.global.u32 %r2, [%rd1];",
    ),
    case(
        "counter without an atomic",
        GlobalRace,
        4,
        32,
        "
        setp.eq.u32 %p1, %r50, 0;
        -@%p1 ld.global.u32 %r1, [%rd51]; // here
        -@%p1 add.u32 %r1, %r1, 1;
        -@%p1 st.global.u32 [%rd51], %r1; // here
        +@%p1 red.global.add.u32 [%rd51], 1;",
    ),
    case(
        "message without a fence",
        GlobalRace,
        2,
        1,
        "
        setp.ne.u32 %p1, %r51, 0;
        @%p1 bra READ;
        st.global.u32 [%rd51+64], 5; // here
        +membar.gl;
        atom.global.exch.b32 %r1, [%rd51], 99;
        bra DONE;
        READ:
        atom.global.add.u32 %r2, [%rd51], 0;
        setp.ne.u32 %p2, %r2, 99;
        +@%p2 bra DONE;
        ld.global.u32 %r3, [%rd51+64]; // here
        DONE:",
    ),
    case(
        "copy never waited for",
        MissingCopyWait,
        1,
        32,
        "
        cp.async.ca.shared.global [%r54], [%rd40], 4;
        cp.async.commit_group;
        +cp.async.wait_group 0;
        ld.shared.u32 %r1, [%r54]; // here",
    ),
    case(
        "one group too few waited for",
        MissingCopyWait,
        1,
        32,
        "
        cp.async.ca.shared.global [%r54], [%rd40], 4;
        cp.async.commit_group;
        cp.async.ca.shared.global [%r54+256], [%rd40+256], 4;
        cp.async.commit_group;
        -cp.async.wait_group 1;
        +cp.async.wait_group 0;
        ld.shared.u32 %r1, [%r54+256]; // here",
    ),
    case(
        "group never committed",
        MissingCopyWait,
        1,
        32,
        "
        cp.async.ca.shared.global [%r54], [%rd40], 4;
        +cp.async.commit_group;
        cp.async.wait_group 0;
        ld.shared.u32 %r1, [%r54]; // here",
    ),
];
