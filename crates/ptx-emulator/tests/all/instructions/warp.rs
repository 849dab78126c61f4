//! What lanes do together, and special registers.

use super::check;
use crate::support::run_lanes;
use ptx_emulator::Options;

fn lanes(body: &str) -> Vec<u64> {
    let input: Vec<u64> = (0..32).map(|lane| 100 + lane * lane).collect();
    run_lanes(body, 4, &[input], &[4], Options::default())
}

#[test]
fn shuffles() {
    let value = |lane: i64| 100 + (lane * lane) as u64;
    // Mode, operand b, operand c, and the source lane.
    type Source = fn(i64) -> i64;
    let table: &[(&str, u32, u32, Source)] = &[
        ("up", 3, 0, |lane| if lane >= 3 { lane - 3 } else { lane }),
        ("down", 5, 31, |lane| if lane + 5 <= 31 { lane + 5 } else { lane }),
        ("bfly", 9, 31, |lane| lane ^ 9),
        ("idx", 7, 31, |_| 7),
        // Segments of eight lanes.
        ("up", 3, 0x1800, |lane| if lane % 8 >= 3 { lane - 3 } else { lane }),
        ("down", 3, 0x181f, |lane| if lane % 8 + 3 < 8 { lane + 3 } else { lane }),
        ("idx", 2, 0x181f, |lane| lane / 8 * 8 + 2),
        ("bfly", 4, 0x181f, |lane| lane ^ 4),
    ];
    for (mode, b, c, source) in table {
        let found = lanes(&format!("shfl.sync.{mode}.b32 %r0|%p1, %r1, {b}, {c}, 0xffffffff;"));
        let expected: Vec<u64> = (0..32).map(|lane| value(source(lane))).collect();
        assert_eq!(found, expected, "{mode} {b} {c:#x}");
    }
    let found = lanes("shfl.sync.up.b32 %r2|%p1, %r1, 4, 0, -1; selp.b32 %r0, 1, 0, %p1;");
    assert_eq!(found, (0..32).map(|lane| u64::from(lane >= 4)).collect::<Vec<u64>>());
}

#[test]
fn votes_matches_and_reductions() {
    assert_eq!(lanes("setp.gt.u32 %p1, %r1, 200; vote.sync.ballot.b32 %r0, %p1, -1;"), vec![0xffff_f800; 32]);
    for (mode, expected) in [("all", 0), ("any", 1), ("uni", 0)] {
        let found =
            lanes(&format!("setp.gt.u32 %p1, %r1, 200; vote.sync.{mode}.pred %p2, %p1, -1; selp.b32 %r0, 1, 0, %p2;"));
        assert_eq!(found, vec![expected; 32], "{mode}");
    }
    let found = lanes("and.b32 %r2, %r50, 3; match.any.sync.b32 %r0, %r2, -1;");
    assert_eq!(found, (0..32).map(|lane| 0x1111_1111 << (lane % 4)).collect::<Vec<u64>>());
    let found = lanes("mov.u32 %r2, 5; match.all.sync.b32 %r3|%p1, %r2, -1; selp.b32 %r0, %r3, 0, %p1;");
    assert_eq!(found, vec![0xffff_ffff; 32]);
    let values = || (0..32_u64).map(|lane| 100 + lane * lane);
    let fold = |f: fn(u64, u64) -> u64| values().reduce(f).unwrap();
    for (op, expected) in [
        ("add.u32", values().sum()),
        ("min.s32", 100),
        ("max.u32", 100 + 31 * 31),
        ("or.b32", fold(|a, b| a | b)),
        ("and.b32", fold(|a, b| a & b)),
        ("xor.b32", fold(|a, b| a ^ b)),
    ] {
        assert_eq!(lanes(&format!("redux.sync.{op} %r0, %r1, -1;")), vec![expected; 32], "{op}");
    }
    assert_eq!(lanes("activemask.b32 %r0;"), vec![0xffff_ffff; 32]);
    assert_eq!(lanes("elect.sync %r0|%p1, -1;"), vec![0; 32]);
}

#[test]
fn special_registers() {
    for (name, f) in [
        ("%tid.x", (|lane| lane) as fn(u64) -> u64),
        ("%laneid", |lane| lane),
        ("%ntid.x", |_| 32),
        ("%nctaid.y", |_| 1),
        ("%ctaid.x", |_| 0),
        ("%warpid", |_| 0),
        ("%lanemask_eq", |lane| 1 << lane),
        ("%lanemask_le", |lane| (2 << lane) - 1),
        ("%lanemask_lt", |lane| (1 << lane) - 1),
        ("%lanemask_ge", |lane| 0xffff_ffff & !((1 << lane) - 1)),
        ("%lanemask_gt", |lane| 0xffff_ffff & !((2 << lane) - 1)),
    ] {
        assert_eq!(lanes(&format!("mov.u32 %r0, {name};")), (0..32).map(f).collect::<Vec<u64>>(), "{name}");
    }
}

#[test]
fn control_flow() {
    // A loop with a different number of rounds in every lane, and lanes that come together again behind it.
    let found = lanes(
        "mov.u32 %r2, 0; mov.u32 %r3, 0;
         LOOP: setp.ge.u32 %p1, %r2, %r50; @%p1 bra END;
         add.u32 %r3, %r3, %r2; add.u32 %r2, %r2, 1; bra LOOP;
         END: vote.sync.ballot.b32 %r4, %p1, -1; sub.u32 %r4, %r4, 0xffffffff; add.u32 %r0, %r3, %r4;",
    );
    assert_eq!(found, (0..32_u64).map(|n| (0..n).sum()).collect::<Vec<u64>>());
    let found = lanes(
        "TABLE: .branchtargets A, B, C; rem.u32 %r2, %r50, 3; brx.idx %r2, TABLE;
         A: mov.u32 %r0, 10; bra END; B: mov.u32 %r0, 20; bra END; C: mov.u32 %r0, 30; END:",
    );
    assert_eq!(found, (0..32).map(|lane| [10, 20, 30][lane % 3]).collect::<Vec<u64>>());
    check("{ .reg .b32 %r1; mov.u32 %r1, 3; mov.u32 %r0, %r1; } add.u32 %r0, %r0, %r1;", 4, &[4], |x| {
        (x[0] + 3) & 0xffff_ffff
    });
}
