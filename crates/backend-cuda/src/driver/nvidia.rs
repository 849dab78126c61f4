//! The seam on the CUDA driver, loaded at run time: the one place of the crate with `unsafe`.
#![allow(unsafe_code)]

use std::ffi::{CString, c_void};
use std::ptr;

use cudarc::driver::{result, sys};
use tensor_core::{Error, Result};

use super::{Address, Driver, Event, Function, Lane, Launch, Pinned, Properties};
use library::described;

mod library;

/// One GPU, with a stream for each lane.
pub(crate) struct Gpu {
    label: String,
    context: sys::CUcontext,
    stream: sys::CUstream,
    copies: sys::CUstream,
    properties: Properties,
}

// SAFETY: contexts and streams may be used from any thread; every call binds the context to its own first.
unsafe impl Send for Gpu {}
// SAFETY: as above; the driver locks what calls share.
unsafe impl Sync for Gpu {}

/// Every GPU of the machine.
///
/// # Errors
/// Why there are none, and what to do.
pub(crate) fn open_all() -> Result<Vec<Gpu>> {
    library::check()?;
    let refused = |what: &'static str| {
        move |e: result::DriverError| {
            Error::device(
                "cuda",
                format!("the driver refuses {what}: {}; check the driver with nvidia-smi", described(&e)),
            )
            .with_source(e)
        }
    };
    result::init().map_err(refused("to start"))?;
    let n = result::device::get_count().map_err(refused("to count devices"))?;
    if n == 0 {
        return Err(Error::device("cuda", "no device: devices 0; check CUDA_VISIBLE_DEVICES, or use another device"));
    }
    (0..n).map(|i| Gpu::open(i).map_err(refused("to open a device"))).collect()
}

