// One invocation per word of results, whatever the layouts of the operands: an element of 32 or 64 bits, two of 16 bits, or
// four bytes.
//
// Used by map, copy, pad, gather and all that compute elements from elements: element(i) is pasted in, i a place in the
// row-major result. Shapes, strides and numbers are parameters: they compile nothing.
//
// Dispatch: groups of 256 along x, then y. Bytes per element: each operand's element once, the result's once.
@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let first = ((group.y * groups.x + group.x) * 256u + lane) * {{PER}}u;
    let count = {{COUNT}};
    if first >= count {
        return;
    }
{{STORES}}
}
