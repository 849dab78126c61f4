//! The functions that the suite calls: each named, with a way to draw calls of it.

use std::sync::OnceLock;

use super::case::{Call, Subject};
use super::draw::Draw;
use tensor_core::DType;

mod elementwise;

/// Every subject.
pub fn all() -> &'static [Subject] {
    static ALL: OnceLock<Vec<Subject>> = OnceLock::new();
    ALL.get_or_init(|| {
        let families = [elementwise::subjects()];
        families.into_iter().flatten().collect()
    })
}

/// The subject of that name.
pub fn named(name: &str) -> Option<&'static Subject> {
    all().iter().find(|subject| subject.name == name)
}

/// A subject by its name, its signature and how it is called.
fn subject(
    name: &'static str,
    signature: impl Into<String>,
    draw: impl Fn(&mut Draw<'_>, DType) -> Call + Send + Sync + 'static,
) -> Subject {
    Subject { name, signature: signature.into(), draw: Box::new(draw) }
}
