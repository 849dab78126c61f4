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

/// Positions, from some first element on.
#[derive(Clone, Debug)]
pub struct Offsets {
    list: Vec<usize>,
    furthest: usize,
}

impl Offsets {
    /// These.
    pub fn new(list: Vec<usize>) -> Self {
        let furthest = list.iter().copied().max().unwrap_or(0);
        Self { list, furthest }
    }

    /// `n` that are `stride` apart.
    pub fn every(stride: usize, n: usize) -> Self {
        Self { list: (0..n).map(|i| i * stride).collect(), furthest: n.saturating_sub(1) * stride }
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }
}

/// The left-hand side of a [`Product::product`]: element (i, r) is at `rows[i] + steps[r]`.
#[derive(Clone, Copy, Debug)]
pub struct Lhs<'a, T> {
    /// From the first element on.
    pub data: &'a [T],
    /// Where each row begins.
    pub rows: &'a [usize],
    /// From the beginning of a row to each of its elements.
    pub steps: &'a Offsets,
}

/// The right-hand side of a [`Product::product`]: element (r, j) is at `rows[r] + j`.
#[derive(Clone, Copy, Debug)]
pub struct Rhs<'a, T> {
    /// From the first element on.
    pub data: &'a [T],
    /// Where each row begins.
    pub rows: &'a Offsets,
}

/// Rows of elements that follow each other.
#[derive(Clone, Copy, Debug)]
pub struct Rows<'a, T> {
    /// From the first element on.
    pub data: &'a [T],
    /// Where each row begins.
    pub starts: &'a [usize],
}

/// Where a tile goes in c.
#[derive(Clone, Copy, Debug)]
pub struct Apart {
    /// From a row to the next.
    pub rows: usize,
    /// From a vector of columns to the next; what c gets of a vector may be overwritten by the next one's.
    pub vectors: usize,
}

/// A float that has a matrix product.
pub trait Product: Copy + 'static {
    /// The largest tile at this processor's [`level`].
    fn tile() -> TileShape;

    /// One tile: `c[i][j] = Σ_r a[i, r] · b[r, j]`, added up in order of r, for the rows of a and `n` columns of c,
    /// whose rows are `c_row` apart; with `accumulate` the sums go on from what c holds.
    ///
    /// At most [`Product::tile`] large; n in whole vectors. Products are fused with the sum, where the processor can.
    #[inline]
    fn product(n: usize, a: Lhs<'_, Self>, b: Rhs<'_, Self>, c: &mut [Self], c_row: usize, accumulate: bool) {
        Self::product_apart(n, a, b, c, Apart { rows: c_row, vectors: Self::tile().lanes }, accumulate);
    }

    /// [`Product::product`] whose vectors of columns, too, are some way apart in c.
    fn product_apart(n: usize, a: Lhs<'_, Self>, b: Rhs<'_, Self>, c: &mut [Self], apart: Apart, accumulate: bool);

    /// Rows of a, and rows of b, that [`Product::add_products`] takes at most.
    fn rows() -> (usize, usize);

    /// For every row i of a and j of b adds the products of their first n elements to the vector i · rows of b + j of
    /// `sums`, lane by lane; n in whole vectors.
    fn add_products(n: usize, a: Rows<'_, Self>, b: Rows<'_, Self>, sums: &mut [Self]);

    /// Turns columns of one length into rows of eight, which begin `width` apart, as far as whole squares go; returns
    /// how many rows were written.
    fn turn(columns: &[&[Self]; 8], to: &mut [Self], width: usize) -> usize;
}

/// A tile's operands, checked.
struct Tile<'a, T> {
    a: *const T,
    a_rows: &'a [usize],
    a_steps: &'a [usize],
    b: *const T,
    b_rows: &'a [usize],
    c: *mut T,
    apart: Apart,
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
                    *sum = V::load(tile.c.add(i * tile.apart.rows + j * tile.apart.vectors));
                }
            }
        }
        let lhs: [*const V::Elem; M] = std::array::from_fn(|i| tile.a.wrapping_add(*tile.a_rows.get_unchecked(i)));
        for (&step, &row) in tile.a_steps.iter().zip(tile.b_rows) {
            let rhs: [V; N] = std::array::from_fn(|j| V::load(tile.b.add(row + j * V::LANES)));
            for (sums, lhs) in sums.iter_mut().zip(lhs) {
                let x = V::splat(*lhs.add(step));
                for (sum, y) in sums.iter_mut().zip(rhs) {
                    *sum = sum.add_product(x, y);
                }
            }
        }
        for (i, sums) in sums.iter().enumerate() {
            for (j, sum) in sums.iter().enumerate() {
                sum.store(tile.c.add(i * tile.apart.rows + j * tile.apart.vectors));
            }
        }
    }
}

