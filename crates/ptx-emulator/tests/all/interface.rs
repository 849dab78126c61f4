//! The device: limits of launches, latched faults, memory, statistics.

use crate::support::{REGISTERS, kernel};
use ptx_emulator::{Arg, Device, ErrorKind, Finding, Launch, Module, Options, ParseOptions};

fn module(body: &str) -> Module {
    Module::parse(&kernel(1, REGISTERS, body)).unwrap()
}

#[test]
fn launches_beyond_a_limit_say_which() {
    let mut device = Device::default();
    let loaded = device.load(&module(".shared .b8 room[1024]; mov.u32 %r1, room;")).unwrap();
    let args = [Arg::address(0)];
    let mut fails = |kernel: &str, launch: Launch, args: &[Arg], expected: &str| {
        let error = device.launch(&loaded, kernel, launch, args).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage);
        assert_eq!(error.to_string(), expected);
    };
    fails("other", Launch::linear(1, 1), &args, "other: no such kernel: the module has k");
    fails("k", Launch::linear(1, 1), &[], "k: takes 1 arguments: found 0");
    fails("k", Launch::linear(1, 1), &[Arg::value(7_u32)], "k: argument 0 (p0) has 8 bytes: found 4");
    fails(
        "k",
        Launch::linear(0, 1),
        &args,
        "k: grid [0, 1, 1]: every axis must be from 1 to [2147483647, 65535, 65535]",
    );
    fails("k", Launch::linear(1, 1025), &args, "k: block [1025, 1, 1]: every axis must be from 1 to [1024, 1024, 64]");
    fails(
        "k",
        Launch::new([1; 3], [32, 33, 1]),
        &args,
        "k: block [32, 33, 1] has 1056 threads: at most 1024 are possible",
    );
    fails(
        "k",
        Launch::linear(1, 1).shared(232_000),
        &args,
        "k: shared memory of 233024 bytes: a block can have 232448",
    );
    let required =
        Module::parse(".version 8.0 .target sm_90 .address_size 64 .entry k() .reqntid 64 { ret; }").unwrap();
    let loaded = device.load(&required).unwrap();
    let error = device.launch(&loaded, "k", Launch::linear(1, 32), &[]).unwrap_err();
    assert_eq!(error.to_string(), "k: block [32, 1, 1]: the kernel requires [64, 1, 1]");
}

#[test]
fn faults_are_latched_until_reset() {
    let mut device = Device::default();
    let loaded = device.load(&module("trap;")).unwrap();
    let launch = Launch::linear(1, 1);
    device.launch(&loaded, "k", launch, &[Arg::address(0)]).unwrap();
    for error in [
        device.launch(&loaded, "k", launch, &[Arg::address(0)]).unwrap_err(),
        device.alloc::<u8>(1).unwrap_err(),
        device.synchronise().unwrap_err(),
    ] {
        assert_eq!(error.report().map(|report| report.finding), Some(Finding::Trap));
    }
    assert!(device.reset().is_some());
    device.synchronise().unwrap();
    let mut eager = Device::new(Options { eager: true, ..Options::default() });
    let loaded = eager.load(&module("trap;")).unwrap();
    assert!(eager.launch(&loaded, "k", launch, &[Arg::address(0)]).is_err());
}

#[test]
fn memory_has_a_limit_and_addresses_are_not_used_again() {
    let mut device = Device::new(Options { memory_bytes: 1000, ..Options::default() });
    let first = device.alloc_bytes(600, "first").unwrap();
    let error = device.alloc_bytes(500, "second").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutOfMemory);
    assert_eq!(error.to_string(), "alloc: out of memory: asked for 500 bytes, 400 of 1000 are free");
    device.free(first).unwrap();
    assert_eq!(device.free(first).unwrap_err().to_string(), format!("free: first at {first:#x} is already freed"));
    let second = device.alloc_bytes(1000, "second").unwrap();
    assert!(second > first && second.is_multiple_of(512));
    assert!(device.write_bytes(second + 999, &[1, 2]).unwrap_err().to_string().contains("leaves the allocation"));
}

#[test]
fn copies_keep_what_is_unwritten() {
    let read = module("ld.param.u64 %rd1, [p0]; ld.global.u32 %r1, [%rd1+4];");
    let mut device = Device::default();
    let loaded = device.load(&read).unwrap();
    let [from, to] = [(); 2].map(|()| device.alloc_bytes(8, "bytes").unwrap());
    device.write_bytes(from, &[1; 6]).unwrap();
    device.copy_bytes(from, to, 8).unwrap();
    device.launch(&loaded, "k", Launch::linear(1, 1), &[Arg::address(to)]).unwrap();
    assert_eq!(device.reset().and_then(|error| error.report().map(|r| r.finding)), Some(Finding::UninitialisedMemory));
    device.fill_bytes(to, 8, 0).unwrap();
    device.launch(&loaded, "k", Launch::linear(1, 1), &[Arg::address(to)]).unwrap();
    device.synchronise().unwrap();
    // A pool hands a block out again: what it held counts as unwritten.
    device.forget_bytes(to, 8).unwrap();
    device.launch(&loaded, "k", Launch::linear(1, 1), &[Arg::address(to)]).unwrap();
    assert!(device.synchronise().is_err());
}

