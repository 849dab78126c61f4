use smallvec::smallvec;
use tensor_core::expr::{FORMULAS, build, named};
use tensor_core::op::Map;
use tensor_core::{DType, Element, Expr, HostData, HostView, Meta, Op, Shape, Sym, Tensor, execute};

use crate::device;
use crate::kernels::testing::{Array, Expected, check, indices, run, values};

const INTS: [DType; 3] = [DType::I64, DType::I32, DType::U8];

/// The op and what it gives for arrays that broadcast, evaluated one element at a time in f64.
fn reference(exprs: &[Expr], shape: &[usize], slack: f64, inputs: &[Array]) -> Vec<Expected> {
    let at = |x: &Array, index: &[usize]| {
        let lead = index.len() - x.shape.len();
        x.get(&x.shape.iter().zip(&index[lead..]).map(|(&n, &i)| if n == 1 { 0 } else { i }).collect::<Vec<_>>())
    };
    exprs
        .iter()
        .map(|expr| {
            let value = |index: Vec<usize>| {
                let v = expr.eval_f64(&inputs.iter().map(|x| at(x, &index)).collect::<Vec<_>>());
                (v, v.abs())
            };
            Expected::within(slack, indices(shape).map(value).collect())
        })
        .collect()
}

fn check_map(exprs: &[Expr], shapes: &[&[usize]], dtypes: &[DType], slack: f64, scale: f64, shift: f64) {
    let shape = shapes.iter().map(|s| Shape::new(s)).reduce(|a, b| a.broadcast(&b).expect("shapes broadcast"));
    let shape = shape.expect("an input");
    let inputs: Vec<Array> = shapes
        .iter()
        .enumerate()
        .map(|(i, s)| {
            let noise = Array::noise(s, i);
            Array::new(s, noise.data.iter().map(|v| v * scale + shift).collect())
        })
        .collect();
    let op = Op::Map(Map { name: "map", exprs: exprs.iter().cloned().collect() });
    check(&op, &inputs, dtypes, |inputs| reference(exprs, &shape, slack, inputs));
}

fn one(f: impl FnOnce(Sym) -> Sym) -> Expr {
    build(|[x]| f(x))
}

fn two(f: impl FnOnce(Sym, Sym) -> Sym) -> Expr {
    build(|[x, y]| f(x, y))
}

#[test]
fn primitives_of_one_operand_agree_with_f64() {
    let cases: [(Expr, f64, f64); 17] = [
        (one(|x| -x), 3.0, 0.0),
        (one(Sym::abs), 3.0, 0.0),
        (one(Sym::sign), 3.0, 0.0),
        (one(Sym::exp), 4.0, 0.0),
        (one(Sym::exp_m1), 2.0, 0.0),
        (one(Sym::ln), 2.0, 2.5),
        (one(Sym::ln_1p), 0.9, 0.0),
        (one(Sym::sqrt), 2.0, 2.5),
        (one(Sym::rsqrt), 2.0, 2.5),
        (one(Sym::recip), 2.0, 2.5),
        (one(Sym::sin), 9.0, 0.0),
        (one(Sym::cos), 9.0, 0.0),
        (one(Sym::tanh), 3.0, 0.0),
        (one(Sym::erf), 3.0, 0.0),
        (one(Sym::floor), 5.0, 0.0),
        (one(Sym::ceil), 5.0, 0.0),
        (one(Sym::round), 5.0, 0.0),
    ];
    for (expr, scale, shift) in cases {
        check_map(std::slice::from_ref(&expr), &[&[3, 47]], &DType::FLOATS, 2.0, scale, shift);
        check_map(&[expr], &[&[]], &DType::FLOATS, 2.0, scale, shift);
    }
}

#[test]
fn primitives_of_two_operands_agree_with_f64() {
    let cases: [(Expr, f64, f64); 12] = [
        (two(|x, y| x + y), 3.0, 0.0),
        (two(|x, y| x - y), 3.0, 0.0),
        (two(|x, y| x * y), 3.0, 0.0),
        (two(|x, y| x / y), 3.0, 0.0),
        (two(|x, y| x % y), 3.0, 0.0),
        (two(Sym::pow), 1.0, 1.5),
        (two(Sym::min), 3.0, 0.0),
        (two(Sym::max), 3.0, 0.0),
        (two(Sym::eq), 3.0, 0.0),
        (two(Sym::ne), 3.0, 0.0),
        (two(Sym::lt), 3.0, 0.0),
        (two(Sym::le), 3.0, 0.0),
    ];
    for (expr, scale, shift) in cases {
        check_map(std::slice::from_ref(&expr), &[&[3, 47], &[3, 47]], &DType::FLOATS, 2.0, scale, shift);
        check_map(std::slice::from_ref(&expr), &[&[47], &[]], &DType::FLOATS, 2.0, scale, shift);
        check_map(&[expr], &[&[], &[47]], &DType::FLOATS, 2.0, scale, shift);
    }
}

