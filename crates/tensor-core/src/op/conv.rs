//! N-dimensional convolution (cross-correlation, as in every framework) and its two adjoints.

use super::matmul::{keeps, split_epilogue, with_epilogue};
use super::{Contract, Keeps, Meta, Metas, Op, Record, Tensors, exactly, float, one, same_dtype};
use crate::{DType, Dims, Error, Expr, Result, Shape, Tensor};

/// How a window moves over the spatial axes; one entry per axis.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Window {
    /// From one window to the next; ≥ 1.
    pub stride: Dims,
    /// Zeros before the first element.
    pub before: Dims,
    /// Zeros after the last element.
    pub after: Dims,
    /// From one tap to the next; ≥ 1.
    pub dilation: Dims,
}

impl Window {
    /// The number of spatial axes.
    pub fn rank(&self) -> usize {
        self.stride.len()
    }

    /// The same windows of an input of these sizes, with strides no longer than it: a longer one leaves one window, too.
    pub fn within(mut self, input: &[usize]) -> Self {
        for (i, &n) in input.iter().enumerate().take(self.rank()) {
            let padded = n.saturating_add(self.before[i]).saturating_add(self.after[i]);
            self.stride[i] = self.stride[i].min(padded.max(1));
        }
        self
    }

    /// The output's spatial sizes for an input and a kernel of these sizes.
    pub fn output(&self, op: &'static str, input: &[usize], kernel: &[usize]) -> Result<Dims> {
        if input.len() != self.rank() || kernel.len() != self.rank() {
            return Err(Error::shape(
                op,
                format!("needs {} spatial axes: input {input:?}, kernel {kernel:?}", self.rank()),
            ));
        }
        let zero = |v: &Dims| v.contains(&0);
        if zero(&self.stride) || zero(&self.dilation) || kernel.contains(&0) {
            return Err(Error::value(
                op,
                format!(
                    "stride, dilation and kernel must be 1 or more: stride {:?}, dilation {:?}, kernel {kernel:?}",
                    self.stride, self.dilation
                ),
            ));
        }
        (0..self.rank())
            .map(|i| {
                let (before, after, dilation) = (self.before[i], self.after[i], self.dilation[i]);
                let span = (kernel[i] - 1).checked_mul(dilation).and_then(|n| n.checked_add(1));
                let padded = input[i].checked_add(before).and_then(|n| n.checked_add(after));
                let (Some(span), Some(padded)) = (span, padded) else {
                    return Err(Error::shape(
                        op,
                        format!(
                            "the sizes overflow: input {}, kernel {}, padding ({before}, {after}), dilation {dilation} on spatial axis {i}",
                            input[i], kernel[i]
                        ),
                    ));
                };
                if padded < span {
                    return Err(Error::shape(
                        op,
                        format!("the kernel is larger than the padded input: kernel spans {span}, input {padded} on spatial axis {i}"),
                    ));
                }
                Ok((padded - span) / self.stride[i] + 1)
            })
            .collect()
    }
}

/// y = epilogue(x ⋆ w, extra…). Input [N, C, spatial…], weight [C_out, C/groups, kernel…] → [N, C_out, spatial′…].
#[derive(Clone, Debug)]
pub struct Conv {
    /// The geometry.
    pub window: Window,
    /// Input and output channels are split into this many independent groups.
    pub groups: usize,
    /// Over the result (input 0) and the further inputs; the identity by default.
    pub epilogue: Expr,
}

impl Conv {
    fn op_name(&self) -> &'static str {
        ["conv", "conv1d", "conv2d", "conv3d"].get(self.window.rank()).copied().unwrap_or("conv")
    }

    /// Checks input and weight against each other; gives the output's shape.
    pub(super) fn shape(&self, op: &'static str, x: &Shape, w: &Shape) -> Result<Shape> {
        let rank = self.window.rank() + 2;
        if x.rank() != rank || w.rank() != rank {
            return Err(Error::shape(
                op,
                format!(
                    "input must be [N, C, spatial..] and weight [C_out, C / groups, kernel..], {rank} axes each: input {x}, weight {w}"
                ),
            ));
        }
        if self.groups == 0 || w[1].checked_mul(self.groups) != Some(x[1]) || !w[0].is_multiple_of(self.groups) {
            return Err(Error::shape(
                op,
                format!(
                    "channels do not fit: input {x} has C = {}, weight {w} takes {} × groups {}, and C_out must divide by groups",
                    x[1], w[1], self.groups
                ),
            ));
        }
        let spatial = self.window.output(op, &x[2..], &w[2..])?;
        Ok([x[0], w[0]].into_iter().chain(spatial).collect())
    }
}

