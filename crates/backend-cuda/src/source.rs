//! The text of a kernel: a skeleton from `kernels/` with its placeholders filled in.

/// Text in which `{{NAME}}` stands for what is put there.
#[derive(Clone, Debug)]
pub(crate) struct Source(String);

impl Source {
    /// A skeleton.
    pub(crate) fn new(skeleton: &str) -> Self {
        Self(skeleton.to_string())
    }

    /// Fills in every occurrence of a placeholder.
    pub(crate) fn put(self, name: &str, text: impl AsRef<str>) -> Self {
        let place = format!("{{{{{name}}}}}");
        debug_assert!(self.0.contains(&place), "invariant: the skeleton has {place}");
        Self(self.0.replace(&place, text.as_ref()))
    }

    /// The finished text without its lines of comment: these are for readers, and the driver takes nothing but ASCII.
    pub(crate) fn finish(self) -> String {
        debug_assert!(!self.0.contains("{{"), "invariant: every placeholder is filled in:\n{}", self.0);
        let is_code = |line: &&str| !line.trim_start().starts_with("//");
        self.0.split_inclusive('\n').filter(is_code).collect()
    }
}
