//! Parts of a data set: chosen, shuffled, split, folded, balanced. None copies an observation.

use std::collections::BTreeMap;
use std::sync::Arc;

use tensor_core::{Error, Result};

use crate::dataset::{fetch, in_range};
use crate::{Batch, Dataset, Rng};

/// Some observations of a shared data set, in some order; cheap to clone.
#[derive(Debug)]
pub struct Subset<D> {
    set: Arc<D>,
    indices: Arc<[usize]>,
}

impl<D> Subset<D> {
    fn new(set: &Arc<D>, indices: impl Into<Arc<[usize]>>) -> Self {
        Self { set: set.clone(), indices: indices.into() }
    }

    /// Where the observations lie in the whole set.
    pub fn indices(&self) -> &[usize] {
        &self.indices
    }

    /// The whole set.
    pub fn whole(&self) -> &Arc<D> {
        &self.set
    }
}

impl<D> Clone for Subset<D> {
    fn clone(&self) -> Self {
        Self { set: self.set.clone(), indices: self.indices.clone() }
    }
}

impl<D: Dataset> Dataset for Subset<D> {
    type Item = D::Item;

    fn len(&self) -> usize {
        self.indices.len()
    }

    fn get(&self, index: usize) -> Result<D::Item> {
        in_range("subset", index, self.indices.len())?;
        fetch(&*self.set, self.indices[index])
    }

    fn batch(&self, indices: &[usize]) -> Result<D::Item>
    where
        D::Item: Batch,
    {
        indices.iter().try_for_each(|&index| in_range("subset", index, self.indices.len()))?;
        self.set.batch(&indices.iter().map(|&index| self.indices[index]).collect::<Vec<_>>())
    }
}

/// The observations at `indices`, in that order; an index may be there more than once.
///
/// # Errors
/// An index out of range.
pub fn subset<D: Dataset>(set: D, indices: impl Into<Vec<usize>>) -> Result<Subset<D>> {
    let indices = indices.into();
    indices.iter().try_for_each(|&index| in_range("subset", index, set.len()))?;
    Ok(Subset::new(&Arc::new(set), indices))
}

/// All observations in an order that depends on `seed` alone.
pub fn shuffle<D: Dataset>(set: D, seed: u64) -> Subset<D> {
    let order = Rng::new(seed, 0).permutation(set.len());
    Subset::new(&Arc::new(set), order)
}

/// Two parts in random order: the first holds `ratio` of the observations, rounded to the nearest, the second the rest.
///
/// ```
/// use data::Dataset;
///
/// let (train, test) = data::split(vec![1, 2, 3, 4, 5], 0.8, 42)?;
/// assert_eq!((train.len(), test.len()), (4, 1));
/// # Ok::<(), tensor_core::Error>(())
/// ```
///
/// # Errors
/// A ratio outside 0 to 1.
pub fn split<D: Dataset>(set: D, ratio: f64, seed: u64) -> Result<(Subset<D>, Subset<D>)> {
    check_ratio("split", ratio)?;
    let set = Arc::new(set);
    let mut order = Rng::new(seed, 0).permutation(set.len());
    let rest = order.split_off((ratio * set.len() as f64).round() as usize);
    Ok((Subset::new(&set, order), Subset::new(&set, rest)))
}

/// As [`split`], each class divided by the ratio: `labels` holds one label per observation.
///
/// # Errors
/// A ratio outside 0 to 1, or another number of labels than observations.
pub fn split_stratified<D: Dataset, L: Ord>(
    set: D,
    labels: &[L],
    ratio: f64,
    seed: u64,
) -> Result<(Subset<D>, Subset<D>)> {
    check_ratio("split_stratified", ratio)?;
    let mut rng = Rng::new(seed, 0);
    let (mut first, mut second) = (Vec::new(), Vec::new());
    for mut class in classes("split_stratified", &set, labels)? {
        rng.shuffle(&mut class);
        second.extend(class.split_off((ratio * class.len() as f64).round() as usize));
        first.append(&mut class);
    }
    rng.shuffle(&mut first);
    rng.shuffle(&mut second);
    let set = Arc::new(set);
    Ok((Subset::new(&set, first), Subset::new(&set, second)))
}

/// `k` pairs of training and validation part: each observation validates once, folds differ in size by at most one.
///
/// # Errors
/// Fewer than two folds, or more folds than observations.
pub fn k_folds<D: Dataset>(set: D, k: usize, seed: u64) -> Result<Vec<(Subset<D>, Subset<D>)>> {
    if k < 2 || k > set.len() {
        return Err(Error::value(
            "k_folds",
            format!("k must lie between 2 and the number of observations: k {k}, observations {}", set.len()),
        ));
    }
    let set = Arc::new(set);
    let order = Rng::new(seed, 0).permutation(set.len());
    let fold = |i: usize| {
        let (start, end) = (i * order.len() / k, (i + 1) * order.len() / k);
        let rest = [&order[..start], &order[end..]].concat();
        (Subset::new(&set, rest), Subset::new(&set, &order[start..end]))
    };
    Ok((0..k).map(fold).collect())
}

/// Every class as often as the most frequent: all observations, and random ones of the smaller classes again.
///
/// # Errors
/// Another number of labels than observations.
pub fn oversample<D: Dataset, L: Ord>(set: D, labels: &[L], seed: u64) -> Result<Subset<D>> {
    let mut classes = classes("oversample", &set, labels)?;
    let most = classes.iter().map(Vec::len).max().unwrap_or(0);
    let mut rng = Rng::new(seed, 0);
    for class in &mut classes {
        // Whole rounds first, so that no observation is repeated much more often than another of its class.
        let own = class.clone();
        while class.len() < most {
            let mut round = own.clone();
            rng.shuffle(&mut round);
            round.truncate(most - class.len());
            class.extend(round);
        }
    }
    Ok(balanced(set, classes, rng))
}

/// Every class as often as the least frequent: random observations of the larger classes are left out.
///
/// # Errors
/// Another number of labels than observations.
pub fn undersample<D: Dataset, L: Ord>(set: D, labels: &[L], seed: u64) -> Result<Subset<D>> {
    let mut classes = classes("undersample", &set, labels)?;
    let least = classes.iter().map(Vec::len).min().unwrap_or(0);
    let mut rng = Rng::new(seed, 0);
    for class in &mut classes {
        rng.shuffle(class);
        class.truncate(least);
    }
    Ok(balanced(set, classes, rng))
}

fn balanced<D>(set: D, classes: Vec<Vec<usize>>, mut rng: Rng) -> Subset<D> {
    let mut indices = classes.concat();
    rng.shuffle(&mut indices);
    Subset::new(&Arc::new(set), indices)
}

fn check_ratio(op: &'static str, ratio: f64) -> Result<()> {
    if (0.0..=1.0).contains(&ratio) {
        return Ok(());
    }
    Err(Error::value(op, format!("ratio must lie between 0 and 1: ratio {ratio}")))
}

/// The indices of each class, classes in ascending order.
fn classes<D: Dataset, L: Ord>(op: &'static str, set: &D, labels: &[L]) -> Result<Vec<Vec<usize>>> {
    if labels.len() != set.len() {
        let (n, observations) = (labels.len(), set.len());
        return Err(Error::shape(
            op,
            format!("there must be one label per observation: labels {n}, observations {observations}"),
        ));
    }
    let mut classes = BTreeMap::<&L, Vec<usize>>::new();
    for (index, label) in labels.iter().enumerate() {
        classes.entry(label).or_default().push(index);
    }
    Ok(classes.into_values().collect())
}
