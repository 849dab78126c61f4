//! Integer instructions whose formula does not fit a line.

/// `prmt`: bytes of the pair {b, a} picked by nibbles.
pub(crate) fn permute(a: u32, b: u32, selector: u32) -> u32 {
    let pair = u64::from(b) << 32 | u64::from(a);
    (0..4).fold(0, |out, i| {
        let nibble = selector >> (4 * i) & 0xf;
        let byte = (pair >> (8 * (nibble & 7))) as u8;
        let byte = if nibble & 8 != 0 { ((byte as i8) >> 7) as u8 } else { byte };
        out | u32::from(byte) << (8 * i)
    })
}

/// `prmt` in one of its modes: the selector of each output byte depends on two bits of c.
pub(crate) fn permute_mode(mode: &str, c: u32) -> Option<u32> {
    let tables: &[(&str, [u32; 4])] = &[
        ("f4e", [0x3210, 0x4321, 0x5432, 0x6543]),
        ("b4e", [0x5670, 0x6701, 0x7012, 0x0123]),
        ("rc8", [0x0000, 0x1111, 0x2222, 0x3333]),
        ("ecl", [0x3210, 0x3211, 0x3222, 0x3333]),
        ("ecr", [0x0000, 0x1110, 0x2210, 0x3210]),
        ("rc16", [0x1010, 0x3232, 0x1010, 0x3232]),
    ];
    tables.iter().find(|(name, _)| *name == mode).map(|(_, selectors)| selectors[(c & 3) as usize])
}

/// `lop3`: any function of three bits, by its truth table.
pub(crate) fn lop3(a: u32, b: u32, c: u32, table: u32) -> u32 {
    (0..8).filter(|i| table >> i & 1 == 1).fold(0, |out, i| {
        let pick = |x: u32, bit: u32| if i >> bit & 1 == 1 { x } else { !x };
        out | pick(a, 2) & pick(b, 1) & pick(c, 0)
    })
}

/// `bfe.u`: so many bits from a position.
pub(crate) fn extract(a: u64, pos: u32, len: u32, bits: u32) -> u64 {
    let (pos, len) = (pos & 0xff, len & 0xff);
    if pos >= bits || len == 0 {
        return 0;
    }
    let shifted = a >> pos;
    if len >= 64 { shifted } else { shifted & ((1 << len) - 1) }
}

/// `bfe.s`: the same, with the last bit taken repeated above.
pub(crate) fn extract_signed(a: u64, pos: u32, len: u32, bits: u32) -> u64 {
    let (pos, len) = (pos & 0xff, len & 0xff);
    if len == 0 {
        return 0;
    }
    let top = (pos + len - 1).min(bits - 1);
    let sign = if a >> top & 1 == 1 { u64::MAX } else { 0 };
    let taken = extract(a, pos, len, bits);
    let filled = if pos >= bits { 0 } else { len.min(bits - pos) };
    let result = if filled >= 64 { taken } else { taken | sign << filled };
    if bits == 32 { result & 0xffff_ffff } else { result }
}

/// `bfi`: a's low bits put into b.
pub(crate) fn insert(a: u64, b: u64, pos: u32, len: u32, bits: u32) -> u64 {
    let (pos, len) = (pos & 0xff, len & 0xff);
    if pos >= bits || len == 0 {
        return b;
    }
    let mask = if len >= 64 { u64::MAX } else { (1 << len) - 1 };
    let mask = mask << pos;
    let mask = if bits == 32 { mask & 0xffff_ffff } else { mask };
    b & !mask | a << pos & mask
}

/// `bfind`: the position of the top bit that is not the sign's, or all ones.
pub(crate) fn find_top(a: u64, bits: u32, signed: bool, amount: bool) -> u32 {
    let a = if signed && a >> (bits - 1) & 1 == 1 { !a } else { a };
    let a = if bits == 32 { a & 0xffff_ffff } else { a };
    if a == 0 {
        return u32::MAX;
    }
    let top = 63 - a.leading_zeros();
    if amount { bits - 1 - top } else { top }
}

/// `fns`: the n-th set bit from a base, upwards or downwards.
pub(crate) fn find_nth(mask: u32, base: u32, offset: i32) -> u32 {
    if base > 31 {
        return u32::MAX;
    }
    if offset == 0 {
        return if mask >> base & 1 == 1 { base } else { u32::MAX };
    }
    let step = if offset > 0 { 1 } else { -1 };
    let (mut at, mut left) = (base as i32, offset.unsigned_abs());
    while (0..32).contains(&at) {
        if mask >> at & 1 == 1 {
            left -= 1;
            if left == 0 {
                return at as u32;
            }
        }
        at += step;
    }
    u32::MAX
}

/// `bmsk`: so many ones from a position.
pub(crate) fn mask(pos: u32, len: u32, wrap: bool) -> u32 {
    let (pos, len) = if wrap { (pos & 31, len & 31) } else { (pos.min(32), len.min(32)) };
    ((((1_u64 << len) - 1) << pos) & 0xffff_ffff) as u32
}

/// `shf`: the pair {b, a} shifted, one half of it.
pub(crate) fn funnel(a: u32, b: u32, amount: u32, left: bool, wrap: bool) -> u32 {
    let amount = if wrap { amount & 31 } else { amount.min(32) };
    let pair = u64::from(b) << 32 | u64::from(a);
    if left { (pair << amount >> 32) as u32 } else { (pair >> amount) as u32 }
}

fn byte(x: u32, i: u32, signed: bool) -> i64 {
    let byte = (x >> (8 * i)) as u8;
    if signed { (byte as i8).into() } else { byte.into() }
}

/// `dp4a`: four products of bytes, summed onto c.
pub(crate) fn dot4(a: u32, b: u32, c: u32, a_signed: bool, b_signed: bool) -> u32 {
    let sum: i64 = (0..4).map(|i| byte(a, i, a_signed) * byte(b, i, b_signed)).sum();
    c.wrapping_add(sum as u32)
}

/// `dp2a`: two products of 16-bit halves of a with two bytes of b.
pub(crate) fn dot2(a: u32, b: u32, c: u32, a_signed: bool, b_signed: bool, high: bool) -> u32 {
    let half = |i: u32| {
        let half = (a >> (16 * i)) as u16;
        if a_signed { i64::from(half as i16) } else { half.into() }
    };
    let first = if high { 2 } else { 0 };
    let sum: i64 = (0..2).map(|i| half(i) * byte(b, first + i, b_signed)).sum();
    c.wrapping_add(sum as u32)
}

/// Sign-extends from so many bits.
pub(crate) fn extend(x: u64, bits: u32) -> i64 {
    ((x << (64 - bits)) as i64) >> (64 - bits)
}

/// Two 16-bit halves apart, and together again.
pub(crate) fn halves(a: u32, b: u32, f: impl Fn(u32, u32) -> u32) -> u32 {
    f(a & 0xffff, b & 0xffff) & 0xffff | f(a >> 16, b >> 16) << 16
}
