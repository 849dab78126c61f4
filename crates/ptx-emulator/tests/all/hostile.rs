//! No text and no launch makes the emulator panic.

use crate::support::{REGISTERS, kernel};
use proptest::prelude::*;
use ptx_emulator::{Arg, Device, ErrorKind, Launch, Module, Options};

fn message(text: &str) -> String {
    let error = Module::parse(text).expect_err(text);
    assert_eq!(error.kind(), ErrorKind::Parse);
    assert!(error.line() > 0 && error.column() > 0, "{error}");
    error.to_string()
}

const HEAD: &str = ".version 8.0\n.target sm_90\n.address_size 64\n";

#[test]
fn errors_name_the_place_and_what_was_expected() {
    let body = |body: &str| {
        format!(
            "{HEAD}.entry k(.param .u64 p) {{ .reg .b32 %r<4>; .reg .b64 %d<4>; .reg .f32 %f<4>; .reg .pred %p<4>;\n{body}\n}}"
        )
    };
    for (text, expected) in [
        ("".to_string(), "1:1: expected `.version`, found the end of the text"),
        (".version 5.0 .target sm_50".into(), "1:10: version 5.0 is older than 6.0, the oldest supported"),
        (".version 7.0".into(), "1:1: module has no `.target`: expected one such as sm_80"),
        (format!("{HEAD}.entry k( {{ }}"), "4:11: expected `.param`, found `{`"),
        (format!("{HEAD}.wrong x;"), "4:1: unknown directive `.wrong`"),
        (format!("{HEAD}.entry k() {{ ret;"), "4:18: expected an instruction, found the end of the text"),
        (body("frob.u32 %r1, %r2;"), "5:1: frob: unknown instruction"),
        (body("add.bogus.u32 %r1, %r2, %r3;"), "5:1: add: unknown modifier `.bogus`"),
        (body("add.u32 %r1, %r2;"), "5:1: add: expected 3 operands, found 2"),
        (body("add.u32 %r1, %d2, %r3;"), "5:14: operand `%d2` is .b64, which does not fit .u32"),
        (body("add.u32 %r1, %r9, %r3;"), "5:14: unknown name `%r9`"),
        (body("add.f32 %f1, %f2, ;"), "5:19: expected a constant, found `;`"),
        (body("bra NOWHERE;"), "5:5: unknown label `NOWHERE`"),
        (body("@%r1 ret;"), "5:6: guard `%r1` is not a predicate"),
        (body("L: ret; L: ret;"), "5:9: `L` is already a label in this scope"),
        (body(".reg .b32 %r; .reg .b32 %r;"), "5:25: `%r` is already declared in this scope"),
        (body("ld.param.u64 %d1, [p+4];"), "5:1: ld: bytes 4..12 lie outside the parameter, which has 0..8"),
        (body("mov.u32 %r1, 0f12;"), "5:14: 0f takes 8 hexadecimal digits: found 2"),
        (body("call f, (%r1);"), "5:1: call: unknown function `f`"),
        (
            body("shfl.bfly.b32 %r1, %r2, 1, 31;"),
            "5:1: shfl: the form without `.sync` is gone: name the lanes with `.sync`",
        ),
        (body("fma.f32 %f1, %f1, %f1, %f1;"), "5:1: fma: expected one of .rn, .rz, .rm, .rp"),
        (body("cvt.s32.f32 %r1, %f1;"), "5:1: cvt: rounding does not suit a conversion from .f32 to .s32"),
        (body("wgmma.fence.sync.aligned;"), "5:1: wgmma: not supported by this emulator"),
        (body("/* open"), "5:1: comment is not closed: expected */"),
        (format!("{HEAD}.global .b32 x[2] = {{1, 2, 3}};"), "4:14: x: initialiser has more elements than the variable"),
        (format!("{HEAD}.global .b8 x[99999999999];"), "4:13: x: variable is larger than 256 MiB"),
        (format!("{HEAD}.entry k() {{ ret; }} .entry k() {{ ret; }}"), "4:28: `k` is already declared"),
        (format!("{HEAD}.extern .global .b32 x;"), "4:22: `x` is external: modules are not linked"),
    ] {
        assert_eq!(message(&text), expected);
    }
    assert!(message(&body(&"{".repeat(1000))).ends_with("nested more than 64 deep"));
    assert!(message(&body(&format!("mov.u32 %r1, {}1;", "(".repeat(1000)))).ends_with("nested more than 64 deep"));
    assert!(message(&body(&format!("mov.u32 %r1, {}1;", "-".repeat(100_000)))).ends_with("nested more than 64 deep"));
    let newer = Module::parse(".version 9.4 .target sm_90 .address_size 64").unwrap();
    assert_eq!(newer.warnings(), ["1:10: version 9.4 is newer than 8.8, the newest known"]);
}

