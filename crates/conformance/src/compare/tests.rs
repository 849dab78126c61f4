//! Every rule on its own: what is let through, what is caught, and what is told about it.

use half::{bf16, f16};
use tensor_core::expr::Bounds;

use super::*;

fn real(value: f64, error: f64) -> Cell {
    Value::Real(Bounded { value, error })
}

fn flat(got: HostData, want: &[Cell]) -> Result<Agreement, Breach> {
    let shape = Shape::new(&[want.len()]);
    compare(&got, &shape, want, false)
}

fn f32s(got: &[f32], want: &[Cell]) -> Result<Agreement, Breach> {
    flat(HostData::F32(got.to_vec()), want)
}

#[test]
fn a_bound_is_kept_to_and_no_further() {
    assert!(f32s(&[1.5], &[real(1.0, 0.5)]).is_ok());
    assert!(f32s(&[0.5], &[real(1.0, 0.5)]).is_ok());
    assert!(f32s(&[1.500_001], &[real(1.0, 0.5)]).is_err());
    assert!(f32s(&[0.499_99], &[real(1.0, 0.5)]).is_err());
    assert!(f32s(&[1.0 + f32::EPSILON], &[real(1.0, 0.0)]).is_err(), "a bound of 0 is exact");
}

#[test]
fn nan_and_infinity_meet_their_like_only() {
    let special = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 1.0];
    for (i, got) in special.into_iter().enumerate() {
        for (k, want) in special.into_iter().enumerate() {
            // A bound, however wide, makes no number of a NaN; a value without end has no neighbours.
            for error in [0.0, 1e300] {
                let verdict = f32s(&[got], &[real(want.into(), error)]);
                assert_eq!(verdict.is_ok(), i == k, "{got} for {want} within {error}: {verdict:?}");
            }
            assert!(f32s(&[got], &[real(want.into(), f64::INFINITY)]).is_ok(), "{got} for {want} within infinity");
        }
    }
}

#[test]
fn the_sign_of_zero_is_free() {
    assert!(f32s(&[-0.0, 0.0], &[real(0.0, 0.0), real(-0.0, 0.0)]).is_ok());
    let integers = compare(&HostData::F32(vec![-0.0]), &Shape::new(&[1]), &[real(0.0, 0.5)], true);
    assert!(integers.is_ok());
}

#[test]
fn the_rounding_to_sixteen_bits_is_in_the_cell_once() {
    let bounds = Bounds::default();
    // 1 + 2⁻¹¹ lies between 1 and the next f16, 1 + 2⁻¹⁰; both are half a unit away, the one after is not.
    let cell = Value::Real(bounds.stored(Bounds::exact(1.0 + 0.5f64.powi(11)), DType::F16));
    let got = |v: f64| flat(HostData::F16(vec![f16::from_f64(v)]), &[cell]);
    assert!(got(1.0).is_ok() && got(1.0 + 0.5f64.powi(10)).is_ok());
    assert!(got(1.0 + 0.5f64.powi(9)).is_err() && got(1.0 - 0.5f64.powi(11)).is_err());
    // Without that rounding an inexact value is wrong.
    assert!(flat(HostData::BF16(vec![bf16::from_f64(0.1)]), &[real(0.1, 0.0)]).is_err());
}

#[test]
fn integers_and_truth_values_are_exact() {
    let big = 1i64 << 60;
    assert!(flat(HostData::I64(vec![big]), &[Value::Int(big)]).is_ok());
    // f64 cannot tell these apart.
    assert!(flat(HostData::I64(vec![big + 1]), &[Value::Int(big)]).is_err());
    assert!(flat(HostData::I32(vec![-3]), &[Value::Int(-3)]).is_ok());
    assert!(flat(HostData::U8(vec![253]), &[Value::Int(-3)]).is_err());
    assert!(flat(HostData::Bool(vec![true, false]), &[real(1.0, 0.0), real(0.0, 0.0)]).is_ok());
    assert!(flat(HostData::Bool(vec![true]), &[real(0.0, 0.0)]).is_err());
    assert!(flat(HostData::Bool(vec![true]), &[real(0.0, 1.0)]).is_ok(), "a comparison in doubt");
}

