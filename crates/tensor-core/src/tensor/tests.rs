//! Tests of the surface that need no kernels: what is rejected and how, which views come out, what goes to a backend.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use smallvec::SmallVec;

use crate::{
    Backend, DType, Device, DeviceInfo, Error, HostData, HostView, Kind, MemoryStatus, Meta, Op, Result, Storage,
    Storages, Support, Target, Tensor, UpdateRule,
};

mod deferred;
mod errors;
mod requests;
mod views;

/// A device that computes nothing: it notes what it is asked for, and its values are all zero.
struct Silent {
    info: DeviceInfo,
    defers_from: usize,
    /// Elements that an op's output must not reach.
    fails_from: AtomicUsize,
    asked: Mutex<Vec<String>>,
}

impl Silent {
    fn note(&self, text: String) {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).push(text);
    }
}

impl Backend for Silent {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn supports(&self, _: &Op, _: &[Meta]) -> Support {
        Support::Native
    }

    fn upload(&self, data: HostView<'_>) -> Result<Storage> {
        self.note(format!("upload {} {}", data.shape, data.data.dtype()));
        Ok(Arc::new(()))
    }

    fn download(&self, x: &Tensor) -> Result<HostData> {
        self.note(format!("download {} {}", x.shape(), x.dtype()));
        Ok(HostData::zeros(x.dtype(), x.len()))
    }

    fn execute(&self, op: &Op, inputs: &[&Tensor], outputs: &[Meta]) -> Result<Storages> {
        if outputs[0].shape.len() >= self.fails_from.load(Ordering::Relaxed) {
            return Err(Error::device(op.name().to_string(), "no room"));
        }
        let inputs: Vec<String> = inputs.iter().map(|x| x.shape().to_string()).collect();
        self.note(format!("{}({}) -> {}", op.name(), inputs.join(", "), outputs[0].shape));
        Ok(outputs.iter().map(|_| Arc::new(()) as Storage).collect())
    }

    fn update(&self, _: &UpdateRule, _: &mut [Target<'_>]) -> Result<()> {
        Err(Error::unsupported("update", "not here"))
    }

    fn synchronize(&self) -> Result<()> {
        Ok(())
    }

    fn memory(&self) -> Result<MemoryStatus> {
        Ok(MemoryStatus::default())
    }

    fn release_cached(&self) -> Result<()> {
        Ok(())
    }

    fn defers_from(&self) -> usize {
        self.defers_from
    }
}

/// A silent device, and what it has been asked for since the last look.
struct Bench {
    backend: Arc<Silent>,
    device: Device,
}

impl Bench {
    fn new(label: &str) -> Self {
        Self::deferring(label, usize::MAX)
    }

    /// One that puts off maps of so many elements.
    fn deferring(label: &str, defers_from: usize) -> Self {
        let info = DeviceInfo {
            kind: Kind::Other,
            index: 0,
            label: label.into(),
            name: String::new(),
            capability: String::new(),
            is_hardware: false,
            accuracy: crate::expr::Accuracy::default(),
        };
        let backend =
            Arc::new(Silent { info, defers_from, fails_from: AtomicUsize::new(usize::MAX), asked: Mutex::default() });
        Self { device: Device::new(backend.clone()), backend }
    }

    fn tensor(&self, shape: &[usize], dtype: DType) -> Tensor {
        Tensor::from_storage(Arc::new(()), Meta::new(crate::Shape::new(shape), dtype), self.device.clone())
    }

    fn f32(&self, shape: &[usize]) -> Tensor {
        self.tensor(shape, DType::F32)
    }

    fn asked(&self) -> Vec<String> {
        std::mem::take(&mut *self.backend.asked.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Shape, strides and offset.
fn layout(x: &Tensor) -> (Vec<usize>, Vec<isize>, usize) {
    let strides: SmallVec<[isize; 4]> = x.layout().strides().into();
    (x.dims().to_vec(), strides.to_vec(), x.layout().offset())
}
