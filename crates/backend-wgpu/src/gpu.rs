//! The adapter's device and queue, and what goes wrong on them: every error is caught, from whatever thread, and returned
//! by the next call that can return one.

use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use tensor_core::{Error, Result};

/// A device and its queue.
pub(crate) struct Gpu {
    pub(crate) label: String,
    pub(crate) device: wgpu::Device,
    pub(crate) queue: wgpu::Queue,
    pub(crate) limits: wgpu::Limits,
    pub(crate) features: wgpu::Features,
    /// With so many groups at once it is busy.
    pub(crate) busy_groups: usize,
    faults: Arc<Faults>,
}

#[derive(Default)]
struct Faults {
    is_any: AtomicBool,
    is_lost: AtomicBool,
    text: Mutex<Option<String>>,
}

impl Faults {
    /// Keeps the first.
    fn note(&self, text: String) {
        self.text.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(text);
        self.is_any.store(true, Ordering::Release);
    }

    /// What went wrong before was for this reason.
    fn note_loss(&self, text: String) {
        *self.text.lock().unwrap_or_else(PoisonError::into_inner) = Some(text);
        self.is_lost.store(true, Ordering::Release);
        self.is_any.store(true, Ordering::Release);
    }
}

impl Gpu {
    /// Opens an adapter: with all of its limits, and the features that kernels use where it has them; or with what every
    /// adapter has, as if it were hardware.
    ///
    /// # Errors
    /// What the driver says.
    pub(crate) fn open(adapter: &wgpu::Adapter, label: &str, is_modest: bool) -> Result<Self> {
        let wanted = wgpu::Features::SHADER_INT64 | wgpu::Features::SHADER_F64 | wgpu::Features::SUBGROUP;
        let (features, limits) = if is_modest {
            (wgpu::Features::empty(), wgpu::Limits::default())
        } else {
            (adapter.features() & wanted, adapter.limits())
        };
        // A processor has few cores, and gains more by larger tiles.
        let is_processor = adapter.get_info().device_type == wgpu::DeviceType::Cpu;
        let busy_groups = if is_processor && !is_modest { 4 } else { 128 };
        let descriptor = wgpu::DeviceDescriptor {
            label: Some(label),
            required_features: features,
            required_limits: limits.clone(),
            ..wgpu::DeviceDescriptor::default()
        };
        let (device, queue) = now(adapter.request_device(&descriptor)).map_err(|e| {
            Error::device(label.to_string(), format!("adapter cannot be opened: {e}; update its driver"))
        })?;
        let faults = Arc::new(Faults::default());
        let noted = faults.clone();
        device.on_uncaptured_error(Arc::new(move |error: wgpu::Error| noted.note(one_line(&error.to_string()))));
        let noted = faults.clone();
        device.set_device_lost_callback(move |reason, text| {
            noted.note_loss(format!("device is lost: {reason:?}, {}", one_line(&text)));
        });
        Ok(Self { label: label.into(), device, queue, limits, features, busy_groups, faults })
    }

    /// An error that was caught since the last time; that the device is lost is said every time.
    pub(crate) fn check(&self, op: &str) -> Result<()> {
        if !self.faults.is_any.load(Ordering::Acquire) {
            return Ok(());
        }
        // That the device is lost is told while polling.
        let _ = self.device.poll(wgpu::PollType::Poll);
        let mut text = self.faults.text.lock().unwrap_or_else(PoisonError::into_inner);
        let is_lost = self.faults.is_lost.load(Ordering::Acquire);
        let said = if is_lost { text.clone() } else { text.take() };
        self.faults.is_any.store(is_lost, Ordering::Release);
        let remedy = if is_lost { "; restart the program, other devices go on" } else { "" };
        match said {
            None => Ok(()),
            Some(said) => Err(Error::device(op.to_string(), format!("{} failed: {said}{remedy}", self.label))),
        }
    }

    /// Runs `work`; what it asks of the device and is refused becomes an error.
    pub(crate) fn caught<T>(&self, filter: wgpu::ErrorFilter, work: impl FnOnce() -> T) -> (T, Option<wgpu::Error>) {
        let scope = self.device.push_error_scope(filter);
        let value = work();
        (value, now(scope.pop()))
    }

    /// Waits until all that was submitted is done.
    pub(crate) fn wait(&self, op: &str) -> Result<()> {
        let polled = self.device.poll(wgpu::PollType::wait_indefinitely());
        self.check(op)?;
        polled.map(|_| ()).map_err(|e| Error::device(op.to_string(), format!("{} does not answer: {e}", self.label)))
    }
}

/// The value of a future that native platforms complete at once.
pub(crate) fn now<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(value) => return value,
            Poll::Pending => std::thread::yield_now(),
        }
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
