//! Elements as unsigned words in their order: comparisons by bits, which work for every type on every adapter and have NaN
//! and signed zeros as the contracts do.

use tensor_core::DType;

use crate::shader::Shader;

/// Adds an operand of raw bits and `key_{name}(i)`: two words, the upper first, that grow with the i-th element (fall, if
/// `descending`). The zeros are equal; NaN has the words `nan`, which no number has if it is 0 or all ones.
pub(super) fn read(shader: &mut Shader, name: &str, dtype: DType, descending: bool, nan: u32) {
    let size = dtype.size_bytes();
    shader.raw(name, size);
    let float = |infinity: u32| {
        format!(
            "    let magnitude = key.x & 0x7fffffffu;
    if magnitude > {infinity:#x}u || (magnitude == {infinity:#x}u && key.y != 0u) {{
        return vec2<u32>({nan:#x}u);
    }}
    if (magnitude | key.y) == 0u {{
        key.x = 0u;
    }}
    key ^= select(vec2<u32>(0x80000000u, 0u), vec2<u32>(0xffffffffu), (key.x >> 31u) == 1u);
"
        )
    };
    let ordered = match dtype {
        DType::F64 => float(0x7ff0_0000),
        DType::F32 | DType::BF16 => float(0x7f80_0000),
        DType::F16 => float(0x7c00_0000),
        DType::I64 | DType::I32 => "    key.x ^= 0x80000000u;\n".to_string(),
        DType::U8 | DType::Bool => String::new(),
    };
    let words = match size {
        8 => format!("vec2<u32>(raw_{name}(i, 1u), raw_{name}(i, 0u))"),
        2 => format!("vec2<u32>(raw_{name}(i, 0u) << 16u, 0u)"),
        _ => format!("vec2<u32>(raw_{name}(i, 0u), 0u)"),
    };
    let result = if descending { "~key" } else { "key" };
    shader.push(&format!(
        "fn key_{name}(i: u32) -> vec2<u32> {{\n    var key = {words};\n{ordered}    return {result};\n}}\n"
    ));
}

/// Adds `precedes(a, b)` of keys with their places: equal ones keep the order of their places, and `LAST` comes after all.
pub(super) fn compare(shader: &mut Shader) {
    shader.push(
        "const LAST = vec3<u32>(0xffffffffu);
fn precedes(a: vec3<u32>, b: vec3<u32>) -> bool {
    if a.x != b.x {
        return a.x < b.x;
    }
    if a.y != b.y {
        return a.y < b.y;
    }
    return a.z < b.z;
}
",
    );
}
