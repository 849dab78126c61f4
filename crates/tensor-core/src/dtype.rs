//! Element types: the eight that tensors hold, and the Rust types that carry them on the host.

use std::fmt;

use half::{bf16, f16};

/// The type of a tensor's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DType {
    /// 64-bit IEEE float.
    F64,
    /// 32-bit IEEE float; the default.
    F32,
    /// 16-bit IEEE float; computed in f32.
    F16,
    /// 16-bit float with f32's exponent; computed in f32.
    BF16,
    /// 64-bit signed integer; indices have this type.
    I64,
    /// 32-bit signed integer.
    I32,
    /// 8-bit unsigned integer.
    U8,
    /// False or true; one byte on the host.
    Bool,
}

impl DType {
    /// Every element type.
    pub const ALL: [Self; 8] =
        [Self::F64, Self::F32, Self::F16, Self::BF16, Self::I64, Self::I32, Self::U8, Self::Bool];
    /// The floating-point types.
    pub const FLOATS: [Self; 4] = [Self::F64, Self::F32, Self::F16, Self::BF16];

    /// The name used in errors and docs: `f32`, `bool`, …
    pub const fn name(self) -> &'static str {
        match self {
            Self::F64 => "f64",
            Self::F32 => "f32",
            Self::F16 => "f16",
            Self::BF16 => "bf16",
            Self::I64 => "i64",
            Self::I32 => "i32",
            Self::U8 => "u8",
            Self::Bool => "bool",
        }
    }

    /// Bytes per element.
    pub const fn size_bytes(self) -> usize {
        match self {
            Self::F64 | Self::I64 => 8,
            Self::F32 | Self::I32 => 4,
            Self::F16 | Self::BF16 => 2,
            Self::U8 | Self::Bool => 1,
        }
    }

    /// Whether the type is a floating-point type.
    pub const fn is_float(self) -> bool {
        matches!(self, Self::F64 | Self::F32 | Self::F16 | Self::BF16)
    }

    /// Whether the type is an integer type (bool is not).
    pub const fn is_int(self) -> bool {
        matches!(self, Self::I64 | Self::I32 | Self::U8)
    }

    /// The distance from 1 to the next larger number; 0 for integers and bool.
    pub const fn epsilon(self) -> f64 {
        match self {
            Self::F64 => f64::EPSILON,
            Self::F32 => f32::EPSILON as f64,
            Self::F16 => 0.000_976_562_5,
            Self::BF16 => 0.007_812_5,
            _ => 0.0,
        }
    }

    /// The type that arithmetic on this one is done in: f32 for the 16-bit floats, else itself.
    pub const fn compute(self) -> Self {
        match self {
            Self::F16 | Self::BF16 => Self::F32,
            other => other,
        }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A Rust type that a tensor element can be read from and written to.
pub trait Element: Copy + Default + PartialEq + PartialOrd + fmt::Debug + Send + Sync + 'static {
    /// The tensor's type that this one carries.
    const DTYPE: DType;

    /// The value as f64 (rounded to nearest for large i64).
    fn to_f64(self) -> f64;

    /// The nearest value; integers truncate and saturate, NaN gives 0; bool is `v != 0`.
    fn from_f64(v: f64) -> Self;

    /// Wraps a vector of this type.
    fn into_host(values: Vec<Self>) -> HostData;

    /// Borrows a slice of this type.
    fn host_slice(values: &[Self]) -> HostSlice<'_>;

    /// Takes the vector out when it has this type.
    fn from_host(data: HostData) -> Option<Vec<Self>>;
}

