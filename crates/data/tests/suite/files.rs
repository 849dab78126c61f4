//! IDX, NPY and NPZ: what is read, and what hostile files get for an answer.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use tensor_core::{DType, Device, Error, Result, Tensor};

use crate::text;

type Read = fn(&std::path::Path, &Device) -> Result<Tensor>;

const IDX: Read = |path, device| data::read_idx(path, device);
const NPY: Read = |path, device| data::read_npy(path, device);
/// The first member.
const NPZ: Read = |path, device| {
    let first = data::read_npz(path, device)?.into_iter().next();
    first.map(|(_, x)| x).ok_or_else(|| Error::other("test", "no members"))
};

fn read(read: Read, bytes: &[u8]) -> Result<Tensor> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("file");
    std::fs::write(&path, bytes).expect("a file");
    read(&path, &backend_cpu::device())
}

/// The error without the path in front.
fn error(result: Result<Tensor>) -> String {
    let text = text(result);
    text.split_once("file: ").map_or(text.clone(), |(_, text)| text.into())
}

fn check(got: Result<Tensor>, shape: &[usize], dtype: DType, values: &[f64]) {
    let x = got.expect("a tensor");
    assert_eq!((x.dims(), x.dtype()), (shape, dtype));
    assert_eq!(x.to_host().expect("values").to_f64(), values);
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).expect("in memory");
    encoder.finish().expect("in memory")
}

fn idx(code: u8, dims: &[u32], values: &[u8]) -> Vec<u8> {
    let sizes: Vec<u8> = dims.iter().flat_map(|d| d.to_be_bytes()).collect();
    [&[0, 0, code, dims.len() as u8], &sizes[..], values].concat()
}

#[test]
fn idx_reads_every_type_plain_and_compressed() {
    let big = |bytes: &[&[u8]]| bytes.concat();
    for (code, bytes, dtype, values) in [
        (0x08, vec![0, 7, 255], DType::U8, [0.0, 7.0, 255.0]),
        (0x09, vec![0, 0xFF, 0x80], DType::I32, [0.0, -1.0, -128.0]),
        (0x0B, vec![1, 0, 0xFF, 0xFE, 0x80, 0], DType::I32, [256.0, -2.0, -32768.0]),
        (
            0x0C,
            big(&[1i32, -2, i32::MIN].map(i32::to_be_bytes).each_ref().map(|b| &b[..])),
            DType::I32,
            [1.0, -2.0, -2147483648.0],
        ),
        (
            0x0D,
            big(&[1.5f32, -0.25, 1e30].map(f32::to_be_bytes).each_ref().map(|b| &b[..])),
            DType::F32,
            [1.5, -0.25, f64::from(1e30f32)],
        ),
        (
            0x0E,
            big(&[1.5f64, -0.1, 1e300].map(f64::to_be_bytes).each_ref().map(|b| &b[..])),
            DType::F64,
            [1.5, -0.1, 1e300],
        ),
    ] {
        let file = idx(code, &[3, 1], &bytes);
        check(read(IDX, &file), &[3, 1], dtype, &values);
        check(read(IDX, &gzip(&file)), &[3, 1], dtype, &values);
    }
    check(read(IDX, &idx(8, &[], &[9])), &[], DType::U8, &[9.0]);
    check(read(IDX, &idx(8, &[0, 28, 28], &[])), &[0, 28, 28], DType::U8, &[]);
    // Larger than a block.
    let many: Vec<u8> = (0..200_000u32).map(|i| (i % 251) as u8).collect();
    let x = read(IDX, &gzip(&idx(8, &[2, 100_000], &many))).unwrap();
    assert_eq!(x.to_vec::<u8>().unwrap(), many);
}

