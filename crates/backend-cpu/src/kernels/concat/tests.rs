use tensor_core::op::Concat;
use tensor_core::{DType, Op};

use crate::kernels::testing::{Array, Expected, check, indices};

#[test]
fn inputs_follow_one_another_along_the_axis() {
    let cases: [(&[&[usize]], usize); 6] = [
        (&[&[3], &[0], &[4]], 0),
        (&[&[2, 5], &[3, 5], &[1, 5]], 0),
        (&[&[4, 2], &[4, 3]], 1),
        (&[&[3, 2, 5], &[3, 1, 5], &[3, 7, 5]], 1),
        (&[&[300, 200], &[300, 301]], 1),
        (&[&[2, 0], &[2, 0]], 0),
    ];
    for (shapes, axis) in cases {
        let inputs: Vec<Array> = shapes.iter().enumerate().map(|(i, s)| Array::sample(s, i)).collect();
        let mut shape = shapes[0].to_vec();
        shape[axis] = shapes.iter().map(|s| s[axis]).sum();
        check(&Op::Concat(Concat { axis }), &inputs, &DType::ALL[..7], |inputs| {
            let value = |mut index: Vec<usize>| {
                let mut source = 0;
                while index[axis] >= inputs[source].shape[axis] {
                    index[axis] -= inputs[source].shape[axis];
                    source += 1;
                }
                inputs[source].get(&index)
            };
            vec![Expected::exact(indices(&shape).map(value).collect())]
        });
    }
}