#[test]
fn integer_valued_floats_are_exact_where_it_is_asked_for() {
    let verdict = |got: f32, value, integers| {
        compare(&HostData::F32(vec![got]), &Shape::new(&[1]), &[real(value, 0.1)], integers)
    };
    assert!(verdict(7.05, 7.0, false).is_ok());
    assert!(verdict(7.05, 7.0, true).is_err());
    assert!(verdict(7.0, 7.0, true).is_ok());
    assert!(verdict(7.55, 7.5, true).is_ok(), "a quotient that is no integer keeps its bound");
    // 2049 is no f16: the nearest is 2048, and 2050 is as near as that but not what rounding gives.
    let half =
        |got: f64| compare(&HostData::F16(vec![f16::from_f64(got)]), &Shape::new(&[1]), &[real(2049.0, 1.0)], true);
    assert!(half(2048.0).is_ok() && half(2050.0).is_err());
    // Beyond 2/ε all numbers are integers.
    let huge = compare(&HostData::F32(vec![1e30]), &Shape::new(&[1]), &[real(1e30, 1e25)], true);
    assert!(huge.is_ok());
}

#[test]
fn a_length_that_differs_is_a_breach() {
    let breach = f32s(&[1.0], &[real(1.0, 0.0), real(1.0, 0.0)]).unwrap_err();
    assert_eq!(breach.to_string(), "the output has 1 element, not 2 elements");
    assert!(f32s(&[1.0, 1.0], &[real(1.0, 0.0)]).is_err());
    assert!(f32s(&[], &[]).is_ok());
}

#[test]
fn agreement_is_measured_in_units_of_the_dtype_and_in_the_bound() {
    let e = f64::from(f32::EPSILON);
    let got = HostData::F32(vec![1.0, 1.0 + 2.0 * f32::EPSILON, 4.0 + 4.0 * f32::EPSILON, 5.0]);
    let want = [real(1.0, 0.0), real(1.0, 8.0 * e), real(4.0, 8.0 * e), real(9.0, f64::INFINITY)];
    let agreement = flat(got, &want).unwrap();
    // One unit at 4 is 4ε, so the third is 1 ulp off and uses half of its bound; what may be anything is not measured.
    assert_eq!(agreement, Agreement { max_ulps: 2.0, max_used: 0.5, worst: Some(1) });
    assert_eq!(f32s(&[1.0], &[real(1.0, 0.5)]).unwrap(), Agreement::default());
    assert_eq!(flat(HostData::I64(vec![4]), &[Value::Int(4)]).unwrap(), Agreement::default());
}

#[test]
fn the_worst_element_is_named_with_its_values() {
    let shape = Shape::new(&[3, 4]);
    let mut got = vec![1.0f64; 12];
    (got[2], got[6], got[11]) = (1.125, 3.5, 1.25);
    let want: Vec<Cell> = (0..12).map(|i| real(if i == 6 { 3.25 } else { 1.0 }, 1e-6)).collect();
    let breach = compare(&HostData::F64(got.clone()), &shape, &want, false).unwrap_err();
    let text = "element [1, 2] is 3.5, not 3.25 (off by 2.5e-1, allowed 1.0e-6); 3 of 12 elements are wrong";
    assert_eq!(breach.to_string(), text);
    assert_eq!((breach.off, breach.bound, breach.ulps), (0.25, 1e-6, 0.25 / (2.0 * f64::EPSILON)));
    got[11] = f64::NAN;
    let breach = compare(&HostData::F64(got), &shape, &want, false).unwrap_err();
    assert_eq!(breach.to_string(), "element [2, 3] is NaN, not 1.0; 3 of 12 elements are wrong");
    let breach = flat(HostData::I32(vec![2, 5]), &[Value::Int(2), Value::Int(3)]).unwrap_err();
    assert_eq!(breach.to_string(), "element [1] is 5, not 3 (off by 2.0e0, allowed 0.0e0); 1 of 2 elements is wrong");
}

#[test]
fn contracts_widen_the_running_bounds() {
    let e = f64::from(f32::EPSILON);
    let error = |tolerance, dtype| match allowed(&[real(3.0, 1e-9)], tolerance, dtype)[0] {
        Value::Real(v) => v.error,
        Value::Int(_) => f64::NAN,
    };
    for tolerance in [Tolerance::Exact, Tolerance::Elementwise, Tolerance::Sum { scale: 1.0 }] {
        assert_eq!(error(tolerance, DType::F32), 1e-9);
    }
    assert_eq!(error(Tolerance::Decomposed { scale: 2.0 }, DType::F32), 2e-9);
    assert_eq!(error(Tolerance::Ulps(1.0), DType::F32), 2.0 * e);
    assert_eq!(error(Tolerance::Absolute { epsilons: 5.0 }, DType::F32), 5.0 * e);
    assert_eq!(error(Tolerance::Absolute { epsilons: 5.0 }, DType::F16), 5.0 * e + DType::F16.epsilon());
    assert_eq!(allowed(&[Value::Int(3)], Tolerance::Ulps(1.0), DType::I64), [Value::Int(3)]);
    // A truth value has no units in the last place.
    assert_eq!(allowed(&[real(1.0, 0.0)], Tolerance::Ulps(1.0), DType::Bool), [real(1.0, 0.0)]);
}
