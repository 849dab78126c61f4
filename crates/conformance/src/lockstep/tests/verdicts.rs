//! Who is right: identical bits, bounds, errors that are due, and what cannot be judged.

use tensor_core::op::{CustomKernel, HostArray};
use tensor_core::{CustomOp, Kind, Metas, custom};

use super::*;
use crate::reference;

/// Moves the first element of an f32 output of the op by so many units in the last place.
fn moved(name: &'static str, ulps: u32) -> Device {
    spoilt(move |op, outputs| {
        if let (true, HostData::F32(values)) = (op == name, &mut outputs[0]) {
            values[0] = f32::from_bits(values[0].to_bits() + ulps);
        }
    })
}

#[test]
fn what_differs_within_the_contract_is_right() -> Result<()> {
    let (device, log, _folder) = watched(&moved("exp", 1), false);
    ramp(&[5], &device)?.exp()?;
    let exp = log.ops()["exp"];
    assert_eq!((exp.n, exp.n_identical, exp.n_breaches), (1, 0, 0));
    assert!(exp.max_ulps > 0.0 && exp.max_used > 0.0 && exp.max_used <= 1.0, "{exp:?}");
    let (device, _, _folder) = watched(&moved("exp", 100), false);
    assert!(ramp(&[5], &device)?.exp().is_err());
    // A sum of two numbers has one right rounding.
    let (device, _, _folder) = watched(&moved("add", 1), false);
    assert!(ramp(&[5], &device)?.add(1.0).is_err());
    Ok(())
}

#[test]
fn the_sign_of_zero_and_the_payload_of_nan_are_free() -> Result<()> {
    let other = spoilt(|op, outputs| {
        if let (true, HostData::F32(values)) = (op == "mul", &mut outputs[0]) {
            values[0] = -0.0;
            values[1] = f32::from_bits(0x7fc0_0001);
        }
    });
    let (device, log, _folder) = watched(&other, false);
    Tensor::from_vec(vec![0.0f32, f32::NAN], [2], &device)?.mul(1.0)?;
    assert_eq!(log.ops()["mul"].n_identical, 1);
    Ok(())
}

#[test]
fn every_layout_is_judged_as_what_it_shows() -> Result<()> {
    let (device, log, _folder) = watched(&spoilt(|_, _| {}), false);
    let x = ramp(&[4, 6], &device)?;
    for view in [x.t()?, x.flip(1)?, x.slice(1, 0..6, 2)?, x.narrow(0, 1, 1)?.expand([3, 6])?] {
        view.exp()?.to_vec::<f32>()?;
        view.sum(0)?;
        view.contiguous()?;
        view.reshape([view.len()])?;
    }
    let total = log.total();
    assert_eq!((total.n_breaches, total.n_unjudged), (0, 0), "{log}");
    assert!(total.n >= 12);
    Ok(())
}

#[test]
fn the_conformance_reference_may_be_the_reference() -> Result<()> {
    for (name, is_right) in [("nothing", true), ("exp", false)] {
        let reference = reference::device(Default::default());
        let folder = tempfile::tempdir().expect("a folder");
        let options = Options { folder: Some(folder.path().to_path_buf()), ..Options::default() };
        let (device, log) = with(&reference, &spoilt_op(name), options);
        assert_eq!(ramp(&[5], &device)?.exp().is_ok(), is_right);
        assert_eq!(log.ops()["exp"].n_identical, 0, "held to bounds, never to bits");
    }
    Ok(())
}

#[test]
fn the_wrong_one_of_several_outputs_is_named() -> Result<()> {
    let wrong = spoilt(|op, outputs| {
        if let (true, HostData::I64(positions)) = (op == "sort", outputs.last_mut().expect("an output")) {
            positions.swap(0, 1);
        }
    });
    let (device, _, _folder) = watched(&wrong, false);
    let text = ramp(&[3], &device)?.sort(0, false).expect_err("a breach").to_string();
    assert!(text.contains("contract: output 1: element [0] is 1, not 0 (off by "), "{text}");
    Ok(())
}

#[test]
fn random_numbers_are_judged_and_named_by_their_key() -> Result<()> {
    let (device, _, _folder) = watched(&spoilt_op("rand"), false);
    let drawn = tensor_core::random::with_stream(tensor_core::random::Stream::new(7), || Tensor::rand([4], &device));
    let text = drawn.expect_err("a breach").to_string();
    assert!(text.contains("; 1 of 4 elements is wrong; seed 7, offset 0; saved in "), "{text}");
    Ok(())
}

#[test]
fn an_upload_is_judged_by_the_way_back() {
    let (device, _, _folder) = watched(&spoilt_op("upload"), false);
    let text = ramp(&[2], &device).expect_err("a breach").to_string();
    assert!(text.starts_with("upload: sim:0 breaks the contract: element [1] is 0.89421767, not 0.644217"), "{text}");
    assert!(text.contains("; input 0 [2] f32, 0.0 to 0.64421767; saved in "), "{text}");
}

