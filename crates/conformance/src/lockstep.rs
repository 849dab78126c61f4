//! A device that runs every op on a candidate and holds what it gives to the contract, from the candidate's own inputs.
//!
//! Two programs that run side by side drift apart and raise false alarms; here the inputs of each op are taken from the
//! candidate, and only the candidate's results flow on. A result with the bits of the reference device's is right (the sign
//! of zero is free). Where a bit differs the [`reference`](mod@crate::reference) decides, with the bounds of the op's
//! contract and the candidate's accuracy. Optimizer steps and uploads are judged, too; deliberately absent: judging errors
//! that the candidate reports, which are passed on.

use std::path::PathBuf;
use std::sync::Arc;

use smallvec::SmallVec;
use tensor_core::{
    Backend, Device, DeviceInfo, Error, HostData, HostView, Layout, MemoryStatus, Meta, Movement, Op, Result, Storage,
    Storages, Support, Target, Tensor, UpdateRule,
};

mod file;
mod judge;
mod log;
#[cfg(test)]
mod tests;
mod update;

use judge::{Judge, Observed, Run, Verdict};
pub use log::{Finding, Log, Tally, Unjudged};

/// What happens at a breach.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Notes the breach in the [`Log`] and goes on with the candidate's result; else the op fails.
    pub record: bool,
    /// Where the inputs of breaches are saved. `None`: `target/lockstep` where that folder exists, else
    /// `consort-lockstep` in the folder for temporary files.
    pub folder: Option<PathBuf>,
}

/// The candidate, each of its results judged on the reference; the first breach is an error.
///
/// The error names the op, the element, both values and what was allowed, and describes the inputs; their values are saved
/// to a safetensors file that it names, for reproduction. Everything waits for the candidate, op by op.
pub fn device(reference: &Device, candidate: &Device) -> Device {
    with(reference, candidate, Options::default()).0
}

/// The same with options, and what it saw.
pub fn with(reference: &Device, candidate: &Device, options: Options) -> (Device, Log) {
    let (reference, candidate) = (reference.physical(), candidate.physical().clone());
    let info = DeviceInfo {
        label: format!("lockstep({reference}, {candidate})"),
        name: format!("{}, each op judged on {reference}", candidate.info().name),
        ..candidate.info().clone()
    };
    let log = Log::default();
    let judge = Judge::new(reference, &candidate);
    (Device::new(Arc::new(Lockstep { info, candidate, judge, options, log: log.clone() })), log)
}

struct Lockstep {
    info: DeviceInfo,
    candidate: Device,
    judge: Judge,
    options: Options,
    log: Log,
}

impl Lockstep {
    /// The candidate's own tensor of the same storage.
    fn own(&self, x: &Tensor) -> Tensor {
        Tensor::from_storage(x.storage().clone(), x.meta(), self.candidate.clone()).with_layout(x.layout().clone())
    }

    fn observe(&self, x: &Tensor) -> Result<Observed> {
        Ok(Observed {
            name: self.log.name_of(x.storage()),
            layout: x.layout().clone(),
            data: self.candidate.backend().download(x)?,
        })
    }

    /// Judges what the candidate did; `after` are inputs, by number, that should still be what they were.
    fn judge(&self, op: &Op, run: &Run<'_>, after: &[(usize, HostData)]) -> Result<()> {
        let verdict = self.judge.changed_input(run.inputs, after).unwrap_or_else(|| self.judge.verdict(op, run));
        self.conclude(run, verdict)
    }

    /// Notes the verdict; a breach is saved, and an error unless breaches are recorded.
    fn conclude(&self, run: &Run<'_>, verdict: Verdict) -> Result<()> {
        let Verdict::Breach(evidence) = verdict else {
            self.log.note(run.name(), &verdict);
            return Ok(());
        };
        let finding = self.log.breach(run, || {
            let text = format!("{} breaks the contract: {}", self.candidate, evidence.text);
            let about = [("reference", &*self.judge.label), ("candidate", self.candidate.label()), ("breach", &*text)];
            let file = file::save(self.options.folder.as_deref(), run, &evidence, &about);
            let inputs = run.inputs.iter().enumerate().map(|(i, x)| x.describe(i)).chain(run.key()).collect();
            Finding { op: run.name().to_string(), inputs, file: file.map_err(|error| error.to_string()), text, n: 1 }
        });
        if self.options.record { Ok(()) } else { Err(Error::device(run.name().to_string(), finding.to_string())) }
    }
}

impl Backend for Lockstep {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn supports(&self, op: &Op, inputs: &[Meta]) -> Support {
        self.candidate.backend().supports(op, inputs)
    }

    /// Judged by the way back.
    fn upload(&self, data: HostView<'_>) -> Result<Storage> {
        let storage = self.candidate.backend().upload(data)?;
        let meta = Meta::new(data.shape.clone(), data.data.dtype());
        let back = Tensor::from_storage(storage.clone(), meta.clone(), self.candidate.clone());
        let got = [self.candidate.backend().download(&back)?];
        let sent = Observed { name: None, layout: Layout::contiguous(data.shape), data: data.data.to_data() };
        let run = Run { op: None, inputs: &[sent], got: &got, outputs: &[meta] };
        self.conclude(&run, self.judge.round_trip(&run))?;
        Ok(storage)
    }

    fn download(&self, x: &Tensor) -> Result<HostData> {
        self.candidate.backend().download(&self.own(x))
    }

    fn execute(&self, op: &Op, inputs: &[&Tensor], outputs: &[Meta]) -> Result<Storages> {
        let own: SmallVec<[Tensor; 4]> = inputs.iter().map(|x| self.own(x)).collect();
        // Before it runs: a kernel may spoil what it reads.
        let observed = own.iter().map(|x| self.observe(x)).collect::<Result<Vec<_>>>()?;
        let backend = self.candidate.backend();
        let storages = backend.execute(op, &own.iter().collect::<SmallVec<[&Tensor; 4]>>(), outputs)?;
        let download = |(meta, storage): (&Meta, &Storage)| {
            backend.download(&Tensor::from_storage(storage.clone(), meta.clone(), self.candidate.clone()))
        };
        let got = outputs.iter().zip(&storages).map(download).collect::<Result<Vec<_>>>()?;
        let after = own.iter().enumerate().map(|(i, x)| Ok((i, backend.download(x)?))).collect::<Result<Vec<_>>>()?;
        self.judge(op, &Run { op: Some(op), inputs: &observed, got: &got, outputs }, &after)?;
        Ok(storages)
    }

    fn update(&self, rule: &UpdateRule, targets: &mut [Target<'_>]) -> Result<()> {
        update::run(self, rule, targets)
    }

    fn synchronize(&self) -> Result<()> {
        self.candidate.backend().synchronize()
    }

    fn memory(&self) -> Result<MemoryStatus> {
        self.candidate.memory()
    }

    fn release_cached(&self) -> Result<()> {
        self.candidate.release_cached()
    }

    fn set_memory_limit(&self, bytes: Option<usize>) -> Result<()> {
        self.candidate.set_memory_limit(bytes)
    }

    fn reset_peak(&self) {
        self.candidate.reset_peak();
    }

    fn view(&self, movement: &Movement, x: &Tensor, layout: Layout) -> Result<Tensor> {
        let y = self.candidate.backend().view(movement, &self.own(x), layout)?;
        if Arc::ptr_eq(y.storage(), x.storage()) {
            return Ok(x.with_layout(y.layout().clone()));
        }
        let layout = y.layout().clone();
        Ok(Tensor::from_storage(y.storage().clone(), y.meta(), x.place().clone()).with_layout(layout))
    }
}
