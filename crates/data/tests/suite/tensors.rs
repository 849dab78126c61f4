//! What needs tensors: collation, the fast path, devices, transforms, the digits.

use data::{Batch, Csv, DataLoader, Dataset, Digits, Rescale, Standardize, TensorDataset};
use tensor_core::{DType, Device, Result, Tensor};

use crate::text;

fn device() -> Device {
    backend_cpu::device()
}

/// 0, 1, 2, … under a shape, in f32.
fn counted(shape: &[usize]) -> Tensor {
    let n: usize = shape.iter().product();
    Tensor::from_vec((0..n).map(|i| i as f32).collect(), shape, &device()).unwrap()
}

fn labels(n: i64) -> Tensor {
    Tensor::from_vec((0..n).collect::<Vec<i64>>(), [n], &device()).unwrap()
}

fn values(x: &Tensor) -> Vec<f64> {
    x.to_host().unwrap().to_f64()
}

#[test]
fn tensor_sets_count_along_the_first_axis() {
    let set = TensorDataset::new((counted(&[4, 2]), labels(4))).unwrap();
    assert_eq!(set.len(), 4);
    let (x, y) = set.get(2).unwrap();
    assert_eq!((x.dims(), y.dims()), (&[2][..], &[][..]));
    assert_eq!((values(&x), values(&y)), (vec![4.0, 5.0], vec![2.0]));
    assert_eq!(TensorDataset::new(vec![counted(&[3]), counted(&[3, 1])]).unwrap().get(1).unwrap().len(), 2);

    for (got, want) in [
        (
            text(TensorDataset::new((counted(&[4, 2]), labels(3)))),
            "tensor dataset: tensors must have as many observations along axis 0: tensor 0 [4, 2], tensor 1 [3]",
        ),
        (text(TensorDataset::new(counted(&[]))), "tensor dataset: a scalar has no axis of observations: tensor 0 []"),
        (text(TensorDataset::new(Vec::<Tensor>::new())), "tensor dataset: at least one tensor is needed: tensors 0"),
        (text(set.get(4)), "tensor dataset: index is out of range: index 4, observations 4"),
        (text(set.batch(&[0, 9])), "sample 9: tensor dataset: index is out of range: index 9, observations 4"),
    ] {
        assert_eq!(got, want);
    }
}

/// The same set without the fast path.
struct OneByOne<D>(D);

impl<D: Dataset> Dataset for OneByOne<D> {
    type Item = D::Item;

    fn len(&self) -> usize {
        self.0.len()
    }

    fn get(&self, index: usize) -> Result<D::Item> {
        self.0.get(index)
    }
}

#[test]
fn batches_by_index_equal_stacked_observations() {
    let parts = (counted(&[6, 2, 3]).permute([0, 2, 1]).unwrap(), labels(6), counted(&[6]));
    let fast = TensorDataset::new(parts).unwrap();
    let slow = OneByOne(fast.clone());
    for indices in [&[0, 1, 2, 3, 4, 5][..], &[2, 3], &[5], &[5, 0, 0, 3], &[3, 2]] {
        let (a, b) = (fast.batch(indices).unwrap(), slow.batch(indices).unwrap());
        assert_eq!(a.0.dims(), [indices.len(), 3, 2]);
        assert_eq!((values(&a.0), values(&a.1), values(&a.2)), (values(&b.0), values(&b.1), values(&b.2)));
        assert_eq!((a.0.dtype(), a.1.dtype()), (DType::F32, DType::I64));
    }
    // Consecutive observations are a view.
    assert!(fast.batch(&[1, 2]).unwrap().2.layout().offset() == 1);

    // A loader of a part of the set, whatever the way.
    let whole = |workers, slow: bool| -> Vec<Vec<f64>> {
        let (part, _) = data::split(fast.clone(), 0.7, 1).unwrap();
        let loader = DataLoader::new(part.clone()).batch_size(3).shuffle(2).workers(workers).device(&device());
        let other = DataLoader::new(OneByOne(part)).batch_size(3).shuffle(2).workers(workers);
        let batches = if slow { other.iter().collect::<Vec<_>>() } else { loader.iter().collect() };
        batches.into_iter().map(|batch| values(&batch.unwrap().0)).collect()
    };
    assert_eq!(whole(0, false), whole(2, false));
    assert_eq!(whole(0, false), whole(2, true));
}

