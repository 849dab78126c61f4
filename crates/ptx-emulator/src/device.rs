//! A device: memory, loaded modules, launches, and faults that come back at the next synchronisation.

mod args;
mod element;

pub use args::Arg;
pub use element::{Buffer, Element};

use crate::error::{Error, Result};
use crate::exec::{Machine, dynamic_base};
use crate::memory::Global;
use crate::module::Module;
use crate::options::{Options, Order};
use crate::program::Program;
use crate::stats::Stats;
use crate::warp::Geometry;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The most threads that a block can have, and per axis.
const MAX_THREADS: u32 = 1024;
const MAX_BLOCK: [u32; 3] = [1024, 1024, 64];
const MAX_GRID: [u32; 3] = [i32::MAX as u32, 65535, 65535];
/// More blocks than a launch on a CPU could ever finish, and than warps can be numbered.
const MAX_BLOCKS: u64 = 1 << 27;

/// A module whose variables have their place in a device's memory.
#[derive(Clone, Debug)]
pub struct Loaded {
    module: Module,
    variables: Arc<[u64]>,
    device: u64,
}

impl Loaded {
    /// The module.
    pub fn module(&self) -> &Module {
        &self.module
    }

    /// The address of a variable in global or constant memory.
    pub fn variable(&self, name: &str) -> Option<u64> {
        let index = self.module.0.variables.iter().position(|variable| variable.name == name)?;
        Some(self.variables[index]).filter(|address| *address != 0)
    }
}

/// How many blocks and threads run, and how much dynamic shared memory a block has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Launch {
    /// Blocks, per axis.
    pub grid: [u32; 3],
    /// Threads of a block, per axis.
    pub block: [u32; 3],
    /// Dynamic shared memory, in bytes.
    pub shared_bytes: u32,
}

impl Launch {
    /// So many blocks of so many threads, without dynamic shared memory.
    pub fn new(grid: [u32; 3], block: [u32; 3]) -> Self {
        Self { grid, block, shared_bytes: 0 }
    }

    /// Blocks and threads along x only.
    pub fn linear(blocks: u32, threads: u32) -> Self {
        Self::new([blocks, 1, 1], [threads, 1, 1])
    }

    /// The same with dynamic shared memory.
    pub fn shared(self, shared_bytes: u32) -> Self {
        Self { shared_bytes, ..self }
    }
}

/// A GPU that does not exist.
///
/// What a kernel does wrong is latched: [`launch`](Self::launch) returns `Ok`, and [`synchronise`](Self::synchronise)
/// or the next copy to the host returns the finding, as CUDA does. From then on every call fails with it until
/// [`reset`](Self::reset). With [`Options::eager`] the launch itself returns it.
///
/// ```
/// use ptx_emulator::{Arg, Device, Launch, Module};
///
/// let module = Module::parse(
///     ".version 7.8 .target sm_80 .address_size 64
///      .visible .entry double(.param .u64 out) {
///          .reg .b64 %rd<4>; .reg .f32 %f<3>; .reg .b32 %r<2>;
///          ld.param.u64 %rd1, [out];
///          mov.u32 %r1, %tid.x;
///          mul.wide.u32 %rd2, %r1, 4;
///          add.s64 %rd3, %rd1, %rd2;
///          ld.global.f32 %f1, [%rd3];
///          add.rn.f32 %f2, %f1, %f1;
///          st.global.f32 [%rd3], %f2;
///          ret;
///      }",
/// )?;
/// let mut device = Device::default();
/// let loaded = device.load(&module)?;
/// let x = device.upload(&[1.0_f32, 2.0, 3.0, 4.0])?;
/// device.launch(&loaded, "double", Launch::linear(1, 4), &[Arg::buffer(&x)])?;
/// assert_eq!(device.download(&x)?, [2.0, 4.0, 6.0, 8.0]);
///
/// // One thread too many: the finding comes back when the device is waited for.
/// device.launch(&loaded, "double", Launch::linear(1, 5), &[Arg::buffer(&x)])?;
/// let error = device.synchronise().err();
/// let report = error.as_ref().and_then(|error| error.report());
/// assert_eq!(report.map(|r| (r.finding.name(), r.thread)), Some(("out-of-bounds", [4, 0, 0])));
/// # Ok::<(), ptx_emulator::Error>(())
/// ```
#[derive(Debug)]
pub struct Device {
    id: u64,
    options: Options,
    global: Global,
    latched: Option<Error>,
    stats: Stats,
    launches: u64,
    time: u32,
}

impl Default for Device {
    fn default() -> Self {
        Self::new(Options::default())
    }
}