#[test]
fn hostile_idx_files_are_errors() {
    let good = idx(8, &[2, 2], &[1, 2, 3, 4]);
    let squeezed = gzip(&good);
    let mut wrong_sum = squeezed.clone();
    let crc = wrong_sum.len() - 8;
    wrong_sum[crc] ^= 1;
    for (file, want) in [
        (vec![], "idx: read: the file ends early"),
        (good[..3].to_vec(), "idx: read: the file ends early"),
        (good[..9].to_vec(), "idx: read: the file ends early"),
        (good[..14].to_vec(), "idx: the file ends early: elements 4, found 2"),
        ([&good[..], &[0]].concat(), "idx: the file goes on after its last element: elements 4"),
        (b"\x89PNG....".to_vec(), "idx: the file must start with two zero bytes: bytes 0x89 0x50"),
        (idx(0x0A, &[1], &[1]), "idx: the type is not one of IDX: code 0x0a"),
        (
            idx(0x0E, &[u32::MAX; 3], &[]),
            "idx: the number of elements overflows: shape [4294967295, 4294967295, 4294967295]",
        ),
        (
            idx(0x08, &[0, u32::MAX, u32::MAX, u32::MAX], &[]),
            "idx: the number of elements overflows: shape [0, 4294967295, 4294967295, 4294967295]",
        ),
        // Fits a 64-bit size, and no memory: nothing of it is allocated before it is there.
        (idx(0x0E, &[1 << 30, 1 << 29], &[1, 2, 3]), "idx: the file ends early: elements 576460752303423488, found 0"),
        (gzip(&good[..14]), "idx: the file ends early: elements 4, found 2"),
        (squeezed[..squeezed.len() - 9].to_vec(), "no error: see below"),
        (wrong_sum, "read: the file is damaged: corrupt gzip stream does not have a matching checksum"),
        ([&squeezed[..], b"trailing bytes"].concat(), "read: the file is damaged: invalid gzip header"),
    ] {
        let got = error(read(IDX, &file));
        if want == "no error: see below" {
            assert!(got.contains("the file ends early"), "{got}");
        } else {
            assert_eq!(got, want);
        }
    }
    assert!(
        text(data::read_idx("no/such/file", &backend_cpu::device()))
            .starts_with("no/such/file: read: the file cannot be read")
    );
}

/// A file of version 1, or of a later one with its longer length.
fn npy(version: u8, header: &str, values: &[u8]) -> Vec<u8> {
    let len = header.len() as u32;
    let len = &len.to_le_bytes()[..if version == 1 { 2 } else { 4 }];
    [b"\x93NUMPY", &[version, 0][..], len, header.as_bytes(), values].concat()
}

fn header(descr: &str, fortran: &str, shape: &str) -> String {
    format!("{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {shape}, }}          \n")
}

