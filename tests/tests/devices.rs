//! Devices: which there are, how one is chosen, what it has, and two side by side: the CPU and a test device with an
//! identity of its own. What crosses between them is counted in `transfers.rs`, failing devices are in `faults.rs`.

use std::process::Command;

use backend_cpu::test_device;
use backend_cpu::test_device::test_device_like;
use consort::prelude::*;
use consort::{DeviceInfo, Kind, device, nn};
use integration::values;

fn text<T>(result: Result<T>) -> String {
    result.err().map_or_else(|| "no error".to_string(), |e| e.to_string())
}

#[test]
fn a_kind_is_functional_or_says_why_not() {
    assert!(device::functional(Kind::Cpu));
    let cpu = device::probe(Kind::Cpu).expect("the CPU is always there");
    assert_eq!((cpu.len(), cpu[0].kind, cpu[0].index, &cpu[0].label[..]), (1, Kind::Cpu, 0, "cpu"));
    for kind in [Kind::Cuda, Kind::Wgpu, Kind::Other] {
        match device::probe(kind) {
            Ok(found) => assert!(!found.is_empty(), "{kind}: no devices, and no reason"),
            Err(reason) => {
                let reason = reason.to_string();
                assert!(!device::functional(kind), "{kind}");
                assert!(reason.starts_with(&format!("{kind}: ")) && reason.contains("; use"), "no remedy: {reason}");
            }
        }
    }
}

#[test]
fn a_name_gives_its_device_or_the_reason() -> Result<()> {
    let cpu = device::cpu();
    for name in ["cpu", "cpu:0", "  cpu ", "auto"] {
        let found = device::parse(name)?;
        assert!(found == if name == "auto" { device::best() } else { cpu.clone() }, "{name}: {found}");
    }
    let unknown = |name: &str| {
        format!("device: name is unknown: {name:?}; use auto, cpu, cuda:N, cuda-emulated:N or wgpu:N with N from 0")
    };
    for name in ["", "gpu", "cpu:", "cpu:x", "cpu:-1", "cuda:1:2", "CPU", "auto:0", ":0", "cpu:99999999999999999999"] {
        assert_eq!(text(device::parse(name)), unknown(name.trim()));
    }
    assert_eq!(text(device::parse("cpu:1")), "cpu: there is no device of that index: index 1, found 1; use cpu:0");
    assert!(device::parse("gpu").is_err_and(|e| e.is_device()));
    // An explicit device never falls back.
    for (name, kind) in [("cuda:0", Kind::Cuda), ("cuda-tf32:0", Kind::Cuda), ("wgpu", Kind::Wgpu)] {
        match device::probe(kind) {
            Ok(_) => assert_eq!(device::parse(name)?.info().kind, kind),
            Err(reason) => assert_eq!(text(device::parse(name)), reason.to_string()),
        }
    }
    assert_eq!(text(device::cuda(0)), text(device::parse("cuda")));
    assert_eq!(text(device::wgpu(0)), text(device::parse("wgpu:0")));
    Ok(())
}

#[test]
fn gpus_are_tried_and_the_cpu_stands_in() {
    let gpus = [Kind::Cuda, Kind::Wgpu].into_iter().any(device::functional);
    let all = device::all();
    assert_eq!(all.iter().filter(|d| **d == device::cpu()).count(), 1);
    assert!(all.last() == Some(&device::cpu()));
    assert!(device::try_gpu(9_999) == device::cpu());
    if !gpus {
        assert!(device::best() == device::cpu() && device::try_gpu(0) == device::cpu());
        assert!(device::try_all_gpus() == [device::cpu()]);
    }
}

/// What the child below prints.
const MARK: &str = "the default device: ";

/// The child: says what the default device is.
#[test]
fn says_the_default_device() {
    println!("\n{MARK}{}", device::default().map_or_else(|e| e.to_string(), |d| d.to_string()));
}

