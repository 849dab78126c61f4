//! What is caught and told, what is let through, and that the device changes nothing about a program.

use std::sync::Arc;

use tensor_core::{
    Backend, Device, DeviceInfo, HostData, HostView, MemoryStatus, Meta, Op, Result, Storage, Storages, Support,
    Target, Tensor, UpdateRule,
};

use super::*;

mod faults;
mod record;
mod training;
mod verdicts;

/// The CPU under another name whose results pass through `spoil` under the op's name, "update" and "upload" among them.
fn spoilt(spoil: impl Fn(&str, &mut Vec<HostData>) + Send + Sync + 'static) -> Device {
    let (cpu, _) = backend_cpu::test_device::test_device("sim", 0);
    Device::new(Arc::new(Spoilt { cpu, spoil: Box::new(spoil) }))
}

struct Spoilt {
    cpu: Device,
    spoil: Box<dyn Fn(&str, &mut Vec<HostData>) + Send + Sync>,
}

impl Spoilt {
    fn spoil(&self, name: &str, outputs: &[Meta], storages: Storages) -> Result<Storages> {
        let backend = self.cpu.backend();
        let tensor = |(meta, storage): (&Meta, &Storage)| {
            backend.download(&Tensor::from_storage(storage.clone(), meta.clone(), self.cpu.clone()))
        };
        let right = outputs.iter().zip(&storages).map(tensor).collect::<Result<Vec<_>>>()?;
        let mut data = right.clone();
        (self.spoil)(name, &mut data);
        if format!("{data:?}") == format!("{right:?}") {
            return Ok(storages);
        }
        let upload =
            |(meta, data): (&Meta, &HostData)| backend.upload(HostView { shape: &meta.shape, data: data.as_slice() });
        outputs.iter().zip(&data).map(upload).collect()
    }
}

impl Backend for Spoilt {
    fn info(&self) -> &DeviceInfo {
        self.cpu.info()
    }

    fn supports(&self, op: &Op, inputs: &[Meta]) -> Support {
        self.cpu.backend().supports(op, inputs)
    }

    fn upload(&self, data: HostView<'_>) -> Result<Storage> {
        let storage = self.cpu.backend().upload(data)?;
        let meta = Meta::new(data.shape.clone(), data.data.dtype());
        Ok(self.spoil("upload", &[meta], Storages::from_iter([storage]))?.remove(0))
    }

    fn download(&self, x: &Tensor) -> Result<HostData> {
        assert_eq!(x.place().label(), "sim:0", "a device gets its own tensors");
        self.cpu.backend().download(x)
    }

    fn execute(&self, op: &Op, inputs: &[&Tensor], outputs: &[Meta]) -> Result<Storages> {
        for x in inputs {
            assert_eq!(x.place().label(), "sim:0", "a device gets its own tensors");
        }
        self.spoil(op.name(), outputs, self.cpu.backend().execute(op, inputs, outputs)?)
    }

