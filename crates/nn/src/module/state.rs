//! A model's tensors by path, out and back in.

use tensor_core::{Device, Error, Result, Tensor, zip};

use super::operations::{each_leaf, each_leaf_mut};
use super::{Leaf, LeafMut, Module};

fn value(leaf: &Leaf<'_>) -> Option<Tensor> {
    match leaf {
        Leaf::Param(param) => Some(param.value().clone()),
        Leaf::Buffer(buffer) => Some(buffer.get()),
        Leaf::Constant(tensor) => Some((*tensor).clone()),
        Leaf::Mode(_) => None,
    }
}

pub(super) fn state_dict(model: &(impl Module + ?Sized)) -> Vec<(String, Tensor)> {
    let mut state = Vec::new();
    each_leaf(model, |path, name, leaf| {
        if let Some(value) = value(&leaf) {
            state.push((path.of(name), value));
        }
    });
    state
}

pub(super) fn load_state_dict(model: &mut (impl Module + ?Sized), state: &[(String, Tensor)]) -> Result<()> {
    let mut new = check(model, state)?.into_iter();
    each_leaf_mut(model, |_, _, leaf| match leaf {
        LeafMut::Param(param) => *param.value_mut() = new.next().expect("invariant: one value per leaf"),
        LeafMut::Buffer(buffer) => buffer.replace(new.next().expect("invariant: one value per leaf")),
        LeafMut::Constant(tensor) => *tensor = new.next().expect("invariant: one value per leaf"),
        LeafMut::Mode(_) => {}
    });
    Ok(())
}

/// The new value of every leaf in order, or what does not fit.
fn check(model: &(impl Module + ?Sized), state: &[(String, Tensor)]) -> Result<Vec<Tensor>> {
    let mut unused: Vec<bool> = vec![true; state.len()];
    let mut missing = Vec::new();
    let mut values = Vec::new();
    let mut tied = Tied::default();
    let mut result = Ok(());
    each_leaf(model, |path, name, leaf| {
        let Some(old) = value(&leaf) else { return };
        let path = path.of(name);
        // Usually the order is the model's own.
        let at = values.len();
        let position = match state.get(at) {
            Some((p, _)) if *p == path => Some(at),
            _ => state.iter().position(|(p, _)| *p == path),
        };
        let Some(position) = position else {
            missing.push(path);
            return;
        };
        unused[position] = false;
        if result.is_err() {
            return;
        }
        let new = &state[position].1;
        let loaded = fits(&path, &old, new).and_then(|()| match leaf {
            Leaf::Param(param) => tied.value(param.id(), &path, new, &old.device()),
            _ => new.to(&old.device()),
        });
        match loaded {
            Ok(value) => values.push(value),
            Err(error) => result = Err(error),
        }
    });
    let unexpected: Vec<&str> =
        state.iter().zip(unused).filter_map(|((p, _), unused)| unused.then_some(&**p)).collect();
    match (&missing[..], &unexpected[..]) {
        ([], []) => result.map(|()| values),
        ([], _) => Err(Error::format("load_state_dict", format!("the model has no such path: {}", some(&unexpected)))),
        ([..], []) => Err(Error::format("load_state_dict", format!("paths are missing: {}", some(&missing)))),
        _ => Err(Error::format(
            "load_state_dict",
            format!("paths are missing: {}; the model does not have: {}", some(&missing), some(&unexpected)),
        )),
    }
}

/// What was loaded for each identity, and from where.
#[derive(Default)]
struct Tied(Vec<(u64, String, Tensor)>);

impl Tied {
    fn value(&mut self, id: u64, path: &str, new: &Tensor, device: &Device) -> Result<Tensor> {
        let Some((_, first, value)) = self.0.iter().find(|(known, ..)| *known == id) else {
            let value = new.to(device)?;
            self.0.push((id, path.to_string(), value.clone()));
            return Ok(value);
        };
        if !is_equal(value, &new.to(device)?)? {
            return Err(Error::value(
                "load_state_dict",
                format!("a tied parameter has two values: at {first} and at {path}"),
            ));
        }
        Ok(value.clone())
    }
}

fn is_equal(a: &Tensor, b: &Tensor) -> Result<bool> {
    if a.is_same(b) {
        return Ok(true);
    }
    zip(a, b, |a, b| a.eq(b).or(a.is_nan().and(b.is_nan())))?.all(..)?.item()
}

fn fits(path: &str, old: &Tensor, new: &Tensor) -> Result<()> {
    if old.shape() != new.shape() {
        return Err(Error::shape(
            "load_state_dict",
            format!("shapes differ at {path}: model {}, state {}", old.shape(), new.shape()),
        ));
    }
    if old.dtype() != new.dtype() {
        return Err(Error::dtype(
            "load_state_dict",
            format!(
                "dtypes differ at {path}: model {}, state {}; cast the model with .cast(..)",
                old.dtype(),
                new.dtype()
            ),
        ));
    }
    Ok(())
}

/// The first few of a list of paths.
fn some(paths: &[impl AsRef<str>]) -> String {
    const SHOWN: usize = 5;
    let mut text = paths.iter().take(SHOWN).map(AsRef::as_ref).collect::<Vec<_>>().join(", ");
    if paths.len() > SHOWN {
        text.push_str(&format!(" and {} more", paths.len() - SHOWN));
    }
    text
}
