//! Faulty kernels, each found and rightly located, and their corrected twins, which are clean.

mod control;
mod memory;

use crate::support::{REGISTERS, kernel};
use ptx_emulator::{Arg, Device, Error, Finding, Launch, Module, Options, Order, Report};

/// A kernel as a difference: lines that begin with `-` are the faulty version's, with `+` the corrected one's. The line
/// that the report must name ends in `// here`; the other access, if it is known, in `// other`.
struct Case {
    name: &'static str,
    finding: Finding,
    blocks: u32,
    threads: u32,
    body: &'static str,
}

const fn case(name: &'static str, finding: Finding, blocks: u32, threads: u32, body: &'static str) -> Case {
    Case { name, finding, blocks, threads, body }
}

fn cases() -> impl Iterator<Item = &'static Case> {
    memory::CASES.iter().chain(control::CASES)
}

/// `p0` holds 1024 numbers, 0 to 1023; `p1` has 1024 that were never written.
const NUMBERS: usize = 1024;

/// Threads as `%r50`, blocks as `%r51`; `%rd51` and `%rd52` the buffers, `%rd40` the thread's number in the first.
const PROLOGUE: &str = "
    mov.u32 %r50, %tid.x; mov.u32 %r51, %ctaid.x;
    ld.param.u64 %rd51, [p0]; ld.param.u64 %rd52, [p1];
    mul.wide.u32 %rd41, %r50, 4; add.s64 %rd40, %rd51, %rd41;
    .shared .align 16 .b8 buffer[4096]; mov.u32 %r52, buffer; shl.b32 %r53, %r50, 2; add.u32 %r54, %r52, %r53;
";

fn version(body: &str, keep: char, drop: char) -> String {
    let line = |line: &str| match line.trim_start().chars().next() {
        Some(c) if c == drop => String::new(),
        Some(c) if c == keep => line.replacen(keep, " ", 1),
        _ => line.to_string(),
    };
    let body: Vec<_> = body.lines().map(line).collect();
    kernel(2, REGISTERS, &format!("{PROLOGUE}{}", body.join("\n")))
}

fn options() -> Options {
    Options { fuel: 1 << 18, ..Options::default() }
}

fn run(text: &str, case: &Case, options: Options) -> Result<(), Error> {
    let module = Module::parse(text).unwrap_or_else(|error| panic!("{}: {error}\n{text}", case.name));
    let mut device = Device::new(options);
    let loaded = device.load(&module)?;
    let numbers: Vec<u32> = (0..NUMBERS as u32).collect();
    let first = device.alloc_named::<u32>(NUMBERS, "numbers")?;
    device.write(&first, &numbers)?;
    let second = device.alloc_named::<u32>(NUMBERS, "unwritten")?;
    let args = [Arg::buffer(&first), Arg::buffer(&second)];
    device.launch(&loaded, "k", Launch::linear(case.blocks, case.threads), &args)?;
    device.synchronise()
}

fn marked(text: &str, mark: &str) -> Vec<u32> {
    (1..).zip(text.lines()).filter(|(_, line)| line.trim_end().ends_with(mark)).map(|(n, _)| n).collect()
}

fn check(case: &Case) {
    let faulty = version(case.body, '-', '+');
    let Err(error) = run(&faulty, case, options()) else { panic!("{}: nothing was found\n{faulty}", case.name) };
    let report = error.report().unwrap_or_else(|| panic!("{}: {error}", case.name));
    assert_eq!(report.finding, case.finding, "{}: {report}", case.name);
    let here = marked(&faulty, "// here");
    assert!(here.contains(&report.line), "{}: expected line {here:?}\n{report}", case.name);
    let other = marked(&faulty, "// other");
    if let Some(line) = other.first() {
        assert_eq!(report.other.as_ref().map(|other| other.line), Some(*line), "{}: {report}", case.name);
    }
    assert_eq!(report.kernel, "k");
    assert!(report.lanes != 0 && report.text.contains("// here"), "{}: {report}", case.name);

    let fixed = version(case.body, '+', '-');
    for order in [Order::Ascending, Order::Descending, Order::Seeded(1), Order::Seeded(2)] {
        let result = run(&fixed, case, Options { order, ..options() });
        assert!(
            result.is_ok(),
            "{}, corrected, {order:?}: {}",
            case.name,
            result.err().map_or(String::new(), |e| e.to_string())
        );
    }
}

#[test]
fn every_fault_is_found_and_its_corrected_twin_is_clean() {
    cases().for_each(check);
}

#[test]
fn three_faults_for_every_detector() {
    for case in cases() {
        let count = cases().filter(|other| other.finding == case.finding).count();
        assert!(count >= 3, "{} has {count}", case.finding.name());
    }
}

