//! Single instructions for operands that are special and operands that are not: `instructions.txt` names them.
//!
//! A line has the lowest target, the bytes of the result and of each operand, how results are judged, and the instruction:
//! operands are in `%r1`, `%h2`, `%rd3`, …, the result goes to register 0. Results are `bits`, or floats of which one NaN is
//! as good as another; three numbers more are the documented error: absolute, relative, in units in the last place. A
//! fourth is the largest operand for which it is documented.

use backend_cuda::driver::Driver;
use half::{bf16, f16};
use tensor_core::Result;

use super::{Arg, Case, Count, Numbers, bits};
use crate::device::Subject;
use crate::record::Record;

const TABLE: &str = include_str!("instructions.txt");
/// Threads in all, and of a block.
const N_LANES: usize = 960;
const BLOCK: usize = 64;

const REGISTERS: &str =
    ".reg .pred %p<10>; .reg .b16 %h<40>; .reg .b32 %r<60>; .reg .b64 %rd<60>; .reg .f32 %f<40>; .reg .f64 %d<20>;";

/// A line of the table.
struct Row<'a> {
    target: u32,
    size: usize,
    operands: Vec<usize>,
    kind: &'a str,
    /// Absolute, relative, in units in the last place, and up to which operand.
    error: Option<[f64; 4]>,
    body: &'a str,
}

impl<'a> Row<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let (head, body) = line.split_once(" | ")?;
        let mut words = head.split(' ');
        let (target, size) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        let operands = words.next()?.split(',').map(|n| n.parse().ok()).collect::<Option<Vec<_>>>()?;
        let kind = words.next()?;
        let error: Vec<f64> = words.map_while(|word| word.parse().ok()).collect();
        let error = match error[..] {
            [] => None,
            [a, r, u] => Some([a, r, u, f64::INFINITY]),
            [a, r, u, most] => Some([a, r, u, most]),
            _ => return None,
        };
        Some(Self { target, size, operands, kind, error, body })
    }

    fn case(&self) -> Case {
        let size = self.size;
        let mut text = format!(
            ".version 8.0\n.target sm_{}\n.address_size 64\n.visible .entry k({})\n{{\n{REGISTERS}\n\
             mov.u32 %r51, %ctaid.x; mov.u32 %r50, %tid.x; mad.lo.u32 %r51, %r51, {BLOCK}, %r50; cvt.u64.u32 %rd50, %r51;\n\
             ld.param.u64 %rd51, [p0]; mad.lo.u64 %rd40, %rd50, {size}, %rd51;\n",
            self.target,
            (0..=self.operands.len()).map(|i| format!(".param .u64 p{i}")).collect::<Vec<_>>().join(", "),
        );
        let register = |size: usize| match size {
            2 => ("b16", "%h"),
            4 => ("b32", "%r"),
            _ => ("b64", "%rd"),
        };
        for (i, &size) in self.operands.iter().enumerate() {
            let (ty, name) = register(size);
            let (p, at) = (i + 1, i + 41);
            text += &format!("ld.param.u64 %rd51, [p{p}]; mad.lo.u64 %rd{at}, %rd50, {size}, %rd51;\n");
            text += &format!("ld.global.{ty} {name}{p}, [%rd{at}];\n");
        }
        let (ty, name) = register(size);
        text += &format!("{}\nst.global.{ty} [%rd40], {name}0;\nret;\n}}\n", self.body);
        let inputs = (0..self.operands.len())
            .map(|i| Arg::Input(self.values(i).flat_map(|x| bytes(x, self.operands[i])).collect()));
        Case {
            name: self.body.into(),
            text,
            entry: "k",
            target: self.target,
            grid: [(N_LANES / BLOCK) as u32, 1, 1],
            block: [BLOCK as u32, 1, 1],
            shared_bytes: 0,
            args: std::iter::once(Arg::Result(vec![0; size * N_LANES])).chain(inputs).collect(),
        }
    }

    /// The values of an operand, each lane's: paired with different ones of the others.
    fn values(&self, operand: usize) -> impl Iterator<Item = u64> + use<> {
        let values = operands(self.operands[operand], operand as u64 + 1);
        let n = values.len();
        (0..N_LANES).map(move |lane| values[(lane + lane / n * [0, 7, 31, 13][operand % 4]) % n])
    }

    /// What is wrong with a result that has other bits.
    fn judge(&self, lane: usize, found: &[u8], expected: &[u8]) -> Option<String> {
        let (found, expected) = (bits(found), bits(expected));
        // Each half of a pair by itself.
        let parts: &[u32] = if self.kind.ends_with("x2") { &[0, 16] } else { &[0] };
        let is_wrong = parts.iter().any(|&shift| {
            let [found, expected] = [found, expected].map(|x| value(self.kind, x >> shift));
            let (Some(found), Some(expected)) = (found, expected) else { return true };
            if found.is_nan() || expected.is_nan() {
                return !(found.is_nan() && expected.is_nan());
            }
            let Some([absolute, relative, ulps, most]) = self.error else {
                return found.to_bits() != expected.to_bits();
            };
            let operand = value("f32", self.values(0).nth(lane).unwrap_or(0)).unwrap_or(0.0);
            if self.operands[0] == 4 && operand.abs() > most || found == expected {
                return false;
            }
            let near = (expected.abs() as f32).max(f32::MIN_POSITIVE);
            let unit = f64::from(near.next_up()) - f64::from(near);
            // Another half a unit: the emulator's own rounding.
            let room = absolute.max(relative * expected.abs()).max(ulps * unit) + unit / 2.0;
            let smallest = if self.size == 2 { 6e-8 } else { 0.0 };
            let room = room.max(smallest);
            !((found - expected).abs() <= room)
        });
        let operands = || (0..self.operands.len()).map(|i| self.values(i).nth(lane).unwrap_or(0));
        is_wrong.then(|| operands().fold("operands".to_string(), |text, x| text + &format!(" {x:#x}")))
    }
}

