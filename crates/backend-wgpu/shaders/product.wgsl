// Sums of products: result(batch, m, n) = epilogue(Σ_k a(batch, m, k)·b(batch, k, n), extra…). Matrix products, convolutions
// and both their adjoints: they differ in fetch_a and fetch_b alone, which are pasted in.
//
// A group computes a square tile of the result, 16·R wide; an invocation R×R elements of it, 16 rows and 16 columns apart, so
// that neighbours write neighbouring elements. Per step of 16 (types of 64 bits: 8) along k both operands' tiles are brought
// into shared memory, by invocations that lie along whichever axis is contiguous. It holds vectors of R elements, what one
// invocation needs of an operand at a place along k: one read each, on processors, too, where reads cost most.
// Where there are few tiles, k is cut into parts whose sums a fold adds in order.
//
// Dispatch: groups of 256, a tile each: part, batch, tile down, tile across. Shared memory: 2·16·17·R words.
// Bytes per element: each operand is read once per 16·R rows or columns of the other; the result is written once.
// Ladder: an invocation per element (`product_each.wgsl`) where most of a tile would be idle; a fold per row (`rows.wgsl`) where
// such operands lie along k; tiles of 32 (R = 2), so that small results fill the machine; tiles of 64 (R = 4): 16
// multiplications per 2 reads of shared memory.
var<workgroup> shared_a: array<vec{{R}}<{{T}}>, {{SHARED}}>;
var<workgroup> shared_b: array<vec{{R}}<{{T}}>, {{SHARED}}>;

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let number = group.y * groups.x + group.x;
    if number >= {{TASKS}} {
        return;
    }
    let tile = number / {{ACROSS}};
    let task = tile / {{DOWN}};
    let batch = task % {{BATCHES}};
    let part = task / {{BATCHES}};
    let first_row = tile % {{DOWN}} * {{TILE}}u;
    let first_column = number % {{ACROSS}} * {{TILE}}u;
    let base = part * {{SEGMENT}};
    let end = min(base + {{SEGMENT}}, {{DEPTH}});
{{PLACES}}
{{OWN}}
    let x = lane % 16u;
    let y = lane / 16u;
    for (var step = base; step < end; step += {{STEP}}u) {
{{LOADS}}
        workgroupBarrier();
        for (var k = 0u; k < {{STEP}}u; k += {{AT_ONCE}}u) {
            let at = k * {{PITCH}}u;
{{PRODUCTS}}
        }
        workgroupBarrier();
    }
    for (var i = 0u; i < {{R}}u; i++) {
        let row = first_row + y + i * 16u;
        if row < {{ROWS}} {
            let row_at = rows_to(row);
{{ROW_SUMS}}
            for (var j = 0u; j < {{R}}u; j++) {
                let column = first_column + x + j * 16u;
                if column < {{COLUMNS}} {
                    let column_at = columns_to(column);
{{OWN_SUM}}
{{STORE}}
                }
            }
        }
    }
}
