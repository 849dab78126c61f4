//! Random words against the known answers that Philox was published with.
//!
//! Source: Salmon, Moraes, Dror and Shaw, *Parallel random numbers: as easy as 1, 2, 3* (2011), and Random123's
//! `kat_vectors`. A key's seed is Philox's key, its block the lower half of the counter; the upper half is 0 here, which one
//! published vector has.

use tensor_core::random::{Key, Stream, philox};

use super::failure;
use crate::suite::report::Failure;

pub(super) fn run() -> Vec<Failure> {
    let mut failures = Vec::new();
    let words = philox(Key { seed: 0, offset: 0 }, 0);
    if words != [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8] {
        failures.push(failure("random", "known answer", "seed 0".into(), format!("the words are {words:08x?}")));
    }
    // A position in a stream is a position in its blocks, across the halves of a counter, too.
    for (offset, block) in [(0, 7), (u64::from(u32::MAX), 1), (u64::MAX, 3)] {
        let (a, b) =
            (philox(Key { seed: 5, offset }, block), philox(Key { seed: 5, offset: 0 }, offset.wrapping_add(block)));
        if a != b {
            failures.push(failure(
                "random",
                "position",
                format!("offset {offset}, block {block}"),
                format!("{a:08x?} is not {b:08x?}"),
            ));
        }
    }
    let mut stream = Stream::new(3);
    let keys: Vec<u64> = [1, 2, 3, 5].map(|n| stream.take(n).offset).into();
    if keys != [0, 1, 2, 4] {
        failures.push(failure("random", "stream", "1, 2, 3, 5 elements".into(), format!("start at blocks {keys:?}")));
    }
    failures
}
