//! Integers, bits, comparisons, and floats in all rounding modes.

use super::{bits, bits64, check, f32_of, f64_of};

fn flush(x: f32) -> f32 {
    if x.is_subnormal() { 0.0_f32.copysign(x) } else { x }
}

#[test]
fn integers_of_32_bits() {
    type Formula = fn(u32, u32, u32) -> u32;
    let table: &[(&str, Formula)] = &[
        ("add.s32 %r0, %r1, %r2;", |a, b, _| a.wrapping_add(b)),
        ("add.sat.s32 %r0, %r1, %r2;", |a, b, _| (a as i32).saturating_add(b as i32) as u32),
        ("sub.u32 %r0, %r1, %r2;", |a, b, _| a.wrapping_sub(b)),
        ("sub.sat.s32 %r0, %r1, %r2;", |a, b, _| (a as i32).saturating_sub(b as i32) as u32),
        ("mul.lo.s32 %r0, %r1, %r2;", |a, b, _| a.wrapping_mul(b)),
        ("mul.hi.u32 %r0, %r1, %r2;", |a, b, _| ((a as u64 * b as u64) >> 32) as u32),
        ("mul.hi.s32 %r0, %r1, %r2;", |a, b, _| ((a as i32 as i64 * b as i32 as i64) >> 32) as u32),
        ("mul24.lo.u32 %r0, %r1, %r2;", |a, b, _| ((a & 0xff_ffff) as u64 * (b & 0xff_ffff) as u64) as u32),
        ("mul24.hi.s32 %r0, %r1, %r2;", |a, b, _| {
            let s = |x: u32| ((x << 8) as i32 >> 8) as i64;
            ((s(a) * s(b)) >> 16) as u32
        }),
        ("mad24.lo.s32 %r0, %r1, %r2, %r3;", |a, b, c| {
            let s = |x: u32| ((x << 8) as i32 >> 8) as i64;
            ((s(a) * s(b)) as u32).wrapping_add(c)
        }),
        ("mad.lo.u32 %r0, %r1, %r2, %r3;", |a, b, c| a.wrapping_mul(b).wrapping_add(c)),
        ("mad.hi.s32 %r0, %r1, %r2, %r3;", |a, b, c| {
            ((a as i32 as i64 * b as i32 as i64) >> 32).wrapping_add(c as i64) as u32
        }),
        ("mad.hi.sat.s32 %r0, %r1, %r2, %r3;", |a, b, c| {
            (((a as i32 as i64 * b as i32 as i64) >> 32) as i32).saturating_add(c as i32) as u32
        }),
        ("min.s32 %r0, %r1, %r2;", |a, b, _| (a as i32).min(b as i32) as u32),
        ("max.u32 %r0, %r1, %r2;", |a, b, _| a.max(b)),
        ("max.relu.s32 %r0, %r1, %r2;", |a, b, _| (a as i32).max(b as i32).max(0) as u32),
        ("abs.s32 %r0, %r1;", |a, _, _| (a as i32).wrapping_abs() as u32),
        ("neg.s32 %r0, %r1;", |a, _, _| 0_u32.wrapping_sub(a)),
        ("sad.s32 %r0, %r1, %r2, %r3;", |a, b, c| (a as i32).abs_diff(b as i32).wrapping_add(c)),
        ("max.u32 %r2, %r2, 1; div.u32 %r0, %r1, %r2;", |a, b, _| a / b.max(1)),
        ("or.b32 %r2, %r2, 1; div.s32 %r0, %r1, %r2;", |a, b, _| (a as i32).wrapping_div((b | 1) as i32) as u32),
        ("or.b32 %r2, %r2, 1; rem.s32 %r0, %r1, %r2;", |a, b, _| (a as i32).wrapping_rem((b | 1) as i32) as u32),
        ("and.b32 %r0, %r1, %r2;", |a, b, _| a & b),
        ("not.b32 %r0, %r1;", |a, _, _| !a),
        ("cnot.b32 %r0, %r1;", |a, _, _| (a == 0) as u32),
        ("shl.b32 %r0, %r1, %r2;", |a, b, _| a.checked_shl(b).unwrap_or(0)),
        ("shr.u32 %r0, %r1, %r2;", |a, b, _| a.checked_shr(b).unwrap_or(0)),
        ("shr.s32 %r0, %r1, %r2;", |a, b, _| ((a as i32) >> b.min(31)) as u32),
        (
            "shf.l.wrap.b32 %r0, %r1, %r2, %r3;",
            |a, b, c| if c % 32 == 0 { b } else { b << (c % 32) | a >> (32 - c % 32) },
        ),
        (
            "shf.r.wrap.b32 %r0, %r1, %r2, %r3;",
            |a, b, c| if c % 32 == 0 { a } else { a >> (c % 32) | b << (32 - c % 32) },
        ),
        ("shf.r.clamp.b32 %r0, %r1, %r2, %r3;", |a, b, c| match c {
            0 => a,
            1..32 => a >> c | b << (32 - c),
            _ => b,
        }),
        ("shf.l.clamp.b32 %r0, %r1, %r2, %r3;", |a, b, c| match c {
            0 => b,
            1..32 => b << c | a >> (32 - c),
            _ => a,
        }),
        ("popc.b32 %r0, %r1;", |a, _, _| a.count_ones()),
        ("clz.b32 %r0, %r1;", |a, _, _| a.leading_zeros()),
        ("brev.b32 %r0, %r1;", |a, _, _| a.reverse_bits()),
        ("bfind.u32 %r0, %r1;", |a, _, _| if a == 0 { u32::MAX } else { 31 - a.leading_zeros() }),
        ("bfind.shiftamt.u32 %r0, %r1;", |a, _, _| if a == 0 { u32::MAX } else { a.leading_zeros() }),
        ("bfind.s32 %r0, %r1;", |a, _, _| {
            let x = if (a as i32) < 0 { !a } else { a };
            if x == 0 { u32::MAX } else { 31 - x.leading_zeros() }
        }),
        ("and.b32 %r2, %r2, 31; and.b32 %r3, %r3, 31; bfe.u32 %r0, %r1, %r2, %r3;", |a, b, c| {
            (a >> (b % 32)) & (1_u64.wrapping_shl(c % 32) - 1) as u32
        }),
        ("bfe.s32 %r0, %r1, 4, 8;", |a, _, _| ((a << 20) as i32 >> 24) as u32),
        ("bfe.s32 %r0, %r1, 28, 8;", |a, _, _| (a as i32 >> 28) as u32),
        ("bfi.b32 %r0, %r1, %r2, 8, 12;", |a, b, _| b & !0xfff00 | (a << 8) & 0xfff00),
        ("bfi.b32 %r0, %r1, %r2, 24, 12;", |a, b, _| b & 0xff_ffff | a << 24),
        ("prmt.b32 %r0, %r1, %r2, 0x7531;", |a, b, _| {
            let x = [a.to_le_bytes(), b.to_le_bytes()].concat();
            u32::from_le_bytes([x[1], x[3], x[5], x[7]])
        }),
        ("prmt.b32 %r0, %r1, %r2, 0xb809;", |a, b, _| {
            let x = [a.to_le_bytes(), b.to_le_bytes()].concat();
            let sign = |byte: u8| ((byte as i8) >> 7) as u8;
            u32::from_le_bytes([sign(x[1]), x[0], sign(x[0]), sign(x[3])])
        }),
        ("prmt.b32.f4e %r0, %r1, %r2, %r3;", |a, b, c| ((a as u64 | (b as u64) << 32) >> (8 * (c % 4))) as u32),
        ("lop3.b32 %r0, %r1, %r2, %r3, 0xe8;", |a, b, c| a & b | a & c | b & c),
        ("lop3.b32 %r0, %r1, %r2, %r3, 0x96;", |a, b, c| a ^ b ^ c),
        ("dp4a.u32.u32 %r0, %r1, %r2, %r3;", |a, b, c| {
            (0..4).fold(c, |sum, i| sum.wrapping_add(a.to_le_bytes()[i] as u32 * b.to_le_bytes()[i] as u32))
        }),
        ("dp4a.s32.s32 %r0, %r1, %r2, %r3;", |a, b, c| {
            (0..4).fold(c, |sum, i| {
                sum.wrapping_add((a.to_le_bytes()[i] as i8 as i32 * b.to_le_bytes()[i] as i8 as i32) as u32)
            })
        }),
        ("dp2a.lo.s32.u32 %r0, %r1, %r2, %r3;", |a, b, c| {
            let half = |i: u32| (a >> (16 * i)) as i16 as i32;
            (0..2).fold(c, |sum, i| sum.wrapping_add((half(i) * b.to_le_bytes()[i as usize] as i32) as u32))
        }),
        ("fns.b32 %r0, %r1, 0, 2;", |a, _, _| (0..32).filter(|i| a >> i & 1 == 1).nth(1).unwrap_or(u32::MAX)),
        ("bmsk.clamp.b32 %r0, %r1, %r2;", |a, b, _| (((1_u64 << b.min(32)) - 1) << a.min(32)) as u32),
        ("szext.wrap.s32 %r0, %r1, 12;", |a, _, _| ((a << 20) as i32 >> 20) as u32),
        ("setp.lt.s32 %p1, %r1, %r2; selp.b32 %r0, %r1, %r2, %p1;", |a, b, _| (a as i32).min(b as i32) as u32),
        ("setp.hi.u32 %p1, %r1, %r2; selp.b32 %r0, 7, 9, %p1;", |a, b, _| if a > b { 7 } else { 9 }),
        ("set.ge.u32.s32 %r0, %r1, %r2;", |a, b, _| if a as i32 >= b as i32 { u32::MAX } else { 0 }),
        ("slct.s32.s32 %r0, %r1, %r2, %r3;", |a, b, c| if c as i32 >= 0 { a } else { b }),
        (
            "setp.eq.u32 %p1, %r1, 5; setp.lt.xor.u32 %p2|%p3, %r2, %r3, %p1; selp.b32 %r4, 1, 0, %p2; selp.b32 %r5, 2, 0, %p3; or.b32 %r0, %r4, %r5;",
            |a, b, c| {
                let p = a == 5;
                ((b < c) ^ p) as u32 | (((b >= c) ^ p) as u32) << 1
            },
        ),
        ("add.cc.u32 %r4, %r1, %r2; addc.u32 %r0, %r3, 0;", |a, b, c| {
            c.wrapping_add(a.checked_add(b).is_none() as u32)
        }),
        ("sub.cc.u32 %r4, %r1, %r2; subc.u32 %r0, %r3, 0;", |a, b, c| c.wrapping_sub((a < b) as u32)),
        ("mad.lo.cc.u32 %r4, %r1, %r2, %r3; madc.hi.u32 %r0, %r1, %r2, 0;", |a, b, c| {
            ((a as u64 * b as u64 + c as u64) >> 32) as u32
        }),
        ("vote.sync.any.pred %p1, %p2, 0xffffffff; mov.u32 %r0, 0;", |_, _, _| 0),
    ];
    for (body, f) in table {
        let body = if body.starts_with("vote") { &format!("setp.eq.u32 %p2, %r1, 0; {body}") } else { *body };
        check(body, 4, &[4, 4, 4], |x| f(x[0] as u32, x[1] as u32, x[2] as u32).into());
    }
}

