//! What the composed methods ask a backend for.

use super::Bench;
use crate::{ConvOptions, DType, Padding, Param, PoolOptions, Tensor, custom, einsum, stats};

/// The requests of a closure, which must succeed.
fn asked(bench: &Bench, f: impl FnOnce() -> crate::Result<Tensor>) -> (String, Vec<String>) {
    bench.asked();
    let y = f().unwrap_or_else(|e| panic!("{e}"));
    (format!("{y:?}"), bench.asked())
}

#[test]
fn composed_methods_ask_for_no_more_than_they_need() {
    let bench = Bench::new("silent");
    let x = bench.f32(&[2, 3, 4]);
    let w = bench.f32(&[4, 5]);
    let b = bench.f32(&[2, 4, 6]);
    let v = bench.f32(&[4]);
    let h = bench.tensor(&[2, 3], DType::F16);
    let i = bench.tensor(&[7, 2], DType::I64);
    let image = bench.f32(&[1, 3, 8, 8]);
    let kernel = bench.f32(&[6, 3, 3, 3]);
    let check = |name: &str, f: &dyn Fn() -> crate::Result<Tensor>, result: &str, requests: &[&str]| {
        assert_eq!(
            asked(&bench, f),
            (format!("Tensor({result} silent)"), requests.iter().map(|s| s.to_string()).collect()),
            "{name}"
        );
    };
    check("mean", &|| x.mean(1), "[2, 4] f32", &["mean([2, 3, 4]) -> [2, 4]", "mean([2, 4]) -> [2, 4]"]);
    check("mean of f16", &|| h.mean(..), "[] f16", &["mean([2, 3]) -> []", "mean([]) -> []"]);
    check(
        "var",
        &|| x.var(-1, 1),
        "[2, 3] f32",
        &[
            "var([2, 3, 4]) -> [2, 3, 1]",
            "var([2, 3, 1]) -> [2, 3, 1]",
            "var([2, 3, 4], [2, 3, 1]) -> [2, 3]",
            "var([2, 3]) -> [2, 3]",
        ],
    );
    check("norm", &|| x.norm(..), "[] f32", &["norm([2, 3, 4]) -> []", "norm([]) -> []"]);
    check("vector times matrix", &|| v.matmul(&w), "[5] f32", &["matmul([1, 4], [4, 5]) -> [1, 5]"]);
    check("batch times vector", &|| x.matmul(&v), "[2, 3] f32", &["matmul([2, 3, 4], [4, 1]) -> [2, 3, 1]"]);
    check("inner product", &|| v.matmul(&v), "[] f32", &["matmul([1, 4], [4, 1]) -> [1, 1]"]);
    check(
        "einsum as matmul",
        &|| einsum("bij,bjk->bik", &[&x, &b]),
        "[2, 3, 6] f32",
        &["matmul([2, 3, 4], [2, 4, 6]) -> [2, 3, 6]"],
    );
    check(
        "einsum transposed",
        &|| einsum("bij,bjk->kbi", &[&x, &b]),
        "[6, 2, 3] f32",
        &["matmul([2, 3, 4], [2, 4, 6]) -> [2, 3, 6]"],
    );
    check("einsum implied", &|| einsum("bij, jk", &[&x, &w]), "[2, 3, 5] f32", &["matmul([6, 4], [4, 5]) -> [6, 5]"]);
    check(
        "einsum ellipsis",
        &|| einsum("...j,jk->...k", &[&x, &w]),
        "[2, 3, 5] f32",
        &["matmul([6, 4], [4, 5]) -> [6, 5]"],
    );
    check("einsum sum", &|| einsum("ijk->j", &[&x]), "[3] f32", &["sum([2, 3, 4]) -> [3]"]);
    check("einsum outer", &|| einsum("i,j->ij", &[&v, &v]), "[4, 4] f32", &["mul([4, 1], [1, 4]) -> [4, 4]"]);
    check("einsum permute", &|| einsum("ijk->kij", &[&x]), "[4, 2, 3] f32", &[]);
    check(
        "einsum sums first",
        &|| einsum("ij,jk->j", &[&w.t()?, &w]),
        "[4] f32",
        &["sum([5, 4]) -> [4]", "sum([4, 5]) -> [4]", "mul([4], [4]) -> [4]"],
    );
    check(
        "conv with bias",
        &|| image.conv2d(&kernel, Some(&bench.f32(&[6])), &ConvOptions::default().padding(Padding::Same)),
        "[1, 6, 8, 8] f32",
        &["conv2d([1, 3, 8, 8], [6, 3, 3, 3], [6, 1, 1]) -> [1, 6, 8, 8]"],
    );
    check(
        "conv in one dimension",
        &|| {
            bench.f32(&[1, 2, 9]).conv1d(
                &bench.f32(&[4, 1, 3]),
                None,
                &ConvOptions::default().stride(2).padding([(0, 2)]).groups(2usize),
            )
        },
        "[1, 4, 5] f32",
        &["conv1d([1, 2, 9], [4, 1, 3]) -> [1, 4, 5]"],
    );
    check(
        "transposed conv",
        &|| {
            image.conv_transpose2d(
                &bench.f32(&[3, 4, 3, 3]),
                None,
                &crate::ConvTransposeOptions::default().stride(2).padding(1).output_padding(1),
            )
        },
        "[1, 4, 16, 16] f32",
        &["conv_input_grad([1, 3, 8, 8], [3, 4, 3, 3]) -> [1, 4, 16, 16]"],
    );
    check(
        "pool",
        &|| image.max_pool2d(&PoolOptions::new(3).stride(2).padding(1)),
        "[1, 3, 4, 4] f32",
        &["max_pool([1, 3, 8, 8]) -> [1, 3, 4, 4]"],
    );
    check(
        "adaptive pool that divides",
        &|| image.adaptive_avg_pool2d([2, 4]),
        "[1, 3, 2, 4] f32",
        &["avg_pool([1, 3, 8, 8]) -> [1, 3, 2, 4]"],
    );
    check("embedding", &|| w.index_select(0, &i), "[7, 2, 5] f32", &["gather([4, 5], [14, 5]) -> [14, 5]"]);
    check(
        "gather",
        &|| b.gather(1, &bench.tensor(&[2, 1, 6], DType::I64)),
        "[2, 1, 6] f32",
        &["gather([2, 4, 6], [2, 1, 6]) -> [2, 1, 6]"],
    );
    check(
        "slice_assign",
        &|| x.slice_assign(1, 1..2, 0.5),
        "[2, 3, 4] f32",
        &["full() -> []", "cat([2, 1, 4], [2, 1, 4], [2, 1, 4]) -> [2, 3, 4]"],
    );
    check("roll", &|| v.roll(-1, 0), "[4] f32", &["cat([3], [1]) -> [4]"]);
    check("repeat", &|| v.repeat([3, 2]), "[3, 8] f32", &["copy([3, 1, 2, 4]) -> [3, 1, 2, 4]"]);
    check("diagonal matrix", &|| v.diag(-1), "[5, 5] f32", &["pad([4]) -> [25]"]);
    check("eye", &|| Tensor::eye(3, &bench.device), "[3, 3] f32", &["full() -> [3]", "pad([3]) -> [9]"]);
    check("topk", &|| Ok(x.topk(2, 1)?.1), "[2, 2, 4] i64", &["sort([2, 3, 4]) -> [2, 3, 4]"]);
    check("any of numbers", &|| x.any(..), "[] bool", &["any([2, 3, 4]) -> []"]);
    check(
        "one_hot",
        &|| i.one_hot(10),
        "[7, 2, 10] f32",
        &["arange() -> [10]", "one_hot([7, 2, 1], [10]) -> [7, 2, 10]"],
    );
    check("cast to the same", &|| x.cast(DType::F32), "[2, 3, 4] f32", &[]);
    check("to the same device", &|| x.to(&bench.device), "[2, 3, 4] f32", &[]);
    check("copy_to the same device", &|| x.copy_to(&bench.device), "[2, 3, 4] f32", &["copy([2, 3, 4]) -> [2, 3, 4]"]);
    check("stack", &|| Tensor::stack(&[v.clone(), v.clone()], 1), "[4, 2] f32", &["cat([4, 1], [4, 1]) -> [4, 2]"]);
}

