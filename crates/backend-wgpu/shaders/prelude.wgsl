// What every kernel may use: conversions of 16-bit floats by their bits (no adapter needs SHADER_F16, and rounding is to
// nearest, ties to even, which WGSL leaves open), and arithmetic that WGSL lacks or that drivers must not regroup.

// x, whatever a driver would like to make of the operations around it: args[0].x is 0, which it does not know.
fn keep(x: f32) -> f32 {
    return bitcast<f32>(bitcast<u32>(x) ^ args[0].x);
}

// WGSL lets a compiler assume that there is no NaN; its bits do not lie.
fn is_nan(x: f32) -> bool {
    return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u;
}

// a·b − c exactly, c = a·b rounded (Dekker): the halves of 12 bits have exact products.
fn mul_error(a: f32, b: f32, c: f32) -> f32 {
    let a0 = bitcast<f32>(bitcast<u32>(a) & 0xfffff000u);
    let b0 = bitcast<f32>(bitcast<u32>(b) & 0xfffff000u);
    let a1 = keep(a - a0);
    let b1 = keep(b - b0);
    let first = keep(keep(a0 * b0) - c);
    let second = keep(first + keep(a0 * b1));
    let third = keep(second + keep(a1 * b0));
    return keep(third + keep(a1 * b1));
}

// The upper 32 bits of a·b.
fn mul_high(a: u32, b: u32) -> u32 {
    let a0 = a & 0xffffu;
    let a1 = a >> 16u;
    let b0 = b & 0xffffu;
    let b1 = b >> 16u;
    let low = a0 * b0;
    let middle = a1 * b0 + (low >> 16u);
    let other = a0 * b1 + (middle & 0xffffu);
    return a1 * b1 + (middle >> 16u) + (other >> 16u);
}

// Truncates, saturates; NaN gives 0.
fn truncate(x: f32) -> i32 {
    if is_nan(x) {
        return 0;
    }
    if x >= 2147483648.0 {
        return 2147483647;
    }
    if x < -2147483648.0 {
        return bitcast<i32>(0x80000000u);
    }
    return i32(x);
}

fn f16_value(h: u32) -> f32 {
    let sign = (h & 0x8000u) << 16u;
    let magnitude = h & 0x7fffu;
    if magnitude >= 0x7c00u {
        return bitcast<f32>(sign | 0x7f800000u | ((magnitude & 0x3ffu) << 13u));
    }
    if magnitude < 0x400u {
        // Units of 2^-24.
        return bitcast<f32>(sign | bitcast<u32>(f32(magnitude) * 5.9604644775390625e-8));
    }
    return bitcast<f32>(sign | ((magnitude << 13u) + 0x38000000u));
}

fn f16_bits(x: f32) -> u32 {
    let bits = bitcast<u32>(x);
    let sign = (bits >> 16u) & 0x8000u;
    let magnitude = bits & 0x7fffffffu;
    if magnitude > 0x7f800000u {
        return sign | 0x7e00u;
    }
    if magnitude >= 0x477ff000u {
        return sign | 0x7c00u;
    }
    if magnitude >= 0x38800000u {
        return sign | ((magnitude + 0xfffu + ((magnitude >> 13u) & 1u) - 0x38000000u) >> 13u);
    }
    if magnitude <= 0x33000000u {
        return sign;
    }
    // A subnormal one, in units of 2^-24.
    let shift = 126u - (magnitude >> 23u);
    let significand = (magnitude & 0x7fffffu) | 0x800000u;
    let kept = significand >> shift;
    let rest = significand & ((1u << shift) - 1u);
    let tie = 1u << (shift - 1u);
    return sign | (kept + select(0u, 1u, rest > tie || (rest == tie && (kept & 1u) == 1u)));
}

fn bf16_value(h: u32) -> f32 {
    return bitcast<f32>(h << 16u);
}

fn bf16_bits(x: f32) -> u32 {
    let bits = bitcast<u32>(x);
    return select((bits + 0x7fffu + ((bits >> 16u) & 1u)) >> 16u, 0x7fc0u, is_nan(x));
}
