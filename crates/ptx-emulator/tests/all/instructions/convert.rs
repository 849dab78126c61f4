//! `cvt` between all types, in all modes.

use super::{bits, bits64, check, check_with, f32_of, f64_of};
use half::{bf16, f16};
use ptx_emulator::Options;

fn integral(x: f64, mode: &str) -> f64 {
    match mode {
        "rni" => x.round_ties_even(),
        "rzi" => x.trunc(),
        "rmi" => x.floor(),
        _ => x.ceil(),
    }
}

#[test]
fn floats_to_integers_saturate() {
    for mode in ["rni", "rzi", "rmi", "rpi"] {
        check(&format!("cvt.{mode}.s32.f32 %r0, %r1;"), 4, &[4], |x| {
            integral(f32_of(x[0]).into(), mode) as i32 as u32 as u64
        });
        check(&format!("cvt.{mode}.u32.f32 %r0, %r1;"), 4, &[4], |x| integral(f32_of(x[0]).into(), mode) as u32 as u64);
        check(&format!("cvt.{mode}.u8.f32 %r0, %r1;"), 4, &[4], |x| integral(f32_of(x[0]).into(), mode) as u8 as u64);
        check(&format!("cvt.{mode}.s16.f32 %r0, %r1;"), 4, &[4], |x| {
            integral(f32_of(x[0]).into(), mode) as i16 as i32 as u32 as u64
        });
        // No number becomes the most negative one where 64 bits are involved.
        check(&format!("cvt.{mode}.s64.f64 %rd0, %rd1;"), 8, &[8], |x| match f64_of(x[0]) {
            y if y.is_nan() => 1 << 63,
            y => integral(y, mode) as i64 as u64,
        });
        check(&format!("cvt.{mode}.s32.f64 %r0, %rd1;"), 4, &[8], |x| match f64_of(x[0]) {
            y if y.is_nan() => 1 << 31,
            y => integral(y, mode) as i32 as u32 as u64,
        });
        check(&format!("cvt.{mode}.f32.f32 %r0, %r1;"), 4, &[4], |x| bits(integral(f32_of(x[0]).into(), mode) as f32));
        check(&format!("cvt.{mode}.s32.f16 %r0, %h1;"), 4, &[2], |x| {
            integral(f16::from_bits(x[0] as u16).to_f64(), mode) as i32 as u32 as u64
        });
    }
}

#[test]
fn integers_to_floats() {
    check("cvt.rn.f32.s32 %r0, %r1;", 4, &[4], |x| bits(x[0] as i32 as f32));
    check("cvt.rn.f32.u64 %r0, %rd1;", 4, &[8], |x| bits(x[0] as f32));
    check("cvt.rn.f32.s64 %r0, %rd1;", 4, &[8], |x| bits(x[0] as i64 as f32));
    check("cvt.rn.f64.u64 %rd0, %rd1;", 8, &[8], |x| (x[0] as f64).to_bits());
    check("cvt.rn.f64.s32 %rd0, %r1;", 8, &[4], |x| f64::from(x[0] as i32).to_bits());
    check("cvt.rn.f16.s32 %h0, %r1;", 2, &[4], |x| f16::from_f64(f64::from(x[0] as i32)).to_bits().into());
    for (mode, up, down) in [("rz", false, true), ("rp", true, false), ("rm", false, true)] {
        check(&format!("cvt.{mode}.f32.u32 %r0, %r1;"), 4, &[4], |x| {
            let nearest = x[0] as u32 as f32;
            let error = f64::from(nearest) - x[0] as f64;
            bits(if error > 0.0 && down {
                nearest.next_down()
            } else if error < 0.0 && up {
                nearest.next_up()
            } else {
                nearest
            })
        });
    }
}

#[test]
fn integers_to_integers() {
    check("cvt.s8.s32 %r0, %r1;", 4, &[4], |x| x[0] as i8 as i32 as u32 as u64);
    check("cvt.u16.u32 %r0, %r1;", 4, &[4], |x| x[0] & 0xffff);
    check("cvt.sat.s8.s32 %r0, %r1;", 4, &[4], |x| (x[0] as i32).clamp(-128, 127) as u32 as u64);
    check("cvt.sat.u8.s32 %r0, %r1;", 4, &[4], |x| (x[0] as i32).clamp(0, 255) as u64);
    check("cvt.sat.s32.s64 %r0, %rd1;", 4, &[8], |x| {
        (x[0] as i64).clamp(i32::MIN.into(), i32::MAX.into()) as u32 as u64
    });
    check("cvt.sat.u32.s64 %r0, %rd1;", 4, &[8], |x| (x[0] as i64).clamp(0, u32::MAX.into()) as u64);
    check("cvt.s64.s32 %rd0, %r1;", 8, &[4], |x| x[0] as i32 as i64 as u64);
    check("cvt.s64.s16 %rd0, %h1;", 8, &[2], |x| x[0] as i16 as i64 as u64);
    check("cvt.s16.s8 %h0, %h1;", 2, &[2], |x| x[0] as i8 as i16 as u16 as u64);
    check("cvt.pack.sat.s16.s32 %r0, %r1, %r2;", 4, &[4, 4], |x| {
        let clamp = |x: u64| u64::from((x as i32).clamp(-32768, 32767) as u16);
        clamp(x[0]) << 16 | clamp(x[1])
    });
    check("cvt.pack.sat.u8.s32.b32 %r0, %r1, %r2, %r3;", 4, &[4, 4, 4], |x| {
        let clamp = |x: u64| (x as i32).clamp(0, 255) as u64;
        x[2] << 16 & 0xffff_0000 | clamp(x[0]) << 8 | clamp(x[1])
    });
}

