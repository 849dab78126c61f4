//! Vector instructions, chosen at run time: a kernel is written once as plain loops, compiled for every level, and runs
//! at the best one that the processor has. The only file of this crate with `unsafe`.
//!
//! A kernel and everything it calls must be `#[inline(always)]`, so that it becomes part of the function that has the
//! instructions. All levels give the same bits: nothing here lets the compiler fuse or regroup.
#![allow(unsafe_code)]

use std::sync::OnceLock;

/// Work compiled for every level.
pub trait Kernel {
    /// What it gives.
    type Output;

    /// The widest level that it is worth compiling for: code that a lower one serves as well takes less time to build.
    const WIDEST: Level = Level::Avx512;

    /// Does the work. Mark it `#[inline(always)]`.
    fn run(self) -> Self::Output;
}

/// A set of vector instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// What every processor of the architecture has: SSE2, or NEON.
    Baseline,
    /// x86-64-v3: 256-bit vectors and fused products.
    Avx2,
    /// x86-64-v4: 512-bit vectors and masks.
    Avx512,
}

impl Level {
    /// The name in version information.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Baseline if cfg!(target_arch = "aarch64") => "neon",
            Self::Baseline => "baseline",
            Self::Avx2 => "avx2",
            Self::Avx512 => "avx512",
        }
    }
}

/// The best level of this processor, or a lower one named by `CONSORT_SIMD` (`baseline`, `avx2`, `avx512`).
#[inline]
pub fn level() -> Level {
    static LEVEL: OnceLock<Level> = OnceLock::new();
    *LEVEL.get_or_init(|| {
        let best = best();
        let wanted = match std::env::var("CONSORT_SIMD").as_deref() {
            Ok("baseline") => Level::Baseline,
            Ok("avx2") => Level::Avx2,
            _ => Level::Avx512,
        };
        best.min(wanted)
    })
}

#[cfg(target_arch = "x86_64")]
fn best() -> Level {
    use std::arch::is_x86_feature_detected as has;
    let v3 = has!("avx2") && has!("fma") && has!("bmi1") && has!("bmi2") && has!("lzcnt") && has!("f16c");
    let v4 = has!("avx512f") && has!("avx512bw") && has!("avx512cd") && has!("avx512dq") && has!("avx512vl");
    match (v3, v4) {
        (true, true) => Level::Avx512,
        (true, false) => Level::Avx2,
        (false, _) => Level::Baseline,
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn best() -> Level {
    Level::Baseline
}

/// Runs a kernel at the processor's [`level`].
#[inline(always)]
pub fn run<K: Kernel>(kernel: K) -> K::Output {
    // The conditions are constants, so that what is not wanted is not compiled.
    #[cfg(target_arch = "x86_64")]
    if const { K::WIDEST as u8 > Level::Baseline as u8 } {
        let level = level();
        if const { K::WIDEST as u8 == Level::Avx512 as u8 } && level == Level::Avx512 {
            // SAFETY: `level` is not above what the processor has.
            return unsafe { avx512(kernel) };
        }
        if level >= Level::Avx2 {
            // SAFETY: as above.
            return unsafe { avx2(kernel) };
        }
    }
    kernel.run()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt,f16c")]
fn avx2<K: Kernel>(kernel: K) -> K::Output {
    kernel.run()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx2,fma,bmi1,bmi2,lzcnt,f16c")]
fn avx512<K: Kernel>(kernel: K) -> K::Output {
    kernel.run()
}

/// The largest tile of a matrix product that stays in registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TileShape {
    /// Rows.
    pub rows: usize,
    /// Columns: a few vectors of `lanes`.
    pub cols: usize,
    /// Columns of one vector.
    pub lanes: usize,
}

/// Rows of the right-hand side of a [`Product::product`], by where each begins.
#[derive(Clone, Debug)]
pub struct Rows {
    offsets: Vec<usize>,
    furthest: usize,
}

impl Rows {
    /// Rows that begin at these positions.
    pub fn new(offsets: Vec<usize>) -> Self {
        let furthest = offsets.iter().copied().max().unwrap_or(0);
        Self { offsets, furthest }
    }

    /// `n` rows, `stride` apart.
    pub fn every(stride: usize, n: usize) -> Self {
        Self::new((0..n).map(|i| i * stride).collect())
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.offsets.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.offsets.is_empty()
    }

    /// Where the one furthest along begins.
    pub fn furthest(&self) -> usize {
        self.furthest
    }
}

/// The left-hand side of a [`Product::product`]: element (i, r) is at `i * row + r * step`.
#[derive(Clone, Copy, Debug)]
pub struct Lhs<'a, T> {
    /// From the first element on.
    pub data: &'a [T],
    /// From a row to the next.
    pub row: usize,
    /// From a column to the next.
    pub step: usize,
}

/// A float that has a matrix product.
pub trait Product: Copy + 'static {
    /// The largest tile at this processor's [`level`].
    fn tile() -> TileShape;

    /// One tile: `c[i][j] = Σ_r a[i, r] · b[rows[r] + j]`, added up in order of r, for `m` rows and `n` columns of c,
    /// whose rows are `c_row` apart; with `accumulate` the sums go on from what c holds.
    ///
    /// At most [`Product::tile`] large; n in whole vectors. Products are fused with the sum, where the processor can.
    fn product(
        m: usize,
        n: usize,
        a: Lhs<'_, Self>,
        rows: &Rows,
        b: &[Self],
        c: &mut [Self],
        c_row: usize,
        accumulate: bool,
    );
}

/// A tile's operands, checked.
struct Tile<'a, T> {
    a: *const T,
    a_row: usize,
    a_step: usize,
    b: *const T,
    offsets: &'a [usize],
    c: *mut T,
    c_row: usize,
    accumulate: bool,
}