#[test]
fn named_formulas_agree_with_f64() {
    for formula in FORMULAS {
        let expr = named(formula.name).expect("a listed name");
        let (low, high) = formula.domain;
        let (scale, shift) = ((high - low) / 2.0, (high + low) / 2.0);
        let shapes: &[&[usize]] = &[&[61], &[61], &[61]];
        // Chains lose a few roundings of their largest term; ±20 makes that 20 or so.
        let slack = if formula.arity == 1 { 200.0 } else { 400.0 };
        let shape = Shape::new(&[61]);
        let op = Op::Map(Map::new("map", expr.clone()));
        let arrays: Vec<Array> = (0..formula.arity)
            .map(|i| {
                let noise = Array::noise(shapes[i], i);
                let (scale, shift) = if i == 0 { (scale, shift) } else { (0.2, 0.7) };
                Array::new(&shape, noise.data.iter().map(|v| v * scale + shift).collect())
            })
            .collect();
        check(&op, &arrays, &DType::FLOATS, |inputs| {
            let mut expected = reference(std::slice::from_ref(&expr), &shape, slack, inputs);
            expected[0].scale.iter_mut().for_each(|s| *s = s.max(0.05));
            expected
        });
    }
}

#[test]
fn shapes_broadcast_at_any_size() {
    let sum = build(|[x, y, z]| x * y + z);
    let cases: [&[&[usize]]; 15] = [
        &[&[7], &[7], &[7]],
        &[&[1023], &[1], &[1023]],
        &[&[1025], &[1025], &[]],
        &[&[3, 1031], &[1031], &[3, 1]],
        &[&[300, 7], &[7], &[300, 1]],
        &[&[5, 1, 7], &[3, 1], &[5, 3, 7]],
        &[&[40, 33, 2], &[33, 1], &[40, 1, 1]],
        &[&[2, 3, 5, 7], &[3, 1, 7], &[2, 1, 1, 1]],
        &[&[64, 64], &[1, 64], &[64, 1]],
        &[&[2, 600, 3], &[600, 1], &[3]],
        &[&[4, 0, 3], &[3], &[1, 1]],
        &[&[0], &[1], &[]],
        &[&[1, 1], &[1], &[]],
        &[&[1100, 3], &[1, 3], &[1100, 1]],
        &[&[90, 61], &[61], &[90, 1]],
    ];
    for shapes in cases {
        check_map(std::slice::from_ref(&sum), shapes, &[DType::F64, DType::F32, DType::BF16], 6.0, 1.0, 2.0);
    }
    check_map(&[sum], &[&[3, 1031], &[1031], &[3, 1]], &DType::ALL[..7], 6.0, 4.0, 8.0);
}

#[test]
fn several_outputs_share_what_is_equal() {
    let exprs = [
        build(|[x, y]| (x + y) * 3.5),
        build(|[x, y]| (x + y).lt(1)),
        build(|[x, _y]| x),
        build(|[x, y]| (x + y) * 3.5 - 0.25),
        build(|[_x, _y]| Sym::lit(4.0)),
        build(|[x, y]| x.lt(y).select(x, y)),
    ];
    check_map(&exprs, &[&[3, 700], &[700]], &DType::FLOATS, 4.0, 2.0, 0.0);
}

#[test]
fn sixteen_bit_floats_round_only_when_stored_or_cast() {
    // 1 + 2⁻⁹ is no bfloat16: the plain chain keeps it, the cast one does not.
    let x = Array::new(&[1], vec![1.0]);
    let exprs =
        [build(|[x]| (x + Sym::lit(0.001953125)) - 1), build(|[x]| (x + Sym::lit(0.001953125)).cast(DType::BF16) - 1)];
    let op = Op::Map(Map { name: "map", exprs: exprs.into_iter().collect() });
    check(&op, &[x], &[DType::BF16], |_| vec![Expected::exact(vec![0.001953125]), Expected::exact(vec![0.0])]);
}

fn tensor_of<T: Element>(data: Vec<T>) -> Tensor {
    let shape = Shape::new(&[data.len()]);
    let data = T::into_host(data);
    let storage = device().backend().upload(HostView { shape: &shape, data: data.as_slice() }).expect("memory");
    Tensor::from_storage(storage, Meta::new(shape, T::DTYPE), device())
}