#[test]
fn integers_of_16_and_64_bits() {
    type Short = fn(u16, u16) -> u16;
    let table: &[(&str, Short)] = &[
        ("add.u16 %h0, %h1, %h2;", u16::wrapping_add),
        ("sub.s16 %h0, %h1, %h2;", u16::wrapping_sub),
        ("mul.lo.u16 %h0, %h1, %h2;", u16::wrapping_mul),
        ("mul.hi.s16 %h0, %h1, %h2;", |a, b| ((a as i16 as i32 * b as i16 as i32) >> 16) as u16),
        ("min.s16 %h0, %h1, %h2;", |a, b| (a as i16).min(b as i16) as u16),
        ("abs.s16 %h0, %h1;", |a, _| (a as i16).wrapping_abs() as u16),
        ("not.b16 %h0, %h1;", |a, _| !a),
        ("cvt.u32.u16 %r9, %h2; shr.s16 %h0, %h1, %r9;", |a, b| ((a as i16) >> b.min(15)) as u16),
        ("cvt.u32.u16 %r9, %h2; shl.b16 %h0, %h1, %r9;", |a, b| a.checked_shl(b.into()).unwrap_or(0)),
    ];
    for (body, f) in table {
        check(body, 2, &[2, 2], |x| f(x[0] as u16, x[1] as u16).into());
    }
    type Long = fn(u64, u64, u64) -> u64;
    let table: &[(&str, Long)] = &[
        ("add.s64 %rd0, %rd1, %rd2;", |a, b, _| a.wrapping_add(b)),
        ("mul.lo.u64 %rd0, %rd1, %rd2;", |a, b, _| a.wrapping_mul(b)),
        ("mul.hi.u64 %rd0, %rd1, %rd2;", |a, b, _| ((a as u128 * b as u128) >> 64) as u64),
        ("mul.hi.s64 %rd0, %rd1, %rd2;", |a, b, _| ((a as i64 as i128 * b as i64 as i128) >> 64) as u64),
        ("mad.lo.s64 %rd0, %rd1, %rd2, %rd3;", |a, b, c| a.wrapping_mul(b).wrapping_add(c)),
        ("or.b64 %rd2, %rd2, 1; div.s64 %rd0, %rd1, %rd2;", |a, b, _| (a as i64).wrapping_div((b | 1) as i64) as u64),
        ("or.b64 %rd2, %rd2, 1; rem.u64 %rd0, %rd1, %rd2;", |a, b, _| a % (b | 1)),
        ("min.s64 %rd0, %rd1, %rd2;", |a, b, _| (a as i64).min(b as i64) as u64),
        ("xor.b64 %rd0, %rd1, %rd2;", |a, b, _| a ^ b),
        ("cvt.u32.u64 %r1, %rd2; shl.b64 %rd0, %rd1, %r1;", |a, b, _| a.checked_shl(b as u32).unwrap_or(0)),
        ("cvt.u32.u64 %r1, %rd2; shr.s64 %rd0, %rd1, %r1;", |a, b, _| ((a as i64) >> (b as u32).min(63)) as u64),
        ("popc.b64 %r1, %rd1; cvt.u64.u32 %rd0, %r1;", |a, _, _| a.count_ones().into()),
        ("clz.b64 %r1, %rd1; cvt.u64.u32 %rd0, %r1;", |a, _, _| a.leading_zeros().into()),
        ("brev.b64 %rd0, %rd1;", |a, _, _| a.reverse_bits()),
        ("bfe.u64 %rd0, %rd1, 20, 30;", |a, _, _| a >> 20 & ((1 << 30) - 1)),
        ("bfe.s64 %rd0, %rd1, 50, 10;", |a, _, _| ((a << 4) as i64 >> 54) as u64),
        ("bfi.b64 %rd0, %rd1, %rd2, 10, 20;", |a, b, _| b & !(0xf_ffff << 10) | (a & 0xf_ffff) << 10),
        (
            "setp.gt.s64 %p1, %rd1, %rd2; selp.b64 %rd0, %rd1, %rd3, %p1;",
            |a, b, c| if a as i64 > b as i64 { a } else { c },
        ),
        ("mov.b64 {%r1, %r2}, %rd1; mov.b64 %rd0, {%r2, %r1};", |a, _, _| a.rotate_left(32)),
        ("mov.b64 {%h1, %h2, %h3, %h4}, %rd1; mov.b64 %rd0, {%h4, %h3, %h2, %h1};", |a, _, _| {
            a.rotate_left(32) >> 16 & 0xffff_0000_ffff | (a.rotate_left(32) & 0xffff_0000_ffff) << 16
        }),
        ("cvt.u32.u64 %r1, %rd1; cvt.u32.u64 %r2, %rd2; mul.wide.s32 %rd0, %r1, %r2;", |a, b, _| {
            (a as i32 as i64 * b as i32 as i64) as u64
        }),
        ("cvt.u32.u64 %r1, %rd1; cvt.u32.u64 %r2, %rd2; mad.wide.u32 %rd0, %r1, %r2, %rd3;", |a, b, c| {
            (a as u32 as u64 * b as u32 as u64).wrapping_add(c)
        }),
        ("add.cc.u64 %rd4, %rd1, %rd2; addc.u64 %rd0, %rd3, 0;", |a, b, c| {
            c.wrapping_add(a.checked_add(b).is_none() as u64)
        }),
    ];
    for (body, f) in table {
        check(body, 8, &[8, 8, 8], |x| f(x[0], x[1], x[2]));
    }
}

