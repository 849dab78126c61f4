//! [`Real`] for other targets: one that computes as WGSL may, and one that only counts operations.

use std::cell::Cell;
use std::marker::PhantomData;
use std::ops::{Add, BitAnd, BitOr, BitXor, Div, Mul, Neg, Not, Sub};

use tensor_core::math::{self, Bits, Format, Real};

use crate::{Random, Worst, bound, ulps};

/// An `f32` whose fused product rounds twice, whose division is off by up to 2.5 ulp and square root by up to 4.5.
#[derive(Clone, Copy)]
struct Loose(f32);

/// A normal `x` moved by up to `n_steps` numbers up or down, after a hash of its bits.
fn disturb(x: f32, n_steps: u32) -> Loose {
    let hash = x.to_bits().wrapping_mul(0x9e37_79b1) >> 16;
    let is_inner = (1e-30..1e30).contains(&x.abs());
    Loose(if is_inner { f32::from_bits(x.to_bits() - n_steps + hash % (2 * n_steps + 1)) } else { x })
}

impl Add for Loose {
    type Output = Self;
    fn add(self, rhs: Self) -> Self {
        Loose(self.0 + rhs.0)
    }
}

impl Sub for Loose {
    type Output = Self;
    fn sub(self, rhs: Self) -> Self {
        Loose(self.0 - rhs.0)
    }
}

impl Mul for Loose {
    type Output = Self;
    fn mul(self, rhs: Self) -> Self {
        Loose(self.0 * rhs.0)
    }
}

impl Div for Loose {
    type Output = Self;
    fn div(self, rhs: Self) -> Self {
        disturb(self.0 / rhs.0, 2)
    }
}

impl Neg for Loose {
    type Output = Self;
    fn neg(self) -> Self {
        Loose(-self.0)
    }
}

impl Real for Loose {
    const FORMAT: Format = Format::Single;
    type Bits = i32;
    type Mask = bool;

    fn constant(value: f64) -> Self {
        Loose(value as f32)
    }
    fn abs(self) -> Self {
        Loose(self.0.abs())
    }
    fn sqrt(self) -> Self {
        disturb(self.0.sqrt(), 4)
    }
    fn floor(self) -> Self {
        Loose(self.0.floor())
    }
    fn ceil(self) -> Self {
        Loose(self.0.ceil())
    }
    fn round_even(self) -> Self {
        Loose(self.0.round_ties_even())
    }
    fn fma(self, factor: Self, addend: Self) -> Self {
        Loose(self.0 * factor.0 + addend.0)
    }
    /// Dekker's product: halves of 12 bits multiply exactly.
    fn mul_error(self, factor: Self, product: Self) -> Self {
        let split = |x: f32| {
            let high = f32::from_bits(x.to_bits() & 0xffff_f000);
            (high, x - high)
        };
        let (a, a_low) = split(self.0);
        let (b, b_low) = split(factor.0);
        Loose(((a * b - product.0) + a * b_low + a_low * b) + a_low * b_low)
    }
    fn keep(self) -> Self {
        self
    }
    fn lt(self, rhs: Self) -> bool {
        self.0 < rhs.0
    }
    fn le(self, rhs: Self) -> bool {
        self.0 <= rhs.0
    }
    fn eq(self, rhs: Self) -> bool {
        self.0 == rhs.0
    }
    fn select(mask: bool, then: Self, otherwise: Self) -> Self {
        if mask { then } else { otherwise }
    }
    fn to_bits(self) -> i32 {
        self.0.to_bits() as i32
    }
    fn from_bits(bits: i32) -> Self {
        Loose(f32::from_bits(bits as u32))
    }
    fn to_int(self) -> i32 {
        self.0 as i32
    }
    fn from_int(int: i32) -> Self {
        Loose(int as f32)
    }
}

#[test]
fn bounds_hold_without_fused_products_and_with_loose_division() {
    let functions: [(&str, fn(Loose) -> Loose, fn(f64) -> f64); 12] = [
        ("exp", math::exp, math::exp),
        ("exp_m1", math::exp_m1, math::exp_m1),
        ("ln", math::ln, math::ln),
        ("ln_1p", math::ln_1p, math::ln_1p),
        ("sin", math::sin, math::sin),
        ("cos", math::cos, math::cos),
        ("tan", math::tan, math::tan),
        ("tanh", math::tanh, math::tanh),
        ("erf", math::erf, math::erf),
        ("recip", math::recip, math::recip),
        ("sqrt", math::sqrt, math::sqrt),
        ("rsqrt", math::rsqrt, math::rsqrt),
    ];
    for (name, loose, exact) in functions {
        let mut worst = Worst::default();
        for bits in (0..1_u64 << 32).step_by(10_007) {
            let x = f32::from_bits(bits as u32);
            worst.see(ulps(loose(Loose(x)).0, exact(f64::from(x))), f64::from(x), 0.0);
        }
        worst.check(name, "loose", bound(name).f32_loose_ulps);
    }
    let mut random = Random(7);
    let mut worst = Worst::default();
    for _ in 0..100_000 {
        let x = (10.0 * random.uniform().abs()) as f32;
        let y = (random.uniform() * 152.0 / f64::from(x).log2().abs()) as f32;
        let got = math::pow(Loose(x), Loose(y)).0;
        worst.see(ulps(got, math::pow(f64::from(x), f64::from(y))), f64::from(x), f64::from(y));
    }
    worst.check("pow", "loose", bound("pow").f32_loose_ulps);
}