/// Runs every kernel of a text as far as it gets, with addresses that are good and bad.
fn survive(text: &str) {
    let Ok(module) = Module::parse(text) else { return };
    for kernel in module.kernels() {
        let mut device = Device::new(Options { fuel: 2000, memory_bytes: 1 << 20, ..Options::default() });
        let Ok(loaded) = device.load(&module) else { continue };
        let Ok(buffer) = device.zeros::<u32>(256) else { continue };
        let args: Vec<Arg> = kernel
            .params()
            .iter()
            .map(|param| match param.bytes {
                8 => Arg::buffer(&buffer),
                n => Arg::bytes(&vec![1; n as usize]),
            })
            .collect();
        let _ = device.launch(&loaded, kernel.name(), Launch::linear(2, 40).shared(4096), &args);
        let _ = device.synchronise().map_err(|error| error.to_string());
    }
}

const CORPUS: &[&str] = &[
    include_str!("corpus/clang.ptx"),
    include_str!("corpus/triton_softmax.ptx"),
    include_str!("corpus/triton_matmul_f16.ptx"),
];

/// Every word that means something, to be thrown together.
const WORDS: &[&str] = &[
    ".version",
    "8.0",
    ".target",
    "sm_90",
    ".entry",
    ".func",
    ".param",
    ".reg",
    ".pred",
    ".b32",
    ".b64",
    ".f32",
    ".f16x2",
    ".shared",
    ".global",
    ".const",
    ".local",
    ".align",
    "16",
    "k",
    "(",
    ")",
    "{",
    "}",
    "[",
    "]",
    "<",
    ">",
    ",",
    ";",
    ":",
    "=",
    "+",
    "-",
    "@",
    "!",
    "|",
    "%r1",
    "%rd1",
    "%p1",
    "%f1",
    "add",
    "mul",
    ".wide",
    ".hi",
    ".lo",
    "ld",
    "st",
    "bra",
    "L",
    "L:",
    "mov",
    "cvt",
    ".rn",
    ".rzi",
    ".sat",
    "setp",
    ".lt",
    "selp",
    "shfl",
    ".sync",
    ".bfly",
    "bar",
    "mma",
    ".aligned",
    ".m16n8k16",
    ".row",
    ".col",
    "atom",
    "call",
    "ret",
    "cp",
    ".async",
    ".ca",
    "0f3F800000",
    "0x7fffffff",
    "99999999999999999999",
    "1.5e300",
    "\"text\"",
    "/*",
    "*/",
    "//",
    "%tid",
    ".x",
    "_",
    ".v4",
    "brx",
    ".idx",
    ".branchtargets",
    "T:",
    ".callprototype",
    "\u{e9}",
    "wmma",
    ".load",
    ".a",
    "ldmatrix",
    "mbarrier",
    ".init",
    ".u32",
];

