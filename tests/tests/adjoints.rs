//! Convolutions, pools and matrix products of random geometries: results from the definition, gradients from
//! ⟨f(x), g⟩ = ⟨x, fᵀ(g)⟩, which holds for every linear function and its adjoint.

use consort::nn::gradient_n;
use consort::prelude::*;
use consort::{ConvTransposeOptions, Padding, device};
use integration::{Grid, Rng, assert_close, values};

/// Elements of a few bits, so that every product is exact.
fn random(rng: &mut Rng, dims: &[usize]) -> Grid {
    Grid::from_fn(dims, |_| 0.0).map(|_| rng.within(-40, 40) as f64 / 32.0)
}

fn dot(a: &[f64], b: &[f64]) -> (f64, f64) {
    a.iter().zip(b).fold((0.0, 0.0), |(sum, size), (a, b)| (sum + a * b, size + (a * b).abs()))
}

/// Checks that the gradients of ⟨f(x, w), g⟩ are its adjoints by each of its linear arguments.
fn assert_adjoint(
    name: &str,
    dtype: DType,
    f: impl Fn(&Tensor, &Tensor) -> Result<Tensor>,
    x: &Grid,
    w: &Grid,
    g: &Grid,
) -> Result<()> {
    let device = device::cpu();
    let [xt, wt, gt] = [x, w, g].map(|grid| grid.tensor(&device, dtype));
    let (xt, wt, gt) = (xt?, wt?, gt?);
    let y = values(&f(&xt, &wt)?);
    let by = gradient_n(|[x, w]| f(x, w)?.mul(&gt)?.sum(..), [&xt, &wt])?;
    let (want, size) = dot(&y, &g.values);
    for (which, by, at) in [("first", &by[0], x), ("second", &by[1], w)] {
        assert_eq!(by.dims(), at.dims, "{name}");
        let (got, _) = dot(&values(by), &at.values);
        let tolerance = dtype.epsilon() * 64.0 * size.max(1.0);
        assert!(
            (got - want).abs() <= tolerance,
            "{name} {dtype}: by the {which}: {got} is not {want} within {tolerance:e}"
        );
    }
    Ok(())
}

/// The geometry of a convolution.
#[derive(Debug)]
struct Geometry {
    x: Vec<usize>,
    w: Vec<usize>,
    stride: Vec<usize>,
    padding: Vec<(usize, usize)>,
    dilation: Vec<usize>,
    groups: usize,
}

impl Geometry {
    fn random(rng: &mut Rng, largest: usize) -> Self {
        let rank = rng.below(3) + 1;
        let mut size = |low: usize, high: usize| rng.below(high - low + 1) + low;
        let groups = size(1, 3);
        let largest = [largest * largest, 2 * largest, largest / 2][rank - 1];
        let mut g = Self {
            x: vec![size(1, 3), groups * size(1, 5)],
            w: vec![groups * size(1, 9)],
            stride: (0..rank).map(|_| size(1, 3)).collect(),
            padding: (0..rank).map(|_| (size(0, 3), size(0, 3))).collect(),
            dilation: (0..rank).map(|_| size(1, 3)).collect(),
            groups,
        };
        g.w.push(g.x[1] / groups);
        for axis in 0..rank {
            let kernel = size(1, 4);
            let span = (kernel - 1) * g.dilation[axis] + 1;
            let (before, after) = g.padding[axis];
            let least = span.saturating_sub(before + after).max(1);
            g.x.push(size(least, least + largest));
            g.w.push(kernel);
        }
        g
    }

    fn options(&self) -> ConvOptions {
        ConvOptions::default()
            .stride(self.stride.clone())
            .padding(Padding::from(&self.padding[..]))
            .dilation(self.dilation.clone())
            .groups(self.groups)
    }

    fn conv(&self, x: &Tensor, w: &Tensor) -> Result<Tensor> {
        match self.stride.len() {
            1 => x.conv1d(w, None, &self.options()),
            2 => x.conv2d(w, None, &self.options()),
            _ => x.conv3d(w, None, &self.options()),
        }
    }