#[test]
fn npy_reads_every_type_order_and_version() {
    for (descr, bytes, dtype, value) in [
        ("|b1", vec![1], DType::Bool, 1.0),
        ("|u1", vec![200], DType::U8, 200.0),
        ("|i1", vec![200], DType::I32, -56.0),
        ("<i2", vec![0xFE, 0xFF], DType::I32, -2.0),
        (">i2", vec![0xFF, 0xFE], DType::I32, -2.0),
        ("<u2", vec![0xFE, 0xFF], DType::I32, 65534.0),
        ("<i4", vec![0, 0, 0, 0x80], DType::I32, -2147483648.0),
        ("<u4", vec![0, 0, 0, 0x80], DType::I64, 2147483648.0),
        (">i8", 77i64.to_be_bytes().to_vec(), DType::I64, 77.0),
        ("<u8", 77u64.to_le_bytes().to_vec(), DType::I64, 77.0),
        ("<f2", vec![0, 0x3E], DType::F16, 1.5),
        (">f4", 1.5f32.to_be_bytes().to_vec(), DType::F32, 1.5),
        ("<f8", (-1e300f64).to_le_bytes().to_vec(), DType::F64, -1e300),
    ] {
        for version in 1..=3 {
            check(read(NPY, &npy(version, &header(descr, "False", "(1,)"), &bytes)), &[1], dtype, &[value]);
        }
    }
    // First index fastest: [[1, 2, 3], [4, 5, 6]].
    let columns = npy(1, &header("|u1", "True", "(2, 3)"), &[1, 4, 2, 5, 3, 6]);
    check(read(NPY, &columns), &[2, 3], DType::U8, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    check(read(NPY, &npy(1, &header("|u1", "False", "()"), &[9])), &[], DType::U8, &[9.0]);
    check(read(NPY, &npy(1, &header("|u1", "False", "(0, 3L)"), &[])), &[0, 3], DType::U8, &[]);
    // Any order of keys, either quote, no comma at the end.
    let loose = "{\"shape\":(2,),\"fortran_order\":False,\"descr\":\"|u1\"}";
    check(read(NPY, &npy(1, loose, &[1, 2])), &[2], DType::U8, &[1.0, 2.0]);
}

#[test]
fn hostile_npy_files_are_errors() {
    let good = npy(1, &header("<f4", "False", "(2,)"), &[0; 8]);
    let with = |text: &str| npy(1, text, &[0; 8]);
    let odd = "npy: the header is not what NumPy writes: ";
    let cases = [
        (good[..5].to_vec(), "npy: read: the file ends early".to_string()),
        (good[..40].to_vec(), "npy: read: the file ends early".into()),
        (good[..good.len() - 1].to_vec(), "npy: the file ends early: elements 2, found 1".into()),
        ([&good[..], &[0]].concat(), "npy: the file goes on after its last element: elements 2".into()),
        (b"\x93NUMPX\x01\0".to_vec(), "npy: the file must start with \\x93NUMPY: bytes \\x93NUMPX".into()),
        (npy(4, "{}", &[]), "npy: the version is not known: version 4.0, known 1 to 3".into()),
        (
            [b"\x93NUMPY\x02\0", &[0xFF; 4][..]].concat(),
            "npy: the header is too long: bytes 4294967295, limit 1048576".into(),
        ),
        ([b"\x93NUMPY\x01\0\x02\0", &[0xFF; 2][..]].concat(), "npy: the header is not text".into()),
        (
            with(&header("<f4", "False", "(1152921504606846976,)")),
            "npy: the file ends early: elements 1152921504606846976, found 2".into(),
        ),
        (
            with(&header("<f4", "False", "(4294967296, 4294967296)")),
            "npy: the number of elements overflows: shape [4294967296, 4294967296]".into(),
        ),
        (
            with(&header("<f4", "False", "(99999999999999999999,)")),
            format!("{odd}a size is not a number of 64 bits, at `99999999999999999999`"),
        ),
        (with(&header("<f4", "False", "(-1,)")), format!("{odd}a size is not a number of 64 bits, at `-1,), }}`")),
        (with(&header("<f4", "Maybe", "(2,)")), format!("{odd}expected True or False, at ` Maybe, 'shape': (2,`")),
        (with(&header("<f4", "False", "2")), format!("{odd}expected `(`, at `2, }}`")),
        (with(""), format!("{odd}expected `{{`, at ``")),
        (with("{"), format!("{odd}expected `'`, at ``")),
        (with("{'descr"), format!("{odd}a string does not end, at `descr`")),
        (with("{'descr': '<f4'} x"), format!("{odd}something follows the dictionary, at ` x`")),
        (with("{'descr': '<f4'}"), format!("{odd}`descr`, `fortran_order` and `shape` must be there, at ``")),
        (with("{'a': 1}"), format!("{odd}the key `a` is not known, at ` 1}}`")),
        (
            with(&header("|O", "False", "(2,)")),
            "npy: the type has no tensor: descr `|O`; convert it with .astype before saving".into(),
        ),
        (
            with(&header("<c8", "False", "(1,)")),
            "npy: the type has no tensor: descr `<c8`; convert it with .astype before saving".into(),
        ),
        (
            with("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,)}"),
            "npy: records are not read; save each field as an array of its own".into(),
        ),
        (
            npy(1, &header("<u8", "False", "(2,)"), &[[0; 8], [0xFF; 8]].concat()),
            "npy: an unsigned number does not fit i64: element 1 18446744073709551615".into(),
        ),
    ];
    for (file, want) in cases {
        assert_eq!(error(read(NPY, &file)), want);
    }
}

/// Written by NumPy 2.4: `savez_compressed` of four arrays, `savez` of two.
const COMPRESSED: &[u8] = include_bytes!("../fixtures/compressed.npz");
const STORED: &[u8] = include_bytes!("../fixtures/stored.npz");

#[test]
fn npz_reads_what_numpy_writes() {
    let folder = tempfile::tempdir().unwrap();
    let read = |bytes: &[u8]| {
        let path = folder.path().join("file");
        std::fs::write(&path, bytes).unwrap();
        data::read_npz(&path, &backend_cpu::device()).unwrap()
    };
    let expect: [(&str, &[usize], DType, &[f64]); 4] = [
        ("x", &[2, 3], DType::F32, &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0]),
        ("fortran", &[2, 3], DType::I32, &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0]),
        ("scalar", &[], DType::F64, &[2.5]),
        ("flags", &[2], DType::Bool, &[1.0, 0.0]),
    ];
    for ((name, x), (want, shape, dtype, values)) in read(COMPRESSED).into_iter().zip(expect) {
        assert_eq!(name, want);
        check(Ok(x), shape, dtype, values);
    }
    let stored = read(STORED);
    assert_eq!(stored.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    check(Ok(stored[0].1.clone()), &[3], DType::I64, &[0.0, 1.0, 2.0]);
    check(Ok(stored[1].1.clone()), &[0, 4], DType::U8, &[]);
}