    fn update(&self, rule: &UpdateRule, targets: &mut [Target<'_>]) -> Result<()> {
        self.cpu.backend().update(rule, targets)?;
        for target in targets {
            assert_eq!(target.param.place().label(), "sim:0", "a device gets its own tensors");
            let storages = Storages::from_iter([target.param.storage().clone()]);
            let spoilt = self.spoil("update", &[target.param.meta()], storages)?.remove(0);
            if !Arc::ptr_eq(&spoilt, target.param.storage()) {
                *target.param = Tensor::from_storage(spoilt, target.param.meta(), target.param.place().clone());
            }
        }
        Ok(())
    }

    fn synchronize(&self) -> Result<()> {
        self.cpu.backend().synchronize()
    }

    fn memory(&self) -> Result<MemoryStatus> {
        self.cpu.memory()
    }

    fn release_cached(&self) -> Result<()> {
        self.cpu.release_cached()
    }
}

/// Adds 0.25 to the last element of an f32 output of the op called `name`.
fn spoilt_op(name: &'static str) -> Device {
    spoilt(move |op, outputs| {
        if let (true, HostData::F32(values)) = (op == name, &mut outputs[0]) {
            *values.last_mut().expect("an element") += 0.25;
        }
    })
}

fn cpu() -> Device {
    backend_cpu::device()
}

/// A device whose evidence goes to a folder of its own.
fn watched(candidate: &Device, record: bool) -> (Device, Log, tempfile::TempDir) {
    let folder = tempfile::tempdir().expect("a folder");
    let options = Options { record, folder: Some(folder.path().to_path_buf()) };
    let (device, log) = with(&cpu(), candidate, options);
    (device, log, folder)
}

fn ramp(shape: &[usize], device: &Device) -> Result<Tensor> {
    let n: usize = shape.iter().product();
    Tensor::from_vec((0..n).map(|i| (i as f32 * 0.7).sin()).collect::<Vec<f32>>(), shape, device)
}

#[test]
fn it_is_a_device_named_after_both() -> Result<()> {
    let (sim, _) = backend_cpu::test_device::test_device("sim", 0);
    let device = device(&cpu(), &sim);
    assert_eq!(device.label(), "lockstep(cpu, sim:0)");
    assert_eq!((device.info().kind, device.info().accuracy), (sim.info().kind, sim.info().accuracy));
    let x = ramp(&[2, 3], &device)?;
    assert_eq!(x.device(), device);
    assert!(device.memory()?.used_bytes > 0 && sim.memory()?.used_bytes == device.memory()?.used_bytes);
    let error = x.add(&ramp(&[2, 3], &sim)?).expect_err("two devices");
    assert_eq!(
        error.to_string(),
        "add: operands are on different devices: lhs lockstep(cpu, sim:0), rhs sim:0; move one with .to(&device)"
    );
    assert_eq!(x.to(&sim)?.to_vec::<f32>()?, x.to_vec::<f32>()?);
    device.synchronize()
}

#[test]
fn the_first_breach_is_an_error_that_tells_all() -> Result<()> {
    let (device, log, folder) = watched(&spoilt_op("matmul"), false);
    let (x, w) = (ramp(&[2, 3], &device)?, ramp(&[4, 3], &device)?);
    let y = x.mul(2.0)?.exp()?;
    log.name("output.weight", &w);
    let error = y.matmul(&w.t()?).expect_err("a breach");
    let finding = log.findings().remove(0);
    let path = finding.file.clone().expect("saved");
    assert!(path.starts_with(folder.path()), "{path:?}");
    let text = error.to_string();
    let start = "matmul: sim:0 breaks the contract: element [1, 3] is ";
    assert!(text.starts_with(start) && error.is_device(), "{text}");
    assert_eq!(text, format!("matmul: {finding}"));
    for part in [
        " (off by 2.5e-1, allowed ",
        "; 1 of 8 elements is wrong; input 0 [2, 3] f32, ",
        "; input 1 [3, 4] f32 (output.weight) with strides [1, 3] from 0, ",
        &format!("; saved in {}", path.display()),
    ] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
    Ok(())
}

#[test]
fn the_file_holds_inputs_results_and_bounds() -> Result<()> {
    let (device, log, _folder) = watched(&spoilt_op("matmul"), false);
    let (x, w) = (ramp(&[2, 3], &device)?, ramp(&[3, 4], &device)?);
    assert!(x.matmul(&w).is_err());
    let bytes = std::fs::read(log.findings()[0].file.as_ref().expect("saved")).expect("a file");
    let (_, header) = safetensors::SafeTensors::read_metadata(&bytes).expect("safetensors");
    let about = header.metadata().as_ref().expect("what it is about");
    assert!(about["op"].starts_with("MatMul") && about["candidate"] == "sim:0" && about["reference"] == "cpu");
    let file = safetensors::SafeTensors::deserialize(&bytes).expect("safetensors");
    let floats = |name: &str| -> Vec<f32> {
        let data = file.tensor(name).expect("an array").data().to_vec();
        data.chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().expect("four bytes"))).collect()
    };
    let doubles = |name: &str| -> Vec<f64> {
        let data = file.tensor(name).expect("an array").data().to_vec();
        data.chunks_exact(8).map(|b| f64::from_le_bytes(b.try_into().expect("eight bytes"))).collect()
    };
    assert_eq!((floats("input.0"), floats("input.1")), (x.to_vec::<f32>()?, w.to_vec::<f32>()?));
    assert_eq!(file.tensor("want.0").expect("an array").shape(), [2, 4]);
    let (got, want, bound) = (floats("got.0"), doubles("want.0"), doubles("bound.0"));
    for i in 0..8 {
        let off = (f64::from(got[i]) - want[i]).abs();
        assert_eq!(off <= bound[i], i != 7, "element {i} is off by {off}, allowed {}", bound[i]);
    }
    Ok(())
}

#[test]
fn a_folder_that_cannot_be_written_hides_no_breach() -> Result<()> {
    let file = tempfile::NamedTempFile::new().expect("a file");
    let options = Options { folder: Some(file.path().join("below")), ..Options::default() };
    let (device, _) = with(&cpu(), &spoilt_op("exp"), options);
    let text = ramp(&[3], &device)?.exp().expect_err("a breach").to_string();
    assert!(text.starts_with("exp: sim:0 breaks the contract: element [2] is "), "{text}");
    assert!(text.contains("; not saved: lockstep: cannot write the file ("), "{text}");
    Ok(())
}