    /// The definition.
    fn reference(&self, x: &Grid, w: &Grid) -> Grid {
        let rank = self.stride.len();
        let mut dims = vec![x.dims[0], w.dims[0]];
        for axis in 0..rank {
            let (before, after) = self.padding[axis];
            let span = (w.dims[axis + 2] - 1) * self.dilation[axis] + 1;
            dims.push((x.dims[axis + 2] + before + after - span) / self.stride[axis] + 1);
        }
        let taps = Grid::count(&w.dims[2..]).values.len();
        let (c_in, per_group) = (w.dims[1], w.dims[0] / self.groups);
        Grid::from_fn(&dims, |i| {
            let mut sum = 0.0;
            for tap in 0..taps {
                let k = integration::unravel(tap, &w.dims[2..]);
                let at = |axis: usize| {
                    let at = i[axis + 2] * self.stride[axis] + k[axis] * self.dilation[axis];
                    at.checked_sub(self.padding[axis].0).filter(|&at| at < x.dims[axis + 2])
                };
                let Some(place) = (0..rank).map(at).collect::<Option<Vec<_>>>() else { continue };
                for c in 0..c_in {
                    let from = [&[i[0], i[1] / per_group * c_in + c], &place[..]].concat();
                    sum += x.at(&from) * w.at(&[&[i[1], c], &k[..]].concat());
                }
            }
            sum
        })
    }
}

#[test]
fn convolutions_are_what_they_are_defined_to_be() -> Result<()> {
    let device = device::cpu();
    let mut rng = Rng::new("convolutions");
    for case in 0..120 {
        let geometry = Geometry::random(&mut rng, if case % 10 == 0 { 12 } else { 4 });
        let name = format!("case {case}: {geometry:?}");
        let (x, w) = (random(&mut rng, &geometry.x), random(&mut rng, &geometry.w));
        let want = geometry.reference(&x, &w);
        for dtype in [DType::F64, DType::F32] {
            let got = geometry.conv(&x.tensor(&device, dtype)?, &w.tensor(&device, dtype)?)?;
            assert_close(&name, &got, &want, w.values.len() / w.dims[0], 2.0);
            let g = random(&mut rng, &want.dims);
            assert_adjoint(&name, dtype, |x, w| geometry.conv(x, w), &x, &w, &g)?;
        }
    }
    Ok(())
}

#[test]
fn transposed_convolutions_are_adjoints() -> Result<()> {
    let device = device::cpu();
    let mut rng = Rng::new("transposed convolutions");
    let mut n = 0;
    while n < 60 {
        let geometry = Geometry::random(&mut rng, 4);
        let (x, w) = (random(&mut rng, &geometry.x), random(&mut rng, &geometry.w));
        let conv = geometry.reference(&x, &w);
        // What the stride leaves over of the input.
        let extra: Vec<usize> = (0..geometry.stride.len())
            .map(|axis| {
                let span = (w.dims[axis + 2] - 1) * geometry.dilation[axis] + 1;
                let (before, after) = geometry.padding[axis];
                (x.dims[axis + 2] + before + after - span) % geometry.stride[axis]
            })
            .collect();
        let options = ConvTransposeOptions::default()
            .stride(geometry.stride.clone())
            .padding(Padding::from(&geometry.padding[..]))
            .dilation(geometry.dilation.clone())
            .groups(geometry.groups)
            .output_padding(extra);
        let transpose = |y: &Tensor, w: &Tensor| match geometry.stride.len() {
            1 => y.conv_transpose1d(w, None, &options),
            2 => y.conv_transpose2d(w, None, &options),
            _ => y.conv_transpose3d(w, None, &options),
        };
        let name = format!("case {n}: {geometry:?}");
        let y = random(&mut rng, &conv.dims);
        for dtype in [DType::F64, DType::F32] {
            let back = transpose(&y.tensor(&device, dtype)?, &w.tensor(&device, dtype)?)?;
            assert_eq!(back.dims(), x.dims, "{name}");
            let (want, size) = dot(&conv.values, &y.values);
            let (got, _) = dot(&x.values, &values(&back));
            assert!(
                (got - want).abs() <= dtype.epsilon() * 64.0 * size.max(1.0),
                "{name} {dtype}: {got} is not {want}"
            );
            assert_adjoint(&name, dtype, transpose, &y, &w, &x)?;
        }
        n += 1;
    }
    Ok(())
}

