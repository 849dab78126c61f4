//! Random orthonormal rows or columns: Gram–Schmidt on normal numbers, in f64 on the host.

use super::{host_normal, host_uniform};

/// A row-major matrix [rows, columns] whose rows (columns, where those are fewer) are orthogonal and `gain` long.
pub(super) fn draw(rows: usize, columns: usize, gain: f64) -> Vec<f64> {
    let (n_vectors, len) = (rows.min(columns), rows.max(columns));
    let mut normal = host_normal(host_uniform());
    let mut vectors: Vec<Vec<f64>> = Vec::with_capacity(n_vectors);
    for _ in 0..n_vectors {
        let mut v: Vec<f64> = normal.by_ref().take(len).collect();
        // Once more, for what rounding left of the others.
        for _ in 0..2 {
            for q in &vectors {
                let along = dot(q, &v);
                v.iter_mut().zip(q).for_each(|(v, q)| *v -= along * q);
            }
        }
        let norm = dot(&v, &v).sqrt();
        v.iter_mut().for_each(|v| *v /= norm);
        vectors.push(v);
    }
    if rows <= columns {
        vectors.iter().flatten().map(|v| gain * v).collect()
    } else {
        (0..rows).flat_map(|row| vectors.iter().map(move |v| gain * v[row])).collect()
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}