#[test]
fn observations_of_other_sizes_are_padded_or_refused() {
    let ragged = vec![(counted(&[2]), labels(1)), (counted(&[3]), labels(2))];
    let error = text(DataLoader::new(ragged.clone()).batch_size(2).iter().next().unwrap());
    assert_eq!(error, "batch 0: stack: shapes differ: tensor 0 [2], tensor 1 [3]");
    let (x, y) = DataLoader::new(ragged).batch_size(2).pad(-1.0).iter().next().unwrap().unwrap();
    assert_eq!((x.dims(), values(&x)), (&[2, 3][..], vec![0.0, 1.0, -1.0, 0.0, 1.0, 2.0]));
    assert_eq!((y.dims(), values(&y)), (&[2, 2][..], vec![0.0, -1.0, 0.0, 1.0]));

    let ranks = vec![counted(&[2]), counted(&[2, 1])];
    let error = text(DataLoader::new(ranks).batch_size(2).pad(0.0).iter().next().unwrap());
    assert_eq!(error, "batch 0: pad: observations must have the same rank: first [2], at 1 [2, 1]");
    let numbers = vec![vec![labels(1)], vec![labels(1), labels(1)]];
    let error = text(DataLoader::new(numbers).batch_size(2).iter().next().unwrap());
    assert_eq!(error, "batch 0: stack: observations hold different numbers of tensors: first 1, at 1 2");
}

#[test]
fn structures_of_ones_own_can_be_batches() {
    #[derive(Clone)]
    struct Pair {
        image: Tensor,
        masks: [Tensor; 2],
    }
    impl Batch for Pair {
        fn tensors<'a>(&'a self, list: &mut Vec<&'a Tensor>) {
            self.image.tensors(list);
            self.masks.tensors(list);
        }
        fn rebuild(&self, tensors: &mut std::vec::IntoIter<Tensor>) -> Self {
            Self { image: self.image.rebuild(tensors), masks: self.masks.rebuild(tensors) }
        }
    }
    let pair = Pair { image: counted(&[2]), masks: [labels(1), labels(3)] };
    let loader = DataLoader::new(vec![pair.clone(), pair]).batch_size(2).device(&device());
    let batch = loader.iter().next().unwrap().unwrap();
    assert_eq!(
        (batch.image.dims(), batch.masks[0].dims(), batch.masks[1].dims()),
        (&[2, 2][..], &[2, 1][..], &[2, 3][..])
    );
}

#[test]
fn random_changes_do_not_depend_on_the_workers() {
    let noisy = |workers, start| -> Vec<Vec<f32>> {
        let loader = DataLoader::new(TensorDataset::new(counted(&[10, 2])).unwrap())
            .batch_size(3)
            .shuffle(4)
            .workers(workers)
            .map(|x| x.add(&Tensor::rand(x.shape(), &x.device())?));
        loader.resume(start);
        loader.iter().map(|x| x.unwrap().to_vec().unwrap()).collect()
    };
    let start = data::Position::default();
    let alone = noisy(0, start);
    assert_eq!(alone, noisy(1, start));
    assert_eq!(alone, noisy(3, start));
    assert_ne!(alone, noisy(0, data::Position { pass: 1, batch: 0 }));
    assert_eq!(alone[2..], noisy(2, data::Position { pass: 0, batch: 2 }), "nor on where the pass was resumed");
    // And leave the numbers of the program's own stream alone.
    let draw = |workers| {
        tensor_core::random::with_stream(tensor_core::random::Stream::new(1), || {
            noisy(workers, start);
            Tensor::rand([4], &device()).unwrap().to_vec::<f32>().unwrap()
        })
    };
    assert_eq!(draw(0), draw(2));
}

#[test]
fn batches_are_uploaded_ahead_and_a_failing_device_ends_the_pass() {
    let (other, control) = backend_cpu::test_device("other", 0);
    let set = TensorDataset::new((counted(&[100, 2]), labels(100))).unwrap();
    for workers in [0, 2] {
        let loader = DataLoader::new(set.clone()).batch_size(2).workers(workers).device(&other);
        let batches = loader.iter().collect::<Result<Vec<_>>>().unwrap();
        assert_eq!(batches.len(), 50);
        for (i, (x, y)) in batches.iter().enumerate() {
            assert!(x.device() == other && y.device() == other);
            assert_eq!(values(y), [2.0 * i as f64, 2.0 * i as f64 + 1.0]);
        }
        let mut pass = loader.iter();
        pass.next().unwrap().unwrap();
        control.set_lost(true);
        let error = pass.find_map(Result::err).expect("a lost device");
        assert!(error.is_device_lost() && error.to_string().starts_with("batch "), "{error}");
        assert!(pass.next().is_none());
        control.set_lost(false);
    }
}

