// 64-bit integers, where the adapter has SHADER_INT64.

// The upper 64 bits of a·b.
fn mul_high_wide(a: u64, b: u64) -> u64 {
    let a0 = a & 0xfffffffflu;
    let a1 = a >> 32u;
    let b0 = b & 0xfffffffflu;
    let b1 = b >> 32u;
    let low = a0 * b0;
    let middle = a1 * b0 + (low >> 32u);
    let other = a0 * b1 + (middle & 0xfffffffflu);
    return a1 * b1 + (middle >> 32u) + (other >> 32u);
}

// Truncates, saturates; NaN gives 0.
fn truncate_wide(x: f32) -> i64 {
    if is_nan(x) {
        return 0li;
    }
    if x >= 9223372036854775808.0 {
        return 9223372036854775807li;
    }
    if x < -9223372036854775808.0 {
        return -9223372036854775807li - 1li;
    }
    return i64(x);
}