#[test]
fn floats_to_floats() {
    check("cvt.f64.f32 %rd0, %r1;", 8, &[4], |x| bits64(f32_of(x[0]).into()));
    check("cvt.rn.f32.f64 %r0, %rd1;", 4, &[8], |x| bits(f64_of(x[0]) as f32));
    check("cvt.f32.f16 %r0, %h1;", 4, &[2], |x| bits(f16::from_bits(x[0] as u16).to_f32()));
    check("cvt.f32.bf16 %r0, %h1;", 4, &[2], |x| bits(bf16::from_bits(x[0] as u16).to_f32()));
    check("cvt.sat.f32.f32 %r0, %r1;", 4, &[4], |x| {
        let y = f32_of(x[0]);
        bits(if y > 0.0 { y.min(1.0) } else { 0.0 })
    });
    let f16_bits = |x: f32| -> u64 { if x.is_nan() { 0x7fff } else { f16::from_f32(x).to_bits().into() } };
    let bf16_bits = |x: f32| -> u64 { if x.is_nan() { 0x7fff } else { bf16::from_f32(x).to_bits().into() } };
    check("cvt.rn.f16.f32 %h0, %r1;", 2, &[4], |x| f16_bits(f32_of(x[0])));
    check("cvt.rn.bf16.f32 %h0, %r1;", 2, &[4], |x| bf16_bits(f32_of(x[0])));
    check("cvt.rn.f16x2.f32 %r0, %r1, %r2;", 4, &[4, 4], |x| f16_bits(f32_of(x[0])) << 16 | f16_bits(f32_of(x[1])));
    check("cvt.rn.relu.bf16x2.f32 %r0, %r1, %r2;", 4, &[4, 4], |x| {
        let relu = |x: u64| match f32_of(x) {
            y if y <= 0.0 => 0,
            y => bf16_bits(y),
        };
        relu(x[0]) << 16 | relu(x[1])
    });
    // Directed modes bracket the value, one step apart.
    for (mode, ty) in [("rz", "f16"), ("rm", "f16"), ("rp", "f16"), ("rz", "bf16")] {
        let value = |bits: u64| {
            if ty == "f16" { f16::from_bits(bits as u16).to_f64() } else { bf16::from_bits(bits as u16).to_f64() }
        };
        check_with(&format!("cvt.{mode}.{ty}.f32 %h0, %r1;"), 2, &[4], Options::default(), |x, found| {
            let (x, y) = (f64::from(f32_of(x[0])), value(found));
            let largest = if ty == "f16" { 65504.0 } else { 3.3895313892515355e38 };
            if !x.is_finite() || x.abs() > largest {
                return None;
            }
            let away =
                value(found).abs().max(if ty == "f16" { 6e-8 } else { 1e-45 }) * if ty == "f16" { 1e-3 } else { 8e-3 };
            let ok = match mode {
                "rz" => y.abs() <= x.abs() && x.abs() - y.abs() <= away.max(if ty == "f16" { 6e-8 } else { 1e-40 }),
                "rm" => y <= x,
                _ => y >= x,
            };
            (!ok).then(|| format!("{y:e} from {x:e}"))
        });
    }
}

#[test]
fn tf32_and_eight_bits() {
    check("cvt.rna.tf32.f32 %r0, %r1;", 4, &[4], |x| {
        let y = f32_of(x[0]);
        match y {
            _ if y.is_nan() => 0x7fff_ffff,
            _ if y.is_infinite() => x[0],
            // Half a unit of the last of ten bits, ties away from zero.
            _ => ((x[0] & 0x7fff_ffff) + 0x1000 & !0x1fff) | x[0] & 0x8000_0000,
        }
    });
    // Every 8-bit number survives the way to f16 and back.
    for ty in ["e4m3x2", "e5m2x2"] {
        check_with(
            &format!("cvt.rn.f16x2.{ty} %r0, %h1; cvt.rn.satfinite.{ty}.f16x2 %h2, %r0; cvt.u32.u16 %r0, %h2;"),
            4,
            &[2],
            Options::default(),
            |x, found| {
                for shift in [0, 8] {
                    let (before, after) = (x[0] >> shift & 0xff, found >> shift & 0xff);
                    let special = if ty == "e4m3x2" { before & 0x7f == 0x7f } else { before & 0x7c == 0x7c };
                    if before != after && !special {
                        return Some(format!("{before:#x} became {after:#x}"));
                    }
                }
                None
            },
        );
    }
    check("cvt.rn.satfinite.e4m3x2.f32 %h1, 0f44800000, 0fBF800000; cvt.u32.u16 %r0, %h1;", 4, &[4], |_| 0x7eb8);
}
