//! Sums of products in index notation, as permutations, reductions and batched matrix products.

use std::collections::BTreeMap;

use crate::{DType, Dims, Error, Result, Tensor};

/// A letter, or an axis that an ellipsis stands for: numbered from the last one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Label {
    Hidden(usize),
    Letter(char),
}

/// A tensor whose axes carry labels, each once.
struct Term {
    tensor: Tensor,
    labels: Vec<Label>,
}

/// Σ of products in index notation: `einsum("bij,bjk->bik", &[&a, &b])`.
///
/// Each input's axes have letters; equal letters have equal sizes; letters that the output does not name are summed.
/// Without `->` the output has the letters that occur once, in alphabetical order. `...` stands for further axes, which
/// broadcast. A letter twice in one input takes the diagonal.
///
/// # Errors
/// If the notation does not parse or fit the inputs, sizes of a letter differ, or the dtypes differ or are bool.
pub fn einsum(notation: &str, inputs: &[&Tensor]) -> Result<Tensor> {
    let fail = |text: String| Err(Error::shape("einsum", text));
    let compact: String = notation.chars().filter(|c| !c.is_whitespace()).collect();
    let (left, right) = compact.split_once("->").map_or((&compact[..], None), |(l, r)| (l, Some(r)));
    let written: Vec<&str> = left.split(',').collect();
    if written.len() != inputs.len() {
        return fail(format!("needs one input per term: notation {notation:?}, inputs {}", inputs.len()));
    }
    if let Some(i) = inputs.iter().position(|x| x.dtype() == DType::Bool || x.dtype() != inputs[0].dtype()) {
        return Err(Error::dtype(
            "einsum",
            format!(
                "inputs must have one dtype, not bool: input 0 {}, input {i} {}",
                inputs[0].dtype(),
                inputs[i].dtype()
            ),
        ));
    }
    let mut labels = Vec::with_capacity(inputs.len());
    for (i, (term, x)) in written.iter().zip(inputs).enumerate() {
        labels.push(parse(notation, term, Some((i, x)))?);
    }
    let output = match right {
        Some(right) => parse(notation, right, None)?,
        None => implied(&labels),
    };
    let hidden =
        labels.iter().flatten().filter_map(|l| if let Label::Hidden(i) = l { Some(i + 1) } else { None }).max();
    let output: Vec<Label> = output
        .into_iter()
        .flat_map(|l| match l {
            // Where it stands in the output, an ellipsis is all the axes that it stands for anywhere.
            Label::Hidden(_) => (0..hidden.unwrap_or(0)).rev().map(Label::Hidden).collect(),
            letter => vec![letter],
        })
        .collect();
    let sizes = sizes(notation, &labels, inputs)?;
    for (i, label) in output.iter().enumerate() {
        if output[..i].contains(label) || !sizes.contains_key(label) {
            return fail(format!(
                "an output letter must occur in an input, and once in the output: notation {notation:?}"
            ));
        }
    }
    let mut terms = Vec::with_capacity(inputs.len());
    for (labels, x) in labels.into_iter().zip(inputs) {
        terms.push(diagonal(Term { tensor: (*x).clone(), labels })?.expanded(&sizes)?);
    }
    contract(terms, &output, &sizes)
}

/// The labels of a term; of the output (without `input`) an ellipsis is one hidden label.
fn parse(notation: &str, term: &str, input: Option<(usize, &&Tensor)>) -> Result<Vec<Label>> {
    let fail = |rule: &str| Err(Error::value("einsum", format!("{rule}: notation {notation:?}, term {term:?}")));
    let (before, after) = match term.split_once("...") {
        Some((before, after)) => (before, Some(after)),
        None => (term, None),
    };
    let letters = before.chars().chain(after.unwrap_or("").chars());
    if letters.clone().any(|c| !c.is_ascii_alphabetic()) {
        return fail("axes are letters, and at most one ellipsis");
    }
    let n_letters = letters.count();
    let n_hidden = match (input, after) {
        (None, Some(_)) => 1,
        (_, None) => 0,
        (Some((_, x)), Some(_)) => x.rank().saturating_sub(n_letters),
    };
    if let Some((i, x)) = input
        && x.rank() != n_letters + n_hidden
    {
        return Err(Error::shape(
            "einsum",
            format!("needs one letter per axis: term {term:?}, input {i} {}", x.shape()),
        ));
    }
    let hidden = (0..n_hidden).rev().map(Label::Hidden);
    Ok(before.chars().map(Label::Letter).chain(hidden).chain(after.unwrap_or("").chars().map(Label::Letter)).collect())
}

