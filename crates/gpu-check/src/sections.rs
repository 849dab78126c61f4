//! The sections: what each is called, how long it may take, and what runs it.

use std::process::ExitCode;
use std::time::Duration;

use crate::device::Subject;
use crate::record::Record;
use crate::{Args, corpus, correct, faults, memory, speed};

/// Runs one section. An error ends it and is a failure of it.
type Run = fn(&Subject, &mut Record) -> tensor_core::Result<()>;

/// One section.
pub(crate) struct Section {
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    budget_s: u64,
    run: Run,
}

/// In the order in which they run: what is quick and what everything else rests on first, long ones last.
pub(crate) const SECTIONS: &[Section] = &[
    Section { name: "device", title: "The device", budget_s: 10, run: speed::device },
    Section {
        name: "corpus",
        title: "Instructions and compilers' kernels beside the emulator",
        budget_s: 30,
        run: corpus::run,
    },
    Section { name: "faults", title: "Refused texts and kernels that fault", budget_s: 10, run: faults::run },
    Section { name: "memory", title: "Out of memory, and fifty epochs", budget_s: 20, run: memory::run },
    Section { name: "training", title: "Training steps", budget_s: 35, run: speed::training::run },
    Section { name: "products", title: "Matrix products", budget_s: 45, run: speed::products::run },
    Section { name: "bandwidth", title: "Maps, reductions, rows, attention", budget_s: 30, run: speed::bandwidth::run },
    Section { name: "convolution", title: "Convolutions", budget_s: 15, run: speed::convolution::run },
    Section { name: "overhead", title: "What the host spends on an op", budget_s: 10, run: speed::overhead::run },
    Section { name: "golden", title: "Golden training runs and public bugs", budget_s: 20, run: correct::golden },
    Section { name: "parity", title: "Every op against its contract", budget_s: 120, run: correct::parity },
];

pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    SECTIONS.iter().map(|section| section.name)
}

impl Section {
    /// How long it may take; the emulator, on a machine that has other work, anything but for ever.
    pub(crate) fn budget(&self, is_emulated: bool) -> Duration {
        Duration::from_secs(if is_emulated { 300 } else { self.budget_s })
    }
}

/// The section of a name in this process.
pub(crate) fn run(name: &str, args: &Args) -> Result<ExitCode, String> {
    let section = SECTIONS.iter().find(|section| section.name == name).ok_or("there is no such section")?;
    let subject = if args.emulated { Subject::emulated() } else { Subject::open(args.device) };
    let subject = subject.map_err(|e| e.to_string())?;
    let torch = args.pytorch.as_deref().map(crate::pytorch::read).unwrap_or_default();
    let mut record = Record::new(section.name, &args.out, Duration::from_secs_f64(args.budget.max(0.0)), torch)?;
    if let Err(error) = (section.run)(&subject, &mut record) {
        record.fail(format!("stopped: {error}"));
    }
    record.finish();
    Ok(ExitCode::SUCCESS)
}
