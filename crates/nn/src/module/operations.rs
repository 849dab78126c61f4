//! What is done to a whole model: move, cast, count, freeze, fork.

use tensor_core::{DType, Device, Error, Param, Result, Tensor};

use super::{Leaf, LeafMut, Module, Visitor, VisitorMut};

/// The path of the module entered last, in one buffer.
#[derive(Default)]
pub(crate) struct Path {
    text: String,
    ends: Vec<usize>,
}

impl Path {
    pub(crate) fn enter(&mut self, name: &str) {
        self.ends.push(self.text.len());
        self.push(name);
    }

    pub(crate) fn exit(&mut self) {
        self.text.truncate(self.ends.pop().expect("invariant: every exit follows an enter"));
    }

    /// The path of a leaf in that module.
    pub(crate) fn of(&mut self, leaf: &str) -> String {
        self.with(leaf, str::to_string)
    }

    pub(crate) fn with<R>(&mut self, leaf: &str, f: impl FnOnce(&str) -> R) -> R {
        let end = self.text.len();
        self.push(leaf);
        let result = f(&self.text);
        self.text.truncate(end);
        result
    }

    fn push(&mut self, name: &str) {
        if !self.text.is_empty() && !name.is_empty() {
            self.text.push('.');
        }
        self.text.push_str(name);
    }
}

/// Visits every leaf with its path.
pub(crate) fn each_leaf<'a>(model: &'a (impl Module + ?Sized), f: impl FnMut(&mut Path, &str, Leaf<'a>)) {
    struct Each<F>(Path, F);
    impl<'a, F: FnMut(&mut Path, &str, Leaf<'a>)> Visitor<'a> for Each<F> {
        fn leaf(&mut self, name: &str, leaf: Leaf<'a>) {
            (self.1)(&mut self.0, name, leaf);
        }
        fn enter(&mut self, name: &str, _: &dyn Fn() -> String) {
            self.0.enter(name);
        }
        fn exit(&mut self) {
            self.0.exit();
        }
    }
    model.visit(&mut Each(Path::default(), f));
}

/// Visits every leaf for writing, with its path.
pub(crate) fn each_leaf_mut<'a>(model: &'a mut (impl Module + ?Sized), f: impl FnMut(&mut Path, &str, LeafMut<'a>)) {
    struct Each<F>(Path, F);
    impl<'a, F: FnMut(&mut Path, &str, LeafMut<'a>)> VisitorMut<'a> for Each<F> {
        fn leaf(&mut self, name: &str, leaf: LeafMut<'a>) {
            (self.1)(&mut self.0, name, leaf);
        }
        fn enter(&mut self, name: &str) {
            self.0.enter(name);
        }
        fn exit(&mut self) {
            self.0.exit();
        }
    }
    model.visit_mut(&mut Each(Path::default(), f));
}

pub(super) fn parameters(model: &(impl Module + ?Sized)) -> Vec<&Param> {
    let mut found: Vec<&Param> = Vec::new();
    each_leaf(model, |_, _, leaf| {
        if let Leaf::Param(param) = leaf
            && !found.iter().any(|p| p.id() == param.id())
        {
            found.push(param);
        }
    });
    found
}

pub(super) fn named_parameters(model: &(impl Module + ?Sized)) -> Vec<(String, &Param)> {
    let mut found = Vec::new();
    each_leaf(model, |path, name, leaf| {
        if let Leaf::Param(param) = leaf {
            found.push((path.of(name), param));
        }
    });
    found
}

pub(super) fn n_parameters(model: &(impl Module + ?Sized)) -> usize {
    parameters(model).iter().map(|p| p.len()).sum()
}

pub(super) fn set_trainable(model: &mut (impl Module + ?Sized), trainable: bool) {
    each_leaf_mut(model, |_, _, leaf| {
        if let LeafMut::Param(param) = leaf {
            param.set_trainable(trainable);
        }
    });
}

/// Gives parameters of one identity one value.
struct Ties(Vec<(u64, Tensor)>);

impl Ties {
    pub(super) fn new() -> Self {
        Self(Vec::new())
    }

    pub(super) fn value(&mut self, id: u64, make: impl FnOnce() -> Result<Tensor>) -> Result<Tensor> {
        if let Some((_, value)) = self.0.iter().find(|(known, _)| *known == id) {
            return Ok(value.clone());
        }
        let value = make()?;
        self.0.push((id, value.clone()));
        Ok(value)
    }
}

/// A copy of the model with every tensor replaced.
fn mapped<M: Module + Clone>(model: &M, f: impl Fn(&Tensor) -> Result<Tensor>) -> Result<M> {
    let mut model = model.clone();
    let mut ties = Ties::new();
    let mut result = Ok(());
    each_leaf_mut(&mut model, |path, name, leaf| {
        if result.is_err() {
            return;
        }
        result = (|| match leaf {
            LeafMut::Param(param) => {
                *param.value_mut() = ties.value(param.id(), || f(param.value()))?;
                Ok(())
            }
            LeafMut::Buffer(buffer) => {
                buffer.replace(f(&buffer.get())?);
                Ok(())
            }
            LeafMut::Constant(tensor) => {
                *tensor = f(tensor)?;
                Ok(())
            }
            LeafMut::Mode(_) => Ok(()),
        })()
        .map_err(|e: Error| e.at(path.of(name)));
    });
    result.map(|()| model)
}

pub(super) fn to<M: Module + Clone>(model: &M, device: &Device) -> Result<M> {
    mapped(model, |x| x.to(device))
}

pub(super) fn cast<M: Module + Clone>(model: &M, dtype: DType) -> Result<M> {
    if !dtype.is_float() {
        return Err(Error::dtype("cast", format!("a model can only be cast to a float dtype: dtype {dtype}")));
    }
    mapped(model, |x| if x.dtype().is_float() { x.cast(dtype) } else { Ok(x.clone()) })
}

pub(super) fn fork<M: Module + Clone>(model: &M) -> M {
    let mut model = model.clone();
    let mut ids: Vec<(u64, u64)> = Vec::new();
    each_leaf_mut(&mut model, |_, _, leaf| {
        if let LeafMut::Param(param) = leaf {
            let old = param.id();
            match ids.iter().find(|(known, _)| *known == old) {
                Some(&(_, new)) => {
                    param.set_id(Some(new));
                }
                None => ids.push((old, param.set_id(None))),
            }
        }
    });
    model
}