impl Device {
    /// A device that behaves so.
    pub fn new(options: Options) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        let global = Global::new(options.memory_bytes);
        Self { id, options, global, latched: None, stats: Stats::default(), launches: 0, time: 0 }
    }

    /// How it behaves; changes count from the next call on.
    pub fn options_mut(&mut self) -> &mut Options {
        &mut self.options
    }

    /// How it behaves.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Bytes of global memory in use.
    pub fn used_bytes(&self) -> u64 {
        self.global.used
    }

    fn check_latched(&self) -> Result<()> {
        self.latched.clone().map_or(Ok(()), Err)
    }

    /// Allocates bytes that count as never written.
    ///
    /// # Errors
    ///
    /// If the memory limit is reached, or a fault is latched.
    pub fn alloc_bytes(&mut self, len: u64, name: &str) -> Result<u64> {
        self.check_latched()?;
        self.global.alloc(len, name.into())
    }

    /// Frees an allocation. Its addresses are never used again.
    ///
    /// # Errors
    ///
    /// If no live allocation begins there.
    pub fn free(&mut self, address: u64) -> Result<()> {
        self.global.free(address)
    }

    /// Copies bytes to the device.
    ///
    /// # Errors
    ///
    /// If the range is not within one allocation, or a fault is latched.
    pub fn write_bytes(&mut self, address: u64, bytes: &[u8]) -> Result<()> {
        self.check_latched()?;
        let (allocation, at) = self.global.range(address, bytes.len() as u64, "write")?;
        allocation.region.data[at..at + bytes.len()].copy_from_slice(bytes);
        allocation.region.fill_written(at, bytes.len());
        Ok(())
    }

    /// Copies bytes to the host, once all launches are done.
    ///
    /// # Errors
    ///
    /// If the range is not within one allocation, or a fault is latched.
    pub fn read_bytes(&mut self, address: u64, bytes: &mut [u8]) -> Result<()> {
        self.check_latched()?;
        let (allocation, at) = self.global.range(address, bytes.len() as u64, "read")?;
        bytes.copy_from_slice(&allocation.region.data[at..at + bytes.len()]);
        Ok(())
    }

    /// Copies within the device; what was never written stays so.
    ///
    /// # Errors
    ///
    /// If a range is not within one allocation, or a fault is latched.
    pub fn copy_bytes(&mut self, from: u64, to: u64, len: u64) -> Result<()> {
        self.check_latched()?;
        let (source, at) = self.global.range(from, len, "copy from")?;
        let size = len as usize;
        let bytes = source.region.data[at..at + size].to_vec();
        let unwritten: Vec<usize> = match source.region.first_unwritten(at, size) {
            None => Vec::new(),
            Some(_) => (0..size).filter(|i| source.region.first_unwritten(at + i, 1).is_some()).collect(),
        };
        let (target, at) = self.global.range(to, len, "copy to")?;
        target.region.data[at..at + size].copy_from_slice(&bytes);
        target.region.fill_written(at, size);
        for i in unwritten {
            target.region.mark_unwritten(at + i, 1);
        }
        Ok(())
    }

    /// Sets bytes of the device to a value.
    ///
    /// # Errors
    ///
    /// If the range is not within one allocation, or a fault is latched.
    pub fn fill_bytes(&mut self, address: u64, len: u64, value: u8) -> Result<()> {
        self.check_latched()?;
        let (allocation, at) = self.global.range(address, len, "fill")?;
        allocation.region.data[at..at + len as usize].fill(value);
        allocation.region.fill_written(at, len as usize);
        Ok(())
    }

    /// Makes bytes count as never written, as a pool does with a block that it hands out again.
    ///
    /// # Errors
    ///
    /// If the range is not within one allocation.
    pub fn forget_bytes(&mut self, address: u64, len: u64) -> Result<()> {
        let (allocation, at) = self.global.range(address, len, "forget")?;
        allocation.region.mark_unwritten(at, len as usize);
        Ok(())
    }

    /// Allocates a module's variables and writes their initialisers.
    ///
    /// # Errors
    ///
    /// If the memory limit is reached, or a fault is latched.
    pub fn load(&mut self, module: &Module) -> Result<Loaded> {
        self.check_latched()?;
        let variables = &module.0.variables;
        let mut addresses = Vec::new();
        for variable in variables {
            let len = variable.bytes.len() as u64;
            addresses.push(if len == 0 { 0 } else { self.global.alloc(len, variable.name.clone())? });
        }
        for (variable, address) in variables.iter().zip(&addresses).filter(|(_, address)| **address != 0) {
            let mut bytes = variable.bytes.clone();
            for (at, size, index, offset) in &variable.addresses {
                let value = addresses[*index].wrapping_add(*offset as u64).to_le_bytes();
                bytes[*at..at + *size as usize].copy_from_slice(&value[..*size as usize]);
            }
            self.write_bytes(*address, &bytes)?;
            let (allocation, _) = self.global.range(*address, 0, "load")?;
            allocation.read_only = variable.is_const;
        }
        Ok(Loaded { module: module.clone(), variables: addresses.into(), device: self.id })
    }

    /// Runs a kernel, with its arguments one by one.
    ///
    /// # Errors
    ///
    /// If the kernel does not exist, arguments do not fit its parameters, the launch is beyond a limit, or a fault is
    /// latched. What the kernel does wrong comes back later, unless [`Options::eager`] is set.
    pub fn launch(&mut self, loaded: &Loaded, kernel: &str, launch: Launch, args: &[Arg]) -> Result<()> {
        let program = self.program(loaded, kernel)?;
        let blob = args::pack(&program, args)?;
        self.run(loaded, &program, launch, &blob)
    }

    /// Runs a kernel, with its arguments as the bytes of its parameters.
    ///
    /// # Errors
    ///
    /// As [`launch`](Self::launch).
    pub fn launch_packed(&mut self, loaded: &Loaded, kernel: &str, launch: Launch, args: &[u8]) -> Result<()> {
        let program = self.program(loaded, kernel)?;
        if args.len() != program.param_bytes as usize {
            return Err(Error::usage(format!(
                "{kernel}: parameters take {} bytes: found {}",
                program.param_bytes,
                args.len()
            )));
        }
        self.run(loaded, &program, launch, args)
    }

    fn program(&self, loaded: &Loaded, kernel: &str) -> Result<Arc<Program>> {
        if loaded.device != self.id {
            return Err(Error::usage(format!("{kernel}: the module is loaded on another device")));
        }
        let programs = &loaded.module.0.programs;
        match programs.iter().find(|program| program.name == kernel) {
            Some(program) => Ok(program.clone()),
            None => {
                let names: Vec<_> = programs.iter().map(|program| program.name.as_str()).collect();
                Err(Error::usage(format!("{kernel}: no such kernel: the module has {}", names.join(", "))))
            }
        }
    }

    fn run(&mut self, loaded: &Loaded, program: &Program, launch: Launch, args: &[u8]) -> Result<()> {
        self.check_latched()?;
        self.check_launch(program, launch)?;
        let base = dynamic_base(program);
        let geometry = Geometry {
            grid: launch.grid,
            block: launch.block,
            dynamic: launch.shared_bytes,
            dynamic_base: base,
            total_shared: program.shared_bytes + launch.shared_bytes,
            variables: loaded.variables.to_vec(),
        };
        let mut options = self.options;
        if let Order::Seeded(seed) = options.order {
            // Each launch has an order of its own, the first that of the seed itself.
            options.order = Order::Seeded(seed.wrapping_add(self.launches));
        }
        self.launches += 1;
        if self.time > u32::MAX / 2 {
            self.global.allocations.iter_mut().for_each(|a| a.region.forget_races());
            self.time = 0;
        }
        let mut stats = Stats::default();
        let lines = &loaded.module.0.lines;
        let mut machine =
            Machine::new(program, lines, &mut self.global, &options, &mut stats, args, geometry, self.time);
        let result = machine.run();
        self.time = machine.time + 1;
        self.stats.add(&stats);
        let Err(report) = result else { return Ok(()) };
        let error = Error::finding(*report);
        self.latched = Some(error.clone());
        if self.options.eager { Err(error) } else { Ok(()) }
    }

    fn check_launch(&self, program: &Program, launch: Launch) -> Result<()> {
        let name = &program.name;
        let Launch { grid, block, shared_bytes } = launch;
        let fail = |message: String| Err(Error::usage(format!("{name}: {message}")));
        for (what, size, limit) in [("grid", grid, MAX_GRID), ("block", block, MAX_BLOCK)] {
            if size.contains(&0) || size.iter().zip(limit).any(|(size, limit)| *size > limit) {
                return fail(format!("{what} {size:?}: every axis must be from 1 to {limit:?}"));
            }
        }
        let threads: u64 = block.iter().map(|axis| u64::from(*axis)).product();
        if threads > MAX_THREADS.into() {
            return fail(format!("block {block:?} has {threads} threads: at most {MAX_THREADS} are possible"));
        }
        let blocks: u64 = grid.iter().map(|axis| u64::from(*axis)).fold(1, u64::saturating_mul);
        if blocks > MAX_BLOCKS {
            return fail(format!("grid {grid:?} has {blocks} blocks: the emulator runs at most {MAX_BLOCKS}"));
        }
        if let Some(required) = program.required_threads
            && required != block
        {
            return fail(format!("block {block:?}: the kernel requires {required:?}"));
        }
        if let Some(most) = program.max_threads {
            let most: u64 = most.iter().map(|axis| u64::from(*axis)).product();
            if threads > most {
                return fail(format!("block {block:?} has {threads} threads: the kernel allows {most}"));
            }
        }
        let shared = u64::from(program.shared_bytes) + u64::from(shared_bytes);
        if shared > self.options.shared_bytes.into() {
            let limit = self.options.shared_bytes;
            return fail(format!("shared memory of {shared} bytes: a block can have {limit}"));
        }
        Ok(())
    }

    /// Waits for all launches and returns what a kernel did wrong.
    ///
    /// # Errors
    ///
    /// The finding that is latched.
    pub fn synchronise(&mut self) -> Result<()> {
        self.check_latched()
    }

    /// Forgets a latched fault; memory stays as it is. Returns the fault.
    pub fn reset(&mut self) -> Option<Error> {
        self.latched.take()
    }

    /// Counts since the last time, if [`Options::stats`] is set.
    pub fn take_stats(&mut self) -> Stats {
        std::mem::take(&mut self.stats)
    }
}
