//! Which leaves are found, under which paths.
// What is left out of a model is never read here.
#![allow(dead_code)]

use std::marker::PhantomData;

use nn::{Buffer, Layer, Mode, Module, Param, chain};
use tensor_core::Tensor;

use crate::{Dense, Norm, constant, param};

#[track_caller]
fn check(model: &impl Module, expected: &[&str]) {
    let paths: Vec<String> = model.state_dict().into_iter().map(|(path, _)| path).collect();
    assert_eq!(paths, expected);
    let parameters: Vec<String> = model.named_parameters().into_iter().map(|(path, _)| path).collect();
    let is_parameter = |path: &&&str| parameters.iter().any(|p| p == **path);
    assert_eq!(expected.iter().filter(is_parameter).count(), parameters.len());
}

#[derive(Module, Clone, Debug)]
struct Everything {
    dense: Dense,
    norms: Vec<Norm>,
    pair: (Dense, Param),
    array: [Param; 2],
    absent: Option<Dense>,
    boxed: Box<Dense>,
    dynamic: Box<dyn Layer>,
    nested: Vec<Vec<Option<Dense>>>,
    r#type: Param,
    name: String,
    dropout: f64,
    sizes: Vec<usize>,
    #[module(skip)]
    left_out: Skipped,
}

/// Not a module.
#[derive(Clone, Debug)]
struct Skipped {
    param: Param,
}

#[test]
fn fields_of_every_kind() {
    let model = Everything {
        dense: Dense { bias: None, ..Dense::new(2, 3) },
        norms: vec![Norm::new(2), Norm::new(2)],
        pair: (Dense::new(2, 3), param(1)),
        array: [param(1), param(2)],
        absent: None,
        boxed: Box::new(Dense::new(1, 1)),
        dynamic: Box::new(Dense::new(1, 1)),
        nested: vec![vec![], vec![None, Some(Dense::new(1, 1))]],
        r#type: param(1),
        name: "everything".to_string(),
        dropout: 0.5,
        sizes: vec![1, 2],
        left_out: Skipped { param: param(1) },
    };
    check(
        &model,
        &[
            "dense.weight",
            "norms.0.weight",
            "norms.0.running",
            "norms.0.table",
            "norms.1.weight",
            "norms.1.running",
            "norms.1.table",
            "pair.0.weight",
            "pair.0.bias",
            "pair.1",
            "array.0",
            "array.1",
            "boxed.weight",
            "boxed.bias",
            "dynamic.weight",
            "dynamic.bias",
            "nested.1.1.weight",
            "nested.1.1.bias",
            "type",
        ],
    );
    check(
        &(0..40).map(|_| param(1)).collect::<Vec<_>>(),
        &(0..40).map(|i| i.to_string()).collect::<Vec<_>>().iter().map(String::as_str).collect::<Vec<_>>(),
    );
    check(&chain![Dense::new(1, 1), Norm::new(1)], &["0.weight", "0.bias", "1.weight", "1.running", "1.table"]);
    check(&param(1), &[""]);
}

#[derive(Module, Clone, Debug)]
struct Tuple(Dense, #[module(skip)] Skipped, Param);

#[derive(Module, Clone, Debug)]
struct Unit;

#[derive(Module, Clone, Debug)]
enum Either {
    One(Dense),
    Two(Dense, Param),
    Named { scale: Param },
    Nothing,
    Ignored(#[module(skip)] Skipped),
}

#[test]
fn tuples_units_and_enums() {
    check(&Tuple(Dense::new(1, 1), Skipped { param: param(1) }, param(1)), &["0.weight", "0.bias", "2"]);
    check(&Unit, &[]);
    // The only field of a variant lends its own paths.
    check(&Either::One(Dense::new(1, 1)), &["weight", "bias"]);
    check(&Either::Two(Dense::new(1, 1), param(1)), &["0.weight", "0.bias", "1"]);
    check(&Either::Named { scale: param(1) }, &["scale"]);
    check(&Either::Nothing, &[]);
    check(&Either::Ignored(Skipped { param: param(1) }), &[]);
}

#[derive(Module, Clone, Debug)]
struct Residual<M> {
    inner: M,
    scale: Param,
}

#[derive(Module, Clone, Debug)]
struct Generic<A: Clone, B, const N: usize, U = ()>
where
    B: std::fmt::Debug,
{
    first: Vec<A>,
    second: [Option<B>; N],
    marker: PhantomData<U>,
    #[module(skip)]
    unused: Option<U>,
}

#[test]
fn generics() {
    check(&Residual { inner: Dense::new(1, 1), scale: param(1) }, &["inner.weight", "inner.bias", "scale"]);
    let model = Generic::<Dense, Residual<Param>, 2, Skipped> {
        first: vec![Dense::new(1, 1)],
        second: [None, Some(Residual { inner: param(1), scale: param(1) })],
        marker: PhantomData,
        unused: None,
    };
    check(&model, &["first.0.weight", "first.0.bias", "second.1.inner", "second.1.scale"]);
}

/// Leaves are visited for writing in the order in which they are read.
#[test]
fn reading_and_writing_agree() {
    let mut model = vec![Norm::new(1), Norm::new(2)];
    let ids: Vec<u64> = model.parameters().iter().map(|p| p.id()).collect();
    model.freeze();
    assert!(model.parameters().iter().all(|p| !p.is_trainable()));
    model.thaw();
    assert_eq!(model.parameters().iter().filter(|p| p.is_trainable()).map(|p| p.id()).collect::<Vec<_>>(), ids);
    assert_eq!(model.n_parameters(), 3);
}

/// A model written out by hand, for comparison with the derive.
struct ByHand {
    weight: Param,
    rest: (Buffer, Tensor, Mode),
}

impl Module for ByHand {
    fn describe(&self) -> String {
        "ByHand".to_string()
    }

    fn visit<'a>(&'a self, visitor: &mut dyn nn::Visitor<'a>) {
        self.weight.visit_as("weight", visitor);
        self.rest.visit_as("rest", visitor);
    }

    fn visit_mut<'a>(&'a mut self, visitor: &mut dyn nn::VisitorMut<'a>) {
        self.weight.visit_as_mut("weight", visitor);
        self.rest.visit_as_mut("rest", visitor);
    }
}

#[test]
fn by_hand() {
    let model = ByHand { weight: param(1), rest: (Buffer::new(constant(1)), constant(1), Mode::default()) };
    check(&model, &["weight", "rest.0", "rest.1"]);
}