#[test]
fn the_candidates_own_errors_are_passed_on() -> Result<()> {
    let (device, log, _folder) = watched(&spoilt(|_, _| {}), false);
    let x = ramp(&[3], &device)?;
    let index = Tensor::from_vec(vec![0i64, 3], [2], &device)?;
    let error = x.gather(0, &index).expect_err("out of range");
    assert!(error.is_index() && error.to_string().contains("index 3"), "{error}");
    assert_eq!(log.total().n_breaches, 0);
    Ok(())
}

#[test]
fn an_op_that_writes_over_its_input_is_caught() -> Result<()> {
    use crate::saboteur::{self, Fault};
    let (device, _, _folder) = watched(&saboteur::device(&cpu(), Fault::ChangesAnInput), false);
    let text = ramp(&[3], &device)?.exp().expect_err("a breach").to_string();
    assert!(text.contains(" breaks the contract: it changes input 0: element [0] is 1.0, not 0.0 (off by "), "{text}");
    Ok(())
}

/// The CPU, except that it reads element 0 where an index is out of range.
struct Careless(Device);

impl Backend for Careless {
    fn info(&self) -> &DeviceInfo {
        self.0.info()
    }

    fn supports(&self, op: &Op, inputs: &[Meta]) -> Support {
        self.0.backend().supports(op, inputs)
    }

    fn upload(&self, data: HostView<'_>) -> Result<Storage> {
        self.0.backend().upload(data)
    }

    fn download(&self, x: &Tensor) -> Result<HostData> {
        self.0.backend().download(x)
    }

    fn execute(&self, op: &Op, inputs: &[&Tensor], outputs: &[Meta]) -> Result<Storages> {
        let backend = self.0.backend();
        backend.execute(op, inputs, outputs).or_else(|_| {
            let zeros = |meta: &Meta| HostData::zeros(meta.dtype, meta.shape.len());
            let upload = |meta: &Meta| backend.upload(HostView { shape: &meta.shape, data: zeros(meta).as_slice() });
            outputs.iter().map(upload).collect()
        })
    }

    fn update(&self, rule: &UpdateRule, targets: &mut [Target<'_>]) -> Result<()> {
        self.0.backend().update(rule, targets)
    }

    fn synchronize(&self) -> Result<()> {
        Ok(())
    }

    fn memory(&self) -> Result<MemoryStatus> {
        self.0.memory()
    }

    fn release_cached(&self) -> Result<()> {
        Ok(())
    }
}

#[test]
fn a_result_in_place_of_an_error_is_a_breach() -> Result<()> {
    let (sim, _) = backend_cpu::test_device::test_device("sim", 0);
    let (device, _, _folder) = watched(&Device::new(Arc::new(Careless(sim))), false);
    let index = Tensor::from_vec(vec![0i64, 3], [2], &device)?;
    let text = ramp(&[3], &device)?.gather(0, &index).expect_err("a breach").to_string();
    let want =
        "gather: sim:0 breaks the contract: it gives a result where this error is due: gather: index is out of range";
    assert!(text.starts_with(want), "{text}");
    Ok(())
}

/// x², with a kernel for some kinds of devices.
#[derive(Debug)]
struct Square(&'static [Kind]);

impl CustomOp for Square {
    fn name(&self) -> &str {
        "square_of_ours"
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Metas> {
        Ok(inputs.iter().cloned().collect())
    }

    fn kernel(&self, kind: Kind) -> Option<CustomKernel> {
        let square = |inputs: &[HostArray], _: &[Meta]| {
            Ok(vec![HostData::F32(inputs[0].data.to_f64().iter().map(|v| (v * v) as f32).collect())])
        };
        self.0.contains(&kind).then(|| CustomKernel::Rust(Arc::new(square)))
    }

    fn derivative(&self, _: &[&Tensor], _: &[Tensor], _: &[Tensor]) -> Result<Vec<Option<Tensor>>> {
        Ok(vec![None])
    }
}

#[test]
fn a_custom_op_is_right_by_its_bits_or_counted_as_not_judged() -> Result<()> {
    let square = |device: &Device| custom(Arc::new(Square(&[Kind::Cpu])), &[&ramp(&[3], device)?]);
    let (device, log, _folder) = watched(&spoilt(|_, _| {}), false);
    square(&device)?;
    assert_eq!(log.ops()["square_of_ours"].n_identical, 1);
    assert!(log.unjudged().is_empty());

    let (device, log, _folder) = watched(&moved("square_of_ours", 3), false);
    for _ in 0..2 {
        square(&device)?;
    }
    let tally = log.ops()["square_of_ours"];
    // The first element is 0: three of the smallest numbers, in units of which distances from 0 are told.
    assert_eq!((tally.n, tally.n_unjudged, tally.n_breaches, tally.max_ulps), (2, 2, 0, 3.0));
    let reason = "it states no tolerance, and cpu gives other bits".to_string();
    assert_eq!(log.unjudged(), [Unjudged { op: "square_of_ours".into(), reason, n: 2 }]);
    assert!(log.to_string().contains("not judged, 2 times: square_of_ours: it states no tolerance"), "{log}");
    Ok(())
}