#[test]
fn edge_values_agree_with_f64() {
    let edges = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.5,
        1e-45,
        -1e-40,
        1e-38,
        3e38,
        -3e38,
        88.0,
        -88.0,
        2.5,
        -2.5,
        1e10,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::NAN,
    ];
    let pairs: Vec<(f32, f32)> = edges.iter().flat_map(|&a| edges.iter().map(move |&b| (a as f32, b as f32))).collect();
    let (a, b): (Vec<f32>, Vec<f32>) = pairs.iter().copied().unzip();
    let (x, y) = (tensor_of(a), tensor_of(b));
    let unary = [
        Sym::abs,
        Sym::sign,
        Sym::exp,
        Sym::exp_m1,
        Sym::ln,
        Sym::sqrt,
        Sym::rsqrt,
        Sym::recip,
        Sym::tanh,
        Sym::erf,
        Sym::floor,
        Sym::ceil,
        Sym::round,
        Sym::is_nan,
        Sym::is_finite,
        Sym::relu,
        Sym::softplus,
        Sym::sigmoid,
    ];
    let mut exprs: Vec<Expr> = unary.into_iter().map(|f| build(|[x, _y]| f(x))).collect();
    exprs.extend([
        two(|x, y| x + y),
        two(|x, y| x * y),
        two(|x, y| x / y),
        two(Sym::pow),
        two(Sym::min),
        two(Sym::max),
        two(Sym::eq),
        two(Sym::ne),
        two(Sym::lt),
        two(Sym::le),
        two(|x, y| x.lt(y).select(x, y)),
    ]);
    for expr in exprs {
        let op = Op::Map(Map::new("map", expr.clone()));
        let got = values(&run(&op, &[&x, &y]).expect("runs")[0]);
        for (&(a, b), got) in pairs.iter().zip(got) {
            let want = expr.eval_f64(&[a.into(), b.into()]) as f32;
            let got = got as f32;
            let is_close = got == want
                || got.is_nan() && want.is_nan()
                || (got - want).abs() <= 4.0 * f32::EPSILON * want.abs() + f32::from_bits(2);
            assert!(is_close, "{expr:?} of {a:e}, {b:e} is {got:e}, not {want:e}");
        }
    }
}

/// What an integer function gives in wide arithmetic, before it wraps.
type Wide = fn(i128, i128) -> i128;

fn floor_div(a: i128, b: i128) -> i128 {
    if b == 0 { 0 } else { a.div_euclid(b) - i128::from(b < 0 && a.rem_euclid(b) != 0) }
}

#[test]
fn integers_wrap_floor_and_give_zero_by_zero() {
    let cases: [(Expr, Wide); 12] = [
        (two(|x, y| x + y), |a, b| a + b),
        (two(|x, y| x - y), |a, b| a - b),
        (two(|x, y| x * y), |a, b| a * b),
        (two(|x, y| x / y), floor_div),
        (two(|x, y| x % y), |a, b| if b == 0 { 0 } else { a - b * floor_div(a, b) }),
        (two(Sym::min), |a, b| a.min(b)),
        (two(Sym::max), |a, b| a.max(b)),
        (two(Sym::eq), |a, b| i128::from(a == b)),
        (two(Sym::ne), |a, b| i128::from(a != b)),
        (two(Sym::lt), |a, b| i128::from(a < b)),
        (two(Sym::le), |a, b| i128::from(a <= b)),
        (two(|x, y| x.lt(y).select(y, x)), |a, b| a.max(b)),
    ];
    fn go<T: Element>(numbers: &[i64], narrow: fn(i64) -> T, expr: &Expr, wide: Wide, wrap: fn(i128) -> i128)
    where
        i128: From<T>,
    {
        let pairs: Vec<(T, T)> =
            numbers.iter().flat_map(|&a| numbers.iter().map(move |&b| (narrow(a), narrow(b)))).collect();
        let (a, b): (Vec<T>, Vec<T>) = pairs.iter().copied().unzip();
        let op = Op::Map(Map::new("map", expr.clone()));
        let out = run(&op, &[&tensor_of(a), &tensor_of(b)]).expect("runs");
        let got: Vec<i128> = match out[0].to_host().expect("a download") {
            HostData::I64(v) => v.into_iter().map(<i128 as From<i64>>::from).collect(),
            other => other.to_f64().into_iter().map(|v| v as i128).collect(),
        };
        for (&(a, b), got) in pairs.iter().zip(got) {
            let want = wrap(wide(a.into(), b.into()));
            assert_eq!(got, want, "{expr:?} of {a:?}, {b:?}");
        }
    }
    let numbers = [0, 1, -1, 2, -2, 3, -3, 7, -7, 100, 255, i32::MAX.into(), i32::MIN.into(), i64::MAX, i64::MIN];
    for (expr, wide) in cases {
        let is_bool = expr.code.program("map", &[DType::I64; 2]).expect("typed").dtype() == DType::Bool;
        let wrap = |wrap: fn(i128) -> i128| if is_bool { |v| v } else { wrap };
        go(&numbers, |v| v, &expr, wide, wrap(|v| (v as i64).into()));
        go(&numbers, |v| v as i32, &expr, wide, wrap(|v| (v as i32).into()));
        go(&numbers, |v| v as u8, &expr, wide, wrap(|v| (v as u8).into()));
    }
}

