// 64-bit floats, where the adapter has SHADER_F64 and SHADER_INT64.

fn keep_double(x: f64) -> f64 {
    return bitcast<f64>(bitcast<u64>(x) ^ u64(args[0].x));
}

// a·b − c, c = a·b rounded, but for what is smaller than 2^-106 of it: fma is not always rounded once.
fn mul_error_double(a: f64, b: f64, c: f64) -> f64 {
    let a0 = bitcast<f64>(bitcast<u64>(a) & 0xfffffffff8000000lu);
    let b0 = bitcast<f64>(bitcast<u64>(b) & 0xfffffffff8000000lu);
    let a1 = keep_double(a - a0);
    let b1 = keep_double(b - b0);
    let first = keep_double(keep_double(a0 * b0) - c);
    let second = keep_double(first + keep_double(a0 * b1));
    let third = keep_double(second + keep_double(a1 * b0));
    return keep_double(third + keep_double(a1 * b1));
}

fn is_nan_double(x: f64) -> bool {
    return (bitcast<u64>(x) & 0x7ffffffffffffffflu) > 0x7ff0000000000000lu;
}

fn truncate_double(x: f64) -> i32 {
    if is_nan_double(x) {
        return 0;
    }
    if x >= 2147483648.0lf {
        return 2147483647;
    }
    if x <= -2147483648.0lf {
        return bitcast<i32>(0x80000000u);
    }
    return i32(x);
}

fn truncate_double_wide(x: f64) -> i64 {
    if is_nan_double(x) {
        return 0li;
    }
    if x >= 9223372036854775808.0lf {
        return 9223372036854775807li;
    }
    if x < -9223372036854775808.0lf {
        return -9223372036854775807li - 1li;
    }
    return i64(x);
}

// Rounded to odd: rounding once more, to fewer bits, then rounds as if once.
fn odd(x: f64) -> f32 {
    let near = f32(x);
    let back = f64(near);
    if is_nan_double(x) || back == x {
        return near;
    }
    var bits = bitcast<u32>(near);
    if abs(back) > abs(x) {
        bits -= 1u;
    }
    return bitcast<f32>(bits | 1u);
}