/// Adds products of vectors of M rows of a and N rows of b, all sums in registers.
///
/// # Safety
/// The rows have `n` vectors each, `sums` M · N of them, and the processor has the vector's instructions.
#[inline(always)]
unsafe fn multiply<V: Vector, const M: usize, const N: usize>(
    n: usize,
    a: Rows<'_, V::Elem>,
    b: Rows<'_, V::Elem>,
    sums: &mut [V::Elem],
) {
    // SAFETY: the caller vouches for every element.
    unsafe {
        let to = sums.as_mut_ptr();
        let mut sums: [[V; N]; M] =
            std::array::from_fn(|i| std::array::from_fn(|j| V::load(to.add((i * N + j) * V::LANES))));
        let a: [*const V::Elem; M] = std::array::from_fn(|i| a.data.as_ptr().add(*a.starts.get_unchecked(i)));
        let b: [*const V::Elem; N] = std::array::from_fn(|j| b.data.as_ptr().add(*b.starts.get_unchecked(j)));
        for at in (0..n).map(|r| r * V::LANES) {
            let y: [V; N] = std::array::from_fn(|j| V::load(b[j].add(at)));
            for (sums, a) in sums.iter_mut().zip(a) {
                let x = V::load(a.add(at));
                for (sum, y) in sums.iter_mut().zip(y) {
                    *sum = sum.add_product(x, y);
                }
            }
        }
        for (i, sum) in sums.iter().flatten().enumerate() {
            sum.store(to.add(i * V::LANES));
        }
    }
}

/// Calls the function of a tile's size.
macro_rules! sized {
    ($f:ident, $vector:ty, $args:tt, $m:expr, $n:expr, [$($rows:literal)*], $vectors:tt) => {
        match $m { $($rows => sized!(@ $f, $vector, $args, $rows, $n, $vectors),)* m => unreachable!("invariant: a tile has not {m} rows") }
    };
    (@ $f:ident, $vector:ty, $args:tt, $rows:literal, $n:expr, [$($vectors:literal)*]) => {
        match $n { $($vectors => $f::<$vector, $rows, $vectors> $args,)* n => unreachable!("invariant: a tile has not {n} vectors") }
    };
}

