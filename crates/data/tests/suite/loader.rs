//! The loader: order, sizes, errors, threads, resuming.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use data::{BatchSampler, DataLoader, Dataset, Position};
use tensor_core::{Error, Result};

use crate::text;

fn batches(loader: &DataLoader<Vec<usize>, data::List>) -> Vec<Vec<usize>> {
    loader.iter().collect::<Result<_>>().expect("batches")
}

fn loader(n: usize) -> DataLoader<Vec<usize>, data::List> {
    DataLoader::new((0..n).collect::<Vec<_>>()).list()
}

#[test]
fn batches_have_the_sizes_asked_for() {
    for (n, size, drop, want) in [
        (10, 4, false, vec![4, 4, 2]),
        (10, 4, true, vec![4, 4]),
        (8, 4, false, vec![4, 4]),
        (8, 4, true, vec![4, 4]),
        (3, 4, false, vec![3]),
        (3, 4, true, vec![]),
        (0, 4, false, vec![]),
        (2, 1, false, vec![1, 1]),
    ] {
        let loader = loader(n).batch_size(size).drop_last(drop);
        let sizes: Vec<_> = batches(&loader).iter().map(Vec::len).collect();
        assert_eq!(sizes, want, "{n} observations by {size}");
        assert_eq!(loader.len(), want.len());
        assert_eq!(loader.is_empty(), want.is_empty());
    }
}

#[test]
fn order_depends_on_seed_and_pass_alone() {
    let pass = |workers, prefetch| {
        let loader = loader(50).batch_size(7).shuffle(9).workers(workers).prefetch(prefetch);
        [batches(&loader), batches(&loader)]
    };
    let [first, second] = pass(0, 0);
    assert_ne!(first, second, "a new order each pass");
    let mut seen = first.concat();
    seen.sort_unstable();
    assert_eq!(seen, (0..50).collect::<Vec<_>>());
    for (workers, prefetch) in [(0, 1), (0, 5), (1, 0), (2, 2), (3, 8), (16, 1), (16, 100)] {
        assert_eq!(pass(workers, prefetch), [first.clone(), second.clone()], "{workers} workers, prefetch {prefetch}");
    }
    assert_ne!(batches(&loader(50).batch_size(7).shuffle(10)), first);
}

#[test]
fn workers_keep_the_order_when_some_are_slow() {
    // Worker 0 waits for the other ones to have done all their work: only the order of handing out is left to chance.
    let done = Arc::new(AtomicUsize::new(0));
    let counter = done.clone();
    let set = data::map((0..12).collect::<Vec<_>>(), move |i: usize| {
        if i == 0 {
            while counter.load(SeqCst) < 6 {
                std::thread::yield_now();
            }
        }
        counter.fetch_add(1, SeqCst);
        Ok(i)
    });
    let loader = DataLoader::new(set).single().workers(3).prefetch(12);
    assert_eq!(loader.iter().collect::<Result<Vec<_>>>().unwrap(), (0..12).collect::<Vec<_>>());
}

#[test]
fn prefetching_is_bounded() {
    let made = Arc::new(AtomicUsize::new(0));
    for (workers, depth) in [(1, 1), (1, 3), (2, 2), (2, 6)] {
        let counter = made.clone();
        let set = data::map((0..100).collect::<Vec<usize>>(), move |i| {
            counter.fetch_add(1, SeqCst);
            Ok(i)
        });
        made.store(0, SeqCst);
        let loader = DataLoader::new(set).single().workers(workers).prefetch(depth);
        let mut pass = loader.iter();
        for taken in 1..=10 {
            pass.next().unwrap().unwrap();
            let ahead = made.load(SeqCst) - taken;
            assert!(ahead <= depth.next_multiple_of(workers), "{ahead} ahead with {workers} workers and depth {depth}");
        }
    }
}

