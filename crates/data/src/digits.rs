//! The bundled digits: real handwriting, small enough to ship.

use std::io::Read;

use flate2::read::GzDecoder;
use tensor_core::{Device, Error, Result, Tensor};

use crate::TensorDataset;

/// 1,797 images of handwritten digits from 13 people, with their labels.
///
/// The test set of the UCI *Optical Recognition of Handwritten Digits* (E. Alpaydin and C. Kaynak, CC BY 4.0,
/// <https://doi.org/10.24432/C50P49>).
///
/// # Shapes
/// | | shape | dtype | values |
/// |---|---|---|---|
/// | images | \[1797, 1, 8, 8] | f32 | ink from 0 to 1 in steps of 1/16 |
/// | labels | \[1797] | i64 | 0 to 9 |
#[derive(Clone, Debug)]
pub struct Digits {
    /// The images: number, channel, row, column.
    pub images: Tensor,
    /// The digit on each.
    pub labels: Tensor,
}

const FILE: &[u8] = include_bytes!("digits/digits.csv.gz");

impl Digits {
    /// How many images there are.
    pub const LEN: usize = 1797;
    /// How many digits there are.
    pub const CLASSES: usize = 10;
    /// The height and width of an image.
    pub const SIDE: usize = 8;

    /// Unpacks the digits to `device`.
    ///
    /// # Errors
    /// What the device reports.
    pub fn load(device: &Device) -> Result<Self> {
        let (images, labels) = unpack()?;
        Ok(Self {
            images: Tensor::from_vec(images, [Self::LEN, 1, Self::SIDE, Self::SIDE], device)?,
            labels: Tensor::from_vec(labels, [Self::LEN], device)?,
        })
    }

    /// The images and their labels as a data set.
    pub fn into_dataset(self) -> Result<TensorDataset<(Tensor, Tensor)>> {
        TensorDataset::new((self.images, self.labels))
    }
}

/// Each line: the ink of 64 cells, then the digit.
fn unpack() -> Result<(Vec<f32>, Vec<i64>)> {
    let damaged = || Error::format("digits", "the embedded file is damaged");
    let mut text = String::new();
    GzDecoder::new(FILE).read_to_string(&mut text).map_err(|error| damaged().with_source(error))?;
    let mut images = Vec::with_capacity(Digits::LEN * Digits::SIDE * Digits::SIDE);
    let mut labels = Vec::with_capacity(Digits::LEN);
    for line in text.lines() {
        let numbers = line.split(',').map(str::parse::<u8>);
        let numbers = numbers.collect::<Result<Vec<_>, _>>().map_err(|error| damaged().with_source(error))?;
        let (label, ink) = numbers.split_last().ok_or_else(damaged)?;
        images.extend(ink.iter().map(|&ink| f32::from(ink) / 16.0));
        labels.push(i64::from(*label));
    }
    Ok((images, labels))
}
