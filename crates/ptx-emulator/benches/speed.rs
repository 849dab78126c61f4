//! Checked lane-operations and multiply-adds per second, on one core: `cargo bench -p ptx-emulator`.
//!
//! As a test (`cargo test --benches`) every kernel runs once and small.

use ptx_emulator::{Arg, Device, Launch, Module, Options};
use std::time::Instant;

/// Seconds that this thread has run, which other load does not lengthen; elapsed time where Linux does not tell.
fn seconds(since: Instant) -> f64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = stat.split(' ').next().and_then(|first| first.parse::<f64>().ok());
    nanoseconds.map_or_else(|| since.elapsed().as_secs_f64(), |ns| ns * 1e-9)
}

/// Each thread walks over shared memory: two loads, a multiply-add, and the loop.
const SHARED: &str = "
    .shared .align 4 .b8 buffer[4096];
    mov.u32 %r4, buffer; mad.lo.u32 %r5, %r1, 4, %r4; mov.u32 %r6, 0; mov.f32 %f1, 0f3F800000; mov.f32 %f3, %f1;
    st.shared.f32 [%r5], %f1; st.shared.f32 [%r5+1024], %f1; bar.sync 0;
    LOOP:
    ld.shared.f32 %f1, [%r5]; ld.shared.f32 %f2, [%r5+1024];
    fma.rn.f32 %f3, %f1, %f2, %f3;
    add.u32 %r6, %r6, 1; setp.lt.u32 %p1, %r6, %r2; @%p1 bra LOOP;
    mul.wide.u32 %rd2, %r1, 4; add.s64 %rd3, %rd1, %rd2; st.global.f32 [%rd3], %f3;";

/// A product of tensor cores in a loop.
const MATRIX: &str = "
    mov.u32 %r3, 0x3c003c00; mov.u32 %r6, 0; mov.f32 %f1, 0f00000000; mov.f32 %f2, %f1; mov.f32 %f3, %f1; mov.f32 %f4, %f1;
    LOOP:
    mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1, %f2, %f3, %f4}, {%r3, %r3, %r3, %r3}, {%r3, %r3}, {%f1, %f2, %f3, %f4};
    add.u32 %r6, %r6, 1; setp.lt.u32 %p1, %r6, %r2; @%p1 bra LOOP;
    mul.wide.u32 %rd2, %r1, 4; add.s64 %rd3, %rd1, %rd2; st.global.f32 [%rd3], %f1;";

/// One element per thread from global memory and back.
const ELEMENTS: &str = "
    mov.u32 %r3, %ctaid.x; mad.lo.u32 %r3, %r3, 256, %r1; mul.wide.u32 %rd2, %r3, 4; add.s64 %rd3, %rd1, %rd2;
    ld.global.f32 %f1, [%rd3]; mul.rn.f32 %f2, %f1, %f1; add.rn.f32 %f2, %f2, %f1; st.global.f32 [%rd3], %f2;";

fn run(body: &str, blocks: u32, rounds: u32) -> (f64, u64, u64) {
    let text = format!(
        ".version 8.0 .target sm_90 .address_size 64 .visible .entry k(.param .u64 p, .param .u32 n) {{
         .reg .pred %p<4>; .reg .b32 %r<16>; .reg .b64 %rd<8>; .reg .f32 %f<8>;
         mov.u32 %r1, %tid.x; ld.param.u64 %rd1, [p]; ld.param.u32 %r2, [n]; {body} ret; }}"
    );
    let module = Module::parse(&text).expect("the kernel is well-formed");
    let time = |stats: bool| {
        let mut device = Device::new(Options { eager: true, stats, ..Options::default() });
        let loaded = device.load(&module).expect("memory suffices");
        let buffer = device.zeros::<f32>(256 * blocks as usize).expect("memory suffices");
        let args = [Arg::buffer(&buffer), Arg::value(rounds)];
        let now = Instant::now();
        let start = seconds(now);
        device.launch(&loaded, "k", Launch::linear(blocks, 256), &args).expect("the kernel is clean");
        (seconds(now) - start, device.take_stats())
    };
    let (_, stats) = time(true);
    let seconds = (0..3).map(|_| time(false).0).fold(f64::INFINITY, f64::min);
    (seconds, stats.lane_instructions, stats.matrix_macs)
}

fn main() {
    let small = !std::env::args().any(|arg| arg == "--bench");
    let rounds = if small { 10 } else { 20_000 };
    let (seconds, lanes, _) = run(SHARED, 1, rounds);
    println!("shared-memory loop   {:>8.0} million lane-operations per second", lanes as f64 / seconds / 1e6);
    let (seconds, lanes, _) = run(ELEMENTS, if small { 2 } else { 4096 }, 1);
    println!("elements in global   {:>8.0} million lane-operations per second", lanes as f64 / seconds / 1e6);
    let (seconds, _, macs) = run(MATRIX, 1, rounds / 4);
    println!("mma.m16n8k16         {:>8.0} million multiply-adds per second", macs as f64 / seconds / 1e6);
}
