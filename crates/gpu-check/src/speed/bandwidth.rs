//! Ops that memory bounds, beside the rate of a copy.

use nn::with_gradient;
use nn::{Forward, chain};
use tensor_core::{AttentionOptions, DType, Result, Tensor};

use super::{ceiling, seconds};
use crate::device::Subject;
use crate::record::{Record, number};

pub(crate) fn run(subject: &Subject, record: &mut Record) -> Result<()> {
    let copy = ceiling::copy_rate(subject)?;
    record.note(format!("ceiling: a copy by the driver moves {:.0} GB/s, read and written", copy / 1e9));
    record.table(
        "Bytes by the op's formula, in a second, as a share of the copy's",
        &["op", "dtype", "bytes per element", "µs", "GB/s", "share", "PyTorch (µs)", "ratio of times"],
    );
    for dtype in [DType::F32, DType::BF16] {
        maps(subject, record, copy, dtype)?;
    }
    update(subject, record, copy)?;
    attention(subject, record)
}

/// Maps, reductions and rows of 4096.
fn maps(subject: &Subject, record: &mut Record, copy: f64, dtype: DType) -> Result<()> {
    let (n_rows, n) = subject.size((16384, 4096), (8, 64));
    let [x, y] = [(); 2].map(|()| Tensor::randn([n_rows, n], &subject.device).and_then(|x| x.cast(dtype)));
    let (x, y) = (&x?, &y?);
    let row = &Tensor::randn([n], &subject.device)?.cast(dtype)?;
    type Work<'a> = Box<dyn Fn() -> Result<Tensor> + 'a>;
    // How often an element is read or written.
    let works: [(&str, usize, Work<'_>); 12] = [
        ("add", 3, Box::new(|| x.add(y))),
        ("add a row", 2, Box::new(|| x.add(row))),
        ("mul by a number", 2, Box::new(|| x.mul(0.5))),
        ("relu", 2, Box::new(|| x.relu())),
        ("exp", 2, Box::new(|| x.exp())),
        ("gelu", 2, Box::new(|| x.gelu())),
        ("sum of all", 1, Box::new(|| x.sum(..))),
        ("sum of rows", 1, Box::new(|| x.sum(1))),
        ("sum of columns", 1, Box::new(|| x.sum(0))),
        ("softmax", 2, Box::new(|| x.softmax(1))),
        ("layer norm", 2, Box::new(|| x.normalize(1, 1e-5))),
        ("transposed copy", 2, Box::new(|| x.t()?.contiguous())),
    ];
    for (name, passes, work) in works {
        if !record.has_time_for(&format!("{name} {dtype}")) {
            continue;
        }
        let time = seconds(subject, || work().map(drop))?;
        let per_element = passes * dtype.size_bytes();
        let rate = (x.len() * per_element) as f64 / time;
        let [torch, ratio] = record.beside_torch(&format!("{name} {dtype}"), time);
        let numbers = [time * 1e6, rate / 1e9, rate / copy].map(number);
        record.row(
            [vec![name.into(), dtype.name().into(), per_element.into()], numbers.to_vec(), vec![torch, ratio]].concat(),
        );
    }
    Ok(())
}

/// One step of Adam over a large parameter: parameter and two states are read and written, the gradient is read.
fn update(subject: &Subject, record: &mut Record, copy: f64) -> Result<()> {
    if !record.has_time_for("adam") {
        return Ok(());
    }
    let n = subject.size(8192, 32);
    let mut model = chain![nn::Linear::new(n, n, &subject.device)?];
    let mut optimizer = nn::optim::Adam::new(1e-3).setup(&model)?;
    let x = Tensor::randn([1, n], &subject.device)?;
    let (_, gradients) = with_gradient(&model, |m| m.forward(&x)?.sum(..))?;
    let time = seconds(subject, || optimizer.update(&mut model, &gradients))?;
    let rate = (7 * 4 * n * (n + 1)) as f64 / time;
    let [torch, ratio] = record.beside_torch("adam f32", time);
    let numbers = [time * 1e6, rate / 1e9, rate / copy].map(number);
    record.row([vec!["adam".into(), "f32".into(), 28.into()], numbers.to_vec(), vec![torch, ratio]].concat());
    Ok(())
}

/// Attention is bound by products: its rate is in operations.
fn attention(subject: &Subject, record: &mut Record) -> Result<()> {
    record.table(
        "Attention, causal: 8 batches, 16 heads, 2048 places, 64 wide",
        &["dtype", "pass", "µs", "TFLOP/s", "GB/s of inputs and result", "PyTorch (µs)", "ratio of times"],
    );
    let (n, heads, length, width) = subject.size((8, 16, 2048, 64), (1, 1, 8, 8));
    for dtype in [DType::BF16, DType::F32] {
        let input = || Tensor::randn([n, heads, length, width], &subject.device)?.cast(dtype);
        let (query, key, value) = (input()?, input()?, input()?);
        let options = AttentionOptions { causal: true, ..Default::default() };
        type Work<'a> = Box<dyn FnMut() -> Result<()> + 'a>;
        let works: [(&str, f64, f64, Work<'_>); 2] = [
            ("forward", 2.0, 4.0, Box::new(|| query.attention(&key, &value, &options).map(drop))),
            // Forward, then gradients of all three: two and a half times the products of the forward pass.
            (
                "forward and backward",
                7.0,
                8.0,
                Box::new(|| {
                    let attend = |x: [&Tensor; 3]| x[0].attention(x[1], x[2], &options)?.sum(..);
                    nn::gradient_n(attend, [&query, &key, &value]).map(drop)
                }),
            ),
        ];
        for (pass, products, tensors, mut work) in works {
            if !record.has_time_for(&format!("attention {dtype} {pass}")) {
                continue;
            }
            let time = seconds(subject, &mut work)?;
            // A product of T × T by the width, of which the causal half counts.
            let operations = products * (n * heads * length * length * width) as f64;
            let bytes = tensors * (query.len() * dtype.size_bytes()) as f64;
            let [torch, ratio] = record.beside_torch(&format!("attention {dtype} {pass}"), time);
            let numbers = [time * 1e6, operations / time / 1e12, bytes / time / 1e9].map(number);
            record.row([vec![dtype.name().into(), pass.into()], numbers.to_vec(), vec![torch, ratio]].concat());
        }
    }
    Ok(())
}