/// The default device of a process with this environment.
fn default_in_child(variable: Option<&str>) -> String {
    let mut child = Command::new(std::env::current_exe().expect("a path"));
    child.args(["says_the_default_device", "--exact", "--nocapture"]).env_remove(device::DEVICE_VARIABLE);
    child.envs(variable.map(|value| (device::DEVICE_VARIABLE, value)));
    let output = child.output().expect("a child");
    let output = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = output.lines().find_map(|line| line.strip_prefix(MARK));
    line.unwrap_or_else(|| panic!("no line with the device in {output}")).to_string()
}

#[test]
fn the_environment_chooses_the_default() {
    let best = device::best().to_string();
    assert_eq!(default_in_child(None), best);
    assert_eq!(default_in_child(Some("")), best);
    assert_eq!(default_in_child(Some("auto")), best);
    assert_eq!(default_in_child(Some("cpu")), "cpu");
    for name in ["cpu:3", "toaster", "cuda-emulated:0"] {
        assert_eq!(default_in_child(Some(name)), format!("CONSORT_DEVICE: {}", text(device::parse(name))));
    }
}

#[test]
fn version_info_is_for_people_and_programs() {
    let info = device::version_info();
    let json = serde_json::to_value(&info).expect("it serialises");
    assert_eq!(json["consort"], env!("CARGO_PKG_VERSION"));
    assert!(json["cpu_threads"].as_u64() >= Some(1) && json["cpu_simd"].is_string(), "{json}");
    let kinds = json["kinds"].as_array().expect("kinds");
    assert_eq!(kinds.iter().map(|k| k["kind"].as_str().unwrap_or("")).collect::<Vec<_>>(), ["cpu", "cuda", "wgpu"]);
    let cpu = &kinds[0]["devices"][0];
    assert_eq!(cpu["label"], "cpu");
    assert!(cpu["total_bytes"].as_u64() >= cpu["free_bytes"].as_u64(), "{cpu}");
    for kind in kinds {
        let is_empty = kind["devices"].as_array().is_none_or(Vec::is_empty);
        assert_eq!(is_empty, kind["reason"].is_string(), "{kind}");
    }
    let text = info.to_string();
    for kind in kinds {
        let named = kind["reason"].as_str().or(kind["devices"][0]["name"].as_str()).expect("a reason or a device");
        assert!(text.contains(named), "{named} is not in\n{text}");
    }
    assert!(text.lines().last().is_some_and(|line| line.starts_with("chosen by default: ")), "{text}");
}

#[test]
fn tensors_are_made_and_stay_where_they_are_asked_for() -> Result<()> {
    let (there, _) = test_device("there", 0);
    for device in [&device::cpu(), &there] {
        let made = [
            Tensor::ones([2, 3], device)?,
            Tensor::zeros([2, 3], device)?,
            Tensor::full([2, 3], 0.5, device)?,
            Tensor::arange(0, 6, 1, device)?,
            Tensor::linspace(0.0, 1.0, 6, device)?,
            Tensor::eye(3, device)?,
            Tensor::rand([2, 3], device)?,
            Tensor::randn([2, 3], device)?,
            Tensor::randint(0, 9, [2, 3], device)?,
            Tensor::bernoulli(0.5, [2, 3], device)?,
            Tensor::from_vec(vec![1.0f32, 2.0], [2], device)?,
            Tensor::from_slice(&[1i64, 2], [2], device)?,
        ];
        for x in &made {
            assert!(x.device() == *device, "{x:?}");
            assert!(x.to_string().ends_with(&format!(" {device}")), "{x}");
            assert!(x.zeros_like()?.device() == *device && x.reshape(-1)?.device() == *device);
        }
        let x = &made[0];
        for y in [x.add(x)?, x.matmul(&x.t()?)?, x.sum(..)?, x.sort(0, false)?.1, x.cast(DType::F64)?, &-x * 2.0] {
            assert!(y.device() == *device, "{y:?}");
        }
    }
    Ok(())
}

