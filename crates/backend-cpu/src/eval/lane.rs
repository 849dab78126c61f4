//! The types that are computed in, and how stored elements become them.

use bytemuck::{bytes_of, bytes_of_mut, pod_read_unaligned};
use half::{bf16, f16};
use tensor_core::{DType, Number};

use super::convert::{bf16_to_f32, f16_to_f32, f32_to_bf16, f32_to_f16};
use crate::Elem;
use crate::simd::Level;

/// A type that is computed in. Bool is a `U8` of 0 or 1; 16-bit floats are computed as `F32`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum LaneType {
    F64,
    F32,
    I64,
    I32,
    U8,
}

impl LaneType {
    /// What elements of `dtype` are computed in.
    pub(crate) const fn of(dtype: DType) -> Self {
        match dtype {
            DType::F64 => Self::F64,
            DType::F32 | DType::F16 | DType::BF16 => Self::F32,
            DType::I64 => Self::I64,
            DType::I32 => Self::I32,
            DType::U8 | DType::Bool => Self::U8,
        }
    }

    /// Bytes of one value.
    pub(crate) const fn size_bytes(self) -> usize {
        match self {
            Self::F64 | Self::I64 => 8,
            Self::F32 | Self::I32 => 4,
            Self::U8 => 1,
        }
    }
}

/// Runs an expression with `$t` as the type of a lane.
macro_rules! for_lane {
    ($lane:expr, $t:ident => $body:expr) => {
        match $lane {
            $crate::eval::lane::LaneType::F64 => {
                type $t = f64;
                $body
            }
            $crate::eval::lane::LaneType::F32 => {
                type $t = f32;
                $body
            }
            $crate::eval::lane::LaneType::I64 => {
                type $t = i64;
                $body
            }
            $crate::eval::lane::LaneType::I32 => {
                type $t = i32;
                $body
            }
            $crate::eval::lane::LaneType::U8 => {
                type $t = u8;
                $body
            }
        }
    };
}
pub(super) use for_lane;

/// The Rust type of a [`LaneType`].
pub(crate) trait Lane: Elem {
    /// The widest vectors that loops over this type are compiled for.
    const WIDEST: Level;

    /// The number in this type: integers wrap.
    fn of_number(number: Number) -> Self;

    /// The value in a slot for scalars of any type.
    #[inline]
    fn to_slot(self) -> u64 {
        let mut slot = 0u64;
        bytes_of_mut(&mut slot)[..size_of::<Self>()].copy_from_slice(bytes_of(&self));
        slot
    }

    /// The value of a slot.
    #[inline]
    fn of_slot(slot: u64) -> Self {
        pod_read_unaligned(&bytes_of(&slot)[..size_of::<Self>()])
    }
}

macro_rules! lanes {
    ($($t:ty: $widest:ident),*) => { $(impl Lane for $t {
        const WIDEST: Level = Level::$widest;

        fn of_number(number: Number) -> Self {
            match number {
                Number::Int(v) => v as $t,
                Number::Float(v) => v as $t,
            }
        }
    })* };
}
lanes!(f64: Avx2, f32: Avx512, i64: Baseline, i32: Baseline, u8: Baseline);

/// A number as a slot of an element type.
pub(super) fn number_slot(number: Number, dtype: DType) -> u64 {
    match dtype {
        DType::Bool => u8::from(number.to_f64() != 0.0).to_slot(),
        _ => for_lane!(LaneType::of(dtype), L => L::of_number(number).to_slot()),
    }
}

/// An element type as it is stored, and the lane it is computed in.
pub(crate) trait Stored: Elem {
    /// The type that it is computed in.
    type Lane: Lane;

    /// The value to compute with.
    fn load(self) -> Self::Lane;

    /// The nearest element.
    fn store(value: Self::Lane) -> Self;
}

macro_rules! stored {
    ($($t:ty as $lane:ty: $load:expr, $store:expr;)*) => { $(impl Stored for $t {
        type Lane = $lane;

        #[inline(always)]
        fn load(self) -> $lane { ($load)(self) }

        #[inline(always)]
        fn store(value: $lane) -> Self { ($store)(value) }
    })* };
}
stored! {
    f64 as f64: |v| v, |v| v;
    f32 as f32: |v| v, |v| v;
    f16 as f32: |v: f16| f16_to_f32(v.to_bits()), |v| f16::from_bits(f32_to_f16(v));
    bf16 as f32: |v: bf16| bf16_to_f32(v.to_bits()), |v| bf16::from_bits(f32_to_bf16(v));
    i64 as i64: |v| v, |v| v;
    i32 as i32: |v| v, |v| v;
    u8 as u8: |v| v, |v| v;
}
