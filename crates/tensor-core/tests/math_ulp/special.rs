//! Special values, in both precisions.

use tensor_core::math;

/// Equal as numbers and in the sign of zero, or both NaN.
fn check(call: &str, got: f64, want: f64) {
    let agrees = (got.is_nan() && want.is_nan()) || (got == want && got.is_sign_negative() == want.is_sign_negative());
    assert!(agrees, "{call} is {got:e}, not {want:e}");
}

/// Checks `function(x) = want` for each pair, in single and double precision.
macro_rules! unary {
    ($function:ident: $($x:expr => $want:expr),+ $(,)?) => {
        $(
            check(concat!("f32 ", stringify!($function($x))), math::$function($x as f32).into(), $want);
            check(concat!("f64 ", stringify!($function($x))), math::$function($x as f64), $want);
        )+
    };
}

/// As `unary`, for two arguments.
macro_rules! binary {
    ($function:ident: $(($x:expr, $y:expr) => $want:expr),+ $(,)?) => {
        $(
            let call = stringify!($function($x, $y));
            check(&format!("f32 {call}"), math::$function($x as f32, $y as f32).into(), $want);
            check(&format!("f64 {call}"), math::$function($x as f64, $y as f64), $want);
        )+
    };
}

const INF: f64 = f64::INFINITY;
const NAN: f64 = f64::NAN;

#[test]
fn exponentials_and_logarithms() {
    unary!(exp: 0.0 => 1.0, -0.0 => 1.0, INF => INF, -INF => 0.0, NAN => NAN, 1e30 => INF, -1e30 => 0.0, -800.0 => 0.0);
    unary!(exp_m1: 0.0 => 0.0, -0.0 => -0.0, INF => INF, -INF => -1.0, NAN => NAN, 1e30 => INF, -1e30 => -1.0);
    unary!(ln: 1.0 => 0.0, 0.0 => -INF, -0.0 => -INF, -1.0 => NAN, -INF => NAN, INF => INF, NAN => NAN);
    unary!(ln_1p: 0.0 => 0.0, -0.0 => -0.0, -1.0 => -INF, -1.5 => NAN, -INF => NAN, INF => INF, NAN => NAN);
}

#[test]
fn odd_functions_keep_the_sign_of_zero_and_saturate() {
    unary!(sin: 0.0 => 0.0, -0.0 => -0.0, INF => NAN, -INF => NAN, NAN => NAN);
    unary!(cos: 0.0 => 1.0, -0.0 => 1.0, INF => NAN, -INF => NAN, NAN => NAN);
    unary!(tan: 0.0 => 0.0, -0.0 => -0.0, INF => NAN, -INF => NAN, NAN => NAN);
    unary!(tanh: 0.0 => 0.0, -0.0 => -0.0, 50.0 => 1.0, -50.0 => -1.0, INF => 1.0, -INF => -1.0, NAN => NAN);
    unary!(erf: 0.0 => 0.0, -0.0 => -0.0, 50.0 => 1.0, -50.0 => -1.0, INF => 1.0, -INF => -1.0, NAN => NAN);
}

#[test]
fn tiny_arguments_come_through_exactly() {
    for bits in [1_u32, 2, 3, 0x007f_ffff, 0x0080_0000, 0x0080_0001, 0x2000_0000] {
        for sign in [0, 1 << 31] {
            let x = f32::from_bits(bits | sign);
            for function in [math::exp_m1::<f32>, math::ln_1p, math::sin, math::tan, math::tanh] {
                assert_eq!(function(x).to_bits(), x.to_bits(), "at {x:e}");
            }
            assert_eq!(math::exp(x), 1.0);
            assert_eq!(math::cos(x), 1.0);
        }
    }
}

#[test]
fn roots_and_reciprocals() {
    unary!(sqrt: 4.0 => 2.0, 0.0 => 0.0, -0.0 => -0.0, -1.0 => NAN, INF => INF, NAN => NAN);
    unary!(rsqrt: 4.0 => 0.5, 0.0 => INF, -0.0 => -INF, -1.0 => NAN, INF => 0.0, NAN => NAN);
    unary!(recip: 4.0 => 0.25, 0.0 => INF, -0.0 => -INF, INF => 0.0, -INF => -0.0, NAN => NAN);
}

#[test]
fn rounding_and_sign() {
    unary!(floor: 1.5 => 1.0, -1.5 => -2.0, -0.0 => -0.0, 0.5 => 0.0, INF => INF, -INF => -INF, NAN => NAN);
    unary!(ceil: 1.5 => 2.0, -1.5 => -1.0, -0.5 => -0.0, 0.0 => 0.0, INF => INF, -INF => -INF, NAN => NAN);
    unary!(round: 0.5 => 0.0, 1.5 => 2.0, 2.5 => 2.0, -0.5 => -0.0, -1.5 => -2.0, 8388609.0 => 8388609.0, NAN => NAN);
    unary!(sign: 3.0 => 1.0, -3.0 => -1.0, 0.0 => 0.0, -0.0 => -0.0, INF => 1.0, -INF => -1.0, NAN => NAN);
    unary!(abs: -3.0 => 3.0, -0.0 => 0.0, -INF => INF, NAN => NAN);
    binary!(max: (1.0, 2.0) => 2.0, (2.0, 1.0) => 2.0, (NAN, 1.0) => NAN, (1.0, NAN) => NAN, (-INF, INF) => INF);
    binary!(min: (1.0, 2.0) => 1.0, (2.0, 1.0) => 1.0, (NAN, 1.0) => NAN, (1.0, NAN) => NAN, (-INF, INF) => -INF);
}

