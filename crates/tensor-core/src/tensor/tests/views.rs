//! Movements: the layout that comes out, and that no data moves.

use super::{Bench, layout};
use crate::{Result, Tensor};

type Movement = fn(&Tensor) -> Result<Tensor>;

#[test]
fn movements_change_the_layout_and_move_nothing() {
    let bench = Bench::new("silent");
    // Strides [12, 4, 1].
    let x = bench.f32(&[2, 3, 4]);
    let cases: &[(&str, Movement, (&[usize], &[isize], usize))] = &[
        ("reshape", |x| x.reshape([6, -1]), (&[6, 4], &[4, 1], 0)),
        ("reshape to the same", |x| x.reshape([2, 3, 4]), (&[2, 3, 4], &[12, 4, 1], 0)),
        ("reshape tuple", |x| x.reshape((4, -1)), (&[4, 6], &[6, 1], 0)),
        ("reshape one", |x| x.reshape(-1), (&[24], &[1], 0)),
        ("reshape of a slice", |x| x.narrow(0, 1, 1)?.reshape([3, 2, 2]), (&[3, 2, 2], &[4, 2, 1], 12)),
        ("reshape that splits", |x| x.narrow(1, 1, 2)?.reshape([2, 2, 2, 2]), (&[2, 2, 2, 2], &[12, 4, 2, 1], 4)),
        ("reshape of a flip", |x| x.flip(..)?.reshape([24]), (&[24], &[-1], 23)),
        ("permute", |x| x.permute([2, 0, -2]), (&[4, 2, 3], &[1, 12, 4], 0)),
        ("transpose", |x| x.transpose(0, -1), (&[4, 3, 2], &[1, 4, 12], 0)),
        ("expand", |x| x.unsqueeze(1)?.expand([5, 2, 3, 3, -1]), (&[5, 2, 3, 3, 4], &[0, 12, 0, 4, 1], 0)),
        ("unsqueeze", |x| x.unsqueeze(-1), (&[2, 3, 4, 1], &[12, 4, 1, 1], 0)),
        ("squeeze", |x| x.narrow(0, 1, 1)?.squeeze(0), (&[3, 4], &[4, 1], 12)),
        ("flatten all", |x| x.flatten(..), (&[24], &[1], 0)),
        ("flatten from", |x| x.flatten(1..), (&[2, 12], &[12, 1], 0)),
        ("flatten within", |x| x.flatten(..=-2), (&[6, 4], &[4, 1], 0)),
        ("flatten none", |x| x.flatten(1..1), (&[2, 1, 3, 4], &[12, 12, 4, 1], 0)),
        ("narrow", |x| x.narrow(-1, 1, 2), (&[2, 3, 2], &[12, 4, 1], 1)),
        ("slice", |x| x.slice(2, 1..4, 2), (&[2, 3, 2], &[12, 4, 2], 1)),
        ("slice backwards", |x| x.slice(2, 1..4, -2), (&[2, 3, 2], &[12, 4, -2], 3)),
        ("slice of all backwards", |x| x.slice(1, .., -1), (&[2, 3, 4], &[12, -4, 1], 8)),
        ("slice from the end", |x| x.slice(2, -3.., 1), (&[2, 3, 3], &[12, 4, 1], 1)),
        ("slice inclusive", |x| x.slice(2, 1..=2, 1), (&[2, 3, 2], &[12, 4, 1], 1)),
        ("slice of nothing", |x| x.slice(2, 2..2, -1), (&[2, 3, 0], &[12, 4, -1], 0)),
        ("flip", |x| x.flip([0, 2]), (&[2, 3, 4], &[-12, 4, -1], 15)),
        ("flip twice", |x| x.flip(0)?.flip(0), (&[2, 3, 4], &[12, 4, 1], 0)),
        ("diag", |x| x.narrow(0, 1, 1)?.squeeze(0)?.diag(1), (&[3], &[5], 13)),
        ("chunk", |x| Ok(x.chunk(2, 1)?.remove(1)), (&[2, 1, 4], &[12, 4, 1], 8)),
        ("split", |x| Ok(x.split(&[1, 0, 3], -1)?.remove(2)), (&[2, 3, 3], &[12, 4, 1], 1)),
    ];
    for (name, movement, (shape, strides, offset)) in cases {
        let y = movement(&x).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(layout(&y), (shape.to_vec(), strides.to_vec(), *offset), "{name}");
    }
    assert_eq!(bench.asked(), Vec::<String>::new(), "nothing was computed");
}

#[test]
fn a_reshape_that_no_strides_express_copies_first() {
    let bench = Bench::new("silent");
    let x = bench.f32(&[2, 3, 4]);
    let y = x.transpose(0, 1).and_then(|x| x.reshape([6, 4])).expect("reshapes");
    assert_eq!(layout(&y), (vec![6, 4], vec![4, 1], 0));
    assert_eq!(bench.asked(), ["copy([3, 2, 4]) -> [3, 2, 4]"]);
    // Empty and expanded tensors reshape without a copy where they can.
    bench.f32(&[0, 3]).t().and_then(|x| x.reshape([0, 7])).expect("an empty tensor takes any empty shape");
    x.unsqueeze(0).and_then(|x| x.expand([5, 2, 3, 4])).and_then(|x| x.reshape([5, 6, 4])).expect("stride 0 stays");
    assert_eq!(bench.asked(), Vec::<String>::new());
}

/// Every reshape of every view of a small tensor against the positions that it should have.
#[test]
fn reshaped_views_hold_the_same_elements_in_order() {
    let bench = Bench::new("silent");
    let x = bench.f32(&[2, 3, 4]);
    let views: Vec<Tensor> = [
        x.clone(),
        x.permute([2, 1, 0]).expect("permutes"),
        x.flip(1).expect("flips"),
        x.flip(..).expect("flips"),
        x.narrow(2, 0, 2).expect("narrows"),
        x.slice(2, .., -2).expect("slices"),
        x.narrow(1, 1, 1).expect("narrows"),
        x.narrow(1, 0, 1).and_then(|x| x.expand([2, 3, 4])).expect("expands"),
    ]
    .into();
    let shapes: [&[usize]; 9] =
        [&[24], &[2, 12], &[6, 4], &[2, 3, 2, 2], &[12], &[2, 6], &[4, 3], &[8], &[1, 2, 1, 3, 2]];
    let mut n_views = 0;
    for view in &views {
        for shape in shapes.iter().filter(|s| s.iter().product::<usize>() == view.len()) {
            bench.asked();
            let y = view.reshape(*shape).expect("the sizes fit");
            if bench.asked().is_empty() {
                assert_eq!(positions(&y), positions(view), "{:?} as {shape:?}", layout(view));
                n_views += 1;
            }
        }
    }
    assert!(n_views >= 12, "only {n_views} reshapes needed no copy");
}

/// The storage positions in row-major order.
fn positions(x: &Tensor) -> Vec<isize> {
    let mut positions = vec![x.layout().offset() as isize];
    for (&n, &stride) in x.dims().iter().zip(x.layout().strides()) {
        positions = positions.iter().flat_map(|p| (0..n as isize).map(move |i| p + i * stride)).collect();
    }
    positions
}