#[test]
fn windows_slide_over_a_sequence() {
    let set = TensorDataset::new(counted(&[7, 1])).unwrap();
    let windows = data::windows(set.clone(), 3, 2).unwrap();
    assert_eq!(windows.len(), 3);
    assert_eq!(windows.get(2).unwrap().dims(), [3, 1]);
    assert_eq!(values(&windows.get(2).unwrap()), [4.0, 5.0, 6.0]);
    let batch = DataLoader::new(windows).batch_size(2).iter().next().unwrap().unwrap();
    assert_eq!((batch.dims(), values(&batch)), (&[2, 3, 1][..], vec![0.0, 1.0, 2.0, 2.0, 3.0, 4.0]));
    assert_eq!(data::windows(set.clone(), 8, 1).unwrap().len(), 0);
    assert_eq!(text(data::windows(set, 0, 1)), "windows: size and step must be at least 1: size 0, step 1");
}

#[test]
fn scaling_is_learnt_from_the_training_part() {
    let train = Tensor::from_vec(vec![1.0f32, 5.0, 3.0, 5.0], [2, 2], &device()).unwrap();
    let test = Tensor::from_vec(vec![4.0f32, 6.0], [1, 2], &device()).unwrap();
    let scale = Standardize::fit(&train).unwrap();
    assert_eq!(values(&scale.apply(&train).unwrap()), [-1.0, 0.0, 1.0, 0.0]);
    assert_eq!(values(&scale.apply(&test).unwrap()), [2.0, 1.0]);
    assert_eq!(values(&scale.invert(&scale.apply(&test).unwrap()).unwrap()), values(&test));
    let scale = Rescale::fit(&train).unwrap();
    assert_eq!(values(&scale.apply(&train).unwrap()), [0.0, 0.0, 1.0, 0.0]);
    assert_eq!(values(&scale.apply(&test).unwrap()), [1.5, 1.0]);
    assert_eq!(values(&scale.invert(&scale.apply(&test).unwrap()).unwrap()), values(&test));
}

#[test]
fn tables_become_tensors() {
    let table = Csv::new().read_from("a,b,kind,n\n1,2.5,x,3\n4,5,z,1\n7,8,x,3\n".as_bytes()).unwrap();
    let x = table.numbers(&["b", "a"], &device()).unwrap();
    assert_eq!((x.dims(), x.dtype(), values(&x)), (&[3, 2][..], DType::F32, vec![2.5, 1.0, 5.0, 4.0, 8.0, 7.0]));
    let (kinds, names) = table.classes("kind", &device()).unwrap();
    assert_eq!((kinds.dtype(), values(&kinds), names), (DType::I64, vec![0.0, 1.0, 0.0], vec!["x".into(), "z".into()]));
    let (n, names) = table.classes("n", &device()).unwrap();
    assert_eq!((values(&n), names), (vec![1.0, 0.0, 1.0], vec!["1".to_string(), "3".into()]));
    assert_eq!(values(&table.integers("n", &device()).unwrap()), [3.0, 1.0, 3.0]);
    for (got, want) in [
        (text(table.numbers(&["kind"], &device())), "csv: the column holds text: `kind`; read it with .classes(..)"),
        (text(table.integers("b", &device())), "csv: the column does not hold i64 alone: `b`"),
        (text(table.classes("b", &device())), "csv: classes are integers or text, the column holds numbers: `b`"),
        (text(table.numbers(&["c"], &device())), "csv: no column has this name: `c`, columns a, b, kind, n"),
    ] {
        assert_eq!(got, want);
    }
}

#[test]
fn the_digits_are_the_published_ones() {
    let digits = Digits::load(&device()).unwrap();
    assert_eq!((digits.images.dims(), digits.images.dtype()), (&[1797, 1, 8, 8][..], DType::F32));
    assert_eq!((digits.labels.dims(), digits.labels.dtype()), (&[1797][..], DType::I64));
    let labels = digits.labels.to_vec::<i64>().unwrap();
    let counts: Vec<_> = (0..10).map(|digit| labels.iter().filter(|&&label| label == digit).count()).collect();
    // As in the description of the set by its authors.
    assert_eq!(counts, [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]);
    let ink = digits.images.to_vec::<f32>().unwrap();
    assert!(ink.iter().all(|&v| (0.0..=1.0).contains(&v) && (v * 16.0).fract() == 0.0));
    // The second row of the first image, a zero.
    assert_eq!(ink[8..16].iter().map(|v| v * 16.0).collect::<Vec<_>>(), [0.0, 0.0, 13.0, 15.0, 10.0, 15.0, 5.0, 0.0]);
    assert_eq!(digits.into_dataset().unwrap().get(0).unwrap().0.dims(), [1, 8, 8]);
}