#[test]
fn a_move_keeps_what_is_already_there_and_a_copy_never_does() -> Result<()> {
    let (there, _) = test_device("there", 1);
    let here = device::cpu();
    let x = Tensor::from_slice(&[1.0f32, -0.0, f32::NAN, 4.0, 5.0, 6.0], [2, 3], &here)?;
    assert!(x.to(&here)?.is_same(&x));
    let copy = x.copy_to(&here)?;
    assert!(!copy.is_same(&x) && copy.device() == here);
    // Views move as what they show, row-major.
    let view = x.t()?.slice(0, .., -1)?;
    let moved = view.to(&there)?;
    assert!(moved.device() == there && moved.is_contiguous() && !view.is_contiguous());
    assert!(moved.to(&there)?.is_same(&moved) && !moved.copy_to(&there)?.is_same(&moved));
    let bits = |x: &Tensor| -> Result<Vec<u32>> { Ok(x.to_vec::<f32>()?.into_iter().map(f32::to_bits).collect()) };
    assert_eq!(bits(&moved)?, bits(&view)?);
    assert_eq!(bits(&moved.to(&here)?)?, bits(&view)?);
    for dtype in DType::ALL {
        let x = Tensor::from_slice(&[0.0, 1.0, 2.0], [3], &here)?.cast(dtype)?;
        let back = x.to(&there)?.to(&here)?;
        assert_eq!((back.dtype(), values(&back)), (dtype, values(&x)));
    }
    assert_eq!(Tensor::zeros([0, 3], &here)?.to(&there)?.dims(), [0, 3]);
    Ok(())
}

#[test]
fn models_and_batches_move_like_tensors() -> Result<()> {
    let (there, _) = test_device("there", 2);
    let here = device::cpu();
    let model =
        chain![nn::Linear::new(3, 4, &here)?, nn::BatchNorm1d::new(4, &here)?, nn::Relu, nn::Linear::new(4, 2, &here)?];
    let moved = model.to(&there)?;
    for ((path, before), (same, after)) in model.named_parameters().into_iter().zip(moved.named_parameters()) {
        assert_eq!((&path, before.id()), (&same, after.id()));
        assert!(after.device() == there && before.device() == here, "{path}");
        assert_eq!(values(before), values(after));
    }
    let x = Tensor::rand([5, 3], &here)?;
    let y = moved.forward(&x.to(&there)?)?;
    assert!(y.device() == there);
    assert_eq!(values(&y), values(&model.forward(&x)?));
    let (a, (b, c)) = (x.clone(), (x.narrow(0, 0, 2)?, vec![x.clone(), x.t()?])).to(&there)?;
    assert!([&a, &b, &c[0], &c[1]].into_iter().all(|t| t.device() == there));
    // Training works there as it does here.
    let mut losses = Vec::new();
    for (device, model) in [(&here, &model), (&there, &moved)] {
        let (x, mut model) = (x.to(device)?, model.fork());
        let mut optimizer = nn::optim::Adam::new(1e-2).setup(&model)?;
        for _ in 0..3 {
            let (loss, gradients) = with_gradient(&model, |m| m.forward(&x)?.square()?.mean(..))?;
            assert!(gradients.iter().all(|(_, g)| g.device() == *device) && loss.device() == *device);
            optimizer.update(&mut model, &gradients)?;
            losses.push(loss.item::<f32>()?);
        }
        assert!(model.named_parameters().iter().all(|(_, p)| p.device() == *device));
    }
    assert_eq!(losses[..3], losses[3..]);
    Ok(())
}

