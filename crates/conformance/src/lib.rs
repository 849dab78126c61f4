//! The contract of the ops as a test suite that any backend calls.
//!
//! The [`reference`](mod@reference) runs every op naively in f64 and carries, with each value, how far a backend may be from it.
//! Deliberately absent: anything shared with a backend's kernels.
#![forbid(unsafe_code)]

pub mod compare;
pub mod lockstep;
pub mod reference;
pub mod saboteur;
#[cfg(feature = "suite")]
pub mod suite;

#[cfg(all(doctest, feature = "suite"))]
#[doc = include_str!("../../../docs/adding-a-backend.md")]
struct AddingABackend;