macro_rules! elements {
    ($($dtype:ident, $rust:ty, $to:expr, $from:expr;)*) => {
        /// Owned host values of one element type, row-major.
        #[derive(Clone, Debug, PartialEq)]
        pub enum HostData {
            $(#[doc = concat!("Values of type `", stringify!($rust), "`.")] $dtype(Vec<$rust>),)*
        }

        /// Borrowed host values of one element type, row-major.
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub enum HostSlice<'a> {
            $(#[doc = concat!("Values of type `", stringify!($rust), "`.")] $dtype(&'a [$rust]),)*
        }

        impl HostData {
            /// The element type.
            pub fn dtype(&self) -> DType {
                match self { $(Self::$dtype(_) => DType::$dtype,)* }
            }

            /// The number of elements.
            pub fn len(&self) -> usize {
                match self { $(Self::$dtype(v) => v.len(),)* }
            }

            /// Whether there are no elements.
            pub fn is_empty(&self) -> bool {
                self.len() == 0
            }

            /// `n` zeros (false for bool).
            pub fn zeros(dtype: DType, n: usize) -> Self {
                match dtype { $(DType::$dtype => Self::$dtype(vec![Default::default(); n]),)* }
            }

            /// The values, borrowed.
            pub fn as_slice(&self) -> HostSlice<'_> {
                match self { $(Self::$dtype(v) => HostSlice::$dtype(v),)* }
            }

            /// The values converted to f64.
            pub fn to_f64(&self) -> Vec<f64> {
                self.as_slice().to_f64()
            }
        }

        impl HostSlice<'_> {
            /// The element type.
            pub fn dtype(&self) -> DType {
                match self { $(Self::$dtype(_) => DType::$dtype,)* }
            }

            /// The number of elements.
            pub fn len(&self) -> usize {
                match self { $(Self::$dtype(v) => v.len(),)* }
            }

            /// Whether there are no elements.
            pub fn is_empty(&self) -> bool {
                self.len() == 0
            }

            /// The values converted to f64.
            pub fn to_f64(&self) -> Vec<f64> {
                match self { $(Self::$dtype(v) => v.iter().map(|v| Element::to_f64(*v)).collect(),)* }
            }

            /// An owned copy.
            pub fn to_data(&self) -> HostData {
                match self { $(Self::$dtype(v) => HostData::$dtype(v.to_vec()),)* }
            }
        }

        $(
            impl Element for $rust {
                const DTYPE: DType = DType::$dtype;
                fn to_f64(self) -> f64 { ($to)(self) }
                fn from_f64(v: f64) -> Self { ($from)(v) }
                fn into_host(values: Vec<Self>) -> HostData { HostData::$dtype(values) }
                fn host_slice(values: &[Self]) -> HostSlice<'_> { HostSlice::$dtype(values) }
                fn from_host(data: HostData) -> Option<Vec<Self>> {
                    match data { HostData::$dtype(values) => Some(values), _ => None }
                }
            }
        )*
    };
}

elements! {
    F64, f64, |v| v, |v| v;
    F32, f32, f64::from, |v| v as f32;
    F16, f16, f16::to_f64, |v| f16::from_f32(odd(v));
    BF16, bf16, bf16::to_f64, |v| bf16::from_f32(odd(v));
    I64, i64, |v| v as f64, |v| v as i64;
    I32, i32, f64::from, |v| v as i32;
    U8, u8, f64::from, |v| v as u8;
    Bool, bool, |v| v as u8 as f64, |v| v != 0.0;
}

/// An f64 rounded to odd: rounding it once more, to 16 bits, then rounds as if once. `half` forgets half of the significand.
fn odd(v: f64) -> f32 {
    let near = v as f32;
    if v.is_nan() || f64::from(near) == v {
        return near;
    }
    let towards_zero = near.to_bits() - u32::from(f64::from(near).abs() > v.abs());
    f32::from_bits(towards_zero | 1)
}

/// A number handed to an operation: it takes the tensor's type, but a float never becomes an integer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// An integer; fits any tensor.
    Int(i64),
    /// A float; an error against integer and bool tensors.
    Float(f64),
}

impl Number {
    /// The number as f64.
    pub fn to_f64(self) -> f64 {
        match self {
            Self::Int(v) => v as f64,
            Self::Float(v) => v,
        }
    }

    /// The number as i64; floats truncate.
    pub fn to_i64(self) -> i64 {
        match self {
            Self::Int(v) => v,
            Self::Float(v) => v as i64,
        }
    }

