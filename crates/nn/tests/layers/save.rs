//! Models in files: all dtypes, the exact bytes, damaged and hostile files, files that do not fit, saves that fail.

use std::fs;
use std::path::PathBuf;

use nn::{BatchNorm1d, Buffer, Linear, Module, Param, chain};
use tensor_core::{DType, Result, Tensor};

use crate::{device, fails, seeded, values, vector};

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary folder"))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn with(&self, name: &str, bytes: &[u8]) -> PathBuf {
        fs::write(self.path(name), bytes).expect("the folder can be written");
        self.path(name)
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.0.path()).expect("the folder can be read");
        let mut names: Vec<String> =
            entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
        names.sort_unstable();
        names
    }
}

#[derive(Module, Clone, Debug)]
struct Mixed {
    f64: Param,
    f32: Param,
    f16: Param,
    bf16: Buffer,
    i64: Tensor,
    i32: Tensor,
    u8: Tensor,
    bool: Tensor,
    scalar: Buffer,
    empty: Param,
    inner: (Param, Vec<Param>),
}

fn mixed(seed: u64) -> Result<Mixed> {
    seeded(seed, || {
        let d = &device();
        let param = |dtype| Ok::<_, tensor_core::Error>(Param::new(Tensor::randn([2, 3], (d, dtype))?));
        Ok(Mixed {
            f64: param(DType::F64)?,
            f32: param(DType::F32)?,
            f16: param(DType::F16)?,
            bf16: Buffer::new(Tensor::randn(5, (d, DType::BF16))?),
            i64: Tensor::from_slice(&[i64::MIN, -1, i64::MAX], 3, d)?,
            i32: Tensor::from_slice(&[i32::MIN, i32::MAX], 2, d)?,
            u8: Tensor::randint(0, 256, 7, (d, DType::U8))?,
            bool: Tensor::bernoulli(0.5, 9, (d, DType::Bool))?,
            scalar: Buffer::new(Tensor::randn((), d)?),
            empty: Param::new(Tensor::zeros([0, 3], d)?),
            inner: (
                Param::new(vector(&[f32::NAN, f32::INFINITY, -0.0, f32::MIN_POSITIVE / 2.0])?),
                vec![param(DType::F32)?],
            ),
        })
    })
}

fn state(model: &impl Module) -> Result<Vec<(String, String)>> {
    // Debug text tells −0 from 0 and one NaN is as good as another.
    model.state_dict().into_iter().map(|(name, x)| Ok((name, format!("{:?} {:?}", x.shape(), x.to_host()?)))).collect()
}

#[test]
fn every_dtype_comes_back_to_the_bit() -> Result<()> {
    let folder = Folder::new();
    let path = folder.path("mixed.safetensors");
    let model = mixed(1)?;
    nn::save(&model, &path)?;
    let mut other = mixed(2)?;
    assert_ne!(state(&other)?, state(&model)?);
    nn::load(&mut other, &path)?;
    assert_eq!(state(&other)?, state(&model)?);
    assert_eq!(folder.names(), ["mixed.safetensors"]);
    Ok(())
}

#[derive(Module, Clone, Debug)]
struct Small {
    weight: Param,
    bias: Param,
    count: Buffer,
}

fn small() -> Result<Small> {
    Ok(Small {
        weight: Param::new(Tensor::from_slice(&[1.0f32, -2.0], [1, 2], &device())?),
        bias: Param::new(vector(&[0.5])?),
        count: Buffer::new(Tensor::from_slice(&[3i64], (), &device())?),
    })
}

/// The file of [`small`], as PyTorch opens it: a length, a header padded to eight bytes, values in little-endian order.
fn small_bytes() -> Vec<u8> {
    let header = concat!(
        r#"{"__metadata__":{"format":"pt"},"#,
        r#""count":{"dtype":"I64","shape":[],"data_offsets":[0,8]},"#,
        r#""bias":{"dtype":"F32","shape":[1],"data_offsets":[8,12]},"#,
        r#""weight":{"dtype":"F32","shape":[1,2],"data_offsets":[12,20]}}"#,
    );
    let header = format!("{header:width$}", width = header.len().next_multiple_of(8));
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header.as_bytes());
    bytes.extend(3i64.to_le_bytes());
    [0.5f32, 1.0, -2.0].iter().for_each(|v| bytes.extend(v.to_le_bytes()));
    bytes
}

#[test]
fn a_file_has_exactly_these_bytes() -> Result<()> {
    let folder = Folder::new();
    nn::save(&small()?, folder.path("a"))?;
    assert_eq!(fs::read(folder.path("a")).expect("the file is there"), small_bytes());
    let mut changed = small()?;
    *changed.bias.value_mut() = vector(&[0.0])?;
    nn::save(&changed, folder.path("a"))?;
    assert_ne!(fs::read(folder.path("a")).expect("the file is there"), small_bytes());
    Ok(())
}

