// Folds over rows, and results per element computed from them: reductions, positions of extrema, softmax, normalisation and
// its adjoint.
//
// A row is one group's (THREADS 256) or one invocation's (THREADS 1: short rows, and rows whose neighbours are neighbours in
// memory); or a segment of a row, whose total is folded again by a second dispatch. Invocation l of a group folds the
// elements l, l + 256, … in order; then totals are folded by halves in shared memory, or, where the adapter has subgroups,
// by halves within them and then one subgroup after another: the order is fixed.
//
// Dispatch: groups of 256; a group per row and segment, or per 256 of them. Shared memory: 4 KiB at most.
// Bytes per element: read once per fold and once for the result, written once.
// Ladder: (1) this. (2) rows that stay in registers between folds, read once.
{{SHARED}}
@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
{{SUBGROUP}}) {
    let number = group.y * groups.x + group.x;
{{ROW}}
    let row = task % {{ROWS}};
    let base = task / {{ROWS}} * {{SEGMENT}};
    let end = min(base + {{SEGMENT}}, {{DEPTH}});
{{PLACES}}
{{FOLDS}}
{{RESULT}}
{{TOTALS}}
}