impl Record for Conv {
    fn name(&self) -> &str {
        self.op_name()
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Metas> {
        let op = self.op_name();
        let [x, w, extra @ ..] = inputs else {
            return Err(Error::shape(op, format!("takes at least 2 inputs: got {}", inputs.len())));
        };
        same_dtype(op, ("input", x.dtype), ("weight", w.dtype))?;
        float(op, "input", x.dtype)?;
        let shape = self.shape(op, &x.shape, &w.shape)?;
        with_epilogue(op, &self.epilogue, Meta::new(shape, x.dtype), extra)
    }

    fn contract(&self) -> Contract {
        Contract::padded_sums(&DType::FLOATS)
    }

    fn keeps(&self) -> Keeps {
        keeps(&self.epilogue)
    }

    fn decompose(&self, inputs: &[&Tensor]) -> Option<Result<Tensors>> {
        (!self.epilogue.is_identity()).then(|| {
            let plain = Self { epilogue: Expr::identity(), ..self.clone() };
            split_epilogue(Op::Conv(plain), self.op_name(), &self.epilogue, inputs)
        })
    }
}

/// Inputs: grad [N, C_out, spatial′…], weight [C_out, C/groups, kernel…]; gives [N, C, spatial…], the adjoint of
/// [`Conv`] by its input: what a transposed convolution computes.
#[derive(Clone, Debug)]
pub struct ConvInputGrad {
    /// The convolution that this is the adjoint of (its epilogue is ignored).
    pub conv: Conv,
    /// The spatial sizes of the result, which the stride leaves open.
    pub spatial: Dims,
}

impl Record for ConvInputGrad {
    fn name(&self) -> &str {
        "conv_input_grad"
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Metas> {
        let [g, w] = exactly(inputs, "conv_input_grad")?;
        same_dtype("conv_input_grad", ("grad", g.dtype), ("weight", w.dtype))?;
        float("conv_input_grad", "grad", g.dtype)?;
        let (Some(&n), Some(&c)) = (g.shape.first(), w.shape.get(1)) else {
            return Err(Error::shape(
                "conv_input_grad",
                format!("shapes do not fit: grad {}, weight {}", g.shape, w.shape),
            ));
        };
        let x: Shape =
            [n, c.saturating_mul(self.conv.groups)].into_iter().chain(self.spatial.iter().copied()).collect();
        let expected = self.conv.shape("conv_input_grad", &x, &w.shape)?;
        if expected != g.shape {
            return Err(Error::shape("conv_input_grad", format!("grad must be {expected}: grad {}", g.shape)));
        }
        one(x, g.dtype)
    }

    fn contract(&self) -> Contract {
        Contract::padded_sums(&DType::FLOATS)
    }

    fn keeps(&self) -> Keeps {
        Keeps { inputs: 0b11, outputs: 0 }
    }
}

/// Inputs: input [N, C, spatial…], grad [N, C_out, spatial′…]; gives [C_out, C/groups, kernel…], the adjoint of
/// [`Conv`] by its weight.
#[derive(Clone, Debug)]
pub struct ConvWeightGrad {
    /// The convolution that this is the adjoint of (its epilogue is ignored).
    pub conv: Conv,
    /// The kernel's sizes, which the stride leaves open.
    pub kernel: Dims,
}

impl Record for ConvWeightGrad {
    fn name(&self) -> &str {
        "conv_weight_grad"
    }

    fn infer(&self, inputs: &[Meta]) -> Result<Metas> {
        let [x, g] = exactly(inputs, "conv_weight_grad")?;
        same_dtype("conv_weight_grad", ("input", x.dtype), ("grad", g.dtype))?;
        float("conv_weight_grad", "input", x.dtype)?;
        let (Some(&c), Some(&c_out)) = (x.shape.get(1), g.shape.get(1)) else {
            return Err(Error::shape(
                "conv_weight_grad",
                format!("shapes do not fit: input {}, grad {}", x.shape, g.shape),
            ));
        };
        let c_in = c / self.conv.groups.max(1);
        let w: Shape = [c_out, c_in].into_iter().chain(self.kernel.iter().copied()).collect();
        let expected = self.conv.shape("conv_weight_grad", &x.shape, &w)?;
        if expected != g.shape {
            return Err(Error::shape("conv_weight_grad", format!("grad must be {expected}: grad {}", g.shape)));
        }
        one(w, x.dtype)
    }

    fn contract(&self) -> Contract {
        Contract::padded_sums(&DType::FLOATS)
    }

    fn keeps(&self) -> Keeps {
        Keeps { inputs: 0b11, outputs: 0 }
    }
}
