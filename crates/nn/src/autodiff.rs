//! The interpreter that records what is done to traced tensors, so that it can be differentiated.
//!
//! [`Autodiff`] is a backend that owns no device: it lowers its own operands, treats all others as constants and
//! re-enters core. Nested gradients are increasing levels of it. A level lives for one call: it is closed before its
//! tape is walked, and from then on its tensors count as their plain values.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use smallvec::SmallVec;
use tensor_core::{
    Backend, DType, Device, DeviceInfo, Error, HostData, HostView, Layout, MemoryStatus, Meta, Movement, Op, Result,
    Storage, Storages, Support, Target, Tensor, UpdateRule, execute,
};

mod checkpoint;
mod rules;
mod tape;
mod walk;

pub use checkpoint::checkpoint;
pub(crate) use checkpoint::{is_replaying, replayed};
use tape::{NONE, Node, Operand, Recorded, Slot, Tape};
pub(crate) use walk::Trace;

/// One level of differentiation.
pub(crate) struct Autodiff {
    me: Weak<Autodiff>,
    level: u64,
    base: Device,
    is_open: AtomicBool,
    tape: Mutex<Tape>,
}

/// The storage of a tensor of some level: its plain value, and its place on the tape.
struct Traced {
    primal: Tensor,
    /// `NONE` for a value that is no function of what is differentiated by.
    slot: Slot,
}

/// Levels in the order they were opened; 0 is for devices.
static LAST_LEVEL: AtomicU64 = AtomicU64::new(0);

/// A level that is closed when this is dropped, so that an error or a panic leaves nothing recorded.
pub(crate) struct Session {
    autodiff: Arc<Autodiff>,
    device: Device,
}

impl Session {
    /// Opens a level on the physical device `base`.
    pub(crate) fn open(base: &Device) -> Self {
        let autodiff = Arc::new_cyclic(|me| Autodiff {
            me: me.clone(),
            level: LAST_LEVEL.fetch_add(1, Ordering::Relaxed) + 1,
            base: base.physical().clone(),
            is_open: AtomicBool::new(true),
            tape: Mutex::default(),
        });
        Self { device: Device::new(autodiff.clone()), autodiff }
    }

    /// The physical device.
    pub(crate) fn base(&self) -> &Device {
        &self.autodiff.base
    }

    /// A tensor that is differentiated by. All are lifted before the first op: the i-th has slot i.
    pub(crate) fn lift(&self, x: &Tensor) -> Tensor {
        let slot = self.autodiff.tape().new_slots(1);
        wrap(x.clone(), slot, self.device.clone())
    }

    /// The plain value of `y`, and its slot if it is a function of what was lifted.
    fn resolve(&self, y: &Tensor) -> (Tensor, Slot) {
        let y = lowered_to(y, self.autodiff.level);
        match self.autodiff.mine(&y) {
            Some(traced) => (traced.primal.clone(), traced.slot),
            None => (y, NONE),
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.autodiff.close();
    }
}

fn wrap(primal: Tensor, slot: Slot, device: Device) -> Tensor {
    let (meta, layout) = (primal.meta(), primal.layout().clone());
    Tensor::from_storage(Arc::new(Traced { primal, slot }), meta, device).with_layout(layout)
}

/// The tensor below every level that is closed or higher than `level`.
fn lowered_to(x: &Tensor, level: u64) -> Tensor {
    let mut x = x.clone();
    while let Some(traced) = x.storage().downcast_ref::<Traced>() {
        if (1..=level).contains(&x.place().backend().level()) {
            break;
        }
        x = traced.primal.clone();
    }
    x
}

impl Autodiff {
    fn tape(&self) -> MutexGuard<'_, Tape> {
        self.tape.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn mine<'a>(&self, x: &'a Tensor) -> Option<&'a Traced> {
        if std::ptr::addr_eq(x.place().backend(), self) { x.storage().downcast_ref() } else { None }
    }

    fn device(&self) -> Device {
        Device::new(self.me.upgrade().expect("invariant: a level in use is alive"))
    }

    fn is_open(&self) -> bool {
        self.is_open.load(Ordering::Acquire)
    }

    /// Ends recording and takes what was recorded.
    fn close(&self) -> Tape {
        let mut tape = self.tape();
        self.is_open.store(false, Ordering::Release);
        std::mem::take(&mut *tape)
    }

    /// Records again, with slots from `n_slots` on.
    fn reopen(&self, n_slots: Slot) {
        let mut tape = self.tape();
        *tape = Tape::starting_at(n_slots);
        self.is_open.store(true, Ordering::Release);
    }

    /// Puts a node on the tape and gives the slot of its first output; `NONE` when nothing is recorded.
    fn push(&self, node: Node) -> Slot {
        if checkpoint::is_paused(self) {
            return NONE;
        }
        let mut tape = self.tape();
        if self.is_open() { tape.push(node) } else { NONE }
    }

    /// Records an op; `slots` are those of the inputs that its outputs change smoothly with.
    fn record(&self, op: &Op, slots: &[Slot], inputs: &[&Tensor], outputs: &[Tensor]) -> Slot {
        let keeps = rules::Keeps::of(op, slots);
        let mut node = Node::new(Recorded::Op(op.clone()));
        for (i, (x, &slot)) in inputs.iter().zip(slots).enumerate() {
            node.inputs.push(Operand::new(x, slot, keeps.input(i)));
        }
        for (k, y) in outputs.iter().enumerate() {
            node.outputs.push(keeps.output(k).then(|| y.clone()));
        }
        self.push(node)
    }
}