/// A number of that kind; nothing where bits are meant.
fn value(kind: &str, x: u64) -> Option<f64> {
    match kind {
        "f32" | "tf32" => Some(f32::from_bits(x as u32).into()),
        "f64" => Some(f64::from_bits(x)),
        "f16" | "f16x2" => Some(f16::from_bits(x as u16).to_f64()),
        "bf16" | "bf16x2" => Some(bf16::from_bits(x as u16).to_f64()),
        _ => None,
    }
}

fn bytes(x: u64, size: usize) -> Vec<u8> {
    x.to_le_bytes()[..size].to_vec()
}

/// Bit patterns of a size that are worth trying.
fn operands(size: usize, seed: u64) -> Vec<u64> {
    let mut values: Vec<u64> = match size {
        2 => [0, 1, 0x7fff, 0x8000, 0xffff, 0x3c00, 0xbc00, 0x7c00, 0xfc00, 0x7e00, 0x0400, 0x03ff, 0x3f80, 0x7f80, 5]
            .into(),
        4 => {
            let floats = [0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.5, -2.5, 1e-40, 3.4e38, 1e10, -7.25, 65504.0, 0.1, -1e-45];
            let special = [f32::INFINITY, f32::NEG_INFINITY, f32::NAN, f32::MIN_POSITIVE, f32::MAX];
            let bits = floats.iter().chain(&special).map(|x| u64::from(x.to_bits()));
            bits.chain([1, 2, 5, 31, 32, 33, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff, 0xffff, 0x1_0000]).collect()
        }
        _ => {
            let floats =
                [0.0, -0.0, 1.0, -1.5, 2.5, 1e300, 5e-324, 1e-310, 0.1, 1e19, -3e9, f64::INFINITY, f64::NAN, f64::MAX];
            let bits = floats.iter().map(|x| x.to_bits());
            bits.chain([1, 2, 63, 64, 65, u64::MAX, 1 << 63, u64::MAX >> 1, 0xffff_ffff, 1 << 32]).collect()
        }
    };
    let mut numbers = Numbers(seed);
    let mask = if size == 8 { u64::MAX } else { (1 << (8 * size)) - 1 };
    while values.len() < 96 {
        let bits = numbers.bits();
        // Every third one is a small integer, or a float near one.
        values.push(match values.len() % 3 {
            0 => bits & mask,
            1 => bits & 0xff,
            _ if size == 4 => u64::from((((bits & 0xffff) as f32) / 256.0 - 128.0).to_bits()),
            _ if size == 8 => (((bits & 0xffff) as f64) / 256.0 - 128.0).to_bits(),
            _ => (bits & 0x3fff | 0x3000) & mask,
        });
    }
    values
}

pub(super) fn run(subject: &Subject, reference: &dyn Driver, record: &mut Record) -> Result<()> {
    let (mut exact, mut approximate) = (Count::default(), Count::default());
    for line in TABLE.lines() {
        let Some(row) = Row::parse(line) else {
            record.fail(format!("a line of the table of instructions cannot be read: {line}"));
            continue;
        };
        if !record.has_time_for(row.body) {
            continue;
        }
        let count = if row.error.is_some() { &mut approximate } else { &mut exact };
        let judge = |lane: usize, found: &[u8], expected: &[u8]| row.judge(lane, found, expected);
        count.compare(subject, reference, record, &row.case(), row.size, judge)?;
    }
    exact.row("exact instructions", record);
    approximate.row("approximate instructions", record);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_read() {
        let unread: Vec<&str> = TABLE.lines().filter(|line| Row::parse(line).is_none()).collect();
        assert!(unread.is_empty(), "{unread:?}");
        assert!(TABLE.lines().count() > 300);
    }

    #[test]
    fn what_is_off_is_seen() {
        let wrong = |line: &str, lane: usize, found: u32, expected: u32| {
            let row = Row::parse(line).expect("a line");
            row.judge(lane, &found.to_le_bytes(), &expected.to_le_bytes()).is_some()
        };
        let one = 1f32.to_bits();
        let add = "75 4 4,4 f32 | add.rn.f32 %r0, %r1, %r2;";
        assert!(
            wrong(add, 0, one + 1, one) && !wrong(add, 0, 0x7fff_ffff, 0x7fc0_0000) && wrong(add, 0, 0x7fff_ffff, one)
        );
        let exp = "75 4 4 f32 0 0 2 | ex2.approx.f32 %r0, %r1;";
        assert!(wrong(exp, 0, one + 4, one) && !wrong(exp, 0, one + 2, one));
        let integer = "75 4 4 bits | not.b32 %r0, %r1;";
        assert!(wrong(integer, 0, 0x7fff_ffff, 0x7fc0_0000));
        let pair = "75 4 4,4 f16x2 | add.rn.f16x2 %r0, %r1, %r2;";
        assert!(wrong(pair, 0, 0x3c00_3c00, 0x3c01_3c00) && !wrong(pair, 0, 0x7fff_3c00, 0x7e00_3c00));
    }
}