    /// Whether a tensor of `dtype` can take this number without promotion.
    pub fn fits(self, dtype: DType) -> bool {
        matches!(self, Self::Int(_)) || dtype.is_float()
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Int(v) => write!(f, "{v}"),
            Self::Float(v) => write!(f, "{v:?}"),
        }
    }
}

macro_rules! numbers {
    ($variant:ident: $($t:ty),*) => { $(impl From<$t> for Number {
        fn from(v: $t) -> Self { Self::$variant(v as _) }
    })* };
}

numbers!(Int: i64, i32, u8, usize);
numbers!(Float: f64, f32);

impl From<bool> for Number {
    fn from(v: bool) -> Self {
        Self::Int(v.into())
    }
}

impl From<f16> for Number {
    fn from(v: f16) -> Self {
        Self::Float(v.to_f64())
    }
}

impl From<bf16> for Number {
    fn from(v: bf16) -> Self {
        Self::Float(v.to_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_convert_from_f64_as_casts_do() {
        assert_eq!((<i64 as Element>::from_f64(-2.9), <i64 as Element>::from_f64(f64::NAN)), (-2, 0));
        assert_eq!((<u8 as Element>::from_f64(300.0), <u8 as Element>::from_f64(-1.0)), (255, 0));
        assert_eq!((<i32 as Element>::from_f64(1e12), <bool as Element>::from_f64(0.1)), (i32::MAX, true));
        assert_eq!(<f16 as Element>::from_f64(65_520.0).to_f64(), f64::INFINITY);
        // Beyond the middle of two numbers of 16 bits by less than an f32 shows.
        let beyond = 1.0 + f64::from(2.0f32.powi(-8)) + 2.0f64.powi(-40);
        assert_eq!(<bf16 as Element>::from_f64(beyond).to_f64(), 1.0 + 2.0f64.powi(-7));
        assert_eq!(<bf16 as Element>::from_f64(-beyond).to_f64(), -1.0 - 2.0f64.powi(-7));
        assert_eq!(
            <f16 as Element>::from_f64(1.0 + 2.0f64.powi(-11) + 2.0f64.powi(-40)).to_f64(),
            1.0 + 2.0f64.powi(-10)
        );
        assert_eq!(<bf16 as Element>::from_f64(f64::MAX).to_f64(), f64::INFINITY);
        assert_eq!(<bf16 as Element>::from_f64(-1e-300).to_f64(), 0.0);
        assert_eq!(Element::to_f64(i64::MAX), 9_223_372_036_854_775_807.0);
    }

    #[test]
    fn numbers_know_what_they_fit() {
        for dtype in DType::ALL {
            assert!(Number::from(3).fits(dtype));
            assert_eq!(Number::from(0.5).fits(dtype), dtype.is_float());
        }
        assert_eq!(
            (Number::from(true), Number::from(7usize), Number::from(1.5f32)),
            (Number::Int(1), Number::Int(7), Number::Float(1.5))
        );
        assert_eq!((Number::Float(2.0).to_string(), Number::Int(-1).to_string()), ("2.0".into(), "-1".into()));
    }

    #[test]
    fn dtypes_are_told_apart() {
        let names: Vec<&str> = DType::ALL.iter().map(|d| d.name()).collect();
        assert_eq!(names, ["f64", "f32", "f16", "bf16", "i64", "i32", "u8", "bool"]);
        for dtype in DType::ALL {
            assert!(!(dtype.is_float() && dtype.is_int()));
            let data = HostData::zeros(dtype, 3);
            assert_eq!((data.dtype(), data.len(), data.as_slice().dtype()), (dtype, 3, dtype));
            assert_eq!(data.to_f64(), [0.0; 3]);
        }
        assert_eq!(DType::F16.epsilon(), f16::EPSILON.to_f64());
        assert_eq!(DType::BF16.epsilon(), bf16::EPSILON.to_f64());
    }
}