#[test]
fn hostile_npz_files_are_errors() {
    let at = |bytes: &[u8]| COMPRESSED.windows(bytes.len()).position(|w| w == bytes).expect("bytes of the fixture");
    let entry = at(b"PK\x01\x02");
    let end = at(b"PK\x05\x06");
    let patched = |at: usize, bytes: &[u8]| {
        let mut file = COMPRESSED.to_vec();
        file[at..at + bytes.len()].copy_from_slice(bytes);
        file
    };
    for (file, want) in [
        (vec![], "npz: the file is not a ZIP archive, or it is cut off"),
        (COMPRESSED[..end].to_vec(), "npz: the file is not a ZIP archive, or it is cut off"),
        ([COMPRESSED, b"x"].concat(), "npz: the archive is damaged: its end record does not end where the file does"),
        (COMPRESSED[..end + 10].to_vec(), "npz: the archive is damaged: a record ends early"),
        // A directory that claims to lie past the end, and one that is too large.
        (
            patched(end + 16, &[0, 0, 0, 0x7F]),
            "npz: the archive is damaged: its directory lies outside: start 2130706432",
        ),
        (
            patched(end + 12, &[0xFF, 0xFF, 0xFF, 0x7F]),
            "npz: the archive is damaged: its directory lies outside: start",
        ),
        (patched(end + 10, &[0xFE, 0xFF]), "npz: the archive is damaged: a record ends early"),
        (patched(end + 10, &[1, 0]), "npz: the archive is damaged: its directory holds more than it says: entries 1"),
        (patched(entry, b"XX"), "npz: the archive is damaged: the entry of a member is not where it should be"),
        (patched(entry + 8, &[1]), "npz: encrypted members are not read: member x.npy"),
        (patched(entry + 10, &[12]), "x.npy: npz: the compression is not one that NumPy uses: method 12"),
        (patched(entry + 16, &[0; 4]), "x.npy: npz: the archive is damaged: the checksum of a member is wrong"),
        (patched(entry + 20, &[5, 0]), "x.npy: npy: read: the file ends early"),
        (
            patched(entry + 42, &[1]),
            "x.npy: npz: the archive is damaged: the member's header is not where it should be",
        ),
        (patched(entry + 42, &[0xFE; 4]), "x.npy: npz: the archive is damaged: a record ends early"),
        // The compressed bytes themselves.
        (patched(60, &[0xFF; 8]), "x.npy: "),
    ] {
        let got = error(read(NPZ, &file));
        assert!(got.starts_with(want) && got != "no error", "{got}\n{want}");
    }
}

#[test]
fn damage_never_panics() {
    // Every byte of each file set to every of a few values: an error or a tensor, never a panic or a large allocation.
    let files: [(Read, Vec<u8>); 4] = [
        (IDX, idx(8, &[2, 2], &[1, 2, 3, 4])),
        (IDX, gzip(&idx(8, &[2, 2], &[1, 2, 3, 4]))),
        (NPY, npy(1, &header("<f4", "False", "(2,)"), &[0; 8])),
        (NPZ, STORED.to_vec()),
    ];
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    for (reader, file) in files {
        for at in 0..file.len() {
            for value in [0, 0xFF, file[at] ^ 0x20] {
                let mut damaged = file.clone();
                damaged[at] = value;
                std::fs::write(&path, &damaged).unwrap();
                let _ = reader(&path, &backend_cpu::device());
            }
            std::fs::write(&path, &file[..at]).unwrap();
            assert!(reader(&path, &backend_cpu::device()).is_err(), "cut off at {at}");
        }
    }
}

/// A device or a pipe may have no end.
#[test]
fn what_is_not_a_file_is_refused_before_it_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let mut paths = vec![folder.path().to_path_buf()];
    if cfg!(target_os = "linux") {
        paths.push("/dev/zero".into());
    }
    for path in paths {
        let want = format!("{}: read: is not a file", path.display());
        for read in [IDX, NPY, NPZ] {
            assert_eq!(text(read(&path, &backend_cpu::device())), want);
        }
        assert_eq!(text(data::Csv::new().read(&path)), want);
    }
}