#[test]
fn integers_have_powers_and_signs() {
    let x = tensor_of(vec![2i32, -2, 3, 0, 0, 1, -1, -1, 5, i32::MIN]);
    let y = tensor_of(vec![10i32, 3, -1, 0, -1, -5, -3, -4, 40, 1]);
    let pow = x.pow(&y).and_then(|p| p.to_vec::<i32>()).expect("runs");
    assert_eq!(pow, [1024, -8, 0, 1, 0, 1, -1, 1, 5i32.wrapping_pow(40), i32::MIN]);
    assert_eq!(x.abs().and_then(|p| p.to_vec::<i32>()).expect("runs")[9], i32::MIN);
    assert_eq!(x.neg().and_then(|p| p.to_vec::<i32>()).expect("runs")[..3], [-2, 2, -3]);
    assert_eq!(x.sign().and_then(|p| p.to_vec::<i32>()).expect("runs")[..4], [1, -1, 1, 0]);
    assert_eq!(x.floor().and_then(|p| p.to_vec::<i32>()).expect("runs")[..3], [2, -2, 3]);
}

#[test]
fn bool_has_logic_order_and_select() {
    let (a, b) = (vec![false, false, true, true], vec![false, true, false, true]);
    let (x, y) = (tensor_of(a), tensor_of(b));
    let cases: [(Expr, [bool; 4]); 9] = [
        (two(|x, y| x.and(y)), [false, false, false, true]),
        (two(|x, y| x.or(y)), [false, true, true, true]),
        (two(|x, _| x.not()), [true, true, false, false]),
        (two(Sym::min), [false, false, false, true]),
        (two(Sym::max), [false, true, true, true]),
        (two(Sym::eq), [true, false, false, true]),
        (two(Sym::ne), [false, true, true, false]),
        (two(Sym::lt), [false, true, false, false]),
        (two(|x, y| x.select(y, x)), [false, false, false, true]),
    ];
    for (expr, want) in cases {
        let op = Op::Map(Map::new("map", expr.clone()));
        let got = execute(&op, &[&x, &y]).expect("runs")[0].to_vec::<bool>().expect("bools");
        assert_eq!(got, want, "{expr:?}");
    }
}

/// The nearest of all numbers of a type of 16 bits; of two the even one. Past the middle of the largest and twice its
/// power of two the result is infinite.
fn nearest_16(v: f64, dtype: DType) -> f64 {
    let number = |bits| {
        if dtype == DType::F16 { half::f16::from_bits(bits).to_f64() } else { half::bf16::from_bits(bits).to_f64() }
    };
    let numbers: Vec<f64> = (0..=u16::MAX).map(number).collect();
    let largest = numbers.iter().copied().filter(|n| n.is_finite()).fold(0.0, f64::max);
    let step = largest - numbers.iter().copied().filter(|&n| n < largest).fold(0.0, f64::max);
    if v.is_nan() || v.abs() >= largest + step / 2.0 {
        return v * f64::INFINITY;
    }
    let finite = numbers.iter().enumerate().filter(|(_, n)| n.is_finite());
    // Distances between numbers of 16 and of 53 bits are exact where they are small.
    let closest = finite.min_by(|(i, a), (j, b)| {
        let distance = ((*a - v).abs(), (*b - v).abs());
        distance.0.total_cmp(&distance.1).then((i & 1).cmp(&(j & 1)))
    });
    *closest.expect("a finite number").1
}