#[test]
fn floats_to_nearest() {
    type Formula = fn(f32, f32, f32) -> f32;
    let min = |a: f32, b: f32| match (a.is_nan(), b.is_nan()) {
        (true, _) => b,
        (_, true) => a,
        _ if a == b => {
            if a.is_sign_negative() {
                a
            } else {
                b
            }
        }
        _ => a.min(b),
    };
    let table: &[(&str, Formula)] = &[
        ("add.rn.f32", |a, b, _| a + b),
        ("sub.rn.f32", |a, b, _| a - b),
        ("mul.rn.f32", |a, b, _| a * b),
        ("div.rn.f32", |a, b, _| a / b),
        ("fma.rn.f32", |a, b, c| a.mul_add(b, c)),
        ("sqrt.rn.f32", |a, _, _| a.sqrt()),
        ("rcp.rn.f32", |a, _, _| 1.0 / a),
        ("abs.f32", |a, _, _| a.abs()),
        ("neg.f32", |a, _, _| -a),
        ("add.rn.sat.f32", |a, b, _| if (a + b) > 0.0 { (a + b).min(1.0) } else { 0.0 }),
    ];
    let operands = |name: &str| match name.split('.').next() {
        Some("fma") => "%r0, %r1, %r2, %r3",
        Some("sqrt" | "rcp" | "abs" | "neg") => "%r0, %r1",
        _ => "%r0, %r1, %r2",
    };
    for (name, f) in table {
        check(&format!("{name} {};", operands(name)), 4, &[4, 4, 4], |x| {
            bits(f(f32_of(x[0]), f32_of(x[1]), f32_of(x[2])))
        });
    }
    for (name, f) in table.iter().filter(|(name, _)| !name.contains("sat")) {
        let (op, ty) = name.rsplit_once('.').unwrap();
        check(&format!("{op}.ftz.{ty} {};", operands(name)), 4, &[4, 4, 4], |x| {
            let [a, b, c] = [x[0], x[1], x[2]].map(|x| flush(f32_of(x)));
            bits(flush(f(a, b, c)))
        });
    }
    check("min.f32 %r0, %r1, %r2;", 4, &[4, 4], |x| bits(min(f32_of(x[0]), f32_of(x[1]))));
    check("max.f32 %r0, %r1, %r2;", 4, &[4, 4], |x| bits(-min(-f32_of(x[0]), -f32_of(x[1]))));
    check("max.NaN.f32 %r0, %r1, %r2;", 4, &[4, 4], |x| {
        let (a, b) = (f32_of(x[0]), f32_of(x[1]));
        bits(if a.is_nan() || b.is_nan() { f32::NAN } else { -min(-a, -b) })
    });
    check("copysign.f32 %r0, %r1, %r2;", 4, &[4, 4], |x| f32_of(x[1]).copysign(f32_of(x[0])).to_bits().into());
    for (name, f) in [
        ("finite", f32::is_finite as fn(f32) -> bool),
        ("infinite", f32::is_infinite),
        ("notanumber", f32::is_nan),
        ("normal", f32::is_normal),
        ("subnormal", f32::is_subnormal),
    ] {
        check(&format!("testp.{name}.f32 %p1, %r1; selp.b32 %r0, 1, 0, %p1;"), 4, &[4], |x| f(f32_of(x[0])).into());
    }
}

