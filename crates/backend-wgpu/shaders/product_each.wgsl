// Sums of products as in `product.wgsl`, with an invocation per element of the result: for a few rows or columns per batch, as
// depthwise convolutions have them. Neighbours are neighbours along the columns. Long sums are cut into parts that a fold
// adds in order.
//
// Dispatch: groups of 256; part, batch, row, column. Bytes per element: each operand once per element of the sum, mostly from
// caches; the result is written once.
@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let number = (group.y * groups.x + group.x) * 256u + lane;
    if number >= {{TASKS}} {
        return;
    }
    let line = number / {{COLUMNS}};
    let task = line / {{ROWS}};
    let column = number % {{COLUMNS}};
    let row = line % {{ROWS}};
    let batch = task % {{BATCHES}};
    let part = task / {{BATCHES}};
    let base = part * {{SEGMENT}};
    let end = min(base + {{SEGMENT}}, {{DEPTH}});
{{PLACES}}
    let own_a = at_a + rows_a(row);
    var own_b = columns_b(column);
    {{BASE}} += at_b;
    var sum: {{T}};
    for (var k = base; k < end; k++) {
        sum += fetch_a(own_a, depth_a(k)) * fetch_b(own_b, depth_b(k));
    }
    let row_at = rows_to(row);
    let column_at = columns_to(column);
{{STORE}}
}
