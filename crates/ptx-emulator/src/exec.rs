//! Running a launch: blocks, the warps in them, and whose turn it is.

mod access;
mod atomic;
mod barrier;
mod call;
mod collective;
mod copy;
mod fault;
mod matrix;
mod mbarrier;
mod step;

use crate::memory::{Global, Region, Watch};
use crate::options::{Options, Order};
use crate::program::{Program, SHARED_START};
use crate::report::Report;
use crate::shadow::Clock;
use crate::stats::Stats;
use crate::value::approx::hash;
use crate::warp::{Geometry, Warp};
use barrier::Barriers;
use mbarrier::MemoryBarrier;
use std::collections::{HashMap, VecDeque};

/// Blocks that may be under way at once, where one waits for another.
const MAX_RESIDENT: usize = 64;
/// Instructions of warps after which another block gets a turn.
const BLOCK_SLICE: u64 = 1 << 20;
/// Instructions after which another warp of the block gets a turn.
const WARP_SLICE: u64 = 1 << 14;

/// A kernel with everything that it is run with.
pub(crate) struct Machine<'a> {
    pub(crate) program: &'a Program,
    pub(crate) lines: &'a [String],
    pub(crate) global: &'a mut Global,
    pub(crate) options: &'a Options,
    pub(crate) stats: &'a mut Stats,
    pub(crate) args: &'a [u8],
    pub(crate) geometry: Geometry,
    /// The time of races; what happened before the launch is in order.
    pub(crate) time: u32,
    floor: u32,
    /// Addresses in global memory that were released to, and what is known to whoever reads them.
    sync: HashMap<u64, Clock>,
    fuel: u64,
    draws: u64,
    counts: Vec<u64>,
    /// The allocation that was used last.
    recent: usize,
    warps: u32,
}

struct Block {
    id: [u32; 3],
    linear: u32,
    shared: Region,
    warps: Vec<Warp>,
    barriers: Barriers,
    memory_barriers: HashMap<u32, MemoryBarrier>,
    sync: HashMap<u64, Clock>,
    /// The start of the block, for shared memory.
    floor: u32,
    turn: usize,
}

/// Why a warp stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stop {
    /// All its lanes wait at barriers or have exited.
    Blocked,
    /// Its turn is over.
    Slice,
    /// It waits for something that others may bring about.
    Waits,
}

impl<'a> Machine<'a> {
    #[allow(clippy::too_many_arguments)]
    pub(crate) fn new(
        program: &'a Program,
        lines: &'a [String],
        global: &'a mut Global,
        options: &'a Options,
        stats: &'a mut Stats,
        args: &'a [u8],
        geometry: Geometry,
        time: u32,
    ) -> Self {
        let warps = geometry.block.iter().product::<u32>().div_ceil(32);
        Self {
            program,
            lines,
            global,
            options,
            stats,
            args,
            geometry,
            time: time + 1,
            floor: time,
            sync: HashMap::new(),
            fuel: options.fuel,
            draws: 0,
            counts: vec![0; if options.stats { program.ops.len() } else { 0 }],
            recent: 0,
            warps,
        }
    }

    /// Runs all blocks of the grid.
    pub(crate) fn run(&mut self) -> Result<(), Box<Report>> {
        let [x, y, z] = self.geometry.grid.map(u64::from);
        let total = x * y * z;
        let mut started = 0_u64;
        let mut under_way: VecDeque<Block> = VecDeque::new();
        let mut spare: Vec<Block> = Vec::new();
        let result = loop {
            let start_next = started < total && under_way.len() < MAX_RESIDENT;
            let mut block = if start_next {
                let linear = self.nth_block(started, total);
                started += 1;
                self.start(linear, spare.pop())
            } else {
                match under_way.pop_front() {
                    Some(block) => block,
                    None => break Ok(()),
                }
            };
            match self.run_block(&mut block) {
                Ok(true) => {
                    self.stats.blocks += 1;
                    spare.push(block);
                }
                Ok(false) => under_way.push_back(block),
                Err(report) => break Err(report),
            }
        };
        self.count_up();
        result
    }

    fn nth_block(&self, n: u64, total: u64) -> u64 {
        match self.options.order {
            Order::Ascending => n,
            Order::Descending => total - 1 - n,
            Order::Seeded(seed) => permute(n, total, seed),
        }
    }

