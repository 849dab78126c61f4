//! What is done to whole models: fork, to, cast, state in and out.

use nn::{Module, Param};
use tensor_core::{DType, Tensor};

use crate::{Dense, Norm, constant, param};

fn ids(model: &impl Module) -> Vec<u64> {
    model.named_parameters().iter().map(|(_, p)| p.id()).collect()
}

fn numbers(x: &Tensor) -> Vec<f64> {
    x.cast(DType::F64).unwrap().to_vec().unwrap()
}

/// Three parameters, the last tied to the first.
fn tied() -> Vec<Param> {
    let shared = param(2);
    vec![shared.clone(), param(2), shared]
}

#[test]
fn clones_keep_identities_and_forks_do_not() {
    let model = tied();
    assert_eq!(ids(&model.clone()), ids(&model));
    let fork = model.fork();
    let (old, new) = (ids(&model), ids(&fork));
    assert_eq!(new[0], new[2], "what was tied still is");
    assert!(old.iter().all(|id| !new.contains(id)));
    assert!(fork[0].value().is_same(model[0].value()), "values are shared until one is trained");
}

#[test]
fn moves_and_casts_keep_ties_and_identities() {
    let (other, _) = backend_cpu::test_device("other", 0);
    let model = (tied(), Norm::new(2));
    let moved = model.to(&other).unwrap();
    assert_eq!(ids(&moved), ids(&model));
    assert!(moved.0[0].value().is_same(moved.0[2].value()));
    for (path, value) in moved.state_dict() {
        assert_eq!(value.device(), other, "{path}");
    }
    let back = moved.to(&other).unwrap();
    assert!(back.0[0].value().is_same(moved.0[0].value()), "nothing is copied that is there already");
    let half = model.cast(DType::F16).unwrap();
    assert_eq!(ids(&half), ids(&model));
    assert!(half.0[0].value().is_same(half.0[2].value()));
    assert!(half.state_dict().iter().all(|(_, value)| value.dtype() == DType::F16));
    assert_eq!(
        model.cast(DType::I32).unwrap_err().to_string(),
        "cast: a model can only be cast to a float dtype: dtype i32"
    );
    let ints = Tensor::zeros(2, (&backend_cpu::device(), DType::I64)).unwrap();
    assert_eq!(ints.clone().to_owned().dtype(), <Tensor as Module>::cast(&ints, DType::F32).unwrap().dtype());
}

#[test]
fn state_goes_out_and_comes_back() {
    let model = Norm::new(2);
    let mut other = Norm::new(2);
    let doubled: Vec<(String, Tensor)> =
        model.state_dict().into_iter().map(|(path, x)| (path, x.mul(2.0).unwrap())).collect();
    other.load_state_dict(&doubled).unwrap();
    assert_eq!(numbers(&other.weight), [0.0, 2.0]);
    assert_eq!(numbers(&other.running.get()), [0.0, 2.0]);
    assert_eq!(numbers(&other.table), [0.0, 2.0]);
    let reversed: Vec<(String, Tensor)> = model.state_dict().into_iter().rev().collect();
    other.load_state_dict(&reversed).unwrap();
    assert_eq!(numbers(&other.weight), [0.0, 1.0]);
    let mut pair = tied();
    let state = pair.state_dict();
    pair.load_state_dict(&state).unwrap();
    assert!(pair[0].value().is_same(pair[2].value()), "ties survive");
}

#[test]
fn a_state_that_does_not_fit_changes_nothing() {
    let named = |parts: &[(&str, Tensor)]| parts.iter().map(|(p, x)| (p.to_string(), x.clone())).collect::<Vec<_>>();
    let (w, b) = (Tensor::zeros([1, 2], (&backend_cpu::device(), DType::F64)).unwrap(), constant(1));
    let check = |state: Vec<(String, Tensor)>, expected: &str| {
        let mut model = Dense::new(2, 1);
        let error = model.load_state_dict(&state).unwrap_err();
        assert_eq!(error.to_string(), expected);
        assert_eq!(numbers(&model.weight), [0.0, 1.0]);
    };
    check(named(&[("weight", w.clone())]), "load_state_dict: paths are missing: bias");
    check(
        named(&[("weight", w.clone()), ("bias", b.clone()), ("scale", b.clone())]),
        "load_state_dict: the model has no such path: scale",
    );
    check(
        named(&[("weights", w.clone()), ("biases", b.clone())]),
        "load_state_dict: paths are missing: weight, bias; the model does not have: weights, biases",
    );
    check(
        named(&[("weight", constant(2)), ("bias", b.clone())]),
        "load_state_dict: shapes differ at weight: model [1, 2], state [2]",
    );
    check(
        named(&[("weight", w.cast(DType::F32).unwrap()), ("bias", b)]),
        "load_state_dict: dtypes differ at weight: model f64, state f32; cast the model with .cast(..)",
    );
    let mut pair = tied();
    let state = named(&[("0", constant(2)), ("1", constant(2)), ("2", constant(2).mul(2.0).unwrap())]);
    assert_eq!(
        pair.load_state_dict(&state).unwrap_err().to_string(),
        "load_state_dict: a tied parameter has two values: at 0 and at 2"
    );
}