/// The ellipsis and the letters that occur once, in order.
fn implied(labels: &[Vec<Label>]) -> Vec<Label> {
    let mut counts: BTreeMap<Label, usize> = BTreeMap::new();
    labels.iter().flatten().for_each(|&l| *counts.entry(l).or_default() += 1);
    counts
        .into_iter()
        .filter(|&(l, n)| l == Label::Hidden(0) || (n == 1 && matches!(l, Label::Letter(_))))
        .map(|(l, _)| l)
        .collect()
}

fn sizes(notation: &str, labels: &[Vec<Label>], inputs: &[&Tensor]) -> Result<BTreeMap<Label, usize>> {
    let mut sizes: BTreeMap<Label, (usize, usize)> = BTreeMap::new();
    for (i, (labels, x)) in labels.iter().zip(inputs).enumerate() {
        for (&label, &n) in labels.iter().zip(x.dims()) {
            let (first, known) = *sizes.entry(label).or_insert((i, n));
            match label {
                _ if known == n => {}
                Label::Hidden(_) if known == 1 => {
                    sizes.insert(label, (i, n));
                }
                Label::Hidden(_) if n == 1 => {}
                _ => {
                    let name = if let Label::Letter(c) = label { c.to_string() } else { "...".into() };
                    return Err(Error::shape(
                        "einsum",
                        format!(
                            "sizes of {name} differ: notation {notation:?}, input {first} has {known}, input {i} has {n}"
                        ),
                    ));
                }
            }
        }
    }
    Ok(sizes.into_iter().map(|(label, (_, n))| (label, n)).collect())
}

/// Axes with the same label become one: the diagonal.
fn diagonal(mut term: Term) -> Result<Term> {
    while let Some(second) = (1..term.labels.len()).find(|&i| term.labels[..i].contains(&term.labels[i])) {
        let label = term.labels.remove(second);
        let first = term.labels.iter().position(|&l| l == label).expect("invariant: a label that occurs twice");
        let n = term.tensor.dims()[second];
        let mut axes: Dims = (0..term.tensor.rank()).filter(|&a| a != first && a != second).collect();
        axes.extend([first, second]);
        let flat = term.tensor.permute(&axes[..])?.flatten(-2..)?;
        let rank = flat.rank();
        term.tensor = flat.cut(rank - 1, 0, n, n as isize + 1)?;
        term.labels.remove(first);
        term.labels.push(label);
    }
    Ok(term)
}

impl Term {
    /// Hidden axes of size 1 repeated to their full size.
    fn expanded(self, sizes: &BTreeMap<Label, usize>) -> Result<Term> {
        let dims: Dims = self.labels.iter().map(|l| sizes[l]).collect();
        Ok(Term { tensor: self.tensor.expand(&dims[..])?, labels: self.labels })
    }

    /// The labels outside `kept` summed.
    fn summed(self, kept: impl Fn(Label) -> bool) -> Result<Term> {
        let axes: Dims = (0..self.labels.len()).filter(|&a| !kept(self.labels[a])).collect();
        if axes.is_empty() {
            return Ok(self);
        }
        let tensor = self.tensor.sum(&axes[..])?;
        Ok(Term { tensor, labels: self.labels.into_iter().filter(|&l| kept(l)).collect() })
    }