#[test]
fn rem_takes_the_sign_of_the_divisor() {
    binary!(rem:
        (5.5, 2.0) => 1.5, (-5.5, 2.0) => 0.5, (5.5, -2.0) => -0.5, (-5.5, -2.0) => -1.5,
        (4.0, 2.0) => 0.0, (-4.0, 2.0) => 0.0, (4.0, -2.0) => -0.0, (0.0, 3.0) => 0.0, (-0.0, 3.0) => 0.0,
        (1.0, 0.0) => NAN, (0.0, 0.0) => NAN, (INF, 2.0) => NAN, (-INF, 2.0) => NAN, (NAN, 2.0) => NAN,
        (2.0, NAN) => NAN,
        (5.0, INF) => 5.0, (-5.0, INF) => INF, (5.0, -INF) => -INF, (-5.0, -INF) => -5.0, (INF, INF) => NAN,
    );
}

#[test]
fn pow_has_the_special_values_of_ieee_754() {
    binary!(pow:
        (2.0, 10.0) => 1024.0, (2.0, -1.0) => 0.5, (4.0, 0.5) => 2.0, (3.0, 1.0) => 3.0, (3.0, 2.0) => 9.0,
        (NAN, 0.0) => 1.0, (NAN, -0.0) => 1.0, (0.0, 0.0) => 1.0, (INF, 0.0) => 1.0, (-3.0, -0.0) => 1.0,
        (1.0, NAN) => 1.0, (1.0, INF) => 1.0, (1.0, -INF) => 1.0, (1.0, 1e30) => 1.0,
        (-1.0, INF) => 1.0, (-1.0, -INF) => 1.0, (-1.0, 3.0) => -1.0, (-1.0, 4.0) => 1.0, (-1.0, 1e30) => 1.0,
        (2.0, INF) => INF, (2.0, -INF) => 0.0, (0.5, INF) => 0.0, (0.5, -INF) => INF, (-2.0, INF) => INF,
        (-2.0, -INF) => 0.0,
        (-0.5, INF) => 0.0, (-0.5, -INF) => INF, (1.000001, INF) => INF, (0.999999, INF) => 0.0,
        (0.0, 3.0) => 0.0, (-0.0, 3.0) => -0.0, (0.0, 2.0) => 0.0, (-0.0, 2.0) => 0.0, (-0.0, 0.5) => 0.0,
        (0.0, 1e-30) => 0.0,
        (0.0, -3.0) => INF, (-0.0, -3.0) => -INF, (-0.0, -2.0) => INF, (-0.0, -0.5) => INF, (0.0, INF) => 0.0,
        (0.0, -INF) => INF,
        (INF, 2.0) => INF, (INF, -2.0) => 0.0, (INF, 1e-30) => INF, (INF, INF) => INF, (INF, -INF) => 0.0,
        (-INF, 3.0) => -INF, (-INF, 2.0) => INF, (-INF, 0.5) => INF, (-INF, -3.0) => -0.0, (-INF, -2.0) => 0.0,
        (-INF, -0.5) => 0.0,
        (-2.0, 3.0) => -8.0, (-2.0, 2.0) => 4.0, (-2.0, 0.5) => NAN, (-2.0, -3.0) => -0.125, (-2.0, 0.1) => NAN,
        (NAN, 1.0) => NAN, (2.0, NAN) => NAN, (0.0, NAN) => NAN, (INF, NAN) => NAN, (NAN, INF) => NAN,
        (NAN, NAN) => NAN,
        (2.0, 1e30) => INF, (2.0, -1e30) => 0.0, (0.5, 1e30) => 0.0, (-3.0, 1e30) => INF, (-3.0, 16777215.0) => -INF,
    );
    // The largest odd integers and the smallest numbers.
    assert_eq!(math::pow(-1.0_f32, 16_777_215.0), -1.0);
    assert_eq!(math::pow(-1.0_f32, 16_777_216.0), 1.0);
    assert_eq!(math::pow(-1.0_f64, 9_007_199_254_740_991.0), -1.0);
    assert_eq!(math::pow(2.0_f32, -149.0), f32::from_bits(1));
    assert_eq!(math::pow(2.0_f64, -1074.0), f64::from_bits(1));
    assert_eq!(math::pow(f32::from_bits(1), 1.0), f32::from_bits(1));
}