#[test]
fn comparisons_with_and_without_order() {
    let table: &[(&str, fn(f32, f32) -> bool)] = &[
        ("eq", |a, b| a == b),
        ("ne", |a, b| a != b && !a.is_nan() && !b.is_nan()),
        ("lt", |a, b| a < b),
        ("le", |a, b| a <= b),
        ("gt", |a, b| a > b),
        ("ge", |a, b| a >= b),
        ("equ", |a, b| a == b || a.is_nan() || b.is_nan()),
        ("neu", |a, b| a != b),
        ("ltu", |a, b| a < b || a.is_nan() || b.is_nan()),
        ("leu", |a, b| a <= b || a.is_nan() || b.is_nan()),
        ("gtu", |a, b| a > b || a.is_nan() || b.is_nan()),
        ("geu", |a, b| a >= b || a.is_nan() || b.is_nan()),
        ("num", |a, b| !a.is_nan() && !b.is_nan()),
        ("nan", |a, b| a.is_nan() || b.is_nan()),
    ];
    for (name, f) in table {
        check(&format!("setp.{name}.f32 %p1, %r1, %r2; selp.b32 %r0, 1, 0, %p1;"), 4, &[4, 4], |x| {
            f(f32_of(x[0]), f32_of(x[1])).into()
        });
        check(&format!("set.{name}.f32.f32 %r0, %r1, %r2;"), 4, &[4, 4], |x| {
            if f(f32_of(x[0]), f32_of(x[1])) { 0x3f80_0000 } else { 0 }
        });
    }
}

