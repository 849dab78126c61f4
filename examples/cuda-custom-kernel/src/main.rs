//! An op of one's own with a kernel in PTX, and a derivative with which it can be trained through.
//!
//! The op smooths a line of numbers; the kernel is in `smooth.ptx`. The program checks the op and its derivative against
//! the same written with tensor ops, then undoes a smoothing by gradient descent. It runs on a GPU
//! (`cargo run -p cuda-custom-kernel --features cuda`), or where there is none on the emulator (`--features emulator`),
//! which checks every access of the kernel. No CUDA toolkit is needed to build it.
#![forbid(unsafe_code)]

use std::io::{Write, stderr};
use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;
use consort::op::{CustomKernel, Meta, Metas, PtxKernel, PtxLaunch};
use consort::prelude::*;
use consort::{CustomOp, Kind, device, nn};

/// Run a kernel of one's own, written in PTX, as an op with its derivative
#[derive(Parser)]
#[command(version)]
struct Args {
    /// Where to run: cuda:0 or cuda-emulated:0 [default: cuda:0 where there is a GPU, else cuda-emulated:0]
    #[arg(long)]
    device: Option<String>,

    /// Steps of the descent
    #[arg(long, default_value = "20")]
    steps: usize,
}

/// Threads of a block, as `smooth.ptx` counts them.
const THREADS: usize = 128;

/// y\[i\] = (x\[i-1\] + 2 x\[i\] + x\[i+1\]) / 4 of a line of f32, with zeros beyond both ends.
#[derive(Debug)]
struct Smooth;

impl CustomOp for Smooth {
    fn name(&self) -> &str {
        "smooth"
    }

    // What is let through here is all that the kernel will see.
    fn infer(&self, inputs: &[Meta]) -> Result<Metas> {
        match inputs {
            [x] if x.shape.rank() == 1 && x.dtype == DType::F32 => Ok([x.clone()].into_iter().collect()),
            _ => Err(Error::shape("smooth", format!("takes one line of f32: inputs {inputs:?}"))),
        }
    }

    // One kernel per kind of device. The driver compiles the text when it is first used.
    fn kernel(&self, kind: Kind) -> Option<CustomKernel> {
        let launch = |inputs: &[Meta], _: &[Meta]| {
            let n = inputs[0].shape.len();
            Ok(PtxLaunch {
                entry: "smooth",
                grid: [n.div_ceil(THREADS) as u32, 1, 1],
                block: [THREADS as u32, 1, 1],
                shared_bytes: 0,
                // After the addresses of outputs and inputs.
                numbers: vec![n as u64],
            })
        };
        let kernel = PtxKernel { text: include_str!("smooth.ptx"), launch: Arc::new(launch) };
        (kind == Kind::Cuda).then_some(CustomKernel::Ptx(kernel))
    }

    // A number goes into its neighbours as they go into it, so the op is its own adjoint.
    fn derivative(&self, _: &[&Tensor], _: &[Tensor], grads: &[Tensor]) -> Result<Vec<Option<Tensor>>> {
        Ok(vec![Some(smooth(&grads[0])?)])
    }
}

/// The op.
fn smooth(x: &Tensor) -> Result<Tensor> {
    Ok(consort::custom(Arc::new(Smooth), &[x])?.remove(0))
}

/// The same, written with tensor ops.
fn smooth_of_ops(x: &Tensor) -> Result<Tensor> {
    let n = x.len();
    let wide = x.pad(&[(1, 1)], 0.0)?;
    wide.narrow(0, 0, n)?.add(&wide.narrow(0, 2, n)?)?.add(&x.mul(2.0)?)?.mul(0.25)
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(stderr(), "error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> Result<()> {
    let found = if device::functional(Kind::Cuda) { "cuda:0" } else { "cuda-emulated:0" };
    let name = args.device.as_deref().unwrap_or(found);
    let device = device::parse(name)?;
    println!("on {device}: {}", device.info().name);
    consort::seed(0);

    // More numbers than fit into one block, and not a multiple of it.
    let x = Tensor::randn([1000], &device)?;
    agree("kernel and ops", &smooth(&x)?, &smooth_of_ops(&x)?)?;
    let loss = |y: Tensor| y.square()?.mul(&y)?.sum(..);
    let by_kernel = nn::gradient(|x| loss(smooth(x)?), &x)?;
    let by_ops = nn::gradient(|x| loss(smooth_of_ops(x)?), &x)?;
    agree("their gradients", &by_kernel, &by_ops)?;
    // A view is copied row by row before the kernel reads it.
    let reversed = x.slice(0, .., -1)?;
    agree("those of a view", &smooth(&reversed)?, &smooth_of_ops(&reversed)?)?;

    println!("undoing a smoothing:");
    let seen = smooth(&x)?;
    let mut guess = Tensor::zeros([1000], &device)?;
    for step in 0..args.steps {
        let (loss, gradient) = nn::value_and_gradient(|x| smooth(x)?.sub(&seen)?.square()?.sum(..), &guess)?;
        guess = guess.sub(&gradient.mul(0.5)?)?;
        if step % 5 == 0 || step + 1 == args.steps {
            println!("  step {step:3}: loss {:9.4}", loss.item::<f32>()?);
        }
    }
    Ok(())
}

/// Says that two tensors agree to a few roundings, or fails.
fn agree(what: &str, a: &Tensor, b: &Tensor) -> Result<()> {
    if !a.allclose(b, 1e-5, 1e-6)? {
        return Err(Error::value("agree", format!("{what} differ: {a} and {b}")));
    }
    println!("{what} agree");
    Ok(())
}