/// The faults are found in every order of the warps, and the same seed gives the same report.
#[test]
fn races_are_found_in_every_order_and_replay() {
    let races = cases().filter(|case| matches!(case.finding, Finding::SharedRace | Finding::GlobalRace));
    for case in races {
        let text = version(case.body, '-', '+');
        for order in [Order::Descending, Order::Seeded(1), Order::Seeded(2), Order::Seeded(3)] {
            let found =
                || run(&text, case, Options { order, ..options() }).err().and_then(|error| error.report().cloned());
            let report: Option<Report> = found();
            assert_eq!(report.as_ref().map(|report| report.finding), Some(case.finding), "{}, {order:?}", case.name);
            assert_eq!(report, found(), "{}", case.name);
        }
    }
}

#[test]
fn a_report_says_everything() {
    let case = Case { name: "report", finding: Finding::OutOfBounds, blocks: 2, threads: 64, body: "" };
    let text = kernel(
        2,
        REGISTERS,
        &format!(
            "{PROLOGUE}
        setp.eq.u32 %p1, %r51, 1; setp.eq.u32 %p2, %r50, 40; and.pred %p1, %p1, %p2;
        mov.u64 %rd3, %rd51; @%p1 add.s64 %rd3, %rd51, 4096;
        ld.global.u32 %r1, [%rd3+4]; // here"
        ),
    );
    let error = run(&text, &case, Options { order: Order::Seeded(9), ..options() }).unwrap_err();
    let report = error.report().unwrap();
    assert_eq!((report.block, report.warp, report.lanes, report.thread), ([1, 0, 0], 1, 1 << 8, [40, 0, 0]));
    assert_eq!(report.line, marked(&text, "// here")[0]);
    assert_eq!(report.column, 9);
    let allocation = report.allocation.as_ref().unwrap();
    assert_eq!((allocation.name.as_str(), allocation.bytes, allocation.offset), ("numbers", 4096, 4100));
    assert_eq!(report.operands[1].0, "%rd3");
    assert_eq!(report.operands[1].1.map(|base| base + 4), report.address);
    assert_eq!(report.seed, Some(9));
    assert!(error.to_string().starts_with("k: out-of-bounds: read of 4 bytes beside everything in global memory"));
}

#[test]
fn reads_of_unwritten_registers_count_where_they_are_asked_for() {
    let case = Case { name: "reads", finding: Finding::UninitialisedRegister, blocks: 1, threads: 32, body: "" };
    let text = kernel(2, REGISTERS, &format!("{PROLOGUE}add.u32 %r2, %r1, 1; // here"));
    run(&text, &case, options()).unwrap();
    let mut strict = options();
    strict.checks.unwritten_reads = true;
    let report = run(&text, &case, strict).unwrap_err().report().cloned().unwrap();
    assert_eq!((report.finding, report.line), (Finding::UninitialisedRegister, marked(&text, "// here")[0]));
    assert_eq!(report.operands, [("%r1".to_string(), None), ("%r2".to_string(), None)]);
}

#[test]
fn freed_memory() {
    let bodies = [
        "ld.global.u32 %r1, [%rd40]; // here",
        "st.global.u32 [%rd40], %r50; // here",
        "atom.global.add.u32 %r1, [%rd51], 1; // here",
    ];
    for body in bodies {
        let text = kernel(2, REGISTERS, &format!("{PROLOGUE}{body}"));
        let module = Module::parse(&text).unwrap();
        for free in [true, false] {
            let mut device = Device::default();
            let loaded = device.load(&module).unwrap();
            let buffer = device.zeros::<u32>(64).unwrap();
            if free {
                device.free(buffer.address()).unwrap();
            }
            // A new allocation of the same size does not hide it.
            let _next = device.zeros::<u32>(64).unwrap();
            let args = [Arg::buffer(&buffer), Arg::address(0)];
            device.launch(&loaded, "k", Launch::linear(1, 64), &args).unwrap();
            let found =
                device.synchronise().err().and_then(|error| error.report().map(|report| (report.finding, report.line)));
            assert_eq!(found, free.then(|| (Finding::UseAfterFree, marked(&text, "// here")[0])), "{body}");
        }
    }
}

#[test]
fn read_only_memory() {
    let cases = [
        (".const .align 4 .u32 limits[4] = {1, 2, 3, 4};", "mov.u64 %rd1, limits; st.u32 [%rd1], 0; // here"),
        (
            ".const .align 4 .u32 limits[4] = {1, 2, 3, 4};",
            "mov.u64 %rd1, limits; atom.add.u32 %r1, [%rd1], 1; // here",
        ),
        (".const .align 4 .b32 limits[4];", "mov.u64 %rd1, limits; st.global.u32 [%rd1+8], 0; // here"),
    ];
    for (variable, body) in cases {
        let text =
            kernel(2, REGISTERS, &format!("{PROLOGUE}{body}")).replace(".visible", &format!("{variable}\n.visible"));
        let case = Case { name: body, finding: Finding::ReadOnly, blocks: 1, threads: 1, body: "" };
        let error = run(&text, &case, options()).unwrap_err();
        let report = error.report().unwrap();
        assert_eq!((report.finding, report.line), (Finding::ReadOnly, marked(&text, "// here")[0]), "{report}");
        run(&text.replace(".const", ".global"), &case, options()).unwrap();
    }
}
