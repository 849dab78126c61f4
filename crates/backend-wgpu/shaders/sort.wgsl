// Steps of a bitonic network (Batcher, 1968) over 512 keys with their places, in shared memory.
//
// Does all runs from FIRST to LAST keys, each from the distance 256 or half the run downwards: all runs of up to 512 keys, or
// the end of a longer one whose larger distances are done (sort_step). A run goes upwards or downwards by its number; that of
// a whole lane, PADDED keys, upwards.
//
// Dispatch: a group of 256 per 512 keys. Shared memory: 8 KiB. Bytes per key: read once, written once.
var<workgroup> shared_keys: array<vec3<u32>, 512>;

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let begin = (group.y * groups.x + group.x) * 512u;
    for (var k = lane; k < 512u; k += 256u) {
        shared_keys[k] = LAST;
        if begin + k < {{COUNT}} {
            shared_keys[k] = key(begin + k);
        }
    }
    for (var run = {{FIRST}}; run <= {{LAST}}; run *= 2u) {
        let turn = select(run, 0u, run == {{PADDED}});
        for (var distance = min(run / 2u, 256u); distance > 0u; distance /= 2u) {
            workgroupBarrier();
            let low = lane / distance * distance * 2u + lane % distance;
            let high = low + distance;
            let a = shared_keys[low];
            let b = shared_keys[high];
            if precedes(b, a) == (((begin + low) & turn) == 0u) {
                shared_keys[low] = b;
                shared_keys[high] = a;
            }
        }
    }
    workgroupBarrier();
    for (var k = lane; k < 512u; k += 256u) {
        if begin + k < {{COUNT}} {
            put(begin + k, shared_keys[k]);
        }
    }
}
