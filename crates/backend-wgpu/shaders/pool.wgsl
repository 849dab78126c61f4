// Folds over windows: pooling and the adjoint of the average. WINDOW finds the r-th element of the window of the result's
// element i, and TAKE folds it in if it is inside. Long windows are cut into segments whose results are folded again.
//
// Dispatch: groups of 256, an invocation per element and segment. Bytes per element: the window once, neighbours' windows from
// caches; the result is written once.
@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let task = (group.y * groups.x + group.x) * 256u + lane;
    if task >= {{TASKS}} {
        return;
    }
    let i = task % {{COUNT}};
    let base = task / {{COUNT}} * {{SEGMENT}};
    let end = min(base + {{SEGMENT}}, {{DEPTH}});
{{PLACES}}
    for (var r = base; r < end; r++) {
        var at = row;
        var is_inside = true;
{{WINDOW}}
        if is_inside {
{{TAKE}}
        }
    }
{{STORE}}
}
