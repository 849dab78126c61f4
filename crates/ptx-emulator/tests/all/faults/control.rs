//! Faults of barriers, of warps, and of control flow.

use super::{Case, case};
use ptx_emulator::Finding::*;

pub(super) const CASES: &[Case] = &[
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