#[test]
fn bad_settings_are_errors_of_the_pass() {
    for (got, want) in [
        (loader(5).batch_size(0), "data loader: batch_size must be at least 1: batch_size 0"),
        (loader(5).shard(2, 2), "data loader: rank must be below world: rank 2, world 2"),
        (loader(5).shard(0, 0), "data loader: rank must be below world: rank 0, world 0"),
    ] {
        assert_eq!(got.len(), 0);
        let mut pass = got.iter();
        assert_eq!(text(pass.next().unwrap()), want);
        assert!(pass.next().is_none());
    }
}

/// Fails or panics at one observation.
struct Faulty {
    at: usize,
    panics: bool,
}

impl Dataset for Faulty {
    type Item = usize;

    fn len(&self) -> usize {
        40
    }

    fn get(&self, index: usize) -> Result<usize> {
        if index != self.at {
            return Ok(index);
        }
        assert!(!self.panics, "bad luck with {index}");
        Err(Error::format("jpeg", "the image is cut off"))
    }
}

#[test]
fn errors_and_panics_name_their_sample_and_end_the_pass() {
    for workers in [0, 1, 3] {
        for (panics, want) in [
            (false, "batch 4: sample 17: jpeg: the image is cut off"),
            (true, "batch 4: sample 17: panic: bad luck with 17"),
        ] {
            let loader = DataLoader::new(Faulty { at: 17, panics }).list().batch_size(4).workers(workers).prefetch(3);
            let mut pass = loader.iter();
            for batch in 0..4 {
                assert_eq!(pass.next().unwrap().unwrap()[0], 4 * batch);
            }
            assert_eq!(text(pass.next().unwrap()), want);
            assert!(pass.next().is_none(), "nothing comes after an error");
            // The next pass starts anew, up to the same error.
            assert_eq!(loader.iter().filter(Result::is_ok).count(), 4);
        }
    }
}

#[test]
fn errors_of_parts_name_the_sample_in_each_numbering() {
    let part = data::subset(Faulty { at: 17, panics: false }, [3, 17]).unwrap();
    let set = data::map(part, |x| Ok(x + 1));
    let loader = DataLoader::new(set).list().batch_size(2);
    assert_eq!(text(loader.iter().next().unwrap()), "batch 0: sample 1: sample 17: jpeg: the image is cut off");
}

#[test]
fn a_failing_collate_names_its_batch() {
    for workers in [0, 2] {
        let set: Vec<usize> = (0..6).collect();
        let loader = DataLoader::new(set).batch_size(2).workers(workers).collate_with(|items| {
            assert!(items[0] < 2, "too many");
            Ok(items.len())
        });
        let results: Vec<_> = loader.iter().map(text).collect();
        assert_eq!(results, ["no error", "batch 1: panic: too many"]);
    }
}

thread_local! {
    static ALIVE: RefCell<Option<Alive>> = const { RefCell::new(None) };
}

/// Counts the threads that hold one; a thread drops its own as the last thing it does.
struct Alive(Arc<AtomicUsize>);

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.fetch_sub(1, SeqCst);
    }
}

