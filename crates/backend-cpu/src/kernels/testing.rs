//! How the kernels are tested: every dtype, every kind of layout and several numbers of threads, against loops in f64.

use std::sync::OnceLock;

use rayon::{ThreadPool, ThreadPoolBuilder};
use tensor_core::{
    DType, Element, HostData, HostView, Layout, Meta, Op, Result, Shape, Strides, Tensor, Tensors, execute,
};

use crate::device;

/// Values of an input or an output, row-major.
#[derive(Clone, Debug)]
pub(crate) struct Array {
    pub(crate) shape: Vec<usize>,
    pub(crate) data: Vec<f64>,
    /// A dtype of its own; the others take the case's.
    pub(crate) dtype: Option<DType>,
}

impl Array {
    pub(crate) fn new(shape: &[usize], data: Vec<f64>) -> Self {
        assert_eq!(shape.iter().product::<usize>(), data.len(), "an array's shape and data");
        Self { shape: shape.to_vec(), data, dtype: None }
    }

    /// Small integers and halves without pattern, exact in every dtype that holds them.
    pub(crate) fn sample(shape: &[usize], seed: usize) -> Self {
        let value = |i: usize| ((i + 1) * (2 * seed + 7919) % 1013 % 13) as f64 - 6.0;
        Self::new(shape, (0..shape.iter().product()).map(value).collect())
    }

    /// Numbers between −1 and 1 without pattern.
    pub(crate) fn noise(shape: &[usize], seed: usize) -> Self {
        let value = |i: usize| ((i * 7 + seed * 13 + 1) as f64 * 78.233).sin();
        Self::new(shape, (0..shape.iter().product()).map(value).collect())
    }

    /// The same values with this dtype whatever the case's.
    pub(crate) fn of(mut self, dtype: DType) -> Self {
        self.dtype = Some(dtype);
        self
    }

    /// Row-major position of an index.
    pub(crate) fn at(&self, index: &[usize]) -> usize {
        index.iter().zip(&self.shape).fold(0, |at, (i, n)| at * n + i)
    }

    pub(crate) fn get(&self, index: &[usize]) -> f64 {
        self.data[self.at(index)]
    }

    fn rounded(&self, dtype: DType) -> Self {
        let dtype = self.dtype.unwrap_or(dtype);
        Self { data: self.data.iter().map(|&v| round(v, dtype)).collect(), ..self.clone() }
    }
}

/// All indices of a shape, row-major.
pub(crate) fn indices(shape: &[usize]) -> impl Iterator<Item = Vec<usize>> + use<> {
    let shape = shape.to_vec();
    (0..shape.iter().product()).map(move |mut i| {
        let mut index = vec![0; shape.len()];
        for (index, n) in index.iter_mut().zip(&shape).rev() {
            (*index, i) = (i % n, i / n);
        }
        index
    })
}

/// An output as it should be. Each value may be off by `slack` roundings of the type that is computed in, relative to
/// `scale` (the size of what was added up), and by the rounding to the output's dtype.
#[derive(Clone, Debug)]
pub(crate) struct Expected {
    pub(crate) data: Vec<f64>,
    pub(crate) scale: Vec<f64>,
    pub(crate) slack: f64,
}

impl Expected {
    pub(crate) fn exact(data: Vec<f64>) -> Self {
        Self { scale: vec![0.0; data.len()], data, slack: 0.0 }
    }

    pub(crate) fn within(slack: f64, values: Vec<(f64, f64)>) -> Self {
        let (data, scale) = values.into_iter().unzip();
        Self { data, scale, slack }
    }
}

fn round(v: f64, dtype: DType) -> f64 {
    convert(&[v], dtype).to_f64()[0]
}

fn convert(values: &[f64], dtype: DType) -> HostData {
    fn of<T: Element>(values: &[f64]) -> HostData {
        T::into_host(values.iter().map(|&v| T::from_f64(v)).collect())
    }
    match dtype {
        DType::F64 => of::<f64>(values),
        DType::F32 => of::<f32>(values),
        DType::F16 => of::<half::f16>(values),
        DType::BF16 => of::<half::bf16>(values),
        DType::I64 => of::<i64>(values),
        DType::I32 => of::<i32>(values),
        DType::U8 => of::<u8>(values),
        DType::Bool => of::<bool>(values),
    }
}

/// Kinds of layouts that [`tensor`] makes.
pub(crate) const N_LAYOUTS: usize = 6;

