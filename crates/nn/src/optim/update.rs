//! A rule's formulas as the data that a backend runs.

use smallvec::SmallVec;
use tensor_core::{DType, Expr, Number, UpdateRule, expr};

use super::clip::Clip;
use super::{Numbers, Rule};

/// The formulas of a rule for one dtype and one kind of clipping; the numbers change from step to step.
#[derive(Debug)]
pub(super) struct Formulas {
    dtype: DType,
    clip: Option<Clip>,
    outputs: SmallVec<[Expr; 4]>,
}

impl Formulas {
    /// Writes them. Parameters of 16 bits are widened, and their states are f32: a squared gradient would vanish.
    fn new(rule: &dyn Rule, dtype: DType, clip: Option<Clip>, numbers: &Numbers) -> Self {
        let n_states = rule.states().len();
        let compute = dtype.compute();
        let widen = |x: tensor_core::Sym| if dtype == compute { x } else { x.cast(compute) };
        let output = |k: usize| {
            expr::build_with(2 + n_states, numbers, |inputs, numbers| {
                let (param, mut grad, states) = (widen(inputs[0]), widen(inputs[1]), &inputs[2..]);
                let mut numbers = numbers;
                if let (Some(clip), Some((limit, rest))) = (clip, numbers.split_last()) {
                    grad = clip.formula(grad, *limit);
                    numbers = rest;
                }
                let outputs = rule.formula(numbers, param, grad, states);
                assert_eq!(outputs.len(), 1 + n_states, "invariant: {} gives a parameter and its states", rule.name());
                if k == 0 && dtype != compute { outputs[0].cast(dtype) } else { outputs[k] }
            })
        };
        Self { dtype, clip, outputs: (0..1 + n_states).map(output).collect() }
    }

    fn serves(&self, dtype: DType, clip: Option<Clip>) -> bool {
        let same_clip = match (self.clip, clip) {
            (Some(a), Some(b)) => a.is_like(b),
            (a, b) => a.is_none() && b.is_none(),
        };
        self.dtype == dtype && same_clip
    }
}

/// The update of one step, its formulas taken from `cache` where they stand there.
pub(super) fn update_rule(
    rule: &dyn Rule,
    cache: &mut Vec<Formulas>,
    dtype: DType,
    step: u64,
    clip: Option<(Clip, f64)>,
) -> UpdateRule {
    let mut numbers = rule.numbers(step);
    numbers.extend(clip.map(|(_, number)| number));
    let clip = clip.map(|(clip, _)| clip);
    let at = cache.iter().position(|formulas| formulas.serves(dtype, clip)).unwrap_or_else(|| {
        cache.push(Formulas::new(rule, dtype, clip, &numbers));
        cache.len() - 1
    });
    // Numbers that a formula wrote itself stand behind these.
    let outputs = cache[at].outputs.iter().map(|output| {
        let mut output = output.clone();
        output.args.iter_mut().zip(&numbers).for_each(|(arg, &number)| *arg = Number::Float(number));
        output
    });
    UpdateRule { outputs: outputs.collect() }
}
