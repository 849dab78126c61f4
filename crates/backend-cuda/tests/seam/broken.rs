//! Ops of a user's own whose kernels are wrong.

use std::sync::Arc;

use tensor_core::op::{CustomKernel, PtxKernel, PtxLaunch};
use tensor_core::{CustomOp, Error, Kind, Meta, Metas, Result, Tensor, custom};

/// Writes a word far after the end of its output.
pub(crate) const OUT_OF_BOUNDS: &str = ".version 7.8
.target sm_75
.address_size 64
.visible .entry broken(.param .u64 to, .param .u64 from)
{
    .reg .b64 %to;
    ld.param.u64 %to, [to];
    st.global.u32 [%to+65536], 1;
    ret;
}
";

/// Uses a register that it does not declare.
pub(crate) const UNDECLARED: &str = ".version 7.8
.target sm_75
.address_size 64
.visible .entry broken(.param .u64 to, .param .u64 from)
{
    ld.param.u64 %to, [to];
    ret;
}
";

/// Right but for a comment.
pub(crate) const NOT_ASCII: &str = "// 2 × 3
.version 7.8
.target sm_75
.address_size 64
.visible .entry broken(.param .u64 to, .param .u64 from)
{
    ret;
}
";

#[derive(Debug)]
struct Broken(&'static str);

impl CustomOp for Broken {
    fn name(&self) -> &str {
        "broken"
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Metas> {
        Ok(inputs.iter().cloned().collect())
    }

    fn kernel(&self, _: Kind) -> Option<CustomKernel> {
        let launch = PtxLaunch { entry: "broken", grid: [1; 3], block: [1; 3], shared_bytes: 0, numbers: Vec::new() };
        Some(CustomKernel::Ptx(PtxKernel { text: self.0, launch: Arc::new(move |_, _| Ok(launch.clone())) }))
    }

    fn derivative(&self, _: &[&Tensor], _: &[Tensor], _: &[Tensor]) -> Result<Vec<Option<Tensor>>> {
        Err(Error::other("broken", "has no derivative"))
    }
}

/// The op with that text as its kernel.
pub(crate) fn broken(text: &'static str, x: &Tensor) -> Result<Tensor> {
    Ok(custom(Arc::new(Broken(text)), &[x])?.remove(0))
}