    fn start(&mut self, linear: u64, spare: Option<Block>) -> Block {
        let [x, y, _] = self.geometry.grid.map(u64::from);
        let id = [(linear % x) as u32, (linear / x % y) as u32, (linear / (x * y)) as u32];
        let base = (linear as u32).wrapping_mul(self.warps);
        self.time += 1;
        let floor = self.time - 1;
        let mut block = spare.unwrap_or_else(|| Block {
            id,
            linear: 0,
            shared: Region::new((self.geometry.dynamic_base + self.geometry.dynamic) as usize),
            warps: (0..self.warps).map(|index| Warp::new(self.program, &self.geometry, index)).collect(),
            barriers: Barriers::default(),
            memory_barriers: HashMap::new(),
            sync: HashMap::new(),
            floor,
            turn: 0,
        });
        block.shared.forget_writes();
        (block.id, block.linear, block.floor, block.turn) = (id, linear as u32, floor, 0);
        block.barriers = Barriers::default();
        block.memory_barriers.clear();
        block.sync.clear();
        let warps = self.warps as usize;
        for warp in &mut block.warps {
            warp.reset(self.program, id, Clock::new(base, warps));
        }
        block
    }

    /// True if the block has finished, false if it was its slice.
    fn run_block(&mut self, block: &mut Block) -> Result<bool, Box<Report>> {
        let mut slice = BLOCK_SLICE;
        let mut idle = 0;
        loop {
            let Some(turn) = self.next_warp(block) else {
                if block.warps.iter().all(|warp| warp.alive == 0) {
                    return Ok(true);
                }
                if let Err((warp, fault)) = self.unblock(block) {
                    return Err(self.report(block, warp, fault));
                }
                continue;
            };
            let budget = match self.options.order {
                Order::Seeded(_) => 1 + self.draw() % 64,
                _ => WARP_SLICE,
            };
            let before = self.fuel;
            let stop = self.run_warp(block, turn, budget)?;
            let used = before - self.fuel;
            idle = if stop == Stop::Waits { idle + 1 } else { 0 };
            slice = slice.saturating_sub(used);
            // A block of which every warp waits gives way to others.
            if slice == 0 || idle > 4 * block.warps.len() {
                return Ok(false);
            }
        }
    }

    fn next_warp(&mut self, block: &mut Block) -> Option<usize> {
        let n = block.warps.len();
        let ready = |warp: &Warp| warp.alive & !warp.parked != 0;
        let first = match self.options.order {
            Order::Seeded(_) => (self.draw() % n as u64) as usize,
            _ => block.turn % n,
        };
        let descending = self.options.order == Order::Descending;
        let found = (0..n)
            .map(|i| (first + i) % n)
            .map(|i| if descending { n - 1 - i } else { i })
            .find(|i| ready(&block.warps[*i]))?;
        block.turn = if descending { n - 1 - found } else { found } + 1;
        Some(found)
    }

    fn draw(&mut self) -> u64 {
        self.draws += 1;
        hash(self.options.order.seed().unwrap_or(0), 1, self.draws)
    }

    fn run_warp(&mut self, block: &mut Block, index: usize, budget: u64) -> Result<Stop, Box<Report>> {
        let mut warp = std::mem::take(&mut block.warps[index]);
        let result = self.step(block, &mut warp, budget);
        block.warps[index] = warp;
        result.map_err(|fault| self.report(block, index, fault))
    }

    /// A warp has released what it did up to now: time moves on.
    fn tick(&mut self) -> u32 {
        self.time += 1;
        self.time - 1
    }

    fn watch(&self) -> Watch {
        let checks = &self.options.checks;
        Watch { races: checks.races, initialised: checks.uninitialised_memory, same_value: checks.same_value_writes }
    }

    fn who(&self, block: &Block, warp: &Warp) -> u32 {
        block.linear.wrapping_mul(self.warps).wrapping_add(warp.index)
    }

    /// The variable of shared memory that holds the range, if one does.
    fn shared_holds(&self, at: u64, len: u64) -> bool {
        let dynamic = u64::from(self.geometry.dynamic_base);
        if at >= dynamic {
            return at + len <= dynamic + u64::from(self.geometry.dynamic);
        }
        self.program.shared.iter().any(|v| at >= v.offset.into() && at + len <= u64::from(v.offset + v.bytes))
    }

    fn count_up(&mut self) {
        for (pc, count) in self.counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            let name = &self.program.names[usize::from(self.program.info[pc].name)];
            *self.stats.by_opcode.entry(name.clone()).or_default() += count;
        }
    }
}

/// Where dynamic shared memory begins.
pub(crate) fn dynamic_base(program: &Program) -> u32 {
    let align = program.dynamic.as_ref().map_or(16, |(_, align)| (*align).max(16));
    program.shared_end.max(SHARED_START).next_multiple_of(align)
}

/// The place of n in a permutation of 0..total.
fn permute(n: u64, total: u64, seed: u64) -> u64 {
    let bits = 64 - (total - 1).leading_zeros();
    let mask = if bits == 64 { u64::MAX } else { (1 << bits) - 1 };
    let mut x = n;
    loop {
        // Steps that can be undone, so each number is reached once.
        for round in 0..3 {
            x = x.wrapping_mul(hash(seed, 2, round) | 1).wrapping_add(hash(seed, 3, round)) & mask;
            x ^= x >> (bits / 2).max(1);
        }
        if x < total {
            return x;
        }
    }
}