/// Checks a directed rounding by what defines it, in exact arithmetic where the exact result is a sum in f64.
#[test]
fn floats_in_directed_modes() {
    let directed = |exact: f64, mode: &str| -> f32 {
        let near = exact as f32;
        let above = f64::from(near) > exact;
        let below = f64::from(near) < exact;
        match mode {
            "rm" if above => near.next_down(),
            "rp" if below => near.next_up(),
            "rz" if above && exact > 0.0 => near.next_down(),
            "rz" if below && exact < 0.0 => near.next_up(),
            _ => near,
        }
    };
    for mode in ["rz", "rm", "rp"] {
        // Products of f32 are exact in f64, and so are sums of operands not too far apart.
        check_exact(
            &format!("mul.{mode}.f32 %r0, %r1, %r2;"),
            |a, b| Some(f64::from(a) * f64::from(b)),
            |x| directed(x, mode),
        );
        check_exact(
            &format!("add.{mode}.f32 %r0, %r1, %r2;"),
            |a, b| {
                let (x, y) = (f64::from(a), f64::from(b));
                let exact = (x + y - x == y) && (x + y - y == x) && x + y != 0.0;
                exact.then_some(x + y)
            },
            |x| directed(x, mode),
        );
        // A quotient or a root is compared by multiplying back.
        super::check_with(&format!("div.{mode}.f32 %r0, %r1, %r2;"), 4, &[4, 4], Default::default(), |x, found| {
            let (a, b, q) = (f64::from(f32_of(x[0])), f64::from(f32_of(x[1])), f64::from(f32_of(found)));
            let nearest = f32_of(x[0]) / f32_of(x[1]);
            let ordinary = nearest.is_normal() && a.is_finite() && b.is_finite();
            if !ordinary {
                return None;
            }
            let sign = (q * b - a) * b.signum();
            let ok = match mode {
                "rm" => sign <= 0.0,
                "rp" => sign >= 0.0,
                _ => sign * nearest.signum() as f64 <= 0.0,
            };
            let close = (q - f64::from(nearest)).abs() <= f64::from(nearest.abs()) * 1.3e-7;
            (!(ok && close)).then(|| format!("nearest is {:#x}", nearest.to_bits()))
        });
        super::check_with(&format!("sqrt.{mode}.f32 %r0, %r1;"), 4, &[4], Default::default(), |x, found| {
            let (a, root) = (f64::from(f32_of(x[0])), f64::from(f32_of(found)));
            if !(a > 0.0 && a.is_finite()) {
                return None;
            }
            let ok = if mode == "rp" { root * root >= a } else { root * root <= a };
            (!ok || (root - a.sqrt()).abs() > a.sqrt() * 1.3e-7).then(|| format!("root is {}", a.sqrt()))
        });
    }
}