#[test]
fn operators_take_tensors_parameters_and_numbers_on_both_sides() {
    let bench = Bench::new("silent");
    let (x, w) = (bench.f32(&[2]), Param::new(bench.f32(&[2])));
    let results = [
        &x + &w,
        &w + &x,
        &x * 2.0,
        2.0 * &x,
        &x * 2,
        1 - &x,
        1.0 / &x,
        -&x,
        -&w,
        &w - 1.0f32,
        1.0 - &w,
        &x / &x,
        x.clone() + x.clone(),
        x.clone() * &w,
        w.clone() * x.clone(),
        2 * x.clone(),
        -x.clone(),
        w.clone() / 3,
    ];
    assert!(results.iter().all(|y| y.dims() == [2]));
    assert_eq!(bench.asked().len(), results.len());
    assert!(x.add(&w).is_ok() && w.matmul(&x).is_ok() && x.eq(1).is_ok() && x.pow(2).is_ok());
}

#[test]
fn printing_downloads_only_what_it_shows() {
    let bench = Bench::new("silent");
    let before = stats().device_to_host;
    assert_eq!(bench.f32(&[2, 2]).to_string(), "[[0.0, 0.0],\n [0.0, 0.0]]\n[2, 2] f32 silent");
    assert_eq!(bench.tensor(&[], DType::I64).to_string(), "0\n[] i64 silent");
    assert_eq!(bench.tensor(&[0, 3], DType::Bool).to_string(), "[]\n[0, 3] bool silent");
    bench.asked();
    let text = bench.tensor(&[1000, 50], DType::I32).to_string();
    assert_eq!(text.lines().next(), Some("[[0, 0, 0, …, 0, 0, 0],"));
    assert_eq!(text.lines().filter(|l| l.trim_start().starts_with('…')).count(), 1, "{text}");
    assert_eq!(bench.asked().last().map(String::as_str), Some("download [6, 6] i32"));
    assert!(stats().device_to_host.bytes >= before.bytes + 4 * 4 + 36 * 4);
    assert_eq!(format!("{:?}", bench.f32(&[1])), "Tensor([1] f32 silent)");
}

#[test]
fn a_custom_op_is_inferred_and_run() {
    #[derive(Debug)]
    struct Twice;
    impl crate::CustomOp for Twice {
        fn name(&self) -> &str {
            "twice"
        }
        fn infer(&self, inputs: &[crate::Meta]) -> crate::Result<crate::Metas> {
            Ok(inputs.iter().cloned().collect())
        }
        fn kernel(&self, _: crate::Kind) -> Option<crate::op::CustomKernel> {
            None
        }
        fn derivative(&self, _: &[&Tensor], _: &[Tensor], grads: &[Tensor]) -> crate::Result<Vec<Option<Tensor>>> {
            Ok(vec![Some(grads[0].mul(2)?)])
        }
    }
    let bench = Bench::new("silent");
    let y = custom(std::sync::Arc::new(Twice), &[&bench.f32(&[3])]).expect("runs");
    assert_eq!((y.len(), bench.asked()), (1, vec!["twice([3]) -> [3]".to_string()]));
}

#[test]
fn tensors_cross_threads() {
    fn is_send_sync<T: Send + Sync>() {}
    is_send_sync::<Tensor>();
    is_send_sync::<crate::Device>();
    is_send_sync::<crate::Error>();
    is_send_sync::<crate::Expr>();
}