    /// The axes in the order of these labels; a label that this term lacks is an axis of size 1.
    fn arranged(&self, labels: &[Label]) -> Result<Tensor> {
        let axes: Dims = labels.iter().filter_map(|l| self.labels.iter().position(|m| m == l)).collect();
        let mut x = self.tensor.permute(&axes[..])?;
        for (axis, label) in labels.iter().enumerate() {
            if !self.labels.contains(label) {
                x = x.unsqueeze(axis)?;
            }
        }
        Ok(x)
    }
}

/// Contracts the pair with the smallest result first, until one term is left.
fn contract(mut terms: Vec<Term>, output: &[Label], sizes: &BTreeMap<Label, usize>) -> Result<Tensor> {
    while terms.len() > 1 {
        let needed = |skip: (usize, usize), label: Label| {
            output.contains(&label)
                || terms.iter().enumerate().any(|(k, t)| k != skip.0 && k != skip.1 && t.labels.contains(&label))
        };
        let cost = |i: usize, j: usize| -> f64 {
            let mut labels: Vec<Label> = terms[i].labels.iter().chain(&terms[j].labels).copied().collect();
            labels.sort_unstable();
            labels.dedup();
            labels.into_iter().filter(|&l| needed((i, j), l)).map(|l| sizes[&l] as f64).product()
        };
        let pairs = (0..terms.len()).flat_map(|i| (i + 1..terms.len()).map(move |j| (i, j)));
        let (i, j) =
            pairs.min_by(|&a, &b| cost(a.0, a.1).total_cmp(&cost(b.0, b.1))).expect("invariant: two terms make a pair");
        let kept: Vec<Label> = sizes.keys().copied().filter(|&l| needed((i, j), l)).collect();
        let (b, a) = (terms.remove(j), terms.remove(i));
        terms.insert(i, multiply(a, b, &kept, sizes)?);
    }
    let last = terms.remove(0).summed(|l| output.contains(&l))?;
    last.arranged(output)
}

/// The product of two terms, summed over the labels outside `kept`.
fn multiply(a: Term, b: Term, kept: &[Label], sizes: &BTreeMap<Label, usize>) -> Result<Term> {
    let (in_a, in_b) = (a.labels.clone(), b.labels.clone());
    let a = a.summed(|l| kept.contains(&l) || in_b.contains(&l))?;
    let b = b.summed(|l| kept.contains(&l) || in_a.contains(&l))?;
    let shared = |l: &Label| b.labels.contains(l);
    let batch: Vec<Label> = a.labels.iter().copied().filter(|l| shared(l) && kept.contains(l)).collect();
    let inner: Vec<Label> = a.labels.iter().copied().filter(|l| shared(l) && !kept.contains(l)).collect();
    let rows: Vec<Label> = a.labels.iter().copied().filter(|l| !shared(l)).collect();
    let columns: Vec<Label> = b.labels.iter().copied().filter(|l| !a.labels.contains(l)).collect();
    let labels = [&batch[..], &rows, &columns].concat();
    if inner.is_empty() {
        return Ok(Term { tensor: a.arranged(&labels)?.mul(&b.arranged(&labels)?)?, labels });
    }
    let size = |labels: &[Label]| labels.iter().map(|l| sizes[l]).product::<usize>();
    let lead: Dims = batch.iter().map(|l| sizes[l]).collect();
    let shape = |m: usize, n: usize| -> Dims { lead.iter().copied().chain([m, n]).collect() };
    let lhs = a.arranged(&[&batch[..], &rows, &inner].concat())?.reshape(&shape(size(&rows), size(&inner))[..])?;
    let rhs =
        b.arranged(&[&batch[..], &inner, &columns].concat())?.reshape(&shape(size(&inner), size(&columns))[..])?;
    let dims: Dims = labels.iter().map(|l| sizes[l]).collect();
    Ok(Term { tensor: lhs.matmul(&rhs)?.reshape(&dims[..])?, labels })
}
