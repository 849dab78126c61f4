//! What can be judged without a device, once: derivatives against slopes found by other means, and what the tape keeps.
//!
//! The suite holds devices to the reference, gradients included; here the derivatives that both share are held to dual
//! numbers and to differences of values.

use tensor_core::DType;

use super::Subject;
use super::case::{Case, Trial};
use super::input::{Layout, mixed};
use super::report::Failure;

mod formulas;
mod kept;
mod random;
mod rules;

/// What is wrong with derivatives, what is kept for them, and random words.
///
/// `seed` picks the calls and the points.
pub fn run(seed: u64) -> Vec<Failure> {
    let found = [formulas::run(seed), rules::run(seed), kept::run(seed), random::run()];
    found.into_iter().flatten().collect()
}

/// A failure that no device is to blame for.
fn failure(op: &str, check: &str, arguments: String, message: String) -> Failure {
    let (op, check) = (op.to_string(), check.to_string());
    Failure { op, dtype: DType::F64.name().to_string(), check, arguments, message, case: String::new() }
}

/// Calls of a subject in f64 with ordinary numbers, those that core accepts among `n`.
fn trials(subject: &Subject, seed: u64, n: u64) -> impl Iterator<Item = (Case, Trial)> {
    (0..n).filter_map(move |i| {
        let name = subject.name.bytes().fold(seed, |h, b| mixed(h, b.into()));
        let mut choices: Vec<u16> = (0..40).map(|k| mixed(name ^ (i << 32), k) as u16).collect();
        // Numbers of the domain, without special values.
        choices[0] = 1;
        let case = Case { subject: subject.name.to_string(), dtype: DType::F64, layout: Layout::Contiguous, choices };
        Some((case.clone(), Trial::new(subject, &case).ok()?))
    })
}

#[cfg(test)]
mod tests {
    fn assert_nothing(found: Vec<super::Failure>) {
        let texts: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert!(found.is_empty(), "{}", texts.join("\n"));
    }

    #[test]
    fn formulas_have_the_slopes_of_dual_numbers() {
        assert_nothing(super::formulas::run(0));
    }

    #[test]
    fn rules_have_the_slopes_of_differences() {
        assert_nothing(super::rules::run(0));
    }

    #[test]
    fn the_tape_keeps_what_the_contract_says() {
        assert_nothing(super::kept::run(0));
    }

    #[test]
    fn random_words_are_those_of_the_paper() {
        assert_nothing(super::random::run());
    }
}
