//! Normal numbers restricted to an interval, in f64 on the host: drawn until they fall in, or by the inverse of the
//! distribution function where few would.

use super::{host_normal, host_uniform};
use tensor_core::{Error, Result};

/// `n` numbers of N(mean, std²) in [low, high].
pub(super) fn draw(n: usize, mean: f64, std: f64, low: f64, high: f64) -> Result<Vec<f64>> {
    let sensible = std >= 0.0 && low <= high && [mean, std].iter().all(|v| v.is_finite());
    if !sensible {
        return Err(Error::value(
            "truncated_normal",
            format!(
                "std must not be negative and low must not exceed high: mean {mean:?}, std {std:?}, low {low:?}, high {high:?}"
            ),
        ));
    }
    if std == 0.0 {
        return Ok(vec![mean.clamp(low, high); n]);
    }
    let (from, to) = (probability((low - mean) / std), probability((high - mean) / std));
    if from >= to && low < high {
        return Err(Error::value(
            "truncated_normal",
            format!("the interval lies too far from the mean: mean {mean:?}, std {std:?}, low {low:?}, high {high:?}"),
        ));
    }
    let draws = host_uniform();
    if to - from > 0.25 {
        // Most numbers of the whole distribution fall in.
        let all = host_normal(draws).map(|x| mean + std * x);
        return Ok(all.filter(|x| (low..=high).contains(x)).take(n).collect());
    }
    Ok(draws.take(n).map(|u| (mean + std * quantile(from + u * (to - from))).clamp(low, high)).collect())
}

/// Φ(x).
fn probability(x: f64) -> f64 {
    if x.is_infinite() {
        f64::from(x > 0.0)
    } else {
        0.5 * (1.0 + tensor_core::math::erf(x * std::f64::consts::FRAC_1_SQRT_2))
    }
}

/// Φ⁻¹(p): Newton's steps, halving the bracket where one would leave it.
fn quantile(p: f64) -> f64 {
    let (mut low, mut high, mut x) = (-40.0, 40.0, 0.0f64);
    for _ in 0..80 {
        let error = probability(x) - p;
        if error > 0.0 {
            high = x
        } else {
            low = x
        }
        let density = (-0.5 * x * x).exp() / std::f64::consts::TAU.sqrt();
        let newton = x - error / density;
        let next = if low < newton && newton < high { newton } else { 0.5 * (low + high) };
        if (next - x).abs() < 1e-13 {
            return next;
        }
        x = next;
    }
    x
}