#[test]
fn casts_truncate_saturate_and_round_once() {
    let values = vec![
        0.0,
        -0.0,
        0.4,
        -0.6,
        1.5,
        2.5,
        -2.5,
        255.0,
        256.0,
        -1.0,
        3e9,
        -3e9,
        1e20,
        -1e20,
        65519.0,
        65520.0,
        1e-7,
        6e-8,
        2.9e-8,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::NAN,
        // Just above and below the middle of two neighbours in f16 and bf16: rounding twice goes wrong.
        1.0 + 0.5f64.powi(11) + 0.5f64.powi(40),
        1.0 + 0.5f64.powi(11) - 0.5f64.powi(40),
        1.0 + 0.5f64.powi(8) + 0.5f64.powi(40),
        1.0 + 0.5f64.powi(8) - 0.5f64.powi(40),
    ];
    let cast = |x: &Tensor, to: DType| x.cast(to).and_then(|x| x.to_host()).expect("a cast");
    let same = |got: f64, want: f64| got == want || got.is_nan() && want.is_nan();
    for from in DType::FLOATS {
        let x = tensor_of(values.clone()).cast(from).expect("a cast");
        let exact = x.to_host().expect("values").to_f64();
        for to in DType::ALL {
            let got = cast(&x, to).to_f64();
            for (&v, got) in exact.iter().zip(got) {
                let want = match to {
                    DType::F16 | DType::BF16 => nearest_16(v, to),
                    _ => one(|x| x.cast(to)).eval_f64(&[v]),
                };
                assert!(same(got, want), "{v:e} from {from} to {to} is {got:e}, not {want:e}");
            }
        }
    }
    // Integers wrap among themselves, and round once to floats.
    let numbers =
        vec![0, 1, -1, 2, 255, 256, 300, i64::MAX, i64::MIN, (1 << 24) + 1, 0x1_0080_8001, 65535, 0x8080_0001];
    let x = tensor_of(numbers.clone());
    assert_eq!(cast(&x, DType::I32), HostData::I32(numbers.iter().map(|&v| v as i32).collect()));
    assert_eq!(cast(&x, DType::U8), HostData::U8(numbers.iter().map(|&v| v as u8).collect()));
    assert_eq!(cast(&x, DType::Bool), HostData::Bool(numbers.iter().map(|&v| v != 0).collect()));
    assert_eq!(cast(&x, DType::F32), HostData::F32(numbers.iter().map(|&v| v as f32).collect()));
    for to in [DType::F16, DType::BF16] {
        let want: Vec<f64> = numbers.iter().map(|&v| nearest_16(v as f64, to)).collect();
        assert_eq!(cast(&x, to).to_f64(), want, "i64 to {to}");
    }
    let truths = tensor_of(vec![true, false]);
    for to in DType::ALL {
        assert_eq!(cast(&truths, to).to_f64(), [1.0, 0.0], "bool to {to}");
    }
}

#[test]
fn integer_maps_run_over_all_layouts() {
    let expr = two(|x, y| x * y - x / 3 + y % 5);
    let shapes: [&[&[usize]]; 3] = [&[&[3, 47], &[47]], &[&[1030], &[]], &[&[30, 40], &[30, 1]]];
    for shapes in shapes {
        // Whole numbers, so that f64 is exact; quotients floor in the reference through the test below.
        let inputs: Vec<Array> = shapes.iter().enumerate().map(|(i, s)| Array::sample(s, i)).collect();
        let positive = |x: &Array| Array::new(&x.shape, x.data.iter().map(|v| v.abs()).collect());
        let inputs: Vec<Array> = inputs.iter().map(positive).collect();
        let shape = Shape::new(shapes[0]);
        let op = Op::Map(Map { name: "map", exprs: smallvec![expr.clone()] });
        check(&op, &inputs, &INTS, |inputs| {
            let get = |x: &Array, index: &[usize]| {
                let lead = index.len() - x.shape.len();
                let index: Vec<usize> =
                    x.shape.iter().zip(&index[lead..]).map(|(&n, &i)| if n == 1 { 0 } else { i }).collect();
                x.get(&index) as i64
            };
            let value = |index: Vec<usize>| {
                let (x, y) = (get(&inputs[0], &index), get(&inputs[1], &index));
                (x * y - x / 3 + y % 5) as f64
            };
            vec![Expected::exact(indices(&shape).map(value).collect())]
        });
    }
}

#[test]
fn large_maps_are_cut_over_threads() {
    let n = 300_007;
    let x = Array::noise(&[n], 1);
    let exprs = [one(|x| x.exp().sin()), one(|x| x.gt(0))];
    let op = Op::Map(Map { name: "map", exprs: exprs.iter().cloned().collect() });
    check(&op, &[x], &[DType::F32], |inputs| reference(&exprs, &[n], 8.0, inputs));
}
