//! What the emulator is tested with, on the device: each result is compared with the emulator's, bit for bit where the
//! instruction is exact, within the documented error where it is not.

mod instructions;
mod kernels;
mod matrix;

use backend_cuda::driver::{Address, Driver, Launch};
use tensor_core::{Error, Result};

use crate::device::Subject;
use crate::record::Record;

/// A kernel with its arguments.
pub(crate) struct Case {
    name: String,
    text: String,
    entry: &'static str,
    /// The lowest target that has its instructions.
    target: u32,
    grid: [u32; 3],
    block: [u32; 3],
    shared_bytes: u32,
    args: Vec<Arg>,
}

pub(crate) enum Arg {
    /// Memory with these bytes; what it holds afterwards is a result.
    Result(Vec<u8>),
    /// Memory that is only read.
    Input(Vec<u8>),
    /// A number.
    Value(Vec<u8>),
}

pub(crate) fn run(subject: &Subject, record: &mut Record) -> Result<()> {
    let reference = subject.reference();
    record.table("Beside the emulator", &["kind", "kernels", "results", "other bits", "too far off", "not run"]);
    instructions::run(subject, &*reference, record)?;
    matrix::run(subject, &*reference, record)?;
    kernels::run(subject, &*reference, record)
}

/// Counts of one kind.
#[derive(Default)]
struct Count {
    kernels: usize,
    results: usize,
    other_bits: usize,
    wrong: usize,
    not_run: usize,
}

impl Count {
    fn row(&self, kind: &str, record: &mut Record) {
        let counts = [self.kernels, self.results, self.other_bits, self.wrong, self.not_run];
        record.row(std::iter::once(kind.into()).chain(counts.map(Into::into)).collect());
    }

    /// Runs a case on both sides and compares each result, which `judge` gets with its position: nothing, or what is wrong.
    fn compare(
        &mut self,
        subject: &Subject,
        reference: &dyn Driver,
        record: &mut Record,
        case: &Case,
        size: usize,
        judge: impl Fn(usize, &[u8], &[u8]) -> Option<String>,
    ) -> Result<()> {
        let (major, minor) = subject.driver.properties().capability;
        if 10 * major + minor < case.target {
            self.not_run += 1;
            return Ok(());
        }
        let found = match case.run(&*subject.driver) {
            Ok(found) => found,
            Err(error) if error.is_device_lost() => return Err(error),
            // An older driver does not know a newer version of the language.
            Err(error) => {
                self.not_run += 1;
                record.cut(format!("{}: {error}", case.name));
                return Ok(());
            }
        };
        let expected = case.run(reference)?;
        self.kernels += 1;
        let mut first = None;
        let mut n_wrong = 0;
        for (i, (found, expected)) in found.chunks(size).zip(expected.chunks(size)).enumerate() {
            self.results += 1;
            if found == expected {
                continue;
            }
            self.other_bits += 1;
            if let Some(why) = judge(i, found, expected) {
                n_wrong += 1;
                first.get_or_insert(format!("result {i} is {}, the emulator's {}: {why}", hex(found), hex(expected)));
            }
        }
        self.wrong += n_wrong;
        if let Some(first) = first {
            record.fail(format!("{}: {n_wrong} results: {first}", case.name));
        }
        Ok(())
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().rev().fold("0x".to_string(), |text, byte| text + &format!("{byte:02x}"))
}

/// Little-endian bytes as a number.
fn bits(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |all, byte| all << 8 | u64::from(*byte))
}

impl Case {
    /// The results, one after the other.
    fn run(&self, driver: &dyn Driver) -> Result<Vec<u8>> {
        let function = driver.load(&self.text, self.entry)?;
        let mut packed = Vec::new();
        let mut push = |bytes: &[u8]| {
            packed.resize(packed.len().next_multiple_of(bytes.len()), 0);
            packed.extend_from_slice(bytes);
        };
        let mut blocks: Vec<(Address, &Arg)> = Vec::new();
        for arg in &self.args {
            match arg {
                Arg::Value(bytes) => push(bytes),
                Arg::Result(bytes) | Arg::Input(bytes) => {
                    let address = driver.alloc(bytes.len())?;
                    let address = address.ok_or_else(|| Error::out_of_memory("corpus", "no room for a few KiB"))?;
                    driver.upload(address, bytes)?;
                    push(&address.to_le_bytes());
                    blocks.push((address, arg));
                }
            }
        }
        let Self { grid, block, shared_bytes, .. } = *self;
        driver.launch(Launch { function, grid, block, shared_bytes, args: &packed })?;
        let mut results = Vec::new();
        for (address, arg) in &blocks {
            if let Arg::Result(bytes) = arg {
                let mut found = vec![0; bytes.len()];
                driver.download(*address, &mut found)?;
                results.extend(found);
            }
        }
        blocks.iter().try_for_each(|(address, _)| driver.free(*address))?;
        Ok(results)
    }
}

/// Numbers that look random and always are the same.
struct Numbers(u64);

impl Numbers {
    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// From -1 to 1.
    fn unit(&mut self) -> f32 {
        (self.bits() >> 40) as f32 / (1 << 23) as f32 - 1.0
    }

    fn units(seed: u64, n: usize) -> Vec<f32> {
        let mut numbers = Self(seed);
        (0..n).map(|_| numbers.unit()).collect()
    }
}
