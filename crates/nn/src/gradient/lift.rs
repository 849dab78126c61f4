//! Lifting: a copy of the model whose trainable leaves are traced and whose layers train.

use tensor_core::{Error, Param, Result, Tensor};

use crate::autodiff::Session;
use crate::module::Path;
use crate::{LeafMut, Mode, Module, VisitorMut};

/// What was lifted, in the model's order, each identity once.
#[derive(Default)]
pub(super) struct Lifted {
    pub(super) session: Option<Session>,
    params: Vec<Lift>,
    largest_id: u64,
    /// The parameters' paths one after another.
    paths: String,
    path: Path,
    pub(super) n_buffers: usize,
    error: Option<Error>,
}

struct Lift {
    id: u64,
    path_end: usize,
    original: Tensor,
    traced: Tensor,
}

/// Lifts a copy of a model in place.
pub(super) fn lift(model: &mut impl Module) -> Result<Lifted> {
    let mut lifted = Lifted::default();
    model.visit_mut(&mut lifted);
    match lifted.error.take() {
        Some(error) => Err(error),
        None => Ok(lifted),
    }
}

impl Lifted {
    pub(super) fn n_params(&self) -> usize {
        self.params.len()
    }

    /// Identities and paths, in order.
    pub(super) fn ids(&self) -> impl Iterator<Item = (u64, &str)> {
        let mut start = 0;
        self.params.iter().map(move |lift| {
            let path = &self.paths[start..lift.path_end];
            start = lift.path_end;
            (lift.id, path)
        })
    }

    fn param(&mut self, name: &str, param: &mut Param) -> Result<()> {
        if !param.is_trainable() || !param.dtype().is_float() {
            return Ok(());
        }
        // Identities mostly ascend: a larger one is new.
        if param.id() <= self.largest_id
            && let Some(i) = self.params.iter().position(|lift| lift.id == param.id())
        {
            let first = &self.params[i];
            if !first.original.is_same(param.value()) {
                return Err(self.two_values(i, name));
            }
            *param.value_mut() = first.traced.clone();
            return Ok(());
        }
        let session = self.session.get_or_insert_with(|| Session::open(&param.device()));
        if param.place().physical() != session.base() {
            let base = session.base().clone();
            return Err(self.two_devices(&base, name, param));
        }
        let traced = session.lift(param.value());
        let original = std::mem::replace(param.value_mut(), traced.clone());
        self.largest_id = self.largest_id.max(param.id());
        self.path.with(name, |path| self.paths.push_str(path));
        self.params.push(Lift { id: param.id(), path_end: self.paths.len(), original, traced });
        Ok(())
    }

    fn path_of(&self, i: usize) -> &str {
        self.ids().nth(i).map_or("", |(_, path)| path)
    }

    #[cold]
    fn two_values(&mut self, first: usize, name: &str) -> Error {
        let path = self.path.of(name);
        Error::gradient(
            "with_gradient",
            format!(
                "one parameter has two values: at {} and at {path}; tie them by cloning one, or give one an identity of \
                 its own with .fork()",
                self.path_of(first)
            ),
        )
    }

    #[cold]
    fn two_devices(&mut self, base: &tensor_core::Device, name: &str, param: &Param) -> Error {
        let path = self.path.of(name);
        Error::device(
            "with_gradient",
            format!(
                "parameters are on different devices: {} {base}, {path} {}; move the model with .to(&device)",
                self.path_of(0),
                param.device()
            ),
        )
    }
}

impl<'a> VisitorMut<'a> for Lifted {
    fn leaf(&mut self, name: &str, leaf: LeafMut<'a>) {
        if self.error.is_some() {
            return;
        }
        match leaf {
            LeafMut::Param(param) => self.error = self.param(name, param).err(),
            LeafMut::Buffer(buffer) => {
                buffer.lift();
                self.n_buffers += 1;
            }
            LeafMut::Constant(_) => {}
            LeafMut::Mode(mode) => *mode = Mode::TRAINING,
        }
    }

    fn enter(&mut self, name: &str) {
        self.path.enter(name);
    }

    fn exit(&mut self) {
        self.path.exit();
    }
}
