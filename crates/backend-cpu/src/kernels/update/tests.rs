use smallvec::smallvec;
use tensor_core::expr::build;
use tensor_core::{DType, Device, Target, Tensor, UpdateRule};

use crate::test_device;

/// Momentum: v ← 0.9·v + g, p ← p − 0.1·v.
fn momentum() -> UpdateRule {
    UpdateRule { outputs: smallvec![build(|[p, g, v]| p - (v * 0.9 + g) * 0.1), build(|[_p, g, v]| v * 0.9 + g)] }
}

fn sample(shape: &[usize], seed: usize, device: &Device, dtype: DType) -> Tensor {
    let n: usize = shape.iter().product();
    let values: Vec<f64> = (0..n).map(|i| ((i * 31 + seed * 17) % 101) as f64 / 8.0 - 6.0).collect();
    Tensor::from_vec(values, shape, device).and_then(|x| x.cast(dtype)).expect("made")
}

fn values(x: &Tensor) -> Vec<f64> {
    x.cast(DType::F64).and_then(|x| x.to_vec()).expect("values")
}

fn storage(x: &Tensor) -> *const u8 {
    crate::storage::buffer(x).bytes().as_ptr()
}

#[test]
fn all_targets_take_their_new_values_in_place() {
    let (device, control) = test_device("sim", 0);
    for dtype in [DType::F64, DType::F32] {
        let shapes: [&[usize]; 6] = [&[3], &[0], &[], &[70, 33], &[1025], &[400, 300]];
        let mut params: Vec<Tensor> = shapes.iter().map(|s| sample(s, 1, &device, dtype)).collect();
        // The gradients come in any layout.
        let grads: Vec<Tensor> = shapes
            .iter()
            .map(|s| sample(&s.iter().rev().copied().collect::<Vec<_>>(), 2, &device, dtype))
            .map(|g| if g.rank() == 2 { g.t().expect("a matrix") } else { g })
            .collect();
        let mut states: Vec<[Tensor; 1]> = shapes.iter().map(|s| [sample(s, 3, &device, dtype)]).collect();
        let before: Vec<_> = (0..6).map(|i| (values(&params[i]), values(&grads[i]), values(&states[i][0]))).collect();
        let places: Vec<_> = params.iter().chain(states.iter().flatten()).map(storage).collect();
        let (n_allocated, n_ops) = (control.n_allocations(), control.n_ops());
        let mut targets: Vec<Target<'_>> = params
            .iter_mut()
            .zip(&grads)
            .zip(&mut states)
            .map(|((param, grad), state)| Target { param, grad, state })
            .collect();
        device.backend().update(&momentum(), &mut targets).expect("updates");
        assert_eq!(control.n_ops() - n_ops, 1, "one call for all");
        assert_eq!(control.n_allocations(), n_allocated, "in place");
        assert_eq!(params.iter().chain(states.iter().flatten()).map(storage).collect::<Vec<_>>(), places);
        for (i, (p, g, v)) in before.into_iter().enumerate() {
            let (new_p, new_v) = (values(&params[i]), values(&states[i][0]));
            for (k, ((p, g), v)) in p.into_iter().zip(g).zip(v).enumerate() {
                let v = v * 0.9 + g;
                let near = |got: f64, want: f64| (got - want).abs() <= 4.0 * dtype.epsilon() * want.abs().max(1.0);
                assert!(near(new_v[k], v) && near(new_p[k], p - v * 0.1), "target {i}, element {k}");
            }
        }
    }
}