#[test]
fn equal_models_give_equal_files() -> Result<()> {
    let folder = Folder::new();
    for name in ["a", "b"] {
        nn::save(&mixed(3)?, folder.path(name))?;
    }
    let read = |name: &str| fs::read(folder.path(name)).expect("the file is there");
    assert_eq!(read("a"), read("b"));
    Ok(())
}

#[test]
fn every_truncated_file_is_refused_and_changes_nothing() -> Result<()> {
    let folder = Folder::new();
    let mut model = small()?;
    *model.bias.value_mut() = vector(&[9.0])?;
    let before = state(&model)?;
    let bytes = small_bytes();
    for n in 0..bytes.len() {
        let error = nn::load(&mut model, folder.with("cut", &bytes[..n])).expect_err("the file is cut short");
        assert!(error.is_format(), "{n} bytes: {error}");
        assert!(error.to_string().contains("cut short"), "{error}");
    }
    let long = [&bytes[..], &[0]].concat();
    assert!(nn::load(&mut model, folder.with("long", &long)).is_err());
    assert_eq!(state(&model)?, before);
    nn::load(&mut model, folder.with("whole", &bytes))?;
    assert_eq!(state(&model)?, state(&small()?)?);
    Ok(())
}

#[test]
fn hostile_headers_are_refused() -> Result<()> {
    let folder = Folder::new();
    let file = |header: &str, n_values: usize| {
        let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
        bytes.extend(header.as_bytes());
        bytes.extend(vec![0; n_values]);
        bytes
    };
    let entry = |shape: &str, offsets: &str| {
        format!(r#"{{"bias":{{"dtype":"F32","shape":{shape},"data_offsets":{offsets}}}}}"#)
    };
    let mut cases = vec![
        (u64::MAX.to_le_bytes().to_vec(), "a header of 2^64 bytes"),
        (vec![0xff; 64], "no header"),
        ([8u64.to_le_bytes(), [0xff; 8]].concat(), "not UTF-8"),
        (file("{", 0), "not JSON"),
        (file("[1, 2]", 0), "no map"),
        (file(&"[".repeat(100_000), 0), "nested deeply"),
    ];
    for (shape, offsets, what) in [
        ("[1]", "[0,8]", "offsets past the end"),
        ("[1]", "[4,0]", "offsets backwards"),
        ("[2]", "[0,4]", "a shape larger than its values"),
        ("[4294967296,4294967296,4294967296]", "[0,4]", "a shape that overflows"),
        ("[18446744073709551615]", "[0,4]", "bytes that overflow"),
        ("[-1]", "[0,4]", "a negative size"),
        ("[1]", "[0,18446744073709551615]", "an offset that overflows"),
        ("[1e999]", "[0,4]", "an infinite size"),
    ] {
        cases.push((file(&entry(shape, offsets), 4), what));
    }
    let twice = r#"{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}"#;
    cases.push((file(twice, 4), "values that overlap"));
    cases.push((file(&entry("[1]", "[0,4]").replace("F32", "Q7"), 4), "an unknown dtype"));
    let mut model = small()?;
    for (bytes, what) in cases {
        let error = nn::load(&mut model, folder.with("hostile", &bytes)).expect_err(what);
        assert!(error.is_format(), "{what}: {error}");
    }
    assert_eq!(state(&model)?, state(&small()?)?);
    Ok(())
}

#[test]
fn all_that_does_not_fit_is_named_at_once() -> Result<()> {
    let folder = Folder::new();
    let path = folder.path("other");
    #[derive(Module, Clone, Debug)]
    struct Other {
        weight: Param,
        count: Buffer,
        extra: Param,
    }
    let other = Other {
        weight: Param::new(Tensor::zeros([2, 1], &device())?),
        count: Buffer::new(Tensor::zeros((), &device())?),
        extra: Param::new(vector(&[1.0])?),
    };
    nn::save(&other, &path)?;
    let mut model = small()?;
    fails(
        nn::load(&mut model, &path),
        &format!(
            "load: the file does not fit the model: missing bias; unexpected extra; different weight (wanted [1, 2] f32, file \
             [2, 1] f32), count (wanted [] i64, file [] f32): path {}; build the model as it was saved, and cast it to the \
             file's dtype with .cast(..)",
            path.display()
        ),
    );
    assert_eq!(state(&model)?, state(&small()?)?);
    Ok(())
}

#[test]
fn a_long_list_of_misfits_is_cut() -> Result<()> {
    let folder = Folder::new();
    let many = |n| -> Result<Vec<Param>> { (0..n).map(|_| Ok(Param::new(vector(&[1.0])?))).collect() };
    nn::save(&many(1)?, folder.path("one"))?;
    let error = nn::load(&mut many(30)?, folder.path("one")).expect_err("most are missing");
    assert!(error.to_string().contains("missing 1, 2, 3, 4, 5, 6, 7, 8 and 21 more:"), "{error}");
    Ok(())
}

#[test]
fn what_cannot_be_read_or_written_is_an_io_error_that_names_the_path() -> Result<()> {
    let folder = Folder::new();
    let mut model = small()?;
    for path in [folder.path("absent"), folder.path("absent/model"), folder.0.path().to_path_buf()] {
        let error = nn::load(&mut model, &path).expect_err("nothing to read");
        assert!(error.is_io() && error.to_string().contains(&path.display().to_string()), "{error}");
    }
    fs::create_dir(folder.path("taken")).expect("the folder can be written");
    for (path, rule) in [
        (folder.path("absent/model"), "cannot write the file ("),
        (PathBuf::new(), "cannot write the file ("),
        (folder.path("taken"), "is not a file: path "),
        (PathBuf::from("/"), "is not a file: path "),
    ] {
        let error = nn::save(&model, &path).expect_err("nowhere to write");
        assert!(error.is_io() && error.to_string().starts_with(&format!("save: {rule}")), "{error}");
    }
    assert_eq!(folder.names(), ["taken"], "nothing is left behind");
    Ok(())
}

/// A rename would put a file in the place of a pipe, or, for those who may, of `/dev/null`.
#[cfg(unix)]
#[test]
fn a_save_replaces_nothing_but_files() -> Result<()> {
    let folder = Folder::new();
    let pipe = folder.path("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().is_ok_and(|status| status.success()));
    let there = || fs::metadata(&pipe).map(|pipe| (pipe.is_file(), pipe.len())).expect("the pipe");
    let before = there();
    let mut model = small()?;
    fails(nn::save(&model, &pipe), &format!("save: is not a file: path {}", pipe.display()));
    fails(nn::load(&mut model, &pipe), &format!("load: is not a file: path {}", pipe.display()));
    assert_eq!((there(), folder.names()), (before, vec!["pipe".to_string()]));
    Ok(())
}

#[test]
fn names_of_a_hostile_file_are_shown_on_one_short_line() -> Result<()> {
    let folder = Folder::new();
    let strange = ["a\n\u{1b}[31mb".to_string(), "w".repeat(100_000)];
    for (name, shown) in strange.into_iter().zip(["a\\n\\u{1b}[31mb", "wwww.."]) {
        let values = [0u8; 4];
        let view = safetensors::tensor::TensorView::new(safetensors::Dtype::F32, vec![1], &values).expect("a view");
        let bytes = safetensors::serialize([(name, view)], None).expect("a file");
        let error = nn::load(&mut small()?, folder.with("strange", &bytes)).expect_err("another model").to_string();
        assert!(error.len() < 1000 && !error.contains(char::is_control), "{} bytes: {error:?}", error.len());
        assert!(error.contains(&format!("{shown}: path")), "{error}");
    }
    Ok(())
}

#[test]
fn a_save_that_fails_leaves_the_file_before_it() -> Result<()> {
    let folder = Folder::new();
    let path = folder.with("model", &small_bytes());
    let (device, control) = backend_cpu::test_device("failing", 1);
    let model = small()?.to(&device)?;
    control.set_lost(true);
    let error = nn::save(&model, &path).expect_err("the device is lost");
    assert!(error.is_device_lost(), "{error}");
    assert_eq!(fs::read(&path).expect("the file is there"), small_bytes());
    assert_eq!(folder.names(), ["model"]);
    Ok(())
}

#[cfg(unix)]
#[test]
fn a_link_stays_a_link() -> Result<()> {
    let folder = Folder::new();
    folder.with("v1", b"old");
    std::os::unix::fs::symlink(folder.path("v1"), folder.path("latest")).expect("links can be made");
    nn::save(&small()?, folder.path("latest"))?;
    assert_eq!(fs::read(folder.path("v1")).expect("the file is there"), small_bytes());
    assert!(folder.path("latest").is_symlink());
    Ok(())
}

#[test]
fn values_go_where_the_model_is() -> Result<()> {
    let folder = Folder::new();
    let (other, _) = backend_cpu::test_device("other", 3);
    let path = folder.with("model", &small_bytes());
    let mut model = small()?.to(&other)?;
    nn::load(&mut model, &path)?;
    assert_eq!(model.weight.device(), other);
    assert_eq!(values(&model.weight)?, [1.0, -2.0]);
    Ok(())
}

#[test]
fn names_are_pytorchs() -> Result<()> {
    let model = chain![Linear::new(2, 3, &device())?, BatchNorm1d::new(3, &device())?];
    let names: Vec<String> = model.state_dict().into_iter().map(|(name, _)| name).collect();
    let expected =
        ["0.weight", "0.bias", "1.weight", "1.bias", "1.running_mean", "1.running_var", "1.num_batches_tracked"];
    assert_eq!(names, expected);
    Ok(())
}
