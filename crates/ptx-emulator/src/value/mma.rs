//! Sums of products as matrix units make them.

use super::float::bits32;
use super::round::exponent;

/// Multiplies and adds one element of a matrix product as tensor cores of the Hopper generation do.
///
/// The products of a group and the sum so far are aligned to the largest exponent among them, cut two bits below the
/// last bit of f32, and added exactly; the sum is cut to f32. Source: "Accurate Models of NVIDIA Tensor Cores"
/// (arXiv 2512.07004).
pub(crate) fn hopper(a: &[f32], b: impl Fn(usize) -> f32, c: f32, group: usize) -> f32 {
    let mut sum = c;
    for (g, a) in a.chunks(group).enumerate() {
        let products = |i: usize| f64::from(a[i]) * f64::from(b(g * group + i));
        let mut special = f64::from(sum);
        let mut largest = if sum == 0.0 { i32::MIN } else { exponent(sum.into()) };
        for i in 0..a.len() {
            let product = products(i);
            special += if product.is_finite() && sum.is_finite() { 0.0 } else { product };
            // The exponent of a product is the sum of those of its factors.
            if product != 0.0 {
                largest = largest.max(exponent(a[i].into()) + exponent(b(g * group + i).into()));
            }
        }
        if !special.is_finite() {
            sum = special as f32;
            continue;
        }
        if largest == i32::MIN {
            continue;
        }
        // Units of 2^(largest - 25): 24 bits of f32 and two more.
        let last = largest - 25;
        let units = |x: f64| -> i64 { (x * power(-last)) as i64 };
        let total = (0..a.len()).map(|i| units(products(i))).sum::<i64>() + units(sum.into());
        sum = truncate(total, last);
    }
    f32::from_bits(bits32(sum))
}

/// total · 2^last, rounded toward zero.
fn truncate(total: i64, last: i32) -> f32 {
    let magnitude = total.unsigned_abs();
    let surplus = (64 - magnitude.leading_zeros()).saturating_sub(24);
    let kept = (magnitude >> surplus) << surplus;
    let exact = kept as f64 * power(last);
    // Subnormal results lose more bits, toward zero as well.
    let nearest = exact as f32;
    let value = if f64::from(nearest).abs() > exact { nearest.next_down() } else { nearest };
    if total < 0 { -value } else { value }
}

fn power(exponent: i32) -> f64 {
    f64::from(exponent).exp2()
}
