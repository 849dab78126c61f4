//! Named elementwise functions: each one a formula with its stable derivative and the domain it is tested on.
//!
//! To add one, add an entry to the list at the end: the method on symbols and on tensors, the derivative on
//! every backend and the tests come from it. See docs/adding-an-op.md.

use std::f64::consts::FRAC_1_SQRT_2;
use std::sync::OnceLock;

use smallvec::{SmallVec, smallvec};

use super::symbol::build_dyn;
use super::{Expr, Sym};
use crate::{Number, Result, Tensor};

/// A named function of one to three operands.
pub struct Formula {
    /// Its name, as the method is spelt.
    pub name: &'static str,
    /// How many operands.
    pub arity: usize,
    /// The formula; constants through [`Sym::lit`].
    pub expand: fn(&[Sym]) -> Sym,
    /// The partial derivative by each operand, given the operands and the value.
    pub partials: fn(&[Sym], Sym) -> SmallVec<[Sym; 3]>,
    /// Where tests draw the first operand from.
    pub domain: (f64, f64),
    /// Values of the first operand where the derivative jumps: checked by value, not by slope.
    pub kinks: &'static [f64],
}

/// A formula's place in [`FORMULAS`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct FormulaId(u16);

impl FormulaId {
    /// The formula.
    pub fn formula(self) -> &'static Formula {
        &FORMULAS[self.0 as usize]
    }

    /// Its graph over its operands.
    pub(crate) fn expansion(self) -> &'static Expr {
        static EXPANSIONS: OnceLock<Vec<Expr>> = OnceLock::new();
        let all = EXPANSIONS.get_or_init(|| {
            FORMULAS
                .iter()
                .map(|formula| {
                    let expr = build_dyn(formula.arity, formula.expand);
                    assert!(expr.args.is_empty(), "invariant: {} uses Sym::lit for its constants", formula.name);
                    expr
                })
                .collect()
        });
        &all[self.0 as usize]
    }
}

/// The formula of that name as an expression over its operands.
pub fn named(name: &str) -> Option<Expr> {
    let position = FORMULAS.iter().position(|f| f.name == name)?;
    Some(call(position, FORMULAS[position].arity))
}

fn call(position: usize, arity: usize) -> Expr {
    build_dyn(arity, |operands| Sym::call(FormulaId(position as u16), operands))
}

