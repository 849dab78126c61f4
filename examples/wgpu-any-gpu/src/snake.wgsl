// The snake activation: y = x + sin²(a·x)/a. One invocation per element, groups of 64.
// Bindings in this order: outputs, inputs, numbers.
struct Numbers {
    n: u32,
    a: f32,
}

@group(0) @binding(0) var<storage, read_write> y: array<f32>;
@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read> numbers: Numbers;

@compute @workgroup_size(64)
fn snake(@builtin(global_invocation_id) id: vec3<u32>) {
    let i = id.x;
    if i < numbers.n {
        let wave = sin(numbers.a * x[i]);
        y[i] = x[i] + wave * wave / numbers.a;
    }
}