#[test]
fn no_thread_outlives_its_iterator() {
    for (workers, prefetch, fails) in [(1, 1, false), (3, 1, false), (3, 50, false), (4, 4, true), (0, 2, false)] {
        let (alive, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (counter, peak) = (alive.clone(), most.clone());
        let set = data::map((0..40).collect::<Vec<usize>>(), move |i| {
            ALIVE.with_borrow_mut(|mine| {
                mine.get_or_insert_with(|| {
                    peak.fetch_max(counter.fetch_add(1, SeqCst) + 1, SeqCst);
                    Alive(counter.clone())
                });
            });
            if fails && i == 20 { Err(Error::other("test", "fails")) } else { Ok(i) }
        });
        let loader = DataLoader::new(set).single().workers(workers).prefetch(prefetch);

        // To the end: the threads are gone with the last batch, before the iterator is.
        let mut pass = loader.iter();
        while pass.by_ref().next().is_some() {}
        assert_eq!(alive.load(SeqCst), 0, "after a whole pass");
        assert!((1..=workers.max(1)).contains(&most.load(SeqCst)), "{most:?} threads for {workers} workers");
        drop(pass);

        // Dropped early, also before the first batch was asked for.
        for taken in [0, 1, 5] {
            let mut pass = loader.iter();
            assert_eq!(pass.by_ref().take(taken).filter(Result::is_ok).count(), taken);
            drop(pass);
            assert_eq!(alive.load(SeqCst), 0, "dropped after {taken}");
        }
    }
}

#[test]
fn a_pass_resumes_where_it_was_saved() {
    for workers in [0, 2] {
        let make = || loader(23).batch_size(4).shuffle(3).workers(workers);
        let whole = make();
        let passes: Vec<_> = (0..3).map(|_| batches(&whole)).collect();

        let first = make();
        assert_eq!(first.position(), Position { pass: 0, batch: 0 });
        batches(&first);
        assert_eq!(first.position(), Position { pass: 1, batch: 0 });
        let taken: Vec<_> = first.iter().take(2).map(Result::unwrap).collect();
        assert_eq!(taken, passes[1][..2]);
        assert_eq!(first.position(), Position { pass: 1, batch: 2 });
        let saved = serde_json::to_string(&first.position()).unwrap();

        let second = make();
        second.resume(serde_json::from_str(&saved).unwrap());
        assert_eq!(batches(&second), passes[1][2..]);
        assert_eq!(batches(&second), passes[2]);

        // Leaving a pass early does not repeat it.
        assert_eq!(batches(&first), passes[2]);
    }
}

#[test]
fn resuming_past_the_end_is_an_error() {
    let loader = loader(8).batch_size(4);
    loader.resume(Position { pass: 0, batch: 2 });
    assert_eq!(batches(&loader), Vec::<Vec<usize>>::new());
    loader.resume(Position { pass: 5, batch: 3 });
    let error = text(loader.iter().next().unwrap());
    assert!(
        error.starts_with("data loader: the position to resume from is past the end: batch 3, batches 2"),
        "{error}"
    );
}

#[test]
fn shards_are_equal_parts_of_one_order() {
    for (n, world, drop) in [(10, 3, false), (10, 3, true), (9, 3, false), (2, 4, false), (2, 4, true), (0, 2, false)] {
        let all = batches(&loader(n).shuffle(1)).concat();
        let shards: Vec<_> = (0..world)
            .map(|rank| {
                let loader = loader(n).batch_size(2).shuffle(1).drop_last(drop).shard(rank, world);
                let got = batches(&loader);
                assert_eq!(loader.len(), got.len());
                got
            })
            .collect();
        assert!(shards.iter().all(|shard| shard.len() == shards[0].len()), "every rank sees as many batches");
        let mut seen: Vec<_> = shards.concat().concat();
        seen.sort_unstable();
        seen.dedup();
        if drop {
            assert!(seen.iter().all(|i| all.contains(i)));
        } else {
            assert_eq!(seen.len(), n, "nothing is left out");
        }
    }
}

#[test]
fn batch_samplers_choose_whole_batches() {
    struct ByParity;
    impl BatchSampler for ByParity {
        fn batches(&self, n: usize, pass: u64) -> Vec<Vec<usize>> {
            let parity = |p| (0..n).filter(|i| i % 2 == p).collect();
            if pass.is_multiple_of(2) { vec![parity(0), parity(1)] } else { vec![parity(1)] }
        }
    }
    let loader = loader(5).batch_sampler(ByParity).workers(2);
    assert_eq!(loader.len(), 2);
    assert_eq!(batches(&loader), [vec![0, 2, 4], vec![1, 3]]);
    assert_eq!(loader.len(), 1);
    assert_eq!(batches(&loader), [vec![1, 3]]);
}