/// A vector of floats in a register.
trait Vector: Copy {
    type Elem: Copy;
    const LANES: usize;
    fn splat(x: Self::Elem) -> Self;
    /// Reads `LANES` elements. Safety: they are readable.
    unsafe fn load(from: *const Self::Elem) -> Self;
    /// Writes `LANES` elements. Safety: they are writable.
    unsafe fn store(self, to: *mut Self::Elem);
    /// `self + a · b`.
    fn add_product(self, a: Self, b: Self) -> Self;
}

/// Computes M rows of N vectors, all sums in registers.
///
/// # Safety
/// All that the tile names is there, and the processor has the vector's instructions.
#[inline(always)]
unsafe fn compute<V: Vector, const M: usize, const N: usize>(tile: &Tile<'_, V::Elem>, zero: V::Elem) {
    // SAFETY: the caller vouches for every element of the tile's operands.
    unsafe {
        let mut sums = [[V::splat(zero); N]; M];
        if tile.accumulate {
            for (i, sums) in sums.iter_mut().enumerate() {
                for (j, sum) in sums.iter_mut().enumerate() {
                    *sum = V::load(tile.c.add(i * tile.c_row + j * V::LANES));
                }
            }
        }
        let lhs: [*const V::Elem; M] = std::array::from_fn(|i| tile.a.add(i * tile.a_row));
        for (r, &offset) in tile.offsets.iter().enumerate() {
            let rhs: [V; N] = std::array::from_fn(|j| V::load(tile.b.add(offset + j * V::LANES)));
            for (sums, lhs) in sums.iter_mut().zip(lhs) {
                let x = V::splat(*lhs.add(r * tile.a_step));
                for (sum, y) in sums.iter_mut().zip(rhs) {
                    *sum = sum.add_product(x, y);
                }
            }
        }
        for (i, sums) in sums.iter().enumerate() {
            for (j, sum) in sums.iter().enumerate() {
                sum.store(tile.c.add(i * tile.c_row + j * V::LANES));
            }
        }
    }
}

/// Sends a tile to the [`compute`] of its size.
macro_rules! sized {
    ($vector:ty, $tile:expr, $m:expr, $n:expr, $zero:expr, [$($rows:literal)*], $vectors:tt) => {
        match $m { $($rows => sized!(@ $vector, $tile, $rows, $n, $zero, $vectors),)* m => unreachable!("invariant: a tile has up to 8 rows, not {m}") }
    };
    (@ $vector:ty, $tile:expr, $rows:literal, $n:expr, $zero:expr, [$($vectors:literal)*]) => {
        match $n { $($vectors => compute::<$vector, $rows, $vectors>($tile, $zero),)* n => unreachable!("invariant: a tile has up to 3 vectors, not {n}") }
    };
}