/// Writes the table, the symbol's methods and the tensor's methods.
macro_rules! formulas {
    ($($(#[$doc:meta])* $name:ident($x:ident $(, $p:ident)*) on $domain:expr, kinks $kinks:expr;
        value: $value:expr;
        slope($y:ident): [$($slope:expr),+];
    )*) => {
        /// Every named formula.
        pub static FORMULAS: &[Formula] = &[$(Formula {
            name: stringify!($name),
            arity: 1 $(+ { stringify!($p); 1 })*,
            expand: |operands| {
                let &[$x $(, $p)*] = operands else { unreachable!("invariant: arity") };
                $value
            },
            partials: |operands, $y| {
                let &[$x $(, $p)*] = operands else { unreachable!("invariant: arity") };
                let _ = ($x, $y $(, $p)*);
                smallvec![$($slope),+]
            },
            domain: $domain,
            kinks: &$kinks,
        }),*];

        #[allow(non_camel_case_types)]
        enum Position { $($name),* }

        impl Sym { $(
            $(#[$doc])*
            pub fn $name(self $(, $p: impl Into<Sym>)*) -> Sym {
                Sym::call(FormulaId(Position::$name as u16), &[self $(, $p.into())*])
            }
        )* }

        impl Tensor { $(
            $(#[$doc])*
            ///
            /// Elementwise; the result has this tensor's shape and dtype.
            ///
            /// # Errors
            /// If the dtype has no such function (most are for floats).
            pub fn $name(&self $(, $p: impl Into<Number>)*) -> Result<Tensor> {
                static EXPR: OnceLock<Expr> = OnceLock::new();
                let expr = EXPR.get_or_init(|| formulas!(@expr $name $($p)*));
                self.apply(stringify!($name), expr, &[$($p.into()),*])
            }
        )* }
    };
    // One tensor input; further operands are run-time numbers 0, 1, ….
    (@expr $name:ident $($p:ident)*) => {
        build_dyn(1, |x| {
            let _parameters: [&str; { 0 $(+ { stringify!($p); 1 })* }] = [$(stringify!($p)),*];
            let mut operands: SmallVec<[Sym; 3]> = smallvec![x[0]];
            operands.extend(_parameters.iter().enumerate().map(|(i, _)| Sym::parameter(i)));
            Sym::call(FormulaId(Position::$name as u16), &operands)
        })
    };
}

/// λ and α of selu (Klambauer et al., 2017).
const SELU_SCALE: f64 = 1.050_700_987_355_480_5;
const SELU_ALPHA: f64 = 1.673_263_242_354_377_2;
/// √(2/π) and the cubic coefficient of the tanh form of gelu (Hendrycks and Gimpel, 2016).
const GELU_SCALE: f64 = 0.797_884_560_802_865_4;
const GELU_CUBIC: f64 = 0.044_715;
/// 1/√(2π).
const NORMAL_PEAK: f64 = 0.398_942_280_401_432_7;

formulas! {
    /// max(0, x); the slope at 0 is 0.
    relu(x) on (-4.0, 4.0), kinks [0.0];
        value: Sym::from(0).max(x);
        slope(y): [x.gt(0).select(Sym::lit(1.0), Sym::lit(0.0))];

    /// x where x > 0, else slope·x.
    leaky_relu(x, slope) on (-4.0, 4.0), kinks [0.0];
        value: x.gt(0).select(x, slope * x);
        slope(y): [x.gt(0).select(Sym::lit(1.0), slope), x.gt(0).select(Sym::lit(0.0), x)];

    /// x where x > 0, else α(eˣ − 1).
    elu(x, alpha) on (-8.0, 8.0), kinks [0.0];
        value: x.gt(0).select(x, alpha * x.exp_m1());
        slope(y): [x.gt(0).select(Sym::lit(1.0), alpha * x.exp()), x.gt(0).select(Sym::lit(0.0), x.exp_m1())];

    /// λ·elu(x, α) with the constants that keep zero mean and unit variance (Klambauer et al., 2017).
    selu(x) on (-8.0, 8.0), kinks [0.0];
        value: Sym::lit(SELU_SCALE) * x.gt(0).select(x, Sym::lit(SELU_ALPHA) * x.exp_m1());
        slope(y): [Sym::lit(SELU_SCALE) * x.gt(0).select(Sym::lit(1.0), Sym::lit(SELU_ALPHA) * x.exp())];

    /// x where x > 0, else α(e^(x/α) − 1): smooth at 0 for every α.
    celu(x, alpha) on (-8.0, 8.0), kinks [0.0];
        value: x.gt(0).select(x, alpha * (x / alpha).exp_m1());
        slope(y): [
            x.gt(0).select(Sym::lit(1.0), (x / alpha).exp()),
            x.gt(0).select(Sym::lit(0.0), (x / alpha).exp_m1() - x / alpha * (x / alpha).exp())
        ];

    /// x·Φ(x), Φ the normal distribution function: ½x(1 + erf(x/√2)).
    gelu(x) on (-8.0, 8.0), kinks [];
        value: Sym::lit(0.5) * x * (1 + (x * Sym::lit(FRAC_1_SQRT_2)).erf());
        slope(y): [
            Sym::lit(0.5) * (1 + (x * Sym::lit(FRAC_1_SQRT_2)).erf())
                + x * Sym::lit(NORMAL_PEAK) * (Sym::lit(-0.5) * x * x).exp()
        ];

    /// The tanh approximation of gelu: ½x(1 + tanh(√(2/π)(x + 0.044715x³))).
    gelu_tanh(x) on (-8.0, 8.0), kinks [];
        value: Sym::lit(0.5) * x * (1 + (Sym::lit(GELU_SCALE) * (x + Sym::lit(GELU_CUBIC) * x * x * x)).tanh());
        slope(y): [{
            let t = (Sym::lit(GELU_SCALE) * (x + Sym::lit(GELU_CUBIC) * x * x * x)).tanh();
            let inner = Sym::lit(GELU_SCALE) * (1 + Sym::lit(3.0 * GELU_CUBIC) * x * x);
            Sym::lit(0.5) * (1 + t) + Sym::lit(0.5) * x * ((1 - t) * (1 + t)) * inner
        }];

    /// 1/(1 + e⁻ˣ).
    sigmoid(x) on (-20.0, 20.0), kinks [];
        value: (1 + (-x).exp()).recip();
        slope(y): [y * (-x).sigmoid()];

    /// ln sigmoid(x) = −softplus(−x).
    log_sigmoid(x) on (-20.0, 20.0), kinks [];
        value: -((-x).softplus());
        slope(y): [(-x).sigmoid()];

    /// x·sigmoid(x), also called swish.
    silu(x) on (-20.0, 20.0), kinks [];
        value: x * x.sigmoid();
        slope(y): [x.sigmoid() * (1 + x * (-x).sigmoid())];

    /// x·tanh(softplus(x)) (Misra, 2019).
    mish(x) on (-20.0, 20.0), kinks [];
        value: x * x.softplus().tanh();
        slope(y): [{
            let t = x.softplus().tanh();
            t + x * ((1 - t) * (1 + t)) * x.sigmoid()
        }];

    /// ln(1 + eˣ) = max(x, 0) + ln(1 + e^(−|x|)).
    softplus(x) on (-20.0, 20.0), kinks [];
        value: x.max(0) + (-x.abs()).exp().ln_1p();
        slope(y): [x.sigmoid()];

    /// x/(1 + |x|).
    softsign(x) on (-20.0, 20.0), kinks [];
        value: x / (1 + x.abs());
        slope(y): [(1 + x.abs()).square().recip()];

    /// x·min(max(x + 3, 0), 6)/6 (Howard et al., 2019).
    hard_swish(x) on (-6.0, 6.0), kinks [-3.0, 3.0];
        value: x * (x + Sym::lit(3.0)).max(0).min(Sym::lit(6.0)) * Sym::lit(1.0 / 6.0);
        slope(y): [x.le(Sym::lit(-3.0)).select(
            Sym::lit(0.0),
            x.lt(Sym::lit(3.0)).select((2 * x + Sym::lit(3.0)) * Sym::lit(1.0 / 6.0), Sym::lit(1.0))
        )];

    /// min(max(x, −1), 1).
    hard_tanh(x) on (-3.0, 3.0), kinks [-1.0, 1.0];
        value: x.max(-1).min(1);
        slope(y): [x.gt(-1).and(x.lt(1)).select(Sym::lit(1.0), Sym::lit(0.0))];

    /// tan x, x in radians.
    tan(x) on (-1.4, 1.4), kinks [];
        value: x.sin() / x.cos();
        slope(y): [1 + y * y];
}
