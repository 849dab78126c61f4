//! Matrix products beside the rate of the units that make them.

use backend_cuda::tf32_on_driver;
use tensor_core::{DType, Result, Tensor};

use super::{ceiling, seconds};
use crate::device::Subject;
use crate::record::{Record, number};

/// Square matrices of these sizes.
const SIZES: [usize; 5] = [512, 1024, 2048, 4096, 8192];

pub(crate) fn run(subject: &Subject, record: &mut Record) -> Result<()> {
    record.table("Ceilings: units fed from registers, nothing read or written", &["unit", "TFLOP/s"]);
    let mut rates = Vec::new();
    for unit in ceiling::UNITS {
        if subject.driver.properties().capability < unit.capability {
            continue;
        }
        let rate = ceiling::rate(subject, unit)?;
        record.row(vec![unit.title.into(), number(rate / 1e12)]);
        rates.push((unit, rate));
    }
    record.note(
        "the ceiling of f16, bf16 and tf32 is that of mma.sync, which these kernels use; wgmma of sm_90 has a higher one",
    );
    record.table(
        "n × n by n × n",
        &["dtype", "n", "µs", "TFLOP/s", "share of the ceiling", "PyTorch (µs)", "ratio of times"],
    );
    // f32 with factors rounded to TF32 is a device of its own.
    let tf32 = tf32_on_driver(subject.driver.clone(), 1, true);
    let kinds = [
        ("f32", DType::F32, &subject.device),
        ("tf32", DType::F32, &tf32),
        ("bf16", DType::BF16, &subject.device),
        ("f16", DType::F16, &subject.device),
        ("f64", DType::F64, &subject.device),
    ];
    let sizes: &[usize] = if subject.is_emulated { &[32] } else { &SIZES };
    for &n in sizes {
        for (name, dtype, device) in kinds {
            if name == "tf32" && !device.info().accuracy.tf32 || !record.has_time_for(&format!("{name} {n}")) {
                continue;
            }
            let x = Tensor::randn([n, n], device)?.cast(dtype)?;
            let y = Tensor::randn([n, n], device)?.cast(dtype)?;
            let time = seconds(subject, || x.matmul(&y).map(drop))?;
            let rate = 2.0 * (n as f64).powi(3) / time;
            let ceiling = rates.iter().find(|(unit, _)| unit.products == name).map(|(_, rate)| *rate);
            let share = ceiling.map_or(f64::NAN, |ceiling| rate / ceiling);
            let [torch, ratio] = record.beside_torch(&format!("matmul {name} {n}"), time);
            record.row(vec![
                name.into(),
                n.into(),
                number(time * 1e6),
                number(rate / 1e12),
                number(share),
                torch,
                ratio,
            ]);
        }
    }
    Ok(())
}
