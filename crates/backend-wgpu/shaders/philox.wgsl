// Philox 4x32-10 (Salmon et al., 2011): block b of a key, counted from the key's offset.
fn block_words(b: u32) -> vec4<u32> {
    let low = {{OFFSET_LOW}} + b;
    let high = {{OFFSET_HIGH}} + select(0u, 1u, low < b);
    var c = vec4<u32>(low, high, 0u, 0u);
    var k = vec2<u32>({{SEED_LOW}}, {{SEED_HIGH}});
    for (var round = 0u; round < 10u; round++) {
        let h0 = mul_high(c.x, 0xd2511f53u);
        let l0 = c.x * 0xd2511f53u;
        let h1 = mul_high(c.z, 0xcd9e8d57u);
        let l1 = c.z * 0xcd9e8d57u;
        c = vec4<u32>(h1 ^ c.y ^ k.x, l1, h0 ^ c.w ^ k.y, l0);
        k += vec2<u32>(0x9e3779b9u, 0xbb67ae85u);
    }
    return c;
}

// The element's own words: one of a block's four (per 4), or two (per 2).
fn own_words(i: u32, per: u32) -> vec2<u32> {
    let c = block_words(i / per);
    if per == 2u {
        return select(c.xy, c.zw, i % 2u == 1u);
    }
    return vec2<u32>(c[i % 4u], 0u);
}

// The upper 24 bits of a word as a number in [0, 1).
fn uniform_single(word: u32) -> f32 {
    return f32(word >> 8u) * 5.9604644775390625e-8;
}