impl Backend for Autodiff {
    fn info(&self) -> &DeviceInfo {
        self.base.info()
    }

    fn supports(&self, op: &Op, _: &[Meta]) -> Support {
        if rules::is_split(op) { Support::Decompose } else { Support::Native }
    }

    fn upload(&self, data: HostView<'_>) -> Result<Storage> {
        // Tensors are created on physical devices; for completeness this gives a constant of this level.
        let values = self.base.backend().upload(data)?;
        let primal = Tensor::from_storage(values, Meta::new(data.shape.clone(), data.data.dtype()), self.base.clone());
        Ok(Arc::new(Traced { primal, slot: NONE }))
    }

    fn download(&self, x: &Tensor) -> Result<HostData> {
        x.stop_gradient().to_host()
    }

    fn execute(&self, op: &Op, inputs: &[&Tensor], outputs: &[Meta]) -> Result<Storages> {
        let mut primals: SmallVec<[&Tensor; 4]> = SmallVec::new();
        let mut slots: SmallVec<[Slot; 4]> = SmallVec::new();
        let mut is_traced = false;
        for (i, x) in inputs.iter().enumerate() {
            let traced = self.mine(x);
            let slot = traced.map_or(NONE, |traced| traced.slot);
            let is_smooth = slot != NONE && rules::is_smooth(op, i);
            is_traced |= is_smooth;
            primals.push(traced.map_or(*x, |traced| &traced.primal));
            slots.push(if is_smooth { slot } else { NONE });
        }
        let results = execute(op, &primals)?;
        let first = if is_traced { self.record(op, &slots, &primals, &results) } else { NONE };
        let mut storages = Storages::new();
        for (k, (primal, meta)) in results.into_iter().zip(outputs).enumerate() {
            let slot = if first == NONE || !meta.dtype.is_float() { NONE } else { first + k as Slot };
            storages.push(Arc::new(Traced { primal, slot }));
        }
        Ok(storages)
    }

    /// The rule as differentiable ops: an optimizer's step inside a gradient can be differentiated through.
    fn update(&self, rule: &UpdateRule, targets: &mut [Target<'_>]) -> Result<()> {
        let op = Op::Map(tensor_core::op::Map { name: "update", exprs: rule.outputs.iter().cloned().collect() });
        let mut updated = Vec::with_capacity(targets.len());
        for target in targets.iter() {
            let operands: SmallVec<[&Tensor; 4]> =
                [&*target.param, target.grad].into_iter().chain(target.state.iter()).collect();
            updated.push(execute(&op, &operands)?);
        }
        for (target, new) in targets.iter_mut().zip(updated) {
            let mut new = new.into_iter();
            let places = std::iter::once(&mut *target.param).chain(target.state.iter_mut());
            places.zip(&mut new).for_each(|(place, value)| *place = value);
        }
        Ok(())
    }

    fn synchronize(&self) -> Result<()> {
        self.base.backend().synchronize()
    }

    fn memory(&self) -> Result<MemoryStatus> {
        self.base.memory()
    }

    fn release_cached(&self) -> Result<()> {
        self.base.release_cached()
    }

    fn level(&self) -> u64 {
        if self.is_open() { self.level } else { 0 }
    }

    fn base(&self) -> Option<&Device> {
        Some(&self.base)
    }

    fn lower(&self, x: &Tensor) -> Option<Tensor> {
        self.mine(x).map(|traced| traced.primal.clone())
    }

    fn view(&self, movement: &Movement, x: &Tensor, layout: Layout) -> Result<Tensor> {
        let Some(traced) = self.mine(x) else {
            return Err(Error::device(movement.name(), "invariant: a view is made by the tensor's own interpreter"));
        };
        let primal = traced.primal.view(movement)?;
        if !self.is_open() {
            return Ok(primal);
        }
        let mut slot = NONE;
        if traced.slot != NONE {
            let mut node = Node::new(Recorded::Movement(movement.clone()));
            node.inputs.push(Operand::new(&traced.primal, traced.slot, false));
            node.outputs.push(None);
            slot = self.push(node);
        }
        let meta = Meta::new(layout.shape().clone(), x.dtype());
        Ok(Tensor::from_storage(Arc::new(Traced { primal, slot }), meta, x.place().clone()).with_layout(layout))
    }
}

/// A tensor that gradients can be taken by.
pub(crate) fn check_float(op: &'static str, what: &str, dtype: DType) -> Result<()> {
    if dtype.is_float() {
        return Ok(());
    }
    Err(Error::dtype(op, format!("{what} must be of a float dtype: {what} {dtype}; cast it with .cast(..)")))
}
