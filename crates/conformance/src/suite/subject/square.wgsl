// The square, rounded once: a user's kernel. One invocation per element, groups of 64.
@group(0) @binding(0) var<storage, read_write> to: array<f32>;
@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read> numbers: array<u32>;

@compute @workgroup_size(64)
fn square(@builtin(global_invocation_id) id: vec3<u32>) {
    let i = id.x;
    if i < numbers[0] {
        to[i] = x[i] * x[i];
    }
}
