//! The oracle: what PyTorch computed for each case of the tables in `tests/oracle`, and how far a result may be from it.
//!
//! `tests/oracle/generate.py` writes the tables and says what is in them.

use consort::DType;
use safetensors::SafeTensors;
use serde_json::Value;

mod args;
mod call;
mod input;
mod run;

pub use args::{Args, Axes};
pub use call::call;
pub use input::{Input, Layout, drawn, host};
pub use run::Run;

/// Every family with its table and its numbers.
macro_rules! families {
    ($($name:literal),* $(,)?) => {
        const FAMILIES: &[(&str, &str, &[u8])] = &[$((
            $name,
            include_str!(concat!("../oracle/", $name, ".json")),
            include_bytes!(concat!("../oracle/", $name, ".safetensors")),
        )),*];
    };
}
families! {
    "activation", "algebra", "composite", "conv", "create", "elementwise", "index", "integer", "loss", "movement", "order",
    "pool", "reduce",
}

/// One op with its arguments and inputs, and the results that are right.
pub struct Case {
    /// The method's name; a loss is `loss::mse`.
    pub op: String,
    /// What is special about it.
    pub name: String,
    /// The op's further arguments.
    pub args: Args,
    /// The inputs.
    pub inputs: Vec<Input>,
    /// The outputs; the first one is differentiated.
    pub outputs: Vec<Expected>,
    /// The gradients by the float inputs, for a cotangent that is [`Case::cotangent`].
    pub gradients: Vec<Expected>,
    /// The gradients of ⟨gradients, [`Case::directions`]⟩ by the float inputs.
    pub second: Vec<Expected>,
    /// How many operations make one element.
    pub terms: usize,
    /// The dtypes that it is for.
    pub dtypes: Vec<DType>,
}

/// A result that is right.
pub struct Expected {
    /// `f` of the run's float dtype, `n` of its integer dtype, `i` i64, `j` i32, `u` u8, `s` f32, `b` bool.
    pub kind: char,
    /// The sizes.
    pub dims: Vec<usize>,
    /// The values, row-major.
    pub values: Vec<f64>,
    /// What rounding errors are relative to, besides the element itself.
    pub scale: f64,
}

/// Every case of every family.
pub fn cases() -> Vec<Case> {
    FAMILIES.iter().flat_map(|(name, table, numbers)| family(name, table, numbers)).collect()
}

/// The losses of PyTorch's training runs, by name.
pub fn training_losses(name: &str) -> Vec<f64> {
    let runs: Value = serde_json::from_str(include_str!("../oracle/training.json")).expect("training.json is JSON");
    let losses = runs[name].as_array().unwrap_or_else(|| panic!("training.json has a run {name}"));
    losses.iter().map(|v| v.as_f64().expect("a loss")).collect()
}

fn family(name: &str, table: &str, numbers: &[u8]) -> Vec<Case> {
    let rows: Vec<Value> = serde_json::from_str(table).unwrap_or_else(|e| panic!("{name}.json: {e}"));
    let numbers = SafeTensors::deserialize(numbers).unwrap_or_else(|e| panic!("{name}.safetensors: {e}"));
    rows.iter().map(|row| Case::new(row, &numbers)).collect()
}

fn text(row: &Value, key: &str) -> String {
    row[key].as_str().unwrap_or_else(|| panic!("{key} is a text in {row}")).to_string()
}

fn texts<'a>(row: &'a Value, key: &str) -> impl Iterator<Item = &'a str> {
    row[key].as_array().into_iter().flatten().map(|v| v.as_str().expect("a text"))
}

