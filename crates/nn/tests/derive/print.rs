//! How a model prints.

use nn::{Module, Param, chain, tree};

use crate::{Dense, Norm, param};

#[derive(Module, Clone, Debug)]
struct Net {
    encoder: Vec<Dense>,
    norm: Norm,
    act: Act,
    head: Option<Dense>,
    tied: Param,
}

#[derive(Module, Clone, Debug)]
enum Act {
    Relu,
    Learned(Dense),
}

#[derive(Module, Clone, Debug)]
#[module(display = false)]
struct Silent(Param);

impl std::fmt::Display for Silent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("its own text")
    }
}

#[track_caller]
fn check(model: &dyn std::fmt::Display, expected: &str) {
    let got: Vec<String> = model.to_string().lines().map(str::to_string).collect();
    assert_eq!(got, expected.trim_matches('\n').lines().map(str::trim_end).collect::<Vec<_>>(), "\n{model}");
}

#[test]
fn a_model_is_a_tree() {
    let shared = param(3);
    let mut net = Net {
        encoder: vec![Dense::new(40, 30), Dense { bias: None, ..Dense::new(30, 3) }],
        norm: Norm { weight: shared.clone(), ..Norm::new(3) },
        act: Act::Relu,
        head: None,
        tied: shared,
    };
    check(
        &net,
        "
Net                     1,323  tied [3] (tied)
  encoder               1,320
    0: Dense(40 => 30)  1,230  weight [30, 40], bias [30]
    1: Dense(30 => 3)      90  weight [3, 30]
  norm: Norm                3  weight [3], running [3] (buffer), table [3] (constant)
  act: Act::Relu
1,323 parameters",
    );
    net.act = Act::Learned(Dense::new(1, 2));
    net.encoder.freeze();
    net.encoder.truncate(1);
    check(
        &net,
        "
Net                     1,237  tied [3] (tied)
  encoder               1,230
    0: Dense(40 => 30)  1,230  weight [30, 40] (frozen), bias [30] (frozen)
  norm: Norm                3  weight [3], running [3] (buffer), table [3] (constant)
  act: Dense(1 => 2)        4  weight [2, 1], bias [2]
1,237 parameters, 1,230 of them frozen",
    );
}

#[test]
fn chains_print_like_structs() {
    check(
        &chain![Dense::new(1, 2), Silent(param(1))],
        "
Chain               5
  0: Dense(1 => 2)  4  weight [2, 1], bias [2]
  1: Silent         1  0 [1]
5 parameters",
    );
    check(&Silent(param(1)), "its own text");
    check(&tree(&Silent(param(1))), "Silent  1  0 [1]\n1 parameter");
}