macro_rules! product {
    ($t:ty, $lanes:expr, $avx2:ty, $avx512:ty) => {
        impl Product for $t {
            #[inline]
            fn tile() -> TileShape {
                let (rows, vectors, lanes) = match level() {
                    Level::Avx512 => (8, 3, 16 * 4 / size_of::<$t>()),
                    Level::Avx2 => (6, 2, 8 * 4 / size_of::<$t>()),
                    Level::Baseline => (4, 2, $lanes),
                };
                TileShape { rows, cols: vectors * lanes, lanes }
            }

            #[inline]
            fn product(
                m: usize,
                n: usize,
                a: Lhs<'_, $t>,
                rows: &Rows,
                b: &[$t],
                c: &mut [$t],
                c_row: usize,
                accumulate: bool,
            ) {
                let shape = Self::tile();
                assert!(m > 0 && m <= shape.rows && n > 0 && n <= shape.cols && n % shape.lanes == 0, "invariant: a tile's size");
                assert!(m == 1 || c_row >= n, "invariant: rows of c are apart");
                assert!((m - 1) * c_row + n <= c.len(), "invariant: c holds the tile");
                if !rows.is_empty() {
                    assert!((m - 1) * a.row + (rows.len() - 1) * a.step < a.data.len(), "invariant: a holds the tile");
                    assert!(rows.furthest + n <= b.len(), "invariant: b holds the tile");
                }
                let tile = Tile {
                    a: a.data.as_ptr(),
                    a_row: a.row,
                    a_step: a.step,
                    b: b.as_ptr(),
                    offsets: &rows.offsets,
                    c: c.as_mut_ptr(),
                    c_row,
                    accumulate,
                };
                let n = n / shape.lanes;
                // SAFETY: the assertions cover every element that the tile reads and writes; `level` is not above
                // what the processor has.
                unsafe {
                    match level() {
                        #[cfg(target_arch = "x86_64")]
                        Level::Avx512 => {
                            #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx2,fma")]
                            unsafe fn run(tile: &Tile<'_, $t>, m: usize, n: usize) {
                                // SAFETY: as the caller's.
                                unsafe { sized!($avx512, tile, m, n, 0.0, [1 2 3 4 5 6 7 8], [1 2 3]) }
                            }
                            run(&tile, m, n);
                        }
                        #[cfg(target_arch = "x86_64")]
                        Level::Avx2 => {
                            #[target_feature(enable = "avx2,fma")]
                            unsafe fn run(tile: &Tile<'_, $t>, m: usize, n: usize) {
                                // SAFETY: as the caller's.
                                unsafe { sized!($avx2, tile, m, n, 0.0, [1 2 3 4 5 6], [1 2]) }
                            }
                            run(&tile, m, n);
                        }
                        _ => sized!([$t; $lanes], &tile, m, n, 0.0, [1 2 3 4], [1 2]),
                    }
                }
            }
        }

        impl Vector for [$t; $lanes] {
            type Elem = $t;
            const LANES: usize = $lanes;
            #[inline(always)]
            fn splat(x: $t) -> Self {
                [x; $lanes]
            }
            #[inline(always)]
            unsafe fn load(from: *const $t) -> Self {
                // SAFETY: the caller's.
                unsafe { from.cast::<Self>().read_unaligned() }
            }
            #[inline(always)]
            unsafe fn store(self, to: *mut $t) {
                // SAFETY: the caller's.
                unsafe { to.cast::<Self>().write_unaligned(self) }
            }
            #[inline(always)]
            fn add_product(self, a: Self, b: Self) -> Self {
                // Every processor with NEON fuses; on x86-64 without FMA a fused product would be a call.
                std::array::from_fn(|i| {
                    if cfg!(target_arch = "aarch64") { a[i].mul_add(b[i], self[i]) } else { self[i] + a[i] * b[i] }
                })
            }
        }
    };
}

/// The vector types of x86-64.
#[cfg(target_arch = "x86_64")]
macro_rules! vector {
    ($v:ty, $t:ty, $lanes:expr, $splat:ident, $load:ident, $store:ident, $fma:ident) => {
        impl Vector for $v {
            type Elem = $t;
            const LANES: usize = $lanes;
            #[inline(always)]
            fn splat(x: $t) -> Self {
                // SAFETY: used only at the level that has the instruction; so are all below.
                unsafe { x86::$splat(x) }
            }
            #[inline(always)]
            unsafe fn load(from: *const $t) -> Self {
                // SAFETY: the caller's.
                unsafe { x86::$load(from) }
            }
            #[inline(always)]
            unsafe fn store(self, to: *mut $t) {
                // SAFETY: the caller's.
                unsafe { x86::$store(to, self) }
            }
            #[inline(always)]
            fn add_product(self, a: Self, b: Self) -> Self {
                // SAFETY: as for `splat`.
                unsafe { x86::$fma(a, b, self) }
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64 as x86;

#[cfg(target_arch = "x86_64")]
vector!(x86::__m512, f32, 16, _mm512_set1_ps, _mm512_loadu_ps, _mm512_storeu_ps, _mm512_fmadd_ps);
#[cfg(target_arch = "x86_64")]
vector!(x86::__m512d, f64, 8, _mm512_set1_pd, _mm512_loadu_pd, _mm512_storeu_pd, _mm512_fmadd_pd);
#[cfg(target_arch = "x86_64")]
vector!(x86::__m256, f32, 8, _mm256_set1_ps, _mm256_loadu_ps, _mm256_storeu_ps, _mm256_fmadd_ps);
#[cfg(target_arch = "x86_64")]
vector!(x86::__m256d, f64, 4, _mm256_set1_pd, _mm256_loadu_pd, _mm256_storeu_pd, _mm256_fmadd_pd);
product!(f32, 4, x86::__m256, x86::__m512);
product!(f64, 2, x86::__m256d, x86::__m512d);
