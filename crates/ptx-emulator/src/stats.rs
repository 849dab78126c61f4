//! What a launch did, counted.

use std::collections::BTreeMap;

/// Counts of one launch, or of several added up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Blocks that ran.
    pub blocks: u64,
    /// Instructions of warps.
    pub warp_instructions: u64,
    /// The same times the lanes that took part.
    pub lane_instructions: u64,
    /// Instructions of warps by opcode with its modifiers.
    pub by_opcode: BTreeMap<String, u64>,
    /// Loads and stores of shared memory by warps.
    pub shared_requests: u64,
    /// Passes that they take: more than requests where banks conflict.
    pub shared_passes: u64,
    /// Passes that they would take without conflicts.
    pub shared_passes_ideal: u64,
    /// Loads, stores and atomics of global memory by warps.
    pub global_requests: u64,
    /// Sectors of 32 bytes that they touch.
    pub global_sectors: u64,
    /// Sectors that the same bytes would fill if they lay together.
    pub global_sectors_ideal: u64,
    /// Multiply-adds of matrix instructions.
    pub matrix_macs: u64,
}

impl Stats {
    /// How many passes a request of shared memory takes, against the fewest possible: 1.0 is free of conflicts.
    pub fn bank_conflict_factor(&self) -> f64 {
        self.shared_passes as f64 / self.shared_passes_ideal.max(1) as f64
    }

    /// How many sectors a request of global memory touches, against the fewest possible: 1.0 is fully coalesced.
    pub fn coalescing_factor(&self) -> f64 {
        self.global_sectors as f64 / self.global_sectors_ideal.max(1) as f64
    }

    pub(crate) fn shared_request(&mut self, addresses: &[u64; 32], mask: u32, bytes: u64) {
        self.shared_requests += 1;
        // Wide accesses go in groups of lanes whose bytes fill the 32 banks of 4 bytes.
        let group = (128 / bytes.max(4)).clamp(1, 32);
        let mut words: Vec<u64> = Vec::with_capacity(32);
        for first in (0..32).step_by(group as usize) {
            words.clear();
            for lane in (first..first + group).filter(|lane| mask >> lane & 1 == 1) {
                let address = addresses[lane as usize];
                words.extend(address / 4..(address + bytes).div_ceil(4));
            }
            if words.is_empty() {
                continue;
            }
            words.sort_unstable();
            words.dedup();
            let mut banks = [0_u64; 32];
            words.iter().for_each(|word| banks[(word % 32) as usize] += 1);
            self.shared_passes += banks.iter().max().copied().unwrap_or(0);
            self.shared_passes_ideal += 1;
        }
    }

    pub(crate) fn global_request(&mut self, addresses: &[u64; 32], mask: u32, bytes: u64) {
        self.global_requests += 1;
        let mut sectors: Vec<u64> = Vec::with_capacity(64);
        let mut pieces: Vec<u64> = Vec::with_capacity(32);
        for lane in (0..32).filter(|lane| mask >> lane & 1 == 1) {
            let address = addresses[lane];
            sectors.extend(address / 32..(address + bytes).div_ceil(32));
            pieces.push(address);
        }
        sectors.sort_unstable();
        sectors.dedup();
        pieces.sort_unstable();
        pieces.dedup();
        self.global_sectors += sectors.len() as u64;
        self.global_sectors_ideal += (pieces.len() as u64 * bytes).div_ceil(32);
    }

    /// Adds another launch's counts.
    pub fn add(&mut self, other: &Self) {
        self.blocks += other.blocks;
        self.warp_instructions += other.warp_instructions;
        self.lane_instructions += other.lane_instructions;
        self.shared_requests += other.shared_requests;
        self.shared_passes += other.shared_passes;
        self.shared_passes_ideal += other.shared_passes_ideal;
        self.global_requests += other.global_requests;
        self.global_sectors += other.global_sectors;
        self.global_sectors_ideal += other.global_sectors_ideal;
        self.matrix_macs += other.matrix_macs;
        for (name, count) in &other.by_opcode {
            *self.by_opcode.entry(name.clone()).or_default() += count;
        }
    }
}
