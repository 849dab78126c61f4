//! The table of faulty kernels.

use super::Case;
use ptx_emulator::Finding::{self, *};

const fn case(name: &'static str, finding: Finding, blocks: u32, threads: u32, body: &'static str) -> Case {
    Case { name, finding, blocks, threads, body }
}

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
        "barrier in one branch of a warp",
        BarrierDivergence,
        1,
        32,
        "
        setp.lt.u32 %p1, %r50, 16;
        -@%p1 bar.sync 0; // here
        +bar.sync 0;",
    ),
    case(
        "half the block at another barrier",
        BarrierDivergence,
        1,
        64,
        "
        setp.lt.u32 %p1, %r50, 32;
        -@%p1 bra OTHER;
        bar.sync 0; // here
        bra DONE;
        OTHER:
        bar.sync 0; // here
        DONE:",
    ),
    case(
        "two barriers that wait for each other",
        BarrierDivergence,
        1,
        64,
        "
        setp.lt.u32 %p1, %r50, 32;
        -@%p1 bra OTHER;
        bar.sync 1; // here
        bra DONE;
        OTHER:
        bar.sync 2; // here
        DONE:",
    ),
    case(
        "too few threads come",
        BarrierDivergence,
        1,
        64,
        "
        -bar.sync 3, 96; // here
        +bar.sync 3, 64;",
    ),
    case(
        "early return",
        ExitedAtBarrier,
        1,
        64,
        "
        setp.ge.u32 %p1, %r50, 32;
        -@%p1 ret;
        bar.sync 0; // here",
    ),
    case(
        "early exit of some lanes",
        ExitedAtBarrier,
        1,
        32,
        "
        setp.ge.u32 %p1, %r50, 20;
        -@%p1 exit;
        bar.sync 0; // here",
    ),
    case(
        "a loop that ends before the others'",
        ExitedAtBarrier,
        1,
        64,
        "
        shr.u32 %r1, %r50, 5; add.u32 %r1, %r1, 1;
        +mov.u32 %r1, 2;
        LOOP:
        bar.sync 0; // here
        sub.u32 %r1, %r1, 1;
        setp.ne.u32 %p1, %r1, 0;
        @%p1 bra LOOP;",
    ),
    case(
        "shuffle in a branch",
        WarpDivergence,
        1,
        32,
        "
        setp.lt.u32 %p1, %r50, 16;
        -@%p1 shfl.sync.bfly.b32 %r1, %r50, 1, 31, 0xffffffff; // here
        +@%p1 shfl.sync.bfly.b32 %r1, %r50, 1, 31, 0xffff;",
    ),
    case(
        "vote of lanes that are not named",
        WarpDivergence,
        1,
        32,
        "
        setp.lt.u32 %p1, %r50, 16;
        -vote.sync.ballot.b32 %r1, %p1, 0xffff; // here
        +vote.sync.ballot.b32 %r1, %p1, 0xffffffff;",
    ),
    case(
        "mask names lanes that do not exist",
        WarpDivergence,
        1,
        16,
        "
        -redux.sync.add.u32 %r1, %r50, 0xffffffff; // here
        +redux.sync.add.u32 %r1, %r50, 0xffff;",
    ),
    case(
        "matrix of half a warp",
        WarpDivergence,
        1,
        32,
        "
        setp.lt.u32 %p1, %r50, 16;
        -@%p1 movmatrix.sync.aligned.m8n8.trans.b16 %r1, %r50; // here
        +movmatrix.sync.aligned.m8n8.trans.b16 %r1, %r50;",
    ),
    case(
        "shuffle from an absent lane",
        InactiveSource,
        1,
        32,
        "
        setp.lt.u32 %p1, %r50, 16;
        -@%p1 shfl.sync.idx.b32 %r1, %r50, 20, 31, 0xffff; // here
        +@%p1 shfl.sync.idx.b32 %r1, %r50, 2, 31, 0xffff;",
    ),
    case(
        "shuffle down over the mask",
        InactiveSource,
        1,
        32,
        "
        setp.lt.u32 %p1, %r50, 24;
        -@%p1 shfl.sync.down.b32 %r1, %r50, 8, 31, 0xffffff; // here
        +@%p1 shfl.sync.down.b32 %r1, %r50, 8, 23, 0xffffff;",
    ),
    case(
        "butterfly in a short block",
        InactiveSource,
        1,
        24,
        "
        -shfl.sync.bfly.b32 %r1, %r50, 16, 31, 0xffffff; // here
        +shfl.sync.bfly.b32 %r1, %r50, 4, 31, 0xffffff;",
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
    case(
        "barrier in memory not initialised",
        BadBarrier,
        1,
        1,
        "
        st.shared.u64 [%r52], %rd51;
        +mbarrier.init.shared.b64 [%r52], 1;
        mbarrier.arrive.shared.b64 %rd1, [%r52]; // here",
    ),
    case(
        "barrier in memory for nobody",
        BadBarrier,
        1,
        1,
        "
        -mbarrier.init.shared.b64 [%r52], 0; // here
        +mbarrier.init.shared.b64 [%r52], 1;",
    ),
    case(
        "used after it was given up",
        BadBarrier,
        1,
        1,
        "
        mbarrier.init.shared.b64 [%r52], 1;
        -mbarrier.inval.shared.b64 [%r52];
        mbarrier.arrive.shared.b64 %rd1, [%r52]; // here",
    ),
    case(
        "division by zero",
        DivisionByZero,
        1,
        32,
        "
        +add.u32 %r50, %r50, 1;
        div.u32 %r1, 100, %r50; // here",
    ),
    case(
        "remainder by zero",
        DivisionByZero,
        1,
        32,
        "
        cvt.s64.s32 %rd1, %r50;
        +add.s64 %rd1, %rd1, 1;
        rem.s64 %rd2, %rd51, %rd1; // here",
    ),
    case(
        "16-bit division by zero",
        DivisionByZero,
        1,
        32,
        "
        cvt.u16.u32 %h1, %r50;
        +add.u16 %h1, %h1, 1;
        mov.b16 %h2, 7;
        div.s16 %h3, %h2, %h1; // here",
    ),
    case(
        "branch index too large",
        BadTarget,
        1,
        4,
        "
        TABLE: .branchtargets L0, L1, L2;
        +min.u32 %r50, %r50, 2;
        brx.idx %r50, TABLE; // here
        L0: L1: L2:",
    ),
    case(
        "call to nowhere",
        BadTarget,
        1,
        1,
        "
        PROTO: .callprototype _ ();
        -call %rd51, (), PROTO; // here",
    ),
    case(
        "branch index of the block",
        BadTarget,
        3,
        1,
        "
        TABLE: .branchtargets L0, L1;
        +and.b32 %r51, %r51, 1;
        brx.idx %r51, TABLE; // here
        L0: L1:",
    ),
    case(
        "trap",
        Trap,
        1,
        32,
        "
        -trap; // here",
    ),
    case(
        "trap of one lane",
        Trap,
        1,
        32,
        "
        setp.eq.u32 %p1, %r50, 9;
        -@%p1 trap; // here",
    ),
    case(
        "trap behind a check",
        Trap,
        2,
        32,
        "
        setp.gt.u32 %p1, %r51, 0;
        -@%p1 bra FAIL;
        bra DONE;
        FAIL: trap; // here
        DONE:",
    ),
    case(
        "endless loop",
        Hang,
        1,
        32,
        "
        LOOP:
        add.u32 %r50, %r50, 0; // here
        -bra LOOP; // here",
    ),
    case(
        "lock that is never free",
        Hang,
        1,
        1,
        "
        LOOP:
        atom.global.cas.b32 %r1, [%rd51], 1, 2; // here
        setp.ne.u32 %p1, %r1, 1; // here
        -@%p1 bra LOOP; // here",
    ),
    case(
        "step of zero",
        Hang,
        1,
        32,
        "
        mov.u32 %r1, 0;
        LOOP:
        -add.u32 %r1, %r1, 0; // here
        +add.u32 %r1, %r1, 1;
        setp.lt.u32 %p1, %r1, 10; // here
        @%p1 bra LOOP; // here",
    ),
];