#[test]
fn statistics_count_conflicts_and_sectors() {
    let stats = |body: &str| {
        let mut device = Device::new(Options { stats: true, ..Options::default() });
        let loaded = device.load(&module(body)).unwrap();
        let buffer = device.zeros::<u32>(4096).unwrap();
        device.launch(&loaded, "k", Launch::linear(1, 32), &[Arg::buffer(&buffer)]).unwrap();
        device.synchronise().unwrap();
        device.take_stats()
    };
    let shared = |shift: u32| {
        stats(&format!(
            ".shared .align 16 .b8 all[4096]; mov.u32 %r1, %tid.x; shl.b32 %r2, %r1, {shift}; mov.u32 %r3, all; add.u32 %r3, %r3, %r2; st.shared.u32 [%r3], %r1;"
        ))
    };
    assert_eq!(shared(2).bank_conflict_factor(), 1.0);
    assert_eq!(shared(3).bank_conflict_factor(), 2.0);
    assert_eq!(shared(7).bank_conflict_factor(), 32.0);
    let global = |bytes: u32| {
        stats(&format!(
            "ld.param.u64 %rd1, [p0]; mov.u32 %r1, %tid.x; mad.wide.u32 %rd2, %r1, {bytes}, %rd1; ld.global.u32 %r2, [%rd2];"
        ))
    };
    assert_eq!(global(4).coalescing_factor(), 1.0);
    assert_eq!(global(32).coalescing_factor(), 8.0);
    let stats = global(4);
    assert_eq!(stats.by_opcode["ld.global.u32"], 1);
    assert_eq!((stats.blocks, stats.warp_instructions, stats.lane_instructions), (1, 5, 160));
}

#[test]
fn the_same_seed_gives_the_same_bits() {
    use ptx_emulator::Order;
    // The order of floating additions is that of the warps.
    let sum = module(
        "ld.param.u64 %rd1, [p0]; mov.u32 %r1, %tid.x; cvt.rn.f32.u32 %f1, %r1; add.rn.f32 %f1, %f1, 0f3DCCCCCD;
         mul.rn.f32 %f1, %f1, %f1; red.global.add.f32 [%rd1], %f1;",
    );
    let run = |order: Order| {
        let mut device = Device::new(Options { order, ..Options::default() });
        let loaded = device.load(&sum).unwrap();
        let out = device.zeros::<f32>(1).unwrap();
        device.launch(&loaded, "k", Launch::linear(8, 1024), &[Arg::buffer(&out)]).unwrap();
        device.download(&out).unwrap()[0].to_bits()
    };
    let seeded: Vec<u32> = (0..8).map(|seed| run(Order::Seeded(seed))).collect();
    assert!(seeded.iter().any(|bits| *bits != seeded[0]), "the order never mattered");
    assert_eq!(seeded, (0..8).map(|seed| run(Order::Seeded(seed))).collect::<Vec<u32>>());
}

#[test]
fn blocks_that_wait_for_each_other_get_their_turns() {
    // Every block waits until all have arrived.
    let body = "ld.param.u64 %rd1, [p0]; mov.u32 %r2, %nctaid.x; membar.gl; red.global.add.u32 [%rd1], 1;
        WAIT: ld.acquire.gpu.global.u32 %r1, [%rd1]; setp.lt.u32 %p1, %r1, %r2; @%p1 nanosleep.u32 100; @%p1 bra WAIT;";
    let mut device = Device::default();
    let loaded = device.load(&module(body)).unwrap();
    let out = device.zeros::<u32>(1).unwrap();
    device.launch(&loaded, "k", Launch::linear(12, 32), &[Arg::buffer(&out)]).unwrap();
    assert_eq!(device.download(&out).unwrap_or_else(|error| panic!("{error}")), [12 * 32]);
}

#[test]
fn strict_modules_say_how_they_round_and_stay_below_their_target() {
    let strict = |target: &str, version: &str, body: &str| {
        let text =
            kernel(1, REGISTERS, body).replace("sm_90", target).replace("version 8.0", &format!("version {version}"));
        Module::parse_with(&text, ParseOptions::strict(true)).map(|_| ()).map_err(|error| error.to_string())
    };
    let fails = |result: Result<(), String>, expected: &str| {
        assert!(result.as_ref().is_err_and(|e| e.contains(expected)), "{result:?}")
    };
    fails(strict("sm_80", "7.8", "add.f32 %f1, %f2, %f3;"), "add: strict mode wants a rounding such as .rn");
    strict("sm_80", "7.8", "add.rn.f32 %f1, %f2, %f3; add.u32 %r1, %r2, %r3;").unwrap();
    fails(strict("sm_75", "7.8", "cp.async.wait_all;"), "cp.async needs sm_80: the target is sm_75");
    fails(strict("sm_80", "6.5", "cp.async.wait_all;"), "cp.async needs version 7.0: the module's is 6.5");
    fails(strict("sm_80", "7.8", "add.rn.bf16 %h1, %h2, %h3;"), "add.bf16 needs sm_90");
    strict("sm_80", "7.8", "fma.rn.bf16 %h1, %h2, %h3, %h4; cp.async.wait_all;").unwrap();
}
