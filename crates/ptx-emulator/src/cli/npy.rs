//! Arrays in NumPy's format, as far as kernels need them.

/// What a file holds.
pub(super) struct Array {
    /// The type as the file spells it, without the byte order: `f4`.
    pub(super) descr: &'static str,
    pub(super) shape: Vec<usize>,
    pub(super) bytes: Vec<u8>,
}

const TYPES: &[&str] = &["f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"];

pub(super) fn read(file: &[u8]) -> Result<Array, String> {
    let bad = |what: &str| Err(format!("no array of NumPy: {what}"));
    if !file.starts_with(b"\x93NUMPY") || file.len() < 12 {
        return bad("it does not begin with its mark");
    }
    let (start, len) = match file[6] {
        1 => (10, usize::from(u16::from_le_bytes([file[8], file[9]]))),
        _ => (12, u32::from_le_bytes([file[8], file[9], file[10], file[11]]) as usize),
    };
    let Some(header) = file.get(start..start + len).and_then(|header| std::str::from_utf8(header).ok()) else {
        return bad("the header is cut off");
    };
    let field = |name: &str| header.split_once(name).map(|(_, rest)| rest.trim_start_matches([':', ' ']));
    let descr = field("'descr'").and_then(|rest| rest.split('\'').nth(1)).unwrap_or_default();
    let known = TYPES.iter().find(|known| descr.trim_start_matches(['<', '|', '=']) == **known);
    let Some(descr) = known else { return bad(&format!("type {descr:?} is not supported")) };
    if field("'fortran_order'").is_none_or(|rest| rest.starts_with("True")) {
        return bad("columns come first");
    }
    let shape = field("'shape'").and_then(|rest| rest.split(['(', ')']).nth(1)).unwrap_or_default();
    let sizes = shape.split(',').map(str::trim).filter(|size| !size.is_empty());
    let Ok(shape) = sizes.map(str::parse::<usize>).collect::<Result<Vec<_>, _>>() else { return bad("bad shape") };
    let width = usize::from(descr.as_bytes()[1] - b'0');
    let expected = shape.iter().try_fold(width, |bytes, size| bytes.checked_mul(*size));
    let bytes = &file[start + len..];
    if expected != Some(bytes.len()) {
        return bad("its size does not fit its shape");
    }
    Ok(Array { descr, shape, bytes: bytes.to_vec() })
}

pub(super) fn write(descr: &str, shape: &[usize], bytes: &[u8]) -> Vec<u8> {
    let order = if descr.ends_with('1') { '|' } else { '<' };
    let sizes: String = shape.iter().map(|size| format!("{size}, ")).collect();
    let header = format!("{{'descr': '{order}{descr}', 'fortran_order': False, 'shape': ({}), }}", sizes.trim_end());
    let padded = (10 + header.len() + 1).next_multiple_of(64) - 10;
    let mut file = b"\x93NUMPY\x01\x00".to_vec();
    file.extend((padded as u16).to_le_bytes());
    file.extend(format!("{header:<width$}\n", width = padded - 1).bytes());
    file.extend(bytes);
    file
}
