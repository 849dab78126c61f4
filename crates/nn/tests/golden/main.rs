//! Layers, losses and optimizers against what PyTorch computed: see `generate.py`, which wrote `golden.safetensors`.

mod layers;
mod losses;
mod optimizers;

use std::sync::LazyLock;

use safetensors::SafeTensors;
use tensor_core::{DType, Device, Error, Result, Tensor};

static FILE: &[u8] = include_bytes!("golden.safetensors");

/// One case of the file, in one float dtype.
struct Case {
    name: &'static str,
    dtype: DType,
    device: Device,
}

impl Case {
    /// Runs `check` in f64, where rounding cannot hide an error, and in f32, which programs use.
    fn each(name: &'static str, check: impl Fn(&Case) -> Result<()>) {
        for dtype in [DType::F64, DType::F32] {
            let case = Case { name, dtype, device: backend_cpu::device() };
            if let Err(error) = check(&case) {
                panic!("{name} in {dtype}: {error}");
            }
        }
    }

    fn place(&self) -> (&Device, DType) {
        (&self.device, self.dtype)
    }

    /// The names of the case's values.
    fn names(&self) -> Vec<String> {
        let prefix = format!("{}/", self.name);
        let mut names: Vec<String> =
            file().names().into_iter().filter_map(|name| Some(name.strip_prefix(&prefix)?.to_string())).collect();
        names.sort_unstable();
        assert!(!names.is_empty(), "the file has no case {}: run generate.py", self.name);
        names
    }

    /// A value: floats in the case's dtype, classes as i64, masks as bool.
    fn get(&self, name: &str) -> Result<Tensor> {
        let missing = |e| Error::format("golden", format!("{}/{name}: {e}; run generate.py", self.name));
        let file = file();
        let view = file.tensor(&format!("{}/{name}", self.name)).map_err(missing)?;
        let words = || view.data().as_chunks::<8>().0.iter();
        match view.dtype() {
            safetensors::Dtype::F64 => {
                let values: Vec<f64> = words().map(|&b| f64::from_le_bytes(b)).collect();
                Tensor::from_vec(values, view.shape(), &self.device)?.cast(self.dtype)
            }
            safetensors::Dtype::I64 => {
                let values: Vec<i64> = words().map(|&b| i64::from_le_bytes(b)).collect();
                Tensor::from_vec(values, view.shape(), &self.device)
            }
            _ => Tensor::from_vec(view.data().iter().map(|&b| b != 0).collect(), view.shape(), &self.device),
        }
    }

    /// Panics unless `got` is the value: to the rounding of some hundred operations on numbers of its size.
    #[track_caller]
    fn compare(&self, name: &str, got: &Tensor) -> Result<()> {
        let want = self.get(name)?;
        let context = format!("{}/{name} in {}", self.name, self.dtype);
        assert_eq!(got.shape(), want.shape(), "{context}: shape");
        assert_eq!(got.dtype(), want.dtype(), "{context}: dtype");
        let (got, want) = (got.to_host()?.to_f64(), want.to_host()?.to_f64());
        let largest = want.iter().fold(1.0f64, |a, b| a.max(b.abs()));
        let tolerance = 100.0 * self.dtype.epsilon() * largest;
        for (i, (got, want)) in got.iter().zip(&want).enumerate() {
            let close = (got - want).abs() <= tolerance || got == want || (got.is_nan() && want.is_nan());
            assert!(close, "{context}: element {i}: got {got:?}, want {want:?}, tolerance {tolerance:e}");
        }
        Ok(())
    }
}

fn file() -> &'static SafeTensors<'static> {
    static PARSED: LazyLock<SafeTensors<'static>> =
        LazyLock::new(|| SafeTensors::deserialize(FILE).expect("golden.safetensors is whole"));
    &PARSED
}

#[test]
fn every_case_of_the_file_is_compared() {
    let mut cases: Vec<String> =
        file().names().into_iter().map(|name| name.split('/').next().unwrap_or(name).to_string()).collect();
    cases.sort_unstable();
    cases.dedup();
    let sources = [include_str!("layers.rs"), include_str!("losses.rs"), include_str!("optimizers.rs")].concat();
    let forgotten: Vec<_> = cases
        .iter()
        .filter(|case| {
            let stem = ["_mean", "_sum", "_none"].iter().find_map(|end| case.strip_suffix(end)).unwrap_or(case);
            !sources.contains(&format!("\"{case}\"")) && !sources.contains(&format!("\"{stem}\""))
        })
        .collect();
    assert!(forgotten.is_empty(), "no test names {forgotten:?}");
}