#[test]
fn clones_and_views_keep_their_values() {
    let (device, _) = test_device("sim", 0);
    let rule = UpdateRule { outputs: smallvec![build(|[p, g]| p - g)] };
    let mut param = sample(&[4, 5], 1, &device, DType::F32);
    let (clone, row) = (param.clone(), param.narrow(0, 1, 1).expect("a row"));
    let (kept, kept_row) = (values(&clone), values(&row));
    let grad = sample(&[4, 5], 2, &device, DType::F32);
    let step = |param: &mut Tensor| {
        let mut targets = [Target { param, grad: &grad, state: &mut [] }];
        device.backend().update(&rule, &mut targets).expect("updates");
    };
    step(&mut param);
    assert_eq!((values(&clone), values(&row)), (kept.clone(), kept_row));
    let minus = |p: Vec<f64>| p.iter().zip(values(&grad)).map(|(p, g)| p - g).collect::<Vec<_>>();
    assert_eq!(values(&param), minus(kept));
    // A transposed parameter keeps its shape; a gradient that is the parameter itself is read before it is written.
    let mut turned = sample(&[5, 4], 3, &device, DType::F32).t().expect("a matrix");
    let kept = values(&turned);
    step(&mut turned);
    assert_eq!(values(&turned), minus(kept));
    let mut itself = sample(&[2000], 3, &device, DType::F32);
    let grad = itself.clone();
    let mut targets = [Target { param: &mut itself, grad: &grad, state: &mut [] }];
    device.backend().update(&rule, &mut targets).expect("updates");
    assert!(values(&itself).iter().all(|&v| v == 0.0));
}

#[test]
fn sixteen_bit_parameters_have_states_of_f32() {
    let (device, _) = test_device("sim", 0);
    let wide = DType::F32;
    let rule = UpdateRule {
        outputs: smallvec![
            build(|[p, g, v]| (p.cast(wide) - (v * 0.5 + g.cast(wide))).cast(DType::BF16)),
            build(|[_p, g, v]| v * 0.5 + g.cast(wide)),
        ],
    };
    let mut param = sample(&[1500], 1, &device, DType::BF16);
    let grad = sample(&[1500], 2, &device, DType::BF16);
    let mut state = [sample(&[1500], 3, &device, wide)];
    let before = (values(&param), values(&grad), values(&state[0]));
    let mut targets = [Target { param: &mut param, grad: &grad, state: &mut state }];
    device.backend().update(&rule, &mut targets).expect("updates");
    let (new_p, new_v) = (values(&param), values(&state[0]));
    for k in 0..1500 {
        let v = before.2[k] * 0.5 + before.1[k];
        assert_eq!((new_p[k], new_v[k]), (half::bf16::from_f64(before.0[k] - v).to_f64(), v));
    }
    assert_eq!((param.dtype(), state[0].dtype()), (DType::BF16, wide));
}

#[test]
fn nothing_changes_when_it_fails() {
    let (device, control) = test_device("sim", 0);
    let mut params = [sample(&[100], 1, &device, DType::F32), sample(&[200], 2, &device, DType::F32)];
    let shared = params.clone();
    let grads = [sample(&[100], 3, &device, DType::F32), sample(&[200], 4, &device, DType::F32)];
    let before: Vec<_> = params.iter().map(values).collect();
    let rule = UpdateRule { outputs: smallvec![build(|[p, g]| p - g)] };
    let mut update = |rule: &UpdateRule| {
        let mut targets: Vec<Target<'_>> =
            params.iter_mut().zip(&grads).map(|(param, grad)| Target { param, grad, state: &mut [] }).collect();
        device.backend().update(rule, &mut targets)
    };
    // Both parameters are shared: the second one's copy fails.
    control.fail_allocation_after(1);
    assert!(update(&rule).expect_err("no memory").is_out_of_memory());
    let error = update(&UpdateRule { outputs: smallvec![build(|[p, g]| (p - g).cast(DType::F64))] });
    assert_eq!(
        error.expect_err("a wrong type").to_string(),
        "update: the rule must give param and states in their types: target 0 [F32], rule [F64]"
    );
    assert_eq!(params.iter().map(values).collect::<Vec<_>>(), before);
    assert!(params.iter().zip(&shared).all(|(a, b)| a.is_same(b)));
}