thread_local! {
    static N_OPS: Cell<usize> = const { Cell::new(0) };
}

/// A symbol without a value: every operation on it is counted. Constants, reinterpreted bits and `keep` are free.
struct Symbol<T>(PhantomData<T>);
/// The markers of [`Symbol`]'s kinds.
struct Number<const IS_DOUBLE: bool>;
struct Integer;
struct Truth;

impl<T> Copy for Symbol<T> {}

impl<T> Clone for Symbol<T> {
    fn clone(&self) -> Self {
        *self
    }
}

fn free<T>() -> Symbol<T> {
    Symbol(PhantomData)
}

fn counted<T>() -> Symbol<T> {
    N_OPS.set(N_OPS.get() + 1);
    free()
}

macro_rules! counted_operators {
    ($($trait:ident $method:ident),+) => {
        $(
            impl<T> $trait for Symbol<T> {
                type Output = Self;
                fn $method(self, _: Self) -> Self {
                    counted()
                }
            }
        )+
    };
}

counted_operators!(Add add, Sub sub, Mul mul, Div div, BitAnd bitand, BitOr bitor, BitXor bitxor);

impl<T> Neg for Symbol<T> {
    type Output = Self;
    fn neg(self) -> Self {
        counted()
    }
}

impl<T> Not for Symbol<T> {
    type Output = Self;
    fn not(self) -> Self {
        counted()
    }
}

/// Methods that count one operation, whatever they take and give.
macro_rules! counted_methods {
    ($($name:ident($($argument:ty),*) -> $output:ty;)+) => {
        $(
            fn $name(self $(, _: $argument)*) -> $output {
                counted()
            }
        )+
    };
}

impl<const IS_DOUBLE: bool> Real for Symbol<Number<IS_DOUBLE>> {
    const FORMAT: Format = if IS_DOUBLE { Format::Double } else { Format::Single };
    type Bits = Symbol<Integer>;
    type Mask = Symbol<Truth>;

    counted_methods! {
        abs() -> Self;
        sqrt() -> Self;
        floor() -> Self;
        ceil() -> Self;
        round_even() -> Self;
        fma(Self, Self) -> Self;
        mul_error(Self, Self) -> Self;
        lt(Self) -> Self::Mask;
        le(Self) -> Self::Mask;
        eq(Self) -> Self::Mask;
        to_int() -> Self::Bits;
    }
    fn constant(_: f64) -> Self {
        free()
    }
    fn keep(self) -> Self {
        self
    }
    fn select(_: Self::Mask, _: Self, _: Self) -> Self {
        counted()
    }
    fn to_bits(self) -> Self::Bits {
        free()
    }
    fn from_bits(_: Self::Bits) -> Self {
        free()
    }
    fn from_int(_: Self::Bits) -> Self {
        counted()
    }
}

impl Bits for Symbol<Integer> {
    type Mask = Symbol<Truth>;

    counted_methods! {
        add(Self) -> Self;
        sub(Self) -> Self;
        mul(Self) -> Self;
        mul_high(Self) -> Self;
        shl(u32) -> Self;
        shr(u32) -> Self;
        shr_logical(u32) -> Self;
        shl_by(Self) -> Self;
        shr_logical_by(Self) -> Self;
        lt_unsigned(Self) -> Self::Mask;
        eq(Self) -> Self::Mask;
    }
    fn constant(_: i64) -> Self {
        free()
    }
    fn select(_: Self::Mask, _: Self, _: Self) -> Self {
        counted()
    }
}

#[test]
fn no_function_grows_beyond_its_budget_of_operations() {
    type Single = Symbol<Number<false>>;
    type Double = Symbol<Number<true>>;
    macro_rules! budgets {
        ($($function:ident($($argument:ident),+) $single:expr, $double:expr;)+) => {
            [$((
                stringify!($function),
                count(|| _ = math::$function::<Single>($(budgets!(@ $argument)),+)),
                count(|| _ = math::$function::<Double>($(budgets!(@ $argument)),+)),
                $single,
                $double,
            )),+]
        };
        (@ $argument:ident) => { free() };
    }
    let budgets = budgets! {
        exp(x) 23, 29;
        exp_m1(x) 25, 30;
        ln(x) 31, 43;
        ln_1p(x) 48, 60;
        sin(x) 107, 135;
        cos(x) 107, 135;
        tan(x) 122, 150;
        tanh(x) 32, 44;
        erf(x) 37, 59;
        pow(x, y) 119, 130;
        rem(x, y) 37, 37;
    };
    for (name, single, double, single_budget, double_budget) in budgets {
        println!("{name:8} {single:3} {double:3} operations");
        assert!(single <= single_budget && double <= double_budget, "{name}: {single} and {double} operations");
    }
}

fn count(lower: impl FnOnce()) -> usize {
    N_OPS.set(0);
    lower();
    N_OPS.get()
}