#[test]
fn mixed_devices_are_an_error_that_names_both() -> Result<()> {
    let (there, _) = test_device("there", 3);
    let (a, b) = (Tensor::ones([2, 2], &device::cpu())?, Tensor::ones([2, 2], &there)?);
    let lhs_rhs =
        |op: &str| format!("{op}: operands are on different devices: lhs cpu, rhs there:3; move one with .to(&device)");
    for (op, result) in [
        ("add", a.add(&b)),
        ("matmul", a.matmul(&b)),
        ("gt", a.gt(&b)),
        ("zip", consort::zip(&a, &b, |a, b| a * b)),
        ("cat", Tensor::cat(&[&a, &b], 0)),
    ] {
        assert!(result.as_ref().is_err_and(|e| e.is_device()), "{op}");
        assert_eq!(text(result), lhs_rhs(op));
    }
    let three = "zip: operands are on different devices: cpu and there:3; move one with .to(&device)";
    assert_eq!(text(consort::zip_n([&a, &a, &b], |[a, b, c]| a * b + c)), three);
    let linear = nn::Linear::new(2, 2, &there)?;
    assert!(
        text(linear.forward(&a))
            .ends_with("operands are on different devices: cpu and there:3; move one with .to(&device)")
    );
    let twin = test_device("there", 3).0;
    assert!(twin != there, "two devices of one name are two devices");
    assert!(b.add(&Tensor::ones([2, 2], &twin)?).is_err());
    let crossing = nn::gradient(|x| x.to(&there)?.sum(..), &a);
    assert!(
        text(crossing)
            .contains("cannot move to another device: input cpu, device there:3; move the model and the data before")
    );
    Ok(())
}

#[test]
fn memory_is_accounted_for() -> Result<()> {
    let (there, _) = test_device("there", 4);
    let used = || -> Result<usize> { Ok(there.memory()?.used_bytes) };
    assert_eq!(used()?, 0);
    let x = Tensor::zeros([1 << 18], &there)?;
    assert_eq!(used()?, 1 << 20);
    let view = x.slice(0, .., 2)?;
    let y = x.add(1.0)?;
    assert_eq!(used()?, 2 << 20);
    drop((x, y));
    let after = there.memory()?;
    assert_eq!((after.used_bytes, after.peak_bytes), (1 << 20, 2 << 20), "a view holds its storage");
    assert!(after.reserved_bytes >= after.used_bytes);
    drop(view);
    there.release_cached()?;
    there.reset_peak();
    let end = there.memory()?;
    assert_eq!((end.used_bytes, end.reserved_bytes, end.peak_bytes), (0, 0, 0));
    if let (Some(free), Some(total)) = (end.free_bytes, end.total_bytes) {
        assert!(0 < free && free <= total);
    }
    there.set_memory_limit(Some(4 << 20))?;
    let _x = Tensor::zeros([1 << 18], &there)?;
    let printed = there.memory()?.to_string();
    assert!(printed.starts_with("used 1.0 MiB of 4.0 MiB (25.0 %), reserved 1.0 MiB, peak 1.0 MiB; "), "{printed}");
    Ok(())
}

#[test]
fn a_training_loop_reaches_a_steady_amount_of_memory() -> Result<()> {
    let (there, _) = test_device("there", 5);
    let mut model = chain![nn::Linear::new(16, 32, &there)?, nn::Gelu, nn::Linear::new(32, 1, &there)?];
    let mut optimizer = nn::optim::AdamW::new(1e-3).setup(&model)?;
    let x = Tensor::rand([64, 16], &there)?;
    let mut readings = Vec::new();
    for _ in 0..20 {
        let (_, gradients) = with_gradient(&model, |m| m.forward(&x)?.square()?.mean(..))?;
        optimizer.update(&mut model, &gradients)?;
        drop(gradients);
        let memory = there.memory()?;
        readings.push((memory.used_bytes, memory.reserved_bytes, memory.peak_bytes));
    }
    assert!(readings[2..].iter().all(|r| *r == readings[2]), "{readings:?}");
    Ok(())
}

#[test]
fn devices_compare_by_identity_and_describe_themselves() {
    let info = DeviceInfo {
        kind: Kind::Cuda,
        index: 0,
        label: "cuda:0".into(),
        name: "a GPU that is not there".into(),
        capability: "9.0".into(),
        is_hardware: true,
        accuracy: consort::expr::Accuracy::default(),
    };
    let (device, _) = test_device_like(info.clone());
    assert_eq!((device.info(), device.label(), device.to_string()), (&info, "cuda:0", "cuda:0".to_string()));
    assert!(device == device.clone() && device != device::cpu());
    // A device that someone holds is not one that the machine has.
    assert_eq!(
        device::functional(Kind::Cuda),
        device::probe(Kind::Cuda).is_ok_and(|found| found.iter().any(|d| d.is_hardware))
    );
}
