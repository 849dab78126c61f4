//! The arguments of a case, as the table writes them.

use consort::{DType, Number, PoolOptions, Result};
use serde_json::Value;
use tensor_core::{ConvOptions, ConvTransposeOptions, Dims, IntoAxes, Padding};

/// An op's arguments by name.
pub struct Args(pub(super) Value);

/// Axes as they are written: all, one, or a list.
pub enum Axes {
    /// `..`
    All,
    /// An integer.
    One(i64),
    /// A list.
    List(Vec<i64>),
}

impl IntoAxes for Axes {
    fn resolve_in_order(self, op: &'static str, rank: usize) -> Result<Dims> {
        match self {
            Self::All => (..).resolve_in_order(op, rank),
            Self::One(axis) => axis.resolve_in_order(op, rank),
            Self::List(axes) => axes.resolve_in_order(op, rank),
        }
    }
}

/// The dtype of that name.
pub(super) fn dtype(name: &str) -> DType {
    *DType::ALL.iter().find(|d| d.name() == name).unwrap_or_else(|| panic!("{name} is a dtype"))
}

fn number(value: &Value) -> Number {
    value.as_i64().map_or_else(|| Number::Float(value.as_f64().expect("a number")), Number::Int)
}

impl Args {
    /// Whether there is such an argument.
    pub fn has(&self, key: &str) -> bool {
        !self.0[key].is_null()
    }

    /// An integer.
    pub fn int(&self, key: &str) -> i64 {
        self.0[key].as_i64().unwrap_or_else(|| panic!("{key} is an integer in {}", self.0))
    }

    /// A size.
    pub fn size(&self, key: &str) -> usize {
        self.int(key) as usize
    }

    /// A float.
    pub fn float(&self, key: &str) -> f64 {
        self.0[key].as_f64().unwrap_or_else(|| panic!("{key} is a number in {}", self.0))
    }

    /// Whether the argument is there and true.
    pub fn is(&self, key: &str) -> bool {
        self.0[key].as_bool().unwrap_or(false)
    }

    /// A text.
    pub fn text(&self, key: &str) -> &str {
        self.0[key].as_str().unwrap_or_else(|| panic!("{key} is a text in {}", self.0))
    }

    /// A number, an integer where it is written as one.
    pub fn number(&self, key: &str) -> Number {
        number(&self.0[key])
    }

    fn list(&self, key: &str) -> impl Iterator<Item = &Value> {
        self.0[key].as_array().unwrap_or_else(|| panic!("{key} is a list in {}", self.0)).iter()
    }

    /// Numbers.
    pub fn numbers(&self, key: &str) -> Vec<Number> {
        self.list(key).map(number).collect()
    }

    /// Integers.
    pub fn ints(&self, key: &str) -> Vec<i64> {
        self.list(key).map(|v| v.as_i64().expect("an integer")).collect()
    }

    /// Sizes.
    pub fn sizes(&self, key: &str) -> Vec<usize> {
        self.ints(key).into_iter().map(|n| n as usize).collect()
    }

    /// Pairs of sizes.
    pub fn pairs(&self, key: &str) -> Vec<(usize, usize)> {
        let size = |v: &Value| v.as_u64().expect("a size") as usize;
        self.list(key).map(|pair| (size(&pair[0]), size(&pair[1]))).collect()
    }

    /// Axes.
    pub fn axes(&self, key: &str) -> Axes {
        match &self.0[key] {
            Value::String(_) => Axes::All,
            Value::Array(_) => Axes::List(self.ints(key)),
            _ => Axes::One(self.int(key)),
        }
    }

    /// These arguments with one of them made absurd, in every way that keeps its kind.
    pub fn distorted(&self) -> Vec<(String, Args)> {
        const NUMBERS: [i64; 5] = [-99, -1, 0, 7, 99];
        let mut all = Vec::new();
        let mut push = |key: &str, new: Value| {
            let mut args = self.0.clone();
            args[key] = new;
            all.push((format!("{key} {}", args[key]), Args(args)));
        };
        for (key, value) in self.0.as_object().into_iter().flatten() {
            match value {
                Value::Number(n) if n.is_f64() => {
                    [f64::MAX, -1.0, 0.0].into_iter().for_each(|v| push(key, v.into()));
                }
                // Sizes, counts and distances are never negative in the methods' signatures.
                Value::Number(_) => {
                    let is_size = matches!(&key[..], "n" | "k" | "len" | "correction" | "groups");
                    NUMBERS.into_iter().filter(|v| !is_size || *v >= 0).for_each(|v| push(key, v.into()));
                }
                // How many numbers there are is settled by the signature.
                Value::Array(_) if key == "numbers" => {}
                Value::Array(list) => {
                    push(key, Value::Array(list.iter().chain(list.last()).cloned().collect()));
                    push(key, Value::Array(list.iter().skip(1).cloned().collect()));
                    let is_size = !matches!(&key[..], "axes" | "shape" | "counts");
                    for (i, _) in list.iter().enumerate().filter(|(_, v)| v.is_i64()) {
                        for v in NUMBERS.into_iter().filter(|v| !is_size || *v >= 0) {
                            let mut list = list.clone();
                            list[i] = v.into();
                            push(key, Value::Array(list));
                        }
                    }
                }
                _ => {}
            }
        }
        all
    }

    /// A convolution's options; the defaults for those that are not given.
    pub fn conv(&self) -> ConvOptions {
        if !self.has("stride") {
            return ConvOptions::default();
        }
        ConvOptions::default()
            .stride(self.sizes("stride"))
            .padding(Padding::from(&self.pairs("padding")[..]))
            .dilation(self.sizes("dilation"))
            .groups(self.size("groups"))
    }

    /// A transposed convolution's options.
    pub fn conv_transpose(&self) -> ConvTransposeOptions {
        ConvTransposeOptions::default()
            .stride(self.sizes("stride"))
            .padding(Padding::from(&self.pairs("padding")[..]))
            .output_padding(self.sizes("output_padding"))
            .dilation(self.sizes("dilation"))
            .groups(self.size("groups"))
    }

    /// A pool's options.
    pub fn pool(&self) -> PoolOptions {
        PoolOptions::new(self.sizes("kernel"))
            .stride(self.sizes("stride"))
            .padding(Padding::from(&self.pairs("padding")[..]))
            .dilation(self.sizes("dilation"))
            .count_padding(!self.has("count_padding") || self.is("count_padding"))
    }
}
