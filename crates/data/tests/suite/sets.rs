//! Adaptors and samplers, on lists of numbers.

use std::collections::BTreeSet;

use data::{Dataset, Rng, Sampler, Subset, Weighted};

use crate::{all, text};

fn list(n: usize) -> Vec<usize> {
    (0..n).collect()
}

#[test]
fn adaptors_give_what_they_say() {
    assert_eq!(all(&data::map(list(4), |x| Ok(x * 10))), [0, 10, 20, 30]);
    assert_eq!(all(&data::concat(vec![list(2), list(0), list(3)])), [0, 1, 0, 1, 2]);
    assert_eq!(all(&data::zip(list(2), vec!["a", "b"]).unwrap()), [(0, "a"), (1, "b")]);
    assert_eq!(all(&data::subset(list(9), [8, 0, 8]).unwrap()), [8, 0, 8]);
    // Sets behind pointers are sets too.
    let boxed: Box<dyn Dataset<Item = usize>> = Box::new(data::shuffle(std::sync::Arc::new(list(5)), 1));
    assert_eq!(all(&boxed).into_iter().collect::<BTreeSet<_>>(), (0..5).collect());
}

#[test]
fn bad_arguments_are_named() {
    let labels = [0, 1];
    for (got, want) in [
        (text(data::zip(list(2), list(3))), "zip: sets must have the same length: a 2, b 3"),
        (text(data::subset(list(3), [0, 3])), "subset: index is out of range: index 3, observations 3"),
        (text(data::split(list(3), 1.2, 0)), "split: ratio must lie between 0 and 1: ratio 1.2"),
        (text(data::split(list(3), f64::NAN, 0)), "split: ratio must lie between 0 and 1: ratio NaN"),
        (
            text(data::split_stratified(list(3), &labels, 0.5, 0)),
            "split_stratified: there must be one label per observation: labels 2, observations 3",
        ),
        (
            text(data::oversample(list(3), &labels, 0)),
            "oversample: there must be one label per observation: labels 2, observations 3",
        ),
        (
            text(data::k_folds(list(3), 4, 0)),
            "k_folds: k must lie between 2 and the number of observations: k 4, observations 3",
        ),
        (
            text(data::k_folds(list(3), 1, 0)),
            "k_folds: k must lie between 2 and the number of observations: k 1, observations 3",
        ),
        (text(Dataset::get(&list(3), 3)), "list: index is out of range: index 3, observations 3"),
        (text(data::concat(vec![list(3)]).get(3)), "concat: index is out of range: index 3, observations 3"),
        (text(Weighted::new(&[1.0, -1.0], 1, 0)), "weighted: weights must be finite and not negative: weight 1 -1"),
        (text(Weighted::new(&[0.0], 1, 0)), "weighted: weights must have a finite sum above 0: sum 0"),
    ] {
        assert_eq!(got, want);
    }
}

/// Together the parts hold 0..n, each once.
fn check_partition(parts: &[&Subset<Vec<usize>>], n: usize) {
    let mut seen: Vec<usize> = parts.iter().flat_map(|part| all(*part)).collect();
    seen.sort_unstable();
    assert_eq!(seen, list(n));
}

#[test]
fn a_split_is_a_partition_that_depends_on_the_seed_alone() {
    for (n, ratio, first) in [(10, 0.8, 8), (10, 0.0, 0), (10, 1.0, 10), (3, 0.5, 2), (0, 0.5, 0), (1797, 0.8, 1438)] {
        let (a, b) = data::split(list(n), ratio, 7).unwrap();
        assert_eq!(a.len(), first);
        check_partition(&[&a, &b], n);
        let (again, _) = data::split(list(n), ratio, 7).unwrap();
        assert_eq!(a.indices(), again.indices());
    }
    let first = |seed| data::split(list(100), 0.5, seed).unwrap().0.indices().to_vec();
    assert_ne!(first(1), first(2));
    // The order of a seed is part of the contract: results are to be reproducible on any machine, in any version.
    assert_eq!(data::shuffle(list(8), 42).indices(), SHUFFLE_OF_SEED_42);
}

const SHUFFLE_OF_SEED_42: [usize; 8] = [5, 6, 4, 2, 1, 0, 7, 3];

#[test]
fn a_stratified_split_keeps_the_shares_of_the_classes() {
    // 60 of class "a", 30 of "b", 10 of "c".
    let labels: Vec<&str> = (0..100)
        .map(|i| {
            if i % 10 < 6 {
                "a"
            } else if i % 10 < 9 {
                "b"
            } else {
                "c"
            }
        })
        .collect();
    let (train, test) = data::split_stratified(list(100), &labels, 0.8, 3).unwrap();
    check_partition(&[&train, &test], 100);
    let count = |part: &Subset<Vec<usize>>, class| part.indices().iter().filter(|&&i| labels[i] == class).count();
    assert_eq!(["a", "b", "c"].map(|class| count(&train, class)), [48, 24, 8]);
    assert_eq!(["a", "b", "c"].map(|class| count(&test, class)), [12, 6, 2]);
    assert!(train.indices().windows(2).any(|w| w[0] > w[1]), "the parts are shuffled");
}

#[test]
fn each_observation_validates_in_one_fold() {
    let folds = data::k_folds(list(11), 3, 0).unwrap();
    let validation: Vec<_> = folds.iter().map(|(_, validation)| validation).collect();
    check_partition(&validation, 11);
    let mut sizes: Vec<_> = validation.iter().map(|part| part.len()).collect();
    sizes.sort_unstable();
    assert_eq!(sizes, [3, 4, 4]);
    for (train, validation) in &folds {
        check_partition(&[train, validation], 11);
    }
}

#[test]
fn resampling_balances_the_classes() {
    let labels: Vec<i64> = [vec![0; 7], vec![1; 3], vec![2; 1]].concat();
    let counts = |set: &Subset<Vec<usize>>| {
        let mut counts = [0; 11];
        set.indices().iter().for_each(|&i| counts[i] += 1);
        counts
    };
    let over = data::oversample(list(11), &labels, 5).unwrap();
    let times = counts(&over);
    assert_eq!([&times[..7], &times[7..10], &times[10..]].map(|class| class.iter().sum::<usize>()), [7, 7, 7]);
    // Repeats are spread evenly: 7 over 3 observations is 2 or 3 each.
    assert!(times[7..10].iter().all(|&n| n == 2 || n == 3), "{times:?}");

    let under = data::undersample(list(11), &labels, 5).unwrap();
    let times = counts(&under);
    assert_eq!([&times[..7], &times[7..10], &times[10..]].map(|class| class.iter().sum::<usize>()), [1, 1, 1]);
}

#[test]
fn random_numbers_are_even() {
    let mut rng = Rng::new(1, 0);
    let mut counts = [0usize; 6];
    for _ in 0..60_000 {
        counts[rng.below(6)] += 1;
    }
    // The deviation of each count is 91.
    assert!(counts.iter().all(|&n| n.abs_diff(10_000) < 500), "{counts:?}");
    assert!((0..1000).map(|_| rng.unit()).all(|x| (0.0..1.0).contains(&x)));

    let weighted = Weighted::new(&[0.0, 1.0, 3.0, 0.0], 40_000, 2).unwrap();
    let draws = weighted.indices(4, 0);
    assert_eq!(draws.len(), weighted.len(4));
    let share = draws.iter().filter(|&&i| i == 2).count();
    assert!(share.abs_diff(30_000) < 500, "{share}");
    assert!(draws.iter().all(|&i| i == 1 || i == 2), "what weighs nothing is never drawn");
}
