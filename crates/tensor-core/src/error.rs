//! The one error type of the workspace: `{op}: {rule that was broken}: {operand} {value}[; {remedy}]`.

use std::borrow::Cow;
use std::error::Error as StdError;
use std::fmt;

/// The result of every Consort call that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong, in one word; ask with the predicates of [`Error`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// Shapes, ranks or sizes do not fit.
    Shape,
    /// An element type that the operation does not take, or two that differ.
    DType,
    /// Operands on different devices, or a device that cannot be used.
    Device,
    /// An axis out of range or named twice.
    Axis,
    /// An index out of range.
    Index,
    /// A value outside its domain.
    Value,
    /// The device has no memory left, or its limit is reached.
    OutOfMemory,
    /// Something a backend or a build does not offer.
    Unsupported,
    /// The device stopped working.
    DeviceLost,
    /// The operating system refused to read or write.
    Io,
    /// A file that is not what it should be.
    Format,
    /// A gradient that cannot be taken.
    Gradient,
    /// A caller's own error, carried through.
    Other,
}

/// An error that names the operation, the broken rule, the operands with their values, and the remedy.
///
/// One word wide; cheap to return.
pub struct Error(Box<Inner>);

struct Inner {
    kind: ErrorKind,
    op: Cow<'static, str>,
    text: String,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $make:ident, $is:ident = $kind:ident;)*) => {
        impl Error {
            $(
                #[doc = concat!("An error of kind [`ErrorKind::", stringify!($kind), "`].")]
                #[cold]
                pub fn $make(op: impl Into<Cow<'static, str>>, text: impl Into<String>) -> Self {
                    Self::new(ErrorKind::$kind, op, text)
                }

                #[doc = concat!("Whether this is an error of kind [`ErrorKind::", stringify!($kind), "`].")]
                pub fn $is(&self) -> bool {
                    self.0.kind == ErrorKind::$kind
                }
            )*
        }
    };
}

kinds! {
    shape, is_shape = Shape;
    dtype, is_dtype = DType;
    device, is_device = Device;
    axis, is_axis = Axis;
    index, is_index = Index;
    value, is_value = Value;
    out_of_memory, is_out_of_memory = OutOfMemory;
    unsupported, is_unsupported = Unsupported;
    device_lost, is_device_lost = DeviceLost;
    io, is_io = Io;
    format, is_format = Format;
    gradient, is_gradient = Gradient;
    other, is_other = Other;
}

impl Error {
    /// An error of the given kind: `{op}: {text}`.
    #[cold]
    pub fn new(kind: ErrorKind, op: impl Into<Cow<'static, str>>, text: impl Into<String>) -> Self {
        Self(Box::new(Inner { kind, op: op.into(), text: text.into(), source: None }))
    }

    /// The same error with the cause that another library reported.
    pub fn with_source(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.0.source = Some(source.into());
        self
    }

    /// The same error, its operation prefixed by where it happened: a layer's path, a file's name.
    pub fn at(mut self, place: impl fmt::Display) -> Self {
        self.0.op = format!("{place}: {}", self.0.op).into();
        self
    }

    /// What went wrong.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The operation that failed.
    pub fn op(&self) -> &str {
        &self.0.op
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.op.is_empty() { f.write_str(&self.0.text) } else { write!(f, "{}: {}", self.0.op, self.0.text) }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")?;
        let mut source = self.source();
        while let Some(cause) = source {
            write!(f, ": {cause}")?;
            source = cause.source();
        }
        Ok(())
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source.as_deref().map(|source| source as _)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_one_word_with_predicates_and_a_cause() {
        assert_eq!(size_of::<Error>(), size_of::<usize>());
        let error = Error::shape("linear", "last axis must be 784: input [32, 28]").at("encoder.0");
        assert_eq!(error.to_string(), "encoder.0: linear: last axis must be 784: input [32, 28]");
        assert!(error.is_shape() && !error.is_dtype());
        assert_eq!((error.kind(), error.op()), (ErrorKind::Shape, "encoder.0: linear"));
        let cause = std::io::Error::other("disk full");
        let error = Error::io("save", "cannot write: path model.safetensors").with_source(cause);
        assert_eq!(error.source().map(|e| e.to_string()).as_deref(), Some("disk full"));
        assert_eq!(format!("{error:?}"), "save: cannot write: path model.safetensors: disk full");
        assert_eq!(Error::other("", "their own words").to_string(), "their own words");
    }
}