impl Gpu {
    fn open(index: i32) -> std::result::Result<Self, result::DriverError> {
        use sys::CUdevice_attribute_enum as Attribute;
        let device = result::device::get(index)?;
        // SAFETY: the device exists; its primary context is kept as long as the process runs.
        let context = unsafe { result::primary_ctx::retain(device) }?;
        // SAFETY: the context was just retained.
        unsafe { result::ctx::set_current(context) }?;
        // SAFETY: the device exists.
        let attribute = |a| unsafe { result::device::get_attribute(device, a) }.map(|v| v as u32);
        let properties = Properties {
            name: result::device::get_name(device)?,
            capability: (
                attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
                attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
            ),
            n_multiprocessors: attribute(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
            max_shared_bytes: attribute(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?,
            // SAFETY: the device exists.
            total_bytes: unsafe { result::device::total_mem(device) }? as u64,
            is_hardware: true,
        };
        let stream = result::stream::create(result::stream::StreamKind::NonBlocking)?;
        let copies = result::stream::create(result::stream::StreamKind::NonBlocking)?;
        Ok(Self { label: format!("cuda:{index}"), context, stream, copies, properties })
    }

    /// Makes the context that of this thread.
    fn bind(&self) -> Result<()> {
        // SAFETY: the context is retained for the life of the process.
        unsafe { result::ctx::set_current(self.context) }.map_err(|e| self.error("bind the context", e))
    }

    fn lane(&self, lane: Lane) -> sys::CUstream {
        match lane {
            Lane::Compute => self.stream,
            Lane::Copy => self.copies,
        }
    }

    /// Lets launches of a kernel ask for all the shared memory that a block can have; without it 48 KiB are the limit.
    fn allow_shared(&self, function: sys::CUfunction) -> std::result::Result<(), result::DriverError> {
        use sys::CUfunction_attribute_enum as Attribute;
        // SAFETY: the function was just loaded, and the context is bound.
        unsafe {
            let own =
                result::function::get_function_attribute(function, Attribute::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)?;
            let rest = (self.properties.max_shared_bytes as i32).saturating_sub(own).max(0);
            let attribute = Attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
            result::function::set_function_attribute(function, attribute, rest)
        }
    }

    /// What the driver reports. A fault of a kernel takes the context with it.
    #[cold]
    fn error(&self, what: &str, e: result::DriverError) -> Error {
        use sys::cudaError_enum as Code;
        let text = format!("the driver cannot {what}: {}", described(&e));
        match e.0 {
            Code::CUDA_ERROR_OUT_OF_MEMORY => Error::out_of_memory(self.label.clone(), text),
            // A call that was refused; nothing ran.
            Code::CUDA_ERROR_INVALID_VALUE
            | Code::CUDA_ERROR_INVALID_IMAGE
            | Code::CUDA_ERROR_INVALID_PTX
            | Code::CUDA_ERROR_NOT_FOUND
            | Code::CUDA_ERROR_NOT_SUPPORTED
            | Code::CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES => Error::other(self.label.clone(), text),
            _ => Error::device_lost(self.label.clone(), format!("{text}; {}", super::AFTER_A_LOSS)),
        }
        .with_source(e)
    }
}

impl Driver for Gpu {
    fn properties(&self) -> &Properties {
        &self.properties
    }

    fn free_bytes(&self) -> Result<u64> {
        self.bind()?;
        let (free, _) = result::mem_get_info().map_err(|e| self.error("tell its memory", e))?;
        Ok(free as u64)
    }

    fn load(&self, ptx: &str, kernel: &str) -> Result<Function> {
        self.bind()?;
        let name = |text: &str| {
            CString::new(text).map_err(|e| Error::other(self.label.clone(), "PTX holds a NUL").with_source(e))
        };
        let (text, kernel_name) = (name(ptx)?, name(kernel)?);
        let mut log = vec![0u8; 8192];
        let mut options =
            [sys::CUjit_option::CU_JIT_ERROR_LOG_BUFFER, sys::CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES];
        let mut values = [log.as_mut_ptr().cast::<c_void>(), ptr::without_provenance_mut(log.len())];
        let mut module = ptr::null_mut();
        // SAFETY: the text ends in NUL, the log has the size that is given, both outlive the call.
        let loaded = unsafe {
            sys::cuModuleLoadDataEx(&mut module, text.as_ptr().cast(), 2, options.as_mut_ptr(), values.as_mut_ptr())
        };
        loaded.result().map_err(|e| {
            let log = String::from_utf8_lossy(&log);
            let log = log.trim_end_matches('\0').trim();
            Error::other(self.label.clone(), format!("PTX is refused: kernel {kernel}: {}: {log}", described(&e)))
                .with_source(e)
        })?;
        // SAFETY: the module was just loaded.
        let function =
            unsafe { result::module::get_function(module, kernel_name) }.map_err(|e| self.error("find a kernel", e))?;
        self.allow_shared(function).map_err(|e| self.error("give a kernel shared memory", e))?;
        Ok(Function(function as u64))
    }

    fn alloc(&self, len_bytes: usize) -> Result<Option<Address>> {
        self.bind()?;
        // SAFETY: the stream lives as long as the process.
        match unsafe { result::malloc_async(self.stream, len_bytes) } {
            Ok(address) => Ok(Some(address)),
            Err(e) if e.0 == sys::cudaError_enum::CUDA_ERROR_OUT_OF_MEMORY => Ok(None),
            Err(e) => Err(self.error("allocate", e)),
        }
    }

    fn free(&self, address: Address) -> Result<()> {
        self.bind()?;
        // SAFETY: the pool frees each address that it allocated once.
        unsafe { result::free_async(address, self.stream) }.map_err(|e| self.error("free memory", e))
    }

    fn pinned(&self, len_bytes: usize) -> Result<Option<Pinned>> {
        self.bind()?;
        // SAFETY: plain memory; nobody but `stage` writes it, and `free_pinned` frees it once.
        let memory = unsafe { result::malloc_host(len_bytes, 0) }.map_err(|e| self.error("pin memory", e))?;
        Ok(Some(Pinned(memory as u64)))
    }

    fn free_pinned(&self, pinned: Pinned) -> Result<()> {
        self.bind()?;
        // SAFETY: `pinned` gave it, and no copy reads it any more.
        unsafe { result::free_host(pinned.0 as *mut c_void) }.map_err(|e| self.error("free pinned memory", e))
    }

    fn stage(&self, pinned: Pinned, to: Address, bytes: &[u8]) -> Result<()> {
        self.bind()?;
        // SAFETY: the buffer is at least as long, nobody else has it, and its last copy is done.
        let staged = unsafe {
            ptr::copy_nonoverlapping(bytes.as_ptr(), pinned.0 as *mut u8, bytes.len());
            std::slice::from_raw_parts(pinned.0 as *const u8, bytes.len())
        };
        // SAFETY: the pool has a block of this size there; the buffer is kept until the copy's event is done.
        unsafe { result::memcpy_htod_async(to, staged, self.copies) }.map_err(|e| self.error("upload", e))
    }

    fn record(&self, lane: Lane) -> Result<Event> {
        self.bind()?;
        let recorded = || {
            let event = result::event::create(sys::CUevent_flags::CU_EVENT_DISABLE_TIMING)?;
            // SAFETY: the event was just made, the stream lives as long as the process.
            unsafe { result::event::record(event, self.lane(lane)) }?;
            Ok(Event(event as u64))
        };
        recorded().map_err(|e| self.error("record an event", e))
    }

    fn wait(&self, lane: Lane, event: Event) -> Result<()> {
        self.bind()?;
        let flags = sys::CUevent_wait_flags::CU_EVENT_WAIT_DEFAULT;
        // SAFETY: the event is not forgotten yet, the stream lives as long as the process.
        unsafe { result::stream::wait_event(self.lane(lane), event.0 as sys::CUevent, flags) }
            .map_err(|e| self.error("wait for an event", e))
    }

    fn done(&self, event: Event) -> Result<bool> {
        self.bind()?;
        // SAFETY: the event is not forgotten yet.
        match unsafe { result::event::query(event.0 as sys::CUevent) } {
            Ok(()) => Ok(true),
            Err(e) if e.0 == sys::cudaError_enum::CUDA_ERROR_NOT_READY => Ok(false),
            Err(e) => Err(self.error("ask for an event", e)),
        }
    }

    fn forget(&self, event: Event) {
        if self.bind().is_ok() {
            // SAFETY: its last use. The driver keeps what lanes still wait for; of a lost device nothing is left to free.
            let _ = unsafe { result::event::destroy(event.0 as sys::CUevent) };
        }
    }

    fn upload(&self, to: Address, bytes: &[u8]) -> Result<()> {
        self.bind()?;
        // SAFETY: the pool has a block of this size there. Pageable memory is staged before the call returns.
        unsafe { result::memcpy_htod_async(to, bytes, self.stream) }.map_err(|e| self.error("upload", e))
    }

    fn download(&self, from: Address, bytes: &mut [u8]) -> Result<()> {
        self.bind()?;
        // SAFETY: the block is as large; the bytes stay borrowed until the stream has been waited for.
        unsafe { result::memcpy_dtoh_async(bytes, from, self.stream) }.map_err(|e| self.error("download", e))?;
        // SAFETY: the stream lives as long as the process.
        unsafe { result::stream::synchronize(self.stream) }.map_err(|e| self.error("finish its work", e))
    }

    fn copy(&self, from: Address, to: Address, len_bytes: usize) -> Result<()> {
        self.bind()?;
        // SAFETY: both blocks are as large.
        unsafe { result::memcpy_dtod_async(to, from, len_bytes, self.stream) }.map_err(|e| self.error("copy", e))
    }

    fn launch(&self, launch: Launch<'_>) -> Result<()> {
        self.bind()?;
        let Launch { function, grid, block, shared_bytes, args } = launch;
        let mut len_bytes = args.len();
        // CU_LAUNCH_PARAM_BUFFER_POINTER, _SIZE, _END.
        let mut extra = [
            ptr::without_provenance_mut::<c_void>(1),
            args.as_ptr().cast_mut().cast(),
            ptr::without_provenance_mut(2),
            (&raw mut len_bytes).cast(),
            ptr::null_mut(),
        ];
        // SAFETY: the function is loaded, and its parameters are as many bytes: text and arguments come from one place.
        let launched = unsafe {
            sys::cuLaunchKernel(
                function.0 as sys::CUfunction,
                grid[0],
                grid[1],
                grid[2],
                block[0],
                block[1],
                block[2],
                shared_bytes,
                self.stream,
                ptr::null_mut(),
                extra.as_mut_ptr(),
            )
        };
        launched.result().map_err(|e| self.error("launch a kernel", e))
    }

    fn synchronize(&self) -> Result<()> {
        self.bind()?;
        // SAFETY: the streams live as long as the process.
        [self.copies, self.stream]
            .into_iter()
            .try_for_each(|stream| unsafe { result::stream::synchronize(stream) })
            .map_err(|e| self.error("finish its work", e))
    }
}