fn check_exact(body: &str, exact: impl Fn(f32, f32) -> Option<f64>, round: impl Fn(f64) -> f32) {
    super::check_with(body, 4, &[4, 4], Default::default(), |x, found| {
        let exact = exact(f32_of(x[0]), f32_of(x[1]))
            .filter(|exact| exact.is_finite() && exact.abs() < 3e38 && *exact != 0.0)?;
        // Beyond the subnormals f64 cannot tell; below, products round once in f64 already.
        let expected = bits(round(exact));
        (exact.abs() > 1e-290 && found != expected).then(|| format!("expected {expected:#x}"))
    });
}

#[test]
fn doubles() {
    type Formula = fn(f64, f64, f64) -> f64;
    let table: &[(&str, Formula)] = &[
        ("add.rn.f64 %rd0, %rd1, %rd2;", |a, b, _| a + b),
        ("sub.rn.f64 %rd0, %rd1, %rd2;", |a, b, _| a - b),
        ("mul.rn.f64 %rd0, %rd1, %rd2;", |a, b, _| a * b),
        ("div.rn.f64 %rd0, %rd1, %rd2;", |a, b, _| a / b),
        ("fma.rn.f64 %rd0, %rd1, %rd2, %rd3;", |a, b, c| a.mul_add(b, c)),
        ("sqrt.rn.f64 %rd0, %rd1;", |a, _, _| a.sqrt()),
        ("rcp.rn.f64 %rd0, %rd1;", |a, _, _| 1.0 / a),
        ("neg.f64 %rd0, %rd1;", |a, _, _| -a),
    ];
    for (body, f) in table {
        check(body, 8, &[8, 8, 8], |x| bits64(f(f64_of(x[0]), f64_of(x[1]), f64_of(x[2]))));
    }
    // Directed results enclose the nearest one and are at most one step from it.
    for (op, operands, f) in [
        ("add", "%rd0, %rd1, %rd2", (|a, b, _| a + b) as Formula),
        ("mul", "%rd0, %rd1, %rd2", |a, b, _| a * b),
        ("div", "%rd0, %rd1, %rd2", |a, b, _| a / b),
        ("fma", "%rd0, %rd1, %rd2, %rd3", |a, b, c| a.mul_add(b, c)),
    ] {
        for (mode, up) in [("rm", false), ("rp", true)] {
            super::check_with(
                &format!("{op}.{mode}.f64 {operands};"),
                8,
                &[8, 8, 8],
                Default::default(),
                |x, found| {
                    let nearest = f(f64_of(x[0]), f64_of(x[1]), f64_of(x[2]));
                    let found = f64_of(found);
                    let next = if up { nearest.next_up() } else { nearest.next_down() };
                    let overflow = nearest.is_infinite() && found.abs() == f64::MAX;
                    let ok = found == nearest || found == next || nearest.is_nan() && found.is_nan() || overflow;
                    (!ok).then(|| format!("nearest is {nearest:e}"))
                },
            );
        }
    }
    // 1 + 2^-60 is neither: the modes differ.
    for (mode, expected) in [("rm", 1.0_f64), ("rp", 1.0_f64.next_up()), ("rz", 1.0), ("rn", 1.0)] {
        let body = format!(
            "mov.f64 %d1, 0d3FF0000000000000; mov.f64 %d2, 0d3C30000000000000; add.{mode}.f64 %d3, %d1, %d2; mov.b64 %rd0, %d3;"
        );
        check(&body, 8, &[8], |_| expected.to_bits());
    }
}