#[test]
fn matrix_products_are_what_they_are_defined_to_be() -> Result<()> {
    let device = device::cpu();
    let mut rng = Rng::new("matrix products");
    for case in 0..80 {
        let mut size = |low: usize, high: usize| rng.below(high - low + 1) + low;
        let largest = if case % 8 == 0 { 150 } else { 20 };
        let (m, k, n, b) = (size(1, largest), size(1, largest), size(1, largest), size(1, 4));
        let (left, right) =
            [(vec![], vec![]), (vec![b], vec![]), (vec![b], vec![b]), (vec![b, 1], vec![2])][size(0, 3)].clone();
        let (a, b) =
            (random(&mut rng, &[&left[..], &[m, k]].concat()), random(&mut rng, &[&right[..], &[k, n]].concat()));
        let lead: Vec<usize> = match (left.len(), right.len()) {
            (2, _) => vec![left[0], 2],
            _ => left.clone(),
        };
        let want = Grid::from_fn(&[&lead[..], &[m, n]].concat(), |i| {
            let (row, column) = (i[i.len() - 2], i[i.len() - 1]);
            let batch = |dims: &[usize]| -> Vec<usize> {
                let skip = lead.len() - dims.len();
                i[skip..lead.len()].iter().zip(dims).map(|(&i, &n)| if n == 1 { 0 } else { i }).collect()
            };
            let (at_a, at_b) = (batch(&left), batch(&right));
            let of = |grid: &Grid, at: &[usize], j: usize, k: usize| grid.at(&[at, &[j, k]].concat());
            (0..k).map(|k| of(&a, &at_a, row, k) * of(&b, &at_b, k, column)).sum()
        });
        let name = format!("case {case}: {:?} × {:?}", a.dims, b.dims);
        for dtype in [DType::F64, DType::F32] {
            // Once row-major and once transposed in memory.
            let stored = |grid: &Grid| grid.tensor(&device, dtype)?.transpose(-1, -2)?.contiguous()?.transpose(-1, -2);
            for (x, y) in [
                (a.tensor(&device, dtype)?, b.tensor(&device, dtype)?),
                (stored(&a)?, b.tensor(&device, dtype)?),
                (a.tensor(&device, dtype)?, stored(&b)?),
            ] {
                assert_close(&name, &x.matmul(&y)?, &want, k, 2.0);
            }
            let g = random(&mut rng, &want.dims);
            assert_adjoint(&name, dtype, |x, y| x.matmul(y), &a, &b, &g)?;
        }
    }
    Ok(())
}

/// Large tensors are worked in blocks and by several threads: each element comes out as it does alone.
#[test]
fn elements_do_not_depend_on_their_neighbours() -> Result<()> {
    let device = device::cpu();
    type Form = (&'static str, fn(&Tensor) -> Result<Tensor>);
    let forms: &[Form] = &[
        ("exp", |x| x.exp()),
        ("tanh", |x| x.tanh()),
        ("gelu", |x| x.gelu()),
        ("softplus", |x| x.softplus()),
        ("mish and more", |x| x.map(|x| x * x.softplus().tanh() + x.sin().exp() / (1 + x.square()))),
        ("to f16", |x| x.cast(DType::F16)?.cast(x.dtype())),
    ];
    let n = 100_003;
    let x = consort::random::with_stream(consort::random::Stream::new(4), || Tensor::randn(n, &device))?.mul(5.0)?;
    for dtype in [DType::F32, DType::F64, DType::BF16] {
        let x = x.cast(dtype)?;
        for (name, f) in forms {
            let whole = f(&x)?;
            for (start, len, step) in
                [(0, 1, 1), (1, 17, 1), (n - 5, 5, 1), (99, 40_000, 1), (3, 70_000, 7), (0, n, -3)]
            {
                let cut = |x: &Tensor| x.narrow(0, start, len)?.slice(0, .., step);
                assert!(
                    values(&f(&cut(&x)?)?) == values(&cut(&whole)?),
                    "{name} {dtype}: {len} from {start} by {step}"
                );
            }
            let column = f(&x.narrow(0, 0, 99_990)?.reshape([303, 330])?.t()?)?.t()?.reshape(-1)?;
            assert!(values(&column) == values(&whole.narrow(0, 0, 99_990)?), "{name} {dtype}: transposed");
        }
    }
    Ok(())
}
