//! Products of matrices, with epilogues, and in index notation.

use std::sync::OnceLock;

use tensor_core::{Expr, einsum, expr};

use super::{MANY, is_rare, subject};
use crate::suite::case::{Call, Subject};
use crate::suite::draw::Draw;
use crate::suite::input::Input;

/// The operands of a product: M, K and N, of which one may be past a block, and batch axes that broadcast both ways.
fn operands(draw: &mut Draw<'_>) -> (Vec<usize>, Vec<usize>) {
    if is_rare(draw, 150) {
        return (vec![MANY, 1, 2], vec![MANY, 2, 1]);
    }
    let n_batch = draw.pick(&[0, 0, 1, 2]);
    let limit = if n_batch > 0 { 512 } else { 4096 };
    let sizes = draw.dims(3, limit);
    let (m, k, n) = match draw.below(3) {
        0 => (sizes[0], sizes[1], sizes[2]),
        1 => (sizes[1], sizes[0], sizes[2]),
        _ => (sizes[2], sizes[1], sizes[0]),
    };
    let batch = draw.dims(n_batch, 9);
    let (mut lhs, mut rhs) = (draw.broadcast(&batch), draw.broadcast(&batch));
    lhs.extend([m, k]);
    rhs.extend([if is_rare(draw, 24) { k + 1 } else { k }, n]);
    (lhs, rhs)
}

/// Epilogues over the product and one further input.
pub(super) fn epilogues() -> &'static [Expr] {
    static EPILOGUES: OnceLock<Vec<Expr>> = OnceLock::new();
    EPILOGUES.get_or_init(|| {
        vec![
            expr::build(|[y, b]| y + b),
            expr::build(|[y, b]| (y + b).tanh()),
            expr::build(|[y, b]| y * 0.5 + b * b),
            expr::build(|[y, b]| (y * b).sigmoid()),
        ]
    })
}

/// Notations; a letter's size follows from its place in the alphabet, and an ellipsis stands for an axis of 2.
const NOTATIONS: &[&str] = &[
    "ij,jk->ik",
    "ij->ji",
    "ij->i",
    "ij->",
    "i,i->",
    "i,j->ij",
    "ii->i",
    "ii",
    "ij,ij->j",
    "bij,bjk->bik",
    "bij,bkj->bik",
    "bi,bi,bi->b",
    "...ij,...jk->...ik",
    "...i->...",
    "ij,kj,kl->il",
    "bhqd,bhkd->bhqk",
    "ijk,jil->kl",
    "i,ij,j",
    "ij,jk->iz",
    "ij,jk,->ik",
];

fn term(text: &str, sizes: &[usize]) -> Vec<usize> {
    let letters = text.trim_start_matches("...");
    let lead = if letters.len() < text.len() { vec![2] } else { Vec::new() };
    lead.into_iter().chain(letters.bytes().map(|letter| sizes[usize::from(letter) % sizes.len()])).collect()
}

pub(super) fn subjects() -> Vec<Subject> {
    vec![
        subject("matmul", "matmul(rhs)", |draw, _| {
            let (mut lhs, mut rhs) = operands(draw);
            if lhs.len() == 2 && draw.below(6) == 5 {
                lhs.remove(0);
            }
            if rhs.len() == 2 && draw.below(6) == 5 {
                rhs.pop();
            }
            Call::new("", vec![Input::data(&lhs), Input::data(&rhs)], |x| x[0].matmul(&x[1]))
        }),
        subject("matmul_with", "matmul_with(rhs, epilogue, extra)", |draw, _| {
            let (lhs, rhs) = operands(draw);
            let (m, n) = (lhs[lhs.len() - 2], rhs[rhs.len() - 1]);
            let (extra, i) = (draw.broadcast(&[m, n]), draw.below(epilogues().len()));
            let inputs = vec![Input::data(&lhs), Input::data(&rhs), Input::data(&extra)];
            Call::new(format!("epilogue {i}"), inputs, move |x| x[0].matmul_with(&x[1], &epilogues()[i], &[&x[2]]))
        }),
        subject("einsum", "einsum(notation, inputs)", |draw, _| {
            let notation = draw.pick(NOTATIONS);
            let sizes: Vec<usize> = (0..5).map(|_| draw.size(9)).collect();
            let terms = notation.split("->").next().unwrap_or(notation).split(',');
            let inputs = terms.map(|text| Input::data(&term(text, &sizes))).collect();
            Call::new(notation, inputs, move |x| einsum(notation, &x.iter().collect::<Vec<_>>()))
        }),
    ]
}