impl Case {
    fn new(row: &Value, numbers: &SafeTensors<'_>) -> Self {
        let (op, name) = (text(row, "op"), text(row, "case"));
        let key = format!("{op}/{name}");
        let inputs: Vec<Input> =
            texts(row, "inputs").enumerate().map(|(i, spec)| Input::parse(&format!("{key}#{i}"), spec)).collect();
        let order = row["order"].as_u64().expect("an order");
        let data = numbers.tensor(&key).unwrap_or_else(|e| panic!("{key}: {e}"));
        let mut values = data.data().chunks_exact(8).map(|b| f64::from_le_bytes(b.try_into().expect("eight bytes")));
        let mut scales = row["scales"].as_array().into_iter().flatten().map(|v| v.as_f64().expect("a scale"));
        let mut take = |kind: char, dims: Vec<usize>| Expected {
            kind,
            values: values.by_ref().take(dims.iter().product()).collect(),
            dims,
            scale: scales.next().expect("a scale"),
        };
        let outputs = texts(row, "out").map(input::head).map(|(kind, dims, _)| take(kind, dims)).collect();
        let leaves: Vec<Vec<usize>> = inputs.iter().filter(|x| x.kind == 'f').map(|x| x.dims.clone()).collect();
        let gradients = leaves.iter().filter(|_| order > 0).map(|dims| take('f', dims.clone())).collect();
        let second = leaves.iter().filter(|_| order > 1).map(|dims| take('f', dims.clone())).collect();
        assert!(values.next().is_none(), "{key}: numbers are left over");
        let dtypes: Vec<DType> = texts(row, "dtypes").map(args::dtype).collect();
        let dtypes = if dtypes.is_empty() { DType::FLOATS.to_vec() } else { dtypes };
        let terms = row["terms"].as_u64().expect("terms") as usize;
        Self { op, name, args: Args(row["args"].clone()), inputs, outputs, gradients, second, terms, dtypes }
    }

    /// `op/name`.
    pub fn key(&self) -> String {
        format!("{}/{}", self.op, self.name)
    }

    /// What the first output is multiplied with before it is summed to a scalar.
    pub fn cotangent(&self) -> Vec<f64> {
        drawn(&format!("{}#cotangent", self.key()), &self.outputs[0].dims)
    }

    /// What the gradient by each float input is multiplied with before all are summed to a scalar.
    pub fn directions(&self) -> Vec<Vec<f64>> {
        let leaves = self.inputs.iter().filter(|x| x.kind == 'f').enumerate();
        leaves.map(|(i, x)| drawn(&format!("{}#direction{i}", self.key()), &x.dims)).collect()
    }
}

impl Expected {
    /// The dtype in a run of `dtype`.
    pub fn dtype(&self, dtype: DType) -> DType {
        match self.kind {
            'i' => DType::I64,
            'j' => DType::I32,
            'u' => DType::U8,
            's' => DType::F32,
            'b' => DType::Bool,
            _ => dtype,
        }
    }

    /// The first element that is wrong, in words. Results that are not floats agree exactly; floats to the rounding of
    /// `terms` operations, and exactly where they are not finite.
    pub fn mistake(&self, got: &[f64], dtype: DType, terms: usize) -> Option<String> {
        let dtype = self.dtype(dtype);
        let (largest, smallest) = match dtype {
            DType::F16 => (65_504.0, 2f64.powi(-24)),
            DType::F32 | DType::BF16 => (f64::from(f32::MAX), 2f64.powi(-126)),
            _ => (f64::MAX, 0.0),
        };
        let wrong = |(&want, &got): (&f64, &f64)| {
            let tolerance = 4.0 * terms as f64 * dtype.epsilon() * want.abs().max(self.scale) + smallest;
            let want = if want.abs() > largest { want.signum() * f64::INFINITY } else { want };
            let same = got == want || (got.is_nan() && want.is_nan()) || (got - want).abs() <= tolerance;
            (!same).then(|| format!("got {got:?}, want {want:?}, tolerance {tolerance:.1e}"))
        };
        let found = self.values.iter().zip(got).enumerate().find_map(|(i, pair)| Some((i, wrong(pair)?)))?;
        let n_wrong = self.values.iter().zip(got).filter(|&pair| wrong(pair).is_some()).count();
        Some(format!("{n_wrong} of {} wrong, at {:?} {}", got.len(), crate::unravel(found.0, &self.dims), found.1))
    }
}