/// Instructions that parse, with operands that make no sense.
const BODY: &[&str] = &[
    "add.u32 %r{}, %r{}, %r{};",
    "mul.wide.u32 %rd{}, %r{}, %r{};",
    "ld.global.u32 %r{}, [%rd{}+{}];",
    "st.u32 [%rd{}], %r{};",
    "ld.shared.v2.u32 {%r{}, %r{}}, [%r{}];",
    "setp.lt.u32 %p{}, %r{}, %r{};",
    "@%p{} bra A;",
    "@!%p{} bra B;",
    "bar.sync {};",
    "@%p{} bar.sync 0;",
    "mov.u32 %r{}, %tid.x;",
    "mov.u32 %r{}, {};",
    "cvt.u64.u32 %rd{}, %r{};",
    "shfl.sync.idx.b32 %r{}, %r{}, %r{}, 31, -1;",
    "vote.sync.ballot.b32 %r{}, %p{}, %r{};",
    "div.s32 %r{}, %r{}, %r{};",
    "atom.global.add.u32 %r{}, [%rd{}], %r{};",
    "@%p{} exit;",
    "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f1, %f2, %f3, %f4}, {%r{}, %r{}}, {%r{}}, {%f1, %f2, %f3, %f4};",
    "cp.async.ca.shared.global [%r{}], [%rd{}], 4;",
    "cp.async.commit_group;",
    "cp.async.wait_group {};",
    "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r{}}, [%r{}];",
    "fma.rn.f32 %f{}, %f{}, %f{}, %f{};",
    "mov.u64 %rd{}, buf;",
    "mbarrier.init.shared.b64 [%r{}], {};",
    "mbarrier.arrive.shared.b64 %rd{}, [%r{}];",
    "brx.idx %r{}, T;",
    "membar.gl;",
    "mov.b32 %f{}, %r{};",
    "cvt.rzi.s32.f32 %r{}, %f{};",
    "bfi.b32 %r{}, %r{}, %r{}, %r{}, %r{};",
    "bfe.s32 %r{}, %r{}, %r{}, %r{};",
    "prmt.b32 %r{}, %r{}, %r{}, %r{};",
    "shf.l.clamp.b32 %r{}, %r{}, %r{}, %r{};",
    "call %rd{}, ();",
    "wmma.load.a.sync.aligned.row.m16n16k8.shared.tf32 {%r1, %r2, %r3, %r4}, [%r{}], %r{};",
    "ex2.approx.f32 %f{}, %f{};",
    "div.rm.f32 %f{}, %f{}, %f{};",
    "bar.sync %r{}, %r{};",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text(text in "\\PC{0,200}") {
        survive(&text);
        survive(&format!("{HEAD}{text}"));
    }

    #[test]
    fn any_words(words in prop::collection::vec(0..WORDS.len(), 0..60)) {
        let words: Vec<&str> = words.into_iter().map(|i| WORDS[i]).collect();
        let text = words.join(" ");
        survive(&text);
        survive(&kernel(1, REGISTERS, &text));
    }

    #[test]
    fn real_modules_cut_and_swapped(which in 0..CORPUS.len(), cut in 0.0..1.0, from in 0.0..1.0, len in 0..40_usize) {
        let text = CORPUS[which];
        let at = |part: f64| {
            let mut at = (text.len() as f64 * part) as usize;
            while !text.is_char_boundary(at) { at -= 1; }
            at
        };
        survive(&text[..at(cut)]);
        let (hole, end) = (at(cut), (at(cut) + len).min(text.len()));
        let piece = at(from)..(at(from) + len).min(text.len());
        survive(&format!("{}{}{}", &text[..hole], &text[piece], &text[end..]));
    }

    #[test]
    fn any_program(lines in prop::collection::vec((0..BODY.len(), any::<[u8; 6]>()), 1..30), half in 0..30_usize) {
        let mut body = String::from(".shared .align 16 .b8 buf[256]; mov.u32 %r1, buf; mov.u32 %r2, 3; mov.u32 %r3, 0; setp.eq.u32 %p1, %r2, 3; ld.param.u64 %rd1, [p0]; mov.u64 %rd2, 0; mov.f32 %f1, 0f3F800000; mov.f32 %f2, %f1; mov.f32 %f3, %f1; mov.f32 %f4, %f1; T: .branchtargets A, B;\nA:\n");
        for (i, (line, numbers)) in lines.iter().enumerate() {
            if i == half.min(lines.len() - 1) { body += "B:\n"; }
            let mut numbers = numbers.iter();
            let mut parts = BODY[*line].split("{}");
            body += parts.next().unwrap_or_default();
            for part in parts {
                body += &(numbers.next().unwrap_or(&1) % 4).to_string();
                body += part;
            }
            body.push('\n');
        }
        let text = kernel(1, REGISTERS, &body);
        // Most of these are well-formed: a parse error would hide what the test is for.
        survive(&text);
    }
}