macro_rules! product {
    ($t:ty, $lanes:expr, $avx2:ty, $avx512:ty, $turn:path) => {
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
            fn product_apart(
                n: usize,
                a: Lhs<'_, $t>,
                b: Rhs<'_, $t>,
                c: &mut [$t],
                apart: Apart,
                accumulate: bool,
            ) {
                let (m, shape) = (a.rows.len(), Self::tile());
                assert!(m > 0 && m <= shape.rows, "invariant: a tile's rows");
                assert!(n > 0 && n <= shape.cols && n % shape.lanes == 0, "invariant: a tile's columns");
                let row = (n / shape.lanes - 1) * apart.vectors + shape.lanes;
                assert!(m == 1 || apart.rows >= row, "invariant: rows of c are apart");
                assert!((m - 1) * apart.rows + row <= c.len(), "invariant: c holds the tile");
                assert_eq!(a.steps.len(), b.rows.len(), "invariant: a row of a meets all rows of b");
                if !b.rows.is_empty() {
                    let furthest = a.rows.iter().max().map_or(0, |row| row + a.steps.furthest);
                    assert!(furthest < a.data.len(), "invariant: a holds the tile");
                    assert!(b.rows.furthest + n <= b.data.len(), "invariant: b holds the tile");
                }
                let tile = Tile {
                    a: a.data.as_ptr(),
                    a_rows: a.rows,
                    a_steps: &a.steps.list,
                    b: b.data.as_ptr(),
                    b_rows: &b.rows.list,
                    c: c.as_mut_ptr(),
                    apart,
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
                                unsafe { sized!(compute, $avx512, (tile, 0.0), m, n, [1 2 3 4 5 6 7 8], [1 2 3]) }
                            }
                            run(&tile, m, n);
                        }
                        #[cfg(target_arch = "x86_64")]
                        Level::Avx2 => {
                            #[target_feature(enable = "avx2,fma")]
                            unsafe fn run(tile: &Tile<'_, $t>, m: usize, n: usize) {
                                // SAFETY: as the caller's.
                                unsafe { sized!(compute, $avx2, (tile, 0.0), m, n, [1 2 3 4 5 6], [1 2]) }
                            }
                            run(&tile, m, n);
                        }
                        _ => sized!(compute, [$t; $lanes], (&tile, 0.0), m, n, [1 2 3 4], [1 2]),
                    }
                }
            }

            #[inline]
            fn rows() -> (usize, usize) {
                if level() == Level::Avx512 { (4, 6) } else { (3, 3) }
            }

            #[inline]
            fn add_products(n: usize, a: Rows<'_, $t>, b: Rows<'_, $t>, sums: &mut [$t]) {
                let lanes = Self::tile().lanes;
                let (rows_a, rows_b) = (a.starts.len(), b.starts.len());
                let hold = |rows: Rows<'_, $t>| rows.starts.iter().all(|start| start + n <= rows.data.len());
                assert!(n % lanes == 0, "invariant: whole vectors");
                assert!(hold(a) && hold(b), "invariant: the rows are there");
                assert!(rows_a * rows_b * lanes <= sums.len(), "invariant: room for the sums");
                let n = n / lanes;
                // SAFETY: the assertions cover every element; `level` is not above what the processor has.
                unsafe {
                    match level() {
                        #[cfg(target_arch = "x86_64")]
                        Level::Avx512 => {
                            #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx2,fma")]
                            unsafe fn run(n: usize, a: Rows<'_, $t>, b: Rows<'_, $t>, sums: &mut [$t]) {
                                let (rows_a, rows_b) = (a.starts.len(), b.starts.len());
                                // SAFETY: as the caller's.
                                unsafe {
                                    sized!(multiply, $avx512, (n, a, b, sums), rows_a, rows_b, [1 2 3 4], [1 2 3 4 5 6])
                                }
                            }
                            run(n, a, b, sums);
                        }
                        #[cfg(target_arch = "x86_64")]
                        Level::Avx2 => {
                            #[target_feature(enable = "avx2,fma")]
                            unsafe fn run(n: usize, a: Rows<'_, $t>, b: Rows<'_, $t>, sums: &mut [$t]) {
                                let (rows_a, rows_b) = (a.starts.len(), b.starts.len());
                                // SAFETY: as the caller's.
                                unsafe { sized!(multiply, $avx2, (n, a, b, sums), rows_a, rows_b, [1 2 3], [1 2 3]) }
                            }
                            run(n, a, b, sums);
                        }
                        _ => sized!(multiply, [$t; $lanes], (n, a, b, sums), rows_a, rows_b, [1 2 3], [1 2 3]),
                    }
                }
            }

            #[inline]
            fn turn(columns: &[&[$t]; 8], to: &mut [$t], width: usize) -> usize {
                let n_rows = columns[0].len() / 8 * 8;
                assert!(columns.iter().all(|column| column.len() == columns[0].len()), "invariant: columns of one length");
                assert!(n_rows == 0 || (width >= 8 && (n_rows - 1) * width + 8 <= to.len()), "invariant: room for the rows");
                $turn(columns, to, width, n_rows);
                n_rows
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
product!(f32, 4, x86::__m256, x86::__m512, turn_f32);
product!(f64, 2, x86::__m256d, x86::__m512d, turn_any);

/// [`Product::turn`], checked.
fn turn_any<T: Copy>(columns: &[&[T]; 8], to: &mut [T], width: usize, n_rows: usize) {
    for (r, row) in to.chunks_mut(width).take(n_rows).enumerate() {
        row.iter_mut().zip(columns).for_each(|(to, column)| *to = column[r]);
    }
}

/// [`Product::turn`], checked: squares of eight by eight in registers.
fn turn_f32(columns: &[&[f32]; 8], to: &mut [f32], width: usize, n_rows: usize) {
    #[cfg(target_arch = "x86_64")]
    if level() >= Level::Avx2 {
        #[target_feature(enable = "avx2")]
        unsafe fn run(columns: &[&[f32]; 8], to: *mut f32, width: usize, n_rows: usize) {
            use x86::*;
            for r in (0..n_rows).step_by(8) {
                // SAFETY: `turn` has checked that the columns have, and the rows have room for, as many elements.
                unsafe {
                    let c: [__m256; 8] = std::array::from_fn(|j| _mm256_loadu_ps(columns[j].as_ptr().add(r)));
                    // Pairs, then fours, then halves of the columns side by side.
                    let pairs: [__m256; 8] = std::array::from_fn(|i| match i % 2 {
                        0 => _mm256_unpacklo_ps(c[i], c[i + 1]),
                        _ => _mm256_unpackhi_ps(c[i - 1], c[i]),
                    });
                    let fours: [__m256; 8] = std::array::from_fn(|i| {
                        let (a, b) = (pairs[i / 4 * 4 + i % 4 / 2], pairs[i / 4 * 4 + i % 4 / 2 + 2]);
                        if i % 2 == 0 { _mm256_shuffle_ps::<0x44>(a, b) } else { _mm256_shuffle_ps::<0xee>(a, b) }
                    });
                    for i in 0..4 {
                        let (a, b) = (fours[i], fours[i + 4]);
                        _mm256_storeu_ps(to.add((r + i) * width), _mm256_permute2f128_ps::<0x20>(a, b));
                        _mm256_storeu_ps(to.add((r + i + 4) * width), _mm256_permute2f128_ps::<0x31>(a, b));
                    }
                }
            }
        }
        // SAFETY: the level has the instructions; `turn` has checked the sizes.
        return unsafe { run(columns, to.as_mut_ptr(), width, n_rows) };
    }
    turn_any(columns, to, width, n_rows);
}