/// The array as a tensor: row-major, transposed, cut out of something larger, backwards, every other element, or
/// with its axes rotated and the first one backwards.
pub(crate) fn tensor(array: &Array, dtype: DType, layout: usize) -> Tensor {
    let rank = array.shape.len();
    let dtype = array.dtype.unwrap_or(dtype);
    // Physical order of the axes, outermost first.
    let order: Vec<usize> = match layout {
        1 => (0..rank).rev().collect(),
        5 => (0..rank).map(|a| (a + 1) % rank).collect(),
        _ => (0..rank).collect(),
    };
    let margin = usize::from(layout == 2);
    let step = |axis: usize| if layout == 4 && axis + 1 == rank { 2 } else { 1 };
    let is_flipped = |axis: usize| layout == 3 || layout == 5 && axis == 0;
    let mut strides = Strides::from_elem(0, rank);
    let (mut len, mut offset) = (1, 0isize);
    for &axis in order.iter().rev() {
        let n = array.shape[axis];
        strides[axis] = (len * step(axis)) as isize;
        offset += (margin * len) as isize;
        if is_flipped(axis) && n > 0 {
            offset += (n as isize - 1) * strides[axis];
            strides[axis] = -strides[axis];
        }
        len *= n * step(axis) + 2 * margin;
    }
    // What a kernel must not read.
    let mut data = vec![if dtype.is_float() { f64::NAN } else { 77.0 }; len];
    for (index, &value) in indices(&array.shape).zip(&array.data) {
        let at = offset + index.iter().zip(&strides).map(|(&i, &s)| i as isize * s).sum::<isize>();
        data[at as usize] = value;
    }
    let data = convert(&data, dtype);
    let shape = Shape::new(&[len]);
    let storage = device().backend().upload(HostView { shape: &shape, data: data.as_slice() }).expect("memory");
    let layout = Layout::from_parts(Shape::new(&array.shape), strides, offset as usize);
    Tensor::from_storage(storage, Meta::new(shape, dtype), device()).with_layout(layout)
}

/// The elements as f64, row-major.
pub(crate) fn values(x: &Tensor) -> Vec<f64> {
    device().backend().download(x).expect("a download").to_f64()
}

/// Runs the op with rayon pools of 1, 2 and 3 threads; the bits must not differ.
pub(crate) fn run(op: &Op, inputs: &[&Tensor]) -> Result<Tensors> {
    static POOLS: OnceLock<[ThreadPool; 3]> = OnceLock::new();
    let pool = |n_threads| ThreadPoolBuilder::new().num_threads(n_threads).build().expect("threads start");
    let pools = POOLS.get_or_init(|| [1, 2, 3].map(pool));
    let on = |n_threads: usize| pools[n_threads - 1].install(|| execute(op, inputs));
    let outputs = on(1)?;
    for n_threads in [2, 3] {
        for (a, b) in outputs.iter().zip(on(n_threads)?) {
            assert_eq!(bits(a), bits(&b), "{} differs between 1 and {n_threads} threads", op.name());
        }
    }
    Ok(outputs)
}

fn bits(x: &Tensor) -> Vec<u64> {
    match device().backend().download(x).expect("a download") {
        HostData::F64(v) => v.iter().map(|v| v.to_bits()).collect(),
        HostData::F32(v) => v.iter().map(|v| v.to_bits().into()).collect(),
        HostData::F16(v) => v.iter().map(|v| v.to_bits().into()).collect(),
        HostData::BF16(v) => v.iter().map(|v| v.to_bits().into()).collect(),
        other => other.to_f64().iter().map(|v| v.to_bits()).collect(),
    }
}

/// Checks an op for these dtypes over all layouts: `reference` gives the outputs for inputs rounded to the dtype.
pub(crate) fn check(op: &Op, inputs: &[Array], dtypes: &[DType], reference: impl Fn(&[Array]) -> Vec<Expected>) {
    for &dtype in dtypes {
        let inputs: Vec<Array> = inputs.iter().map(|x| x.rounded(dtype)).collect();
        let expected = reference(&inputs);
        for layout in 0..N_LAYOUTS {
            let tensors: Vec<Tensor> = inputs
                .iter()
                .enumerate()
                .map(|(i, x)| tensor(x, dtype, (layout + i * (layout / 2)) % N_LAYOUTS))
                .collect();
            let outputs =
                run(op, &tensors.iter().collect::<Vec<_>>()).unwrap_or_else(|e| panic!("{op:?} {dtype}: {e}"));
            assert_eq!(outputs.len(), expected.len(), "{op:?}: number of outputs");
            for (k, (output, expected)) in outputs.iter().zip(&expected).enumerate() {
                let shapes: Vec<_> = inputs.iter().map(|x| &x.shape).collect();
                compare(output, expected, &format!("{op:?} {dtype}, shapes {shapes:?}, layout {layout}, output {k}"));
            }
        }
    }
}

fn compare(output: &Tensor, expected: &Expected, what: &str) {
    let got = values(output);
    assert_eq!(got.len(), expected.data.len(), "{what}: number of elements");
    let dtype = output.dtype();
    for (i, (&got, (&want, &scale))) in got.iter().zip(expected.data.iter().zip(&expected.scale)).enumerate() {
        let rounded = wrapped(want, dtype);
        let tolerance = expected.slack * dtype.compute().epsilon() * scale
            + if expected.slack > 0.0 { dtype.epsilon() * want.abs() + smallest(dtype) } else { 0.0 };
        let same = got == rounded || got.is_nan() && rounded.is_nan() || (got - want).abs() <= tolerance;
        assert!(same, "{what}: element {i} is {got:e}, not {want:e} (off by {:e}, allowed {tolerance:e})", got - want);
    }
}

/// The value as the dtype holds it; integers wrap.
fn wrapped(v: f64, dtype: DType) -> f64 {
    match dtype {
        DType::I32 => f64::from(v as i64 as i32),
        DType::U8 => f64::from(v as i64 as u8),
        _ => round(v, dtype),
    }
}

/// The smallest positive number.
fn smallest(dtype: DType) -> f64 {
    match dtype {
        DType::F64 => f64::from_bits(1),
        DType::F32 => f64::from(f32::from_bits(1)),
        DType::F16 => half::f16::from_bits(1).to_f64(),
        DType::BF16 => half::bf16::from_bits(1).to_f64(),
        _ => 0.0,
    }
}
