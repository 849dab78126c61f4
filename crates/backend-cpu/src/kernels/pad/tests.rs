use smallvec::SmallVec;
use tensor_core::op::Pad;
use tensor_core::{DType, Number, Op};

use crate::kernels::testing::{Array, Expected, check, indices};

#[test]
fn values_surround_and_separate_the_elements() {
    // Per axis: size, before, after, interior.
    let cases: [&[[usize; 4]]; 6] = [
        &[[5, 2, 1, 0]],
        &[[3, 0, 2, 3], [4, 1, 0, 0]],
        &[[2, 1, 1, 1], [3, 0, 0, 2], [5, 2, 3, 1]],
        &[[0, 2, 1, 4]],
        &[[4, 0, 0, 0], [0, 1, 1, 0]],
        &[[70, 3, 0, 1], [301, 1, 1, 2]],
    ];
    for case in cases {
        let part = |k: usize| case.iter().map(|axis| axis[k]).collect::<SmallVec<[usize; 4]>>();
        let pad = Pad { before: part(1), after: part(2), interior: part(3), value: Number::Int(9) };
        let shape = part(0);
        let size = |[n, before, after, interior]: [usize; 4]| before + n + n.saturating_sub(1) * interior + after;
        let sizes: Vec<usize> = case.iter().map(|&axis| size(axis)).collect();
        check(&Op::Pad(pad), &[Array::sample(&shape, 4)], &DType::ALL[..7], |inputs| {
            let value = |index: Vec<usize>| {
                let from = index.iter().zip(case).map(|(&i, &[n, before, _, interior])| {
                    let i = i.checked_sub(before)?;
                    (i % (interior + 1) == 0 && i / (interior + 1) < n).then_some(i / (interior + 1))
                });
                from.collect::<Option<Vec<_>>>().map_or(9.0, |index| inputs[0].get(&index))
            };
            vec![Expected::exact(indices(&sizes).map(value).collect())]
        });
    }
}
